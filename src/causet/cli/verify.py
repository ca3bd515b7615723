"""`causet verify`: checks that every process delivers in causal order, on Spark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from causet.cli.shared.agreement import disagreement_lines, one_order_option
from causet.cli.shared.inputs import (
    fault_lines,
    fault_records,
    input_options,
    refuse_faults,
    report_option,
    strict_option,
)
from causet.cli.shared.printing import json_option, json_text, say
from causet.cli.shared.spark import spark_options
from causet.cli.shared.trace import execution
from causet.errors import listed
from causet.files import check_output
from causet.formats.execution import Fault
from causet.verdict import exit_code
from causet.view.proofs import proof

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from causet.spark.batch.verify import Verdict

TOLD = 20
"""Findings of one kind that are printed as text; the JSON has all."""


@click.command()
@click.argument("inputs", metavar="TRACE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--chains",
    metavar="N",
    type=click.IntRange(0),
    default=100,
    show_default=True,
    help="Number of violations that get a shortest chain that proves them.",
)
@one_order_option()
@input_options
@strict_option
@report_option
@spark_options
@json_option
def verify(
    inputs: tuple[Path, ...],
    chains: int,
    one_order: bool,
    form: str | None,
    strict: bool,
    report: Path | None,
    as_json: bool,
    master: str | None,
    conf: dict[str, str],
    **options: Any,
) -> int:
    """Check that every process delivers in causal order.

    It finds every delivery that came too early, with the message that should have come first and a shortest
    chain that proves it; also duplicates, deliveries to processes that a message is not addressed to,
    deliveries without a send, and messages never delivered.

    \b
    The status is
      valid     exit code 0
      vacuous   0: nothing is delivered, so there is nothing to check
      invalid   1: something was delivered too early, twice, or to a process it is not addressed to; with
                --one-order also in different orders at different processes
      unknown   3: nothing was found, but the log has faults that could hide something

    \b
    Examples:
      causet verify trace.jsonl
      causet verify --json trace.parquet > verdict.json
      causet verify --report verdict.html trace.jsonl
      causet verify --one-order trace.jsonl
    """
    if report is not None:
        check_output(report, inputs)
    with execution(inputs, form, options, master, conf, "verifying", checked=False) as source:
        from causet.spark.batch.by_files import by_files
        from causet.spark.batch.verify import verify_files

        verdict = by_files(source, lambda table: verify_files(source.events, table, chains, one_order))
        faults = [*source.faults, *verdict.faults]
        refuse_faults(strict, faults)
        status = "unknown" if verdict.status in ("valid", "vacuous") and source.faults else verdict.status
        if as_json:
            for part in _json(verdict, status, faults):
                click.echo(part, nl=False)
            click.echo()
        else:
            say(*_told(verdict, status, faults))
        if report is not None:
            from causet.spark.report import verify_report
            from causet.view.page import write_text

            title = f"causet verify {' '.join(path.name for path in inputs[:3])}"
            made = verify_report(title, source.events, verdict, status, faults)
            write_text(report, made.page())
    return exit_code(status)


def _json(verdict: Verdict, status: str, faults: Sequence[Fault]) -> Iterator[str]:
    """One JSON object, in parts as its lists are read: there may be millions of violations."""
    head = {
        "status": status,
        "events": verdict.events,
        "messages": verdict.messages,
        "deliveries": verdict.deliveries,
        "counts": verdict.counts,
        "disagreements": None
        if verdict.disagreements is None
        else [each.record() for each in verdict.disagreements],
        "faults": fault_records(faults),
    }
    yield json_text(head)[:-1]
    for name in ("duplicates", "strangers", "undelivered", "violations"):
        rows: DataFrame = getattr(verdict, name)
        yield f', "{name}": ['
        if verdict.counts[name]:
            for number, row in enumerate(rows.toLocalIterator()):
                record = row.asDict()
                if "because" in record:
                    record["because"] = record["because"] or []
                yield (", " if number else "") + json_text(record)
        yield "]"
    yield "}"


def _told(verdict: Verdict, status: str, faults: Sequence[Fault]) -> Iterator[str]:
    yield (
        f"{status}: events {verdict.events:,}, messages {verdict.messages:,}, deliveries "
        f"{verdict.deliveries:,}"
    )
    counts = verdict.counts
    if counts["violations"]:
        yield f"  delivered too early: {counts['violations']:,}"
        rows = verdict.violations.limit(TOLD).collect()
        for row in rows:
            yield "    " + proof(row.process, row.delivered, row.before, row.because or (), verdict.senders)
        yield from _and_more(counts["violations"], len(rows))
    yield from (f"  {line}" for line in disagreement_lines(verdict.disagreements))
    kinds = {
        "duplicates": "delivered more than once",
        "strangers": "delivered where not addressed",
        "undelivered": "never delivered where addressed",
    }
    for name, kind in kinds.items():
        if counts[name]:
            yield f"  {kind}: {counts[name]:,}"
            pairs = getattr(verdict, name).limit(TOLD).collect()
            yield from (f"    {listed([pair.process])}: {listed([pair.message])}" for pair in pairs)
            yield from _and_more(counts[name], len(pairs))
    yield from fault_lines(faults)


def _and_more(count: int, told: int) -> Iterator[str]:
    if count > told:
        yield f"    and {count - told:,} more"

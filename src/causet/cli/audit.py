"""`causet audit`: how wrong file order and time order are, on Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from causet.cli.shared.inputs import (
    fault_lines,
    fault_records,
    input_options,
    refuse_faults,
    report_option,
    strict_option,
)
from causet.cli.shared.printing import json_option, print_json, say, say_text
from causet.cli.shared.spark import spark_options
from causet.cli.shared.trace import execution
from causet.files import check_output
from causet.verdict import exit_code


@click.command()
@click.argument("inputs", metavar="TRACE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@input_options
@strict_option
@report_option
@spark_options
@json_option
def audit(
    inputs: tuple[Path, ...],
    form: str | None,
    strict: bool,
    report: Path | None,
    as_json: bool,
    master: str | None,
    conf: dict[str, str],
    **options: Any,
) -> int:
    """Count the effects that stand before their causes in file order, in time order and in causal order.

    Counts are also given for each pair of processes, with the worst skew between their clocks. Run this first
    on data of your own. It measures and does not judge: the exit code is 0 whatever the counts are.

    \b
    Examples:
      causet audit trace.jsonl
      causet audit --from git .
      causet audit --report audit.html trace.jsonl
    """
    if report is not None:
        check_output(report, inputs)
    with execution(inputs, form, options, master, conf, "auditing", checked=False) as source:
        from causet.spark.batch.audit import audit_files
        from causet.spark.batch.by_files import by_files

        placed = source.in_file_order()
        found = by_files(source, lambda table: audit_files(placed, table, "file_order"))
        faults = [*source.faults, *found.faults]
        refuse_faults(strict, faults)
        if as_json:
            print_json({**found.summary(), "faults": fault_records(faults)})
        else:
            say_text(found.told())
            say(*fault_lines(source.faults))
        if report is not None:
            from causet.spark.report import audit_report
            from causet.view.page import write_text

            title = f"causet audit {' '.join(path.name or str(path) for path in inputs[:3])}"
            write_text(report, audit_report(title, found, source.faults).page())
    return exit_code(found.status)

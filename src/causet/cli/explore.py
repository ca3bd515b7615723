"""`causet explore`: tries every interleaving of a small system."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from causet.check.explorer import explore as explored
from causet.check.runs import judged
from causet.check.scope import Report
from causet.check.scopes import NOT_SEEN, Named, scopes_for
from causet.cli.replay import drawn
from causet.cli.shared.agreement import one_order_option
from causet.cli.shared.common import (
    as_printed_option,
    open_groups_options,
    protocol_option,
    settings_of,
    settings_option,
)
from causet.cli.shared.printing import json_option, print_json, progress_bar, say, say_text
from causet.files import check_output, new_file
from causet.protocols import as_printed_rows, protocol_named
from causet.simulate.replay import replay
from causet.simulate.schedule import names_in, renamed, write_schedule
from causet.verdict import exit_code, judged_status

RUNS_ONLY = (
    "deliveries",
    "control_messages",
    "stamp_entries_mean",
    "stamp_entries_max",
    "stamp_bytes_mean",
    "stamp_bytes_max",
    "added_delay_mean",
    "added_delay_max",
)
"""Fields of the summary that only a run has; null here."""


@click.command()
@protocol_option
@click.option("--processes", "-n", default=3, show_default=True, help="Number of processes, 2 to 6.")
@click.option("--messages", "-m", default=4, show_default=True, help="Maximum number of messages, 1 to 8.")
@click.option(
    "--groups",
    default=None,
    metavar="SHAPE",
    help="Groups, for group protocols: pairs (any two processes form a group), twins (two groups of all "
    "processes), chain (each process with the next), all, ring:SIZE or random:COUNTxSIZE.  [default: pairs, "
    "then twins; for frontiers also chain]",
)
@open_groups_options
@click.option(
    "--links",
    default=None,
    metavar="SHAPE",
    help="Links between processes: path, star, cycle, tail (a triangle with a tail) or full, with all their "
    "causal separators (R9 of histories).  [default: full, without separators]",
)
@click.option(
    "--nulls", default=1, show_default=True, help="Null messages, sent at any time (slow, relative)."
)
@click.option("--most-states", default=5_000_000, show_default=True, help="Stop after this number of states.")
@click.option("--all", "every", is_flag=True, help="Count every finding, not only the shortest.")
@one_order_option("checked for merge, which promises it")
@settings_option
@as_printed_option
@click.option(
    "-o",
    "output",
    type=click.Path(path_type=Path),
    default=None,
    help="File for the shortest counter-example, as a schedule.",
)
@json_option
def explore(
    protocol: str,
    processes: int,
    messages: int,
    groups: str | None,
    at_once: int | None,
    opens: bool,
    links: str | None,
    nulls: int,
    most_states: int,
    every: bool,
    one_order: bool,
    extra: tuple[str, ...],
    as_printed: str | None,
    output: Path | None,
    as_json: bool,
    **named: Any,
) -> int:
    """Try every interleaving of a small system, and show the shortest counter-example.

    It checks that nothing is delivered before a cause, or twice; that nothing is delivered later than
    necessary, for protocols that promise this; that everything is delivered in the end; and that all
    processes deliver in one order, for merge, which promises this, and with --one-order. A clean result
    has tried every interleaving within the bounds; once something is found, longer counter-examples are not
    searched for. The exit code is 1 if something is found, 3 if the exploration stopped at a limit and found
    nothing.

    \b
    Examples:
      causet explore --protocol matrix
      causet explore --protocol relative --as-printed M3 --groups pairs
      causet explore --protocol histories --links cycle -n 4
      causet explore --protocol merge --one-order -m 2
      causet explore --protocol frontiers --groups chain --open -m 3
    """
    kind = protocol_named(protocol)
    if output is not None:
        check_output(output)
    scopes = scopes_for(
        kind,
        processes,
        messages,
        groups=groups,
        links=links,
        settings=settings_of(named, extra),
        as_printed=as_printed,
        nulls=nulls,
        at_once=at_once,
        opens=opens,
        one_order=one_order,
        most_states=most_states,
        every=every,
    )
    reports = []
    for scope in scopes:
        with progress_bar(f"{kind.name}, {scope.label}", None) as progress:
            report = explored(scope.scope, progress)
        reports.append((scope, report))
        if not as_json:
            say(_told(scope, report))
    found = [(s, r) for s, r in reports if r.shortest is not None]
    complete = all(report.complete for _, report in reports)
    status = judged_status(found, not complete, True)
    best = min(found, key=lambda pair: len(pair[1].shortest.steps), default=None)  # type: ignore[union-attr]
    text = None
    if best is not None and best[1].shortest is not None:
        text = write_schedule(best[1].shortest)
    if as_json:
        print_json({"status": status} | _summary(kind.name, processes, messages, reports, text))
    else:
        _show_best(best, text, output)
        for row in sorted(as_printed_rows(kind, as_printed) & NOT_SEEN.keys()):
            say(f"  {row} is about {NOT_SEEN[row]}: an exploration does not show it")
    if text is not None and output is not None:
        with new_file(output) as stream:
            stream.write(text.encode())
    return exit_code(status)


def _told(named: Named, report: Report) -> str:
    if report.complete:
        outcome = "complete"
    elif report.limited:
        outcome = "STOPPED AT THE LIMIT, so the rest is unknown"
    else:
        outcome = "ended at the shortest counter-example (--all counts the others too)"
    counts = ", ".join(f"{count:,} {kind}" for kind, count in sorted(report.findings.items()))
    scope = named.scope
    return (
        f"{scope.kind.name}: {scope.system.size} processes, {scope.messages} messages, {named.label}: "
        f"{report.states:,} state{'s' if report.states != 1 else ''}, {outcome}; {counts or 'nothing found'}"
    )


def _show_best(best: tuple[Named, Report] | None, text: str | None, output: Path | None) -> None:
    if best is None or text is None or best[1].shortest is None or best[1].finding is None:
        return
    scope, schedule = best[0].scope, best[1].shortest
    result = replay(schedule, scope.kind, scope.options)
    told = renamed(best[1].finding.text, names_in(schedule))
    say("", f"Shortest counter-example, {len(schedule.steps)} steps: {told}", "")
    say_text(drawn(result.events, judged(result, scope.kind)))
    say("", "As a schedule" + (f", in {output}" if output else "") + ":")
    say_text(text)


def _disagreements(reports: list[tuple[Named, Report]]) -> list[dict[str, list[str]]] | None:
    """Of the shortest counter-examples, where they show some; null where one order was not judged."""
    if not any(named.scope.one_order for named, _ in reports):
        return None
    found = []
    for named, report in reports:
        if named.scope.one_order and report.shortest is not None:
            result = replay(report.shortest, named.scope.kind, named.scope.options)
            found += [each.record() for each in judged(result, named.scope.kind).disagreements]
    return found


def _summary(
    protocol: str, processes: int, messages: int, reports: list[tuple[Named, Report]], text: str | None
) -> dict[str, Any]:
    findings: dict[str, int] = {}
    for _, report in reports:
        for kind, count in report.findings.items():
            findings[kind] = findings.get(kind, 0) + count
    return {
        "protocol": protocol,
        "processes": processes,
        "messages": messages,
        # An exploration is not a run: it has no delays, and no single number of deliveries or stamps.
        **dict.fromkeys(RUNS_ONLY),
        "states": sum(report.states for _, report in reports),
        "complete": all(report.complete for _, report in reports),
        "violations": findings.get("unsafe", 0) + findings.get("twice", 0),
        "late": findings.get("late", 0),
        "stuck": findings.get("stuck", 0),
        "broken": findings.get("broken", 0),
        "disagreements": _disagreements(reports),
        "scopes": [
            {
                "bounds": named.label,
                "messages": named.scope.messages,
                "states": report.states,
                "complete": report.complete,
                "findings": report.findings,
            }
            for named, report in reports
        ],
        "counterexample": text,
    }

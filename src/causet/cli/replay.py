"""`causet replay`: replays an exact schedule under a protocol."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

import causet
from causet.check.oracle import Verdict
from causet.check.runs import judged
from causet.cli.shared.agreement import disagreement_lines, one_order_option
from causet.cli.shared.common import (
    as_printed_option,
    check_trace_output,
    options_of,
    protocol_option,
    settings_of,
    settings_option,
)
from causet.cli.shared.printing import json_option, print_json, say
from causet.errors import BadInput, printable
from causet.escapes import in_json
from causet.formats.trace import to_json, write_trace
from causet.model import Event
from causet.protocols import protocol_named
from causet.simulate.replay import Replay
from causet.simulate.replay import replay as replayed
from causet.simulate.schedule import Schedule, read_schedule
from causet.verdict import exit_code, judged_status
from causet.view.text import space_time

MOST_DRAWN = 200
"""Maximum number of events in a drawing."""


def _shipped(schedule: Path) -> Path:
    """The path of a schedule; those under `schedules/` come with the package and work from any folder."""
    package = Path(causet.__file__).parent
    homes = (Path(), package, package.parents[1])  # the last one in a clone
    shipped = schedule.parts[:1] == ("schedules",)
    return next((home / schedule for home in homes if shipped and (home / schedule).is_file()), schedule)


@click.command()
@click.argument("schedule", type=click.Path(path_type=Path))
@protocol_option
@one_order_option()
@settings_option
@as_printed_option
@click.option("-o", "output", type=click.Path(path_type=Path), help="File for the trace.  [default: stdout]")
@json_option
def replay(
    schedule: Path,
    protocol: str,
    one_order: bool,
    extra: tuple[str, ...],
    as_printed: str | None,
    output: Path | None,
    as_json: bool,
    **named: Any,
) -> int:
    """Replay an exact SCHEDULE under a protocol.

    It prints the trace as JSON Lines to standard output, and a drawing with the verdict to standard error;
    with -o the trace goes to a file and the drawing to standard output. The exit code is 1 if a message is
    delivered out of causal order, or if everything has arrived and a message is still held; with --one-order
    also if processes deliver in different orders.

    \b
    Example:
      causet replay schedules/errata/M3.yaml --protocol relative --as-printed M3
    """
    kind = protocol_named(protocol)
    check_trace_output(output)
    plan = _read(_shipped(schedule))
    known = kind.Options.__dataclass_fields__  # a schedule may carry options of several protocols
    settings = {name: value for name, value in plan.options.items() if name in known}
    try:
        options = options_of(kind, plan.system, settings | settings_of(named, extra), as_printed)
        result = replayed(plan, kind, options)
    except BadInput as error:
        raise BadInput(f"{schedule}: {error}") from None
    verdict = judged(result, kind)
    told = _told(result, verdict, one_order)
    if output is not None:
        write_trace(output, result.events)
    if as_json:
        print_json(_summary(result, verdict, one_order))
    elif output is not None:
        say(*told)
    else:
        for event in result.events:
            click.echo(in_json(to_json(event)))
        say(*told, err=True)
    return exit_code(_status(result, verdict, one_order))


def _status(result: Replay, verdict: Verdict, one_order: bool) -> str:
    """A schedule is a whole execution: nothing is unknown about it."""
    bad = not verdict.ok or result.stuck or result.broken or (one_order and verdict.disagreements)
    return judged_status(bad, (), verdict.deliveries)


def _read(path: Path) -> Schedule:
    try:
        return read_schedule(path)
    except BadInput as error:
        if ": not YAML: " not in str(error):
            raise
        hint = "a schedule is a YAML file of steps (and a trace is shown by causet view)"
        raise BadInput(f"{error}; {hint}") from None


def drawn(events: Sequence[Event], verdict: Verdict) -> str:
    """A space-time diagram with the violations marked."""
    if len(events) > MOST_DRAWN:
        return f"({len(events)} events: too many to draw)"
    marks = {}
    for violation in verdict.violations:
        for event in events:
            if (event.kind, event.process, event.message) == (
                "deliver",
                violation.process,
                violation.delivered,
            ):
                marks[event.id] = (
                    f"{printable(violation.delivered)} delivered before {printable(violation.before)}, which "
                    "precedes it"
                )
                break
    return space_time(events, marks=marks)


def _told(result: Replay, verdict: Verdict, one_order: bool) -> list[str]:
    lines = [*drawn(result.events, verdict).split("\n"), ""]
    for violation in verdict.violations:
        process, delivered, before = map(
            printable, (violation.process, violation.delivered, violation.before)
        )
        chain = " → ".join(map(printable, violation.because))
        lines.append(f"OUT OF ORDER: {process} delivered {delivered} before {before}; but {chain}")
    lines += [
        f"TWICE: {printable(process)} delivered {printable(message)} again"
        for process, message in verdict.duplicates
    ]
    if one_order:
        lines += disagreement_lines(verdict.disagreements)
    lines += [f"BROKEN: {line}" for line in result.broken]
    if result.held:
        state = "STUCK: everything has arrived, and" if result.stuck else "not everything was received;"
        if not result.stuck and not result.under_way:
            state = "a message was lost;"
        lines += [f"{state} {line}" for line in result.held]
    lines += [
        f"refused: {printable(message)} by {printable(process)}, because it came too late or is impossible"
        for process, message in result.refused
    ]
    if result.under_way:
        first = "; ".join(
            f"{printable(message)} by {printable(process)}" for process, message in result.under_way[:10]
        )
        lines.append(f"not received: {first}{'; …' if len(result.under_way) > 10 else ''}")
    disagree = verdict.disagreements if one_order else ()
    findings = verdict.violations or verdict.duplicates or result.broken or disagree
    if not (findings or result.held or result.under_way):
        lines.append(
            f"every process delivered in causal order{', and all in one order' if one_order else ''}"
            if any(event.kind == "deliver" for event in result.events)
            else "nothing was delivered, so there is nothing to judge"
        )
    return lines


def _summary(result: Replay, verdict: Verdict, one_order: bool) -> dict[str, Any]:
    return {
        "status": _status(result, verdict, one_order),
        "events": verdict.events,
        "messages": verdict.messages,
        "violations": [
            {"process": v.process, "delivered": v.delivered, "before": v.before, "because": list(v.because)}
            for v in verdict.violations
        ],
        "duplicates": [list(pair) for pair in verdict.duplicates],
        "disagreements": [each.record() for each in verdict.disagreements] if one_order else None,
        "held": list(result.held),
        "stuck": result.stuck,
        "broken": list(result.broken),
        "under_way": len(result.under_way),
        "lost": sorted(map(list, result.lost)),
        "refused": [list(pair) for pair in result.refused],
        "rounds": result.rounds,
        "trace": [json.loads(to_json(event)) for event in result.events],
    }

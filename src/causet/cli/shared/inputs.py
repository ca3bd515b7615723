"""What the commands that take logs share: which format an input has, and how to read it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from causet.errors import BadInput
from causet.escapes import one_line
from causet.formats.execution import Fault
from causet.formats.registry import FORMS_IN

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS = (
    click.option(
        "--from",
        "form",
        type=click.Choice(list(FORMS_IN)),
        default=None,
        help="What the inputs are [default: what they look like].",
    ),
    click.option(
        "--parser",
        metavar="REGEX",
        help="shiviz: in JavaScript's syntax, with the groups host, clock and event "
        "[default: the first line of the file].",
    ),
    click.option(
        "--delimiter", metavar="REGEX", help="shiviz: what parts executions; its group trace names them."
    ),
    click.option(
        "--process",
        metavar="NAME",
        help="otlp: what a process is, request (default), service or span. events: the column of the "
        "process.",
    ),
    click.option("--id", metavar="FIELD", help="events: the column of the ids."),
    click.option(
        "--parent",
        metavar="FIELD",
        help="events: the column of the causes' ids. cloudevents: that attribute [default: causationid].",
    ),
    click.option("--time", metavar="FIELD", help="events: the column of the time."),
    click.option("--seq", metavar="FIELD", help="events: the column of the position within the process."),
    click.option(
        "--by",
        "domain",
        metavar="FIELD",
        help="cloudevents: the attribute of the domain in which sequences count [default: receiver].",
    ),
    click.option("--all-refs", is_flag=True, help="git: the history of every ref, not only of HEAD."),
)


def input_options(function: F) -> F:
    """`--from` as `form`, and what each format can be told, under its own names."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def strict_option(function: F) -> F:
    return click.option(
        "--strict", is_flag=True, help="Take faults of a log for bad input: exit code 2, nothing written."
    )(function)


def refuse_faults(faults: Sequence[Fault]) -> None:
    """For `--strict`."""
    if faults:
        kinds = "; ".join(
            f"{fault.kind} ({fault.count:,})" + (f", first {fault.places[0]}" if fault.places else "")
            for fault in faults
        )
        raise BadInput(f"the log has faults, and --strict refuses them: {kinds}")


def fault_record(fault: Fault) -> dict[str, Any]:
    return {"kind": fault.kind, "count": fault.count, "places": list(fault.places)}


def fault_lines(faults: Sequence[Fault]) -> list[str]:
    """Faults for people: each kind with its count, and where it was seen first."""
    lines = []
    for fault in faults:
        lines.append(f"  FAULT: {fault.kind}: {fault.count:,}")
        lines += [one_line(f"    {place}") for place in fault.places]
        if fault.count > len(fault.places) > 0:
            lines.append(f"    and {fault.count - len(fault.places):,} more")
    return lines


def report_option(function: F) -> F:
    return click.option(
        "--report",
        metavar="PAGE",
        type=click.Path(path_type=Path, dir_okay=False),
        help="Also write what was found as a page, with drawings and figures.",
    )(function)

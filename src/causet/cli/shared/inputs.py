"""What the commands that read logs share: the options for formats, and the printing of faults."""

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
        help="Format of the inputs.  [default: detected]",
    ),
    click.option(
        "--parser",
        metavar="REGEX",
        help="shiviz: regular expression in JavaScript's syntax, with the groups host, clock and event.  "
        "[default: the first line of the file]",
    ),
    click.option(
        "--delimiter", metavar="REGEX", help="shiviz: what separates executions; its group trace names them."
    ),
    click.option(
        "--process",
        metavar="NAME",
        help="events: column of the process. otlp: what counts as a process: request, service or span.  "
        "[default: request]",
    ),
    click.option("--id", metavar="FIELD", help="events: column of the ids."),
    click.option(
        "--parent",
        metavar="FIELD",
        help="events: column of the ids of causes. cloudevents: attribute of the cause's id.  [default: "
        "causationid]",
    ),
    click.option("--time", metavar="FIELD", help="events: column of the time."),
    click.option("--seq", metavar="FIELD", help="events: column of the position within the process."),
    click.option(
        "--by",
        "domain",
        metavar="FIELD",
        help="cloudevents: attribute of the domain in which sequence numbers count.  [default: receiver]",
    ),
    click.option("--all-refs", is_flag=True, help="git: read the history of every ref, not only of HEAD."),
)


def input_options(function: F) -> F:
    """`--from` as `form`, and the options of each format under their own names."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def strict_option(function: F) -> F:
    return click.option(
        "--strict", is_flag=True, help="Treat faults of a log as bad input: exit code 2, nothing is written."
    )(function)


def refuse_faults(strict: bool, faults: Sequence[Fault]) -> None:
    """Raise BadInput if there are faults and `--strict` is given."""
    if strict and faults:
        kinds = "; ".join(
            f"{fault.kind} ({fault.count:,})" + (f", first {fault.places[0]}" if fault.places else "")
            for fault in faults
        )
        raise BadInput(f"the log has faults, and --strict refuses them: {kinds}")


def fault_records(faults: Sequence[Fault]) -> list[dict[str, Any]]:
    """Faults for JSON."""
    return [{"kind": each.kind, "count": each.count, "places": list(each.places)} for each in faults]


def fault_lines(faults: Sequence[Fault]) -> list[str]:
    """Faults as text: each kind with its count and the first locations."""
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
        help="Also write the result as a page, with drawings and charts.",
    )(function)

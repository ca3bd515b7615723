"""One order for all: the option that asks for it, and the lines that say where there is none."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import click

from causet.check.agreement import DISAGREEMENTS_LISTED, Disagreement
from causet.errors import printable

F = TypeVar("F", bound=Callable[..., Any])
TOLD, STEPS = 5, 10
"""Cycles that are printed as text, and steps of each; the JSON has all."""


_HELP = (
    "Also check that all processes deliver in one order: exit code 1 if the union of their delivery orders "
    "has a cycle. A sender's own copy counts where it is a deliver event.  [default: {}]"
)


def one_order_option(default: str = "not checked") -> Callable[[F], F]:
    """`--one-order`: agreement is judged, too."""
    return click.option("--one-order", is_flag=True, help=_HELP.format(default))


def disagreement_lines(found: Sequence[Disagreement] | None) -> Iterator[str]:
    """One sentence for each cycle."""
    for each in (found or ())[:TOLD]:
        names = [printable(message) for message in each.cycle]
        steps = zip(each.processes, names, [*names[1:], names[0]], strict=True)
        told = [f"{printable(process)} delivered {one} before {other}" for process, one, other in steps]
        if len(told) > STEPS:
            told[STEPS - 1 : -1] = [f"… ({len(told) - STEPS:,} more steps)"]
        yield f"NO ONE ORDER: {', '.join(told)}"
    if found and len(found) > TOLD:
        more = f"{len(found) - TOLD:,} more" if len(found) < DISAGREEMENTS_LISTED else "more"
        yield f"NO ONE ORDER: {more} such groups of messages"

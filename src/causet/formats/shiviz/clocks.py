"""Vector clocks: from clocks to direct causes, and from happened-before back to clocks.

A clock says for each host how many of its events happened before or are this one; an absent entry is 0. With
e = (h, n) the n-th event of h and V(e) its clock, f = (g, m) happened before e exactly if V(e)[g] ≥ m.

Rule: the edges that `direct_causes` returns, with process order, make exactly that relation among the events
that are in the log, and none of them follows from the others.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from causet.errors import BadInput
from causet.formats.causality import causal_order
from causet.formats.causality import direct_causes as causes_of
from causet.model import Event

Clock = Mapping[str, int]
Point = tuple[str, int]
"""An event by its host and that host's own clock entry."""

MOST_ENTRIES = 50_000_000
"""Clock entries of all events together that are still computed and written."""


class Causes(NamedTuple):
    """The direct causes of an event, by its clock.

    `known` are in the log, `lost` are not; `forgets` is set where the clock lacks something that an event
    before it, `forgets[0]`, already knew: (that event, host, value).
    """

    known: tuple[Point, ...]
    lost: tuple[Point, ...]
    forgets: tuple[Point, str, int] | None


def direct_causes(clocks: Mapping[Point, Clock]) -> dict[Point, Causes]:
    """For each event its direct causes on other hosts."""
    values: dict[str, list[int]] = {}
    for host, value in clocks:
        values.setdefault(host, []).append(value)
    found: dict[Point, Causes] = {}
    for own in values.values():
        own.sort()
    sizes = {point: sum(clock.values()) for point, clock in clocks.items()}
    for host, own in values.items():
        for before, value in pairwise([0, *own]):
            past = clocks[host, before] if before else {}
            found[host, value] = _causes(host, clocks[host, value], past, before, clocks, values, sizes)
    return found


def _causes(
    host: str,
    clock: Clock,
    past: Clock,
    before: int,
    clocks: Mapping[Point, Clock],
    values: Mapping[str, list[int]],
    sizes: Mapping[Point, int],
) -> Causes:
    candidates: list[Point] = []
    lost: list[Point] = []
    for other, value in clock.items():
        if other == host or value <= past.get(other, 0):
            continue
        logged = values.get(other, [])
        position = bisect_right(logged, value)
        last = logged[position - 1] if position else 0
        if last > past.get(other, 0):
            candidates.append((other, last))
        if last != value:
            lost.append((other, value))
    # A cause of another candidate has a smaller clock than that one, so the largest come first and each is
    # compared only with those that stay.
    candidates.sort(key=lambda point: (-sizes[point], point))
    known: list[Point] = []
    for point in candidates:
        if not _implied(point, known, clocks):
            known.append(point)
    lost = [point for point in lost if not _implied(point, known, clocks)]
    forgets = _forgotten(clock, (host, before), past) if before else None
    for point in known:
        forgets = forgets or _forgotten(clock, point, clocks[point])
    return Causes(tuple(sorted(known)), tuple(sorted(lost)), forgets)


def _implied(point: Point, by: Sequence[Point], clocks: Mapping[Point, Clock]) -> bool:
    host, value = point
    return any(clocks[other].get(host, 0) >= value for other in by)


def _forgotten(clock: Clock, cause: Point, known: Clock) -> tuple[Point, str, int] | None:
    for host, value in known.items():
        if clock.get(host, 0) < value:
            return cause, host, value
    return None


def vector_clocks(
    events: Sequence[Event], beyond: Mapping[int, Sequence[Point]] | None = None
) -> list[dict[str, int]]:
    """The clock of each event, from process order, parents, and sends; own entries are the seqs.

    `beyond` names, by the event's position, causes that are not in the trace. The events have no cycle.
    """
    beyond = beyond or {}
    causes = causes_of(events)
    clocks: list[dict[str, int]] = [{} for _ in events]
    entries = 0
    for number in causal_order(causes):
        clock = clocks[number]
        for cause in causes[number]:
            _raise_to(clock, clocks[cause])
        for host, value in beyond.get(number, ()):
            clock[host] = max(clock.get(host, 0), value)
        clock[events[number].process] = events[number].seq
        entries += len(clock)
        if entries > MOST_ENTRIES:
            raise BadInput(
                f"the vector clocks of these {len(events):,} events have more than {MOST_ENTRIES:,} entries; "
                "ShiViz is for logs that fit a screen"
            )
    return clocks


def _raise_to(clock: dict[str, int], other: Clock) -> None:
    if not clock:
        clock.update(other)
        return
    for host, value in other.items():
        if clock.get(host, 0) < value:
            clock[host] = value

"""The causality of a log in plain Python: direct causes, a causal order, and a cycle where there is one.

Happened-before is process order, send to receive, send to deliver, and parents. Parents and messages that are
not in the log are left out. Events are known by their positions in the sequence that is given.

The oracle in `causet.check` computes the same on its own, on purpose.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import pairwise

from causet.errors import BadInput, printable
from causet.model import Event

MOST_IDS = 12
"""Events of a cycle that are named."""


def sends_of(events: Sequence[Event]) -> dict[str, int]:
    """The position of the send of each message."""
    sends: dict[str, int] = {}
    for position, event in enumerate(events):
        if event.kind == "send" and event.message is not None:
            sends.setdefault(event.message, position)
    return sends


def links_of(events: Sequence[Event]) -> list[list[int]]:
    """For each event its send and its parents: the causes that do not follow from process order."""
    sends = sends_of(events)
    by_id = {event.id: position for position, event in enumerate(events)}
    links: list[list[int]] = []
    for event in events:
        sent = event.kind in ("receive", "deliver") and event.message in sends
        links.append([sends[event.message or ""]] if sent else [])
        links[-1] += [by_id[parent] for parent in event.parents if parent in by_id]
    return links


def with_process_order(events: Sequence[Event], links: Sequence[Sequence[int]]) -> list[list[int]]:
    """These links, and for each event the one before it in its process."""
    causes = [list(link) for link in links]
    in_process_order = sorted(range(len(events)), key=lambda position: _key(events[position]))
    for earlier, later in pairwise(in_process_order):
        if events[earlier].process == events[later].process:
            causes[later].append(earlier)
    return causes


def direct_causes(events: Sequence[Event]) -> list[list[int]]:
    """For each event its direct predecessors."""
    return with_process_order(events, links_of(events))


def causal_order(causes: Sequence[Sequence[int]]) -> list[int]:
    """The events, each after its causes; those in a cycle or after one are missing."""
    # Kahn's algorithm: an event is free when the last of its causes is placed.
    effects = _effects(causes)
    missing = [len(its_causes) for its_causes in causes]
    free = [position for position, count in enumerate(missing) if not count]
    order: list[int] = []
    while free:
        order.append(free.pop())
        for effect in effects[order[-1]]:
            missing[effect] -= 1
            if not missing[effect]:
                free.append(effect)
    return order


def check_acyclic(events: Sequence[Event]) -> None:
    """BadInput, showing a cycle, if some event happened before itself."""
    causes = direct_causes(events)
    order = causal_order(causes)
    if len(order) < len(events):
        left = set(range(len(events))).difference(order)
        ids = [printable(events[position].id) for position in _cycle(events, causes, left)]
        if len(ids) > MOST_IDS:
            ids[6:-5] = [f"… {len(ids) - 11} more …"]
        raise BadInput(f"the trace has a cycle, in which an event happened before itself: {' → '.join(ids)}")


def _effects(causes: Sequence[Sequence[int]]) -> list[list[int]]:
    effects: list[list[int]] = [[] for _ in causes]
    for effect, its_causes in enumerate(causes):
        for cause in its_causes:
            effects[cause].append(effect)
    return effects


def _cycle(events: Sequence[Event], causes: Sequence[Sequence[int]], left: set[int]) -> list[int]:
    """A cycle among `left`, each of which has a cause there: a shortest one through one of its events, which
    begins and ends it."""

    def smallest(positions: Iterable[int]) -> int:
        return min(positions, key=lambda position: _key(events[position]))

    # A walk from effect to cause that never leaves a finite set comes to some event for the second time.
    start = smallest(left)
    visited: set[int] = set()
    while start not in visited:
        visited.add(start)
        start = smallest(cause for cause in causes[start] if cause in left)
    effects = _effects(causes)
    came_from: dict[int, int] = {}
    todo = deque([start])
    while start not in came_from:
        cause = todo.popleft()
        for effect in effects[cause]:
            if effect in left and effect not in came_from:
                came_from[effect] = cause
                todo.append(effect)
    cycle = [start, came_from[start]]
    while cycle[-1] != start:
        cycle.append(came_from[cycle[-1]])
    return cycle[::-1]


def _key(event: Event) -> tuple[str, int]:
    return event.process, event.seq

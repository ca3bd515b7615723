"""The events of a drawing in the order of `causet order`, with their causes.

The order depends on the events alone, not on the order in which they are given.
"""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from math import inf

from causet.errors import BadInput, quote
from causet.model import Event


def sends_of(events: Sequence[Event]) -> dict[str, int]:
    """Where each message is sent."""
    found: dict[str, int] = {}
    for position, event in enumerate(events):
        if event.kind == "send" and event.message is not None:
            found.setdefault(event.message, position)
    return found


def causes_of(events: Sequence[Event], sends: Mapping[str, int]) -> list[list[int]]:
    """Of each event the positions of its send and its parents, as far as they are there."""
    named = {event.id: position for position, event in enumerate(events)}
    found = []
    for event in events:
        sent = event.kind in ("receive", "deliver") and event.message in sends
        causes = [sends[event.message or ""]] if sent else []
        found.append(causes + [named[parent] for parent in event.parents if parent in named])
    return found


def in_order(given: Sequence[Event], causes: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
    """The positions of the events, each with its block, by (repaired, block, process, seq); BadInput if they
    are in a cycle.

    `given` is sorted by process and seq.
    """
    direct = [list(found) for found in causes]
    for position in range(1, len(given)):
        if given[position - 1].process == given[position].process:
            direct[position].append(position - 1)
    effects: dict[int, list[int]] = defaultdict(list)
    for position, found in enumerate(direct):
        for cause in found:
            effects[cause].append(position)
    missing = [len(found) for found in direct]
    rank: dict[int, tuple[int | float, int]] = {}
    free = deque(position for position, count in enumerate(missing) if not count)
    while free:
        position = free.popleft()
        before = [rank[cause] for cause in direct[position]]
        time = given[position].time
        own = -inf if time is None or time != time else time
        rank[position] = (
            max([own, *(repaired for repaired, _ in before)]),
            1 + max((block for _, block in before), default=0),
        )
        for effect in effects[position]:
            missing[effect] -= 1
            if not missing[effect]:
                free.append(effect)
    for position, event in enumerate(given):
        if position not in rank:
            raise BadInput(f"event {quote(event.id)} is in a cycle of causes, or comes after one")
    order = sorted(range(len(given)), key=lambda position: (*rank[position], position))
    return [(position, rank[position][1]) for position in order]


def natural(name: str) -> tuple[object, ...]:
    """p2 before p10: digits compare as numbers, however long."""
    parts = re.split("([0-9]+)", name)
    numbers = [digits.lstrip("0") for digits in parts[1::2]]
    pairs = zip_longest(parts[::2], numbers, fillvalue="")
    return (*((text, len(digits), digits) for text, digits in pairs), (name,))

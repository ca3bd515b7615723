"""The events of a drawing in the order of `causet order`.

The order depends on the events alone, not on the order in which they are given.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import zip_longest
from math import inf

from causet.errors import BadInput, quote
from causet.formats.causality import causal_order, with_process_order
from causet.model import Event


def in_order(given: Sequence[Event], links: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
    """The positions of the events, each with its block, by (repaired, level, process, seq); BadInput if they
    are in a cycle.

    Block and level are 1 + the largest among the direct causes: among all of them, and among those with the
    same repaired time.

    `given` is sorted by process and seq; `links` are the causes in other processes.
    """
    causes = with_process_order(given, links)
    rank: dict[int, tuple[int | float, int]] = {}
    blocks: dict[int, int] = {}
    for position in causal_order(causes):
        before = [rank[cause] for cause in causes[position]]
        time = given[position].time
        own = -inf if time is None or time != time else time
        repaired = max([own, *(latest for latest, _ in before)])
        level = 1 + max((level for latest, level in before if latest == repaired), default=0)
        rank[position] = (repaired, level)
        blocks[position] = 1 + max((blocks[cause] for cause in causes[position]), default=0)
    for position, event in enumerate(given):
        if position not in rank:
            raise BadInput(f"event {quote(event.id)} is in a cycle of causes, or comes after one")
    order = sorted(range(len(given)), key=lambda position: (*rank[position], position))
    return [(position, blocks[position]) for position in order]


def natural(name: str) -> tuple[object, ...]:
    """p2 before p10: digits compare as numbers, however long."""
    parts = re.split("([0-9]+)", name)
    numbers = [digits.lstrip("0") for digits in parts[1::2]]
    pairs = zip_longest(parts[::2], numbers, fillvalue="")
    return (*((text, len(digits), digits) for text, digits in pairs), (name,))

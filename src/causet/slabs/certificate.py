"""The certificate: whether what all slabs found is the order of the log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from causet.slabs.judge import Verdict
from causet.slabs.order import Ordered
from causet.slabs.plan import Time


class Done(NamedTuple):
    """What one slab says of itself."""

    slab: int
    rows: int
    """how many it gives out"""
    begin: int
    """the position of the first"""
    correction: Time
    stuck: int
    seen: int
    """how many events it looked at"""


def done_by(slab: int, found: Ordered, seen: int) -> Done:
    return Done(slab, len(found.rows), found.begin, found.correction, found.stuck, seen)


def is_sound(done: Sequence[Done], verdict: Verdict) -> bool:
    """Whether the log can be ordered at all: nothing is there twice, nothing waits for a cycle."""
    return not verdict.repeated and not any(each.stuck for each in done)


def needed_reach(done: Sequence[Done], verdict: Verdict) -> Time:
    """The order is exact if the reach was this or more."""
    return max([verdict.ahead, *(each.correction for each in done)])


def is_whole(done: Sequence[Done], verdict: Verdict, events: int) -> bool:
    """Whether every event has one position. It follows from the reach; so it can only show a mistake."""
    at = 0
    for each in sorted(done):
        if each.begin != at:
            return False
        at += each.rows
    return at == events == verdict.events

"""One slab in order, from all that it sees."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numba import njit

from causet.kernels.arrays import Array
from causet.kernels.logs.levels import fill_view
from causet.kernels.logs.windows import links_by_effect, one_page
from causet.slabs.plan import Plan, Time
from causet.slabs.window import Window


class Ordered(NamedTuple):
    """The rows that a slab gives out, in order."""

    rows: Array
    """their places among the rows of the window"""
    repaired: Array
    begin: int
    """the position of the first"""
    correction: Time
    """by how much an event that is at home here is moved, at most"""
    stuck: int
    """events that wait for a cycle; then nothing else holds"""


def ordered(window: Window, plan: Plan, slab: int) -> Ordered:
    """The events whose repaired time lies in the slab, by (repaired, level, process, seq)."""
    effects, causes = window.references.effect, window.references.cause
    link_first, links = links_by_effect(effects, causes, len(window.time))
    view = one_page(window.first, window.time.copy(), link_first, links)
    waiting = fill_view(view)
    low, high = plan.bounds(slab)
    mine = (view.time >= low) & (view.time < high)
    earlier = int(np.count_nonzero(view.time < low))
    events = np.flatnonzero(mine)
    events = events[np.argsort(view.time[events], kind="stable")]
    by_level(events, view.time, view.word)
    home = is_home(window, plan, slab)
    return Ordered(
        rows=window.place[events],
        repaired=view.time[events],
        begin=window.below + earlier,
        correction=largest(view.time[home], window.time[home]),
        stuck=len(window.time) - int(waiting.done.sum()),
    )


def is_home(window: Window, plan: Plan, slab: int) -> Array:
    """Whether each event has a time in the slab."""
    low, high = plan.bounds(slab)
    found: Array = (window.time >= low) & (window.time < high)
    return found


def largest(repaired: Array, time: Array) -> Time:
    """The largest difference; exact, although it may not fit 64 bits with a sign."""
    if not len(time):
        return 0
    if time.dtype.kind == "f":
        with np.errstate(over="ignore"):  # the difference may be more than any float
            return float((repaired - time).max())
    return int((repaired.view(np.uint64) - time.view(np.uint64)).max())


@njit(cache=True)
def by_level(events: Array, repaired: Array, level: Array) -> None:
    """Sort events that are sorted by (repaired, number) by (repaired, level, number)."""
    begin = 0
    for i in range(1, len(events) + 1):
        if i < len(events) and repaired[events[i]] == repaired[events[begin]]:
            continue
        if i - begin > 1:
            tied = events[begin:i].copy()
            events[begin:i] = tied[np.argsort(level[tied], kind="mergesort")]
        begin = i


def rows_of(window: Window, order: Ordered) -> pa.Table:
    """The rows of a slab, with what is added to them."""
    found = window.rows.take(pa.array(order.rows))
    positions = np.arange(order.begin, order.begin + len(order.rows))
    return found.append_column("repaired", pa.array(order.repaired)).append_column(
        "position", pa.array(positions)
    )

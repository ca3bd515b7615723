"""Levels, repaired times and positions of a whole execution, in one pass each.

repaired    the largest of the own time and the direct predecessors' repaired times
level       1 + the largest level among the direct predecessors with the same repaired time, or 1
position    the rank by (repaired, level, process, seq)

A predecessor is repaired to the same time or an earlier one, and of the same it has a smaller level. So the
order is causal, and the level of an event depends on events with its own repaired time alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from causet.kernels.arrays import Array
from causet.kernels.logs.causal_pass import events_in_order
from causet.kernels.logs.pages import ABSENT, Pages, View
from causet.kernels.logs.waiting import (
    DONE_EVENTS,
    READY,
    WANTED,
    WATCHING,
    Waiting,
    all_ready,
    wake,
    watch,
)


def fill_levels(pages: Pages) -> Waiting:
    """Fill the level (as word) and the repaired time of every event that does not wait for a cycle.

    Where `done` of the answer is less than a process has events, its next event waits forever.
    """
    view = pages.view
    waiting, level, latest = _begun(view)
    while not _release(view, waiting, level, latest):
        view = pages.fetch(int(waiting.counts[WANTED]))
    return waiting


def fill_view(view: View) -> Waiting:
    """The same where all pages are resident."""
    waiting, level, latest = _begun(view)
    _release(view, waiting, level, latest)
    return waiting


def _begun(view: View) -> tuple[Waiting, Array, Array]:
    """Every process at its first event."""
    processes = len(view.first) - 1
    latest = np.full(processes, _least(view.time.dtype), view.time.dtype)
    return all_ready(processes), np.zeros(processes, np.int32), latest


def _least(kind: Any) -> Any:
    return -np.inf if kind.kind == "f" else np.iinfo(kind).min


@njit(cache=True)
def _release(view: View, waiting: Waiting, level: Array, latest: Array) -> bool:
    """Go on until nothing is ready any more (True), or a page is missing (False).

    `level` and `latest` hold for each process the level and repaired time of its last event, raised by the
    causes of the next one that were looked at.
    """
    mask = (1 << view.shift) - 1
    counts = waiting.counts
    while counts[READY]:
        counts[READY] -= 1
        p = waiting.ready[counts[READY]]
        e = view.first[p] + waiting.done[p]
        while e < view.first[p + 1]:
            slot = view.slot_of[e >> view.shift]
            missing = e >> view.shift if slot == ABSENT else ABSENT
            held_by = ABSENT
            if missing == ABSENT:
                view.used[slot] = True
                links = (slot << view.shift) + slot + (e & mask)
                at = view.link_first[links] + waiting.looked_at[p]
                while at < view.link_first[links + 1]:
                    cause = view.links[at]
                    its_slot = view.slot_of[cause >> view.shift]
                    if its_slot == ABSENT:
                        missing = cause >> view.shift
                        break
                    view.used[its_slot] = True
                    its_place = (its_slot << view.shift) + (cause & mask)
                    if view.word[its_place] == 0:
                        held_by = cause
                        break
                    _lift(latest, level, p, view.time[its_place], view.word[its_place])
                    at += 1
                if at < view.link_first[links + 1]:
                    waiting.looked_at[p] = at - view.link_first[links]
            if missing != ABSENT:
                waiting.ready[counts[READY]] = p
                counts[READY] += 1
                counts[WANTED] = missing
                return False
            if held_by != ABSENT:
                watch(waiting, p, held_by)
                break
            place = (slot << view.shift) + (e & mask)
            _lift(latest, level, p, view.time[place], 0)
            level[p] += 1
            view.word[place] = level[p]
            view.time[place] = latest[p]
            waiting.looked_at[p] = 0
            waiting.done[p] += 1
            counts[DONE_EVENTS] += 1
            if counts[WATCHING]:
                wake(waiting, e)
            e += 1
    return True


@njit(cache=True)
def _lift(latest: Array, level: Array, p: int, time: Any, its_level: int) -> None:
    """One more time below the next event of a process: a cause's, with its level, or the own one, with 0. Of
    levels only those at the latest time count."""
    if time > latest[p]:
        latest[p] = time
        level[p] = its_level
    elif time == latest[p]:
        level[p] = max(level[p], its_level)


def fill_positions(pages: Pages) -> None:
    """Fill the position of every event; only where `fill_levels` reached all of them."""
    pages.rank()
    position = 0
    for events, _ in events_in_order(pages):
        _rank(pages.view, events, position)
        position += len(events)


@njit(cache=True)
def _rank(view: View, events: Array, position: int) -> None:
    """Write positions, from this one on."""
    mask = (1 << view.shift) - 1
    for i in range(len(events)):
        slot = view.slot_of[events[i] >> view.shift]
        view.link_first[(slot << view.shift) + slot + (events[i] & mask)] = position + i


def cycle(pages: Pages, waiting: Waiting) -> list[int]:
    """Events of a cycle, each directly before the next and the last before the first; [] if there is none.

    Every event that waits forever has a predecessor that does, so a walk back from one ends in a cycle.
    """
    first, done = pages.first, waiting.done
    held = np.flatnonzero(first[:-1] + done < first[1:])
    if not len(held):
        return []
    at = int(first[held[0]] + done[held[0]])
    path: list[int] = []
    met: dict[int, int] = {}
    while at not in met:
        met[at] = len(path)
        path.append(at)
        # Predecessors in other processes come first: such cycles tell the reader more.
        at = next((cause for cause in pages.causes(at) if not pages.is_done(cause, done)), at - 1)
    return path[met[at] :][::-1]

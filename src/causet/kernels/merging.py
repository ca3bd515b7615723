"""All events of an execution in the order of their positions: a merge of as many runs as there are processes.

Repaired times and blocks only grow along a process, so its events are a sorted run. A kernel that takes the
events one by one stops where a page is missing and goes on from there.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from causet.kernels.pages import ABSENT, Pages, View

Array = np.ndarray[Any, Any]

RUNS, TAKEN, WANTED = 0, 1, 2
"""Places in `Merge.counts`: processes with events left, events taken, and the page that is missing."""


class Merge(NamedTuple):
    """A heap of processes by their next events."""

    heap: Array
    next_event: Array
    block: Array
    repaired: Array
    """of each process's next event"""
    counts: Array


def begin_merge(pages: Pages) -> Merge:
    """Every process at its first event. Blocks and repaired times have to be there."""
    view = pages.view
    processes = len(view.first) - 1
    merge = Merge(
        heap=np.empty(processes, np.int32),
        next_event=view.first[:-1].copy(),
        block=np.zeros(processes, np.int32),
        repaired=np.zeros(processes, view.time.dtype),
        counts=np.zeros(3, np.int64),
    )
    filled = 0
    while (filled := _fill(view, merge, filled)) < processes:
        view = pages.fetch(int(merge.counts[WANTED]))
    for at in range(int(merge.counts[RUNS]) // 2 - 1, -1, -1):
        _sift(merge, at)
    return merge


@njit(cache=True)
def _look(view: View, merge: Merge, p: int) -> bool:
    """Note block and repaired time of the process's next event; False if its page is missing."""
    e = merge.next_event[p]
    slot = view.slot_of[e >> view.shift]
    if slot == ABSENT:
        merge.counts[WANTED] = e >> view.shift
        return False
    view.used[slot] = True
    place = (slot << view.shift) + (e & ((1 << view.shift) - 1))
    merge.block[p] = view.word[place]
    merge.repaired[p] = view.time[place]
    return True


@njit(cache=True)
def _fill(view: View, merge: Merge, begin: int) -> int:
    """Put the processes from `begin` on into the heap, as far as their pages are there."""
    for p in range(begin, len(view.first) - 1):
        if view.first[p] < view.first[p + 1]:
            if not _look(view, merge, p):
                return p
            merge.heap[merge.counts[RUNS]] = p
            merge.counts[RUNS] += 1
    return len(view.first) - 1


@njit(cache=True)
def _precedes(merge: Merge, p: int, q: int) -> bool:
    """Whether the next event of process p has its place before that of process q."""
    if merge.repaired[p] != merge.repaired[q]:
        return bool(merge.repaired[p] < merge.repaired[q])
    if merge.block[p] != merge.block[q]:
        return bool(merge.block[p] < merge.block[q])
    return p < q


@njit(cache=True)
def _sift(merge: Merge, at: int) -> None:
    heap, size = merge.heap, merge.counts[RUNS]
    moved = heap[at]
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and _precedes(merge, heap[child + 1], heap[child]):
            child += 1
        if not _precedes(merge, heap[child], moved):
            break
        heap[at] = heap[child]
        at = child
    heap[at] = moved


@njit(cache=True)
def next_event(view: View, merge: Merge) -> int:
    """The event whose turn it is; ABSENT if a page is missing without which it cannot be passed."""
    p = merge.heap[0]
    e = merge.next_event[p]
    if view.slot_of[e >> view.shift] == ABSENT:
        merge.counts[WANTED] = e >> view.shift
        return ABSENT
    following = e + 1
    if following < view.first[p + 1] and view.slot_of[following >> view.shift] == ABSENT:
        merge.counts[WANTED] = following >> view.shift
        return ABSENT
    view.used[view.slot_of[e >> view.shift]] = True
    return int(e)


@njit(cache=True)
def pass_event(view: View, merge: Merge) -> None:
    """The event whose turn it was is done with."""
    p = merge.heap[0]
    merge.counts[TAKEN] += 1
    merge.next_event[p] += 1
    if merge.next_event[p] == view.first[p + 1]:
        merge.counts[RUNS] -= 1
        merge.heap[0] = merge.heap[merge.counts[RUNS]]
    else:
        _look(view, merge, p)
    if merge.counts[RUNS]:
        _sift(merge, 0)

"""All events of an execution in the order of their positions: a merge of as many runs as there are processes.

Repaired times and blocks only grow along a process, so its events are a sorted run. The runs meet in a
tournament: every node remembers who lost there, so that the next winner is found on the way up from the last
one. Events are taken some thousands at a time, which is where the speed is; the kernels that use them stop
where a page is missing and go on from there.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from causet.kernels.logs.pages import ABSENT, Pages, View

Array = np.ndarray[Any, Any]

LEFT, TAKEN, WANTED, AT, END = 0, 1, 2, 3, 4
"""Places in `Merge.counts`: events that were not passed yet, events taken, the page that is missing, and of
the events at hand the next one and the end."""
ROOM = 1 << 12
NEVER = np.iinfo(np.int32).max
"""The block of a process that has no event left."""


class Merge(NamedTuple):
    """A tournament of processes by their next events, and the events that come next."""

    losers: Array
    """node 1 is the top, nodes 2n and 2n + 1 are below node n; in node 0 is the winner"""
    next_event: Array
    block: Array
    repaired: Array
    """of each process's next event"""
    end: Array
    """a time after all others, for a process that has no event left"""
    events: Array
    processes: Array
    """at hand"""
    counts: Array


def begin_merge(pages: Pages) -> Merge:
    """Every process at its first event. Blocks and repaired times have to be there."""
    view = pages.view
    processes = len(view.first) - 1
    width = 1 << max(processes - 1, 0).bit_length()
    end = np.array([np.inf if view.time.dtype.kind == "f" else np.iinfo(np.int64).max], view.time.dtype)
    merge = Merge(
        losers=np.zeros(width, np.int32),
        next_event=np.append(view.first[:-1], np.full(width - processes, view.first[-1])),
        block=np.full(width, NEVER, np.int32),
        repaired=np.full(width, end[0]),
        end=end,
        events=np.empty(ROOM, np.int64),
        processes=np.empty(ROOM, np.int32),
        counts=np.array([pages.events, 0, ABSENT, 0, 0]),
    )
    for p in range(processes):
        if view.first[p] < view.first[p + 1]:
            page = int(view.first[p]) >> pages.shift
            words, times, _ = pages.resident(page)
            offset = int(view.first[p]) - (page << pages.shift)
            merge.block[p], merge.repaired[p] = words[offset], times[offset]
    winners = np.append(np.zeros(width, np.int32), np.arange(width, dtype=np.int32))
    for node in range(width - 1, 0, -1):
        left, right = winners[2 * node : 2 * node + 2]
        ahead = (merge.repaired[right], merge.block[right]) < (merge.repaired[left], merge.block[left])
        winners[node], merge.losers[node] = (right, left) if ahead else (left, right)
    merge.losers[0] = winners[1]
    return merge


@njit(cache=True)
def take_events(view: View, merge: Merge) -> None:
    """Have the next events at hand: as many as there is room for, as far as their pages are there."""
    # Everything as a local variable, in one loop: calls and attributes cost more than the work itself.
    first, shift, slot_of, used, word, time = (
        view.first,
        view.shift,
        view.slot_of,
        view.used,
        view.word,
        view.time,
    )
    losers, next_of, block, repaired = merge.losers, merge.next_event, merge.block, merge.repaired
    events, processes, counts = merge.events, merge.processes, merge.counts
    end, mask = merge.end[0], (1 << shift) - 1
    ready, left = 0, first[-1] - counts[TAKEN]
    winner = losers[0]
    counts[WANTED] = ABSENT
    while ready < len(events) and ready < left:
        e = next_of[winner]
        slot = slot_of[e >> shift]
        if slot == ABSENT:
            counts[WANTED] = e >> shift
            break
        p, its_block, its_time = winner, np.int32(NEVER), end
        if e + 1 < first[p + 1]:
            following = slot_of[(e + 1) >> shift]
            if following == ABSENT:
                counts[WANTED] = (e + 1) >> shift
                break
            place = (following << shift) + ((e + 1) & mask)
            its_block, its_time = word[place], time[place]
            used[following] = True
        used[slot] = True
        events[ready] = e
        processes[ready] = p
        ready += 1
        next_of[p] = e + 1
        block[p], repaired[p] = its_block, its_time
        node = (len(losers) + p) >> 1
        while node:
            q = losers[node]
            if repaired[q] < its_time or (
                repaired[q] == its_time and (block[q] < its_block or (block[q] == its_block and q < p))
            ):
                losers[node] = p
                p, its_time, its_block = q, repaired[q], block[q]
            node >>= 1
        winner = p
    losers[0] = winner
    counts[TAKEN] += ready
    counts[AT], counts[END] = 0, ready


@njit(cache=True)
def next_event(view: View, merge: Merge) -> int:
    """The event whose turn it is; ABSENT if a page is missing without which it cannot be passed."""
    counts = merge.counts
    if counts[AT] == counts[END]:
        take_events(view, merge)
        if not counts[END]:
            return ABSENT
    e = merge.events[counts[AT]]
    slot = view.slot_of[e >> view.shift]
    if slot == ABSENT:
        counts[WANTED] = e >> view.shift
        return ABSENT
    view.used[slot] = True
    return int(e)


@njit(cache=True)
def pass_event(merge: Merge) -> None:
    """The event whose turn it was is done with."""
    merge.counts[AT] += 1
    merge.counts[LEFT] -= 1

"""The causal pass: all events of an execution in the order of their positions, which is a causal one.

Along a process repaired times only grow, and levels where they stay the same. So its events are a sorted run,
and the pass is a merge of as many runs as there are processes. The runs meet in a tournament: every node
remembers who lost there, so that the next winner is found on the way up from the last one.

Events come some thousands at a time, as arrays, with their links: kernels that look at their own event only
need not know that an execution has pages.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numba import njit

from causet.kernels.arrays import Array
from causet.kernels.logs.pages import ABSENT, Pages, View

TAKEN, WANTED = 0, 1
"""Positions in `Merge.counts`: events taken so far, and the page that is missing."""
ROOM = 1 << 12
"""Events that come at a time, at most."""
NEVER = np.iinfo(np.int32).max
"""The level of a process that has no event left."""


class Passed(NamedTuple):
    """Events that follow each other in the pass. The arrays are used again for the next ones."""

    events: Array
    processes: Array
    info: Array
    """as in `View`"""
    link_first: Array
    """for each event, where its predecessors in other processes begin in `links`; one more ends the last"""
    links: Array


def causal_pass(pages: Pages) -> Iterator[Passed]:
    """All events with their links. Levels and repaired times have to be in the pages."""
    for events, processes in events_in_order(pages):
        yield Passed(events, processes, *_links_of(pages.view, events))


def events_in_order(pages: Pages) -> Iterator[tuple[Array, Array]]:
    """(events, their processes), whose pages are all resident until another one is fetched."""
    merge = _begin(pages)
    while merge.counts[TAKEN] < pages.events:
        count = _take(pages.view, merge)
        if count:
            yield merge.events[:count], merge.processes[:count]
        else:
            pages.fetch(int(merge.counts[WANTED]))


@njit(cache=True)
def _links_of(view: View, events: Array) -> tuple[Array, Array, Array]:
    """(info, link_first, links) of events whose pages are resident."""
    mask = (1 << view.shift) - 1
    info = np.empty(len(events), np.int32)
    first = np.zeros(len(events) + 1, np.int64)
    for i in range(len(events)):
        slot = view.slot_of[events[i] >> view.shift]
        place = (slot << view.shift) + (events[i] & mask)
        info[i] = view.info[place]
        first[i + 1] = first[i] + view.link_first[place + slot + 1] - view.link_first[place + slot]
    links = np.empty(first[-1], np.int64)
    for i in range(len(events)):
        slot = view.slot_of[events[i] >> view.shift]
        begin = view.link_first[(slot << view.shift) + slot + (events[i] & mask)]
        for at in range(first[i + 1] - first[i]):
            links[first[i] + at] = view.links[begin + at]
    return info, first, links


class Merge(NamedTuple):
    """A tournament of processes by their next events, and the events that come next."""

    losers: Array
    """node 1 is the top, nodes 2n and 2n + 1 are below node n; in node 0 is the winner"""
    next_event: Array
    level: Array
    repaired: Array
    """of each process's next event"""
    end: Array
    """a time after all others, for a process that has no event left"""
    events: Array
    processes: Array
    """taken last"""
    counts: Array


def _begin(pages: Pages) -> Merge:
    """Every process at its first event."""
    view = pages.view
    processes = len(view.first) - 1
    width = 1 << max(processes - 1, 0).bit_length()
    end = np.array([np.inf if view.time.dtype.kind == "f" else np.iinfo(np.int64).max], view.time.dtype)
    merge = Merge(
        losers=np.zeros(width, np.int32),
        next_event=np.append(view.first[:-1], np.full(width - processes, view.first[-1])),
        level=np.full(width, NEVER, np.int32),
        repaired=np.full(width, end[0]),
        end=end,
        events=np.empty(ROOM, np.int64),
        processes=np.empty(ROOM, np.int32),
        counts=np.array([0, ABSENT]),
    )
    for p in range(processes):
        if view.first[p] < view.first[p + 1]:
            page = int(view.first[p]) >> pages.shift
            words, times, _ = pages.resident(page)
            offset = int(view.first[p]) - (page << pages.shift)
            merge.level[p], merge.repaired[p] = words[offset], times[offset]
    winners = np.append(np.zeros(width, np.int32), np.arange(width, dtype=np.int32))
    for node in range(width - 1, 0, -1):
        left, right = winners[2 * node : 2 * node + 2]
        ahead = (merge.repaired[right], merge.level[right]) < (merge.repaired[left], merge.level[left])
        winners[node], merge.losers[node] = (right, left) if ahead else (left, right)
    merge.losers[0] = winners[1]
    return merge


@njit(cache=True)
def _take(view: View, merge: Merge) -> int:
    """Take the next events: as many as there is room for, as far as their pages are resident."""
    # Everything as a local variable, in one loop: calls and attributes cost more than the work itself.
    first, shift, slot_of, used, word, time = (
        view.first,
        view.shift,
        view.slot_of,
        view.used,
        view.word,
        view.time,
    )
    losers, next_of, level, repaired = merge.losers, merge.next_event, merge.level, merge.repaired
    events, processes, counts = merge.events, merge.processes, merge.counts
    end, mask = merge.end[0], (1 << shift) - 1
    ready, left = 0, first[-1] - counts[TAKEN]
    winner = losers[0]
    while ready < len(events) and ready < left:
        e = next_of[winner]
        slot = slot_of[e >> shift]
        if slot == ABSENT:
            counts[WANTED] = e >> shift
            break
        p, its_level, its_time = winner, np.int32(NEVER), end
        if e + 1 < first[p + 1]:
            following = slot_of[(e + 1) >> shift]
            if following == ABSENT:
                counts[WANTED] = (e + 1) >> shift
                break
            place = (following << shift) + ((e + 1) & mask)
            its_level, its_time = word[place], time[place]
            used[following] = True
        used[slot] = True
        events[ready] = e
        processes[ready] = p
        ready += 1
        next_of[p] = e + 1
        level[p], repaired[p] = its_level, its_time
        node = (len(losers) + p) >> 1
        while node:
            q = losers[node]
            if repaired[q] < its_time or (
                repaired[q] == its_time and (level[q] < its_level or (level[q] == its_level and q < p))
            ):
                losers[node] = p
                p, its_time, its_level = q, repaired[q], level[q]
            node >>= 1
        winner = p
    losers[0] = winner
    counts[TAKEN] += ready
    return ready

"""A shortest chain of direct steps from one event to another.

Steps to each event of the future are counted first (`reach.future_of`); then the search goes back from the
effect, only along steps that lie on shortest chains.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from causet.kernels.arrays import Array
from causet.kernels.logs.pages import ABSENT, Pages, View, processes_of
from causet.kernels.logs.reach import (
    LOOKED_AT,
    MISSING,
    ON_CHAIN,
    PENDING,
    future_of,
    nearer_cause,
    process_of,
    steps_to,
)

MOST_LINKS = 1 << 21
"""Links on shortest chains between two events that are looked at for the smallest chain."""
ALL, PAGE, FULL = 0, 1, 2
"""Why the kernel stopped: all is done; a page is missing; there is no room for more links."""
EVENT, LINKS = 3, 4
"""Further positions in `_Between.counts`: the current event; links found."""


class _Between(NamedTuple):
    since: Array
    causes: Array
    effects: Array
    """links on shortest chains"""
    pending: Array
    """a stack of events whose causes are still to be looked at"""
    counts: Array


def shortest_chain(pages: Pages, cause: int, effect: int) -> Array:
    """The events of a shortest chain of steps from a cause to its effect, both included.

    Of several, the smallest by (process, seq), read from the cause on; if more than MOST_LINKS steps lie on
    shortest chains, read from the effect on. Levels and repaired times have to be in the pages.
    """
    since = future_of(pages, cause, until=effect).since
    length = steps_to(pages, effect)
    causes, effects = _links_between(pages, since, effect)
    if len(causes) == MOST_LINKS:
        walked = [effect]
        for steps in range(length, 0, -1):
            walked.append(nearer_cause(pages, since, walked[-1], steps))
        return np.array(walked[::-1], np.int64)
    order = np.lexsort((effects, causes))
    causes, effects = causes[order], effects[order]
    found = np.empty(length + 1, np.int64)
    found[0] = cause
    for steps in range(1, length + 1):
        found[steps] = effects[np.searchsorted(causes, found[steps - 1])]
    return found


def _links_between(pages: Pages, since: Array, effect: int) -> tuple[Array, Array]:
    """(causes, effects) of steps that lie on shortest chains to an effect; at most MOST_LINKS of them."""
    between = _Between(
        since=since,
        causes=np.empty(1024, np.int64),
        effects=np.empty(1024, np.int64),
        pending=np.empty(1024, np.int64),
        counts=np.zeros(6, np.int64),
    )
    between.counts[EVENT] = effect
    while (why := _look_between(pages.view, between)) != ALL:
        if why == PAGE:
            pages.fetch(int(between.counts[MISSING]))
        elif len(between.causes) < MOST_LINKS:
            between = between._replace(
                causes=np.resize(between.causes, 2 * len(between.causes)),
                effects=np.resize(between.effects, 2 * len(between.effects)),
                pending=np.resize(between.pending, 2 * len(between.pending)),
            )
        else:
            break
    count = between.counts[LINKS]
    return between.causes[:count], between.effects[:count]


@njit(cache=True)
def _look_between(view: View, between: _Between) -> int:
    """Go back from the effect along the steps that lie on shortest chains."""
    mask = (1 << view.shift) - 1
    counts = between.counts
    while True:
        e = counts[EVENT]
        slot = view.slot_of[e >> view.shift]
        if slot == ABSENT:
            counts[MISSING] = e >> view.shift
            return PAGE
        view.used[slot] = True
        # All events here are marked but the effect itself, and a step nearer is a word greater by one.
        nearer = view.word[(slot << view.shift) + (e & mask)] + 1
        nearer += ON_CHAIN if nearer < -ON_CHAIN else 0
        links = (slot << view.shift) + slot + (e & mask)
        begin, end = view.link_first[links], view.link_first[links + 1]
        for at in range(begin + counts[LOOKED_AT] - 1, end):
            cause = e - 1 if at < begin else view.links[at]  # the one before in the process comes first
            if at < begin and e <= between.since[process_of(view.first, e)]:
                continue
            if cause < between.since[process_of(view.first, cause)]:
                continue
            counts[LOOKED_AT] = at - begin + 1
            its_slot = view.slot_of[cause >> view.shift]
            if its_slot == ABSENT:
                counts[MISSING] = cause >> view.shift
                return PAGE
            if counts[LINKS] == len(between.causes):
                return FULL
            view.used[its_slot] = True
            place = (its_slot << view.shift) + (cause & mask)
            if view.word[place] == nearer:
                view.word[place] -= ON_CHAIN
                between.pending[counts[PENDING]] = cause
                counts[PENDING] += 1
            if view.word[place] == nearer - ON_CHAIN:
                between.causes[counts[LINKS]] = cause
                between.effects[counts[LINKS]] = e
                counts[LINKS] += 1
        if not counts[PENDING]:
            return ALL
        counts[PENDING] -= 1
        counts[EVENT] = between.pending[counts[PENDING]]
        counts[LOOKED_AT] = 0


def taken_together(pages: Pages, events: Array) -> Array:
    """The steps of a chain as rows of (cause, effect, steps), those in process order taken together."""
    process = processes_of(pages.first, events)
    in_order = (np.diff(events) == 1) & (np.diff(process) == 0)
    begins = np.flatnonzero(~(in_order & np.concatenate([[False], in_order[:-1]])))
    ends = np.append(begins[1:], len(events) - 1)
    return np.stack([events[begins], events[ends], ends - begins], axis=1)

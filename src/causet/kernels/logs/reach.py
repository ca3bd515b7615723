"""What happened before one event, and what after it.

Happened-before is closed under process order. So the past of an event is a prefix of each process, its future
a suffix: one number per process each. The past is searched backwards, every link of it looked at once. Links
lead from effects to causes, so the future is found in a causal pass, which also counts the fewest steps to
each event.

A step leads to the next event of the process, or along a link. Steps are written where the levels were, so
the pages serve no other causal pass afterwards.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from causet.kernels.arrays import Array
from causet.kernels.logs.causal_pass import ROOM, Passed, causal_pass
from causet.kernels.logs.pages import ABSENT, Pages, View

PENDING, MISSING, LOOKED_AT = 0, 1, 2
"""Positions in every `counts`: what is still to be looked at; the page that is missing; how many links of the
current event were looked at."""
LEAST, NEAR, DIRECT, BEGUN = 3, 4, 5, 6
"""On the way ahead: the fewest steps to the current event, by the links looked at; nearest effects and direct
effects found; whether the event was met from which the way begins. There, PENDING is the number of the
current event among those that are passed."""
ON_CHAIN = 1 << 30
"""Subtracted from the word of an event that lies on a shortest chain."""


# ---------------------------------------------------------------- the past


class _Back(NamedTuple):
    until: Array
    """for each process, where the past ends that is known so far"""
    looked_until: Array
    pending: Array
    """a stack of the processes that have something to look at"""
    is_pending: Array
    counts: Array


def past_of(pages: Pages, event: int, only_deliveries: bool = False) -> Array:
    """For each process, where its events end that happened before this one or are it.

    With `only_deliveries` no link teaches but that of a delivery to its send: then the sends of application
    messages among these are, beside the event itself, those that precede what is sent there.
    """
    processes = len(pages.first) - 1
    start = pages.process_of(event)
    back = _Back(
        until=pages.first[:-1].copy(),
        looked_until=pages.first[:-1].copy(),
        pending=np.empty(processes, np.int32),
        is_pending=np.zeros(processes, np.bool_),
        counts=np.zeros(3, np.int64),
    )
    back.until[start] = event + 1
    back.pending[0] = start
    back.is_pending[start] = True
    back.counts[PENDING] = 1
    while not _look_back(pages.view, back, only_deliveries):
        pages.fetch(int(back.counts[MISSING]))
    return back.until


@njit(cache=True)
def process_of(first: Array, event: int) -> int:
    """The process of an event, for kernels."""
    return int(np.searchsorted(first, event, side="right")) - 1


@njit(cache=True)
def _look_back(view: View, back: _Back, only_deliveries: bool) -> bool:
    """Go on until the whole past is known (True), or a page is missing (False)."""
    mask = (1 << view.shift) - 1
    counts = back.counts
    while counts[PENDING]:
        p = back.pending[counts[PENDING] - 1]
        while back.looked_until[p] < back.until[p]:
            e = back.looked_until[p]
            slot = view.slot_of[e >> view.shift]
            if slot == ABSENT:
                counts[MISSING] = e >> view.shift
                return False
            view.used[slot] = True
            links = (slot << view.shift) + slot + (e & mask)
            begin, end = view.link_first[links], view.link_first[links + 1]
            if only_deliveries:  # its send comes first among the causes of a delivery
                delivers = view.info[(slot << view.shift) + (e & mask)] < 0
                end = begin + 1 if delivers else begin
            for at in range(begin, end):
                cause = view.links[at]
                q = process_of(view.first, cause)
                if cause >= back.until[q]:
                    back.until[q] = cause + 1
                    if q != p and not back.is_pending[q]:
                        # Below the one that is being looked at, which stays on top.
                        back.is_pending[q] = True
                        back.pending[counts[PENDING] - 1] = q
                        back.pending[counts[PENDING]] = p
                        counts[PENDING] += 1
            back.looked_until[p] = e + 1
        back.is_pending[p] = False
        counts[PENDING] -= 1
    return True


class Near(NamedTuple):
    """An event this many steps away; `via` is the next one on a shortest chain from there."""

    steps: int
    event: int
    via: int


def direct_causes(pages: Pages, event: int) -> list[int]:
    """The event before in its process, and where links lead."""
    begins = event == pages.first[pages.process_of(event)]
    return sorted({*pages.causes(event), *([] if begins else [event - 1])})


def nearest_causes(pages: Pages, event: int, count: int) -> list[Near]:
    """The first `count` causes by (steps, process, seq)."""
    found: list[Near] = []
    seen = {event}
    layer, steps = [event], 0
    while layer and len(found) < count:
        steps += 1
        via: dict[int, int] = {}
        for effect in layer:
            for cause in direct_causes(pages, effect):
                if cause not in seen:
                    via.setdefault(cause, effect)
        layer = sorted(via)
        seen.update(layer)
        found += [Near(steps, cause, via[cause]) for cause in layer]
    return found[:count]


# ---------------------------------------------------------------- the future


class Future(NamedTuple):
    since: Array
    """for each process, where its events begin that happened after the event, or are it"""
    nearest: list[Near]
    """the first effects by (steps, process, seq)"""
    direct: list[int]
    """the first of the direct effects by (process, seq)"""
    direct_count: int


class _Ahead(NamedTuple):
    since: Array
    steps: Array
    """for each process the steps to its last event that was passed"""
    near_steps: Array
    near_events: Array
    direct: Array
    counts: Array


def future_of(pages: Pages, event: int, nearest: int = 0, direct: int = 0, until: int = ABSENT) -> Future:
    """What happened after an event; of the nearest and of the direct effects, at most this many.

    With `until` the pass ends soon after that event, and what comes later is left out. Levels and repaired
    times have to be in the pages.
    """
    ahead = _Ahead(
        since=pages.first[1:].copy(),
        steps=np.zeros(len(pages.first) - 1, np.int32),
        near_steps=np.zeros(nearest, np.int32),
        near_events=np.zeros(nearest, np.int64),
        direct=np.empty(ROOM, np.int64),
        counts=np.zeros(7, np.int64),
    )
    ahead.counts[LEAST] = ABSENT
    first_direct = np.empty(0, np.int64)
    direct_count = 0
    for passed in causal_pass(pages):
        while not _look_ahead(pages.view, passed, ahead, event):
            pages.fetch(int(ahead.counts[MISSING]))
        found = ahead.direct[: ahead.counts[DIRECT]]
        direct_count += len(found)
        first_direct = np.sort(np.concatenate([first_direct, found]))[:direct]
        ahead.counts[DIRECT] = 0
        if until in passed.events:
            break
    near = zip(ahead.near_steps.tolist(), ahead.near_events.tolist(), strict=True)
    return Future(
        since=ahead.since,
        nearest=[
            Near(steps, effect, nearer_cause(pages, ahead.since, effect, steps))
            for steps, effect in list(near)[: ahead.counts[NEAR]]
        ],
        direct=first_direct.tolist(),
        direct_count=direct_count,
    )


def nearer_cause(pages: Pages, since: Array, effect: int, steps: int) -> int:
    """The first of the direct causes of an effect that is one step nearer."""
    return next(
        cause
        for cause in direct_causes(pages, effect)
        if cause >= since[pages.process_of(cause)] and steps_to(pages, cause) == steps - 1
    )


def steps_to(pages: Pages, event: int) -> int:
    """The fewest steps to an event of the future; ABSENT if it is not one, or was not reached."""
    page = event >> pages.shift
    if pages.view.slot_of[page] == ABSENT:
        pages.fetch(page)
    slot = int(pages.view.slot_of[page])
    word = int(pages.view.word[(slot << pages.shift) + event - (page << pages.shift)])
    return ABSENT if word > 0 else ~(word + ON_CHAIN if word < -ON_CHAIN else word)


@njit(cache=True)
def _look_ahead(view: View, passed: Passed, ahead: _Ahead, event: int) -> bool:
    """Go on until all of these events are passed (True), or a page is missing (False)."""
    counts = ahead.counts
    while counts[PENDING] < len(passed.events):
        e, p = passed.events[counts[PENDING]], passed.processes[counts[PENDING]]
        if e == event:
            counts[BEGUN] = 1
            counts[LEAST] = 0
        if not counts[BEGUN]:
            counts[PENDING] += 1
            continue
        slot = view.slot_of[e >> view.shift]
        if slot == ABSENT:
            counts[MISSING] = e >> view.shift
            return False
        view.used[slot] = True
        if e != event and not _count_steps(view, passed, ahead, e, p):
            return False
        steps = counts[LEAST]
        if steps != ABSENT:
            view.word[(slot << view.shift) + (e & ((1 << view.shift) - 1))] = ~steps
            ahead.since[p] = min(ahead.since[p], e)
            ahead.steps[p] = steps
            if steps == 1:
                ahead.direct[counts[DIRECT]] = e
                counts[DIRECT] += 1
            if steps:
                _put_near(ahead, steps, e)
        counts[LOOKED_AT] = 0
        counts[LEAST] = ABSENT
        counts[PENDING] += 1
    counts[PENDING] = 0
    return True


@njit(cache=True)
def _count_steps(view: View, passed: Passed, ahead: _Ahead, e: int, p: int) -> bool:
    """The fewest steps to the current event, by its direct causes; False if the page of one is missing."""
    counts = ahead.counts
    if e > ahead.since[p]:
        counts[LEAST] = ahead.steps[p] + 1 if counts[LEAST] == ABSENT else counts[LEAST]
    begin, end = passed.link_first[counts[PENDING]], passed.link_first[counts[PENDING] + 1]
    for at in range(begin + counts[LOOKED_AT], end):
        cause = passed.links[at]
        if cause >= ahead.since[process_of(view.first, cause)]:
            its_slot = view.slot_of[cause >> view.shift]
            if its_slot == ABSENT:
                counts[MISSING] = cause >> view.shift
                counts[LOOKED_AT] = at - begin
                return False
            view.used[its_slot] = True
            steps = ~view.word[(its_slot << view.shift) + (cause & ((1 << view.shift) - 1))] + 1
            if counts[LEAST] == ABSENT or steps < counts[LEAST]:
                counts[LEAST] = steps
    return True


@njit(cache=True)
def _put_near(ahead: _Ahead, steps: int, e: int) -> None:
    """Keep an effect if it is among the nearest so far; they are sorted."""
    near_steps, near_events, counts = ahead.near_steps, ahead.near_events, ahead.counts
    at = counts[NEAR]
    if at < len(near_steps):
        counts[NEAR] += 1
    elif at and (steps, e) < (near_steps[at - 1], near_events[at - 1]):
        at -= 1
    else:
        return
    while at and (steps, e) < (near_steps[at - 1], near_events[at - 1]):
        near_steps[at], near_events[at] = near_steps[at - 1], near_events[at - 1]
        at -= 1
    near_steps[at], near_events[at] = steps, e

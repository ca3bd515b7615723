"""What happened before one event, what after it, and by which steps.

Happened-before is closed under process order. So the past of an event is the first so many events of each
process, its future the last so many: one number per process each. The past is searched backwards, every link
of it looked at once. Links lead from effects to causes, so the future is found in one pass over all events in
the order of their positions, which is a causal one; that pass also counts the fewest steps to each event.

A step leads to the next event of the process, or along a link. Steps are written where the blocks were, so
the pages serve no other pass in that order afterwards.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from causet.kernels.logs.causal_pass import AT, LEFT, WANTED, Merge, begin_merge, next_event, pass_event
from causet.kernels.logs.chains import traffic
from causet.kernels.logs.pages import ABSENT, Pages, View

Array = np.ndarray[Any, Any]

MOST_LINKS = 1 << 21
"""Links on shortest chains between two events that are looked at for the smallest chain."""
REPORT = 1 << 14
"""Direct effects that are handed on at a time."""

ALL, PAGE, FULL = 0, 1, 2
"""Why a kernel stopped: all is done; a page is missing; there is no room for more."""

PENDING, MISSING, LOOKED_AT = 0, 1, 2
"""Places in every `counts`: what is still to be looked at; the page that is missing; how many links of the
event whose turn it is were looked at."""
LEAST, NEAR, DIRECT, BEGUN = 3, 4, 5, 6
"""On the way ahead: the fewest steps to that event, by these links; nearest effects and direct effects found;
whether the event was met from which the way begins."""
EVENT, LINKS = 3, 4
"""Between two events: the event whose turn it is; links found."""
ON_CHAIN = 1 << 30
"""Taken from the word of an event that lies on a shortest chain."""


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
def _process_of(first: Array, event: int) -> int:
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
                q = _process_of(view.first, cause)
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
    """An event so many steps away; `via` is the next one on a shortest chain from there."""

    steps: int
    event: int
    via: int


def direct_causes(pages: Pages, event: int) -> list[int]:
    """The event before in its process, and where links lead."""
    begins = event == pages.first[pages.process_of(event)]
    return sorted({*pages.causes(event), *([] if begins else [event - 1])})


def nearest_causes(pages: Pages, event: int, count: int) -> list[Near]:
    """The first so many causes by (steps, process, seq)."""
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
    """What happened after an event, with so many of the nearest and of the direct effects.

    With `until` the pass ends at that event; then what comes later is left out. Blocks and repaired times
    have to be in the pages.
    """
    ahead = _Ahead(
        since=pages.first[1:].copy(),
        steps=np.zeros(len(pages.first) - 1, np.int32),
        near_steps=np.zeros(nearest, np.int32),
        near_events=np.zeros(nearest, np.int64),
        direct=np.empty(REPORT, np.int64),
        counts=np.zeros(7, np.int64),
    )
    ahead.counts[LEAST] = ABSENT
    merge = begin_merge(pages)
    first_direct = np.empty(0, np.int64)
    direct_count = 0
    why = PAGE
    while why != ALL:
        why = _look_ahead(pages.view, merge, ahead, event, until)
        if why == PAGE:
            missing = ahead.counts[MISSING] if ahead.counts[MISSING] != ABSENT else merge.counts[WANTED]
            pages.fetch(int(missing))
        else:
            found = ahead.direct[: ahead.counts[DIRECT]]
            direct_count += len(found)
            first_direct = np.sort(np.concatenate([first_direct, found]))[:direct]
            ahead.counts[DIRECT] = 0
    near = zip(ahead.near_steps.tolist(), ahead.near_events.tolist(), strict=True)
    return Future(
        since=ahead.since,
        nearest=[
            Near(steps, effect, _before(pages, ahead.since, effect, steps))
            for steps, effect in list(near)[: ahead.counts[NEAR]]
        ],
        direct=first_direct.tolist(),
        direct_count=direct_count,
    )


def _before(pages: Pages, since: Array, effect: int, steps: int) -> int:
    """The first of the direct causes of an effect that is one step nearer."""
    return next(
        cause
        for cause in direct_causes(pages, effect)
        if cause >= since[pages.process_of(cause)] and steps_to(pages, cause) == steps - 1
    )


def steps_to(pages: Pages, event: int) -> int:
    """The fewest steps to an event of the future; ABSENT if it is none, or was not reached."""
    page = event >> pages.shift
    if pages.view.slot_of[page] == ABSENT:
        pages.fetch(page)
    slot = int(pages.view.slot_of[page])
    word = int(pages.view.word[(slot << pages.shift) + event - (page << pages.shift)])
    return ABSENT if word > 0 else ~(word + ON_CHAIN if word < -ON_CHAIN else word)


@njit(cache=True)
def _look_ahead(view: View, merge: Merge, ahead: _Ahead, event: int, until: int) -> int:
    """Go on until all events are passed or `until` is, a page is missing, or direct effects are many."""
    mask = (1 << view.shift) - 1
    counts = ahead.counts
    counts[MISSING] = ABSENT
    while merge.counts[LEFT]:
        e = next_event(view, merge)
        if e == ABSENT:
            return PAGE
        p = merge.processes[merge.counts[AT]]
        if e == event:
            counts[BEGUN] = 1
            counts[LEAST] = 0
        elif counts[BEGUN]:
            if counts[DIRECT] == len(ahead.direct):
                return FULL
            if not _count_steps(view, ahead, e, p):
                return PAGE
        steps = counts[LEAST]
        if steps != ABSENT:
            view.word[(view.slot_of[e >> view.shift] << view.shift) + (e & mask)] = ~steps
            ahead.since[p] = min(ahead.since[p], e)
            ahead.steps[p] = steps
            if steps == 1:
                ahead.direct[counts[DIRECT]] = e
                counts[DIRECT] += 1
            if steps:
                _put_near(ahead, steps, e)
        counts[LOOKED_AT] = 0
        counts[LEAST] = ABSENT
        pass_event(merge)
        if e == until:
            return ALL
    return ALL


@njit(cache=True)
def _count_steps(view: View, ahead: _Ahead, e: int, p: int) -> bool:
    """The fewest steps to an event, by its direct causes; False if the page of one is missing."""
    mask = (1 << view.shift) - 1
    counts = ahead.counts
    if e > ahead.since[p]:
        counts[LEAST] = ahead.steps[p] + 1 if counts[LEAST] == ABSENT else counts[LEAST]
    slot = view.slot_of[e >> view.shift]
    links = (slot << view.shift) + slot + (e & mask)
    for at in range(view.link_first[links] + counts[LOOKED_AT], view.link_first[links + 1]):
        cause = view.links[at]
        if cause >= ahead.since[_process_of(view.first, cause)]:
            its_slot = view.slot_of[cause >> view.shift]
            if its_slot == ABSENT:
                counts[MISSING] = cause >> view.shift
                counts[LOOKED_AT] = at - view.link_first[links]
                return False
            view.used[its_slot] = True
            steps = ~view.word[(its_slot << view.shift) + (cause & mask)] + 1
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


# ---------------------------------------------------------------- from one event to another


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
    shortest chains, read from the effect on. Blocks and repaired times have to be in the pages.
    """
    since = future_of(pages, cause, until=effect).since
    length = steps_to(pages, effect)
    causes, effects = _links_between(pages, since, effect)
    if len(causes) == MOST_LINKS:
        walked = [effect]
        for steps in range(length, 0, -1):
            walked.append(_before(pages, since, walked[-1], steps))
        return np.array(walked[::-1], np.int64)
    order = np.lexsort((effects, causes))
    causes, effects = causes[order], effects[order]
    found = np.empty(length + 1, np.int64)
    found[0] = cause
    for steps in range(1, length + 1):
        found[steps] = effects[np.searchsorted(causes, found[steps - 1])]
    return found


def _links_between(pages: Pages, since: Array, effect: int) -> tuple[Array, Array]:
    """(causes, effects) of steps that lie on shortest chains to an effect; MOST_LINKS of them at the most."""
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
            if at < begin and e <= between.since[_process_of(view.first, e)]:
                continue
            if cause < between.since[_process_of(view.first, cause)]:
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
    process = np.searchsorted(pages.first, events, side="right") - 1
    in_order = (np.diff(events) == 1) & (np.diff(process) == 0)
    begins = np.flatnonzero(~(in_order & np.concatenate([[False], in_order[:-1]])))
    ends = np.append(begins[1:], len(events) - 1)
    return np.stack([events[begins], events[ends], ends - begins], axis=1)


# ---------------------------------------------------------------- why a message waited


class Waited(NamedTuple):
    """What a process did between two of its events."""

    events: int
    deliveries: int
    awaited: Array
    """deliveries of messages that precede the one that waits, and are addressed to the process"""
    sends: Array
    """their sends"""


def while_waiting(pages: Pages, receive: int, deliver: int, precede: Array) -> Waited:
    """What came between receiving a message and delivering it; `precede` are the sends, sorted, of messages
    for this process that precede it."""
    known = traffic(pages, receive + 1, deliver)
    delivered = known.send != known.event
    awaited = np.flatnonzero(delivered & np.isin(known.send, precede))
    return Waited(deliver - receive - 1, int(delivered.sum()), known.event[awaited], known.send[awaited])


def never_delivered(pages: Pages, process: int, precede: Array) -> Array | None:
    """Those of these sends whose application messages a process never delivered; None if it delivers nothing
    at all."""
    known = traffic(pages, int(pages.first[process]), int(pages.first[process + 1]))
    delivered = known.send[known.send != known.event]
    if not len(delivered):
        return None
    missing = np.setdiff1d(precede, delivered)
    sent = [len(traffic(pages, send, send + 1).send) > 0 for send in missing.tolist()]
    return missing[np.array(sent, np.bool_)]

"""Vector clocks of a whole execution: for each event how many events of each process it knows, by columns.

The column of process k holds, for an event, how many of k's events happened before it or are it. Columns do
not depend on each other, so groups of them can be given to different tasks. Events are taken in the order of
their positions, which is a causal one; what an event knows is kept until the last of its direct effects in
other processes has come.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from causet.kernels.logs.causal_pass import AT, LEFT, WANTED, Merge, begin_merge, next_event, pass_event
from causet.kernels.logs.pages import ABSENT, Pages, View
from causet.kernels.logs.waiting import find, remove

Array = np.ndarray[Any, Any]

MANY = np.iinfo(np.uint16).max
"""So many links to one event are no longer counted; what it knows is kept to the end."""
USE_BYTES = 2
"""Memory for the count of links to one event."""
REPORT_BYTES = 4 << 20
"""Chunks that are handed on at a time."""

ALL, PAGE, FULL, MORE = 0, 1, 2, 3
"""Why a kernel stopped: all events are done; a page is missing; enough chunks are there to be handed on; too
many events are to be kept for the tables."""


def no_uses(events: int) -> Array:
    """How many links lead to each event: none."""
    return np.zeros(events, np.uint16)


@njit(cache=True)
def count_uses(uses: Array, causes: Array) -> None:
    for cause in causes:
        if uses[cause] < MANY:
            uses[cause] += 1


class Columns(NamedTuple):
    """What is known so far of some processes."""

    column_of: Array
    """for each process its column, or ABSENT"""
    knows: Array
    """for each process and column, how many of its events the last event of the process knows"""
    uses: Array
    """for each event how many links to it are still to come; MANY stays as it is"""


class Kept(NamedTuple):
    """What events know to which links are still to come."""

    events: Array
    """a table of them, open addressing"""
    slots: Array
    """beside each of them its slot"""
    free: Array
    """a stack of free slots"""
    knows: Array
    """for each slot a row of `Columns.knows`"""
    counts: Array
    """of free slots"""


def _columns(pages: Pages, processes: Array, uses: Array) -> Columns:
    column_of = np.full(len(pages.first) - 1, ABSENT, np.int32)
    column_of[processes] = np.arange(len(processes))
    return Columns(column_of, np.zeros((len(column_of), len(processes)), np.int32), uses)


def _nothing_kept(slots: int, width: int) -> Kept:
    return Kept(
        events=np.full(4 * slots, ABSENT, np.int64),
        slots=np.zeros(4 * slots, np.int32),
        free=np.arange(slots - 1, -1, -1, dtype=np.int32),
        knows=np.zeros((slots, width), np.int32),
        counts=np.array([slots], np.int64),
    )


def _more_room(kept: Kept) -> Kept:
    """Twice as many slots; what is kept stays where it is. Only when no slot is free."""
    slots, width = kept.knows.shape
    grown = _nothing_kept(2 * slots, width)
    grown.knows[:slots] = kept.knows
    _move(kept, grown)
    grown.free[:slots] = np.arange(2 * slots - 1, slots - 1, -1)
    grown.counts[0] = slots
    return grown


@njit(cache=True)
def _move(kept: Kept, grown: Kept) -> None:
    for i in range(len(kept.events)):
        if kept.events[i] != ABSENT:
            at = find(grown.events, kept.events[i])
            grown.events[at] = kept.events[i]
            grown.slots[at] = kept.slots[i]


@njit(cache=True)
def _learn(view: View, columns: Columns, kept: Kept, e: int, p: int) -> bool:
    """What an event knows is what its direct causes know, and itself; False if it cannot be kept."""
    if columns.uses[e] and not kept.counts[0]:
        return False
    knows = columns.knows[p]
    slot = view.slot_of[e >> view.shift]
    links = (slot << view.shift) + slot + (e & ((1 << view.shift) - 1))
    for at in range(view.link_first[links], view.link_first[links + 1]):
        cause = view.links[at]
        place = find(kept.events, cause)
        theirs = kept.knows[kept.slots[place]]
        for column in range(len(knows)):
            knows[column] = max(knows[column], theirs[column])
        if columns.uses[cause] < MANY:
            columns.uses[cause] -= 1
            if not columns.uses[cause]:
                kept.free[kept.counts[0]] = kept.slots[place]
                kept.counts[0] += 1
                remove(kept.events, kept.slots, place)
    if columns.column_of[p] != ABSENT:
        knows[columns.column_of[p]] = e - view.first[p] + 1
    if columns.uses[e]:
        kept.counts[0] -= 1
        place = find(kept.events, e)
        kept.events[place] = e
        kept.slots[place] = kept.free[kept.counts[0]]
        kept.knows[kept.slots[place], :] = knows
    return True


# ---------------------------------------------------------------- every event


class Chunks(NamedTuple):
    """Values of events that follow each other in their process, from number * 2^shift on."""

    process: Array
    number: Array
    ends: Array
    """for each chunk, where its values end"""
    values: Array


class _Open(NamedTuple):
    """Chunks that are being filled, one for each process, and those that are full."""

    shift: int
    values: Array
    full: Array
    process: Array
    number: Array
    events: Array
    counts: Array


def vector_chunks(pages: Pages, processes: Array, uses: Array, shift: int, sums: bool) -> Iterator[Chunks]:
    """The columns of these processes for all events, 2^shift events at a time; or, with `sums`, only the sum
    of these columns for each event.

    `uses` are the counts of links to each event, which are used up. Blocks and repaired times have to be in
    the pages.
    """
    columns = _columns(pages, processes, uses)
    kept = _nothing_kept(1024, len(processes))
    width = 1 if sums else len(processes)
    size = width << shift
    most = max(1, REPORT_BYTES // (4 * max(size, 1)))
    chunks = _Open(
        shift=shift,
        values=np.zeros((len(pages.first) - 1, size), np.int32),
        full=np.zeros((most, size), np.int32),
        process=np.zeros(most, np.int32),
        number=np.zeros(most, np.int64),
        events=np.zeros(most, np.int64),
        counts=np.zeros(1, np.int64),
    )
    merge = begin_merge(pages)
    why = PAGE
    while why != ALL:
        why = _fill_chunks(pages.view, merge, columns, kept, chunks, sums)
        if why == PAGE:
            pages.fetch(int(merge.counts[WANTED]))
        elif why == MORE:
            kept = _more_room(kept)
        elif chunks.counts[0]:
            yield _taken(chunks, width)


def _taken(chunks: _Open, width: int) -> Chunks:
    count = int(chunks.counts[0])
    chunks.counts[0] = 0
    lengths = width * chunks.events[:count]
    filled = np.arange(chunks.full.shape[1]) < lengths[:, None]
    return Chunks(
        chunks.process[:count].copy(),
        chunks.number[:count].copy(),
        np.cumsum(lengths),
        chunks.full[:count][filled],
    )


@njit(cache=True)
def _fill_chunks(view: View, merge: Merge, columns: Columns, kept: Kept, chunks: _Open, sums: bool) -> int:
    width = columns.knows.shape[1]
    while merge.counts[LEFT]:
        e = next_event(view, merge)
        if e == ABSENT:
            return PAGE
        if chunks.counts[0] == len(chunks.full):
            return FULL
        p = merge.processes[merge.counts[AT]]
        if not _learn(view, columns, kept, e, p):
            return MORE
        rank = e - view.first[p]
        within = rank & ((1 << chunks.shift) - 1)
        if sums:
            chunks.values[p, within] = columns.knows[p].sum()
        else:
            chunks.values[p, within * width : (within + 1) * width] = columns.knows[p]
        if within + 1 == 1 << chunks.shift or e + 1 == view.first[p + 1]:
            at = chunks.counts[0]
            chunks.full[at, :] = chunks.values[p, :]
            chunks.process[at] = p
            chunks.number[at] = rank >> chunks.shift
            chunks.events[at] = within + 1
            chunks.counts[0] += 1
        pass_event(merge)
    return ALL


# ---------------------------------------------------------------- some events


class _Asked(NamedTuple):
    events: Array
    columns: Array
    until: Array
    """for each process, where its events end in `events`"""
    at: Array
    """and its next one"""
    answers: Array


def known_counts(pages: Pages, processes: Array, uses: Array, events: Array, columns: Array) -> Array:
    """How many events of a process an event knows, for each pair of an event and a column, in the order of
    the events; column i is that of `processes[i]`. Otherwise as `vector_chunks`."""
    state = _columns(pages, processes, uses)
    kept = _nothing_kept(1024, len(processes))
    cuts = np.searchsorted(events, pages.first)
    asked = _Asked(events, columns, cuts[1:], cuts[:-1].copy(), np.zeros(len(events), np.int32))
    merge = begin_merge(pages)
    while (why := _answer(pages.view, merge, state, kept, asked)) != ALL:
        if why == PAGE:
            pages.fetch(int(merge.counts[WANTED]))
        else:
            kept = _more_room(kept)
    return asked.answers


@njit(cache=True)
def _answer(view: View, merge: Merge, columns: Columns, kept: Kept, asked: _Asked) -> int:
    while merge.counts[LEFT]:
        e = next_event(view, merge)
        if e == ABSENT:
            return PAGE
        p = merge.processes[merge.counts[AT]]
        if not _learn(view, columns, kept, e, p):
            return MORE
        while asked.at[p] < asked.until[p] and asked.events[asked.at[p]] == e:
            asked.answers[asked.at[p]] = columns.knows[p, asked.columns[asked.at[p]]]
            asked.at[p] += 1
        pass_event(merge)
    return ALL

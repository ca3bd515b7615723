"""Vector clocks of a whole execution: for each event how many events of each process it knows, by columns.

The column of process k holds, for an event, how many of k's events happened before it or are it. Columns do
not depend on each other, so groups of them can be given to different tasks. Events are taken in the order of
their positions, which is a causal one; what an event knows is kept until the last of its direct effects in
other processes has come.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numba import njit

from causet.kernels.arrays import Array
from causet.kernels.logs.causal_pass import Passed, causal_pass
from causet.kernels.logs.pages import ABSENT, Pages
from causet.kernels.logs.tables import Slots, find, give_back, new_slots, stretched, take_slot, with_free

MANY = np.iinfo(np.uint16).max
"""Links to one event are counted up to this number; what an event with more knows is kept to the end."""
USE_BYTES = 2
"""Memory for the count of links to one event."""
REPORT_BYTES = 4 << 20
"""Chunks that are handed on at a time."""


def uses_of(pages: Pages) -> Array:
    """How many links lead to each event."""
    uses = no_uses(pages.events)
    for causes in pages.arrived_causes():
        count_uses(uses, causes)
    return uses


def no_uses(events: int) -> Array:
    """Counts of links to each event, all zero."""
    return np.zeros(events, np.uint16)


@njit(cache=True)
def count_uses(uses: Array, causes: Array) -> None:
    """Add these links."""
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
    """What events know to which links are still to come, in slots."""

    table: Slots
    knows: Array
    """for each slot a row of `Columns.knows`"""


def _columns(pages: Pages, processes: Array, uses: Array) -> Columns:
    column_of = np.full(len(pages.first) - 1, ABSENT, np.int32)
    column_of[processes] = np.arange(len(processes))
    return Columns(column_of, np.zeros((len(column_of), len(processes)), np.int32), uses)


def _pass(pages: Pages, columns: Columns) -> Iterator[tuple[Passed, Kept]]:
    """The causal pass, each time with what is kept, and with room for what these events add to it."""
    kept = Kept(new_slots(1024), np.zeros((1024, columns.knows.shape[1]), np.int32))
    for passed in causal_pass(pages):
        table = with_free(kept.table, int(np.count_nonzero(columns.uses[passed.events])))
        if table is not kept.table:
            kept = Kept(table, stretched(kept.knows, len(table.free)))
        yield passed, kept


@njit(cache=True)
def _learn(passed: Passed, i: int, first: Array, columns: Columns, kept: Kept) -> None:
    """What an event knows is what its direct causes know, and itself."""
    e, p = passed.events[i], passed.processes[i]
    knows = columns.knows[p]
    for link in range(passed.link_first[i], passed.link_first[i + 1]):
        cause = passed.links[link]
        at = find(kept.table.events, cause)
        theirs = kept.knows[kept.table.slots[at]]
        for column in range(len(knows)):
            knows[column] = max(knows[column], theirs[column])
        if columns.uses[cause] < MANY:
            columns.uses[cause] -= 1
            if not columns.uses[cause]:
                give_back(kept.table, at)
    if columns.column_of[p] != ABSENT:
        knows[columns.column_of[p]] = e - first[p] + 1
    if columns.uses[e]:
        kept.knows[take_slot(kept.table, e), :] = knows


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

    `uses` are the counts of links to each event, which are used up. Levels and repaired times have to be in
    the pages.
    """
    columns = _columns(pages, processes, uses)
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
    for passed, kept in _pass(pages, columns):
        done = 0
        while done < len(passed.events):
            done = _fill_chunks(passed, done, pages.first, columns, kept, chunks, sums)
            if chunks.counts[0] == most:
                yield _taken(chunks, width)
    if chunks.counts[0]:
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
def _fill_chunks(
    passed: Passed, done: int, first: Array, columns: Columns, kept: Kept, chunks: _Open, sums: bool
) -> int:
    """Go on with the events after these, until all are done or enough chunks are full; returns how many are
    done."""
    width = columns.knows.shape[1]
    while done < len(passed.events) and chunks.counts[0] < len(chunks.full):
        _learn(passed, done, first, columns, kept)
        e, p = passed.events[done], passed.processes[done]
        rank = e - first[p]
        within = rank & ((1 << chunks.shift) - 1)
        if sums:
            chunks.values[p, within] = columns.knows[p].sum()
        else:
            chunks.values[p, within * width : (within + 1) * width] = columns.knows[p]
        if within + 1 == 1 << chunks.shift or e + 1 == first[p + 1]:
            at = chunks.counts[0]
            chunks.full[at, :] = chunks.values[p, :]
            chunks.process[at] = p
            chunks.number[at] = rank >> chunks.shift
            chunks.events[at] = within + 1
            chunks.counts[0] += 1
        done += 1
    return done


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
    cuts = np.searchsorted(events, pages.first)
    asked = _Asked(events, columns, cuts[1:], cuts[:-1].copy(), np.zeros(len(events), np.int32))
    for passed, kept in _pass(pages, state):
        _answer(passed, pages.first, state, kept, asked)
    return asked.answers


@njit(cache=True)
def _answer(passed: Passed, first: Array, columns: Columns, kept: Kept, asked: _Asked) -> None:
    for i in range(len(passed.events)):
        _learn(passed, i, first, columns, kept)
        e, p = passed.events[i], passed.processes[i]
        while asked.at[p] < asked.until[p] and asked.events[asked.at[p]] == e:
            asked.answers[asked.at[p]] = columns.knows[p, asked.columns[asked.at[p]]]
            asked.at[p] += 1

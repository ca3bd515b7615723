"""An execution laid out by process, on disk where it is larger than the memory allowed, a page at a time.

Events are numbered: those of process p are `first[p] : first[p + 1]`, in process order. A page is 2^shift
events with what kernels need of them: a word each (level, or a mark), a time, an `info`, and the direct
predecessors in other processes. Kernels see only resident pages. One that meets another stops and says which;
it is made resident, at the cost of one that was not used lately, and the kernel goes on where it was.

What arrives is appended to a file as it comes, in any order; the first time that a page is wanted it is put
together from its pieces. What kernels wrote into a page goes to a second file when it has to make room.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from tempfile import TemporaryFile
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from causet.kernels.arrays import Array

PLAIN, SENT, DELIVERY = 0, 1, 2
"""Kinds of links: a cause of an event; a message sent, with the number of its deliveries in place of a cause;
a delivery, whose cause is the send."""

ABSENT = -1
WIDEST, NARROWEST = 14, 8
"""Pages have between 2^8 and 2^14 events."""
FEWEST = 16
"""Resident pages, at least."""
EVENT_BYTES, LINK_BYTES = 24, 8
"""Memory that a resident event takes, and one of its predecessors."""
KEPT_BYTES = 20
"""Disk that an event takes whose page had to make room: word, time and position."""


class Piece(NamedTuple):
    """Some events and some links of the execution, those of a page together, pages in their order."""

    events: Array
    times: Array
    effects: Array
    causes: Array
    kinds: Array


class View(NamedTuple):
    """What kernels see of the resident pages; the page in slot s has its events from `s << shift` on."""

    first: Array
    shift: int
    slot_of: Array
    """for each page its slot, or ABSENT"""
    used: Array
    """for each slot whether it was used since the last look around"""
    word: Array
    time: Array
    info: Array
    """-1 for a delivery; n + 1 for the send of a message with n deliveries; else 0"""
    link_first: Array
    """for each event, where its predecessors begin in `links`; the page's last + 1 ends them"""
    links: Array


class Repeated(Exception):
    """Two events have the same number."""

    def __init__(self, event: int) -> None:
        super().__init__(event)
        self.event = event


@njit(cache=True)
def by_page(events: Array) -> Array:
    """The places of these events, by pages as narrow as they can be; within a page as they come."""
    if not len(events):
        return np.empty(0, np.int64)
    low = events.min() >> NARROWEST
    begin = np.zeros((events.max() >> NARROWEST) - low + 2, np.int64)
    for event in events:
        begin[(event >> NARROWEST) - low + 1] += 1
    begin = np.cumsum(begin)
    order = np.empty(len(events), np.int64)
    for place in range(len(events)):
        page = (events[place] >> NARROWEST) - low
        order[begin[page]] = place
        begin[page] += 1
    return order


def page_shift(events: int, processes: int, budget: int) -> int:
    """Pages as wide as possible while every process has the one at which it is in half the memory."""
    shift = WIDEST
    while shift > NARROWEST and min(processes << shift, events) * EVENT_BYTES > budget // 2:
        shift -= 1
    return shift


def processes_of(first: Array, events: Array) -> Array:
    """The processes of these events, as numbers."""
    return np.searchsorted(first, events, side="right") - 1


class Pages:
    """The pages of one execution. To be closed: it has files."""

    def __init__(
        self, first: Array, time_type: type, budget: int, folder: str | None = None, shift: int | None = None
    ) -> None:
        self.first = first
        self.events = int(first[-1])
        self._budget = budget
        self.shift = page_shift(self.events, len(first) - 1, budget) if shift is None else shift
        self.size = 1 << self.shift
        self.count = (self.events + self.size - 1) >> self.shift
        self._time_type = np.dtype(time_type)
        self._arrived = TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115 (closed in `close`)
        self._kept = TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115
        self._end = 0
        self._event_runs: list[Array] = []
        self._link_runs: list[Array] = []
        self._arrived_links: list[tuple[int, int, int]] = []
        """for each piece how many links it has, and where their causes and kinds are in the file"""
        self.links = 0

    def __enter__(self) -> Pages:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._arrived.close()
        self._kept.close()

    # ------------------------------------------------------------ arriving

    def add(self, piece: Piece) -> None:
        self.links += len(piece.effects)
        self._event_runs.append(self._append(piece.events, piece.times))
        runs = self._append(piece.effects, piece.causes, piece.kinds)
        self._link_runs.append(runs)
        if len(runs):
            self._arrived_links.append((len(piece.effects), int(runs[0, 3]), int(runs[0, 4])))

    def _append(self, events: Array, *columns: Array) -> Array:
        """Write columns, those of a page together; for each page among them a row (page, count, offsets…)."""
        pages = events >> self.shift
        starts = np.flatnonzero(np.diff(pages, prepend=-1))
        runs = np.empty((len(starts), 3 + len(columns)), np.int64)
        runs[:, 0] = pages[starts]
        runs[:, 1] = np.diff(starts, append=len(events))
        for number, column in enumerate((events, *columns)):
            runs[:, 2 + number] = self._end + starts * column.itemsize
            _write(self._arrived.fileno(), np.ascontiguousarray(column), self._end)
            self._end += column.nbytes
        return runs

    def arrived_causes(self) -> Iterator[Array]:
        """The causes of all links, a piece at a time."""
        for count, causes_at, kinds_at in self._arrived_links:
            causes = self._read(np.dtype(np.int64), count, causes_at)
            yield causes[self._read(np.dtype(np.int8), count, kinds_at) != SENT]

    def seal(self) -> View:
        """Everything has arrived."""
        self._event_index = _Index(self._event_runs, self.count, 4)
        self._link_index = _Index(self._link_runs, self.count, 5)
        self._event_runs, self._link_runs = [], []
        per_event = EVENT_BYTES + LINK_BYTES * self.links / max(self.events, 1)
        slots = min(self.count, max(FEWEST, int(self._budget / (per_event * self.size))))
        places = slots << self.shift
        self._page_in = np.full(slots, ABSENT, np.int64)
        self._hand = 0
        self._ranking = False
        self._was_kept = np.zeros(self.count, np.bool_)
        self._links_of = [(0, 0)] * slots
        """for each slot where its predecessors are in `links`"""
        self._links_end = 0
        self.view = View(
            first=self.first,
            shift=self.shift,
            slot_of=np.full(self.count, ABSENT, np.int32),
            used=np.zeros(slots, np.bool_),
            word=np.zeros(places, np.int32),
            time=np.zeros(places, self._time_type),
            info=np.zeros(places, np.int32),
            link_first=np.zeros(places + slots, np.int64),
            links=np.zeros(0, np.int64),
        )
        return self.view

    def rank(self) -> View:
        """Links are done with; from now on their place holds positions."""
        self._ranking = True
        self._links_of = [(0, 0)] * len(self._links_of)
        self.view = self.view._replace(links=np.zeros(0, np.int64))
        for page in np.flatnonzero(self._was_kept & (self.view.slot_of == ABSENT)):
            # Room for positions, so that a page reads back whole.
            offset = int(page) * self.size * KEPT_BYTES
            low, high = self.span(int(page))
            _write(
                self._kept.fileno(),
                np.zeros(high - low, np.int64),
                offset + (high - low) * (4 + self._time_type.itemsize),
            )
        return self.view

    # ------------------------------------------------------------ residence

    def span(self, page: int) -> tuple[int, int]:
        """The events of a page."""
        return page << self.shift, min((page + 1) << self.shift, self.events)

    def fetch(self, page: int) -> View:
        """Make a page resident. The view that comes back is the one to use from now on."""
        slot = self._free_slot()
        view = self.view
        low, high = self.span(page)
        at = slice(slot << self.shift, (slot << self.shift) + high - low)
        if self._ranking or self._was_kept[page]:
            self._read_back(page, slot)
        else:
            view.word[at] = ABSENT
            self._gather_events(page, low, at)
        if not self._ranking:
            self._gather_links(page, slot, low, high - low)
        view.slot_of[page] = slot
        view.used[slot] = True
        self._page_in[slot] = page
        return self.view

    def _free_slot(self) -> int:
        """A slot that is empty, or the next one around that was not used lately."""
        used = self.view.used
        while True:
            slot = self._hand
            self._hand = (slot + 1) % len(used)
            if self._page_in[slot] == ABSENT:
                return slot
            if not used[slot]:
                self._keep(slot)
                return slot
            used[slot] = False

    def _keep(self, slot: int) -> None:
        """Write what kernels made of a page, and give its slot away."""
        page = int(self._page_in[slot])
        for column, offset in self._columns(page, slot):
            _write(self._kept.fileno(), column, offset)
        self._was_kept[page] = True
        self.view.slot_of[page] = ABSENT
        self._page_in[slot] = ABSENT
        self._links_of[slot] = (0, 0)

    def _read_back(self, page: int, slot: int) -> None:
        for column, offset in self._columns(page, slot):
            _read(self._kept.fileno(), column, offset)

    def _columns(self, page: int, slot: int) -> Iterator[tuple[Array, int]]:
        """What is kept of a page, and where in the file; positions once there are some."""
        low, high = self.span(page)
        at = slice(slot << self.shift, (slot << self.shift) + high - low)
        columns = [self.view.word[at], self.view.time[at]]
        if self._ranking:
            columns.append(self.positions(slot)[: high - low])
        offset = low * KEPT_BYTES
        for column in columns:
            yield column, offset
            offset += (high - low) * column.itemsize

    def _gather_events(self, page: int, low: int, at: slice) -> None:
        word, time = self.view.word[at], self.view.time[at]
        arrived = 0
        for count, events_at, times_at in self._event_index.runs(page):
            offsets = self._read(np.dtype(np.int64), count, events_at) - low
            time[offsets] = self._read(self._time_type, count, times_at)
            word[offsets] = 0
            arrived += count
        if arrived != len(word) or (word < 0).any():
            raise Repeated(self._repeated(page))

    def _repeated(self, page: int) -> int:
        runs = self._event_index.runs(page)
        events = np.concatenate([self._read(np.dtype(np.int64), count, at) for count, at, _ in runs])
        found, times = np.unique(events, return_counts=True)
        return int(found[times > 1][0])

    def _gather_links(self, page: int, slot: int, low: int, size: int) -> None:
        runs = self._link_index.runs(page)
        parts = [
            (
                self._read(np.dtype(np.int64), count, effects_at),
                self._read(np.dtype(np.int64), count, causes_at),
                self._read(np.dtype(np.int8), count, kinds_at),
            )
            for count, effects_at, causes_at, kinds_at in runs
        ]
        info = self.view.info[slot << self.shift : (slot << self.shift) + size]
        info[:] = 0
        if parts:
            effects, causes, kinds = (np.concatenate(column) for column in zip(*parts, strict=True))
            offsets = effects - low
            sent = kinds == SENT
            if sent.any():
                info[offsets[sent]] = causes[sent] + 1
                offsets, causes, kinds = offsets[~sent], causes[~sent], kinds[~sent]
            delivery = kinds == DELIVERY
            info[offsets[delivery]] = -1
            # A delivery's own send comes first among its causes.
            order = np.argsort(offsets * 2 + ~delivery, kind="stable")
            offsets, causes = offsets[order], causes[order]
        else:
            offsets = causes = np.empty(0, np.int64)
        begin = self._room_for(slot, len(causes))
        self.view.links[begin : begin + len(causes)] = causes
        first = self._first_links(slot)[: size + 1]
        first[0] = begin
        first[1:] = begin + np.cumsum(np.bincount(offsets, minlength=size))

    def positions(self, slot: int) -> Array:
        """The positions of a page's events; only after `rank`."""
        return self._first_links(slot)

    def resident(self, page: int) -> tuple[Array, Array, Array]:
        """(words, times, positions) of a page."""
        if self.view.slot_of[page] == ABSENT:
            self.fetch(page)
        slot = int(self.view.slot_of[page])
        low, high = self.span(page)
        at = slice(slot << self.shift, (slot << self.shift) + high - low)
        return self.view.word[at], self.view.time[at], self.positions(slot)[: high - low]

    def causes(self, event: int) -> list[int]:
        """The direct predecessors of an event in other processes; not after `rank`."""
        page = event >> self.shift
        if self.view.slot_of[page] == ABSENT:
            self.fetch(page)
        first = self._first_links(int(self.view.slot_of[page]))
        offset = event - (page << self.shift)
        found: list[int] = self.view.links[first[offset] : first[offset + 1]].tolist()
        return found

    def process_of(self, event: int) -> int:
        return int(np.searchsorted(self.first, event, side="right")) - 1

    def is_done(self, event: int, done: Array) -> bool:
        """Whether an event is among those of its process that are done."""
        process = self.process_of(event)
        return bool(event < self.first[process] + done[process])

    def _first_links(self, slot: int) -> Array:
        """The page's part of `link_first`: one more than it has events."""
        begin = (slot << self.shift) + slot
        return self.view.link_first[begin : begin + self.size + 1]

    def _room_for(self, slot: int, count: int) -> int:
        """Where that many links of a page may stand; those of pages that left make room."""
        if self._links_end + count > len(self.view.links):
            live = sum(length for _, length in self._links_of)
            fresh = np.zeros(max(2 * (live + count), 1024), np.int64)
            end = 0
            for other, (begin, length) in enumerate(self._links_of):
                if length:
                    fresh[end : end + length] = self.view.links[begin : begin + length]
                    self._first_links(other)[:] += end - begin
                    self._links_of[other] = (end, length)
                    end += length
            self._links_end = end
            self.view = self.view._replace(links=fresh)
        begin = self._links_end
        self._links_of[slot] = (begin, count)
        self._links_end += count
        return begin

    # ------------------------------------------------------------ files

    def _read(self, kind: Any, count: int, offset: int) -> Array:
        found = np.empty(count, kind)
        _read(self._arrived.fileno(), found, offset)
        return found


def _bytes_of(column: Any) -> memoryview:
    return memoryview(column).cast("B") if column.size else memoryview(b"")


def _read(file: int, into: Array, offset: int) -> None:
    left = _bytes_of(into)
    while left:
        got = os.preadv(file, [left], offset)
        if not got:
            raise EOFError("a temporary file of this task is shorter than it was")
        offset += got
        left = left[got:]


def _write(file: int, column: Array, offset: int) -> None:
    left = _bytes_of(column)
    while left:
        written = os.pwrite(file, left, offset)
        offset += written
        left = left[written:]


class _Index:
    """Where the runs of each page are."""

    def __init__(self, runs: list[Array], pages: int, columns: int) -> None:
        rows = np.concatenate(runs) if runs else np.empty((0, columns), np.int64)
        order = np.argsort(rows[:, 0], kind="stable")
        self._rows = rows[order][:, 1:]
        self._first = np.searchsorted(rows[order, 0], np.arange(pages + 1))

    def runs(self, page: int) -> list[list[int]]:
        found: list[list[int]] = self._rows[self._first[page] : self._first[page + 1]].tolist()
        return found

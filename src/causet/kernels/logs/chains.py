"""Shortest chains of causal precedence: the proof that a message came too early.

From the delivered message the search goes back, layer by layer: all that its sender sent or delivered before,
then all that the senders of those sent or delivered before, and so on. It looks at each part of a process's
history once, a page at a time, at none that lies before everything that is missing, and ends at the first
layer that holds a message which should have been delivered before.

Ties are broken by ids, which kernels do not have; so the answer is every message that lies on a shortest
chain, with how it came to be known, and the caller, which knows the ids, chooses.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from causet.kernels.arrays import Array
from causet.kernels.logs.pages import ABSENT, Pages, processes_of

CANDIDATES = 50_000
"""Messages of one layer that are looked at. Where there are more, some are left out, and of equally short
chains the one with the smallest ids is not always found."""


class Known(NamedTuple):
    """Messages of one layer: `send` became known to its process by `event`, its send or a delivery of it."""

    event: Array
    send: Array


def traffic(pages: Pages, low: int, high: int) -> Known:
    """What one process sent or delivered between two of its events."""
    parts = list(_traffic(pages, low, high))
    if not parts:
        return Known(np.empty(0, np.int64), np.empty(0, np.int64))
    return Known(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _traffic(pages: Pages, low: int, high: int) -> Iterator[Known]:
    """The same, a page at a time."""
    for page in range(low >> pages.shift, ((high - 1) >> pages.shift) + 1 if high > low else 0):
        if pages.view.slot_of[page] == ABSENT:
            pages.fetch(page)
        view, slot = pages.view, int(pages.view.slot_of[page])
        begin, end = pages.span(page)
        begin, end = max(begin, low), min(end, high)
        offset = begin - (page << pages.shift)
        place = (slot << pages.shift) + offset
        info = view.info[place : place + end - begin]
        sent = np.flatnonzero(info > 0)
        delivered = np.flatnonzero(info < 0)
        links = view.links[view.link_first[place + slot + delivered]]
        yield Known(begin + np.concatenate([sent, delivered]), np.concatenate([begin + sent, links]))


Layer = list[tuple[int, int]]
"""The part of the history that is one step further back: for some processes from which event to which."""


def shortest_chains(pages: Pages, delivery: int, send: int, addressed: Array) -> list[Known]:
    """The layers of all shortest chains to this message from one that should have been delivered before it.

    `addressed` are the sends of all messages for the process of the delivery, in order. The last layer holds
    the messages that should have come first; layer 0, the message itself, is left out. Levels and
    repaired times have to be in the pages.
    """
    process = pages.process_of(delivery)
    done = traffic(pages, int(pages.first[process]), delivery)
    delivered = done.send[done.send != done.event]
    missing = np.setdiff1d(np.setdiff1d(addressed, delivered), [send])
    if not len(missing):
        return []
    looked_at = _since(pages, missing)
    layers: list[Layer] = []
    newest = np.full(len(pages.first) - 1, ABSENT, np.int64)
    newest[pages.process_of(send)] = send
    while (newest > looked_at).any():
        wanted = np.flatnonzero(newest > looked_at)
        layers.append(list(zip(looked_at[wanted].tolist(), newest[wanted].tolist(), strict=True)))
        looked_at[wanted] = newest[wanted]
        hits = _Kept(pages)
        newest = np.full(len(newest), ABSENT, np.int64)
        for known in _messages(pages, layers[-1]):
            hits.add(known, np.isin(known.send, missing))
            np.maximum.at(newest, processes_of(pages.first, known.send), known.send)
        if hits.parts:
            return _pruned(pages, layers, hits)
    return []


def _since(pages: Pages, missing: Array) -> Array:
    """For each process, where the history begins that may know of something missing: a chain from its first
    message goes to later repaired times, or to larger levels at the same one."""
    senders = processes_of(pages.first, missing)
    _, firsts = np.unique(senders, return_index=True)
    least = min(_rank(pages, int(first)) for first in missing[firsts])
    since = np.empty(len(pages.first) - 1, np.int64)
    for process in range(len(since)):
        low, high = int(pages.first[process]), int(pages.first[process + 1])
        while low < high:
            middle = (low + high) // 2
            if _rank(pages, middle) < least:
                low = middle + 1
            else:
                high = middle
        since[process] = low
    return since


def _rank(pages: Pages, event: int) -> tuple[int | float, int]:
    """(repaired time, level)"""
    levels, times, _ = pages.resident(event >> pages.shift)
    place = event & (pages.size - 1)
    return times[place].item(), int(levels[place])


def _messages(pages: Pages, layer: Layer) -> Iterator[Known]:
    for since, until in layer:
        yield from _traffic(pages, since, until)


class _Kept:
    """Messages of one layer that lie on a chain; for each process the first event that knew one of them."""

    def __init__(self, pages: Pages) -> None:
        self._first = pages.first
        self.earliest = np.full(len(pages.first) - 1, np.iinfo(np.int64).max)
        self.parts: list[Known] = []
        self._room = CANDIDATES

    def add(self, known: Known, on: Array) -> None:
        if on.any():
            event, send = known.event[on], known.send[on]
            np.minimum.at(self.earliest, processes_of(self._first, event), event)
            if self._room:
                self.parts.append(Known(event[: self._room], send[: self._room]))
                self._room -= len(self.parts[-1].event)

    def known(self) -> Known:
        return Known(*(np.concatenate(column) for column in zip(*self.parts, strict=True)))


def _pruned(pages: Pages, layers: list[Layer], hits: _Kept) -> list[Known]:
    """Only what lies on a chain from a hit to the end: of each layer, from the last one on, what was sent by
    a process that knew such a message before."""
    found = [hits.known()]
    kept = hits
    for layer in layers[-2::-1]:
        following = _Kept(pages)
        for known in _messages(pages, layer):
            following.add(known, kept.earliest[processes_of(pages.first, known.send)] < known.send)
        kept = following
        found.append(kept.known())
    return found[::-1]

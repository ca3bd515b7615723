"""Shortest chains of causal precedence: the proof that a message came too early.

From the delivered message the search goes back, layer by layer: all that its sender sent or delivered before,
then all that the senders of those sent or delivered before, and so on. It looks at each part of a process's
history once, and ends at the first layer that holds a message which should have been delivered before.

Ties are broken by ids, which are texts and not here; so the answer is every message that lies on a shortest
chain, with how it came to be known, and whoever knows the ids chooses.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from causet.kernels.pages import ABSENT, Pages

Array = np.ndarray[Any, Any]


class Known(NamedTuple):
    """Messages of one layer: `send` became known to its process by `event`, its send or a delivery of it."""

    event: Array
    send: Array


def traffic(pages: Pages, low: int, high: int) -> Known:
    """What one process sent or delivered between two of its events."""
    events: list[Array] = []
    sends: list[Array] = []
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
        events += [begin + sent, begin + delivered]
        sends += [begin + sent, view.links[view.link_first[place + slot + delivered]]]
    if not events:
        return Known(np.empty(0, np.int64), np.empty(0, np.int64))
    return Known(np.concatenate(events), np.concatenate(sends))


def shortest_chains(pages: Pages, delivery: int, send: int, addressed: Array) -> list[Known]:
    """The layers of all shortest chains to this message from one that should have been delivered before it.

    `addressed` are the sends of all messages for the process of the delivery, in order. The last layer holds
    the messages that should have come first; layer 0, the message itself, is left out.
    """
    process = pages.process_of(delivery)
    done = traffic(pages, int(pages.first[process]), delivery)
    delivered = done.send[done.send != done.event]
    missing = np.setdiff1d(np.setdiff1d(addressed, delivered), [send])
    looked_at: dict[int, int] = {}
    """for each process up to which event its history was looked at"""
    layers: list[Known] = []
    newest = np.array([send], np.int64)
    while len(newest):
        layers.append(_layer(pages, newest, looked_at))
        newest = np.unique(layers[-1].send)
        hits = np.intersect1d(newest, missing)
        if len(hits):
            return _pruned(pages, layers, hits, send)
    return []


def _layer(pages: Pages, newest: Array, looked_at: dict[int, int]) -> Known:
    """What the senders of these messages knew before, as far as that was not looked at."""
    parts: list[Known] = []
    senders = np.searchsorted(pages.first, newest, side="right") - 1
    for process in np.unique(senders).tolist():
        until = int(newest[senders == process].max())
        since = looked_at.get(process, int(pages.first[process]))
        if since < until:
            parts.append(traffic(pages, since, until))
            looked_at[process] = until
    if not parts:
        return Known(np.empty(0, np.int64), np.empty(0, np.int64))
    return Known(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _pruned(pages: Pages, layers: list[Known], hits: Array, end: int) -> list[Known]:
    """Only what lies on a chain from a hit to the end."""
    kept = hits
    found: list[Known] = []
    for number in range(len(layers) - 1, -1, -1):
        layer = layers[number]
        on = np.isin(layer.send, kept)
        known = Known(layer.event[on], layer.send[on])
        found.append(known)
        following = np.unique(layers[number - 1].send) if number else np.array([end], np.int64)
        kept = _after(pages, known, following)
    return found[::-1]


def _after(pages: Pages, known: Known, following: Array) -> Array:
    """Those of the following messages whose senders knew one of these before they sent them."""
    process = np.searchsorted(pages.first, known.event, side="right") - 1
    earliest = np.full(len(pages.first) - 1, np.iinfo(np.int64).max)
    np.minimum.at(earliest, process, known.event)
    senders = np.searchsorted(pages.first, following, side="right") - 1
    return following[earliest[senders] < following]

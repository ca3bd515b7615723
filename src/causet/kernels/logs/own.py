"""Own copies: messages that their senders deliver by events of their own.

The targets of a message do not name its sender. One that delivers its own message all the same has addressed
itself, and the event is judged like any other delivery.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from causet.kernels.arrays import Array
from causet.kernels.logs.pages import ABSENT, Pages, View, processes_of
from causet.kernels.logs.verify import Addressed


def own_copies(pages: Pages) -> Array:
    """The sends whose messages are delivered by their own process, in order."""
    found = [np.empty(0, np.int64)]
    for page in range(len(pages.view.slot_of)):
        view = pages.view
        if view.slot_of[page] == ABSENT:
            view = pages.fetch(page)
        low, high = pages.span(page)
        found.append(_own_in(view, int(view.slot_of[page]), low, high, pages.first))
    return np.unique(np.concatenate(found))


@njit(cache=True)
def _own_in(view: View, slot: int, low: int, high: int, first: Array) -> Array:
    """The sends of what the events of a page deliver to their own process."""
    sends = np.empty(high - low, np.int64)
    count = 0
    process = np.searchsorted(first, low, side="right") - 1
    for event in range(low, high):
        while event >= first[process + 1]:
            process += 1
        place = (slot << view.shift) + event - low
        if view.info[place] < 0:  # its send comes first among the causes of a delivery
            send = view.links[view.link_first[place + slot]]
            if first[process] <= send < first[process + 1]:
                sends[count] = send
                count += 1
    return sends[:count]


def with_own(addressed: Addressed, own: Array, first: Array) -> Addressed:
    """The same targets, and for these sends their own processes."""
    if not len(own):
        return addressed
    counts = np.diff(addressed.ends, prepend=0)
    sends = np.concatenate([np.repeat(addressed.sends, counts), own])
    targets = np.concatenate([addressed.targets, processes_of(first, own).astype(addressed.targets.dtype)])
    order = np.argsort(sends, kind="stable")
    different, each = np.unique(sends, return_counts=True)
    return Addressed(different, np.cumsum(each), targets[order])

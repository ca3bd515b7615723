"""Why a message waited between its reception and its delivery."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from causet.kernels.arrays import Array
from causet.kernels.logs.chains import traffic
from causet.kernels.logs.pages import Pages


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

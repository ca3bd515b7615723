"""The hold-back idea for whole processes: each waits for one event of another, or is ready to go on.

The kernel of `levels` is a twin of the engine (`causet.holdback`): a process runs until its next event has a
cause that is not done; then it watches that one event, and finishing that event wakes it. So every reference
is looked at once, in whatever order the log was written, and a process that waits costs nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from causet.kernels.arrays import Array
from causet.kernels.logs.tables import find, remove

NONE = -1
"""In place of a process or an event."""
READY, WATCHING, DONE_EVENTS, WANTED = 0, 1, 2, 3
"""Places in `Waiting.counts`: processes ready, processes that watch an event, events done in all, and the
page for which a kernel stopped."""


class Waiting(NamedTuple):
    """How far every process is, and what it waits for. A kernel that stopped for a page goes on from here."""

    ready: Array
    """a stack of processes that can go on"""
    done: Array
    """for each process how many of its events are done"""
    looked_at: Array
    """for each process how many causes of its next event are known to be done"""
    watched: Array
    """a table of the events that are watched"""
    watcher: Array
    """for each position of the table the first process that watches its event"""
    next_watcher: Array
    """for each process the next one that watches the same event"""
    counts: Array


def all_ready(processes: int) -> Waiting:
    """Every process ready, the first one on top."""
    size = 1 << (2 * processes + 1).bit_length()
    counts = np.zeros(4, np.int64)
    counts[READY] = processes
    return Waiting(
        ready=np.arange(processes - 1, -1, -1, dtype=np.int32),
        done=np.zeros(processes, np.int64),
        looked_at=np.zeros(processes, np.int64),
        watched=np.full(size, NONE, np.int64),
        watcher=np.full(size, NONE, np.int32),
        next_watcher=np.full(processes, NONE, np.int32),
        counts=counts,
    )


@njit(cache=True)
def watch(waiting: Waiting, process: int, event: int) -> None:
    """The process waits until the event is done."""
    at = find(waiting.watched, event)
    if waiting.watched[at] == NONE:
        waiting.watched[at] = event
        waiting.watcher[at] = NONE
    waiting.next_watcher[process] = waiting.watcher[at]
    waiting.watcher[at] = process
    waiting.counts[WATCHING] += 1


@njit(cache=True)
def wake(waiting: Waiting, event: int) -> None:
    """The event is done: those that watched it are ready."""
    at = find(waiting.watched, event)
    if waiting.watched[at] == NONE:
        return
    process = waiting.watcher[at]
    remove(waiting.watched, waiting.watcher, at)
    while process != NONE:
        waiting.ready[waiting.counts[READY]] = process
        waiting.counts[READY] += 1
        waiting.counts[WATCHING] -= 1
        process = waiting.next_watcher[process]

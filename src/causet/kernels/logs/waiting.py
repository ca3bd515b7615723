"""The hold-back idea for whole processes: each waits for one event of another, or is ready to go on.

`release` kernels are twins of the engine (`causet.holdback`): a process runs until its next event has a cause
that is not done; then it watches that one event, and finishing that event wakes it. So every reference
is looked at once, in whatever order the log was written, and what waits costs nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit, uint64

Array = np.ndarray[Any, Any]

NOBODY = -1
READY, WATCHING, DONE_EVENTS, WANTED = 0, 1, 2, 3
"""Places in `Waiting.counts`: processes ready, processes that watch an event, events done in all, and the
page for which a kernel stopped."""


class Waiting(NamedTuple):
    """How far every process is, for what it waits. Kernels stop where a page is missing and go on here."""

    ready: Array
    """a stack of processes that can go on"""
    done: Array
    """for each process how many of its events are done"""
    looked_at: Array
    """for each process how many references of its next event are met"""
    watched: Array
    """a table of the events that are watched, open addressing"""
    watcher: Array
    """beside each of them the first process that watches it"""
    next_watcher: Array
    """for each process the next one that watches the same event"""
    counts: Array


def nobody_waits(processes: int) -> Waiting:
    """Every process ready, the first one on top."""
    size = 1 << (2 * processes + 1).bit_length()
    counts = np.zeros(4, np.int64)
    counts[READY] = processes
    return Waiting(
        ready=np.arange(processes - 1, -1, -1, dtype=np.int32),
        done=np.zeros(processes, np.int64),
        looked_at=np.zeros(processes, np.int64),
        watched=np.full(size, NOBODY, np.int64),
        watcher=np.full(size, NOBODY, np.int32),
        next_watcher=np.full(processes, NOBODY, np.int32),
        counts=counts,
    )


@njit(cache=True)
def find(table: Array, key: int) -> int:
    """Where a key stands in an open-addressing table of a power of two, or where it would go."""
    mask = len(table) - 1
    at = int((uint64(key) * uint64(0x9E3779B97F4A7C15)) >> uint64(20)) & mask
    while table[at] != NOBODY and table[at] != key:
        at = (at + 1) & mask
    return at


@njit(cache=True)
def remove(table: Array, values: Array, at: int) -> None:
    """Take the key at this place out; what stands behind it moves up, so that it is found again."""
    mask = len(table) - 1
    hole = at
    at = (at + 1) & mask
    while table[at] != NOBODY:
        home = int((uint64(table[at]) * uint64(0x9E3779B97F4A7C15)) >> uint64(20)) & mask
        if ((at - home) & mask) >= ((at - hole) & mask):
            table[hole] = table[at]
            values[hole] = values[at]
            hole = at
        at = (at + 1) & mask
    table[hole] = NOBODY


@njit(cache=True)
def watch(waiting: Waiting, process: int, event: int) -> None:
    at = find(waiting.watched, event)
    if waiting.watched[at] == NOBODY:
        waiting.watched[at] = event
        waiting.watcher[at] = NOBODY
    waiting.next_watcher[process] = waiting.watcher[at]
    waiting.watcher[at] = process
    waiting.counts[WATCHING] += 1


@njit(cache=True)
def wake(waiting: Waiting, event: int) -> None:
    """The event is done: those that watched it are ready."""
    at = find(waiting.watched, event)
    if waiting.watched[at] == NOBODY:
        return
    process = waiting.watcher[at]
    remove(waiting.watched, waiting.watcher, at)
    while process != NOBODY:
        waiting.ready[waiting.counts[READY]] = process
        waiting.counts[READY] += 1
        waiting.counts[WATCHING] -= 1
        process = waiting.next_watcher[process]

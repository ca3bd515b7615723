"""Blocks, repaired times and positions of a whole execution, in one pass each.

An execution is laid out by process: the events of process p stand in `first[p] : first[p + 1]`, in process
order, and the direct predecessors of event e in other processes are `refs[ref_first[e] : ref_first[e + 1]]`.
Everything else follows from that:

    block       1 + the largest block among the direct predecessors
    repaired    the largest of the own time and the direct predecessors' repaired times
    position    the rank by (repaired, block, process, seq)

`release` is the twin of the hold-back engine (`causet.holdback`): a process waits until a counter, how many
events of another process are done, reaches a threshold, and watches one unmet threshold at a time. So every
reference is looked at once, in whatever order the log was written.

Repaired times and blocks only grow along a process, so positions are a merge of as many sorted runs as there
are processes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

Array = np.ndarray[Any, Any]

NOBODY = -1


@njit(cache=True)
def release(
    first: Array, ref_first: Array, refs: Array, time: Array, block: Array, repaired: Array, done: Array
) -> int:
    """Fill block and repaired of every event that no cycle holds; how many those are.

    `repaired` may be the same array as `time`. `done[p]` becomes the number of events of p that are filled:
    where it stops short, the next event of p waits for ever.
    """
    processes = len(first) - 1
    waiter = np.full(len(time), NOBODY, np.int32)  # the process that waits for this event, first of a list
    next_waiter = np.full(processes, NOBODY, np.int32)
    looked_at = np.zeros(processes, np.int64)  # references of the next event that are met
    ready = np.empty(processes, np.int32)
    for p in range(processes):
        ready[p] = processes - 1 - p
        done[p] = 0
    count = processes
    released = 0
    while count:
        count -= 1
        p = ready[count]
        e = first[p] + done[p]
        stuck = False
        while e < first[p + 1] and not stuck:
            level, latest = 0, time[e]
            if e > first[p]:
                level, latest = block[e - 1], max(latest, repaired[e - 1])
            at = ref_first[e] + looked_at[p]
            while at < ref_first[e + 1]:
                cause = refs[at]
                if block[cause] == 0:
                    looked_at[p] = at - ref_first[e]
                    next_waiter[p] = waiter[cause]
                    waiter[cause] = p
                    stuck = True
                    break
                at += 1
            if stuck:
                break
            for at in range(ref_first[e], ref_first[e + 1]):
                level = max(level, block[refs[at]])
                latest = max(latest, repaired[refs[at]])
            block[e] = level + 1
            repaired[e] = latest
            looked_at[p] = 0
            done[p] += 1
            released += 1
            freed = waiter[e]
            while freed != NOBODY:
                ready[count] = freed
                count += 1
                freed = next_waiter[freed]
            e += 1
    return released


@njit(cache=True)
def _precedes(p: int, q: int, cursor: Array, block: Array, repaired: Array) -> bool:
    """Whether the next event of process p has its place before that of process q."""
    a, b = cursor[p], cursor[q]
    if repaired[a] != repaired[b]:
        return bool(repaired[a] < repaired[b])
    if block[a] != block[b]:
        return bool(block[a] < block[b])
    return p < q


@njit(cache=True)
def _sift(heap: Array, size: int, at: int, cursor: Array, block: Array, repaired: Array) -> None:
    moved = heap[at]
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and _precedes(heap[child + 1], heap[child], cursor, block, repaired):
            child += 1
        if not _precedes(heap[child], moved, cursor, block, repaired):
            break
        heap[at] = heap[child]
        at = child
    heap[at] = moved


@njit(cache=True)
def merge_positions(first: Array, block: Array, repaired: Array, position: Array) -> None:
    """Fill the position of every event: one merge of the processes' runs."""
    processes = len(first) - 1
    cursor = first[:-1].copy()
    heap = np.empty(processes, np.int32)
    size = 0
    for p in range(processes):
        if first[p] < first[p + 1]:
            heap[size] = p
            size += 1
    for at in range(size // 2 - 1, -1, -1):
        _sift(heap, size, at, cursor, block, repaired)
    place = 0
    while size:
        p = heap[0]
        position[cursor[p]] = place
        place += 1
        cursor[p] += 1
        if cursor[p] == first[p + 1]:
            size -= 1
            heap[0] = heap[size]
        if size:
            _sift(heap, size, 0, cursor, block, repaired)


def cycle(first: Array, ref_first: Array, refs: Array, block: Array, done: Array) -> list[int]:
    """Events in a circle, each directly before the next and the last before the first; [] if there is none.

    Only for an execution that `release` could not fill: every event that waits for ever has a predecessor
    that does.
    """
    held = [p for p in range(len(first) - 1) if first[p] + done[p] < first[p + 1]]
    if not held:
        return []
    at = int(first[held[0]] + done[held[0]])
    path: list[int] = []
    met: dict[int, int] = {}
    while at not in met:
        met[at] = len(path)
        path.append(at)
        causes = refs[ref_first[at] : ref_first[at + 1]]
        # Of two kinds of predecessors, another process's comes first: such circles say more.
        at = next((int(c) for c in causes if block[c] == 0), at - 1)
    return path[met[at] :][::-1]

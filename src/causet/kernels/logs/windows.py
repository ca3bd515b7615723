"""A window of an execution in memory: events sorted by process, references found, one page for the kernels.

Unlike a whole execution, a window has holes: events of a process that lie elsewhere. `causet.slabs` proves
that these do not matter where it asks.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from causet.kernels.arrays import Array
from causet.kernels.logs.pages import ABSENT, View
from causet.kernels.names import hash_texts, text_buffers

_ONE_PAGE = 40
"""The shift of a page that is wider than any window."""


@njit(cache=True)
def by_process(process: Array, seq: Array, count: int) -> tuple[Array, Array]:
    """The places of events by (process, seq), and where each process begins among them; one more ends it.

    Events mostly come in order of time, and seqs of one process with them: so they are only sorted where they
    are not sorted yet.
    """
    first = np.zeros(count + 1, np.int64)
    for p in process:
        first[p + 1] += 1
    for p in range(count):
        first[p + 1] += first[p]
    at = first[:-1].copy()
    order = np.empty(len(process), np.int64)
    for place in range(len(process)):
        p = process[place]
        order[at[p]] = place
        at[p] += 1
    for p in range(count):
        begin, end = first[p], first[p + 1]
        for i in range(begin + 1, end):
            if seq[order[i]] < seq[order[i - 1]]:
                mine = order[begin:end].copy()
                order[begin:end] = mine[np.argsort(seq[mine], kind="mergesort")]
                break
    return order, first


@njit(cache=True)
def find_events(first: Array, seq: Array, process: Array, wanted: Array) -> Array:
    """The number of the event of each process with each seq; ABSENT where the window has none.

    `seq` is sorted within each process.
    """
    found = np.full(len(wanted), ABSENT, np.int64)
    for i in range(len(wanted)):
        p = process[i]
        if p == ABSENT:
            continue
        low, high = first[p], first[p + 1]
        if low == high or not seq[low] <= wanted[i] <= seq[high - 1]:
            continue
        guess = low + wanted[i] - seq[low]  # right if nothing is missing
        if guess < high and seq[guess] == wanted[i]:
            found[i] = guess
            continue
        while low < high:
            middle = (low + high) // 2
            if seq[middle] < wanted[i]:
                low = middle + 1
            else:
                high = middle
        if seq[low] == wanted[i]:
            found[i] = low
    return found


@njit(cache=True)
def links_by_effect(effects: Array, causes: Array, events: int) -> tuple[Array, Array]:
    """(link_first, links) as in `View`; references without a cause, ABSENT, are left out."""
    first = np.zeros(events + 1, np.int64)
    for i in range(len(effects)):
        if causes[i] != ABSENT:
            first[effects[i] + 1] += 1
    for e in range(events):
        first[e + 1] += first[e]
    at = first[:-1].copy()
    links = np.empty(first[-1], np.int64)
    for i in range(len(effects)):
        if causes[i] != ABSENT:
            links[at[effects[i]]] = causes[i]
            at[effects[i]] += 1
    return first, links


def one_page(first: Array, time: Array, link_first: Array, links: Array) -> View:
    """Events that are all in memory, for the kernels that see an execution by pages. Times are written to."""
    return View(
        first=first,
        shift=_ONE_PAGE,
        slot_of=np.zeros(1, np.int32),
        used=np.zeros(1, np.bool_),
        word=np.zeros(len(time), np.int32),
        time=time,
        info=np.zeros(len(time), np.int32),
        link_first=link_first,
        links=links,
    )


@njit(cache=True)
def runs_of(process: Array, seq: Array, here: Array) -> tuple[Array, Array]:
    """The first and the last event of each run of contiguous seqs, of those events that are `here`.

    Events are sorted by (process, seq). Two events with the same seq are two runs.
    """
    begins, ends = np.empty(len(seq), np.int64), np.empty(len(seq), np.int64)
    count = 0
    last = ABSENT
    for e in range(len(seq)):
        if not here[e]:
            continue
        if last == ABSENT or process[last] != process[e] or seq[last] + 1 != seq[e]:
            begins[count] = e
            count += 1
        ends[count - 1] = e
        last = e
    return begins[:count].copy(), ends[:count].copy()


@njit(cache=True)
def find_runs(begins: Array, first: Array, last: Array, process: Array, wanted: Array) -> Array:
    """The run in which each process has each seq; ABSENT where none has it.

    Runs are sorted by process and first seq; `begins` says where those of each process begin and end.
    """
    found = np.full(len(wanted), ABSENT, np.int64)
    for i in range(len(wanted)):
        if process[i] == ABSENT:
            continue
        begin, end = begins[process[i]], begins[process[i] + 1]
        low, high = begin, end
        while low < high:
            middle = (low + high) // 2
            if first[middle] <= wanted[i]:
                low = middle + 1
            else:
                high = middle
        if low > begin and wanted[i] <= last[low - 1]:
            found[i] = low - 1
    return found


def hashes_of(texts: Any, key: int) -> tuple[Array, Array]:
    """Two hashes of each string of a column without nulls."""
    low, high = np.empty(len(texts), np.uint64), np.empty(len(texts), np.uint64)
    hash_texts(*text_buffers(texts), key, low, high)
    return low, high

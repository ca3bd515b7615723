"""Do all processes deliver in one order? The union of their delivery orders must have no cycle.

Messages are numbers, and an edge leads from each delivery of a process to its next one. Kahn's algorithm
takes away what nothing comes before; if all goes, there is one order. What is left is taken away from the
other end, too, and then has cycles: each of its strongly connected components is reported by a shortest cycle
through its smallest message. Everything is linear in the deliveries.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from causet.kernels.arrays import Array
from causet.kernels.logs.causal_pass import causal_pass
from causet.kernels.logs.pages import Pages

LISTED = 100
"""Cycles that are reported, at most."""


class Cycle(NamedTuple):
    """`processes[i]` delivered the message of `sends[i]` before the next one; the first one comes after the
    last."""

    sends: Array
    processes: Array


def deliveries_of(pages: Pages) -> tuple[Array, Array]:
    """(process, send) of all deliveries, those of a process in its order. Levels and repaired times have to
    be in the pages."""
    processes, sends = [np.empty(0, np.int32)], [np.empty(0, np.int64)]
    for passed in causal_pass(pages):
        which = np.flatnonzero(passed.info < 0)
        processes.append(passed.processes[which].astype(np.int32))
        sends.append(passed.links[passed.link_first[which]])  # its send comes first among a delivery's causes
    process, send = np.concatenate(processes), np.concatenate(sends)
    order = np.argsort(process, kind="stable")
    return process[order], send[order]


def cycles_in(process: Array, send: Array, most: int = LISTED) -> list[Cycle]:
    """Where the orders of delivery contradict each other, given as `deliveries_of` has them. Of a message
    that is delivered again its first delivery counts."""
    different, message = np.unique(send, return_inverse=True)
    pairs = process.astype(np.int64) * max(len(different), 1) + message
    _, first = np.unique(pairs, return_index=True)
    first.sort()
    process, message = process[first], message[first].astype(np.int64)
    left = _left(process, message, len(different))
    if not left.any():
        return []
    kept = left[message]
    process, message = process[kept], message[kept]
    component = _components(*_following(process, message, len(different)), left)
    sizes = np.bincount(component[left])
    smallest = np.full(len(sizes), len(different), np.int64)
    where = np.flatnonzero(left)
    np.minimum.at(smallest, component[where], where)
    starts = np.sort(smallest[sizes > 1])[:most]
    found = []
    for start in starts:
        inside = component[message] == component[start]
        who, what = process[inside], message[inside]
        cycle, steps = _shortest(int(start), who, what, len(different))
        found.append(Cycle(different[cycle], steps))
    return found


def _following(process: Array, message: Array, messages: int) -> tuple[Array, Array]:
    """The edges from each delivery to the next one of its process, as (where each message's begin, ends)."""
    same = np.flatnonzero(process[1:] == process[:-1])
    before, after = message[same], message[same + 1]
    begins = np.concatenate([[0], np.cumsum(np.bincount(before, minlength=messages))])
    return begins, after[np.argsort(before, kind="stable")]


def _left(process: Array, message: Array, messages: int) -> Array:
    """The messages that are on a cycle, or between cycles."""
    begins, ends = _following(process, message, messages)
    left = np.ones(messages, np.bool_)
    _kahn(begins, ends, left)
    if left.any():
        begins, ends = _following(process[::-1], message[::-1], messages)
        _kahn(begins, ends, left)
    return left


@njit(cache=True)
def _kahn(begins: Array, ends: Array, left: Array) -> None:
    """Take away, again and again, whatever has nothing before it."""
    before = np.zeros(len(left), np.int64)
    for one in range(len(left)):
        if left[one]:
            for at in range(begins[one], begins[one + 1]):
                before[ends[at]] += 1
    todo = np.empty(len(left), np.int64)
    count = 0
    for one in range(len(left)):
        if left[one] and not before[one]:
            todo[count] = one
            count += 1
    while count:
        count -= 1
        one = todo[count]
        left[one] = False
        for at in range(begins[one], begins[one + 1]):
            other = ends[at]
            before[other] -= 1
            if left[other] and not before[other]:
                todo[count] = other
                count += 1


@njit(cache=True)
def _components(begins: Array, ends: Array, left: Array) -> Array:
    """For each message that is left the number of its strongly connected component (Tarjan)."""
    size = len(left)
    number = np.full(size, -1, np.int64)
    lowest = np.zeros(size, np.int64)
    component = np.full(size, -1, np.int64)
    at = begins[:-1].copy()
    path, open_ = np.empty(size, np.int64), np.empty(size, np.int64)
    numbers = opened = components = 0
    for start in range(size):
        if not left[start] or number[start] >= 0:
            continue
        depth = 0
        path[0] = start
        number[start] = lowest[start] = numbers
        numbers += 1
        open_[opened] = start
        opened += 1
        while depth >= 0:
            one = path[depth]
            if at[one] < begins[one + 1]:
                other = ends[at[one]]
                at[one] += 1
                if number[other] < 0:
                    number[other] = lowest[other] = numbers
                    numbers += 1
                    open_[opened] = other
                    opened += 1
                    depth += 1
                    path[depth] = other
                elif component[other] < 0:
                    lowest[one] = min(lowest[one], number[other])
                continue
            depth -= 1
            if depth >= 0:
                lowest[path[depth]] = min(lowest[path[depth]], lowest[one])
            if lowest[one] == number[one]:
                while True:
                    opened -= 1
                    component[open_[opened]] = components
                    if open_[opened] == one:
                        break
                components += 1
    return component


def _shortest(start: int, process: Array, message: Array, messages: int) -> tuple[Array, Array]:
    """A shortest cycle through a message, within deliveries that have one: messages, and the processes that
    delivered each before the next.

    Breadth first: from a message everything is reached that some process delivered after it.
    """
    by_message = np.argsort(message, kind="stable")
    places = np.searchsorted(message[by_message], np.arange(messages + 1))
    ends = np.concatenate([np.flatnonzero(process[1:] != process[:-1]) + 1, [len(process)]])
    came = np.full(messages, -1, np.int64)
    by = np.full(messages, -1, np.int64)
    last, closing = _search(start, process, message, by_message, places, ends, came, by)
    cycle, steps = [last], [closing]
    while cycle[-1] != start:
        steps.append(int(by[cycle[-1]]))
        cycle.append(int(came[cycle[-1]]))
    return np.array(cycle[::-1]), np.array(steps[::-1])


@njit(cache=True)
def _search(
    start: int,
    process: Array,
    message: Array,
    by_message: Array,
    places: Array,
    ends: Array,
    came: Array,
    by: Array,
) -> tuple[int, int]:
    """The message from which a process leads back to the start, and that process."""
    run_of = np.empty(len(process), np.int64)
    begin = 0
    for run in range(len(ends)):
        run_of[begin : ends[run]] = run
        begin = ends[run]
    start_at = np.full(len(ends), -1, np.int64)
    for at in range(places[start], places[start + 1]):
        start_at[run_of[by_message[at]]] = by_message[at]
    reached = ends.copy()
    todo = np.empty(len(came), np.int64)
    todo[0] = start
    count, position = 1, 0
    while position < count:
        one = todo[position]
        position += 1
        for at in range(places[one], places[one + 1]):
            place = by_message[at]
            run = run_of[place]
            if one != start and place < start_at[run]:
                return one, process[place]
            for then in range(place + 1, reached[run]):
                other = message[then]
                if came[other] < 0 and other != start:
                    came[other] = one
                    by[other] = process[place]
                    todo[count] = other
                    count += 1
            reached[run] = min(reached[run], place + 1)
    return -1, -1

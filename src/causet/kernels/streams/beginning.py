"""Where a reader begins: what counts as delivered to it although it never got it.

A beginning is a cut, in each group apart: of each process ranges of numbers. A process is known by the key of
its name, which is all that a memory has of it, and all that it needs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numba import njit

from causet.kernels.arrays import Array
from causet.kernels.names import combined
from causet.kernels.streams.block import Messages, begins
from causet.kernels.streams.delivered import Delivered, is_delivered
from causet.kernels.streams.keys import KEY, digests
from causet.kernels.streams.memory import Memory


class Counted(NamedTuple):
    """What counts as delivered in one group: ranges of numbers, sorted by process and then by number."""

    process: Array
    """of each range the key of the process's name"""
    low: Array
    high: Array
    closed: Array
    """the largest number of the process below which it is not known what was delivered"""


NOTHING = Counted(np.empty(0, f"S{KEY}"), *(np.empty(0, np.int64) for _ in range(3)))


def owner_of(reader: str, group: Array) -> Array:
    """The key of a reader in a group, which is one key: with that of a process it makes that of a stream."""
    owner: Array = combined(digests([reader]), group)
    return owner


def streams_of(memory: Memory, reader: str, group: Array) -> Array:
    """The streams of a reader in a group, which is one key."""
    mine: Array = np.flatnonzero(_unnamed(memory) == combined(owner_of(reader, group), _ZERO))
    return mine


def groups_of(memory: Memory, reader: str) -> Array:
    """The keys of the groups of a reader of which something was delivered, or of which something is held. The
    key of a stream is made of those of its reader, group and process, in such a way that what is missing can
    be told from the others. Where the reader is another one, what is found means nothing."""
    owners = _first_of(np.unique(_unnamed(memory))).view(np.uint64).reshape(-1, 2)
    mine = combined(digests([reader]), _ZERO).view(np.uint64)
    found: Array = (owners ^ mine).reshape(-1).view(f"S{KEY}")
    return found


def counted_by(memory: Memory, reader: str, group: Array) -> Counted:
    """What was delivered to a reader in a group, which is one key."""
    streams = streams_of(memory, reader, group)
    begun = streams[memory.prefix[streams] > 0]
    islands = np.diff(memory.begin)[streams]
    at = np.repeat(memory.begin[streams] - begins(islands)[:-1], islands) + np.arange(int(islands.sum()))
    stream = np.concatenate([begun, np.repeat(streams, islands)])
    low = np.concatenate([np.ones(len(begun), np.int64), memory.low[at]])
    high = np.concatenate([memory.prefix[begun], memory.high[at]])
    return union([Counted(memory.stream_name[stream], low, high, memory.closed[stream])])


_ZERO = np.zeros(KEY, np.uint8).view(f"S{KEY}")


_FACTOR, _ADDED = np.uint64(pow(0xD6E8FEB86659FD93, -1, 1 << 64)), np.uint64(0x9E3779B97F4A7C15)


def _first_of(unnamed: Array) -> Array:
    """The first of the two keys of which `combined` made these, with zeros for the second."""
    value = np.ascontiguousarray(unnamed).view(np.uint64).copy()
    for _ in range(2):
        value ^= value >> np.uint64(32)
        value *= _FACTOR
    value ^= value >> np.uint64(32)
    found: Array = (value - _ADDED).view(f"S{KEY}")
    return found


def _unnamed(memory: Memory) -> Array:
    """The keys of streams without what their processes put into them."""
    key, name = (
        np.ascontiguousarray(each).view(np.uint64) for each in (memory.stream_key, memory.stream_name)
    )
    return (key ^ name).view(f"S{KEY}")


def union(parts: Iterable[Counted]) -> Counted:
    """What counts as delivered in one of them."""
    whole = Counted(*(np.concatenate(each) for each in zip(NOTHING, *parts, strict=True)))
    process, which = np.unique(whole.process, return_inverse=True)
    closed = np.zeros(len(process), np.int64)
    np.maximum.at(closed, which, whole.closed)
    found = of_ranges(which, whole.low, whole.high, np.zeros(len(which), np.int64), len(process))
    stream, low, high, _ = ranges(found)
    return Counted(process[stream], low, high, closed[stream])


def covers(counted: Counted, process: Array, number: Array) -> Array:
    """For each (key of a process, number) whether it counts as delivered."""
    keys, which = np.unique(counted.process, return_inverse=True)
    found = of_ranges(which, counted.low, counted.high, np.zeros(len(which), np.int64), len(keys))
    at = np.searchsorted(keys, process)
    at[at == len(keys)] = 0
    known = np.zeros(len(process), np.bool_)
    if len(keys):
        known = keys[at] == process
        known[known] = is_delivered(found, at[known], number[known])
    return known


def ranges(delivered: Delivered) -> tuple[Array, Array, Array, Array]:
    """Of what was delivered the ranges: stream, first and last number, and since when; sorted."""
    begun = np.flatnonzero(delivered.prefix > 0)
    stream = np.concatenate([begun, np.repeat(np.arange(len(delivered.prefix)), np.diff(delivered.begin))])
    low = np.concatenate([np.ones(len(begun), np.int64), delivered.low])
    high = np.concatenate([delivered.prefix[begun], delivered.high])
    since = np.concatenate([np.zeros(len(begun), np.int64), delivered.since])
    order = np.lexsort((low, stream))
    return stream[order], low[order], high[order], since[order]


def of_ranges(stream: Array, low: Array, high: Array, since: Array, streams: int) -> Delivered:
    """What was delivered, from ranges of so many streams, which may overlap."""
    order = np.lexsort((low, stream))
    found: Delivered = _of_ranges(
        stream[order].astype(np.int64), low[order], high[order], since[order], streams
    )
    return found


@njit(cache=True)
def _of_ranges(stream: Array, low: Array, high: Array, since: Array, streams: int) -> Delivered:
    prefix, begin = np.zeros(streams, np.int64), np.zeros(streams + 1, np.int64)
    lows, highs, sinces = low.copy(), high.copy(), since.copy()
    ends = at = 0
    for each in range(streams):
        begin[each] = ends
        while at < len(stream) and stream[at] == each:
            if ends == begin[each] and low[at] <= prefix[each] + 1:
                prefix[each] = max(prefix[each], high[at])
            elif ends > begin[each] and low[at] <= highs[ends - 1] + 1:
                highs[ends - 1] = max(highs[ends - 1], high[at])
            else:
                lows[ends], highs[ends], sinces[ends] = low[at], high[at], since[at]
                ends += 1
            at += 1
    begin[streams] = ends
    return Delivered(prefix, begin, lows[:ends].copy(), highs[:ends].copy(), sinces[:ends].copy())


def without(delivered: Delivered, stream: Array, number: Array, now: int) -> Delivered:
    """The same without some numbers, which are in it, each once."""
    streams, low, high, since = ranges(delivered)
    new = np.full(len(number), now)
    firsts, since = np.concatenate([low, number + 1]), np.concatenate([since, new])
    lasts = np.concatenate([high, number - 1])
    streams = np.concatenate([streams, stream])
    by_first, by_last = np.lexsort((firsts, streams)), np.lexsort((lasts, streams))
    streams, low, high, since = streams[by_first], firsts[by_first], lasts[by_last], since[by_first]
    keep = low <= high
    return of_ranges(streams[keep], low[keep], high[keep], since[keep], len(delivered.prefix))


def stripped(messages: Messages, drop: Array) -> Messages:
    """The messages without some of their rows: the first row that is left becomes the head."""
    count = len(messages.number)
    part = np.zeros(count, np.bool_) if messages.part is None else messages.part
    owner = np.cumsum(~part) - 1
    keep = ~drop
    head = np.flatnonzero(keep)[np.unique(owner[keep], return_index=True)[1]]
    sizes = np.diff(messages.cause_begin)
    left = np.zeros(owner[-1] + 1 if count else 0, np.bool_)
    left[owner[keep]] = True
    causes = np.repeat(left[owner], sizes)
    groups, cause_group = messages.group, messages.cause_group
    if groups is not None and cause_group is None:  # another head may have another group
        cause_group = groups.take(np.repeat(np.arange(count), sizes))
    caused = np.zeros(count, np.int64)
    caused[head] = sizes[~part][owner[head]]
    still = np.ones(count, np.bool_)
    still[head] = False
    cut = None
    if messages.cut is not None:
        cut = np.zeros(count, np.int64)
        cut[head] = messages.cut[~part][owner[head]]
        cut = cut[keep]
    return messages._replace(
        receiver=messages.receiver.take(np.flatnonzero(keep)),
        name=messages.name.take(np.flatnonzero(keep)),
        number=messages.number[keep],
        cause_begin=begins(caused[keep]),
        cause_name=messages.cause_name.take(np.flatnonzero(causes)),
        cause_number=messages.cause_number[causes],
        place=messages.place[keep],
        mark=messages.mark[keep],
        group=None if groups is None else groups.take(np.flatnonzero(keep)),
        cause_group=None if cause_group is None else cause_group.take(np.flatnonzero(causes)),
        part=still[keep],
        cut=cut,
        priority=None if messages.priority is None else messages.priority[keep],
        brief=None if messages.brief is None else messages.brief[keep],
    )

"""What was delivered: for each stream a prefix 1 … D and, where patience ended, islands of numbers beyond it.

A stream is whatever is numbered 1, 2, 3, …: the messages of one source to one receiver. What was diverted is
kept in the same way, with no prefix.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from causet.kernels.arrays import Array

NO_PREFIX = -2
"""A prefix that no island can reach."""


class Delivered(NamedTuple):
    """What was delivered before."""

    prefix: Array
    """for each stream D: all numbers up to it are delivered, or forgotten"""
    begin: Array
    """for each stream where its islands begin in `low` and `high`; one more at the end"""
    low: Array
    high: Array
    since: Array
    """when each island came up"""


@njit(cache=True, inline="always")
def first_from(numbers: Array, low: int, high: int, number: int) -> int:
    """The first position in low … high whose number is not smaller."""
    while low < high:
        middle = (low + high) // 2
        if numbers[middle] < number:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True)
def on_island(begin: Array, low: Array, high: Array, stream: int, number: int) -> bool:
    """Whether a number of a stream is on one of its islands."""
    end = begin[stream + 1]
    at = first_from(high, begin[stream], end, number)
    return bool(at < end and low[at] <= number)


@njit(cache=True)
def is_delivered(delivered: Delivered, stream: Array, number: Array) -> Array:
    """For each (stream, number) whether it was delivered before."""
    prefix, islands, low, high = delivered.prefix, delivered.begin, delivered.low, delivered.high
    found = np.empty(len(stream), np.bool_)
    for i in range(len(stream)):
        found[i] = number[i] <= prefix[stream[i]] or on_island(islands, low, high, stream[i], number[i])
    return found


@njit(cache=True)
def delivered_after(
    delivered: Delivered, row_begin: Array, row_number: Array, counted: Array, now: int
) -> Delivered:
    """What is delivered once the counted rows are: islands that meet become one, and one that reaches the
    prefix becomes part of it. Rows are sorted by (stream, number); `row_begin` has where each stream's begin.
    """
    streams = len(delivered.prefix)
    most = len(delivered.low) + len(row_number)
    prefix = delivered.prefix.copy()
    begin = np.zeros(streams + 1, np.int64)
    low, high, since = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int64)
    ends = 0
    for stream in range(streams):
        begin[stream] = ends
        island, last = delivered.begin[stream], delivered.begin[stream + 1]
        row, end = row_begin[stream], row_begin[stream + 1]
        while True:
            while row < end and not counted[row]:
                row += 1
            if island < last and (row == end or delivered.low[island] <= row_number[row]):
                next_low, next_high = delivered.low[island], delivered.high[island]
                next_since = delivered.since[island]
                island += 1
            elif row < end:
                next_low = next_high = row_number[row]
                next_since = now
                row += 1
            else:
                break
            if next_low <= prefix[stream] + 1 and ends == begin[stream]:
                prefix[stream] = max(prefix[stream], next_high)
            elif ends > begin[stream] and next_low <= high[ends - 1] + 1:
                high[ends - 1] = max(high[ends - 1], next_high)
                since[ends - 1] = min(since[ends - 1], next_since)
            else:
                low[ends], high[ends], since[ends] = next_low, next_high, next_since
                ends += 1
    begin[streams] = ends
    return Delivered(prefix, begin, low[:ends].copy(), high[:ends].copy(), since[:ends].copy())


@njit(cache=True)
def close_holes(delivered: Delivered, most: int, closed: Array) -> Delivered:
    """Close the lowest holes of every stream with more than `most` islands: the prefix goes on over them.

    `closed` gets, for each stream, the largest number below which something was forgotten.
    """
    streams = len(delivered.prefix)
    prefix = delivered.prefix.copy()
    begin = np.zeros(streams + 1, np.int64)
    keep = np.ones(len(delivered.low), np.bool_)
    ends = 0
    for stream in range(streams):
        begin[stream] = ends
        last = delivered.begin[stream + 1] - 1 - most
        for island in range(delivered.begin[stream], delivered.begin[stream + 1]):
            if island <= last:
                keep[island] = False
                prefix[stream] = delivered.high[island]
                closed[stream] = delivered.low[island] - 1
            else:
                ends += 1
    begin[streams] = ends
    return Delivered(prefix, begin, delivered.low[keep], delivered.high[keep], delivered.since[keep])


def forget_islands(delivered: Delivered, before: int, most: int) -> Delivered:
    """Forget islands that came up before a point in time, and the lowest ones of a stream with more than
    `most`."""
    sizes = np.diff(delivered.begin)
    above = np.repeat(delivered.begin[1:], sizes) - np.arange(len(delivered.low))
    keep = (delivered.since >= before) & (above <= most)
    begin = np.concatenate([[0], np.cumsum(keep)])[delivered.begin].astype(np.int64)
    return delivered._replace(
        begin=begin, low=delivered.low[keep], high=delivered.high[keep], since=delivered.since[keep]
    )

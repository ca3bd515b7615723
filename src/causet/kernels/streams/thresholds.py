"""What messages wait for: message n of a stream for n - 1, and for its causes (stream, number).

Each of these is a threshold: it is met once that message is delivered. Messages stand sorted by
(stream, number), so a threshold on a message that is here is the number of its row.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from causet.kernels.arrays import Array
from causet.kernels.streams.delivered import Delivered, first_from, on_island

MET, ABSENT, LOST = -1, -2, -3
"""What a threshold is, if not the number of a row: delivered before, not here, or given up by hand."""
NONE = -1
"""No row; as a cause, the previous message of the row's own stream."""


class Rows(NamedTuple):
    """Messages, sorted by (stream, number), each once, none of them delivered."""

    stream: Array
    number: Array
    begin: Array
    """for each stream where its rows begin; one more at the end"""
    cause_begin: Array
    """for each row where its causes begin; one more at the end"""
    cause_stream: Array
    cause_number: Array


class Given(NamedTuple):
    """Messages that are not here, sorted by (stream, number): given up, or claimed."""

    stream: Array
    number: Array


class Thresholds(NamedTuple):
    """The thresholds of all rows, in their order: of each the previous one of its stream, then its causes."""

    begin: Array
    """for each row where its thresholds begin; one more at the end"""
    row: Array
    """for each threshold the row that has to be delivered, or MET, ABSENT or LOST"""


@njit(cache=True)
def _row_of(numbers: Array, begin: int, end: int, number: int) -> int:
    """Where a number stands in begin … end, or ABSENT. Most streams have no gap, so it is tried first."""
    if begin < end:
        at = begin + number - numbers[begin]
        if begin <= at < end and numbers[at] == number:
            return int(at)
    at = first_from(numbers, begin, end, number)
    return int(at) if at < end and numbers[at] == number else ABSENT


@njit(cache=True)
def _is_given(given: Given, stream: int, number: int) -> bool:
    begin, end = np.searchsorted(given.stream, stream), np.searchsorted(given.stream, stream, "right")
    return _row_of(given.number, int(begin), int(end), number) != ABSENT


@njit(cache=True)
def thresholds_of(rows: Rows, delivered: Delivered, lost: Given) -> Thresholds:
    """The thresholds of all rows. What is not here and was given up by hand is LOST."""
    # An array of a tuple costs a reference each time it is named, so they are named once.
    row_stream, row_number, row_begin = rows.stream, rows.number, rows.begin
    cause_begin, cause_stream, cause_number = rows.cause_begin, rows.cause_stream, rows.cause_number
    prefix, islands, low, high = delivered.prefix, delivered.begin, delivered.low, delivered.high
    begin = np.empty(len(row_stream) + 1, np.int64)
    found = np.empty(len(row_stream) + len(cause_stream), np.int64)
    at = 0
    for row in range(len(row_stream)):
        begin[row] = at
        for cause in range(cause_begin[row] - 1, cause_begin[row + 1]):
            own = cause < cause_begin[row]
            stream = row_stream[row] if own else cause_stream[cause]
            number = row_number[row] - 1 if own else cause_number[cause]
            if number <= prefix[stream]:
                found[at] = MET
            else:
                found[at] = _row_of(row_number, row_begin[stream], row_begin[stream + 1], number)
                if found[at] == ABSENT and on_island(islands, low, high, stream, number):
                    found[at] = MET
                if found[at] == ABSENT and len(lost.stream) and _is_given(lost, stream, number):
                    found[at] = LOST
            at += 1
    begin[len(row_stream)] = at
    return Thresholds(begin, found)


@njit(cache=True, inline="always")
def cause_at(rows: Rows, row: int, threshold: int) -> int:
    """Which cause a threshold of a row is, or NONE: the first one is the previous of the row's own stream."""
    cause = threshold - row - 1
    return cause if cause >= rows.cause_begin[row] else NONE


@njit(cache=True)
def last_before(rows: Rows, row: int, threshold: int) -> int:
    """The last row before the message that a threshold names, in the stream of that message; or NONE."""
    cause = cause_at(rows, row, threshold)
    stream = rows.stream[row] if cause == NONE else rows.cause_stream[cause]
    number = rows.number[row] - 1 if cause == NONE else rows.cause_number[cause]
    at = first_from(rows.number, rows.begin[stream], rows.begin[stream + 1], number)
    return at - 1 if at > rows.begin[stream] else NONE


@njit(cache=True)
def mark_late(rows: Rows, delivered: Delivered, claims: Given) -> Array:
    """Which rows come too late: a message that named one left without it, or the next one of its stream."""
    late = np.zeros(len(rows.stream), np.bool_)
    for claim in range(len(claims.stream)):
        stream = claims.stream[claim]
        at = _row_of(rows.number, rows.begin[stream], rows.begin[stream + 1], claims.number[claim])
        if at != ABSENT:
            late[at] = True
    for row in range(len(rows.stream)):
        stream = rows.stream[row]
        if delivered.begin[stream] < delivered.begin[stream + 1] and on_island(
            delivered.begin, delivered.low, delivered.high, stream, rows.number[row] + 1
        ):
            late[row] = True
    return late


@njit(cache=True)
def first_blocked(
    rows: Rows, delivered: Delivered, arrival: Array, lost: Given, head: Array
) -> tuple[int, int, int]:
    """The oldest message that waits for something that is not here: its row; and of what it waits for, the
    stream and the number."""
    thresholds = thresholds_of(rows, delivered, lost)
    found = stream = NONE
    number = 0
    for row in range(len(rows.stream)):
        if head[row] != row or (found != NONE and arrival[row] >= arrival[found]):
            continue
        for at in range(thresholds.begin[row], thresholds.begin[row + 1]):
            if thresholds.row[at] == ABSENT:
                found, cause = row, cause_at(rows, row, at)
                stream = rows.stream[row] if cause == NONE else rows.cause_stream[cause]
                number = rows.number[row] - 1 if cause == NONE else rows.cause_number[cause]
                break
    if found == NONE and len(rows.stream):  # they wait for each other
        found, stream, number = head[0], rows.stream[head[0]], rows.number[head[0]] - 1
    return found, stream, number

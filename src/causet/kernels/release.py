"""The bulk twin of the hold-back engine: a batch of messages against what was delivered before.

Messages stand sorted by (stream, number); a stream is whatever is numbered 1, 2, 3, …: the messages of one
source to one receiver. Message n of a stream waits for n - 1 and for its causes (stream, number). What was
delivered is, per stream, a prefix 1 … D and, where patience ended, islands beyond it.

A waiting message watches one unmet threshold at a time, as in `causet.holdback`: a message of this batch that
is not released yet, or one that is not here at all, which nothing in this batch can bring.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

Array = np.ndarray[Any, Any]

MET, ABSENT = -1, -2
"""What a threshold is, if it is not the number of a row."""
NOBODY = -1
NO_PREFIX = -2
"""A prefix that no island can reach."""
HELD, DELIVERED, FLAGGED, LATE, DIVERTED = 0, 1, 2, 3, 4
WAIT, FLAG, DIVERT = 0, 1, 2
"""What to do about a cause that does not come."""


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
    given_up: Array
    """for each stream the largest number that a flagged message did not wait for any longer"""


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


class Released(NamedTuple):
    order: Array
    """the rows that leave, in their order"""
    status: Array
    """for each row what it has become"""
    missing_row: Array
    missing_cause: Array
    """for each threshold that a flagged or diverted row did not see met: the row, and which of its causes, or
    NOBODY for the previous number of its own stream"""


@njit(cache=True, inline="always")
def _first_from(numbers: Array, low: int, high: int, number: int) -> int:
    """The first place in low … high whose number is not smaller."""
    while low < high:
        middle = (low + high) // 2
        if numbers[middle] < number:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True)
def _on_island(begin: Array, low: Array, high: Array, stream: int, number: int) -> bool:
    end = begin[stream + 1]
    at = _first_from(high, begin[stream], end, number)
    return bool(at < end and low[at] <= number)


@njit(cache=True)
def _place_of(numbers: Array, begin: int, end: int, number: int) -> int:
    """Where a number stands in begin … end, or ABSENT. Most streams have no gap: then it is where it must."""
    if begin < end:
        at = begin + number - numbers[begin]
        if begin <= at < end and numbers[at] == number:
            return int(at)
    at = _first_from(numbers, begin, end, number)
    return int(at) if at < end and numbers[at] == number else ABSENT


@njit(cache=True, inline="always")
def _named(rows: Rows, row: int, place: int) -> tuple[int, int]:
    """The stream and number that a threshold names; place 0 is the previous one of the row's own stream."""
    if place == 0:
        return rows.stream[row], rows.number[row] - 1
    cause = rows.cause_begin[row] + place - 1
    return rows.cause_stream[cause], rows.cause_number[cause]


@njit(cache=True)
def _thresholds(rows: Rows, delivered: Delivered) -> Array:
    """What every threshold of every row is, in their order: the previous one of its stream, then its causes.

    Each is the number of a row; or MET if it was delivered before, ABSENT if it is not here.
    """
    # An array of a tuple costs a reference each time it is named, so they are named once.
    row_stream, row_number, row_begin = rows.stream, rows.number, rows.begin
    cause_begin, cause_stream, cause_number = rows.cause_begin, rows.cause_stream, rows.cause_number
    prefix, islands, low, high = delivered.prefix, delivered.begin, delivered.low, delivered.high
    found = np.empty(len(row_stream) + len(cause_stream), np.int64)
    at = 0
    for row in range(len(row_stream)):
        for cause in range(cause_begin[row] - 1, cause_begin[row + 1]):
            own = cause < cause_begin[row]
            stream = row_stream[row] if own else cause_stream[cause]
            number = row_number[row] - 1 if own else cause_number[cause]
            if number <= prefix[stream]:
                found[at] = MET
            else:
                found[at] = _place_of(row_number, row_begin[stream], row_begin[stream + 1], number)
                if found[at] == ABSENT and _on_island(islands, low, high, stream, number):
                    found[at] = MET
            at += 1
    return found


@njit(cache=True)
def _at_hand(rows: Rows, thresholds: Array, last_held: Array, row: int, place: int) -> int:
    """What a threshold is; but for a message that is not here, the last one before it in its stream that is:
    a cause as well."""
    found = thresholds[rows.cause_begin[row] + row + place]
    if found == ABSENT:
        stream, number = _named(rows, row, place)
        at = _first_from(rows.number, rows.begin[stream], rows.begin[stream + 1], number)
        if at > rows.begin[stream] and last_held[at - 1] != NOBODY:
            return int(last_held[at - 1])
    return int(found)


@njit(cache=True)
def _last_held(rows: Rows, status: Array, last_held: Array) -> None:
    """For each row the last one up to it in its stream that is held."""
    for row in range(len(status)):
        if status[row] == HELD:
            last_held[row] = row
        elif row > 0 and rows.stream[row - 1] == rows.stream[row]:
            last_held[row] = last_held[row - 1]
        else:
            last_held[row] = NOBODY


@njit(cache=True, inline="always")
def _look(
    rows: Rows,
    cause_begin: Array,
    thresholds: Array,
    row: int,
    forced: Array,
    status: Array,
    last_held: Array,
    place: Array,
    watcher: Array,
    next_watcher: Array,
) -> bool:
    """Whether the row is free; if not, it watches its next unmet threshold, if that can still be met.

    Whoever is forced does not wait for what is not here.
    """
    last = cause_begin[row + 1] - cause_begin[row]
    while place[row] <= last:
        found = thresholds[cause_begin[row] + row + place[row]]
        if found == ABSENT and forced[row]:
            found = _at_hand(rows, thresholds, last_held, row, place[row])
        if found >= 0 and status[found] == HELD:
            next_watcher[row] = watcher[found]
            watcher[found] = row
            return False
        if found == ABSENT and not forced[row]:
            return False
        place[row] += 1
    return True


@njit(cache=True)
def _force(
    rows: Rows, thresholds: Array, overdue: Array, status: Array, last_held: Array, forced: Array
) -> None:
    """Whose patience ended does not wait any longer, and neither do those of its causes that are here: an
    effect never leaves before a cause that is at hand."""
    stack = np.empty(len(status), np.int64)
    for start in range(len(status)):
        if not overdue[start] or status[start] != HELD or forced[start]:
            continue
        forced[start] = True
        stack[0] = start
        height = 1
        while height:
            height -= 1
            row = stack[height]
            for place in range(rows.cause_begin[row + 1] - rows.cause_begin[row] + 1):
                found = _at_hand(rows, thresholds, last_held, row, place)
                if found >= 0 and status[found] == HELD and not forced[found]:
                    forced[found] = True
                    stack[height] = found
                    height += 1


@njit(cache=True)
def release(rows: Rows, delivered: Delivered, policy: int, overdue: Array) -> Released:
    """Release what is free; then deal with those that are overdue as the policy says.

    `delivered.given_up` is raised by what flagged messages no longer waited for.
    """
    count = len(rows.stream)
    row_stream, row_number, cause_begin = rows.stream, rows.number, rows.cause_begin
    given_up = delivered.given_up
    status = np.zeros(count, np.int8)
    order = np.empty(count, np.int64)
    place = np.zeros(count, np.int64)
    watcher = np.full(count, NOBODY, np.int64)
    next_watcher = np.full(count, NOBODY, np.int64)
    last_held = np.full(count, NOBODY, np.int64)
    forced = np.zeros(count, np.bool_)
    thresholds = _thresholds(rows, delivered)
    missing_row = np.empty(16, np.int64)
    missing_cause = np.empty(16, np.int64)
    missing = 0
    done = ends = 0  # order[done:ends] are free and wait for their turn
    for row in range(count):
        if _look(rows, cause_begin, thresholds, row, forced, status, last_held, place, watcher, next_watcher):
            order[ends] = row
            ends += 1
    queued = np.zeros(count, np.bool_)
    queued[order[:ends]] = True
    stage = 0
    stuck = 0
    while True:
        while done < ends:
            row = order[done]
            done += 1
            status[row] = DELIVERED
            unmet = 0
            if forced[row]:
                for at in range(rows.cause_begin[row + 1] - rows.cause_begin[row] + 1):
                    found = thresholds[rows.cause_begin[row] + row + at]
                    if found == ABSENT or (found >= 0 and status[found] == HELD):
                        unmet += 1
                        if missing == len(missing_row):
                            missing_row = np.concatenate((missing_row, missing_row))
                            missing_cause = np.concatenate((missing_cause, missing_cause))
                        missing_row[missing] = row
                        missing_cause[missing] = rows.cause_begin[row] + at - 1 if at else NOBODY
                        missing += 1
                        stream, number = _named(rows, row, at)
                        if number > given_up[stream]:
                            given_up[stream] = number
            if unmet:
                status[row] = FLAGGED
            if row_number[row] <= given_up[row_stream[row]]:
                status[row] = LATE
            waiting = watcher[row]
            watcher[row] = NOBODY
            while waiting != NOBODY:
                following = next_watcher[waiting]
                if not queued[waiting] and _look(
                    rows,
                    cause_begin,
                    thresholds,
                    waiting,
                    forced,
                    status,
                    last_held,
                    place,
                    watcher,
                    next_watcher,
                ):
                    queued[waiting] = True
                    order[ends] = waiting
                    ends += 1
                waiting = following
        if policy != FLAG:
            break
        if stage == 0:
            stage = 1
            _last_held(rows, status, last_held)
            _force(rows, thresholds, overdue, status, last_held, forced)
            for row in range(count):
                # Who watches a row that is here goes on watching it: that one is forced as well.
                if not forced[row] or queued[row] or not _waits_for_absent(rows, thresholds, row, place):
                    continue
                if _look(
                    rows,
                    cause_begin,
                    thresholds,
                    row,
                    forced,
                    status,
                    last_held,
                    place,
                    watcher,
                    next_watcher,
                ):
                    queued[row] = True
                    order[ends] = row
                    ends += 1
            continue
        # Messages that wait for each other in a circle, which no honest sources make: one has to begin.
        while stuck < count and (not forced[stuck] or status[stuck] != HELD):
            stuck += 1
        if stuck == count:
            break
        queued[stuck] = True
        order[ends] = stuck
        ends += 1
    if policy == DIVERT:
        for row in range(count):
            if overdue[row] and status[row] == HELD:
                for at in range(rows.cause_begin[row + 1] - rows.cause_begin[row] + 1):
                    found = thresholds[rows.cause_begin[row] + row + at]
                    if found == ABSENT or (found >= 0 and status[found] in (HELD, DIVERTED)):
                        if missing == len(missing_row):
                            missing_row = np.concatenate((missing_row, missing_row))
                            missing_cause = np.concatenate((missing_cause, missing_cause))
                        missing_row[missing] = row
                        missing_cause[missing] = rows.cause_begin[row] + at - 1 if at else NOBODY
                        missing += 1
                status[row] = DIVERTED
                order[ends] = row
                ends += 1
    return Released(order[:ends], status, missing_row[:missing], missing_cause[:missing])


@njit(cache=True)
def _waits_for_absent(rows: Rows, thresholds: Array, row: int, place: Array) -> bool:
    last = rows.cause_begin[row + 1] - rows.cause_begin[row]
    return bool(place[row] <= last and thresholds[rows.cause_begin[row] + row + place[row]] == ABSENT)


def counted_among(status: Array, diverted: bool) -> Array:
    """Which rows were delivered; or which were diverted."""
    found: Array = status == DIVERTED if diverted else (status != DIVERTED) & (status != HELD)
    return found


@njit(cache=True)
def delivered_after(rows: Rows, delivered: Delivered, counted: Array, now: int) -> Delivered:
    """What is delivered once these rows are: islands that have come together are one, and one that reaches
    the prefix is part of it."""
    streams = len(delivered.prefix)
    most = len(delivered.low) + len(rows.stream)
    prefix = delivered.prefix.copy()
    begin = np.zeros(streams + 1, np.int64)
    low, high, since = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int64)
    ends = 0
    for stream in range(streams):
        begin[stream] = ends
        island, last = delivered.begin[stream], delivered.begin[stream + 1]
        row, end = rows.begin[stream], rows.begin[stream + 1]
        while True:
            while row < end and not counted[row]:
                row += 1
            if island < last and (row == end or delivered.low[island] <= rows.number[row]):
                next_low, next_high = delivered.low[island], delivered.high[island]
                next_since = delivered.since[island]
                island += 1
            elif row < end:
                next_low = next_high = rows.number[row]
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
    return Delivered(
        prefix, begin, low[:ends].copy(), high[:ends].copy(), since[:ends].copy(), delivered.given_up
    )


@njit(cache=True)
def forget_holes(delivered: Delivered, before: int, closed: Array) -> Delivered:
    """Holes below islands that came up before a moment are forgotten: the prefix goes on over them.

    `closed` gets, for each stream, the largest number below which something was forgotten.
    """
    streams = len(delivered.prefix)
    prefix = delivered.prefix.copy()
    begin = np.zeros(streams + 1, np.int64)
    keep = np.ones(len(delivered.low), np.bool_)
    ends = 0
    for stream in range(streams):
        begin[stream] = ends
        last = NOBODY
        for island in range(delivered.begin[stream], delivered.begin[stream + 1]):
            if delivered.since[island] < before:
                last = island
        for island in range(delivered.begin[stream], delivered.begin[stream + 1]):
            if island <= last:
                keep[island] = False
                prefix[stream] = delivered.high[island]
                closed[stream] = delivered.low[island] - 1
            else:
                ends += 1
    begin[streams] = ends
    return Delivered(
        prefix, begin, delivered.low[keep], delivered.high[keep], delivered.since[keep], delivered.given_up
    )


def forget_islands(delivered: Delivered, before: int) -> Delivered:
    """Islands that came up before a moment are forgotten altogether."""
    keep = delivered.since >= before
    kept = np.concatenate([[0], np.cumsum(keep)])[delivered.begin].astype(np.int64)
    return delivered._replace(
        begin=kept, low=delivered.low[keep], high=delivered.high[keep], since=delivered.since[keep]
    )


@njit(cache=True)
def is_delivered(delivered: Delivered, stream: Array, number: Array) -> Array:
    """For each (stream, number) whether it was delivered before."""
    prefix, islands, low, high = delivered.prefix, delivered.begin, delivered.low, delivered.high
    found = np.empty(len(stream), np.bool_)
    for i in range(len(stream)):
        found[i] = number[i] <= prefix[stream[i]] or _on_island(islands, low, high, stream[i], number[i])
    return found


@njit(cache=True)
def first_blocked(rows: Rows, delivered: Delivered, arrival: Array) -> tuple[int, int, int]:
    """The oldest row that waits for something that is not here: (row, which cause or NOBODY, number)."""
    thresholds = _thresholds(rows, delivered)
    found = which = NOBODY
    number = 0
    for row in range(len(rows.stream)):
        if found != NOBODY and arrival[row] >= arrival[found]:
            continue
        for place in range(rows.cause_begin[row + 1] - rows.cause_begin[row] + 1):
            if thresholds[rows.cause_begin[row] + row + place] == ABSENT:
                found, which = row, place - 1
                number = _named(rows, row, place)[1]
                break
    if found == NOBODY and len(rows.stream):  # they wait for each other
        found, number = 0, rows.number[0] - 1
    return found, which, number


@njit(cache=True)
def number_within(receiver: Array, next_index: Array) -> Array:
    """The index of each of these messages, in their order, at its receiver; the next one is moved on."""
    index = np.empty(len(receiver), np.int64)
    for i in range(len(receiver)):
        index[i] = next_index[receiver[i]]
        next_index[receiver[i]] += 1
    return index

"""The bulk twin of the hold-back engine: a batch of messages against what was delivered before.

Messages stand sorted by (stream, number); a stream is whatever is numbered 1, 2, 3, …: the messages of one
source to one receiver. Message n of a stream waits for n - 1 and for its causes (stream, number). What was
delivered is, per stream, a prefix 1 … D and, where patience ended, islands beyond it.

A waiting message watches one unmet threshold at a time, as in `causet.holdback`: a message of this batch that
is not released yet, or one that is not here at all, which nothing in this batch can bring.

A message whose patience ended is forced: it does not wait for what is not here. It takes along what is held
of its own stream, but it never moves a message of another stream, whatever it claims about it: a cause of
another stream that is held and not free yet counts as missing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from causet.status import POLICIES, STATUSES

Array = np.ndarray[Any, Any]

MET, ABSENT, LOST = -1, -2, -3
"""What a threshold is, if it is not the number of a row: delivered before, not here, or given up by hand."""
NOBODY = -1
NO_PREFIX = -2
"""A prefix that no island can reach."""
HELD, DELIVERED, FLAGGED, LATE, DIVERTED = range(len(STATUSES))
WAIT, FLAG, DIVERT = range(len(POLICIES))


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
    """What was given up: sorted by (stream, number)."""

    stream: Array
    number: Array


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
def _is_given(given: Given, stream: int, number: int) -> bool:
    low, high = 0, len(given.stream)
    while low < high:
        middle = (low + high) // 2
        if given.stream[middle] < stream or (
            given.stream[middle] == stream and given.number[middle] < number
        ):
            low = middle + 1
        else:
            high = middle
    return bool(low < len(given.stream) and given.stream[low] == stream and given.number[low] == number)


@njit(cache=True)
def _thresholds(rows: Rows, delivered: Delivered, lost: Given) -> Array:
    """What every threshold of every row is, in their order: the previous one of its stream, then its causes.

    Each is the number of a row; or MET if it was delivered before, ABSENT if it is not here, LOST if it is
    not here and was given up by hand.
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
                if found[at] == ABSENT and len(lost.stream) and _is_given(lost, stream, number):
                    found[at] = LOST
            at += 1
    return found


@njit(cache=True, inline="always")
def _look(
    cause_begin: Array,
    thresholds: Array,
    row: int,
    status: Array,
    place: Array,
    watcher: Array,
    next_watcher: Array,
) -> bool:
    """Whether the row is free; if not, it watches its next unmet threshold, if that can still be met."""
    last = cause_begin[row + 1] - cause_begin[row]
    while place[row] <= last:
        found = thresholds[cause_begin[row] + row + place[row]]
        if found >= 0 and status[found] == HELD:
            next_watcher[row] = watcher[found]
            watcher[found] = row
            return False
        if found == ABSENT:
            return False
        place[row] += 1
    return True


@njit(cache=True)
def _force(rows: Rows, overdue: Array, status: Array, forced: Array, last_forced: Array) -> bool:
    """A message whose patience ended does not wait any longer, and neither do those before it in its stream:
    within a stream the order is kept. Whether there is any.

    `last_forced` gets, for each row, the last one up to it in its stream that is forced.
    """
    found = False
    drags = False
    for row in range(len(status) - 1, -1, -1):
        if row + 1 < len(status) and rows.stream[row + 1] != rows.stream[row]:
            drags = False
        if status[row] == HELD:
            drags = drags or overdue[row]
            forced[row] = drags
            found = found or drags
    for row in range(len(status)):
        if forced[row]:
            last_forced[row] = row
        elif row and rows.stream[row - 1] == rows.stream[row]:
            last_forced[row] = last_forced[row - 1]
    return found


FREE, WATCHES, BEHIND = 0, 1, 2
"""What a forced row is: free; it watches another forced one; or it stands behind one that is not forced."""


@njit(cache=True)
def _look_forced(
    rows: Rows,
    thresholds: Array,
    row: int,
    forced: Array,
    last_forced: Array,
    status: Array,
    place: Array,
    watcher: Array,
    next_watcher: Array,
) -> int:
    """A forced row waits for other forced ones only: an effect never leaves before a cause that leaves too.
    For a message that is not here, that is the last forced one before it in its stream, a cause as well."""
    last = rows.cause_begin[row + 1] - rows.cause_begin[row]
    base = rows.cause_begin[row] + row
    while place[row] <= last:
        found = thresholds[base + place[row]]
        if found == ABSENT:
            stream, number = _named(rows, row, place[row])
            at = _first_from(rows.number, rows.begin[stream], rows.begin[stream + 1], number)
            if at > rows.begin[stream]:
                found = last_forced[at - 1]
        if found >= 0 and found != row and forced[found] and status[found] == HELD:
            next_watcher[row] = watcher[found]
            watcher[found] = row
            return WATCHES
        place[row] += 1
    for at in range(last + 1):
        found = thresholds[base + at]
        if found >= 0 and status[found] == HELD:
            return BEHIND
    return FREE


@njit(cache=True)
def release(
    rows: Rows, delivered: Delivered, policy: int, overdue: Array, claimed: Array, lost: Given
) -> Released:
    """Release what is free; then deal with those that are overdue as the policy says.

    `claimed` says which rows an earlier message did not wait for any longer: they are late. What was given up
    by hand (`lost`) is not waited for.
    """
    count = len(rows.stream)
    cause_begin = rows.cause_begin
    status = np.zeros(count, np.int8)
    order = np.empty(count, np.int64)
    place = np.zeros(count, np.int64)
    watcher = np.full(count, NOBODY, np.int64)
    next_watcher = np.full(count, NOBODY, np.int64)
    forced = np.zeros(count, np.bool_)
    last_forced = np.full(count, NOBODY, np.int64)
    thresholds = _thresholds(rows, delivered, lost)
    some_lost = len(lost.stream) > 0
    missing_row = np.empty(16, np.int64)
    missing_cause = np.empty(16, np.int64)
    missing = 0
    done = ends = 0  # order[done:ends] are free and wait for their turn
    for row in range(count):
        if _look(cause_begin, thresholds, row, status, place, watcher, next_watcher):
            order[ends] = row
            ends += 1
    queued = np.zeros(count, np.bool_)
    queued[order[:ends]] = True
    behind = np.empty(count, np.int64)
    behinds = 0
    forcing = False
    stuck = 0
    while True:
        while done < ends:
            row = order[done]
            done += 1
            status[row] = DELIVERED
            unmet = 0
            if forced[row] or some_lost:
                for at in range(cause_begin[row + 1] - cause_begin[row] + 1):
                    found = thresholds[cause_begin[row] + row + at]
                    if found in (ABSENT, LOST) or (found >= 0 and status[found] == HELD):
                        unmet += 1
                        if missing == len(missing_row):
                            missing_row = np.concatenate((missing_row, missing_row))
                            missing_cause = np.concatenate((missing_cause, missing_cause))
                        missing_row[missing] = row
                        missing_cause[missing] = cause_begin[row] + at - 1 if at else NOBODY
                        missing += 1
                        if found >= 0:
                            claimed[found] = True
            if unmet:
                status[row] = FLAGGED
            if claimed[row]:
                status[row] = LATE
            waiting = watcher[row]
            watcher[row] = NOBODY
            while waiting != NOBODY:
                following = next_watcher[waiting]
                if queued[waiting]:
                    pass
                elif forced[waiting]:
                    state = _look_forced(
                        rows,
                        thresholds,
                        waiting,
                        forced,
                        last_forced,
                        status,
                        place,
                        watcher,
                        next_watcher,
                    )
                    if state == FREE:
                        queued[waiting] = True
                        order[ends] = waiting
                        ends += 1
                    elif state == BEHIND:
                        behind[behinds] = waiting
                        behinds += 1
                elif _look(cause_begin, thresholds, waiting, status, place, watcher, next_watcher):
                    queued[waiting] = True
                    order[ends] = waiting
                    ends += 1
                waiting = following
        if policy != FLAG:
            break
        if not forcing:
            forcing = True
            if not _force(rows, overdue, status, forced, last_forced):
                break
            # Forced rows watch other things than before: all watching begins anew.
            watcher[:] = NOBODY
            for row in range(count):
                if status[row] != HELD:
                    continue
                if not forced[row]:
                    _look(cause_begin, thresholds, row, status, place, watcher, next_watcher)
                    continue
                place[row] = 0
                state = _look_forced(
                    rows, thresholds, row, forced, last_forced, status, place, watcher, next_watcher
                )
                if state == FREE:
                    queued[row] = True
                    order[ends] = row
                    ends += 1
                elif state == BEHIND:
                    behind[behinds] = row
                    behinds += 1
            continue
        if behinds:
            # Nothing that they stand behind is free to leave now, so they go without it.
            for at in range(behinds):
                queued[behind[at]] = True
                order[ends] = behind[at]
                ends += 1
            behinds = 0
            continue
        # Messages that wait for each other in a circle, which honest sources do not make: one has to begin.
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
                for at in range(cause_begin[row + 1] - cause_begin[row] + 1):
                    found = thresholds[cause_begin[row] + row + at]
                    if found in (ABSENT, LOST) or (found >= 0 and status[found] in (HELD, DIVERTED)):
                        if missing == len(missing_row):
                            missing_row = np.concatenate((missing_row, missing_row))
                            missing_cause = np.concatenate((missing_cause, missing_cause))
                        missing_row[missing] = row
                        missing_cause[missing] = cause_begin[row] + at - 1 if at else NOBODY
                        missing += 1
                status[row] = DIVERTED
                order[ends] = row
                ends += 1
    return Released(order[:ends], status, missing_row[:missing], missing_cause[:missing])


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
    return Delivered(prefix, begin, low[:ends].copy(), high[:ends].copy(), since[:ends].copy())


@njit(cache=True)
def close_holes(delivered: Delivered, most: int, closed: Array) -> Delivered:
    """Of a stream with more than so many islands, the lowest holes are closed: the prefix goes on over them.

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
    """Islands that came up before a moment are forgotten altogether, and so are the lowest ones of a stream
    with more than so many."""
    sizes = np.diff(delivered.begin)
    above = np.repeat(delivered.begin[1:], sizes) - np.arange(len(delivered.low))
    keep = (delivered.since >= before) & (above <= most)
    kept = np.concatenate([[0], np.cumsum(keep)])[delivered.begin].astype(np.int64)
    return delivered._replace(
        begin=kept, low=delivered.low[keep], high=delivered.high[keep], since=delivered.since[keep]
    )


@njit(cache=True)
def mark_late(rows: Rows, delivered: Delivered, claims: Given) -> Array:
    """Which rows come too late: a message that named one left without it, or the next one of its stream."""
    late = np.zeros(len(rows.stream), np.bool_)
    for claim in range(len(claims.stream)):
        stream = claims.stream[claim]
        at = _place_of(rows.number, rows.begin[stream], rows.begin[stream + 1], claims.number[claim])
        if at != ABSENT:
            late[at] = True
    for row in range(len(rows.stream)):
        stream = rows.stream[row]
        if delivered.begin[stream] < delivered.begin[stream + 1] and _on_island(
            delivered.begin, delivered.low, delivered.high, stream, rows.number[row] + 1
        ):
            late[row] = True
    return late


@njit(cache=True)
def is_delivered(delivered: Delivered, stream: Array, number: Array) -> Array:
    """For each (stream, number) whether it was delivered before."""
    prefix, islands, low, high = delivered.prefix, delivered.begin, delivered.low, delivered.high
    found = np.empty(len(stream), np.bool_)
    for i in range(len(stream)):
        found[i] = number[i] <= prefix[stream[i]] or _on_island(islands, low, high, stream[i], number[i])
    return found


@njit(cache=True)
def first_blocked(rows: Rows, delivered: Delivered, arrival: Array, lost: Given) -> tuple[int, int, int]:
    """The oldest row that waits for something that is not here: (row, which cause or NOBODY, number)."""
    thresholds = _thresholds(rows, delivered, lost)
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

"""The bulk twin of the hold-back engine: a batch of messages against what was delivered before.

A message waits until all its thresholds are met (`thresholds`). As in `causet.holdback`, it watches one unmet
threshold at a time: a message of this batch that is not released yet, or one that is not here at all, which
nothing in this batch can bring.

A message whose patience ended is forced: it does not wait for what is not here. It takes along what is held
of its own stream, but it never moves a message of another stream, whatever it claims about it: a cause of
another stream that is held and not free yet counts as missing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from causet.kernels.arrays import Array
from causet.kernels.streams.delivered import Delivered
from causet.kernels.streams.thresholds import (
    ABSENT,
    LOST,
    NONE,
    Given,
    Rows,
    Thresholds,
    cause_at,
    last_before,
    thresholds_of,
)
from causet.status import POLICIES, STATUSES

HELD, DELIVERED, FLAGGED, LATE, DIVERTED = range(len(STATUSES))
WAIT, FLAG, DIVERT = range(len(POLICIES))


class Released(NamedTuple):
    """What became of the rows."""

    order: Array
    """the rows that leave, in their order"""
    status: Array
    """for each row what it has become"""
    missing_row: Array
    missing_cause: Array
    """for each threshold that was not met when a flagged or diverted row left: the row, and which of its
    causes, or NONE for the previous number of its own stream"""


class Batch(NamedTuple):
    """Rows, what they wait for, and what has become of them."""

    rows: Rows
    thresholds: Thresholds
    status: Array
    forced: Array
    """for each row the last one up to it in its stream that is forced, or NONE: a forced row has itself"""
    claimed: Array
    """for each row whether a message that named it did not wait for it any longer"""
    unmet: Array
    """for each threshold whether its row left without it"""
    head: Array
    """for each row the head of its message: itself, if it is not a part"""


AT, FIRST, NEXT = 0, 1, 2
"""The columns of `watch`: for each row the threshold that it looks at (those before are met), the first of
the rows that watch it, and the next one that watches the same row as this one."""
FREE, WAITS, BEHIND = 0, 1, 2
"""What a row is: free to leave; waiting; or forced, and only rows that are not forced stand before it."""


@njit(cache=True, inline="always")
def _look(begin: Array, needs: Array, status: Array, watch: Array, row: int) -> int:
    """A row is free if all its thresholds are met; if not, it watches the next one that can still be met."""
    for at in range(watch[row, AT], begin[row + 1]):
        other = needs[at]
        if other == ABSENT:
            return WAITS
        if other >= 0 and status[other] == HELD:
            watch[row, AT], watch[row, NEXT], watch[other, FIRST] = at, watch[other, FIRST], row
            return WAITS
    return FREE


@njit(cache=True)
def _look_forced(
    rows: Rows, begin: Array, needs: Array, status: Array, watch: Array, forced: Array, row: int
) -> int:
    """A forced row waits for other forced ones only: an effect never leaves before a cause that leaves too.
    For a message that is not here, that is the last forced one before it in its stream, a cause as well."""
    for at in range(watch[row, AT], begin[row + 1]):
        other = needs[at]
        if other == ABSENT:
            before = last_before(rows, row, at)
            if before != NONE:
                other = forced[before]
        if other >= 0 and other != row and forced[other] == other and status[other] == HELD:
            watch[row, AT], watch[row, NEXT], watch[other, FIRST] = at, watch[other, FIRST], row
            return WAITS
    for at in range(begin[row], begin[row + 1]):
        if needs[at] >= 0 and status[needs[at]] == HELD:
            return BEHIND
    return FREE


@njit(cache=True)
def _leaves_without(
    begin: Array, needs: Array, status: Array, claimed: Array, unmet: Array, head: Array, row: int
) -> bool:
    """Whether a row leaves before all its thresholds are met: these are marked, and the messages claimed."""
    found = False
    for at in range(begin[row], begin[row + 1]):
        other = needs[at]
        if other in (ABSENT, LOST) or (other >= 0 and status[other] in (HELD, DIVERTED)):
            found = unmet[at] = True
            if other >= 0:
                claimed[head[other]] = True
    return found


@njit(cache=True)
def _run(batch: Batch, some_lost: bool, order: Array, done: int) -> int:
    """Deliver what is free, and what becomes free by that, until nothing is. `order` goes on from `done` with
    the rows that leave; returns where it ends.

    When nothing is free, forced rows go without what is not forced; and where they wait for each other in a
    cycle, which honest sources do not make, one of them has to begin.
    """
    # An array of a tuple costs a reference each time it is named, so they are named once.
    rows, (begin, needs), status, forced, claimed, unmet, head = batch
    count = len(status)
    watch = np.full((count, 3), NONE, np.int64)
    looks = NONE  # the first of the rows to look at; to begin with, all that are held
    for row in range(count - 1, -1, -1):
        if status[row] == HELD:
            watch[row, AT], watch[row, NEXT], looks = begin[row], looks, row
    behind = np.empty(count, np.int64)
    behinds = 0
    stuck = 0
    ends = done
    while True:
        while looks != NONE:
            row, looks = looks, watch[looks, NEXT]
            if status[row] != HELD:
                continue
            if forced[row] == row:
                state = _look_forced(rows, begin, needs, status, watch, forced, row)
            else:
                state = _look(begin, needs, status, watch, row)
            if state == FREE:
                order[ends] = row
                ends += 1
            elif state == BEHIND:
                behind[behinds] = row
                behinds += 1
        if done == ends and behinds:
            order[ends : ends + behinds] = behind[:behinds]
            ends += behinds
            behinds = 0
        if done == ends:
            while stuck < count and (forced[stuck] != stuck or status[stuck] != HELD):
                stuck += 1
            if stuck == count:
                return ends
            order[ends] = head[stuck]
            ends += 1
        row = order[done]
        done += 1
        status[row] = DELIVERED
        exact = not some_lost and forced[row] != row  # then all its thresholds are met
        if not exact and _leaves_without(begin, needs, status, claimed, unmet, head, row):
            status[row] = FLAGGED
        if claimed[row]:
            status[row] = LATE
        looks, watch[row, FIRST] = watch[row, FIRST], NONE


@njit(cache=True)
def _force(rows: Rows, status: Array, overdue: Array, forced: Array, head: Array) -> bool:
    """Force the rows whose patience ended, and those before them in their streams, whose order is kept; each
    with all rows of its message. Returns whether there are any."""
    found = False
    more = True
    while more:
        more = drags = False
        for row in range(len(status) - 1, -1, -1):
            if row + 1 < len(status) and rows.stream[row + 1] != rows.stream[row]:
                drags = False
            if status[row] == HELD:
                drags = drags or overdue[row] or forced[head[row]] != NONE
                if drags and forced[row] == NONE:
                    forced[row], forced[head[row]] = row, head[row]
                    found = more = True
    for row in range(1, len(status)):
        if forced[row] == NONE and rows.stream[row - 1] == rows.stream[row]:
            forced[row] = forced[row - 1]
    return found


@njit(cache=True)
def _divert(batch: Batch, overdue: Array, order: Array, ends: int) -> int:
    """Divert the rows whose patience ended. `order` goes on with them; returns where it ends."""
    _, (begin, needs), status, _, claimed, unmet, head = batch
    for row in range(len(status)):
        if overdue[row] and status[row] == HELD:
            _leaves_without(begin, needs, status, claimed, unmet, head, row)
            status[row] = DIVERTED
            order[ends] = row
            ends += 1
    return ends


@njit(cache=True)
def _missing(batch: Batch, order: Array) -> tuple[Array, Array]:
    """The thresholds that messages left without, in the order in which these left: rows and causes. Those of
    parts are those of their heads too."""
    rows, (begin, _), _, _, _, unmet, head = batch
    count = unmet.sum()
    row_of, cause_of = np.empty(count, np.int64), np.empty(count, np.int64)
    ends = 0
    for row in order if count else order[:0]:
        for at in range(begin[row], begin[row + 1]):
            if unmet[at] and head[row] == row:
                row_of[ends], cause_of[ends] = row, cause_at(rows, row, at)
                ends += 1
    return row_of[:ends], cause_of[:ends]


@njit(cache=True)
def release(
    rows: Rows,
    delivered: Delivered,
    policy: int,
    overdue: Array,
    claimed: Array,
    lost: Given,
    head: Array,
) -> Released:
    """Release what is free; then deal with what is overdue as the policy says.

    `claimed` says which rows an earlier message did not wait for any longer: they are late. What was given up
    by hand (`lost`) is not waited for.
    """
    count = len(rows.stream)
    thresholds = thresholds_of(rows, delivered, lost)
    status, forced = np.zeros(count, np.int8), np.full(count, NONE, np.int64)
    unmet = np.zeros(len(thresholds.row), np.bool_)
    batch = Batch(rows, thresholds, status, forced, claimed, unmet, head)
    order = np.empty(count, np.int64)
    some_lost = len(lost.stream) > 0
    ends = _run(batch, some_lost, order, 0)
    if policy == FLAG and _force(rows, status, overdue, forced, head):
        ends = _run(batch, some_lost, order, ends)
    if policy == DIVERT:
        ends = _divert(batch, overdue, order, ends)
    order = order[:ends]
    missing_row, missing_cause = _missing(batch, order)
    return Released(order, status, missing_row, missing_cause)

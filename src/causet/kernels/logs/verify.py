"""Did every process deliver in causal order? One column of knowledge per sender, many columns at a time.

    m precedes n    when n's sender sent or delivered m before it sent n, transitively

The messages of one sender k are numbered as it sends them. What a process knows of k is a number: how many of
k's messages precede whatever it sends next. A message carries its sender's knowledge; delivering it teaches
that. So n came too early at q exactly if the first message of some k to q that q has not delivered has a
number that n's stamp covers: again a counter that has to reach a threshold.

Columns do not depend on each other, so groups of them can be given to different tasks. Events are taken in
the order of their positions, which is a causal one, so a stamp has to be kept only while its message is under
way.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numba import njit

from causet.kernels.arrays import Array
from causet.kernels.logs.causal_pass import ROOM, Passed, causal_pass
from causet.kernels.logs.pages import ABSENT, Pages, processes_of
from causet.kernels.logs.tables import Slots, find, give_back, new_slots, stretched, take_slot, with_free

EARLY, AGAIN, STRANGER, NEVER = 0, 1, 2, 3
"""Findings: delivered before something that precedes it; delivered again; delivered where not addressed;
never delivered where addressed."""
REPORT = 1 << 14
"""Findings that are handed on at a time, about."""


class Addressed(NamedTuple):
    """Whom messages are for, sends in the order of their numbers."""

    sends: Array
    ends: Array
    """for each send, where its targets end"""
    targets: Array


class Senders(NamedTuple):
    """The processes whose columns are computed together, and what they are going to send."""

    column_of: Array
    """for each process its column, or ABSENT"""
    sends: Array
    ends: Array
    targets: Array
    """as in `Addressed`"""
    until: Array
    """for each column, where its sends end in `sends`"""
    pair_first: Array
    """for each column and target, where its queue begins"""
    names: int
    """how many can be targets"""


class Columns(NamedTuple):
    """What is known so far."""

    sent: Array
    """for each column how many messages were sent"""
    knows: Array
    """for each process and column how many of that sender's messages precede what it sends next"""
    at: Array
    """for each column, its next send in `Senders.sends`"""
    queue: Array
    """the numbers of the messages for each target, as they are sent"""
    sender_event: Array
    """for each of them its send"""
    arrived: Array
    """and whether it was delivered"""
    tail: Array
    head: Array
    """for each column and target: how many were sent, and how many were delivered before the first that was
    not"""
    findings: Array
    counts: Array


class Flying(NamedTuple):
    """Messages under way, in slots by their sends."""

    table: Slots
    stamp: Array
    """for each slot what the message's sender knew, the message itself included"""
    left: Array
    """for each slot how many deliveries are to come"""
    number: Array
    """for each slot the number of its message within its column, if its sender has one here"""
    sender: Array


def verify_columns(pages: Pages, senders: Array, addressed: Addressed, names: int) -> Iterator[Array]:
    """Judge the messages of these senders, wherever they are delivered.

    Yields findings, rows of (what, delivery, process, send, missing): for EARLY, `missing` is the send of a
    message that should have come first, the earliest one of the first sender that has one; else it is the
    send again. NEVER has no delivery, and its process is a target, one of `names`. Levels and repaired times
    have to be in the pages.
    """
    here = _senders(pages.first, senders, addressed, names)
    columns = _nothing_sent(len(pages.first) - 1, here)
    flying = _nothing_flies(1024, len(senders))
    for passed in causal_pass(pages):
        flying = _with_room(flying, int(np.count_nonzero(passed.info > 1)))
        _judge(passed, here, columns, flying)
        if columns.counts[0] >= REPORT:
            yield _taken(columns)
    yield _taken(columns)
    yield _never_delivered(columns, here)


def _taken(columns: Columns) -> Array:
    """The findings since they were taken last."""
    found: Array = columns.findings[: columns.counts[0]].copy()
    columns.counts[0] = 0
    return found


def _never_delivered(columns: Columns, here: Senders) -> Array:
    """What is still expected in the end."""
    pair = np.repeat(np.arange(len(here.pair_first) - 1), np.diff(here.pair_first))
    sent = np.arange(len(pair)) - here.pair_first[pair] < columns.tail[pair]
    never = np.flatnonzero(sent & ~columns.arrived[: len(pair)])
    sends = columns.sender_event[never]
    return np.stack(
        [np.full(len(never), NEVER), np.zeros(len(never), np.int64), pair[never] % here.names, sends, sends],
        axis=1,
    )


def _senders(first: Array, senders: Array, addressed: Addressed, names: int) -> Senders:
    column_of = np.full(len(first) - 1, ABSENT, np.int32)
    column_of[senders] = np.arange(len(senders))
    counts = np.diff(addressed.ends, prepend=0)
    owner = column_of[processes_of(first, addressed.sends)]
    pairs = np.repeat(owner.astype(np.int64) * names, counts) + addressed.targets
    return Senders(
        column_of=column_of,
        sends=addressed.sends,
        ends=addressed.ends,
        targets=addressed.targets,
        until=np.searchsorted(addressed.sends, first[senders + 1]),
        pair_first=np.concatenate([[0], np.cumsum(np.bincount(pairs, minlength=len(senders) * names))]),
        names=names,
    )


def _nothing_sent(processes: int, here: Senders) -> Columns:
    width = len(here.until)
    room = int(here.pair_first[-1])
    return Columns(
        sent=np.zeros(width, np.int32),
        knows=np.zeros((processes, width), np.int32),
        at=np.concatenate([[0], here.until[:-1]]).astype(np.int64),
        queue=np.zeros(room, np.int32),
        sender_event=np.zeros(room, np.int64),
        arrived=np.zeros(room, np.bool_),
        tail=np.zeros(width * here.names, np.int32),
        head=np.zeros(width * here.names, np.int32),
        findings=np.empty((REPORT + 2 * ROOM, 5), np.int64),  # each event has two at most
        counts=np.zeros(1, np.int64),
    )


def _nothing_flies(slots: int, width: int) -> Flying:
    return Flying(
        table=new_slots(slots),
        stamp=np.zeros((slots, width), np.int32),
        left=np.zeros(slots, np.int32),
        number=np.zeros(slots, np.int32),
        sender=np.zeros(slots, np.int32),
    )


def _with_room(flying: Flying, messages: int) -> Flying:
    """The same messages under way, with slots for this many more."""
    table = with_free(flying.table, messages)
    if table is flying.table:
        return flying
    return Flying(table, *(stretched(rows, len(table.free)) for rows in flying[1:]))


@njit(cache=True)
def _judge(passed: Passed, here: Senders, columns: Columns, flying: Flying) -> None:
    for i in range(len(passed.events)):
        e, p, info = passed.events[i], passed.processes[i], passed.info[i]
        if info > 0:
            _send(e, p, info - 1, here, columns, flying)
        elif info < 0:  # its send comes first among the causes of a delivery
            _deliver(e, p, passed.links[passed.link_first[i]], here, columns, flying)


@njit(cache=True)
def _send(e: int, p: int, deliveries: int, here: Senders, columns: Columns, flying: Flying) -> None:
    column = here.column_of[p]
    number = 0
    if column != ABSENT:
        columns.sent[column] += 1
        number = columns.sent[column]
        columns.knows[p, column] = number
        at = columns.at[column]
        while at < here.until[column] and here.sends[at] < e:
            at += 1
        columns.at[column] = at
        if at < here.until[column] and here.sends[at] == e:
            for i in range(here.ends[at - 1] if at else 0, here.ends[at]):
                pair = column * here.names + here.targets[i]
                last = here.pair_first[pair] + columns.tail[pair]
                if columns.tail[pair] and columns.queue[last - 1] == number:
                    continue  # the same target twice
                columns.queue[last] = number
                columns.sender_event[last] = e
                columns.tail[pair] += 1
    if deliveries:
        slot = take_slot(flying.table, e)
        flying.stamp[slot, :] = columns.knows[p, :]
        flying.left[slot] = deliveries
        flying.number[slot] = number
        flying.sender[slot] = p


@njit(cache=True)
def _deliver(e: int, p: int, send: int, here: Senders, columns: Columns, flying: Flying) -> None:
    at = find(flying.table.events, send)
    slot = flying.table.slots[at]
    own = here.column_of[flying.sender[slot]]
    for column in range(len(columns.sent)):
        covered = flying.stamp[slot, column] - (1 if column == own else 0)
        pair = column * here.names + p
        if columns.head[pair] < columns.tail[pair]:
            first = here.pair_first[pair] + columns.head[pair]
            if columns.queue[first] <= covered:
                missing = columns.sender_event[first]
                _find(columns, EARLY, e, p, send, missing)
                break
    columns.knows[p, :] = np.maximum(columns.knows[p, :], flying.stamp[slot, :])
    if own != ABSENT:
        _arrive(e, p, send, flying.number[slot], own, here, columns)
    flying.left[slot] -= 1
    if not flying.left[slot]:
        give_back(flying.table, at)


@njit(cache=True)
def _arrive(e: int, p: int, send: int, number: int, column: int, here: Senders, columns: Columns) -> None:
    """Cross the message off the target's queue."""
    pair = column * here.names + p
    begin = here.pair_first[pair]
    low, high = 0, columns.tail[pair]
    while low < high:
        middle = (low + high) // 2
        if columns.queue[begin + middle] < number:
            low = middle + 1
        else:
            high = middle
    if low == columns.tail[pair] or columns.queue[begin + low] != number:
        _find(columns, STRANGER, e, p, send, send)
        return
    if columns.arrived[begin + low]:
        _find(columns, AGAIN, e, p, send, send)
    columns.arrived[begin + low] = True
    while columns.head[pair] < columns.tail[pair] and columns.arrived[begin + columns.head[pair]]:
        columns.head[pair] += 1


@njit(cache=True)
def _find(columns: Columns, what: int, e: int, p: int, send: int, missing: int) -> None:
    row = columns.findings[columns.counts[0]]
    row[0], row[1], row[2], row[3], row[4] = what, e, p, send, missing
    columns.counts[0] += 1

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
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from causet.kernels.logs.causal_pass import AT, LEFT, WANTED, Merge, begin_merge, next_event, pass_event
from causet.kernels.logs.pages import ABSENT, Pages, View
from causet.kernels.logs.waiting import find, remove

Array = np.ndarray[Any, Any]

EARLY, AGAIN, STRANGER = 0, 1, 2
"""Findings: delivered before something that precedes it; delivered again; delivered where not addressed."""
REPORT = 1 << 14
"""Findings that are handed on at a time."""

ALL, PAGE, FULL, MORE = 0, 1, 2, 3
"""Why the kernel stopped: all events are done; a page is missing; the findings are full; too many messages
are under way for the tables."""


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
    """beside each of them its send"""
    arrived: Array
    """and whether it was delivered"""
    tail: Array
    head: Array
    """for each column and target: how many were sent, and how many were delivered before the first that was
    not"""
    findings: Array
    counts: Array


class Flying(NamedTuple):
    """Messages under way."""

    sends: Array
    """a table of their sends, open addressing"""
    slots: Array
    """beside each of them its slot"""
    free: Array
    """a stack of free slots"""
    stamp: Array
    """for each slot what the message's sender knew, the message itself included"""
    left: Array
    """for each slot how many deliveries are to come"""
    number: Array
    """for each slot the number of its message within its column, if its sender has one here"""
    sender: Array


def verify_columns(
    pages: Pages, senders: Array, addressed: Addressed, names: int
) -> Iterator[tuple[Array, Columns, Senders]]:
    """Judge the messages of these senders, wherever they are delivered.

    Yields findings, rows of (what, delivery, send, column, send): for EARLY the second send is that of a
    message that should have come first, the earliest one of the first sender that has one. At the end comes
    an empty one, beside which the state tells what is still expected. Blocks and repaired times have to be in
    the pages.
    """
    here = _senders(pages.first, senders, addressed, names)
    columns = _nothing_sent(len(pages.first) - 1, here)
    flying = _nothing_flies(1024, len(senders))
    free = np.array([1024], np.int64)
    merge = begin_merge(pages)
    while True:
        why = _judge(pages.view, merge, here, columns, flying, free)
        if why == PAGE:
            pages.fetch(int(merge.counts[WANTED]))
        elif why == MORE:
            flying = _more_room(flying, free)
        else:
            found = columns.findings[: columns.counts[0]].copy()
            columns.counts[0] = 0
            if len(found):
                yield found, columns, here
            if why == ALL:
                yield found[:0], columns, here
                return


def still_expected(columns: Columns, here: Senders) -> tuple[Array, Array]:
    """(sends, targets) of what was never delivered where it was addressed."""
    pair = np.repeat(np.arange(len(here.pair_first) - 1), np.diff(here.pair_first))
    sent = np.arange(len(pair)) - here.pair_first[pair] < columns.tail[pair]
    never = np.flatnonzero(sent & ~columns.arrived[: len(pair)])
    return columns.sender_event[never], pair[never] % here.names


def _senders(first: Array, senders: Array, addressed: Addressed, names: int) -> Senders:
    column_of = np.full(len(first) - 1, ABSENT, np.int32)
    column_of[senders] = np.arange(len(senders))
    counts = np.diff(addressed.ends, prepend=0)
    owner = column_of[np.searchsorted(first, addressed.sends, side="right") - 1]
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
        findings=np.empty((REPORT, 5), np.int64),
        counts=np.zeros(1, np.int64),
    )


def _nothing_flies(slots: int, width: int) -> Flying:
    return Flying(
        sends=np.full(4 * slots, ABSENT, np.int64),
        slots=np.zeros(4 * slots, np.int32),
        free=np.arange(slots - 1, -1, -1, dtype=np.int32),
        stamp=np.zeros((slots, width), np.int32),
        left=np.zeros(slots, np.int32),
        number=np.zeros(slots, np.int32),
        sender=np.zeros(slots, np.int32),
    )


def _more_room(flying: Flying, free: Array) -> Flying:
    """Twice as many slots; what flies stays where it is."""
    slots, width = flying.stamp.shape
    grown = _nothing_flies(2 * slots, width)
    for old, new in ((flying.stamp, grown.stamp), (flying.left, grown.left), (flying.number, grown.number)):
        new[:slots] = old
    grown.sender[:slots] = flying.sender
    _rehash(flying.sends, flying.slots, grown.sends, grown.slots)
    grown.free[:slots] = np.arange(2 * slots - 1, slots - 1, -1)
    free[0] = slots
    return grown


@njit(cache=True)
def _rehash(keys: Array, values: Array, table: Array, beside: Array) -> None:
    for i in range(len(keys)):
        if keys[i] != ABSENT:
            at = find(table, keys[i])
            table[at] = keys[i]
            beside[at] = values[i]


@njit(cache=True)
def _judge(view: View, merge: Merge, here: Senders, columns: Columns, flying: Flying, free: Array) -> int:
    mask = (1 << view.shift) - 1
    while merge.counts[LEFT]:
        e = next_event(view, merge)
        if e == ABSENT:
            return PAGE
        slot = view.slot_of[e >> view.shift]
        info = view.info[(slot << view.shift) + (e & mask)]
        p = merge.processes[merge.counts[AT]]
        if info > 0:
            if info > 1 and not free[0]:
                return MORE
            _send(e, p, info - 1, here, columns, flying, free)
        elif info < 0:
            if columns.counts[0] + 3 > len(columns.findings):
                return FULL
            send = view.links[view.link_first[(slot << view.shift) + slot + (e & mask)]]
            _deliver(e, p, send, here, columns, flying, free)
        pass_event(merge)
    return ALL


@njit(cache=True)
def _send(
    e: int, p: int, deliveries: int, here: Senders, columns: Columns, flying: Flying, free: Array
) -> None:
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
        free[0] -= 1
        slot = flying.free[free[0]]
        at = find(flying.sends, e)
        flying.sends[at] = e
        flying.slots[at] = slot
        flying.stamp[slot, :] = columns.knows[p, :]
        flying.left[slot] = deliveries
        flying.number[slot] = number
        flying.sender[slot] = p


@njit(cache=True)
def _deliver(e: int, p: int, send: int, here: Senders, columns: Columns, flying: Flying, free: Array) -> None:
    at = find(flying.sends, send)
    slot = flying.slots[at]
    own = here.column_of[flying.sender[slot]]
    for column in range(len(columns.sent)):
        covered = flying.stamp[slot, column] - (1 if column == own else 0)
        pair = column * here.names + p
        if columns.head[pair] < columns.tail[pair]:
            first = here.pair_first[pair] + columns.head[pair]
            if columns.queue[first] <= covered:
                missing = columns.sender_event[first]
                _find(columns, EARLY, e, send, column, missing)
                break
    columns.knows[p, :] = np.maximum(columns.knows[p, :], flying.stamp[slot, :])
    if own != ABSENT:
        _arrive(e, p, send, flying.number[slot], own, here, columns)
    flying.left[slot] -= 1
    if not flying.left[slot]:
        flying.free[free[0]] = slot
        free[0] += 1
        remove(flying.sends, flying.slots, at)


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
        _find(columns, STRANGER, e, send, column, send)
        return
    if columns.arrived[begin + low]:
        _find(columns, AGAIN, e, send, column, send)
    columns.arrived[begin + low] = True
    while columns.head[pair] < columns.tail[pair] and columns.arrived[begin + columns.head[pair]]:
        columns.head[pair] += 1


@njit(cache=True)
def _find(columns: Columns, what: int, e: int, send: int, column: int, missing: int) -> None:
    row = columns.findings[columns.counts[0]]
    row[0], row[1], row[2], row[3], row[4] = what, e, send, column, missing
    columns.counts[0] += 1

"""Messages by columns: as they come, with names, and as they are held, with numbers in place of names.

The rows of the messages themselves are not here: a message knows its `place`, which is the caller's to
understand.

A message that is addressed to several groups has a number in each, and takes a row for each: the first is its
*head*, the others are *parts*. A head waits for what its parts wait for, and a part for its head, so that all
of them leave together; only the head counts as a message. A row of a third kind is a *cut* that messages wait
for (`awaited`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numba import njit

from causet.kernels.arrays import Array
from causet.kernels.streams.sorting import ascending

HEAD, PART, CUT = 0, 1, 2
"""What a row is."""


class Messages(NamedTuple):
    """Messages as they come; the parts of each behind its head, without causes."""

    receiver: pa.Array
    name: pa.Array
    """of the stream: the source, or the message's own id where messages have parents instead of numbers"""
    number: Array
    cause_begin: Array
    cause_name: pa.Array
    cause_number: Array
    place: Array
    mark: Array
    """a fingerprint of id and payload"""
    group: pa.Array | None = None
    """within which the source numbers its messages; None where all are of one"""
    cause_group: pa.Array | None = None
    """of each cause; None where it is that of its message"""
    part: Array | None = None
    """for each row whether it is a part; None where there is none"""
    cut: Array | None = None
    """for each row the number of the cut that its message names, 0 for none and for parts; None where there
    is none"""
    priority: Array | None = None
    """for each row how urgent its message is; None where all are alike"""
    brief: Array | None = None
    """for each row whether its stream is of one message, and is forgotten after the horizon; None where there
    is none"""


class Block(NamedTuple):
    """Messages whose streams and receivers are known by their numbers."""

    stream: Array
    number: Array
    receiver: Array
    arrival: Array
    place: Array
    part: Array
    """HEAD, PART or CUT"""
    cause_begin: Array
    cause_stream: Array
    cause_number: Array

    def taken(self, rows: Array) -> Block:
        """These rows, in this order."""
        begin = begins(np.diff(self.cause_begin)[rows])
        causes = _gathered(rows, self.cause_begin, self.cause_stream, self.cause_number, begin)
        return Block(
            self.stream[rows],
            self.number[rows],
            self.receiver[rows],
            self.arrival[rows],
            self.place[rows],
            self.part[rows],
            begin,
            *causes,
        )

    def joined(self, other: Block) -> Block:
        """These messages and the others, sorted by (stream, number)."""
        begin = np.concatenate([self.cause_begin, other.cause_begin[1:] + self.cause_begin[-1]])
        joined = Block(*(np.concatenate(each) for each in zip(self, other, strict=True)))
        return joined._replace(cause_begin=begin).taken(ascending(joined.stream, joined.number))

    def heads(self) -> Array:
        """For each row the head of its message."""
        rows = np.arange(len(self.stream))
        parts = np.flatnonzero(self.part == PART)
        if len(parts):
            heads = np.flatnonzero(self.part == HEAD)
            heads = heads[np.argsort(self.place[heads])]
            rows[parts] = heads[np.searchsorted(self.place[heads], self.place[parts])]
        return rows

    def selfish(self, head: Array) -> Array:
        """Which rows are of messages that depend on themselves or on a later one of one of their streams."""
        found = _selfish(
            self.stream, self.number, head, self.cause_begin, self.cause_stream, self.cause_number
        )
        return of_messages(found, head)

    def linked(self, head: Array) -> Block:
        """The same, in which each part waits for its head, and each head for those before its parts."""
        parts = np.flatnonzero(self.part == PART)
        if not len(parts):
            return self
        mine = head[parts]
        return self.waiting(
            np.concatenate([parts, mine]),
            np.concatenate([self.stream[mine], self.stream[parts]]),
            np.concatenate([self.number[mine], self.number[parts] - 1]),
        )

    def waiting(self, rows: Array, streams: Array, numbers: Array) -> Block:
        """The same, in which these rows have these causes too."""
        owner = np.repeat(np.arange(len(self.stream)), np.diff(self.cause_begin))
        owner = np.concatenate([owner, rows])
        stream = np.concatenate([self.cause_stream, streams])
        number = np.concatenate([self.cause_number, numbers])
        order = np.argsort(owner, kind="stable")
        begin = begins(np.bincount(owner, minlength=len(self.stream)))
        return self._replace(cause_begin=begin, cause_stream=stream[order], cause_number=number[order])


def owners(messages: Messages) -> Array:
    """For each row which message it is of."""
    whole = np.ones(len(messages.number), np.int64) if messages.part is None else ~messages.part
    found: Array = np.cumsum(whole) - 1
    return found


def any_of(flags: Array, owner: Array) -> Array:
    """For each row whether one of its message has the flag."""
    found: Array = np.isin(owner, owner[flags])
    return found


def of_messages(flags: Array, head: Array) -> Array:
    """For each row whether one of its message has the flag."""
    found = np.zeros(len(flags), np.bool_)
    found[head[flags]] = True
    whole: Array = found[head]
    return whole


def begins(sizes: Array) -> Array:
    """Where pieces of these sizes begin, one after the other, and where the last one ends."""
    found = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=found[1:])
    return found


@njit(cache=True)
def _gathered(rows: Array, begin: Array, stream: Array, number: Array, to: Array) -> tuple[Array, Array]:
    """The causes of these rows, one after the other; `to` has where those of each go."""
    streams, numbers = np.empty(to[-1], stream.dtype), np.empty(to[-1], number.dtype)
    for i in range(len(rows)):
        shift = begin[rows[i]] - to[i]
        for at in range(to[i], to[i + 1]):
            streams[at], numbers[at] = stream[at + shift], number[at + shift]
    return streams, numbers


@njit(cache=True)
def _selfish(
    stream: Array, number: Array, head: Array, begin: Array, cause_stream: Array, cause_number: Array
) -> Array:
    """For each row whether a cause of its message is in its own stream, and not before it."""
    found = np.zeros(len(stream), np.bool_)
    for row in range(len(stream)):
        for cause in range(begin[head[row]], begin[head[row] + 1]):
            if cause_stream[cause] == stream[row] and cause_number[cause] >= number[row]:
                found[row] = True
    return found

"""Messages by columns: as they come, with names, and as they are held, with numbers in place of names.

The rows of the messages themselves are not here: a message knows its `place`, which is the caller's to
understand.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from causet.kernels.arrays import Array
from causet.kernels.streams.sorting import ascending


class Messages(NamedTuple):
    """Messages as they come."""

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
    domain: pa.Array | None = None
    """within which the source numbers its messages, where that is not the receiver alone"""


class Block(NamedTuple):
    """Messages whose streams and receivers are known by their numbers."""

    stream: Array
    number: Array
    receiver: Array
    arrival: Array
    place: Array
    cause_begin: Array
    cause_stream: Array
    cause_number: Array

    def taken(self, rows: Array) -> Block:
        """These rows, in this order."""
        sizes = np.diff(self.cause_begin)[rows]
        begin = begins(sizes)
        causes = np.repeat(self.cause_begin[:-1][rows] - begin[:-1], sizes) + np.arange(int(sizes.sum()))
        return Block(
            self.stream[rows],
            self.number[rows],
            self.receiver[rows],
            self.arrival[rows],
            self.place[rows],
            begin,
            self.cause_stream[causes],
            self.cause_number[causes],
        )

    def joined(self, other: Block) -> Block:
        """These messages and the others, sorted by (stream, number)."""
        begin = np.concatenate([self.cause_begin, other.cause_begin[1:] + self.cause_begin[-1]])
        joined = Block(*(np.concatenate(each) for each in zip(self, other, strict=True)))
        return joined._replace(cause_begin=begin).taken(ascending(joined.stream, joined.number))

    def selfish(self) -> Array:
        """Which messages depend on themselves or on a later one of their own stream."""
        owners = np.repeat(np.arange(len(self.stream)), np.diff(self.cause_begin))
        bad = (self.cause_stream == self.stream[owners]) & (self.cause_number >= self.number[owners])
        found = np.zeros(len(self.stream), np.bool_)
        found[owners[bad]] = True
        return found


def begins(sizes: Array) -> Array:
    """Where pieces of these sizes begin, one after the other, and where the last one ends."""
    found = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=found[1:])
    return found

"""The fingerprints of messages that were taken in: the last 65,536 numbers of every stream.

They are needed only when a number comes again, which is rare and mostly soon. So they are kept beside the
state, in segments that are read from the newest to the oldest, and only as far as needed. A new segment takes
in those before it that are not much larger (as in a log-structured merge tree): there are few of them, and
every fingerprint is written again only a few times. Most numbers of a stream come one after the other, so a
run of them costs 8 bytes each.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
from numba import njit

from causet.delivery import REMEMBERED
from causet.kernels.arrays import Array
from causet.kernels.streams.sorting import ascending

KEY = "S16"
GROWTH = 2
"""A segment takes in the one before it if that is at most this many times as large."""


class Store(Protocol):
    """Where segments are kept: a map of Spark's state, or what looks like it."""

    def getValue(self, key: tuple[int]) -> Any: ...

    def updateValue(self, key: tuple[int], value: tuple[bytes]) -> None: ...

    def removeKey(self, key: tuple[int]) -> None: ...


class Segment(NamedTuple):
    """Runs of numbers, sorted by (stream, number), with a fingerprint each."""

    key: Array
    """of the streams, sorted"""
    stream: Array
    first: Array
    begin: Array
    """for each run its stream, its first number, and where its fingerprints begin; one more at the end"""
    mark: Array

    @classmethod
    def of(cls, keys: Array, stream: Array, number: Array, mark: Array) -> Segment:
        """The segment of messages that are sorted by (stream, number). A stream is a position in the keys."""
        starts = np.ones(len(stream), np.bool_)
        starts[1:] = (np.diff(stream) != 0) | (np.diff(number) != 1)
        runs = np.flatnonzero(starts)
        there = np.unique(stream[runs])
        return cls(
            keys[there],
            np.searchsorted(there, stream[runs]),
            number[runs],
            np.append(runs, len(stream)),
            mark,
        )

    def among(self, keys: Array, top: Array) -> tuple[Array, Array, Array]:
        """Streams, as positions in these keys, numbers and fingerprints; without streams that are gone, and
        without numbers that are too far below the largest one of their stream."""
        at = positions(keys, self.key)[self.stream]
        sizes = np.diff(self.begin)
        least = np.where(at >= 0, top[at] - REMEMBERED, 0) if len(top) else np.zeros(len(at), np.int64)
        useful = (at >= 0) & (self.first + sizes - 1 > least)
        stream = np.repeat(np.where(useful, at, -1), sizes)
        number = np.repeat(self.first - self.begin[:-1], sizes) + np.arange(len(self.mark))
        keep = stream >= 0
        keep &= number > np.repeat(least, sizes)
        return stream[keep], number[keep], self.mark[keep]

    def to_bytes(self) -> bytes:
        columns = [pa.array([np.ascontiguousarray(self.key).tobytes()], pa.binary())]
        columns += [pa.array([each], pa.list_(pa.int64())) for each in (self.stream, self.first, self.begin)]
        columns.append(pa.array([self.mark], pa.list_(pa.uint64())))
        batch = pa.RecordBatch.from_arrays(columns, names=list(self._fields))
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        found: bytes = sink.getvalue().to_pybytes()
        return found

    @classmethod
    def from_bytes(cls, data: bytes) -> Segment:
        with pa.ipc.open_stream(data) as reader:
            batch = reader.read_next_batch()
        keys = np.frombuffer(batch.column("key")[0].as_py(), KEY)
        rest = (batch.column(name)[0].values.to_numpy() for name in cls._fields[1:])
        return cls(keys, *rest)


@njit(cache=True)
def _look_up(
    stream: Array,
    first: Array,
    begin: Array,
    mark: Array,
    wanted: Array,
    number: Array,
    found: Array,
    marks: Array,
) -> None:
    """The fingerprints of (stream, number) pairs, where the segment has them; it has no stream below 0."""
    for i in range(len(wanted)):
        if found[i] or wanted[i] < 0:
            continue
        low, high = 0, len(stream)
        while low < high:
            middle = (low + high) // 2
            if stream[middle] < wanted[i] or (stream[middle] == wanted[i] and first[middle] <= number[i]):
                low = middle + 1
            else:
                high = middle
        run = low - 1
        if run >= 0 and stream[run] == wanted[i]:
            at = begin[run] + number[i] - first[run]
            if at < begin[run + 1]:
                found[i] = True
                marks[i] = mark[at]


def positions(table: Array, keys: Array) -> Array:
    """Where each key stands in a sorted table; -1 if it is not there."""
    at = np.searchsorted(table, keys)
    found = np.full(len(keys), -1)
    inside = np.flatnonzero(at < len(table))
    same = inside[table[at[inside]] == keys[inside]]
    found[same] = at[same]
    return found


class Marks:
    """Fingerprints by (key of a stream, number)."""

    def __init__(self, store: Store, sizes: Array) -> None:
        self._store = store
        self.sizes = sizes
        """of the segments, the newest last; a segment is stored under its position here"""

    def known(self, keys: Array, number: Array) -> tuple[Array, Array]:
        """Which of these have a fingerprint, and which one."""
        found = np.zeros(len(keys), np.bool_)
        marks = np.zeros(len(keys), np.uint64)
        for at in range(len(self.sizes) - 1, -1, -1):
            if found.all():
                break
            segment = self._segment(at)
            wanted = positions(segment.key, keys)
            _look_up(*segment[1:], wanted, number, found, marks)
        return found, marks

    def add(self, keys: Array, top: Array, stream: Array, number: Array, mark: Array) -> None:
        """Keep these fingerprints too, of messages that are sorted by (stream, number). The keys are those of
        all streams that are known, sorted, with the largest number of each: fingerprints that are of no
        use any more are dropped when segments are merged."""
        if not len(stream):
            return
        at = len(self.sizes)
        while at and self.sizes[at - 1] <= GROWTH * len(stream):
            at -= 1
            before = self._segment(at).among(keys, top)
            both = zip(before, (stream, number, mark), strict=True)
            stream, number, mark = _merged(*(np.concatenate(each) for each in both))
        for gone in range(at + 1, len(self.sizes)):
            self._store.removeKey((gone,))
        self._store.updateValue((at,), (Segment.of(keys, stream, number, mark).to_bytes(),))
        self.sizes = np.append(self.sizes[:at], len(stream))

    def _segment(self, at: int) -> Segment:
        return Segment.from_bytes(self._store.getValue((at,))[0])


def _merged(stream: Array, number: Array, mark: Array) -> tuple[Array, Array, Array]:
    """Sorted by (stream, number), the newer one of two for one number. It is quick if two sorted parts stand
    one after the other, the newer one last."""
    order = ascending(stream, number)
    stream, number = stream[order], number[order]
    last = np.ones(len(stream), np.bool_)
    last[:-1] = (np.diff(stream) != 0) | (np.diff(number) != 0)
    return stream[last], number[last], mark[order][last]

"""Rows of a stream on their way into the merge and out of it: judged, cut by time, and in order again.

Buckets hold slices of time, in turn. Beside the blobs for each bucket, every worker reports to all of them
how far the sources are.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from causet.envelope import HEARTBEAT
from causet.kernels.arrays import Array
from causet.rcclock import TICKS_PER_MS as MS
from causet.spark.streams.checkpoint import kept_end
from causet.spark.streams.merge.memory import NEVER
from causet.spark.streams.merge.rows import (
    CODE,
    IS_BEAT,
    TOO_LARGE,
    TYPE,
    Extra,
    Facts,
    Times,
    faults,
    problems,
)
from causet.spark.streams.pack import (
    FAULT,
    SIZE,
    Batches,
    from_blob,
    in_one_piece,
    is_empty,
    stretches,
    text_column,
    to_blob,
    together,
)
from causet.status import READ

SLICE = 100 * MS
"""Width of a slice of time, in ticks."""
PACKED = f"bucket int, lowest long, progress string, clock long, {READ} long, rows binary"
"""A blob of messages for one bucket; or, for every bucket, what a worker has seen of the sources or a clock
shows, and for the first one also how many rows it was given."""
FINE = -2
"""The code of a message, where a null cannot be."""


@dataclass(frozen=True)
class MergeSettings:
    """The settings of a merge of messages with certain columns. Times are in ticks."""

    times: Times
    epsilon: int
    delta: int
    sources: tuple[str, ...]
    exclude: tuple[str, ...]
    horizon: int
    buckets: int
    parts: int
    """partitions over which a batch is laid out, in the order of time"""
    most_bytes: int | None = None
    """the largest message that the sink takes, if it has a limit"""
    strict: bool = False
    """whether a row that would be diverted ends the query instead"""
    process: tuple[str, ...] = ()
    """columns of the identity under which a message is numbered: the first that has a value counts, or else
    the source"""
    by_clock: bool = False
    """whether a clock releases, too, and not only the sources"""

    source: ClassVar[str] = "source"

    @property
    def fixed(self) -> str:
        """What cannot change between runs of the same checkpoint."""
        return json.dumps({"buckets": self.buckets, "slice": SLICE})


@dataclass(frozen=True)
class Wake:
    """Lets every bucket look at what it holds: a source may have been excluded, or the clock shows more."""

    buckets: int

    def __call__(self, batches: Batches) -> Batches:
        clock, rows = None, 0
        for batch in batches:
            rows += batch.num_rows
            shown = [each * MS for each in batch.column(0).to_pylist() if each is not None]
            clock = max([*shown, *([] if clock is None else [clock])], default=None)
        if rows:
            each = {"progress": "{}", "clock": clock, READ: 0}
            yield _packed(
                list(range(self.buckets)), **{name: [value] * self.buckets for name, value in each.items()}
            )


@dataclass(frozen=True)
class Counted:
    """The times of a stream of ends that count, without those that were promised and not kept."""

    ends: Path

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            pairs = zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True)
            ended = [each if not promised or self._kept(each) else None for each, promised in pairs]
            yield pa.RecordBatch.from_arrays([pa.array(ended, pa.int64())], names=["ended"])

    def _kept(self, ended: int | None) -> bool:
        return ended is not None and kept_end(self.ends, ended).exists()


@dataclass(frozen=True)
class Judge:
    """Gives each row its code, at a time in ms: `problem_with`, for rows that Spark has not seen."""

    settings: MergeSettings

    def __call__(self, rows: pa.RecordBatch, now: int) -> pa.RecordBatch:
        texts = [each.name for each in rows.schema if _is_text(each.type)]
        extra = Extra.of(rows.schema.names, texts, self.settings.most_bytes)
        columns = [rows.column(name) for name in self.settings.times]
        missing = [column.is_null().to_numpy(zero_copy_only=False) for column in columns]
        rc, r, sequence = (column.fill_null(0).to_numpy(zero_copy_only=False) for column in columns)
        nothing = np.zeros(rows.num_rows, np.bool_)
        beat = as_numpy(pc.equal(rows.column(TYPE), HEARTBEAT).fill_null(False)) if extra.beats else nothing
        identity = [rows.column(name) for name in self.settings.process if name in texts]
        process = pc.coalesce(*(each.cast(pa.large_string()) for each in identity)) if identity else None
        facts = Facts(
            faulty=as_numpy(rows.column(FAULT).is_valid()) if extra.fault else nothing,
            nameless=is_empty(rows.column("source")),
            unnamed=is_empty(process) & ~as_numpy(process.is_null()) if process is not None else nothing,
            versionless=nothing,
            timeless=missing[0] | missing[1],
            unnumbered=missing[2],
            rc=rc,
            r=r,
            sequence=sequence,
            beat=beat,
            large=nothing
            if extra.most_bytes is None
            else as_numpy(pc.greater(rows.column(SIZE), extra.most_bytes).fill_null(False)),
        )
        code = np.where(beat, IS_BEAT, FINE).astype(np.int8)
        found = faults(facts, self.settings.times, self.settings.epsilon, in_ticks(now))
        for number, fault in reversed(list(enumerate(found))):
            code[fault] = number
        return rows.append_column(CODE, pa.array(code, mask=code == FINE))


def in_ticks(now: Any) -> Any:
    """The last tick of a ms, as a number or as a column: no message of that ms is ahead of it."""
    return now * MS + (MS - 1)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def as_numpy(column: Any) -> Array:
    found: Array = column.to_numpy(zero_copy_only=False)
    return found


def codes_of(table: pa.Table) -> Array:
    """The code of each row, FINE for a message."""
    return as_numpy(in_one_piece(table.column(CODE)).fill_null(FINE))


@dataclass(frozen=True)
class PackByTime:
    """Cuts messages and heartbeats by their slice of time; and tells all buckets how far the sources are."""

    settings: MergeSettings

    def __call__(self, batches: Batches) -> Batches:
        seen = Seen()
        for some in together(batches):
            yield self._cut(some, seen)
        if seen.read:
            yield seen.packed(self.settings.buckets)

    def _cut(self, held: list[pa.RecordBatch], seen: Seen) -> pa.RecordBatch:
        seen.read += sum(batch.num_rows for batch in held)
        table = pa.Table.from_batches(held)
        codes = codes_of(table)
        messages = (codes == IS_BEAT) | (codes == FINE)
        rc = in_one_piece(table.column(self.settings.times.rc)).fill_null(0).to_numpy(zero_copy_only=False)
        fine = table.select(["source", self.settings.times.r])
        # A message that is only too large has been sent: its source is as far as it says.
        stamped = messages | (codes == problems(self.settings.epsilon).index(TOO_LARGE))
        if not stamped.all():
            fine = fine.filter(pa.array(stamped))
        sources = text_column(fine.column("source")).dictionary_encode()
        r = in_one_piece(fine.column(self.settings.times.r)).to_numpy(zero_copy_only=False)
        largest = np.full(len(sources.dictionary), NEVER)
        np.maximum.at(largest, sources.indices.to_numpy(zero_copy_only=False), r)
        for name, value in zip(sources.dictionary.to_pylist(), largest.tolist(), strict=True):
            seen.progress[name] = max(value, seen.progress.get(name, NEVER))
        if messages.any():
            least = int(rc[messages].min())
            seen.lowest = least if seen.lowest is None else min(seen.lowest, least)
        bucket = np.where(messages, rc // SLICE % self.settings.buckets, 0).astype(np.int64)
        order = np.argsort(bucket, kind="stable")
        cuts = stretches(bucket[order])
        taken = table.take(pa.array(order))
        blobs = [to_blob(taken.slice(begin, end - begin)) for begin, end in cuts]
        return _packed([int(bucket[order[begin]]) for begin, _ in cuts], rows=blobs)


@dataclass
class Seen:
    """What a worker has seen of its rows."""

    read: int = 0
    progress: dict[str, int] = field(default_factory=dict)
    """of sources, the largest r"""
    lowest: int | None = None
    """of messages and heartbeats, the smallest r + c"""

    def packed(self, buckets: int) -> pa.RecordBatch:
        """For all buckets; what is counted for one of them."""
        nothing = [0] * (buckets - 1)
        return _packed(
            list(range(buckets)),
            lowest=[self.lowest] * buckets,
            progress=[json.dumps(self.progress)] * buckets,
            read=[self.read, *nothing],
        )


def _packed(buckets: list[int], **columns: list[Any]) -> pa.RecordBatch:
    """Rows of PACKED; a column that is not given is null."""
    kinds = {
        "lowest": pa.int64(),
        "progress": pa.string(),
        "clock": pa.int64(),
        READ: pa.int64(),
        "rows": pa.binary(),
    }
    nothing = [None] * len(buckets)
    return pa.RecordBatch.from_arrays(
        [
            pa.array(buckets, pa.int32()),
            *(pa.array(columns.get(name, nothing), kind) for name, kind in kinds.items()),
        ],
        names=["bucket", *kinds],
    )


@dataclass(frozen=True)
class UnpackInOrder:
    """Makes rows of blobs, slice by slice."""

    def __call__(self, batches: Batches) -> Batches:
        blobs: list[tuple[int, int, Any]] = []
        for batch in batches:
            for time_slice, blob in zip(batch.column("slice").to_pylist(), batch.column("rows"), strict=True):
                blobs.append((time_slice, len(blobs), blob))
        for _, _, blob in sorted(blobs, key=lambda each: each[:2]):
            yield from from_blob(blob.as_buffer()).to_batches()

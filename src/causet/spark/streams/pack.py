"""Rows as blobs on their way to and from a stateful operator.

Spark hands rows to a stateful operator one by one; as Arrow blobs, thousands at a time, they are cheap. So
before the operator every worker cuts its rows by bucket into blobs, and after it every worker makes rows of
blobs again. A blob is a batch of Arrow's stream format: nothing in it is executed, wherever it comes from.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import types as T

from causet.kernels.arrays import Array
from causet.status import COPIES, READ, UNREAD

Batches = Iterator[pa.RecordBatch]

BLOB_ROWS, BLOB_BYTES = 1 << 18, 1 << 25
"""Rows that are looked at together, at most; and bytes, about."""
OUT_ROWS, OUT_BYTES = 1 << 16, 1 << 25
"""Rows of a blob that leaves an operator, at most; and bytes, about."""
OWN = "__causet_"
"""The prefix of our own columns."""
FAULT, SIZE = f"{OWN}fault", f"{OWN}size"
"""Why a row is not a message, where that was seen before the operator; and how many bytes it would take in
the sink, where that has a limit."""
BUCKET, ENDED, ROWS = "bucket", "ended", "rows"
UNREAD_BY = "unread_by"
PACKED = ", ".join(
    (
        f"{BUCKET} int",
        *(f"{name} long" for name in (ENDED, READ, COPIES, UNREAD)),
        f"{UNREAD_BY} string",
        f"{ROWS} binary",
    )
)
"""A blob of messages for one bucket. A row without a blob only reports that time passes; `ended` is the time
up to which patience has ended. `read` counts the rows that a packer was given, once each; `copies` those that
it made of them, for further readers; `unread` those that have no reader, and
`unread_by` how many of these each of their groups has, as JSON."""


def stretches(values: Array) -> list[tuple[int, int]]:
    """Where values that stand sorted are the same: from, to."""
    changes = np.flatnonzero(np.diff(values)) + 1
    edges = [0, *changes.tolist(), len(values)]
    return [(begin, end) for begin, end in pairwise(edges) if begin < end]


COMPRESSED = pa.ipc.IpcWriteOptions(compression="lz4")
"""Blobs go through sockets and shuffles; stamps repeat the same names over and over."""


def to_blob(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=COMPRESSED) as writer:
        writer.write_table(table)
    found: bytes = sink.getvalue().to_pybytes()
    return found


def from_blob(blob: bytes) -> pa.Table:
    with pa.ipc.open_stream(blob) as reader:
        return reader.read_all()


def together(batches: Batches) -> Iterator[list[pa.RecordBatch]]:
    """Batches, in groups that are worth the effort and fit into memory."""
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        size += batch.nbytes
        if rows >= BLOB_ROWS or size >= BLOB_BYTES:
            yield held
            held, rows, size = [], 0, 0
    if rows:
        yield held


@dataclass(frozen=True)
class Pack:
    """Cuts rows by the bucket that stands in their first column."""

    def __call__(self, batches: Batches) -> Batches:
        for some in together(batches):
            yield self._cut(some)

    def _cut(self, held: list[pa.RecordBatch]) -> pa.RecordBatch:
        table = pa.Table.from_batches(held)
        buckets = table.column(0).combine_chunks().to_numpy(zero_copy_only=False)
        where, blobs = cut(table.drop_columns([table.column_names[0]]), buckets)
        return packed_batch(where, None, blobs, table.num_rows)


def cut(rows: pa.Table, buckets: Array) -> tuple[list[int], list[bytes]]:
    """The buckets of rows, and the rows of each as a blob."""
    if (buckets[1:] < buckets[:-1]).any():
        order = np.argsort(buckets, kind="stable")
        rows, buckets = rows.take(pa.array(order)), buckets[order]
    cuts = stretches(buckets)
    return [int(buckets[begin]) for begin, _ in cuts], [
        to_blob(rows.slice(begin, end - begin)) for begin, end in cuts
    ]


def packed_batch(
    buckets: list[int],
    ended: int | None,
    blobs: Sequence[bytes | None],
    read: int = 0,
    copies: int = 0,
    unread: int = 0,
    unread_by: Mapping[str, int] | None = None,
) -> pa.RecordBatch:
    def once(count: int) -> pa.Array:
        return pa.array([count, *([0] * len(buckets))][: len(buckets)], pa.int64())

    groups: list[str | None] = [None] * len(buckets)
    if unread_by:
        groups[0] = json.dumps(unread_by)
    return pa.RecordBatch.from_arrays(
        [
            pa.array(buckets, pa.int32()),
            pa.array([ended] * len(buckets), pa.int64()),
            *map(once, (read, copies, unread)),
            pa.array(groups, pa.string()),
            pa.array(blobs, pa.binary()),
        ],
        names=[BUCKET, ENDED, READ, COPIES, UNREAD, UNREAD_BY, ROWS],
    )


def in_workers(rows: DataFrame, task: Callable[[Batches], Batches], schema: str) -> DataFrame:
    """`mapInArrow` for columns of any name: PySpark takes a dot in a name for a field of a struct."""
    if not any(mark in name for name in rows.columns for mark in ".`"):
        return rows.mapInArrow(task, schema)
    numbered = rows.toDF(*(f"{OWN}{number}" for number in range(len(rows.columns))))
    return numbered.mapInArrow(Named(task, rows.columns), schema)


@dataclass(frozen=True)
class Named:
    """A task, with the names of its columns."""

    task: Callable[[Batches], Batches]
    names: list[str]

    def __call__(self, batches: Batches) -> Batches:
        return self.task(batch.rename_columns(self.names) for batch in batches)


@dataclass(frozen=True)
class Blobs:
    """A DataFrame of blobs, and how they become rows."""

    frame: DataFrame
    unpack: Callable[[Batches], Batches]
    schema: T.StructType
    renamed: Mapping[str, str] = field(default_factory=dict)
    """columns of the input that have the name of one that is added, and the names they are kept under"""

    def rows(self) -> DataFrame:
        return self.frame.mapInArrow(self.unpack, self.schema)


@dataclass(frozen=True)
class Unpack:
    """Makes rows of the blobs in a column."""

    column: str

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            for blob in batch.column(self.column):
                if blob.is_valid:
                    yield from from_blob(blob.as_buffer()).to_batches()


def in_one_piece(column: pa.ChunkedArray) -> Any:
    """A column as one array."""
    whole = column.combine_chunks()
    if isinstance(whole, pa.ChunkedArray):
        return whole.chunk(0) if whole.num_chunks else pa.array([], whole.type)
    return whole


def text_column(column: pa.ChunkedArray) -> Any:
    """A column of strings as one array, with 64-bit offsets."""
    return in_one_piece(column).cast(pa.large_string())


def is_empty(names: pa.Array) -> Array:
    """For each name whether it is null or has no characters."""
    found: Array = pc.equal(pc.binary_length(names), 0).fill_null(True).to_numpy(zero_copy_only=False)
    return found

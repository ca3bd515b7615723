"""Columns of numbers in one binary value: what tasks hand to each other costs no more than its bytes.

Arrow lists are expensive between Spark and Python; a binary value is not. Only our own tasks write and read
these, within one job.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from causet.kernels.arrays import Array

Batches = Iterator[pa.RecordBatch]

SCHEMA = "what tinyint, bucket int, blob binary"
PIECE, KEYS, TARGETS, NOTE = 0, 1, 2, 3
"""What a blob holds: events and links; definitions and references to be matched; targets of messages;
notes as JSON."""
SEND, RECEIVE, DELIVER, LOCAL = 1, 2, 3, 0
"""Kinds of events as numbers."""
KEY_TYPES: list[type] = [np.uint64, np.uint64, np.int64, np.int8]
"""A definition or a reference: two halves of its key, the event, and what it is."""


def blob_batch(rows: Iterable[tuple[int, int, bytes]]) -> pa.RecordBatch:
    """Rows of SCHEMA."""
    what, bucket, blob = zip(*rows, strict=True)
    return pa.RecordBatch.from_arrays(
        [pa.array(what, pa.int8()), pa.array(bucket, pa.int32()), pa.array(blob, pa.binary())],
        names=["what", "bucket", "blob"],
    )


def pack(columns: Sequence[Array]) -> bytes:
    """Columns of any lengths, one after the other, behind a row of their sizes."""
    sizes = np.array([len(columns), *(column.nbytes for column in columns)], np.int64)
    return b"".join([sizes.tobytes(), *(column.tobytes() for column in columns)])


def unpack(blob: Any, types: Sequence[type]) -> list[Array]:
    """The columns of these types, not copied."""
    count = int(np.frombuffer(blob, np.int64, 1)[0])
    if count != len(types):
        raise ValueError(f"{count} columns where {len(types)} were packed")
    sizes = np.frombuffer(blob, np.int64, count, 8)
    at = 8 * (count + 1)
    found: list[Array] = []
    for size, kind in zip(sizes.tolist(), types, strict=True):
        item = np.dtype(kind).itemsize
        found.append(np.frombuffer(blob, kind, size // item, at))
        at += size
    return found

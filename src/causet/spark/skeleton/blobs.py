"""Columns of numbers in one binary value: what tasks hand to each other costs no more than its bytes.

Arrow lists are dear between Spark and Python; a binary value is not. Only our own tasks write and read these,
within one job.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def pack(columns: Sequence[Array]) -> bytes:
    """Columns of any lengths, one after the other, behind a row of their sizes."""
    sizes = np.array([len(columns), *(column.nbytes for column in columns)], np.int64)
    return b"".join([sizes.tobytes(), *(column.tobytes() for column in columns)])


def unpack(blob: Any, types: Sequence[type]) -> list[Array]:
    """The columns of these types, without a copy."""
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

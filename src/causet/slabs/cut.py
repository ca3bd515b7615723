"""Rows cut into the pieces that slabs need: each worker for itself, in whatever order rows come."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from causet.kernels.arrays import Array
from causet.slabs.plan import Plan

DECIDING = ("process", "seq", "kind", "id", "message", "parents", "time")
"""Columns that say in which order events are."""


class Piece(NamedTuple):
    """What one slab gets of some rows."""

    slab: int
    rows: pa.Table | None
    """rows that it may give out, with all columns"""
    above: pa.Table | None
    """later events, by their deciding columns: they may be causes"""
    below: int
    """how many events are before its window"""


def cut(rows: pa.Table, plan: Plan) -> Iterator[Piece]:
    """The pieces of all slabs. Every row has a time."""
    times = times_of(rows.column("time"), plan.floats)
    if (times[1:] < times[:-1]).any():
        order = np.argsort(times, kind="stable")
        rows, times = rows.take(pa.array(order)), times[order]
    deciding = rows.select([name for name in DECIDING if name in rows.column_names])
    begins = np.searchsorted(times, plan.begins, side="left").tolist()
    cuts = [*np.searchsorted(times, np.array(plan.cuts, times.dtype), side="left").tolist(), len(times)]
    ends = np.searchsorted(times, plan.ends, side="right").tolist()
    for slab, (begin, middle, end) in enumerate(zip(begins, cuts, ends, strict=True)):
        if begin or begin < end:
            yield Piece(
                slab,
                rows.slice(begin, middle - begin) if begin < middle else None,
                deciding.slice(middle, end - middle) if middle < end else None,
                begin,
            )


def times_of(column: Any, floats: bool) -> Array:
    """A column of times as numbers."""
    kind = np.float64 if floats else np.int64
    return np.asarray(column.to_numpy(), kind)

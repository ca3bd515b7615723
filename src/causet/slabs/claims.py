"""What each slab claims of the events that are at home in it, for `judge` to put together.

Runs of contiguous seqs tell whether every process is there once and without gaps; keys tell what ids and
messages stand for; and references that the window could not resolve are asked about.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from causet.kernels.arrays import Array
from causet.kernels.logs.pages import ABSENT
from causet.kernels.logs.windows import hashes_of, runs_of
from causet.slabs.order import is_home
from causet.slabs.plan import Plan
from causet.slabs.window import Window

_KEY = {"low": pa.uint64(), "high": pa.uint64()}


class Claims(NamedTuple):
    """Tables of one slab, or of one bucket of several. Rows with the same key go to the same bucket."""

    runs: pa.Table
    """process, low, high (its key), first, last, first_time, last_time, slab"""
    keys: pa.Table
    """low, high, slab: an id, or a message that was sent"""
    asked: pa.Table
    """low, high, number, what, slab, process, seq, place, control: a reference, and who has it"""


def claims_of(window: Window, plan: Plan, slab: int) -> Claims:
    home = is_home(window, plan, slab)
    return Claims(_runs(window, home, plan, slab), _keys(window, home, slab), _asked(window, home, slab))


def no_claims(plan: Plan) -> Claims:
    """Tables without rows."""
    time = pa.float64() if plan.floats else pa.int64()
    schemas = (
        {"process": pa.string(), **_KEY, "first": pa.int64(), "last": pa.int64()}
        | {"first_time": time, "last_time": time, "slab": pa.int32()},
        {**_KEY, "slab": pa.int32()},
        {**_KEY, "number": pa.int64(), "what": pa.int8(), "slab": pa.int32()}
        | {"process": pa.string(), "seq": pa.int64(), "place": pa.int64(), "control": pa.bool_()},
    )
    return Claims(*(pa.schema(list(schema.items())).empty_table() for schema in schemas))


def joined(parts: Iterable[tuple[int, pa.Table]], plan: Plan) -> Claims:
    """All claims of one bucket, of whatever slabs, from (which table, rows)."""
    tables: list[list[pa.Table]] = [[each] for each in no_claims(plan)]
    for which, rows in parts:
        tables[which].append(rows)
    return Claims(*map(pa.concat_tables, tables))


def in_buckets(claims: Claims, buckets: int) -> Iterator[tuple[int, int, pa.Table]]:
    """(which table, bucket, rows)."""
    for which, table in enumerate(claims):
        bucket = (table.column("high").to_numpy() >> np.uint64(32)) % np.uint64(buckets)
        order = np.argsort(bucket, kind="stable")
        edges = np.searchsorted(bucket[order], np.arange(buckets + 1)).tolist()
        sorted_rows = table.take(pa.array(order)) if buckets > 1 else table
        for number, (begin, end) in enumerate(pairwise(edges)):
            if begin < end:
                yield which, number, sorted_rows.slice(begin, end - begin)


def _runs(window: Window, home: Array, plan: Plan, slab: int) -> pa.Table:
    begins, ends = runs_of(window.process, window.seq, home)
    process = window.process[begins]
    low, high = hashes_of(window.names, plan.key)
    return pa.table(
        {
            "process": _named(window.names, process),
            "low": low[process],
            "high": high[process],
            "first": window.seq[begins],
            "last": window.seq[ends],
            "first_time": window.time[begins],
            "last_time": window.time[ends],
            "slab": np.full(len(begins), slab, np.int32),
        }
    )


def _keys(window: Window, home: Array, slab: int) -> pa.Table:
    event, low, high = window.definitions
    here = home[event]
    return pa.table({"low": low[here], "high": high[here], "slab": np.full(int(here.sum()), slab, np.int32)})


def _asked(window: Window, home: Array, slab: int) -> pa.Table:
    refers = window.references
    asked = np.flatnonzero((refers.cause == ABSENT) & home[refers.effect])
    event = refers.effect[asked]
    return pa.table(
        {
            "low": refers.low[asked],
            "high": refers.high[asked],
            "number": refers.number[asked],
            "what": refers.what[asked],
            "slab": np.full(len(asked), slab, np.int32),
            "process": _named(window.names, window.process[event]),
            "seq": window.seq[event],
            "place": refers.place[asked],
            "control": _control(window, event),
        }
    )


def _control(window: Window, event: Array) -> Any:
    if "control" not in window.rows.column_names:
        return pa.array(np.zeros(len(event), np.bool_))
    control = window.rows.column("control").combine_chunks()
    return control.take(pa.array(window.place[event])).fill_null(False)


def _named(names: Any, process: Array) -> Any:
    """Names as text: only as long as what they are claims about."""
    return names.take(pa.array(process)).cast(pa.string())

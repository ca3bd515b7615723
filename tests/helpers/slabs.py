"""A log ordered in slabs, carried from function to function in memory."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from causet.slabs.claims import claims_of, in_buckets, joined
from causet.slabs.cut import cut, times_of
from causet.slabs.judge import Verdict, judge
from causet.slabs.order import ordered, rows_of
from causet.slabs.plan import Plan, even_cuts
from causet.slabs.window import has_own_ids, window_of


class Sliced(NamedTuple):
    rows: pa.Table
    certain: bool
    """whether the certificate says that this is the order"""
    verdict: Verdict
    stuck: int
    correction: Any


def plan_of(table: pa.Table, slabs: int, reach: Any, key: int = 7) -> Plan:
    floats = pa.types.is_floating(table.schema.field("time").type)
    times = times_of(table.column("time"), floats)
    return Plan(even_cuts(times, slabs), reach, floats, has_own_ids(table), key)


def in_slabs(table: pa.Table, plan: Plan, batch: int = 50, buckets: int = 3) -> Sliced:
    """As Spark does it: batches are cut, slabs are ordered, claims are judged."""
    pieces: dict[int, list[Any]] = {}
    for begin in range(0, table.num_rows, batch):
        for piece in cut(table.slice(begin, batch), plan):
            pieces.setdefault(piece.slab, []).append(piece)
    found, claims = [], []
    at, consecutive, stuck, correction = 0, True, 0, 0
    for slab, its in sorted(pieces.items()):
        rows = [piece.rows for piece in its if piece.rows is not None]
        if not rows:
            continue
        above = [piece.above for piece in its if piece.above is not None]
        window = window_of(rows, above, sum(piece.below for piece in its), plan)
        order = ordered(window, plan, slab)
        found.append(rows_of(window, order))
        consecutive &= order.begin == at
        at += len(order.rows)
        stuck += order.stuck
        correction = max(correction, order.correction)
        claims.extend(in_buckets(claims_of(window, plan, slab), buckets))
    verdict = Verdict()
    for bucket in range(buckets):
        mine = [(which, rows) for which, number, rows in claims if number == bucket]
        verdict.add(judge(joined(mine, plan), plan))
    assert verdict.events == table.num_rows
    certain = (
        correction <= plan.reach
        and not verdict.ahead
        and not stuck
        and not verdict.repeated
        and consecutive
        and at == table.num_rows
    )
    return Sliced(pa.concat_tables(found), certain, verdict, stuck, correction)


def shuffled(table: pa.Table, seed: int) -> pa.Table:
    return table.take(pa.array(np.random.default_rng(seed).permutation(table.num_rows)))

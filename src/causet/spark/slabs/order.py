"""A log ordered in slabs: planned from a sample, ordered by all workers, accepted if the certificate holds.

Rule: what is accepted is the order, certainly. What cannot be ordered in slabs (events without a time, rows
that are no events, events that are moved by more than a slab, a cycle, duplicates) is left to the pass over
the whole log, which also has the words for it.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pyspark.sql import DataFrame, SparkSession

from causet.errors import BadInput
from causet.kernels.arrays import Array
from causet.slabs.certificate import Done, is_sound, is_whole, needed_reach
from causet.slabs.judge import Verdict
from causet.slabs.plan import Plan, Time, even_cuts
from causet.spark.slabs.files import Table
from causet.spark.slabs.tasks import (
    GUESSED,
    JUDGED,
    ORDERED,
    OWN_IDS,
    REFUSED,
    SCHEMA,
    TIMES,
    UNWRITABLE,
    Cut,
    Judge,
    Order,
    Sample,
    part_name,
    verdict_of,
)

SLAB_ROWS = 500_000
"""Rows of a slab, about."""
SLAB_BYTES = 256 << 20
"""And their bytes, if they are that many."""
SAMPLE_TIMES = 1 << 16
LOOKED_INTO = 8
"""Splits of which some rows are ordered for the sample."""
MARGIN = 2
"""The first guess of the reach, in corrections that the sample has."""
NARROW = 64
"""And at least this part of a slab: that costs next to nothing."""
TRIES = 3
WIDEST, MOST = 4, 3
"""A window has at most so many times the rows of a slab; all windows, of the log. More does not pay."""
BUCKET_ROWS = 4_000_000
"""Events whose claims meet in one task, about."""


@dataclass(frozen=True)
class Sliced:
    """A log that was ordered in slabs."""

    parts: tuple[Path, ...]
    """the files that were written, in order"""
    verdict: Verdict
    slabs: int
    largest: float
    """the share of the largest task in all that the tasks looked at"""


def order_in_slabs(
    spark: SparkSession,
    table: Table,
    folder: Path,
    slab_rows: int | None = None,
) -> Sliced | None:
    """Write the log in order into an existing folder; None if it is to be ordered in another way."""
    slab_rows = slab_rows or max(1, min(SLAB_ROWS, SLAB_BYTES // max(1, table.row_bytes)))
    sample = _sample(spark, table)
    if sample is None:
        return None
    times, correction, own_ids = sample
    cuts = even_cuts(times, max(1, -(-table.rows // slab_rows)))
    reach = max(correction * MARGIN, _width(cuts) / NARROW, 1)
    for _ in range(TRIES):
        plan = Plan(cuts, reach if table.floats else int(reach), table.floats, own_ids, secrets.randbits(62))
        if not _pays(plan, times, table.rows, slab_rows):
            return None
        notes = _run(spark, table, plan, folder)
        if REFUSED in notes:
            return None
        if UNWRITABLE in notes:
            raise BadInput(f"{folder} cannot be written: {notes[UNWRITABLE][0]['reason']}")
        done = [Done(*each["done"]) for each in notes.get(ORDERED, [])]
        verdict = verdict_of(notes.get(JUDGED, []))
        if not is_sound(done, verdict):
            return None
        needed = needed_reach(done, verdict)
        if OWN_IDS in notes:
            own_ids = True
        elif needed > plan.reach:
            reach = needed * MARGIN
        else:
            return _written(folder, done, verdict) if is_whole(done, verdict, table.rows) else None
        for file in folder.iterdir():
            file.unlink()
    return None


def _written(folder: Path, done: Sequence[Done], verdict: Verdict) -> Sliced:
    parts = tuple(folder / part_name(each.slab) for each in sorted(done) if each.rows)
    seen = [each.seen for each in done]
    return Sliced(parts, verdict, len(parts), max(seen) / sum(seen))


def _sample(spark: SparkSession, table: Table) -> tuple[Array, Time, bool] | None:
    """Times, the largest correction that was seen, and whether events have ids of their own."""
    count = len(table.splits)
    into = frozenset(np.linspace(0, count - 1, min(count, LOOKED_INTO)).astype(int).tolist())
    task = Sample(table, max(1, table.rows // SAMPLE_TIMES), into)
    kind = np.float64 if table.floats else np.int64
    found = _splits(spark, table).mapInArrow(task, SCHEMA).toArrow()
    times = [np.empty(0, kind)]
    guesses = []
    for what, blob in zip(found.column("what").to_pylist(), found.column("blob").to_pylist(), strict=True):
        if what == TIMES:
            times.append(np.frombuffer(blob, kind))
        else:
            guesses.append(json.loads(blob))
    if any(each["note"] != GUESSED for each in guesses):
        return None
    own_ids = any(each["own_ids"] for each in guesses)
    return np.concatenate(times), max((each["correction"] for each in guesses), default=0), own_ids


def _width(cuts: Sequence[Time]) -> float:
    """Of a slab, in time."""
    return float(np.median(np.diff(np.array(cuts, np.float64)))) if len(cuts) > 1 else 0.0


def _pays(plan: Plan, times: Array, rows: int, slab_rows: int) -> bool:
    """Whether windows are small enough, judged by the sample."""
    if not len(times):
        return False
    ordered_times = np.sort(times)
    seen = np.searchsorted(ordered_times, plan.ends, "right") - np.searchsorted(
        ordered_times, plan.begins, "left"
    )
    share = seen / len(times)
    return bool(share.max() * rows <= WIDEST * slab_rows and share.sum() <= MOST)


def _run(spark: SparkSession, table: Table, plan: Plan, folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Cut, order, judge; all notes by their kinds."""
    buckets = max(1, table.rows // BUCKET_ROWS)
    pieces = _splits(spark, table).mapInArrow(Cut(table, plan), SCHEMA)
    order = Order(plan, str(folder), dict(table.renamed), buckets)
    claims = pieces.repartitionById(plan.slabs, "part").mapInArrow(order, SCHEMA)
    judged = claims.repartitionById(buckets, "part").mapInArrow(Judge(plan), SCHEMA)
    notes: dict[str, list[dict[str, Any]]] = {}
    for blob in judged.select("blob").toArrow().column("blob").to_pylist():
        facts = json.loads(blob)
        notes.setdefault(facts["note"], []).append(facts)
    return notes


def _splits(spark: SparkSession, table: Table) -> DataFrame:
    """One task for each split."""
    return spark.range(0, len(table.splits), 1, len(table.splits))

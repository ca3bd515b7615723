"""Files ordered in slabs: workers read them, and write parts of what becomes a folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pyspark.sql import SparkSession

from causet.slabs.judge import Verdict
from causet.slabs.plan import Plan
from causet.spark.read.arrow import Table
from causet.spark.slabs.certified import Log, Noted, Sampled, certified, judged, noted
from causet.spark.slabs.tasks import (
    GUESSED,
    NOTE,
    SCHEMA,
    TIMES,
    UNWRITABLE,
    CutFiles,
    SampleFiles,
    WriteSlabs,
    part_name,
)

SAMPLE_TIMES = 1 << 16
LOOKED_INTO = 8
"""Splits of which some rows are ordered for the sample."""


@dataclass(frozen=True)
class Sliced:
    """A log that was ordered in slabs."""

    parts: tuple[Path, ...]
    """the files that were written, in order"""
    verdict: Verdict
    largest: float
    """the share of the largest task in all that the tasks looked at"""


class Unwritable(Exception):
    """A worker could not write into the folder; the reason."""


def order_in_slabs(
    spark: SparkSession, table: Table, folder: Path, slab_rows: int | None = None
) -> Sliced | None:
    """Write the log in order into an existing folder; None if it is to be ordered in another way."""
    found = certified(Files(spark, table, folder), slab_rows)
    if found is None:
        return None
    parts = tuple(folder / part_name(each.slab) for each in found.done if each.rows)
    return Sliced(parts, found.verdict, found.largest)


class Files(Log):
    """A log in files that workers read and write."""

    def __init__(self, spark: SparkSession, table: Table, folder: Path) -> None:
        self.events, self.row_bytes, self.floats = table.rows, table.row_bytes, table.floats
        self._spark, self._table, self._folder = spark, table, folder

    def sample(self) -> Sampled | None:
        count = len(self._table.splits)
        into = frozenset(np.linspace(0, count - 1, min(count, LOOKED_INTO)).astype(int).tolist())
        task = SampleFiles(self._table, max(1, self.events // SAMPLE_TIMES), into)
        found = self._table.tasks(self._spark).mapInArrow(task, SCHEMA).toArrow()
        blobs = list(zip(found.column("what").to_pylist(), found.column("blob").to_pylist(), strict=True))
        kind = np.float64 if self.floats else np.int64
        times = [np.frombuffer(blob, kind) for what, blob in blobs if what == TIMES]
        notes = noted(blob for what, blob in blobs if what == NOTE)
        if not times or notes.keys() != {GUESSED}:
            return None
        guesses = notes[GUESSED]
        return Sampled(
            np.concatenate(times),
            max(each["correction"] for each in guesses),
            any(each["own_ids"] for each in guesses),
        )

    def run(self, plan: Plan, buckets: int) -> Noted:
        pieces = self._table.tasks(self._spark).mapInArrow(CutFiles(self._table, plan), SCHEMA)
        write = WriteSlabs(plan, buckets, str(self._folder), dict(self._table.renamed))
        claims = pieces.repartitionById(plan.slabs, "part").mapInArrow(write, SCHEMA)
        notes = judged(claims, plan, buckets)
        if UNWRITABLE in notes:
            raise Unwritable(notes[UNWRITABLE][0]["reason"])
        return notes

    def discard(self) -> None:
        for file in self._folder.iterdir():
            file.unlink()

"""What workers do: look at a sample, cut, order, judge. Each hands blobs to the next, in rows of SCHEMA."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from causet.slabs.certificate import done_by
from causet.slabs.claims import Claims, claims_of, in_buckets, joined
from causet.slabs.cut import DECIDING, cut, times_of
from causet.slabs.judge import Verdict, judge
from causet.slabs.order import ordered, rows_of
from causet.slabs.plan import Plan
from causet.slabs.rows import are_events
from causet.slabs.window import Window, has_own_ids, window_of
from causet.spark.read.arrow import Table, numbers

Batches = Iterator[pa.RecordBatch]

SCHEMA = "what tinyint, part int, blob binary"
"""A blob goes to the task of its part: a slab, or a bucket of claims."""
CLAIMS = range(len(Claims._fields))
ROWS, ABOVE, BELOW, TIMES, NOTE = range(len(CLAIMS), len(CLAIMS) + 5)
"""What a blob holds, beside the three tables of claims: rows of a slab, later events, the number of events
before its window; times of a sample; a note."""
BLOB_BYTES = 256 << 20
"""Bytes of rows that become blobs at a time, about."""
SAMPLE_ROWS = 1 << 15
"""Rows of some splits that are ordered beforehand, to guess the reach."""
REFUSED, OWN_IDS, ORDERED, JUDGED, GUESSED, UNWRITABLE = (
    "refused",
    "own ids",
    "ordered",
    "judged",
    "guessed",
    "unwritable",
)
"""Kinds of notes."""


def note(kind: str, **facts: Any) -> pa.RecordBatch:
    return row(NOTE, 0, json.dumps({"note": kind, **facts}).encode())


def row(what: int, part: int, blob: Any) -> pa.RecordBatch:
    """One row, whose blob is not copied."""
    data = pa.py_buffer(blob)
    offsets = pa.py_buffer(np.array([0, data.size], np.int32))
    return pa.RecordBatch.from_arrays(
        [
            pa.array([what], pa.int8()),
            pa.array([part], pa.int32()),
            pa.Array.from_buffers(pa.binary(), 1, [None, offsets, data]),
        ],
        names=["what", "part", "blob"],
    )


def packed(table: pa.Table) -> Any:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def unpacked(blob: Any) -> pa.Table:
    return pa.ipc.open_stream(blob).read_all()


def read(batches: Batches) -> Iterator[tuple[int, int, Any]]:
    """(what, part, blob) of each row."""
    for batch in batches:
        for what, part, blob in zip(*batch.columns, strict=True):
            yield what.as_py(), part.as_py(), blob.as_buffer()


@dataclass(frozen=True)
class SampleFiles:
    """Some times of every split; of some splits, how far events of a few rows are moved."""

    table: Table
    every: int
    """of so many times one is taken"""
    looked_into: frozenset[int]

    def __call__(self, batches: Batches) -> Batches:
        for number in numbers(batches):
            try:
                yield from self._of(number)
            except (pa.ArrowException, OSError):
                yield note(REFUSED)

    def _of(self, number: int) -> Batches:
        split = self.table.splits[number]
        times = [
            times_of(rows.column("time"), self.table.floats)
            for rows in self.table.read(split, ["time"])
            if not rows.column("time").null_count
        ]
        if times:
            yield row(TIMES, 0, np.concatenate(times)[self.every // 2 :: self.every].tobytes())
        if number in self.looked_into:
            rows = next(self.table.read(split, (*DECIDING, "to"), SAMPLE_ROWS))
            if are_events(rows):
                own_ids = has_own_ids(rows)
                plan = Plan((), 0, self.table.floats, own_ids, 0)
                yield note(
                    GUESSED,
                    own_ids=own_ids,
                    correction=ordered(window_of([rows], [], 0, plan), plan, 0).correction,
                )


@dataclass(frozen=True)
class CutFiles:
    """Rows of splits, cut into pieces."""

    table: Table
    plan: Plan

    def __call__(self, batches: Batches) -> Batches:
        for number in numbers(batches):
            try:
                for rows in self.table.read(self.table.splits[number]):
                    for some in portions(rows):
                        yield from pieces(some, self.plan)
            except (pa.ArrowException, OSError):
                yield note(REFUSED)


def portions(rows: pa.Table) -> Iterator[pa.Table]:
    """The rows, as many at a time as a blob may hold: they may be larger than they seemed from outside."""
    step = max(1, rows.num_rows * BLOB_BYTES // max(1, rows.nbytes))
    for begin in range(0, rows.num_rows, step):
        yield rows.slice(begin, step)


def pieces(rows: pa.Table, plan: Plan) -> Batches:
    if not are_events(rows):
        yield note(REFUSED)
        return
    if not plan.own_ids and has_own_ids(rows):
        yield note(OWN_IDS)
    for piece in cut(rows, plan):
        if piece.rows is not None:
            yield row(ROWS, piece.slab, packed(piece.rows))
        if piece.above is not None:
            yield row(ABOVE, piece.slab, packed(piece.above))
        if piece.below:
            yield row(BELOW, piece.slab, np.int64(piece.below).tobytes())


def windows(batches: Batches, plan: Plan, notes: list[Any]) -> Iterator[tuple[int, Window]]:
    """The windows of slabs whose pieces are among these blobs; notes among them are added to `notes`."""
    slabs: dict[int, tuple[list[pa.Table], list[pa.Table], list[int]]] = {}
    for what, slab, blob in read(batches):
        if what == NOTE:
            notes.append(blob)
            continue
        rows, above, below = slabs.setdefault(slab, ([], [], []))
        if what == BELOW:
            below.append(int(np.frombuffer(blob, np.int64)[0]))
        else:
            (rows if what == ROWS else above).append(unpacked(blob))
    for slab in sorted(slabs):
        rows, above, below = slabs.pop(slab)
        if rows:
            yield slab, window_of(rows, above, sum(below), plan)


@dataclass(frozen=True)
class WriteSlabs:
    """Slabs in order, written to files; what they claim, in buckets."""

    plan: Plan
    buckets: int
    folder: str
    renamed: dict[str, str]

    def __call__(self, batches: Batches) -> Batches:
        notes: list[Any] = []
        for slab, window in windows(batches, self.plan, notes):
            found = ordered(window, self.plan, slab)
            if not found.stuck and found.correction <= self.plan.reach:
                try:
                    self._write(slab, rows_of(window, found))
                except OSError as error:
                    yield note(UNWRITABLE, reason=error.strerror or str(error))
            yield note(ORDERED, done=done_by(slab, found, len(window.time)))
            for which, bucket, table in in_buckets(claims_of(window, self.plan, slab), self.buckets):
                yield row(which, bucket, packed(table))
        for blob in notes:
            yield row(NOTE, 0, blob)

    def _write(self, slab: int, rows: pa.Table) -> None:
        """Under its own name all at once: another try of this task may write the same."""
        if not rows.num_rows:
            return
        names = [self.renamed.get(name, name) for name in rows.column_names[:-2]]
        rows = rows.rename_columns([*names, *rows.column_names[-2:]])
        new = Path(self.folder, f".{uuid4().hex}")
        pq.write_table(rows, new, compression="snappy", write_page_checksum=True, store_schema=False)
        new.rename(Path(self.folder, part_name(slab)))


def part_name(slab: int) -> str:
    return f"slab-{slab:09}.parquet"


@dataclass(frozen=True)
class Judge:
    """The verdict on buckets of claims, as a note; other notes are passed on."""

    plan: Plan

    def __call__(self, batches: Batches) -> Batches:
        buckets: dict[int, list[tuple[int, pa.Table]]] = {}
        for what, bucket, blob in read(batches):
            if what == NOTE:
                yield row(NOTE, 0, blob)
            else:
                buckets.setdefault(bucket, []).append((what, unpacked(blob)))
        for bucket in sorted(buckets):
            verdict = judge(joined(buckets.pop(bucket), self.plan), self.plan)
            yield note(JUDGED, **asdict(verdict))


def verdict_of(notes: Iterable[dict[str, Any]]) -> Verdict:
    """All verdicts together, from their notes."""
    found = Verdict()
    for facts in notes:
        given = {name: value for name, value in facts.items() if name != "note"}
        for name in ("lost", "first_lost"):
            given[name] = {int(what): value for what, value in given[name].items()}
        found.add(Verdict(**given))
    return found

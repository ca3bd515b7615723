"""The merge of streams: released by the sources' own progress, in one order, by all workers.

    rows → cut by time → [ held until every source is past them: state ] → parts in the order of time → rows

A message is released when the smallest, over live sources, of their largest r exceeds its r + c + δ + ε: then
nothing can come any more that belongs before it. These facts only grow, and every bucket is told all of them
with every batch; so all buckets release up to the same bound without asking anybody.

Buckets hold slices of time, in turn. What a batch releases is a stretch of slices between the last bound and
the new one, which is laid out over the partitions in the order of time: partition after partition, and batch
after batch, the rows stand in the order of the merge.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql import types as T

from causet.delivery import DELIVERED, DIVERTED, LATE
from causet.spark.books import READ
from causet.spark.direct import ParquetFiles, is_direct
from causet.spark.merging import FOUND, PROBLEM, STATUS, Times, faults, problem_with, problems
from causet.spark.packing import (
    OWN,
    Batches,
    Blobs,
    from_blob,
    in_one_piece,
    stretches,
    text_column,
    to_blob,
    together,
)
from causet.spark.segments import Holder, Segments, as_blobs, use_rocks

Array = np.ndarray[Any, Any]

SLICE = 100
"""Width of a slice of time, in ms."""
CODE = f"{OWN}problem"
PACKED = "bucket int, lowest long, progress string, rows binary"
"""A blob of messages for one bucket; or, for every bucket, what a worker has seen of the sources."""
COUNTS = (READ, DELIVERED, LATE, "refused", "duplicates")
OUT = "part int, slice long, rows binary, held long, oldest long, blocked string, bound long, " + ", ".join(
    f"{name} long" for name in COUNTS
)
OBSERVED = "causet"
NEVER = -(2**62)
_NOTHING = dict.fromkeys(("held", "oldest", "blocked", "bound", *COUNTS))


def _nothing() -> Array:
    return np.empty(0, np.int64)


def _no_keys() -> dict[str, Array]:
    return {key: _nothing() for key in ("rc", "r", "source", "sequence")}


@dataclass(frozen=True)
class MergeSettings:
    times: Times
    epsilon: int
    delta: int
    sources: tuple[str, ...]
    exclude: tuple[str, ...]
    horizon: int
    buckets: int
    parts: int
    """partitions over which a batch is laid out, in the order of time"""

    @property
    def fixed(self) -> str:
        return json.dumps({"buckets": self.buckets, "slice": SLICE})


def merge_stream(
    stamped: DataFrame, names: list[str], settings: MergeSettings, files: ParquetFiles | None = None
) -> Blobs:
    """The operator between its packers. From files that have the numbers as such, without Spark's rows."""
    use_rocks(stamped.sparkSession)
    pack = PackByTime(settings)
    if files is not None and is_direct(files) and settings.times == FOUND:
        packed = files.through(Judge(settings), pack, PACKED)
    else:
        now = F.unix_millis(F.current_timestamp())
        judged = stamped.withColumn(CODE, problem_with(settings.times, settings.epsilon, now))
        packed = judged.mapInArrow(pack, PACKED)
    found = packed.groupBy("bucket").transformWithState(Merger(settings), OUT, "append", "none")
    found = found.observe(
        OBSERVED,
        F.sum("held").alias("held"),
        F.min("oldest").alias("oldest"),
        F.min_by("blocked", "oldest").alias("blocked"),
        F.max("bound").cast("string").alias("bound"),
        *(F.sum(name).alias(name) for name in COUNTS),
    )
    kept = [stamped.schema[name] for name in names if name not in (STATUS, PROBLEM)]
    schema = T.StructType(
        [*kept, T.StructField(STATUS, T.StringType()), T.StructField(PROBLEM, T.StringType())]
    )
    parts = found.where(F.col("rows").isNotNull()).select("part", "slice", "rows")
    return Blobs(parts.repartitionById(settings.parts, "part"), UnpackInOrder(), schema)


@dataclass(frozen=True)
class Judge:
    """Says of each row why it is no message: `problem_with`, for rows that Spark has not seen."""

    settings: MergeSettings

    def __call__(self, rows: pa.RecordBatch, now: int) -> pa.RecordBatch:
        columns = [rows.column(name) for name in self.settings.times]
        missing = [column.is_null().to_numpy(zero_copy_only=False) for column in columns]
        rc, r, sequence = (
            column.fill_null(instead).to_numpy(zero_copy_only=False)
            for column, instead in zip(columns, (0, 0, 1), strict=True)
        )
        nameless = rows.column("source").is_null().to_numpy(zero_copy_only=False)
        found = faults(nameless, missing[0] | missing[1], rc, r, sequence, self.settings.epsilon, now)
        code = np.full(rows.num_rows, -1, np.int8)
        for number, fault in reversed(list(enumerate(found))):
            code[fault] = number
        return rows.append_column(CODE, pa.array(code, mask=code < 0))


@dataclass(frozen=True)
class PackByTime:
    """Cuts messages by their slice of time; and tells all buckets how far the sources are."""

    settings: MergeSettings

    def __call__(self, batches: Batches) -> Batches:
        progress: dict[str, int] = {}
        lowest: int | None = None
        for some in together(batches):
            blobs, lowest = self._cut(some, progress, lowest)
            yield blobs
        if progress:
            told = json.dumps(progress)
            count = self.settings.buckets
            yield _packed(list(range(count)), [lowest] * count, [told] * count, [None] * count)

    def _cut(
        self, held: list[pa.RecordBatch], progress: dict[str, int], lowest: int | None
    ) -> tuple[pa.RecordBatch, int | None]:
        table = pa.Table.from_batches(held)
        refused = table.column(CODE).is_valid().to_numpy()
        rc = in_one_piece(table.column(self.settings.times.rc)).fill_null(0).to_numpy(zero_copy_only=False)
        fine = table.select(["source", self.settings.times.r])
        if refused.any():
            fine = fine.filter(pa.array(~refused))
        sources = text_column(fine.column("source")).dictionary_encode()
        r = in_one_piece(fine.column(self.settings.times.r)).to_numpy(zero_copy_only=False)
        largest = np.full(len(sources.dictionary), NEVER)
        np.maximum.at(largest, sources.indices.to_numpy(zero_copy_only=False), r)
        for name, value in zip(sources.dictionary.to_pylist(), largest.tolist(), strict=True):
            progress[name] = max(value, progress.get(name, NEVER))
        numbers = in_one_piece(table.column(self.settings.times.sequence))
        beats = numbers.is_null().to_numpy(zero_copy_only=False) & ~refused
        messages = ~refused & ~beats
        if messages.any():
            least = int(rc[messages].min())
            lowest = least if lowest is None else min(lowest, least)
        bucket = np.where(refused, 0, rc // SLICE % self.settings.buckets).astype(np.int64)
        order = np.flatnonzero(~beats)
        order = order[np.argsort(bucket[order], kind="stable")]
        cuts = stretches(bucket[order])
        taken = table.take(pa.array(order))
        blobs = [to_blob(taken.slice(begin, end - begin)) for begin, end in cuts]
        none = [None] * len(blobs)
        return _packed([int(bucket[order[begin]]) for begin, _ in cuts], none, none, blobs), lowest


def _packed(buckets: list[int], lowest: list[Any], progress: list[Any], blobs: list[Any]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [
            pa.array(buckets, pa.int32()),
            pa.array(lowest, pa.int64()),
            pa.array(progress, pa.string()),
            pa.array(blobs, pa.binary()),
        ],
        names=["bucket", "lowest", "progress", "rows"],
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


# ---------------------------------------------------------------- the operator


KEYS = ("rc", "r", "source", "sequence")
"""What a message is known and ordered by; its source by its number in `Memory.names`."""


@dataclass
class Memory:
    """What a bucket of the merge remembers."""

    names: list[str] = field(default_factory=list)
    """of the sources that were heard of"""
    progress: Array = field(default_factory=_nothing)
    """for each of them the largest r"""
    bound: int = NEVER
    """everything below it was released"""
    lowest: int = NEVER
    """before the first release: the smallest r + c of all messages"""
    held: dict[str, Array] = field(default_factory=_no_keys)
    """the messages that are held"""
    place: Array = field(default_factory=_nothing)
    """where their rows are"""
    released: dict[str, Array] = field(default_factory=_no_keys)
    """messages that were released lately: a copy is known by them"""

    def numbers(self, names: list[str]) -> Array:
        """The numbers of these sources; new ones are taken in, in the order of their names."""
        known = {name: number for number, name in enumerate(self.names)}
        new = sorted(set(names) - set(known))
        self.names += new
        self.progress = np.concatenate([self.progress, np.full(len(new), NEVER)])
        known.update({name: len(known) + number for number, name in enumerate(new)})
        return np.array([known[name] for name in names], np.int64)

    def to_bytes(self) -> bytes:
        arrays = [
            self.progress,
            self.place,
            *(each[key] for each in (self.held, self.released) for key in KEYS),
        ]
        columns = {
            f"{number}": pa.array([array], pa.list_(pa.int64())) for number, array in enumerate(arrays)
        }
        columns["names"] = pa.array([self.names], pa.list_(pa.string()))
        columns["plain"] = pa.array([[self.bound, self.lowest]], pa.list_(pa.int64()))
        return to_blob(pa.table(columns))

    @classmethod
    def from_bytes(cls, data: bytes) -> Memory:
        table = from_blob(data)

        def values(name: str) -> Array:
            found: Array = table.column(name)[0].values.to_numpy(zero_copy_only=False).copy()
            return found

        keys = [dict(zip(KEYS, (values(str(at + of)) for of in range(4)), strict=True)) for at in (2, 6)]
        bound, lowest = values("plain").tolist()
        names = table.column("names")[0].as_py()
        return cls(names, values("0"), bound, lowest, keys[0], values("1"), keys[1])


class Merger(Holder):
    """Holds and releases the messages in the slices of one bucket."""

    def __init__(self, settings: MergeSettings) -> None:
        super().__init__(settings.fixed)
        self.settings = settings

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        memory, segments = self.load()
        slices = Slices(self.settings, Memory() if memory is None else Memory.from_bytes(memory), segments)
        blobs: list[bytes] = []
        for row in rows:
            if row["progress"] is not None:
                slices.hear(json.loads(row["progress"]), row["lowest"])
            if row["rows"] is not None:
                blobs.append(row["rows"])
        for part, time_slice, table in slices.step(blobs):
            yield from as_blobs(table, part=part, slice=time_slice, **_NOTHING)
        yield Row(part=None, slice=None, rows=None, **slices.report())
        self.save(slices.memory.to_bytes(), segments)


class Slices:
    """The messages in the slices of one bucket: rows in, rows out in their order."""

    def __init__(self, settings: MergeSettings, memory: Memory, segments: Segments) -> None:
        self.settings = settings
        self.memory = memory
        self.segments = segments
        self._counts = dict.fromkeys(COUNTS, 0)

    def hear(self, progress: dict[str, int], lowest: int | None) -> None:
        """How far sources are, and the smallest time of a batch's messages; every bucket hears the same."""
        memory = self.memory
        numbers = memory.numbers(list(progress))
        memory.progress[numbers] = np.maximum(memory.progress[numbers], list(progress.values()))
        if lowest is not None and memory.bound == NEVER:
            memory.lowest = lowest if memory.lowest == NEVER else min(memory.lowest, lowest)

    def slowest(self) -> tuple[int, str | None]:
        """The smallest, over live sources, of their largest r; and whose it is."""
        heard = zip(self.memory.names, self.memory.progress.tolist(), strict=True)
        live = {**dict.fromkeys(self.settings.sources, NEVER), **dict(heard)}
        found = [(r, name) for name, r in live.items() if name not in self.settings.exclude]
        return min(found) if found else (NEVER, None)

    def step(self, blobs: list[bytes]) -> Iterator[tuple[int, int, pa.Table]]:
        """Take messages in; what is released leaves as (partition, slice, rows)."""
        memory = self.memory
        before = memory.bound
        after = max(before, self.slowest()[0] - self.settings.delta - self.settings.epsilon)
        tables = [from_blob(blob) for blob in blobs]
        table = pa.concat_tables(tables).combine_chunks() if tables else None
        if table is not None:
            self._counts[READ] += table.num_rows
            refused = table.column(CODE).is_valid().to_numpy()
            if refused.any():
                self._counts["refused"] += int(refused.sum())
                yield 0, NEVER, _marked(table.filter(pa.array(refused)), DIVERTED, self.settings.epsilon)
                table = table.filter(pa.array(~refused))
        keys, place, order = self._with_new(table, self.segments.begin(table))
        late, free = keys["rc"] < before, keys["rc"] < after
        for which, status in ((late, LATE), (free & ~late, DELIVERED)):
            rows = order[which[order]]
            if not len(rows):
                continue
            self._counts[status] += len(rows)
            leaving = _marked(self.segments.taken(place[rows]), status, self.settings.epsilon)
            if status == LATE:
                yield 0, NEVER + 1, leaving
            else:
                first = before if before != NEVER else memory.lowest
                yield from self._in_slices(leaving, keys["rc"][rows], first, after)
        self._remember(keys, free, after)
        held, memory.place = memory.place, place[~free]
        self.segments.keep(held, memory.place)
        memory.bound = after

    def _with_new(self, table: pa.Table | None, first_place: int) -> tuple[dict[str, Array], Array, Array]:
        """The messages that are held, with those that came and are no copies; their places; their order."""
        memory = self.memory
        if table is None or not table.num_rows:
            return memory.held, memory.place, self._order(memory.held)
        coded = text_column(table.column("source")).dictionary_encode()
        sources = memory.numbers(coded.dictionary.to_pylist())
        new = {
            "source": sources[coded.indices.to_numpy(zero_copy_only=False)],
            **{
                key: in_one_piece(table.column(name)).to_numpy(zero_copy_only=False)
                for key, name in self.settings.times._asdict().items()
            },
        }
        gone = len(memory.released["rc"])
        whole = {key: np.concatenate([memory.released[key], memory.held[key], new[key]]) for key in KEYS}
        order = self._order(whole)  # stable: of copies, the first one stays the first
        same = np.ones(len(order), np.bool_)
        same[0] = False
        for key in KEYS:
            same[1:] &= np.diff(whole[key][order]) == 0
        copy = np.zeros(len(order), np.bool_)
        copy[order[same]] = True
        self._counts["duplicates"] += int(copy.sum())
        here = ~copy
        here[:gone] = False
        place = np.concatenate([memory.place, first_place + np.arange(table.num_rows)])
        keys = {key: whole[key][here] for key in KEYS}
        return keys, place[here[gone:]], (np.cumsum(here) - 1)[order[here[order]]]

    def _order(self, keys: dict[str, Array]) -> Array:
        """By (r + c, r, source, sequence)."""
        rank = np.argsort(np.argsort(np.array(self.memory.names, object), kind="stable"))
        source = rank[keys["source"]] if len(rank) else keys["source"]
        return ascending(keys["rc"], keys["r"], source, keys["sequence"])

    def _remember(self, keys: dict[str, Array], free: Array, after: int) -> None:
        memory = self.memory
        memory.held = {key: keys[key][~free] for key in KEYS}
        lately = {key: np.concatenate([memory.released[key], keys[key][free]]) for key in KEYS}
        keep = lately["rc"] >= after - self.settings.horizon
        memory.released = {key: lately[key][keep] for key in KEYS}

    def _in_slices(
        self, table: pa.Table, rc: Array, first: int, after: int
    ) -> Iterator[tuple[int, int, pa.Table]]:
        """The rows by slices, each with the partition in which that stretch of time stands."""
        slices = rc // SLICE
        low, high = first // SLICE, (after - 1) // SLICE
        for begin, end in stretches(slices):
            at = int(slices[begin])
            part = (max(at, low) - low) * self.settings.parts // (high - low + 1)
            yield part, at, table.slice(begin, end - begin)

    def report(self) -> dict[str, Any]:
        memory = self.memory
        smallest, name = self.slowest()
        held = len(memory.place)
        blocked = None
        if held and name is not None:
            blocked = f"{name}, heard of last at {'no time' if smallest == NEVER else smallest}"
        return {
            "held": held,
            "oldest": int(memory.held["rc"].min()) if held else None,
            "blocked": blocked,
            "bound": None if memory.bound == NEVER else memory.bound,
            **self._counts,
        }


def ascending(*columns: Array) -> Array:
    """The stable order by the first column, then by the second one, and so on.

    As one sort, where all of them fit into one number: which takes a fifth of the time.
    """
    packed = np.zeros(len(columns[0]), np.int64)
    room = 63
    for column in columns:
        lowest, highest = (int(column.min()), int(column.max())) if len(column) else (0, 0)
        bits = (highest - lowest).bit_length()
        room -= bits
        if room < 0:
            return np.lexsort(columns[::-1])
        packed = (packed << bits) | (column - lowest)
    return np.argsort(packed, kind="stable")


def _marked(table: pa.Table, status: str, epsilon: int) -> pa.Table:
    codes = in_one_piece(table.column(CODE))
    if codes.null_count == len(codes):
        problem = pa.nulls(len(codes), pa.string())
    else:
        problem = pa.array(problems(epsilon)).take(codes)
    kept = [name for name in table.column_names if not name.startswith(OWN) and name not in (STATUS, PROBLEM)]
    word = pa.DictionaryArray.from_arrays(pa.array(np.zeros(len(codes), np.int8)), pa.array([status]))
    marked = table.select(kept).append_column(STATUS, word.cast(pa.string()))
    return marked.append_column(PROBLEM, problem)

"""Vector clocks, sizes of causal pasts, and happened-before, for every row or for pairs of events.

Each column of a vector is computed without the others: groups of columns go to tasks of their own, each of
which sees the whole skeleton. What they find goes back to the rows by a join. The answer does not depend on
how columns are grouped.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as compute
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from causet.errors import BadInput, quote
from causet.kernels.logs.pages import Pages, Piece
from causet.kernels.logs.vectors import USE_BYTES, Chunks, count_uses, known_counts, no_uses, vector_chunks
from causet.spark.batch.explain import find_event, own_id, rows_about
from causet.spark.batch.explanation import AFTER, BEFORE, CONCURRENT, SAME
from causet.spark.batch.order import fits
from causet.spark.batch.reach import ConeTask, ask
from causet.spark.skeleton.blobs import pack, unpack
from causet.spark.skeleton.budget import LEAST, memory_allowed
from causet.spark.skeleton.census import RANK, Census, take_census
from causet.spark.skeleton.faults import bad_input
from causet.spark.skeleton.skeleton import (
    SCHEMA,
    Batches,
    Notes,
    blob_batch,
    for_groups,
    read_pieces,
    skeleton,
)
from causet.spark.skeleton.task import is_sound, lay_out

Array = np.ndarray[Any, Any]

FEWEST_COLUMNS, MOST_COLUMNS = 8, 512
COLUMN_VALUES = 1 << 24
"""Values that a task keeps of what all processes know, at the most, and of chunks that it fills."""
CHUNK_VALUES = 1 << 16
"""Values of one chunk, all columns together, at the most."""
WIDEST_CHUNK = 8
"""Results go back to the rows 2^8 events at a time, or fewer."""
QUESTIONS = 9
"""What a blob holds, beside what skeletons have: events and the processes of which they may know."""
QUESTION_TYPES: list[type] = [np.int64, np.int32]

PROCESS, NUMBER, PARTS = "__process", "__chunk", "__parts"
FOUND = f"{PROCESS} string, {NUMBER} long, part int, width int, known array<int>, note string"
ANSWERS = "process string, rank long, of string, known int, note string"


# ---------------------------------------------------------------- every row


def vector_clocks() -> Callable[[DataFrame], DataFrame]:
    """For `events.transform(vector_clocks())`: adds `vector`, a map from each process to how many of its
    events happened before this one or are it; processes with none are left out.

    So a happened before b exactly if b's vector has at least a's own entry for a's process. The answer has as
    many entries as there are events times processes; `causal_past` and `happened_before` do with less.
    Faults of a log are passed over, as by `causal_order`; bad input raises `causet.model.BadInput`.
    """
    return lambda events: _with_vectors(events, MOST_COLUMNS)


def causal_past() -> Callable[[DataFrame], DataFrame]:
    """For `events.transform(causal_past())`: adds `past`, how many events happened before this one: the sum
    of its vector, less itself. It grows along happened-before, so to sort by it is a causal order."""
    return lambda events: _with_past(events, MOST_COLUMNS)


def _with_vectors(events: DataFrame, most: int) -> DataFrame:
    numbered, census = take_census(events)
    shift = _chunk_shift(census, CHUNK_VALUES)
    width = min(most, _width(census, 1 << shift))
    chunks = _chunks(numbered, census, shift, width, sums=False)
    # A foldable text, not as many literals as there are processes.
    names = F.from_json(F.lit(json.dumps(census.processes)), T.ArrayType(T.StringType()))

    def vector(parts: Column, place: Column) -> Column:
        def row(part: Column) -> Column:
            return F.slice(part["known"], place * part["width"] + 1, part["width"])

        counts = F.flatten(F.transform(parts, row)).cast("array<long>")
        whole = F.map_from_arrays(names, counts)
        # Zeros are rare where processes talk to each other, and to take them out costs as much as the map.
        known = F.map_filter(whole, lambda _, count: count > 0)
        return F.when(F.array_contains(counts, 0), known).otherwise(whole)

    chunks = _spread(numbered, chunks, census.events * len(census.counts))
    return _attached(numbered, chunks, shift, "vector", vector)


def _with_past(events: DataFrame, most: int) -> DataFrame:
    numbered, census = take_census(events)
    shift = _chunk_shift(census, COLUMN_VALUES)
    chunks = _chunks(numbered, census, shift, min(most, _width(census, 1)), sums=True)

    def past(parts: Column, place: Column) -> Column:
        def add(total: Column, part: Column) -> Column:
            return total + F.get(part["known"], place)

        return F.aggregate(parts, F.lit(-1).cast("long"), add)

    return _attached(numbered, _spread(numbered, chunks, census.events), shift, "past", past)


def _chunk_shift(census: Census, values: int) -> int:
    """A chunk of each process within so many values."""
    shift = WIDEST_CHUNK
    while shift and len(census.counts) << shift > values:
        shift -= 1
    return shift


def _width(census: Census, rows: int) -> int:
    """As many columns as a task may have at a time, if it keeps so many rows of each process."""
    return min(MOST_COLUMNS, max(FEWEST_COLUMNS, COLUMN_VALUES // (rows * max(len(census.counts), 1))))


def _groups(columns: Array, width: int) -> list[Array]:
    return np.array_split(columns, max(1, -(-len(columns) // width)))


def _chunks(numbered: DataFrame, census: Census, shift: int, width: int, sums: bool) -> DataFrame:
    """For each chunk of each process what the groups found, in the order of their columns."""
    groups = _groups(np.arange(len(census.counts)), width)
    task = VectorsTask(census.processes, census.first, census.floats, groups, shift, sums)
    found = for_groups(skeleton(numbered, census), len(groups)).mapInArrow(task, FOUND).persist()
    try:
        _check(found, numbered, census)
    except BaseException:
        found.unpersist()
        raise
    part = F.struct("part", "width", "known")
    rows = found.where(F.col("note").isNull())
    if len(groups) == 1:
        return rows.select(PROCESS, NUMBER, F.array(part).alias(PARTS))
    return rows.groupBy(PROCESS, NUMBER).agg(F.sort_array(F.collect_list(part)).alias(PARTS))


def _check(found: DataFrame, numbered: DataFrame, census: Census) -> None:
    """BadInput if a task noted some; all of them saw the same."""
    notes = Notes()
    for row in found.where(F.col("note").isNotNull()).select("note").limit(1).collect():
        notes.merge(row.note)
    error = bad_input(notes, numbered, census)
    if error is not None:
        raise error


def _spread(numbered: DataFrame, chunks: DataFrame, values: int) -> DataFrame:
    """The chunks, to be given to every worker as a whole where so many values fit."""
    return F.broadcast(chunks) if fits(numbered, -(-values * 4 // 20)) else chunks


def _attached(
    numbered: DataFrame,
    chunks: DataFrame,
    shift: int,
    name: str,
    value: Callable[[Column, Column], Column],
) -> DataFrame:
    """Every row with what was found for its place in its chunk."""
    rows = numbered.drop(name)
    before = F.col(RANK) - 1
    same = (F.col("process") == F.col(PROCESS)) & (F.shiftright(before, shift) == F.col(NUMBER))
    place = before.bitwiseAND((1 << shift) - 1).cast("int")
    columns = [F.col(f"`{column}`") for column in rows.columns if column != RANK]
    return rows.join(chunks, same).select(*columns, value(F.col(PARTS), place).alias(name))


# ---------------------------------------------------------------- pairs


def happened_before(events: DataFrame, pairs: DataFrame | None = None, of: str | None = None) -> DataFrame:
    """How events are related.

    With `pairs`, which has the ids of events in its columns `a` and `b`: adds `relation` to them, which is
    `before` (a happened before b), `after`, `concurrent`, `same`, or null where an id is unknown or null.
    With `of`, the id of an event or a message: adds `relation` to the events, of each to that one.
    Bad input raises `causet.model.BadInput`.
    """
    if (pairs is None) == (of is None):
        raise BadInput("happened_before wants either pairs of events, or the id of one event")
    numbered, census = take_census(events)
    if pairs is not None:
        return _related_pairs(numbered, census, pairs)
    assert of is not None
    return _related_to(numbered, census, of)


def _related_to(numbered: DataFrame, census: Census, id: str) -> DataFrame:
    event = find_event(numbered, census, rows_about(numbered, census, [id]), id).number
    found, _ = ask(numbered, census, ConeTask(census.processes, census.first, census.floats, event))
    first = census.first[:-1]
    own = census.process_of(event)
    ranks = zip(
        census.processes,
        (np.array(found["until"]) - first).tolist(),
        (np.array(found["since"]) - first + 1).tolist(),
        [event - int(first[own]) + 1 if process == own else 0 for process in range(len(first))],
        strict=True,
    )
    table = numbered.sparkSession.createDataFrame(
        list(ranks), "__p string, __until long, __since long, __own long"
    )
    relation = (
        F.when(F.col(RANK) == F.col("__own"), SAME)
        .when(F.col(RANK) <= F.col("__until"), BEFORE)
        .when(F.col(RANK) >= F.col("__since"), AFTER)
        .otherwise(CONCURRENT)
    )
    rows = numbered.drop("relation")
    columns = [F.col(f"`{column}`") for column in rows.columns if column != RANK]
    joined = rows.join(F.broadcast(table), F.col("process") == F.col("__p"))
    return joined.select(*columns, relation.alias("relation"))


def _related_pairs(numbered: DataFrame, census: Census, pairs: DataFrame) -> DataFrame:
    for name in ("a", "b"):
        if name not in pairs.columns or not isinstance(pairs.schema[name].dataType, T.StringType):
            raise BadInput(
                f"pairs of events have their ids in columns a and b; {quote(name)} is no such column"
            )
    placed = _placed(numbered, pairs.drop("relation"))
    knows = _known(numbered, census, placed)
    for name, of in (("a", "b"), ("b", "a")):
        asked = knows.select(
            F.col("process").alias("__p"),
            F.col("rank").alias("__r"),
            F.col("of").alias("__of"),
            F.col("known").alias(f"__known_{name}"),
        )
        same = (
            (F.col(f"__process_{name}") == F.col("__p"))
            & (F.col(f"__rank_{name}") == F.col("__r"))
            & (F.col(f"__process_{of}") == F.col("__of"))
        )
        placed = placed.join(asked, same, "left").drop("__p", "__r", "__of")
    rank_a, rank_b = F.col("__rank_a"), F.col("__rank_b")
    relation = (
        F.when(rank_a.isNull() | rank_b.isNull(), F.lit(None).cast("string"))
        .when(~_apart(), F.when(rank_a == rank_b, SAME).when(rank_a < rank_b, BEFORE).otherwise(AFTER))
        .when(F.col("__known_b") >= rank_a, BEFORE)
        .when(F.col("__known_a") >= rank_b, AFTER)
        .otherwise(CONCURRENT)
    )
    columns = [F.col(f"`{column}`") for column in pairs.columns if column != "relation"]
    return placed.select(*columns, relation.alias("relation"))


def _apart() -> Column:
    """Whether two events belong to different processes; within one, their ranks tell."""
    return F.col("__process_a") != F.col("__process_b")


def _placed(numbered: DataFrame, pairs: DataFrame) -> DataFrame:
    """The pairs with process and rank of both events, null where there is none of that id."""
    wanted = pairs.select(F.explode(F.array("a", "b")).alias("__wanted")).distinct()
    ids = numbered.select(own_id(numbered).alias("__id"), "process", F.col(RANK).cast("long").alias("rank"))
    places = ids.join(wanted, F.col("__id") == F.col("__wanted")).select("__id", "process", "rank").persist()
    for name in ("a", "b"):
        its = places.select(
            F.col("__id").alias(f"__id_{name}"),
            F.col("process").alias(f"__process_{name}"),
            F.col("rank").alias(f"__rank_{name}"),
        )
        pairs = pairs.join(its, F.col(f"`{name}`") == F.col(f"__id_{name}"), "left").drop(f"__id_{name}")
    return pairs


def _known(numbered: DataFrame, census: Census, placed: DataFrame) -> DataFrame:
    """For every pair that needs it, how many events of the one's process the other knows."""
    questions = placed.where(_apart()).select(
        F.explode(F.array(_question("a", "b"), _question("b", "a"))).alias("each")
    )
    questions = questions.select("each.process", "each.rank", "each.of").distinct().persist()
    number_of = {name: number for number, name in enumerate(census.processes)}
    asked = sorted(number_of[row.of] for row in questions.select("of").distinct().collect())
    groups = _groups(np.array(asked, np.int64), _width(census, 1))
    blobs = skeleton(numbered, census).union(
        questions.mapInArrow(QuestionPacker(census.processes, census.first), SCHEMA)
    )
    task = AnswersTask(census.processes, census.first, census.floats, groups)
    found = for_groups(blobs, len(groups)).mapInArrow(task, ANSWERS).persist()
    try:
        _check(found, numbered, census)
    except BaseException:
        found.unpersist()
        raise
    finally:
        questions.unpersist()
    return found.where(F.col("note").isNull())


def _question(name: str, of: str) -> Column:
    return F.struct(
        F.col(f"__process_{name}").alias("process"),
        F.col(f"__rank_{name}").alias("rank"),
        F.col(f"__process_{of}").alias("of"),
    )


@dataclass(frozen=True)
class QuestionPacker:
    """Questions as numbers."""

    processes: tuple[str, ...]
    first: Array

    def __call__(self, batches: Batches) -> Batches:
        names = pa.array(self.processes, pa.string())
        for batch in batches:
            if batch.num_rows:
                process, of = (
                    compute.index_in(batch.column(name), names).to_numpy() for name in ("process", "of")
                )
                events = self.first[process] + batch.column("rank").to_numpy() - 1
                yield blob_batch([(QUESTIONS, 0, pack([events, of.astype(np.int32)]))])


# ---------------------------------------------------------------- tasks


@dataclass(frozen=True)
class _ColumnsTask:
    """Computes the columns of one group of processes."""

    processes: tuple[str, ...]
    first: Array
    floats: bool
    groups: list[Array]

    def __call__(self, batches: Batches) -> Batches:
        notes = Notes()
        uses = no_uses(int(self.first[-1]))
        group = 0
        questions: list[list[Array]] = []

        def looked_at() -> Batches:
            nonlocal group
            for batch in batches:
                for what, bucket, blob in zip(*batch.columns, strict=True):
                    group = bucket.as_py()
                    if what.as_py() == QUESTIONS:
                        questions.append(unpack(blob.as_buffer(), QUESTION_TYPES))
                yield batch

        def counted() -> Iterator[Piece]:
            for piece in read_pieces(looked_at(), np.float64 if self.floats else np.int64, notes):
                count_uses(uses, piece.causes)
                yield piece

        budget = max(LEAST, memory_allowed() - USE_BYTES * len(uses))
        with lay_out(self.first, self.floats, counted(), budget) as pages:
            if is_sound(pages, notes):
                yield from self._found(pages, uses, group, questions)
            yield self._note(notes)

    def _found(self, pages: Pages, uses: Array, group: int, questions: list[list[Array]]) -> Batches:
        raise NotImplementedError

    def _note(self, notes: Notes) -> pa.RecordBatch:
        raise NotImplementedError

    def _names(self, numbers: Array) -> Any:
        return pa.array(self.processes, pa.string()).take(pa.array(numbers))


@dataclass(frozen=True)
class VectorsTask(_ColumnsTask):
    """For all events these columns, or their sum; by chunks of 2^shift events."""

    shift: int
    sums: bool

    def _found(self, pages: Pages, uses: Array, group: int, questions: list[list[Array]]) -> Batches:
        columns = self.groups[group]
        for chunks in vector_chunks(pages, columns, uses, self.shift, self.sums):
            yield self._rows(chunks, group, 1 if self.sums else len(columns))

    def _rows(self, chunks: Chunks, group: int, width: int) -> pa.RecordBatch:
        count = len(chunks.process)
        offsets = np.concatenate([[0], chunks.ends]).astype(np.int32)
        return pa.RecordBatch.from_arrays(
            [
                self._names(chunks.process),
                pa.array(chunks.number),
                pa.array(np.full(count, group, np.int32)),
                pa.array(np.full(count, width, np.int32)),
                pa.ListArray.from_arrays(pa.array(offsets), pa.array(chunks.values)),
                pa.nulls(count, pa.string()),
            ],
            names=[PROCESS, NUMBER, "part", "width", "known", "note"],
        )

    def _note(self, notes: Notes) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays(
            [
                pa.nulls(1, pa.string()),
                pa.nulls(1, pa.int64()),
                pa.nulls(1, pa.int32()),
                pa.nulls(1, pa.int32()),
                pa.array([[]], pa.list_(pa.int32())),
                pa.array([notes.to_json()]),
            ],
            names=[PROCESS, NUMBER, "part", "width", "known", "note"],
        )


@dataclass(frozen=True)
class AnswersTask(_ColumnsTask):
    """Answers the questions that are about these columns."""

    def _found(self, pages: Pages, uses: Array, group: int, questions: list[list[Array]]) -> Batches:
        columns = self.groups[group]
        if not questions or not len(columns):
            return
        events, of = (np.concatenate(column) for column in zip(*questions, strict=True))
        column_of = np.full(len(self.processes), -1, np.int32)
        column_of[columns] = np.arange(len(columns))
        mine = np.flatnonzero(column_of[of] >= 0)
        order = mine[np.argsort(events[mine], kind="stable")]
        events, of = events[order], of[order]
        known = known_counts(pages, columns, uses, events, column_of[of])
        process = np.searchsorted(self.first, events, side="right") - 1
        yield pa.RecordBatch.from_arrays(
            [
                self._names(process),
                pa.array(events - self.first[process] + 1),
                self._names(of),
                pa.array(known),
                pa.nulls(len(events), pa.string()),
            ],
            names=["process", "rank", "of", "known", "note"],
        )

    def _note(self, notes: Notes) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays(
            [
                pa.nulls(1, pa.string()),
                pa.nulls(1, pa.int64()),
                pa.nulls(1, pa.string()),
                pa.nulls(1, pa.int32()),
                pa.array([notes.to_json()]),
            ],
            names=["process", "rank", "of", "known", "note"],
        )

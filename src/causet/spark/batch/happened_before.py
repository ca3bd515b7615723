"""`happened_before()`: how events are related, to one event or pair by pair.

For one event a single task finds its past and its future. For pairs, questions go to the tasks that compute
columns of vector clocks (see `vectors`): how many events of the one's process does the other know?
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as compute
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from causet.errors import BadInput, quote
from causet.kernels.arrays import Array
from causet.kernels.logs.pages import ABSENT, processes_of
from causet.kernels.logs.vectors import USE_BYTES, known_counts, uses_of
from causet.spark.batch.explain import find_event, rows_about
from causet.spark.batch.explanation import AFTER, BEFORE, CONCURRENT, SAME
from causet.spark.batch.reach import ConeKernel, ask
from causet.spark.batch.vectors import column_groups, columns_at_once
from causet.spark.skeleton.blobs import SCHEMA, Batches, blob_batch, pack, unpack
from causet.spark.skeleton.census import RANK, Census, own_id, take_census
from causet.spark.skeleton.skeleton import Skeleton
from causet.spark.skeleton.task import Execution, Kernel

QUESTIONS = 9
"""A kind of blob that skeletons do not have: events, and the processes of which they may know."""
QUESTION_TYPES: list[type] = [np.int64, np.int32]


def happened_before(events: DataFrame, pairs: DataFrame | None = None, of: str | None = None) -> DataFrame:
    """How events are related.

    With `pairs`, which has the ids of events in its columns `a` and `b`: adds `relation` to them, which is
    `before` (a happened before b), `after`, `concurrent`, `same`, or null where an id is unknown or null.
    With `of`, the id of an event or a message: adds `relation` to the events, of each to that one.
    Bad input raises `causet.errors.BadInput`.
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
    found, _ = ask(numbered, census, ConeKernel(event))
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
                f"pairs of events have their ids in columns a and b; {quote(name)} is not a column of strings"
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
    groups = column_groups(np.array(asked, np.int64), columns_at_once(census, 1))
    blobs = questions.mapInArrow(QuestionPacker(census.processes, census.first), SCHEMA)
    try:
        found, _ = Skeleton(numbered, census, others=blobs).run(AnswersKernel(census.processes, groups))
    finally:
        questions.unpersist()
    return found


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


@dataclass(frozen=True)
class AnswersKernel(Kernel):
    """Answers questions about the columns of these groups."""

    processes: tuple[str, ...]
    groups: list[Array]
    rows = "process string, rank long, of string, known int"
    event_bytes = USE_BYTES

    @property
    def parts(self) -> int:
        return len(self.groups)

    def run(self, execution: Execution) -> Iterator[Sequence[Any]]:
        if not execution.others:
            return
        pages, first = execution.pages, execution.pages.first
        names = pa.array(self.processes, pa.string())
        questions = (unpack(blob, QUESTION_TYPES) for blob in execution.others)
        all_events, all_of = (np.concatenate(column) for column in zip(*questions, strict=True))
        for columns in self.groups[execution.task :: execution.tasks]:
            column_of = np.full(len(self.processes), ABSENT, np.int32)
            column_of[columns] = np.arange(len(columns))
            mine = np.flatnonzero(column_of[all_of] != ABSENT)
            order = mine[np.argsort(all_events[mine], kind="stable")]
            events, of = all_events[order], all_of[order]
            known = known_counts(pages, columns, uses_of(pages), events, column_of[of])
            process = processes_of(first, events)
            ranks = events - first[process] + 1
            yield [names.take(pa.array(process)), ranks, names.take(pa.array(of)), known]

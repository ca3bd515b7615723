"""The skeleton: an execution as numbers, a few bytes per event, made by all workers, for kernels to run on.

Every event becomes its number (see `census`), every reference a link (effect, cause): by `pack`, each worker
for itself, and by `match`, where ids and messages that can be any string meet in one of many buckets.

`Skeleton.run` gives the whole of it to one task, or to several that share the work, and gets back rows and
notes. That is the one way from a DataFrame of events to the kernels of logs and back.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from causet.spark.skeleton.blobs import SCHEMA, Batches
from causet.spark.skeleton.census import NUMBER, Census, kind_number, own_id, with_number
from causet.spark.skeleton.census import field as column
from causet.spark.skeleton.faults import bad_input
from causet.spark.skeleton.files import PackFiles
from causet.spark.skeleton.match import Matcher
from causet.spark.skeleton.notes import Notes
from causet.spark.skeleton.pack import Packer
from causet.spark.skeleton.task import NOTES, Kernel, Task

SMALL = 1 << 17
"""Events of an execution that one task packs, matches and looks at."""
BUCKET_KEYS = 500_000
"""Definitions and references that meet in one bucket, about."""


def is_small(census: Census) -> bool:
    """Whether one task should do everything: that takes less time than to start several."""
    return census.events <= SMALL


@dataclass(frozen=True)
class Skeleton:
    """The skeleton of an execution. Used in a `with`, what it keeps in Spark's cache is freed at the end;
    otherwise answers stay there for as long as the session lives."""

    numbered: DataFrame
    census: Census
    deliveries: bool = False
    """whether links know which are deliveries, sends how many there are, and whom every message is for"""
    keep: bool = False
    """whether it is asked for more than once"""
    others: DataFrame | None = None
    """further blobs for the kernel, of kinds that no skeleton has"""
    _cached: list[DataFrame] = field(default_factory=list)

    def __enter__(self) -> Skeleton:
        return self

    def __exit__(self, *_: object) -> None:
        for frame in self._cached:
            frame.unpersist()

    @cached_property
    def blobs(self) -> DataFrame:
        rows, (packer, *matcher) = _steps(self.numbered, self.census, self.deliveries)
        table = self.census.table
        if table is None:
            blobs = rows.mapInArrow(packer, SCHEMA)
        else:
            blobs = table.tasks(self.numbered.sparkSession).mapInArrow(PackFiles(table, packer), SCHEMA)
        if matcher:
            blobs = blobs.repartition(packer.buckets, "bucket").mapInArrow(matcher[0], SCHEMA)
        if self.others is not None:
            blobs = blobs.union(self.others)
        return self._persisted(blobs) if self.keep else blobs

    def _persisted(self, frame: DataFrame) -> DataFrame:
        self._cached.append(frame.persist())
        return frame

    def run(self, kernel: Kernel) -> tuple[DataFrame, Notes]:
        """The rows of a kernel's answer, cached, and all notes. BadInput if the events are not an
        execution."""
        found = self._persisted(self._given_to(kernel))
        noted = F.col(NOTES).isNotNull()
        notes = self._checked(row[0] for row in found.where(noted).select(NOTES).collect())
        return found.where(~noted).drop(NOTES), notes

    def collect(self, kernel: Kernel) -> tuple[pa.Table, Notes]:
        """The same for an answer that the driver can hold, in one job."""
        found = self._given_to(kernel).toArrow()
        noted = found.column(NOTES).is_valid()
        notes = self._checked(found.column(NOTES).filter(noted).to_pylist())
        return found.filter(found.column(NOTES).is_null()).drop_columns(NOTES), notes

    def _checked(self, texts: Iterable[str]) -> Notes:
        notes = Notes()
        for text in texts:
            notes.merge(text)
        error = bad_input(notes, self.numbered, self.census)
        if error is not None:
            self.__exit__()
            raise error
        return notes

    def _given_to(self, kernel: Kernel) -> DataFrame:
        census, schema = self.census, f"{kernel.rows}, {NOTES} string"
        # Blobs that are there anyway are not made again.
        if is_small(census) and self.others is None and "blobs" not in vars(self):
            rows, steps = _steps(self.numbered, census, self.deliveries)
            together = OneAfterTheOther((*steps, Task(kernel, census.first, census.time_type, 1)))
            return rows.coalesce(1).mapInArrow(together, schema)
        tasks = 1
        if kernel.parts > 1 and not is_small(census):
            tasks = min(kernel.parts, slots(self.numbered.sparkSession))
        task = Task(kernel, census.first, census.time_type, tasks)
        return _for_tasks(self.blobs, tasks).mapInArrow(task, schema)


def slots(spark: SparkSession) -> int:
    """How many tasks Spark thinks it can run at the same time, asked in a way that every kind of session
    answers."""
    return spark.range(1 << 20).select(F.spark_partition_id()).distinct().count()


def _for_tasks(blobs: DataFrame, tasks: int) -> DataFrame:
    """The whole skeleton for every task; the number of the task is its bucket."""
    if tasks == 1:
        return blobs.withColumn("bucket", F.lit(0)).repartition(1)
    every = F.explode(F.sequence(F.lit(0), F.lit(tasks - 1)))
    return blobs.withColumn("bucket", every).repartitionById(tasks, "bucket")


@dataclass(frozen=True)
class OneAfterTheOther:
    """Several steps as one task."""

    steps: tuple[Callable[[Batches], Batches], ...]

    def __call__(self, batches: Batches) -> Batches:
        for step in self.steps:
            batches = step(batches)
        return batches


def _steps(
    numbered: DataFrame, census: Census, deliveries: bool
) -> tuple[DataFrame, tuple[Packer] | tuple[Packer, Matcher]]:
    """The rows that are packed, and the tasks that make the skeleton of them."""
    buckets = max(1, 2 * census.events // BUCKET_KEYS) if census.messages or census.own_ids else 0

    wanted = [
        F.col(NUMBER).alias("number"),
        column(numbered, "time").cast("double" if census.floats else "long").alias("time"),
    ]
    if census.own_ids:
        wanted.append(own_id(numbered).alias("id"))
    if census.parents:
        wanted.append(_list(numbered, "parents"))
    if census.messages:
        wanted.append(kind_number(numbered).alias("kind"))
        wanted.append(column(numbered, "message").alias("message"))
        wanted.append(F.coalesce(column(numbered, "control"), F.lit(False)).alias("control"))
    if deliveries:
        wanted.append(_list(numbered, "to"))
    selected = with_number(numbered, census).select(*wanted)
    packer = Packer(
        names=pa.array(census.processes, pa.string()),
        first=census.first,
        floats=census.floats,
        own_ids=census.own_ids,
        parents=census.parents,
        messages=census.messages,
        deliveries=deliveries,
        buckets=buckets,
        key=secrets.randbits(63),
    )
    if not buckets:
        return selected, (packer,)
    return selected, (packer, Matcher(deliveries, census.first))


def _list(numbered: DataFrame, name: str) -> Column:
    """A list of strings, empty where it is missing: Arrow's writer takes quadratic time for nulls."""
    return F.coalesce(column(numbered, name), F.array().cast("array<string>")).alias(name)

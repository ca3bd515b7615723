"""The census: which processes an execution has and how many events each; the first look at any DataFrame.

Events get numbers from it: those of process p are `first[p] : first[p + 1]`, processes in the order of their
names. That is the layout of the kernels.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.window import Window

from causet.errors import BadInput, Problem, quote
from causet.formats.schema import SCHEMA
from causet.kernels.arrays import Array
from causet.model import KINDS
from causet.spark.read.arrow import Table
from causet.spark.read.columns import check_required, check_type
from causet.spark.skeleton.blobs import DELIVER, LOCAL, RECEIVE, SEND
from causet.spark.skeleton.files import counted_by_workers

RESERVED = "__causet_"
RANK = f"{RESERVED}rank"
"""The column for the number of an event within its process, where seq has gaps."""
NUMBER = f"{RESERVED}number"
_NAME, _FIRST = f"{RESERVED}name", f"{RESERVED}first"

_USED = ("process", "seq", "time", "kind", "id", "message", "control", "to", "parents")


def field(events: DataFrame, name: str) -> Column:
    """A column of the trace format; null where this trace has none of that name."""
    if name in events.columns:
        return F.col(f"`{name}`")
    return F.lit(None).cast(SCHEMA[name].type)


def none_of(kind: type) -> Any:
    """The number of this type that stands for a missing value: less than all others."""
    return -np.inf if kind is np.float64 else np.iinfo(np.int64).min


def own_id(events: DataFrame) -> Column:
    """The id of each event: its own, or process#seq."""
    return F.coalesce(field(events, "id"), default_id())


def default_id() -> Column:
    return F.concat(F.col("process"), F.lit("#"), F.col("seq"))


def kind_number(events: DataFrame) -> Column:
    kind = field(events, "kind")
    return (
        F.when(kind == "send", F.lit(SEND))
        .when(kind == "receive", F.lit(RECEIVE))
        .when(kind == "deliver", F.lit(DELIVER))
        .otherwise(F.lit(LOCAL))
        .cast("tinyint")
    )


@dataclass(frozen=True)
class Census:
    processes: tuple[str, ...]
    """names in their order"""
    counts: tuple[int, ...]
    gaps: tuple[tuple[str, int], ...]
    """(process, how many seqs are missing) where some are"""
    floats: bool
    """whether times are floats"""
    own_ids: bool
    """whether some event has an id other than process#seq"""
    messages: bool
    """whether some event sends, receives or delivers"""
    parents: bool
    """whether some event may have parents"""
    sends: tuple[int, ...]
    """for each process how many messages it sent, control messages included"""
    targets: tuple[int, ...] = ()
    """for each process how many targets these have, if asked for"""
    table: Table | None = None
    """files that workers read themselves, in place of rows"""

    @cached_property
    def first(self) -> Array:
        return np.concatenate([[0], np.cumsum(self.counts)]).astype(np.int64)

    def process_of(self, event: int) -> int:
        """The number of the process of an event."""
        return int(np.searchsorted(self.first, event, side="right")) - 1

    def rank_of(self, event: int) -> tuple[str, int]:
        """The process of an event, and its number within the process, from 1."""
        process = self.process_of(event)
        return self.processes[process], event - int(self.first[process]) + 1

    @property
    def events(self) -> int:
        return sum(self.counts)

    @property
    def time_type(self) -> type:
        return np.float64 if self.floats else np.int64


def take_census(
    events: DataFrame, targets: bool = False, table: Table | None = None
) -> tuple[DataFrame, Census]:
    """Count the events of every process, and if wanted the targets of its messages. The DataFrame that comes
    back has one more column, RANK: the number of an event within its process, from 1, which is its seq unless
    there are gaps. `table` has the same events, for workers to read themselves."""
    check_columns(events)
    rows = _counted(events, targets) if table is None else counted_by_workers(events.sparkSession, table)
    for row in rows:
        _check(row)
    by_process: dict[str, list[Row]] = {}
    for row in rows:
        by_process.setdefault(row.process, []).append(row)
    processes = sorted(by_process)
    counts = [sum(row.events for row in by_process[process]) for process in processes]
    least = [min(row.least for row in by_process[process]) for process in processes]
    most = [max(row.most for row in by_process[process]) for process in processes]
    sparse = any(low != 1 or high != count for low, high, count in zip(least, most, counts, strict=True))
    census = Census(
        processes=tuple(processes),
        counts=tuple(counts),
        gaps=tuple(
            (process, high - count)
            for process, high, count in zip(processes, most, counts, strict=True)
            if high > count
        ),
        floats="time" in events.columns
        and isinstance(events.schema["time"].dataType, T.DoubleType | T.FloatType),
        # With gaps the seq in an id is not the event's number, so ids are strings like any other.
        own_ids=sparse or (any(row.ids for row in rows) and (table is not None or _has_own_ids(events))),
        messages=any(row.kind not in (None, "local") for row in rows),
        parents="parents" in events.columns,
        sends=tuple(
            sum(row.events for row in by_process[process] if row.kind == "send") for process in processes
        ),
        targets=tuple(
            sum(row.targets or 0 for row in by_process[process] if row.kind == "send")
            for process in processes
        )
        if targets
        else (),
        # With gaps events are numbered by their rank, which no worker knows.
        table=None if sparse else table,
    )
    if not sparse:
        return events.withColumn(RANK, F.col("seq")), census
    in_order = Window.partitionBy("process").orderBy("seq")
    return events.withColumn(RANK, F.dense_rank().over(in_order).cast("long")), census


def _counted(events: DataFrame, targets: bool) -> list[Row]:
    """Counts and extremes only, of as few columns as there are: this reads the whole log."""
    return (
        events.groupBy("process", field(events, "kind").alias("kind"))
        .agg(
            F.count(F.lit(1)).alias("events"),
            F.min("seq").alias("least"),
            F.max("seq").alias("most"),
            F.count("seq").alias("seqs"),
            F.count(field(events, "id")).alias("ids"),
            F.count(field(events, "message")).alias("messages"),
            *([F.sum(F.size(field(events, "to"))).alias("targets")] if targets else []),
        )
        .collect()
    )


def with_number(numbered: DataFrame, census: Census) -> DataFrame:
    """The events with their numbers, as NUMBER."""
    begins = pa.table(
        {_NAME: pa.array(census.processes, pa.string()), _FIRST: pa.array(census.first[:-1], pa.int64())}
    )
    table = numbered.sparkSession.createDataFrame(begins)
    known = numbered.join(F.broadcast(table), F.col("process") == F.col(_NAME))
    return known.withColumn(NUMBER, F.col(_FIRST) + F.col(RANK).cast("long") - 1).drop(_NAME, _FIRST)


def _check(row: Row) -> None:
    """BadInput unless these events of one process and kind have what every event must have."""
    if row.process is None:
        raise BadInput("an event has no process; every event must have one")
    of = f"of process {quote(row.process)}"
    if row.kind is not None and row.kind not in KINDS:
        raise BadInput(f"an event {of} has the kind {quote(row.kind)}; it must be one of {', '.join(KINDS)}")
    if row.seqs < row.events or row.least < 1:
        seq = "no seq" if row.seqs < row.events else f"the seq {row.least}"
        raise BadInput(f"an event {of} has {seq}; seq must be an integer from 1")
    if row.kind not in (None, "local") and row.messages < row.events:
        raise BadInput(f"a {row.kind} {of} has no message")


def _has_own_ids(events: DataFrame) -> bool:
    """Whether some event has an id other than process#seq."""
    return not events.where(field(events, "id") != default_id()).isEmpty()


def check_columns(events: DataFrame) -> None:
    """BadInput unless the columns that are used have the types of the trace format."""
    ours = next((name for name in events.columns if name.startswith(RESERVED)), None)
    if ours is not None:
        raise BadInput(f"there is a column {quote(ours)}; names that begin with {RESERVED} are reserved")
    try:
        check_required(events.columns)
        for name in _USED:
            if name in events.columns:
                check_type(name, events.schema[name].dataType)
    except Problem as problem:
        raise BadInput(str(problem)) from None

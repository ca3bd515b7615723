"""The census: which processes an execution has and how many events each; the first look at any DataFrame.

Events get numbers from it: those of process p are `first[p] : first[p + 1]`, processes in the order of their
names. That is the layout of the kernels.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.window import Window

from causet.formats.strict import show
from causet.model import KINDS, BadInput

Array = np.ndarray[Any, Any]

SEND, RECEIVE, DELIVER, LOCAL = 1, 2, 3, 0
"""Kinds of events as numbers."""
RANK = "__rank"
"""The column for the number of an event within its process, where seq has gaps."""

_TYPES = {
    "kind": T.StringType(),
    "id": T.StringType(),
    "message": T.StringType(),
    "to": T.ArrayType(T.StringType()),
    "parents": T.ArrayType(T.StringType()),
    "time": T.LongType(),
    "control": T.BooleanType(),
}


def field(events: DataFrame, name: str) -> Column:
    """A column of the trace format; null where this trace has none of that name."""
    if name in events.columns:
        return F.col(f"`{name}`")
    return F.lit(None).cast(_TYPES[name])


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
    sends: tuple[int, ...]
    """for each process how many messages it sent, control messages included"""

    @cached_property
    def first(self) -> Array:
        return np.concatenate([[0], np.cumsum(self.counts)]).astype(np.int64)

    def process_of(self, event: int) -> int:
        return int(np.searchsorted(self.first, event, side="right")) - 1

    @property
    def events(self) -> int:
        return sum(self.counts)

    @property
    def time_type(self) -> type:
        return np.float64 if self.floats else np.int64


def take_census(events: DataFrame) -> tuple[DataFrame, Census]:
    """Count the events of every process. What comes back beside it has a column RANK: the number of an event
    within its process, from 1, which is its seq unless there are gaps."""
    check_columns(events)
    default_id = F.concat(F.col("process"), F.lit("#"), F.col("seq"))
    rows = (
        events.groupBy("process")
        .agg(
            F.count(F.lit(1)),
            F.min("seq"),
            F.max("seq"),
            F.count(F.when(F.col("seq").isNull(), 1)),
            F.count(F.when(field(events, "id") != default_id, 1)),
            F.count(F.when(kind_number(events) != LOCAL, 1)),
            F.count(F.when(F.size(field(events, "parents")) > 0, 1)),
            F.count(F.when(kind_number(events) == SEND, 1)),
            F.count(F.when((kind_number(events) != LOCAL) & field(events, "message").isNull(), 1)),
            F.min(F.when(~field(events, "kind").isin(*KINDS), field(events, "kind"))),
        )
        .collect()
    )
    rows.sort(key=lambda row: (row[0] is not None, row[0]))
    for process, _, least, _, no_seq, *_, no_message, odd_kind in rows:
        if process is None:
            raise BadInput("an event has no process; every event must have one")
        if odd_kind is not None:
            raise BadInput(
                f"an event of process {show(process)} has the kind {show(odd_kind)}; it must be one of "
                f"{', '.join(KINDS)}"
            )
        if no_message:
            raise BadInput(f"a send, receive or deliver of process {show(process)} has no message")
        if no_seq or least < 1:
            told = "no seq" if no_seq else f"the seq {least}"
            raise BadInput(f"an event of process {show(process)} has {told}; seq must be an integer from 1")
    sparse = any(least != 1 or most != count for _, count, least, most, *_ in rows)
    census = Census(
        processes=tuple(row[0] for row in rows),
        counts=tuple(row[1] for row in rows),
        gaps=tuple((row[0], row[3] - row[1]) for row in rows if row[3] > row[1]),
        floats=isinstance(events.schema["time"].dataType, T.DoubleType | T.FloatType)
        if "time" in events.columns
        else False,
        # With gaps the seq in an id is not the event's number, so ids are texts like any other.
        own_ids=sparse or any(row[5] for row in rows),
        messages=any(row[6] for row in rows),
        parents=any(row[7] for row in rows),
        sends=tuple(row[8] for row in rows),
    )
    if not sparse:
        return events.withColumn(RANK, F.col("seq")), census
    in_order = Window.partitionBy("process").orderBy("seq")
    return events.withColumn(RANK, F.dense_rank().over(in_order).cast("long")), census


def check_columns(events: DataFrame) -> None:
    """BadInput unless the columns that are used have the types of the trace format."""
    for name in ("process", "seq"):
        if name not in events.columns:
            raise BadInput(f"there is no column {show(name)}; a trace has at least process and seq")
    wanted: dict[str, tuple[type[T.DataType], ...]] = {
        "process": (T.StringType,),
        "seq": (T.LongType, T.IntegerType, T.ShortType, T.ByteType),
        "time": (T.LongType, T.IntegerType, T.ShortType, T.ByteType, T.DoubleType, T.FloatType, T.NullType),
        "kind": (T.StringType, T.NullType),
        "id": (T.StringType, T.NullType),
        "message": (T.StringType, T.NullType),
        "control": (T.BooleanType, T.NullType),
    }
    for name, kinds in wanted.items():
        if name in events.columns and not isinstance(events.schema[name].dataType, kinds):
            found = events.schema[name].dataType.simpleString()
            raise BadInput(f"column {show(name)} is of type {found}, which no trace has there")
    for name in ("to", "parents"):
        if name in events.columns:
            kind = events.schema[name].dataType
            item = kind.elementType if isinstance(kind, T.ArrayType) else kind
            if item is kind or not isinstance(item, T.StringType | T.NullType):
                raise BadInput(f"column {show(name)} is of type {kind.simpleString()}, not array<string>")

"""`assert_causally_ordered()`: for test suites; names the rows that stand before their causes."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from causet.errors import BadInput, quote
from causet.spark.batch.links import PLACE, Layout, both_ends, layout_of, meet, values_of
from causet.spark.skeleton.blobs import Batches
from causet.spark.skeleton.census import Census, none_of, take_census
from causet.spark.skeleton.faults import Named, names_of

TOLD = 10
"""Effects that the error names."""


class _Wrong(NamedTuple):
    """An effect that does not stand behind the one of its causes that stands last."""

    place: int | float
    effect: int
    cause: int
    tied: bool


def assert_causally_ordered(df: DataFrame, by: str | None = None) -> None:
    """AssertionError if some row does not stand behind its direct causes: the event before in its process,
    its parents, the send of its message.

    Rows stand as the DataFrame has them, or as the column `by` (numbers, times or dates) sorts them; where
    a row and its cause are equal there, nothing says which comes first, and that is wrong too. Rows are the
    events of one execution, as `causal_order` takes them. Bad input raises `causet.errors.BadInput`; faults
    of the log are passed over.
    """
    place, kind = _place(df, by)
    numbered, census = take_census(df.withColumn(PLACE, place))
    layout = layout_of(census, kind)
    # Kept, since row numbers are asked for later: a plan that runs twice need not number rows the same.
    values = values_of(numbered, census, layout).persist()
    try:
        with both_ends(numbered, census, values, layout) as ends:
            task = WrongTask(layout)
            found = [json.loads(row.found) for row in ends.rows.mapInArrow(task, "found string").collect()]
        effects, wrong, unplaced = (
            sum(each[name] for each in found) for name in ("effects", "wrong", "unplaced")
        )
        if unplaced:
            raise BadInput(f"column {quote(by)}: {unplaced:,} rows have nothing there")
        if not wrong:
            return
        first = sorted(_Wrong(*each) for some in found for each in some["first"])[:TOLD]
        told = _told(first, _row_numbers(values, first), numbered, census)
    finally:
        values.unpersist()
    order = "as they stand" if by is None else f"by {quote(by)}"
    head = f"not in causal order {order}: {wrong:,} of {effects:,} effects do not stand behind their causes"
    rest = [f"and {wrong - len(told):,} more"] if wrong > len(told) else []
    raise AssertionError("\n  ".join([head, *told, *rest]))


def _place(df: DataFrame, by: str | None) -> tuple[Column, type]:
    """The order of the rows as a column of numbers."""
    if by is None:
        return F.monotonically_increasing_id(), np.int64
    if by not in df.columns:
        raise BadInput(f"there is no column {quote(by)} with the order of the rows")
    column, kind = F.col(f"`{by}`"), df.schema[by].dataType
    if isinstance(kind, T.IntegralType):
        return column, np.int64
    if isinstance(kind, T.FractionalType) and not isinstance(kind, T.DecimalType):
        return column, np.float64
    if isinstance(kind, T.TimestampType | T.TimestampNTZType):
        return F.unix_micros(column.cast("timestamp")), np.int64
    if isinstance(kind, T.DateType):
        return F.unix_date(column), np.int64
    raise BadInput(f"column {quote(by)} is of type {kind.simpleString()}; it must be of numbers or times")


def _row_numbers(values: DataFrame, wrong: Iterable[_Wrong]) -> dict[int, int]:
    """For these events the numbers of their rows, from 1: one more than there are rows before."""
    wanted = sorted({number for each in wrong for number in (each.effect, each.cause)})
    some = values.where(F.col("number").isin(wanted)).select(
        F.col("number").alias("one"), F.col("place").alias("its_place")
    )
    before = F.count(F.when(F.col("place") < F.col("its_place"), 1))
    counted = values.crossJoin(F.broadcast(some)).groupBy("one").agg(before.alias("before")).collect()
    return {row.one: row.before + 1 for row in counted}


def _told(wrong: list[_Wrong], rows: dict[int, int], numbered: DataFrame, census: Census) -> list[str]:
    named = names_of(numbered, census, rows)
    lines = []
    for _, number, its_cause, tied in wrong:
        effect, cause = named[number][0], named[its_cause][0]
        how = "stands level with its cause in" if tied else "stands before its cause in"
        lines.append(
            f"row {rows[number]:,}, {quote(effect.id)}, {how} row {rows[its_cause]:,}, {quote(cause.id)} "
            f"({_reason(effect, cause, its_cause == number - 1)})"
        )
    return lines


def _reason(effect: Named, cause: Named, neighbours: bool) -> str:
    if neighbours and effect.process == cause.process:
        return f"process order of {quote(effect.process)}"
    if cause.message is not None and cause.message == effect.message:
        return f"message {quote(effect.message)}"
    return "parent"


@dataclass(frozen=True)
class WrongTask:
    """The first effects of one bucket that are wrong, and how many there are."""

    layout: Layout

    def __call__(self, batches: Batches) -> Batches:
        met = meet(batches, self.layout)
        if met is None:
            return
        bad = np.flatnonzero(met.cause.place >= met.effect.place)
        # Of each effect the cause that stands last; of equal ones the first.
        bad = bad[np.lexsort((met.causes[bad], -met.cause.place[bad], met.effects[bad]))]
        bad = bad[np.diff(met.effects[bad], prepend=-1) != 0]
        first = bad[np.lexsort((met.effects[bad], met.effect.place[bad]))][:TOLD]
        columns = [met.effect.place, met.effects, met.causes, met.cause.place == met.effect.place]
        found = {
            "effects": int(np.count_nonzero(np.diff(met.effects, prepend=-1))),
            "wrong": len(bad),
            "unplaced": int(np.count_nonzero(met.events.place == none_of(self.layout.place))),
            "first": list(zip(*(column[first].tolist() for column in columns), strict=True)),
        }
        yield pa.RecordBatch.from_pydict({"found": [json.dumps(found)]})

"""Vector clocks and sizes of causal pasts, for every row.

Each column of a vector is computed without the others: groups of columns are shared by tasks, each of which
sees the whole skeleton. What they find goes back to the rows by a join. The answer does not depend on how
columns are grouped.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from causet.kernels.arrays import Array
from causet.kernels.logs.vectors import USE_BYTES, uses_of, vector_chunks
from causet.spark.batch.order import fits
from causet.spark.skeleton.census import RANK, Census, take_census
from causet.spark.skeleton.skeleton import Skeleton
from causet.spark.skeleton.task import Execution, Kernel

FEWEST_COLUMNS, MOST_COLUMNS = 8, 512
COLUMN_VALUES = 1 << 24
"""Values that a task keeps at most: of what all processes know, and of chunks that it fills."""
CHUNK_VALUES = 1 << 16
"""Values of one chunk, all columns together, at most."""
WIDEST_CHUNK = 8
"""Results go back to the rows 2^8 events at a time, or fewer."""
PROCESS, NUMBER, PARTS = "__process", "__chunk", "__parts"


def vector_clocks() -> Callable[[DataFrame], DataFrame]:
    """For `events.transform(vector_clocks())`: adds `vector`, a map from each process to how many of its
    events happened before this one or are it; processes with none are left out.

    So a happened before b exactly if b's vector has at least a's own entry for a's process. The answer has as
    many entries as there are events times processes; `causal_past` and `happened_before` do with less.
    Faults of a log are passed over, as by `causal_order`; bad input raises `causet.errors.BadInput`.
    """
    return lambda events: _with_vectors(events, MOST_COLUMNS)


def causal_past() -> Callable[[DataFrame], DataFrame]:
    """For `events.transform(causal_past())`: adds `past`, how many events happened before this one: the sum
    of its vector, less itself. It grows along happened-before, so to sort by it is a causal order."""
    return lambda events: _with_past(events, MOST_COLUMNS)


def _with_vectors(events: DataFrame, most: int) -> DataFrame:
    numbered, census = take_census(events)
    shift = _chunk_shift(census, CHUNK_VALUES)
    width = min(most, columns_at_once(census, 1 << shift))
    chunks = _chunks(numbered, census, shift, width, sums=False)
    # A foldable string, not as many literals as there are processes.
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
    chunks = _chunks(numbered, census, shift, min(most, columns_at_once(census, 1)), sums=True)

    def past(parts: Column, place: Column) -> Column:
        def add(total: Column, part: Column) -> Column:
            return total + F.get(part["known"], place)

        return F.aggregate(parts, F.lit(-1).cast("long"), add)

    return _attached(numbered, _spread(numbered, chunks, census.events), shift, "past", past)


def _chunk_shift(census: Census, values: int) -> int:
    """A chunk of each process within this number of values."""
    shift = WIDEST_CHUNK
    while shift and len(census.counts) << shift > values:
        shift -= 1
    return shift


def columns_at_once(census: Census, rows: int) -> int:
    """How many columns a task may compute at a time, if it keeps this many rows of each process."""
    return min(MOST_COLUMNS, max(FEWEST_COLUMNS, COLUMN_VALUES // (rows * max(len(census.counts), 1))))


def column_groups(columns: Array, width: int) -> list[Array]:
    """The columns in groups of at most this width."""
    return np.array_split(columns, max(1, -(-len(columns) // width)))


def _chunks(numbered: DataFrame, census: Census, shift: int, width: int, sums: bool) -> DataFrame:
    """For each chunk of each process what the groups found, in the order of their columns."""
    groups = column_groups(np.arange(len(census.counts)), width)
    found, _ = Skeleton(numbered, census).run(VectorsKernel(census.processes, groups, shift, sums))
    part = F.struct("part", "width", "known")
    if len(groups) == 1:
        return found.select(PROCESS, NUMBER, F.array(part).alias(PARTS))
    return found.groupBy(PROCESS, NUMBER).agg(F.sort_array(F.collect_list(part)).alias(PARTS))


def _spread(numbered: DataFrame, chunks: DataFrame, values: int) -> DataFrame:
    """The chunks, to be given to every worker as a whole where this number of values fits."""
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


@dataclass(frozen=True)
class VectorsKernel(Kernel):
    """For all events the columns of these groups, or their sums; by chunks of 2^shift events."""

    processes: tuple[str, ...]
    groups: list[Array]
    shift: int
    sums: bool
    rows = f"{PROCESS} string, {NUMBER} long, part int, width int, known array<int>"
    event_bytes = USE_BYTES

    @property
    def parts(self) -> int:
        return len(self.groups)

    def run(self, execution: Execution) -> Iterator[Sequence[Any]]:
        pages = execution.pages
        names = pa.array(self.processes, pa.string())
        for number in range(execution.task, len(self.groups), execution.tasks):
            columns = self.groups[number]
            width = 1 if self.sums else len(columns)
            for chunks in vector_chunks(pages, columns, uses_of(pages), self.shift, self.sums):
                count = len(chunks.process)
                yield [
                    names.take(pa.array(chunks.process)),
                    chunks.number,
                    np.full(count, number),
                    np.full(count, width),
                    pa.ListArray.from_arrays(pa.array(np.append(0, chunks.ends), pa.int32()), chunks.values),
                ]

"""`causal_order()`: block, repaired time and position for each row: time order, moved only where it is wrong.

One task runs the kernels on the skeleton, a few bytes per event, on disk where that is more than it may keep.
What it found goes back to the rows by a join, and all workers sort and write the rows. Nothing depends on the
order of the input, on partitions or on workers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from causet.formats.execution import Fault
from causet.kernels.logs.levels import fill_positions
from causet.kernels.logs.pages import NARROWEST, Pages
from causet.spark.columns import input_names, quoted
from causet.spark.skeleton.budget import memory_allowed
from causet.spark.skeleton.census import NUMBER, RANK, Census, take_census, with_number
from causet.spark.skeleton.faults import bad_input, log_faults
from causet.spark.skeleton.skeleton import BLOCKS, Batches, Notes, read_pieces, with_skeleton
from causet.spark.skeleton.task import is_sound, lay_out

Array = np.ndarray[Any, Any]

SHIFT = NARROWEST
"""Results go back to the rows 2^8 events at a time, in chunks by the events' numbers."""
ROWS_PER_FILE = 1_000_000
"""Rows of one partition of the answer; depends on nothing but the log."""
CHUNK = "__causet_chunk"
ADDED = ("block", "repaired", "position")


@dataclass(frozen=True)
class Ordered:
    """An execution in causal order, and what is wrong with its log."""

    rows: DataFrame
    """every column of the input, block, repaired and position; in that order"""
    renamed: Mapping[str, str]
    """what columns of the input are called that had the name of an added one: own name → new name"""
    census: Census
    blocks: int
    """the largest block: how many events the longest chain has"""
    faults: tuple[Fault, ...]


def causal_order() -> Callable[[DataFrame], DataFrame]:
    """For `events.transform(causal_order())`: adds block, repaired and position; rows come in that order.

    A column of the input that has one of these names stays, as input_block, input_repaired or input_position.
    The narrow part of the work is done at once, the rows are computed when they are used. Faults of a log
    (gaps, unknown parents, deliveries without a send) are passed over; `order_events` tells of them. Bad
    input (a cycle, a repeated (process, seq), a message sent twice) raises `causet.model.BadInput`.
    """
    return lambda events: order_events(events).rows


def order_events(events: DataFrame) -> Ordered:
    """The execution in causal order, with the faults of its log."""
    case_matters = events.sparkSession.conf.get("spark.sql.caseSensitive", "false") == "true"
    renamed = input_names(events.columns, ADDED, case_matters)
    if renamed:
        events = events.select(
            *(F.col(quoted(name)).alias(renamed.get(name, name)) for name in events.columns)
        )
    numbered, census = take_census(events)
    schema = (
        f"{CHUNK} long, block array<int>, repaired array<{'double' if census.floats else 'long'}>, "
        "position array<long>, note string"
    )
    found = with_skeleton(numbered, census, LevelsTask(census.first, census.floats), schema).persist()
    notes = Notes()
    for row in found.where(F.col("note").isNotNull()).select("note").collect():
        notes.merge(row[0])
    error = bad_input(notes, numbered, census)
    if error is not None:
        found.unpersist()
        raise error
    rows = _attached(numbered, found, census)
    return Ordered(rows, renamed, census, notes.counts.get(BLOCKS, 0), log_faults(notes, numbered, census))


def _attached(numbered: DataFrame, found: DataFrame, census: Census) -> DataFrame:
    """Every row with its block, repaired time and position, in the order of positions."""
    columns = [name for name in numbered.columns if name != RANK]
    chunks = found.where(F.col("note").isNull()).drop("note")
    if fits(numbered, census.events):
        chunks = F.broadcast(chunks)
    events = with_number(numbered, census)
    wide = events.join(chunks, F.shiftright(NUMBER, SHIFT) == F.col(CHUNK))
    place = F.col(NUMBER).bitwiseAND((1 << SHIFT) - 1).cast("int")
    rows = wide.select(*map(quoted, columns), *(F.get(name, place).alias(name) for name in ADDED))
    parts = max(1, -(-census.events // ROWS_PER_FILE))
    part = (F.col("position") / F.lit(ROWS_PER_FILE)).cast("int")
    return rows.repartitionById(parts, part).sortWithinPartitions("position")


def fits(frame: DataFrame, events: int) -> bool:
    """Whether what was found may go to every worker as a whole: 20 bytes per event."""
    conf = frame.sparkSession.conf
    named = (
        conf.get(f"spark.{who}.memory", default) for who, default in (("driver", "1g"), ("executor", "8g"))
    )
    least = min(map(_bytes, named))
    return events * 20 * 8 <= least


def _bytes(setting: str | None) -> int:
    """A size as Spark writes it: 512m, 4g."""
    text = (setting or "1g").lower().removesuffix("b")
    scale = {"k": 10, "m": 20, "g": 30, "t": 40}.get(text[-1:])
    try:
        return int(text[:-1]) << scale if scale is not None else int(text) << 20
    except ValueError:
        return 1 << 30


@dataclass(frozen=True)
class LevelsTask:
    """The one task: blobs in, for every chunk of events its blocks, repaired times and positions."""

    first: Array
    floats: bool

    def __call__(self, batches: Batches) -> Batches:
        notes = Notes()
        pieces = read_pieces(batches, np.float64 if self.floats else np.int64, notes)
        with lay_out(self.first, self.floats, pieces, memory_allowed()) as pages:
            yield from self._found(pages, notes)

    def _found(self, pages: Pages, notes: Notes) -> Batches:
        if not is_sound(pages, notes):
            yield self._note(notes)
            return
        fill_positions(pages)
        blocks = (int(pages.resident(page)[0].max()) for page in range(pages.count))
        notes.add(BLOCKS, max(blocks, default=0), [])
        yield self._note(notes)
        yield from self._chunks(pages)

    def _note(self, notes: Notes) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays(
            [
                pa.nulls(1, pa.int64()),
                pa.nulls(1, pa.list_(pa.int32())),
                pa.nulls(1, pa.list_(pa.float64() if self.floats else pa.int64())),
                pa.nulls(1, pa.list_(pa.int64())),
                pa.array([notes.to_json()]),
            ],
            names=[CHUNK, *ADDED, "note"],
        )

    def _chunks(self, pages: Pages) -> Batches:
        """Pages are no narrower than chunks, and a power of two of them."""
        for page in range(pages.count):
            low, high = pages.span(page)
            numbers = np.arange(low >> SHIFT, ((high - 1) >> SHIFT) + 1)
            ends = np.minimum((numbers + 1) << SHIFT, high) - low
            offsets = pa.array(np.append(0, ends), pa.int32())
            lists = [
                pa.ListArray.from_arrays(offsets, self._values(number, column.copy()))
                for number, column in enumerate(pages.resident(page))
            ]
            columns = [pa.array(numbers), *lists, pa.nulls(len(numbers), pa.string())]
            yield pa.RecordBatch.from_arrays(columns, names=[CHUNK, *ADDED, "note"])

    def _values(self, number: int, column: Array) -> Any:
        """A column of what was found; a repaired time is null where no time came before."""
        if number != 1:
            return pa.array(column)
        none = -np.inf if self.floats else np.iinfo(np.int64).min
        return pa.array(column, mask=column == none)

"""`causal_order()`: repaired time and position for each row: time order, moved only where it is wrong.

One task runs the kernels on the skeleton, a few bytes per event, on disk where that is more than it may keep.
What it found goes back to the rows by a join, and all workers sort and write the rows. Nothing depends on the
order of the input, on partitions or on workers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from causet.formats.execution import Fault
from causet.kernels.logs.blocks import BLOCK_BYTES, blocks_of
from causet.kernels.logs.levels import fill_positions
from causet.kernels.logs.pages import NARROWEST
from causet.spark.columns import input_names, quoted
from causet.spark.skeleton.census import NUMBER, RANK, Census, none_of, take_census, with_number
from causet.spark.skeleton.faults import log_faults
from causet.spark.skeleton.notes import BLOCKS
from causet.spark.skeleton.skeleton import Skeleton
from causet.spark.skeleton.task import Execution, Kernel

SHIFT = NARROWEST
"""Results go back to the rows 2^8 events at a time, in chunks by the events' numbers."""
ROWS_PER_FILE = 1_000_000
"""Rows of one partition of the answer; depends on nothing but the log."""
CHUNK = "__causet_chunk"
ADDED = ("repaired", "position")
BLOCK = "block"
"""The column that is added before them where it is asked for."""


@dataclass(frozen=True)
class Ordered:
    """An execution in causal order, and what is wrong with its log."""

    rows: DataFrame
    """every column of the input, (block,) repaired and position; in that order"""
    renamed: Mapping[str, str]
    """what columns of the input are called that had the name of an added one: own name → new name"""
    census: Census
    blocks: int | None
    """the largest block: how many events the longest chain has; None where blocks were not asked for"""
    faults: tuple[Fault, ...]


def causal_order(blocks: bool = False) -> Callable[[DataFrame], DataFrame]:
    """For `events.transform(causal_order())`: adds `repaired` and `position`; rows come in that order.

    `repaired` is the event's time, or that of a cause, direct or not, if it is later. `position` is the rank
    by (repaired, level, process, seq), where the level is 1 + the largest level among the direct causes with
    the same `repaired`, or 1 if there are none. With `blocks` there is a column `block`, too: 1 + the largest
    block among the direct causes, which is how many events the longest chain up to this one has.

    A column of the input that has one of these names stays, as input_block, input_repaired or input_position.
    The narrow part of the work is done at once, the rows are computed when they are used. Faults of a log
    (gaps, unknown parents, deliveries without a send) are passed over; `order_events` reports them. Bad
    input (a cycle, a repeated (process, seq), a message with two sends) raises `causet.errors.BadInput`.
    """
    return lambda events: order_events(events, blocks).rows


def added(blocks: bool) -> tuple[str, ...]:
    """The names of the columns that are added."""
    return (BLOCK, *ADDED) if blocks else ADDED


def order_events(events: DataFrame, blocks: bool = False) -> Ordered:
    """The execution in causal order, with the faults of its log. `blocks` adds the column `block`."""
    case_matters = events.sparkSession.conf.get("spark.sql.caseSensitive", "false") == "true"
    names = added(blocks)
    renamed = input_names(events.columns, names, case_matters)
    if renamed:
        events = events.select(
            *(F.col(quoted(name)).alias(renamed.get(name, name)) for name in events.columns)
        )
    numbered, census = take_census(events)
    found, notes = Skeleton(numbered, census).run(LevelsKernel(census.floats, blocks))
    rows = _attached(numbered, found, census, names)
    longest = notes.counts.get(BLOCKS, 0) if blocks else None
    return Ordered(rows, renamed, census, longest, log_faults(notes, numbered, census))


def _attached(numbered: DataFrame, found: DataFrame, census: Census, names: Sequence[str]) -> DataFrame:
    """Every row with what was found for it, in the order of positions."""
    columns = [name for name in numbered.columns if name != RANK]
    chunks = F.broadcast(found) if fits(numbered, census.events) else found
    events = with_number(numbered, census)
    wide = events.join(chunks, F.shiftright(NUMBER, SHIFT) == F.col(CHUNK))
    place = F.col(NUMBER).bitwiseAND((1 << SHIFT) - 1).cast("int")
    rows = wide.select(*map(quoted, columns), *(F.get(name, place).alias(name) for name in names))
    parts = max(1, -(-census.events // ROWS_PER_FILE))
    part = (F.col("position") / F.lit(ROWS_PER_FILE)).cast("int")
    return rows.repartitionById(parts, part).sortWithinPartitions("position")


def fits(frame: DataFrame, events: int) -> bool:
    """Whether what was found may go to every worker as a whole: 20 bytes per event at most."""
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
class LevelsKernel(Kernel):
    """For every chunk of events their repaired times and positions, and their blocks where asked for."""

    floats: bool
    blocks: bool = False

    @property
    def event_bytes(self) -> int:
        return BLOCK_BYTES if self.blocks else 0

    @property
    def rows(self) -> str:
        types = {BLOCK: "int", "repaired": "double" if self.floats else "long", "position": "long"}
        return ", ".join([f"{CHUNK} long", *(f"{name} array<{types[name]}>" for name in added(self.blocks))])

    def run(self, execution: Execution) -> Iterator[Sequence[Any]]:
        """Pages are at least as wide as chunks, and a power of two of them."""
        pages = execution.pages
        blocks = blocks_of(pages) if self.blocks else None
        if blocks is not None:
            execution.notes.add(BLOCKS, int(blocks.max(initial=0)))
        fill_positions(pages)
        for page in range(pages.count):
            low, high = pages.span(page)
            numbers = np.arange(low >> SHIFT, ((high - 1) >> SHIFT) + 1)
            ends = np.minimum((numbers + 1) << SHIFT, high) - low
            offsets = pa.array(np.append(0, ends), pa.int32())
            _, repaired, position = (column.copy() for column in pages.resident(page))
            # A repaired time is null where there is no time before.
            times = pa.array(repaired, mask=repaired == none_of(repaired.dtype.type))
            values = [] if blocks is None else [pa.array(blocks[low:high])]
            values += [times, pa.array(position)]
            yield [numbers, *(pa.ListArray.from_arrays(offsets, column) for column in values)]

"""Every link of an execution with what is known of its two ends: times, places in some order, positions.

They meet in two steps: in the bucket of its cause a link takes along what is known of the cause, in the
bucket of its effect the two can be compared. A bucket is a range of event numbers, so a process's own order
needs no look-up, and a task holds one bucket.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from causet.formats.execution import Fault
from causet.kernels.arrays import Array
from causet.kernels.logs.levels import fill_positions
from causet.kernels.logs.pages import Piece
from causet.spark.skeleton.blobs import PIECE, SCHEMA, Batches, blob_batch, pack, unpack
from causet.spark.skeleton.census import NUMBER, Census, field, none_of, with_number
from causet.spark.skeleton.faults import log_faults
from causet.spark.skeleton.files import PlaceFiles
from causet.spark.skeleton.pack import BLOB_ROWS
from causet.spark.skeleton.skeleton import Skeleton
from causet.spark.skeleton.task import Execution, Kernel, piece_types, read_blobs

VALUES, POSITIONS, LINKS = 0, 1, 2
"""What a blob holds: times and places; positions; links. A task reads them in this order."""
BUCKET = 17
"""A bucket is 2^17 events."""
PLACE = "__place"
"""The column for the place of an event in the order that is looked at."""
LINK_TYPES: list[type] = [np.int64, np.int64]


class Layout(NamedTuple):
    """How events are laid out in buckets, and of what type their times and places are."""

    first: Array
    shift: int
    time: type
    place: type

    @property
    def events(self) -> int:
        return int(self.first[-1])

    @property
    def buckets(self) -> int:
        return max(1, -(-self.events >> self.shift))

    @property
    def types(self) -> list[type]:
        """Of time, place and position."""
        return [self.time, self.place, np.int64]

    def span(self, bucket: int) -> tuple[int, int]:
        """The events of a bucket."""
        return bucket << self.shift, min((bucket + 1) << self.shift, self.events)

    def spread(self, what: int, by: Array, columns: Sequence[Array]) -> Batches:
        """The rows of these columns as blobs, each in the bucket of its event in `by`."""
        if not len(by):
            return
        bucket = by >> self.shift
        order = np.argsort(bucket, kind="stable")
        begins = np.flatnonzero(np.diff(bucket[order], prepend=-1))
        yield blob_batch(
            (what, int(bucket[some[0]]), pack([column[some] for column in columns]))
            for some in np.split(order, begins[1:])
        )


def layout_of(census: Census, place: type) -> Layout:
    return Layout(census.first, BUCKET, census.time_type, place)


class Ends(NamedTuple):
    """What the tasks that compare are given: in each partition one bucket of `meet`."""

    rows: DataFrame
    faults: tuple[Fault, ...]


def values_of(numbered: DataFrame, census: Census, layout: Layout) -> DataFrame:
    """(number, time, place) of each event; the place is what `numbered` has as PLACE, or where the event
    stands in the files."""
    if census.table is not None:
        kind = "double" if census.floats else "long"
        task = PlaceFiles(census.table, census.processes, census.first)
        spark = numbered.sparkSession
        return census.table.tasks(spark).mapInArrow(task, f"number long, time {kind}, place long")
    return with_number(numbered, census).select(
        F.col(NUMBER).alias("number"),
        _filled(field(numbered, "time"), layout.time).alias("time"),
        _filled(F.col(PLACE), layout.place).alias("place"),
    )


def _filled(column: Column, kind: type) -> Column:
    nothing = F.lit(none_of(kind))
    if kind is np.float64:
        found = column.cast("double")
        return F.when(F.abs(found) < float("inf"), found).otherwise(nothing)  # NaN is greater, to Spark
    return F.coalesce(column.cast("long"), nothing)


@contextmanager
def both_ends(numbered: DataFrame, census: Census, values: DataFrame, layout: Layout) -> Iterator[Ends]:
    """Every link on its way to the bucket of its effect, with what is known of its cause. Use it within the
    block; BadInput if the events are not an execution."""
    with Skeleton(numbered, census, keep=True) as skeleton:
        links = skeleton.blobs.mapInArrow(LinkPacker(layout), SCHEMA)
        positions, notes = skeleton.run(PositionsKernel(layout))
        packed = values.mapInArrow(ValuePacker(layout), SCHEMA)
        by_cause = _in_buckets(packed.union(positions).union(links), layout.buckets)
        by_effect = _in_buckets(by_cause.mapInArrow(CauseTask(layout), SCHEMA), layout.buckets)
        yield Ends(by_effect, log_faults(notes, numbered, census))


def _in_buckets(blobs: DataFrame, buckets: int) -> DataFrame:
    """Each bucket in a partition of its own; what links need comes before them."""
    return blobs.repartitionById(buckets, "bucket").sortWithinPartitions("what")


@dataclass(frozen=True)
class PositionsKernel(Kernel):
    """The positions of events as blobs, in the buckets of their events."""

    layout: Layout
    rows = SCHEMA

    def run(self, execution: Execution) -> Iterator[Sequence[Any]]:
        pages = execution.pages
        fill_positions(pages)
        for page in range(pages.count):
            events = np.arange(*pages.span(page))
            _, _, positions = pages.resident(page)
            for batch in self.layout.spread(POSITIONS, events, [events, positions]):
                yield batch.columns


@dataclass(frozen=True)
class ValuePacker:
    """Times and places into the buckets of their events."""

    layout: Layout

    def __call__(self, batches: Batches) -> Batches:
        held: list[pa.RecordBatch] = []
        for batch in batches:
            held.append(batch)
            if sum(each.num_rows for each in held) >= BLOB_ROWS:
                yield from self._blobs(held)
                held = []
        if held:
            yield from self._blobs(held)

    def _blobs(self, held: list[pa.RecordBatch]) -> Batches:
        number, *values = (column.to_numpy() for column in pa.Table.from_batches(held).columns)
        yield from self.layout.spread(VALUES, number, [number, *values])


@dataclass(frozen=True)
class LinkPacker:
    """Links into the buckets of their causes."""

    layout: Layout

    def __call__(self, batches: Batches) -> Batches:
        for what, _, blob in read_blobs(batches):
            if what == PIECE:
                piece = Piece(*unpack(blob, piece_types(self.layout.time)))
                yield from self.layout.spread(LINKS, piece.causes, [piece.effects, piece.causes])


class Values(NamedTuple):
    """What is known of events, or of one end of links."""

    time: Array
    place: Array
    position: Array

    def at(self, which: Array) -> Values:
        return Values(*(column[which] for column in self))


@dataclass(frozen=True)
class CauseTask:
    """One bucket: links take along what is known of their causes, and the values go on."""

    layout: Layout

    def __call__(self, batches: Batches) -> Batches:
        layout = self.layout
        known: Values | None = None
        low = high = 0
        for what, bucket, blob in read_blobs(batches):
            if known is None:
                low, high = layout.span(bucket)
                known = Values(*(np.empty(high - low, kind) for kind in layout.types))
            if what == VALUES:
                number, time, place = unpack(blob, [np.int64, layout.time, layout.place])
                known.time[number - low], known.place[number - low] = time, place
            elif what == POSITIONS:
                number, positions = unpack(blob, [np.int64, np.int64])
                known.position[number - low] = positions
            else:
                effects, causes = unpack(blob, LINK_TYPES)
                yield from self._links(known, effects, causes, low)
        if known is not None:
            if high not in layout.first:  # the next bucket begins within a process
                yield from self._links(known, np.array([high]), np.array([high - 1]), low)
            yield blob_batch([(VALUES, low >> layout.shift, pack(known))])

    def _links(self, known: Values, effects: Array, causes: Array, low: int) -> Batches:
        yield from self.layout.spread(LINKS, effects, [effects, causes, *known.at(causes - low)])


class Met(NamedTuple):
    """The events of one bucket, and the links to them, each once, in the order of (effect, cause)."""

    events: Values
    effects: Array
    causes: Array
    effect: Values
    cause: Values


def meet(batches: Batches, layout: Layout) -> Met | None:
    """The bucket in a partition of `Ends.rows`; None if it is empty."""
    events: Values | None = None
    low = high = 0
    parts: list[list[Array]] = []
    for what, bucket, blob in read_blobs(batches):
        if what == VALUES:
            low, high = layout.span(bucket)
            events = Values(*unpack(blob, layout.types))
        else:
            parts.append(unpack(blob, [*LINK_TYPES, *layout.types]))
    if events is None:
        return None
    later = np.arange(low + 1, high)
    later = later[~np.isin(later, layout.first)]
    parts.append([later, later - 1, *events.at(later - 1 - low)])
    effects, causes, *cause = map(np.concatenate, zip(*parts, strict=True))
    order = np.lexsort((causes, effects))
    fresh = (np.diff(effects[order], prepend=-1) != 0) | (np.diff(causes[order], prepend=-1) != 0)
    order = order[fresh]
    effects = effects[order]
    return Met(events, effects, causes[order], events.at(effects - low), Values(*cause).at(order))

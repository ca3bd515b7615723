"""Files in place of rows: workers read them as Arrow tables, count their events and pack them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from causet.formats.schema import FIELDS
from causet.kernels.arrays import Array
from causet.kernels.names import list_lengths
from causet.slabs.rows import are_events
from causet.slabs.window import has_own_ids, ids_of
from causet.spark.read.arrow import Table, numbers, unreadable
from causet.spark.skeleton.blobs import DELIVER, LOCAL, RECEIVE, SEND, Batches
from causet.spark.skeleton.pack import Packer

COUNTS = ("events", "least", "most", "seqs", "ids", "messages", "targets")
"""Columns of a census, for each process and kind of events; `ids` are those other than process#seq."""
_NUMBERS = {"send": SEND, "receive": RECEIVE, "deliver": DELIVER}
PLACE_BITS = 40
"""Bits of a row's number within its split, in its place."""
REFUSED = "refused"
"""In place of a kind: rows that are not events."""
_COUNTED = tuple(name for name in FIELDS if name not in ("group", "text"))
_NEEDED = ("process", "seq", "kind", "id", "message", "parents", "time", "control", "to")


class Refused(Exception):
    """Some rows are not events; which, and why, the checks of rows say."""


def counted_by_workers(spark: SparkSession, table: Table) -> list[Row]:
    """The events of every process by kinds. Refused if some rows are not events."""
    schema = f"process string, kind string, {', '.join(f'{name} long' for name in COUNTS)}"
    sums = [F.sum(name).alias(name) for name in COUNTS]
    sums[1:3] = [F.min("least").alias("least"), F.max("most").alias("most")]
    found = table.tasks(spark).mapInArrow(CountFiles(table), schema)
    rows = found.groupBy("process", "kind").agg(*sums).collect()
    if any(row.kind == REFUSED for row in rows):
        raise Refused
    return rows


@dataclass(frozen=True)
class CountFiles:
    table: Table

    def __call__(self, batches: Batches) -> Batches:
        for number in numbers(batches):
            split = self.table.splits[number]
            try:
                for rows in self.table.read(split, _COUNTED):
                    yield from self._counted(rows).to_batches()
            except (pa.ArrowException, OSError) as error:
                raise unreadable(split, error) from error

    def _counted(self, rows: pa.Table) -> pa.Table:
        if not are_events(rows, timed=False):
            rows = pa.table({"process": [""], "seq": [1], "kind": [REFUSED]})
        count = rows.num_rows
        nothing = pa.nulls(count, pa.string())
        targets = rows.column("to").combine_chunks() if "to" in rows.column_names else None
        lengths = np.zeros(count, np.int64) if targets is None else list_lengths(targets)
        own = has_own_ids(rows)
        named = {
            name: rows.column(name) if name in rows.column_names else nothing for name in ("kind", "message")
        }
        table = pa.table(
            {
                "process": rows.column("process"),
                "kind": named["kind"],
                "seq": rows.column("seq"),
                "message": named["message"],
                "targets": lengths,
            }
        )
        found = table.group_by(["process", "kind"]).aggregate(
            [
                ("seq", "count"),
                ("seq", "min"),
                ("seq", "max"),
                ("message", "count"),
                ("targets", "sum"),
            ]
        )
        events = found.column("seq_count")
        ids = pa.array(np.full(found.num_rows, int(own), np.int64))
        columns = {
            "events": events,
            "least": found.column("seq_min"),
            "most": found.column("seq_max"),
            "seqs": events,
            "ids": ids,
            "messages": found.column("message_count"),
            "targets": found.column("targets_sum"),
        }
        return pa.table(
            {
                "process": found.column("process"),
                "kind": found.column("kind"),
                **{name: columns[name].cast(pa.int64()) for name in COUNTS},
            }
        )


@dataclass(frozen=True)
class PackFiles:
    """What a packer makes of the events in files."""

    table: Table
    packer: Packer

    def __call__(self, batches: Batches) -> Batches:
        return self.packer(self._events(numbers(batches)))

    def _events(self, splits: Iterator[int]) -> Batches:
        for number in splits:
            split = self.table.splits[number]
            try:
                for rows in self.table.read(split, _NEEDED):
                    yield from self._columns(rows.combine_chunks()).to_batches()
            except (pa.ArrowException, OSError) as error:
                raise unreadable(split, error) from error

    def _columns(self, rows: pa.Table) -> pa.Table:
        """The columns that a packer wants, as it has them from rows."""
        count = rows.num_rows
        found = {
            "number": numbers_of(rows, self.packer.names, self.packer.first),
            "time": times_or_none(rows, self.table.floats),
        }
        if self.packer.own_ids:
            found["id"] = ids_of(rows)
        for name in ("parents", "to"):
            if name in rows.column_names:
                found[name] = _without_nulls(rows.column(name).chunk(0))
            else:
                found[name] = pa.ListArray.from_arrays(
                    np.zeros(count + 1, np.int32), pa.array([], pa.string())
                )
        found["kind"] = kinds_of(rows)
        found["message"] = (
            rows.column("message") if "message" in rows.column_names else pa.nulls(count, pa.string())
        )
        found["control"] = (
            rows.column("control").fill_null(False)
            if "control" in rows.column_names
            else pa.array(np.zeros(count, np.bool_))
        )
        return pa.table(found)


@dataclass(frozen=True)
class PlaceFiles:
    """The number and the time of each event in files, and its place: splits are in the order of the files."""

    table: Table
    processes: tuple[str, ...]
    first: Array

    def __call__(self, batches: Batches) -> Batches:
        names = pa.array(self.processes, pa.string())
        for number in numbers(batches):
            split = self.table.splits[number]
            place = number << PLACE_BITS
            try:
                for rows in self.table.read(split, ("process", "seq", "time")):
                    yield from self._placed(rows.combine_chunks(), names, place).to_batches()
                    place += rows.num_rows
            except (pa.ArrowException, OSError) as error:
                raise unreadable(split, error) from error

    def _placed(self, rows: pa.Table, names: pa.Array, place: int) -> pa.Table:
        time = times_or_none(rows, self.table.floats)
        return pa.table(
            {
                "number": numbers_of(rows, names, self.first),
                "time": time.fill_null(-np.inf if self.table.floats else np.iinfo(np.int64).min),
                "place": np.arange(place, place + rows.num_rows),
            }
        )


def numbers_of(rows: pa.Table, names: pa.Array, first: Array) -> Array:
    """The number of each event; see `census`."""
    named = rows.column("process").combine_chunks().dictionary_encode()
    process = pc.index_in(named.dictionary, names).to_numpy()[named.indices.to_numpy()]
    found: Array = first[process] + rows.column("seq").to_numpy() - 1
    return found


def times_or_none(rows: pa.Table, floats: bool) -> pa.Array:
    kind = pa.float64() if floats else pa.int64()
    return rows.column("time") if "time" in rows.column_names else pa.nulls(rows.num_rows, kind)


def kinds_of(rows: pa.Table) -> Array:
    if "kind" not in rows.column_names:
        return np.zeros(rows.num_rows, np.int8)
    named = rows.column("kind").combine_chunks().dictionary_encode()
    known = np.array([_NUMBERS.get(name, LOCAL) for name in named.dictionary.to_pylist()] + [LOCAL], np.int8)
    found: Array = known[named.indices.fill_null(-1).to_numpy()]
    return found


def _without_nulls(lists: pa.Array) -> pa.Array:
    """Empty lists in place of nulls."""
    if not lists.null_count:
        return lists
    ends = np.cumsum(list_lengths(lists)).astype(np.int32)
    return pa.ListArray.from_arrays(np.append(np.int32(0), ends), lists.flatten())

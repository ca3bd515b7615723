"""Parts of a source: files that are read by one scan, and how their columns become those of the events.

Several parts are one execution: columns are matched by name, and a field has one type in all of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DoubleType, LongType, NullType, VariantType

from causet.errors import BadInput, Problem, quote
from causet.formats.schema import EXACT, FIELDS
from causet.formats.strict import decode, inspect
from causet.spark.columns import quoted
from causet.spark.read.columns import Typed, any_of, inexact, refused, why_refused
from causet.spark.read.types import common_type, filled

FILE, WITHIN, RANK, ORDER = "__causet_file", "__causet_within", "__causet_rank", "file_order"
CHANGED = "the files of the trace changed while they were read"
ROW_BITS = 33
"""Bits of the row number within a file or a split, in `monotonically_increasing_id` and in file_order."""


@dataclass(frozen=True)
class Part:
    """Files that are read together."""

    files: tuple[Path, ...]
    scan: DataFrame
    """with the types of the files"""
    columns: Mapping[str, Typed]
    """how the events' columns come out of the scan"""
    read: Callable[[Mapping[str, DataType]], DataFrame] | None = None
    """scans the files with other types, if they are JSON Lines"""
    unit: str | None = None
    """of the times, where the files have it"""

    @property
    def lines(self) -> bool:
        """Whether the files are JSON Lines, which were checked before; otherwise they are Parquet."""
        return self.read is not None

    def with_variants(self, names: AbstractSet[str]) -> Part:
        """The same files with variants in these columns, which take whatever lines hold."""
        if self.read is None or not names & self.columns.keys():
            return self
        found = {
            name: typed._replace(type=VariantType()) if name in names else typed
            for name, typed in self.columns.items()
        }
        return replace(
            self, scan=self.read({name: typed.type for name, typed in found.items()}), columns=found
        )

    def wrong(self, types: Mapping[str, DataType]) -> Column:
        """True in rows of the scan that are not events, or do not fit the types of the source."""
        known = {name: self.columns[name] for name in FIELDS if name in self.columns}
        conditions = [found.lost for found in self.columns.values() if found.lost is not None]
        if not self.lines:
            columns = {name: found.column for name, found in known.items()}
            conditions.append(refused(columns, {name: found.type for name, found in known.items()}))
        conditions += [inexact(self.columns[name].column) for name in self._widened(types)]
        return any_of(conditions)

    def needs_check(self, types: Mapping[str, DataType]) -> bool:
        return not self.lines or bool(self._widened(types))

    def shown(self, types: Mapping[str, DataType]) -> dict[str, Column]:
        """The columns that explain why a row is wrong: with the values of the file where they do not fit."""
        names = {name for name, found in self.columns.items() if name in FIELDS or found.lost is not None}
        return {
            name: F.col(quoted(name)) if found.lost is not None else found.column
            for name, found in self.columns.items()
            if name in names | self._widened(types)
        }

    def why(self, row: Mapping[str, Any], types: Mapping[str, DataType]) -> str:
        """What is wrong with a row."""
        for name, value in row.items():
            if name in self._widened(types) and value is not None and abs(value) > EXACT:
                return f"field {quote(name)}: others are floats, and {value} has no exact float; use one kind"
            if name not in FIELDS and self.columns[name].lost is not None and value is not None:
                try:
                    inspect(name, decode(value))
                except Problem as problem:
                    return f"field {quote(name)}: {problem}"
        return why_refused({name: value for name, value in row.items() if name in FIELDS})

    def _widened(self, types: Mapping[str, DataType]) -> set[str]:
        """Columns of integers that are floats in another part."""
        return {
            name
            for name, found in self.columns.items()
            if isinstance(found.type, LongType) and isinstance(types[name], DoubleType)
        }

    def without(self, names: Collection[str]) -> Part:
        return replace(self, columns={name: self.columns[name] for name in self.columns if name not in names})

    def selected(self, types: Mapping[str, DataType]) -> list[Column]:
        """Every column of the source, null where this part has none."""
        return [self._as(name, wanted).alias(name) for name, wanted in types.items()]

    def _as(self, name: str, wanted: DataType) -> Column:
        found = self.columns.get(name)
        if found is None or isinstance(found.type, NullType):
            return F.lit(None).cast(wanted)
        return found.column if found.type == wanted else found.column.cast(wanted)


def variants_of(parts: Sequence[Part]) -> set[str]:
    """Columns that are variants in some part."""
    return {
        name for part in parts for name, found in part.columns.items() if isinstance(found.type, VariantType)
    }


def common_types(parts: Sequence[Part]) -> dict[str, DataType]:
    """The columns of all parts, the format's own first, with their types; BadInput if parts do not fit."""
    types: dict[str, DataType] = {}
    first: dict[str, Part] = {}
    for part in parts:
        for name, found in part.columns.items():
            before = types.setdefault(name, found.type)
            common = common_type(before, found.type)
            if common is None:
                raise BadInput(
                    f"{first[name].files[0]} and {part.files[0]} do not match: field {quote(name)} "
                    f"is {before.simpleString()} in one and {found.type.simpleString()} in the other"
                )
            types[name] = common
            if not isinstance(found.type, NullType):
                first.setdefault(name, part)
    units = {part.unit: part.files[0] for part in reversed(parts) if part.unit is not None}
    if len(units) > 1:
        (one, file), (other, other_file), *_ = sorted(units.items())
        raise BadInput(
            f"{file} and {other_file} do not match: times are in {one} in one and in {other} in the other"
        )
    names = [name for name in FIELDS if name in types] + [name for name in types if name not in FIELDS]
    return {name: filled(types[name]) for name in names}


def in_file_order(
    spark: SparkSession, parts: Sequence[Part], types: Mapping[str, DataType], positions: Mapping[str, int]
) -> DataFrame:
    """The rows of all parts with `file_order`, which grows as they stand in the files.

    `positions` has the number of each file, by the path under which Spark knows it. Files of lines are read
    in splits, which the driver ranks first; rows of a split come in their order.
    """
    splits = [split for part in parts for split in _splits(part)]
    order = sorted((positions.get(path_of(uri), len(positions)), start, uri) for uri, start in splits)
    ranks = [(uri, start, rank) for rank, (_, start, uri) in enumerate(order)]
    table = spark.createDataFrame(ranks, f"{FILE} string, {WITHIN} long, {RANK} long")
    return _united([_ranked(part, types, F.broadcast(table)) for part in parts])


def _splits(part: Part) -> list[tuple[str, int]]:
    if not part.lines:
        return [(re.sub("^file:/+", "file:/", uri), 0) for uri in part.scan.inputFiles()]
    found = part.scan.select("_metadata.file_path", "_metadata.file_block_start").distinct().collect()
    return [(uri, start) for uri, start in found]


def _ranked(part: Part, types: Mapping[str, DataType], ranks: DataFrame) -> DataFrame:
    own = {name: wanted for name, wanted in types.items() if name != ORDER}  # ours takes its place
    start, row = F.lit(0), F.col("_metadata.row_index")
    if part.lines:
        start = F.col("_metadata.file_block_start")
        row = F.monotonically_increasing_id().bitwiseAND(F.lit((1 << ROW_BITS) - 1))
    rows = part.scan.select(
        *part.selected(own),
        F.col("_metadata.file_path").alias(FILE),
        start.cast("long").alias(WITHIN),
        row.alias(ORDER),
    )
    changed = F.raise_error(F.lit(CHANGED)).cast("long")
    rank = F.coalesce(F.col(RANK), changed)
    return rows.join(ranks, [FILE, WITHIN], "left").select(
        *(F.col(quoted(name)) for name in own),
        (F.shiftleft(rank, ROW_BITS) + F.col(ORDER)).alias(ORDER),
    )


def events_of(parts: Sequence[Part], types: Mapping[str, DataType]) -> DataFrame:
    """The rows of all parts as one execution."""
    return _united([part.scan.select(*part.selected(types)) for part in parts])


def _united(frames: Sequence[DataFrame]) -> DataFrame:
    return reduce(DataFrame.union, frames)


def path_of(uri: str) -> str:
    """The local path that Spark's name of a file stands for.

    >>> path_of("file:///tmp/a%20b.jsonl")
    '/tmp/a b.jsonl'
    """
    return "/" + unquote(uri.removeprefix("file:")).lstrip("/")

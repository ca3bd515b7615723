"""Files that workers read themselves, as Arrow tables, without making rows of Spark's of them.

Only Parquet whose columns mean the same to Arrow and to Spark. Everything else is left to Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from causet.formats.parquet import JSON
from causet.formats.schema import FIELDS, SCHEMA

BATCH_ROWS = 1 << 19
"""Rows that a task reads at a time."""
BATCH_BYTES = 128 << 20
"""And their bytes, about, if they are that many."""
LOOKED_AT, LOOKED_INTO = 1 << 8, 8
"""So many rows of so many splits tell how large rows are in memory."""
_KNOWN = {
    "string": pa.string(),
    "bigint": pa.int64(),
    "array<string>": pa.list_(pa.string()),
    "boolean": pa.bool_(),
}
_SAME = {
    pa.bool_(),
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64()),
    *(pa.float32(), pa.float64()),
    *(pa.string(), pa.binary(), pa.date32()),
}
"""Types of other columns that Spark reads and writes as they are."""
_TEXTS = {pa.string(), pa.large_string(), pa.string_view()}
_INTEGERS = {pa.int8(), pa.int16(), pa.int32(), pa.int64()}


class Split(NamedTuple):
    """What one task reads: row groups of one file."""

    path: str
    groups: tuple[int, ...]
    rows: int


@dataclass(frozen=True)
class Table:
    """Files with the same columns, and how they become events."""

    splits: tuple[Split, ...]
    types: Mapping[str, Any]
    """columns with the types that events have; in the order in which they are written"""
    renamed: Mapping[str, str]
    """columns that are written under another name"""
    row_bytes: int
    """of a row in memory, about"""

    @property
    def rows(self) -> int:
        return sum(split.rows for split in self.splits)

    @property
    def floats(self) -> bool:
        return "time" in self.types and bool(pa.types.is_floating(self.types["time"]))

    def tasks(self, spark: SparkSession) -> DataFrame:
        """The numbers of the splits, one in each partition."""
        return spark.range(0, len(self.splits), 1, len(self.splits))

    def read(
        self, split: Split, columns: Sequence[str] | None = None, rows: int = BATCH_ROWS
    ) -> Iterator[pa.Table]:
        """The rows of a split, some at a time, each column in its type."""
        rows = min(rows, max(1, BATCH_BYTES // self.row_bytes))
        wanted = [name for name in self.types if columns is None or name in columns]
        types = [self.types[name] for name in wanted]
        with pq.ParquetFile(split.path, page_checksum_verification=True) as file:
            for batch in file.iter_batches(
                rows, row_groups=list(split.groups), columns=wanted, use_threads=False
            ):
                found = pa.Table.from_batches([batch]).select(wanted)
                yield pa.table(
                    [_as(column, kind) for column, kind in zip(found.columns, types, strict=True)],
                    names=wanted,
                )


def numbers(batches: Iterator[pa.RecordBatch]) -> Iterator[int]:
    """The splits that a task is to read."""
    for batch in batches:
        yield from batch.column(0).to_pylist()


def unreadable(split: Split, error: Exception) -> RuntimeError:
    """The exception of a task that could not read a file, in the words by which Spark's own are known."""
    return RuntimeError(f"reading file {Path(split.path).as_uri()} : {error}")


def table_of(files: Sequence[Path], renamed: Mapping[str, str]) -> Table | None:
    """The files with all their columns, if workers can read them; None if they are not Parquet of one kind,
    if some column means something else to Spark, or if some event is known to have no time."""
    table = _table(files, renamed, lambda name: True)
    return table if table is not None and "time" in table.types and _timed(files) else None


def events_of(files: Sequence[Path]) -> Table | None:
    """The fields of the format in these files, if workers can read them; None if they are not Parquet of one
    kind, or if a field means something else to Spark."""
    return _table(files, {}, lambda name: name in FIELDS)


def _table(files: Sequence[Path], renamed: Mapping[str, str], wanted: Callable[[str], bool]) -> Table | None:
    splits: list[Split] = []
    schema = None
    size = 0
    for path in files:
        if path.suffix != ".parquet":
            return None
        try:
            with pq.ParquetFile(path) as file:
                metadata, found = file.metadata, file.schema_arrow
                leaves = {leaf.path: leaf for leaf in file.schema}
        except (pa.ArrowException, OSError, ValueError):
            return None
        if schema is not None and not found.equals(schema):
            return None
        schema = found
        if any(leaf.physical_type == "INT96" for leaf in leaves.values()):
            return None
        size += sum(metadata.row_group(number).total_byte_size for number in range(metadata.num_row_groups))
        splits += _splits(str(path.resolve()), metadata)
    types = None if schema is None else _types([field for field in schema if wanted(field.name)])
    rows = sum(split.rows for split in splits)
    if types is None or not rows:
        return None
    table = Table(tuple(splits), types, dict(renamed), 4 * size // rows + 16 * len(types))
    return replace(table, row_bytes=max(table.row_bytes, _bytes_of_rows(table)))


def _bytes_of_rows(table: Table) -> int:
    """The bytes of a row in memory, in the split that has the largest. Long values that repeat take next to
    nothing in a file."""
    count = len(table.splits)
    largest = 0
    for split in table.splits[:: -(-count // LOOKED_INTO)]:
        try:
            rows = next(table.read(split, rows=LOOKED_AT))
        except (pa.ArrowException, OSError):
            continue  # the task that reads it has the words for this
        largest = max(largest, rows.nbytes // rows.num_rows)
    return largest


def _splits(path: str, metadata: Any) -> Iterator[Split]:
    """Row groups that follow each other, as many as make a batch."""
    groups: list[int] = []
    rows = 0
    for number in range(metadata.num_row_groups):
        groups.append(number)
        rows += metadata.row_group(number).num_rows
        if rows >= BATCH_ROWS or number == metadata.num_row_groups - 1:
            if rows:
                yield Split(path, tuple(groups), rows)
            groups, rows = [], 0


def _timed(files: Sequence[Path]) -> bool:
    """Whether no event is known to have no time. Where a file does not say so, the tasks look."""
    return all(map(_has_times, files))


def _has_times(path: Path) -> bool:
    metadata = pq.read_metadata(path)
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        for column in range(group.num_columns):
            chunk = group.column(column)
            statistics = chunk.statistics if chunk.path_in_schema == "time" else None
            if statistics is not None and statistics.has_null_count and statistics.null_count:
                return False
    return True


def _types(fields: Sequence[Any]) -> dict[str, Any] | None:
    """Columns in the order of the format, with their types; None if one needs Spark."""
    types = {}
    for field in fields:
        if field.metadata and field.metadata.items() >= JSON.items():
            return None
        kind = _known(field.name, field.type) if field.name in FIELDS else _other(field.type)
        if kind is None:
            return None
        types[field.name] = kind
    return {name: types[name] for name in [*FIELDS, *types] if name in types}


def _known(name: str, kind: Any) -> Any:
    """The type in which a field of the format is read; None if it has another one."""
    wanted = _KNOWN[SCHEMA[name].type]
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    if wanted == pa.string():
        return wanted if kind in _TEXTS else None
    if wanted == pa.int64():
        if name == "time" and kind in (pa.float32(), pa.float64()):
            return pa.float64()
        stamp = name == "time" and pa.types.is_timestamp(kind)
        return wanted if kind in _INTEGERS or stamp else None
    if pa.types.is_list(wanted):
        return wanted if pa.types.is_list(kind) and kind.value_type in _TEXTS else None
    return wanted if kind == wanted else None


def _other(kind: Any) -> Any:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    kind = pa.string() if kind in _TEXTS else kind
    return kind if kind in _SAME else None


def _as(column: Any, kind: Any) -> Any:
    """A column in a type that takes all its values; NaN is how some tools write null."""
    found = column if column.type == kind else column.cast(kind)
    if pa.types.is_floating(kind) and pc.any(pc.is_nan(found)).as_py():
        return pc.if_else(pc.is_nan(found), pa.scalar(None, kind), found)
    return found

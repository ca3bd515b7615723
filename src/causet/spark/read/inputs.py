"""The user's own columns of a table, carried beside the events that are made of its rows.

A table becomes a trace, whose columns have names and types of their own. `order` returns the columns of the
input: each under its own name, with its own values. Until then a column is named by its number, so that names
cannot clash.

Rule: columns of Parquet keep their types, as far as Spark has them; of CSV and JSON Lines, columns of one
type have it, and all others hold JSON.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from causet.formats.parquet import JSON, PLAIN, write_parquet
from causet.formats.strict import compact
from causet.formats.table import table_files
from causet.model import Event
from causet.spark.columns import quoted
from causet.spark.read.parquet import spark_type


def _number(position: int) -> str:
    return f"causet input {position}"


def given_back(
    rows: DataFrame, names: Sequence[str], added: Sequence[str], called: Mapping[str, str]
) -> DataFrame:
    """The user's columns of these rows, under their own names or as they are `called`, and those added."""
    own = [
        F.col(quoted(_number(position))).alias(called.get(name, name)) for position, name in enumerate(names)
    ]
    return rows.select(*own, *(F.col(name) for name in added))


def write_with_inputs(
    trace: Path, events: Sequence[Event], inputs: Sequence[Mapping[str, object]], paths: Sequence[Path]
) -> tuple[str, ...]:
    """Write the events as a trace that has the columns of their rows beside them, and name those."""
    write_parquet(trace, [replace(event, extra={}) for event in events])
    table = pq.read_table(trace)
    typed = _typed(paths, len(events))
    names = tuple(dict.fromkeys(name for row in inputs for name in row))
    for position, name in enumerate(names):
        field, column = _column(_number(position), [row.get(name) for row in inputs])
        if typed is not None and _has(typed, name):
            field, column = (
                pa.field(_number(position), typed[name].type, metadata=_mark(typed, name)),
                typed[name],
            )
        table = table.append_column(field, column)
    pq.write_table(table, trace, write_page_checksum=True)
    return names


def _typed(paths: Sequence[Path], rows: int) -> Any:
    """The tables with their own types, one after the other; None unless all are Parquet and of one kind."""
    files = [file for path in paths for file in table_files(path)]
    if not all(file.name.lower().endswith(".parquet") for file in files):
        return None
    try:
        tables = [pq.ParquetFile(file).read() for file in files]
        found = pa.concat_tables(tables, promote_options="default")
    except (pa.ArrowException, OSError, ValueError):
        return None
    for position, field in enumerate(found.schema):
        column = found.column(position)
        if pa.types.is_timestamp(field.type) and field.type.unit == "ns":  # Spark has microseconds
            try:
                column = column.cast(pa.timestamp("us", field.type.tz))
            except pa.ArrowInvalid:
                continue  # it would be rounded: the integer is read
            found = found.set_column(position, field.with_type(column.type), column)
    return found if found.num_rows == rows else None


def _has(typed: Any, name: str) -> bool:
    """Whether Spark can read this column as it is."""
    if name not in typed.column_names or pa.types.is_null(typed.schema.field(name).type):
        return False
    try:
        spark_type(typed.schema.field(name).type)
    except TypeError:
        return False
    return True


def _mark(typed: Any, name: str) -> Mapping[bytes, bytes] | None:
    metadata = typed.schema.field(name).metadata or {}
    return JSON if metadata.items() >= JSON.items() else None


def _column(name: str, values: Sequence[object]) -> tuple[Any, Any]:
    """Values of JSON or CSV as a column of one type, or of JSON."""
    kinds = {type(value) for value in values if value is not None}
    if not kinds:
        return pa.field(name, pa.string()), pa.nulls(len(values), pa.string())
    if len(kinds) == 1:
        (kind,) = kinds
        if kind in PLAIN:
            return pa.field(name, PLAIN[kind]), pa.array(values, PLAIN[kind])
        items = {type(item) for value in values if isinstance(value, list) for item in value}
        if kind is list and len(items - {type(None)}) == 1 and (items - {type(None)}) <= PLAIN.keys():
            of = pa.list_(PLAIN[(items - {type(None)}).pop()])
            return pa.field(name, of), pa.array(values, of)
    texts = [None if value is None else compact(value) for value in values]
    return pa.field(name, pa.string(), metadata=JSON), pa.array(texts, pa.string())

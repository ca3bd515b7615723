"""Parquet in Spark: the footers, read by the driver, say what the columns are before Spark reads a row.

Files with the same columns are one part. Values are read as by `formats.parquet`: NaN means null, a timestamp
in the column `time` becomes its integer, a column marked as JSON is decoded, and checksums of pages are
verified. Other columns keep their types.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
    VariantType,
)

from causet.errors import BadInput, Problem, quote
from causet.formats.parquet import JSON, placed_rows
from causet.formats.schema import FIELDS
from causet.spark.columns import quoted
from causet.spark.read.columns import Typed, check_names, check_required, typed
from causet.spark.read.parts import Part
from causet.spark.read.types import KNOWN

_SPARK_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"
"""Where Spark leaves the types of what it wrote."""
_OPTIONS = {"recursiveFileLookup": "true", "parquet.page.verify-checksum.enabled": "true"}


@dataclass(frozen=True)
class _Found:
    """A column, as the footer of a file has it."""

    name: str
    type: Any
    """as pyarrow has it"""
    json: bool
    """strings that are JSON"""
    variant: bool
    """a column of anything, which Spark wrote"""
    int96: bool
    """a timestamp in the old form, which has nanoseconds and which Spark reads as microseconds"""


def open_rows(
    spark: SparkSession, files: Sequence[Path], located: Sequence[str], case_matters: bool
) -> list[Part]:
    """The events of these files, by what columns they have; BadInput names the file and the column.

    Values are not looked at: that is a job.
    """
    groups: dict[tuple[_Found, ...], list[int]] = {}
    for number, path in enumerate(files):
        found, rows = _footer(path)
        if rows:
            groups.setdefault(found, []).append(number)
    parts = []
    for found, numbers in groups.items():
        its_files = tuple(files[number] for number in numbers)
        try:
            names = [column.name for column in found]
            check_required(names)
            check_names(names, case_matters, FIELDS)
            scan_types, columns = _columns(found)
        except Problem as problem:
            raise BadInput(f"{its_files[0]}: {problem}") from None
        schema = StructType([StructField(name, kind) for name, kind in scan_types.items()])
        scan = spark.read.schema(schema).options(**_OPTIONS).parquet(*(located[number] for number in numbers))
        parts.append(Part(its_files, scan, columns, unit=_unit(found)))
    return parts


def _footer(path: Path) -> tuple[tuple[_Found, ...], int]:
    """The columns of a file, and how many rows it has."""
    try:
        with path.open("rb") as stream, pq.ParquetFile(stream) as file:
            schema, metadata = file.schema_arrow, file.metadata
            int96 = {leaf.path for leaf in file.schema if leaf.physical_type == "INT96"}
    except (pa.ArrowException, OSError, ValueError):
        next(placed_rows(path), None)  # raises the error that names the row
        raise
    repeated = [name for name in schema.names if schema.names.count(name) > 1]
    if repeated:
        raise BadInput(f"{path}: the column {quote(repeated[0])} appears twice")
    variants = _variants((metadata.metadata or {}).get(_SPARK_SCHEMA))
    found = tuple(
        _Found(
            field.name,
            field.type,
            json=bool(field.metadata and field.metadata.items() >= JSON.items()),
            variant=field.name in variants and pa.types.is_struct(field.type),
            int96=field.name in int96,
        )
        for field in schema
    )
    return found, metadata.num_rows


def _variants(schema: bytes | None) -> set[str]:
    """Columns that Spark, if it was Spark that wrote the file, calls variants: to others they are structs."""
    try:
        return {field["name"] for field in json.loads(schema or "{}")["fields"] if field["type"] == "variant"}
    except (ValueError, KeyError, TypeError):
        return set()


def _columns(found: Sequence[_Found]) -> tuple[dict[str, DataType], dict[str, Typed]]:
    """What Spark is to read each column as, and how it becomes a column of events."""
    scan: dict[str, DataType] = {}
    columns: dict[str, Typed] = {}
    for column in found:
        name, kind = column.name, column.type
        reads: DataType
        if column.variant:
            reads = VariantType()
        elif name == "time" and pa.types.is_timestamp(kind) and not column.int96:
            reads = LongType()  # a timestamp is read as the integer that it is
        else:
            try:
                reads = spark_type(kind, column.int96)
            except TypeError as error:
                raise Problem(
                    f"the column {quote(name)} is of type {error}, which Spark cannot read; leave it out"
                ) from None
        spark_column = F.col(quoted(name))
        if isinstance(reads, NullType):  # a field of the format that no row has gets no column
            if name not in KNOWN or name in ("process", "seq"):
                columns[name] = typed(name, reads, F.lit(None))
            continue
        scan[name] = reads
        if column.json and name not in KNOWN and isinstance(reads, StringType):
            parsed = F.try_parse_json(spark_column)
            columns[name] = Typed(parsed, VariantType(), spark_column.isNotNull() & parsed.isNull())
        elif name == "time" and column.int96:
            columns[name] = Typed(F.unix_micros(spark_column) * 1_000, LongType())
        else:
            columns[name] = typed(name, reads, spark_column, str(kind))
    return scan, columns


def _unit(found: Sequence[_Found]) -> str | None:
    kind = next((column.type for column in found if column.name == "time"), None)
    return str(kind.unit) if kind is not None and pa.types.is_timestamp(kind) else None


_PLAIN: dict[Any, DataType] = {
    pa.null(): NullType(),
    pa.bool_(): BooleanType(),
    pa.int8(): ByteType(),
    pa.int16(): ShortType(),
    pa.int32(): IntegerType(),
    pa.int64(): LongType(),
    pa.uint8(): ShortType(),
    pa.uint16(): IntegerType(),
    pa.uint32(): LongType(),
    pa.uint64(): DecimalType(20, 0),
    pa.float32(): FloatType(),
    pa.float64(): DoubleType(),
    pa.date32(): DateType(),
    **{text: StringType() for text in (pa.string(), pa.large_string(), pa.string_view())},
    **{binary: BinaryType() for binary in (pa.binary(), pa.large_binary(), pa.binary_view())},
}


def spark_type(kind: Any, int96: bool = False) -> DataType:
    """The Spark type of a column; TypeError if Spark has none."""
    types = pa.types
    if kind in _PLAIN:
        return _PLAIN[kind]
    if types.is_dictionary(kind):
        return spark_type(kind.value_type)
    if types.is_timestamp(kind):
        if kind.unit == "ns" and not int96:
            return LongType()
        return TimestampNTZType() if kind.tz is None and not int96 else TimestampType()
    if types.is_duration(kind):
        return LongType()
    if types.is_fixed_size_binary(kind):
        return BinaryType()
    if types.is_decimal128(kind) and 0 <= kind.scale <= kind.precision:
        return DecimalType(kind.precision, kind.scale)
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return ArrayType(spark_type(kind.value_type))
    if types.is_map(kind):
        return MapType(spark_type(kind.key_type), spark_type(kind.item_type))
    if types.is_struct(kind) and kind.num_fields:
        return StructType([StructField(field.name, spark_type(field.type)) for field in kind])
    raise TypeError(kind)

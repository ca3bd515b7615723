"""Columns of events: which type each must have, and which rows are not events.

For Parquet, and for DataFrames that the caller made. Types are checked without reading a row; what the format
requires of values is one condition, which costs one pass over the columns it needs.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from functools import reduce
from operator import or_
from typing import Any, NamedTuple

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    LongType,
    NullType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from causet.errors import Problem, quote
from causet.formats.schema import EXACT, SCHEMA, required
from causet.formats.strict import INT64
from causet.formats.trace import event_of
from causet.model import KINDS
from causet.spark.read.types import KNOWN, is_integral, is_number

_EPOCH = datetime(1970, 1, 1)


class Typed(NamedTuple):
    """A column in the type of the format; `lost` is true in rows whose value does not fit."""

    column: Column
    type: DataType
    lost: Column | None = None


# ---------------------------------------------------------------- types


def typed(name: str, found: DataType, column: Column, called: str | None = None) -> Typed:
    """The column of a field, known or not, in the type of the format; Problem names the type it must have.

    `called` is the file's own name for the type that Spark found.
    """
    if isinstance(found, FloatType | DoubleType) and (name == "time" or name not in KNOWN):
        # NaN is how some tools write null.
        wide = column.cast("double") if name == "time" else column
        kept = F.when(~F.isnan(wide), wide)
        return Typed(kept, DoubleType() if name == "time" else found)
    if name not in KNOWN:
        return Typed(column, found)
    wanted = KNOWN[name]
    if isinstance(found, NullType):
        return Typed(column.cast(wanted), wanted)
    if isinstance(wanted, LongType):
        if is_integral(found):
            return Typed(column.cast("long"), wanted)
        if isinstance(found, DecimalType) and found.scale == 0 and found.precision == 20:  # unsigned, 64 bits
            narrow = column.try_cast("long")
            return Typed(narrow, wanted, column.isNotNull() & narrow.isNull())
    if name == "time" and isinstance(found, TimestampType):
        return Typed(F.unix_micros(column), wanted)
    if name == "time" and isinstance(found, TimestampNTZType):
        return Typed(
            F.timestamp_diff("MICROSECOND", F.lit(_EPOCH).cast("timestamp_ntz"), column).cast("long"), wanted
        )
    if isinstance(wanted, StringType) and isinstance(found, StringType):
        return Typed(column, wanted)
    if isinstance(wanted, ArrayType):
        if isinstance(found, ArrayType) and isinstance(found.elementType, StringType):
            return Typed(column, wanted)
    elif found == wanted:
        return Typed(column, wanted)
    holds = "integers, floats or timestamps" if name == "time" else SCHEMA[name].holds
    raise Problem(f"the column {quote(name)} must hold {holds}, not {called or found.simpleString()}")


def check_type(name: str, found: DataType) -> None:
    """Problem unless a column of this type holds the values of a known field as they are."""
    wanted = KNOWN[name]
    if isinstance(wanted, ArrayType):
        fits = isinstance(found, ArrayType) and isinstance(found.elementType, StringType | NullType)
    elif isinstance(found, NullType):
        fits = name not in required("local")
    elif isinstance(wanted, LongType):
        fits = is_integral(found) or (name == "time" and is_number(found))
    else:
        fits = isinstance(found, type(wanted))
    if not fits:
        raise Problem(f"the column {quote(name)} must hold {SCHEMA[name].holds}, not {found.simpleString()}")


def check_required(names: Collection[str]) -> None:
    """Problem if the columns without which nothing is an event are missing."""
    for name in required("local"):
        if name not in names:
            raise Problem(f"there is no column {quote(name)}; every event must have it")


def check_names(names: Iterable[str], case_matters: bool, taken: Iterable[str] = ()) -> None:
    """Problem if Spark takes two of these names, or one of them and one that is taken, for the same."""
    first = {name.lower(): name for name in taken}
    for name in names if not case_matters else ():
        if first.setdefault(name.lower(), name) != name:
            raise Problem(
                f"to Spark {quote(first[name.lower()])} and {quote(name)} are the same name; rename one, or "
                "set spark.sql.caseSensitive to true"
            )


# ---------------------------------------------------------------- values


def refused(columns: Mapping[str, Column], types: Mapping[str, DataType]) -> Column:
    """True in rows that are not events, never null; the columns have the types of the format."""
    kind = F.coalesce(columns["kind"], F.lit("local")) if "kind" in columns else F.lit("local")

    def without(name: str) -> Column:
        return columns[name].isNull() if name in columns else F.lit(True)

    wrong = [columns["process"].isNull(), columns["seq"].isNull()]
    if "kind" in columns:
        wrong += [
            ~kind.isin(*KINDS),
            (kind != "local") & without("message"),
            (kind == "send") & without("to"),
        ]
    if "id" in columns:
        wrong.append(columns["id"] == "")
    for name, column in columns.items():
        least = SCHEMA[name].least
        if least is not None:
            wrong.append(column < least)
        if isinstance(types[name], ArrayType):
            wrong.append(F.exists(column, lambda item: item.isNull()))
    if "time" in columns and isinstance(types["time"], DoubleType):
        wrong.append(F.abs(columns["time"]) == F.lit(math.inf))
    return any_of(wrong)


def inexact(column: Column) -> Column:
    """True where an integer has no exact float."""
    return F.coalesce(~column.between(-EXACT, EXACT), F.lit(False))


def any_of(conditions: Iterable[Column]) -> Column:
    return reduce(or_, (F.coalesce(condition, F.lit(False)) for condition in conditions), F.lit(False))


def why_refused(row: Mapping[str, Any]) -> str:
    """The reason why a row of known fields was refused."""
    record: dict[str, object] = {}
    for name, value in row.items():
        if isinstance(value, Decimal):
            value = int(value)
            if value not in INT64:
                return f"field {quote(name)}: the integer {value} does not fit 64 bits"
        if isinstance(value, float) and math.isinf(value):
            return f"field {quote(name)}: the number {value} is not a JSON number"
        if value is not None:
            record[name] = value
    try:
        event_of(record)
    except Problem as problem:
        return str(problem)
    return "this is not an event"

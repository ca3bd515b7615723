"""Columns of events: of which type each must be, and which rows are no events.

For Parquet and for DataFrames of the user's own. Types are looked at without reading a row; what the format
asks of values is one condition, which costs one pass over the columns it needs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from functools import reduce
from operator import or_
from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame
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

from causet.errors import BadInput, Problem, quote
from causet.formats.strict import INT64
from causet.formats.trace import FIELDS, event_of
from causet.kernels.json.kinds import EXACT, KNOWN, is_integral
from causet.model import KINDS
from causet.spark.columns import quoted
from causet.spark.start.errors import translated

_EPOCH = datetime(1970, 1, 1)
_HOLDS = {
    "seq": "integers",
    "to": "lists of strings",
    "parents": "lists of strings",
    "time": "integers, floats or timestamps",
    "control": "booleans",
    "stamp_entries": "integers",
    "stamp_bytes": "integers",
}


class Typed(NamedTuple):
    """A column as the format has it; `lost` is true in rows whose value does not fit."""

    column: Column
    type: DataType
    lost: Column | None = None


# ---------------------------------------------------------------- types


def typed(name: str, found: DataType, column: Column, called: str | None = None) -> Typed:
    """This column of a known or unknown field, as the format has it; Problem says which type it must have.

    `called` is what the file calls the type that Spark found.
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
    raise Problem(
        f"the column {quote(name)} must hold {_HOLDS.get(name, 'strings')}, "
        f"not {called or found.simpleString()}"
    )


def check_names(names: Iterable[str], case_matters: bool) -> None:
    """Problem if there is no process or seq, or if Spark takes two names for one."""
    listed = list(names)
    for name in ("process", "seq"):
        if name not in listed:
            raise Problem(f"there is no column {quote(name)}; every event must have it")
    if case_matters:
        return
    by_lower = {name: name for name in FIELDS}
    for name in listed:
        first = by_lower.setdefault(name.lower(), name)
        if first != name:
            raise Problem(
                f"Spark takes the names {quote(first)} and {quote(name)} for one; rename one of them, or set "
                "spark.sql.caseSensitive to true"
            )


# ---------------------------------------------------------------- values


def refused(columns: Mapping[str, Column], types: Mapping[str, DataType]) -> Column:
    """True in rows that are no events, never null; the columns have the types of the format."""
    kind = F.coalesce(columns["kind"], F.lit("local")) if "kind" in columns else F.lit("local")

    def without(name: str) -> Column:
        return columns[name].isNull() if name in columns else F.lit(True)

    wrong = [columns["process"].isNull(), columns["seq"].isNull(), columns["seq"] < 1]
    if "kind" in columns:
        wrong += [
            ~kind.isin(*KINDS),
            (kind != "local") & without("message"),
            (kind == "send") & without("to"),
        ]
    if "id" in columns:
        wrong.append(columns["id"] == "")
    wrong += [columns[name] < 0 for name in ("stamp_entries", "stamp_bytes") if name in columns]
    wrong += [
        F.exists(columns[name], lambda item: item.isNull()) for name in ("to", "parents") if name in columns
    ]
    if "time" in columns and isinstance(types["time"], DoubleType):
        wrong.append(F.abs(columns["time"]) == F.lit(math.inf))
    return any_of(wrong)


def check_values(events: DataFrame) -> Column:
    """True in rows that are no events, for a job of the caller's own; the columns have the types of the
    format, as those of a source or of `check_frame`."""
    types = {field.name: field.dataType for field in events.schema.fields}
    return refused({name: F.col(quoted(name)) for name in types}, types)


def inexact(column: Column) -> Column:
    """True where an integer is not a float exactly."""
    return F.coalesce(~column.between(-EXACT, EXACT), F.lit(False))


def any_of(conditions: Iterable[Column]) -> Column:
    return reduce(or_, (F.coalesce(condition, F.lit(False)) for condition in conditions), F.lit(False))


def why_no_event(row: Mapping[str, Any]) -> str:
    """What is wrong with a row, of known fields, that was refused."""
    record: dict[str, object] = {}
    for name, value in row.items():
        if isinstance(value, Decimal):
            value = int(value)
            if value not in INT64:
                return f"field {quote(name)}: the integer {value} does not fit 64 bits"
        if isinstance(value, float) and math.isinf(value):
            return f"field {quote(name)}: the number {value} is no JSON number"
        if value is not None:
            record[name] = value
    try:
        event_of(record)
    except Problem as problem:
        return str(problem)
    return "this is no event"


# ---------------------------------------------------------------- DataFrames of the user's own


def check_frame(frame: DataFrame, rows: bool = True) -> DataFrame:
    """The events of a DataFrame, its known columns in the types of the format.

    BadInput names the column that has another type, or shows a row that is no event, which takes one job;
    without `rows`, only types are looked at.
    """
    case_matters = frame.sparkSession.conf.get("spark.sql.caseSensitive", "false") == "true"
    types = {field.name: field.dataType for field in frame.schema.fields}
    try:
        if len(types) < len(frame.columns):
            twice = next(name for name in types if frame.columns.count(name) > 1)
            raise Problem(f"the column {quote(twice)} stands twice")
        check_names(types, case_matters)
        found = {name: typed(name, types[name], F.col(quoted(name))) for name in types}
    except Problem as problem:
        raise BadInput(f"the DataFrame: {problem}") from None
    if rows:
        with translated():
            _check_rows(frame, found)
    return frame.select(*(each.column.alias(name) for name, each in found.items()))


def _check_rows(frame: DataFrame, found: Mapping[str, Typed]) -> None:
    known = [name for name in FIELDS if name in found]
    columns = {name: found[name].column for name in known}
    wrong = any_of(
        [
            refused(columns, {name: found[name].type for name in known}),
            *(each.lost for each in found.values() if each.lost is not None),
        ]
    )
    first = frame.filter(wrong).select(*(_as_told(found[name], name) for name in known)).head()
    if first is not None:
        row = first.asDict()
        told = {name: value for name, value in row.items() if value is not None}
        raise BadInput(f"the row {quote(_plain(told))}: {why_no_event(row)}")


def _as_told(found: Typed, name: str) -> Column:
    """A known column for telling of it: the value itself where it does not fit."""
    return (F.col(quoted(name)) if found.lost is not None else found.column).alias(name)


def _plain(row: Mapping[str, Any]) -> dict[str, object]:
    return {name: int(value) if isinstance(value, Decimal) else value for name, value in row.items()}

"""The trace format, version 1, as Parquet: the same columns, the same rules as JSON Lines.

Null means that the field is not there; so does NaN in a column of floats, with which some tools write null.
What the format does not know is kept: a column of strings, booleans, integers or floats as it is; values for
which Parquet has no single type (objects, lists, a mixture) as JSON in a column that is marked so, and is
decoded when it is read. Dates and decimals of other writers become strings, binary becomes base64; a
timestamp in the column `time` becomes its integer.

Rule: rows are read and written a batch at a time; a file is whole or not there; pages have checksums, which
are verified.
"""

from __future__ import annotations

import base64
import datetime
import decimal
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from causet.errors import BadInput, Problem, quote, reason
from causet.files import Place, new_file
from causet.formats.schema import EXACT, FIELDS, SCHEMA
from causet.formats.strict import INT64, MAX_DEPTH, TOO_DEEP, compact, decode, inspect_all
from causet.formats.trace import event_of
from causet.model import Event

ROWS = 8_192
"""Rows of one batch."""
JSON = {b"causet": b"json"}
"""The mark of a column whose strings are JSON."""

_TEXT = pa.string()
_ARROW = {"string": _TEXT, "bigint": pa.int64(), "array<string>": pa.list_(_TEXT), "boolean": pa.bool_()}
"""The types of columns, by their names in the schema."""
PLAIN = {str: _TEXT, bool: pa.bool_(), int: pa.int64(), float: pa.float64()}
"""The types of columns that hold one kind of plain value."""


# ---------------------------------------------------------------- writing


def write_parquet(path: str | Path, events: Sequence[Event]) -> int:
    """Write the events as they come, and return how many there were."""
    schema = _schema(events)
    left = iter(events)
    with (
        new_file(Path(path)) as stream,
        pq.ParquetWriter(stream, schema, write_page_checksum=True) as writer,
    ):
        while batch := list(islice(left, ROWS)):
            writer.write_batch(pa.record_batch([_column(batch, each) for each in schema], schema=schema))
    return len(events)


def _schema(events: Sequence[Event]) -> Any:
    fields = [pa.field(name, _ARROW[field.type]) for name, field in SCHEMA.items()]
    if any(isinstance(event.time, float) for event in events):
        fields[FIELDS.index("time")] = pa.field("time", pa.float64())
        for event in events:
            if isinstance(event.time, int) and abs(event.time) > EXACT:
                raise BadInput(
                    f"event {quote(event.id)}: other times are floats, so the column is of floats, and "
                    f"{event.time} has no exact float; use one kind of time"
                )
    kinds: dict[str, set[type]] = {}
    for event in events:
        for name, value in event.extra.items():
            if name in FIELDS:
                raise BadInput(
                    f"event {quote(event.id)} has an extra field {quote(name)}: that name is reserved"
                )
            kinds.setdefault(name, set()).add(type(value))
    for name, found in kinds.items():
        single = found - {type(None)}
        plain = PLAIN.get(single.pop()) if len(single) == 1 else None
        fields.append(pa.field(name, plain) if plain is not None else pa.field(name, _TEXT, metadata=JSON))
    return pa.schema(fields)


def _column(events: Sequence[Event], column: Any) -> Any:
    name = column.name
    values: list[Any] = [
        getattr(event, name) if name in FIELDS else event.extra.get(name) for event in events
    ]
    for number, (event, value) in enumerate(zip(events, values, strict=True)):
        if value is None:
            continue
        if column.metadata == JSON:
            values[number] = _json(event, value)
        elif column.type == pa.float64():
            values[number] = float(value)
            if not math.isfinite(value):
                raise BadInput(
                    f"event {quote(event.id)}: the field {quote(name)} is {value}, not a JSON number"
                )
    if not _fits(values, column.type):
        bad = next(
            event for event, value in zip(events, values, strict=True) if not _fits([value], column.type)
        )
        raise BadInput(f"event {quote(bad.id)}: the field {quote(name)} cannot be written to Parquet")
    return pa.array(values, type=column.type)


def _fits(values: Sequence[object], kind: Any) -> bool:
    try:
        pa.array(values, type=kind)
    except (pa.ArrowException, UnicodeEncodeError, OverflowError, ValueError, TypeError):
        return False
    return True


def _json(event: Event, value: object) -> str:
    try:
        return compact(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise BadInput(f"event {quote(event.id)} cannot be written as JSON: {error}") from None


# ---------------------------------------------------------------- reading


def placed_rows(path: Path) -> Iterator[tuple[Place, Event]]:
    """Each event of one file with its place; duplicates are not looked for."""
    for place, record in _placed(path, lambda name: _integers if name == "time" else None):
        try:
            yield place, event_of({name: value for name, value in record.items() if value is not None})
        except Problem as error:
            raise BadInput(f"{place}: {error}") from None


def placed_records(path: Path, time: str | None = None) -> Iterator[tuple[Place, dict[str, object]]]:
    """Each row of a table with its place, all of its columns in it. Timestamps in the column `time` become
    nanoseconds since 1970."""
    for place, record in _placed(path, lambda name: _nanos if name == time else None):
        try:
            inspect_all(record)  # what a column of JSON holds
        except Problem as error:
            raise BadInput(f"{place}: {error}") from None
        yield place, record


def _placed(path: Path, timestamps: _Timestamps) -> Iterator[tuple[Place, dict[str, object]]]:
    number = 0
    try:
        for record in _records(path, timestamps):
            number += 1
            yield Place(str(path), number, "row"), record
    except Problem as error:
        raise BadInput(f"{Place(str(path), number + 1, 'row')}: {error}") from None


_Timestamps = Callable[[str], Callable[[Any], list[Any]] | None]
"""How the timestamps of a column are read, by its name; None for those that become strings."""


def _integers(column: Any) -> list[Any]:
    """Timestamps as the integers that they are."""
    found: list[Any] = column.cast(pa.int64()).to_pylist()
    return found


def _nanos(column: Any) -> list[Any]:
    """Timestamps as nanoseconds since 1970, exactly; what does not fit 64 bits is refused as a value."""
    scale = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}[column.type.unit]
    return [None if value is None else value * scale for value in _integers(column)]


def _records(path: Path, timestamps: _Timestamps) -> Iterator[dict[str, object]]:
    try:
        with path.open("rb") as stream, pq.ParquetFile(stream, page_checksum_verification=True) as file:
            schema = file.schema_arrow
            repeated = [name for name in schema.names if schema.names.count(name) > 1]
            if repeated:
                raise BadInput(f"{path}: the column {quote(repeated[0])} appears twice")
            json_columns = {
                field.name for field in schema if field.metadata and field.metadata.items() >= JSON.items()
            }
            for batch in file.iter_batches(batch_size=ROWS):
                yield from _rows(batch, json_columns, timestamps)
    except (pa.ArrowException, OSError, ValueError, EOFError) as error:
        # Arrow's errors are OSErrors or ValueErrors too, and may be several lines long.
        first = reason(error).strip().split("\n")[0]
        raise BadInput(f"{path} cannot be read: {first or 'this is not a Parquet file'}") from None


def _rows(batch: Any, json_columns: set[str], timestamps: _Timestamps) -> Iterator[dict[str, object]]:
    columns: dict[str, list[Any]] = {}
    for field, column in zip(batch.schema, batch.columns, strict=True):
        read = timestamps(field.name) if pa.types.is_timestamp(field.type) else None
        if read is not None:
            columns[field.name] = read(column)
            continue
        if pa.types.is_duration(field.type):
            column = column.cast(pa.int64())
        elif pa.types.is_temporal(field.type):
            column = column.cast(_TEXT)  # Python's own times have no nanoseconds
        columns[field.name] = column.to_pylist()
    for number in range(batch.num_rows):
        record: dict[str, object] = {}
        for name, values in columns.items():
            value = values[number]
            try:
                is_json = name in json_columns and isinstance(value, str)
                record[name] = decode(value) if is_json else _plain(value)
            except Problem as error:
                raise Problem(f"field {quote(name)}: {error}") from None
        yield record


def _plain(value: Any, depth: int = 1) -> object:
    """A value of Parquet as one of JSON."""
    if depth > MAX_DEPTH:
        raise Problem(TOO_DEEP)
    match value:
        case None | str() | bool():
            return value
        case int():
            if value not in INT64:
                raise Problem(f"the integer {value} does not fit 64 bits")
            return value
        case float():
            if math.isnan(value):  # with which some tools write null
                return None
            if math.isinf(value):
                raise Problem(f"the number {value} is not a JSON number")
            return value
        case bytes():
            return base64.b64encode(value).decode("ascii")
        case decimal.Decimal():
            return str(value)
        case datetime.date() | datetime.time():
            return value.isoformat()
        case datetime.timedelta():
            return str(value)
        case Mapping():
            return {str(name): _plain(inner, depth + 1) for name, inner in value.items()}
        case Iterable():
            return [_plain(inner, depth + 1) for inner in value]
    raise Problem(f"a trace cannot hold a value of type {type(value).__name__}")

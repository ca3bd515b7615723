"""Which rows are events: what the trace format requires of values, on Arrow tables.

A twin of `spark.read.columns.refused`, which looks at Spark's columns.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from causet.formats.schema import SCHEMA
from causet.model import KINDS


def are_events(rows: pa.Table, timed: bool = True) -> bool:
    """Whether every row is an event, if `timed` one that has a time. Columns have the types of the format."""
    columns = {name: rows.column(name) for name in rows.column_names if name in SCHEMA}
    if any(columns[name].null_count for name in ("process", "seq", *(["time"] if timed else []))):
        return False
    for name, column in columns.items():
        least = SCHEMA[name].least
        if least is not None and pc.any(pc.less(column, least)).as_py():
            return False
        if pa.types.is_list(column.type) and any(chunk.flatten().null_count for chunk in column.chunks):
            return False
    time = columns.get("time")
    if time is not None and pa.types.is_floating(time.type) and not pc.all(pc.is_finite(time)).as_py():
        return False
    if "id" in columns and pc.any(pc.equal(columns["id"], "")).as_py():
        return False
    return "kind" not in columns or _kinds_fit(rows)


def _kinds_fit(rows: pa.Table) -> bool:
    kind = rows.column("kind")
    found = set(pc.unique(kind).to_pylist()) - {None, "local"}
    if not found <= set(KINDS):
        return False
    carries = pc.and_(kind.is_valid(), pc.not_equal(kind, "local").fill_null(False))
    return not (
        found
        and (
            _missing(rows, "message", carries)
            or ("send" in found and _missing(rows, "to", pc.equal(kind, "send").fill_null(False)))
        )
    )


def _missing(rows: pa.Table, name: str, wanted: pa.ChunkedArray) -> bool:
    """Whether a row that must have a value has none."""
    if name not in rows.column_names:
        return True
    return bool(pc.any(pc.and_(wanted, rows.column(name).is_null())).as_py())

"""Stub until the real one is there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_schema

from causet.spark.packing import to_blob


def examine(files: Sequence[Path], form: str, schema: T.StructType) -> dict[str, str]:
    found = {}
    for file in files:
        try:
            if form == "parquet":
                pq.read_table(file)
        except (OSError, pa.ArrowException) as error:
            found[str(file)] = str(error)[:60]
    return found


def unreadable_rows(schema: T.StructType, verdicts: Mapping[str, str]) -> bytes:
    rows = [
        {"status": "diverted", "problem": f"{path} cannot be read: {why}"} for path, why in verdicts.items()
    ]
    return to_blob(pa.Table.from_pylist(rows, schema=to_arrow_schema(schema, timezone="UTC")))

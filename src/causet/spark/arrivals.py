"""Where a stream's messages come from, if from files: JSON Lines or Parquet, in a folder that may grow.

The columns of a folder are found out once, when a query begins, and kept with its checkpoint: a stream has
one schema. A line that is no JSON is not lost: it stands in the column `malformed`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from causet.formats.files import reason
from causet.model import BadInput
from causet.spark.bucket import MALFORMED

JSON_NAMES, PARQUET_NAMES = (".jsonl", ".json", ".ndjson", ".jsonl.gz", ".json.gz"), (".parquet",)
PER_BATCH = 1000
"""Files that one batch takes."""


def form_of(path: Path) -> str | None:
    """`jsonl` or `parquet`, by the names of the files; None if there is none yet. BadInput if there is no
    such folder, or both are in it."""
    try:
        files = [path] if path.is_file() else sorted(path.rglob("*")) if path.is_dir() else None
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {reason(error)}") from None
    if files is None:
        raise BadInput(f"{path}: there is no such file or folder")
    seen = {
        form
        for file in files
        for form, names in (("jsonl", JSON_NAMES), ("parquet", PARQUET_NAMES))
        if file.name.endswith(names) and not file.name.startswith((".", "_")) and file.is_file()
    }
    if len(seen) > 1:
        raise BadInput(f"{path}: has JSON Lines and Parquet; messages come in one of them")
    if not seen and path.is_file():
        raise BadInput(f"{path}: messages are read from .jsonl and .parquet files")
    return seen.pop() if seen else None


def await_form(path: Path, follow: bool, idle: Callable[[], None] = lambda: None) -> str:
    """The form, as soon as there is a file; without `follow`, BadInput if there is none."""
    while (form := form_of(path)) is None:
        if not follow:
            raise BadInput(f"{path}: there is no .jsonl or .parquet file in it")
        idle()
        time.sleep(0.5)
    return form


def schema_of(spark: SparkSession, path: Path, form: str) -> T.StructType:
    """The columns of the files that are there."""
    if form == "parquet":
        return spark.read.option("mergeSchema", "true").parquet(_url(path)).schema
    found = spark.read.option("columnNameOfCorruptRecord", MALFORMED).json(_url(path)).schema
    fields = [field for field in found.fields if field.name != MALFORMED]
    return T.StructType([*fields, T.StructField(MALFORMED, T.StringType())])


def arriving(
    spark: SparkSession, path: Path, form: str, schema: T.StructType, per_batch: int = PER_BATCH
) -> DataFrame:
    """The messages as a stream."""
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", per_batch)
    if form == "parquet":
        return reader.parquet(_url(path))
    return reader.option("mode", "PERMISSIVE").option("columnNameOfCorruptRecord", MALFORMED).json(_url(path))


def _url(path: Path) -> str:
    return f"file:{path.resolve()}"


def schema_text(schema: T.StructType) -> str:
    return json.dumps(schema.jsonValue())


def schema_from(text: str) -> T.StructType:
    return T.StructType.fromJson(json.loads(text))

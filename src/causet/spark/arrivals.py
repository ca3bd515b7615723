"""Where a stream's messages come from, if from files: JSON Lines or Parquet, in a folder that may grow.

The columns of a folder are found out once, when a query begins, and kept with its checkpoint: a stream has
one schema. A line that is no JSON is not lost: it stands in the column `malformed`.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.streaming.readwriter import DataStreamReader

from causet.formats.files import reason
from causet.model import BadInput
from causet.spark.bucket import MALFORMED
from causet.spark.direct import ONLY_NAMES, ParquetFiles

JSON_NAMES, PARQUET_NAMES = (".jsonl", ".json", ".ndjson", ".jsonl.gz", ".json.gz"), (".parquet",)
PATTERNS = {"jsonl": "*.{jsonl,json,ndjson,jsonl.gz,json.gz}", "parquet": "*.parquet"}
PARQUET_MARK = b"PAR1"
PER_BATCH = 1000
"""Files that one batch takes."""


def inputs(path: Path) -> list[tuple[str, Path]]:
    """The files with messages at a path, each with its form, by name. BadInput if nothing is there."""
    try:
        files = [path] if path.is_file() else sorted(path.rglob("*")) if path.is_dir() else None
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {reason(error)}") from None
    if files is None:
        raise BadInput(f"{path}: there is no such file or folder")
    if not os.access(path, os.R_OK):  # of a folder that cannot be read, nothing is listed
        raise BadInput(f"{path} cannot be read: permission denied")
    return [
        (form, file)
        for file in files
        for form, names in (("jsonl", JSON_NAMES), ("parquet", PARQUET_NAMES))
        if file.name.endswith(names) and not _is_hidden(file, path) and file.is_file()
    ]


def _is_hidden(file: Path, path: Path) -> bool:
    """Whether readers leave out a file because of its name, or that of a folder below the path."""
    folders = file.relative_to(path).parts[:-1]
    names = [file.name, *(name for name in folders if "=" not in name)]
    return any(name.startswith((".", "_")) for name in names)


def form_of(path: Path) -> str | None:
    """`jsonl` or `parquet`, by the names of the files; None if there is none yet. BadInput if there is no
    such folder, or both are in it."""
    seen = {form for form, _ in inputs(path)}
    if len(seen) > 1:
        raise BadInput(f"{path}: has JSON Lines and Parquet; messages come in one of them")
    if not seen and path.is_file():
        raise BadInput(f"{path}: messages are read from .jsonl and .parquet files")
    return seen.pop() if seen else None


def has_columns_in_names(path: Path) -> bool:
    """Whether folders give the value of a column in their names, such as `day=2024-05-01`; BadInput if some
    files are in such folders and others are not: Spark would leave these out."""
    named: dict[bool, Path] = {}
    for _, file in inputs(path):
        named[any("=" in part for part in file.relative_to(path).parts[:-1])] = file
    if len(named) > 1:
        raise BadInput(
            f"{path}: {named[True].relative_to(path)} is in a folder that gives the value of a column, and "
            f"{named[False].relative_to(path)} is not; give them folders of their own"
        )
    return True in named


def await_form(path: Path, follow: bool, idle: Callable[[], None] = lambda: None) -> str:
    """The form, as soon as there is a file; without `follow`, BadInput if there is none."""
    while (form := form_of(path)) is None:
        if not follow:
            raise BadInput(f"{path}: there is no .jsonl or .parquet file in it")
        idle()
        time.sleep(0.5)
    return form


Reader = TypeVar("Reader", DataFrameReader, DataStreamReader)
LOOKED_AT = 1000
"""Lines of a file, to see what is in it."""


def check_messages(path: Path) -> None:
    """BadInput if files cannot be read, or have nothing in them that looks like a message."""
    for form, file in inputs(path):
        if not os.access(file, os.R_OK):
            raise BadInput(f"{file} cannot be read: permission denied")
        if ":" in file.name:
            raise BadInput(f"{file}: Spark reads no file with a colon in its name; rename it")
        if form == "parquet":
            _check_parquet(file)
    plain = [file for form, file in inputs(path) if form == "jsonl" and file.suffix != ".gz"]
    if not plain:
        return
    found = next((record for file in plain for record in _objects(file)), None)
    if found is None:
        raise BadInput(f"{path}: there is no message in it; a message is a line with a JSON object")
    if {"process", "seq", "kind"} <= found.keys() and not {"source", "id"} & found.keys():
        raise BadInput(
            f"{path} is a trace; `causet convert {path} --to cloudevents -o messages.jsonl` makes messages "
            "of it"
        )


def _check_parquet(file: Path) -> None:
    """BadInput if that is not how a Parquet file begins and ends."""
    with file.open("rb") as stream:
        begin, size = stream.read(4), stream.seek(0, 2)
        if not size:
            raise BadInput(f"{file} is empty")
        stream.seek(max(size - 4, 0))
        if size < 12 or begin != PARQUET_MARK or stream.read(4) != PARQUET_MARK:
            raise BadInput(f"{file} is no Parquet file, or only a part of one")


def _objects(file: Path) -> Iterator[dict[str, Any]]:
    """The JSON objects among the first lines of a file."""
    with file.open("rb") as stream:
        for line in islice(stream, LOOKED_AT):
            with suppress(ValueError, RecursionError):
                record = json.loads(line)
                if isinstance(record, dict):
                    yield record


def schema_of(spark: SparkSession, path: Path, form: str) -> T.StructType:
    """The columns of the files that are there."""
    if form == "parquet":
        return _all_of(spark.read, path, form).option("mergeSchema", "true").parquet(_url(path)).schema
    reader = _all_of(spark.read, path, form).option("columnNameOfCorruptRecord", MALFORMED)
    found = reader.json(_url(path)).schema
    fields = [field for field in found.fields if field.name != MALFORMED]
    return T.StructType([*fields, T.StructField(MALFORMED, T.StringType())])


def arriving(
    spark: SparkSession,
    path: Path,
    form: str,
    schema: T.StructType,
    per_batch: int = PER_BATCH,
    without: Sequence[str] = (),
) -> DataFrame:
    """The messages as a stream."""
    reader = _stream(spark, path, form, per_batch).schema(schema)
    if form == "parquet":
        return reader.parquet(_place(path))
    reader = reader.option("mode", "PERMISSIVE").option("columnNameOfCorruptRecord", MALFORMED)
    return reader.json(_place(path))


def arriving_files(
    spark: SparkSession,
    path: Path,
    schema: T.StructType,
    per_batch: int = PER_BATCH,
    without: Sequence[str] = (),
) -> ParquetFiles:
    """The messages in Parquet files as a stream, for workers that read them."""
    files = (
        _stream(spark, path, "parquet", per_batch).schema(ONLY_NAMES).format("binaryFile").load(_place(path))
    )
    files = files.where(~F.col("path").isin([f"file:{each}" for each in without]))
    return ParquetFiles(files, arriving(spark, path, "parquet", schema, per_batch))


def columns_of(messages: DataFrame | ParquetFiles) -> T.StructType:
    """The columns of messages, however they come."""
    return (messages.rows if isinstance(messages, ParquetFiles) else messages).schema


def _stream(spark: SparkSession, path: Path, form: str, per_batch: int) -> DataStreamReader:
    # Otherwise Spark leaves out, without a word, files that are a week older than the newest one.
    reader = _all_of(spark.readStream, path, form).option("maxFileAge", "36500d")
    return reader.option("maxFilesPerTrigger", per_batch)


def _all_of(reader: Reader, path: Path, form: str) -> Reader:
    """Of a folder, every file with a name of the form, in folders below it too, and none of them twice."""
    if path.is_file():
        return reader
    if not has_columns_in_names(path):
        reader = reader.option("recursiveFileLookup", "true")
    # Spark would take a name such as [x].parquet for a pattern, and read what it fits as well.
    reader = reader.option("__globPaths__", "false")
    return reader.option("pathGlobFilter", PATTERNS[form])


def _place(path: Path) -> str:
    return _as_pattern(path) if path.is_file() else _url(path)


def still(spark: SparkSession, path: Path, form: str) -> DataFrame:
    """The messages that are there now, in the order of files and lines."""
    reader = _all_of(spark.read, path, form)
    if form == "parquet":
        return reader.parquet(_url(path))
    return reader.option("columnNameOfCorruptRecord", MALFORMED).json(_url(path))


def in_files() -> Column:
    """The order of files by their age and of lines in them, for what `still` gives."""
    about = [
        F.col(f"_metadata.{name}") for name in ("file_modification_time", "file_path", "file_block_start")
    ]
    return F.struct(*about, F.monotonically_increasing_id())


def _url(path: Path) -> str:
    return f"file:{path.resolve()}"


def _as_pattern(path: Path) -> str:
    """A file as a pattern that only it fits: streams are of folders and of patterns."""
    text = re.sub(r"([\[\]{}*?\\])", r"\\\1", str(path.resolve()))
    return f"file:{text[:-1]}[{text[-1]}]"


def schema_text(schema: T.StructType) -> str:
    return json.dumps(schema.jsonValue())


def schema_from(text: str) -> T.StructType:
    return T.StructType.fromJson(json.loads(text))

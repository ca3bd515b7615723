"""File source of a stream: JSON Lines or Parquet, in a folder that may grow.

The columns of a folder are found out once, when a query begins, and kept with its checkpoint: a stream has
one schema. A line that is not a message is not lost: it stands in the column `malformed`. A damaged file is
left out as a whole, once `verdicts` has found it.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import time
import unicodedata
import zlib
from collections.abc import Collection, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.streaming.readwriter import DataStreamReader

from causet.errors import BadInput, printable, reason
from causet.files import MARK
from causet.spark.start.errors import from_spark
from causet.spark.streams.json_lines import VALUE, columns_in, fits, parsed
from causet.spark.streams.pack import FAULT
from causet.spark.streams.parquet import ONLY_NAMES, Messages, why_unreadable

JSON_NAMES, PARQUET_NAMES = (".jsonl", ".json", ".ndjson", ".jsonl.gz", ".json.gz"), (".parquet",)
PATTERNS = {"jsonl": "*.{jsonl,json,ndjson,jsonl.gz,json.gz}", "parquet": "*.parquet"}
PARQUET_MARK = b"PAR1"
PER_BATCH = 1000
"""Maximum number of files per batch."""


def inputs(path: Path) -> list[tuple[str, Path]]:
    """The files with messages at a path, each with its form, by name. BadInput if nothing is there.

    They are the files that Spark's listing finds: those below links to folders, too, and none that is hidden,
    or below a hidden folder. BadInput if a link leads back to a folder that it is in.
    """
    try:
        files = [path] if path.is_file() else sorted(_files_below(path)) if path.is_dir() else None
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
        if file.name.endswith(names) and file.is_file()
    ]


def _files_below(path: Path) -> Iterator[Path]:
    """The files below a folder, and below folders that links there lead to, without hidden ones."""
    for name, folders, names in os.walk(path, followlinks=True):
        folder = Path(name)
        yield from (folder / each for each in names if not _is_hidden(each))
        folders[:] = [each for each in folders if not _is_hidden(each)]
        for link in (folder / each for each in folders if (folder / each).is_symlink()):
            above = (each.resolve() for each in link.parents if each.is_relative_to(path))
            if any(each.is_relative_to(link.resolve()) for each in above):
                raise BadInput(f"{link} is a link to a folder that it is in itself; remove it")


def check_names(source: object) -> None:
    """Spark's listing of a folder ends at a name with a colon, and does not say which: BadInput names it."""
    for _, file in inputs(source) if isinstance(source, Path) and source.is_dir() else ():
        if ":" in file.name:
            raise BadInput(f"{file}: Spark reads no file with a colon in its name; rename it")


def _is_hidden(name: str) -> bool:
    """Whether Spark leaves out a file or folder of this name; `_day=1` gives the value of a column."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def form_of(path: Path) -> str | None:
    """`jsonl` or `parquet`, by the names of the files; None if there is none yet. BadInput if there is no
    such folder, or both are in it."""
    seen = {form for form, _ in inputs(path)}
    if len(seen) > 1:
        raise BadInput(f"{path}: has JSON Lines and Parquet; messages come in one of them")
    if not seen and path.is_file():
        raise BadInput(f"{path}: messages are read from .jsonl and .parquet files")
    return seen.pop() if seen else None


def _columns_in_names(path: Path) -> set[str]:
    """The columns whose values folders have in their names."""
    parts = (part for _, file in inputs(path) for part in file.relative_to(path).parts[:-1])
    return {part.partition("=")[0] for part in parts if "=" in part} if path.is_dir() else set()


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


def await_form(path: Path, follow: bool) -> str:
    """The form, as soon as there is a file; without `follow`, BadInput if there is none."""
    while (form := form_of(path)) is None:
        if not follow:
            raise BadInput(f"{path}: there is no .jsonl or .parquet file in it")
        time.sleep(0.5)
    return form


Reader = TypeVar("Reader", DataFrameReader, DataStreamReader)
LOOKED_AT = 1000
"""Lines of a file that are read to see what is in it."""


def check_messages(path: Path) -> None:
    """BadInput if nothing that is there can be read, or looks like a message.

    One bad line or one damaged file does not stop the others: each is found in its batch.
    """
    found = inputs(path)
    for _, file in found:
        if not os.access(file, os.R_OK):
            raise BadInput(f"{file} cannot be read: permission denied")
        if ":" in file.name:
            raise BadInput(f"{file}: Spark reads no file with a colon in its name; rename it")
    tables = [file for form, file in found if form == "parquet"]
    faults = [(file, fault) for file in tables if (fault := _parquet_fault(file)) is not None]
    if tables and len(faults) == len(tables):
        file, fault = faults[0]
        raise BadInput(f"{printable_path(file)} {fault}")
    _check_lines(path, [file for form, file in found if form == "jsonl"])


def printable_path(file: Path) -> str:
    """A path, fit for a terminal; only its name is shortened."""
    return str(Path(*(printable(part) if not part.isprintable() else part for part in file.parts)))


def _check_lines(path: Path, files: list[Path]) -> None:
    """BadInput if no line is a message, or they are those of a trace."""
    if not files:
        return
    first_bad: str | None = None
    for file in files:
        seen = 0
        for number, record in _records(file):
            seen = number
            if isinstance(record, dict):
                if {"process", "seq", "kind"} <= record.keys() and not {"source", "id"} & record.keys():
                    raise BadInput(
                        f"{path} is a trace; `causet convert {path} --to cloudevents -o messages.jsonl` "
                        "makes messages of it"
                    )
                return
            if first_bad is None:
                first_bad = f"{printable_path(file)}, line {number} is not one"
        if seen >= LOOKED_AT:
            return  # what comes behind these is not known
    example = first_bad or f"{printable_path(files[0])} has no line that can be read"
    raise BadInput(
        f"{path}: there is no message in it; a message is a line with a JSON object, and {example}"
    )


def _parquet_fault(file: Path) -> str | None:
    """Why that is not how a Parquet file begins and ends."""
    with file.open("rb") as stream:
        begin, size = stream.read(4), stream.seek(0, 2)
        if not size:
            return "is empty"
        stream.seek(max(size - 4, 0))
        if size < 12 or begin != PARQUET_MARK or stream.read(4) != PARQUET_MARK:
            return "is not a Parquet file, or only a part of one"
    return None


def _records(file: Path) -> Iterator[tuple[int, object]]:
    """What the first lines of a file are that are not blank, each with its number; None if it is not JSON.
    A damaged file is read up to where that is."""
    try:
        with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as stream:
            for number, line in enumerate(islice(stream, LOOKED_AT), 1):
                text = line.removeprefix(MARK).strip() if number == 1 else line.strip()
                if text:
                    try:
                        yield number, json.loads(text)
                    except (ValueError, RecursionError):
                        yield number, None
    except (EOFError, zlib.error, gzip.BadGzipFile):
        return


def schema_of(spark: SparkSession, path: Path, form: str) -> T.StructType:
    """The columns of the files that are there, as far as they can be read."""
    if form == "parquet":
        return _parquet_columns(spark, path)
    reader = _all_of(spark.read, path, form).option("ignoreCorruptFiles", "true")
    lines = reader.option("lineSep", "\n").text(_url(path))
    beside = [field for field in lines.schema.fields if field.name != VALUE]
    found = columns_in(lines)
    names = {field.name for field in beside}
    return T.StructType([*(field for field in found.fields if field.name not in names), *beside])


def _parquet_columns(spark: SparkSession, path: Path) -> T.StructType:
    """The columns of all files; where two disagree about a column, the first one wins.

    BadInput, with the first file, if none of them can be read.
    """
    reader = _all_of(spark.read, path, "parquet").option("ignoreCorruptFiles", "true")
    try:
        return reader.option("mergeSchema", "true").parquet(_url(path)).schema
    except Exception as error:
        if not from_spark(error):
            raise
    files = [file for _, file in inputs(path)]
    kinds: dict[bytes, Path] = {}
    for file in files:
        with suppress(pa.ArrowException, OSError):
            kinds.setdefault(pq.read_schema(file).remove_metadata().serialize().to_pybytes(), file)
    fields: dict[str, T.StructField] = {}
    for file in kinds.values():
        reader = spark.read.option("__globPaths__", "false").option("basePath", _base(path))
        try:
            schema = reader.parquet(_url(file)).schema
        except Exception as error:
            if not from_spark(error):
                raise
            continue
        for field in schema.fields:
            if field.name not in fields or (fits(field) and not fits(fields[field.name])):
                fields[field.name] = field
    if not fields:
        raise _none_readable(files)
    return T.StructType(list(fields.values()))


def _none_readable(files: list[Path]) -> BadInput:
    try:
        pq.read_schema(files[0])
    except (pa.ArrowException, OSError) as error:
        return BadInput(f"{printable_path(files[0])} cannot be read: {why_unreadable(error)}")
    for field in pq.read_schema(files[0]):
        if pa.types.is_timestamp(field.type) and field.type.unit == "ns":
            return BadInput(
                f"{printable_path(files[0])} cannot be read: column {printable(field.name)} has timestamps "
                "in nanoseconds, which Spark does not read; write them in microseconds"
            )
    return BadInput(f"{printable_path(files[0])} cannot be read: Spark cannot read its columns")


def arriving(
    spark: SparkSession,
    path: Path,
    form: str,
    schema: T.StructType,
    per_batch: int = PER_BATCH,
    without: Collection[str] = (),
    relists: bool = False,
) -> DataFrame:
    """The messages as a stream; without those of some files, which are damaged. If it `relists`, the folder
    is listed for each batch, so that one with less than `per_batch` files has all that were there."""
    reader = _stream(spark, path, form, per_batch, without, relists)
    if form == "parquet":
        return _left(reader.schema(schema).parquet(_place(path)), without)
    beside = _columns_in_names(path)
    text = T.StructType(
        [T.StructField(VALUE, T.StringType()), *(field for field in schema.fields if field.name in beside)]
    )
    lines = reader.schema(text).option("lineSep", "\n").text(_place(path))
    return parsed(_left(lines, without), schema)


def arriving_files(
    spark: SparkSession,
    path: Path,
    schema: T.StructType,
    per_batch: int = PER_BATCH,
    without: Collection[str] = (),
    relists: bool = False,
) -> Messages:
    """The messages in Parquet files as a stream, for workers that read them; `relists` as in `arriving`."""
    reader = _stream(spark, path, "parquet", per_batch, without, relists).schema(ONLY_NAMES)
    files = _left(reader.format("binaryFile").load(_place(path)), without)
    return Messages(arriving(spark, path, "parquet", schema, per_batch, without, relists), files)


def _left(found: DataFrame, without: Collection[str]) -> DataFrame:
    """What is not of these files. Spark opens none of them: it knows their names when it plans a batch."""
    if not without:
        return found
    names = [f"{scheme}{_encoded(path)}" for path in without for scheme in ("file:", "file://")]
    return found.where(~F.col("_metadata.file_path").isin(names))


def _encoded(path: str) -> str:
    """A path as Java writes it in a URL."""
    return "".join(
        each
        if ord(each) > 127 and unicodedata.category(each) not in ("Cc", "Zs", "Zl", "Zp")
        else quote(each, safe="/_-!.~'()*:@&=+$,;")
        for each in path
    )


def _stream(
    spark: SparkSession, path: Path, form: str, per_batch: int, without: Collection[str], relists: bool
) -> DataStreamReader:
    # Otherwise Spark leaves out, without a word, files that are a week older than the newest one.
    reader = _all_of(spark.readStream, path, form).option("maxFileAge", "36500d")
    if without:  # a damaged file may have been taken away
        reader = reader.option("ignoreMissingFiles", "true")
    if relists:  # otherwise what a batch has no room for is kept for the next ones, which list nothing
        reader = reader.option("maxCachedFiles", 0)
    return reader.option("maxFilesPerTrigger", per_batch)


def _all_of(reader: Reader, path: Path, form: str) -> Reader:
    """Of a folder, every file with a name of the form, in subfolders too, each of them once."""
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
    lines = reader.option("lineSep", "\n").text(_url(path))
    return parsed(lines, schema_of(spark, path, form)).drop(FAULT)


def in_files() -> Column:
    """The order of files by their age and of lines in them, for what `still` gives."""
    about = [
        F.col(f"_metadata.{name}") for name in ("file_modification_time", "file_path", "file_block_start")
    ]
    return F.struct(*about, F.monotonically_increasing_id())


def _base(path: Path) -> str:
    return _url(path if path.is_dir() else path.parent)


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

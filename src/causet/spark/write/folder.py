"""Rows written as a folder of Parquet or JSON Lines files, by all workers.

Rule: a folder is complete or not there. Rows are written to a hidden folder beside the target, which takes
the target's name when it is complete; after a failure or an interrupt nothing is left of it. Files are called
part-00000, part-00001, …: in that order they hold the rows in order, and the same rows in the same partitions
give the same names and bytes.
"""

from __future__ import annotations

import re
import secrets
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from pyspark.sql import Column, DataFrame, DataFrameWriter, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DoubleType, FloatType, VariantType

from causet.errors import BadInput, quote
from causet.files import check_parent, new_folder, unwritable
from causet.spark.columns import quoted
from causet.spark.start.errors import from_spark, sentence_for, text_of
from causet.spark.start.session import remove_when_ended
from causet.spark.write.footers import sort_encodings

FORMS = ("parquet", "jsonl")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_PART = re.compile(r"part-(\d+)-.*?(?:-c(\d+))?(?:\.\w+)*")
_OURS = re.compile(r"part-.*|_SUCCESS|\..*\.crc")
_TRIES, _PAUSE, _QUIET = 50, 0.1, 10


def write_rows(rows: DataFrame, target: str | Path, form: str, overwrite: bool = False) -> list[Path]:
    """Write the rows, in the order of their partitions, as files of a folder, and return their paths.

    The form is `parquet` or `jsonl`. A target with a scheme, such as hdfs://host/folder, is left to Spark,
    and no path is returned then. BadInput if the target exists and is not an empty folder, unless it is to be
    overwritten and holds only files that were written here; or if it cannot be written. An exception about
    something else, such as reading the input, is passed on as it is.
    """
    if form not in FORMS:
        raise BadInput(f"unknown format {quote(form)}; rows are written as {' or '.join(FORMS)}")
    folder = check_target(target, overwrite)
    if folder is None:
        with _explained(str(target)):
            mode = "overwrite" if overwrite else "error"
            write_files(fit_for(rows, form).write.mode(mode), str(target), form)
        return []
    with new_folder(folder.resolve()) as new, interrupted(rows.sparkSession, new.parent):
        with _explained(str(folder)):
            write_files(fit_for(rows, form).write.mode("error"), f"file:{new}", form)
        try:
            names = _renamed(new, form)
        except OSError as error:
            raise unwritable(folder, error) from None
    return [folder / name for name in names]


def place_parts(parts: Sequence[Path], folder: Path, form: str) -> list[Path]:
    """Files that tasks wrote into one folder become a target, under the names that parts have, in this order.

    All else in that folder is removed.
    """
    (within,) = {part.parent for part in parts}
    try:
        for file in set(within.iterdir()) - set(parts):
            file.unlink()
        names = _part_names(len(parts), form)
        for part, name in zip(parts, names, strict=True):
            part.rename(within / name)
        (within / "_SUCCESS").touch()
        with new_folder(folder.resolve()) as new:
            within.rename(new)
    except OSError as error:
        raise unwritable(folder, error) from None
    return [folder / name for name in names]


def check_target(target: str | Path, overwrite: bool) -> Path | None:
    """The folder of a target; None for one that is left to Spark. BadInput, before anything is computed, if
    rows cannot be written there."""
    if _SCHEME.match(str(target)) and not str(target).startswith("file:///"):
        return None
    folder = Path(str(target).removeprefix("file://"))
    try:
        if folder.exists() and not folder.is_dir():
            raise BadInput(f"{folder} is not a folder; give the name of a folder to write")
        found = [each.name for each in folder.iterdir()] if folder.is_dir() else []
        check_parent(folder)
    except (OSError, ValueError) as error:
        raise unwritable(folder, error) from None
    if found and not overwrite:
        raise BadInput(f"{folder} exists and is not empty; name another folder, or use --overwrite")
    strange = sorted(name for name in found if not _OURS.fullmatch(name))
    if strange:
        raise BadInput(
            f"{folder} is not overwritten: it holds other things than rows, such as {quote(strange[0])}"
        )
    return folder


def fit_for(rows: DataFrame, form: str) -> DataFrame:
    """The rows as files of the form can hold them: Parquet has no variants, which become JSON strings; JSON
    has no NaN, which becomes null, and null is left out."""

    def fitted(name: str, found: DataType) -> Column:
        column = F.col(quoted(name))
        if form == "parquet" and isinstance(found, VariantType):
            return F.to_json(column).alias(name)
        if form == "jsonl" and isinstance(found, FloatType | DoubleType):
            return F.when(~F.isnan(column), column).alias(name)
        return column

    return rows.select(*(fitted(field.name, field.dataType) for field in rows.schema.fields))


def write_files(writer: DataFrameWriter, target: str, form: str) -> None:
    """Write rows that are fit for the form; the same rows give the same lines."""
    if form == "parquet":
        writer.parquet(target)
    else:
        writer.json(target, compression="none", ignoreNullFields=True, lineSep="\n", encoding="UTF-8")


@contextmanager
def _explained(target: str) -> Iterator[None]:
    """Turn an exception about writing into BadInput that names the target."""
    try:
        yield
    except Exception as error:
        about_reading = "FAILED_READ_FILE" in text_of(error)
        sentence = None if about_reading or not from_spark(error) else sentence_for(error)
        if sentence is None:
            raise
        raise BadInput(f"{target} cannot be written: {sentence}") from None


# ---------------------------------------------------------------- folders


@contextmanager
def interrupted(spark: SparkSession, folder: Path) -> Iterator[None]:
    """If writing into this folder fails or is interrupted, stop its tasks, and leave nothing of it."""
    tag = secrets.token_hex(8)
    spark.addTag(tag)
    try:
        yield
    except BaseException:
        with suppress(Exception):
            spark.interruptTag(tag)
        _remove_for_good(folder)
        remove_when_ended(folder)
        raise
    finally:
        with suppress(Exception):
            spark.removeTag(tag)


def _remove_for_good(folder: Path) -> None:
    """Remove a folder although interrupted tasks may still run for a short time and make it again.

    A task makes a folder by starting a program (Hadoop's `chmod`), which takes a while on a busy machine: so
    it counts as gone when nothing has come back for a second. What comes later goes with the JVM.
    """
    quiet = 0
    for _ in range(_TRIES):
        if folder.exists():
            quiet = 0
            shutil.rmtree(folder, ignore_errors=True)
        quiet += 1
        if quiet > _QUIET:
            return
        time.sleep(_PAUSE)


def _renamed(folder: Path, form: str) -> list[str]:
    """Name the parts by their order, and drop what Spark leaves beside them."""
    parts = parts_in(folder)
    for file in folder.iterdir():
        if file not in parts and file.name != "_SUCCESS":
            file.unlink()
    names = _part_names(len(parts), form)
    for file, name in zip(parts, names, strict=True):
        if form == "parquet":
            sort_encodings(file)
        file.rename(folder / name)
    (folder / "_SUCCESS").touch()
    return names


def _part_names(count: int, form: str) -> list[str]:
    width = max(5, len(str(count)))
    return [f"part-{number:0{width}}.{form}" for number in range(count)]


def parts_in(folder: Path) -> list[Path]:
    """The files that Spark wrote, in the order of its tasks; none if there is no such folder."""
    found = []
    for file in folder.iterdir() if folder.is_dir() else ():
        part = _PART.fullmatch(file.name)
        if part:
            found.append((int(part[1]), int(part[2] or 0), file))
    return [file for _, _, file in sorted(found)]

"""Where rows go: a folder of Parquet or JSON Lines files, written by all workers.

Rule: a folder is whole or not there. Rows are written to a hidden folder beside the target, which takes the
target's name when it is complete; after a failure or an interrupt nothing is left of it. Files are called
part-00000, part-00001, …: in that order they are the rows in their order, and the same rows in the same
partitions give the same names and bytes.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DoubleType, FloatType, VariantType

from causet.errors import BadInput, quote
from causet.files import unwritable
from causet.spark.columns import quoted
from causet.spark.start.errors import from_spark, sentence_for, text_of
from causet.spark.write.footers import sort_encodings

FORMS = ("parquet", "jsonl")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_PART = re.compile(r"part-(\d+)-.*?(?:-c(\d+))?(?:\.\w+)*")
_OURS = re.compile(r"part-.*|_SUCCESS|\..*\.crc")
_TRIES, _PAUSE = 50, 0.1


def write_rows(rows: DataFrame, target: str | Path, form: str, overwrite: bool = False) -> list[Path]:
    """Write the rows, in the order of their partitions, as files of a folder, and say which.

    The form is `parquet` or `jsonl`. A target with a scheme, such as hdfs://host/folder, is left to Spark,
    and no file is named then. BadInput if the target is there and is not an empty folder, unless it is to be
    overwritten and holds nothing but what was written so; or if it cannot be written. An exception about
    something else, such as reading the input, is passed on as it is.
    """
    if form not in FORMS:
        raise BadInput(f"unknown format {quote(form)}; rows are written as {' or '.join(FORMS)}")
    folder = check_target(target, overwrite)
    if folder is None:
        with _said(str(target)):
            _write(fit_for(rows, form), str(target), form, "overwrite" if overwrite else "error")
        return []
    whole = folder.resolve()
    with _beside(rows.sparkSession, whole) as beside:
        with _said(str(folder)):
            _write(fit_for(rows, form), f"file:{beside / 'rows'}", form, "error")
        try:
            names = _renamed(beside / "rows", form)
            _put(beside, whole)
        except OSError as error:
            raise unwritable(folder, error) from None
    return [folder / name for name in names]


def check_target(target: str | Path, overwrite: bool) -> Path | None:
    """The folder that is meant; None for a target that is left to Spark. BadInput if nothing can be written
    there, said before anything is computed."""
    if _SCHEME.match(str(target)) and not str(target).startswith("file:///"):
        return None
    folder = Path(str(target).removeprefix("file://"))
    try:
        if folder.exists() and not folder.is_dir():
            raise BadInput(f"{folder} is no folder; give the name of a folder to write")
        found = [each.name for each in folder.iterdir()] if folder.is_dir() else []
        above = folder.resolve().parent
        if not above.is_dir():
            raise BadInput(f"{folder} cannot be written: there is no folder {above}")
        if not os.access(above, os.W_OK):
            raise BadInput(f"{folder} cannot be written: Permission denied")
    except (OSError, ValueError) as error:
        raise unwritable(folder, error) from None
    if found and not overwrite:
        raise BadInput(
            f"{folder} is there already, and is not empty; name another folder, or use --overwrite"
        )
    strange = sorted(name for name in found if not _OURS.fullmatch(name))
    if strange:
        raise BadInput(
            f"{folder} holds something else than rows that were written there, such as {quote(strange[0])}, "
            "and is not overwritten"
        )
    return folder


def fit_for(rows: DataFrame, form: str) -> DataFrame:
    """The rows as files of the form can hold them: Parquet has no column of anything, which becomes JSON
    text; JSON has no NaN, which becomes null, and null is left out."""

    def fitted(name: str, found: DataType) -> Column:
        column = F.col(quoted(name))
        if form == "parquet" and isinstance(found, VariantType):
            return F.to_json(column).alias(name)
        if form == "jsonl" and isinstance(found, FloatType | DoubleType):
            return F.when(~F.isnan(column), column).alias(name)
        return column

    return rows.select(*(fitted(field.name, field.dataType) for field in rows.schema.fields))


def _write(rows: DataFrame, target: str, form: str, mode: str) -> None:
    writer = rows.write.mode(mode)
    if form == "parquet":
        writer.parquet(target)
    else:
        writer.json(target, compression="none", ignoreNullFields=True, lineSep="\n", encoding="UTF-8")


@contextmanager
def _said(target: str) -> Iterator[None]:
    """An exception about writing becomes BadInput that names the target."""
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
def _beside(spark: SparkSession, folder: Path) -> Iterator[Path]:
    """A hidden folder beside another, gone at the end whatever happens."""
    token = secrets.token_hex(8)
    beside = folder.with_name(f".{folder.name}.{token}.part")
    try:
        beside.mkdir()
    except (OSError, ValueError) as error:
        raise unwritable(folder, error) from None
    spark.addTag(token)
    try:
        yield beside
    except BaseException:
        with suppress(Exception):
            spark.interruptTag(token)
        _remove_for_good(beside)
        raise
    finally:
        with suppress(Exception):
            spark.removeTag(token)
        shutil.rmtree(beside, ignore_errors=True)


def _remove_for_good(folder: Path) -> None:
    """Tasks that were interrupted may still be at work for a moment, and make their folders again."""
    quiet = 0
    for _ in range(_TRIES):
        if folder.exists():
            quiet = 0
            shutil.rmtree(folder, ignore_errors=True)
        quiet += 1
        if quiet > 3:
            return
        time.sleep(_PAUSE)


def _renamed(folder: Path, form: str) -> list[str]:
    """Name the parts by their order, and drop what Spark leaves beside them."""
    found: list[tuple[int, int, Path]] = []
    for file in folder.iterdir():
        part = _PART.fullmatch(file.name)
        if part:
            found.append((int(part[1]), int(part[2] or 0), file))
        elif file.name != "_SUCCESS":
            file.unlink()
    width = max(5, len(str(len(found))))
    names = []
    for number, (_, _, file) in enumerate(sorted(found)):
        if form == "parquet":
            sort_encodings(file)
        names.append(f"part-{number:0{width}}.{form}")
        file.rename(folder / names[-1])
    (folder / "_SUCCESS").touch()
    return names


def _put(beside: Path, folder: Path) -> None:
    """Give the rows the name of the folder; what was there is removed when they have it."""
    before = beside / "before"
    if folder.exists():
        folder.rename(before)
    try:
        (beside / "rows").rename(folder)
    except BaseException:
        if before.exists() and not folder.exists():
            before.rename(folder)
        raise

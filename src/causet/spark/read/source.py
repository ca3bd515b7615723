"""Traces and logs of any format, as one DataFrame of one execution.

Files are checked before Spark reads them: `events` has exactly the types of the trace format, and an error is
one sentence that names the file, the line or row, and the field. Traces (JSON Lines,
Parquet, folders of them) are read by Spark itself; logs of other formats are read by `formats` first.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from causet.errors import BadInput, Problem
from causet.files import Place
from causet.formats.execution import Fault
from causet.formats.places import damage, places_of_event
from causet.formats.registry import detect
from causet.formats.schema import FIELDS
from causet.spark.columns import input_names
from causet.spark.read.columns import check_names, check_required
from causet.spark.read.files import Found, Scratch, files_of, imported
from causet.spark.read.inputs import given_back
from causet.spark.read.json import HIDDEN, open_lines
from causet.spark.read.parquet import open_rows
from causet.spark.read.parts import (
    CHANGED,
    Part,
    common_types,
    events_of,
    in_file_order,
    path_of,
    variants_of,
)
from causet.spark.start.errors import condition_of, from_spark, innermost, sentence_for, text_of


class Source:
    """One execution as Spark reads it, for a `with`: some of it may be in temporary files."""

    files: list[Path]
    """the files that were read, in the order given, with those of folders"""
    faults: list[Fault]
    """of a log of another format; those of traces are found by the checkers"""
    events: DataFrame
    """every field as a column: the format's own, as far as some event has them, then the others"""

    def __init__(self, spark: SparkSession, found: Found, scratch: Scratch) -> None:
        self.files, self.faults = found.files, found.faults
        self._spark, self._found, self._scratch = spark, found, scratch
        named = ", ".join(map(str, self.files[:3]))
        located = {path: scratch.located(path) for path in found.traces}
        rows = [path for path in found.traces if path.name.endswith(".parquet")]
        lines = [path for path in found.traces if not path.name.endswith(".parquet")]
        try:
            parts = open_rows(spark, rows, [located[path] for path in rows], _case_matters(spark))
            opened = open_lines(spark, lines, [located[path] for path in lines]) if lines else None
        except Exception as error:
            raise self.sentence(error) or error from None
        parts = [part.without(found.unused) for part in [*([opened] if opened else []), *parts]]
        self._parts = [part.with_variants(variants_of(parts)) for part in parts]
        if not self._parts:
            raise BadInput(f"{named}: there is no event in it")
        self._types = common_types(self._parts)
        try:
            check_required(self._types)
            check_names(self._types, _case_matters(spark), FIELDS)
            check_names(found.inputs or (), _case_matters(spark))
        except Problem as problem:
            raise BadInput(f"{named}: {problem}") from None
        self.events = events_of(self._parts, self._types)

    def __enter__(self) -> Source:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, *_: object) -> None:
        """Turn an exception of Spark about the input into a sentence."""
        found = None if error is None else self.sentence(error)
        self.close()
        if found is not None and found is not error:
            raise found from error

    def close(self) -> None:
        """Remove temporary files; the events cannot be read afterwards."""
        self._scratch.close()

    def given_back(self, rows: DataFrame, added: Sequence[str]) -> tuple[DataFrame, dict[str, str]]:
        """These rows with the columns of the input and the added ones; and the new names of input columns
        that have the name of an added one.

        Only a table that was opened with `own_columns` has columns of its own; other rows stay as they are.
        """
        if self._found.inputs is None:
            return rows, {}
        called = input_names(self._found.inputs, added, _case_matters(self._spark))
        return given_back(rows, self._found.inputs, added, called), called

    @property
    def imported(self) -> bool:
        """Whether the events are in temporary files, made of a log of another format."""
        return self._found.imported

    @property
    def case_matters(self) -> bool:
        """Whether Spark tells names of columns apart that differ in case only."""
        return _case_matters(self._spark)

    # ------------------------------------------------------------ what is wrong

    def check(self) -> None:
        """BadInput names the first row of Parquet that is not an event. One job for each set of columns; JSON
        Lines were checked when they were opened."""
        for part in self._parts:
            if part.needs_check(self._types):
                try:
                    self._check(part)
                except Exception as error:
                    raise self.sentence(error) or error from None

    def _check(self, part: Part) -> None:
        wrong = part.scan.filter(part.wrong(self._types))
        shown = [column.alias(name) for name, column in part.shown(self._types).items()]
        if part.lines:
            row = wrong.select(*shown).head()
            if row is not None:
                where = self.place_of(row["process"], row["seq"])
                raise BadInput(f"{where[0]}: {part.why(row.asDict(), self._types)}")
            return
        file, number = F.col("_metadata.file_path"), F.col("_metadata.row_index")
        found = wrong.groupBy(file.alias("file")).agg(F.min(number).alias("row")).collect()
        if found:
            first = min(found, key=lambda row: (self._position(row["file"]), row["row"]))
            (row,) = wrong.filter((file == first["file"]) & (number == first["row"])).select(*shown).collect()
            place = Place(str(self._original(first["file"])), first["row"] + 1, "row")
            raise BadInput(f"{place}: {part.why(row.asDict(), self._types)}")

    def sentence(self, error: BaseException) -> BadInput | None:
        """The error for an exception of Spark about the input, or about reading it; None if it is about
        something else."""
        if isinstance(error, BadInput):
            return error
        if not from_spark(error):
            return None
        text = text_of(error)
        for uri in _READING.findall(text):
            path = self._scratch.originals.get(path_of(uri))
            if path is not None:
                return _why_unreadable(path, error)
        if CHANGED in text:
            return BadInput(f"{CHANGED}; run the command again")
        found = sentence_for(error)
        return BadInput(found) if found else None

    # ------------------------------------------------------------ where things stand

    def in_file_order(self) -> DataFrame:
        """The events with `file_order`, which grows in the order of the files and of the rows in them."""
        try:
            return in_file_order(self._spark, self._parts, self._types, self._positions())
        except Exception as error:
            raise self.sentence(error) or error from None

    def place_of(self, process: str, seq: int) -> list[str]:
        """The places of events with this process and seq, such as `trace.jsonl, line 17`."""
        return self._places(places_of_event(self._searched(), process, seq))

    def _searched(self) -> list[Path]:
        return [] if self._found.imported else self._found.traces

    def _places(self, found: list[str]) -> list[str]:
        """The places; if they are not known, the files."""
        return found or [str(path) for path in self.files[:3]]

    def _positions(self) -> dict[str, int]:
        return {path: number for number, path in enumerate(self._scratch.originals)}

    def _position(self, uri: str) -> int:
        return self._positions().get(path_of(uri), 0)

    def _original(self, uri: str) -> Path:
        path = path_of(uri)
        return self._scratch.originals.get(path, Path(path))


_READING = re.compile(r"(?:reading file|does not exist:) (file:\S+?)\.?(?=\s|$)")


def _why_unreadable(path: Path, error: BaseException) -> BadInput:
    if not path.exists():
        return BadInput(f"{path} cannot be read: it was removed meanwhile")
    found = damage(path)
    if found is not None:
        return found
    if "ChecksumException" in text_of(error):
        return BadInput(
            f"{path} does not agree with its checksum, the file .{path.name}.crc beside it: it is damaged, "
            "or was changed since Spark wrote it; remove the .crc if it is good"
        )
    if condition_of(error) in ("PATH_NOT_FOUND", "FAILED_READ_FILE.FILE_NOT_EXIST"):
        return BadInput(f"{path}: {HIDDEN}")
    return BadInput(f"{path} cannot be read: {innermost(error)}")


def _case_matters(spark: SparkSession) -> bool:
    return spark.conf.get("spark.sql.caseSensitive", "false") == "true"


def open_trace(
    spark: SparkSession,
    paths: str | Path | Sequence[str | Path],
    form: str | None = None,
    *,
    own_columns: bool = False,
    **options: Any,
) -> Source:
    """The execution in these files and folders, checked as described in `Source.check`.

    `form` and `options` are those of `formats.registry.read_executions`. With `own_columns` a table's own
    columns can be given back (`Source.given_back`). BadInput if something cannot be read, if there is no
    event, or if there is more than one execution.
    """
    listed = [Path(path) for path in ([paths] if isinstance(paths, str | Path) else paths)]
    given = {name: value for name, value in options.items() if value not in (None, False)}
    forms = {form} if form is not None else {detect(path, given) for path in listed}
    scratch = Scratch()
    try:
        if forms == {"trace"} and not given:
            files = [file for path in listed for file in files_of(spark, path)]
            return Source(spark, Found(files, files, []), scratch)
        if len(forms) > 1:
            raise BadInput(
                f"the inputs are {' and '.join(sorted(forms))}, which are not one execution; give one "
                "format, or convert them to traces first (causet convert)"
            )
        return Source(spark, imported(listed, form, given, scratch.folder(), own_columns), scratch)
    except BaseException:
        scratch.close()
        raise

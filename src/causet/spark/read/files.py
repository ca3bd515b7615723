"""From paths to files that Spark can read: folders are listed, unusual names linked, logs of other formats
written as a trace.

Rule: no path is ignored silently, and no temporary file stays when the source is closed.
"""

from __future__ import annotations

import re
import shlex
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from causet.errors import BadInput, listed
from causet.files import check_twice_readable
from causet.formats.execution import Fault
from causet.formats.parquet import write_parquet
from causet.formats.registry import read_executions, trace_files
from causet.formats.schema import FIELDS, stated
from causet.model import Event
from causet.spark.read.inputs import write_with_inputs
from causet.spark.read.parts import path_of
from causet.spark.start.errors import from_spark, innermost

_READABLE = re.compile(r"[^_.:][^:]*\.(jsonl|json|jsonl\.gz|json\.gz|parquet)", re.DOTALL)
"""Names that Spark reads as they are. It ignores files that begin with _ or ., fails at colons, and
decompresses files that end in the name of another compression."""


@dataclass(frozen=True)
class Found:
    """Traces to be read, and what they were made of."""

    traces: list[Path]
    files: list[Path]
    faults: list[Fault]
    imported: bool = False
    unused: frozenset[str] = frozenset()
    """fields that no event has"""
    inputs: tuple[str, ...] | None = None
    """the names of a table's own columns, if they stand beside the events"""


class Scratch:
    """A temporary folder, made when it is needed, and the names by which Spark knows the files."""

    def __init__(self) -> None:
        self.originals: dict[str, Path] = {}
        """path as Spark has it → path as the user gave it; in the order given"""
        self._folder: Path | None = None

    def folder(self) -> Path:
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="causet-"))
        return self._folder

    def located(self, path: Path) -> str:
        """The name under which Spark reads just this file."""
        known = path.parent.resolve() / path.name
        if not _READABLE.fullmatch(known.name):
            ending = (
                ".jsonl.gz" if path.suffix == ".gz" else ".parquet" if path.suffix == ".parquet" else ".jsonl"
            )
            link = self.folder().resolve() / f"{len(self.originals)}{ending}"
            link.symlink_to(known)
            known = link
        self.originals.setdefault(str(known), path)
        return f"file:{_escaped(known)}"

    def close(self) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


def _escaped(path: Path) -> str:
    """A path in which Spark sees no pattern."""
    return re.sub(r"([{}\[\]*?\\])", r"\\\1", str(path))


def imported(
    paths: Sequence[Path],
    form: str | None,
    options: Mapping[str, Any],
    folder: Path,
    own_columns: bool = False,
) -> Found:
    """A log of another format, written as a trace; with `own_columns`, a table's columns stand beside it."""
    executions = [each for each in read_executions(paths, form, **options) if each.events]
    shown = ", ".join(map(str, paths[:3]))
    if not executions:
        raise BadInput(f"{shown}: there is no event in it")
    if len(executions) > 1:
        names = [execution.name for execution in executions if execution.name]
        called = f" ({listed(names)})" if names else ""
        raise BadInput(
            f"{shown}: there are {len(executions):,} executions{called}, and one is read at a time; write "
            f"each to a file with `{_converting(paths, form, options)}`, and give one of those"
        )
    (execution,) = executions
    trace = folder / "imported.parquet"
    inputs: tuple[str, ...] | None = None
    if own_columns and execution.inputs is not None:
        inputs = write_with_inputs(trace, execution.events, execution.inputs, paths)
    else:
        write_parquet(trace, execution.events)
    return Found(
        [trace],
        list(paths),
        list(execution.faults),
        imported=True,
        unused=_unused(execution.events),
        inputs=inputs,
    )


def _converting(paths: Sequence[Path], form: str | None, options: Mapping[str, Any]) -> str:
    """The command that writes each execution of these inputs to a file, as a shell takes it."""
    words = [
        "causet",
        "convert",
        *(f"./{path}" if str(path).startswith("-") else str(path) for path in paths),
    ]
    if form is not None:
        words += ["--from", form]
    for name, value in options.items():
        flag = {"domain": "--by"}.get(name, f"--{name.replace('_', '-')}")
        words += [flag] if value is True else [flag, str(value)]
    return shlex.join([*words, "-o", "FOLDER"])


def _unused(events: Sequence[Event]) -> frozenset[str]:
    """Fields in which no event states more than a reader would assume anyway."""
    return frozenset(FIELDS) - {name for event in events for name in stated(event)}


def files_of(spark: SparkSession, path: Path) -> list[Path]:
    """The traces at a path, each of which can be read more than once."""
    if not path.is_dir():
        check_twice_readable(path)
        return [path]
    if (path / "_spark_metadata").is_dir():
        return _committed(spark, path)
    try:
        found = [file for file in trace_files(path) if not file.is_dir()]
    except BadInput:
        # Spark itself calls JSON Lines .json; beside traces, such a file is something else.
        found = sorted(file for file in path.glob("[!._]*") if file.name.endswith((".json", ".json.gz")))
        if not found:
            raise
    for file in found:
        check_twice_readable(file)
    return found


def _committed(spark: SparkSession, folder: Path) -> list[Path]:
    """The files that a stream has committed to a folder: others may hold duplicate rows."""
    form = "parquet" if any(folder.glob("*.parquet")) else "text"
    try:
        uris = spark.read.format(form).load(f"file:{_escaped(folder.resolve())}").inputFiles()
    except Exception as error:
        if not from_spark(error):
            raise
        raise BadInput(f"{folder} cannot be read: {innermost(error)}") from None
    return sorted(folder / Path(path_of(uri)).name for uri in uris)

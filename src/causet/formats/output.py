"""Executions written, in every format that can be: each in a file of its own, or all in one log.

- `trace`: JSON Lines, or Parquet where the name ends so; `parquet` says it for a folder
- `shiviz`: one log with all executions
- `cloudevents`: a trace's messages, JSON Lines

Rule: what is written is whole or not there. Several files appear when all of them are complete.
"""

from __future__ import annotations

import re
import secrets
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from causet.errors import BadInput, quote
from causet.files import unwritable
from causet.formats.execution import Execution
from causet.formats.messages import write_cloudevents
from causet.formats.registry import NAME
from causet.formats.shiviz_out import write_shiviz
from causet.formats.trace import write_trace
from causet.model import Event

ENDINGS = {
    ".jsonl": "trace",
    ".jsonl.gz": "trace",
    ".parquet": "parquet",
    ".log": "shiviz",
    ".log.gz": "shiviz",
}
"""What the end of a name says about a file to write."""
FORMS_OUT = {"trace": ".jsonl", "parquet": ".parquet", "shiviz": ".log", "cloudevents": ".jsonl"}
"""What can be written, and how such a file ends in a folder."""


@dataclass(frozen=True, slots=True)
class Written:
    """A file that was written: which executions are in it, by position, and how many events or messages."""

    path: Path
    executions: tuple[int, ...]
    records: int


def write_executions(
    output: str | Path, executions: Sequence[Execution], form: str | None = None
) -> list[Written]:
    """Write the executions that have events, and say where.

    `form` is one of `FORMS_OUT`; without it, the end of the name says it. ShiViz takes all executions in one
    log. In the other formats each has a file: the output itself if it names a file and there is one
    execution; `name-1.jsonl`, `name-2.jsonl`, … if there are several; and if the output is a folder, or a
    name without an ending, files in that folder, called by their numbers and the executions' names. Where
    there are several, each event of a trace carries its execution's name in the field `execution`.
    """
    output = Path(output)
    form = form_out(output, form)
    filled = [number for number, execution in enumerate(executions) if execution.events]
    if not filled:
        raise BadInput("there is no event to write")
    folder = _is_folder(output)
    names = [executions[number].name for number in filled]
    with _Together(output if folder else output.parent, make=folder) as files:
        if form == "shiviz":
            (path,) = _file_names(output, form, names[:1])
            records = write_shiviz(files.part(path), [executions[number] for number in filled])
            return [Written(path, tuple(filled), records)]
        written = []
        for number, path in zip(filled, _file_names(output, form, names), strict=True):
            execution = executions[number]
            events = execution.events
            if len(filled) > 1 and execution.name and form != "cloudevents":
                events = [replace(event, extra={NAME: execution.name, **event.extra}) for event in events]
            written.append(Written(path, (number,), _write_one(files.part(path), events, form)))
        return written


def form_out(output: Path, form: str | None) -> str:
    """The format in which to write there; BadInput if there is none of that name, or the name says none."""
    if form is not None and form not in FORMS_OUT:
        raise BadInput(f"unknown format {quote(form)}; what can be written is {', '.join(FORMS_OUT)}")
    ending = next((ending for ending in ENDINGS if output.name.endswith(ending)), None)
    if form == "trace" or (form is None and _is_folder(output)):
        return "parquet" if ending == ".parquet" and not _is_folder(output) else "trace"
    if form is None and ending is None:
        raise BadInput(
            f"{output}: end the name in {', '.join(ENDINGS)}, or name the format with --to: "
            f"{', '.join(FORMS_OUT)}"
        )
    return form or ENDINGS[ending or ""]


def _is_folder(output: Path) -> bool:
    return output.is_dir() or not output.suffix


def _write_one(path: Path, events: Sequence[Event], form: str) -> int:
    if form == "parquet":
        from causet.formats.parquet import write_parquet  # pyarrow takes long to import

        return write_parquet(path, events)
    return write_cloudevents(path, events) if form == "cloudevents" else write_trace(path, events)


def _file_names(output: Path, form: str, names: Sequence[str]) -> list[Path]:
    width = len(str(len(names)))
    numbers = [f"{number:0{width}}" for number in range(1, len(names) + 1)]
    if _is_folder(output):
        if len(names) == 1:
            return [output / f"{_slug(names[0]) or NAME}{FORMS_OUT[form]}"]
        slugs = [f"-{slug}" if (slug := _slug(name)) else "" for name in names]
        return [
            output / f"{number}{slug}{FORMS_OUT[form]}" for number, slug in zip(numbers, slugs, strict=True)
        ]
    if len(names) == 1:
        return [output]
    ending = next((ending for ending in ENDINGS if output.name.endswith(ending)), output.suffix)
    return [output.with_name(f"{output.name.removesuffix(ending)}-{number}{ending}") for number in numbers]


def _slug(name: str) -> str:
    """A name as part of a file's name."""
    return re.sub(r"[^\w.-]+", "-", name).strip("-.")[:60]


class _Together:
    """Files of one folder that appear together: they are written in a folder beside and moved at the end."""

    def __init__(self, folder: Path, make: bool) -> None:
        self._folder = folder.resolve()
        self._make = make
        self._parts: list[tuple[Path, Path]] = []

    def __enter__(self) -> _Together:
        above = self._folder.parent if self._make and not self._folder.exists() else self._folder
        self._beside = above / f".{self._folder.name}.{secrets.token_hex(8)}.part"
        try:
            self._beside.mkdir()
        except (OSError, ValueError) as error:
            raise unwritable(self._folder, error) from None
        return self

    def part(self, path: Path) -> Path:
        """Where to write what will be at `path`."""
        if path.is_dir():
            raise BadInput(f"{path} is a directory; give the name of a file to write")
        if path.exists() and not path.is_file():
            raise BadInput(f"{path} is no regular file; give the name of a file to write")
        part = self._beside / path.name
        self._parts.append((part, path.resolve()))  # what a link points to is written, the link stays
        return part

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, *_: object) -> None:
        try:
            if error is None:
                if self._make:
                    self._folder.mkdir(exist_ok=True)
                for part, path in self._parts:
                    part.replace(path)
            elif isinstance(error, OSError):  # such as a full disk
                raise error
        except OSError as failed:
            raise unwritable(self._folder, failed) from None
        finally:
            shutil.rmtree(self._beside, ignore_errors=True)

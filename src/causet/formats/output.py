"""Executions written to files: each to a file of its own, or all to one log.

- `trace`: JSON Lines, or Parquet if the name ends in `.parquet`; `parquet` is for folders
- `shiviz`: one log with all executions
- `cloudevents`: a trace's messages, JSON Lines

Rule: what is written is complete or not there. Several files appear when all of them are complete.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from causet.errors import BadInput, quote
from causet.files import check_replaceable, hidden_folder, unwritable
from causet.formats.execution import Execution
from causet.formats.messages import write_cloudevents
from causet.formats.registry import NAME
from causet.formats.shiviz.write import write_shiviz
from causet.formats.trace import write_trace
from causet.model import Event

ENDINGS = {
    ".jsonl": "trace",
    ".jsonl.gz": "trace",
    ".parquet": "parquet",
    ".log": "shiviz",
    ".log.gz": "shiviz",
}
"""The format of a file to write, by the ending of its name."""
FORMS_OUT = {"trace": ".jsonl", "parquet": ".parquet", "shiviz": ".log", "cloudevents": ".jsonl"}
"""The formats that can be written, with the ending of such a file in a folder."""


@dataclass(frozen=True, slots=True)
class Written:
    """A file that was written: which executions are in it, by position, and how many events or messages."""

    path: Path
    executions: tuple[int, ...]
    records: int


def write_executions(
    output: str | Path, executions: Sequence[Execution], form: str | None = None
) -> list[Written]:
    """Write the executions that have events, and return what was written where.

    `form` is one of `FORMS_OUT`; without it, the ending of the name decides. ShiViz takes all executions in
    one log. In the other formats each has a file: the output itself if it names a file and there is one
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
    with _together(output if folder else output.parent, make=folder) as part:
        if form == "shiviz":
            (path,) = _file_names(output, form, names[:1])
            records = write_shiviz(part(path), [executions[number] for number in filled])
            return [Written(path, tuple(filled), records)]
        written = []
        for number, path in zip(filled, _file_names(output, form, names), strict=True):
            execution = executions[number]
            events = execution.events
            if len(filled) > 1 and execution.name and form != "cloudevents":
                events = [replace(event, extra={NAME: execution.name, **event.extra}) for event in events]
            written.append(Written(path, (number,), _write_one(part(path), events, form)))
        return written


def form_out(output: Path, form: str | None) -> str:
    """The format in which to write; BadInput if it is unknown, or if the name does not decide it."""
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
    if form is not None and ending is not None and not _is_folder(output):
        lines_of_json = ENDINGS[ending] == "trace" and form == "cloudevents"
        if ENDINGS[ending] != form and not lines_of_json:
            raise BadInput(
                f"{output}: --to {form} contradicts the name, which ends in {ending}; end it in "
                f"{FORMS_OUT[form]}, or leave out --to"
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


@contextmanager
def _together(folder: Path, make: bool) -> Iterator[Callable[[Path], Path]]:
    """Where to write each of several files, given its path: they appear together, when all are complete.

    With `make`, the folder appears with them.
    """
    folder = folder.resolve()
    parts: list[tuple[Path, Path]] = []
    with hidden_folder(folder, folder.parent if make and not folder.exists() else folder) as beside:

        def part(path: Path) -> Path:
            check_replaceable(path)
            parts.append((beside / path.name, path.resolve()))  # what a link points to is written
            return parts[-1][0]

        try:
            yield part
            if make:
                folder.mkdir(exist_ok=True)
            for written, path in parts:
                written.replace(path)
        except OSError as error:  # such as a full disk
            raise unwritable(folder, error) from None

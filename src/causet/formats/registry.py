"""Every format that can be read, by its name; and the detection of the format of a path.

- `trace`: `.jsonl`, `.jsonl.gz`, `.parquet`, or a folder of them
- `shiviz`: a log with its parser in the first line, or given
- `otlp`: OpenTelemetry spans, JSON or JSON Lines
- `cloudevents`: CloudEvents, JSON or JSON Lines
- `events`: CSV, JSON Lines or Parquet with an id column, or a folder of them
- `git`: a repository

Rule: paths that are given together are one execution, in each format that does not separate executions
itself, unless each path is to be one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from causet.errors import BadInput, Problem, quote
from causet.files import MARK, Place, check_twice_readable, files_in, read_start
from causet.formats.cloudevents import read_cloudevents
from causet.formats.execution import Execution, assemble
from causet.formats.git import read_git
from causet.formats.otlp import read_otlp
from causet.formats.shiviz.read import is_parser, read_shiviz
from causet.formats.strict import decode
from causet.formats.table import read_table
from causet.formats.trace import placed_events
from causet.model import Event

NAME = "execution"
"""The field in which each event of a trace carries its execution's name, where several were written."""
_START = 2**16


@dataclass(frozen=True, slots=True)
class _Form:
    """How a format is read, and which options it knows."""

    read: Callable[..., list[Execution]]
    options: frozenset[str]


def _one_by_one(read: Callable[..., Execution | list[Execution]]) -> Callable[..., list[Execution]]:
    def all_of(paths: Sequence[Path], **options: Any) -> list[Execution]:
        found: list[Execution] = []
        for path in paths:
            executions = read(path, **options)
            found += executions if isinstance(executions, list) else [executions]
        return found

    return all_of


def _together(read: Callable[..., Execution]) -> Callable[..., list[Execution]]:
    return lambda paths, **options: [_filled(read(paths, **options), paths)]


def read_traces(paths: Sequence[Path]) -> Execution:
    """The events of these files and folders, JSON Lines or Parquet, as one execution."""

    def placed() -> Iterator[tuple[Place, Event]]:
        for file in (file for path in paths for file in trace_files(path)):
            if file.name.endswith(".parquet"):
                from causet.formats.parquet import placed_rows  # pyarrow takes long to import

                yield from placed_rows(file)
            else:
                yield from placed_events(file)

    return assemble("", placed())


def _filled(execution: Execution, paths: Sequence[Path]) -> Execution:
    if not execution.events:
        raise BadInput(f"{', '.join(map(str, paths[:3]))}: there is no event in it")
    return execution


FORMS_IN: Mapping[str, _Form] = {
    "trace": _Form(_together(read_traces), frozenset()),
    "shiviz": _Form(_one_by_one(read_shiviz), frozenset({"parser", "delimiter"})),
    "otlp": _Form(_together(read_otlp), frozenset({"process"})),
    "cloudevents": _Form(_together(read_cloudevents), frozenset({"parent", "domain"})),
    "events": _Form(_together(read_table), frozenset({"id", "parent", "process", "time", "seq"})),
    "git": _Form(_one_by_one(read_git), frozenset({"all_refs"})),
}


# ---------------------------------------------------------------- reading


def read_executions(
    paths: str | Path | Sequence[str | Path], form: str | None = None, *, each: bool = False, **options: Any
) -> list[Execution]:
    """The executions in these files, folders or repositories, with the faults of their logs.

    `form` is one of `FORMS_IN`; without it, that of each path is detected. With `each`, every path is an
    execution of its own. Options, of which each format knows its own: `parser` and `delimiter` (shiviz);
    `process` (otlp: request, service or span); `id`, `parent`, `process`, `time` and `seq`, names of columns
    (events); `parent` and `domain`, names of attributes (cloudevents); `all_refs` (git).
    """
    listed = [Path(path) for path in ([paths] if isinstance(paths, str | Path) else paths)]
    if not listed:
        raise BadInput("nothing to read; name at least one file")
    if form is not None and form not in FORMS_IN:
        raise BadInput(f"unknown format {quote(form)}; the formats are {', '.join(FORMS_IN)}")
    given = {name: value for name, value in options.items() if value not in (None, False)}
    by_form: dict[str, list[Path]] = {}
    for path in listed:
        by_form.setdefault(form or detect(path, given), []).append(path)
    for name in given:
        if not any(name in FORMS_IN[found].options for found in by_form):
            knowing = [found for found, known in FORMS_IN.items() if name in known.options]
            whose = f"belongs to {' and '.join(knowing)}" if knowing else "is unknown"
            raise BadInput(f"--{name.replace('_', '-')} {whose}, and the input is {' and '.join(by_form)}")
    if "events" in by_form and "id" not in given:
        raise BadInput(
            f"{by_form['events'][0]}: to read a table of events, name the column of their ids (--id), and "
            "of their causes (--parent)"
        )
    executions: list[Execution] = []
    for found, its_paths in by_form.items():
        known = FORMS_IN[found]
        own = {name: value for name, value in given.items() if name in known.options}
        for together in [[path] for path in its_paths] if each else [its_paths]:
            read = known.read(together, **own)
            executions += [_named(execution, together[0]) for execution in read] if each else read
    return executions


def _named(execution: Execution, path: Path) -> Execution:
    """The execution with a name: its own, the one that its events carry, or that of the file."""
    if execution.name:
        return execution
    names = {event.extra.get(NAME) for event in execution.events}
    name = names.pop() if len(names) == 1 else None
    if not isinstance(name, str) or not name:
        return replace(execution, name=path.resolve().name.partition(".")[0])
    events = [
        replace(event, extra={key: value for key, value in event.extra.items() if key != NAME})
        for event in execution.events
    ]
    return replace(execution, name=name, events=events)


def trace_files(path: Path) -> list[Path]:
    """The traces at a path: itself, or those in a folder, by name, except names that begin with . or _."""
    endings = (".jsonl", ".jsonl.gz", ".parquet")
    return files_in(
        path, lambda name: name.endswith(endings), "trace in this folder (.jsonl, .jsonl.gz or .parquet)"
    )


def detect(path: Path, options: Mapping[str, Any] | None = None) -> str:
    """The format of a path; BadInput asks for its name if that cannot be detected."""
    options = options or {}
    if path.is_dir():
        bare = (path / "HEAD").is_file() and (path / "objects").is_dir() and (path / "refs").is_dir()
        if (path / ".git").exists() or bare:
            return "git"
        return "events" if "id" in options else "trace"
    if {"parser", "delimiter"} & options.keys():
        return "shiviz"
    if "id" in options:
        return "events"
    name = path.name.removesuffix(".gz").lower()
    if name.endswith(".parquet"):
        return "trace"
    if name.endswith((".csv", ".tsv")):
        return "events"
    check_twice_readable(path)
    start = read_start(path, _START).removeprefix(MARK).decode(errors="replace").lstrip()
    if is_parser(start.partition("\n")[0]):
        return "shiviz"
    if found := _json_form(start):
        return found
    if name.endswith(".jsonl"):
        return "trace"
    if name.endswith(".log"):
        raise BadInput(
            f"{path}: a ShiViz log needs its parser, given or in the first line; for another format, name it"
        )
    raise BadInput(f"{path}: the format cannot be detected; name it with --from: {', '.join(FORMS_IN)}")


def _json_form(start: str) -> str | None:
    """The format of a JSON file by the fields of its first object, or by words in it if that is long."""
    if not start.startswith(("{", "[")):
        return None
    try:
        value = decode(start.partition("\n")[0])
    except Problem:
        value = None
    first = value[0] if isinstance(value, list) and value else value
    names = set(first) if isinstance(first, dict) else set(re.findall(r'"(\w{1,20})"\s*:', start))
    for name, fields in {
        "otlp": {"resourceSpans"},
        "trace": {"process", "seq"},
        "cloudevents": {"specversion", "source"},
    }.items():
        if fields <= names:
            return name
    return None

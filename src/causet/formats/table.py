"""Any table of events with an id column, and for causes a parent-id column: CSV, JSON Lines, Parquet, or a
folder of them.

The user names the columns. `id` must be there. `parent` holds the id of the direct cause, or a list of them
(in CSV as JSON); an empty value means none. Without `process` each event is a process of its own, so that no
order is added. Within a process events stand by `seq` if that column is named, else by time where every event
of the process has one, and as they stand in the files where times are equal or missing. `time` is a number,
or an RFC 3339 time or a timestamp of Parquet, which become nanoseconds since 1970. Other columns are kept,
under the names that `extra_name` gives them; `text` stays the text. All files together are one execution.
"""

from __future__ import annotations

import csv
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path

from causet.errors import BadInput, Problem, quote
from causet.files import MARK, Place, files_in, numbered_lines
from causet.formats.documents import documents
from causet.formats.execution import Execution, assemble, extra_name, other_processes
from causet.formats.strict import INT64, as_record, decode, inspect, is_integer
from causet.formats.times import nanos_of
from causet.model import Event

_ENDINGS = (".csv", ".tsv", ".jsonl", ".json", ".parquet")
_INTEGER = re.compile(r"[+-]?[0-9]{1,100}", re.ASCII)
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?", re.ASCII)


def read_table(
    paths: Iterable[str | Path],
    *,
    id: str,
    parent: str | None = None,
    process: str | None = None,
    time: str | None = None,
    seq: str | None = None,
) -> Execution:
    """The rows of these files as one execution.

    Bad input: a file that is neither CSV with a header nor JSON Lines nor Parquet, a row without an id or,
    where they are named, without process or seq, an invalid time, a duplicate id or (process, seq), a
    cycle. Log faults: parents that are not there, gaps in seq.
    """
    columns = _Columns(id, parent, process, time, seq)
    rows: list[_Row] = []
    seen: set[str] = set()
    for path in (file for given in paths for file in table_files(Path(given))):
        for place, record in _records(path, time):
            seen.update(record)
            try:
                rows.append(columns.row(place, record))
            except Problem as error:
                raise BadInput(columns.unknown(path, seen) or f"{place}: {error}") from None
        if rows and (problem := columns.unknown(path, seen)):
            raise BadInput(problem)
    hint = "name the column of the processes' own order, if there is one" if seq is None and process else ""
    return replace(assemble("", _events(rows), hint=hint), inputs=[row.record for row in rows])


@dataclass(frozen=True, slots=True)
class _Row:
    place: Place
    id: str
    process: str
    seq: int | None
    parents: tuple[str, ...]
    time: int | float | None
    text: str | None
    extra: dict[str, object]
    record: dict[str, object]


@dataclass(frozen=True, slots=True)
class _Columns:
    """Which column is what."""

    id: str
    parent: str | None
    process: str | None
    time: str | None
    seq: str | None

    def unknown(self, path: str | Path, seen: set[str]) -> str | None:
        """The error if a column was named that no row has."""
        for name in (self.id, self.parent, self.process, self.time, self.seq):
            if name is not None and name not in seen:
                return f"{path}: there is no column {quote(name)}; there are {', '.join(sorted(seen))}"
        return None

    def row(self, place: Place, record: dict[str, object]) -> _Row:
        name = _name(self.id, record.get(self.id))
        found = None if self.parent is None else record.get(self.parent)
        text = record.get("text")
        taken = {self.id, self.process, self.time, self.seq, self.parent}
        kept = isinstance(text, str) and "text" not in taken
        return _Row(
            place,
            name,
            name if self.process is None else _name(self.process, record.get(self.process)),
            None if self.seq is None else _seq(self.seq, record.get(self.seq)),
            () if self.parent is None else _parents(self.parent, found),
            None if self.time is None else _time(self.time, record.get(self.time)),
            text if kept and isinstance(text, str) else None,
            {
                extra_name(key): value
                for key, value in record.items()
                if key not in taken and not (kept and key == "text") and value is not None
            },
            record,
        )


def table_files(path: Path) -> list[Path]:
    """The tables at a path: itself, or those in a folder, by name, except names that begin with . or _."""

    def is_table(name: str) -> bool:
        return name.lower().removesuffix(".gz").endswith(_ENDINGS)

    return files_in(path, is_table, f"table in this folder ({', '.join(_ENDINGS)})")


def _records(path: Path, time: str | None) -> Iterator[tuple[Place, dict[str, object]]]:
    name = path.name.removesuffix(".gz").lower()
    if path.name.lower().endswith(".parquet"):
        from causet.formats.parquet import placed_records  # pyarrow takes long to import

        yield from placed_records(path, time)
        return
    if name.endswith((".csv", ".tsv")):
        yield from _csv_records(path, "\t" if name.endswith(".tsv") else ",")
        return
    for place, document in documents(path):
        try:
            yield place, as_record(document, "each row")
        except Problem as error:
            raise BadInput(f"{place}: {error}") from None


def _csv_records(path: Path, delimiter: str) -> Iterator[tuple[Place, dict[str, object]]]:
    """The rows of a CSV file; a cell that is empty is None."""
    number = 0

    def lines() -> Iterator[str]:
        nonlocal number
        for number, line in numbered_lines(path):
            try:
                yield (line.removeprefix(MARK) if number == 1 else line).decode()
            except UnicodeDecodeError as error:
                raise BadInput(
                    f"{path}, line {number}: byte {error.start + 1} of the line is not UTF-8"
                ) from None

    rows = csv.reader(lines(), delimiter=delimiter, strict=True)
    header: list[str] | None = None
    try:
        for row in rows:
            if not any(row):
                continue
            if header is None:
                header = row
                if len(set(header)) < len(header):
                    raise BadInput(f"{path}, line {number}: a column appears twice in the header")
                continue
            if len(row) > len(header):
                raise BadInput(
                    f"{path}, line {number}: the row has {len(row)} cells, and the header only {len(header)}"
                )
            yield (
                Place(str(path), number),
                {name: cell or None for name, cell in zip_longest(header, row)},
            )
    except csv.Error as error:
        raise BadInput(f"{path}, line {number}: this is not CSV: {error}") from None
    if header is None:
        raise BadInput(f"{path} is empty")


def _name(column: str, value: object) -> str:
    if is_integer(value):
        return str(value)
    if not isinstance(value, str) or not value:
        raise Problem(f"field {quote(column)} must be a string that is not empty, not {quote(value)}")
    return value


def _parents(column: str, value: object) -> tuple[str, ...]:
    if value is None or value == "":
        return ()
    if isinstance(value, str) and value.startswith("["):
        try:
            value = decode(value)
        except Problem:
            return (str(value),)
        inspect(column, value)
    return tuple(_name(column, each) for each in (value if isinstance(value, list) else [value]))


def _seq(column: str, value: object) -> int:
    if isinstance(value, str) and _INTEGER.fullmatch(value):
        value = int(value)
    if not is_integer(value) or value not in INT64 or value < 1:
        raise Problem(f"field {quote(column)} must be an integer from 1, not {quote(value)}")
    return value


def _time(column: str, value: object) -> int | float | None:
    if value is None or value == "":
        return None
    if isinstance(value, str):
        if _INTEGER.fullmatch(value):
            value = int(value)
        elif len(value) <= 100 and _NUMBER.fullmatch(value):
            value = float(value)
        else:
            try:
                return nanos_of(value)
            except Problem as error:
                raise Problem(f"field {quote(column)}: {error}") from None
    if isinstance(value, float) and math.isfinite(value):
        return value
    if not is_integer(value) or value not in INT64:
        raise Problem(f"field {quote(column)} must be a time, not {quote(value)}")
    return value


def _events(rows: list[_Row]) -> Iterator[tuple[Place, Event]]:
    seqs = _seqs(rows)
    where = {row.id: (row.process, seq) for row, seq in zip(rows, seqs, strict=True)}
    for row, seq in zip(rows, seqs, strict=True):
        yield (
            row.place,
            Event(
                row.process,
                seq,
                id=row.id,
                parents=other_processes(row.process, seq, row.parents, where),
                time=row.time,
                text=row.text,
                extra=row.extra,
            ),
        )


def _seqs(rows: list[_Row]) -> list[int]:
    untimed = {row.process for row in rows if row.time is None}
    counted: Counter[str] = Counter()
    seqs = [0] * len(rows)

    def time_of(number: int) -> int | float:
        time = rows[number].time
        return 0 if time is None or rows[number].process in untimed else time

    for number in sorted(range(len(rows)), key=time_of):
        row = rows[number]
        counted[row.process] += 1
        seqs[number] = counted[row.process] if row.seq is None else row.seq
    return seqs

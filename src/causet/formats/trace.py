"""The trace format, version 1: JSON Lines, one event per line, `.jsonl` or `.jsonl.gz`.

What is written is the same, byte for byte, whenever the events are the same. What is read is untrusted: it
becomes events or one `BadInput` that names file, line and field, and what it may cost is bounded.

Only what cannot be understood is bad input. A gap in seq, an unknown parent or a delivery without a send are
faults of a log that can be read all the same; the checkers count them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from causet.errors import BadInput, Problem, quote
from causet.files import MARK, Place, new_file, numbered_lines
from causet.files import MAX_LINE as MAX_LINE
from causet.formats.schema import FIELDS, SCHEMA, required, stated
from causet.formats.sound import distinct
from causet.formats.strict import decode_record, inspect_all
from causet.model import Event

# ---------------------------------------------------------------- writing


def to_json(event: Event) -> str:
    """One event as one line, without its end. What a reader would assume anyway is left out.

    >>> to_json(Event("p1", 3, "send", message="p1:1", to=("p2", "p3")))
    '{"process":"p1","seq":3,"kind":"send","message":"p1:1","to":["p2","p3"]}'
    """
    found = stated(event)
    for name, value in event.extra.items():
        if name in FIELDS:
            raise BadInput(f"event {quote(event.id)} has an extra field {quote(name)}: that name is reserved")
        found[name] = value
    try:
        return json.dumps(found, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise BadInput(f"event {quote(event.id)} cannot be written as JSON: {error}") from None


def write_trace(path: str | Path, events: Iterable[Event]) -> int:
    """Write the events as they come, and return how many there were; see `trace_writer`."""
    count = 0
    with trace_writer(path) as write:
        for event in events:
            write(event)
            count += 1
    return count


@contextmanager
def trace_writer(path: str | Path) -> Iterator[Callable[[Event], None]]:
    """A function that writes one event after the other.

    The file appears under its name only when it is complete. A name that ends in `.gz` is compressed.
    """
    with new_file(Path(path)) as stream:

        def write(event: Event) -> None:
            try:
                line = to_json(event).encode()
            except UnicodeEncodeError:
                raise BadInput(f"event {quote(event.id)} contains half a surrogate pair") from None
            stream.write(line + b"\n")

        yield write


# ---------------------------------------------------------------- reading


def read_trace(paths: str | Path | Iterable[str | Path]) -> list[Event]:
    """The events of one execution, from one file or several, in the order of the lines.

    Null means the same as leaving the field out. Blank lines are skipped.
    """
    listed = [paths] if isinstance(paths, str | Path) else paths
    return [event for _, event in distinct(each for path in listed for each in placed_events(Path(path)))]


def placed_events(path: Path) -> Iterator[tuple[Place, Event]]:
    """Each event of one file with its place; duplicates are not looked for."""
    for place, line in filled_lines(path):
        try:
            event = event_of(decode_record(line))
        except Problem as error:
            raise BadInput(f"{place}: {error}") from None
        yield place, event


def filled_lines(path: Path) -> Iterator[tuple[Place, bytes]]:
    """The lines that are not blank, with their places."""
    name = str(path)
    for number, line in numbered_lines(path):
        if number == 1 and line.startswith(MARK):
            raise BadInput(f"{path}, line 1: the file begins with a byte order mark; save it without one")
        if line.strip(b" \t\r\n"):
            yield Place(name, number), line


def event_of(record: dict[str, object]) -> Event:
    """The event that a record of the format describes; Problem names the field that is wrong.

    The record is taken over: what the format does not know is left in it and becomes the event's `extra`.
    """
    inspect_all(record)
    known: dict[str, Any] = {}
    for name, field in SCHEMA.items():
        value = record.pop(name, None)
        if value is None:
            continue
        if not field.fits(value):
            raise Problem(f"field {quote(name)} must be {field.expected}, not {quote(value)}")
        known[name] = tuple(value) if isinstance(value, list) else value
    kind = known.get("kind", "local")
    for name in required(kind):
        if name not in known:
            raise Problem(f"field {quote(name)} is missing; every {kind} event must have it")
    return Event(**known, extra=record)

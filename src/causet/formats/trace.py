"""The trace format, version 1: JSON Lines, one event per line, `.jsonl` or `.jsonl.gz`.

What is written is the same, byte for byte, whenever the events are the same. What is read is untrusted: it
becomes events or one `BadInput` that names file, line and field, and what it may cost is bounded.

Only what cannot be understood is bad input. A gap in seq, an unknown parent or a delivery without a send are
faults of a log that can be read all the same; the checkers count them.
"""

from __future__ import annotations

import gzip
import json
import math
import secrets
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, pairwise
from pathlib import Path
from typing import IO, Any

from causet.model import KINDS, BadInput, Event

MAX_LINE = 16 * 2**20
"""Bytes of one line, its end not counted."""
MAX_DEPTH = 64
"""Lists and objects within each other in one line."""
INT64 = range(-(2**63), 2**63)

FIELDS = (
    "process",
    "seq",
    "kind",
    "id",
    "message",
    "to",
    "group",
    "parents",
    "time",
    "text",
    "control",
    "stamp_entries",
    "stamp_bytes",
)
"""The format's own fields, in the order in which they are written."""

# ---------------------------------------------------------------- writing


def to_json(event: Event) -> str:
    """One event as one line, without its end. What a reader would assume anyway is left out.

    >>> to_json(Event("p1", 3, "send", message="p1:1", to=("p2", "p3")))
    '{"process":"p1","seq":3,"kind":"send","message":"p1:1","to":["p2","p3"]}'
    """
    found: dict[str, object] = {"process": event.process, "seq": event.seq}
    if event.kind != "local":
        found["kind"] = event.kind
    if event.id != f"{event.process}#{event.seq}":
        found["id"] = event.id
    if event.message is not None:
        found["message"] = event.message
    if event.to is not None:
        found["to"] = event.to
    if event.group is not None:
        found["group"] = event.group
    if event.parents:
        found["parents"] = event.parents
    if event.time is not None:
        found["time"] = event.time
    if event.text is not None:
        found["text"] = event.text
    if event.control:
        found["control"] = True
    if event.stamp_entries is not None:
        found["stamp_entries"] = event.stamp_entries
    if event.stamp_bytes is not None:
        found["stamp_bytes"] = event.stamp_bytes
    for name, value in event.extra.items():
        if name in FIELDS:
            raise BadInput(
                f"event {event.id!r} has an extra field {name!r}, a name that the format itself uses"
            )
        found[name] = value
    try:
        return json.dumps(found, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise BadInput(f"event {event.id!r} cannot be written as JSON: {error}") from None


def write_trace(path: str | Path, events: Iterable[Event]) -> int:
    """Write the events as they come, and say how many there were; see `trace_writer`."""
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
    with _new_file(Path(path)) as stream:

        def write(event: Event) -> None:
            try:
                line = to_json(event).encode()
            except UnicodeEncodeError:
                raise BadInput(f"event {event.id!r} holds half a surrogate pair, which is no text") from None
            stream.write(line + b"\n")

        yield write


@contextmanager
def _new_file(path: Path) -> Iterator[IO[bytes] | gzip.GzipFile]:
    """A file that is written beside `path` and takes its place if all goes well."""
    if path.is_dir():
        raise BadInput(f"{path} is a directory; give the name of a file to write")
    path = path.resolve()  # what a link points to is written, the link stays
    if path.exists() and not path.is_file():
        raise BadInput(f"{path} is no regular file; give the name of a file to write")
    beside = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
    try:
        raw = beside.open("xb")
    except (OSError, ValueError) as error:
        raise BadInput(f"{path} cannot be written: {_reason(error)}") from None
    try:
        with raw:
            if _compressed(path):
                # Neither name nor time goes into the header: the same events give the same bytes.
                with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as packed:
                    yield packed
            else:
                yield raw
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


# ---------------------------------------------------------------- reading


class _LineError(Exception):
    """Why a line is refused; where it stands is added by whoever knows."""


def read_trace(paths: str | Path | Iterable[str | Path]) -> list[Event]:
    """The events of one execution, from one file or several, in the order in which they stand there.

    Null means the same as leaving the field out. Lines with nothing but white space are passed over.
    """
    events: list[Event] = []
    seen: dict[tuple[object, ...], str] = {}

    def once(field: str, what: str, *key: object) -> None:
        first = seen.setdefault((field, *key), place)
        if first is not place:  # not `!=`: a file that is given twice repeats its places
            shown = ", ".join(map(_show, key))
            raise _LineError(f"field {_show(field)}: {what} {shown} stands already in {first}")

    for path in [paths] if isinstance(paths, str | Path) else paths:
        for number, line in _lines(Path(path)):
            place = f"{path}, line {number}"
            try:
                event = _event(line)
                once("seq", "an event with process and seq", event.process, event.seq)
                once("id", "an event with the id", event.id)
                if event.kind == "send":
                    once("message", "a send of the message", event.message)
            except _LineError as error:
                raise BadInput(f"{place}: {error}") from None
            events.append(event)
    return events


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines that are not blank, numbered from 1."""
    number = 0
    try:
        with gzip.open(path) if _compressed(path) else path.open("rb") as stream:
            while line := stream.readline(MAX_LINE + 2):
                number += 1
                if len(line.rstrip(b"\r\n")) > MAX_LINE:
                    raise BadInput(f"{path}, line {number}: the line is longer than {MAX_LINE // 2**20} MiB")
                if number == 1 and line.startswith(b"\xef\xbb\xbf"):
                    raise BadInput(f"{path}, line 1: the file begins with a byte order mark; save it without")
                if line.strip(b" \t\r\n"):
                    yield number, line
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        what = "the compressed file is cut off" if isinstance(error, EOFError) else "this is no valid gzip"
        raise BadInput(f"{path}, line {number + 1}: {what}") from None
    except (OSError, ValueError) as error:
        raise BadInput(f"{path} cannot be read: {_reason(error)}") from None


def _event(line: bytes) -> Event:
    record = _record(line)
    for name, value in record.items():
        _inspect(name, value)
    known: dict[str, Any] = {}
    for name, (fits, expected) in _EXPECTED.items():
        value = record.pop(name, None)
        if value is None:
            continue
        if not fits(value):
            raise _LineError(f"field {_show(name)} must be {expected}, not {_show(value)}")
        known[name] = tuple(value) if isinstance(value, list) else value
    kind = known.get("kind", "local")
    required = ["process", "seq"]
    if kind != "local":
        required.append("message")
    if kind == "send":
        required.append("to")
    for name in required:
        if name not in known:
            raise _LineError(f"field {_show(name)} is missing; every {kind} event must have it")
    return Event(**known, extra=record)


class _Unreadable:
    """Stands in a decoded line for a value that no trace may hold, until its field is known."""

    def __init__(self, problem: str) -> None:
        self.problem = problem


def _integer(digits: str) -> int | _Unreadable:
    # The length comes first: turning a million digits into a number takes long.
    if len(digits) > 20 or int(digits) not in INT64:
        return _Unreadable(f"the integer {digits[:24]}{'…' if digits[24:] else ''} does not fit 64 bits")
    return int(digits)


def _float(digits: str) -> float | _Unreadable:
    value = float(digits)
    return value if math.isfinite(value) else _Unreadable(f"the number {digits[:24]} does not fit a float64")


def _constant(name: str) -> _Unreadable:
    return _Unreadable(f"{name} is no JSON number")


def _object(pairs: list[tuple[str, object]]) -> dict[str, object] | _Unreadable:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    names = [name for name, _ in pairs]
    repeated = next(name for name in names if names.count(name) > 1)
    return _Unreadable(f"{_show(repeated)} stands twice in one object")


_DECODER = json.JSONDecoder(
    parse_int=_integer, parse_float=_float, parse_constant=_constant, object_pairs_hook=_object
)


def _record(line: bytes) -> dict[str, object]:
    try:
        record = _DECODER.decode(line.rstrip(b"\r\n").decode())
    except UnicodeDecodeError as error:
        raise _LineError(f"byte {error.start + 1} of the line is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise _LineError(f"this is no JSON: {error.msg} at column {error.colno}") from None
    except RecursionError:
        raise _LineError(_TOO_DEEP) from None
    if isinstance(record, _Unreadable):
        raise _LineError(record.problem)
    if not isinstance(record, dict):
        found = "a list" if isinstance(record, list) else _show(record)
        raise _LineError(f"the line must be an object with the fields of one event, not {found}")
    return record


_TOO_DEEP = f"lists and objects stand more than {MAX_DEPTH} deep within each other"


def _inspect(name: str, value: object) -> None:
    """Refuse what is no good in any field, known or not, however deep inside."""
    todo: list[tuple[object, int]] = [(name, 2), (value, 2)]  # the event itself is the first level
    while todo:
        item, depth = todo.pop()
        if isinstance(item, str):
            if not item.isascii() and not _encodes(item):
                raise _LineError(f"field {_show(name)}: half a surrogate pair is no text")
        elif isinstance(item, _Unreadable):
            raise _LineError(f"field {_show(name)}: {item.problem}")
        elif isinstance(item, list | dict):
            if depth > MAX_DEPTH:
                raise _LineError(f"field {_show(name)}: {_TOO_DEEP}")
            inner = chain(item, item.values()) if isinstance(item, dict) else item
            todo.extend((each, depth + 1) for each in inner)


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)  # to Python, true is also the integer 1


def _is_count(value: Any) -> bool:
    return _is_integer(value) and value >= 0


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


_EXPECTED: dict[str, tuple[Callable[[Any], bool], str]] = {
    "process": (_is_text, "a string"),
    "seq": (lambda value: _is_integer(value) and value >= 1, "an integer from 1"),
    "kind": (lambda value: value in KINDS, f"one of {', '.join(KINDS)}"),
    "id": (lambda value: _is_text(value) and value != "", "a string that is not empty"),
    "message": (_is_text, "a string"),
    "to": (_is_texts, "a list of strings"),
    "group": (_is_text, "a string"),
    "parents": (_is_texts, "a list of strings"),
    "time": (lambda value: _is_integer(value) or isinstance(value, float), "a number"),
    "text": (_is_text, "a string"),
    "control": (lambda value: isinstance(value, bool), "true or false"),
    "stamp_entries": (_is_count, "an integer from 0"),
    "stamp_bytes": (_is_count, "an integer from 0"),
}


def _show(value: object) -> str:
    """A value as it stands in the file, on one line and not too long."""
    shown = json.dumps(value, ensure_ascii=False)
    shown = shown.encode("utf-8", "backslashreplace").decode()
    return shown if len(shown) <= 60 else shown[:59] + "…"


def _compressed(path: Path) -> bool:
    return path.suffix == ".gz"


def _reason(error: Exception) -> str:
    return (isinstance(error, OSError) and error.strerror) or str(error)


# ---------------------------------------------------------------- cycles


def check_acyclic(events: Sequence[Event]) -> None:
    """BadInput, showing a cycle, if some event happened before itself.

    Happened-before is process order, send to receive, send to deliver, and parents. Parents and messages
    that are not in the trace are passed over.
    """
    causes = _direct_causes(events)
    effects: list[list[int]] = [[] for _ in events]
    for effect, its_causes in enumerate(causes):
        for cause in its_causes:
            effects[cause].append(effect)
    # Kahn: take away what has no cause left, until nothing more goes.
    waiting_for = [len(its_causes) for its_causes in causes]
    free = [event for event, count in enumerate(waiting_for) if not count]
    while free:
        for effect in effects[free.pop()]:
            waiting_for[effect] -= 1
            if not waiting_for[effect]:
                free.append(effect)
    left = {event for event, count in enumerate(waiting_for) if count}
    if left:
        ids = [events[event].id for event in _cycle(events, causes, effects, left)]
        if len(ids) > 12:
            ids[6:-5] = [f"… {len(ids) - 11} more …"]
        raise BadInput(f"the trace has a cycle, in which an event happened before itself: {' → '.join(ids)}")


def _direct_causes(events: Sequence[Event]) -> list[list[int]]:
    by_id = {event.id: number for number, event in enumerate(events)}
    sends = {event.message: number for number, event in enumerate(events) if event.kind == "send"}
    causes: list[list[int]] = [[] for _ in events]
    in_process_order = sorted(range(len(events)), key=lambda number: _position(events[number]))
    for earlier, later in pairwise(in_process_order):
        if events[earlier].process == events[later].process:
            causes[later].append(earlier)
    for number, event in enumerate(events):
        causes[number] += [by_id[parent] for parent in event.parents if parent in by_id]
        if event.kind in ("receive", "deliver") and event.message in sends:
            causes[number].append(sends[event.message])
    return causes


def _cycle(
    events: Sequence[Event], causes: list[list[int]], effects: list[list[int]], left: set[int]
) -> list[int]:
    """A cycle among `left`, each of which has a cause there: a shortest one through one of its events, which
    begins and ends it."""

    def smallest(numbers: Iterable[int]) -> int:
        return min(numbers, key=lambda number: _position(events[number]))

    # Whoever goes from effect to cause and never gets out comes to an event for the second time.
    start = smallest(left)
    visited: set[int] = set()
    while start not in visited:
        visited.add(start)
        start = smallest(cause for cause in causes[start] if cause in left)
    came_from: dict[int, int] = {}
    todo = deque([start])
    while start not in came_from:
        cause = todo.popleft()
        for effect in effects[cause]:
            if effect in left and effect not in came_from:
                came_from[effect] = cause
                todo.append(effect)
    cycle = [start, came_from[start]]
    while cycle[-1] != start:
        cycle.append(came_from[cycle[-1]])
    return cycle[::-1]


def _position(event: Event) -> tuple[str, int]:
    return event.process, event.seq

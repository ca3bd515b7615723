"""The trace format, version 1: JSON Lines, one event per line, `.jsonl` or `.jsonl.gz`.

What is written is the same, byte for byte, whenever the events are the same. What is read is untrusted: it
becomes events or one `BadInput` that names file, line and field, and what it may cost is bounded.

Only what cannot be understood is bad input. A gap in seq, an unknown parent or a delivery without a send are
faults of a log that can be read all the same; the checkers count them.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

from causet.errors import BadInput, Problem, printable, quote
from causet.files import MARK, Place, new_file, numbered_lines
from causet.files import MAX_LINE as MAX_LINE
from causet.formats.strict import decode_record, inspect_all, is_integer
from causet.model import KINDS, Event

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
            raise BadInput(f"event {quote(event.id)} has an extra field {quote(name)}: that name is reserved")
        found[name] = value
    try:
        return json.dumps(found, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise BadInput(f"event {quote(event.id)} cannot be written as JSON: {error}") from None


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
    with new_file(Path(path)) as stream:

        def write(event: Event) -> None:
            try:
                line = to_json(event).encode()
            except UnicodeEncodeError:
                raise BadInput(f"event {quote(event.id)} contains half a surrogate pair") from None
            stream.write(line + b"\n")

        yield write


# ---------------------------------------------------------------- reading


class Once:
    """What may stand only once in an execution: a (process, seq), an id, the send of a message."""

    def __init__(self) -> None:
        self._seen: dict[tuple[object, ...], Place] = {}

    def check(self, event: Event, place: Place) -> None:
        """Problem if something of this event was already seen, with the place where."""
        self._only(place, "seq", "an event with process and seq", event.process, event.seq)
        self._only(place, "id", "an event with the id", event.id)
        if event.kind == "send":
            self._only(place, "message", "a send of the message", event.message)

    def _only(self, place: Place, field: str, what: str, *key: object) -> None:
        first = self._seen.setdefault((field, *key), place)
        if first is not place:  # not `!=`: a file that is given twice repeats its places
            shown = ", ".join(map(quote, key))
            raise Problem(f"field {quote(field)}: {what} {shown} stands already in {first}")


def read_trace(paths: str | Path | Iterable[str | Path]) -> list[Event]:
    """The events of one execution, from one file or several, in the order in which they stand there.

    Null means the same as leaving the field out. Lines with nothing but white space are passed over.
    """
    events: list[Event] = []
    once = Once()
    for path in [paths] if isinstance(paths, str | Path) else paths:
        for place, event in placed_events(Path(path)):
            try:
                once.check(event, place)
            except Problem as error:
                raise BadInput(f"{place}: {error}") from None
            events.append(event)
    return events


def placed_events(path: Path) -> Iterator[tuple[Place, Event]]:
    """Each event of one file with its place; whether something stands there twice is not looked at."""
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
            raise BadInput(f"{path}, line 1: the file begins with a byte order mark; save it without")
        if line.strip(b" \t\r\n"):
            yield Place(name, number), line


def event_of(record: dict[str, object]) -> Event:
    """The event that a record of the format describes; Problem names the field that is wrong.

    The record is taken over: what the format does not know is left in it and becomes the event's `extra`.
    """
    inspect_all(record)
    known: dict[str, Any] = {}
    for name, (fits, expected) in _EXPECTED.items():
        value = record.pop(name, None)
        if value is None:
            continue
        if not fits(value):
            raise Problem(f"field {quote(name)} must be {expected}, not {quote(value)}")
        known[name] = tuple(value) if isinstance(value, list) else value
    kind = known.get("kind", "local")
    required = ["process", "seq"]
    if kind != "local":
        required.append("message")
    if kind == "send":
        required.append("to")
    for name in required:
        if name not in known:
            raise Problem(f"field {quote(name)} is missing; every {kind} event must have it")
    return Event(**known, extra=record)


def _is_count(value: Any) -> bool:
    return is_integer(value) and value >= 0


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


_EXPECTED: dict[str, tuple[Callable[[Any], bool], str]] = {
    "process": (_is_text, "a string"),
    "seq": (lambda value: is_integer(value) and value >= 1, "an integer from 1"),
    "kind": (lambda value: value in KINDS, f"one of {', '.join(KINDS)}"),
    "id": (lambda value: _is_text(value) and value != "", "a string that is not empty"),
    "message": (_is_text, "a string"),
    "to": (_is_texts, "a list of strings"),
    "group": (_is_text, "a string"),
    "parents": (_is_texts, "a list of strings"),
    "time": (lambda value: is_integer(value) or isinstance(value, float), "a number"),
    "text": (_is_text, "a string"),
    "control": (lambda value: isinstance(value, bool), "true or false"),
    "stamp_entries": (_is_count, "an integer from 0"),
    "stamp_bytes": (_is_count, "an integer from 0"),
}


# ---------------------------------------------------------------- cycles


def check_acyclic(events: Sequence[Event]) -> None:
    """BadInput, showing a cycle, if some event happened before itself.

    Happened-before is process order, send to receive, send to deliver, and parents. Parents and messages
    that are not in the trace are passed over.
    """
    causes = direct_causes(events)
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
        ids = [printable(events[event].id) for event in _cycle(events, causes, effects, left)]
        if len(ids) > 12:
            ids[6:-5] = [f"… {len(ids) - 11} more …"]
        raise BadInput(f"the trace has a cycle, in which an event happened before itself: {' → '.join(ids)}")


def direct_causes(events: Sequence[Event]) -> list[list[int]]:
    """For each event the positions of its direct predecessors, as far as they are in the trace."""
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

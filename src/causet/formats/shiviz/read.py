"""Reading ShiViz logs: a parser expression finds the entries, and their vector clocks give the causes.

The parser has the named groups `host`, `clock` and `event`; any other group is kept as a field of the event,
under the name that `extra_name` gives it. A clock is a JSON object, or the text of a string that holds one,
with its quotes escaped, as TLA+ prints it. An empty group is a missing field. A group
`timestamp` that holds an integer is the event's time. A delimiter, if there is one, splits the text into
executions, and its group `trace` names them. A file may carry both: the parser is its first line, the
delimiter or nothing its second.

Line ends are \\n, \\r\\n or \\r, and become \\n before anything is matched, as in the browser's text area
from which ShiViz reads.

Rule: happened-before of the events, where both are in the log, is exactly the order of their clocks. Events
are called `host:value`, with the host's own clock entry, which is also their seq.

A host that restarts and counts from 1 again is bad input, and no option splits it in two: a clock keeps the
largest value of each host, so a host that knew 10 of the first run and learns 3 from the second still has 10.
That it was caused by the second run is not in the log, and nothing can bring it back.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from causet.errors import BadInput, Problem, quote
from causet.files import Place, read_whole, text_of
from causet.formats.execution import BACKWARDS, FORGETS, UNMATCHED, Execution, FaultLog, assemble, extra_name
from causet.formats.schema import FIELDS
from causet.formats.shiviz.clocks import Causes, Clock, Point, direct_causes
from causet.formats.shiviz.jsregex import Expression, Match, expression_of, find_all
from causet.formats.strict import INT64, decode, decode_record, inspect_all, is_integer
from causet.formats.trace import event_of
from causet.model import Event

MAX_BYTES = 64 * 2**20
"""Bytes of a log."""
MAX_LINE = 2**20
"""Characters of one line; some expressions take time that grows with its square."""
MAX_EXECUTIONS = 10_000

GROUPS = ("host", "clock", "event")
REST = "causet"
"""The group in which files of causet carry, as JSON, what the other groups cannot hold."""

_WHOLE = re.compile(r"0|-?[1-9][0-9]*", re.ASCII)


def read_shiviz(
    path: str | Path, *, parser: str | None = None, delimiter: str | None = None
) -> list[Execution]:
    """The executions of a log, in its order.

    Without a parser, the file must begin with one. Bad input: an invalid expression, a parser that
    matches nothing, a clock that is not an object of counts or lacks its own host, a duplicate clock value,
    a cycle. Log faults: lines that no match touches, values of a host that are not in the log, clocks that
    contradict each other.
    """
    path = Path(path)
    log = _Log(path, _text(path))
    head = log.head()
    if head is not None:  # what is given overrides the file
        parser = parser or head[0]
        delimiter = head[1] if delimiter is None else delimiter
    if parser is None:
        raise BadInput(
            f"{path}: a ShiViz log needs its parser: give one, with the groups host, clock and event, or "
            "write it in the first line of the file and the delimiter, or nothing, in the second"
        )
    entries = expression_of(parser)
    for name in GROUPS:
        if name not in entries.names:
            raise BadInput(f"the parser {quote(parser)} has no group {name}: write (?<{name}>…)")
    begin = log.line_start(3) if head is not None else 0
    pieces = _pieces(log, begin, expression_of(delimiter, "the delimiter") if delimiter else None)
    found = find_all(entries, log.text, [(piece.start, piece.end) for piece in pieces])
    if not any(found):
        raise BadInput(f"{path}: the parser {quote(parser)} matches nothing")
    return [_execution(log, piece, matches) for piece, matches in zip(pieces, found, strict=True)]


def is_parser(line: str) -> bool:
    """Whether a line looks like a parser expression."""
    return all(f"(?<{name}>" in line for name in GROUPS)


class _Log:
    """The text of a log, and the line of each position in it."""

    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        self.text = text
        self._starts = [0, *(found.end() for found in re.finditer("\n", text))]
        ends = [*(start - 1 for start in self._starts[1:]), len(text)]
        for number, (start, end) in enumerate(zip(self._starts, ends, strict=True), start=1):
            if end - start > MAX_LINE:
                raise BadInput(f"{path}, line {number}: the line is longer than {MAX_LINE:,} characters")

    def head(self) -> tuple[str, str] | None:
        """The expressions with which the file begins, if it does."""
        parser, delimiter = (*self.text.split("\n", 2), "")[:2]
        if not is_parser(parser):
            return None
        return parser, delimiter if delimiter.strip() else ""

    def line_start(self, number: int) -> int:
        return self._starts[number - 1] if number <= len(self._starts) else len(self.text)

    def place(self, position: int) -> Place:
        return Place(str(self.path), bisect_right(self._starts, position))

    def lines(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Start and end of each line in a part of the text, in so far as it is there."""
        while start < end:
            stop = self.text.find("\n", start, end)
            stop = end if stop < 0 else stop
            yield start, stop
            start = stop + 1


@dataclass(frozen=True, slots=True)
class _Piece:
    """The text of one execution."""

    name: str
    start: int
    end: int


def _text(path: Path) -> str:
    return text_of(path, read_whole(path, MAX_BYTES)).replace("\r\n", "\n").replace("\r", "\n")


def _pieces(log: _Log, begin: int, delimiter: Expression | None) -> list[_Piece]:
    """The texts of the executions, without empty ones."""
    cuts = find_all(delimiter, log.text, [(begin, len(log.text))], "the delimiter")[0] if delimiter else []
    pieces = []
    name, start = "", begin
    for cut in [*cuts, Match(len(log.text), len(log.text), {})]:
        if log.text[start : cut.start].strip():
            pieces.append(_Piece(name, start, cut.start))
        first, last = cut.groups.get("trace", (0, 0))
        name, start = log.text[first:last], cut.end
    if not pieces:
        raise BadInput(f"{log.path}: there is no log in this file")
    if len(pieces) > MAX_EXECUTIONS:
        raise BadInput(f"{log.path}: the delimiter finds more than {MAX_EXECUTIONS:,} executions")
    return pieces


@dataclass(frozen=True, slots=True)
class _Entry:
    """One match: where it is, and what the groups hold."""

    place: Place
    host: str
    clock: Clock
    event: str
    fields: dict[str, str]
    rest: dict[str, Any]

    @property
    def point(self) -> Point:
        return self.host, self.clock[self.host]


def _execution(log: _Log, piece: _Piece, matches: Sequence[Match]) -> Execution:
    faults = FaultLog()
    for start in _untouched(log, piece, matches):
        faults.add(UNMATCHED, log.place(start), quote(log.text[start : start + 80].partition("\n")[0]))
    entries: dict[Point, _Entry] = {}
    for entry in _by_process([_entry(log, match) for match in matches]):
        first = entries.setdefault(entry.point, entry)
        if first is not entry:
            raise BadInput(
                f'{entry.place}: field "clock": host {quote(entry.host)} uses its clock value '
                f"{entry.point[1]} again, already used in {first.place}; the host seems to have restarted; "
                "put a delimiter between its runs, or give the host of each run a name of its own"
            )
    causes = direct_causes({point: entry.clock for point, entry in entries.items()})
    for point, entry in entries.items():
        if (forgotten := causes[point].forgets) is not None:
            cause, host, value = forgotten
            faults.add(
                BACKWARDS if cause[0] == entry.host else FORGETS,
                entry.place,
                f"{_id(point)} comes after {_id(cause)}, but does not know {_id((host, value))} as that does",
            )
    return assemble(piece.name, _events(entries, causes), faults)


def _untouched(log: _Log, piece: _Piece, matches: Sequence[Match]) -> Iterator[int]:
    """The starts of the lines that are not blank and that no match touches."""
    number = 0
    for start, end in log.lines(piece.start, piece.end):
        while number < len(matches) and matches[number].end <= start:
            number += 1
        touched = number < len(matches) and matches[number].start < end
        if not touched and log.text[start:end].strip():
            yield start


def _entry(log: _Log, match: Match) -> _Entry:
    found = {name: log.text[start:end] for name, (start, end) in match.groups.items()}
    # The line of the clock is the one to look at: an entry may be several lines long.
    place = log.place(match.groups.get("clock", (match.start, 0))[0])
    try:
        for name in ("host", "clock"):
            if name not in found:
                raise Problem(f"field {quote(name)} is missing")
        clock = _clock(found["clock"])
        host = found["host"]
        if clock.get(host, 0) < 1:
            raise Problem(f'field "clock" has no entry for its own host {quote(host)}')
    except Problem as error:
        raise BadInput(f"{place}: {error}") from None
    rest = _rest(place, found.pop(REST, ""))
    fields = {name: value for name, value in found.items() if name not in GROUPS and value}
    return _Entry(place, host, clock, found.get("event", ""), fields, rest)


def _by_process(entries: Sequence[_Entry]) -> Sequence[_Entry]:
    """The entries with the names of their processes, where a file of causet had to change those of hosts."""
    names = {entry.host: str(entry.rest["process"]) for entry in entries if "process" in entry.rest}
    if not names:
        return entries
    return [
        replace(
            entry,
            host=names.get(entry.host, entry.host),
            clock={names.get(host, host): value for host, value in entry.clock.items()},
        )
        for entry in entries
    ]


def _clock(text: str) -> dict[str, int]:
    """A clock without its zeros, which mean the same as no entry."""
    try:
        clock = _decoded_clock(text)
        if not isinstance(clock, dict):
            raise Problem("a clock must be an object of host and count")
        inspect_all(clock)
    except Problem as error:
        raise Problem(f'field "clock" {quote(text)}: {error}') from None
    counts = {}
    for host, value in clock.items():
        if isinstance(value, float) and value.is_integer() and int(value) in INT64:
            value = int(value)  # JavaScript does not distinguish them
        if not is_integer(value) or value < 0:
            raise Problem(f'field "clock": the entry of {quote(host)} must be a count, not {quote(value)}')
        if value:
            counts[host] = value
    return counts


def _decoded_clock(text: str) -> object:
    """The clock, or what a string holds: `{"a":1}`, `{\\"a\\":1}` and `"{\\"a\\":1}"` are the same."""
    try:
        found = decode(text)
    except Problem as error:
        if '\\"' not in text:
            raise
        try:
            found = decode(f'"{text}"')
        except Problem:
            raise error from None
    return decode(found) if isinstance(found, str) else found


def _id(point: Point) -> str:
    return f"{point[0]}:{point[1]}"


def _events(entries: Mapping[Point, _Entry], causes: Mapping[Point, Causes]) -> list[tuple[Place, Event]]:
    """The events; what files of causet carry in their rest overrides the other groups."""
    ids = {point: entry.rest.get("id") or _id(point) for point, entry in entries.items()}
    sends = {
        entry.rest["message"]: ids[point]
        for point, entry in entries.items()
        if entry.rest.get("kind") == "send"
    }
    events = []
    for point, entry in entries.items():
        rest = dict(entry.rest)
        # A receive's own send is not a parent: it is known by its message.
        own_send = sends.get(rest.get("message")) if rest.get("kind") in ("receive", "deliver") else None
        parents = [ids[cause] for cause in causes[point].known if ids[cause] != own_send]
        parents += [_id(cause) for cause in causes[point].lost]
        record: dict[str, Any] = {extra_name(name): value for name, value in entry.fields.items()}
        stamp = entry.fields.get("timestamp", "")
        if _WHOLE.fullmatch(stamp) and len(stamp) <= 20 and int(stamp) in INT64:
            record["time"] = int(record.pop("timestamp"))
        record |= {"process": point[0], "seq": point[1], "text": entry.event or None, **rest.pop("extra", {})}
        record |= {**rest, "id": ids[point], "parents": [*parents, *rest.get("parents", ())]}
        try:
            events.append((entry.place, event_of(record)))
        except Problem as error:
            raise BadInput(f"{entry.place}: {error}") from None
    return events


def _rest(place: Place, text: str) -> dict[str, Any]:
    """The rest of an entry of a file of causet: fields of the trace format and `extra`."""
    if not text:
        return {}
    try:
        rest = decode_record(text, f"field {quote(REST)}")
        inspect_all(rest)
        extra = rest.get("extra", {})
        if not isinstance(extra, dict) or set(extra) & set(FIELDS) or rest.keys() - {*FIELDS, "extra"}:
            raise Problem(f"field {quote(REST)}: this is not what causet writes there")
        # Checked here, because names, ids and messages are looked at before the events are made.
        event_of({"process": "", **{name: rest[name] for name in rest if name != "extra"}, "seq": 1})
    except Problem as error:
        raise BadInput(f"{place}: {error}") from None
    return {name: value for name, value in rest.items() if value is not None and name != "seq"}

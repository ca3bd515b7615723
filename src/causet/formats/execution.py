"""An execution read from somewhere: its name, its events, and what is wrong with the log.

Rule: what cannot be understood is `BadInput` and ends the reading: a repeated
(process, seq) or id, a message sent twice, a cycle. A log that is merely incomplete is read to its end; each
fault is counted under its kind, and the first few are reported with their places.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from causet.errors import BadInput, quote
from causet.files import Place
from causet.formats.causality import check_acyclic, links_of
from causet.formats.schema import FIELDS
from causet.formats.sound import distinct
from causet.model import Event

GAP = "gap in seq"
UNKNOWN_PARENT = "unknown parent"
NO_SEND = "received or delivered without a send"
UNMATCHED = "line that does not match the parser"
BACKWARDS = "clock that goes backwards"
FORGETS = "clock that lacks what its cause knew"
TWICE = "record that stands twice"
NO_END = "span without an end"
ENDS_FIRST = "span that ends before it starts"

MOST_PLACES = 5
"""Faults of one kind that are reported with their places; the others are only counted."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One kind of damage in a log: how often, and where it was seen first."""

    kind: str
    count: int
    places: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Execution:
    """The events of one execution, in the order of the log; the name is empty where the log gives none."""

    name: str
    events: Sequence[Event]
    faults: tuple[Fault, ...] = ()
    inputs: Sequence[Mapping[str, object]] | None = field(default=None, compare=False, repr=False)
    """of a table: its rows, as they stand there, one for each event"""

    @property
    def processes(self) -> int:
        return len({event.process for event in self.events})

    @property
    def edges(self) -> int:
        """Known direct predecessors in other processes: parents, and sends of what was received."""
        return sum(self._causes())

    @property
    def with_cause(self) -> int:
        """Events that have a known direct predecessor in another process."""
        return sum(count > 0 for count in self._causes())

    def _causes(self) -> Iterator[int]:
        for event, links in zip(self.events, links_of(self.events), strict=True):
            yield sum(self.events[cause].process != event.process for cause in links)


class FaultLog:
    """Faults as they are found, by kind."""

    def __init__(self) -> None:
        self._count: Counter[str] = Counter()
        self._places: dict[str, list[str]] = {}

    def add(self, kind: str, place: Place | str, what: str = "") -> None:
        self._count[kind] += 1
        places = self._places.setdefault(kind, [])
        if len(places) < MOST_PLACES:
            places.append(f"{place}: {what}" if what else str(place))

    def found(self) -> tuple[Fault, ...]:
        return tuple(Fault(kind, count, tuple(self._places[kind])) for kind, count in self._count.items())


def assemble(
    name: str, placed: Iterable[tuple[Place, Event]], faults: FaultLog | None = None, hint: str = ""
) -> Execution:
    """The execution of these events, after the checks that every format has in common.

    `hint` is added to the sentence about a cycle, which may have a reason of its own in a format.
    """
    faults = faults or FaultLog()
    events: list[Event] = []
    places: list[Place] = []
    for place, event in distinct(placed):
        events.append(event)
        places.append(place)
    try:
        check_acyclic(events)
    except BadInput as error:
        where = places[0].path if len({place.path for place in places}) == 1 else "the files together"
        raise BadInput(f"{where}: {error}{hint and f'; {hint}'}") from None
    _add_log_faults(events, places, faults)
    return Execution(name, events, faults.found())


def _add_log_faults(events: Sequence[Event], places: Sequence[Place], faults: FaultLog) -> None:
    last: dict[str, int] = {}
    jumps: dict[int, int] = {}
    for number in sorted(range(len(events)), key=lambda number: events[number].seq):
        event = events[number]
        before = last.get(event.process, 0)
        if event.seq != before + 1:
            jumps[number] = before
        last[event.process] = event.seq
    for number, before in sorted(jumps.items()):
        event = events[number]
        jump = f"jumps from {before} to {event.seq}" if before else f"begins at {event.seq}"
        faults.add(GAP, places[number], f"{quote(event.process)} {jump}")
    known = {event.id for event in events}
    sent = {event.message for event in events if event.kind == "send"}
    for event, place in zip(events, places, strict=True):
        for parent in event.parents:
            if parent not in known:
                faults.add(UNKNOWN_PARENT, place, f"{quote(event.id)} names {quote(parent)}")
        if event.kind in ("receive", "deliver") and event.message not in sent:
            faults.add(NO_SEND, place, f"{quote(event.process)} has {quote(event.message)}")


def other_processes(
    process: str, seq: int, causes: Iterable[str], where: Mapping[str, tuple[str, int]]
) -> tuple[str, ...]:
    """Of these causes of an event the parents: all but those that stand earlier in its own process.

    `where` gives the process and seq of each event that is known. One that stands later in the same process
    remains: that is a cycle, to be reported.
    """
    return tuple(
        cause
        for cause in dict.fromkeys(causes)
        if cause not in where or where[cause][0] != process or where[cause][1] >= seq
    )


def extra_name(name: str) -> str:
    """The name in a trace of a field of another format: its own, with one `_` more where that is, but for
    underscores at its end, a name of the trace format.

    >>> [extra_name(name) for name in ("date", "time", "time_")]
    ['date', 'time_', 'time__']
    """
    return f"{name}_" if name.rstrip("_") in FIELDS else name


def plain_name(name: str) -> str | None:
    """The field to which `extra_name` gives this name; None if there is no such field.

    >>> [plain_name(name) for name in ("date", "time_", "time")]
    ['date', 'time', None]
    """
    if name.rstrip("_") not in FIELDS:
        return name
    return name.removesuffix("_") if name.endswith("_") else None

"""CloudEvents as a trace: JSON batches, JSON Lines, or single events in structured mode.

The process is `causalprocess`, the identity under which messages are numbered, or else `source`; the event's
id is `source/id`. The event's position in its process is `sequence` where all events of the process have one
(an integer as a string; if they count from 0, one is added), else the order in the files. Causes come from

- `causationid`, or the attribute that `parent` names: an id, a `source/id`, or a list of them. An id that
  several sources use must be given with its source;
- `causalnumbers` and `causaldeps`, of messages to groups: the event depends on the previous one of its
  process in each of its groups, and on its frontier. A process with several groups has its messages in an
  order that fits these, and else in that of the files;
- `causaldeps` with `sequence` alone, which are older: the event depends on the previous one of its process
  and on these. They count per domain: where the attribute that `domain` names has several values, a process
  is `process>domain`.

`time` becomes nanoseconds since 1970, `type` the text; all other attributes and `data` are kept as they are,
under the names that `extra_name` gives them. All files together are one execution.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import pairwise
from pathlib import Path
from typing import Any

from causet.envelope import (
    ALL,
    DEPS,
    DOMAIN,
    NUMBERS,
    PROCESS,
    VERSION_NAME,
    bypasses,
    frontier_of,
    scope_of,
    version_of,
)
from causet.errors import BadInput, BadStamp, Problem, quote
from causet.files import Place
from causet.formats.documents import documents
from causet.formats.execution import TWICE, Execution, FaultLog, assemble, extra_name, other_processes
from causet.formats.strict import INT64, as_record, decode, inspect, is_integer
from causet.formats.times import nanos_of
from causet.frontier import PRIORITY_MARK, Stamped
from causet.model import Event

TAKEN = ("specversion", "id", "source", "sequence", "time", "type", NUMBERS, DEPS, VERSION_NAME, PROCESS)
"""Attributes that become something else in a trace and are not kept under their names."""


def read_cloudevents(
    paths: Iterable[str | Path], *, parent: str = "causationid", domain: str = "receiver"
) -> Execution:
    """The events of these files as one execution.

    Bad input: what is not a CloudEvent, a duplicate sequence, an ambiguous parent, two different events with
    the same source and id, a cycle. Log faults: a missing cause, a gap in a sequence, a duplicate event.
    """
    faults = FaultLog()
    found: dict[tuple[str, str], _Message] = {}
    for path in paths:
        for place, document in documents(Path(path)):
            try:
                message = _message(place, document, parent, domain)
                known = found.setdefault((message.source, message.id), message)
                if known is not message:
                    if known.raw != message.raw:
                        raise Problem(f"another event {quote(message.name)} is in {known.place}")
                    faults.add(TWICE, place, f"the event {quote(message.name)}, already in {known.place}")
            except Problem as error:
                raise BadInput(f"{place}: {error}") from None
    return assemble("", _events(list(found.values())), faults)


@dataclass(frozen=True, slots=True)
class _Message:
    """One event as it stands in the file."""

    place: Place
    source: str
    process: str
    id: str
    domain: str | None
    group: str
    """that of its `sequence`, if it is no message to groups"""
    stamped: Stamped | None
    """of a message with numbers: these, and what it says of its past"""
    grouped: bool
    """whether it is a message to groups"""
    sequence: int | None
    parents: tuple[str, ...]
    deps: dict[str, int]
    time: int | None
    text: str | None
    extra: dict[str, object]
    raw: dict[str, Any] = field(repr=False)

    @property
    def name(self) -> str:
        return f"{self.source}/{self.id}"


def _message(place: Place, document: object, parent: str, domain: str) -> _Message:
    raw: dict[str, Any] = as_record(document, "each entry")
    for name in ("source", "id"):
        if not isinstance(raw.get(name), str) or not raw[name]:
            raise Problem(
                f"field {quote(name)} must be a string that is not empty, not {quote(raw.get(name))}"
            )
    if raw.get("specversion", "1.0") not in ("1.0", "0.3"):
        raise Problem(f'field "specversion" must be "1.0", not {quote(raw["specversion"])}')
    kind = _text(raw, "type")
    stamped = _stamp(raw)
    grouped = stamped is not None
    deps = {} if grouped else _deps(raw.get(DEPS))
    sequence = None if grouped else _sequence(raw.get("sequence"))
    if deps and sequence is None:
        raise Problem('field "causaldeps" needs a field "sequence" that is a number')
    time = _text(raw, "time")
    process = _text(raw, PROCESS) or raw["source"]
    taken = TAKEN if process == raw["source"] else [name for name in TAKEN if name != "source"]
    try:
        version_of(raw)
    except BadStamp as error:
        raise Problem(str(error)) from None
    within = raw.get(domain)
    if within is not None and not isinstance(within, str):
        raise Problem(f"field {quote(domain)} must be a string, not {quote(within)}")
    # Without dependencies, which count per domain, it is an attribute like any other.
    domain_now = within if DEPS in raw and not grouped else None
    group = domain_now or str(raw.get(DOMAIN) or ALL)
    if sequence is not None:
        stamped = Stamped({group: sequence}, {group: deps} if deps else {})
    return _Message(
        place,
        raw["source"],
        process,
        raw["id"],
        domain_now,
        group,
        stamped,
        grouped,
        sequence,
        _parents(parent, raw.get(parent)),
        deps,
        _in_field("time", time) if time is not None else None,
        kind,
        {extra_name(name): value for name, value in raw.items() if name not in taken},
        raw,
    )


def _stamp(raw: dict[str, Any]) -> Stamped | None:
    """What a message with numbers says, by channel and scope."""
    try:
        if bypasses(raw) or raw.get(NUMBERS) is None:
            return None
        stamped, scope = frontier_of(raw), scope_of(raw)
    except BadStamp as error:
        raise Problem(str(error)) from None
    if scope is None:
        return stamped
    within = f"{PRIORITY_MARK}{PRIORITY_MARK}{scope}"  # no channel ends like this
    return Stamped(
        {f"{name}{within}": number for name, number in stamped.numbers.items()},
        {f"{name}{within}": entries for name, entries in stamped.past.items()},
    )


def _in_field(name: str, text: str) -> int:
    try:
        return nanos_of(text)
    except Problem as error:
        raise Problem(f"field {quote(name)}: {error}") from None


def _text(raw: dict[str, Any], name: str) -> str | None:
    found = raw.get(name)
    if found is not None and not isinstance(found, str):
        raise Problem(f"field {quote(name)} must be a string, not {quote(found)}")
    return found


def _sequence(found: object) -> int | None:
    """The number in a `sequence`; None if it is not a number, which the specification allows."""
    if isinstance(found, str) and found.isascii() and found.isdigit() and len(found.lstrip("0")) <= 19:
        found = int(found)
    if is_integer(found) and 0 <= found < INT64.stop - 1:
        return found
    return None


def _parents(name: str, found: object) -> tuple[str, ...]:
    if found is None or found == "":
        return ()
    listed = found if isinstance(found, list) else [found]
    if not all(isinstance(each, str) and each for each in listed):
        raise Problem(f"field {quote(name)} must be an id or a list of ids, not {quote(found)}")
    return tuple(dict.fromkeys(listed))


def _deps(found: object) -> dict[str, int]:
    """The map process → number, given as a canonical JSON string or as an object."""
    if found is None:
        return {}
    try:
        deps = decode(found) if isinstance(found, str) else found
        inspect("causaldeps", deps)
    except Problem as error:
        raise Problem(f'field "causaldeps": {error}') from None
    counts = (
        {name: _sequence(count) for name, count in deps.items()} if isinstance(deps, dict) else {"": None}
    )
    sure = {name: count for name, count in counts.items() if count is not None}
    if len(sure) < len(counts):
        raise Problem(f'field "causaldeps" must be an object of process and sequence, not {quote(found)}')
    return sure


# ---------------------------------------------------------------- events


def _events(messages: list[_Message]) -> Iterator[tuple[Place, Event]]:
    several = len({message.domain for message in messages}) > 1

    def process_of(process: str, domain: str | None) -> str:
        return f"{process}>{domain}" if several and domain is not None else process

    processes = [process_of(message.process, message.domain) for message in messages]
    seqs = _seqs(messages, processes)
    where = dict(zip((message.name for message in messages), zip(processes, seqs, strict=True), strict=True))
    numbered = _in_one_group(messages)
    by_point = _by_point(messages)
    groups = {group for _, group, _ in by_point}
    known = _Known(messages)

    def named(process: str, group: str, number: int, label: str) -> str:
        return by_point.get((process, group, number), f"{label}#{number}")

    for message, process, seq in zip(messages, processes, seqs, strict=True):
        try:
            causes = [known.resolved(parent) for parent in message.parents]
        except Problem as error:
            raise BadInput(f"{message.place}: {error}") from None
        for cause, count in message.deps.items():
            causes.append(named(cause, message.group, count, process_of(cause, message.domain)))
        if message.grouped:
            for cause, group, count in _points(message):
                if cause != message.process or cause not in numbered:  # there, a gap says it
                    label = f"{cause}>{group}" if len(groups) > 1 else cause
                    causes.append(named(cause, group, count, label))
        yield (
            message.place,
            Event(
                process,
                seq,
                id=message.name,
                parents=other_processes(process, seq, causes, where),
                time=message.time,
                text=message.text,
                extra=message.extra,
            ),
        )


def _by_point(messages: list[_Message]) -> dict[tuple[str, str, int], str]:
    """The events by process, group and number."""
    found: dict[tuple[str, str, int], _Message] = {}
    for message in messages:
        for group, number in message.stamped.numbers.items() if message.stamped is not None else ():
            known = found.setdefault((message.process, group, number), message)
            if known is not message and known.grouped and message.grouped:
                raise BadInput(
                    f"{known.place} and {message.place}: two events have process {quote(message.process)} "
                    f"and number {number} in group {quote(group)}"
                )
    return {point: message.name for point, message in found.items()}


def _points(message: _Message) -> Iterator[tuple[str, str, int]]:
    """The messages that one follows: process, group and number."""
    if message.stamped is not None:
        for group, entries in message.stamped.past.items():
            for cause, count in entries.items():
                yield cause, group, count
        for group, number in message.stamped.numbers.items():
            if number > 1:
                yield message.process, group, number - 1


def _in_one_group(messages: list[_Message]) -> set[str]:
    """The processes that send all of their messages to one and the same group."""
    groups: dict[str, set[str]] = {}
    for message in messages:
        mine = groups.setdefault(message.process, set())
        mine |= set(message.stamped.numbers) if message.grouped and message.stamped else {"", "no group"}
    return {process for process, mine in groups.items() if len(mine) == 1}


def _seqs(messages: list[_Message], processes: list[str]) -> list[int]:
    lowest: dict[str, int] = {}
    for message, process in zip(messages, processes, strict=True):
        value = -1 if message.sequence is None else message.sequence
        lowest[process] = min(value, lowest.get(process, value))
    numbered, grouped = _in_one_group(messages), {each.process for each in messages if each.grouped}
    ranks = _ranks(messages) if grouped - numbered else []
    counted: Counter[str] = Counter()
    seqs = [0] * len(messages)
    for at in sorted(range(len(messages)), key=ranks.__getitem__) if ranks else range(len(messages)):
        message, process = messages[at], processes[at]
        counted[process] += 1
        if message.process in numbered and message.stamped is not None:
            [seqs[at]] = message.stamped.numbers.values()
        elif message.process in grouped:
            seqs[at] = counted[process]
        elif message.sequence is not None and lowest[process] >= 0:
            seqs[at] = message.sequence + (lowest[process] == 0)
        elif message.deps:
            raise BadInput(
                f"{message.place}: it depends on its process's previous event, and another event of "
                f"{quote(process)} has no sequence that is a number"
            )
        else:
            seqs[at] = counted[process]
    return seqs


def _ranks(messages: list[_Message]) -> list[int]:
    """An order of the messages in which each comes after what it follows, and else as in the files."""
    by_point: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for at, message in enumerate(messages):
        for group, number in message.stamped.numbers.items() if message.stamped else ():
            by_point.setdefault((message.process, group), []).append((number, at))
    where = {(*key, number): at for key, found in by_point.items() for number, at in found}
    follows: list[set[int]] = [set() for _ in messages]
    for found in by_point.values():
        for (_, earlier), (_, later) in pairwise(sorted(found)):
            follows[later].add(earlier)
    for at, message in enumerate(messages):
        follows[at] |= {where[point] for point in _points(message) if point in where}
    effects: list[list[int]] = [[] for _ in messages]
    for at, causes in enumerate(follows):
        for cause in causes:
            effects[cause].append(at)
    free = [at for at, causes in enumerate(follows) if not causes]
    ranks = [len(messages)] * len(messages)
    for rank in range(len(messages)):
        if not free:
            break  # a cycle, which is found and shown later
        at = heappop(free)
        ranks[at] = rank
        for effect in effects[at]:
            follows[effect].remove(at)
            if not follows[effect]:
                heappush(free, effect)
    return ranks


class _Known:
    """The events by what a parent may call them: their id, or source and id."""

    def __init__(self, messages: list[_Message]) -> None:
        self._by: dict[str, list[str]] = {}
        for message in messages:
            for name in dict.fromkeys((message.id, message.name)):
                self._by.setdefault(name, []).append(message.name)

    def resolved(self, parent: str) -> str:
        """The event's own name; the parent as it is, if there is no such event."""
        names = self._by.get(parent, [parent])
        if len(names) > 1:
            shown = ", ".join(quote(name) for name in names[:3])
            raise Problem(f"the parent {quote(parent)} may be {shown}; give it with its source")
        return names[0]

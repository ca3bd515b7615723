"""What a stamper knows, and the lines of its file: what it knows is what its lines say, one after the other.

The first line is a state; every further one is something that happened:

    {"version": 3, "source": …, "process": …, "to": […], "frontier": {…}, "covered": {…}, "cut": …, "used": …}
    {"stamped": envelope}                     it was stamped: without `causaldeps`, which the lines before it
                                              tell; with it if it stands there anew, because it was not sent
    {"sent": [group, number]}                 it was sent to all of its groups
    {"saw": [process, numbers, entries]}      of a message the part that is news
    {"sent": [group, number, scope]}          the same of messages of a scope
    {"saw": [process, numbers, entries, scope]}
    {"sent": [id]}                            and of a message that bypasses the order
    {"stable": {"number": …, "groups": {…}}}  of a cut the part that is news
    {"cut": number}, {"rc": time}             the largest ones that were read; also beside others

In the place of a group stands a channel, where a message has a priority. What is known of scopes stands in
the state as `scopes`: scope → frontier and covered; it is absent where there are none.

A stamper does what happens by the line that it writes, so that one that begins again knows the same. Lines of
version 1 and 2 are taken over: a stamper had one group then, its domain, and in version 1 times in ms.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from causet.envelope import (
    DEPS,
    MOST_SEQUENCE,
    canonical,
    channels_of,
    check_entries,
    cut_of,
    frontier_of,
    is_channel,
    process_of,
    read_cut,
    scope_of,
    time_of,
)
from causet.errors import BadInput, BadStamp, quote
from causet.frontier import Frontier
from causet.identity import source_of
from causet.model import is_text
from causet.rcclock import FAR, TICKS_PER_MS
from causet.stamping.journal import record_of

Key = tuple[str] | tuple[str, int] | tuple[str, int, str]
"""The first channel of a message, in the order of their names, its number there, and its scope if it has one;
or the id of a message that bypasses the order."""
VERSION = 3
"""Of saved stampers and of their files."""
Line = Mapping[str, Any]


class Knowledge:
    """What one process knows: its identity, its numbers, the past of its next message, what was not sent."""

    def __init__(self, source: str, process: str, to: tuple[str, ...]) -> None:
        self.source = source
        self.process = process
        self.to = to
        self.known: Frontier[str, str] = Frontier(process)
        """of messages without a scope"""
        self.scopes: dict[str, Frontier[str, str]] = {}
        """of those of each scope"""
        self.cut = 0
        """the largest number of a cut that was used or seen"""
        self.used = 0
        """that of the largest one that was used"""
        self.unsent: dict[Key, dict[str, Any]] = {}
        self.keeps = False
        """whether what was not sent is kept"""
        self.rc: int | None = None
        """the largest r + c that is known"""
        self._old: Callable[[Line], dict[str, Any]] | None = None

    def known_in(self, scope: str | None) -> Frontier[str, str]:
        """What is known of the messages of a scope."""
        if scope is None:
            return self.known
        return self.scopes.setdefault(scope, Frontier(self.process))

    @property
    def numbers(self) -> dict[str, int]:
        """channel → the number of the last message there, without a scope"""
        covered = self.known.covered
        return {group: mine[self.process] for group, mine in covered.items() if self.process in mine}

    def state(self) -> dict[str, Any]:
        """The first line: everything but what was not sent."""
        scopes = {
            scope: {"frontier": known.frontier, "covered": known.covered}
            for scope, known in self.scopes.items()
            if known.covered
        }
        return {
            "version": VERSION,
            "source": self.source,
            "process": self.process,
            "to": list(self.to),
            "frontier": self.known.frontier,
            "covered": self.known.covered,
            "cut": self.cut,
            "used": self.used,
            "rc": self.rc,
            **({"scopes": scopes} if scopes else {}),
        }

    def kept(self) -> list[dict[str, Any]]:
        """The lines after the first one: what was not sent."""
        return [{"stamped": each} for each in self.unsent.values()]

    def load(self, state: Line) -> None:
        """Begin with a state that was checked."""
        self.source, self.process = state["source"], state["process"]
        self.known = self._loaded(state)
        self.scopes = {scope: self._loaded(known) for scope, known in state.get("scopes", {}).items()}
        self.cut, self.used, self.rc = state["cut"], state["used"], state.get("rc")
        self.unsent = {}

    def _loaded(self, state: Line) -> Frontier[str, str]:
        known: Frontier[str, str] = Frontier(self.process)
        known.frontier = {group: dict(entries) for group, entries in state["frontier"].items()}
        known.covered = {group: dict(entries) for group, entries in state["covered"].items()}
        return known

    def read(self, record: dict[str, Any], first: bool) -> None:
        """A line of a file, of any version; BadInput or BadStamp if it is none, or does not follow."""
        if first:
            state, self._old = _state_of(record, "its first line")
            self.load(state)
            return
        if "version" in record:
            raise BadInput("the state of a stamper can stand in the first line only")
        line = record if self._old is None else self._old(record)
        _check_fields(line)
        self.apply(line)

    def apply(self, line: Line) -> None:
        """What happened."""
        if "stamped" in line:
            self._stamped(line["stamped"])
        elif "sent" in line:
            self.unsent.pop(tuple(line["sent"]), None)
        elif "saw" in line:
            process, numbers, past, *scope = line["saw"]
            self.known_in(*scope or [None]).saw(process, numbers, past)
        elif "stable" in line:
            number, groups = read_cut(line["stable"])
            self.known.stable(groups)
            self.used = max(number, self.used)
            self.cut = max(number, self.cut)
        self.cut = max(line.get("cut", 0), self.cut)
        self.knows_time(line.get("rc"))

    def stamped(self, envelope: dict[str, Any]) -> None:
        """The next message."""
        self.known_in(scope_of(envelope)).stamp(channels_of(envelope))
        if self.keeps:
            self.unsent[key_of(envelope)] = envelope

    def knows_time(self, rc: int | None) -> None:
        """Kept even without a clock: a later stamper of this file may have one."""
        if rc is not None:
            self.rc = max(rc, self.rc or 0)

    def _stamped(self, envelope: dict[str, Any]) -> None:
        process, numbers, when = process_of(envelope), channels_of(envelope), time_of(envelope)
        if process != self.process:
            raise BadInput(f"a message of {quote(process)}, not of {quote(self.process)}")
        if DEPS in envelope:
            frontier_of(envelope)
        known = self.known_in(scope_of(envelope))
        following = {group: known.next_number(group) for group in numbers}
        if numbers == following:
            if DEPS not in envelope and numbers:
                envelope = {**envelope, DEPS: canonical(known.frontier)}
            self.stamped(envelope)
        elif DEPS not in envelope or any(number >= following[group] for group, number in numbers.items()):
            raise BadInput(f"a message with the numbers {quote(numbers)} does not follow those before it")
        else:
            self.unsent[key_of(envelope)] = envelope
        self.cut = max(cut_of(envelope), self.cut)
        self.knows_time(when.rc if when is not None else None)


def key_of(envelope: Mapping[str, Any]) -> Key:
    """What a message of a process is known by."""
    numbers, scope = channels_of(envelope), scope_of(envelope)
    if not numbers:
        return (envelope["id"],)
    return min(numbers.items()) if scope is None else (*min(numbers.items()), scope)


# What is read.


def saved_state(saved: str | bytes, what: str) -> dict[str, Any]:
    """The state that `Stamper.save` gave, as one of this version; BadInput if it is none."""
    try:
        state, _ = _state_of(record_of(saved), what)
    except (ValueError, RecursionError):
        raise BadInput(f"{what}: not JSON") from None
    if not all(isinstance(each, dict) for each in state.get("unsent", [])):
        raise BadInput(f'{what}: "unsent" cannot be {quote(state["unsent"])}')
    return state


def _state_of(record: dict[str, Any], what: str) -> tuple[dict[str, Any], Callable[[Line], Any] | None]:
    """A first line as one of this version, and what makes further lines such ones."""
    version = _version(record, what)
    if version == VERSION:
        _check_state(record)
        return record, None
    for name, fits in OLD_STATE.items():
        if not fits(record.get(name)):
            raise BadInput(f"{quote(name)} cannot be {quote(record.get(name))}")
    domain, ms = record["domain"], version == 1
    process = record.get("source" if ms else "process")
    if not is_text(process):
        raise BadInput(f'"process" cannot be {quote(process)}')
    own = {process: record["sequence"]} if record["sequence"] else {}
    seen, direct = ({**record[name], **own} for name in ("seen", "direct"))
    state = {
        **_in_ticks(record, ms),
        "process": process,
        "to": [domain],
        "frontier": {domain: direct} if direct else {},
        "covered": {domain: seen} if seen else {},
        "cut": 0,
        "used": 0,
    }
    _check_state(state)
    return state, partial(_line_taken_over, domain=domain, ms=ms)


def _version(state: Line, what: str) -> int:
    if "version" not in state:
        raise BadInput(f"{what}: no state of a stamper")
    version = state["version"]
    if type(version) is not int or not 1 <= version <= VERSION:
        raise BadInput(
            f"{what}: version {quote(version)}, and this release reads up to {VERSION}; use the one that "
            "wrote it"
        )
    return version


def _in_ticks(line: Line, ms: bool) -> dict[str, Any]:
    rc = line.get("rc")
    return {**line, "rc": rc * TICKS_PER_MS if ms and type(rc) is int else rc}


def _line_taken_over(line: Line, *, domain: str, ms: bool) -> dict[str, Any]:
    """A line of version 1 or 2 as one of this version."""
    now = _in_ticks(line, ms)
    if "sent" in line:
        now["sent"] = [domain, line["sent"]]
    if "saw" in line:
        saw = line["saw"]
        if not isinstance(saw, list) or len(saw) != 3:
            raise BadInput(f'"saw" cannot be {quote(saw)}')
        process, number, deps = saw
        now["saw"] = [process, {domain: number}, {domain: deps} if deps else {}]
    return now


def _check_state(state: Line) -> None:
    for name in STATE:
        if name not in state:
            raise BadInput(f"{quote(name)} is missing")
    _check_fields(state)
    source, process = state["source"], state["process"]
    if process != source and source_of(process) != source:
        raise BadInput(f"{quote(process)} is no process of source {quote(source)}")
    if state["used"] > state["cut"]:
        raise BadInput(f'"used" is {state["used"]}, and "cut" has less')
    for known in (state, *state.get("scopes", {}).values()):
        for group, entries in known["frontier"].items():
            for name, number in entries.items():
                if known["covered"].get(group, {}).get(name, 0) < number:
                    raise BadInput(f'"frontier" has {quote(name)} in {quote(group)}, and "covered" has less')


def _check_fields(line: Line) -> None:
    """BadInput if a line has not what it must have."""
    for name, fits in FIELDS.items():
        if name in line and not fits(line[name]):
            raise BadInput(f"{quote(name)} cannot be {quote(line[name])}")


def _is_number(value: object, least: int = 1, most: int = MOST_SEQUENCE) -> bool:
    return type(value) is int and least <= value <= most


def _are_numbers(value: object) -> bool:
    """Whether this is a map of names to numbers."""
    return isinstance(value, dict) and all(is_text(name) and _is_number(n) for name, n in value.items())


def _are_channels(value: object) -> bool:
    return _are_numbers(value) and isinstance(value, dict) and all(map(is_channel, value))


def _are_entries(value: object) -> bool:
    """Whether this is a map group → process → number."""
    if not isinstance(value, dict):
        return False
    try:
        check_entries("", value)
    except BadStamp:
        return False
    return True


def _is_seen(value: object) -> bool:
    """A process, its numbers and the entries, and perhaps a scope."""
    if not isinstance(value, list) or len(value) not in (3, 4) or not all(map(is_text, value[3:])):
        return False
    return is_text(value[0]) and _are_channels(value[1]) and _are_entries(value[2])


def _is_sent(value: object) -> bool:
    """A `Key`."""
    if not isinstance(value, list) or not 1 <= len(value) <= 3 or not is_text(value[0]):
        return False
    return all(map(_is_number, value[1:2])) and all(map(is_text, value[2:]))


def _are_scopes(value: object) -> bool:
    """Whether this is a map scope → frontier and covered."""
    return isinstance(value, dict) and all(
        is_text(scope)
        and isinstance(known, dict)
        and known.keys() == {"frontier", "covered"}
        and all(map(_are_entries, known.values()))
        for scope, known in value.items()
    )


def _is_cut(value: object) -> bool:
    try:
        read_cut(value)
    except BadInput:
        return False
    return isinstance(value, dict)


def _is_address(value: object) -> bool:
    return (
        isinstance(value, list) and value != [] and all(map(is_text, value)) and len({*value}) == len(value)
    )


STATE = ("source", "process", "to", "frontier", "covered", "cut", "used")
"""What every state has."""
FIELDS: dict[str, Callable[[Any], bool]] = {
    "source": is_text,
    "process": is_text,
    "to": _is_address,
    "frontier": _are_entries,
    "covered": _are_entries,
    "scopes": _are_scopes,
    "used": partial(_is_number, least=0),
    "stamped": lambda value: isinstance(value, dict),
    "sent": _is_sent,
    "saw": _is_seen,
    "stable": _is_cut,
    "cut": partial(_is_number, least=0),
    "unsent": lambda value: isinstance(value, list),
    "rc": lambda value: value is None or _is_number(value, 0, FAR * TICKS_PER_MS - 1),
}
"""What a line may have, and what it must be like."""
OLD_STATE: dict[str, Callable[[Any], bool]] = {
    "domain": is_text,
    "sequence": partial(_is_number, least=0),
    "seen": _are_numbers,
    "direct": _are_numbers,
}
"""What a state of version 1 or 2 has in the place of the frontier."""

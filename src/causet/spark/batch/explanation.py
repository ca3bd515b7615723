"""The result of `explain()`, as values, as JSON and as text."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from causet.errors import listed, quote
from causet.formats.execution import Fault

PROCESS_ORDER, PARENT, MESSAGE = "process order", "parent", "message"
"""How a direct cause leads to its effect."""
BEFORE, AFTER, CONCURRENT, SAME = "before", "after", "concurrent", "same"
"""How two events are related."""

TOLD = 12
"""Items of a list that the text names."""


# ---------------------------------------------------------------- what is found


@dataclass(frozen=True)
class Mention:
    """An event, as far as it takes to recognise it."""

    id: str
    process: str
    seq: int
    kind: str
    message: str | None
    time: int | float | None

    def told(self) -> str:
        """Such as `p2#7 (deliver p1:3 at 12)`."""
        facts = [] if self.kind == "local" else [self.kind]
        facts += [listed([self.message])] if self.message is not None else []
        facts += [f"at {self.time}"] if self.time is not None else []
        return listed([self.id]) + (f" ({' '.join(facts)})" if facts else "")


@dataclass(frozen=True)
class Direct:
    """A direct cause or effect."""

    event: Mention
    how: str


@dataclass(frozen=True)
class Nearby:
    """A cause or effect this many direct steps away; the step between it and `via` is the last of a shortest
    chain, and `how` says what it is."""

    event: Mention
    steps: int
    how: str
    via: str


@dataclass(frozen=True)
class Cone:
    """All causes of an event, or all its effects."""

    count: int
    direct_count: int
    direct: tuple[Direct, ...]
    """by (process, seq)"""
    nearest: tuple[Nearby, ...]
    """by (steps, process, seq)"""


@dataclass(frozen=True)
class Awaited:
    """A message that precedes the one that waited, and its delivery meanwhile."""

    message: str
    delivered: Mention


@dataclass(frozen=True)
class Wait:
    """A message at one process, from its reception to its delivery."""

    process: str
    received: Mention
    delivered: Mention | None
    """None if it never was"""
    waited: int | float | None
    """in the units of the trace's times, where both events have one"""
    events: int
    deliveries: int
    """how many events of the process came in between, and how many deliveries among them"""
    awaited: tuple[Awaited, ...]
    awaited_count: int
    """messages addressed to the process that precede this one and were delivered in between"""
    missing: tuple[str, ...]
    missing_count: int
    """where it was never delivered: messages addressed to the process that precede it, never delivered there
    either"""

    longer_than_asked: bool
    """whether it waited although nothing came meanwhile that precedes it"""

    def told(self, message: str) -> str:
        told = f"{listed([self.process])} received {listed([message])}{_at(self.received)}"
        if self.delivered is None:
            return f"{told} and never delivered it{self._told_missing()}"
        told += f" and delivered it{_at(self.delivered)}"
        if self.awaited_count:
            names = _listed([each.message for each in self.awaited], self.awaited_count)
            told += f", after {names}, which {'precedes' if self.awaited_count == 1 else 'precede'} it"
        elif self.longer_than_asked:
            told += ", longer than causal order asks: nothing that precedes it came in between"
        else:
            told += ", at once"
        deliveries = f", of which {counted(self.deliveries, 'delivery', 'deliveries')}"
        events = f"; in between {counted(self.events, 'event', 'events')}" if self.events else ""
        return told + events + (deliveries if self.deliveries else "")

    def _told_missing(self) -> str:
        if not self.missing_count:
            return ", though all that precedes it had come"
        names = _listed(self.missing, self.missing_count)
        return f", nor {names}, which {'precedes' if self.missing_count == 1 else 'precede'} it"


@dataclass(frozen=True)
class Message:
    """What happened to a message."""

    id: str
    control: bool
    sent: Mention | None
    received: tuple[Mention, ...]
    delivered: tuple[Mention, ...]
    waits: tuple[Wait, ...]
    """where it was received, in a trace that has both receptions and deliveries; by process"""


@dataclass(frozen=True)
class Explanation:
    """What every answer has."""

    events: int
    """of the whole execution"""
    faults: tuple[Fault, ...]

    def summary(self) -> dict[str, Any]:
        """All of it as a JSON value."""
        found: dict[str, Any] = _plain(asdict(self))
        return found

    def to_json(self) -> str:
        return json.dumps(self.summary(), ensure_ascii=False, allow_nan=False)

    def told(self) -> str:
        """All of it as text."""
        return "\n".join([*self._lines(), *fault_lines(self.faults)])

    def _lines(self) -> Iterator[str]:
        raise NotImplementedError


@dataclass(frozen=True)
class EventExplained(Explanation):
    """One event among all."""

    event: Mention
    fields: dict[str, Any]
    """every column of its row that is not null"""
    causes: Cone
    effects: Cone
    concurrent: int
    concurrent_with: tuple[Mention, ...]
    """some of these: the first of each process, then the second, and so on"""
    message: Message | None
    """where the event sends, receives or delivers one"""

    def _lines(self) -> Iterator[str]:
        yield f"{listed([self.event.id])}: " + ", ".join(
            f"{listed([name])} {quote(value)}" for name, value in _plain(self.fields).items() if name != "id"
        )
        yield (
            f"Of the other {self.events - 1:,} events: happened before it {self.causes.count:,}, after it "
            f"{self.effects.count:,}, concurrent with it {self.concurrent:,}."
        )
        yield from _told_cone("causes", self.causes)
        yield from _told_cone("effects", self.effects)
        if self.concurrent_with:
            yield "Concurrent with it: " + _listed(
                [each.told() for each in self.concurrent_with], self.concurrent, quoted=True
            )
        if self.message is not None:
            yield from _told_message(self.message)


@dataclass(frozen=True)
class Step:
    """From a cause to an effect; `steps` of them where they follow each other in process order."""

    cause: Mention
    effect: Mention
    how: str
    steps: int


@dataclass(frozen=True)
class Related(Explanation):
    """Two events, and a shortest chain of direct steps from the one that happened before to the other."""

    a: Mention
    b: Mention
    relation: str
    """`before` (a happened before b), `after`, `concurrent` or `same`"""
    steps: int
    chain: tuple[Step, ...]
    """of several the smallest by (process, seq), read from the cause on"""
    left_out: int
    """steps in the middle of the chain that are left out"""

    def _lines(self) -> Iterator[str]:
        a, b = self.a.told(), self.b.told()
        if self.relation == SAME:
            yield f"{a} is one event, asked for twice."
            return
        if self.relation == CONCURRENT:
            yield f"{a} and {b} are concurrent: neither happened before the other."
            return
        yield f"{a} happened {self.relation} {b}, by {counted(self.steps, 'direct step', 'direct steps')}:"
        for number, step in enumerate(self.chain):
            if self.left_out and 2 * number == len(self.chain):
                yield f"  … {counted(self.left_out, 'step', 'steps')} more …"
            times = f", {step.steps:,} steps" if step.steps > 1 else ""
            yield f"  {step.cause.told()} → {step.effect.told()}: {step.how}{times}"


def counted(count: int, one: str, more: str) -> str:
    return f"{count:,} {one if count == 1 else more}"


def _listed(names: Sequence[str], count: int, quoted: bool = False) -> str:
    """The first few of `count` names, and how many more there are; `quoted` if they are fit to be printed."""
    told = [name if quoted else listed([name]) for name in names[:TOLD]]
    if count > len(told):
        told.append(f"{count - len(told):,} more")
    return " and ".join([", ".join(told[:-1]), told[-1]] if len(told) > 1 else told)


def _at(event: Mention) -> str:
    return f" at {event.time}" if event.time is not None else f" by {listed([event.id])}"


def _told_cone(name: str, cone: Cone) -> Iterator[str]:
    if not cone.count:
        return
    direct = [f"{each.event.told()} by {each.how}" for each in cone.direct]
    yield f"Direct {name}: {_listed(direct, cone.direct_count, quoted=True)}"
    beyond = [each for each in cone.nearest if each.steps > 1]
    if beyond:
        yield f"Nearest {name} beyond these:"
    for each in beyond:
        steps = counted(each.steps, "step", "steps")
        yield f"  {each.event.told()}: {steps}, by {each.how} through {listed([each.via])}"


def _told_message(message: Message) -> Iterator[str]:
    kind = "control message" if message.control else "message"
    sent = "there is no send of it" if message.sent is None else f"sent by {message.sent.told()}"
    yield f"The {kind} {listed([message.id])}: {sent}."
    for what, events in (("Received", message.received), ("Delivered", message.delivered)):
        if events:
            yield f"{what} by {_listed([each.told() for each in events], len(events), quoted=True)}"
    for wait in message.waits[:TOLD]:
        yield f"  {wait.told(message.id)}"
    if len(message.waits) > TOLD:
        yield f"  and {len(message.waits) - TOLD:,} more"


def fault_lines(faults: Iterable[Fault]) -> Iterator[str]:
    """The faults of a log, each with the first examples."""
    for fault in faults:
        yield f"FAULT: {fault.kind}: {fault.count:,}"
        yield from (f"  {place}" for place in fault.places)
        if fault.count > len(fault.places):
            yield f"  and {fault.count - len(fault.places):,} more"


def _plain(value: Any) -> Any:
    """A value as JSON has it; what JSON does not have becomes a string."""
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)

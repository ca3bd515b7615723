"""Schedules, version 1: an exact interleaving that a person can read and write.

A schedule says who sends what, and in which order messages are received, lost or doubled, clocks tick and
null messages go out. It names no protocol: the same file shows what each of them does with it. `replay`
runs one and gives the trace.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as changed
from pathlib import Path
from random import Random
from typing import Any

import yaml

from causet.errors import BadInput, quote
from causet.model import Event, Processes, System, is_text, mask, members, only
from causet.plain import load_plain, load_yaml
from causet.protocols import OPTION_NAMES, Options, Outcome, Packet, Process, Protocol
from causet.simulate.record import Recorder, sent_in
from causet.topology import build_system

MOST_STEPS = 1_000_000
ROUNDS = 1_000
"""Rounds after which `drain` gives up."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step; `kind` says which fields count."""

    kind: str
    message: str = ""
    process: int | None = None
    targets: Processes = 0
    group: int | None = None
    now: int = 0
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Schedule:
    system: System
    steps: tuple[Step, ...]
    options: Mapping[str, Any] = field(default_factory=dict)


# Reading and writing.


def read_schedule(path: Path) -> Schedule:
    """The schedule in a YAML or JSON file; BadInput names what is wrong with it, and where."""
    content = load_plain(path)
    try:
        return schedule_of(content)
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from None


def parse(text: str) -> Schedule:
    """The schedule of a text in YAML."""
    return schedule_of(load_yaml(text))


def schedule_of(data: object) -> Schedule:
    """The schedule of a plain value."""
    if not isinstance(data, dict):
        raise BadInput("a schedule is a mapping with `processes` and `steps`")
    unknown = set(map(str, data)) - {"processes", "groups", "links", "separators", "options", "steps"}
    if unknown:
        raise BadInput(f"unknown field {quote(min(unknown))}")
    for name in ("processes", "steps"):
        if not isinstance(data.get(name), list) or not data[name]:
            raise BadInput(f"field `{name}`: a list with at least one entry is needed")
    options = data.get("options") or {}
    if not isinstance(options, dict):
        raise BadInput("field `options`: a mapping of names to values is needed")
    for name in map(str, options):
        if name not in OPTION_NAMES:
            known = ", ".join(OPTION_NAMES)
            raise BadInput(f"field `options`: no protocol has an option {quote(name)}; there are {known}")
    if len(data["steps"]) > MOST_STEPS:
        raise BadInput(f"field `steps`: {len(data['steps'])} steps, more than {MOST_STEPS}")
    system = build_system(data["processes"], data.get("groups"), data.get("links"), data.get("separators"))
    reader = _Steps(system)
    return Schedule(system, tuple(map(reader.read, data["steps"])), {str(k): v for k, v in options.items()})


class _Steps:
    """Reads steps one after the other, and knows what was sent and received so far."""

    FIELDS: Mapping[str, frozenset[str]] = {
        "send": frozenset({"from", "to", "group"}),
        "receive": frozenset({"at"}),
        "lose": frozenset({"at"}),
        "duplicate": frozenset({"at"}),
        "tick": frozenset({"at"}),
        "null": frozenset({"group"}),
        "corrupt": frozenset({"at", "seed"}),
    }

    def __init__(self, system: System) -> None:
        self._system = system
        self._position = 0
        self._copies: dict[tuple[str, int], int] = {}
        self._sent: dict[str, Processes] = {}

    def read(self, data: Any) -> Step:
        self._position += 1
        try:
            return self._read(data)
        except BadInput as error:
            raise BadInput(f"step {self._position}: {error}") from None

    def _read(self, data: Any) -> Step:
        if data == "drain":
            return Step("drain")
        if not isinstance(data, dict):
            raise BadInput(
                f"{quote(data)} is no step; steps are mappings such as {{receive: a, at: p2}}, or drain"
            )
        if None in data:  # YAML reads a bare `null` as no value
            data = {"null" if key is None else key: value for key, value in data.items()}
        kinds = [kind for kind in self.FIELDS if kind in data]
        if len(kinds) != 1:
            raise BadInput(f"a step has exactly one of {', '.join(self.FIELDS)}")
        kind = kinds[0]
        unknown = set(map(str, data)) - self.FIELDS[kind] - {kind}
        if unknown:
            raise BadInput(f"a {kind} step has no field {quote(min(unknown))}")
        return getattr(self, f"_{kind}")(data)  # type: ignore[no-any-return]

    def _process(self, data: Mapping[str, Any], name: str) -> int:
        if name not in data:
            raise BadInput(f"field `{name}` is missing")
        return self._named(data[name])

    def _named(self, value: Any) -> int:
        if not isinstance(value, str):
            raise BadInput(f"{quote(value)} is no process name")
        return self._system.index(value)

    def _name(self, value: Any) -> str:
        if not isinstance(value, str) or not is_text(value) or len(value) > 1000:
            raise BadInput(f"{quote(value)} is no message name")
        return value

    def _group(self, value: Any) -> int:
        if not isinstance(value, str):
            raise BadInput(f"{quote(value)} is no group name")
        return self._system.group_index(value)

    def _send(self, data: Mapping[str, Any]) -> Step:
        name = self._name(data["send"])
        if name in self._sent:
            raise BadInput(f"message {quote(name)} is sent twice")
        if "!" in name:
            raise BadInput(f"message {quote(name)}: names with ! are for control messages")
        sender = self._process(data, "from")
        if ("to" in data) == ("group" in data):
            raise BadInput("a send has either `to` or `group`")
        group = None
        if "group" in data:
            group = self._group(data["group"])
            targets = self._system.groups[group].members & ~only(sender)
            if not self._system.groups[group].members >> sender & 1:
                raise BadInput(f"{self._system.name(sender)} is no member of {data['group']}")
        else:
            if not isinstance(data["to"], list) or not data["to"]:
                raise BadInput("field `to`: a list with at least one process is needed")
            targets = mask(map(self._named, data["to"]))
            if targets.bit_count() < len(data["to"]):
                raise BadInput("field `to`: a process is there twice")
            if targets == only(sender):
                raise BadInput("a message to nobody but its sender is not sent")
        self._sent[name] = targets
        for target in members(targets):
            self._copies[name, target] = 1
        return Step("send", name, sender, targets, group)

    def _copy(self, data: Mapping[str, Any], kind: str, change: int) -> Step:
        """A step that concerns one copy of a message; control messages are known only at the replay."""
        name = self._name(data[kind])
        at = self._process(data, "at")
        if "!" not in name:
            if name not in self._sent:
                raise BadInput(f"message {quote(name)} was never sent before this")
            if (name, at) not in self._copies:
                raise BadInput(f"message {quote(name)} is not addressed to {self._system.name(at)}")
            if self._copies[name, at] < 1:
                raise BadInput(
                    f"no copy of {quote(name)} is under way to {self._system.name(at)} any more "
                    "(received or lost before)"
                )
            self._copies[name, at] += change
        return Step(kind, name, at)

    def _receive(self, data: Mapping[str, Any]) -> Step:
        return self._copy(data, "receive", -1)

    def _lose(self, data: Mapping[str, Any]) -> Step:
        return self._copy(data, "lose", -1)

    def _duplicate(self, data: Mapping[str, Any]) -> Step:
        return self._copy(data, "duplicate", +1)

    def _whole(self, value: Any, what: str) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise BadInput(f"{what} must be a whole number from 0, not {quote(value)}")
        if value >= 2**62:
            raise BadInput(f"{what} is too large: below 2^62 is needed")
        return value

    def _tick(self, data: Mapping[str, Any]) -> Step:
        now = self._whole(data["tick"], "the clock")
        return Step("tick", process=self._process(data, "at") if "at" in data else None, now=now)

    def _null(self, data: Mapping[str, Any]) -> Step:
        process = self._process(data, "null")
        group = None
        if "group" in data:
            group = self._group(data["group"])
            if not self._system.groups[group].members >> process & 1:
                raise BadInput(f"{self._system.name(process)} is no member of {data['group']}")
        return Step("null", process=process, group=group)

    def _corrupt(self, data: Mapping[str, Any]) -> Step:
        seed = self._whole(data.get("seed", 0), "the seed")
        if "at" in data:
            step = self._copy({"corrupt": data["corrupt"], "at": data["at"]}, "corrupt", 0)
            return changed(step, seed=seed)
        return Step("corrupt", process=self._process(data, "corrupt"), seed=seed)


def write_schedule(schedule: Schedule) -> str:
    """The schedule as YAML, one step per line."""
    system = schedule.system
    lines = [f"processes: {_inline(list(system.processes))}"]
    if system.groups:
        lines.append(f"groups: {_inline({g.name: system.names(g.members) for g in system.groups})}")
    if system.links is not None:
        pairs = [
            [system.name(p), system.name(q)]
            for p in range(system.size)
            for q in members(system.links[p])
            if p < q
        ]
        lines.append(f"links: {_inline(pairs)}")
    if system.separators:
        named = [
            {
                "members": system.names(s.members),
                "forward": system.names(s.forward),
                "backward": system.names(s.backward),
            }
            for s in system.separators
        ]
        lines.append(f"separators: {_inline(named)}")
    if schedule.options:
        lines.append(f"options: {_inline(dict(schedule.options))}")
    lines.append("steps:")
    lines += [f"  - {_inline(_plain_step(step, system))}" for step in schedule.steps]
    return "\n".join(lines) + "\n"


def _inline(value: Any) -> str:
    """A value on one line of YAML; letters as they are, but line breaks of any kind escaped."""
    if isinstance(value, tuple):
        value = list(value)
    readable = not any(mark in repr(value) for mark in ("\\x", "\\u"))
    text: str = yaml.safe_dump(
        value, default_flow_style=True, sort_keys=False, width=10**9, allow_unicode=readable
    )
    return text.removesuffix("\n").removesuffix("\n...")


def _plain_step(step: Step, system: System) -> Any:
    at = {} if step.process is None else {"at": system.name(step.process)}
    match step.kind:
        case "drain":
            return "drain"
        case "send":
            sent: dict[str, Any] = {"send": step.message, "from": system.name(step.process or 0)}
            if step.group is not None:
                return sent | {"group": system.groups[step.group].name}
            return sent | {"to": system.names(step.targets)}
        case "tick":
            return {"tick": step.now} | at
        case "null":
            name = {"null": system.name(step.process or 0)}
            return name if step.group is None else name | {"group": system.groups[step.group].name}
        case "corrupt" if not step.message:
            return {"corrupt": system.name(step.process or 0), "seed": step.seed}
        case "corrupt":
            return {"corrupt": step.message} | at | {"seed": step.seed}
        case _:
            return {step.kind: step.message} | at


# Replaying.


@dataclass(frozen=True, slots=True)
class Replay:
    """What a schedule led to."""

    events: tuple[Event, ...]
    held: tuple[str, ...]
    """What each message that is still held waits for, in words."""
    under_way: tuple[tuple[str, str], ...]
    """(process, message) of copies that were never received; null messages do not count."""
    lost: frozenset[tuple[str, str]]
    """(process, message) of copies that the network lost, or that were refused."""
    refused: tuple[tuple[str, str], ...]
    """(process, message) of copies that were refused: they came too late, or cannot be."""
    bears_loss: bool
    """Whether the protocol promises to go on when messages are lost."""
    rounds: int
    """Null rounds and ticks that `drain` needed."""
    processes: tuple[Process, ...]

    @property
    def stuck(self) -> bool:
        """Everything has arrived, and a message is still held.

        What the network lost is nobody's fault, unless the protocol promises to bear it.
        """
        return bool(self.held) and not self.under_way and (self.bears_loss or not self.lost)

    @property
    def broken(self) -> tuple[str, ...]:
        """What processes promise of their own state and do not keep."""
        found = [(process, process.protocol.broken()) for process in self.processes]
        return tuple(f"{p.system.name(p.me)}: {text}" for p, text in found if text is not None)


def replay(schedule: Schedule, kind: type[Protocol], options: Options) -> Replay:
    """Run a schedule under a protocol."""
    run = _Run(schedule.system, kind, options)
    for position, step in enumerate(schedule.steps, 1):
        run.now += 1
        try:
            run.take(step)
        except BadInput as error:
            raise BadInput(f"step {position}: {error}") from None
    return run.result()


@dataclass(slots=True)
class _Copy:
    sent_at: int
    packet: Packet
    target: int


class _Run:
    def __init__(self, system: System, kind: type[Protocol], options: Options) -> None:
        self.now = 0  # steps so far, and the rounds of `drain`
        self._system = system
        self._kind = kind
        self._processes = [Process(kind, p, system, options) for p in range(system.size)]
        self._clocks = [0] * system.size
        self._copies: dict[tuple[str, int], list[_Copy]] = {}
        self._names: dict[tuple[int, int], str] = {}
        self._events: list[Event] = []
        self._recorder = Recorder(system, self._events.append, self._name)
        self._lost: set[tuple[str, str]] = set()
        self._refused: list[tuple[str, str]] = []
        self._bears_loss = kind.promises(options).loss
        self._rounds = 0

    def _name(self, packet: Packet) -> str:
        if packet.control:
            return packet.id(self._system)
        return self._names[packet.sender, packet.number]

    def take(self, step: Step) -> None:
        process = step.process
        match step.kind:
            case "drain":
                self._drain()
            case "send":
                assert process is not None
                self._send(step, process)
            case "tick":
                for p in range(self._system.size) if process is None else [process]:
                    self._tick(p, step.now)
            case "null":
                assert process is not None
                self._follow(process, self._processes[process].null(step.group), sending=True)
            case "corrupt" if not step.message:
                assert process is not None
                self._processes[process].corrupt(Random(step.seed))
                self._recorder.noted(process, "state damaged", self.now)
            case _:
                assert process is not None
                self._one_copy(step, process)

    def _send(self, step: Step, sender: int) -> None:
        process = self._processes[sender]
        self._names[sender, process.sent + 1] = step.message
        group = -1 if step.group is None else step.group
        self._follow(sender, process.send(step.targets, group), sending=True)

    def _one_copy(self, step: Step, target: int) -> None:
        copies = self._copies.get((step.message, target))
        if not copies:
            if target in (sender for (sender, _), name in self._names.items() if name == step.message):
                return  # the sender's own copy, which was delivered at the send
            raise BadInput(f"no copy of {quote(step.message)} is under way to {self._system.name(target)}")
        copy = copies[0]
        if step.kind == "receive":
            self._receive(copies.pop(0))
        elif step.kind == "lose":
            copies.pop(0)
            self._lost.add((self._system.name(target), step.message))
        elif step.kind == "duplicate":
            copies.append(copy)
        else:
            protocol = self._processes[target].protocol
            stamp = protocol.corrupt_stamp(copy.packet.stamp, Random(step.seed))
            copies[0] = _Copy(copy.sent_at, changed(copy.packet, stamp=stamp), target)

    def _receive(self, copy: _Copy) -> None:
        self._recorder.received(copy.target, copy.packet, self.now)
        outcome = self._processes[copy.target].receive(copy.packet)
        if outcome.refused:  # too late, or impossible: as good as lost
            self._refused.append((self._system.name(copy.target), self._name(copy.packet)))
            self._lost.add(self._refused[-1])
        self._follow(copy.target, outcome)

    def _tick(self, process: int, now: int) -> None:
        outcome = self._processes[process].tick(now)
        self._clocks[process] = now
        self._follow(process, outcome)

    def _follow(self, process: int, outcome: Outcome, *, sending: bool = False) -> None:
        """Tell what a step did: a send comes before what it frees, else deliveries come first."""
        if not sending:
            self._tell_delivered(process, outcome)
        for sent in sent_in(outcome.packets, self._processes[process].protocol):
            self._recorder.sent(sent, self.now)
            name = self._name(sent.packets[0])
            for packet in sent.packets:
                for target in members(packet.to):
                    copies = self._copies.setdefault((name, target), [])
                    copies.append(_Copy(self.now, packet, target))
        if sending:
            self._tell_delivered(process, outcome)

    def _tell_delivered(self, process: int, outcome: Outcome) -> None:
        for packet in outcome.delivered:
            self._recorder.delivered(process, packet, self.now)

    def _drain(self) -> None:
        for _ in range(ROUNDS):
            while under_way := [copy for copies in self._copies.values() for copy in copies]:
                self._copies.clear()
                for copy in sorted(under_way, key=lambda c: (c.sent_at, c.packet.sender, c.target)):
                    self._receive(copy)
            if not any(process.held() for process in self._processes):
                return
            if not (self._kind.nulls or self._kind.clocked):
                return
            self._rounds += 1
            self.now += 1
            if self._kind.nulls:
                for p, process in enumerate(self._processes):
                    self._follow(p, process.null(), sending=True)
            if self._kind.clocked:
                for p, now in enumerate(self._clocks):
                    self._tick(p, now + 1)

    def result(self) -> Replay:
        lines = (line for process in self._processes if process.held() for line in process.waiting())
        names = {
            f"{self._system.name(sender)}:{number}": name for (sender, number), name in self._names.items()
        }
        held = tuple(renamed(line, names) for line in lines)
        return Replay(
            tuple(self._events),
            held,
            tuple(
                (self._system.name(copy.target), name)
                for (name, _), copies in self._copies.items()
                for copy in copies
                if not copy.packet.control
            ),
            frozenset(self._lost),
            tuple(self._refused),
            self._bears_loss,
            self._rounds,
            tuple(self._processes),
        )


def names_in(schedule: Schedule) -> dict[str, str]:
    """What the messages `p1:1`, `p1:2`, … are called in a schedule."""
    sent: dict[int, int] = {}
    names = {}
    for step in schedule.steps:
        if step.kind == "send" and step.process is not None:
            sent[step.process] = sent.get(step.process, 0) + 1
            names[f"{schedule.system.name(step.process)}:{sent[step.process]}"] = step.message
    return names


def renamed(text: str, names: Mapping[str, str]) -> str:
    """A text about messages `p1:2` with the names that a schedule has for them."""
    if not names:
        return text
    ids = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    return re.sub(rf"(?<![\w:!])(?:{ids})(?![\w])", lambda found: names[found[0]], text)


def letters(count: int) -> Sequence[str]:
    """Names for messages: a … z, then a1 …"""
    return [chr(ord("a") + i % 26) + (str(i // 26) if i >= 26 else "") for i in range(count)]

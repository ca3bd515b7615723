"""A schedule run under a protocol, step by step: the trace, and what is left at the end."""

from __future__ import annotations

from dataclasses import dataclass
from dataclasses import replace as changed
from random import Random

from causet.errors import BadInput, quote
from causet.holdback import Key
from causet.model import Event, System, members
from causet.protocols import Options, Outcome, Packet, Process, Protocol
from causet.simulate.record import Recorder, sent_in
from causet.simulate.schedule import Schedule, Step, renamed

ROUNDS = 1_000
"""Rounds after which `drain` gives up."""


@dataclass(frozen=True, slots=True)
class Replay:
    """What a schedule led to."""

    events: tuple[Event, ...]
    held: tuple[str, ...]
    """What each message that is still held waits for, in words."""
    own: frozenset[tuple[str, str]]
    """(process, message) of own copies that are still held."""
    unmerged: frozenset[tuple[str, str]]
    """(process, message) of what a process sent or received without merging it."""
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

        Where the network lost messages, that is a fault only of a protocol that promises to bear it.
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
        self._unmerged: set[tuple[str, str]] = set()
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
        number = process.sent + process.put_off + 1
        self._names[sender, number] = step.message
        self._merge(step, sender, (sender, number))
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
            self._merge(step, target, copy.packet.key)
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

    def _merge(self, step: Step, process: int, key: Key) -> None:
        if not step.merge:
            self._processes[process].protocol.leave_out(key)
            self._unmerged.add((self._system.name(process), step.message))

    def _receive(self, copy: _Copy) -> None:
        self._recorder.received(copy.target, copy.packet, self.now)
        outcome = self._processes[copy.target].receive(copy.packet)
        if outcome.refused:  # too late, or impossible: as good as lost
            self._refused.append((self._system.name(copy.target), self._name(copy.packet)))
            self._lost.add(self._refused[-1])
        self._follow(copy.target, outcome)

    def _tick(self, process: int, now: int) -> None:
        if self._kind.clocked and now < self._clocks[process]:
            raise BadInput(f"a clock that shows {self._clocks[process]} cannot go to {now}")
        outcome = self._processes[process].tick(now)
        self._clocks[process] = now
        self._follow(process, outcome)

    def _follow(self, process: int, outcome: Outcome, *, sending: bool = False) -> None:
        """Record what a step did: a send comes before what it frees, else deliveries come first."""
        if not sending:
            self._record_delivered(process, outcome)
        for sent in sent_in(outcome.packets, self._processes[process].protocol):
            self._recorder.sent(sent, self.now)
            name = self._name(sent.packets[0])
            for packet in sent.packets:
                for target in members(packet.to):
                    copies = self._copies.setdefault((name, target), [])
                    copies.append(_Copy(self.now, packet, target))
        if sending:
            self._record_delivered(process, outcome)

    def _record_delivered(self, process: int, outcome: Outcome) -> None:
        for packet in outcome.delivered:
            self._recorder.delivered(process, packet, self.now)

    def _drain(self) -> None:
        for _ in range(ROUNDS):
            while under_way := [copy for copies in self._copies.values() for copy in copies]:
                self._copies.clear()
                for copy in sorted(under_way, key=lambda c: (c.sent_at, c.packet.sender, c.target)):
                    self._receive(copy)
            if not any(process.held() or process.put_off for process in self._processes):
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

    def _told(self, event: Event) -> Event:
        """An event of the trace, which says in words what its reader could not know."""
        apart = event.kind in ("send", "deliver") and (event.process, event.message) in self._unmerged
        return changed(event, text="not merged") if apart else event

    def result(self) -> Replay:
        lines = (line for process in self._processes if process.held() for line in process.waiting())
        names = {
            f"{self._system.name(sender)}:{number}": name for (sender, number), name in self._names.items()
        }
        held = tuple(renamed(line, names) for line in lines)
        own = frozenset(
            (self._system.name(p), self._name(packet))
            for p, process in enumerate(self._processes)
            for packet in process.held()
            if packet.sender == p
        )
        return Replay(
            tuple(map(self._told, self._events)),
            held,
            own,
            frozenset(self._unmerged),
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

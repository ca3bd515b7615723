"""Random traffic between the processes of one protocol, step by step, with a trace for the oracle.

Tests of the papers look into the processes between the steps; the simulator of the product does not let them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, NamedTuple

from causet.model import Event, System, members
from causet.protocols import PROTOCOLS, Outcome, Packet, Process, Protocol, make_options

ROUNDS = 50
"""Rounds of null messages after which `finish` gives up."""


class Arrival(NamedTuple):
    """A packet that was received, and what came of it."""

    target: int
    packet: Packet
    outcome: Outcome


class Traffic:
    """The processes, what is under way between them, and what has happened so far."""

    def __init__(
        self,
        protocol: str | type[Protocol],
        system: System,
        seed: int = 0,
        settings: Mapping[str, Any] | None = None,
        as_printed: Sequence[str] = (),
    ) -> None:
        kind = PROTOCOLS[protocol] if isinstance(protocol, str) else protocol
        options, _ = make_options(kind, system, settings or {}, as_printed)
        self.random = Random(seed)
        self.system = system
        self.processes = [Process(kind, p, system, options) for p in range(system.size)]
        self.under_way: list[tuple[Packet, int]] = []
        self.events: list[Event] = []
        self.unmerged: set[tuple[str, str]] = set()
        """(process, message) of what was sent or received without being merged"""
        self._seq = [0] * system.size

    def _happened(self, p: int, kind: str, packet: Packet, to: tuple[str, ...] | None = None) -> None:
        self._seq[p] += 1
        name = self.system.name(p)
        message = packet.id(self.system)
        self.events.append(Event(name, self._seq[p], kind, message=message, to=to, control=packet.control))

    def _follow(self, p: int, outcome: Outcome) -> None:
        for packet in outcome.packets:
            self._happened(p, "send", packet, tuple(self.system.names(packet.to)))
            self.under_way += [(packet, target) for target in members(packet.to)]
        for packet in outcome.delivered:
            self._happened(p, "deliver", packet)

    def _leave_out(self, p: int, key: tuple[int, int]) -> None:
        self.processes[p].protocol.leave_out(key)
        self.unmerged.add((self.system.name(p), f"{self.system.name(key[0])}:{key[1]}"))

    def send(self, p: int, targets: int, group: int = -1, *, merge: bool = True) -> Packet:
        """Process p sends a message to these targets."""
        if not merge:
            self._leave_out(p, (p, self.processes[p].sent + 1))
        outcome = self.processes[p].send(targets, group)
        self._follow(p, outcome)
        return outcome.packets[0]

    def receive(self, *, fifo: bool = False, merge: bool = True) -> Arrival:
        """Any of the packets under way arrives; with `fifo` the oldest of its sender, group and target."""
        position = self.random.randrange(len(self.under_way))
        if fifo:
            links = [(packet.sender, packet.group, target) for packet, target in self.under_way]
            position = links.index(links[position])
        packet, target = self.under_way.pop(position)
        if not merge:
            self._leave_out(target, (packet.sender, packet.number))
        self._happened(target, "receive", packet)
        outcome = self.processes[target].receive(packet)
        self._follow(target, outcome)
        return Arrival(target, packet, outcome)

    def null(self, p: int) -> tuple[Packet, ...]:
        """Process p sends null messages in all its groups."""
        outcome = self.processes[p].null()
        self._follow(p, outcome)
        return outcome.packets

    def finish(self) -> None:
        """Everything arrives; protocols with null messages send them until nothing is held."""
        for _ in range(ROUNDS):
            while self.under_way:
                self.receive()
            if not any(process.held() for process in self.processes) or not self._nulls:
                return
            for p in range(self.system.size):
                self.null(p)

    @property
    def _nulls(self) -> bool:
        return self.processes[0].protocol.nulls

    @property
    def stuck(self) -> bool:
        """Everything has arrived, and a message is still held."""
        return not self.under_way and any(process.held() for process in self.processes)

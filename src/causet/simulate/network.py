"""A seeded discrete-event network: the same seed gives the same run, byte for byte.

Time is a number; a delay is drawn for each copy. Clocks (for protocols that have them) tick once per unit of
time, each process ahead of time by an offset of at most `skew` ticks. Null messages go out by time-silence.
An `Observer` is called for everything that happens; the network itself judges nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from itertools import count
from random import Random
from typing import Any

from causet.errors import BadInput
from causet.model import System, members
from causet.protocols import Options, Outcome, Packet, Process, Protocol
from causet.protocols.base import ClockOptions
from causet.simulate.record import Observer, Sent, sent_in
from causet.simulate.workload import Workload, stream

MOST_TIMERS = 10**8
"""More ticks and time-silences than this are not waited for."""
PATIENCE = 200
"""Null rounds or ticks after the last message without a delivery, before a run is given up as stuck."""


@dataclass(frozen=True, slots=True)
class Network:
    """What the network does to messages."""

    fifo: bool = False
    loss: float = 0.0
    duplication: float = 0.0
    corruption: float = 0.0
    skew: float | None = None
    """The largest offset of a clock; by default as much as the protocol bears."""

    def check(self, kind: type[Protocol], options: Options) -> None:
        """BadInput if this protocol does not claim to bear such a network."""
        for name in ("loss", "duplication", "corruption"):
            if not 0 <= getattr(self, name) < 1:
                raise BadInput(f"{name} = {getattr(self, name)}: a probability from 0 to below 1 is needed")
        if self.skew is not None and not 0 <= self.skew < 1e6:
            raise BadInput(f"skew = {self.skew}: the offset of a clock cannot be negative or endless")
        if self.skew and not kind.clocked:
            raise BadInput(f"{kind.name} has no clock, so there is no skew to simulate")
        promises = kind.promises(options)
        for name, bears in (("loss", promises.loss), ("corruption", promises.damage)):
            if getattr(self, name) and not bears:
                raise BadInput(f"{kind.name} does not claim to bear {name}; merge does, with the clock kn")
        if self.skew and isinstance(options, ClockOptions) and self.skew > options.epsilon:
            raise BadInput(
                f"skew = {self.skew}: clocks that differ by more than ε = {options.epsilon} are beyond what "
                f"{kind.name} claims to bear; raise epsilon"
            )


@dataclass(slots=True)
class Tally:
    """What the network counts."""

    messages: int = 0
    deliveries: int = 0
    control: int = 0
    lost: int = 0
    """copies lost by the network, or refused"""
    refused: int = 0
    """copies refused because they came too late or were damaged"""
    outstanding: int = 0
    """copies not delivered yet and not lost"""
    time: float = 0.0
    entries: int = 0
    most_entries: int = 0
    bytes: int = 0
    most_bytes: int = 0
    broken: str | None = None
    """the first promise about its own state that a process broke"""

    def sent(self, sent: Sent) -> None:
        self.messages += 1
        self.entries += sent.entries
        self.bytes += sent.bytes
        self.most_entries = max(self.most_entries, sent.entries)
        self.most_bytes = max(self.most_bytes, sent.bytes)


def simulate(
    kind: type[Protocol],
    options: Options,
    workload: Workload,
    network: Network = Network(),
    observers: Sequence[Observer] = (),
    progress: Callable[[int], None] | None = None,
) -> tuple[Tally, list[Process]]:
    """Run a workload under a protocol; what was counted, and the processes as they ended."""
    network.check(kind, options)
    _check_timers(kind, options, workload)
    run = _Run(kind, options, workload, network, observers, progress)
    run.run()
    return run.tally, run.processes


def _check_timers(kind: type[Protocol], options: Options, workload: Workload) -> None:
    """BadInput where messages are so rare that the clocks in between would tick for ever."""
    timers = workload.messages / workload.rate / options.interval
    if timers > MOST_TIMERS:
        raise BadInput(
            f"rate = {workload.rate}: with so few messages the clocks of {kind.name} would go off about "
            f"{timers:.0e} times in between, and at most {MOST_TIMERS:.0e} times are simulated"
        )


class _Run:
    def __init__(
        self,
        kind: type[Protocol],
        options: Options,
        workload: Workload,
        network: Network,
        observers: Sequence[Observer],
        progress: Callable[[int], None] | None,
    ) -> None:
        system: System = workload.system
        self.tally = Tally()
        self.processes = [Process(kind, p, system, options) for p in range(system.size)]
        self._kind = kind
        self._workload = workload
        self._network = network
        self._observers = observers
        self._progress = progress
        self._queue: list[tuple[float, int, int, Any]] = []  # (time, order, process, packet or timer)
        self._order = count()
        self._faults = stream(workload.seed, "faults")
        self._control_delays = stream(workload.seed, "control")
        self._link_free: dict[tuple[int, int], float] = {}
        self._last_sent: dict[tuple[int, int], float] = {}
        self._idle = 0  # timers since the last delivery
        self._under_way = 0  # copies of messages that have not arrived
        self._twins: dict[tuple[int, object], int] = {}  # copies of what was doubled; 0 when it is settled
        self._options = options
        self._start_timers(stream(workload.seed, "clocks"))

    def _start_timers(self, draw: Random) -> None:
        if isinstance(self._options, ClockOptions):
            skew = self._options.epsilon if self._network.skew is None else self._network.skew
            for p in range(len(self.processes)):
                offset = draw.uniform(0, skew)
                first = int(offset) + 1
                self._after(p, self.processes[p].tick(int(offset)), 0.0)
                self._push(first - offset, p, _Tick(first))
        if self._kind.nulls:
            for p in range(len(self.processes)):
                self._push(draw.uniform(0, self._options.interval), p, _SILENCE)

    def _push(self, time: float, process: int, what: Packet | _Tick | _Silence) -> None:
        heappush(self._queue, (time, next(self._order), process, what))

    def run(self) -> None:
        queue, tally = self._queue, self.tally
        sends = iter(self._workload)
        sending = next(sends, None)
        timers_stop = False
        while queue or sending is not None:
            if sending is not None and (not queue or sending.time <= queue[0][0]):
                process = self.processes[sending.sender]
                outcome = process.send(sending.targets, sending.group)
                self._after(sending.sender, outcome, sending.time, sending.delays)
                if self._progress is not None and tally.messages % 1000 == 0:
                    self._progress(tally.messages)
                sending = next(sends, None)
                continue
            time, _, p, what = heappop(queue)
            if isinstance(what, Packet):
                self._under_way -= not what.control
                self._receive(p, what, time)
                continue
            if sending is None:
                given_up = self._idle > self._most_idle() and not self._under_way
                timers_stop = timers_stop or not tally.outstanding or given_up
                if timers_stop:
                    continue
            self._idle += 1
            if isinstance(what, _Tick):
                self._after(p, self.processes[p].tick(what.now), time)
                self._push(time + 1, p, _Tick(what.now + 1))
            else:
                self._silence(p, time)

    def _most_idle(self) -> int:
        longest = self._options.longest_wait if isinstance(self._options, ClockOptions) else 0
        return (PATIENCE + longest) * len(self.processes)

    def _silence(self, p: int, time: float) -> None:
        """Time-silence: a null message in each group where one is owed and nothing was sent lately."""
        process = self.processes[p]
        interval = self._options.interval
        for x in process.protocol.null_groups():
            recent = self._last_sent.get((p, x), -interval)
            if recent + interval <= time and process.protocol.owes_null(x):
                self._after(p, process.null(x), time)
        self._push(time + interval, p, _SILENCE)

    def _receive(self, p: int, packet: Packet, time: float) -> None:
        for observer in self._observers:
            observer.received(p, packet, time)
        outcome = self.processes[p].receive(packet)
        if outcome.refused:
            self.tally.refused += 1
            self._lost(p, packet, time)
        self._after(p, outcome, time)

    def _lost(self, p: int, packet: Packet, time: float) -> None:
        """A copy is gone; the message is lost here only if no other copy came or is still to come."""
        twin = (p, packet.key)
        left = self._twins.get(twin)
        if left is not None:
            if left != 1:
                self._twins[twin] = max(left - 1, 0)
                return
            self._twins[twin] = 0
        self.tally.lost += 1
        if not packet.control:
            self.tally.outstanding -= 1
        for observer in self._observers:
            observer.lost(p, packet, time)

    def _after(self, p: int, outcome: Outcome, time: float, delays: tuple[float, ...] | None = None) -> None:
        """Send what a step of process p sends, and tell what it delivers.

        A message comes before what its send frees; else deliveries come first, for they cause the rest.
        """
        tally, protocol = self.tally, self.processes[p].protocol
        if delays is None:
            self._tell_delivered(p, outcome, time)
        if outcome.packets:
            for sent in sent_in(outcome.packets, protocol):
                first = sent.packets[0]
                if first.control:
                    tally.control += 1
                else:
                    tally.sent(sent)
                if first.group >= 0:
                    self._last_sent[p, first.group] = time
                for observer in self._observers:
                    observer.sent(sent, time)
                self._travel(sent, time, delays)
        if delays is not None:
            self._tell_delivered(p, outcome, time)
        if tally.broken is None:
            tally.broken = protocol.broken()

    def _tell_delivered(self, p: int, outcome: Outcome, time: float) -> None:
        tally = self.tally
        for packet in outcome.delivered:
            tally.deliveries += 1
            tally.outstanding -= 1
            if (p, packet.key) in self._twins:
                self._twins[p, packet.key] = 0
            tally.time = time
            self._idle = 0
            for observer in self._observers:
                observer.delivered(p, packet, time)

    def _travel(self, sent: Sent, time: float, delays: tuple[float, ...] | None) -> None:
        network, control = self._network, sent.packets[0].control
        known: dict[int, float] = {}
        if delays is not None and not control:
            known = dict(zip(members(sent.packets[0].targets), delays, strict=True))
        for packet in sent.packets:
            for target in members(packet.to):
                delay = known[target] if known else self._workload.delay(self._control_delays)
                if not control:
                    self.tally.outstanding += 1
                copies = 1
                if network.loss and self._faults.random() < network.loss:
                    self._lost(target, packet, time)
                    continue
                if network.duplication and self._faults.random() < network.duplication:
                    copies = 2
                if copies > 1:
                    self._twins[target, packet.key] = copies
                for number in range(copies):
                    arrival = time + delay * (1 + number)
                    if network.fifo:
                        link = (packet.sender, target)
                        arrival = max(arrival, self._link_free.get(link, 0.0))
                        self._link_free[link] = arrival
                    self._under_way += not control
                    self._push(arrival, target, self._damaged(packet, arrival))

    def _damaged(self, packet: Packet, arrival: float) -> Packet:
        if not self._network.corruption or self._faults.random() >= self._network.corruption:
            return packet
        protocol = self.processes[packet.sender].protocol
        for observer in self._observers:
            observer.damaged(packet, arrival)
        return replace(packet, stamp=protocol.corrupt_stamp(packet.stamp, self._faults))


@dataclass(frozen=True, slots=True)
class _Tick:
    now: int


class _Silence:
    """The timer of time-silence."""


_SILENCE = _Silence()

"""A seeded discrete-event network: the same seed gives the same run, byte for byte.

Time is a number; a delay is drawn for each copy. Clocks (for protocols that have them) tick once per unit of
time, each process ahead of time by an offset of at most `skew` ticks. Null messages go out by time-silence.
Faults touch messages, the state of processes, and a clock; what a damaged process loses counts as lost.
An `Observer` is called for everything that happens; the network itself judges nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from itertools import count
from random import Random
from typing import Any

from causet.errors import BadInput
from causet.holdback import Key
from causet.model import System, members, only
from causet.protocols import Options, Outcome, Packet, Process, Protocol
from causet.protocols.base import ClockOptions
from causet.simulate.damage import damage
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
    state_corruption: float = 0.0
    """Probability, for each tick of a process, that its state is damaged before the next one."""
    skew_fault: tuple[int, float] | None = None
    """A process whose clock is wrong by more than ε for that long, once, and then right again."""

    def check(self, kind: type[Protocol], options: Options) -> None:
        """BadInput if this protocol does not claim to bear such a network."""
        for name in ("loss", "duplication", "corruption", "state_corruption"):
            if not 0 <= getattr(self, name) < 1:
                raise BadInput(
                    f"{_said(name)} = {getattr(self, name)}: a probability from 0 to below 1 is needed"
                )
        if self.skew is not None and not 0 <= self.skew < 1e6:
            raise BadInput(f"skew = {self.skew}: the offset of a clock cannot be negative or endless")
        if self.skew and not kind.clocked:
            raise BadInput(f"{kind.name} has no clock, so there is no skew to simulate")
        promises = kind.promises(options)
        bears = {"loss": promises.loss}
        for name in ("loss", "corruption", "state_corruption", "skew_fault"):
            if getattr(self, name) and not bears.get(name, promises.damage):
                could = kind.PROMISES.loss if name == "loss" else kind.PROMISES.damage
                unable = f"{kind.name} with these options" if could else kind.name
                able = "merge with the clock kn" if could else "merge"
                raise BadInput(f"{unable} does not claim to bear {_said(name)}; {able} does")
        if self.skew_fault is not None and not 0 < self.skew_fault[1] < 1e6:
            raise BadInput(
                f"skew-fault: a clock is wrong for a time above 0 and below 1e6, not {self.skew_fault[1]:g}"
            )
        if self.skew and isinstance(options, ClockOptions) and self.skew > options.epsilon:
            raise BadInput(
                f"skew = {self.skew}: clocks that differ by more than ε = {options.epsilon} are beyond what "
                f"{kind.name} claims to bear; raise epsilon"
            )


def _said(name: str) -> str:
    """A fault, in the words of the commands."""
    return {"state_corruption": "corrupt-state", "skew_fault": "skew-fault"}.get(name, name)


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
    faults: int = 0
    """damages to the state of a process, and ticks at which a clock was wrong"""
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
        self._asked: list[deque[tuple[float, ...]]] = [deque() for _ in self.processes]
        """for each process the delays of the messages that it was asked to send and has not sent"""
        self._twins: dict[tuple[int, object], int] = {}  # copies of what was doubled; 0 when it is settled
        self._options = options
        # Copies that are to be delivered, where damage to a process may lose them without a word.
        self._expected: set[tuple[int, Key]] | None = set() if network.state_corruption else None
        self._held: list[list[Packet]] = [[] for _ in self.processes]
        """for each process what it held when it was damaged, until its next tick"""
        self._wrong = _WrongClock(network, options, workload) if network.skew_fault else None
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

    def _push(self, time: float, process: int, what: Packet | _Tick | _Silence | _Damage) -> None:
        heappush(self._queue, (time, next(self._order), process, what))

    def run(self) -> None:
        queue, tally = self._queue, self.tally
        sends = iter(self._workload)
        sending = next(sends, None)
        timers_stop = False
        while queue or sending is not None:
            if sending is not None and (not queue or sending.time <= queue[0][0]):
                self._asked[sending.sender].append(sending.delays)
                outcome = self.processes[sending.sender].send(sending.targets, sending.group)
                self._after(sending.sender, outcome, sending.time, sending=True)
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
                done = not tally.outstanding and not any(process.put_off for process in self.processes)
                timers_stop = timers_stop or done or given_up
                if timers_stop:
                    continue
            if what is _DAMAGE:
                self._damage(p, time)
                continue
            self._idle += 1
            if isinstance(what, _Tick):
                self._tick(p, what.now, time)
                if sending is not None and self._faults_at_random(self._network.state_corruption):
                    self._push(time + self._faults.random(), p, _DAMAGE)
            else:
                self._silence(p, time)

    def _tick(self, p: int, now: int, time: float) -> None:
        shown = now
        if self._wrong is not None and p == self._wrong.process and self._wrong.begins <= time:
            if time < self._wrong.ends:
                shown = max(0, now + self._wrong.by)
                self._fault(time)
            else:  # right again, which is the last of the fault
                self._wrong = None
                self._fault(time)
        self._after(p, self.processes[p].tick(shown), time)
        held, self._held[p] = self._held[p], []
        for packet in held:
            self._dropped(p, packet, time)
        self._push(time + 1, p, _Tick(now + 1))

    def _faults_at_random(self, rate: float) -> bool:
        return bool(rate) and self._faults.random() < rate

    def _damage(self, p: int, time: float) -> None:
        self._held[p] += self.processes[p].held()
        damage(self.processes[p], self._faults, reuse_numbers=False)
        self._fault(time)

    def _fault(self, time: float) -> None:
        self.tally.faults += 1
        for observer in self._observers:
            observer.fault(time)

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
        self._lost_without_a_word(p, packet, time)

    def _lost_without_a_word(self, p: int, packet: Packet, time: float) -> None:
        """A damaged process may take a message for a duplicate that it is not."""
        expected = self._expected is not None and (p, packet.key) in self._expected
        if expected and not self.processes[p].holds(packet):
            self._lost(p, packet, time)

    def _dropped(self, p: int, packet: Packet, time: float) -> None:
        """A damaged process may drop a message that it held, if it can see that it was touched."""
        twin = (p, packet.key)
        if twin in self._twins:  # of those that came, the others were duplicates
            self._twins[twin] = 1 + sum(
                each == p and isinstance(what, Packet) and what.key == packet.key
                for _, _, each, what in self._queue
            )
        self._lost_without_a_word(p, packet, time)

    def _expect(self, p: int, packet: Packet) -> None:
        self.tally.outstanding += 1
        if self._expected is not None:
            self._expected.add((p, packet.key))

    def _over(self, p: int, packet: Packet) -> None:
        """A copy was delivered or lost; after damage one can be delivered again."""
        if self._expected is None:
            self.tally.outstanding -= 1
        elif (p, packet.key) in self._expected:
            self._expected.remove((p, packet.key))
            self.tally.outstanding -= 1

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
            self._over(p, packet)
        for observer in self._observers:
            observer.lost(p, packet, time)

    def _after(self, p: int, outcome: Outcome, time: float, *, sending: bool = False) -> None:
        """Send what a step of process p sends, and tell what it delivers.

        A message comes before what its send frees; else deliveries come first, for they cause the rest.
        """
        tally, protocol = self.tally, self.processes[p].protocol
        if not sending:
            self._tell_delivered(p, outcome, time)
        if outcome.packets:
            for sent in sent_in(outcome.packets, protocol):
                first = sent.packets[0]
                delays = None
                if first.control:
                    tally.control += 1
                else:
                    tally.sent(sent)
                    if sent.stays:
                        self._expect(p, first)
                    delays = self._asked[p].popleft() if self._asked[p] else ()
                if first.group >= 0:
                    self._last_sent[p, first.group] = time
                for observer in self._observers:
                    observer.sent(sent, time)
                self._travel(sent, time, delays)
                if sent.stays and not sending:
                    self._lost_without_a_word(p, first, time)
        if sending:
            self._tell_delivered(p, outcome, time)
            for packet in outcome.packets[:1]:
                if packet.targets >> p & 1:
                    self._lost_without_a_word(p, packet, time)
        if tally.broken is None:
            tally.broken = protocol.broken()

    def _tell_delivered(self, p: int, outcome: Outcome, time: float) -> None:
        tally = self.tally
        for packet in outcome.delivered:
            tally.deliveries += 1
            self._over(p, packet)
            if (p, packet.key) in self._twins:
                self._twins[p, packet.key] = 0
            tally.time = time
            self._idle = 0
            for observer in self._observers:
                observer.delivered(p, packet, time)

    def _travel(self, sent: Sent, time: float, delays: tuple[float, ...] | None) -> None:
        network, control = self._network, sent.packets[0].control
        known: dict[int, float] = {}
        if delays is not None:
            others = sent.packets[0].targets & ~only(sent.packets[0].sender)
            known = dict(zip(members(others), delays, strict=self._expected is None))
        for packet in sent.packets:
            for target in members(packet.to):
                delay = known.get(target)
                if delay is None:
                    delay = self._workload.delay(self._control_delays)
                if not control:
                    self._expect(target, packet)
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


class _Damage:
    """The moment at which the state of a process is damaged."""


_SILENCE, _DAMAGE = _Silence(), _Damage()


class _WrongClock:
    """A clock that is wrong by more than ε, ahead or behind, somewhere in the first half of the run."""

    def __init__(self, network: Network, options: Options, workload: Workload) -> None:
        assert network.skew_fault is not None and isinstance(options, ClockOptions)
        draw = stream(workload.seed, "wrong clock")
        self.process, length = network.skew_fault
        run = workload.messages / workload.rate / workload.system.size
        self.begins = draw.uniform(0, run / 2)
        self.ends = self.begins + length
        most = 4 * options.epsilon + options.delta + 10
        self.by = draw.choice([-1, 1]) * draw.randint(options.epsilon + 1, most)

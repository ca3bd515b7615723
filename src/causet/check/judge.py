"""Judges a run while it happens: causal order, and how much later than necessary each message came.

Precedence is kept as sets of messages, one bit per message: for each process what it has sent or delivered,
for each message what its sender had. A delivery is out of order when something in the message's past is
addressed to the same process and still pending there. Exact for any number of messages; the price per
delivery is a few passes over a bit set, so a run of 100,000 messages takes seconds.

A message could have been delivered as soon as it and all in its past that is addressed to the same process
had been received; what it waited beyond that was added by the protocol. Shares nothing with the protocols
but the packets' sender, number and targets.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from causet.check.agreement import Disagreement, disagreements
from causet.model import System, members
from causet.protocols import Packet
from causet.simulate.record import Observer, Sent


class OutOfOrder(NamedTuple):
    process: str
    delivered: str
    before: str


@dataclass(slots=True)
class Findings:
    violations: int = 0
    first: list[OutOfOrder] = field(default_factory=list)
    """the first hundred"""
    excused: int = 0
    """out of order or twice too, but so soon after damage that the protocol may still be recovering"""
    duplicates: int = 0
    certain: int = 0
    """deliveries for which there is no excuse: all but those that came while damage may show"""
    judged: int = 0
    added: float = 0.0
    """time added over as early as possible, in all"""
    most_added: float = 0.0


class Judge(Observer):
    """An observer of a run.

    `recovery` is how long damage to a message may show in deliveries, where a protocol claims to bear it.
    With `one_order` it also judges whether all processes deliver in one order, own copies included.
    """

    def __init__(self, system: System, recovery: float = 0.0, *, one_order: bool = False) -> None:
        self._recovery = recovery
        self._recovered = -1.0  # until then damage may show
        self._again = 0  # deliveries of what was delivered, in that time
        self._findings = Findings()
        self._system = system
        # Deliveries before a cause: (message, causes that had not come, excused), per process. A cause that
        # turns out to be lost is taken out again, for no process could have waited for it.
        self._suspects: list[list[tuple[int, int, bool]]] = [[] for _ in system.processes]
        self._bits: dict[tuple[int, int], int] = {}
        self._ids: list[tuple[int, int]] = []
        self._pasts: dict[int, int] = {}
        self._copies: dict[int, int] = {}
        self._known = [0] * system.size
        self._pending = [0] * system.size  # addressed here, sent, not delivered
        self._missing = [0] * system.size  # addressed here, sent, not received
        self._possible: list[dict[int, float]] = [{} for _ in system.processes]
        self._watching: list[dict[int, list[int]]] = [{} for _ in system.processes]
        # what each process delivered while no damage may show, where agreement is judged
        self._orders: list[list[int]] | None = [[] for _ in system.processes] if one_order else None

    @property
    def findings(self) -> Findings:
        """What was found so far."""
        found = self._findings
        found.violations, found.excused = 0, self._again
        found.first = []
        for process, suspects in enumerate(self._suspects):
            for message, before, excused in suspects:
                found.excused += excused
                found.violations += not excused
                if not excused and len(found.first) < 100:
                    found.first.append(self._told(process, message, before))
        return found

    @property
    def disagreements(self) -> tuple[Disagreement, ...] | None:
        """Where processes disagree about the order, but for what came while damage may show; None if that is
        not judged."""
        if self._orders is None:
            return None
        orders = {
            self._system.name(process): map(self._name, order) for process, order in enumerate(self._orders)
        }
        return disagreements(orders)

    def sent(self, sent: Sent, time: float) -> None:
        packet = sent.packets[0]
        if packet.control:
            return
        message = len(self._ids)
        bit = 1 << message
        sender = packet.sender
        self._bits[sender, packet.number] = message
        self._ids.append((sender, packet.number))
        self._pasts[message] = self._known[sender]
        self._known[sender] |= bit
        travelling = sent.travelling
        self._copies[message] = travelling.bit_count() + sent.stays
        for target in members(travelling):
            self._pending[target] |= bit
            self._missing[target] |= bit
        if sent.stays:
            self._pending[sender] |= bit
            self._watch(sender, message, time)

    def received(self, process: int, packet: Packet, time: float) -> None:
        if packet.control:
            return
        message = self._bits[packet.sender, packet.number]
        self._missing[process] &= ~(1 << message)
        if self._pending[process] >> message & 1:
            self._watch(process, message, time)
        for waiting in self._watching[process].pop(message, ()):
            self._watch(process, waiting, time)

    def _watch(self, process: int, message: int, time: float) -> None:
        """Note when the message could be delivered, or which missing cause to look at next."""
        past = self._pasts.get(message)
        if past is None or message in self._possible[process]:
            return
        missing = past & self._missing[process]
        if missing:
            first = (missing & -missing).bit_length() - 1
            self._watching[process].setdefault(first, []).append(message)
        else:
            self._possible[process][message] = time

    def delivered(self, process: int, packet: Packet, time: float) -> None:
        message = self._bits[packet.sender, packet.number]
        bit = 1 << message
        if not self._pending[process] & bit:
            if time <= self._recovered:
                self._again += 1
            else:
                self._findings.duplicates += 1
            return
        if time > self._recovered:
            self._findings.certain += 1
            if self._orders is not None:
                self._orders[process].append(message)
        past = self._pasts[message]
        before = past & self._pending[process]
        if before:
            self._suspects[process].append((message, before, time <= self._recovered))
        self._pending[process] &= ~bit
        self._known[process] |= past | bit
        possible = self._possible[process].pop(message, None)
        if possible is not None:
            self._findings.judged += 1
            self._findings.added += time - possible
            self._findings.most_added = max(self._findings.most_added, time - possible)
        self._done(message)

    def lost(self, process: int, packet: Packet, time: float) -> None:
        if packet.control:
            return
        message = self._bits[packet.sender, packet.number]
        bit = 1 << message
        if self._pending[process] & bit:
            self._pending[process] &= ~bit
            self._missing[process] &= ~bit
            self._possible[process].pop(message, None)
            self._done(message)
            for waiting in self._watching[process].pop(message, ()):
                self._watch(process, waiting, time)
            left = ((late, before & ~bit, excused) for late, before, excused in self._suspects[process])
            self._suspects[process] = [suspect for suspect in left if suspect[1]]

    def damaged(self, packet: Packet, arrival: float) -> None:
        self.fault(arrival)

    def fault(self, time: float) -> None:
        self._recovered = max(self._recovered, time + self._recovery)

    def _done(self, message: int) -> None:
        """A copy is over; with the last one the message's past need not be kept."""
        self._copies[message] -= 1
        if not self._copies[message]:
            del self._copies[message], self._pasts[message]

    def _told(self, process: int, message: int, before: int) -> OutOfOrder:
        cause = (before & -before).bit_length() - 1
        return OutOfOrder(self._system.name(process), self._name(message), self._name(cause))

    def _name(self, message: int) -> str:
        sender, number = self._ids[message]
        return f"{self._system.name(sender)}:{number}"

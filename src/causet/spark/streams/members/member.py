"""One member: a process of a protocol that is told by rows what it receives and sends, and delivers.

A row is a packet, in wire form, at its process. One from another process is received. One of its own says
that the process sent it, elsewhere: a message, or a null message. The member sends the same again, which
teaches it what sending taught the process, and must give the same packet, byte for byte; else the row is not
what this process sent here, and nothing has changed. What the protocol sends by itself in answer to something
(extra messages, copies) follows from the rest: its rows are only counted.

A row with a `seq` is taken in its turn: 1, 2, 3, …; one that comes early waits. A row without is received as
it comes. An own packet needs a `seq`: what it says of the past depends on what came before.

The member sends nothing to anybody, and needs no row for what it holds but the row's place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from causet.delivery import AHEAD
from causet.errors import BadInput, BadStamp, CausetError
from causet.holdback import HoldBackFull
from causet.model import only
from causet.protocols import Outcome, Packet, Process
from causet.simulate.packets import Fields, fields_of
from causet.simulate.systems import Setting
from causet.spark.streams.members.settings import SEQ
from causet.status import CONTROL, DELIVERED, DIVERTED, DUPLICATES, REFUSED, SENT

NO_TURN = (
    f"is a packet of its own process, and has no {SEQ}, which says what the process knew when it sent it"
)
OTHER = "is not what its process sends here: what it received or sent before is missing, or different"
ALONE = "is addressed to its sender alone"
FAR = f"has a {SEQ} more than {AHEAD:,} above what has come so far"
DAMAGED = "the state of a member is damaged; begin with a new checkpoint and a new sink"

Name = tuple[int, int, int, int]
"""Of a message that waits: its sender, number, and place in its link."""


class Came(NamedTuple):
    """A row that came."""

    receiver: str | None
    seq: int | None
    data: bytes
    """the packet; empty if there is none"""
    place: int
    problem: str | None = None
    """why it is no packet"""


class Row(NamedTuple):
    """A row that is held."""

    place: int
    arrival: int
    """in ms"""


class Early(NamedTuple):
    """A row that waits for its turn."""

    row: Row
    data: bytes
    """empty if it was diverted, and only its turn is still to come"""


@dataclass(frozen=True, slots=True)
class Delivery:
    place: int
    receiver: str
    index: int
    waited: float
    """seconds"""


@dataclass
class Effects:
    """What became of rows."""

    delivered: list[Delivery] = field(default_factory=list)
    problems: dict[int, str] = field(default_factory=dict)
    """of diverted rows, by their places"""
    counts: Counter[str] = field(default_factory=Counter)

    def divert(self, place: int, problem: str) -> None:
        self.problems[place] = problem
        self.counts[DIVERTED] += 1
        self.counts[REFUSED] += 1


class Member:
    """A process, and the places of the rows that it holds."""

    def __init__(self, setting: Setting, me: int) -> None:
        self.process = Process(setting.kind, me, setting.system, setting.options)
        self.name = setting.system.name(me)
        self.rows: dict[Name, Row] = {}
        """the messages that the protocol holds"""
        self.early: dict[int, Early] = {}
        self.turn = 1
        """the `seq` of what is taken next"""
        self.index = 0
        """deliveries so far"""

    def __len__(self) -> int:
        """How many rows are held."""
        return sum(1 for _ in self.held())

    def held(self) -> Iterator[Row]:
        yield from self.rows.values()
        yield from (early.row for early in self.early.values() if early.data)

    # ------------------------------------------------------------ rows that come

    def take(self, came: Came, now: int, effects: Effects) -> None:
        """Take a row, and all whose turn it is then."""
        row = Row(came.place, now)
        if came.problem is not None:
            effects.divert(row.place, came.problem)
        if came.seq is None:
            if came.problem is None:
                self._packet(came.data, row, now, effects, in_turn=False)
            return
        if came.seq < self.turn or came.seq in self.early:
            effects.counts[DUPLICATES] += came.problem is None
        elif came.seq > self.turn + AHEAD:
            if came.problem is None:
                effects.divert(row.place, FAR)
        else:
            self.early[came.seq] = Early(row, b"" if came.problem is not None else came.data)
        while (early := self.early.pop(self.turn, None)) is not None:
            self.turn += 1
            if early.data:
                self._packet(early.data, early.row, now, effects, in_turn=True)

    def _packet(self, data: bytes, row: Row, now: int, effects: Effects, *, in_turn: bool) -> None:
        try:
            fields = fields_of(data, self.process.protocol)
            if fields[0] == self.process.me:
                self._own(fields, row, now, effects, in_turn)
            else:
                self._received(self.process.load_packet(fields), row, now, effects)
        except BadStamp as error:
            effects.divert(row.place, f"has no packet for {self.name}: {error}")

    def _received(self, packet: Packet, row: Row, now: int, effects: Effects) -> None:
        if self.process.came(packet):
            effects.counts[DUPLICATES] += 1
            return
        try:
            outcome = self.process.receive(packet)
        except HoldBackFull as error:
            raise BadInput(str(error)) from None
        if packet.control:
            effects.counts[CONTROL] += 1
        else:
            self.rows[_name(packet)] = row
        self._delivered(outcome, now, effects)

    def _own(self, fields: Fields, row: Row, now: int, effects: Effects, in_turn: bool) -> None:
        """A packet that the process sent: it is sent again, and must be the same."""
        process, protocol = self.process, self.process.protocol
        _, number, targets, _, _, group, control, *_ = fields
        if not in_turn:
            effects.divert(row.place, NO_TURN)
            return
        if not targets & ~only(process.me):
            effects.divert(row.place, ALONE)
            return
        if number <= (protocol.controls if control else process.sent):
            effects.counts[CONTROL if control else DUPLICATES] += 1
            return
        before = process.snapshot()
        try:
            if not control:
                outcome = process.send(targets, group)
            elif protocol.nulls and group >= 0:
                outcome = process.null(group)
            else:
                outcome = Outcome((), ())
        except HoldBackFull as error:
            raise BadInput(str(error)) from None
        except CausetError as error:
            effects.divert(row.place, f"is not what {self.name} sends: {error}")
            return
        if fields not in map(process.save_packet, outcome.packets):
            self.process = process.restored(before)
            effects.divert(row.place, OTHER)
            return
        if outcome.delivered[:1] and outcome.delivered[0].sender == process.me:
            self.rows[_name(outcome.delivered[0])] = row
        else:
            effects.counts[CONTROL if control else SENT] += 1
        self._delivered(outcome, now, effects)

    def _delivered(self, outcome: Outcome, now: int, effects: Effects) -> None:
        for packet in outcome.delivered:
            row = self.rows.pop(_name(packet))
            waited = max(now - row.arrival, 0) / 1000
            effects.delivered.append(Delivery(row.place, self.name, self.index, waited))
            effects.counts[DELIVERED] += 1
            self.index += 1

    def settle(self, effects: Effects) -> None:
        """Count what the process has dropped: two packets of a link with the number of one message."""
        gone = self.rows.keys() - set(map(_name, self.process.held()))
        for name in gone:
            del self.rows[name]
        effects.counts[DUPLICATES] += len(gone)

    # ------------------------------------------------------------ why

    def waiting(self) -> Iterator[tuple[Row, str, str]]:
        """The rows that are held: the message, and what it needs, in words. First those that wait for their
        turn: what comes before them may be what the others need."""
        system = self.process.system
        for seq, early in sorted(self.early.items()):
            if early.data:
                yield early.row, f"{SEQ} {seq}", f"{SEQ} {self.turn} of {self.name}"
        for packet, needs in self.process.needs():
            if not packet.control:
                yield self.rows[_name(packet)], packet.id(system), needs

    # ------------------------------------------------------------ saved and loaded

    def saved(self) -> tuple[Any, ...]:
        """All of it as a plain value."""
        rows = tuple(sorted((*name, *row) for name, row in self.rows.items()))
        early = tuple(sorted((seq, *each.row, each.data) for seq, each in self.early.items()))
        return (self.process.snapshot(), self.index, self.turn, rows, early)

    @classmethod
    def loaded(cls, setting: Setting, me: int, saved: Any) -> Member:
        """The member of a plain value; BadInput if no member gives it."""
        member = cls(setting, me)
        try:
            snapshot, member.index, member.turn, rows, early = saved
            member.process = member.process.restored(snapshot)
            member.rows = {(s, n, o, x): Row(place, arrival) for s, n, o, x, place, arrival in rows}
            member.early = {seq: Early(Row(place, at), data) for seq, place, at, data in early}
            sound = member.saved() == saved and member.rows.keys() == set(map(_name, member.process.held()))
        except (CausetError, ValueError, TypeError, LookupError, AttributeError, ArithmeticError):
            sound = False
        if not sound:
            raise BadInput(DAMAGED)
        return member

    def move(self, places: dict[int, int]) -> None:
        """Rows have moved: old place → new place."""
        self.rows = {name: row._replace(place=places[row.place]) for name, row in self.rows.items()}
        self.early = {
            seq: each._replace(row=each.row._replace(place=places[each.row.place])) if each.data else each
            for seq, each in self.early.items()
        }


def _name(packet: Packet) -> Name:
    return (packet.sender, packet.number, packet.order, packet.stream)

"""One member: a process of a protocol that is told by rows what it receives and sends, and delivers.

A row is a packet, in wire form, at its process. One from another process is received. One of its own says
that the process sent it, elsewhere: a message, or a null message. The member sends the same again, which
teaches it what sending taught the process, and must give the same packet, byte for byte; else the row is not
what this process sent here, and nothing has changed. What the protocol sends by itself in answer to something
(extra messages, copies) follows from the rest: its rows are only counted.

A row with a `seq` is taken in its turn: 1, 2, 3, …; one that comes early waits. A row without is received as
it comes. An own packet needs a `seq`: what it says of the past depends on what came before. Of rows with one
`seq` the first that is a sound packet has the turn, and those that are not are diverted; a packet that comes
when its turn is over, and has not been received, is received as one without a `seq`.

The member sends nothing to anybody, and needs no row for what it holds but the row's place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
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
        self.early: dict[int, list[Early]] = {}
        """by `seq`; none if what came is diverted, and only its turn is still to come"""
        self.turn = 1
        """the `seq` of what is taken next"""
        self.index = 0
        """deliveries so far"""

    def __len__(self) -> int:
        """How many rows are held."""
        return sum(1 for _ in self.held())

    def held(self) -> Iterator[Row]:
        yield from self.rows.values()
        yield from (early.row for same in self.early.values() for early in same)

    # ------------------------------------------------------------ rows that come

    def take(self, same: Iterable[Came], now: int, effects: Effects) -> None:
        """Take the rows with one `seq`, or without, and all whose turn it is then."""
        for came in same:
            if came.problem is not None:
                effects.divert(came.place, came.problem)
            if came.seq is None:
                if came.problem is None:
                    self._packet(came.data, Row(came.place, now), now, effects, in_turn=False)
            elif came.seq < self.turn:
                if came.problem is None:
                    self._belated(came.data, Row(came.place, now), now, effects, self._sent())
            elif came.seq > self.turn + AHEAD:
                if came.problem is None:
                    effects.divert(came.place, FAR)
            else:
                these = self.early.setdefault(came.seq, [])
                if came.problem is None:
                    if any(early.data == came.data for early in these):
                        effects.counts[DUPLICATES] += 1
                    else:
                        these.append(Early(Row(came.place, now), came.data))
        while (turn := self.early.pop(self.turn, None)) is not None:
            self.turn += 1
            self._in_turn(turn, now, effects)

    def _in_turn(self, same: Iterable[Early], now: int, effects: Effects) -> None:
        """Take the rows of a turn: the first that is a sound packet, and then the others."""
        before = self._sent()
        taken = False
        for row, data in sorted(same, key=lambda early: early.data):
            if taken:
                self._belated(data, row, now, effects, before)
            else:
                taken = self._packet(data, row, now, effects, in_turn=True)

    def _belated(self, data: bytes, row: Row, now: int, effects: Effects, sent: tuple[int, int]) -> None:
        """A packet whose turn is over.

        :param sent: how much the process has sent of which it may be a copy.
        """
        try:
            fields = self._fields(data)
            if fields[0] != self.process.me:
                self._received(self.process.load_packet(fields), row, now, effects)
            elif fields[1] > sent[fields[6]]:
                effects.divert(row.place, OTHER)
            else:
                effects.counts[DUPLICATES] += 1
        except BadStamp as error:
            effects.divert(row.place, self._no_packet(error))

    def _packet(self, data: bytes, row: Row, now: int, effects: Effects, *, in_turn: bool) -> bool:
        """Take a packet; False if it is diverted."""
        try:
            fields = self._fields(data)
            if fields[0] == self.process.me:
                return self._own(fields, row, now, effects, in_turn)
            self._received(self.process.load_packet(fields), row, now, effects)
            return True
        except BadStamp as error:
            effects.divert(row.place, self._no_packet(error))
            return False

    def _no_packet(self, error: BadStamp) -> str:
        return f"has no packet for {self.name}: {error}"

    def _fields(self, data: bytes) -> Fields:
        """The fields of a packet; BadStamp if it, or its stamp, is not one of this protocol."""
        protocol = self.process.protocol
        fields = fields_of(data, protocol)
        protocol.decode(fields[4])
        return fields

    def _sent(self) -> tuple[int, int]:
        """How many messages the process has sent, and how many control messages."""
        return self.process.sent, self.process.protocol.controls

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

    def _own(self, fields: Fields, row: Row, now: int, effects: Effects, in_turn: bool) -> bool:
        """A packet that the process sent: it is sent again, and must be the same. False if it is diverted."""
        process, protocol = self.process, self.process.protocol
        _, number, targets, _, _, group, control, *_ = fields
        if not in_turn:
            effects.divert(row.place, NO_TURN)
            return False
        if not targets & ~only(process.me):
            effects.divert(row.place, ALONE)
            return False
        if number <= self._sent()[control]:
            effects.counts[CONTROL if control else DUPLICATES] += 1
            return True
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
            return False
        if fields not in map(process.save_packet, outcome.packets):
            self.process = process.restored(before)
            effects.divert(row.place, OTHER)
            return False
        if outcome.delivered[:1] and outcome.delivered[0].sender == process.me:
            self.rows[_name(outcome.delivered[0])] = row
        else:
            effects.counts[CONTROL if control else SENT] += 1
        self._delivered(outcome, now, effects)
        return True

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
        for seq, same in sorted(self.early.items()):
            for early in same:
                yield early.row, f"{SEQ} {seq}", f"{SEQ} {self.turn} of {self.name}"
        for packet, needs in self.process.needs():
            if not packet.control:
                yield self.rows[_name(packet)], packet.id(system), needs

    # ------------------------------------------------------------ saved and loaded

    def saved(self) -> tuple[Any, ...]:
        """All of it as a plain value."""
        rows = tuple(sorted((*name, *row) for name, row in self.rows.items()))
        early = tuple(sorted(each for seq, same in self.early.items() for each in _saved(seq, same)))
        return (self.process.snapshot(), self.index, self.turn, rows, early)

    @classmethod
    def loaded(cls, setting: Setting, me: int, saved: Any) -> Member:
        """The member of a plain value; BadInput if no member gives it."""
        member = cls(setting, me)
        try:
            snapshot, member.index, member.turn, rows, early = saved
            member.process = member.process.restored(snapshot)
            member.rows = {(s, n, o, x): Row(place, arrival) for s, n, o, x, place, arrival in rows}
            for seq, place, at, data in early:
                same = member.early.setdefault(seq, [])
                if data and all(each.data != data for each in same):
                    same.append(Early(Row(place, at), data))
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
            seq: [each._replace(row=each.row._replace(place=places[each.row.place])) for each in same]
            for seq, same in self.early.items()
        }


def _saved(seq: int, same: Sequence[Early]) -> list[tuple[int, int, int, bytes]]:
    return [(seq, *each.row, each.data) for each in same] or [(seq, 0, 0, b"")]


def _name(packet: Packet) -> Name:
    return (packet.sender, packet.number, packet.order, packet.stream)

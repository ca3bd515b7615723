"""Piggybacking (Birman & Joseph, "Reliable communication in the presence of failures", ACM TOCS 5(1),
1987: the first ISIS), a baseline.

A message carries the messages that precede it, whole. Nothing ever waits: what is missing at the receiver
comes along and is delivered first. A message is carried on until all its targets are known to have
delivered it; then it is over. Stamps also carry what their sender knows to be over, so that others can stop
carrying it too. They grow with the past that is not known to be over, which is why ISIS gave this up.

Sizes count the carried messages' ids, targets and notes of delivery, and what is over; payloads would come
on top.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from causet.holdback import Threshold
from causet.model import Processes, only
from causet.protocols.base import Learned, Packet, Promises, Protocol
from causet.protocols.wire import LARGEST, Reader, Writer

Carried = tuple[int, int, Processes, Processes, int]
"""(sender, number, targets, who is known to have delivered it, group)"""
Over = tuple[tuple[int, int, tuple[int, ...]], ...]
"""(sender, all of its messages up to this number are over, later ones that are), by sender"""
Stamp = tuple[tuple[Carried, ...], Over]
CARRIED: Any = [(), ()]
"""The stamp of a message that came within another one; this very object, not its value, tells it apart."""


class Piggyback(Protocol):
    name = "piggyback"
    title = "messages carry their predecessors (Birman & Joseph 1987; a baseline)"
    PROMISES = Promises(early=True)
    counts = "carried messages"
    sensible = 128

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        # The buffer, in an order that causality allows: (sender, number) → targets, delivered at, group.
        self.buffer: dict[tuple[int, int], tuple[Processes, Processes, int]] = {}
        self.over_to: dict[int, int] = {}
        self.over_beyond: dict[int, set[int]] = {}

    def send(self, number: int, targets: Processes, group: int) -> Learned:
        others = targets & ~only(self.me)
        packet = Packet(self.me, number, targets, others, (self._carried(), self._over()), group)
        self.buffer[self.me, number] = (others, 0, group)
        return Learned([(self.me, number)], (packet,))

    def _carried(self) -> tuple[Carried, ...]:
        return tuple((s, c, A, done, group) for (s, c), (A, done, group) in self.buffer.items())

    def _over(self) -> Over:
        return tuple(
            (s, self.over_to.get(s, 0), tuple(sorted(self.over_beyond.get(s, ()))))
            for s in sorted(self.over_to.keys() | self.over_beyond.keys())
        )

    def unpack(self, packet: Packet) -> Iterable[Packet]:
        """What was carried and is addressed here, then the message; only that one brings the buffer."""
        for s, c, A, _, group in packet.stamp[0]:
            if A >> self.me & 1:
                yield Packet(s, c, A, only(self.me), CARRIED, group)
        yield packet

    def needs(self, packet: Packet) -> Iterable[Threshold]:
        return ()

    def deliver(self, packet: Packet) -> Learned:
        me = only(self.me)
        if packet.stamp is not CARRIED:  # the buffer keeps the carrier's order, which causality allows
            carried, over = packet.stamp
            for s, to, beyond in over:
                self._all_over(s, to)
                for c in beyond:
                    self._is_over(s, c)
            for s, c, A, done, group in carried:
                self._note(s, c, A, done | (me if self.facts.get(s, 0) >= c else 0), group)
            others = packet.targets & ~only(packet.sender)
            self._note(packet.sender, packet.number, others, me, packet.group)
        return Learned([(packet.sender, packet.number)])

    def _note(self, s: int, c: int, A: Processes, done: Processes, group: int) -> None:
        if c <= self.over_to.get(s, 0) or c in self.over_beyond.get(s, ()):
            return
        known = self.buffer.get((s, c))
        if known is not None:
            done |= known[1]
        if A & ~done:
            self.buffer[s, c] = (A, done & A, group)
        else:
            self._is_over(s, c)

    def _all_over(self, s: int, to: int) -> None:
        """All messages of s up to this number are over; costs no more than what is kept of them."""
        if to <= self.over_to.get(s, 0):
            return
        for key in [key for key in self.buffer if key[0] == s and key[1] <= to]:
            del self.buffer[key]
        beyond = {c for c in self.over_beyond.pop(s, ()) if c > to}
        while to + 1 in beyond:
            to += 1
            beyond.discard(to)
        self.over_to[s] = to
        if beyond:
            self.over_beyond[s] = beyond

    def _is_over(self, s: int, c: int) -> None:
        self.buffer.pop((s, c), None)
        to = self.over_to.get(s, 0)
        if c <= to:
            return
        beyond = self.over_beyond.setdefault(s, set())
        beyond.add(c)
        while to + 1 in beyond:
            to += 1
            beyond.discard(to)
        if to:
            self.over_to[s] = to
        if not beyond:
            del self.over_beyond[s]

    def entries(self, packet: Packet) -> int:
        return len(packet.stamp[0])

    def encode(self, stamp: Stamp) -> bytes:
        size = self.system.size
        carried, over = stamp
        writer = Writer(self.name)
        writer.number(len(carried))
        for s, c, A, done, group in carried:
            writer.number(s)
            writer.number(c)
            writer.processes(A, size)
            writer.processes(done, size)
            writer.number(group + 1)
        writer.number(len(over))
        for s, to, beyond in over:
            writer.number(s)
            writer.number(to)
            writer.number(len(beyond))
            for c in beyond:
                writer.number(c - to)
        return writer.done()

    def decode(self, data: bytes) -> Stamp:
        size = self.system.size
        reader = Reader(self.name, data)
        carried: list[Carried] = []
        seen = set()
        for _ in range(reader.number("the number of carried messages", len(data))):
            s = reader.number("a sender", size - 1)
            c = reader.number("a message number")
            A = reader.processes(size, "the targets")
            done = reader.processes(size, "the deliveries")
            group = reader.number("a group", len(self.system.groups)) - 1
            if not c or (s, c) in seen or not A & ~done or done & ~A:
                raise reader.bad("a carried message stands twice, has no number, or is over")
            seen.add((s, c))
            carried.append((s, c, A, done, group))
        over: list[tuple[int, int, tuple[int, ...]]] = []
        for _ in range(reader.number("the number of senders", size)):
            s = reader.number("a sender", size - 1)
            to = reader.number("what is over")
            count = reader.number("the number of messages that are over", len(data))
            beyond = [to + reader.number("a message that is over", LARGEST - to) for _ in range(count)]
            if over and s <= over[-1][0]:
                raise reader.bad("a sender stands twice or out of order")
            if not (to or beyond) or any(b <= a for a, b in zip([to + 1, *beyond], beyond, strict=False)):
                raise reader.bad("what is over is empty or out of order")
            over.append((s, to, tuple(beyond)))
        reader.done()
        return tuple(carried), tuple(over)

    def state(self) -> Any:
        return (self._carried(), self._over())

    def load(self, state: Any) -> None:
        carried, over = state
        self.buffer = {(s, c): (A, done, group) for s, c, A, done, group in carried}
        self.over_to = {s: to for s, to, _ in over if to}
        self.over_beyond = {s: set(beyond) for s, _, beyond in over if beyond}

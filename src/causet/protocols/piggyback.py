"""Piggybacking (Birman & Joseph, "Reliable communication in the presence of failures", ACM TOCS 5(1),
1987: the first ISIS), a baseline.

A message carries the messages that precede it, whole. Nothing ever waits: what is missing at the receiver
comes along and is delivered first. A message is carried on until all its targets are known to have
delivered it; each one that has says so in what it sends. The stamps grow with the past that is not known
to be over, which is why ISIS gave this up.

Sizes count the carried messages' ids, targets and notes of delivery; payloads would come on top.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from causet.holdback import Threshold
from causet.model import Processes, only
from causet.protocols.base import Learned, Packet, Promises, Protocol
from causet.protocols.wire import Reader, Writer

Carried = tuple[int, int, Processes, Processes, int]
"""(sender, number, targets, who is known to have delivered it, group)"""


class Piggyback(Protocol):
    name = "piggyback"
    title = "messages carry their predecessors (Birman & Joseph 1987; a baseline)"
    PROMISES = Promises(early=True)
    counts = "carried messages"
    sensible = 64

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        # The buffer, in an order that causality allows: (sender, number) → targets, delivered at, group.
        self.buffer: dict[tuple[int, int], tuple[Processes, Processes, int]] = {}

    def send(self, number: int, targets: Processes, group: int) -> Learned:
        others = targets & ~only(self.me)
        stamp = tuple((s, c, A, done, g) for (s, c), (A, done, g) in self.buffer.items())
        packet = Packet(self.me, number, others, others, stamp, group)
        self.buffer[self.me, number] = (others, 0, group)
        return Learned([(self.me, number)], (packet,))

    def unpack(self, packet: Packet) -> Iterable[Packet]:
        """What was carried and is addressed here, then the message; only that one brings the buffer."""
        for s, c, A, _, group in packet.stamp:
            if A >> self.me & 1:
                yield Packet(s, c, A, only(self.me), None, group)
        yield packet

    def needs(self, packet: Packet) -> Iterable[Threshold]:
        return ()

    def deliver(self, packet: Packet) -> Learned:
        me = only(self.me)
        if packet.stamp is not None:  # the buffer keeps the carrier's order, which causality allows
            for s, c, A, done, group in packet.stamp:
                self._note(s, c, A, done | (me if self.facts.get(s, 0) >= c else 0), group)
            self._note(packet.sender, packet.number, packet.targets, me, packet.group)
        return Learned([(packet.sender, packet.number)])

    def _note(self, s: int, c: int, A: Processes, done: Processes, group: int) -> None:
        known = self.buffer.get((s, c))
        if known is not None:
            done |= known[1]
        if A & ~done:
            self.buffer[s, c] = (A, done & A, group)
        elif known is not None:
            del self.buffer[s, c]

    def entries(self, packet: Packet) -> int:
        return len(packet.stamp)

    def encode(self, stamp: tuple[Carried, ...]) -> bytes:
        size = self.system.size
        writer = Writer(self.name)
        writer.number(len(stamp))
        for s, c, A, done, group in stamp:
            writer.number(s)
            writer.number(c)
            writer.processes(A, size)
            writer.processes(done, size)
            writer.number(group + 1)
        return writer.done()

    def decode(self, data: bytes) -> tuple[Carried, ...]:
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
        reader.done()
        return tuple(carried)

    def state(self) -> Any:
        return tuple((s, c, A, done, group) for (s, c), (A, done, group) in self.buffer.items())

    def load(self, state: Any) -> None:
        self.buffer = {(s, c): (A, done, group) for s, c, A, done, group in state}

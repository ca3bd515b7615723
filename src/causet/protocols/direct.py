"""Direct dependencies only, for broadcast (a baseline; the stamps of Peterson, Buchholz & Schlichting's
Psync, ACM TOCS 7(3), 1989, with numbers for ids).

When everybody gets everything, a message need name only the causally maximal messages that its sender had
delivered: whatever they name is implied. It waits for exactly those.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from causet.holdback import Fact, Threshold
from causet.model import Processes, only
from causet.protocols.base import Learned, Packet, Promises, Protocol
from causet.protocols.wire import Reader, Writer

Maximal = tuple[tuple[int, int], ...]
"""(sender, number) of the causally maximal messages, by sender."""


class Direct(Protocol):
    name = "direct"
    title = "direct dependencies only, for broadcast (Psync 1989; a baseline)"
    PROMISES = Promises(early=True)
    counts = "message ids"
    broadcast = True

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.maximal: dict[int, int] = {}

    def send(self, number: int, targets: Processes, group: int) -> Learned:
        stamp = tuple(sorted(self.maximal.items()))
        packet = Packet(self.me, number, targets, targets & ~only(self.me), stamp, group)
        self.maximal = {self.me: number}
        return Learned([(self.me, number)], (packet,))

    def needs(self, packet: Packet) -> Iterable[Threshold]:
        return packet.stamp  # type: ignore[no-any-return]

    def deliver(self, packet: Packet) -> Learned:
        for sender, number in packet.stamp:
            if self.maximal.get(sender, 0) <= number:
                self.maximal.pop(sender, None)
        self.maximal[packet.sender] = packet.number
        return Learned([(packet.sender, packet.number)])

    def entries(self, packet: Packet) -> int:
        return len(packet.stamp)

    def encode(self, stamp: Maximal) -> bytes:
        writer = Writer(self.name)
        writer.number(len(stamp))
        for sender, number in stamp:
            writer.number(sender)
            writer.number(number)
        return writer.done()

    def decode(self, data: bytes) -> Maximal:
        size = self.system.size
        reader = Reader(self.name, data)
        stamp: list[tuple[int, int]] = []
        for _ in range(reader.number("the number of messages", size)):
            sender = reader.number("a sender", size - 1)
            number = reader.number("a message number")
            if not number or (stamp and sender <= stamp[-1][0]):
                raise reader.bad("a sender stands twice or out of order, or a number is zero")
            stamp.append((sender, number))
        reader.done()
        return tuple(stamp)

    def state(self) -> Any:
        return tuple(sorted(self.maximal.items()))

    def load(self, state: Any) -> None:
        self.maximal = dict(state)

    def explain(self, fact: Fact, least: int, now: int) -> str:
        return f"{self.system.name(int(str(fact)))}:{least}, not yet delivered"

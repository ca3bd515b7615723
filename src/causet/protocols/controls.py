"""Two controls that must be caught: they show that the checkers can see a bug.

`none` delivers whatever comes, as it comes. `fifo` keeps each link in order and nothing more, which many
take for enough: it breaks as soon as an answer overtakes its question on another link.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from causet.holdback import Fact, Threshold
from causet.model import Processes, members, only
from causet.protocols.base import NOTHING, Learned, Packet, Promises, Protocol
from causet.protocols.wire import Reader, Writer


class Unordered(Protocol):
    """No order at all."""

    name = "none"
    title = "delivers on arrival (a control: must be caught)"
    PROMISES = Promises(causal=False)
    counts = "nothing"
    in_order = False

    def send(self, number: int, targets: Processes, group: int) -> Learned:
        return Learned(packets=(Packet(self.me, number, targets, targets & ~only(self.me), None, group),))

    def needs(self, packet: Packet) -> Iterable[Threshold]:
        return ()

    def deliver(self, packet: Packet) -> Learned:
        return NOTHING

    def entries(self, packet: Packet) -> int:
        return 0

    def encode(self, stamp: None) -> bytes:
        return Writer(self.name).done()

    def decode(self, data: bytes) -> None:
        Reader(self.name, data).done()

    def state(self) -> Any:
        return ()

    def load(self, state: Any) -> None:
        pass


class Fifo(Protocol):
    """Each link in order: message number n of a link waits for message n-1 of that link."""

    name = "fifo"
    title = "each link in order, nothing more (a control: must be caught)"
    PROMISES = Promises(causal=False)
    counts = "the link's number"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.sent_to: dict[int, int] = {}

    def send(self, number: int, targets: Processes, group: int) -> Learned:
        packets = []
        for target in members(targets & ~only(self.me)):
            self.sent_to[target] = self.sent_to.get(target, 0) + 1
            packets.append(Packet(self.me, number, targets, only(target), self.sent_to[target], group))
        return Learned(packets=packets)

    def needs(self, packet: Packet) -> Iterable[Threshold]:
        return ((packet.sender, packet.stamp - 1),)

    def deliver(self, packet: Packet) -> Learned:
        return Learned(((packet.sender, packet.stamp),))

    def entries(self, packet: Packet) -> int:
        return 1

    def encode(self, stamp: int) -> bytes:
        writer = Writer(self.name)
        writer.number(stamp)
        return writer.done()

    def decode(self, data: bytes) -> int:
        reader = Reader(self.name, data)
        number = reader.number("the link number")
        if not number:
            raise reader.bad("link numbers start at 1")
        reader.done()
        return number

    def state(self) -> Any:
        return tuple(sorted(self.sent_to.items()))

    def load(self, state: Any) -> None:
        self.sent_to = dict(state)

    def explain(self, fact: Fact, least: int, now: int) -> str:
        return f"message {least} of the link from {self.system.name(int(str(fact)))}, {now} came so far"

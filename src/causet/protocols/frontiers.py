"""Frontiers per group: causal order where groups overlap (`causet.frontier`), as a protocol among the others.

Groups are open: a sender need not be a member of the groups that it sends to, and a
message can go to several groups at once (`Group.parts`), and is delivered once. A process that is a member of
a group has delivered what it sends there at the send.

A message carries its number in each of its groups and the frontier of every group in its past: an entry for
each message there that no other one covers. That is one entry per group where members answer each other, and
at worst one per group and process.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from causet.frontier import Frontier, Stamped, needs
from causet.holdback import Fact, Threshold
from causet.model import Processes, only
from causet.protocols.base import Learned, Packet, Promises, Protocol
from causet.protocols.wire import LARGEST, Reader, Writer

Entries = Mapping[int, Mapping[int, int]]
"""group → process → number."""


class Frontiers(Protocol):
    name = "frontiers"
    title = "frontiers per group, for open groups that overlap (causet's own)"
    PROMISES = Promises(early=True)
    counts = "entries of frontiers, and numbers"
    grouped = True
    opens = True

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        me = only(self.me)
        whole = [x for x, group in enumerate(self.system.groups) if not group.parts]
        self.reads = frozenset(x for x in whole if self.system.groups[x].members & me)
        self.groups = len(self.system.groups)
        self.known: Frontier[int, int] = Frontier(self.me)

    def send(self, number: int, targets: Processes, group: int) -> Learned:
        stamp = self.known.stamp(self.system.parts(group))
        packet = Packet(self.me, number, targets, targets & ~only(self.me), stamp, group)
        mine = [((self.me, x), n) for x, n in stamp.numbers.items() if x in self.reads]
        return Learned(mine, (packet,))

    def needs(self, packet: Packet) -> Iterable[Threshold]:
        stamp: Stamped = packet.stamp
        return sorted(needs(packet.sender, stamp.numbers, stamp.past, self.reads))

    def deliver(self, packet: Packet) -> Learned:
        stamp: Stamped = packet.stamp
        self.known.saw(packet.sender, *stamp)
        read = [((packet.sender, x), n) for x, n in stamp.numbers.items() if x in self.reads]
        return Learned(read)

    def spent(self) -> bool:
        return any(self.known.next_number(x) > LARGEST for x in self.known.covered)

    def entries(self, packet: Packet) -> int:
        stamp: Stamped = packet.stamp
        return len(stamp.numbers) + sum(map(len, stamp.past.values()))

    def encode(self, stamp: Stamped) -> bytes:
        writer = Writer(self.name)
        writer.number(len(stamp.numbers))
        for x, number in sorted(stamp.numbers.items()):
            writer.number(x)
            writer.number(number)
        _write(writer, stamp.past)
        return writer.done()

    def decode(self, data: bytes) -> Stamped:
        reader = Reader(self.name, data)
        numbers = self._read_map(reader, self.groups, "a group")
        if not numbers:
            raise reader.bad("it has no group")
        past = self._read(reader)
        reader.done()
        return Stamped(numbers, past)

    def _read(self, reader: Reader) -> dict[int, dict[int, int]]:
        found: dict[int, dict[int, int]] = {}
        last = -1
        for _ in range(reader.number("the number of groups", self.groups)):
            x = reader.number("a group", self.groups - 1)
            if x <= last or self.system.groups[x].parts:
                raise reader.bad("a group appears twice or out of order, or is a name for several")
            last = x
            found[x] = self._read_map(reader, self.system.size, "a process")
            if not found[x]:
                raise reader.bad("a group has no entry")
        return found

    @staticmethod
    def _read_map(reader: Reader, size: int, what: str) -> dict[int, int]:
        found: dict[int, int] = {}
        last = -1
        for _ in range(reader.number("the number of entries", size)):
            key = reader.number(what, size - 1)
            if key <= last:
                raise reader.bad(f"{what} appears twice or out of order")
            last = key
            found[key] = reader.number("a message number")
            if not found[key]:
                raise reader.bad("a message has the number 0")
        return found

    def fits(self, packet: Packet) -> bool:
        """The numbers are those of the packet's groups, and no message is its own cause."""
        stamp: Stamped = packet.stamp
        if tuple(stamp.numbers) != self.system.parts(packet.group):
            return False
        mine = ((x, stamp.past.get(x, {}).get(packet.sender, 0)) for x in stamp.numbers)
        return all(before < stamp.numbers[x] for x, before in mine)

    def state(self) -> Any:
        writer = Writer(self.name)
        _write(writer, self.known.frontier)
        _write(writer, self.known.covered)
        return writer.done()

    def load(self, state: Any) -> None:
        reader = Reader(self.name, state)
        self.known = Frontier(self.me)
        self.known.frontier = self._read(reader)
        self.known.covered = self._read(reader)
        reader.done()

    def explain(self, fact: Fact, least: int, now: int) -> str:
        assert isinstance(fact, tuple)
        process, group = self.system.name(fact[0]), self.system.groups[fact[1]].name
        return f"message {least} of {process} in {group}, {now} delivered so far"


def _write(writer: Writer, entries: Entries) -> None:
    writer.number(len(entries))
    for x, numbers in sorted(entries.items()):
        writer.number(x)
        writer.number(len(numbers))
        for p, number in sorted(numbers.items()):
            writer.number(p)
            writer.number(number)

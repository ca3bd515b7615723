"""The optimal algorithm (Kshemkalyani & Singhal, "Necessary and sufficient conditions on information for
causal message ordering and their optimal implementation", Distributed Computing 11(2), 1998), a baseline.

A process keeps a log of messages (sender, number) with the destinations for which they still matter: where
it is neither known that the message was delivered (Propagation Constraint I) nor that something that will
be delivered later takes care of it (II). Each destination gets its own stamp. An entry without destinations
is kept while it is its sender's latest: that it is empty is knowledge too, and lets others forget.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from causet.holdback import Fact, Threshold
from causet.model import Processes, members, only
from causet.protocols.base import Learned, Packet, Promises, Protocol
from causet.protocols.wire import Reader, Writer

Log = dict[int, dict[int, Processes]]
"""sender → number → destinations for which the message still matters; numbers rise."""


class Optimal(Protocol):
    name = "optimal"
    title = "necessary and sufficient information (Kshemkalyani & Singhal 1998; a baseline)"
    PROMISES = Promises(early=True)
    counts = "message ids and destinations"
    sensible = 256

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.LOG: Log = {}

    def send(self, number: int, targets: Processes, group: int) -> Learned:
        """SEND: one stamp per destination; what this message takes care of is not carried on."""
        others = targets & ~only(self.me)
        packets = []
        for target in members(others):
            keep = only(target)
            stamp: Log = {}
            for s, entries in self.LOG.items():
                latest = max(entries)
                carried = {
                    c: dests & ~others | dests & keep
                    for c, dests in entries.items()
                    if c == latest or dests & ~others or dests & keep
                }
                if carried:
                    stamp[s] = carried
            packets.append(Packet(self.me, number, targets, keep, stamp, group))
        for s, entries in list(self.LOG.items()):
            self.LOG[s] = {c: dests & ~others for c, dests in entries.items()}
            self._purge(s)
        self.LOG.setdefault(self.me, {})[number] = others
        self._purge(self.me)
        return Learned(packets=packets)

    def _purge(self, s: int) -> None:
        """PURGE_NULL_ENTRIES: an entry without destinations goes, unless it is its sender's latest."""
        entries = self.LOG[s]
        latest = max(entries)
        if any(not dests and c != latest for c, dests in entries.items()):
            self.LOG[s] = {c: dests for c, dests in entries.items() if dests or c == latest}

    def needs(self, packet: Packet) -> Iterable[Threshold]:
        """RCV 1: wait for what is destined here too."""
        me = only(self.me)
        stamp = packet.stamp.items()
        return sorted((s, c) for s, entries in stamp for c, dests in entries.items() if dests & me)

    def deliver(self, packet: Packet) -> Learned:
        """RCV 2-5: the message is delivered here; what each side has forgotten, the other may forget."""
        me = only(self.me)
        sender = packet.sender
        for s in packet.stamp.keys() | {sender}:
            theirs = {c: dests & ~me for c, dests in packet.stamp.get(s, {}).items()}
            if s == sender:
                theirs[packet.number] = packet.targets & ~me & ~only(sender)
            mine = self.LOG.get(s)
            self.LOG[s] = theirs if mine is None else _merge(mine, theirs)
            self._purge(s)
        return Learned([(sender, packet.number)])

    def entries(self, packet: Packet) -> int:
        return sum(1 + dests.bit_count() for log in packet.stamp.values() for dests in log.values())

    def encode(self, stamp: Log) -> bytes:
        size = self.system.size
        writer = Writer(self.name)
        writer.number(len(stamp))
        for s, entries in sorted(stamp.items()):
            writer.number(s)
            writer.number(len(entries))
            for c, dests in sorted(entries.items()):
                writer.number(c)
                writer.processes(dests, size)
        return writer.done()

    def decode(self, data: bytes) -> Log:
        size = self.system.size
        reader = Reader(self.name, data)
        stamp: Log = {}
        last = -1
        for _ in range(reader.number("the number of senders", size)):
            s = reader.number("a sender", size - 1)
            entries: dict[int, Processes] = {}
            highest = 0
            for _ in range(reader.number("the number of messages", len(data))):
                c = reader.number("a message number")
                if c <= highest:
                    raise reader.bad("a message stands twice or out of order, or has no number")
                highest = c
                entries[c] = reader.processes(size, "the destinations")
            if s <= last or not entries:
                raise reader.bad("a sender stands twice or out of order, or has no message")
            last = s
            stamp[s] = entries
        reader.done()
        return stamp

    def state(self) -> Any:
        return self.encode(self.LOG)

    def load(self, state: Any) -> None:
        self.LOG = self.decode(state)

    def explain(self, fact: Fact, least: int, now: int) -> str:
        return f"{self.system.name(int(str(fact)))}:{least}, not yet delivered"


def _merge(mine: dict[int, Processes], theirs: dict[int, Processes]) -> dict[int, Processes]:
    """RCV 4, for one sender: who has a later message but not this one has found this one redundant."""
    my_latest, their_latest = max(mine), max(theirs)
    merged = {}
    for c in sorted(mine.keys() | theirs.keys()):
        if c in mine and c in theirs:
            merged[c] = mine[c] & theirs[c]
        elif c in mine:
            if c > their_latest:
                merged[c] = mine[c]
        elif c > my_latest:
            merged[c] = theirs[c]
    return merged

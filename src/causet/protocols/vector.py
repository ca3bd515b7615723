"""CBCAST with a vector per group (Birman, Schiper & Stephenson, "Lightweight causal and atomic group
multicast", ACM TOCS 9(3), 1991), a baseline.

VT[g][k] counts the messages of k in g. A message carries the vectors of all groups, for causality can come
round through groups that its sender is not in. It waits for the previous message of its sender in its
group, and for everything that its vectors know of the receiver's groups.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from causet.holdback import Fact, Threshold
from causet.model import Processes, only
from causet.protocols.base import Learned, Packet, Promises, Protocol
from causet.protocols.layout import layout_of
from causet.protocols.wire import LARGEST, Counters, Reader, Writer


class Vector(Protocol):
    name = "vector"
    title = "CBCAST, a vector clock per group (Birman, Schiper & Stephenson 1991; a baseline)"
    PROMISES = Promises(early=True)
    counts = "vector entries of all groups"
    grouped = True

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.layout = layout_of(self.system)
        self.mine = self.layout.of_member(self.me)
        self.VT: Counters = np.zeros(self.layout.length, dtype=np.int64)

    def send(self, number: int, targets: Processes, group: int) -> Learned:
        entry = self.layout.entry(self.me, group)
        self.VT = self.VT.copy()  # packets share the old one
        self.VT[entry] += 1
        packet = Packet(self.me, number, targets, targets & ~only(self.me), self.VT, group)
        return Learned([(entry, int(self.VT[entry]))], (packet,))

    def spent(self) -> bool:
        return bool(self.VT.max(initial=0) >= LARGEST)

    def needs(self, packet: Packet) -> Iterable[Threshold]:
        wanted = packet.stamp[self.mine]
        unmet = np.flatnonzero(wanted > self.VT[self.mine])
        sender = self.layout.entry(packet.sender, packet.group)
        entries, values = self.mine[unmet].tolist(), wanted[unmet].tolist()
        return [(e, value - (e == sender)) for e, value in zip(entries, values, strict=True)]

    def deliver(self, packet: Packet) -> Learned:
        self.VT = np.maximum(self.VT, packet.stamp)
        entry = self.layout.entry(packet.sender, packet.group)
        return Learned([(entry, int(packet.stamp[entry]))])

    def entries(self, packet: Packet) -> int:
        return self.layout.length

    def encode(self, stamp: Counters) -> bytes:
        writer = Writer(self.name)
        writer.counters(stamp)
        return writer.done()

    def decode(self, data: bytes) -> Counters:
        reader = Reader(self.name, data)
        stamp = reader.counters(self.layout.length, "the vectors")
        reader.done()
        return stamp

    def state(self) -> Any:
        return self.encode(self.VT)

    def load(self, state: Any) -> None:
        self.VT = self.decode(state)

    def explain(self, fact: Fact, least: int, now: int) -> str:
        process, group = self.layout.meaning(int(str(fact)))
        where = self.system.groups[group].name
        return f"message {least} of {self.system.name(process)} in {where}, {now} delivered so far"

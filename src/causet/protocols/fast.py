"""The Fast causal order protocol (Macedo, section 5.4): delivery as early as possible.

GLDV holds the largest block known to have been sent, and, where this process is a target, delivered. A
message carries its sender's GLDV, waits until every entry that concerns the receiver is reached, and then
teaches the rest.

M2: as printed GLDV has one entry per process, so a message can wait for one that its receiver never gets;
null messages do not help. Two repairs:

    groups       one entry per (process, group), tested for the receiver's own groups only. As early as
                 possible, at the price of Σ|g| entries: the saving over CBCAST is gone. (The default.)
    neighbours   one entry per process as printed, and each message also goes, without its payload, to all
                 processes that share another group with the sender. Those copies pass the delivery test
                 like any message. Small stamps, more messages, and a message may wait for such a copy.

Unlike Slow and Relative it needs no FIFO links, for a stamp names its sender's previous message itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from causet.errors import BadInput, quote
from causet.holdback import Fact, Threshold
from causet.model import System, members, only
from causet.protocols import base
from causet.protocols.base import Learned, Packet, Promises, Protocol
from causet.protocols.layout import layout_of
from causet.protocols.wire import LARGEST, Counters, Reader, Writer

VARIANTS = ("groups", "neighbours")


@dataclass(frozen=True, slots=True)
class FastOptions(base.Options):
    variant: str = base.setting(
        "groups", "groups: an entry per (process, group); neighbours: an entry per process, more messages"
    )

    def check(self, system: System) -> list[str]:
        if self.variant not in VARIANTS:
            raise BadInput(f"variant = {quote(self.variant)}: must be {' or '.join(VARIANTS)}")
        return []


class Fast(Protocol):
    name = "fast"
    title = "causal blocks, Fast: as early as possible (Macedo)"
    PROMISES = Promises(early=True)
    counts = "block numbers"
    grouped = True
    errata: ClassVar[tuple[str, ...]] = ("M2",)
    Options = FastOptions

    @classmethod
    def promises(cls, options: FastOptions) -> Promises:
        return Promises(early=options.variant == "groups")

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        groups = self.system.groups
        self.per_process = self.printed("M2") or self.options.variant == "neighbours"
        self.copies = self.options.variant == "neighbours" and not self.printed("M2")
        self.beyond_groups = self.copies
        near = 0
        for group in groups:
            if group.members >> self.me & 1:
                near |= group.members
        self.near = near & ~only(self.me)
        self.BC = 0
        if self.per_process:
            self.length = self.system.size
            self.tested = np.array(sorted(members(near)), dtype=np.int64)
        else:
            self.layout = layout_of(self.system)
            self.length = self.layout.length
            self.tested = self.layout.of_member(self.me)
        self.GLDV: Counters = np.zeros(self.length, dtype=np.int64)

    def entry(self, process: int, group: int) -> int:
        return process if self.per_process else self.layout.entry(process, group)

    def send(self, number: int, targets: int, group: int) -> Learned:
        """CA1; the stamp is GLDV before the send; then GLDV[i] := m.b."""
        self.BC += 1
        to = targets & ~only(self.me)
        stamp = (self.BC, self.GLDV)
        packets = [Packet(self.me, number, targets, to, stamp, group)]
        others = self.near & ~to
        if self.copies and others:
            packets.append(Packet(self.me, self.next_control(), others, others, stamp, group, True))
        entry = self.entry(self.me, group)
        self.GLDV = self.GLDV.copy()  # stamps share the old one
        self.GLDV[entry] = self.BC
        return Learned([(entry, self.BC)], packets)

    def spent(self) -> bool:
        return self.BC >= LARGEST

    def needs(self, packet: Packet) -> Iterable[Threshold]:
        """The delivery test: GLDV[k] ≥ m.gldv[k] for all k that concern this process."""
        wanted = packet.stamp[1][self.tested]
        unmet = np.flatnonzero(wanted > self.GLDV[self.tested])
        return list(zip(self.tested[unmet].tolist(), wanted[unmet].tolist(), strict=True))

    def deliver(self, packet: Packet) -> Learned:
        """Updating GLDV, and CA2."""
        block, gldv = packet.stamp
        entry = self.entry(packet.sender, packet.group)
        if packet.control:  # tells that the message exists, and nothing of what the sender knew
            self.GLDV = self.GLDV.copy()
        else:
            self.BC = max(self.BC, block)
            self.GLDV = np.maximum(self.GLDV, gldv)
        self.GLDV[entry] = max(int(self.GLDV[entry]), block)
        return Learned([(entry, block)])

    def entries(self, packet: Packet) -> int:
        return 1 + self.length

    def encode(self, stamp: tuple[int, Counters]) -> bytes:
        writer = Writer(self.name)
        writer.number(stamp[0])
        writer.counters(stamp[1])
        return writer.done()

    def decode(self, data: bytes) -> tuple[int, Counters]:
        reader = Reader(self.name, data)
        block = reader.number("the block number")
        gldv = reader.counters(self.length, "GLDV")
        reader.done()
        if not block:
            raise reader.bad("blocks are numbered from 1")
        return block, gldv

    def state(self) -> Any:
        return (self.BC, tuple(self.GLDV.tolist()))

    def load(self, state: Any) -> None:
        self.BC, gldv = state
        self.GLDV = np.array(gldv, dtype=np.int64)

    def explain(self, fact: Fact, least: int, now: int) -> str:
        entry = int(str(fact))
        if self.per_process:
            return f"the message of block {least} from {self.system.name(entry)}, not yet delivered"
        process, group = self.layout.meaning(entry)
        where = self.system.groups[group].name
        return f"the message of block {least} from {self.system.name(process)} in {where}, not yet delivered"

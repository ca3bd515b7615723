"""The Relative causal order protocol (Macedo, section 5.5): exact within a group, by blocks across groups.

    LDV[x][j]   block of the last message of j delivered in group x             (facts)
    GBN[x]      largest block of group x that was sent or delivered before the next message
    settled[x]  largest B such that all blocks ≤ B of group x are complete and all their messages that came
                are delivered                                                   (facts)

A message of group x carries its block, LDV[x] and GBN, and waits for

    C01   LDV[x] ≥ m.ldv
    C02   settled[y] ≥ m.gbn[y] for the receiver's other groups y

As printed, and wrong:

    M1  figure 7 delivers when m.ldv ≥ LDV, the reverse of C01; the paper's own figure 1 breaks it.
    M3  GBN[m.g] := m.b lets GBN fall; it must be a maximum.
    M4  a block counter per group lets two messages of two groups wait for each other; there is one counter
        per process.
    M5  C02 read as "that one block": all blocks up to it are meant.
    M6  see `blocks`.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush
from typing import Any

import numpy as np

from causet.holdback import Fact, Threshold
from causet.model import Processes, members, only
from causet.protocols.base import Learned, Packet, Promises
from causet.protocols.blocks import CausalBlocks
from causet.protocols.wire import Counters, Reader, Writer

Stamp = tuple[int, int, tuple[int, ...], Counters]
"""(group, block, LDV of that group in the order of its members, GBN); a null has empty clocks."""
# The facts; all are of one form, so that they can be sorted.
LAST = 0  # (LAST, x, j): LDV[x][j]
SETTLED = 1  # (SETTLED, x, 0)
ONE_BLOCK = 2  # (ONE_BLOCK, y, block), M5 as printed
NEVER = ((3, 0, 0), 1)


class Relative(CausalBlocks):
    name = "relative"
    title = "causal blocks, Relative: exact in a group, by blocks across (Macedo)"
    PROMISES = Promises()
    counts = "block numbers"
    errata = ("M1", "M3", "M4", "M5", "M6")

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        groups = self.system.groups
        self.GBN: Counters = np.zeros(len(groups), dtype=np.int64)
        self.positions = {x: tuple(members(groups[x].members)) for x in self.mine}
        self.came: dict[int, list[int]] = {x: [] for x in self.mine}  # blocks that came, a heap
        self.gone: dict[int, dict[int, int]] = {x: {} for x in self.mine}  # … and were delivered since
        self.wanted: set[tuple[int, int]] = set()  # M5 as printed: (group, block) that a message waits for

    def counter(self, x: int) -> int:
        return x if self.printed("M4") else 0

    def LDV(self, x: int) -> tuple[int, ...]:
        return tuple(self.facts.get((LAST, x, j), 0) for j in self.positions[x])

    def send(self, number: int, targets: Processes, group: int) -> Learned:
        """Figure 5."""
        block = self.CA1(group)
        to = targets & ~only(self.me)
        stamp: Stamp = (group, block, self.LDV(group), self.GBN)
        packet = Packet(self.me, number, targets, to, stamp, group, order=self.order(group), stream=group)
        self._learn_GBN(group, block)
        self.complete_blocks(group, self.me, block)
        return Learned([((LAST, group, self.me), block), *self.facts_of(group)], (packet,))

    def _learn_GBN(self, x: int, block: int, known: Counters | None = None) -> None:
        before = int(self.GBN[x])
        self.GBN = self.GBN.copy() if known is None or not known.size else np.maximum(self.GBN, known)
        self.GBN[x] = block if self.printed("M3") else max(before, block)

    def receive(self, packet: Packet) -> Learned:
        """Figure 6."""
        x, block = packet.group, packet.stamp[1]
        if not packet.control:
            heappush(self.came[x], block)
        self.complete_blocks(x, packet.sender, block)
        return Learned(self.facts_of(x))

    def settled(self, x: int) -> int:
        came, gone = self.came[x], self.gone[x]
        while came and gone.get(came[0]):
            gone[came[0]] -= 1
            if not gone[came[0]]:
                del gone[came[0]]
            heappop(came)
        return min(self.CBV[x], came[0] - 1) if came else self.CBV[x]

    def facts_of(self, x: int) -> list[Threshold]:
        facts: list[Threshold] = [((SETTLED, x, 0), self.settled(x))]
        for y, block in sorted(self.wanted):
            if y == x and self._block_done(y, block):
                self.wanted.discard((y, block))
                facts.append(((ONE_BLOCK, y, block), 1))
        return facts

    def _block_done(self, y: int, block: int) -> bool:
        """M5, as printed: block `block` of group y is complete and its own messages are delivered."""
        missing = self.came[y].count(block) - self.gone[y].get(block, 0)
        return self.CBV[y] >= block and not missing

    def needs(self, packet: Packet) -> Iterable[Threshold]:
        return [*self._C01(packet), *self._C02(packet)]

    def _C01(self, packet: Packet) -> Iterable[Threshold]:
        x, _, ldv, _ = packet.stamp
        if self.printed("M1"):
            return () if all(a >= b for a, b in zip(ldv, self.LDV(x), strict=True)) else (NEVER,)
        return [((LAST, x, j), block) for j, block in zip(self.positions[x], ldv, strict=True) if block]

    def _C02(self, packet: Packet) -> Iterable[Threshold]:
        x, _, _, gbn = packet.stamp
        waits: list[Threshold] = []
        for y in self.mine:
            block = int(gbn[y])
            if y == x or not block:
                continue
            if not self.printed("M5"):
                waits.append(((SETTLED, y, 0), block))
            elif not self._block_done(y, block):
                self.wanted.add((y, block))
                waits.append(((ONE_BLOCK, y, block), 1))
        return waits

    def deliver(self, packet: Packet) -> Learned:
        """A3, CA2, and the vector of group block numbers."""
        x, block, _, gbn = packet.stamp
        self.CA2(x, block)
        self._learn_GBN(x, block, gbn)
        gone = self.gone[x]
        gone[block] = gone.get(block, 0) + 1
        return Learned([((LAST, x, packet.sender), block), *self.facts_of(x)])

    def null_stamp(self, block: int) -> Stamp:
        return (-1, block, (), np.zeros(0, dtype=np.int64))

    def entries(self, packet: Packet) -> int:
        _, _, ldv, gbn = packet.stamp
        return 1 + len(ldv) + len(gbn)

    def encode(self, stamp: Stamp) -> bytes:
        group, block, ldv, gbn = stamp
        writer = Writer(self.name)
        writer.number(group + 1)
        writer.number(block)
        if group >= 0:
            writer.counters(np.array(ldv, dtype=np.int64))
            writer.counters(gbn)
        return writer.done()

    def decode(self, data: bytes) -> Stamp:
        groups = self.system.groups
        reader = Reader(self.name, data)
        group = reader.number("the group", len(groups)) - 1
        block = reader.number("the block number")
        if not block:
            raise reader.bad("blocks are numbered from 1")
        if group < 0:
            reader.done()
            return self.null_stamp(block)
        ldv = reader.counters(groups[group].members.bit_count(), "LDV")
        gbn = reader.counters(len(groups), "GBN")
        reader.done()
        return group, block, tuple(ldv.tolist()), gbn

    def fits(self, packet: Packet) -> bool:
        return bool(packet.stamp[0] == (-1 if packet.control else packet.group))

    def state(self) -> Any:
        held = []
        for x in self.mine:
            gone = dict(self.gone[x])
            left = []
            for block in sorted(self.came[x]):
                if gone.get(block):
                    gone[block] -= 1
                else:
                    left.append(block)
            held.append((x, tuple(left)))
        gbn = tuple(self.GBN.tolist())
        return (self.blocks_state(), gbn, tuple(held), tuple(sorted(self.wanted)))

    def load(self, state: Any) -> None:
        blocks, gbn, held, wanted = state
        self.load_blocks(blocks)
        self.GBN = np.array(gbn, dtype=np.int64)
        self.came = {x: list(left) for x, left in held}
        self.gone = {x: {} for x in self.mine}
        self.wanted = {(y, block) for y, block in wanted}

    def explain(self, fact: Fact, least: int, now: int) -> str:
        assert isinstance(fact, tuple)
        kind, x, j = fact
        if kind == SETTLED:
            name = self.system.groups[x].name
            return f"all blocks up to {least} of {name} complete and delivered ({now} so far)"
        if kind == LAST:
            name = self.system.groups[x].name
            return f"the message of block {least} from {self.system.name(j)} in {name}, not yet delivered"
        if kind == ONE_BLOCK:
            return f"block {j} of {self.system.groups[x].name} complete and delivered"
        return "a moment that has passed (M1 as printed: it can never be delivered)"

"""The Slow causal order protocol (Macedo, section 5.3): the smallest stamp, one block number.

A message of block b waits until all blocks below b are complete in every group of the receiver, and
messages that become free together leave in the order of their blocks (figure 4). Null messages keep blocks
completing; without them a message sticks as soon as one member is silent (M6, see `blocks`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from causet.holdback import Fact, Threshold
from causet.model import Processes, only
from causet.protocols.base import NOTHING, Learned, Packet, Promises
from causet.protocols.blocks import CausalBlocks
from causet.protocols.wire import Reader, Writer


class Slow(CausalBlocks):
    name = "slow"
    title = "causal blocks, Slow: one number per message (Macedo)"
    PROMISES = Promises()
    counts = "the block number"
    errata = ("M6",)

    def send(self, number: int, targets: Processes, group: int) -> Learned:
        block = self.CA1(group)
        to = targets & ~only(self.me)
        packet = Packet(self.me, number, targets, to, block, group, order=self.order(group), stream=group)
        self.complete_blocks(group, self.me, block)
        return Learned(self.facts_of(group), (packet,))

    def receive(self, packet: Packet) -> Learned:
        self.complete_blocks(packet.group, packet.sender, packet.stamp)
        return Learned(self.facts_of(packet.group))

    def facts_of(self, x: int) -> list[Threshold]:
        return [(x, self.CBV[x])]

    def needs(self, packet: Packet) -> Iterable[Threshold]:
        """Figure 4: B_min ≥ m.b - 1, where B_min is the least CBV[x] of my groups."""
        return [(x, packet.stamp - 1) for x in self.mine]

    def rank(self, packet: Packet) -> Any:
        """Block order."""
        return packet.stamp

    def deliver(self, packet: Packet) -> Learned:
        self.CA2(packet.group, packet.stamp)
        return NOTHING

    def null_stamp(self, block: int) -> int:
        return block

    def entries(self, packet: Packet) -> int:
        return 1

    def encode(self, stamp: int) -> bytes:
        writer = Writer(self.name)
        writer.number(stamp)
        return writer.done()

    def decode(self, data: bytes) -> int:
        reader = Reader(self.name, data)
        block = reader.number("the block number")
        reader.done()
        if not block:
            raise reader.bad("blocks are numbered from 1")
        return block

    def state(self) -> Any:
        return self.blocks_state()

    def load(self, state: Any) -> None:
        self.load_blocks(state)

    def explain(self, fact: Fact, least: int, now: int) -> str:
        x = int(str(fact))
        late = [j for j, block in self.BM[x].items() if block < least]
        names = ", ".join(self.system.name(j) for j in late)
        return (
            f"block {least} of {self.system.groups[x].name} complete ({now} so far); "
            f"nothing that late has come from {names}"
        )

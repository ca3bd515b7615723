"""Causal blocks (Macedo, "Causal Order Protocols for Group Communication", section 4): what the Slow and
Relative protocols share.

    BC        the block counter: CA1 raises it before a send, CA2 at a delivery
    BM[x]     the block matrix of group x: which members' messages of which blocks were received. Each
              member's packets in a group are received in the order they were sent, so the largest block
              received from each member says it all.
    CBV[x]    the largest B such that all blocks ≤ B of group x are complete: no member can still have a
              message of such a block under way

A null message (time-silence) carries a block number and nothing else; it completes blocks when it is
received and is never delivered.

M6: a process need not look at its own column, and a null message may jump: its block is the larger of BC and
the largest block received, or one more where that was sent in the group already. So nulls that answer nulls
come to rest at the largest block there is. As printed the own column counts, and a null's block is BC + 1.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from causet.errors import BadInput
from causet.holdback import Threshold
from causet.model import members, only
from causet.protocols.base import Learned, NullOptions, Packet, Protocol
from causet.protocols.wire import LARGEST


class CausalBlocks(Protocol):
    """A protocol that waits for blocks to be complete."""

    grouped = True
    fifo_links = True
    nulls = True
    Options = NullOptions

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        groups = self.system.groups
        self.mine = [x for x, group in enumerate(groups) if group.members >> self.me & 1]
        own_column = self.printed("M6")
        self.BC: dict[int, int] = {}
        self.largest: dict[int, int] = {}  # the largest block received
        self.BM: dict[int, dict[int, int]] = {
            x: {j: 0 for j in members(groups[x].members) if own_column or j != self.me} for x in self.mine
        }
        self.CBV = dict.fromkeys(self.mine, 0)
        self.last_sent = dict.fromkeys(self.mine, 0)
        self.orders: dict[int, int] = {}

    def counter(self, x: int) -> int:
        """Which block counter counts for group x: one for all."""
        return 0

    def CA1(self, x: int) -> int:
        """The counter advances before a send in group x; the block of the message."""
        counter = self.counter(x)
        self.BC[counter] = self.BC.get(counter, 0) + 1
        return self.BC[counter]

    def CA2(self, x: int, block: int) -> None:
        """The counter advances at a delivery in group x."""
        counter = self.counter(x)
        self.BC[counter] = max(self.BC.get(counter, 0), block)

    def spent(self) -> bool:
        return max((*self.BC.values(), *self.largest.values()), default=0) >= LARGEST

    def order(self, x: int) -> int:
        """The number of this process's next packet in group x."""
        self.orders[x] = self.orders.get(x, 0) + 1
        return self.orders[x]

    def complete_blocks(self, x: int, j: int, block: int) -> None:
        """Enter a '+' for member j in BM[x], and raise CBV[x] if blocks are complete with it."""
        column = self.BM[x]
        if j == self.me:
            self.last_sent[x] = block
        else:
            counter = self.counter(x)
            self.largest[counter] = max(self.largest.get(counter, 0), block)
        if j in column and block > column[j]:
            before, column[j] = column[j], block
            if before == self.CBV[x]:
                self.CBV[x] = min(column.values())

    @abstractmethod
    def facts_of(self, x: int) -> list[Threshold]:
        """The facts that may have risen with CBV[x]."""

    @abstractmethod
    def null_stamp(self, block: int) -> Any:
        """The stamp of a null message."""

    def null(self, group: int | None = None) -> Learned:
        if group is not None and group not in self.BM:
            name = self.system.groups[group].name
            raise BadInput(f"{self.system.name(self.me)} is not a member of group {name}")
        facts: list[Threshold] = []
        packets: list[Packet] = []
        stepped: dict[int, int] = {}  # as printed, the nulls of one round are one step of the counter
        for x in self.mine if group is None else [group]:
            if self.printed("M6"):
                counter = self.counter(x)
                block = stepped[counter] if counter in stepped else self.CA1(x)
                stepped[counter] = block
            else:
                block = self._null_block(x)
            to = self.system.groups[x].members & ~only(self.me)
            number, order = self.next_control(), self.order(x)
            packets.append(Packet(self.me, number, to, to, self.null_stamp(block), x, True, order, x))
            self.complete_blocks(x, self.me, block)
            facts += self.facts_of(x)
        return Learned(facts, packets)

    def _null_block(self, x: int) -> int:
        """The block of a null message in group x; no later message of ours there has it or a smaller one."""
        counter = self.counter(x)
        known = max(self.BC.get(counter, 0), self.largest.get(counter, 0))
        self.BC[counter] = max(known, self.last_sent[x] + 1)
        return self.BC[counter]

    def null_groups(self) -> Sequence[int]:
        return self.mine

    def owes_null(self, group: int) -> bool:
        """Another member may wait for a block of ours as large as the largest that we know of."""
        counter = self.counter(group)
        known = max(self.BC.get(counter, 0), self.largest.get(counter, 0))
        return known > self.last_sent[group]

    def holds(self, packet: Packet) -> bool:
        return not packet.control

    def blocks_state(self) -> tuple[Any, ...]:
        def pairs(values: dict[int, int]) -> tuple[tuple[int, int], ...]:
            return tuple(sorted(values.items()))

        matrix = tuple((x, pairs(column)) for x, column in sorted(self.BM.items()))
        return (pairs(self.BC), pairs(self.largest), matrix, pairs(self.last_sent), pairs(self.orders))

    def load_blocks(self, state: tuple[Any, ...]) -> None:
        BC, largest, matrix, last_sent, orders = state
        self.BC, self.largest = dict(BC), dict(largest)
        self.BM = {x: dict(column) for x, column in matrix}
        self.CBV = {x: min(column.values()) for x, column in self.BM.items()}
        self.last_sent, self.orders = dict(last_sent), dict(orders)

"""A matrix bounded by extra messages (Sanchez & Alvarez, "A lightweight asynchronous algorithm for causal
delivery using extra message insertion").

Section 3. Each process keeps

    DELIV[i]      messages from i delivered here, extra messages included    (the facts of the engine)
    M[i, j]       messages sent from i to j in the causal past that may not have arrived

Each non-zero entry is a constraint: "j must have delivered that many from i". The own column is
always zero. A message carries M as it was before the send; its target waits until DELIV[i] ≥ M[i, me].
After a message to j, column j holds nothing but that message, which implies the rest. When M has more than
k entries, a process sends an *extra message* to the process with the fullest column: it carries that
column, and again empties it.

What is unclear or wrong as printed, and the rows to select the printed reading:

    S1  DELIV counts extra messages too; as printed it counts the application's only, and blocks.
    S2  An extra message passes the delivery test; as printed it takes effect on arrival, which is unsafe.
        Either way the receiver's matrix stays as it is.
    S3  Extra messages are sent until M is within k, after every send and every delivery; as printed there
        is one at a time, and the bound does not hold.
    S4  The useful thresholds are n-1 … (n-1)²; as printed n < k ≤ n².
    S5  Multicast, which the paper leaves open: the receiver learns that each other target d has one more
        message to wait for, M[src, d] = m[src, d] + 1, which implies the rest of m's column d. To attach
        the matrix as it is and learn nothing of the other targets is unsafe.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from causet.errors import BadInput
from causet.holdback import Fact, Threshold
from causet.model import Processes, System, members, only
from causet.protocols import base
from causet.protocols.base import MOST_CONTROL, Learned, Packet, Promises, Protocol
from causet.protocols.wire import LARGEST, Reader, Writer

Column = dict[int, int]
"""The non-zero entries of a column: row i → count. Never changed in place, so that stamps can share it."""
Sparse = dict[int, Column]
"""The non-empty columns of a matrix. An extra message's stamp has only the column of its target."""


@dataclass(frozen=True, slots=True)
class BoundedOptions(base.Options):
    k: int | tuple[int, ...] | None = base.setting(
        None,
        "the most matrix entries, one number or one per process (9 or 9,9,12) [default: 4n]",
        flag=True,
    )

    def in_words(self) -> str:
        return f"k = {self.k}"

    def threshold(self, process: int, size: int) -> int:
        if self.k is None:
            return min(4 * size, size * size)
        return self.k if isinstance(self.k, int) else self.k[process]

    def check(self, system: System) -> list[str]:
        n = system.size
        if isinstance(self.k, tuple) and len(self.k) != n:
            raise BadInput(f"k has {len(self.k)} values for {n} processes; give one for all or one for each")
        warnings: list[str] = []
        for k in sorted({self.threshold(p, n) for p in range(n)}):
            if "S4" in self.as_printed:
                if not n < k <= n * n:
                    raise BadInput(
                        f"k = {k} is outside the range of the paper, n < k ≤ n²: {n + 1} … {n * n}"
                    )
            elif k < n - 1:
                raise BadInput(
                    f"k = {k} is too small: after a message to each other process {n - 1} entries are left "
                    f"that nothing can remove; with {n} processes k is at least {n - 1}"
                )
            elif k > n * n:
                raise BadInput(f"k = {k} is too large: a matrix of {n} processes has {n * n} entries")
            elif k >= (n - 1) ** 2:
                warnings.append(
                    f"k = {k} bounds nothing: a matrix of {n} processes never has more than {(n - 1) ** 2} "
                    "entries here, so no extra message will be sent"
                )
        return warnings


class Bounded(Protocol):
    name = "bounded"
    title = "matrix bounded by extra messages (Sanchez & Alvarez)"
    PROMISES = Promises()
    counts = "non-zero matrix entries"
    errata = ("S1", "S2", "S3", "S4", "S5")
    sensible = 64
    extras = True
    ranks = True  # of two columns that are equally full it takes the first
    Options = BoundedOptions

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.M: Sparse = {}
        self.k: int = self.options.threshold(self.me, self.system.size)

    @classmethod
    def small(cls, size: int, settings: Mapping[str, Any], rows: Set[str]) -> dict[str, Any]:
        return {"k": size + 1 if "S4" in rows else size}

    def size(self) -> int:
        """How many entries of M are not zero."""
        return sum(map(len, self.M.values()))

    def broken(self) -> str | None:
        if self.size() > self.k:
            return f"the matrix has {self.size()} entries, more than k = {self.k}"
        return None

    def send(self, number: int, targets: Processes, group: int) -> Learned:
        others = targets & ~only(self.me)
        packet = Packet(self.me, number, targets, others, dict(self.M), group)
        for target in members(others):
            self._sent_to(target)
        return Learned(packets=[packet, *self._extras()])

    def spent(self) -> bool:
        return any(max(column.values()) >= LARGEST - MOST_CONTROL for column in self.M.values())

    def _sent_to(self, target: int) -> None:
        """Column `target` keeps nothing but the message just sent, which implies the rest."""
        self.M[target] = {self.me: _one_more(self.M.get(target, {}).get(self.me, 0))}

    def _extras(self) -> list[Packet]:
        """Extra messages to the fullest columns until M is within k (S3)."""
        packets: list[Packet] = []
        if self.size() <= self.k:
            return packets
        for target in sorted(self.M, key=lambda j: (-len(self.M[j]), j)):
            if self.size() <= self.k or len(self.M[target]) == 1:
                break  # with columns of one entry there is nothing to remove; options.check rules that out
            stamp = {target: self.M[target]}
            to = only(target)
            packets.append(Packet(self.me, self.next_control(), to, to, stamp, control=True))
            self._sent_to(target)
            if self.printed("S3"):
                break
        return packets

    def receive(self, packet: Packet) -> Learned:
        if packet.control and self.printed("S2"):
            return self.deliver(packet)
        return base.NOTHING

    def holds(self, packet: Packet) -> bool:
        return not (packet.control and self.printed("S2"))

    def needs(self, packet: Packet) -> Iterable[Threshold]:
        return sorted(packet.stamp.get(self.me, {}).items())

    def deliver(self, packet: Packet) -> Learned:
        sender = packet.sender
        if packet.control:
            if self.printed("S1"):
                return base.NOTHING
            return Learned(((sender, self.facts.get(sender, 0) + 1),))
        for j, column in packet.stamp.items():
            if j != self.me and not (packet.targets >> j & 1 and not self.printed("S5")):
                self._learn(j, column)
        if not self.printed("S5"):
            for j in members(packet.targets & ~only(self.me) & ~only(sender)):
                self._learn(j, {sender: _one_more(packet.stamp.get(j, {}).get(sender, 0))})
        return Learned(((sender, self.facts.get(sender, 0) + 1),), self._extras())

    def _learn(self, j: int, column: Column) -> None:
        """M[-, j] := max(M[-, j], column)."""
        mine = self.M.get(j)
        if mine is None:
            self.M[j] = column
        elif mine is not column:
            merged = dict(mine)
            for i, count in column.items():
                if count > merged.get(i, 0):
                    merged[i] = count
            self.M[j] = merged

    def entries(self, packet: Packet) -> int:
        return sum(map(len, packet.stamp.values()))

    def encode(self, stamp: Sparse) -> bytes:
        writer = Writer(self.name)
        writer.number(len(stamp))
        for j, column in sorted(stamp.items()):
            writer.number(j)
            writer.number(len(column))
            for i, count in sorted(column.items()):
                writer.number(i)
                writer.number(count)
        return writer.done()

    def decode(self, data: bytes) -> Sparse:
        size = self.system.size
        reader = Reader(self.name, data)
        stamp: Sparse = {}
        for _ in range(reader.number("the number of columns", size)):
            j = reader.number("a column", size - 1)
            rows = [
                (reader.number("a row", size - 1), reader.number("an entry"))
                for _ in range(reader.number("the length of a column", size))
            ]
            if j in stamp or not _rising([i for i, _ in rows]) or not all(count for _, count in rows):
                raise reader.bad("a row or column stands twice or out of order, or an entry is zero")
            stamp[j] = dict(rows)
        if not _rising(list(stamp)):
            raise reader.bad("its columns are out of order")
        reader.done()
        return stamp

    def state(self) -> Any:
        return self.encode(self.M)

    def load(self, state: Any) -> None:
        self.M = self.decode(state)

    def explain(self, fact: Fact, least: int, now: int) -> str:
        name = self.system.name(int(str(fact)))
        return (
            f"message {least} of {name} to {self.system.name(self.me)} (extra ones count), {now} came so far"
        )


def _one_more(count: int) -> int:
    """Counters end at the largest that the wire form takes; only a hostile stamp brings them there."""
    return min(count + 1, LARGEST)


def _rising(values: Sequence[int]) -> bool:
    return all(a < b for a, b in pairwise(values))

"""Matrix clocks (Raynal & Schiper, "The causal ordering abstraction and a simple way to implement it",
INRIA RR-1132, 1989; printed rules hold, no erratum).

Section 3.2. Each site keeps

    REC[k]        messages sent by k and delivered here          (the facts of the engine)
    SENT[k, l]    messages sent from k to l, as far as known here

i)   Emission of M to Sj: SENT[i, j] += 1, and M carries SENT.
i')  Multicast: SENT[i, k] += 1 for every target k first, then one SENT for all.
ii)  Reception of (M, ST) from Sj: wait until REC[j] + 1 = ST[j, i] and REC[k] ≥ ST[k, i] for k ≠ j;
     deliver M; REC[j] += 1; SENT := max(SENT, ST).

The equality in ii) is a threshold like the others: REC[j] ≥ ST[j, i] - 1, for messages of one sender pass
in the order of their numbers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from causet.holdback import Fact, Threshold
from causet.model import Processes, members, only
from causet.protocols.base import Learned, Packet, Promises, Protocol
from causet.protocols.wire import LARGEST, Counters, Reader, Writer


class Matrix(Protocol):
    name = "matrix"
    title = "matrix clocks (Raynal & Schiper 1989)"
    PROMISES = Promises(early=True)
    counts = "matrix entries, zeros included: n²"
    sensible = 256

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        size = self.system.size
        self.SENT: Counters = np.zeros((size, size), dtype=np.int64)

    def send(self, number: int, targets: Processes, group: int) -> Learned:
        """Rule i')."""
        others = targets & ~only(self.me)
        SENT = self.SENT.copy()
        SENT[self.me, list(members(others))] += 1
        self.SENT = SENT  # never written again: the packet shares it
        return Learned(packets=(Packet(self.me, number, targets, others, SENT, group),))

    def spent(self) -> bool:
        return bool(self.SENT[self.me].max() >= LARGEST)

    def needs(self, packet: Packet) -> Iterable[Threshold]:
        """Rule ii), the wait."""
        column = packet.stamp[:, self.me]
        sender = packet.sender
        return [(k, int(column[k]) - (k == sender)) for k in np.flatnonzero(column).tolist()]

    def deliver(self, packet: Packet) -> Learned:
        """Rule ii), after the delivery."""
        self.SENT = np.maximum(self.SENT, packet.stamp)
        return Learned(((packet.sender, self.facts.get(packet.sender, 0) + 1),))

    def entries(self, packet: Packet) -> int:
        return self.system.size**2

    def encode(self, stamp: Counters) -> bytes:
        writer = Writer(self.name)
        writer.counters(stamp.ravel())
        return writer.done()

    def decode(self, data: bytes) -> Counters:
        size = self.system.size
        reader = Reader(self.name, data)
        values = reader.counters(size * size, "the matrix")
        reader.done()
        return values.reshape(size, size)

    def state(self) -> Any:
        return self.encode(self.SENT)

    def load(self, state: Any) -> None:
        self.SENT = self.decode(state)

    def explain(self, fact: Fact, least: int, now: int) -> str:
        name = self.system.name(int(str(fact)))
        return f"message {least} of {name} to {self.system.name(self.me)}, {now} delivered so far"

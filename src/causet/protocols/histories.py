"""Extended causal histories with causal separators (Rodrigues & Verissimo, "Causal separators and
topological timestamping: an approach to support causal multicast in large-scale systems", chapter 4).

Each process p keeps

    D[s]      number of the last message delivered from s (R5)        (the facts of the engine)
    H         the messages that precede the next one p sends: (s_m, c_m) with their addresses A_m
    C(m)      for each m in H, to whom m was "reported" within another message's timestamp

R1    All are empty and the counter is 0.
R2    A message carries H.
R3    A message waits for every i in its timestamp that is addressed here.
R4    A sender adds its message to H and to its own D; a delivery adds the timestamp and the message.
R5    One number per sender is enough for D.
R6.1  Optionally a timestamp carries C too.
R6.2  After a send to A: C(i) ∪= A ∪ {p} for all i in H.
R6.3  After a delivery of m: C(n) ∪= A_m for the sender's earlier messages n; then H_m joins H with
      C(n) = C_m(n) ∪ A_m ∪ {s_m} ∪ addresses of later messages of n's sender; then m with {s_m, q}.
R7    A timestamp leaves out what was reported to all its addressees.
R8    H drops what was reported to all its addressees.
R9    A member of a separator (S, F, B) that writes to F leaves out what is addressed to B only and was
      reported to all of S.

Corrected by default; `AsPrinted` has the printed rules, each selected by its row:

    H1  "is in D" asks for the same sender; as printed any sender's number counts.
    H2  a sender adds its message to its own D, atomically with the send; as printed to "D_q".
    H3  a sender's own copy must be delivered at the send; as printed it travels and is delivered whenever
        it comes.
    H4  after a merge, C(n) ∪= A_i for every n in H and every later message i of n's sender, m included;
        as printed only for n in H_m, where i may have come in the same timestamp, and the history grows
        without bound.
    H5  C(m) of an own message starts with {s_m}; as printed it starts empty.
    H6  the main text's R6; as printed in the appendix without s_m and with empty starts.
    H7  with R9 on, a process addresses neighbours only; as printed "any destination set".

Incomplete orders (chapter 6): with `by_hand` the application merges. What is sent or delivered without being
merged joins D, and not H. Then a larger number of a sender is no later message, and what a process was told
of need not be in its history:

    H8  D has every message, and R6.3 learns nothing from numbers; as printed R5.
    H9  R7 and R9 are off; as printed they leave out what was reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass, replace
from typing import Any

from causet.errors import BadInput
from causet.holdback import Fact, Key, Threshold
from causet.model import Processes, System, only
from causet.protocols import base
from causet.protocols.base import Learned, Packet, Promises, Protocol
from causet.protocols.wire import Reader, Writer

Uid = tuple[int, int, Processes, Processes]
"""(s, c, A, C): one message of a history or timestamp; C is empty where R6.1 is off."""
Entries = dict[int, tuple[Processes, Processes]]
"""c → (A, C): what a history has of one sender."""
ANY = "any"
"""The fact that H1, as printed, asks for: the largest number delivered, of any sender."""


@dataclass(frozen=True, slots=True)
class HistoriesOptions(base.Options):
    r61: bool = base.setting(True, "R6.1: timestamps carry the carbon-copy fields")
    r7: bool = base.setting(True, "R7: a timestamp leaves out what was reported to all its targets")
    r8: bool = base.setting(True, "R8: the history drops what was reported to all it was addressed to")
    r9: bool = base.setting(True, "R9: separators filter what passes them, where separators are given")
    by_hand: bool = base.setting(
        False,
        "chapter 6: the application merges; a schedule says of which messages it does not (merge: false)",
    )


class Histories(Protocol):
    name = "histories"
    title = "extended causal histories with causal separators (Rodrigues & Verissimo 1995)"
    PROMISES = Promises(early=True)
    counts = "message ids"
    sensible = 256
    errata = ("H1", "H2", "H3", "H4", "H5", "H6", "H7", "H8", "H9")
    Options = HistoriesOptions

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.H: dict[int, Entries] = {}  # by sender
        mine = [s for s in self.system.separators if s.members >> self.me & 1]
        self.separators = mine if self.options.r9 else []

    @classmethod
    def variant(cls, options: Any) -> type[Protocol]:
        if options.by_hand:
            return ByHand
        return AsPrinted if options.as_printed else cls

    @classmethod
    def check(cls, sender: int, targets: Processes, group: int, system: System, options: Any) -> None:
        """H7: with R9 on, only neighbours and oneself can be addressed."""
        if options.r9 and system.separators and system.links:
            far = targets & ~system.links[sender] & ~only(sender)
            if far:
                raise BadInput(
                    f"{system.name(sender)} is not linked with {', '.join(system.names(far))}; with causal "
                    "separators (R9) a process can address its neighbours only"
                )

    def send(self, number: int, targets: Processes, group: int) -> Learned:
        """R2, R4 and R6.2, as one step. The sender's own copy is delivered by it (H2, H3)."""
        packet = Packet(self.me, number, targets, targets & ~only(self.me), self._R2(targets), group)
        self._R62(number, targets)
        self._R8(list(self.H))
        return Learned(self._R5(self.me, number), (packet,))

    def needs(self, packet: Packet) -> Iterable[Threshold]:
        return () if packet.sender == self.me else self._R3(packet)

    def deliver(self, packet: Packet) -> Learned:
        """R4 and R6.3, as one step."""
        if packet.sender != self.me:  # else H has the message already
            self._R63(packet)
            self._R8({packet.sender, *(s for s, *_ in packet.stamp)})
        return Learned(self._R5(packet.sender, packet.number))

    def _R2(self, targets: Processes) -> tuple[Uid, ...]:
        """The timestamp of a message to these targets: H, but for what R7 and R9 leave out."""
        return tuple(
            (s, c, A, C if self.options.r61 else 0)
            for s, sent in sorted(self.H.items())
            for c, (A, C) in sorted(sent.items())
            if not self._R7(targets, C) and not self._R9(targets, A, C)
        )

    def _R3(self, packet: Packet) -> list[Threshold]:
        """A message waits for everything in its timestamp that is addressed here."""
        return [(s, c) for s, c, A, _ in packet.stamp if A >> self.me & 1]

    def _R5(self, sender: int, number: int) -> list[Threshold]:
        """The facts that rise when a message is added to D."""
        return [(sender, number)]

    def _R62(self, number: int, targets: Processes) -> None:
        """After a send: C(i) ∪= A ∪ {p} for all i in H; then the message joins H with {p}."""
        self._report(targets | only(self.me))
        self._add(self.me, number, targets, only(self.me))

    def _R63(self, packet: Packet) -> None:
        """After a delivery of m: its timestamp and m join H; then the union of H4, which reports the sender's
        earlier messages to A_m too."""
        sender = only(packet.sender)
        self._join(packet.stamp, packet.targets | sender)
        self._add(packet.sender, packet.number, packet.targets, sender | only(self.me))
        for s in {packet.sender, *(s for s, *_ in packet.stamp)}:
            _report_to_later(self.H[s])

    def _R7(self, targets: Processes, C: Processes) -> bool:
        """Whether a timestamp leaves out what was reported to C: A_m ⊆ C."""
        return self.options.r7 and not targets & ~C

    def _R8(self, senders: Iterable[int]) -> None:
        """H drops what was reported to all it was addressed to (A ⊆ C); these senders' entries changed."""
        if not self.options.r8:
            return
        for s in senders:
            kept = {c: (A, C) for c, (A, C) in self.H[s].items() if A & ~C}
            if kept:
                self.H[s] = kept
            else:
                del self.H[s]

    def _R9(self, targets: Processes, A: Processes, C: Processes) -> bool:
        """Whether a separator of this process filters n: A_m ⊆ F, A_n ⊆ B and S ⊆ C(n)."""
        return any(
            not targets & ~sep.forward and not A & ~sep.backward and not sep.members & ~C
            for sep in self.separators
        )

    def _add(self, s: int, c: int, A: Processes, C: Processes) -> None:
        self.H.setdefault(s, {})[c] = (A, C)

    def _report(self, to: Processes) -> None:
        """C(i) ∪= to for all i in H."""
        for sent in self.H.values():
            for c, (A, C) in sent.items():
                sent[c] = (A, C | to)

    def _join(self, stamp: Iterable[Uid], reported: Processes) -> None:
        """A timestamp joins H: C(n) ∪= C_m(n) ∪ reported."""
        for s, c, A, C_m in stamp:
            _, C = self.H.get(s, {}).get(c, (0, 0))
            self._add(s, c, A, C | C_m | reported)

    def entries(self, packet: Packet) -> int:
        return len(packet.stamp)

    def encode(self, stamp: tuple[Uid, ...]) -> bytes:
        size = self.system.size
        writer = Writer(self.name)
        writer.number(len(stamp))
        for s, c, A, C in stamp:
            writer.number(s)
            writer.number(c)
            writer.processes(A, size)
            if self.options.r61:
                writer.processes(C, size)
        return writer.done()

    def decode(self, data: bytes) -> tuple[Uid, ...]:
        size = self.system.size
        reader = Reader(self.name, data)
        uids: list[Uid] = []
        for _ in range(reader.number("the number of messages", len(data))):
            s = reader.number("a sender", size - 1)
            c = reader.number("a message number")
            A = reader.processes(size, "an address")
            C = reader.processes(size, "a carbon copy") if self.options.r61 else 0
            if not c or not A or (uids and (s, c) <= uids[-1][:2]):
                raise reader.bad("a message stands twice or out of order, or has no number or address")
            uids.append((s, c, A, C))
        reader.done()
        return tuple(uids)

    def state(self) -> Any:
        return tuple((s, c, A, C) for s, sent in sorted(self.H.items()) for c, (A, C) in sorted(sent.items()))

    def load(self, state: Any) -> None:
        self.H = {}
        for uid in state:
            self._add(*uid)

    def explain(self, fact: Fact, least: int, now: int) -> str:
        return f"{self.system.name(int(str(fact)))}:{least}, not yet delivered"


def _report_to_later(sent: Entries, which: Set[int] | None = None) -> None:
    """The union of R6.3: each message of one sender was reported to where that sender's later ones went.

    H4: as printed, only those of the timestamp (`which`) were.
    """
    later = 0
    for c in sorted(sent, reverse=True):
        A, C = sent[c]
        if which is None or c in which:
            sent[c] = (A, C | later)
        later |= A


class AsPrinted(Histories):
    """The printed rules of the rows that are selected; every other rule is the corrected one."""

    @classmethod
    def check(cls, sender: int, targets: Processes, group: int, system: System, options: Any) -> None:
        if "H7" not in options.as_printed:
            super().check(sender, targets, group, system, options)

    @classmethod
    def reach(cls, sender: int, system: System, options: Any) -> Processes:
        return system.everyone if "H7" in options.as_printed else super().reach(sender, system, options)

    def send(self, number: int, targets: Processes, group: int) -> Learned:
        """H2: the message is not added to the sender's D. H3: neither is an own copy, which travels."""
        facts, [packet] = super().send(number, targets, group)
        travels = self.printed("H3") and targets >> self.me & 1
        if self.printed("H3"):
            packet = replace(packet, to=targets)
        return Learned(() if travels or self.printed("H2") else facts, (packet,))

    def _R3(self, packet: Packet) -> list[Threshold]:
        """H1: any sender's number counts."""
        needs = super()._R3(packet)
        return [(ANY, c) for _, c in needs] if self.printed("H1") else needs

    def _R5(self, sender: int, number: int) -> list[Threshold]:
        facts = super()._R5(sender, number)
        return [*facts, (ANY, number)] if self.printed("H1") else facts

    def _R62(self, number: int, targets: Processes) -> None:
        """H5: C(m) starts empty. H6: so it does in the appendix, which reports to A alone."""
        if self.printed("H6"):
            self._report(targets)
        else:
            super()._R62(number, targets)
        if self.printed("H5") or self.printed("H6"):
            self._add(self.me, number, targets, 0)

    def _R63(self, packet: Packet) -> None:
        if self.printed("H6"):
            self._R63_H6(packet)
        elif self.printed("H4"):
            self._R63_H4(packet)
        else:
            super()._R63(packet)

    def _R63_H4(self, packet: Packet) -> None:
        """The union is of the timestamp's messages only, and m has not joined H by then."""
        sender = only(packet.sender)
        for c, (A, C) in self.H.get(packet.sender, {}).items():
            if c < packet.number:
                self._add(packet.sender, c, A, C | packet.targets)
        self._join(packet.stamp, packet.targets | sender)
        for s in {s for s, *_ in packet.stamp}:
            _report_to_later(self.H[s], {c for other, c, *_ in packet.stamp if other == s})
        self._add(packet.sender, packet.number, packet.targets, sender | only(self.me))

    def _R63_H6(self, packet: Packet) -> None:
        """The appendix's rule: nothing is learnt of reports, and every C starts empty."""
        self._join([(s, c, A, 0) for s, c, A, _ in packet.stamp], 0)
        self._add(packet.sender, packet.number, packet.targets, 0)

    def explain(self, fact: Fact, least: int, now: int) -> str:
        if fact == ANY:
            return f"any message numbered {least} or more"
        return super().explain(fact, least, now)


class ByHand(AsPrinted):
    """Chapter 6: what the application does not merge is no cause of what is sent later."""

    in_order = False

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.left_out: frozenset[Key] = frozenset()
        """what was sent, or is to be delivered, without being merged"""
        if not self.printed("H9"):
            self.separators = []

    def leave_out(self, key: Key) -> None:
        self.left_out |= {key}

    def deliver(self, packet: Packet) -> Learned:
        if packet.key in self.left_out:
            return Learned(self._R5(packet.sender, packet.number))
        return super().deliver(packet)

    def _R3(self, packet: Packet) -> list[Threshold]:
        needs = super()._R3(packet)
        return needs if self.printed("H8") else [((s, c), 1) for s, c in needs]

    def _R5(self, sender: int, number: int) -> list[Threshold]:
        return super()._R5(sender, number) if self.printed("H8") else [((sender, number), 1)]

    def _R62(self, number: int, targets: Processes) -> None:
        """What is not merged reports nothing: no later message carries it, and what it carried with it."""
        if (self.me, number) not in self.left_out:
            super()._R62(number, targets)

    def _R63(self, packet: Packet) -> None:
        """H8: no union over a sender's later messages, which need not come after its earlier ones."""
        if self.printed("H8") or self.printed("H6"):
            super()._R63(packet)
            return
        sender = only(packet.sender)
        self._join(packet.stamp, packet.targets | sender)
        self._add(packet.sender, packet.number, packet.targets, sender | only(self.me))

    def _R7(self, targets: Processes, C: Processes) -> bool:
        """H9: whoever was told of a message need not have merged it, so it is told again."""
        return self.printed("H9") and super()._R7(targets, C)

    def state(self) -> Any:
        return super().state(), tuple(sorted(self.left_out))

    def load(self, state: Any) -> None:
        history, left_out = state
        super().load(history)
        self.left_out = frozenset(map(tuple, left_out))

    def explain(self, fact: Fact, least: int, now: int) -> str:
        if isinstance(fact, tuple):
            return f"{self.system.name(fact[0])}:{fact[1]}, not yet delivered"
        return super().explain(fact, least, now)

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
R8    H drops what was reported to all who it was addressed to.
R9    A member of a separator (S, F, B) that writes to F leaves out what is addressed to B only and was
      reported to all of S.

Corrected by default; the printed rule of each row can be selected:

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
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass
from typing import Any

from causet.errors import BadInput
from causet.holdback import Fact, Threshold
from causet.model import Processes, System, only
from causet.protocols import base
from causet.protocols.base import Learned, Packet, Promises, Protocol
from causet.protocols.wire import Reader, Writer

Uid = tuple[int, int, Processes, Processes]
"""(s, c, A, C): one message of a history or timestamp; C is empty where R6.1 is off."""
ANY = "any"
"""The fact that H1, as printed, asks for: the largest number delivered, whoever sent it."""


@dataclass(frozen=True, slots=True)
class HistoriesOptions(base.Options):
    r61: bool = base.setting(True, "R6.1: timestamps carry the carbon-copy fields")
    r7: bool = base.setting(True, "R7: a timestamp leaves out what was reported to all its targets")
    r8: bool = base.setting(True, "R8: the history drops what was reported to all it was addressed to")
    r9: bool = base.setting(True, "R9: separators filter what passes them, where separators are given")


class Histories(Protocol):
    name = "histories"
    title = "extended causal histories with causal separators (Rodrigues & Verissimo 1995)"
    PROMISES = Promises(early=True)
    counts = "message ids"
    sensible = 256
    errata = ("H1", "H2", "H3", "H4", "H5", "H6", "H7")
    Options = HistoriesOptions

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.H: dict[int, dict[int, tuple[Processes, Processes]]] = {}  # s → c → (A, C)
        options = self.options
        self.separators = (
            [s for s in self.system.separators if s.members >> self.me & 1] if options.r9 else []
        )

    @classmethod
    def check(cls, sender: int, targets: Processes, group: int, system: System, options: Any) -> None:
        """H7: with R9 on, only neighbours and oneself can be addressed."""
        if options.r9 and system.separators and system.links and "H7" not in options.as_printed:
            far = targets & ~system.links[sender] & ~only(sender)
            if far:
                raise BadInput(
                    f"{system.name(sender)} is not linked with {', '.join(system.names(far))}; with causal "
                    "separators (R9) a process can address its neighbours only"
                )

    def send(self, number: int, targets: Processes, group: int) -> Learned:
        """R2, R4 and R6.2, as one step."""
        me = only(self.me)
        to = targets if self.printed("H3") else targets & ~me
        packet = Packet(self.me, number, targets, to, self._timestamp(targets), group)
        appendix = self.printed("H6")
        reported = targets if appendix else targets | me
        for sent in self.H.values():
            for c, (A, C) in sent.items():
                sent[c] = (A, C | reported)
        start = 0 if appendix or self.printed("H5") else me
        self.H.setdefault(self.me, {})[number] = (targets, start)
        self._drop_reported(self.H)
        travels = self.printed("H3") and targets & me
        if self.printed("H2") or travels:
            return Learned(packets=(packet,))
        return Learned(self._is_in_D(self.me, number), (packet,))

    def _timestamp(self, targets: Processes) -> tuple[Uid, ...]:
        """R2 with R7 and R9: what a message to these targets carries."""
        options = self.options
        filters = [s for s in self.separators if not targets & ~s.forward]
        carried = []
        for s, sent in sorted(self.H.items()):
            for c, (A, C) in sorted(sent.items()):
                if options.r7 and not targets & ~C:
                    continue
                if any(not A & ~sep.backward and not sep.members & ~C for sep in filters):
                    continue
                carried.append((s, c, A, C if options.r61 else 0))
        return tuple(carried)

    def _is_in_D(self, sender: int, number: int) -> list[Threshold]:
        """R5: the facts that rise when a message is added to D."""
        facts: list[Threshold] = [(sender, number)]
        if self.printed("H1"):
            facts.append((ANY, number))
        return facts

    def needs(self, packet: Packet) -> Iterable[Threshold]:
        """R3."""
        if packet.sender == self.me:
            return ()
        if self.printed("H1"):
            return [(ANY, c) for _, c, A, _ in packet.stamp if A >> self.me & 1]
        return [(s, c) for s, c, A, _ in packet.stamp if A >> self.me & 1]

    def deliver(self, packet: Packet) -> Learned:
        """R4 and R6.3, as one step."""
        m_sender, m_number, m_targets = packet.sender, packet.number, packet.targets
        learned = Learned(self._is_in_D(m_sender, m_number))
        if m_sender == self.me:  # an own copy that travelled (H3): H has the message already
            return learned
        H = self.H
        appendix = self.printed("H6")
        touched = {m_sender: H.setdefault(m_sender, {})}
        for c, (A, C) in H[m_sender].items():
            if c < m_number and not appendix:
                H[m_sender][c] = (A, C | m_targets)
        reported = 0 if appendix else m_targets | only(m_sender)
        for s, c, A, C_m in packet.stamp:
            sent = touched[s] = H.setdefault(s, {})
            C = sent[c][1] if c in sent else 0
            sent[c] = (A, C if appendix else C | C_m | reported)
        if self.printed("H4") and not appendix:  # all of H_m is in H by now, and m is not
            for s, sent in touched.items():
                _report_to_later(sent, {c for sender, c, _, _ in packet.stamp if sender == s})
        start = 0 if appendix else only(m_sender) | only(self.me)
        H[m_sender][m_number] = (m_targets, start)
        if not self.printed("H4") and not appendix:
            for sent in touched.values():
                _report_to_later(sent)
        self._drop_reported(touched)
        return learned

    def _drop_reported(self, histories: dict[int, dict[int, tuple[Processes, Processes]]]) -> None:
        """R8, for the senders whose entries changed."""
        if not self.options.r8:
            return
        for s, sent in list(histories.items()):
            for c in [c for c, (A, C) in sent.items() if not A & ~C]:
                del sent[c]
            if not sent:
                self.H.pop(s, None)

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
        for s, c, A, C in state:
            self.H.setdefault(s, {})[c] = (A, C)

    def explain(self, fact: Fact, least: int, now: int) -> str:
        if fact == ANY:
            return f"any message numbered {least} or more"
        return f"{self.system.name(int(str(fact)))}:{least}, not yet delivered"


def _report_to_later(sent: dict[int, tuple[Processes, Processes]], which: Set[int] | None = None) -> None:
    """The union of R6.3: each message of one sender is reported to where that sender's later ones went. H4:
    as printed, only those of the timestamp (`which`) are."""
    later = 0
    for c in sorted(sent, reverse=True):
        A, C = sent[c]
        if which is None or c in which:
            sent[c] = (A, C | later)
        later |= A

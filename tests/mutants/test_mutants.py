"""Each rule of each protocol, dropped or weakened: the explorer must see every one of them.

A mutant is a subclass with one rule broken. What kills it is named beside it: `unsafe` (a delivery before a
cause), `stuck`, `late`, `twice` or `broken`. Mutants of the merge's recovery are in its own test file; the
printed rules of the errata, mutants too, are in test_explorer.py and in tests/papers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from causet.check.explorer import explore
from causet.check.oracle import judge
from causet.check.scope import Scope
from causet.check.scopes import scopes_for
from causet.errors import BadStamp
from causet.holdback import Threshold
from causet.model import System, named_processes, only
from causet.protocols import Packet, Process, make_options
from causet.protocols.base import NOTHING, Learned, Protocol
from causet.protocols.bounded import Bounded
from causet.protocols.controls import Fifo
from causet.protocols.direct import Direct
from causet.protocols.fast import Fast
from causet.protocols.histories import ByHand, Histories
from causet.protocols.matrix import Matrix
from causet.protocols.merge import Merge
from causet.protocols.merge_clock import KnClock, Timestamp
from causet.protocols.optimal import Optimal
from causet.protocols.piggyback import Piggyback
from causet.protocols.relative import SETTLED, Relative
from causet.protocols.slow import Slow
from causet.protocols.vector import Vector
from causet.simulate.replay import replay
from causet.simulate.schedule import parse, read_schedule
from tests.helpers.by_hand import check_merges_by_hand
from tests.helpers.exhibits import ERRATA
from tests.helpers.mutating import Change, modules

MUTANTS: list[Any] = []
LOOKS = ((500, True), (60_000, False), (60_000, True))
"""How many states, and whether beyond the first finding: a few are enough for most mutants."""


def mutant(killed_by: str, **scope: Any) -> Any:
    """Register a mutant with what must be found, and in which scope."""

    def register(kind: Any) -> Any:
        MUTANTS.append(pytest.param(kind, killed_by, scope, id=f"{kind.name}-{kind.__name__}"))
        return kind

    return register


@pytest.mark.parametrize(("kind", "killed_by", "more"), MUTANTS)
def test_the_mutant_is_killed(kind: Any, killed_by: str, more: dict[str, Any]) -> None:
    more = {"processes": 3, "messages": 3, **more}
    scopes = scopes_for(kind, more.pop("processes"), more.pop("messages"), **more)
    found: set[str] = set()
    for (most, every), named in product(LOOKS, scopes):
        scope = named.scope
        fields = {name: getattr(scope, name) for name in Scope.__dataclass_fields__}
        report = explore(Scope(**{**fields, "most_states": most, "every": every, "symmetric": False}))
        found |= report.findings.keys()
        if killed_by in found:
            return
    pytest.fail(f"survived; found only {found or 'nothing'}")


# Raynal & Schiper


@mutant("unsafe")
class WithoutWaitingForOthers(Matrix):
    """ii) without "for all k ≠ j"."""

    def needs(self, packet: Packet) -> Iterable[Threshold]:
        return [wait for wait in super().needs(packet) if wait[0] == packet.sender]


@mutant("unsafe")
class WithoutTheSendersOwnOrder(Matrix):
    """ii) without REC[j] + 1 = ST[j, i]."""

    def needs(self, packet: Packet) -> Iterable[Threshold]:
        return [wait for wait in super().needs(packet) if wait[0] != packet.sender]


@mutant("unsafe")
class LearnsNothingFromDeliveries(Matrix):
    """ii) without SENT := max(SENT, ST)."""

    def deliver(self, packet: Packet) -> Learned:
        before = self.SENT
        learned = super().deliver(packet)
        self.SENT = before
        return learned


@mutant("stuck")
class CountsNoDelivery(Matrix):
    """ii) without REC[j] += 1."""

    def deliver(self, packet: Packet) -> Learned:
        super().deliver(packet)
        return NOTHING


@mutant("unsafe")
class CountsOneTargetOfAMulticast(Matrix):
    """i') increments for one target only."""

    def send(self, number: int, targets: int, group: int) -> Learned:
        learned = super().send(number, targets, group)
        SENT = learned.packets[0].stamp
        others = [j for j in range(self.system.size) if targets >> j & 1 and j != self.me]
        for j in others[1:]:
            SENT[self.me, j] -= 1
        return learned


# Sanchez & Alvarez


@mutant("unsafe")
class BoundedWithoutWaiting(Bounded):
    def needs(self, packet: Packet) -> Iterable[Threshold]:
        return ()


@mutant("unsafe")
class BoundedForgetsItsOwnMessage(Bounded):
    """Column j is emptied after a send, the message itself included."""

    def _sent_to(self, target: int) -> None:
        super()._sent_to(target)
        self.M.pop(target)


@mutant("unsafe")
class BoundedLearnsNothing(Bounded):
    def _learn(self, j: int, column: dict[int, int]) -> None:
        pass


@mutant("broken")
class BoundedKeepsItsColumns(Bounded):
    """A send does not empty the column, and no extra message goes out."""

    def _sent_to(self, target: int) -> None:
        column = self.M.get(target, {})
        self.M[target] = {**column, self.me: column.get(self.me, 0) + 1}

    def _extras(self) -> list[Packet]:
        return []


@mutant("unsafe", settings={"k": "2"})
class ExtraMessagesWithoutTheirColumn(Bounded):
    """An extra message carries no constraints."""

    def _extras(self) -> list[Packet]:
        return [Packet(p.sender, p.number, p.targets, p.to, {}, control=True) for p in super()._extras()]


# Rodrigues & Verissimo


@mutant("unsafe")
class WithoutR3(Histories):
    def needs(self, packet: Packet) -> Iterable[Threshold]:
        return ()


@mutant("unsafe")
class WithoutR4TheTimestampIsNotAdded(Histories):
    def deliver(self, packet: Packet) -> Learned:
        bare = Packet(packet.sender, packet.number, packet.targets, packet.to, (), packet.group)
        return super().deliver(bare)


@mutant("unsafe")
class WithoutR4TheMessageIsNotAdded(Histories):
    def deliver(self, packet: Packet) -> Learned:
        learned = super().deliver(packet)
        self.H.get(packet.sender, {}).pop(packet.number, None)
        return learned


@mutant("stuck")
class WithoutR5NothingEntersD(Histories):
    def deliver(self, packet: Packet) -> Learned:
        super().deliver(packet)
        return NOTHING


@mutant("unsafe")
class R7WhereReportedToSome(Histories):
    """A timestamp leaves out what was reported to one addressee."""

    def _R7(self, targets: int, C: int) -> bool:
        return super()._R7(targets, C) or bool(targets & C)


@mutant("unsafe", messages=4)
class R8WhereReportedToSome(Histories):
    """H drops what was reported to one of those it was addressed to."""

    def _R8(self, senders: Iterable[int]) -> None:
        super()._R8(senders)
        for s in senders:
            sent = self.H.get(s, {})
            for c in [c for c, (A, C) in sent.items() if A & C & ~only(s)]:
                del sent[c]
            if not sent:
                self.H.pop(s, None)


@mutant("unsafe")
class R62ReportsToEverybody(Histories):
    def send(self, number: int, targets: int, group: int) -> Learned:
        learned = super().send(number, targets, group)
        for sent in self.H.values():
            for c, (A, C) in sent.items():
                if c != number:
                    sent[c] = (A, C | self.system.everyone)
        return learned


@mutant("unsafe")
class R63ReportsTheMessageToEverybody(Histories):
    def deliver(self, packet: Packet) -> Learned:
        learned = super().deliver(packet)
        self.H.setdefault(packet.sender, {})[packet.number] = (packet.targets, self.system.everyone)
        return learned


@mutant("unsafe", processes=4, messages=4, links="cycle")
class R9WithoutReportsToTheSeparator(Histories):
    """S ⊆ C dropped: only the directed 4-cycle shows it, random runs hardly ever."""

    def _R9(self, targets: int, A: int, C: int) -> bool:
        return super()._R9(targets, A, self.system.everyone)


@mutant("unsafe", links="path")
class R9WhoeverItIsAddressedTo(Histories):
    """A_n ⊆ B dropped."""

    def _R9(self, targets: int, A: int, C: int) -> bool:
        return super()._R9(targets, 0, C)


@mutant("unsafe", processes=4, messages=4, links="cycle")
class R9WhereverItGoes(Histories):
    """A_m ⊆ F dropped."""

    def _R9(self, targets: int, A: int, C: int) -> bool:
        return super()._R9(0, A, C)


# Macedo


@mutant("unsafe", nulls=0)
class SlowOneBlockTooEarly(Slow):
    def needs(self, packet: Packet) -> Iterable[Threshold]:
        return [(x, packet.stamp - 2) for x in self.mine]


@mutant("unsafe", nulls=0)
class SlowLooksAtItsGroupOnly(Slow):
    def needs(self, packet: Packet) -> Iterable[Threshold]:
        return [(packet.group, packet.stamp - 1)]


@mutant("unsafe", nulls=0, messages=4)
class SlowReleasesLaterBlocksFirst(Slow):
    def rank(self, packet: Packet) -> Any:
        return -packet.stamp


@mutant("unsafe", nulls=0)
class SlowWithoutCA2(Slow):
    def CA2(self, x: int, block: int) -> None:
        pass


@mutant("unsafe", nulls=0)
class SlowWithoutCA1(Slow):
    def CA1(self, x: int) -> int:
        return max(self.BC.get(0, 0), 1)


@mutant("unsafe", processes=2, groups="twins", nulls=1)
class SlowNullsPromiseTooMuch(Slow):
    """A null message that does not move the counter: later messages come in blocks that are complete."""

    def null(self, group: int | None = None) -> Learned:
        before = dict(self.BC)
        learned = super().null(group)
        self.BC = before
        return learned


@mutant("unsafe")
class FastWithoutTheTest(Fast):
    def needs(self, packet: Packet) -> Iterable[Threshold]:
        return ()


@mutant("unsafe", messages=4)
class FastLearnsNothingOfOtherGroups(Fast):
    def deliver(self, packet: Packet) -> Learned:
        block, _ = packet.stamp
        nothing = np.zeros(self.length, dtype=np.int64)
        stamp = (block, nothing)
        return super().deliver(
            Packet(packet.sender, packet.number, packet.targets, packet.to, stamp, packet.group)
        )


@mutant("unsafe")
class FastForgetsItsOwnMessages(Fast):
    def send(self, number: int, targets: int, group: int) -> Learned:
        before = self.GLDV
        learned = super().send(number, targets, group)
        self.GLDV = before
        return learned


@mutant("unsafe", nulls=0)
class RelativeWithoutC01(Relative):
    def _C01(self, packet: Packet) -> Iterable[Threshold]:
        return ()


@mutant("unsafe", nulls=0)
class RelativeWithoutC02(Relative):
    def _C02(self, packet: Packet) -> Iterable[Threshold]:
        return ()


@mutant("unsafe", nulls=0)
class RelativeWithoutGBN(Relative):
    def _learn_GBN(self, x: int, block: int, known: Any = None) -> None:
        pass


@mutant("unsafe", nulls=0, messages=4)
class RelativeSettlesBeforeDelivery(Relative):
    """C02 without "and its messages delivered"."""

    def settled(self, x: int) -> int:
        return self.CBV[x]


@mutant("stuck", nulls=0)
class RelativeNeverSettles(Relative):
    def facts_of(self, x: int) -> list[Threshold]:
        return [(fact, value) for fact, value in super().facts_of(x) if fact[0] != SETTLED]  # type: ignore[index]


# Kulkarni & Ravikant


@mutant("unsafe", messages=2)
class MergeInOrderOfArrival(Merge):
    def rank(self, packet: Packet) -> Any:
        return 0


@mutant("unsafe", messages=2)
class MergeWithoutEpsilon(Merge):
    """Delivers δ after r + c, whatever the skew."""

    def needs(self, packet: Packet) -> Iterable[Threshold]:
        return [(fact, due - self.options.epsilon) for fact, due in super().needs(packet)]


@mutant("unsafe", messages=2)
class MergeCountsNoEvents(Merge):
    def _event(self, *received: Timestamp) -> Timestamp:
        before = self.stamp.kn
        stamp = super()._event(*received)
        if any(before):
            kn = list(stamp.kn)
            kn[self.options.epsilon] = max(1, kn[self.options.epsilon] - 1)
            self.stamp = stamp._replace(kn=tuple(kn))
        return self.stamp


@mutant("unsafe", messages=2)
class MergeLearnsNothing(Merge):
    def _event(self, *received: Timestamp) -> Timestamp:
        return super()._event()


class _ForgetfulClock(KnClock):
    """c is not carried over from a message: what is known of the largest clock is lost."""

    def joined(self, mine: Timestamp, other: Timestamp) -> Timestamp:
        return super().joined(mine, other)._replace(c=mine.c)


@mutant("unsafe", messages=2)
class MergeForgetsTheLargestClock(Merge):
    def _clock(self) -> KnClock:
        most = self.options.events_per_tick * self.system.size + 1
        return _ForgetfulClock(self.options.epsilon, self.options.delta_min, most)


class MergeForgetsTheInitialEvent(Merge):
    """The bound on kn is K·n, without the event that every process begins with."""

    def _clock(self) -> KnClock:
        most = self.options.events_per_tick * self.system.size
        return KnClock(self.options.epsilon, self.options.delta_min, most)


@pytest.mark.parametrize("name", ["K8", "K8-one-event"])
def test_k8_a_bound_without_the_initial_event_is_killed(name: str) -> None:
    schedule = read_schedule(ERRATA / f"{name}.yaml")
    for kind, wrong in ((Merge, 0), (MergeForgetsTheInitialEvent, 1)):
        options, _ = make_options(kind, schedule.system, schedule.options)
        result = replay(schedule, kind, options)
        assert len(judge(result.events, receptions_teach=True).violations) == wrong


# The baselines


@mutant("unsafe")
class VectorWithoutOtherGroups(Vector):
    def needs(self, packet: Packet) -> Iterable[Threshold]:
        sender = self.layout.entry(packet.sender, packet.group)
        return [wait for wait in super().needs(packet) if wait[0] == sender]


@mutant("unsafe")
class VectorWithoutTheSendersOrder(Vector):
    def needs(self, packet: Packet) -> Iterable[Threshold]:
        sender = self.layout.entry(packet.sender, packet.group)
        return [wait for wait in super().needs(packet) if wait[0] != sender]


@mutant("unsafe")
class OptimalWithoutWaiting(Optimal):
    def needs(self, packet: Packet) -> Iterable[Threshold]:
        return ()


@mutant("unsafe")
class OptimalForgetsWhatItSent(Optimal):
    def send(self, number: int, targets: int, group: int) -> Learned:
        learned = super().send(number, targets, group)
        self.LOG[self.me][number] = 0
        return learned


@mutant("unsafe")
class OptimalForgetsOtherTargets(Optimal):
    def deliver(self, packet: Packet) -> Learned:
        alone = Packet(packet.sender, packet.number, only(self.me), packet.to, packet.stamp, packet.group)
        return super().deliver(alone)


@mutant("late", messages=4)
class OptimalNeverForgets(Optimal):
    """What is delivered here goes on being carried as if it were not."""

    def needs(self, packet: Packet) -> Iterable[Threshold]:
        return [*super().needs(packet), *((s, max(entries)) for s, entries in packet.stamp.items())]


@mutant("unsafe")
class DirectForgetsItsOwnLast(Direct):
    def send(self, number: int, targets: int, group: int) -> Learned:
        learned = super().send(number, targets, group)
        self.maximal = {}
        return learned


@mutant("unsafe")
class DirectForgetsWhatItDelivered(Direct):
    def deliver(self, packet: Packet) -> Learned:
        before = dict(self.maximal)
        learned = super().deliver(packet)
        self.maximal = before
        return learned


@mutant("unsafe")
class PiggybackCarriesNothing(Piggyback):
    def _carried(self) -> Any:
        return ()


@mutant("unsafe", messages=4)
class PiggybackInReverse(Piggyback):
    def unpack(self, packet: Packet) -> Iterable[Packet]:
        *carried, last = super().unpack(packet)
        return [*reversed(carried), last]


@mutant("unsafe")
class PiggybackTakesASendForADelivery(Piggyback):
    """A message is over as soon as one target has it."""

    def _note(self, s: int, c: int, A: int, done: int, group: int) -> None:
        super()._note(s, c, A, A if done else 0, group)


@mutant("unsafe")
class FifoWithoutNumbers(Fifo):
    def needs(self, packet: Packet) -> Iterable[Threshold]:
        return ()


# Rules that keep stamps small: a mutant stays correct and carries too much.


def entries_of(kind: Any, steps: str, message: str) -> int:
    """How many entries the stamp of a message has after these steps."""
    plan = parse(
        "processes: [p1, p2, p3, p4, p5]\nsteps:\n" + "".join(f"  - {step}\n" for step in steps.split("; "))
    )
    result = replay(plan, kind, make_options(kind, plan.system, {})[0])
    [sent] = [e for e in result.events if e.kind == "send" and e.message == message]
    assert sent.stamp_entries is not None
    return sent.stamp_entries


CARBON_COPIES = (
    "{send: a, from: p4, to: [p1, p5]}; {receive: a, at: p1}; {send: x, from: p1, to: [p3]}; "
    "{send: y, from: p1, to: [p2]}; {receive: y, at: p2}; {send: z, from: p2, to: [p3]}"
)


class IgnoresCarbonCopies(Histories):
    """R6.1 without its use: what the sender of a message had reported to others is not learnt from it."""

    def deliver(self, packet: Packet) -> Learned:
        stamp = tuple((s, c, A, 0) for s, c, A, _ in packet.stamp)
        return super().deliver(replace(packet, stamp=stamp))


def test_r61_spares_a_receiver_what_was_reported_to_it_already() -> None:
    """z must wait for x, which p3 gets from p1, and x has told p3 of a: z carries x alone."""
    assert entries_of(Histories, CARBON_COPIES, "z") == 1
    assert entries_of(IgnoresCarbonCopies, CARBON_COPIES, "z") == 2


BOTH_DELIVERED = (
    "{send: m, from: p1, to: [p2, p3]}; {receive: m, at: p2}; {send: x, from: p2, to: [p4]}; "
    "{receive: m, at: p3}; {send: y, from: p3, to: [p4]}; {receive: x, at: p4}; {receive: y, at: p4}; "
    "{send: z, from: p4, to: [p1]}"
)


def test_optimal_forgets_what_either_side_knows_to_be_delivered(monkeypatch: pytest.MonkeyPatch) -> None:
    """RCV 4: p2 knows that m is delivered at p2, p3 that it is at p3; p4 hears both, and m has no
    destinations left. z carries three entries without destinations: the latest of p1, p2 and p3."""

    def united(mine: dict[int, int], theirs: dict[int, int]) -> dict[int, int]:
        return {c: mine.get(c, 0) | theirs.get(c, 0) for c in mine.keys() | theirs.keys()}

    assert entries_of(Optimal, BOTH_DELIVERED, "z") == 3
    monkeypatch.setattr("causet.protocols.optimal._merge", united)
    assert entries_of(Optimal, BOTH_DELIVERED, "z") > 3


def test_an_extra_message_goes_to_the_fullest_column() -> None:
    """Section 3: of the columns of p3 and p4, with one and two entries, p4's is emptied."""
    system = System(named_processes(4))
    process = Process(Bounded, 0, system, make_options(Bounded, system, {"k": 4})[0])
    assert isinstance(process.protocol, Bounded)
    process.protocol.M = {1: {0: 3}, 2: {1: 1, 3: 1}, 3: {0: 1, 1: 2, 2: 1}}
    [_, extra] = process.send(only(1)).packets
    assert extra.control and extra.to == only(3)
    assert extra.stamp == {3: {0: 1, 1: 2, 2: 1}}
    assert process.protocol.M == {1: {0: 4}, 2: {1: 1, 3: 1}, 3: {0: 2}}


class TellsNoNeighbours(Fast):
    """The variant `neighbours` without its copies: M2 again."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.copies = False


def test_the_variant_neighbours_is_stuck_without_its_copies() -> None:
    for kind, found in ((Fast, False), (TellsNoNeighbours, True)):
        [named] = scopes_for(kind, 3, 3, groups="pairs", settings={"variant": "neighbours"})
        assert ("stuck" in explore(named.scope).findings) == found


# Merges by hand (chapter 6 of Rodrigues & Verissimo), which an exploration does not do.


class HandMutant(ByHand):
    """A mutant of the rules of `by_hand`; it takes their place, whatever is printed."""

    @classmethod
    def variant(cls, options: Any) -> type[Protocol]:
        return cls


class NumbersStandForEarlierOnes(HandMutant):
    def _R3(self, packet: Packet) -> list[Threshold]:
        return Histories._R3(self, packet)

    def _R5(self, sender: int, number: int) -> list[Threshold]:
        return Histories._R5(self, sender, number)


class UnitesOverNumbers(HandMutant):
    def _R63(self, packet: Packet) -> None:
        Histories._R63(self, packet)


class LeavesOutWhatWasReported(HandMutant):
    def _R7(self, targets: int, C: int) -> bool:
        return Histories._R7(self, targets, C)


class SendsReportWithoutAMerge(HandMutant):
    def _R62(self, number: int, targets: int) -> None:
        if (self.me, number) in self.left_out:
            self._report(targets | only(self.me))
        super()._R62(number, targets)


class MergesWhatIsSent(HandMutant):
    def _R62(self, number: int, targets: int) -> None:
        Histories._R62(self, number, targets)


class MergesWhatIsDelivered(HandMutant):
    def deliver(self, packet: Packet) -> Learned:
        return Histories.deliver(self, packet)


class ForgetsWhatItDelivers(HandMutant):
    def deliver(self, packet: Packet) -> Learned:
        learned = super().deliver(packet)
        return NOTHING if packet.key in self.left_out else learned


class TakesALowerNumberForADuplicate(HandMutant):
    in_order = True


BY_HAND = System(named_processes(4))


def test_unchanged_merges_by_hand_pass() -> None:
    check_merges_by_hand(HandMutant, BY_HAND, range(80))


@pytest.mark.parametrize("kind", HandMutant.__subclasses__(), ids=lambda kind: kind.__name__)
def test_a_mutant_of_merges_by_hand_is_killed(kind: Any) -> None:
    with pytest.raises(AssertionError):
        check_merges_by_hand(kind, BY_HAND, range(80))


# The tag of a stamp: one form for each protocol, whatever their number.


def forms_of_tags(wire: Any) -> None:
    """Each of many protocols reads what it writes, and no other form of its tag."""
    wire.TAGS = tuple(f"p{number}" for number in range(300))
    for tag in (0, 14, 15, 16, 127, 128, 299):
        data = wire.Writer(f"p{tag}").done()
        wire.Reader(f"p{tag}", data).done()
        longer = wire.Writer("p15")
        longer._bytes = bytearray(b"\x1f")
        longer.number(tag)
        if longer.done() != data:
            with pytest.raises(BadStamp):
                wire.Reader(f"p{tag}", longer.done())


@pytest.mark.parametrize(
    ("line", "becomes"),
    [
        ("            if tag < EXTENDED:\n", "            if False:\n"),
        ("            if tag < EXTENDED:\n", "            if tag <= EXTENDED:\n"),
        ("        if tag >= EXTENDED:\n", "        if tag > EXTENDED:\n"),
    ],
)
def test_mutants_of_the_tag_are_killed(line: str, becomes: str) -> None:
    with modules(None, ["protocols.wire"]) as made:
        forms_of_tags(made["protocols.wire"])
    with (
        modules(Change("protocols.wire", line, becomes), ["protocols.wire"]) as made,
        pytest.raises((BadStamp, pytest.fail.Exception)),
    ):
        forms_of_tags(made["protocols.wire"])

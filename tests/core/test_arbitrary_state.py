"""From any state the merge comes back: fields of processes are damaged, and the oracle judges what follows.

A world has processes whose clocks are within ε of each other, and messages that take at most δ, to everybody,
the sender included. At some moment T fields of some processes become noise. The promise: all that is
delivered after T + `Merge.recovery` is in causal order and in one order for all, and nothing that is sent two
ticks later still is lost or held. Messages are told apart by a mark of their own (`Packet.stream`), for a
damaged counter may use a number again.

Why two ticks: from the next tick on, at most 1 later, a message that was held waits for up to δ + 3ε + 1, and
its number is remembered through as many ticks again, and forgotten at the next: 2(δ + 3ε + 1) + 2, where the
recovery is 2(δ + 3ε) + 3; and clocks tick at different moments.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from causet.check.oracle import judge
from causet.check.runs import Run, run
from causet.errors import BadInput
from causet.holdback import HoldBack
from causet.model import Event, System, members, named_processes
from causet.protocols import Outcome, Packet, Process, make_options
from causet.protocols.base import Learned
from causet.protocols.merge import Merge, MergeOptions
from causet.protocols.merge_clock import Timestamp
from causet.simulate.damage import FIELDS, damage
from causet.simulate.network import Network
from causet.simulate.workload import Workload, delay_of
from causet.topology import groups_of


class World:
    def __init__(self, seed: int, kind: type[Merge] = Merge, **settings: object) -> None:
        self.draw = draw = Random(seed)
        self.system = System(named_processes(draw.randint(2, 4)))
        self.epsilon, self.delta = draw.randint(0, 3), draw.randint(1, 6)
        chosen = {"epsilon": self.epsilon, "delta": self.delta, "events_per_tick": draw.choice([1, 2, 16])}
        options, _ = make_options(kind, self.system, {**chosen, **settings})
        assert isinstance(options, MergeOptions)
        self.options = options
        self.processes = [Process(kind, p, self.system, self.options) for p in range(self.system.size)]
        self.offsets = [draw.randint(0, self.epsilon) for _ in self.processes]
        self.time = 0.0
        self.under_way: list[tuple[float, int, Packet]] = []
        self.events: list[Event] = []
        self.seqs = [0] * self.system.size
        self.sent_at: list[float] = []
        self.damaged = -1.0

    def note(self, p: int, kind: str, packet: Packet, **more: Any) -> None:
        self.seqs[p] += 1
        name = f"m{packet.stream}"
        event = Event(self.system.name(p), self.seqs[p], kind, message=name, time=self.time, **more)
        self.events.append(event)

    def follow(self, p: int, outcome: Outcome) -> None:
        for packet in outcome.delivered:
            self.note(p, "deliver", packet)
        for packet in outcome.packets:
            self.sent_at.append(self.time)
            mine = replace(packet, stream=len(self.sent_at))
            self.note(p, "send", mine, to=tuple(self.system.names(mine.to)))
            self.mark_own(p, mine)
            for q in members(mine.to):
                # Its receiver's clock may be ahead by ε, and shows at most δ more than its sender's did.
                takes = self.draw.uniform(0, max(0, self.delta - self.epsilon - 1))
                self.under_way.append((self.time + takes, q, mine))

    def mark_own(self, p: int, mine: Packet) -> None:
        """The sender's own copy gets the mark, too."""
        self.processes[p]._engine.review(
            lambda held, needs, rank: (
                (needs, rank, replace(held, stream=mine.stream))
                if held.key == mine.key and not held.stream
                else None
            )
        )

    def go(self, units: int, rate: float = 0.8) -> None:
        """So many units of time, in which each process is asked to send with this probability."""
        for _ in range(units):
            now = int(self.time) + 1
            self.time = float(now)
            for p, process in enumerate(self.processes):
                self.follow(p, process.tick(now + self.offsets[p]))
            steps: list[tuple[float, int, Packet | None]] = [
                (now + self.draw.random(), p, None)
                for p in range(len(self.processes))
                if self.draw.random() < rate
            ]
            steps += [(max(at, float(now)), q, m) for at, q, m in self.under_way if at < now + 1]
            self.under_way = [copy for copy in self.under_way if copy[0] >= now + 1]
            for at, p, packet in sorted(steps, key=lambda step: step[0]):
                self.time = at
                if packet is None:
                    self.follow(p, self.processes[p].send(self.system.everyone))
                elif not self.processes[p]._engine.seen(packet.key):  # else it is lost here, as a duplicate
                    self.note(p, "receive", packet)
                    self.follow(p, self.processes[p].receive(packet))

    def drain(self) -> None:
        """Time enough for all that was sent, and was put off at one event per tick."""
        self.go(2 * (3 * self.epsilon + self.delta) + 40, rate=0.0)

    def found(self, since: float, sent_since: float) -> tuple[int, int, int]:
        """(violations, disagreements, lost): of what was delivered after a moment, and was sent after one."""
        times = {(e.process, e.message): e.time or 0.0 for e in self.events if e.kind == "deliver"}
        everywhere = [(p, f"m{m}") for p in self.system.processes for m in range(1, len(self.sent_at) + 1)]
        lost = [pair for pair in everywhere if pair not in times]
        verdict = judge(self.events, lost=lost, receptions_teach=True)
        late = [v for v in verdict.violations if times[v.process, v.delivered] > since]
        again = [pair for pair in verdict.duplicates if times[pair] > since]
        # Deliveries before that moment say nothing; sequence numbers need not be contiguous.
        some = [e for e in self.events if e.kind != "deliver" or (e.time or 0.0) > since]
        missing = [m for _, m in lost if self.sent_at[int(m[1:]) - 1] > sent_since]
        return len(late) + len(again), len(judge(some).disagreements), len(missing)


def damaged_world(
    seed: int, kind: type[Merge] = Merge, fields: Sequence[str] = (), **settings: object
) -> World:
    """A world in which some processes were damaged, once, and have had the time to recover."""
    world = World(seed, kind, **settings)
    draw = world.draw
    world.go(draw.randint(0, 12))
    world.time += draw.random() * (int(world.time) + 1 - world.time)
    some = draw.sample(world.processes, draw.randint(1, len(world.processes)))
    for process in some:
        damage(process, draw, fields)
    world.damaged = world.time
    world.go(2 * (3 * world.epsilon + world.delta) + 25)
    world.drain()
    return world


def check(seed: int, kind: type[Merge] = Merge, fields: Sequence[str] = (), **settings: object) -> World:
    world = damaged_world(seed, kind, fields, **settings)
    recovered = world.damaged + kind.recovery(world.options)
    found = world.found(recovered, recovered + 2)
    assert found == (0, 0, 0), f"seed {seed}: {found}"
    assert not any(process.held() or process.put_off for process in world.processes), f"seed {seed}"
    return world


def test_100_damages_of_any_fields_are_recovered_from() -> None:
    for seed in range(100):
        check(seed)


@pytest.mark.soak
@pytest.mark.parametrize("chunk", range(4))
def test_2000_damages_of_any_fields_are_recovered_from(chunk: int) -> None:
    for seed in range(10_000 + chunk * 500, 10_000 + (chunk + 1) * 500):
        check(seed)


@pytest.mark.parametrize("field", FIELDS)
def test_damage_to_each_field_alone_is_recovered_from(field: str) -> None:
    for seed in range(12):
        check(seed, fields=(field,))


def test_clocks_modulo_b_recover_too() -> None:
    """Theorem 3.7: with B ≥ 6ε + δ + 1, here for the largest ε and δ of these worlds."""
    for seed in range(40):
        check(seed, modulus=6 * 3 + 6 + 1)


def woken(kind: type[Merge], seed: int) -> list[str] | None:
    """The receptions that p2 has deferred are damaged, and nothing happens for long. Then p1 sends, p2
    receives that and sends, at a time for which the damage may have been made: the order at p3. None if it
    was not."""
    draw = Random(seed)
    system = System(named_processes(3))
    options, _ = make_options(kind, system, {"epsilon": 2, "delta": 3})
    p1, p2, p3 = processes = [Process(kind, p, system, options) for p in range(3)]
    for process in processes:
        process.tick(1000)
    damage(p2, draw, ("deferred receptions",))
    assert isinstance(p2.protocol, Merge) and isinstance(options, MergeOptions)
    latest = max((stamp.r for stamp in p2.protocol.deferred), default=0)
    if latest <= 1000 + kind.recovery(options):
        return None
    now = latest + draw.randint(-2, 2)
    for at in (1001, 1002, now):
        for process in processes:
            process.tick(at)
    for _ in range(5):
        [cause] = p1.send(0b110).packets
    p2.receive(cause)
    [effect] = p2.send(0b100).packets
    p3.receive(effect)
    p3.receive(cause)
    later = range(now + 1, now + 30)
    return [packet.id(system) for at in later for packet in p3.tick(at).delivered]


def test_an_idle_process_recovers_from_damaged_receptions_too() -> None:
    orders = [order for seed in range(400) if (order := woken(Merge, seed)) is not None]
    assert len(orders) > 50
    assert all(order == ["p1:5", "p2:1"] for order in orders)


def test_damage_does_show_before_it_is_recovered_from() -> None:
    """The tests above would prove nothing if damage had no effect."""
    shown = [damaged_world(seed).found(-1.0, -1.0) for seed in range(40)]
    assert all(sum(found[kind] > 0 for found in shown) > 3 for kind in range(3))


def test_what_held_messages_wait_for_is_right_again_at_the_next_tick() -> None:
    for seed in range(40):
        world = damaged_world(seed, fields=("thresholds", "ranks"))
        assert world.found(int(world.damaged) + 1.0, world.damaged)[:2] == (0, 0), seed


# ---------------------------------------------------------------- each rule of repair, left out


class KeepsTheCount(Merge):
    """The count of events is not reset by a tick after a fault."""

    def tick(self, now: int) -> Learned:
        events = self.events
        learned = super().tick(now)
        if not 0 <= events <= self.options.events_per_tick:
            self.events = events
        return learned


class KeepsWhatItHeld(Merge):
    """What held messages wait for is not looked at."""

    def mended(self, *_: object) -> None:
        return None


class KeepsItsMemory(Merge):
    """What is remembered as delivered is not looked at."""

    def remembered(self) -> Any:
        return None


class KeepsDeliveriesToCome(Merge):
    """What was delivered at a time that has not come is remembered until then."""

    def remembered(self) -> Any:
        oldest = self.rt - self.longest()
        self.passed = deque((tick, key) for tick, key in self.passed if tick >= oldest)
        return [key for _, key in self.passed]


class KeepsReceptions(Merge):
    """Receptions that were deferred are not looked at."""

    def _counts(self, stamp: Timestamp) -> bool:
        return True


class KeepsReceptionsToCome(Merge):
    """Those of a time that has not come are kept until then."""

    def _counts(self, stamp: Timestamp) -> bool:
        return self.clock.teaches(stamp, self.rt)


@pytest.mark.parametrize("kind", [KeepsReceptions, KeepsReceptionsToCome])
def test_without_the_rule_a_damaged_reception_breaks_a_later_event(kind: type[Merge]) -> None:
    orders = [order for seed in range(400) if (order := woken(kind, seed)) is not None]
    assert ["p2:1", "p1:5"] in orders


class TrustsItsClock(Merge):
    """A clock that has been damaged ahead is believed."""

    def tick(self, now: int) -> Learned:
        return super().tick(max(now, self.rt))


class KeepsItsNumber(Merge):
    numbers = 2**62


RULES = [
    (KeepsTheCount, "count of events"),
    (KeepsWhatItHeld, "thresholds"),
    (KeepsItsMemory, "passed messages"),
    (KeepsDeliveriesToCome, "times of deliveries"),
    (TrustsItsClock, "clock"),
    (KeepsItsNumber, "number"),
]


@pytest.mark.parametrize(("kind", "field"), RULES)
def test_without_the_rule_damage_stays(kind: type[Merge], field: str) -> None:
    with pytest.raises((AssertionError, OverflowError, BadInput)):
        for seed in range(40):
            check(seed, kind, fields=(field,))


def test_without_lowering_the_engines_clock_everything_is_delivered_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(HoldBack, "lower", lambda self, fact, value: None)
    with pytest.raises(AssertionError):
        for seed in range(40):
            check(seed, fields=("clock of the engine",))


def test_without_looking_at_ranks_messages_leave_in_a_damaged_order() -> None:
    class KeepsRanks(Merge):
        def mended(self, packet: Packet, thresholds: Any, rank: Any) -> Any:
            changed = super().mended(packet, thresholds, rank)
            return None if changed is None else (changed[0], rank)

    wrong = 0
    for seed in range(40):
        world = damaged_world(seed, KeepsRanks, fields=("ranks",))
        wrong += sum(world.found(int(world.damaged) + 1.0, world.damaged)[:2])
    assert wrong


def test_without_looking_at_sends_that_were_put_off_nonsense_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Process, "_can_be_sent", lambda self, targets, group: True)
    with pytest.raises((AssertionError, IndexError, ValueError)):
        for seed in range(40):
            check(seed, fields=("sends put off",))


IMPOSSIBLE: list[dict[str, Any]] = [
    {"sender": 3},
    {"sender": -1},
    {"number": 0},
    {"number": -5},
    {"number": 2**32},
    {"targets": 0, "to": 0},
    {"to": 0b1111},
    {"targets": 0b1111, "to": 0b1111},
    {"to": 0b010},
    {"targets": -1, "to": -1},
    {"group": 7},
]


@pytest.mark.parametrize("broken", IMPOSSIBLE, ids=str)
@pytest.mark.parametrize("at_once", [False, True])
def test_a_held_message_that_cannot_have_come_is_dropped(broken: dict[str, Any], at_once: bool) -> None:
    """At the next tick; and if damage to what it waits for lets it leave before that, it is not delivered."""
    system = System(named_processes(3))
    options, _ = make_options(Merge, system, {"epsilon": 2, "delta": 3})
    p1, p2, p3 = processes = [Process(Merge, p, system, options) for p in range(3)]
    for process in processes:
        process.tick(1000)
    [first] = p2.send(0b101).packets
    [second] = p3.send(0b011).packets
    p1.receive(first)
    p1._engine.review(lambda p, needs, rank: (() if at_once else needs, rank, replace(p, **broken)))
    assert p1.receive(second).delivered == ()
    for now in range(1001, 1006):
        assert p1.tick(now).delivered == () and p1.held() == [second]
    assert [packet.key for packet in p1.tick(1006).delivered] == [second.key]
    p1.receive(first)  # a copy of it that comes late is refused, and one that comes in time is new
    assert p1.held() == []


def test_the_simulator_counts_what_a_damaged_process_drops_as_lost() -> None:
    """Whether or not its network doubled it: else a run would wait for it until it gives up."""
    for duplication in (0.0, 0.3):
        lost = 0
        for seed in range(6):
            result = simulated(seed, state_corruption=0.01, duplication=duplication)
            assert not result.bad and result.tally.outstanding == 0, seed
            lost += result.tally.lost
        assert lost > 20


# ---------------------------------------------------------------- numbers


def test_a_number_that_is_used_again_is_a_duplicate_for_a_while_and_new_after_that() -> None:
    """The promise about numbers: a message may be lost that way, and none is out of order."""
    system = System(named_processes(2))
    options, _ = make_options(Merge, system, {"epsilon": 1, "delta": 2})
    sender, receiver = (Process(Merge, p, system, options) for p in range(2))
    got = []
    for now in range(1, 40):
        got += [(p.number, p.stamp.r) for p in receiver.tick(now).delivered]
        sender.tick(now)
        if now in (2, 4, 30):
            sender.sent = 0
            [packet] = sender.send(0b10).packets
            assert packet.number == 1
            receiver.receive(packet)
    assert got == [(1, 2), (1, 30)]


# ---------------------------------------------------------------- the simulator


def simulated(seed: int, kind: type[Merge] = Merge, **faults: Any) -> Run:
    draw = Random(seed)
    system = System(named_processes(4), groups_of("all", 4, 1))
    epsilon = draw.randint(1, 3)
    options, _ = make_options(kind, system, {"epsilon": epsilon, "delta": 6})
    workload = Workload(system, 600, 0.5, delay_of("uniform:0:2"), seed, own_copies=draw.random() < 0.5)
    return run(kind, options, workload, Network(**faults), one_order=True)


def test_simulated_processes_recover_from_damage_and_clocks_that_were_wrong() -> None:
    excused = 0
    for seed in range(8):
        result = simulated(seed, state_corruption=0.002, skew_fault=(seed % 4, 15.0))
        assert not result.bad, seed
        assert result.tally.faults > 5
        excused += result.findings.excused
    assert excused > 20


def test_the_simulator_sees_a_merge_that_does_not_recover(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HoldBack, "lower", lambda self, fact, value: None)
    assert any(simulated(seed, state_corruption=0.002).bad for seed in range(8))


def test_without_bounds_nothing_is_promised() -> None:
    system = System(named_processes(2))
    options, _ = make_options(Merge, system, {"clock": "rc"})
    process = Process(Merge, 0, system, options)
    with pytest.raises(BadInput, match="the ⟨r, c⟩ clock does not claim to recover from damage to its state"):
        damage(process, Random(0), ("timestamp",))
    said = "merge with these options does not claim to bear skew-fault; merge with the clock kn does"
    with pytest.raises(BadInput, match=said):
        Network(skew_fault=(0, 5.0)).check(Merge, options)
    process.tick(5)
    with pytest.raises(BadInput, match="a clock that shows 5 cannot go to 4"):
        process.tick(4)


def protocol_of(process: Process) -> Merge:
    assert isinstance(process.protocol, Merge)
    return process.protocol


@pytest.mark.parametrize("far", [-(2**70), -1, 2**62, 2**63 - 1, 2**70])
@pytest.mark.parametrize("modulus", [0, 6])
def test_values_that_no_clock_shows_stop_nothing(far: int, modulus: int) -> None:
    """A timestamp, the stamps of held messages and the clock are out of all bounds."""
    system = System(named_processes(2))
    options, _ = make_options(Merge, system, {"epsilon": 1, "delta": 2, "modulus": modulus})
    one, other = (Process(Merge, p, system, options) for p in range(2))
    for process in (one, other):
        process.tick(100)
    wild = Timestamp(far, far, (far,) * 3)

    [first] = one.send(system.everyone).packets
    other.receive(first)
    for process in (one, other):
        protocol_of(process).stamp = wild
        process._engine.review(lambda held, needs, rank: (needs, rank, replace(held, stamp=wild)))
    [second] = one.send(system.everyone).packets
    assert second.stamp.r == (100 % modulus if modulus else 100) and second.stamp.c == 0
    other.receive(second)

    for process in (one, other):
        protocol_of(process).rt = far
    assert one.send(system.everyone).packets == ()  # put off: what a clock shows that cannot be is no time
    outcome = one.tick(101)
    [third] = outcome.packets
    other.tick(101)
    other.receive(third)
    later = [
        [packet.number for now in range(102, 110) for packet in p.tick(now).delivered] for p in (one, other)
    ]
    assert [numbers[-2:] for numbers in later] == [[2, 3], [2, 3]]

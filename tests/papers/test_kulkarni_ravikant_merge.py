"""Kulkarni & Ravikant, "Stabilizing Causal Deterministic Merge": the clock, its bytes, and its recovery."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest

from causet.errors import BadInput
from causet.model import System, named_processes, only
from causet.protocols import Packet, Process, make_options
from causet.protocols.merge import Merge, MergeOptions
from causet.protocols.merge_clock import KnClock, Timestamp, key_rc, less_rc_as_printed


class World:
    """Processes with skewed clocks, messages within δ, and happened-before by vector clocks of our own.

    Every send and reception is an event with the timestamp that the protocol gave it.
    """

    def __init__(
        self, seed: int, size: int, epsilon: int, delta: int, modulus: int = 0, **more: object
    ) -> None:
        self.draw = Random(seed)
        self.system = System(named_processes(size))
        settings = {"epsilon": epsilon, "delta": delta, "modulus": modulus, **more}
        options, _ = make_options(Merge, self.system, settings)
        assert isinstance(options, MergeOptions)
        self.epsilon, self.delta, self.modulus = epsilon, delta, modulus
        self.processes = [Process(Merge, p, self.system, options) for p in range(size)]
        self.clocks = [0] * size
        self.time = 0
        self.under_way: list[tuple[int, int, Packet, list[int], int]] = []
        self.vectors = [[0] * size for _ in range(size)]
        self.events: list[tuple[int, Timestamp, list[int]]] = []  # (time, stamp, direct predecessors)
        self.last: list[int | None] = [None] * size
        self.sent: dict[tuple[int, int], tuple[int, list[int]]] = {}
        self.order: list[list[tuple[int, int]]] = [[] for _ in range(size)]

    def protocol(self, p: int) -> Merge:
        protocol = self.processes[p].protocol
        assert isinstance(protocol, Merge)
        return protocol

    def clock(self) -> KnClock:
        clock = self.protocol(0).clock
        assert isinstance(clock, KnClock)
        return clock

    def event(self, p: int, message: int | None = None) -> int:
        """Note an event of p, which may have received the message of another event."""
        self.vectors[p][p] += 1
        direct = [e for e in (self.last[p], message) if e is not None]
        self.last[p] = len(self.events)
        self.events.append((self.time, self.protocol(p).stamp, direct))
        return len(self.events) - 1

    def tick(self) -> None:
        """One unit of time: every clock shows a value within [time, time + ε]."""
        self.time += 1
        for p, process in enumerate(self.processes):
            now = max(self.clocks[p], self.time + self.draw.randint(0, self.epsilon))
            # A clock that would be ahead of another by more than ε waits for it.
            self.clocks[p] = min(now, self.time + self.epsilon)
            delivered = process.tick(self.clocks[p]).delivered
            self.order[p] += [(packet.sender, packet.number) for packet in delivered]

    def some_events(self, count: int) -> None:
        for _ in range(count):
            due = [copy for copy in self.under_way if copy[0] <= self.time]
            if due and self.draw.random() < 0.6:
                self.receive(self.draw.choice(due))
            else:
                self.send(self.draw.randrange(len(self.processes)))

    def send(self, p: int) -> None:
        everyone = self.system.everyone & ~only(p)
        [packet] = self.processes[p].send(everyone).packets
        event = self.event(p)
        vector = list(self.vectors[p])
        self.sent[p, packet.number] = (self.time, vector)
        for q in range(len(self.processes)):
            if q != p:
                at = self.time + self.draw.randint(0, self.delta)
                self.under_way.append((at, q, packet, vector, event))

    def receive(self, copy: tuple[int, int, Packet, list[int], int]) -> None:
        self.under_way.remove(copy)
        _, q, packet, vector, event = copy
        if self.processes[q].receive(packet).refused:
            return
        self.vectors[q] = [max(a, b) for a, b in zip(self.vectors[q], vector, strict=True)]
        self.event(q, event)

    def arrive(self) -> None:
        """Whatever is due arrives: a message takes at most δ."""
        for copy in [c for c in self.under_way if c[0] <= self.time]:
            self.receive(copy)

    def run(self, ticks: int, events: int = 3) -> None:
        for _ in range(ticks):
            self.tick()
            self.some_events(events)
            self.arrive()

    def damage(self) -> None:
        """All state and all messages under way become noise."""
        for process in self.processes:
            process.corrupt(self.draw)
        protocol = self.protocol(0)
        self.under_way = [
            (
                at,
                q,
                Packet(
                    p.sender, p.number, p.targets, p.to, protocol.corrupt_stamp(p.stamp, self.draw), p.group
                ),
                vector,
                event,
            )
            for at, q, p, vector, event in self.under_way
        ]

    def wrong_pairs(self, since: int) -> int:
        """Events after `since`, one directly before the other, that `less` does not have so.

        `less` is transitive (observation 3.5), so direct pairs are enough.
        """
        clock = self.clock()
        return sum(
            not clock.less(self.events[before][1], stamp)
            for time, stamp, direct in self.events
            for before in direct
            if time > since and self.events[before][0] > since
        )

    def misordered(self, since: int) -> int:
        """Deliveries of messages sent after `since` that are out of causal order."""
        wrong = 0
        for order in self.order:
            late = [self.sent[m][1] + [m[0]] for m in order if self.sent[m][0] > since]
            for position, later in enumerate(late):
                for earlier in late[position + 1 :]:
                    sender = earlier[-1]
                    wrong += later[sender] >= earlier[sender]  # `earlier` came second, and `later` knew it
        return wrong


@pytest.mark.parametrize("seed", range(40))
def test_theorem_3_6_happened_before_implies_less(seed: int) -> None:
    world = World(seed, size=4, epsilon=seed % 4, delta=1 + seed % 5)
    world.run(40)
    assert len(world.events) > 60
    assert world.wrong_pairs(since=-1) == 0
    assert world.misordered(since=-1) == 0


@pytest.mark.parametrize("seed", range(20))
def test_theorem_4_4_all_deliver_common_messages_in_the_same_order(seed: int) -> None:
    world = World(seed, size=4, epsilon=2, delta=4)
    world.run(60)
    for first in world.order:
        for second in world.order:
            common = [m for m in first if m in set(second)]
            assert common == [m for m in second if m in set(first)]
            assert len(common) > 20


def test_lemmas_3_1_3_2_and_3_4_hold_of_every_timestamp() -> None:
    world = World(1, size=5, epsilon=3, delta=6, events_per_tick=16)
    world.run(80)
    clock = world.clock()
    for _, stamp, _ in world.events:
        assert 0 <= stamp.c <= 3
        assert clock.at(stamp, stamp.c) > 0
        assert all(clock.at(stamp, t) == 0 for t in range(stamp.c + 1, 4))
        assert max(stamp.kn) <= 16 * 5


def corruptions(seeds: range) -> int:
    """The longest time after damage at which something was still wrong."""
    worst = 0
    for seed in seeds:
        draw = Random(seed)
        epsilon, delta = draw.randint(1, 3), draw.randint(1, 6)
        bound = 3 * epsilon + delta
        modulus = draw.choice([0, 6 * epsilon + delta + 1])
        world = World(seed, draw.randint(2, 3), epsilon, delta, modulus, events_per_tick=16)
        world.run(draw.randint(0, 8), events=2)
        world.damage()
        at = world.time
        world.run(bound + 6, events=2)
        assert world.wrong_pairs(at + bound) == 0, f"seed {seed}"
        assert world.misordered(at + bound) == 0, f"seed {seed}"
        while worst < bound and world.wrong_pairs(at + worst):
            worst += 1
    return worst


@pytest.mark.parametrize("chunk", range(4))
def test_section_3_3_it_is_correct_again_within_3_epsilon_plus_delta(chunk: int) -> None:
    """2,000 corruptions of all state and of everything under way, at random moments."""
    corruptions(range(chunk * 500, (chunk + 1) * 500))


@pytest.mark.soak
@pytest.mark.parametrize("chunk", range(8))
def test_section_3_3_in_many_thousand_corruptions(chunk: int) -> None:
    corruptions(range(100_000 + chunk * 2500, 100_000 + (chunk + 1) * 2500))


def test_damage_does_show_before_it_is_repaired() -> None:
    """The test above would prove nothing if damage had no effect."""
    assert corruptions(range(200)) > 0


def test_without_the_reset_damage_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutant: local invariants are never checked."""
    monkeypatch.setattr(KnClock, "holds", lambda self, stamp: True)
    monkeypatch.setattr(KnClock, "sound", lambda self, stamp: True)
    with pytest.raises((AssertionError, OverflowError, ValueError)):
        corruptions(range(400))


def test_without_the_window_check_a_damaged_message_is_held_almost_for_ever() -> None:
    """Mutant: any r is possible, and nothing is overdue. Then noise is delivered long after its time."""

    class Patient(Merge):
        def _possible(self, stamp: Timestamp) -> bool:
            return True

        def overdue(self, packet: Packet) -> bool:
            return False

    for kind, left in ((Merge, False), (Patient, True)):
        system = System(named_processes(2))
        options, _ = make_options(kind, system, {"epsilon": 1, "delta": 2})
        process = Process(kind, 0, system, options)
        process.tick(10)
        process.receive(Packet(1, 1, 1, 1, Timestamp(9000, 0, (0, 1, 0))))
        process.tick(10 + 2 + 3 + 1)
        assert bool(process.held()) == left


def test_a_message_damaged_while_it_is_held_is_released_within_the_longest_wait() -> None:
    system = System(named_processes(2))
    options, _ = make_options(Merge, system, {"epsilon": 1, "delta": 2})
    for seed in range(200):
        sender, receiver = (Process(Merge, p, system, options) for p in (0, 1))
        sender.tick(5)
        receiver.tick(5)
        [packet] = sender.send(0b10).packets
        receiver.receive(packet)
        receiver.corrupt(Random(seed))
        delivered = [d for now in range(6, 6 + 2 + 3 + 2) for d in receiver.tick(now).delivered]
        assert len(delivered) == 1, seed


def test_the_byte_key_is_less_then_process_then_sequence() -> None:
    """On pairs of real timestamps and of arbitrary ones within the bounds, 100,000 and more."""
    compared = 0
    for seed in range(8):
        world = World(seed, size=5, epsilon=1 + seed % 4, delta=6)
        world.run(40, events=5)
        clock = world.clock()
        draw = Random(seed)
        real = [(stamp, draw.randrange(5)) for _, stamp, _ in world.events]
        noise = [
            (
                Timestamp(
                    draw.randint(0, 6),
                    c := draw.randint(0, clock.reach),
                    tuple(draw.randint(0, 2) if t <= c + clock.low else 0 for t in range(clock.length)),
                ),
                draw.randrange(5),
            )
            for _ in range(120)
        ]
        some = draw.sample(real, min(len(real), 120)) + noise
        for number, (a, p) in enumerate(some):
            for other, (b, q) in enumerate(some):
                left, right = clock.key(a, p, number), clock.key(b, q, other)
                if clock.less(a, b) or clock.less(b, a):
                    expected = clock.less(a, b)
                else:
                    expected = (p, number) < (q, other)
                assert (left < right) == expected
                compared += 1
    assert compared > 100_000


def test_K5_the_printed_order_of_rc_timestamps_is_a_circle_and_the_repaired_one_is_not() -> None:
    """⟨0,10⟩ < ⟨2,0⟩ < ⟨1,5⟩ < ⟨0,10⟩ for ε = 1, by figure 3's definition."""
    circle = [(0, 10), (2, 0), (1, 5), (0, 10)]
    assert all(less_rc_as_printed(a, b, 1) for a, b in pairwise(circle))
    keys = [key_rc(r, c, 0, 0) for r, c in circle[:3]]
    assert len(set(keys)) == 3 and sorted(keys) == sorted(keys, key=lambda key: (key[0], key[1]))


def test_a_busy_tick_puts_receptions_off_and_refuses_sends() -> None:
    """More receptions than K in a tick are one event of the next; a send that would exceed K fails."""
    system = System(named_processes(2))
    options, _ = make_options(Merge, system, {"epsilon": 1, "delta": 5, "events_per_tick": 2})
    busy, other = Process(Merge, 0, system, options), Process(Merge, 1, system, options)
    packets = []
    for now in (1, 2):
        other.tick(now)
        packets += [other.send(1).packets[0] for _ in range(2)]
    busy.tick(2)
    for packet in packets:
        busy.receive(packet)
    with pytest.raises(BadInput, match="events_per_tick"):
        busy.send(2)
    busy.tick(3)
    [after] = busy.send(2).packets
    clock = busy.protocol.clock  # type: ignore[attr-defined]
    assert all(clock.less(packet.stamp, after.stamp) for packet in packets)


@pytest.mark.parametrize("delta_min", [0, 1, 2, 3])
def test_a_least_delay_narrows_the_array_to_epsilon_minus_delta_min(delta_min: int) -> None:
    clock = KnClock(epsilon=2, delta_min=delta_min, most=5)
    assert clock.reach == max(2 - delta_min, 0)
    assert clock.length == 2 * clock.reach + 1

"""Rodrigues & Verissimo, "Causal separators and topological timestamping" (INESC, 1995): causal histories.

    chapter                              tests
    1    logical precedence              test_chapter_1_…
    3    causal separators               tests/core/test_topology.py has the definition and small graphs
    4.2  R1 to R8                        test_rules_…, test_h1_… to test_h5_…
    4.2  figure 4.1                      test_figure_41_…
    4.2  theorems 1, 2 and 3             test_theorems_…
    4.3  R9, theorem 4                   test_rules_…, test_theorem_4_…, test_h7_…
    6    merges left to the application  test_chapter_6_…, test_h8_…, test_h9_…
    7    smaller timestamps              test_chapter_7_…
    A.3  lemma 2, and safety's proof     test_lemma_2_…
    A.5  the appendix's R6, theorem 8    test_h6_…

Deviations: H1 … H9 of docs/errata.md. Not built, and so not tested: joins (4.4), forwarding by gateways (5).
Of chapter 6, priorities and labels are attributes of envelopes: tests/core/test_incomplete_orders.py. Table
7.1 cannot be repeated, since its drawing is missing; what it shows is tested: R9 makes timestamps smaller.
The mutants of the rules are in tests/mutants/test_mutants.py.
"""

from __future__ import annotations

from dataclasses import replace as changed
from typing import Any, NamedTuple

import pytest

from causet.check.oracle import causal_pasts, judge
from causet.errors import BadInput
from causet.model import Separator, System, mask, members, named_processes, only
from causet.protocols import PROTOCOLS, Packet, Process, histories, make_options
from causet.simulate.replay import Replay
from causet.simulate.schedule import Schedule, Step, parse, read_schedule
from causet.topology import links_of, separators_of
from tests.helpers.by_hand import check_merges_by_hand
from tests.helpers.exhibits import (
    DRAIN,
    ERRATA,
    Story,
    assert_delivers_as_told,
    assert_holds,
    assert_holds_what_is_early,
    both,
    delivered,
    figure,
    protocols_for,
    run,
    stamp_entries,
    too_early,
    unmet,
    until,
)
from tests.helpers.traffic import Traffic

report_to_later = histories._report_to_later


# Chapter 1: introduction


def test_chapter_1_a_message_precedes_another_in_three_ways() -> None:
    """(i) sent before by the same process, (ii) delivered to the emitter before, (iii) through a third."""
    steps = (
        Step("send", "m", 0, only(1)),
        Step("send", "n", 0, only(1)),
        Step("receive", "m", 1),
        Step("send", "x", 1, only(2)),
        Step("receive", "x", 2),
        Step("send", "y", 2, only(0)),
    )
    pasts = causal_pasts(run(Schedule(System(named_processes(3)), steps), "histories").events)
    assert pasts == {"m": set(), "n": {"m"}, "x": {"m"}, "y": {"m", "x"}}


# Section 4.2: the rules


class Model:
    """A process p with R1 to R9 as the paper has them, in sets; H1 to H5 as in docs/errata.md."""

    def __init__(self, p: int, separators: tuple[Separator, ...], rules: dict[str, bool]) -> None:
        self.p, self.rules = p, rules
        self.separators = [s for s in separators if s.members >> p & 1]
        self.H: dict[tuple[int, int], set[int]] = {}  # R1; uid → A
        self.C: dict[tuple[int, int], set[int]] = {}

    def send(self, number: int, A_m: set[int]) -> dict[tuple[int, int], set[int]]:
        """R2 with R7 and R9: the timestamp, with its carbon copies (R6.1). Then R4, R6.2 and R8."""
        stamp = {i: set(self.C[i]) for i in self.H if not self.left_out(i, A_m)}
        for i in self.H:
            self.C[i] |= A_m | {self.p}
        self.H[self.p, number], self.C[self.p, number] = set(A_m), {self.p}  # H5
        self.remove_redundant()
        return stamp

    def left_out(self, i: tuple[int, int], A_m: set[int]) -> bool:
        if self.rules.get("r7", True) and A_m <= self.C[i]:
            return True
        return any(
            A_m <= set(members(s.forward))
            and self.H[i] <= set(members(s.backward))
            and set(members(s.members)) <= self.C[i]
            for s in self.separators
        )

    def deliver(self, m: Packet) -> None:
        """R4, R6.3 with H4's union, and R8."""
        A_m, s_m = set(members(m.targets)), m.sender
        for n in self.H:
            if n[0] == s_m and n[1] < m.number:
                self.C[n] |= A_m
        for s, c, A, C_m in m.stamp:
            self.H[s, c] = set(members(A))
            self.C[s, c] = self.C.get((s, c), set()) | set(members(C_m)) | A_m | {s_m}
        self.H[s_m, m.number], self.C[s_m, m.number] = A_m, {s_m, self.p}
        for n in self.H:
            for i in self.H:
                if i[0] == n[0] and i[1] > n[1]:
                    self.C[n] |= self.H[i]
        self.remove_redundant()

    def remove_redundant(self) -> None:
        if self.rules.get("r8", True):
            for m in [m for m in self.H if self.H[m] <= self.C[m]]:
                del self.H[m], self.C[m]

    def state(self) -> tuple[Any, ...]:
        return tuple((*m, mask(self.H[m]), mask(self.C[m])) for m in sorted(self.H))


def linked(shape: str, size: int) -> System:
    """A graph of this shape with all its separators."""
    links = links_of(shape, size)
    assert links is not None
    return System(named_processes(size), links=links, separators=separators_of(links, size))


FULL = System(named_processes(4))
SYSTEMS = [
    pytest.param(FULL, id="full"),
    *(pytest.param(linked(shape, 4), id=shape) for shape in ("path", "star", "cycle")),
]
RULES: list[dict[str, bool]] = [{}, {"r61": False}, {"r7": False}, {"r8": False}, {"r7": False, "r8": False}]


def targets_of(traffic: Traffic, p: int) -> int:
    """Some neighbours of p."""
    system = traffic.system
    near = system.everyone if system.links is None else system.links[p]
    others = list(members(near & ~only(p)))
    return mask(traffic.random.sample(others, traffic.random.randint(1, len(others))))


def busy(
    system: System, seed: int, rules: dict[str, bool], steps: int = 80
) -> tuple[Traffic, dict[str, Packet]]:
    """Random sends and receptions, and all messages by id."""
    traffic = Traffic("histories", system, seed, rules)
    sent: dict[str, Packet] = {}
    for _ in range(steps):
        if traffic.under_way and traffic.random.random() < 0.6:
            traffic.receive()
        else:
            p = traffic.random.randrange(system.size)
            packet = traffic.send(p, targets_of(traffic, p))
            sent[packet.id(system)] = packet
    return traffic, sent


@pytest.mark.parametrize("rules", RULES, ids=str)
@pytest.mark.parametrize("system", SYSTEMS)
def test_rules_r1_to_r9_give_the_histories_and_timestamps_that_the_paper_says(
    system: System, rules: dict[str, bool]
) -> None:
    """H, C and the timestamp at every step of random runs, against the rules written with sets."""
    for seed in range(3):
        traffic = Traffic("histories", system, seed, rules)
        model = [Model(p, system.separators, rules) for p in range(system.size)]
        for _ in range(60):
            if traffic.under_way and traffic.random.random() < 0.6:
                p, _, outcome = traffic.receive()
                for message in outcome.delivered:
                    model[p].deliver(message)
            else:
                p = traffic.random.randrange(system.size)
                packet = traffic.send(p, targets_of(traffic, p))
                expected = model[p].send(packet.number, set(members(packet.targets)))
                assert {(s, c) for s, c, _, _ in packet.stamp} == expected.keys()
                if rules.get("r61", True):
                    assert {(s, c): set(members(C)) for s, c, _, C in packet.stamp} == expected
            assert traffic.processes[p].protocol.state() == model[p].state()


@pytest.mark.parametrize("rules", RULES, ids=str)
@pytest.mark.parametrize("system", SYSTEMS)
def test_theorems_1_to_4_causal_delivery_is_enforced(system: System, rules: dict[str, bool]) -> None:
    """Safe, live, and never later than the causes make necessary, with each optional rule on and off."""
    for seed in range(4):
        traffic, _ = busy(system, seed, rules)
        traffic.finish()
        verdict = judge(traffic.events)
        assert verdict.status == "valid"
        assert not verdict.undelivered
        assert not verdict.late


@pytest.mark.parametrize("seed", range(4))
def test_lemma_2_with_r1_to_r5_a_timestamp_has_exactly_what_precedes(seed: int) -> None:
    """m ∈ H_m' only if m → m' (lemma 2), and if m → m' then m ∈ H_m' (the safety proof of theorem 1)."""
    traffic, sent = busy(FULL, seed, {"r7": False, "r8": False})
    pasts = causal_pasts(traffic.events)
    for id, packet in sent.items():
        assert {f"p{s + 1}:{c}" for s, c, _, _ in packet.stamp} == pasts[id]


@pytest.mark.parametrize("seed", range(4))
def test_lemma_2_whatever_the_rules_leave_out_nothing_is_named_that_does_not_precede(seed: int) -> None:
    traffic, sent = busy(FULL, seed, {})
    pasts = causal_pasts(traffic.events)
    for id, packet in sent.items():
        assert {f"p{s + 1}:{c}" for s, c, _, _ in packet.stamp} <= pasts[id]


FIGURE_41 = Story("rodrigues-4.1", "P2", "b", "P1", ["a", "b", "c"])


@pytest.mark.parametrize("protocol", protocols_for(FIGURE_41))
def test_figure_41_every_protocol_that_can_run_it_delivers_as_the_paper_says(protocol: str) -> None:
    assert_delivers_as_told(FIGURE_41, protocol)


@pytest.mark.parametrize("protocol", protocols_for(FIGURE_41))
def test_figure_41_what_comes_too_early_is_held_for_its_cause(protocol: str) -> None:
    assert_holds_what_is_early(FIGURE_41, protocol)


class Histories(NamedTuple):
    """What a process keeps: H with the addresses A, C, and D; by names."""

    H: dict[str, set[str]]
    C: dict[str, set[str]]
    D: dict[str, int]


def kept_by(result: Replay, process: str) -> Histories:
    system = result.processes[0].system
    me = result.processes[system.index(process)]
    names = {(0, 1): "a", (2, 1): "b", (2, 2): "c"}
    H: dict[str, set[str]] = {}
    C: dict[str, set[str]] = {}
    for s, c, A, reported in me.protocol.state():
        H[names[s, c]] = set(system.names(A))
        C[names[s, c]] = set(system.names(reported))
    D = {system.name(int(str(sender))): number for sender, number in me.protocol.facts.items()}
    return Histories(H, C, D)


def at(kind: str, message: str, process: str, *as_printed: str) -> Replay:
    return run(until(figure("rodrigues-4.1"), kind, message, process), "histories", *as_printed)


def test_figure_41_when_p3_has_delivered_a_it_knows_that_p1_and_itself_know_it() -> None:
    # R4: H3 = D3 = {a}. R6.3: C3(a) = {s_a, P3} = {P1, P3}, as the text says.
    known = kept_by(at("receive", "a", "P3"), "P3")
    assert known == ({"a": {"P2", "P3"}}, {"a": {"P1", "P3"}}, {"P1": 1})


def test_figure_41_when_p3_has_sent_b_a_was_reported_to_all_and_leaves_the_history() -> None:
    # R6.2: C3(a) = {P1, P3} ∪ {P2} = {P1, P2, P3} ⊃ A_a, so R8 removes a from H3 and C3. What is left is b,
    # with C3(b) = ∅ as printed (H5: {P3}); R4 enters b into P3's own D.
    result = at("send", "b", "P3")
    assert kept_by(result, "P3") == ({"b": {"P2"}}, {"b": {"P3"}}, {"P1": 1, "P3": 1})
    printed = kept_by(at("send", "b", "P3", "H5"), "P3")
    assert printed == ({"b": {"P2"}}, {"b": set()}, {"P1": 1, "P3": 1})
    # b itself carries a, for P2 was not told of it before.
    assert next(e.stamp_entries for e in result.events if e.message == "b") == 1


def test_figure_41_c_carries_b_and_waits_for_it_and_b_waits_for_a() -> None:
    # "Message c will be queued at P2 until b ∈ H_c is delivered (which in turn, must wait for a)."
    result = at("receive", "b", "P2")
    held = {packet.number: packet.stamp for packet in result.processes[1].held()}
    a = (0, 1, mask([1, 2]), mask([0, 2]))  # (s, c, A, C): C as P3 had it when it sent b
    assert held[1] == (a,)
    b = (2, 1, mask([1]), mask([2]))
    assert held[2] == (b,)
    assert unmet(result, 1) == {(2, 2): ((2, 1, 0),), (2, 1): ((0, 1, 0),)}
    assert delivered(result, "P2") == []


def test_figure_41_in_the_end_nothing_is_left_but_what_its_receivers_may_not_know() -> None:
    # P2 delivers a, b, c: D2 = {a, c} (R5 keeps the last of each sender). a: C2(a) = {P1, P2}, then with b
    # ∪ C_b(a) ∪ A_b ∪ {P3} = {P1, P2, P3}: removed. b and c were for P2 alone: removed when delivered.
    # P3 keeps c, which P2 may not have; R6.2 with c: C3(b) ∪= {P2, P3} ⊃ A_b, so b is removed.
    # P1 keeps a: it does not know what P3 did.
    result = run(figure("rodrigues-4.1"), "histories")
    assert delivered(result, "P2") == ["a", "b", "c"]
    assert kept_by(result, "P2") == ({}, {}, {"P1": 1, "P3": 2})
    assert kept_by(result, "P3") == ({"c": {"P2"}}, {"c": {"P3"}}, {"P1": 1, "P3": 2})
    assert kept_by(result, "P1") == ({"a": {"P2", "P3"}}, {"a": {"P1"}}, {"P1": 1})


# Chapter 6: incomplete orders, where the application merges


@pytest.mark.parametrize("system", SYSTEMS)
def test_chapter_6_what_is_not_merged_is_no_cause_and_all_else_is(system: System) -> None:
    """Random runs in which half of the messages are not merged, or hardly any: safe, live, never late."""
    check_merges_by_hand("histories", system, range(12))


def test_chapter_6_a_single_history_is_kept_and_has_exactly_what_was_merged() -> None:
    """p1's a is not merged when it is sent, and b is. p2 delivers both, and merges a only."""
    system = System(named_processes(3))
    traffic = Traffic("histories", system, settings={"by_hand": True})
    a = traffic.send(0, mask([1, 2]), merge=False)
    b = traffic.send(0, mask([1, 2]))
    p2 = traffic.processes[1]
    p2.protocol.leave_out((0, 2))
    assert a.stamp == b.stamp == ()
    assert [each.number for packet in (b, a) for each in p2.receive(packet).delivered] == [2, 1]
    [c] = p2.send(only(2)).packets
    assert [(s, number) for s, number, _, _ in c.stamp] == [(0, 1)]
    [d] = traffic.processes[0].send(only(2)).packets
    assert [(s, number) for s, number, _, _ in d.stamp] == [(0, 2)]


def test_chapter_6_what_is_held_is_not_merged_when_its_turn_comes() -> None:
    """p2 sends b after a. p3 gets b first and will not merge it; c, which it then sends, follows a alone."""
    schedule = parse(
        """
        processes: [p1, p2, p3]
        options: {by_hand: true}
        steps:
          - {send: a, from: p1, to: [p2, p3]}
          - {receive: a, at: p2}
          - {send: b, from: p2, to: [p1, p3]}
          - {receive: b, at: p3, merge: false}
          - {receive: a, at: p3}
          - {send: c, from: p3, to: [p1]}
        """
    )
    result = run(schedule, "histories")
    assert delivered(result, "p3") == ["a", "b"]
    assert stamp_entries(result, "c") == 1
    assert result.unmerged == {("p3", "b")}
    assert [event.message for event in result.events if event.text == "not merged"] == ["b"]
    with pytest.raises(BadInput, match="step 4: histories merges every message"):
        run(changed(schedule, options={}), "histories")


def test_chapter_6_a_process_goes_on_from_a_snapshot_with_what_it_will_not_merge() -> None:
    system = System(named_processes(3))
    options, _ = make_options(PROTOCOLS["histories"], system, {"by_hand": True})
    p1, p2 = (Process(PROTOCOLS["histories"], p, system, options) for p in range(2))
    [a], [b] = p1.send(only(1)).packets, p1.send(only(1)).packets
    p2.protocol.leave_out(b.key)
    p2.receive(b)
    again = p2.restored(p2.snapshot())
    assert again.snapshot() == p2.snapshot()
    assert [each.number for each in again.receive(a).delivered] == [1, 2]
    [c] = again.send(only(0)).packets
    assert [(s, number) for s, number, _, _ in c.stamp] == []
    assert again.protocol.state()[0] == ((1, 1, only(0), only(1)),), "a was for p2 alone, b was not merged"


# Section 4.3: topological timestamping, and chapter 7


def test_theorem_4_what_was_not_reported_to_the_whole_separator_is_not_left_out() -> None:
    """On the cycle p1 p2 p3 p4, {p1, p3} separates p4 from p2: p1 tells p4 of a, since p3 does not know a.

    p1: a to p2, b to p4; p4: c to p3; p3: d to p2, where it must wait for a.
    """
    steps = (
        Step("send", "a", 0, only(1)),
        Step("send", "b", 0, only(3)),
        Step("receive", "b", 3),
        Step("send", "c", 3, only(2)),
        Step("receive", "c", 2),
        Step("send", "d", 2, only(1)),
        Step("receive", "d", 1),
    )
    result = run(Schedule(linked("cycle", 4), steps), "histories")
    assert result.held == ("p2 holds d: needs a, not yet delivered",)


def test_chapter_7_separators_make_timestamps_smaller() -> None:
    """On a path, where every inner process is a separator: the mean size with R9 is below that without."""

    def mean(rules: dict[str, bool]) -> float:
        sizes = [
            len(p.stamp) for seed in range(5) for p in busy(linked("path", 5), seed, rules, 200)[1].values()
        ]
        return sum(sizes) / len(sizes)

    assert mean({}) < mean({"r9": False})


# Errata


def test_h1_another_senders_number_lets_a_message_pass_its_cause() -> None:
    printed, default = both("H1", "histories")
    assert too_early(printed) == [("p2", "b", "a")]
    assert_holds(default)
    assert delivered(default, "p2") == ["a", "b"]


def test_h2_a_sender_that_does_not_enter_its_own_message_waits_for_it_for_ever() -> None:
    printed, default = both("H2", "histories")
    assert printed.stuck
    assert printed.held == ("p1 holds b: needs a, not yet delivered",)
    assert_holds(default)


def test_h2_is_hidden_by_r7_and_r8_when_only_two_processes_are_addressed() -> None:
    # a to {p1, p2}, b to {p1}: C2(a) = {p1, p2} says that p1 knows a, so R8 drops it and b does not carry it.
    system = System(named_processes(2))
    steps = (
        Step("send", "a", 0, mask([0, 1])),
        Step("receive", "a", 1),
        Step("send", "b", 1, mask([0])),
        DRAIN,
    )
    assert not run(Schedule(system, steps), "histories", "H2").held
    plain = {"r7": False, "r8": False}
    assert run(Schedule(system, steps, plain), "histories", "H2").stuck


def test_h3_a_travelling_own_copy_overtakes_an_earlier_one() -> None:
    printed, default = both("H3", "histories")
    assert too_early(printed) == [("p1", "b", "a")]
    assert_holds(default)
    assert delivered(default, "p1") == ["a", "b"]  # own copies are delivered at the send


def test_h4_the_history_grows_with_every_round() -> None:
    printed, default = both("H4", "histories")
    assert_holds(printed)
    assert_holds(default)
    assert stamp_entries(printed, "d") == 4
    assert stamp_entries(default, "d") == 2


def rounds_of(rounds: int) -> tuple[Step, ...]:
    """Each round 0 writes to 1 and to 2, and 2 answers."""
    steps: list[Step] = []
    for i in range(rounds):
        steps += [
            Step("send", f"a{i}", 0, only(1)),
            Step("send", f"b{i}", 0, only(2)),
            Step("receive", f"b{i}", 2),
            Step("send", f"c{i}", 2, only(0)),
            Step("receive", f"c{i}", 0),
        ]
    return tuple(steps)


@pytest.mark.parametrize("rounds", [10, 40])
def test_h4_after_many_rounds_the_printed_rule_keeps_all_and_ours_keeps_two(rounds: int) -> None:
    schedule = Schedule(System(named_processes(3)), rounds_of(rounds))

    def kept(result: Replay) -> int:
        return len(result.processes[2].protocol.state())

    assert kept(run(schedule, "histories", "H4")) == rounds + 1
    assert kept(run(schedule, "histories")) == 2


@pytest.mark.parametrize("printed", [(), ("H4",)])
@pytest.mark.parametrize("addresses", [[2, 3], [0, 2]])
def test_h4_the_printed_union_has_later_messages_of_the_same_timestamp(
    printed: tuple[str, ...], addresses: list[int]
) -> None:
    """R6.3 adds all of a timestamp to the history before it unites.

    1 writes m to {2, 3} or {0, 2}, n to 2, and o to 0; timestamps have no carbon copies. o's has m and n. Of
    o, process 0 learns that m was reported to where n went, and n is later: what it writes to 2 carries n
    alone, whether o taught it of m or m itself did.
    """
    steps = [
        Step("send", "m", 1, mask(addresses)),
        Step("send", "n", 1, only(2)),
        Step("send", "o", 1, only(0)),
        *([Step("receive", "m", 0)] if 0 in addresses else []),
        Step("receive", "o", 0),
        Step("send", "p", 0, only(2)),
        DRAIN,
    ]
    schedule = Schedule(System(named_processes(4)), tuple(steps), {"r61": False})
    result = run(schedule, "histories", *printed)
    assert_holds(result)
    assert stamp_entries(result, "o") == 2
    assert stamp_entries(result, "p") == 1


@pytest.mark.parametrize(
    ("mutant", "p", "kept"),
    [
        (None, 1, 11),
        (lambda sent, which=None: None, 2, 11),  # nothing is united
        (lambda sent, which=None: report_to_later(sent), 1, 2),  # what is not in the timestamp is united too
    ],
)
def test_h4_mutants_of_the_printed_union(
    monkeypatch: pytest.MonkeyPatch, mutant: Any, p: int, kept: int
) -> None:
    """What p carries, and what is kept after ten rounds, show each: the printed rule has 1 and 11."""
    if mutant is not None:
        monkeypatch.setattr(histories, "_report_to_later", mutant)
    union = [Step("send", "m", 1, mask([2, 3])), Step("send", "n", 1, only(2)), Step("send", "o", 1, only(0))]
    union += [Step("receive", "o", 0), Step("send", "p", 0, only(2))]
    schedule = Schedule(System(named_processes(4)), tuple(union), {"r61": False})
    assert stamp_entries(run(schedule, "histories", "H4"), "p") == p
    rounds = Schedule(System(named_processes(3)), rounds_of(10))
    assert len(run(rounds, "histories", "H4").processes[2].protocol.state()) == kept


def test_h4_as_printed_what_the_timestamp_does_not_mention_is_not_united() -> None:
    """0 hears of m by o1 and of n by o2, whose timestamp leaves m out (R7). As printed m stays as it was."""
    steps = (
        Step("send", "m", 1, only(2)),
        Step("send", "o1", 1, only(0)),
        Step("receive", "o1", 0),
        Step("send", "n", 1, only(2)),
        Step("send", "o2", 1, only(0)),
        Step("receive", "o2", 0),
        Step("send", "p", 0, only(2)),
        DRAIN,
    )
    schedule = Schedule(System(named_processes(3)), steps)
    assert stamp_entries(run(schedule, "histories", "H4"), "p") == 2  # m and n
    assert stamp_entries(run(schedule, "histories"), "p") == 1  # n


def test_h5_a_gateways_own_message_leaks_past_r9() -> None:
    printed, default = both("H5", "histories")
    assert_holds(printed)
    assert_holds(default)
    assert stamp_entries(printed, "b") == 1
    assert stamp_entries(default, "b") == 0


def test_h6_with_the_appendix_r9_never_leaves_out_what_a_gateway_was_told() -> None:
    printed, default = both("H6", "histories")
    assert_holds(printed)
    assert_holds(default)
    assert stamp_entries(printed, "c") == 2
    assert stamp_entries(default, "c") == 0


def test_h7_a_message_past_the_separator_overtakes_what_r9_left_out() -> None:
    schedule = read_schedule(ERRATA / "H7.yaml")
    assert too_early(run(schedule, "histories", "H7")) == [("p1", "c", "a")]
    with pytest.raises(BadInput, match="step 4: p3 is not linked with p1"):
        run(schedule, "histories")
    # Without R9 any destination will do: c carries a.
    free = changed(schedule, options={"r9": False})
    assert_holds(run(free, "histories"))


def test_h8_a_senders_later_number_is_taken_for_its_earlier_message() -> None:
    printed, default = both("H8", "histories")
    assert too_early(printed) == [("p3", "c", "a")]
    assert_holds(default)
    assert delivered(default, "p3") == ["b", "a", "c"]


def test_h8_the_union_of_r63_takes_a_senders_later_message_for_a_report_of_its_earlier_one() -> None:
    """a and b of p1 go to p3 (a) and to p3 and p2 (b); a is not merged. p2 has both in its history, and as
    printed believes that b reported a to p3: c carries b alone, and p3 delivers c before a."""
    schedule = parse(
        """
        processes: [p1, p2, p3]
        options: {by_hand: true}
        steps:
          - {send: a, from: p1, to: [p2, p3], merge: false}
          - {send: b, from: p1, to: [p2, p3]}
          - {receive: a, at: p2}
          - {receive: b, at: p2}
          - {send: c, from: p2, to: [p3]}
          - {receive: b, at: p3}
          - {receive: c, at: p3}
          - drain
        """
    )
    printed, default = run(schedule, "histories", "H8"), run(schedule, "histories")
    assert stamp_entries(printed, "c") == 1 and stamp_entries(default, "c") == 2
    assert too_early(printed) == [("p3", "c", "a")]
    assert_holds(default)


def test_h9_whoever_was_told_need_not_have_merged_it() -> None:
    printed, default = both("H9", "histories")
    assert too_early(printed) == [("p3", "y", "n")]
    assert_holds(default)
    assert (stamp_entries(default, "m"), stamp_entries(default, "y")) == (2, 1)
    # Where R7 is off by its own option, the printed rule does no harm.
    off = changed(read_schedule(ERRATA / "H9.yaml"), options={"by_hand": True, "r7": False})
    assert_holds(run(off, "histories", "H9"))


def test_h9_r9_leaves_out_what_a_gateway_was_told_and_did_not_merge() -> None:
    """p1 and p3 separate p4 and p5 from p2. p1 sends n to p2, and tells p4; p4 tells p3, by i, and tells p1
    that it did. So p1 leaves n out of m to p5. But p3 does not merge i; p5 sends it x after m, and y, which
    p3 sends to p2 after x, passes n."""
    links = tuple(map(mask, ([1, 3, 4], [0, 2], [1, 3, 4], [0, 2], [0, 2])))
    system = System(named_processes(5), links=links, separators=separators_of(links, 5))
    assert Separator(mask([0, 2]), mask([3, 4]), only(1)) in system.separators
    steps = (
        Step("send", "n", 0, only(1)),
        Step("send", "j", 0, only(3)),
        Step("receive", "j", 3),
        Step("send", "i", 3, only(2)),
        Step("receive", "i", 2, merge=False),
        Step("send", "k", 3, only(0)),
        Step("receive", "k", 0),
        Step("send", "m", 0, only(4)),
        Step("receive", "m", 4),
        Step("send", "x", 4, only(2)),
        Step("receive", "x", 2),
        Step("send", "y", 2, only(1)),
        Step("receive", "y", 1),
        DRAIN,
    )
    by_hand = Schedule(system, steps, {"by_hand": True, "r7": False})
    assert_holds(run(by_hand, "histories"))
    assert too_early(run(by_hand, "histories", "H9")) == [("p2", "y", "n")]


def test_h12_a_process_that_comes_back_under_its_old_name_is_unsafe() -> None:
    """p1 sends two messages to p2 and is started again without its memory. It sends x to p2 and p3; p3
    answers with z, which p2 delivers before x, for by R5 it has p1's first two; and x is a duplicate for it.

    Under a new name, p4, z waits for x.
    """
    kind, system = PROTOCOLS["histories"], System(named_processes(4))
    options, _ = make_options(kind, system, {})
    for name, order in ((0, [["z"], []]), (3, [[], ["x", "z"]])):
        p1, p2, p3 = (Process(kind, p, system, options) for p in range(3))
        for _ in range(2):
            [packet] = p1.send(0b0010).packets
            assert p2.receive(packet).delivered
        again = Process(kind, name, system, options)
        [x] = again.send(0b0110).packets
        assert p3.receive(x).delivered
        [z] = p3.send(0b0010).packets
        names = {x.key: "x", z.key: "z"}
        got = [[names[each.key] for each in p2.receive(packet).delivered] for packet in (z, x)]
        assert got == order

"""Raynal & Schiper, "The causal ordering abstraction and a simple way to implement it" (INRIA RR-1132, 1989).

    section                              tests
    2.1  definition, figure 1            test_figure_1_…, test_section_2_1_…
    2.2  replicated data, figure 2       test_section_2_2_a_token_…, test_section_2_2_two_tokens_…
    2.2  monitoring, allocation          test_section_2_2_an_observer_…, test_section_2_2_requests_…
    3.1  related work: Isis              test_section_3_1_…
    3.2  rules i), i') and ii)           test_section_3_2_…
    4.1  proposition 1, safety           test_proposition_1_…, test_safety_…
    4.2  liveness                        test_liveness_…
    5    the bound n²                    test_section_5_…

Deviations: none of the rules has an erratum. Section 3.1 says once that M2 was sent to S3; only a message to
S2 makes M1 precede M3. A sender's own copy of a multicast is delivered at the send and not counted in SENT.
The mutants of the rules are in tests/mutants/test_mutants.py.
"""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

from causet.check.explorer import explore
from causet.check.oracle import causal_pasts, judge
from causet.check.scopes import scopes_for
from causet.model import System, mask, members, named_processes, only
from causet.protocols import PROTOCOLS, Packet
from causet.simulate.schedule import Schedule, Step
from tests.helpers.exhibits import (
    DRAIN,
    Story,
    assert_delivers_as_told,
    assert_holds,
    assert_holds_what_is_early,
    delivered,
    figure,
    protocols_for,
    run,
    stamp_entries,
    unmet,
    until,
)
from tests.helpers.traffic import Traffic

# Section 2.1: definition

FIGURE_1 = Story("raynal-1", "S3", "M3", "S1", ["M1", "M3"], too_slow=("slow",))
"""Slow delivers M2 at S2 only when null messages have completed the first blocks."""


@pytest.mark.parametrize("protocol", protocols_for(FIGURE_1))
def test_figure_1_every_protocol_that_can_run_it_delivers_as_the_paper_says(protocol: str) -> None:
    assert_delivers_as_told(FIGURE_1, protocol)


@pytest.mark.parametrize("protocol", protocols_for(FIGURE_1))
def test_figure_1_what_comes_too_early_is_held_for_its_cause(protocol: str) -> None:
    assert_holds_what_is_early(FIGURE_1, protocol)


def test_figure_1_m3_says_that_s1_sent_one_message_to_s3() -> None:
    schedule = figure("raynal-1")
    result = run(until(schedule, "receive", "M3", "S3"), "matrix")
    (M3,) = result.processes[2].held()
    # Rule i): M1 makes SENT[1,3] = 1, M2 makes SENT[1,2] = 1; S2 learns both with M2 and adds SENT[2,3] = 1.
    assert M3.stamp.tolist() == [[0, 1, 1], [0, 0, 1], [0, 0, 0]]
    # Rule ii): REC[2] + 1 = 1 = ST[2,3] holds, REC[1] = 0 ≥ ST[1,3] = 1 does not.
    assert unmet(result, 2) == {(1, 1): ((0, 1, 0),)}
    assert result.held == ("S3 holds M3: needs message 1 of S1 to S3, 0 delivered so far",)


def test_figure_1_s3_delivers_m1_then_m3() -> None:
    result = run(figure("raynal-1"), "matrix")
    assert delivered(result, "S3") == ["M1", "M3"]
    protocol: Any = result.processes[2].protocol
    assert dict(protocol.facts) == {0: 1, 1: 1}  # REC: one from S1, one from S2
    assert protocol.SENT.tolist() == [[0, 1, 1], [0, 0, 1], [0, 0, 0]]


def test_section_2_1_causal_order_implies_fifo_channels() -> None:
    """Two messages of one site to one destination are the first case of the definition."""
    system = System(named_processes(2))
    steps = [Step("send", "a", 0, only(1)), Step("send", "b", 0, only(1)), Step("receive", "b", 1), DRAIN]
    result = run(Schedule(system, tuple(steps)), "matrix")
    assert delivered(result, "p2") == ["a", "b"]


def test_section_2_1_messages_to_different_destinations_do_not_wait_for_each_other() -> None:
    """The definition asks for the same destination: M2 → M3 in figure 1, and neither waits for the other."""
    system = System(named_processes(3))
    steps = [Step("send", "a", 0, only(1)), Step("send", "b", 0, only(2)), Step("receive", "b", 2)]
    assert delivered(run(Schedule(system, tuple(steps)), "matrix"), "p3") == ["b"]


# Section 2.2: examples of the usefulness of causal ordering


def updates_with_a_token(tokens: dict[str, list[int]], size: int) -> tuple[Step, ...]:
    """Figure 2: the holder of a token updates all copies, and passes the token on.

    Of each data item (`X`, `Y`) the list has the sites that hold its token, one after the other, each once.
    """
    steps: list[Step] = []
    everyone = mask(range(size))
    for name, holders in tokens.items():
        for turn, holder in enumerate(holders):
            steps.append(Step("send", f"W{name}{turn}", holder, everyone & ~only(holder)))
            if turn + 1 < len(holders):
                heir = holders[turn + 1]
                steps.append(Step("send", f"token{name}{turn}", holder, only(heir)))
                # The token waits for the updates before it.
                steps += [Step("receive", f"W{name}{earlier}", heir) for earlier in range(turn + 1)]
                steps.append(Step("receive", f"token{name}{turn}", heir))
    return tuple(steps)


@pytest.mark.parametrize("arrivals", list(permutations(range(3))))
def test_section_2_2_a_token_and_causal_order_give_all_copies_the_same_updates(
    arrivals: tuple[int, ...],
) -> None:
    """W_i is not delivered before W_j for j < i, in whatever order the updates arrive at a fourth site."""
    steps = updates_with_a_token({"X": [0, 1, 2]}, 4)
    watched = tuple(Step("receive", f"WX{turn}", 3) for turn in arrivals)
    result = run(Schedule(System(named_processes(4)), (*steps, *watched, DRAIN)), "matrix")
    assert_holds(result)
    assert delivered(result, "p4") == ["WX0", "WX1", "WX2"]


def test_section_2_2_two_tokens_do_not_give_a_total_order() -> None:
    """Both sites see the updates of X in one order and those of Y in one order, and interleave them."""
    steps = updates_with_a_token({"X": [0, 1], "Y": [2, 3]}, 6)
    arrivals = [
        *(Step("receive", update, 4) for update in ("WX0", "WX1", "WY0", "WY1")),
        *(Step("receive", update, 5) for update in ("WY0", "WY1", "WX0", "WX1")),
    ]
    result = run(Schedule(System(named_processes(6)), (*steps, *arrivals, DRAIN)), "matrix")
    assert_holds(result)
    assert delivered(result, "p5") == ["WX0", "WX1", "WY0", "WY1"]
    assert delivered(result, "p6") == ["WY0", "WY1", "WX0", "WX1"]
    assert judge(result.events).disagreements


def test_section_2_2_an_observer_gets_reports_in_an_order_that_could_have_been() -> None:
    """Each site reports its events to OS; reports come in no particular order, and are delivered in one."""
    for seed in range(5):
        traffic = Traffic("matrix", System(named_processes(4)), seed)
        observer = 3
        for _ in range(30):
            if traffic.under_way and traffic.random.random() < 0.5:
                arrival = traffic.receive()
                if arrival.target != observer and arrival.outcome.delivered:
                    traffic.send(arrival.target, only(observer))  # the report of a delivery
            else:
                p, q = traffic.random.sample(range(3), 2)
                traffic.send(p, only(observer))  # the report that it is about to send
                traffic.send(p, only(q))
        traffic.finish()
        reports = [e.message for e in traffic.events if (e.process, e.kind) == ("p4", "deliver")]
        pasts = causal_pasts(traffic.events)
        for position, later in enumerate(reports):
            assert not any(after in pasts[later or ""] for after in reports[position + 1 :])


def test_section_2_2_requests_are_honoured_in_the_order_of_their_emission() -> None:
    """R1 → R2: p1 asks the allocator and tells p2, which asks too. R2 arrives first."""
    steps = (
        Step("send", "R1", 0, only(2)),
        Step("send", "told", 0, only(1)),
        Step("receive", "told", 1),
        Step("send", "R2", 1, only(2)),
        Step("receive", "R2", 2),
        Step("receive", "R1", 2),
    )
    result = run(Schedule(System(named_processes(3)), steps), "matrix")
    assert delivered(result, "p3") == ["R1", "R2"]


# Section 3.1: related work


def test_section_3_1_in_isis_m3_brings_m1_along_and_nothing_waits() -> None:
    result = run(until(figure("raynal-1"), "receive", "M3", "S3"), "piggyback")
    assert delivered(result, "S3") == ["M1", "M3"]  # M1 itself has not arrived
    assert not result.held


# Section 3.2: a simple implementation


class Site:
    """A site S_i as printed: REC, SENT, and rules i') and ii)."""

    def __init__(self, i: int, n: int) -> None:
        self.i, self.n = i, n
        self.REC = [0] * n
        self.SENT = [[0] * n for _ in range(n)]
        self.waiting: list[tuple[Packet, list[list[int]]]] = []

    def emission(self, targets: int) -> list[list[int]]:
        for k in members(targets):
            self.SENT[self.i][k] += 1
        return [list(row) for row in self.SENT]

    def reception(self, M: Packet, ST: list[list[int]]) -> list[Packet]:
        """What is delivered now."""
        self.waiting.append((M, ST))
        found: list[Packet] = []
        while free := next((entry for entry in self.waiting if self.condition(*entry)), None):
            self.waiting.remove(free)
            M, ST = free
            found.append(M)
            self.REC[M.sender] += 1
            self.SENT = [
                [max(a, b) for a, b in zip(*rows, strict=True)] for rows in zip(self.SENT, ST, strict=True)
            ]
        return found

    def condition(self, M: Packet, ST: list[list[int]]) -> bool:
        i, j = self.i, M.sender
        others = all(self.REC[k] >= ST[k][i] for k in range(self.n) if k != j)
        return self.REC[j] + 1 == ST[j][i] and others


def some_targets(traffic: Traffic, p: int, most: int) -> int:
    """From 1 to `most` other processes."""
    others = [q for q in range(traffic.system.size) if q != p]
    return mask(traffic.random.sample(others, traffic.random.randint(1, most)))


@pytest.mark.parametrize("most", [1, 3])
@pytest.mark.parametrize("seed", range(5))
def test_section_3_2_sites_do_what_the_two_rules_say(seed: int, most: int) -> None:
    """Rule i) with single targets, rule i') with several: the matrices and the deliveries of every step."""
    size = 4
    traffic = Traffic("matrix", System(named_processes(size)), seed)
    sites = [Site(i, size) for i in range(size)]
    carried: dict[Any, list[list[int]]] = {}
    left = 60
    while left or traffic.under_way:
        if left and (not traffic.under_way or traffic.random.random() < 0.4):
            left -= 1
            p = traffic.random.randrange(size)
            packet = traffic.send(p, some_targets(traffic, p, most))
            carried[packet.key] = sites[p].emission(packet.to)
            assert packet.stamp.tolist() == carried[packet.key]
        else:
            target, packet, outcome = traffic.receive()
            expected = sites[target].reception(packet, carried[packet.key])
            assert {m.key for m in outcome.delivered} == {m.key for m in expected}
            protocol: Any = traffic.processes[target].protocol
            assert [protocol.facts.get(k, 0) for k in range(size)] == sites[target].REC
            assert protocol.SENT.tolist() == sites[target].SENT


def test_section_3_2_all_counters_are_zero_at_first() -> None:
    traffic = Traffic("matrix", System(named_processes(3)))
    protocol: Any = traffic.processes[0].protocol
    assert not protocol.SENT.any()
    assert not protocol.facts


# Section 4: proof of correctness


@pytest.mark.parametrize("seed", range(5))
def test_proposition_1_what_was_not_delivered_is_not_counted(seed: int) -> None:
    """If neither M1 nor any M with SEND(M1) → SEND(M) was delivered to Si, REC_i[j] < ST_M1[j, i]."""
    traffic = Traffic("matrix", System(named_processes(3)), seed)
    sent: list[Packet] = []
    arrived: list[set[str]] = [set() for _ in range(3)]
    for _ in range(80):
        if not traffic.under_way or traffic.random.random() < 0.4:
            p = traffic.random.randrange(3)
            sent.append(traffic.send(p, some_targets(traffic, p, 2)))
            continue
        i, _, outcome = traffic.receive()
        arrived[i] |= {packet.id(traffic.system) for packet in outcome.delivered}
        pasts = causal_pasts(traffic.events)
        for M1 in sent:
            id = M1.id(traffic.system)
            reached = id in arrived[i] or any(id in pasts[M] for M in arrived[i])
            if M1.to >> i & 1 and not reached:
                REC = traffic.processes[i].protocol.facts
                assert REC.get(M1.sender, 0) < M1.stamp[M1.sender, i]


def test_safety_and_liveness_in_every_interleaving_of_three_sites_and_three_messages() -> None:
    """Every set of targets; also that no message waits for one that does not precede it."""
    for named in scopes_for(PROTOCOLS["matrix"], 3, 3):
        report = explore(named.scope)
        assert report.complete
        assert not report.findings


@pytest.mark.parametrize("seed", range(10))
def test_safety_no_message_is_delivered_before_one_that_precedes_it(seed: int) -> None:
    traffic = Traffic("matrix", System(named_processes(5)), seed)
    for _ in range(60):
        if not traffic.under_way or traffic.random.random() < 0.5:
            p = traffic.random.randrange(5)
            traffic.send(p, some_targets(traffic, p, 3))
        else:
            traffic.receive()
    traffic.finish()
    verdict = judge(traffic.events)
    assert verdict.status == "valid"
    assert not verdict.undelivered
    assert not verdict.late  # and the wait condition never waits for what does not precede


@pytest.mark.parametrize("arrivals", list(permutations("abcd")))
def test_liveness_every_message_is_delivered_in_whatever_order_they_arrive(arrivals: tuple[str, ...]) -> None:
    """a → b → c → d, all to p4, sent by p1, p1, p2 and p3 in turn."""
    steps = (
        Step("send", "a", 0, only(3)),
        Step("send", "b", 0, mask([1, 3])),
        Step("receive", "b", 1),
        Step("send", "c", 1, mask([2, 3])),
        Step("receive", "c", 2),
        Step("send", "d", 2, only(3)),
        *(Step("receive", message, 3) for message in arrivals),
    )
    result = run(Schedule(System(named_processes(4)), steps), "matrix")
    assert delivered(result, "p4") == ["a", "b", "c", "d"]


# Section 5: conclusion


@pytest.mark.parametrize("rounds", [1, 20])
def test_section_5_the_information_added_is_bounded_by_n_squared_and_in_isis_it_is_not(rounds: int) -> None:
    """p1 goes on writing to p2, which receives nothing; then it writes to p3."""
    steps = [Step("send", f"m{i}", 0, only(1)) for i in range(rounds)] + [Step("send", "last", 0, only(2))]
    schedule = Schedule(System(named_processes(3)), tuple(steps))
    assert stamp_entries(run(schedule, "matrix"), "last") == 3**2
    assert (stamp_entries(run(schedule, "piggyback"), "last") or 0) >= rounds

"""Sanchez & Alvarez, "A lightweight asynchronous algorithm for causal delivery using extra message
insertion".

    section                              tests
    2    definitions 1 and 2             test_theorems_4_and_6_… (definitions of the oracle)
    3    the matrix algorithm            test_section_3_a_message_carries_…, test_lemma_2_…
    3    zeros forced into the matrix    test_lemma_2_…
    3    extra messages, threshold k     test_section_3_…, test_s1_… to test_s5_…
    4    proposition 1, lemma 3          test_lemma_3_…
    4    lemma 2                         test_lemma_2_…
    4    theorem 4 (safety), theorem 6 (liveness)  test_theorems_4_and_6_…
    abstract  messages of size O(k)      test_the_abstract_…
    5    different k for each process    test_section_5_…

Deviations: S1 … S5 of docs/errata.md. "M_k[-,k] = DELIV_k[-]" is false as printed, since a message carries
the matrix as it was before its send. Proposition 5 is the definition of DELIV. Not tested: the evaluations
that section 5 leaves to the future. The mutants of the rules are in tests/mutants/test_mutants.py.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from causet.check.oracle import causal_pasts, judge
from causet.errors import BadInput
from causet.model import Event, System, named_processes, only
from causet.protocols import PROTOCOLS, make_options
from causet.simulate.schedule import read_schedule
from tests.helpers.exhibits import ERRATA, assert_holds, both, run, too_early, until
from tests.helpers.traffic import Traffic

Matrix = dict[int, dict[int, int]]


def matrix(traffic: Traffic, p: int) -> Matrix:
    """The non-zero entries of M_p, by column."""
    protocol: Any = traffic.processes[p].protocol
    return {j: dict(column) for j, column in protocol.M.items() if column}


# Section 3: lightweight algorithm using message insertion


def test_section_3_a_message_carries_the_matrix_as_it_was_before_its_send() -> None:
    """Then column j keeps nothing but the message itself: M[i, j] = 1, then 2."""
    traffic = Traffic("bounded", System(named_processes(3)))
    assert traffic.send(0, only(1)).stamp == {}
    assert matrix(traffic, 0) == {1: {0: 1}}
    assert traffic.send(0, only(1)).stamp == {1: {0: 1}}
    assert matrix(traffic, 0) == {1: {0: 2}}


@pytest.mark.parametrize("k", [3, 5, 9])
@pytest.mark.parametrize("seed", range(3))
def test_lemma_2_each_event_changes_the_matrix_as_its_proof_says(seed: int, k: int) -> None:
    """The three cases: a user message is delivered, an extra one is delivered, a message is sent.

    The own column is always zero, and an extra message goes to a column with the most entries.
    """
    size = 4
    traffic = Traffic("bounded", System(named_processes(size)), seed, {"k": k})

    def send(M: Matrix, i: int, j: int) -> None:
        M[j] = {i: M.get(j, {}).get(i, 0) + 1}

    extras = 0
    for _ in range(150):
        if not traffic.under_way or traffic.random.random() < 0.4:
            me, target = traffic.random.sample(range(size), 2)
            expected = matrix(traffic, me)
            before = len(traffic.under_way)
            traffic.send(me, only(target))
            send(expected, me, target)
            sent = traffic.under_way[before + 1 :]
        else:
            before = len(traffic.under_way) - 1  # without the one that arrives
            expected_of = [matrix(traffic, p) for p in range(size)]
            me, _, outcome = traffic.receive()
            expected = expected_of[me]
            for message in outcome.delivered:  # extra messages are not among them: they change nothing
                for j, column in message.stamp.items():
                    if j != me:
                        for i, count in column.items():
                            expected.setdefault(j, {})[i] = max(expected.get(j, {}).get(i, 0), count)
            sent = traffic.under_way[before:]
            if len(outcome.delivered) > 1:
                continue  # extra messages may have gone out in between
        for extra, target in sent:
            assert extra.control
            assert extra.stamp == {target: expected[target]}
            assert len(expected[target]) == max(map(len, expected.values()))
            send(expected, me, target)
            extras += 1
        assert matrix(traffic, me) == expected
        assert me not in expected
    assert bool(extras) == (k < 9)  # (n-1)² = 9 entries is all there can be


@pytest.mark.parametrize("seed", range(3))
def test_lemma_3_the_constraints_of_a_message_are_satisfied_once_it_is_delivered(seed: int) -> None:
    """DELIV_j[i] ≥ M_m[i, j] at the delivery, and ever after, since DELIV only grows."""
    traffic = Traffic("bounded", System(named_processes(4)), seed, {"k": 3})
    met: list[tuple[int, dict[int, int]]] = []
    for _ in range(120):
        if not traffic.under_way or traffic.random.random() < 0.4:
            me, target = traffic.random.sample(range(4), 2)
            traffic.send(me, only(target))
        else:
            j, _, outcome = traffic.receive()
            met += [(j, message.stamp.get(j, {})) for message in outcome.delivered]
        for j, column in met:
            DELIV = traffic.processes[j].protocol.facts
            assert all(DELIV.get(i, 0) >= count for i, count in column.items())
    assert any(column for _, column in met)


def test_section_3_a_message_may_wait_for_an_extra_one_although_its_causes_are_there() -> None:
    """The drawback that the abstract names: p2 has all that precedes e, and still waits for p1!1."""
    schedule = read_schedule(ERRATA / "S1.yaml")
    steps = tuple(s for s in schedule.steps if (s.kind, s.message) != ("receive", "p1!1"))
    result = run(
        until(type(schedule)(schedule.system, steps, schedule.options), "receive", "e", "p2"), "bounded"
    )
    assert [line.partition(":")[0] for line in result.held] == ["p2 holds e"]
    here = {e.message for e in result.events if (e.process, e.kind) == ("p2", "deliver")}
    addressed = {e.message for e in result.events if e.kind == "send" and "p2" in (e.to or ())}
    assert {m for m in causal_pasts(result.events)["e"] if m in addressed} <= here


def test_section_3_extra_messages_do_not_belong_to_the_happened_before_relation() -> None:
    run_of = unicasts(4, 3, 60, 1)
    extras = {event.message for event in run_of.events if event.control}
    assert extras
    assert not any(event.kind == "deliver" for event in run_of.events if event.control)
    assert not any(past & extras for past in causal_pasts(run_of.events).values())


class Unicasts(NamedTuple):
    """A random run of `bounded` with single targets, as the paper has it."""

    events: list[Event]
    stuck: bool
    largest: int
    """the most entries that a matrix ever had"""


def unicasts(size: int, k: int, messages: int, seed: int, *as_printed: str) -> Unicasts:
    traffic = Traffic("bounded", System(named_processes(size)), seed, {"k": k}, as_printed)
    largest = 0
    left = messages
    while left or traffic.under_way:
        if left and (not traffic.under_way or traffic.random.random() < 0.5):
            left -= 1
            me = traffic.random.randrange(size)
            target = traffic.random.choice([p for p in range(size) if p != me])
            traffic.send(me, only(target))
        else:
            me = traffic.receive().target
        protocol: Any = traffic.processes[me].protocol
        largest = max(largest, protocol.size())
    return Unicasts(traffic.events, traffic.stuck, largest)


def test_s1_if_extra_messages_do_not_count_what_follows_them_is_stuck() -> None:
    printed, default = both("S1", "bounded")
    assert printed.stuck
    assert [line.partition(":")[0] for line in printed.held] == ["p2 holds e"]
    assert_holds(default)


def test_s2_an_extra_message_that_does_not_wait_lets_a_message_pass_its_cause() -> None:
    printed, default = both("S2", "bounded")
    assert too_early(printed) == [("p3", "d", "c")]
    assert_holds(default)


def test_s3_one_extra_message_is_not_enough_to_keep_the_bound() -> None:
    printed, default = both("S3", "bounded")
    assert printed.processes[2].protocol.broken() == "the matrix has 4 entries, more than k = 3"
    assert_holds(default)
    assert [process.protocol.broken() for process in default.processes] == [None] * 4


def test_s4_thresholds_from_n_minus_1_work_and_from_n_minus_1_squared_bound_nothing() -> None:
    schedule = read_schedule(ERRATA / "S4.yaml")
    with pytest.raises(BadInput, match="k = 2 is outside the range of the paper, n < k ≤ n²: 4 … 9"):
        run(schedule, "bounded", "S4")
    result = run(schedule, "bounded")
    assert_holds(result)
    assert sum(event.control and event.kind == "send" for event in result.events) == 1
    assert all(process.protocol.broken() is None for process in result.processes)
    kind, system = PROTOCOLS["bounded"], schedule.system
    # All of the printed range is useless with three processes: it begins at (n-1)² = 4.
    for k in range(4, 10):
        assert make_options(kind, system, {"k": k}, ["S4"])[1] == []
        assert "bounds nothing" in make_options(kind, system, {"k": k})[1][0]
    for k in (2, 3):
        assert make_options(kind, system, {"k": k})[1] == []
    for k in (1, 10):
        with pytest.raises(BadInput, match="too small" if k == 1 else "too large"):
            make_options(kind, system, {"k": k})


def test_s5_a_multicast_with_the_matrix_as_it_is_lets_the_answer_pass_the_question() -> None:
    printed, default = both("S5", "bounded")
    assert too_early(printed) == [("p3", "b", "a")]
    assert_holds(default)


def test_s1_s2_and_s3_fail_with_single_targets_and_thresholds_of_the_printed_range_as_well() -> None:
    for seed in range(5):  # four processes, so n < k ≤ n² begins at 5
        assert unicasts(4, 5, 60, seed, "S1").stuck
        assert judge(unicasts(4, 5, 60, seed, "S2").events).violations
        assert unicasts(8, 9, 150, seed, "S3").largest > 9
        for default in (unicasts(4, 5, 60, seed), unicasts(8, 9, 150, seed)):
            assert not default.stuck
            assert judge(default.events).status == "valid"
        assert unicasts(8, 9, 150, seed).largest <= 9


# Section 4: proof of correctness, and the bound


@pytest.mark.parametrize("k", [3, 5, 9, 16])
def test_theorems_4_and_6_it_is_safe_and_live_with_every_kind_of_threshold(k: int) -> None:
    for seed in range(5):
        result = unicasts(4, k, 80, seed)
        assert not result.stuck
        verdict = judge(result.events)
        assert verdict.status == "valid"
        assert not verdict.undelivered


@pytest.mark.parametrize("k", [5, 6, 8])
def test_the_abstract_promises_messages_with_at_most_k_entries(k: int) -> None:
    traffic = Traffic("bounded", System(named_processes(6)), k, {"k": k})
    for _ in range(200):
        if not traffic.under_way or traffic.random.random() < 0.5:
            me, target = traffic.random.sample(range(6), 2)
            assert sum(map(len, traffic.send(me, only(target)).stamp.values())) <= k
        else:
            me = traffic.receive().target
        assert sum(map(len, matrix(traffic, me).values())) <= k


# Section 5: future work


def test_section_5_processes_may_have_different_thresholds() -> None:
    """Each keeps its own, and the order is causal."""
    thresholds = (3, 5, 9, 4)
    traffic = Traffic("bounded", System(named_processes(4)), 2, {"k": thresholds})
    for _ in range(150):
        if not traffic.under_way or traffic.random.random() < 0.5:
            me, target = traffic.random.sample(range(4), 2)
            traffic.send(me, only(target))
        else:
            me = traffic.receive().target
        assert sum(map(len, matrix(traffic, me).values())) <= thresholds[me]
    traffic.finish()
    assert not traffic.stuck
    assert judge(traffic.events).status == "valid"

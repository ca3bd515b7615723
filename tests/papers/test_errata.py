"""What the papers get wrong: each row fails as printed, in the way it is said to, and holds by default.

The schedules are in schedules/errata; docs/errata.md tells the stories.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace as changed
from itertools import permutations
from random import Random
from typing import Any, NamedTuple

import pytest

from causet.check.oracle import judge
from causet.errors import BadInput
from causet.model import Event, System, mask, named_processes, only
from causet.protocols import PROTOCOLS, Packet, Process, histories, make_options
from causet.protocols.merge_clock import key_rc, less_rc_as_printed
from causet.simulate.replay import Replay
from causet.simulate.schedule import Schedule, Step, read_schedule
from tests.helpers.exhibits import (
    DRAIN,
    ERRATA,
    both,
    delivered,
    run,
    stamp_entries,
    unheeded,
    until,
    without_drain,
)

report_to_later = histories._report_to_later


def too_early(result: Replay) -> list[tuple[str, str, str]]:
    """(process, delivered, before) of each violation."""
    return [(v.process, v.delivered, v.before) for v in judge(result.events, lost=result.lost).violations]


def assert_holds(result: Replay) -> None:
    """Everything is delivered, in causal order."""
    verdict = judge(result.events)
    assert verdict.status == "valid"
    assert not verdict.undelivered
    assert not result.held


# ---------------------------------------------------------------- Rodrigues & Verissimo


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
    assert delivered(default, "p1") == []  # own copies were delivered at the send


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


# ---------------------------------------------------------------- Macedo


def test_m1_with_the_comparison_reversed_figure_1_of_the_paper_breaks() -> None:
    printed, default = both("M1", "relative")
    assert too_early(printed) == [("p3", "b", "a")]
    assert printed.stuck  # and a can never be delivered
    assert_holds(default)


def test_m2_with_one_entry_per_process_a_message_waits_for_one_that_never_comes() -> None:
    printed, default = both("M2", "fast")
    assert printed.stuck
    assert printed.held == ("p3 holds b: needs the message of block 1 from p1, not yet delivered",)
    assert_holds(default)


def test_m2_is_also_repaired_by_telling_the_neighbours() -> None:
    schedule = changed(read_schedule(ERRATA / "M2.yaml"), options={"variant": "neighbours"})
    result = run(schedule, "fast")
    assert_holds(result)
    assert any(event.control for event in result.events)


def test_m3_a_falling_group_block_number_lets_a_message_pass_its_cause() -> None:
    printed, default = both("M3", "relative")
    assert too_early(printed) == [("p3", "d", "b")]
    assert_holds(default)


def test_m4_with_a_counter_per_group_two_messages_wait_for_each_other() -> None:
    printed, default = both("M4", "relative")
    assert printed.held == (
        "p3 holds b: needs all blocks up to 1 of g1 complete and delivered (0 so far)",
        "p3 holds d: needs all blocks up to 1 of g2 complete and delivered (0 so far)",
    )
    assert printed.rounds >= 10  # null messages do not help
    assert_holds(default)


def test_m5_to_wait_for_one_block_is_not_to_wait_for_those_before_it() -> None:
    printed, default = both("M5", "relative")
    assert too_early(printed) == [("p3", "d", "b")]
    assert_holds(default)
    # The rest of the protocol as printed does not save it.
    schedule = read_schedule(ERRATA / "M5.yaml")
    assert ("p3", "d", "b") in too_early(run(schedule, "relative", "M5", "M6"))


def test_m6_without_null_messages_slow_sticks_and_as_printed_it_catches_up_block_by_block() -> None:
    schedule = read_schedule(ERRATA / "M6.yaml")
    for rows in ((), ("M6",)):
        silent = run(without_drain(schedule), "slow", *rows)
        assert silent.stuck
        assert delivered(silent, "p2") == ["a"]
    printed, default = both("M6", "slow")
    assert_holds(printed)
    assert_holds(default)
    assert (printed.rounds, default.rounds) == (5, 1)


def test_m6_the_printed_rule_needs_as_many_rounds_as_blocks_were_missed() -> None:
    busy = read_schedule(ERRATA / "M6.yaml")
    many = [Step("send", f"m{i}", 0, only(1), 0) for i in range(108)]
    schedule = Schedule(busy.system, (*many, Step("send", "last", 0, mask([1, 2]), 1), DRAIN))
    assert run(schedule, "slow", "M6").rounds == 108
    assert run(schedule, "slow").rounds == 1


@pytest.mark.parametrize(
    ("row", "protocol"),
    [("M1", "relative"), ("M2", "fast"), ("M3", "relative"), ("M4", "relative"), ("M5", "relative")],
)
def test_the_traces_against_macedo_keep_every_link_in_order_as_the_paper_assumes(
    row: str, protocol: str
) -> None:
    # Section 3: messages between two processes arrive in the order they were sent, whatever their group.
    schedule = without_drain(read_schedule(ERRATA / f"{row}.yaml"))
    sent: dict[tuple[str, str], list[str | None]] = {}
    came: dict[tuple[str, str], list[str | None]] = {}
    sender: dict[str | None, str] = {}
    for event in run(schedule, protocol, row).events:
        if event.kind == "send":
            sender[event.message] = event.process
            for target in event.to or ():
                sent.setdefault((event.process, target), []).append(event.message)
        elif event.kind == "receive":
            came.setdefault((sender[event.message], event.process), []).append(event.message)
    for link, messages in came.items():
        assert messages == sent[link][: len(messages)]


# ---------------------------------------------------------------- Sanchez & Alvarez


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


class Unicasts(NamedTuple):
    """A random run of `bounded` with single targets, as the paper has it."""

    events: list[Event]
    stuck: bool
    largest: int
    """the most entries that a matrix ever had"""


def unicasts(size: int, k: int, messages: int, seed: int, *as_printed: str) -> Unicasts:
    random = Random(seed)
    kind = PROTOCOLS["bounded"]
    system = System(named_processes(size))
    options, _ = make_options(kind, system, {"k": k}, as_printed)
    processes = [Process(kind, p, system, options) for p in range(size)]
    events: list[Event] = []
    seq = dict.fromkeys(system.processes, 0)
    under_way: list[Packet] = []
    largest = 0

    def happened(process: int, what: str, packet: Packet, to: tuple[str, ...] | None = None) -> None:
        name = system.name(process)
        seq[name] += 1
        control = packet.control
        events.append(Event(name, seq[name], what, message=packet.id(system), to=to, control=control))

    left = messages
    while left or under_way:
        if left and (not under_way or random.random() < 0.5):
            left -= 1
            me = random.randrange(size)
            target = random.choice([p for p in range(size) if p != me])
            outcome = processes[me].send(only(target))
        else:
            packet = under_way.pop(random.randrange(len(under_way)))
            me = packet.to.bit_length() - 1
            happened(me, "receive", packet)
            outcome = processes[me].receive(packet)
        for packet in outcome.packets:
            happened(me, "send", packet, tuple(system.names(packet.to)))
            under_way.append(packet)
        for packet in outcome.delivered:
            happened(me, "deliver", packet)
        protocol: Any = processes[me].protocol
        largest = max(largest, protocol.size())
    return Unicasts(events, any(process.held() for process in processes), largest)


def test_s1_s2_and_s3_fail_with_single_targets_and_thresholds_of_the_printed_range_as_well() -> None:
    for seed in range(5):  # four processes, so n < k ≤ n² begins at 5
        assert unicasts(4, 5, 60, seed, "S1").stuck
        assert judge(unicasts(4, 5, 60, seed, "S2").events).violations
        assert unicasts(8, 9, 150, seed, "S3").largest > 9
        for default in (unicasts(4, 5, 60, seed), unicasts(8, 9, 150, seed)):
            assert not default.stuck
            assert judge(default.events).status == "valid"
        assert unicasts(8, 9, 150, seed).largest <= 9


# ---------------------------------------------------------------- Kulkarni & Ravikant


def stamps(result: Replay, process: int) -> Mapping[tuple[int, int], Any]:
    """The stamps of what a process holds, by (sender, number)."""
    return {(packet.sender, packet.number): packet.stamp for packet in result.processes[process].held()}


def test_k1_a_clock_that_is_ahead_by_epsilon_is_forgotten_and_theorem_36_fails() -> None:
    schedule = read_schedule(ERRATA / "K1.yaml")
    before_ticks = until(schedule, "receive", "b", "p3")
    for rows, less, order in ((("K1",), False, ["b", "a"]), ((), True, ["a", "b"])):
        result = run(before_ticks, "merge", *rows)
        held = stamps(result, 2)
        protocol: Any = result.processes[2].protocol
        # p2 heard a before it sent b, so a → b in the paper's sense; p2 had not delivered it.
        assert protocol.shape.less(held[0, 1], held[1, 1]) is less
        assert delivered(run(schedule, "merge", *rows), "p3") == order
    printed, default = both("K1", "merge")
    assert [(e.process, e.message) for e in unheeded(printed.events)] == [("p3", "b")]
    assert unheeded(default.events) == []
    assert_holds(default)


def test_k2_a_cause_that_comes_in_the_very_tick_comes_too_late() -> None:
    printed, default = both("K2", "merge")
    assert too_early(printed) == [("p2", "b", "a")]
    assert_holds(default)


def test_k2_a_message_whose_damaged_stamp_is_due_in_the_past_is_held_for_ever() -> None:
    schedule = read_schedule(ERRATA / "K2-damaged.yaml")
    printed = run(schedule, "merge", "K2")
    assert printed.stuck
    (stamp,) = stamps(printed, 1).values()
    assert stamp.r + stamp.c + 1 + 1 == 7  # due at r + c + δ + ε, and it came at 9
    later = run(changed(schedule, steps=(*schedule.steps, DRAIN)), "merge", "K2")
    assert delivered(later, "p2") == ["a"]
    assert later.held
    # By default it is refused, which counts as lost.
    default = run(schedule, "merge")
    assert not default.held
    assert delivered(default, "p2") == ["a"]


def test_k3_after_b_idle_ticks_the_old_is_taken_for_new_and_a_false_reset_inverts_two_messages() -> None:
    printed, default = both("K3", "merge")
    assert too_early(printed) == [("p2", "d", "c")]
    assert_holds(default)
    # The same run with whole numbers for clocks is right as printed, too: it is the modulus.
    schedule = read_schedule(ERRATA / "K3.yaml")
    whole = changed(schedule, options={**schedule.options, "modulus": 0})
    assert_holds(run(whole, "merge", "K3"))


def test_k5_the_printed_order_of_r_c_stamps_is_a_circle() -> None:
    # The circle of the errata, and one that a run of figure 3's program comes to.
    schedule = read_schedule(ERRATA / "K5.yaml")
    held = stamps(run(until(schedule, "receive", "c", "p3"), "merge"), 2)
    a, b, c = held[1, 2], held[0, 2], held[3, 1]
    assert [(s.r, s.c) for s in (a, b, c)] == [(0, 4), (1, 2), (2, 0)]
    for first, second, third in ((a[:2], c[:2], b[:2]), ((0, 10), (2, 0), (1, 5))):
        assert less_rc_as_printed(first, second, 1)
        assert less_rc_as_printed(second, third, 1)
        assert less_rc_as_printed(third, first, 1)
        # So every order of the three has a later one that is less than an earlier one.
        for order in permutations((first, second, third)):
            pairs = [(order[i], order[j]) for i in range(3) for j in range(i + 1, 3)]
            assert any(less_rc_as_printed(later, earlier, 1) for earlier, later in pairs)
        assert len({key_rc(r, c, 0, 0) for r, c in (first, second, third)}) == 3
    default = run(schedule, "merge")
    assert_holds(default)
    assert unheeded(default.events) == []
    assert delivered(default, "p3") == ["y", "c", "b", "a"]

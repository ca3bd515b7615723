"""Macedo, "Causal Order Protocols for Group Communication": causal blocks, and Slow, Fast and Relative.

    section                              tests
    2.2  causal order, figure 1          test_figure_1_…
    3    FIFO links                      test_section_3_…
    4    CA1, CA2, pr1, pr2, pr3         test_section_4_…, test_pr…
    4    block matrix, figure 2          test_figure_2_…
    4    block completion, null messages test_figure_2_…, test_m6_…
    5.1  LDV, pv1, pv2, pv3              test_pv…
    5.2  overlapping groups, figure 3    test_figure_3_…
    5.3  Slow, figure 4                  test_figure_4_…
    5.4  Fast, the size of GLDV          test_section_5_4_…, test_m2_…
    5.5  Relative, C01, C02, GBN         test_section_5_5_…, test_m1_…, test_m3_…, test_m4_…, test_m5_…
    6    the trade-offs                  test_section_6_…
    (proofs are elsewhere, in the paper too: safety and liveness are test_all_three_…)

Deviations: M1 … M6 of docs/errata.md. "Happened before" goes through deliveries, not receptions. The remark
after pr3 has its implication reversed: it is m.b < m'.b that does not imply m → m'. CBV is the largest B with
all blocks up to B complete. pv1 holds in a single group only: M4's repair has one counter for all groups. Not
tested: that in acyclic graphs of groups (5.2) the sender's groups are enough; all groups are always carried.
The mutants of the rules are in tests/mutants/test_mutants.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace as changed
from typing import Any

import pytest

from causet.check.oracle import causal_pasts, judge
from causet.model import Event, Group, System, mask, members, named_processes, only
from causet.protocols import PROTOCOLS, Packet
from causet.simulate.replay import Replay
from causet.simulate.schedule import Schedule, Step, read_schedule
from tests.helpers.exhibits import (
    CONTROLS,
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
    without_drain,
)
from tests.helpers.traffic import Traffic

THREE = ("slow", "fast", "relative")
BLOCK = {
    "slow": lambda packet: packet.stamp,
    "fast": lambda packet: packet.stamp[0],
    "relative": lambda packet: packet.stamp[1],
}
"""m.b in the stamp of each protocol."""


def system_of(size: int, *groups: Sequence[int]) -> System:
    """Processes p1, p2, … and groups g1, g2, … of these."""
    return System(
        named_processes(size), tuple(Group(f"g{x}", mask(group)) for x, group in enumerate(groups, 1))
    )


ONE_GROUP = system_of(4, range(4))
TWINS = system_of(3, range(3), range(3))
RING = system_of(8, (0, 1, 2, 3), (2, 3, 4, 5), (4, 5, 6, 7), (0, 1, 6, 7))
"""The groups of figure 3."""


def send_somewhere(traffic: Traffic) -> Packet:
    """A random process sends in one of its groups."""
    groups = traffic.system.groups
    x = traffic.random.randrange(len(groups))
    p = traffic.random.choice(list(members(groups[x].members)))
    return traffic.send(p, groups[x].members & ~only(p), x)


def busy(protocol: str, system: System, seed: int, steps: int, *, nulls: float = 0.0) -> Traffic:
    """Random sends and receptions, with null messages in between where asked for."""
    traffic = Traffic(protocol, system, seed)
    for _ in range(steps):
        chance = traffic.random.random()
        if chance < nulls:
            traffic.null(traffic.random.randrange(system.size))
        elif traffic.under_way and chance < 0.7:
            traffic.receive()
        else:
            send_somewhere(traffic)
    return traffic


# Section 2.2: causal order delivery

FIGURE_1 = Story("macedo-1", "p3", "m2", "p1", ["m1", "m2"], cannot=())


@pytest.mark.parametrize("protocol", protocols_for(FIGURE_1))
def test_figure_1_every_protocol_that_can_run_it_delivers_as_the_paper_says(protocol: str) -> None:
    assert_delivers_as_told(FIGURE_1, protocol)


@pytest.mark.parametrize("protocol", protocols_for(FIGURE_1))
def test_figure_1_what_comes_too_early_is_held_for_its_cause(protocol: str) -> None:
    assert_holds_what_is_early(FIGURE_1, protocol)


@pytest.mark.parametrize("protocol", ["slow", "fast", "relative"])
def test_figure_1_p3_delivers_m2_as_soon_as_it_has_m1(protocol: str) -> None:
    schedule = figure("macedo-1")
    # Blocks: m1 1 (CA1), m2 2 (CA2 at p2's delivery of m1, then CA1).
    early = run(until(schedule, "receive", "m2", "p3"), protocol)
    assert delivered(early, "p3") == []
    assert delivered(run(until(schedule, "receive", "m1", "p3"), protocol), "p3") == ["m1", "m2"]


# Section 3: the system model


@pytest.mark.parametrize("protocol", ["slow", "relative"])
def test_section_3_links_that_are_not_fifo_are_made_so_by_the_receiver(protocol: str) -> None:
    """The paper assumes a transport layer with sequence numbers; here the receiver has them."""
    steps = [Step("send", m, 0, only(1), 0) for m in "ab"] + [Step("receive", "b", 1)]
    early = run(Schedule(system_of(2, (0, 1)), tuple(steps)), protocol)
    assert delivered(early, "p2") == []
    late = run(Schedule(system_of(2, (0, 1)), (*steps, Step("receive", "a", 1))), protocol)
    assert delivered(late, "p2") == ["a", "b"]


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


# Section 4: causal blocks


@pytest.mark.parametrize("system", [ONE_GROUP, TWINS, RING], ids=["one-group", "twins", "ring"])
@pytest.mark.parametrize("protocol", THREE)
def test_section_4_a_send_and_a_delivery_advance_the_block_counter_by_ca1_and_ca2(
    protocol: str, system: System
) -> None:
    """m.b of every message is what CA1 and CA2 make of the trace, with one counter per process."""
    for seed in range(3):
        traffic = Traffic(protocol, system, seed)
        stamped: dict[str, int] = {}
        for _ in range(80):
            if traffic.under_way and traffic.random.random() < 0.6:
                traffic.receive()
            else:
                packet = send_somewhere(traffic)
                stamped[packet.id(system)] = BLOCK[protocol](packet)
        assert stamped == blocks(traffic.events)


@pytest.mark.parametrize("protocol", THREE)
def test_pr1_pr2_and_pr3_a_message_has_a_larger_block_than_all_that_precede_it(protocol: str) -> None:
    """pr1 and pr2: m → m' implies m.b < m'.b. pr3: messages of one block are concurrent."""
    for system in (ONE_GROUP, RING):
        traffic = busy(protocol, system, 1, 120)
        block = blocks(traffic.events)
        pasts = causal_pasts(traffic.events)
        assert any(pasts.values())
        for message, past in pasts.items():
            assert all(block[before] < block[message] for before in past)


def test_pr3_a_smaller_block_does_not_mean_an_earlier_message() -> None:
    """The remark after pr3, the right way round: c has block 1 and b has block 2, and they are concurrent."""
    steps = (
        Step("send", "a", 0, only(1), 0),
        Step("send", "b", 0, only(1), 0),
        Step("send", "c", 1, only(0), 0),
    )
    result = run(Schedule(system_of(2, (0, 1)), steps), "slow")
    assert blocks(result.events) == {"a": 1, "b": 2, "c": 1}
    assert causal_pasts(result.events)["b"] == {"a"}


FIGURE_2 = """
     p1 p2 p3 p4 p5 p6
  1  +        +
  2     +        +  +
  3  +     +  +
  4  +           +
  5     +
"""


def blocks(events: Sequence[Event]) -> dict[str, int]:
    """The block of each message, from the trace alone.

    CA1 and CA2: one more than the largest block that its sender sent or delivered before.
    """
    counters: dict[str, int] = {}
    found: dict[str, int] = {}
    for event in events:
        counter = counters.get(event.process, 0)
        if event.kind == "send":
            counters[event.process] = found[event.message or ""] = counter + 1
        elif event.kind == "deliver":
            counters[event.process] = max(counter, found[event.message or ""])
    return found


def block_matrix(result: Replay, owner: str) -> str:
    """What the owner has sent and received, drawn as in the figure."""
    block = blocks(result.events)
    senders = {e.message: e.process for e in result.events if e.kind == "send"}
    own = [e for e in result.events if e.process == owner and e.kind in ("send", "receive")]
    marks = {(block[e.message or ""], senders[e.message]) for e in own}
    processes = result.processes[0].system.processes
    lines = ["     " + " ".join(processes)]
    for number in range(1, max(block.values()) + 1):
        lines.append(f"  {number}  " + "  ".join("+" if (number, p) in marks else " " for p in processes))
    return "\n" + "\n".join(line.rstrip() for line in lines) + "\n"


def test_figure_2_is_the_block_matrix_of_p3() -> None:
    result = run(figure("macedo-2"), "slow")
    assert block_matrix(result, "p3") == FIGURE_2
    protocol: Any = result.processes[2].protocol
    # "The block-numbers of the last messages received from p1 and p2 are 4 and 5"; p3 skips its own column.
    assert protocol.BM == {0: {0: 4, 1: 5, 3: 3, 4: 4, 5: 2}}
    # "Block 2 is complete because p2, p5 and p6 have sent a message with block-number 2, and p1, p3 and p4
    # have sent a message with block-number 3." Block 3 is not: the last of p6 is in block 2.
    assert protocol.CBV == {0: 2}


def test_figure_2_slow_delivers_by_blocks_and_holds_what_is_beyond_block_3() -> None:
    result = run(figure("macedo-2"), "slow")
    block = blocks(result.events)
    got = delivered(result, "p3")
    assert got == ["m11", "m14", "m22", "m25", "m26", "m31", "m34"]
    assert [block[m] for m in got] == [1, 1, 2, 2, 2, 3, 3]
    # m41 and m45 need block 3 complete, m52 block 4; 2 is complete. (sender, number): p1's third, …
    assert unmet(result, 2) == {(0, 3): ((0, 3, 2),), (4, 2): ((0, 3, 2),), (1, 2): ((0, 4, 2),)}
    # When m36 comes and everybody has been heard of, the rest follows.
    schedule = figure("macedo-2")
    rest = run(Schedule(schedule.system, (*schedule.steps, DRAIN)), "slow")
    assert delivered(rest, "p3") == [*got, "m36", "m41", "m45", "m52"]


def test_figure_2_cannot_happen_when_a_process_looks_at_its_own_column() -> None:
    # M6 as printed: p3, silent so far, cannot complete block 1, delivers nothing of block 2, and so sends a
    # message of block 2 where the figure has 3.
    result = run(figure("macedo-2"), "slow", "M6")
    assert blocks(result.events)["m33"] == 2


@pytest.mark.parametrize("protocol", [p for p in PROTOCOLS if p not in CONTROLS])
def test_figure_2_is_delivered_causally_by_every_protocol(protocol: str) -> None:
    schedule = figure("macedo-2")
    result = run(Schedule(schedule.system, (*schedule.steps, DRAIN)), protocol)
    verdict = judge(result.events)
    assert verdict.status == "valid"
    assert not verdict.undelivered


@pytest.mark.parametrize("protocol", CONTROLS)
def test_figure_2_breaks_without_causal_order(protocol: str) -> None:
    # p2 had delivered m36 when it sent m52; p3 has m52 and not m36.
    violations = judge(run(figure("macedo-2"), protocol).events).violations
    assert ("p3", "m52", "m36") in {(v.process, v.delivered, v.before) for v in violations}


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


# Section 5.1: representing causal relationship precisely


def ldv_precedes(m1: Packet, m2: Packet) -> bool:
    """pv2: m1.LDV < m2.LDV and m1.b ≤ m2.LDV[i], where p_i sent m1; both are of one group."""
    _, b1, ldv1, _ = m1.stamp
    _, _, ldv2, _ = m2.stamp
    smaller = all(a <= b for a, b in zip(ldv1, ldv2, strict=True)) and ldv1 != ldv2
    return smaller and b1 <= ldv2[m1.sender]


@pytest.mark.parametrize("seed", range(4))
def test_pv1_in_a_group_a_block_is_one_more_than_the_largest_last_delivered(seed: int) -> None:
    traffic = Traffic("relative", ONE_GROUP, seed)
    for _ in range(80):
        if traffic.under_way and traffic.random.random() < 0.6:
            traffic.receive()
        else:
            _, block, ldv, _ = send_somewhere(traffic).stamp
            assert block == max(ldv) + 1


@pytest.mark.parametrize(("rows", "block"), [((), 2), (("M4",), 1)])
def test_pv1_is_given_up_across_groups_by_the_repair_of_m4(rows: tuple[str, ...], block: int) -> None:
    """p1 sends in g1, then in g2, whose LDV is all zeros: with a counter for each group that is block 1."""
    traffic = Traffic("relative", TWINS, 0, as_printed=rows)
    traffic.send(0, mask([1, 2]), 0)
    assert traffic.send(0, mask([1, 2]), 1).stamp[1:3] == (block, (0, 0, 0))


@pytest.mark.parametrize("system", [ONE_GROUP, TWINS], ids=["one-group", "twins"])
@pytest.mark.parametrize("seed", range(4))
def test_pv2_and_pv3_the_vectors_of_a_group_are_exactly_causal_precedence(system: System, seed: int) -> None:
    """m1 → m2 iff the vectors say so, and they are concurrent iff the vectors say neither."""
    traffic = Traffic("relative", system, seed)
    sent: list[Packet] = []
    for _ in range(90):
        chance = traffic.random.random()
        if chance < 0.1:
            traffic.null(traffic.random.randrange(system.size))
        elif traffic.under_way and chance < 0.65:
            traffic.receive()
        else:
            sent.append(send_somewhere(traffic))
    pasts = causal_pasts(traffic.events)
    related = 0
    for m1 in sent:
        for m2 in sent:
            if m1 is not m2 and m1.group == m2.group:
                precedes = m1.id(system) in pasts[m2.id(system)]
                assert ldv_precedes(m1, m2) == precedes
                related += precedes
    assert related > 20


# Section 5.2: causal order in overlapping process groups

FIGURE_3 = Story("macedo-3", "p2", "m4", "p1", ["m1", "m4"], too_slow=("slow",))
"""Slow delivers m2 at p6 only when null messages have completed the first blocks."""


@pytest.mark.parametrize("protocol", protocols_for(FIGURE_3))
def test_figure_3_every_protocol_that_can_run_it_delivers_as_the_paper_says(protocol: str) -> None:
    assert_delivers_as_told(FIGURE_3, protocol)


@pytest.mark.parametrize("protocol", protocols_for(FIGURE_3))
def test_figure_3_what_comes_too_early_is_held_for_its_cause(protocol: str) -> None:
    assert_holds_what_is_early(FIGURE_3, protocol)


@pytest.mark.parametrize("protocol", ["fast", "relative"])
def test_figure_3_m1_precedes_m4_all_around_the_ring(protocol: str) -> None:
    schedule = figure("macedo-3")
    result = run(schedule, protocol)
    assert causal_pasts(result.events)["m4"] == {"m1", "m2", "m3"}
    # p7 is not in g1, and m4 says all the same what p2 has to wait for there.
    early = run(until(schedule, "receive", "m4", "p2"), protocol)
    assert delivered(early, "p2") == []
    assert len(early.held) == 1


def test_figure_3_fast_waits_for_m1_and_relative_for_its_block() -> None:
    schedule = figure("macedo-3")
    both_there = until(schedule, "receive", "m1", "p2")
    assert delivered(run(both_there, "fast"), "p2") == ["m1", "m4"]
    # Block 1 of g1 is complete when p3 and p4 have been heard of in g1, too: that takes a null message.
    result = run(both_there, "relative")
    assert delivered(result, "p2") == ["m1"]
    assert result.held == ("p2 holds m4: needs all blocks up to 1 of g1 complete and delivered (0 so far)",)


# Section 5.3: the Slow causal order protocol


class SlowMember:
    """Figure 4 at one process, with M6's repair: it does not look at its own column."""

    def __init__(self, me: int, system: System) -> None:
        self.BC = 0
        self.last = {
            x: {j: 0 for j in members(group.members) if j != me}
            for x, group in enumerate(system.groups)
            if group.members >> me & 1
        }
        self.received: dict[Any, int] = {}

    def message(self, packet: Packet) -> list[Any]:
        """Receive a message or a null message; the keys of what is delivered now, by block."""
        self.last[packet.group][packet.sender] = packet.stamp
        if not packet.control:
            self.received[packet.key] = packet.stamp
        B_min = min(min(column.values()) for column in self.last.values())
        free = sorted((b, key) for key, b in self.received.items() if b <= B_min + 1)
        for b, key in free:
            del self.received[key]
            self.BC = max(self.BC, b)  # CA2
        return free


@pytest.mark.parametrize("system", [ONE_GROUP, TWINS, RING], ids=["one-group", "twins", "ring"])
@pytest.mark.parametrize("seed", range(3))
def test_figure_4_slow_delivers_what_is_of_the_block_after_the_last_complete_one(
    system: System, seed: int
) -> None:
    traffic = Traffic("slow", system, seed)
    model = [SlowMember(p, system) for p in range(system.size)]
    count = 0
    for _ in range(200):
        chance = traffic.random.random()
        if chance < 0.15:
            p = traffic.random.randrange(system.size)
            for null in traffic.null(p):
                model[p].BC = max(model[p].BC, null.stamp)
        elif traffic.under_way and chance < 0.8:
            target, packet, outcome = traffic.receive(fifo=True)
            expected = model[target].message(packet)
            assert [BLOCK["slow"](m) for m in outcome.delivered] == [b for b, _ in expected]
            assert {m.key for m in outcome.delivered} == {key for _, key in expected}
            count += len(expected)
        else:
            packet = send_somewhere(traffic)
            model[packet.sender].BC += 1  # CA1
            assert packet.stamp == model[packet.sender].BC
    assert count > 10


# Section 5.4: the Fast causal order protocol


@pytest.mark.parametrize("system", [ONE_GROUP, TWINS, RING], ids=["one-group", "twins", "ring"])
@pytest.mark.parametrize("seed", range(4))
def test_section_5_4_fast_delivers_as_early_as_possible(system: System, seed: int) -> None:
    traffic = busy("fast", system, seed, 120)
    traffic.finish()
    verdict = judge(traffic.events)
    assert verdict.status == "valid"
    assert not verdict.undelivered
    assert not verdict.late


def test_section_5_4_the_saving_over_cbcast_is_gone_with_the_repair_of_m2() -> None:
    """Figure 3's groups: |GLDV| = 8 processes as printed, Σ|g| = 16 as repaired and in CBCAST; and m.b."""
    schedule = without_drain(figure("macedo-3"))
    assert stamp_entries(run(schedule, "fast", "M2"), "m1") == 1 + 8
    assert stamp_entries(run(schedule, "fast"), "m1") == 1 + 16
    assert stamp_entries(run(schedule, "vector"), "m1") == 16


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


# Section 5.5: the Relative causal order protocol


@pytest.mark.parametrize("seed", range(4))
def test_section_5_5_relative_delivers_as_early_as_possible_in_a_single_group(seed: int) -> None:
    traffic = busy("relative", ONE_GROUP, seed, 120)
    traffic.finish()
    verdict = judge(traffic.events)
    assert verdict.status == "valid"
    assert not verdict.undelivered
    assert not verdict.late


def test_section_5_5_a_message_carries_its_block_one_vector_and_a_number_per_group() -> None:
    """Figure 3's groups: m.b, an LDV of 4 members, and GBN of 4 groups."""
    assert stamp_entries(run(without_drain(figure("macedo-3")), "relative"), "m1") == 1 + 4 + 4


def test_m1_with_the_comparison_reversed_figure_1_of_the_paper_breaks() -> None:
    printed, default = both("M1", "relative")
    assert too_early(printed) == [("p3", "b", "a")]
    assert printed.stuck  # and a can never be delivered
    assert_holds(default)


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


# Section 6: concluding remarks


def test_section_6_slow_has_the_smallest_stamp_and_fast_the_largest() -> None:
    schedule = without_drain(figure("macedo-3"))
    sizes = {protocol: stamp_entries(run(schedule, protocol), "m1") or 0 for protocol in THREE}
    assert sizes["slow"] == 1
    assert sizes["slow"] < sizes["relative"] < sizes["fast"]


def test_section_6_fast_waits_least_and_slow_most() -> None:
    """In one group Slow waits for a silent member and Relative does not; across groups Relative waits too."""
    steps = [Step("send", m, 0, mask([1, 2]), 0) for m in "ab"] + [Step("receive", m, 1) for m in "ab"]
    one = Schedule(system_of(3, range(3)), tuple(steps))
    assert {p: delivered(run(one, p), "p2") for p in THREE} == {
        "slow": ["a"],
        "fast": ["a", "b"],
        "relative": ["a", "b"],
    }
    across = until(figure("macedo-3"), "receive", "m1", "p2")
    assert delivered(run(across, "fast"), "p2") == ["m1", "m4"]
    assert delivered(run(across, "relative"), "p2") == ["m1"]


@pytest.mark.parametrize("system", [ONE_GROUP, TWINS, RING], ids=["one-group", "twins", "ring"])
@pytest.mark.parametrize("protocol", THREE)
def test_all_three_protocols_are_safe_and_with_null_messages_live(protocol: str, system: System) -> None:
    for seed in range(4):
        nulls = 0.1 if PROTOCOLS[protocol].nulls else 0.0
        traffic = busy(protocol, system, seed, 100, nulls=nulls)
        traffic.finish()
        verdict = judge(traffic.events)
        assert verdict.status == "valid"
        assert not verdict.undelivered
        assert not traffic.stuck

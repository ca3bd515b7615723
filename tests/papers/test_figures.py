"""The figures of the papers, replayed: what each paper says of its figure is what happens.

The protocol of the figure's own paper is looked at closely; every other one that can run the schedule must
come to the same order of deliveries, and the two controls must not.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from causet.check.oracle import causal_pasts, judge
from causet.model import mask
from causet.protocols import PROTOCOLS
from causet.simulate.replay import Replay
from causet.simulate.schedule import Schedule, read_schedule
from tests.helpers.exhibits import DRAIN, FIGURES, delivered, run, until

CONTROLS = ("fifo", "none")


def figure(name: str) -> Schedule:
    return read_schedule(FIGURES / f"{name}.yaml")


def unmet(result: Replay, process: int) -> dict[tuple[Any, int], tuple[Any, ...]]:
    """For each message that a process holds, by (sender, number), the thresholds that are not met:
    (fact, at least, now)."""
    return {wait.key: wait.unmet for wait in result.processes[process]._engine.waiting()}


# ---------------------------------------------------------------- every figure, every protocol


class Story(NamedTuple):
    """Who receives what too early, and what must be the order of deliveries there."""

    figure: str
    process: str
    early: str
    """the message that comes too early"""
    cause: str
    """the process whose message it waits for; some protocols name the message"""
    order: list[str]
    cannot: tuple[str, ...] = ("direct",)
    """protocols that cannot run it: `direct` is for broadcast only"""
    too_slow: tuple[str, ...] = ()
    """protocols that have not yet delivered the cause when the next message is sent: it is no cause there"""


STORIES = [
    Story("rodrigues-4.1", "P2", "b", "P1", ["a", "b", "c"]),
    Story("macedo-1", "p3", "m2", "p1", ["m1", "m2"], cannot=()),
    # Slow delivers m2 at p6, and M2 at S2, only when null messages have completed the first blocks.
    Story("macedo-3", "p2", "m4", "p1", ["m1", "m4"], too_slow=("slow",)),
    Story("raynal-1", "S3", "M3", "S1", ["M1", "M3"], too_slow=("slow",)),
]
PAIRS = [
    pytest.param(story, protocol, id=f"{story.figure}-{protocol}")
    for story in STORIES
    for protocol in PROTOCOLS
    if protocol not in story.cannot
]


@pytest.mark.parametrize(("story", "protocol"), PAIRS)
def test_every_protocol_that_can_run_a_figure_delivers_as_the_paper_says(story: Story, protocol: str) -> None:
    result = run(figure(story.figure), protocol)
    verdict = judge(result.events)
    assert not verdict.undelivered
    assert not result.held
    if protocol in CONTROLS:
        assert verdict.violations
        return
    assert verdict.status == "valid"
    if protocol not in story.too_slow:
        assert delivered(result, story.process) == story.order


@pytest.mark.parametrize(("story", "protocol"), PAIRS)
def test_what_comes_too_early_is_held_for_its_cause(story: Story, protocol: str) -> None:
    result = run(until(figure(story.figure), "receive", story.early, story.process), protocol)
    lines = [line for line in result.held if line.startswith(f"{story.process} holds {story.early}: needs ")]
    if protocol in CONTROLS or protocol in story.too_slow:
        return
    if protocol == "piggyback":  # nothing ever waits: the cause has come along, and went first
        assert not lines
        assert delivered(result, story.process)[0] == story.order[0]
        return
    assert len(lines) == 1
    needs = lines[0].partition("needs ")[2]
    if protocol == "merge":  # waits for its time, whatever comes
        assert "the local clock" in needs
    elif protocol == "relative" and story.figure != "macedo-1":  # across groups, by blocks
        assert "all blocks up to 1 of" in needs
    else:
        assert story.cause in needs or story.order[0] in needs


# ---------------------------------------------------------------- Rodrigues & Verissimo, figure 4.1


class Histories(NamedTuple):
    """What a process keeps: H with the addresses A, C, and D; by names."""

    H: dict[str, set[str]]
    C: dict[str, set[str]]
    D: dict[str, int]


def histories(result: Replay, process: str) -> Histories:
    system = result.processes[0].system
    me = result.processes[system.index(process)]
    names = {(0, 1): "a", (2, 1): "b", (2, 2): "c"}
    H: dict[str, set[str]] = {}
    C: dict[str, set[str]] = {}
    for s, c, A, reported in me.protocol.state():
        H[names[s, c]] = set(system.names(A))
        C[names[s, c]] = set(system.names(reported))
    D = {system.name(int(str(sender))): number for sender, number in me._engine.facts.items()}
    return Histories(H, C, D)


def at(kind: str, message: str, process: str, *as_printed: str) -> Replay:
    return run(until(figure("rodrigues-4.1"), kind, message, process), "histories", *as_printed)


def test_figure_41_when_p3_has_delivered_a_it_knows_that_p1_and_itself_know_it() -> None:
    # R4: H3 = D3 = {a}. R6.3: C3(a) = {s_a, P3} = {P1, P3}, as the text says.
    known = histories(at("receive", "a", "P3"), "P3")
    assert known == ({"a": {"P2", "P3"}}, {"a": {"P1", "P3"}}, {"P1": 1})


def test_figure_41_when_p3_has_sent_b_a_was_reported_to_all_and_leaves_the_history() -> None:
    # R6.2: C3(a) = {P1, P3} ∪ {P2} = {P1, P2, P3} ⊃ A_a, so R8 removes a from H3 and C3. What is left is b,
    # with C3(b) = ∅ as printed (H5: {P3}); R4 enters b into P3's own D.
    result = at("send", "b", "P3")
    assert histories(result, "P3") == ({"b": {"P2"}}, {"b": {"P3"}}, {"P1": 1, "P3": 1})
    printed = histories(at("send", "b", "P3", "H5"), "P3")
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
    assert histories(result, "P2") == ({}, {}, {"P1": 1, "P3": 2})
    assert histories(result, "P3") == ({"c": {"P2"}}, {"c": {"P3"}}, {"P1": 1, "P3": 2})
    assert histories(result, "P1") == ({"a": {"P2", "P3"}}, {"a": {"P1"}}, {"P1": 1})


# ---------------------------------------------------------------- Macedo, figures 1, 2 and 3


@pytest.mark.parametrize("protocol", ["slow", "fast", "relative"])
def test_macedo_figure_1_p3_delivers_m2_as_soon_as_it_has_m1(protocol: str) -> None:
    schedule = figure("macedo-1")
    # Blocks: m1 1 (CA1), m2 2 (CA2 at p2's delivery of m1, then CA1).
    early = run(until(schedule, "receive", "m2", "p3"), protocol)
    assert delivered(early, "p3") == []
    assert delivered(run(until(schedule, "receive", "m1", "p3"), protocol), "p3") == ["m1", "m2"]


FIGURE_2 = """
     p1 p2 p3 p4 p5 p6
  1  +        +
  2     +        +  +
  3  +     +  +
  4  +           +
  5     +
"""


def blocks(result: Replay) -> dict[str, int]:
    """The block of each message, from the trace alone.

    CA1 and CA2: one more than the largest block that its sender sent or delivered before.
    """
    counters: dict[str, int] = {}
    found: dict[str, int] = {}
    for event in result.events:
        counter = counters.get(event.process, 0)
        if event.kind == "send":
            counters[event.process] = found[event.message or ""] = counter + 1
        elif event.kind == "deliver":
            counters[event.process] = max(counter, found[event.message or ""])
    return found


def block_matrix(result: Replay, owner: str) -> str:
    """What the owner has sent and received, drawn as in the figure."""
    block = blocks(result)
    senders = {e.message: e.process for e in result.events if e.kind == "send"}
    own = [e for e in result.events if e.process == owner and e.kind in ("send", "receive")]
    marks = {(block[e.message or ""], senders[e.message]) for e in own}
    processes = result.processes[0].system.processes
    lines = ["     " + " ".join(processes)]
    for number in range(1, max(block.values()) + 1):
        lines.append(f"  {number}  " + "  ".join("+" if (number, p) in marks else " " for p in processes))
    return "\n" + "\n".join(line.rstrip() for line in lines) + "\n"


def test_macedo_figure_2_is_the_block_matrix_of_p3() -> None:
    result = run(figure("macedo-2"), "slow")
    assert block_matrix(result, "p3") == FIGURE_2
    protocol: Any = result.processes[2].protocol
    # "The block-numbers of the last messages received from p1 and p2 are 4 and 5"; p3 skips its own column.
    assert protocol.BM == {0: {0: 4, 1: 5, 3: 3, 4: 4, 5: 2}}
    # "Block 2 is complete because p2, p5 and p6 have sent a message with block-number 2, and p1, p3 and p4
    # have sent a message with block-number 3." Block 3 is not: the last of p6 is in block 2.
    assert protocol.CBV == {0: 2}


def test_macedo_figure_2_slow_delivers_by_blocks_and_holds_what_is_beyond_block_3() -> None:
    result = run(figure("macedo-2"), "slow")
    block = blocks(result)
    got = delivered(result, "p3")
    assert got == ["m11", "m14", "m22", "m25", "m26", "m31", "m34"]
    assert [block[m] for m in got] == [1, 1, 2, 2, 2, 3, 3]
    # m41 and m45 need block 3 complete, m52 block 4; 2 is complete. (sender, number): p1's third, …
    assert unmet(result, 2) == {(0, 3): ((0, 3, 2),), (4, 2): ((0, 3, 2),), (1, 2): ((0, 4, 2),)}
    # When m36 comes and everybody has been heard of, the rest follows.
    schedule = figure("macedo-2")
    rest = run(Schedule(schedule.system, (*schedule.steps, DRAIN)), "slow")
    assert delivered(rest, "p3") == [*got, "m36", "m41", "m45", "m52"]


def test_macedo_figure_2_cannot_happen_when_a_process_looks_at_its_own_column() -> None:
    # M6 as printed: p3, silent so far, cannot complete block 1, delivers nothing of block 2, and so sends a
    # message of block 2 where the figure has 3.
    result = run(figure("macedo-2"), "slow", "M6")
    assert blocks(result)["m33"] == 2


@pytest.mark.parametrize("protocol", [p for p in PROTOCOLS if p not in CONTROLS])
def test_macedo_figure_2_is_delivered_causally_by_every_protocol(protocol: str) -> None:
    schedule = figure("macedo-2")
    result = run(Schedule(schedule.system, (*schedule.steps, DRAIN)), protocol)
    verdict = judge(result.events)
    assert verdict.status == "valid"
    assert not verdict.undelivered


@pytest.mark.parametrize("protocol", CONTROLS)
def test_macedo_figure_2_breaks_without_causal_order(protocol: str) -> None:
    # p2 had delivered m36 when it sent m52; p3 has m52 and not m36.
    violations = judge(run(figure("macedo-2"), protocol).events).violations
    assert ("p3", "m52", "m36") in {(v.process, v.delivered, v.before) for v in violations}


@pytest.mark.parametrize("protocol", ["fast", "relative"])
def test_macedo_figure_3_m1_precedes_m4_all_around_the_ring(protocol: str) -> None:
    schedule = figure("macedo-3")
    result = run(schedule, protocol)
    assert causal_pasts(result.events)["m4"] == {"m1", "m2", "m3"}
    # p7 is not in g1, and m4 says all the same what p2 has to wait for there.
    early = run(until(schedule, "receive", "m4", "p2"), protocol)
    assert delivered(early, "p2") == []
    assert len(early.held) == 1


def test_macedo_figure_3_fast_waits_for_m1_and_relative_for_its_block() -> None:
    schedule = figure("macedo-3")
    both_there = until(schedule, "receive", "m1", "p2")
    assert delivered(run(both_there, "fast"), "p2") == ["m1", "m4"]
    # Block 1 of g1 is complete when p3 and p4 have been heard of in g1, too: that takes a null message.
    result = run(both_there, "relative")
    assert delivered(result, "p2") == ["m1"]
    assert result.held == ("p2 holds m4: needs all blocks up to 1 of g1 complete and delivered (0 so far)",)


# ---------------------------------------------------------------- Raynal & Schiper, figure 1


def test_raynal_figure_1_m3_says_that_s1_sent_one_message_to_s3() -> None:
    schedule = figure("raynal-1")
    result = run(until(schedule, "receive", "M3", "S3"), "matrix")
    (M3,) = result.processes[2].held()
    # Rule i): M1 makes SENT[1,3] = 1, M2 makes SENT[1,2] = 1; S2 learns both with M2 and adds SENT[2,3] = 1.
    assert M3.stamp.tolist() == [[0, 1, 1], [0, 0, 1], [0, 0, 0]]
    # Rule ii): REC[2] + 1 = 1 = ST[2,3] holds, REC[1] = 0 ≥ ST[1,3] = 1 does not.
    assert unmet(result, 2) == {(1, 1): ((0, 1, 0),)}
    assert result.held == ("S3 holds M3: needs message 1 of S1 to S3, 0 delivered so far",)


def test_raynal_figure_1_s3_delivers_m1_then_m3() -> None:
    result = run(figure("raynal-1"), "matrix")
    assert delivered(result, "S3") == ["M1", "M3"]
    s3 = result.processes[2]
    protocol: Any = s3.protocol
    assert dict(s3._engine.facts) == {0: 1, 1: 1}  # REC: one from S1, one from S2
    assert protocol.SENT.tolist() == [[0, 1, 1], [0, 0, 1], [0, 0, 0]]

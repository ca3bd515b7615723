"""Schedules: what a file says is what happens, and what is written is read back."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from causet.check.oracle import judge
from causet.errors import BadInput, CausetError
from causet.protocols import OPTION_NAMES, PROTOCOLS, make_options
from causet.simulate.replay import ROUNDS, Replay, replay
from causet.simulate.schedule import Schedule, parse, read_schedule, schedule_of, write_schedule

LOSSLESS = [name for name, kind in PROTOCOLS.items() if kind.PROMISES.causal and not kind.PROMISES.loss]
CAUSAL = [name for name, kind in PROTOCOLS.items() if kind.PROMISES.causal]
BLOCKS = [name for name, kind in PROTOCOLS.items() if kind.nulls]


def of(*steps: str, head: str = "processes: [p1, p2, p3]") -> Schedule:
    return parse(f"{head}\nsteps:\n" + "".join(f"  - {step}\n" for step in steps))


def played(schedule: Schedule, protocol: str, *as_printed: str, **options: Any) -> Replay:
    kind = PROTOCOLS[protocol]
    known = kind.Options.__dataclass_fields__
    chosen = {name: value for name, value in schedule.options.items() if name in known} | options
    return replay(schedule, kind, make_options(kind, schedule.system, chosen, as_printed)[0])


def happened(result: Replay) -> list[str]:
    """The events as `process kind message`, in the order in which they happened."""
    return [f"{event.process} {event.kind} {event.message or event.text}" for event in result.events]


def deliveries(result: Replay) -> Counter[tuple[str, str]]:
    return Counter((e.process, e.message or "") for e in result.events if e.kind == "deliver")


GROUPED = "processes: [p1, p2, p3]\ngroups: {g1: [p1, p2, p3], g2: [p1, p2]}"


# ---------------------------------------------------------------- sends and receptions


def test_a_send_names_its_targets_and_a_reception_delivers() -> None:
    result = played(of("{send: a, from: p1, to: [p3, p2]}", "{receive: a, at: p3}"), "none")
    assert happened(result) == ["p1 send a", "p3 receive a", "p3 deliver a"]
    send = result.events[0]
    assert (send.to, send.group, send.control) == (("p2", "p3"), None, False)
    assert send.stamp_entries is not None and send.stamp_bytes is not None
    assert (len(result.under_way), result.held, result.stuck) == (1, (), False)


def test_a_send_to_a_group_goes_to_its_other_members() -> None:
    result = played(of("{send: a, from: p2, group: g2}", "drain", head=GROUPED), "vector")
    assert happened(result) == ["p2 send a", "p1 receive a", "p1 deliver a"]
    assert (result.events[0].to, result.events[0].group) == (("p1",), "g2")


def test_a_group_protocol_finds_the_group_of_the_targets() -> None:
    result = played(of("{send: a, from: p2, to: [p1]}", head=GROUPED), "relative")
    assert result.events[0].group == "g2"


def test_what_comes_too_early_is_held_until_its_cause_has_come() -> None:
    steps = (
        "{send: a, from: p1, to: [p2, p3]}",
        "{receive: a, at: p2}",
        "{send: b, from: p2, to: [p1, p3]}",
        "{receive: b, at: p3}",
    )
    waiting = played(of(*steps), "matrix")
    assert happened(waiting)[-1] == "p3 receive b"
    assert len(waiting.held) == 1
    assert not waiting.stuck, "not everything has arrived"
    done = played(of(*steps, "{receive: a, at: p3}"), "matrix")
    assert happened(done)[-3:] == ["p3 receive a", "p3 deliver a", "p3 deliver b"]


def test_times_in_the_trace_are_the_numbers_of_the_steps() -> None:
    result = played(of("{tick: 7}", "{send: a, from: p1, to: [p2]}", "{receive: a, at: p2}"), "none")
    assert [event.time for event in result.events] == [2, 3, 3]


def test_a_sender_among_its_targets_has_its_copy_at_once() -> None:
    schedule = of("{send: a, from: p1, to: [p1, p2]}", "{receive: a, at: p1}", "{receive: a, at: p2}")
    for protocol in CAUSAL:
        if PROTOCOLS[protocol].grouped or PROTOCOLS[protocol].broadcast:
            continue
        result = played(schedule, protocol)
        assert result.events[0].to == ("p2",)
        own = [(event.kind, event.message) for event in result.events[1:] if event.process == "p1"]
        held = PROTOCOLS[protocol].keeps_own  # until its turn
        assert own == ([] if held else [("deliver", "a")])
        assert held or result.events[1].process == "p1"


def test_what_is_not_merged_is_said_by_true_or_false_and_written_again() -> None:
    text = """processes: [p1, p2]
groups: {g: [p1, p2]}
options: {by_hand: true}
steps:
  - {send: a, from: p1, to: [p2], merge: false}
  - {send: b, from: p1, group: g, merge: false}
  - {receive: a, at: p2, merge: false}
  - {receive: b, at: p2}
"""
    assert [step.merge for step in parse(text).steps] == [False, False, False, True]
    assert write_schedule(parse(text)) == text
    assert parse(text.replace("b, at: p2", "b, at: p2, merge: true")) == parse(text)
    with pytest.raises(BadInput, match='step 3: field `merge`: true or false is needed, not "no"'):
        parse(text.replace("a, at: p2, merge: false", 'a, at: p2, merge: "no"'))
    with pytest.raises(BadInput, match='a lose step has no field "merge"'):
        parse(text.replace("receive: a", "lose: a"))


def test_as_printed_in_H3_the_copy_of_the_sender_travels() -> None:
    schedule = of("{send: a, from: p1, to: [p1, p2]}", "{receive: a, at: p1}")
    result = played(schedule, "histories", "H3")
    assert happened(result) == ["p1 send a", "p1 receive a", "p1 deliver a"]
    assert result.events[0].to == ("p1", "p2")
    assert happened(played(schedule, "histories")) == ["p1 send a", "p1 deliver a"], "its own copy, at once"


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_messages_keep_the_names_of_the_file(protocol: str) -> None:
    names = ["question", "answer", "p1:1", "null", "ε", "two words", "7"]
    steps = [f"{{send: {json.dumps(name, ensure_ascii=False)}, from: p1, group: g1}}" for name in names]
    result = played(of(*steps, "drain", head=GROUPED), protocol)
    told = [e.message for e in result.events if e.kind == "send" and not e.control]
    assert told == names
    assert {e.message for e in result.events if e.kind == "deliver"} == set(names)
    for event in result.events:
        assert event.control == ("!" in (event.message or ""))


# ---------------------------------------------------------------- clocks


def test_a_tick_moves_one_clock_or_all() -> None:
    # With ε = δ = 1 a message stamped at 0 is due when the clock exceeds 2.
    head = "processes: [p1, p2, p3]\noptions: {epsilon: 1, delta: 1}"
    start = ("{send: a, from: p1, to: [p2, p3]}", "{receive: a, at: p2}", "{receive: a, at: p3}")
    assert not deliveries(played(of(*start, head=head), "merge"))
    assert not deliveries(played(of(*start, "{tick: 2}", head=head), "merge"))
    one = played(of(*start, "{tick: 3, at: p2}", head=head), "merge")
    assert deliveries(one) == {("p2", "a"): 1}
    both = played(of(*start, "{tick: 3}", head=head), "merge")
    assert deliveries(both) == {("p2", "a"): 1, ("p3", "a"): 1}


def test_a_clock_does_not_go_back() -> None:
    played(of("{tick: 5, at: p1}", "{tick: 5}", "{tick: 6, at: p1}"), "merge")
    with pytest.raises(BadInput, match="step 2: a clock that shows 5 cannot go to 4"):
        played(of("{tick: 5, at: p1}", "{tick: 4}"), "merge")


@pytest.mark.parametrize("protocol", [name for name, kind in PROTOCOLS.items() if not kind.clocked])
def test_a_protocol_without_a_clock_does_not_care_about_ticks(protocol: str) -> None:
    steps = ("{send: a, from: p1, group: g1}", "{receive: a, at: p2}", "drain")
    without = played(of(*steps, head=GROUPED), protocol)
    ticked = played(of(steps[0], "{tick: 9}", steps[1], "{tick: 3, at: p2}", "drain", head=GROUPED), protocol)
    assert happened(ticked) == happened(without)


# ---------------------------------------------------------------- null messages


@pytest.mark.parametrize("protocol", BLOCKS)
def test_a_null_message_goes_out_in_one_group_or_in_all(protocol: str) -> None:
    one = played(of("{null: p1, group: g2}", head=GROUPED), protocol)
    assert [(e.process, e.message, e.group, e.to, e.control) for e in one.events] == [
        ("p1", "p1!1", "g2", ("p2",), True)
    ]
    all_of_them = played(of("{null: p1}", head=GROUPED), protocol)
    assert [(e.message, e.group, e.to) for e in all_of_them.events] == [
        ("p1!1", "g1", ("p2", "p3")),
        ("p1!2", "g2", ("p2",)),
    ]
    assert happened(played(of("{null: p3}", head=GROUPED), protocol)) == ["p3 send p3!1"]


@pytest.mark.parametrize("protocol", BLOCKS)
def test_control_messages_are_received_by_their_names_and_never_delivered(protocol: str) -> None:
    steps = (
        "{null: p1}",
        '{receive: "p1!1", at: p3}',
        '{receive: "p1!2", at: p2}',
        '{receive: "p1!1", at: p2}',
    )
    result = played(of(*steps, head=GROUPED), protocol)
    assert happened(result) == [
        "p1 send p1!1",
        "p1 send p1!2",
        "p3 receive p1!1",
        "p2 receive p1!2",
        "p2 receive p1!1",
    ]
    assert all(event.control for event in result.events)
    for wrong in ('{receive: "p1!2", at: p3}', '{receive: "p1!3", at: p2}', '{receive: "p1!1", at: p3}'):
        with pytest.raises(BadInput, match="step 5: no copy of"):
            played(of(*steps, wrong, head=GROUPED), protocol)


def test_control_messages_can_be_lost_and_doubled() -> None:
    result = played(
        of(
            "{null: p1, group: g1}",
            '{lose: "p1!1", at: p2}',
            '{duplicate: "p1!1", at: p3}',
            '{receive: "p1!1", at: p3}',
            '{receive: "p1!1", at: p3}',
            head=GROUPED,
        ),
        "slow",
    )
    assert happened(result) == ["p1 send p1!1", "p3 receive p1!1", "p3 receive p1!1"]
    assert result.lost == {("p2", "p1!1")}


def test_the_extra_messages_of_bounded_are_control_messages_too() -> None:
    # p1 learns of more than k = 2 entries, and sends a message that lets it forget one.
    steps = (
        "{send: a, from: p3, to: [p2]}",
        "{send: b, from: p3, to: [p1]}",
        "{send: c, from: p1, to: [p3]}",
        "{send: d, from: p1, to: [p2]}",
        "{receive: b, at: p1}",
        "{receive: a, at: p2}",
        "{send: e, from: p1, to: [p3]}",
        "drain",
    )
    result = played(of(*steps, head="processes: [p1, p2, p3]\noptions: {k: 2}"), "bounded")
    names = [e.message for e in result.events if e.kind == "send" and e.control]
    assert names and all(re.fullmatch(r"p[123]!\d+", name or "") for name in names)
    assert not any(event.kind == "deliver" and event.control for event in result.events)


@pytest.mark.parametrize(
    "step",
    [
        "{null: p1, group: g2}",
        '{"null": p1, group: g2}',
        "{'null': p1, group: g2}",
        "null: p1\n    group: g2",
        "group: g2\n    null: p1",
    ],
)
def test_the_bare_key_null_works(step: str) -> None:
    assert happened(played(of(step, head=GROUPED), "relative")) == ["p1 send p1!1"]


def test_the_bare_key_null_works_in_files(tmp_path: Path) -> None:
    (tmp_path / "bare.yaml").write_text(f"{GROUPED}\nsteps:\n  - {{null: p1}}\n  - null: p2\n")
    (tmp_path / "quoted.json").write_text(
        '{"processes": ["p1", "p2", "p3"], "groups": {"g1": ["p1", "p2", "p3"], "g2": ["p1", "p2"]}, '
        '"steps": [{"null": "p1"}, {"null": "p2"}]}'
    )
    assert read_schedule(tmp_path / "bare.yaml") == read_schedule(tmp_path / "quoted.json")


# ---------------------------------------------------------------- faults


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_duplicate_is_received_twice_and_delivered_once(protocol: str) -> None:
    steps = ("{send: a, from: p1, group: g1}", "{duplicate: a, at: p2}", "{duplicate: a, at: p2}")
    result = played(of(*steps, "{receive: a, at: p2}", "drain", head=GROUPED), protocol)
    assert happened(result).count("p2 receive a") == 3
    assert deliveries(result) == {("p2", "a"): 1, ("p3", "a"): 1}
    late = ("{receive: a, at: p2}", "drain", "{send: b, from: p1, group: g1}", "drain")
    assert deliveries(played(of(steps[0], steps[1], *late, head=GROUPED), protocol))["p2", "a"] == 1


def test_a_duplicate_is_one_more_copy_and_no_more() -> None:
    steps = ("{send: a, from: p1, to: [p2]}", "{duplicate: a, at: p2}")
    twice = ("{receive: a, at: p2}", "{receive: a, at: p2}")
    played(of(*steps, *twice), "none")
    with pytest.raises(BadInput, match='step 5: no copy of "a"'):
        of(*steps, *twice, "{receive: a, at: p2}")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_lost_message_is_never_delivered(protocol: str) -> None:
    schedule = of("{send: a, from: p1, group: g1}", "{lose: a, at: p2}", "drain", head=GROUPED)
    result = played(schedule, protocol)
    assert "p2 receive a" not in happened(result)
    assert ("p2", "a") not in deliveries(result)
    assert result.lost == {("p2", "a")}
    assert not judge(result.events, lost=result.lost).violations


def test_where_one_of_two_copies_is_lost_the_other_is_delivered() -> None:
    result = played(
        of("{send: a, from: p1, to: [p2]}", "{duplicate: a, at: p2}", "{lose: a, at: p2}", "drain"), "matrix"
    )
    assert deliveries(result) == {("p2", "a"): 1}


def test_a_process_that_waits_for_a_lost_message_is_not_blamed() -> None:
    steps = ("{send: a, from: p1, to: [p2]}", "{lose: a, at: p2}", "{send: b, from: p1, to: [p2]}")
    result = played(of(*steps, "drain"), "matrix")
    assert not result.stuck
    assert result.lost == {("p2", "a")}
    assert [line.partition(":")[0] for line in result.held] == ["p2 holds b"]


def test_damage_is_drawn_from_its_seed() -> None:
    def damaged(seed: str) -> Schedule:
        return of(
            "{send: a, from: p1, to: [p2]}",
            f"{{corrupt: a, at: p2{seed}}}",
            "{receive: a, at: p2}",
            f"{{corrupt: p2{seed}}}",
            "{send: b, from: p2, to: [p3]}",
            "drain",
        )

    def outcome(seed: str) -> list[tuple[Any, ...]]:
        result = played(damaged(seed), "merge", epsilon=3, delta=3)
        return [(e.process, e.kind, e.message, e.text, e.time, e.stamp_bytes) for e in result.events]

    assert outcome(", seed: 4") == outcome(", seed: 4")
    assert outcome("") == outcome(", seed: 0")
    assert len({tuple(outcome(f", seed: {seed}")) for seed in range(20)}) > 1
    assert ("p2", "local", None, "state damaged", 4, None) in outcome("")


def test_damage_to_one_copy_leaves_the_others_alone() -> None:
    steps = ("{send: a, from: p1, to: [p2, p3]}", "{corrupt: a, at: p2, seed: 1}", "drain")
    for seed in range(10):
        result = played(of(steps[0], f"{{corrupt: a, at: p2, seed: {seed}}}", steps[2]), "merge")
        assert deliveries(result)["p3", "a"] == 1


@pytest.mark.parametrize("protocol", [name for name, kind in PROTOCOLS.items() if not kind.PROMISES.loss])
def test_only_who_claims_to_recover_is_damaged(protocol: str) -> None:
    send = "{send: a, from: p1, group: g1}"
    with pytest.raises(BadInput, match=f"step 2: {protocol} does not claim"):
        played(of(send, "{corrupt: a, at: p2}", head=GROUPED), protocol)
    with pytest.raises(BadInput, match=f"step 1: {protocol} does not claim"):
        played(of("{corrupt: p1}", head=GROUPED), protocol)


def test_what_comes_too_late_for_the_merge_counts_as_lost() -> None:
    # p3's clock is past all that G1 and G2 leave to a, which b follows.
    result = played(
        of(
            "{send: a, from: p1, to: [p2, p3]}",
            "{receive: a, at: p2}",
            "{tick: 20}",
            "{send: b, from: p2, to: [p3]}",
            "{receive: b, at: p3}",
            "{receive: a, at: p3}",
            "drain",
        ),
        "merge",
    )
    assert deliveries(result) == {("p2", "a"): 1, ("p3", "b"): 1}
    assert ("p3", "a") in result.lost
    assert not judge(result.events, lost=result.lost, receptions_teach=True).violations


# ---------------------------------------------------------------- drain


def test_drain_receives_by_step_of_sending_then_sender_then_target() -> None:
    schedule = of(
        "{send: b, from: p2, to: [p3, p1]}",
        "{send: a, from: p1, to: [p3, p2]}",
        "{receive: a, at: p3}",
        "drain",
    )
    assert [line for line in happened(played(schedule, "none")) if "receive" in line] == [
        "p3 receive a",
        "p1 receive b",
        "p3 receive b",
        "p2 receive a",
    ]


def test_drain_goes_by_the_order_of_the_file_not_of_names() -> None:
    head = "processes: [z, a, m]"
    schedule = of("{send: x, from: a, to: [m, z]}", "{send: y, from: z, to: [a, m]}", "drain", head=head)
    received = [line for line in happened(played(schedule, "none")) if "receive" in line]
    assert received == ["z receive x", "m receive x", "a receive y", "m receive y"]


def test_drain_sends_null_rounds_in_the_order_of_the_processes() -> None:
    head = "processes: [z, a, m]\ngroups: {g1: [a, m, z]}"
    steps = ("{send: x, from: a, group: g1}", "{send: y, from: a, group: g1}", "drain")
    result = played(of(*steps, head=head), "slow")
    nulls = [event.process for event in result.events if event.kind == "send" and event.control]
    assert result.rounds >= 1
    assert nulls == ["z", "a", "m"] * result.rounds
    assert len(deliveries(result)) == 4


def test_drain_ticks_all_clocks_until_nothing_is_held() -> None:
    head = "processes: [p1, p2, p3]\noptions: {epsilon: 1, delta: 4}"
    result = played(of("{tick: 10}", "{send: a, from: p1, to: [p2, p3]}", "drain", head=head), "merge")
    # Stamped at 10, delivered when the clock exceeds 10 + 4 + 1.
    assert result.rounds == 6
    assert deliveries(result) == {("p2", "a"): 1, ("p3", "a"): 1}


def test_drain_needs_no_rounds_where_nothing_is_held() -> None:
    for protocol in PROTOCOLS:
        assert played(of("drain", "drain", head=GROUPED), protocol).rounds == 0
    assert played(of("{send: a, from: p1, to: [p2]}", "drain"), "matrix").rounds == 0


def test_drain_gives_up_after_a_thousand_rounds() -> None:
    head = "processes: [p1, p2]\ngroups: {g1: [p1, p2]}"
    steps = ("{send: a, from: p1, group: g1}", "{lose: a, at: p2}", "{send: b, from: p1, group: g1}", "drain")
    result = played(of(*steps, head=head), "slow")
    assert result.rounds == ROUNDS == 1000
    assert result.held


@pytest.mark.parametrize("protocol", CAUSAL)
def test_drain_ends_with_everything_delivered(protocol: str) -> None:
    steps = [f"{{send: m{n}, from: p{1 + n % 3}, group: g1}}" for n in range(6)]
    result = played(of(*steps[:3], "{receive: m0, at: p2}", *steps[3:], "drain", head=GROUPED), protocol)
    assert not result.held
    assert result.under_way == ()
    assert len(deliveries(result)) == 12
    assert judge(result.events).status == "valid"


# ---------------------------------------------------------------- the design's own example

DESIGN = """
processes: [p1, p2, p3]
groups: {g1: [p1, p2, p3]}            # optional
links: [[p1, p2], [p2, p3]]           # optional; default: everyone with everyone
separators: [{members: [p2], forward: [p3], backward: [p1]}]   # optional
options: {k: 9, epsilon: 2, delta: 10}                          # optional, the protocol's own
steps:
  - {send: a, from: p1, to: [p2, p3]}   # or group: g1
  - {receive: a, at: p3}
  - {tick: 5, at: p1}                   # p1's clock now shows 5; without `at`, everyone's
  - {null: p1, group: g1}               # a null message now; without group, in all of p1's groups
  - {receive: "p1!1", at: p2}           # control messages are called process!number
  - {lose: a, at: p2}                   # also {duplicate: a, at: p2}, {corrupt: p1} and {corrupt: a, at: p2}
  - drain
"""


@pytest.mark.parametrize("protocol", BLOCKS)
def test_the_example_of_the_design_replays(tmp_path: Path, protocol: str) -> None:
    (tmp_path / "design.yaml").write_text(DESIGN)
    schedule = read_schedule(tmp_path / "design.yaml")
    assert schedule == parse(DESIGN)
    assert schedule.options == {"k": 9, "epsilon": 2, "delta": 10}
    told = happened(played(schedule, protocol))
    assert told[:5] == ["p1 send a", "p3 receive a", "p3 deliver a", "p1 send p1!1", "p2 receive p1!1"]
    assert "p2 receive a" not in told


# ---------------------------------------------------------------- written and read back

NAMES = st.one_of(
    st.sampled_from(
        ["p1", "p2", "null", "true", "no", "1", "1.5", "~", "drain", "a: b", "- x", "{", "#", "ε", "p!1"]
    ),
    st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=1, max_size=6).filter(
        lambda name: bool(name.strip())
    ),
)
MESSAGES = NAMES.filter(lambda name: "!" not in name)
CONTROL = st.builds(lambda name, number: f"{name}!{number}", NAMES, st.integers(1, 9))
VALUES = st.one_of(
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False),
    NAMES,
    st.lists(st.integers(), max_size=3),
)


Copy = tuple[str, str]
"""A message and one of its targets."""


@st.composite
def plain_schedules(draw: st.DrawFn, *, replayable: bool = False) -> dict[str, Any]:
    """A schedule as a plain value, over 2 to 4 processes with groups.

    One that is replayable sends to everybody, has a group of everybody, and no step that only some
    protocols know.
    """
    processes = draw(st.lists(NAMES, min_size=2, max_size=4, unique=True))
    plain: dict[str, Any] = {"processes": processes}
    if replayable:
        plain["groups"] = {"everybody": processes}
    else:
        plain |= draw(st.fixed_dictionaries({}, optional=surroundings(processes)))
    unused = draw(st.lists(MESSAGES, min_size=1, max_size=6, unique=True))
    under_way: list[Copy] = []
    steps: list[Any] = []
    for _ in range(draw(st.integers(1, 15))):
        kinds = ["send"] * bool(unused) + ["receive", "receive", "lose", "duplicate"] * bool(under_way)
        kinds += [] if replayable else ["tick", "null", "corrupt", "control", "drain"]
        kind = draw(st.sampled_from(kinds or ["drain"]))
        if kind == "send":
            steps.append(a_send(draw, plain, unused.pop(), under_way, everybody=replayable))
        elif kind in ("receive", "lose", "duplicate"):
            copy = draw(st.sampled_from(under_way))
            if kind == "duplicate":
                under_way.append(copy)
            else:
                under_way.remove(copy)
            steps.append({kind: copy[0], "at": copy[1]})
        else:
            steps.append(another_step(draw, plain, kind, under_way))
    return plain | {"steps": [*steps, "drain"] if replayable else steps}


def surroundings(processes: list[str]) -> dict[str, st.SearchStrategy[Any]]:
    some = st.sampled_from(processes)
    link = st.lists(some, min_size=2, max_size=2, unique=True)
    return {
        "groups": st.dictionaries(NAMES, st.lists(some, min_size=2, unique=True), max_size=3),
        "links": st.lists(link, max_size=4),
        "options": st.dictionaries(st.sampled_from(OPTION_NAMES), VALUES, max_size=3),
    }


def groups_with(plain: dict[str, Any], process: str) -> list[str]:
    return [name for name, inside in plain.get("groups", {}).items() if process in inside]


def a_send(
    draw: st.DrawFn, plain: dict[str, Any], name: str, under_way: list[Copy], *, everybody: bool
) -> dict[str, Any]:
    sender = draw(st.sampled_from(plain["processes"]))
    others = [p for p in plain["processes"] if p != sender]
    mine = groups_with(plain, sender)
    to: dict[str, Any]
    if draw(st.booleans()) and mine:
        group = draw(st.sampled_from(mine))
        to, targets = {"group": group}, [p for p in plain["groups"][group] if p != sender]
    else:
        targets = others if everybody else draw(st.lists(st.sampled_from(plain["processes"]), unique=True))
        targets = others if targets in ([], [sender]) else targets
        to = {"to": targets}
    under_way += [(name, target) for target in targets]
    return {"send": name, "from": sender, **to}


def another_step(draw: st.DrawFn, plain: dict[str, Any], kind: str, under_way: list[Copy]) -> Any:
    process = draw(st.sampled_from(plain["processes"]))
    more = draw(st.booleans())
    if kind == "tick":
        return {"tick": draw(st.integers(0, 2**62 - 1))} | ({"at": process} if more else {})
    if kind == "null":
        mine = groups_with(plain, process)
        return {"null": process} | ({"group": draw(st.sampled_from(mine))} if more and mine else {})
    if kind == "control":
        return {draw(st.sampled_from(["receive", "lose", "duplicate"])): draw(CONTROL), "at": process}
    if kind == "corrupt":
        seed = {"seed": draw(st.integers(0, 9))} if draw(st.booleans()) else {}
        if more and under_way:
            name, target = draw(st.sampled_from(under_way))
            return {"corrupt": name, "at": target, **seed}
        return {"corrupt": process, **seed}
    return "drain"


def shown(schedule: Schedule) -> tuple[Any, ...]:
    """Schedules hold plain values in their options, which 1 == True would make equal."""
    return schedule.system, schedule.steps, repr(schedule.options)


@given(plain_schedules())
@settings(max_examples=150, deadline=None)
def test_what_is_written_is_read_back(plain: dict[str, Any]) -> None:
    schedule = schedule_of(plain)
    assert shown(parse(write_schedule(schedule))) == shown(schedule)
    assert shown(schedule_of(yaml.safe_load(write_schedule(schedule)))) == shown(schedule)
    assert len(schedule.steps) == len(plain["steps"])


@given(plain_schedules())
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_files_in_yaml_and_json_are_read_back(tmp_path: Path, plain: dict[str, Any]) -> None:
    schedule = schedule_of(plain)
    (tmp_path / "schedule.yaml").write_text(write_schedule(schedule), encoding="utf-8")
    (tmp_path / "schedule.json").write_text(
        json.dumps(yaml.safe_load(write_schedule(schedule))), encoding="utf-8"
    )
    assert shown(read_schedule(tmp_path / "schedule.yaml")) == shown(schedule)
    assert shown(read_schedule(tmp_path / "schedule.json")) == shown(schedule)


@given(plain_schedules())
@settings(max_examples=50, deadline=None)
def test_one_step_stands_on_one_line(plain: dict[str, Any]) -> None:
    lines = write_schedule(schedule_of(plain)).splitlines()
    assert sum(line.startswith("  - ") for line in lines) == len(plain["steps"])


def test_control_characters_in_names_are_read_back() -> None:
    for name in ("a\nb", "a\tb", "\u2028", "\x85x", "\x07", "\ufeffa", "a\\b", '"', "'", "a" * 1000):
        plain = {"processes": ["p1", name + "!"], "steps": [{"send": name, "from": "p1", "to": [name + "!"]}]}
        schedule = schedule_of(plain)
        assert parse(write_schedule(schedule)) == schedule


# ---------------------------------------------------------------- any schedule, every protocol


@given(plain_schedules(replayable=True), st.sampled_from(list(PROTOCOLS)))
@settings(max_examples=200, deadline=None)
def test_any_schedule_replays_under_any_protocol(plain: dict[str, Any], protocol: str) -> None:
    schedule = schedule_of(plain)
    result = played(schedule, protocol)
    sent: dict[str, str] = {}
    targets: dict[str, set[str]] = {}
    copies: Counter[tuple[str, str]] = Counter()
    for step in plain["steps"]:
        if not isinstance(step, Mapping):
            continue
        if "send" in step:
            sent[step["send"]] = step["from"]
            targets[step["send"]] = set(plain["processes"]) - {step["from"]}
            copies.update((target, step["send"]) for target in targets[step["send"]])
        elif "lose" in step:
            copies[step["at"], step["lose"]] -= 1
        elif "duplicate" in step:
            copies[step["at"], step["duplicate"]] += 1
    # The names and targets of the file appear in the trace, and no others.
    told = {
        e.message: (e.process, set(e.to or ())) for e in result.events if e.kind == "send" and not e.control
    }
    assert told == {name: (sent[name], targets[name]) for name in sent}
    # Each copy is received that was not lost, and delivered once at most.
    received = Counter((e.process, e.message) for e in result.events if e.kind == "receive" and not e.control)
    assert received == +copies
    assert all(count == 1 for count in deliveries(result).values())
    if protocol != "piggyback":  # which brings messages along with others
        assert deliveries(result).keys() <= received.keys()
    # Nothing is left but what waits for something lost.
    lost = {pair for pair in copies if not copies[pair]}
    assert lost <= result.lost
    kind = PROTOCOLS[protocol]
    verdict = judge(result.events, lost=lost, receptions_teach=kind.hears)
    if kind.PROMISES.causal:
        assert not verdict.violations
    if not lost:
        assert not result.held
        assert not verdict.undelivered
    if protocol in LOSSLESS and not result.held:
        assert not verdict.undelivered
    assert not (verdict.duplicates or verdict.strangers or verdict.unsent or verdict.gaps)


# ---------------------------------------------------------------- anything at all

WORDS = st.sampled_from(
    [
        *("processes", "groups", "links", "separators", "options", "steps", "members", "forward", "backward"),
        *(
            "send",
            "receive",
            "lose",
            "duplicate",
            "tick",
            "null",
            "corrupt",
            "from",
            "to",
            "at",
            "group",
            "seed",
        ),
        *("drain", "p1", "p2", "p3", "g1", "a", "b", "p1!1", "!", "k", "epsilon", "silence", "r9", "variant"),
    ]
)
KEYS = st.one_of(WORDS, st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3))
ANYTHING = st.recursive(
    st.one_of(KEYS, st.binary(max_size=3), st.dates(), st.sampled_from([10**400, -1, 0, 2**62, 1e400])),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(KEYS, inner, max_size=4)),
    max_leaves=12,
)
STEPS = st.one_of(
    st.fixed_dictionaries(
        {},
        optional=dict.fromkeys(("send", "from", "to", "group"), st.one_of(WORDS, st.lists(WORDS), ANYTHING)),
    ),
    st.fixed_dictionaries(
        {},
        optional=dict.fromkeys(
            ("receive", "lose", "duplicate", "tick", "null", "corrupt", "at", "seed", "group"),
            st.one_of(WORDS, ANYTHING),
        ),
    ),
    ANYTHING,
)
NEARLY = st.fixed_dictionaries(
    {
        "processes": st.one_of(st.just(["p1", "p2", "p3"]), ANYTHING),
        "steps": st.one_of(st.lists(STEPS, max_size=4), ANYTHING),
    },
    optional={
        "groups": st.one_of(st.just({"g1": ["p1", "p2"]}), ANYTHING),
        "links": st.one_of(st.just([["p1", "p2"]]), ANYTHING),
        "separators": ANYTHING,
        "options": st.one_of(st.dictionaries(KEYS, ANYTHING, max_size=3), ANYTHING),
    },
)


def refused_or_replayed(make: Any) -> None:
    """Makes a schedule and replays it under every protocol; only errors on purpose may come."""
    try:
        schedule = make()
    except BadInput as error:
        assert str(error)
        return
    for protocol in PROTOCOLS:
        try:
            result = played(schedule, protocol)
        except CausetError as error:
            assert str(error)
            continue
        judge(result.events, lost=result.lost)


@given(st.one_of(ANYTHING, NEARLY))
@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_plain_value_is_a_schedule_or_bad_input(value: object) -> None:
    refused_or_replayed(lambda: schedule_of(value))


@given(plain_schedules(), st.data())
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_schedule_with_one_thing_changed_is_a_schedule_or_bad_input(
    plain: dict[str, Any], data: st.DataObject
) -> None:
    # Down into the value, and something else in the place where we end.
    at: Any = plain
    while True:
        keys = list(at) if isinstance(at, dict) else list(range(len(at)))
        key = data.draw(st.sampled_from(keys))
        if not isinstance(at[key], dict | list) or not at[key] or data.draw(st.booleans()):
            break
        at = at[key]
    if data.draw(st.booleans()):
        del at[key]
    else:
        at[key] = data.draw(st.one_of(ANYTHING, STEPS))
    refused_or_replayed(lambda: schedule_of(plain))


@given(
    st.one_of(
        st.binary(max_size=60), st.text(max_size=60).map(str.encode), ANYTHING.map(repr).map(str.encode)
    )
)
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_file_is_a_schedule_or_bad_input(tmp_path: Path, content: bytes) -> None:
    for name in ("any.yaml", "any.json"):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(BadInput, match=re.escape(str(tmp_path / name))):
            read_schedule(tmp_path / name)


def test_a_schedule_has_a_million_steps_at_most() -> None:
    plain: dict[str, Any] = {"processes": ["p1", "p2"], "steps": ["drain"] * 1_000_001}
    with pytest.raises(BadInput, match="1000001 steps, more than 1000000"):
        schedule_of(plain)

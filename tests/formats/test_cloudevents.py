"""CloudEvents in and out: causes by id or by number; a trace as messages, one group per target."""

from __future__ import annotations

import json
import os
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from causet.errors import BadInput, Problem
from causet.formats import cloudevents, messages
from causet.formats.cloudevents import read_cloudevents
from causet.formats.execution import GAP, TWICE, UNKNOWN_PARENT, Execution
from causet.formats.messages import messages_of, write_cloudevents
from causet.formats.times import nanos_of
from causet.formats.trace import read_trace, write_trace
from causet.model import Event
from causet.stamp import Stamper, canonical, frontier_of
from tests.helpers.precedence import check_messages_of, check_read_again


def event(source: str, id: str, **more: Any) -> dict[str, Any]:
    return {"specversion": "1.0", "type": "t", "source": source, "id": id, **more}


def read(folder: Path, *events: object, **options: str) -> Execution:
    path = folder / "events.jsonl"
    path.write_text("".join(f"{json.dumps(each)}\n" for each in events), encoding="utf-8")
    return read_cloudevents([path], **options)


def refusal(folder: Path, *events: object, **options: str) -> str:
    with pytest.raises(BadInput) as refused:
        read(folder, *events, **options)
    assert "\n" not in str(refused.value)
    return str(refused.value).replace(f"{folder}{os.sep}", "")


def told(execution: Execution) -> list[tuple[str, int, str, tuple[str, ...]]]:
    return [(each.process, each.seq, each.id, each.parents) for each in execution.events]


# ---------------------------------------------------------------- reading


def test_messages_of_incomplete_orders_are_told_apart(tmp_path: Path) -> None:
    """Numbers run per scope, group and priority: each message is the first of its kind, and its causes are
    what its past names of its own scope. What is past the order has none, and is none."""
    shop, bank = Stamper("shop", "g", run="1"), Stamper("bank", "g", run="1")
    sent = [
        shop.stamp(id="plain"),
        shop.stamp(id="urgent", priority=2),
        shop.stamp(id="scoped", scope="2"),
        shop.stamp(id="alarm", bypass=True),
    ]
    for each in sent:
        bank.saw(each)
    answers = [
        bank.stamp(id="to both"),
        bank.stamp(id="to scoped", scope="2", priority=2),
        bank.stamp(id="past", bypass=True),
    ]
    execution = read(tmp_path, *sent, *answers)
    assert execution.faults == ()
    assert sorted(told(execution)) == [
        ("bank~1", 1, "bank/to both", ("shop/plain", "shop/urgent")),
        ("bank~1", 2, "bank/to scoped", ("shop/scoped",)),
        ("bank~1", 3, "bank/past", ()),
        ("shop~1", 1, "shop/plain", ()),
        ("shop~1", 2, "shop/urgent", ()),
        ("shop~1", 3, "shop/scoped", ()),
        ("shop~1", 4, "shop/alarm", ()),
    ]
    said = refusal(tmp_path, {**sent[3], "causalscope": "a"})
    assert said.endswith("a message that bypasses the order cannot have causalscope")


def test_a_process_whose_name_no_group_can_have_cannot_be_written_to(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"the name of a group cannot have the character U\+001F"):
        write_cloudevents(tmp_path / "m.jsonl", [Event("p", 1, "send", message="a", to=("q\x1f2",))])


def test_causes_are_named_by_id(tmp_path: Path) -> None:
    execution = read(
        tmp_path,
        event("/orders", "1"),
        event("/mail", "2", causationid="1"),
        event("/mail", "3", causationid="2"),
        event("/orders", "4", causationid="/mail/3"),
        event("/orders", "5", causationid=""),
    )
    assert told(execution) == [
        ("/orders", 1, "/orders/1", ()),
        ("/mail", 1, "/mail/2", ("/orders/1",)),
        ("/mail", 2, "/mail/3", ()),  # what stands before it in its own process is no parent
        ("/orders", 2, "/orders/4", ("/mail/3",)),
        ("/orders", 3, "/orders/5", ()),
    ]
    assert execution.faults == ()
    assert (execution.edges, execution.with_cause) == (2, 2)


def test_the_field_of_the_parent_can_be_named_and_be_a_list(tmp_path: Path) -> None:
    events = [event("a", "1"), event("b", "1"), event("c", "2", follows=["a/1", "b/1", "a/1"])]
    assert told(read(tmp_path, *events, parent="follows"))[2] == ("c", 1, "c/2", ("a/1", "b/1"))
    assert told(read(tmp_path, *events))[2] == ("c", 1, "c/2", ())


def test_an_id_of_several_sources_must_come_with_its_source(tmp_path: Path) -> None:
    events = [event("a", "1"), event("b", "1")]
    assert refusal(tmp_path, *events, event("c", "2", causationid="1")) == (
        'events.jsonl, line 3: the parent "1" may be "a/1", "b/1"; give it with its source'
    )
    assert told(read(tmp_path, *events, event("c", "2", causationid="b/1")))[2][3] == ("b/1",)
    # A source and an id may also be somebody's whole id.
    both = [event("a", "1"), event("b", "a/1"), event("c", "2", causationid="a/1")]
    assert "may be" in refusal(tmp_path, *both)


def test_attributes_and_data_are_kept_and_the_time_is_exact(tmp_path: Path) -> None:
    (one,) = read(
        tmp_path,
        event(
            "a", "1", time="2024-02-29T12:00:00.123456789+02:00", subject="s", to="x", data={"n": [1, None]}
        ),
    ).events
    assert one == Event(
        "a",
        1,
        id="a/1",
        time=1709200800123456789,
        text="t",
        extra={"subject": "s", "to_": "x", "data": {"n": [1, None]}},
    )


def test_sequence_is_the_place_in_the_source_where_it_is_a_number(tmp_path: Path) -> None:
    numbered = read(
        tmp_path,
        event("a", "x", sequence="00000000000000000002"),
        event("a", "y", sequence=1),
        event("b", "z"),
    )
    assert [place[:3] for place in told(numbered)] == [("a", 2, "a/x"), ("a", 1, "a/y"), ("b", 1, "b/z")]
    from_zero = read(tmp_path, event("a", "x", sequence="1"), event("a", "y", sequence="0"))
    assert [place[1] for place in told(from_zero)] == [2, 1]
    words = read(tmp_path, event("a", "x", sequence="9"), event("a", "y", sequence="later"))
    assert [place[1] for place in told(words)] == [1, 2]
    assert refusal(tmp_path, event("a", "x", sequence="5"), event("a", "y", sequence="5")) == (
        'events.jsonl, line 1 and events.jsonl, line 2: two events have process "a" and seq 5'
    )


def test_dependencies_count_per_source(tmp_path: Path) -> None:
    execution = read(
        tmp_path,
        event("b", "3", sequence="1", causaldeps='{"a":2}'),
        event("a", "1", sequence="1", causaldeps="{}"),
        event("a", "2", sequence="2", causaldeps={"a": 1}),
    )
    assert told(execution) == [
        ("b", 1, "b/3", ("a/2",)),
        ("a", 1, "a/1", ()),
        ("a", 2, "a/2", ()),
    ]
    assert execution.faults == ()


def test_dependencies_stay_inside_their_domain(tmp_path: Path) -> None:
    events = [
        event("a", "1", sequence="1", causaldeps="{}", receiver="x"),
        event("a", "2", sequence="1", causaldeps="{}", receiver="y"),
        event("b", "3", sequence="1", causaldeps='{"a":1}', receiver="y"),
    ]
    assert told(read(tmp_path, *events)) == [
        ("a>x", 1, "a/1", ()),
        ("a>y", 1, "a/2", ()),
        ("b>y", 1, "b/3", ("a/2",)),
    ]
    # One domain is none.
    assert [place[0] for place in told(read(tmp_path, *events[1:]))] == ["a", "b"]
    renamed = [{**each, "topic": each["receiver"], "receiver": None} for each in events]
    assert told(read(tmp_path, *renamed, domain="topic"))[2][0] == "b>y"


def test_what_is_missing_is_a_log_fault(tmp_path: Path) -> None:
    execution = read(
        tmp_path,
        event("a", "1", sequence="1", causationid="nobody"),
        event("a", "2", sequence="3", causaldeps='{"b":7}'),
        event("a", "1", sequence="1", causationid="nobody"),
    )
    found = {
        fault.kind: (fault.count, fault.places[0].replace(f"{tmp_path}{os.sep}", ""))
        for fault in execution.faults
    }
    assert found == {
        TWICE: (1, 'events.jsonl, line 3: the event "a/1", already in events.jsonl, line 1'),
        GAP: (1, 'events.jsonl, line 2: "a" jumps from 1 to 3'),
        UNKNOWN_PARENT: (2, 'events.jsonl, line 1: "a/1" names "nobody"'),
    }
    assert told(execution)[1][3] == ("b#7",)


def test_batches_lines_and_single_events_in_several_files(tmp_path: Path) -> None:
    one, two = event("a", "1"), event("b", "2", causationid="1")
    expected = told(read(tmp_path, one, two))
    (tmp_path / "batch.json").write_text(json.dumps([one, two], indent=1))
    (tmp_path / "one.json").write_text(json.dumps(one, indent=1))
    (tmp_path / "two.json").write_text(json.dumps([two]))
    assert told(read_cloudevents([tmp_path / "batch.json"])) == expected
    assert told(read_cloudevents([tmp_path / "one.json", tmp_path / "two.json"])) == expected


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ([1], "each entry must be an object with the fields of one event, not 1"),
        ({"id": "1"}, 'field "source" must be a string that is not empty, not null'),
        ({"source": "a", "id": ""}, 'field "id" must be a string that is not empty, not ""'),
        (event("a", "1") | {"id": 5}, 'field "id" must be a string that is not empty, not 5'),
        (event("a", "1") | {"specversion": "2.0"}, 'field "specversion" must be "1.0", not "2.0"'),
        (event("a", "1", time="yesterday"), 'field "time": "yesterday" is not a time such as'),
        (event("a", "1", time=7), 'field "time" must be a string, not 7'),
        (event("a", "1", causationid=7), 'field "causationid" must be an id or a list of ids, not 7'),
        (event("a", "1", causationid=[""]), 'field "causationid" must be an id or a list of ids'),
        (
            event("a", "1", causaldeps='{"b":1}'),
            'field "causaldeps" needs a field "sequence" that is a number',
        ),
        (event("a", "1", sequence="1", causaldeps="{"), 'field "causaldeps": this is not JSON'),
        (event("a", "1", sequence="1", causaldeps="[1]"), "must be an object of process and sequence"),
        (event("a", "1", sequence="1", causaldeps='{"b":-1}'), "must be an object of process and sequence"),
        (event("a", "1", sequence="1", causaldeps='{"b":true}'), "must be an object of process and sequence"),
        (event("a", "1", receiver=1), 'field "receiver" must be a string, not 1'),
        (event("ok", "1", subject="other"), 'another event "ok/1" is in'),
    ],
)
def test_what_is_no_cloudevent_is_refused_with_its_line(bad: object, said: str, tmp_path: Path) -> None:
    refused = refusal(tmp_path, event("ok", "1"), bad)
    assert refused.startswith("events.jsonl, line 2: ")
    assert said in refused


def test_an_event_that_depends_on_itself_is_a_cycle(tmp_path: Path) -> None:
    assert "has a cycle" in refusal(tmp_path, event("a", "1", causationid="1"))
    ahead = [event("a", "1", sequence="1", causaldeps='{"a":2}'), event("a", "2", sequence="2")]
    assert "has a cycle" in refusal(tmp_path, *ahead)
    unnumbered = [event("a", "1", sequence="1", causaldeps='{"b":1}'), event("a", "2")]
    assert 'another event of "a" has no sequence that is a number' in refusal(tmp_path, *unnumbered)


# ---------------------------------------------------------------- times


@pytest.mark.parametrize(
    ("text", "nanos"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T00:00:00.000000001z", 1),
        ("1969-12-31T23:59:59.999999999Z", -1),
        ("2024-02-29t00:00:00-23:59", 1709164800 * 10**9 + (23 * 3600 + 59 * 60) * 10**9),
        ("2016-12-31T23:59:60Z", 1483228800 * 10**9),
        ("2024-01-01 00:00:00.100000000000Z", 1704067200100000000),
    ],
)
def test_times_are_nanoseconds_exactly(text: str, nanos: int) -> None:
    assert nanos_of(text) == nanos


@pytest.mark.parametrize(
    "text",
    [
        *("", "2024-01-01", "2024-01-01T00:00:00", "2024-02-30T00:00:00Z", "2024-01-01T24:00:00Z"),
        *(
            "2024-01-01T00:60:00Z",
            "2024-01-01T00:00:61Z",
            "2024-01-01T00:00:00.1234567891Z",
            "0000-01-01T00:00:00Z",
        ),
        *(
            "2300-01-01T00:00:00Z",
            "2024-01-01T00:00:00+24:00",
            "٢٠٢٤-01-01T00:00:00Z",
            "2024-01-01T00:00:00Z\n",
        ),
    ],
)
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(Problem):
        nanos_of(text)


# ---------------------------------------------------------------- a trace as messages


def test_a_trace_becomes_messages_whose_targets_are_groups() -> None:
    events = [
        Event("p1", 1, "send", message="a", to=("p2", "p3")),
        Event("p2", 1, "receive", message="a"),
        Event("p2", 2, "deliver", message="a"),
        Event("p2", 3, "send", message="b", to=("p3",), text="re: a", time=7, extra={"n": 1}),
        Event("p1", 2, "send", message="c", to=("p3",)),
        Event("p1", 3, "send", message="d", to=()),
    ]
    found = list(messages_of(events))
    assert [(each["source"], each["id"], each["causalgroups"], *frontier_of(each)) for each in found] == [
        ("p1", "a", '["p2","p3"]', {"p2": 1, "p3": 1}, {}),
        ("p2", "b", '["p3"]', {"p3": 1}, {"p2": {"p1": 1}, "p3": {"p1": 1}}),
        ("p1", "c", '["p3"]', {"p3": 2}, {"p2": {"p1": 1}, "p3": {"p1": 1}}),
    ]
    assert found[1] == {
        "specversion": "1.0",
        "type": "causet.message",
        "source": "p2",
        "id": "b",
        "subject": "b",
        "causalversion": 2,
        "causalgroups": '["p3"]',
        "causalnumbers": '{"p3":1}',
        "sequence": "00000000000000000001",
        "causaldeps": '{"p2":{"p1":1},"p3":{"p1":1}}',
        "data": {"time": 7, "text": "re: a", "n": 1},
    }
    assert "sequence" not in found[0]


def test_precedence_goes_through_deliveries_and_through_others_messages() -> None:
    def deps(*events: Event) -> list[dict[str, int]]:
        found = [frontier_of(each) for each in messages_of(events)]
        return [past.get("r", {}) for numbers, past in found if "r" in numbers]

    first = Event("p", 1, "send", message="a", to=("r",))
    told_q = Event("p", 2, "send", message="b", to=("q",))
    answer = Event("q", 2, "send", message="c", to=("r",))
    # q was told by a message that r never sees; that a comes before c holds all the same.
    assert deps(first, told_q, Event("q", 1, "deliver", message="b"), answer) == [{}, {"p": 1}]
    # A reception teaches nothing, nor does a control message, nor a parent.
    assert deps(first, told_q, Event("q", 1, "receive", message="b"), answer) == [{}, {}]
    silent = Event("p", 2, "send", message="b", to=("q",), control=True)
    assert deps(first, silent, Event("q", 1, "deliver", message="b", control=True), answer) == [{}, {}]
    assert deps(first, Event("q", 1, parents=("p#1",)), answer) == [{}, {}]
    # Control messages are no messages, and a sender's own copy is none either.
    assert deps(Event("p", 1, "send", message="a", to=("r",), control=True)) == []
    assert deps(Event("r", 1, "send", message="a", to=("r", "r"))) == []


def test_what_a_message_covers_is_not_named() -> None:
    events = [
        Event("p", 1, "send", message="a", to=("q", "r")),
        Event("q", 1, "deliver", message="a"),
        Event("q", 2, "send", message="b", to=("p", "r")),
        Event("p", 2, "deliver", message="b"),
        Event("p", 3, "send", message="c", to=("r",)),  # after its own a, which b names already
        Event("p", 4, "send", message="d", to=("r",)),  # b is behind c
    ]
    found = [frontier_of(each).past.get("r", {}) for each in messages_of(events)]
    assert found == [{}, {"p": 1}, {"q": 1}, {"p": 2}]


def test_events_of_a_trace_without_sends_are_messages_to_everybody(tmp_path: Path) -> None:
    events = [
        Event("a", 1, id="x", text="t"),
        Event("b", 2, parents=("x", "unknown", "b#1")),
        Event("b", 1, parents=("x",)),
    ]
    found = list(messages_of(events))
    assert [(each["source"], each["id"], int(each["sequence"]), each["causaldeps"]) for each in found] == [
        ("a", "x", 1, "{}"),
        ("b", "b#2", 2, '{"all":{"a":1}}'),
        ("b", "b#1", 1, '{"all":{"a":1}}'),
    ]
    assert {each["causalgroups"] for each in found} == {'["all"]'}
    assert write_cloudevents(tmp_path / "m.jsonl", events) == 3
    assert told(read_cloudevents([tmp_path / "m.jsonl"])) == [
        ("a", 1, "a/x", ()),
        ("b", 2, "b/b#2", ("a/x",)),
        ("b", 1, "b/b#1", ("a/x",)),
    ]


def stamped(source: str, id: str, numbers: dict[str, int], past: Any = None, **more: Any) -> dict[str, Any]:
    return event(
        source,
        id,
        causalnumbers=canonical(numbers),
        causaldeps=canonical(past or {}),
        causalversion=2,
        **more,
    )


def test_a_process_with_several_groups_has_its_messages_in_the_order_in_which_they_follow(
    tmp_path: Path,
) -> None:
    """The third message of a stands first in the file; that the second is before it, b alone says."""
    execution = read(
        tmp_path,
        stamped("a", "3", {"x": 2}, {"y": {"b": 1}, "x": {"a": 1}}),
        stamped("b", "1", {"y": 1}, {"y": {"a": 1}}),
        stamped("a", "2", {"y": 1}, {"x": {"a": 1}}),
        stamped("a", "1", {"x": 1}, causalgroups='["x"]', sequence="1"),
        stamped("c", "1", {"x": 1, "y": 1}, {"x": {"a": 2}}),
    )
    assert told(execution) == [
        ("a", 3, "a/3", ("b/1",)),
        ("b", 1, "b/1", ("a/2",)),
        ("a", 2, "a/2", ()),
        ("a", 1, "a/1", ()),
        ("c", 1, "c/1", ("a/3",)),
    ]
    assert execution.faults == ()
    assert execution.events[3].extra == {"causalgroups": '["x"]'}


def test_what_is_missing_in_a_group_is_a_log_fault(tmp_path: Path) -> None:
    execution = read(
        tmp_path,
        stamped("a", "3", {"x": 3}, {"x": {"a": 2}}),
        stamped("b", "1", {"x": 2, "y": 1}, {"x": {"c": 4}}),
        event("c", "old", sequence="1", causaldeps='{"a":3}', causaldomain="x"),
    )
    assert told(execution) == [
        ("a", 3, "a/3", ()),
        ("b", 1, "b/1", ("c>x#4", "b>x#1")),
        ("c", 1, "c/old", ("a/3",)),
    ]
    assert {fault.kind: fault.count for fault in execution.faults} == {GAP: 1, UNKNOWN_PARENT: 2}


def test_what_no_message_to_groups_can_say_is_refused_with_its_line(tmp_path: Path) -> None:
    itself = stamped("a", "1", {"x": 1}, {"x": {"a": 1}})
    assert refusal(tmp_path, itself) == (
        'events.jsonl, line 1: message 1 of "a" in "x" depends on itself or on a later one'
    )
    assert "causalnumbers must be a map" in refusal(tmp_path, stamped("a", "1", {}))
    both = [stamped("a", "1", {"x": 1}), stamped("a", "2", {"x": 1, "y": 1})]
    assert refusal(tmp_path, *both) == (
        'events.jsonl, line 1 and events.jsonl, line 2: two events have process "a" and number 1 in group "x"'
    )
    circle = [stamped("a", "1", {"x": 1}, {"x": {"b": 1}}), stamped("b", "1", {"x": 1}, {"x": {"a": 1}})]
    assert "has a cycle" in refusal(tmp_path, *circle)
    circle = [
        stamped("a", "1", {"x": 1}, {"y": {"a": 1}}),
        stamped("a", "2", {"y": 1}, {"x": {"a": 1}}),
    ]
    assert "has a cycle" in refusal(tmp_path, *circle)


def test_canonical_json_sorts_by_utf_16() -> None:
    assert canonical({"😀": 1, "\ufb33": 2, "a": 3}) == '{"a":3,"😀":1,"\ufb33":2}'


def test_what_cannot_be_written_is_named_and_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match='message "p#1" cannot be written as JSON'):
        write_cloudevents(tmp_path / "m.jsonl", [Event("p", 1, extra={"x": {1}})])
    with pytest.raises(BadInput, match='message "p#1" cannot be written as JSON'):
        write_cloudevents(tmp_path / "m.jsonl", [Event("p", 1, text="\ud800")])
    assert list(tmp_path.iterdir()) == []


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**32), st.integers(2, 5), st.integers(1, 60))
def test_dependencies_are_exactly_precedence_within_each_group(seed: int, processes: int, steps: int) -> None:
    check_messages_of(messages, Random(seed), processes, steps)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 2**32), st.integers(2, 4), st.integers(1, 40))
def test_messages_that_are_read_again_have_no_fault(
    tmp_path: Path, seed: int, processes: int, steps: int
) -> None:
    check_read_again(messages, cloudevents, tmp_path, Random(seed), processes, steps)


# ---------------------------------------------------------------- fuzz

BOUNDED = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
SMALL = st.sampled_from(["a", "b", "a/1", "1", "2"])
ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)
DEPS = st.dictionaries(SMALL, st.integers(0, 3), max_size=2)
NEARLY = st.fixed_dictionaries(
    {"source": SMALL, "id": SMALL},
    optional={
        "sequence": st.integers(0, 3).map(str) | ANY,
        "causationid": SMALL | st.lists(SMALL, max_size=2) | ANY,
        "causaldeps": DEPS.map(json.dumps) | DEPS | st.dictionaries(SMALL, DEPS).map(json.dumps) | ANY,
        "receiver": SMALL,
        "causalnumbers": st.dictionaries(SMALL, st.integers(1, 3), max_size=2).map(json.dumps) | ANY,
        "causaldomain": SMALL | ANY,
        "time": st.just("2024-01-01T00:00:00Z") | st.text(max_size=20) | ANY,
        "type": st.text(max_size=3),
        "kind": ANY,
        "data": ANY,
    },
)


@BOUNDED
@given(st.lists(NEARLY | ANY, max_size=5), st.booleans())
def test_random_events_are_read_or_refused(tmp_path: Path, events: list[object], batch: bool) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps(events, indent=1) if batch else "\n".join(map(json.dumps, events)))
    try:
        execution = read_cloudevents([path])
    except BadInput as refused:
        assert "\n" not in str(refused)
        str(refused).encode()
        return
    write_trace(tmp_path / "again.jsonl", execution.events)
    assert read_trace(tmp_path / "again.jsonl") == execution.events
    write_cloudevents(tmp_path / "again.jsonl", execution.events)


def test_the_process_is_the_identity_under_which_messages_are_numbered(tmp_path: Path) -> None:
    """Two runs of one source have the same numbers, and a message of version 1 has its source alone."""
    first, second, ben = Stamper("anna", run="1"), Stamper("anna", run="2"), Stamper("ben", run="1")
    said = [first.stamp("one"), second.stamp("two")]
    for each in said:
        ben.saw(each)
    lines = [*said, ben.stamp("three"), {"source": "anna", "id": "x", "sequence": "1", "type": "t"}]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines))
    found = read_cloudevents([tmp_path / "in.jsonl"])
    events = {event.process: event for event in found.events}
    assert sorted(events) == ["anna", "anna~1", "anna~2", "ben~1"] and not found.faults
    assert sorted(events["ben~1"].parents) == [events["anna~1"].id, events["anna~2"].id]
    assert events["anna~1"].id == "anna/anna~1:all:1" and events["anna~1"].extra["source"] == "anna"
    assert "source" not in events["anna"].extra
    (tmp_path / "in.jsonl").write_text(json.dumps({**said[0], "causalversion": 3}) + "\n")
    with pytest.raises(BadInput, match="line 1: causalversion must be 1 or 2, not 3"):
        read_cloudevents([tmp_path / "in.jsonl"])

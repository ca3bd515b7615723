"""Messages that are ordered unlike others: by a cut, a priority, a scope, or not at all.

What a reader must get is known by the models of `tests.helpers.stability` and `tests.helpers.incomplete`,
from sets of messages; the cases by hand say in their names what the format promises.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from causet.cli.deliver import _lost, _readings
from causet.cuts import Cuts
from causet.envelope import bypasses, cut_of, frontier_of
from causet.errors import BadInput, BadStamp
from causet.frontier import channel
from causet.readers import readers_of
from causet.spark.streams.beginnings.cut import read_cut
from causet.spark.streams.beginnings.export import cut_of as cut_of_readers
from causet.spark.streams.beginnings.kept import Beginnings
from causet.spark.streams.bucket import Bucket
from causet.spark.streams.messages.settings import RECEIVER
from causet.spark.streams.messages.taken import taken
from causet.spark.streams.pack import to_blob
from causet.spark.streams.parquet import buckets_of
from causet.spark.streams.state import Segments
from tests.helpers.attributed import check_cuts, check_incomplete
from tests.helpers.envelopes import PLACED
from tests.helpers.holding import InMemory
from tests.helpers.readers import BUCKETS, FORMS, Row, Served, envelope, text

HOUR = 3_600_000
Cut = Mapping[str, Mapping[str, int]]


def told(rows: Iterable[Row]) -> list[tuple[str, str, str]]:
    return [(each["receiver"], each["id"], each["status"]) for each in rows]


def names(rows: Iterable[Row], reader: str) -> list[str]:
    return [each["id"] for each in rows if each["receiver"] == reader]


def missing(row: Row) -> dict[str, dict[str, int]]:
    return {group: dict(entries) for group, entries in row["missing"]}


def write_cut(place: Path, number: int, groups: Cut) -> None:
    """A cut by the words of the format: whole, in a file of its own."""
    (place / "cuts").mkdir(exist_ok=True)
    whole = {"version": 1, "number": number, "base": 0, "groups": groups}
    (place / "cuts" / f"{number:016}.json").write_text(json.dumps(whole))


def served_with(
    place: Path,
    readers: Any,
    policy: str = "wait",
    patience: int | None = None,
    cut: Cut | None = None,
    of: Any = None,
) -> Served:
    """Readers that know a place with one cut."""
    write_cut(place, 1, cut if cut is not None else {"orders": {"shop": 1}})
    served = Served(readers, policy, patience, made=of)
    served.settings = replace(served.settings, stable=str(place))
    return served


def past(name: str, source: str, groups: list[str]) -> Row:
    """A message that bypasses the order."""
    about = {"id": name, "source": source, "causalversion": 2, "causalprocess": source}
    return {**about, "causalgroups": text(groups), "causalbypass": "true"}


# ---------------------------------------------------------------- cuts

PAID = envelope("paid", "till", {"payments": 1}, causalcut="1")
ORDER = envelope("order", "shop", {"orders": 1})
PARTS = {"a": ["payments"], "b": ["payments", "orders"]}


def heads(served: Served) -> list[Any]:
    """What is remembered, by bucket."""
    return [served.holding.from_bytes(each) for each, _, _ in served.saved.values()]


def test_a_reader_that_was_not_counted_waits_for_the_cut(tmp_path: Path, of: Any = None) -> None:
    served = served_with(tmp_path, {"desk": ["orders", "payments"], "bank": ["payments"]}, of=of)
    left = served.step([PAID], 0)
    assert told(left) == [("bank", "paid", "delivered")], "nothing of the cut is for the bank"
    left = served.step([ORDER], 5)
    assert names(left, "desk") == ["order", "paid"] and served.held == 0
    assert sum(len(each.stream_key) for each in heads(served)) == 3, "the cut itself is forgotten"


def test_readers_of_a_bucket_wait_each_for_their_own_part_of_a_cut(tmp_path: Path, of: Any = None) -> None:
    readers = {f"{kind}{at}": groups for at in range(4) for kind, groups in PARTS.items()}
    served = served_with(tmp_path, readers, of=of)
    assert {each["receiver"][0] for each in served.step([PAID], 0)} == {"a"}
    assert {each["receiver"][0] for each in served.step([ORDER], 1)} == {"b"}


def test_what_was_given_up_by_hand_is_not_waited_for_in_a_cut(tmp_path: Path, of: Any = None) -> None:
    served = served_with(tmp_path, {"desk": ["orders", "payments"]}, of=of)
    served.step([PAID], 0)
    served.settings = replace(served.settings, lost=(("shop", 1, None),))
    both = envelope("both", "web", {"payments": 1}, {"payments": {"bank": 1}}, causalcut="1")
    (left,) = served.step([both], 1)
    assert (left["id"], left["status"], missing(left)) == ("paid", "flagged", {"": {"causalcut": 1}})
    served.settings = replace(served.settings, lost=())
    later = served.step([envelope("bank", "bank", {"payments": 1})], 2)
    assert [(each["id"], each["status"], missing(each)) for each in later] == [
        ("bank", "delivered", {}),
        ("both", "flagged", {"": {"causalcut": 1}}),
    ], "it waited for more than the cut"
    assert told(served.step([ORDER], 3)) == [("desk", "order", "late")]


def test_who_has_the_cut_waits_for_nothing(tmp_path: Path, of: Any = None) -> None:
    served = served_with(tmp_path, {"desk": ["orders", "payments"]}, of=of)
    assert len(served.step([ORDER], 0)) == 1
    assert told(served.step([PAID], 1)) == [("desk", "paid", "delivered")]


def test_a_message_waits_for_its_cut_and_for_its_causes(tmp_path: Path, of: Any = None) -> None:
    served = served_with(tmp_path, {"desk": ["orders", "payments"]}, of=of)
    paid = envelope("paid", "till", {"payments": 1}, {"orders": {"web": 1}}, causalcut="1")
    assert not served.step([paid], 0)
    assert told(served.step([ORDER], 1)) == [("desk", "order", "delivered")]
    assert names(served.step([envelope("web", "web", {"orders": 1})], 2), "desk") == ["web", "paid"]


def test_many_messages_wait_for_one_cut_and_for_others(tmp_path: Path, of: Any = None) -> None:
    served = served_with(tmp_path, {"desk": ["orders", "payments"]}, of=of)
    write_cut(tmp_path, 2, {"orders": {"shop": 2}})
    paid = [envelope(f"p{at}", f"till{at}", {"payments": 1}, causalcut=str(1 + at % 2)) for at in range(6)]
    assert not served.step(paid[:3], 0) and not served.step(paid[3:], 1)
    assert served.held == 6 and sum(int((each.part == 2).sum()) for each in heads(served)) == 2
    left = served.step([ORDER], 2)
    assert left[0]["id"] == "order" and {*names(left[1:], "desk")} == {"p0", "p2", "p4"}
    left = served.step([envelope("second", "shop", {"orders": 2})], 3)
    assert left[0]["id"] == "second" and {*names(left[1:], "desk")} == {"p1", "p3", "p5"}
    assert served.held == 0


def test_patience_ends_for_a_cut_and_the_message_says_which_it_lacked(tmp_path: Path, of: Any = None) -> None:
    served = served_with(tmp_path, {"desk": ["orders", "payments"]}, "flag", 10, of=of)
    served.step([PAID], 0)
    (left,) = served.step([], 10)
    assert (left["status"], missing(left)) == ("flagged", {"": {"causalcut": 1}})
    assert told(served.step([ORDER], 11)) == [("desk", "order", "late")], "it was in the cut"
    assert told(served.step([envelope("next", "till", {"payments": 2}, causalcut="1")], 12)) == [
        ("desk", "next", "delivered")
    ]


def test_what_gave_up_waiting_for_a_cut_leaves_nothing_behind(tmp_path: Path, of: Any = None) -> None:
    served = served_with(tmp_path, {"desk": ["orders", "payments"]}, "divert", 10, of=of)
    served.step([PAID], 0)
    (left,) = served.step([], 10)
    assert (left["status"], missing(left)) == ("diverted", {"": {"causalcut": 1}})
    assert sum(len(each.stream) for each in heads(served)) == 0, "the cut itself is forgotten, too"


def test_a_cut_that_no_one_can_read_is_not_waited_for(tmp_path: Path, of: Any = None) -> None:
    served = served_with(tmp_path, {"desk": ["orders", "payments"]}, of=of)
    unknown = {**PAID, "causalcut": "7"}
    (left,) = served.step([unknown], 0)
    assert left["status"] == "diverted" and left["problem"] == f"names cut 7, which is not in {tmp_path}"
    assert told(served.step([ORDER, PAID], 1))[1:] == [("desk", "paid", "delivered")], "its number is free"
    served = Served({"desk": ["orders", "payments"]}, made=of)
    (left,) = served.step([PAID], 0)
    assert left["problem"] == "names a cut, which can be waited for only with its place (--stable)"


def test_a_message_that_is_in_its_own_cut_is_refused(tmp_path: Path, of: Any = None) -> None:
    served = served_with(tmp_path, {"desk": ["a", "orders", "payments"]}, of=of)
    selfish = [
        envelope("itself", "shop", {"orders": 1}, causalcut="1"),
        envelope("first", "shop", {"orders": 1, "payments": 1}, causalcut="1"),
        envelope("second", "shop", {"a": 1, "orders": 1}, causalcut="1"),
    ]
    left = served.step(selfish, 0)
    assert {each["problem"] for each in left} == {"depends on itself or on a later message of its source"}
    assert told(served.step([ORDER, envelope("after", "shop", {"orders": 2}, causalcut="1")], 1)) == [
        ("desk", "order", "delivered"),
        ("desk", "after", "delivered"),
    ]


def test_an_urgent_message_waits_for_the_urgent_ones_of_its_cut_only(tmp_path: Path, of: Any = None) -> None:
    cut = {"orders": {"shop": 1}, "orders\x1f2": {"shop": 1}}
    served = served_with(tmp_path, {"desk": ["orders"]}, cut=cut, of=of)
    alarm = envelope("alarm", "till", {"orders": 1}, causalcut="1", causalpriority="2")
    plain = envelope("plain", "till", {"orders": 1}, causalcut="1")
    assert not served.step([alarm, plain], 0)
    urgent = {**envelope("urgent", "shop", {"orders": 1}), "causalpriority": "2"}
    assert names(served.step([urgent], 1), "desk") == ["urgent", "alarm"]
    assert names(served.step([ORDER], 2), "desk") == ["order", "plain"]


def report(served: Served, reader: str) -> dict[str, Any]:
    """What a bucket says of itself."""
    number = int(buckets_of(pa.array([reader]), BUCKETS)[0])
    memory, segments, marks = served.saved[number]
    return Bucket(served.settings, served.holding.from_bytes(memory), segments, marks).report()


def test_what_is_said_to_be_waited_for_is_the_message_that_the_cut_lacks(tmp_path: Path) -> None:
    served = served_with(tmp_path, {"desk": ["orders", "payments"]})
    served.step([PAID], 0)
    found = report(served, "desk")
    assert (found["held"], found["blocked"]) == (1, "shop:1 in orders at desk")


def test_with_random_cuts_readers_get_what_is_due_and_nothing_early(tmp_path: Path) -> None:
    named = 0
    for seed in range(30):
        named += check_cuts(seed, tmp_path / str(seed))
    assert named > 300, "many messages were made short by a cut"


def test_with_random_priorities_scopes_and_bypasses_readers_get_what_is_due() -> None:
    for seed in range(40):
        check_incomplete(seed)


@pytest.mark.soak
def test_both_in_thousands_of_executions(tmp_path: Path) -> None:
    for seed in range(1000, 4000):
        check_cuts(seed, tmp_path / str(seed))
        check_incomplete(seed)


# ---------------------------------------------------------------- what readers tell


def tell(served: Served, query: str, reader: str, groups: list[str], rows: list[Row], now: int) -> None:
    """A batch of one reader, as a worker serves it that knows a place."""
    number = int(buckets_of(pa.array([reader]), BUCKETS)[0])
    empty = (served.holding.empty().to_bytes(), Segments(InMemory(), 0), InMemory())
    memory, segments, marks = served.saved.get(number, empty)
    held = served.holding.from_bytes(memory)
    serving = Bucket(replace(served.settings, query=query), held, segments, marks)
    table = pa.Table.from_pylist(rows, FORMS["envelope"])
    table = table.append_column(RECEIVER, pa.array([reader] * len(rows), pa.string()))
    [*serving.step([to_blob(table)] if rows else [], now, last=True)]
    serving.tell(number)
    served.saved[number] = (held.to_bytes(), segments, marks)


def test_a_reader_says_how_far_it_is_and_counts_what_it_gave_up_after_the_horizon(tmp_path: Path) -> None:
    cuts = Cuts(tmp_path)
    cuts.register("q", {"desk": ["orders"]})
    served = Served({"desk": ["orders"]}, "flag", 10)
    served.settings = replace(served.settings, stable=str(tmp_path), horizon=HOUR)
    number = int(buckets_of(pa.array(["desk"]), BUCKETS)[0])

    def after(rows: list[Row], now: int) -> dict[str, Any]:
        tell(served, "q", "desk", ["orders"], rows, now)
        return cuts.told("q", number)

    assert after([ORDER], 0) == {"desk": {"orders": {"shop": 1}}}
    assert after([envelope("third", "shop", {"orders": 3})], 1) == {"desk": {"orders": {"shop": 1}}}
    assert after([], 11) == {"desk": {"orders": {"shop": 1}}}, "flagged; the second one may still come"
    assert after([], 12 + HOUR) == {"desk": {"orders": {"shop": 3}}}, "it was given up"


def test_a_reader_that_has_only_what_came_too_early_says_nothing_of_it(tmp_path: Path) -> None:
    cuts = Cuts(tmp_path)
    cuts.register("q", {"desk": ["orders"]})
    served = Served({"desk": ["orders"]}, "flag", 10)
    served.settings = replace(served.settings, stable=str(tmp_path))
    for now, rows in ((0, [envelope("third", "shop", {"orders": 3})]), (10, [])):
        tell(served, "q", "desk", ["orders"], rows, now)
        assert cuts.told("q", int(buckets_of(pa.array(["desk"]), BUCKETS)[0])) == {}


def test_messages_of_scopes_and_past_the_order_are_in_no_cut(tmp_path: Path) -> None:
    cuts = Cuts(tmp_path)
    cuts.register("q", {"desk": ["orders"]})
    served = Served({"desk": ["orders"]})
    served.settings = replace(served.settings, stable=str(tmp_path))
    rows = [
        past("note", "shop", ["orders"]),
        envelope("audit", "shop", {"orders": 1}, causalscope="audit"),
        {**envelope("urgent", "shop", {"orders": 1}), "causalpriority": "2"},
    ]
    tell(served, "q", "desk", ["orders"], rows, 0)
    number = int(buckets_of(pa.array(["desk"]), BUCKETS)[0])
    assert cuts.told("q", number) == {"desk": {"orders\x1f2": {"shop": 1}}}


# ---------------------------------------------------------------- priorities, scopes, bypasses


def of_priority(name: str, source: str, number: int, priority: int, deps: Any = None, **more: Any) -> Row:
    return {**envelope(name, source, {"g": number}, deps, **more), "causalpriority": str(priority)}


def test_an_urgent_message_overtakes_what_is_less_urgent_and_nothing_else(of: Any = None) -> None:
    served = Served({"r": ["g"]}, made=of)
    alarm = of_priority("alarm", "q", 1, 2, {"g": {"p": 1}, "g\x1f2": {"p": 1}})
    assert not served.step([alarm], 0), "it waits for p's urgent message"
    assert names(served.step([of_priority("fire", "p", 1, 2)], 1), "r") == ["fire", "alarm"]
    assert names(served.step([envelope("plain", "p", {"g": 1}, {"g\x1f2": {"p": 1}})], 2), "r") == ["plain"]
    low = of_priority("low", "q", 1, -1, {"g": {"p": 2}})
    assert not served.step([low], 3), "less urgent than a plain message, it waits for that"
    assert names(served.step([envelope("second", "p", {"g": 2})], 4), "r") == ["second", "low"]


def test_a_scope_is_an_order_of_its_own(of: Any = None) -> None:
    served = Served({"r": ["g"]}, made=of)
    audit = envelope("audit", "p", {"g": 2}, causalscope="audit")
    trade = envelope("trade", "p", {"g": 1}, causalscope="trade")
    left = served.step([audit, trade, envelope("plain", "p", {"g": 1})], 0)
    assert sorted(names(left, "r")) == ["plain", "trade"]
    assert names(served.step([envelope("first", "p", {"g": 1}, causalscope="audit")], 1), "r") == [
        "first",
        "audit",
    ]


def test_what_bypasses_the_order_waits_for_nothing_and_comes_once(of: Any = None) -> None:
    served = Served({"r": ["g", "h"], "s": ["h"]}, made=of)
    note = past("note", "p", ["g", "h"])
    left = served.step([envelope("second", "p", {"g": 2}), note, note], 0)
    assert sorted(told(left)) == [("r", "note", "delivered"), ("s", "note", "delivered")]
    assert not served.step([note], 1) and served.counts["duplicates"] == 4
    left = served.step([past("note", "q", ["g"])], 2)
    assert told(left) == [("r", "note", "delivered")], "of another source it is another message"


def test_a_bypass_with_the_id_of_another_message_is_a_conflict(of: Any = None) -> None:
    served = Served({"r": ["g"]}, made=of)
    served.schema = served.schema.append(pa.field("data", pa.string()))
    served.settings = replace(served.settings, columns=tuple(served.schema.names))
    assert len(served.step([{**past("note", "p", ["g"]), "data": "1"}], 0)) == 1
    (left,) = served.step([{**past("note", "p", ["g"]), "data": "2"}], 1)
    assert left["status"] == "diverted" and left["problem"].startswith("has the number of another message")


def test_a_bypass_is_remembered_up_to_the_horizon(of: Any = None) -> None:
    served = Served({"r": ["g"]}, made=of)
    served.settings = replace(served.settings, horizon=HOUR)
    served.step([past(f"n{at}", "p", ["g"]) for at in range(50)], 0)
    assert not served.step([past("n7", "p", ["g"])], HOUR)

    assert sum(len(each.stream_key) for each in heads(served)) == 50
    first = envelope("first", "p", {"g": 1})
    served.step([first], HOUR)
    served.step([], 3 * HOUR)
    assert sum(len(each.stream_key) for each in heads(served)) == 1, "a source can send as many as it likes"
    assert not served.step([first], 3 * HOUR), "what has a number is known as long as its source is"


def test_a_bypass_that_lists_a_group_twice_is_refused(of: Any = None) -> None:
    served = Served({"r": ["g"]}, made=of)
    (left,) = served.step([past("note", "p", ["g", "g"])], 0)
    assert left["problem"] == "bypasses the order, and has no list of groups, each once"


@pytest.mark.parametrize("reader", ["r", "all", "the desk at home"])
@pytest.mark.parametrize("group", ["g", "g (priority 2)", "g at r"])
@pytest.mark.parametrize(
    "place",
    [{}, {"causalpriority": "-2"}, {"causalscope": "s"}, {"causalpriority": "2", "causalscope": "a,b"}],
)
def test_a_message_is_given_up_by_the_name_that_reports_give_it(
    reader: str, group: str, place: dict[str, str]
) -> None:
    served = Served({reader: [group, "h"]})
    priority = int(place.get("causalpriority", 0))
    cause = {channel(group, priority): {"p": 7}}
    assert not served.step([envelope("m", "q", {"h": 1}, cause, **place)], 0)
    reports = []
    for memory, segments, marks in served.saved.values():
        holding = served.holding.from_bytes(memory)
        reports.append(served.bucket.Bucket(served.settings, holding, segments, marks).report()["blocked"])
    [name] = filter(None, reports)
    for given_up, leaves in (("p:7 in h", False), (name, True)):
        lost = _readings(_lost(None, None, (given_up,)), served.settings.readers)
        served.settings = replace(served.settings, lost=tuple(lost))
        left = told(served.step([], 1))
        assert bool(left) == leaves
    assert left == [(reader, "m", "flagged")]


def test_what_is_given_up_in_one_group_is_still_waited_for_in_others(of: Any = None) -> None:
    served = Served({"r": ["g"], "s": ["h"]}, made=of)
    of_each = [envelope(f"{group}2", "p", {group: 2}) for group in ("g", "h")]
    urgent = of_priority("urgent", "p", 2, 2)
    assert not served.step([*of_each, urgent], 0)
    served.settings = replace(served.settings, lost=(("p", 1, "g"),))
    assert sorted(told(served.step([], 1))) == [("r", "g2", "flagged"), ("r", "urgent", "flagged")]
    served.settings = replace(served.settings, lost=(("p", 1, "h"), ("p", 1, "g")))
    assert told(served.step([], 2)) == [("s", "h2", "flagged")]
    assert sum(len(each.lost_name) for each in heads(served)) == 2 * len(served.saved), "each once"


# ---------------------------------------------------------------- another list of readers


def begun_at_cut(served: Served, readers: Any, folder: Path, of: Any = None) -> Served:
    """A new query that begins at the exported cut of another one."""
    heads = {number: served.holding.from_bytes(saved[0]) for number, saved in served.saved.items()}
    file = folder / "cut.json"
    file.write_text(json.dumps(cut_of_readers(heads, served.settings.readers, served.settings.buckets)))
    kept, again = Beginnings(folder / "beginnings"), Served(readers, made=of)
    kept.begin()
    for reader, group, counted in read_cut(file).beginnings(readers_of(readers)):
        bucket = int(buckets_of(pa.array([reader]), BUCKETS)[0])
        kept.count(bucket, reader, np.frombuffer(group, "S16"), counted)
    kept.written(-1, None, readers_of(readers))
    again.begin(kept)
    return again


def test_a_message_that_a_cut_has_in_one_of_its_groups_comes_in_the_others(
    tmp_path: Path, of: Any = None
) -> None:
    """a has got it through g, b still holds it in h: for c, which begins at both, it is new."""
    served = Served({"a": ["g"], "b": ["h"]}, made=of)
    both = envelope("both", "p", {"g": 1, "h": 1}, {"h": {"q": 1}})
    assert told(served.step([both], 0)) == [("a", "both", "delivered")]
    again = begun_at_cut(served, {"c": ["g", "h"]}, tmp_path, of)
    assert not again.step([both], 0) and again.held == 1
    left = again.step([envelope("first", "q", {"h": 1})], 1)
    assert names(left, "c") == ["first", "both"] and again.counts.get("conflicts", 0) == 0
    assert not again.step([both], 2) and again.counts["duplicates"] == 1


def test_patience_of_a_reader_that_left_does_not_end(tmp_path: Path, of: Any = None) -> None:
    """What it held goes nowhere: a cut counts only what was delivered."""
    served = Served({"a": ["g"], "b": ["g", "h"]}, "flag", 10, made=of)
    served.step([envelope("m1", "p", {"g": 1}, {"h": {"q": 1}})], 0)
    assert not served.restart({"a": ["g"]}, tmp_path, 1)
    assert not served.step([], 100), "b gets nothing any more"


def test_a_query_of_ones_own_refuses_other_readers_than_those_of_its_state(of: Any = None) -> None:
    served = Served({"a": ["g"]}, made=of)
    served.settings = replace(served.settings, begins=False)
    served.step([envelope("m1", "p", {"g": 1})], 0)
    served.settings = replace(served.settings, readers=readers_of({"a": ["g"]}))
    served.step([envelope("m2", "p", {"g": 2})], 1)
    served.settings = replace(served.settings, readers=readers_of({"a": ["g", "h"]}))
    with pytest.raises(BadInput, match=r"^the readers are not those of this checkpoint"):
        served.step([envelope("m3", "p", {"g": 3})], 2)


def test_readers_that_begin_now_have_the_urgent_and_the_scoped_behind_them(
    tmp_path: Path, of: Any = None
) -> None:
    served = Served({"a": ["g"]}, made=of)
    before = [
        of_priority("u1", "p", 1, 2),
        envelope("s1", "p", {"g": 1}, causalscope="audit"),
        past("note", "p", ["g"]),
    ]
    held = envelope("s3", "p", {"g": 3}, causalscope="audit")
    assert len(served.step([*before, held], 0)) == 3
    assert not served.restart({"a": ["g"], "b": ["g"]}, tmp_path, 1)
    assert told(served.step(before, 2)) == [("b", "note", "delivered")], (
        "only what has no place in an order is new to b when it comes again"
    )
    rest = [of_priority("u2", "p", 2, 2), envelope("s2", "p", {"g": 2}, causalscope="audit")]
    left = served.step(rest, 3)
    for reader in ("a", "b"):
        got = names(left, reader)
        assert sorted(got) == ["s2", "s3", "u2"] and got.index("s2") < got.index("s3")


# ---------------------------------------------------------------- rows from outside


TEXTS = FORMS["envelope"].names


def is_message(row: Mapping[str, Any]) -> bool:
    """Whether the envelope's own reader takes it."""
    try:
        cut_of(row)
        return bool(frontier_of(row).numbers) or bypasses(row)
    except BadStamp:
        return False


@settings(max_examples=300, deadline=None)
@given(st.lists(PLACED, min_size=1, max_size=4))
def test_rows_are_refused_that_the_reader_of_envelopes_refuses(drawn: list[dict[str, Any]]) -> None:
    rows: list[dict[str, Any]] = []
    for row in drawn:
        rows.append(
            {"id": "m"}
            | {
                name: row[name]
                for name in TEXTS
                if name != "causalversion" and isinstance(row.get(name), str)
            }
        )
        if type(row.get("causalversion")) is int and abs(row["causalversion"]) < 2**63:
            rows[-1]["causalversion"] = row["causalversion"]
        if rows[-1].get("causaldeps") == "":
            del rows[-1]["causaldeps"]  # of a table, an empty text is no causes
    found = taken(pa.Table.from_pylist(rows, FORMS["envelope"]), Served(None).settings, 0)
    for at, row in enumerate(rows):
        assert (at not in found.refused) == is_message(row), (row, found.refused.get(at))

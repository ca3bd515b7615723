"""Readers of groups that overlap: each gets every message to its groups once, in causal order across them.

What a reader must get is known by happened-before alone (`tests.helpers.grouped`).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from causet.errors import BadInput
from causet.readers import Readers, readers_of
from causet.spark import deliver
from causet.spark.streams.state import unread_after
from tests.helpers.commands import LOCAL, causet, rows_in
from tests.helpers.readers import (
    FORMS,
    Executions,
    Served,
    check_waiting,
    envelope,
    row_of,
    write_batches,
)
from tests.helpers.streams import write_files


def test_a_payment_is_not_seen_before_its_order(of: Any = None) -> None:
    served = Served({"desk": ["orders", "payments"], "bank": ["payments"]}, made=of)
    paid = envelope("paid", "till", {"payments": 1}, {"orders": {"shop": 1}})
    left = served.step([paid], 0)
    assert [(each["receiver"], each["id"]) for each in left] == [("bank", "paid")], "the bank reads no orders"
    left = served.step([envelope("order", "shop", {"orders": 1})], 5)
    assert [(each["receiver"], each["id"], each["waited"]) for each in left] == [
        ("desk", "order", 0.0),
        ("desk", "paid", 0.005),
    ]


def test_a_message_to_several_groups_counts_in_all_of_them_at_once(of: Any = None) -> None:
    served = Served({"r": ["a", "b"], "s": ["b", "c"]}, made=of)
    both = envelope("both", "p", {"a": 2, "b": 1, "c": 7})
    after = envelope("after", "q", {"c": 1}, {"b": {"p": 1}})
    left = served.step([both, both, after, envelope("before", "p", {"c": 6})], 0)
    assert served.counts["duplicates"] == 2 and served.counts["copies"] == 2 and served.held == 4 and not left
    left = served.step([envelope("first", "p", {"a": 1})], 1)
    assert [(each["receiver"], each["id"]) for each in left] == [("r", "first"), ("r", "both")]
    assert served.held == 3, "s waits for c: 1 to 5"


def test_patience_ends_for_a_message_in_all_of_its_groups(of: Any = None) -> None:
    served = Served({"r": ["a", "b"]}, "flag", 10, made=of)
    both = envelope("both", "p", {"a": 1, "b": 2}, {"b": {"q": 3}})
    next_one = envelope("next", "p", {"b": 3}, {"a": {"p": 1}})
    assert not served.step([both, next_one], 0)
    left = served.step([], 10)
    assert [(each["id"], each["status"], dict_of(each["missing"])) for each in left] == [
        ("both", "flagged", {"b": {"p": 1, "q": 3}}),
        ("next", "delivered", {}),
    ]
    left = served.step([envelope("late", "p", {"b": 1}), envelope("named", "q", {"b": 3})], 11)
    assert [(each["id"], each["status"]) for each in left] == [("late", "late")]
    left = served.step([], 21)
    assert [(each["id"], each["status"]) for each in left] == [("named", "late")]


def write_file(folder: Path, rows: list[dict[str, Any]], name: str) -> None:
    """A file of these rows."""
    (folder / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))


def dict_of(value: Any) -> Any:
    """Maps of Arrow as dictionaries."""
    return {group: dict(entries) for group, entries in value}


def test_a_message_that_was_named_in_one_of_its_groups_is_late(of: Any = None) -> None:
    served = Served({"r": ["a", "b"]}, "flag", 10, made=of)
    served.step([envelope("names", "q", {"a": 1}, {"b": {"p": 1}})], 0)
    assert [each["status"] for each in served.step([], 10)] == ["flagged"]
    left = served.step([envelope("both", "p", {"a": 1, "b": 1})], 11)
    assert [(each["id"], each["status"]) for each in left] == [("both", "late")]


def test_a_message_that_is_named_in_one_of_its_groups_and_leaves_with_the_same_batch_is_late(
    of: Any = None,
) -> None:
    """names and x are overdue. y is not here in time, so x leaves without it, and names without p's second
    message; only then is that free."""
    served = Served({"r": ["a", "b"]}, "flag", 10, made=of)
    names = envelope("names", "q", {"a": 1}, {"b": {"p": 2}})
    served.step([names, envelope("x", "s", {"a": 1}, {"a": {"t": 1}}), envelope("p1", "p", {"b": 1})], 0)
    y = envelope("y", "t", {"a": 1}, {"a": {"absent": 1}})
    assert not served.step([envelope("both", "p", {"a": 1, "b": 2}, {"a": {"s": 1}}), y], 5)
    left = served.step([], 10)
    assert {each["id"]: each["status"] for each in left} == {
        "names": "flagged",
        "x": "flagged",
        "both": "late",
    }


def test_one_number_for_two_messages_is_a_conflict_in_whatever_group(of: Any = None) -> None:
    served = Served({"r": ["a", "b"]}, made=of)
    assert len(served.step([envelope("one", "p", {"a": 1})], 0)) == 1
    left = served.step([envelope("two", "p", {"a": 1, "b": 1})], 1)
    assert [(each["id"], each["status"], each["index"]) for each in left] == [("two", "diverted", None)]
    left = served.step([envelope("one", "p", {"b": 1, "a": 1})], 2)
    assert served.counts["conflicts"] == 2 and [each["status"] for each in left] == ["diverted"], (
        "other groups"
    )
    left = served.step([envelope("three", "p", {"b": 1})], 3)
    assert [(each["id"], each["index"]) for each in left] == [("three", 1)], "b:1 was never taken in"


def test_what_names_itself_or_is_too_far_in_one_of_its_groups_is_refused_whole(of: Any = None) -> None:
    for readers in ({"r": ["a", "b"]}, None):
        served = Served(readers, made=of)
        selfish = envelope("selfish", "p", {"a": 1, "b": 1}, {"b": {"p": 1}})
        far = envelope("far", "p", {"a": 1, "b": 10**9 + 1})
        left = served.step([selfish, far], 0)
        assert [each["problem"] for each in left] == [
            "depends on itself or on a later message of its source",
            "has a number more than 1,000,000,000 above the others of its source",
        ]
        left = served.step([envelope("fine", "p", {"a": 1, "b": 1})], 1)
        assert [each["id"] for each in left] == ["fine"]


def test_what_names_itself_in_a_group_is_refused_for_readers_of_its_other_groups_too(of: Any = None) -> None:
    """It is no message, whoever reads it. What names only earlier ones of its process is one."""
    served = Served({"r": ["a"], "s": ["b"], "t": ["a", "b", "c"]}, made=of)
    fine = envelope("fine", "p", {"a": 1, "b": 1}, {"c": {"p": 1}, "d": {"p": 9}})
    after = envelope("after", "p", {"b": 2, "a": 2}, {"b": {"p": 1}, "a": {"p": 1, "q": 2}})
    odd = [
        envelope("itself", "q", {"a": 1, "b": 1}, {"b": {"q": 1}}),
        envelope("later", "q", {"a": 1, "b": 2}, {"a": {"p": 2}, "b": {"p": 2, "q": 3}}, causalpriority="2"),
        envelope("unread", "q", {"a": 1, "e": 2}, {"e": {"q": 2}}),
    ]
    odd[1]["causaldeps"] = odd[1]["causaldeps"].replace('"b"', '"b\\u001f2"')
    left = served.step([*odd, after, fine, envelope("one", "p", {"c": 1})], 0)
    refused = {(each["id"], each["receiver"]) for each in left if each["status"] == "diverted"}
    assert {each["problem"] for each in left if each["status"] == "diverted"} == {
        "depends on itself or on a later message of its source"
    }
    assert refused == {
        *(("itself", reader) for reader in "rst"),
        *(("later", reader) for reader in "rst"),
        *(("unread", reader) for reader in "rt"),
    }
    got = [(each["receiver"], each["id"]) for each in left if each["status"] == "delivered"]
    assert sorted(got) == [("r", "fine"), ("s", "after"), ("s", "fine"), ("t", "fine"), ("t", "one")]


WHOLE = "is not a whole number between -2147483648 and 2147483647"
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"causalnumbers": "{"}, "has causalnumbers that cannot be read"),
    ({"causalnumbers": '{"a":0}'}, "has causalnumbers that cannot be read"),
    ({"causalnumbers": '{"":1}', "causalgroups": '[""]'}, "has causalnumbers that cannot be read"),
    ({"causalnumbers": "{}", "causalgroups": "[]"}, "has no group in its causalnumbers"),
    ({"causalgroups": '["b"]'}, "has causalgroups that are not those of its causalnumbers"),
    ({"causalgroups": '["a","a"]'}, "has causalgroups that are not those of its causalnumbers"),
    ({"causalgroups": "a"}, "has causalgroups that are not those of its causalnumbers"),
    ({"sequence": "2"}, "has a sequence that is not its number in its group"),
    ({"causaldeps": '{"b":{}}'}, "has causaldeps that cannot be read"),
    ({"causaldeps": '{"b":7}'}, "has causaldeps that cannot be read"),
    ({"causalnumbers": '{"a":1,"a":2}'}, "has a group twice in its causalnumbers"),
    ({"causalnumbers": '{"a": 1, "a": 1}'}, "has causalnumbers that cannot be read"),
    ({"causaldeps": '{"b": {"q": 5, "q": 1}}'}, "has causaldeps that cannot be read"),
    ({"causaldeps": '{"b": {"q": 5}, "b": {"o": 1}}'}, "has causaldeps that cannot be read"),
    ({"causaldeps": '{"b":{"q":0}}'}, "has causaldeps that cannot be read"),
    ({"causaldeps": '{"b":{"q":1},"c":1}'}, "has causaldeps that cannot be read"),
    ({"causaldeps": '{"b":[]}'}, "has causaldeps that cannot be read"),
    ({"source": None}, "has no source"),
    ({"source": ""}, "has no source"),
    ({"causalprocess": ""}, "has a process without a name"),
    ({"causalpriority": "2.5"}, f"has a causalpriority that {WHOLE}"),
    ({"causalpriority": "02"}, f"has a causalpriority that {WHOLE}"),
    ({"causalpriority": str(2**31)}, f"has a causalpriority that {WHOLE}"),
    ({"causalscope": ""}, "has a causalscope that is not text"),
    ({"causalbypass": "yes"}, "has a causalbypass that is not true or false"),
    ({"causalbypass": "true"}, "bypasses the order, and has causalnumbers"),
    ({"causalcut": "3"}, "names a cut, which can be waited for only with its place (--stable)"),
    ({"causalcut": "-3"}, "has a causalcut that is not a whole number between 0 and 9007199254740991"),
    (
        {"causalcut": "3", "causalscope": "s"},
        "has a causalscope and a causalcut: cuts are of messages without a scope",
    ),
    ({"causaldeps": '{"b\\u001fx":{"q":1}}'}, "has causaldeps that cannot be read"),
    ({"causalversion": 3}, "has a causalversion that is not 1 or 2"),
]


@pytest.mark.parametrize(("change", "problem"), REFUSED)
def test_what_cannot_be_read_is_diverted_once_and_says_why(change: dict[str, Any], problem: str) -> None:
    check_refused(change, problem)


def check_refused(change: dict[str, Any], problem: str, of: Any = None) -> None:
    served = Served({"r": ["a", "b"], "s": ["a"], "t": ["c"]}, made=of)
    left = served.step([envelope("m", "p", {"a": 1}, **change)], 0)
    if problem:
        assert {each["problem"] for each in left} == {problem}
        assert {each["receiver"] for each in left} in ({None}, {"r", "s"})
        assert served.counts["refused"] == len(left) and served.counts["unread"] == 0
    else:
        assert [(each["receiver"], each["status"]) for each in left] == [] and served.held == 2


def test_all_that_is_refused_is_refused(of: Any = None) -> None:
    for change, problem in REFUSED:
        check_refused(change, problem, of)


def test_version_1_is_read_beside_version_2(of: Any = None) -> None:
    served = Served({"r": ["a", "b"], "all": ["all"]}, made=of)
    old = {"id": "old", "source": "q", "causaldomain": "a", "sequence": "1", "causaldeps": '{"p":1}'}
    plain = {"id": "plain", "source": "q", "sequence": "1", "causaldeps": "{}"}
    new = envelope("new", "p", {"a": 1, "b": 1})
    after = envelope("after", "s", {"b": 1}, {"a": {"q": 1}})
    left = served.step([old, after, plain, new], 0)
    assert {(each["receiver"], each["id"], each["index"]) for each in left} == {
        ("r", "new", 0),
        ("r", "old", 1),
        ("r", "after", 2),
        ("all", "plain", 0),
    }


def test_messages_without_a_reader_are_counted(of: Any = None) -> None:
    served = Served({"r": ["a"]}, made=of)
    left = served.step([envelope("m", "p", {"b": 1}), envelope("n", "p", {"a": 1, "b": 2})], 0)
    assert [each["id"] for each in left] == ["n"] and served.counts["unread"] == 1
    assert not served.step([envelope("o", "p", {"b": 3})], 1) and served.counts["unread"] == 2


def test_every_group_can_be_a_reader_of_its_own_and_one_reader_can_read_all(of: Any = None) -> None:
    messages = [
        envelope("after", "q", {"b": 1}, {"a": {"p": 1}}),
        envelope("both", "p", {"a": 1, "b": 1}),
    ]
    left = Served("each", made=of).step(messages, 0)
    assert {(each["receiver"], each["id"]) for each in left} == {("a", "both"), ("b", "both"), ("b", "after")}
    left = Served(None, made=of).step(messages, 0)
    assert [(each["receiver"], each["id"]) for each in left] == [("all", "both"), ("all", "after")]


@pytest.mark.parametrize("form", FORMS)
def test_each_reader_gets_what_is_due_and_nothing_early(form: str) -> None:
    for seed in range(30):
        check_waiting(seed, form)


@pytest.mark.soak
@pytest.mark.parametrize("form", FORMS)
def test_each_reader_gets_what_is_due_in_thousands_of_streams(form: str) -> None:
    for seed in range(1000, 4000):
        check_waiting(seed, form)


# ---------------------------------------------------------------- who reads what


def test_readers_are_named_once_and_read_each_group_once() -> None:
    found = readers_of({"r": ("a", "b"), "s": ["b"]})
    assert found.of_group("b") == ("r", "s") and found.of_group("c") == ()
    assert readers_of(found) is found and readers_of(found.as_json()) == found
    assert readers_of("each").as_json() == "each" and readers_of(None).as_json() is None
    assert found.kind == "list" and Readers().kind == "all" and readers_of("each").kind == "each"


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({}, "there must be at least one reader"),
        ({"r": []}, 'reader "r" reads no group'),
        ({"r": ["a", "a"]}, 'reader "r" has the group "a" twice'),
        ({"r": [""]}, 'reader "r": the name of a group must be text, not ""'),
        ({"r": [7]}, 'reader "r": the name of a group must be text, not 7'),
        (
            {"r": ["a\x1f2"]},
            r'reader "r": the name of a group cannot have the character U\+001F, as "a\\u001f2" has',
        ),
        ({"r": "a"}, 'reader "r" must have a list of groups, not "a"'),
        ({"": ["a"]}, 'a reader must have a name that is text, not ""'),
        ("every", 'readers must be "each", or a map from each reader to its groups, not "every"'),
    ],
)
def test_bad_readers_are_refused_in_a_sentence(given: Any, problem: str) -> None:
    with pytest.raises(BadInput, match=f"^{problem}$"):
        readers_of(given)


# ---------------------------------------------------------------- on Spark


@pytest.mark.parametrize("count", [100, pytest.param(1000, marks=pytest.mark.soak)])
def test_of_many_executions_every_reader_gets_what_is_due(
    count: int, tmp_path: Path, spark: SparkSession
) -> None:
    """In two runs of one checkpoint; the second one has more readers of the same groups out of the file."""
    made = Executions(1, count)
    half = len(made.messages) // 2
    readers = tmp_path / "readers.json"
    readers.write_text(json.dumps(made.readers))
    asked = (
        "deliver",
        tmp_path / "in",
        tmp_path / "out",
        "--missing",
        "wait",
        "--readers",
        readers,
        "--buckets",
        4,
        "--json",
    )
    write_batches(tmp_path / "in", made.messages[:half], -(-half // 3))
    first = json.loads(causet(*asked, *LOCAL))
    assert made.check(rows_in(tmp_path / "out"), made.messages[:half]) == first["delivered"]
    write_batches(tmp_path / "in", made.messages[half:], half + 1, first=3)
    second = json.loads(causet(*asked, *LOCAL))
    due_now = made.check(rows_in(tmp_path / "out"), made.messages)
    assert first["delivered"] + second["delivered"] == due_now > 10 * count
    assert second["books"]["balance"] and second["books"]["copies"] > count and second["unread"] > count // 10


@pytest.mark.soak
def test_with_a_row_of_each_execution_per_batch_every_reader_gets_what_is_due(
    tmp_path: Path, spark: SparkSession
) -> None:
    """Executions share no process, group or reader: for each of them a batch has one row."""
    made = Executions(4, 1000)
    turns = made.in_turn()
    readers = tmp_path / "readers.json"
    readers.write_text(json.dumps(made.readers))
    places = (tmp_path / "in", tmp_path / "out", "--readers", readers)
    asked = ("deliver", *places, "--missing", "wait", "--files-per-batch", 1, "--buckets", 4, "--json")
    delivered = count = 0
    for some in (turns[:7], turns[7:20], turns[20:]):
        came = [each for turn in turns[: count + len(some)] for each in turn]
        for number, turn in enumerate(some, count):
            write_batches(tmp_path / "in", turn, len(turn), first=number)
        count += len(some)
        found = json.loads(causet(*asked, *LOCAL))
        delivered += found["delivered"]
        assert made.check(rows_in(tmp_path / "out"), came) == delivered and found["books"]["balance"]
    assert delivered > 10_000


@pytest.mark.parametrize("policy", ["flag", pytest.param("divert", marks=pytest.mark.soak)])
def test_causes_that_never_come_are_flagged_or_diverted_for_each_reader_by_itself(
    tmp_path: Path, spark: SparkSession, policy: str
) -> None:
    """Some messages are lost, some come twice; readers overlap. What they must have is known from the
    executions."""
    made = Executions(3, 40)
    readers = tmp_path / "readers.json"
    readers.write_text(json.dumps(made.readers))
    write_batches(tmp_path / "in", made.messages, -(-len(made.messages) // 3))
    places = (tmp_path / "in", tmp_path / "out", "--readers", readers, "--buckets", 3)
    asked = ("deliver", *places, "--missing", policy, "--patience", "1h", "--files-per-batch", 1, "--json")
    found = json.loads(causet(*asked, *LOCAL))
    diverted = tmp_path / "out-diverted"
    aside = rows_in(diverted) if diverted.exists() else []
    statuses = made.check_ended(rows_in(tmp_path / "out"), aside, policy)
    other = "flagged" if policy == "flag" else "diverted"
    assert statuses.keys() == {"delivered", other} and min(statuses.values()) > 30
    assert {name: found[name] for name in statuses} == statuses and found["held"] == 0


@pytest.mark.jvm
def test_groups_that_readers_and_messages_do_not_share_are_named_at_the_end(tmp_path: Path) -> None:
    """In three runs of one checkpoint. What is unread is counted by groups, run by run; what was seen once is
    never unseen again, though it was held or had a priority."""
    readers = {"desk": ["orders", "late", "urgent"], "audit": ["orders", "payment"]}
    (tmp_path / "readers.json").write_text(json.dumps(readers))
    places = (tmp_path / "in", tmp_path / "out", "--readers", tmp_path / "readers.json")
    asked = ("deliver", *places, "--missing", "wait", "--buckets", 3, *LOCAL)
    first = [
        envelope("1", "p", {"orders": 1, "payments": 1}),
        envelope("2", "p", {"payments": 2}),
        envelope("3", "p", {"payments": 3, "refunds": 1}),
        envelope("4", "q", {"late": 2}),
        envelope("5", "q", {"urgent": 1}, causalpriority="4"),
    ]
    write_files(tmp_path / "in", first[:1], 9)
    found = json.loads(causet(*asked, "--json"))
    unseen = [{"reader": "desk", "group": group} for group in ("late", "urgent")]
    assert found["unseen"] == [*unseen, {"reader": "audit", "group": "payment"}]
    assert found["unread_groups"] == [] and found["unread"] == 0
    write_file(tmp_path / "in", first[1:], "1")
    found = json.loads(causet(*asked, "--json"))
    assert found["unseen"] == [{"reader": "audit", "group": "payment"}] and found["unread"] == 2
    assert found["unread_groups"] == [
        {"group": "payments", "messages": 2},
        {"group": "refunds", "messages": 1},
    ]
    more = [envelope(f"more {at}", "r", {f"g{at:02}": 1, "refunds": at + 1}) for at in range(12)]
    write_file(tmp_path / "in", more, "2")
    lines = causet(*asked).splitlines()
    said = [line for line in lines if line.startswith(("reader ", "group ", "and "))]
    assert said == [
        "reader audit reads group payment, of which no message was seen",
        "group refunds has no reader: 12 left out",
        *(f"group g{at:02} has no reader: 1 left out" for at in range(9)),
        "and 3 more groups have no reader",
    ]


def test_many_groups_without_a_reader_are_counted_together() -> None:
    before = unread_after(None, {f"g{at:05}": 2 for at in range(1500)})
    found = json.loads(unread_after(before, {"g00000": 1, "g99999": 7}))
    assert found == {"g00000": 3, **{f"g{at:05}": 2 for at in range(1, 1000)}, "": 1007}


@pytest.mark.parametrize("form", FORMS)
def test_a_dataframe_is_delivered_to_readers_of_a_dataframe(form: str, spark: SparkSession) -> None:
    made = Executions(2, 20)
    pairs = [(reader, group) for reader, reads in made.readers.items() for group in reads]
    readers = spark.createDataFrame(pairs, "reader string, group string")
    table = pa.Table.from_pylist([row_of(each, form) for each in made.messages], FORMS[form])
    left = spark.createDataFrame(table).transform(deliver(missing="wait", readers=readers, buckets=4))
    assert made.check([row.asDict() for row in left.collect()], made.messages) > 100

"""One sender against all: whatever some sources send, the messages of the others leave as if it had not come.

Honest sources answer each other; some of their messages are lost, doubled and late. Poisoned ones send what
they like: claims about messages of others, invented causes, impossible numbers, other messages under the same
number, rows that cannot be read. What becomes of the honest messages is compared with a run without the
poison; without losses, with the definition. And after every batch the books must balance.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from causet.spark.streams.pack import FAULT
from causet.stamp import HEARTBEAT
from tests.helpers.poisoned import Poisoned, Run, check, row

POLICIES = ("wait", "flag", "divert")
MORE = "more"


@pytest.mark.parametrize("policy", POLICIES)
def test_honest_messages_leave_as_if_there_were_no_poison_and_the_books_balance(policy: str) -> None:
    seen = set[str]().union(*(check(seed, policy) for seed in range(40)))
    also = {"wait": set[str](), "flag": {"flagged", "late"}, "divert": {"diverted"}}
    assert seen == {"delivered", *also[policy]}


@pytest.mark.soak
@pytest.mark.parametrize("part", range(10))
def test_ten_thousand_poisoned_streams(part: int) -> None:
    for seed in range(1000 + 1000 * part, 2000 + 1000 * part):
        check(seed, POLICIES[seed % 7 % 3])


def test_a_forged_number_of_another_source_is_a_conflict_with_the_first_that_came(
    made: dict[str, Any] | None = None,
) -> None:
    run = Run(Poisoned(1, losses=False), "wait", made)
    run.step(0, [row("a", 1, {}, "mine", id="1"), row("a", 2, {}, "two")])
    run.step(1, [row("a", 1, {}, "forged", id="1"), row("a", 2, {}, "two")])
    assert run.reports[1]["conflicts"] == 1 and run.reports[1]["duplicates"] == 1
    (conflict,) = run.left[1]
    assert conflict["problem"] == "has the number of another message of its source, with another id or data"
    assert (conflict["data"], conflict["index"], conflict["status"]) == ("forged", None, "diverted")


def test_what_follows_a_diverted_message_is_held_and_the_report_says_so(
    made: dict[str, Any] | None = None,
) -> None:
    run = Run(Poisoned(1, losses=False), "wait", made)
    run.step(0, [row("a", 1, {}), row("a", 2, "{"), row("a", 3, {})])
    assert run.reports[0]["blocked"] == "a:2, which was diverted"
    run.step(1, [row("a", 2, {})])
    assert [each["sequence"] for each in run.left[1]] == [2, 3], "it may be sent again, mended"


def test_a_heartbeat_is_counted_and_is_not_a_message(
    made: dict[str, Any] | None = None,
) -> None:
    run = Run(Poisoned(1, losses=False), "wait", made)
    run.step(0, [row("a", None, {}, type=HEARTBEAT), row("a", None, {}, type="other")])
    assert run.reports[0]["heartbeats"] == 1 and run.reports[0]["refused"] == 1
    assert [each["problem"] for each in run.left[0]] == ["has no sequence that is a number"]
    run.step(1, [row("b", 1, {}, **{FAULT: "is not JSON"})])
    assert [each["problem"] for each in run.left[1]] == ["is not JSON"]


def test_messages_are_known_by_their_process(made: dict[str, Any] | None = None) -> None:
    """By causalprocess, then by process, then by source. What an earlier release held, which knew the
    source only, has fewer columns."""
    run = Run(Poisoned(1, losses=False), "wait", made)
    run.step(0, [row("a", 2, {}, "old")])
    more = ("causalprocess", "process", "causalversion")
    run.schema = pa.schema([*run.schema, *((name, pa.string()) for name in more)])
    run.settings = replace(
        run.settings, process=more[:2], version="causalversion", columns=tuple(run.schema.names)
    )
    rows = [
        row("a", 1, {}, "first", causalprocess="a~1", process="a~2", causalversion="2"),
        row("a", 1, {}, "second", process="a~2"),
        row("a", 1, {}, "third", causalversion="1"),
        row("b", 1, {"a~1": 1, "a~2": 1, "a": 2}, "fourth", causalprocess="b~1"),
        row("a", 3, {}, "held", causalprocess="a~1"),
        row("c", 1, {}, "odd", causalversion="3"),
        row(None, 1, {}, "nobody", causalprocess="d~1"),
    ]
    run.step(1, rows)
    left = {each["data"]: each for each in run.left[1]}
    assert {name: each["problem"] for name, each in left.items() if each["problem"]} == {
        "odd": "has a causalversion that is not 1 or 2",
        "nobody": "has no source",
    }
    assert sorted(each["data"] for each in run.left[1] if each["status"] == "delivered") == [
        *("first", "fourth", "old", "second", "third"),
    ]
    assert left["fourth"]["index"] == 4 and left["old"]["causalprocess"] is None
    assert run.reports[1]["held"] == 1 and run.reports[1]["blocked"] == "a~1:2"
    run.settings = replace(run.settings, policy="flag", patience=0)
    run.step(2, [])
    [flagged] = run.left[2]
    assert flagged["missing"] == [("a~1", 2)]
    run.settings = replace(run.settings, policy="wait", patience=None)
    run.saved = run.holding.empty().to_bytes()
    run.step(3, [row("a", 2, {}, "again")])
    run.schema = pa.schema([*run.schema, (MORE, pa.string())])
    run.settings = replace(run.settings, columns=(*run.settings.columns, MORE))
    run.step(4, [row("e", 1, {})])
    run.settings = replace(run.settings, policy="flag", patience=0)
    run.step(5, [])
    assert [(each["data"], each[MORE]) for each in run.left[5]] == [("again", None)]


def test_a_clock_that_is_set_back_does_not_prolong_patience(made: dict[str, Any] | None = None) -> None:
    run = Run(Poisoned(1, losses=False), "flag", made)
    run.settings = replace(run.settings, patience=100)
    run.step(10_000, [row("a", 2, {})])
    run.step(50, [row("b", 2, {})])
    held = run.holding.from_bytes(run.saved)
    mine = run.module.Bucket(run.settings, held, run.segments, run.marks)
    [table] = mine.step([], 60, 60, last=True)
    assert sorted(each["source"] for each in table.to_pylist()) == ["a", "b"], "the end of the input ends it"
    assert min(each["waited"] for each in table.to_pylist()) >= 0

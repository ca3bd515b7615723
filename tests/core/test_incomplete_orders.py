"""Incomplete orders (Rodrigues & Verissimo, chapter 6): priorities, scopes, and messages past the order.

"Messages of the same priority could be delivered in causal order, but a message of high priority would not
need to be delayed by a low-priority message." And a footnote of chapter 5: "it should always be possible to
bypass the causality mechanisms". What a reader waits for comes from the definition, in
`tests/helpers/incomplete`.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from causet import RcClock, Stamper, envelope, frontier, stamp
from causet.envelope import bypasses, channels_of, frontier_of, numbers_of, priority_of, scope_of
from causet.errors import BadInput, BadStamp
from causet.frontier import Channels, channel, needs, needs_of
from causet.stamp import canonical, from_binary, to_binary
from tests.helpers.envelopes import PLACED
from tests.helpers.incomplete import check_bypass, check_incomplete_orders

MADE = {"frontier": frontier, "stamp": stamp, "envelope": envelope}


def test_a_reader_waits_for_its_scope_and_for_nothing_less_urgent() -> None:
    seen = check_incomplete_orders(MADE, range(100))
    assert min(seen.values()) > 150 and len(seen) == 4, "what this is about has happened"


def test_the_same_with_files_and_processes_that_are_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files are written anew all the time, or hardly ever."""
    monkeypatch.setattr(os, "fsync", lambda _: None)

    def folder(seed: int) -> Path:
        monkeypatch.setattr(stamp, "JOURNAL_LINES", 3 if seed % 2 else 10_000)
        found = tmp_path / str(seed)
        found.mkdir()
        return found

    check_incomplete_orders(MADE, range(40), folder=folder)


@pytest.mark.soak
def test_the_same_in_thousands_of_runs() -> None:
    check_incomplete_orders(MADE, range(1000, 4000), steps=120)


def test_an_alarm_does_not_wait_for_the_news_that_its_sender_had_read() -> None:
    """The news are slow; the alarm after them is delivered, and what is as urgent as the news waits."""
    desk, shop = Stamper("desk", "news", run="1"), Stamper("shop", "news", run="1")
    news = desk.stamp()
    shop.saw(news)
    alarm = shop.stamp(priority=2)
    assert alarm["causalpriority"] == 2 and "causalscope" not in alarm
    assert alarm["causalnumbers"] == '{"news":1}' and alarm["causalgroups"] == '["news"]'
    assert alarm["causaldeps"] == '{"news":{"desk~1":1}}', "it carries the news all the same"
    assert alarm["id"] == 'shop~1:[null, "news", 2, 1]'
    assert list(needs("shop~1", *frontier_of(alarm), Channels({"news"}, 2))) == []
    later = shop.stamp()
    assert later["causaldeps"] == '{"news":{"desk~1":1},"news\\u001f2":{"shop~1":1}}'
    waits = {(("desk~1", "news"), 1), (("shop~1", channel("news", 2)), 1)}
    assert set(needs("shop~1", *frontier_of(later), Channels({"news"}))) == waits
    assert numbers_of(later) == {"news": 1} and shop.numbers == {"news": 1, channel("news", 2): 1}
    other = shop.stamp(scope="audit")
    assert (other["causalscope"], other["causalnumbers"], other["causaldeps"]) == (
        "audit",
        '{"news":1}',
        "{}",
    )
    ids = [each["id"] for each in (alarm, later, other, shop.stamp(scope="audit", priority=2))]
    assert len({*ids}) == 4


def test_an_own_copy_waits_for_what_a_more_urgent_message_came_before() -> None:
    """A process reads where it writes. It delivers the alarm before the news in its past; what it writes then
    comes after both, so its own copy waits for the news."""
    desk, shop, home = (Stamper(name, "news", run="1") for name in ("desk", "shop", "home"))
    shop.saw(desk.stamp())
    home.saw(shop.stamp(priority=2))
    mine = home.stamp()
    wanted = dict(needs("home~1", *frontier_of(mine), Channels({"news"})))
    assert wanted == {("desk~1", "news"): 1, ("shop~1", channel("news", 2)): 1}
    assert dict(needs("home~1", *frontier_of(home.stamp(priority=2)), Channels({"news"}, 2))) == {
        ("shop~1", channel("news", 2)): 1
    }


def test_a_message_past_the_order_has_no_number_and_no_past() -> None:
    check_bypass(MADE)
    shop = Stamper("shop", run="1", clock=RcClock(50))
    alarm = shop.stamp(bypass=True, id="fire")
    assert alarm["id"] == "fire" and "causaltime" not in alarm, "a merge would put it into its order"
    again = shop.save()
    shop.saw({**alarm, "source": "bank", "causalprocess": None})
    assert shop.save() == again


def test_what_bypasses_the_order_is_kept_until_it_is_sent(tmp_path: Path) -> None:
    with Stamper("shop", file=tmp_path / "shop") as shop:
        first, second = shop.stamp("1", bypass=True), shop.stamp("2", scope="audit", priority=-1)
        third = shop.stamp("3", bypass=True)
        shop.sent(first)
    with Stamper("shop", file=tmp_path / "shop") as shop:
        assert shop.unsent == [second, third]
        shop.sent(json.loads(json.dumps(second)))
        shop.sent(third)
    with Stamper("shop", file=tmp_path / "shop") as shop:
        assert shop.unsent == []
        assert shop.stamp(scope="audit", priority=-1)["causalnumbers"] == '{"all":2}'


def test_a_cut_is_of_messages_without_a_scope() -> None:
    """It can name channels; readers wait for it by the priority of the message."""
    shop, desk = Stamper("shop", "news", run="1"), Stamper("desk", "news", run="1")
    for priority in (0, 2):
        shop.saw(desk.stamp(priority=priority))
        shop.saw(desk.stamp(priority=priority, scope="audit"))
    cut = {"news": {"desk~1": 1}, channel("news", 2): {"desk~1": 1}}
    shop.stable({"number": 1, "groups": cut})
    plain, scoped = shop.stamp(), shop.stamp(scope="audit")
    assert plain["causalcut"] == 1 and plain["causaldeps"] == "{}"
    assert "causalcut" not in scoped
    assert frontier_of(scoped).past == {"news": {"desk~1": 1}, channel("news", 2): {"desk~1": 1}}
    assert dict(needs_of(cut, Channels({"news"}, 1))) == {("desk~1", channel("news", 2)): 1}
    with pytest.raises(BadStamp, match="a message of a scope cannot have causalcut"):
        desk.saw({**scoped, "causalcut": 1})


def test_plain_messages_and_files_look_as_they_did(tmp_path: Path) -> None:
    with Stamper("shop", "news", file=tmp_path / "shop", run="1") as shop:
        assert shop.stamp(priority=0, scope=None, bypass=False) == {
            "specversion": "1.0",
            "id": "shop~1:news:1",
            "source": "shop",
            "type": "causet.message",
            "causalversion": 2,
            "causalprocess": "shop~1",
            "causalgroups": '["news"]',
            "causalnumbers": '{"news":1}',
            "causaldeps": "{}",
            "sequence": "00000000000000000001",
        }
        assert "scopes" not in json.loads(shop.save())


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"priority": "2"}, 'priority = "2": the priority of a message must be a whole number'),
        ({"priority": True}, "priority = true"),
        ({"priority": 1.0}, "priority = 1.0"),
        ({"priority": 2**31}, "between -2147483648 and 2147483647; a larger one is more urgent"),
        ({"priority": -(2**31) - 1}, "priority = -2147483649"),
        ({"scope": ""}, 'scope = "": the scope of a message must be text'),
        ({"scope": 5}, "scope = 5"),
        ({"scope": "\ud800"}, "half of a surrogate pair"),
        ({"bypass": 1}, "bypass = 1: a message bypasses the order, or not"),
        ({"bypass": True, "priority": 1}, "bypasses the order has no priority and no scope"),
        ({"bypass": True, "scope": "audit"}, "bypasses the order has no priority and no scope"),
        ({"to": "news\x1f2"}, "the name of a group cannot have the character U\\+001F"),
        ({"causalscope": "audit"}, '"causalscope" cannot be an attribute'),
        ({"causalpriority": "1"}, '"causalpriority" cannot be an attribute'),
        ({"causalbypass": "true"}, '"causalbypass" cannot be an attribute'),
    ],
)
def test_a_place_that_is_none_is_refused_and_uses_up_no_number(given: dict[str, Any], said: str) -> None:
    shop = Stamper("shop", run="1")
    before = shop.save()
    with pytest.raises(BadInput, match=said):
        shop.stamp(**given)
    assert shop.save() == before


def test_the_largest_and_the_smallest_priority_can_be_written_and_read() -> None:
    shop, bank = Stamper("shop", run="1"), Stamper("bank", run="1")
    for priority in (2**31 - 1, -(2**31)):
        message = shop.stamp(priority=priority)
        headers, value = to_binary(message)
        assert dict(headers)["ce_causalpriority"] == str(priority).encode()
        assert from_binary(headers, value) == message and priority_of(message) == priority
        bank.saw(message)
    keys = [channel("all", 2**31 - 1), channel("all", -(2**31))]
    assert frontier_of(bank.stamp()).past == {key: {"shop~1": 1} for key in keys}


def test_true_and_false_are_small_letters_in_headers() -> None:
    headers, _ = to_binary(Stamper("shop", run="1").stamp(bypass=True))
    assert dict(headers)["ce_causalbypass"] == b"true"
    assert from_binary(headers, None)["causalbypass"] is True
    no = [*((name, raw) for name, raw in headers if name != "ce_causalbypass"), ("ce_causalbypass", b"false")]
    assert from_binary(no, None)["causalbypass"] is False and not bypasses(from_binary(no, None))


@settings(max_examples=600, deadline=None)
@given(st.lists(PLACED, max_size=4))
def test_damaged_places_are_refused_and_change_nothing(envelopes: list[dict[str, Any]]) -> None:
    ben = Stamper("ben", run="1")
    ben.stamp(priority=2, scope="a")
    for each in envelopes:
        before = ben.save()
        try:
            ben.saw(each)
        except BadStamp as refused:
            assert ben.save() == before and "\n" not in str(refused)
            continue
        assert Stamper.restore(ben.save()).save() == ben.save(), "what was taken in can be written and read"
        if bypasses(each):
            assert ben.save() == before
            continue
        known = json.loads(ben.save())
        scope = scope_of(each)
        covered = (known if scope is None else known.get("scopes", {}).get(scope, {})).get("covered", {})
        for name, number in channels_of(each).items():
            process = each.get("causalprocess") or each["source"]
            assert process == ben.process or covered[name][process] >= number
    assert ben.stamp(priority=2, scope="a")["causalnumbers"] == '{"all":2}', "its own numbers are its own"


@pytest.mark.parametrize(
    "change",
    [
        {"scopes": []},
        {"scopes": {"": {"frontier": {}, "covered": {}}}},
        {"scopes": {"a": {"frontier": {}}}},
        {"scopes": {"a": {"frontier": {}, "covered": {}, "more": {}}}},
        {"scopes": {"a": {"frontier": {"g": {"p": 2}}, "covered": {"g": {"p": 1}}}}},
        {"scopes": {"a": {"frontier": {}, "covered": {"g\x1f0": {"p": 1}}}}},
        {"covered": {"g\x1fx": {"p": 1}}},
    ],
)
def test_damaged_states_are_refused(change: dict[str, Any]) -> None:
    state = json.loads(Stamper("ben", run="1").save())
    with pytest.raises(BadInput):
        Stamper.restore(json.dumps({**state, **change}))


@pytest.mark.parametrize(
    "line",
    [
        '{"saw": ["anna", {"g": 1}, {}, ""]}',
        '{"saw": ["anna", {"g": 1}, {}, "a", "b"]}',
        '{"saw": ["anna", {"g\\u001f0": 1}, {}]}',
        '{"sent": []}',
        '{"sent": ["g", "1"]}',
        '{"sent": ["g", 1, 5]}',
        '{"sent": ["g", 1, "a", "b"]}',
    ],
)
def test_damaged_lines_are_refused(tmp_path: Path, line: str) -> None:
    with Stamper("ben", file=tmp_path / "ben"):
        pass
    with (tmp_path / "ben").open("a") as file:
        file.write(line + "\n")
    with pytest.raises(BadInput, match="line 2: not a line of a stamper's file"):
        Stamper("ben", file=tmp_path / "ben")


def test_names_of_channels_are_in_canonical_order() -> None:
    past = {channel("b", 2): {"p": 1}, "b": {"p": 1}, "a": {"p": 1}, channel("b", 10): {"p": 1}}
    assert canonical(past) == '{"a":{"p":1},"b":{"p":1},"b\\u001f10":{"p":1},"b\\u001f2":{"p":1}}'

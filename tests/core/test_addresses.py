"""Messages to several groups: their numbers and pasts, as envelopes, through files and restarts.

What a reader must wait for comes from the definition (`tests/helpers/frontiers`): the past of each message as
a set of messages, which no stamper sees.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from causet import Stamper, stamp
from causet.envelope import MOST_DEPS
from causet.errors import BadInput, BadStamp
from causet.frontier import Stamped, needs
from causet.stamp import canonical, from_binary, frontier_of, numbers_of, pack_deps, pack_frontier, to_binary
from tests.helpers.envelopes import ANY, ENTRIES, ENVELOPE, NAME, NUMBER
from tests.helpers.frontiers import World


def test_a_message_has_a_number_in_each_of_its_groups() -> None:
    shop = Stamper("shop", ["orders", "audit"], run="1")
    first = shop.stamp("two cups", subject="tea")
    assert first == {
        "specversion": "1.0",
        "id": "shop~1:orders:1",
        "source": "shop",
        "type": "causet.message",
        "subject": "tea",
        "causalversion": 2,
        "causalprocess": "shop~1",
        "causalgroups": '["orders","audit"]',
        "causalnumbers": '{"audit":1,"orders":1}',
        "causaldeps": "{}",
        "data": "two cups",
    }
    second = shop.stamp(to="audit")
    assert second["id"] == "shop~1:audit:2" and second["sequence"] == "00000000000000000002"
    assert frontier_of(second) == ({"audit": 2}, {"orders": {"shop~1": 1}, "audit": {"shop~1": 1}})
    third = shop.stamp()
    assert frontier_of(third) == (
        {"orders": 2, "audit": 3},
        {"orders": {"shop~1": 1}, "audit": {"shop~1": 2}},
    )
    assert third["causaldeps"] == '{"audit":{"shop~1":2},"orders":{"shop~1":1}}', "canonical"
    assert shop.numbers == {"orders": 2, "audit": 3} and shop.to == ("orders", "audit")


def test_the_past_runs_through_groups_that_a_reader_does_not_read() -> None:
    shop, bank, till = (Stamper(name, run="1") for name in ("shop", "bank", "till"))
    order = shop.stamp(to="orders")
    bank.saw(order)
    payment = bank.stamp(to="payments")
    till.saw(payment)
    receipt = till.stamp(to="orders")
    assert frontier_of(receipt).past == {"orders": {"shop~1": 1}, "payments": {"bank~1": 1}}
    till.saw(order)
    assert frontier_of(till.stamp(to="orders")).past == {"orders": {"till~1": 1}, "payments": {"bank~1": 1}}


@pytest.mark.parametrize(
    ("to", "said"),
    [
        ("", 'must be text that is not empty and has no half of a surrogate pair, not ""'),
        (5, "must be text that is not empty and has no half of a surrogate pair, not 5"),
        (["a", None], "must be text that is not empty and has no half of a surrogate pair, not null"),
        (["a", "\ud800"], "must be text"),
        ({"a": 1}, "must be text"),
        ([], "the list of groups is empty"),
        (["a", "b", "a"], 'a message goes to each group once, and "a" is there twice'),
    ],
)
def test_an_address_that_is_none_is_refused_and_uses_up_no_number(to: Any, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        Stamper("shop", to)
    shop = Stamper("shop", "orders")
    with pytest.raises(BadInput, match=said):
        shop.stamp("two cups", to)
    assert shop.numbers == {}


def test_a_message_that_would_name_too_much_is_refused_until_a_cut_is_told() -> None:
    shop = Stamper("shop", run="1")
    envelope = {
        "source": "bank",
        "causalnumbers": '{"payments":1}',
        "causaldeps": canonical({f"g{number}": {"q": 1} for number in range(MOST_DEPS - 1)}),
    }
    shop.saw(envelope)
    with pytest.raises(BadInput, match="more than 10,000 messages, which is the most: tell"):
        shop.stamp()
    assert shop.numbers == {}
    shop.stable({"number": 1, "groups": {"g7": {"q": 1}}})
    message = shop.stamp()
    assert numbers_of(message) == {"all": 1} and message["causalcut"] == 1
    assert len(frontier_of(message).past) == MOST_DEPS - 1


def test_sent_is_said_once_for_all_groups(tmp_path: Path) -> None:
    with Stamper("shop", ["a", "b"], file=tmp_path / "shop") as shop:
        first, second, third = shop.stamp("1"), shop.stamp("2", to="b"), shop.stamp("3", to=["c", "a"])
        shop.sent(third)
        shop.sent(first)
        with pytest.raises(BadInput, match='a message of "till" is not one that "shop~'):
            shop.sent({"source": "till", "causalnumbers": '{"b":2}'})
    with Stamper("shop", "elsewhere", file=tmp_path / "shop") as shop:
        assert shop.unsent == [second] and shop.numbers == {"a": 2, "b": 2, "c": 1}
        assert frontier_of(shop.unsent[0]).past == {"a": {shop.process: 1}, "b": {shop.process: 1}}
        shop.sent(json.loads(json.dumps(second)))
        assert shop.unsent == [] and numbers_of(shop.stamp()) == {"elsewhere": 1}


# ---------------------------------------------------------------- against the definition


class Enveloped:
    """A stamper with the face of a `Frontier`. Its process may be killed at any time, and goes on by its
    file; and what it reads and writes goes through JSON and headers."""

    def __init__(self, process: str, post: dict[Any, str], draw: Random, folder: Path) -> None:
        self.process, self.post, self.draw = process, post, draw
        self.file = folder / process
        self.stamper = Stamper(process, file=self.file, run="1")

    def again(self) -> None:
        if self.draw.random() < 0.1:
            self.stamper.close()
            if self.draw.random() < 0.5:  # killed while it wrote a line
                self.file.write_bytes(self.file.read_bytes() + b'{"stamped": {"source"')
            self.stamper = Stamper(self.process, file=self.file)

    def stamp(self, groups: list[str]) -> Stamped:
        self.again()
        envelope = self.stamper.stamp(to=groups)
        if self.draw.random() < 0.5:
            self.stamper.sent(envelope)
        headers, value = to_binary(envelope)
        assert from_binary(headers, value) == envelope
        numbers, past = frontier_of(envelope)
        key = self.process, tuple(numbers.items())
        assert key not in self.post, "no number is used twice"
        self.post[key] = json.dumps(envelope)
        return Stamped(
            {group: numbers[group] for group in groups},
            {group: {p.removesuffix("~1"): n for p, n in each.items()} for group, each in past.items()},
        )

    def saw(self, process: str, numbers: Mapping[str, int], past: object) -> None:
        self.again()
        key = process, tuple(sorted(numbers.items()))
        self.stamper.saw(json.loads(self.post[key]))


@pytest.mark.parametrize("lines", [3, 10_000])
def test_stampers_say_what_the_definition_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: int
) -> None:
    """Random processes and groups; the files are written anew all the time, or never."""
    monkeypatch.setattr(stamp, "JOURNAL_LINES", lines)
    monkeypatch.setattr(os, "fsync", lambda _: None)
    for seed in range(60):
        post: dict[Any, str] = {}
        draw, folder = Random(seed), tmp_path / f"{lines} {seed}"
        folder.mkdir()

        def begun(process: str, post: Any = post, draw: Any = draw, folder: Path = folder) -> Enveloped:
            return Enveloped(process, post, draw, folder)

        world = World(SimpleNamespace(Frontier=begun, needs=needs), seed)
        world.run(60)
        for _ in range(2):
            world.check_reader(world.some())
        for each in world.stamps.values():
            each.stamper.close()


def test_lines_of_a_file_are_as_long_as_what_is_new(tmp_path: Path) -> None:
    """A message with thousands of entries in its past is a short line, if little of it is new."""
    desk, shop = Stamper("desk", run="1"), Stamper("shop", file=tmp_path / "shop")
    for number in range(500):
        desk.stamp(to=f"customer {number}")
    shop.saw(desk.stamp(to="orders"))
    size = (tmp_path / "shop").stat().st_size
    for _ in range(10):
        shop.saw(desk.stamp(to="orders"))
        shop.sent(shop.stamp(to="orders"))
    assert ((tmp_path / "shop").stat().st_size - size) / 30 < 250
    shop.close()
    with Stamper("shop", file=tmp_path / "shop") as again:
        assert len(frontier_of(again.stamp(to="orders")).past) == 501


def test_a_producer_that_begins_again_1000_times_does_not_make_stamps_grow() -> None:
    """Each life sees what the lives before it sent, or some of it, and writes; the desk answers."""
    draw = Random(1)
    desk = Stamper("desk")
    log: list[dict[str, Any]] = []
    largest = 0
    for _ in range(1000):
        shop = Stamper("shop")
        for envelope in log[-draw.randrange(1, 6) :]:
            shop.saw(envelope)
        order = shop.stamp(to="orders")
        desk.saw(order)
        answer = desk.stamp(to=draw.choice(["orders", "answers"]))
        log += [order, answer]
        for envelope in (order, answer):
            largest = max(largest, sum(map(len, frontier_of(envelope).past.values())))
    assert largest <= 4


# ---------------------------------------------------------------- older forms

VERSION_2 = """\
{"version": 2, "source": "ben", "process": "ben~1", "domain": "chat", "sequence": 4, \
"seen": {"anna~1": 2, "carl": 7}, "direct": {"carl": 7}, "rc": null}
{"saw": ["anna~1", 3, {"carl": 7}]}
{"stamped": {"specversion": "1.0", "id": "ben~1:chat:5", "source": "ben", "type": "causet.message", \
"causalversion": 2, "causalprocess": "ben~1", "causaldomain": "chat", "sequence": "00000000000000000005", \
"causaldeps": "{\\"anna~1\\":3}"}}
{"stamped": {"specversion": "1.0", "id": "ben~1:chat:6", "source": "ben", "type": "causet.message", \
"causalversion": 2, "causalprocess": "ben~1", "causaldomain": "chat", "sequence": "00000000000000000006", \
"causaldeps": "{}"}}
{"sent": 5}
{"saw": ["dora", 1, {}]}
"""
"""A file that was written before messages had several groups."""


def test_a_file_of_one_domain_is_taken_over(tmp_path: Path) -> None:
    file = tmp_path / "ben"
    file.write_text(VERSION_2)
    for _ in range(2):
        with Stamper("ben", "news", file=file) as ben:
            assert (ben.process, ben.numbers) == ("ben~1", {"chat": 6})
            [kept] = ben.unsent
            assert frontier_of(kept) == ({"chat": 6}, {})
            ben.saw({"source": "carl", "causaldomain": "chat", "sequence": "7"})
    with Stamper("ben", "news", file=file) as ben:
        found = frontier_of(ben.stamp())
        assert found == ({"news": 1}, {"chat": {"ben~1": 6, "dora": 1}}), "carl:7 was seen and is covered"
        assert numbers_of(ben.stamp(to="chat")) == {"chat": 7}


def test_a_saved_state_of_one_domain_is_taken_over() -> None:
    ben = Stamper.restore(VERSION_2.splitlines()[0])
    assert ben.to == ("chat",) and ben.numbers == {"chat": 4}
    assert frontier_of(ben.stamp()) == ({"chat": 5}, {"chat": {"ben~1": 4, "carl": 7}})
    new = json.loads(Stamper("anna").save())
    assert new["frontier"] == new["covered"] == {}


def test_envelopes_of_one_domain_are_read_among_others() -> None:
    """Version 1 in the group `all`, an early version 2 in its domain: their causes are of that group."""
    first = {"source": "anna", "sequence": "2", "causaldeps": '{"carl":1}'}
    second = {
        "source": "anna",
        "causalversion": 2,
        "causalprocess": "anna~1",
        "causaldomain": "chat",
        "sequence": "1",
        "causaldeps": "{}",
    }
    assert frontier_of(first) == ({"all": 2}, {"all": {"carl": 1}})
    assert frontier_of(second) == ({"chat": 1}, {})
    ben = Stamper("ben", run="1")
    ben.saw({"source": "carl", "sequence": "1"})
    for each in (first, second):
        ben.saw(each)
    assert frontier_of(ben.stamp()).past == {"all": {"anna": 2}, "chat": {"anna~1": 1}}


def test_attributes_that_are_null_are_absent_as_in_rows() -> None:
    old = {"source": "anna", "sequence": "2", "causaldeps": None, "causaldomain": None, "causalversion": None}
    new = Stamper("bank", run="1").stamp()
    null = dict.fromkeys(("causaldeps", "causalcut", "causalpriority", "causalscope", "causalbypass"))
    ben = Stamper("ben", run="1")
    for each in (old, {**new, **null}):
        assert frontier_of(each).past == {}
        ben.saw(each)
    assert frontier_of(ben.stamp()).past == {"all": {"anna": 2, "bank~1": 1}}


@pytest.mark.parametrize("text", ['{"carl":1,"carl":2}', '{"carl": 2, "carl": 1}'])
def test_a_cause_that_stands_twice_is_refused_in_either_version(text: str) -> None:
    for envelope in (
        {"source": "anna", "sequence": "2", "causaldeps": text},
        {"source": "anna", "causalnumbers": '{"all":2}', "causaldeps": f'{{"all":{text}}}'},
    ):
        with pytest.raises(BadStamp, match=r"^causaldeps .* no name stands twice, not"):
            frontier_of(envelope)


# ---------------------------------------------------------------- what strangers write

FUZZED = settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@FUZZED
@given(st.lists(ENVELOPE, max_size=4))
def test_damaged_envelopes_are_refused_and_change_nothing(envelopes: list[dict[str, Any]]) -> None:
    ben = Stamper("ben", run="1")
    ben.stamp()
    for envelope in envelopes:
        before = ben.save()
        try:
            ben.saw(envelope)
        except BadStamp as refused:
            assert ben.save() == before and "\n" not in str(refused)
            continue
        numbers, past = frontier_of(envelope)
        known = json.loads(ben.save())["covered"]
        for group, entries in {**past, **{group: {**past.get(group, {})} for group in numbers}}.items():
            for process, number in entries.items():
                assert process == ben.process or known[group][process] >= number
    assert numbers_of(ben.stamp()) == {"all": 2}, "one's own numbers are nobody else's"


@FUZZED
@given(st.data())
def test_damaged_files_are_refused_and_stay_as_they_are(tmp_path: Path, data: st.DataObject) -> None:
    """Bytes of a good file are changed: it is refused in a sentence and not touched, or read, and then the
    next message has numbers that follow."""
    file = tmp_path / "ben"
    file.unlink(missing_ok=True)
    anna = Stamper("anna", run="1")
    with Stamper("ben", file=file, run="1") as ben:
        ben.saw(anna.stamp(to=["a", "b"]))
        ben.stamp("1", to="a")
        ben.sent(ben.stamp("2", to=["a", "b"]))
        ben.saw(anna.stamp(to="c"))
        ben.stable({"number": 1, "groups": {"a": {"anna~1": 1}}})
    raw = bytearray(file.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.sampled_from(b'0129{}[]":,ab\n\xff'))
    file.write_bytes(raw)
    try:
        with Stamper("ben", file=file) as ben:
            before = ben.numbers
            assert numbers_of(ben.stamp(to="a")) == {"a": before.get("a", 0) + 1}
    except BadInput as refused:
        assert file.read_bytes() == raw and "\n" not in str(refused)


@FUZZED
@given(ENTRIES | ANY, ENTRIES | ANY)
def test_damaged_states_are_refused(frontier: Any, covered: Any) -> None:
    state = {**json.loads(Stamper("ben", run="1").save()), "frontier": frontier, "covered": covered}
    for change in ({}, {"cut": frontier}, {"used": frontier}, {"to": frontier}, {"unsent": frontier}):
        try:
            Stamper.restore(json.dumps({**state, **change})).stamp()
        except BadInput as refused:
            assert "\n" not in str(refused)


# ---------------------------------------------------------------- packed


def test_the_packed_form_is_that_of_the_document() -> None:
    """By hand, from docs/formats.md."""
    past = {"b": {"p": 1}, "a": {"q2": 2**40, "ä": 3}}
    wanted = bytes.fromhex("02") + b"".join(
        [
            *(b"\x01\x00a", b"\x02\x00\x00\x00"),
            *((2**40).to_bytes(8, "little"), b"\x02\x00q2"),
            *(b"\x03" + bytes(7), b"\x02\x00\xc3\xa4"),
            *(b"\x01\x00b", b"\x01\x00\x00\x00"),
            *(b"\x01" + bytes(7), b"\x01\x00p"),
        ]
    )
    assert pack_frontier(past) == wanted
    assert pack_frontier({"a": {"ä": 3, "q2": 2**40}, "b": {"p": 1}, "c": {}}) == wanted, "equal pasts"
    assert pack_frontier({}) == b"\x02" and pack_deps({}) == b"\x01"
    with pytest.raises(BadInput, match="the name of a group is too long"):
        pack_frontier({"x" * 2**16: {"p": 1}})


@given(
    st.dictionaries(st.text(min_size=1, max_size=3), st.dictionaries(NAME, NUMBER, max_size=3), max_size=3)
)
def test_packed_pasts_can_be_read_back(past: dict[str, dict[str, int]]) -> None:
    """By a reader that knows nothing but the document."""
    raw = pack_frontier(past)
    assert raw[0] == 2
    at, found = 1, {}

    def number(size: int) -> int:
        nonlocal at
        at += size
        return int.from_bytes(raw[at - size : at], "little")

    def name() -> str:
        nonlocal at
        size = number(2)
        at += size
        return raw[at - size : at].decode()

    while at < len(raw):
        group = name()
        pairs = []
        for _ in range(number(4)):
            value = number(8)
            pairs.append((name(), value))
        found[group] = dict(pairs)
    assert found == {group: each for group, each in past.items() if each}
    assert list(found) == sorted(found)

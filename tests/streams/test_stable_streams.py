"""Cuts on Spark, the whole way: queries publish them, stampers forget by them, and no reader is early.

The past of each message is kept here as a set of ids, which no stamper sees.
"""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from causet import Cuts, Stamper
from causet.envelope import cut_of, frontier_of
from tests.helpers.commands import LOCAL, causet, refused, rows_in

GROUPS = ["orders", "payments", "parcels", "audit"]
READERS = {"desk": ["orders", "payments"], "depot": ["payments", "parcels"], "auditor": [*GROUPS]}


class Producers:
    """Processes that write to groups and see what others write; and the past of each message."""

    def __init__(self, place: Path, seed: int) -> None:
        self.rng = random.Random(seed)
        self.place = place
        self.stampers = {name: Stamper(name, run="1") for name in ("shop", "bank", "carrier", "till", "web")}
        self.seen: dict[str, set[str]] = {name: set() for name in self.stampers}
        self.sent: dict[str, dict[str, Any]] = {}
        self.past: dict[str, set[str]] = {}

    def write(self, count: int) -> list[dict[str, Any]]:
        """Messages in the order in which they were sent."""
        for _ in range(count):
            name = self.rng.choice([*self.stampers])
            for id in self.rng.sample([*self.sent], min(len(self.sent), 3)):
                if self.rng.random() < 0.7:
                    self.stampers[name].saw(self.sent[id])
                    self.seen[name] |= self.past[id] | {id}
            to = self.rng.sample(GROUPS, self.rng.choice([1, 1, 2]))
            message = self.stampers[name].stamp({"n": len(self.sent)}, to=to)
            id = str(message["id"])
            self.sent[id], self.past[id] = message, {*self.seen[name]}
            self.seen[name].add(id)
        return [*self.sent.values()][-count:]

    def hear(self, some: Iterable[str]) -> None:
        """Some hear of the newest cut."""
        cut = Cuts(self.place).newest()
        if cut is not None:
            for name in some:
                self.stampers[name].stable(cut)

    def due(self, groups: Iterable[str]) -> set[str]:
        return {id for id, each in self.sent.items() if {*frontier_of(each).numbers} & {*groups}}


def write(folder: Path, number: int, messages: Iterable[Mapping[str, Any]]) -> None:
    folder.mkdir(exist_ok=True)
    beside = folder / f".{number:04}"
    beside.write_text("".join(f"{json.dumps(each)}\n" for each in messages))
    beside.replace(folder / f"{number:04}.jsonl")


def check(producers: Producers, rows: list[dict[str, Any]], readers: Mapping[str, list[str]]) -> None:
    """Each reader has every message to its groups once, and none before one of its past."""
    for reader, groups in readers.items():
        mine = sorted((each for each in rows if each["receiver"] == reader), key=lambda each: each["index"])
        got = [each["id"] for each in mine]
        assert {each["status"] for each in mine} == {"delivered"}
        assert len(got) == len({*got}) and {*got} == producers.due(groups)
        places = {id: at for at, id in enumerate(got)}
        assert not [
            (id, cause)
            for id, at in places.items()
            for cause in producers.past[id] & places.keys()
            if places[cause] > at
        ]


@pytest.mark.jvm
def test_stampers_forget_by_cuts_and_no_reader_of_whatever_query_is_early(tmp_path: Path) -> None:
    place = tmp_path / "place"
    producers = Producers(place, 11)

    def deliver(source: str, out: str, readers: Mapping[str, list[str]], *more: object) -> dict[str, Any]:
        (tmp_path / "readers.json").write_text(json.dumps(readers))
        words = ["deliver", tmp_path / source, tmp_path / out, "--missing", "wait", "--buckets", 4]
        words += ["--readers", tmp_path / "readers.json", "--stable", place, "--json", *more, *LOCAL]
        found: dict[str, Any] = json.loads(causet(*words))
        assert found["books"]["balance"]
        return found

    names = [*producers.stampers]
    for number in range(4):
        batch = producers.write(30)
        producers.rng.shuffle(batch)
        write(tmp_path / "in", number, batch)
        found = deliver("in", "out", READERS)
        assert found["held"] == 0
        producers.hear(names if number % 2 else names[:3])
    check(producers, rows_in(tmp_path / "out"), READERS)
    named = [cut_of(each) for each in producers.sent.values()]
    assert len({*named}) >= 3 and sum(map(bool, named)) > 40, "most later messages name a cut"
    last = producers.stampers["web"].stamp(to="audit")
    assert frontier_of(last).past == {}, "all of its past is in the cut"

    # Another query, whose readers no cut counted; files in another order, one in a batch.
    late = {"late": ["orders", "parcels"], "all": [*GROUPS]}
    everything = [*producers.sent.values()]
    producers.rng.shuffle(everything)
    for number in range(3):
        write(tmp_path / "again", number, everything[number::3])
    refused_words = ["deliver", tmp_path / "again", tmp_path / "none", "--missing", "wait", "--strict"]
    assert "names a cut, which can be waited for only with its place" in refused(*refused_words, *LOCAL)
    assert deliver("again", "second", late, "--files-per-batch", 1)["held"] == 0
    check(producers, rows_in(tmp_path / "second"), late)

    # The first one again, without its checkpoint and its output.
    for folder in tmp_path.glob("out*"):
        shutil.rmtree(folder)
    assert deliver("again", "out", READERS)["held"] == 0
    check(producers, rows_in(tmp_path / "out"), READERS)
    newest = Cuts(place).newest()
    assert newest is not None
    for group, entries in newest.groups.items():
        for process, number in entries.items():
            mine = [each for each in producers.sent.values() if each["causalprocess"] == process]
            assert number <= max(frontier_of(each).numbers.get(group, 0) for each in mine)


@pytest.mark.jvm
def test_a_cut_that_is_damaged_ends_the_query_with_a_sentence_and_loses_nothing(tmp_path: Path) -> None:
    place = tmp_path / "place"
    shop, bank = Stamper("shop", run="1"), Stamper("bank", run="1")
    order = shop.stamp(to="orders")
    words = ["deliver", tmp_path / "in", tmp_path / "out", "--missing", "wait", "--stable", place]
    write(tmp_path / "in", 0, [order])
    causet(*words, *LOCAL)
    bank.saw(order)
    cut = Cuts(place).newest()
    assert cut is not None and cut.number == 1
    bank.stable(cut)
    write(tmp_path / "in", 1, [bank.stamp(to="payments")])
    file = place / "cuts" / f"{1:016}.json"
    text = file.read_text()
    file.write_text("{")
    _, line = refused(*words, *LOCAL).strip().splitlines()
    assert line == f"causet: {file}: it is not JSON, and was not written by causet"
    file.write_text(text)
    causet(*words, *LOCAL)
    assert [each["source"] for each in rows_in(tmp_path / "out")] == ["shop", "bank"]

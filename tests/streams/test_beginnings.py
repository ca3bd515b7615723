"""Where readers begin that join others, change or leave: at a checkpoint, and at a new one.

What each must get is known by happened-before and by sets of messages alone (`tests.helpers.joining`).
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from causet.errors import BadInput
from causet.kernels.streams.beginning import Counted, covers, union
from causet.kernels.streams.keys import digests
from causet.readers import readers_of
from causet.spark import deliver
from causet.spark.streams.beginnings.cut import read_cut
from causet.spark.streams.beginnings.export import cut_of, known_to
from causet.spark.streams.beginnings.kept import Beginnings
from causet.spark.streams.beginnings.now import State
from causet.spark.streams.beginnings.plan import check_added, check_first
from causet.spark.streams.checkpoint import Checkpoint
from causet.spark.streams.parquet import buckets_of
from tests.helpers.commands import LOCAL, causet, rows_in
from tests.helpers.grouped import execution
from tests.helpers.joining import Model, check_joining
from tests.helpers.readers import Row, Served, envelope, write_batches
from tests.helpers.streams import dies_after_writing


def told(rows: Iterable[Row]) -> list[tuple[str, str, str]]:
    return [(each["receiver"], each["id"], each["status"]) for each in rows]


def test_a_reader_that_begins_now_gets_what_is_held_and_what_comes_and_nothing_before(
    tmp_path: Path, of: Any = None
) -> None:
    served = Served({"a": ["g"]}, made=of)
    served.step([envelope("m1", "p", {"g": 1}), envelope("m3", "p", {"g": 3})], 0)
    assert not served.restart({"a": ["g"], "b": ["g"]}, tmp_path, 1)
    assert served.held == 2 and served.counts["copies"] == 1
    left = served.step([envelope("m2", "p", {"g": 2})], 2)
    assert sorted(told(left)) == [
        (reader, name, "delivered") for reader in ("a", "b") for name in ("m2", "m3")
    ]


def test_the_cut_is_that_of_the_reader_that_is_furthest(tmp_path: Path, of: Any = None) -> None:
    """b has not got m2, since it reads h as well; c begins after m2, and only b gets it later."""
    served = Served({"a": ["g"], "b": ["g", "h"]}, made=of)
    served.step([envelope("m1", "p", {"g": 1}), envelope("m2", "p", {"g": 2}, {"h": {"q": 1}})], 0)
    assert not served.restart({"a": ["g"], "b": ["g", "h"], "c": ["g"]}, tmp_path, 1)
    left = served.step([envelope("m3", "p", {"g": 3}), envelope("n1", "q", {"h": 1})], 2)
    assert [each for each in told(left) if each[0] == "c"] == [("c", "m3", "delivered")]
    assert [name for reader, name, _ in told(left) if reader == "b"] == ["n1", "m2", "m3"]


def test_what_is_in_the_cut_and_comes_again_is_a_duplicate_and_what_was_missing_is_late(
    tmp_path: Path, of: Any = None
) -> None:
    served = Served({"a": ["g"]}, "flag", 10, made=of)
    served.step([envelope("m1", "p", {"g": 1}), envelope("m3", "p", {"g": 3})], 0)
    assert told(served.step([], 10)) == [("a", "m3", "flagged")]
    served.restart({"b": ["g"]}, tmp_path, 11)
    left = served.step([envelope("m1", "p", {"g": 1}), envelope("m2", "p", {"g": 2})], 12)
    assert told(left) == [("b", "m2", "late")] and served.counts["duplicates"] == 1
    assert told(served.step([envelope("m4", "p", {"g": 4})], 13)) == [("b", "m4", "delivered")]


def test_a_message_to_two_groups_is_due_in_the_one_where_it_is_not_in_the_cut(
    tmp_path: Path, of: Any = None
) -> None:
    served = Served({"a": ["g"], "b": ["h"]}, made=of)
    both = envelope("both", "p", {"g": 1, "h": 1}, {"h": {"q": 1}})
    assert told(served.step([both], 0)) == [("a", "both", "delivered")]
    served.restart({"a": ["g"], "b": ["h"], "c": ["g", "h"]}, tmp_path, 1)
    left = served.step([envelope("first", "q", {"h": 1})], 2)
    assert [name for reader, name, _ in told(left) if reader == "c"] == ["first", "both"]


def test_what_a_reader_holds_is_in_the_cut_of_a_group_that_it_adds_if_another_one_has_it(
    tmp_path: Path, of: Any = None
) -> None:
    """a holds it in h, and b has delivered it in g: what follows it in g waits for nothing."""
    served = Served({"a": ["h"], "b": ["g"], "c": ["h"]}, made=of)
    served.step([envelope("both", "p", {"g": 1, "h": 1}, {"h": {"q": 1}})], 0)
    assert not served.restart({"a": ["h", "g"], "b": ["g"], "c": ["h"]}, tmp_path, 1)
    left = served.step([envelope("next", "p", {"g": 2})], 2)
    assert sorted(told(left)) == [("a", "next", "delivered"), ("b", "next", "delivered")]
    left = served.step([envelope("first", "q", {"h": 1})], 3)
    assert [each for each in told(left) if each[0] == "a"] == [
        ("a", "first", "delivered"),
        ("a", "both", "delivered"),
    ]


def test_what_two_readers_hold_comes_once_and_is_no_duplicate(tmp_path: Path, of: Any = None) -> None:
    served = Served({"a": ["g"], "b": ["h"]}, made=of)
    served.step([envelope("both", "p", {"g": 2, "h": 2})], 0)
    assert not served.restart({"a": ["g", "h"], "b": ["h"]}, tmp_path, 1)
    assert served.held == 2 and served.counts["duplicates"] == 0
    left = served.step([envelope("first", "p", {"g": 1, "h": 1})], 2)
    assert [name for reader, name, _ in told(left) if reader == "a"] == ["first", "both"]


def test_what_a_reader_has_got_in_a_group_that_it_reads_again_does_not_stop_it(
    tmp_path: Path, of: Any = None
) -> None:
    served = Served({"a": ["g", "k"], "b": ["h"], "c": ["k", "x"]}, made=of)
    all_three = envelope("m", "p", {"g": 1, "h": 1, "k": 1}, {"x": {"q": 1}})
    assert [reader for reader, _, _ in told(served.step([all_three], 0))] == ["a", "b"]
    served.restart({"a": ["g"], "b": ["h"], "c": ["k", "x"]}, tmp_path, 1)
    assert not served.restart({"a": ["g", "h", "k"], "b": ["h"], "c": ["k", "x"]}, tmp_path, 2)
    left = served.step([envelope("n", "p", {"g": 2, "h": 2, "k": 2})], 3)
    assert sorted(told(left)) == [("a", "n", "delivered"), ("b", "n", "delivered")]


def test_what_a_reader_holds_waits_for_causes_in_groups_that_it_adds(tmp_path: Path, of: Any = None) -> None:
    served = Served({"a": ["g"], "b": ["h"]}, made=of)
    served.step([envelope("m2", "p", {"g": 2}, {"h": {"q": 1}})], 0)
    served.restart({"a": ["g", "h"], "b": ["h"]}, tmp_path, 1)
    assert not served.step([envelope("m1", "p", {"g": 1}, {"h": {"q": 1}})], 2)
    left = served.step([envelope("n1", "q", {"h": 1})], 3)
    assert [name for reader, name, _ in told(left) if reader == "a"] == ["n1", "m1", "m2"]


def test_what_a_reader_holds_in_groups_that_it_drops_is_diverted_and_says_why(
    tmp_path: Path, of: Any = None
) -> None:
    served = Served({"a": ["g", "h"], "b": ["h"]}, made=of)
    served.step([envelope("m2", "p", {"h": 2}), envelope("n2", "p", {"g": 2}, {"h": {"p": 2}})], 0)
    left = served.restart({"a": ["g"], "b": ["h"]}, tmp_path, 1)
    assert [(each["id"], each["status"], each["problem"]) for each in left] == [
        ("m2", "diverted", "came for a reader that does not read its groups any more")
    ]
    assert [name for _, name, _ in told(served.step([envelope("n1", "p", {"g": 1})], 2))] == ["n1", "n2"]


def test_a_reader_cannot_get_a_message_again_through_a_group_that_it_adds(
    tmp_path: Path, of: Any = None
) -> None:
    served = Served({"a": ["g"], "b": ["h"]}, made=of)
    served.step([envelope("both", "p", {"g": 1, "h": 1}, {"h": {"q": 1}})], 0)
    with pytest.raises(
        BadInput, match=r'^reader "a" cannot begin in the group "h" now: it has delivered p:1,'
    ):
        served.restart({"a": ["g", "h"], "b": ["h"]}, tmp_path, 1)


def test_a_message_does_not_come_again_through_another_group_if_the_first_is_dropped(
    tmp_path: Path, of: Any = None
) -> None:
    served = Served({"a": ["g"], "b": ["h"]}, made=of)
    served.step([envelope("both", "p", {"g": 1, "h": 1}, {"h": {"q": 1}})], 0)
    with pytest.raises(BadInput, match=r"or give the reader another name$"):
        served.restart({"a": ["h"], "b": ["h"]}, tmp_path, 1)


def test_numbers_go_on_from_the_cut_and_what_is_not_known_below_it_is_diverted(
    tmp_path: Path, of: Any = None
) -> None:
    served, kept, far = Served({"a": ["g"]}, made=of), Beginnings(tmp_path / "beginnings"), 3 * 10**9
    kept.begin()
    cut = Counted(digests(["p"]), np.array([1]), np.array([far]), np.array([5]))
    kept.count(int(buckets_of(pa.array(["a"]), 3)[0]), "a", digests(["g"]), cut)
    kept.written(-1, None, readers_of({"a": ["g"]}))
    served.begin(kept)
    assert told(served.step([envelope("next", "p", {"g": far + 1})], 1)) == [("a", "next", "delivered")]
    (left,) = served.step([envelope("old", "p", {"g": 4})], 2)
    assert left["problem"] == "came too late: it is not known any longer whether it was delivered"
    assert not served.step([envelope("six", "p", {"g": 6})], 3) and served.counts["duplicates"] == 1


def test_readers_that_join_change_and_leave_get_exactly_what_is_due() -> None:
    seen = Counter[str]()
    for seed in range(30):
        seen += check_joining(seed)
    assert min(seen[each] for each in ("joined", "changed", "copies", "left")) > 0, seen


def test_where_patience_ends_each_reader_gets_once_what_is_due() -> None:
    seen = Counter[str]()
    for seed in range(30):
        seen += check_joining(seed, flags=True)
    assert min(seen[each] for each in ("joined", "changed", "copies", "left")) > 0, seen


@pytest.mark.soak
def test_the_same_in_thousands_of_executions() -> None:
    for seed in range(1000, 4000):
        check_joining(seed, flags=seed % 3 == 0)


# ---------------------------------------------------------------- who may begin


A, AB = {"a": ["g"]}, {"a": ["g"], "b": ["g"]}


@pytest.mark.parametrize(
    ("before", "since", "begin", "problem"),
    [
        (A, AB, None, 'reader "b" is new to this checkpoint: with --begin now '),
        (
            A,
            {"a": ["g", "h"]},
            None,
            'the group "h" of reader "a" is new to this checkpoint: with --begin now ',
        ),
        (A, AB, "front", 'reader "b" cannot begin at the front .*: give it a query of its own, '),
        (A, AB, "cut.json", 'reader "b" is new to this checkpoint, and --begin cut.json is for a new one'),
        (
            A,
            {"b": ["h"]},
            "now",
            'reader "b" cannot begin in the group "h" now: no reader of this checkpoint ',
        ),
    ],
)
def test_who_cannot_begin_is_told_what_to_do(
    before: Any, since: Any, begin: str | None, problem: str
) -> None:
    with pytest.raises(BadInput, match=f"^{problem}"):
        check_added(readers_of(before), readers_of(since), begin)


def test_whoever_only_leaves_needs_no_word() -> None:
    found = check_added(readers_of({"a": ["g", "h"], "b": ["g"]}), readers_of(A), None)
    assert (found.added, found.dropped, found.removed) == ({}, {"a": ("h",)}, ("b",))
    assert check_added(readers_of("each"), readers_of("each"), "now").changed == ()
    with pytest.raises(BadInput, match=r"^--begin now is for readers that join others at a checkpoint"):
        check_first("now")


@pytest.mark.parametrize("name", ["by", "parent"])
def test_only_readers_of_groups_begin(name: str) -> None:
    with pytest.raises(BadInput, match=f"^begin cannot be used with {name} "):
        deliver(
            missing="wait",
            begin="now",
            by="x" if name == "by" else None,
            parent="x" if name == "parent" else None,
        )


@pytest.mark.parametrize("begin", ["now", "cut.json"])
def test_a_query_of_your_own_begins_at_the_front(begin: str) -> None:
    nothing: Any = None
    with pytest.raises(BadInput, match=rf'^begin = "{begin}" needs the checkpoint of `causet deliver`'):
        deliver(missing="wait", begin=begin)(nothing)


def test_a_cut_is_not_exported_for_readers_that_have_not_begun(tmp_path: Path) -> None:
    served, kept = Served({"a": ["g"]}), Beginnings(tmp_path)
    served.step([envelope("m1", "p", {"g": 1})], 0)

    def heads() -> dict[int, Any]:
        return {number: served.holding.from_bytes(saved[0]) for number, saved in served.saved.items()}

    before, since = served.settings.readers, readers_of(AB)
    assert known_to(heads(), kept, before) == before
    old = heads()
    served.restart(AB, tmp_path, 1)
    assert known_to(old, kept, since) == before and known_to(heads(), kept, since) == since
    assert set(cut_of(heads(), since, served.settings.buckets)["readers"]) == {"a", "b"}


def test_a_beginning_that_no_batch_has_seen_is_replaced_whole(tmp_path: Path) -> None:
    kept, readers = Beginnings(tmp_path / "beginnings"), readers_of(A)
    assert kept.last() is None
    one = Counted(digests(["p"]), np.array([1]), np.array([7]), np.array([0]))
    for number in (7, 8):
        kept.begin()
        kept.count(3, "a", digests(["g"]), one._replace(high=np.array([number])))
        assert kept.last() is None or number == 8, "it is not there until it is complete"
        kept.written(4, None, readers)
    found = kept.ahead(4)
    assert found is not None and (found.number, found.before, found.since) == (2, None, readers)
    assert [each.high.tolist() for _, each in found.counted(3)] == [[8]]
    assert kept.ahead(5) is None and kept.counting() is not None
    kept.prune(4)
    assert [each.name for each in kept.folder.iterdir()] == ["2"] and kept.counting() is not None
    kept.prune(5)
    assert kept.counting() is None and kept.last() is not None, "numbers are not used again"


# ---------------------------------------------------------------- cuts in files


def test_ranges_that_overlap_are_one() -> None:
    p, q = digests(["p"])[0], digests(["q"])[0]
    rng = random.Random(5)
    for _ in range(200):
        parts, wanted = [], set[tuple[str, int]]()
        for _ in range(rng.randrange(4)):
            name, low = rng.choice("pq"), rng.randrange(1, 12)
            high = low + rng.randrange(4)
            wanted |= {(name, number) for number in range(low, high + 1)}
            key = np.array([p if name == "p" else q])
            parts.append(Counted(key, np.array([low]), np.array([high]), np.array([0])))
        whole = union(parts)
        asked = [(name, number) for name in "pq" for number in range(1, 18)]
        found = covers(whole, digests([name for name, _ in asked]), np.array([number for _, number in asked]))
        assert {each for each, here in zip(asked, found.tolist(), strict=True) if here} == wanted


@pytest.mark.parametrize("readers", [{"a": ["g", "h"], "b": ["g"]}, "each", None])
def test_an_exported_cut_is_where_another_checkpoint_begins(readers: Any, tmp_path: Path) -> None:
    served = Served(readers)
    messages = [
        envelope("m1", "p", {"g": 1}),
        envelope("m2", "p", {"g": 2, "h": 1}, {"h": {"q": 1}}),
        envelope("n1", "p", {"h": 2}),
    ]
    before = told(served.step(messages, 0))
    heads = {number: served.holding.from_bytes(saved[0]) for number, saved in served.saved.items()}
    file = tmp_path / "cut.json"
    file.write_text(json.dumps(cut_of(heads, readers_of(readers), served.settings.buckets)))
    kept, again = Beginnings(tmp_path / "beginnings"), Served(readers)
    kept.begin()
    state = State({}, lambda bucket: iter(()), again.settings)
    for reader, group, counted in read_cut(file).beginnings(readers_of(readers)):
        kept.count(state.bucket_of(reader), reader, np.frombuffer(group, "S16"), counted)
    kept.written(-1, None, readers_of(readers))
    again.begin(kept)
    rest = envelope("q1", "q", {"h": 1})
    after = [*told(again.step(messages, 0)), *told(again.step([rest], 1))]
    assert sorted(after) == sorted(told(served.step([rest], 1))) and before
    assert again.counts["duplicates"] == len(before)


def test_a_cut_can_be_written_by_hand(tmp_path: Path) -> None:
    file = tmp_path / "cut.json"
    about = {"g": {"processes": {"p": 4, "q": [[1, 2], [4, 6]]}}, "h": {}}
    file.write_text(json.dumps({"version": 1, "groups": about}))
    found = read_cut(file)
    counted = found.of("anyone", "g")
    assert covers(counted, digests(["p", "p", "q", "q", "q"]), np.array([4, 5, 2, 3, 6])).tolist() == [
        *(True, False, True, False, True)
    ]
    assert not len(found.of("anyone", "h").low)
    with pytest.raises(
        BadInput, match=r'cut.json has no cut of the group "k", which reader "r" reads; add it'
    ):
        list(found.beginnings(readers_of({"r": ["g", "k"]})))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "it is not JSON"),
        ("[]", 'it must be a JSON object with "version": 1'),
        ('{"version": 2}', 'it must be a JSON object with "version": 1'),
        ('{"version": 1, "group": {}}', 'a cut has "version", "readers", "groups", and not "group"'),
        ('{"version": 1, "groups": {"g": {"p": 1}}}', 'a group has "processes", "digests", and not "p"'),
        ('{"version": 1, "groups": {"g": {"digests": {"p": 1}}}}', "a digest has 32 digits from 0 to f"),
        ('{"version": 1, "groups": {"g": {"processes": {"p": -1}}}}', "a number, or ranges such as "),
        ('{"version": 1, "groups": {"g": {"processes": {"p": [[3, 1]]}}}}', "a number, or ranges such as "),
        ('{"version": 1, "readers": []}', "readers: a map is expected, not \\[]"),
    ],
)
def test_what_is_not_a_cut_is_refused_in_a_sentence(text: str, problem: str, tmp_path: Path) -> None:
    file = tmp_path / "cut.json"
    file.write_text(text)
    with pytest.raises(BadInput, match=f"cut.json: {problem}"):
        read_cut(file)


# ---------------------------------------------------------------- on Spark


class Runs:
    """Runs of one command on one checkpoint, with other readers each time."""

    def __init__(self, home: Path) -> None:
        rng = random.Random(7)
        made, self.groups = execution(rng, 6, 4, 150)
        order = sorted(made, key=lambda each: int(each.name[1:]) + rng.random() * 40)
        self.parts = [order[:60], order[60:110], order[110:]]
        self.home = home
        self.model = Model(made, {"a": self.groups[:2], "b": self.groups[1:], "c": self.groups})
        self.taken = 0

    def run(self, readers: dict[str, list[str]], *more: object, out: str = "out") -> dict[str, Any]:
        file = self.home / "readers.json"
        file.write_text(json.dumps(readers))
        command = ["deliver", self.home / "in", self.home / out, "--missing", "wait", "--readers", file]
        found: dict[str, Any] = json.loads(causet(*command, "--buckets", 4, "--json", *more, *LOCAL))
        assert found["books"]["balance"]
        return found

    def write(self, part: int) -> None:
        write_batches(self.home / "in", self.parts[part], 25, first=10 * part)
        self.model.arrive({each.name for each in self.parts[part]})

    def check(self) -> None:
        known = {(reader, name) for reader, names in self.model.got.items() for name in names}
        rows = [*rows_in(self.home / "out"), *rows_in(self.home / "out-diverted")]
        new = [each for each in rows if (each["receiver"], each["id"]) not in known]
        self.model.take(sorted(new, key=lambda each: each["index"]))
        self.model.check()


@pytest.mark.jvm
def test_readers_join_and_leave_from_run_to_run_though_one_is_killed(tmp_path: Path) -> None:
    runs = Runs(tmp_path)
    a, b, c = (runs.model.reads[name] for name in "abc")
    runs.write(0)
    runs.run({"a": a, "b": b, "c": c})
    runs.check()
    joined = {"a": a, "b": b, "c": c, "d": b, "e": a}
    with pytest.raises(BadInput, match=r'^reader "d" is new to this checkpoint: with --begin now'):
        runs.run(joined)
    assert runs.model.begin(joined)
    runs.write(1)
    with pytest.MonkeyPatch.context() as patch:
        dies_after_writing(patch, lambda *_: True)
        with pytest.raises(BadInput, match=r"^the run ends here$"):
            runs.run(joined, "--begin", "now")
    found = runs.run(joined)
    assert found["books"]["copies"] > 0 and not found["removed"], "what was planned is done, begin or not"
    runs.check()
    held = len(runs.model.holds["b"])
    both = {"a": a, "d": b, "f": runs.groups, "e": a}
    runs.model.begin(both)
    runs.write(2)
    found = runs.run(both, "--begin", "now")
    assert {"reader": "b", "held": held} in found["removed"] and len(found["removed"]) == 2
    runs.check()
    assert not any(runs.model.open(reader) for reader in both), "everything came"
    assert not runs.run(both)["delivered"]
    lines = causet("explain", "--checkpoint", tmp_path / "out/_checkpoint", *LOCAL)
    assert f"{held} held" in lines or held == 0


@pytest.mark.jvm
def test_whenever_a_run_dies_before_its_first_batch_the_next_one_begins_as_it_is_asked(
    tmp_path: Path,
) -> None:
    runs = Runs(tmp_path)
    a, b, c = (runs.model.reads[name] for name in "abc")
    first = {"a": a, "b": b, "c": c}
    runs.write(0)
    runs.run(first)
    runs.check()
    for kind, readers in (("settle", {**first, "x": a}), ("wake", {**first, "y": b})):
        with pytest.MonkeyPatch.context() as patch:

            def dies(*_: object, **__: object) -> None:
                raise BadInput("the run ends here")

            patch.setattr(Checkpoint, kind, dies)
            with pytest.raises(BadInput, match=r"^the run ends here$"):
                runs.run(readers, "--begin", "now")
    with pytest.raises(BadInput, match=r'^reader "d" is new'):
        runs.run({**first, "d": c})
    joined = {**first, "d": c}
    assert runs.model.begin(joined)
    runs.write(1)
    runs.write(2)
    found = runs.run(joined, "--begin", "now")
    runs.check()
    assert not any(runs.model.open(reader) for reader in joined) and not found["removed"], (
        "x and y never began"
    )
    assert {each["receiver"] for each in rows_in(tmp_path / "out")} == set(joined)


@pytest.mark.jvm
def test_a_new_checkpoint_begins_at_the_cut_of_another_one(tmp_path: Path) -> None:
    """The source is read from its front again: what was delivered is not delivered again, the rest is."""
    runs = Runs(tmp_path)
    readers = dict(runs.model.reads)
    runs.write(0)
    runs.run(readers)
    runs.check()
    cut = tmp_path / "cut.json"
    cut.write_text(causet("explain", "--checkpoint", tmp_path / "out/_checkpoint", "--cut", *LOCAL))
    with pytest.raises(BadInput, match=r'^.*cut\.json has no cut of the group "elsewhere"'):
        runs.run({**readers, "n": ["elsewhere"]}, "--begin", cut, out="next")
    assert not (tmp_path / "next").exists()
    runs.write(1)
    runs.write(2)
    before = sum(map(len, runs.model.got.values()))
    with pytest.MonkeyPatch.context() as patch:
        dies_after_writing(patch, lambda *_: True)
        with pytest.raises(BadInput, match=r"^the run ends here$"):
            runs.run(readers, "--begin", cut, out="next")
    found = runs.run(readers, "--begin", cut, out="next")
    assert found["duplicates"] == before and not found["held"]
    rows = {(each["receiver"], each["id"]) for each in rows_in(tmp_path / "next")}
    assert rows == {(reader, name) for reader in readers for name in runs.model.open(reader)}
    assert not runs.run(readers, "--begin", cut, out="next")["delivered"]

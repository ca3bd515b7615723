"""A place of cuts: what is published, what is never undone, and what is refused.

That cuts make no reader early is shown by the models of `test_stability` and `tests/streams/test_attributes`.
"""

from __future__ import annotations

import itertools
import json
import random
import shutil
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from causet import Cuts, Stamper
from causet.envelope import Cut
from causet.errors import BadInput
from causet.stamp import cut_of, frontier_of

LISTED = {"desk": ["orders", "payments"], "audit": ["payments"]}


def told(place: Path, readers: Any = None, **delivered: Any) -> Cuts:
    cuts = Cuts(place)
    cuts.register("a", LISTED if readers is None else readers)
    cuts.tell("a", 0, delivered)
    return cuts


def test_a_cut_has_what_every_reader_of_a_group_has(tmp_path: Path) -> None:
    cuts = told(tmp_path, desk={"orders": {"shop": 7}, "payments": {"bank": 3, "till": 1}})
    assert cuts.publish() == Cut(1, {"orders": {"shop": 7}}), "nobody knows what audit has"
    assert cuts.publish() is None, "nothing is new"
    cuts.tell("a", 1, {"audit": {"payments": {"bank": 2}}})
    assert cuts.publish() == Cut(2, {"orders": {"shop": 7}, "payments": {"bank": 2}})
    assert [cuts.read(number).number for number in (1, 2)] == [1, 2]
    assert Cuts(tmp_path).newest() == cuts.read(2)


def test_readers_of_every_query_count_and_also_those_of_every_group(tmp_path: Path) -> None:
    cuts = told(tmp_path, {"desk": ["orders"]}, desk={"orders": {"shop": 7}})
    cuts.register("b", None)
    cuts.register("c", "each")
    assert cuts.publish() is None
    cuts.tell("b", 0, {"all": {"orders": {"shop": 5}, "other": {"p": 1}}})
    assert cuts.publish() is None
    cuts.tell("c", 0, {"orders": {"orders": {"shop": 6}}})
    assert cuts.publish() == Cut(1, {"orders": {"shop": 5}})
    cuts.tell("c", 3, {"other": {"other": {"p": 4}}})
    assert cuts.publish() == Cut(2, {"orders": {"shop": 5}, "other": {"p": 1}})


def test_a_cut_never_loses_what_an_earlier_one_had(tmp_path: Path) -> None:
    """Not for a reader that registers later, nor for news that are lost."""
    cuts = told(tmp_path, {"desk": ["orders"]}, desk={"orders": {"shop": 7}})
    first = cuts.publish()
    cuts.register("b", {"late": ["orders"]})
    assert cuts.publish() is None and cuts.newest() == first
    cuts.tell("b", 0, {"late": {"orders": {"shop": 3, "till": 9}}})
    assert cuts.publish() is None, "it has less than the cut"
    cuts.tell("a", 0, {"desk": {"orders": {"shop": 2, "till": 1}}})
    assert cuts.publish() == Cut(2, {"orders": {"shop": 7, "till": 1}}), "what was said before stays true"
    assert cuts.told("a", 0) == {"desk": {"orders": {"shop": 7, "till": 1}}}
    cuts.tell("a", 0, {"audit": {"payments": {"bank": 1}}})
    assert cuts.told("a", 0)["desk"] == {"orders": {"shop": 7, "till": 1}}, "the same bucket, another reader"


def test_a_process_of_which_a_reader_has_nothing_is_in_no_cut(tmp_path: Path) -> None:
    cuts = told(tmp_path, desk={"payments": {"bank": 3, "till": 1}}, audit={"payments": {"web": 1}})
    assert cuts.publish() is None


def test_channels_of_a_group_count_for_its_readers(tmp_path: Path) -> None:
    cuts = told(tmp_path, {"desk": ["orders"]}, desk={"orders\x1f2": {"shop": 3}, "orders": {"shop": 1}})
    assert cuts.publish() == Cut(1, {"orders\x1f2": {"shop": 3}, "orders": {"shop": 1}})


def test_files_have_what_is_new_and_every_cut_can_be_read(tmp_path: Path) -> None:
    """In random runs, all cuts are what they were when they were published."""
    rng = random.Random(1)
    cuts = Cuts(tmp_path)
    cuts.register("a", {"r": [f"g{at}" for at in range(30)]})
    published: list[Cut] = []
    numbers: dict[str, dict[str, int]] = {}
    for _ in range(60):
        for _ in range(rng.choice([1, 2, 40])):
            mine = numbers.setdefault(f"g{rng.randrange(30)}", {})
            process = f"p{rng.randrange(3)}"
            mine[process] = mine.get(process, 0) + 1
        Cuts(tmp_path).tell("a", 0, {"r": numbers})
        found = rng.choice([cuts, Cuts(tmp_path)]).publish()
        assert found == Cut(len(published) + 1, numbers)
        published.append(Cut(found.number, json.loads(json.dumps(found.groups))))
    assert [cuts.read(each.number) for each in published] == published
    sizes = [cuts._file(each.number).stat().st_size for each in published[30:]]
    assert min(sizes) < max(sizes) / 2, "most files have what is new"


def test_a_number_means_one_cut_at_whatever_moment_a_query_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed before a file is in its place, or between the cut and the hint."""
    told(tmp_path, {"r": ["g"]}, r={"g": {"p": 1}}).publish()
    replace, known = Path.replace, dict[int, Cut]()
    for killed_at, said in itertools.product((0, 1), range(2, 6)):
        Cuts(tmp_path).tell("a", 0, {"r": {"g": {"p": 10 * killed_at + said}}})
        left = killed_at

        def killed(self: Path, target: Path) -> Path:
            nonlocal left
            left -= 1
            if left < 0:
                raise KeyboardInterrupt
            return replace(self, target)

        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(Path, "replace", killed)
            Cuts(tmp_path).publish()
        for cut in (Cuts(tmp_path).newest(), Cuts(tmp_path).publish()):
            if cut is not None:
                assert known.setdefault(cut.number, cut) == cut
        assert all(Cuts(tmp_path).read(number) == cut for number, cut in known.items())
    assert [*known] == [*range(1 if 1 in known else 2, max(known) + 1)] and len(known) >= 8


def _publish_some(place: Path, query: str) -> list[tuple[int, Any]]:
    cuts = Cuts(place)
    found = []
    for number in range(1, 40):
        cuts.tell(query, 0, {f"r-{query}": {f"g-{query}": {"p": number}}})
        cut = cuts.publish()
        found += [] if cut is None else [(cut.number, cut.groups)]
    return found


def test_queries_that_publish_at_the_same_time_never_use_one_number_twice(tmp_path: Path) -> None:
    for query in ("a", "b"):
        Cuts(tmp_path).register(query, {f"r-{query}": [f"g-{query}"]})
    with ProcessPoolExecutor(2) as pool:
        found = [each for some in pool.map(_publish_some, [tmp_path] * 2, "ab") for each in some]
    assert sorted(number for number, _ in found) == [*range(1, len(found) + 1)]
    assert all(Cuts(tmp_path).read(number).groups == groups for number, groups in found)
    newest = Cuts(tmp_path).newest()
    assert newest is not None and newest.groups == {"g-a": {"p": 39}, "g-b": {"p": 39}}


@pytest.mark.parametrize("look", [1, 2])
@pytest.mark.parametrize("file", ["about.json", "0.json", "1.json"])
def test_a_query_can_be_removed_while_another_one_publishes(tmp_path: Path, file: str, look: int) -> None:
    """At whichever look at one of its files its folder goes: what is published is safe without it, and the
    next cut has what the others have."""
    cuts = Cuts(tmp_path)
    for query, number in (("a", 9), ("b", 2), ("c", 7)):
        cuts.register(query, {"desk": ["orders"], "audit": ["payments"]})
        cuts.tell(query, 0, {"desk": {"orders": {"shop": number}}})
        cuts.tell(query, 1, {"audit": {"payments": {"bank": number}}})
    path = tmp_path / "queries" / "b" / file
    looks = 0

    class Removed(type(path)):  # type: ignore[misc]
        """A path of which the folder goes between two looks at it."""

        def stat(self, **how: Any) -> Any:
            self._goes()
            return super().stat(**how)

        def open(self, *how: Any, **more: Any) -> Any:
            self._goes()
            return super().open(*how, **more)

        def _goes(self) -> None:
            nonlocal looks
            looks += str(self) == str(path)
            if looks == look:
                shutil.rmtree(path.parent, ignore_errors=True)

    cuts.place = Removed(tmp_path)
    first = cuts.publish()
    assert looks >= look and not path.exists()
    entries = [] if first is None else [n for each in first.groups.values() for n in each.values()]
    assert set(entries) <= {2, 7}
    later = cuts.publish() or first
    assert later is not None and later.groups == {"orders": {"shop": 7}, "payments": {"bank": 7}}


def test_the_hint_may_be_old_or_gone(tmp_path: Path) -> None:
    cuts = told(tmp_path, {"r": ["g"]})
    for number in (1, 2, 3):
        cuts.tell("a", 0, {"r": {"g": {"p": number}}})
        cuts.publish()
    for hint in ("1", "3", None):
        (tmp_path / "newest").unlink()
        if hint is not None:
            (tmp_path / "newest").write_text(hint)
        found = Cuts(tmp_path).newest()
        assert found == Cut(3, {"g": {"p": 3}})
        if hint is None:  # nor need old cuts be there
            for number in (1, 2):
                cuts._file(number).unlink()
            assert Cuts(tmp_path).newest() == found
        (tmp_path / "newest").write_text("3")


def test_a_stamper_takes_the_newest_cut(tmp_path: Path) -> None:
    shop = Stamper("shop", run="1")
    shop.stamp(to="orders")
    assert Cuts(tmp_path).newest() is None
    cut = told(tmp_path, {"desk": ["orders"]}, desk={"orders": {"shop~1": 1}}).publish()
    assert cut is not None
    bank = Stamper("bank", run="1")
    bank.saw(Stamper("till", run="1").stamp(to="orders"))
    bank.stable(cut)
    envelope = bank.stamp(to="payments")
    assert cut_of(envelope) == 1 and frontier_of(envelope).past == {"orders": {"till~1": 1}}


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("cuts/0000000000000001.json", "{", "it is not JSON"),
        ("cuts/0000000000000001.json", "[]", 'it must be a JSON object with "version": 1'),
        ("cuts/0000000000000001.json", '{"version": 2}', 'it must be a JSON object with "version": 1'),
        ("cuts/0000000000000001.json", '{"version":1,"number":2,"base":0,"groups":{}}', "must be the cut 1"),
        ("cuts/0000000000000001.json", '{"version":1,"number":1,"base":1,"groups":{}}', "an earlier base"),
        (
            "cuts/0000000000000001.json",
            '{"version":1,"number":1,"base":0,"groups":[]}',
            "groups must be a map",
        ),
        (
            "cuts/0000000000000001.json",
            '{"version":1,"number":1,"base":0,"groups":{"g":{"p":0}}}',
            'the number of "p" cannot be 0',
        ),
        ("newest", "one", "must be the number of a cut"),
        ("queries/a/about.json", "{}", 'it must be a JSON object with "version": 1'),
        ("queries/a/about.json", '{"version":1,"readers":{"r":[]}}', 'reader "r" reads no group'),
        ("queries/a/0.json", '{"version":1,"delivered":[]}', "what readers have delivered"),
        ("queries/a/0.json", '{"version":1,"delivered":{"r":{"g":{"p":-1}}}}', "cannot be -1"),
    ],
)
def test_what_is_damaged_is_refused_in_a_sentence(tmp_path: Path, file: str, text: str, said: str) -> None:
    cuts = told(tmp_path, {"r": ["g"]}, r={"g": {"p": 1}})
    cuts.publish()
    (tmp_path / file).write_text(text)
    with pytest.raises(BadInput) as refused:
        cuts = Cuts(tmp_path)
        cuts.tell("a", 0, {"r": {"g": {"p": 2}}})
        cuts.publish()
    assert str(tmp_path / file) in str(refused.value) and said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="file/queries/a cannot be written"):
        Cuts(tmp_path / "file").register("a", None)
    with pytest.raises(BadInput, match="cannot be read: No such file"):
        Cuts(tmp_path).read(1)

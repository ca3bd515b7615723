"""Each rule by which readers tell how far they are, and cuts are published, dropped or weakened, is found."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest

from causet.errors import BadInput
from tests.core import test_cuts
from tests.helpers.mutating import Change, modules
from tests.streams import test_attributes

MODULES = ("cuts", "stability.told", "streams.bucket")
RULES: list[Any] = [
    test_cuts.test_a_cut_has_what_every_reader_of_a_group_has,
    test_cuts.test_readers_of_every_query_count_and_also_those_of_every_group,
    test_cuts.test_a_cut_never_loses_what_an_earlier_one_had,
    test_cuts.test_a_process_of_which_a_reader_has_nothing_is_in_no_cut,
    test_cuts.test_channels_of_a_group_count_for_its_readers,
    test_cuts.test_files_have_what_is_new_and_every_cut_can_be_read,
    test_cuts.test_a_number_means_one_cut_at_whatever_moment_a_query_is_killed,
    test_cuts.test_the_hint_may_be_old_or_gone,
    test_attributes.test_a_reader_says_how_far_it_is_and_counts_what_it_gave_up_after_the_horizon,
    test_attributes.test_a_reader_that_has_only_what_came_too_early_says_nothing_of_it,
    test_attributes.test_messages_of_scopes_and_past_the_order_are_in_no_cut,
]


def mutant(module: str, line: str, becomes: str, rule: str) -> Any:
    return pytest.param(Change(module, line, becomes), id=rule)


MUTANTS = [
    mutant("cuts", "while self.has(number + 1):", "while False:", "the hint may be old"),
    mutant(
        "cuts",
        "return max((int(name) for name in names if name.isascii() and name.isdigit()), default=0)",
        "return 0",
        "the hint may be gone, and so may be cuts",
    ),
    mutant(
        "cuts", "return Cut(number, _joined(whole, groups))", "return Cut(number, groups)", "a base counts"
    ),
    mutant(
        "cuts",
        "found = {reader: _joined(before.get(reader, {}), groups) for reader, groups in delivered.items()}",
        "found = {reader: dict(groups) for reader, groups in delivered.items()}",
        "what was said before stays true",
    ),
    mutant(
        "cuts",
        '_write(path, {"version": VERSION, "delivered": before | found})',
        '_write(path, {"version": VERSION, "delivered": found})',
        "of other readers, too",
    ),
    mutant("cuts", "if known != mark:", "if known is None:", "news are read"),
    mutant(
        "cuts",
        "groups = _joined(last.groups, self._delivered_by_all())",
        "groups = self._delivered_by_all()",
        "a cut has what earlier ones have",
    ),
    mutant("cuts", "if groups == last.groups:", "if False:", "a cut has something new"),
    mutant(
        "cuts",
        "begun = self._loaded(cut.number - 1)[0] or cut.number - 1",
        "begun = cut.number - 1",
        "a base is whole",
    ),
    mutant("cuts", "if 2 * _count(since) <= _count(cut.groups):", "if False:", "files have what is new"),
    mutant(
        "cuts",
        "process: min(one[process] for one in each)",
        "process: max(one[process] for one in each)",
        "a cut has what every reader has",
    ),
    mutant("cuts", "if all(process in one for one in each)", "if True", "of every process"),
    mutant("cuts", 'group = name.partition("\\x1f")[0]', "group = name", "channels are of their groups"),
    mutant(
        "cuts",
        "for reader in readers.of_group(group)",
        "for reader in told",
        "who does not read does not count",
    ),
    mutant(
        "cuts",
        "mine[process] = max(number, mine.get(process, 0))",
        "mine[process] = number",
        "numbers never go back",
    ),
    mutant(
        "stability.told",
        "if scope_in(channel) is None:",
        "if True:",
        "what is in a scope is in no cut",
    ),
    mutant(
        "stability.told",
        "streams = [*dict.fromkeys([*left, *before])]",
        "streams = [*left]",
        "streams go on later",
    ),
    mutant(
        "stability.told",
        "if at >= 0 and numbers[at] > 0:",
        "if at >= 0:",
        "what has delivered nothing says nothing",
    ),
    mutant(
        "streams.bucket", "self._reached = outcome.reached", "pass", "what left with a batch is told with it"
    ),
    mutant(
        "streams.bucket",
        "self._left.update(streams_in(table, self.settings))",
        "pass",
        "the streams of what leaves are told of",
    ),
]


def survives(made: dict[str, Any], folder: Path) -> bool:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(test_cuts, "Cuts", made["cuts"].Cuts)
        patch.setattr(test_attributes, "Cuts", made["cuts"].Cuts)
        patch.setattr(test_attributes, "Bucket", made["streams.bucket"].Bucket)
        for number, rule in enumerate(RULES):
            given: dict[str, Any] = {"tmp_path": folder / str(number)}
            given["tmp_path"].mkdir()
            if "monkeypatch" in inspect.signature(rule).parameters:
                given["monkeypatch"] = patch
            rule(**given)
    return True


def test_unchanged_nothing_is_found(tmp_path: Path) -> None:
    with modules(None, MODULES) as made:
        assert survives(made, tmp_path)


@pytest.mark.parametrize("change", MUTANTS)
def test_a_broken_rule_is_found(change: Change, tmp_path: Path) -> None:
    with modules(change, MODULES) as made:
        try:
            survives(made, tmp_path)
        except (AssertionError, BadInput, IndexError, KeyError, ValueError):
            return
    pytest.fail("survived")

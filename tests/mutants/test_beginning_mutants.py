"""Each rule of where readers begin, dropped or weakened: what a reader gets must show it."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from causet.errors import BadInput
from tests.helpers.joining import check_joining
from tests.helpers.mutating import Change, modules
from tests.streams import test_beginnings

MODULES = (
    "streams.memory",
    "streams.beginning",
    "streams.holding",
    "messages.routes",
    "streams.bucket",
    "beginnings.now",
)
SEEDS = 40
RULES = [
    getattr(test_beginnings, name)
    for name in vars(test_beginnings)
    if name.startswith("test_") and "of" in getattr(test_beginnings, name).__annotations__
]


def mutant(module: str, line: str, becomes: str, rule: str) -> Any:
    return pytest.param(Change(module, line, becomes), id=rule)


MUTANTS = [
    mutant(
        "streams.beginning",
        "prefix[each] = max(prefix[each], high[at])",
        "prefix[each] = high[at]",
        "ranges that overlap are one",
    ),
    mutant(
        "streams.beginning",
        "known[known] = is_delivered(found, at[known], number[known])",
        "pass",
        "what is above the cut is held",
    ),
    mutant("streams.beginning", "high, number - 1]", "high, number]", "what is taken back is not delivered"),
    mutant(
        "streams.beginning",
        "caused[head] = sizes[~part][owner[head]]",
        "caused[head] = sizes[head]",
        "a part that becomes the head has the causes",
    ),
    mutant("streams.holding", "np.maximum.at(self.top, stream, counted.high)", "pass", "numbers go on"),
    mutant(
        "streams.holding",
        "np.maximum.at(self.closed, stream, counted.closed)",
        "pass",
        "what is not known stays unknown",
    ),
    mutant(
        "streams.holding",
        "self._hold(self._held().taken(np.flatnonzero(~np.isin(self.place, places))))",
        "pass",
        "what comes in again was taken out",
    ),
    mutant(
        "streams.holding",
        "back = ~any_of(~known, owner)",
        "back = known",
        "a part in the cut stays in the cut",
    ),
    mutant(
        "streams.holding",
        "back = ~any_of(~known, owner)",
        "back = known & ~known",
        "what a reader holds is not in its cut",
    ),
    mutant(
        "streams.holding",
        "return stripped(messages, known | here)",
        "return stripped(messages, here)",
        "a number in the cut is not waited for",
    ),
    mutant(
        "streams.holding",
        "return stripped(messages, known | here)",
        "return stripped(messages, known)",
        "what is held is not taken twice",
    ),
    mutant(
        "streams.bucket",
        "beginning.number <= holding.begun.max(initial=0)",
        "False",
        "a beginning counts once",
    ),
    mutant(
        "streams.bucket",
        "        self.segments.keep(before, holding.place)\n        for channels",
        "        for channels",
        "rows that nobody holds go",
    ),
    mutant(
        "streams.bucket",
        "for kind in (OWN_ROWS, ROWS):",
        "for kind in (ROWS,):",
        "what a reader holds comes in again",
    ),
    mutant(
        "streams.bucket",
        "for kind in (OWN_ROWS, ROWS):",
        "for kind in (OWN_ROWS,):",
        "what others hold is copied",
    ),
    mutant(
        "streams.bucket",
        "self.was_read(0, -len(removed))",
        "pass",
        "what comes in again is not counted again",
    ),
    mutant(
        "beginnings.now",
        "for reader in before.of_group(group)]\n    key",
        "for reader in before.of_group(group)[:1]]\n    key",
        "the cut is that of all readers",
    ),
    mutant(
        "beginnings.now",
        "for reader in found.changed:",
        "for reader in found.added:",
        "what is dropped is diverted",
    ),
    mutant(
        "beginnings.now",
        "for reader in found.changed:",
        "for reader in found.dropped:",
        "causes in added groups count",
    ),
    mutant("beginnings.now", "self._check(state, reader, table)", "pass", "a message does not come again"),
    mutant(
        "beginnings.now",
        "if (left & (owner == owner[at])).any():",
        "if (left & reads & (owner == owner[at])).any():",
        "nor if the group is dropped through which it came",
    ),
    mutant(
        "beginnings.now",
        "if covers(cut, names[at : at + 1], numbers.number[at : at + 1])[0]:",
        "if False:",
        "what is in the cut stops nobody",
    ),
    mutant(
        "beginnings.now",
        "return Holding.empty() if found is None else found",
        "return found if found else Holding.empty()",
        "a bucket that holds nothing knows something",
    ),
]


def survives(made: dict[str, Any]) -> bool:
    for rule in RULES:
        with TemporaryDirectory() as folder:
            rule(Path(folder), made)
    for seed in range(SEEDS):
        check_joining(seed, made)
    return True


def test_unchanged_nothing_is_found() -> None:
    with modules(None, MODULES) as made:
        assert survives(made)


@pytest.mark.parametrize("change", MUTANTS)
def test_a_broken_rule_is_found(change: Change) -> None:
    with modules(change, MODULES) as made:
        try:
            survives(made)
        except (AssertionError, BadInput, IndexError, KeyError, ValueError, pytest.fail.Exception):
            return
    pytest.fail("survived")

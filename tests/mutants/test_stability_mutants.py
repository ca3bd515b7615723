"""Each part of the rule of cuts, dropped or weakened, is found by the model of `tests/helpers/stability`."""

from __future__ import annotations

from typing import Any

import pytest

from tests.helpers.mutating import Change, modules
from tests.helpers.stability import check_cuts_are_safe, check_the_larger_cut_is_said

MADE = ("frontier", "rcclock", "envelope", "given", "identity", "journal", "knowledge", "stamp")
RUNS = range(300)
LARGEST = "            self.cut = max(number, self.cut)\n"
RULES = [
    ("stamp", "found[CUT] = self._knowledge.cut", "pass", "a message says by which cut it was made short"),
    ("stamp", 'line["cut"] = cut', "pass", "a cut that was read is said to others"),
    ("knowledge", 'self.cut = max(line.get("cut", 0), self.cut)', "pass", "a cut that was read is known"),
    ("knowledge", LARGEST, "", "a cut that was used is said"),
    ("knowledge", LARGEST, "            self.cut = number\n", "a larger cut that was read stays"),
    (
        "frontier",
        "    for group, entries in cut.items():\n        if group in reads:",
        "    for group, entries in cut.items():\n        if True:",
        "of groups that are not read nothing is waited for",
    ),
    ("frontier", "if n > entries.get(p, 0)}", "if False}", "what a cut does not have stays"),
    ("frontier", "yield (p, group), n\n", "yield (p, group), n - 1\n", "the last message of a cut is in it"),
]


def test_unchanged_the_check_passes() -> None:
    with modules(None, MADE) as made:
        check_the_larger_cut_is_said(made["stamp"])
        check_cuts_are_safe(made["frontier"], made["stamp"], range(30))


@pytest.mark.parametrize(
    "change", [pytest.param(Change(*change), id=rule.replace(" ", "-")) for *change, rule in RULES]
)
def test_a_broken_rule_is_found(change: Any) -> None:
    with modules(change, MADE) as made:
        try:
            check_the_larger_cut_is_said(made["stamp"])
            check_cuts_are_safe(made["frontier"], made["stamp"], RUNS)
        except Exception:
            return
    pytest.fail("survived")

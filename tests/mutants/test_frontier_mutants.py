"""Each part of the rule of frontiers, dropped or weakened, is found.

A mutant is a change to one line of `causet.frontier`. It is killed by the explorer, which tries every
interleaving of three messages, by random runs under the oracle, or by the tests of what is known.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.helpers.frontiers import (
    GROUPS,
    check_against_the_definition,
    check_cuts,
    check_every_interleaving,
    check_random_runs,
    check_the_news_of_a_message,
    check_the_parts_of_a_message,
    check_what_is_known_adds_nothing,
    check_what_others_say_of_a_process,
)
from tests.helpers.mutating import Change, modules

MADE = ("frontier", "protocols.frontiers")


def explored(made: dict[str, Any]) -> None:
    for groups in GROUPS:
        for opens in (False, True):
            check_every_interleaving(made["protocols.frontiers"].Frontiers, groups, opens)


def drawn(made: dict[str, Any]) -> None:
    check_random_runs(made["protocols.frontiers"].Frontiers, range(60))
    check_against_the_definition(made["frontier"], range(100))


def known(made: dict[str, Any]) -> None:
    check_the_parts_of_a_message(made["frontier"])
    check_what_is_known_adds_nothing(made["frontier"])
    check_what_others_say_of_a_process(made["frontier"])
    check_cuts(made["frontier"])
    check_the_news_of_a_message(made["frontier"], range(20))


CHECKS = {check.__name__: check for check in (explored, drawn, known)}

RULES = [
    (
        "explored",
        "Stamped(numbers, dict(self.frontier))",
        "Stamped(numbers, {})",
        "a message carries the frontier",
    ),
    (
        "explored",
        "Stamped(numbers, dict(self.frontier))",
        "Stamped(numbers, {group: self.frontier[group] for group in numbers if group in self.frontier})",
        "a message carries the frontiers of all groups",
    ),
    ("explored", "self.frontier[group] = {self.process: number}", "pass", "what was sent is in the past"),
    (
        "known",
        "self.frontier[group] = {self.process: number}",
        "self.frontier[group] = self.frontier.get(group, {}) | {self.process: number}",
        "what was sent covers the rest",
    ),
    (
        "drawn",
        "        for group, number in stamped.numbers.items():\n",
        "        for group, number in list(stamped.numbers.items())[:1]:\n",
        "what was sent is in the past of each of its groups",
    ),
    ("explored", "if n > known.get(p, 0)", "if False", "what a message does not cover stays"),
    ("known", "if n > known.get(p, 0)", "if True", "what a message covers goes"),
    ("known", " or 0 < mine.get(p, 0) <= n", " or 0 < mine.get(p, 0) < n", "what a message names it covers"),
    ("explored", "kept | {process: number}", "kept", "what was delivered is in the past"),
    (
        "explored",
        "            if group not in new:\n",
        "            if False:\n",
        "the past of others is one's own",
    ),
    (
        "known",
        "            if group not in new:\n",
        "            if True:\n",
        "a message covers what it names",
    ),
    (
        "known",
        "if not self.covers(group, process, number)}",
        "}",
        "an old message adds nothing",
    ),
    ("known", "if not self.covers(group, p, n) or 0 <", "if True or 0 <", "an old entry adds nothing"),
    ("known", " or 0 < mine.get(p, 0) <= n", "", "an old entry of a new message covers"),
    ("known", " or 0 < mine.get(p, 0) <= n", " or 0 < mine.get(p, 0)", "an older entry covers nothing"),
    ("known", "max(number, known.get(process, 0))", "number", "what is covered does not shrink"),
    (
        "drawn",
        "self.frontier[group] = self.frontier.get(group, {}) | entries",
        "self.frontier[group] = entries",
        "what is known stays",
    ),
    (
        "known",
        "                    self._cover(group, p, n)",
        "                    pass",
        "what was read in a frontier is covered",
    ),
    (
        "known",
        "            self._cover(group, process, number)",
        "            pass",
        "what was seen is covered",
    ),
    ("known", "process == self.process or number", "number", "of its own messages a process knows all"),
    ("known", "                if p != self.process:", "                if True:", "own numbers are its own"),
    ("known", "            if kept:\n", "            if False:\n", "what a cut does not have stays"),
    ("known", "if n > entries.get(p, 0)}", "}", "what a cut has goes"),
    (
        "known",
        "                self.frontier[group] = kept\n        self._cover_all(told)",
        "                self.frontier[group] = kept",
        "what a cut has does not come back",
    ),
    (
        "explored",
        "        if group in reads:\n            for",
        "        if True:\n            for",
        "of other groups nothing",
    ),
    ("explored", "yield (p, group), n\n", "yield (p, group), n - 1\n", "the entry itself is waited for"),
    ("known", "or number <= self", "or number < self", "a number that is known is covered"),
]
MUTANTS = [
    pytest.param(check, Change("frontier", line, becomes), id=rule.replace(" ", "-"))
    for check, line, becomes, rule in RULES
]


@pytest.mark.parametrize("check", ["drawn", "known"])  # what is explored, a test of its own explores
def test_unchanged_every_check_passes(check: str) -> None:
    with modules(None, MADE) as made:
        CHECKS[check](made)


@pytest.mark.parametrize(("check", "change"), MUTANTS)
def test_a_broken_rule_is_found(check: str, change: Change) -> None:
    with modules(change, MADE) as made:
        try:
            CHECKS[check](made)
        except Exception:
            return
    pytest.fail("survived")

"""Each part of the rule of incomplete orders, dropped or weakened, is found by the model of
`tests/helpers/incomplete`, or by the tests of messages past the order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.helpers.incomplete import check_bypass, check_incomplete_orders
from tests.helpers.mutating import Change, modules

MADE = ("frontier", "rcclock", "envelope", "given", "identity", "journal", "knowledge", "stamp")
RULES = [
    ("frontier", "priority >= self.priority and", "", "a message does not wait for what is less urgent"),
    ("frontier", "priority >= self.priority", "priority > self.priority", "it waits for its own priority"),
    ("frontier", "priority >= self.priority", "priority == self.priority", "it waits for more urgent ones"),
    ("frontier", " and group in self.groups", "", "groups that are not read are not waited for"),
    ("frontier", "int(priority) if mark else 0", "abs(int(priority or 0))", "a priority can be below 0"),
    (
        "frontier",
        'return f"{group}{PRIORITY_MARK}{priority}" if priority else group',
        "return group",
        "priorities are numbered apart",
    ),
    (
        "envelope",
        "{channel(group, priority): number for",
        "{channel(group): number for",
        "a message is one of its channel",
    ),
    ("envelope", "envelope[PRIORITY] = priority_of(envelope)", "pass", "a priority in a header is a number"),
    (
        "envelope",
        'envelope[BYPASS] = envelope[BYPASS] == "true"',
        "pass",
        "a bypass in a header is true or false",
    ),
    (
        "envelope",
        "str(value).lower() if isinstance(value, bool) else str(value)",
        "str(value)",
        "truth is written in small letters",
    ),
    ("envelope", "    if bypasses(envelope):\n        return {}\n", "", "a bypass has no numbers"),
    ("given", "PRIORITY: self.priority or None, ", "", "a message says its priority"),
    ("given", "SCOPE: self.scope, ", "", "a message says its scope"),
    ("given", "BYPASS: self.bypass or None", "", "a message says that it bypasses"),
    (
        "knowledge",
        "        if scope is None:\n            return self.known\n        return self.scopes",
        "        return self.known\n        return self.scopes",
        "scopes are apart",
    ),
    (
        "knowledge",
        "            self.known_in(*scope or [None]).saw(",
        "            self.known.saw(",
        "what is seen is of its scope",
    ),
    (
        "knowledge",
        "        self.known_in(scope_of(envelope)).stamp(",
        "        self.known_in(None).stamp(",
        "what is stamped is of its scope",
    ),
    (
        "knowledge",
        'in state.get("scopes", {}).items()}\n        self.cut',
        "in ()}\n        self.cut",
        "what is known of scopes outlives a restart",
    ),
    (
        "knowledge",
        '            **({"scopes": scopes} if scopes else {}),\n',
        "",
        "what is known of scopes is saved",
    ),
    ("knowledge", "if DEPS not in envelope and numbers:", "if DEPS not in envelope:", "a bypass has no past"),
    ("knowledge", '        return (envelope["id"],)', '        return ("",)', "bypasses are told apart"),
    (
        "knowledge",
        "if scope is None else (*min(numbers.items()), scope)",
        "",
        "messages of scopes are told apart",
    ),
    (
        "stamp",
        "{} if place.bypass else self._ordered(groups, place)",
        "self._ordered(groups, place)",
        "what bypasses has no number",
    ),
    (
        "stamp",
        "known = self._knowledge.known_in(place.scope)",
        "known = self._knowledge.known",
        "numbers are of a scope",
    ),
    (
        "stamp",
        "known.next(channel(group, place.priority) for",
        "known.next(channel(group) for",
        "numbers are of a priority",
    ),
    ("stamp", " if place == Place() else where", "", "an id is that of one message"),
    (
        "stamp",
        "news = self._knowledge.known_in(scope).news(",
        "news = self._knowledge.known.news(",
        "what is news is so in a scope",
    ),
    ("stamp", ", *([] if scope is None else [scope])]", "]", "what is seen is written with its scope"),
    ("stamp", ":bypass:{new_run()}", ":bypass", "what bypasses has an id of its own"),
]


def check(made: dict[str, Any], folder: Path) -> None:
    def home(seed: int) -> Path:
        found = folder / f"{made['stamp'].__name__} {seed}"
        found.mkdir()
        return found

    check_bypass(made)
    check_incomplete_orders(made, range(25))
    check_incomplete_orders(made, range(8), folder=home)


def test_unchanged_the_check_passes(tmp_path: Path) -> None:
    with modules(None, MADE) as made:
        check(made, tmp_path)


@pytest.mark.parametrize(
    "change", [pytest.param(Change(*change), id=rule.replace(" ", "-")) for *change, rule in RULES]
)
def test_a_broken_rule_is_found(change: Any, tmp_path: Path) -> None:
    with modules(change, MADE) as made:
        try:
            check(made, tmp_path)
        except Exception:
            return
    pytest.fail("survived")

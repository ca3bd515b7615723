"""Each rule by which an envelope is refused, dropped, is found by an envelope that breaks it."""

from __future__ import annotations

from typing import Any

import pytest

from causet.errors import BadStamp
from tests.helpers.damaged import DAMAGED, check_damaged
from tests.helpers.mutating import Change, modules

MADE = ("rcclock", "envelope", "given", "identity", "journal", "knowledge", "stamp")
RULES = [
    ("if past.get(group, {}).get(process, 0) >= number:", "if False:", "no message is its own cause"),
    (".get(process, 0) >= number:", ".get(process, 0) > number:", "nor is the very message"),
    ("        if set(names) != set(found):", "        if False:", "groups are those of the numbers"),
    ("or len(names) != len(found) or", "or", "a group is listed once"),
    ("not all(map(is_text, names))", "False", "groups are text"),
    (
        'if envelope.get("sequence") is not None and [',
        "if False and [",
        "a sequence is the number in the one group",
    ),
    ("not 1 <= len(found) <= MOST_DEPS", "False", "a message has a group"),
    ("if most is not None and sum(", "if False and sum(", "a message names so many others at most"),
    ("MOST_DEPS - len(numbers))", "MOST_DEPS)", "its own numbers count"),
    ("        if not is_channel(group):\n", "        if False:\n", "a group in a past is text"),
    (
        "        if not isinstance(numbers, dict) or not numbers:",
        "        if not isinstance(numbers, dict):",
        "a group in a past has entries",
    ),
    ("    if len(found) < len(pairs):\n", "    if False:\n", "no name stands twice"),
    (
        '            raise BadStamp(f"{what}: the number of {quote(name)} cannot be {quote(number)}")',
        "            pass",
        "a number is one",
    ),
    (
        "    if type(number) is int and 0 <=",
        "    if type(number) is int or 0 <=",
        "the number of a cut is one",
    ),
    ("        if domain is not None and not is_group(domain):", "        if False:", "a domain is text"),
    ("    version_of(envelope)\n    process", "    process", "a version is one that can be read"),
    ("    if number is None:\n", "    if False:\n", "a priority is a number"),
    ("type(number) is int and -MOST_URGENT", "-MOST_URGENT", "a priority is no truth and no fraction"),
    ("-MOST_URGENT - 1 <= number <= MOST_URGENT else", "True else", "a priority is not too large"),
    ('r"0|-?[1-9][0-9]{0,9}"', 'r"-?[0-9]{1,10}"', "a number is written in one way"),
    ("if found is not None and not is_text(found):", "if False:", "a scope is text"),
    ("if scope_of(envelope) is not None and cut_of(envelope):", "if False:", "a scope has no cuts"),
    (
        "if envelope.get(NUMBERS) is None and (priority or envelope.get(SCOPE) is not None):",
        "if False:",
        "a priority and a scope need numbers",
    ),
    ("(not mark or _whole(priority) not in (None, 0))", "True", "a channel has a priority that is not 0"),
    ("return is_text(group) and (not mark", "return (not mark", "a channel has a group"),
    ("is_text(value) and PRIORITY_MARK not in str(value)", "is_text(value)", "no group has the mark"),
    ('    if found is not True and found != "true":', "    if False:", "a bypass is true or false"),
    ('(NUMBERS, DEPS, CUT, "sequence", PRIORITY, SCOPE)', "()", "what bypasses has no part in the order"),
    ('    if not is_text(envelope.get("id")):', "    if False:", "what bypasses has an id"),
    ("or not all(map(is_group, names))", "", "what bypasses goes to groups"),
    ("    if len({*names}) < len(names):\n", "    if False:\n", "and to each once"),
]


def check(made: dict[str, Any]) -> None:
    for change, said in DAMAGED:
        check_damaged(made["stamp"], change, said)
    with pytest.raises(BadStamp, match="causalversion must be 1 or 2"):
        made["stamp"].frontier_of({"source": "a", "sequence": "1", "causalversion": 3})


def test_unchanged_the_check_passes() -> None:
    with modules(None, MADE) as made:
        check(made)


@pytest.mark.parametrize(
    "change", [pytest.param(Change("envelope", *lines), id=rule.replace(" ", "-")) for *lines, rule in RULES]
)
def test_a_broken_rule_is_found(change: Any) -> None:
    with modules(change, MADE) as made:
        try:
            check(made)
        except (Exception, pytest.fail.Exception):
            return
    pytest.fail("survived")

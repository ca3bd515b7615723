"""Each rule by which a trace becomes messages to groups and these are read again, dropped, is found."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from causet.errors import BadInput
from causet.model import Event
from tests.helpers.mutating import Change, modules
from tests.helpers.precedence import check_messages_of, check_read_again

MADE = ("formats.messages", "formats.cloudevents")
RULES = [
    (
        "messages",
        "            mine.saw(sends[name].process, *found[name])\n",
        "            pass\n",
        "what was delivered is known",
    ),
    (
        "messages",
        'if event.kind == "deliver" and',
        'if event.kind != "send" and',
        "to receive teaches nothing",
    ),
    ("messages", "not event.control and", "True and", "control messages are none"),
    ("messages", " if name != event.process]", "]", "an own copy is no message"),
    (
        "cloudevents",
        "            follows[later].add(earlier)\n",
        "            pass\n",
        "numbers of a group are in order",
    ),
    (
        "cloudevents",
        "        follows[at] |= {",
        "        {",
        "a process has its messages after what they follow",
    ),
    (
        "cloudevents",
        "            if number > 1:\n",
        "            if False:\n",
        "a missing predecessor is said",
    ),
    (
        "cloudevents",
        "known is not message and known.grouped",
        "False and known.grouped",
        "a number is there once",
    ),
    ("cloudevents", "or cause not in numbered:", "or True:", "a gap is said once"),
]


def stamped(source: str, name: str, numbers: dict[str, int], past: Any) -> str:
    found = {"source": source, "id": name, "causalnumbers": json.dumps(numbers)}
    return json.dumps({**found, "causaldeps": json.dumps(past)}) + "\n"


def check(made: dict[str, Any], folder: Path) -> None:
    messages, cloudevents = made["formats.messages"], made["formats.cloudevents"]
    for seed in range(80):
        check_messages_of(messages, Random(seed), 2 + seed % 4, 50)
        check_read_again(messages, cloudevents, folder, Random(seed), 2 + seed % 4, 50)
    assert not list(messages.messages_of([Event("r", 1, "send", message="a", to=("r",))]))
    file = folder / "some.jsonl"
    file.write_text(
        stamped("a", "3", {"x": 3}, {"x": {"a": 2}}) + stamped("b", "2", {"x": 2, "y": 1}, {}),
    )
    faults = {each.kind: each.count for each in cloudevents.read_cloudevents([file]).faults}
    assert faults == {"gap in seq": 1, "unknown parent": 1}
    file.write_text(stamped("a", "late", {"x": 3}, {}) + stamped("a", "early", {"x": 1, "y": 1}, {}))
    seqs = {each.id: each.seq for each in cloudevents.read_cloudevents([file]).events}
    assert seqs == {"a/early": 1, "a/late": 2}, "though one between them is missing"
    file.write_text(stamped("a", "1", {"x": 1}, {}) + stamped("a", "2", {"x": 1, "y": 1}, {}))
    with pytest.raises(BadInput, match='process "a" and number 1 in group "x"'):
        cloudevents.read_cloudevents([file])


def test_unchanged_the_check_passes(tmp_path: Path) -> None:
    with modules(None, MADE) as made:
        check(made, tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(Change(f"formats.{name}", *lines), id=rule.replace(" ", "-"))
        for name, *lines, rule in RULES
    ],
)
def test_a_broken_rule_is_found(change: Any, tmp_path: Path) -> None:
    with modules(change, MADE) as made:
        try:
            check(made, tmp_path)
        except (Exception, pytest.fail.Exception):
            return
    pytest.fail("survived")

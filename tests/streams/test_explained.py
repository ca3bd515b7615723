"""`causet explain --checkpoint` where messages have groups: what is missing is named with its group."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.attributed import write_cuts
from tests.helpers.commands import LOCAL, causet
from tests.helpers.readers import envelope
from tests.helpers.streams import write_files

pytestmark = pytest.mark.jvm


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Held: a message that follows shop's second message in either of two groups; one whose own predecessor
    in its group is missing; one that is urgent, in a scope; and one that names a cut that is incomplete."""
    folder = tmp_path_factory.mktemp("explained")
    follows = envelope("1", "till", {"payments": 1}, {"orders": {"shop": 2}, "audit": {"shop": 2}})
    second = envelope("2", "till", {"audit": 2, "payments": 2})
    urgent = envelope("3", "bell", {"orders": 1}, {"orders\x1f4": {"shop": 1}})
    urgent |= {"causalpriority": "4", "causalscope": "fire", "causalnumbers": '{"orders":1}'}
    cut = envelope("4", "bank", {"orders": 1}) | {"causalcut": "7"}
    write_cuts(folder / "cuts", {7: {"audit": {"shop": 1}, "elsewhere": {"shop": 9}}})
    write_files(folder / "in", [follows, second, urgent, cut], 10)
    readers = folder / "readers.json"
    readers.write_text(json.dumps({"desk": ["orders", "payments", "audit"]}))
    asked = ("deliver", folder / "in", folder / "out", "--missing", "wait", "--buckets", 2, "--json")
    found = json.loads(causet(*asked, "--readers", readers, "--stable", folder / "cuts", *LOCAL))
    assert found["held"] == 4
    return folder / "out/_checkpoint"


def test_a_missing_cause_is_told_with_its_group(checkpoint: Path) -> None:
    lines = causet("explain", "--checkpoint", checkpoint, *LOCAL).splitlines()
    assert lines[0] == "4 held"
    told = {line.partition(" for ")[0]: line.partition(": waits for ")[2] for line in lines[1:]}
    assert {name: set(causes.removesuffix(")").split("), ")) for name, causes in told.items()} == {
        "desk holds till:1 in payments": {"shop:2 in orders (not yet come", "shop:2 in audit (not yet come"},
        "desk holds till:2 in audit": {"till:1 in audit (not yet come", "till:1 in payments (held itself"},
        "desk holds bell:1 in orders (priority 4, scope fire)": {
            "shop:1 in orders (priority 4, scope fire) (not yet come"
        },
        "desk holds bank:1 in orders": {"cut 7 (not complete"},
    }


def test_a_missing_cause_has_its_group_in_json(checkpoint: Path) -> None:
    found: dict[str, Any] = json.loads(causet("explain", "--checkpoint", checkpoint, "--json", *LOCAL))
    rest = {"diverted": False, "came_for": None}
    by_name = {(each["message"], each["group"]): each for each in found["messages"]}

    def waits(name: str, group: str) -> list[dict[str, Any]]:
        return sorted(by_name[name, group]["waits_for"], key=lambda each: str(each.get("group")))

    assert waits("till:1", "payments") == [
        {"message": "shop:2", "group": "audit", "held": False, **rest},
        {"message": "shop:2", "group": "orders", "held": False, **rest},
    ]
    assert waits("till:2", "audit") == [
        {"message": "till:1", "group": "audit", "held": False, **rest},
        {"message": "till:1", "group": "payments", "held": True, **rest},
    ]
    place = {"group": "orders", "priority": 4, "scope": "fire"}
    assert place.items() <= by_name["bell:1", "orders"].items()
    assert waits("bell:1", "orders") == [{"message": "shop:1", **place, "held": False, **rest}]
    assert waits("bank:1", "orders") == [{"message": "cut 7", "held": False, **rest}]

"""Each rule of the kernel of `deliver`, dropped or weakened: random messages must show it."""

from __future__ import annotations

from typing import Any

import pytest

from test_holding import compare, compare_circles
from test_pipeline_mutants import Change, modules

MODULES = ("kernels.release", "kernels.holding")
SEEDS = 60


def mutant(module: str, line: str, becomes: str, rule: str) -> Any:
    return pytest.param(Change(f"kernels.{module}", line, becomes), id=rule)


MUTANTS = [
    mutant(
        "release", "number = row_number[row] - 1 if own", "number = 0 if own", "the previous of its source"
    ),
    mutant(
        "release",
        "if number <= prefix[stream]:\n                found",
        "if number <= prefix[stream] + 1:\n                found",
        "what is not delivered is waited for",
    ),
    mutant(
        "release",
        "if found[at] == ABSENT and _on_island",
        "if False and _on_island",
        "an island is delivered",
    ),
    mutant(
        "release",
        "if found >= 0 and status[found] == HELD:\n            next_watcher",
        "if False:\n            next_watcher",
        "a message that is here is waited for",
    ),
    mutant(
        "release",
        "if found == ABSENT and not forced[row]:\n            return False",
        "if False:\n            return False",
        "one that is not here is waited for",
    ),
    mutant(
        "release", "            status[row] = DELIVERED\n", "            pass\n", "what leaves is delivered"
    ),
    mutant("release", "            if unmet:\n", "            if False:\n", "who misses a cause is flagged"),
    mutant(
        "release", "if row_number[row] <= given_up[row_stream[row]]:", "if False:", "a missing cause is late"
    ),
    mutant(
        "release",
        "                    stack[height] = found\n                    height += 1",
        "                    pass",
        "causes of causes at hand go along",
    ),
    mutant(
        "release",
        "                    forced[found] = True\n",
        "                    pass\n",
        "causes at hand go along",
    ),
    mutant(
        "release",
        "        if at > rows.begin[stream] and last_held[at - 1] != NOBODY:",
        "        if False:",
        "the last one before a missing one is a cause",
    ),
    mutant("release", "if number > given_up[stream]:", "if False:", "what was missed is remembered"),
    mutant(
        "release",
        "        if stuck == count:\n            break",
        "        break",
        "a circle has to begin somewhere",
    ),
    mutant(
        "release",
        "            if overdue[row] and status[row] == HELD:",
        "            if status[row] == HELD:",
        "only who is overdue is diverted",
    ),
    mutant(
        "release",
        "status[found] in (HELD, DIVERTED)",
        "status[found] in (DIVERTED,)",
        "a held cause is missing",
    ),
    mutant(
        "release",
        "prefix[stream] = max(prefix[stream], next_high)",
        "pass",
        "what is delivered is remembered",
    ),
    mutant(
        "release",
        "            elif ends > begin[stream] and next_low <= high[ends - 1] + 1:",
        "            elif False:",
        "islands come together",
    ),
    mutant("release", "index[i] = next_index[receiver[i]]", "index[i] = i", "an index goes on"),
    mutant(
        "holding",
        "old |= is_delivered(self._gone(), new.stream, new.number)",
        "pass",
        "what was diverted is known",
    ),
    mutant(
        "holding",
        "old = is_delivered(self._delivered(), new.stream, new.number)",
        "old = np.zeros(len(new.stream), np.bool_)",
        "what was delivered is known",
    ),
    mutant(
        "holding",
        "held = merged.taken(order[~again])",
        "held = merged.taken(order)",
        "a copy of what is held is known",
    ),
    mutant(
        "holding",
        "overdue = held.arrival <= overdue_since",
        "overdue = held.arrival < overdue_since",
        "patience ends when it ends",
    ),
    mutant(
        "holding",
        "moved[self.stream], moved[self.cause_stream]\n\n    def _add_receivers",
        "self.stream, self.cause_stream\n\n    def _add_receivers",
        "streams keep their messages",
    ),
    mutant("holding", "keep[self.cause_stream] = True", "pass", "a stream that is waited for stays"),
]


def survives(module: Any) -> bool:
    for seed in range(SEEDS):
        for policy in ("wait", "flag", "divert"):
            compare(policy, seed, module)
        compare_circles(seed, module)
    return True


def test_unchanged_nothing_is_found() -> None:
    with modules(None, MODULES) as made:
        assert survives(made["kernels.holding"])


@pytest.mark.parametrize("change", MUTANTS)
def test_a_broken_rule_is_found(change: Change) -> None:
    with modules(change, MODULES) as made:
        try:
            survives(made["kernels.holding"])
        except (AssertionError, IndexError, KeyError, ValueError, AttributeError, TypeError):
            return
    pytest.fail("survived")

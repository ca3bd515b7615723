"""Each rule of members, dropped or weakened, is found.

A mutant is a change to one line; it is killed by one of the checks of `tests/helpers/members`.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from tests.helpers.members import (
    check_bad_before,
    check_bad_beside,
    check_canonical,
    check_damaged,
    check_listener,
    check_other_beside,
    check_own,
    check_same,
    check_turns,
    check_twice,
    listening,
    ran,
)
from tests.helpers.mutating import Change, modules

MADE = ("members.member", "members.rows", "members.bucket")


def same(made: Any) -> None:
    for name in ("relative", "bounded", "optimal", "frontiers", "fast"):
        for seed in range(3):
            check_same(ran(name, seed), random.Random(seed), made)


def listened(made: Any) -> None:
    for seed in range(4):
        run = ran("vector", seed, 14, 7)
        for process in listening(run):
            check_listener(run, random.Random(seed), process, made)


def twice(made: Any) -> None:
    for name in ("relative", "matrix", "histories"):
        check_twice(ran(name, 1, 30), made)


def turns(made: Any) -> None:
    check_turns(ran("matrix", 2, 30), made)


def beside(made: Any) -> None:
    for name in ("matrix", "fast", "slow"):
        check_bad_beside(ran(name, 4, 40), random.Random(name), made)
        check_other_beside(ran(name, 3, 60, 4), made)


def before(made: Any) -> None:
    check_bad_before(ran("vector", 6, 12, 3), made)
    check_bad_before(ran("vector", 1, 14, 7), made)


def own(made: Any) -> None:
    for name in ("vector", "bounded"):
        check_own(ran(name, 3, 60, 4), made)


def canonical(made: Any) -> None:
    check_canonical(ran("none", 4, 40), random.Random(4), made)


def damaged(made: Any) -> None:
    check_damaged(ran("vector", 3, 60, 4), made)


CHECKS: dict[str, Callable[[Any], None]] = {
    check.__name__: check for check in (same, listened, twice, turns, beside, before, own, canonical, damaged)
}

RULES = [
    (
        "turns",
        "members.member",
        "                these = self.early.setdefault(",
        "                self.turn = came.seq; these = self.early.setdefault(",
        "a row waits for the one before it",
    ),
    (
        "turns",
        "members.member",
        "if any(early.data == came.data for early in these):",
        "if False:",
        "of two rows with one turn that wait, one is a duplicate",
    ),
    (
        "beside",
        "members.member",
        "taken = self._packet(data, row, now, effects, in_turn=True)",
        "taken = self._packet(data, row, now, effects, in_turn=True) or True",
        "what is no packet takes no turn from a packet in its batch",
    ),
    (
        "beside",
        "members.member",
        "                self._belated(data, row, now, effects, before)\n",
        "                effects.counts[DUPLICATES] += 1\n",
        "what is no packet is diverted when its turn is over, too",
    ),
    (
        "before",
        "members.member",
        "            if fields[0] != self.process.me:\n",
        "            if fields[0] != self.process.me:\n                return\n",
        "a packet whose turn something else took is received",
    ),
    (
        "beside",
        "members.member",
        "                self._belated(data, row, now, effects, before)\n",
        "                self._belated(data, row, now, effects, self._sent())\n",
        "beside what a process sent another packet of it is no copy",
    ),
    (
        "beside",
        "members.member",
        "        protocol.decode(fields[4])\n",
        "",
        "the stamp of an own packet must be one",
    ),
    (
        "same",
        "members.member",
        "            self.turn += 1\n",
        "            self.turn += 2\n",
        "turns are taken one by one",
    ),
    (
        "twice",
        "members.member",
        "        if self.process.came(packet):\n",
        "        if False:\n",
        "a packet that comes again is a duplicate",
    ),
    (
        "own",
        "members.member",
        "if fields not in map(process.save_packet, outcome.packets):",
        "if False:",
        "an own packet must be what its process sends",
    ),
    (
        "own",
        "members.member",
        "            self.process = process.restored(before)\n",
        "",
        "an own packet that is refused teaches nothing",
    ),
    (
        "own",
        "members.member",
        "        if not in_turn:\n",
        "        if False:\n",
        "an own packet needs a turn",
    ),
    (
        "same",
        "members.member",
        "                outcome = process.null(group)\n",
        "                outcome = Outcome((), ())\n",
        "a null message is sent again",
    ),
    (
        "same",
        "members.member",
        "if number <= self._sent()[control]:",
        "if not control and number <= process.sent:",
        "what the protocol sent by itself is known",
    ),
    (
        "same",
        "members.member",
        "        if packet.control:\n",
        "        if False:\n",
        "a control packet is no message",
    ),
    (
        "same",
        "members.member",
        "            self.index += 1\n",
        "",
        "deliveries are numbered",
    ),
    (
        "turns",
        "members.member",
        "max(now - row.arrival, 0) / 1000",
        "max(now - now, 0) / 1000",
        "a message waits from its arrival",
    ),
    (
        "canonical",
        "members.rows",
        "    found.sort(key=_turn)\n",
        "",
        "the rows of a batch have an order of their own",
    ),
    (
        "canonical",
        "members.rows",
        "for each in _by_content(list(same), table, first_place)",
        "for each in same",
        "and so have those that differ in nothing else",
    ),
    (
        "same",
        "members.bucket",
        "            member.move(places)\n",
        "            pass\n",
        "rows that are kept have new places",
    ),
    (
        "damaged",
        "members.member",
        "member.saved() == saved and member.rows.keys() == set(map(_name, member.process.held()))",
        "member.saved() == saved",
        "every message that is held has a row",
    ),
    (
        "damaged",
        "members.member",
        "member.saved() == saved and member.rows",
        "member.rows",
        "a state is what it would be if it were saved again",
    ),
    (
        "listened",
        "members.bucket",
        "        self._keep(before)\n",
        "",
        "rows that are held are kept",
    ),
]


@pytest.mark.parametrize("check", CHECKS)
def test_the_rules_as_they_are_pass_every_check(check: str) -> None:
    with modules(None, MADE) as made:
        CHECKS[check](made["members.bucket"])


@pytest.mark.parametrize(
    ("check", "module", "line", "becomes", "rule"), RULES, ids=[each[-1] for each in RULES]
)
def test_a_rule_that_is_broken_is_found(check: str, module: str, line: str, becomes: str, rule: str) -> None:
    with modules(Change(module, line, becomes), MADE) as made, pytest.raises(Exception):  # noqa: B017
        CHECKS[check](made["members.bucket"])

"""Readers that join, change and leave in the middle of a random execution, and what each of them must get.

What counts as delivered is kept here as sets of messages, group by group: what is due comes from these and
from happened-before alone.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from causet.errors import BadInput
from causet.readers import readers_of
from causet.spark.streams.beginnings.plan import changes
from tests.helpers.grouped import Sent, execution
from tests.helpers.readers import Row, Served, row_of

Names = set[str]
Reads = dict[str, list[str]]


class Model:
    """Who has got what, and what counts as if."""

    def __init__(
        self, made: Sequence[Sent], readers: Mapping[str, Sequence[str]], flags: bool = False
    ) -> None:
        self.flags = flags
        """whether patience ends, so that something may come early"""
        self.made = {each.name: each for each in made}
        self.reads: Reads = {reader: list(groups) for reader, groups in readers.items()}
        self.known = dict(self.reads)
        """the same, with those that are gone"""
        self.came: Names = set()
        self.got: dict[str, list[str]] = defaultdict(list)
        self.counted: dict[tuple[str, str], Names] = defaultdict(set)
        """what counts as delivered to a reader in a group"""
        self.holds: dict[str, Names] = defaultdict(set)
        """what came for a reader, and has not left: also for one that is gone"""
        self.late: dict[str, Names] = defaultdict(set)
        """of what a reader holds, what is in its own cut: nothing waits for it"""

    def groups(self, name: str) -> set[str]:
        return set(self.made[name].stamped[1])

    def arrive(self, names: Names) -> None:
        self.came |= names
        for reader in self.reads:
            self.holds[reader] |= self.open(reader) & names

    def take(self, left: Sequence[Row]) -> None:
        for each in left:
            reader, name = each["receiver"], each["id"]
            if each["status"] == "diverted":
                assert each["problem"] == "came for a reader that does not read its groups any more"
                assert not self.groups(name) & {*self.known[reader]} and name in self.holds[reader]
                self.holds[reader].discard(name)
                continue
            assert name not in self.got[reader], "each once"
            assert each["index"] == len(self.got[reader])
            assert name in self.open(reader), "it is due"
            if not self.flags:
                assert each["status"] in ("delivered", "late")
                assert not self.made[name].past & self.open(reader) - self.late[reader], "early"
            self.late[reader].discard(name)
            self.holds[reader].discard(name)
            self.got[reader].append(name)
            for group in self.groups(name) & {*self.known[reader]}:
                self.counted[reader, group].add(name)

    def open(self, reader: str) -> Names:
        """What a reader has still to get of all messages, whether they came or not."""
        return {
            name
            for name in self.made
            if any(
                name not in self.counted[reader, group] for group in self.groups(name) & {*self.known[reader]}
            )
        } - {*self.got[reader]}

    def check(self) -> None:
        """Nobody waits for what is there."""
        for reader in self.reads:
            waits = self.open(reader)
            for name in waits & self.came:
                assert self.made[name].past & waits - self.came, f"{reader} should have {name}"

    def held(self, reader: str) -> Names:
        return self.open(reader) & self.came

    def begin(self, readers: Reads) -> bool:
        """Others read from now on; whether they can."""
        before = self.reads
        found = changes(readers_of(before), readers_of(readers))
        for reader, groups in found.added.items():
            for group in groups:
                others = [self.counted[other, group] for other in before if group in before[other]]
                for name in self.came & {each for each in self.made if group in self.groups(each)}:
                    open_there = not any(name in each for each in others)
                    left = any(name in self.counted[reader, mine] for mine in self.groups(name))
                    if open_there and left and name not in self.counted[reader, group]:
                        return False
        cuts = {
            (reader, group): set().union(
                *(self.counted[other, group] for other in before if group in before[other])
            )
            for reader, groups in found.added.items()
            for group in groups
        }
        for at, cut in cuts.items():
            self.counted[at] |= cut
        self.reads = readers
        self.known |= readers
        for reader in found.changed:
            for name in self.holds[reader]:
                here = [(reader, group) for group in self.groups(name) & {*readers[reader]}]
                if all(name in self.counted[at] for at in here):
                    for at in here:  # it never got this, and gets it now
                        self.counted[at].discard(name)
                        self.late[reader].add(name)
            self.holds[reader] |= self.open(reader) & self.came
        return True


def check_joining(seed: int, of: Any = None, flags: bool = False) -> Counter[str]:
    """A stream in batches; now and then others read. What was seen."""
    rng = random.Random(seed)
    seen = Counter[str]()
    made, groups = execution(rng, messages=rng.choice([10, 30]))
    pool = [f"r{number}" for number in range(6)]
    first = {reader: some(rng, groups) for reader in rng.sample(pool, rng.randrange(1, 4))}
    policy, patience = ("flag", 3) if flags else ("wait", None)
    served = Served(first, policy, patience, made=of)
    model = Model(made, first, flags)
    window = rng.choice([3, 10, 100])
    order = sorted(made, key=lambda each: int(each.name[1:]) + rng.random() * window)
    at = now = 0
    with TemporaryDirectory() as folder:
        while at < len(order):
            batch = order[at : at + rng.choice([1, 3, 5])]
            at += len(batch)
            model.arrive({each.name for each in batch})
            model.take(served.step([row_of(each) for each in batch], now))
            model.check()
            now += 1
            if rng.random() < 0.4:
                readers = another(rng, model.reads, pool)
                if readers:
                    join(served, model, readers, Path(folder), now, seen)
    if flags:
        model.take(served.step([], now + 1, ended=True))
    for reader in model.reads:
        assert not model.open(reader), "nothing is stuck once everything came"
    return seen


def some(rng: random.Random, groups: Sequence[str]) -> list[str]:
    return rng.sample(list(groups), rng.randrange(1, len(groups) + 1))


def another(rng: random.Random, reads: Reads, pool: Sequence[str]) -> Reads:
    """Some leave, some come, some read other groups that are read already."""
    known = sorted({group for groups in reads.values() for group in groups})
    found = {reader: groups for reader, groups in reads.items() if rng.random() < 0.8}
    for reader in list(found):
        if rng.random() < 0.3:
            found[reader] = some(rng, known)
    for reader in pool:
        if reader not in reads and rng.random() < 0.4:
            found[reader] = some(rng, known)
    return found


def join(served: Served, model: Model, readers: Reads, folder: Path, now: int, seen: Counter[str]) -> None:
    settings = served.settings
    before = dict(model.reads)
    possible = model.begin(readers)
    try:
        left = served.restart(readers, folder, now)
    except BadInput as error:
        assert not possible and "still hold; begin when they have delivered it" in str(error), error
        served.settings = settings
        seen["refused"] += 1
        return
    assert possible
    model.take(left)
    model.check()
    seen["joined"] += len(readers.keys() - before.keys())
    seen["changed"] += sum(
        set(before.get(reader, ())) not in ((), set(each)) for reader, each in readers.items()
    )
    seen["copies"] += sum(len(model.held(reader)) for reader in readers)
    seen["left"] += len(left)

"""Cuts that stampers forget by, and readers of every kind: what must be true of them by the definition.

Processes write to groups that overlap, read some, and begin again without their memory. A place publishes
cuts of what the readers that it knows have delivered. Stampers hear of them late, in another order, or never.
Some readers are known from the beginning, some register later, some never do, and some come when all is over.

The past of each message is kept as a set of messages, which no stamper sees; a set is an integer with a bit
for each message.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from random import Random
from typing import Any, NamedTuple

Contents = Mapping[str, Mapping[str, int]]


class Sent(NamedTuple):
    """A message, as its sender wrote it; and what is in its past, by the definition."""

    process: str
    numbers: Mapping[str, int]
    past: Contents
    cut: int
    envelope: Mapping[str, Any]
    before: int


class Reader:
    """Somebody who reads some groups from their beginning."""

    def __init__(self, world: World, reads: frozenset[str], counted: bool) -> None:
        self.world = world
        self.reads = reads
        self.counted = counted
        """whether the place knows of it"""
        self.always = counted
        """whether it did from the beginning"""
        self.facts: dict[Any, int] = {}
        self.delivered = 0

    def waiting(self) -> list[int]:
        mine = self.world.addressed(self.reads) & ~self.delivered
        return [at for at in range(len(self.world.sent)) if mine >> at & 1]

    def may(self, at: int) -> bool:
        """What the rule says of a message; and whether that is right."""
        world, message = self.world, self.world.sent[at]
        mine = world.addressed(self.reads) & ~self.delivered
        due = not message.before & mine
        if message.cut > world.visible:
            return False  # a reader does not know what it is to wait for
        cut = world.place[world.visible if world.latest else message.cut] if message.cut else {}
        rule = world.rule
        wanted = [*rule.needs(message.process, message.numbers, message.past, self.reads)]
        wanted += rule.needs_of(cut, self.reads)
        free = all(self.facts.get(fact, 0) >= least for fact, least in wanted)
        assert not free or due, f"early: {message}"
        assert free or not due or world.set_of(cut) & mine, f"it waits for what it need not: {message}"
        assert free or not due or not self.always, f"a reader that is known waits: {message}"
        return free

    def deliver(self, at: int) -> None:
        message = self.world.sent[at]
        self.delivered |= 1 << at
        for group in message.numbers.keys() & self.reads:
            self.facts[message.process, group] = message.numbers[group]

    def drain(self) -> None:
        """Everything can be delivered, in whatever order it comes."""
        waiting = self.waiting()
        self.world.draw.shuffle(waiting)
        while waiting:
            free = next((at for at in waiting if self.may(at)), None)
            assert free is not None, "it waits for ever"
            waiting.remove(free)
            self.deliver(free)


class Process:
    """Somebody who writes, and reads some groups."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self.lives = 0
        self.deaf = world.draw.random() < 0.4
        """whether it never hears of a cut but by messages"""
        self.reader = Reader(world, world.some(), world.draw.random() < 0.7)
        self.begin()

    def begin(self) -> None:
        """Without the memory of an earlier life; what was delivered is not delivered again."""
        self.lives += 1
        self.stamper = self.world.stamp.Stamper(self.name, run=str(self.lives))
        self.known = 0
        self.told: list[int] = []
        """cuts that are on their way here"""

    def send(self) -> None:
        world = self.world
        groups = world.draw.sample(world.groups, min(len(world.groups), world.draw.choice([1, 1, 2])))
        envelope = self.stamper.stamp(to=groups)
        numbers, past = world.stamp.frontier_of(envelope)
        cut = world.stamp.cut_of(envelope)
        world.sent.append(Sent(self.stamper.process, numbers, past, cut, envelope, self.known))
        at = len(world.sent) - 1
        for group in groups:
            world.masks[group] |= 1 << at
            world.points[group, self.stamper.process, numbers[group]] = at
        self.known |= 1 << at
        if self.reader.reads & set(groups):
            self.reader.deliver(at)

    def take(self) -> None:
        waiting = self.reader.waiting()
        for at in self.world.draw.sample(waiting, min(len(waiting), 3)):
            if self.reader.may(at):
                message = self.world.sent[at]
                self.reader.deliver(at)
                self.known |= message.before | 1 << at
                self.stamper.saw(message.envelope)
                return

    def hear(self) -> None:
        if self.told:
            number = self.told.pop(self.world.draw.randrange(len(self.told)))
            self.stamper.stable({"number": number, "groups": self.world.place[number]})


class World:
    """One random run. `rule` has `needs` and `needs_of`, `stamp` the stamper. With `latest`, readers wait for
    the last cut that they know in the place of the one that is named."""

    def __init__(self, rule: Any, stamp: Any, seed: int, latest: bool = False) -> None:
        self.rule, self.stamp, self.latest = rule, stamp, latest
        self.draw = Random(seed)
        self.groups = [f"g{i}" for i in range(self.draw.randint(2, 6))]
        self.masks = dict.fromkeys(self.groups, 0)
        self.points: dict[tuple[str, str, int], int] = {}
        self.sent: list[Sent] = []
        self.place: dict[int, Contents] = {0: {}}
        self.visible = 0
        """the largest cut that readers can read"""
        self.seen = Counter[str]()
        self.processes = [Process(self, f"p{i}") for i in range(self.draw.randint(2, 6))]
        self.readers = [Reader(self, self.some(), self.draw.random() < 0.5) for _ in range(2)]

    def some(self) -> frozenset[str]:
        return frozenset(
            self.draw.sample(self.groups, min(len(self.groups), self.draw.choice([1, 1, 2, 2, 4])))
        )

    def addressed(self, groups: Iterable[str]) -> int:
        found = 0
        for group in groups:
            found |= self.masks[group]
        return found

    def set_of(self, cut: Contents) -> int:
        found = 0
        for group, entries in cut.items():
            for process, number in entries.items():
                for each in range(1, number + 1):
                    found |= 1 << self.points[group, process, each]
        return found

    def publish(self) -> None:
        """A cut of what all readers that are known have delivered; of a group that none of them reads, some
        of it. Nothing is ever taken out of a cut."""
        last = self.place[max(self.place)]
        readers = [each.reader for each in self.processes] + self.readers
        found: dict[str, dict[str, int]] = {}
        for group, process, number in self.points:
            counted = [each for each in readers if each.counted and group in each.reads]
            delivered = [each.facts.get((process, group), 0) for each in counted]
            least = min(delivered, default=number if self.draw.random() < 0.5 else 0)
            before = last.get(group, {}).get(process, 0)
            if max(least, before):
                mine = found.setdefault(group, {})
                mine[process] = max(least, before, mine.get(process, 0))
        number = len(self.place)
        self.place[number] = found
        for each in self.processes:
            if not each.deaf and self.draw.random() < 0.7:  # else it is lost
                each.told.append(number)

    def step(self) -> None:
        what, process = self.draw.random(), self.draw.choice(self.processes)
        if what < 0.25:
            process.send()
        elif what < 0.65:
            process.take()
        elif what < 0.75:
            process.hear()
        elif what < 0.82:
            self.publish()
        elif what < 0.9:
            self.visible = self.draw.randint(self.visible, max(self.place))
        elif what < 0.92:
            process.begin()
        else:
            reader = self.draw.choice(self.readers)
            if self.draw.random() < 0.2:
                reader.counted = True  # it registers late
            waiting = reader.waiting()
            for at in self.draw.sample(waiting, min(len(waiting), 3)):
                if reader.may(at):
                    reader.deliver(at)
                    break

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self.step()
        self.visible = max(self.place)
        for reader in (*self.readers, *(each.reader for each in self.processes)):
            reader.drain()
        for _ in range(6):
            Reader(self, self.some(), counted=False).drain()
        self.seen["messages"] += len(self.sent)
        self.seen["with a cut"] += sum(message.cut > 0 for message in self.sent)
        self.seen["entries"] += sum(len(each) for one in self.sent for each in one.past.values())


def check_cuts_are_safe(rule: Any, stamp: Any, seeds: range, steps: int = 120) -> Counter[str]:
    seen = Counter[str]()
    for seed in seeds:
        world = World(rule, stamp, seed)
        world.run(steps)
        seen += world.seen
    return seen


def check_the_larger_cut_is_said(stamp: Any) -> None:
    """A cut that was only read, of which the contents are not known, and an older one that is told."""
    bank = stamp.Stamper("bank")
    bank.saw({"source": "q", "sequence": "1", "causalcut": 9})
    bank.stable({"number": 8, "groups": {"a": {"p": 1}}})
    assert stamp.cut_of(bank.stamp()) == 9
    bank.stable({"number": 10, "groups": {"a": {"p": 1}}})
    assert stamp.cut_of(bank.stamp()) == 10

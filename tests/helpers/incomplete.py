"""Incomplete orders (Rodrigues & Verissimo, chapter 6) by their definition: scopes, priorities, bypass.

The past of a message is kept as a set of messages of its scope, which no stamper sees: what its sender had
sent or delivered of the scope, and what was in the past of these. A reader must wait for what is in the past,
is addressed to it, and has the message's own priority or a higher one; and for nothing else. What bypasses
the order is in no past and has none.

Processes write and read; a process that reads where it writes delivers its own messages when it may, like
everybody. Each check takes the modules with the rules, so that mutants are judged by them, too.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

Made = Mapping[str, Any]
SCOPES = (None, "audit", "orders")
"""`orders` is a group, too."""
PRIORITIES = (0, 0, 0, 1, 2, 10, -1)


class Message(NamedTuple):
    envelope: Mapping[str, Any]
    groups: frozenset[str]
    scope: str | None
    priority: int
    bypass: bool
    before: frozenset[int]
    """the messages in its past, by their place in the run"""


class Reader:
    """Somebody who reads some groups from their beginning."""

    def __init__(self, world: World, reads: frozenset[str]) -> None:
        self.world = world
        self.reads = reads
        self.facts: dict[Any, int] = {}
        self.delivered: set[int] = set()

    def waiting(self) -> list[int]:
        every = enumerate(self.world.messages)
        return [at for at, each in every if at not in self.delivered and each.groups & self.reads]

    def due(self, at: int) -> bool:
        """Whether a message may be delivered, by the definition."""
        message = self.world.messages[at]
        causes = (self.world.messages[each] for each in message.before - self.delivered)
        return not any(c.groups & self.reads and c.priority >= message.priority for c in causes)

    def free(self, at: int) -> bool:
        """Whether the rule lets it go; and that is right."""
        wanted = self.world.wanted(self.world.messages[at].envelope, self.reads)
        free = all(self.facts.get(fact, 0) >= least for fact, least in wanted)
        assert free == self.due(at), ("early" if free else "late", at, self.world.messages[at])
        return free

    def deliver(self, at: int) -> None:
        self.delivered.add(at)
        for fact, number in self.world.facts(self.world.messages[at].envelope, self.reads):
            self.facts[fact] = number

    def drain(self) -> None:
        """Everything is delivered, in whatever order it comes."""
        waiting = self.waiting()
        self.world.draw.shuffle(waiting)
        while waiting:
            free = [at for at in waiting if self.free(at)]
            assert free, "it waits for ever"
            at = self.world.draw.choice(free)
            waiting.remove(at)
            self.deliver(at)


class World:
    """One random run. With a folder, stampers have files, and are killed and begin again."""

    def __init__(self, made: Made, seed: int, folder: Path | None = None) -> None:
        self.rule, self.stamp, self.envelope = made["frontier"], made["stamp"], made["envelope"]
        self.draw = Random(seed)
        self.folder = folder
        self.groups = ["orders", "payments", "news"][: self.draw.randint(1, 3)]
        self.scopes = SCOPES[: self.draw.randint(1, 3)]
        self.messages: list[Message] = []
        self.names = [f"p{i}" for i in range(self.draw.randint(2, 5))]
        self.readers = {name: Reader(self, self.some()) for name in self.names}
        self.known: dict[Any, set[int]] = {}
        self.stampers = {name: self.begun(name) for name in self.names}
        self.unsent: dict[str, list[Any]] = {name: [] for name in self.names}

    def begun(self, name: str) -> Any:
        return self.stamp.Stamper(name, run="1", file=self.folder / name if self.folder else None)

    def again(self, name: str) -> Any:
        """The stamper of a process, which may have been killed since, or saved and restored."""
        stamper = self.stampers[name]
        if self.draw.random() < 0.2:
            if self.folder is not None:
                stamper.close()
                stamper = self.begun(name)
            else:
                stamper = self.stamp.Stamper.restore(stamper.save())
            self.stampers[name] = stamper
        return stamper

    def some(self) -> frozenset[str]:
        return frozenset(self.draw.sample(self.groups, self.draw.randint(1, len(self.groups))))

    def wanted(self, envelope: Mapping[str, Any], reads: frozenset[str]) -> list[Any]:
        """What the rule says that a reader waits for: facts of its scope."""
        priority, scope = self.envelope.priority_of(envelope), self.envelope.scope_of(envelope)
        numbers, past = self.envelope.frontier_of(envelope)
        process = self.envelope.process_of(envelope)
        channels = self.rule.Channels(reads, priority)
        return [((scope, *fact), n) for fact, n in self.rule.needs(process, numbers, past, channels)]

    def facts(self, envelope: Mapping[str, Any], reads: frozenset[str]) -> list[Any]:
        process, scope = self.envelope.process_of(envelope), self.envelope.scope_of(envelope)
        numbers = self.envelope.channels_of(envelope)
        return [
            ((scope, process, channel), number)
            for channel, number in numbers.items()
            if self.rule.parts_of(channel)[0] in reads
        ]

    def send(self, name: str) -> None:
        draw, stamper = self.draw, self.again(name)
        groups = frozenset(draw.sample(self.groups, min(len(self.groups), draw.choice([1, 1, 2]))))
        bypass = draw.random() < 0.1
        scope = None if bypass else draw.choice(self.scopes)
        priority = 0 if bypass else draw.choice(PRIORITIES)
        to = sorted(groups)
        envelope = stamper.stamp(to=to, priority=priority, scope=scope, bypass=bypass)
        if self.folder is not None:
            self.unsent[name].append(envelope)
            assert stamper.unsent == self.unsent[name]
            if draw.random() < 0.5:
                stamper.sent(self.unsent[name].pop(draw.randrange(len(self.unsent[name]))))
        known = self.known.setdefault((name, scope), set())
        before = frozenset() if bypass else frozenset(known)
        wire = self.wire(envelope)
        assert not any(wire["id"] == each.envelope["id"] for each in self.messages), "an id is used twice"
        self.messages.append(Message(wire, groups, scope, priority, bypass, before))
        if not bypass:
            known.add(len(self.messages) - 1)

    def wire(self, envelope: Mapping[str, Any]) -> Any:
        """Through JSON, or through headers, as text."""
        if self.draw.random() < 0.5:
            return json.loads(json.dumps(envelope))
        headers, value = self.stamp.to_binary(envelope)
        assert self.stamp.from_binary(headers, value) == envelope
        return envelope

    def take(self, name: str) -> None:
        reader = self.readers[name]
        waiting = reader.waiting()
        for at in self.draw.sample(waiting, min(len(waiting), 3)):
            if reader.free(at):
                reader.deliver(at)
                message = self.messages[at]
                if not message.bypass:
                    self.known.setdefault((name, message.scope), set()).update(message.before, {at})
                self.again(name).saw(message.envelope)
                return

    def run(self, steps: int) -> Counter[str]:
        for _ in range(steps):
            name = self.draw.choice(self.names)
            (self.send if self.draw.random() < 0.35 else self.take)(name)
        for reader in (*self.readers.values(), *(Reader(self, self.some()) for _ in range(3))):
            reader.drain()
        for stamper in self.stampers.values():
            stamper.close()
        return self.seen()

    def seen(self) -> Counter[str]:
        """How often what this is about has happened."""
        pairs = [(m, self.messages[c]) for m in self.messages for c in m.before]
        return Counter(
            {
                "before a less urgent cause": sum(m.priority > c.priority for m, c in pairs),
                "after a more urgent cause": sum(m.priority < c.priority for m, c in pairs),
                "in a scope": sum(m.scope is not None for m in self.messages),
                "bypass": sum(m.bypass for m in self.messages),
            }
        )


def check_incomplete_orders(
    made: Made, seeds: range, steps: int = 60, folder: Callable[[int], Path] | None = None
) -> Counter[str]:
    """Whatever is delivered, the rule lets go exactly what the definition lets go; and in the end all."""
    seen = Counter[str]()
    for seed in seeds:
        seen += World(made, seed, folder(seed) if folder is not None else None).run(steps)
    return seen


def check_bypass(made: Made) -> None:
    """No number, no past; nothing is changed by it, where it is sent and where it is seen."""
    shop, bank = (made["stamp"].Stamper(name, "orders", run="1") for name in ("shop", "bank"))
    shop.stamp()
    before, of_bank = shop.save(), bank.save()
    alarm = shop.stamp("fire", bypass=True, to=["orders", "news"])
    assert shop.save() == before
    said = {name for name in alarm if name.startswith("causal") or name == "sequence"}
    assert said == {"causalversion", "causalprocess", "causalgroups", "causalbypass"}
    assert alarm["causalbypass"] is True and alarm["causalgroups"] == '["orders","news"]'
    assert made["envelope"].frontier_of(alarm) == ({}, {})
    bank.saw(alarm)
    assert bank.save() == of_bank
    assert shop.stamp(bypass=True)["id"] != alarm["id"], "it is known by its id"

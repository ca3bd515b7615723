"""Producers and readers of groups that overlap, and what must be true of them by the definition.

The past of a message is kept as a set of messages, which no rule of `causet.frontier` sees. Each check takes
the module with the rule, so that mutants are judged by them, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any, NamedTuple

from causet.check.explorer import explore
from causet.check.oracle import judge
from causet.check.scopes import scopes_for
from causet.model import System, named_processes, with_several
from causet.protocols import make_options
from causet.simulate.network import simulate
from causet.simulate.record import Recorder
from causet.simulate.workload import Workload, delay_of
from causet.topology import groups_of

GROUPS = ("pairs", "twins", "chain")


class Message(NamedTuple):
    sender: str
    groups: frozenset[str]
    numbers: Mapping[str, int]
    past: Mapping[str, Mapping[str, int]]
    before: frozenset[int]
    """the messages in its past, by their place in the run"""


class World:
    """Producers that write to any groups and read some; and readers that are given all, in any order."""

    def __init__(self, rule: Any, seed: int) -> None:
        self.rule = rule
        draw = self.draw = Random(seed)
        self.groups = [f"g{i}" for i in range(draw.randint(1, 6))]
        self.messages: list[Message] = []
        self.names = [f"p{i}" for i in range(draw.randint(2, 8))]
        self.reads = {name: self.some() for name in self.names}
        self.stamps = {name: rule.Frontier(name) for name in self.names}
        self.delivered: dict[str, list[int]] = {name: [] for name in self.names}
        self.known: dict[str, set[int]] = {name: set() for name in self.names}

    def some(self) -> frozenset[str]:
        return frozenset(self.draw.sample(self.groups, self.draw.randint(1, len(self.groups))))

    def run(self, steps: int) -> None:
        for _ in range(steps):
            name = self.draw.choice(self.names)
            if self.draw.random() < 0.4:
                self.send(name)
            else:
                self.take(name)

    def send(self, name: str) -> None:
        groups = frozenset(self.draw.sample(self.groups, min(len(self.groups), self.draw.choice([1, 1, 2]))))
        numbers, past = self.stamps[name].stamp(sorted(groups))
        before = frozenset(self.known[name])
        self.messages.append(Message(name, groups, numbers, past, before))
        place = len(self.messages) - 1
        self.known[name].add(place)
        if groups & self.reads[name]:
            self.delivered[name].append(place)

    def take(self, name: str) -> None:
        """Deliver some message whose causes, by the definition, are there."""
        free = [m for m in self.arrived(name) if self.may(self.reads[name], m, self.delivered[name])]
        if free:
            place = self.draw.choice(free)
            message = self.messages[place]
            self.delivered[name].append(place)
            self.known[name] |= message.before | {place}
            self.stamps[name].saw(message.sender, message.numbers, message.past)

    def arrived(self, name: str) -> list[int]:
        done = set(self.delivered[name])
        return [m for m, each in enumerate(self.messages) if m not in done and each.groups & self.reads[name]]

    def may(self, reads: frozenset[str], place: int, delivered: list[int]) -> bool:
        causes = (m for m in self.messages[place].before if self.messages[m].groups & reads)
        return all(m in delivered for m in causes)

    def check_reader(self, reads: frozenset[str]) -> None:
        """Whatever is delivered, the rule lets go exactly what the definition lets go."""
        waiting = [m for m, each in enumerate(self.messages) if each.groups & reads]
        self.draw.shuffle(waiting)
        facts: dict[Any, int] = {}
        delivered: list[int] = []
        while waiting:
            free = []
            for place in waiting:
                message = self.messages[place]
                wanted = self.rule.needs(message.sender, message.numbers, message.past, reads)
                by_rule = all(facts.get(fact, 0) >= least for fact, least in wanted)
                assert by_rule == self.may(reads, place, delivered), (place, message)
                if by_rule:
                    free.append(place)
            place = self.draw.choice(free)
            waiting.remove(place)
            delivered.append(place)
            message = self.messages[place]
            for group in message.groups & reads:
                facts[message.sender, group] = message.numbers[group]


def check_against_the_definition(rule: Any, seeds: range) -> None:
    for seed in seeds:
        world = World(rule, seed)
        world.run(60)
        for _ in range(2):
            world.check_reader(world.some())


def check_what_is_known_adds_nothing(rule: Any) -> None:
    """Duplicates, late messages, and frontiers of those who know less."""
    a, b, c = (rule.Frontier(name) for name in "abc")
    first = a.stamp(["g"])
    b.saw("a", *first)
    second = b.stamp(["g", "h"])
    c.saw("b", *second)
    assert c.stamp(["h"]).past == {"g": {"b": 1}, "h": {"b": 1}}, "b's message covers a's"
    c.saw("a", *first)
    assert c.stamp(["h"]).past == {"g": {"b": 1}, "h": {"c": 1}}, "a's message is known by b's"
    c.saw("b", *second)
    assert c.stamp(["h"]).past == {"g": {"b": 1}, "h": {"c": 2}}
    less = rule.Frontier("d")
    less.saw("a", *first)
    c.saw("d", *less.stamp(["i"]))
    assert c.stamp(["h"]).past == {"g": {"b": 1}, "h": {"c": 3}, "i": {"d": 1}}, "a's does not come back"
    e = rule.Frontier("e")
    e.saw("a", *first)
    e.saw("b", *second)
    assert e.frontier["g"] == {"b": 1}, "what a message covers goes"
    again = a.stamp(["g"])
    e.saw("a", *again)
    assert e.frontier["g"] == {"a": 2, "b": 1}
    e.stamp(["g"])
    e.saw("d", *less.stamp(["i"]))
    e.saw("a", *again)
    assert e.frontier["g"] == {"e": 1}, "what is covered stays covered, whoever knows less"


def check_the_parts_of_a_message(rule: Any) -> None:
    shop = rule.Frontier("shop")
    assert shop.stamp(["orders", "audit"]) == ({"orders": 1, "audit": 1}, {})
    assert shop.stamp(["orders"]) == ({"orders": 2}, {"orders": {"shop": 1}, "audit": {"shop": 1}})
    third = shop.stamp(["audit"])
    assert third == ({"audit": 2}, {"orders": {"shop": 2}, "audit": {"shop": 1}})
    desk = rule.Frontier("desk")
    desk.saw("shop", *third)
    assert desk.stamp(["desk"]).past == {"orders": {"shop": 2}, "audit": {"shop": 2}}
    assert third.past == {"orders": {"shop": 2}, "audit": {"shop": 1}}, "what was stamped does not change"
    assert desk.next(["desk"]) == desk.next(["desk"]) == ({"desk": 2}, desk.frontier), "to look is no stamp"


def check_what_others_say_of_a_process(rule: Any) -> None:
    """Its own numbers are known to a process, whatever is claimed of them."""
    shop, liar = rule.Frontier("shop"), rule.Frontier("liar")
    shop.stamp(["g"])
    shop.saw("liar", {"h": 1}, {"g": {"shop": 7}, "i": {"shop": 3}})
    assert shop.stamp(["g", "i"]) == ({"g": 2, "i": 1}, {"g": {"shop": 1}, "h": {"liar": 1}})
    shop.saw("shop", {"g": 9}, {})
    shop.stable({"g": {"shop": 9}})
    assert shop.next(["g"]).numbers == {"g": 3}
    liar.saw("shop", {"g": 2, "i": 1}, {"g": {"shop": 1}, "h": {"liar": 1}})
    assert liar.frontier == {"g": {"shop": 2}, "i": {"shop": 1}}


def check_cuts(rule: Any) -> None:
    """What a cut has is forgotten and does not come back; all else stays. Told twice, it changes nothing."""
    a, b, c = (rule.Frontier(name) for name in "abc")
    first, second = a.stamp(["g"]), a.stamp(["h"])
    c.saw("a", *first)
    c.saw("a", *second)
    c.saw("b", *b.stamp(["g"]))
    assert c.frontier == {"g": {"a": 1, "b": 1}, "h": {"a": 1}}
    cut = {"g": {"a": 1, "d": 4}, "h": {"a": 1}}
    assert c.news_of(cut) == cut
    c.stable(cut)
    assert c.next(["i"]).past == {"g": {"b": 1}} and c.news_of(cut) == c.news_of({"g": {"a": 1}}) == {}
    assert c.news_of({"g": {"b": 1, "d": 5}, "h": {"a": 1}}) == {"g": {"b": 1, "d": 5}}
    c.saw("a", *first)
    c.saw("e", {"k": 1}, {"g": {"a": 1, "d": 4}, "h": {"a": 1, "b": 1}})
    assert c.next(["i"]).past == {"g": {"b": 1}, "h": {"b": 1}, "k": {"e": 1}}
    a.saw("d", {"g": 1}, {})
    a.saw("b", {"g": 5}, {})
    a.stable({"g": {"b": 4, "d": 1}})
    assert a.frontier == {"g": {"a": 1, "b": 5}, "h": {"a": 1}}
    assert a.news_of({"g": {"b": 4, "d": 1}}) == {}
    assert list(rule.needs_of(cut, {"h", "i"})) == [(("a", "h"), 1)]
    assert list(rule.needs_of(cut, {"g"})) == [(("a", "g"), 1), (("d", "g"), 4)]


def check_the_news_of_a_message(rule: Any, seeds: range) -> None:
    """To see what is new in a message is to see the message."""
    for seed in seeds:
        world = World(rule, seed)
        world.run(60)
        whole, part = rule.Frontier("reader"), rule.Frontier("reader")
        for place in world.draw.sample(range(len(world.messages)), len(world.messages)):
            message = world.messages[place]
            news = part.news(message.sender, message.numbers, message.past)
            whole.saw(message.sender, message.numbers, message.past)
            part.saw(message.sender, *news)
            assert (whole.frontier, whole.covered) == (part.frontier, part.covered)
            assert part.news(message.sender, message.numbers, message.past) == ({}, {})
            if world.draw.random() < 0.2:
                assert whole.stamp(["g0"]) == part.stamp(["g0"])


def check_random_runs(kind: Any, seeds: range) -> None:
    for seed in seeds:
        draw = Random(seed)
        size = draw.randint(4, 9)
        groups = groups_of(f"random:{draw.randint(2, 4)}x{draw.randint(2, size - 1)}", size, seed)
        system = System(named_processes(size), with_several(groups, draw.choice([1, 2, 3])))
        options, _ = make_options(kind, system, {})
        workload = Workload(system, 60, 2.0, delay_of("exp:2"), seed, opens=draw.random() < 0.7)
        events: list[Any] = []
        simulate(kind, options, workload, observers=[Recorder(system, events.append)])
        verdict = judge(events)
        assert verdict.violations == () and verdict.undelivered == () and verdict.duplicates == (), seed
        assert verdict.late == (), seed


def check_every_interleaving(kind: Any, groups: str, opens: bool, messages: int = 3) -> None:
    [named] = scopes_for(kind, 3, messages, groups=groups, opens=opens)
    report = explore(named.scope)
    assert report.complete and not report.findings, report.finding

"""The kernel of `deliver` beside the engine: random messages, in batches, with state in memory."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from causet.delivery import Conflict, Delivered, Delivery
from causet.envelope import ALL
from causet.kernels.streams import holding
from causet.kernels.streams.holding import Holding
from causet.kernels.streams.keys import key_of
from causet.status import LATE, POLICIES, STATUSES
from tests.helpers.held_messages import messages

Message = tuple[str, int, dict[str, int], int]
"""Source, number, causes, and a fingerprint."""


def random_messages(rng: random.Random, circles: bool = False) -> list[Message]:
    """Messages of a few sources, each with direct causes among those before it; in a random order, with some
    lost and some twice."""
    sources = [f"s{number}" for number in range(rng.randrange(1, 5))]
    counts = dict.fromkeys(sources, 0)
    made: list[Message] = []
    for _ in range(rng.randrange(1, 25)):
        source = rng.choice(sources)
        counts[source] += 1
        causes = {
            other: rng.randrange(max(1, counts[other] - 3), counts[other] + 1)
            for other in sources
            if other != source and counts[other] and rng.random() < 0.4
        }
        if circles and rng.random() < 0.1:
            causes[rng.choice(["s9", *sources])] = rng.randrange(1, 10)
            if causes.get(source, 0) >= counts[source]:
                del causes[source]
        made.append((source, counts[source], causes, 1))
    kept = [each for each in made if rng.random() < 0.9]
    kept += [(*each[:3], rng.choice([1, 1, 2])) for each in kept if rng.random() < 0.15]
    window = rng.choice([1, 3, 100])
    return [
        each for _, each in sorted((place + rng.random() * window, each) for place, each in enumerate(kept))
    ]


def in_batches(rng: random.Random, made: Sequence[Message]) -> list[list[Message]]:
    size = rng.choice([1, 2, 5, 100])
    return [list(made[at : at + size]) for at in range(0, len(made), size)]


class InMemory:
    """A map of Spark's state."""

    def __init__(self, values: dict[tuple[int], tuple[bytes]] | None = None) -> None:
        self.values = {} if values is None else values

    def getValue(self, key: tuple[int]) -> Any:
        return self.values.get(key)

    def updateValue(self, key: tuple[int], value: tuple[bytes]) -> None:
        self.values[key] = value

    def removeKey(self, key: tuple[int]) -> None:
        del self.values[key]


class Kernel:
    """The kernel, asked in the words of the engine."""

    def __init__(self, policy: str, patience: int, module: Any = holding) -> None:
        self.module = module
        self.holding = module.Holding.empty()
        self.policy, self.patience = POLICIES.index(policy), patience
        self.places: list[Message] = []
        self.names: dict[bytes, str] = {}
        self.store: dict[tuple[int], tuple[bytes]] = {}
        self.duplicates = self.conflicts = 0

    def step(self, batch: Sequence[Message], now: int, ended: bool = False) -> list[Delivered[None]]:
        self.holding = self.module.Holding.from_bytes(self.holding.to_bytes())
        marks = [each[3] for each in batch]
        taken = messages((("r", *each[:3]) for each in batch), len(self.places), marks)
        self.places.extend(batch)
        for source, _, causes, _ in batch:
            self.names |= {key_of("r", ALL, name): name for name in (source, *causes)}
        outcome = self.holding.step(
            taken,
            self.module.Marks(InMemory(self.store), self.holding.marks),
            now,
            self.policy,
            now if ended else now - self.patience,
        )
        self.duplicates += outcome.duplicates
        self.conflicts += len(outcome.conflicts)
        assert not len(outcome.selfish) and not len(outcome.forgotten) and not len(outcome.far)
        missing: dict[int, dict[str, int]] = {}
        for turn, stream, number in outcome.missing:
            name = self.names[stream]
            mine = missing.setdefault(turn, {})
            mine[name] = max(number, mine.get(name, 0))
        return [
            Delivered(
                self.places[place][0],
                self.places[place][1],
                None,
                None if index < 0 else int(index),
                STATUSES[status],
                float(waited),
                missing.get(turn, {}),
            )
            for turn, (place, index, status, waited) in enumerate(
                zip(outcome.place, outcome.index, outcome.status, outcome.waited, strict=True)
            )
        ]


def check(left: Sequence[Delivered[Any]], made: Sequence[Message], policy: str, waiting: int) -> None:
    """The definition: what each status promises, from the messages alone."""
    causes = {each[:2]: each[2] for each in made}
    delivered: set[tuple[str, int]] = set()
    gone: set[tuple[str, int]] = set()
    named: set[tuple[str, int]] = set()
    for each in left:
        name = (each.source, each.number)
        needs = [*causes[name].items(), *([(each.source, each.number - 1)] if each.number > 1 else [])]
        missed = [need for need in needs if need not in delivered]
        unmet: dict[str, int] = {}
        for source, number in missed:
            unmet[source] = max(number, unmet.get(source, 0))
        if each.status == "diverted":
            assert each.index is None and unmet == each.missing and unmet
            gone.add(name)
            continue
        assert each.index == len(delivered)
        assert name not in delivered and name not in gone
        assert each.missing == unmet
        assert each.status == ("late" if name in named else "flagged" if unmet else "delivered")
        named |= set(missed)
        delivered.add(name)
    assert len(delivered) + len(gone) + waiting == len(causes)
    if policy == "wait":
        assert not gone and not named


def check_compact(held: Holding) -> None:
    """What is remembered is no longer than it must be: between islands, and before the first, is a hole."""
    for stream, (begin, end) in enumerate(zip(held.begin[:-1], held.begin[1:], strict=True)):
        before = held.prefix[stream]
        for low, high in zip(held.low[begin:end], held.high[begin:end], strict=True):
            assert low > before + 1 and high >= low
            before = high


def compare(policy: str, seed: int, module: Any = holding) -> set[str]:
    """The kernel against the engine, and both against the definition, on random messages in random batches;
    the statuses that were seen."""
    rng = random.Random(seed)
    made = random_messages(rng)
    patience = rng.choice([1, 3, 10])
    engine: Delivery[None] = Delivery(policy, None if policy == "wait" else patience)
    kernel = Kernel(policy, patience, module)
    by_engine: list[Delivered[None]] = []
    by_kernel: list[Delivered[None]] = []
    now = 0
    again = conflicts = 0
    for batch in in_batches(rng, made):
        now += rng.randrange(1, 4)
        for each in sorted(batch, key=lambda each: each[3]):  # of several in one batch, the smallest counts
            try:
                again += not engine.offer(*each[:3], None, now, each[3])
            except Conflict:
                conflicts += 1
        left, found = engine.take(now), kernel.step(batch, now)
        assert {(e.source, e.number, e.status, e.waited) for e in left} == {
            (e.source, e.number, e.status, e.waited) for e in found
        }
        by_engine += left
        by_kernel += found
    assert (again, conflicts) == (kernel.duplicates, kernel.conflicts)
    if rng.random() < 0.5:
        now += 1
        by_engine += engine.take(now, ended=True)
        by_kernel += kernel.step([], now, ended=True)
        assert policy == "wait" or len(engine) == 0
    assert len(engine) == len(kernel.holding)
    check_compact(kernel.holding)
    check(by_engine, made, policy, len(engine))
    check(by_kernel, made, policy, len(engine))
    return {each.status for each in by_kernel}


def compare_circles(seed: int, module: Any = holding) -> bool:
    """The same with messages that wait for each other; whether there was a circle."""
    rng = random.Random(seed)
    made = random_messages(rng, circles=True)
    engine: Delivery[None] = Delivery("flag", 3)
    kernel = Kernel("flag", 3, module)
    by_engine: list[Delivered[None]] = []
    by_kernel: list[Delivered[None]] = []
    for now, batch in enumerate(in_batches(rng, made)):
        for each in batch:
            engine.offer(*each[:3], None, now)
        by_engine += engine.take(now)
        by_kernel += kernel.step(batch, now)
    by_engine += engine.take(1000, ended=True)
    by_kernel += kernel.step([], 1000, ended=True)
    check(by_engine, made, "flag", 0)
    check(by_kernel, made, "flag", 0)
    return any(each.status == LATE and each.waited for each in by_kernel)


def pasts_of(made: Sequence[Message]) -> dict[tuple[str, int], set[tuple[str, int]]]:
    """By the definition: the previous one of the source, the causes, and their pasts."""
    found: dict[tuple[str, int], set[tuple[str, int]]] = {}
    for source, number, causes, _ in made:
        before = [*causes.items(), *([(source, number - 1)] if number > 1 else [])]
        found[source, number] = set().union(*({each} | found[each] for each in before))
    return found

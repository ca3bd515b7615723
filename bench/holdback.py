"""What a message costs the hold-back engine while 100,000 others wait, over what it costs while 1,000 do.

The same number of messages goes through in both cases, in batches of the backlog's size: a batch is offered,
every message of it has to wait, then what they wait for comes, and all are released. Checked in every run:
nothing is free before that, nothing is left after it.

The messages are made beforehand, down to their numbers, in the order of their arrival: so they lie in memory
as messages do that come in one by one. What is timed is offering, advancing facts
and popping, with the facts that each released message raises, as a protocol would. The required figure is
with the garbage collector on, as users have it; the one without is for information (see `timing`).

With `--quick` 20,000 wait in place of 100,000.

Shapes of waiting:

    chain      each waits for the one before it from the same sender; offered in reverse order
    relay      each waits for the one before it, which is of another sender; offered in reverse order
    steps      all wait on one fact, which reaches their rising thresholds one by one; in random order
    burst      the same, but the fact reaches the highest threshold at once
    several    each waits on 4 facts, which rise one after the other, so it changes its watch 3 times
    dag        each waits for the one before it from its sender and for 3 random ones; in random order
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from random import Random
from typing import NamedTuple

from bench.result import Figure, Result, Spoilt
from bench.timing import best
from causet.holdback import HoldBack, Key, Threshold

REQUIRED = 3.0
FACTS = 4
SENDERS = 50
CAUSES = 3
RECENT = 256
"""Random causes are among so many messages before: the graph looks the same at any size of the backlog."""

Teaches = tuple[Threshold, ...]


class Offer(NamedTuple):
    key: Key
    thresholds: tuple[Threshold, ...]
    payload: Teaches
    """the facts that its release raises"""
    rank: int


class Batch(NamedTuple):
    offers: list[Offer]
    comes: list[Threshold]
    """what the batch waits for, in the order in which it comes"""


Shape = Callable[[int, int, Random], Batch]
"""(number of the batch, its size, randomness) → the batch."""


def chain(batch: int, size: int, draw: Random) -> Batch:
    start = batch * (size + 1)
    offers = [
        Offer(("p", number), (("p", number),), (("p", number + 1),), 0)
        for number in range(start + size, start, -1)
    ]
    return Batch(offers, [("p", start + 1)])


def relay(batch: int, size: int, draw: Random) -> Batch:
    value = batch + 1
    offers = [
        Offer((place, value), ((place, value),), ((place + 1, value),), 0)
        for place in range(size - 1, -1, -1)
    ]
    return Batch(offers, [(0, value)])


def _shuffled(size: int, draw: Random) -> list[int]:
    places = list(range(size))
    draw.shuffle(places)
    return places


def _one_fact(batch: int, size: int, draw: Random) -> list[Offer]:
    first = batch * size + 1
    return [
        Offer(("p", first + place), (("fact", first + place),), (), first + place)
        for place in _shuffled(size, draw)
    ]


def steps(batch: int, size: int, draw: Random) -> Batch:
    first = batch * size + 1
    return Batch(_one_fact(batch, size, draw), [("fact", first + step) for step in range(size)])


def burst(batch: int, size: int, draw: Random) -> Batch:
    return Batch(_one_fact(batch, size, draw), [("fact", (batch + 1) * size)])


def several(batch: int, size: int, draw: Random) -> Batch:
    """The last fact rises step by step, and messages are numbered by what they wait for there."""
    first, last = batch * size + 1, FACTS - 1
    columns = [_shuffled(size, draw) for _ in range(FACTS)]
    offers = [
        Offer(("p", first + places[last]), tuple((f, first + place) for f, place in enumerate(places)), (), 0)
        for places in zip(*columns, strict=True)
    ]
    at_once = [(fact, first + size - 1) for fact in range(last)]
    return Batch(offers, [*at_once, *((last, first + step) for step in range(size))])


def dag(batch: int, size: int, draw: Random) -> Batch:
    """Facts are senders, as in the protocols; the first message waits for a gate, all others for it."""
    start = batch * (size // SENDERS)
    line = [sender for sender in range(SENDERS) for _ in range(size // SENDERS)]
    draw.shuffle(line)
    sent = [0] * SENDERS
    ids: list[tuple[int, int]] = []  # (sender, number within the batch)
    causes: list[list[tuple[int, int]]] = []
    for place, sender in enumerate(line):
        recent = {draw.randrange(max(0, place - RECENT), place) for _ in range(CAUSES)} if place else set()
        causes.append([(sender, sent[sender]), *(ids[cause] for cause in sorted(recent))])
        sent[sender] += 1
        ids.append((sender, sent[sender]))
    offers = []
    for place in _shuffled(len(line), draw):
        thresholds = tuple([(s, start + number) for s, number in causes[place]])
        sender, number = ids[place][0], start + ids[place][1]
        needs = thresholds if place else (("gate", batch + 1), *thresholds)
        offers.append(Offer((sender, number), needs, ((sender, number),), 0))
    return Batch(offers, [("gate", batch + 1)])


SHAPES: dict[str, Shape] = {
    "chain": chain,
    "relay": relay,
    "steps": steps,
    "burst": burst,
    "several": several,
    "dag": dag,
}


def batches_of(shape: Shape, backlog: int, total: int) -> list[Batch]:
    draw = Random(backlog)
    return [shape(batch, backlog, draw) for batch in range(total // backlog)]


def work(batches: Sequence[Batch]) -> int:
    """Put the batches through one engine; how many messages were released."""
    engine: HoldBack[Teaches] = HoldBack(in_order=True)
    offer, advance, pop = engine.offer, engine.advance, engine.pop
    released = 0
    for offers, comes in batches:
        for key, thresholds, payload, rank in offers:
            offer(key, thresholds, payload, rank)
        if pop() is not None or len(engine) != len(offers):
            raise Spoilt("a message did not wait")
        for fact, value in comes:
            advance(fact, value)
            while (teaches := pop()) is not None:
                released += 1
                for taught, number in teaches:
                    advance(taught, number)
        if len(engine):
            raise Spoilt(f"{len(engine)} messages were never released")
    return released


class Plan(NamedTuple):
    few: int
    many: int
    repetitions: int
    without: int
    """repetitions without the garbage collector"""


FULL = Plan(1_000, 100_000, repetitions=6, without=2)
QUICK = Plan(1_000, 20_000, repetitions=3, without=0)


def compare(name: str, plan: Plan) -> Result:
    """One shape at both sizes."""
    few, many = plan.few, plan.many
    works = {backlog: partial(work, batches_of(SHAPES[name], backlog, many)) for backlog in (few, many)}

    def measured(repetitions: int, collect: bool) -> tuple[float, float, float]:
        """Microseconds per message with few and many waiting, and their ratio."""
        taken = best(works, repetitions, collect=collect)
        return taken[few] / many * 1e6, taken[many] / many * 1e6, taken[many] / taken[few]

    at_few, at_many, ratio = measured(plan.repetitions, collect=True)
    told = f"{at_few:.2f} → {at_many:.2f} µs per message"
    figures: dict[str, Figure] = {
        "shape": name,
        "messages": many,
        "few": few,
        "many": many,
        "microseconds_few": at_few,
        "microseconds_many": at_many,
    }
    if plan.without:
        at_few, at_many, off = measured(plan.without, collect=False)
        told += f"; without garbage collector {at_few:.2f} → {at_many:.2f} µs, ratio {off:.3f}"
        figures |= {
            "ratio_gc_off": off,
            "microseconds_few_gc_off": at_few,
            "microseconds_many_gc_off": at_many,
        }
    return Result("holdback", f"{name}, {few:,} → {many:,} waiting", ratio, told, figures, REQUIRED)


def measure(plan: Plan) -> Iterator[Result]:
    for name in SHAPES:
        yield compare(name, plan)


def results(quick: bool) -> Iterator[Result]:
    return measure(QUICK if quick else FULL)

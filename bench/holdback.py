"""What a message costs the hold-back engine while 100,000 others wait, over what it costs while 1,000 do.

The same number of messages goes through in both cases, in batches of the backlog's size: a batch is offered,
every message of it has to wait, then what they wait for comes, and all are released. Checked in every run:
nothing is free before that, nothing is left after it.

The messages are made beforehand, in the order of their arrival. What is timed is offering, advancing facts
and popping, with the facts that each released message raises, as a protocol would.

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

from bench.result import Result, Spoilt
from bench.timing import best
from causet.holdback import HoldBack, Key, Threshold

FEW, MANY = 1_000, 100_000
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
        Offer((place, value), ((place, value),), ((place + 1, value),), 0) for place in range(size - 1, -1, -1)
    ]
    return Batch(offers, [(0, value)])


def _one_fact(batch: int, size: int, draw: Random) -> list[Offer]:
    start = batch * size
    numbers = list(range(start + 1, start + size + 1))
    draw.shuffle(numbers)
    return [Offer(("p", number), (("fact", number),), (), number) for number in numbers]


def steps(batch: int, size: int, draw: Random) -> Batch:
    start = batch * size
    return Batch(
        _one_fact(batch, size, draw), [("fact", value) for value in range(start + 1, start + size + 1)]
    )


def burst(batch: int, size: int, draw: Random) -> Batch:
    return Batch(_one_fact(batch, size, draw), [("fact", (batch + 1) * size)])


def several(batch: int, size: int, draw: Random) -> Batch:
    """The last fact rises step by step, and messages are numbered by what they wait for there."""
    start = batch * size
    columns = [list(range(start + 1, start + size + 1)) for _ in range(FACTS)]
    for column in columns:
        draw.shuffle(column)
    offers = [
        Offer(("p", values[-1]), tuple(enumerate(values)), (), 0) for values in zip(*columns, strict=True)
    ]
    whole = [(fact, start + size) for fact in range(FACTS - 1)]
    return Batch(offers, [*whole, *((FACTS - 1, value) for value in range(start + 1, start + size + 1))])


def dag(batch: int, size: int, draw: Random) -> Batch:
    """Facts are senders, as in the protocols; what has no cause in this batch waits for a gate."""
    per_sender = size // SENDERS
    line = [sender for sender in range(SENDERS) for _ in range(per_sender)]
    draw.shuffle(line)
    numbers = [batch * per_sender] * SENDERS
    ids: list[tuple[int, int]] = []
    needs: list[tuple[Threshold, ...]] = []
    for place, sender in enumerate(line):
        previous = (sender, numbers[sender])
        causes = {draw.randrange(max(0, place - RECENT), place) for _ in range(CAUSES)} if place else set()
        wanted = [previous, *(ids[cause] for cause in sorted(causes))] if place else [("gate", batch + 1)]
        numbers[sender] += 1
        ids.append((sender, numbers[sender]))
        needs.append(tuple(wanted))
    arrivals = list(range(len(line)))
    draw.shuffle(arrivals)
    # Made anew in the order of arrival, for that is how memory is laid out when messages come in.
    offers = [
        Offer(
            (ids[place][0], ids[place][1]),
            tuple([(fact, least) for fact, least in needs[place]]),
            ((ids[place][0], ids[place][1]),),
            0,
        )
        for place in arrivals
    ]
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


def compare(name: str, few: int, many: int, repetitions: int, off: int) -> Result:
    """One shape at both sizes; `off` is the number of repetitions without the garbage collector."""
    works = {
        backlog: partial(work, batches_of(SHAPES[name], backlog, many)) for backlog in (few, many)
    }
    on = best(works, repetitions)
    each = {backlog: taken / many * 1e6 for backlog, taken in on.items()}
    figures: dict[str, float | int | str] = {
        "shape": name,
        "messages": many,
        "few": few,
        "many": many,
        "microseconds_few": each[few],
        "microseconds_many": each[many],
    }
    told = f"{each[few]:.2f} → {each[many]:.2f} µs per message"
    if off:
        without = best(works, off, collect=False)
        figures["ratio_gc_off"] = without[many] / without[few]
        figures["microseconds_few_gc_off"] = without[few] / many * 1e6
        figures["microseconds_many_gc_off"] = without[many] / many * 1e6
        told += f"; without garbage collector {without[many] / without[few]:.3f}"
    return Result(
        "holdback", f"{name}, {few:,} → {many:,} waiting", each[many] / each[few], told, figures, REQUIRED
    )


def results(quick: bool) -> Iterator[Result]:
    for name in SHAPES:
        yield compare(name, FEW, MANY, 2 if quick else 7, 0 if quick else 5)

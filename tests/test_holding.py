"""The bulk kernel of `deliver` against the pure engine, and both against the definition."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from causet.delivery import DIVERTED, FLAGGED, LATE, POLICIES, Delivered, Delivery
from causet.kernels import holding
from causet.kernels.holding import Holding, messages
from causet.kernels.release import DELIVERED as KERNEL_DELIVERED
from causet.kernels.release import DIVERTED as KERNEL_DIVERTED
from causet.kernels.release import FLAGGED as KERNEL_FLAGGED
from causet.kernels.release import LATE as KERNEL_LATE

Message = tuple[str, int, dict[str, int]]
WORDS = {
    KERNEL_DELIVERED: "delivered",
    KERNEL_FLAGGED: "flagged",
    KERNEL_LATE: "late",
    KERNEL_DIVERTED: "diverted",
}
FAR_BACK = -(2**62)


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
        made.append((source, counts[source], causes))
    kept = [each for each in made if rng.random() < 0.9]
    kept += [each for each in kept if rng.random() < 0.1]
    window = rng.choice([1, 3, 100])
    return [
        each for _, each in sorted((place + rng.random() * window, each) for place, each in enumerate(kept))
    ]


def in_batches(rng: random.Random, made: Sequence[Message]) -> list[list[Message]]:
    size = rng.choice([1, 2, 5, 100])
    return [list(made[at : at + size]) for at in range(0, len(made), size)]


class Kernel:
    """The kernel, asked in the words of the engine."""

    def __init__(self, policy: str, patience: int, module: Any = holding) -> None:
        self.module = module
        self.holding = module.Holding.empty()
        self.policy, self.patience = POLICIES.index(policy), patience
        self.places: list[Message] = []
        self.duplicates = 0

    def step(self, batch: Sequence[Message], now: int, ended: bool = False) -> list[Delivered[None]]:
        self.holding = self.module.Holding.from_bytes(self.holding.to_bytes())
        taken = self.module.messages((("r", *each) for each in batch), len(self.places))
        self.places.extend(batch)
        outcome = self.holding.step(taken, now, self.policy, now if ended else now - self.patience)
        self.duplicates += outcome.duplicates
        assert not len(outcome.selfish) and not len(outcome.forgotten)
        missing: dict[int, dict[str, int]] = {}
        for turn, which, number in outcome.missing:
            source, _, causes = self.places[outcome.place[turn]]
            name = source if which < 0 else list(causes)[which]
            mine = missing.setdefault(turn, {})
            mine[name] = max(number, mine.get(name, 0))
        return [
            Delivered(
                self.places[place][0],
                self.places[place][1],
                None,
                None if index < 0 else int(index),
                WORDS[status],
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
    given_up: set[tuple[str, int]] = set()
    for each in left:
        name = (each.source, each.number)
        needs = [*causes[name].items(), *([(each.source, each.number - 1)] if each.number > 1 else [])]
        unmet: dict[str, int] = {}
        for need in needs:
            if need not in delivered:
                unmet[need[0]] = max(need[1], unmet.get(need[0], 0))
        if each.status == "diverted":
            assert each.index is None and unmet == each.missing and unmet
            gone.add(name)
            continue
        assert each.index == len(delivered)
        assert name not in delivered and name not in gone
        assert each.missing == unmet
        was_missed = any(source == each.source and each.number <= number for source, number in given_up)
        assert each.status == ("late" if was_missed else "flagged" if unmet else "delivered")
        given_up |= set(unmet.items())
        delivered.add(name)
    assert len(delivered) + len(gone) + waiting == len(causes)
    if policy == "wait":
        assert not gone and not given_up


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
    again = 0
    for batch in in_batches(rng, made):
        now += rng.randrange(1, 4)
        again += sum(not engine.offer(*each, None, now) for each in batch)
        left, found = engine.take(now), kernel.step(batch, now)
        assert {(e.source, e.number, e.status, e.waited) for e in left} == {
            (e.source, e.number, e.status, e.waited) for e in found
        }
        by_engine += left
        by_kernel += found
    assert again == kernel.duplicates
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
            engine.offer(*each, None, now)
        by_engine += engine.take(now)
        by_kernel += kernel.step(batch, now)
    by_engine += engine.take(1000, ended=True)
    by_kernel += kernel.step([], 1000, ended=True)
    check(by_engine, made, "flag", 0)
    check(by_kernel, made, "flag", 0)
    return any(each.status == LATE and each.waited for each in by_kernel)


# ---------------------------------------------------------------- every interleaving of small systems


def every_execution(sources: Sequence[str], count: int) -> Iterator[list[Message]]:
    """All executions of so many messages: who sends next, and which earlier ones of others it answers."""
    for senders in itertools.product(sources, repeat=count):
        sent = dict.fromkeys(sources, 0)
        choices: list[list[Message]] = []
        for sender in senders:
            others = [other for other in sources if other != sender]
            answers = itertools.product(*(range(sent[other] + 1) for other in others))
            sent[sender] += 1
            choices.append(
                [
                    (sender, sent[sender], {other: at for other, at in zip(others, each, strict=True) if at})
                    for each in answers
                ]
            )
        yield from map(list, itertools.product(*choices))


def pasts_of(made: Sequence[Message]) -> dict[tuple[str, int], set[tuple[str, int]]]:
    """By the definition: the previous one of the source, the causes, and their pasts."""
    found: dict[tuple[str, int], set[tuple[str, int]]] = {}
    for source, number, causes in made:
        before = [*causes.items(), *([(source, number - 1)] if number > 1 else [])]
        found[source, number] = set().union(*({each} | found[each] for each in before))
    return found


@pytest.mark.parametrize(
    ("sources", "count", "kernel_too"),
    [
        ("ab", 3, True),
        ("abc", 3, True),
        ("ab", 4, False),
        pytest.param("abc", 4, False, marks=pytest.mark.soak),
    ],
)
def test_in_every_order_of_arrival_each_leaves_as_soon_as_its_past_is_there(
    sources: str, count: int, kernel_too: bool
) -> None:
    tried = 0
    for made in every_execution(list(sources), count):
        pasts = pasts_of(made)
        for order in itertools.permutations(made):
            engine: Delivery[None] = Delivery("wait", None)
            kernel = Kernel("wait", 0)
            arrived: set[tuple[str, int]] = set()
            left: dict[str, list[tuple[str, int]]] = {"engine": [], "kernel": []}
            for now, each in enumerate(order):
                arrived.add(each[:2])
                engine.offer(*each, None, now)
                left["engine"] += [(one.source, one.number) for one in engine.take(now)]
                if kernel_too:
                    left["kernel"] += [(one.source, one.number) for one in kernel.step([each], now)]
                free = {name for name, past in pasts.items() if name in arrived and past <= arrived}
                for who in ("engine", "kernel") if kernel_too else ("engine",):
                    assert set(left[who]) == free and len(left[who]) == len(free)
                    place = {name: at for at, name in enumerate(left[who])}
                    assert all(place[cause] < place[name] for name in free for cause in pasts[name])
            tried += 1
    assert tried >= 48


@pytest.mark.parametrize("policy", POLICIES)
def test_the_kernel_does_what_the_engine_does(policy: str) -> None:
    seen = set[str]().union(*(compare(policy, seed) for seed in range(400)))
    also = {"wait": set[str](), "flag": {FLAGGED, LATE}, "divert": {DIVERTED}}
    assert seen == {"delivered", *also[policy]}


def test_messages_in_a_circle_are_flagged_all_the_same() -> None:
    circles = [compare_circles(seed) for seed in range(300)]
    assert any(circles)


def test_receivers_do_not_wait_for_each_other() -> None:
    holding = Holding.empty()
    taken = messages(
        [("r1", "a", 1, {}), ("r2", "a", 2, {}), ("r1", "b", 1, {"a": 1}), ("r2", "b", 1, {"a": 1})]
    )
    outcome = holding.step(taken, 0, 0, FAR_BACK)
    assert sorted(outcome.place) == [0, 2] and list(outcome.index) == [0, 1] and len(holding) == 2
    outcome = holding.step(messages([("r2", "a", 1, {})], 4), 1, 0, FAR_BACK)
    assert outcome.place[0] == 4 and list(outcome.index) == [0, 1, 2] and len(holding) == 0
    assert sorted(outcome.waited) == [0, 1, 1]


def test_what_depends_on_itself_is_named_and_not_held() -> None:
    holding = Holding.empty()
    outcome = holding.step(
        messages([("r", "a", 1, {"a": 1}), ("r", "a", 2, {"a": 5}), ("r", "a", 3, {"a": 2})]), 0, 0, FAR_BACK
    )
    assert list(outcome.selfish) == [0, 1] and len(holding) == 1


def test_holes_are_forgotten_behind_the_horizon_and_what_falls_into_one_is_named() -> None:
    kernel = Holding.empty()
    flag = POLICIES.index("flag")
    kernel.step(messages([("r", "a", 5, {})]), 0, flag, 0)
    assert (list(kernel.low), list(kernel.high), list(kernel.prefix)) == ([5], [5], [0])
    outcome = kernel.step(messages([("r", "a", 3, {})], 1), 10, flag, 10, forget_before=0)
    assert [WORDS[each] for each in outcome.status] == ["late"]
    kernel.step(messages([]), 20, flag, 0, forget_before=11)
    assert (list(kernel.low), list(kernel.prefix), list(kernel.closed)) == ([], [5], [4])
    outcome = kernel.step(messages([("r", "a", 4, {}), ("r", "a", 5, {}), ("r", "a", 6, {})], 2), 21, flag, 0)
    assert list(outcome.forgotten) == [2] and outcome.duplicates == 1 and list(outcome.place) == [4]


def test_ids_with_parents_are_streams_of_one_message_and_are_forgotten_behind_the_horizon() -> None:
    holding = Holding.empty()
    ids = messages([("r", "x2", 1, {"x1": 1}), ("r", "x1", 1, {}), ("r", "x4", 1, {"x3": 1})])
    outcome = holding.step(ids, 5, 0, FAR_BACK, forget_before=0, by_id=True)
    assert list(outcome.place) == [1, 0] and len(holding.stream_key) == 4
    holding.step(messages([]), 100, 0, FAR_BACK, forget_before=50, by_id=True)
    assert len(holding.stream_key) == 2 and len(holding) == 1, (
        "the one that waits and the one it waits for stay"
    )


def test_what_is_remembered_does_not_grow_when_nothing_is_held() -> None:
    holding = Holding.empty()
    sizes = []
    for batch in range(20):
        holding.step(
            messages([("r", f"s{source}", batch + 1, {}) for source in range(8)]), batch, 0, FAR_BACK
        )
        sizes.append(len(holding.to_bytes()))
    assert len(set(sizes)) == 1 and np.all(holding.prefix == 20)

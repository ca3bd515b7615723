"""The bulk kernel of `deliver` against the pure engine, and both against the definition."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from causet.delivery import AHEAD, REMEMBERED, Delivery
from causet.kernels.streams import holding
from causet.kernels.streams.holding import MOST_CLAIMS, MOST_ISLANDS, Outcome
from causet.status import DIVERTED, FLAGGED, LATE, POLICIES, STATUSES
from tests.helpers.grouped import compare_groups
from tests.helpers.held_messages import messages
from tests.helpers.holding import InMemory, Kernel, Message, compare, compare_circles, pasts_of

FAR_BACK = -(2**62)


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
                    (
                        sender,
                        sent[sender],
                        {other: at for other, at in zip(others, each, strict=True) if at},
                        1,
                    )
                    for each in answers
                ]
            )
        yield from map(list, itertools.product(*choices))


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
                engine.offer(*each[:3], None, now)
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
    seen = set[str]().union(*(compare(policy, seed) for seed in range(75)))
    also = {"wait": set[str](), "flag": {FLAGGED, LATE}, "divert": {DIVERTED}}
    assert seen == {"delivered", *also[policy]}


@pytest.mark.soak
@pytest.mark.parametrize("policy", POLICIES)
def test_the_kernel_does_what_the_engine_does_with_thousands_of_streams(policy: str) -> None:
    for seed in range(1000, 5000):
        compare(policy, seed)


@pytest.mark.parametrize("policy", POLICIES)
def test_of_messages_to_groups_the_kernel_does_what_the_engine_does(policy: str) -> None:
    seen = set[str]().union(*(compare_groups(policy, seed) for seed in range(75)))
    also = {"wait": set[str](), "flag": {FLAGGED, LATE}, "divert": {DIVERTED}}
    assert seen == {"delivered", *also[policy]}


@pytest.mark.soak
@pytest.mark.parametrize("policy", POLICIES)
def test_of_messages_to_groups_it_does_so_in_thousands_of_streams(policy: str) -> None:
    for seed in range(1000, 5000):
        compare_groups(policy, seed)


def test_messages_in_a_circle_are_flagged_all_the_same() -> None:
    circles = [compare_circles(seed) for seed in range(60)]
    assert any(circles)


Row = tuple[str, str, int, dict[str, int]]


def step(
    held: Any,
    rows: Sequence[Row],
    now: int = 0,
    policy: str = "wait",
    overdue: int = FAR_BACK,
    store: InMemory | None = None,
    **more: Any,
) -> Outcome:
    marks, first = more.pop("marks", ()), more.pop("first", 0)
    of: Any = sys.modules[type(held).__module__]
    kept = of.Marks(store or InMemory(), held.marks if store else np.empty(0, np.int64))
    found: Outcome = held.step(
        messages(rows, first, marks), kept, now, POLICIES.index(policy), overdue, **more
    )
    return found


def test_receivers_do_not_wait_for_each_other(of: Any = holding) -> None:
    held = of.Holding.empty()
    rows: list[Row] = [
        ("r1", "a", 1, {}),
        ("r2", "a", 2, {}),
        ("r1", "b", 1, {"a": 1}),
        ("r2", "b", 1, {"a": 1}),
    ]
    outcome = step(held, rows)
    assert sorted(outcome.place) == [0, 2] and list(outcome.index) == [0, 1] and len(held) == 2
    outcome = step(held, [("r2", "a", 1, {})], 1, first=4)
    assert outcome.place[0] == 4 and list(outcome.index) == [0, 1, 2] and len(held) == 0
    assert sorted(outcome.waited) == [0, 1, 1]


def test_groups_do_not_wait_for_each_other_and_number_for_themselves(of: Any = holding) -> None:
    rows: list[Row] = [("r", "a", 1, {}), ("r", "a", 1, {}), ("r", "b", 1, {"a": 1}), ("r", "b", 1, {"a": 2})]
    held = of.Holding.empty()
    taken = messages(rows)._replace(group=pa.array(["x", "y", "y", "x"]))
    outcome = held.step(taken, of.Marks(InMemory(), held.marks), 0, 0, FAR_BACK)
    assert sorted(outcome.place) == [0, 1, 2] and outcome.duplicates == 0
    assert list(outcome.index) == [0, 1, 2], "one receiver, one order"
    taken = messages([("r", "a", 2, {})], 4)._replace(group=pa.array(["x"]))
    outcome = held.step(taken, of.Marks(InMemory(), held.marks), 1, 0, FAR_BACK)
    assert list(outcome.place) == [4, 3] and len(held) == 0


def test_what_depends_on_itself_is_named_and_not_held(of: Any = holding) -> None:
    held = of.Holding.empty()
    outcome = step(held, [("r", "a", 1, {"a": 1}), ("r", "a", 2, {"a": 5}), ("r", "a", 3, {"a": 2})])
    assert list(outcome.selfish) == [0, 1] and len(held) == 1


# ---------------------------------------------------------------- one sender against all


def statuses(outcome: Outcome) -> list[str]:
    return [STATUSES[each] for each in outcome.status]


def test_a_claim_about_another_source_marks_only_the_message_that_it_names(of: Any = holding) -> None:
    held = of.Holding.empty()
    assert statuses(step(held, [("r", "x", 1, {}), ("r", "y", 1, {"x": 2**52})])) == ["delivered"]
    assert statuses(step(held, [], 9, "flag", 9)) == ["flagged"]
    rest: list[Row] = [("r", "x", number, {}) for number in range(2, 6)]
    assert statuses(step(held, rest, 10, "flag", 0)) == ["delivered"] * 4
    assert statuses(step(held, [("r", "y", 2, {"x": 7})], 11, "flag", 11)) == ["flagged"]
    both: list[Row] = [("r", "x", 6, {}), ("r", "x", 7, {}), ("r", "x", 8, {})]
    assert statuses(step(held, both, 12, "flag", 0)) == ["delivered", "late", "delivered"]


def test_a_claim_never_moves_a_held_message_of_another_source(of: Any = holding) -> None:
    """x:2 waits for x:1, which comes in time; y names x:2, and loses its patience before."""
    held = of.Holding.empty()
    assert not statuses(step(held, [("r", "y", 1, {"x": 2})], 0, "flag"))
    assert not statuses(step(held, [("r", "x", 2, {})], 5, "flag"))
    outcome = step(held, [], 10, "flag", 0)
    assert statuses(outcome) == ["flagged"] and len(held) == 1
    assert statuses(step(held, [("r", "x", 1, {})], 11, "flag", 1)) == ["delivered", "late"]


def test_a_flagged_message_takes_those_before_it_of_its_own_source_along(of: Any = holding) -> None:
    held = of.Holding.empty()
    step(held, [("r", "x", 4, {})], 0, "flag")
    step(held, [("r", "x", 2, {})], 5, "flag", first=1)
    outcome = step(held, [], 10, "flag", 0)
    assert list(outcome.place) == [1, 0] and statuses(outcome) == ["flagged", "flagged"]
    assert statuses(step(held, [("r", "x", 1, {}), ("r", "x", 3, {})], 11, "flag")) == ["late", "late"]


def test_a_number_too_far_above_the_others_is_refused_and_changes_nothing(of: Any = holding) -> None:
    held = of.Holding.empty()
    outcome = step(held, [("r", "x", 1, {}), ("r", "x", 2**52, {}), ("r", "z", AHEAD, {})], policy="flag")
    assert list(outcome.far) == [1] and len(held) == 1, "z:10⁹ is not too far"
    outcome = step(held, [("r", "x", AHEAD + 1, {}), ("r", "x", AHEAD + 2, {})], 1, "flag", 1, first=3)
    assert list(outcome.far) == [4]
    for now in (2, 10**12):
        outcome = step(held, [("r", "x", now, {})], now, "flag", now, forget_before=now - 1)
    outcome = step(held, [("r", "x", 2, {}), ("r", "x", 3, {}), ("r", "w", 1, {"x": 4})], 10**13, "flag")
    assert "delivered" in statuses(outcome) and not len(outcome.forgotten)
    assert len(held) == 1, "w waits for x:4, which was never delivered"


def test_receivers_that_only_got_refused_messages_are_forgotten(of: Any = holding) -> None:
    held = of.Holding.empty()
    step(held, [(f"r{each}", "x", 2**52, {}) for each in range(50)])
    assert len(held.receiver_key) == len(held.receiver_name) == len(held.stream_key) == 0
    step(held, [("a", "x", 1, {}), ("b", "x", 2, {}), ("c", "x", 2**52, {})])
    assert sorted(held.receiver_name) == ["a", "b"] and len(held) == 1
    assert list(step(held, [("b", "x", 1, {})], first=9).index) == [0, 1]


def test_invented_causes_are_forgotten_with_the_horizon(of: Any = holding) -> None:
    held = of.Holding.empty()
    for number in range(1, 21):
        invented = {f"{number}-{each}": 1 for each in range(1000)}
        step(held, [("r", "e", number, invented)], number, "flag", number, forget_before=0)
    assert len(held.stream_key) == 1 and 0 < len(held.claim_key) <= 20_000
    step(held, [("r", "e", 21, {})], 10**6, "flag", 0, forget_before=10**5)
    assert len(held.stream_key) == 1 and len(held.claim_key) == 0


def test_claims_of_one_source_are_bounded_and_the_newest_are_kept(of: Any = holding) -> None:
    held = of.Holding.empty()
    for number in range(1, 9):
        invented = {f"{number}-{each}": 1 for each in range(10_000)}
        step(held, [("r", "e", number, invented)], number, "flag", number)
    assert len(held.claim_key) == MOST_CLAIMS
    assert statuses(step(held, [("r", "8-7", 1, {})], 9, "flag")) == ["late"]
    assert statuses(step(held, [("r", "1-7", 1, {})], 9, "flag")) == ["delivered"]


def test_islands_of_one_source_are_bounded_and_what_falls_into_a_closed_hole_is_named(
    of: Any = holding,
) -> None:
    held, store = of.Holding.empty(), InMemory()
    odd: list[Row] = [("r", "a", number, {}) for number in range(3, 2 * MOST_ISLANDS + 9, 2)]
    outcome = step(held, odd, 1, "flag", 1, store)
    assert set(statuses(outcome)) == {"flagged"}
    assert len(held.low) == MOST_ISLANDS and held.prefix[0] == 7 and held.closed[0] == 6
    rest: list[Row] = [("r", "a", number, {}) for number in (2, 5, 6, 7, 8, 9)]
    outcome = step(held, rest, 2, "flag", 1, store, first=len(odd))
    assert [int(each) - len(odd) for each in outcome.forgotten] == [0, 2]
    assert outcome.duplicates == 3 and statuses(outcome) == ["late"]


def test_what_was_given_up_by_hand_is_not_waited_for(of: Any = holding) -> None:
    held = of.Holding.empty()
    step(held, [("r", "x", 1, {}), ("r", "x", 3, {}), ("r", "y", 1, {"x": 2}), ("s", "y", 1, {"x": 2})])
    assert len(held) == 3
    held.give_up([("x", 2, None)])
    outcome = step(of.Holding.from_bytes(held.to_bytes()), [])
    assert statuses(outcome) == ["flagged"] * 3 and [each[2] for each in outcome.missing] == [2, 2, 2]
    held.give_up([("x", 2, None)])
    assert len(held.lost_name) == 1
    step(held, [])
    assert statuses(step(held, [("r", "x", 2, {})], 1)) == ["late"]


def test_a_diverted_id_is_remembered_until_the_horizon(of: Any = holding) -> None:
    held = of.Holding.empty()
    message: list[Row] = [("r", "x2", 1, {"x1": 1})]
    assert statuses(step(held, message, 5, "divert", 5, forget_before=1, by_id=True)) == ["diverted"]
    outcome = step(held, message, 6, "divert", 0, forget_before=2, by_id=True)
    assert outcome.duplicates == 1 and not len(held)
    step(held, [], 20, "divert", 0, forget_before=10, by_id=True)
    outcome = step(held, message, 21, "divert", 21, forget_before=10, by_id=True)
    assert outcome.duplicates == 0 and statuses(outcome) == ["diverted"]


def test_a_diverted_number_is_remembered_until_the_horizon(of: Any = holding) -> None:
    held = of.Holding.empty()
    assert statuses(step(held, [("r", "a", 5, {})], 5, "divert", 5, forget_before=1)) == ["diverted"]
    assert step(held, [("r", "a", 5, {})], 6, "divert", 0, forget_before=2).duplicates == 1
    step(held, [], 20, "divert", 0, forget_before=10)
    assert not len(held.gone_low) and not len(held.stream_key)


def check_chain(names: str, of: Any = holding) -> None:
    """w misses a cause; x, which is not overdue, waits for w; y waits for x. With w, x is free, then y."""
    w, x, y = list(names)
    held = of.Holding.empty()
    step(held, [("r", w, 1, {"absent": 1}), ("r", y, 1, {x: 1})], 0, "flag")
    step(held, [("r", x, 1, {w: 1})], 5, "flag", first=2)
    outcome = step(held, [], 10, "flag", 0)
    assert list(outcome.place) == [0, 2, 1] and statuses(outcome) == ["flagged", "delivered", "delivered"]


def test_an_overdue_message_waits_for_what_is_set_free(of: Any = holding) -> None:
    for names in ("wxy", "ywx", "xyw", "abc", "cab", "bca"):
        check_chain(names, of)


def test_a_parent_that_comes_after_it_was_given_up_is_late(of: Any = holding) -> None:
    held = of.Holding.empty()
    step(held, [("r", "x2", 1, {"x1": 1})], 5, "flag", 5, forget_before=0, by_id=True)
    assert statuses(step(held, [("r", "x1", 1, {})], 6, "flag", 0, forget_before=0, by_id=True)) == ["late"]


# ---------------------------------------------------------------- fingerprints


def test_the_last_numbers_of_a_source_are_known_by_their_fingerprints(of: Any = holding) -> None:
    assert REMEMBERED == 65_536
    remembered, count = 2000, 7000
    marks = sys.modules[of.Marks.__module__]
    marks.__dict__["REMEMBERED"] = remembered
    try:
        check_remembered(of.Holding.empty(), remembered, count)
    finally:
        marks.__dict__["REMEMBERED"] = REMEMBERED


def check_remembered(held: Any, remembered: int, count: int) -> None:
    store = InMemory()
    for at in range(0, count, 100):
        rows: list[Row] = [("r", "a", number, {}) for number in range(at + 1, at + 101)]
        step(held, rows, at, store=store, marks=[number % 251 for number in range(at + 1, at + 101)])
    assert len(store.values) <= 12, "few segments"
    assert max(held.marks) <= remembered, "segments that become one drop what is too old"
    size = sum(len(value[0]) for value in store.values.values())
    assert size < 2 * 8 * remembered + 1000 * len(store.values), "a run of numbers costs 8 bytes each"
    again = [count, count - remembered + 1, count - 500, 5]
    rows = [("r", "a", number, {}) for number in again]
    same = step(held, rows, count, store=store, marks=[number % 251 for number in again])
    assert same.duplicates == 4 and not len(same.conflicts)
    other = step(held, rows[:3], count, store=store, marks=[999, 999, 999])
    assert other.duplicates == 0 and list(other.conflicts) == [0, 1, 2]


def test_fingerprints_of_forgotten_streams_are_dropped(of: Any = holding) -> None:
    held, store = of.Holding.empty(), InMemory()
    for at in range(200):
        rows: list[Row] = [("r", f"id{at}-{each}", 1, {}) for each in range(10)]
        step(held, rows, at, store=store, marks=[at] * 10, forget_before=at - 3, by_id=True)
        again = step(held, rows, at, store=store, marks=[7_000] * 10, forget_before=at - 3, by_id=True)
        assert len(again.conflicts) == 10, "those of the others are known"
    assert sum(held.marks) < 300


def test_ids_with_parents_are_streams_of_one_message_and_are_forgotten_behind_the_horizon(
    of: Any = holding,
) -> None:
    held = of.Holding.empty()
    ids: list[Row] = [("r", "x2", 1, {"x1": 1}), ("r", "x1", 1, {}), ("r", "x4", 1, {"x3": 1})]
    outcome = step(held, ids, 5, forget_before=0, by_id=True)
    assert list(outcome.place) == [1, 0] and len(held.stream_key) == 4
    step(held, [], 100, forget_before=50, by_id=True)
    assert len(held.stream_key) == 2 and len(held) == 1, "the one that waits and the one it waits for stay"


def test_what_is_remembered_does_not_grow_when_nothing_is_held(of: Any = holding) -> None:
    held, store = of.Holding.empty(), InMemory()
    sizes = []
    for batch in range(20):
        step(held, [("r", f"s{source}", batch + 1, {}) for source in range(8)], batch, store=store)
        sizes.append(len(held.to_bytes()))
    assert max(sizes) - min(sizes) <= 8 * len(held.marks) + 64 and np.all(held.prefix == 20)

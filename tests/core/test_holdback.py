"""The hold-back engine against a naive one: a list that is rescanned at every step.

Random sequences of offers, advances, pops and replacements go to both. The engine must give the same
answers and release the same items in the same order, and can be saved and restored anywhere in between.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from causet.holdback import Fact, HoldBack, HoldBackFull, Key, Threshold

# ---------------------------------------------------------------- the naive engine


@dataclass
class Held:
    key: Key
    thresholds: list[Threshold]
    rank: int
    payload: int


@dataclass
class Naive:
    """What the engine promises, in the fewest words: look at everything, every time."""

    in_order: bool = False
    capacity: int | None = None
    facts: dict[Fact, int] = field(default_factory=dict)
    held: list[Held] = field(default_factory=list)
    passed: list[Key] = field(default_factory=list)

    def unmet(self, thresholds: Iterable[Threshold]) -> list[Threshold]:
        return [(fact, least) for fact, least in thresholds if self.facts.get(fact, 0) < least]

    def seen(self, key: Key) -> bool:
        source, number = key
        if any(item.key == key for item in self.held) or key in self.passed:
            return True
        return self.in_order and any(s == source and number <= n for s, n in self.passed)

    def offer(self, key: Key, thresholds: list[Threshold], payload: int, rank: int) -> bool:
        if self.seen(key):
            return False
        if self.unmet(thresholds) and self.capacity is not None and len(self.held) >= self.capacity:
            raise HoldBackFull
        self.held.append(Held(key, thresholds, rank, payload))
        return True

    def advance(self, fact: Fact, value: int) -> None:
        self.facts[fact] = max(value, self.facts.get(fact, 0))

    def pop(self) -> int | None:
        free = [item for item in self.held if not self.unmet(item.thresholds)]
        if not free:
            return None
        first = min(free, key=lambda item: item.rank)  # of equals, the one that came first
        self.held.remove(first)
        self.passed.append(first.key)
        return first.payload

    def forget(self, key: Key) -> None:
        if not self.in_order and key in self.passed:
            self.passed.remove(key)

    def replace(self, decide: Callable[[int], tuple[list[Threshold], int, int] | None]) -> None:
        for item in self.held:
            changed = decide(item.payload)
            if changed is not None:
                item.thresholds, item.rank, item.payload = changed


# ---------------------------------------------------------------- sequences


@dataclass(frozen=True)
class Op:
    """One step: `kind` says which fields count."""

    kind: str
    key: Key = (0, 1)
    thresholds: tuple[Threshold, ...] = ()
    rank: int = 0
    fact: Fact = 0
    value: int = 0

    def __repr__(self) -> str:
        shown = {
            "offer": f"{self.key} {list(self.thresholds)} rank {self.rank}",
            "advance": f"{self.fact!r} {self.value}",
            "pop": "",
            "forget": f"{self.key}",
            "replace": f"every {self.value}th {list(self.thresholds)} rank {self.rank}",
        }
        return f"{self.kind} {shown[self.kind]}".strip()


FACTS = st.sampled_from(["a", "b", ("link", 1)])  # facts of different types have no order of their own
KEYS = st.tuples(st.integers(0, 2), st.integers(1, 5))
THRESHOLDS = st.lists(st.tuples(FACTS, st.integers(-1, 8)), max_size=4).map(tuple)
RANKS = st.integers(0, 2)
OFFERS = st.builds(Op, st.just("offer"), KEYS, THRESHOLDS, RANKS)
ADVANCES = st.builds(lambda fact, value: Op("advance", fact=fact, value=value), FACTS, st.integers(-1, 9))
POPS = st.just(Op("pop"))
FORGETS = st.builds(Op, st.just("forget"), KEYS)
REPLACES = st.builds(
    lambda thresholds, rank, value: Op("replace", thresholds=thresholds, rank=rank, value=value),
    THRESHOLDS,
    RANKS,
    st.integers(1, 3),
)
SEQUENCES = st.lists(st.one_of(OFFERS, OFFERS, ADVANCES, POPS, POPS, FORGETS, REPLACES), max_size=40)
WITHOUT_FORGETTING = st.lists(st.one_of(OFFERS, OFFERS, ADVANCES, POPS, POPS, REPLACES), max_size=40)
CAPACITIES = st.none() | st.integers(0, 4)


def perform(engine: HoldBack[int] | Naive, op: Op, payload: int) -> Any:
    """Do one step, and say all that can be seen of it."""
    if op.kind == "offer":
        try:
            return engine.offer(op.key, list(op.thresholds), payload, op.rank)
        except HoldBackFull:
            return "full"
    if op.kind == "advance":
        return engine.advance(op.fact, op.value)
    if op.kind == "pop":
        return engine.pop()
    if op.kind == "forget":
        return engine.forget(op.key)
    return engine.replace(
        lambda held: None if held % op.value else (list(op.thresholds), op.rank, held + 1000)
    )


def in_order_sequence(ops: list[Op]) -> list[Op]:
    """The same with each item behind a threshold of its source, which keeps the caller's promise."""
    return [
        Op("offer", op.key, (*op.thresholds, (("order", op.key[0]), op.key[1] - 1)), op.rank)
        if op.kind == "offer"
        else op
        for op in ops
        if op.kind != "replace"
    ]


def sources(ops: list[Op]) -> dict[int, Key]:
    return {payload: op.key for payload, op in enumerate(ops)}


def assert_alike(engine: HoldBack[int], naive: Naive) -> None:
    assert len(engine) == len(naive.held)
    assert list(engine.held()) == [item.payload for item in naive.held]
    waits = list(engine.waiting())
    assert [wait.key for wait in waits] == [item.key for item in naive.held]
    for wait, item in zip(waits, naive.held, strict=True):
        wanted = {(fact, least, naive.facts.get(fact, 0)) for fact, least in naive.unmet(item.thresholds)}
        assert set(wait.unmet) == wanted
    for source in range(3):
        for number in range(1, 6):
            key = (source, number)
            assert engine.seen(key) == naive.seen(key)
            assert (key in engine) == any(item.key == key for item in naive.held)


# ---------------------------------------------------------------- the same as the naive engine


@settings(max_examples=400, deadline=None)
@given(SEQUENCES, CAPACITIES)
def test_items_are_released_in_the_order_in_which_a_rescanned_list_would_release_them(
    ops: list[Op], capacity: int | None
) -> None:
    engine, naive = HoldBack[int](capacity=capacity), Naive(capacity=capacity)
    for payload, op in enumerate(ops):
        assert perform(engine, op, payload) == perform(naive, op, payload)
        assert_alike(engine, naive)
    while (released := naive.pop()) is not None:
        assert engine.pop() == released
    assert engine.pop() is None


@settings(max_examples=200, deadline=None)
@given(SEQUENCES.map(in_order_sequence), CAPACITIES)
def test_one_number_per_source_remembers_what_has_passed_when_it_passes_in_order(
    ops: list[Op], capacity: int | None
) -> None:
    engine, naive = HoldBack[int](in_order=True, capacity=capacity), Naive(True, capacity)
    keys = sources(ops)
    for payload, op in enumerate(ops):
        answer = perform(engine, op, payload)
        assert answer == perform(naive, op, payload)
        if op.kind == "pop" and answer is not None:
            source, number = keys[answer]
            for each in (engine, naive):
                each.advance(("order", source), number)
        assert_alike(engine, naive)
    assert all(isinstance(what, int) for _, what in engine.snapshot()[2])


@settings(max_examples=100, deadline=None)
@given(SEQUENCES, CAPACITIES)
def test_the_same_sequence_gives_the_same_answers_and_the_same_snapshots_every_time(
    ops: list[Op], capacity: int | None
) -> None:
    def story() -> list[Any]:
        engine = HoldBack[int](capacity=capacity)
        return [(perform(engine, op, payload), engine.snapshot()) for payload, op in enumerate(ops)]

    assert story() == story()


def crowded_sequence(seed: int) -> list[Op]:
    """Hundreds wait, for thresholds that rise, fall or jump, while facts rise in small and large steps."""
    draw = Random(seed)
    reach = {"a": 0, "b": 0, "c": 0}  # what the facts have come to
    ops: list[Op] = []

    def ahead(fact: str, step: int) -> int:
        return reach[fact] + draw.choice([step + 1, 60 - step, draw.randint(-5, 300)])

    while len(ops) < 600:
        for step in range(draw.choice([1, 2, 60])):
            facts = draw.sample(sorted(reach), draw.choice([0, 1, 1, 1, 3]))
            needs = tuple((fact, ahead(fact, step)) for fact in facts)
            ops.append(Op("offer", ("p", len(ops)), needs, draw.randrange(50)))
        for _ in range(draw.choice([1, 1, 20])):
            fact = draw.choice(sorted(reach))
            reach[fact] += draw.choice([0, 1, 2, 3, 100])
            ops.append(Op("advance", fact=fact, value=reach[fact]))
            ops.extend([Op("pop")] * draw.choice([0, 1, 3]))
        if draw.random() < 0.05:
            ops.append(Op("replace", thresholds=(("a", reach["a"] + 2),), value=draw.choice([2, 3, 50])))
    return ops


@pytest.mark.parametrize("seed", range(12))
def test_a_crowd_is_released_in_the_order_in_which_a_rescanned_list_would_release_it(seed: int) -> None:
    engine, naive = HoldBack[int](), Naive()
    ops = crowded_sequence(seed)
    assert sum(op.kind == "offer" for op in ops) > 200
    for payload, op in enumerate(ops):
        assert perform(engine, op, payload) == perform(naive, op, payload)
    assert list(engine.held()) == [item.payload for item in naive.held]
    for fact in ("a", "b", "c"):
        engine.advance(fact, 10_000)
        naive.advance(fact, 10_000)
    while (released := naive.pop()) is not None:
        assert engine.pop() == released
    assert engine.pop() is None
    assert len(engine) == 0


def test_items_that_are_free_together_leave_by_rank_and_then_by_arrival() -> None:
    engine = HoldBack[str]()
    for number, (payload, rank) in enumerate([("a", 2), ("b", 1), ("c", 2), ("d", 1), ("e", 0)], start=1):
        engine.offer(("p", number), [("gate", 1)], payload, rank)
    engine.advance("gate", 1)
    assert [engine.pop() for _ in range(6)] == ["e", "b", "d", "a", "c", None]


def test_an_item_that_becomes_free_later_overtakes_a_free_one_of_a_higher_rank() -> None:
    engine = HoldBack[str]()
    engine.offer(("p", 1), [], "free at once", 5)
    engine.offer(("p", 2), [("a", 1)], "free later", 4)
    engine.advance("a", 1)
    assert [engine.pop(), engine.pop()] == ["free later", "free at once"]


def test_a_fact_that_jumps_meets_every_threshold_on_its_way() -> None:
    engine = HoldBack[int]()
    for number in (4, 2, 9, 1, 3):
        engine.offer(("p", number), [("a", number)], number)
    engine.advance("a", 4)
    assert [engine.pop() for _ in range(5)] == [4, 2, 1, 3, None]
    assert [wait.unmet for wait in engine.waiting()] == [(("a", 9, 4),)]


def test_a_threshold_of_zero_or_less_is_always_met() -> None:
    engine = HoldBack[str](capacity=0)
    assert engine.offer(("p", 1), [("a", 0), ("b", -7)], "at once")
    assert engine.pop() == "at once"


def test_two_thresholds_on_one_fact_are_met_by_the_higher() -> None:
    engine = HoldBack[str]()
    engine.offer(("p", 1), [("a", 1), ("a", 3), ("a", 2)], "x")
    for value in (1, 2):
        engine.advance("a", value)
        assert engine.pop() is None
    engine.advance("a", 3)
    assert engine.pop() == "x"


# ---------------------------------------------------------------- facts


@given(st.lists(st.tuples(FACTS, st.integers(-3, 9)), max_size=20))
def test_advance_never_lowers_a_fact(advances: list[tuple[Fact, int]]) -> None:
    engine = HoldBack[int]()
    highest: dict[Fact, int] = {}
    for fact, value in advances:
        engine.advance(fact, value)
        highest[fact] = max(value, highest.get(fact, 0))
        assert all(engine.facts.get(known, 0) == least for known, least in highest.items())


def test_an_advance_that_raises_nothing_changes_nothing() -> None:
    engine = HoldBack[str]()
    engine.offer(("p", 1), [("a", 4)], "x")
    engine.advance("a", 3)
    before = engine.snapshot()
    for value in (3, 2, 0, -1):
        engine.advance("a", value)
    engine.advance("never heard of", 0)
    assert engine.snapshot() == before


# ---------------------------------------------------------------- waiting


def test_waiting_names_each_unmet_threshold_with_what_it_is_now() -> None:
    engine = HoldBack[str]()
    engine.offer(("p2", 1), [("a", 2), ("b", 1), ("c", 7)], "x")
    engine.offer(("p3", 1), [], "free, but not fetched yet")
    engine.advance("c", 5)
    engine.advance("b", 1)
    first, second = engine.waiting()
    assert (first.key, set(first.unmet)) == (("p2", 1), {("a", 2, 0), ("c", 7, 5)})
    assert (second.key, second.unmet) == (("p3", 1), ())
    assert str(first) == "('p2', 1) waits for a ≥ 2, now 0, c ≥ 7, now 5"


# ---------------------------------------------------------------- capacity


@settings(max_examples=200, deadline=None)
@given(SEQUENCES, st.integers(0, 3))
def test_an_item_beyond_the_capacity_raises_and_changes_nothing(ops: list[Op], capacity: int) -> None:
    engine = HoldBack[int](capacity=capacity)
    for payload, op in enumerate(ops):
        before, held = engine.snapshot(), len(engine)
        answer = perform(engine, op, payload)
        if answer == "full":
            assert held >= capacity
            assert engine.snapshot() == before
            assert op.key not in engine
            assert not engine.seen(op.key)


def test_a_full_engine_still_takes_what_need_not_wait_and_still_refuses_duplicates() -> None:
    engine = HoldBack[str](capacity=1)
    assert engine.offer(("p", 2), [("a", 1)], "waits")
    with pytest.raises(HoldBackFull, match=r"1 items are held.*\('p', 3\) would have to wait for a ≥ 2"):
        engine.offer(("p", 3), [("a", 2)], "one too many")
    assert not engine.offer(("p", 2), [("a", 1)], "a duplicate is no error")
    assert engine.offer(("p", 1), [], "free")
    assert engine.pop() == "free"
    engine.advance("a", 1)
    assert engine.pop() == "waits"
    assert engine.offer(("p", 3), [("a", 2)], "now there is room")


# ---------------------------------------------------------------- duplicates


@pytest.mark.parametrize("in_order", [False, True])
def test_a_second_item_of_a_held_key_is_refused_and_the_first_one_stays(in_order: bool) -> None:
    engine = HoldBack[str](in_order=in_order)
    assert engine.offer(("p", 1), [("a", 1)], "first", rank=1)
    before = engine.snapshot()
    assert not engine.offer(("p", 1), [], "second", rank=0)
    assert engine.snapshot() == before
    engine.advance("a", 1)
    assert [engine.pop(), engine.pop()] == ["first", None]


@pytest.mark.parametrize("in_order", [False, True])
def test_a_second_item_of_a_passed_key_is_refused(in_order: bool) -> None:
    engine = HoldBack[str](in_order=in_order)
    engine.offer(("p", 1), [], "first")
    engine.pop()
    before = engine.snapshot()
    assert engine.seen(("p", 1))
    assert ("p", 1) not in engine
    assert not engine.offer(("p", 1), [], "second")
    assert engine.pop() is None
    assert engine.snapshot() == before


def test_in_order_a_lower_number_than_one_that_passed_has_passed_too() -> None:
    engine = HoldBack[str](in_order=True)
    engine.offer(("p", 3), [], "third")
    engine.pop()
    assert not engine.offer(("p", 2), [], "must be a duplicate")
    assert engine.offer(("p", 4), [], "is new")
    assert engine.offer(("q", 2), [], "is another source's")


def test_out_of_order_a_lower_number_than_one_that_passed_is_new() -> None:
    engine = HoldBack[str]()
    engine.offer(("p", 3), [], "third")
    engine.pop()
    assert engine.offer(("p", 2), [], "second")
    assert engine.pop() == "second"
    assert not engine.offer(("p", 3), [], "third again")


def test_a_forgotten_key_can_come_again_and_the_others_cannot() -> None:
    engine = HoldBack[str]()
    for number in (1, 2):
        engine.offer(("p", number), [], "first")
        engine.pop()
    engine.forget(("p", 1))
    assert not engine.seen(("p", 1))
    assert engine.offer(("p", 1), [], "again")
    assert not engine.offer(("p", 2), [], "again")


def test_to_forget_a_key_that_has_not_passed_changes_nothing() -> None:
    engine = HoldBack[str]()
    engine.offer(("p", 1), [("a", 1)], "held")
    engine.offer(("p", 2), [], "passed")
    engine.pop()
    before = engine.snapshot()
    for key in (("p", 1), ("p", 3), ("q", 1)):
        engine.forget(key)
    assert engine.snapshot() == before
    assert not engine.offer(("p", 1), [], "a duplicate of what is held")


# ---------------------------------------------------------------- replace


def test_replace_changes_thresholds_rank_and_payload_and_keeps_the_place_in_the_queue() -> None:
    engine = HoldBack[str]()
    engine.offer(("p", 1), [("a", 1)], "one", rank=1)
    engine.offer(("p", 2), [("never", 1)], "two", rank=7)
    engine.offer(("p", 3), [], "three", rank=1)
    engine.replace(lambda payload: ([("a", 1)], 1, "two, mended") if payload == "two" else None)
    assert list(engine.held()) == ["one", "two, mended", "three"]
    assert [wait.unmet for wait in engine.waiting()] == [(("a", 1, 0),), (("a", 1, 0),), ()]
    engine.advance("a", 1)
    assert [engine.pop() for _ in range(4)] == ["one", "two, mended", "three", None]


def test_replace_can_hold_back_again_what_was_free() -> None:
    engine = HoldBack[str]()
    engine.offer(("p", 1), [], "x")
    engine.replace(lambda payload: ([("a", 2)], 0, payload))
    assert engine.pop() is None
    engine.advance("a", 2)
    assert engine.pop() == "x"


@given(st.permutations(range(12)), st.sets(st.integers(0, 11)))
def test_replace_leaves_the_order_of_all_the_others_as_it_was(numbers: list[int], chosen: set[int]) -> None:
    """Both of those that wait for one fact and of those that are free."""
    engine, naive = HoldBack[int](), Naive()
    for each in (engine, naive):
        for number in numbers:
            each.offer(("waits", number), [("a", number + 1)], number, rank=0)
            each.offer(("free", number), [], 100 + number, rank=number)
        each.replace(lambda payload: ([("b", 1)], 50, payload) if payload % 100 in chosen else None)
    for value in range(1, 13):
        engine.advance("a", value)
        naive.advance("a", value)
        assert [engine.pop(), engine.pop()] == [naive.pop(), naive.pop()]
        assert_alike(engine, naive)


def test_replace_that_decides_nothing_changes_nothing() -> None:
    engine = HoldBack[str]()
    engine.offer(("p", 1), [("a", 1)], "x")
    before = engine.snapshot()
    engine.replace(lambda payload: None)
    assert engine.snapshot() == before


# ---------------------------------------------------------------- snapshots


def restored(snapshot: tuple[Any, ...], capacity: int | None = None, in_order: bool = False) -> HoldBack[int]:
    engine = HoldBack[int](in_order=in_order, capacity=capacity)
    engine.restore(snapshot, lambda saved: int(saved.removeprefix("payload ")))
    return engine


def saved(engine: HoldBack[int]) -> tuple[Any, ...]:
    return engine.snapshot(lambda payload: f"payload {payload}")


@settings(max_examples=300, deadline=None)
@given(SEQUENCES, SEQUENCES, CAPACITIES)
def test_an_engine_restored_anywhere_goes_on_as_if_nothing_had_happened(
    before: list[Op], after: list[Op], capacity: int | None
) -> None:
    engine = HoldBack[int](capacity=capacity)
    for payload, op in enumerate(before):
        perform(engine, op, payload)
    snapshot = saved(engine)
    twin = restored(snapshot, capacity)
    assert saved(twin) == snapshot
    for payload, op in enumerate(after, start=len(before)):
        assert perform(engine, op, payload) == perform(twin, op, payload)
        assert saved(engine) == saved(twin)
    while (released := engine.pop()) is not None:
        assert twin.pop() == released


@settings(max_examples=100, deadline=None)
@given(SEQUENCES.map(in_order_sequence), st.integers(0, 40))
def test_an_engine_that_passes_in_order_can_be_restored_anywhere_too(ops: list[Op], cut: int) -> None:
    engine = HoldBack[int](in_order=True)
    for payload, op in enumerate(ops):
        if payload == cut:
            engine = restored(saved(engine), in_order=True)
        answer = perform(engine, op, payload)
        if op.kind == "pop" and answer is not None:
            source, number = ops[answer].key
            engine.advance(("order", source), number)
    uncut = HoldBack[int](in_order=True)
    for payload, op in enumerate(ops):
        answer = perform(uncut, op, payload)
        if op.kind == "pop" and answer is not None:
            source, number = ops[answer].key
            uncut.advance(("order", source), number)
    assert saved(engine) == saved(uncut)


@settings(max_examples=200, deadline=None)
@given(SEQUENCES, CAPACITIES)
def test_restoring_leaves_the_snapshot_and_the_engine_it_came_from_alone(
    ops: list[Op], capacity: int | None
) -> None:
    engine = HoldBack[int](capacity=capacity)
    for payload, op in enumerate(ops):
        perform(engine, op, payload)
    snapshot = saved(engine)
    twin = restored(snapshot, capacity)
    for fact in ("a", "b", ("link", 1), "of its own"):
        twin.advance(fact, 100)
    while twin.pop() is not None:
        pass
    assert saved(engine) == snapshot


def by_the_shortest_way(naive: Naive) -> HoldBack[int]:
    """An engine in the state that the naive one has come to, without its detours."""
    engine = HoldBack[int]()
    for key in sorted(naive.passed, reverse=True):
        engine.offer(key, [], 0)
        engine.pop()
    for fact, value in reversed(naive.facts.items()):
        engine.advance(fact, value)
    for item in naive.held:
        engine.offer(item.key, item.thresholds, item.payload, item.rank)
    return engine


@settings(max_examples=300, deadline=None)
@given(WITHOUT_FORGETTING)
def test_engines_in_the_same_state_have_the_same_snapshot_however_they_came_to_it(ops: list[Op]) -> None:
    engine, naive = HoldBack[int](), Naive()
    for payload, op in enumerate(ops):
        perform(engine, op, payload)
        perform(naive, op, payload)
    assert saved(engine) == saved(by_the_shortest_way(naive))


def test_an_engine_that_has_forgotten_a_key_has_the_snapshot_of_one_that_never_had_it() -> None:
    engine = HoldBack[str]()
    engine.offer(("p", 1), [], "x")
    engine.pop()
    engine.forget(("p", 1))
    assert engine.snapshot() == HoldBack[str]().snapshot()


def test_a_snapshot_shows_facts_and_passed_keys_sorted_and_held_items_in_the_order_they_came() -> None:
    engine = HoldBack[str]()
    for source, number in (("q", 8), ("p", 3), ("q", 1)):
        engine.offer((source, number), [], "passes")
        engine.pop()
    engine.advance("b", 2)
    engine.advance("a", 1)
    engine.offer(("p", 9), [("a", 1), ("c", 4)], "later", rank=3)
    engine.offer(("p", 8), [("b", 1)], "sooner")
    assert engine.snapshot(str.upper) == (
        (("a", 1), ("b", 2)),
        ((("p", 9), (("c", 4),), 3, "LATER"), (("p", 8), (), 0, "SOONER")),
        (("p", (3,)), ("q", (1, 8))),
    )


# ---------------------------------------------------------------- work


class Counting(dict[Hashable, int]):
    """Facts that count how often somebody asks for one."""

    asked = 0

    def get(self, fact: Hashable, default: Any = None) -> Any:
        self.asked += 1
        return super().get(fact, default)

    def __getitem__(self, fact: Hashable) -> int:
        self.asked += 1
        return super().__getitem__(fact)


def counting_engine() -> tuple[HoldBack[int], Counting]:
    engine, facts = HoldBack[int](), Counting()
    engine.facts = facts
    return engine, facts


def chain_of_facts(n: int) -> int:
    """Item i waits for fact i-1, which its predecessor raises; all come in the wrong order."""
    engine, facts = counting_engine()
    for i in reversed(range(n)):
        engine.offer(("p", i), [(i - 1, 1)] if i else [], i)
    released = []
    while (item := engine.pop()) is not None:
        released.append(item)
        engine.advance(item, 1)
    assert released == list(range(n))
    return facts.asked


def chain_on_one_fact(n: int) -> int:
    """Item i waits until the one fact has reached i; all come in the wrong order."""
    engine, facts = counting_engine()
    for i in reversed(range(n)):
        engine.offer(("p", i), [("a", i)], i)
    released = []
    while (item := engine.pop()) is not None:
        released.append(item)
        engine.advance("a", item + 1)
    assert released == list(range(n))
    return facts.asked


def crowd_on_one_fact(n: int) -> int:
    """All wait for the same threshold, which is met at once for all."""
    engine, facts = counting_engine()
    for i in range(n):
        engine.offer(("p", i), [("a", 1)], i)
    engine.advance("a", 1)
    assert [engine.pop() for _ in range(n)] == list(range(n))
    return facts.asked


def many_thresholds_each(n: int) -> int:
    """Each item waits for four facts that come one after the other."""
    engine, facts = counting_engine()
    for i in range(n):
        engine.offer(("p", i), [(fact, i + 1) for fact in "abcd"], i)
    for fact in "dbca":
        engine.advance(fact, n)
    assert [engine.pop() for _ in range(n)] == list(range(n))
    return facts.asked


@pytest.mark.parametrize(
    ("scene", "most"),
    # An item is looked at when it comes, when it begins to watch, and when what it watches is met; and
    # whoever advances a fact looks at that fact.
    [(chain_of_facts, 5), (chain_on_one_fact, 5), (crowd_on_one_fact, 5), (many_thresholds_each, 4 * 4)],
)
def test_the_checks_per_item_do_not_grow_with_the_number_of_items(
    scene: Callable[[int], int], most: int
) -> None:
    few, many = scene(100) / 100, scene(10_000) / 10_000
    assert many <= most
    assert many == pytest.approx(few, rel=0.05)


class Compared(int):
    """A number that counts how often numbers of its kind are compared."""

    times = 0

    def __lt__(self, other: int) -> bool:
        Compared.times += 1
        return int(self) < int(other)

    def __le__(self, other: int) -> bool:
        Compared.times += 1
        return int(self) <= int(other)

    def __gt__(self, other: int) -> bool:
        Compared.times += 1
        return int(self) > int(other)

    __hash__ = int.__hash__


FAR = 10**9


def window_that_slides(n: int) -> Iterator[tuple[int, int]]:
    """First so many wait; then, whenever one is met, one comes that waits for the highest so far."""
    yield from ((i, 0) for i in range(1, n))
    yield from ((n + i, i) for i in range(n))


def always_a_lower_one(n: int) -> Iterator[tuple[int, int]]:
    """Each waits for less than all before it, while the fact rises towards them."""
    yield from ((3 * n - i, i) for i in range(n))


def at_random(n: int) -> Iterator[tuple[int, int]]:
    draw = Random(n)
    yield from ((draw.randint(1, n), 0) for _ in range(n))
    yield from ((i + draw.randint(1, n), i) for i in range(n))


def met_at_once_before_a_crowd(n: int) -> Iterator[tuple[int, int]]:
    """Many wait for far thresholds; more come, and every second one is met at once."""
    draw = Random(n)
    yield from ((FAR + draw.randrange(FAR), 0) for _ in range(n))
    for i in range(n):
        yield i + 1, i
        yield FAR + draw.randrange(FAR), i + 1


@pytest.mark.parametrize(
    "scene", [window_that_slides, always_a_lower_one, at_random, met_at_once_before_a_crowd]
)
def test_comparisons_per_item_hardly_grow_while_items_come_and_the_fact_rises_in_turns(
    scene: Callable[[int], Iterator[tuple[int, int]]],
) -> None:
    def comparisons(n: int) -> float:
        engine = HoldBack[int]()
        Compared.times = 0
        offered = 0
        for least, value in scene(n):
            engine.offer(("p", offered), [("a", Compared(least))], offered)
            engine.advance("a", Compared(value))
            offered += 1
        engine.advance("a", 3 * FAR)
        assert sorted(iter(engine.pop, None)) == list(range(offered))
        return Compared.times / offered

    few = comparisons(1_000)
    assert few < 100
    assert comparisons(8_000) < 2 * few


def test_comparisons_per_item_hardly_grow_while_free_items_come_and_leave_in_turns() -> None:
    def comparisons(n: int) -> float:
        engine, draw = HoldBack[int](), Random(n)
        Compared.times = 0
        for number in range(2 * n):
            engine.offer(("p", number), [], number, rank=Compared(draw.randrange(FAR)))
            if number > n and number % 50 == 0:
                for _ in range(50):
                    engine.pop()
        return Compared.times / (2 * n)

    few = comparisons(1_000)
    assert few < 100
    assert comparisons(8_000) < 2 * few


class Thing:
    """A payload that can be seen to be gone."""


def test_nothing_is_kept_of_items_that_have_passed() -> None:
    engine = HoldBack[Thing](in_order=True)
    things = []
    for number in range(200):
        thing = Thing()
        things.append(weakref.ref(thing))
        engine.offer((number, 1), [("a", 1 + number // 2), ("b", number % 7)], thing, rank=number % 3)
        del thing
    engine.replace(lambda thing: ([("a", 150)], 0, thing) if thing is things[0]() else None)
    for value in (1, 2, 3, 60, 61, 99, 150):
        engine.advance("a", value)
        engine.advance("b", value)
        while engine.pop() is not None:
            pass
        assert sum(thing() is not None for thing in things) == len(engine)
    assert len(engine) == 0
    assert not engine._watchers


def test_an_advance_does_not_look_at_items_whose_thresholds_it_does_not_meet() -> None:
    def checks(n: int) -> int:
        engine, facts = counting_engine()
        for i in range(n):
            engine.offer(("p", i), [("a", 1_000_000 + i)], i)
        facts.asked = 0
        for value in range(1, 101):
            engine.advance("a", value)
            assert engine.pop() is None
        return facts.asked

    assert checks(100) == checks(10_000) <= 200

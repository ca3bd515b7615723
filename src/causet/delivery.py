"""Messages of one causal domain, delivered in causal order, as early as possible: the engine without Spark.

A message is (source, number) and its direct causes. It waits until the previous one of its source and all its
causes are delivered. What happens when a cause does not come is the caller's choice, and has no default:

    wait     for as long as it takes
    flag     when its patience ends, a message is delivered all the same, marked, with what was missing
    divert   when its patience ends, a message leaves by the side; what depends on it treats it as missing

Rule: an effect never leaves before a cause that is at hand. So whoever is flagged takes those of its causes
along that are held, before it, each marked with what it misses itself. A missing cause that comes after all
is delivered and marked as late.

    >>> delivery = Delivery("flag", patience=10)
    >>> delivery.offer("ben", 1, {"anna": 1}, "answer", now=0)
    True
    >>> delivery.take(now=5)
    []
    >>> [(each.payload, each.status, each.missing) for each in delivery.take(now=10)]
    [('answer', 'flagged', {'anna': 1})]
    >>> delivery.offer("anna", 1, {}, "question", now=11)
    True
    >>> [(each.payload, each.status, each.index) for each in delivery.take(now=11)]
    [('question', 'late', 1)]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from causet.holdback import HoldBack, Threshold
from causet.model import BadInput, BadStamp
from causet.stamp import MOST_SEQUENCE

Payload = TypeVar("Payload")
Name = tuple[str, int]
"""A message: its source and its number there."""

WAIT, FLAG, DIVERT = "wait", "flag", "divert"
POLICIES = (WAIT, FLAG, DIVERT)
DELIVERED, FLAGGED, LATE, DIVERTED = "delivered", "flagged", "late", "diverted"


@dataclass(frozen=True, slots=True)
class Delivered(Generic[Payload]):
    """A message that leaves."""

    source: str
    number: int
    payload: Payload
    index: int | None
    """0, 1, 2, … in the order of delivery; None if it is diverted"""
    status: str
    waited: float
    missing: dict[str, int]
    """source → number: the direct causes that were not delivered before"""


@dataclass(slots=True)
class _Held(Generic[Payload]):
    source: str
    number: int
    causes: tuple[Name, ...]
    payload: Payload
    arrival: float


class Delivery(Generic[Payload]):
    """One receiver's messages."""

    def __init__(self, missing: str, patience: float | None = None) -> None:
        if missing not in POLICIES:
            raise BadInput(
                f"missing = {missing!r}: what to do about a cause that does not come is wait, flag or divert"
            )
        if (missing == WAIT) != (patience is None):
            raise BadInput("patience belongs to flag and divert, and they need it")
        self.policy = missing
        self.patience = patience
        self._engine: HoldBack[_Held[Payload]] = HoldBack()
        self._held: dict[Name, _Held[Payload]] = {}
        self._prefix: dict[str, int] = {}
        self._beyond: dict[str, set[int]] = {}
        self._given_up: dict[str, int] = {}
        self._gone: set[Name] = set()
        self._index = 0

    def __len__(self) -> int:
        """How many messages are held."""
        return len(self._held)

    def is_delivered(self, source: str, number: int) -> bool:
        return number <= self._prefix.get(source, 0) or number in self._beyond.get(source, ())

    def offer(
        self, source: str, number: int, causes: Mapping[str, int], payload: Payload, now: float
    ) -> bool:
        """Take a message in; False if it is held, delivered or diverted already. BadStamp if it cannot be."""
        for of, each in (*causes.items(), (source, number)):
            if not 1 <= each <= MOST_SEQUENCE:
                raise BadStamp(f"{of}:{each}: numbers are between 1 and {MOST_SEQUENCE}")
        if causes.get(source, 0) >= number:
            raise BadStamp(f"{source}:{number} depends on itself or on a later message of its source")
        name = (source, number)
        if name in self._held or name in self._gone or self.is_delivered(source, number):
            return False
        needed = tuple(causes.items())
        if number > 1:
            needed = ((source, number - 1), *needed)
        held = _Held(source, number, needed, payload, now)
        self._held[source, number] = held
        self._engine.offer((source, number), self._thresholds(needed), held, rank=(now, source, number))
        return True

    def _thresholds(self, causes: tuple[Name, ...]) -> list[Threshold]:
        return [(cause, 1) for cause in causes if not self.is_delivered(*cause)]

    def take(self, now: float, ended: bool = False) -> list[Delivered[Payload]]:
        """Whatever can leave, in causal order. With `ended`, nothing more is going to come: whoever is held
        now has lost patience."""
        left = list(self._free(now))
        if self.policy == WAIT:
            return left
        assert self.patience is not None
        overdue = [each for each in self._held.values() if ended or each.arrival + self.patience <= now]
        if self.policy == FLAG:
            left.extend(self._flag(overdue, now))
        else:
            left.extend(self._divert(overdue, now))
        return left

    def _free(self, now: float, forced: frozenset[Name] = frozenset()) -> Iterator[Delivered[Payload]]:
        while (held := self._engine.pop()) is not None:
            name = (held.source, held.number)
            self._engine.forget(name)
            missing = self._unmet(held) if name in forced else {}
            for source, number in missing.items():
                self._given_up[source] = max(number, self._given_up.get(source, 0))
            late = held.number <= self._given_up.get(held.source, 0)
            del self._held[name]
            self._pass(name)
            yield self._leaves(held, LATE if late else FLAGGED if missing else DELIVERED, now, missing)

    def _unmet(self, held: _Held[Payload]) -> dict[str, int]:
        unmet: dict[str, int] = {}
        for source, number in held.causes:
            if not self.is_delivered(source, number):
                unmet[source] = max(number, unmet.get(source, 0))
        return unmet

    def _leaves(
        self, held: _Held[Payload], status: str, now: float, missing: dict[str, int]
    ) -> Delivered[Payload]:
        index = None
        if status != DIVERTED:
            index, self._index = self._index, self._index + 1
        return Delivered(held.source, held.number, held.payload, index, status, now - held.arrival, missing)

    def _pass(self, name: Name) -> None:
        """A message is delivered: one more fact."""
        source, number = name
        beyond = self._beyond.setdefault(source, set())
        beyond.add(number)
        prefix = self._prefix.get(source, 0)
        while prefix + 1 in beyond:
            prefix += 1
            beyond.remove(prefix)
        self._prefix[source] = prefix
        if not beyond:
            del self._beyond[source]
        self._engine.advance(name, 1)
        if not self._held:
            self._engine.facts.clear()  # nobody can ask; `is_delivered` knows

    def _flag(self, overdue: list[_Held[Payload]], now: float) -> Iterator[Delivered[Payload]]:
        forced: set[Name] = set()
        todo = [(each.source, each.number) for each in overdue]
        while todo:
            name = todo.pop()
            if name not in forced and name in self._held:
                forced.add(name)
                todo.extend(self._at_hand(self._held[name]))
        if not forced:
            return

        def only_what_is_here(
            held: _Held[Payload],
        ) -> tuple[list[Threshold], tuple[Any, ...], _Held[Payload]] | None:
            if (held.source, held.number) not in forced:
                return None
            return [(name, 1) for name in self._at_hand(held)], (held.arrival, held.source, held.number), held

        self._engine.replace(only_what_is_here)
        yield from self._free(now, frozenset(forced))
        while stuck := sorted(name for name in forced if name in self._held):
            # Messages that wait for each other in a circle: one has to begin.
            self._engine.replace(partial(self._let_go, stuck[0]))
            yield from self._free(now, frozenset(forced))

    @staticmethod
    def _let_go(first: Name, held: _Held[Payload]) -> Any:
        name = (held.source, held.number)
        return ([], (held.arrival, *name), held) if name == first else None

    def _at_hand(self, held: _Held[Payload]) -> Iterator[Name]:
        """The causes that are held; for one that is not, the last one before it that is, a cause as well."""
        for source, number in held.causes:
            if not self.is_delivered(source, number):
                before = [at for of, at in self._held if of == source and at <= number]
                if before:
                    yield source, max(before)

    def _divert(self, overdue: list[_Held[Payload]], now: float) -> Iterator[Delivered[Payload]]:
        if not overdue:
            return
        gone = {(each.source, each.number) for each in overdue}
        self._gone |= gone
        for held in sorted(overdue, key=lambda held: (held.arrival, held.source, held.number)):
            yield self._leaves(held, DIVERTED, now, self._unmet(held))
        rest = [held for name, held in self._held.items() if name not in gone]
        # Facts stay: they only grow. What is held is offered again to an engine that knows them.
        facts, self._engine = self._engine.facts, HoldBack()
        self._engine.facts = facts
        self._held = {}
        for held in rest:
            name = (held.source, held.number)
            self._held[name] = held
            self._engine.offer(name, self._thresholds(held.causes), held, rank=(held.arrival, *name))

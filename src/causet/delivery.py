"""Messages of one causal domain, delivered in causal order, as early as possible.

This is the specification of what `deliver` means, in plain Python on the hold-back engine: tests hold the
bulk kernel (`kernels/streams`) and the Spark operator to it. It also serves programs without Spark.

A message is (process, number) and its direct causes, where the process is the identity under which a source
numbers its messages (`causet.envelope.process_of`). It waits until the previous one of its source and all its
causes are delivered. What happens when a cause does not come is the caller's choice, and has no default:

    wait     for as long as it takes
    flag     when its patience ends, a message is delivered all the same, marked, with what was missing
    divert   when its patience ends, a message leaves undelivered; what depends on it treats it as missing

An effect never leaves before a cause that leaves at the same time. But what a message claims about another
source moves none of that source's messages: only held messages of its own source go along with a flagged one,
before it. A missing cause that comes after all is delivered and marked as late: the message that was named,
and the one just before a message of its own source that left without it; no other.

A number that comes again is a duplicate, or a conflict if the message is a different one: a process that
was started again without its memory and without a new identity uses its numbers for other messages. That is
known for the last 65,536 numbers of a process. A number that is more than 10⁹ above the largest of its
process is refused.

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
    >>> delivery.offer("anna", 1, {}, "question", now=12)
    False
    >>> delivery.offer("anna", 1, {}, "another question", now=12)
    Traceback (most recent call last):
    causet.delivery.Conflict: anna:1 is the number of another message
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from typing import Any, Generic, TypeVar

from causet.envelope import MOST_SEQUENCE
from causet.errors import BadInput, BadStamp, quote
from causet.holdback import HoldBack, Threshold
from causet.status import DELIVERED, DIVERTED, FLAG, FLAGGED, LATE, POLICIES, WAIT

Payload = TypeVar("Payload")
Name = tuple[str, int]
"""A message: its source and its number there."""

AHEAD = 10**9
"""How far the number of a message may be above the largest one of its source; beyond that it is refused."""
REMEMBERED = 1 << 16
"""How many of the last numbers of a source are remembered, to tell a conflict from a duplicate."""


@dataclass(frozen=True, slots=True)
class Delivered(Generic[Payload]):
    """A message that leaves."""

    source: str
    """the process that numbered it"""
    number: int
    payload: Payload
    index: int | None
    """0, 1, 2, … in the order of delivery; None if it is diverted"""
    status: str
    waited: float
    missing: dict[str, int]
    """process → number: the direct causes that were not delivered before"""


def _digest(payload: object) -> Hashable:
    """What tells payloads apart: the same for equal ones."""
    if isinstance(payload, bytes | bytearray):
        return blake2b(payload, digest_size=8).digest()
    try:
        text = json.dumps(payload, sort_keys=True)
    except (TypeError, ValueError, RecursionError):
        return None
    return blake2b(text.encode(), digest_size=8).digest()


class Conflict(BadStamp):
    """A message that has the number of a different one."""


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
            raise BadInput(f"missing = {quote(missing)}: must be wait, flag or divert")
        if (missing == WAIT) != (patience is None):
            raise BadInput("patience belongs to flag and divert, and they need it")
        self.policy = missing
        self.patience = patience
        self._engine: HoldBack[_Held[Payload]] = HoldBack()
        self._held: dict[Name, _Held[Payload]] = {}
        self._prefix: dict[str, int] = {}
        self._beyond: dict[str, set[int]] = {}
        self._claimed: set[Name] = set()
        self._lost: set[Name] = set()
        self._gone: set[Name] = set()
        self._top: dict[str, int] = {}
        self._marks: dict[Name, Hashable] = {}
        self._index = 0

    def __len__(self) -> int:
        """How many messages are held."""
        return len(self._held)

    def is_delivered(self, source: str, number: int) -> bool:
        return number <= self._prefix.get(source, 0) or number in self._beyond.get(source, ())

    def offer(
        self,
        source: str,
        number: int,
        causes: Mapping[str, int],
        payload: Payload,
        now: float,
        mark: Hashable = None,
    ) -> bool:
        """Take a message in; False if it is held, delivered or diverted already. BadStamp if it cannot exist;
        Conflict if the number is that of a different message, one with another `mark`. The mark is by default
        a digest of the payload, if that can be written as JSON; and if not, all messages of a number are
        taken for the same."""
        if mark is None:
            mark = _digest(payload)
        for of, each in (*causes.items(), (source, number)):
            if not 1 <= each <= MOST_SEQUENCE:
                raise BadStamp(f"{of}:{each}: numbers are between 1 and {MOST_SEQUENCE}")
        if causes.get(source, 0) >= number:
            raise BadStamp(f"{source}:{number} depends on itself or on a later message of its source")
        top = self._top.get(source, 0)
        if number > top + AHEAD:
            raise BadStamp(f"{source}:{number} is further than {AHEAD:,} above {source}:{top}")
        name = (source, number)
        if name in self._held or name in self._gone or self.is_delivered(source, number):
            if number > top - REMEMBERED and self._marks.get(name, mark) != mark:
                raise Conflict(f"{source}:{number} is the number of another message")
            return False
        self._top[source] = max(number, top)
        self._marks[name] = mark
        needed = tuple(causes.items())
        if number > 1:
            needed = ((source, number - 1), *needed)
        held = _Held(source, number, needed, payload, now)
        self._held[source, number] = held
        if name in self._lost:  # it came after all: what is held waits for it
            self._offer_again(list(self._held.values()))
        else:
            self._engine.offer(name, self._thresholds(needed), held, rank=(now, *name))
        return True

    def _thresholds(self, causes: tuple[Name, ...]) -> list[Threshold]:
        return [(cause, 1) for cause in causes if not self.is_delivered(*cause) and not self._is_lost(cause)]

    def _is_lost(self, name: Name) -> bool:
        """Whether a message was given up, and has not come after all."""
        return name in self._lost and name not in self._held

    def give_up(self, source: str, number: int) -> None:
        """This message will not come: what waits for it waits no longer, and is flagged."""
        self._lost.add((source, number))
        self._offer_again(list(self._held.values()))

    def take(self, now: float, ended: bool = False) -> list[Delivered[Payload]]:
        """What can leave, in causal order. With `ended`, nothing more will come: the patience of what is held
        ends now."""
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
            missing = self._unmet(held) if name in forced or self._lost else {}
            self._claimed |= {each for each in held.causes if missing and not self.is_delivered(*each)}
            late = name in self._claimed or self.is_delivered(held.source, held.number + 1)
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
            self._engine.facts.clear()  # nothing asks for them; `is_delivered` knows

    def _flag(self, overdue: list[_Held[Payload]], now: float) -> Iterator[Delivered[Payload]]:
        last = dict[str, int]()
        for held in overdue:
            last[held.source] = max(held.number, last.get(held.source, 0))
        forced = frozenset(name for name in self._held if name[1] <= last.get(name[0], 0))
        while waiting := {name for name in forced if name in self._held}:
            # A forced message waits for other forced ones; and for the rest as long as something moves.
            self._engine.replace(partial(self._only_at_hand, forced))
            left = list(self._free(now, forced))
            yield from left
            if left:
                continue
            free = [name for name in waiting if not set(self._before(name, forced))]
            # Where none is free, they wait for each other in a cycle: one has to begin.
            self._engine.replace(partial(self._let_go, frozenset(free or [min(waiting)])))
            yield from self._free(now, forced)

    def _only_at_hand(self, forced: frozenset[Name], held: _Held[Payload]) -> Any:
        name = (held.source, held.number)
        if name not in forced:
            return None
        waits = {*self._before(name, forced), *(each for each in held.causes if each in self._held)}
        return [(each, 1) for each in waits], (held.arrival, *name), held

    @staticmethod
    def _let_go(free: frozenset[Name], held: _Held[Payload]) -> Any:
        name = (held.source, held.number)
        return ([], (held.arrival, *name), held) if name in free else None

    def _before(self, name: Name, forced: frozenset[Name]) -> Iterator[Name]:
        """The forced causes that are held; for one that is not here, the last forced one before it in its
        source, a cause as well."""
        for source, number in self._held[name].causes:
            if (source, number) in self._held:
                if (source, number) in forced:
                    yield source, number
            elif not self.is_delivered(source, number):
                before = [at for of, at in forced if of == source and at < number and (of, at) in self._held]
                if before and (source, max(before)) != name:
                    yield source, max(before)

    def _divert(self, overdue: list[_Held[Payload]], now: float) -> Iterator[Delivered[Payload]]:
        if not overdue:
            return
        gone = {(each.source, each.number) for each in overdue}
        self._gone |= gone
        for held in sorted(overdue, key=lambda held: (held.arrival, held.source, held.number)):
            yield self._leaves(held, DIVERTED, now, self._unmet(held))
        self._offer_again([held for name, held in self._held.items() if name not in gone])

    def _offer_again(self, rest: list[_Held[Payload]]) -> None:
        """Offer what is held to a new engine with the same facts, which only grow."""
        facts, self._engine = self._engine.facts, HoldBack()
        self._engine.facts = facts
        self._held = {}
        for held in rest:
            self._held[held.source, held.number] = held
        for name, held in self._held.items():
            self._engine.offer(name, self._thresholds(held.causes), held, rank=(held.arrival, *name))

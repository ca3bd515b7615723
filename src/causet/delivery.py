"""Messages to one reader, delivered in causal order, as early as possible.

This is the specification of what `deliver` means, in plain Python on the hold-back engine: tests hold the
bulk kernel (`kernels/streams`) and the Spark operator to it. It also serves programs without Spark.

A message is (process, number) and its causes, where the process is the identity under which a source numbers
its messages (`causet.envelope.process_of`). It waits until the previous one of its source and all its causes
are delivered. What happens when a cause does not come is the caller's choice, and has no default:

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

Where messages are addressed to groups, a process numbers them in each group (`causet.frontier`). A message
with several numbers counts in all of its groups at once. Of groups that the reader does not read, it waits
for nothing:

    >>> desk = Delivery("wait", reads={"orders", "payments"})
    >>> desk.offer_to("bank", {"payments": 1}, {"orders": {"shop": 1}, "audit": {"shop": 9}}, "paid", now=0)
    True
    >>> desk.take(now=0)
    []
    >>> desk.offer_to("shop", {"orders": 1, "audit": 9}, {}, "one book", now=1)
    True
    >>> [each.payload for each in desk.take(now=1)]
    ['one book', 'paid']
"""

from __future__ import annotations

import json
from collections.abc import Container, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from typing import Any, Generic, TypeVar

from causet.envelope import ALL, MOST_SEQUENCE
from causet.errors import BadInput, BadStamp, quote
from causet.holdback import HoldBack, Threshold
from causet.status import DELIVERED, DIVERTED, FLAG, FLAGGED, LATE, POLICIES, WAIT

Payload = TypeVar("Payload")
Stream = tuple[str, str]
"""What is numbered 1, 2, 3, …: the messages of a source to a group."""
Name = tuple[Stream, int]
"""A message in one of its groups, by its number there."""

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
    """in the first of its groups"""
    payload: Payload
    index: int | None
    """0, 1, 2, … in the order of delivery; None if it is diverted"""
    status: str
    waited: float
    missing: dict[str, Any]
    """process → number: the causes that were not delivered before; for a message that was offered to groups,
    group → process → number"""


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
    names: tuple[Name, ...]
    causes: tuple[Name, ...]
    payload: Payload
    arrival: float
    grouped: bool

    @property
    def name(self) -> Name:
        return self.names[0]


class Delivery(Generic[Payload]):
    """One reader's messages. `reads` are the groups that it reads: all, if they are not named."""

    def __init__(
        self, missing: str, patience: float | None = None, reads: Container[str] | None = None
    ) -> None:
        if missing not in POLICIES:
            raise BadInput(f"missing = {quote(missing)}: must be wait, flag or divert")
        if (missing == WAIT) != (patience is None):
            raise BadInput("patience belongs to flag and divert, and they need it")
        self.policy = missing
        self.patience = patience
        self._reads = reads
        self._engine: HoldBack[_Held[Payload]] = HoldBack()
        self._held: dict[Name, _Held[Payload]] = {}
        """by each of their names"""
        self._prefix: dict[Stream, int] = {}
        self._beyond: dict[Stream, set[int]] = {}
        self._claimed: set[Name] = set()
        self._lost: set[tuple[str, int]] = set()
        self._gone: set[Name] = set()
        self._top: dict[Stream, int] = {}
        self._marks: dict[Name, Hashable] = {}
        self._index = 0

    def __len__(self) -> int:
        """How many messages are held."""
        return sum(1 for _ in self._all_held())

    def _all_held(self) -> Iterator[_Held[Payload]]:
        return (held for name, held in self._held.items() if held.name == name)

    def is_delivered(self, source: str, number: int, group: str = ALL) -> bool:
        return self._has_left(((source, group), number))

    def _has_left(self, name: Name) -> bool:
        stream, number = name
        return number <= self._prefix.get(stream, 0) or number in self._beyond.get(stream, ())

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
        return self._offered(source, {ALL: number}, {ALL: causes}, payload, now, mark, False)

    def offer_to(
        self,
        source: str,
        numbers: Mapping[str, int],
        past: Mapping[str, Mapping[str, int]],
        payload: Payload,
        now: float,
        mark: Hashable = None,
    ) -> bool:
        """The same for a message to groups: its number in each of them, and its causes by group. BadStamp if
        the reader reads none of its groups."""
        return self._offered(source, numbers, past, payload, now, mark, True)

    def _offered(
        self,
        source: str,
        numbers: Mapping[str, int],
        past: Mapping[str, Mapping[str, int]],
        payload: Payload,
        now: float,
        mark: Hashable,
        grouped: bool,
    ) -> bool:
        if mark is None:
            mark = _digest(payload)
        names = tuple(((source, group), number) for group, number in numbers.items() if self._is_read(group))
        causes = [
            ((of, group), number)
            for group, entries in past.items()
            if self._is_read(group)
            for of, number in entries.items()
        ]
        if not names:
            raise BadStamp(f"a message of {source} to groups that are not read here")
        for (of, _), each in (*causes, *names):
            if not 1 <= each <= MOST_SEQUENCE:
                raise BadStamp(f"{of}:{each}: numbers are between 1 and {MOST_SEQUENCE}")
        for stream, number in names:
            if past.get(stream[1], {}).get(source, 0) >= number:
                raise BadStamp(f"{source}:{number} depends on itself or on a later message of its source")
            top = self._top.get(stream, 0)
            if number > top + AHEAD:
                raise BadStamp(f"{source}:{number} is further than {AHEAD:,} above {source}:{top}")
        if not self._is_new(names, mark):
            return False
        for stream, number in names:
            self._top[stream] = max(number, self._top.get(stream, 0))
            self._marks[stream, number] = mark
        before = [(stream, number - 1) for stream, number in names if number > 1]
        held = _Held(names, (*before, *causes), payload, now, grouped)
        self._held |= dict.fromkeys(names, held)
        if any((source, number) in self._lost for _, number in names):
            self._offer_again(list(self._all_held()))  # it came after all: what is held waits for it
        else:
            self._engine.offer(held.name, self._thresholds(held.causes), held, rank=(now, *held.name))
        return True

    def _is_read(self, group: str) -> bool:
        return self._reads is None or group in self._reads

    def _is_new(self, names: tuple[Name, ...], mark: Hashable) -> bool:
        known = [name for name in names if name in self._held or name in self._gone or self._has_left(name)]
        for name in known:
            stream, number = name
            another = number > self._top[stream] - REMEMBERED and self._marks.get(name, mark) != mark
            if another or len(known) < len(names):
                raise Conflict(f"{stream[0]}:{number} is the number of another message")
        return not known

    def _thresholds(self, causes: Iterable[Name]) -> list[Threshold]:
        return [(cause, 1) for cause in causes if not self._has_left(cause) and not self._is_lost(cause)]

    def _is_lost(self, name: Name) -> bool:
        """Whether a message was given up, and has not come after all."""
        (source, _), number = name
        return (source, number) in self._lost and name not in self._held

    def give_up(self, source: str, number: int) -> None:
        """This message will not come, in any group: what waits for it waits no longer, and is flagged."""
        self._lost.add((source, number))
        self._offer_again(list(self._all_held()))

    def take(self, now: float, ended: bool = False) -> list[Delivered[Payload]]:
        """What can leave, in causal order. With `ended`, nothing more will come: the patience of what is held
        ends now."""
        left = list(self._free(now))
        if self.policy == WAIT:
            return left
        assert self.patience is not None
        overdue = [each for each in self._all_held() if ended or each.arrival + self.patience <= now]
        if self.policy == FLAG:
            left.extend(self._flag(overdue, now))
        else:
            left.extend(self._divert(overdue, now))
        return left

    def _free(self, now: float, forced: frozenset[Name] = frozenset()) -> Iterator[Delivered[Payload]]:
        while (held := self._engine.pop()) is not None:
            self._engine.forget(held.name)
            missing = self._unmet(held) if held.name in forced or self._lost else {}
            self._claimed |= {each for each in held.causes if missing and not self._has_left(each)}
            late = any(name in self._claimed or self._has_left((name[0], name[1] + 1)) for name in held.names)
            for name in held.names:
                del self._held[name]
            for name in held.names:
                self._pass(name)
            yield self._leaves(held, LATE if late else FLAGGED if missing else DELIVERED, now, missing)

    def _unmet(self, held: _Held[Payload]) -> dict[str, Any]:
        unmet: dict[str, dict[str, int]] = {}
        for cause in held.causes:
            if not self._has_left(cause):
                (source, group), number = cause
                mine = unmet.setdefault(group, {})
                mine[source] = max(number, mine.get(source, 0))
        return unmet if held.grouped else dict(unmet.get(ALL, {}))

    def _leaves(
        self, held: _Held[Payload], status: str, now: float, missing: dict[str, Any]
    ) -> Delivered[Payload]:
        index = None
        if status != DIVERTED:
            index, self._index = self._index, self._index + 1
        (source, _), number = held.name
        return Delivered(source, number, held.payload, index, status, now - held.arrival, missing)

    def _pass(self, name: Name) -> None:
        """A message is delivered: one more fact."""
        stream, number = name
        beyond = self._beyond.setdefault(stream, set())
        beyond.add(number)
        prefix = self._prefix.get(stream, 0)
        while prefix + 1 in beyond:
            prefix += 1
            beyond.remove(prefix)
        self._prefix[stream] = prefix
        if not beyond:
            del self._beyond[stream]
        self._engine.advance(name, 1)
        if not self._held:
            self._engine.facts.clear()  # nothing asks for them; `is_delivered` knows

    def _flag(self, overdue: list[_Held[Payload]], now: float) -> Iterator[Delivered[Payload]]:
        forced = self._dragged(overdue)
        while waiting := {name for name in forced if name in self._held}:
            # A forced message waits for other forced ones; and for the rest as long as something moves.
            self._engine.replace(partial(self._only_at_hand, forced))
            left = list(self._free(now, forced))
            yield from left
            if left:
                continue
            free = [name for name in waiting if not set(self._before(self._held[name], forced))]
            # Where none is free, they wait for each other in a cycle: one has to begin.
            self._engine.replace(partial(self._let_go, frozenset(free or [min(waiting)])))
            yield from self._free(now, forced)

    def _dragged(self, overdue: list[_Held[Payload]]) -> frozenset[Name]:
        """The names of what is overdue and of what stands before it in the streams of its source."""
        last: dict[Stream, int] = {}
        again = overdue
        while again:
            for stream, number in (name for held in again for name in held.names):
                last[stream] = max(number, last.get(stream, 0))
            again = [  # dragged in one of its groups, and not in all
                held
                for held in self._all_held()
                if len({number <= last.get(stream, 0) for stream, number in held.names}) == 2
            ]
        return frozenset(name for name in self._held if name[1] <= last.get(name[0], 0))

    def _only_at_hand(self, forced: frozenset[Name], held: _Held[Payload]) -> Any:
        if held.name not in forced:
            return None
        waits = {
            *self._before(held, forced),
            *(self._held[each].name for each in held.causes if each in self._held),
        }
        return [(each, 1) for each in waits], (held.arrival, *held.name), held

    @staticmethod
    def _let_go(free: frozenset[Name], held: _Held[Payload]) -> Any:
        return ([], (held.arrival, *held.name), held) if held.name in free else None

    def _before(self, held: _Held[Payload], forced: frozenset[Name]) -> Iterator[Name]:
        """The forced causes that are held; for one that is not here, the last forced one before it in its
        source, a cause as well."""
        for cause in held.causes:
            if cause in self._held:
                if cause in forced:
                    yield self._held[cause].name
            elif not self._has_left(cause):
                stream, number = cause
                before = [
                    each for each in forced if each[0] == stream and each[1] < number and each in self._held
                ]
                if before and self._held[max(before)] is not held:
                    yield self._held[max(before)].name

    def _divert(self, overdue: list[_Held[Payload]], now: float) -> Iterator[Delivered[Payload]]:
        if not overdue:
            return
        gone = {name for each in overdue for name in each.names}
        self._gone |= gone
        for held in sorted(overdue, key=lambda held: (held.arrival, *held.name)):
            yield self._leaves(held, DIVERTED, now, self._unmet(held))
        self._offer_again([held for held in self._all_held() if held.name not in gone])

    def _offer_again(self, rest: list[_Held[Payload]]) -> None:
        """Offer what is held to a new engine with the same facts, which only grow."""
        facts, self._engine = self._engine.facts, HoldBack()
        self._engine.facts = facts
        self._held = {name: held for held in rest for name in held.names}
        for held in rest:
            self._engine.offer(
                held.name, self._thresholds(held.causes), held, rank=(held.arrival, *held.name)
            )

"""The hold-back engine: items wait until counters that only grow reach thresholds.

This is the one idea of the package. A *fact* is a counter that never falls. An item comes with
thresholds, pairs (fact, at least), and is free when every one is met. Because facts only grow, a threshold
that is met stays met; so a waiting item need watch only one unmet threshold at a time, and looks for the
next one when that is met:

    facts      a = 2    b = 0    c = 5
    item x     a ≥ 2 ✓  b ≥ 1 ✗  c ≥ 7 ✗          x watches b
    b becomes 1:                                   x now watches c
    c becomes 7:                                   x is free

Each item is touched once per threshold, whatever the number of others that wait (the thresholds on a fact
and the free items are kept in order, so the price has a logarithm in it). This is Kahn's topological sort
with counters for edges. Items that are free together leave by (rank, order of arrival): deterministic, and
the protocol chooses the rank.

With 100,000 waiting, memory costs more than the logarithm: each step of a heap goes to a far place. So a heap
takes what comes one by one; when it has grown large it is sorted as a whole, and what is next is taken from
the end. It is large when it is not small beside what is sorted already: then each entry pays for a few
others, once, in whatever turns entries come and leave.

    >>> engine = HoldBack[str]()
    >>> engine.offer(("p2", 1), [("p1", 1)], "answer")
    True
    >>> engine.pop() is None                       # the question is not there yet
    True
    >>> [str(wait) for wait in engine.waiting()]
    ["('p2', 1) waits for p1 ≥ 1, now 0"]
    >>> engine.offer(("p1", 1), [], "question")
    True
    >>> engine.pop()
    'question'
    >>> engine.advance("p1", 1)
    >>> engine.pop()
    'answer'
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any, Generic, TypeVar

from causet.errors import CausetError

Payload = TypeVar("Payload")
Fact = Hashable
Threshold = tuple[Fact, int]
Key = tuple[Hashable, int]
"""What identifies an item: its source, and its number at that source."""
FEW = 32
"""So many free items are not worth sorting."""


class HoldBackFull(CausetError):
    """The engine was given a capacity and holds that many items; nothing was taken in or dropped."""


@dataclass(frozen=True, slots=True)
class Wait:
    """What one held item still waits for: every threshold that is not met yet."""

    key: Key
    unmet: tuple[tuple[Fact, int, int], ...]
    """(fact, at least, now)"""

    def __str__(self) -> str:
        needs = ", ".join(f"{fact} ≥ {least}, now {now}" for fact, least, now in self.unmet)
        return f"{self.key} waits for {needs}"


class _Item(Generic[Payload]):
    __slots__ = ("arrival", "key", "next", "payload", "rank", "thresholds")

    def __init__(
        self, key: Key, thresholds: tuple[Threshold, ...], rank: Any, arrival: int, payload: Payload
    ) -> None:
        self.key = key
        self.thresholds = thresholds
        self.next = 0  # thresholds before this one are met
        self.rank = rank
        self.arrival = arrival
        self.payload = payload

    def least(self) -> int:
        """The threshold that it watches."""
        return self.thresholds[self.next][1]


class _Watchers(Generic[Payload]):
    """The items that watch one fact, by the threshold that they wait for.

    In `at` a bare item is the only one at its threshold, as most are. Each threshold stands once in `new` or
    in `old`: `new` is a heap of those that came last, `old` is sorted, with the lowest at its end. Both have
    plain numbers, which are compared faster than tuples.
    """

    __slots__ = ("at", "new", "old")

    def __init__(self, item: _Item[Payload]) -> None:
        least = item.least()
        self.at: dict[int, _Item[Payload] | list[_Item[Payload]]] = {least: item}
        self.new = [least]
        self.old: list[int] = []

    def add(self, least: int, item: _Item[Payload]) -> None:
        there = self.at.setdefault(least, item)
        if there is item:
            heappush(self.new, least)
        elif isinstance(there, list):
            there.append(item)
        else:
            self.at[least] = [there, item]

    def take(self, value: int) -> list[_Item[Payload] | list[_Item[Payload]]]:
        """Take out the items whose thresholds this value meets."""
        at, new, old = self.at, self.new, self.old
        if new and new[0] <= value and len(new) * 4 > len(old):
            # All are looked at, in the order they came: so they lie in memory, and by threshold they do not.
            # The rest moves to a dict of its own: in this one the gaps would be walked over the next time.
            self.at = {least: there for least, there in at.items() if least > value}
            self.old = sorted([least for least in old + new if least > value], reverse=True)
            new.clear()
            return [there for least, there in at.items() if least <= value]
        met = []
        while new and new[0] <= value:
            met.append(at.pop(heappop(new)))
        while old and old[-1] <= value:
            met.append(at.pop(old.pop()))
        return met


class HoldBack(Generic[Payload]):
    """One process's hold-back: facts, the items that wait for them, and what has passed.

    A second item with a key that is held or has passed is a duplicate and is refused. With `in_order` the
    caller promises that each source's items pass in the order of their numbers, so one number per source
    is enough to remember what has passed; without it every passed key is kept until it is forgotten.

    With a `capacity`, an item that would have to wait beyond it raises HoldBackFull and changes nothing.
    """

    __slots__ = (
        "_arrivals",
        "_free",
        "_held",
        "_passed",
        "_ready",
        "_watchers",
        "capacity",
        "facts",
        "in_order",
    )

    def __init__(self, *, in_order: bool = False, capacity: int | None = None) -> None:
        self.facts: dict[Fact, int] = {}
        self.in_order = in_order
        self.capacity = capacity
        self._held: dict[Key, _Item[Payload]] = {}
        self._watchers: dict[Fact, _Item[Payload] | _Watchers[Payload]] = {}  # a bare item is the only one
        self._free: list[tuple[Any, int, _Item[Payload]]] = []  # a heap
        self._ready: list[tuple[Any, int, _Item[Payload]]] = []  # free too, sorted, the next one at the end
        self._passed: dict[Hashable, int | set[int]] = {}
        self._arrivals = 0

    def __len__(self) -> int:
        """How many items are held."""
        return len(self._held)

    def __contains__(self, key: Key) -> bool:
        return key in self._held

    def seen(self, key: Key) -> bool:
        """Whether this key is held or has passed."""
        return key in self._held or self._has_passed(key)

    def _has_passed(self, key: Key) -> bool:
        passed = self._passed.get(key[0])
        if passed is None:
            return False
        return key[1] <= passed if isinstance(passed, int) else key[1] in passed

    def offer(
        self,
        key: Key,
        thresholds: Iterable[Threshold],
        payload: Payload,
        rank: Any = 0,
        *,
        bounded: bool = True,
    ) -> bool:
        """Take an item in; False, and nothing changes, if it is a duplicate.

        Unless it is `bounded`, the capacity does not concern it.
        """
        if key in self._held or self._has_passed(key):
            return False
        facts = self.facts
        unmet = tuple([t for t in thresholds if facts.get(t[0], 0) < t[1]])
        if unmet and bounded and self.capacity is not None and len(self._held) >= self.capacity:
            raise HoldBackFull(
                f"{len(self._held)} items are held, which is the capacity; {key} would have to wait for "
                f"{unmet[0][0]} ≥ {unmet[0][1]}. Raise the capacity, or find out why that does not come"
            )
        item = _Item(key, unmet, rank, self._arrivals, payload)
        self._arrivals += 1
        self._held[key] = item
        self._watch(item)
        return True

    def _watch(self, item: _Item[Payload]) -> None:
        """Put the item beside its next unmet threshold, or among the free ones."""
        facts, thresholds, position = self.facts, item.thresholds, item.next
        while position < len(thresholds):
            fact, least = thresholds[position]
            if facts.get(fact, 0) < least:
                item.next = position
                watchers = self._watchers.setdefault(fact, item)
                if watchers is item:
                    return
                if isinstance(watchers, _Item):
                    watchers = self._watchers[fact] = _Watchers(watchers)
                watchers.add(least, item)
                return
            position += 1
        item.thresholds, item.next = (), 0  # all are met; let go now, it costs more when items leave by rank
        heappush(self._free, (item.rank, item.arrival, item))

    def advance(self, fact: Fact, value: int) -> None:
        """Raise a fact; a value that is not higher changes nothing, for facts only grow."""
        if value <= self.facts.get(fact, 0):
            return
        self.facts[fact] = value
        watchers = self._watchers.get(fact)
        if watchers is None:
            return
        if isinstance(watchers, _Item):
            if watchers.least() <= value:
                del self._watchers[fact]
                self._watch(watchers)
            return
        met = watchers.take(value)
        if not watchers.at:
            del self._watchers[fact]
        for there in met:
            if isinstance(there, list):
                for item in there:
                    self._watch(item)
            else:
                self._watch(there)

    def pop(self) -> Payload | None:
        """The free item of the lowest (rank, arrival), which passes now; None if none is free."""
        free, ready = self._free, self._ready
        if len(free) > FEW and len(free) * 4 > len(ready):
            self._ready = ready = sorted(ready + free, reverse=True)
            free.clear()
        if ready and not (free and free[0] < ready[-1]):
            item = ready.pop()[2]
        elif free:
            item = heappop(free)[2]
        else:
            return None
        source, number = item.key
        del self._held[item.key]
        passed = self._passed.get(source)
        if self.in_order:
            if not isinstance(passed, int) or number > passed:
                self._passed[source] = number
        elif isinstance(passed, set):
            passed.add(number)
        else:
            self._passed[source] = {number}
        return item.payload

    def forget(self, key: Key) -> None:
        """Stop remembering that this item passed, when something else refuses its duplicates."""
        passed = self._passed.get(key[0])
        if isinstance(passed, set):
            passed.discard(key[1])
            if not passed:
                del self._passed[key[0]]

    def remember(self, keys: Iterable[Key]) -> None:
        """Remember that these items passed, and no others: something else refuses their duplicates.

        Only for an engine whose items may pass in any order.
        """
        passed: dict[Hashable, int | set[int]] = {}
        for source, number in keys:
            numbers = passed.setdefault(source, set())
            assert isinstance(numbers, set)
            numbers.add(number)
        self._passed = passed

    def held(self) -> Iterator[Payload]:
        """The payloads that are held, in the order they came."""
        return (item.payload for item in self._held.values())

    def _unmet(self, item: _Item[Payload]) -> tuple[Threshold, ...]:
        facts = self.facts
        return tuple(t for t in item.thresholds[item.next :] if facts.get(t[0], 0) < t[1])

    def waiting(self) -> Iterator[Wait]:
        """What each held item still waits for, in the order they came."""
        for item in self._held.values():
            unmet = ((fact, least, self.facts.get(fact, 0)) for fact, least in self._unmet(item))
            yield Wait(item.key, tuple(unmet))

    def lower(self, fact: Fact, value: int) -> None:
        """Let a fact fall below a value that it is going to be raised to.

        For a process that finds its own memory damaged: else facts only grow.
        """
        if self.facts.get(fact, 0) > value:
            self.facts[fact] = value - 1

    def replace(self, decide: Callable[[Payload], tuple[Iterable[Threshold], Any, Payload] | None]) -> None:
        """Give held items new thresholds, rank and payload where `decide` names them.

        For a process that finds its own memory damaged; costs as much as there are items.
        """
        self.review(lambda payload, thresholds, rank: decide(payload))

    def review(
        self,
        decide: Callable[
            [Payload, tuple[Threshold, ...], Any], tuple[Iterable[Threshold], Any, Payload] | None
        ],
    ) -> None:
        """The same, where `decide` is told the thresholds that were unmet at first, and the rank."""
        again = [
            (item, changed)
            for item in self._held.values()
            if (changed := decide(item.payload, item.thresholds, item.rank)) is not None
        ]
        if not again:
            return
        for item, (thresholds, rank, payload) in again:
            item.thresholds, item.rank, item.payload, item.next = tuple(thresholds), rank, payload, 0
        self._watchers.clear()
        self._free.clear()
        self._ready.clear()
        for item in self._held.values():
            self._watch(item)

    def snapshot(self, save: Callable[[Payload], Any] = lambda payload: payload) -> tuple[Any, ...]:
        """Everything as a canonical plain value: equal engines give equal snapshots.

        Facts and passed keys are sorted, held items stand in the order they came. `save` turns a payload
        into a plain value.
        """
        facts = tuple(_sorted(self.facts.items()))
        held = tuple(
            (item.key, self._unmet(item), _plain(item.rank), save(item.payload))
            for item in self._held.values()
        )
        passed = tuple(
            (source, what if isinstance(what, int) else tuple(sorted(what)))
            for source, what in _sorted(self._passed.items())
        )
        return (facts, held, passed)

    def restore(
        self,
        snapshot: tuple[Any, ...],
        load: Callable[[Any], Payload] = lambda saved: saved,
        load_rank: Callable[[Any], Any] = lambda saved: saved,
    ) -> None:
        """Become the engine that gave this snapshot; only for an engine that nothing was offered to."""
        facts, held, passed = snapshot
        self.facts = dict(facts)
        self._passed = {source: what if isinstance(what, int) else set(what) for source, what in passed}
        for key, thresholds, rank, saved in held:
            item = _Item(key, tuple(thresholds), load_rank(rank), self._arrivals, load(saved))
            self._arrivals += 1
            self._held[key] = item
            self._watch(item)


def _plain(rank: Any) -> Any:
    """A rank without its type: a tuple that compares in its own way is saved as a plain one."""
    return tuple(rank) if isinstance(rank, tuple) else rank


def _sorted(items: Iterable[tuple[Hashable, Any]]) -> list[tuple[Hashable, Any]]:
    """By key; facts of different types have no order of their own, but their text has."""
    try:
        return sorted(items)  # keys differ, so values are never compared
    except TypeError:
        return sorted(items, key=lambda item: repr(item[0]))

"""The clocks of the deterministic merge (Kulkarni & Ravikant, "Stabilizing Causal Deterministic Merge",
section 3): how a process counts its own time, and how it reads and compares timestamps.

A timestamp is ⟨r, c, kn⟩: r is the physical clock of the process at the event, r + c the largest clock
value that it knows of, and kn[t] how many events it knows of at clock value r + t. Clocks differ by at most
ε (G1), so t and c stay small and a timestamp is bounded. ⟨r, c⟩ does without kn.

Deviations from the print:

    K1  kn runs over -ε … ε, c ≤ ε, and ε + 1 elements are compared; as printed the element for a clock that
        is ahead by exactly ε does not exist, and theorem 3.6 fails. A least message delay δ_min narrows
        this to ε - δ_min, and no further than 0. K events in one tick raise the bound on kn to K·n + 1.
    K3  with clocks kept modulo B, the timestamp ages at every tick; as printed it is brought up to date at
        the next event only, and after B idle ticks an old timestamp is mistaken for a new one.
    K5  figure 3's ⟨r, c⟩: with its reset and its `less`, three timestamps can stand in a circle. Repaired:
        no reset, and order by (r + c, r, process, sequence).
    K8  the bound on kn is K·n + 1. As printed it is n (K·n for K events per tick), which forgets the initial
        event that kn[0] = 1 stands for: a chain within tick 0 exceeds it, and is reset without a fault.

    K7  section 5.2: if all processes are quiet for 2ε in every x ticks, c is bounded. Not with figure 3,
        which resets at a reception only if both times are old: c grows in every window. Repaired: what is of
        an earlier window is dropped, each part by itself, and timestamps are compared by windows first.

`key` gives a timestamp a value whose plain order is `less`, then process, then sequence: a distributed sort
by it is the merge.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from causet.errors import BadInput


class Timestamp(NamedTuple):
    """⟨r, c, kn⟩; kn[i] is the paper's kn[i - low]."""

    r: int
    c: int
    kn: tuple[int, ...]


class Clock(ABC):
    """What the merge asks of a clock. It keeps nothing: the process keeps its own timestamp."""

    recovers: ClassVar[bool] = False
    """Whether timestamps have bounds that show damage."""

    @property
    def length(self) -> int:
        """How many elements kn has."""
        return 0

    def first(self, now: int) -> Timestamp:
        """A timestamp that knows of one event, at `now`: the initial state, and what a reset gives."""
        return Timestamp(now, 0, ())

    @abstractmethod
    def age(self, mine: Timestamp, now: int) -> Timestamp:
        """A process's own timestamp when its clock shows `now`, reset if a fault has touched it."""

    @abstractmethod
    def event(self, mine: Timestamp, now: int, received: Sequence[Timestamp]) -> Timestamp:
        """A process's own timestamp after one more event at `now`, which may have received messages."""

    def holds(self, stamp: Timestamp) -> bool:
        """Whether a timestamp keeps the invariants."""
        return True

    def teaches(self, stamp: Timestamp, now: int) -> bool:
        """Whether an event at `now` or later can learn from this timestamp."""
        return True

    def known(self, stamp: Timestamp) -> int:
        """A clock value that no event before this one is beyond: r + c."""
        return stamp.r + stamp.c

    @abstractmethod
    def key(self, stamp: Timestamp, process: int, sequence: int) -> Any:
        """A value whose order is that of timestamps, then process, then sequence."""

    def load_key(self, saved: Any) -> Any:
        """The key of a plain value."""
        return saved


@dataclass(frozen=True)
class KnClock(Clock):
    """⟨r, c, kn⟩, with the bounds that a timestamp obeys."""

    recovers = True

    epsilon: int
    delta_min: int
    most: int
    """K·n + 1, the most events that can be known of one clock value."""
    as_printed: bool = False
    """K1 as printed: kn over -ε … ε-1, c < ε, ε elements compared."""
    turn: int = 0
    """K3 as printed: of its own old timestamp a process knows r modulo this; 0 if it knows r."""

    def __post_init__(self) -> None:
        if self.epsilon < 0 or self.delta_min < 0 or self.most < 1:
            raise BadInput("ε and δ_min cannot be negative, and at least one event must fit a tick")

    @property
    def low(self) -> int:
        """The smallest t of kn[t], without its sign."""
        return max(self.epsilon - self.delta_min, 0)

    @property
    def reach(self) -> int:
        """The largest t of kn[t], and the largest c."""
        return max(self.low - 1, 0) if self.as_printed else self.low

    @property
    def length(self) -> int:
        return self.low + self.reach + 1

    @property
    def compared(self) -> int:
        """How many elements of kn `less` looks at."""
        return self.low if self.as_printed else self.reach + 1

    @property
    def width(self) -> int:
        """Bytes that one element of kn needs in the key."""
        return (self.most.bit_length() + 7) // 8

    def first(self, now: int) -> Timestamp:
        return Timestamp(now, 0, tuple(int(t == self.low) for t in range(self.length)))

    def at(self, stamp: Timestamp, t: int) -> int:
        """kn[t], zero outside the array."""
        index = t + self.low
        return stamp.kn[index] if 0 <= index < self.length else 0

    def seen_at(self, now: int, stamp: Timestamp) -> Timestamp:
        """The same knowledge as seen when the clock shows `now`."""
        shift = now - stamp.r
        if not shift:
            return stamp
        kn = tuple(self.at(stamp, t + shift) for t in range(-self.low, self.reach + 1))
        return Timestamp(now, max(0, stamp.r + stamp.c - now), kn)

    def joined(self, mine: Timestamp, other: Timestamp) -> Timestamp:
        """What both know, seen at mine's r."""
        other = self.seen_at(mine.r, other)
        kn = tuple(max(a, b) for a, b in zip(mine.kn, other.kn, strict=True))
        return Timestamp(mine.r, max(mine.c, other.c), kn)

    def counted(self, stamp: Timestamp) -> Timestamp:
        """One more event now."""
        kn = list(stamp.kn)
        kn[self.low] += 1
        return stamp._replace(kn=tuple(kn))

    def age(self, mine: Timestamp, now: int) -> Timestamp:
        if self.turn:  # an idle process takes a whole turn for nothing
            mine = mine._replace(r=now - (now - mine.r) % self.turn)
        elif mine.r > now:
            mine = self.first(now)
        aged = self.seen_at(now, mine)
        if not any(aged.kn):  # silent for longer than kn looks back
            return Timestamp(now, 0, aged.kn)
        return aged if self.sound(aged) else self.first(now)

    def event(self, mine: Timestamp, now: int, received: Sequence[Timestamp]) -> Timestamp:
        """Figure 1."""
        stamp = self.age(mine, now)
        for each in received:
            stamp = self.joined(stamp, each)
        stamp = self.counted(stamp)
        return stamp if self.holds(stamp) else self.first(now)

    def sound(self, stamp: Timestamp) -> bool:
        """The invariants of an aged timestamp: those of `holds`, where kn[c] may have aged away."""
        if stamp.c == 0 and not any(stamp.kn[self.low + 1 :]):
            return all(0 <= known <= self.most for known in stamp.kn)
        return self.holds(stamp)

    def holds(self, stamp: Timestamp) -> bool:
        """Lemmas 3.1, 3.2 and 3.4: what is true of every timestamp that no fault has touched."""
        if not 0 <= stamp.c <= self.reach or len(stamp.kn) != self.length:
            return False
        if not self.at(stamp, stamp.c) > 0 or any(not 0 <= known <= self.most for known in stamp.kn):
            return False
        return not any(stamp.kn[stamp.c + self.low + 1 :])

    def teaches(self, stamp: Timestamp, now: int) -> bool:
        """kn looks back as far as `low`; what is older, or breaks an invariant, is not learnt from."""
        return stamp.r + stamp.c >= now - self.low and self.holds(stamp)

    def less(self, a: Timestamp, b: Timestamp) -> bool:
        """Section 3.2: by r + c, then kn from kn[c] downwards."""
        if a.r + a.c != b.r + b.c:
            return a.r + a.c < b.r + b.c
        for q in range(self.compared):
            left, right = self.at(a, a.c - q), self.at(b, b.c - q)
            if left != right:
                return left < right
        return False

    def key(self, stamp: Timestamp, process: int, sequence: int) -> bytes:
        """Bytes whose order is `less`, then process, then sequence."""
        known = b"".join(
            self.at(stamp, stamp.c - q).to_bytes(self.width, "big") for q in range(self.compared)
        )
        time = (stamp.r + stamp.c + 2**63).to_bytes(8, "big")
        return time + known + process.to_bytes(4, "big") + sequence.to_bytes(4, "big")


def largest_known(now: int, largest: int, received: Iterable[int]) -> int:
    """The largest clock value known after an event at `now`, which may have received messages of these r + c:
    it comes after every one of them."""
    return max(now, largest, *(rc + 1 for rc in received))


def key_rc(r: int, c: int, process: int, sequence: int) -> tuple[int, int, int, int]:
    """The repaired order of ⟨r, c⟩ timestamps."""
    return (r + c, r, process, sequence)


def less_rc_as_printed(a: tuple[int, int], b: tuple[int, int], epsilon: int) -> bool:
    """K5: figure 3's `less` on ⟨r, c⟩, which is not transitive."""
    (r_a, c_a), (r_b, c_b) = a, b
    if r_a + epsilon < r_b:
        return True
    if abs(r_a - r_b) > epsilon:
        return False
    return (r_a + c_a, r_a) < (r_b + c_b, r_b)


class RankAsPrinted(NamedTuple):
    """K5: a rank that compares by figure 3's `less`, then by process and sequence."""

    r: int
    c: int
    epsilon: int
    process: int
    sequence: int

    def __lt__(self, other: tuple[object, ...]) -> bool:
        assert isinstance(other, RankAsPrinted)
        if less_rc_as_printed(self[:2], other[:2], self.epsilon):
            return True
        if less_rc_as_printed(other[:2], self[:2], self.epsilon):
            return False
        return self[3:] < other[3:]


class RcClock(Clock):
    """The repaired ⟨r, c⟩: c is whatever is known beyond r."""

    def age(self, mine: Timestamp, now: int) -> Timestamp:
        return Timestamp(now, max(0, mine.r + mine.c - now), ())

    def event(self, mine: Timestamp, now: int, received: Sequence[Timestamp]) -> Timestamp:
        known = largest_known(now, mine.r + mine.c, [stamp.r + stamp.c for stamp in received])
        return Timestamp(now, known - now, ())

    def key(self, stamp: Timestamp, process: int, sequence: int) -> Any:
        return key_rc(stamp.r, stamp.c, process, sequence)


@dataclass(frozen=True)
class RcClockAsPrinted(RcClock):
    """K5 as printed: figure 3's ⟨r, c⟩."""

    epsilon: int

    def age(self, mine: Timestamp, now: int) -> Timestamp:
        """Figure 3 looks at how old r is, so r stays."""
        return mine

    def event(self, mine: Timestamp, now: int, received: Sequence[Timestamp]) -> Timestamp:
        """A timestamp of which nothing was heard for 2ε starts again at c = 0."""
        if all(stamp.r < now - 2 * self.epsilon for stamp in (mine, *received)):
            return Timestamp(now, 0, ())
        return super().event(mine, now, received)

    def key(self, stamp: Timestamp, process: int, sequence: int) -> Any:
        return RankAsPrinted(stamp.r, stamp.c, self.epsilon, process, sequence)

    def load_key(self, saved: Any) -> Any:
        return RankAsPrinted(*saved)


@dataclass(frozen=True)
class QuietClock(RcClock):
    """⟨r, c⟩ with quiet windows, repaired (K7): no process has an event while its clock is in [αx, αx + 2ε].

    So r // x numbers windows of events, no message goes back to an earlier one, and whatever is of an earlier
    window than another event comes before it, whatever its c is. Within a window c grows, at most in
    proportion to x.
    """

    epsilon: int
    period: int
    """x"""
    as_printed: bool = False
    """K7 as printed: c starts again only if all that an event knows of is older than 2ε."""

    def window(self, r: int) -> int:
        return r // self.period

    def quiet(self, now: int) -> bool:
        """Whether there may be no event at this clock value."""
        return now % self.period <= 2 * self.epsilon

    def age(self, mine: Timestamp, now: int) -> Timestamp:
        if self.as_printed:
            return mine  # figure 3 looks at how old r is
        return super().age(self._here(mine, now), now)

    def event(self, mine: Timestamp, now: int, received: Sequence[Timestamp]) -> Timestamp:
        if not self.as_printed:
            here = [stamp for stamp in received if self.window(stamp.r) >= self.window(now)]
            return super().event(self._here(mine, now), now, here)
        if all(stamp.r < now - 2 * self.epsilon for stamp in (mine, *received)):
            return Timestamp(now, 0, ())
        return super().event(mine, now, received)

    def _here(self, mine: Timestamp, now: int) -> Timestamp:
        return mine if self.window(mine.r) >= self.window(now) else Timestamp(now, 0, ())

    def known(self, stamp: Timestamp) -> int:
        """Beyond the end of its window there is no event before it."""
        if self.as_printed:
            return super().known(stamp)
        return min(stamp.r + stamp.c, (self.window(stamp.r) + 1) * self.period)

    def key(self, stamp: Timestamp, process: int, sequence: int) -> Any:
        return (self.window(stamp.r), *key_rc(stamp.r, stamp.c, process, sequence))

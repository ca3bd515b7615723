"""The ⟨r, c⟩ clock of the deterministic merge, for a producer: the clock on the wall, and what it has heard.

r is the wall clock in ticks of 1 ms, r + c the largest clock value that this process knows of (Kulkarni &
Ravikant, section 5, repaired: see K5 in `causet.protocols.merge_clock`). Messages are ordered by (r + c, r,
source, sequence), and whatever a process stamps comes after everything it has heard of.

    >>> clock = RcClock(epsilon=50, now=iter([1000, 1001]).__next__, steady=None)
    >>> clock.event()
    RcTime(rc=1000, r=1000)
    >>> clock.event(RcTime(rc=1020, r=1020))                # from a clock that is ahead
    RcTime(rc=1021, r=1001)
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

from causet.errors import BadInput, BadStamp, CausetError, quote

FAR = 2**53
_TIME = re.compile(r"(\d{1,16})[ ,](\d{1,16})")


class ClockJumped(CausetError):
    """The wall clock of this machine was set, or another one is further away than ε."""


class RcTime(NamedTuple):
    """The time of an event: r + c, and r."""

    rc: int
    r: int

    def __str__(self) -> str:
        return f"{self.rc} {self.r}"

    @classmethod
    def parse(cls, text: object) -> RcTime:
        found = _TIME.fullmatch(text) if isinstance(text, str) and text.isascii() else None
        if found is None:
            raise BadStamp(f"causaltime must be the numbers r + c and r, not {quote(text)}")
        time = cls(int(found[1]), int(found[2]))
        if time.rc < time.r or time.rc >= FAR:
            raise BadStamp(f"causaltime {quote(text)} is not a time of a clock")
        return time


def largest_c(epsilon: int) -> int:
    """The largest c that a time can have where clocks are at most ε apart."""
    return 2 * epsilon + 1


def largest_known(now: int, largest: int, received: Iterable[int]) -> int:
    """The largest clock value known after an event at `now`, which may have received messages of these r + c:
    it comes after every one of them."""
    return max(now, largest, *(rc + 1 for rc in received))


def wall_clock() -> int:
    """Ticks of 1 ms since 1970."""
    return time.time_ns() // 1_000_000


def steady_clock() -> int:
    """Ticks of 1 ms since some moment; this clock cannot be set."""
    return time.monotonic_ns() // 1_000_000


class RcClock:
    """The clock of one process. `epsilon` bounds, in ms, how far two clocks of the system are apart.

    The bound is checked: where the wall clock differs from the steady one by more than ε, and where a
    message comes from a clock that is ahead by more than ε, ClockJumped is raised and nothing changes. The
    largest clock value known is at most ε ahead, and one more for each hop of a chain of messages: `reach`
    leaves room for hops that take less than a tick, and no more than for ε of them.
    """

    def __init__(
        self,
        epsilon: int,
        now: Callable[[], int] = wall_clock,
        steady: Callable[[], int] | None = steady_clock,
    ) -> None:
        if epsilon < 0:
            raise BadInput(f"epsilon = {epsilon}: it cannot be negative")
        self.epsilon = epsilon
        self.largest = 0
        """the largest clock value known"""
        self._now = now
        self._steady = steady
        self._apart: int | None = None

    @property
    def reach(self) -> int:
        """The largest c that a time can have."""
        return largest_c(self.epsilon)

    def not_before(self, rc: int) -> None:
        """What was known before a restart."""
        self.largest = max(self.largest, rc)

    def event(self, *received: RcTime) -> RcTime:
        """The time of the next event, which may have received messages."""
        now = self._checked()
        for when in received:
            if when.r > now + self.epsilon:
                raise ClockJumped(
                    f"a message was stamped at {when.r}, {when.r - now} ms ahead of this clock, and ε is "
                    f"{self.epsilon} ms: set the clocks right, or raise epsilon at every source"
                )
            if when.rc > when.r + self.reach:
                raise BadStamp(f"causaltime {quote(str(when))}: c = {when.rc - when.r} exceeds {self.reach}")
            if when.rc + 1 > now + self.reach:
                raise ClockJumped(
                    f"causaltime {quote(str(when))} is {when.rc - now} ms ahead of this clock, more than ε = "
                    f"{self.epsilon} ms allows: set the clocks right, or raise epsilon at every source"
                )
        self.largest = largest_known(now, self.largest, (when.rc for when in received))
        return RcTime(self.largest, now)

    def _checked(self) -> int:
        now = self._now()
        if self.largest > now + self.reach:
            raise ClockJumped(
                f"the clock shows {now}, and {self.largest} was known before, {self.largest - now} ms later: "
                f"more than ε = {self.epsilon} ms allows. It was set back; set it right, or wait"
            )
        if self._steady is not None:
            apart = now - self._steady()
            if self._apart is None:
                self._apart = apart
            elif abs(apart - self._apart) > self.epsilon:
                jump, self._apart = apart - self._apart, apart
                raise ClockJumped(
                    f"the clock jumped by {jump} ms, more than ε = {self.epsilon} ms: whatever was stamped "
                    "while it was wrong may be out of order; stamp again if the clock is right now"
                )
        return now

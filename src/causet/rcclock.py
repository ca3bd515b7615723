"""The ⟨r, c⟩ clock of the deterministic merge, for a producer: the clock on the wall, and what it has heard.

r is the wall clock in ticks of 1 µs, r + c the largest clock value that this process knows of (Kulkarni &
Ravikant, section 5, repaired: see K5 in `causet.protocols.merge_clock`). A tick must not be longer than the
shortest step of a causal chain; with ticks of 1 ms, two processes that answer each other at once run ahead of
the clock on the wall. Messages are ordered by (r + c, r, process). Whatever a process sends comes after
everything it has heard of, and no two of its sends have the same r + c.

    >>> clock = RcClock(epsilon=50, now=iter([1000, 1001, 1001]).__next__, steady=None)
    >>> clock.event()
    RcTime(rc=1000, r=1000)
    >>> clock.event(RcTime(rc=1020, r=1020))                # from a clock that is ahead
    RcTime(rc=1021, r=1001)
    >>> clock.event()
    RcTime(rc=1022, r=1001)
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from threading import Lock
from typing import NamedTuple

from causet.errors import BadInput, BadStamp, CausetError, quote

TICKS_PER_MS = 1000
SLACK = TICKS_PER_MS
"""Ticks that a time may be ahead of the clocks: a chain of messages adds one for each hop that takes less
than a tick, as where a clock shows only every so many of them."""
FAR = 2**53
"""No time is as large as this, in the ticks of its clock; whatever reads JSON reads smaller ones exactly."""
_TIME = re.compile(r"(\d{1,16})[ ,](\d{1,16})")


class ClockJumped(CausetError):
    """The wall clock of this machine was set, or another one is further away than ε."""


class RcTime(NamedTuple):
    """The time of an event in ticks: r + c, and r."""

    rc: int
    r: int

    def __str__(self) -> str:
        return f"{self.rc} {self.r}"

    @classmethod
    def parse(cls, text: object, tick: int = 1) -> RcTime:
        """A time from its text, whose numbers count so many ticks of 1 µs each."""
        found = _TIME.fullmatch(text) if isinstance(text, str) and text.isascii() else None
        if found is None:
            raise BadStamp(f"causaltime must be the numbers r + c and r, not {quote(text)}")
        time = cls(tick * int(found[1]), tick * int(found[2]))
        if time.rc < time.r or time.rc >= FAR * tick:
            raise BadStamp(f"causaltime {quote(text)} is not a time of a clock")
        return time


def largest_c(epsilon: int, tick: int = 1) -> int:
    """The largest c that a time can have where clocks are at most ε apart, all in ticks of 1 µs. Clocks of
    version 1 count in ticks of 1 ms, which is a `tick` of 1000."""
    return 2 * epsilon + tick


def wall_clock() -> int:
    """Ticks of 1 µs since 1970."""
    return time.time_ns() // 1000


def steady_clock() -> int:
    """Ticks of 1 µs since some moment; this clock cannot be set."""
    return time.monotonic_ns() // 1000


def in_ms(ticks: int) -> str:
    """A number of ticks, for people.

    >>> in_ms(50_000), in_ms(1_500), in_ms(-1)
    ('50 ms', '1.5 ms', '-0.001 ms')
    """
    return f"{ticks / TICKS_PER_MS:.3f}".rstrip("0").rstrip(".") + " ms"


class RcClock:
    """The clock of one process. `epsilon` bounds, in ms, how far two clocks of the system are apart.

    The bound is checked: where the wall clock differs from the steady one by more than ε, and where a
    message comes from a clock that is ahead by more than ε, or knows of one that is, ClockJumped is raised
    and nothing changes. The largest clock value known is at most ε ahead, and a little more (`SLACK`).

    `now` and `steady` return ticks of 1 µs, and all times are in such ticks. Threads and stampers can share a
    clock.
    """

    def __init__(
        self,
        epsilon: float,
        now: Callable[[], int] = wall_clock,
        steady: Callable[[], int] | None = steady_clock,
    ) -> None:
        most = FAR // TICKS_PER_MS
        if isinstance(epsilon, bool) or not isinstance(epsilon, int | float) or not 0 <= epsilon < most:
            raise BadInput(f"epsilon = {quote(epsilon)}: it must be a number of ms from 0 to {most:,}")
        self.epsilon = round(epsilon * TICKS_PER_MS)
        """in ticks"""
        self.largest = 0
        """the largest clock value known"""
        self._now = now
        self._steady = steady
        self._apart: tuple[int, int] | None = None
        self._lock = Lock()

    @property
    def reach(self) -> int:
        """The largest c of a time that this clock gives."""
        return largest_c(self.epsilon)

    def not_before(self, rc: int) -> None:
        """What was known before a restart."""
        self.largest = max(self.largest, rc)

    def heard(self, *received: RcTime, tick: int = 1, source: str | None = None) -> None:
        """Messages with these times were received: the next event comes after them. `tick` is the length of a
        tick of the clocks that they are from, and `source` is named where their clock is wrong."""
        with self._lock:
            self._hear(self._checked(), received, tick, source)

    def event(self, *received: RcTime) -> RcTime:
        """The time of the next message that is sent, after those that were received."""
        with self._lock:
            now = self._checked()
            self._hear(now, received)
            self.largest = max(now, self.largest + 1)
            return RcTime(self.largest, now)

    def _hear(self, now: int, received: Iterable[RcTime], tick: int = 1, source: str | None = None) -> None:
        known = self.largest
        told = "a message" if source is None else f"a message of {quote(source)}"
        for when in received:
            if when.r > now + self.epsilon:
                raise ClockJumped(
                    f"{told} was stamped by a clock that is {in_ms(when.r - now)} ahead of this one, and "
                    f"ε is {in_ms(self.epsilon)}: set the clocks right, or raise epsilon at every source"
                )
            most = largest_c(self.epsilon, tick)
            if when.rc > when.r + most:
                raise BadStamp(
                    f"causaltime {quote(str(when))}: c is {in_ms(when.rc - when.r)}, and {in_ms(most)} is "
                    "the most that it can be"
                )
            if when.rc > now + self._ahead(tick):
                raise ClockJumped(
                    f"{told} knows of a clock that is {in_ms(when.rc - now)} ahead of this one, and ε is "
                    f"{in_ms(self.epsilon)}: set the clocks right, or raise epsilon at every source"
                )
            known = max(known, when.rc)
        self.largest = known

    def _ahead(self, tick: int) -> int:
        """How far a time may be ahead of this clock. Clocks with long ticks run ahead of each other."""
        most = self.reach - 1  # what is stamped next is one tick later
        return min(self.epsilon + SLACK, most) if tick == 1 else most

    def _checked(self) -> int:
        before = self._steady() if self._steady is not None else 0
        now = self._now()
        if self.largest + 1 > now + self.reach:
            raise ClockJumped(
                f"the clock is {in_ms(self.largest - now)} behind a time that was known before, more than "
                f"ε = {in_ms(self.epsilon)} allows: it was set back; set it right, or wait"
            )
        if self._steady is not None:
            self._compare(now - self._steady(), now - before)
        return now

    def _compare(self, least: int, most: int) -> None:
        """How far the wall clock is from the steady one, which was read before it and after it: a process
        that had to wait between the two has not seen a jump."""
        if self._apart is None:
            self._apart = least, most
            return
        low, high = self._apart
        jump = least - high if least > high else most - low if most < low else 0
        if abs(jump) > self.epsilon + 1:  # each clock rounds to a tick
            self._apart = least, most
            raise ClockJumped(
                f"the clock of this machine jumped {'ahead' if jump > 0 else 'back'} by {in_ms(abs(jump))}, "
                f"more than ε = {in_ms(self.epsilon)}: whatever was stamped while it was wrong may be out of "
                "order; stamp again if the clock is right now"
            )
        if not jump:
            self._apart = max(least, low), min(most, high)

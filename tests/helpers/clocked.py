"""Messages of sources with clocks, for the tests of `merge`. Times are in µs, ticks of a clock."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Any

from causet import RcClock
from causet.rcclock import RcTime
from causet.stamp import HEARTBEAT

MS = 1000
EPSILON, DELTA = 50 * MS, 400 * MS
PLAIN = "source string, sequence long, rc long, r long, subject string"
SCHEMA = f"{PLAIN}, type string"
Message = dict[str, Any]


class Network:
    """Sources whose clocks are up to ε apart, who hear each other's messages after up to δ."""

    def __init__(self, seed: int, messages: int = 400, sources: int = 6) -> None:
        draw = random.Random(seed)
        self.now = 1_000_000 * MS
        offsets = [draw.randrange(EPSILON + 1) for _ in range(sources)]
        clocks = [RcClock(EPSILON / MS, partial(self._show, offset), None) for offset in offsets]
        sent = [0] * sources
        self.arrivals: list[tuple[int, Message]] = []
        self.causes: list[tuple[str, str]] = []
        heard: list[list[tuple[int, str, RcTime]]] = [[] for _ in range(sources)]
        last: list[list[str]] = [[] for _ in range(sources)]
        for number in range(messages):
            self.now += draw.choice([0, 0, 1, MS, 5 * MS, 20 * MS])
            me = draw.randrange(sources)
            for entry in [each for each in heard[me] if each[0] <= self.now]:
                heard[me].remove(entry)
                clocks[me].heard(entry[2])
                last[me].append(entry[1])
            when = clocks[me].event()
            sent[me] += 1
            subject = f"m{number}"
            message = {
                "source": f"s{me}",
                "sequence": sent[me],
                "rc": when.rc,
                "r": when.r,
                "subject": subject,
            }
            self.causes += [(cause, subject) for cause in last[me]]
            last[me] = [subject]
            for other in range(sources):
                if other != me and draw.random() < 0.5:
                    heard[other].append((self.now + draw.randrange(1, 30 * MS), subject, when))
            self.arrivals.append((self.now + draw.randrange(DELTA), message))
        self.arrivals.sort(key=lambda each: each[0])
        self.messages = [message for _, message in self.arrivals]
        self.beats = [
            {
                "source": f"s{number}",
                "rc": self.now + 2000 * MS,
                "r": self.now + 2000 * MS,
                "type": HEARTBEAT,
            }
            for number in range(sources)
        ]

    def _show(self, offset: int) -> int:
        return self.now + offset

    def expected(self) -> list[str]:
        """The order, by its definition."""
        key: Callable[[Message], Any] = lambda each: (each["rc"], each["r"], each["source"], each["sequence"])  # noqa: E731
        return [each["subject"] for each in sorted(self.messages, key=key)]

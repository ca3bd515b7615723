"""The story of the demonstration: a shop whose services answer each other, each with a clock of its own.

A customer orders; the shop accepts; the bank is paid; the warehouse sends a parcel; the customer asks where
it is, is answered, and may want the money back. A service that acts has seen what it acts on, which
its stamp shows. The services are processes (`python -m causet.live.service`); their clocks differ by seconds.

What they send goes to groups, one or two, and groups have readers, who read one or more. So the past of a
message runs through groups that its readers do not read: between an order and its parcel stands a payment.
"""

from __future__ import annotations

import heapq
import json
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import IO, Any

Envelope = dict[str, Any]

SKEWS = {"customers": 0, "shop": 1400, "bank": -1700, "warehouse": 900, "support": -600}
"""The services, and how many ms their clocks are ahead."""
GROUPS = ("orders", "parcels", "payments", "support")
READERS = {
    "accounts": ("orders", "payments"),
    "archive": GROUPS,
    "depot": ("orders", "parcels"),
    "help desk": ("parcels", "support"),
}
"""Who reads which groups."""
DELAY = 2.5
"""The longest that a message is in transit, in seconds."""
PAUSES = {"customers": 0.31, "shop": 0.07, "bank": 0.2, "warehouse": 0.25, "support": 0.15}
"""Seconds until a service has seen what another one sent: always as many, so it sees everything in the order
in which it was sent."""
DUPLICATED = 0.03
"""The share of messages that the network duplicates."""


@dataclass(frozen=True)
class Step:
    """Something that a service does because of earlier steps."""

    service: str
    kind: str
    to: tuple[str, ...]
    text: str
    because: tuple[int, ...] = ()


STORY = (
    Step("customers", "order", ("orders",), "I order {what}"),
    Step("shop", "accepted", ("orders",), "order {number} is accepted", (0,)),
    Step("bank", "payment", ("payments",), "order {number} is paid", (1,)),
    Step("warehouse", "parcel", ("parcels",), "order {number} is on its way", (2,)),
    Step("customers", "question", ("support",), "where is order {number}?", (1,)),
    Step("support", "answer", ("support",), "order {number} is on its way, look", (4, 3)),
    Step("customers", "return", ("parcels", "support"), "I send order {number} back, refund it", (5,)),
    Step("bank", "refund", ("payments",), "order {number} is refunded", (6, 2)),
    Step("support", "answer", ("support",), "your money for order {number} is back", (7,)),
)
THINGS = ("a red bicycle", "a book on clocks", "green tea", "a bell", "a lamp", "a second teapot")


@dataclass
class Story:
    """What happened, as an observer of everything sees it."""

    sent: list[Envelope] = field(default_factory=list)
    """in the order in which they were sent"""
    arrived: list[Envelope] = field(default_factory=list)
    """in the order in which the network gave them, duplicates too"""
    steps: list[tuple[str, str, Envelope]] = field(default_factory=list)
    """what the services did: who, `deliver` or `send`, and the message"""


@dataclass(order=True)
class _Turn:
    due: float
    number: int
    act: Callable[[], None] = field(compare=False)


class Shop:
    """Plays the story on running services, through a network that reorders."""

    def __init__(self, orders: int, seed: int, publish: Callable[[Envelope], None]) -> None:
        self.story = Story()
        self._draw = random.Random(seed)
        self._orders = orders
        self._publish = publish
        self._turns: list[_Turn] = []
        self._count = 0
        self._now = 0.0

    def play(
        self, services: Services, stopped: Callable[[], bool], ready: Callable[[], bool] = lambda: True
    ) -> None:
        """Play it in real time, until the last message has arrived, or it is stopped.

        After the first message, time stands still until the reader is ready for more.
        """
        begin = time.monotonic()
        for number in range(1, self._orders + 1):
            self._later(number * 0.22, partial(self._open, services, number))
        while self._turns and not stopped():
            turn = heapq.heappop(self._turns)
            while (rest := begin + turn.due - time.monotonic()) > 0 and not stopped():
                time.sleep(min(rest, 0.1))
            self._now = turn.due
            turn.act()
            if len(self.story.arrived) == 1 and not ready():
                before = time.monotonic()
                while not ready() and not stopped():
                    time.sleep(0.1)
                begin += time.monotonic() - before

    def _later(self, delay: float, act: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._turns, _Turn(self._now + delay, self._count, act))

    def _open(self, services: Services, number: int) -> None:
        words = {"number": number, "what": self._draw.choice(THINGS)}
        length = self._draw.choice((4, 6, 6, len(STORY), len(STORY)))
        seen: dict[str, dict[int, str]] = {name: {} for name in SKEWS}

        def act(at: int) -> None:
            step = STORY[at]
            name = f"{number}.{at + 1} {step.kind}"
            text = step.text.format(**words)
            envelope = services.act(step.service, to=step.to, type=step.kind, subject=name, text=text)
            self.story.sent.append(envelope)
            self.story.steps.append((step.service, "send", envelope))
            seen[step.service][at] = name
            for _ in range(2 if self._draw.random() < DUPLICATED else 1):
                self._later(self._draw.uniform(0, DELAY), partial(self._arrive, envelope))
            for later in range(at + 1, length):
                if at in STORY[later].because:
                    self._later(PAUSES[STORY[later].service], partial(see, later, at, envelope))

        def see(later: int, at: int, envelope: Envelope) -> None:
            step = STORY[later]
            if at not in seen[step.service]:
                seen[step.service][at] = envelope["subject"]
                services.see(step.service, envelope)
                self.story.steps.append((step.service, "deliver", envelope))
            if all(cause in seen[step.service] for cause in step.because):
                act(later)

        act(0)

    def _arrive(self, envelope: Envelope) -> None:
        self.story.arrived.append(envelope)
        self._publish(envelope)


class Services:
    """The services, as processes that are asked to act, one after the other."""

    def __init__(self, processes: dict[str, subprocess.Popen[str]]) -> None:
        self._processes = processes

    def see(self, service: str, envelope: Envelope) -> None:
        """Let a service see what another one sent."""
        self._ask(service, {"seen": envelope})

    def act(self, service: str, **what: Any) -> Envelope:
        """Let a service act on what it has seen; the message that it sends."""
        answers = self._ask(service, what)
        found: Envelope = json.loads(answers.readline())
        return found

    def _ask(self, service: str, what: Envelope) -> IO[str]:
        process = self._processes[service]
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps(what) + "\n")
        process.stdin.flush()
        return process.stdout


@contextmanager
def running_services() -> Iterator[Services]:
    """The services, for as long as the block lasts."""
    started: dict[str, subprocess.Popen[str]] = {}
    try:
        for name, skew in SKEWS.items():
            command = [sys.executable, "-m", "causet.live.service", name, str(skew)]
            # In a session of its own: an interrupt is for the parent, which ends the services.
            started[name] = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                encoding="utf-8",
                start_new_session=True,
            )
        yield Services(started)
    finally:
        for process in started.values():
            process.terminate()
        for process in started.values():
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()

"""Arbitrary state: damage to every field of a process that a transient fault could touch.

Kulkarni & Ravikant, section 2: "The state of processes could be transiently (and arbitrarily) corrupted at
any time." Only for protocols that keep a clock and promise to recover. The physical clock and the messages
under way are not part of the state of a process. What is derived from them is (the engine's copy of the
clock, thresholds, ranks), and each field is damaged by itself, so that they contradict each other.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from causet.errors import BadInput
from causet.holdback import Fact, Key, Threshold
from causet.protocols.base import Packet
from causet.protocols.process import Process

FIELDS = (
    "timestamp",
    "clock",
    "clock of the engine",
    "count of events",
    "deferred receptions",
    "sends put off",
    "stamps of held messages",
    "senders of held messages",
    "numbers of held messages",
    "targets of held messages",
    "thresholds",
    "ranks",
    "times of deliveries",
    "passed messages",
    "number",
)


def damage(
    process: Process, random: Random, fields: Sequence[str] = (), *, reuse_numbers: bool = True
) -> tuple[str, ...]:
    """Damage these fields, by default some drawn at random; says which.

    Unless it may `reuse_numbers`, the number of the last message only jumps ahead, and a held message gets
    only a sender or number that no message has: else it has the name of another one in a trace.
    """
    protocol = process.protocol
    if protocol.clock_fact is None:
        raise BadInput(f"{protocol.name} does not claim to recover from damage to its state")
    chosen = tuple(fields) or tuple(random.sample(FIELDS, random.randint(1, len(FIELDS))))
    noise = _Noise(process, protocol.clock_fact, random)
    for field in chosen:
        noise.at(field, reuse_numbers)
    return chosen


class _Noise:
    def __init__(self, process: Process, clock: Fact, random: Random) -> None:
        self.process, self.clock, self.random = process, clock, random
        self.size, self.everyone = process.system.size, process.system.everyone
        self.protocol: Any = process.protocol

    def time(self) -> int:
        """A clock value, near and far, possible and not."""
        near: int = self.protocol.rt
        spread = self.random.choice([1, self.protocol.longest(), 10_000, 2**40])
        return max(0, near + self.random.randint(-spread, spread))

    def stamp(self) -> Any:
        return self.protocol.corrupt_stamp(self.protocol.stamp, self.random)

    def key(self) -> Key:
        """A message that may be on its way, or may come."""
        return (self.random.randrange(self.size), self.random.randint(1, 2 * self.process.sent + 20))

    def keys(self) -> list[Key]:
        return [self.key() for _ in range(self.random.randint(0, 20))]

    def sender(self, known: bool) -> int:
        found: int = self.random.choice([-1, self.size, 2**40, *(range(self.size) if known else ())])
        return found

    def number(self, known: bool) -> int:
        possible = [self.key()[1] for _ in range(4)] if known else []
        return self.random.choice([-1, 0, 2**32, 2**40, *possible])

    def set(self) -> int:
        """A set of processes, or none."""
        every = self.everyone
        return self.random.choice([every, every, self.random.randint(0, every), 0, -1, 2 * every, 2**70])

    def at(self, field: str, reuse_numbers: bool) -> None:
        process, protocol, random = self.process, self.protocol, self.random
        engine = process._engine
        if field == "timestamp":
            protocol.corrupt(random)
        elif field == "clock":
            protocol.rt = self.time()
        elif field == "clock of the engine":
            engine.facts[self.clock] = self.time()
        elif field == "count of events":
            most = protocol.options.events_per_tick
            protocol.events = random.choice([-most, 0, most, 10**6])
        elif field == "deferred receptions":
            protocol.deferred = [self.stamp() for _ in range(random.randint(0, 4))]
        elif field == "sends put off":
            some = range(random.randint(0, 3))
            process._put_off = deque((random.randrange(64), random.randint(-2, 2)) for _ in some)
        elif field == "stamps of held messages":
            engine.review(lambda p, needs, rank: (needs, rank, replace(p, stamp=self.stamp())))
        elif field == "senders of held messages":
            engine.review(lambda p, needs, rank: (needs, rank, replace(p, sender=self.sender(reuse_numbers))))
        elif field == "numbers of held messages":
            engine.review(lambda p, needs, rank: (needs, rank, replace(p, number=self.number(reuse_numbers))))
        elif field == "targets of held messages":
            engine.review(lambda p, needs, rank: (needs, rank, replace(p, targets=self.set(), to=self.set())))
        elif field == "thresholds":
            engine.review(lambda p, needs, rank: (((self.clock, self.time()),), rank, p))
        elif field == "ranks":
            engine.review(self._misranked)
        elif field == "times of deliveries":
            protocol.passed = deque((self.time(), key) for key in self.keys())
        elif field == "passed messages":
            engine.remember(self.keys())
        elif field == "number":
            jump = random.choice([1, 100, 10**6])
            process.sent = random.choice([0, -5, 2**33, jump]) if reuse_numbers else process.sent + jump
        else:
            raise BadInput(f"a process has no field {field}")

    def _misranked(
        self, packet: Packet, needs: Iterable[Threshold], rank: Any
    ) -> tuple[Iterable[Threshold], Any, Packet]:
        sender, number = self.sender(True) % self.size, self.random.randint(1, 1000)
        other = replace(packet, stamp=self.stamp(), sender=sender, number=number)
        return needs, self.protocol.rank(other), packet

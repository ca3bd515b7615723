"""Who sends what to whom, when, and how long each copy takes: the same for every protocol.

Everything is drawn from the seed before any protocol is asked, in streams of their own. So two protocols
that run the same workload see the same messages with the same delays, and their figures can be compared.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from causet.errors import BadInput, quote
from causet.model import Processes, System, members, only


@dataclass(frozen=True, slots=True)
class Delay:
    """How long a copy takes: a distribution, and its bounds."""

    draw: Callable[[Random], float]
    least: float = 0.0
    most: float = math.inf

    def __call__(self, random: Random) -> float:
        return self.draw(random)


DELAYS = "const:X, exp:MEAN, uniform:A:B, lognormal:MEDIAN:SIGMA"


class Sending(NamedTuple):
    """One message that is going to be sent."""

    time: float
    sender: int
    targets: Processes
    group: int
    delays: tuple[float, ...]
    """for each target but the sender, in the order of `members`"""


@dataclass(frozen=True, slots=True)
class Workload:
    """Messages at random times (a Poisson process), each to a random group of its sender.

    In a system without groups each message goes to one process that its sender is linked with.
    """

    system: System
    messages: int
    rate: float
    """messages per process and unit of time"""
    delay: Delay
    seed: int
    own_copies: bool = False
    """Whether every message is addressed to its sender, too."""
    opens: bool = False
    """Whether a process sends to all groups, not only to its own."""

    def __post_init__(self) -> None:
        if not 0 <= self.messages <= 10**9:
            raise BadInput(f"messages = {self.messages}: at least 0, and at most 1,000,000,000")
        if not 1e-9 <= self.rate <= 1e9:
            raise BadInput(
                f"rate = {self.rate}: messages per process and unit of time, at least 1e-9 and at most 1e9"
            )
        if self.system.size < 2:
            raise BadInput("a simulation needs at least 2 processes")

    def __iter__(self) -> Iterator[Sending]:
        system = self.system
        draw, delays = stream(self.seed, "sends"), stream(self.seed, "delays")
        choices: list[list[tuple[Processes, int]]] = [[] for _ in system.processes]
        for x, group in enumerate(system.groups):
            for p in range(system.size) if self.opens else members(group.members):
                choices[p].append((group.members & ~only(p), x))
        senders = [p for p in range(system.size) if choices[p]] if system.groups else list(range(system.size))
        time = 0.0
        for _ in range(self.messages):
            time += draw.expovariate(self.rate * len(senders))
            sender = senders[draw.randrange(len(senders))]
            if system.groups:
                targets, x = choices[sender][draw.randrange(len(choices[sender]))]
            else:
                targets, x = only(self._other(sender, draw)), -1
            taken = tuple(self.delay(delays) for _ in range(targets.bit_count()))
            inside = x < 0 or system.groups[x].members >> sender & 1
            own = only(sender) if self.own_copies and inside else 0
            yield Sending(time, sender, targets | own, x, taken)

    def _other(self, sender: int, draw: Random) -> int:
        links = self.system.links
        if links is not None:
            near = list(members(links[sender]))
            if not near:
                raise BadInput(f"{self.system.name(sender)} has no links, so it cannot send")
            return near[draw.randrange(len(near))]
        other = draw.randrange(self.system.size - 1)
        return other + (other >= sender)


def stream(seed: int, name: str) -> Random:
    """A source of randomness for one purpose."""
    return Random(f"{seed}/{name}")


def delay_of(text: str) -> Delay:
    """The distribution that a text such as `exp:1` names.

    >>> delay_of("const:2")(Random(0))
    2.0
    """
    name, *numbers = text.split(":")
    try:
        values = [float(number) for number in numbers]
    except ValueError:
        raise BadInput(f"delay {quote(text)}: not all are numbers; write {DELAYS}") from None
    wanted = {"const": 1, "exp": 1, "uniform": 2, "lognormal": 2}.get(name)
    if wanted is None or len(values) != wanted:
        raise BadInput(f"delay {quote(text)}: the delays are {DELAYS}")
    if name == "lognormal" and len(values) == 2 and values[1] > 20:
        raise BadInput(f"delay {quote(text)}: sigma is too large, at most 20")
    if any(not (math.isfinite(value) and 0 <= value < 1e9) for value in values):
        raise BadInput(f"delay {quote(text)}: a delay cannot be negative or endless")
    if name == "const":
        return Delay(lambda draw: values[0], values[0], values[0])
    if name == "exp":
        mean = values[0]
        return Delay(lambda draw: draw.expovariate(1 / mean) if mean else 0.0)
    if name == "uniform":
        low, high = values
        if low > high:
            raise BadInput(f"delay {quote(text)}: the first bound is above the second")
        return Delay(lambda draw: draw.uniform(low, high), low, high)
    median, sigma = values
    if not median:
        raise BadInput(f"delay {quote(text)}: the median must be above 0")
    return Delay(lambda draw: draw.lognormvariate(math.log(median), sigma))

"""What to explore, and what an exploration found: plain values."""

from __future__ import annotations

from dataclasses import dataclass, field

from causet.model import Processes, System, only
from causet.protocols import Options, Protocol
from causet.protocols.base import ClockOptions
from causet.simulate.schedule import Schedule


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that must not be: `unsafe`, `twice`, `late`, `broken`, `stuck` or `disagree`."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Scope:
    """What to explore."""

    kind: type[Protocol]
    system: System
    options: Options
    messages: int = 4
    nulls: int = 1
    """Null messages at any time (one process, all its groups), for protocols that have them."""
    horizon: int = 2
    """The last clock value before the closing ticks, for protocols that have a clock."""
    own_copies: bool = False
    """Whether a message may name its own sender as a target."""
    opens: bool = False
    """Whether a process may send to groups that it is not a member of."""
    one_order: bool = False
    """Whether all processes must deliver in one order, own copies included."""
    most_states: int = 5_000_000
    every: bool = True
    """Count every finding; else stop as soon as the shortest one is known for certain."""
    symmetric: bool | None = None
    """Whether processes are interchangeable; by default where nothing tells them apart."""

    @property
    def clocks(self) -> ClockOptions:
        """What is assumed of clocks, for protocols that have them."""
        assert isinstance(self.options, ClockOptions)
        return self.options

    @property
    def closing_ticks(self) -> int:
        """Ticks of every clock after all has arrived, before a held message counts as stuck: every message
        may have been put off, and each may add a tick to r + c."""
        return self.clocks.longest_wait + 4 + (self.messages + 1) * self.clocks.longest_put_off

    def choices(self, sender: int) -> list[tuple[Processes, int]]:
        """(targets, group) of every message that the sender could send."""
        system, me = self.system, only(sender)
        others = system.everyone if self.own_copies else ~me
        if self.kind.grouped:
            groups = enumerate(system.groups)
            return [(g.members & others, x) for x, g in groups if self.opens or g.members & me]
        if self.kind.broadcast or self.kind.promises(self.options).loss:
            return [(system.everyone & others, -1)]
        reach = self.kind.variant(self.options).reach(sender, system, self.options) & others
        return [(t, -1) for t in range(1, system.everyone + 1) if not t & ~reach and t != me]

    @property
    def interchangeable(self) -> bool:
        if self.symmetric is not None:
            return self.symmetric
        if self.system.links is not None or self.kind.ranks or self.kind.promises(self.options).total:
            return False  # a graph tells processes apart, and a total order ranks them
        if not self.kind.grouped:
            return True
        groups = [g for g in self.system.groups if not g.parts]
        sizes = {g.members.bit_count() for g in groups}
        n, count = self.system.size, len(groups)
        return sizes == {n} or (sizes == {2} and count == n * (n - 1) // 2)


@dataclass(slots=True)
class Report:
    """What an exploration found."""

    states: int = 0
    steps: int = 0
    complete: bool = True
    """Whether every interleaving within the scope was tried."""
    limited: bool = False
    """Whether the limit on states ended it."""
    findings: dict[str, int] = field(default_factory=dict)
    """How many of each kind."""
    shortest: Schedule | None = None
    finding: Finding | None = None
    """The finding that the shortest counter-example shows."""

    @property
    def violations(self) -> int:
        return sum(self.findings.values())

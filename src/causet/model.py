"""The words: processes, groups, separators and events, as frozen values.

Inside the protocols a process is a small integer, its position in `System.processes`, and a set of
processes is an integer used as a bit mask: hashable, compact, and quick to unite and compare even with a
thousand members. Names appear only at the edges: in files, in explanations and in traces.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import comb

from causet.errors import BadInput, listed, quote

MOST_GROUPS = 100_000
Processes = int
"""A set of processes as a bit mask: process p is a member when bit p is set."""


def only(process: int) -> Processes:
    """The set of one process."""
    return 1 << process


def mask(processes: Iterable[int]) -> Processes:
    """The set of these processes.

    >>> bin(mask([0, 2]))
    '0b101'
    """
    found = 0
    for process in processes:
        found |= 1 << process
    return found


def members(processes: Processes) -> Iterator[int]:
    """The members of a set, smallest first.

    >>> list(members(0b101))
    [0, 2]
    """
    while processes:
        lowest = processes & -processes
        yield lowest.bit_length() - 1
        processes ^= lowest


@dataclass(frozen=True, slots=True)
class Group:
    """A named set of processes; a multicast to a group goes to its members."""

    name: str
    members: Processes
    parts: tuple[int, ...] = ()
    """Of a name for several groups at once, these: a message to it is a message to each of them."""


def with_several(groups: Sequence[Group], at_once: int) -> tuple[Group, ...]:
    """The groups, and names for every 2 to `at_once` of them together, to which a message can go as well.

    >>> [group.name for group in with_several([Group("g1", 0b011), Group("g2", 0b110)], 2)]
    ['g1', 'g2', 'g1+g2']
    """
    if at_once < 1:
        raise BadInput(f"at-once = {at_once}: a message goes to at least one group")
    found = list(groups)
    for count in range(2, min(at_once, len(groups)) + 1):
        if len(found) + comb(len(groups), count) > MOST_GROUPS:
            raise BadInput(
                f"at-once = {at_once}: {len(groups)} groups have more than {MOST_GROUPS:,} sets of that size"
            )
        found += (together(groups, numbers) for numbers in combinations(range(len(groups)), count))
    return tuple(found)


def together(groups: Sequence[Group], numbers: Sequence[int]) -> Group:
    """A name for these groups together."""
    inside = 0
    for number in numbers:
        inside |= groups[number].members
    return Group("+".join(groups[number].name for number in numbers), inside, tuple(numbers))


@dataclass(frozen=True, slots=True)
class Separator:
    """A causal separator (Rodrigues & Verissimo, chapter 3): every path from `forward` to `backward`
    passes through `members`."""

    members: Processes
    forward: Processes
    backward: Processes


@dataclass(frozen=True, slots=True)
class System:
    """Who there is and who may talk to whom: known to every process and never changing.

    `links[p]` is the set of p's neighbours; None means that everyone is linked with everyone.
    """

    processes: tuple[str, ...]
    groups: tuple[Group, ...] = ()
    links: tuple[Processes, ...] | None = None
    separators: tuple[Separator, ...] = ()

    @property
    def size(self) -> int:
        return len(self.processes)

    @property
    def everyone(self) -> Processes:
        return (1 << len(self.processes)) - 1

    def name(self, process: int) -> str:
        return self.processes[process]

    def names(self, processes: Processes) -> list[str]:
        return [self.processes[p] for p in members(processes)]

    def index(self, name: str) -> int:
        """The process of this name; BadInput if there is none."""
        try:
            return self.processes.index(name)
        except ValueError:
            known = listed(self.processes)
            raise BadInput(f"unknown process {quote(name)}; the processes are {known}") from None

    def group_index(self, name: str) -> int:
        """The group of this name; BadInput if there is none."""
        for position, group in enumerate(self.groups):
            if group.name == name:
                return position
        known = listed(group.name for group in self.groups)
        raise BadInput(f"unknown group {quote(name)}; the groups are {known}")

    def parts(self, group: int) -> tuple[int, ...]:
        """The groups that a message to this one is addressed to."""
        return self.groups[group].parts or (group,)

    def is_addressed(self, sender: int, targets: Processes, group: int, opens: bool) -> bool:
        """Whether a message to these targets is one to this group: to its other members, where the sender is
        a member, and to all where it is not and need not be (`opens`)."""
        inside = self.groups[group].members
        if opens and not inside >> sender & 1:
            return targets == inside
        return targets | only(sender) == inside

    def group_of(self, sender: int, targets: Processes, opens: bool = False) -> int:
        """The group whose members are exactly the sender and the targets; BadInput if there is none."""
        wanted = targets | only(sender)
        for position in range(len(self.groups)):
            if self.is_addressed(sender, targets, position, opens):
                return position
        raise BadInput(
            f"{listed(self.names(wanted))} are not a group; a group protocol sends only to the other "
            "members of one of its groups"
        )


def is_text(value: object) -> bool:
    """Whether this is text that can be written: not empty, and no half of a surrogate pair."""
    return isinstance(value, str) and value != "" and not any("\ud800" <= c <= "\udfff" for c in value)


def named_processes(count: int) -> tuple[str, ...]:
    """The names that simulations and explorations use: p1, p2, …"""
    return tuple(f"p{number}" for number in range(1, count + 1))


KINDS = ("send", "receive", "deliver", "local")


@dataclass(frozen=True, slots=True)
class Event:
    """One event of a trace: the fields of the trace format, version 1, under their own names.

    Fields that the format does not know are kept in `extra`.
    """

    process: str
    seq: int
    kind: str = "local"
    id: str = ""
    message: str | None = None
    to: tuple[str, ...] | None = None
    group: str | None = None
    parents: tuple[str, ...] = ()
    time: int | float | None = None
    text: str | None = None
    control: bool = False
    stamp_entries: int | None = None
    stamp_bytes: int | None = None
    extra: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.id:
            object.__setattr__(self, "id", f"{self.process}#{self.seq}")

"""Frontiers: causal order where groups overlap. What a message says of its past, and what a reader waits for.

A message is addressed to one or more groups, and in each of them its process numbers it: 1, 2, 3, … A reader
reads one or more groups; a process need not read where it writes. It keeps

    K   for every group with messages in its past, the frontier: entries (process → number) that cover these
        messages. A message covers what its own frontier of the group covers, and the previous one of its
        process there
    S   for every group the largest number of each process that was ever stamped, seen, or read in a frontier
        or a cut: what K covers, or a cut

and a message carries K. So:

    stamp   The message carries all of K. Then, in each of its groups, K is this message alone.
    saw     What is at or below S adds nothing, for K covers it. In the groups of the message, K loses every
            entry that the message's own frontier covers, and gains the message; in all other groups K gains
            the message's entries.
    reader  It delivers a message when it has delivered the previous one of the process in each of the
            message's groups that it reads, and, of the groups that it reads, all that the frontier covers.
            What is in groups that it does not read is not waited for.

    cut     A cut is a set of messages: in every group, up to a number of each process. Cuts are numbered, and
            each contains those before it. A process that hears of one forgets what K has of it, and says with
            every message the largest number of a cut that it used, or read in a message that it saw. A reader
            of such a message waits for all of that cut, too, in the groups that it reads. A cut is made
            before its number is known to anybody, so no message is in the cut that it names.

A reader waits for exactly the messages in the past that are addressed to it, through whatever groups the past
ran: never early, and never later than necessary. Without S, what a process has covered before would come back
with every message of somebody who has not: entries would pile up, for every run of a producer that restarts.
Without cuts, K has every group that was ever in the past. A cut of what all known readers have delivered
delays none of them; a reader that was not known waits for it, and so is not too early.

Incomplete orders. A message can have a priority, 0 if it has none; a larger number is more urgent. Then what
is numbered is a *channel*, a group and a priority, and in all of the above a channel stands for a group. A
message carries what is known of all channels, and of these a reader looks at those of the groups that it
reads, and of the message's own priority or a higher one (`Channels`): it waits for nothing that is less
urgent. So a process may deliver a message before a less urgent one in its past. What it sends next comes
after both, and its own copy of that waits, like everybody's. Messages of different scopes are apart: each
scope has a `Frontier` of its own.

    >>> shop, bank = Frontier("shop"), Frontier("bank")
    >>> order = shop.stamp(["orders"])
    >>> bank.saw("shop", *order)
    >>> payment = bank.stamp(["payments"])
    >>> payment
    Stamped(numbers={'payments': 1}, past={'orders': {'shop': 1}})
    >>> list(needs("bank", *payment, reads={"orders", "payments"}))
    [(('shop', 'orders'), 1)]
    >>> list(needs("bank", *payment, reads={"payments"}))
    []

Groups and processes may be anything that can be a key. Standard library only.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

from causet.errors import BadInput, quote

PACKED_VERSION = 1
PACKED_FRONTIER = 2
PRIORITY_MARK = "\x1f"
"""Stands between the group and the priority in the name of a channel; no group has it."""
Group = TypeVar("Group")
Process = TypeVar("Process")


class Stamped(NamedTuple):
    """What a message says of itself and of its past."""

    numbers: dict[Any, int]
    """group → the number of the message there"""
    past: dict[Any, dict[Any, int]]
    """group → process → number: the frontier"""


class Frontier(Generic[Group, Process]):
    """What one process knows of the past of its next message."""

    __slots__ = ("covered", "frontier", "process")

    def __init__(self, process: Process) -> None:
        self.process = process
        self.frontier: dict[Group, dict[Process, int]] = {}
        """K. Its maps are never changed, but replaced: messages share them."""
        self.covered: dict[Group, dict[Process, int]] = {}
        """S"""

    def next_number(self, group: Group) -> int:
        """The number that the next message has in a group."""
        return self.covered.get(group, {}).get(self.process, 0) + 1

    def next(self, groups: Iterable[Group]) -> Stamped:
        """What the next message says, if it goes to these groups."""
        numbers = {group: self.next_number(group) for group in groups}
        return Stamped(numbers, dict(self.frontier))

    def stamp(self, groups: Iterable[Group]) -> Stamped:
        """The next message, to these groups."""
        stamped = self.next(groups)
        for group, number in stamped.numbers.items():
            self._alone(group, number)
        return stamped

    def _alone(self, group: Group, number: int) -> None:
        self.frontier[group] = {self.process: number}
        self._cover(group, self.process, number)

    def saw(
        self, process: Process, numbers: Mapping[Group, int], past: Mapping[Group, Mapping[Process, int]]
    ) -> None:
        """A message was delivered here: what is stamped from now on comes after it."""
        new, told = self.news(process, numbers, past)
        for group, number in new.items():
            known = told.get(group, {})
            kept = {p: n for p, n in self.frontier.get(group, {}).items() if n > known.get(p, 0)}
            self.frontier[group] = kept | {process: number}
        for group, entries in told.items():
            if group not in new:
                self.frontier[group] = self.frontier.get(group, {}) | entries
        for group, number in new.items():
            self._cover(group, process, number)
        self._cover_all(told)

    def news(
        self, process: Process, numbers: Mapping[Group, int], past: Mapping[Group, Mapping[Process, int]]
    ) -> Stamped:
        """The part of a message that changes something here: who saw that has seen the message."""
        new = {group: number for group, number in numbers.items() if not self.covers(group, process, number)}
        return Stamped(new, self._news(past, new))

    def _news(
        self, past: Mapping[Group, Mapping[Process, int]], covered: Container[Group]
    ) -> dict[Group, dict[Process, int]]:
        """Of these entries those that are not known; in groups where they are covered, also those that cover
        an entry of K."""
        found = {}
        for group, entries in past.items():
            mine = self.frontier.get(group, {}) if group in covered else {}
            told = {
                p: n for p, n in entries.items() if not self.covers(group, p, n) or 0 < mine.get(p, 0) <= n
            }
            if told:
                found[group] = told
        return found

    def news_of(self, cut: Mapping[Group, Mapping[Process, int]]) -> dict[Group, dict[Process, int]]:
        """The part of a cut that changes something here."""
        return self._news(cut, cut)

    def stable(self, cut: Mapping[Group, Mapping[Process, int]]) -> None:
        """Readers of what is stamped from now on wait for this cut: K need not have it."""
        told = self.news_of(cut)
        for group, entries in told.items():
            kept = {p: n for p, n in self.frontier.get(group, {}).items() if n > entries.get(p, 0)}
            self.frontier.pop(group, None)
            if kept:
                self.frontier[group] = kept
        self._cover_all(told)

    def covers(self, group: Group, process: Process, number: int) -> bool:
        """Whether a message is known to be in the past, by K or a cut. Of its own messages a process knows
        all: it does not believe others that name more of them."""
        return process == self.process or number <= self.covered.get(group, {}).get(process, 0)

    def _cover_all(self, told: Mapping[Group, Mapping[Process, int]]) -> None:
        for group, entries in told.items():
            for p, n in entries.items():
                if p != self.process:
                    self._cover(group, p, n)

    def _cover(self, group: Group, process: Process, number: int) -> None:
        known = self.covered.setdefault(group, {})
        known[process] = max(number, known.get(process, 0))


def needs(
    process: Process,
    numbers: Mapping[Group, int],
    past: Mapping[Group, Mapping[Process, int]],
    reads: Container[Group],
) -> Iterator[tuple[tuple[Process, Group], int]]:
    """What a reader of these groups waits for: of each (process, group), that this number is delivered."""
    yield from needs_of(past, reads)
    for group, number in numbers.items():
        if group in reads and number > 1:
            yield (process, group), number - 1


def needs_of(
    cut: Mapping[Group, Mapping[Process, int]], reads: Container[Group]
) -> Iterator[tuple[tuple[Process, Group], int]]:
    """What a reader of these groups waits for, besides `needs`, before a message that names this cut. It must
    be the very cut that the message names: a later one may have the message itself.

    >>> list(needs_of({"orders": {"shop": 7}, "payments": {"bank": 3}}, reads={"orders"}))
    [(('shop', 'orders'), 7)]
    """
    for group, entries in cut.items():
        if group in reads:
            for p, n in entries.items():
                yield (p, group), n


# Channels.


def channel(group: str, priority: int = 0) -> str:
    """The name of a channel: without a priority, that of its group.

    >>> channel("orders"), channel("orders", 2)
    ('orders', 'orders\\x1f2')
    """
    return f"{group}{PRIORITY_MARK}{priority}" if priority else group


def parts_of(channel: str) -> tuple[str, int]:
    """The group and the priority of a channel.

    >>> parts_of("orders"), parts_of(channel("orders", -2))
    (('orders', 0), ('orders', -2))
    """
    group, mark, priority = channel.partition(PRIORITY_MARK)
    return group, int(priority) if mark else 0


class Channels:
    """What a reader of these groups looks at, for a message of this priority: with `needs` and `needs_of`.

    >>> bank = Stamped({"payments": 1}, {"orders": {"shop": 4}, channel("orders", 2): {"shop": 1}})
    >>> list(needs("bank", *bank, reads=Channels({"orders"}, priority=1))) == [(("shop", "orders\\x1f2"), 1)]
    True
    """

    __slots__ = ("groups", "priority")

    def __init__(self, groups: Container[str], priority: int = 0) -> None:
        self.groups = groups
        self.priority = priority

    def __contains__(self, channel: object) -> bool:
        group, priority = parts_of(str(channel))
        return priority >= self.priority and group in self.groups


# Packed.


def pack_deps(deps: Mapping[str, int]) -> bytes:
    """A map process → number as the bytes of the column `deps`: a version, then for each cause its number (8
    bytes), the length of its name (2) and the name in UTF-8, little-endian, by name.

    >>> pack_deps({"p2": 3}).hex(" ")
    '01 03 00 00 00 00 00 00 00 02 00 70 32'
    """
    return bytes([PACKED_VERSION]) + _packed(deps)


def pack_frontier(past: Mapping[str, Mapping[str, int]]) -> bytes:
    """A map group → process → number as the bytes of the column `deps`: a version, then for each group the
    length of its name (2 bytes), the name in UTF-8, the count of its entries (4), and the entries as
    `pack_deps` writes them; little-endian, by name. Equal pasts have equal bytes.

    >>> pack_frontier({"g": {"p2": 3}}).hex(" ")
    '02 01 00 67 01 00 00 00 03 00 00 00 00 00 00 00 02 00 70 32'
    """
    packed = bytearray([PACKED_FRONTIER])
    for group, entries in sorted(past.items()):
        if entries:
            packed += _packed_name(group, "group") + len(entries).to_bytes(4, "little") + _packed(entries)
    return bytes(packed)


def _packed(entries: Mapping[str, int]) -> bytes:
    names = sorted(entries)
    return b"".join(entries[name].to_bytes(8, "little") + _packed_name(name, "process") for name in names)


def _packed_name(name: str, what: str) -> bytes:
    raw = name.encode()
    if len(raw) >= 2**16:
        raise BadInput(f"the name of a {what} is too long: {quote(name)}")
    return len(raw).to_bytes(2, "little") + raw

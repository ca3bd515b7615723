"""What a protocol is.

A protocol is a small object without input, output, clock or randomness of its own. It answers:

    send      what does a message carry?
    receive   what does receiving teach?
    needs     what does a message wait for?
    deliver   what does delivering teach?
    null      what does a null message carry?     (protocols that need them)
    tick      what does time teach?               (protocols that have a clock)

To teach is to raise facts, and sometimes to send packets. `process.Process` puts a protocol on the hold-back
engine.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

from causet.errors import BadInput
from causet.holdback import Fact, Key, Threshold
from causet.model import Processes, System, only
from causet.protocols.wire import LARGEST

MOST_CONTROL = 100_000
"""More control messages than this from one step mean a protocol that does not come to rest."""


@dataclass(frozen=True, slots=True)
class Packet:
    """What travels: a message, or a control message, with its stamp.

    `targets` are all it is addressed to; `to` is where this copy goes (protocols that stamp each target
    differently send one packet per target). `order` numbers the packets of a sender within a stream of
    FIFO packets (`stream`), for protocols that assume such links; 0 where they do not.
    """

    sender: int
    number: int
    targets: Processes
    to: Processes
    stamp: Any
    group: int = -1
    control: bool = False
    order: int = 0
    stream: int = 0

    @property
    def key(self) -> Key:
        """Messages and control messages are numbered apart."""
        return (~self.sender if self.control else self.sender, self.number)

    def id(self, system: System) -> str:
        """`p1:3` for a message, `p1!3` for a control message."""
        return f"{system.name(self.sender)}{'!' if self.control else ':'}{self.number}"


class Learned(NamedTuple):
    """Facts that rose and packets to send."""

    facts: Sequence[Threshold] = ()
    packets: Sequence[Packet] = ()


NOTHING = Learned()


class Promises(NamedTuple):
    """What a protocol claims, and so what the explorer and the oracle hold it to."""

    causal: bool = True
    """never before a cause"""
    early: bool = False
    """never later than the causes of a message make necessary"""
    live: bool = True
    """everything is delivered in the end"""
    total: bool = False
    """all processes that deliver two messages deliver them in the same order"""
    loss: bool = False
    """bears messages that are lost or come too late"""
    damage: bool = False
    """recovers from damaged messages and damaged state"""


def setting(default: Any, text: str, *, flag: bool = False) -> Any:
    """A field of `Options` with its description; with `flag` it is an option of commands by its own name."""
    return field(default=default, metadata={"text": text, "flag": flag})


@dataclass(frozen=True, slots=True)
class Options:
    """A protocol's own settings; each protocol extends this with its own."""

    as_printed: frozenset[str] = frozenset()
    """Rows of the errata whose printed rule is applied in place of the corrected one."""
    capacity: int | None = setting(None, "the most messages a process may hold back; one more is an error")

    def check(self, system: System) -> list[str]:
        """BadInput if the settings cannot work in this system; else warnings."""
        return []

    def check_delays(self, least: float, most: float) -> list[str]:
        """Warnings if the network's delays, with these bounds, are not what the settings assume."""
        return []

    @property
    def interval(self) -> float:
        """Time between two timers of a process: ticks of its clock, or time-silence; infinite without any."""
        return math.inf

    def in_words(self) -> str:
        """What an exploration with these settings is bounded to."""
        return ""


@dataclass(frozen=True, slots=True)
class ClockOptions(Options):
    """What every protocol with a clock assumes of clocks and messages."""

    epsilon: int = setting(2, "ε: the most by which two clocks differ, in ticks", flag=True)
    delta: int = setting(
        10,
        "δ: the most that a message takes, in ticks of its receiver's clock; a later one counts as lost",
        flag=True,
    )

    @property
    def interval(self) -> float:
        return 1.0

    @property
    def longest_wait(self) -> int:
        """Ticks after which nothing that was sent can still be waiting."""
        return self.delta + 4 * self.epsilon

    @property
    def longest_put_off(self) -> int:
        """Ticks after which a send that was put off can leave, once those before it have."""
        return 1


@dataclass(frozen=True, slots=True)
class NullOptions(Options):
    """When protocols that need null messages send them."""

    silence: float = setting(
        5.0,
        "time-silence: a process that was silent in a group for this long sends a null message there",
        flag=True,
    )

    def check(self, system: System) -> list[str]:
        if not 1e-3 <= self.silence <= 1e9:
            raise BadInput(
                f"silence = {self.silence}: the interval of time-silence must be above 0: at least 0.001 and "
                "at most 1e9"
            )
        return []

    @property
    def interval(self) -> float:
        return self.silence


class Protocol(ABC):
    """One process's side of a protocol."""

    # What it is.

    name: ClassVar[str]
    title: ClassVar[str]
    """What it is, in a few words, with its source."""
    PROMISES: ClassVar[Promises] = Promises()
    Options: ClassVar[type[Options]] = Options
    errata: ClassVar[tuple[str, ...]] = ()
    """The rows of the errata that concern it."""
    counts: ClassVar[str] = "counters"
    clock_fact: ClassVar[Fact | None] = None
    """the fact that is its clock, if it has one and recovers from damage to its state"""
    """What `entries` counts."""
    sensible: ClassVar[int | None] = None
    """The largest number of processes at which it is still sensible; None if it has no such limit."""

    # What it assumes and does.

    grouped: ClassVar[bool] = False
    """Sends only to groups."""
    opens: ClassVar[bool] = False
    """Of one that sends to groups: a sender need not be a member, and a message can go to several at once."""
    broadcast: ClassVar[bool] = False
    """Sends only to everybody."""
    beyond_groups: bool = False
    """Sends control messages to processes outside the group that they name."""
    numbers: ClassVar[int] = LARGEST
    """The numbers of messages are below this; a counter that is damaged begins again at 1."""
    in_order: ClassVar[bool] = True
    """Delivers each sender's messages in the order they were sent."""
    keeps_own: ClassVar[bool] = False
    """Holds the own copy of a sender that addresses itself until its turn; else the send delivers it."""
    hears: ClassVar[bool] = False
    """Keeps the order even of what its sender had only received, not delivered."""
    ranks: ClassVar[bool] = False
    """Chooses among processes by their position, so that they are not interchangeable."""
    fifo_links: ClassVar[bool] = False
    """Assumes FIFO links; its packets carry an `order` from which the receiver restores them."""
    clocked: ClassVar[bool] = False
    """Needs a clock; its settings are `ClockOptions`."""
    nulls: ClassVar[bool] = False
    """Needs null messages to come to an end; its settings are `NullOptions`."""
    extras: ClassVar[bool] = False
    """Sends extra messages, which keep its stamps small."""

    def __init__(self, me: int, system: System, options: Any, facts: Mapping[Fact, int]) -> None:
        self.me = me
        self.system = system
        self.options = options
        self.facts = facts
        self.controls = 0  # control messages sent so far

    def printed(self, row: str) -> bool:
        """Whether this row of the errata is to be followed as printed."""
        return row in self.options.as_printed

    def next_control(self) -> int:
        """The number of the next control message."""
        self.controls += 1
        return self.controls

    # What depends on settings and system, before there is a process.

    @classmethod
    def promises(cls, options: Any) -> Promises:
        """What the protocol claims with these settings."""
        return cls.PROMISES

    @classmethod
    def variant(cls, options: Any) -> type[Protocol]:
        """The class that runs with these settings: a protocol may keep its printed rules in a subclass."""
        return cls

    @classmethod
    def small(cls, size: int, settings: Mapping[str, Any], rows: Set[str]) -> dict[str, Any]:
        """Settings for a system small enough to be explored, where `settings` do not give them; `rows` are
        followed as printed."""
        return {}

    @classmethod
    def agreeing(cls) -> dict[str, Any]:
        """Settings, beside those of `small`, with which it promises one order for all, if it ever does."""
        return {}

    @classmethod
    def reach(cls, sender: int, system: System, options: Any) -> Processes:
        """Who can be addressed, the sender included: its neighbours, where the system has links."""
        return system.everyone if system.links is None else system.links[sender] | only(sender)

    @classmethod
    def check(cls, sender: int, targets: Processes, group: int, system: System, options: Any) -> None:
        """BadInput if this protocol cannot send there; nothing has changed then."""
        if cls.grouped and group < 0:
            system.group_of(sender, targets, cls.opens)
        if cls.broadcast and targets | only(sender) != system.everyone:
            raise BadInput(f"{cls.name} is for broadcast: a message goes to everybody, not to some")

    # The way of a message: what every protocol answers.

    @abstractmethod
    def send(self, number: int, targets: Processes, group: int) -> Learned:
        """Stamp message `number`; the packets of the message come first, control packets after."""

    def unpack(self, packet: Packet) -> Iterable[Packet]:
        """The messages that a packet brings."""
        return (packet,)

    def receive(self, packet: Packet) -> Learned | None:
        """What receiving teaches; None if the packet must be refused."""
        return NOTHING

    def holds(self, packet: Packet) -> bool:
        """Whether the packet waits for its turn (a null message does not: receiving it is all)."""
        return True

    @abstractmethod
    def needs(self, packet: Packet) -> Iterable[Threshold]:
        """What the packet waits for."""

    def rank(self, packet: Packet) -> Any:
        """Lower ranks leave first among packets that are free together."""
        return 0

    @abstractmethod
    def deliver(self, packet: Packet) -> Learned:
        """What delivering teaches."""

    def leave_out(self, key: Key) -> None:
        """The message of this key, which is sent or received here next, is not merged: what is sent later
        does not come after it. BadInput if this protocol merges by itself."""
        raise BadInput(
            f"{self.name} merges every message; `merge: false` is for histories with `by_hand: true`"
        )

    def explain(self, fact: Fact, least: int, now: int) -> str:
        """In words: what a held message needs when it waits for this threshold."""
        return f"{fact} ≥ {least} (now {now})"

    # Stamps on the wire, and the state in a snapshot.

    @abstractmethod
    def entries(self, packet: Packet) -> int:
        """The size of the stamp, in what the protocol counts."""

    @abstractmethod
    def encode(self, stamp: Any) -> bytes:
        """The stamp's wire form."""

    @abstractmethod
    def decode(self, data: bytes) -> Any:
        """The stamp of a wire form; BadStamp if it is invalid. Reads nothing of the process's state."""

    def fits(self, packet: Packet) -> bool:
        """Whether a decoded stamp goes with the rest of its packet."""
        return True

    @abstractmethod
    def state(self) -> Any:
        """The state as a canonical plain value (without the facts, which the engine keeps)."""

    @abstractmethod
    def load(self, state: Any) -> None:
        """Become the process that gave this state; every mutable part of the state is replaced."""

    def load_rank(self, saved: Any) -> Any:
        """The rank of a plain value."""
        return saved

    def spent(self) -> bool:
        """Whether a counter has reached its end, so that nothing can be sent any more.

        Only a hostile stamp can bring that about.
        """
        return False

    def broken(self) -> str | None:
        """What the protocol promises of its own state and does not keep now; None if all is well."""
        return None

    # Protocols that need null messages (`nulls`).

    def null(self, group: int | None = None) -> Learned:
        """A null message in one group, or in all groups of this process."""
        raise BadInput(f"{self.name} has no null messages")

    def null_groups(self) -> Sequence[int]:
        """The groups in which this process sends null messages."""
        return ()

    def owes_null(self, group: int) -> bool:
        """Whether another process may be waiting for a null message of this one in this group."""
        return False

    # Protocols that have a clock (`clocked`).

    def tick(self, now: int) -> Learned:
        """The clock of this process shows `now`."""
        return NOTHING

    def full(self) -> bool:
        """Whether no further event fits into this tick, so that a send waits for the next one."""
        return False

    def mended(
        self, packet: Packet, thresholds: tuple[Threshold, ...], rank: Any
    ) -> tuple[Iterable[Threshold], Any] | None:
        """What a held packet waits for, and its rank, if a fault has changed them; None if they are right."""
        return None

    def remembered(self) -> Iterable[Key] | None:
        """The delivered packets whose duplicates are known by their keys, if that is not all of them: those
        of others are refused for another reason."""
        return None

    # Protocols that recover from damage (`Promises.damage`).

    @classmethod
    def recovery(cls, options: Any) -> float:
        """For how long after a fault its effects may still be delivered, in units of the clock."""
        return 0.0

    def corrupt(self, random: Any) -> None:
        """Damage the state."""
        raise BadInput(f"{self.name} does not claim to recover from damage to its state")

    def corrupt_stamp(self, stamp: Any, random: Any) -> Any:
        """A damaged stamp."""
        raise BadInput(f"{self.name} does not claim to bear damaged messages")


def stamp_bytes(protocol: Protocol, packet: Packet) -> int:
    """Bytes that the protocol adds to a message: its stamp, and the link number where it needs one."""
    size = len(protocol.encode(packet.stamp))
    if packet.order:
        size += (packet.order.bit_length() + 6) // 7
    return size

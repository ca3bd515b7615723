"""What a protocol is, and the process that runs it.

A protocol is a small object without input, output, clock or randomness of its own. It answers:

    send      what does a message carry?
    receive   what does receiving teach?
    needs     what does a message wait for?
    deliver   what does delivering teach?
    null      what does a null message carry?     (protocols that need them)
    tick      what does time teach?               (protocols that have a clock)

To teach is to raise facts, and sometimes to send packets. `Process` puts a protocol on the hold-back
engine, and beside it, for protocols that assume FIFO links, on a second engine that restores them; the
caller moves the packets. Inputs go in, an `Outcome` comes out.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

from causet.holdback import Fact, HoldBack, HoldBackFull, Key, Threshold
from causet.model import BadInput, BadStamp, Processes, System, only
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


class Outcome(NamedTuple):
    """What one input to a process led to: packets to send and messages delivered, each in order."""

    packets: tuple[Packet, ...]
    delivered: tuple[Packet, ...]
    refused: int = 0
    """packets that were impossible, and count as lost"""


class Promises(NamedTuple):
    """What a protocol claims, and so what the explorer and the oracle hold it to."""

    causal: bool = True
    """never before a cause"""
    early: bool = False
    """never later than the causes of a message make necessary"""
    live: bool = True
    """everything is delivered in the end"""
    total: bool = False
    """all who deliver two messages deliver them in the same order"""
    loss: bool = False
    """bears lost, duplicated and corrupted messages"""


def setting(default: Any, text: str) -> Any:
    """A field of `Options`, with what `causet protocols` says of it."""
    return field(default=default, metadata={"text": text})


@dataclass(frozen=True, slots=True)
class Options:
    """A protocol's own settings; each protocol extends this with its own."""

    as_printed: frozenset[str] = frozenset()
    """Rows of the errata whose printed rule is applied in place of the corrected one."""
    capacity: int | None = setting(None, "the most messages a process may hold back; one more is an error")

    def check(self, system: System) -> list[str]:
        """BadInput if the settings cannot work in this system; else warnings."""
        return []


class Protocol(ABC):
    """One process's side of a protocol."""

    name: ClassVar[str]
    title: ClassVar[str]
    """What it is, in a few words, with its source."""
    PROMISES: ClassVar[Promises] = Promises()
    counts: ClassVar[str] = "counters"
    """What `stamp_entries` counts."""
    grouped: ClassVar[bool] = False
    """Sends only to groups."""
    broadcast: ClassVar[bool] = False
    """Sends only to everybody."""
    nulls: ClassVar[bool] = False
    """Needs null messages to come to an end."""
    clocked: ClassVar[bool] = False
    """Needs a clock."""
    hears: ClassVar[bool] = False
    """Keeps the order even of what its sender had only received, not delivered."""
    fifo_links: ClassVar[bool] = False
    """Assumes FIFO links; its packets carry an `order` from which the receiver restores them."""
    beyond_groups = False
    """Whether its control messages go to processes outside the group they name."""
    in_order: ClassVar[bool] = True
    """Delivers each sender's messages in the order they were sent."""
    errata: ClassVar[tuple[str, ...]] = ()
    """The rows of the errata that concern it."""
    sensible: ClassVar[int | None] = None
    """The largest number of processes at which it is still sensible; None if it has no such limit."""
    Options: ClassVar[type[Options]] = Options

    def __init__(self, me: int, system: System, options: Any, facts: Mapping[Fact, int]) -> None:
        self.me = me
        self.system = system
        self.options = options
        self.facts = facts
        self.controls = 0  # control messages sent so far

    @classmethod
    def promises(cls, options: Any) -> Promises:
        """What the protocol claims with these settings."""
        return cls.PROMISES

    @classmethod
    def recovery(cls, options: Any) -> float:
        """For how long after a fault its effects may still be delivered, in units of the clock."""
        return 0.0

    def printed(self, row: str) -> bool:
        """Whether this row of the errata is to be followed as printed."""
        return row in self.options.as_printed

    def next_control(self) -> int:
        self.controls += 1
        return self.controls

    @classmethod
    def check(cls, sender: int, targets: Processes, group: int, system: System, options: Any) -> None:
        """BadInput if this protocol cannot send there; nothing has changed then."""
        if cls.grouped and group < 0:
            system.group_of(sender, targets)
        if cls.broadcast and targets | only(sender) != system.everyone:
            raise BadInput(f"{cls.name} is for broadcast: a message goes to everybody, not to some")

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

    def null(self, group: int | None = None) -> Learned:
        """A null message in one group, or in all groups of this process."""
        raise BadInput(f"{self.name} has no null messages")

    def owes_null(self, group: int) -> bool:
        """Whether somebody may be waiting for a null message of this process in this group."""
        return False

    def tick(self, now: int) -> Learned:
        """The clock of this process shows `now`."""
        return NOTHING

    def overdue(self, packet: Packet) -> bool:
        """Whether a held packet waits longer than any can, so that a fault must have touched it."""
        return False

    def forgotten(self) -> Iterable[Key]:
        """Delivered packets whose duplicates will be refused for another reason, and need no memory."""
        return ()

    def spent(self) -> bool:
        """Whether a counter has reached its end, so that nothing can be sent any more.

        Only a hostile stamp can bring that about.
        """
        return False

    def load_rank(self, saved: Any) -> Any:
        """The rank of a plain value."""
        return saved

    def fits(self, packet: Packet) -> bool:
        """Whether a decoded stamp goes with the rest of its packet."""
        return True

    def broken(self) -> str | None:
        """What the protocol promises of its own state and does not keep now; None if all is well."""
        return None

    def corrupt(self, random: Any) -> None:
        """Damage the state, for protocols that promise to recover."""
        raise BadInput(f"{self.name} does not claim to recover from damage to its state")

    def corrupt_stamp(self, stamp: Any, random: Any) -> Any:
        """A damaged stamp, for protocols that promise to recover."""
        raise BadInput(f"{self.name} does not claim to bear damaged messages")

    @abstractmethod
    def entries(self, packet: Packet) -> int:
        """The size of the stamp, in what the protocol counts."""

    @abstractmethod
    def encode(self, stamp: Any) -> bytes:
        """The stamp's wire form."""

    @abstractmethod
    def decode(self, data: bytes) -> Any:
        """The stamp of a wire form; BadStamp if it is none. Reads nothing of the process's state."""

    @abstractmethod
    def state(self) -> Any:
        """The state as a canonical plain value (without the facts, which the engine keeps)."""

    @abstractmethod
    def load(self, state: Any) -> None:
        """Become the process that gave this state; every mutable part of the state is replaced."""

    def explain(self, fact: Fact, least: int, now: int) -> str:
        """In words: what a held message needs when it waits for this threshold."""
        return f"{fact} ≥ {least} (now {now})"


def stamp_bytes(protocol: Protocol, packet: Packet) -> int:
    """Bytes that the protocol adds to a message: its stamp, and the link number where it needs one."""
    size = len(protocol.encode(packet.stamp))
    if packet.order:
        size += (packet.order.bit_length() + 6) // 7
    return size


class Process:
    """A protocol on its hold-back engine."""

    __slots__ = ("_engine", "_links", "me", "protocol", "sent", "system")

    def __init__(self, kind: type[Protocol], me: int, system: System, options: Options) -> None:
        self.me = me
        self.system = system
        self._engine: HoldBack[Packet] = HoldBack(in_order=kind.in_order, capacity=options.capacity)
        self._links: HoldBack[Packet] | None = None
        if kind.fifo_links:
            self._links = HoldBack(in_order=True, capacity=options.capacity)
        self.protocol = kind(me, system, options, self._engine.facts)
        self.sent = 0

    def send(self, targets: Processes, group: int = -1) -> Outcome:
        """Send a message to these targets; BadInput, and nothing changes, if the protocol cannot."""
        kind = type(self.protocol)
        if not targets or targets >> self.system.size:
            raise BadInput("a message needs at least one target, and only known processes")
        if group >= 0 and targets | only(self.me) != self.system.groups[group].members:
            raise BadInput(f"group {self.system.groups[group].name} has other members than these targets")
        if kind.grouped and group < 0:
            group = self.system.group_of(self.me, targets)
        kind.check(self.me, targets, group, self.system, self.protocol.options)
        self._check_counters()
        learned = self.protocol.send(self.sent + 1, targets, group)
        self.sent += 1
        return self._apply(learned)

    def receive(self, packet: Packet) -> Outcome:
        """Take a packet from the network; HoldBackFull, and nothing changes, if there is no room for it."""
        capacity = self._engine.capacity
        if capacity is None or len(self) + sum(1 for _ in self.protocol.unpack(packet)) <= capacity:
            return self._in_order(packet)
        before = self.snapshot()
        try:
            return self._in_order(packet)
        except HoldBackFull:
            same = self.restored(before)
            self._engine, self._links, self.protocol = same._engine, same._links, same.protocol
            name = self.system.name
            raise HoldBackFull(
                f"{name(self.me)} holds {len(self)} messages back and its capacity is {capacity}, so "
                f"{packet.id(self.system)} finds no room; raise the capacity, or find out why the others wait"
            ) from None

    def _in_order(self, packet: Packet) -> Outcome:
        """Restore the order of the link where the protocol assumes it, then take what is due."""
        if self._links is None or not packet.order:
            return self._take(packet)
        stream = (packet.sender, packet.stream)
        self._links.offer((stream, packet.order), ((stream, packet.order - 1),), packet)
        packets: list[Packet] = []
        delivered: list[Packet] = []
        while (following := self._links.pop()) is not None:
            outcome = self._take(following)
            packets += outcome.packets
            delivered += outcome.delivered
            self._links.advance(stream, following.order)
        return Outcome(tuple(packets), tuple(delivered))

    def _take(self, packet: Packet) -> Outcome:
        protocol, engine = self.protocol, self._engine
        packets: list[Packet] = []
        refused = 0
        for part in protocol.unpack(packet):
            if engine.seen(part.key):
                continue
            learned = protocol.receive(part)
            if learned is None:
                refused += 1
                continue
            for fact, value in learned.facts:
                engine.advance(fact, value)
            packets += learned.packets
            if protocol.holds(part):
                engine.offer(part.key, protocol.needs(part), part, protocol.rank(part))
        return self._release(packets, refused)

    def null(self, group: int | None = None) -> Outcome:
        """Send null messages now."""
        self._check_counters()
        return self._apply(self.protocol.null(group))

    def _check_counters(self) -> None:
        if self.protocol.spent():
            name = self.system.name(self.me)
            raise BadInput(f"a counter of {name} has reached its end; it can send no more")

    def tick(self, now: int) -> Outcome:
        """The clock shows `now`."""
        protocol, engine = self.protocol, self._engine
        learned = protocol.tick(now)
        engine.replace(
            lambda packet: ((), protocol.rank(packet), packet) if protocol.overdue(packet) else None
        )
        outcome = self._apply(learned)
        for key in protocol.forgotten():
            engine.forget(key)
        return outcome

    def _apply(self, learned: Learned) -> Outcome:
        for fact, value in learned.facts:
            self._engine.advance(fact, value)
        return self._release(list(learned.packets))

    def _release(self, packets: list[Packet], refused: int = 0) -> Outcome:
        engine, protocol = self._engine, self.protocol
        delivered: list[Packet] = []
        while (packet := engine.pop()) is not None:
            facts, more = protocol.deliver(packet)
            for fact, value in facts:
                engine.advance(fact, value)
            packets += more
            if len(packets) > MOST_CONTROL:
                raise AssertionError(f"{protocol.name} does not stop sending control messages")
            if not packet.control:
                delivered.append(packet)
        return Outcome(tuple(packets), tuple(delivered), refused)

    def held(self) -> list[Packet]:
        """The messages that wait, in the order they came; control messages are left out."""
        waiting = [packet for packet in self._engine.held() if not packet.control]
        if self._links is not None:
            waiting += [packet for packet in self._links.held() if not packet.control]
        return waiting

    def __len__(self) -> int:
        """How many packets wait, control messages included."""
        return len(self._engine) + (len(self._links) if self._links is not None else 0)

    def waiting(self) -> list[str]:
        """What each held message still needs, in words."""
        name = self.system.name
        lines = []
        for wait, packet in zip(self._engine.waiting(), self._engine.held(), strict=True):
            needs = "; ".join(self.protocol.explain(*unmet) for unmet in wait.unmet)
            lines.append(f"{name(self.me)} holds {packet.id(self.system)}: needs {needs}")
        if self._links is not None:
            for packet in self._links.held():
                lines.append(
                    f"{name(self.me)} holds {packet.id(self.system)}: needs what "
                    f"{name(packet.sender)} sent on this link before it"
                )
        return lines

    def corrupt(self, random: Any) -> None:
        """Damage the state of the protocol and the stamps it holds, as a fault would."""
        protocol = self.protocol
        protocol.corrupt(random)

        def damaged(packet: Packet) -> tuple[Iterable[Threshold], Any, Packet]:
            broken = replace(packet, stamp=protocol.corrupt_stamp(packet.stamp, random))
            return protocol.needs(broken), protocol.rank(broken), broken

        self._engine.replace(damaged)

    def save_packet(self, packet: Packet) -> tuple[Any, ...]:
        """A packet as a plain value, its stamp in wire form."""
        stamp = self.protocol.encode(packet.stamp)
        return (
            packet.sender,
            packet.number,
            packet.targets,
            packet.to,
            stamp,
            packet.group,
            packet.control,
            packet.order,
            packet.stream,
        )

    def load_packet(self, saved: Sequence[Any]) -> Packet:
        """The packet of a plain value; BadStamp if it cannot have come to this process of this system."""
        if not isinstance(saved, (tuple, list)) or len(saved) != 9:
            raise BadStamp("a packet has nine fields")
        sender, number, targets, to, stamp, group, control, order, stream = saved
        whole = (sender, number, targets, to, group, order, stream)
        if not (isinstance(stamp, bytes) and isinstance(control, bool) and all(map(_is_whole, whole))):
            raise BadStamp("a packet has a field of the wrong type")
        if min(targets, to, stream) < 0 or stream > LARGEST:
            raise BadStamp("a packet has a field that cannot be negative")
        system, protocol = self.system, self.protocol
        if not (0 <= sender < system.size and 0 < number <= LARGEST and 0 <= order <= LARGEST):
            raise BadStamp("a packet has a sender or a number that cannot be")
        if (targets | to) >> system.size or to & ~targets or not -1 <= group < len(system.groups):
            raise BadStamp("a packet has targets or a group that do not exist")
        if not to >> self.me & 1:
            raise BadStamp(f"a packet is not addressed to {system.name(self.me)}")
        if protocol.grouped and (group < 0 or not system.groups[group].members >> sender & 1):
            raise BadStamp("a packet names a group that its sender is not in")
        beyond = control and protocol.beyond_groups
        if protocol.grouped and not beyond and not system.groups[group].members >> self.me & 1:
            raise BadStamp("a packet names a group that its receiver is not in")
        if protocol.fifo_links and (not order or stream != group):
            raise BadStamp("a packet has no number for its link")
        packet = Packet(
            sender, number, targets, to, protocol.decode(stamp), group, bool(control), order, stream
        )
        if not protocol.fits(packet):
            raise BadStamp("a packet's stamp was made for another packet")
        return packet

    def snapshot(self) -> tuple[Any, ...]:
        """Everything as a canonical plain value: integers, strings, bytes, None and tuples of them.

        Equal processes give equal snapshots, and `restored` gives back an equal process.
        """
        links = None if self._links is None else self._links.snapshot(self.save_packet)
        return (
            self.sent,
            self.protocol.controls,
            self.protocol.state(),
            self._engine.snapshot(self.save_packet),
            links,
        )

    def restored(self, snapshot: tuple[Any, ...]) -> Process:
        """A process like this one that goes on from a snapshot; this one stays as it is."""
        process = copy(self)
        process._engine = HoldBack(in_order=self._engine.in_order, capacity=self._engine.capacity)
        process.protocol = copy(self.protocol)
        process.sent, process.protocol.controls, state, engine, links = snapshot
        process._engine.restore(engine, process.load_packet, self.protocol.load_rank)
        process.protocol.facts = process._engine.facts
        process.protocol.load(state)
        if self._links is not None:
            process._links = HoldBack(in_order=True, capacity=self._links.capacity)
            process._links.restore(links, process.load_packet)
        return process


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)

"""A process: a protocol on the hold-back engine, and what goes in and comes out of it.

Beside the engine that holds messages back stands, for protocols that assume FIFO links, a second one that
restores them; the caller moves the packets. Inputs go in, an `Outcome` comes out. A process can be saved at
any time as a plain value, with its packets in wire form, and go on from it.

In a protocol that recovers from damage, a held packet that cannot have come is dropped at the next tick.

A sender that addresses itself delivers its own copy at the send, before all that the send frees; or holds it,
in a protocol that keeps own copies in the order of the others (`keeps_own`).

A send for which a protocol with a clock has no room in this tick is put off: it waits, and all later ones
behind it, and its packets come out of a later tick. It is stamped and numbered then, so what was delivered
in the meantime precedes it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from causet.errors import BadInput, BadStamp
from causet.holdback import HoldBack, HoldBackFull, Threshold
from causet.model import Processes, System, only
from causet.protocols.base import MOST_CONTROL, Learned, Options, Packet, Protocol
from causet.protocols.wire import LARGEST


class Outcome(NamedTuple):
    """What one input to a process led to: packets to send and messages delivered, each in order."""

    packets: tuple[Packet, ...]
    delivered: tuple[Packet, ...]
    refused: int = 0
    """packets that were impossible, and count as lost"""


class Process:
    """A protocol on its hold-back engine."""

    __slots__ = ("_engine", "_links", "_put_off", "me", "protocol", "sent", "system")

    def __init__(self, kind: type[Protocol], me: int, system: System, options: Options) -> None:
        self.me = me
        self.system = system
        # Wrong printed rules may break the order of a sender, and what comes late is not a duplicate.
        in_order = kind.variant(options).in_order and not options.as_printed
        self._engine: HoldBack[Packet] = HoldBack(in_order=in_order, capacity=options.capacity)
        self._links: HoldBack[Packet] | None = None
        if kind.fifo_links:
            self._links = HoldBack(in_order=True, capacity=options.capacity)
        self.protocol = kind.variant(options)(me, system, options, self._engine.facts)
        self.sent = 0
        self._put_off: deque[tuple[Processes, int]] = deque()  # (targets, group)

    @property
    def put_off(self) -> int:
        """How many sends wait for a later tick."""
        return len(self._put_off)

    def send(self, targets: Processes, group: int = -1) -> Outcome:
        """Send a message to these targets; BadInput, and nothing changes, if the protocol cannot.

        Without packets in its outcome the send is put off to a later tick.
        """
        kind = type(self.protocol)
        if not targets or targets >> self.system.size:
            raise BadInput("a message needs at least one target, and only known processes")
        opens = kind.opens or not kind.grouped
        if group >= 0 and not self.system.is_addressed(self.me, targets, group, opens):
            name = self.system.groups[group].name
            if not opens and not self.system.groups[group].members >> self.me & 1:
                me = self.system.name(self.me)
                raise BadInput(f"{me} is not a member of {name}, as a sender must be with {kind.name}")
            raise BadInput(f"group {name} has other members than these targets")
        if kind.grouped and group < 0:
            group = self.system.group_of(self.me, targets, kind.opens)
        kind.check(self.me, targets, group, self.system, self.protocol.options)
        self._check_counters()
        self._check_room(targets)
        if self._put_off or self.protocol.full():
            self._put_off.append((targets, group))
            return Outcome((), ())
        return self._send(targets, group)

    def _send(self, targets: Processes, group: int) -> Outcome:
        protocol, me = self.protocol, only(self.me)
        number = self.sent + 1 if 0 <= self.sent < protocol.numbers - 1 else 1
        learned = protocol.send(number, targets, group)
        self.sent = number
        message = [packet for packet in learned.packets if not packet.control]
        if not targets & me or any(packet.to & me for packet in message):
            return self._apply(learned)
        own = replace(message[0], to=me)
        if protocol.keeps_own:
            self._engine.offer(own.key, protocol.needs(own), own, protocol.rank(own), bounded=False)
            return self._apply(learned)
        outcome = self._apply(learned)
        return outcome._replace(delivered=(own, *outcome.delivered))

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

    def _check_room(self, targets: Processes) -> None:
        """HoldBackFull if the sender's own copy, and those that were put off, would exceed the capacity."""
        capacity, me = self._engine.capacity, only(self.me)
        if capacity is None or not self.protocol.keeps_own or not targets & me:
            return
        if len(self) + sum(bool(waiting & me) for waiting, _ in self._put_off) >= capacity:
            name = self.system.name(self.me)
            raise HoldBackFull(
                f"{name} holds {len(self)} messages back and its capacity is {capacity}, so its own copy of "
                "another finds no room; raise the capacity, or find out why the others wait"
            )

    def _check_counters(self) -> None:
        if self.protocol.spent():
            name = self.system.name(self.me)
            raise BadInput(f"a counter of {name} has reached its end; it can send no more")

    def tick(self, now: int) -> Outcome:
        """The clock shows `now`. What is delivered comes before what was put off and is sent now."""
        protocol, engine = self.protocol, self._engine
        learned = protocol.tick(now)
        for fact, value in learned.facts:
            engine.lower(fact, value)
        engine.review(self._mended)
        outcome = self._apply(learned)
        remembered = protocol.remembered()
        if remembered is not None:
            engine.remember(remembered)
        packets, delivered = list(outcome.packets), list(outcome.delivered)
        while self._put_off and not protocol.full():
            targets, group = self._put_off.popleft()
            if self._can_be_sent(targets, group):
                sent = self._send(targets, group)
                packets += sent.packets
                delivered += sent.delivered
        return outcome._replace(packets=tuple(packets), delivered=tuple(delivered))

    def _mended(
        self, packet: Packet, thresholds: tuple[Threshold, ...], rank: Any
    ) -> tuple[Iterable[Threshold], Any, Packet] | None:
        if not self._can_have_come(packet):
            return (), rank, packet  # it leaves, and is dropped
        mended = self.protocol.mended(packet, thresholds, rank)
        return None if mended is None else (*mended, packet)

    def _can_be_sent(self, targets: Processes, group: int) -> bool:
        """Whether a send that was put off could have been asked for: a fault may have touched it."""
        system = self.system
        if not targets or targets >> system.size or not -1 <= group < len(system.groups):
            return False
        opens = self.protocol.opens or not self.protocol.grouped
        return group < 0 or system.is_addressed(self.me, targets, group, opens)

    def _apply(self, learned: Learned) -> Outcome:
        for fact, value in learned.facts:
            self._engine.advance(fact, value)
        return self._release(list(learned.packets))

    def _release(self, packets: list[Packet], refused: int = 0) -> Outcome:
        engine, protocol = self._engine, self.protocol
        delivered: list[Packet] = []
        recovers = protocol.clock_fact is not None
        while (packet := engine.pop()) is not None:
            if recovers and not self._can_have_come(packet):
                continue
            facts, more = protocol.deliver(packet)
            for fact, value in facts:
                engine.advance(fact, value)
            packets += more
            if len(packets) > MOST_CONTROL:
                raise AssertionError(f"{protocol.name} does not stop sending control messages")
            if not packet.control:
                delivered.append(packet)
        return Outcome(tuple(packets), tuple(delivered), refused)

    def holds(self, packet: Packet) -> bool:
        """Whether this packet waits here."""
        return packet.key in self._engine

    def came(self, packet: Packet) -> bool:
        """Whether this packet has come before, so that to receive it again is nothing."""
        if self._links is not None and packet.order:
            return self._links.seen(((packet.sender, packet.stream), packet.order))
        return all(self._engine.seen(part.key) for part in self.protocol.unpack(packet))

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
        """What each held packet still needs, in words."""
        me, system = self.system.name(self.me), self.system
        return [f"{me} holds {packet.id(system)}: needs {needs}" for packet, needs in self.needs()]

    def needs(self) -> Iterator[tuple[Packet, str]]:
        """Each held packet, and what it still needs, in words."""
        for wait, packet in zip(self._engine.waiting(), self._engine.held(), strict=True):
            yield packet, "; ".join(self.protocol.explain(*unmet) for unmet in wait.unmet)
        for packet in self._links.held() if self._links is not None else ():
            yield packet, f"what {self.system.name(packet.sender)} sent on this link before it"

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
        fault = self._fault_in(sender, number, targets, to, group, control, order, stream)
        if fault is not None:
            raise BadStamp(f"a packet {fault}")
        decoded = self.protocol.decode(stamp)
        packet = Packet(sender, number, targets, to, decoded, group, bool(control), order, stream)
        if not self.protocol.fits(packet):
            raise BadStamp("a packet's stamp was made for another packet")
        return packet

    def _fault_in(
        self,
        sender: int,
        number: int,
        targets: int,
        to: int,
        group: int,
        control: bool,
        order: int,
        stream: int,
    ) -> str | None:
        """Why a packet with these fields cannot have come to this process of this system, if it cannot."""
        system, protocol = self.system, self.protocol
        if min(targets, to, stream) < 0 or stream > LARGEST:
            return "has a field that cannot be negative"
        if not (0 <= sender < system.size and 0 < number <= LARGEST and 0 <= order <= LARGEST):
            return "has a sender or a number that cannot be"
        if (targets | to) >> system.size or to & ~targets or not -1 <= group < len(system.groups):
            return "has targets or a group that do not exist"
        if not to >> self.me & 1:
            return f"is not addressed to {system.name(self.me)}"
        outside = group >= 0 and not system.groups[group].members >> sender & 1
        if protocol.grouped and (group < 0 or (outside and not protocol.opens)):
            return "names a group that its sender is not in"
        beyond = control and protocol.beyond_groups
        if protocol.grouped and not beyond and not system.groups[group].members >> self.me & 1:
            return "names a group that its receiver is not in"
        if protocol.fifo_links and (not order or stream != group):
            return "has no number for its link"
        return None

    def _can_have_come(self, packet: Packet) -> bool:
        """Whether a held packet can have come, whatever its stamp: a fault may have touched it."""
        p = packet
        fault = self._fault_in(p.sender, p.number, p.targets, p.to, p.group, p.control, p.order, p.stream)
        return fault is None and self.protocol.fits(packet)

    def snapshot(self, save_packet: Callable[[Packet], tuple[Any, ...]] | None = None) -> tuple[Any, ...]:
        """Everything as a canonical plain value: integers, strings, bytes, None and tuples of them.

        Equal processes give equal snapshots, and `restored` gives back an equal process.
        """
        save = save_packet or self.save_packet
        links = None if self._links is None else self._links.snapshot(save)
        return (
            self.sent,
            self.protocol.controls,
            self.protocol.state(),
            self._engine.snapshot(save),
            links,
            tuple(self._put_off),
        )

    def restored(
        self, snapshot: tuple[Any, ...], load_packet: Callable[[Sequence[Any]], Packet] | None = None
    ) -> Process:
        """A process like this one that goes on from a snapshot; this one stays as it is.

        A caller that restores often may load packets in its own way, for instance each only once.
        """
        load = load_packet or self.load_packet
        process = Process.__new__(Process)  # copy() would be a quarter of the work
        process.me, process.system = self.me, self.system
        process.sent, controls, state, engine, links, put_off = snapshot
        process._put_off = deque((targets, group) for targets, group in put_off)
        process._engine = HoldBack(in_order=self._engine.in_order, capacity=self._engine.capacity)
        process._engine.restore(engine, load, self.protocol.load_rank)
        process._links = None
        if self._links is not None:
            process._links = HoldBack(in_order=True, capacity=self._links.capacity)
            process._links.restore(links, load)
        process.protocol = protocol = object.__new__(type(self.protocol))
        protocol.__dict__.update(self.protocol.__dict__)
        protocol.controls = controls
        protocol.facts = process._engine.facts
        protocol.load(state)
        return process


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)

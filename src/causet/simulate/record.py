"""What processes do, reported to observers, and one that makes the events of a trace."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from causet.model import Event, Processes, System
from causet.protocols import Packet, Protocol, stamp_bytes

Namer = Callable[[Packet], str]


class Sent(NamedTuple):
    """One message, or control message: its packets, and the size of its largest stamp."""

    packets: list[Packet]
    entries: int
    bytes: int

    @property
    def travelling(self) -> Processes:
        """Where its copies go."""
        to = 0
        for packet in self.packets:
            to |= packet.to
        return to

    @property
    def stays(self) -> bool:
        """Whether it is addressed to its sender, too, whose copy does not travel."""
        first = self.packets[0]
        return bool((first.targets & ~self.travelling) >> first.sender & 1)


def sent_in(packets: Iterable[Packet], protocol: Protocol) -> list[Sent]:
    """The packets of one step, message by message, measured."""
    found: dict[object, list[Packet]] = {}
    for packet in packets:
        found.setdefault(packet.key, []).append(packet)
    return [
        Sent(
            together,
            max(protocol.entries(packet) for packet in together),
            max(stamp_bytes(protocol, packet) for packet in together),
        )
        for together in found.values()
    ]


class Observer:
    """Called for what happens, as it happens; a subclass overrides what it needs."""

    def sent(self, sent: Sent, time: float) -> None:
        """A message, or control message, leaves its sender."""

    def received(self, process: int, packet: Packet, time: float) -> None:
        """A copy arrives."""

    def delivered(self, process: int, packet: Packet, time: float) -> None:
        """The application is given a message."""

    def lost(self, process: int, packet: Packet, time: float) -> None:
        """A copy will never be delivered: the network lost it, or the protocol refused it."""

    def damaged(self, packet: Packet, arrival: float) -> None:
        """A copy that is going to arrive then has been damaged."""

    def fault(self, time: float) -> None:
        """The state of a process, or its clock, is damaged now."""


class Recorder(Observer):
    """Numbers the events of each process and hands each one on as it happens.

    Loss and damage are not seen by processes, and leave no event.
    """

    __slots__ = ("_names", "_seq", "_sink", "_system")

    def __init__(self, system: System, sink: Callable[[Event], None], names: Namer | None = None) -> None:
        self._system = system
        self._sink = sink
        self._names: Namer = names or (lambda packet: packet.id(system))
        self._seq = [0] * system.size

    def _event(self, process: int, kind: str, time: float, packet: Packet, **fields: object) -> None:
        self._seq[process] += 1
        self._sink(
            Event(
                self._system.name(process),
                self._seq[process],
                kind,
                message=self._names(packet),
                time=time,
                control=packet.control,
                **fields,  # type: ignore[arg-type]
            )
        )

    def sent(self, sent: Sent, time: float) -> None:
        first = sent.packets[0]
        self._event(
            first.sender,
            "send",
            time,
            first,
            to=tuple(self._system.names(sent.travelling)),
            group=self._system.groups[first.group].name if first.group >= 0 else None,
            stamp_entries=sent.entries,
            stamp_bytes=sent.bytes,
        )

    def received(self, process: int, packet: Packet, time: float) -> None:
        self._event(process, "receive", time, packet)

    def delivered(self, process: int, packet: Packet, time: float) -> None:
        self._event(process, "deliver", time, packet)

    def noted(self, process: int, text: str, time: float) -> None:
        """A local event: a fault, say."""
        self._seq[process] += 1
        self._sink(Event(self._system.name(process), self._seq[process], text=text, time=time))

"""From what processes do to the events of a trace."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from causet.model import Event, System
from causet.protocols import Packet, Protocol, stamp_bytes

Namer = Callable[[Packet], str]


class Recorder:
    """Numbers the events of each process and hands each one on as it happens."""

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

    def sent(self, protocol: Protocol, packets: Sequence[Packet], time: float) -> None:
        """One message, which may travel as several packets with different stamps."""
        first = packets[0]
        travelling = 0
        for packet in packets:
            travelling |= packet.to
        self._event(
            first.sender,
            "send",
            time,
            first,
            to=tuple(self._system.names(travelling)),
            group=self._system.groups[first.group].name if first.group >= 0 else None,
            stamp_entries=max(protocol.entries(packet) for packet in packets),
            stamp_bytes=max(stamp_bytes(protocol, packet) for packet in packets),
        )

    def received(self, process: int, packet: Packet, time: float) -> None:
        self._event(process, "receive", time, packet)

    def delivered(self, process: int, packet: Packet, time: float) -> None:
        self._event(process, "deliver", time, packet)

    def noted(self, process: int, text: str, time: float) -> None:
        """A local event: a fault, say."""
        self._seq[process] += 1
        self._sink(Event(self._system.name(process), self._seq[process], text=text, time=time))


def messages_of(packets: Sequence[Packet]) -> list[list[Packet]]:
    """The packets of one step, one list per message or control message, in order."""
    found: dict[object, list[Packet]] = {}
    for packet in packets:
        found.setdefault(packet.key, []).append(packet)
    return list(found.values())

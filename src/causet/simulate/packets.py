"""A packet as bytes: who sent it, to whom, its numbers, and its stamp in wire form.

    1 | sender | number | group + 1 | 1 for a control message, else 0 | targets | to | [order |] stamp

The first byte is the version of the form; no stamp begins with it. Numbers and sets of processes are written
as in stamps. The `order` stands there only if the protocol assumes FIFO links, whose `stream` is the group.
Processes and groups are their positions in the system, which sender and receiver both know.
"""

from __future__ import annotations

from typing import Any

from causet.errors import BadStamp
from causet.protocols.base import Packet, Protocol
from causet.protocols.wire import Reader, Writer

VERSION = 1

Fields = tuple[Any, ...]
"""The nine fields of a packet as a plain value, for `Process.load_packet`."""


class _Writer(Writer):
    __slots__ = ()

    def __init__(self) -> None:
        self._bytes = bytearray((VERSION,))


class _Reader(Reader):
    __slots__ = ()

    def __init__(self, data: bytes) -> None:
        self._data, self._protocol, self._position = data, "", 1
        if not data:
            raise self.bad("it is empty")
        if data[0] != VERSION:
            raise self.bad(f"it begins with {data[0]}, and this release reads version {VERSION}")

    def bad(self, why: str) -> BadStamp:
        return BadStamp(f"not a packet: {why}")

    def rest(self) -> bytes:
        return self._data[self._position :]


def to_bytes(packet: Packet, protocol: Protocol) -> bytes:
    """The packet's wire form."""
    size = protocol.system.size
    writer = _Writer()
    for number in (packet.sender, packet.number, packet.group + 1, int(packet.control)):
        writer.number(number)
    writer.processes(packet.targets, size)
    writer.processes(packet.to, size)
    if protocol.fifo_links:
        writer.number(packet.order)
    writer.raw(protocol.encode(packet.stamp))
    return writer.done()


def fields_of(data: bytes, protocol: Protocol) -> Fields:
    """The fields of a packet in wire form, its stamp still as bytes; BadStamp if they are not of this
    protocol's system. Whether they can be together, `Process.load_packet` says."""
    system = protocol.system
    reader = _Reader(data)
    sender = reader.number("the sender", system.size - 1)
    number = reader.number("the number")
    group = reader.number("the group", len(system.groups)) - 1
    control = bool(reader.number("the mark of a control message", 1))
    targets = reader.processes(system.size, "the targets")
    to = reader.processes(system.size, "the processes it goes to")
    order = reader.number("the number of the link") if protocol.fifo_links else 0
    stream = max(group, 0) if protocol.fifo_links else 0
    return (sender, number, targets, to, reader.rest(), group, control, order, stream)

"""What each process of a simulation sent and received, packet by packet, as bytes.

This is all that a process learns, in the order in which it learns it: whoever is given the packets of one
process delivers what that process delivered. (A protocol with a clock learns from time, too.)
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from causet.errors import BadInput
from causet.files import new_file, new_folder
from causet.protocols import Packet
from causet.protocols.process import Process
from causet.simulate.packets import to_bytes
from causet.simulate.record import Observer, Sent
from causet.simulate.systems import Setting, write_setting

PACKETS, SYSTEM = "packets.jsonl", "system.yaml"
"""The files of a folder of packets."""


class Packets(Observer):
    """Hands on a row for every packet at every process: of those that it receives, and of those that it sends
    itself, one for each message.

    `receiver` is the process, `seq` counts its rows from 1, and `message` names the message for people. Its
    own packets are those that it is the sender of.
    """

    def __init__(self, setting: Setting, sink: Callable[[dict[str, Any]], None]) -> None:
        self._system = setting.system
        self._writer = Process(setting.kind, 0, setting.system, setting.options).protocol
        self._sink = sink
        self._seq = [0] * setting.system.size

    def _row(self, process: int, packet: Packet) -> None:
        self._seq[process] += 1
        self._sink(
            {
                "receiver": self._system.name(process),
                "seq": self._seq[process],
                "message": packet.id(self._system),
                "packet": b64encode(to_bytes(packet, self._writer)).decode(),
            }
        )

    def sent(self, sent: Sent, time: float) -> None:
        self._row(sent.packets[0].sender, sent.packets[0])

    def received(self, process: int, packet: Packet, time: float) -> None:
        self._row(process, packet)


def check_packets(folder: Path, setting: Setting) -> None:
    """BadInput if the packets of a simulation cannot be written there, or would not be all that counts."""
    kind, _, options = setting
    if kind.clocked:
        raise BadInput(
            f"packets: {kind.name} delivers by the clocks of its processes, too; try another protocol"
        )
    if options.as_printed:
        raise BadInput("packets: the file of a system cannot say which rules are followed as printed")
    if folder.exists():
        raise BadInput(f"{folder} is there already; name a new folder")


@contextmanager
def packets_in(folder: Path, setting: Setting, given: Mapping[str, Any]) -> Iterator[Packets]:
    """An observer that writes a folder, which appears when it is complete: the packets, as JSON Lines, and
    the system, with the options that were given."""
    with new_folder(folder) as beside:
        beside.mkdir()
        (beside / SYSTEM).write_text(write_setting(setting.system, given), encoding="utf-8")
        with new_file(beside / PACKETS) as stream:

            def write(row: dict[str, Any]) -> None:
                stream.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")

            yield Packets(setting, write)

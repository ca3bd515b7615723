"""Reading and writing the bytes of stamps.

The first byte of every stamp names its protocol by its tag (low four bits) and the version of its form (high
four bits). A tag of 15 or more does not fit: 15 stands there, and the tag follows as a number. Numbers are
LEB128 varints of at most 64 bits; a dense array of counters is one width byte (1, 2, 4 or 8) and that many
little-endian bytes per entry.

Bytes come from outside and are never trusted: a `Reader` checks every length before it reads, every number
before it is used, and that nothing is left over.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from causet.errors import BadStamp
from causet.model import Processes

VERSION = 1
LARGEST = 2**63 - 1
"""No counter of ours is larger; a stamp that says so is hostile."""

Counters = npt.NDArray[np.int64]

TAGS = (
    "none",
    "fifo",
    "matrix",
    "bounded",
    "histories",
    "slow",
    "fast",
    "relative",
    "merge",
    "vector",
    "optimal",
    "direct",
    "piggyback",
    "frontiers",
)


EXTENDED = 15
"""In the first byte: the tag follows."""


class Writer:
    """Builds the bytes of one stamp."""

    __slots__ = ("_bytes",)

    def __init__(self, protocol: str) -> None:
        tag = TAGS.index(protocol)
        self._bytes = bytearray((VERSION << 4 | min(tag, EXTENDED),))
        if tag >= EXTENDED:
            self.number(tag)

    def number(self, value: int) -> None:
        out = self._bytes
        while value > 0x7F:
            out.append(value & 0x7F | 0x80)
            value >>= 7
        out.append(value)

    def raw(self, data: bytes) -> None:
        self._bytes += data

    def processes(self, processes: Processes, size: int) -> None:
        """A set of processes: whichever is shorter of a bit mask and a list, told apart by the length.

        The first number is 0 for a bit mask of ⌈size/8⌉ bytes, or the number of members plus one.
        """
        if _listed(processes, size):
            self.number(processes.bit_count() + 1)
            while processes:
                lowest = processes & -processes
                self.number(lowest.bit_length() - 1)
                processes ^= lowest
        else:
            self.number(0)
            self._bytes += processes.to_bytes((size + 7) // 8, "little")

    def counters(self, values: Counters) -> None:
        """A dense array of counters whose length the reader knows."""
        width = _width(values)
        self._bytes.append(width)
        self._bytes += values.astype(f"<u{width}").tobytes()

    def done(self) -> bytes:
        return bytes(self._bytes)


class Reader:
    """Takes the bytes of one stamp apart; BadStamp on anything that is not exactly right."""

    __slots__ = ("_data", "_position", "_protocol")

    def __init__(self, protocol: str, data: bytes) -> None:
        self._data = data
        self._protocol = protocol
        self._position = 1
        if not data:
            raise self.bad("it is empty")
        version, tag = data[0] >> 4, data[0] & 0x0F
        if version != VERSION:
            raise self.bad(f"its version is {version}; this release reads version {VERSION}")
        if tag == EXTENDED:
            tag = self.number("its tag")
            if tag < EXTENDED:
                raise self.bad(f"its tag {tag} is written longer than it needs to be")
        if tag != TAGS.index(protocol):
            other = TAGS[tag] if tag < len(TAGS) else f"protocol number {tag}"
            raise self.bad(f"it is a stamp of {other}")

    def bad(self, why: str) -> BadStamp:
        return BadStamp(f"not a {self._protocol} stamp: {why}")

    def number(self, what: str, most: int = LARGEST) -> int:
        """A varint of at most `most`; its shortest form only, so that equal stamps are equal bytes."""
        value = shift = 0
        data, position = self._data, self._position
        while True:
            if position >= len(data):
                raise self.bad(f"it ends inside {what}")
            byte = data[position]
            position += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if not byte and shift:
                    raise self.bad(f"{what} is written longer than it needs to be")
                break
            shift += 7
            if shift > 63:
                raise self.bad(f"{what} is longer than 64 bits")
        if value > most:
            raise self.bad(f"{what} is {value}, more than {most}")
        self._position = position
        return value

    def raw(self, length: int, what: str) -> bytes:
        if length > len(self._data) - self._position:
            raise self.bad(f"it ends inside {what}")
        self._position += length
        return self._data[self._position - length : self._position]

    def processes(self, size: int, what: str) -> Processes:
        count = self.number(what, size + 1)
        if count == 0:
            found = int.from_bytes(self.raw((size + 7) // 8, what), "little")
            if found >> size:
                raise self.bad(f"{what} names a process that does not exist")
            if _listed(found, size):
                raise self.bad(f"{what} is written longer than it needs to be")
            return found
        found = 0
        last = -1
        for _ in range(count - 1):
            process = self.number(what, size - 1)
            if process <= last:
                raise self.bad(f"{what} is not in order")
            last = process
            found |= 1 << process
        if not _listed(found, size):
            raise self.bad(f"{what} is written longer than it needs to be")
        return found

    def counters(self, length: int, what: str, most: int = LARGEST) -> Counters:
        width = self.raw(1, what)[0]
        if width not in (1, 2, 4, 8):
            raise self.bad(f"{what} has entries of {width} bytes")
        values: np.ndarray[Any, np.dtype[np.uint64]] = np.frombuffer(
            self.raw(width * length, what), dtype=f"<u{width}"
        ).astype(np.uint64)
        if values.size and int(values.max()) > most:
            raise self.bad(f"{what} has an entry of {int(values.max())}, more than {most}")
        counters = values.astype(np.int64)
        if _width(counters) != width:
            raise self.bad(f"{what} is written wider than it needs to be")
        return counters

    def done(self) -> None:
        if self._position != len(self._data):
            raise self.bad(f"{len(self._data) - self._position} bytes follow its end")


def _listed(processes: Processes, size: int) -> bool:
    """Whether a list of the members is no longer than a bit mask."""
    count = processes.bit_count()
    short = (processes & ((1 << 128) - 1)).bit_count()  # these take one byte each, the next two
    return count + 1 <= 127 and short + 2 * (count - short) + 1 <= (size + 7) // 8


def _width(values: Counters) -> int:
    """Bytes that the largest of these counters needs: 1, 2, 4 or 8."""
    largest = int(values.max()) if values.size else 0
    return 1 if largest < 1 << 8 else 2 if largest < 1 << 16 else 4 if largest < 1 << 32 else 8

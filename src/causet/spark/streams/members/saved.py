"""A snapshot as bytes, and back: integers, strings, bytes, None, switches, and tuples of them.

    None 0, False 1, True 2
    3 a number from 0, 4 one below 0:  how many bytes, and these, little-endian and no more than needed
    5 text in UTF-8, 6 bytes:          how many bytes, and these
    7 a tuple:                         how many values, and these

The first byte is the version of the form. Each value has one form only. What is read is checked as anything
from outside is; nothing in it is executed.
"""

from __future__ import annotations

from typing import Any

from causet.errors import BadInput, BadStamp
from causet.protocols.wire import Reader, Writer

VERSION = 1
DEEPEST = 32
"""Tuples within tuples."""
CONSTANTS = (None, False, True)
NUMBER, NEGATIVE, TEXT, BYTES, TUPLE = range(3, 8)


class _Writer(Writer):
    __slots__ = ()

    def __init__(self) -> None:
        self._bytes = bytearray((VERSION,))

    def value(self, value: Any) -> None:
        if value is None or value is False or value is True:
            self.number(CONSTANTS.index(value))
        elif isinstance(value, int):
            size = abs(value)
            self._measured(
                NEGATIVE if value < 0 else NUMBER, size.to_bytes((size.bit_length() + 7) // 8, "little")
            )
        elif isinstance(value, str):
            self._measured(TEXT, value.encode())
        elif isinstance(value, bytes):
            self._measured(BYTES, value)
        elif isinstance(value, tuple):
            self.number(TUPLE)
            self.number(len(value))
            for each in value:
                self.value(each)
        else:
            raise TypeError(f"a {type(value).__name__} in a snapshot")

    def _measured(self, kind: int, data: bytes) -> None:
        self.number(kind)
        self.number(len(data))
        self.raw(data)


class _Reader(Reader):
    __slots__ = ()

    def __init__(self, data: bytes) -> None:
        self._data, self._protocol, self._position = data, "", 1
        if not data or data[0] != VERSION:
            raise self.bad(f"it does not begin with its version, {VERSION}")

    def bad(self, why: str) -> BadStamp:
        return BadStamp(f"not a snapshot: {why}")

    def value(self, depth: int = 0) -> Any:
        kind = self.number("a kind", TUPLE)
        if kind < NUMBER:
            return CONSTANTS[kind]
        if kind == TUPLE:
            if depth == DEEPEST:
                raise self.bad("it is nested too deeply")
            return tuple([self.value(depth + 1) for _ in range(self.number("a count", len(self._data)))])
        data = self.raw(self.number("a length"), "a value")
        if kind == BYTES:
            return data
        if kind == TEXT:
            try:
                return data.decode()
            except UnicodeDecodeError:
                raise self.bad("a text is not UTF-8") from None
        if data[-1:] == b"\0" or (kind == NEGATIVE and not data):
            raise self.bad("a number is written longer than it needs to be")
        number = int.from_bytes(data, "little")
        return -number if kind == NEGATIVE else number


def to_bytes(value: Any) -> bytes:
    """A plain value as bytes.

    >>> from_bytes(to_bytes((1, -300, ("p1", b"", None), True)))
    (1, -300, ('p1', b'', None), True)
    """
    writer = _Writer()
    writer.value(value)
    return writer.done()


def from_bytes(data: bytes) -> Any:
    """The value; BadInput if these are not the bytes of one."""
    try:
        reader = _Reader(data)
        value = reader.value()
        reader.done()
    except BadStamp as error:
        raise BadInput(str(error)) from None
    return value

"""Footers of Parquet files, made the same by every JVM.

A footer lists the encodings of each column. The library that Spark writes with keeps them in a set that is
ordered by where objects lie in memory, so two JVMs write the same rows as different bytes. Here the list is
sorted where it stands: it is as long as before, and means the same.

The footer is a structure of Thrift's compact protocol: FileMetaData, 4: row groups; RowGroup, 1: columns;
ColumnChunk, 3: metadata; ColumnMetaData, 2: encodings.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

MAGIC = b"PAR1"
MOST = 64 << 20
"""Bytes of a footer that is looked at; no file of ours has one as large."""
ENCODINGS = (4, 1, 3, 2)
_STOP, _TRUE, _FALSE, _BYTE = range(4)
_I64, _DOUBLE, _BINARY, _LIST, _SET = range(6, 11)
_STRUCT = 12


def sort_encodings(path: Path) -> None:
    """Sort the encodings of every column; a file with another kind of end stays as it is."""
    with path.open("r+b") as file:
        size = file.seek(0, 2)
        if size < 12:
            return
        file.seek(size - 8)
        end = file.read(8)
        length = int.from_bytes(end[:4], "little")
        if end[4:] != MAGIC or length > min(size - 12, MOST):
            return
        file.seek(size - 8 - length)
        footer = bytearray(file.read(length))
        try:
            spans = list(_Reader(footer).find(ENCODINGS))
        except (IndexError, ValueError):
            return
        for begin, stop in spans:
            footer[begin:stop] = sorted(footer[begin:stop])  # each is one byte: there are few encodings
        file.seek(size - 8 - length)
        file.write(footer)


class _Reader:
    """A walk through a structure of Thrift's compact protocol."""

    def __init__(self, data: bytearray) -> None:
        self._data = data
        self._at = 0

    def find(self, path: tuple[int, ...]) -> Iterator[tuple[int, int]]:
        """Where the items of lists stand that are reached by these numbers of fields."""
        field = 0
        while (head := self._byte()) != _STOP:
            kind = head & 15
            field = field + (head >> 4) if head >> 4 else self._signed()
            if field != path[0]:
                self._skip(kind)
            elif len(path) == 1:
                count, _ = self._list()
                yield self._at, self._at + count
                self._at += count
            elif kind == _STRUCT:
                yield from self.find(path[1:])
            else:
                count, kind = self._list()
                if kind != _STRUCT:
                    raise ValueError("no list of structures")
                for _ in range(count):
                    yield from self.find(path[1:])

    def _byte(self) -> int:
        self._at += 1
        return self._data[self._at - 1]

    def _number(self) -> int:
        found = shift = 0
        while True:
            byte = self._byte()
            found |= (byte & 127) << shift
            if byte < 128:
                return found
            shift += 7

    def _signed(self) -> int:
        found = self._number()
        return found >> 1 ^ -(found & 1)

    def _list(self) -> tuple[int, int]:
        """How many items there are, and of what kind."""
        head = self._byte()
        return self._number() if head >> 4 == 15 else head >> 4, head & 15

    def _skip(self, kind: int, in_list: bool = False) -> None:
        if kind in (_TRUE, _FALSE):
            self._at += in_list  # in a field, the kind is the value
        elif kind == _BYTE:
            self._at += 1
        elif kind <= _I64:
            self._number()
        elif kind == _DOUBLE:
            self._at += 8
        elif kind == _BINARY:
            length = self._number()
            self._at += length
        elif kind in (_LIST, _SET):
            count, item = self._list()
            for _ in range(count):
                self._skip(item, in_list=True)
        elif kind == _STRUCT:
            while (head := self._byte()) != _STOP:
                if not head >> 4:
                    self._signed()
                self._skip(head & 15)
        else:
            raise ValueError("a kind that no footer has")

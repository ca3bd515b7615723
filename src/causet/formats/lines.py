"""Lines of a trace checked as strictly as `formats.trace` checks them, but many times faster.

The authority is `event_of`, which is slow. But the lines of a log resemble each other: a kernel
(`kernels.json.scan`) goes through the bytes and vouches for lines that hold only what was accepted before in
the same fields. All others go to the authority, and the kernel learns from those that it accepts.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from causet.errors import BadInput, Problem
from causet.files import MAX_LINE, Place, compressed, numbered_lines
from causet.formats.kinds import Kinds
from causet.formats.strict import decode_record
from causet.formats.trace import event_of

if TYPE_CHECKING:
    from causet.kernels.json.scan import Scanner

BLOCK = 4 * 2**20
"""Bytes that are read at once."""


class Inspection:
    """The valid lines that were seen so far: `kinds` describes what they hold.

    The first `few` bytes are checked without the kernel, which takes a while to load.
    """

    def __init__(self, few: int = 2**20) -> None:
        self.kinds = Kinds()
        self._few = few
        self._scanner: Scanner | None = None
        self._seen = 0

    def first_refused(self, block: bytes) -> tuple[int, int] | None:
        """Start and end of the first line that is not an event; None if all are valid or blank.

        The block holds whole lines, none longer than `MAX_LINE`.
        """
        text_ends = _end_of_text(block)
        position = 0
        while True:
            if self._scanner is not None:
                position = self._scanner.skip(block, position)
            if position >= text_ends:
                break
            end = _line_end(block, position)
            line = block[position:end]
            if line.strip(b" \t\r"):
                try:
                    record = decode_record(line)
                    event_of(dict(record))
                except Problem:
                    return position, end
                self.kinds.add(record)
                self._learn(line)
            position = end + 1
        return (text_ends, _line_end(block, text_ends)) if text_ends < len(block) else None

    def _learn(self, line: bytes) -> None:
        self._seen += len(line)
        if self._scanner is None and self._seen > self._few:
            from causet.kernels.json.scan import Scanner

            self._scanner = Scanner()
        if self._scanner is not None:
            self._scanner.learn(line)


def _line_end(block: bytes, position: int) -> int:
    end = block.find(b"\n", position)
    return end if end >= 0 else len(block)


def _end_of_text(block: bytes) -> int:
    """The start of the first line that is not UTF-8, or the end of the block."""
    try:
        block.decode()
    except UnicodeDecodeError as error:
        return block.rfind(b"\n", 0, error.start) + 1
    return len(block)


def why_refused(line: bytes) -> str | None:
    """The reason why the trace format refuses a line; None if it does not."""
    try:
        event_of(decode_record(line))
    except Problem as problem:
        return str(problem)
    return None


def blocks(path: Path, start: int = 0, end: int | None = None) -> Iterator[bytes]:
    """Those lines of a file that begin between two positions, in blocks; BadInput as in `numbered_lines`."""
    try:
        with gzip.open(path) if compressed(path) else path.open("rb") as stream:
            position = start
            if start:
                stream.seek(start - 1)
                position += len(stream.readline(MAX_LINE + 2)) - 1
            while end is None or position < end:
                data = stream.read(BLOCK if end is None else min(BLOCK, end - position))
                if not data:
                    return
                if not data.endswith(b"\n"):
                    data += stream.readline(MAX_LINE + 2)
                # Only the last line of a block can be too long.
                if len(data) - data.rfind(b"\n", 0, len(data) - 1) > MAX_LINE:
                    last = data[data.rfind(b"\n", 0, len(data) - 1) + 1 :]
                    if len(last.rstrip(b"\r\n")) > MAX_LINE:
                        break
                yield data
                position += len(data)
            else:
                return
    except (OSError, ValueError, EOFError, zlib.error):
        pass
    for _ in numbered_lines(path):  # raises the error that names the line
        pass
    raise BadInput(f"{path} cannot be read: it changed meanwhile")


def kinds_of(files: Iterable[Path]) -> Kinds:
    """What the lines of these files hold; BadInput names the first that is not an event, or the damage."""
    inspection = Inspection()
    for path in files:
        number = 1
        for block in blocks(path):
            refused = inspection.first_refused(block)
            if refused is not None:
                start, end = refused
                place = Place(str(path), number + block.count(b"\n", 0, start))
                raise BadInput(f"{place}: {why_refused(block[start:end])}")
            number += block.count(b"\n")
    return inspection.kinds

"""Files from outside, read within bounds; files of ours, written whole or not at all.

Rule: whatever a path holds, reading it gives bytes or one `BadInput` that names the file, and costs no more
memory than the bound says. A file that is written appears under its name only when it is complete.
"""

from __future__ import annotations

import gzip
import secrets
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

from causet.errors import BadInput, reason

MAX_LINE = 16 * 2**20
"""Bytes of one line, its end not counted."""
MAX_WHOLE = 256 * 2**20
"""Bytes of a file that has to be read as a whole, decompressed."""
MARK = b"\xef\xbb\xbf"
"""The byte order mark with which some editors begin a file."""


class Place(NamedTuple):
    """Where something stands in a file: a line, or an item or a row where the file has no lines."""

    path: str
    number: int
    unit: str = "line"

    def __str__(self) -> str:
        return f"{self.path}, {self.unit} {self.number}"


class LineTooLong(BadInput):
    """A line of more than `MAX_LINE` bytes."""


def numbered_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines with their ends, numbered from 1. A name that ends in `.gz` is decompressed."""
    number = 0
    try:
        with gzip.open(path) if compressed(path) else path.open("rb") as stream:
            while line := stream.readline(MAX_LINE + 2):
                number += 1
                if len(line.rstrip(b"\r\n")) > MAX_LINE:
                    raise LineTooLong(
                        f"{path}, line {number}: the line is longer than {MAX_LINE // 2**20} MiB"
                    )
                yield number, line
    except (OSError, ValueError, EOFError, zlib.error) as error:
        raise _unreadable(path, number + 1, error) from None


def read_whole(path: Path, most: int = MAX_WHOLE) -> bytes:
    """All bytes of a file, decompressed if its name ends in `.gz`; BadInput if there are too many."""
    try:
        with gzip.open(path) if compressed(path) else path.open("rb") as stream:
            data = stream.read(most + 1)
    except (OSError, ValueError, EOFError, zlib.error) as error:
        raise _unreadable(path, None, error) from None
    if len(data) > most:
        raise BadInput(f"{path} is larger than {most / 2**20:,.0f} MiB, the most that is read of such a file")
    return data


def read_start(path: Path, size: int) -> bytes:
    """The first bytes of a file, decompressed if its name ends in `.gz`; what follows may be damaged."""
    try:
        with gzip.open(path) if compressed(path) else path.open("rb") as stream:
            return stream.read1(size) if isinstance(stream, gzip.GzipFile) else stream.read(size)
    except (OSError, ValueError, EOFError, zlib.error) as error:
        raise _unreadable(path, 1, error) from None


def check_twice_readable(path: Path) -> None:
    """BadInput for a pipe and the like: what was looked at there is gone."""
    if path.exists() and not path.is_file():
        raise BadInput(f"{path} is no regular file, and has to be read twice; write it to a file first")


def text_of(path: Path, data: bytes) -> str:
    """These bytes as text, without a byte order mark; BadInput names the line that is not UTF-8."""
    try:
        return data.removeprefix(MARK).decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise BadInput(f"{path}, line {line}: not UTF-8 text") from None


def _unreadable(path: Path, line: int | None, error: Exception) -> BadInput:
    where = path if line is None else f"{path}, line {line}"
    if isinstance(error, EOFError):
        return BadInput(f"{where}: the compressed file is cut off")
    if isinstance(error, zlib.error | gzip.BadGzipFile):
        return BadInput(f"{where}: this is no valid gzip")
    return BadInput(f"{path} cannot be read: {reason(error)}")


@contextmanager
def new_file(path: Path) -> Iterator[IO[bytes] | gzip.GzipFile]:
    """A file that is written beside `path` and takes its place if all goes well."""
    if path.is_dir():
        raise BadInput(f"{path} is a directory; give the name of a file to write")
    path = path.resolve()  # what a link points to is written, the link stays
    if path.exists() and not path.is_file():
        raise BadInput(f"{path} is no regular file; give the name of a file to write")
    beside = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
    try:
        raw = beside.open("xb")
    except (OSError, ValueError) as error:
        raise unwritable(path, error) from None
    try:
        with raw:
            if compressed(path):
                # Neither name nor time goes into the header: the same events give the same bytes.
                with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as packed:
                    yield packed
            else:
                yield raw
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def compressed(path: Path) -> bool:
    return path.suffix == ".gz"


def unwritable(path: Path, error: Exception) -> BadInput:
    """Why a file or folder cannot be written."""
    above = path.absolute().parent
    missing = isinstance(error, FileNotFoundError) and not above.exists()
    why = f"there is no folder {above}" if missing else reason(error)
    return BadInput(f"{path} cannot be written: {why}")

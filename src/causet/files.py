"""Files from outside, read within bounds; files of ours, written whole or not at all.

Rule: whatever a path holds, reading it gives bytes or one `BadInput` that names the file, and costs no more
memory than the bound says. A file or folder that is written appears under its name only when it is complete.
"""

from __future__ import annotations

import gzip
import os
import secrets
import shutil
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
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
    """A location in a file: a line, or an item or a row where the file has no lines."""

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
    """BadInput for a pipe and the like: it can be read only once."""
    if path.exists() and not path.is_file():
        raise BadInput(f"{path} is not a regular file, and has to be read twice; write it to a file first")


def files_in(path: Path, is_wanted: Callable[[str], bool], what: str) -> list[Path]:
    """The file at a path; in a folder, those with wanted names, except names that begin with . or _.

    BadInput if there are none, or if the folder cannot be read; `what` describes the files.
    """
    if not path.is_dir():
        return [path]
    try:
        names = sorted(each for each in path.iterdir() if is_wanted(each.name))
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {reason(error)}") from None
    found = [each for each in names if not each.name.startswith((".", "_"))]
    if not found:
        raise BadInput(f"{path}: there is no {what}")
    return found


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
        return BadInput(f"{where}: this is not valid gzip")
    return BadInput(f"{path} cannot be read: {reason(error)}")


def check_output(path: Path, inputs: Iterable[Path] = ()) -> None:
    """BadInput now rather than after hours of work, if this file could not be written or is an input."""
    try:
        if any(path.exists() and given.exists() and path.samefile(given) for given in inputs):
            raise BadInput(f"{path} is the input; name another file to write")
        if path.is_dir():
            raise BadInput(f"{path} is a directory; give the name of a file to write")
        path.parent.stat()
        with suppress(FileNotFoundError):
            path.lstat()
        if not path.exists():
            check_parent(path)
        elif not os.access(path, os.W_OK):
            raise BadInput(f"{path} cannot be written: Permission denied")
    except (OSError, ValueError) as error:
        raise unwritable(path, error) from None


def check_parent(path: Path) -> None:
    """BadInput if nothing new can be written beside this path."""
    parent = path.resolve().parent
    if not parent.is_dir():
        raise BadInput(f"{path} cannot be written: there is no folder {parent}")
    if not os.access(parent, os.W_OK):
        raise BadInput(f"{path} cannot be written: Permission denied")


def check_replaceable(path: Path) -> None:
    """BadInput if something other than a regular file is there."""
    if path.is_dir():
        raise BadInput(f"{path} is a directory; give the name of a file to write")
    if path.exists() and not path.is_file():
        raise BadInput(f"{path} is not a regular file; give the name of a file to write")


@contextmanager
def new_file(path: Path) -> Iterator[IO[bytes] | gzip.GzipFile]:
    """A file that is written beside `path` and takes its place if all goes well."""
    check_replaceable(path)
    path = path.resolve()  # what a link points to is written, the link stays
    with replacing(path) as beside:
        try:
            raw = beside.open("xb")
        except (OSError, ValueError) as error:
            raise unwritable(path, error) from None
        with raw:
            if compressed(path):
                # Neither name nor time goes into the header: the same events give the same bytes.
                with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as packed:
                    yield packed
            else:
                yield raw


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A hidden name beside `path`: the file written there takes its place if all goes well, or is removed."""
    beside = _hidden(path)
    try:
        yield beside
        beside.replace(path)
    except BaseException:
        with suppress(OSError, ValueError):
            beside.unlink()
        raise


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """A name beside `path`: the folder made there takes its place if all goes well, or is removed.

    What was at `path` is removed when the new folder is there.
    """
    with hidden_folder(path) as beside:
        new, old = beside / "new", beside / "old"
        yield new
        try:
            if path.exists():
                path.rename(old)
            try:
                new.rename(path)
            except BaseException:
                if old.exists() and not path.exists():
                    old.rename(path)
                raise
        except OSError as error:
            raise unwritable(path, error) from None


@contextmanager
def hidden_folder(path: Path, within: Path | None = None) -> Iterator[Path]:
    """An empty hidden folder for what is to be at `path`: beside it, or within another folder.

    It is removed at the end, with all that is still in it.
    """
    beside = _hidden(path if within is None else within / path.name)
    try:
        beside.mkdir()
    except (OSError, ValueError) as error:
        raise unwritable(path, error) from None
    try:
        yield beside
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _hidden(path: Path) -> Path:
    return path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")


def compressed(path: Path) -> bool:
    return path.suffix == ".gz"


def unwritable(path: Path, error: Exception) -> BadInput:
    """Why a file or folder cannot be written."""
    above = path.absolute().parent
    missing = isinstance(error, FileNotFoundError) and not above.exists()
    why = f"there is no folder {above}" if missing else reason(error)
    return BadInput(f"{path} cannot be written: {why}")

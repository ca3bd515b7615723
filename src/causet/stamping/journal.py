"""The file of a stamper: JSON lines, each of which is there or not, written by one stamper at a time.

Two stampers on one file would issue the same numbers, so the file is locked (flock) as long as it is open.
The operating system releases the lock when the process ends, however it ends. The file is replaced by a new
one from time to time; the new one is locked before it takes the place of the old one, so that the file under
this name is locked at every moment.

Where there is no flock (Windows), nothing is locked: take care that a file has one stamper.
"""

from __future__ import annotations

import json
import os
import weakref
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from causet.errors import BadInput, BadStamp, quote

try:
    import fcntl
except ImportError:  # pragma: no cover
    fcntl = None  # type: ignore[assignment]

_WRITES = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
CLOSED = "this stamper was closed; open a new one"
FORKED = "this stamper was opened before the process forked, and is the parent's; open one with another file"


class Journal:
    """A file of JSON lines; a torn last line is one that never counted. BadInput if it is in use."""

    def __init__(self, path: Path, durable: bool) -> None:
        # Where a link points to is what is locked and replaced.
        self._path = Path(os.path.realpath(path))
        self._durable = durable
        self._why_closed = CLOSED
        self.lines = 0
        try:
            self._file: int | None = self._opened()
        except OSError as error:
            self._file = None
            raise self._unwritable(error) from None
        _OPEN.add(self)

    def _opened(self) -> int:
        while True:
            file = os.open(self._path, _WRITES, 0o666)
            try:
                self._lock(file)
                # Another stamper may have replaced the file between open and lock.
                if os.path.samestat(os.fstat(file), self._path.stat()):
                    return file
            except FileNotFoundError:
                pass
            except BaseException:
                os.close(file)
                raise
            os.close(file)

    def _lock(self, file: int) -> None:
        if fcntl is None:
            return
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BadInput(
                f"{self._path}: another stamper has this file open, in this process or another; two on one "
                "file would use the same numbers. End or close() the other one, or give each a source name "
                "and a file of its own"
            ) from None
        except OSError as error:
            raise BadInput(
                f"{self._path}: cannot be locked: {error.strerror}; put the file on a disk that has locks"
            ) from None

    def read(self, take: Callable[[dict[str, Any], bool], None]) -> None:
        """Give each line to `take`, with whether it is the first one. `take` says with BadInput or BadStamp
        that it is no line of a stamper's file."""
        try:
            raw = self._path.read_bytes()
        except OSError as error:
            raise BadInput(f"{self._path}: cannot be read: {error.strerror}") from None
        whole = raw[: raw.rfind(b"\n") + 1].splitlines()
        for number, line in enumerate(whole, 1):
            try:
                take(record_of(line), number == 1)
            except (ValueError, RecursionError, BadInput, BadStamp) as error:
                raise BadInput(
                    f"{self._path}, line {number}: not a line of a stamper's file: {error}"
                ) from None

    def begin(self, state: Mapping[str, Any], kept: Iterable[Mapping[str, Any]]) -> None:
        """Start a new file with these lines: the old one stays until the new one is whole."""
        self.check_open()
        beside = self._path.with_name(self._path.name + ".new")
        lines = [state, *kept]
        try:
            file = os.open(beside, _WRITES | os.O_TRUNC, 0o666)
            try:
                self._lock(file)
                with os.fdopen(file, "wb", closefd=False) as stream:
                    stream.write(b"".join(_line(each) for each in lines))
                    stream.flush()
                    os.fsync(stream.fileno())
                beside.replace(self._path)
            except BaseException:
                os.close(file)
                raise
            self._release()
            self._file = file
        except OSError as error:
            raise self._unwritable(error) from None
        self.lines = len(lines)

    def append(self, line: Mapping[str, Any]) -> None:
        self.check_open()
        assert self._file is not None
        raw = _line(line)
        try:
            written = os.write(self._file, raw)
            if written != len(raw):
                # Half a line must not stand before what is written next.
                os.ftruncate(self._file, os.fstat(self._file).st_size - written)
                raise OSError(0, "the disk is full")
            if self._durable:
                os.fsync(self._file)
        except OSError as error:
            raise self._unwritable(error) from None
        self.lines += 1

    def close(self, why: str = CLOSED) -> None:
        """Release the file: nothing is written any more, and another stamper can open it."""
        if self._file is not None:
            self._why_closed = why
            self._release()

    def _release(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            os.close(file)

    def check_open(self) -> None:
        """BadInput says why nothing can be written any more."""
        if self._file is None:
            raise BadInput(f"{self._path}: {self._why_closed}")

    def _unwritable(self, error: OSError) -> BadInput:
        return BadInput(f"{self._path}: cannot be written: {error.strerror}")

    def __del__(self) -> None:
        with suppress(OSError, AttributeError):
            self._release()


_OPEN: weakref.WeakSet[Journal] = weakref.WeakSet()


def _after_fork() -> None:
    """A forked process must not use its parent's numbers, nor keep its lock when the parent is gone."""
    for journal in list(_OPEN):
        journal.close(FORKED)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _line(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8", "surrogatepass") + b"\n"


def record_of(line: str | bytes) -> dict[str, Any]:
    """A line of a file, or a saved state; BadInput, or an error of JSON, if it is none."""
    found = json.loads(line)
    if not isinstance(found, dict):
        raise BadInput(f"an object is expected, not {quote(found)}")
    return found

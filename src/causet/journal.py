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
from functools import partial
from pathlib import Path
from typing import Any

from causet.envelope import MOST_SEQUENCE, process_of, sequence_of, time_of
from causet.errors import BadInput, BadStamp, quote
from causet.identity import source_of
from causet.model import is_text
from causet.rcclock import FAR, TICKS_PER_MS

try:
    import fcntl
except ImportError:  # pragma: no cover
    fcntl = None  # type: ignore[assignment]

VERSION = 2
"""Of saved stampers and of their files. Version 1 is taken over: its times count ms, and its messages are
numbered under the plain source, which goes on."""

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

    def read(self) -> list[dict[str, Any]]:
        try:
            raw = self._path.read_bytes()
        except OSError as error:
            raise BadInput(f"{self._path}: cannot be read: {error.strerror}") from None
        whole = raw[: raw.rfind(b"\n") + 1].splitlines()
        found: list[dict[str, Any]] = []
        old = False
        for number, line in enumerate(whole, 1):
            try:
                record = _record(line)
                if number == 1:
                    old = _version(record, "its first line") == 1
                line_now = _taken_over(record, number == 1) if old else record
                found.append(_checked(line_now, found[0] if found else None))
            except (ValueError, RecursionError, BadInput, BadStamp) as error:
                raise BadInput(
                    f"{self._path}, line {number}: not a line of a stamper's file: {error}"
                ) from None
        return found

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


def _record(line: str | bytes) -> dict[str, Any]:
    found = json.loads(line)
    if not isinstance(found, dict):
        raise BadInput(f"an object is expected, not {quote(found)}")
    return found


def state_of(saved: str | bytes, what: str) -> dict[str, Any]:
    """The state that `Stamper.save` gave, as one of this version; BadInput if it is none."""
    try:
        state = _record(saved)
        old = _version(state, what) == 1
        return _checked(_taken_over(state, first=True) if old else state, None)
    except (ValueError, RecursionError):
        raise BadInput(f"{what}: not JSON") from None


def _version(state: Mapping[str, Any], what: str) -> int:
    if "version" not in state:
        raise BadInput(f"{what}: no state of a stamper")
    version = state["version"]
    if type(version) is not int or not 1 <= version <= VERSION:
        raise BadInput(
            f"{what}: version {quote(version)}, and this release reads up to {VERSION}; use the one that "
            "wrote it"
        )
    return version


def _taken_over(line: dict[str, Any], first: bool) -> dict[str, Any]:
    """A line of version 1 as one of version 2."""
    if type(line.get("rc")) is int:
        line = {**line, "rc": line["rc"] * TICKS_PER_MS}
    return {**line, "process": line.get("source")} if first else line


STATE = ("source", "process", "domain", "sequence", "seen", "direct")
"""What every state has."""


def _checked(line: dict[str, Any], state: Mapping[str, Any] | None) -> dict[str, Any]:
    """BadInput or BadStamp if a line has not what it must have. `state` is the first line, for all others."""
    for name in STATE if state is None else ():
        if name not in line:
            raise BadInput(f"{quote(name)} is missing")
    if "version" in line and state is not None:
        raise BadInput("the state of a stamper can stand in the first line only")
    for name, fits in FIELDS.items():
        if name in line and not fits(line[name]):
            raise BadInput(f"{quote(name)} cannot be {quote(line[name])}")
    first = line if state is None else state
    if first["process"] != first["source"] and source_of(first["process"]) != first["source"]:
        raise BadInput(f"{quote(first['process'])} is no process of source {quote(first['source'])}")
    for envelope in (*line.get("unsent", ()), *([line["stamped"]] if "stamped" in line else [])):
        if not isinstance(envelope, dict):
            raise BadInput(f"an envelope cannot be {quote(envelope)}")
        sequence_of(envelope), time_of(envelope)
        if process_of(envelope) != first["process"]:
            raise BadInput(f"a message of {quote(process_of(envelope))}, not of {quote(first['process'])}")
    return line


def _is_number(value: object, least: int = 1, most: int = MOST_SEQUENCE) -> bool:
    return type(value) is int and least <= value <= most


def _are_numbers(value: object) -> bool:
    """Whether this is a map process → number."""
    return isinstance(value, dict) and all(is_text(p) and _is_number(n) for p, n in value.items())


def _is_seen(value: object) -> bool:
    """A process, a number and its causes."""
    if not isinstance(value, list) or len(value) != 3:
        return False
    return is_text(value[0]) and _is_number(value[1]) and _are_numbers(value[2])


FIELDS: dict[str, Callable[[Any], bool]] = {
    "source": is_text,
    "process": is_text,
    "domain": is_text,
    "sequence": partial(_is_number, least=0),
    "seen": _are_numbers,
    "direct": _are_numbers,
    "unsent": lambda value: isinstance(value, list),
    "stamped": lambda value: isinstance(value, dict),
    "sent": _is_number,
    "saw": _is_seen,
    "rc": lambda value: value is None or _is_number(value, 0, FAR - 1),
}
"""What a line may have, and what it must be like."""

"""A place of cuts: a folder in which readers say how far they are, and stampers find what they may forget.

    PLACE/queries/ID/about.json     who reads what in a query: its readers are known from then on
    PLACE/queries/ID/BUCKET.json    what some of them have delivered: up to a number of each process
    PLACE/cuts/NUMBER.json          a cut: what all known readers of a group have delivered
    PLACE/newest                    a number from which to look for the newest one

Cuts are numbered 1, 2, 3, …, never change, and each contains those before it. A cut is published when its
file is there, and not before it would survive a crash: readers of a message that names a cut wait for what is
in it, so a number must never mean two things. To keep files small, a cut has only what is new since an
earlier one, its `base`.

What a reader said last may be lost: then the next cut has less, and stamps are longer. Who only reads cuts
loads the standard library alone.

    >>> import tempfile
    >>> cuts = Cuts(tempfile.mkdtemp())
    >>> cuts.register("a", {"desk": ["orders"]})
    >>> cuts.tell("a", 0, {"desk": {"orders": {"shop~1": 7}}})
    >>> cuts.publish()
    Cut(number=1, groups={'orders': {'shop~1': 7}})
    >>> cuts.newest() == cuts.read(1)
    True
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from causet.envelope import MOST_SEQUENCE, Cut, check_entries
from causet.errors import BadInput, BadStamp, quote
from causet.files import read_whole, replacing, text_of, unwritable

if TYPE_CHECKING:
    from causet.readers import Given, Readers

try:
    import fcntl
except ImportError:  # not on every system
    fcntl = None  # type: ignore[assignment]

VERSION = 1
DIGITS = 16
"""Of the number of a cut in the name of its file: in this order they sort."""
Entries = dict[str, dict[str, int]]
"""group → process → number"""
Told = dict[str, Entries]
"""reader → what was delivered to it"""


class Cuts:
    """A folder of cuts."""

    def __init__(self, place: str | Path) -> None:
        self.place = Path(place)
        self._known: dict[Path, tuple[object, Told]] = {}
        """what readers said, by files that have not changed since"""

    # ------------------------------------------------------------ for stampers and readers

    def newest(self) -> Cut | None:
        """The last cut, if there is one: `stamper.stable(cut)` forgets what is in it."""
        number = self._newest_number()
        return self.read(number) if number else None

    def _newest_number(self) -> int:
        number = self._hint()
        while self.has(number + 1):
            number += 1
        return number

    def _hint(self) -> int:
        path = self.place / "newest"
        if not path.exists():
            names = [path.stem for path in (self.place / "cuts").glob("*.json")]
            return max((int(name) for name in names if name.isascii() and name.isdigit()), default=0)
        text = text_of(path, read_whole(path)).strip()
        if not (text.isascii() and text.isdigit() and len(text) <= DIGITS):
            raise BadInput(f"{path}: it must be the number of a cut, not {quote(text)}")
        return int(text)

    def has(self, number: int) -> bool:
        """Whether a cut is here."""
        return self._file(number).exists()

    def read(self, number: int) -> Cut:
        """A cut by its number; BadInput if it is not here, or is damaged."""
        base, groups = self._loaded(number)
        if not base:
            return Cut(number, groups)
        before, whole = self._loaded(base)
        if before:
            raise BadInput(f"{self._file(number)}: its base {base} is not a whole cut")
        return Cut(number, _joined(whole, groups))

    def _file(self, number: int) -> Path:
        return self.place / "cuts" / f"{number:0{DIGITS}}.json"

    def _loaded(self, number: int) -> tuple[int, Entries]:
        """The base of a cut, 0 if it has none, and what is new since."""
        path = self._file(number)
        found = _object(path)
        if found.get("number") != number or not _is_number(found.get("base")) or found["base"] >= number:
            raise BadInput(f"{path}: it must be the cut {number}, with an earlier base")
        return found["base"], _entries(path, found.get("groups"))

    # ------------------------------------------------------------ for queries

    def register(self, query: str, readers: Given, **about: str) -> None:
        """Make the readers of a query known: cuts have only what they have delivered, too. Called again, the
        readers are the new ones."""
        from causet.readers import readers_of

        folder = self._folder(query)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            (self.place / "cuts").mkdir(exist_ok=True)
        except (OSError, ValueError) as error:
            raise unwritable(folder, error) from None
        names = readers_of(readers).as_json()
        _write(folder / "about.json", {"version": VERSION, "readers": names, **about})

    def _folder(self, query: str) -> Path:
        return self.place / "queries" / query

    def tell(self, query: str, bucket: int, delivered: Mapping[str, Mapping[str, Mapping[str, int]]]) -> None:
        """Say what readers have delivered: reader → group → process → up to which number. What was said
        before stays true."""
        path = self._folder(query) / f"{bucket}.json"
        before = self._told(path) if path.exists() else {}
        found = {reader: _joined(before.get(reader, {}), groups) for reader, groups in delivered.items()}
        if any(found[reader] != before.get(reader) for reader in found):
            _write(path, {"version": VERSION, "delivered": before | found})

    def told(self, query: str, bucket: int) -> Told:
        """What was said of a bucket."""
        path = self._folder(query) / f"{bucket}.json"
        return self._told(path) if path.exists() else {}

    def _told(self, path: Path) -> Told:
        try:
            state = path.stat()
        except OSError as error:
            raise BadInput(f"{path} cannot be read: {error.strerror}") from None
        mark = (state.st_ino, state.st_mtime_ns, state.st_size)
        known, told = self._known.get(path, (None, {}))
        if known != mark:
            delivered = _object(path).get("delivered")
            if not isinstance(delivered, dict):
                raise BadInput(f"{path}: it must say what readers have delivered, not {quote(delivered)}")
            told = {reader: _entries(path, groups) for reader, groups in delivered.items()}
            self._known[path] = (mark, told)
        return told

    def publish(self) -> Cut | None:
        """Publish a cut of what all readers that are known have delivered; None if nothing is new."""
        with self._alone():
            last = self.newest() or Cut(0, {})
            groups = _joined(last.groups, self._delivered_by_all())
            if groups == last.groups:
                return None
            found = Cut(last.number + 1, groups)
            self._write(found)
            _write(self.place / "newest", found.number)
            return found

    def _write(self, cut: Cut) -> None:
        base, new = 0, cut.groups
        if cut.number > 1:
            begun = self._loaded(cut.number - 1)[0] or cut.number - 1
            since = _news(cut.groups, self.read(begun).groups)
            if 2 * _count(since) <= _count(cut.groups):
                base, new = begun, since
        path = self._file(cut.number)
        data = _bytes({"version": VERSION, "number": cut.number, "base": base, "groups": new})
        try:
            with replacing(path) as beside, beside.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            _sync(path.parent)
        except OSError as error:
            raise unwritable(path, error) from None

    def _delivered_by_all(self) -> Entries:
        """What all readers of a group have delivered of it."""
        queries = []
        for about in sorted((self.place / "queries").glob("*/about.json")):
            with _unless_removed(about):
                readers = self._readers_in(about)
                told: Told = {}
                for path in about.parent.glob("*.json"):
                    if path != about:
                        with _unless_removed(path):
                            told |= self._told(path)
                queries.append((readers, told))
        every = {group for _, told in queries for groups in told.values() for group in groups}
        found_by_all: Entries = {}
        for name in every:
            group = name.partition("\x1f")[0]
            each = [
                told.get(reader, {}).get(name, {})
                for readers, told in queries
                for reader in readers.of_group(group)
            ]
            if each:
                least = {
                    process: min(one[process] for one in each)
                    for process in min(each, key=len)
                    if all(process in one for one in each)
                }
                found_by_all[name] = {process: number for process, number in least.items() if number}
        return {group: entries for group, entries in found_by_all.items() if entries}

    def _readers_in(self, about: Path) -> Readers:
        """The readers of a query."""
        from causet.readers import readers_of

        found = _object(about)
        try:
            return readers_of(found.get("readers"))
        except BadInput as error:
            raise BadInput(f"{about}: {error}") from None

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One query at a time."""
        path = self.place / "lock"
        try:
            file = path.open("a")
        except (OSError, ValueError) as error:
            raise unwritable(path, error) from None
        with file:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX)
            yield


@contextmanager
def _unless_removed(path: Path) -> Iterator[None]:
    """A file that goes while it is read counts as not there: users remove the folders of queries that are
    over."""
    try:
        yield
    except BadInput:
        if path.exists():
            raise


def _joined(one: Mapping[str, Mapping[str, int]], other: Mapping[str, Mapping[str, int]]) -> Entries:
    """The larger number of each process in each group."""
    found: Entries = dict(one)  # type: ignore[arg-type]
    for group, entries in other.items():
        mine = dict(found.get(group, {}))
        for process, number in entries.items():
            mine[process] = max(number, mine.get(process, 0))
        found[group] = mine
    return found


def _news(groups: Entries, before: Entries) -> Entries:
    found = {
        group: {p: n for p, n in entries.items() if n > before.get(group, {}).get(p, 0)}
        for group, entries in groups.items()
    }
    return {group: entries for group, entries in found.items() if entries}


def _count(groups: Entries) -> int:
    return sum(map(len, groups.values()))


def _is_number(value: object) -> bool:
    return type(value) is int and 0 <= value <= MOST_SEQUENCE


def _object(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(text_of(path, read_whole(path)))
    except (ValueError, RecursionError):
        raise BadInput(f"{path}: it is not JSON, and was not written by causet") from None
    if not isinstance(found, dict) or found.get("version") != VERSION:
        raise BadInput(f'{path}: it must be a JSON object with "version": {VERSION}')
    return found


def _entries(path: Path, groups: object) -> Entries:
    try:
        if not isinstance(groups, dict):
            raise BadStamp(f"groups must be a map, not {quote(groups)}")
        check_entries("what was delivered", groups)
    except BadStamp as error:
        raise BadInput(f"{path}: {error}") from None
    return groups


def _bytes(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


def _write(path: Path, value: object) -> None:
    try:
        with replacing(path) as beside:
            beside.write_bytes(_bytes(value))
    except OSError as error:
        raise unwritable(path, error) from None


def _sync(folder: Path) -> None:
    with suppress(OSError):  # not every system can
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)

"""Beginnings of readers, as they lie in the folder of a checkpoint until they count.

    beginnings/N/about.json        which batch was the last one before it, and who read what then and since
    beginnings/N/B/cut-…           for bucket B: what counts as delivered to whom
    beginnings/N/B/channels-…      channels and their groups
    beginnings/N/B/places          the messages that are taken out and come in again
    beginnings/N/B/own-…, left-…   these, and those whose readers do not read their groups any more
    beginnings/N/B/rows-…          copies of what other readers hold

A beginning counts with the first batch that is planned after it was written. Its number is in the state of a
bucket for which it counts: so it counts once, however often the batch is run. Folders are written whole, and
a later one that no batch has seen replaces the former.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from causet.errors import BadInput
from causet.files import unwritable
from causet.kernels.arrays import Array
from causet.kernels.streams.beginning import Counted, owner_of
from causet.kernels.streams.keys import KEY
from causet.readers import Readers, readers_of
from causet.spark.streams.pack import from_blob, to_blob

CUT, CHANNELS, PLACES, OWN_ROWS, LEFT_ROWS, ROWS = "cut", "channels", "places", "own", "left", "rows"
ABOUT = "about.json"
RANGES = pa.schema(
    [
        *(("owner", pa.binary(KEY)), ("process", pa.binary(KEY))),
        *(("low", pa.int64()), ("high", pa.int64()), ("closed", pa.int64())),
    ]
)
MOST_RANGES = 1 << 20
"""Ranges that are in memory before they are written."""


@dataclass(frozen=True)
class Beginning:
    """A beginning that was written down."""

    folder: str
    number: int
    after: int
    """the last batch that was planned before"""
    before: Readers | None
    """who read what then; None if nothing was read"""
    since: Readers
    """who reads what from then on"""

    def files(self, bucket: int, kind: str) -> Iterator[pa.Table]:
        """The tables of a kind for a bucket, one after the other."""
        for file in sorted((Path(self.folder) / str(bucket)).glob(f"{kind}-*")):
            yield from_blob(file.read_bytes())

    def counted(self, bucket: int) -> Iterator[tuple[Array, Counted]]:
        """What counts as delivered: for each range the key of a reader in a group, and of what."""
        for table in self.files(bucket, CUT):
            owner, process = (_keys(table.column(name)) for name in ("owner", "process"))
            low, high, closed = (table.column(name).to_numpy() for name in ("low", "high", "closed"))
            yield owner, Counted(process, low, high, closed)

    def channels(self, bucket: int) -> Iterator[tuple[Array, Array]]:
        """The keys of channels, and of their groups."""
        for table in self.files(bucket, CHANNELS):
            yield _keys(table.column("channel")), _keys(table.column("group"))

    def places(self, bucket: int) -> Array:
        """The places of the messages that are to be taken out."""
        found = [table.column("place").to_numpy() for table in self.files(bucket, PLACES)]
        return np.concatenate([np.empty(0, np.int64), *found])


def _keys(column: pa.ChunkedArray) -> Array:
    return np.frombuffer(b"".join(column.to_pylist()), f"S{KEY}")


@dataclass
class Beginnings:
    """The folder of beginnings of a checkpoint."""

    folder: Path
    _files: int = field(default=0, repr=False)
    _ranges: dict[int, list[pa.Table]] = field(default_factory=dict, repr=False)
    _waiting: int = field(default=0, repr=False)

    def last(self) -> Beginning | None:
        """The last one that was written, whether it counts already or not."""
        numbers = [int(each.name) for each in self.folder.glob("[0-9]*") if each.name.isdigit()]
        if not numbers:
            return None
        home = self.folder.resolve() / str(max(numbers))
        try:
            found = json.loads((home / ABOUT).read_bytes())
            before, since = found["before"], readers_of(found["since"])
            known = None if before == NOBODY else readers_of(before)
            return Beginning(str(home), max(numbers), int(found["after"]), known, since)
        except (OSError, ValueError, LookupError, TypeError):
            raise BadInput(f"{home} is damaged; begin with a new checkpoint and a new sink") from None

    def ahead(self, last_planned: int) -> Beginning | None:
        """The one that no batch has seen yet."""
        found = self.last()
        return found if found is not None and last_planned <= found.after else None

    def counting(self) -> Beginning | None:
        """The one that a batch may have to count."""
        found = self.last()
        return found if found is not None and any(Path(found.folder).glob("[0-9]*")) else None

    # ------------------------------------------------------------ written

    @property
    def _new(self) -> Path:
        return self.folder / ".new"

    def begin(self) -> None:
        """Begin to write one."""
        shutil.rmtree(self._new, ignore_errors=True)
        try:
            self._new.mkdir(parents=True)
        except OSError as error:
            raise unwritable(self.folder, error) from None
        self._files = 0
        self._ranges, self._waiting = {}, 0

    def channel(self, bucket: int, channel: bytes, group: bytes) -> None:
        """Note which group a channel is of."""
        keys = ([channel], pa.binary(KEY)), ([group], pa.binary(KEY))
        table = pa.Table.from_arrays([pa.array(*each) for each in keys], names=["channel", "group"])
        self.add(bucket, CHANNELS, table)

    def count(self, bucket: int, reader: str, group: Array, counted: Counted) -> None:
        """Note what counts as delivered to a reader in a channel, which is one key."""
        if not len(counted.low):
            return
        rows = len(counted.low)
        owner = owner_of(reader, group).tobytes() * rows
        columns = [
            pa.Array.from_buffers(pa.binary(KEY), rows, [None, pa.py_buffer(owner)]),
            pa.Array.from_buffers(pa.binary(KEY), rows, [None, pa.py_buffer(counted.process.tobytes())]),
            *(pa.array(each) for each in counted[1:]),
        ]
        self._ranges.setdefault(bucket, []).append(pa.Table.from_arrays(columns, schema=RANGES))
        self._waiting += rows
        if self._waiting > MOST_RANGES:
            self._write_ranges()

    def _write_ranges(self) -> None:
        for bucket, tables in self._ranges.items():
            self.add(bucket, CUT, pa.concat_tables(tables))
        self._ranges, self._waiting = {}, 0

    def take_out(self, bucket: int, places: Array) -> None:
        self.add(bucket, PLACES, pa.table({"place": places}))

    def add(self, bucket: int, kind: str, table: pa.Table) -> None:
        """Note rows of a kind."""
        self._files += 1
        home = self._new / str(bucket)
        home.mkdir(exist_ok=True)
        _write(home / f"{kind}-{self._files:09}", to_blob(table))

    def written(self, after: int, before: Readers | None, since: Readers) -> None:
        """From now on it is there."""
        self._write_ranges()
        (self._new / "0").mkdir(exist_ok=True)
        about: Mapping[str, Any] = {
            "after": after,
            "before": NOBODY if before is None else before.as_json(),
            "since": since.as_json(),
        }
        _write(self._new / ABOUT, json.dumps(about).encode())
        last = self.last()
        self._new.rename(self.folder / str(1 if last is None else last.number + 1))

    def prune(self, last_planned: int) -> None:
        """Remove what is not needed any longer, once all batches that were planned are committed: all but the
        number of the last one that counts."""
        last = self.last()
        if last is None:
            return
        with suppress(OSError):
            for home in self.folder.iterdir():
                if home.name != str(last.number):
                    shutil.rmtree(home)
            if last.after < last_planned:
                for bucket in Path(last.folder).glob("[0-9]*"):
                    shutil.rmtree(bucket)

    def withdraw(self) -> None:
        """The query was refused before it began."""
        shutil.rmtree(self.folder, ignore_errors=True)


NOBODY = "nobody"
"""In the place of readers, where there were none."""


def _write(file: Path, data: bytes) -> None:
    try:
        with file.open("wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
    except OSError as error:
        raise unwritable(file, error) from None

"""What stateful operators share: a state with a version, and rows that are held in segments.

The rows of a chunk that stay are kept as one segment, and read again only when one of them leaves; so a
backlog costs nothing while it waits. A row is known by its place: the number of its segment, and its number
in it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Row, SparkSession
from pyspark.sql import types as T
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from causet.errors import BadInput, printable
from causet.kernels.arrays import Array
from causet.kernels.streams.marks import Store
from causet.spark.streams.pack import OUT_BYTES, OUT_ROWS, from_blob, to_blob

VERSION = 3
"""Of the state of `deliver`. Any other version is refused."""
HEAD = (
    T.StructType()
    .add("version", T.IntegerType())
    .add("fixed", T.StringType())
    .add("segment", T.LongType())
    .add("memory", T.BinaryType())
)
SEGMENT = T.StructType().add("segment", T.LongType())
ROWS_OF_SEGMENT = T.StructType().add("rows", T.BinaryType())
"""Schemas of the state. Given as strings, every task would ask the JVM to parse them, in every batch."""
SEGMENT_BITS = 32
ROW_MASK = (1 << SEGMENT_BITS) - 1


_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_ROCKS = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def use_rocks(spark: SparkSession) -> None:
    """An operator keeps several kinds of state, which only RocksDB can hold."""
    if spark.conf.get(_PROVIDER, "") != _ROCKS:
        spark.conf.set(_PROVIDER, _ROCKS)


class Segments:
    """Rows by their places: those of a chunk that has just come, and those that were kept."""

    def __init__(self, store: Store, number: int) -> None:
        self.number = number
        """of the segment that the chunk will become"""
        self._store = store
        self._chunk: pa.Table | None = None

    def begin(self, chunk: pa.Table | None) -> int:
        """Take in the rows of a chunk; the place of the first one."""
        self._chunk = chunk
        return self.number << SEGMENT_BITS

    def taken(self, places: Array) -> pa.Table:
        """The rows at these places, in this order."""
        segments, rows = places >> SEGMENT_BITS, places & ROW_MASK
        which = np.unique(segments)
        tables = [self._segment(int(each)) for each in which]
        if len(tables) == 1:
            return tables[0].take(pa.array(rows))
        # Those that came when the session had another time zone say so in the types of their columns, and
        # those that an earlier release read may have fewer.
        tables = [_fitted(table, tables[-1].schema) for table in tables]
        begins = np.concatenate([[0], np.cumsum([table.num_rows for table in tables])])
        return pa.concat_tables(tables).take(pa.array(begins[np.searchsorted(which, segments)] + rows))

    def _segment(self, number: int) -> pa.Table:
        if number == self.number and self._chunk is not None:
            return self._chunk
        found = self._store.getValue((number,))
        assert found is not None
        return from_blob(found[0])

    def keep(self, before: Array, places: Array) -> None:
        """Keep those rows of the chunk that are held, whose places change to where they are now; and drop the
        segments of which no row is held any longer. Places below 0 are not those of rows."""
        new = np.flatnonzero(places >> SEGMENT_BITS == self.number)
        if len(new):
            kept, which = np.unique(places[new], return_inverse=True)  # a message may have several places
            self._store.updateValue((self.number,), (to_blob(self.taken(kept)),))
            places[new] = (self.number << SEGMENT_BITS) + which.reshape(-1)
            self.number += 1
        for old in np.setdiff1d(before[before >= 0] >> SEGMENT_BITS, places >> SEGMENT_BITS).tolist():
            self._store.removeKey((old,))
        self._chunk = None


def _fitted(table: pa.Table, schema: pa.Schema) -> pa.Table:
    for field in schema:
        if field.name not in table.column_names:
            table = table.append_column(field, pa.nulls(table.num_rows, field.type))
    return table.select(schema.names).cast(schema)


UNREAD_AT, MOST_UNREAD = -1, 1000
"""Where, among the segments of fingerprints, the messages without a reader are counted by their groups; and
how many groups of a bucket are counted one by one, the others together under no name."""


def unread_after(before: bytes | None, more: Mapping[str, int]) -> bytes:
    """These counts and more."""
    whole = Counter(json.loads(before)) if before is not None else Counter[str]()
    whole.update(more)
    rest = sum(whole.pop(name) for name in sorted(whole.keys() - {""})[MOST_UNREAD:])
    whole[""] += rest
    return json.dumps(+whole, sort_keys=True).encode()


def check_version(found: int, read: int) -> None:
    """BadInput if state is of another version than the one that is read."""
    if found != read:
        raise BadInput(
            f"this checkpoint has state of version {found}, and this release reads version {read}: let the "
            "release that wrote it run until nothing is held, then begin with a new checkpoint and a new sink"
        )


class Holder(StatefulProcessor):
    """A stateful operator of one bucket: bytes that it remembers, and segments of rows."""

    def __init__(self, fixed: str, version: int = VERSION) -> None:
        self.fixed = fixed
        """what cannot change between runs of the same checkpoint"""
        self.version = version

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._head = handle.getValueState("head", HEAD)
        self._rows = handle.getMapState("rows", SEGMENT, ROWS_OF_SEGMENT)

    def load(self) -> tuple[bytes | None, Segments]:
        """What was saved, if anything was; BadInput if it is of another version or query."""
        saved = self._head.get()
        if saved is None:
            return None, Segments(self._rows, 0)
        version, fixed, segment, memory = saved
        check_version(version, self.version)
        if fixed != self.fixed:
            raise BadInput(
                f"this checkpoint was made with {fixed}, and this query has {self.fixed}: go on with the "
                "same, or begin with a new checkpoint"
            )
        return memory, Segments(self._rows, segment)

    def save(self, memory: bytes, segments: Segments) -> None:
        self._head.update((self.version, self.fixed, segments.number, memory))

    def close(self) -> None:
        pass


def named_row(row: Mapping[str, Any], *names: str) -> str:
    """Which row it is: where it comes from, and the values of these columns, as far as there are any."""
    known = {name: row.get(name) for name in ("topic", "partition", "offset", *names)}
    return ", ".join(f"{name} {printable(str(value))}" for name, value in known.items() if value is not None)


def as_blobs(table: pa.Table, **about: Any) -> Iterator[Row]:
    """The rows that leave an operator, some at a time."""
    rows = max(1, min(OUT_ROWS, OUT_BYTES * table.num_rows // max(table.nbytes, 1)))
    for begin in range(0, table.num_rows, rows):
        yield Row(rows=to_blob(table.slice(begin, rows)), **about)

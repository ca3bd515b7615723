"""The merge of streams without Spark: its tasks run as they run in the workers, one after the other, on rows
that a test makes, with state in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import Row

from causet.spark.merging_streams import CODE

Message = dict[str, Any]


class Value:
    """A value of Spark's state."""

    def __init__(self) -> None:
        self.now: tuple[Any, ...] | None = None

    def get(self) -> tuple[Any, ...] | None:
        return self.now

    def update(self, new: tuple[Any, ...]) -> None:
        self.now = new


class Map:
    """A map of Spark's state."""

    def __init__(self) -> None:
        self.values: dict[tuple[int], tuple[bytes]] = {}

    def getValue(self, key: tuple[int]) -> Any:
        return self.values.get(key)

    def updateValue(self, key: tuple[int], value: tuple[bytes]) -> None:
        self.values[key] = value

    def removeKey(self, key: tuple[int]) -> None:
        del self.values[key]


class Handle:
    """What Spark hands to the operator of one bucket."""

    def __init__(self) -> None:
        self.head, self.rows = Value(), Map()

    def getValueState(self, name: str, schema: object) -> Value:
        return self.head

    def getMapState(self, name: str, key: object, value: object) -> Map:
        return self.rows


class Left(NamedTuple):
    """What a batch gave: rows in their order, the partition of each, and what the buckets report."""

    rows: list[Message]
    parts: list[int]
    reports: list[Message]


class MergeInMemory:
    """A query that merges: batches in, rows out; every batch finds only what the last one saved."""

    def __init__(self, module: Any, settings: Any) -> None:
        self.module = module
        self.settings = settings
        self.handles = [Handle() for _ in range(settings.buckets)]

    def step(self, shares: Sequence[Sequence[Message]], draw: Random | None = None) -> Left:
        """One batch, of which each worker has a share; blobs of different buckets come in any order."""
        rows: dict[int, list[Row]] = {}
        for share in shares:
            for row in self._packed(share):
                rows.setdefault(row["bucket"], []).append(Row(**row))
        buckets = list(rows)
        if draw is not None:
            draw.shuffle(buckets)
        reports: list[Message] = []
        blobs: dict[int, list[Message]] = {}
        for bucket in buckets:
            merger = self.module.Merger(self.settings)
            merger.init(self.handles[bucket])
            for row in merger.handleInputRows((bucket,), iter(rows[bucket]), None):
                if row["rows"] is None:
                    reports.append(row.asDict())
                else:
                    blobs.setdefault(row["part"], []).append({"slice": row["slice"], "rows": row["rows"]})
        found = [(part, row) for part in sorted(blobs) for row in self._unpacked(blobs[part])]
        return Left([row for _, row in found], [part for part, _ in found], reports)

    def _packed(self, share: Sequence[Message]) -> Iterator[Message]:
        batches = self._table(share).to_batches(max_chunksize=5)
        for batch in self.module.PackByTime(self.settings)(iter(batches)):
            yield from batch.to_pylist()

    def _table(self, share: Sequence[Message]) -> pa.Table:
        names = self.settings.times
        columns = {
            "source": pa.array([each["source"] for each in share], pa.string()),
            "subject": pa.array([each["subject"] for each in share], pa.string()),
            names.rc: pa.array([each["rc"] for each in share], pa.int64()),
            names.r: pa.array([each["r"] for each in share], pa.int64()),
            names.sequence: pa.array([each["sequence"] for each in share], pa.int64()),
            CODE: pa.array([each.get("code") for each in share], pa.int8()),
        }
        return pa.table(columns)

    def _unpacked(self, blobs: list[Message]) -> list[Message]:
        schema = pa.schema([("slice", pa.int64()), ("rows", pa.binary())])
        batch = pa.RecordBatch.from_pylist(blobs, schema=schema)
        found: list[Message] = pa.Table.from_batches(
            list(self.module.UnpackInOrder()(iter([batch])))
        ).to_pylist()
        return found


def message(source: str | None, sequence: int | None, rc: int | None, r: int | None, subject: str) -> Message:
    return {"source": source, "sequence": sequence, "rc": rc, "r": r, "subject": subject}

"""The merge of streams without Spark: its tasks run as they run in the workers, one after the other, on rows
that a test makes, with state in memory. And what it has to give, by its definition."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from random import Random
from types import SimpleNamespace
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import Row

from causet.kernels.streams.fingerprints import fingerprints
from causet.spark.streams.books import Books
from causet.spark.streams.merge import memory, packers, rows, slices
from causet.spark.streams.merge.rows import CODE
from causet.spark.streams.pack import SIZE
from causet.stamp import HEARTBEAT

Message = dict[str, Any]
IS_BEAT = -1
"""The code of a heartbeat."""


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


def merge_parts(made: Mapping[str, Any] | None = None) -> Any:
    """The parts of a merge of streams as one: as they are, or made anew."""
    parts = [each if made is None else made[name] for name, each in MERGER.items()]
    return SimpleNamespace(**{name: value for part in parts for name, value in vars(part).items()})


MERGER = {"merge.rows": rows, "merge.memory": memory, "merge.packers": packers, "merge.slices": slices}


class MergeInMemory:
    """A query that merges: batches in, rows out; every batch finds only what the last one saved.

    Rows have their `code`; or they are judged, at the time of the batch. `more` names further columns."""

    def __init__(self, module: Any, settings: Any, more: Sequence[str] = ()) -> None:
        self.module = module
        self.settings = settings
        self.more = more
        self.handles = [Handle() for _ in range(settings.buckets)]

    def step(
        self,
        shares: Sequence[Sequence[Message]],
        draw: Random | None = None,
        now: int | None = None,
        clock: int | None = None,
    ) -> Left:
        """One batch, of which each worker has a share; blobs of different buckets come in any order. `now` is
        in ticks, and the clock shows ms."""
        rows: dict[int, list[Row]] = {}
        if clock is not None:
            shown = pa.RecordBatch.from_arrays([pa.array([None, clock, clock - 1], pa.int64())], ["ended"])
            for batch in self.module.Wake(self.settings.buckets)(iter([shown])):
                for row in batch.to_pylist():
                    rows.setdefault(row["bucket"], []).append(Row(**row))
        for share in shares:
            for row in self._packed(share, now):
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

    def _packed(self, share: Sequence[Message], now: int | None) -> Iterator[Message]:
        batches = self._table(share).to_batches(max_chunksize=5)
        if now is not None:
            judge = self.module.Judge(self.settings)
            batches = [judge(batch.drop_columns([CODE]), now // 1000) for batch in batches]
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
        for name in self.settings.process:
            columns[name] = pa.array([each.get("process") for each in share], pa.string())
        for name in self.more:
            kind = pa.int64() if name == SIZE else pa.string()
            columns[name] = pa.array([each.get(name) for each in share], kind)
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


def beat(source: str | None, rc: int | None, r: int | None) -> Message:
    subject = f"beat of {source} at {rc}"
    return {**message(source, None, rc, r, subject), "id": subject, "type": HEARTBEAT, "code": IS_BEAT}


# ---------------------------------------------------------------- the merge, by its definition


class Defined:
    """A message is released when the smallest, over live sources, of their largest r exceeds its
    r + c + δ + ε, or the clock does, if that is asked for; those that are released together leave by (r + c,
    r, process, sequence, domain), where the process is the source if there is no other. What has the same
    five as another is a duplicate, or a conflict if the payload is not the same. A heartbeat is released like
    a message, with a status of its own.

    Rows have a `code`: none for a message, IS_BEAT for a heartbeat, another one for what is diverted; and
    `too large` if that is only because the sink does not take it."""

    def __init__(self, settings: Any, payload: Sequence[str] = ("subject",)) -> None:
        self.settings = settings
        self.payload = payload
        self.largest: dict[str, int | None] = dict.fromkeys(settings.sources)
        self.bound: int | None = None
        self.held: list[Message] = []
        self.gone: list[Message] = []
        self.came: list[int] = []
        self.conflicts: list[Message] = []
        self.duplicates = 0

    def slowest(self) -> tuple[int | None, str | None]:
        live = {name: r for name, r in self.largest.items() if name not in self.settings.exclude}
        silent = sorted(name for name, r in live.items() if r is None)
        if silent or not live:
            return None, silent[0] if silent else None
        return min((r, name) for name, r in live.items() if r is not None)

    def fingerprint(self, row: Message) -> int:
        table = pa.table({name: pa.array([row.get(name)], pa.string()) for name in self.payload})
        return int(fingerprints(table, self.payload)[0])

    def step(self, rows: Sequence[Message], clock: int | None = None) -> dict[str, list[Message]]:
        refused = [row for row in rows if row.get("code") not in (None, IS_BEAT)]
        for row in rows:
            if row in refused and not row.get("too large"):
                continue
            before = self.largest.get(row["source"])
            self.largest[row["source"]] = row["r"] if before is None else max(before, row["r"])
        old = self.bound
        smallest, _ = self.slowest()
        if clock is not None and self.settings.by_clock:
            smallest = max(1000 * clock, 0 if smallest is None else smallest)
        if smallest is not None:
            reached = smallest - self.settings.delta - self.settings.epsilon
            self.bound = reached if old is None else max(old, reached)
        late: list[Message] = []
        self.conflicts, self.duplicates = [], 0
        remembered = [each for each in self.gone if old is None or each["rc"] >= old - self.settings.horizon]
        there = (row for row in rows if row.get("code") in (None, IS_BEAT))
        for row in sorted(there, key=self.fingerprint):
            self.came.append(row["rc"])
            same = [each for each in (*remembered, *self.held, *late) if key(each) == key(row)]
            if same and any(each.get(name) != row.get(name) for each in same for name in self.payload):
                self.conflicts.append(row)
            elif same:
                self.duplicates += 1
            elif old is not None and row["rc"] < old:
                late.append(row)
            else:
                self.held.append(row)
        free = [row for row in self.held if self.bound is not None and row["rc"] < self.bound]
        self.held = [row for row in self.held if row not in free]
        self.gone += [*late, *free]
        return {"diverted": [*refused, *self.conflicts], "late": late, "delivered": sorted(free, key=key)}


def key(row: Message) -> tuple[int, int, str, int, str]:
    domain, process = row.get("causaldomain"), row.get("process")
    named = row["source"] if process is None else process
    number = 0 if row.get("code") == IS_BEAT else row["sequence"]
    return row["rc"], row["r"], named, number, "all" if domain is None else domain


def status_of(row: Message, status: str) -> str:
    """What a row leaves as, that is late or delivered as a message."""
    return "heartbeat" if row.get("code") == IS_BEAT else status


def check_books(reports: Sequence[Message], held_before: int) -> int:
    """What was read is somewhere, and nothing is there twice; says how many are held now."""
    names = [
        name for name in reports[0] if name not in ("part", "slice", "rows", "oldest", "blocked", "bound")
    ]
    counts = {name: sum(each[name] for each in reports) for name in names}
    held = int(counts.pop("held"))
    books = Books(held_before, counts, held)
    assert books.balance, str(books)
    return held

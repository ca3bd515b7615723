"""What the tasks of `verify` found, deduplicated, and reported with the ids of messages.

Several groups of columns may find the same delivery too early, and a message that is delivered again is
judged by its first delivery. `settle` decides that: in the driver if there are few findings, else in all
workers, each of which has all findings of its processes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from causet.kernels.arrays import Array
from causet.kernels.logs.pages import processes_of
from causet.kernels.logs.verify import AGAIN, EARLY, NEVER, STRANGER
from causet.spark.skeleton.blobs import Batches
from causet.spark.skeleton.census import RANK, Census
from causet.spark.skeleton.census import field as column

Chain = Sequence[str]
"""Ids of messages, each of which causally precedes the next."""

FOUND = "what tinyint, delivery long, process string, send long, missing long"
"""Events by their numbers. `process` is where it happened, or should have."""
FEW = 200_000
"""Findings that the driver settles itself, at most."""
PAIRS = "process string, message string"
VIOLATIONS = "process string, delivered string, before string, because array<string>"


def settle(first: Array, found: pa.Table) -> pa.Table:
    """Every fault once: deliveries that came too early, each with the smallest send that should have come
    first, and pairs (process, send) of what is delivered again, not addressed there, or never delivered."""
    what, delivery, send, missing = (
        found.column(name).to_numpy() for name in ("what", "delivery", "send", "missing")
    )
    process = processes_of(first, delivery)

    def by_pair(rows: Array) -> tuple[Array, Array]:
        """The first delivery of each pair (process, send), and all others."""
        rows = rows[np.lexsort((delivery[rows], send[rows], process[rows]))]
        again = (np.diff(send[rows], prepend=-1) == 0) & (np.diff(process[rows], prepend=-1) == 0)
        return rows[~again], rows[again]

    strangers, later = by_pair(np.flatnonzero(what == STRANGER))
    again = np.concatenate([np.flatnonzero(what == AGAIN), later])
    repeated, _ = by_pair(again)
    early = np.flatnonzero(what == EARLY)
    early = early[~np.isin(delivery[early], delivery[again])]
    early = early[np.lexsort((missing[early], delivery[early]))]
    early = early[np.diff(delivery[early], prepend=-1) != 0]
    never = np.flatnonzero(what == NEVER)
    taken = [(EARLY, early), (AGAIN, repeated), (STRANGER, strangers), (NEVER, never)]
    kinds = np.concatenate([np.full(len(rows), kind, np.int8) for kind, rows in taken])
    kept = found.take(pa.array(np.concatenate([rows for _, rows in taken])))
    return kept.set_column(0, "what", pa.array(kinds))


def ids_of(numbered: DataFrame, census: Census, sends: Iterable[int]) -> dict[int, str]:
    """The messages that these events sent."""
    numbers = np.unique(np.fromiter(sends, np.int64))
    if not len(numbers):
        return {}
    process = processes_of(census.first, numbers)
    wanted = pa.table(
        {
            "number": numbers,
            "sender": pa.array(census.processes, pa.string()).take(pa.array(process)),
            "sent": numbers - census.first[process] + 1,
        }
    )
    table = numbered.sparkSession.createDataFrame(wanted)
    found = _sends(numbered).join(F.broadcast(table), ["sender", "sent"]).select("number", "message")
    return dict(zip(*(values.to_pylist() for values in found.toArrow().columns), strict=True))


def _sends(numbered: DataFrame) -> DataFrame:
    return numbered.where(column(numbered, "kind") == "send").select(
        F.col("process").alias("sender"),
        F.col(RANK).alias("sent"),
        column(numbered, "message").alias("message"),
    )


class Findings(ABC):
    """Each fault once."""

    @abstractmethod
    def count(self, what: int) -> int: ...

    @abstractmethod
    def first_early(self, most: int) -> list[tuple[int, int]]:
        """The first deliveries that came too early, each with the send of its message."""

    @property
    @abstractmethod
    def sends(self) -> Iterable[int]:
        """Events whose messages have to be known before anything can be reported."""

    @abstractmethod
    def violations(self, ids: Mapping[int, str], proofs: Mapping[int, Chain]) -> DataFrame:
        """Deliveries that came too early, in their order. Those that have a chain get its source as the
        message that should have come first."""

    @abstractmethod
    def pairs(self, what: int, ids: Mapping[int, str]) -> DataFrame:
        """(process, message), in that order."""


@dataclass(frozen=True)
class FewFindings(Findings):
    """Settled, in the driver."""

    numbered: DataFrame
    settled: pa.Table

    @cached_property
    def _rows(self) -> dict[int, list[dict[str, Any]]]:
        rows: dict[int, list[dict[str, Any]]] = {}
        for row in self.settled.to_pylist():
            rows.setdefault(row["what"], []).append(row)
        return rows

    def count(self, what: int) -> int:
        return len(self._rows.get(what, []))

    def first_early(self, most: int) -> list[tuple[int, int]]:
        return [(row["delivery"], row["send"]) for row in self._rows.get(EARLY, [])[:most]]

    @property
    def sends(self) -> Iterable[int]:
        return [row[name] for rows in self._rows.values() for row in rows for name in ("send", "missing")]

    def violations(self, ids: Mapping[int, str], proofs: Mapping[int, Chain]) -> DataFrame:
        rows = []
        for row in self._rows.get(EARLY, []):
            because = proofs.get(row["delivery"])
            before = because[0] if because else ids[row["missing"]]
            rows.append((row["process"], ids[row["send"]], before, because))
        return self._frame(rows, VIOLATIONS, ["process", "delivered", "before", "because"])

    def pairs(self, what: int, ids: Mapping[int, str]) -> DataFrame:
        rows = [(row["process"], ids[row["send"]]) for row in self._rows.get(what, [])]
        return self._frame(sorted(rows), PAIRS, ["process", "message"])

    def _frame(self, rows: Sequence[tuple[Any, ...]], schema: str, names: Sequence[str]) -> DataFrame:
        lists = {"because": pa.list_(pa.string())}
        columns = {
            name: pa.array([row[place] for row in rows], lists.get(name, pa.string()))
            for place, name in enumerate(names)
        }
        return self.numbered.sparkSession.createDataFrame(pa.table(columns), schema)


@dataclass(frozen=True)
class ManyFindings(Findings):
    """Settled by all workers: `settled` has what, delivery, process, and both sends as (sender, sent) and
    (first, missing)."""

    numbered: DataFrame
    settled: DataFrame

    @cached_property
    def _counts(self) -> dict[int, int]:
        return {row.what: row["count"] for row in self.settled.groupBy("what").count().collect()}

    def count(self, what: int) -> int:
        return self._counts.get(what, 0)

    def first_early(self, most: int) -> list[tuple[int, int]]:
        rows = self._of(EARLY).orderBy("delivery").limit(most).select("delivery", "send").collect()
        return [(row.delivery, row.send) for row in rows]

    @property
    def sends(self) -> Iterable[int]:
        return ()

    def _of(self, what: int) -> DataFrame:
        return self.settled.where(F.col("what") == what).drop("what")

    def violations(self, ids: Mapping[int, str], proofs: Mapping[int, Chain]) -> DataFrame:
        rows = self._with_id(self._of(EARLY), "sender", "sent", "delivered")
        rows = self._with_id(rows, "first", "missing", "before")
        columns = {"delivery": pa.array(proofs, pa.int64()), "because": pa.array(proofs.values())}
        chains = self.settled.sparkSession.createDataFrame(
            pa.table(columns), "delivery long, because array<string>"
        )
        rows = rows.join(F.broadcast(chains), "delivery", "left").orderBy("delivery")
        nearest = F.coalesce(F.get("because", F.lit(0)), F.col("before"))
        return rows.select("process", "delivered", nearest.alias("before"), "because")

    def pairs(self, what: int, ids: Mapping[int, str]) -> DataFrame:
        rows = self._with_id(self._of(what), "sender", "sent", "message")
        return rows.select("process", "message").orderBy("process", "message")

    def _with_id(self, rows: DataFrame, process: str, rank: str, name: str) -> DataFrame:
        """Adds the id of the message that was sent there."""
        ids = _sends(self.numbered).select(
            F.col("sender").alias(process), F.col("sent").alias(rank), F.col("message").alias(name)
        )
        return rows.join(ids, [process, rank])


def settled_by_workers(numbered: DataFrame, census: Census, found: DataFrame) -> ManyFindings:
    """The findings of a process all meet in one worker."""
    schema = (
        "what tinyint, delivery long, process string, send long, sender string, sent long, first string, "
        "missing long"
    )
    task = SettleTask(census.processes, census.first)
    return ManyFindings(numbered, found.repartition("process").mapInArrow(task, schema).persist())


@dataclass(frozen=True)
class SettleTask:
    processes: tuple[str, ...]
    first: Array

    def __call__(self, batches: Batches) -> Batches:
        held = list(batches)
        if not held:
            return
        rows = settle(self.first, pa.Table.from_batches(held))
        sender, sent = self._place(rows.column("send"))
        first, missing = self._place(rows.column("missing"))
        columns = {
            **{name: rows.column(name) for name in ("what", "delivery", "process", "send")},
            "sender": sender,
            "sent": sent,
            "first": first,
            "missing": missing,
        }
        yield from pa.table(columns).to_batches()

    def _place(self, numbers: Any) -> tuple[Any, Any]:
        """(process, rank from 1) of events."""
        events = numbers.to_numpy()
        process = processes_of(self.first, events)
        names = pa.array(self.processes, pa.string()).take(pa.array(process))
        return names, pa.array(events - self.first[process] + 1)

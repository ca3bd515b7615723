"""`verify()`: does every process deliver in causal order? Every delivery that came too early, and why.

The columns of senders are spread over as many tasks as memory wants; each sees the whole skeleton and judges
the messages of its senders. What they find is told in the order of (process, delivery).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from causet.formats.execution import Fault
from causet.kernels.chains import Known, shortest_chains
from causet.kernels.pages import Pages
from causet.kernels.verify import AGAIN, EARLY, STRANGER, still_expected, verify_columns
from causet.spark.census import RANK, Census, take_census
from causet.spark.census import field as column
from causet.spark.faults import LOG_FAULTS, bad_input, log_faults
from causet.spark.layout import is_sound, lay_out
from causet.spark.memory import memory_allowed
from causet.spark.skeleton import (
    DELIVERIES,
    LOST_DELIVERY,
    LOST_PARENT,
    MESSAGES,
    UNSENT_AGAIN,
    Batches,
    Notes,
    Targets,
    for_groups,
    read_pieces,
    skeleton,
)

Array = np.ndarray[Any, Any]

NEVER = 3
"""A finding beside those of the kernel: never delivered where it was addressed."""
COLUMN_BYTES = 64 << 20
"""Knowledge of all processes about the senders of one task, at most."""
FEWEST_COLUMNS, MOST_COLUMNS = 8, 512
CHAINS = 100
"""Violations that are told with a chain, unless another number is asked for."""
CANDIDATES = 50_000
"""Messages on shortest chains that are looked at for one violation. Where there are more, some are left out,
and of equally short chains not always the one with the smallest ids is told."""
FINDINGS = "what tinyint, delivery long, process string, sender string, sent long, first string, missing long"
CHAIN_ROWS = "delivery long, layer int, process string, at long, sender string, sent long"


@dataclass(frozen=True)
class Verdict:
    """What was found. Every DataFrame is in an order that depends on the execution alone."""

    status: str
    """`invalid`, `unknown` (nothing found, but the log has faults), `vacuous` (no delivery) or `valid`"""
    events: int
    messages: int
    deliveries: int
    violations: DataFrame
    """process, delivered, before, because (null beyond as many as were asked for)"""
    duplicates: DataFrame
    """process, message: delivered more than once"""
    strangers: DataFrame
    """process, message: delivered where not addressed"""
    undelivered: DataFrame
    """process, message: addressed and never delivered"""
    counts: dict[str, int]
    """rows of each of these DataFrames; among the duplicates also those that nobody sent"""
    senders: dict[str, str]
    """who sent the messages in the chains"""
    faults: tuple[Fault, ...]


def verify(events: DataFrame, chains: int = CHAINS) -> Verdict:
    """Judge an execution; its events may stand in any order, in any number of partitions."""
    numbered, census = take_census(events)
    blobs = skeleton(numbered, census, deliveries=True)
    senders = np.flatnonzero(np.array(census.sends)) if census.sends else np.empty(0, np.int64)
    width = min(MOST_COLUMNS, max(FEWEST_COLUMNS, COLUMN_BYTES // (4 * max(len(census.counts), 1))))
    groups = max(1, -(-len(senders) // width))
    task = VerifyTask(census.processes, census.first, census.floats, np.array_split(senders, groups))
    found = for_groups(blobs, groups).mapInArrow(task, f"{FINDINGS}, note string").persist()
    notes = Notes()
    for row in found.where(F.col("note").isNotNull()).orderBy("what").select("note", "what").collect():
        if row.what == 0:  # every group saw the same skeleton
            notes.merge(row.note)
    error = bad_input(notes, numbered, census)
    if error is not None:
        found.unpersist()
        raise error
    findings = _Findings(found.where(F.col("note").isNull()).drop("note"), numbered)
    sizes: dict[int, int] = {
        row.what: row["count"] for row in findings.found.groupBy("what").count().collect()
    }
    kinds = {kind: LOG_FAULTS[kind] for kind in (LOST_PARENT, LOST_DELIVERY)}
    faults = log_faults(notes, numbered, census, kinds)
    early = findings.early(bool(sizes.get(AGAIN) or sizes.get(STRANGER)))
    counts = {
        "violations": early.count() if sizes.get(EARLY) else 0,
        "duplicates": findings.repeated().distinct().count()
        if sizes.get(AGAIN) or sizes.get(STRANGER)
        else 0,
        "strangers": findings.strangers().distinct().count() if sizes.get(STRANGER) else 0,
        "undelivered": sizes.get(NEVER, 0),
    }
    counts["duplicates"] += notes.counts.get(UNSENT_AGAIN, 0)
    deliveries = notes.counts.get(DELIVERIES, 0)
    bad = counts["violations"] or counts["duplicates"] or counts["strangers"]
    proofs: dict[int, tuple[_Step, ...]] = {}
    if counts["violations"] and chains:
        first = early.orderBy("delivery").limit(chains).collect()
        proofs = _proofs(blobs, numbered, census, first)
    return Verdict(
        status="invalid" if bad else "unknown" if faults else "valid" if deliveries else "vacuous",
        events=census.events,
        messages=notes.counts.get(MESSAGES, 0),
        deliveries=deliveries,
        violations=findings.violations(early, proofs),
        duplicates=findings.named(findings.repeated()),
        strangers=findings.named(findings.strangers()),
        undelivered=findings.named(findings.undelivered()),
        counts=counts,
        senders={step.message: step.sender for chain in proofs.values() for step in chain},
        faults=faults,
    )


@dataclass(frozen=True)
class _Findings:
    """Findings as the tasks gave them, turned into what people read."""

    found: DataFrame
    numbered: DataFrame

    def _of(self, what: int) -> DataFrame:
        return self.found.where(F.col("what") == what).drop("what")

    def _again(self) -> DataFrame:
        """Deliveries of what the process had delivered before; where a message is not addressed, every one
        after the first."""
        firsts = (
            self._of(STRANGER).groupBy("process", "sender", "sent").agg(F.min("delivery").alias("delivery"))
        )
        later = self._of(STRANGER).join(firsts.select("delivery"), "delivery", "left_anti")
        return self._of(AGAIN).unionByName(later)

    def early(self, some_again: bool) -> DataFrame:
        """One row per delivery that came too early: of what the groups of columns found, the missing message
        of the first sender. Whether a message came too early, its first delivery decides."""
        rows = self._of(EARLY)
        if some_again:
            rows = rows.join(self._again().select("delivery"), "delivery", "left_anti")
        return (
            rows.groupBy("delivery", "process", "sender", "sent")
            .agg(F.min(F.struct("first", "missing")).alias("least"))
            .select("delivery", "process", "sender", "sent", "least.first", "least.missing")
        )

    def repeated(self) -> DataFrame:
        return self._again().select("process", "sender", "sent")

    def strangers(self) -> DataFrame:
        return self._of(STRANGER).select("process", "sender", "sent")

    def undelivered(self) -> DataFrame:
        return self._of(NEVER).select("process", "sender", "sent")

    def named(self, rows: DataFrame) -> DataFrame:
        """(process, message), each once."""
        told = self._with_id(rows.distinct(), "sender", "sent", "message")
        return told.select("process", "message").orderBy("process", "message")

    def violations(self, early: DataFrame, proofs: dict[int, tuple[_Step, ...]]) -> DataFrame:
        """Those that have a chain get its source as the message that should have come first."""
        told = self._with_id(early, "sender", "sent", "delivered")
        told = self._with_id(told, "first", "missing", "before")
        rows = [(delivery, [step.message for step in chain]) for delivery, chain in proofs.items()]
        table = self.found.sparkSession.createDataFrame(rows, "delivery long, because array<string>")
        told = told.join(F.broadcast(table), "delivery", "left").orderBy("delivery")
        nearest = F.coalesce(F.get("because", F.lit(0)), F.col("before"))
        return told.select("process", "delivered", nearest.alias("before"), "because")

    def _with_id(self, rows: DataFrame, process: str, rank: str, name: str) -> DataFrame:
        """Adds the id of the message that was sent there."""
        ids = _sends(self.numbered).select(
            F.col("sender").alias(process), F.col("sent").alias(rank), F.col("message").alias(name)
        )
        return rows.join(ids, [process, rank])


def _sends(numbered: DataFrame) -> DataFrame:
    return numbered.where(column(numbered, "kind") == "send").select(
        F.col("process").alias("sender"),
        F.col(RANK).alias("sent"),
        column(numbered, "message").alias("message"),
    )


def _proofs(
    blobs: DataFrame, numbered: DataFrame, census: Census, early: list[Row]
) -> dict[int, tuple[_Step, ...]]:
    """For each of these violations, by its delivery, a shortest chain; of several, the one with the smallest
    ids, read from the source on."""
    number_of = {name: number for number, name in enumerate(census.processes)}
    wanted = [(row.delivery, int(census.first[number_of[row.sender]]) + row.sent - 1) for row in early]
    task = ChainTask(census.processes, census.first, census.floats, wanted)
    rows = for_groups(blobs, 1).mapInArrow(task, CHAIN_ROWS).persist()
    ids = _sends(numbered)
    told = rows.join(ids, ["sender", "sent"]).collect()
    rows.unpersist()
    ends = numbered.sparkSession.createDataFrame(
        sorted({(row.sender, row.sent) for row in early}), "sender string, sent long"
    )
    end_ids = {
        (row.sender, row.sent): row.message
        for row in ids.join(F.broadcast(ends), ["sender", "sent"]).collect()
    }
    layers: dict[int, dict[int, list[_Step]]] = {}
    for row in told:
        step = _Step(row.process, row.at, row.sender, row.sent, row.message)
        layers.setdefault(row.delivery, {}).setdefault(row.layer, []).append(step)
    return {
        row.delivery: _smallest_chain(
            layers[row.delivery], _Step("", 0, row.sender, row.sent, end_ids[row.sender, row.sent])
        )
        for row in early
        if row.delivery in layers
    }


class _Step(NamedTuple):
    """A message became known to a process by its event number `at`."""

    process: str
    at: int
    sender: str
    sent: int
    message: str


def _smallest_chain(layers: dict[int, list[_Step]], end: _Step) -> tuple[_Step, ...]:
    """Read from the source on, always the smallest id among those that the last one directly precedes."""

    def by_id(step: _Step) -> str:
        return step.message

    at = max(layers)
    chain = [min(layers[at], key=by_id)]
    while at:
        knows: dict[str, int] = {}
        for step in layers[at]:
            if step.message == chain[-1].message:
                knows[step.process] = min(step.at, knows.get(step.process, step.at))
        at -= 1
        following = layers[at] if at else [end]
        after = (step for step in following if step.sender in knows and knows[step.sender] < step.sent)
        chain.append(min(after, key=by_id))
    return tuple(chain)


@dataclass(frozen=True)
class _Task:
    """What the tasks of this module have in common: the execution, laid out."""

    processes: tuple[str, ...]
    first: Array
    floats: bool

    def _laid_out(self, batches: Batches, notes: Notes, targets: Targets) -> Pages:
        kind = np.float64 if self.floats else np.int64
        pieces = read_pieces(batches, kind, notes, targets)
        return lay_out(self.first, self.floats, pieces, memory_allowed())

    def _place(self, events: Array) -> tuple[Array, Array]:
        """(process, rank from 1) of events."""
        process = np.searchsorted(self.first, events, side="right") - 1
        return process, events - self.first[process] + 1

    def _names(self, numbers: Array, strangers: dict[str, int] | None = None) -> Any:
        return pa.array([*self.processes, *(strangers or {})], pa.string()).take(pa.array(numbers))


@dataclass(frozen=True)
class VerifyTask(_Task):
    """Judges the messages of one group of senders."""

    groups: list[Array]

    def __call__(self, batches: Batches) -> Batches:
        notes, targets = Notes(), Targets(len(self.processes))
        group = 0

        def looked_at() -> Iterator[pa.RecordBatch]:
            nonlocal group
            for batch in batches:
                if batch.num_rows:
                    group = batch.column(1)[0].as_py()
                yield batch

        pages = self._laid_out(looked_at(), notes, targets)
        try:
            if is_sound(pages, notes):
                yield from self._findings(pages, self.groups[group], targets)
            yield self._note(notes, group)
        finally:
            pages.close()

    def _findings(self, pages: Pages, senders: Array, targets: Targets) -> Batches:
        column_of = np.full(len(self.processes), -1)
        column_of[senders] = 0
        first = self.first

        def ours(sends: Array) -> Array:
            mine: Array = column_of[np.searchsorted(first, sends, side="right") - 1] == 0
            return mine

        names = len(self.processes) + len(targets.strangers)
        columns = here = None
        for found, columns, here in verify_columns(pages, senders, targets.of(ours), names):  # noqa: B007
            if len(found):
                process = self._place(found[:, 1])[0]
                yield self._rows(found[:, 0], found[:, 1], process, found[:, 2], found[:, 4], targets)
        assert columns is not None and here is not None
        sends, never = still_expected(columns, here)
        if len(sends):
            yield self._rows(np.full(len(sends), NEVER), np.zeros(len(sends)), never, sends, sends, targets)

    def _rows(
        self, what: Array, delivery: Array, process: Array, send: Array, missing: Array, targets: Targets
    ) -> pa.RecordBatch:
        sender, sent = self._place(send)
        first, its_rank = self._place(missing)
        return pa.RecordBatch.from_arrays(
            [
                pa.array(what.astype(np.int8)),
                pa.array(delivery.astype(np.int64)),
                self._names(process, targets.strangers),
                self._names(sender),
                pa.array(sent),
                self._names(first),
                pa.array(its_rank),
                pa.nulls(len(what), pa.string()),
            ],
            names=["what", "delivery", "process", "sender", "sent", "first", "missing", "note"],
        )

    def _note(self, notes: Notes, group: int) -> pa.RecordBatch:
        nothing = {name: pa.nulls(1, pa.string()) for name in ("process", "sender", "first")}
        columns = {
            "what": pa.array([min(group, 1)], pa.int8()),
            "delivery": pa.nulls(1, pa.int64()),
            "process": nothing["process"],
            "sender": nothing["sender"],
            "sent": pa.nulls(1, pa.int64()),
            "first": nothing["first"],
            "missing": pa.nulls(1, pa.int64()),
            "note": pa.array([notes.to_json()]),
        }
        return pa.RecordBatch.from_pydict(columns)


@dataclass(frozen=True)
class ChainTask(_Task):
    """Finds the shortest chains of some violations, given as (delivery, send)."""

    wanted: list[tuple[int, int]]

    def __call__(self, batches: Batches) -> Batches:
        targets = Targets(len(self.processes))
        pages = self._laid_out(batches, Notes(), targets)
        try:
            to_all = targets.of(lambda sends: np.ones(len(sends), np.bool_))
            owners = np.repeat(np.arange(len(to_all.sends)), np.diff(to_all.ends, prepend=0))
            for delivery, send in self.wanted:
                me = pages.process_of(delivery)
                addressed = np.unique(to_all.sends[owners[to_all.targets == me]])
                for number, layer in enumerate(shortest_chains(pages, delivery, send, addressed), start=1):
                    yield self._rows(delivery, number, layer)
        finally:
            pages.close()

    def _rows(self, delivery: int, number: int, layer: Known) -> pa.RecordBatch:
        event, send = layer.event[:CANDIDATES], layer.send[:CANDIDATES]
        process, at = self._place(event)
        sender, sent = self._place(send)
        return pa.RecordBatch.from_arrays(
            [
                pa.array(np.full(len(event), delivery, np.int64)),
                pa.array(np.full(len(event), number, np.int32)),
                self._names(process),
                pa.array(at),
                self._names(sender),
                pa.array(sent),
            ],
            names=["delivery", "layer", "process", "at", "sender", "sent"],
        )

"""`verify()`: does every process deliver in causal order? Every delivery that came too early, and why.

The columns of senders are cut into as many groups as memory wants, and the groups given to tasks; each sees
the whole skeleton and judges the messages of its senders, one group after the other. What they find is
settled (`findings`), proved (`proofs`), and told in the order of (process, delivery).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from causet.formats.execution import Fault
from causet.kernels.logs.pages import Pages
from causet.kernels.logs.verify import AGAIN, EARLY, STRANGER, still_expected, verify_columns
from causet.spark.batch.chains import Step, chain_layers, smallest_chain
from causet.spark.batch.findings import (
    FEW,
    FINDINGS,
    NEVER,
    FewFindings,
    Findings,
    ids_of,
    settle,
    settled_by_workers,
)
from causet.spark.skeleton.budget import memory_allowed
from causet.spark.skeleton.census import Census, take_census
from causet.spark.skeleton.faults import LOG_FAULTS, bad_input, log_faults
from causet.spark.skeleton.skeleton import (
    DELIVERIES,
    LOST_DELIVERY,
    LOST_PARENT,
    MESSAGES,
    UNSENT_AGAIN,
    Batches,
    Notes,
    Skeleton,
    is_small,
    read_pieces,
)
from causet.spark.skeleton.targets import Targets
from causet.spark.skeleton.task import is_sound, lay_out
from causet.verdict import judged_status

Array = np.ndarray[Any, Any]

COLUMN_BYTES = 64 << 20
"""Knowledge of all processes about the senders of one task, at most."""
FEWEST_COLUMNS, MOST_COLUMNS = 8, 512
MOST_TARGETS = 3_000_000
"""Targets of the messages of one task's senders, about 60 bytes each."""
CHAINS = 100
"""Violations that are told with a chain, unless another number is asked for."""
KINDS = {"violations": EARLY, "duplicates": AGAIN, "strangers": STRANGER, "undelivered": NEVER}


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
    numbered, census = take_census(events, targets=True)
    groups = column_groups(census)
    task = partial(VerifyTask, census.processes, census.first, census.floats, groups)
    with Skeleton(numbered, census, deliveries=True) as skeleton:
        found = skeleton.shared_by(task, len(groups), f"{FINDINGS}, note string")
        findings, notes = _settled(numbered, census, found)
        early = findings.first_early(chains)
        layers = chain_layers(skeleton, early) if early else {}
    on_chains = {step.send for each in layers.values() for steps in each.values() for step in steps}
    ids = ids_of(numbered, census, [*findings.sends, *on_chains, *(send for _, send in early)])
    proofs = {}
    for delivery, send in early:
        end = Step(0, 0, census.process_of(send), send)
        proofs[delivery] = smallest_chain(layers[delivery], end, ids)
    said = {delivery: [ids[step.send] for step in chain] for delivery, chain in proofs.items()}
    kinds = {kind: LOG_FAULTS[kind] for kind in (LOST_PARENT, LOST_DELIVERY)}
    faults = log_faults(notes, numbered, census, kinds)
    counts = {name: findings.count(what) for name, what in KINDS.items()}
    counts["duplicates"] += notes.counts.get(UNSENT_AGAIN, 0)
    deliveries = notes.counts.get(DELIVERIES, 0)
    bad = counts["violations"] or counts["duplicates"] or counts["strangers"]
    return Verdict(
        status=judged_status(bad, faults, deliveries),
        events=census.events,
        messages=notes.counts.get(MESSAGES, 0),
        deliveries=deliveries,
        violations=findings.violations(ids, said),
        duplicates=findings.pairs(AGAIN, ids),
        strangers=findings.pairs(STRANGER, ids),
        undelivered=findings.pairs(NEVER, ids),
        counts=counts,
        senders={
            ids[step.send]: census.processes[step.sender] for chain in proofs.values() for step in chain
        },
        faults=faults,
    )


def _settled(numbered: DataFrame, census: Census, found: DataFrame) -> tuple[Findings, Notes]:
    """What the tasks found and noted; BadInput if the events are no execution."""
    if not is_small(census):
        found = found.persist()
    noted = F.col("note").isNotNull()
    table = found.toArrow() if is_small(census) else found.where(noted).toArrow()
    notes, size = _noted(table)
    error = bad_input(notes, numbered, census)
    if error is None and size > FEW:
        return settled_by_workers(numbered, census, found.where(~noted).drop("note")), notes
    if error is None and not is_small(census):
        table = found.toArrow()
    found.unpersist()
    if error is not None:
        raise error
    rows = table.filter(table.column("note").is_null()).drop_columns("note")
    return FewFindings(numbered, settle(census.first, rows)), notes


def _noted(table: pa.Table) -> tuple[Notes, int]:
    """What was noted, and how many findings there are."""
    notes, size = Notes(), 0
    for row in table.filter(table.column("note").is_valid()).to_pylist():
        size += row["send"]
        if row["what"] == 0:  # every task saw the same skeleton
            notes.merge(row["note"])
    return notes, size


def column_groups(census: Census) -> list[Array]:
    """The senders, in groups whose columns, and the targets of whose messages, one task can hold."""
    width = min(MOST_COLUMNS, max(FEWEST_COLUMNS, COLUMN_BYTES // (4 * max(len(census.counts), 1))))
    groups: list[list[int]] = [[]]
    targets = 0
    for sender in np.flatnonzero(census.sends).tolist():
        targets += census.targets[sender]
        if len(groups[-1]) == width or (targets > MOST_TARGETS and groups[-1]):
            groups.append([])
            targets = census.targets[sender]
        groups[-1].append(sender)
    return [np.array(group, np.int64) for group in groups]


@dataclass(frozen=True)
class VerifyTask:
    """Checks every n-th group of senders, n being the number of tasks."""

    processes: tuple[str, ...]
    first: Array
    floats: bool
    groups: list[Array]
    tasks: int

    def __call__(self, batches: Batches) -> Batches:
        notes = Notes()
        task = 0

        def looked_at() -> Iterator[pa.RecordBatch]:
            nonlocal task
            for batch in batches:
                if batch.num_rows:
                    task = batch.column(1)[0].as_py()
                yield batch

        size = 0
        with Targets(len(self.processes)) as targets:
            pieces = read_pieces(looked_at(), np.float64 if self.floats else np.int64, notes, targets)
            with lay_out(self.first, self.floats, pieces, memory_allowed()) as pages:
                if is_sound(pages, notes):
                    for group in self.groups[task :: self.tasks]:
                        for found in self._findings(pages, group, targets):
                            size += found.num_rows
                            yield found
        yield self._note(notes, task, size)

    def _findings(self, pages: Pages, senders: Array, targets: Targets) -> Batches:
        column_of = np.full(len(self.processes), -1)
        column_of[senders] = 0
        first = self.first

        def ours(sends: Array) -> Array:
            mine: Array = column_of[np.searchsorted(first, sends, side="right") - 1] == 0
            return mine

        names = pa.array([*self.processes, *targets.strangers], pa.string())
        columns = here = None
        for found, columns, here in verify_columns(pages, senders, targets.of(ours), len(names)):  # noqa: B007
            if len(found):
                process = np.searchsorted(first, found[:, 1], side="right") - 1
                yield self._rows(found[:, 0], found[:, 1], names, process, found[:, 2], found[:, 4])
        assert columns is not None and here is not None
        sends, never = still_expected(columns, here)
        if len(sends):
            yield self._rows(np.full(len(sends), NEVER), np.zeros(len(sends)), names, never, sends, sends)

    def _rows(
        self, what: Array, delivery: Array, names: Any, process: Array, send: Array, missing: Array
    ) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays(
            [
                pa.array(what.astype(np.int8)),
                pa.array(delivery.astype(np.int64)),
                names.take(pa.array(process)),
                pa.array(send.astype(np.int64)),
                pa.array(missing.astype(np.int64)),
                pa.nulls(len(what), pa.string()),
            ],
            names=["what", "delivery", "process", "send", "missing", "note"],
        )

    def _note(self, notes: Notes, task: int, size: int) -> pa.RecordBatch:
        """A row of its own: whether this is the first task, and in `send` how many findings it has."""
        columns = {
            "what": pa.array([min(task, 1)], pa.int8()),
            "delivery": pa.nulls(1, pa.int64()),
            "process": pa.nulls(1, pa.string()),
            "send": pa.array([size], pa.int64()),
            "missing": pa.nulls(1, pa.int64()),
            "note": pa.array([notes.to_json()]),
        }
        return pa.RecordBatch.from_pydict(columns)

"""`verify()`: does every process deliver in causal order? Every delivery that came too early, and why.

The columns of senders are cut into groups that fit into memory, and the groups given to tasks; each sees the
whole skeleton and judges the messages of its senders, one group after the other. What they find is
deduplicated (`findings`), proved (`chains`), and reported in the order of (process, delivery).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from causet.check.agreement import Disagreement
from causet.formats.execution import Fault
from causet.kernels.arrays import Array
from causet.kernels.logs.own import own_copies, with_own
from causet.kernels.logs.pages import processes_of
from causet.kernels.logs.verify import AGAIN, EARLY, NEVER, STRANGER, verify_columns
from causet.spark.batch.agreement import contradictions
from causet.spark.batch.chains import Step, chain_layers, smallest_chain
from causet.spark.batch.findings import (
    FEW,
    FOUND,
    FewFindings,
    Findings,
    ids_of,
    settle,
    settled_by_workers,
)
from causet.spark.read.arrow import Table
from causet.spark.skeleton.census import Census, take_census
from causet.spark.skeleton.faults import LOG_FAULTS, log_faults
from causet.spark.skeleton.notes import (
    DELIVERIES,
    FINDINGS,
    LOST_DELIVERY,
    LOST_PARENT,
    MESSAGES,
    UNSENT_AGAIN,
    Notes,
)
from causet.spark.skeleton.skeleton import Skeleton, is_small
from causet.spark.skeleton.task import Execution, Kernel
from causet.verdict import judged_status

COLUMN_BYTES = 64 << 20
"""Memory for what all processes know about the senders of one task, at most."""
FEWEST_COLUMNS, MOST_COLUMNS = 8, 512
MOST_TARGETS = 3_000_000
"""Targets of the messages of one task's senders, about 60 bytes each."""
CHAINS = 100
"""Violations that are reported with a chain, unless another number is asked for."""
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
    """process, delivered, before, because (null beyond the number of chains asked for)"""
    duplicates: DataFrame
    """process, message: delivered more than once"""
    strangers: DataFrame
    """process, message: delivered where not addressed"""
    undelivered: DataFrame
    """process, message: addressed and never delivered"""
    counts: dict[str, int]
    """rows of each of these DataFrames; duplicates include those of messages without a send"""
    senders: dict[str, str]
    """who sent the messages in the chains"""
    faults: tuple[Fault, ...]
    disagreements: tuple[Disagreement, ...] | None = None
    """cycles in the union of all delivery orders, at most 100; None if that was not asked for"""


def verify(events: DataFrame, chains: int = CHAINS, one_order: bool = False) -> Verdict:
    """Judge an execution; its events may stand in any order, in any number of partitions.

    With `one_order` all processes must also deliver in one order, own copies that are delivered by events
    included; deliveries without a send are left out.
    """
    return verify_files(events, None, chains, one_order)


def verify_files(events: DataFrame, table: Table | None, chains: int, one_order: bool) -> Verdict:
    """The same, where `table` may have the same events, for workers to read themselves."""
    numbered, census = take_census(events, True, table)
    kernel = VerifyKernel(census.processes, column_groups(census))
    with Skeleton(numbered, census, deliveries=True, keep=True) as skeleton:
        findings, notes = _settled(skeleton, kernel)
        counts = {name: findings.count(what) for name, what in KINDS.items()}
        early = findings.first_early(chains)
        layers = chain_layers(skeleton, early) if early else {}
        cycles = contradictions(skeleton) if one_order else []
    on_chains = {step.send for each in layers.values() for steps in each.values() for step in steps}
    in_cycles = (send for cycle in cycles for _, send in cycle)
    ids = ids_of(numbered, census, [*findings.sends, *on_chains, *(send for _, send in early), *in_cycles])
    proofs = {}
    for delivery, send in early:
        end = Step(0, 0, census.process_of(send), send)
        proofs[delivery] = smallest_chain(layers[delivery], end, ids)
    because = {delivery: [ids[step.send] for step in chain] for delivery, chain in proofs.items()}
    kinds = {kind: LOG_FAULTS[kind] for kind in (LOST_PARENT, LOST_DELIVERY)}
    faults = log_faults(notes, numbered, census, kinds)
    counts["duplicates"] += notes.counts.get(UNSENT_AGAIN, 0)
    deliveries = notes.counts.get(DELIVERIES, 0)
    bad = counts["violations"] or counts["duplicates"] or counts["strangers"] or cycles
    return Verdict(
        status=judged_status(bad, faults, deliveries),
        events=census.events,
        messages=notes.counts.get(MESSAGES, 0),
        deliveries=deliveries,
        violations=findings.violations(ids, because),
        duplicates=findings.pairs(AGAIN, ids),
        strangers=findings.pairs(STRANGER, ids),
        undelivered=findings.pairs(NEVER, ids),
        counts=counts,
        senders={
            ids[step.send]: census.processes[step.sender] for chain in proofs.values() for step in chain
        },
        faults=faults,
        disagreements=tuple(
            Disagreement(tuple(ids[send] for _, send in cycle), tuple(process for process, _ in cycle))
            for cycle in cycles
        )
        if one_order
        else None,
    )


def _settled(skeleton: Skeleton, kernel: VerifyKernel) -> tuple[Findings, Notes]:
    """What the tasks found and noted; BadInput if the events are not an execution."""
    numbered, census = skeleton.numbered, skeleton.census
    if is_small(census):
        table, notes = skeleton.collect(kernel)
        if notes.counts.get(FINDINGS, 0) <= FEW:
            return FewFindings(numbered, settle(census.first, table)), notes
    rows, notes = skeleton.run(kernel)
    if notes.counts.get(FINDINGS, 0) <= FEW:
        return FewFindings(numbered, settle(census.first, rows.toArrow())), notes
    return settled_by_workers(numbered, census, rows), notes


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
class VerifyKernel(Kernel):
    """Checks every n-th group of senders, n being the number of tasks."""

    processes: tuple[str, ...]
    groups: list[Array]
    rows = FOUND

    @property
    def parts(self) -> int:
        return len(self.groups)

    def run(self, execution: Execution) -> Iterator[Sequence[Any]]:
        pages, targets = execution.pages, execution.targets
        names = pa.array([*self.processes, *targets.strangers], pa.string())
        own = own_copies(pages)
        for senders in self.groups[execution.task :: execution.tasks]:
            ours = partial(_sent_by, senders, pages.first)
            addressed = with_own(targets.of(ours), own[ours(own)], pages.first)
            for found in verify_columns(pages, senders, addressed, len(names)):
                if len(found):
                    execution.notes.add(FINDINGS, len(found))
                    what, delivery, process, send, missing = found.T
                    yield [what, delivery, names.take(pa.array(process)), send, missing]


def _sent_by(senders: Array, first: Array, sends: Array) -> Array:
    """Which of these sends are events of these processes."""
    return np.isin(processes_of(first, sends), senders)

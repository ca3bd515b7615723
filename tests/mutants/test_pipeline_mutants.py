"""Each rule of the kernels and of the tasks around them, dropped or weakened: random logs must show it.

The tasks run here as they run in Spark's workers, one after the other, on rows that a test makes; the kernels
run as plain Python, so that a mutant need not be compiled. A mutant is a change to one line of one module.
What is compared are the definitions: repaired times, positions and blocks word by word, verdicts by the
oracle.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from causet.check.oracle import judge
from causet.model import Event
from tests.helpers.logs import many_logs, random_log
from tests.helpers.mutating import Change, modules
from tests.helpers.orders import Defined, by_definition

MODULES = (
    "logs.tables",
    "logs.waiting",
    "logs.causal_pass",
    "logs.levels",
    "logs.blocks",
    "logs.verify",
    "skeleton.pack",
    "skeleton.match",
    "skeleton.task",
    "batch.findings",
    "batch.order",
    "batch.verify",
)


class Log:
    """The rows of a log, and its numbers, as the census and Spark make them."""

    def __init__(self, events: Sequence[Event]) -> None:
        self.events = sorted(events, key=lambda event: (event.process, event.seq))
        self.processes = sorted({event.process for event in events})
        counts = [sum(event.process == name for event in events) for name in self.processes]
        self.first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        in_order = [
            event.seq == number - self.first[self.processes.index(event.process)] + 1
            for number, event in enumerate(self.events)
        ]
        self.own_ids = not all(in_order) or any(e.id != f"{e.process}#{e.seq}" for e in events)

    def batch(self) -> pa.RecordBatch:
        kinds = ["local", "send", "receive", "deliver"]
        events = self.events
        return pa.RecordBatch.from_pydict(
            {
                "number": pa.array(range(len(events)), pa.int64()),
                "time": pa.array([event.time for event in events], pa.int64()),
                "id": pa.array([event.id for event in events]),
                "parents": pa.array([list(event.parents) for event in events], pa.list_(pa.string())),
                "kind": pa.array([kinds.index(event.kind) for event in events], pa.int8()),
                "message": pa.array([event.message for event in events], pa.string()),
                "control": pa.array([event.control for event in events]),
                "to": pa.array([list(event.to or ()) for event in events], pa.list_(pa.string())),
            }
        )

    def blobs(self, made: dict[str, Any], deliveries: bool) -> list[pa.RecordBatch]:
        packer = made["skeleton.pack"].Packer(
            names=pa.array(self.processes, pa.string()),
            first=self.first,
            floats=False,
            own_ids=self.own_ids,
            parents=True,
            messages=True,
            deliveries=deliveries,
            buckets=3,
            key=7,
        )
        packed = packer(iter([self.batch()]))
        return list(made["skeleton.match"].Matcher(deliveries, self.first)(packed))


def answered(
    made: dict[str, Any], log: Log, kernel: Any, blobs: list[pa.RecordBatch]
) -> tuple[pa.Table, dict[str, int]]:
    """The rows of a kernel's answer, and the counts of its notes."""
    task = made["skeleton.task"]
    found = pa.Table.from_batches(list(task.Task(kernel, log.first, np.int64, 1)(iter(blobs))))
    (noted,) = found.column(task.NOTES).drop_null().to_pylist()
    return found.filter(found.column(task.NOTES).is_null()), json.loads(noted)["counts"]


def ordered(made: dict[str, Any], log: Log) -> list[tuple[str, Any, int]]:
    """(id, repaired, block) in the order of positions."""
    kernel = made["batch.order"].LevelsKernel(floats=False, blocks=True)
    chunks, counts = answered(made, log, kernel, log.blobs(made, deliveries=False))
    block, repaired, position = (
        [value for chunk in chunks.column(name).to_pylist() for value in chunk]
        for name in ("block", "repaired", "position")
    )
    assert sorted(position) == list(range(len(log.events)))
    assert counts["blocks"] == max(block)
    rows = zip(position, (event.id for event in log.events), repaired, block, strict=True)
    return [(id, time, longest) for _, id, time, longest in sorted(rows, key=lambda row: row[0])]


def shown(defined: Sequence[Defined]) -> list[tuple[str, Any, int]]:
    return [(each.id, each.repaired, each.block) for each in defined]


def check_order(made: dict[str, Any], seed: int) -> None:
    events = random_log(seed)
    assert ordered(made, Log(events)) == shown(by_definition(events))


LEVELS = [
    *(Event("a", seq, time=time) for seq, time in ((1, 1), (2, 1), (3, 5))),
    *(Event("b", seq, time=time) for seq, time in ((1, 5), (2, 5))),
    Event("c", 1, time=5),
]
"""The third event of a has two causes, but none with its own time: its level is 1, as that of the first of b
and of c. The second of b has the level 2."""


def check_levels(made: dict[str, Any], _: int) -> None:
    found = [id for id, _, _ in ordered(made, Log(LEVELS))]
    assert found == ["a#1", "a#2", "a#3", "b#1", "c#1", "b#2"]


def check_verdict(made: dict[str, Any], seed: int) -> None:
    """The messages of every sender judged by a task of their own."""
    log = Log(random_log(seed))
    blobs = log.blobs(made, deliveries=True)
    tables = []
    notes: dict[str, int] = {}
    for sender in range(len(log.processes)):
        kernel = made["batch.verify"].VerifyKernel(tuple(log.processes), [np.array([sender])])
        rows, notes = answered(made, log, kernel, blobs)
        assert rows.num_rows == notes.get("findings", 0)
        tables.append(rows)
    findings = made["batch.findings"]
    settled = findings.settle(log.first, pa.concat_tables(tables)).to_pylist()
    expected = judge(log.events)

    def pairs(what: int) -> list[tuple[str, str | None]]:
        return sorted(
            (row["process"], log.events[row["send"]].message) for row in settled if row["what"] == what
        )

    assert pairs(findings.EARLY) == sorted((v.process, v.delivered) for v in expected.violations)
    known = [pair for pair in expected.duplicates if pair not in expected.unsent]
    assert pairs(findings.AGAIN) == sorted(known)
    assert pairs(findings.STRANGER) == sorted(expected.strangers)
    assert pairs(findings.NEVER) == sorted(expected.undelivered)
    assert notes.get("messages", 0) == expected.messages
    assert notes.get("deliveries", 0) == expected.deliveries
    assert notes.get("unknown parent", 0) == len(expected.unknown_parents)


CHECKS: dict[str, Callable[[dict[str, Any], int], None]] = {
    "order": check_order,
    "levels": check_levels,
    "verdict": check_verdict,
}
SEEDS = range(300)


@pytest.mark.parametrize("check", CHECKS)
def test_unchanged_they_do_what_the_definitions_say(check: str) -> None:
    assert len(judge(many_logs(SEEDS)).violations) > 100
    with modules(None, MODULES) as made, np.errstate(over="ignore"):
        for seed in SEEDS:
            CHECKS[check](made, seed)


MUTANTS: list[Any] = []


def mutant(check: str, module: str, line: str, becomes: str, name: str) -> None:
    MUTANTS.append(pytest.param(check, Change(module, line, becomes), id=name.replace(" ", "-")))


mutant(
    "order",
    "logs.levels",
    "_lift(latest, level, p, view.time[its_place], view.word[its_place])",
    "_lift(latest, level, p, view.time[its_place], 0)",
    "levels of other processes do not count",
)
mutant(
    "order",
    "logs.levels",
    "_lift(latest, level, p, view.time[its_place], view.word[its_place])",
    "pass",
    "other processes do not count",
)
mutant("order", "logs.levels", "level[p] += 1", "level[p] = max(level[p], 1)", "a level is no larger")
mutant(
    "order",
    "logs.levels",
    "_lift(latest, level, p, view.time[place], 0)",
    "latest[p] = view.time[place]",
    "repaired times fall",
)
mutant(
    "levels",
    "logs.levels",
    """
        latest[p] = time
        level[p] = its_level
""",
    """
        latest[p] = time
        level[p] = max(level[p], its_level)
""",
    "the level counts what was earlier in the process",
)
mutant(
    "order",
    "logs.levels",
    "elif time == latest[p]:",
    "else:",
    "the level counts causes that are earlier than others",
)
mutant(
    "levels",
    "logs.levels",
    "if time > latest[p]:",
    "level[p] = max(level[p], its_level)\n    if time > latest[p]:\n        latest[p] = time\n    if False:",
    "the block in place of the level",
)
mutant("order", "logs.blocks", "block = max(block, blocks[links[at]])", "pass", "blocks know one process")
mutant(
    "order", "logs.blocks", "0 if e == first[processes[i]] else blocks[e - 1]", "0", "blocks know links only"
)
mutant(
    "order",
    "logs.levels",
    "if view.word[its_place] == 0:",
    "if False:",
    "an event does not wait for its causes",
)
mutant(
    "order",
    "logs.waiting",
    "process = waiting.next_watcher[process]",
    "process = NONE",
    "one of several that wait is woken",
)
mutant(
    "order",
    "logs.waiting",
    "waiting.next_watcher[process] = waiting.watcher[at]",
    "waiting.next_watcher[process] = NONE",
    "the last that waits is remembered",
)
mutant(
    "levels",
    "logs.causal_pass",
    "(level[q] < its_level or (level[q] == its_level and q < p))",
    "q < p",
    "the level is left out of the position",
)
mutant(
    "order",
    "logs.causal_pass",
    "(level[q] == its_level and q < p)",
    "(level[q] == its_level and q > p)",
    "equal levels go by processes backwards",
)
mutant(
    "order",
    "logs.causal_pass",
    "if repaired[q] < its_time or (",
    "if repaired[q] > its_time or (",
    "late events first",
)
mutant(
    "order",
    "skeleton.pack",
    "known = (process != ABSENT) & (seq <= count[process])",
    "known = process != ABSENT",
    "a parent beyond the last event is known",
)
mutant(
    "order",
    "skeleton.match",
    "effects, cause_events = events[met], events[causes]",
    "effects, cause_events = events[met][1:], events[causes][1:]",
    "a reference is lost",
)
mutant(
    "verdict",
    "logs.verify",
    "covered = flying.stamp[slot, column] - (1 if column == own else 0)",
    "covered = flying.stamp[slot, column]",
    "a message precedes itself",
)
mutant(
    "verdict",
    "logs.verify",
    "covered = flying.stamp[slot, column] - (1 if column == own else 0)",
    "covered = flying.stamp[slot, column] - 1",
    "the last message of another does not precede",
)
mutant(
    "verdict",
    "logs.verify",
    "columns.knows[p, :] = np.maximum(columns.knows[p, :], flying.stamp[slot, :])",
    "pass",
    "deliveries teach nothing",
)
mutant(
    "verdict",
    "logs.verify",
    "columns.knows[p, column] = number",
    "pass",
    "a sender forgets what it sent",
)
mutant(
    "verdict",
    "logs.verify",
    "if columns.queue[first] <= covered:",
    "if columns.queue[first] < covered:",
    "the newest message known does not count",
)
mutant(
    "verdict",
    "logs.verify",
    "if columns.arrived[begin + low]:",
    "if False:",
    "a duplicate goes unseen",
)
mutant(
    "verdict",
    "logs.verify",
    "columns.arrived[begin + low] = True",
    "pass",
    "a delivery is not crossed off",
)
mutant(
    "verdict",
    "logs.verify",
    "_find(columns, STRANGER, e, p, send, send)",
    "pass",
    "a stranger goes unseen",
)
mutant(
    "verdict",
    "logs.verify",
    "    while columns.head[pair] < columns.tail[pair] and columns.arrived[begin + columns.head[pair]]:",
    "    if columns.head[pair] < columns.tail[pair] and columns.arrived[begin + columns.head[pair]]:",
    "what came early is waited for again",
)
mutant(
    "verdict",
    "logs.verify",
    "continue  # the same target twice",
    "pass",
    "a target named twice counts twice",
)
mutant(
    "verdict",
    "skeleton.match",
    "np.logical_or.at(hidden, causes, control[met])",
    "pass",
    "control is known at the send alone",
)
mutant(
    "verdict",
    "skeleton.match",
    "delivered = (what[met] == NAMES_DELIVERED) & ~hidden[causes]",
    "delivered = what[met] == NAMES_DELIVERED",
    "control messages are judged",
)
mutant(
    "verdict",
    "batch.findings",
    "early = early[~np.isin(delivery[early], delivery[again])]",
    "",
    "a second delivery is too early again",
)
mutant(
    "verdict",
    "batch.findings",
    "again = np.concatenate([np.flatnonzero(what == AGAIN), later])",
    "again = np.flatnonzero(what == AGAIN)",
    "strangers may repeat",
)
mutant(
    "verdict",
    "batch.findings",
    "early = early[np.diff(delivery[early], prepend=-1) != 0]",
    "",
    "a delivery is too early once per sender",
)


@pytest.mark.parametrize(("check", "change"), MUTANTS)
def test_the_mutant_is_killed(check: str, change: Change) -> None:
    with modules(change, MODULES) as made, np.errstate(over="ignore"):
        for seed in SEEDS:
            try:
                CHECKS[check](made, seed)
            except (AssertionError, ArithmeticError, LookupError, ValueError, KeyError):
                return
    pytest.fail("survived")


def test_links_do_not_depend_on_the_order_in_which_blobs_arrive() -> None:
    """Spark compares what a task gave before an executor died with what it gives when it is run again."""
    from causet.spark.skeleton.match import Matcher
    from causet.spark.skeleton.pack import Packer

    events = many_logs(range(40))
    log = Log(events)
    packer = Packer(pa.array(log.processes, pa.string()), log.first, False, True, True, True, True, 3, 7)
    rows = log.batch()
    packed = [blob for at in range(0, rows.num_rows, 100) for blob in packer(iter([rows.slice(at, 100)]))]
    assert len(packed) > 30

    def matched(blobs: list[pa.RecordBatch]) -> list[tuple[object, ...]]:
        found = pa.Table.from_batches(list(Matcher(True, log.first)(iter(blobs)))).to_pylist()
        return sorted((row["what"], row["bucket"], row["blob"]) for row in found)

    expected = matched(packed)
    for seed in range(5):
        assert matched(Random(seed).sample(packed, len(packed))) == expected

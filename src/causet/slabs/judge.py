"""Whether the slabs together are the order of the whole log, and what is wrong with the log.

Each bucket of claims is judged by itself; verdicts are added up.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from causet.kernels.arrays import Array
from causet.kernels.logs.keys import find_keys
from causet.kernels.logs.pages import ABSENT
from causet.kernels.logs.windows import find_runs
from causet.slabs.claims import Claims
from causet.slabs.order import largest
from causet.slabs.plan import Plan, Time
from causet.slabs.window import DELIVERY, PARENT, RECEPTION

EXAMPLES = 10
"""Faults of each kind that are named; the others are counted."""

Hole = tuple[str, int, int]
"""Missing seqs of a process: from, to."""
Lost = tuple[str, int, int]
"""An event with a reference to nothing: its process, its seq, and which of its references."""


@dataclass
class Verdict:
    """What some claims say."""

    events: int = 0
    processes: int = 0
    ahead: Time = 0
    """a reach with which no cause would have been ahead of a window; 0 if none was"""
    repeated: int = 0
    """events, ids or messages that are there twice"""
    holes: int = 0
    first_holes: list[Hole] = field(default_factory=list)
    lost: dict[int, int] = field(default_factory=dict)
    """references to nothing, by what they are"""
    first_lost: dict[int, list[Lost]] = field(default_factory=dict)

    def add(self, other: Verdict) -> None:
        self.events += other.events
        self.processes += other.processes
        self.ahead = max(self.ahead, other.ahead)
        self.repeated += other.repeated
        self.holes += other.holes
        self.first_holes = _least([*self.first_holes, *other.first_holes])
        for what, count in other.lost.items():
            self.lost[what] = self.lost.get(what, 0) + count
            self.first_lost[what] = _least([*self.first_lost.get(what, []), *other.first_lost[what]])


def _least(found: list[Hole]) -> list[Hole]:
    """The first ones; those that came as JSON are lists."""
    return sorted((name, one, other) for name, one, other in found)[:EXAMPLES]


def judge(claims: Claims, plan: Plan) -> Verdict:
    """The verdict on the claims of one bucket."""
    verdict = Verdict()
    runs = _sorted_runs(claims.runs)
    _judge_runs(runs, plan, verdict)
    keys = [claims.keys.column(name).to_numpy() for name in ("low", "high", "slab")]
    asked = claims.asked
    by_number = asked.column("number").to_numpy() > 0
    wanted = [asked.column(name).to_numpy() for name in ("low", "high", "slab")]
    found, same = find_keys(keys[0], keys[1], wanted[0], wanted[1])
    verdict.repeated += int(np.count_nonzero(same != np.arange(len(same))))
    home = np.where(found == ABSENT, ABSENT, keys[2][found] if len(keys[2]) else ABSENT)
    if by_number.any():
        home[by_number] = _homes(runs, asked, by_number)
    _judge_asked(home, asked, plan, verdict)
    return verdict


def _sorted_runs(runs: pa.Table) -> pa.Table:
    """By process and seq; where two begin with the same, by all else, so that the verdict is the same."""
    order = np.lexsort([runs.column(name).to_numpy() for name in ("slab", "last", "first", "low", "high")])
    return runs.take(pa.array(order))


def _judge_runs(runs: pa.Table, plan: Plan, verdict: Verdict) -> None:
    low, high, first, last, first_time, last_time = (
        runs.column(name).to_numpy() for name in ("low", "high", "first", "last", "first_time", "last_time")
    )
    if not len(low):
        return
    begins = np.append(True, (np.diff(low) != 0) | (np.diff(high) != 0))
    before = np.where(begins, 0, np.append(0, last[:-1]))
    verdict.events = int((last - first + 1).sum())
    verdict.processes = int(begins.sum())
    verdict.repeated = int(np.count_nonzero(first <= before))
    holes = np.flatnonzero(first > before + 1)
    verdict.holes = len(holes)
    names = runs.column("process")
    verdict.first_holes = _least_holes(names, before, first, holes)
    # The last event of a run is a direct predecessor of the first one of the next.
    follows = np.flatnonzero(~begins)
    drops = follows[last_time[follows - 1] > first_time[follows]]
    drop = largest(last_time[drops - 1], first_time[drops])
    if drop > plan.reach:
        verdict.ahead = drop


def _least_holes(names: Any, before: Array, first: Array, holes: Array) -> list[Hole]:
    """The first ones by process; those of one process follow each other."""
    found: list[Hole] = []
    if not len(holes):
        return found
    its_names = names.take(pa.array(holes)).to_pylist()
    of = sorted(range(len(holes)), key=lambda i: (its_names[i], int(before[holes[i]])))[:EXAMPLES]
    return [(its_names[i], int(before[holes[i]]) + 1, int(first[holes[i]]) - 1) for i in of]


def _homes(runs: pa.Table, asked: pa.Table, wanted: Array) -> Array:
    """For each event that is asked for by process and seq the slab where it is at home, or ABSENT."""
    low, high, first, last, slab = (
        runs.column(name).to_numpy() for name in ("low", "high", "first", "last", "slab")
    )
    its_low, its_high = (asked.column(name).to_numpy()[wanted] for name in ("low", "high"))
    number = asked.column("number").to_numpy()[wanted]
    if not len(low):
        return np.full(len(number), ABSENT, np.int64)
    begins = np.flatnonzero(np.append(True, (np.diff(low) != 0) | (np.diff(high) != 0)))
    process, _ = find_keys(low[begins], high[begins], its_low, its_high)
    run = find_runs(np.append(begins, len(low)), first, last, process, number)
    return np.where(run == ABSENT, ABSENT, slab[run])


def _judge_asked(home: Array, asked: pa.Table, plan: Plan, verdict: Verdict) -> None:
    """References that a window could not resolve are old, or lost, or ahead."""
    slab = asked.column("slab").to_numpy()
    above = home >= slab
    for one, other in np.unique(np.stack([slab[above], home[above]]), axis=1).T.tolist():
        verdict.ahead = max(verdict.ahead, plan.distance(one, other))
    what = asked.column("what").to_numpy()
    hidden = asked.column("control").to_numpy() & (what != PARENT)  # a control message may lack its send
    lost = (home == ABSENT) & ~hidden
    for each in (PARENT, DELIVERY, RECEPTION):
        of = np.flatnonzero(lost & (what == each))
        if len(of):
            verdict.lost[each] = len(of)
            verdict.first_lost[each] = _least_lost(asked.take(pa.array(of)))


def _least_lost(asked: pa.Table) -> list[Lost]:
    rows = zip(*(asked.column(name).to_pylist() for name in ("process", "seq", "place")), strict=True)
    return sorted(rows)[:EXAMPLES]

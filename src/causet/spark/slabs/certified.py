"""A plan for a log, and the certificate that it gives the order: guessed from a sample, run, then widened.

Rule: what is accepted is the order, certainly. What cannot be ordered in slabs (events without a time, rows
that are no events, events that are moved by more than a slab, a cycle, duplicates) is left to the pass over
the whole log, which also has the words for it.
"""

from __future__ import annotations

import json
import secrets
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from pyspark.sql import DataFrame

from causet.kernels.arrays import Array
from causet.slabs.certificate import Done, is_sound, is_whole, needed_reach
from causet.slabs.judge import Verdict
from causet.slabs.plan import Plan, Time, even_cuts
from causet.spark.slabs.tasks import JUDGED, ORDERED, OWN_IDS, REFUSED, SCHEMA, Judge, verdict_of

SLAB_ROWS = 500_000
"""Rows of a slab, about."""
SLAB_BYTES = 256 << 20
"""And their bytes, if they are that many."""
MARGIN = 2
"""The first guess of the reach, in corrections that the sample has."""
NARROW = 64
"""And at least this part of a slab: that costs next to nothing."""
TRIES = 3
WIDEST, MOST = 4, 3
"""A window has at most so many times the rows of a slab; all windows, of the log. More does not pay."""
BUCKET_ROWS = 4_000_000
"""Events whose claims meet in one task, about."""

Noted = dict[str, list[dict[str, Any]]]
"""The notes of all tasks, by their kinds."""


@dataclass(frozen=True)
class Sampled:
    """What a sample says of a log."""

    times: Array
    correction: Time
    """the largest that was seen"""
    own_ids: bool
    """whether events have ids of their own"""


class Log(ABC):
    """Events that Spark can reach."""

    events: int
    row_bytes: int
    floats: bool

    @abstractmethod
    def sample(self) -> Sampled | None:
        """None if some rows are no events."""

    @abstractmethod
    def run(self, plan: Plan, buckets: int) -> Noted:
        """Cut, order and judge."""

    @abstractmethod
    def discard(self) -> None:
        """Remove what a run left that is not accepted."""


@dataclass(frozen=True)
class Certified:
    """What the run of a plan found that gives the order."""

    done: Sequence[Done]
    """in the order of slabs"""
    verdict: Verdict

    @property
    def largest(self) -> float:
        """The share of the largest task in all that the tasks looked at."""
        seen = [each.seen for each in self.done]
        return max(seen) / sum(seen)


def certified(log: Log, slab_rows: int | None = None) -> Certified | None:
    """None if the log is to be ordered in another way."""
    slab_rows = slab_rows or max(1, min(SLAB_ROWS, SLAB_BYTES // max(1, log.row_bytes)))
    sample = log.sample()
    if sample is None or not len(sample.times):
        return None
    own_ids = sample.own_ids
    cuts = even_cuts(sample.times, max(1, -(-log.events // slab_rows)))
    reach = max(sample.correction * MARGIN, _width(cuts) / NARROW, 1)
    for _ in range(TRIES):
        plan = Plan(cuts, reach if log.floats else int(reach), log.floats, own_ids, secrets.randbits(62))
        if not _pays(plan, sample.times, log.events, slab_rows):
            return None
        notes = log.run(plan, max(1, log.events // BUCKET_ROWS))
        done = sorted(Done(*each["done"]) for each in notes.get(ORDERED, []))
        verdict = verdict_of(notes.get(JUDGED, []))
        if REFUSED in notes or not is_sound(done, verdict):
            break
        needed = needed_reach(done, verdict)
        if OWN_IDS in notes:
            own_ids = True
        elif needed > plan.reach:
            reach = needed * MARGIN
        elif is_whole(done, verdict, log.events):
            return Certified(done, verdict)
        else:
            break
        log.discard()
    log.discard()
    return None


def judged(claims: DataFrame, plan: Plan, buckets: int) -> Noted:
    """The verdict on all claims, and all other notes."""
    found = claims.repartitionById(buckets, "part").mapInArrow(Judge(plan), SCHEMA)
    return noted(found.select("blob").toArrow().column("blob").to_pylist())


def noted(blobs: Iterable[bytes]) -> Noted:
    notes: Noted = {}
    for blob in blobs:
        facts = json.loads(blob)
        notes.setdefault(facts["note"], []).append(facts)
    return notes


def _width(cuts: Sequence[Time]) -> float:
    """Of a slab, in time."""
    return float(np.median(np.diff(np.array(cuts, np.float64)))) if len(cuts) > 1 else 0.0


def _pays(plan: Plan, times: Array, events: int, slab_rows: int) -> bool:
    """Whether windows are small enough, judged by the sample."""
    times = np.sort(times)
    seen = np.searchsorted(times, plan.ends, "right") - np.searchsorted(times, plan.begins, "left")
    share = seen / len(times)
    return bool(share.max() * events <= WIDEST * slab_rows and share.sum() <= MOST)

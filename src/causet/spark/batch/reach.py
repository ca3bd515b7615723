"""The tasks behind `explain()`: what is before, after and beside an event, in numbers of events."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from causet.kernels.logs.pages import ABSENT, Pages
from causet.kernels.logs.reach import (
    Near,
    direct_causes,
    future_of,
    nearest_causes,
    never_delivered,
    past_of,
    shortest_chain,
    taken_together,
    while_waiting,
)
from causet.spark.batch.explanation import AFTER, BEFORE, CONCURRENT, SAME
from causet.spark.skeleton.budget import memory_allowed
from causet.spark.skeleton.census import Census
from causet.spark.skeleton.faults import bad_input
from causet.spark.skeleton.skeleton import (
    Batches,
    Notes,
    read_pieces,
    with_skeleton,
)
from causet.spark.skeleton.targets import Targets
from causet.spark.skeleton.task import is_sound, lay_out

Array = np.ndarray[Any, Any]


MOST_DIRECT = 1_000
"""Direct causes or effects that are named; the others are counted."""
MOST_STEPS = 1_000
"""Steps of a chain that are told, those in process order taken together; of more, the middle is left out."""
MOST_AWAITED = 100
"""Messages for which one waited that are named; the others are counted."""


# ---------------------------------------------------------------- the task


@dataclass(frozen=True)
class ReachTask:
    """The one task: blobs in, one JSON value out: notes, and what was found."""

    processes: tuple[str, ...]
    first: Array
    floats: bool

    def __call__(self, batches: Batches) -> Batches:
        notes = Notes()
        kind = np.float64 if self.floats else np.int64
        with Targets(len(self.processes)) as targets:
            pieces = read_pieces(batches, kind, notes, targets)
            with lay_out(self.first, self.floats, pieces, memory_allowed()) as pages:
                found = self.found(pages, targets) if is_sound(pages, notes) else None
        answer = json.dumps({"notes": notes.to_json(), "found": found})
        yield pa.RecordBatch.from_arrays([pa.array([answer], pa.string())], names=["answer"])

    def found(self, pages: Pages, targets: Targets) -> dict[str, Any]:
        raise NotImplementedError


def ask(
    numbered: DataFrame, census: Census, task: ReachTask, deliveries: bool = False
) -> tuple[dict[str, Any], Notes]:
    """What the task finds, and its notes; BadInput if the events are no execution."""
    (row,) = with_skeleton(numbered, census, task, "answer string", deliveries=deliveries).collect()
    answer = json.loads(row.answer)
    notes = Notes()
    notes.merge(answer["notes"])
    error = bad_input(notes, numbered, census)
    if error is not None:
        raise error
    return answer["found"], notes


@dataclass(frozen=True)
class ConeTask(ReachTask):
    """Past and future of one event, as one number per process each."""

    event: int

    def found(self, pages: Pages, targets: Targets) -> dict[str, Any]:
        until, since = past_of(pages, self.event), future_of(pages, self.event).since
        return {"until": until.tolist(), "since": since.tolist()}


@dataclass(frozen=True)
class EventTask(ReachTask):
    """All about one event, and the message whose send and (receive, deliver) pairs are given."""

    event: int
    nearest: int
    send: int
    waits: tuple[tuple[int, int], ...]

    def found(self, pages: Pages, targets: Targets) -> dict[str, Any]:
        until = past_of(pages, self.event)
        causes = direct_causes(pages, self.event)
        near = nearest_causes(pages, self.event, self.nearest)
        waits = self._waited(pages, targets) if self.waits else []
        ahead = future_of(pages, self.event, self.nearest, MOST_DIRECT)
        return {
            "causes": _side(int((until - pages.first[:-1]).sum()) - 1, len(causes), causes, near),
            "effects": _side(
                int((pages.first[1:] - ahead.since).sum()) - 1,
                ahead.direct_count,
                ahead.direct,
                ahead.nearest,
            ),
            "concurrent": self._concurrent(until, ahead.since),
            "waits": waits,
        }

    def _concurrent(self, until: Array, since: Array) -> list[int]:
        """The first of each process, then the second, and so on."""
        found: list[int] = []
        at = until
        while len(found) < self.nearest and (at < since).any():
            found += at[at < since][: self.nearest - len(found)].tolist()
            at = at + 1
        return found

    def _waited(self, pages: Pages, targets: Targets) -> list[dict[str, Any]]:
        until = past_of(pages, self.send, only_deliveries=True)
        send, first = self.send, self.first

        def precede(sends: Array) -> Array:
            process = np.searchsorted(first, sends, side="right") - 1
            found: Array = (sends < until[process]) & (sends != send)
            return found

        addressed = targets.of(precede)
        owners = np.repeat(addressed.sends, np.diff(addressed.ends, prepend=0))
        found = []
        for receive, deliver in self.waits:
            here = np.unique(owners[addressed.targets == pages.process_of(receive)])
            found.append(
                _held(pages, receive, here) if deliver == ABSENT else _kept(pages, receive, deliver, here)
            )
        return found


def _side(count: int, direct_count: int, direct: list[int], nearest: list[Near]) -> dict[str, Any]:
    return {"count": count, "direct_count": direct_count, "direct": direct[:MOST_DIRECT], "nearest": nearest}


def _kept(pages: Pages, receive: int, deliver: int, precede: Array) -> dict[str, Any]:
    """For what a message waited that was delivered."""
    waited = while_waiting(pages, receive, deliver, precede)
    pairs = np.stack([waited.awaited, waited.sends], axis=1)
    return {
        "delivers": True,
        "events": waited.events,
        "deliveries": waited.deliveries,
        "awaited": pairs[:MOST_AWAITED].tolist(),
        "awaited_count": len(pairs),
        "missing": [],
        "missing_count": 0,
    }


def _held(pages: Pages, receive: int, precede: Array) -> dict[str, Any]:
    """For what a message waits that was never delivered."""
    missing = never_delivered(pages, pages.process_of(receive), precede)
    return {
        "delivers": missing is not None,  # or this process tells of receptions only
        "events": 0,
        "deliveries": 0,
        "awaited": [],
        "awaited_count": 0,
        "missing": [] if missing is None else missing[:MOST_AWAITED].tolist(),
        "missing_count": 0 if missing is None else len(missing),
    }


@dataclass(frozen=True)
class RelationTask(ReachTask):
    """How two events are related, and by which steps."""

    a: int
    b: int

    def found(self, pages: Pages, targets: Targets) -> dict[str, Any]:
        relation = SAME if self.a == self.b else CONCURRENT
        cause = effect = self.a
        for one, other, name in ((self.a, self.b, BEFORE), (self.b, self.a, AFTER)):
            if one != other and one < past_of(pages, other)[pages.process_of(one)]:
                relation, cause, effect = name, one, other
        if cause == effect:
            return {"relation": relation, "steps": 0, "chain": [], "left_out": 0}
        events = shortest_chain(pages, cause, effect)
        steps = taken_together(pages, events)
        middle = MOST_STEPS // 2
        left_out = steps[middle:-middle] if len(steps) > 2 * middle else steps[:0]
        told = np.concatenate([steps[:middle], steps[-middle:]]) if len(left_out) else steps
        return {
            "relation": relation,
            "steps": len(events) - 1,
            "chain": told.tolist(),
            "left_out": int(left_out[:, 2].sum()),
        }

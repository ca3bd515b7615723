"""The kernels behind `explain()`: what is before, after and concurrent with an event, as event numbers."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from pyspark.sql import DataFrame

from causet.kernels.arrays import Array
from causet.kernels.logs.pages import ABSENT, Pages, processes_of
from causet.kernels.logs.reach import Near, direct_causes, future_of, nearest_causes, past_of
from causet.kernels.logs.steps import shortest_chain, taken_together
from causet.kernels.logs.waits import never_delivered, while_waiting
from causet.spark.batch.explanation import AFTER, BEFORE, CONCURRENT, SAME
from causet.spark.skeleton.census import Census
from causet.spark.skeleton.notes import Notes
from causet.spark.skeleton.skeleton import Skeleton
from causet.spark.skeleton.targets import Targets
from causet.spark.skeleton.task import Execution, Kernel

MOST_DIRECT = 1_000
"""Direct causes or effects that are named; the others are counted."""
MOST_STEPS = 1_000
"""Steps of a chain that are reported, those in process order taken together; the middle of a longer one is
left out."""
MOST_AWAITED = 100
"""Messages that another one waited for and that are named; the others are counted."""


class ReachKernel(Kernel):
    """Finds one JSON value."""

    rows = "answer string"

    def run(self, execution: Execution) -> Iterator[Sequence[Any]]:
        yield [[json.dumps(self.found(execution.pages, execution.targets))]]

    @abstractmethod
    def found(self, pages: Pages, targets: Targets) -> dict[str, Any]: ...


def ask(
    numbered: DataFrame, census: Census, kernel: ReachKernel, deliveries: bool = False
) -> tuple[dict[str, Any], Notes]:
    """What the kernel finds, and its notes; BadInput if the events are not an execution."""
    found, notes = Skeleton(numbered, census, deliveries).collect(kernel)
    return json.loads(found.column("answer")[0].as_py()), notes


@dataclass(frozen=True)
class ConeKernel(ReachKernel):
    """Past and future of one event, as one number per process each."""

    event: int

    def found(self, pages: Pages, targets: Targets) -> dict[str, Any]:
        until, since = past_of(pages, self.event), future_of(pages, self.event).since
        return {"until": until.tolist(), "since": since.tolist()}


@dataclass(frozen=True)
class EventKernel(ReachKernel):
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
        send, first = self.send, pages.first

        def precede(sends: Array) -> Array:
            process = processes_of(first, sends)
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
        "delivers": missing is not None,  # or this process logs receptions only
        "events": 0,
        "deliveries": 0,
        "awaited": [],
        "awaited_count": 0,
        "missing": [] if missing is None else missing[:MOST_AWAITED].tolist(),
        "missing_count": 0 if missing is None else len(missing),
    }


@dataclass(frozen=True)
class RelationKernel(ReachKernel):
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
        shown = np.concatenate([steps[:middle], steps[-middle:]]) if len(left_out) else steps
        return {
            "relation": relation,
            "steps": len(events) - 1,
            "chain": shown.tolist(),
            "left_out": int(left_out[:, 2].sum()),
        }

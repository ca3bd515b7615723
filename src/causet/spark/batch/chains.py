"""Proofs for people: of a delivery that came too early, a shortest chain from a message that should have come
first.

One task, with the whole skeleton, finds every message on a shortest chain (`kernels.chains`); ids are texts,
which it does not have, so the driver chooses among them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from causet.kernels.logs.chains import shortest_chains
from causet.kernels.logs.levels import fill_levels
from causet.kernels.logs.pages import Pages
from causet.spark.skeleton.budget import memory_allowed
from causet.spark.skeleton.skeleton import Batches, Notes, Skeleton, read_pieces
from causet.spark.skeleton.targets import Targets
from causet.spark.skeleton.task import lay_out

Array = np.ndarray[Any, Any]

CHAIN_ROWS = "delivery long, layer int, event long, send long"


class Step(NamedTuple):
    """`process` knew the message sent by event `send` from `event` on."""

    process: int
    event: int
    sender: int
    send: int


Layers = dict[int, dict[int, list[Step]]]
"""By delivery and distance: the messages on all shortest chains. Distance 1 is next to the delivered one."""


def chain_layers(skeleton: Skeleton, early: Sequence[tuple[int, int]]) -> Layers:
    """All shortest chains of these (delivery, send)."""
    census = skeleton.census
    task = ChainTask(census.first, census.floats, early)
    found = skeleton.given_to(task, CHAIN_ROWS).toArrow()
    event, send = (found.column(name).to_numpy() for name in ("event", "send"))
    columns = [
        found.column("delivery").to_pylist(),
        found.column("layer").to_pylist(),
        (np.searchsorted(census.first, event, side="right") - 1).tolist(),
        event.tolist(),
        (np.searchsorted(census.first, send, side="right") - 1).tolist(),
        send.tolist(),
    ]
    layers: Layers = {}
    for delivery, layer, *step in zip(*columns, strict=True):
        layers.setdefault(delivery, {}).setdefault(layer, []).append(Step(*step))
    return layers


def smallest_chain(layers: Mapping[int, list[Step]], end: Step, ids: Mapping[int, str]) -> tuple[Step, ...]:
    """Read from the source on, always the smallest id among those that the last one directly precedes."""

    def by_id(step: Step) -> str:
        return ids[step.send]

    at = max(layers)
    chain = [min(layers[at], key=by_id)]
    while at:
        knows: dict[int, int] = {}
        for step in layers[at]:
            if step.send == chain[-1].send:
                knows[step.process] = min(step.event, knows.get(step.process, step.event))
        at -= 1
        following = layers[at] if at else [end]
        after = (step for step in following if step.sender in knows and knows[step.sender] < step.send)
        chain.append(min(after, key=by_id))
    return tuple(chain)


@dataclass(frozen=True)
class ChainTask:
    """Finds the shortest chains of some violations, given as (delivery, send) in the order of deliveries."""

    first: Array
    floats: bool
    wanted: Sequence[tuple[int, int]]

    def __call__(self, batches: Batches) -> Batches:
        kind = np.float64 if self.floats else np.int64
        with Targets(len(self.first) - 1) as targets:
            pieces = read_pieces(batches, kind, Notes(), targets)
            with lay_out(self.first, self.floats, pieces, memory_allowed()) as pages:
                yield from self._found(pages, targets)

    def _found(self, pages: Pages, targets: Targets) -> Batches:
        fill_levels(pages)
        inbox: tuple[int, Array] | None = None
        for delivery, send in self.wanted:
            me = pages.process_of(delivery)
            if inbox is None or inbox[0] != me:
                inbox = me, targets.for_process(me)
            addressed = inbox[1]
            for number, layer in enumerate(shortest_chains(pages, delivery, send, addressed), start=1):
                event, known = layer
                yield pa.RecordBatch.from_arrays(
                    [
                        pa.array(np.full(len(event), delivery, np.int64)),
                        pa.array(np.full(len(event), number, np.int32)),
                        pa.array(event),
                        pa.array(known),
                    ],
                    names=["delivery", "layer", "event", "send"],
                )

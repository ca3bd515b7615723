"""Proofs of deliveries that came too early: a shortest chain from a message that should have come first.

One task, with the whole skeleton, finds every message on a shortest chain (`kernels.logs.chains`); it has no
ids, so the driver chooses among them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from causet.kernels.arrays import Array
from causet.kernels.logs.chains import shortest_chains
from causet.kernels.logs.own import own_copies
from causet.kernels.logs.pages import processes_of
from causet.spark.skeleton.skeleton import Skeleton
from causet.spark.skeleton.task import Execution, Kernel


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
    found, _ = skeleton.collect(ChainKernel(early))
    delivery, layer, event, send = (column.to_numpy() for column in found.columns)
    process, sender = (processes_of(skeleton.census.first, each) for each in (event, send))
    columns = (column.tolist() for column in (delivery, layer, process, event, sender, send))
    layers: Layers = {}
    for its_delivery, distance, *step in zip(*columns, strict=True):
        layers.setdefault(its_delivery, {}).setdefault(distance, []).append(Step(*step))
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
class ChainKernel(Kernel):
    """Finds the shortest chains of some violations, given as (delivery, send) in the order of deliveries."""

    wanted: Sequence[tuple[int, int]]
    rows = "delivery long, layer int, event long, send long"

    def run(self, execution: Execution) -> Iterator[Sequence[Any]]:
        pages = execution.pages
        own = own_copies(pages)
        inbox: tuple[int, Array] | None = None
        for delivery, send in self.wanted:
            me = pages.process_of(delivery)
            if inbox is None or inbox[0] != me:
                mine = own[(own >= pages.first[me]) & (own < pages.first[me + 1])]
                inbox = me, np.union1d(execution.targets.for_process(me), mine)
            for number, (event, known) in enumerate(
                shortest_chains(pages, delivery, send, inbox[1]), start=1
            ):
                yield [np.full(len(event), delivery), np.full(len(event), number), event, known]

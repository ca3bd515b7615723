"""One order for all, for `verify`: a task that sees the whole skeleton looks for cycles in the union of the
processes' delivery orders (`kernels.logs.agreement`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from causet.kernels.logs.agreement import cycles_in, deliveries_of
from causet.spark.skeleton.skeleton import Skeleton
from causet.spark.skeleton.task import Execution, Kernel

BYTES = 64
"""Memory for each delivery: its process and message, in the order they came and by message, and its edge."""


def contradictions(skeleton: Skeleton) -> list[list[tuple[str, int]]]:
    """Cycles, each as (process, send): the process delivered the message of that send before the next."""
    table, _ = skeleton.collect(AgreementKernel(skeleton.census.processes))
    cycles: dict[int, list[tuple[str, int]]] = {}
    for row in sorted(table.to_pylist(), key=lambda row: (row["cycle"], row["step"])):
        cycles.setdefault(row["cycle"], []).append((row["process"], row["send"]))
    return list(cycles.values())


@dataclass(frozen=True)
class AgreementKernel(Kernel):
    processes: tuple[str, ...]
    event_bytes = BYTES
    rows = "cycle int, step int, process string, send long"

    def run(self, execution: Execution) -> Iterator[Sequence[Any]]:
        names = pa.array(self.processes, pa.string())
        for number, cycle in enumerate(cycles_in(*deliveries_of(execution.pages))):
            steps = np.arange(len(cycle.sends))
            yield [np.full(len(steps), number), steps, names.take(pa.array(cycle.processes)), cycle.sends]

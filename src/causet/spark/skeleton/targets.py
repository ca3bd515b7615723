"""The targets of messages, which are not part of the pages of an execution."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from tempfile import SpooledTemporaryFile
from typing import Any

import numpy as np

from causet.kernels.arrays import Array
from causet.kernels.logs.verify import Addressed
from causet.spark.skeleton.blobs import unpack
from causet.spark.skeleton.budget import scratch_folder

MOST_TARGET_BYTES = 64 << 20
"""Bytes of targets that stay in memory; what is more goes to disk."""
TARGET_TYPES: list[type] = [np.int64, np.int64, np.int32]
"""Sends; where the targets of each begin; targets."""


class Targets:
    """The targets of messages, gathered from blobs, on disk if there are many. Targets that are not processes
    of the execution get numbers after those of the processes. Use it in a `with`: it may have a file."""

    def __init__(self, processes: int) -> None:
        self._file = SpooledTemporaryFile(MOST_TARGET_BYTES, dir=scratch_folder())  # noqa: SIM115 (see `__exit__`)
        self._sizes: list[tuple[int, int]] = []
        self._processes = processes
        self.strangers: dict[str, int] = {}

    def __enter__(self) -> Targets:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, blob: Any) -> None:
        sends, ends, targets, names = unpack(blob, [*TARGET_TYPES, np.uint8])
        numbers = [
            self.strangers.setdefault(name, self._processes + len(self.strangers))
            for name in json.loads(names.tobytes())
        ]
        if numbers:
            unknown = targets < 0
            targets = targets.copy()
            targets[unknown] = np.array(numbers, np.int32)[-2 - targets[unknown]]
        self._sizes.append((len(sends), len(targets)))
        for values in (sends, np.diff(ends, prepend=0), targets):
            self._file.write(values.tobytes())

    def _parts(self) -> Iterator[tuple[Array, Array, Array]]:
        """Sends, how many targets each has, and all targets, as they came."""
        self._file.seek(0)
        for sends, targets in self._sizes:
            yield (
                np.frombuffer(self._file.read(8 * sends), np.int64),
                np.frombuffer(self._file.read(8 * sends), np.int64),
                np.frombuffer(self._file.read(4 * targets), np.int32),
            )

    def of(self, wanted: Callable[[Array], Array]) -> Addressed:
        """The targets of those sends for which `wanted` is true, in the order of their numbers."""
        nothing = np.empty(0, np.int64)
        parts: list[tuple[Array, Array, Array]] = [(nothing, nothing, np.empty(0, np.int32))]
        for sends, counts, targets in self._parts():
            keep = wanted(sends)
            parts.append((sends[keep], counts[keep], targets[np.repeat(keep, counts)]))
        sends, counts, targets = (np.concatenate(column) for column in zip(*parts, strict=True))
        del parts
        order = np.argsort(sends, kind="stable")
        begins = np.cumsum(counts) - counts
        ends = np.cumsum(counts[order])
        shift = begins[order] - (ends - counts[order])
        taken = np.repeat(shift, counts[order]) + np.arange(len(targets))
        return Addressed(sends[order], ends, targets[taken])

    def for_process(self, process: int) -> Array:
        """The sends of all messages for one process, in order."""
        parts = [np.empty(0, np.int64)]
        for sends, counts, targets in self._parts():
            parts.append(np.repeat(sends, counts)[targets == process])
        return np.unique(np.concatenate(parts))

"""One task of a run on a skeleton: reads the blobs, checks that they are an execution, runs the kernel."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from causet.kernels.arrays import Array
from causet.kernels.logs.levels import cycle, fill_levels
from causet.kernels.logs.pages import Pages, Piece, Repeated
from causet.spark.skeleton.blobs import NOTE, PIECE, TARGETS, Batches, unpack
from causet.spark.skeleton.budget import LEAST, memory_allowed, scratch_folder
from causet.spark.skeleton.notes import CYCLE, REPEATED_EVENT, Notes
from causet.spark.skeleton.targets import Targets

NOTES = "__notes"
"""The column for the notes of a task, in a row of its own; null in all others."""
_ARROW = {
    "tinyint": pa.int8(),
    "int": pa.int32(),
    "long": pa.int64(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
}


@dataclass
class Execution:
    """What a kernel runs on: an execution, with levels and repaired times in its pages."""

    pages: Pages
    targets: Targets
    task: int
    tasks: int
    """the number of this task, from 0, among those that share the work"""
    others: list[Any]
    """blobs that were given in addition to the skeleton"""
    notes: Notes = field(default_factory=Notes)
    """for the kernel, to be added to"""


class Kernel(ABC):
    """A computation on a whole skeleton. Runs in workers: its fields are sent there."""

    @property
    def event_bytes(self) -> int:
        """Memory that it needs for every event, in addition to the pages."""
        return 0

    @property
    @abstractmethod
    def rows(self) -> str:
        """The columns of its answer, such as `event long, known array<int>`."""

    @property
    def parts(self) -> int:
        """How many tasks can share the work, at most."""
        return 1

    @abstractmethod
    def run(self, execution: Execution) -> Iterator[Sequence[Any]]:
        """Batches of rows, each as a list of columns."""


@dataclass(frozen=True)
class Task:
    """The whole skeleton in, rows of the kernel out, and one row with notes."""

    kernel: Kernel
    first: Array
    time_type: type
    tasks: int

    def __call__(self, batches: Batches) -> Batches:
        types = arrow_types(self.kernel.rows)
        names = [*types, NOTES]
        notes = Notes()
        task = 0
        others: list[Any] = []
        budget = max(LEAST, memory_allowed() - self.kernel.event_bytes * int(self.first[-1]))
        with (
            Targets(len(self.first) - 1) as targets,
            Pages(self.first, self.time_type, budget, scratch_folder()) as pages,
        ):
            for what, bucket, blob in read_blobs(batches):
                task = bucket if self.tasks > 1 else 0
                if what == PIECE:
                    pages.add(Piece(*unpack(blob, piece_types(self.time_type))))
                elif what == NOTE:
                    notes.merge(blob.to_pybytes())
                elif what == TARGETS:
                    targets.add(blob)
                else:
                    others.append(blob)
            pages.seal()
            execution = Execution(pages, targets, task, self.tasks, others)
            if is_sound(pages, notes):
                for columns in self.kernel.run(execution):
                    arrays = [
                        each if isinstance(each, pa.Array) else pa.array(each, kind)
                        for each, kind in zip(columns, types.values(), strict=True)
                    ]
                    no_notes = pa.nulls(len(arrays[0]), pa.string())
                    yield pa.RecordBatch.from_arrays([*arrays, no_notes], names=names)
        if task == 0:  # all tasks saw the same skeleton: its notes are reported once
            execution.notes.merge(notes.to_json())
        nothing = [pa.nulls(1, kind) for kind in types.values()]
        yield pa.RecordBatch.from_arrays([*nothing, pa.array([execution.notes.to_json()])], names=names)


def arrow_types(rows: str) -> dict[str, Any]:
    """The Arrow types of columns that are declared as Spark declares them."""
    types = {}
    for column in rows.split(", "):
        name, kind = column.split()
        item = kind.removeprefix("array<").removesuffix(">")
        types[name] = _ARROW[kind] if item == kind else pa.list_(_ARROW[item])
    return types


def read_blobs(batches: Batches) -> Iterator[tuple[int, int, Any]]:
    """(what, bucket, blob) of each row."""
    for batch in batches:
        for what, bucket, blob in zip(*batch.columns, strict=True):
            yield what.as_py(), bucket.as_py(), blob.as_buffer()


def piece_types(time_type: type) -> list[type]:
    return [np.int64, time_type, np.int64, np.int64, np.int8]


def is_sound(pages: Pages, notes: Notes) -> bool:
    """Fill levels and repaired times; False, with a note, if the events are not an execution."""
    try:
        waiting = fill_levels(pages)
    except Repeated as error:
        notes.add(REPEATED_EVENT, 1, [[error.event]])
        return False
    if waiting.done.sum() < pages.events:
        notes.add(CYCLE, 1, [cycle(pages, waiting)])
        return False
    return True

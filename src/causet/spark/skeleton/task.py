"""An execution laid out for kernels, and whether it is one at all: what every task does first."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from causet.kernels.logs.levels import cycle, fill_levels
from causet.kernels.logs.pages import Pages, Piece, Repeated
from causet.spark.skeleton.budget import scratch_folder
from causet.spark.skeleton.skeleton import CYCLE, REPEATED_EVENT, Notes

Array = np.ndarray[Any, Any]


def lay_out(first: Array, floats: bool, pieces: Iterable[Piece], budget: int) -> Pages:
    """The pieces of an execution as pages, to be closed."""
    pages = Pages(first, np.float64 if floats else np.int64, budget, scratch_folder())
    for piece in pieces:
        pages.add(piece)
    pages.seal()
    return pages


def is_sound(pages: Pages, notes: Notes) -> bool:
    """Fill blocks and repaired times; False, with a note, if the events are no execution."""
    try:
        waiting = fill_levels(pages)
    except Repeated as error:
        notes.add(REPEATED_EVENT, 1, [[error.event]])
        return False
    if waiting.done.sum() < pages.events:
        notes.add(CYCLE, 1, [cycle(pages, waiting)])
        return False
    return True

"""The plan of an order in slabs: where they are cut, and how far an event may be moved."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from causet.kernels.arrays import Array

BELOW, ABOVE = 1, 2
"""Reaches by which a window is wider than its slab."""

Time = int | float


@dataclass(frozen=True)
class Plan:
    """How a log is ordered in slabs. Sent to all tasks."""

    cuts: tuple[Time, ...]
    """where slabs begin, but for the first: that has all times before the first cut"""
    reach: Time
    """the guess: by how much the repaired time of an event exceeds its own, at most"""
    floats: bool
    """whether times are floats"""
    own_ids: bool
    """whether events have ids of their own; otherwise references are process#seq"""
    key: int
    """secret of this run, for the hashes of strings"""

    @property
    def slabs(self) -> int:
        return len(self.cuts) + 1

    @cached_property
    def begins(self) -> Array:
        """The first time of each slab's window."""
        begins = [self._moved(cut, -BELOW) for cut in self.cuts]
        return self._array([self._least, *begins])

    @cached_property
    def ends(self) -> Array:
        """The last time of each slab's window."""
        ends = [self._moved(cut, ABOVE) for cut in self.cuts]
        return self._array([*ends, self._most])

    def bounds(self, slab: int) -> tuple[Time, Time]:
        """(s, t) of the slab [s, t); the last one has no end."""
        edges = [self._least, *self.cuts, math.inf]
        return edges[slab], edges[slab + 1]

    def distance(self, slab: int, other: int) -> Time:
        """How far apart, at most, an event of one slab and an event of a later one are."""
        low, high = self.bounds(slab)[0], self.bounds(other)[1]
        return self._most if self._least == low or high == math.inf else high - low

    @property
    def _least(self) -> Time:
        return -math.inf if self.floats else int(np.iinfo(np.int64).min)

    @property
    def _most(self) -> Time:
        return math.inf if self.floats else int(np.iinfo(np.int64).max)

    def _moved(self, cut: Time, reaches: int) -> Time:
        """The cut moved by so many reaches: the first time of a window, or the last, which is before it."""
        moved = cut + reaches * self.reach
        if self.floats:  # sums and differences of floats are rounded, maybe to the wrong side
            return moved + math.copysign(2 * math.ulp(max(abs(cut), abs(moved), self.reach)), reaches)
        return min(max(int(moved) - (reaches > 0), int(self._least)), int(self._most))

    def _array(self, times: Sequence[Time]) -> Array:
        return np.array(times, np.float64 if self.floats else np.int64)


def even_cuts(times: Array, slabs: int) -> tuple[Time, ...]:
    """Cuts that divide a sample of times into slabs with about the same number of them."""
    if not len(times):
        return ()
    places = np.arange(1, slabs) * len(times) // slabs
    found: list[Time] = np.unique(np.sort(times)[places]).tolist()
    return tuple(found)

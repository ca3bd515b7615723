"""Where the entry of a (process, group) stands in a clock with one entry for each: group after group,
members in order. CBCAST and Fast keep such clocks."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from causet.model import System, members


class GroupLayout:
    """One for a whole system: its processes share it."""

    __slots__ = ("_entries", "_groups", "_starts", "length")

    def __init__(self, system: System) -> None:
        self._entries: dict[tuple[int, int], int] = {}
        self._groups: dict[int, list[int]] = {}
        self._starts = []
        for x, group in enumerate(system.groups):
            self._starts.append(len(self._entries))
            for p in members(group.members):
                self._entries[p, x] = len(self._entries)
                self._groups.setdefault(p, []).append(x)
        self.length = len(self._entries)
        self._starts.append(self.length)

    def entry(self, process: int, group: int) -> int:
        return self._entries[process, group]

    def meaning(self, entry: int) -> tuple[int, int]:
        """The (process, group) of an entry."""
        return next(pair for pair, where in self._entries.items() if where == entry)

    def of_member(self, process: int) -> npt.NDArray[np.int64]:
        """The entries of all groups that this process is in."""
        ranges = [np.arange(self._starts[x], self._starts[x + 1]) for x in self._groups.get(process, ())]
        return np.concatenate(ranges) if ranges else np.zeros(0, dtype=np.int64)


@lru_cache(maxsize=8)
def layout_of(system: System) -> GroupLayout:
    return GroupLayout(system)

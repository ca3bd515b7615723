"""Where the entry of a (process, group) stands in a clock with one entry for each: group after group,
members in order. CBCAST and Fast keep such clocks."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from causet.model import System, members


class GroupLayout:
    __slots__ = ("_entries", "length")

    def __init__(self, system: System) -> None:
        pairs = [(p, x) for x, group in enumerate(system.groups) for p in members(group.members)]
        self._entries = {pair: entry for entry, pair in enumerate(pairs)}
        self.length = len(pairs)

    def entry(self, process: int, group: int) -> int:
        return self._entries[process, group]

    def meaning(self, entry: int) -> tuple[int, int]:
        """The (process, group) of an entry."""
        return next(pair for pair, where in self._entries.items() if where == entry)

    def of_member(self, process: int) -> npt.NDArray[np.int64]:
        """The entries of all groups that this process is in."""
        mine = {x for p, x in self._entries if p == process}
        return np.array([e for (_, x), e in self._entries.items() if x in mine], dtype=np.int64)

"""What is in the cuts that messages name: read from their place by workers, for the kernel."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from causet.cuts import Cuts
from causet.frontier import Channels
from causet.kernels.arrays import Array
from causet.kernels.streams.awaited import Entries
from causet.kernels.streams.keys import digests
from causet.readers import Readers

KEPT = 8
"""Cuts that a worker keeps in memory."""


class Loaded(NamedTuple):
    """A cut by columns."""

    groups: list[str]
    group: Array
    """of each entry, which of the groups"""
    group_key: Array
    process: list[str]
    process_key: Array
    number: Array


@lru_cache(maxsize=KEPT)
def _loaded(place: str, number: int) -> Loaded:
    groups = Cuts(place).read(number).groups
    sizes = [len(entries) for entries in groups.values()]
    group = np.repeat(np.arange(len(groups)), sizes)
    process = [name for entries in groups.values() for name in entries]
    return Loaded(
        list(groups),
        group,
        digests(list(groups))[group],
        process,
        digests(process),
        np.array([n for entries in groups.values() for n in entries.values()], np.int64),
    )


class Contents:
    """(reader, number of a cut, priority) → what the reader waits for, for a message of this priority."""

    def __init__(self, place: str, readers: Readers) -> None:
        self.place = place
        self._readers = readers

    def __call__(self, reader: str, number: int, priority: int) -> Entries:
        cut = _loaded(self.place, number)
        mine = Channels(_Reads(self._readers, reader), priority)
        reads = np.array([name in mine for name in cut.groups], np.bool_)[cut.group]
        return Entries(cut.group_key[reads], cut.process_key[reads], cut.number[reads])

    def named(self, reader: str, number: int, stream: bytes) -> tuple[str, str]:
        """The group and the process of a stream of this reader, which is in the cut."""
        cut = _loaded(self.place, number)
        keys = Entries(cut.group_key, cut.process_key, cut.number).streams(reader)
        [at, *_] = np.flatnonzero(keys == np.frombuffer(stream, keys.dtype)[0]).tolist()
        return cut.groups[cut.group[at]], cut.process[at]

    def lacks(self, number: int) -> bool:
        """Whether a cut is not at its place."""
        return not Cuts(self.place).has(number)


class _Reads:
    """The groups of a reader."""

    def __init__(self, readers: Readers, reader: str) -> None:
        self._readers, self._reader = readers, reader

    def __contains__(self, group: object) -> bool:
        return self._readers.reads(self._reader, str(group))

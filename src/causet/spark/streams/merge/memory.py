"""What a bucket of a merge remembers between batches: sources, the bound, what is held and was released."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from causet.kernels.arrays import Array
from causet.spark.streams.pack import from_blob, to_blob

NEVER = -(2**62)
"""A time before all others."""
VERSION = 3
"""Of the state of a merge: times are in µs."""
KEYS = ("rc", "r", "process", "sequence", "domain")
"""What a message is known and ordered by: its process by its number in `Memory.processes`, its domain by the
one in `Memory.domains`. A clock gives no two messages of a process the same rc; only those of version 1 need
the rest. A heartbeat has the sequence 0."""
PRINT = "print"
"""The fingerprint of its id and payload: two messages with the same keys are the same one only if that is."""
KEPT = (*KEYS, PRINT)
NAMES = ("names", "processes", "domains")


def nothing() -> Array:
    return np.empty(0, np.int64)


def _no_keys() -> dict[str, Array]:
    return {key: nothing() for key in KEPT}


@dataclass
class Memory:
    """What a bucket of the merge remembers."""

    names: list[str] = field(default_factory=list)
    """of the sources that were heard of"""
    progress: Array = field(default_factory=nothing)
    """for each of them the largest r"""
    bound: int = NEVER
    """everything below it was released"""
    lowest: int = NEVER
    """before the first release: the smallest r + c of all messages"""
    held: dict[str, Array] = field(default_factory=_no_keys)
    """the messages and heartbeats that are held"""
    place: Array = field(default_factory=nothing)
    """where their rows are"""
    released: dict[str, Array] = field(default_factory=_no_keys)
    """messages that were released lately, by which duplicates are recognised"""
    processes: list[str] = field(default_factory=list)
    """of those that are held or were released lately"""
    domains: list[str] = field(default_factory=list)
    """of the same"""

    def numbers(self, names: list[str]) -> Array:
        """The numbers of these sources; new ones are taken in, in the order of their names."""
        found = numbers_of(self.names, names)
        new = np.full(len(self.names) - len(self.progress), NEVER)
        self.progress = np.concatenate([self.progress, new])
        return found

    def forget_names(self) -> None:
        """Forget processes and domains without a message: every start of a producer may be a new process, and
        invented ones must not stay."""
        self.processes = self._used("process", self.processes)
        self.domains = self._used("domain", self.domains)

    def _used(self, key: str, names: list[str]) -> list[str]:
        """Those of the names that are still used, under new numbers."""
        if len(names) < 2:
            return names
        there = (self.held, self.released)
        used = np.unique(np.concatenate([each[key] for each in there]))
        if len(used) == len(names):
            return names
        for each in there:
            each[key] = np.searchsorted(used, each[key])
        return [names[number] for number in used.tolist()]

    def to_bytes(self) -> bytes:
        arrays = {"progress": self.progress, "place": self.place}
        for name, each in (("held", self.held), ("released", self.released)):
            arrays |= {f"{name} {key}": each[key] for key in KEPT}
        arrays["plain"] = np.array([self.bound, self.lowest])
        columns = {name: pa.array([array], pa.list_(pa.int64())) for name, array in arrays.items()}
        for name in NAMES:
            columns[name] = pa.array([getattr(self, name)], pa.list_(pa.string()))
        return to_blob(pa.table(columns))

    @classmethod
    def from_bytes(cls, data: bytes) -> Memory:
        table = from_blob(data)

        def values(name: str) -> Array:
            found: Array = table.column(name)[0].values.to_numpy(zero_copy_only=False).copy()
            return found

        def keys(name: str) -> dict[str, Array]:
            return {key: values(f"{name} {key}") for key in KEPT}

        bound, lowest = values("plain").tolist()
        names, *others = (table.column(name)[0].as_py() for name in NAMES)
        return cls(
            names, values("progress"), bound, lowest, keys("held"), values("place"), keys("released"), *others
        )


def numbers_of(known: list[str], names: list[str]) -> Array:
    """The places of names in a list, to which new ones are added in their order."""
    places = {name: number for number, name in enumerate(known)}
    new = sorted(set(names) - set(places))
    known += new
    places.update({name: len(places) + number for number, name in enumerate(new)})
    return np.array([places[name] for name in names], np.int64)


def same_again(keys: dict[str, Array], order: Array, known: int) -> tuple[Array, Array]:
    """The messages that have the keys of another one: its duplicates, and conflicts, which have another
    fingerprint.

    The first `known` messages were there before; what comes never displaces them. Of several that come
    together the one with the smallest fingerprint stays, so that it does not matter how they were divided
    among workers.
    """
    same = np.ones(len(order), np.bool_)
    same[:1] = False
    for key in KEYS:
        same[1:] &= np.diff(keys[key][order]) == 0
    if not same.any():
        return nothing(), nothing()
    alike = same.copy()
    alike[:-1] |= same[1:]
    rows, group = order[alike], np.cumsum(~same)[alike]
    prints = keys[PRINT][rows].view(np.uint64)
    by = np.lexsort((rows, prints, rows >= known, group))
    rows, group, prints = rows[by], group[by], prints[by]
    first = np.diff(group, prepend=-1) != 0
    stays = np.maximum.accumulate(np.where(first, np.arange(len(rows)), 0))
    other = prints != prints[stays]
    return rows[~first & ~other], rows[other]


def ranks(names: list[str], numbers: Array) -> Array:
    """The numbers of names as places in the order of the names."""
    if len(names) < 2:
        return numbers
    found: Array = np.argsort(np.argsort(np.array(names, object), kind="stable"))[numbers]
    return found

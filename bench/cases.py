"""The workloads that the benchmarks share, and who can run them."""

from __future__ import annotations

from causet.model import System, named_processes
from causet.protocols import PROTOCOLS, Protocol
from causet.simulate.workload import Workload, delay_of
from causet.topology import groups_of

SEED = 1
UNICAST, RING, ALL = "unicast", "ring:4", "all"
"""One target each; overlapping groups of 4 (of 4 processes: one group of all); everybody to everybody."""


def workload_of(size: int, shape: str, messages: int) -> Workload:
    """One message per process and unit of time, which is also the mean delay: many overtake each other."""
    system = System(named_processes(size), groups_of(shape, size, SEED))
    return Workload(system, messages, 1.0, delay_of("exp:1"), SEED)


def able(kind: type[Protocol], workload: Workload) -> bool:
    """Whether a protocol can send these messages."""
    system = workload.system
    if kind.broadcast:
        return [group.members for group in system.groups] == [system.everyone]
    return bool(system.groups) or not kind.grouped


def home(kind: type[Protocol]) -> str:
    """The shape that a protocol is made for: the one with the fewest targets that it can send to."""
    return ALL if kind.broadcast else RING if kind.grouped else UNICAST


def at_home(shape: str, size: int) -> list[type[Protocol]]:
    """The protocols made for this shape that are sensible at this size."""
    return [
        kind
        for kind in PROTOCOLS.values()
        if home(kind) == shape and (kind.sensible is None or size <= kind.sensible)
    ]

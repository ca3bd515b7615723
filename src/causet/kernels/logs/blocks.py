"""Blocks: how many events the longest chain up to each event has.

block       1 + the largest block among the direct predecessors

A causal pass meets every event after its predecessors, so one pass is enough.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from causet.kernels.arrays import Array
from causet.kernels.logs.causal_pass import causal_pass
from causet.kernels.logs.pages import Pages

BLOCK_BYTES = 4
"""Memory that every event takes, resident or not."""


def blocks_of(pages: Pages) -> Array:
    """The block of every event. Levels and repaired times have to be in the pages."""
    blocks = np.zeros(pages.events, np.int32)
    for passed in causal_pass(pages):
        _fill(pages.first, passed.events, passed.processes, passed.link_first, passed.links, blocks)
    return blocks


@njit(cache=True)
def _fill(
    first: Array, events: Array, processes: Array, link_first: Array, links: Array, blocks: Array
) -> None:
    for i in range(len(events)):
        e = events[i]
        block = 0 if e == first[processes[i]] else blocks[e - 1]
        for at in range(link_first[i], link_first[i + 1]):
            block = max(block, blocks[links[at]])
        blocks[e] = block + 1

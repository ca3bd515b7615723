"""What ε and δ messages would have needed, from the times they carry and the order in which they came.

A message is late when it comes below what was released: when r + c < p - δ - ε, where p is the smallest, over
the sources heard of, of their largest r. So what each message needs of δ + ε is p - (r + c), at the time
when it comes.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from causet.kernels.arrays import Array

NEVER = -(2**62)


@njit(cache=True)
def needed(source: Array, rc: Array, r: Array, sources: int) -> Array:
    """For each message, in the order in which they came, the smallest δ + ε with which it is not late; at
    most 0 if it never is."""
    largest = np.full(sources, NEVER)
    found = np.empty(len(source), np.int64)
    smallest, heard = NEVER, 0
    for i in range(len(source)):
        found[i] = smallest - rc[i] if heard else 0
        of = source[i]
        if r[i] <= largest[of]:
            continue
        new = largest[of] == NEVER
        was_smallest = largest[of] == smallest
        largest[of] = r[i]
        if new:
            heard += 1
            smallest = r[i] if heard == 1 else min(smallest, r[i])
        elif was_smallest:
            smallest = r[i]
            for other in range(sources):
                if largest[other] != NEVER and largest[other] < smallest:
                    smallest = largest[other]
    return found

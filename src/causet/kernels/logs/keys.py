"""Strings that stand for events, matched by their hashes: which event has this id, which sent this message.

A definition (an event has this id, an event sends this message) and the references to it have the same key, a
pair of 64-bit numbers from `causet.kernels.names`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, uint64

from causet.kernels.arrays import Array

ABSENT = -1


def find_keys(low: Array, high: Array, wanted_low: Array, wanted_high: Array) -> tuple[Array, Array]:
    """For each wanted key the number of the definition that has it, or ABSENT; and for each definition the
    number of the first one with its key, which is its own unless the key is defined more than once."""
    size = 1 << (2 * len(low) + 1).bit_length()
    table = np.full(size, ABSENT, np.int32)
    same = np.empty(len(low), np.int32)
    _define(low, high, table, same)
    found = np.empty(len(wanted_low), np.int32)
    _look_up(low, high, table, wanted_low, wanted_high, found)
    return found, same


@njit(cache=True)
def _find(low: Array, high: Array, table: Array, its_low: Any, its_high: Any) -> int:
    """The position of a key in the table of definitions, or the empty one where it would go."""
    mask = uint64(len(table) - 1)
    at = its_low & mask
    while table[at] != ABSENT and (low[table[at]] != its_low or high[table[at]] != its_high):
        at = (at + uint64(1)) & mask
    return int(at)


@njit(cache=True)
def _define(low: Array, high: Array, table: Array, same: Array) -> None:
    for i in range(len(low)):
        at = _find(low, high, table, low[i], high[i])
        if table[at] == ABSENT:
            table[at] = i
        same[i] = table[at]


@njit(cache=True)
def _look_up(
    low: Array, high: Array, table: Array, wanted_low: Array, wanted_high: Array, found: Array
) -> None:
    for i in range(len(wanted_low)):
        found[i] = table[_find(low, high, table, wanted_low[i], wanted_high[i])]

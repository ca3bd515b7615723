"""Hash tables of events: open addressing, linear probing, a power of two of places.

`find` and `remove` work on any array of keys; `Slots` numbers the events that are kept for a while, so that
what is known of each can be a row of an array.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit, uint64

from causet.kernels.arrays import Array

EMPTY = -1


@njit(cache=True)
def find(table: Array, key: int) -> int:
    """The position of a key in a table, or the empty one where it would go."""
    mask = len(table) - 1
    at = int((uint64(key) * uint64(0x9E3779B97F4A7C15)) >> uint64(20)) & mask
    while table[at] != EMPTY and table[at] != key:
        at = (at + 1) & mask
    return at


@njit(cache=True)
def remove(table: Array, values: Array, at: int) -> None:
    """Remove the key at this position; those behind it move up, so that they are still found."""
    mask = len(table) - 1
    hole = at
    at = (at + 1) & mask
    while table[at] != EMPTY:
        home = int((uint64(table[at]) * uint64(0x9E3779B97F4A7C15)) >> uint64(20)) & mask
        if ((at - home) & mask) >= ((at - hole) & mask):
            table[hole] = table[at]
            values[hole] = values[at]
            hole = at
        at = (at + 1) & mask
    table[hole] = EMPTY


class Slots(NamedTuple):
    """A slot for each of some events; a slot that is given back is used again."""

    events: Array
    """a table"""
    slots: Array
    """the slot of the event at each position of the table"""
    free: Array
    """a stack of free slots"""
    counts: Array
    """one number: how many slots are free"""


def new_slots(count: int) -> Slots:
    """All of them free; `count` is a power of two."""
    return Slots(
        events=np.full(4 * count, EMPTY, np.int64),
        slots=np.zeros(4 * count, np.int32),
        free=np.arange(count - 1, -1, -1, dtype=np.int32),
        counts=np.array([count], np.int64),
    )


def with_free(table: Slots, count: int) -> Slots:
    """The same slots for the same events, and at least this many free ones."""
    while table.counts[0] < count:
        slots, free = len(table.free), int(table.counts[0])
        grown = new_slots(2 * slots)
        _copy(table, grown)
        grown.free[:free] = table.free[:free]
        grown.free[free : free + slots] = np.arange(2 * slots - 1, slots - 1, -1)
        grown.counts[0] = free + slots
        table = grown
    return table


@njit(cache=True)
def _copy(table: Slots, grown: Slots) -> None:
    for i in range(len(table.events)):
        if table.events[i] != EMPTY:
            at = find(grown.events, table.events[i])
            grown.events[at] = table.events[i]
            grown.slots[at] = table.slots[i]


def stretched(rows: Array, count: int) -> Array:
    """The rows of all slots, with new ones behind them until there are this many."""
    return np.concatenate([rows, np.zeros((count - len(rows), *rows.shape[1:]), rows.dtype)])


@njit(cache=True)
def take_slot(table: Slots, event: int) -> int:
    """A free slot for an event that has none. There has to be one."""
    table.counts[0] -= 1
    slot = table.free[table.counts[0]]
    at = find(table.events, event)
    table.events[at] = event
    table.slots[at] = slot
    return int(slot)


@njit(cache=True)
def give_back(table: Slots, at: int) -> None:
    """Free the slot of the event at this position of the table."""
    table.free[table.counts[0]] = table.slots[at]
    table.counts[0] += 1
    remove(table.events, table.slots, at)

"""Names as numbers: strings of an Arrow column hashed or taken apart where they lie, without Python objects.

A string becomes two 64-bit numbers, keyed by a secret of the run. Two different strings among a billion get
the same pair with a probability of less than one in 10²⁰, and an attacker without the key cannot do better.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numba import njit, uint64

from causet.kernels.arrays import Array

Word = Any
"""64 bits without a sign, as numba has them."""

ABSENT = -1
MESSAGES = 0x5851F42D4C957F2D
"""Mixed into the key for messages: the same string means different things as an id and as a message."""


def text_buffers(texts: pa.Array) -> tuple[Array, Array]:
    """(offsets, bytes) of a string column; nulls have to be filled before."""
    texts = texts.cast(pa.large_string())
    _, offsets, data = texts.buffers()
    begin = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    raw = np.frombuffer(data, np.uint8) if data is not None and data.size else np.empty(0, np.uint8)
    return begin, raw


def list_lengths(lists: Any) -> Array:
    """How many items each list of a column has; 0 where there is no list."""
    return np.asarray(lists.value_lengths().fill_null(0).to_numpy(zero_copy_only=False), np.int64)


@njit(cache=True, inline="always")
def mixed(value: Word) -> Word:
    """A bijection of 64 bits in which every bit of the input moves every bit of the output."""
    value = uint64(value)
    value ^= value >> uint64(32)
    value *= uint64(0xD6E8FEB86659FD93)
    value ^= value >> uint64(32)
    value *= uint64(0xD6E8FEB86659FD93)
    value ^= value >> uint64(32)
    return value


@njit(cache=True, inline="always")
def word_at(data: Array, begin: int, end: int) -> Word:
    """The bytes from `begin` to `end`, but 8 at most, as one number, the last byte the least."""
    at, size = uint64(begin), uint64(min(end - begin, 8))
    word = uint64(0)
    if begin < end and at + uint64(8) <= uint64(len(data)):  # one load, even if the name ends earlier
        word = (
            (uint64(data[at]) << uint64(56))
            | (uint64(data[at + uint64(1)]) << uint64(48))
            | (uint64(data[at + uint64(2)]) << uint64(40))
            | (uint64(data[at + uint64(3)]) << uint64(32))
            | (uint64(data[at + uint64(4)]) << uint64(24))
            | (uint64(data[at + uint64(5)]) << uint64(16))
            | (uint64(data[at + uint64(6)]) << uint64(8))
            | uint64(data[at + uint64(7)])
        )
        return word >> (uint64(8) * (uint64(8) - size))
    for i in range(size):
        word = (word << uint64(8)) | uint64(data[at + uint64(i)])
    return word


@njit(cache=True, inline="always")
def hashed(data: Array, begin: int, end: int, key: Word) -> Word:
    value = uint64(key) ^ mixed(uint64(end - begin))
    at = begin
    while at < end:
        value = mixed(value ^ word_at(data, at, end)) + uint64(key)
        at += 8
    return value


@njit(cache=True)
def hash_texts(offsets: Array, data: Array, key: int, low: Array, high: Array) -> None:
    """Two hashes of each string."""
    for i in range(len(offsets) - 1):
        low[i] = hashed(data, offsets[i], offsets[i + 1], uint64(key))
        high[i] = hashed(data, offsets[i], offsets[i + 1], ~uint64(key))


@njit(cache=True)
def _number(
    data: Array, begin: int, end: int, name_offsets: Array, name_data: Array, table: Array, key: int
) -> int:
    """The number of the name that stands in these bytes; ABSENT if the table does not have it."""
    size = len(table)
    at = hashed(data, begin, end, uint64(key)) % uint64(size)
    while table[at] != ABSENT:
        name = table[at]
        start = name_offsets[name]
        length = name_offsets[name + 1] - start
        if length == end - begin:
            same = 0
            while same < length and name_data[start + same] == data[begin + same]:
                same += 1
            if same == length:
                return int(name)
        at = (at + uint64(1)) % uint64(size)
    return ABSENT


@njit(cache=True)
def parse_references(
    offsets: Array,
    data: Array,
    name_offsets: Array,
    name_data: Array,
    table: Array,
    key: int,
    process: Array,
    seq: Array,
) -> None:
    """`name#number` as (number of the name, number); ABSENT where a string is not of that form.

    `table` is an open-addressing table of the names by their hash, from `name_table`.
    """
    for i in range(len(offsets) - 1):
        begin, end = offsets[i], offsets[i + 1]
        cut, seq[i] = _apart(data, begin, end)
        process[i] = ABSENT
        if cut < end:
            process[i] = _number(data, begin, cut, name_offsets, name_data, table, key)


@njit(cache=True)
def reference_keys(offsets: Array, data: Array, key: int) -> tuple[Array, Array, Array]:
    """Each `name#number` as the two hashes of the name, and the number.

    A string of another form gets hashes of its own and the number 0, which no event has.
    """
    count = len(offsets) - 1
    low, high, number = np.empty(count, np.uint64), np.empty(count, np.uint64), np.empty(count, np.int64)
    for i in range(count):
        cut, number[i] = _apart(data, offsets[i], offsets[i + 1])
        low[i] = hashed(data, offsets[i], cut, uint64(key))
        high[i] = hashed(data, offsets[i], cut, ~uint64(key))
    return low, high, number


@njit(cache=True)
def _apart(data: Array, begin: int, end: int) -> tuple[int, int]:
    """Where the # of `name#number` is, and the number; (end, 0) for a string of another form."""
    cut, number, scale = end - 1, 0, 1
    while cut >= begin and 48 <= data[cut] <= 57 and end - cut <= 18:
        number += (data[cut] - 48) * scale
        scale *= 10
        cut -= 1
    if cut == end - 1 or cut < begin or data[cut] != 35 or data[cut + 1] == 48:
        return end, 0
    return cut, number


@njit(cache=True)
def name_table(offsets: Array, data: Array, key: int) -> Array:
    """An open-addressing table of different names, half empty."""
    count = len(offsets) - 1
    size = 2 * count + 1
    table = np.full(size, ABSENT, np.int32)
    for i in range(count):
        at = hashed(data, offsets[i], offsets[i + 1], uint64(key)) % uint64(size)
        while table[at] != ABSENT:
            at = (at + uint64(1)) % uint64(size)
        table[at] = i
    return table


@njit(cache=True)
def number_names(
    offsets: Array, data: Array, name_offsets: Array, name_data: Array, table: Array, key: int, number: Array
) -> None:
    """The number of each name, by the same table; ABSENT where it is not among them."""
    for i in range(len(offsets) - 1):
        begin, end = offsets[i], offsets[i + 1]
        number[i] = _number(data, begin, end, name_offsets, name_data, table, key)


def combined(first: Array, second: Array) -> Array:
    """One key of 16 bytes for each pair of such keys."""
    lanes = [np.ascontiguousarray(each).view(np.uint64) for each in (first, second)]
    return _combined(*lanes).view("S16")


@njit(cache=True)
def _combined(first: Array, second: Array) -> Array:
    found = np.empty(len(first), np.uint64)
    for i in range(len(first)):
        found[i] = mixed(first[i] + uint64(0x9E3779B97F4A7C15)) ^ second[i]
    return found

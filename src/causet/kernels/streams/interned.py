"""Names that stand in bytes, as numbers: of the names that stamps repeat, only the distinct ones are made.

The table of names is keyed by a secret of the run, so that an attacker cannot choose names that all collide.
Numbers go by first occurrence: they do not depend on the key.
"""

from __future__ import annotations

import secrets
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numba import njit, uint64

from causet.kernels.arrays import Array
from causet.kernels.names import ABSENT, Word, mixed, word_at

KEY = secrets.randbits(63)
SMALLEST = 1 << 11
"""Names that there is room for to begin with."""


def interned(data: Array, start: Array, end: Array) -> pa.DictionaryArray:
    """The names that begin and end at these places of the data. They may be invalid UTF-8."""
    code, first = numbered(data, start, end, KEY)
    names = texts(data, start[first], end[first])
    return pa.DictionaryArray.from_arrays(pa.array(code), names, safe=False)


def texts(data: Array, start: Array, end: Array) -> pa.Array:
    """The strings that begin and end at these places of the data. They may be invalid UTF-8."""
    offsets, raw = _copied(data, start, end)
    return pa.Array.from_buffers(
        pa.large_string(), len(start), [None, pa.py_buffer(offsets), pa.py_buffer(raw)]
    )


def are_texts(names: pa.Array) -> bool:
    """Whether names are valid UTF-8; it is enough to look at the distinct ones."""
    try:
        (names.dictionary if pa.types.is_dictionary(names.type) else names).validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def together(*names: pa.Array) -> pa.DictionaryArray:
    """Names one after the other, whether or not they are interned."""
    return pa.concat_arrays([each.dictionary_encode() for each in names])


@njit(cache=True)
def _copied(data: Array, start: Array, end: Array) -> tuple[Array, Array]:
    offsets = np.zeros(len(start) + 1, np.int64)
    for i in range(len(start)):
        offsets[i + 1] = offsets[i] + end[i] - start[i]
    found = np.empty(offsets[-1], np.uint8)
    at = 0
    for i in range(len(start)):
        for byte in range(start[i], end[i]):  # names are short: a copy of a slice takes longer
            found[at] = data[byte]
            at += 1
    return offsets, found


@njit(cache=True)
def _same(data: Array, at: int, end: int, other: int) -> bool:
    """Whether the bytes up to the end stand in another place too."""
    shift = other - at
    while at < end:
        if word_at(data, at, end) != word_at(data, at + shift, end + shift):
            return False
        at += 8
    return True


class Known(NamedTuple):
    """A table of names by their hashes, of which half is free; and what is known of each name."""

    table: Array
    hashes: Array
    words: Array
    """the first bytes of each"""
    sizes: Array
    first: Array
    """where it occurred first"""


@njit(cache=True)
def _number_some(
    data: Array,
    start: Array,
    end: Array,
    key: Word,
    number: Array,
    known: Known,
    at: int,
    stop: int,
    count: int,
) -> int:
    """Number the names from `at` to `stop`, for all of which the table has room; returns how many are known
    then."""
    table, hashes, words, sizes, first = known
    mask = uint64(len(table) - 1)
    for i in range(at, stop):
        begin, size = start[i], end[i] - start[i]
        if i and begin == start[i - 1] and end[i] == end[i - 1]:  # the group of the entry before
            number[i] = number[i - 1]
            continue
        word = word_at(data, begin, end[i])
        value = mixed(word ^ key) + uint64(size)
        rest = begin + 8
        while rest < end[i]:
            value = mixed(value ^ word_at(data, rest, end[i])) + key
            rest += 8
        place = value & mask
        while True:
            name = table[place]
            if name == ABSENT:
                name = count
                table[place], hashes[name], first[name] = name, value, i
                words[name], sizes[name] = word, size
                count += 1
                break
            alike = hashes[name] == value and words[name] == word and sizes[name] == size
            if alike and (size <= 8 or _same(data, begin, end[i], start[first[name]])):
                break
            place = (place + uint64(1)) & mask
        number[i] = name
    return count


@njit(cache=True)
def _with_room(known: Known, size: int, count: int) -> Known:
    """The same table of `count` names, with room for so many."""
    _, hashes, words, sizes, first = known
    grown = Known(
        np.full(2 * size, ABSENT, np.int32),
        np.empty(size, np.uint64),
        np.empty(size, np.uint64),
        np.empty(size, np.int64),
        np.empty(size, np.int64),
    )
    mask = uint64(2 * size - 1)
    for name in range(count):
        grown.hashes[name], grown.words[name] = hashes[name], words[name]
        grown.sizes[name], grown.first[name] = sizes[name], first[name]
        place = hashes[name] & mask
        while grown.table[place] != ABSENT:
            place = (place + uint64(1)) & mask
        grown.table[place] = name
    return grown


@njit(cache=True)
def numbered(data: Array, start: Array, end: Array, key: int) -> tuple[Array, Array]:
    """For each name its number, by first occurrence; and for each number where that was."""
    number = np.empty(len(start), np.int32)
    none, empty = np.empty(0, np.int64), np.empty(0, np.uint64)
    size = SMALLEST
    known = _with_room(Known(np.empty(0, np.int32), empty, empty, none, none), size, 0)
    at = count = 0
    while at < len(start):
        if count > size // 2:
            size *= 2
            known = _with_room(known, size, count)
        # At most as many names as fit even if all are new: the table must not grow within the loop, since
        # numba would then count references to it for every name.
        stop = min(at + size // 2, len(start))
        count = _number_some(data, start, end, uint64(key), number, known, at, stop, count)
        at = stop
    return number, known.first[:count].copy()

"""The direct causes of messages, read from the columns in which they come, without Python objects.

    packed   bytes: a version, then for each cause its number (8 bytes), the length of its name (2) and the
             name, in UTF-8; numbers are little-endian
    map      source → sequence
    string   the same map as JSON, as the envelope has it
    ids      a parent's id, or a list of them

Each gives, for all messages one after the other, the names and numbers of their causes; and which messages
have causes that cannot be read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numba import njit, uint64

from causet.errors import BadStamp
from causet.kernels.arrays import Array
from causet.kernels.names import text_buffers
from causet.kernels.streams.block import begins
from causet.kernels.streams.interned import texts
from causet.stamp import MOST_DEPS, MOST_SEQUENCE, PACKED_VERSION, deps_of

HEADER = 10
"""Bytes of a packed cause before its name."""
MOST = MOST_SEQUENCE + 1
"""Stands for any number that is too large."""


class Causes(NamedTuple):
    begin: Array
    """for each message where its causes begin; one more at the end"""
    name: pa.Array
    number: Array
    bad: Array
    """for each message whether its causes cannot be read; it has none then"""


def read_causes(column: pa.Array) -> Causes:
    """The causes in a column of any of these types."""
    kind = column.type
    if pa.types.is_map(kind):
        return _checked(_from_map(column), column)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return _checked(_scanned(column.cast(pa.large_binary()), _scan_packed), column)
    return _checked(_scanned(column.cast(pa.large_string()).cast(pa.large_binary()), _scan_text), column)


def read_parents(column: pa.Array) -> Causes:
    """Parents by their ids: each is the one message of its stream."""
    if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
        column = column.cast(pa.large_list(pa.large_string()))
        sizes = np.diff(column.offsets.to_numpy())
        sizes[column.is_null().to_numpy(zero_copy_only=False)] = 0
        names = column.flatten()
    else:
        names = column.cast(pa.large_string())
        there = names.is_valid().to_numpy(zero_copy_only=False)
        sizes, names = there.astype(np.int64), names.drop_null()
    begin = begins(sizes)
    bad = np.zeros(len(column), np.bool_)
    if names.null_count:
        owners = np.repeat(np.arange(len(column)), sizes)
        bad[owners[names.is_null().to_numpy(zero_copy_only=False)]] = True
        names = names.fill_null("")
    return Causes(begin, names, np.ones(len(names), np.int64), bad)


def _from_map(column: pa.MapArray) -> Causes:
    sizes = np.diff(column.offsets.to_numpy())
    sizes[column.is_null().to_numpy(zero_copy_only=False)] = 0
    begin = begins(sizes)
    first, last = column.offsets[0].as_py(), column.offsets[len(column)].as_py()
    names = column.keys[first:last].cast(pa.large_string())
    numbers = column.items[first:last].cast(pa.int64()).fill_null(0).to_numpy()
    return Causes(begin, names, numbers, np.zeros(len(column), np.bool_))


def _scanned(column: pa.Array, scan: Any) -> Causes:
    offsets, data = text_buffers_of(column)
    there = column.is_valid().to_numpy(zero_copy_only=False)
    most = int(offsets[-1] - offsets[0])
    begin = np.zeros(len(column) + 1, np.int64)
    start, end = np.empty(most // 4 + 1, np.int64), np.empty(most // 4 + 1, np.int64)
    number = np.empty(most // 4 + 1, np.int64)
    bad = np.zeros(len(column), np.bool_)
    count = scan(offsets, data, there, begin, start, end, number, bad)
    names = texts(data, start[:count], end[:count])
    return Causes(begin, names, number[:count], bad)


def text_buffers_of(column: pa.Array) -> tuple[Array, Array]:
    """(offsets, bytes) of a column of large binaries, where nulls are empty."""
    return text_buffers(column.fill_null(b"").view(pa.large_string()))


@njit(cache=True)
def _scan_packed(
    offsets: Array,
    data: Array,
    there: Array,
    begin: Array,
    start: Array,
    end: Array,
    number: Array,
    bad: Array,
) -> int:
    count = 0
    for row in range(len(there)):
        first = count
        at, stop = offsets[row], offsets[row + 1]
        if there[row] and at < stop:
            fine = data[at] == PACKED_VERSION
            at += 1
            while fine and at < stop:
                if at + HEADER > stop:
                    fine = False
                    break
                value = uint64(0)
                for byte in range(8):
                    value |= uint64(data[at + byte]) << uint64(8 * byte)
                length = data[at + 8] | (data[at + 9] << 8)
                at += HEADER
                if at + length > stop or count - first >= MOST_DEPS:
                    fine = False
                    break
                start[count], end[count] = at, at + length
                number[count] = min(value, uint64(MOST))
                count += 1
                at += length
            if not fine:
                bad[row] = True
                count = first
        begin[row + 1] = count
    return count


@njit(cache=True)
def _scan_text(
    offsets: Array,
    data: Array,
    there: Array,
    begin: Array,
    start: Array,
    end: Array,
    number: Array,
    bad: Array,
) -> int:
    """JSON in canonical form; any other JSON is `bad` here, and looked at again."""
    count = 0
    for row in range(len(there)):
        first = count
        at, stop = offsets[row], offsets[row + 1]
        if there[row] and at < stop:
            fine = stop - at >= 2 and data[at] == 123 and data[stop - 1] == 125  # { }
            at += 1
            stop -= 1
            while fine and at < stop:
                if data[at] != 34 or count - first >= MOST_DEPS:  # "
                    fine = False
                    break
                at += 1
                begins = at
                while at < stop and data[at] != 34 and data[at] != 92 and data[at] >= 32:
                    at += 1
                if at + 2 >= stop or data[at] != 34 or data[at + 1] != 58:  # ":
                    fine = False
                    break
                start[count], end[count] = begins, at
                at += 2
                value = 0
                digits = 0
                while at < stop and 48 <= data[at] <= 57 and digits < 18:
                    value = 10 * value + data[at] - 48
                    digits += 1
                    at += 1
                leads = digits > 1 and data[at - digits] == 48
                if digits == 0 or leads or (at < stop and data[at] != 44) or at == stop - 1:  # ,
                    fine = False
                    break
                number[count] = min(value, MOST)
                count += 1
                at += 1
            if not fine:
                bad[row] = True
                count = first
        begin[row + 1] = count
    return count


def _checked(causes: Causes, column: pa.Array) -> Causes:
    """Look again at causes that the scanner refused, and at those with invalid names or numbers."""
    try:
        causes.name.validate(full=True)
        odd = np.flatnonzero(causes.bad)
    except pa.ArrowInvalid:
        odd = np.arange(len(column))
    sizes = np.diff(causes.begin)
    wrong = (causes.number < 1) | (causes.number > MOST_SEQUENCE)
    wrong |= pc.binary_length(causes.name).to_numpy(zero_copy_only=False) == 0  # a name is not empty
    if wrong.any():
        owners = np.repeat(np.arange(len(column)), sizes)
        odd = np.union1d(odd, owners[wrong])
    if not len(odd):
        return causes
    bad = np.zeros(len(column), np.bool_)
    again: dict[int, Mapping[str, int]] = {}
    for row in odd.tolist():
        try:
            again[row] = _one(column[row], causes, row)
        except (BadStamp, ValueError):
            bad[row] = True
            again[row] = {}
    regular = np.ones(len(column), np.bool_)
    regular[odd] = False
    keep = np.repeat(regular, sizes)
    new_sizes = np.where(regular, sizes, 0)
    for row, found in again.items():
        new_sizes[row] = len(found)
    begin = begins(new_sizes)
    numbers = np.empty(int(begin[-1]), np.int64)
    as_scanned = np.repeat(regular, new_sizes)
    numbers[as_scanned] = causes.number[keep]
    mended = pa.array([name for row in sorted(again) for name in again[row]], pa.large_string())
    numbers[~as_scanned] = [number for row in sorted(again) for number in again[row].values()]
    taken = np.empty(len(numbers), np.int64)
    kept = causes.name.filter(pa.array(keep))
    taken[as_scanned] = np.arange(len(kept))
    taken[~as_scanned] = len(kept) + np.arange(len(mended))
    return Causes(begin, pa.concat_arrays([kept, mended]).take(pa.array(taken)), numbers, bad)


def _one(value: Any, causes: Causes, row: int) -> Mapping[str, int]:
    """The causes of one message, checked one by one."""
    if pa.types.is_string(value.type) or pa.types.is_large_string(value.type):
        return deps_of({"causaldeps": value.as_py()})
    begin, end = causes.begin[row], causes.begin[row + 1]
    if causes.bad[row]:
        raise BadStamp("cannot be read")
    found = {}
    for at in range(begin, end):
        number = int(causes.number[at])
        if not 1 <= number <= MOST_SEQUENCE:
            raise BadStamp("a number out of bounds")
        name = causes.name[at].as_py()  # UnicodeDecodeError is a ValueError
        if not name:
            raise BadStamp("a source without a name")
        found[name] = number
    return found

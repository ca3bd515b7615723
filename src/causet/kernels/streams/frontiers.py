"""The pasts of messages to groups, read from the columns in which they come, without Python objects.

    packed   bytes: 2; then for each group the length of its name (2), the name, how many entries it has (4),
             and for each its number (8), the length of the process's name (2) and the name; integers are
             little-endian, names UTF-8
    map      group → process → number
    string   the same map as JSON, as the envelope has it

Each row can also have the flat form of `causes`, process → number: then the entries are of the one group
that the message itself is addressed to.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numba import njit, uint64

from causet.envelope import once
from causet.kernels.arrays import Array
from causet.kernels.streams.block import begins
from causet.kernels.streams.causes import HEADER, MOST, Causes, read_causes, text_buffers_of
from causet.kernels.streams.interned import are_texts, interned, together
from causet.model import is_text
from causet.stamp import MOST_DEPS, MOST_SEQUENCE, PACKED_FRONTIER, PACKED_VERSION

HERE = -1
"""Stands for a group where an entry is of the message's own group."""
LEAST_PACKED = (*[6 + HEADER] * 2, *[HEADER] * 4)
LEAST_TEXT = (*[len('"":{"":1}')] * 2, *[len('"":1')] * 4)
"""The bytes that a group with an entry takes, and an entry, at least: the room for each array of what is
scanned. More room would be memory that a worker does not keep for the next batch."""


class Frontiers(NamedTuple):
    begin: Array
    """for each message where its entries begin; one more at the end"""
    group: pa.Array | None
    """of each entry; None where all are of the groups of their messages"""
    name: pa.Array
    """both by their distinct ones, where they were read from bytes"""
    number: Array
    bad: Array
    """for each message whether its entries cannot be read; it has none then"""
    flat: Array
    """for each message whether its entries name no groups"""


class Scanned(NamedTuple):
    """What a scanner found: the bounds of groups, of which each has the entries that stand in it; and of each
    entry its group, or HERE, the bounds of its name, and its number."""

    begin: Array
    bad: Array
    group_start: Array
    group_end: Array
    group: Array
    start: Array
    end: Array
    number: Array


def read_numbers(column: pa.Array) -> Causes:
    """The numbers of messages in their groups: group → number, as a map or as JSON."""
    return read_causes(column)


def read_frontiers(column: pa.Array, own: pa.Array) -> Frontiers:
    """The entries in a column of any of these types; `own` has the group of each message to one group."""
    kind = column.type
    if pa.types.is_map(kind):
        if not pa.types.is_map(kind.item_type):
            begin, name, number, bad = read_causes(column)
            return Frontiers(begin, None, name, number, bad, np.diff(begin) > 0)
        return _from_maps(column)
    packed = pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
    data = column if packed else column.cast(pa.large_string())
    found, raw = _scanned(data.cast(pa.large_binary()), packed)
    return _checked(found, raw, column, own)


def _from_maps(column: pa.MapArray) -> Frontiers:
    sizes = np.diff(column.offsets.to_numpy())
    sizes[column.is_null().to_numpy(zero_copy_only=False)] = 0
    first, last = column.offsets[0].as_py(), column.offsets[len(column)].as_py()
    groups, entries = column.keys[first:last], column.items[first:last]
    begin, name, number, bad = read_causes(entries)
    owner = np.repeat(np.arange(len(column)), sizes)
    odd = bad | np.asarray(entries.is_null()) | np.asarray(pc.equal(groups, ""))
    damaged = np.zeros(len(column), np.bool_)
    damaged[owner[odd]] = True
    inner = np.diff(begin)
    counts = np.bincount(owner, weights=inner, minlength=len(column)).astype(np.int64)
    damaged |= counts > MOST_DEPS
    keep = np.repeat(~damaged[owner], inner)
    mask = pa.array(keep)
    group = groups.cast(pa.large_string()).take(pa.array(np.repeat(np.arange(len(owner)), inner)))
    return Frontiers(
        begins(np.where(damaged, 0, counts)),
        group.filter(mask),
        name.filter(mask),
        number[keep],
        damaged,
        np.zeros(len(column), np.bool_),
    )


def _scanned(column: pa.Array, packed: bool) -> tuple[Scanned, Array]:
    offsets, data = text_buffers_of(column)
    there = column.is_valid().to_numpy(zero_copy_only=False)
    least = LEAST_PACKED if packed else LEAST_TEXT
    arrays = [np.empty(int(offsets[-1] - offsets[0]) // size + 1, np.int64) for size in least]
    found = Scanned(np.zeros(len(column) + 1, np.int64), np.zeros(len(column), np.bool_), *arrays)
    groups, count = (_scan_packed if packed else _scan_text)(offsets, data, there, found)
    sizes = (groups, groups, count, count, count, count)
    return Scanned(found.begin, found.bad, *(each[:n] for each, n in zip(arrays, sizes, strict=True))), data


def _checked(found: Scanned, data: Array, column: pa.Array, own: pa.Array) -> Frontiers:
    """The entries as strings; rows that the scanner refused, or with invalid names or numbers, are looked at
    again one by one."""
    sizes = np.diff(found.begin)
    owner = np.repeat(np.arange(len(column)), sizes)
    wrong = (found.number < 1) | (found.number > MOST_SEQUENCE) | (found.end == found.start)
    grouped = found.group != HERE
    nameless = found.group_end == found.group_start
    if nameless.any():
        wrong[grouped] |= nameless[found.group[grouped]]
    names = interned(data, found.start, found.end)
    groups = _groups(data, found, grouped)
    bad = found.bad.copy()
    bad[owner[wrong]] = True
    if not (are_texts(names) and are_texts(groups)):
        bad[:] = True
    odd = np.flatnonzero(bad)
    if not len(odd):
        return _joined(found.begin, grouped, groups, names, found.number, bad, owner, own)
    keep = ~bad[owner]
    again = [_one(column[row], found, data, row) for row in odd.tolist()]
    lists = [[] if each is None else each for each in again]
    new_sizes = np.where(bad, 0, sizes)
    new_sizes[odd] = [len(each) for each in lists]
    entries = [entry for each in lists for entry in each]
    taken = np.argsort(
        np.concatenate([owner[keep], np.repeat(odd, [len(each) for each in lists])]), kind="stable"
    )
    mended = np.array([entry[0] is not None for entry in entries], np.bool_)
    all_grouped = np.concatenate([grouped[keep], mended])
    places = np.cumsum(all_grouped) - 1
    all_groups = together(
        _groups(data, found, keep & grouped),
        pa.array([entry[0] for entry in entries if entry[0] is not None], pa.large_string()),
    )
    all_names = together(
        interned(data, found.start[keep], found.end[keep]),
        pa.array([entry[1] for entry in entries], pa.large_string()),
    )
    numbers = np.concatenate([found.number[keep], np.array([entry[2] for entry in entries], np.int64)])
    refused = np.zeros(len(column), np.bool_)
    refused[odd] = [each is None for each in again]
    all_grouped = all_grouped[taken]
    order = pa.array(places[taken][all_grouped])
    begin = begins(new_sizes)
    owner = np.repeat(np.arange(len(column)), new_sizes)
    return _joined(
        begin,
        all_grouped,
        all_groups.take(order),
        all_names.take(pa.array(taken)),
        numbers[taken],
        refused,
        owner,
        own,
    )


def _groups(data: Array, found: Scanned, which: Array) -> pa.Array:
    """The groups of these entries."""
    group, start, end = found.group, found.group_start, found.group_end
    if not which.all():
        there, group = np.unique(group[which], return_inverse=True)
        start, end = start[there], end[there]
    names = interned(data, start, end)
    code = names.indices.to_numpy()[group]
    return pa.DictionaryArray.from_arrays(pa.array(code), names.dictionary, safe=False)


def _joined(
    begin: Array,
    grouped: Array,
    groups: pa.Array,
    names: pa.Array,
    numbers: Array,
    bad: Array,
    owner: Array,
    own: pa.Array,
) -> Frontiers:
    """The entries, with the message's own group for those that name none."""
    flat = np.zeros(len(bad), np.bool_)
    flat[owner[~grouped]] = True
    if not grouped.any():
        return Frontiers(begin, None, names, numbers, bad, flat)
    if not grouped.all():
        mine = own.take(pa.array(owner[~grouped]))
        taken = np.empty(len(numbers), np.int64)
        taken[grouped] = np.arange(len(groups))
        taken[~grouped] = len(groups) + np.arange(len(mine))
        groups = together(groups, mine).take(pa.array(taken))
    return Frontiers(begin, groups, names, numbers, bad, flat)


Entry = tuple[str | None, str, int]


def _one(value: Any, found: Scanned, data: Array, row: int) -> list[Entry] | None:
    """The entries of one message, checked one by one; None if they cannot be read."""
    try:
        if pa.types.is_string(value.type) or pa.types.is_large_string(value.type):
            entries = list(_of_json(json.loads(value.as_py(), object_pairs_hook=once)))
        else:
            entries = _of_packed(found, data, row)
    except (ValueError, RecursionError, TypeError, AttributeError):
        return None
    fine = all(
        (group is None or is_text(group)) and is_text(name) and type(number) is int
        for group, name, number in entries
    ) and all(1 <= number <= MOST_SEQUENCE for _, _, number in entries)
    return entries if fine and len(entries) <= MOST_DEPS else None


def _of_json(value: Any) -> Any:
    """The entries of the flat or the grouped form; an exception if it is neither."""
    if all(isinstance(each, dict) for each in value.values()):
        for group, entries in value.items():
            if not is_text(group) or not entries:
                raise ValueError(group)
            for name, number in entries.items():
                yield group, name, number
    else:
        for name, number in value.items():
            yield None, name, number


def _of_packed(found: Scanned, data: Array, row: int) -> list[Entry]:
    if found.bad[row]:
        raise ValueError(row)
    entries: list[Entry] = []
    for at in range(found.begin[row], found.begin[row + 1]):
        group = None
        if found.group[at] != HERE:
            start, end = (each[found.group[at]] for each in (found.group_start, found.group_end))
            group = data[start:end].tobytes().decode()
        name = data[found.start[at] : found.end[at]].tobytes().decode()
        entries.append((group, name, int(found.number[at])))
    return entries


# ---------------------------------------------------------------- scanners


@njit(cache=True, inline="always")
def _number_at(data: Array, begin: int) -> int:
    """The little-endian number of 8 bytes that begins here; MOST if it is larger. With an index that has no
    sign, it is one load."""
    at = uint64(begin)
    value = (
        uint64(data[at])
        | (uint64(data[at + uint64(1)]) << uint64(8))
        | (uint64(data[at + uint64(2)]) << uint64(16))
        | (uint64(data[at + uint64(3)]) << uint64(24))
        | (uint64(data[at + uint64(4)]) << uint64(32))
        | (uint64(data[at + uint64(5)]) << uint64(40))
        | (uint64(data[at + uint64(6)]) << uint64(48))
        | (uint64(data[at + uint64(7)]) << uint64(56))
    )
    return int(min(value, uint64(MOST)))


@njit(cache=True)
def _scan_packed(offsets: Array, data: Array, there: Array, found: Scanned) -> tuple[int, int]:
    begin, bad, group_start, group_end, group, start, end, number = found
    count = last = 0
    used = False  # whether the last group has entries
    for row in range(len(there)):
        first, first_last, first_used = count, last, used
        at, stop = offsets[row], offsets[row + 1]
        fine = True
        if there[row] and at < stop:
            grouped = data[at] == PACKED_FRONTIER
            fine = grouped or data[at] == PACKED_VERSION
            at += 1
            left = 0
            while fine and at < stop:
                if grouped and left == 0:
                    if at + 2 > stop:
                        fine = False
                        break
                    length = data[at] | (data[at + 1] << 8)
                    behind = at + 2 + length
                    if behind + 4 > stop:
                        fine = False
                        break
                    last, used = last + used, False
                    group_start[last], group_end[last] = at + 2, behind
                    for byte in range(4):
                        left += int(data[behind + byte]) << (8 * byte)
                    at = behind + 4
                    continue
                if at + HEADER > stop or count - first >= MOST_DEPS:
                    fine = False
                    break
                length = data[at + 8] | (data[at + 9] << 8)
                if at + HEADER + length > stop:
                    fine = False
                    break
                number[count] = _number_at(data, at)
                start[count], end[count] = at + HEADER, at + HEADER + length
                group[count] = last if grouped else HERE
                used |= grouped
                count += 1
                left -= 1
                at += HEADER + length
            if grouped and left != 0:
                fine = False
        if not fine:
            bad[row] = True
            count, last, used = first, first_last, first_used
        begin[row + 1] = count
    return last + used, count


@njit(cache=True, inline="always")
def _text_ends(data: Array, at: int, stop: int) -> int:
    """Where a string that begins here ends, if it is followed by a colon; or HERE."""
    if at >= stop or data[at] != 34:  # "
        return HERE
    at += 1
    while at < stop and data[at] != 34 and data[at] != 92 and data[at] >= 32:
        at += 1
    if at + 2 >= stop or data[at] != 34 or data[at + 1] != 58:  # ":
        return HERE
    return at


@njit(cache=True)
def _scan_text(offsets: Array, data: Array, there: Array, found: Scanned) -> tuple[int, int]:
    """JSON in canonical form; any other JSON is `bad` here, and looked at again."""
    begin, bad, group_start, group_end, group, start, end, number = found
    count = last = 0
    used = False  # whether the last group has entries
    for row in range(len(there)):
        first, first_last, first_used = count, last, used
        at, stop = offsets[row], offsets[row + 1]
        fine = True
        if there[row] and at < stop:
            fine = stop - at >= 2 and data[at] == 123 and data[stop - 1] == 125  # { }
            at += 1
            stop -= 1
            kind = 0  # 1 for a flat map, 2 for one of groups
            inside = False
            while fine and at < stop:
                ends = _text_ends(data, at, stop)
                if ends == HERE or count - first >= MOST_DEPS:
                    fine = False
                    break
                if not inside and data[ends + 2] == 123:  # {
                    fine = kind != 1
                    kind, inside = 2, True
                    last, used = last + used, False
                    group_start[last], group_end[last] = at + 1, ends
                    at = ends + 3
                    continue
                if not inside:
                    fine = kind != 2
                    kind = 1
                start[count], end[count] = at + 1, ends
                group[count] = last if inside else HERE
                used |= inside
                at = ends + 2
                value = 0
                digits = 0
                while at < stop and 48 <= data[at] <= 57 and digits < 18:
                    value = 10 * value + data[at] - 48
                    digits += 1
                    at += 1
                if digits == 0 or (digits > 1 and data[at - digits] == 48):
                    fine = False
                    break
                number[count] = min(value, MOST)
                count += 1
                if inside and at < stop and data[at] == 125:  # }
                    inside = False
                    at += 1
                if at < stop:
                    fine = fine and data[at] == 44 and at + 1 < stop  # a comma, and something after it
                    at += 1
            fine = fine and not inside
        if not fine:
            bad[row] = True
            count, last, used = first, first_last, first_used
        begin[row + 1] = count
    return last + used, count

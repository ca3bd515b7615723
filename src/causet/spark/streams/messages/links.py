"""What messages say of themselves and of their past: their own numbers, by group, and their causes.

A row of a table with groups has a number in each of its groups, and causes in any group; seen from a reader,
only those in the groups that it reads count. A row of an older table has one number, in its domain or in
none, and causes there. Where there are priorities and scopes, a group here is a channel within a scope
(`attributes`).
"""

from __future__ import annotations

import json
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from causet.envelope import MOST_SEQUENCE
from causet.frontier import PRIORITY_MARK as MARK
from causet.kernels.arrays import Array
from causet.kernels.streams.block import begins
from causet.kernels.streams.causes import Causes as Read
from causet.kernels.streams.causes import read_causes, read_parents
from causet.kernels.streams.channels import is_marked, plain
from causet.kernels.streams.frontiers import read_frontiers, read_numbers
from causet.kernels.streams.interned import together
from causet.kernels.streams.keys import distinct_pairs
from causet.readers import ALL
from causet.spark.streams.messages.attributes import (
    PAST,
    Attributes,
    attributes_of,
    channels,
    joined,
    waited,
)
from causet.spark.streams.messages.settings import NUMBER, RECEIVER, Settings
from causet.spark.streams.pack import in_one_piece, text_column

DIGITS = "^[0-9]{1,20}$"


class Numbers(NamedTuple):
    """The own numbers of rows."""

    begin: Array
    """for each row where its numbers begin; one more at the end"""
    group: pa.Array | None
    """of each number; None where there are no groups"""
    number: Array
    bad: dict[str, Array]
    """why rows have no numbers, and which"""


class Causes(NamedTuple):
    """The causes of rows."""

    begin: Array
    group: pa.Array | None
    """of each cause; None where it is that of its message"""
    name: pa.Array
    number: Array
    bad: Array
    """for each row whether its causes cannot be read; it has none then"""


def groups_of(table: pa.Table, settings: Settings) -> pa.Array:
    """The one group of each row that has but one: its domain, or `all`."""
    if settings.domain is None or settings.domain not in table.column_names:
        return _same(ALL, table.num_rows)
    return text_column(table.column(settings.domain)).fill_null(ALL)


def _same(text: str, count: int) -> pa.Array:
    none = pa.array(np.zeros(count, np.int8))
    return pa.DictionaryArray.from_arrays(none, pa.array([text])).cast(pa.large_string())


def numbers_of(table: pa.Table, settings: Settings) -> Numbers:
    """The own numbers of rows, for all readers. One that bypasses the order has a 1 for each group."""
    attributes = attributes_of(table, settings)
    found = _numbers_of(table, settings)
    if found.group is None:
        return found
    if is_marked(found.group):
        found = _without_marked(found)
    assert found.group is not None
    found = found._replace(group=channels(found.group, found.begin, attributes))
    return found if attributes.bypass is None else _with_bypass(found, table, settings, attributes.bypass)


def _without_marked(found: Numbers) -> Numbers:
    """Refuse the rows to groups that have the mark of channels in their names."""
    assert found.group is not None
    names = found.group.dictionary_encode()
    marked = np.array([plain(each) != each for each in names.dictionary.to_pylist()], np.bool_)
    odd = marked[names.indices.to_numpy(zero_copy_only=False)]
    rows = np.zeros(len(found.begin) - 1, np.bool_)
    rows[np.repeat(np.arange(len(rows)), np.diff(found.begin))[odd]] = True
    return found._replace(bad={**found.bad, "is for a group that cannot be called so": rows})


def _with_bypass(found: Numbers, table: pa.Table, settings: Settings, bypass: Array) -> Numbers:
    """The same with an entry for each group of the rows that bypass the order."""
    count = table.num_rows
    begin, names = begins(np.zeros(count, np.int64)), pa.array([], pa.large_string())
    if settings.groups is not None and settings.groups in table.column_names:
        begin, names = read_groups(in_one_piece(table.column(settings.groups)))
    sizes = np.where(bypass, np.diff(begin), 0)
    owner = np.repeat(np.arange(count), np.diff(begin))
    names, owner = names.filter(pa.array(bypass[owner])), owner[bypass[owner]]
    odd = bypass & (np.bincount(owner, minlength=count) == 0)
    odd[owner[pc.equal(names, "").to_numpy(zero_copy_only=False)]] = True
    if is_marked(names):
        odd[owner[pc.match_substring(names, MARK).to_numpy(zero_copy_only=False)]] = True
    coded = names.dictionary_encode().indices.to_numpy(zero_copy_only=False)
    pairs, counts = np.unique(np.stack([owner, coded]), axis=1, return_counts=True)
    odd[pairs[0][counts > 1]] = True
    mine = np.repeat(~bypass, np.diff(found.begin))
    assert found.group is not None
    whole = np.where(bypass, sizes, np.diff(found.begin))
    at = begins(whole)
    here = np.repeat(bypass, whole)
    number = np.ones(int(at[-1]), np.int64)
    number[~here] = found.number[mine]
    kept = found.group.filter(pa.array(mine))
    taken = np.empty(len(number), np.int64)
    taken[~here] = np.arange(len(kept))
    taken[here] = len(kept) + np.arange(len(names))
    group = pa.concat_arrays([kept, joined(names, PAST, "")]).take(pa.array(taken))
    bad = {why: rows & ~bypass for why, rows in found.bad.items()}
    bad["bypasses the order, and has no list of groups, each once"] = odd
    return Numbers(at, group, number, bad)


def _numbers_of(table: pa.Table, settings: Settings) -> Numbers:
    count = table.num_rows
    one = np.arange(count + 1, dtype=np.int64)
    if settings.parent is not None:
        return Numbers(one, None, np.ones(count, np.int64), {})
    number, wrong = _sequence(table, settings)
    if settings.version is not None:
        nameless = pc.equal(groups_of(table, settings), "").to_numpy(zero_copy_only=False)
        wrong[f"has a {settings.domain} without a name"] = nameless
    if settings.numbers is None:
        group = groups_of(table, settings) if settings.domain is not None or settings.routed else None
        return Numbers(one, group, number, wrong)
    column = in_one_piece(table.column(settings.numbers))
    grouped = column.is_valid().to_numpy(zero_copy_only=False)
    if not grouped.any():
        return Numbers(one, groups_of(table, settings), number, wrong)
    found = read_numbers(column)
    wrong = {why: bad & ~grouped for why, bad in wrong.items()}
    wrong[f"has {settings.numbers} that cannot be read"] = found.bad
    wrong |= _disagreements(table, settings, found, number, grouped)
    if grouped.all():
        return Numbers(found.begin, found.name, found.number, wrong)
    sizes = np.where(grouped, np.diff(found.begin), 1)
    begin = begins(sizes)
    mine = np.repeat(grouped, sizes)
    numbers = np.empty(int(begin[-1]), np.int64)
    numbers[mine], numbers[~mine] = found.number, number[~grouped]
    alone = groups_of(table, settings).filter(pa.array(~grouped))
    taken = np.empty(len(numbers), np.int64)
    taken[mine] = np.arange(len(found.name))
    taken[~mine] = len(found.name) + np.arange(len(alone))
    return Numbers(begin, pa.concat_arrays([found.name, alone]).take(pa.array(taken)), numbers, wrong)


def _sequence(table: pa.Table, settings: Settings) -> tuple[Array, dict[str, Array]]:
    """The numbers in the column of the sequence, 0 where there is none; and why rows have none."""
    name = settings.sequence
    if NUMBER not in table.column_names and name not in table.column_names:
        column = pa.nulls(table.num_rows, pa.int64())
    else:
        column = in_one_piece(table.column(NUMBER if NUMBER in table.column_names else name))
        if not pa.types.is_integer(column.type):
            text = column.cast(pa.large_string())
            short = pc.utf8_ltrim(text, "0")
            fine = pc.and_(pc.match_substring_regex(text, DIGITS), pc.less(pc.utf8_length(short), 18))
            column = pc.if_else(fine, pc.if_else(pc.equal(short, ""), "0", short), None).cast(pa.int64())
    numberless = column.is_null().to_numpy(zero_copy_only=False)
    number = column.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    out = ~numberless & ((number < 1) | (number > MOST_SEQUENCE))
    return np.where(out, 0, number), {
        f"has no {name} that is a number": numberless,
        f"has a {name} that is not between 1 and {MOST_SEQUENCE}": out,
    }


def _disagreements(
    table: pa.Table, settings: Settings, found: Read, sequence: Array, grouped: Array
) -> dict[str, Array]:
    """Rows whose groups or sequence are not those of their numbers."""
    count = table.num_rows
    sizes = np.diff(found.begin)
    odd = np.zeros(count, np.bool_)
    if settings.sequence in table.column_names:
        given = in_one_piece(table.column(settings.sequence)).is_valid().to_numpy(zero_copy_only=False)
        odd = grouped & ~found.bad & given
    lone = np.flatnonzero(odd & (sizes == 1))
    odd[lone] = found.number[found.begin[lone]] != sequence[lone]
    owner = np.repeat(np.arange(count), sizes)
    coded = found.name.dictionary_encode().indices.to_numpy(zero_copy_only=False)
    twice = np.zeros(count, np.bool_)
    if (sizes > 1).any():
        pairs, times = np.unique(np.stack([owner, coded]), axis=1, return_counts=True)
        twice[pairs[0][times > 1]] = True
    wrong = {
        f"has no group in its {settings.numbers}": grouped & ~found.bad & (sizes == 0),
        f"has a group twice in its {settings.numbers}": twice,
        f"has a {settings.sequence} that is not its number in its group": odd,
    }
    if settings.groups is not None and settings.groups in table.column_names:
        column = in_one_piece(table.column(settings.groups))
        there = column.is_valid().to_numpy(zero_copy_only=False)
        differ = _differ(read_groups(column), (found.begin, found.name)) & grouped & ~found.bad & there
        wrong[f"has {settings.groups} that are not those of its {settings.numbers}"] = differ
    return wrong


Lists = tuple[Array, pa.Array]
"""For each row where its strings begin, and one more; all strings, one after the other."""


def read_groups(column: pa.Array) -> Lists:
    """The groups of each row, from lists or from JSON; what cannot be read has the one group "", which no
    message has."""
    kind = column.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        column = column.cast(pa.large_list(pa.large_string()))
        sizes = np.diff(column.offsets.to_numpy())
        sizes[column.is_null().to_numpy(zero_copy_only=False)] = 0
        return begins(sizes), column.flatten().fill_null("")
    coded = column.cast(pa.large_string()).fill_null("").dictionary_encode()
    which = coded.indices.to_numpy(zero_copy_only=False)
    lists = [_listed(text) for text in coded.dictionary.to_pylist()]
    firsts = begins(np.array([len(each) for each in lists], np.int64))
    begin = begins(np.diff(firsts)[which])
    taken = np.repeat(firsts[which] - begin[:-1], np.diff(begin)) + np.arange(int(begin[-1]))
    names = pa.array([name for each in lists for name in each], pa.large_string())
    return begin, names.take(pa.array(taken))


def _listed(text: str) -> list[str]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return [""]
    fine = isinstance(found, list) and found and all(isinstance(each, str) for each in found)
    return found if fine else [""]


def _differ(one: Lists, other: Lists) -> Array:
    """For each row whether its two lists do not have the same strings, in whatever order."""
    sizes = np.diff(one[0])
    differ: Array = sizes != np.diff(other[0])
    names = pa.concat_arrays([one[1], other[1]]).dictionary_encode().indices.to_numpy(zero_copy_only=False)
    mine, theirs = names[: len(one[1])], names[len(one[1]) :]
    rows = np.arange(len(sizes))
    owner = np.repeat(rows, sizes)
    keep = ~differ[owner]
    owner, mine = owner[keep], mine[keep]
    theirs = theirs[~differ[np.repeat(rows, np.diff(other[0]))]]
    order, other_order = np.lexsort((mine, owner)), np.lexsort((theirs, owner))
    differ[owner[order][mine[order] != theirs[other_order]]] = True
    return differ


def causes_of(table: pa.Table, settings: Settings) -> Causes:
    """The causes of rows, for all readers."""
    if settings.parent is not None:
        begin, name, number, bad = read_parents(in_one_piece(table.column(settings.parent)))
        return Causes(begin, None, name, number, bad)
    column = in_one_piece(table.column(settings.causes))
    if settings.numbers is None:
        begin, name, number, bad = read_causes(column)
        return Causes(begin, None, name, number, bad)
    found = read_frontiers(column, groups_of(table, settings))
    grouped = in_one_piece(table.column(settings.numbers)).is_valid().to_numpy(zero_copy_only=False)
    # Either form stands for the groups of its own kind of message.
    bad = found.bad | np.where(grouped, found.flat, (np.diff(found.begin) > 0) & ~found.flat)
    whole = Causes(found.begin, found.group, found.name, found.number, bad)
    if bad.any():
        whole = _those(whole, np.repeat(~bad, np.diff(found.begin)))
    return whole if found.group is None else _waited(whole, attributes_of(table, settings))


def _waited(causes: Causes, attributes: Attributes) -> Causes:
    """Those of the causes that are waited for, by the names of their channels."""
    assert causes.group is not None
    group, keep, odd = waited(causes.group, causes.begin, attributes)
    causes = causes._replace(group=group)
    if keep is None:
        return causes
    bad = causes.bad.copy()
    if odd is not None:
        bad[np.repeat(np.arange(len(bad)), np.diff(causes.begin))[odd]] = True
    return _those(causes, keep)._replace(bad=bad)


def _those(causes: Causes, keep: Array) -> Causes:
    mask = pa.array(keep)
    return Causes(
        begins(_kept(causes.begin, keep)),
        None if causes.group is None else causes.group.filter(mask),
        causes.name.filter(mask),
        causes.number[keep],
        causes.bad,
    )


class Identified(Protocol):
    """Settings that say which columns have the identity of a message's process."""

    @property
    def source(self) -> str: ...

    @property
    def process(self) -> tuple[str, ...]: ...


def processes_of(table: pa.Table, settings: Identified) -> pa.Array:
    """The identities under which the messages are numbered."""
    names = [name for name in settings.process if name in table.column_names]
    found = text_column(table.column(names.pop(0) if names else settings.source))
    for name in (*names, settings.source):
        if not found.null_count:
            break
        found = pc.coalesce(found, text_column(table.column(name)))
    return found


# ---------------------------------------------------------------- what a reader sees


def receivers_of(table: pa.Table, settings: Settings) -> pa.Array:
    """The receivers of messages."""
    name = RECEIVER if RECEIVER in table.column_names else settings.receiver
    if name is None:
        return _same(ALL, table.num_rows)
    return text_column(table.column(name))


def _read_here(begin: Array, group: pa.Array, receiver: pa.Array, settings: Settings) -> Array:
    """For each (row, group) whether the row's receiver reads the group."""
    readers, groups = receiver.dictionary_encode(), group.dictionary_encode()
    who, what = (1 + each.indices.fill_null(-1).to_numpy(zero_copy_only=False) for each in (readers, groups))
    names, known = [None, *readers.dictionary.to_pylist()], [None, *groups.dictionary.to_pylist()]
    pairs, which = distinct_pairs(np.repeat(who, np.diff(begin)), what, len(names), len(known))
    reads = [
        reader is not None and group is not None and settings.readers.reads(reader, plain(group))
        for reader, group in ((names[r], known[g]) for r, g in zip(*pairs, strict=True))
    ]
    found: Array = np.array(reads, np.bool_)[which]
    return found


def numbers_here(numbers: Numbers, receiver: pa.Array, settings: Settings) -> Numbers:
    """Of the own numbers of rows, those in groups that their receivers read."""
    if numbers.group is None or not settings.routed:
        return numbers
    keep = _read_here(numbers.begin, numbers.group, receiver, settings)
    if keep.all():
        return numbers
    begin = begins(_kept(numbers.begin, keep))
    return Numbers(begin, numbers.group.filter(pa.array(keep)), numbers.number[keep], numbers.bad)


def causes_here(causes: Causes, receiver: pa.Array, settings: Settings) -> Causes:
    """Of the causes of rows, those in groups that their receivers read: the others are not waited for."""
    if causes.group is None or not settings.routed:
        return causes
    keep = _read_here(causes.begin, causes.group, receiver, settings)
    return causes if keep.all() else _those(causes, keep)


def name_themselves(numbers: Numbers, causes: Causes, process: pa.Array) -> Array:
    """Which rows to several groups name themselves as a cause, or a later message of their process, in one of
    these: for all readers alike. (In the groups that a reader reads, the kernel finds it, too.)"""
    found = np.zeros(len(process), np.bool_)
    sizes = np.diff(numbers.begin)
    owner = np.repeat(np.arange(len(process)), np.diff(causes.begin))
    own = (sizes > 1)[owner]
    if numbers.group is None or causes.group is None or not own.any():
        return found
    of_rows = process.take(pa.array(owner[own])).cast(pa.large_string())
    alike = pc.equal(causes.name.filter(pa.array(own)), of_rows).fill_null(False)
    own[own] = alike.to_numpy(zero_copy_only=False)
    groups = together(numbers.group, causes.group.filter(pa.array(own)))
    which = groups.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    mine, named = np.split(which, [len(numbers.number)])
    keys = np.repeat(np.arange(len(process)), sizes) * len(groups.dictionary) + mine
    order = np.argsort(keys)
    wanted = owner[own] * len(groups.dictionary) + named
    at = order[np.minimum(np.searchsorted(keys, wanted, sorter=order), len(order) - 1)]
    found[owner[own][(keys[at] == wanted) & (causes.number[own] >= numbers.number[at])]] = True
    return found


def _kept(begin: Array, keep: Array) -> Array:
    """How many of each row are kept."""
    found: Array = np.add.reduceat(np.append(keep, False).astype(np.int64), begin[:-1])
    found[np.diff(begin) == 0] = 0
    return found

"""The attributes by which a message is ordered unlike others: its cut, its priority and scope, or its bypass.

Where messages have a priority or a scope, what is numbered is not a group but a channel within a scope. Its
name is that of the group and, after a mark each, the priority and the scope: `orders`, `orders␟2`,
`orders␟0␟audit`. So the names of groups, which have no such mark, are those of channels as well.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from causet.envelope import BYPASS, CUT, MOST_SEQUENCE, MOST_URGENT, PRIORITY, SCOPE, is_channel
from causet.frontier import PRIORITY_MARK as MARK
from causet.frontier import parts_of
from causet.kernels.arrays import Array
from causet.kernels.streams.channels import is_marked
from causet.spark.streams.messages.settings import Settings
from causet.spark.streams.pack import in_one_piece, is_empty

PAST = f"{MARK}!"
"""The group of all messages that bypass the order; behind the name of a group, that one goes there."""
_WORDS = re.compile(r"(.+) \((?:priority (-?[1-9][0-9]*))?(?:, )?(?:scope (.+))?\)", re.DOTALL)
CUT_DIGITS, PRIORITY_DIGITS = "^[0-9]{1,18}$", "^(0|-?[1-9][0-9]{0,9})$"


class Attributes(NamedTuple):
    """The attributes of rows; each is None where no row has it."""

    cut: Array | None
    """the number of the cut; 0 for none"""
    priority: Array | None
    """0 for none"""
    scope: pa.Array | None
    """null for none"""
    bypass: Array | None
    """whether a row bypasses the order"""
    bad: dict[str, Array]
    """why rows are not messages, and which"""

    @property
    def scoped(self) -> Array | None:
        return None if self.scope is None else self.scope.is_valid().to_numpy(zero_copy_only=False)


NONE = Attributes(None, None, None, None, {})


def attributes_of(table: pa.Table, settings: Settings) -> Attributes:
    """The attributes of rows. A row that has a bad one counts as if it had none."""
    names = [name for name in (CUT, PRIORITY, SCOPE, BYPASS) if name in table.column_names]
    if settings.parent is not None or not names:
        return NONE
    columns = {name: in_one_piece(table.column(name)) for name in names}
    columns = {name: each for name, each in columns.items() if each.null_count < len(each)}
    if not columns:
        return NONE
    bad: dict[str, Array] = {}
    bypass = _bypass(table, settings, columns.get(BYPASS), bad)
    cut = _whole(columns, CUT, CUT_DIGITS, (0, MOST_SEQUENCE), bad)
    priority = _whole(columns, PRIORITY, PRIORITY_DIGITS, (-MOST_URGENT - 1, MOST_URGENT), bad)
    found = Attributes(cut, priority, _scope(columns.get(SCOPE), bad), bypass, bad)
    _check_scopes(table, settings, found)
    return found


def _whole(
    columns: dict[str, pa.Array], name: str, digits: str, bounds: tuple[int, int], bad: dict[str, Array]
) -> Array | None:
    """The whole numbers of a column, 0 where there is none."""
    if name not in columns:
        return None
    column = columns[name]
    if not pa.types.is_integer(column.type):
        text = column.cast(pa.large_string())
        column = pc.if_else(pc.match_substring_regex(text, digits), text, None).cast(pa.int64())
    fine = column.is_valid().to_numpy(zero_copy_only=False)
    number: Array = column.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    low, high = bounds
    fine &= (low <= number) & (number <= high)
    odd = columns[name].is_valid().to_numpy(zero_copy_only=False) & ~fine
    bad[f"has a {name} that is not a whole number between {low} and {high}"] = odd
    number = np.where(fine, number, 0)
    return number if number.any() else None


def _scope(column: pa.Array | None, bad: dict[str, Array]) -> pa.Array | None:
    if column is None:
        return None
    given = column.is_valid().to_numpy(zero_copy_only=False)
    text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    odd = is_empty(column) & given if text else given
    bad[f"has a {SCOPE} that is not text"] = odd
    if not (given & ~odd).any():
        return None
    return pc.if_else(pa.array(odd), None, column.cast(pa.large_string()))


def _bypass(
    table: pa.Table, settings: Settings, column: pa.Array | None, bad: dict[str, Array]
) -> Array | None:
    if column is None:
        return None
    text = column.cast(pa.large_string())
    bypass: Array = pc.equal(text, "true").fill_null(False).to_numpy(zero_copy_only=False)
    plain = pc.equal(text, "false").fill_null(True).to_numpy(zero_copy_only=False)
    bad[f"has a {BYPASS} that is not true or false"] = ~(bypass | plain)
    if not bypass.any():
        return None
    for name in (settings.numbers, settings.causes, CUT, settings.sequence, PRIORITY, SCOPE):
        if name is not None and name in table.column_names:
            given = in_one_piece(table.column(name)).is_valid().to_numpy(zero_copy_only=False)
            bad[f"bypasses the order, and has {name}"] = bypass & given
    nameless = np.ones(len(bypass), np.bool_)
    if "id" in table.column_names:
        nameless = is_empty(in_one_piece(table.column("id")).cast(pa.large_string()))
    bad["bypasses the order, and has no id"] = bypass & nameless
    for odd in bad.values():
        bypass = bypass & ~odd
    return bypass if bypass.any() else None


def _check_scopes(table: pa.Table, settings: Settings, found: Attributes) -> None:
    """Refuse priorities and scopes of messages without numbers by group, and cuts of messages of a scope."""
    count = table.num_rows
    grouped = np.zeros(count, np.bool_)
    if settings.numbers is not None and settings.numbers in table.column_names:
        grouped = in_one_piece(table.column(settings.numbers)).is_valid().to_numpy(zero_copy_only=False)
    for name, given in (
        (PRIORITY, None if found.priority is None else found.priority != 0),
        (SCOPE, found.scoped),
    ):
        if given is not None:
            found.bad[f"has a {name}, and no numbers by group"] = given & ~grouped
    if found.cut is not None and found.scoped is not None:
        found.bad[f"has a {SCOPE} and a {CUT}: cuts are of messages without a scope"] = found.scoped & (
            found.cut > 0
        )


def joined(*parts: pa.Array | str) -> pa.Array:
    """Strings, each made of several; null where one of them is. The last one stands between the others."""
    whole = [pa.scalar(each, pa.large_string()) if isinstance(each, str) else each for each in parts]
    return pc.binary_join_element_wise(*whole)


def without_scope(channel: str) -> str:
    """The channel itself, as `causaldeps` names it.

    >>> without_scope("orders"), without_scope("orders\\x1f2"), without_scope("orders\\x1f0\\x1faudit")
    ('orders', 'orders\\x1f2', 'orders')
    """
    group, _, rest = channel.partition(MARK)
    priority = rest.partition(MARK)[0]
    return f"{group}{MARK}{priority}" if priority not in ("", "0") else group


def scope_in(channel: str) -> str | None:
    """The scope within which a channel is.

    >>> scope_in("orders\\x1f2"), scope_in("orders\\x1f0\\x1faudit")
    (None, 'audit')
    """
    parts = channel.split(MARK, 2)
    return parts[2] if len(parts) == 3 else None


def in_words(channel: str) -> str:
    """A channel within a scope, for people.

    >>> in_words("orders"), in_words("orders\\x1f2"), in_words("orders\\x1f0\\x1faudit")
    ('orders', 'orders (priority 2)', 'orders (scope audit)')
    """
    group, priority = parts_of(without_scope(channel))
    more = [f"priority {priority}"] if priority else []
    scope = scope_in(channel)
    more += [f"scope {scope}"] if scope is not None else []
    return f"{group} ({', '.join(more)})" if more else group


def channel_called(words: str) -> str | None:
    """The channel within a scope that `in_words` calls so; None if that is a group, or none.

    >>> channel_called("orders (priority 2, scope audit)"), channel_called("orders")
    ('orders\\x1f2\\x1faudit', None)
    """
    found = _WORDS.fullmatch(words)
    if found is None or not any(found.groups()[1:]):
        return None
    group, priority, scope = found.groups()
    return MARK.join([group, priority or "0", *([] if scope is None else [scope])])


def channels(group: pa.Array, begin: Array, found: Attributes) -> pa.Array:
    """The channels of own numbers, from their groups: with the priority and the scope of their rows."""
    if found.priority is None and found.scope is None:
        return group
    owner = np.repeat(np.arange(len(begin) - 1), np.diff(begin))
    return joined(group, _suffixes(found, len(begin) - 1).take(pa.array(owner)), "")


def _suffixes(found: Attributes, count: int) -> pa.Array:
    priority = found.priority if found.priority is not None else np.zeros(count, np.int64)
    text = joined(MARK, pa.array(priority).cast(pa.large_string()), "")
    if found.scope is None:
        return pc.if_else(pa.array(priority != 0), text, "")
    whole = joined(text, found.scope, MARK)
    return pc.coalesce(whole, pc.if_else(pa.array(priority != 0), text, ""))


class Waited(NamedTuple):
    """Which causes are waited for, under which names, and which of them cannot be."""

    group: pa.Array
    keep: Array | None
    """None for all"""
    odd: Array | None
    """causes whose channels no message can have; None where there is none"""


def waited(group: pa.Array, begin: Array, found: Attributes) -> Waited:
    """The causes of messages by their channels: those that are less urgent than their messages are not waited
    for, and the others are in the scope of their messages."""
    marked = is_marked(group)
    if not marked and found.priority is None and found.scope is None:
        return Waited(group, None, None)
    owner = np.repeat(np.arange(len(begin) - 1), np.diff(begin))
    coded = group.dictionary_encode()
    names, which = coded.dictionary.to_pylist(), coded.indices.to_numpy(zero_copy_only=False)
    fine = np.array([is_channel(name) for name in names], np.bool_)
    urgent = np.array(
        [parts_of(name)[1] if ok else 0 for name, ok in zip(names, fine, strict=True)], np.int64
    )
    keep = fine[which]
    odd = ~keep
    if found.priority is not None or urgent.any():
        least = 0 if found.priority is None else found.priority[owner]
        keep = keep & (urgent[which] >= least)
    if found.scope is not None:
        group = group.cast(pa.large_string())
        texts = np.array([MARK in name for name in names], np.bool_)
        scope = found.scope.take(pa.array(owner))
        whole = pc.if_else(pa.array(texts[which]), group, joined(group, MARK + "0", ""))
        group = pc.coalesce(joined(whole, scope, MARK), group)
    return Waited(group, keep, odd if odd.any() else None)

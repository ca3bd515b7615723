"""The messages among the rows of a table, as the kernel takes them; and what else is in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from causet.envelope import HEARTBEAT
from causet.kernels.arrays import Array
from causet.kernels.streams.block import Messages, begins
from causet.kernels.streams.fingerprints import fingerprints, payload_columns
from causet.spark.streams.messages.attributes import PAST, attributes_of, joined
from causet.spark.streams.messages.links import (
    Causes,
    Numbers,
    causes_here,
    causes_of,
    name_themselves,
    numbers_here,
    numbers_of,
    processes_of,
    receivers_of,
)
from causet.spark.streams.messages.settings import Settings
from causet.spark.streams.pack import FAULT, SIZE, in_one_piece, is_empty, text_column
from causet.spark.streams.stability.contents import Contents

TYPE = "type"
SELFISH = "depends on itself or on a later message of its source"
ODD_VERSION = "has a causalversion that is not 1 or 2"


class Taken(NamedTuple):
    """The rows of a table, sorted by what they are."""

    messages: Messages
    refused: dict[int, str]
    """of rows that are not messages, by their places, why"""
    named: Messages
    """of these, the ones whose number can be read"""
    heartbeats: int


def taken(table: pa.Table | None, settings: Settings, first_place: int) -> Taken:
    """The messages of a table for the kernel, and what else is in it."""
    if table is None or not table.num_rows:
        return Taken(_nothing(), {}, _nothing(), 0)
    count = table.num_rows
    problems: dict[int, str] = {}

    def refuse(rows: Array, problem: str) -> None:
        for row in np.flatnonzero(rows).tolist():
            problems.setdefault(row, problem)

    if FAULT in table.column_names:
        faults = in_one_piece(table.column(FAULT))
        for row in np.flatnonzero(faults.is_valid().to_numpy(zero_copy_only=False)).tolist():
            problems[row] = faults[row].as_py()
    receiver = receivers_of(table, settings)
    nameless = receiver.is_null().to_numpy(zero_copy_only=False)
    if not settings.routed:
        refuse(nameless, f"has no {settings.by}")
    sourceless = is_empty(in_one_piece(table.column(settings.source)))
    refuse(sourceless, f"has no {settings.source}")
    process = processes_of(table, settings)
    unnamed = is_empty(process) & ~sourceless
    refuse(unnamed, "has a process without a name")
    _check_version(table, settings, refuse)
    attributes = attributes_of(table, settings)
    for problem, rows in attributes.bad.items():
        refuse(rows, problem)
    if attributes.cut is not None:
        for rows, problem in unknown_cuts(attributes.cut, settings):
            refuse(rows, problem)
    numbers = numbers_of(table, settings)
    numberless = np.zeros(count, np.bool_)
    for problem, rows in numbers.bad.items():
        refuse(rows, problem)
        numberless |= rows
    causes = causes_of(table, settings)
    refuse(causes.bad, f"has {settings.causes or settings.parent} that cannot be read")
    if settings.routed:
        refuse(name_themselves(numbers, causes, process), SELFISH)
    if settings.most_bytes is not None and SIZE in table.column_names:
        size = in_one_piece(table.column(SIZE)).fill_null(0).to_numpy(zero_copy_only=False)
        refuse(
            size > settings.most_bytes,
            f"is larger than the {settings.most_bytes:,} bytes that the sink takes of a message",
        )
    beats = _heartbeats(table)
    bad = np.zeros(count, np.bool_)
    bad[list(problems)] = True
    bad &= ~beats
    receiver, process = receiver.fill_null(""), process.fill_null("")
    numbers, causes = numbers_here(numbers, receiver, settings), causes_here(causes, receiver, settings)
    if attributes.bypass is not None:
        process = pc.if_else(pa.array(attributes.bypass), _names_of_past(table, settings), process)
        numbers = _once(numbers, attributes.bypass)
    whole = Whole(
        receiver,
        process,
        numbers,
        causes,
        first_place + np.arange(count),
        fingerprints(table, payload_columns(table.column_names)),
        attributes.cut,
        attributes.priority,
        attributes.bypass,
    )
    refused = {first_place + row: problem for row, problem in problems.items() if not beats[row]}
    named = bad & ~(nameless | sourceless | unnamed | numberless)
    return Taken(whole.of(~(bad | beats)), refused, whole.of(named), int(beats.sum()))


def unknown_cuts(cut: Array, settings: Settings) -> Iterator[tuple[Array, str]]:
    """The rows that name a cut that cannot be waited for, and why."""
    if settings.stable is None:
        yield cut > 0, "names a cut, which can be waited for only with its place (--stable)"
        return
    contents = Contents(settings.stable, settings.readers)
    for number in np.unique(cut[cut > 0]).tolist():
        if contents.lacks(number):
            yield cut == number, f"names cut {number}, which is not in {settings.stable}"


def _names_of_past(table: pa.Table, settings: Settings) -> pa.Array:
    """Under which names messages are known that bypass the order: their sources and ids."""
    source, id = (text_column(table.column(name)).fill_null("") for name in (settings.source, "id"))
    length = pc.utf8_length(source).cast(pa.large_string())
    return joined(length, source, id, ":")


def _once(numbers: Numbers, bypass: Array) -> Numbers:
    """The rows that bypass the order with one number each, in no group."""
    assert numbers.group is not None
    sizes = np.diff(numbers.begin)
    owner = np.repeat(np.arange(len(bypass)), sizes)
    first = np.zeros(len(owner), np.bool_)
    first[numbers.begin[:-1][sizes > 0]] = True
    keep = first | ~bypass[owner]
    group = pc.if_else(pa.array(bypass[owner]), PAST, numbers.group).filter(pa.array(keep))
    return numbers._replace(
        begin=begins(np.where(bypass, np.minimum(sizes, 1), sizes)), group=group, number=numbers.number[keep]
    )


def _nothing() -> Messages:
    none = pa.array([], pa.large_string())
    empty = np.empty(0, np.int64)
    return Messages(none, none, empty, np.zeros(1, np.int64), none, empty, empty, np.empty(0, np.uint64))


def _heartbeats(table: pa.Table) -> Array:
    """Which rows are heartbeats, which are for a merge: they carry no message."""
    kind = in_one_piece(table.column(TYPE)) if TYPE in table.column_names else pa.nulls(table.num_rows)
    if not (pa.types.is_string(kind.type) or pa.types.is_large_string(kind.type)):
        return np.zeros(table.num_rows, np.bool_)
    found: Array = pc.equal(kind, HEARTBEAT).fill_null(False).to_numpy(zero_copy_only=False)
    return found


def _check_version(table: pa.Table, settings: Settings, refuse: Callable[[Array, str], None]) -> None:
    """Refuse messages of a version that cannot be read."""
    if settings.version is None or settings.version not in table.column_names:
        return
    version = in_one_piece(table.column(settings.version))
    found = version.unique().to_pylist()
    odd = [each for each in found if str(each) not in ("1", "2", "None")]
    if odd:
        refuse(_is_one_of(version, odd), ODD_VERSION)


def _is_one_of(column: pa.Array, values: list[object]) -> Array:
    found: Array = pc.is_in(column, pa.array(values, column.type)).to_numpy(zero_copy_only=False)
    return found


class Whole(NamedTuple):
    """All rows of a table by what the kernel wants to know of them."""

    receiver: pa.Array
    process: pa.Array
    numbers: Numbers
    causes: Causes
    place: Array
    mark: Array
    cut: Array | None
    priority: Array | None
    bypass: Array | None

    def of(self, keep: Array) -> Messages:
        """The messages in some of the rows. One with several numbers takes as many rows of the kernel: all
        but the first are parts."""
        if not keep.any():
            return _nothing()
        if keep.all() and (np.diff(self.numbers.begin) == 1).all():
            return self._whole()
        sizes = np.diff(self.numbers.begin)[keep]
        owner = np.repeat(np.flatnonzero(keep), sizes)
        each = pa.array(owner)
        numbers = pa.array(np.repeat(keep, np.diff(self.numbers.begin)))
        caused = np.diff(self.causes.begin)[keep]
        causes = np.repeat(keep, np.diff(self.causes.begin))
        mine = pa.array(causes)
        part = cause_sizes = None
        if (sizes != 1).any():
            part = np.ones(len(owner), np.bool_)
            part[begins(sizes)[:-1][sizes > 0]] = False
            cause_sizes = np.zeros(len(owner), np.int64)
            cause_sizes[~part] = caused[sizes > 0]
        group, cause_group = self.numbers.group, self.causes.group
        cut = None
        if self.cut is not None:
            cut = self.cut[owner] if part is None else np.where(part, 0, self.cut[owner])
        return Messages(
            self.receiver.take(each),
            self.process.take(each),
            self.numbers.number[np.asarray(numbers)],
            begins(caused if cause_sizes is None else cause_sizes),
            self.causes.name.filter(mine),
            self.causes.number[causes],
            self.place[owner],
            self.mark[owner],
            None if group is None else group.filter(numbers),
            None if cause_group is None else cause_group.filter(mine),
            part,
            cut,
            None if self.priority is None else self.priority[owner],
            None if self.bypass is None else self.bypass[owner],
        )

    def _whole(self) -> Messages:
        """All of the rows, each of which has one number."""
        return Messages(
            self.receiver,
            self.process,
            self.numbers.number,
            self.causes.begin,
            self.causes.name,
            self.causes.number,
            self.place,
            self.mark,
            self.numbers.group,
            self.causes.group,
            None,
            self.cut,
            self.priority,
            self.bypass,
        )

"""Beginnings now: from what the state of a query says that the readers of a group have got.

The cut of a group is what any of its readers has delivered there. What each of them delivered has in it the
past of its messages within the group, so this is true of all together; and frontiers cover each group apart.

All that came and is not in the cut is held, by every reader of the group: a reader that begins gets a copy.
What is held by a reader that reads other groups now is taken out and comes in again, since it may wait for
other causes; or it is diverted, if the reader reads none of its groups any more: delivered later than what
comes after it, it would be out of order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from causet.errors import BadInput, printable, quote
from causet.kernels.arrays import Array
from causet.kernels.names import combined
from causet.kernels.streams.beginning import NOTHING, Counted, counted_by, covers, streams_of, union
from causet.kernels.streams.channels import channels_of, plain
from causet.kernels.streams.holding import Holding
from causet.kernels.streams.keys import KEY, digests
from causet.kernels.streams.marks import positions
from causet.readers import Readers
from causet.spark.streams.beginnings.kept import LEFT_ROWS, OWN_ROWS, ROWS, Beginnings
from causet.spark.streams.beginnings.plan import Changes
from causet.spark.streams.messages.links import numbers_of, processes_of
from causet.spark.streams.messages.settings import RECEIVER, Settings
from causet.spark.streams.parquet import buckets_of
from causet.spark.streams.state import ROW_MASK, SEGMENT_BITS

Rows = Callable[[int], Iterator[tuple[int, pa.Table]]]
"""The segments of the rows that a bucket holds, with their numbers."""
Cuts = dict[bytes, Counted]
"""The key of a channel → what counts as delivered there."""
Wanted = dict[int, list[tuple[str, Array]]]
"""bucket → who wants the rows at which places"""


@dataclass
class State:
    """What the buckets of a query remember, and the rows that they hold."""

    buckets: Mapping[int, Holding]
    rows: Rows
    settings: Settings

    def bucket_of(self, reader: str) -> int:
        return int(buckets_of(pa.array([reader]), self.settings.buckets)[0])

    def of(self, reader: str) -> Holding:
        """What the bucket of a reader remembers."""
        found = self.buckets.get(self.bucket_of(reader))
        return Holding.empty() if found is None else found


def begin_now(kept: Beginnings, state: State, before: Readers, found: Changes) -> None:
    """Write down what begins, but for the word that it is there."""
    groups = {group: None for groups in found.added.values() for group in groups}
    cuts = {group: _cuts_of(state, before, group) for group in groups}
    for reader, mine in found.added.items():
        bucket = state.bucket_of(reader)
        for group in mine:
            itself = digests([group]).tobytes()
            for channel, cut in cuts[group].items():
                kept.count(bucket, reader, np.frombuffer(channel, f"S{KEY}"), cut)
                if channel != itself:
                    kept.channel(bucket, channel, itself)
    held = {group: _held_above(state, before, group, cuts[group]) for group in groups}
    _write_rows(kept, state, _own(state, found), _own_rows)
    _write_rows(
        kept, state, _copies(held, found), _Copies({k: c for cut in cuts.values() for k, c in cut.items()})
    )


def _cuts_of(state: State, before: Readers, group: str) -> Cuts:
    """What was delivered in each channel of a group, by any of its readers."""
    readers = [(reader, state.of(reader)) for reader in before.of_group(group)]
    key = digests([group]).tobytes()
    channels = dict.fromkeys([key, *(each for _, of in readers for each in channels_of(of.channels, key))])
    return {
        channel: union(counted_by(of, reader, np.frombuffer(channel, f"S{KEY}")) for reader, of in readers)
        for channel in channels
    }


def _held_above(state: State, before: Readers, group: str, cuts: Cuts) -> dict[int, Array]:
    """Where what is held of a group lies that is not in the cut: bucket → places, each message once."""
    found: dict[int, list[Array]] = defaultdict(list)
    for channel, taken in cuts.items():
        for reader in before.of_group(group):
            holding = state.of(reader)
            streams = streams_of(holding, reader, np.frombuffer(channel, f"S{KEY}"))
            mine = np.flatnonzero(np.isin(holding.stream, streams))
            process, number = holding.stream_name[holding.stream[mine]], holding.number[mine]
            new = ~covers(taken, process, number)
            if new.any():
                process, number = process[new], number[new]
                taken = union([taken, Counted(process, number, number, np.zeros(len(number), np.int64))])
                found[state.bucket_of(reader)].append(holding.place[mine[new]])
    return {bucket: np.concatenate(places) for bucket, places in found.items()}


def _copies(held: Mapping[str, Mapping[int, Array]], found: Changes) -> Wanted:
    wanted: Wanted = defaultdict(list)
    for reader, groups in found.added.items():
        mine: dict[int, list[Array]] = defaultdict(list)
        for group in groups:
            for bucket, places in held[group].items():
                mine[bucket].append(places)
        for bucket, some in mine.items():
            wanted[bucket].append((reader, np.unique(np.concatenate(some))))
    return wanted


def _own(state: State, found: Changes) -> Wanted:
    """What those hold that read other groups now."""
    wanted: Wanted = defaultdict(list)
    for reader in found.changed:
        holding = state.of(reader)
        places = np.unique(holding.place[_receiver_of(holding) == digests([reader])[0]])
        if len(places):
            wanted[state.bucket_of(reader)].append((reader, places))
    return wanted


def _receiver_of(holding: Holding) -> Array:
    return holding.receiver_key[holding.receiver]


def _write_rows(
    kept: Beginnings,
    state: State,
    wanted: Wanted,
    write: Callable[[Beginnings, State, str, Array, pa.Table], None],
) -> None:
    """Write rows for those who want them; at no time are more in memory than those of a segment."""
    for bucket, wants in wanted.items():
        for segment, rows in state.rows(bucket):
            for reader, places in wants:
                mine = places[places >> SEGMENT_BITS == segment]
                if len(mine):
                    table = rows.take(pa.array(mine & ROW_MASK))
                    write(kept, state, reader, mine, table)


def _own_rows(kept: Beginnings, state: State, reader: str, places: Array, table: pa.Table) -> None:
    """What a reader goes on to hold; and what is only in groups that it reads no longer."""
    numbers = numbers_of(table, state.settings)
    assert numbers.group is not None
    groups = [plain(each) for each in numbers.group.to_pylist()]
    reads = np.array([state.settings.readers.reads(reader, each) for each in groups], bool)
    mine = np.zeros(table.num_rows, np.bool_)
    mine[np.repeat(np.arange(table.num_rows), np.diff(numbers.begin))[reads]] = True
    bucket = state.bucket_of(reader)
    kept.take_out(bucket, places)
    for kind, rows in ((OWN_ROWS, mine), (LEFT_ROWS, ~mine)):
        if rows.any():
            kept.add(bucket, kind, table.filter(pa.array(rows)))


@dataclass(frozen=True)
class _Copies:
    cuts: Cuts

    def __call__(self, kept: Beginnings, state: State, reader: str, places: Array, table: pa.Table) -> None:
        self._check(state, reader, table)
        at = table.column_names.index(RECEIVER)
        named = pa.array([reader] * table.num_rows, table.schema.field(at).type)
        kept.add(state.bucket_of(reader), ROWS, table.set_column(at, RECEIVER, named))

    def _check(self, state: State, reader: str, table: pa.Table) -> None:
        """BadInput if the reader has delivered a message in one of its groups that it would have to hold in
        another one."""
        holding = state.of(reader)
        if not (holding.receiver_key == digests([reader])[0]).any():
            return
        numbers = numbers_of(table, state.settings)
        assert numbers.group is not None
        owner = np.repeat(np.arange(table.num_rows), np.diff(numbers.begin))
        groups = numbers.group.to_pylist()
        reads = np.array([state.settings.readers.reads(reader, plain(each)) for each in groups], bool)
        processes = processes_of(table, state.settings)
        names = digests([str(processes[row].as_py()) for row in owner.tolist()])
        keys = combined(combined(digests([reader] * len(groups)), digests(groups)), names)
        stream = positions(holding.stream_key, keys)
        known = stream >= 0
        left, here = known.copy(), known.copy()
        left[known] = holding.is_delivered(stream[known], numbers.number[known])
        here[known] = holding._is_held(stream[known], numbers.number[known])
        for at in np.flatnonzero(reads & ~left & ~here).tolist():
            cut = self.cuts.get(digests([groups[at]]).tobytes(), NOTHING)
            if covers(cut, names[at : at + 1], numbers.number[at : at + 1])[0]:
                continue
            if (left & (owner == owner[at])).any():
                message = f"{printable(str(processes[owner[at]].as_py()))}:{numbers.number[at]}"
                raise BadInput(
                    f"reader {quote(reader)} cannot begin in the group {quote(plain(groups[at]))} now: it "
                    f"has delivered {message}, which the readers of that group still hold; begin when they "
                    "have delivered it, or give the reader another name"
                )

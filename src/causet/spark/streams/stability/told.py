"""What the readers of a bucket have delivered, told to a place of cuts.

The state of a bucket knows processes by digests, so names are those of messages that left: with them, it is
said how far their streams are. Where a reader gave something up, its stream goes on when the horizon has
passed; that may be in a batch in which none of its messages leaves, so streams that were told of are looked
at again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from causet.cuts import Cuts, Told
from causet.kernels.arrays import Array
from causet.kernels.names import combined
from causet.kernels.streams.keys import digests
from causet.kernels.streams.marks import positions
from causet.spark.streams.messages.attributes import scope_in
from causet.spark.streams.messages.links import (
    groups_of,
    numbers_here,
    numbers_of,
    processes_of,
    receivers_of,
)
from causet.spark.streams.messages.settings import Settings

Stream = tuple[str, str, str]
"""Reader, channel, process."""


def streams_in(table: pa.Table, settings: Settings) -> Iterator[Stream]:
    """The distinct streams of messages, without those of scopes, which are in no cut. (What is past the order
    is known by its id, so it is found under no name that is told.)"""
    receiver = receivers_of(table, settings).fill_null("")
    numbers = numbers_here(numbers_of(table, settings), receiver, settings)
    group = numbers.group if numbers.group is not None else groups_of(table, settings)
    owner = pa.array(np.repeat(np.arange(table.num_rows), np.diff(numbers.begin)))
    process = processes_of(table, settings).fill_null("")
    coded = [each.dictionary_encode() for each in (receiver.take(owner), group, process.take(owner))]
    parts = [each.indices.to_numpy(zero_copy_only=False).astype(np.int64) for each in coded]
    names = [each.dictionary.to_pylist() for each in coded]
    for r, g, p in np.unique(np.stack(parts), axis=1).T.tolist():
        channel = names[1][g]
        if scope_in(channel) is None:
            yield names[0][r], channel, names[2][p]


def tell(place: str, query: str, bucket: int, left: Sequence[Stream], reached: tuple[Array, Array]) -> None:
    """Say how far these streams are, and those that were told of before."""
    cuts = Cuts(place)
    before = [
        (reader, channel, process)
        for reader, groups in cuts.told(query, bucket).items()
        for channel, entries in groups.items()
        for process in entries
    ]
    streams = [*dict.fromkeys([*left, *before])]
    if not streams:
        return
    keys, numbers = reached
    readers, channels, processes = (digests(list(each)) for each in zip(*streams, strict=True))
    known = positions(keys, combined(combined(readers, channels), processes))
    delivered: Told = {}
    for (reader, channel, process), at in zip(streams, known.tolist(), strict=True):
        if at >= 0 and numbers[at] > 0:
            delivered.setdefault(reader, {}).setdefault(channel, {})[process] = int(numbers[at])
    if delivered:
        cuts.tell(query, bucket, delivered)

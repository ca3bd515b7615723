"""Messages on their way to their readers: a copy for each of them, in the blob of its bucket."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from causet.kernels.arrays import Array
from causet.kernels.streams.block import begins
from causet.kernels.streams.channels import plain
from causet.spark.streams.messages.links import numbers_of
from causet.spark.streams.messages.settings import RECEIVER, Settings
from causet.spark.streams.pack import Batches, cut, packed_batch, together
from causet.spark.streams.parquet import buckets_of


@dataclass(frozen=True)
class Route:
    """Makes a copy of each row for each reader of its groups, and cuts them by bucket. A row whose groups
    cannot be read has no reader, and goes on by itself, to be diverted."""

    settings: Settings

    def __call__(self, batches: Batches) -> Batches:
        for some in together(batches):
            yield self._cut(pa.Table.from_batches(some))

    def _cut(self, table: pa.Table) -> pa.RecordBatch:
        count = table.num_rows
        rows, receiver, unread, unread_by = self._routed(table)
        if not len(rows):
            return packed_batch([0], None, [None], count, 0, unread, unread_by)
        buckets = buckets_of(receiver.fill_null(""), self.settings.buckets)
        order = np.argsort(buckets, kind="stable")  # so that rows are copied once
        copies = table.take(pa.array(rows[order])).append_column(RECEIVER, receiver.take(pa.array(order)))
        where, blobs = cut(copies, buckets[order])
        return packed_batch(where, None, blobs, count, len(rows) + unread - count, unread, unread_by)

    def _routed(self, table: pa.Table) -> tuple[Array, pa.Array, int, Counter[str]]:
        """The rows that go on, each with its reader, or null where its groups cannot be read; how many have
        no reader, and how many of these each of their groups has."""
        numbers = numbers_of(table, self.settings)
        assert numbers.group is not None
        count = table.num_rows
        odd = np.diff(numbers.begin) == 0
        for bad in numbers.bad.values():
            odd |= bad
        owner = np.repeat(np.arange(count), np.diff(numbers.begin))
        coded = numbers.group.dictionary_encode()
        group = coded.indices.to_numpy(zero_copy_only=False)[~odd[owner]]
        owner = owner[~odd[owner]]
        names: dict[str, int] = {}
        lists = [
            sorted(
                names.setdefault(reader, len(names)) for reader in self.settings.readers.of_group(plain(each))
            )
            for each in coded.dictionary.to_pylist()
        ]
        firsts = begins(np.array([len(each) for each in lists], np.int64))
        whose = np.array([reader for each in lists for reader in each], np.int64)
        sizes = np.diff(firsts)[group]
        each = begins(sizes)
        reader = whose[np.repeat(firsts[group] - each[:-1], sizes) + np.arange(each[-1])]
        pairs = np.repeat(owner, sizes) * max(len(names), 1) + reader
        if (np.diff(owner) == 0).any():  # a reader of several groups of a message gets it once
            pairs = np.unique(pairs)
        rows, reader = np.divmod(pairs, max(len(names), 1))
        read = np.zeros(count, np.bool_)
        read[rows] = True
        unread = ~read & ~odd
        unread_by: Counter[str] = Counter()
        if unread.any():
            alone = np.bincount(group[unread[owner]], minlength=len(lists))
            for name, messages in zip(coded.dictionary.to_pylist(), alone.tolist(), strict=True):
                unread_by[plain(name)] += messages
        aside = np.flatnonzero(odd)
        rows, reader = np.append(rows, aside), np.append(reader, np.full(len(aside), len(names)))
        receiver = pa.array([*names, None], pa.string()).take(pa.array(reader))
        order = np.argsort(rows, kind="stable")
        return rows[order], receiver.take(pa.array(order)), int(unread.sum()), +unread_by

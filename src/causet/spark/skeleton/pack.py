"""Rows of events packed into blobs, by each worker for itself.

Every reference becomes a link (effect, cause). References of the form `process#seq` are taken apart at once.
Ids and messages that can be any string become keyed hashes; definitions and references with the same hash
meet in a bucket (`match`).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from causet.kernels.arrays import Array
from causet.kernels.logs.pages import ABSENT, PLAIN, Piece, by_page
from causet.kernels.names import (
    MESSAGES,
    hash_texts,
    list_lengths,
    name_table,
    number_names,
    parse_references,
    text_buffers,
)
from causet.spark.skeleton.blobs import KEYS, LOCAL, NOTE, PIECE, TARGETS, Batches, blob_batch, pack
from causet.spark.skeleton.notes import EXAMPLES, LOST_PARENT, Notes

BLOB_ROWS = 1 << 18
"""Events that go into one blob."""
DEFINES_ID, DEFINES_MESSAGE, NAMES_PARENT, NAMES_MESSAGE, NAMES_DELIVERED = 0, 1, 2, 3, 4
"""What an entry of a blob of KEYS is: a definition or a reference."""
CONTROL = 8
"""Added to that where the event is control."""


@dataclass(frozen=True)
class Packer:
    """Turns rows into blobs, each worker its own rows."""

    names: Any
    first: Array
    floats: bool
    own_ids: bool
    parents: bool
    messages: bool
    deliveries: bool
    buckets: int
    key: int

    def __call__(self, batches: Batches) -> Batches:
        name_offsets, name_data = text_buffers(self.names)
        table = name_table(name_offsets, name_data, self.key)
        number = _Numberer(name_offsets, name_data, table, self.key)
        notes = Notes()
        held: list[pa.RecordBatch] = []
        rows = 0
        for batch in batches:
            held.append(batch)
            rows += batch.num_rows
            if rows >= BLOB_ROWS:
                yield from self._blobs(held, number, notes)
                held, rows = [], 0
        if rows:
            yield from self._blobs(held, number, notes)
        if notes.counts:
            yield blob_batch([(NOTE, 0, notes.to_json().encode())])

    def _blobs(self, held: list[pa.RecordBatch], number: _Numberer, notes: Notes) -> Batches:
        rows = pa.Table.from_batches(held).combine_chunks()

        def values(name: str) -> Any:
            return rows.column(name).chunk(0)

        events = values("number").to_numpy()
        effects = causes = np.empty(0, np.int64)
        keys: list[tuple[Any, Array, Array]] = []
        if self.own_ids:
            keys.append((values("id"), events, np.full(len(events), DEFINES_ID, np.int8)))
        if self.parents:
            parents = values("parents")
            owners = np.repeat(events, list_lengths(parents))
            texts = parents.flatten().fill_null("")
            if self.own_ids:
                keys.append((texts, owners, np.full(len(owners), NAMES_PARENT, np.int8)))
            elif len(texts):
                effects, causes = self._numeric(number, texts, owners, notes)
        if self.messages:
            kinds = values("kind").to_numpy()
            carries = np.flatnonzero(kinds != LOCAL)
            what = np.array([0, DEFINES_MESSAGE, NAMES_MESSAGE, NAMES_DELIVERED], np.int8)[kinds[carries]]
            what += CONTROL * values("control").to_numpy(zero_copy_only=False)[carries].astype(np.int8)
            keys.append((values("message").take(pa.array(carries)), events[carries], what))
        order, by_effect = by_page(events), by_page(effects)
        piece = Piece(
            events[order],
            self._times(values("time"))[order],
            effects[by_effect],
            causes[by_effect],
            np.full(len(effects), PLAIN, np.int8),
        )
        spread = int(events[0])  # any number: pieces need no meeting, only workers
        yield blob_batch([(PIECE, spread % max(self.buckets, 1), pack(piece))])
        if self.deliveries:
            yield blob_batch([self._targets(values("to"), events, number)])
        for key_texts, of, what in keys:
            if len(key_texts):
                yield self._keyed(key_texts, of, what)

    def _times(self, times: Any) -> Array:
        """Times as numbers; a missing time is less than all others."""
        if self.floats:
            found = times.fill_null(-np.inf).to_numpy(zero_copy_only=False)
            return np.where(np.isnan(found), -np.inf, found)
        filled = times.fill_null(np.iinfo(np.int64).min) if times.null_count else times
        return np.asarray(filled.to_numpy(zero_copy_only=False), np.int64)

    def _numeric(self, number: _Numberer, texts: Any, owners: Array, notes: Notes) -> tuple[Array, Array]:
        """Links from references of the form process#seq."""
        process, seq = number.references(texts)
        count = np.diff(self.first)
        known = (process != ABSENT) & (seq <= count[process])
        lost = np.flatnonzero(~known)
        notes.add(
            LOST_PARENT,
            len(lost),
            ([int(owners[i]), texts[int(i)].as_py()] for i in lost[:EXAMPLES]),
        )
        return owners[known], (self.first[process] + seq - 1)[known]

    def _targets(self, to: Any, events: Array, number: _Numberer) -> tuple[int, int, bytes]:
        """The targets of messages. A target without events has no number of its own; its name goes along."""
        lengths = list_lengths(to)
        sends = np.flatnonzero(lengths)
        order = sends[np.argsort(events[sends], kind="stable")]
        flat = to.flatten().fill_null("")
        targets = number.of(flat)
        begin = np.cumsum(lengths) - lengths
        unnumbered: dict[str, int] = {}
        for i in np.flatnonzero(targets == ABSENT).tolist():
            name = flat[i].as_py()
            targets[i] = -2 - unnumbered.setdefault(name, len(unnumbered))
        lengths, begin = lengths[order], begin[order]
        ends = np.cumsum(lengths)
        taken = np.repeat(begin - (ends - lengths), lengths) + np.arange(int(lengths.sum()))
        names = np.frombuffer(json.dumps(list(unnumbered)).encode(), np.uint8)
        blob = pack([events[order], ends, targets[taken], names])
        return TARGETS, int(events[0]) % max(self.buckets, 1), blob

    def _keyed(self, texts: Any, events: Array, what: Array) -> pa.RecordBatch:
        """Definitions and references, each in the bucket of its key. Of a reference only the hash goes along:
        one that cannot be resolved is named by its event."""
        low, high = np.empty(len(texts), np.uint64), np.empty(len(texts), np.uint64)
        offsets, data = text_buffers(texts)
        salt = 0 if what[0] in (DEFINES_ID, NAMES_PARENT) else MESSAGES
        hash_texts(offsets, data, self.key ^ salt, low, high)
        bucket = ((high >> np.uint64(32)) % np.uint64(self.buckets)).astype(np.int32)
        order = np.argsort(bucket, kind="stable")
        cuts = np.flatnonzero(np.diff(bucket[order], prepend=-1))
        ends = [*cuts[1:].tolist(), len(order)]
        rows = []
        for begin, end in zip(cuts.tolist(), ends, strict=True):
            some = order[begin:end]
            blob = pack([low[some], high[some], events[some], what[some]])
            rows.append((KEYS, int(bucket[some[0]]), blob))
        return blob_batch(rows)


@dataclass(frozen=True)
class _Numberer:
    """Numbers of processes by their names."""

    offsets: Array
    data: Array
    table: Array
    key: int

    def of(self, names: Any) -> Array:
        offsets, data = text_buffers(names)
        found = np.empty(len(names), np.int32)
        number_names(offsets, data, self.offsets, self.data, self.table, self.key, found)
        return found

    def references(self, texts: Any) -> tuple[Array, Array]:
        offsets, data = text_buffers(texts)
        process, seq = np.empty(len(texts), np.int32), np.zeros(len(texts), np.int64)
        parse_references(offsets, data, self.offsets, self.data, self.table, self.key, process, seq)
        return process, seq

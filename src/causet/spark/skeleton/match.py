"""Definitions and references that met in a bucket become links.

What cannot be resolved is counted and named, never dropped silently.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from causet.kernels.arrays import Array
from causet.kernels.logs.keys import find_keys
from causet.kernels.logs.pages import ABSENT, DELIVERY, PLAIN, SENT, Piece, processes_of
from causet.spark.skeleton.blobs import KEY_TYPES, KEYS, NOTE, PIECE, Batches, blob_batch, pack, unpack
from causet.spark.skeleton.notes import (
    DELIVERIES,
    EXAMPLES,
    LOST_DELIVERY,
    LOST_PARENT,
    LOST_RECEPTION,
    MESSAGES,
    REPEATED_ID,
    SENT_TWICE,
    UNSENT_AGAIN,
    Notes,
)
from causet.spark.skeleton.pack import (
    CONTROL,
    DEFINES_ID,
    DEFINES_MESSAGE,
    NAMES_DELIVERED,
    NAMES_MESSAGE,
    NAMES_PARENT,
)


@dataclass(frozen=True)
class Matcher:
    """Makes links of definitions and references that met in a bucket, and passes everything else on."""

    deliveries: bool
    first: Array

    def __call__(self, batches: Batches) -> Batches:
        buckets: dict[int, list[list[Array]]] = {}
        for batch in batches:
            for what, bucket, blob in zip(*batch.columns, strict=True):
                if what.as_py() == KEYS:
                    parts = unpack(blob.as_buffer(), KEY_TYPES)
                    buckets.setdefault(bucket.as_py(), []).append(parts)
                else:
                    yield blob_batch([(what.as_py(), 0, blob.as_buffer().to_pybytes())])
        notes = Notes()
        for number in sorted(buckets):
            low, high, events, what = map(np.concatenate, zip(*buckets.pop(number), strict=True))
            yield blob_batch([(PIECE, 0, self._links(low, high, events, what, notes))])
        if notes.counts:
            yield blob_batch([(NOTE, 0, notes.to_json().encode())])

    def _note_repeated(self, low: Array, high: Array, events: Array, notes: Notes) -> None:
        """Count deliveries of messages without a send that the same process delivered before."""
        process = processes_of(self.first, events)
        order = np.lexsort((events, process, high, low))
        same = (np.diff(low[order]) == 0) & (np.diff(high[order]) == 0) & (np.diff(process[order]) == 0)
        again = events[order[1:][same]]
        notes.add(UNSENT_AGAIN, len(again), ([int(event)] for event in np.sort(again)[:EXAMPLES]))

    def _links(self, low: Array, high: Array, events: Array, what: Array, notes: Notes) -> bytes:
        control = what >= CONTROL
        what = what % CONTROL
        defines = np.flatnonzero(what <= DEFINES_MESSAGE)
        refers = np.flatnonzero(what > DEFINES_MESSAGE)
        found, same = find_keys(low[defines], high[defines], low[refers], high[refers])
        again = np.flatnonzero(same != np.arange(len(same)))
        for of, kind in ((DEFINES_ID, REPEATED_ID), (DEFINES_MESSAGE, SENT_TWICE)):
            repeated = again[what[defines[again]] == of]
            pairs = np.sort(np.stack([events[defines[same[repeated]]], events[defines[repeated]]], axis=1))
            notes.add(kind, len(repeated), pairs[:EXAMPLES].tolist())
        lost = refers[found == ABSENT]
        for of, kind in (
            (NAMES_PARENT, LOST_PARENT),
            (NAMES_DELIVERED, LOST_DELIVERY),
            (NAMES_MESSAGE, LOST_RECEPTION),
        ):
            who = lost[(what[lost] == of) & ~control[lost]]
            notes.add(kind, len(who), ([int(event), None] for event in np.sort(events[who])[:EXAMPLES]))
        met = refers[found != ABSENT]
        causes = defines[found[found != ABSENT]]
        effects, cause_events = events[met], events[causes]
        kinds = np.full(len(met), PLAIN, np.int8)
        if self.deliveries:
            # A message is control if any of its events says so.
            hidden = np.zeros(len(what), np.bool_)
            hidden[defines] = control[defines]
            np.logical_or.at(hidden, causes, control[met])
            delivered = (what[met] == NAMES_DELIVERED) & ~hidden[causes]
            kinds[delivered] = DELIVERY
            sent = defines[(what[defines] == DEFINES_MESSAGE) & ~hidden[defines]]
            times = np.bincount(causes[delivered], minlength=len(what))[sent]
            effects = np.concatenate([effects, events[sent]])
            cause_events = np.concatenate([cause_events, times.astype(np.int64)])
            kinds = np.concatenate([kinds, np.full(len(sent), SENT, np.int8)])
            unsent = lost[(what[lost] == NAMES_DELIVERED) & ~control[lost]]
            notes.add(MESSAGES, len(sent), [])
            notes.add(DELIVERIES, int(delivered.sum()) + len(unsent), [])
            self._note_repeated(low[unsent], high[unsent], events[unsent], notes)
        # The same links in the same order, however the blobs arrived: a task that is run again, because an
        # executor died, must give the same bytes, or Spark fails the job.
        order = np.lexsort((kinds, cause_events, effects))
        nothing = np.empty(0, np.int64)
        return pack(Piece(nothing, nothing, effects[order], cause_events[order], kinds[order]))

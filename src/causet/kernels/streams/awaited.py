"""Cuts that messages wait for.

A message that names a cut waits for all of it that its reader gets. That can be much, and the same for many
messages. So a cut that a reader does not have yet is a row of its own, which waits for what is lacking, and
messages wait for that row. It leaves like a message, and is forgotten then: if another message names the cut
later, the reader has it. A row that nothing waits for any more is dropped.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from causet.kernels.arrays import Array
from causet.kernels.names import combined
from causet.kernels.streams.block import CUT, HEAD, Block, Messages, begins
from causet.kernels.streams.delivered import is_delivered
from causet.kernels.streams.keys import KEY, digests, encoded, key_of
from causet.kernels.streams.marks import positions
from causet.kernels.streams.memory import CUT_ALONE, CUT_LACKS, Memory
from causet.kernels.streams.release import DELIVERED, FLAGGED, LATE, Released

GROUP = "\x1fcut"
"""The group of the streams of cuts, one stream for each; the name of no group begins so."""


class Entries(NamedTuple):
    """What a reader gets of a cut."""

    group: Array
    """of each entry the key of its group"""
    process: Array
    """the key of its process"""
    number: Array

    def streams(self, reader: str) -> Array:
        """The keys of the streams of this reader."""
        mine = np.repeat(digests([reader]), len(self.group))
        found: Array = combined(combined(mine, self.group), self.process)
        return found


Contents = Callable[[str, int, int], Entries]
"""(reader, number of a cut, priority of a message that names it) → what the message waits for."""


class Awaited(NamedTuple):
    """Cuts that readers do not have yet, and the messages that wait for them."""

    receiver: list[str]
    name: list[str]
    number: list[int]
    begin: Array
    cause: Array
    """the keys of the streams of what is lacking"""
    cause_number: Array
    row: Array
    """of the messages"""
    waits_for: Array
    """for each of these which cut"""

    @property
    def key(self) -> Array:
        """of the streams of the cuts"""
        pairs = zip(self.receiver, self.name, strict=True)
        return np.frombuffer(b"".join(key_of(reader, GROUP, name) for reader, name in pairs), f"S{KEY}")


def name_of(number: int, priority: int) -> str:
    """The name of a cut for messages of a priority, which need not wait for all of it."""
    return f"{number} {priority}" if priority else str(number)


def awaited(memory: Memory, messages: Messages, contents: Contents) -> Awaited | None:
    """The cuts that the readers of some messages do not have, and the messages that name them; they are known
    to the memory then. None if there is no such cut."""
    assert messages.cut is not None
    rows = np.flatnonzero(messages.cut)
    receivers, names = encoded(messages.receiver.take(rows))
    cut = messages.cut[rows]
    priority = np.zeros(len(rows), np.int64) if messages.priority is None else messages.priority[rows]
    kinds, which = np.unique(np.stack([receivers, priority, -cut]), axis=1, return_inverse=True)
    which = which.reshape(-1)
    found: list[tuple[int, str, str, int]] = []
    lacking: list[tuple[Array, Array, Array]] = []
    complete = None
    for at, (reader, urgent, negative) in enumerate(kinds.T.tolist()):
        if complete == (reader, urgent):
            continue  # a later cut is complete, which has all that is in this one
        entries = contents(names[reader], -negative, urgent)
        keys = entries.streams(names[reader])
        lacks = ~_has(memory, keys, entries.number)
        if lacks.any():
            found.append((at, names[reader], name_of(-negative, urgent), -negative))
            lacking.append((keys[lacks], entries.process[lacks], entries.number[lacks]))
        else:
            complete = (reader, urgent)
    if not found:
        return None
    which_kind, readers, cuts, numbers = (list(each) for each in zip(*found, strict=True))
    cause, name, cause_number = (np.concatenate(each) for each in zip(*lacking, strict=True))
    waits_for = np.full(kinds.shape[1], -1)
    waits_for[which_kind] = np.arange(len(found))
    waits = waits_for[which] >= 0
    begin = begins(np.array([len(each[0]) for each in lacking]))
    made = Awaited(readers, cuts, numbers, begin, cause, cause_number, rows[waits], waits_for[which][waits])
    keys, first = np.unique(np.concatenate([made.key, cause]), return_index=True)
    memory._streams(keys, np.concatenate([digests(cuts), name])[first])
    memory._receivers(readers)
    memory.brief[np.searchsorted(memory.stream_key, made.key)] = CUT_ALONE
    return made


def _has(memory: Memory, keys: Array, number: Array) -> Array:
    """For each (key of a stream, number) whether it was delivered."""
    stream = positions(memory.stream_key, keys)
    found = stream >= 0
    found[found] = is_delivered(memory._delivered(), stream[found], number[found])
    return found


def selfish(memory: Memory, new: Block, head: Array, cuts: Awaited) -> Array:
    """Which rows are of messages that name a cut that has them themselves, or a later one of their stream;
    `head` is, for each row, the head of its message."""
    found = np.zeros(len(new.stream), np.bool_)
    streams = np.searchsorted(memory.stream_key, cuts.cause)
    for cut in range(len(cuts.receiver)):
        inside = slice(cuts.begin[cut], cuts.begin[cut + 1])
        order = np.argsort(streams[inside])
        stream, number = streams[inside][order], cuts.cause_number[inside][order]
        rows = np.flatnonzero(np.isin(head, cuts.row[cuts.waits_for == cut]))
        at = np.minimum(np.searchsorted(stream, new.stream[rows]), len(stream) - 1)
        found[rows] = (stream[at] == new.stream[rows]) & (number[at] >= new.number[rows])
    return found


def waiting(memory: Memory, new: Block, cuts: Awaited) -> Block:
    """The messages, which wait for their cuts."""
    stream = np.searchsorted(memory.stream_key, cuts.key)[cuts.waits_for]
    return new.waiting(cuts.row, stream, np.ones(len(stream), np.int64))


def with_cuts(memory: Memory, held: Block, cuts: Awaited, now: int) -> Block:
    """What is held, with the rows of cuts that are not held yet."""
    stream = np.searchsorted(memory.stream_key, cuts.key)
    count = len(stream)
    receiver = np.searchsorted(memory.receiver_key, digests(cuts.receiver))
    whole = Block(
        stream,
        np.ones(count, np.int64),
        receiver,
        np.full(count, now),
        -np.array(cuts.number),
        np.full(count, CUT),
        cuts.begin,
        np.searchsorted(memory.stream_key, cuts.cause),
        cuts.cause_number,
    )
    return held.joined(whole.taken(np.flatnonzero(~np.isin(stream, held.stream[held.part == CUT]))))


def lacking(memory: Memory, held: Block, found: Released) -> Released:
    """The same, in which messages that leave although their cut is not complete, since some of it was given
    up by hand, say that they lack this cut."""
    given_up = held.stream[(held.part == CUT) & (found.status == FLAGGED)]
    memory.brief[given_up] = CUT_LACKS
    owner = np.repeat(np.arange(len(held.stream)), np.diff(held.cause_begin))
    left = (held.part == HEAD) & np.isin(found.status, (DELIVERED, FLAGGED, LATE))
    causes = np.flatnonzero(left[owner] & (memory.brief[held.cause_stream] == CUT_LACKS))
    rows = owner[causes]
    found.status[rows[found.status[rows] == DELIVERED]] = FLAGGED
    return found._replace(
        missing_row=np.append(found.missing_row, rows), missing_cause=np.append(found.missing_cause, causes)
    )


def named(held: Block, rows: Array, causes: Array) -> tuple[Array, Array, Array]:
    """The streams and numbers of these causes, and for each which row has it; in place of a cut, what is in
    it."""
    stream, number = held.cause_stream[causes], held.cause_number[causes]
    cuts = np.flatnonzero(held.part == CUT)
    if not len(cuts):
        return stream, number, rows
    at = cuts[np.minimum(np.searchsorted(held.stream[cuts], stream), len(cuts) - 1)]
    whole = np.flatnonzero(held.stream[at] == stream)
    each = held.taken(at[whole])
    rest = np.delete(np.arange(len(rows)), whole)
    return (
        np.append(stream[rest], each.cause_stream),
        np.append(number[rest], each.cause_number),
        np.append(rows[rest], np.repeat(rows[whole], np.diff(each.cause_begin))),
    )


def needed(block: Block, kept: Array) -> Array:
    """Of the rows that are kept, those that are messages, or cuts for which one of these waits."""
    whole = block.taken(kept)
    found: Array = kept[(whole.part != CUT) | np.isin(whole.stream, whole.cause_stream)]
    return found

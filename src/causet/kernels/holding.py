"""What a bucket of receivers remembers between batches: what was delivered, and what is held.

Streams and receivers are known by 128 bits of their names (blake2b), in the order of which they stand: so
everything here depends on the messages alone, not on the order in which a batch came together. The rows of
the messages themselves are not here; a held message knows its `place`, which is the caller's to understand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from causet.kernels.release import (
    DIVERTED,
    HELD,
    NO_PREFIX,
    Delivered,
    Rows,
    counted_among,
    delivered_after,
    first_blocked,
    forget_holes,
    forget_islands,
    is_delivered,
    number_within,
    release,
)

Array = np.ndarray[Any, Any]

KEY = 16
"""Bytes by which a name is known."""
NOWHERE = -1


class Messages(NamedTuple):
    """Messages as they come."""

    receiver: pa.Array
    name: pa.Array
    """of the stream: the source, or the message's own id where messages have parents instead of numbers"""
    number: Array
    cause_begin: Array
    cause_name: pa.Array
    cause_number: Array
    place: Array


@dataclass(frozen=True)
class Outcome:
    """What became of a batch."""

    place: Array
    """of the messages that leave, in their order"""
    index: Array
    """at their receivers; NOWHERE for those that are diverted"""
    status: Array
    waited: Array
    """ms since they came"""
    missing: list[tuple[int, int, int]]
    """(which of those that leave, which of its causes or NOWHERE for the previous of its stream, number)"""
    duplicates: int
    selfish: Array
    """places of messages that depend on themselves or on a later one of their own stream"""
    forgotten: Array
    """places of messages below the horizon, of which nobody knows whether they were delivered"""


def _nothing(kind: type = np.int64) -> Array:
    return np.empty(0, kind)


@dataclass
class Holding:
    """The memory of one bucket."""

    stream_key: Array
    prefix: Array
    given_up: Array
    closed: Array
    """for each stream the largest number below which holes were forgotten"""
    touched: Array
    """when each stream was last delivered to"""
    begin: Array
    low: Array
    high: Array
    since: Array
    """islands, see `Delivered`"""
    gone_begin: Array
    gone_low: Array
    gone_high: Array
    gone_since: Array
    """what was diverted, kept in the same way, so that a second copy is known for one"""
    receiver_key: Array
    next_index: Array
    # Held messages, sorted by (stream, number).
    stream: Array
    number: Array
    receiver: Array
    arrival: Array
    place: Array
    cause_begin: Array
    cause_stream: Array
    cause_number: Array

    @classmethod
    def empty(cls) -> Holding:
        columns = {each.name: _nothing() for each in fields(cls)}
        columns["stream_key"] = columns["receiver_key"] = np.empty(0, f"S{KEY}")
        for name in ("begin", "gone_begin", "cause_begin"):
            columns[name] = np.zeros(1, np.int64)
        return cls(**columns)

    def __len__(self) -> int:
        """How many messages are held."""
        return len(self.number)

    # ------------------------------------------------------------ a batch

    def step(
        self,
        messages: Messages,
        now: int,
        policy: int,
        overdue_since: int,
        forget_before: int | None = None,
        by_id: bool = False,
    ) -> Outcome:
        """Take messages in, and let go what can leave: whoever came up to `overdue_since` waits no longer."""
        names = self._known(messages)
        stream, receiver, cause_stream = names
        new = _Block(
            stream,
            messages.number,
            receiver,
            np.full(len(stream), now),
            messages.place,
            messages.cause_begin,
            cause_stream,
            messages.cause_number,
        )
        selfish = _selfish(new)
        old = is_delivered(self._delivered(), new.stream, new.number)
        old |= is_delivered(self._gone(), new.stream, new.number)
        forgotten = old & (new.number <= self.closed[new.stream]) & ~selfish
        merged = _joined(self._held(), new.taken(np.flatnonzero(~(selfish | old))))
        order = np.lexsort((merged.place, merged.arrival, merged.number, merged.stream))
        again = np.zeros(len(order), np.bool_)
        again[1:] = (np.diff(merged.stream[order]) == 0) & (np.diff(merged.number[order]) == 0)
        held = merged.taken(order[~again])
        duplicates = int(again.sum() + (old & ~forgotten & ~selfish).sum())
        rows = Rows(
            held.stream,
            held.number,
            np.searchsorted(held.stream, np.arange(len(self.stream_key) + 1)),
            held.cause_begin,
            held.cause_stream,
            held.cause_number,
        )
        overdue = held.arrival <= overdue_since
        before = self._delivered()
        found = release(rows, before, policy, overdue)
        left = found.order
        status = found.status[left]
        index = np.full(len(left), NOWHERE, np.int64)
        counts = status != DIVERTED
        index[counts] = number_within(held.receiver[left[counts]], self.next_index)
        after = delivered_after(rows, before, counted_among(found.status, False), now)
        gone = delivered_after(rows, self._gone(), counted_among(found.status, True), now)
        self.touched[held.stream[left[counts]]] = now
        if forget_before is not None:
            after = forget_holes(after, forget_before, self.closed)
            gone = forget_islands(gone, forget_before)
        self.prefix, self.begin, self.low, self.high, self.since, self.given_up = after
        _, self.gone_begin, self.gone_low, self.gone_high, self.gone_since, _ = gone
        self._hold(held.taken(np.flatnonzero(found.status == HELD)))
        self._tidy(forget_before if by_id else None)
        return Outcome(
            held.place[left],
            index,
            status,
            now - held.arrival[left],
            _missing(held, left, found.missing_row, found.missing_cause),
            duplicates,
            messages.place[selfish],
            messages.place[forgotten],
        )

    def oldest_blocked(self) -> tuple[int, int, int]:
        """Of the held messages that wait for something that is not here, the oldest: its number among them,
        which of its causes that is (NOWHERE for the previous of its stream), and the number it waits for."""
        rows = Rows(
            self.stream,
            self.number,
            np.searchsorted(self.stream, np.arange(len(self.stream_key) + 1)),
            self.cause_begin,
            self.cause_stream,
            self.cause_number,
        )
        row, which, number = first_blocked(rows, self._delivered(), self.arrival)
        return int(row), int(which), int(number)

    def is_delivered(self, stream: Array, number: Array) -> Array:
        """For each (stream, number) whether it was delivered."""
        found: Array = is_delivered(self._delivered(), stream, number)
        return found

    def _delivered(self) -> Delivered:
        return Delivered(self.prefix, self.begin, self.low, self.high, self.since, self.given_up)

    def _gone(self) -> Delivered:
        none = np.full(len(self.prefix), NO_PREFIX)
        return Delivered(none, self.gone_begin, self.gone_low, self.gone_high, self.gone_since, self.given_up)

    def _held(self) -> _Block:
        return _Block(
            self.stream,
            self.number,
            self.receiver,
            self.arrival,
            self.place,
            self.cause_begin,
            self.cause_stream,
            self.cause_number,
        )

    def _hold(self, block: _Block) -> None:
        (
            self.stream,
            self.number,
            self.receiver,
            self.arrival,
            self.place,
            self.cause_begin,
            self.cause_stream,
            self.cause_number,
        ) = block

    # ------------------------------------------------------------ names

    def _known(self, messages: Messages) -> tuple[Array, Array, Array]:
        """The streams of the messages, their receivers, and the streams of their causes, by number; those
        that are new are taken in."""
        receivers, receiver_names = _encoded(messages.receiver)
        owners = np.repeat(receivers, np.diff(messages.cause_begin))
        names, distinct = _encoded(pa.concat_arrays([messages.name, messages.cause_name]))
        pairs = np.concatenate([receivers, owners]) * max(len(distinct), 1) + names
        found, which = _distinct(pairs, len(receiver_names) * len(distinct))
        keys = np.array(
            [
                _key(receiver_names[pair // len(distinct)], distinct[pair % len(distinct)])
                for pair in found.tolist()
            ],
            f"S{KEY}",
        )
        streams = self._numbers(self._add_streams, "stream_key", keys)[which]
        receiver_keys = np.array([_key(name) for name in receiver_names], f"S{KEY}")
        receiver = self._numbers(self._add_receivers, "receiver_key", receiver_keys)[receivers]
        return streams[: len(receivers)], receiver, streams[len(receivers) :]

    def _numbers(self, add: Callable[[Array], None], table: str, keys: Array) -> Array:
        known = getattr(self, table)
        at = np.searchsorted(known, keys)
        new = np.ones(len(keys), np.bool_)
        inside = at < len(known)
        new[inside] = known[at[inside]] != keys[inside]
        if new.any():
            add(np.unique(keys[new]))
            at = np.searchsorted(getattr(self, table), keys)
        return at

    def _add_streams(self, keys: Array) -> None:
        places = np.searchsorted(self.stream_key, keys)
        moved = np.arange(len(self.stream_key)) + np.searchsorted(keys, self.stream_key)
        for name in ("begin", "gone_begin"):
            setattr(self, name, _begins(np.insert(np.diff(getattr(self, name)), places, 0)))
        self.stream_key = np.insert(self.stream_key, places, keys)
        for name in ("prefix", "given_up", "closed", "touched"):
            setattr(self, name, np.insert(getattr(self, name), places, 0))
        self.stream, self.cause_stream = moved[self.stream], moved[self.cause_stream]

    def _add_receivers(self, keys: Array) -> None:
        places = np.searchsorted(self.receiver_key, keys)
        moved = np.arange(len(self.receiver_key)) + np.searchsorted(keys, self.receiver_key)
        self.receiver_key = np.insert(self.receiver_key, places, keys)
        self.next_index = np.insert(self.next_index, places, 0)
        self.receiver = moved[self.receiver]

    def _tidy(self, forget_before: int | None) -> None:
        """Drop streams that nothing is known of and nobody waits for; with a moment, also those that were
        last delivered to before it."""
        islands, gone = np.diff(self.begin), np.diff(self.gone_begin)
        keep = (self.prefix > 0) | (self.given_up > 0) | (islands > 0) | (gone > 0)
        if forget_before is not None:
            keep &= self.touched >= forget_before
        keep[self.stream] = True
        keep[self.cause_stream] = True
        if keep.all():
            return
        for kind, sizes in (("", islands), ("gone_", gone)):
            for name in ("low", "high", "since"):
                setattr(self, kind + name, getattr(self, kind + name)[np.repeat(keep, sizes)])
            setattr(self, f"{kind}begin", _begins(sizes[keep]))
        moved = np.cumsum(keep) - 1
        self.stream, self.cause_stream = moved[self.stream], moved[self.cause_stream]
        for name in ("stream_key", "prefix", "given_up", "closed", "touched"):
            setattr(self, name, getattr(self, name)[keep])

    # ------------------------------------------------------------ as bytes

    def to_bytes(self) -> bytes:
        columns = {}
        for each in fields(self):
            values = getattr(self, each.name)
            if values.dtype.kind == "S":
                raw = pa.py_buffer(np.ascontiguousarray(values).tobytes())
                columns[each.name] = pa.array([raw.to_pybytes()], pa.binary())
            else:
                columns[each.name] = pa.array([values], pa.list_(pa.int64()))
        batch = pa.RecordBatch.from_pydict(columns)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        found: bytes = sink.getvalue().to_pybytes()
        return found

    @classmethod
    def from_bytes(cls, data: bytes) -> Holding:
        with pa.ipc.open_stream(data) as reader:
            batch = reader.read_next_batch()
        columns: dict[str, Array] = {}
        for each in fields(cls):
            column = batch.column(each.name)
            if pa.types.is_binary(column.type):
                columns[each.name] = np.frombuffer(column[0].as_py(), f"S{KEY}")
            else:
                columns[each.name] = column[0].values.to_numpy().copy()
        return cls(**columns)


class _Block(NamedTuple):
    """Messages by columns."""

    stream: Array
    number: Array
    receiver: Array
    arrival: Array
    place: Array
    cause_begin: Array
    cause_stream: Array
    cause_number: Array

    def taken(self, rows: Array) -> _Block:
        sizes = np.diff(self.cause_begin)[rows]
        begin = _begins(sizes)
        causes = np.repeat(self.cause_begin[:-1][rows] - begin[:-1], sizes) + np.arange(int(sizes.sum()))
        return _Block(
            self.stream[rows],
            self.number[rows],
            self.receiver[rows],
            self.arrival[rows],
            self.place[rows],
            begin,
            self.cause_stream[causes],
            self.cause_number[causes],
        )


def _begins(sizes: Array) -> Array:
    """Where pieces of these sizes begin, one after the other, and where the last one ends."""
    begins = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=begins[1:])
    return begins


def _joined(first: _Block, second: _Block) -> _Block:
    begin = np.concatenate([first.cause_begin, second.cause_begin[1:] + first.cause_begin[-1]])
    joined = {
        name: np.concatenate([getattr(first, name), getattr(second, name)])
        for name in _Block._fields
        if name != "cause_begin"
    }
    return _Block(cause_begin=begin, **joined)


def _selfish(block: _Block) -> Array:
    owners = np.repeat(np.arange(len(block.stream)), np.diff(block.cause_begin))
    bad = (block.cause_stream == block.stream[owners]) & (block.cause_number >= block.number[owners])
    found = np.zeros(len(block.stream), np.bool_)
    found[owners[bad]] = True
    return found


def _missing(held: _Block, left: Array, rows: Array, causes: Array) -> list[tuple[int, int, int]]:
    if not len(rows):
        return []
    turn = np.empty(len(held.stream), np.int64)
    turn[left] = np.arange(len(left))
    found = []
    for row, cause in zip(rows.tolist(), causes.tolist(), strict=True):
        own = cause == NOWHERE
        number = held.number[row] - 1 if own else held.cause_number[cause]
        which = NOWHERE if own else cause - held.cause_begin[row]
        found.append((int(turn[row]), int(which), int(number)))
    return found


def _encoded(texts: pa.Array) -> tuple[Array, list[str]]:
    """Texts as numbers of the distinct ones."""
    coded = texts.dictionary_encode()
    return coded.indices.to_numpy(zero_copy_only=False).astype(np.int64), coded.dictionary.to_pylist()


def _distinct(values: Array, most: int) -> tuple[Array, Array]:
    """The distinct values in order, and for each value which it is."""
    if most <= 4 * len(values) + 1024:  # a table is cheaper than a sort
        there = np.zeros(most, np.bool_)
        there[values] = True
        which = np.cumsum(there) - 1
        return np.flatnonzero(there), which[values]
    found, which = np.unique(values, return_inverse=True)
    return found, which


def _key(*names: str) -> bytes:
    digest = blake2b(digest_size=KEY)
    for name in names:
        raw = name.encode("utf-8", "surrogatepass")
        digest.update(len(raw).to_bytes(8, "little") + raw)
    return digest.digest()


def messages(rows: Iterable[tuple[str, str, int, dict[str, int]]], first_place: int = 0) -> Messages:
    """Messages from plain values: (receiver, source, number, causes)."""
    table = list(rows)
    causes = [list(each[3].items()) for each in table]
    return Messages(
        pa.array([each[0] for each in table], pa.string()),
        pa.array([each[1] for each in table], pa.string()),
        np.array([each[2] for each in table], np.int64),
        _begins(np.array([len(each) for each in causes], np.int64)),
        pa.array([name for each in causes for name, _ in each], pa.string()),
        np.array([number for each in causes for _, number in each], np.int64),
        np.arange(first_place, first_place + len(table)),
    )

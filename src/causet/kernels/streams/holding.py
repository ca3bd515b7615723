"""What a bucket of receivers remembers between batches: what was delivered, and what is held.

Streams and receivers are known by 128 bits of their names (blake2b), in the order of which they stand: so
everything here depends on the messages alone, not on the order in which a batch came together. The rows of
the messages themselves are not here; a held message knows its `place`, which is the caller's to understand.

What one source can make a bucket remember is bounded: islands and claims by their number, and both claims and
diverted messages by the horizon.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from causet.kernels.names import combined
from causet.kernels.streams.marks import Marks, positions
from causet.kernels.streams.release import (
    DIVERTED,
    FLAGGED,
    HELD,
    LATE,
    NO_PREFIX,
    Delivered,
    Given,
    Rows,
    close_holes,
    counted_among,
    delivered_after,
    first_blocked,
    forget_islands,
    is_delivered,
    mark_late,
    number_within,
    release,
)
from causet.kernels.streams.sorting import ascending

Array = np.ndarray[Any, Any]

KEY = 16
"""Bytes by which a name is known."""
NOWHERE = -1
NEVER = -(2**62)
AHEAD = 10**9
"""A message whose number is further above the largest one of its stream is refused."""
MOST_ISLANDS = 4096
"""Of one stream; then the lowest holes are closed."""
MOST_CLAIMS = 1 << 16
"""Messages that one stream named and did not wait for, of which it is remembered that they were named."""
MOST_NOTED = 10_000
"""Refused messages that are remembered by their numbers, so that what waits for one can say so."""
LONGEST_NAME = 1000
"""Characters of a receiver's name that is kept for telling."""


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
    mark: Array
    """a fingerprint of id and payload"""
    domain: pa.Array | None = None
    """within which the source numbers its messages, where that is not the receiver alone"""


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
    """places of messages in a hole that was closed: it is not known any longer whether they were delivered"""
    far: Array
    """places of messages whose number is too far above those of their stream"""
    conflicts: Array
    """places of messages that have the number of another one"""


def _nothing(kind: type = np.int64) -> Array:
    return np.empty(0, kind)


def _no_keys() -> Array:
    return np.empty(0, f"S{KEY}")


KEYED = ("stream_key", "stream_name", "receiver_key", "claim_key", "claim_by", "lost_name", "noted_key")
BY_STREAM = ("prefix", "top", "closed", "touched")


@dataclass
class Holding:
    """The memory of one bucket."""

    stream_key: Array
    stream_name: Array
    """for each stream the key of its name alone, the same for all receivers"""
    prefix: Array
    top: Array
    """for each stream the largest number that was taken in"""
    closed: Array
    """for each stream the largest number below which holes were closed"""
    touched: Array
    """when a message of each stream left last"""
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
    receiver_name: list[str]
    clock: Array
    """the largest time that was seen, if any was"""
    marks: Array
    """sizes of the segments of fingerprints, see `Marks`"""
    claim_key: Array
    claim_number: Array
    claim_since: Array
    claim_by: Array
    """messages that another one named and did not wait for any longer: they are late, if they come"""
    lost_name: Array
    lost_number: Array
    """messages that were given up by hand, for every receiver"""
    noted_key: Array
    noted_number: Array
    noted_since: Array
    """refused messages"""
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
        columns: dict[str, Any] = {each.name: _nothing() for each in fields(cls)}
        columns |= {name: _no_keys() for name in KEYED}
        columns["receiver_name"] = []
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
        marks: Marks,
        now: int,
        policy: int,
        overdue_since: int,
        forget_before: int | None = None,
        by_id: bool = False,
    ) -> Outcome:
        """Take messages in, and let go what can leave: what came up to `overdue_since` waits no longer."""
        stream, receiver, cause_stream = self._known(messages)
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
        far = ~selfish & (new.number > self.top[new.stream] + AHEAD)
        fine = ~(selfish | far)
        fresh, duplicate, conflict = self._told_apart(new, messages.mark, fine, marks)
        forgotten = duplicate & (new.number <= self.closed[new.stream])
        duplicate &= ~forgotten
        if forgotten.any():  # it may be known all the same, by its fingerprint
            at = np.flatnonzero(forgotten)
            seen, _ = marks.known(self.stream_key[new.stream[at]], new.number[at])
            duplicate[at[seen]], forgotten[at[seen]] = True, False
        accepted = new.taken(fresh)
        np.maximum.at(self.top, accepted.stream, accepted.number)
        held = _sorted(_joined(self._held(), accepted))
        rows = self._rows_of(held)
        overdue = held.arrival <= overdue_since
        before = self._delivered()
        late = mark_late(rows, before, self._claims())
        found = release(rows, before, policy, overdue, late, self._lost())
        left = found.order
        status = found.status[left]
        index = np.full(len(left), NOWHERE, np.int64)
        counts = status != DIVERTED
        index[counts] = number_within(held.receiver[left[counts]], self.next_index)
        after = delivered_after(rows, before, counted_among(found.status, False), now)
        gone = delivered_after(rows, self._gone(), counted_among(found.status, True), now)
        self.touched[held.stream[left]] = now
        after = close_holes(after, MOST_ISLANDS, self.closed)
        gone = forget_islands(gone, NEVER if forget_before is None else forget_before, MOST_ISLANDS)
        self.prefix, self.begin, self.low, self.high, self.since = after
        _, self.gone_begin, self.gone_low, self.gone_high, self.gone_since = gone
        self._claim(held, found.status, found.missing_row, found.missing_cause, now, forget_before)
        self._hold(held.taken(np.flatnonzero(found.status == HELD)))
        marks.add(self.stream_key, self.top, accepted.stream, accepted.number, messages.mark[fresh])
        self.marks = marks.sizes
        self._tidy(forget_before if by_id else None)
        self._tidy_receivers()
        return Outcome(
            held.place[left],
            index,
            status,
            now - held.arrival[left],
            _missing(held, left, found.missing_row, found.missing_cause),
            int(duplicate.sum()),
            messages.place[selfish],
            messages.place[forgotten],
            messages.place[far],
            messages.place[conflict],
        )

    def _told_apart(self, new: _Block, mark: Array, fine: Array, marks: Marks) -> tuple[Array, Array, Array]:
        """Which messages are new, in the order of (stream, number); which are duplicates; and which have the
        number of another message. Of several new ones with one number, that with the smallest fingerprint is
        taken, so that it does not depend on the order in which they came together."""
        duplicate, conflict = np.zeros(len(fine), np.bool_), np.zeros(len(fine), np.bool_)
        old = is_delivered(self._delivered(), new.stream, new.number)
        old |= is_delivered(self._gone(), new.stream, new.number)
        old |= self._is_held(new.stream, new.number)
        at = np.flatnonzero(old & fine)
        if len(at):
            seen, marked = marks.known(self.stream_key[new.stream[at]], new.number[at])
            other = seen & (marked != mark[at])
            conflict[at[other]], duplicate[at[~other]] = True, True
        at = np.flatnonzero(~old & fine)
        order = at[ascending(new.stream[at], new.number[at])]
        again = np.zeros(len(order), np.bool_)
        again[1:] = (np.diff(new.stream[order]) == 0) & (np.diff(new.number[order]) == 0)
        if again.any():
            order = at[np.lexsort((new.place[at], mark[at], new.number[at], new.stream[at]))]
            first = np.maximum.accumulate(np.where(again, 0, np.arange(len(order))))
            same = mark[order] == mark[order[first]]
            duplicate[order[again & same]], conflict[order[again & ~same]] = True, True
        return order[~again], duplicate, conflict

    def _is_held(self, stream: Array, number: Array) -> Array:
        """For each (stream, number) whether it is held."""
        if not len(self.number):
            return np.zeros(len(number), np.bool_)
        begin = np.searchsorted(self.stream, np.arange(len(self.stream_key) + 1))
        one = np.arange(len(self.number) + 1)
        # Every held message is an island of one number.
        alone = Delivered(np.full(len(self.prefix), NO_PREFIX), begin, self.number, self.number, one)
        found: Array = is_delivered(alone, stream, number)
        return found

    def _rows_of(self, block: _Block) -> Rows:
        return Rows(
            block.stream,
            block.number,
            np.searchsorted(block.stream, np.arange(len(self.stream_key) + 1)),
            block.cause_begin,
            block.cause_stream,
            block.cause_number,
        )

    def not_before(self, now: int) -> int:
        """The time, which never goes back, even if a clock was set back: patience would not end."""
        self.clock = np.array([max([now, *self.clock.tolist()])])
        return int(self.clock[0])

    # ------------------------------------------------------------ what was given up

    def give_up(self, lost: Iterable[tuple[str, int]]) -> None:
        """These messages, (source, number), will not come: what waits for one of them waits no longer."""
        known = set(zip(self.lost_name.tolist(), self.lost_number.tolist(), strict=True))
        for name, number in lost:
            [key] = _digests([name])
            if (key, number) not in known:
                self.lost_name = np.append(self.lost_name, key)
                self.lost_number = np.append(self.lost_number, number)

    def _lost(self) -> Given:
        """What was given up by hand, by streams."""
        streams, numbers = [_nothing()], [_nothing()]
        for name, number in zip(self.lost_name, self.lost_number.tolist(), strict=True):
            mine = np.flatnonzero(self.stream_name == name)
            streams.append(mine)
            numbers.append(np.full(len(mine), number))
        stream, number = np.concatenate(streams), np.concatenate(numbers)
        order = np.lexsort((number, stream))
        return Given(stream[order], number[order])

    def _claims(self) -> Given:
        """What messages named and did not wait for, of streams that are known."""
        stream = positions(self.stream_key, self.claim_key)
        known = stream >= 0
        return Given(stream[known], self.claim_number[known])

    def _claim(
        self, held: _Block, status: Array, rows: Array, causes: Array, now: int, forget_before: int | None
    ) -> None:
        """Remember what flagged messages named and did not wait for; forget what came, or is too old. (That
        the previous one of its own stream is missing needs no memory.)"""
        mine = np.flatnonzero((causes != NOWHERE) & np.isin(status[rows], (FLAGGED, LATE)))
        key = np.concatenate([self.claim_key, self.stream_key[held.cause_stream[causes[mine]]]])
        number = np.concatenate([self.claim_number, held.cause_number[causes[mine]]])
        since = np.concatenate([self.claim_since, np.full(len(mine), now)])
        by = np.concatenate([self.claim_by, self.stream_key[held.stream[rows[mine]]]])
        if not len(key):
            return
        stream = positions(self.stream_key, key)
        keep = stream < 0
        at = np.flatnonzero(~keep)
        keep[at] = ~is_delivered(self._delivered(), stream[at], number[at])
        if forget_before is not None:
            keep &= since >= forget_before
        order = np.lexsort((-np.arange(len(by)), by))  # by claimant, the newest first
        first = np.searchsorted(by[order], by[order])
        keep[order] &= np.arange(len(by)) - first < MOST_CLAIMS
        self.claim_key, self.claim_number = key[keep], number[keep]
        self.claim_since, self.claim_by = since[keep], by[keep]

    # ------------------------------------------------------------ what was refused

    def note(self, refused: Messages, now: int, forget_before: int | None) -> None:
        """Remember the numbers of messages that were refused: what waits for one of them can say so."""
        keys = self._keys_of(refused)
        key = np.concatenate([self.noted_key, keys])[-MOST_NOTED:]
        number = np.concatenate([self.noted_number, refused.number])[-MOST_NOTED:]
        since = np.concatenate([self.noted_since, np.full(len(keys), now)])[-MOST_NOTED:]
        keep = since >= (NEVER if forget_before is None else forget_before)
        self.noted_key, self.noted_number, self.noted_since = key[keep], number[keep], since[keep]

    def is_noted(self, key: bytes, number: int) -> bool:
        """Whether this message of a stream came and was refused."""
        wanted = np.frombuffer(key, f"S{KEY}")[0]
        return bool(((self.noted_key == wanted) & (self.noted_number == number)).any())

    def oldest_blocked(self) -> tuple[int, int, int]:
        """Of the held messages that wait for something that is not here, the oldest: its number among them,
        which of its causes that is (NOWHERE for the previous of its stream), and the number it waits for."""
        rows = self._rows_of(self._held())
        row, which, number = first_blocked(rows, self._delivered(), self.arrival, self._lost())
        return int(row), int(which), int(number)

    def is_delivered(self, stream: Array, number: Array) -> Array:
        """For each (stream, number) whether it was delivered."""
        found: Array = is_delivered(self._delivered(), stream, number)
        return found

    def has_come(self, key: bytes, number: int) -> bool:
        """Whether this message of a stream is delivered or held."""
        stream = positions(self.stream_key, np.frombuffer(key, f"S{KEY}"))
        numbers = np.array([number])
        return bool(
            stream[0] >= 0 and (self.is_delivered(stream, numbers)[0] or self._is_held(stream, numbers)[0])
        )

    def _delivered(self) -> Delivered:
        return Delivered(self.prefix, self.begin, self.low, self.high, self.since)

    def _gone(self) -> Delivered:
        none = np.full(len(self.prefix), NO_PREFIX)
        return Delivered(none, self.gone_begin, self.gone_low, self.gone_high, self.gone_since)

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
        keys, names, which = self._pairs(messages, receivers, receiver_names)
        streams = self._streams(keys, names)[which]
        receiver = self._receivers(receiver_names)[receivers]
        return streams[: len(receivers)], receiver, streams[len(receivers) :]

    def _keys_of(self, messages: Messages) -> Array:
        """The keys of the streams of messages, none of which is taken in."""
        receivers, receiver_names = _encoded(messages.receiver)
        keys, _, which = self._pairs(messages, receivers, receiver_names)
        found: Array = keys[which[: len(receivers)]]
        return found

    def _pairs(
        self, messages: Messages, receivers: Array, receiver_names: list[str]
    ) -> tuple[Array, Array, Array]:
        """Streams of messages and of their causes: the keys of the distinct ones, the keys of their names
        alone, and for each message and each cause which of these it is."""
        where, places = receivers, _digests(receiver_names)
        if messages.domain is not None:
            domains, domain_names = _encoded(messages.domain)
            pairs, where = _distinct(
                receivers * max(len(domain_names), 1) + domains, len(receiver_names) * len(domain_names)
            )
            both = np.divmod(pairs, max(len(domain_names), 1))
            places = combined(places[both[0]], _digests(domain_names)[both[1]])
        owners = np.repeat(where, np.diff(messages.cause_begin))
        texts, distinct = _encoded(pa.concat_arrays([messages.name, messages.cause_name]))
        pairs = np.concatenate([where, owners]) * max(len(distinct), 1) + texts
        found, which = _distinct(pairs, len(places) * len(distinct))
        place, name = np.divmod(found, max(len(distinct), 1))
        names = _digests(distinct)[name]
        return combined(places[place], names), names, which

    def _streams(self, keys: Array, names: Array) -> Array:
        """The numbers of these streams; new ones are taken in."""
        new = np.flatnonzero(positions(self.stream_key, keys) < 0)
        if len(new):
            new = new[np.argsort(keys[new])]
            self._add_streams(keys[new], names[new])
        return np.searchsorted(self.stream_key, keys)

    def _receivers(self, names: list[str]) -> Array:
        keys = _digests(names)
        new = np.flatnonzero(positions(self.receiver_key, keys) < 0)
        if len(new):
            new = new[np.argsort(keys[new])]
            self._add_receivers(keys[new], [names[at] for at in new.tolist()])
        return np.searchsorted(self.receiver_key, keys)

    def _add_streams(self, keys: Array, names: Array) -> None:
        places = np.searchsorted(self.stream_key, keys)
        moved = np.arange(len(self.stream_key)) + np.searchsorted(keys, self.stream_key)
        for name in ("begin", "gone_begin"):
            setattr(self, name, _begins(np.insert(np.diff(getattr(self, name)), places, 0)))
        self.stream_key = np.insert(self.stream_key, places, keys)
        self.stream_name = np.insert(self.stream_name, places, names)
        for name in BY_STREAM:
            setattr(self, name, np.insert(getattr(self, name), places, 0))
        self.stream, self.cause_stream = moved[self.stream], moved[self.cause_stream]

    def _add_receivers(self, keys: Array, names: list[str]) -> None:
        places = np.searchsorted(self.receiver_key, keys)
        for place, name in zip(reversed(places.tolist()), reversed(names), strict=True):
            self.receiver_name.insert(place, name if len(name) <= LONGEST_NAME else "")
        moved = np.arange(len(self.receiver_key)) + np.searchsorted(keys, self.receiver_key)
        self.receiver_key = np.insert(self.receiver_key, places, keys)
        self.next_index = np.insert(self.next_index, places, 0)
        self.receiver = moved[self.receiver]

    def _tidy(self, forget_before: int | None) -> None:
        """Drop streams with no state and nothing that waits for them; with a moment, also those of which
        nothing has left since."""
        islands, gone = np.diff(self.begin), np.diff(self.gone_begin)
        keep = (self.prefix > 0) | (islands > 0) | (gone > 0)
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
        for name in ("stream_key", "stream_name", *BY_STREAM):
            setattr(self, name, getattr(self, name)[keep])

    def _tidy_receivers(self) -> None:
        """Drop receivers to which nothing was delivered and for which nothing is held."""
        keep = self.next_index > 0
        keep[self.receiver] = True
        if keep.all():
            return
        self.receiver_name = [name for name, kept in zip(self.receiver_name, keep, strict=True) if kept]
        self.receiver_key, self.next_index = self.receiver_key[keep], self.next_index[keep]
        self.receiver = (np.cumsum(keep) - 1)[self.receiver]

    # ------------------------------------------------------------ as bytes

    def to_bytes(self) -> bytes:
        columns = {}
        for each in fields(self):
            values = getattr(self, each.name)
            if isinstance(values, list):
                columns[each.name] = pa.array([values], pa.list_(pa.string()))
            elif values.dtype.kind == "S":
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
        columns: dict[str, Any] = {}
        for each in fields(cls):
            column = batch.column(each.name)
            if each.name == "receiver_name":
                columns[each.name] = column[0].as_py()
            elif pa.types.is_binary(column.type):
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


def _digests(names: Sequence[str]) -> Array:
    """The keys of names."""
    raw = (blake2b(name.encode("utf-8", "surrogatepass"), digest_size=KEY).digest() for name in names)
    return np.frombuffer(b"".join(raw), f"S{KEY}")


def _sorted(block: _Block) -> _Block:
    return block.taken(ascending(block.stream, block.number))


def key_of(receiver: str, domain: str | None, name: str) -> bytes:
    """The key of the stream of a source, for a receiver and within a domain."""
    places = _digests([receiver])
    if domain is not None:
        places = combined(places, _digests([domain]))
    found: bytes = combined(places, _digests([name])).tobytes()
    return found


def messages(
    rows: Iterable[tuple[str, str, int, dict[str, int]]], first_place: int = 0, marks: Sequence[int] = ()
) -> Messages:
    """Messages from plain values: (receiver, source, number, causes), and their fingerprints."""
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
        np.array(marks or [0] * len(table), np.uint64),
    )

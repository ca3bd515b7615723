"""What a bucket of receivers remembers between batches, as columns: what was delivered, and what is held.

Streams and receivers stand in the order of their keys; they come with their first message, and go when
nothing is known of them. The columns, in this order, are the bytes of a checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
import pyarrow as pa

from causet.kernels.arrays import Array
from causet.kernels.names import combined
from causet.kernels.streams.block import HEAD, Block, begins
from causet.kernels.streams.channels import with_channels
from causet.kernels.streams.delivered import NO_PREFIX, Delivered, is_delivered
from causet.kernels.streams.keys import KEY, digests
from causet.kernels.streams.marks import positions
from causet.kernels.streams.thresholds import Given

Lost = tuple[str, int, str | None]
"""A message that was given up: its process and its number, in a group or in all of them."""
LONGEST_NAME = 1000
"""Characters of a receiver's name that is kept for reports."""
KEYED = (
    *("stream_key", "stream_name", "receiver_key", "claim_key", "claim_by", "lost_name", "lost_group"),
    *("noted_key", "channel_key", "channel_group", "readers"),
)
BY_STREAM = ("prefix", "top", "closed", "touched", "brief")
BEGINS = ("begin", "gone_begin", "cause_begin")
LASTING, CUT_ALONE, UNORDERED, CUT_LACKS = range(4)
"""How long a stream is remembered: as long as there is something to know of it; only while something waits
for it; up to the horizon; or, of a cut of which something was given up, again while something waits."""


@dataclass
class Memory:
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
    brief: Array
    """how long each stream is remembered"""
    begin: Array
    low: Array
    high: Array
    since: Array
    """islands, see `Delivered`"""
    gone_begin: Array
    gone_low: Array
    gone_high: Array
    gone_since: Array
    """what was diverted, kept in the same way, so that a duplicate is recognized"""
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
    """messages that another one named and no longer waited for: they are late, if they come"""
    lost_name: Array
    lost_group: Array
    lost_number: Array
    """messages that were given up by hand, for every receiver: in a group, or in all of them"""
    noted_key: Array
    noted_number: Array
    noted_since: Array
    """refused messages"""
    channel_key: Array
    channel_group: Array
    """channels, see `channels`"""
    readers: Array
    """the key of the list of readers that was served last, if there was one"""
    begun: Array
    """the number of the last beginning that counts here, if one does"""
    # Held messages, sorted by (stream, number).
    stream: Array
    number: Array
    receiver: Array
    arrival: Array
    place: Array
    part: Array
    cause_begin: Array
    cause_stream: Array
    cause_number: Array

    @classmethod
    def empty(cls) -> Self:
        columns: dict[str, Any] = {each.name: np.empty(0, np.int64) for each in fields(cls)}
        columns |= {name: np.empty(0, f"S{KEY}") for name in KEYED}
        columns |= {name: np.zeros(1, np.int64) for name in BEGINS}
        return cls(**(columns | {"receiver_name": []}))

    def __len__(self) -> int:
        """How many messages are held."""
        return int((self.part == HEAD).sum())

    def _delivered(self) -> Delivered:
        return Delivered(self.prefix, self.begin, self.low, self.high, self.since)

    def _gone(self) -> Delivered:
        none = np.full(len(self.prefix), NO_PREFIX)
        return Delivered(none, self.gone_begin, self.gone_low, self.gone_high, self.gone_since)

    @property
    def channels(self) -> tuple[Array, Array]:
        """The keys of channels, and of their groups."""
        return self.channel_key, self.channel_group

    def add_channels(self, more: tuple[Array, Array]) -> None:
        """Know these channels too."""
        self.channel_key, self.channel_group = with_channels(self.channels, more)

    def _held(self) -> Block:
        return Block(*(getattr(self, name) for name in Block._fields))

    def _hold(self, block: Block) -> None:
        for name, column in zip(Block._fields, block, strict=True):
            setattr(self, name, column)

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

    # ------------------------------------------------------------ streams and receivers

    def _streams(self, keys: Array, names: Array) -> Array:
        """The numbers of these streams; new ones are taken in."""
        new = np.flatnonzero(positions(self.stream_key, keys) < 0)
        if len(new):
            new = new[np.argsort(keys[new])]
            self._add_streams(keys[new], names[new])
        return np.searchsorted(self.stream_key, keys)

    def _receivers(self, names: list[str]) -> Array:
        """The numbers of these receivers; new ones are taken in."""
        keys = digests(names)
        new = np.flatnonzero(positions(self.receiver_key, keys) < 0)
        if len(new):
            new = new[np.argsort(keys[new])]
            self._add_receivers(keys[new], [names[at] for at in new.tolist()])
        return np.searchsorted(self.receiver_key, keys)

    def _add_streams(self, keys: Array, names: Array) -> None:
        at = np.searchsorted(self.stream_key, keys)
        moved = np.arange(len(self.stream_key)) + np.searchsorted(keys, self.stream_key)
        for name in ("begin", "gone_begin"):
            setattr(self, name, begins(np.insert(np.diff(getattr(self, name)), at, 0)))
        self.stream_key = np.insert(self.stream_key, at, keys)
        self.stream_name = np.insert(self.stream_name, at, names)
        for name in BY_STREAM:
            setattr(self, name, np.insert(getattr(self, name), at, 0))
        self.stream, self.cause_stream = moved[self.stream], moved[self.cause_stream]

    def _add_receivers(self, keys: Array, names: list[str]) -> None:
        at = np.searchsorted(self.receiver_key, keys)
        for position, name in zip(reversed(at.tolist()), reversed(names), strict=True):
            self.receiver_name.insert(position, name if len(name) <= LONGEST_NAME else "")
        moved = np.arange(len(self.receiver_key)) + np.searchsorted(keys, self.receiver_key)
        self.receiver_key = np.insert(self.receiver_key, at, keys)
        self.next_index = np.insert(self.next_index, at, 0)
        self.receiver = moved[self.receiver]

    def _tidy(self, forget_before: int | None, all_of_one: bool = False) -> None:
        """Drop streams with no state and nothing that waits for them; and after a cut-off time those of one
        message, or where `all_of_one`, all of which nothing has left since."""
        islands, gone = np.diff(self.begin), np.diff(self.gone_begin)
        keep = (self.prefix > 0) | (islands > 0) | (gone > 0)
        if forget_before is not None:
            keep &= (self.touched >= forget_before) | ~(all_of_one | (self.brief == UNORDERED))
        keep &= (self.brief != CUT_ALONE) & (self.brief != CUT_LACKS)
        keep[self.stream] = True
        keep[self.cause_stream] = True
        if keep.all():
            return
        for kind, sizes in (("", islands), ("gone_", gone)):
            for name in ("low", "high", "since"):
                setattr(self, kind + name, getattr(self, kind + name)[np.repeat(keep, sizes)])
            setattr(self, f"{kind}begin", begins(sizes[keep]))
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

    # ------------------------------------------------------------ what was given up

    def give_up(self, lost: Iterable[Lost]) -> None:
        """These messages will not come: what waits for one of them waits no longer."""
        columns = (self.lost_name, self.lost_group, self.lost_number)
        known = set(zip(*(each.tolist() for each in columns), strict=True))
        for name, number, group in lost:
            [key] = digests([name])
            where = digests([group])[0] if group else b""
            if (key, where, number) not in known:
                self.lost_name = np.append(self.lost_name, np.array([key], f"S{KEY}"))
                self.lost_group = np.append(self.lost_group, np.array([where], f"S{KEY}"))
                self.lost_number = np.append(self.lost_number, number)

    def _lost(self) -> Given:
        """What was given up by hand, by streams."""
        streams, numbers = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for at, number in enumerate(self.lost_number.tolist()):
            mine = np.flatnonzero(self.stream_name == self.lost_name[at])
            if self.lost_group[at]:
                groups = [
                    self.lost_group[at : at + 1],
                    self.channel_key[self.channel_group == self.lost_group[at]],
                ]
                mine = mine[np.isin(self.stream_key[mine], self._streams_of(np.concatenate(groups), at))]
            streams.append(mine)
            numbers.append(np.full(len(mine), number))
        stream, number = np.concatenate(streams), np.concatenate(numbers)
        order = np.lexsort((number, stream))
        return Given(stream[order], number[order])

    def _streams_of(self, channels: Array, lost: int) -> Array:
        """The keys of the streams of all receivers in these channels, of the process of what was given up."""
        receivers = np.repeat(self.receiver_key, len(channels))
        owners = combined(receivers, np.tile(channels, len(self.receiver_key)))
        found: Array = combined(owners, np.repeat(self.lost_name[lost : lost + 1], len(owners)))
        return found

    # ------------------------------------------------------------ as bytes

    def to_bytes(self) -> bytes:
        columns = {}
        for each in fields(self):
            values = getattr(self, each.name)
            if isinstance(values, list):
                columns[each.name] = pa.array([values], pa.list_(pa.string()))
            elif values.dtype.kind == "S":
                columns[each.name] = pa.array([values.tobytes()], pa.binary())
            else:
                columns[each.name] = pa.array([values], pa.list_(pa.int64()))
        batch = pa.RecordBatch.from_pydict(columns)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        found: bytes = sink.getvalue().to_pybytes()
        return found

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        with pa.ipc.open_stream(data) as reader:
            batch = reader.read_next_batch()
        columns: dict[str, Any] = {}
        for each in fields(cls):
            if each.name not in batch.schema.names:  # an earlier release wrote it
                streams = len(columns["stream_key"]) if each.name in BY_STREAM else 0
                columns[each.name] = np.zeros(streams, f"S{KEY}" if each.name in KEYED else np.int64)
                continue
            column = batch.column(each.name)
            if each.name == "receiver_name":
                columns[each.name] = column[0].as_py()
            elif pa.types.is_binary(column.type):
                columns[each.name] = np.frombuffer(column[0].as_py(), f"S{KEY}")
            else:
                columns[each.name] = column[0].values.to_numpy().copy()
        return cls(**columns)

"""The messages of a bucket of receivers: taken in, deduplicated, held, and let go when they may leave.

`Memory` has what is remembered between batches; the rules by which messages leave are in `release`.

What one source can make a bucket remember is bounded: islands and claims by their number, and both claims and
diverted messages by the horizon.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

import numpy as np
from numba import njit

from causet.delivery import AHEAD
from causet.kernels.arrays import Array
from causet.kernels.names import combined
from causet.kernels.streams.awaited import Contents, awaited, lacking, named, needed, waiting, with_cuts
from causet.kernels.streams.awaited import selfish as names_itself
from causet.kernels.streams.beginning import Counted, of_ranges, ranges, stripped, without
from causet.kernels.streams.block import CUT, HEAD, PART, Block, Messages, any_of, of_messages, owners
from causet.kernels.streams.channels import channels_in
from causet.kernels.streams.delivered import (
    Delivered,
    close_holes,
    delivered_after,
    forget_islands,
    is_delivered,
)
from causet.kernels.streams.keys import KEY, encoded, stream_keys
from causet.kernels.streams.marks import Marks, positions
from causet.kernels.streams.memory import UNORDERED, Memory
from causet.kernels.streams.release import DIVERTED, FLAGGED, HELD, LATE, Released, release
from causet.kernels.streams.sorting import ascending
from causet.kernels.streams.thresholds import Given, Rows, first_blocked, mark_late

NOWHERE = -1
NEVER = -(2**62)
MOST_ISLANDS = 4096
"""The islands of one stream; beyond that the lowest holes are closed."""
MOST_CLAIMS = 1 << 16
"""The messages that one stream named and did not wait for, of which it is remembered that they were named."""
MOST_NOTED = 10_000
"""The refused messages that are remembered by their numbers, so that a report can name them."""


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
    missing: list[tuple[int, bytes, int]]
    """which of those that leave lacks which message: the key of its stream, and its number"""
    reached: tuple[Array, Array]
    """the keys of streams; and for each up to which number all is delivered, or was given up before the
    horizon"""
    duplicates: int
    selfish: Array
    """places of messages that depend on themselves or on a later one of their own stream"""
    forgotten: Array
    """places of messages in a hole that was closed: it is no longer known whether they were delivered"""
    far: Array
    """places of messages whose number is too far above those of their stream"""
    conflicts: Array
    """places of messages that have the number of a different one"""


class Holding(Memory):
    """The memory of one bucket, and what a batch does with it."""

    def step(
        self,
        messages: Messages,
        marks: Marks,
        now: int,
        policy: int,
        overdue_since: int,
        forget_before: int | None = None,
        by_id: bool = False,
        contents: Contents | None = None,
        patient: Container[str] = (),
    ) -> Outcome:
        """Take messages in, and let go what can leave: what came up to `overdue_since` waits no longer.
        `contents` says what is in the cuts that messages name; the patience of `patient` receivers does not
        end."""
        messages = self._without_counted(messages, marks)
        cuts = None
        if messages.cut is not None and contents is not None:
            cuts = awaited(self, messages, contents)
        stream, receiver, cause_stream = self._known(messages)
        if messages.brief is not None:
            self.brief[stream[messages.brief]] = UNORDERED
        new = Block(
            stream,
            messages.number,
            receiver,
            np.full(len(stream), now),
            messages.place,
            np.full(len(stream), HEAD) if messages.part is None else np.where(messages.part, PART, HEAD),
            messages.cause_begin,
            cause_stream,
            messages.cause_number,
        )
        head = new.heads()
        selfish = new.selfish(head)
        if cuts is not None:
            selfish |= of_messages(names_itself(self, new, head, cuts), head)
        far = ~selfish & of_messages(new.number > self.top[new.stream] + AHEAD, head)
        fine = ~(selfish | far)
        new = new.linked(head)
        if cuts is not None:
            new = waiting(self, new, cuts)
        fresh, duplicate, conflict = self._distinguish(new, messages.mark, fine, marks)
        if messages.part is not None:
            fresh, duplicate, conflict = _as_one(fresh, duplicate, conflict, head)
        forgotten = duplicate & of_messages(duplicate & (new.number <= self.closed[new.stream]), head)
        duplicate &= ~forgotten
        if forgotten.any():  # it may be known all the same, by its fingerprint
            at = np.flatnonzero(forgotten)
            seen, _ = marks.known(self.stream_key[new.stream[at]], new.number[at])
            known = np.zeros(len(head), np.bool_)
            known[at[seen]] = True
            known = of_messages(known, head)
            duplicate |= known
            forgotten &= ~known
        accepted = new.taken(fresh)
        np.maximum.at(self.top, accepted.stream, accepted.number)
        held = self._held().joined(accepted)
        if cuts is not None:
            held = with_cuts(self, held, cuts, now)
        rows, head = self._rows_of(held), held.heads()
        overdue = (held.arrival <= overdue_since) & (held.part != CUT)
        if patient:
            waits = np.array([name in patient for name in self.receiver_name], np.bool_)
            overdue &= ~waits[held.receiver]
        late = of_messages(mark_late(rows, self._delivered(), self._claims()), head)
        found = release(rows, self._delivered(), policy, overdue, late, self._lost(), head)
        if len(self.lost_name):
            found = lacking(self, held, found)
        left = found.order[held.part[found.order] == HEAD]
        status = found.status[left]
        index = np.full(len(left), NOWHERE, np.int64)
        counts = status != DIVERTED
        index[counts] = _number_within(held.receiver[left[counts]], self.next_index)
        self.touched[held.stream[found.order]] = now
        missing = self._missing(held, found, left)
        reached = self._remember(held, rows, found, now, forget_before)
        marks.add(self.stream_key, self.top, accepted.stream, accepted.number, messages.mark[fresh])
        self.marks = marks.sizes
        self._tidy(forget_before, by_id)
        self._tidy_receivers()
        return Outcome(
            held.place[left],
            index,
            status,
            now - held.arrival[left],
            missing,
            reached,
            int((duplicate & (new.part == HEAD)).sum()),
            *(messages.place[each & (new.part == HEAD)] for each in (selfish, forgotten, far, conflict)),
        )

    def _remember(
        self, held: Block, rows: Rows, found: Released, now: int, forget_before: int | None
    ) -> tuple[Array, Array]:
        """Keep what is delivered, what is diverted, what is claimed, and what is still held; and say how far
        all streams are."""
        diverted, kept = found.status == DIVERTED, found.status == HELD
        after = delivered_after(self._delivered(), rows.begin, rows.number, ~(diverted | kept), now)
        gone = delivered_after(self._gone(), rows.begin, rows.number, diverted, now)
        after = close_holes(after, MOST_ISLANDS, self.closed)
        reached = after.prefix.copy()
        for known in (after, gone) if forget_before is not None else ():
            old = known.since < forget_before
            np.maximum.at(reached, _stream_of_islands(known)[old], known.high[old])
        gone = forget_islands(gone, NEVER if forget_before is None else forget_before, MOST_ISLANDS)
        self.prefix, self.begin, self.low, self.high, self.since = after
        _, self.gone_begin, self.gone_low, self.gone_high, self.gone_since = gone
        self._claim(held, found, now, forget_before)
        left = np.flatnonzero(kept)
        self._hold(held.taken(needed(held, left) if (held.part == CUT).any() else left))
        return self.stream_key, reached

    def _without_counted(self, messages: Messages, marks: Marks) -> Messages:
        """The messages without those of their numbers that count as delivered although they never came: a
        reader that began at a cut has one message in some of its groups, and not yet in others."""
        if messages.part is None or not len(self.begun):
            return messages
        stream, _, _ = self._known(messages)
        known = self.is_delivered(stream, messages.number)
        new = ~(known | self._is_held(stream, messages.number))
        new &= ~is_delivered(self._gone(), stream, messages.number)
        at = np.flatnonzero(known & any_of(new, owners(messages)))
        seen, _ = marks.known(self.stream_key[stream[at]], messages.number[at])
        counted = np.zeros(len(stream), np.bool_)
        counted[at[~seen]] = True
        return stripped(messages, counted) if counted.any() else messages

    def _distinguish(self, new: Block, mark: Array, fine: Array, marks: Marks) -> tuple[Array, Array, Array]:
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

    def _rows_of(self, block: Block) -> Rows:
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

    # ------------------------------------------------------------ what was not waited for

    def _claims(self) -> Given:
        """What messages named and did not wait for, of streams that are known."""
        stream = positions(self.stream_key, self.claim_key)
        known = stream >= 0
        return Given(stream[known], self.claim_number[known])

    def _claim(self, held: Block, found: Released, now: int, forget_before: int | None) -> None:
        """Remember what flagged messages named and did not wait for; forget what came, or is too old. (That
        the previous one of its own stream is missing needs no memory.)"""
        rows, causes = found.missing_row, found.missing_cause
        mine = np.flatnonzero((causes != NOWHERE) & np.isin(found.status[rows], (FLAGGED, LATE)))
        stream, number, whose = named(held, rows[mine], causes[mine])
        key = np.concatenate([self.claim_key, self.stream_key[stream]])
        number = np.concatenate([self.claim_number, number])
        since = np.concatenate([self.claim_since, np.full(len(stream), now)])
        by = np.concatenate([self.claim_by, self.stream_key[held.stream[whose]]])
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

    # ------------------------------------------------------------ where readers begin

    def count(self, owner: Array, counted: Counted) -> None:
        """Count this as delivered; `owner` is, for each range, the key of a reader in a group."""
        keys, first, which = np.unique(
            combined(owner, counted.process), return_index=True, return_inverse=True
        )
        stream = self._streams(keys, counted.process[first])[which.reshape(-1)]
        known, low, high, since = ranges(self._delivered())
        now = np.full(len(stream), int(self.clock.max(initial=0)))
        self._set_delivered(
            of_ranges(
                np.concatenate([known, stream]),
                np.concatenate([low, counted.low]),
                np.concatenate([high, counted.high]),
                np.concatenate([since, now]),
                len(self.stream_key),
            )
        )
        np.maximum.at(self.top, stream, counted.high)
        np.maximum.at(self.closed, stream, counted.closed)
        self.touched[stream] = self.clock.max(initial=0)

    def take_out(self, places: Array) -> None:
        """Hold these messages no longer."""
        self._hold(self._held().taken(np.flatnonzero(~np.isin(self.place, places))))

    def count_again(self, messages: Messages) -> None:
        """Of these messages, which are not held, no part is delivered: take it back of those of which it is
        known in all of their groups."""
        stream, _, _ = self._known(messages)
        known, owner = self.is_delivered(stream, messages.number), owners(messages)
        back = ~any_of(~known, owner)
        pairs = np.unique(np.stack([stream[back], messages.number[back]]), axis=1)
        now = int(self.clock.max(initial=0))
        self._set_delivered(without(self._delivered(), pairs[0], pairs[1], now))

    def not_known(self, messages: Messages) -> Messages:
        """The messages that are neither held nor, in all of their groups, delivered; without those of their
        numbers that are."""
        stream, _, _ = self._known(messages)
        known = self.is_delivered(stream, messages.number)
        here = any_of(self._is_held(stream, messages.number), owners(messages))
        return stripped(messages, known | here)

    def _set_delivered(self, delivered: Delivered) -> None:
        self.prefix, self.begin, self.low, self.high, self.since = delivered

    # ------------------------------------------------------------ what was refused

    def note(self, refused: Messages, now: int, forget_before: int | None) -> None:
        """Remember the numbers of messages that were refused: what waits for one of them can say so."""
        receivers, receiver_names = encoded(refused.receiver)
        distinct, _, which = stream_keys(refused, receivers, receiver_names)
        keys = distinct[which[: len(receivers)]]
        key = np.concatenate([self.noted_key, keys])[-MOST_NOTED:]
        number = np.concatenate([self.noted_number, refused.number])[-MOST_NOTED:]
        since = np.concatenate([self.noted_since, np.full(len(keys), now)])[-MOST_NOTED:]
        keep = since >= (NEVER if forget_before is None else forget_before)
        self.noted_key, self.noted_number, self.noted_since = key[keep], number[keep], since[keep]

    def is_noted(self, key: bytes, number: int) -> bool:
        """Whether this message of a stream came and was refused."""
        wanted = np.frombuffer(key, f"S{KEY}")[0]
        return bool(((self.noted_key == wanted) & (self.noted_number == number)).any())

    def oldest_blocked(self) -> tuple[int, bytes, int]:
        """Of the held messages that wait for something that is not here, the oldest: its row; and what it
        waits for, the key of its stream and its number."""
        held = self._held()
        row, stream, number = first_blocked(
            self._rows_of(held), self._delivered(), self.arrival, self._lost(), held.heads()
        )
        return int(row), self.key_of(int(stream)), int(number)

    def key_of(self, stream: int) -> bytes:
        """The key of a stream."""
        return self._keys(np.array([stream]))[0]

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

    def _missing(self, held: Block, found: Released, left: Array) -> list[tuple[int, bytes, int]]:
        """What messages left without, see `Outcome`."""
        turn = np.empty(len(held.stream), np.int64)
        turn[left] = np.arange(len(left))
        rows, causes = found.missing_row, found.missing_cause
        own = causes == NOWHERE
        # The first cause stands for that of a row that has none, and is not taken.
        stream, number = (np.append(each, 0)[causes] for each in (held.cause_stream, held.cause_number))
        stream, number = (
            np.where(own, held.stream[rows], stream),
            np.where(own, held.number[rows] - 1, number),
        )
        mine = np.flatnonzero(held.part[rows] != CUT)  # that of a cut is not told
        rows, stream, number = rows[mine], stream[mine], number[mine]
        return list(zip(turn[rows].tolist(), self._keys(stream), number.tolist(), strict=True))

    def _keys(self, stream: Array) -> list[bytes]:
        """The keys of streams; numpy would drop the zeros at the end of one by itself."""
        whole = self.stream_key[stream].tobytes()
        return [whole[at : at + KEY] for at in range(0, len(whole), KEY)]

    def _known(self, messages: Messages) -> tuple[Array, Array, Array]:
        """The streams of the messages, their receivers, and the streams of their causes, by number; those
        that are new are taken in."""
        self.add_channels(channels_in(messages))
        receivers, receiver_names = encoded(messages.receiver)
        keys, names, which = stream_keys(messages, receivers, receiver_names)
        streams = self._streams(keys, names)[which]
        receiver = self._receivers(receiver_names)[receivers]
        return streams[: len(receivers)], receiver, streams[len(receivers) :]


@njit(cache=True)
def _number_within(receiver: Array, next_index: Array) -> Array:
    """The index of each of these messages, in their order, at its receiver; `next_index` is moved on."""
    index = np.empty(len(receiver), np.int64)
    for i in range(len(receiver)):
        index[i] = next_index[receiver[i]]
        next_index[receiver[i]] += 1
    return index


def _stream_of_islands(delivered: Delivered) -> Array:
    found: Array = np.repeat(np.arange(len(delivered.prefix)), np.diff(delivered.begin))
    return found


def _as_one(fresh: Array, duplicate: Array, conflict: Array, head: Array) -> tuple[Array, Array, Array]:
    """The same for whole messages: one that is new in one group and known in another is in conflict."""
    new = np.zeros(len(head), np.bool_)
    new[fresh] = True
    conflict = of_messages(conflict, head) | (of_messages(duplicate, head) & of_messages(new, head))
    return fresh[~conflict[fresh]], duplicate & ~conflict, conflict

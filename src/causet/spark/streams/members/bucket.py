"""The members of one bucket: rows in, rows out, and in between their states as bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa

from causet.errors import BadInput
from causet.kernels.arrays import Array
from causet.spark.streams.members.member import DAMAGED, Effects, Member, Row
from causet.spark.streams.members.rows import came_in, delivered_rows, diverted_rows
from causet.spark.streams.members.saved import from_bytes, to_bytes
from causet.spark.streams.members.settings import SEQ, Settings
from causet.spark.streams.messages.settings import MALFORMED
from causet.spark.streams.pack import from_blob
from causet.spark.streams.state import Segments, named_row
from causet.status import CONTROL, DELIVERED, DIVERTED, DUPLICATES, READ, REFUSED, SENT

COUNTS = (READ, DELIVERED, DIVERTED, REFUSED, DUPLICATES, CONTROL, SENT)
"""What is counted, see `books`."""


class Bucket:
    """The members of one bucket. Each is there once a row of it has come."""

    def __init__(self, settings: Settings, memory: bytes | None, segments: Segments) -> None:
        self.settings = settings
        self.segments = segments
        self.effects = Effects()
        self.members = members_in(settings, memory)

    def step(self, blobs: Sequence[bytes], now: int) -> Iterator[pa.Table]:
        """Take the rows of a batch in, and give out what leaves."""
        settings, effects = self.settings, self.effects
        before = self._places()
        if blobs:
            table = pa.concat_tables([from_blob(blob) for blob in blobs]).combine_chunks()
            rows = came_in(table, settings, self.segments.begin(table))
            for (receiver, _), same in groupby(rows, key=lambda came: (came.receiver, came.seq)):
                member = self._member(receiver)
                if member is not None:
                    member.take(same, now, effects)
                    continue
                for came in same:
                    effects.divert(came.place, came.problem or f"has no {settings.by}")
        for member in self.members.values():
            member.settle(effects)
        self._check_room()
        if effects.problems:
            aside = diverted_rows(self.segments, effects.problems, settings)
            if settings.strict:
                raise BadInput(f"{_place_of(aside, settings)}; without --strict it is diverted")
            yield aside
        if effects.delivered:
            yield delivered_rows(self.segments, effects.delivered, settings)
        self._keep(before)

    def _member(self, receiver: str | None) -> Member | None:
        """The member of this name; None if the system has no such process."""
        me = self.settings.numbers.get(receiver)
        if me is None:
            return None
        if me not in self.members:
            self.members[me] = Member(self.settings.setting, me)
        return self.members[me]

    def _check_room(self) -> None:
        held, most = len(self), self.settings.most_held
        if held > most:
            raise BadInput(
                f"{held:,} messages are held, and most_held = {most:,}; the oldest waits for "
                f"{self._blocked()[1]}. Find out why that does not come, or raise the limit"
            )

    def _places(self) -> Array:
        return np.fromiter((row.place for member in self.members.values() for row in member.held()), np.int64)

    def _keep(self, before: Array) -> None:
        """Keep the rows that are held."""
        old = self._places()
        new = old.copy()
        self.segments.keep(before, new)
        places = dict(zip(old.tolist(), new.tolist(), strict=True))
        for member in self.members.values():
            member.move(places)

    # ------------------------------------------------------------ how it stands

    def __len__(self) -> int:
        """How many rows are held."""
        return sum(map(len, self.members.values()))

    def was_read(self, rows: int) -> None:
        """Count rows that were read, for this bucket or another one."""
        self.effects.counts[READ] += rows

    def report(self) -> dict[str, Any]:
        oldest, blocked = self._blocked() if len(self) else (None, None)
        about = {"held": len(self), "oldest": oldest, "blocked": blocked, "wanted": None, "missed": None}
        return {**about, **{name: self.effects.counts[name] for name in COUNTS}}

    def _blocked(self) -> tuple[int, str]:
        """When the oldest that is held came, and what it needs."""
        every = (each for _, member in sorted(self.members.items()) for each in member.waiting())
        row, _, needs = min(every, key=_arrival)
        return row.arrival, needs

    def to_bytes(self) -> bytes:
        """What is remembered."""
        return to_bytes(tuple((me, member.saved()) for me, member in sorted(self.members.items())))


def members_in(settings: Settings, memory: bytes | None) -> dict[int, Member]:
    """The members that are remembered; BadInput if these bytes remember none."""
    found: dict[int, Member] = {}
    size = settings.setting.system.size
    for each in () if memory is None else from_bytes(memory):
        if not (isinstance(each, tuple) and len(each) == 2 and each[0] in range(size)):
            raise BadInput(DAMAGED)
        me, saved = each
        found[me] = Member.loaded(settings.setting, me, saved)
    return found


def _arrival(waiting: tuple[Row, str, str]) -> int:
    return waiting[0].arrival


def _place_of(aside: pa.Table, settings: Settings) -> str:
    """Which row is diverted, and why: the first one of these."""
    first = aside.slice(0, 1).to_pylist()[0]
    about = named_row(first, settings.by, SEQ, MALFORMED)
    return f"a row ({about or 'all of it null'}) {first['problem']}"

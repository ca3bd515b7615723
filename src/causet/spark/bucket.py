"""The messages of some receivers: rows in, rows out, and in between what is held.

The kernel knows messages by their numbers and places; here their columns are read, and rows are found again.
The rows that are held are kept in segments, one per chunk of rows that came, by whoever owns the bucket.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from causet.delivery import DELIVERED, DIVERTED, FLAGGED, LATE, POLICIES
from causet.kernels import release
from causet.kernels.causes import Causes, read_causes, read_parents
from causet.kernels.holding import NOWHERE, Holding, Messages, Outcome
from causet.model import BadInput
from causet.spark.books import READ
from causet.spark.packing import OWN, from_blob, in_one_piece, text_column
from causet.spark.segments import Segments
from causet.stamp import MOST_SEQUENCE

Array = np.ndarray[Any, Any]

STATUS = {
    release.DELIVERED: DELIVERED,
    release.FLAGGED: FLAGGED,
    release.LATE: LATE,
    release.DIVERTED: DIVERTED,
}
ADDED = ("receiver", "index", "status", "waited", "missing", "problem")
"""The columns that every message gets."""
COUNTS = (READ, DELIVERED, FLAGGED, LATE, DIVERTED, "refused", "duplicates", "caused")
"""What is counted: rows that came, messages by status, rows that are no message, dropped copies; and of the
messages that came, those that name a cause."""
MALFORMED = "malformed"
"""The column of lines that are no JSON, where messages come from files."""
RECEIVER, NUMBER = f"{OWN}receiver", f"{OWN}number"
"""Columns beside those of the user: the receiver as text; the sequence as a number, if it is none."""
ALL = "all"
"""The receiver, where there is only one."""
FAR_BACK = -(2**62)
SELFISH = "depends on itself or on a later message of its source"
FORGOTTEN = "came after the horizon: it is not known any longer whether it was delivered"
_MISSING = pa.map_(pa.string(), pa.int64())


@dataclass(frozen=True)
class Settings:
    """What a deliverer is told. Those in `fixed` cannot change between runs of the same checkpoint."""

    policy: str
    patience: int | None
    horizon: int
    by: str | None
    receiver: str | None
    """the column of the receiver as text; None where there is only one"""
    source: str
    sequence: str
    causes: str | None
    parent: str | None
    buckets: int
    most_held: int

    @property
    def fixed(self) -> str:
        return json.dumps(
            {"by": self.by, "buckets": self.buckets, "numbers": "parent" if self.parent else "sequence"}
        )


class Bucket:
    """The messages of some receivers: rows in, rows out, and in between what is held."""

    def __init__(self, settings: Settings, holding: Holding, segments: Segments) -> None:
        self.settings = settings
        self.holding = holding
        self.segments = segments
        self._counts = dict.fromkeys(COUNTS, 0)

    def step(
        self, blobs: list[bytes], now: int, ended: int | None = None, last: bool = False
    ) -> Iterator[pa.Table]:
        """Take messages in and give out what leaves. Only with the last of a batch does patience end."""
        settings = self.settings
        tables = [from_blob(blob) for blob in blobs]
        table = pa.concat_tables(tables).combine_chunks() if tables else None
        messages, refused = _messages(table, settings, self.segments.begin(table))
        self._counts["caused"] += int((np.diff(messages.cause_begin) > 0).sum())
        before = self.holding.place
        overdue = FAR_BACK
        if last and settings.patience is not None:
            overdue = max(now - settings.patience, ended if ended is not None else overdue)
        outcome = self.holding.step(
            messages,
            now,
            POLICIES.index(settings.policy) if last else release.WAIT,
            overdue,
            now - settings.horizon if last else None,
            settings.parent is not None,
        )
        if len(self.holding) > settings.most_held:
            raise BadInput(
                f"{len(self.holding):,} messages are held, and most_held = {settings.most_held:,}; the "
                f"oldest waits for {self._blocked()[1]}. Find out why that does not come, raise the "
                "limit, or begin anew with flag or divert after some patience"
            )
        self._counts["duplicates"] += outcome.duplicates
        problems = {
            **refused,
            **dict.fromkeys(outcome.selfish.tolist(), SELFISH),
            **dict.fromkeys(outcome.forgotten.tolist(), FORGOTTEN),
        }
        if problems:
            self._counts["refused"] += len(problems)
            self._counts[DIVERTED] += len(problems)
            yield _with_problems(self.segments, problems, settings)
        if len(outcome.place):
            for code, count in enumerate(np.bincount(outcome.status).tolist()):
                if count:
                    self._counts[STATUS[code]] += count
            yield _with_results(self.segments, outcome, settings)
        self.segments.keep(before, self.holding.place)

    def was_read(self, rows: int) -> None:
        """So many rows were read, for this bucket or another one."""
        self._counts[READ] += rows

    def report(self) -> dict[str, Any]:
        oldest, blocked = self._blocked() if len(self.holding) else (None, None)
        return {"held": len(self.holding), "oldest": oldest, "blocked": blocked, **self._counts}

    def _blocked(self) -> tuple[int, str]:
        """Of those that wait for something that is not here: when the oldest came, and what it waits for."""
        at, which, number = self.holding.oldest_blocked()
        row = self.segments.taken(self.holding.place[at : at + 1])
        if which == NOWHERE:
            name = row.column(self.settings.source)[0].as_py()
        else:
            name = causes_of(row, self.settings).name[which].as_py()
        receiver = receivers_of(row, self.settings)[0].as_py()
        wanted = name if self.settings.parent else f"{name}:{number}"
        return int(self.holding.arrival[at]), wanted if receiver == ALL else f"{wanted} at {receiver}"


# ---------------------------------------------------------------- columns


def _messages(
    table: pa.Table | None, settings: Settings, first_place: int
) -> tuple[Messages, dict[int, str]]:
    """The messages of a table for the kernel; and of those that are none, by their places, why."""
    if table is None or not table.num_rows:
        none = pa.array([], pa.large_string())
        empty = np.empty(0, np.int64)
        return Messages(none, none, empty, np.zeros(1, np.int64), none, empty, empty), {}
    receiver, name = receivers_of(table, settings), text_column(table.column(settings.source))
    problems: dict[int, str] = {}

    def refuse(rows: Array, problem: str) -> None:
        for row in np.flatnonzero(rows).tolist():
            problems.setdefault(row, problem)

    if MALFORMED in table.column_names:
        refuse(table.column(MALFORMED).is_valid().to_numpy(), "is no JSON")
    refuse(receiver.is_null().to_numpy(zero_copy_only=False), f"has no {settings.by}")
    refuse(name.is_null().to_numpy(zero_copy_only=False), f"has no {settings.source}")
    if settings.parent is not None:
        number = np.ones(table.num_rows, np.int64)
    else:
        column = in_one_piece(table.column(NUMBER if NUMBER in table.column_names else settings.sequence))
        refuse(
            column.is_null().to_numpy(zero_copy_only=False), f"has no {settings.sequence} that is a number"
        )
        number = column.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
        refuse(
            (number < 1) | (number > MOST_SEQUENCE),
            f"has a {settings.sequence} that is not between 1 and {MOST_SEQUENCE}",
        )
    causes = causes_of(table, settings)
    refuse(causes.bad, f"has {settings.causes or settings.parent} that cannot be read")
    places = first_place + np.arange(table.num_rows)
    whole = Messages(receiver, name, number, causes.begin, causes.name, causes.number, places)
    if problems:
        keep = np.ones(table.num_rows, np.bool_)
        keep[list(problems)] = False
        whole = _kept(whole, causes, keep)
    return whole, {first_place + row: problem for row, problem in problems.items()}


def _kept(messages: Messages, causes: Causes, keep: Array) -> Messages:
    sizes = np.diff(causes.begin)
    mine = np.repeat(keep, sizes)
    return Messages(
        messages.receiver.filter(pa.array(keep)),
        messages.name.filter(pa.array(keep)),
        messages.number[keep],
        np.concatenate([[0], np.cumsum(sizes[keep])]).astype(np.int64),
        messages.cause_name.filter(pa.array(mine)),
        messages.cause_number[mine],
        messages.place[keep],
    )


def receivers_of(table: pa.Table, settings: Settings) -> pa.Array:
    """The receivers of messages."""
    if settings.receiver is not None:
        return text_column(table.column(settings.receiver))
    nowhere = pa.array(np.zeros(table.num_rows, np.int8))
    return pa.DictionaryArray.from_arrays(nowhere, pa.array([ALL])).cast(pa.large_string())


def causes_of(table: pa.Table, settings: Settings) -> Causes:
    if settings.parent is not None:
        return read_parents(in_one_piece(table.column(settings.parent)))
    return read_causes(in_one_piece(table.column(settings.causes)))


def _with_results(rows: Segments, outcome: Outcome, settings: Settings) -> pa.Table:
    table = rows.taken(outcome.place)
    if outcome.missing:
        missing: list[dict[str, int]] = [{} for _ in range(table.num_rows)]
        names, causes = text_column(table.column(settings.source)), causes_of(table, settings)
        for turn, which, number in outcome.missing:
            own = which == NOWHERE
            name = (names[turn] if own else causes.name[causes.begin[turn] + which]).as_py()
            missing[turn][name] = max(number, missing[turn].get(name, 0))
        found = pa.array([list(each.items()) for each in missing], _MISSING)
    else:
        none = np.zeros(table.num_rows + 1, np.int32)
        found = pa.MapArray.from_arrays(pa.array(none), pa.array([], pa.string()), pa.array([], pa.int64()))
    words = pa.array([STATUS.get(code, "") for code in range(max(STATUS) + 1)])
    status = pa.DictionaryArray.from_arrays(pa.array(outcome.status.astype(np.int8)), words)
    index = pa.array(outcome.index, pa.int64(), mask=outcome.index == NOWHERE)
    return _finished(
        table,
        settings,
        index,
        status.cast(pa.string()),
        pa.array(outcome.waited / 1000.0),
        found,
        pa.nulls(table.num_rows, pa.string()),
    )


def _with_problems(rows: Segments, problems: Mapping[int, str], settings: Settings) -> pa.Table:
    places = np.array(sorted(problems), np.int64)
    table = rows.taken(places)
    count = table.num_rows
    return _finished(
        table,
        settings,
        pa.nulls(count, pa.int64()),
        pa.array([DIVERTED] * count),
        pa.array(np.zeros(count)),
        pa.array([[]] * count, _MISSING),
        pa.array([problems[place] for place in places.tolist()]),
    )


def _finished(table: pa.Table, settings: Settings, *added: pa.Array) -> pa.Table:
    receiver = receivers_of(table, settings).cast(pa.string())
    kept = table.select(
        [name for name in table.column_names if not name.startswith(OWN) and name not in ADDED]
    )
    for name, column in zip(ADDED, (receiver, *added), strict=True):
        kept = kept.append_column(name, column)
    return kept

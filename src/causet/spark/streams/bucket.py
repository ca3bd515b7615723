"""The messages of some receivers: rows in, rows out, and in between what is held.

The kernel knows messages by their numbers and places; here their columns are read, and rows are found again.
The rows that are held are kept in segments, one per chunk of rows that came, by the owner of the bucket.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from causet.delivery import AHEAD
from causet.envelope import HEARTBEAT, MOST_SEQUENCE
from causet.errors import BadInput, printable
from causet.kernels.arrays import Array
from causet.kernels.streams.block import Messages
from causet.kernels.streams.causes import Causes, read_causes, read_parents
from causet.kernels.streams.fingerprints import fingerprints, payload_columns
from causet.kernels.streams.holding import NOWHERE, Holding, Outcome
from causet.kernels.streams.keys import key_of
from causet.kernels.streams.marks import Marks, Store
from causet.spark.streams.pack import FAULT, OWN, SIZE, from_blob, in_one_piece, text_column
from causet.spark.streams.state import Segments, named_row
from causet.status import (
    CONFLICTS,
    DELIVERED,
    DIVERTED,
    DUPLICATES,
    FLAGGED,
    HEARTBEATS,
    LATE,
    POLICIES,
    READ,
    REFUSED,
    STATUSES,
    WAIT,
)

ADDED = ("receiver", "index", "status", "waited", "missing", "problem")
"""The columns that every message gets."""
COUNTS = (READ, DELIVERED, FLAGGED, LATE, DIVERTED, REFUSED, CONFLICTS, DUPLICATES, HEARTBEATS, "caused")
"""What is counted, see `books`; and of the messages that came, those that name a cause."""
MALFORMED = "malformed"
"""The column of lines that are not JSON, where messages come from files."""
RECEIVER, NUMBER = f"{OWN}receiver", f"{OWN}number"
"""Columns beside those of the user: the receiver as a string; the sequence as a number, if it is
another type."""
ALL = "all"
"""The receiver, where there is only one."""
FAR_BACK = -(2**62)
TYPE = "type"
SELFISH = "depends on itself or on a later message of its source"
FORGOTTEN = "came too late: it is not known any longer whether it was delivered"
FAR = f"has a number more than {AHEAD:,} above the others of its source"
CONFLICT = "has the number of another message of its source, with another id or data"
ODD_VERSION = "has a causalversion that is not 1 or 2"
_MISSING = pa.map_(pa.string(), pa.int64())


@dataclass(frozen=True)
class Settings:
    """The settings of `deliver` for messages with certain columns. Times are in ms."""

    policy: str
    patience: int | None
    horizon: int
    by: str | None
    receiver: str | None
    """the column of the receiver as a string; None where there is only one"""
    source: str
    sequence: str
    causes: str | None
    parent: str | None
    buckets: int
    most_held: int
    domain: str | None = None
    """the column of the domain within which a source numbers its messages, if there is one"""
    lost: tuple[tuple[str, int], ...] = ()
    """messages that will not come, by source and number"""
    strict: bool = False
    """a row that is not a message ends the query"""
    most_bytes: int | None = None
    """what the sink takes of one message, if that is limited"""
    process: tuple[str, ...] = ()
    """columns of the identity under which a message is numbered, where rows have them: the first that has a
    value counts, or else the source"""
    version: str | None = None
    """the column of the envelope's version, where rows have it"""
    columns: tuple[str, ...] = ()
    """all columns, in their order: rows that an earlier release read may have fewer"""

    @property
    def fixed(self) -> str:
        """What cannot change between runs of the same checkpoint."""
        return json.dumps(
            {"by": self.by, "buckets": self.buckets, "numbers": "parent" if self.parent else "sequence"}
        )


class Bucket:
    """The messages of some receivers: rows in, rows out, and in between what is held."""

    def __init__(self, settings: Settings, holding: Holding, segments: Segments, marks: Store) -> None:
        self.settings = settings
        self.holding = holding
        self.segments = segments
        self._marks = Marks(marks, holding.marks)
        self._counts = dict.fromkeys(COUNTS, 0)
        self._missed: Wanted | None = None
        holding.give_up(settings.lost)

    def step(
        self, blobs: list[bytes], now: int, ended: int | None = None, last: bool = False
    ) -> Iterator[pa.Table]:
        """Take messages in and give out what leaves. Only with the last of a batch does patience end."""
        settings = self.settings
        if ended is not None:  # all that came before this batch came before the end of the input
            ended = max([ended, *self.holding.clock.tolist()])
        now = self.holding.not_before(now)
        tables = [from_blob(blob) for blob in blobs]
        table = pa.concat_tables(tables).combine_chunks() if tables else None
        taken = _taken(table, settings, self.segments.begin(table))
        messages = taken.messages
        self._counts["caused"] += int((np.diff(messages.cause_begin) > 0).sum())
        self._counts[HEARTBEATS] += taken.heartbeats
        before = self.holding.place
        forget_before = now - settings.horizon if last else None
        self.holding.note(taken.named, now, forget_before)
        overdue = FAR_BACK
        if last and settings.patience is not None:
            overdue = max(now - settings.patience, ended if ended is not None else overdue)
        outcome = self.holding.step(
            messages,
            self._marks,
            now,
            POLICIES.index(settings.policy if last else WAIT),
            overdue,
            forget_before,
            settings.parent is not None,
        )
        if len(self.holding) > settings.most_held:
            blocked = self._blocked()[1].words(settings)
            raise BadInput(
                f"{len(self.holding):,} messages are held, and most_held = {settings.most_held:,}; the "
                f"oldest waits for {blocked}. Find out why that does not come, raise the limit, or start "
                "over with flag or divert after some patience"
            )
        self._counts[DUPLICATES] += outcome.duplicates
        problems = {
            **taken.refused,
            **dict.fromkeys(outcome.selfish.tolist(), SELFISH),
            **dict.fromkeys(outcome.forgotten.tolist(), FORGOTTEN),
            **dict.fromkeys(outcome.far.tolist(), FAR),
        }
        self._counts[REFUSED] += len(problems)
        self._counts[DIVERTED] += len(problems)
        conflicts = outcome.conflicts.tolist()
        self._counts[CONFLICTS] += len(conflicts)
        problems |= dict.fromkeys(conflicts, CONFLICT)
        if problems:
            aside = _with_problems(self.segments, problems, settings)
            if settings.strict:
                raise BadInput(f"{_place_of(aside, settings)}; without --strict it is diverted")
            yield aside
        if len(outcome.place):
            for code, count in enumerate(np.bincount(outcome.status).tolist()):
                if count:
                    self._counts[STATUSES[code]] += count
            rows = _with_results(self.segments, outcome, settings)
            self._missed = self._missed or _first_missed(rows, settings)
            yield rows
        self.segments.keep(before, self.holding.place)

    def was_read(self, rows: int) -> None:
        """Count rows that were read, for this bucket or another one."""
        self._counts[READ] += rows

    def report(self) -> dict[str, Any]:
        oldest, wanted = self._blocked() if len(self.holding) else (None, None)
        blocked = None
        if wanted is not None:
            blocked = wanted.words(self.settings)
            if self.holding.is_noted(wanted.key(), wanted.number):
                blocked += ", which was diverted"
        return {
            "held": len(self.holding),
            "oldest": oldest,
            "blocked": blocked,
            "wanted": json.dumps(wanted) if wanted is not None else None,
            "missed": json.dumps(self._missed) if self._missed is not None else None,
            **self._counts,
        }

    def _blocked(self) -> tuple[int, Wanted]:
        """When the oldest that waits for something that is not here came, and what it waits for."""
        at, which, number = self.holding.oldest_blocked()
        row = self.segments.taken(self.holding.place[at : at + 1])
        if which == NOWHERE:
            name = processes_of(row, self.settings)[0].as_py()
        else:
            name = causes_of(row, self.settings).name[which].as_py()
        return int(self.holding.arrival[at]), _wanted(row, 0, name, number, self.settings)


class Wanted(NamedTuple):
    """A message that is waited for."""

    receiver: str
    domain: str | None
    source: str
    """or its id, where messages have parents instead of numbers"""
    number: int

    def key(self) -> bytes:
        """By which its stream is known."""
        return key_of(self.receiver, self.domain, self.source)

    def words(self, settings: Settings) -> str:
        name = printable(self.source) if settings.parent else f"{printable(self.source)}:{self.number}"
        return name if self.receiver == ALL else f"{name} at {printable(self.receiver)}"


def _wanted(table: pa.Table, row: int, name: str, number: int, settings: Settings) -> Wanted:
    domains = domains_of(table, settings)
    domain = None if domains is None else domains[row].as_py()
    return Wanted(receivers_of(table, settings)[row].as_py(), domain, name, number)


def _first_missed(rows: pa.Table, settings: Settings) -> Wanted | None:
    """The first cause that a message left without."""
    lists = in_one_piece(rows.column("missing"))
    if not len(lists.keys):
        return None
    row = next(at for at in range(len(lists)) if len(lists[at]))
    name, number = lists[row].as_py()[0]
    return _wanted(rows, row, name, number, settings)


def _place_of(aside: pa.Table, settings: Settings) -> str:
    """Which row is not a message, and why: the first one of these."""
    first = aside.slice(0, 1).to_pylist()[0]
    about = named_row(first, settings.source, *settings.process, settings.sequence, MALFORMED)
    return f"a row ({about or 'all of it null'}) {first['problem']}"


# ---------------------------------------------------------------- columns


class Taken(NamedTuple):
    """The rows of a table, sorted by what they are."""

    messages: Messages
    refused: dict[int, str]
    """of rows that are not messages, by their places, why"""
    named: Messages
    """of these, the ones whose number can be read"""
    heartbeats: int


def _taken(table: pa.Table | None, settings: Settings, first_place: int) -> Taken:
    """The messages of a table for the kernel, and what else is in it."""
    if table is None or not table.num_rows:
        none = pa.array([], pa.large_string())
        empty = np.empty(0, np.int64)
        marks = np.empty(0, np.uint64)
        nothing = Messages(none, none, empty, np.zeros(1, np.int64), none, empty, empty, marks)
        return Taken(nothing, {}, nothing, 0)
    receiver, name = receivers_of(table, settings), processes_of(table, settings)
    domain = domains_of(table, settings)
    problems: dict[int, str] = {}

    def refuse(rows: Array, problem: str) -> None:
        for row in np.flatnonzero(rows).tolist():
            problems.setdefault(row, problem)

    if FAULT in table.column_names:
        faults = in_one_piece(table.column(FAULT))
        for row in np.flatnonzero(faults.is_valid().to_numpy(zero_copy_only=False)).tolist():
            problems[row] = faults[row].as_py()
    nameless = receiver.is_null().to_numpy(zero_copy_only=False)
    refuse(nameless, f"has no {settings.by}")
    sourceless = table.column(settings.source).is_null().to_numpy()
    refuse(sourceless, f"has no {settings.source}")
    unreadable = nameless | sourceless
    if settings.version is not None and settings.version in table.column_names:
        version = in_one_piece(table.column(settings.version))
        odd = [each for each in version.unique().to_pylist() if str(each) not in ("1", "2", "None")]
        if odd:
            refuse(pc.is_in(version, pa.array(odd, version.type)).to_numpy(zero_copy_only=False), ODD_VERSION)
    if settings.parent is not None:
        number = np.ones(table.num_rows, np.int64)
    else:
        column = in_one_piece(table.column(NUMBER if NUMBER in table.column_names else settings.sequence))
        numberless = column.is_null().to_numpy(zero_copy_only=False)
        refuse(numberless, f"has no {settings.sequence} that is a number")
        number = column.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
        refuse(
            (number < 1) | (number > MOST_SEQUENCE),
            f"has a {settings.sequence} that is not between 1 and {MOST_SEQUENCE}",
        )
        unreadable |= (number < 1) | (number > MOST_SEQUENCE)
    causes = causes_of(table, settings)
    refuse(causes.bad, f"has {settings.causes or settings.parent} that cannot be read")
    if settings.most_bytes is not None and SIZE in table.column_names:
        size = in_one_piece(table.column(SIZE)).fill_null(0).to_numpy(zero_copy_only=False)
        refuse(
            size > settings.most_bytes,
            f"is larger than the {settings.most_bytes:,} bytes that the sink takes of a message",
        )
    marks = fingerprints(table, payload_columns(table.column_names))
    places = first_place + np.arange(table.num_rows)
    whole = Messages(receiver, name, number, causes.begin, causes.name, causes.number, places, marks, domain)
    beats = _heartbeats(table)
    bad = np.zeros(table.num_rows, np.bool_)
    bad[list(problems)] = True
    bad &= ~beats
    refused = {first_place + row: problem for row, problem in problems.items() if not beats[row]}
    named = bad & ~unreadable
    if not (bad | beats).any():
        return Taken(whole, {}, _kept(whole, causes, named), 0)
    return Taken(_kept(whole, causes, ~(bad | beats)), refused, _kept(whole, causes, named), int(beats.sum()))


def _heartbeats(table: pa.Table) -> Array:
    """Which rows are heartbeats, which are for a merge: they carry no message."""
    kind = in_one_piece(table.column(TYPE)) if TYPE in table.column_names else pa.nulls(table.num_rows)
    if not (pa.types.is_string(kind.type) or pa.types.is_large_string(kind.type)):
        return np.zeros(table.num_rows, np.bool_)
    found: Array = pc.equal(kind, HEARTBEAT).fill_null(False).to_numpy(zero_copy_only=False)
    return found


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
        messages.mark[keep],
        None if messages.domain is None else messages.domain.filter(pa.array(keep)),
    )


def receivers_of(table: pa.Table, settings: Settings) -> pa.Array:
    """The receivers of messages."""
    if settings.receiver is not None:
        return text_column(table.column(settings.receiver))
    nowhere = pa.array(np.zeros(table.num_rows, np.int8))
    return pa.DictionaryArray.from_arrays(nowhere, pa.array([ALL])).cast(pa.large_string())


class Identified(Protocol):
    """Settings that say which columns have the identity of a message's process."""

    @property
    def source(self) -> str: ...

    @property
    def process(self) -> tuple[str, ...]: ...


def processes_of(table: pa.Table, settings: Identified) -> pa.Array:
    """The identities under which the messages are numbered."""
    names = [name for name in settings.process if name in table.column_names]
    found = text_column(table.column(names.pop(0) if names else settings.source))
    for name in (*names, settings.source):
        if not found.null_count:
            break
        found = pc.coalesce(found, text_column(table.column(name)))
    return found


def domains_of(table: pa.Table, settings: Settings) -> pa.Array | None:
    """The domains within which the messages are numbered, if they have some."""
    if settings.domain is None:
        return None
    return text_column(table.column(settings.domain)).fill_null(ALL)


def causes_of(table: pa.Table, settings: Settings) -> Causes:
    if settings.parent is not None:
        return read_parents(in_one_piece(table.column(settings.parent)))
    return read_causes(in_one_piece(table.column(settings.causes)))


def _with_results(rows: Segments, outcome: Outcome, settings: Settings) -> pa.Table:
    table = rows.taken(outcome.place)
    if outcome.missing:
        missing: list[dict[str, int]] = [{} for _ in range(table.num_rows)]
        names, causes = processes_of(table, settings), causes_of(table, settings)
        for turn, which, number in outcome.missing:
            own = which == NOWHERE
            name = (names[turn] if own else causes.name[causes.begin[turn] + which]).as_py()
            missing[turn][name] = max(number, missing[turn].get(name, 0))
        found = pa.array([list(each.items()) for each in missing], _MISSING)
    else:
        none = np.zeros(table.num_rows + 1, np.int32)
        found = pa.MapArray.from_arrays(pa.array(none), pa.array([], pa.string()), pa.array([], pa.int64()))
    status = pa.DictionaryArray.from_arrays(pa.array(outcome.status.astype(np.int8)), pa.array(STATUSES))
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
    for lacking in (name for name in settings.columns if name not in table.column_names):
        table = table.append_column(lacking, pa.nulls(table.num_rows, pa.string()))
    names = settings.columns or table.column_names
    kept = table.select([name for name in names if not name.startswith(OWN) and name not in ADDED])
    for name, column in zip(ADDED, (receiver, *added), strict=True):
        kept = kept.append_column(name, column)
    return kept

"""The messages of some receivers: rows in, rows out, and in between what is held.

The kernel knows messages by their numbers and places; here their columns are read, and rows are found again.
The rows that are held are kept in segments, one per chunk of rows that came, by the owner of the bucket.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from causet.delivery import AHEAD
from causet.envelope import CUT as CUT_ATTRIBUTE
from causet.errors import BadInput, printable
from causet.frontier import parts_of
from causet.kernels.names import combined
from causet.kernels.streams.awaited import GROUP as CUT_GROUP
from causet.kernels.streams.awaited import name_of
from causet.kernels.streams.block import CUT
from causet.kernels.streams.holding import NOWHERE, Holding, Outcome
from causet.kernels.streams.keys import KEY, digests, key_of
from causet.kernels.streams.marks import Marks, Store
from causet.readers import ALL
from causet.spark.streams.beginnings.kept import LEFT_ROWS, OWN_ROWS, ROWS
from causet.spark.streams.messages.attributes import attributes_of, in_words, scope_in, without_scope
from causet.spark.streams.messages.links import causes_of, numbers_of, processes_of, receivers_of
from causet.spark.streams.messages.settings import ADDED, MALFORMED, Settings
from causet.spark.streams.messages.taken import SELFISH, Taken, taken
from causet.spark.streams.pack import OWN, from_blob
from causet.spark.streams.stability.contents import Contents
from causet.spark.streams.stability.told import Stream, streams_in, tell
from causet.spark.streams.state import Segments, named_row
from causet.status import (
    CONFLICTS,
    COPIES,
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
    UNREAD,
    WAIT,
)

COUNTS = (
    *(READ, COPIES, UNREAD, DELIVERED, FLAGGED, LATE, DIVERTED, REFUSED),
    *(CONFLICTS, DUPLICATES, HEARTBEATS, "caused"),
)
"""What is counted, see `books`; and of the messages that came, those that name a cause."""
FAR_BACK = -(2**62)
FORGOTTEN = "came too late: it is not known any longer whether it was delivered"
FAR = f"has a number more than {AHEAD:,} above the others of its source"
CONFLICT = "has the number of another message of its source, with another id or data"
LEFT = "came for a reader that does not read its groups any more"
FLAT = pa.map_(pa.string(), pa.int64())
"""What is missing: process → number."""
NESTED = pa.map_(pa.string(), FLAT)
"""The same where messages have groups: group → process → number."""


class Bucket:
    """The messages of some receivers: rows in, rows out, and in between what is held."""

    def __init__(self, settings: Settings, holding: Holding, segments: Segments, marks: Store) -> None:
        self.settings = settings
        self.holding = holding
        self.segments = segments
        self._marks = Marks(marks, holding.marks)
        self._counts = dict.fromkeys(COUNTS, 0)
        self._missed: Wanted | None = None
        self._contents = None if settings.stable is None else Contents(settings.stable, settings.readers)
        listed = {reader for reader, _ in settings.readers.listed}
        self._removed = {name for name in holding.receiver_name if listed and name not in listed}
        """readers that are not listed any more: they get nothing"""
        self._left: set[Stream] = set()
        self._reached = (holding.stream_key, holding.prefix)
        holding.give_up(settings.lost)
        self._check_readers()

    def _check_readers(self) -> None:
        """BadInput if others read now than before, and it is not known where those that are new begin."""
        if not self.settings.readers.listed:
            return
        key = digests([json.dumps(self.settings.readers.as_json(), sort_keys=True)])
        before, self.holding.readers = self.holding.readers, key
        if len(before) and before[0] != key[0] and not self.settings.begins:
            raise BadInput(
                "the readers are not those of this checkpoint: `causet deliver --begin now` can go on with "
                "others; a query of your own needs a new checkpoint and a new sink"
            )

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
        found = taken(table, settings, self.segments.begin(table))
        self._counts["caused"] += int((np.diff(found.messages.cause_begin) > 0).sum())
        overdue = FAR_BACK
        if last and settings.patience is not None:
            overdue = max(now - settings.patience, ended if ended is not None else overdue)
        yield from self._stepped(found, now, last, overdue)

    def _stepped(self, found: Taken, now: int, last: bool, overdue: int) -> Iterator[pa.Table]:
        settings, messages = self.settings, found.messages
        self._counts[HEARTBEATS] += found.heartbeats
        before = self.holding.place
        forget_before = now - settings.horizon if last else None
        self.holding.note(found.named, now, forget_before)
        outcome = self.holding.step(
            messages,
            self._marks,
            now,
            POLICIES.index(settings.policy if last else WAIT),
            overdue,
            forget_before,
            settings.parent is not None,
            self._contents,
            self._removed,
        )
        self._reached = outcome.reached
        if len(self.holding) > settings.most_held:
            blocked = self._blocked()[1].words(settings)
            raise BadInput(
                f"{len(self.holding):,} messages are held, and most_held = {settings.most_held:,}; the "
                f"oldest waits for {blocked}. Find out why that does not come, raise the limit, or start "
                "over with flag or divert after some patience"
            )
        self._counts[DUPLICATES] += outcome.duplicates
        problems = {
            **found.refused,
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
            rows = self._with_results(outcome)
            yield rows
        self.segments.keep(before, self.holding.place)

    def begin(self, number: int, now: int) -> Iterator[pa.Table]:
        """Let the beginning count that was written down for bucket `number`, if it does not count already;
        and give out what leaves."""
        beginning, holding = self.settings.beginning, self.holding
        if beginning is None or beginning.number <= holding.begun.max(initial=0):
            return
        now = holding.not_before(now)
        before, removed = holding.place, beginning.places(number)
        holding.take_out(removed)
        self.segments.keep(before, holding.place)
        for channels in beginning.channels(number):
            holding.add_channels(channels)
        for owner, counted in beginning.counted(number):
            holding.count(owner, counted)
        for table in beginning.files(number, OWN_ROWS):
            holding.count_again(taken(table, self.settings, 0).messages)
        self.was_read(0, -len(removed))
        for table in beginning.files(number, LEFT_ROWS):
            self.was_read(0, table.num_rows)
            self._counts[DIVERTED] += table.num_rows
            first = self.segments.begin(table)
            yield _with_problems(
                self.segments, dict.fromkeys(range(first, first + table.num_rows), LEFT), self.settings
            )
        for kind in (OWN_ROWS, ROWS):
            for table in beginning.files(number, kind):
                yield from self._joined(table, now)
        holding.begun = np.array([beginning.number])

    def _joined(self, table: pa.Table, now: int) -> Iterator[pa.Table]:
        """Take in messages that came before; not what is known of them."""
        found = taken(table, self.settings, self.segments.begin(table))
        messages = self.holding.not_known(found.messages)
        count = len(messages.number) if messages.part is None else int((~messages.part).sum())
        self.was_read(0, count + len(found.refused))
        yield from self._stepped(found._replace(messages=messages), now, False, FAR_BACK)

    def _with_results(self, outcome: Outcome) -> pa.Table:
        """The rows that leave, with what became of them."""
        table = self.segments.taken(outcome.place)
        if self.settings.query:
            self._left.update(streams_in(table, self.settings))
        missing: list[dict[str, Any]] = [{} for _ in range(table.num_rows)]
        links = Links(table, self.settings) if outcome.missing else None
        for turn, stream, number in outcome.missing:
            assert links is not None
            wanted = links.wanted(turn, stream, number)
            self._missed = self._missed or wanted
            mine = missing[turn]
            if self.settings.grouped:
                mine = mine.setdefault(wanted.channel, {})
            mine[wanted.message] = max(wanted.number, mine.get(wanted.message, 0))
        status = pa.DictionaryArray.from_arrays(pa.array(outcome.status.astype(np.int8)), pa.array(STATUSES))
        index = pa.array(outcome.index, pa.int64(), mask=outcome.index == NOWHERE)
        return _finished(
            table,
            self.settings,
            index,
            status.cast(pa.string()),
            pa.array(outcome.waited / 1000.0),
            _as_maps(missing, self.settings),
            pa.nulls(table.num_rows, pa.string()),
        )

    def was_read(self, rows: int, copies: int = 0, unread: int = 0) -> None:
        """Count rows that were read, for this bucket or another one; how many more were made of them, for
        further readers; and how many have no reader."""
        self._counts[READ] += rows
        self._counts[COPIES] += copies
        self._counts[UNREAD] += unread

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

    def tell(self, bucket: int) -> None:
        """Tell the place of cuts how far the readers are."""
        if self.settings.query and self.settings.stable is not None:
            tell(self.settings.stable, self.settings.query, bucket, sorted(self._left), self._reached)

    def _blocked(self) -> tuple[int, Wanted]:
        """When the oldest that waits for something that is not here came, and what it waits for."""
        holding = self.holding
        at, stream, number = holding.oldest_blocked()
        since = int(holding.arrival[at])
        if holding.part[at] == CUT and self._contents is not None:
            reader = holding.receiver_name[int(holding.receiver[at])]
            cut = -int(holding.place[at])
            return since, Wanted(reader, *self._contents.named(reader, cut, stream), number)
        row = self.segments.taken(holding.place[at : at + 1])
        return since, Links(row, self.settings).wanted(0, stream, number)


class Wanted(NamedTuple):
    """A message that is waited for."""

    receiver: str
    group: str
    source: str
    """its process; or its id, where messages have parents instead of numbers"""
    number: int

    def key(self) -> bytes:
        """By which its stream is known."""
        return key_of(self.receiver, self.group, self.source)

    @property
    def is_cut(self) -> bool:
        return self.group == CUT_GROUP

    @property
    def channel(self) -> str:
        """As `missing` has it: the channel; none for a cut."""
        return "" if self.is_cut else without_scope(self.group)

    @property
    def message(self) -> str:
        """As `missing` has it: its process, or that it is a cut."""
        return CUT_ATTRIBUTE if self.is_cut else self.source

    @property
    def name(self) -> str:
        """Its name within its group; or that of a cut."""
        return f"cut {self.number}" if self.is_cut else f"{self.source}:{self.number}"

    def place(self, settings: Settings) -> dict[str, Any]:
        """Its group, if messages have groups, and its priority and scope, if it has them."""
        if not settings.grouped or settings.parent is not None or self.is_cut:
            return {}
        group, priority = parts_of(without_scope(self.group))
        scope = scope_in(self.group)
        more = {"priority": priority} if priority else {}
        return {"group": group, **more, **({} if scope is None else {"scope": scope})}

    def in_words(self, settings: Settings) -> str:
        """Its name, with its group; not its reader."""
        name = printable(self.source if settings.parent else self.name)
        grouped = settings.grouped and self.group != ALL and not self.is_cut
        return f"{name} in {printable(in_words(self.group))}" if grouped else name

    def words(self, settings: Settings) -> str:
        name = self.in_words(settings)
        return name if self.receiver == ALL else f"{name} at {printable(self.receiver)}"


class Links:
    """What the streams are called that rows name: their own, and those of their causes."""

    def __init__(self, table: pa.Table, settings: Settings) -> None:
        self._receiver = receivers_of(table, settings)
        self._process = processes_of(table, settings)
        self._numbers = numbers_of(table, settings)
        self._causes = causes_of(table, settings)
        self._attributes = attributes_of(table, settings)

    def wanted(self, row: int, stream: bytes, number: int) -> Wanted:
        """The message of a stream that a row waits for; or the row's own."""
        receiver = self._receiver[row].as_py()
        own = self._process[row].as_py()
        mine = range(self._numbers.begin[row], self._numbers.begin[row + 1])
        causes = range(self._causes.begin[row], self._causes.begin[row + 1])
        groups = [self._own_group(at) for at in mine]
        named = [(group, own) for group in groups]
        for at in causes:
            group = self._causes.group
            where = groups[0] if group is None and groups else ALL if group is None else group[at].as_py()
            named.append((where, self._causes.name[at].as_py()))
        cut = 0 if self._attributes.cut is None else int(self._attributes.cut[row])
        if cut:
            priority = 0 if self._attributes.priority is None else int(self._attributes.priority[row])
            if stream == key_of(receiver, CUT_GROUP, name_of(cut, priority)):
                return Wanted(receiver, CUT_GROUP, "", cut)
        keys = combined(
            combined(digests([receiver] * len(named)), digests([group for group, _ in named])),
            digests([name for _, name in named]),
        ).tobytes()
        at = [keys[at : at + KEY] for at in range(0, len(keys), KEY)].index(stream)
        return Wanted(receiver, *named[at], number)

    def _own_group(self, at: int) -> str:
        group = self._numbers.group
        return ALL if group is None else str(group[at].as_py())


def _place_of(aside: pa.Table, settings: Settings) -> str:
    """Which row is not a message, and why: the first one of these."""
    first = aside.slice(0, 1).to_pylist()[0]
    about = named_row(first, settings.source, *settings.process, settings.sequence, MALFORMED)
    return f"a row ({about or 'all of it null'}) {first['problem']}"


# ---------------------------------------------------------------- columns


def _as_maps(missing: list[dict[str, Any]], settings: Settings) -> pa.Array:
    if not any(missing):
        kind = NESTED if settings.grouped else FLAT
        begin = pa.array(np.zeros(len(missing) + 1, np.int32))
        return pa.MapArray.from_arrays(begin, pa.array([], pa.string()), pa.array([], kind.item_type))
    if not settings.grouped:
        return pa.array([list(each.items()) for each in missing], FLAT)
    return pa.array([[(g, list(m.items())) for g, m in each.items()] for each in missing], NESTED)


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
        _as_maps([{}] * count, settings),
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

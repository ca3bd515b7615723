"""The skeleton: an execution as numbers, a few bytes per event, made by all workers.

Every event becomes its number (see `census`), every reference a link (effect, cause). Where references are
`process#seq` of ids that nobody changed, each worker takes them apart by itself. Ids and messages that are
any text become keyed hashes; definitions and references with the same hash meet in one of many buckets, where
the link is made. What cannot be resolved is counted and named, never dropped in silence.

The answer is a DataFrame of blobs (`Piece`s and targets) and notes, for one task, or as many as there are
groups of columns, to run a kernel on.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from causet.kernels.logs.keys import find_keys
from causet.kernels.logs.pages import ABSENT, DELIVERY, PLAIN, SENT, Piece, by_page
from causet.kernels.names import hash_texts, name_table, number_names, parse_references, text_buffers
from causet.spark.skeleton.blobs import pack, unpack
from causet.spark.skeleton.census import LOCAL, NUMBER, Census, kind_number, with_number
from causet.spark.skeleton.census import field as column
from causet.spark.skeleton.targets import Targets

Array = np.ndarray[Any, Any]
Batches = Iterator[pa.RecordBatch]

PIECE, KEYS, TARGETS, NOTE = 0, 1, 2, 3
"""What a blob holds: events and links; definitions and references to be matched; whom messages are for;
faults as JSON."""
SMALL = 1 << 17
"""Events of an execution that one task packs, matches and looks at."""
BLOB_ROWS = 1 << 18
"""Events that go into one blob."""
BUCKET_KEYS = 500_000
"""Definitions and references that meet in one bucket, about."""
EXAMPLES = 10
"""Faults of each kind that are named by every task; the others are counted."""
SCHEMA = "what tinyint, bucket int, blob binary"

LOST_PARENT, LOST_DELIVERY, LOST_RECEPTION = "unknown parent", "unsent delivery", "unsent reception"
REPEATED_EVENT, REPEATED_ID, SENT_TWICE, CYCLE = "repeated event", "repeated id", "sent twice", "cycle"
"""What notes are about."""
BLOCKS = "blocks"
"""The largest block."""
MESSAGES, DELIVERIES, UNSENT_AGAIN = "messages", "deliveries", "unsent delivered again"
"""Further counts, where deliveries are asked for: application messages sent; their deliveries, those without
a send included; events that deliver again what nobody sent."""

KEY_TYPES: list[type] = [np.uint64, np.uint64, np.int64, np.int8]
"""A definition or a reference: two halves of its key, the event, and what it is."""
DEFINES_ID, DEFINES_MESSAGE, NAMES_PARENT, NAMES_MESSAGE, NAMES_DELIVERED = 0, 1, 2, 3, 4
CONTROL = 8
"""Added to what it is where the event is control."""


def piece_types(time_type: type) -> list[type]:
    return [np.int64, time_type, np.int64, np.int64, np.int8]


@dataclass
class Notes:
    """Faults of the log, counted, the first few by name."""

    counts: dict[str, int] = field(default_factory=dict)
    examples: dict[str, list[list[Any]]] = field(default_factory=dict)

    def add(self, kind: str, count: int, examples: Iterable[list[Any]]) -> None:
        if count:
            self.counts[kind] = self.counts.get(kind, 0) + count
            merged = sorted([*self.examples.get(kind, []), *examples])
            self.examples[kind] = merged[:EXAMPLES]

    def merge(self, text: str | bytes) -> None:
        other = json.loads(text)
        for kind, count in other["counts"].items():
            self.add(kind, count, other["examples"].get(kind, []))

    def to_json(self) -> str:
        return json.dumps({"counts": self.counts, "examples": self.examples})


Task = Callable[[Batches], Batches]


def is_small(census: Census) -> bool:
    """Whether one task should do everything: sooner done than several are started."""
    return census.events <= SMALL


@dataclass(frozen=True)
class Skeleton:
    """The skeleton of an execution for one task after the other, in a `with` that ends when all are done."""

    numbered: DataFrame
    census: Census
    deliveries: bool = False

    def __enter__(self) -> Skeleton:
        return self

    def __exit__(self, *_: object) -> None:
        if "_blobs" in vars(self):
            self._blobs.unpersist()

    @cached_property
    def _blobs(self) -> DataFrame:
        return skeleton(self.numbered, self.census, deliveries=self.deliveries).persist()

    def given_to(self, task: Task, schema: str) -> DataFrame:
        """What a task makes of the whole skeleton."""
        return self.shared_by(lambda _: task, 1, schema)

    def shared_by(self, make: Callable[[int], Task], parts: int, schema: str) -> DataFrame:
        """What tasks make of the whole skeleton that share `parts` of the work, as many as can run at the
        same time; `make` is told how many they are, and their number is in the column `bucket`."""
        if is_small(self.census):
            return with_skeleton(self.numbered, self.census, make(1), schema, self.deliveries)
        tasks = 1 if parts == 1 else min(parts, slots(self.numbered.sparkSession))
        return for_groups(self._blobs, tasks).mapInArrow(make(tasks), schema)


def slots(spark: SparkSession) -> int:
    """How many tasks Spark thinks it can run at the same time, asked in a way that every kind of session
    answers."""
    return spark.range(1 << 20).select(F.spark_partition_id()).distinct().count()


def with_skeleton(
    numbered: DataFrame,
    census: Census,
    task: Task,
    schema: str,
    deliveries: bool = False,
) -> DataFrame:
    """What a task makes of a skeleton that no other task wants."""
    if is_small(census):
        rows, steps = _prepared(numbered, census, deliveries)
        return rows.coalesce(1).mapInArrow(OneAfterTheOther((*steps, task)), schema)
    return for_groups(skeleton(numbered, census, deliveries=deliveries), 1).mapInArrow(task, schema)


def skeleton(numbered: DataFrame, census: Census, *, deliveries: bool = False) -> DataFrame:
    """The blobs of an execution. With `deliveries`, links know which are deliveries, sends how many there
    are, and whom every message is for."""
    rows, (packer, *matcher) = _prepared(numbered, census, deliveries)
    packed = rows.mapInArrow(packer, SCHEMA)
    if not matcher:
        return packed
    return packed.repartition(packer.buckets, "bucket").mapInArrow(matcher[0], SCHEMA)


def _prepared(
    numbered: DataFrame, census: Census, deliveries: bool
) -> tuple[DataFrame, tuple[Packer] | tuple[Packer, Matcher]]:
    """The rows that are packed, and the tasks that make the skeleton of them."""
    buckets = max(1, 2 * census.events // BUCKET_KEYS) if census.messages or census.own_ids else 0

    wanted = [
        F.col(NUMBER).alias("number"),
        column(numbered, "time").cast("double" if census.floats else "long").alias("time"),
    ]
    if census.own_ids:
        default = F.concat(F.col("process"), F.lit("#"), F.col("seq"))
        wanted.append(F.coalesce(column(numbered, "id"), default).alias("id"))
    if census.parents:
        wanted.append(_list(numbered, "parents"))
    if census.messages:
        wanted.append(kind_number(numbered).alias("kind"))
        wanted.append(column(numbered, "message").alias("message"))
        wanted.append(F.coalesce(column(numbered, "control"), F.lit(False)).alias("control"))
    if deliveries:
        wanted.append(_list(numbered, "to"))
    selected = with_number(numbered, census).select(*wanted)
    packer = Packer(
        names=pa.array(census.processes, pa.string()),
        first=census.first,
        floats=census.floats,
        own_ids=census.own_ids,
        parents=census.parents,
        messages=census.messages,
        deliveries=deliveries,
        buckets=buckets,
        key=secrets.randbits(63),
    )
    if not buckets:
        return selected, (packer,)
    return selected, (packer, Matcher(deliveries, census.first))


@dataclass(frozen=True)
class OneAfterTheOther:
    """Several steps as one task."""

    steps: tuple[Task, ...]

    def __call__(self, batches: Batches) -> Batches:
        for step in self.steps:
            batches = step(batches)
        return batches


def for_groups(blobs: DataFrame, groups: int) -> DataFrame:
    """The whole skeleton for every group, each in a task of its own."""
    if groups == 1:
        return blobs.withColumn("bucket", F.lit(0)).repartition(1)
    everybody = F.explode(F.sequence(F.lit(0), F.lit(groups - 1)))
    return blobs.withColumn("bucket", everybody).repartitionById(groups, "bucket")


def _list(numbered: DataFrame, name: str) -> Column:
    """A list of texts. No list becomes an empty one: Arrow's writer takes quadratic time for nulls."""
    return F.coalesce(column(numbered, name), F.array().cast("array<string>")).alias(name)


def blob_batch(rows: Iterable[tuple[int, int, bytes]]) -> pa.RecordBatch:
    what, bucket, blob = zip(*rows, strict=True)
    return pa.RecordBatch.from_arrays(
        [pa.array(what, pa.int8()), pa.array(bucket, pa.int32()), pa.array(blob, pa.binary())],
        names=["what", "bucket", "blob"],
    )


@dataclass(frozen=True)
class Packer:
    """Turns rows into blobs, each worker its own rows."""

    names: Any
    first: Array
    floats: bool
    own_ids: bool
    parents: bool
    messages: bool
    deliveries: bool
    buckets: int
    key: int

    def __call__(self, batches: Batches) -> Batches:
        name_offsets, name_data = text_buffers(self.names)
        table = name_table(name_offsets, name_data, self.key)
        number = _Numberer(name_offsets, name_data, table, self.key)
        notes = Notes()
        held: list[pa.RecordBatch] = []
        rows = 0
        for batch in batches:
            held.append(batch)
            rows += batch.num_rows
            if rows >= BLOB_ROWS:
                yield from self._blobs(held, number, notes)
                held, rows = [], 0
        if rows:
            yield from self._blobs(held, number, notes)
        if notes.counts:
            yield blob_batch([(NOTE, 0, notes.to_json().encode())])

    def _blobs(self, held: list[pa.RecordBatch], number: _Numberer, notes: Notes) -> Batches:
        rows = pa.Table.from_batches(held).combine_chunks()

        def values(name: str) -> Any:
            return rows.column(name).chunk(0)

        events = values("number").to_numpy()
        effects = causes = np.empty(0, np.int64)
        keys: list[tuple[Any, Array, Array]] = []
        if self.own_ids:
            keys.append((values("id"), events, np.full(len(events), DEFINES_ID, np.int8)))
        if self.parents:
            parents = values("parents")
            owners = np.repeat(events, list_lengths(parents))
            texts = parents.flatten().fill_null("")
            if self.own_ids:
                keys.append((texts, owners, np.full(len(owners), NAMES_PARENT, np.int8)))
            elif len(texts):
                effects, causes = self._numeric(number, texts, owners, notes)
        if self.messages:
            kinds = values("kind").to_numpy()
            carries = np.flatnonzero(kinds != LOCAL)
            what = np.array([0, DEFINES_MESSAGE, NAMES_MESSAGE, NAMES_DELIVERED], np.int8)[kinds[carries]]
            what += CONTROL * values("control").to_numpy(zero_copy_only=False)[carries].astype(np.int8)
            keys.append((values("message").take(pa.array(carries)), events[carries], what))
        order, by_effect = by_page(events), by_page(effects)
        piece = Piece(
            events[order],
            self._times(values("time"))[order],
            effects[by_effect],
            causes[by_effect],
            np.full(len(effects), PLAIN, np.int8),
        )
        spread = int(events[0])  # any number: pieces need no meeting, only workers
        yield blob_batch([(PIECE, spread % max(self.buckets, 1), pack(piece))])
        if self.deliveries:
            yield blob_batch([self._targets(values("to"), events, number)])
        for key_texts, of, what in keys:
            if len(key_texts):
                yield self._keyed(key_texts, of, what)

    def _times(self, times: Any) -> Array:
        """Times as numbers; no time is before all times."""
        if self.floats:
            found = times.fill_null(-np.inf).to_numpy(zero_copy_only=False)
            return np.where(np.isnan(found), -np.inf, found)
        filled = times.fill_null(np.iinfo(np.int64).min) if times.null_count else times
        return np.asarray(filled.to_numpy(zero_copy_only=False), np.int64)

    def _numeric(self, number: _Numberer, texts: Any, owners: Array, notes: Notes) -> tuple[Array, Array]:
        """Links from references of the form process#seq."""
        process, seq = number.references(texts)
        count = np.diff(self.first)
        known = (process != ABSENT) & (seq <= count[process])
        lost = np.flatnonzero(~known)
        notes.add(
            LOST_PARENT,
            len(lost),
            ([int(owners[i]), texts[int(i)].as_py()] for i in lost[:EXAMPLES]),
        )
        return owners[known], (self.first[process] + seq - 1)[known]

    def _targets(self, to: Any, events: Array, number: _Numberer) -> tuple[int, int, bytes]:
        """Whom messages are for. A target without events has no number of its own; its name goes along."""
        lengths = list_lengths(to)
        sends = np.flatnonzero(lengths)
        order = sends[np.argsort(events[sends], kind="stable")]
        flat = to.flatten().fill_null("")
        targets = number.of(flat)
        begin = np.cumsum(lengths) - lengths
        strangers: dict[str, int] = {}
        for i in np.flatnonzero(targets == ABSENT).tolist():
            name = flat[i].as_py()
            targets[i] = -2 - strangers.setdefault(name, len(strangers))
        lengths, begin = lengths[order], begin[order]
        ends = np.cumsum(lengths)
        taken = np.repeat(begin - (ends - lengths), lengths) + np.arange(int(lengths.sum()))
        names = np.frombuffer(json.dumps(list(strangers)).encode(), np.uint8)
        blob = pack([events[order], ends, targets[taken], names])
        return TARGETS, int(events[0]) % max(self.buckets, 1), blob

    def _keyed(self, texts: Any, events: Array, what: Array) -> pa.RecordBatch:
        """Definitions and references, each in the bucket of its key; with references goes their text's hash
        only: whoever cannot be resolved is named by its event."""
        low, high = np.empty(len(texts), np.uint64), np.empty(len(texts), np.uint64)
        offsets, data = text_buffers(texts)
        # Ids and messages are different worlds, in which the same text means different things.
        salt = 0 if what[0] in (DEFINES_ID, NAMES_PARENT) else 0x5851F42D4C957F2D
        hash_texts(offsets, data, self.key ^ salt, low, high)
        bucket = ((high >> np.uint64(32)) % np.uint64(self.buckets)).astype(np.int32)
        order = np.argsort(bucket, kind="stable")
        cuts = np.flatnonzero(np.diff(bucket[order], prepend=-1))
        ends = [*cuts[1:].tolist(), len(order)]
        rows = []
        for begin, end in zip(cuts.tolist(), ends, strict=True):
            some = order[begin:end]
            blob = pack([low[some], high[some], events[some], what[some]])
            rows.append((KEYS, int(bucket[some[0]]), blob))
        return blob_batch(rows)


@dataclass(frozen=True)
class _Numberer:
    """Numbers of processes by their names."""

    offsets: Array
    data: Array
    table: Array
    key: int

    def of(self, names: Any) -> Array:
        offsets, data = text_buffers(names)
        found = np.empty(len(names), np.int32)
        number_names(offsets, data, self.offsets, self.data, self.table, self.key, found)
        return found

    def references(self, texts: Any) -> tuple[Array, Array]:
        offsets, data = text_buffers(texts)
        process, seq = np.empty(len(texts), np.int32), np.zeros(len(texts), np.int64)
        parse_references(offsets, data, self.offsets, self.data, self.table, self.key, process, seq)
        return process, seq


def list_lengths(lists: Any) -> Array:
    """How many items each list of a column has; none where there is no list."""
    return np.asarray(lists.value_lengths().fill_null(0).to_numpy(zero_copy_only=False), np.int64)


@dataclass(frozen=True)
class Matcher:
    """Makes links of definitions and references that met in a bucket; hands everything else on."""

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
        """Messages that nobody sent, and that a process delivered more than once."""
        process = np.searchsorted(self.first, events, side="right") - 1
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
            twice = again[what[defines[again]] == of]
            pairs = np.sort(np.stack([events[defines[same[twice]]], events[defines[twice]]], axis=1))
            notes.add(kind, len(twice), pairs[:EXAMPLES].tolist())
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
        # executor died, must give the same answer to the byte, or Spark gives up the job.
        order = np.lexsort((kinds, cause_events, effects))
        nothing = np.empty(0, np.int64)
        return pack(Piece(nothing, nothing, effects[order], cause_events[order], kinds[order]))


def read_pieces(
    batches: Batches, time_type: type, notes: Notes, targets: Targets | None = None
) -> Iterator[Piece]:
    """The pieces among the blobs; notes and targets are gathered."""
    for batch in batches:
        for what, blob in zip(batch.column(0), batch.column(2), strict=True):
            if what.as_py() == PIECE:
                yield Piece(*unpack(blob.as_buffer(), piece_types(time_type)))
            elif what.as_py() == NOTE:
                notes.merge(blob.as_buffer().to_pybytes())
            elif what.as_py() == TARGETS and targets is not None:
                targets.add(blob.as_buffer())

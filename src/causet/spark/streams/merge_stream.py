"""The merge of streams: released by the sources' own progress, in one order, by all workers.

    rows → cut by time → [ held until every source is past them: state ] → parts in the order of time → rows

A message is released when the smallest, over live sources, of their largest r exceeds its r + c + δ + ε: then
nothing can come any more that belongs before it. These facts only grow, and every bucket is told all of them
with every batch; so all buckets release up to the same bound without any exchange.

Buckets hold slices of time, in turn. What a batch releases is a stretch of slices between the last bound and
the new one, which is laid out over the partitions in the order of time: partition after partition, and batch
after batch, the rows stand in the order of the merge.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql import types as T

from causet.errors import BadInput, printable
from causet.kernels.streams.fingerprints import fingerprints, payload_columns
from causet.kernels.streams.sorting import ascending
from causet.spark.streams.merge_rows import (
    ALL,
    CODE,
    DOMAIN,
    FAULTY,
    FOUND,
    IS_BEAT,
    POSITION,
    PROBLEM,
    STATUS,
    TOO_LARGE,
    TYPE,
    Extra,
    Facts,
    Times,
    faults,
    problem_with,
    problems,
)
from causet.spark.streams.pack import (
    FAULT,
    OWN,
    SIZE,
    Batches,
    Blobs,
    from_blob,
    in_one_piece,
    in_workers,
    stretches,
    text_column,
    to_blob,
    together,
)
from causet.spark.streams.parquet import ParquetFiles, is_direct
from causet.spark.streams.state import Holder, Segments, as_blobs, use_rocks
from causet.stamp import HEARTBEAT
from causet.status import CONFLICTS, DELIVERED, DIVERTED, DUPLICATES, HEARTBEATS, LATE, READ, REFUSED

Array = np.ndarray[Any, Any]

SLICE = 100
"""Width of a slice of time, in ms."""
PACKED = f"bucket int, lowest long, progress string, {READ} long, {HEARTBEATS} long, rows binary"
"""A blob of messages for one bucket; or, for every bucket, what a worker has seen of the sources, and for the
first one also how many rows it was given, and how many of them were heartbeats."""
COUNTS = (READ, DELIVERED, LATE, DIVERTED, REFUSED, CONFLICTS, DUPLICATES, HEARTBEATS)
"""What is counted; `diverted` are all that leave so but for conflicts, and `refused` those of them that are
not messages."""
OUT = "part int, slice long, rows binary, held long, oldest long, blocked string, bound long, " + ", ".join(
    f"{name} long" for name in COUNTS
)
OBSERVED = "causet"
NEVER = -(2**62)
FINE = -2
"""The code of a message, where a null cannot be."""
_NOTHING = dict.fromkeys(("held", "oldest", "blocked", "bound", *COUNTS))


def _nothing() -> Array:
    return np.empty(0, np.int64)


def _no_keys() -> dict[str, Array]:
    return {key: _nothing() for key in KEPT}


@dataclass(frozen=True)
class MergeSettings:
    times: Times
    epsilon: int
    delta: int
    sources: tuple[str, ...]
    exclude: tuple[str, ...]
    horizon: int
    buckets: int
    parts: int
    """partitions over which a batch is laid out, in the order of time"""
    most_bytes: int | None = None
    """the largest message that the sink takes, if it has a limit"""
    strict: bool = False
    """whether a row that would be diverted ends the query instead"""

    @property
    def fixed(self) -> str:
        return json.dumps({"buckets": self.buckets, "slice": SLICE})


def merge_stream(
    stamped: DataFrame,
    names: list[str],
    settings: MergeSettings,
    files: ParquetFiles | None = None,
    wakes: DataFrame | None = None,
) -> Blobs:
    """The operator between its packers. From files that have the numbers as such, without Spark's rows."""
    use_rocks(stamped.sparkSession)
    pack = PackByTime(settings)
    if files is not None and is_direct(files) and settings.times == FOUND:
        packed = files.through(Judge(settings), pack, PACKED)
    else:
        now = F.unix_millis(F.current_timestamp())
        extra = Extra.of_rows(stamped, settings.most_bytes)
        judged = stamped.withColumn(CODE, problem_with(settings.times, settings.epsilon, now, extra))
        packed = in_workers(judged, pack, PACKED)
    if wakes is not None:
        packed = packed.unionAll(wakes.mapInArrow(Wake(settings.buckets), PACKED))
    found = packed.groupBy("bucket").transformWithState(Merger(settings), OUT, "append", "none")
    # Reports go through the shuffle too: what is observed before it is counted again if its stage is retried.
    found = found.repartitionById(settings.parts, "part").observe(
        OBSERVED,
        F.sum("held").alias("held"),
        F.min("oldest").alias("oldest"),
        F.min_by("blocked", "oldest").alias("blocked"),
        F.max("bound").cast("string").alias("bound"),
        *(F.sum(name).alias(name) for name in COUNTS),
    )
    kept = [stamped.schema[name] for name in names if not name.startswith(OWN)]
    schema = T.StructType(
        [*kept, T.StructField(STATUS, T.StringType()), T.StructField(PROBLEM, T.StringType())]
    )
    parts = found.where(F.col("rows").isNotNull()).select("slice", "rows")
    return Blobs(parts, UnpackInOrder(), schema)


@dataclass(frozen=True)
class Wake:
    """Lets every bucket look at what it holds: a source may have been excluded."""

    buckets: int

    def __call__(self, batches: Batches) -> Batches:
        if sum(batch.num_rows for batch in batches):
            nothing = dict.fromkeys((READ, HEARTBEATS), [0] * self.buckets)
            yield _packed(list(range(self.buckets)), progress=["{}"] * self.buckets, **nothing)


@dataclass(frozen=True)
class Judge:
    """Gives each row its code: `problem_with`, for rows that Spark has not seen."""

    settings: MergeSettings

    def __call__(self, rows: pa.RecordBatch, now: int) -> pa.RecordBatch:
        texts = [each.name for each in rows.schema if _is_text(each.type)]
        extra = Extra.of(rows.schema.names, texts, self.settings.most_bytes)
        columns = [rows.column(name) for name in self.settings.times]
        missing = [column.is_null().to_numpy(zero_copy_only=False) for column in columns]
        rc, r, sequence = (column.fill_null(0).to_numpy(zero_copy_only=False) for column in columns)
        nothing = np.zeros(rows.num_rows, np.bool_)
        beat = _numpy(pc.equal(rows.column(TYPE), HEARTBEAT).fill_null(False)) if extra.beats else nothing
        facts = Facts(
            faulty=_numpy(rows.column(FAULT).is_valid()) if extra.fault else nothing,
            nameless=_numpy(rows.column("source").is_null()),
            timeless=missing[0] | missing[1],
            unnumbered=missing[2],
            rc=rc,
            r=r,
            sequence=sequence,
            beat=beat,
            large=nothing
            if extra.most_bytes is None
            else _numpy(pc.greater(rows.column(SIZE), extra.most_bytes).fill_null(False)),
        )
        code = np.where(beat, IS_BEAT, FINE).astype(np.int8)
        for number, fault in reversed(list(enumerate(faults(facts, self.settings.epsilon, now)))):
            code[fault] = number
        return rows.append_column(CODE, pa.array(code, mask=code == FINE))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _numpy(column: Any) -> Array:
    found: Array = column.to_numpy(zero_copy_only=False)
    return found


def _codes(table: pa.Table) -> Array:
    """The code of each row, FINE for a message."""
    return _numpy(in_one_piece(table.column(CODE)).fill_null(FINE))


@dataclass(frozen=True)
class PackByTime:
    """Cuts messages by their slice of time; and tells all buckets how far the sources are."""

    settings: MergeSettings

    def __call__(self, batches: Batches) -> Batches:
        seen = Seen()
        for some in together(batches):
            yield self._cut(some, seen)
        if seen.read:
            yield seen.packed(self.settings.buckets)

    def _cut(self, held: list[pa.RecordBatch], seen: Seen) -> pa.RecordBatch:
        seen.read += sum(batch.num_rows for batch in held)
        table = pa.Table.from_batches(held)
        codes = _codes(table)
        beats, messages = codes == IS_BEAT, codes == FINE
        seen.heartbeats += int(beats.sum())
        rc = in_one_piece(table.column(self.settings.times.rc)).fill_null(0).to_numpy(zero_copy_only=False)
        fine = table.select(["source", self.settings.times.r])
        # A message that is only too large has been sent: its source is as far as it says.
        stamped = messages | beats | (codes == problems(self.settings.epsilon).index(TOO_LARGE))
        if not stamped.all():
            fine = fine.filter(pa.array(stamped))
        sources = text_column(fine.column("source")).dictionary_encode()
        r = in_one_piece(fine.column(self.settings.times.r)).to_numpy(zero_copy_only=False)
        largest = np.full(len(sources.dictionary), NEVER)
        np.maximum.at(largest, sources.indices.to_numpy(zero_copy_only=False), r)
        for name, value in zip(sources.dictionary.to_pylist(), largest.tolist(), strict=True):
            seen.progress[name] = max(value, seen.progress.get(name, NEVER))
        if messages.any():
            least = int(rc[messages].min())
            seen.lowest = least if seen.lowest is None else min(seen.lowest, least)
        bucket = np.where(messages, rc // SLICE % self.settings.buckets, 0).astype(np.int64)
        order = np.flatnonzero(~beats)
        order = order[np.argsort(bucket[order], kind="stable")]
        cuts = stretches(bucket[order])
        taken = table.take(pa.array(order))
        blobs = [to_blob(taken.slice(begin, end - begin)) for begin, end in cuts]
        return _packed([int(bucket[order[begin]]) for begin, _ in cuts], rows=blobs)


@dataclass
class Seen:
    """What a worker has seen of its rows."""

    read: int = 0
    heartbeats: int = 0
    progress: dict[str, int] = field(default_factory=dict)
    """of sources, the largest r"""
    lowest: int | None = None
    """of messages, the smallest r + c"""

    def packed(self, buckets: int) -> pa.RecordBatch:
        """For all buckets; what is counted for one of them."""
        nothing = [0] * (buckets - 1)
        return _packed(
            list(range(buckets)),
            lowest=[self.lowest] * buckets,
            progress=[json.dumps(self.progress)] * buckets,
            read=[self.read, *nothing],
            heartbeats=[self.heartbeats, *nothing],
        )


def _packed(buckets: list[int], **columns: list[Any]) -> pa.RecordBatch:
    """Rows of PACKED; a column that is not given is null."""
    kinds = {
        "lowest": pa.int64(),
        "progress": pa.string(),
        READ: pa.int64(),
        HEARTBEATS: pa.int64(),
        "rows": pa.binary(),
    }
    nothing = [None] * len(buckets)
    return pa.RecordBatch.from_arrays(
        [
            pa.array(buckets, pa.int32()),
            *(pa.array(columns.get(name, nothing), kind) for name, kind in kinds.items()),
        ],
        names=["bucket", *kinds],
    )


@dataclass(frozen=True)
class UnpackInOrder:
    """Makes rows of blobs, slice by slice."""

    def __call__(self, batches: Batches) -> Batches:
        blobs: list[tuple[int, int, Any]] = []
        for batch in batches:
            for time_slice, blob in zip(batch.column("slice").to_pylist(), batch.column("rows"), strict=True):
                blobs.append((time_slice, len(blobs), blob))
        for _, _, blob in sorted(blobs, key=lambda each: each[:2]):
            yield from from_blob(blob.as_buffer()).to_batches()


# ---------------------------------------------------------------- the operator


KEYS = ("rc", "r", "source", "sequence", "domain")
"""What a message is known and ordered by: its source by its number in `Memory.names`, its domain by the one
in `Memory.domains`."""
PRINT = "print"
"""The fingerprint of its id and payload: two messages with the same keys are the same one only if that is."""
KEPT = (*KEYS, PRINT)


@dataclass
class Memory:
    """What a bucket of the merge remembers."""

    names: list[str] = field(default_factory=list)
    """of the sources that were heard of"""
    progress: Array = field(default_factory=_nothing)
    """for each of them the largest r"""
    bound: int = NEVER
    """everything below it was released"""
    lowest: int = NEVER
    """before the first release: the smallest r + c of all messages"""
    held: dict[str, Array] = field(default_factory=_no_keys)
    """the messages that are held"""
    place: Array = field(default_factory=_nothing)
    """where their rows are"""
    released: dict[str, Array] = field(default_factory=_no_keys)
    """messages that were released lately: a copy is known by them"""
    domains: list[str] = field(default_factory=list)
    """of those that are held or were released lately"""

    def numbers(self, names: list[str]) -> Array:
        """The numbers of these sources; new ones are taken in, in the order of their names."""
        found = _numbers(self.names, names)
        new = np.full(len(self.names) - len(self.progress), NEVER)
        self.progress = np.concatenate([self.progress, new])
        return found

    def forget_domains(self) -> None:
        """Those of which there is no message any more, so that invented ones do not stay."""
        if len(self.domains) < 2:
            return
        there = (self.held, self.released)
        used = np.unique(np.concatenate([each["domain"] for each in there]))
        if len(used) < len(self.domains):
            self.domains = [self.domains[number] for number in used.tolist()]
            for each in there:
                each["domain"] = np.searchsorted(used, each["domain"])

    def to_bytes(self) -> bytes:
        arrays = {"progress": self.progress, "place": self.place}
        for name, each in (("held", self.held), ("released", self.released)):
            arrays |= {f"{name} {key}": each[key] for key in KEPT}
        arrays["plain"] = np.array([self.bound, self.lowest])
        columns = {name: pa.array([array], pa.list_(pa.int64())) for name, array in arrays.items()}
        for name, texts in (("names", self.names), ("domains", self.domains)):
            columns[name] = pa.array([texts], pa.list_(pa.string()))
        return to_blob(pa.table(columns))

    @classmethod
    def from_bytes(cls, data: bytes) -> Memory:
        table = from_blob(data)

        def values(name: str) -> Array:
            found: Array = table.column(name)[0].values.to_numpy(zero_copy_only=False).copy()
            return found

        def keys(name: str) -> dict[str, Array]:
            return {key: values(f"{name} {key}") for key in KEPT}

        bound, lowest = values("plain").tolist()
        names, domains = (table.column(name)[0].as_py() for name in ("names", "domains"))
        return cls(
            names, values("progress"), bound, lowest, keys("held"), values("place"), keys("released"), domains
        )


def _numbers(known: list[str], names: list[str]) -> Array:
    """The places of names in a list, to which new ones are added in their order."""
    places = {name: number for number, name in enumerate(known)}
    new = sorted(set(names) - set(places))
    known += new
    places.update({name: len(places) + number for number, name in enumerate(new)})
    return np.array([places[name] for name in names], np.int64)


class Merger(Holder):
    """Holds and releases the messages in the slices of one bucket."""

    def __init__(self, settings: MergeSettings) -> None:
        super().__init__(settings.fixed)
        self.settings = settings

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        memory, segments = self.load()
        slices = Slices(self.settings, Memory() if memory is None else Memory.from_bytes(memory), segments)
        blobs: list[bytes] = []
        for row in rows:
            if row["progress"] is not None:
                slices.hear(json.loads(row["progress"]), row["lowest"])
                slices.count(read=row[READ], heartbeats=row[HEARTBEATS])
            if row["rows"] is not None:
                blobs.append(row["rows"])
        for part, time_slice, table in slices.step(blobs):
            yield from as_blobs(table, part=part, slice=time_slice, **_NOTHING)
        yield Row(part=0, slice=None, rows=None, **slices.report())
        self.save(slices.memory.to_bytes(), segments)


class Slices:
    """The messages in the slices of one bucket: rows in, rows out in their order."""

    def __init__(self, settings: MergeSettings, memory: Memory, segments: Segments) -> None:
        self.settings = settings
        self.memory = memory
        self.segments = segments
        self._counts = dict.fromkeys(COUNTS, 0)

    def hear(self, progress: dict[str, int], lowest: int | None) -> None:
        """How far sources are, and the smallest time of a batch's messages; every bucket hears the same."""
        memory = self.memory
        numbers = memory.numbers(list(progress))
        memory.progress[numbers] = np.maximum(memory.progress[numbers], list(progress.values()))
        if lowest is not None and memory.bound == NEVER:
            memory.lowest = lowest if memory.lowest == NEVER else min(memory.lowest, lowest)

    def count(self, **counts: int) -> None:
        for name, number in counts.items():
            self._counts[name] += number

    def slowest(self) -> tuple[int, str | None]:
        """The smallest, over live sources, of their largest r; and whose it is."""
        heard = zip(self.memory.names, self.memory.progress.tolist(), strict=True)
        live = {**dict.fromkeys(self.settings.sources, NEVER), **dict(heard)}
        found = [(r, name) for name, r in live.items() if name not in self.settings.exclude]
        return min(found) if found else (NEVER, None)

    def step(self, blobs: list[bytes]) -> Iterator[tuple[int, int, pa.Table]]:
        """Take messages in; what is released leaves as (partition, slice, rows)."""
        memory = self.memory
        before = memory.bound
        after = max(before, self.slowest()[0] - self.settings.delta - self.settings.epsilon)
        tables = [from_blob(blob) for blob in blobs]
        table = pa.concat_tables(tables).combine_chunks() if tables else None
        if table is not None:
            codes = _codes(table)
            refused = codes != FINE
            if refused.any():
                yield self._aside(self._diverted(table.filter(pa.array(refused)), codes[refused]))
                table = table.filter(pa.array(~refused))
        keys, place, order, conflicting = self._with_new(table)
        if conflicting.num_rows:
            yield self._aside(conflicting)
        late, free = keys["rc"] < before, keys["rc"] < after
        for which, status in ((late, LATE), (free & ~late, DELIVERED)):
            rows = order[which[order]]
            if not len(rows):
                continue
            self.count(**{status: len(rows)})
            leaving = _marked(self.segments.taken(place[rows]), status)
            if status == LATE:
                yield 0, NEVER + 1, leaving
            else:
                first = before if before != NEVER else memory.lowest
                yield from self._in_slices(leaving, keys["rc"][rows], first, after)
        self._remember(keys, free, after)
        held, memory.place = memory.place, place[~free]
        self.segments.keep(held, memory.place)
        memory.bound = after
        memory.forget_domains()

    def _aside(self, rows: pa.Table) -> tuple[int, int, pa.Table]:
        """Diverted rows leave before all others; BadInput about the first one if that must not be."""
        if self.settings.strict:
            first = rows.slice(0, 1).to_pylist()[0]
            names = ("topic", "partition", "offset", "source", "sequence")
            known = {name: first[name] for name in names if first.get(name) is not None}
            about = ", ".join(f"{name} {printable(str(value))}" for name, value in known.items())
            raise BadInput(
                f"a row ({about or 'without source and sequence'}) {first[PROBLEM]}; without --strict it is "
                "diverted"
            )
        return 0, NEVER, rows

    def _diverted(self, table: pa.Table, codes: Array) -> pa.Table:
        """Rows that are not messages, and messages that cannot be written, with what is wrong."""
        words = problems(self.settings.epsilon)
        large = codes == words.index(TOO_LARGE)
        self.count(diverted=len(codes), refused=int((~large).sum()))
        said = [words[code] for code in codes.tolist()]
        if FAULT in table.column_names:
            told = table.column(FAULT).to_pylist()
            said = [told[row] if each == FAULTY else each for row, each in enumerate(said)]
        if large.any():
            sizes = table.column(SIZE).to_pylist()
            most = self.settings.most_bytes
            said = [
                f"{TOO_LARGE}: {sizes[row]} bytes, {most} at most" if large[row] else each
                for row, each in enumerate(said)
            ]
        return _marked(table.drop_columns(_own(table)), DIVERTED, said)

    def _with_new(self, table: pa.Table | None) -> tuple[dict[str, Array], Array, Array, pa.Table]:
        """The messages that are held, with those that came and are new; their places; their order; and rows
        that are not new, but are not copies either."""
        memory = self.memory
        if table is None or not table.num_rows:
            self.segments.begin(None)
            return memory.held, memory.place, self._order(memory.held), pa.table({})
        new = self._keys_of(table)
        table = table.drop_columns(_own(table))
        first_place = self.segments.begin(table)
        gone = len(memory.released["rc"])
        known = gone + len(memory.place)
        whole = {key: np.concatenate([memory.released[key], memory.held[key], new[key]]) for key in KEPT}
        order = self._order(whole)
        copies, conflicts = same_again(whole, order, known)
        self.count(duplicates=len(copies), conflicts=len(conflicts))
        here = np.ones(len(order), np.bool_)
        here[:gone] = here[copies] = here[conflicts] = False
        place = np.concatenate([memory.place, first_place + np.arange(table.num_rows)])
        keys = {key: whole[key][here] for key in KEPT}
        in_order = (np.cumsum(here) - 1)[order[here[order]]]
        return keys, place[here[gone:]], in_order, self._conflicting(table, whole, conflicts, known)

    def _keys_of(self, table: pa.Table) -> dict[str, Array]:
        """What the messages that came are known by."""
        memory = self.memory
        rows = table.num_rows
        coded = text_column(table.column("source")).dictionary_encode()
        sources = memory.numbers(coded.dictionary.to_pylist())
        if DOMAIN in table.column_names:
            domain = text_column(table.column(DOMAIN)).fill_null(ALL).dictionary_encode()
        else:
            domain = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int8)), pa.array([ALL]))
        domains = _numbers(memory.domains, domain.dictionary.to_pylist())
        added = (POSITION, f"input_{STATUS}", f"input_{PROBLEM}")
        payload = payload_columns([name for name in table.column_names if name not in added])
        return {
            "source": sources[_numpy(coded.indices)],
            "domain": domains[_numpy(domain.indices)],
            PRINT: fingerprints(table, payload).view(np.int64),
            **{
                key: in_one_piece(table.column(name)).to_numpy(zero_copy_only=False)
                for key, name in self.settings.times._asdict().items()
            },
        }

    def _conflicting(
        self, table: pa.Table, whole: dict[str, Array], conflicts: Array, known: int
    ) -> pa.Table:
        """Messages that have the number of another one, with what is wrong."""
        names = [printable(self.memory.names[number]) for number in whole["source"][conflicts].tolist()]
        said = [
            f"has the number of another message: source {name}, sequence {number}, but another id or data"
            for name, number in zip(names, whole["sequence"][conflicts].tolist(), strict=True)
        ]
        return _marked(table.take(pa.array(conflicts - known)), DIVERTED, said)

    def _order(self, keys: dict[str, Array]) -> Array:
        """By (r + c, r, source, sequence, domain)."""
        source = _ranks(self.memory.names, keys["source"])
        domain = _ranks(self.memory.domains, keys["domain"])
        return ascending(keys["rc"], keys["r"], source, keys["sequence"], domain)

    def _remember(self, keys: dict[str, Array], free: Array, after: int) -> None:
        memory = self.memory
        memory.held = {key: keys[key][~free] for key in KEPT}
        lately = {key: np.concatenate([memory.released[key], keys[key][free]]) for key in KEPT}
        keep = lately["rc"] >= after - self.settings.horizon
        memory.released = {key: lately[key][keep] for key in KEPT}

    def _in_slices(
        self, table: pa.Table, rc: Array, first: int, after: int
    ) -> Iterator[tuple[int, int, pa.Table]]:
        """The rows by slices, each with the partition in which that stretch of time stands."""
        slices = rc // SLICE
        low, high = first // SLICE, (after - 1) // SLICE
        for begin, end in stretches(slices):
            at = int(slices[begin])
            part = (max(at, low) - low) * self.settings.parts // (high - low + 1)
            yield part, at, table.slice(begin, end - begin)

    def report(self) -> dict[str, Any]:
        memory = self.memory
        smallest, name = self.slowest()
        held = len(memory.place)
        blocked = None
        if held and name is not None:
            blocked = f"{printable(name)}, heard of last at {'no time' if smallest == NEVER else smallest}"
        return {
            "held": held,
            "oldest": int(memory.held["rc"].min()) if held else None,
            "blocked": blocked,
            "bound": None if memory.bound == NEVER else memory.bound,
            **self._counts,
        }


def same_again(keys: dict[str, Array], order: Array, known: int) -> tuple[Array, Array]:
    """Of messages in their order, those that have the keys of another one: its copies, and conflicts, which
    have another fingerprint.

    The first `known` messages were there before; what comes never displaces them. Of several that come
    together the one with the smallest fingerprint stays, so that it does not matter how they were divided
    among workers.
    """
    same = np.ones(len(order), np.bool_)
    same[:1] = False
    for key in KEYS:
        same[1:] &= np.diff(keys[key][order]) == 0
    if not same.any():
        return _nothing(), _nothing()
    alike = same.copy()
    alike[:-1] |= same[1:]
    rows, group = order[alike], np.cumsum(~same)[alike]
    prints = keys[PRINT][rows].view(np.uint64)
    by = np.lexsort((rows, prints, rows >= known, group))
    rows, group, prints = rows[by], group[by], prints[by]
    first = np.diff(group, prepend=-1) != 0
    stays = np.maximum.accumulate(np.where(first, np.arange(len(rows)), 0))
    other = prints != prints[stays]
    return rows[~first & ~other], rows[other]


def _ranks(names: list[str], numbers: Array) -> Array:
    """The numbers of names as places in the order of the names."""
    if len(names) < 2:
        return numbers
    found: Array = np.argsort(np.argsort(np.array(names, object), kind="stable"))[numbers]
    return found


def _own(table: pa.Table) -> list[str]:
    return [name for name in table.column_names if name.startswith(OWN)]


def _marked(table: pa.Table, status: str, said: list[str] | None = None) -> pa.Table:
    """The rows with their status, and with what is wrong with each, if anything is."""
    rows = table.num_rows
    problem = pa.nulls(rows, pa.string()) if said is None else pa.array(said, pa.string())
    word = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int8)), pa.array([status]))
    return table.append_column(STATUS, word.cast(pa.string())).append_column(PROBLEM, problem)

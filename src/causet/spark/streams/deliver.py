"""`deliver()`: messages in causal order, as early as possible, for every receiver; batch or streaming.

    rows → cut by bucket → [ what is held and delivered: state ] → rows

A receiver is one of the `readers`, which get the messages to the groups that they read, or a value of the
column `by`. It has an order of its own, and lives in one of `buckets`: the unit of parallelism is the
receiver. Each bucket remembers what was delivered, which is a number per source,
and the messages that are held, their rows in segments that are only read again when one of them leaves.

Time is the time of the batch, which Spark writes down before it runs one: a batch that is run again after a
crash does the same.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from causet.durations import milliseconds
from causet.envelope import DOMAIN, MOST_SEQUENCE
from causet.errors import BadInput, quote
from causet.kernels.streams.memory import Lost
from causet.readers import ALL, Given, Readers, readers_of
from causet.spark.columns import quoted
from causet.spark.streams.beginnings.kept import Beginning
from causet.spark.streams.beginnings.plan import FRONT
from causet.spark.streams.books import OBSERVED
from causet.spark.streams.bucket import COUNTS
from causet.spark.streams.deliverer import NOW, OUT, Deliverer
from causet.spark.streams.held import how_many_held
from causet.spark.streams.members.members import Members, members
from causet.spark.streams.messages.columns import (
    column_of_version,
    columns_of_groups,
    columns_of_identity,
    columns_of_order,
    is_late,
)
from causet.spark.streams.messages.links import receivers_of
from causet.spark.streams.messages.routes import Route
from causet.spark.streams.messages.settings import ADDED, NUMBER, RECEIVER, Settings
from causet.spark.streams.pack import (
    BUCKET,
    OWN,
    PACKED,
    ROWS,
    Batches,
    Blobs,
    Pack,
    Unpack,
    packed_batch,
)
from causet.spark.streams.parquet import Messages, buckets_of
from causet.spark.streams.state import use_rocks
from causet.status import POLICIES, WAIT

BUCKETS = 64
DEFAULT_HORIZON = "1 day"


def deliver(
    *,
    missing: str,
    patience: str | int | float | None = None,
    by: str | None = None,
    parent: str | None = None,
    horizon: str | int | float = DEFAULT_HORIZON,
    buckets: int = BUCKETS,
    most_held: int = 10_000_000,
    lost: Iterable[tuple[str, int] | Lost] = (),
    strict: bool = False,
    most_bytes: int | None = None,
    ends: DataFrame | None = None,
    readers: Given | DataFrame = None,
    begin: str | None = None,
    stable: str | Path | None = None,
    protocol: str | None = None,
    system: str | Path | Mapping[str, Any] | None = None,
) -> Deliver | Members:
    """Deliver messages in causal order, for `messages.transform(deliver(…))`.

    The messages have the columns `source`, `numbers` (a map group → number) and `deps` (packed bytes or a map
    group → process → number); or as JSON `causalnumbers` and `causaldeps`. Where all are to one group, a
    `sequence` can stand for the numbers, and `deps` be a map process → number. With `parent`, they have the
    columns `id` and the one that `parent` names. The process, under which messages are numbered, stands in
    `causalprocess` or in `process`; where that is null, or there is no such column, it is the source.

    :param missing: what to do about a cause that does not come: `wait`, `flag` or `divert`.
    :param patience: for `flag` and `divert`, how long a message waits: `"10 minutes"`, or seconds. The end of
        a batch DataFrame ends it.
    :param readers: who reads which groups: a map from each reader to its groups, or a DataFrame with the
        columns `reader` and `group`; or `"each"`, which makes every group a reader of its own. Each reader
        gets the messages to its groups, each once, in causal order across all of these groups. Without it
        there is one reader, `all`, of every group.
    :param begin: where readers begin that are new to the checkpoint of a query: `"now"`, after what the
        others delivered; or for a new checkpoint `"front"`, or a file with a cut. A query of your own, with
        `transform`, begins at the front.
    :param stable: a folder of cuts, which workers can read too: messages that name a cut wait for what is in
        it. `causet deliver` also makes its readers known there, and publishes cuts of what all known readers
        have delivered. Without it, a message that names a cut is diverted.
    :param by: the column of the receiver, where messages are numbered per receiver.
    :param horizon: how long to remember causes that were given up, and what was diverted; with `parent`, also
        the ids of delivered messages.
    :param buckets: the number of buckets of state, over which receivers are spread; fixed for a checkpoint.
    :param most_held: the maximum number of messages that one bucket holds; above it the query ends with an
        error.
    :param lost: messages that will never come, as (process, number, group), or (process, number) for every
        group; with `parent`, (id, 1). What waits for one of them is delivered and flagged. They are
        remembered.
    :param strict: end with an error at a row that is not a message, instead of diverting it.
    :param most_bytes: the largest message that the sink takes; the column `__causet_size` has the size of
        each row.
    :param ends: a streaming DataFrame with a column `ended` of timestamps, in ms since 1970: for what came up
        to then, patience has ended.
    :param protocol: the rows are packets of this protocol: columns `packet`, `seq`, `receiver` or `by`.
    :param system: of a protocol: its file, or what would stand in it: processes, groups, links, options.

    Every row gets `receiver`, `index`, `status`, `waited`, `missing` and `problem`; a column of the input
    that has one of these names is kept as `input_receiver`, and so on. Messages without numbers by group are
    of the one group that stands in the column `causaldomain`, or of `all`.
    """
    given_up = tuple(map(_lost, lost))
    if protocol is not None or system is not None:
        others = {
            "patience": patience,
            "parent": parent,
            "readers": readers,
            "lost": given_up,
            "ends": ends,
            "begin": begin,
            "stable": stable,
        }
        return members(protocol, system, missing, by, buckets, most_held, strict, most_bytes, others)
    return Deliver(
        missing,
        patience,
        by,
        parent,
        horizon,
        buckets,
        most_held,
        given_up,
        strict,
        most_bytes,
        ends,
        readers_of(_pairs(readers) if isinstance(readers, DataFrame) else readers),
        begin,
        stable=None if stable is None else str(Path(stable).absolute()),
    )


def _lost(given: Sequence[Any]) -> Lost:
    source, number, *group = given
    return str(source), int(number), str(group[0]) if group and group[0] is not None else None


def _pairs(readers: DataFrame) -> dict[str, list[str]]:
    """Readers from a DataFrame with a row for each group that one reads."""
    for name in ("reader", "group"):
        if name not in readers.columns:
            raise BadInput(f'readers need the columns "reader" and "group"; {quote(name)} is missing')
    found: dict[str, list[str]] = {}
    for row in readers.select("reader", "group").collect():
        found.setdefault(row["reader"], []).append(row["group"])
    return found


@dataclass(frozen=True)
class Deliver:
    """The settings of `deliver`, as they were given, and what it makes of messages: rows in, rows out."""

    missing: str
    patience: str | int | float | None
    by: str | None
    parent: str | None
    horizon: str | int | float
    buckets: int
    most_held: int
    lost: tuple[Lost, ...]
    strict: bool
    most_bytes: int | None
    ends: DataFrame | None
    readers: Readers = field(default_factory=Readers)
    begin: str | None = None
    beginning: Beginning | None = None
    """where readers begin, as a query wrote it down"""
    stable: str | None = None
    """the place of cuts"""
    begins: bool = False
    """whether the query sees to it where new readers begin"""
    query: str = ""
    """under which name its readers are known there, if they are"""

    command, per_ms = "deliver", 1

    def __post_init__(self) -> None:
        """BadInput if the settings do not go together."""
        if self.missing not in POLICIES:
            raise BadInput(f"missing = {quote(self.missing)}: must be wait, flag or divert")
        if (self.missing == WAIT) != (self.patience is None):
            raise BadInput(
                "patience can be used only with missing = flag or divert (--missing); wait has none"
                if self.missing == WAIT
                else f"missing = {self.missing} needs a patience, such as 10m (--patience 10m)"
            )
        if not 1 <= self.buckets <= 1 << 16:
            raise BadInput(f"buckets = {self.buckets}: there can be 1 to 65,536")
        for name in ("by", "parent"):
            if getattr(self, name) is not None and self.stable is not None:
                raise BadInput(
                    f"stable cannot be used with {name} (--stable with --{name}): cuts are of groups"
                )
            if getattr(self, name) is not None and self.readers != Readers():
                raise BadInput(
                    f"readers cannot be used with {name} (--readers with --{name}): readers read groups, and "
                    + ("the column names the receiver" if name == "by" else "ids with parents have none")
                )
        for source, number, group in self.lost:
            if group is not None and (self.by is not None or self.parent is not None):
                raise BadInput(f"lost = {source}:{number} in {group}: with by or parent, there are no groups")
            if not 1 <= number <= MOST_SEQUENCE:
                raise BadInput(f"lost = {source}:{number}: numbers are between 1 and {MOST_SEQUENCE}")
        if self.begin is not None and (self.by is not None or self.parent is not None):
            name = "parent" if self.by is None else "by"
            raise BadInput(
                f"begin cannot be used with {name} (--begin with --{name}): readers of groups begin"
            )
        self._milliseconds()

    def _milliseconds(self) -> tuple[int | None, int]:
        """Patience and horizon."""
        patience = None if self.patience is None else milliseconds("patience", self.patience)
        return patience, milliseconds("horizon", self.horizon)

    def __call__(self, messages: DataFrame) -> DataFrame:
        if self.begin not in (None, FRONT):
            raise BadInput(
                f"begin = {quote(self.begin)} needs the checkpoint of `causet deliver`; a query of your own "
                "begins at the front"
            )
        return self.blobs(messages).rows()

    @property
    def fixed(self) -> dict[str, Any]:
        """The settings that cannot change for a checkpoint: patience needs a source of ticks, and the sources
        of a checkpoint are fixed."""
        policy = WAIT if self.missing == WAIT else "flag or divert"
        fixed = {"by": self.by, "parent": self.parent, "buckets": self.buckets, "missing": policy}
        return {**fixed, "kind of readers": self.readers.kind}

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that may change from run to run, as JSON has them."""
        names = ("missing", "patience", "horizon", "lost", "strict", "most_bytes", "stable")
        return {**{name: getattr(self, name) for name in names}, "readers": self.readers.as_json()}

    def changed(self, settings: Mapping[str, Any], ends: DataFrame | None = None) -> Deliver:
        """The same with other `settings`."""
        lost = tuple(map(_lost, settings.get("lost", self.lost)))
        readers = readers_of(settings.get("readers", self.readers))
        return replace(self, **{**settings, "lost": lost, "readers": readers}, ends=ends)

    @property
    def columns(self) -> list[str]:
        """The columns that the settings name."""
        return [name for name in (self.by, self.parent) if name is not None]

    @property
    def ends_with_input(self) -> bool:
        """Whether the end of the input ends all patience."""
        return self.missing != WAIT

    @property
    def wakes(self) -> bool:
        """Whether the settings may release messages although nothing arrives."""
        return bool(self.lost)

    def held(self, spark: SparkSession, state: Path) -> int:
        return how_many_held(spark, state)

    def blobs(self, messages: DataFrame | Messages) -> Blobs:
        """The rows as blobs, for a sink that can write these."""
        whole, settings, renamed = self.settled(messages)
        found = _operator(_packed(whole, settings), settings, whole.rows.isStreaming, self.ends)
        return Blobs(found.select(ROWS), Unpack(ROWS), _with_added(whole.rows.schema, settings), renamed)

    def settled(self, messages: DataFrame | Messages) -> tuple[Messages, Settings, dict[str, str]]:
        """The messages, with other names for columns that have the name of one that is added; the settings
        for them; and these names."""
        whole, renamed = Messages.of(messages).without_clashes([name for name in ADDED if name != self.by])
        by, parent = (None if name is None else renamed.get(name, name) for name in (self.by, self.parent))
        rows = whole.rows
        source, sequence, causes = columns_of_order(rows, by, parent)
        text = by is not None and isinstance(rows.schema[by].dataType, T.StringType)
        numbered = parent is None and DOMAIN in rows.columns
        numbers, groups = (None, None) if parent is not None else columns_of_groups(rows)
        patience, horizon = self._milliseconds()
        settings = Settings(
            policy=self.missing,
            patience=patience,
            horizon=horizon,
            by=by,
            receiver=None if by is None else by if text else RECEIVER,
            source=source,
            sequence=sequence,
            causes=causes,
            parent=parent,
            buckets=self.buckets,
            most_held=self.most_held,
            domain=DOMAIN if numbered and isinstance(rows.schema[DOMAIN].dataType, T.StringType) else None,
            lost=self.lost,
            strict=self.strict,
            most_bytes=self.most_bytes,
            process=() if parent is not None else columns_of_identity(rows),
            version=column_of_version(rows),
            columns=tuple(rows.columns),
            numbers=numbers,
            groups=groups,
            readers=self.readers,
            beginning=self.beginning,
            stable=self.stable,
            begins=self.begins,
            query=self.query,
            grouped=numbers is not None and not is_late(rows, numbers),
        )
        return whole, settings, renamed


# ---------------------------------------------------------------- the pipeline


def _packed(messages: Messages, settings: Settings) -> DataFrame:
    """Messages, cut by bucket."""
    rows = messages.rows
    if settings.routed:
        return messages.packed(Route(settings), PACKED, rows, as_it_is, True)
    receiver = F.lit(ALL) if settings.by is None else F.col(quoted(settings.by)).cast("string")
    bucket = F.pmod(F.xxhash64(F.coalesce(receiver, F.lit(""))), F.lit(settings.buckets)).cast("int")
    extra = [receiver.alias(RECEIVER)] if settings.receiver == RECEIVER else []
    there = settings.parent is None and settings.sequence in rows.columns
    if there and not isinstance(rows.schema[settings.sequence].dataType, T.LongType):
        extra.append(F.expr(f"try_cast({quoted(settings.sequence)} as bigint)").alias(NUMBER))
    by_spark = rows.select(bucket.alias(f"{OWN}bucket"), *extra, "*")
    return messages.packed(Pack(), PACKED, by_spark, WithBucket(settings), not extra)


def as_it_is(rows: pa.RecordBatch, now: int) -> pa.RecordBatch:
    return rows


@dataclass(frozen=True)
class WithBucket:
    """Puts the bucket of each row before its columns: as `_packed` does, for rows that Spark has not seen."""

    settings: Settings

    def __call__(self, rows: pa.RecordBatch, now: int) -> pa.RecordBatch:
        found = buckets_of(receivers_of(pa.table(rows), self.settings), self.settings.buckets)
        return rows.add_column(0, f"{OWN}bucket", pa.array(found))


def _operator(packed: DataFrame, settings: Settings, streaming: bool, ends: DataFrame | None) -> DataFrame:
    """The stateful operator on packed messages."""
    spark = packed.sparkSession
    if streaming:
        use_rocks(spark)
        if settings.policy != WAIT:
            packed = packed.unionAll(_ticks(spark, settings.buckets))
        if ends is not None:
            packed = packed.unionAll(_to_all(ends.select("ended"), settings.buckets))
    packed = packed.withColumn(NOW, _now(streaming))
    found = packed.groupBy(BUCKET).transformWithState(Deliverer(settings, streaming), OUT, "append", "none")
    if streaming:
        found = found.observe(
            OBSERVED,
            F.sum("held").alias("held"),
            F.min("oldest").alias("oldest"),
            F.min_by("blocked", "oldest").alias("blocked"),
            F.min_by("wanted", "oldest").alias("wanted"),
            F.min("missed").alias("missed"),
            *(F.sum(name).alias(name) for name in COUNTS),
        )
    return found


def _now(streaming: bool) -> Column:
    """The time of the batch in ms: in a stream Spark's own, the same when a batch is run again."""
    return F.unix_millis(F.current_timestamp()) if streaming else F.lit(time.time_ns() // 1_000_000)


def _ticks(spark: SparkSession, buckets: int) -> DataFrame:
    """With every batch, for every bucket, whether anything came or not: so patience ends by itself.

    So there is always a next batch, as with Spark's own timers; the query's trigger decides how often. Of
    Spark's sources, this one also knows how to end when all that is available was read.
    """
    beats = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1)
    ticking = beats.option("numPartitions", 1).load()
    return _to_all(ticking.select(F.lit(None).cast("long").alias("ended")), buckets)


def _to_all(ends: DataFrame, buckets: int) -> DataFrame:
    return ends.mapInArrow(ToAll(buckets), PACKED)


@dataclass(frozen=True)
class ToAll:
    """Sends the latest end of the input to all buckets."""

    buckets: int

    def __call__(self, batches: Batches) -> Batches:
        latest: int | None = None
        rows = 0
        for batch in batches:
            rows += batch.num_rows
            for ended in batch.column(0).drop_null().to_pylist():
                latest = max(ended, latest or 0)
        if rows:
            yield packed_batch(list(range(self.buckets)), latest, [None] * self.buckets)


def _with_added(schema: T.StructType, settings: Settings) -> T.StructType:
    """The columns of messages with those that every message gets."""
    kept = [field for field in schema.fields if field.name not in ADDED and not field.name.startswith(OWN)]
    by_process = T.MapType(T.StringType(), T.LongType())
    by_group = T.MapType(T.StringType(), by_process)
    added = T.StructType(
        [
            T.StructField("receiver", T.StringType()),
            T.StructField("index", T.LongType()),
            T.StructField("status", T.StringType()),
            T.StructField("waited", T.DoubleType()),
            T.StructField("missing", by_group if settings.grouped else by_process),
            T.StructField("problem", T.StringType()),
        ]
    )
    return T.StructType([*kept, *added.fields])

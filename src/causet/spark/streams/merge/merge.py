"""`merge()`: one order for all subscribers, consistent with causality, by the ⟨r, c⟩ time of the messages.

The order is that of (r + c, r, process); for messages of version 1, whose clocks gave several messages the
same time, also of sequence and domain. It depends on the messages alone: mergers that see the same messages
agree without talking to each other, and a merger of mergers gives the same order, since stamps and heartbeats
pass as they are.

A batch is a sort, by all workers: a first look counts messages by time, so that every worker knows where its
own begin. A stream is released by the sources' own progress or by the clock, in one order, by all workers:

    rows → cut by time → [ held until nothing earlier can come: state ] → parts in the order of time → rows

Its operator is in `slices`, the way in and out in `packers`. Partition after partition, and batch after
batch, the rows stand in the order of the merge.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from causet.durations import microseconds
from causet.errors import BadInput, quote
from causet.rcclock import TICKS_PER_MS
from causet.spark.streams.books import OBSERVED
from causet.spark.streams.held import merge_progress
from causet.spark.streams.merge.batch import sorted_rows
from causet.spark.streams.merge.packers import (
    PACKED,
    Judge,
    MergeSettings,
    PackByTime,
    UnpackInOrder,
    Wake,
    in_ticks,
)
from causet.spark.streams.merge.rows import (
    CODE,
    FOUND,
    POSITION,
    PROBLEM,
    STATUS,
    TICKS,
    Extra,
    next_delta,
    problem_with,
    with_times,
)
from causet.spark.streams.merge.slices import COUNTS, OUT, Merger
from causet.spark.streams.messages.columns import columns_of_identity
from causet.spark.streams.pack import OWN, Blobs
from causet.spark.streams.parquet import Messages
from causet.spark.streams.state import use_rocks

SOURCES, CLOCK = "sources", "clock"
RELEASES = (SOURCES, CLOCK)
"""What releases a message of a stream."""


def merge(
    *,
    epsilon: str | int | float,
    delta: str | int | float,
    release: str = SOURCES,
    ticks: str = "us",
    sources: Sequence[str] = (),
    exclude: Sequence[str] = (),
    horizon: str | int | float | None = None,
    buckets: int = 16,
    strict: bool = False,
    most_bytes: int | None = None,
) -> Merge:
    """Merge messages into one order, for `messages.transform(merge(…))`.

    The messages have the columns `source`, `sequence`, `rc` (r + c) and `r`, in µs; or `causaltime` in place
    of the last two, as the envelope has it. `causalprocess` or `process` is the identity under which the
    numbers of a source run, if there is such a column. A row whose `type` is `causet.heartbeat` only reports
    how far its source is. Messages that differ in `causaldomain` are different ones.

    :param epsilon: the largest difference between clocks of the sources: `"50 ms"`, or seconds.
    :param delta: the longest that a message is in transit.
    :param release: for streams, what releases a message, when it is δ + ε past its time: `"sources"`, when
        all of them are, which gives the same output live and from a backlog, and waits for a source that is
        silent; or `"clock"`, when they or this machine's clock is, which waits for no source. Only the
        command `causet merge` has that: a stream of your own does not say when it is read to its end.
    :param ticks: the unit of the columns `rc` and `r`: `"us"`, or `"ms"` in older tables.
    :param sources: for streams, sources that are waited for although they have not been heard of.
    :param exclude: for streams, sources that are not waited for: they died.
    :param horizon: for streams, how long released messages are remembered, so that duplicates are recognised;
        by default δ + 3ε, the longest that a message waits.
    :param buckets: for streams, the number of buckets of state; fixed for a checkpoint.
    :param strict: for streams, end with an error at a row that would be diverted.
    :param most_bytes: for streams, the largest message that the sink takes; the column `__causet_size` has
        the size of each row.

    A batch gets `position` (0, 1, 2, …), a stream the order of its rows. `status` is `delivered`, in a stream
    also `late` (it came below what was released), and `diverted` for a row that is not a message or has an
    impossible stamp, with the `problem`. Heartbeats pass, for the next merger, with the status `heartbeat`:
    in a stream at their place in the order, in a batch without a position. In a batch duplicates stay; a
    stream counts and drops them, and diverts a message that has the numbers of another one but not its id and
    data. A column of the input that has one of these names is kept as `input_status`, and so on.
    """
    return Merge(
        epsilon,
        delta,
        tuple(sources),
        tuple(exclude),
        horizon,
        buckets,
        strict,
        most_bytes,
        release=release,
        ticks=ticks,
    )


@dataclass(frozen=True)
class Merge:
    """The settings of `merge`, as they were given, and what it makes of messages: rows in, rows out."""

    epsilon: str | int | float
    delta: str | int | float
    sources: tuple[str, ...]
    exclude: tuple[str, ...]
    horizon: str | int | float | None
    buckets: int
    strict: bool = False
    most_bytes: int | None = None
    ends: DataFrame | None = None
    """a stream of which each row lets a batch run in every bucket; its value, if it has one, is what the
    clock shows, in ms"""
    release: str = SOURCES
    ticks: str = "us"

    command = "merge"
    columns: ClassVar[list[str]] = []
    per_ms = TICKS_PER_MS
    """units of the times that a batch reports"""

    def __post_init__(self) -> None:
        """BadInput if a setting is not one."""
        self.in_ticks()
        for name, known in (("release", RELEASES), ("ticks", tuple(TICKS))):
            if getattr(self, name) not in known:
                raise BadInput(f"{name} = {quote(getattr(self, name))}: must be {' or '.join(known)}")

    def in_ticks(self) -> tuple[int, int, int]:
        """ε, δ and the horizon."""
        epsilon, delta = microseconds("epsilon", self.epsilon), microseconds("delta", self.delta)
        if self.horizon is None:
            return epsilon, delta, next_delta(epsilon, delta)
        return epsilon, delta, microseconds("horizon", self.horizon)

    def __call__(self, messages: DataFrame) -> DataFrame:
        if messages.isStreaming:
            if self.by_clock:
                raise BadInput(
                    f"release = {quote(CLOCK)} cannot be had for a stream of your own, which does not say "
                    "when it is read to its end: use `causet merge --release clock`, or release by sources"
                )
            return self.blobs(messages).rows()
        rows = Messages(messages).without_clashes((POSITION, STATUS, PROBLEM))[0].rows
        stamped, times = with_times(rows, self.ticks)
        return sorted_rows(stamped, times, rows.columns, self.in_ticks()[0])

    @property
    def fixed(self) -> dict[str, Any]:
        """The settings that cannot change for a checkpoint."""
        return {"buckets": self.buckets, "ticks": self.ticks}

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that may change from run to run, as JSON has them."""
        names = ("epsilon", "delta", "release", "sources", "exclude", "strict", "most_bytes")
        return {name: getattr(self, name) for name in names}

    def changed(self, settings: Mapping[str, Any], ends: DataFrame | None = None) -> Merge:
        """The same with other `settings`."""
        lists = {name: tuple(settings[name]) for name in ("sources", "exclude") if name in settings}
        return replace(self, **{**settings, **lists}, ends=ends)

    @property
    def wakes(self) -> bool:
        """Whether the settings may release messages although nothing arrives."""
        return bool(self.exclude)

    @property
    def by_clock(self) -> bool:
        """Whether the clock releases, too."""
        return self.release == CLOCK

    @property
    def ends_with_input(self) -> bool:
        """Whether the end of the input may release messages: it shows that the clock counts."""
        return self.by_clock

    def held(self, spark: SparkSession, state: Path) -> int:
        return merge_progress(spark, state).held

    def blobs(self, messages: DataFrame | Messages) -> Blobs:
        """The rows of a stream as blobs, for a sink that can write these."""
        whole, renamed = Messages.of(messages).without_clashes((STATUS, PROBLEM))
        stamped, times = with_times(whole.rows, self.ticks)
        tasks = whole.rows.sparkSession.conf.get("spark.sql.shuffle.partitions") or str(self.buckets)
        epsilon, delta, horizon = self.in_ticks()
        settings = MergeSettings(
            times=times,
            epsilon=epsilon,
            delta=delta,
            sources=self.sources,
            exclude=self.exclude,
            horizon=horizon,
            buckets=self.buckets,
            parts=min(self.buckets, int(tasks)),
            most_bytes=self.most_bytes,
            strict=self.strict,
            process=columns_of_identity(whole.rows),
            by_clock=self.by_clock,
        )
        kept = [field for field in whole.rows.schema.fields if not field.name.startswith(OWN)]
        schema = T.StructType(kept).add(STATUS, T.StringType()).add(PROBLEM, T.StringType())
        parts = _operator(whole, stamped, settings, self.ends)
        return Blobs(parts, UnpackInOrder(), schema, renamed)


def _operator(
    messages: Messages, stamped: DataFrame, settings: MergeSettings, wakes: DataFrame | None
) -> DataFrame:
    """The operator between its packers.

    :param stamped: the rows of the messages, with their times as numbers.
    :param wakes: a stream of which each row lets a batch run in every bucket.
    """
    use_rocks(stamped.sparkSession)
    now = in_ticks(F.unix_millis(F.current_timestamp()))
    extra = Extra.of_rows(stamped, settings.most_bytes)
    judged = stamped.withColumn(CODE, problem_with(settings.times, settings.epsilon, now, extra))
    as_they_are = settings.times == FOUND
    packed = messages.packed(PackByTime(settings), PACKED, judged, Judge(settings), as_they_are)
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
    return found.where(F.col("rows").isNotNull()).select("slice", "rows")

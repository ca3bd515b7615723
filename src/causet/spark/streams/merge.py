"""`merge()`: one order for all subscribers, consistent with causality, by the ⟨r, c⟩ time of the messages.

The order is that of (r + c, r, source, sequence, domain). It depends on the messages alone: mergers that see
the same messages agree without talking to each other, and a merger of mergers gives the same order, since
stamps pass as they are.

A batch is a sort, by all workers: a first look counts messages by time, so that every worker knows where its
own begin. A stream is in `merge_stream`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame

from causet.durations import milliseconds
from causet.spark.streams.clashes import without_clashes
from causet.spark.streams.merge_batch import sorted_rows
from causet.spark.streams.merge_rows import POSITION, PROBLEM, STATUS, with_times
from causet.spark.streams.merge_stream import MergeSettings, merge_stream
from causet.spark.streams.pack import Blobs
from causet.spark.streams.parquet import ParquetFiles


def merge(
    *,
    epsilon: str | int | float,
    delta: str | int | float,
    sources: Sequence[str] = (),
    exclude: Sequence[str] = (),
    horizon: str | int | float | None = None,
    buckets: int = 16,
    strict: bool = False,
    most_bytes: int | None = None,
) -> Merge:
    """Merge messages into one order, for `messages.transform(merge(…))`.

    The messages have the columns `source`, `sequence`, `rc` (r + c) and `r`, in ms; or `causaltime` in place
    of the last two, as the envelope has it. A row whose `type` is `causet.heartbeat` only says how far its
    source is. Messages that differ in `causaldomain` are different ones.

    :param epsilon: how far the clocks of the sources are apart at most: `"50 ms"`, or seconds.
    :param delta: how long a message is under way at most.
    :param sources: for streams, sources that are waited for although they have not been heard of.
    :param exclude: for streams, sources that are not waited for: they died.
    :param horizon: for streams, how long released messages are remembered, so that copies are known for such;
        without it δ + 3ε, the longest that a message waits.
    :param buckets: for streams, over how many the messages are spread; fixed for a checkpoint.
    :param strict: for streams, end with an error at a row that would be diverted.
    :param most_bytes: for streams, the largest message that the sink takes; the rows say in `__causet_size`
        how large they are.

    A batch gets `position` (0, 1, 2, …), a stream the order of its rows. `status` is `delivered`, in a stream
    also `late` (it came below what was released), and `diverted` for a row that is not a message or has an
    impossible stamp, with the `problem`. In a batch heartbeats and duplicates stay, and a heartbeat has the
    status `heartbeat` and no position; a stream counts both and drops them, and diverts a message that has
    the numbers of another one but not its id and data. A column of the input that has one of these names is
    kept as `input_status`, and so on.
    """
    apart, under_way = milliseconds("epsilon", epsilon), milliseconds("delta", delta)
    remembered = under_way + 3 * apart if horizon is None else milliseconds("horizon", horizon)
    return Merge(apart, under_way, tuple(sources), tuple(exclude), remembered, buckets, most_bytes, strict)


@dataclass(frozen=True)
class Merge:
    """What `merge` gives: rows in, rows out. Times are in ms."""

    epsilon: int
    delta: int
    sources: tuple[str, ...]
    exclude: tuple[str, ...]
    horizon: int
    buckets: int
    most_bytes: int | None = None
    """the largest message that the sink takes, by the column SIZE; a larger one is diverted"""
    strict: bool = False
    wakes: DataFrame | None = None
    """a stream of which each row lets a batch run in every bucket"""

    def __call__(self, messages: DataFrame) -> DataFrame:
        if messages.isStreaming:
            return self.blobs(messages).rows()
        kept, _ = without_clashes(messages, (POSITION, STATUS, PROBLEM))
        assert isinstance(kept, DataFrame)
        stamped, times = with_times(kept)
        return sorted_rows(stamped, times, kept.columns, self.epsilon)

    def blobs(self, messages: DataFrame | ParquetFiles) -> Blobs:
        """The rows of a stream as blobs, for a sink that can write these."""
        messages, renamed = without_clashes(messages, (STATUS, PROBLEM))
        rows = messages.rows if isinstance(messages, ParquetFiles) else messages
        stamped, times = with_times(rows)
        tasks = rows.sparkSession.conf.get("spark.sql.shuffle.partitions") or str(self.buckets)
        settings = MergeSettings(
            times,
            self.epsilon,
            self.delta,
            self.sources,
            self.exclude,
            self.horizon,
            self.buckets,
            min(self.buckets, int(tasks)),
            self.most_bytes,
            self.strict,
        )
        files = messages if isinstance(messages, ParquetFiles) else None
        return replace(merge_stream(stamped, rows.columns, settings, files, self.wakes), renamed=renamed)


# ---------------------------------------------------------------- columns

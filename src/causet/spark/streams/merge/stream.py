"""The merge of streams: released by the sources' own progress, in one order, by all workers.

    rows → cut by time → [ held until every source is past them: state ] → parts in the order of time → rows

The operator is in `slices`, its way in and out in `packers`. Partition after partition, and batch after
batch, the rows stand in the order of the merge.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from causet.spark.streams.books import OBSERVED
from causet.spark.streams.merge.packers import (
    PACKED,
    Judge,
    MergeSettings,
    PackByTime,
    UnpackInOrder,
    Wake,
)
from causet.spark.streams.merge.rows import CODE, FOUND, PROBLEM, STATUS, Extra, problem_with
from causet.spark.streams.merge.slices import COUNTS, OUT, Merger
from causet.spark.streams.pack import OWN, Blobs
from causet.spark.streams.parquet import Messages
from causet.spark.streams.state import use_rocks


def merge_stream(
    messages: Messages, stamped: DataFrame, settings: MergeSettings, wakes: DataFrame | None = None
) -> Blobs:
    """The operator between its packers.

    :param stamped: the rows of the messages, with their times as numbers.
    :param wakes: a stream of which each row lets a batch run in every bucket.
    """
    use_rocks(stamped.sparkSession)
    now = F.unix_millis(F.current_timestamp())
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
    kept = [stamped.schema[name] for name in messages.rows.columns if not name.startswith(OWN)]
    schema = T.StructType(
        [*kept, T.StructField(STATUS, T.StringType()), T.StructField(PROBLEM, T.StringType())]
    )
    parts = found.where(F.col("rows").isNotNull()).select("slice", "rows")
    return Blobs(parts, UnpackInOrder(), schema)

"""How readers and groups fit together, as the state of a query has it at the end of a run."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from causet.kernels.arrays import Array
from causet.kernels.streams.beginning import groups_of
from causet.kernels.streams.channels import channels_of
from causet.kernels.streams.holding import Holding
from causet.kernels.streams.keys import KEY, digests
from causet.readers import Readers
from causet.spark.streams.held import heads_of, state_of
from causet.spark.streams.parquet import buckets_of
from causet.spark.streams.state import UNREAD_AT


@dataclass(frozen=True)
class Readings:
    """What is odd about the list of readers."""

    removed: Mapping[str, int] = field(default_factory=dict)
    """readers that are not listed any more, and how much is held for them"""
    unseen: tuple[tuple[str, str], ...] = ()
    """(reader, group): it reads the group, and no message of it has come"""
    unread: Mapping[str, int] = field(default_factory=dict)
    """groups that no reader reads, and how many messages of this run were left out for that; under no name
    those of further groups"""


def readings(
    spark: SparkSession,
    checkpoint: Path,
    readers: Readers,
    removed: Iterable[str],
    before: Mapping[str, int],
    buckets: int,
) -> Readings:
    """What is odd about a list of readers.

    :param removed: readers that were listed before.
    :param before: what was unread before this run.
    """
    heads = heads_of(spark, checkpoint)
    unread = Counter(unread_by_group(spark, checkpoint))
    unread.subtract(before)
    return Readings(
        held_of_removed(heads, removed, readers), tuple(unseen(heads, readers, buckets)), dict(+unread)
    )


def held_of_removed(heads: Mapping[int, Holding], removed: Iterable[str], readers: Readers) -> dict[str, int]:
    """How much is held for readers that are not listed: for those that were removed, and for whom there is
    something."""
    listed = {reader for reader, _ in readers.listed}
    found = dict.fromkeys(removed, 0)
    for holding in heads.values():
        messages = np.bincount(holding.receiver[holding.part == 0], minlength=len(holding.receiver_name))
        for reader, held in zip(holding.receiver_name, messages.tolist(), strict=True):
            if held and reader and reader not in listed:
                found[reader] = found.get(reader, 0) + held
    return found


def unseen(heads: Mapping[int, Holding], readers: Readers, buckets: int) -> list[tuple[str, str]]:
    """The groups of readers of which no message has come, each with its reader. One that bypasses the order
    does not count: it is known by its source and id alone."""
    found: list[tuple[str, str]] = []
    names = [reader for reader, _ in readers.listed]
    for (reader, groups), bucket in zip(readers.listed, buckets_of(pa.array(names), buckets), strict=True):
        memory = heads.get(int(bucket))
        seen = set() if memory is None else _keys(groups_of(memory, reader))
        for group in groups:
            if memory is None or seen.isdisjoint(channels_of(memory.channels, digests([group]).tobytes())):
                found.append((reader, group))
    return found


def _keys(table: Array) -> set[bytes]:
    raw = table.tobytes()
    return {raw[at : at + KEY] for at in range(0, len(raw), KEY)}


def unread_by_group(spark: SparkSession, checkpoint: Path) -> Counter[str]:
    """How many messages had no reader since the query began, by their groups."""
    found: Counter[str] = Counter()
    try:
        marks = state_of(spark, checkpoint, "marks")
        marks.schema  # noqa: B018 (Spark Connect looks at the state only now)
    except PySparkException:
        return found
    rows = marks.where(F.col("user_map_key.segment") == UNREAD_AT)
    for row in rows.select("user_map_value.rows").collect():
        found.update(json.loads(bytes(row["rows"])))
    return found

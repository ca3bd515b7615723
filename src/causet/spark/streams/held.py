"""What a query holds, read from the state in its checkpoint, whether it runs or not: why is this held?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from causet.kernels.streams.holding import Holding
from causet.spark.streams.bucket import Links, Wanted
from causet.spark.streams.merge.memory import NEVER, Memory
from causet.spark.streams.merge.memory import VERSION as MERGE_VERSION
from causet.spark.streams.messages.settings import Settings
from causet.spark.streams.pack import from_blob
from causet.spark.streams.state import ROW_MASK, SEGMENT_BITS, VERSION, check_version


class Wait(NamedTuple):
    """A cause that a message waits for."""

    wanted: Wanted
    held: bool
    """it is a message that is here, and waits itself"""
    diverted: bool
    """it came, and was diverted"""


@dataclass(frozen=True)
class Held:
    """A message that waits."""

    message: Wanted
    name: str
    """`process:sequence`, or its id"""
    since: int
    """when it came, in ms"""
    waits_for: list[Wait]
    """the direct causes that are not delivered, and the cut"""

    @property
    def receiver(self) -> str:
        return self.message.receiver


def how_many_held(spark: SparkSession, checkpoint: Path) -> int:
    """How many messages a query holds."""
    return sum(len(holding) for _, holding in _heads(spark, checkpoint))


def held_messages(spark: SparkSession, checkpoint: Path, settings: Settings) -> Iterator[Held]:
    """The messages that a query holds, with what they wait for; those of a bucket by their arrival."""
    for bucket, holding in _heads(spark, checkpoint):
        if len(holding):
            segments = _segments(spark, checkpoint, bucket)
            yield from _of_bucket(holding, segments, settings)


def heads_of(spark: SparkSession, checkpoint: Path) -> dict[int, Holding]:
    """What the buckets remember."""
    return dict(_heads(spark, checkpoint))


def _heads(spark: SparkSession, checkpoint: Path) -> Iterator[tuple[int, Holding]]:
    for bucket, memory in memories(spark, checkpoint):
        yield bucket, Holding.from_bytes(memory)


def memories(spark: SparkSession, checkpoint: Path, version: int = VERSION) -> Iterator[tuple[int, bytes]]:
    """The buckets, with what each remembers; none before the first batch is committed. BadInput if that is of
    another version."""
    try:
        heads = state_of(spark, checkpoint, "head")
        heads.schema  # noqa: B018 (Spark Connect looks at the state only now)
    except PySparkException:
        return
    for row in heads.select("key", "value").collect():
        check_version(row["value"]["version"], version)
        yield row["key"][0], row["value"]["memory"]


def _segments(spark: SparkSession, checkpoint: Path, bucket: int) -> dict[int, pa.Table]:
    return dict(segments_of(spark, checkpoint, bucket))


def segments_of(spark: SparkSession, checkpoint: Path, bucket: int) -> Iterator[tuple[int, pa.Table]]:
    """The rows that a bucket holds, by segments, one after the other."""
    rows = state_of(spark, checkpoint, "rows").where(F.col("key.bucket") == bucket)
    for row in rows.select("user_map_key.segment", "user_map_value.rows").toLocalIterator():
        yield row["segment"], from_blob(row["rows"])


def state_of(spark: SparkSession, checkpoint: Path, name: str) -> Any:
    """The rows of a variable of the state."""
    reader = spark.read.format("statestore").option("stateVarName", name)
    return reader.load(f"file:{checkpoint.resolve()}")


def _of_bucket(holding: Holding, segments: dict[int, pa.Table], settings: Settings) -> Iterator[Held]:
    here = {(stream, number) for stream, number in zip(holding.stream, holding.number, strict=True)}
    delivered = holding.is_delivered(holding.cause_stream, holding.cause_number)
    previous = holding.is_delivered(holding.stream, holding.number - 1)
    for at in np.argsort(holding.arrival, kind="stable").tolist():
        if holding.part[at]:
            continue
        place = int(holding.place[at])
        links = Links(segments[place >> SEGMENT_BITS].slice(place & ROW_MASK, 1), settings)
        unmet = [] if previous[at] else [(int(holding.stream[at]), int(holding.number[at]) - 1)]
        for which in range(int(holding.cause_begin[at]), int(holding.cause_begin[at + 1])):
            if not delivered[which]:
                unmet.append((int(holding.cause_stream[which]), int(holding.cause_number[which])))
        waits = []
        for stream, number in unmet:
            wanted = links.wanted(0, holding.key_of(stream), number)
            held = (stream, number) in here and not wanted.is_cut
            waits.append(Wait(wanted, held, holding.is_noted(wanted.key(), number)))
        own = links.wanted(0, holding.key_of(int(holding.stream[at])), int(holding.number[at]))
        name = own.source if settings.parent is not None else own.name
        yield Held(own, name, int(holding.arrival[at]), waits)


def came_elsewhere(spark: SparkSession, checkpoint: Path, wanted: Iterable[Wanted]) -> dict[Wanted, str]:
    """The messages that are waited for and came for another receiver, and for which one.

    Where the receivers are finer than the domain in which sources number their messages, that is what happens
    to nearly all of them.
    """
    missing = set(wanted)
    found: dict[Wanted, str] = {}
    for _, holding in _heads(spark, checkpoint) if missing else ():
        for receiver in holding.receiver_name:
            for each in missing - found.keys():
                if receiver not in ("", each.receiver) and holding.has_come(
                    each._replace(receiver=receiver).key(), each.number
                ):
                    found[each] = receiver
    return found


class MergeProgress(NamedTuple):
    """How far a merge has come."""

    held: int = 0
    bound: int | None = None
    """up to where messages were released"""
    sources: Mapping[str, int] = MappingProxyType({})
    """how far each source is: its largest r"""
    oldest: int | None = None
    """the smallest r + c of what is held"""


def merge_progress(spark: SparkSession, checkpoint: Path) -> MergeProgress:
    """How far a merge has come, by its state."""
    held, bound, progress, oldest = 0, NEVER, dict[str, int](), list[int]()
    for _, data in memories(spark, checkpoint, MERGE_VERSION):
        memory = Memory.from_bytes(data)
        held += len(memory.place)
        oldest += [int(memory.held["rc"].min())] if len(memory.place) else []
        bound = max(bound, memory.bound)
        for name, r in zip(memory.names, memory.progress.tolist(), strict=True):
            progress[name] = max(r, progress.get(name, NEVER))
    return MergeProgress(held, None if bound == NEVER else bound, progress, min(oldest, default=None))

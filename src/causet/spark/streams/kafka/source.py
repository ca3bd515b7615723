"""Kafka as a source of streams: topics of a broker as `spark.readStream.format("causet-kafka")`.

A partition of a topic is read by a task; messages of transactions that were aborted are not read.

Rule: no message is skipped in silence. Offsets that a query has yet to read and that are gone, since
retention removed them or the topic was deleted and recreated, are a *gap*: an error that names topic,
partition and both offsets; or, with `gaps=skip`, a line in a file of gaps, and reading goes on at the first
offset that is there. The id of a topic is a part of the offsets, since a recreated topic may have more
messages than the one before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from causet.errors import BadInput, quote
from causet.spark.streams.json_lines import is_one_value
from causet.spark.streams.kafka import client as kafka_client
from causet.spark.streams.kafka.client import (
    RETRY,
    Address,
    Cluster,
    OutOfRange,
    Retry,
    client,
    committed_reader,
    consumed,
)
from causet.spark.streams.kafka.gaps import GAPS, SKIP, STOP, Gap, note_gap
from causet.spark.streams.kafka.rows import SCHEMA, batch_of
from causet.spark.streams.pack import FAULT, SIZE

FORMAT = "causet-kafka"
ATTRIBUTES = (
    *("id", "source", "type", "sequence"),
    *("causalversion", "causalprocess", "causaldomain", "causalgroups", "causalnumbers"),
    *("causaldeps", "causaltime", "causalcut", "causalpriority", "causalscope", "causalbypass"),
)
PER_BATCH = 1_000_000
Offsets = dict[str, Any]
"""`topic:partition` → the next offset to be read; `topic` → the id of the topic."""


class KafkaSource(DataSource):
    """Topics of a broker, as `spark.readStream.format("causet-kafka")`.

    Options: `servers`, `topics` (with commas), `per_batch`, `gaps` (stop or skip), `gap_folder` (where gaps
    that are skipped are noted), `retry` (seconds for which a broker that is away is waited for).
    """

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return SCHEMA

    def streamReader(self, schema: Any) -> DataSourceStreamReader:
        return KafkaReader(dict(self.options))


@dataclass(frozen=True)
class Stretch(InputPartition):
    """Offsets of a partition: from, to; and the id of the topic that is meant."""

    topic: str
    partition: int
    begin: int
    end: int
    id: str | None = None


@dataclass(frozen=True)
class Look:
    """What is there now."""

    bounds: dict[str, tuple[int, int]]
    ids: dict[str, str]

    def highs(self) -> Offsets:
        return {**{name: high for name, (_, high) in self.bounds.items()}, **self.ids}


class KafkaReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans batches in a process of its own, and reads their partitions in tasks."""

    def __init__(self, options: dict[str, str]) -> None:
        self.servers = options["servers"]
        self.topics = options["topics"].split(",")
        self.per_batch = int(options.get("per_batch", PER_BATCH))
        self.retry = float(options.get("retry", RETRY))
        self.gaps = options.get("gaps", STOP)
        self.gap_folder = Path(options["gap_folder"]) if options.get("gap_folder") else None
        if self.gaps not in GAPS:
            raise BadInput(f"gaps is {' or '.join(GAPS)}, not {quote(self.gaps)}")
        if self.gaps == SKIP and self.gap_folder is None:
            raise BadInput("gaps can be skipped only with a folder in which they are noted: gap_folder")
        self.target: Offsets | None = None
        self._cluster: Cluster | None = None
        self._answered = False

    def __getstate__(self) -> dict[str, Any]:
        """For tasks: without connections."""
        return {**self.__dict__, "_cluster": None}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self.per_batch)

    def initialOffset(self) -> Offsets:
        now = self._look()
        return {**{name: low for name, (low, _) in now.bounds.items()}, **now.ids}

    def prepareForTriggerAvailableNow(self) -> None:
        self.target = self._look().highs()

    def latestOffset(self, start: Offsets, limit: ReadLimit) -> Offsets:
        now = self._look()
        begins = {}
        for name in [*now.bounds, *(name for name in places_of(start) if name not in now.bounds)]:
            begins[name], gap = where(name, start, now)
            if gap is not None and self.gaps == STOP:
                raise BadInput(str(gap))
        ends = {name: max(end, begins[name]) for name, end in self._ends(now).items()}
        if not isinstance(limit, ReadAllAvailable):
            most = limit.max_rows if isinstance(limit, ReadMaxRows) else self.per_batch
            ends = _share(begins, ends, most)
        return {**ends, **now.ids}

    def _ends(self, now: Look) -> dict[str, int]:
        """Up to where may be read: all that is there, or what was there when the run began; but of a topic
        that was recreated since, what is there when that is first seen."""
        if self.target is not None:
            for name in now.bounds:
                topic = split(name)[0]
                if name not in self.target or self.target.get(topic) != now.ids.get(topic):
                    self.target[name] = now.bounds[name][1]
            self.target |= now.ids
        return {
            name: high if self.target is None else min(self.target[name], high)
            for name, (_, high) in now.bounds.items()
        }

    def reportLatestOffset(self) -> Offsets:
        return self._look().highs()

    def partitions(self, start: Offsets, end: Offsets) -> Sequence[InputPartition]:
        """Called again, without `latestOffset`, for a batch that was planned before a restart."""
        now = self._look()
        found = []
        for name in places_of(end):
            topic, partition = split(name)
            wanted, stop, id = start.get(name, 0), end[name], end.get(topic)
            if wanted == stop and start.get(topic) in (id, None):
                continue
            begin, gap = where(name, start, now)
            low, high = now.bounds.get(name, (0, 0))
            if (id is not None and id != now.ids.get(topic)) or stop > high:
                # What was planned is gone: all of it, or its end.
                begin, gap = stop, Gap(topic, partition, wanted, stop, True)
            elif gap is None and wanted > stop:
                # It was planned when the topic had just been recreated, and has grown since.
                begin, gap = low, Gap(topic, partition, wanted, low, True)
            if gap is not None:
                self._report(gap)
            if begin < stop:
                found.append(Stretch(topic, partition, begin, stop, id))
        return found

    def _report(self, gap: Gap) -> None:
        if self.gaps == STOP:
            raise BadInput(str(gap))
        assert self.gap_folder is not None
        note_gap(self.gap_folder, gap)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Stretch)
        topic, number, begin = partition.topic, partition.partition, partition.begin
        cluster = Cluster(Retry(self.servers, self.retry))
        consumer = committed_reader(self.servers)
        try:
            while begin < partition.end:
                place = client().TopicPartition(topic, number, begin)
                try:
                    for messages in consumed(consumer, place, partition.end, self.retry):
                        yield batch_of(messages)
                    break
                except OutOfRange as error:  # retention was faster than this task
                    low, _ = cluster.bounds([(topic, number)])[topic, number]
                    first = min(max(low, error.offset), partition.end)
                    self._report(Gap(topic, number, error.offset, first, low <= error.offset))
                    begin = first if low > error.offset else partition.end
        finally:
            consumer.close()
        now = cluster.topics([topic]).get(topic)
        if partition.id is not None and (now is None or now.id != partition.id):
            raise BadInput(
                f"topic {quote(topic)} was deleted while offsets {partition.begin} to {partition.end} "
                f"of partition {number} were read; start the command again, which reports what is lost"
            )

    def _look(self) -> Look:
        if self._cluster is None:
            self._cluster = Cluster(Retry(self.servers, self.retry))
        # A first contact that fails is more likely a mistake than a broker that restarts.
        patience = self.retry if self._answered else min(self.retry, kafka_client.PATIENCE)
        self._cluster.retry = Retry(self.servers, patience)
        topics = self._cluster.topics(self.topics)
        self._answered = True
        missing = [name for name in self.topics if name not in topics]
        if missing:
            raise BadInput(
                f"Kafka at {self.servers} has no topic {quote(missing[0])}: make it, or correct the name"
            )
        places = [(name, number) for name, about in topics.items() for number in range(about.partitions)]
        bounds = self._cluster.bounds(places)
        return Look(
            {f"{topic}:{number}": bounds[topic, number] for topic, number in places},
            {name: about.id for name, about in topics.items() if about.id is not None},
        )


def split(name: str) -> tuple[str, int]:
    """Topic and partition. (A topic's name has no colon.)"""
    topic, _, partition = name.rpartition(":")
    return topic, int(partition)


def places_of(offsets: Mapping[str, Any]) -> list[str]:
    """The partitions of offsets, without the ids of topics."""
    return [name for name in offsets if ":" in name]


def where(name: str, start: Offsets, now: Look) -> tuple[int, Gap | None]:
    """Where reading of a partition goes on, and the gap before that, if there is one."""
    topic, partition = split(name)
    wanted = start.get(name, 0)
    low, high = now.bounds.get(name, (0, 0))
    known = start.get(topic)
    if (known is not None and known != now.ids.get(topic)) or wanted > high:
        return low, Gap(topic, partition, wanted, low, True)
    if wanted < low:
        return low, Gap(topic, partition, wanted, low, False)
    return wanted, None


def _share(begins: Mapping[str, int], ends: Mapping[str, int], most: int) -> dict[str, int]:
    """Ends that are closer, so that about `most` messages are read, from each partition its share."""
    waiting = {name: end - begins[name] for name, end in ends.items()}
    whole = sum(waiting.values())
    if whole <= most:
        return dict(ends)
    share = {name: -(-count * most // whole) for name, count in waiting.items()}
    return {name: begins[name] + min(share[name], waiting[name]) for name in ends}


def read_kafka(
    spark: SparkSession,
    address: Address,
    per_batch: int,
    extra: Sequence[str] = (),
    *,
    gaps: str = STOP,
    gap_folder: Path | None = None,
    retry: float = RETRY,
    size: bool = False,
) -> DataFrame:
    """The messages of topics as a stream, with the attributes of their envelopes: of the headers in binary
    mode, else of the value in structured mode. What is neither has none, and is refused further on; what
    cannot be a message is named in the column FAULT. With `size`, SIZE has the bytes that a message takes in
    another topic, about and rather too many than too few."""
    spark.dataSource.register(KafkaSource)
    reader = spark.readStream.format(FORMAT).option("servers", address.servers)
    reader = reader.option("topics", ",".join(address.topics)).option("per_batch", per_batch)
    reader = reader.option("gaps", gaps).option("retry", retry)
    if gap_folder is not None:
        reader = reader.option("gap_folder", str(gap_folder.resolve()))
    rows = reader.load()
    names = list(dict.fromkeys([*ATTRIBUTES, *(each for each in extra if each not in rows.columns)]))
    schema = ", ".join(f"`{name}` string" for name in names)
    text = F.try_validate_utf8(F.col("value").cast("string"))
    parsed = rows.withColumn("__envelope", F.when(F.col(FAULT).isNull(), F.from_json(text, schema)))
    envelope = F.col("__envelope")

    def header(name: str) -> Column:
        found = F.filter("headers", lambda each: each["key"] == F.lit(f"ce_{name}"))
        return F.try_validate_utf8(F.try_element_at(found, F.lit(1))["value"].cast("string"))

    structured = header("source").isNull() & envelope["source"].isNotNull()
    more = F.when(structured & ~is_one_value(text), "the value has more than one JSON value")
    parsed = parsed.withColumn(FAULT, F.coalesce(FAULT, more))
    parsed = parsed.withColumn("__envelope", F.when(F.col(FAULT).isNull(), envelope))
    attributes = {name: F.coalesce(header(name), envelope[name]) for name in names}
    found = parsed.withColumns(attributes).drop("__envelope")
    if not size:
        return found.drop(SIZE)
    # The receiver becomes the key and a header: it is one of these.
    again = [F.coalesce(F.octet_length(F.col(f"`{name}`")), F.lit(0)) for name in {"source", *extra}]
    return found.withColumn(SIZE, sum((2 * each for each in again), F.col(SIZE)))

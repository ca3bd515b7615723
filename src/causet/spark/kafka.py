"""Kafka as a source and a sink of streams.

A data source of PySpark's own interface, on librdkafka: it needs no jar beside Spark's, so that `pip install`
is enough. A partition of a topic is read by a task; messages of transactions that were aborted are not read.

The sink writes one transaction per batch, with a record in the topic `TOPIC-batches` that says which batch it
was: so a batch that is run again after a crash is seen to be there already, and a reader with
`isolation.level=read_committed` finds every message once, those of a receiver in their order. (Spark's own
Kafka sink gives every message at least once.)
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit

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

from causet.delivery import DIVERTED
from causet.model import BadInput
from causet.spark.packing import Blobs

FORMAT = "causet-kafka"
SCHEMA = (
    "key binary, value binary, topic string, partition int, offset long, timestamp long, "
    "headers array<struct<key:string,value:binary>>"
)
ARROW = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.int64()),
        ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
    ]
)
ATTRIBUTES = ("id", "source", "type", "sequence", "causaldeps", "causaltime", "causaldomain")
AT_A_TIME = 10_000
PATIENCE = 30.0
"""Seconds for a broker to answer."""
PER_BATCH = 1_000_000
RESULTS = ("receiver", "index", "status", "waited", "missing", "problem")


@dataclass(frozen=True)
class Address:
    """`kafka://host:port/topic`, or several topics with commas."""

    servers: str
    topics: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> Address | None:
        """None if it is no such address; BadInput if it tries to be one."""
        if not text.startswith("kafka://"):
            return None
        parts = urlsplit(text)
        topics = tuple(each for each in parts.path.lstrip("/").split(",") if each)
        try:
            fine = parts.hostname and parts.port and topics
        except ValueError:
            fine = None
        if not fine or "/" in "".join(topics):
            raise BadInput(f"{text}: write kafka://host:port/topic")
        return cls(parts.netloc, topics)


def client() -> Any:
    """librdkafka's Python client; BadInput says how to get it."""
    try:
        import confluent_kafka
    except ImportError:
        raise BadInput("Kafka needs a client: pip install 'causet[kafka]'") from None
    return confluent_kafka


# ---------------------------------------------------------------- source


class KafkaSource(DataSource):
    """Topics of a broker, as `spark.readStream.format("causet-kafka")`."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return SCHEMA

    def streamReader(self, schema: Any) -> DataSourceStreamReader:
        return KafkaReader(dict(self.options))


@dataclass(frozen=True)
class Stretch(InputPartition):
    """Offsets of a partition: from, to."""

    topic: str
    partition: int
    begin: int
    end: int


class KafkaReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Offsets are `topic:partition` → the next one to be read."""

    def __init__(self, options: dict[str, str]) -> None:
        self.servers = options["servers"]
        self.topics = options["topics"].split(",")
        self.per_batch = int(options.get("per_batch", PER_BATCH))
        self.target: dict[str, int] | None = None

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self.per_batch)

    def initialOffset(self) -> dict[str, int]:
        return {name: low for name, (low, _) in self._bounds().items()}

    def prepareForTriggerAvailableNow(self) -> None:
        self.target = self._highs()

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        ends = self.target if self.target is not None else self._highs()
        ends = {name: max(end, start.get(name, 0)) for name, end in ends.items()}
        if isinstance(limit, ReadAllAvailable):
            return ends
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else self.per_batch
        waiting = {name: end - start.get(name, 0) for name, end in ends.items()}
        whole = sum(waiting.values())
        if whole <= most:
            return ends
        share = {name: -(-count * most // whole) for name, count in waiting.items()}
        return {name: start.get(name, 0) + min(share[name], waiting[name]) for name in ends}

    def reportLatestOffset(self) -> dict[str, int]:
        return self._highs()

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        found = []
        for name, stop in end.items():
            begin = start.get(name, 0)
            if begin < stop:
                topic, _, partition = name.rpartition(":")
                found.append(Stretch(topic, int(partition), begin, stop))
        return found

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Stretch)
        kafka = client()
        consumer = committed_reader(self.servers)
        try:
            place = kafka.TopicPartition(partition.topic, partition.partition, partition.begin)
            for messages in consumed(consumer, place, partition.end):
                yield _batch(messages)
        finally:
            consumer.close()

    def _bounds(self) -> dict[str, tuple[int, int]]:
        kafka = client()
        consumer = committed_reader(self.servers)
        try:
            found = {}
            for topic in self.topics:
                about = consumer.list_topics(topic, PATIENCE).topics[topic]
                if about.error is not None:
                    raise BadInput(f"topic {topic!r} cannot be read: {about.error.str()}")
                for number in sorted(about.partitions):
                    place = kafka.TopicPartition(topic, number)
                    found[f"{topic}:{number}"] = consumer.get_watermark_offsets(place, PATIENCE)
            return found
        except kafka.KafkaException as error:
            raise BadInput(no_answer(self.servers, error)) from None
        finally:
            consumer.close()

    def _highs(self) -> dict[str, int]:
        return {name: high for name, (_, high) in self._bounds().items()}


def committed_reader(servers: str) -> Any:
    """A consumer that sees only what is committed, and is told where a partition ends."""
    return client().Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "causet",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "log_level": 0,
        }
    )


def consumed(consumer: Any, place: Any, end: int) -> Iterator[list[Any]]:
    """The messages of a partition from a place to an offset, some at a time. The last offsets may be those of
    the marks that transactions leave, which are no messages."""
    kafka = client()
    consumer.assign([place])
    at, heard = place.offset, time.monotonic()
    while at < end:
        # It waits for as many as it is asked for: so not for long.
        found = []
        for message in consumer.consume(AT_A_TIME, 0.1):
            heard = time.monotonic()
            error = message.error()
            if error is not None and error.code() != kafka.KafkaError._PARTITION_EOF:
                raise BadInput(f"Kafka: {error.str()}")
            if error is not None:
                at = max(at, message.offset())
            elif message.offset() < end:
                found.append(message)
                at = message.offset() + 1
            else:
                at = end
        if found:
            yield found
        elif time.monotonic() - heard > PATIENCE:
            name = f"{place.topic}, partition {place.partition}"
            raise BadInput(f"Kafka gives no more of {name}, after offset {at}")


def _batch(messages: list[Any]) -> pa.RecordBatch:
    rows = {
        "key": [message.key() for message in messages],
        "value": [message.value() for message in messages],
        "topic": [message.topic() for message in messages],
        "partition": [message.partition() for message in messages],
        "offset": [message.offset() for message in messages],
        "timestamp": [message.timestamp()[1] for message in messages],
        "headers": [
            [{"key": name, "value": value} for name, value in message.headers() or ()] for message in messages
        ],
    }
    return pa.RecordBatch.from_pydict(rows, schema=ARROW)


def read_kafka(spark: SparkSession, address: Address, per_batch: int, extra: Sequence[str] = ()) -> DataFrame:
    """The messages of topics as a stream, with the attributes of their envelopes: of the headers in binary
    mode, else of the value in structured mode. What is neither has none, and is refused further on."""
    spark.dataSource.register(KafkaSource)
    reader = spark.readStream.format(FORMAT).option("servers", address.servers)
    rows = reader.option("topics", ",".join(address.topics)).option("per_batch", per_batch).load()
    names = list(dict.fromkeys([*ATTRIBUTES, *(each for each in extra if each not in rows.columns)]))
    schema = ", ".join(f"`{name}` string" for name in names)
    parsed = rows.withColumn("__envelope", F.from_json(F.col("value").cast("string"), schema))

    def attribute(name: str) -> Column:
        header = F.filter("headers", lambda each: each["key"] == F.lit(f"ce_{name}"))
        text = F.try_element_at(header, F.lit(1))["value"].cast("string")
        return F.coalesce(text, F.col("__envelope")[name])

    return parsed.withColumns({name: attribute(name) for name in names}).drop("__envelope")


# ---------------------------------------------------------------- sink


def no_answer(servers: str, error: Any) -> str:
    return (
        f"Kafka at {servers} does not answer ({error.args[0].str()}): see that a broker runs there and that "
        "name and port are right"
    )


class KafkaSink:
    """A topic, and `TOPIC-diverted` beside it for what is diverted."""

    form = "kafka"

    def __init__(self, address: Address, query: str) -> None:
        if len(address.topics) != 1:
            raise BadInput("a sink is one topic: kafka://host:port/topic")
        self.servers = address.servers
        self.topic = address.topics[0]
        self.query = query

    @property
    def batches(self) -> str:
        return f"{self.topic}-batches"

    most_bytes: int | None = None

    def check(self, name: str, fresh: bool) -> None:
        """Nothing yet."""

    def withdraw(self) -> None:
        """Nothing yet."""

    def claim(self, name: str, about: object) -> None:
        self.prepare(True)

    def prepare(self, fresh: bool) -> None:
        """Make sure of the topic of batches, which keeps the last record of every query."""
        kafka = client()
        topics: Any = import_module("confluent_kafka.admin")
        admin = topics.AdminClient({"bootstrap.servers": self.servers, "log_level": 0})
        try:
            known = admin.list_topics(timeout=PATIENCE).topics
            new = [topics.NewTopic(self.batches, 1, config={"cleanup.policy": "compact"})]
            new += [topics.NewTopic(name) for name in (self.topic, f"{self.topic}-diverted")]
            new = [each for each in new if each.topic not in known]
            for future in admin.create_topics(new).values() if new else ():
                future.result(PATIENCE)
        except kafka.KafkaException as error:
            raise BadInput(no_answer(self.servers, error)) from None

    def clean(self) -> None:
        """A transaction that was not finished is aborted by whoever begins the next one."""

    def last_batch(self) -> int:
        """The last batch that is there; -1 if none is."""
        kafka = client()
        consumer = committed_reader(self.servers)
        try:
            place = kafka.TopicPartition(self.batches, 0)
            low, high = consumer.get_watermark_offsets(place, PATIENCE)
            place.offset = low
            found = -1
            for messages in consumed(consumer, place, high):
                mine = [message for message in messages if message.key() == self.query.encode()]
                found = max([found, *(json.loads(message.value())["batch"] for message in mine)])
            return found
        finally:
            consumer.close()

    def write(self, rows: DataFrame | Blobs, batch: int) -> None:
        """Write the rows of a batch in one transaction; or none, if they are there already."""
        rows = rows.rows() if isinstance(rows, Blobs) else rows
        if batch <= self.last_batch():
            rows.write.format("noop").mode("overwrite").save()  # the state must move on all the same
            return
        kept = [name for name in ("key", "value", "headers") if name in rows.columns]
        plain = [name for name in rows.columns if name not in {*kept, *RESULTS}]
        results = F.to_json(F.struct(*(name for name in RESULTS if name in rows.columns)))
        value = F.col("value") if "value" in kept else F.to_json(F.struct(*plain)).cast("binary")
        headers = F.col("headers") if "headers" in kept else F.lit(None)
        empty = "array<struct<key:string,value:binary>>"
        receiver = F.col("receiver") if "receiver" in rows.columns else F.col("source")
        narrow = rows.select(
            receiver.alias("receiver"),
            F.col("status").alias("status"),
            value.alias("value"),
            headers.cast(empty).alias("headers"),
            results.alias("results"),
        )
        task = Transaction(self.servers, self.topic, self.batches, self.query, batch)
        narrow.repartition(1).mapInArrow(task, "sent long").collect()


@dataclass(frozen=True)
class Transaction:
    """Sends the rows of a batch, and the record that says so: all of it, or nothing."""

    servers: str
    topic: str
    batches: str
    query: str
    batch: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        kafka = client()
        producer = kafka.Producer(
            {
                "bootstrap.servers": self.servers,
                "transactional.id": f"causet-{self.query}",
                "linger.ms": 20,
                "log_level": 0,
            }
        )
        try:
            producer.init_transactions(PATIENCE)  # whoever began one before us cannot go on with it
            producer.begin_transaction()
            sent = 0
            for batch in batches:
                for row in batch.to_pylist():
                    self._send(producer, row)
                    sent += 1
            told = json.dumps({"batch": self.batch, "messages": sent}).encode()
            producer.produce(self.batches, told, self.query.encode())
            producer.commit_transaction(PATIENCE)
        except kafka.KafkaException as error:
            raise BadInput(f"Kafka at {self.servers}: {error.args[0].str()}") from None
        yield pa.RecordBatch.from_pydict({"sent": [sent]})

    def _send(self, producer: Any, row: dict[str, Any]) -> None:
        topic = f"{self.topic}-diverted" if row["status"] == DIVERTED else self.topic
        headers = [(each["key"], each["value"]) for each in row["headers"] or ()]
        headers += [
            (f"causet_{name}", value if isinstance(value, str) else json.dumps(value))
            for name, value in json.loads(row["results"]).items()
        ]
        key = None if row["receiver"] is None else row["receiver"].encode()
        while True:
            try:
                producer.produce(topic, row["value"], key, headers=headers)
                return
            except BufferError:
                producer.poll(0.1)

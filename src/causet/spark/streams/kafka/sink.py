"""Kafka as a sink of streams: a topic, `TOPIC-diverted` beside it, `TOPIC-batches` and `TOPIC-owner`.

A batch is one transaction, sent by one task. In it goes, too, how far the query has come: as the offset of a
consumer group, which is found in constant time, and as a record in `TOPIC-batches`, for when Kafka has
forgotten that offset (after seven days). So a reader with `isolation.level=read_committed` finds every
message once, those of a receiver in their order. (Spark's own Kafka sink gives every message at least once.)

Rule: fence, then ask, then write, all in the task. `init_transactions` ends whatever an earlier producer of
this query began, and waits for the end of a commit that it had begun; only then is it known whether the batch
is there. A task that is run again after its commit finds it; a zombie that goes on after that is refused by
the broker.

A topic belongs to one query: the last record of `TOPIC-owner` names it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from causet.errors import BadInput, printable, quote
from causet.spark.columns import quoted
from causet.spark.streams.kafka import client as kafka_client
from causet.spark.streams.kafka.client import (
    LARGEST,
    RETRY,
    Address,
    Cluster,
    Fenced,
    Retry,
    as_text,
    client,
    committed_reader,
    connected,
    consumed,
    text_of,
)
from causet.spark.streams.pack import OWN, Blobs
from causet.status import DIVERTED

RESULTS = ("receiver", "index", "status", "waited", "missing", "problem")
PLACE = ("source", "id", "sequence", "topic", "partition", "offset", "file", "line")
"""Columns that say which message it was, and where it stood."""
OURS = "causet_"
OWNER_KEY = b"owner"
OVERHEAD = 128
"""Bytes that a record takes beside its key, value and headers, at most."""
MARGIN = 2048
"""Bytes for the headers that are added to a message, besides the receiver."""
PER_HEADER = 10
"""Bytes for the lengths of a header, at most."""
LONGEST_TEXT = 200
"""Letters of a header that says which message was too large."""
WINDOW = 100
"""Records that are looked at first, from the end of `TOPIC-batches`."""
OPEN_AT_MOST = 900.0
"""Seconds for a transaction: as many as a broker allows unless it is set up otherwise."""
OPEN_AT_LEAST = 60.0
CLAIMING = 30.0
"""Seconds for the transaction of a claim."""


# ---------------------------------------------------------------- transactions


@contextmanager
def producing(retry: Retry, name: str, seconds: float, largest: int | None = None) -> Iterator[Any]:
    """A producer with this transactional id, all earlier ones of which cannot go on. What is begun in the
    block and not committed is taken back."""
    producer = _fencing(retry, name, seconds, largest)
    try:
        yield producer
    except BaseException:
        with suppress(client().KafkaException):
            producer.purge()
            producer.abort_transaction(kafka_client.PER_CALL)
        raise


def _fencing(retry: Retry, name: str, seconds: float, largest: int | None) -> Any:
    config = {
        **connected(retry.servers),
        "transactional.id": name,
        "transaction.timeout.ms": int(1000 * seconds),
        "linger.ms": 20,
        "message.max.bytes": min(max(largest or LARGEST, 1000), LARGEST),
    }
    producer = client().Producer(config)

    def fence(left: float) -> bool:
        try:
            producer.init_transactions(left)
        except client().KafkaException as error:
            if error.args[0].code() != client().KafkaError.INVALID_TRANSACTION_TIMEOUT:
                raise
            return False
        return True

    if retry(fence):
        return producer
    if seconds <= OPEN_AT_LEAST:
        raise BadInput(f"Kafka at {retry.servers} allows no transactions of {seconds:g} s")
    return _fencing(retry, name, OPEN_AT_LEAST, largest)


def commit(producer: Any, retry: Retry) -> None:
    """Commit. The call is repeated until its outcome is known."""
    retry(producer.commit_transaction)


@dataclass(frozen=True)
class Progress:
    """How far a query has come in a topic."""

    topic: str
    query: str
    retry: Retry

    @property
    def group(self) -> str:
        return f"causet-{self.query}"

    def last_batch(self) -> int:
        """The last batch that is there; -1 if there is none. It is sure only for the producer that has fenced
        all others of this query; transactions of other producers do not matter."""
        place = client().TopicPartition(f"{self.topic}-batches", 0)
        consumer = committed_reader(self.retry.servers, self.group)
        try:
            (found,) = self.retry(lambda seconds: self._committed(consumer, place, seconds))
            if found.offset > 0:
                return int(found.offset) - 1
            # Claimed, and nothing written since; unless by an earlier release, which left only records.
            return self._recorded(consumer, hidden=found.offset < 0)
        finally:
            consumer.close()

    @staticmethod
    def _committed(consumer: Any, place: Any, seconds: float) -> list[Any]:
        found: list[Any] = consumer.committed([place], seconds)
        if found[0].error is not None:
            raise client().KafkaException(found[0].error)
        return found

    def _recorded(self, consumer: Any, hidden: bool) -> int:
        """By the records in `TOPIC-batches`, looked at from the end. If records may be hidden behind an open
        transaction, its end is waited for."""
        name = f"{self.topic}-batches"
        low, high = Cluster(self.retry).bounds([(name, 0)], not hidden)[name, 0]
        window, end = WINDOW, high
        while end > low:
            begin = max(low, end - window)
            found = [
                json.loads(message.value())["batch"]
                for message in records(consumer, name, begin, end, self.retry)
                if message.key() == self.query.encode()
            ]
            if found:
                return int(max(found))
            window, end = 10 * window, begin
        return -1

    def advance(self, producer: Any, batch: int, messages: int) -> None:
        """Say in the producer's transaction that a batch is there."""
        name = f"{self.topic}-batches"
        told = json.dumps({"batch": batch, "messages": messages}).encode()
        producer.produce(name, told, self.query.encode(), partition=0)
        self.note(producer, batch)

    def note(self, producer: Any, batch: int) -> None:
        """Say in the producer's transaction which batch is the last one, as the offset of the group."""
        place = client().TopicPartition(f"{self.topic}-batches", 0, batch + 1)
        consumer = committed_reader(self.retry.servers, self.group)
        try:
            about = consumer.consumer_group_metadata()
            self.retry(lambda seconds: producer.send_offsets_to_transaction([place], about, seconds))
        finally:
            consumer.close()


def records(consumer: Any, topic: str, begin: int, end: int, retry: Retry) -> Iterator[Any]:
    """The committed records of a topic with one partition, between two offsets. If a transaction is open
    there, its end is waited for."""
    place = client().TopicPartition(topic, 0, begin)
    for messages in consumed(consumer, place, end, retry.seconds):
        yield from messages


@dataclass(frozen=True)
class Transaction:
    """Sends the rows of a batch, and the record that says so: all of it, or nothing; and nothing, if the
    batch is there already."""

    servers: str
    topic: str
    query: str
    batch: int
    largest: int
    """bytes of a message, at most"""
    retry: float = RETRY

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        retry = Retry(self.servers, self.retry)
        progress = Progress(self.topic, self.query, retry)
        sent = 0
        try:
            with producing(retry, f"causet-{self.query}", OPEN_AT_MOST, self.largest) as producer:
                if self.batch <= progress.last_batch():
                    for _ in batches:  # the state must move on all the same
                        pass
                else:
                    producer.begin_transaction()
                    for batch in batches:
                        for row in batch.to_pylist():
                            self._send(producer, row)
                            sent += 1
                    progress.advance(producer, self.batch, sent)
                    commit(producer, retry)
        except client().KafkaException as error:
            raise BadInput(f"Kafka at {self.servers}: {text_of(error)}") from None
        except Fenced as error:  # the driver knows BadInput by its name
            raise BadInput(str(error)) from None
        yield pa.RecordBatch.from_pydict({"sent": [sent]})

    def _send(self, producer: Any, row: Mapping[str, Any]) -> None:
        for topic, key, value, headers in self._forms(row):
            taken = size_of(key, value, headers) <= self.largest - OVERHEAD
            if taken and self._produced(producer, topic, value, key, headers):
                return
        raise BadInput(f"topic {quote(self.topic)} refuses {OVERHEAD + MARGIN} bytes: raise its limit")

    def _forms(self, row: Mapping[str, Any]) -> Iterator[tuple[str, bytes | None, bytes | None, Headers]]:
        """The record for a row; and if that is too large: with fewer missing causes named; then without its
        value, and with just enough to know which message it was."""
        topic = f"{self.topic}-diverted" if row["status"] == DIVERTED else self.topic
        kept = [(each["key"], each["value"]) for each in row["headers"] or ()]
        kept = [(name, value) for name, value in kept if not name.startswith(OURS)]
        results = json.loads(row["results"])
        place = json.loads(row.get("place") or "{}")
        if row["status"] == DIVERTED:
            results |= {name: place[name] for name in ("topic", "partition", "offset") if name in place}
        value = row["value"]
        key = None if row["receiver"] is None else row["receiver"].encode()
        yield topic, key, value, kept + _told(results)
        missing = results.get("missing")
        if isinstance(missing, dict):
            room = self.largest - OVERHEAD - size_of(key, value, kept + _told({**results, "missing": {}}))
            yield topic, key, value, kept + _told({**results, "missing": _shortened(missing, room)})
        size = len(value or b"")
        why = f"topic {self.topic} takes {self.largest} bytes: the value of {size} bytes is left out"
        problem = "; ".join([*([_short(results["problem"])] if results.get("problem") else ()), why])
        told: Headers = [
            (f"ce_{name}" if name in ("source", "id", "sequence") else f"{OURS}{name}", _short(value))
            for name, value in place.items()
        ]
        results = {name: _short(value) for name, value in results.items() if name not in ("missing", *place)}
        told += _told({**results, "status": DIVERTED, "problem": problem})
        yield f"{self.topic}-diverted", key and key[:LONGEST_TEXT], None, told

    def _produced(
        self, producer: Any, topic: str, value: bytes | None, key: bytes | None, headers: Headers
    ) -> bool:
        """Whether the record is on its way; if not, it is too large after all."""
        while True:
            try:
                producer.produce(topic, value, key, headers=headers)
                return True
            except BufferError:
                producer.poll(0.1)
            except client().KafkaException as error:
                if error.args[0].code() != client().KafkaError.MSG_SIZE_TOO_LARGE:
                    raise
                return False


Headers = list[tuple[str, Any]]


def _told(results: Mapping[str, Any]) -> Headers:
    return [
        (f"{OURS}{name}", value if isinstance(value, str) else json.dumps(value))
        for name, value in results.items()
    ]


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT - 1]}…"


def _shortened(missing: Mapping[str, Any], room: int) -> dict[str, Any]:
    """As many of the missing causes as fit into so many bytes, and how many are left out."""
    room -= 64
    found: dict[str, Any] = {}
    for name, number in missing.items():
        room -= len(json.dumps({name: number}))
        if room < 0:
            break
        found[name] = number
    return {**found, "…": f"{len(missing) - len(found)} more, left out for their size"}


def size_of(key: bytes | None, value: bytes | None, headers: Headers) -> int:
    """Bytes of a record, without what every record takes."""
    texts = ((name, each.encode() if isinstance(each, str) else each or b"") for name, each in headers)
    named = sum(len(name.encode()) + len(each) + PER_HEADER for name, each in texts)
    return len(key or b"") + len(value or b"") + named


# ---------------------------------------------------------------- sink


BESIDE = ("-diverted", "-batches", "-owner")
"""What the topics of a sink are called, after its own name."""


class KafkaSink:
    """A topic, and `TOPIC-diverted` beside it for what is diverted."""

    form = "kafka"

    def __init__(self, address: Address, query: str = "", retry: float = RETRY) -> None:
        if len(address.topics) != 1:
            raise BadInput("a sink is one topic: kafka://host:port/topic")
        self.servers = address.servers
        self.topic = address.topics[0]
        self.query = query
        self.retry = retry
        self.most_bytes: int | None = None
        self._claimed = False

    @property
    def batches(self) -> str:
        return f"{self.topic}-batches"

    @property
    def owners(self) -> str:
        return f"{self.topic}-owner"

    @property
    def topics(self) -> tuple[str, str]:
        """Those that get messages."""
        return self.topic, f"{self.topic}-diverted"

    def _first(self) -> Retry:
        """For calls at the start of a command."""
        return Retry(self.servers, min(self.retry, kafka_client.PATIENCE))

    # ------------------------------------------------------------ owner

    def check(self, name: str, fresh: bool) -> None:
        """BadInput if the topic is not for the query of this name; a `fresh` query has no checkpoint yet.
        Nothing is changed."""
        self.query = name
        retry = self._first()
        cluster = Cluster(retry)
        there = cluster.topics([*self.topics, self.batches, self.owners])
        known = [each for each in self.topics if each in there]
        self._limit(cluster.largest_messages(known))
        owner = self._owner(retry) if self.owners in there else None
        if owner is not None:
            self._check_owner(owner, {name: each.id for name, each in there.items()})
            return
        begun = self.batches in there
        if fresh and begun and self._has_batches(cluster):
            raise BadInput(
                f"topic {quote(self.topic)} has batches of another query: go on with "
                "the checkpoint of that query, or name another topic"
            )
        # Topics that an earlier release made have no owner, but batches of this query.
        if not fresh and not (begun and Progress(self.topic, name, retry).last_batch() >= 0):
            raise BadInput(
                f"topic {quote(self.topic)} has no record of the query of this checkpoint: it (or "
                f"{quote(self.batches)}) was deleted or recreated, and what was written is lost; use a new "
                "checkpoint"
            )

    def _check_owner(self, owner: Mapping[str, Any], ids: Mapping[str, str | None]) -> None:
        if owner.get("query") != self.query:
            about = as_text(owner, "command", "source", "checkpoint")
            checkpoint = printable(str(owner.get("checkpoint") or "its own"))
            going_on = f"go on with --checkpoint {checkpoint}"
            if owner.get("checkpoint") and not Path(str(owner["checkpoint"])).is_dir():
                going_on = f"its checkpoint {checkpoint} is not on this machine: run it where that is"
            raise BadInput(
                f"topic {quote(self.topic)} belongs to another query{about and f' ({about})'}: {going_on}, "
                "or name another topic"
            )
        for name, id in (owner.get("topics") or {}).items():
            if id is not None and ids.get(name) != id:
                raise BadInput(
                    f"topic {quote(name)} was deleted{' and recreated' if name in ids else ''} after this "
                    "query wrote to it, and what was written is lost; use a new checkpoint and another topic"
                )

    def _has_batches(self, cluster: Cluster) -> bool:
        low, high = cluster.bounds([(self.batches, 0)], committed=False)[self.batches, 0]
        return high > low

    def _owner(self, retry: Retry) -> dict[str, Any] | None:
        """The owner's record. The topic has a few records at most."""
        low, high = Cluster(retry).bounds([(self.owners, 0)], committed=False)[self.owners, 0]
        consumer = committed_reader(self.servers)
        try:
            found = list(records(consumer, self.owners, low, high, retry))
        finally:
            consumer.close()
        if not found or found[-1].value() is None:
            return None
        try:
            owner = json.loads(found[-1].value())
        except ValueError:
            owner = None
        return owner if isinstance(owner, dict) else {"query": None}

    def claim(self, name: str, about: Mapping[str, str]) -> None:
        """Make the topics, and write down whose they are. BadInput if another query was faster."""
        self.query = name
        retry = self._first()
        cluster = Cluster(retry)
        for each in (self.owners, self.batches):
            cluster.make(each, 1, {"cleanup.policy": "compact"})
        for each in self.topics:
            cluster.make(each)
        ids = {name: each.id for name, each in cluster.topics([*self.topics, self.batches]).items()}
        self._limit(cluster.largest_messages(self.topics))
        mark = json.dumps({"query": name, **about, "topics": ids}).encode()

        def taken(owner: Mapping[str, Any] | None) -> bytes | None:
            if owner is None:
                return mark
            self._check_owner(owner, ids)
            return None

        if not self._write_owner(retry, taken):
            taken(self._owner(retry))
        self._claimed = True

    def withdraw(self) -> None:
        """The query was refused after all: leave no owner behind, if nothing was written. Topics stay."""
        if not self._claimed:
            return
        retry = self._first()

        def given_up(owner: Mapping[str, Any] | None) -> bytes | None:
            mine = owner is not None and owner.get("query") == self.query
            return b"" if mine and Progress(self.topic, self.query, retry).last_batch() < 0 else None

        self._write_owner(retry, given_up)
        self._claimed = False

    def _write_owner(self, retry: Retry, mark: Callable[[Mapping[str, Any] | None], bytes | None]) -> bool:
        """Write a mark that depends on who is the owner now; empty, it removes the owner. None: nothing is to
        be written. False if another query came between."""
        progress = Progress(self.topic, self.query, retry)
        try:
            with producing(retry, f"causet-owner-{self.topic}", CLAIMING) as producer:
                found = mark(self._owner(retry))
                if found is not None:
                    last = progress.last_batch()
                    producer.begin_transaction()
                    producer.produce(self.owners, found or None, OWNER_KEY)
                    # So that it is there from the start, and found in constant time.
                    progress.note(producer, last)
                    commit(producer, retry)
        except Fenced:
            return False
        return True

    def clean(self) -> None:
        """A transaction that was not finished is aborted by the next producer of this query."""

    # ------------------------------------------------------------ rows

    def _limit(self, largest: int) -> None:
        self.most_bytes = max(largest - OVERHEAD - MARGIN, 0)

    def last_batch(self) -> int:
        """The last batch that is there; -1 if there is none."""
        return Progress(self.topic, self.query, Retry(self.servers, self.retry)).last_batch()

    def write(self, rows: DataFrame | Blobs, batch: int) -> None:
        """Write the rows of a batch in one transaction; or none, if they are there already."""
        rows = rows.rows() if isinstance(rows, Blobs) else rows
        if self.most_bytes is None:
            self._limit(Cluster(Retry(self.servers, self.retry)).largest_messages(self.topics))
        assert self.most_bytes is not None
        largest = self.most_bytes + OVERHEAD + MARGIN
        kept = [name for name in ("key", "value", "headers") if name in rows.columns]
        plain = [name for name in rows.columns if name not in {*kept, *RESULTS} and not name.startswith(OWN)]
        results = F.to_json(F.struct(*(name for name in RESULTS if name in rows.columns)))
        value = F.col("value") if "value" in kept else F.to_json(F.struct(*map(quoted, plain))).cast("binary")
        headers = F.col("headers") if "headers" in kept else F.lit(None)
        empty = "array<struct<key:string,value:binary>>"
        receiver = F.col("receiver") if "receiver" in rows.columns else F.col("source")
        place = F.to_json(F.struct(*(name for name in PLACE if name in rows.columns)))
        maybe_too_large = (F.col("status") == DIVERTED) | (F.octet_length(value) > largest // 2)
        narrow = rows.select(
            receiver.alias("receiver"),
            F.col("status").alias("status"),
            value.alias("value"),
            headers.cast(empty).alias("headers"),
            results.alias("results"),
            F.when(maybe_too_large, place).alias("place"),
        )
        task = Transaction(self.servers, self.topic, self.query, batch, largest, self.retry)
        narrow.repartition(1).mapInArrow(task, "sent long").collect()

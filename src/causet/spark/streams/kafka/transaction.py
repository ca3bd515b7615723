"""A batch as one transaction of Kafka, sent by one task, and how far a query has come.

In the transaction goes, too, how far the query has come: as the offset of a consumer group, which is found
in constant time, and as a record in `TOPIC-batches`, for when Kafka has forgotten that offset (after seven
days).

Rule: fence, then ask, then write, all in the task. `init_transactions` ends whatever an earlier producer of
this query began, and waits for the end of a commit that it had begun; only then is it known whether the batch
is there. A task that is run again after its commit finds it; a zombie that goes on after that is refused by
the broker.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from causet.errors import BadInput, quote
from causet.spark.streams.kafka import client as kafka_client
from causet.spark.streams.kafka.client import (
    LARGEST,
    RETRY,
    Cluster,
    Fenced,
    Retry,
    client,
    committed_reader,
    connected,
    consumed,
    text_of,
)
from causet.spark.streams.kafka.rows import PER_HEADER
from causet.status import DIVERTED

Headers = list[tuple[str, Any]]

OURS = "causet_"
ENVELOPE = ("source", "causalprocess", "id", "sequence")
"""What says which message it was, and stood in its envelope."""
OVERHEAD = 128
"""Bytes that a record takes beside its key, value and headers, at most."""
MARGIN = 2048
"""Bytes for the headers that are added to a message, besides the receiver."""
LONGEST_TEXT = 200
"""Characters of a header that says which message was too large."""
WINDOW = 100
"""Records that are looked at first, from the end of `TOPIC-batches`."""
OPEN_AT_MOST = 900.0
"""Timeout of a transaction, in seconds: the default maximum of a broker."""
OPEN_AT_LEAST = 60.0


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
        raise BadInput(f"Kafka at {retry.servers} does not allow transactions of {seconds:g} s")
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
        """The last batch that is there; -1 if there is none. It is certain only for the producer that has
        fenced all others of this query; transactions of other producers do not matter."""
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
        """Record in the producer's transaction that a batch is there."""
        name = f"{self.topic}-batches"
        record = json.dumps({"batch": batch, "messages": messages}).encode()
        producer.produce(name, record, self.query.encode(), partition=0)
        self.note(producer, batch)

    def note(self, producer: Any, batch: int) -> None:
        """Record in the producer's transaction which batch is the last one, as the offset of the group."""
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
    """Sends the rows of a batch, and the record of its number: all of it, or nothing; and nothing, if
    the batch is there already."""

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
            (f"ce_{name}" if name in ENVELOPE else f"{OURS}{name}", _short(value))
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
                code = error.args[0].code()
                if code == client().KafkaError._FATAL:
                    producer.begin_transaction()  # refused with what was fatal, such as being fenced
                if code != client().KafkaError.MSG_SIZE_TOO_LARGE:
                    raise
                return False


def _told(results: Mapping[str, Any]) -> Headers:
    return [
        (f"{OURS}{name}", value if isinstance(value, str) else json.dumps(value))
        for name, value in results.items()
    ]


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT - 1]}…"


def _shortened(missing: Mapping[str, Any], room: int) -> dict[str, Any]:
    """The missing causes that fit into `room` bytes, and how many are left out."""
    room -= 64
    found: dict[str, Any] = {}
    left_out = 0
    for group, name, number in _entries(missing):
        room -= len(json.dumps({name: number} if group is None else {group: {name: number}}))
        if room < 0:
            left_out += 1
        elif group is None:
            found[name] = number
        else:
            found.setdefault(group, {})[name] = number
    return {**found, "…": f"{left_out} more, left out for their size"}


def _entries(missing: Mapping[str, Any]) -> Iterator[tuple[str | None, str, Any]]:
    """Group, or None where there are no groups; process; number."""
    for name, found in missing.items():
        if isinstance(found, dict):
            yield from ((name, process, number) for process, number in found.items())
        else:
            yield None, name, found


def size_of(key: bytes | None, value: bytes | None, headers: Headers) -> int:
    """Bytes of a record, without what every record takes."""
    texts = ((name, each.encode() if isinstance(each, str) else each or b"") for name, each in headers)
    named = sum(len(name.encode()) + len(each) + PER_HEADER for name, each in texts)
    return len(key or b"") + len(value or b"") + named

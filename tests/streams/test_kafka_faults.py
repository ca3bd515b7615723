"""Faults of and around a Kafka broker, each made at the place where it hurts: retention, topics that are made
anew, tasks that are run again, zombies, transactions that stay open, lost checkpoints, messages that are too
large or not text, and a broker that restarts. Tasks are called here as Spark's workers call them."""

from __future__ import annotations

import ctypes
import json
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from causet.errors import BadInput
from causet.live.broker import restartable_broker
from causet.spark.streams.kafka import client as kafka_client
from causet.spark.streams.kafka import source as kafka_source
from causet.spark.streams.kafka import transaction as kafka_transaction
from causet.spark.streams.kafka.client import Address, Cluster, Retry, client
from causet.spark.streams.kafka.gaps import read_gaps
from causet.spark.streams.kafka.sink import KafkaSink
from causet.spark.streams.kafka.source import KafkaReader, Stretch
from causet.spark.streams.kafka.transaction import Progress, Transaction
from causet.spark.streams.pack import FAULT, SIZE

ALL = ReadAllAvailable()
TRIED = 20
"""Seconds for calls, before they are given up."""
LARGEST = 1_048_588
"""What a topic takes unless it is set up otherwise."""


@cache
def admin(broker: str) -> Any:
    return import_module("confluent_kafka.admin").AdminClient({"bootstrap.servers": broker})


def new_topic(
    broker: str, name: str | None = None, partitions: int = 1, config: dict[str, str] | None = None
) -> str:
    topics: Any = import_module("confluent_kafka.admin")
    name = name or f"t{uuid4().hex[:8]}"
    for _ in range(50):
        (made,) = (
            admin(broker).create_topics([topics.NewTopic(name, partitions, config=config or {})]).values()
        )
        try:
            made.result(20)
            return name
        except client().KafkaException as error:  # it is still being deleted
            assert error.args[0].name() == "TOPIC_ALREADY_EXISTS"
            time.sleep(0.1)
    raise AssertionError(name)


def delete_topic(broker: str, name: str) -> None:
    for future in admin(broker).delete_topics([name]).values():
        future.result(20)


def remove(broker: str, topic: str, before: int) -> None:
    """What retention does: the messages before an offset are gone."""
    places = [client().TopicPartition(topic, 0, before)]
    for future in admin(broker).delete_records(places).values():
        assert future.result(20).low_watermark == before


def send(broker: str, topic: str, values: Sequence[Any], headers: Any = None) -> None:
    producer = client().Producer({"bootstrap.servers": broker, "log_level": 0})
    for value in values:
        producer.produce(topic, value, headers=headers, partition=0)
    assert producer.flush(20) == 0


def numbers(begin: int, end: int) -> list[bytes]:
    return [str(number).encode() for number in range(begin, end)]


def committed(broker: str, topic: str) -> list[Any]:
    """All messages of a topic that a reader sees who takes only what is committed."""
    kafka = client()
    consumer = kafka.Consumer(
        {
            "bootstrap.servers": broker,
            "group.id": "reader",
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    places = consumer.list_topics(topic, 10).topics[topic].partitions
    consumer.assign([kafka.TopicPartition(topic, number, 0) for number in places])
    found: list[Any] = []
    ended = 0
    while ended < len(places):
        message = consumer.poll(10)
        assert message is not None
        ended += message.error() is not None
        found += [message] if message.error() is None else []
    consumer.close()
    return found


def values(broker: str, topic: str) -> list[bytes]:
    return sorted(message.value() for message in committed(broker, topic))


# ---------------------------------------------------------------- source: gaps


def reader(broker: str, topic: str, **options: str) -> KafkaReader:
    return KafkaReader({"servers": broker, "topics": topic, "retry": str(TRIED), **options})


def rows_of(source: KafkaReader, start: Any, end: Any) -> list[dict[str, Any]]:
    return [
        row
        for partition in source.partitions(start, end)
        for batch in source.read(partition)
        for row in batch.to_pylist()
    ]


def read(source: KafkaReader, start: Any, end: Any) -> list[bytes]:
    return [row["value"] for row in rows_of(source, start, end)]


def stopped_at(broker: str, topic: str, offset: int) -> Any:
    """The offsets of a query that has read so far, as they are in its checkpoint."""
    source = reader(broker, topic)
    begin = source.initialOffset()
    end = source.latestOffset(begin, ReadMaxRows(offset - begin[f"{topic}:0"]))
    assert end[f"{topic}:0"] == offset
    return json.loads(json.dumps(end))


def test_messages_that_retention_removed_before_they_were_read_are_an_error(broker: str) -> None:
    topic = new_topic(broker)
    send(broker, topic, numbers(0, 30))
    start = stopped_at(broker, topic, 10)
    remove(broker, topic, 15)
    with pytest.raises(BadInput, match=rf'"{topic}", partition 0: .* is 10, .* is 15: .*--gaps skip'):
        reader(broker, topic).latestOffset(start, ALL)
    remove(broker, topic, 30)
    with pytest.raises(BadInput, match=r"is 10, .* is 30"):
        reader(broker, topic).latestOffset(start, ALL)


class Overtaken:
    """Answers about a partition of which the end was 20, and of which retention then removed all up to 30."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def list_offsets(self, wanted: dict[Any, Any], **_: Any) -> dict[Any, Any]:
        self.asked.append(wanted)
        return dict.fromkeys(wanted, self)

    def result(self, _: float) -> Any:
        assert len(self.asked) == 2, "both are asked before either is waited for"
        self.offset = 20 if hasattr(self, "offset") else 30
        return SimpleNamespace(offset=self.offset)


def test_no_end_is_before_its_beginning_though_retention_overtakes_the_question() -> None:
    cluster = Cluster(Retry("127.0.0.1:1", 1))
    vars(cluster)["_admin"] = Overtaken()
    assert cluster.bounds([("t", 0)]) == {("t", 0): (30, 30)}


def test_a_gap_is_skipped_if_that_is_asked_for_and_it_is_noted_once(broker: str, tmp_path: Path) -> None:
    topic = new_topic(broker)
    send(broker, topic, numbers(0, 30))
    start = stopped_at(broker, topic, 10)
    remove(broker, topic, 15)
    source = reader(broker, topic, gaps="skip", gap_folder=str(tmp_path))
    end = source.latestOffset(start, ALL)
    for _ in range(2):  # a batch may be run again
        assert read(source, start, end) == numbers(15, 30)
    gap = {"topic": topic, "partition": 0, "from": 10, "to": 15, "anew": False}
    assert read_gaps(tmp_path) == [gap]
    assert len((tmp_path / "gaps.jsonl").read_text().splitlines()) == 1
    assert source.latestOffset(end, ALL) == end


def test_skipping_without_a_place_to_note_it_is_refused() -> None:
    with pytest.raises(BadInput, match="gap_folder"):
        reader("127.0.0.1:1", "t", gaps="skip")
    with pytest.raises(BadInput, match='stop or skip, not "maybe"'):
        reader("127.0.0.1:1", "t", gaps="maybe")


@pytest.mark.parametrize("there", [3, 10, 40])
def test_a_topic_that_was_made_anew_is_another_one(broker: str, tmp_path: Path, there: int) -> None:
    """With fewer messages than were read, with as many, with more."""
    topic = new_topic(broker)
    send(broker, topic, numbers(0, 30))
    start = stopped_at(broker, topic, 10)
    delete_topic(broker, topic)
    new_topic(broker, topic)
    send(broker, topic, numbers(100, 100 + there))
    with pytest.raises(BadInput, match=rf'"{topic}", partition 0: .* is 10, .* recreated, .* offset 0'):
        reader(broker, topic).latestOffset(start, ALL)
    source = reader(broker, topic, gaps="skip", gap_folder=str(tmp_path))
    source.prepareForTriggerAvailableNow()
    end = source.latestOffset(start, ALL)
    assert read(source, start, end) == numbers(100, 100 + there)
    assert read_gaps(tmp_path) == [{"topic": topic, "partition": 0, "from": 10, "to": 0, "anew": True}]
    assert source.latestOffset(end, ALL) == end
    with pytest.raises(BadInput, match="recreated"):  # planned with skip, run again without
        reader(broker, topic).partitions(start, end)


def test_a_batch_that_was_planned_before_a_restart_is_looked_at_again(broker: str, tmp_path: Path) -> None:
    """Spark runs it without asking for offsets first."""
    topic = new_topic(broker)
    send(broker, topic, numbers(0, 30))
    start, end = stopped_at(broker, topic, 10), stopped_at(broker, topic, 20)
    remove(broker, topic, 15)
    with pytest.raises(BadInput, match=r"is 10, .* is 15"):
        reader(broker, topic).partitions(start, end)
    skipping = {"gaps": "skip", "gap_folder": str(tmp_path)}
    assert read(reader(broker, topic, **skipping), start, end) == numbers(15, 20)
    delete_topic(broker, topic)
    new_topic(broker, topic)
    send(broker, topic, numbers(100, 150))
    with pytest.raises(BadInput, match="recreated"):
        reader(broker, topic).partitions(start, end)
    assert read(reader(broker, topic, **skipping), start, end) == []
    assert [(gap["from"], gap["to"], gap["anew"]) for gap in read_gaps(tmp_path)] == [
        (10, 15, False),
        (10, 20, True),
    ]


def test_retention_that_overtakes_a_task_is_noticed(broker: str, tmp_path: Path) -> None:
    topic = new_topic(broker)
    send(broker, topic, numbers(0, 30))
    start, end = stopped_at(broker, topic, 10), stopped_at(broker, topic, 30)
    skipping = reader(broker, topic, gaps="skip", gap_folder=str(tmp_path))
    stopping = reader(broker, topic)
    planned = [source.partitions(start, end) for source in (stopping, skipping)]
    remove(broker, topic, 15)
    with pytest.raises(BadInput, match=r"is 10, .* is 15"):
        list(stopping.read(planned[0][0]))
    found = [row["value"] for batch in skipping.read(planned[1][0]) for row in batch.to_pylist()]
    assert found == numbers(15, 30)
    assert [(gap["from"], gap["to"]) for gap in read_gaps(tmp_path)] == [(10, 15)]


def test_a_topic_that_is_made_anew_under_a_task_is_noticed(broker: str) -> None:
    topic = new_topic(broker)
    send(broker, topic, numbers(0, 30))
    source = reader(broker, topic)
    (planned,) = source.partitions(stopped_at(broker, topic, 10), stopped_at(broker, topic, 30))
    delete_topic(broker, topic)
    new_topic(broker, topic)
    send(broker, topic, numbers(100, 150))
    with pytest.raises(BadInput, match=f'"{topic}" was deleted while offsets 10 to 30'):
        list(source.read(planned))


def test_offsets_without_the_id_of_the_topic_are_read_too(broker: str) -> None:
    """Those of a checkpoint of an earlier release, or of a broker that has no ids."""
    topic = new_topic(broker)
    send(broker, topic, numbers(0, 30))
    source = reader(broker, topic)
    start, end = {f"{topic}:0": 10}, {f"{topic}:0": 12}
    assert source.latestOffset(start, ReadMaxRows(2))[f"{topic}:0"] == 12
    assert read(source, start, end) == numbers(10, 12)
    with pytest.raises(BadInput, match="recreated"):
        source.latestOffset({f"{topic}:0": 31}, ALL)
    with pytest.raises(BadInput, match="recreated"):
        source.partitions({f"{topic}:0": 10}, {f"{topic}:0": 31})
    with pytest.raises(BadInput, match="recreated"):
        source.partitions({f"{topic}:0": 20}, {f"{topic}:0": 3})


def test_a_topic_that_is_not_there(broker: str) -> None:
    with pytest.raises(BadInput, match='has no topic "nowhere"'):
        reader(broker, "nowhere").initialOffset()


# ---------------------------------------------------------------- source: messages


def header_name_that_is_not_utf8(broker: str, topic: str) -> None:
    """The Python client cannot send such a thing; the library below it can."""
    folder = Path(client().__file__).parent.parent / "confluent_kafka.libs"
    (file,) = folder.glob("librdkafka*")
    library, pointer, size = ctypes.CDLL(str(file)), ctypes.c_void_p, ctypes.c_size_t
    for name in ("rd_kafka_conf_new", "rd_kafka_new", "rd_kafka_headers_new"):
        getattr(library, name).restype = pointer
    text = ctypes.create_string_buffer(512)
    conf = pointer(library.rd_kafka_conf_new())
    library.rd_kafka_conf_set(conf, b"bootstrap.servers", broker.encode(), text, 512)
    producer = pointer(library.rd_kafka_new(0, conf, text, 512))
    headers = pointer(library.rd_kafka_headers_new(size(1)))
    assert library.rd_kafka_header_add(headers, b"\xff\xfe", size(2), b"x", size(1)) == 0
    sent = (1, topic.encode(), 3, 0, 4, b"odd", size(3), 7, 2, 10, headers, 0)
    assert library.rd_kafka_producev(producer, *sent) == 0
    assert library.rd_kafka_flush(producer, 10_000) == 0
    library.rd_kafka_destroy(producer)


def test_what_is_not_text_becomes_a_fault_of_that_message(broker: str) -> None:
    topic = new_topic(broker)
    send(broker, topic, [b"\xff"], [("ce_source", b"a"), ("ce_id", b"1"), ("other", b"\xff\xfe")])
    send(broker, topic, [b"1"], [("ce_source", b"a\xff"), ("ce_id", b"1")])
    send(broker, topic, [None], [("ce_source", b"a"), ("ce_id", None)])
    send(broker, topic, [b'{"source": "caf\xe9"}'])
    send(broker, topic, [rb'{"source": "a\ud800"}'])
    send(broker, topic, [rb'{"source": "a\ud83d\ude00", "data": "\ud800"}', rb"\ud800", None])
    header_name_that_is_not_utf8(broker, topic)
    source = reader(broker, topic)
    found = rows_of(source, source.initialOffset(), source.latestOffset(source.initialOffset(), ALL))
    assert [row[FAULT] for row in found] == [
        None,
        "header ce_source is not UTF-8",
        None,
        "the value is not UTF-8",
        "attribute source has half of a surrogate pair, which is not text",
        None,
        None,
        None,
        "the name of a header is not UTF-8",
    ]
    assert found[0]["headers"][2] == {"key": "other", "value": b"\xff\xfe"}
    assert found[2]["headers"] == [{"key": "ce_source", "value": b"a"}, {"key": "ce_id", "value": None}]
    assert (found[2]["value"], found[2]["key"], found[8]["value"]) == (None, None, b"odd")
    assert found[0][SIZE] >= 1 + len("ce_sourceace_id1other") + 2


# ---------------------------------------------------------------- sink: exactly once


def sink(broker: str, limit: int = LARGEST, checkpoint: object = "/state") -> KafkaSink:
    topic = new_topic(broker, config={"max.message.bytes": str(limit)})
    made = KafkaSink(Address(broker, (topic,)), retry=TRIED)
    name = uuid4().hex
    made.check(name, fresh=True)
    made.claim(name, {"command": "deliver", "checkpoint": str(checkpoint), "source": "kafka://h:1/in"})
    return made


def task(target: KafkaSink, batch: int, largest: int = LARGEST) -> Transaction:
    return Transaction(target.servers, target.topic, target.query, batch, largest, TRIED)


def row(value: bytes | None, **changes: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"receiver": "r", "status": "delivered", "value": value, "headers": []}
    return {**found, "results": '{"receiver": "r", "index": 0, "status": "delivered"}', **changes}


ROWS = pa.schema(
    [
        ("receiver", pa.string()),
        ("status", pa.string()),
        ("value", pa.binary()),
        ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
        ("results", pa.string()),
        ("place", pa.string()),
    ]
)


def batches(*rows: dict[str, Any]) -> Iterator[pa.RecordBatch]:
    for each in rows:
        yield pa.RecordBatch.from_pylist([each], schema=ROWS)


def sent(task: Transaction, *rows: dict[str, Any]) -> int:
    (found,) = task(batches(*rows))
    return int(found.column(0)[0].as_py())


def test_the_last_batch_is_an_offset_and_no_record_is_read_for_it(
    broker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So it takes the same time after a day and after a year."""
    target = sink(broker)
    sent(task(target, 0), row(b"a"))

    def reads(*_: object) -> Any:
        raise AssertionError("the records are read")

    monkeypatch.setattr(kafka_transaction, "records", reads)
    assert sent(task(target, 0), row(b"a")) == 0
    assert values(broker, target.topic) == [b"a"]


def test_a_task_that_is_run_again_after_its_commit_writes_nothing(broker: str) -> None:
    target = sink(broker)
    assert target.last_batch() == -1
    assert sent(task(target, 0), row(b"a"), row(b"b")) == 2
    taken = []

    def noted() -> Iterator[pa.RecordBatch]:
        for batch in batches(row(b"a"), row(b"b")):
            taken.append(batch)
            yield batch

    assert [each.to_pylist() for each in task(target, 0)(noted())] == [[{"sent": 0}]]
    assert len(taken) == 2, "the input is read all the same: the state moves on with it"
    assert sent(task(target, 1), row(b"c")) == 1
    assert sent(task(target, 0), row(b"a")) == 0
    assert values(broker, target.topic) == [b"a", b"b", b"c"]
    assert target.last_batch() == 1
    query = target.query.encode()
    assert [(each.key(), json.loads(each.value())) for each in committed(broker, target.batches)] == [
        (query, {"batch": 0, "messages": 2}),
        (query, {"batch": 1, "messages": 1}),
    ]


def test_a_task_that_fails_right_after_its_commit(broker: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commit is done, and the task is told otherwise: it is run again."""
    target = sink(broker)
    commit = kafka_transaction.commit

    def lost(producer: Any, retry: Retry) -> None:
        commit(producer, retry)
        raise BadInput("the answer was lost")

    monkeypatch.setattr(kafka_transaction, "commit", lost)
    with pytest.raises(BadInput, match="the answer was lost"):
        sent(task(target, 0), row(b"a"))
    monkeypatch.undo()
    assert sent(task(target, 0), row(b"a")) == 0
    assert values(broker, target.topic) == [b"a"]


def test_a_task_that_fails_before_its_commit_leaves_nothing_open(broker: str) -> None:
    target = sink(broker)

    def failing() -> Iterator[pa.RecordBatch]:
        yield from batches(row(b"a"))
        time.sleep(0.5)  # until it is on its way
        raise ValueError("a fault further up")

    with pytest.raises(ValueError, match="further up"):
        list(task(target, 0)(failing()))
    send(broker, target.topic, [b"of another producer"])
    begun = time.monotonic()
    assert values(broker, target.topic) == [b"of another producer"]
    assert time.monotonic() - begun < 5, "readers do not wait for a transaction that nobody ends"
    assert sent(task(target, 0), row(b"a")) == 1


@pytest.mark.parametrize("heard", ["in time", "at the commit"])
def test_a_zombie_that_goes_on_is_refused(broker: str, heard: str) -> None:
    """Whether it hears of its successor before it sends its last message, or after that."""
    target = sink(broker)

    def overtaken() -> Iterator[pa.RecordBatch]:
        assert sent(task(target, 0), row(b"a"), row(b"b")) == 2
        yield from batches(row(b"a"))
        time.sleep(1 if heard == "in time" else 0)
        yield from batches(row(b"b"))

    with pytest.raises(BadInput, match="another run has taken over"):
        list(task(target, 0)(overtaken()))
    assert values(broker, target.topic) == [b"a", b"b"]


def test_the_question_is_asked_after_earlier_producers_are_fenced(
    broker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An earlier attempt that commits at the very last moment, before it is fenced."""
    target = sink(broker)
    monkeypatch.setattr(kafka_transaction, "commit", lambda producer, retry: kept.append(producer))
    kept: list[Any] = []
    sent(task(target, 0), row(b"a"))
    monkeypatch.undo()
    fencing = kafka_transaction._fencing

    def late(*given: Any) -> Any:
        if kept:
            kept.pop().commit_transaction(20)
        return fencing(*given)

    monkeypatch.setattr(kafka_transaction, "_fencing", late)
    assert sent(task(target, 0), row(b"a")) == 0
    assert values(broker, target.topic) == [b"a"]


def foreign(broker: str, *topics: str) -> Any:
    """Another producer, in the middle of a transaction."""
    producer = client().Producer(
        {"bootstrap.servers": broker, "transactional.id": uuid4().hex, "log_level": 0}
    )
    producer.init_transactions(20)
    producer.begin_transaction()
    for topic in topics:
        producer.produce(topic, b'{"batch": 7}', b"other", partition=0)
    producer.flush(20)
    return producer


def test_an_open_transaction_of_another_producer_hides_no_batch(broker: str) -> None:
    target = sink(broker)
    other = foreign(broker, target.topic, target.batches)
    assert sent(task(target, 0), row(b"a")) == 1
    assert target.last_batch() == 0
    assert sent(task(target, 0), row(b"a")) == 0
    assert sent(task(target, 1), row(b"b")) == 1
    other.abort_transaction(20)
    assert values(broker, target.topic) == [b"a", b"b"]


def forget(target: KafkaSink) -> None:
    """What Kafka does after seven days: the offsets of a group without members are gone."""
    group = f"causet-{target.query}"
    for future in admin(target.servers).delete_consumer_groups([group]).values():
        future.result(20)


def test_when_kafka_has_forgotten_the_offset_the_records_say_it(broker: str) -> None:
    target = sink(broker)
    for batch in range(3):
        sent(task(target, batch), row(str(batch).encode()))
    forget(target)
    assert sent(task(target, 2), row(b"2")) == 0
    other = foreign(broker, target.batches)
    begun = time.monotonic()
    threading.Timer(1, lambda: other.commit_transaction(20)).start()
    assert target.last_batch() == 2, "what is open there is waited for: it could hide a batch"
    assert time.monotonic() - begun > 0.9
    other = foreign(broker, target.batches)
    with pytest.raises(BadInput, match="no producer keeps a transaction open"):
        Progress(target.topic, target.query, Retry(broker, 1)).last_batch()
    other.abort_transaction(20)
    assert sent(task(target, 3), row(b"3")) == 1
    assert values(broker, target.topic) == [b"0", b"1", b"2", b"3"]


def test_the_last_batch_is_found_in_constant_time(broker: str) -> None:
    """After four days of a batch every half second, with and without the offset; records of others do not
    count."""
    target = sink(broker)
    sent(task(target, 0), row(b"a"))
    producer = client().Producer({"bootstrap.servers": broker, "queue.buffering.max.messages": 1_000_000})
    for batch in range(50_000):
        producer.produce(target.batches, json.dumps({"batch": batch}), target.query, partition=0)
    for batch in range(1000):
        producer.produce(target.batches, json.dumps({"batch": 9 * batch}), "another", partition=0)
    producer.flush(60)
    read: list[int] = []
    consumed = kafka_client.consumed

    def counted(*given: Any) -> Iterator[list[Any]]:
        for messages in consumed(*given):
            read.append(len(messages))
            yield messages

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kafka_transaction, "consumed", counted)
        assert target.last_batch() == 0 and not read
        forget(target)
        assert target.last_batch() == 49_999 and sum(read) < 3000


def test_a_commit_whose_outcome_is_unknown_is_asked_again(
    broker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = sink(broker)
    asked = []

    class Unsure:
        def __init__(self, producer: Any) -> None:
            self.producer = producer

        def __getattr__(self, name: str) -> Any:
            return getattr(self.producer, name)

        def commit_transaction(self, seconds: float) -> None:
            asked.append(seconds)
            if len(asked) == 2:
                self.producer.commit_transaction(seconds)
            if len(asked) < 4:
                raise client().KafkaException(client().KafkaError(client().KafkaError._TIMED_OUT))
            if len(asked) == 4:
                return

    fencing = kafka_transaction._fencing
    monkeypatch.setattr(kafka_transaction, "_fencing", lambda *given: Unsure(fencing(*given)))
    assert sent(task(target, 0), row(b"a")) == 1
    assert len(asked) == 4 and values(broker, target.topic) == [b"a"]


def test_headers_of_an_earlier_delivery_are_replaced(broker: str) -> None:
    target = sink(broker)
    headers = [{"key": "ce_id", "value": b"\xff"}, {"key": "causet_index", "value": b"77"}]
    place = '{"source": "s", "topic": "in", "partition": 2, "offset": 12}'
    results = '{"status": "diverted", "problem": "has no source"}'
    bad = row(b"bad", status="diverted", place=place, results=results)
    sent(task(target, 0), row(b"a", headers=headers), bad)
    (found,) = committed(broker, target.topic)
    assert found.headers() == [
        ("ce_id", b"\xff"),
        ("causet_receiver", b"r"),
        ("causet_index", b"0"),
        ("causet_status", b"delivered"),
    ]
    assert found.key() == b"r"
    (aside,) = committed(broker, f"{target.topic}-diverted")
    assert aside.value() == b"bad" and aside.headers() == [
        ("causet_status", b"diverted"),
        ("causet_problem", b"has no source"),
        ("causet_topic", b"in"),
        ("causet_partition", b"2"),
        ("causet_offset", b"12"),
    ]


# ---------------------------------------------------------------- sink: owner


def test_a_topic_has_one_owner(broker: str, tmp_path: Path) -> None:
    target = sink(broker)
    again = KafkaSink(Address(broker, (target.topic,)))
    with pytest.raises(BadInput, match=r"another query .*deliver.*: its checkpoint /state is not on"):
        again.check("another", fresh=True)
    here = KafkaSink(Address(broker, (sink(broker, checkpoint=tmp_path).topic,)))
    with pytest.raises(BadInput, match=rf"another query .*: go on with --checkpoint {tmp_path}, or"):
        here.check("another", fresh=True)
    with pytest.raises(BadInput, match="belongs to another query"):
        again.check("another", fresh=False)
    with pytest.raises(BadInput, match="belongs to another query"):
        again.claim("another", {})
    again.check(target.query, fresh=False)
    again.claim(target.query, {"checkpoint": "/elsewhere"})
    with pytest.raises(BadInput, match="/state"):
        again.check("another", fresh=True)


def test_of_two_queries_that_claim_at_the_same_moment_one_is_refused(
    broker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = new_topic(broker)
    first, second = (KafkaSink(Address(broker, (topic,)), retry=TRIED) for _ in range(2))
    first.check("first", fresh=True)
    second.check("second", fresh=True)
    owner = KafkaSink._owner
    asked: list[Any] = []

    def overtaken(self: KafkaSink, retry: Retry) -> Any:
        """The first has asked, and found none; then the second comes."""
        found = owner(self, retry)
        if self is first and not asked:
            asked.append(found)
            second.claim("second", {"checkpoint": "/second"})
        return found

    monkeypatch.setattr(KafkaSink, "_owner", overtaken)
    with pytest.raises(BadInput, match=r"belongs to another query .*checkpoint /second"):
        first.claim("first", {})
    assert asked == [None]
    second.check("second", fresh=False)


@pytest.mark.parametrize("which", ["", "-diverted", "-batches"])
def test_a_sink_that_was_made_anew_is_refused(broker: str, which: str) -> None:
    target = sink(broker)
    sent(task(target, 0), row(b"a"))
    delete_topic(broker, f"{target.topic}{which}")
    with pytest.raises(BadInput, match="deleted"):
        target.check(target.query, fresh=False)
    new_topic(broker, f"{target.topic}{which}")
    with pytest.raises(BadInput, match="recreated"):
        target.check(target.query, fresh=False)


def test_a_query_that_withdraws_leaves_no_owner_unless_it_has_written(broker: str) -> None:
    target = sink(broker)
    target.withdraw()
    KafkaSink(Address(broker, (target.topic,))).check("another", fresh=True)
    target.claim(target.query, {})
    sent(task(target, 0), row(b"a"))
    target.withdraw()
    with pytest.raises(BadInput, match="belongs to another query"):
        KafkaSink(Address(broker, (target.topic,))).check("another", fresh=True)


def test_a_topic_of_an_earlier_release_goes_on(broker: str) -> None:
    """It has no owner."""
    topic = new_topic(broker)
    new_topic(broker, f"{topic}-batches", 1, {"cleanup.policy": "compact"})
    send(broker, topic, [b"a"])
    producer = client().Producer({"bootstrap.servers": broker, "log_level": 0})
    producer.produce(f"{topic}-batches", b'{"batch": 4, "messages": 1}', b"old")
    producer.flush(20)
    with pytest.raises(BadInput, match="has batches of another query"):
        KafkaSink(Address(broker, (topic,))).check("new", fresh=True)
    with pytest.raises(BadInput, match="no record of the query"):
        KafkaSink(Address(broker, (topic,))).check("new", fresh=False)
    target = KafkaSink(Address(broker, (topic,)), retry=TRIED)
    target.check("old", fresh=False)
    target.claim("old", {})
    assert sent(task(target, 4), row(b"x")) == 0
    assert sent(task(target, 5), row(b"b")) == 1
    assert values(broker, topic) == [b"a", b"b"]


# ---------------------------------------------------------------- sink: too large


SMALL = 20_000


def test_a_message_just_within_the_limit_is_taken(broker: str) -> None:
    """One byte more, and it goes aside without its value; no limit of the broker's is met."""
    target = sink(broker, SMALL)
    assert target.most_bytes == SMALL - 128 - 2048
    rest = kafka_transaction.size_of(b"r", b"", [("causet_status", "delivered")])
    most = SMALL - kafka_transaction.OVERHEAD - rest
    results = '{"status": "delivered"}'
    place = '{"source": "a", "id": "7", "sequence": 3, "topic": "in", "partition": 0, "offset": 12}'
    rows = [row(bytes(most + more), results=results, place=place) for more in (0, 1)]
    rows.append(row(bytes(SMALL), status="diverted", place=place, results='{"problem": "is too large"}'))
    assert sent(task(target, 0, SMALL), *rows) == 3
    assert [len(value) for value in values(broker, target.topic)] == [most]
    aside = committed(broker, f"{target.topic}-diverted")
    assert [each.value() for each in aside] == [None, None]
    assert {each.key() for each in aside} == {b"r"}
    told = {name: value.decode() for name, value in aside[1].headers()}
    assert {name: told[name] for name in told if name != "causet_problem"} == {
        "ce_source": "a",
        "ce_id": "7",
        "ce_sequence": "3",
        "causet_topic": "in",
        "causet_partition": "0",
        "causet_offset": "12",
        "causet_status": "diverted",
    }
    assert told["causet_problem"].startswith("is too large; ")
    assert f"the value of {SMALL} bytes is left out" in told["causet_problem"]


def test_many_small_messages_fit_a_small_limit(broker: str) -> None:
    target = sink(broker, 5000)
    rows = [row(bytes(1000)) for _ in range(100)]
    assert sent(task(target, 0, 5000), *rows) == 100
    assert len(values(broker, target.topic)) == 100


def test_causes_that_do_not_fit_are_left_out_and_counted(broker: str) -> None:
    target = sink(broker, SMALL)
    missing = {f"source{number}": number for number in range(5000)}
    results = json.dumps({"status": "flagged", "missing": missing})
    assert sent(task(target, 0, SMALL), row(b"a", results=results)) == 1
    (found,) = committed(broker, target.topic)
    told = json.loads(dict(found.headers())["causet_missing"])
    left = told.pop("…")
    assert found.value() == b"a" and len(told) > 100
    assert told == {name: missing[name] for name in told}
    assert left == f"{5000 - len(told)} more, left out for their size"


def test_names_without_end_do_not_end_the_query(broker: str) -> None:
    target = sink(broker, SMALL)
    long = "x" * SMALL
    results = json.dumps({"receiver": long, "problem": long, "status": "diverted"})
    given = row(None, receiver=long, results=results, status="diverted", place=json.dumps({"source": long}))
    assert sent(task(target, 0, SMALL), given) == 1
    (found,) = committed(broker, f"{target.topic}-diverted")
    assert len(found.key()) < 1000


# ---------------------------------------------------------------- patience


class Answers:
    """Calls that fail so many times before they succeed."""

    def __init__(self, *errors: Any) -> None:
        self.errors = list(errors)
        self.asked: list[float] = []

    def __call__(self, seconds: float) -> str:
        self.asked.append(seconds)
        if self.errors:
            error = self.errors.pop(0)
            if isinstance(error, str):
                error = client().KafkaError(getattr(client().KafkaError, error))
            raise client().KafkaException(error)
        return "done"


def test_calls_are_repeated_with_growing_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    now = [0.0]

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        now[0] += seconds

    monkeypatch.setattr(time, "sleep", sleep)
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(random, "uniform", lambda low, high: high)
    away = Answers("_TRANSPORT", "_TIMED_OUT", "COORDINATOR_LOAD_IN_PROGRESS", "_ALL_BROKERS_DOWN")
    assert Retry("h:1", 60)(away) == "done"
    assert pauses == [0.1, 0.2, 0.4, 0.8] and len(away.asked) == 5
    pauses.clear()
    now[0] = 0
    with pytest.raises(BadInput, match=r"Kafka at h:1 does not answer \(.*\), tried for 60 s"):
        Retry("h:1", 60)(Answers(*["_TRANSPORT"] * 100))
    assert max(pauses) == 5 and 50 < now[0] <= 60
    timed_out = client().KafkaError._TIMED_OUT
    for error in (
        client().KafkaError(client().KafkaError.TOPIC_AUTHORIZATION_FAILED),
        client().KafkaError(timed_out, "", True),
        client().KafkaError(timed_out, "", False, False, True),
    ):
        refused = Answers(error)
        with pytest.raises(BadInput, match="Kafka at h:1: "):
            Retry("h:1", 60)(refused)
        assert len(refused.asked) == 1


def test_a_first_contact_is_given_less_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_client, "PATIENCE", 1.0)
    begun = time.monotonic()
    for first in (
        lambda: reader("127.0.0.1:1", "t", retry="300").initialOffset(),
        lambda: KafkaSink(Address("127.0.0.1:1", ("t",))).check("q", fresh=True),
    ):
        with pytest.raises(BadInput, match=r"does not answer .* tried for 1 s"):
            first()
    assert time.monotonic() - begun < 20


@pytest.mark.soak
def test_a_broker_that_restarts_ends_neither_reading_nor_writing(broker: str) -> None:
    """It goes away in the middle: of planning, of a task that reads, of a transaction, and of a question.
    (The other broker is there to say whether there can be one.)"""
    with restartable_broker() as restarted:
        address = restarted.address
        topic = new_topic(address)
        send(address, topic, numbers(0, 30_000))
        source = KafkaReader({"servers": address, "topics": topic, "retry": "120"})
        start = source.initialOffset()
        target = sink(address)
        target.retry = 120
        writes = Transaction(address, target.topic, target.query, 0, LARGEST, 120)

        def while_away(call: Callable[[], Any]) -> Any:
            """Call while the broker is stopped; it starts again after some seconds."""
            restarted.stop()
            back = threading.Timer(3, restarted.start)
            back.start()
            try:
                return call()
            finally:
                back.join()

        end = while_away(lambda: source.latestOffset(start, ALL))
        assert end[f"{topic}:0"] == 30_000
        (planned,) = source.partitions(start, end)
        found = while_away(lambda: [each for batch in source.read(planned) for each in batch["value"]])
        assert [each.as_py() for each in found] == numbers(0, 30_000)

        def interrupted() -> Iterator[pa.RecordBatch]:
            yield from batches(row(b"a"))
            while_away(lambda: None)
            yield from batches(row(b"b"))

        assert [each.to_pylist() for each in writes(interrupted())] == [[{"sent": 2}]]
        assert while_away(target.last_batch) == 0
        assert while_away(lambda: sent(writes, row(b"a"), row(b"b"))) == 0
        assert values(address, target.topic) == [b"a", b"b"]


def test_stretches_can_be_sent_to_tasks(broker: str) -> None:
    """With the reader, which has connections that cannot."""
    pickle: Any = import_module("pickle")
    topic = new_topic(broker)
    send(broker, topic, numbers(0, 3))
    source = reader(broker, topic)
    planned = source.partitions(source.initialOffset(), source.latestOffset(source.initialOffset(), ALL))
    there, part = pickle.loads(pickle.dumps((source, planned[0])))
    assert isinstance(part, Stretch)
    assert [row["value"] for batch in there.read(part) for row in batch.to_pylist()] == numbers(0, 3)
    assert kafka_source.split("a:b:3") == ("a:b", 3)

"""Topics of the tests' broker: create one, publish into it, read what is committed there."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from causet.errors import BadInput
from causet.live.broker import broker_jars, kafka_broker
from causet.spark.streams.kafka.client import client


@contextmanager
def broker_or_skip() -> Iterator[str]:
    """The address of a running broker; where there can be none, the test is skipped with the reason."""
    try:
        broker_jars()
    except BadInput as error:
        pytest.skip(str(error))
    with kafka_broker() as address:
        yield address


PRODUCER = """
import json, sys
from confluent_kafka import Producer
from causet.stamp import to_binary
servers, topic, file, mode = sys.argv[1:]
producer = Producer({"bootstrap.servers": servers})
for line in open(file):
    envelope = json.loads(line)
    if mode == "binary":
        headers, value = to_binary(envelope)
        producer.produce(topic, value, envelope["source"].encode(), headers=headers)
    else:
        producer.produce(topic, line.strip().encode(), envelope["source"].encode())
producer.flush()
"""


def publish(broker: str, topic: str, envelopes: Sequence[dict[str, Any]], folder: Path) -> None:
    """Every source is a process of its own, half of them in binary mode."""
    processes = []
    for number, name in enumerate(sorted({each["source"] for each in envelopes})):
        file = folder / f"{topic}-{name}.jsonl"
        file.write_text("".join(json.dumps(each) + "\n" for each in envelopes if each["source"] == name))
        mode = "binary" if number % 2 else "structured"
        processes.append(subprocess.Popen([sys.executable, "-c", PRODUCER, broker, topic, str(file), mode]))
    assert [process.wait(60) for process in processes] == [0] * len(processes)


def read(broker: str, topic: str) -> list[dict[str, str]]:
    """What a reader sees that takes only what is committed: the headers of each message."""
    kafka = client()
    consumer = kafka.Consumer(
        {
            "bootstrap.servers": broker,
            "group.id": f"reader of {topic}",
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    places = [
        kafka.TopicPartition(topic, number, 0)
        for number in consumer.list_topics(topic, 10).topics[topic].partitions
    ]
    consumer.assign(places)
    found: list[dict[str, str]] = []
    ended = 0
    while ended < len(places):
        message = consumer.poll(10)
        assert message is not None
        if message.error():
            assert message.error().code() == kafka.KafkaError._PARTITION_EOF
            ended += 1
            continue
        headers = {name: value.decode() for name, value in message.headers()}
        if "ce_subject" not in headers and message.value() is not None:
            headers["ce_subject"] = json.loads(message.value())["subject"]
        found.append(headers)
    consumer.close()
    return found


def create(broker: str, topic: str) -> None:
    topics: Any = import_module("confluent_kafka.admin")
    admin = topics.AdminClient({"bootstrap.servers": broker})
    for future in admin.create_topics([topics.NewTopic(topic, 3)]).values():
        future.result(20)

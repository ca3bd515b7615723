"""The demonstration: services that publish through a network that reorders, and a stream that delivers.

services (processes) → network (delays, duplicates) → files or Kafka → deliver to readers, on Spark → files
or Kafka
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from pyspark.sql import SparkSession

from causet.envelope import numbers_of
from causet.errors import BadInput
from causet.live.shop import GROUPS, READERS, Envelope, Shop, running_services
from causet.spark.streams.checkpoint import Checkpoint
from causet.spark.streams.deliver import deliver
from causet.spark.streams.kafka.client import client, committed_reader, consumed
from causet.spark.streams.query import Asked, Query
from causet.spark.streams.running import Progress, now_ms
from causet.stamp import to_binary

BUCKETS = 4
LONGEST = 180
"""Seconds for a run, before it is given up."""


class Way(Protocol):
    """From the network to the stream, and from the stream to the readers."""

    source: str
    sink: str

    def publish(self, envelope: Envelope) -> int:
        """How many records that makes."""
        ...

    def delivered(self) -> dict[str, list[str]]: ...


class Files:
    """Files in a folder: nothing needs to be installed."""

    def __init__(self, folder: Path) -> None:
        self._inbox, self._folder, self._count = folder / "inbox", folder / "delivered", 0
        self._inbox.mkdir()
        self.source, self.sink = str(self._inbox), str(self._folder)

    def publish(self, envelope: Envelope) -> int:
        self._count += 1
        half = self._inbox / f".{self._count:06}.jsonl"
        half.write_text(json.dumps(envelope) + "\n", encoding="utf-8")
        half.rename(self._inbox / f"{self._count:06}.jsonl")
        return 1

    def delivered(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for file in sorted(self._folder.glob("*.jsonl")):
            for line in file.read_text(encoding="utf-8").splitlines():
                row = json.loads(line)
                found.setdefault(row["receiver"], []).append(row["subject"])
        return found


class Topics:
    """Topics of a Kafka broker; readers see only what is committed."""

    def __init__(self, servers: str) -> None:
        kafka = client()
        self._servers = servers
        admin: Any = import_module("confluent_kafka.admin")
        maker = admin.AdminClient({"bootstrap.servers": servers})
        topics = [admin.NewTopic(name, 3) for name in (*GROUPS, "delivered")]
        for made in maker.create_topics(topics).values():
            made.result(30)
        self._producer = kafka.Producer({"bootstrap.servers": servers, "linger.ms": 5, "log_level": 0})
        self.source, self.sink = (f"kafka://{servers}/{names}" for names in (",".join(GROUPS), "delivered"))

    def publish(self, envelope: Envelope) -> int:
        headers, value = to_binary(envelope)
        groups = numbers_of(envelope)
        for group in groups:  # each is a topic
            self._producer.produce(group, value, envelope["source"].encode(), headers=headers)
        self._producer.flush()
        return len(groups)

    def delivered(self) -> dict[str, list[str]]:
        kafka = client()
        reader = committed_reader(self._servers)
        found: dict[str, list[tuple[int, str]]] = {}
        try:
            for number in reader.list_topics("delivered", 10).topics["delivered"].partitions:
                place = kafka.TopicPartition("delivered", number)
                place.offset, end = reader.get_watermark_offsets(place, 10)
                for messages in consumed(reader, place, end):
                    for message in messages:
                        headers = {name: value.decode() for name, value in message.headers()}
                        mine = found.setdefault(headers["causet_receiver"], [])
                        mine.append((int(headers["causet_index"]), headers["ce_subject"]))
        finally:
            reader.close()
        return {name: [subject for _, subject in sorted(rows)] for name, rows in found.items()}


class Demonstration:
    """One run: what was sent, what arrived and when, and what was delivered."""

    def __init__(self, orders: int, seed: int, way: Way) -> None:
        self.arrived: list[tuple[Envelope, int]] = []
        self.way = way
        self.shop = Shop(orders, seed, self._publish)
        self._progress = Progress()
        self._published = 0
        self._played = False
        self._failed: BaseException | None = None

    def _publish(self, envelope: Envelope) -> None:
        self.arrived.append((envelope, now_ms()))
        self._published += self.way.publish(envelope)

    def go(self, spark: SparkSession, show: Callable[[Progress], None]) -> None:
        """Play the story while the stream delivers, until every message is delivered."""
        transform = deliver(missing="wait", readers=READERS, buckets=BUCKETS)
        end = time.monotonic() + LONGEST

        def over() -> bool:
            if self._failed is not None:
                raise BadInput(f"a service of the demonstration failed: {self._failed}")
            if time.monotonic() > end:
                raise BadInput(f"the demonstration is not over after {LONGEST} s: is the machine busy?")
            progress = self._progress
            return self._played and progress.taken >= self._published and not progress.held

        with Checkpoint(None) as kept, self._story():
            while not self.arrived and not over():  # the query begins with the first message
                time.sleep(0.1)
            query = Query.prepared(kept, Asked(self.way.source, self.way.sink, transform, follow=True))
            query.progress = self._progress
            query.run(spark, show, over)

    @contextmanager
    def _story(self) -> Iterator[None]:
        stop = threading.Event()

        def play() -> None:
            try:
                with running_services() as services:
                    self.shop.play(services, stop.is_set, lambda: self._progress.batches > 0)
                self._played = True
            except Exception as error:
                self._failed = error

        thread = threading.Thread(target=play, name="story")
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

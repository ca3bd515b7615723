"""Kafka as a sink of streams: a topic, `TOPIC-diverted` beside it, `TOPIC-batches` and `TOPIC-owner`.

A batch is one transaction (`transaction`). So a reader with `isolation.level=read_committed` finds every
message once, those of a receiver in their order. (Spark's own Kafka sink gives every message at least once.)

A topic belongs to one query: the last record of `TOPIC-owner` names it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from causet.errors import BadInput, printable, quote
from causet.spark.columns import quoted
from causet.spark.streams.kafka import client as kafka_client
from causet.spark.streams.kafka.client import (
    RETRY,
    Address,
    Cluster,
    Fenced,
    Retry,
    as_text,
    committed_reader,
)
from causet.spark.streams.kafka.transaction import (
    MARGIN,
    OVERHEAD,
    Progress,
    Transaction,
    commit,
    producing,
    records,
)
from causet.spark.streams.messages.settings import ADDED
from causet.spark.streams.pack import OWN, Blobs
from causet.status import DIVERTED

PLACE = ("source", "causalprocess", "id", "sequence", "topic", "partition", "offset", "file", "line")
"""Columns that say which message it was, and where it stood."""
OWNER_KEY = b"owner"
CLAIMING = 30.0
"""Seconds for the transaction of a claim."""
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
        plain = [name for name in rows.columns if name not in {*kept, *ADDED} and not name.startswith(OWN)]
        results = F.to_json(F.struct(*(name for name in ADDED if name in rows.columns)))
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

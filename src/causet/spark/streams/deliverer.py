"""The stateful operator of `deliver`: one bucket of receivers, batch after batch."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle

from causet.kernels.streams.holding import Holding
from causet.spark.streams.bucket import COUNTS, Bucket
from causet.spark.streams.messages.settings import Settings
from causet.spark.streams.pack import ENDED, ROWS, UNREAD_BY
from causet.spark.streams.state import (
    ROWS_OF_SEGMENT,
    SEGMENT,
    UNREAD_AT,
    Holder,
    as_blobs,
    unread_after,
)
from causet.status import COPIES, READ, UNREAD

CHUNK_BYTES = 1 << 28
"""Messages that are looked at together."""
OUT = f"{ROWS} binary, held long, oldest long, blocked string, wanted string, missed string, " + ", ".join(
    f"{name} long" for name in COUNTS
)
"""A blob of messages that leave; and about the bucket, in its last row: how many it holds, when the oldest of
them came, what that waits for (in words and as JSON), a cause that a message left without, and counts."""
_NOTHING = dict.fromkeys(("held", "oldest", "blocked", "wanted", "missed", *COUNTS))
NOW = "now"
"""The time of a batch, in ms."""


class Deliverer(Holder):
    """Holds and releases the messages of one bucket."""

    def __init__(self, settings: Settings, streaming: bool) -> None:
        super().__init__(settings.fixed)
        self.settings = settings
        self.streaming = streaming

    def init(self, handle: StatefulProcessorHandle) -> None:
        super().init(handle)
        self._marks = handle.getMapState("marks", SEGMENT, ROWS_OF_SEGMENT)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        memory, segments = self.load()
        holding = Holding.empty() if memory is None else Holding.from_bytes(memory)
        bucket = Bucket(self.settings, holding, segments, self._marks)
        now, ended = 0, None
        chunk: list[bytes] = []
        size = 0
        unread: Counter[str] = Counter()
        for row in rows:
            if not now:
                for table in bucket.begin(key[0], row[NOW]):
                    yield from as_blobs(table, **_NOTHING)
            now = max(now, row[NOW])
            bucket.was_read(row[READ], row[COPIES] or 0, row[UNREAD] or 0)
            if row[UNREAD_BY] is not None:
                unread.update(json.loads(row[UNREAD_BY]))
            if row[ENDED] is not None:
                ended = max(ended or 0, row[ENDED])
            if row[ROWS] is not None:
                chunk.append(row[ROWS])
                size += len(row[ROWS])
                if size > CHUNK_BYTES:
                    for table in bucket.step(chunk, now):
                        yield from as_blobs(table, **_NOTHING)
                    chunk, size = [], 0
        if not self.streaming:
            ended = now
        for table in bucket.step(chunk, now, ended, last=True):
            yield from as_blobs(table, **_NOTHING)
        if unread:
            before = self._marks.getValue((UNREAD_AT,))
            counts = unread_after(None if before is None else before[0], unread)
            self._marks.updateValue((UNREAD_AT,), (counts,))
        bucket.tell(key[0])
        yield Row(rows=None, **bucket.report())
        self.save(bucket.holding.to_bytes(), segments)

"""A stream from source to sink, for as long as it runs: start, watch, end of input, end of all."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from causet.spark.books import READ
from causet.spark.checkpoints import Checkpoint
from causet.spark.packing import Blobs

MOST_BATCHES = 1000
"""Of which a report tells."""
LOOK = 0.3
"""Seconds between two looks at a query."""
STAY = ("refused", "duplicates", "caused")
"""Counts of what does not leave as a message."""
TRIGGER = "500 milliseconds"
"""How often a query that follows its source looks for more."""


class Sink(Protocol):
    """Takes the rows of a batch, the same ones again if a batch is run again."""

    def write(self, rows: DataFrame | Blobs, batch: int) -> None: ...


@dataclass(frozen=True)
class Batch:
    """What one batch did."""

    seconds: float
    taken: int
    left: int
    held: int


@dataclass
class Progress:
    """What a query has done since it was started, and how it stands."""

    batches: int = 0
    taken: int = 0
    """rows read"""
    counts: dict[str, int] = field(default_factory=dict)
    held: int | None = None
    oldest: int | None = None
    blocked: str | None = None
    lag: int | None = None
    """messages in the source that are not read yet, where it can tell"""
    rows_per_second: float = 0.0
    left_per_second: float = 0.0
    bound: str | None = None
    """up to where a merge has released"""
    history: deque[Batch] = field(default_factory=lambda: deque(maxlen=MOST_BATCHES))
    """the last batches"""

    def learn(self, event: Any, observed: str) -> None:
        """What Spark tells about one batch."""
        self.batches += 1
        found = event["observedMetrics"].get(observed)
        values = found.asDict() if found is not None else {}
        taken = values.get(READ) or 0
        self.taken += taken
        left = 0
        for name, value in values.items():
            if name in ("held", "oldest", "blocked", "bound", READ):
                continue
            self.counts[name] = self.counts.get(name, 0) + (value or 0)
            left += (value or 0) if name not in STAY else 0
        if values.get("held") is not None:
            self.held, self.oldest, self.blocked = values["held"], values["oldest"], values["blocked"]
        self.bound = values.get("bound", self.bound)
        seconds = max(event["durationMs"].get("triggerExecution", 0), 1) / 1000
        self.rows_per_second, self.left_per_second = taken / seconds, left / seconds
        self.history.append(Batch(seconds, taken, left, self.held or 0))
        lags = [
            int(source["metrics"]["maxOffsetsBehindLatest"])
            for source in event["sources"]
            if "maxOffsetsBehindLatest" in (source.get("metrics") or {})
        ]
        self.lag = max(lags) if lags else self.lag


def run(
    blobs: Blobs,
    sink: Sink,
    checkpoint: Checkpoint,
    follow: bool,
    observed: str,
    progress: Progress,
    show: Callable[[Progress], None],
    enough: Callable[[Progress], bool] = lambda progress: False,
) -> None:
    """Run the query until all that is there is read; or, if it follows, until it is enough, or it fails."""

    def write(frame: DataFrame, batch: int) -> None:
        sink.write(replace(blobs, frame=frame), batch)

    writer = blobs.frame.writeStream.foreachBatch(write).option(
        "checkpointLocation", f"file:{checkpoint.spark.resolve()}"
    )
    writer = writer.trigger(processingTime=TRIGGER) if follow else writer.trigger(availableNow=True)
    query = writer.start()
    try:
        last: tuple[str, int] | None = None
        while True:
            ended = query.awaitTermination(LOOK)  # type: ignore[arg-type]
            last = _learn(query, last, observed, progress)
            show(progress)
            if ended or enough(progress):
                return
    finally:
        query.stop()


def _learn(
    query: StreamingQuery, last: tuple[str, int] | None, observed: str, progress: Progress
) -> tuple[str, int] | None:
    for event in query.recentProgress:
        seen = (event["timestamp"], event["batchId"])
        if (last is None or seen > last) and event["sources"] and "addBatch" in event["durationMs"]:
            progress.learn(event, observed)
            last = seen
    return last


def now_ms() -> int:
    return time.time_ns() // 1_000_000

"""Runs a stream from source to sink, and watches it until it ends."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any, Protocol

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import BinaryType

from causet.spark.streams.books import OBSERVED
from causet.spark.streams.checkpoint import Checkpoint
from causet.spark.streams.pack import Blobs
from causet.spark.streams.ticks import Ticks
from causet.status import CONTROL, COPIES, DUPLICATES, HEARTBEATS, READ, REFUSED, SENT, SKIPPED, UNREAD

MOST_BATCHES = 1000
"""The number of batches that a report covers."""
LOOK = 0.3
"""Seconds between two looks at a query."""
STAY = (REFUSED, COPIES, UNREAD, DUPLICATES, HEARTBEATS, SKIPPED, CONTROL, SENT, "caused")
"""Counts of what does not leave as a message, or is counted elsewhere."""
STANDING = ("held", "oldest", "blocked", "wanted", "missed", "bound", READ)
"""What a batch reports that is not a count of what became of messages."""
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
    """when the oldest that is held came, or in a merge its r + c"""
    per_ms: int = 1
    """so many of the units of `oldest` are a ms"""
    blocked: str | None = None
    wanted: str | None = None
    """what the oldest that is held waits for"""
    missed: str | None = None
    """a cause that was given up"""
    lag: int | None = None
    """messages in the source that are not read yet, where the source reports it"""
    rows_per_second: float = 0.0
    left_per_second: float = 0.0
    bound: str | None = None
    """up to where a merge has released"""
    unreadable: dict[str, str] = field(default_factory=dict)
    """files that were left out, and why"""
    history: deque[Batch] = field(default_factory=lambda: deque(maxlen=MOST_BATCHES))
    """the last batches"""

    def learn(self, event: Any) -> None:
        """Take in what Spark reports about one batch."""
        self.batches += 1
        found = event["observedMetrics"].get(OBSERVED)
        values = found.asDict() if found is not None else {}
        taken = values.get(READ) or 0
        self.taken += taken
        left = 0
        for name, value in values.items():
            if name in STANDING:
                continue
            self.counts[name] = self.counts.get(name, 0) + (value or 0)
            left += (value or 0) if name not in STAY else 0
        if values.get("held") is not None:
            self.held, self.oldest, self.blocked = values["held"], values["oldest"], values["blocked"]
            self.wanted = values.get("wanted")
        self.missed = self.missed or values.get("missed")
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
    progress: Progress,
    show: Callable[[Progress], None],
    more: bytes | None = None,
    alone: bool = False,
    before: Callable[[int], None] = lambda batch: None,
    leaves: Callable[[], bool] = lambda: False,
    ticks: Ticks | None = None,
) -> None:
    """Run the query until all that is there is read; or, if it follows, until it leaves, or it fails.

    With `alone`, only the batch that was planned and not committed is run, with `more` rows, if any. `before`
    is called with the number of each batch that is about to be written, and may refuse it. Once `leaves`
    returns True, the batch that is being written is the last one. `ticks` is the clock that releases, if one
    does.
    """
    learned = _Learned(progress)
    left: list[int] = []

    def write(frame: DataFrame, batch: int) -> None:
        # What Spark reports about the previous batch is available by now, but not for ever.
        learned.look()
        if leaves():
            left.append(batch)
            raise _Left
        before(batch)
        if ticks is not None:
            ticks.batch_planned(batch)
        sink.write(replace(blobs, frame=frame if more is None else _with_more(frame, more)), batch)
        if ticks is not None:
            ticks.batch_written(batch)

    writer = blobs.frame.writeStream.foreachBatch(write).option(
        "checkpointLocation", f"file:{checkpoint.spark.resolve()}"
    )
    if alone:
        writer = writer.trigger(once=True)
    elif follow:
        writer = writer.trigger(processingTime=TRIGGER)
    else:
        writer = writer.trigger(availableNow=True)
    if ticks is not None:
        ticks.begin()
    query = writer.start()
    learned.query = query
    try:
        while True:
            ended = query.awaitTermination(LOOK)  # type: ignore[arg-type]
            learned.look()
            show(progress)
            if ticks is not None:
                ticks.look()
            if ended or (leaves() and not query.status["isTriggerActive"]):
                return
    except PySparkException:
        if not left:
            raise
    finally:
        query.stop()
        learned.look()


class _Left(Exception):
    """A batch was planned after the query was asked to end: the next run begins with it."""


class _Learned:
    """Takes Spark's reports about batches into the progress: every batch, exactly once."""

    def __init__(self, progress: Progress) -> None:
        self.query: StreamingQuery | None = None
        self._progress = progress
        self._last = -1
        self._lock = Lock()

    def look(self) -> None:
        """Called before each batch is written, and now and then: Spark keeps only the last few."""
        if self.query is None:
            return
        with self._lock:
            for event in self.query.recentProgress:
                # Others report that there was nothing to do; a clock may go back, numbers of batches do not.
                if event["batchId"] > self._last and event["sources"] and "addBatch" in event["durationMs"]:
                    self._last = event["batchId"]
                    self._progress.learn(event)


def _with_more(frame: DataFrame, more: bytes) -> DataFrame:
    """The blobs of a batch, and one more."""
    row = tuple(more if isinstance(each.dataType, BinaryType) else 0 for each in frame.schema.fields)
    return frame.unionAll(frame.sparkSession.createDataFrame([row], frame.schema))


def now_ms() -> int:
    return time.time_ns() // 1_000_000

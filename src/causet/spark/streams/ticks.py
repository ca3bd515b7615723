"""The clock that releases messages of a stream, in the place of sources that are silent.

A time counts once everything that had come to the source by then is in a batch that is planned: only then is
nothing missing but what is in transit, and a backlog cannot become late. It is written into the stream of
ends, and so belongs to the batch that reads it there: run again, that batch gives the same rows.

While messages come all the time, something is always there that is not planned. So the time at which a batch
was written is promised to the next one, before that is planned. It counts there if that batch turns out to
reach the end of the source, which is written down before the batch runs.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Protocol

from causet.errors import CausetError
from causet.rcclock import TICKS_PER_MS as MS
from causet.spark.streams.checkpoint import Checkpoint
from causet.spark.streams.file_source import inputs
from causet.spark.streams.kafka.source import KafkaReader, places_of, split

AT_LEAST = 500
"""ms between two times that are written down."""
SHARE = 10
"""A look at the source takes at most one in so many parts of the time."""
KEPT = 3
"""So many batches after it was written, a time was read, and the batch with it is committed."""


class Reading(Protocol):
    """What of a source is in the batches that are planned."""

    def all_planned(self) -> bool:
        """Whether everything that is there now is in them."""

    def reached_end(self, batch: int) -> bool:
        """Whether that batch has all that was there when it was planned."""


class FileReading:
    """A folder of files, or a file."""

    def __init__(self, path: Path, form: str, checkpoint: Checkpoint, per_batch: int) -> None:
        self._path = path
        self._form = form
        self._checkpoint = checkpoint
        self._per_batch = per_batch
        self._planned: set[Path] = set()
        self._last = -1

    def all_planned(self) -> bool:
        found = [file for form, file in inputs(self._path) if form == self._form]
        home = self._path.resolve()
        last = self._checkpoint.last_planned()
        if last != self._last:
            self._planned.update(self._checkpoint.files_between(self._last, last))
            self._last = last
        return all(
            (home / file.relative_to(self._path) if file != self._path else home) in self._planned
            for file in found
        )

    def reached_end(self, batch: int) -> bool:
        return len(self._checkpoint.files_of(batch)) < self._per_batch


class TopicReading:
    """Topics of a broker."""

    def __init__(self, reader: KafkaReader, checkpoint: Checkpoint) -> None:
        self._reader = reader
        self._checkpoint = checkpoint

    def all_planned(self) -> bool:
        there = self._reader.reportLatestOffset()
        planned = self._checkpoint.offsets_of(self._checkpoint.last_planned())
        if any(planned.get(split(name)[0]) != there.get(split(name)[0]) for name in places_of(there)):
            return False  # a topic was recreated, and no batch knows that yet
        return all(planned.get(name, 0) >= there[name] for name in places_of(there))

    def reached_end(self, batch: int) -> bool:
        """A batch that had to leave something out has as much as fits, or more. Where one begins is not known
        of the first batch, or of a topic that was recreated: its first offset is 0 at the least."""
        begin, end = (self._checkpoint.offsets_of(each) for each in (batch - 1, batch))
        rows: int = 0
        for name in places_of(end):
            topic, _ = split(name)
            rows += end[name] - (begin.get(name, 0) if begin.get(topic) == end.get(topic) else 0)
        return rows < self._reader.per_batch


class Ticks:
    """Writes down the times that count, while a query follows its source and holds messages."""

    def __init__(
        self,
        reading: Reading,
        checkpoint: Checkpoint,
        wait: int,
        standing: Callable[[], tuple[int, int | None]],
        now: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        """
        :param wait: δ + ε, in ticks.
        :param standing: how many messages are held, and the smallest r + c of them.
        """
        self._reading = reading
        self._checkpoint = checkpoint
        self._wait = wait
        self._standing = standing
        self._now = now
        self._lock = Lock()
        self._promised: int | None = None
        """a time before the batch that comes next is planned, which that batch reads"""
        self._shown = 0
        """the last time that was written down"""
        self._written: list[tuple[int, int]] = []
        """(time, the last batch that was planned then): those whose files are still there"""
        self._next_look = 0

    def begin(self) -> None:
        """The query begins, and no batch is pending."""
        self._promise(self._now())

    def batch_planned(self, batch: int) -> None:
        """A batch was planned, and is about to run."""
        with self._lock:
            promised, self._promised = self._promised, None
            if promised is not None and self._reading.reached_end(batch):
                self._checkpoint.keep_end(promised)

    def batch_written(self, batch: int) -> None:
        """A batch was written; it is not committed yet, and so no other one is planned."""
        with self._lock:
            self._tidy(batch)
            if not self._look():
                self._promise(self._now())

    def _promise(self, now: int) -> None:
        """Write down a time for the next batch, which may turn out to count. There is one for each batch, so
        it need not wait until the last time was read: it is later, and releases more."""
        if self._due(now) and now >= self._shown + AT_LEAST:
            self._checkpoint.end(now, promised=True)
            self._promised = self._shown = now
            self._written.append((now, self._checkpoint.last_planned()))

    def look(self) -> None:
        """Some time has passed."""
        with self._lock:
            self._look()

    def _look(self) -> bool:
        """Whether the time of now counts, and was written down."""
        now = self._now()
        if now < self._next_look or not self._due(now):
            return False
        try:
            planned = self._reading.all_planned()
        except (CausetError, OSError):  # a broker is away, or a folder: the query itself will see that
            return False
        finally:
            self._next_look = self._now() + SHARE * (self._now() - now)
        if planned:
            self._show(now)
        return planned

    def _due(self, now: int) -> bool:
        """Whether that time releases anything."""
        held, oldest = self._standing()
        return bool(held) and oldest is not None and now * MS > oldest + self._wait

    def _show(self, now: int) -> None:
        """Write down a time that counts; while a batch runs, one, however long that takes."""
        last = self._checkpoint.last_planned()
        unread = bool(self._written) and self._written[-1][1] == last
        if self._due(now) and not unread and now >= self._shown + AT_LEAST:
            self._checkpoint.end(now)
            self._shown = now
            self._written.append((now, last))

    def _tidy(self, batch: int) -> None:
        """Remove files that no batch reads any more, so that the folder does not grow."""
        for shown, last in self._written:
            if last <= batch - KEPT:
                self._checkpoint.forget_end(shown)
        self._written = [each for each in self._written if each[1] > batch - KEPT]

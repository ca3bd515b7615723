"""Where the readers of a run of a query begin: checked before Spark is started, and written down by it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from pyspark.sql import SparkSession

from causet.kernels.streams.keys import KEY
from causet.readers import Readers, readers_of
from causet.spark.streams.beginnings.cut import Cut, read_cut
from causet.spark.streams.beginnings.now import State, begin_now
from causet.spark.streams.beginnings.plan import FRONT, Changes, changes, check_added, check_first
from causet.spark.streams.checkpoint import Checkpoint
from causet.spark.streams.held import heads_of, segments_of
from causet.spark.streams.messages.settings import Settings


@dataclass(frozen=True)
class Start:
    """What has to be done before the first batch of a run that is planned anew."""

    kept: Checkpoint
    readers: Readers
    before: Readers | None
    """who read what until now; None before the first batch"""
    changes: Changes | None = None
    cut: Cut | None = None
    written: bool = False
    """an earlier run has written it down already"""

    @classmethod
    def checked(
        cls, kept: Checkpoint, readers: Readers, begin: str | None, settings: dict[str, Any] | None
    ) -> Start:
        """What has to be done, where an earlier run had these settings, or where there was none; BadInput if
        it is not known where readers begin."""
        before = None if settings is None else readers_of(settings.get("readers"))
        ahead = kept.beginnings.ahead(kept.last_planned()) if settings is not None else None
        if ahead is not None:
            before = ahead.before
            if ahead.since == readers:
                found = None if before is None else changes(before, readers)
                return cls(kept, readers, before, found, written=True)
        if before is not None:
            return cls(kept, readers, before, check_added(before, readers, begin))
        check_first(begin)
        cut = None if begin in (None, FRONT) else read_cut(str(begin))
        for _ in cut.beginnings(readers) if cut is not None else ():
            pass  # so that what is missing is said before Spark is started
        return cls(kept, readers, None, cut=cut)

    def write(self, spark: SparkSession, settings: Settings) -> bool:
        """Write down where readers begin; whether a batch has to count it."""
        if self.written:
            return True
        found = self.changes
        new = self.cut is not None or (found is not None and bool(found.changed))
        replaced = self.kept.beginnings.ahead(self.kept.last_planned()) is not None
        if not new and not replaced:
            return False
        folder = self.kept.beginnings
        folder.begin()
        empty = State({}, lambda bucket: iter(()), settings)
        if self.cut is not None:
            for reader, channel, counted in self.cut.beginnings(self.readers):
                bucket = empty.bucket_of(reader)
                folder.count(bucket, reader, np.frombuffer(channel, f"S{KEY}"), counted)
                if channel in self.cut.group_of:
                    folder.channel(bucket, channel, self.cut.group_of[channel])
        elif found is not None and self.before is not None:
            state = State(
                heads_of(spark, self.kept.spark), partial(segments_of, spark, self.kept.spark), settings
            )
            begin_now(folder, state, self.before, found)
        folder.written(self.kept.last_planned(), self.before, self.readers)
        return True

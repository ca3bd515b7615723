"""A query: what it reads, where its rows go, and how it goes on after whatever ended it.

One program for `deliver`, `merge` and the demonstration: source → transform → sink, with a checkpoint.

A batch is planned once, with the settings of that time, and is run until it is committed, maybe by a later
run: then alone, with the same settings and without the files that were found to be unreadable. Only then do
new settings count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import types as T

from causet.errors import BadInput
from causet.readers import Readers
from causet.spark.start.errors import from_spark
from causet.spark.streams.apart import check_apart
from causet.spark.streams.beginnings.run import Start
from causet.spark.streams.books import Books
from causet.spark.streams.checkpoint import ENDS, Checkpoint
from causet.spark.streams.deliver import Deliver
from causet.spark.streams.file_sink import FileSink
from causet.spark.streams.file_source import (
    PER_BATCH,
    arriving,
    arriving_files,
    await_form,
    check_messages,
    check_names,
    has_columns_in_names,
    schema_from,
    schema_of,
    schema_text,
)
from causet.spark.streams.held import merge_progress
from causet.spark.streams.json_lines import key_of
from causet.spark.streams.kafka.client import RETRY, Address
from causet.spark.streams.kafka.gaps import read_gaps
from causet.spark.streams.kafka.sink import KafkaSink
from causet.spark.streams.kafka.source import PER_BATCH as MESSAGES_PER_BATCH
from causet.spark.streams.kafka.source import KafkaReader, read_kafka
from causet.spark.streams.members.members import Members
from causet.spark.streams.merge.merge import Merge
from causet.spark.streams.merge.packers import Counted
from causet.spark.streams.messages.columns import columns_of, with_size
from causet.spark.streams.pack import Blobs
from causet.spark.streams.parquet import Messages, check_columns
from causet.spark.streams.readings import Readings, readings, unread_by_group
from causet.spark.streams.running import Progress, now_ms, run
from causet.spark.streams.stability.publisher import Publisher
from causet.spark.streams.ticks import FileReading, Reading, Ticks, TopicReading
from causet.spark.streams.verdicts import examine, unreadable_rows
from causet.status import READ, SKIPPED

MOST_BYTES = "most_bytes"
"""The setting with the largest message that the sink takes."""
STRICT = "strict"
"""The setting that lets a batch end the query instead of diverting what cannot be read."""


Transform = Deliver | Members | Merge
"""What a query does with messages, and its settings."""
Target = FileSink | KafkaSink
"""Where its rows go."""


@dataclass(frozen=True)
class Asked:
    """What is asked of a query."""

    source: str
    sink: str
    transform: Transform
    written_as: str | None = None
    follow: bool = False
    per_batch: int = PER_BATCH
    """files"""
    gaps: str = "stop"
    """what to do where a topic has lost messages that were not read yet: stop or skip"""
    retry: float = RETRY
    """seconds in which a broker that does not answer is asked again"""

    @property
    def fixed(self) -> dict[str, Any]:
        """What cannot change as long as the checkpoint is the same."""
        return {"source": self.source, "sink": self.sink, **self.transform.fixed}


@dataclass(frozen=True)
class Result:
    """What a run of a query did."""

    asked: Asked
    checkpoint: Checkpoint
    progress: Progress
    books: Books
    columns: list[str]
    """of the files that were read; none for a topic"""
    renamed: Mapping[str, str]
    """columns of the input that have another name in the sink, because of a column that is added"""
    gaps: list[dict[str, Any]]
    """offsets that this run did not find in the topics any more"""
    readings: Readings

    def count(self, name: str) -> int:
        return self.progress.counts.get(name, 0)


@dataclass
class Query:
    """What a query reads and where its rows go, found out before Spark is started."""

    asked: Asked
    kept: Checkpoint
    source: Path | Address
    form: str
    schema: T.StructType | None
    """of the source, once it is known"""
    target: Target
    begun: Mapping[str, Any] | None
    """what an earlier run wrote down"""
    start: Start | None
    """where readers begin, if there are any"""
    progress: Progress = field(default_factory=Progress)

    @classmethod
    def prepared(cls, kept: Checkpoint, asked: Asked) -> Query:
        """Everything that can be found out without Spark; BadInput if something is not right, and nothing is
        left behind then."""
        check_apart(asked.source, asked.sink, kept.folder, asked.transform.settings.get("stable"))
        name, fresh = kept.look(asked.transform.command, asked.fixed)
        _target(asked, "jsonl", name).check(name, fresh)
        source = Address.parse(asked.source) or Path(asked.source)
        target: Target | None = None
        try:
            begun = kept.opened(asked.transform.command, asked.fixed)
            form = begun["form"] if begun else _form(source, asked.follow)
            written_as = begun["written_as"] if begun else asked.written_as or _written_as(form)
            target = _target(asked, written_as, kept.name)
            target.check(kept.name, begun is None)
            if isinstance(source, Path):
                kept.check_files()
                if begun is None:
                    check_messages(source)
            target.clean()
            start = _start(asked.transform, kept, begun)
        except BaseException:
            if fresh:
                _withdraw(kept, target)
            raise
        schema = schema_from(begun["schema"]) if begun and isinstance(source, Path) else None
        limited = asked.transform.changed({MOST_BYTES: target.most_bytes})
        asked, progress = replace(asked, transform=limited), Progress(per_ms=asked.transform.per_ms)
        return cls(asked, kept, source, form, schema, target, begun, start, progress)

    def messages(self, spark: SparkSession, without: Sequence[str] = ()) -> Messages:
        """The messages as a stream, but for those in some files; from Kafka, also the attributes that the
        settings name."""
        if isinstance(self.source, Address):
            rows = read_kafka(
                spark,
                self.source,
                MESSAGES_PER_BATCH,
                self.asked.transform.columns,
                gaps=self.asked.gaps,
                gap_folder=self.kept.folder,
                retry=self.asked.retry,
                size=self.target.most_bytes is not None,
            )
            return Messages(rows)
        self.schema = self.schema or schema_of(spark, self.source, self.form)
        path, how = self.source, (self.asked.per_batch, without, self.follows_by_clock)
        limited = self.target.most_bytes is not None
        if self.form == "parquet" and not limited and not has_columns_in_names(path):
            return arriving_files(spark, path, self.schema, *how)
        rows = arriving(spark, path, self.form, self.schema, *how)
        return Messages(with_size(rows) if limited else rows)

    @property
    def follows_by_clock(self) -> bool:
        """Whether the source is followed, and the clock releases messages of it."""
        transform = self.asked.transform
        return isinstance(transform, Merge) and transform.by_clock and self.asked.follow

    def reading(self) -> Reading:
        """How much of the source is in batches."""
        if isinstance(self.source, Path):
            return FileReading(self.source, self.form, self.kept, self.asked.per_batch)
        about = {"servers": self.source.servers, "topics": ",".join(self.source.topics)}
        return TopicReading(KafkaReader({**about, "per_batch": str(MESSAGES_PER_BATCH)}), self.kept)

    def blobs(self, spark: SparkSession, settings: Mapping[str, Any], messages: Messages) -> Blobs:
        """What becomes of the messages, with these settings."""
        folder = self.kept.ends.resolve()
        ends = spark.readStream.schema(ENDS).json(f"file:{folder}")
        transform = self.asked.transform
        if isinstance(transform, Merge) and transform.changed(settings).by_clock:
            ends = ends.mapInArrow(Counted(folder), "ended long")
        found = transform.changed(settings, ends)
        if isinstance(found, Deliver):
            query = "" if found.stable is None else self.kept.name
            counting = self.kept.beginnings.counting()
            found = replace(found, beginning=counting, begins=True, query=query)
        return found.blobs(messages)

    def run(
        self,
        spark: SparkSession,
        show: Callable[[Progress], None],
        leaves: Callable[[], bool] = lambda: False,
    ) -> Result:
        """Run until the input is read; or, if it is followed, until the query leaves."""
        asked, kept, transform, progress = self.asked, self.kept, self.asked.transform, self.progress
        with self._withdrawn_if_refused():
            messages = self.messages(spark)
            columns = columns_of(messages.rows)
            in_lines = {key_of(field): field.name for field in columns.fields if key_of(field) != field.name}
            blobs = self.blobs(spark, transform.settings, messages)
            renamed = {**in_lines, **blobs.renamed}
            about = {"command": transform.command, "checkpoint": str(kept.folder.resolve())}
            self.target.claim(kept.name, {**about, "source": asked.source})
            publisher = _publisher(transform, kept.name, asked.sink)
            waits = False
            if self.begun is None:
                waits = self._begin(spark, messages)
                self._settle(columns)
        known = read_gaps(kept.folder)
        held_before = transform.held(spark, kept.spark) if self.begun is not None else 0
        unread = unread_by_group(spark, kept.spark) if self.begun is not None and self.start else {}
        runs = Runs(self, spark, publisher.watched(show), leaves)
        pending = kept.pending()
        if pending is not None:
            runs.alone(pending, self._settings_of_planned())
        if self.begun is not None:
            waits = self._begin(spark, messages)
            self._settle(columns)
        kept.prune()
        if transform.wakes or waits:
            kept.wake(now_ms())
        began = now_ms()
        runs.to_the_end(blobs if pending is None and not waits else None)
        if transform.ends_with_input and not asked.follow:
            # A clock counts up to when the run began: of what came later, some may not be read.
            kept.end(began if isinstance(transform, Merge) else now_ms())
            runs.to_the_end()
        publisher.publish()
        gaps = [gap for gap in read_gaps(kept.folder) if gap not in known]
        counts = {**progress.counts, READ: progress.taken}
        if gaps:
            progress.counts[SKIPPED] = sum(gap["to"] - gap["from"] for gap in gaps)
        held = transform.held(spark, kept.spark)
        books = Books(held_before, counts, held, len(progress.unreadable))
        read = self.schema.names if self.schema else []
        return Result(asked, kept, progress, books, read, renamed, gaps, self._readings(spark, unread))

    def _begin(self, spark: SparkSession, messages: Messages) -> bool:
        """Write down where readers begin; whether the first batch has to count it."""
        transform = self.asked.transform
        if self.start is None or not isinstance(transform, Deliver):
            return False
        return self.start.write(spark, transform.settled(messages)[1])

    def _readings(self, spark: SparkSession, before: Mapping[str, int]) -> Readings:
        start, transform = self.start, self.asked.transform
        if start is None or not start.readers.listed or not isinstance(transform, Deliver):
            return Readings()
        removed = start.changes.removed if start.changes is not None else ()
        return readings(spark, self.kept.spark, start.readers, removed, before, transform.buckets)

    def _settings_of_planned(self) -> dict[str, Any]:
        """The settings of the batch that an earlier run planned. If that batch is strict, it was written only
        if there is nothing wrong in it: then it is the same without."""
        asked = self.asked.transform.settings
        recorded = dict(self.begun["settings"]) if self.begun else dict(asked)
        strict = bool(recorded.get(STRICT)) and bool(asked.get(STRICT))
        return {**recorded, STRICT: strict}

    def _settle(self, columns: T.StructType) -> None:
        """Write down what is to be known the next time."""
        schema = schema_text(self.schema or columns)
        about = {"form": self.form, "written_as": self.target.form, "schema": schema}
        transform = self.asked.transform
        self.kept.settle(transform.command, self.asked.fixed, about, transform.settings)

    @contextmanager
    def _withdrawn_if_refused(self) -> Iterator[None]:
        """A query that is refused before it began leaves nothing behind."""
        try:
            yield
        except BaseException:
            if self.begun is None:
                _withdraw(self.kept, self.target)
            raise


@dataclass(frozen=True)
class Runs:
    """Runs a query over and over, until it comes to its end or to what it cannot leave out."""

    query: Query
    spark: SparkSession
    show: Callable[[Progress], None]
    leaves: Callable[[], bool]

    def to_the_end(self, planned: Blobs | None = None) -> None:
        """Run with the settings of now. A batch with files that cannot be read is run without them.

        What is planned already with these settings need not be planned again: that takes about a second.
        """
        query, settings = self.query, self.query.asked.transform.settings
        while True:
            try:
                blobs = planned or query.blobs(self.spark, settings, query.messages(self.spark))
                self._run(blobs, query.asked.follow, leaves=self.leaves, ticks=self._ticks())
                return
            except Exception as error:
                planned = None
                check_names(self.query.source)
                batch = query.kept.pending()
                if batch is None:
                    raise
                self._judge(error, batch, settings)
                self.alone(batch, settings)

    def alone(self, batch: int, settings: Mapping[str, Any]) -> None:
        """Run the one batch that was planned and not committed, as it was planned."""
        query = self.query
        while True:
            verdicts = query.kept.verdicts(batch)
            try:
                blobs = query.blobs(self.spark, settings, query.messages(self.spark, list(verdicts)))
                more = unreadable_rows(blobs.schema, verdicts) if verdicts else None
                self._run(blobs, False, more=more, alone=True)
            except Exception as error:
                self._judge(error, batch, settings)
            else:
                query.progress.unreadable.update(verdicts)
                return

    def _run(self, blobs: Blobs, follow: bool, **how: Any) -> None:
        query = self.query
        run(blobs, query.target, query.kept, follow, query.progress, self.show, before=self._check, **how)

    def _ticks(self) -> Ticks | None:
        """The clock that releases messages of a source that is followed, if that is asked for."""
        query, transform = self.query, self.query.asked.transform
        if not isinstance(transform, Merge) or not query.follows_by_clock:
            return None
        epsilon, delta, _ = transform.in_ticks()
        before = merge_progress(self.spark, query.kept.spark)

        def standing() -> tuple[int, int | None]:
            known = query.progress if query.progress.held is not None else before
            return known.held or 0, known.oldest

        return Ticks(query.reading(), query.kept, delta + epsilon, standing)

    def _check(self, batch: int) -> None:
        query, kept = self.query, self.query.kept
        if not isinstance(query.source, Path):
            return
        kept.check_files_of(batch)
        if query.form == "parquet" and query.schema is not None:
            known = kept.verdicts(batch)
            for file in kept.files_of(batch):
                if str(file) not in known:
                    check_columns(file, query.schema.names)

    def _judge(self, error: Exception, batch: int, settings: Mapping[str, Any]) -> None:
        """Write down which files of a batch cannot be read, if that is why it failed; else it fails for
        good."""
        query, kept = self.query, self.query.kept
        if not isinstance(query.source, Path) or query.schema is None or not from_spark(error):
            raise error
        known = kept.verdicts(batch)
        files = [file for file in kept.files_of(batch) if str(file) not in known]
        found = examine(files, query.form, query.schema, self.spark)
        if not found:
            raise error
        if not settings.get(STRICT):
            kept.judge(batch, {**known, **found})
            return
        kept.judge(batch, found, left_out=False)
        path, why = next(iter(found.items()))
        raise BadInput(
            f"{path} cannot be read: {why}; mend it or take it away, or run without --strict"
        ) from error


def _start(transform: Transform, kept: Checkpoint, begun: Mapping[str, Any] | None) -> Start | None:
    if not isinstance(transform, Deliver):
        return None
    settings = None if begun is None else begun["settings"]
    return Start.checked(kept, transform.readers, transform.begin, settings)


def _publisher(transform: Transform, name: str, sink: str) -> Publisher:
    if isinstance(transform, Deliver):
        return Publisher(transform.stable, name, transform.readers, sink)
    return Publisher(None, name, Readers(), sink)


def _target(asked: Asked, written_as: str, name: str) -> Target:
    address = Address.parse(asked.sink)
    if address is None:
        return FileSink(Path(asked.sink), written_as)
    return KafkaSink(address, name, asked.retry)


def _form(source: Path | Address, follow: bool) -> str:
    return "kafka" if isinstance(source, Address) else await_form(source, follow)


def _written_as(form: str) -> str:
    return "jsonl" if form == "kafka" else form


def _withdraw(kept: Checkpoint, target: Target | None) -> None:
    kept.withdraw()
    if target is not None:
        target.withdraw()

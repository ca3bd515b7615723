"""Shows the progress of a session's jobs on a terminal; silent elsewhere.

It uses public API: the status tracker where the driver is ours, progress handlers through Spark Connect.
Rule: an error here never stops the job.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Lock, Thread
from typing import Any, NamedTuple, TextIO

from pyspark import StatusTracker
from pyspark.sql import SparkSession
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

EVERY = 0.25
"""Seconds between two polls, which are a few calls to the JVM each."""


class Count(NamedTuple):
    """The progress of the stages that run now."""

    stage: int
    """the first of them, counted from 1 among the stages of their jobs"""
    stages: int
    done: int
    tasks: int


Show = Callable[[Count | None], None]


@contextmanager
def show_progress(spark: SparkSession, what: str) -> Iterator[None]:
    """Show a line with the progress of jobs on stderr, if that is a terminal, until the block ends."""
    if not sys.stderr.isatty():
        yield
        return
    line = Line(what, sys.stderr)
    ours = isinstance(spark, SparkSession)  # a Spark Connect session has another class
    line.show(None)
    try:
        with _printing_beside(line), _asked(spark, line.show) if ours else _told_by_server(spark, line.show):
            yield
    finally:
        line.hide()


class Line:
    """The line on the terminal, hidden while something else is printed."""

    def __init__(self, what: str, terminal: TextIO) -> None:
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[count]}"),
            TimeElapsedColumn(),
            console=Console(file=terminal),
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._task = self._progress.add_task(what, total=None, count="")
        self._lock = Lock()
        self._shown = False
        self._begun = False
        """whether the last printed text did not end its line"""

    def show(self, count: Count | None) -> None:
        """Show a count; None if no task runs, because Spark is planning or the command does other work."""
        with self._lock:
            if self._begun:
                return
            if count is None:
                self._progress.update(self._task, total=None, completed=0, count="")
            else:
                self._progress.update(self._task, total=count.tasks, completed=count.done, count=said(count))
            if not self._shown:
                self._shown = True
                self._progress.start()

    def hide(self) -> None:
        with self._lock:
            self._hide()

    def _hide(self) -> None:
        if self._shown:
            self._shown = False
            self._progress.stop()

    def print_beside(self, text: str, to: TextIO) -> int:
        with self._lock:
            self._hide()
            written = to.write(text)
            to.flush()
            self._begun = not text.endswith("\n") if text else self._begun
            return written


class _Beside:
    """A stream to the same terminal."""

    def __init__(self, stream: TextIO, line: Line) -> None:
        self._stream, self._line = stream, line

    def write(self, text: str) -> int:
        return self._line.print_beside(text, self._stream)

    def writelines(self, texts: Iterable[str]) -> None:
        self.write("".join(texts))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def _printing_beside(line: Line) -> Iterator[None]:
    before = sys.stdout, sys.stderr
    beside: list[Any] = [_Beside(stream, line) if stream.isatty() else stream for stream in before]
    sys.stdout, sys.stderr = beside
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def said(count: Count) -> str:
    return f"stage {count.stage} of {count.stages}, {count.done:,} of {count.tasks:,} tasks"


@contextmanager
def _asked(spark: SparkSession, show: Show) -> Iterator[None]:
    """Poll the driver in a thread."""
    over = Event()

    def ask() -> None:
        with suppress(Exception):
            tracker = spark.sparkContext.statusTracker()
            while not over.wait(EVERY):
                show(count_by_tracker(tracker))

    thread = Thread(target=ask, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(1)


def count_by_tracker(tracker: StatusTracker) -> Count | None:
    """The stages that run now among all stages of their jobs. A stage comes after those that it needs, so
    its position says how many are done, or skipped because their results exist already."""
    active = [info for info in map(tracker.getStageInfo, tracker.getActiveStageIds()) if info is not None]
    if not active:
        return None
    jobs = [info for info in map(tracker.getJobInfo, tracker.getActiveJobsIds()) if info is not None]
    stages = sorted(
        {int(stage) for job in jobs for stage in job.stageIds} | {info.stageId for info in active}
    )
    return Count(
        stages.index(min(info.stageId for info in active)) + 1,
        len(stages),
        sum(info.numCompletedTasks for info in active),
        sum(info.numTasks for info in active),
    )


@contextmanager
def _told_by_server(spark: SparkSession, show: Show) -> Iterator[None]:
    """Receive progress from a Spark Connect server, which sends it with its responses."""

    def told(*, stages: Iterable[Any] | None, done: bool, **_: Any) -> None:
        with suppress(Exception):
            show(None if done else count_by_server(list(stages or ())))

    with suppress(Exception):
        spark.registerProgressHandler(told)  # type: ignore[arg-type]
    try:
        yield
    finally:
        with suppress(Exception):
            spark.removeProgressHandler(told)  # type: ignore[arg-type]


def count_by_server(stages: list[Any]) -> Count | None:
    active = [stage for stage in stages if not stage.done]
    if not active:
        return None
    return Count(
        len(stages) - len(active) + 1,
        len(stages),
        sum(stage.num_completed_tasks for stage in active),
        sum(stage.num_tasks for stage in active),
    )

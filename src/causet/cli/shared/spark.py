"""What the commands that run on Spark share: `--master`, `--conf`, and a session for as long as one runs."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar

import click
from rich.console import Console

from causet.errors import BadInput, quote

if TYPE_CHECKING:
    from pyspark.sql import SparkSession  # takes its time, and `causet --help` does without

F = TypeVar("F", bound=Callable[..., Any])


def spark_options(function: F) -> F:
    """`--master` and `--conf`, as the arguments `master` (or None) and `conf` (a dict)."""
    function = click.option(
        "--conf",
        multiple=True,
        metavar="KEY=VALUE",
        callback=lambda _context, _option, texts: settings_of_spark(texts),
        help="A setting of Spark's, such as spark.driver.memory=8g; as often as needed.",
    )(function)
    return click.option(
        "--master",
        metavar="URL",
        default=None,
        help="Where Spark runs: local[4], spark://host:7077, yarn, sc://host for Spark Connect "
        "[default: SPARK_REMOTE, spark-defaults.conf, or every core of this machine].",
    )(function)


def settings_of_spark(texts: tuple[str, ...]) -> dict[str, str]:
    settings = {}
    for text in texts:
        name, separator, value = text.partition("=")
        name = name.strip()
        if not separator or not name:
            raise BadInput(f"--conf {quote(text)}: write KEY=VALUE")
        if not name.startswith("spark."):
            raise BadInput(f"--conf {quote(text)}: the names of Spark's settings begin with spark.")
        settings[name] = value.strip()
    return settings


def for_streams(
    master: str | None, conf: Mapping[str, str], buckets: int, source: Path | None = None
) -> dict[str, str]:
    """The configuration for a stream over so many buckets; of files, if these are all that it reads.

    As many tasks as keep this machine busy: Spark's own default, 200, is for large joins. In a stream every
    task opens a state of its own with every batch; most would have nothing to do.
    """
    here = master is None or master.startswith("local")
    tasks = min(buckets, os.cpu_count() or 1) if here else buckets
    settings = {"spark.sql.shuffle.partitions": str(tasks), **FLAT}
    if here:
        settings |= UNCOMPRESSED
    if source is not None and has_small_rows(source):
        settings |= BY_NUMBER
    return {**settings, **conf}


FLAT = {
    "spark.sql.streaming.minBatchesToRetain": "20",
    "spark.sql.streaming.stateStore.maintenanceInterval": "15s",
    "spark.sql.streaming.fileSource.log.cleanupDelay": "60s",
    "spark.sql.streaming.fileSource.log.compactInterval": "20",
    "spark.sql.streaming.numRecentProgressUpdates": "10",
    "spark.ui.retainedJobs": "20",
    "spark.ui.retainedStages": "20",
    "spark.ui.retainedTasks": "200",
    "spark.ui.retainedDeadExecutors": "5",
    "spark.sql.ui.retainedExecutions": "10",
}
"""What keeps a query that runs for long as small as it is. To go on, Spark needs its last batch and the one
before; `causet explain` reads the last state while the query runs, and some seconds' worth is kept for it.
What Spark remembers of jobs is for its web pages, which are off."""
UNCOMPRESSED = {"spark.shuffle.compress": "false"}
"""What passes from task to task on one machine passes through its memory, as a rule."""
BY_NUMBER = {
    "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
    "spark.sql.execution.arrow.maxRecordsPerBatch": str(1 << 13),
}
"""Rows go to Python some at a time. Spark looks with every row at how many bytes that makes, unless there is
no limit to these, and takes a quarter longer for it. So small rows are only counted, if there are not too
many of them: what leaves an operator are blobs of many rows, which are counted as rows are."""
SMALL_ROW = 1 << 10
FEW_BYTES = 1 << 30
SAMPLED_FILES, SAMPLED_BYTES = 4, 1 << 16


def has_small_rows(source: Path) -> bool:
    """Whether there are only small rows in these files of JSON Lines, and few, by a look at some of them."""
    files = [source] if source.is_file() else sorted(source.glob("*"))
    try:
        few = sum(file.stat().st_size for file in files) <= FEW_BYTES
        sizes = [_bytes_per_row(file) for file in files[-SAMPLED_FILES:] if file.is_file()]
    except OSError:  # reading them says what is wrong
        return False
    return few and bool(sizes) and max(sizes) <= SMALL_ROW


def _bytes_per_row(file: Path) -> float:
    if file.suffix not in (".jsonl", ".json", ".ndjson"):
        return float("inf")
    with file.open("rb") as stream:
        sample = stream.read(SAMPLED_BYTES)
    return len(sample) / max(sample.count(b"\n"), 1)


@contextmanager
def session(
    master: str | None, conf: Mapping[str, str] | None = None, what: str = "working", brief: bool = False
) -> Iterator[SparkSession]:
    """A session, with progress on the terminal. One that was there before is used, and stays. A brief one is
    for a little data.

    What does not start is BadInput. However the block is left, its jobs are stopped: interrupted, terminated,
    or in good order.
    """
    from causet.cli.shared.progress import show_progress
    from causet.spark.start.errors import translated
    from causet.spark.start.session import active_session, spark_session, start_workers, stop_session

    _silence()
    spark = active_session()
    ours = spark is None
    if spark is None:
        with _starting(), _handlers_kept():
            spark = spark_session(master, conf, silent=True, brief=brief)
        start_workers(spark)
    try:
        with _ended_by_signals(), show_progress(spark, what), translated(), _jvm_missed():
            yield spark
    finally:
        if ours:
            stop_session(spark)


def _silence() -> None:
    """What is worth saying is said as an exception. Libraries below would say it on the terminal as well."""
    for name in ("py4j", "pyspark", "grpc"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
        logging.getLogger(name).disabled = True
    logging.getLogger().addFilter(_not_of_py4j)
    # If the JVM is killed, PySpark's server for accumulators would print a traceback of the lost connection.
    from pyspark import accumulators

    for name in ("AccumulatorTCPServer", "AccumulatorUnixServer"):
        if hasattr(accumulators, name):
            getattr(accumulators, name).handle_error = _quiet
    warnings.filterwarnings("ignore", module=r"(pyspark|py4j)(\..*)?")


def _quiet(*_: object) -> None:
    """In the place of a traceback on the terminal."""


def _not_of_py4j(record: logging.LogRecord) -> bool:
    """py4j logs an interrupt with its stack trace, by the root logger."""
    return "py4j" not in Path(record.pathname).parts


@contextmanager
def _handlers_kept() -> Iterator[None]:
    """Spark puts a handler of its own in place, which talks to the JVM in the midst of another talk."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        _handle(signal.SIGINT, before)


class _Ended(KeyboardInterrupt):
    """A signal that is to end this process."""


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Handlers that end the process, such as with an exit code of its own, run when the job is given up.

    Only at an interrupt does py4j give up its connection. After any other exception, the next call waits for
    the answer to the one before, until the job is over. And whatever fails on the way out is not the reason.
    """
    ending = _ending()
    arrived: list[signal.Signals] = []

    def end(number: int, _frame: FrameType | None) -> None:
        arrived.append(signal.Signals(number))
        raise _Ended

    for number in ending:
        _handle(number, end)
    try:
        yield
    finally:
        for number, handler in ending.items():
            _handle(number, handler)
        if arrived:
            ending[arrived[0]](arrived[0], None)


@contextmanager
def first_signal_noted() -> Iterator[Callable[[], bool]]:
    """The first signal that would end the process only makes the answer True; the next one ends it."""
    ending = _ending()
    arrived: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        arrived.append(number)
        restore()

    def restore() -> None:
        for number, handler in ending.items():
            _handle(number, handler)

    for number in ending:
        _handle(number, note)
    try:
        yield lambda: bool(arrived)
    finally:
        restore()


def _ending() -> dict[signal.Signals, Any]:
    """The signals that would end the process by a handler, and that handler."""
    numbers = (getattr(signal, name, None) for name in ("SIGINT", "SIGTERM", "SIGHUP"))
    return {
        number: handler
        for number in numbers
        if number is not None and callable(handler := signal.getsignal(number))
    }


def _handle(number: signal.Signals, handler: Any) -> None:
    """Set a handler, where that is possible: in the main thread, if it was set from Python before."""
    if handler is not None and threading.current_thread() is threading.main_thread():
        signal.signal(number, handler)


@contextmanager
def _jvm_missed() -> Iterator[None]:
    """A JVM that is gone, most likely killed by the system, is seen as a connection that breaks."""
    from py4j.protocol import Py4JNetworkError  # type: ignore[import-untyped]

    try:
        yield
    except (ConnectionError, Py4JNetworkError) as error:
        raise BadInput(
            "Spark's JVM has ended in the middle of the job; if the machine ran out of memory, try less "
            "of it for Spark: --conf spark.driver.memory=1g"
        ) from error


def _starting() -> Any:
    if not sys.stderr.isatty():
        return nullcontext()
    return Console(stderr=True).status("starting Spark")

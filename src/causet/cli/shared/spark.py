"""What the commands on Spark share: `--master`, `--conf`, and a session while a command runs."""

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
    from pyspark.sql import SparkSession  # loads slowly, and `causet --help` does not need it

F = TypeVar("F", bound=Callable[..., Any])


def spark_options(function: F) -> F:
    """`--master` and `--conf`, as the arguments `master` (or None) and `conf` (a dict)."""
    function = click.option(
        "--conf",
        multiple=True,
        metavar="KEY=VALUE",
        callback=lambda _context, _option, texts: settings_of_spark(texts),
        help="Setting of Spark, such as spark.driver.memory=8g; can be repeated.",
    )(function)
    return click.option(
        "--master",
        metavar="URL",
        default=None,
        help="Where Spark runs: local[4], spark://host:7077, yarn, or sc://host for Spark Connect.  "
        "[default: SPARK_REMOTE, spark-defaults.conf, or all cores of this machine]",
    )(function)


def settings_of_spark(texts: tuple[str, ...]) -> dict[str, str]:
    settings = {}
    for text in texts:
        name, separator, value = text.partition("=")
        name = name.strip()
        if not separator or not name:
            raise BadInput(f"--conf {quote(text)}: write KEY=VALUE")
        if not name.startswith("spark."):
            raise BadInput(f"--conf {quote(text)}: names of Spark settings begin with spark.")
        settings[name] = value.strip()
    return settings


def for_streams(
    master: str | None, conf: Mapping[str, str], buckets: int, source: Path | None = None
) -> dict[str, str]:
    """The configuration of a stream over `buckets` buckets of state, whose input is `source`, if it is files.

    It has as many tasks as keep this machine busy: Spark's default, 200, is for large joins. In a stream
    every task opens a state store in every batch; most would have nothing to do.
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
"""Keeps the size of a long-running query constant. To continue, Spark needs its last two batches; `causet
explain` reads the last state while the query runs, and the batches of some seconds are kept for it. What
Spark remembers of jobs is for its web pages, which are off."""
UNCOMPRESSED = {"spark.shuffle.compress": "false"}
"""On one machine, what passes from task to task usually stays in memory."""
BY_NUMBER = {
    "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
    "spark.sql.execution.arrow.maxRecordsPerBatch": str(1 << 13),
}
"""Rows go to Python in Arrow batches. With a limit in bytes, Spark measures every row and takes a quarter
longer. So small rows are only counted, if there are not too many of them: the output of an operator is blobs
of many rows, each of which counts as one row."""
SMALL_ROW = 1 << 10
FEW_BYTES = 1 << 30
SAMPLED_FILES, SAMPLED_BYTES = 4, 1 << 16


def has_small_rows(source: Path) -> bool:
    """Whether these files of JSON Lines have few and small rows, judged by a sample."""
    files = [source] if source.is_file() else sorted(source.glob("*"))
    try:
        few = sum(file.stat().st_size for file in files) <= FEW_BYTES
        sizes = [_bytes_per_row(file) for file in files[-SAMPLED_FILES:] if file.is_file()]
    except OSError:  # reading the files will report it
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
    """A session, with progress on the terminal. An existing session is used, and left running. A brief one
    is for small inputs.

    Raises BadInput if Spark does not start. However the block is left (interrupted, terminated or completed),
    its jobs are stopped.
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
    """Silence the libraries below: errors reach the user as exceptions, and would be printed twice."""
    for name in ("py4j", "pyspark", "grpc"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
        logging.getLogger(name).disabled = True
    logging.getLogger().addFilter(_not_of_py4j)
    # If the JVM is killed, PySpark's accumulator servers, which are private, would print a traceback of the
    # lost connection. A version that names them otherwise does print it.
    from pyspark import accumulators

    for name in ("AccumulatorTCPServer", "AccumulatorUnixServer"):
        if hasattr(accumulators, name):
            getattr(accumulators, name).handle_error = _quiet
    warnings.filterwarnings("ignore", module=r"(pyspark|py4j)(\..*)?")


def _quiet(*_: object) -> None:
    """Replaces the printing of a traceback."""


def _not_of_py4j(record: logging.LogRecord) -> bool:
    """Filter out the records of py4j, which logs a stack trace for an interrupt to the root logger."""
    return "py4j" not in Path(record.pathname).parts


@contextmanager
def _handlers_kept() -> Iterator[None]:
    """Keep our signal handler: Spark's own would call the JVM in the middle of another call."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        _handle(signal.SIGINT, before)


class _Ended(KeyboardInterrupt):
    """A signal has arrived that ends this process."""


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Run the handlers of signals that end the process only after the job was abandoned.

    py4j drops its connection only for a KeyboardInterrupt. After any other exception, the next call waits for
    the answer to the previous one, until the job is over. Errors on the way out are not the reason of the
    end, so the handler of the signal decides.
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
    """The first signal that would end the process only makes the function return True; the next ends it."""
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
    """The signals whose handlers would end the process, with these handlers."""
    numbers = (getattr(signal, name, None) for name in ("SIGINT", "SIGTERM", "SIGHUP"))
    return {
        number: handler
        for number in numbers
        if number is not None and callable(handler := signal.getsignal(number))
    }


def _handle(number: signal.Signals, handler: Any) -> None:
    """Set a handler where possible: in the main thread, and if the previous one was set from Python."""
    if handler is not None and threading.current_thread() is threading.main_thread():
        signal.signal(number, handler)


@contextmanager
def _jvm_missed() -> Iterator[None]:
    """Report a lost connection as a JVM that has ended, most likely killed by the operating system."""
    from py4j.protocol import Py4JNetworkError  # type: ignore[import-untyped]

    try:
        yield
    except (ConnectionError, Py4JNetworkError) as error:
        raise BadInput(
            "Spark's JVM ended in the middle of the job; if the machine ran out of memory, give Spark less: "
            "--conf spark.driver.memory=1g"
        ) from error


def _starting() -> Any:
    if not sys.stderr.isatty():
        return nullcontext()
    return Console(stderr=True).status("starting Spark")

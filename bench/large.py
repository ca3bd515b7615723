"""A log that no worker can hold: 50 million events on two executors of 1 GiB, their Python workers held to
1 GiB of address space. Ordered and verified; then again with an executor killed on the way: the same result.

Not part of `make bench`: it takes the better part of an hour and 20 GB of disk. `python -m bench large`.
"""

from __future__ import annotations

import os
import shutil
import signal
import threading
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any

from bench.logs import write_messages
from bench.result import Result, Spoilt
from bench.spark import Watch

EVENTS = 50_000_000
CLUSTER = "local-cluster[2,1,1024]"
LIMITS = {"spark.executor.pyspark.memory": "1g", "spark.executor.memory": "1g", "spark.driver.memory": "2g"}


def results(quick: bool) -> Iterator[Result]:
    return measure(1_000_000 if quick else EVENTS)


def measure(events: int) -> Iterator[Result]:
    from causet.spark.start.session import spark_session

    with TemporaryDirectory() as folder:
        log = Path(folder) / "log.parquet"
        write_messages(log, events)
        spark = spark_session(CLUSTER, LIMITS)
        try:
            yield from _compare(spark, log, Path(folder) / "out", events)
        finally:
            spark.stop()


def _compare(spark: Any, log: Path, out: Path, events: int) -> Iterator[Result]:
    from causet.spark.batch.order_files import order_files
    from causet.spark.batch.verify import verify
    from causet.spark.read.source import open_trace

    rows = spark.read.parquet(str(log))

    def order() -> str:
        digest = sha256()
        with open_trace(spark, log) as source:
            written = order_files(source, str(out), "parquet", False, False, lambda _: None)
        if not written.slabs:
            raise Spoilt("the log was not ordered in slabs")
        for part in written.files:
            digest.update(part.read_bytes())
        shutil.rmtree(out)
        return digest.hexdigest()

    def judge() -> str:
        verdict = verify(rows)
        told = [tuple(row) for row in verdict.violations.collect()]
        return repr((verdict.status, verdict.messages, verdict.deliveries, verdict.counts, told))

    works: dict[str, Callable[[], str]] = {"order": order, "verify": judge}
    for name, do in works.items():
        with Watch() as watch:
            begin = monotonic()
            undisturbed = do()
            taken = monotonic() - begin
        with Killer(after=taken / 3) as killer:
            begin = monotonic()
            disturbed = do()
            again = monotonic() - begin
        if disturbed != undisturbed:
            raise Spoilt(f"{name} gives another result when an executor is killed")
        if not killer.killed:
            raise Spoilt("no executor was there to kill")
        yield Result(
            "large",
            f"{name}, an executor killed",
            again / taken,
            f"{events:,} events in {taken:.0f} s, in {again:.0f} s with an executor killed after "
            f"{taken / 3:.0f} s; a Python worker took {watch.most >> 20:,} MiB at most",
            {"seconds": taken, "killed_seconds": again, "worker_bytes": watch.most},
        )


class Killer:
    """Kills one executor, without warning, after some time."""

    def __init__(self, after: float) -> None:
        self.killed = False
        self._timer = threading.Timer(after, self._kill)

    def __enter__(self) -> Killer:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        self._timer.join()

    def _kill(self) -> None:
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                command = (folder / "cmdline").read_bytes()
            except OSError:
                continue
            if b"CoarseGrainedExecutorBackend" in command and _is_ours(int(folder.name)):
                os.kill(int(folder.name), signal.SIGKILL)
                self.killed = True
                return


def _is_ours(process: int) -> bool:
    """Whether a process descends from this one."""
    while process > 1:
        if process == os.getpid():
            return True
        try:
            stat = Path(f"/proc/{process}/stat").read_text()
        except OSError:
            return False
        process = int(stat.rpartition(")")[2].split()[1])
    return False

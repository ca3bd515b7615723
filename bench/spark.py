"""The pipeline against Spark's own sort by time: the right order in multiples of the price of the wrong one.

Everything is wall-clock time, best of two turns, in one session, on the same files; both write Parquet. The
memory is the largest resident set among the workers' Python processes, read while they run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic

from bench.logs import write_messages, write_parents
from bench.result import Result, Spoilt


@dataclass(frozen=True)
class Plan:
    events: int
    small: int
    """a tenth of them"""
    turns: int = 2
    bounds: bool = True


def results(quick: bool) -> Iterator[Result]:
    return measure(Plan(1_000_000, 100_000, turns=1, bounds=False) if quick else Plan(10_000_000, 1_000_000))


def measure(plan: Plan) -> Iterator[Result]:
    with TemporaryDirectory() as folder:
        work = Path(folder)
        yield from _first_result(work, plan)
        yield from _large(work, plan)


def _large(work: Path, plan: Plan) -> Iterator[Result]:
    from causet.spark.batch.order import order_events
    from causet.spark.read.arrow import events_of, table_of
    from causet.spark.slabs.order import Sliced, order_in_slabs
    from causet.spark.start.session import spark_session

    logs = {}
    for name, events in (("large", plan.events), ("small", plan.small)):
        logs[name, "numbers"] = work / f"{name}-numbers.parquet"
        write_parents(logs[name, "numbers"], events, own_ids=False)
        logs[name, "messages"] = work / f"{name}-messages.parquet"
        write_messages(logs[name, "messages"], events)
    logs["large", "texts"] = work / "large-texts.parquet"
    write_parents(logs["large", "texts"], plan.events, own_ids=True)
    spark = spark_session()
    out = work / "out"

    def sort(log: str) -> None:
        spark.read.parquet(str(logs["large", log])).orderBy("time").write.parquet(str(out))

    def order(size: str, log: str) -> None:
        order_events(spark.read.parquet(str(logs[size, log]))).rows.write.parquet(str(out))

    sliced: dict[tuple[str, int], Sliced] = {}

    def slabs(log: str, count: int = 0) -> None:
        out.mkdir()
        table = table_of([logs["large", log]], {})
        rows = -(-plan.events // count) if count else None
        found = None if table is None else order_in_slabs(spark, table, out, rows)
        if found is None:
            raise Spoilt(f"the log of {log} was not ordered in slabs")
        sliced[log, count] = found

    def judge(size: str) -> None:
        from causet.spark.batch.verify import verify

        verdict = verify(spark.read.parquet(str(logs[size, "messages"])))
        if verdict.status != "invalid" or not 0 < verdict.counts["violations"] < 100:
            raise Spoilt(f"verify says {verdict.status}, {verdict.counts}")

    def judge_files() -> None:
        from causet.spark.batch.verify import verify_files

        path = logs["large", "messages"]
        verdict = verify_files(spark.read.parquet(str(path)), events_of([path]), 100, False)
        if verdict.status != "invalid" or not 0 < verdict.counts["violations"] < 100:
            raise Spoilt(f"verify says {verdict.status}, {verdict.counts}")

    def audit_log() -> None:
        from causet.spark.batch.audit import audit_files
        from causet.spark.read.source import open_trace

        with open_trace(spark, logs["large", "numbers"]) as source:
            found = audit_files(source.in_file_order(), events_of(source.files), "file_order")
        if found.in_causal_order.wrong_links or not found.in_time_order.wrong_links:
            raise Spoilt(f"audit says {found.summary()}")

    order("small", "numbers")  # the first use compiles
    shutil.rmtree(out)
    judge("small")
    works: dict[str, Callable[[], None]] = {
        "sort numbers": lambda: sort("numbers"),
        "order numbers": lambda: order("large", "numbers"),
        "slabs numbers": lambda: slabs("numbers"),
        "one slab": lambda: slabs("numbers", 1),
        "64 slabs": lambda: slabs("numbers", 64),
        "sort texts": lambda: sort("texts"),
        "order texts": lambda: order("large", "texts"),
        "slabs texts": lambda: slabs("texts"),
        "sort messages": lambda: sort("messages"),
        "verify": lambda: judge("large"),
        "verify files": judge_files,
        "audit files": audit_log,
        "order small": lambda: order("small", "numbers"),
        "verify small": lambda: judge("small"),
    }
    taken: dict[str, float] = {}
    memory: dict[str, int] = {}
    for _ in range(plan.turns):
        for name, do in works.items():
            with Watch() as watch:
                begin = monotonic()
                do()
                seconds = monotonic() - begin
            taken[name] = min(seconds, taken.get(name, seconds))
            memory[name] = max(watch.most, memory.get(name, 0))
            shutil.rmtree(out, ignore_errors=True)
    spark.stop()
    for case, name, base, most in (
        ("order files, references process#seq", "slabs numbers", "sort numbers", 1.0),
        ("order files, references any text", "slabs texts", "sort texts", 1.3),
        ("order files in 64 slabs", "64 slabs", "one slab", 1.5),
        ("order rows, references process#seq", "order numbers", "sort numbers", 2.0),
        ("order rows, references any text", "order texts", "sort texts", 4.0),
        ("verify files", "verify files", "sort messages", 1.6),
        ("audit files", "audit files", "sort numbers", 1.6),
        ("verify rows", "verify", "sort messages", 3.0),
        ("order, ten times the events", "order numbers", "order small", 11.0),
        ("verify, ten times the events", "verify", "verify small", 11.0),
    ):
        yield Result(
            "spark",
            case,
            taken[name] / taken[base],
            f"{plan.events:,} events: {taken[name]:.1f} s against {taken[base]:.1f} s for {base}; a Python "
            f"worker took {memory[name] >> 20:,} MiB at most",
            {"seconds": taken[name], "base_seconds": taken[base], "worker_bytes": memory[name]},
            most if plan.bounds else None,
        )
    for count in (1, 64):
        share = sliced["numbers", count].largest
        yield Result(
            "spark",
            f"largest task of {count} slabs" if count > 1 else "largest task of one slab",
            share,
            f"{plan.events:,} events: the largest task looked at {share:.1%} of all that tasks looked at",
            {"share": share},
            {1: 1.0, 64: 0.05}[count] if plan.bounds else None,
        )


def _first_result(work: Path, plan: Plan) -> Iterator[Result]:
    """From the start of the command to its result, against a plain session that does as little."""
    trace = work / "small.jsonl"
    causet = [str(Path(sys.executable).with_name("causet"))]
    subprocess.run(
        [*causet, "simulate", "-p", "matrix", "-m", "200", "-o", trace], check=True, capture_output=True
    )
    plain = work / "plain.py"
    plain.write_text(
        "from pyspark.sql import SparkSession\n"
        f"rows = SparkSession.builder.getOrCreate().read.json({str(trace)!r}).select('process', 'seq')\n"
        "rows = rows.mapInArrow(lambda batches: batches, 'process string, seq long').orderBy('seq')\n"
        "print(len(rows.collect()))\n"
    )
    commands = {"verify": [*causet, "verify", str(trace)], "plain": [sys.executable, str(plain)]}
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    taken: dict[str, float] = {}
    for _ in range(2 + plan.turns):  # the first time makes what is kept for quick starts
        for name, command in commands.items():
            begin = monotonic()
            with subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
            ) as process:
                assert process.stdout is not None
                if not process.stdout.readline():
                    raise Spoilt(f"{name} printed nothing")
                seconds = monotonic() - begin
            taken[name] = min(seconds, taken.get(name, seconds))
    yield Result(
        "spark",
        "first result of verify",
        taken["verify"] / taken["plain"],
        f"{taken['verify']:.1f} s from the start of the command, {taken['plain']:.1f} s for a plain session",
        {"seconds": taken["verify"], "base_seconds": taken["plain"]},
        8 / 14 if plan.bounds else None,
    )


class Watch:
    """The largest resident set among the Python workers, looked at ten times a second."""

    def __enter__(self) -> Watch:
        self.most = 0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._done.wait(0.1):
            for folder in Path("/proc").glob("[0-9]*"):
                try:
                    if b"pyspark.worker" in (folder / "cmdline").read_bytes():
                        pages = int((folder / "statm").read_text().split()[1])
                        self.most = max(self.most, pages * 4096)
                except (OSError, IndexError, ValueError):
                    continue

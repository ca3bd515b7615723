"""Streams in causal order against the same stream passed through untouched; a merge against a sort by time.

16 receivers with 8 sources each; a message depends on the latest of two other sources, and comes up to 2,000
places away from where it was sent. Everything is wall-clock time, best of two turns, in one session with the
settings of the commands, on the same files; all write Parquet. Of streams, the batches after the first one
count. From files to files is what the commands do, where workers read and write the files; passed through,
and as a transform of Spark's rows, Spark reads and writes them. With readers each, the same receivers are
groups that stand in the stamps, and each group is its own reader: no column says for whom a message is. The
unit of parallelism is the receiver for `deliver`, a slice of time for `merge`: two workers share the work in
both.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic, time
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.result import Result, Spoilt

if TYPE_CHECKING:  # they bring Spark with them, which other benchmarks do without
    from causet.spark.streams.query import Transform

Array = np.ndarray[Any, Any]

RECEIVERS, SOURCES = 16, 8
PER_TICK = 100
"""Messages in a ms of their time."""
SPREAD = 2_000
BUCKETS = 64


@dataclass(frozen=True)
class Plan:
    batch: int
    batches: int
    sorted: int
    turns: int = 2
    bounds: bool = True


def results(quick: bool) -> Iterator[Result]:
    return measure(Plan(100_000, 2, 500_000, 1, False) if quick else Plan(800_000, 4, 10_000_000))


def write_stream(folder: Path, batch: int, batches: int, grouped: bool = False) -> None:
    """Files of so many messages each, in the order in which they come.

    :param grouped: each receiver is a group of its own, and messages say so in their stamps.
    """
    folder.mkdir(parents=True)
    draw = np.random.default_rng(1)
    rows = batch * batches
    receiver, source = draw.integers(0, RECEIVERS, rows), draw.integers(0, SOURCES, rows)
    stream = receiver * SOURCES + source
    number = np.empty(rows, np.int64)
    by_stream = np.argsort(stream, kind="stable")
    first = np.searchsorted(stream[by_stream], np.arange(RECEIVERS * SOURCES + 1))
    number[by_stream] = np.arange(rows) - np.repeat(first[:-1], np.diff(first)) + 1
    entry = np.dtype([("number", "<i8"), ("length", "<u2"), ("name", "S2")])
    receivers = np.array([f"r{each:02}" for each in range(RECEIVERS)])
    group = [("length", "<u2"), ("group", "S3"), ("entries", "<u4")] if grouped else []
    packed = np.zeros(rows, np.dtype([("version", "u1"), *group, ("a", entry), ("b", entry)]))
    packed["version"] = 2 if grouped else 1
    if grouped:
        packed["length"], packed["group"], packed["entries"] = 3, receivers.astype("S3")[receiver], 2
    whole = np.ones(rows, np.bool_)
    for name, step in (("a", 1), ("b", 3)):
        other = (source + step) % SOURCES
        latest = _latest(receiver * SOURCES + other, stream)
        packed[name]["number"] = latest
        packed[name]["length"] = 2
        packed[name]["name"] = np.array([f"s{each}" for each in range(SOURCES)], "S2")[other]
        whole &= latest > 0
    raw = f"V{packed.dtype.itemsize}"
    deps = pa.array(np.where(whole, packed.view(raw), np.zeros(1, raw)).tolist(), pa.binary())
    none = b"\x02" if grouped else b"\x01"
    deps = pa.compute.if_else(pa.array(whole), deps, pa.scalar(none, pa.binary()))
    sent = 1_700_000_000_000_000 + np.arange(rows) * (1000 // PER_TICK)
    places = {"receiver": pa.array(receivers[receiver]), "sequence": pa.array(number)}
    if grouped:
        one = np.arange(rows + 1, dtype=np.int32)
        places = {"numbers": pa.MapArray.from_arrays(one, places["receiver"], places["sequence"])}
    table = pa.table(
        {
            **places,
            "source": pa.array(np.array([f"s{each}" for each in range(SOURCES)])[source]),
            "deps": deps,
            "rc": pa.array(sent),
            "r": pa.array(sent),
            "text": pa.array(np.arange(rows)).cast(pa.string()),
        }
    )
    came = np.argsort(np.arange(rows) + draw.integers(0, SPREAD, rows), kind="stable")
    for each in range(batches):
        some = table.take(pa.array(came[each * batch : (each + 1) * batch]))
        pq.write_table(some, folder / f"{each:05}.parquet")


def _latest(wanted: Array, stream: Array) -> Array:
    """For each message the last number in the wanted stream before it; 0 if there is none."""
    found = np.zeros(len(stream), np.int64)
    for each in np.unique(stream).tolist():
        at = np.flatnonzero(stream == each)
        mine = np.flatnonzero(wanted == each)
        found[mine] = np.searchsorted(at, mine)
    return found


def measure(plan: Plan) -> Iterator[Result]:
    from causet.cli.shared.spark import for_streams
    from causet.spark import deliver, merge
    from causet.spark.start.session import spark_session

    with TemporaryDirectory() as made:
        work = Path(made)
        write_stream(work / "in", plan.batch, plan.batches)
        write_stream(work / "warm", 20_000, 2)
        write_stream(work / "in-grouped", plan.batch, plan.batches, grouped=True)
        write_stream(work / "warm-grouped", 20_000, 2, grouped=True)
        write_stream(work / "large", plan.sorted, 1)
        spark = spark_session(None, for_streams(None, {}, BUCKETS, work / "in"), silent=True)
        delivered, merged = (
            deliver(missing="wait", by="receiver"),
            merge(epsilon="10 ms", delta="100 ms", buckets=BUCKETS),
        )
        each = deliver(missing="wait", readers="each")
        streams: dict[str, Callable[[Path], tuple[float, int]]] = {
            "passed through": lambda folder: _stream(spark, folder, work / "out", lambda rows: rows),
            "deliver": lambda folder: deliver_files(spark, folder, work / "out", delivered),
            "deliver to each": lambda folder: deliver_files(
                spark, folder.with_name(f"{folder.name}-grouped"), work / "out", each
            ),
            "merge": lambda folder: deliver_files(spark, folder, work / "out", merged),
            "deliver rows": lambda folder: _stream(spark, folder, work / "out", delivered),
            "merge rows": lambda folder: _stream(spark, folder, work / "out", merged),
        }
        taken: dict[str, float] = {}
        for turn in range(plan.turns + 1):
            for name, through in streams.items():
                seconds, rows = through(work / ("warm" if turn == 0 else "in"))
                if turn:
                    taken[name] = min(seconds, taken.get(name, seconds))
                    least = plan.batch * plan.batches * (0.5 if "merge" in name else 0.98)
                    if rows < least:
                        raise Spoilt(f"{name} gave {rows:,} rows")
        for turn in range(plan.turns + 1):
            large = spark.read.parquet(str(work / ("warm" if turn == 0 else "large")))
            batches: dict[str, Callable[[Any], Any]] = {
                "sort by time": lambda rows: rows.orderBy("rc"),
                "merge in batch": merged,
            }
            for name, make in batches.items():
                begin = monotonic()
                large.transform(make).write.parquet(str(work / "out"))
                if turn:
                    seconds = monotonic() - begin
                    taken[name] = min(seconds, taken.get(name, seconds))
                shutil.rmtree(work / "out")
        latency = _latency(spark, work, delivered, 20 if plan.bounds else 5)
        spark.stop()
    rows = plan.batch * (plan.batches - 1)
    for case, name, base, most, count in (
        ("deliver, files to files", "deliver", "passed through", 1 / 0.3, rows),
        ("deliver, readers each, files to files", "deliver to each", "passed through", 1 / 0.3, rows),
        ("deliver, readers each, over --by", "deliver to each", "deliver", None, rows),
        ("merge, files to files", "merge", "passed through", 1 / 0.5, rows),
        ("deliver, Spark's rows", "deliver rows", "passed through", None, rows),
        ("merge, Spark's rows", "merge rows", "passed through", None, rows),
        ("merge, a batch", "merge in batch", "sort by time", 1.3, plan.sorted),
    ):
        yield Result(
            "streams",
            case,
            taken[name] / taken[base],
            f"{count:,} messages: {count / taken[name]:,.0f} per second against {count / taken[base]:,.0f} "
            f"for {base}, {taken[base] / taken[name]:.2f} of it",
            {"seconds": taken[name], "base_seconds": taken[base]},
            most if plan.bounds else None,
        )
    half, most = (float(np.quantile(latency, share)) for share in (0.5, 0.99))
    yield Result(
        "streams",
        "latency of deliver, p99 to p50",
        most / half,
        f"{len(latency):,} messages at 1,000 per second: half within {half:.2f} s of their arrival, 99 % "
        f"within {most:.2f} s",
        {"p50": half, "p99": most},
    )


def _stream(spark: Any, folder: Path, out: Path, transform: Callable[[Any], Any]) -> tuple[float, int]:
    schema = spark.read.parquet(str(folder)).schema
    source = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))
    rows = transform(source)
    query = (
        rows.writeStream.format("parquet")
        .option("checkpointLocation", str(out / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(out / "rows"))
    )
    query.awaitTermination()
    # The first batch compiles and plans; from then on a stream is what it is going to be.
    steady = [event for event in query.recentProgress if event["numInputRows"]][1:]
    seconds = sum(event["durationMs"]["triggerExecution"] for event in steady) / 1000
    count = spark.read.parquet(str(out / "rows")).count()
    shutil.rmtree(out)
    return seconds, count


def deliver_files(spark: Any, folder: Path, out: Path, transform: Transform) -> tuple[float, int]:
    """As `_stream`, as the commands do it."""
    from causet.spark.streams.checkpoint import Checkpoint
    from causet.spark.streams.file_sink import FileSink
    from causet.spark.streams.file_source import arriving_files
    from causet.spark.streams.running import Progress, run

    out.mkdir()
    sink = FileSink(out / "rows", "parquet")
    sink.claim("bench", {})
    progress = Progress()
    with Checkpoint(out / "checkpoint") as kept:
        kept.opened("bench", {})
        files = arriving_files(spark, folder, spark.read.parquet(str(folder)).schema, 1)
        run(transform.blobs(files), sink, kept, False, progress, lambda _: None)
    seconds = sum(batch.seconds for batch in list(progress.history)[1:] if batch.taken)
    count = spark.read.parquet(str(out / "rows")).count()
    shutil.rmtree(out)
    return seconds, count


def _latency(spark: Any, work: Path, transform: Callable[[Any], Any], seconds: int) -> Array:
    """Seconds between the arrival of messages, a thousand a second, and the end of the batch with them."""
    made = work / "steady"
    write_stream(made, 250, 4 * seconds)
    inbox = work / "inbox"
    inbox.mkdir()
    schema = spark.read.parquet(str(made)).schema
    came: dict[str, float] = {}
    waited: list[float] = []

    def note(batch: Any, _: int) -> None:
        files = [row[0].rpartition("/")[2] for row in batch.select("file").collect()]
        now = time()
        waited.extend(now - came[file] for file in files)

    from pyspark.sql import functions as F

    source = (
        spark.readStream.schema(schema).parquet(str(inbox)).withColumn("file", F.col("_metadata.file_path"))
    )
    query = (
        transform(source)
        .writeStream.foreachBatch(note)
        .option("checkpointLocation", str(work / "steady-checkpoint"))
        .start()
    )
    begin = time()
    for number, file in enumerate(sorted(made.iterdir())):
        rest = begin + number / 4 - time()
        if rest > 0:
            query.awaitTermination(rest)
        came[file.name] = time()
        file.rename(inbox / file.name)
    query.processAllAvailable()
    query.stop()
    return np.array(waited)

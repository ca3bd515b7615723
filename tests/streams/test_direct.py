"""Parquet files that workers read and write themselves: the same rows as by way of Spark."""

from __future__ import annotations

import random
import shutil
import sys
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark import cloudpickle
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from causet.errors import BadInput
from causet.spark import deliver, merge
from causet.spark.start.errors import innermost, sentence_for, translated
from causet.spark.streams.checkpoint import Checkpoint
from causet.spark.streams.file_sink import FileSink
from causet.spark.streams.file_source import arriving, arriving_files, check_messages, has_columns_in_names
from causet.spark.streams.merge.packers import Judge, MergeSettings
from causet.spark.streams.merge.rows import CODE, FOUND, IS_BEAT, Extra, problem_with
from causet.spark.streams.pack import from_blob, to_blob
from causet.spark.streams.parquet import ToFiles, arrow_schema, buckets_of, is_plain, read
from causet.spark.streams.running import Progress, run
from causet.spark.streams.state import SEGMENT_BITS, Segments, as_blobs
from causet.stamp import HEARTBEAT
from tests.helpers.clocked import SCHEMA as MERGED
from tests.helpers.clocked import Network
from tests.helpers.deliveries import by_engine, in_order, told
from tests.helpers.streams import SENT, Streams, write_parquet

TIMED = pa.schema(
    [
        ("source", pa.string()),
        ("sequence", pa.int64()),
        ("rc", pa.int64()),
        ("r", pa.int64()),
        ("subject", pa.string()),
        ("type", pa.string()),
    ]
)


def through(
    spark: SparkSession, folder: Path, transform: Any, by_workers: bool = True, per_batch: int = 1
) -> Progress:
    """From the files in `in` to those in `out`, as the commands do it; or by way of Spark's rows."""
    schema = spark.read.parquet(str(folder / "in")).schema
    progress = Progress()
    sink = FileSink(folder / "out", "parquet")
    sink.claim("q", {})
    with Checkpoint(folder / "checkpoint") as kept:
        if by_workers:
            blobs = transform.blobs(arriving_files(spark, folder / "in", schema, per_batch))
        else:
            blobs = transform.blobs(arriving(spark, folder / "in", "parquet", schema, per_batch))
        with translated():
            run(blobs, sink, kept, False, progress, lambda _: None)
    return progress


def rows_in(spark: SparkSession, folder: Path) -> list[Row]:
    """By the names of the files, as a reader who knows nothing of us would."""
    found: list[Row] = []
    for file in sorted(folder.glob("*.parquet")):
        found += spark.read.parquet(str(file)).collect()
    return found


def test_workers_find_the_bucket_that_spark_finds(spark: SparkSession) -> None:
    draw = random.Random(1)
    letters = "aZ09 äß漢😀\0"
    names: list[str | None] = ["", None, "all", *("".join(draw.choices(letters, k=n)) for n in range(120))]
    frame = spark.createDataFrame([(name,) for name in names], "name string")
    for buckets in (1, 7, 64, 65_536):
        bucket = F.pmod(F.xxhash64(F.coalesce("name", F.lit(""))), F.lit(buckets))
        expected = {row.name: row.bucket for row in frame.withColumn("bucket", bucket).collect()}
        found = buckets_of(pa.array(names), buckets).tolist()
        assert dict(zip(names, found, strict=True)) == expected


def test_workers_refuse_what_spark_refuses(spark: SparkSession) -> None:
    """Rows with all combinations of edges: the rule stands once, and both ways apply it alike."""
    now, epsilon = 1_000_999, 50
    edges = (None, -(2**63), -1, 0, now - 1, now, now + epsilon, now + epsilon + 1, 2**52, 2**53, 2**63 - 1)
    numbers = (None, -1, 0, 1, 2**53 - 1, 2**53, 2**60)
    rows = [
        (name, number, rc, r, "x", kind, process)
        for name, process in (("a", None), ("a", "p"), (None, "p"), ("", "p"), ("a", ""))
        for kind in (HEARTBEAT, "x", None)
        for number in numbers
        for rc in (*edges, now + 2 * epsilon + 1000, now + 2 * epsilon + 1001)
        for r in edges
    ]
    schema = f"{MERGED}, process string"
    frame = spark.createDataFrame(rows, schema)
    code = problem_with(FOUND, epsilon, F.lit(now), Extra.of_rows(frame)).alias("code")
    expected = [row.code for row in frame.select(code).collect()]
    settings = MergeSettings(FOUND, epsilon, 0, (), (), 0, 1, 1, process=("process",))
    names = [each.split()[0] for each in schema.split(", ")]
    columns = [dict(zip(names, row, strict=True)) for row in rows]
    timed = TIMED.append(pa.field("process", pa.string()))
    judged = Judge(settings)(pa.RecordBatch.from_pylist(columns, timed), now // 1000)
    assert judged.column(CODE).to_pylist() == expected
    assert set(expected) == {None, IS_BEAT, 1, 2, 4, 5, 6, 7, 8, 9}, "every problem of numbers is among them"


@pytest.fixture(scope="module")
def streams() -> Streams:
    return Streams(seed=100, runs=10, most=1200)


def test_deliver_from_files_to_files_gives_what_the_engine_gives(
    spark: SparkSession, tmp_path: Path, streams: Streams
) -> None:
    messages = streams.damaged(1, loss=0.0)
    write_parquet(tmp_path / "in", messages, 400)
    progress = through(spark, tmp_path, deliver(missing="wait", by="receiver"), per_batch=2)
    rows = rows_in(spark, tmp_path / "out")
    assert told(rows) == by_engine(messages, "wait")
    assert streams.violations(in_order(rows)) == 0
    assert progress.taken == len(messages), "messages are counted, not files"
    assert progress.batches > 1


def test_a_checkpoint_goes_on_whichever_way_the_rows_come(
    spark: SparkSession, tmp_path: Path, streams: Streams
) -> None:
    messages = streams.damaged(1, loss=0.0)
    transform = deliver(missing="wait", by="receiver")
    for number, by_workers in enumerate((False, True, False, True)):
        write_parquet(tmp_path / "in", messages[number::4], 1000)
        through(spark, tmp_path, transform, by_workers)
    rows = rows_in(spark, tmp_path / "out")
    assert told(rows) == by_engine(messages, "wait")
    assert streams.violations(in_order(rows)) == 0


@pytest.mark.parametrize("changing", [pytest.param(False, marks=pytest.mark.soak), True])
def test_merge_from_files_to_files_gives_the_order(
    spark: SparkSession, tmp_path: Path, changing: bool
) -> None:
    network = Network(3)
    transform = merge(epsilon="50 ms", delta="400 ms", buckets=4)
    batches = [network.messages[:150], network.messages[150:], network.beats]
    for number, batch in enumerate(batches):
        write_parquet(tmp_path / "in", batch, 60, TIMED)
        progress = through(spark, tmp_path, transform, not changing or number % 2 == 1, per_batch=2)
    rows = rows_in(spark, tmp_path / "out")
    assert [row.subject for row in rows] == network.expected()
    assert {row.status for row in rows} == {"delivered"}
    assert progress.taken == progress.held == len(network.beats)


@pytest.mark.parametrize("by_workers", [True, False])
def test_merge_keeps_a_column_that_is_called_status(
    spark: SparkSession, tmp_path: Path, by_workers: bool
) -> None:
    messages: list[dict[str, Any]] = [
        {
            "source": "a",
            "sequence": number,
            "rc": 1_000_000 * number,
            "r": 1_000_000 * number,
            "status": f"paid {number}",
        }
        for number in (1, 2, 3)
    ]
    write_parquet(tmp_path / "in", messages, 10, TIMED.append(pa.field("status", pa.string())))
    through(spark, tmp_path, merge(epsilon=0, delta=0, buckets=2), by_workers)
    rows = [(row.status, row.input_status) for row in rows_in(spark, tmp_path / "out")]
    assert rows == [("delivered", "paid 1"), ("delivered", "paid 2")]


def test_what_is_no_message_goes_aside_with_the_problem(spark: SparkSession, tmp_path: Path) -> None:
    good: list[dict[str, Any]] = [
        {"receiver": "r", "source": "a", "sequence": number, "causaldeps": "{}"} for number in (2, 1, 3)
    ]
    bad = [{**good[0], "sequence": 2**60}, {**good[0], "source": None}, {**good[0], "causaldeps": "no"}]
    write_parquet(tmp_path / "in", [bad[0], *good, *bad[1:]], 100)
    (tmp_path / "in/00000.parquet").rename(tmp_path / "in/a b%20ä#{x}.parquet")
    through(spark, tmp_path, deliver(missing="wait", by="receiver"))
    assert [row.sequence for row in rows_in(spark, tmp_path / "out")] == [1, 2, 3]
    aside = rows_in(spark, tmp_path / "out-diverted")
    assert {row.problem for row in aside} == {
        f"has a sequence that is not between 1 and {2**53 - 1}",
        "has no source",
        "has causaldeps that cannot be read",
    }
    assert all(row.status == "diverted" and row["index"] is None for row in aside)


# ---------------------------------------------------------------- files


def test_a_file_is_read_with_the_columns_that_are_wanted(tmp_path: Path) -> None:
    names = pa.array(["a", "b"]).dictionary_encode()
    table = pa.table({"source": names, "sequence": pa.array([1, 2], pa.int32()), "Subject": ["x", "y"]})
    pq.write_table(table, tmp_path / "x.parquet")
    rows = pa.Table.from_batches(list(read(tmp_path / "x.parquet", SENT)))
    assert rows.schema == SENT
    assert rows.to_pylist() == [
        {"receiver": None, "source": name, "sequence": number, "causaldeps": None, "subject": None}
        for name, number in (("a", 1), ("b", 2))
    ]


@pytest.mark.parametrize("packed", [False, True])
def test_large_rows_are_read_few_at_a_time(tmp_path: Path, packed: bool) -> None:
    texts = [str(number) * 500_000 for number in range(10)] * 12
    pq.write_table(pa.table({"subject": texts}), tmp_path / "x.parquet", use_dictionary=packed)
    schema = pa.schema([("subject", pa.string())])
    batches = list(read(tmp_path / "x.parquet", schema))
    assert [text for batch in batches for text in batch.column(0).to_pylist()] == texts
    assert max(batch.nbytes for batch in batches) < 20 << 20


def test_types_are_those_of_spark_on_its_way_to_python(spark: SparkSession, tmp_path: Path) -> None:
    """What waits in the state may have come by either way: the columns must have the same types."""
    made = spark.sql(
        "select timestamp '2024-01-01 12:00:00' as at, date '2024-01-01' as day, 1.5d as x, 2.5 as d, "
        "array(1, 2) as a, map('k', 1L) as m, named_struct('b', true, 's', 'x') as s, x'00ff' as y, 1Y as z"
    )
    made.write.parquet(str(tmp_path / "x"))
    frame = spark.read.parquet(str(tmp_path / "x"))
    assert is_plain(frame.schema)
    found: list[bytes] = [
        bytes(row[0])
        for row in frame.mapInArrow(
            lambda batches: (
                pa.RecordBatch.from_arrays([pa.array([batch.schema.serialize().to_pybytes()])], ["schema"])
                for batch in batches
            ),
            "schema binary",
        ).collect()
    ]
    expected = pa.ipc.read_schema(pa.py_buffer(found[0]))
    schema = arrow_schema(frame.schema, spark)
    assert schema.equals(expected)
    (file,) = (tmp_path / "x").glob("*.parquet")
    (rows,) = read(file, schema)
    assert rows.to_pylist() == frame.toArrow().cast(schema).to_pylist()


def test_a_file_that_cannot_be_read_is_named(spark: SparkSession, tmp_path: Path) -> None:
    write_parquet(tmp_path / "in", [{"receiver": "r", "source": "a", "sequence": 1}], 10)
    transform = deliver(missing="wait", by="receiver")
    through(spark, tmp_path, transform)
    (tmp_path / "in/00001.parquet").write_bytes(b"PAR1 this is none PAR1")
    schema = spark.read.parquet(str(tmp_path / "in/00000.parquet")).schema
    with Checkpoint(tmp_path / "checkpoint") as kept, translated():
        blobs = transform.blobs(arriving_files(spark, tmp_path / "in", schema))
        with pytest.raises(BadInput, match=r"00001\.parquet cannot be read: "), translated():
            run(
                blobs,
                FileSink(tmp_path / "out", "parquet"),
                kept,
                False,
                Progress(),
                lambda _: None,
            )
    assert [row.sequence for row in rows_in(spark, tmp_path / "out")] == [1], "what was there before stays"


def test_folders_with_columns_in_their_names_are_left_to_spark(tmp_path: Path) -> None:
    write_parquet(tmp_path / "day=1", [{"source": "a"}], 10)
    assert has_columns_in_names(tmp_path)
    write_parquet(tmp_path, [{"source": "a"}], 10)
    with pytest.raises(BadInput, match=r"day=1/00000\.parquet is in a folder that gives the value"):
        has_columns_in_names(tmp_path)
    shutil.rmtree(tmp_path / "day=1")
    assert not has_columns_in_names(tmp_path)


@pytest.mark.parametrize(
    ("column", "said"),
    [
        (pa.array(["1", "2"]), 'column "sequence" is string, and was int64 before'),
        (pa.array([1.5, 2.0]), 'column "sequence" is double, and was int64 before'),
        (pa.array([2**63, 1], pa.uint64()), "Integer value 9223372036854775808 not in range"),
    ],
)
def test_a_column_of_another_type_is_named(tmp_path: Path, column: pa.Array, said: str) -> None:
    pq.write_table(pa.table({"sequence": column}), tmp_path / "x.parquet")
    with pytest.raises(BadInput, match=rf"x\.parquet cannot be read: {said}"):
        list(read(tmp_path / "x.parquet", SENT))


def test_a_column_that_stands_twice_is_refused(tmp_path: Path) -> None:
    twice = pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"])], names=["source", "source"])
    pq.write_table(twice, tmp_path / "x.parquet")
    with pytest.raises(BadInput, match=r"x\.parquet cannot be read: it has two columns of one name"):
        list(read(tmp_path / "x.parquet", SENT))


def test_times_far_from_now_are_read(spark: SparkSession, tmp_path: Path) -> None:
    """As Spark writes them unless it is told otherwise."""
    spark.sql("select timestamp '9999-12-30 00:00:00' as at").write.parquet(str(tmp_path / "x"))
    (file,) = (tmp_path / "x").glob("*.parquet")
    (rows,) = read(file, pa.schema([("at", pa.timestamp("us", "UTC"))]))
    assert rows.column(0)[0].as_py().year == 9999


@pytest.mark.parametrize("by_workers", [False, True])
def test_every_file_is_read_once_whatever_its_name_and_below_folders_too(
    spark: SparkSession, tmp_path: Path, by_workers: bool
) -> None:
    names = ["a", "[a]", "{a,b}", "*", "a b", "ä#%20", "below/a", "below/deep/c"]
    for number, name in enumerate(names, 1):
        write_parquet(tmp_path / "made", [{"receiver": "r", "source": "a", "sequence": number}], 1)
        target = tmp_path / "in" / f"{name}.parquet"
        target.parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / f"made/{number - 1:05}.parquet").rename(target)
        (tmp_path / f"made/{number - 1:05}.parquet").touch()  # so that the next one has another number
    (tmp_path / "in/README.txt").write_text("no messages")
    (tmp_path / "in/00000.parquet").write_bytes((tmp_path / "in/a.parquet").read_bytes())  # a copy
    progress = through(spark, tmp_path, deliver(missing="wait", by="receiver"), by_workers, per_batch=4)
    assert progress.taken == len(names) + 1
    assert progress.counts["duplicates"] == 1
    assert [row.sequence for row in rows_in(spark, tmp_path / "out")] == list(range(1, len(names) + 1))


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("x.parquet", b"", "x.parquet is empty"),
        ("x.parquet", b"PAR1 and then no more", "is not a Parquet file, or only a part of one"),
        ("x.parquet", b"something else PAR1", "is not a Parquet file, or only a part of one"),
        ("10:00.jsonl", b"{}", "Spark reads no file with a colon in its name; rename it"),
    ],
)
def test_what_cannot_be_read_is_said_before_spark_is_started(
    tmp_path: Path, name: str, content: bytes, said: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(BadInput, match=said):
        check_messages(tmp_path)


def test_a_batch_that_did_not_end_needs_its_files(spark: SparkSession, tmp_path: Path) -> None:
    """Run again without one of them, it would replace its rows by fewer."""
    for number in (1, 2):
        write_parquet(tmp_path / "in", [{"receiver": "r", "source": "a", "sequence": number}], 1)
        through(spark, tmp_path, deliver(missing="wait", by="receiver"))
    kept = Checkpoint(tmp_path / "checkpoint")
    (tmp_path / "in/00000.parquet").unlink()
    kept.check_files()
    last = max((kept.spark / "commits").glob("[0-9]*"), key=lambda file: int(file.name))
    last.unlink()
    kept.check_files()
    (tmp_path / "in/00001.parquet").rename(tmp_path / "away")
    with pytest.raises(BadInput, match=r"00001\.parquet is gone, and belongs to a batch"):
        kept.check_files()


def test_a_checkpoint_is_for_one_run_at_a_time(tmp_path: Path) -> None:
    with Checkpoint(tmp_path / "state") as one:
        assert one.opened("deliver", {}) is None
        with (
            Checkpoint(tmp_path / "state") as two,
            pytest.raises(BadInput, match="another process runs with the checkpoint"),
        ):
            two.opened("deliver", {})
    with Checkpoint(tmp_path / "state") as three:
        assert three.opened("deliver", {}) is None


def test_rows_that_wait_since_the_session_had_another_time_zone() -> None:
    moments = pa.array([1, 2], pa.timestamp("us", "UTC"))
    store = {(0,): (to_blob(pa.table({"at": moments.cast(pa.timestamp("us", "Asia/Tokyo"))})),)}
    segments = Segments(MagicMock(getValue=store.get), 1)
    segments.begin(pa.table({"at": moments}))
    found = segments.taken(np.array([1 << SEGMENT_BITS, 1]))
    assert found.column("at").to_pylist() == [moments[0].as_py(), moments[1].as_py()]


def test_rows_that_leave_an_operator_are_blobs_of_bounded_size() -> None:
    table = pa.table({"text": ["x" * 1_000_000] * 100})
    blobs = [row["rows"] for row in as_blobs(table)]
    assert max(map(len, blobs)) < 40 << 20
    assert sum(from_blob(blob).num_rows for blob in blobs) == 100


def test_what_a_worker_says_is_told() -> None:
    """A traceback of a worker inside an exception of Spark's: its last line, not its first."""
    text = (
        "[STREAM_FAILED] Query [id = 1] terminated with exception: An exception was thrown from the Python "
        'worker:\nTraceback (most recent call last):\n  File "x.py", line 1, in f\n    g()\n'
        "pyarrow.lib.ArrowInvalid: Schema at index 1 was different:\nSQLSTATE: XXKST"
    )
    assert innermost(Exception(text)) == "pyarrow.lib.ArrowInvalid: Schema at index 1 was different:"
    denied = "java.io.FileNotFoundException: /data/x/.part (Permission denied)"
    assert sentence_for(Exception(denied)) == "permission was denied: /data/x/.part"


def test_only_files_of_tasks_that_ended_well_belong_to_a_batch(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task that was run before, and was killed or was slow, leaves a file, whole or half."""
    write_parquet(tmp_path / "in", [{"receiver": "r", "source": "a", "sequence": 1, "causaldeps": "{}"}], 10)
    monkeypatch.setattr("causet.spark.streams.file_sink.ToFiles", Leaving)
    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]
    through(spark, tmp_path, deliver(missing="wait", by="receiver"))
    assert len(list((tmp_path / "out").glob("*.parquet"))) == 1
    assert [row.sequence for row in rows_in(spark, tmp_path / "out")] == [1]
    assert not [each for each in (tmp_path / "out").iterdir() if each.name.endswith(".part")]


class Leaving(ToFiles):
    """Leaves, beside its own file, one of a task that was run before it."""

    def __call__(self, blobs: Any) -> Any:
        for place in ("kept", "aside"):
            (self.folder / place).mkdir(parents=True, exist_ok=True)
            (self.folder / place / "part-00000-0.parquet").write_bytes(b"half")
        yield from super().__call__(blobs)

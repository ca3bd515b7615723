"""`causet order` in slabs: the same files' rows as by the pass over the whole log, and the same sentences."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from causet.errors import BadInput
from causet.formats.execution import Fault
from causet.formats.parquet import write_parquet
from causet.model import Event
from causet.slabs.plan import Plan
from causet.slabs.rows import are_events
from causet.spark.batch import order_files as files
from causet.spark.batch.order_files import Written, order_files
from causet.spark.read import arrow as tables
from causet.spark.read.columns import refused
from causet.spark.read.source import open_trace
from causet.spark.read.types import KNOWN
from causet.spark.slabs import certified as slabs
from causet.spark.slabs import order as sampling
from causet.spark.slabs import tasks
from tests.helpers.orders import by_definition
from tests.helpers.slabs import as_table, random_log

Order = Callable[..., Written]


@pytest.fixture
def order(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Order:
    """Order files of any size in slabs of 50 rows, or as a whole."""
    monkeypatch.setattr(files, "SMALL", 0)
    monkeypatch.setattr(slabs, "SLAB_ROWS", 50)
    monkeypatch.setattr(slabs, "WIDEST", 10_000)
    monkeypatch.setattr(slabs, "MOST", 10_000)
    target = tmp_path / "ordered"

    def ordered(*paths: Path, in_slabs: bool = True, accept: Any = lambda _: None) -> Written:
        with monkeypatch.context() as only, open_trace(spark, paths) as source:
            if not in_slabs:
                only.setattr(files, "SMALL", 1 << 60)
            return order_files(source, str(target), "parquet", True, False, accept)

    return ordered


def rows_of(written: Written) -> pa.Table:
    return pa.concat_tables([pq.read_table(file) for file in written.files])


def sound_log(seed: int, of: int = 200) -> list[Event]:
    """A random log without a cycle."""
    for number in range(seed * 1_000, seed * 1_000 + 1_000):
        events = random_log(random.Random(number))
        if len(events) == of and all(each.level for each in by_definition(events)):
            return events
    raise AssertionError


@pytest.mark.parametrize("seed", range(6))
def test_rows_and_faults_are_those_of_the_pass_over_the_whole_log(
    order: Order, tmp_path: Path, seed: int
) -> None:
    events = sound_log(seed)
    table = as_table(events).append_column("note", pa.array([f"n{number}" for number in range(len(events))]))
    halves = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    pq.write_table(table.slice(0, 90), halves[0], row_group_size=40)
    pq.write_table(table.slice(90), halves[1])
    sliced = order(*halves)
    rows = rows_of(sliced)
    assert sliced.slabs >= 3
    whole = order(*halves, in_slabs=False)
    assert whole.slabs == 0
    assert rows.equals(rows_of(whole).cast(rows.schema))
    assert (sliced.events, sliced.processes) == (whole.events, whole.processes)
    counts = [{fault.kind: fault.count for fault in each.faults} for each in (sliced, whole)]
    assert counts[0] == counts[1]
    got = [(row["id"] or f"{row['process']}#{row['seq']}", row["repaired"]) for row in rows.to_pylist()]
    assert got == [(each.id, each.repaired) for each in by_definition(events)]


def plain(count: int, **columns: Any) -> pa.Table:
    """Events of two processes, in turn."""
    numbers = np.arange(count)
    given = {
        "process": pa.array([f"p{number % 2}" for number in range(count)]),
        "seq": pa.array(numbers // 2 + 1),
        "time": pa.array(numbers * 10),
    }
    return pa.table({**given, **columns})


def written(path: Path, table: pa.Table) -> Path:
    pq.write_table(table, path)
    return path


def test_faults_are_named_as_before(order: Order, tmp_path: Path) -> None:
    events = [Event("p", seq, time=10 * seq) for seq in range(1, 150) if seq not in (7, 40, 41)]
    events[3] = Event("p", 4, time=40, parents=("p#2", "nobody"))
    events[100] = Event("p", 104, time=1_040, parents=("p#7",))
    events += [
        Event("q", 1, kind="deliver", message="m", time=5),
        Event("q", 2, kind="receive", message="n", time=6),
    ]
    path = tmp_path / "log.parquet"
    write_parquet(path, events)
    assert order(path).faults == (
        Fault("gap in seq", 2, ('process "p": 7', 'process "p": 40 to 41')),
        Fault("unknown parent", 2, ('"p#4" names "nobody"', '"p#104" names "p#7"')),
        Fault("delivered without a send", 1, ('"q#1": message "m"',)),
        Fault("received without a send", 1, ('"q#2": message "n"',)),
    )


def test_faults_that_are_not_accepted_leave_the_target_as_it_is(order: Order, tmp_path: Path) -> None:
    def refuse(faults: Sequence[Fault]) -> None:
        raise BadInput(f"{len(faults)} faults")

    path = written(tmp_path / "log.parquet", plain(200).slice(1))
    before = order(path).files
    inode = before[0].stat().st_ino
    with pytest.raises(BadInput, match="1 faults"):
        order(path, accept=refuse)
    assert before[0].stat().st_ino == inode
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith(".")] == []


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"process": [*["p"] * 149, None, *["p"] * 50], "seq": range(1, 201)}, "log.parquet, row 150"),
        ({"seq": [*range(1, 100), 0, *range(101, 201)], "process": ["p"] * 200}, "log.parquet, row 100"),
        ({"kind": [*["local"] * 180, "sent", *["local"] * 19]}, "log.parquet, row 181"),
        ({"kind": ["send"] * 200, "message": [None] * 200}, "log.parquet, row 1"),
        ({"parents": [*[[]] * 60, ["p0#1", None], *[[]] * 139]}, "log.parquet, row 61"),
        ({"id": [*[None] * 10, "", *[None] * 189]}, "log.parquet, row 11"),
        ({"seq": [1] * 200}, 'two events have process "p0" and seq 1'),
        ({"id": [*["x", "x"], *[None] * 198]}, 'two events have the id "x"'),
        (
            {"kind": ["send"] * 200, "message": [f"m{n % 150}" for n in range(200)], "to": [["x"]] * 200},
            'the message "m.*" is sent twice',
        ),
        ({"parents": [["p0#100"], *[[]] * 197, ["p0#1"], []]}, "the trace has a cycle"),
        ({"__causet_x": ["x"] * 200}, 'there is a column "__causet_x"; names that begin with __causet_ are'),
        (
            {"parents": [["p1#1"], ["p0#1"], *[[]] * 198]},
            "the trace has a cycle.*: (p0#1 → p1#1 → p0#1|p1#1 → p0#1 → p1#1)",
        ),
    ],
)
def test_bad_input_is_named_by_the_pass_over_the_whole_log(
    order: Order, tmp_path: Path, columns: dict[str, Any], sentence: str
) -> None:
    types = {"parents": pa.list_(pa.string()), "to": pa.list_(pa.string()), "seq": pa.int64()}
    typed = {name: pa.array(list(column), types.get(name, pa.string())) for name, column in columns.items()}
    path = written(tmp_path / "log.parquet", plain(200, **typed))
    with pytest.raises(BadInput, match=sentence):
        order(path)
    assert not (tmp_path / "ordered").exists()


def test_events_without_a_time_are_for_the_pass_over_the_whole_log(order: Order, tmp_path: Path) -> None:
    times = pa.array([None if number % 3 else number for number in range(200)], pa.int64())
    found = order(written(tmp_path / "log.parquet", plain(200, time=times)))
    assert found.slabs == 0
    known = [number if number % 3 == 0 else None for number in range(200)]
    events = [Event(f"p{number % 2}", number // 2 + 1, time=time) for number, time in enumerate(known)]
    assert rows_of(found).column("repaired").to_pylist() == [each.repaired for each in by_definition(events)]


def test_a_nan_is_no_time(order: Order, tmp_path: Path) -> None:
    times = pa.array([float("nan") if number == 7 else float(number) for number in range(200)])
    found = order(written(tmp_path / "log.parquet", plain(200, time=times)))
    assert (found.slabs, found.events) == (0, 200)


def test_columns_keep_their_names_types_and_values(order: Order, tmp_path: Path) -> None:
    count = 200
    others = {
        "position": pa.array(range(count), pa.int32()),
        "Repaired": pa.array([f"r{number}" for number in range(count)]).dictionary_encode(),
        "share": pa.array([float("nan"), 0.5] * (count // 2)),
        "raw": pa.array([b"\x00\xff"] * count),
        "seen": pa.array([True, None] * (count // 2)),
        "time": pa.array(np.arange(count) * 10).cast(pa.timestamp("us")),
        "process": pa.array([f"p{number % 2}" for number in range(count)], pa.large_string()),
    }
    path = written(tmp_path / "log.parquet", plain(count, **others))
    sliced = order(path)
    assert sliced.slabs > 1
    assert sliced.renamed == {"position": "input_position"}
    rows = rows_of(sliced)
    whole = rows_of(order(path, in_slabs=False))
    assert rows.equals(whole.cast(rows.schema)) and rows.column_names == whole.column_names
    assert [field.type for field in rows.schema] == [field.type for field in whole.schema]


@pytest.mark.parametrize(
    "column",
    [
        pa.array([[1]] * 200),
        pa.array([{"a": 1}] * 200),
        pa.array([1] * 200, pa.timestamp("us")),
        pa.array([1] * 200, pa.uint8()),
        pa.nulls(200),
    ],
    ids=lambda column: str(column.type),
)
def test_columns_that_mean_something_else_to_spark_are_left_to_it(
    order: Order, tmp_path: Path, column: pa.Array
) -> None:
    found = order(written(tmp_path / "log.parquet", plain(200, other=column)))
    assert (found.slabs, found.events) == (0, 200)


def test_a_damaged_file_is_named(order: Order, tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    texts = pa.array([f"{number * 7919 % 1_000_003}" * 20 for number in range(200)])
    pq.write_table(
        plain(200, text=texts), path, write_page_checksum=True, compression="none", use_dictionary=False
    )
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(BadInput, match=r"log\.parquet.*damaged|log\.parquet cannot be read"):
        order(path)


def test_a_reach_that_the_sample_did_not_show_is_found_and_used(
    order: Order, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One event has a cause far ahead, where no sample looks."""
    monkeypatch.setattr(sampling, "LOOKED_INTO", 1)
    monkeypatch.setattr(tables, "BATCH_ROWS", 100)
    parents: list[list[str]] = [[]] * 400
    parents[300] = ["p1#181"]  # its time is 610 later
    log = plain(400, parents=pa.array(parents, pa.list_(pa.string())))
    path = tmp_path / "log.parquet"
    reaches = []

    def plan(cuts: Any, reach: Any, *others: Any) -> Any:
        reaches.append(reach)
        return Plan(cuts, reach, *others)

    monkeypatch.setattr(slabs, "Plan", plan)
    pq.write_table(log, path, row_group_size=100)
    found = order(path)
    assert found.slabs == 8 and len(reaches) >= 2
    rows = rows_of(found)
    assert rows.equals(rows_of(order(path, in_slabs=False)).cast(rows.schema))


def test_rows_that_spark_refuses_are_refused_by_arrow(spark: SparkSession) -> None:
    """The two conditions for an event, on the same columns."""
    good = {
        "process": "p",
        "seq": 1,
        "time": 5,
        "kind": "send",
        "message": "m",
        "to": ["q"],
        "parents": ["x"],
    }
    rows = [
        good,
        *({**good, name: None} for name in ("process", "seq", "kind", "message", "to", "parents")),
        *({**good, "kind": kind} for kind in ("local", "deliver", "receive", "sent", "")),
        *(
            {**good, "kind": kind, "message": None, "to": None}
            for kind in (None, "local", "deliver", "receive")
        ),
        *({**good, "kind": kind, "to": None} for kind in ("send", "deliver")),
        *({**good, "seq": seq} for seq in (0, -1, 2**63 - 1)),
        *({**good, name: [None]} for name in ("to", "parents")),
        *({**good, name: []} for name in ("to", "parents")),
        *({**good, "id": id} for id in ("", "x")),
        *({**good, name: size} for name in ("stamp_entries", "stamp_bytes") for size in (-1, 0)),
        *({**good, "time": time} for time in (1.5, float("inf"), float("-inf"))),
    ]
    for row in rows:
        floats = isinstance(row["time"], float)
        schema = pa.schema(
            [(name, _arrow(name, floats)) for name in (*good, "id", "stamp_entries", "stamp_bytes")]
        )
        table = pa.Table.from_pylist([row], schema=schema)
        frame = spark.createDataFrame(table)
        types = {field.name: field.dataType for field in frame.schema.fields}
        columns = {name: frame[name] for name in frame.columns}
        ((refused_by_spark,),) = frame.select(refused(columns, types)).collect()
        assert are_events(table) == (not refused_by_spark), row


def _arrow(name: str, floats: bool) -> Any:
    if name == "time":
        return pa.float64() if floats else pa.int64()
    spark_type = KNOWN[name].simpleString()
    return {"string": pa.string(), "bigint": pa.int64(), "array<string>": pa.list_(pa.string())}[spark_type]


def test_long_values_that_repeat_are_read_a_few_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = plain(3_000, text=pa.array(["short"] * 1_500 + ["long" * 500] * 1_500))
    path = tmp_path / "log.parquet"
    pq.write_table(table, path, row_group_size=1_500)
    monkeypatch.setattr(tables, "BATCH_ROWS", 1_500)
    monkeypatch.setattr(tables, "BATCH_BYTES", 200_000)
    found = tables.table_of([path], {})
    assert found is not None
    assert path.stat().st_size < 100_000
    assert found.row_bytes >= 2_000
    batches = [rows for split in found.splits for rows in found.read(split)]
    assert pa.concat_tables(batches).equals(table.select(found.types))
    assert max(rows.nbytes for rows in batches) <= tables.BATCH_BYTES * 1.1


def test_blobs_stay_small_although_rows_are_larger_than_the_first_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = plain(1_000, text=pa.array(["text" * 100] * 1_000))
    monkeypatch.setattr(tasks, "BLOB_BYTES", 50_000)
    portions = list(tasks.portions(rows))
    assert pa.concat_tables(portions).equals(rows)
    assert max(portion.nbytes for portion in portions) <= 55_000


def test_a_target_that_cannot_be_written_is_named_by_its_own_name(
    order: Order, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: Any, plan: Any, buckets: int) -> Any:
        raise sampling.Unwritable("No space left on device")

    monkeypatch.setattr(sampling.Files, "run", full)
    path = written(tmp_path / "log.parquet", plain(200))
    with pytest.raises(
        BadInput, match=f"^{tmp_path / 'ordered'} cannot be written: No space left on device$"
    ):
        order(path)
    assert list(tmp_path.iterdir()) == [path]

"""Questions about a whole log, answered from files that workers read: as from rows that Spark reads."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from causet.check.oracle import judge
from causet.errors import BadInput
from causet.model import Event
from causet.spark.batch import by_files as switch
from causet.spark.batch.audit import audit_files
from causet.spark.batch.by_files import by_files
from causet.spark.batch.verify import verify_files
from causet.spark.read import arrow
from causet.spark.read.arrow import Table, events_of
from causet.spark.read.source import Source, open_trace
from causet.spark.skeleton import skeleton
from tests.helpers.orders import by_definition
from tests.helpers.slabs import as_table, random_log, shuffled

Ask = Callable[[Source, Table | None], Any]


@pytest.fixture(autouse=True)
def many_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Logs of any size are read by workers, a few rows in each task, and packed in several."""
    monkeypatch.setattr(switch, "SMALL", 0)
    monkeypatch.setattr(skeleton, "SMALL", 0)
    monkeypatch.setattr(arrow, "BATCH_ROWS", 40)


def verified(source: Source, table: Table | None) -> Any:
    found = verify_files(source.events, table, 100, False)
    frames = (found.violations, found.duplicates, found.strangers, found.undelivered)
    lists = [[tuple(map(str, row)) for row in frame.collect()] for frame in frames]
    return found.status, found.events, found.messages, found.deliveries, found.counts, found.faults, lists


def audited(source: Source, table: Table | None) -> Any:
    found = audit_files(source.in_file_order(), table, "file_order")
    return found.summary(), found.faults, [tuple(row) for row in found.pairs.collect()]


def written(tmp_path: Path, table: pa.Table) -> list[Path]:
    """In two files, of several row groups."""
    half = table.num_rows // 2
    paths = [tmp_path / "b.parquet", tmp_path / "a.parquet"]
    for path, part in zip(paths, (table.slice(0, half), table.slice(half)), strict=True):
        pq.write_table(part, path, row_group_size=30)
    return paths


def logs() -> list[Any]:
    """Random logs without a cycle, one with each kind of time, some of them without times, or shuffled."""
    found = []
    for seed in range(40):
        draw = random.Random(seed)
        events = random_log(draw)
        if len(events) < 60 or not all(each.level for each in by_definition(events)):
            continue
        table = shuffled(as_table(events), seed)
        if seed % 3 == 0:
            times = table.column("time").to_pylist()
            kept = pa.array(
                [time if draw.random() < 0.5 else None for time in times], table.field("time").type
            )
            table = table.set_column(table.column_names.index("time"), "time", kept)
        if seed % 7 == 0:
            table = table.drop_columns("time")
        found.append(pytest.param(table, id=f"seed {seed}"))
    return found[:8]


@pytest.mark.parametrize("table", logs())
@pytest.mark.parametrize("ask", [verified, audited])
def test_workers_find_in_files_what_spark_finds_in_rows(
    spark: SparkSession, tmp_path: Path, table: pa.Table, ask: Ask
) -> None:
    with open_trace(spark, written(tmp_path, table)) as source:
        files = events_of(source.files)
        assert files is not None and len(files.splits) >= 2
        assert ask(source, files) == ask(source, None)


def test_an_early_delivery_in_files_is_the_oracles(spark: SparkSession, tmp_path: Path) -> None:
    events = [
        Event("p", 1, kind="send", message="question", to=("q", "r"), time=1),
        Event("q", 1, kind="deliver", message="question", time=2),
        Event("q", 2, kind="send", message="answer", to=("p", "r"), time=3),
        Event("r", 1, kind="deliver", message="answer", time=4),
        Event("r", 2, kind="deliver", message="question", time=5),
        Event("p", 2, kind="deliver", message="answer", time=6),
    ]
    with open_trace(spark, written(tmp_path, as_table(events))) as source:
        found = by_files(source, lambda table: (table, verify_files(source.events, table, 100, False)))
    table, verdict = found
    assert table is not None
    (violation,) = judge(events).violations
    (row,) = verdict.violations.collect()
    early = (violation.process, violation.delivered, violation.before)
    assert (row.process, row.delivered, row.before) == early


def asked(spark: SparkSession, paths: Sequence[Path], ask: Ask) -> tuple[bool, Any]:
    """Whether workers read the files, and the answer."""
    with open_trace(spark, paths) as source:
        return by_files(source, lambda table: (table is not None, ask(source, table)))


@pytest.mark.parametrize("ask", [verified, audited])
def test_a_row_that_is_no_event_is_named(spark: SparkSession, tmp_path: Path, ask: Ask) -> None:
    table = as_table([Event("p", seq, time=seq) for seq in range(1, 101)])
    seqs = pa.array([*range(1, 90), 0, *range(91, 101)])
    paths = written(tmp_path, table.set_column(1, "seq", seqs))
    with pytest.raises(BadInput, match=r'a\.parquet, row 40: field "seq" must be .* not 0'):
        asked(spark, paths, ask)


def test_gaps_and_ids_are_for_rows_as_well_as_files(spark: SparkSession, tmp_path: Path) -> None:
    events = [Event("p", seq, time=seq, parents=("p#7",)) for seq in range(9, 100, 2)]
    by_workers, found = asked(spark, written(tmp_path, as_table(events)), audited)
    assert by_workers and [fault.kind for fault in found[1]] == ["gap in seq", "unknown parent"]


def test_a_damaged_file_is_named(spark: SparkSession, tmp_path: Path) -> None:
    table = as_table([Event(f"p{seq % 5}", seq, id=f"{seq * 7919}", time=seq) for seq in range(1, 400)])
    path = tmp_path / "log.parquet"
    pq.write_table(table, path, write_page_checksum=True, compression="none", use_dictionary=False)
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 1
    path.write_bytes(data)
    with pytest.raises(BadInput, match=r"log\.parquet.*(damaged|cannot be read)"):
        asked(spark, [path], verified)

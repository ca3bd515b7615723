"""The same answer however the work is cut: partitions, input order, executors in processes of their own, a
server of Spark Connect. Compared are the bytes of the files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from causet.formats.trace import write_trace
from causet.spark.batch import order
from causet.spark.batch.order import order_events
from causet.spark.batch.verify import verify
from causet.spark.read.source import open_trace
from causet.spark.write.folder import write_rows
from tests.helpers.logs import many_logs
from tests.helpers.orders import EVENTS, SMALL_TRACES, each_real_trace, real_traces
from tests.helpers.places import ROOT
from tests.helpers.scripts import LONG

ROWS = 997
"""Rows of a file here, so that there are many files."""

ELSEWHERE = """
import json, sys
from pathlib import Path
from causet.spark.start.session import spark_session
sys.path.insert(0, sys.argv[1])
from tests.batch.test_spark_same import answered

spark = spark_session(sys.argv[2])
print(json.dumps(answered(spark, Path(sys.argv[3]), map(Path, sys.argv[4:]))))
spark.stop()
"""


def answered(spark: SparkSession, work: Path, paths: Iterable[Path]) -> dict[str, Any]:
    """For each log the files of its order, and the verdict."""
    order.ROWS_PER_FILE = ROWS
    answers = {}
    for path in paths:
        with open_trace(spark, path) as source:
            found = digest(source.events, work / path.name)
            verdict = verify(source.events)
            told = [list(row) for row in verdict.violations.collect()]
            answers[path.name] = [found, verdict.status, verdict.counts, told]
    return answers


def digest(events: DataFrame, folder: Path) -> list[str]:
    files = write_rows(order_events(events).rows, folder, "parquet", overwrite=True)
    return [sha256(file.read_bytes()).hexdigest() for file in files]


@pytest.fixture(autouse=True)
def small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(order, "ROWS_PER_FILE", ROWS)


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("log") / "log.jsonl"
    write_trace(path, many_logs(range(60), faults=False))
    return path


def check_partitions(spark: SparkSession, path: Path, work: Path) -> None:
    with open_trace(spark, path) as source:
        one = digest(source.events.coalesce(1), work / "out")
        assert len(one) == -(-source.events.count() // ROWS)
        assert digest(source.events.repartition(2), work / "out") == one
        assert digest(source.events.orderBy(F.rand(7)).repartition(8), work / "out") == one


def test_partitions_and_input_order_give_the_same_bytes(
    spark: SparkSession, log: Path, tmp_path: Path
) -> None:
    check_partitions(spark, log, tmp_path)


@real_traces
@each_real_trace(SMALL_TRACES[::3])
def test_partitions_of_real_executions_give_the_same_bytes(
    spark: SparkSession, path: Path, tmp_path: Path
) -> None:
    check_partitions(spark, path, tmp_path)


def check_elsewhere(spark: SparkSession, master: str, work: Path, *paths: Path) -> None:
    script = work / "elsewhere.py"
    script.write_text(ELSEWHERE)
    done = subprocess.run(
        [sys.executable, script, ROOT, master, work, *paths],
        cwd=work,
        capture_output=True,
        text=True,
        timeout=LONG,
        env=dict(os.environ),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    here = answered(spark, work, paths)
    assert json.loads(done.stdout) == json.loads(json.dumps(here))


def test_a_server_of_spark_connect_gives_the_same_bytes(
    spark: SparkSession, connect_server: str, log: Path, tmp_path: Path
) -> None:
    check_elsewhere(spark, connect_server, tmp_path, log)


CLUSTER = "local-cluster[2,1,1024]"


@pytest.mark.soak
def test_executors_in_processes_of_their_own_give_the_same_bytes(
    spark: SparkSession, log: Path, tmp_path: Path
) -> None:
    check_elsewhere(spark, CLUSTER, tmp_path, log, *SMALL_TRACES[-1:])


@pytest.mark.soak
@real_traces
def test_executors_give_the_same_bytes_for_all_real_executions(spark: SparkSession, tmp_path: Path) -> None:
    check_elsewhere(spark, CLUSTER, tmp_path, *sorted(EVENTS.glob("*.jsonl.gz")))

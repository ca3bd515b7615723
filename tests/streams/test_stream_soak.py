"""Ten million messages through a stream: neither its state nor the time of a batch grows with time."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from causet.spark import deliver, merge

SOURCES, RECEIVERS = 8, 4
BATCH, BATCHES = 400_000, 25


def write_batches(folder: Path) -> None:
    """Sources in turn, each message after the previous one of another source; neighbours swapped, so that
    every batch holds some of them until the next one comes, and none for ever."""
    folder.mkdir()
    rows = BATCH * BATCHES
    turn = np.arange(rows)
    receiver = turn % RECEIVERS
    step = turn // RECEIVERS
    source, number = step % SOURCES, step // SOURCES + 1
    cause = np.where(source > 0, number, number - 1)
    names = np.array([[f"r{of}s{each}" for each in range(SOURCES)] for of in range(RECEIVERS)])
    before = names[receiver, (source - 1) % SOURCES]
    came = np.argsort(turn + np.random.default_rng(5).integers(0, 64, rows), kind="stable")
    for each in range(BATCHES):
        mine = came[each * BATCH : (each + 1) * BATCH]
        causes = zip(before[mine].tolist(), cause[mine].tolist(), strict=True)
        table = pa.table(
            {
                "receiver": pa.array(np.array([f"r{each}" for each in range(RECEIVERS)])[receiver[mine]]),
                "source": pa.array(names[receiver[mine], source[mine]]),
                "sequence": pa.array(number[mine]),
                "causaldeps": pa.array([json.dumps({name: at} if at else {}) for name, at in causes]),
                "rc": pa.array(1_700_000_000_000_000 + 10 * turn[mine]),
                "r": pa.array(1_700_000_000_000_000 + 10 * turn[mine]),
            }
        )
        pq.write_table(table, folder / f"{each:05}.parquet")


@pytest.mark.soak
@pytest.mark.parametrize("operator", ["deliver", "merge"])
def test_state_and_time_per_batch_stay_flat_over_ten_million_messages(
    spark: SparkSession,
    tmp_path: Path,
    operator: str,
) -> None:
    write_batches(tmp_path / "in")
    source = spark.readStream.schema(spark.read.parquet(str(tmp_path / "in")).schema)
    messages = source.option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in"))
    transforms: dict[str, Callable[[DataFrame], DataFrame]] = {
        "deliver": deliver(missing="wait", by="receiver", buckets=4),
        "merge": merge(epsilon="10 ms", delta="100 ms", buckets=4),
    }
    counts: list[int] = []

    def count(rows: DataFrame, _: int) -> None:
        counts.append(rows.count())

    query = (
        messages.transform(transforms[operator])
        .writeStream.foreachBatch(count)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    batches: list[Any] = [each for each in query.recentProgress if each["numInputRows"]]
    assert len(batches) == BATCHES
    if operator == "deliver":
        assert sum(counts) == BATCH * BATCHES
    else:  # the last of them wait for their sources to go on
        assert BATCH * BATCHES - 50_000 < sum(counts) < BATCH * BATCHES
    early, late = batches[3:10], batches[-7:]

    def typical(some: list[Any], what: str) -> float:
        return median(float(sum(state[what] for state in each["stateOperators"])) for each in some)

    assert typical(late, "numRowsTotal") <= typical(early, "numRowsTotal") + 4
    assert typical(late, "memoryUsedBytes") <= 1.5 * typical(early, "memoryUsedBytes")
    seconds = [median(each["durationMs"]["triggerExecution"] for each in some) for some in (early, late)]
    assert seconds[1] <= 1.5 * seconds[0], seconds

"""What readers of groups that overlap cost: time per row out, over that of one reader of one group each.

There are 100 groups in clusters of ten, such as ten tenants with ten topics each, and 20 readers: one of the
ten groups of each cluster, and one of the last five of each and the first five of the next. So each message
goes to two readers, which have half of their groups in common. Stamps are those of the rule of frontiers: 40
processes, four in a cluster, write to its groups and see each other's messages. The baseline is `deliver` of
messages to one group for one reader each, as in `streams`: as many rows out, with two causes each. From
Parquet files to Parquet files, as the commands do it; of a stream, the batches after the first one count.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.result import Result, Spoilt
from bench.streams import BUCKETS, SPREAD, deliver_files, write_stream
from causet.frontier import Frontier, pack_frontier

CLUSTERS, GROUPS, PROCESSES = 10, 10, 4
"""Groups and processes of a cluster."""
READERS = {
    f"reader-{cluster}-{number}": [
        f"group-{(cluster + (group >= GROUPS)) % CLUSTERS}-{group % GROUPS}"
        for group in range(number * GROUPS // 2, number * GROUPS // 2 + GROUPS)
    ]
    for cluster in range(CLUSTERS)
    for number in range(2)
}
SEEN = 0.5
"""How often a process sees the last message of its cluster before it sends."""


def write_groups(folder: Path, batch: int, batches: int) -> None:
    """Files of so many messages each, in the order in which they come."""
    folder.mkdir(parents=True)
    draw = Random(1)
    knows = [
        [Frontier[str, str](f"p-{cluster}-{number}") for number in range(PROCESSES)]
        for cluster in range(CLUSTERS)
    ]
    last: list[tuple[str, Any] | None] = [None] * CLUSTERS
    rows: list[tuple[str, list[tuple[str, int]], bytes, str]] = []
    for number in range(batch * batches):
        cluster = draw.randrange(CLUSTERS)
        process = draw.choice(knows[cluster])
        before = last[cluster]
        if before is not None and before[0] != process.process and draw.random() < SEEN:
            process.saw(before[0], *before[1])
        stamped = process.stamp([f"group-{cluster}-{draw.randrange(GROUPS)}"])
        last[cluster] = (process.process, stamped)
        row = process.process, list(stamped.numbers.items()), pack_frontier(stamped.past), str(number)
        rows.append(row)
    places = np.argsort(
        np.arange(len(rows)) + np.random.default_rng(1).integers(0, SPREAD, len(rows)), kind="stable"
    )
    numbers = pa.map_(pa.string(), pa.int64())
    kinds = {"source": pa.string(), "numbers": numbers, "deps": pa.binary(), "text": pa.string()}
    names = list(enumerate(kinds.items()))
    for each in range(batches):
        some = [rows[at] for at in places[each * batch : (each + 1) * batch].tolist()]
        table = pa.table({name: pa.array([row[at] for row in some], kind) for at, (name, kind) in names})
        pq.write_table(table, folder / f"{each:05}.parquet")


def measure(batch: int, batches: int, turns: int) -> Iterator[Result]:
    from causet.cli.shared.spark import for_streams
    from causet.spark import deliver
    from causet.spark.start.session import spark_session

    with TemporaryDirectory() as made:
        work = Path(made)
        for name, size, count in (("warm", 5_000, 2), ("in", batch, batches)):
            write_stream(work / f"{name}-plain", 2 * size, count)
            write_groups(work / f"{name}-groups", size, count)
        spark = spark_session(None, for_streams(None, {}, BUCKETS, work / "in-groups"), silent=True)
        transforms = {
            "plain": deliver(missing="wait", by="receiver"),
            "groups": deliver(missing="wait", readers=READERS),
        }
        taken: dict[str, float] = {}
        for turn in range(turns + 1):
            for name, transform in transforms.items():
                folder = work / f"{'in' if turn else 'warm'}-{name}"
                seconds, rows = deliver_files(spark, folder, work / "out", transform)
                if turn:
                    taken[name] = min(seconds, taken.get(name, seconds))
                    if rows < 2 * batch * batches * 0.98:
                        raise Spoilt(f"{name} gave {rows:,} rows")
        spark.stop()
    out = 2 * batch * (batches - 1)
    yield Result(
        "groups",
        "deliver to 20 readers of 10 of 100 groups",
        taken["groups"] / taken["plain"],
        f"{out:,} rows out: {out / taken['groups']:,.0f} per second against {out / taken['plain']:,.0f} to "
        f"one reader each, {taken['plain'] / taken['groups']:.2f} of it",
        {"seconds": taken["groups"], "base_seconds": taken["plain"]},
        1 / 0.5,
    )


def results(quick: bool) -> Iterator[Result]:
    return measure(20_000, 3, 1) if quick else measure(200_000, 4, 2)

"""`merge` on Spark: one order for all, by the messages' own times, in batch and as a stream."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from causet.errors import BadInput
from causet.kernels.streams.sorting import ascending
from causet.spark import merge
from causet.spark.streams.books import Books
from causet.spark.streams.merge import batch as merge_batch
from causet.spark.streams.merge.tune import tune
from causet.spark.streams.pack import FAULT, SIZE
from causet.stamp import HEARTBEAT
from tests.helpers.clocked import PLAIN, SCHEMA, Message, Network
from tests.helpers.deliveries import finish
from tests.helpers.streams import write_files

TEXT = "source string, sequence long, causaltime string"
RC_IN_TEXT = "source string, sequence long, rc string, r string"


def frame(spark: SparkSession, messages: Sequence[Message]) -> DataFrame:
    names = [each.split()[0] for each in SCHEMA.split(", ")]
    return spark.createDataFrame([tuple(each.get(name) for name in names) for each in messages], SCHEMA)


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.soak)])
def test_a_batch_is_sorted_by_time_and_causes_come_first(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(merge_batch, "ROWS_PER_PART", 50)
    network = Network(seed)
    mixed = list(network.messages)
    random.Random(seed).shuffle(mixed)
    merged = frame(spark, mixed).repartition(3).transform(merge(epsilon="50 ms", delta="400 ms"))
    rows = merged.collect()
    assert [row.position for row in rows] == list(range(len(rows))), (
        "rows stand in the order of their positions"
    )
    order = [row.subject for row in rows]
    assert order == network.expected()
    assert len(network.causes) > 100
    assert all(order.index(cause) < order.index(effect) for cause, effect in network.causes)
    assert merged.rdd.getNumPartitions() > 4, "by several workers"


@pytest.mark.soak
def test_an_outlier_does_not_make_one_worker_do_everything(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merge_batch, "ROWS_PER_PART", 50)
    network = Network(1)
    far = {"source": "s9", "sequence": 1, "rc": 2**52, "r": 2**52, "subject": "far"}
    merged = frame(spark, [far, *network.messages]).transform(merge(epsilon="50 ms", delta="400 ms"))
    assert [row.subject for row in merged.collect()] == [*network.expected(), "far"]
    sizes = merged.rdd.glom().map(len).collect()
    assert max(sizes) < 150, sizes


def test_impossible_stamps_are_named_and_the_rest_is_merged(spark: SparkSession) -> None:
    bad = [
        ("a", 1, 100, 200, "less than r"),
        ("a", 1, 101_101, 100, "far ahead"),
        ("a", 1, None, 100, "none"),
        ("a", 1, -5, -5, "negative"),
        ("a", 2**60, 100, 100, "large"),
        ("a", 0, 100, 100, "zero"),
        (None, 1, 100, 100, "nobody"),
        ("a", 1, 2**60, 2**60, "beyond"),
    ]
    rows = spark.createDataFrame([*bad, ("a", 7, 300, 300, "fine")], PLAIN)
    found = {row.subject: row for row in rows.transform(merge(epsilon="50 ms", delta="2 s")).collect()}
    assert (found["fine"].position, found["fine"].status, found["fine"].problem) == (0, "delivered", None)
    for name in found:
        if name != "fine":
            assert found[name].status == "diverted" and found[name].position is None and found[name].problem
    assert found["far ahead"].problem == "has a time with c above 101 ms, which ε does not allow"


def test_times_of_version_1_may_be_as_far_ahead_as_they_were(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Below 2^53, in ms; in µs that is more than a fraction can tell apart, and less than 2^63."""
    monkeypatch.setattr(merge_batch, "ROWS_PER_PART", 8)
    far, draw = 2**53, random.Random(0)
    times = sorted({7, far - 1, *(draw.randrange(7, far) for _ in range(100))})
    width = -(-(1000 * (far - 1 - 7) + 1) // merge_batch.BINS)
    edges = [7000 + number * width for number in range(2048, merge_batch.BINS, 8)]
    for edge in edges:  # on both sides of where a bin begins, and very close to it
        times += [edge // 1000, edge // 1000 + 1] if 0 < edge % 1000 < 200 else []
    times = sorted({*times})
    mixed = draw.sample(times, len(times))
    how: dict[str, Any] = {"epsilon": "50 ms", "delta": 1}
    tables = [
        (spark.createDataFrame([("a", n, rc, rc, "") for n, rc in enumerate(mixed, 1)], PLAIN), "ms"),
        (
            spark.createDataFrame(
                [("a", n, f"{rc} {rc}") for n, rc in enumerate(mixed, 1)],
                TEXT,
            ),
            "us",
        ),
    ]
    for table, ticks in tables:
        found = table.repartition(3).transform(merge(**how, ticks=ticks)).collect()
        assert [row.position for row in found] == list(range(len(times)))
        assert [mixed[row.sequence - 1] for row in found] == times
    beyond = spark.createDataFrame(
        [("a", 1, f"{far} {far}", v) for v in (1, 2)], f"{TEXT}, causalversion int"
    )
    table = spark.createDataFrame([("a", 1, str(far), "1"), ("a", 1, "-1", "-1")], RC_IN_TEXT)
    for rows in (beyond, table):
        for row in rows.transform(merge(**how)).collect():
            assert row.problem == "has an invalid time: it needs 0 ≤ r ≤ r + c < 2^53"
    plain = spark.createDataFrame([("a", 1, str(far - 1), far - 1)], RC_IN_TEXT.replace("r string", "r long"))
    assert [row.problem for row in plain.transform(merge(**how)).collect()] == [None]
    with pytest.raises(BadInput, match="there is no message with a time"):
        tune(table.withColumn("at", F.lit(1)), "at")


def test_time_may_be_text_as_the_envelope_has_it(spark: SparkSession) -> None:
    rows = spark.createDataFrame(
        [
            ("a", "00000000000000000002", "200 190", "second"),
            ("b", "00000000000000000001", "100 100", "first"),
            ("b", "2", "x", "bad"),
        ],
        "source string, sequence string, causaltime string, subject string",
    )
    found = rows.transform(merge(epsilon=1, delta=1)).collect()
    assert [(row.subject, row.position) for row in found] == [("first", 0), ("second", 1), ("bad", None)]


@pytest.mark.parametrize(
    ("arguments", "schema", "said"),
    [
        ({"epsilon": "x", "delta": 1}, SCHEMA, 'epsilon = "x"'),
        ({"epsilon": 1, "delta": 1}, "source string, sequence long", 'no "causaltime" in'),
        ({"epsilon": 1, "delta": 1}, "source string, sequence long, rc long", 'no "r" in'),
        (
            {"epsilon": 1, "delta": 1},
            "source string, sequence long, malformed string, __causet_fault string",
            'no "causaltime" in source, sequence$',
        ),
    ],
)
def test_bad_arguments_and_missing_columns_of_merge_are_named(
    spark: SparkSession, arguments: Any, schema: str, said: str
) -> None:
    with pytest.raises(BadInput, match=said):
        spark.createDataFrame([], schema).transform(merge(**arguments))


def test_only_the_type_makes_a_heartbeat_of_a_row(spark: SparkSession) -> None:
    rows = [
        ("a", None, 300, 300, "beat", HEARTBEAT),
        ("a", 9, 100, 100, "beat with a number", HEARTBEAT),
        ("a", None, 300, None, "beat without a time", HEARTBEAT),
        (None, None, 300, 300, "beat of nobody", HEARTBEAT),
        ("a", None, 300, 300, "message", "causet.message"),
        ("a", None, 300, 300, "no type", None),
        ("a", 1, 200, 200, "fine", None),
    ]
    merged = spark.createDataFrame(rows, SCHEMA).transform(merge(epsilon=1, delta=1)).collect()
    assert [(row.subject, row.status, row.position) for row in merged[:1]] == [("fine", "delivered", 0)]
    assert all(row.position is None for row in merged[1:]), "those without a position stand behind"
    assert {row.subject: (row.status, row.problem) for row in merged} == {
        "fine": ("delivered", None),
        "beat": ("heartbeat", None),
        "beat with a number": ("heartbeat", None),
        "beat without a time": ("diverted", "has no time"),
        "beat of nobody": ("diverted", "has no source"),
        "message": ("diverted", "has no sequence that is a number"),
        "no type": ("diverted", "has no sequence that is a number"),
    }


def test_a_type_that_is_not_text_makes_no_heartbeats(spark: SparkSession) -> None:
    rows = spark.createDataFrame(
        [("a", 1, 5, 5, 7)], "source string, sequence long, rc long, r long, type long"
    )
    (row,) = rows.transform(merge(epsilon=1, delta=1)).collect()
    assert (row.status, row.type) == ("delivered", 7)


def test_numbers_that_are_not_whole_are_not_cut(spark: SparkSession) -> None:
    rows = spark.createDataFrame(
        [("a", 1.5, 5.0, 5.0), ("a", 2.0, 5.5, 5.0), ("a", 3.0, 5.0, 5.0), ("a", 1e300, 5.0, 5.0)],
        "source string, sequence double, rc double, r double",
    )
    found = rows.transform(merge(epsilon=1, delta=1)).collect()
    assert {row.sequence: row.problem for row in found} == {
        1.5: "has no sequence that is a number",
        2.0: "has no time",
        3.0: None,
        1e300: "has no sequence that is a number",
    }


def test_columns_that_have_the_names_of_ours_are_kept(spark: SparkSession) -> None:
    rows = spark.createDataFrame(
        [("a", 1, 200, 200, 70, "paid", "none"), ("a", None, 100, 100, 71, "open", "late")],
        "source string, sequence long, rc long, r long, position long, status string, problem string",
    )
    found = rows.transform(merge(epsilon=1, delta=1)).collect()
    assert [(row.position, row.status, row.problem) for row in found] == [
        (0, "delivered", None),
        (None, "diverted", "has no sequence that is a number"),
    ]
    kept = [(row.input_position, row.input_status, row.input_problem) for row in found]
    assert kept == [(70, "paid", "none"), (71, "open", "late")]
    first = rows.withColumnRenamed("position", "input_status").transform(merge(epsilon=1, delta=1)).first()
    assert first is not None and (first.input_status, first.input_input_status) == (70, "paid")


def test_a_row_with_a_fault_is_diverted_with_it_and_domains_come_last_in_the_order(
    spark: SparkSession,
) -> None:
    rows = spark.createDataFrame(
        [
            ("a", 1, 200, 200, "z", None, 5),
            ("a", 1, 200, 200, None, None, 5),
            ("a", 1, 200, 200, "Z", None, 5),
            ("a", 2, 100, 100, None, "line 7 is not JSON", None),
        ],
        f"source string, sequence long, rc long, r long, causaldomain string, {FAULT} string, {SIZE} long",
    )
    merged = rows.transform(merge(epsilon=1, delta=1))
    assert merged.columns == [*rows.columns[:5], "position", "status", "problem"]
    assert [(row.causaldomain, row.position, row.problem) for row in merged.collect()] == [
        ("Z", 0, None),
        (None, 1, None),
        ("z", 2, None),
        (None, None, "line 7 is not JSON"),
    ]


# ---------------------------------------------------------------- streams


def streamed(
    spark: SparkSession, folder: Path, transform: Any, schema: str = SCHEMA, told: list[Any] | None = None
) -> list[Row]:
    """All rows of a stream, batch after batch and partition after partition."""
    rows: list[Row] = []
    source = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).json(str(folder / "in"))
    query = (
        source.transform(transform)
        .writeStream.foreachBatch(lambda batch, _: rows.extend(batch.collect()))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    finish(query)
    if told is not None:
        events = [event for event in query.recentProgress if event["numInputRows"]]
        told += [event["observedMetrics"]["causet"].asDict() for event in events]
    return rows


MIXED = (
    "source string, sequence string, causaltime string, id string, data string, type string, "
    f"causaldomain string, status string, {FAULT} string, {SIZE} long"
)


def test_every_row_of_a_stream_is_somewhere_and_the_books_say_where(
    spark: SparkSession, tmp_path: Path
) -> None:
    """In two batches, with numbers as text."""

    def row(number: str | None, at: str | None, data: str, **more: Any) -> Message:
        return {"source": "a", "sequence": number, "causaltime": at, "id": "i", "data": data, **more}

    first = [
        row("1", "1000 1000", "one", status="mine"),
        row("1", "1000 1000", "one in b", causaldomain="b"),
        row("1", "1000 1000", "one", status="another delivery", causaldomain="all"),
        row("two", "1001 1001", "no number"),
        row("2", "soon", "no time"),
        row("3", "1003 1003", "broken", **{FAULT: "has a header that is not UTF-8"}),
        row("4", "1004 1004", "large", **{SIZE: 101}),
        row("5", "1005 1005", "not large", **{SIZE: 100}),
    ]
    second = [
        row("1", "1000 1000", "another one"),
        row("1", "1000 1000", "one in b", causaldomain="b"),
        row(None, "9000 9000", "", type=HEARTBEAT),
        row(None, "now", "a beat without a time", type=HEARTBEAT),
        row("6", "9001 9001", "last"),
    ]
    write_files(tmp_path / "in", first + second, len(first))
    told: list[Any] = []
    how = replace(merge(epsilon="50 ms", delta="100 ms", buckets=2), most_bytes=100)
    rows = streamed(spark, tmp_path, how, MIXED, told)
    assert [(each.data, each.input_status) for each in rows if each.status == "delivered"] == [
        ("one", "mine"),
        ("one in b", None),
        ("not large", None),
    ]
    assert {each.data: each.problem for each in rows if each.status != "delivered"} == {
        "no number": "has no sequence that is a number",
        "no time": "has no time",
        "broken": "has a header that is not UTF-8",
        "large": "is larger than the sink takes: 101 bytes, 100 at most",
        "another one": "has the number of another message: process a, sequence 1, but another id or data",
        "a beat without a time": "has no time",
    }
    assert not [name for name in rows[0].asDict() if name.startswith("__causet_")]
    held = 0
    for counts in told:
        books = Books(held, counts, counts["held"])
        assert books.balance, str(books)
        held = books.held
    assert [counts["read"] for counts in told] == [8, 5]
    assert [counts["diverted"] for counts in told] == [4, 1]
    assert [counts["refused"] for counts in told] == [3, 1]
    assert [counts["duplicates"] for counts in told] == [1, 1]
    assert [counts["conflicts"] for counts in told] == [0, 1]
    assert [counts["heartbeats"] for counts in told] == [0, 0]
    assert [counts["held"] for counts in told] == [3, 2], "the heartbeat, too"


def test_two_heartbeats_with_one_time_are_the_same_one_or_the_second_is_named(
    spark: SparkSession, tmp_path: Path
) -> None:
    def row(name: str, at: str, number: str | None = None) -> Message:
        kind = HEARTBEAT if number is None else "mine"
        return {"source": "a", "sequence": number, "causaltime": at, "id": name, "data": name, "type": kind}

    sent = [row("beat", "1000 1000"), row("beat", "1000 1000"), row("other", "1000 1000")]
    last = [row("message", "1000 1000", "1"), row("end", "9000 9000")]
    write_files(tmp_path / "in", sent + last, 5)
    told: list[Any] = []
    rows = streamed(spark, tmp_path, merge(epsilon="50 ms", delta="100 ms", buckets=2), MIXED, told)
    left = {each.id: (each.status, each.problem) for each in rows}
    named = [name for name, (_, problem) in left.items() if problem is not None]
    assert named in (["beat"], ["other"])
    problem = "has the time of another heartbeat: process a, but another id or data"
    assert left.pop(named[0]) == ("diverted", problem)
    assert sorted(left.values()) == [("delivered", None), ("heartbeat", None)]
    assert [counts["duplicates"] + counts["conflicts"] for counts in told] == [2]


def test_a_stage_that_is_run_again_is_not_counted_again(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Spark counts what a task observes once only in the stage that gives the result: behind the last
    shuffle."""
    write_files(tmp_path / "in", Network(1).messages, 1000)
    source = spark.readStream.schema(SCHEMA).json(str(tmp_path / "in"))
    merge(epsilon=1, delta=1, buckets=2).blobs(source).frame.explain(extended=True)
    plan = capsys.readouterr().out.partition("== Physical Plan ==")[0]
    trees = [tree for tree in plan.split("== ") if "CollectMetrics" in tree]
    assert trees
    for tree in trees:
        assert tree.index("CollectMetrics") < tree.index("Repartition")


@pytest.mark.parametrize("size", [150, 1000, pytest.param(60, marks=pytest.mark.soak)])
def test_a_stream_stands_in_the_order_of_the_batch(spark: SparkSession, tmp_path: Path, size: int) -> None:
    network = Network(5)
    copies = [*network.messages[:20], *network.messages]
    write_files(tmp_path / "in", [*copies, *network.beats], size)
    rows = streamed(spark, tmp_path, merge(epsilon="50 ms", delta="400 ms", buckets=4))
    assert [row.subject for row in rows] == network.expected()
    assert {row.status for row in rows} == {"delivered"}, "the heartbeats are ahead of all, and held"


def test_an_envelope_says_in_which_ticks_its_time_is(spark: SparkSession) -> None:
    """Version 1 counts ms, version 2 µs; tables say nothing, and are told."""
    rows = spark.createDataFrame(
        [
            ("a", "1", "1001 1001", 2, "1,001 µs"),
            ("b", "1", "1 1", None, "1,000 µs"),
            ("c", "1", "2 1", 1, "2,000 µs"),
            ("d", "1", "1500 1000", 2, "1,500 µs"),
            ("e", "1", "1 1", 3, "unknown"),
            ("f", "1", f"{'9' * 16} 1", None, "beyond"),
        ],
        "source string, sequence string, causaltime string, causalversion long, subject string",
    )
    found = rows.transform(merge(epsilon="1 ms", delta=1)).collect()
    assert [(row.subject, row.problem) for row in found] == [
        ("1,000 µs", None),
        ("1,001 µs", None),
        ("1,500 µs", None),
        ("2,000 µs", None),
        ("unknown", "has a causalversion that is not 1 or 2"),
        ("beyond", "has an invalid time: it needs 0 ≤ r ≤ r + c < 2^53"),
    ]
    table = spark.createDataFrame([("a", 1, 105, 5, ""), ("a", 2, 2**60, 2**60, "")], PLAIN)
    (first, second) = table.transform(merge(epsilon="50 ms", delta=1, ticks="ms")).collect()
    assert (first.status, second.problem) == (
        "delivered",
        "has an invalid time: it needs 0 ≤ r ≤ r + c < 2^53",
    )
    (first, _) = table.transform(merge(epsilon="49 ms", delta=1, ticks="ms")).collect()
    assert first.problem == "has a time with c above 99 ms, which ε does not allow"


def test_the_order_is_by_process_and_a_message_without_one_is_its_sources(spark: SparkSession) -> None:
    rows = spark.createDataFrame(
        [
            ("b", "a~2", 1, 5, 5, "2"),
            ("a", "b~1", 1, 5, 5, "4"),
            ("b", None, 1, 5, 5, "3"),
            ("c", "a~1", 9, 5, 5, "1"),
        ],
        "source string, causalprocess string, sequence long, rc long, r long, subject string",
    )
    assert [row.subject for row in rows.transform(merge(epsilon=1, delta=1)).collect()] == list("1234")
    named = rows.withColumnRenamed("causalprocess", "process").transform(merge(epsilon=1, delta=1))
    assert [row.subject for row in named.collect()] == list("1234")


def test_two_mergers_agree_on_what_both_subscribe_to(spark: SparkSession, tmp_path: Path) -> None:
    """Different subscriptions, different beginnings, batches of different sizes: one order."""
    network = Network(6)
    orders = []
    for name, sources, skip, size in (("one", "s0 s1 s2 s3", 0, 100), ("two", "s2 s3 s4 s5", 60, 157)):
        taken = [each for each in network.messages[skip:] if each["source"] in sources.split()]
        beats = [each for each in network.beats if each["source"] in sources.split()]
        write_files(tmp_path / name / "in", [*taken, *beats], size)
        how = merge(epsilon="50 ms", delta="400 ms", buckets=4, sources=sources.split())
        rows = streamed(spark, tmp_path / name, how)
        assert {row.status for row in rows} == {"delivered"}
        orders.append([row.subject for row in rows])
    common = set(orders[0]) & set(orders[1])
    assert len(common) > 50
    assert [each for each in orders[0] if each in common] == [each for each in orders[1] if each in common]
    # A merger of mergers gets the original stamps, and gives the same order again.
    both = {each["subject"]: each for each in network.messages if each["subject"] in {*orders[0], *orders[1]}}
    write_files(tmp_path / "three/in", [both[each] for each in (*orders[0], *orders[1])] + network.beats, 150)
    rows = streamed(spark, tmp_path / "three", merge(epsilon="50 ms", delta="60 s", buckets=4))
    again = [row.subject for row in rows if row.subject in common]
    assert again == [each for each in orders[0] if each in common][: len(again)]


def test_three_levels_of_mergers_give_the_order_of_one(spark: SparkSession, tmp_path: Path) -> None:
    """One source only beats: the mergers above hear of it through its heartbeats, or they would stop."""
    network = Network(7, messages=200)
    end = network.now
    beats = [
        {"source": source, "rc": at, "r": at, "type": HEARTBEAT, "subject": f"beat {source} {at}"}
        for at in range(network.messages[0]["r"], end + 12_000_000, 1_000_000)
        for source in ("s0", "s1", "s2", "s3", "s4", "s5", "quiet")
        if source == "quiet" or at > end
    ]
    sent = sorted([*network.messages, *beats], key=lambda each: int(each["rc"]))
    shares = (("s0", "s1", "s2"), ("s3", "s4", "s5", "quiet"))
    below: list[Message] = []
    for number, names in enumerate(shares):
        write_files(tmp_path / f"{number}/in", [each for each in sent if each["source"] in names], 100)
        how = merge(epsilon="50 ms", delta="400 ms", buckets=2)
        below += [row.asDict() for row in streamed(spark, tmp_path / str(number), how)]
    for level, delta in (("two", "550.001 ms"), ("three", "700.002 ms")):
        how = merge(epsilon="50 ms", delta=delta, buckets=2, sources=["quiet"])
        write_files(tmp_path / level / "in", below, 150)
        schema = ", ".join([SCHEMA, *(f"{name} string" for name in below[0] if name not in SCHEMA)])
        rows = streamed(spark, tmp_path / level, how, schema)
        below = [row.asDict() for row in rows]
    assert [row.subject for row in rows if row.status == "delivered"] == network.expected()
    assert {row.status for row in rows} == {"delivered", "heartbeat"}
    times = [(row.rc, row.r, row.source) for row in rows]
    assert times == sorted(times), "heartbeats have their place, too"
    assert len([row for row in rows if row.source == "quiet"]) > 3


def test_as_batches_three_levels_of_mergers_give_the_order_of_one(spark: SparkSession) -> None:
    network = Network(8, messages=200)
    rows = frame(spark, [*network.messages, *network.beats])
    how = merge(epsilon="50 ms", delta="400 ms")
    parts = [rows.where(where).transform(how) for where in ("source < 's3'", "source >= 's3'")]
    top = parts[0].unionByName(parts[1]).transform(how).transform(how).collect()
    assert [row.subject for row in top if row.status == "delivered"] == network.expected()
    assert len([row for row in top if row.status == "heartbeat"]) == len(network.beats)


def test_a_silent_source_is_waited_for_named_and_can_be_excluded(spark: SparkSession, tmp_path: Path) -> None:
    def message(source: str, sequence: int, at: int) -> Message:
        return {"source": source, "sequence": sequence, "rc": at, "r": at, "subject": f"{source}{sequence}"}

    early = [message("a", 1, 1000), message("b", 1, 1000), message("a", 2, 60_000)]
    write_files(tmp_path / "in", early, 10)
    transform = merge(epsilon="50 ms", delta="400 ms", buckets=2, ticks="ms")
    told: list[Any] = []
    source = spark.readStream.schema(SCHEMA).json(str(tmp_path / "in"))

    def start(how: Any) -> list[str]:
        rows: list[Row] = []
        query = (
            source.transform(how)
            .writeStream.foreachBatch(lambda batch, _: rows.extend(batch.collect()))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        finish(query)
        told.extend(
            event["observedMetrics"]["causet"].asDict()
            for event in query.recentProgress
            if event["numInputRows"]
        )
        return [row.subject for row in rows]

    assert start(transform) == []
    assert (told[-1]["held"], told[-1]["blocked"]) == (3, "b, heard of last at 1000000 µs")
    (tmp_path / "in/2.jsonl").write_text(json.dumps(message("a", 3, 120_000)) + "\n")
    assert start(merge(epsilon="50 ms", delta="400 ms", buckets=2, exclude=["b"], ticks="ms")) == [
        "a1",
        "b1",
        "a2",
    ]
    (tmp_path / "in/3.jsonl").write_text(json.dumps(message("b", 2, 1001)) + "\n")
    assert start(transform) == ["b2"], "and what comes below what was released is not lost"
    assert told[-1]["late"] == 1


def test_a_source_that_is_expected_is_waited_for(spark: SparkSession, tmp_path: Path) -> None:
    messages = [
        {"source": "a", "sequence": number, "rc": number * 1000, "r": number * 1000, "subject": str(number)}
        for number in range(1, 5)
    ]
    write_files(tmp_path / "in", messages, 10)
    assert streamed(spark, tmp_path, merge(epsilon=0, delta=0, buckets=2, sources=["z"])) == []


def test_a_stamp_ahead_of_every_clock_is_refused_and_does_not_count_as_progress(
    spark: SparkSession, tmp_path: Path
) -> None:
    messages = [
        {"source": "a", "sequence": 1, "rc": 1000, "r": 1000, "subject": "a1"},
        {"source": "b", "sequence": 1, "rc": 2**42, "r": 2**42, "subject": "damaged"},
        {"source": "b", "sequence": 2, "rc": 1200, "r": 1200, "subject": "b2"},
        {"source": "a", "sequence": 2, "rc": 90_000, "r": 90_000, "subject": "a2"},
    ]
    write_files(tmp_path / "in", messages, 10)
    rows = streamed(spark, tmp_path, merge(epsilon="50 ms", delta="100 ms", buckets=2, ticks="ms"))
    assert [(row.subject, row.status, row.problem) for row in rows] == [
        ("damaged", "diverted", "has a time ahead of every clock"),
        ("a1", "delivered", None),
    ]


def test_the_order_by_several_columns_is_that_of_tuples() -> None:
    """Where they fit into one number, and where not; equal ones stay as they stand."""
    draw = np.random.default_rng(1)
    for widths in (
        (5, 3, 2, 9),
        (2**40, 2**40, 3, 5),
        (9, 2**60, 3, 2**60),
        (3, 2, 2**62, 5),
        (1, 1, 1, 1),
        (2**62, 2, 2, 2),
    ):
        for rows in (0, 1, 200):
            columns = [draw.integers(-width, width, rows) for width in widths]
            told = sorted(range(rows), key=lambda row: tuple(column[row] for column in columns))
            assert ascending(*columns).tolist() == told


def test_tune_takes_heartbeats_for_progress_and_leaves_out_what_merge_would_divert(
    spark: SparkSession,
) -> None:
    """a's message at 100 comes when both are at 1000: it needs 900. The last heartbeat needs nothing."""
    rows = [
        ("a", None, 1000, 1000, "1", HEARTBEAT),
        ("b", 1, 1000, 1000, "2", None),
        ("a", 1, 100, 100, "3", None),
        ("a", None, 9000, 9000, "4", "causet.message"),
        ("b", 2, 9000, 9000, "5", None),
        ("b", None, 10, 10, "6", HEARTBEAT),
    ]
    found = tune(spark.createDataFrame(rows, SCHEMA), "subject")
    assert (found.messages, found.sources, found.skipped) == (3, 2, 1)
    assert (found.epsilon, found.delta) == (0, 900)

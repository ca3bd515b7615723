"""`causal_order()` on Spark against the definition, on random logs and on real ones."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from causet.errors import BadInput
from causet.formats.trace import read_trace
from causet.model import Event
from causet.spark.batch.order import causal_order, order_events
from causet.spark.columns import input_names
from tests.helpers.logs import frame, many_logs, shuffled
from tests.helpers.orders import by_definition, each_real_trace, real_traces

ADDED = ("repaired", "position")


def found(ordered: DataFrame) -> list[tuple[str, Any]]:
    """(id, repaired) in the order of the rows, which is that of positions."""
    rows = ordered.select("text", *ADDED).collect()
    assert [row.position for row in rows] == list(range(len(rows)))
    return [(row.text, row.repaired) for row in rows]


def defined(events: Sequence[Event]) -> list[tuple[str, Any]]:
    return [(each.id, each.repaired) for each in by_definition(events)]


@pytest.mark.parametrize("floats", [False, True])
@pytest.mark.parametrize("faults", [False, True])
def test_random_logs_are_ordered_as_defined(spark: SparkSession, faults: bool, floats: bool) -> None:
    events = many_logs(range(40), faults)
    log = frame(spark, shuffled(events, seed=1), floats).repartition(3)
    assert found(log.transform(causal_order())) == defined(events)


@pytest.mark.parametrize("floats", [False, True])
def test_blocks_come_where_they_are_asked_for_and_move_nothing(spark: SparkSession, floats: bool) -> None:
    events = many_logs(range(40), faults=True)
    log = frame(spark, shuffled(events, seed=1), floats).repartition(3)
    ordered = order_events(log, blocks=True)
    assert ordered.rows.columns == [*log.columns, "block", *ADDED]
    assert found(ordered.rows) == defined(events)
    expected = [each.block for each in by_definition(events)]
    assert [row.block for row in log.transform(causal_order(blocks=True)).collect()] == expected
    assert ordered.blocks == max(expected)
    without = order_events(log)
    assert without.rows.columns == [*log.columns, *ADDED]
    assert without.blocks is None


def test_equal_times_go_by_the_causes_with_that_time_alone(spark: SparkSession) -> None:
    """b#1 stands on no chain, and a#3 on one of earlier events: at 5 o'clock both begin."""
    times = {"a": (1, 1, 5), "b": (5, 5), "c": (5,)}
    events = [
        Event(process, seq, time=time)
        for process, of_process in times.items()
        for seq, time in enumerate(of_process, start=1)
    ]
    ordered = order_events(frame(spark, shuffled(events)), blocks=True).rows
    rows = [(row.process, row.seq, row.block) for row in ordered.collect()]
    assert rows == [("a", 1, 1), ("a", 2, 2), ("a", 3, 3), ("b", 1, 1), ("c", 1, 1), ("b", 2, 2)]


def test_partitions_and_input_order_change_nothing(spark: SparkSession) -> None:
    events = many_logs(range(8), faults=False)
    answers = [
        found(frame(spark, shuffled(events, seed)).repartition(parts).transform(causal_order()))
        for seed, parts in ((1, 1), (2, 2), (3, 8))
    ]
    assert answers[0] == answers[1] == answers[2]


def test_every_column_of_the_input_stays_and_none_is_replaced(spark: SparkSession) -> None:
    log = frame(spark, many_logs([3], faults=False))
    once = log.transform(causal_order(blocks=True))
    added = ["block", *ADDED]
    assert once.columns == [*log.columns, *added]
    old = ["input_block", "input_repaired", "input_position"]
    again = once.transform(causal_order(blocks=True))
    assert again.columns == [*log.columns, *old, *added]
    assert again.drop(*old).collect() == once.collect()
    for own, kept in zip(added, old, strict=True):
        assert again.filter(~F.col(own).eqNullSafe(F.col(kept))).count() == 0
    thrice = again.transform(causal_order(blocks=True))
    assert thrice.columns[len(log.columns) :] == [*old, *(f"input_{name}" for name in old), *added]
    unasked = once.transform(causal_order())
    assert unasked.columns == [*log.columns, "block", *old[1:], *ADDED], "the name block is free then"
    assert unasked.select("block").collect() == once.select("block").collect()


def test_names_that_spark_takes_for_one_clash_too(spark: SparkSession) -> None:
    events = [Event("a", 1, time=5), Event("b", 1, time=3, parents=("a#1",))]
    log = frame(spark, events).withColumns({"Block": F.lit("mine"), "POSITION": F.lit(-1), "a.b`c": F.lit(1)})
    before = spark.conf.get("spark.sql.caseSensitive")
    spark.conf.set("spark.sql.caseSensitive", "false")
    try:
        ordered = order_events(log, blocks=True)
        found = ordered.rows.collect()
    finally:
        spark.conf.set("spark.sql.caseSensitive", before or "true")
    assert ordered.renamed == {"Block": "input_Block", "POSITION": "input_POSITION"}
    rows = [
        (
            row["process"],
            row["input_Block"],
            row["input_POSITION"],
            row["a.b`c"],
            row["block"],
            row["position"],
        )
        for row in found
    ]
    assert rows == [("a", "mine", -1, 1, 1, 0), ("b", "mine", -1, 1, 2, 1)]


@pytest.mark.parametrize(
    ("names", "case_matters", "found"),
    [
        (["id", "time"], False, {}),
        (["block"], False, {"block": "input_block"}),
        (["Block"], False, {"Block": "input_Block"}),
        (["Block"], True, {}),
        (["block", "input_block"], False, {"block": "input_input_block"}),
        (["block", "INPUT_Block"], False, {"block": "input_input_block"}),
        (["block", "INPUT_Block"], True, {"block": "input_block"}),
        (["block", "Block"], True, {"block": "input_block"}),
        (
            ["position", "input_block", "block"],
            False,
            {"position": "input_position", "block": "input_input_block"},
        ),
    ],
)
def test_no_two_columns_get_one_name(names: list[str], case_matters: bool, found: dict[str, str]) -> None:
    assert input_names(names, ("block", "repaired", "position"), case_matters) == found


def refusal(spark: SparkSession, events: Sequence[Event]) -> str:
    with pytest.raises(BadInput) as caught:
        order_events(frame(spark, events))
    return str(caught.value)


def test_bad_input_is_refused_with_a_sentence(spark: SparkSession) -> None:
    a, b = Event("a", 1, parents=("b#1",)), Event("b", 1)
    assert refusal(spark, [a, b, Event("b", 1)]) == 'two events have process "b" and seq 1'
    assert refusal(spark, [a, b, replace(b, seq=3), replace(b, seq=3)]) == (
        'two events have process "b" and seq 3'
    )
    assert refusal(spark, [a, replace(b, id="x"), replace(b, seq=2, id="x")]) == 'two events have the id "x"'
    sends = [Event(p, 2, "send", message="m", to=()) for p in "ab"]
    assert refusal(spark, [a, b, *sends]) == 'the message "m" is sent twice'
    assert refusal(spark, [a, replace(b, parents=("a#1",))]) == (
        "the trace has a cycle, in which an event happened before itself: b#1 → a#1 → b#1"
    )
    assert refusal(spark, [replace(a, seq=0)]) == (
        'an event of process "a" has the seq 0; seq must be an integer from 1'
    )


def test_an_empty_log_has_an_empty_order(spark: SparkSession) -> None:
    ordered = order_events(frame(spark, []))
    assert ordered.rows.collect() == []
    assert ordered.faults == ()


@real_traces
@each_real_trace()
def test_real_executions_are_ordered_as_defined(spark: SparkSession, path: Path) -> None:
    events = read_trace(path)
    with gzip.open(path) as stream:
        times = [json.loads(line).get("time") for line in stream]
    floats = any(isinstance(time, float) for time in times)
    log = frame(spark, shuffled(events), floats)
    assert found(log.transform(causal_order())) == defined(events)

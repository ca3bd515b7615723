"""`deliver` on Spark, batch and streaming, against the pure engine and the oracle."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from causet.errors import BadInput
from causet.spark import deliver
from causet.stamp import deps_of, pack_deps
from tests.helpers.deliveries import by_engine, finish, in_order, told
from tests.helpers.streams import SCHEMA, Message, Streams, write_files

LONG = "1000 days"
STATUS_OF = {"flag": "flagged", "divert": "diverted"}


def streamed(spark: SparkSession, folder: Path, transform: Any, schema: str = SCHEMA) -> list[Row]:
    """What a stream over the files of a folder gives, one file per batch, until all is read."""
    source = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).json(str(folder / "in"))
    rows: list[Row] = []
    query = (
        source.transform(transform)
        .writeStream.foreachBatch(lambda batch, _: rows.extend(batch.collect()))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    finish(query)
    return rows


def frame(spark: SparkSession, messages: Sequence[Message]) -> DataFrame:
    names = [each.split()[0] for each in SCHEMA.split(", ")]
    return spark.createDataFrame([tuple(message[name] for name in names) for message in messages], SCHEMA)


@pytest.mark.parametrize("policy", ["wait", "flag", "divert"])
def test_batch_gives_what_the_engine_gives(spark: SparkSession, policy: str) -> None:
    streams = Streams(seed=100, runs=10, most=1200)
    messages = streams.damaged(1, loss=0.0 if policy == "wait" else 0.01)
    patience = None if policy == "wait" else LONG
    rows = (
        frame(spark, messages)
        .repartition(3)
        .transform(deliver(missing=policy, patience=patience, by="receiver"))
        .collect()
    )
    assert told(rows) == by_engine(messages, policy)
    assert streams.violations(in_order(rows)) == 0, "of what came, no effect leaves before a cause"
    expected = {"wait": {"delivered"}, "flag": {"delivered", "flagged"}, "divert": {"delivered", "diverted"}}
    assert {row.status for row in rows} == expected[policy]


@pytest.mark.parametrize("size", [110, 10_000])
def test_a_stream_gives_the_same_rows_and_statuses_as_the_batch(
    spark: SparkSession, tmp_path: Path, size: int
) -> None:
    streams = Streams(seed=200, runs=10, most=400)
    messages = streams.damaged(2, loss=0.01)
    write_files(tmp_path / "in", messages, size)
    rows = streamed(spark, tmp_path, deliver(missing="wait", by="receiver"))
    assert told(rows) == {
        key: value for key, value in by_engine(messages, "wait").items() if value[0] == "delivered"
    }
    assert streams.violations(in_order(rows)) == 0


def test_a_stream_of_one_row_per_batch_gives_what_the_engine_gives(
    spark: SparkSession, tmp_path: Path
) -> None:
    streams = Streams(seed=300, runs=1, most=8)
    messages = streams.damaged(3, loss=0)
    write_files(tmp_path / "in", messages, 1)
    rows = streamed(spark, tmp_path, deliver(missing="wait", by="receiver", buckets=4))
    assert told(rows) == by_engine(messages, "wait")
    assert streams.violations(in_order(rows)) == 0


@pytest.mark.parametrize("policy", ["flag", pytest.param("divert", marks=pytest.mark.soak)])
def test_the_end_of_a_stream_can_be_told(spark: SparkSession, tmp_path: Path, policy: str) -> None:
    streams = Streams(seed=400, runs=5, most=200)
    messages = streams.damaged(4, loss=0.03)
    write_files(tmp_path / "in", messages, 100)
    (tmp_path / "ends").mkdir()

    def transform(rows: DataFrame) -> DataFrame:
        ends = spark.readStream.schema("ended long").json(str(tmp_path / "ends"))
        return rows.transform(deliver(missing=policy, patience=LONG, by="receiver", buckets=4, ends=ends))

    first = streamed(spark, tmp_path, transform)
    assert {row.status for row in first} == {"delivered"}
    (tmp_path / "ends/1.json").write_text(f'{{"ended": {time.time_ns() // 1_000_000}}}\n')
    rows = first + streamed(spark, tmp_path, transform)
    found, expected = told(rows), by_engine(messages, policy)
    assert {key: status for key, (status, _) in found.items()} == {
        key: status for key, (status, _) in expected.items()
    }
    assert {each for each, _ in found.values()} == {
        "delivered",
        f"{policy}ged" if policy == "flag" else "diverted",
    }
    in_order(rows)


def test_patience_is_the_time_since_arrival_and_a_late_cause_is_marked(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A stream that goes on: nothing comes any more, and patience ends all the same."""
    folder = write_files(
        tmp_path / "in",
        [{"source": "b", "sequence": "1", "causaldeps": '{"a":1}', "subject": "answer"}],
        1,
    )
    source = spark.readStream.schema(SCHEMA).json(str(folder))
    query = (
        source.drop("receiver")
        .transform(deliver(missing="flag", patience="2 s", buckets=2))
        .writeStream.format("memory")
        .queryName("patience")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(processingTime="200 milliseconds")
        .start()
    )
    try:
        (answer,) = _until(lambda: spark.table("patience").collect(), 1)
        assert (answer.status, answer.missing, answer.receiver) == ("flagged", {"a": 1}, "all")
        assert 2 <= answer.waited < 60
        late = {"source": "a", "sequence": "1", "causaldeps": "{}", "subject": "question"}
        write_files(tmp_path / "late", [late], 1)
        (tmp_path / "late/00000.jsonl").rename(folder / "late.jsonl")
        rows = _until(lambda: spark.table("patience").collect(), 2)
        assert [
            (row.subject, row.status, row["index"]) for row in sorted(rows, key=lambda row: row["index"])
        ] == [
            ("answer", "flagged", 0),
            ("question", "late", 1),
        ]
    finally:
        query.stop()


def _until(ask: Any, count: int) -> list[Row]:
    for _ in range(300):
        rows: list[Row] = ask()
        if len(rows) >= count:
            return rows
        time.sleep(0.2)
    raise AssertionError(f"only {len(rows)} rows came")


def test_causes_may_be_text_a_map_or_packed(spark: SparkSession) -> None:
    streams = Streams(seed=500, runs=5, most=500)
    messages = streams.damaged(5, loss=0)
    pack = F.udf(lambda text: pack_deps(deps_of({"causaldeps": text})), "binary")
    rows = frame(spark, messages)
    expected = by_engine(messages, "wait")
    as_map = rows.withColumn("deps", F.from_json("causaldeps", "map<string,long>"))
    packed = rows.withColumn("deps", pack("causaldeps")).withColumn(
        "sequence", F.col("sequence").cast("long")
    )
    for each in (as_map, packed):
        found = each.drop("causaldeps").transform(deliver(missing="wait", by="receiver")).collect()
        assert told(found) == expected


def test_a_message_waits_for_the_parent_that_its_id_names(spark: SparkSession, tmp_path: Path) -> None:
    """No numbers at all: a message waits for the one that caused it."""
    schema = "id string, causationid string, subject string, receiver string"
    made = [
        {"id": str(number), "causationid": str(number // 2) if number > 1 else None, "subject": f"m{number}"}
        for number in range(1, 40)
    ]
    lost = made.pop(10)  # 11, and with it 22 and 23
    write_files(tmp_path / "in", made[::-1], 7)
    rows = streamed(spark, tmp_path, deliver(missing="wait", parent="causationid", buckets=2), schema)
    order = in_order(rows)["all"]
    assert {f"m{number}" for number in range(1, 40)} - set(order) == {lost["subject"], "m22", "m23"}
    for subject in order:
        number = int(subject[1:])
        assert number == 1 or order.index(f"m{number // 2}") < order.index(subject)
    lists = spark.createDataFrame(
        [("3", ["1", "2"], "c"), ("1", [], "a"), ("2", None, "b"), ("4", ["4"], "selfish")],
        "id string, after array<string>, subject string",
    )
    rows = lists.transform(deliver(missing="wait", parent="after")).collect()
    assert sorted(in_order(rows)["all"][:2]) == ["a", "b"] and in_order(rows)["all"][2] == "c"
    assert [row.problem for row in rows if row.subject == "selfish"] == [
        "depends on itself or on a later message of its source"
    ]


def test_what_is_no_message_goes_by_the_side_with_the_reason_and_the_rest_goes_on(
    spark: SparkSession,
) -> None:
    rows = spark.createDataFrame(
        [
            ("a", "1", "{}", "fine"),
            ("a", "2", '{"a":2}', "itself"),
            ("a", "2", '{"a":9}', "future"),
            ("a", str(2**60), "{}", "large"),
            ("a", "-5", "{}", "negative"),
            ("a", "x", "{}", "text"),
            ("a", None, "{}", "none"),
            (None, "3", "{}", "nobody"),
            ("a", "2", "{", "torn"),
            ("a", "2", '{"b":"1"}', "text number"),
            ("a", "2", f'{{"b":{2**60}}}', "large cause"),
            ("a", "2", "[]", "list"),
            ("a", "2", '{ "c" : 1 }', "blanks are fine"),
            ("c", "1", None, "no causes"),
        ],
        "source string, sequence string, causaldeps string, subject string",
    )
    found = {row.subject: row for row in rows.transform(deliver(missing="wait")).collect()}
    fine = ["fine", "no causes", "blanks are fine"]
    assert [found[name].status for name in fine] == ["delivered"] * 3
    assert all(found[name].status == "diverted" and found[name].problem for name in found if name not in fine)
    assert len(found) == 14
    assert "not between 1 and" in found["large"].problem
    assert found["torn"].problem == "has causaldeps that cannot be read"
    assert found["nobody"].problem == "has no source"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"missing": "drop"}, "wait, flag or divert"),
        ({"missing": "flag"}, "flag needs a patience"),
        ({"missing": "wait", "patience": 5}, "patience can be used only with missing = flag or divert"),
        ({"missing": "flag", "patience": "soon"}, "write a duration such as"),
        ({"missing": "wait", "by": "nobody"}, 'need a column "nobody"'),
        ({"missing": "wait", "parent": "causationid"}, 'need a column "id"'),
        ({"missing": "wait", "buckets": 0}, "there can be 1 to"),
    ],
)
def test_arguments_of_deliver_that_make_no_sense_are_named(
    spark: SparkSession, arguments: dict[str, Any], said: str
) -> None:
    rows = spark.createDataFrame([], "source string, sequence long, causaldeps string")
    with pytest.raises(BadInput, match=said):
        rows.transform(deliver(**arguments))


def test_columns_that_are_missing_or_of_another_type_are_named(spark: SparkSession) -> None:
    for schema, said in (
        ("source string, sequence long", '"deps" or "causaldeps"; there are source, sequence'),
        (
            "source string, sequence double, deps binary",
            '"sequence" must be a string or a 64-bit integer, not double',
        ),
        ("source int, sequence long, deps binary", '"source" must be a string'),
        ("source string, sequence long, deps binary, __causet_x int", "is reserved"),
    ):
        with pytest.raises(BadInput, match=said):
            spark.createDataFrame([], schema).transform(deliver(missing="wait"))


def test_more_than_may_be_held_is_an_error_that_says_what_blocks(spark: SparkSession) -> None:
    rows = spark.createDataFrame(
        [("a", number, "{}") for number in range(2, 30)], "source string, sequence long, causaldeps string"
    )
    with pytest.raises(
        Exception, match=r"28 messages are held, and most_held = 10; the oldest waits for a:1"
    ):
        rows.transform(deliver(missing="wait", most_held=10)).collect()


def test_a_checkpoint_of_other_settings_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    messages = Streams(seed=600, runs=1, most=20).messages
    write_files(tmp_path / "in", messages, 10)
    streamed(spark, tmp_path, deliver(missing="wait", by="receiver", buckets=4))
    write_files(tmp_path / "more", messages, 100)
    (tmp_path / "more/00000.jsonl").rename(tmp_path / "in/more.jsonl")
    with pytest.raises(Exception, match=r'this checkpoint was made with .*"buckets": 4'):
        streamed(spark, tmp_path, deliver(missing="wait", by="receiver", buckets=5))


def test_a_state_of_another_version_is_refused(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from causet.spark.streams import deliverer as delivering

    messages = Streams(seed=600, runs=1, most=20).messages
    write_files(tmp_path / "in", messages, 10)
    original = delivering.Deliverer.__init__

    def of_version_7(self: Any, *arguments: Any) -> None:
        original(self, *arguments)
        self.version = 7

    monkeypatch.setattr(delivering.Deliverer, "__init__", of_version_7)
    streamed(spark, tmp_path, deliver(missing="wait", by="receiver", buckets=4))
    monkeypatch.undo()
    write_files(tmp_path / "more", messages, 100)
    (tmp_path / "more/00000.jsonl").rename(tmp_path / "in/more.jsonl")
    with pytest.raises(Exception, match="state of version 7, and this release reads version 3"):
        streamed(spark, tmp_path, deliver(missing="wait", by="receiver", buckets=4))

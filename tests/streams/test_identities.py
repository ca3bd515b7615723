"""Producers that are started again: nothing is lost, and nothing is dropped without being named."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import textwrap
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from causet import Stamper
from causet.delivery import Conflict, Delivery
from causet.errors import BadInput
from causet.spark import deliver
from causet.stamp import deps_of, process_of, sequence_of
from tests.helpers.commands import LOCAL, causet, rows_in
from tests.helpers.streams import write_files, write_parquet

SMALL = ("--missing", "wait", "--buckets", "2", "--json", *LOCAL)
PRODUCER = textwrap.dedent(
    """
    import json, sys
    from causet import Stamper
    stamper = Stamper("shop", "orders")
    number = 0
    while True:
        number += 1
        print(json.dumps(stamper.stamp({"text": f"{sys.argv[1]} {number}"})), flush=True)
    """
)
"""It has no file, and writes until it is killed."""


def killed_again_and_again(times: int) -> list[list[dict[str, Any]]]:
    """What a producer wrote in each of its lives: whole lines only."""
    draw, lives = random.Random(5), []
    for life in range(times):
        with subprocess.Popen([sys.executable, "-c", PRODUCER, str(life)], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            lines = [process.stdout.readline() for _ in range(draw.randrange(1, 40))]
            os.kill(process.pid, signal.SIGKILL)
            lines += process.stdout.readlines()
        lives.append([json.loads(line) for line in lines if line.endswith(b"\n")])
    return lives


def test_a_producer_without_a_file_that_is_killed_20_times_loses_nothing(
    tmp_path: Path, spark: SparkSession
) -> None:
    """In one run of deliver, and in two with a restart between them, in the middle of a life."""
    lives = killed_again_and_again(20)
    written = [each for life in lives for each in life]
    assert len(lives) == 20 and all(lives)
    assert Counter(sequence_of(each) for each in written)[1] == 20, "each life numbers from 1"
    draw = random.Random(6)
    for name, parts in (
        ("one", [written]),
        ("two", [written[: len(written) // 2], written[len(written) // 2 :]]),
    ):
        home = tmp_path / name
        home.mkdir()
        delivered = duplicates = held = 0
        for number, part in enumerate(parts):
            mixed = draw.sample(part, len(part))
            (home / f"{number}.new").write_text("".join(json.dumps(each) + "\n" for each in mixed))
            (home / "in").mkdir(exist_ok=True)
            (home / f"{number}.new").rename(home / "in" / f"{number}.jsonl")
            found = json.loads(causet("deliver", home / "in", home / "out", *SMALL))
            delivered += found["delivered"]
            duplicates += found["duplicates"]
            held = found["held"]
        assert (delivered, duplicates, held) == (len(written), 0, 0)
        rows = rows_in(home / "out")
        assert Counter(row["data"]["text"] for row in rows) == Counter(
            each["data"]["text"] for each in written
        )
        for life in lives:
            mine = [row["data"]["text"] for row in rows if row["causalprocess"] == process_of(life[0])]
            assert mine == [each["data"]["text"] for each in life], "each life in its order"


# ---------------------------------------------------------------- version 1: numbers that are used again


def old(number: int, text: str) -> dict[str, Any]:
    """A message of version 1: its source is all that it says about who numbered it."""
    return {
        "source": "anna",
        "id": f"chat:{number}",
        "sequence": f"{number:020}",
        "causaldeps": "{}",
        "data": text,
    }


BEFORE = [old(number, text) for number, text in enumerate(("one", "two", "three"), 1)]
AFTER = [old(number, text) for number, text in enumerate(("four", "five", "six", "seven"), 1)]
"""After a restart without a file: the numbers begin at 1 again."""


def test_numbers_that_are_used_again_are_conflicts_in_plain_python() -> None:
    delivery: Delivery[str] = Delivery("wait")
    refused = []
    for message in (*BEFORE, *BEFORE, *AFTER):
        try:
            fresh = delivery.offer(
                process_of(message), sequence_of(message), deps_of(message), message["data"], 0
            )
            assert fresh == (not delivery.is_delivered("anna", sequence_of(message)))
        except Conflict as error:
            refused.append(str(error))
        delivery.take(0)
    assert refused == [f"anna:{number} is the number of another message" for number in (1, 2, 3)]


def test_a_journal_that_was_restored_from_a_backup_makes_conflicts_until_its_numbers_are_new(
    tmp_path: Path,
) -> None:
    file, backup = tmp_path / "shop.journal", tmp_path / "backup"
    with Stamper("shop", file=file) as shop:
        sent = [shop.stamp("1")]
        shutil.copy(file, backup)
        sent += [shop.stamp("2"), shop.stamp("3")]
    shutil.copy(backup, file)
    with Stamper("shop", file=file) as shop:
        sent += [shop.stamp(text) for text in ("another 2", "another 3", "4")]
    delivery: Delivery[str] = Delivery("wait")
    got, refused = [], []
    for message in sent:
        try:
            delivery.offer(process_of(message), sequence_of(message), {}, message["data"], 0)
        except Conflict:
            refused.append(message["data"])
        got += [each.payload for each in delivery.take(0)]
    assert (got, refused) == (["1", "2", "3", "4"], ["another 2", "another 3"])


def test_numbers_that_are_used_again_are_conflicts_on_spark(tmp_path: Path, spark: SparkSession) -> None:
    """Named and diverted, also when deliver was started again in between."""
    write_files(tmp_path / "in", BEFORE, 9)
    command = ("deliver", tmp_path / "in", tmp_path / "out", *SMALL)
    assert json.loads(causet(*command))["delivered"] == 3
    (tmp_path / "in" / "later.jsonl").write_text("".join(json.dumps(each) + "\n" for each in AFTER + BEFORE))
    found = json.loads(causet(*command))
    assert (found["delivered"], found["duplicates"], found["books"]["conflicts"]) == (1, 3, 3)
    assert [row["data"] for row in rows_in(tmp_path / "out")] == ["one", "two", "three", "seven"]
    aside = rows_in(tmp_path / "out-diverted")
    assert sorted(row["data"] for row in aside) == ["five", "four", "six"]
    assert {row["problem"] for row in aside} == {
        "has the number of another message of its source, with another id or data"
    }


# ---------------------------------------------------------------- where the identity stands

COLUMNS = "source string, sequence long, causaldeps string, text string"


@pytest.mark.parametrize("column", ["process", "causalprocess"])
def test_a_column_names_the_process_and_where_it_is_null_the_source_does(
    spark: SparkSession, column: str
) -> None:
    rows = [
        ("shop", 1, "{}", "first", "shop~1"),
        ("shop", 2, "{}", "second", "shop~1"),
        ("shop", 1, "{}", "third", "shop~2"),
        ("shop", 1, "{}", "old", None),
        ("bank", 1, '{"shop~2":1,"shop":1}', "paid", "bank~1"),
        ("bank", 1, '{"shop~3":1}', "waits", "bank~2"),
        (None, 1, "{}", "nobody", "bank~3"),
    ]
    table = spark.createDataFrame(rows, f"{COLUMNS}, {column} string")
    found = {row.text: row for row in table.transform(deliver(missing="flag", patience=1)).collect()}
    assert {name: row.status for name, row in found.items()} == {
        **dict.fromkeys(("first", "second", "third", "old", "paid"), "delivered"),
        "waits": "flagged",
        "nobody": "diverted",
    }
    assert found["waits"].missing == {"shop~3": 1} and found["nobody"].problem == "has no source"
    assert found["old"][column] is None and found["first"][column] == "shop~1", "columns stay as they are"
    assert found["paid"]["index"] > max(found["third"]["index"], found["old"]["index"])


def test_causalprocess_counts_before_process(spark: SparkSession) -> None:
    rows = [("a", 1, "{}", "x", "a~1", "p"), ("a", 1, "{}", "y", "a~2", "p"), ("a", 1, "{}", "z", None, "p")]
    table = spark.createDataFrame(rows, f"{COLUMNS}, causalprocess string, process string")
    found = table.transform(deliver(missing="wait")).collect()
    assert {row.text: row.status for row in found} == dict.fromkeys("xyz", "delivered")


def test_columns_of_the_identity_that_cannot_be_that_are_named(spark: SparkSession) -> None:
    for more, said in (
        ("causalprocess long", 'column "causalprocess" must be a string, not bigint'),
        ("causalversion double", 'column "causalversion" must be 1 or 2, not double'),
    ):
        table = spark.createDataFrame([], f"{COLUMNS}, {more}")
        with pytest.raises(BadInput, match=said):
            table.transform(deliver(missing="wait"))


def test_a_message_of_a_version_that_is_not_known_is_diverted(spark: SparkSession) -> None:
    rows = [("a", 1, "{}", "x", 2), ("b", 1, "{}", "y", 3), ("c", 1, "{}", "z", None), ("d", 1, "{}", "w", 1)]
    table = spark.createDataFrame(rows, f"{COLUMNS}, causalversion int")
    found = {row.text: row for row in table.transform(deliver(missing="wait")).collect()}
    assert [found[name].status for name in "xyzw"] == ["delivered", "diverted", "delivered", "delivered"]
    assert found["y"].problem == "has a causalversion that is not 1 or 2"


def test_an_identity_that_appears_when_the_query_has_begun_counts(
    tmp_path: Path, spark: SparkSession
) -> None:
    """The folder began with messages of version 1, whose columns the query knows; then come others.
    What is held is found, and named."""
    write_files(tmp_path / "in", BEFORE, 9)
    command = ("deliver", tmp_path / "in", tmp_path / "out", "--checkpoint", tmp_path / "state", *SMALL)
    assert json.loads(causet(*command))["delivered"] == 3
    anna, ben = (Stamper(name, run="1") for name in ("anna", "ben"))
    said = [anna.stamp("four"), anna.stamp("five"), anna.stamp("six")]
    ben.saw(said[0])
    later = [said[0], said[2], ben.stamp("seven"), {**old(1, "eight"), "causalversion": 3}]
    (tmp_path / "in" / "later.jsonl").write_text("".join(json.dumps(each) + "\n" for each in later))
    found = json.loads(causet(*command))
    assert (found["delivered"], found["held"], found["blocked"]) == (2, 1, "anna~1:2")
    assert found["diverted"] == 1
    for name in ("anna~1:3", "anna:3"):
        held = json.loads(causet("explain", "--checkpoint", tmp_path / "state", name, "--json"))
        [message] = held["messages"]
        assert message["message"] == "anna~1:3" and message["waits_for"][0]["message"] == "anna~1:2"
    (tmp_path / "in" / "last.jsonl").write_text(json.dumps(said[1]) + "\n")
    assert json.loads(causet(*command))["delivered"] == 2
    rows = rows_in(tmp_path / "out")
    order = [row["data"] for row in rows]
    assert sorted(order) == sorted(["one", "two", "three", "four", "five", "six", "seven"])
    assert [text for text in order if text in ("four", "five", "six")] == ["four", "five", "six"]
    assert order.index("four") < order.index("seven")
    named = {row["data"]: row.get("causalprocess") for row in rows}
    assert (named["one"], named["four"], named["seven"]) == (None, "anna~1", "ben~1"), (
        "for who reads them next"
    )


def test_a_table_whose_identity_appears_later_is_refused_by_name(tmp_path: Path, spark: SparkSession) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    row = {"source": "a", "sequence": 1, "causaldeps": "{}", "subject": "x", "receiver": "r"}
    write_parquet(tmp_path / "in", [row], 9)
    command = ("deliver", tmp_path / "in", tmp_path / "out", *SMALL)
    assert json.loads(causet(*command))["delivered"] == 1
    pq.write_table(pa.Table.from_pylist([{**row, "causalprocess": "a~1"}]), tmp_path / "in" / "later.parquet")
    causet(*command)
    [aside] = rows_in(tmp_path / "out-diverted")
    assert 'it has a column "causalprocess", and the files had none when the query began' in aside["problem"]

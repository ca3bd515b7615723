"""Borders of streams: lines with more than one object, files that go away, two commands at once, settings
that set messages free although nothing comes, and sinks in places where they cannot be."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from causet.errors import BadInput
from causet.spark.streams.checkpoint import Checkpoint
from causet.spark.streams.file_sink import FileSink
from causet.spark.streams.json_lines import columns_in, parsed
from tests.helpers.commands import LOCAL, causet, rows_in
from tests.helpers.streams import write_files

pytestmark = pytest.mark.jvm  # nearly all of these run a query, by a command

SMALL = ["--buckets", 2, "--json"]
ONE, TWO = '{"source":"a","sequence":1}', '{"source":"a","sequence":2}'


def told(*arguments: object) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(causet(*arguments))
    assert found["books"]["balance"]
    return found


def message(source: str, number: int, **more: Any) -> dict[str, Any]:
    return {"source": source, "sequence": number, "causaldeps": "{}", **more}


def test_a_line_with_more_than_one_object_is_not_a_message(spark: SparkSession) -> None:
    """Nothing that stands behind the first object is lost: the line as a whole is diverted."""
    between = ["", " ", "  ", "\t", "\r", ",", ", ", " , ", ",\t", "\u00a0", "\x0b", " x "]
    bad = [f"{ONE}{each}{TWO}" for each in between]
    bad += [f"{ONE} garbage }}", f"{ONE}}}", f"{ONE},", f"{ONE}]", f"{ONE}] }}"]
    nested = '{"source":"a","sequence":3,"data":{"a":[{"b":1},{"c":"}, {"}]}}'
    fine = [ONE, f"{ONE} \t\r", nested, '{"source":"} {","sequence":4}']
    lines = spark.createDataFrame([(each,) for each in [*fine, *bad]], "value string")
    rows = parsed(lines, columns_in(spark.createDataFrame([(each,) for each in fine], "value string")))
    found = {row.malformed: row.sequence for row in rows.collect()}
    assert set(found) == {None, *bad}
    assert rows.where("malformed is null").count() == len(fine)


def test_a_file_that_goes_away_before_its_batch_is_missed_and_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inbox = write_files(tmp_path / "in", [message("a", number) for number in (1, 2, 3)], 1)
    write = FileSink.write

    def removes(self: FileSink, rows: Any, batch: int) -> None:
        write(self, rows, batch)
        if (inbox / "00002.jsonl").exists():
            (inbox / "00002.jsonl").rename(tmp_path / "aside")

    command = ["deliver", inbox, tmp_path / "out", "--missing", "wait", "--files-per-batch", 1, *SMALL]
    with monkeypatch.context() as patch:
        patch.setattr(FileSink, "write", removes)
        with pytest.raises(BadInput, match=r"00002\.jsonl is gone, and belongs to a batch"):
            causet(*command)
    with pytest.raises(BadInput, match=r"00002\.jsonl is gone"):
        causet(*command)
    (tmp_path / "aside").rename(inbox / "00002.jsonl")
    assert told(*command)["delivered"] == 1
    assert [row["sequence"] for row in rows_in(tmp_path / "out")] == [1, 2, 3]


def test_a_second_command_that_is_refused_leaves_the_first_alone(tmp_path: Path) -> None:
    home = tmp_path / "state"
    with Checkpoint(home) as first, Checkpoint(home) as second:
        assert first.opened("deliver", {}) is None
        with pytest.raises(BadInput, match="another process runs with the checkpoint"):
            second.opened("deliver", {})
        second.withdraw()
        assert (home / "name").read_text() == first.name and first.ends.is_dir() and (home / "lock").exists()
        first.withdraw()
    assert not home.exists()


def test_what_is_given_up_by_hand_is_released_for_every_receiver_though_nothing_comes(tmp_path: Path) -> None:
    lines = [message("shop", number, tenant=f"t{each}") for number in (1, 3, 4) for each in range(3)]
    inbox = write_files(tmp_path / "in", lines, 100)
    command = ["deliver", inbox, tmp_path / "out", "--missing", "wait", "--by", "tenant", *SMALL]
    assert told(*command)["held"] == 6
    found = told(*command, "--lost", "shop:2")
    assert (found["flagged"], found["delivered"], found["held"]) == (3, 3, 0)
    write_files(tmp_path / "more", [message("bank", 1, tenant="t0", causaldeps='{"shop":2}')], 1)
    (tmp_path / "more/00000.jsonl").rename(inbox / "more.jsonl")
    assert told(*command)["flagged"] == 1, "what was given up stays so"


def test_an_excluded_source_sets_messages_free_though_nothing_comes(tmp_path: Path) -> None:
    lines = [
        {"source": "a", "sequence": 1, "rc": 1000, "r": 1000},
        {"source": "b", "sequence": 1, "rc": 9000, "r": 9000},
        {"source": "b", "sequence": 2, "rc": 9900, "r": 9900},
    ]
    inbox = write_files(tmp_path / "in", lines, 10)
    how = ["--epsilon", "10ms", "--delta", "100ms", "--ticks", "ms"]
    command = ["merge", inbox, tmp_path / "out", *how, *SMALL]
    assert told(*command)["held"] == 3
    found = told(*command, "--exclude", "a")
    assert (found["delivered"], found["held"]) == (2, 1)


def test_what_a_query_writes_is_not_its_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inbox = write_files(tmp_path / "in", [message("a", 1)], 1)
    monkeypatch.chdir(inbox)
    for sink, more in ((inbox / "out", []), (tmp_path / "out", ["--checkpoint", inbox / "state"])):
        with pytest.raises(BadInput, match="would be read as input"):
            causet("deliver", inbox, sink, "--missing", "wait", *more)
    with pytest.raises(BadInput, match="would be read as input"):
        causet("deliver", ".", "out", "--missing", "wait")
    assert sorted(each.name for each in inbox.iterdir()) == ["00000.jsonl"]
    with pytest.raises(BadInput, match="give the name of a folder to write"):
        causet("deliver", inbox, "/", "--missing", "wait")


@pytest.mark.parametrize(
    ("place", "problem"),
    [("in/cuts", "would be read as input"), *((each, "among the messages") for each in ("out", "out/cuts"))],
)
def test_cuts_do_not_lie_among_messages(tmp_path: Path, place: str, problem: str) -> None:
    inbox = write_files(tmp_path / "in", [message("a", 1)], 1)
    for source in (inbox, inbox / "00000.jsonl", "kafka://localhost:9/orders"):
        if source == inbox or place != "in/cuts":
            with pytest.raises(BadInput, match=problem):
                causet("deliver", source, tmp_path / "out", "--missing", "wait", "--stable", tmp_path / place)
    assert [each.name for each in tmp_path.iterdir()] == ["in"]
    assert [each.name for each in inbox.iterdir()] == ["00000.jsonl"]


def test_what_was_delivered_can_be_delivered_again_and_again(tmp_path: Path) -> None:
    """Columns that an earlier run added are kept, each under a name of its own."""
    inbox = write_files(tmp_path / "in0", [message("a", number) for number in (2, 1)], 10)
    for turn in range(3):
        told("deliver", inbox, tmp_path / f"in{turn + 1}", "--missing", "wait", *SMALL)
        inbox = tmp_path / f"in{turn + 1}"
    rows = rows_in(inbox)
    assert [row["sequence"] for row in rows] == [1, 2]
    for name in ("status", "input_status", "input_input_status"):
        assert {row[name] for row in rows} == {"delivered"}


def test_what_is_held_is_explained_though_the_column_of_parents_has_another_name(tmp_path: Path) -> None:
    lines: list[dict[str, Any]] = [{"id": "2", "missing": "1"}, {"id": "3", "missing": None}]
    inbox = write_files(tmp_path / "in", lines, 10)
    command = ["deliver", inbox, tmp_path / "out", "--missing", "wait", "--parent", "missing", *SMALL]
    assert told(*command)["held"] == 1
    found = json.loads(causet("explain", "--checkpoint", tmp_path / "out/_checkpoint", "--json"))
    assert [(each["message"], each["waits_for"][0]["message"]) for each in found["messages"]] == [("2", "1")]


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.soak)])
def test_an_interrupted_query_finishes_its_batch_and_its_books_balance(
    tmp_path: Path, number: signal.Signals
) -> None:
    inbox = write_files(tmp_path / "in", [message("a", 1), message("a", 3)], 10)
    out = tmp_path / "out"
    command = [
        "deliver",
        str(inbox),
        str(out),
        "--missing",
        "wait",
        "--follow",
        "--buckets",
        "2",
        "--json",
        *LOCAL,
    ]
    code = "from causet.cli import main; main()"
    with subprocess.Popen(
        [sys.executable, "-c", code, *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        until = time.time() + 120
        while not list(out.glob("batch-*")) and time.time() < until and process.poll() is None:
            time.sleep(0.05)
        os.killpg(process.pid, number) if number == signal.SIGINT else process.send_signal(number)
        printed, errors = process.communicate(timeout=120)
    assert (process.returncode, errors) == (0, "")
    found = json.loads(printed)
    assert found["books"]["balance"] and (found["delivered"], found["held"]) == (1, 1)
    (inbox / "more.jsonl").write_text(json.dumps(message("a", 2)) + "\n")
    assert told(*(each for each in command if each != "--follow"))["delivered"] == 2
    assert [row["sequence"] for row in rows_in(out)] == [1, 2, 3]


ODD = {"trace.id": "x", "we`ird": 3, "a.b`c": {"d.e": 1}}


def test_a_key_may_have_dots_and_backticks(tmp_path: Path) -> None:
    """PySpark takes a dot in a name for a field of a struct."""
    lines = [message("a", 1), message("a", 2, **ODD), message("a", 3)]
    inbox = write_files(tmp_path / "in", lines, 10)
    assert told("deliver", inbox, tmp_path / "out", "--missing", "wait", *SMALL)["delivered"] == 3
    second = rows_in(tmp_path / "out")[1]
    assert {name: second[name] for name in ODD} == ODD
    stamped = [{"source": "a", "sequence": n, "rc": 10_000 * n, "r": 10_000 * n, **ODD} for n in (2, 1)]
    inbox = write_files(tmp_path / "merged", stamped, 10)
    merge = ["merge", inbox, tmp_path / "one", "--epsilon", "1ms", "--delta", "1ms", *SMALL]
    assert told(*merge)["delivered"] == 1
    assert {name: rows_in(tmp_path / "one")[0][name] for name in ODD} == ODD


def test_half_of_a_surrogate_pair_is_not_text(tmp_path: Path) -> None:
    """Spark makes a question mark of it: then three sources are one, and their messages duplicates."""
    text = r"""{"source":"\ud800","sequence":1,"causaldeps":"{}"}
{"source":"\udfff","sequence":1,"causaldeps":"{}"}
{"source":"?","sequence":1,"causaldeps":"{}"}
{"source":"p","sequence":1,"causaldeps":"{}","data":"\ud83d lone"}
{"source":"q","sequence":1,"causaldeps":"{}","data":"\ud83d\n\ude00"}
{"source":"r","sequence":1,"causaldeps":"{}","data":"\\ud800\udc00"}
{"source":"s","sequence":1,"causaldeps":"{}","data":"\ud83d\ude00 \uD83D\uDE00 \\ud800 \\\\ud800 \u00e9"}
"""
    (tmp_path / "in").mkdir()
    (tmp_path / "in/1.jsonl").write_text(text)
    found = told("deliver", tmp_path / "in", tmp_path / "out", "--missing", "wait", *SMALL)
    assert (found["delivered"], found["diverted"], found["duplicates"]) == (2, 5, 0)
    fine = {row["source"]: row for row in rows_in(tmp_path / "out")}
    assert set(fine) == {"?", "s"}
    assert fine["s"]["data"] == "\U0001f600 \U0001f600 \\ud800 \\\\ud800 é"
    problems = {row["problem"].partition(" (")[0] for row in rows_in(tmp_path / "out-diverted")}
    assert problems == {"has half of a surrogate pair, which is not text"}


def test_an_address_that_cannot_be_a_sink_or_a_source_is_refused(tmp_path: Path) -> None:
    inbox = write_files(tmp_path / "in", [message("a", 1, malformed=7)], 10)
    file = inbox / "00000.jsonl"
    with pytest.raises(BadInput, match=r"00000\.jsonl is a file; name a folder to write"):
        causet("deliver", file, file, "--missing", "wait")
    for topic in ("t", "t-diverted", "t-batches", "t-owner"):
        with pytest.raises(BadInput, match=rf"^topic {topic} is the source, and would be written to; name"):
            causet("deliver", f"kafka://h:1/x,{topic}", "kafka://h:1/t", "--missing", "wait")
    said = causet("deliver", inbox, tmp_path / "out", "--missing", "wait", "--buckets", 2)
    assert "column malformed of the input is kept as input_malformed" in said
    (tmp_path / "nanos").mkdir()
    table = pa.table({"source": ["a"], "sequence": [1], "ts": pa.array([1], pa.timestamp("ns"))})
    pq.write_table(table, tmp_path / "nanos/1.parquet")
    with pytest.raises(BadInput, match="column ts has timestamps in nanoseconds, which Spark does not read"):
        causet("deliver", tmp_path / "nanos", tmp_path / "other", "--missing", "wait")

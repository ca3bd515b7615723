"""A stream that is started again: with other settings, without its checkpoint, on the sink of another query,
and after a file that cannot be read."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from causet import Stamper
from causet.errors import BadInput
from causet.spark.streams import query as querying
from causet.spark.streams.checkpoint import Checkpoint, default_checkpoint
from causet.spark.streams.file_sink import MARK, FileSink, owner_of
from causet.spark.streams.kafka.sink import KafkaSink
from tests.helpers.commands import causet, rows_in
from tests.helpers.kafka import create, publish, read
from tests.helpers.streams import dies_after_writing, write_files, write_parquet

SMALL = ["--buckets", 2, "--files-per-batch", 1, "--json"]


def told(*arguments: object) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(causet(*arguments))
    return found


def bytes_in(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.glob("batch-*")}


# ---------------------------------------------------------------- settings


@pytest.mark.jvm
def test_a_batch_that_was_written_is_run_again_with_the_settings_it_was_planned_with(tmp_path: Path) -> None:
    """The message is in the sink as flagged. Started again with divert, the command must not tell that it was
    diverted, nor take it away."""
    lines = [
        {"source": "b", "sequence": 1, "causaldeps": '{"a":1}'},
        {"source": "c", "sequence": 1, "causaldeps": "{}"},
    ]
    inbox = write_parquet(tmp_path / "in", lines, 10)
    command = ["deliver", inbox, tmp_path / "out", "--patience", "1h", *SMALL]
    with pytest.MonkeyPatch.context() as patch:
        dies_after_writing(patch, lambda _, sink: any(each["source"] == "b" for each in rows_in(sink.folder)))
        with pytest.raises(BadInput, match=r"^the run ends here$"):
            causet(*command, "--missing", "flag")
    written = bytes_in(tmp_path / "out")
    found = told(*command, "--missing", "divert")
    assert (found["flagged"], found["diverted"]) == (1, 0)
    assert found["books"]["balance"] and found["books"]["held_before"] == 1
    assert bytes_in(tmp_path / "out") == written
    assert not rows_in(tmp_path / "out-diverted")
    kept = json.loads((tmp_path / "out/_checkpoint/causet.json").read_bytes())
    assert kept["settings"]["missing"] == "divert", "from now on the new settings count"
    write_parquet(inbox, [{"source": "x", "sequence": 1, "causaldeps": '{"y":1}'}], 10)
    assert told(*command, "--missing", "divert")["diverted"] == 1
    assert [row["source"] for row in rows_in(tmp_path / "out-diverted")] == ["x"]


@pytest.mark.jvm
def test_a_planned_batch_of_merge_keeps_the_settings_that_it_was_planned_with(tmp_path: Path) -> None:
    """With another ε and without b more is released, by a batch of its own; the first one stays."""
    now = 1_700_000_000_000
    ticks = {("a", n): 1000 * (now + 10 * n) for n in range(1, 9)} | {("b", 1): 1000 * (now + 45)}
    lines = [{"source": name, "sequence": n, "rc": at, "r": at} for (name, n), at in ticks.items()]
    inbox = write_files(tmp_path / "in", lines, 10)
    command = ["merge", inbox, tmp_path / "out", "--delta", "1ms", *SMALL]
    with pytest.MonkeyPatch.context() as patch:
        dies_after_writing(patch, lambda *_: True)
        with pytest.raises(BadInput, match=r"^the run ends here$"):
            causet(*command, "--epsilon", "1ms")
    written = bytes_in(tmp_path / "out")
    assert [row["sequence"] for row in rows_in(tmp_path / "out")] == [1, 2, 3, 4]
    found = told(*command, "--epsilon", "10ms", "--exclude", "b")
    assert (found["delivered"], found["held"]) == (7, 2) and found["books"]["balance"]
    after = bytes_in(tmp_path / "out")
    assert {name: after[name] for name in written} == written
    released = [(row["source"], row["sequence"]) for row in rows_in(tmp_path / "out")]
    assert released[4:] == [("b", 1), ("a", 5), ("a", 6)], "below the clock of a less ε and δ: 80 - 11"


# ---------------------------------------------------------------- one owner


def test_a_folder_has_one_owner(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    first, second = FileSink(folder, "jsonl"), FileSink(folder, "jsonl")
    first.check("one", fresh=True)
    second.check("two", fresh=True)
    assert not folder.exists(), "to look at it makes nothing"
    (tmp_path / "state").mkdir()
    first.claim("one", {"command": "deliver", "checkpoint": str(tmp_path / "state"), "source": "in"})
    first.claim("one", {})
    with pytest.raises(BadInput, match=r"causet deliver of in: go on with --checkpoint .*state"):
        second.claim("two", {})
    second.withdraw()
    for fresh in (True, False):
        first.check("one", fresh)
        with pytest.raises(BadInput, match="the sink of another query"):
            second.check("two", fresh)
    assert (owner_of(folder) or {})["query"] == "one"
    assert [each.name for each in folder.iterdir()] == [MARK], "what others read there are rows"
    (tmp_path / "state").rmdir()
    with pytest.raises(BadInput, match=r"state is gone: without it, rows would be duplicated"):
        second.check("two", fresh=True)
    (tmp_path / "out-diverted" / MARK).unlink()
    with pytest.raises(BadInput, match=r"out-diverted has lost _causet\.json"):
        first.check("one", fresh=False)
    (folder / MARK).write_text("{")
    with pytest.raises(BadInput, match="is damaged: it does not say whose rows these are"):
        first.check("one", fresh=False)


def test_of_two_queries_one_gets_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both have looked, and found nothing."""
    folder = tmp_path / "out"
    for links in (True, False):
        if not links:
            monkeypatch.setattr("causet.spark.streams.file_sink.os.link", no_links)
        sinks = {name: FileSink(folder, "jsonl") for name in ("one", "two")}
        for name, sink in sinks.items():
            sink.check(name, fresh=True)
        sinks["two"].claim("two", {"source": "in"})
        with pytest.raises(BadInput, match="the sink of another query"):
            sinks["one"].claim("one", {})
        sinks["one"].withdraw()
        assert (owner_of(folder) or {})["query"] == "two", "what is refused takes nothing along"
        sinks["two"].withdraw()
        assert not folder.exists() and not (tmp_path / "out-diverted").exists()


def no_links(*_: object) -> None:
    raise PermissionError(1, "Operation not permitted")


def test_what_is_refused_leaves_nothing_of_a_folder_with_something_in_it(tmp_path: Path) -> None:
    sink = FileSink(tmp_path / "out", "jsonl")
    sink.claim("one", {})
    (tmp_path / "out/notes").touch()
    sink.withdraw()
    assert [each.name for each in (tmp_path / "out").iterdir()] == ["notes"]


@pytest.mark.jvm
def test_two_checkpoints_one_sink_and_a_lost_checkpoint_are_refused(tmp_path: Path) -> None:
    inbox = write_files(tmp_path / "in", [{"source": "a", "sequence": "1", "causaldeps": "{}"}], 1)
    command = ["deliver", inbox, tmp_path / "out", "--missing", "wait", *SMALL]
    assert told(*command, "--checkpoint", tmp_path / "state")["delivered"] == 1
    before = bytes_in(tmp_path / "out")
    for other in (["--checkpoint", tmp_path / "other"], []):
        with pytest.raises(BadInput, match=r"the sink of another query, causet deliver of .*/in: go on with"):
            causet(*command, *other)
    assert not (tmp_path / "other").exists() and not (tmp_path / "out/_checkpoint").exists()
    shutil.rmtree(tmp_path / "state")
    with pytest.raises(BadInput, match="state is gone: without it, rows would be duplicated"):
        causet(*command, "--checkpoint", tmp_path / "state")
    assert bytes_in(tmp_path / "out") == before and not (tmp_path / "state").exists()


@pytest.mark.jvm
@pytest.mark.soak
def test_a_sink_that_was_made_anew_is_refused(tmp_path: Path) -> None:
    inbox = write_files(tmp_path / "in", [{"source": "a", "sequence": "1", "causaldeps": "{}"}], 1)
    command = ["deliver", inbox, tmp_path / "out", "--missing", "wait", *SMALL]
    command += ["--checkpoint", tmp_path / "state"]
    causet(*command)
    shutil.rmtree(tmp_path / "out")
    with pytest.raises(BadInput, match=r"out has lost _causet\.json, the mark of its query"):
        causet(*command)


# ---------------------------------------------------------------- the checkpoint that nobody named


def test_run_again_a_command_goes_on_and_says_with_which_checkpoint(
    spark: SparkSession, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    inbox = write_parquet(tmp_path / "in", [{"source": "a", "sequence": 1, "causaldeps": "{}"}], 1)
    out = tmp_path / "out"
    command = ["deliver", inbox, out, "--missing", "wait", *SMALL]
    assert told(*command)["delivered"] == 1
    assert told(*command)["messages"] == 0
    more = write_parquet(inbox, [{"source": "a", "sequence": 2, "causaldeps": "{}"}], 1)
    assert told(*command)["delivered"] == 1 and more == inbox
    assert (out / "_checkpoint").is_dir()
    # What reads the folder finds the rows, and nothing of the checkpoint in it.
    expected = [("a", 1, 0), ("a", 2, 1)]
    rows = spark.read.parquet(f"file:{out}").select("source", "sequence", "index").collect()
    assert sorted(map(tuple, rows)) == expected
    table = ds.dataset(out, format="parquet").to_table().select(["source", "sequence", "index"])
    assert sorted(tuple(row.values()) for row in table.to_pylist()) == expected
    found = [row for file in out.rglob("*.parquet") for row in pq.read_table(file).to_pylist()]
    assert sorted((row["source"], row["sequence"], row["index"]) for row in found) == expected
    again = ["deliver", out, tmp_path / "next", "--missing", "wait", "--by", "receiver", *SMALL]
    assert told(*again)["messages"] == 2
    # Removed with its checkpoint, it is new.
    shutil.rmtree(out)
    with pytest.raises(BadInput, match="out-diverted is the sink of another query"):
        causet(*command)
    shutil.rmtree(tmp_path / "out-diverted")
    assert told(*command)["delivered"] == 2


def topic_with_an_answer(broker: str, topic: str, folder: Path) -> None:
    """A message whose cause has not come, and another one."""
    create(broker, topic)
    anna, ben = (Stamper(name, "chat") for name in ("anna", "ben"))
    ben.saw(anna.stamp("question", subject="question"))
    answer, other = ben.stamp("answer", subject="answer"), Stamper("carl", "chat").stamp("x", subject="other")
    publish(broker, topic, [answer, other], folder)


@pytest.mark.soak
def test_run_again_a_command_from_topic_to_topic_goes_on(
    broker: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    topic_with_an_answer(broker, "again", tmp_path)
    command = ["deliver", f"kafka://{broker}/again", f"kafka://{broker}/again-out", *SMALL]
    command += ["--missing", "flag", "--patience", "1h"]
    found = told(*command)
    assert (found["delivered"], found["flagged"]) == (1, 1)
    assert told(*command)["messages"] == 0
    assert sorted(each["ce_subject"] for each in read(broker, "again-out")) == ["answer", "other"]
    (state,) = (tmp_path / "state/causet").iterdir()
    shutil.rmtree(state)
    with pytest.raises(BadInput, match='"again-out" belongs to another query'):
        causet(*command)
    assert len(read(broker, "again-out")) == 2


@pytest.mark.soak
def test_killed_between_the_commits_of_kafka_and_spark_then_started_with_other_settings(
    broker: str, tmp_path: Path
) -> None:
    """What the command tells is what is in the topics."""
    topic_with_an_answer(broker, "between", tmp_path)
    command = ["deliver", f"kafka://{broker}/between", f"kafka://{broker}/between-out", *SMALL]
    command += ["--checkpoint", tmp_path / "state", "--patience", "1h"]
    write = KafkaSink.write

    def dies(self: KafkaSink, rows: Any, batch: int) -> None:
        write(self, rows, batch)
        if any(each["ce_subject"] == "answer" for each in read(broker, "between-out")):
            raise BadInput("the run ends here")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(KafkaSink, "write", dies)
        with pytest.raises(BadInput, match=r"^the run ends here$"):
            causet(*command, "--missing", "flag")
    found = told(*command, "--missing", "divert")
    assert (found["flagged"], found["diverted"]) == (1, 0) and found["books"]["balance"]
    there = {each["ce_subject"]: each["causet_status"] for each in read(broker, "between-out")}
    assert there == {"answer": "flagged", "other": "delivered"}
    assert not read(broker, "between-out-diverted")


def test_where_a_checkpoint_is_if_none_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert default_checkpoint("deliver", "in", "out/rows") == Path("out/rows/_checkpoint")
    asked = [
        ("deliver", "in", "kafka://h:1/out"),
        ("merge", "in", "kafka://h:1/out"),
        ("deliver", "other", "kafka://h:1/out"),
        ("deliver", "in", "kafka://h:2/out"),
    ]
    found = [default_checkpoint(*each) for each in asked]
    assert len(set(found)) == 4 and found == [default_checkpoint(*each) for each in asked]
    assert all(each.parent == tmp_path / "causet" for each in found)
    assert found[0].name.startswith("deliver-out-") and found[1].name.startswith("merge-out-")
    monkeypatch.setenv("XDG_STATE_HOME", "not/absolute")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert default_checkpoint(*asked[0]).parent == tmp_path / "home/.local/state/causet"


@pytest.mark.jvm
def test_a_first_start_that_is_refused_leaves_no_checkpoint(tmp_path: Path) -> None:
    inbox = write_files(tmp_path / "in", [{"source": "a", "sequence": "1", "causaldeps": "{}"}], 1)
    (tmp_path / "mine").mkdir()
    for place in ("mine", "new/state"):
        command = ["deliver", inbox, tmp_path / "out", "--missing", "wait", "--by", "who", *SMALL]
        with pytest.raises(BadInput, match='need a column "who"'):
            causet(*command, "--checkpoint", tmp_path / place)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["in", "mine"]
    assert not any((tmp_path / "mine").iterdir())


# ---------------------------------------------------------------- books


@pytest.mark.jvm
def test_books_that_do_not_balance_are_said_and_end_with_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    inbox = write_files(tmp_path / "in", [{"source": "a", "sequence": "1", "causaldeps": "{}"}], 1)
    monkeypatch.setattr("causet.spark.streams.deliver.how_many_held", lambda *_: 3)
    with pytest.raises(BadInput, match=r"held before 0 \+ read 1 ≠ delivered 1 \+ held 3"):
        causet("deliver", inbox, tmp_path / "out", "--missing", "wait", *SMALL)


def test_every_batch_is_counted_once_however_few_spark_remembers(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [{"source": "a", "sequence": str(n), "causaldeps": "{}"} for n in range(1, 6)]
    inbox = write_files(tmp_path / "in", lines, 1)
    monkeypatch.setattr("causet.spark.streams.running.LOOK", 300)
    before = spark.conf.get("spark.sql.streaming.numRecentProgressUpdates")
    spark.conf.set("spark.sql.streaming.numRecentProgressUpdates", "2")
    try:
        found = told("deliver", inbox, tmp_path / "out", "--missing", "wait", *SMALL)
    finally:
        spark.conf.set("spark.sql.streaming.numRecentProgressUpdates", before or "100")
    assert (found["messages"], found["delivered"]) == (5, 5) and found["books"]["balance"]


# ---------------------------------------------------------------- files that cannot be read


def damaged(folder: Path) -> Path:
    """Three files, the second one of no use."""
    for number in (1, 2, 3):
        write_parquet(folder, [{"source": "a", "sequence": number, "causaldeps": "{}"}], 1)
    bad = sorted(folder.iterdir())[1]
    bad.write_bytes(b"PAR1 what was a file PAR1")
    write_parquet(folder, [{"source": "b", "sequence": 1, "causaldeps": "{}"}], 1)
    for number, file in enumerate(sorted(folder.iterdir())):
        os.utime(file, (1_700_000_000 + number,) * 2)  # streams take the oldest file first
    return bad


@pytest.mark.jvm
def test_a_file_that_cannot_be_read_is_named_once_and_the_rest_goes_on(tmp_path: Path) -> None:
    bad = damaged(tmp_path / "in")
    command = ["deliver", tmp_path / "in", tmp_path / "out", "--missing", "wait", *SMALL]
    found = told(*command)
    assert (found["messages"], found["delivered"], found["held"]) == (3, 2, 1)
    assert found["unreadable_files"] == 1 and found["diverted"] == 0 and found["books"]["balance"]
    (row,) = rows_in(tmp_path / "out-diverted")
    assert row["status"] == "diverted" and row["problem"].startswith(f"{bad} cannot be read: ")
    assert row["source"] is None and row["index"] is None
    found = told(*command)
    assert (found["messages"], found["unreadable_files"]) == (0, 0)
    assert len(rows_in(tmp_path / "out-diverted")) == 1


@pytest.mark.jvm
def test_a_batch_that_is_run_again_uses_the_verdict_though_the_file_is_gone(tmp_path: Path) -> None:
    bad = damaged(tmp_path / "in")
    command = ["deliver", tmp_path / "in", tmp_path / "out", "--missing", "wait", *SMALL]
    with pytest.MonkeyPatch.context() as patch:
        dies_after_writing(patch, lambda *_: bool(rows_in(tmp_path / "out-diverted")))
        with pytest.raises(BadInput, match=r"^the run ends here$"):
            causet(*command)
    written = bytes_in(tmp_path / "out-diverted")
    assert written
    bad.unlink()
    found = told(*command)
    assert found["unreadable_files"] == 1 and found["books"]["balance"]
    assert bytes_in(tmp_path / "out-diverted") == written
    assert [row["source"] for row in rows_in(tmp_path / "out")] == ["a", "b"]


@pytest.mark.jvm
def test_a_verdict_is_written_down_before_its_batch_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = damaged(tmp_path / "in")
    seen: list[dict[str, str]] = []
    run = vars(querying)["run"]

    def noted(*arguments: Any, **named: Any) -> None:
        if named.get("alone"):
            kept = arguments[2]
            seen.append(kept.verdicts(kept.pending()))
        run(*arguments, **named)

    monkeypatch.setattr(querying, "run", noted)
    causet("deliver", tmp_path / "in", tmp_path / "out", "--missing", "wait", *SMALL)
    assert [list(each) for each in seen] == [[str(bad)]]


@pytest.mark.jvm
@pytest.mark.parametrize("taken_away", [False, pytest.param(True, marks=pytest.mark.soak)])
def test_strict_stops_at_a_file_that_cannot_be_read_until_it_is_taken_away(
    tmp_path: Path, taken_away: bool
) -> None:
    bad = damaged(tmp_path / "in")
    command = ["deliver", tmp_path / "in", tmp_path / "out", "--missing", "wait", *SMALL]
    for _ in range(2 if taken_away else 1):
        with pytest.raises(BadInput, match=r"00001\.parquet cannot be read: .* run without --strict"):
            causet(*command, "--strict")
    if taken_away:
        bad.unlink()
        command.append("--strict")
    found = told(*command)
    assert (found["delivered"], found["unreadable_files"]) == (1, 0 if taken_away else 1)


# ---------------------------------------------------------------- what is in a checkpoint


def test_the_batch_that_was_planned_and_not_committed(tmp_path: Path) -> None:
    kept = Checkpoint(tmp_path)
    for name in ("offsets", "commits"):
        (kept.spark / name).mkdir(parents=True)
    assert kept.pending() is None
    for number in (8, 9, 10):
        (kept.spark / f"offsets/{number}").touch()
    (kept.spark / "offsets/.11.crc").touch()
    assert kept.pending() == 10
    (kept.spark / "commits/9").touch()
    assert kept.pending() == 10
    (kept.spark / "commits/10").touch()
    assert kept.pending() is None


def test_verdicts_and_ends_of_batches_that_are_committed_go(tmp_path: Path) -> None:
    kept = Checkpoint(tmp_path)
    for name in ("offsets", "commits"):
        (kept.spark / name).mkdir(parents=True)
    for moment in (9, 10, 11):
        kept.end(moment)
    kept.judge(3, {"a": "is cut"})
    kept.judge(4, {"b": "is cut"}, left_out=False)
    assert (kept.verdicts(3), kept.verdicts(4), kept.verdicts(5)) == ({"a": "is cut"}, {}, {})
    (kept.spark / "offsets/4").touch()
    (kept.spark / "commits/3").touch()
    kept.prune()
    assert len(list(kept.ends.iterdir())) == 3, "a batch that is run again reads what it read"
    (kept.spark / "commits/4").touch()
    kept.judge(5, {"c": "is cut"})
    kept.prune()
    assert [each.name for each in kept.ends.iterdir()] == ["11.json"]
    assert [each.name for each in (tmp_path / "verdicts").iterdir()] == ["5.json"]

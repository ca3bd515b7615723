"""`causet deliver`, `merge`, `tune` and `explain --checkpoint` as commands, and what is left when one is
killed."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from causet.cli.shared.spark import for_streams
from causet.stamp import sequence_of
from tests.helpers.clocked import Network
from tests.helpers.commands import (
    CAUSET,
    LOCAL,
    causet,
    causet_alone,
    check_rows,
    processes_below,
    refused,
    rows_in,
)
from tests.helpers.streams import Streams, write_files, write_parquet

pytestmark = pytest.mark.jvm  # nearly all of these run a query, by a command


def test_deliver_in_two_runs_with_bad_lines_and_what_is_held_explained(tmp_path: Path) -> None:
    streams = Streams(seed=700, runs=5, most=400)
    messages = streams.damaged(7, loss=0)
    # One that others wait for is kept back: the first of a source that has sent several.
    several = {(each["receiver"], each["source"]) for each in messages if sequence_of(each) > 1}
    back = next(
        each for each in messages if sequence_of(each) == 1 and (each["receiver"], each["source"]) in several
    )
    first = [each for each in messages if (each["receiver"], each["id"]) != (back["receiver"], back["id"])]
    inbox = write_files(tmp_path / "inbox", first, 200)
    (inbox / "bad.jsonl").write_text('{"source": "x", "sequence"\n[1, 2]\n')
    command = ["deliver", inbox, tmp_path / "out", "--missing", "wait", "--by", "receiver"]
    command += ["--checkpoint", tmp_path / "state", "--buckets", 4, *LOCAL, "--json"]
    told = json.loads(causet(*command))
    assert told["held"] > 0 and told["refused"] == 2
    assert told["delivered"] + told["duplicates"] + told["held"] + told["refused"] == told["messages"]
    assert told["blocked"].startswith(f"{back['source']}:{sequence_of(back)}")
    aside = rows_in(tmp_path / "out-diverted")
    bad = inbox / "bad.jsonl"
    assert [row["problem"] for row in aside] == [
        f"is not JSON ({bad})",
        f"is a JSON array, not an object ({bad})",
    ]

    why = json.loads(causet("explain", "--checkpoint", tmp_path / "state", "--json", "--nearest", 1000))
    assert why["held"] == told["held"] == len(why["messages"])
    blocking = {wait["message"] for each in why["messages"] for wait in each["waits_for"] if not wait["held"]}
    assert f"{back['source']}:{sequence_of(back)}" in blocking
    one = causet("explain", "--checkpoint", tmp_path / "state", why["messages"][0]["message"])
    assert "waits for" in one

    write_files(tmp_path / "late", [back], 1)
    (tmp_path / "late/00000.jsonl").rename(inbox / "late.jsonl")
    told = json.loads(causet(*command))
    assert told["held"] == 0 and told["messages"] == 1
    check_rows(rows_in(tmp_path / "out"), messages, streams)


def test_the_share_of_messages_that_name_a_parent_is_told(tmp_path: Path) -> None:
    lines: list[dict[str, Any]] = [
        {"id": "answer", "causationid": "question"},
        {"id": "question", "causationid": None},
        {"id": "else", "causationid": None},
        {"id": "thanks", "causationid": "answer"},
    ]
    inbox = write_files(tmp_path / "inbox", lines, 10)
    command = ["deliver", inbox, tmp_path / "out", "--missing", "wait", "--parent", "causationid", "--json"]
    told = json.loads(causet(*command, "--buckets", 2))
    assert (told["delivered"], told["with_parent"]) == (4, 0.5)
    order = [row["id"] for row in rows_in(tmp_path / "out")]
    assert order.index("question") < order.index("answer") < order.index("thanks")


def test_deliver_flags_at_the_end_of_the_input(tmp_path: Path) -> None:
    lines = [
        {"source": "b", "sequence": "1", "causaldeps": '{"a":1}', "subject": "answer"},
        {"source": "c", "sequence": "1", "causaldeps": "{}", "subject": "else"},
    ]
    inbox = write_files(tmp_path / "inbox", lines, 10)
    told = causet(
        "deliver",
        inbox,
        tmp_path / "out",
        "--missing",
        "flag",
        "--patience",
        "1h",
        "--format",
        "parquet",
        *LOCAL,
    )
    assert "messages 2, delivered 1, flagged 1" in told
    rows = {row["subject"]: row for row in rows_in(tmp_path / "out")}
    assert rows["answer"]["status"] == "flagged" and dict(rows["answer"]["missing"]) == {"a": 1}
    assert rows["else"]["status"] == "delivered" and rows["else"]["receiver"] == "all"


def test_merge_and_tune(tmp_path: Path) -> None:
    network = Network(9, messages=300)
    inbox = write_files(tmp_path / "inbox", network.messages, 300)
    theirs = ", ".join(sorted(network.messages[0]))
    said = refused("tune", inbox, "--arrival", "nix", *LOCAL)
    assert f'there is no column "nix"; there are {theirs}\n' in said, "and none that only we read"
    said = refused("deliver", inbox, tmp_path / "none", "--missing", "wait", "--by", "nix", *LOCAL)
    assert f'messages need a column "nix"; there are {theirs}\n' in said
    told = json.loads(causet("tune", inbox, "--levels", "3", *LOCAL, "--json"))
    assert told["messages"] == 300 and told["sources"] == 6 and told["trade"][-1]["late"] == 0
    epsilon, delta = told["epsilon"], told["delta"]
    assert told["levels"] == [
        {"level": level, "epsilon": epsilon, "delta": round(delta + (level - 1) * (3 * epsilon + 0.001), 3)}
        for level in (1, 2, 3)
    ]
    one_by_one = write_files(tmp_path / "batches", [*network.messages, *network.beats], 60)
    settings = ["--epsilon", f"{told['epsilon']}ms", "--delta", f"{told['delta']}ms"]
    settings += ["--buckets", "4", "--files-per-batch", "1"]
    found = json.loads(causet("merge", one_by_one, tmp_path / "out", *settings, *LOCAL, "--json"))
    assert (found["delivered"], found["late"], found["held"]) == (300, 0, len(network.beats))
    assert [row["subject"] for row in rows_in(tmp_path / "out")] == network.expected()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["deliver", "nowhere", "out", "--missing", "wait"], "nowhere: there is no such file or folder"),
        (["deliver", "empty", "out", "--missing", "wait"], "there is no .jsonl or .parquet file in it"),
        (
            ["deliver", "nothing.jsonl", "out", "--missing", "wait"],
            "nothing.jsonl: there is no message in it",
        ),
        (["tune", "picture.jsonl"], "picture.jsonl: there is no message in it"),
        (["deliver", "trace.jsonl", "out", "--missing", "wait"], "trace.jsonl is a trace; `causet convert"),
        (["deliver", "in", "full", "--missing", "wait"], "full is not empty, and this is a new query"),
        (["deliver", "in", "out", "--missing", "flag"], "flag needs a patience"),
        (["deliver", "in", "out", "--missing", "wait", "--by", "who"], 'need a column "who"'),
        (["deliver", "in", "out", "--missing", "wait", "--checkpoint", "newer"], "checkpoint of version 99"),
        (
            ["deliver", "in", "out", "--missing", "wait", "--checkpoint", "merge"],
            "checkpoint of causet merge",
        ),
        (["merge", "in", "out", "--epsilon", "1s", "--delta", "soon"], 'delta = "soon"'),
        (["merge", "in", "out", "--epsilon", "1s", "--delta", "1s"], 'no "causaltime" in'),
        (["explain", "--checkpoint", "in"], "in is not a checkpoint of causet deliver or merge"),
    ],
)
def test_bad_input_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("empty", "full", "newer", "merge"):
        (tmp_path / name).mkdir()
    (tmp_path / "full/rows.jsonl").write_text("{}\n")
    (tmp_path / "newer/causet.json").write_text('{"version": 99}')
    (tmp_path / "merge/name").write_text("a")
    (tmp_path / "merge/causet.json").write_text('{"version": 2, "command": "merge", "fixed": {}}')
    (tmp_path / "nothing.jsonl").touch()
    (tmp_path / "picture.jsonl").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\n")
    (tmp_path / "trace.jsonl").write_text('{"process": "p1", "seq": 1, "kind": "local"}\n')
    write_files(tmp_path / "in", [{"source": "a", "sequence": "1", "causaldeps": "{}"}], 1)
    (line,) = refused(*arguments).strip().splitlines()
    assert line.startswith("causet: ") and said in line
    assert not (tmp_path / "out").exists() and not (tmp_path / "out-diverted").exists()


@pytest.mark.parametrize("missing", [["--missing", "flag"], ["--missing", "wait", "--by", "who"]])
def test_bad_input_ends_a_process_with_2_and_nothing_but_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: list[str]
) -> None:
    """The first is refused before Spark starts, the second after."""
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path / "in", [{"source": "a", "sequence": "1", "causaldeps": "{}"}], 1)
    told = causet_alone("deliver", "in", "out", *missing, *LOCAL, code=2)
    assert told.startswith("causet: ") and told.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_numbers_of_several_receivers_taken_for_copies_are_told(tmp_path: Path) -> None:
    lines = [{"source": "a", "sequence": "1", "causaldeps": "{}", "receiver": name} for name in ("r", "s")]
    inbox = write_files(tmp_path / "inbox", lines, 10)
    told = causet("deliver", inbox, tmp_path / "out", "--missing", "wait", "--buckets", 2)
    assert "conflicts 1" in told and "if numbers count for each receiver, use --by receiver" in told
    told = causet("deliver", inbox, tmp_path / "all", "--missing", "wait", "--by", "receiver", "--buckets", 2)
    assert "delivered 2" in told and "--by" not in told


# ---------------------------------------------------------------- killed

JOB = """
import os, signal, sys
from pathlib import Path
from causet.spark.streams.file_sink import FileSink
from causet.cli import main
flag = Path(sys.argv.pop(1))
batch_to_die_in = int(sys.argv.pop(1))
write = FileSink.write
def dies(self, rows, batch):
    write(self, rows, batch)
    if batch == batch_to_die_in and not flag.exists():
        flag.touch()
        os.kill(os.getpid(), signal.SIGKILL)
FileSink.write = dies
main()
"""


def test_killed_between_writing_and_committing_everything_is_there_once(tmp_path: Path) -> None:
    """The driver is killed when the rows of a batch are written and Spark does not know it yet."""
    streams = Streams(seed=800, runs=3, most=150)
    messages = streams.damaged(8, loss=0)
    inbox = write_parquet(tmp_path / "inbox", messages, 40)
    command = ["deliver", str(inbox), str(tmp_path / "out"), "--missing", "wait", "--by", "receiver"]
    command += ["--checkpoint", str(tmp_path / "state"), "--buckets", "4", "--files-per-batch", "1"]
    command += ["--format", "parquet", *LOCAL]
    job = [sys.executable, "-c", JOB, str(tmp_path / "died"), "1", *command]
    assert subprocess.run(job, capture_output=True, timeout=300, check=False).returncode == -signal.SIGKILL
    before = {file.name: file.read_bytes() for file in (tmp_path / "out").glob("batch-0000000001-*")}
    assert before, "the batch was written"
    causet(*command)
    after = {file.name: file.read_bytes() for file in (tmp_path / "out").glob("batch-0000000001-*")}
    assert after == before, "run again, a batch gives the same rows"
    check_rows(rows_in(tmp_path / "out"), messages, streams)


def victims_below(pid: int, whom: str) -> list[int]:
    """The process itself, or those below it with these words in their command lines."""
    return [pid] if whom == "driver" else [below for below, words in processes_below(pid) if whom in words]


def run_until_done(
    command: Sequence[str],
    feed: Callable[[bool], None],
    whom: str,
    kills: int,
    draw: random.Random,
    longest: float,
) -> int:
    """Run a command, again and again, each time with something to do; the first times kill the driver, or
    some process below it, a random time after it is there. Says how many were killed."""
    killed = 0
    for _ in range(10 * kills + 10):
        last = killed >= kills
        feed(not last)
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            try:
                if not last:
                    end = None
                    while process.poll() is None:
                        victims = victims_below(process.pid, whom)
                        if victims and end is None:
                            end = time.monotonic() + draw.uniform(0, longest)
                        if victims and end is not None and time.monotonic() >= end:
                            os.kill(draw.choice(victims), signal.SIGKILL)
                            killed += 1
                            break
                        time.sleep(0.02)
                code = process.wait(300)
            finally:
                for pid, _ in processes_below(process.pid):
                    try:
                        os.kill(pid, signal.SIGKILL)
                    except ProcessLookupError:
                        continue
        if code == 0 and last:
            return killed
    raise AssertionError(f"it never came to an end; {killed} were killed")


@pytest.mark.soak
def test_a_worker_killed_at_a_random_moment_everything_is_there_once(tmp_path: Path) -> None:
    check_kills(tmp_path, "pyspark.worker", "local[2]", kills=1, seed=900, most=30)


@pytest.mark.soak
@pytest.mark.parametrize(
    ("whom", "master", "kills"),
    [
        ("driver", "local[2]", 8),
        ("pyspark.worker", "local[2]", 6),
        ("CoarseGrainedExecutorBackend", "local-cluster[2,1,1024]", 6),
    ],
)
def test_killed_again_and_again_everything_is_there_once(
    tmp_path: Path, whom: str, master: str, kills: int
) -> None:
    check_kills(tmp_path, whom, master, kills, seed=1000)


def check_kills(tmp_path: Path, whom: str, master: str, kills: int, seed: int, most: int = 250) -> None:
    streams = Streams(seed=seed, runs=4, most=most)
    messages = streams.damaged(seed, loss=0)
    write = write_files if whom == "driver" else write_parquet
    later = sorted(write(tmp_path / "later", messages, 5).iterdir())
    inbox = tmp_path / "inbox"
    inbox.mkdir()

    def feed(few: bool) -> None:
        """Let more files come, a few or all: whoever is killed has something to do."""
        assert later or not few, "there is something left for everybody who is going to be killed"
        for file in later[: 3 if few else None]:
            later.remove(file)
            file.rename(inbox / file.name)

    command = [*CAUSET, "deliver", str(inbox), str(tmp_path / "out"), "--missing", "wait", "--by", "receiver"]
    command += ["--checkpoint", str(tmp_path / "state"), "--buckets", "4", "--files-per-batch", "1"]
    command += ["--format", "parquet", "--master", master, "--conf", "spark.sql.shuffle.partitions=2"]
    # A driver takes its time to start; whoever works for it is there when there is work.
    longest = 20.0 if whom == "driver" else 6.0
    assert run_until_done(command, feed, whom, kills, random.Random(seed), longest) == kills
    check_rows(rows_in(tmp_path / "out"), messages, streams)


def test_small_rows_are_counted_and_large_ones_weighed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To Python: a limit to bytes costs time with every row, and is there where rows are large, or many."""
    weighed = "spark.sql.execution.arrow.maxBytesPerBatch"

    def counted(source: str | Path) -> bool:
        return weighed in for_streams("local[2]", {}, 4, Path(source))

    small, large = {"text": "x" * 100}, {"text": "x" * 5_000}
    for number, rows in enumerate(([small], [large], [small, large])):
        write_files(tmp_path / str(number), rows * 100, 50)
        assert counted(tmp_path / str(number)) == (rows == [small])
    assert not counted("kafka://localhost:9092/orders")
    assert not counted(tmp_path / "nowhere")
    write_parquet(tmp_path / "parquet", [{"source": "a"}], 1)
    assert not counted(tmp_path / "parquet"), "blobs of many rows are all that comes from there"
    assert for_streams("local[2]", {weighed: "1m"}, 4, tmp_path / "0")[weighed] == "1m"
    monkeypatch.setattr("causet.cli.shared.spark.FEW_BYTES", 1000)
    assert not counted(tmp_path / "0")

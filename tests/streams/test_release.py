"""`merge --release clock`: a source that falls silent, without a heartbeat, holds no other one."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from causet import RcClock, Stamper
from causet.cli.shared.display import rows_of
from causet.cli.shared.streams import TicksCheck
from causet.errors import BadInput
from causet.spark import merge
from causet.spark.streams.checkpoint import Checkpoint
from causet.spark.streams.file_sink import FileSink
from causet.spark.streams.query import Asked, Query
from causet.spark.streams.running import Progress
from tests.helpers.commands import LOCAL, causet, rows_in
from tests.helpers.kafka import create, publish
from tests.helpers.streams import write_files

pytestmark = pytest.mark.jvm

EPSILON, DELTA = 0.05, 1.0
HOW = ["--epsilon", f"{EPSILON}s", "--delta", f"{DELTA}s", "--buckets", "2"]
NOTICED = 10.0
"""Seconds in which an idle query notices that time has passed and plans a batch: 1.3, unless the machine is
busy with other tests."""


class Producers:
    """Two sources, of which one falls silent; each message is a file."""

    def __init__(self, inbox: Path) -> None:
        self.inbox = inbox
        inbox.mkdir()
        self.sources = {name: Stamper(name, clock=RcClock(1000 * EPSILON)) for name in "ab"}
        self.sent: dict[str, float] = {}

    def send(self, name: str) -> str:
        subject = f"{name}{len(self.sent)}"
        envelope = self.sources[name].stamp(None, subject=subject)
        beside = self.inbox / f".{subject}"
        beside.write_text(json.dumps(envelope) + "\n")
        beside.rename(self.inbox / f"{subject}.jsonl")
        self.sent[subject] = time.time()
        return subject


@contextmanager
def following(inbox: Path | str, out: Path, *more: str, before: str = "") -> Iterator[subprocess.Popen[str]]:
    program = ["-c", f"{before}\nfrom causet.cli import main; main()"]
    command = [sys.executable, *program, "merge", inbox, out, *HOW, "--release", "clock", "--json", *more]
    with subprocess.Popen(
        [*map(str, command), *LOCAL, "--follow"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def wait_for(out: Path, wanted: set[str], seconds: float, producers: Producers | None = None) -> None:
    """Wait until these are in the sink; meanwhile a source may go on sending."""
    began = time.monotonic()
    while not wanted <= {row.get("subject", row["id"]) for row in rows_in(out)}:
        assert time.monotonic() - began < seconds, f"only {len(rows_in(out))} of {len(wanted)} are there"
        if producers is not None:
            producers.send("a")
        time.sleep(0.3)


def check_waits(out: Path, subject: str, sent: float, most_batches: int) -> None:
    """A message left in one of so many batches that were planned after δ + 3ε and the batch that read it; and
    the first of these was planned at once, or when the one before it was finished. All of this is what the
    checkpoint says, however long batches take."""
    [file] = [file for file in out.glob("batch-*") if f'"{subject}"' in file.read_text()]
    left = int(re.findall(r"\d+", file.name)[0])
    kept = Checkpoint(out / "_checkpoint")
    planned = {
        int(each.name): json.loads(each.read_text().splitlines()[1])["batchTimestampMs"] / 1000
        for each in (kept.spark / "offsets").glob("[0-9]*")
    }
    finished = {int(each.name): each.stat().st_mtime for each in (kept.spark / "commits").glob("[0-9]*")}
    assert planned[left] > sent + DELTA + EPSILON, "not before it was due"
    due = sent + DELTA + 3 * EPSILON
    [read] = [
        batch for batch in planned if f"{subject}.jsonl" in (each.name for each in kept.files_of(batch))
    ]
    after = sorted(batch for batch, at in planned.items() if due < at and read < batch <= left)
    assert len(after) <= most_batches
    if after:
        assert planned[after[0]] < max(due, finished.get(after[0] - 1, 0)) + NOTICED


def check(rows: list[dict[str, Any]], sent: dict[str, float]) -> None:
    assert sorted(row["subject"] for row in rows) == sorted(sent), "each once"
    times = [tuple(map(int, row["causaltime"].split())) for row in rows]
    assert times == sorted(times)
    assert {row["status"] for row in rows} == {"delivered"}


def test_a_silent_source_holds_nobody_and_a_kill_changes_nothing(tmp_path: Path) -> None:
    producers, out = Producers(tmp_path / "in"), tmp_path / "out"
    producers.send("b")
    producers.send("a")
    with following(tmp_path / "in", out) as process:
        wait_for(out, set(producers.sent), 240)
        last = producers.send("a")  # idle otherwise: nothing comes any more
        wait_for(out, set(producers.sent), 120)
        check_waits(out, last, producers.sent[last], 1)
        first = set(producers.sent)
        last = producers.send("a")
        wait_for(out, {*first, last}, 120, producers)
        # One may be planned, for what has come, before it is known that this one waits.
        check_waits(out, last, producers.sent[last], 2)
        process.send_signal(signal.SIGKILL)
    before = {file.name: file.read_bytes() for file in out.glob("batch-*")}
    producers.send("a")
    with following(tmp_path / "in", out) as process:
        wait_for(out, set(producers.sent), 240)
        process.send_signal(signal.SIGINT)
        told = json.loads(process.communicate(timeout=120)[0])
    after = {file.name: file.read_bytes() for file in out.glob("batch-*")}
    committed = sorted(before)[:-1]  # the last one may not have been finished
    assert {name: after[name] for name in committed} == {name: before[name] for name in committed}
    check(rows_in(out), producers.sent)
    assert told["books"]["balance"] and told["late"] == told["held"] == 0


KILLED_AS_A_TIME_COUNTS = """
import os, signal
from causet.spark.streams.checkpoint import Checkpoint
keep = Checkpoint.keep_end
Checkpoint.keep_end = lambda self, now: (keep(self, now), os.kill(os.getpid(), signal.SIGKILL))
"""


def test_a_batch_that_was_killed_when_its_time_had_come_to_count_is_run_with_it(tmp_path: Path) -> None:
    """What comes after the kill stands between the messages that this batch releases, and so is late."""
    now = time.time_ns() // 1000

    def write(place: str, *messages: tuple[str, int]) -> Path:
        times = {name: now - 60_000_000 * minutes for name, minutes in messages}
        rows = [{"source": name, "sequence": 1, "rc": at, "r": at, "id": name} for name, at in times.items()]
        return write_files(tmp_path / place, rows, 9)

    inbox, out, silent = write("in", ("a", 60), ("b", 120)), tmp_path / "out", ("--expect", "silent")
    assert json.loads(causet("merge", inbox, out, *HOW, *silent, "--json"))["held"] == 2
    with following(inbox, out, *silent, before=KILLED_AS_A_TIME_COUNTS) as process:
        assert process.wait(240) == -signal.SIGKILL
    assert rows_in(out) == [], "it had not written anything"
    (write("new", ("c", 90)) / "00000.jsonl").rename(inbox / "later.jsonl")
    told = json.loads(causet("merge", inbox, out, *HOW, *silent, "--release", "clock", "--json"))
    order = [(row["id"], row["status"]) for row in rows_in(out)]
    assert order == [("b", "delivered"), ("a", "delivered"), ("c", "late")]
    assert told["books"]["balance"] and told["held"] == 0


def test_a_stream_of_ones_own_cannot_be_released_by_the_clock(spark: SparkSession, tmp_path: Path) -> None:
    messages = spark.readStream.schema("source string, sequence long, rc long, r long").json(str(tmp_path))
    transform = merge(epsilon=1, delta=1, release="clock")
    with pytest.raises(BadInput, match='release = "clock" cannot be had for a stream of your own'):
        messages.transform(transform)
    assert messages.transform(merge(epsilon=1, delta=1)).isStreaming
    still = spark.createDataFrame([("a", 1, 2, 2)], messages.schema)
    assert still.transform(transform).collect()[0].position == 0, "nothing releases a batch"


def test_a_batch_with_room_left_has_all_that_was_there(spark: SparkSession, tmp_path: Path) -> None:
    """Made of an older listing it would not: more had come by then, and a clock would count too early."""
    elsewhere, inbox = tmp_path / "elsewhere", tmp_path / "in"
    rows = [{"source": "a", "sequence": n, "rc": n, "r": n} for n in range(1, 6)]
    write_files(inbox, rows[:3], 1)
    write_files(elsewhere, rows[3:], 1)
    (inbox / "link").symlink_to(elsewhere)
    (inbox / "other.parquet").write_text("not of this query")
    with Checkpoint(tmp_path / "kept") as kept:
        transform = merge(epsilon=1, delta=1, release="clock")
        how = (str(inbox), str(tmp_path / "out"), transform, None, True, 3)
        query = Query(
            Asked(*how), kept, inbox, "jsonl", None, FileSink(tmp_path / "out", "jsonl"), None, None
        )
        reading, found = query.reading(), list[tuple[int, bool]]()

        def write(_: DataFrame, batch: int) -> None:
            if batch == 0:
                write_files(tmp_path / "new", [{"source": "a", "sequence": 9, "rc": 9, "r": 9}], 1)
                (tmp_path / "new/00000.jsonl").rename(inbox / "new.jsonl")
            found.append((len(kept.files_of(batch)), reading.reached_end(batch)))

        writer = query.messages(spark).rows.writeStream.option("checkpointLocation", f"file:{kept.spark}")
        running = writer.trigger(processingTime="100 milliseconds").foreachBatch(write).start()
        began = time.monotonic()
        while not reading.all_planned() and time.monotonic() - began < 120:
            time.sleep(0.1)
        running.processAllAvailable()
        running.stop()
        assert reading.all_planned()
    assert found == [(3, False), (3, False)], "with what is below a link, and what came meanwhile"


def test_a_run_that_does_not_follow_releases_what_its_clock_has_passed(tmp_path: Path) -> None:
    now = time.time_ns() // 1000
    old = [{"source": name, "sequence": n, "rc": n, "r": n} for n, name in enumerate("aaba", 1)]
    new = [{"source": "b", "sequence": 9, "rc": now, "r": now}]
    inbox = write_files(tmp_path / "in", [*old, *new], 2)
    command = ["merge", inbox, tmp_path / "out", "--epsilon", "50ms", "--delta", "10m", "--buckets", "2"]
    told = json.loads(causet(*command, "--json"))
    assert (told["delivered"], told["held"], told["waits_for"]) == (0, 5, "a")
    told = json.loads(causet(*command, "--json", "--release", "clock"))
    assert (told["delivered"], told["held"], told["waits_for"]) == (4, 1, None)
    assert [row["rc"] for row in rows_in(tmp_path / "out")] == [1, 2, 3, 4]
    write_files(tmp_path / "more", [{"source": "a", "sequence": 9, "rc": 3, "r": 3}], 1)
    (tmp_path / "more/00000.jsonl").rename(inbox / "more.jsonl")
    told = json.loads(causet(*command, "--json", "--release", "clock"))
    assert (told["late"], told["held"]) == (1, 1) and told["books"]["balance"]


@pytest.mark.soak
def test_two_levels_by_commands_with_a_source_that_only_beats(tmp_path: Path) -> None:
    """All messages leave the top, in the order of one merger that reads everything."""
    now = [1_700_000_000_000_000]
    clocks = {name: RcClock(50, lambda: now[0], None) for name in "abq"}
    sources = {name: Stamper(name, clock=clock) for name, clock in clocks.items()}
    sent: dict[str, list[dict[str, Any]]] = {"left": [], "right": []}
    for number in range(40):
        now[0] += 100_000
        name = "ab"[number % 3 % 2]
        sent["left" if name == "a" else "right"].append(
            sources[name].stamp(None, subject=f"{name}{number:02}")
        )
        sent["right"].append(sources["q"].heartbeat())
    for _ in range(8):
        now[0] += 1_000_000
        for name, stamper in sources.items():
            sent["left" if name == "a" else "right"].append(stamper.heartbeat())
    for name, rows in sent.items():
        write_files(tmp_path / name, rows, 100)
    write_files(tmp_path / "flat", [*sent["right"], *sent["left"]], 200)

    def merged(source: str, sink: str, delta: str) -> list[dict[str, Any]]:
        how = ["--epsilon", "50ms", "--delta", delta, "--buckets", "2", "--expect", "a", "--expect", "q"]
        how = how if source in ("middle", "flat") else how[:-4]
        told = json.loads(causet("merge", tmp_path / source, tmp_path / sink, *how, "--json"))
        assert told["books"]["balance"] and told["late"] == told["diverted"] == 0
        return rows_in(tmp_path / sink)

    for name in sent:
        assert {row["status"] for row in merged(name, f"middle/{name}", "400ms")} <= {
            "delivered",
            "heartbeat",
        }
    top = merged("middle", "top", "550.001ms")
    flat = merged("flat", "one", "400ms")
    orders = [[row["subject"] for row in rows if row["status"] == "delivered"] for rows in (top, flat)]
    assert orders[0] == orders[1] and len(orders[0]) == 40
    assert {row["source"] for row in top if row["status"] == "heartbeat"} == set("abq")


@pytest.mark.soak
def test_a_topic_is_followed_by_the_clock(broker: str, tmp_path: Path) -> None:
    producers = Producers(tmp_path / "in")
    create(broker, "live")
    place, out = f"kafka://{broker}/live", tmp_path / "out"
    with following(place, out) as process:
        for names in ("ba", "aa"):  # b is silent from then on
            envelopes = [
                producers.sources[name].stamp(None, id=f"{name}{names}{number}")
                for number, name in enumerate(names)
            ]
            publish(broker, "live", envelopes, tmp_path)
            producers.sent.update(dict.fromkeys((each["id"] for each in envelopes), 0.0))
            wait_for(out, set(producers.sent), 240)
        process.send_signal(signal.SIGINT)
        told = json.loads(process.communicate(timeout=120)[0])
    assert (told["delivered"], told["held"], told["late"]) == (4, 0, 0) and told["books"]["balance"]


def test_a_table_in_milliseconds_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    warned: list[str] = []
    monkeypatch.setattr("causet.cli.shared.streams.warn", warned.append)
    at = 1_700_000_000_000
    inbox = write_files(tmp_path / "in", [{"source": "a", "sequence": 1, "rc": at, "r": at}], 1)
    command = ["merge", inbox, tmp_path / "out", "--epsilon", "50ms", "--delta", "1s", "--buckets", "2"]
    causet(*command)
    causet("tune", inbox)
    assert len(warned) == 2 and all(f"(one is {at}): if they are, use --ticks ms" in e for e in warned)
    causet("tune", inbox, "--ticks", "ms")
    assert len(warned) == 2


def test_while_a_stream_is_followed_it_is_noticed_too(monkeypatch: pytest.MonkeyPatch) -> None:
    warned: list[str] = []
    monkeypatch.setattr("causet.cli.shared.streams.warn", warned.append)
    at = 1_700_000_000_000
    in_us, in_ms = TicksCheck("us"), TicksCheck("ms")
    for oldest, bound in ((None, None), (1000 * at, None), (None, str(1000 * at))):
        in_us.watch(Progress(oldest=oldest, bound=bound))
    assert warned == [], "these are in µs"
    in_ms.watch(Progress(oldest=at))
    assert warned == [], "this was said to be in ms"
    in_us.watch(Progress(bound=str(at)))
    in_us.watch(Progress(oldest=at + 1))
    assert warned == [f"the times look like milliseconds (one is {at}): if they are, use --ticks ms"], "once"
    TicksCheck("us").watch(Progress(oldest=at))
    assert len(warned) == 2


def test_a_display_tells_how_long_the_oldest_waits_by_the_unit_of_its_time() -> None:
    now = 1_700_000_000
    for per_ms, time_of_oldest in ((1, 1000 * (now - 90)), (1000, 1_000_000 * (now - 90))):
        progress = Progress(held=1, oldest=time_of_oldest, per_ms=per_ms)
        assert dict(rows_of(progress, now))["oldest waits"] == "90 s"
        progress.blocked, progress.bound = "b", "7"
        rows = dict(rows_of(progress, now))
        assert (rows["oldest waits"], rows["released up to"]) == ("90 s for b", "7 µs")

"""The clock that releases: a time counts once everything that had come by then is in a planned batch."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

from causet.errors import BadInput
from causet.spark.streams import ticks as module
from causet.spark.streams.checkpoint import Checkpoint
from causet.spark.streams.file_source import inputs
from causet.spark.streams.merge.packers import Counted
from causet.spark.streams.ticks import FileReading, Ticks, TopicReading

WAIT = 30_000
"""δ + ε, in µs."""


class Plan:
    """A folder of files and what Spark writes down about batches of them."""

    def __init__(self, home: Path, per_batch: int = 3) -> None:
        self.inbox, self.kept, self.per_batch = home / "inbox", Checkpoint(home / "kept"), per_batch
        self.inbox.mkdir()
        for name in ("offsets", "commits", "sources/0"):
            (self.kept.spark / name).mkdir(parents=True)
        self.arrived: dict[str, int] = {}
        self.taken: set[str] = set()
        self.batch = -1
        self.now, self.held, self.oldest = 1000, 1, 0
        self.ticks = self.started()
        self.ticks.begin()

    def started(self) -> Ticks:
        reading = FileReading(self.inbox, "jsonl", self.kept, self.per_batch)
        return Ticks(reading, self.kept, WAIT, lambda: (self.held, self.oldest), lambda: self.now)

    def arrive(self) -> None:
        name = f"m {len(self.arrived)} ä%.jsonl"
        (self.inbox / name).write_text("{}\n")
        self.arrived[name] = self.now

    def plan(self) -> None:
        """Spark lists the folder, and takes the files that are the oldest."""
        new = [name for name in self.arrived if name not in self.taken][: self.per_batch]
        if not new:
            return
        self.batch += 1
        self.taken.update(new)
        entries = [{"path": (self.inbox.resolve() / name).as_uri(), "batchId": self.batch} for name in new]
        log = "\n".join(["v1", *map(json.dumps, entries)])
        (self.kept.spark / f"sources/0/{self.batch}").write_text(log, encoding="utf-8")
        (self.kept.spark / f"offsets/{self.batch}").write_text(f'v1\n{{}}\n{{"logOffset":{self.batch}}}')

        self.ticks.batch_planned(self.batch)

    def written(self) -> list[int]:
        return sorted(int(each.stem) for each in self.kept.ends.glob("[0-9]*.json"))

    def shown(self) -> list[int]:
        """The times that count, by the rows that Spark would read."""
        return [int(ended.as_py()) for ended in self.counted() if ended.is_valid]

    def counted(self) -> pa.Array:
        rows = [json.loads((self.kept.ends / f"{each}.json").read_text()) for each in self.written()]
        kinds = pa.schema([("ended", pa.int64()), ("promised", pa.bool_())])
        [batch] = Counted(self.kept.ends)(iter([pa.RecordBatch.from_pylist(rows, kinds)]))
        return batch.column(0)


def test_a_time_counts_when_everything_that_is_there_is_planned(tmp_path: Path) -> None:
    plan = Plan(tmp_path)
    assert plan.written() == [1000] and plan.shown() == [], "promised to the first batch"
    plan.now += 600
    plan.arrive()
    plan.ticks.look()
    assert plan.shown() == [], "a file is there that no batch has"
    plan.plan()
    assert plan.shown() == [1000], "that batch reaches the end"
    plan.ticks.look()
    assert plan.shown() == [1000, 1600]


def test_a_backlog_does_not_become_late(tmp_path: Path) -> None:
    plan = Plan(tmp_path)
    for _ in range(7):
        plan.arrive()
    for _ in range(2):  # batches of 3, and one file is left
        plan.plan()
        plan.now += 2000
        plan.ticks.batch_written(plan.batch)
        assert plan.shown() == []
    began = plan.now
    plan.now += 10
    plan.plan()
    assert plan.shown() == [began], "it counts in the very batch that reaches the end"
    plan.arrive()  # while that batch runs: so the time of now does not count
    plan.now += 2000
    plan.ticks.batch_written(plan.batch)
    plan.ticks.look()
    assert plan.shown() == [began]


def test_a_promise_that_no_batch_took_up_never_counts(tmp_path: Path) -> None:
    """The run is killed after it was written; the next run plans a batch that reads it."""
    plan = Plan(tmp_path)
    plan.arrive()
    plan.ticks = plan.started()
    plan.now += 10
    plan.plan()
    assert plan.written() == [1000] and plan.shown() == []


def test_nothing_is_written_that_releases_nothing(tmp_path: Path) -> None:
    plan = Plan(tmp_path)
    plan.kept.forget_end(1000)
    plan.ticks = plan.started()
    plan.held = 0
    plan.ticks.begin()
    plan.ticks.look()
    plan.held, plan.oldest = 1, 1000 * plan.now - WAIT
    plan.ticks.look()
    assert plan.shown() == [], "a message leaves when the clock exceeds its time, not when it reaches it"
    plan.oldest -= 1
    plan.ticks.look()
    assert plan.shown() == [1000]
    plan.arrive()
    plan.plan()
    plan.now += module.AT_LEAST - 1
    plan.ticks.look()
    assert plan.shown() == [1000], "not so soon again"
    plan.now += 1
    plan.ticks.look()
    assert plan.shown() == [1000, 1000 + module.AT_LEAST]
    plan.now += module.AT_LEAST
    plan.ticks.look()
    assert plan.shown() == [1000, 1000 + module.AT_LEAST], "nor before a batch can have read the last one"


def test_while_a_batch_runs_one_time_is_written_down_and_one_is_promised_as_it_ends(tmp_path: Path) -> None:
    plan = Plan(tmp_path)
    plan.arrive()
    plan.plan()
    for _ in range(20):
        plan.now += module.AT_LEAST
        plan.ticks.look()
    assert plan.written() == [1000, 1500], "the next batch reads it, and there is none yet"
    plan.arrive()
    plan.ticks.batch_written(plan.batch)
    ended = plan.now
    assert plan.written() == [1000, 1500, ended] and plan.shown() == [1000, 1500]
    for _ in range(20):
        plan.now += module.AT_LEAST
        plan.ticks.look()
    plan.plan()
    assert plan.written() == [1000, 1500, ended] and plan.shown() == [1000, 1500, ended]


def test_times_that_were_read_are_removed(tmp_path: Path) -> None:
    plan = Plan(tmp_path)
    for _ in range(20):
        plan.arrive()
        plan.plan()
        plan.now += 1000
        plan.ticks.batch_written(plan.batch)
        assert 1 <= len(plan.written()) <= module.KEPT + 2
    assert len(list(plan.kept.ends.iterdir())) <= 2 * (module.KEPT + 2), "what says that they count goes too"


@pytest.mark.parametrize("seed", range(20))
def test_no_time_counts_before_what_had_come_by_then_is_planned(tmp_path: Path, seed: int) -> None:
    plan, draw, found = Plan(tmp_path, per_batch=2), Random(seed), set[int]()
    for _ in range(120):
        plan.now += draw.choice([0, 1, 600])
        step = draw.random()
        if step < 0.25:
            plan.arrive()
        elif step < 0.65:
            plan.plan()
            plan.now += draw.choice([0, 700])
            if draw.random() < 0.5:
                plan.arrive()
            if plan.batch >= 0:
                plan.ticks.batch_written(plan.batch)
        else:
            plan.ticks.look()
        for shown in set(plan.shown()) - found:
            waiting = [at for name, at in plan.arrived.items() if name not in plan.taken]
            assert all(at >= shown for at in waiting)
            found.add(shown)
    assert found


def test_only_files_that_the_query_reads_are_waited_for(tmp_path: Path) -> None:
    plan = Plan(tmp_path)
    plan.arrive()
    plan.plan()
    others = ["table.parquet", "half.jsonl.part", "_half.jsonl", ".half.jsonl", "notes.txt", "_new/m.jsonl"]
    for name in others:
        (plan.inbox / name).parent.mkdir(exist_ok=True)
        (plan.inbox / name).write_text("{}\n")
    (plan.inbox / "gone.jsonl").symlink_to(tmp_path / "nothing")
    plan.now += module.AT_LEAST
    plan.ticks.look()
    assert plan.shown() == [1000, 1500]


def test_files_below_links_to_folders_are_waited_for(tmp_path: Path) -> None:
    plan = Plan(tmp_path)
    plan.arrive()
    plan.plan()
    (tmp_path / "elsewhere/deep").mkdir(parents=True)
    (plan.inbox / "link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere/deep/m.jsonl").write_text("{}\n")
    plan.now += module.AT_LEAST
    plan.ticks.look()
    assert plan.shown() == [1000], "Spark reads that file, and no batch has it"
    plan.arrived["link/deep/m.jsonl"] = plan.now
    plan.plan()
    plan.ticks.look()
    assert plan.shown() == [1000, 1500]


@pytest.mark.parametrize(("place", "target"), [("a", "."), ("deep/a", "deep"), ("a", "..")])
def test_a_link_that_leads_back_is_refused(tmp_path: Path, place: str, target: str) -> None:
    (tmp_path / "in/deep").mkdir(parents=True)
    (tmp_path / "in" / place).symlink_to((tmp_path / "in" / target).resolve())
    with pytest.raises(BadInput, match=r"in/.*a is a link to a folder that it is in itself; remove it"):
        inputs(tmp_path / "in")


def test_two_links_that_lead_to_each_other_are_refused(tmp_path: Path) -> None:
    for one, other in (("a", "b"), ("b", "a")):
        (tmp_path / one).mkdir()
        (tmp_path / one / "link").symlink_to(tmp_path / other)
    with pytest.raises(BadInput, match="is a link to a folder that it is in itself"):
        inputs(tmp_path / "a")


class Topics:
    """A broker, as far as it is asked here."""

    per_batch = 100

    def __init__(self) -> None:
        self.highs: dict[str, object] = {"t:0": 5, "t:1": 7, "t": "an id"}

    def reportLatestOffset(self) -> dict[str, object]:
        return self.highs


def test_topics_are_read_up_to_their_last_offsets(tmp_path: Path) -> None:
    kept = Checkpoint(tmp_path)
    (kept.spark / "offsets").mkdir(parents=True)
    topics = Topics()
    reading = TopicReading(topics, kept)  # type: ignore[arg-type]

    def plan(batch: int, id: str = "an id", **ends: int) -> None:
        offsets = json.dumps({**{f"t:{name[1:]}": end for name, end in ends.items()}, "t": id})
        (kept.spark / f"offsets/{batch}").write_text(f"v1\n{{}}\n{offsets}\n-")

    assert not reading.all_planned()
    plan(0, p0=5, p1=6)
    assert not reading.all_planned()
    plan(1, p0=5, p1=7)
    assert reading.all_planned()
    topics.highs = {"t:0": 3, "t": "another id"}
    assert not reading.all_planned(), "recreated, and nothing of it is planned"
    topics.highs = {"t:0": 5, "t:1": 7, "t:2": 1, "t": "an id"}
    assert not reading.all_planned(), "a partition is new"
    topics.highs["t:2"] = 0
    assert reading.all_planned(), "and has nothing"
    topics.highs |= {"u:0": 0, "u": "its id"}
    assert not reading.all_planned(), "no batch knows this topic"
    assert reading.reached_end(1)
    assert reading.reached_end(0), "wherever it began, more would have fitted"
    plan(2, p0=65, p1=47)
    assert not reading.reached_end(2), "as much as fits into a batch: there may be more"
    plan(3, p0=100, p1=111)
    assert reading.reached_end(3)
    plan(4, "recreated", p0=60, p1=40)
    assert not reading.reached_end(4), "less than before, and as much as fits"
    plan(5, "once more", p0=60, p1=39)
    assert reading.reached_end(5)
    (kept.spark / "offsets/3").unlink()
    plan(4, p0=60, p1=40)
    assert not reading.reached_end(4), "where it began is not known"

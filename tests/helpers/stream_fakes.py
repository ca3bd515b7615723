"""Streams without Spark, a broker or a disk that fails: messages to merge, sources that stamp and restart, a
query with a planned batch, and the rows that a sink is given."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from itertools import count
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

from pyspark.sql import types as T

from causet.spark.streams.checkpoint import Checkpoint, read_checkpoint
from causet.spark.streams.pack import FAULT, SIZE
from tests.helpers.stream_faults import (
    Message,
    beat,
    message,
)

DOMAINS = (None, None, None, "all", "b")


class Messages:
    """Batches of messages whose times often coincide, with heartbeats, copies, conflicts, a second domain and
    rows that are not messages; most of them about in the order of time."""

    def __init__(self, seed: int, merging: Any) -> None:
        draw = Random(seed)
        epsilon, delta = draw.choice([0, 3, 10]), draw.choice([0, 15, 60])
        names = draw.sample(["b", "a", "Z", "ä", "b1"], draw.randint(2, 4))
        buckets = draw.randint(1, 4)
        self.settings = merging.MergeSettings(
            draw.choice([merging.Times(), merging.Times("rc", "r", "sequence")]),
            epsilon,
            delta,
            tuple(draw.sample([*names, "x"], draw.choice([0, 1, 1, 5]) % (len(names) + 1))),
            tuple(draw.sample([*names, "x"], draw.choice([0, 0, 1]))),
            draw.choice([delta + 3 * epsilon, 25, 200]),
            buckets,
            draw.randint(1, buckets),
            99,
            process=draw.choice([(), ("causalprocess",)]),
            by_clock=draw.random() < 0.3,
        )
        if "x" in self.settings.sources and draw.random() < 0.7:
            names.append("x")
        numbers = {name: count(1) for name in names}
        sent: list[Message] = []
        rows: list[tuple[float, int, Message]] = []
        for at in range(draw.randint(10, 60)):
            now = at * draw.choice([3, 12])
            name = draw.choice(names)
            r = now + draw.randint(0, 4)
            rc = r + draw.randint(0, min(4, 2 * epsilon + 1))
            row = {
                **message(name, next(numbers[name]), rc, r, f"m{at}"),
                "causaldomain": draw.choice(DOMAINS),
            }
            if self.settings.process:
                row["process"] = draw.choice([None, f"{name}~1", f"{name}~2", "A~1"])
            kind = draw.random()
            if kind < 0.1:
                row = {**row, **beat(name, rc, r), "sequence": draw.choice([None, 3])}
            elif kind < 0.2:
                row["code"] = draw.randrange(len(merging.problems(0)) - 1)
                row[FAULT] = "for its own reason" if row["code"] == 0 else None
                if draw.random() < 0.5:
                    row["r" if row["code"] > 1 else "source"] = None
                else:
                    row["r"] = row["rc"] = 10**6
            elif kind < 0.25:
                row |= {"code": len(merging.problems(0)) - 1, "too large": True, SIZE: 100 + at}
            else:
                sent.append(row)
            if kind > 0.75:
                again = {**draw.choice(sent)}
                which = draw.random()
                if which < 0.2:  # not a copy: it has another time
                    name = draw.choice(["rc", "r"])
                    again |= {name: again[name] + (1 if name == "rc" else -1), "subject": f"n{at}"}
                elif which < 0.4:  # nor this one, of another domain
                    again |= {"causaldomain": draw.choice(["b", "z"]), "subject": f"d{at}"}
                elif which < 0.6:
                    again |= {"subject": f"c{at}"}
                elif again["causaldomain"] in (None, "all"):
                    again["causaldomain"] = draw.choice([None, "all"])
                rows.append((now + draw.choice([0, 5, 80, 300]), len(rows), again))
            rows.append((now + draw.choice([0, 5, 30, delta + epsilon, 150]), len(rows), row))
        if self.settings.sources and draw.random() < 0.3:  # nothing leaves until it is heard of
            silent = self.settings.sources[0]
            rows = [(at + 300 * (row["source"] == silent), number, row) for at, number, row in rows]
        last = max(now for now, _, _ in rows)
        rows += [(last + 1, len(rows), beat(name, 2000, 2000)) for name in names]
        whole = [row for _, _, row in sorted(rows, key=lambda each: each[:2])]
        self.batches: list[list[Message]] = []
        while whole:
            size = draw.choice([1, 4, 9, 30])
            self.batches.append(whole[:size])
            whole = whole[size:]
        self.draw = draw


Key = tuple[str, int]


class Chat:
    """Stampers with files who hear each other, are killed and begin again; all causes are known here."""

    def __init__(self, stamp: Any, folder: Path, seed: int) -> None:
        self.stamp = stamp
        self.stamp.JOURNAL_LINES = 4  # so that files are written anew all the time
        self.folder = folder
        self.draw = Random(seed)
        self.now = 1_000_000
        self.names = ["p1~1", "p2~1", "p3~1"]
        for name in self.names:  # from now on the files know them
            self.stamp.Stamper(name.removesuffix("~1"), file=self.folder / name, run="1").close()
        self.stampers = {name: self.begun(name) for name in self.names}
        self.numbers: dict[Key, dict[str, int]] = {}
        self.key_of: dict[str, Key] = {}
        self.past: dict[Key, set[Key]] = {}
        self.known: dict[str, set[Key]] = {name: set() for name in self.names}
        self.todo: dict[str, list[Message]] = {name: [] for name in self.names}
        self.unsent: dict[str, list[Message]] = {name: [] for name in self.names}
        self.heard = dict.fromkeys(self.names, 0)
        """the largest r + c that each has heard or said"""
        self.seen: dict[str, list[Message]] = {name: [] for name in self.names}

    def begun(self, name: str) -> Any:
        clock = self.stamp.RcClock(0.05, lambda: self.wall(name), None)
        return self.stamp.Stamper(name.removesuffix("~1"), clock=clock, file=self.folder / name)

    def wall(self, name: str) -> int:
        return self.now + 20 * self.names.index(name)

    def restart(self, name: str) -> None:
        self.stampers[name].close()  # which writes nothing: as if it was killed
        self.stampers[name] = self.begun(name)
        assert self.stampers[name].unsent == self.unsent[name]

    def hear(self, name: str) -> None:
        def in_turn(envelope: Message) -> bool:
            its = self.key_of[envelope["id"]]
            return not self.past[its] - self.known[name] - {its}

        envelope = self.draw.choice(list(filter(in_turn, self.todo[name])))
        its = self.key_of[envelope["id"]]
        self.todo[name].remove(envelope)
        self.stampers[name].saw(envelope)
        self.seen[name].append(envelope)
        self.known[name] |= self.past[its]
        self.heard[name] = max(self.heard[name], int(envelope["causaltime"].split()[0]))

    def say(self, name: str) -> None:
        if self.draw.random() < 0.3:  # of a heartbeat, too, no other event has the time
            rc, r = map(int, self.stampers[name].heartbeat()["causaltime"].split())
            assert (rc, r) == (max(r, self.heard[name] + 1), self.wall(name))
            self.heard[name] = rc
            self.restart(name)
        for copy in self.seen[name][-3:]:
            if self.draw.random() < 0.3:
                self.stampers[name].saw(copy)
                self.heard[name] = max(self.heard[name], int(copy["causaltime"].split()[0]))
        groups = self.draw.choice([["x"], ["y"], ["y", "x"]])
        envelope = self.stampers[name].stamp(self.draw.random(), to=groups)
        before = self.known[name]
        number = 1 + max((seq for source, seq in before if source == name), default=0)
        mine = [self.numbers[other] for other in before if other[0] == name]
        numbers = {group: 1 + max((each.get(group, 0) for each in mine), default=0) for group in groups}
        assert envelope["causalprocess"] == name and json.loads(envelope["causalnumbers"]) == numbers
        past = json.loads(envelope["causaldeps"])
        assert past == {group: each for group in "xy" if (each := self.last(group, before))}
        self.numbers[name, number], self.key_of[envelope["id"]] = numbers, (name, number)
        rc, r = map(int, envelope["causaltime"].split())
        assert r == self.wall(name)
        assert rc == max(r, self.heard[name] + 1)
        self.heard[name] = rc
        self.past[name, number] = {*before, (name, number)}
        self.known[name] = set(self.past[name, number])
        self.unsent[name].append(envelope)
        if self.draw.random() < 0.2:  # its own message comes back
            self.stampers[name].saw(envelope)
        for other in self.names:
            if other != name:
                self.todo[other].append(envelope)

    def last(self, group: str, before: set[Key]) -> dict[str, int]:
        """Of these messages those to a group that are behind no other one there."""
        there = {key for key in before if group in self.numbers[key]}
        covered = set[Key]().union(*(self.past[key] - {key} for key in there))
        return {name: self.numbers[name, number][group] for name, number in there - covered}

    def hand_over(self, name: str) -> None:
        self.stampers[name].sent(self.unsent[name].pop(self.draw.randrange(len(self.unsent[name]))))

    def run(self, steps: int) -> None:
        for _ in range(steps):
            name = self.draw.choice(self.names)
            what = self.draw.random()
            self.now += self.draw.choice([0, 0, 1])
            if what < 0.15:
                self.restart(name)
            elif what < 0.3 and self.unsent[name]:
                self.hand_over(name)
            elif what < 0.7 and self.todo[name]:
                self.hear(name)
            else:
                self.say(name)


PLANNED, ASKED = {"patience": "1s", "strict": True}, {"patience": "9s", "strict": False}


class Without(tuple[str, ...]):
    """In the place of messages: the files that are left out."""

    rows = None


class Planned:
    """A query on a checkpoint in which a batch was planned with other settings, and not committed. What Spark
    would do is noted: with which settings, without which files, with which rows in addition, whether for that
    batch alone, and which settings were written down by then."""

    command, fixed, wakes, ends_with_input = "deliver", dict[str, Any](), False, False

    def __init__(self, module: Any, home: Path, damaged: Sequence[str] = (), strict: bool = False) -> None:
        with Checkpoint(home) as self.kept:
            self.kept.opened("deliver", {})
            self.kept.settle("deliver", {}, {"form": "parquet", "written_as": "parquet"}, PLANNED)
        for name in ("offsets", "commits", "sources/0"):
            (self.kept.spark / name).mkdir(parents=True)
        self.plan(3)
        self.damaged = set(damaged)
        self.later = list[str]()
        """files that a later batch finds damaged"""
        self.broken = False
        """whether every batch fails, for another reason"""
        self.calls: list[tuple[Any, ...]] = []
        module.run = self.run
        module.examine = self.examine
        module.unreadable_rows = lambda schema, verdicts: "".join(verdicts).encode()
        module.columns_of = lambda messages: T.StructType()
        module.from_spark = lambda error: isinstance(error, ValueError)
        module._publisher = lambda *_: MagicMock(watched=lambda show: show)
        asked = module.Asked("in", "out", self)
        self.settings = {**ASKED, "strict": strict}
        begun = read_checkpoint(home)
        self.query = module.Query(
            asked, self.kept, Path("in"), "", T.StructType(), MagicMock(form=""), begun, None
        )
        self.query.messages = lambda spark, without=(): Without(without)
        self.progress = SimpleNamespace(counts={"delivered": 4}, taken=4, unreadable={})
        self.query.progress = self.progress
        self.go = partial(self.query.run, MagicMock(), None)

    def changed(self, settings: Any, ends: Any) -> Any:
        def blobs(messages: Any) -> Any:
            return SimpleNamespace(given=(settings, messages), schema=T.StructType(), renamed={})

        return SimpleNamespace(blobs=blobs)

    def examine(self, files: Sequence[Path], *_: object) -> dict[str, str]:
        return {str(each): "is cut" for each in files if str(each) in self.damaged}

    def plan(self, batch: int) -> None:
        """A batch of two files."""
        (self.kept.spark / f"offsets/{batch}").write_text(f'v1\n{{}}\n{{"logOffset":{batch}}}')
        entries = [json.dumps({"path": f"file:/{batch}{name}", "batchId": batch}) for name in "ab"]
        (self.kept.spark / f"sources/0/{batch}").write_text("\n".join(["v1", *entries]))

    def held(self, *_: object) -> int:
        self.calls.append(("held",))
        return 2

    def run(
        self,
        blobs: Any,
        *_: object,
        more: bytes | None = None,
        alone: bool = False,
        before: Any = None,
        leaves: Any = None,
        ticks: Any = None,
    ) -> None:
        assert before is not None, "the files of a batch are asked for"
        assert alone or leaves is not None, "a run can be asked to end"
        assert len(self.calls) < 20, "it comes to an end"
        settings, without = blobs.given
        known = json.loads((self.kept.folder / "causet.json").read_bytes())["settings"]["patience"]
        self.calls.append((settings["patience"], settings["strict"], list(without), more, alone, known))
        if self.broken:
            raise ValueError
        if not alone and self.later:
            self.plan(4)
            self.damaged |= {self.later.pop()}
            raise ValueError
        batch = self.kept.pending()
        if batch is not None:
            if self.damaged & {str(each) for each in self.kept.files_of(batch)} - set(without):
                raise ValueError
            (self.kept.spark / f"commits/{batch}").touch()


class Written:
    """Rows that Spark would write, as files of parts; the writer that it would use, and how it is used."""

    def __init__(self, parts: dict[str, list[list[str]]]) -> None:
        self.parts = parts
        """folder in the target → files → lines"""
        self.write = self

    def withColumn(self, *_: object) -> Written:
        return self

    def mode(self, name: str) -> Written:
        assert name == "error"
        return self

    def partitionBy(self, *_: object) -> Written:
        return self

    def json(self, target: str, **_: object) -> None:
        Path(target.removeprefix("file:")).mkdir()
        for folder, files in self.parts.items():
            home = Path(target.removeprefix("file:")) / folder
            home.mkdir(exist_ok=True)
            order = list(enumerate(files))
            Random(len(files)).shuffle(order)
            for number, lines in order:
                task, piece = divmod(number, 3)
                (home / f"part-{task:05}-of a run.c-c{piece:03}.json").write_text("".join(lines))
                (home / f".part-{task:05}.crc").write_text("x")

"""Streams with poisoned messages among honest ones, for the kernel of `deliver` as workers run it."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pyarrow as pa

from causet.kernels.streams import holding
from causet.spark.streams import bucket
from causet.spark.streams.books import Books
from causet.spark.streams.pack import FAULT, to_blob
from causet.spark.streams.state import Segments
from causet.stamp import HEARTBEAT
from tests.helpers.holding import InMemory, pasts_of

Row = dict[str, Any]

SCHEMA = pa.schema(
    [
        ("source", pa.string()),
        ("sequence", pa.int64()),
        ("causaldeps", pa.string()),
        ("causaldomain", pa.string()),
        ("id", pa.string()),
        ("data", pa.string()),
        ("type", pa.string()),
        (FAULT, pa.string()),
    ]
)

HONEST = "h"
"""With this letter the names of honest sources begin."""


def row(source: str | None, number: int | None, deps: Any, data: str = "", **more: Any) -> Row:
    text = deps if isinstance(deps, str) else json.dumps(deps)
    return {"source": source, "sequence": number, "causaldeps": text, "data": data, **more}


class Poisoned:
    """Batches of rows, each with the time at which it comes."""

    def __init__(self, seed: int, losses: bool) -> None:
        draw = Random(seed)
        self.draw = draw
        self.patience = draw.choice([2, 5, 20])
        self.horizon = draw.choice([3, 30, 1000])
        self.made: list[tuple[str, int, dict[str, int], int]] = []
        sources = [f"{HONEST}{each}" for each in range(draw.randint(1, 4))]
        counts = dict.fromkeys(sources, 0)
        for _ in range(draw.randint(3, 30)):
            source = draw.choice(sources)
            counts[source] += 1
            others = [other for other in sources if other != source and counts[other]]
            causes = {
                other: draw.randint(max(1, counts[other] - 2), counts[other])
                for other in others
                if draw.random() < 0.4
            }
            self.made.append((source, counts[source], causes, 1))
        rows: list[tuple[float, Row]] = []
        for at, (source, number, causes, _) in enumerate(self.made):
            mine = row(source, number, causes, f"{source}:{number}")
            if losses and draw.random() < 0.1:
                continue
            rows.append((at + draw.random() * draw.choice([1, 4, 15]), mine))
            if draw.random() < 0.1:
                rows.append((at + draw.random() * 30, mine))
        self.claimed: set[tuple[str, int]] = set()
        rows += [(draw.random() * len(self.made), self._poison(counts)) for _ in range(draw.randint(1, 25))]
        rows.sort(key=lambda each: each[0])
        self.batches: list[tuple[int, list[Row]]] = []
        now = 0
        while rows:
            size = draw.choice([1, 3, 8, 50])
            now += draw.choice([0, 1, 1, 3])
            self.batches.append((now, [each for _, each in rows[:size]]))
            rows = rows[size:]
        self.batches += [(now + self.patience, []), (now + self.patience + self.horizon + 1, [])]

    def _poison(self, honest: dict[str, int]) -> Row:
        draw = self.draw
        source = draw.choice(["p0", "p1", "p2"])
        number: int | None = draw.choice(
            [1, 1, 2, 3, 4, 5, 6, 7, 9, 10**9, 10**9 + 9, 2**52, 2**60, 0, -1, None]
        )
        deps: dict[str, int] = {}
        for _ in range(draw.choice([0, 1, 2, 5])):
            about = draw.choice([*honest, *honest, "p0", "p1", "nobody", f"x{draw.random()}"])
            deps[about] = draw.choice([1, 2, 3, 5, 10, 40, 10**9, 2**52])
        self.claimed |= set(deps.items())
        kind = draw.random()
        if kind < 0.08:
            return row(source, number, draw.choice(["{", "[]", "7", '{"a":0}', '{"\\ud800":1}', '{"a":"1"}']))
        if kind < 0.12:
            return row(None, number, deps)
        if kind < 0.16:
            return row(source, number, deps, **{FAULT: "is not JSON"})
        if kind < 0.2:
            return row(source, None, {}, type=HEARTBEAT)
        if kind < 0.25:  # honest numbers in a domain of the sender's own
            return row(draw.choice(list(honest)), number, deps, "forged", causaldomain="elsewhere")
        return row(source, number, deps, draw.choice(["", "", "other"]))


class Run:
    """One receiver's bucket; every batch finds only what the last one saved."""

    def __init__(self, case: Poisoned, policy: str, made: dict[str, Any] | None = None) -> None:
        modules = made or {"streams.holding": holding, "streams.bucket": bucket}
        self.module, self.holding = (
            modules["streams.bucket"],
            modules["streams.holding"].Holding,
        )
        patience = None if policy == "wait" else case.patience
        columns = ("source", "sequence", "causaldeps")
        self.settings = self.module.Settings(
            policy, patience, case.horizon, None, None, *columns, None, 1, 10**7, "causaldomain"
        )
        self.schema = SCHEMA
        self.saved = self.holding.empty().to_bytes()
        self.segments, self.marks = Segments(InMemory(), 0), InMemory()
        self.left: list[list[Row]] = []
        self.reports: list[Row] = []

    def step(self, now: int, rows: list[Row]) -> None:
        held = self.holding.from_bytes(self.saved)
        before = len(held)
        mine = self.module.Bucket(self.settings, held, self.segments, self.marks)
        blobs = [to_blob(pa.Table.from_pylist(rows, self.schema))] if rows else []
        mine.was_read(len(rows))
        tables = list(mine.step(blobs, now, None, last=True))
        self.left.append([each for table in tables for each in table.to_pylist()])
        report = mine.report()
        self.reports.append(report)
        books = Books(before, report, len(held))
        assert books.balance, str(books)
        assert report["refused"] <= report["diverted"]
        seen = [each["status"] for each in self.left[-1]]
        aside = report["diverted"] + report["conflicts"]
        assert seen.count("diverted") == aside, "what is diverted or in conflict leaves with its problem"
        assert all(each["problem"] for each in self.left[-1] if each["index"] is None and not each["missing"])
        self.saved = held.to_bytes()

    def of_honest(self) -> list[list[tuple[str, int, str]]]:
        return [
            [(each["source"], each["sequence"], each["status"]) for each in batch if is_honest(each)]
            for batch in self.left
        ]


def is_honest(each: Row) -> bool:
    return (each["source"] or "").startswith(HONEST) and each["causaldomain"] is None


def check(seed: int, policy: str, made: dict[str, Any] | None = None) -> set[str]:
    """One stream; the statuses of honest messages."""
    losses = seed % 3 > 0
    case = Poisoned(seed, losses)
    poisoned, clean = Run(case, policy, made), Run(case, policy)
    for now, rows in case.batches:
        poisoned.step(now, rows)
        clean.step(now, [each for each in rows if is_honest({"causaldomain": None, **each})])
    for mine, other in zip(poisoned.of_honest(), clean.of_honest(), strict=True):
        expected = [
            (source, number, "late" if status == "late" and (source, number) in case.claimed else plain)
            for (source, number, plain), (_, _, status) in zip(other, mine, strict=False)
        ]
        assert mine == expected
    if not losses and policy == "wait":
        check_definition(case, poisoned)
    return {status for batch in poisoned.of_honest() for _, _, status in batch}


def check_definition(case: Poisoned, run: Run) -> None:
    """Each honest message leaves with the batch that completes its past, once, after its past."""
    pasts = pasts_of(case.made)
    arrived: set[tuple[str, int]] = set()
    left: list[tuple[str, int]] = []
    for (_, rows), batch in zip(case.batches, run.of_honest(), strict=True):
        arrived |= {(each["source"], each["sequence"]) for each in rows if each["data"] != "forged"}
        left += [(source, number) for source, number, _ in batch]
        free = {name for name, past in pasts.items() if name in arrived and past <= arrived}
        assert set(left) == free and len(left) == len(free)
    place = {name: at for at, name in enumerate(left)}
    assert all(place[cause] < place[name] for name, past in pasts.items() for cause in past)

"""Streams with poison in them, through the merge: what honest sources send is exact in order and status, and
the books balance after every batch.

Honest sources keep to ε and δ. Others send what they like, under their own names: times of the future, of
nobody's clock or of long ago, numbers that are not numbers, heartbeats that are not heartbeats, rows with a
fault, rows that are too large, copies, and other messages under a number that they have used.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from copy import deepcopy
from itertools import count
from random import Random
from typing import Any

import pytest

from causet.spark.streams.merge.memory import Memory
from causet.spark.streams.merge.packers import MergeSettings
from causet.spark.streams.merge.rows import FOUND
from causet.spark.streams.pack import FAULT, SIZE
from causet.stamp import HEARTBEAT
from tests.helpers.stream_faults import (
    IS_BEAT,
    Defined,
    MergeInMemory,
    Message,
    beat,
    check_books,
    key,
    merge_parts,
    message,
    status_of,
)

STREAMS, SOAK = 160, 10_000
BEGIN = 100_000
MOST_BYTES = 1000
MORE = ("type", "causaldomain", "id", "data", FAULT, SIZE)


class Stream:
    """Batches of rows, each with the time at which it is read."""

    def __init__(self, seed: int) -> None:
        self.draw = draw = Random(seed)
        self.epsilon, self.delta = draw.choice([0, 5, 40]), draw.choice([0, 30, 150])
        self.horizon = draw.choice([self.delta + 3 * self.epsilon, 0, 400])
        self.honest = [f"h{number}" for number in range(draw.randint(1, 3))]
        self.poisoned = [f"p{number}" for number in range(draw.randint(1, 2))]
        self.offset = {name: draw.randint(0, self.epsilon) for name in self.honest}
        self.twins = {name for name in self.honest if draw.random() < 0.3}
        """sources with two domains, which count alike in both"""
        self.numbers = {name: count(1) for name in (*self.honest, *self.poisoned)}
        self.names = count()
        self.sent: list[Message] = []
        self.used: list[Message] = []
        """messages of poisoned sources, whose numbers may be used again"""
        self.arrivals: list[tuple[int, int, Message]] = []
        now = BEGIN
        for _ in range(draw.randint(15, 50)):
            now += draw.choice([0, 1, 5, 30])
            if draw.random() < 0.5:
                self._honest(now)
            else:
                row = self._poison(now)
                self._arrive(now + draw.choice([0, 0, 10, 200]), row)
        self.batches = list(self._batches(now + self.delta + self.horizon + 300))

    def _arrive(self, at: int, row: Message) -> None:
        self.arrivals.append((at, len(self.arrivals), row))

    def _row(self, source: str, sequence: int, rc: int, r: int, domain: str | None = None) -> Message:
        name = f"{source}-{next(self.names)}"
        more = {"type": "causet.message", "causaldomain": domain, "id": name, "data": f"data of {name}"}
        return {**message(source, sequence, rc, r, name), **more}

    def _honest(self, now: int) -> None:
        """A message, which comes within δ; a copy of it may come for as long as it is remembered."""
        draw = self.draw
        source = draw.choice(self.honest)
        r = now + self.offset[source]
        if draw.random() < 0.2:
            self._arrive(now + draw.randint(0, self.delta), beat(source, r, r))
            return
        number, rc = next(self.numbers[source]), r + draw.randint(0, min(3, 2 * self.epsilon + 1))
        for domain in ["all", "b"] if source in self.twins else [draw.choice([None, "all"])]:
            row = self._row(source, number, rc, r, domain)
            self.sent.append(row)
            self._arrive(now + draw.randint(0, self.delta), row)
            if draw.random() < 0.2:
                self._arrive(now + draw.randint(0, self.delta + self.horizon), {**row})

    def _poison(self, now: int) -> Message:
        draw = self.draw
        source = draw.choice(self.poisoned)
        r = now + draw.choice([0, 0, -3, -50, -500, -500, self.epsilon])
        row = self._row(source, next(self.numbers[source]), r, r, draw.choice([None, None, "b", ""]))
        again = draw.choice(self.used) if self.used else row
        changes: list[Message] = [
            {},
            {"rc": 2**52, "r": 2**52},
            {"rc": now + 10_000, "r": now + 10_000},
            {"rc": r, "r": -r},
            {"rc": -5, "r": -5},
            {"rc": r - 1},
            {"rc": 2**60, "r": 2**60},
            {"rc": r + 2 * self.epsilon + 1001},
            {"source": None},
            {"rc": None},
            {"r": None},
            {"sequence": None},  # what Spark makes of a text that is not a number
            {"sequence": draw.choice([0, -1, 2**60, 2**53])},
            {"sequence": None, "type": draw.choice(["heartbeat", "causet.heartbeat ", None])},
            {"sequence": draw.choice([None, 5, 2**60]), "type": HEARTBEAT},
            {"sequence": None, "type": HEARTBEAT, "rc": None},
            {"sequence": None, "type": HEARTBEAT, "source": None},
            {"sequence": None, "type": HEARTBEAT, "rc": 2**52, "r": 2**52},
            {FAULT: "is not JSON"},
            {FAULT: "is not JSON", "type": HEARTBEAT},
            {SIZE: draw.choice([MOST_BYTES, MOST_BYTES + 1, 2**40])},
        ]
        used_again: list[Message] = [
            again,
            {**again, "data": f"other data {row['subject']}", "subject": row["subject"]},
            {**again, "id": f"other id {row['subject']}", "subject": row["subject"]},
            {**again, **{name: row[name] for name in ("id", "data", "subject")}, "causaldomain": "c"},
        ]
        row = {**row, **draw.choice(changes if draw.random() < 0.7 else used_again)}
        if wrong_with(row, self.epsilon, now) is None and row["type"] != HEARTBEAT:
            self.used.append(row)
        return row

    def _batches(self, end: int) -> Iterator[tuple[int, list[Message]]]:
        """Each with all that has come since the last one; in the end all sources say that they are there."""
        left = sorted(self.arrivals, key=lambda each: each[:2])
        at = BEGIN
        while left:
            at += self.draw.choice([1, 20, 100, 400])
            batch = [row for when, _, row in left if when <= at]
            left = left[len(batch) :]
            self.draw.shuffle(batch)
            if batch:
                yield at, batch
        last = max(at, end) + 2 * (self.delta + self.epsilon) + 10
        for late in (0, 1):
            yield last + late, [beat(name, last, last) for name in (*self.honest, *self.poisoned)]

    def settings(self) -> Any:
        draw = self.draw
        buckets = draw.randint(1, 3)
        excluded = tuple(self.poisoned[: draw.choice([0, 0, 1])])
        expected = tuple(self.honest[: draw.choice([0, 1])])
        return MergeSettings(
            FOUND,
            self.epsilon,
            self.delta,
            expected,
            excluded,
            self.horizon,
            buckets,
            draw.randint(1, buckets),
            MOST_BYTES,
        )


def wrong_with(row: Message, epsilon: int, now: int) -> str | None:
    """Why a row is diverted, by the definition."""
    rc, r, sequence = row["rc"], row["r"], row["sequence"]
    beats = row.get("type") == HEARTBEAT
    if row.get(FAULT) is not None:
        return str(row[FAULT])
    if row["source"] is None:
        return "has no source"
    if rc is None or r is None:
        return "has no time"
    if not 0 <= r <= rc < 2**53:
        return "has an invalid time: it needs 0 ≤ r ≤ r + c < 2^53"
    if rc - r > 2 * epsilon + 1000:
        return f"has a time with c above {1 + 2 * epsilon / 1000:g} ms, which ε does not allow"
    if not beats and sequence is None:
        return "has no sequence that is a number"
    if not beats and not 1 <= sequence < 2**53:
        return f"has a sequence that is not between 1 and {2**53 - 1}"
    if r > now // 1000 * 1000 + 999 + epsilon:
        return "has a time ahead of every clock"
    if row.get(SIZE, 0) > MOST_BYTES:
        return f"is larger than the sink takes: {row[SIZE]} bytes, {MOST_BYTES} at most"
    return None


def judged(row: Message, epsilon: int, now: int) -> Message:
    """The row with its code, for the definition."""
    said = wrong_with(row, epsilon, now)
    if said is None:
        return {**row, "code": IS_BEAT if row.get("type") == HEARTBEAT else None}
    return {**row, "code": 0, "said": said, "too large": said.startswith("is larger")}


def shares_of(rows: Sequence[Message], draw: Random) -> list[list[Message]]:
    """The rows, divided among workers."""
    workers: list[list[Message]] = [[] for _ in range(draw.randint(1, 3))]
    for row in rows:
        draw.choice(workers).append(row)
    return [share for share in workers if share]


def shown(rows: Sequence[Message]) -> tuple[list[str], list[tuple[str, str, str | None]]]:
    """What is delivered, in its order; and the rest, with status and problem."""
    delivered = [row["subject"] for row in rows if row["status"] == "delivered"]
    rest = [row for row in rows if row["status"] != "delivered"]
    return delivered, sorted((row["subject"], row["status"], row["problem"]) for row in rest)


def expected_of(expected: dict[str, list[Message]], defined: Defined) -> Any:
    delivered = [row["subject"] for row in expected["delivered"] if row["code"] is None]
    rest: list[tuple[str, str, str | None]] = [
        (row["subject"], status_of(row, "late"), None) for row in expected["late"]
    ]
    rest += [(row["subject"], "heartbeat", None) for row in expected["delivered"] if row["code"] is not None]
    for row in expected["diverted"]:
        number = f"process {row['source']}, sequence {row['sequence']}"
        conflict = f"has the number of another message: {number}, but another id or data"
        rest.append((row["subject"], "diverted", row.get("said", conflict)))
    return delivered, sorted(rest)


def check_memory(query: MergeInMemory, defined: Defined) -> None:
    """What is remembered is what is held, and what was released within the horizon."""
    least = 0 if defined.bound is None else defined.bound - defined.settings.horizon
    states = [handle.head.now for handle in query.handles]
    memories = [Memory.from_bytes(state[3]) for state in states if state is not None]
    remembered = sum(len(memory.released["rc"]) for memory in memories)
    assert remembered == sum(row["rc"] >= least for row in defined.gone)
    for memory in memories:
        assert set(memory.names) <= set(defined.largest)


def check_stream(seed: int, counts: Counter[str]) -> None:
    stream = Stream(seed)
    draw, settings = stream.draw, stream.settings()
    query = MergeInMemory(merge_parts(), settings, MORE)
    defined = Defined(settings, payload=("id", "data"))
    held, order = 0, list[str]()
    repeated = draw.randrange(len(stream.batches))
    for number, (now, batch) in enumerate(stream.batches):
        before = deepcopy(query.handles)
        left = query.step(shares_of(batch, draw), draw, now)
        if number == repeated:  # after a crash: the same rows, divided otherwise
            again = MergeInMemory(merge_parts(), settings, MORE)
            again.handles = before
            mixed = draw.sample(batch, len(batch))
            assert shown(again.step(shares_of(mixed, draw), draw, now).rows) == shown(left.rows)
        expected = defined.step([judged(row, settings.epsilon, now) for row in batch])
        assert shown(left.rows) == expected_of(expected, defined)
        held = check_books(left.reports, held)
        check_memory(query, defined)
        for name in ("diverted", "conflicts", "duplicates", "heartbeats", "late", "refused"):
            counts[name] += sum(report[name] for report in left.reports)
        order += [row["subject"] for row in left.rows if row["status"] == "delivered"]
    honest = {row["subject"] for row in stream.sent}
    assert [name for name in order if name in honest] == [
        row["subject"] for row in sorted(stream.sent, key=key)
    ]
    counts["honest"] += len(honest)
    counts["twins"] += len(stream.twins)


def check_streams(seeds: range) -> None:
    counts: Counter[str] = Counter()
    for seed in seeds:
        try:
            check_stream(seed, counts)
        except AssertionError as error:
            raise AssertionError(f"stream {seed}: {error}") from error
    shown_by = ("honest", "twins", "diverted", "refused", "conflicts", "duplicates", "heartbeats", "late")
    assert min(counts[name] for name in shown_by) > len(seeds) / 10, (
        "poison that does not show proves nothing"
    )
    assert counts["diverted"] > counts["refused"], "some are only too large"


def share_of(streams: int, share: int, shares: int) -> range:
    return range(share * streams // shares, (share + 1) * streams // shares)


@pytest.mark.parametrize("share", range(4))
def test_what_honest_sources_send_is_exact_and_the_books_balance(share: int) -> None:
    check_streams(share_of(STREAMS, share, 4))


@pytest.mark.soak
@pytest.mark.parametrize("share", range(20))
def test_what_honest_sources_send_is_exact_in_10_000_streams(share: int) -> None:
    check_streams(share_of(SOAK, share, 20))

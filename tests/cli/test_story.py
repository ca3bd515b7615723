"""The story of the demonstration, once with a stamper per service and once with one per service and group.

The same services say the same in the same order, and the network gives it in the same order; only what the
stamps know differs. The verdicts are those of `causet verify` on traces.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any, cast

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from causet import Stamper
from causet.check.oracle import causal_pasts, judge
from causet.cli import cli
from causet.formats.trace import read_trace, write_trace
from causet.live import shop
from causet.live.aftermath import Run
from causet.live.shop import READERS, SKEWS, Envelope, Services, Shop
from causet.model import Event
from tests.helpers.commands import LOCAL
from tests.helpers.commands import causet_alone as run_causet
from tests.helpers.pages import data_of
from tests.helpers.readers import Served
from tests.helpers.sessions import shared_spark


class InTurn:
    """Services in one process, which stamp what they send. Either each has one stamper, or one for each
    group, which knows nothing of the others: a message to two groups has then the stamps of both."""

    def __init__(self, apart: bool, clock: Clock) -> None:
        self.apart = apart
        self._clock = clock
        self._stampers: dict[tuple[str, str], Stamper] = {}

    def _stamper(self, service: str, group: str) -> Stamper:
        key = (service, group if self.apart else "")
        return self._stampers.setdefault(key, Stamper(service, run="1"))

    def see(self, service: str, envelope: Envelope) -> None:
        if not self.apart:
            self._stamper(service, "").saw(envelope)
            return
        for group in json.loads(envelope["causalgroups"]):
            self._stamper(service, group).saw(_within(envelope, group))

    def act(self, service: str, to: Sequence[str], text: str, **about: Any) -> Envelope:
        skew = timedelta(milliseconds=SKEWS[service])
        now = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self._clock.now) + skew
        about["time"] = now.isoformat(timespec="milliseconds")
        if not self.apart:
            return self._stamper(service, "").stamp({"text": text}, to=to, **about)
        made = [self._stamper(service, group).stamp({"text": text}, to=group, **about) for group in to]
        whole = {**made[0], "causalgroups": json.dumps(sorted(to))}
        if len(made) > 1:
            whole.pop("sequence", None)
        for name in ("causalnumbers", "causaldeps"):
            whole[name] = json.dumps({k: v for each in made for k, v in json.loads(each[name]).items()})
        return whole


def _within(envelope: Envelope, group: str) -> Envelope:
    """What the stamper of one group is told of a message."""
    found = {**envelope, "causalgroups": json.dumps([group])}
    for name in ("causalnumbers", "causaldeps"):
        told = json.loads(envelope[name])
        found[name] = json.dumps({group: told[group]} if group in told else {})
    found["sequence"] = f"{json.loads(found['causalnumbers'])[group]:020}"
    return found


class Clock:
    """Time that passes only while somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def story(monkeypatch: pytest.MonkeyPatch, *, apart: bool, orders: int = 12, seed: int = 1) -> Run:
    clock = Clock()
    monkeypatch.setattr(shop, "time", clock)
    arrived: list[tuple[Envelope, int]] = []
    played = Shop(orders, seed, lambda envelope: arrived.append((envelope, round(1000 * clock.now))))
    played.play(cast(Services, InTurn(apart, clock)), lambda: False)
    return Run(READERS, played.story.steps, arrived)


def delivered(run: Run) -> dict[str, list[str]]:
    """What readers get of `deliver`, in batches of a few messages; everything in the end."""
    served, draw = Served({name: list(reads) for name, reads in run.readers.items()}), random.Random(1)
    rows = [{**envelope, "id": envelope["subject"]} for envelope, _ in run.arrived]
    rows = [{name: row.get(name) for name in served.schema.names} for row in rows]
    found: dict[str, list[str]] = {reader: [] for reader in run.readers}
    while rows:
        size = draw.choice((1, 1, 2, 5))
        for each in served.step(rows[:size], 0):
            assert each["status"] == "delivered"
            found[each["receiver"]].append(each["id"])
        rows = rows[size:]
    assert served.held == 0
    return found


def verified(trace: Path) -> dict[str, Any]:
    shared_spark()
    done = CliRunner().invoke(cli, ["verify", str(trace), "--json", *LOCAL], standalone_mode=False)
    found: dict[str, Any] = json.loads(done.stdout)
    assert done.return_value == (0 if found["status"] == "valid" else 1)
    return found


@pytest.mark.jvm
def test_the_story_is_valid_and_the_same_one_with_stamps_of_each_group_by_itself_is_not(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    runs = {apart: story(monkeypatch, apart=apart) for apart in (False, True)}
    one, two = ([(who, kind, each["subject"]) for who, kind, each in run.steps] for run in runs.values())
    assert one == two
    assert [each["subject"] for each, _ in runs[False].arrived] == [
        each["subject"] for each, _ in runs[True].arrived
    ]
    for apart, run in runs.items():
        trace = tmp_path / f"{apart}.jsonl"
        write_trace(trace, run.trace(delivered(run)))
        assert verified(trace)["status"] == ("invalid" if apart else "valid")


def through_others(events: Sequence[Event]) -> set[tuple[str, str, str]]:
    """(reader, cause, effect): the reader gets both, and only messages that it does not get lead from one to
    the other. All of it as the trace has it: without these messages the cause is in no past of the effect."""
    to = {event.message: event.to or () for event in events if event.kind == "send"}
    pasts = causal_pasts(events)
    found = set()
    for reader in READERS:
        kept = [event for event in events if reader in to[event.message]]
        mine = causal_pasts(_renumbered(kept))
        for cause, effect in combinations(mine, 2):
            for a, b in ((cause, effect), (effect, cause)):
                if a in pasts[b] and a not in mine[b]:
                    found.add((reader, a, b))
    return found


def _renumbered(events: Sequence[Event]) -> list[Event]:
    count: dict[str, int] = {}
    made = []
    for event in events:
        count[event.process] = count.get(event.process, 0) + 1
        made.append(replace(event, seq=count[event.process]))
    return made


def test_the_demonstration_ends_with_a_page_and_a_chain_through_groups_that_its_reader_does_not_read(
    spark: SparkSession, bare: Path, tmp_path: Path
) -> None:
    """On a machine with Python only. By the trace alone: each link of the chain is in the past of the next,
    the reader gets both ends, in this order, and without what it does not get, one would not follow the
    other."""
    trace, page = tmp_path / "run.jsonl", tmp_path / "demo.html"
    told = json.loads(run_causet("demo", "--orders", 12, "-o", page, "--trace", trace, "--json", *LOCAL))
    assert told["messages"] >= 48 and told["deliveries"] > told["messages"]
    assert told["effects_before_causes"]["causet"] == 0 < told["effects_before_causes"]["time"]
    events = read_trace(trace)
    assert verified(trace)["status"] == told["status"] == judge(events).status == "valid"
    (execution,) = data_of(page.read_text(encoding="utf-8"))["executions"]
    assert execution["verdict"]["status"] == "valid"
    pasts = causal_pasts(events)
    chain = told["chain"]
    assert len(chain) > 2 and all(a in pasts[b] for a, b in pairwise(chain))
    readers = {reader for reader, *ends in through_others(events) if ends == [chain[0], chain[-1]]}
    assert readers
    for reader in readers:
        got = [e.message for e in events if e.process == reader and e.kind == "deliver"]
        assert got.index(chain[0]) < got.index(chain[-1])

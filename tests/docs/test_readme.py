"""The README's commands and snippets work as they stand."""

from __future__ import annotations

import json
import random
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from causet import RcClock, Stamper
from causet.model import Event
from tests.helpers.logs import frame
from tests.helpers.places import ROOT
from tests.helpers.snippets import Page, blocks_of
from tests.streams.test_kafka import create, publish

README = ROOT / "README.md"


def shop(count: int) -> list[dict[str, Any]]:
    """Envelopes of three sources that answer each other, for one tenant, in the order in which they came."""
    now = [1_767_000_000_000]
    clocks = {name: RcClock(50, lambda: now[0], steady=None) for name in ("orders", "bank", "post")}
    sources = {name: Stamper(name, "shop", clock=clock) for name, clock in clocks.items()}
    draw = random.Random(1)
    made: list[dict[str, Any]] = []
    for _ in range(count):
        now[0] += 10
        name = draw.choice(sorted(sources))
        if made and made[-1]["source"] != name:
            sources[name].saw(made[-1])
        made.append({**sources[name].stamp({"amount": 5}), "tenant": "t1"})
    now[0] += 10_000
    draw.shuffle(made)
    return [*made, *(stamper.heartbeat() for stamper in sources.values())]


def repository(folder: Path) -> None:
    """Of two commits."""
    who = ("-c", "user.name=Anna", "-c", "user.email=anna@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", "init", "--quiet"], check=True, cwd=folder)
    for text in ("A first version", "It says hello"):
        command = ["git", *who, "commit", "--quiet", "--allow-empty", "-m", text]
        subprocess.run(command, check=True, cwd=folder)


def test_the_commands_and_snippets_run(
    spark: SparkSession, broker: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a repository of two commits, with an inbox, a topic `orders` and two DataFrames."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    (tmp_path / "schedules").symlink_to(ROOT / "schedules")
    repository(tmp_path)
    envelopes = shop(40)
    messages = [each for each in envelopes if "sequence" in each]
    (tmp_path / "inbox").mkdir()
    (tmp_path / "inbox/1.jsonl").write_text("".join(json.dumps(each) + "\n" for each in envelopes))
    create(broker, "orders")
    publish(broker, "orders", messages, tmp_path)
    sent = Event("p1", 1, "send", message="m", to=("p2",), time=9)
    names = {
        "events": frame(spark, [Event("p2", 1, "deliver", message="m", time=3), sent]),
        "messages": spark.createDataFrame(
            [("r", "b", 1, '{"a":1}', 20, 5), ("r", "a", 1, "{}", 10, 10)],
            "receiver string, source string, sequence long, causaldeps string, rc long, r long",
        ),
    }
    page = Page(README, tmp_path, broker, names)
    page.run_all()
    assert [row.process for row in page.names["ordered"].collect()] == ["p1", "p2"]
    assert page.names["verdict"].status == "valid"
    for made in ("delivered", "merged"):
        assert [row.source for row in page.names[made].collect()] == ["a", "b"]
    assert page.said.strip() in README.read_text(encoding="utf-8").replace("# [", "[")


def test_no_snippet_is_left_out() -> None:
    blocks = blocks_of(README)
    assert [block.text.split()[0] for block in blocks if block.exception == "not run"] == ["make"]
    fences = re.findall(r"^```(\w*)$", README.read_text(encoding="utf-8"), re.MULTILINE)
    assert fences[::2] == [block.language for block in blocks]
    assert {block.language for block in blocks} == {"sh", "python", "text"}

"""The README's commands and snippets work as they stand."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from causet.model import Event
from tests.helpers.kafka import create, publish
from tests.helpers.logs import frame
from tests.helpers.places import ROOT
from tests.helpers.samples import repository, shop
from tests.helpers.snippets import Page, blocks_of

README = ROOT / "README.md"


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
    for topic in ("orders", "payments"):
        create(broker, topic)
        publish(broker, topic, messages, tmp_path)
    sent = Event("p1", 1, "send", message="m", to=("p2",), time=9)
    names = {
        "events": frame(spark, [Event("p2", 1, "deliver", message="m", time=3), sent]),
        "messages": spark.createDataFrame(
            [("b", {"payments": 1}, {"orders": {"a": 1}}, 20, 5), ("a", {"orders": 1}, {}, 10, 10)],
            "source string, numbers map<string,long>, deps map<string,map<string,long>>, rc long, r long",
        ),
    }
    page = Page(README, tmp_path, broker, names)
    page.run_all()
    assert [row.process for row in page.names["ordered"].collect()] == ["p1", "p2"]
    assert page.names["verdict"].status == "valid"
    assert [row.source for row in page.names["merged"].collect()] == ["a", "b"]
    left = sorted((row.receiver, row["index"], row.source) for row in page.names["delivered"].collect())
    assert left == [("audit", 0, "b"), ("desk", 0, "a"), ("desk", 1, "b")]
    assert page.said.strip() in README.read_text(encoding="utf-8").replace("# [", "[")


def test_no_snippet_is_left_out() -> None:
    blocks = blocks_of(README)
    assert [block.text.split()[0] for block in blocks if block.exception == "not run"] == ["make"]
    fences = re.findall(r"^```(\w*)$", README.read_text(encoding="utf-8"), re.MULTILINE)
    assert fences[::2] == [block.language for block in blocks]
    assert {block.language for block in blocks} == {"sh", "python", "text"}

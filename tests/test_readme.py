"""The README's commands and its Python example work as they stand."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from causet.model import Event
from logs import frame

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^\.venv/bin/causet ([^#\n]*)", README, re.MULTILINE)
FINDINGS = ("explore --protocol fifo", "--as-printed M3")
"""Commands that are there to show a finding, and exit with 1."""


def test_there_are_commands_to_try() -> None:
    assert len(COMMANDS) == 13


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the commands write; later ones read what the simulation wrote."""
    made = tmp_path_factory.mktemp("readme")
    for begins in ("simulate", "convert trace.jsonl"):
        [command] = [command for command in COMMANDS if command.startswith(begins)]
        assert run(command, made).returncode == 0
    return made


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    words = shlex.split(command)
    made = ("ordered", "delivered")
    words = [
        str(folder / word) if word.endswith((".jsonl", ".html")) or word in made else word for word in words
    ]
    return subprocess.run(
        [sys.executable, "-c", "from causet.cli import main; main()", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_the_command_works(command: str, folder: Path) -> None:
    done = run(command, folder)
    expected = 1 if any(text in command for text in FINDINGS) else 0
    if "convert --from git" in command and (ROOT / ".git" / "shallow").exists():
        expected = 3  # a clone without its whole history: a fault of the log, named as such
    assert done.returncode == expected, done.stderr
    assert "Traceback" not in done.stderr


def test_the_python_example_runs_and_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    _, _, example = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    exec(compile(example, "README.md", "exec"), {})
    said = re.search(r"print\(p3\.waiting\(\)\)\s+# (.*)", example)
    assert said is not None
    assert capsys.readouterr().out.strip() == said.group(1)


def test_the_example_on_spark_runs(spark: SparkSession) -> None:
    example, streams, _ = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    sent = Event("p1", 1, "send", message="m", to=("p2",), time=9)
    names: dict[str, Any] = {"events": frame(spark, [Event("p2", 1, "deliver", message="m", time=3), sent])}
    exec(compile(example, "README.md", "exec"), names)
    assert [row.process for row in names["ordered"].collect()] == ["p1", "p2"]
    assert names["verdict"].status == "valid"
    names["messages"] = spark.createDataFrame(
        [("r", "b", 1, '{"a":1}', 20, 5), ("r", "a", 1, "{}", 10, 10)],
        "receiver string, source string, sequence long, causaldeps string, rc long, r long",
    )
    exec(compile(streams, "README.md", "exec"), names)
    assert [row.source for row in names["delivered"].collect()] == ["a", "b"]
    assert [row.source for row in names["merged"].collect()] == ["a", "b"]


def test_the_drawing_is_what_explore_shows() -> None:
    [drawing] = re.findall(r"```\n(Shortest counter-example.*?)\n```", README, re.DOTALL)
    done = subprocess.run(
        [sys.executable, "-c", "from causet.cli import main; main()", "explore", "--protocol", "fifo"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert drawing in done.stdout

"""The commands of streams, in this process or in one of their own, and what they write."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from click.testing import CliRunner

from causet.cli import cli
from causet.errors import CausetError
from causet.stamp import sequence_of
from tests.helpers.sessions import shared_spark
from tests.helpers.streams import Message, Streams

CAUSET = [sys.executable, "-c", "from causet.cli import main; main()"]
UNOPTIMISED = "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1"
LOCAL = ["--master", "local[2]", "--conf", "spark.sql.shuffle.partitions=2", "--conf", UNOPTIMISED]
"""For little data. A command that follows its source, or reads a topic, does not know how much will come, and
its JVM would optimise code for as long as the test runs."""


def causet(*arguments: object) -> str:
    """What a command prints that ends well. It uses the Spark of the tests: none is started for it."""
    shared_spark()
    words = [str(each) for each in arguments]
    done = CliRunner().invoke(cli, words, standalone_mode=False, catch_exceptions=False)
    assert done.return_value == 0, done.output
    return done.stdout


def refused(*arguments: object) -> str:
    """What a command prints that refuses its input, with the Spark of the tests."""
    shared_spark()
    done = CliRunner().invoke(cli, [str(each) for each in arguments], standalone_mode=False)
    assert isinstance(done.exception, CausetError), done.output
    return f"{done.output}causet: {done.exception}\n"


def causet_alone(*arguments: object, code: int = 0) -> str:
    """What a command prints that is a process of its own."""
    done = subprocess.run(
        [*CAUSET, *map(str, arguments)], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + (done.stderr if code else "")


def rows_in(folder: Path) -> list[dict[str, Any]]:
    """What any reader finds that lists the files."""
    if any(folder.glob("*.parquet")):
        return [row for file in sorted(folder.glob("*.parquet")) for row in pq.read_table(file).to_pylist()]
    texts = [file.read_text() for file in sorted(folder.glob("*.jsonl"))]
    return [json.loads(line) for text in texts for line in text.splitlines()]


def check_rows(rows: Sequence[dict[str, Any]], messages: Sequence[Message], streams: Streams) -> None:
    """Every message once, indexes without a gap and in the order of the files, no violation."""
    delivered: dict[str, list[str]] = {}
    for row in rows:
        mine = delivered.setdefault(row["receiver"], [])
        assert row["index"] == len(mine)
        mine.append(row["subject"])
    found = sorted((row["receiver"], row["source"], int(row["sequence"])) for row in rows)
    assert found == sorted({(each["receiver"], each["source"], sequence_of(each)) for each in messages})
    assert streams.violations(delivered) == 0


def processes_below(pid: int) -> list[tuple[int, str]]:
    """The descendants of a process, and their command lines."""
    parents: dict[int, list[int]] = {}
    words: dict[int, str] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            stat = (folder / "stat").read_text()
            words[int(folder.name)] = (
                (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            )
        except OSError:
            continue
        parents.setdefault(int(stat.rpartition(")")[2].split()[1]), []).append(int(folder.name))
    found, todo = [], [pid]
    while todo:
        for child in parents.get(todo.pop(), []):
            found.append((child, words.get(child, "")))
            todo.append(child)
    return found

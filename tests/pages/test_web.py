"""The front end: its own tests, and that the built page that is shipped is the one of its sources."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.helpers.places import ROOT

PAGE = Path("src/causet/view/page.html")


@pytest.mark.installs
def test_the_page_that_is_shipped_is_built_from_these_sources(tmp_path: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("no npm on the PATH: the front end cannot be built here, and is shipped as it is")
    shutil.copytree(ROOT / "web", tmp_path / "web", ignore=shutil.ignore_patterns("node_modules"))
    (tmp_path / PAGE).parent.mkdir(parents=True)
    for command in (["install", "--no-audit", "--no-fund"], ["run", "check"], ["test"], ["run", "build"]):
        done = subprocess.run(
            [npm, *command], cwd=tmp_path / "web", capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
    assert (tmp_path / PAGE).read_bytes() == (ROOT / PAGE).read_bytes(), "run `npm run build` in web/"
    assert not (tmp_path / "web" / "package-lock.json").exists(), "a lock file would name where to download"

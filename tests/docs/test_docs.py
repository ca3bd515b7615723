"""The documents do what they say: their commands and snippets run, page by page; the site builds."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from causet.cli import COMMANDS
from causet.protocols import PROTOCOLS
from tests.helpers.places import ROOT
from tests.helpers.snippets import BROKER, Page, blocks_of

DOCS = ROOT / "docs"
PAGES = sorted(page.name for page in DOCS.glob("*.md"))
QUIET_ROWS = frozenset({"H4", "H5", "H6", "M6", "S4", "K5", "K6", "K9"})
"""Rows of the errata whose schedules end well: they are about size or speed, or drawn by default, or what is
wrong is in how two messages follow two others."""


class Errata(Page):
    """Its schedules show what goes wrong; its drawings have a test of their own."""

    def run_all(self) -> None:
        for block in self.blocks:
            self.run(block)

    def expected(self, line: str) -> int:
        if line.split()[1] != "replay":
            return super().expected(line)
        return 0 if Path(line.split()[2]).stem.partition("-")[0] in QUIET_ROWS else 1


def with_snippets() -> list[str]:
    return [
        page for page in PAGES if any(each.language in ("sh", "python") for each in blocks_of(DOCS / page))
    ]


@pytest.mark.parametrize("name", with_snippets())
def test_the_snippets_of_a_page_run(
    name: str,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    needed = any(block.exception == "needs" for block in blocks_of(DOCS / name))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    (tmp_path / "schedules").symlink_to(ROOT / "schedules")
    kind = Errata if name == "errata.md" else Page
    kind(DOCS / name, tmp_path, request.getfixturevalue("broker") if needed else BROKER).run_all()


def test_every_exception_is_one_that_is_known() -> None:
    for page in (ROOT / "README.md", *map(DOCS.joinpath, PAGES)):
        text = page.read_text(encoding="utf-8")
        noted = re.findall(r"<!-- (needs|not run): (.*?) -->", text)
        kept = [(block.exception, block.why) for block in blocks_of(page) if block.exception]
        assert noted == kept, f"{page}: a comment that stands before no block"
        assert all(why == "kafka" for exception, why in kept if exception == "needs")
        assert len(re.findall(r"^```\w", text, re.MULTILINE)) == len(blocks_of(page))


def test_few_blocks_are_not_run() -> None:
    blocks = [
        block for page in PAGES for block in blocks_of(DOCS / page) if block.language in ("sh", "python")
    ]
    skipped = [block for block in blocks if block.exception == "not run"]
    assert len(skipped) <= 8 and len(blocks) > 50


# ---------------------------------------------------------------- the site


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("mkdocs", reason="the site is built with the extra `docs`")
    made = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(made)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return made


def test_the_site_has_every_page_and_needs_nothing_from_elsewhere(site: Path) -> None:
    for page in PAGES:
        text = (site / page).with_suffix(".html").read_text(encoding="utf-8")
        loaded = re.findall(r"<(?:script|link|img|iframe)\b[^>]*?\b(?:src|href)=\"?([^\"\s>]+)", text)
        assert loaded and not [each for each in loaded if re.match(r"(https?:)?//", each)], page
        assert "<!-- drawing" not in text and "<!-- page" not in text


def test_the_site_shows_what_the_code_has(site: Path) -> None:
    commands = (site / "commands.html").read_text(encoding="utf-8")
    assert all(f"Usage: causet {name} " in commands for name in COMMANDS)
    promised = (site / "choosing.html").read_text(encoding="utf-8")
    assert all(kind.title.partition(" (")[0].replace("&", "&amp;") in promised for kind in PROTOCOLS.values())
    assert "before question" in (site / "index.html").read_text(encoding="utf-8")
    reference = (site / "spark.html").read_text(encoding="utf-8")
    assert 'id="causet.spark.deliver"' in reference
    for execution in re.findall(r'src="(executions/[^"]+)"', (site / "index.html").read_text()):
        assert (site / execution).stat().st_size > 10_000

"""The documents do what they say: the commands and snippets of docs/*.md run, page by page; the site builds.

The snippets of a page run from top to bottom in one folder of their own. A block with a title is written to a
file of that name. Lines `causet …` run in this process, in its one Spark; other shell blocks in a shell. A
comment `# exit code 1` says what is expected where that is not 0. A comment in front of a block makes an
exception: `<!-- needs: kafka -->` runs it with a broker of the test's own in place of localhost:9092,
`<!-- not run: why -->` only has its options or its syntax checked.
"""

from __future__ import annotations

import ast
import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pytest
from pyspark.sql import SparkSession

from causet.cli import COMMANDS, cli
from causet.live.broker import broker_jars, kafka_broker
from causet.model import BadInput
from causet.protocols import PROTOCOLS

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(page.name for page in DOCS.glob("*.md"))
BLOCK = re.compile(
    r"^(?:<!-- (needs|not run): ([^>]*) -->\n)?```(\w+)(?: title=\"([\w.-]+)\")?\n(.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
EXIT = re.compile(r"\s*# exit code (\d)$")
BROKER = "localhost:9092"
QUIET_ROWS = frozenset({"H4", "H5", "H6", "M6", "S4", "K5"})
"""Rows of the errata whose schedules end well: they are about size or speed, or drawn by default."""


@dataclass(frozen=True)
class Block:
    exception: str
    """`needs`, `not run`, or nothing"""
    why: str
    language: str
    title: str
    text: str


def blocks_of(page: str) -> list[Block]:
    return [Block(*found) for found in BLOCK.findall((DOCS / page).read_text(encoding="utf-8"))]


def with_snippets() -> list[str]:
    return [page for page in PAGES if any(each.language in ("sh", "python") for each in blocks_of(page))]


class Page:
    """The folder in which a page's snippets run, and what they have defined."""

    def __init__(self, name: str, folder: Path, broker: str) -> None:
        self.name = name
        self.folder = folder
        self.broker = broker
        self.names: dict[str, Any] = {"__name__": "__main__"}
        self.said = ""
        """what the last snippet printed"""

    def run(self, block: Block) -> None:
        text = block.text.replace(BROKER, self.broker)
        if block.exception == "not run":
            check(block)
        elif block.title:
            (self.folder / block.title).write_text(text, encoding="utf-8")
        elif block.language == "python":
            with self._listening():
                exec(compile(text, self.name, "exec"), self.names)
        elif block.language == "sh" and all(line.startswith("causet ") for line in text.splitlines()):
            whole = ""
            for line in text.splitlines():
                self._command(line)
                whole += self.said
            self.said = whole
        elif block.language == "sh":
            self._shell(text)

    def _command(self, line: str) -> None:
        found = EXIT.search(line)
        expected = int(found[1]) if found else 0
        words = shlex.split(EXIT.sub("", line))[1:]
        if self.name == "errata.md":
            expected = 0 if Path(words[1]).stem.partition("-")[0] in QUIET_ROWS else 1
        with self._listening():
            code = cli.main(words, standalone_mode=False)
        assert int(code or 0) == expected, f"{line}\n{self.said}"

    def _shell(self, text: str) -> None:
        beside = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", "-euc", f"{text}\npwd > {shlex.quote(str(self.folder / '.where'))}"],
            env={**os.environ, "PATH": beside},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, f"{text}\n{done.stdout}{done.stderr}"
        self.said = done.stdout
        os.chdir((self.folder / ".where").read_text().strip())

    @contextlib.contextmanager
    def _listening(self) -> Iterator[None]:
        with contextlib.redirect_stdout(io.StringIO()) as out:
            try:
                yield
            finally:
                self.said = out.getvalue()


def check(block: Block) -> None:
    """That a block which is not run could be: its syntax, and the options of its commands."""
    assert block.why
    if block.language == "python":
        ast.parse(block.text)
        return
    above = click.Context(cli, info_name="causet")
    for line in block.text.splitlines():
        words = shlex.split(line, comments=True)
        if words[0] == "causet":
            command = cli.get_command(above, words[1])
            assert command is not None
            command.make_context(words[1], words[2:], parent=above)
        else:
            assert words[:2] == ["pip", "install"], line


@pytest.fixture(scope="module")
def broker() -> Iterator[str]:
    try:
        broker_jars()
    except BadInput as error:
        pytest.skip(str(error))
    with kafka_broker() as address:
        yield address


@pytest.mark.parametrize("name", with_snippets())
def test_the_snippets_of_a_page_run(
    name: str,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    blocks = blocks_of(name)
    needed = any(block.exception == "needs" for block in blocks)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    (tmp_path / "schedules").symlink_to(ROOT / "schedules")
    page = Page(name, tmp_path, request.getfixturevalue("broker") if needed else BROKER)
    for position, block in enumerate(blocks):
        page.run(block)
        ran = block.language in ("sh", "python") and block.exception != "not run" and not block.title
        if ran and name != "errata.md":  # whose drawings have a test of their own
            compare(page.said, blocks[position + 1 : position + 2])


def compare(said: str, after: list[Block]) -> None:
    """If text stands behind a snippet, that is what it printed, line by line, or some lines of it."""

    def lines(text: str) -> list[str]:
        return [re.sub(r"\b\d+ s\b", "some s", line.rstrip()) for line in text.splitlines()]

    for block in after:
        if block.language == "text" and not block.title:
            assert set(lines(block.text)) <= set(lines(said)), said


def test_every_exception_is_one_that_is_known() -> None:
    for page in PAGES:
        text = (DOCS / page).read_text(encoding="utf-8")
        noted = re.findall(r"<!-- (needs|not run): (.*?) -->", text)
        kept = [(block.exception, block.why) for block in blocks_of(page) if block.exception]
        assert noted == kept, f"{page}: a comment that stands before no block"
        assert all(why == "kafka" for exception, why in kept if exception == "needs")
        assert len(re.findall(r"^```\w", text, re.MULTILINE)) == len(blocks_of(page))


def test_few_blocks_are_not_run() -> None:
    blocks = [block for page in PAGES for block in blocks_of(page) if block.language in ("sh", "python")]
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
    assert 'id="causet.spark.delivering.deliver"' in reference
    for execution in re.findall(r'src="(executions/[^"]+)"', (site / "index.html").read_text()):
        assert (site / execution).stat().st_size > 10_000

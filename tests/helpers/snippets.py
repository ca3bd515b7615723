"""Commands and snippets in documents, run as they stand.

The snippets of a page run from top to bottom in one folder of their own. A block with a title is written to a
file of that name. Lines `causet …` run in this process, in its one Spark, without `--follow`, which has no
end; other shell blocks run in a shell. A comment that ends with `exit code 1` says what is expected where
that is not 0. A comment in front of a block makes an exception: `<!-- needs: kafka -->` runs it with a broker
of the test's own in place of localhost:9092, `<!-- not run: why -->` has only its options or syntax checked.
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
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from causet.cli import cli
from tests.helpers.places import ROOT

BLOCK = re.compile(
    r"^(?:<!-- (needs|not run): ([^>]*) -->\n)?```(\w+)(?: title=\"([\w.-]+)\")?\n(.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
COMMENT = re.compile(r"\s+#.*")
EXIT = re.compile(r"#.*\bexit code (\d)$")
BROKER = "localhost:9092"


@dataclass(frozen=True)
class Block:
    exception: str
    """`needs`, `not run`, or nothing"""
    why: str
    language: str
    title: str
    text: str


def blocks_of(page: Path) -> list[Block]:
    return [Block(*found) for found in BLOCK.findall(page.read_text(encoding="utf-8"))]


class Page:
    """The folder in which a page's snippets run, and what they have defined."""

    def __init__(self, path: Path, folder: Path, broker: str, names: Mapping[str, Any] | None = None) -> None:
        self.name = path.name
        self.blocks = blocks_of(path)
        self.folder = folder
        self.broker = broker
        self.names: dict[str, Any] = {"__name__": "__main__", **(names or {})}
        self.said = ""
        """what the last snippet printed"""

    def run_all(self) -> None:
        """If text stands behind a snippet, that is what it printed, line by line, or some lines of it."""
        for position, block in enumerate(self.blocks):
            self.run(block)
            if block.exception != "not run" and not block.title and block.language in ("sh", "python"):
                for after in self.blocks[position + 1 : position + 2]:
                    if after.language == "text" and not after.title:
                        assert set(_lines(after.text)) <= set(_lines(self.said)), self.said

    def run(self, block: Block) -> None:
        text = block.text.replace(BROKER, self.broker)
        if block.exception == "not run":
            check(block)
        elif block.title:
            (self.folder / block.title).write_text(text, encoding="utf-8")
        elif block.language == "python":
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(compile(text, self.name, "exec"), self.names)
            self.said = out.getvalue()
        elif block.language == "sh" and all(line.startswith("causet ") for line in text.splitlines()):
            whole = ""
            for line in text.splitlines():
                self._command(line)
                whole += self.said
            self.said = whole
        elif block.language == "sh":
            self._shell(text)

    def expected(self, line: str) -> int:
        """The exit code of a command."""
        found = EXIT.search(line)
        return int(found[1]) if found else 0

    def _command(self, line: str) -> None:
        code, self.said = run_command(line)
        assert code == self.expected(line), f"{line}\n{self.said}"

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


def run_command(line: str) -> tuple[int, str]:
    """Run `causet …` in this process: its exit code, and what it says."""
    words = [word for word in shlex.split(COMMENT.sub("", line))[1:] if word != "--follow"]
    with contextlib.redirect_stdout(io.StringIO()) as out:
        code = cli.main(words, standalone_mode=False)
    return int(code or 0), out.getvalue()


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
        elif words[0] == "make":
            assert re.search(f"^{words[1]}:", (ROOT / "Makefile").read_text(), re.MULTILINE), line
        else:
            assert words[:2] == ["pip", "install"], line


def _lines(text: str) -> list[str]:
    return [re.sub(r"\b\d+ s\b", "some s", line.rstrip()) for line in text.splitlines()]

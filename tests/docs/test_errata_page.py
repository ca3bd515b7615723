"""docs/errata.md shows what the schedules do: each drawing on the page is drawn again and compared.

Run this file to bring the drawings up to date: python -m tests.docs.test_errata_page
"""

from __future__ import annotations

import re
from pathlib import Path

from causet.protocols import ERRATA as ROWS
from causet.protocols import PROTOCOLS, REMARKS
from tests.helpers.exhibits import ERRATA, drawing
from tests.helpers.places import ROOT

PAGE = ROOT / "docs" / "errata.md"
COMMAND = re.compile(r"causet replay (\S+) --protocol (\S+)(?: --as-printed (\S+))?")
EXHIBIT = re.compile(rf"```sh\n({COMMAND.pattern})\n```\n\n```text\n(.*?)```", re.DOTALL)


def drawn_again(page: str) -> str:
    """The page with every drawing made anew from the schedule and the command above it."""

    def draw(match: re.Match[str]) -> str:
        command, path, protocol, rows, _ = match.groups()
        assert (ROOT / path).is_file(), path
        picture = drawing(Path(path).stem, protocol, rows.split(",") if rows else [])
        return f"```sh\n{command}\n```\n\n```text\n{picture}\n```"

    return EXHIBIT.sub(draw, page)


def test_every_drawing_on_the_page_is_what_its_schedule_gives() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert drawn_again(page) == page, "run python -m tests.docs.test_errata_page, and read what has changed"


def test_every_command_on_the_page_has_its_drawing() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert len(COMMAND.findall(page)) == len(EXHIBIT.findall(page))


def test_every_row_has_its_chapter_and_every_schedule_its_command() -> None:
    page = PAGE.read_text(encoding="utf-8")
    chapters = re.findall(r"^### ([A-Z]\d+): ", page, re.MULTILINE)
    assert sorted(chapters) == sorted([*ROWS, *REMARKS])
    shown = {Path(path).name for path, _, _ in COMMAND.findall(page)}
    assert shown == {path.name for path in ERRATA.glob("*.yaml")}


def test_every_schedule_says_which_row_and_which_protocol_it_shows() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for path, protocol, rows in COMMAND.findall(page):
        row = Path(path).stem.partition("-")[0]
        assert row in (*PROTOCOLS[protocol].errata, *REMARKS)
        assert rows in ("", row)
        header = [line for line in (ROOT / path).read_text(encoding="utf-8").splitlines() if line[:1] == "#"]
        assert header[0].startswith(f"# {row}: {protocol}")
        assert any("By default" in line for line in header)


def test_every_row_without_a_printed_variant_names_a_test_or_has_a_schedule() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for row in REMARKS:
        [chapter] = re.findall(rf"^### {row}: .*?(?=^##)", page, re.MULTILINE | re.DOTALL)
        tests = re.findall(r"`(tests/\S+\.py)`, `(test_\w+)`", chapter)
        assert tests or f"schedules/errata/{row}.yaml" in chapter
        for path, name in tests:
            assert f"def {name}(" in (ROOT / path).read_text(encoding="utf-8")


if __name__ == "__main__":
    PAGE.write_text(drawn_again(PAGE.read_text(encoding="utf-8")), encoding="utf-8")

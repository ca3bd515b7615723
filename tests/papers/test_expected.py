"""What the schedules of `schedules/` lead to is what the files beside them say, step by step.

The files are judged by the papers when they are written; the tests of each paper say why.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from causet.protocols import ERRATA as ROWS
from causet.protocols import REMARKS
from tests.helpers.exhibits import ERRATA, FIGURES
from tests.helpers.expected import comments, runs, schedules, written_again

SCHEDULES = [pytest.param(path, id=path.stem) for path in schedules()]
HOW = "read what differs and judge it by the paper; if it is right, run python -m tests.helpers.expected"
OF_THE_PAPER = {
    "macedo-1": ["slow", "fast", "relative"],
    "macedo-2": ["slow"],
    "macedo-3": ["fast", "relative"],
    "raynal-1": ["matrix"],
    "rodrigues-4.1": ["histories"],
}


@pytest.mark.parametrize("path", SCHEDULES)
def test_a_schedule_leads_to_what_the_file_beside_it_says(path: Path) -> None:
    text = path.with_suffix(".expected").read_text(encoding="utf-8")
    assert runs(text)
    assert written_again(path, text) == text, HOW


@pytest.mark.parametrize("path", SCHEDULES)
def test_an_expected_outcome_names_the_section_that_it_shows(path: Path) -> None:
    paper, _, _ = comments(path.with_suffix(".expected").read_text(encoding="utf-8")).partition(":")
    assert any(name in paper for name in ("Rodrigues", "Macedo", "Sanchez", "Raynal", "Kulkarni"))


def test_every_row_of_the_errata_is_replayed_as_printed_and_as_corrected() -> None:
    replayed = set()
    for path in ERRATA.glob("*.yaml"):
        row = path.stem.partition("-")[0]
        both = runs(path.with_suffix(".expected").read_text(encoding="utf-8"))
        assert [each for _, each in both] == ([""] if row in REMARKS else [row, ""])
        replayed.add(row)
    assert sorted(replayed - set(REMARKS)) == list(ROWS)


def test_every_figure_is_replayed_under_the_protocols_of_its_paper() -> None:
    for path in FIGURES.glob("*.yaml"):
        text = path.with_suffix(".expected").read_text(encoding="utf-8")
        assert runs(text) == [(protocol, "") for protocol in OF_THE_PAPER[path.stem]]


def test_no_expected_outcome_is_left_without_its_schedule() -> None:
    beside = {path.with_suffix(".yaml") for folder in (FIGURES, ERRATA) for path in folder.glob("*.expected")}
    assert beside == set(schedules())

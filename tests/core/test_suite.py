"""The tests themselves: what they share stands in `tests/helpers`, so that a test module can be read and run
alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.helpers.places import ROOT

TESTS = ROOT / "tests"


def imported_tests(file: Path) -> Iterator[str]:
    """The names that a file imports from test modules, each with its module."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        yield from (name for name in names if name.startswith("tests.") and ".test_" in name)


def test_no_test_module_is_a_library_of_another() -> None:
    """Only mutants take tests from elsewhere, since these are what they must not survive; and only tests."""
    found = []
    for file in sorted(TESTS.rglob("*.py")):
        is_mutants = file.parent.name == "mutants"
        for name in imported_tests(file):
            if not (is_mutants and name.rpartition(".")[2].startswith("test_")):
                found.append(f"{file.relative_to(ROOT)} imports {name}")
    assert found == []

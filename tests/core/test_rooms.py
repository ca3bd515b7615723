"""The rooms of the house and their doors: who imports whom.

Read from the sources, so imports inside functions and those for types only count as well.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import causet
from tests.helpers.places import ROOT

HOME = Path(causet.__file__).parent
CONTRIBUTING = ROOT / "CONTRIBUTING.md"
MOST_MODULES = 20
MOST_LINES = 450
"""In one folder."""
TABLE = re.compile(r"^\| (`[^|]*`) \| ", re.MULTILINE)


def rooms(heading: str) -> list[list[str]]:
    """The rows of a table of rooms in CONTRIBUTING: in each, rooms on one floor."""
    text = CONTRIBUTING.read_text()
    begin = text.index(f"\n{heading}\n")
    section = text[begin : text.index("\n## ", begin + 4)]
    rows = [re.findall(r"`([^`]+)`", row) for row in TABLE.findall(section)]
    return [[name.rstrip("/").replace("/", ".") for name in row] for row in rows]


def modules() -> Iterator[tuple[str, Path]]:
    for file in sorted(HOME.rglob("*.py")):
        parts = file.relative_to(HOME).with_suffix("").parts
        yield ".".join(part for part in parts if part != "__init__"), file


NAMES = {name for name, _ in modules()}


def imports(file: Path) -> Iterator[tuple[str, int]]:
    """The modules of this package that a file imports, wherever in it, each with its line."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0 and node.module, f"{file}:{node.lineno}: imports are absolute"
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield (whole if whole.removeprefix("causet.") in NAMES else node.module), node.lineno


def inside() -> Iterator[tuple[str, str, str]]:
    """Importing module, imported module, and where."""
    for name, file in modules():
        for wanted, line in imports(file):
            if wanted == "causet" or wanted.startswith("causet."):
                yield name, wanted.removeprefix("causet").removeprefix("."), f"{file}:{line}"


EDGES = list(inside())
FLOORS = [room for row in rooms("## The rooms") for room in row]
LEVEL = {room: level for level, row in enumerate(rooms("## The rooms")) for room in row}


def room_of(module: str) -> str | None:
    """The innermost room that a module stands in."""
    while module and module not in LEVEL:
        module = module.rpartition(".")[0]
    return module or None


def test_every_module_stands_in_a_room_and_every_room_is_there() -> None:
    assert [room for room in FLOORS if room not in NAMES] == []
    homeless = [name for name in NAMES if name not in ("", "__main__", "spark") and room_of(name) is None]
    assert homeless == []


def test_a_room_imports_only_from_rooms_above_it() -> None:
    wrong = []
    for name, wanted, where in EDGES:
        here, there = room_of(name), room_of(wanted)
        if name in ("", "spark") or here is None or there is None or here == there:
            continue  # the public names of a package stand before its rooms
        if LEVEL[there] > LEVEL[here]:
            wrong.append(f"{where}: {here} imports {there}")
    assert wrong == []


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Imports inside functions included."""
    above: dict[str, set[str]] = {name: set() for name in NAMES}
    for name, wanted, _ in EDGES:
        if name not in ("", "spark") and wanted in NAMES and wanted != name:
            above[name].add(wanted)
    done: set[str] = set()
    path: list[str] = []

    def walk(name: str) -> None:
        assert name not in path, f"a circle: {' → '.join([*path[path.index(name) :], name])}"
        if name in done:
            return
        path.append(name)
        for wanted in sorted(above[name]):
            walk(wanted)
        path.pop()
        done.add(name)

    for name in sorted(NAMES):
        walk(name)


@pytest.mark.parametrize("folder", sorted({file.parent for _, file in modules()}), ids=lambda path: path.name)
def test_a_folder_has_room_for_few_modules(folder: Path) -> None:
    count = len([file for file in folder.glob("*.py") if file.name != "__init__.py"])
    assert count <= MOST_MODULES


def test_a_module_has_one_job() -> None:
    sizes = {str(file): len(file.read_text().splitlines()) for _, file in modules()}
    assert {file: lines for file, lines in sizes.items() if lines > MOST_LINES} == {}

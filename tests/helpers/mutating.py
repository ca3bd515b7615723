"""A change to one line of one module, and that module made anew with it: a mutant."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, NamedTuple

import causet

HOME = Path(causet.__file__).parent
PLACES = [file.relative_to(HOME).with_suffix("").parts for file in HOME.rglob("*.py")]
"""Every module: the one table by which mutants find theirs."""


class Change(NamedTuple):
    module: str
    """room and name, such as `logs.levels`"""
    line: str
    becomes: str


@cache
def place_of(module: str) -> str:
    """The full name of a module below `causet`, from its room and name, so that it can move."""
    wanted = tuple(module.split("."))
    found = [wanted] if wanted in PLACES else [each for each in PLACES if each[-len(wanted) :] == wanted]
    assert len(found) == 1, f"{module}: {found}"
    return ".".join(found[0])


@cache
def source_of(module: str) -> str:
    return HOME.joinpath(*place_of(module).split(".")).with_suffix(".py").read_text()


@contextmanager
def modules(change: Change | None, names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """These modules anew, in plain Python, one of them changed; in the order in which they need each other.
    All others are used as they are."""
    made: dict[str, Any] = {}
    try:
        for name in names:
            module = _module(f"mutant.{place_of(name)}")
            changed = change if change is not None and change.module == name else None
            exec(_compiled(name, changed, tuple(names)), module.__dict__)
            made[name] = module
        yield made
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == "mutant"]:
            del sys.modules[name]


@cache
def _compiled(name: str, change: Change | None, names: tuple[str, ...]) -> CodeType:
    """The code of a module, maybe changed, which imports these modules as they are made anew."""
    source = source_of(name)
    if change is not None:
        assert source.count(change.line) == 1, change
        source = source.replace(change.line, change.becomes)
    source = re.sub(r"@njit\(.*\)\n", "", source)
    for other in map(place_of, names):
        source = source.replace(f"from causet.{other} import", f"from mutant.{other} import")
    return compile(source, f"{name} (changed)", "exec")


def _module(name: str) -> ModuleType:
    """An empty module of that name, and the packages above it."""
    parent = name.rpartition(".")[0]
    if parent and parent not in sys.modules:
        _module(parent)
    sys.modules[name] = ModuleType(name)
    return sys.modules[name]

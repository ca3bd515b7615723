"""Each rule of the order in slabs, dropped or weakened: its borders or random logs must show it."""

from __future__ import annotations

import random
from functools import cache

import pytest

from tests.helpers.mutating import Change, modules
from tests.helpers.slabs import Log, Steps, random_log, reaches
from tests.kernels import test_slabs

MODULES = (
    "logs.windows",
    "logs.levels",
    "slabs.plan",
    "slabs.cut",
    "slabs.window",
    "slabs.order",
    "slabs.claims",
    "slabs.judge",
    "slabs.certificate",
)
SEEDS = 25
BORDERS = [
    getattr(test_slabs, name)
    for name in sorted(vars(test_slabs))
    if name.startswith("test_") and "steps" in getattr(test_slabs, name).__annotations__
]
"""Each a test of one rule, which takes the functions that it is about."""


def mutant(module: str, line: str, becomes: str, rule: str) -> object:
    return pytest.param(Change(module, line, becomes), id=rule)


MUTANTS = [
    mutant("slabs.plan", "BELOW, ABOVE = 1, 2", "BELOW, ABOVE = 0, 2", "no margin below"),
    mutant("slabs.plan", "BELOW, ABOVE = 1, 2", "BELOW, ABOVE = 1, 1", "half the margin above"),
    mutant(
        "slabs.plan",
        "moved = cut + reaches * self.reach",
        "moved = cut + reaches * self.reach + (reaches < 0)",
        "the margin below too narrow by one tick",
    ),
    mutant(
        "slabs.plan",
        "int(moved) - (reaches > 0)",
        "int(moved) - 2 * (reaches > 0)",
        "the margin above too narrow by one tick",
    ),
    mutant(
        "slabs.order",
        "events[begin:i] = tied[np.argsort(level[tied]",
        "events[begin:i] = tied[np.argsort(0 * level[tied]",
        "the level counts",
    ),
    mutant(
        "slabs.order",
        "mine = (view.time >= low) & (view.time < high)",
        "mine = (window.time >= low) & (window.time < high)",
        "a slab gives out what is repaired into it",
    ),
    mutant("slabs.order", "begin=window.below + earlier", "begin=window.below", "earlier events count"),
    mutant("slabs.order", "begin=window.below + earlier", "begin=earlier", "events before the window count"),
    mutant(
        "slabs.order",
        "correction=largest(view.time[home], window.time[home])",
        "correction=0",
        "corrections are looked at",
    ),
    mutant(
        "slabs.order",
        "stuck=len(window.time) - int(waiting.done.sum())",
        "stuck=0",
        "events that wait for a cycle are noticed",
    ),
    mutant("slabs.certificate", "return not verdict.repeated and not any", "return not any", "duplicates"),
    mutant(
        "slabs.certificate",
        "max([verdict.ahead, *(each.correction for each in done)])",
        "max([0, *(each.correction for each in done)])",
        "the certificate asks for causes ahead",
    ),
    mutant(
        "slabs.certificate",
        "max([verdict.ahead, *(each.correction for each in done)])",
        "verdict.ahead",
        "the certificate asks for corrections",
    ),
    mutant(
        "slabs.claims",
        "asked = np.flatnonzero((refers.cause == ABSENT) & home[refers.effect])",
        "asked = np.flatnonzero((refers.cause == ABSENT) & (refers.effect < 0))",
        "references that are not resolved are asked about",
    ),
    mutant("slabs.claims", "_keys(window, home, slab)", "_keys(window, ~home, slab)", "only homes define"),
    mutant(
        "slabs.judge", "above = home >= slab", "above = home > slab + 1", "a cause in a later slab is ahead"
    ),
    mutant("slabs.judge", "if drop > plan.reach:", "if drop < 0:", "a clock that is set back far shows"),
    mutant(
        "slabs.judge",
        "np.count_nonzero(first <= before)",
        "np.count_nonzero(first < 0)",
        "two events with one seq are duplicates",
    ),
    mutant(
        "slabs.judge",
        "np.count_nonzero(same != np.arange(len(same)))",
        "np.count_nonzero(same < 0)",
        "two ids are duplicates",
    ),
    mutant(
        "slabs.judge",
        "holes = np.flatnonzero(first > before + 1)",
        "holes = np.flatnonzero(first < 0)",
        "gaps",
    ),
    mutant("slabs.judge", " & (what != PARENT)", "", "parents of control events are missed, too"),
    mutant("slabs.judge", "lost = (home == ABSENT) & ~hidden", "lost = home == ABSENT", "control is hidden"),
    mutant("slabs.window", "plan.key ^ MESSAGES", "plan.key", "an id is no message"),
    mutant(
        "logs.windows",
        "guess < high and seq[guess] == wanted[i]",
        "guess < high",
        "an event is found where some before it are missing",
    ),
    mutant(
        "logs.windows",
        "or seq[last] + 1 != seq[e]",
        "or seq[last] == seq[e]",
        "a run has no holes",
    ),
    mutant(
        "logs.windows",
        "if seq[order[i]] < seq[order[i - 1]]:",
        "if seq[order[i]] < 0:",
        "events of a process are sorted",
    ),
    mutant(
        "logs.windows",
        "if low > begin and wanted[i] <= last[low - 1]:",
        "if low > begin:",
        "a seq behind a run is in no run",
    ),
]


@cache
def _logs() -> list[Log]:
    return [Log(random_log(random.Random(seed)), seed) for seed in range(100, 100 + SEEDS)]


def check(steps: Steps) -> None:
    """Borders first: they tell most of what is wrong in the shortest time."""
    for border in BORDERS:
        border(steps=steps)
    for seed, log in enumerate(_logs()):
        draw = random.Random(seed)
        for reach in draw.sample(sorted(reaches(log.largest)), 3):
            log.check(draw.choice([2, 7]), reach, 50, steps)


@pytest.mark.parametrize("change", MUTANTS)
def test_a_mutant_is_killed(change: Change) -> None:
    with modules(change, MODULES) as made, pytest.raises((AssertionError, IndexError, ValueError)):
        check(Steps(made))


def test_the_shipped_code_in_plain_python_survives() -> None:
    with modules(None, MODULES) as made:
        check(Steps(made))

"""The causal order of a log by its definition, and real logs to compare with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from causet.formats.causality import direct_causes
from causet.model import Event
from tests.helpers.places import TRACES

EVENTS = TRACES / "events"
real_traces = pytest.mark.skipif(not EVENTS.is_dir(), reason=f"the real traces are not at {EVENTS}")
LARGE = 200_000
"""Bytes of a trace, compressed, from which on `make soak` has it."""
SMALL_TRACES = [path for path in sorted(EVENTS.glob("*.jsonl.gz")) if path.stat().st_size < LARGE]


def each_real_trace(kept: Sequence[Path] = SMALL_TRACES) -> pytest.MarkDecorator:
    """A test of each of them; those that are not kept run with `make soak`."""
    paths = sorted(EVENTS.glob("*.jsonl.gz"))
    return pytest.mark.parametrize(
        "path",
        [
            pytest.param(path, id=path.name.split(".")[0], marks=() if path in kept else pytest.mark.soak)
            for path in paths
        ],
    )


class Defined(NamedTuple):
    id: str
    repaired: Any
    """None where no time is known"""
    level: int
    block: int


def by_definition(events: Sequence[Event]) -> list[Defined]:
    """The events in the order of positions: by (repaired, level, process, seq)."""
    causes = direct_causes(events)
    effects: list[list[int]] = [[] for _ in events]
    for effect, its_causes in enumerate(causes):
        for cause in its_causes:
            effects[cause].append(effect)
    left = [len(its_causes) for its_causes in causes]
    free = [number for number, count in enumerate(left) if not count]
    block, level, repaired = [0] * len(events), [0] * len(events), [float("-inf")] * len(events)
    while free:
        number = free.pop()
        event = events[number]
        own: Any = float("-inf") if event.time is None else event.time
        block[number] = 1 + max((block[cause] for cause in causes[number]), default=0)
        repaired[number] = max([own, *(repaired[cause] for cause in causes[number])])
        same = [cause for cause in causes[number] if repaired[cause] == repaired[number]]
        level[number] = 1 + max((level[cause] for cause in same), default=0)
        for effect in effects[number]:
            left[effect] -= 1
            if not left[effect]:
                free.append(effect)
    ranked = sorted(
        range(len(events)), key=lambda n: (repaired[n], level[n], events[n].process, events[n].seq)
    )
    times = [None if time == float("-inf") else time for time in repaired]
    return [Defined(events[n].id, times[n], level[n], block[n]) for n in ranked]

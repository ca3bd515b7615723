"""The causal order of a log by its definition, and real logs to compare with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from causet.formats.causality import direct_causes
from causet.model import Event
from tests.helpers.places import TRACES

EVENTS = TRACES / "events"
real_traces = pytest.mark.skipif(not EVENTS.is_dir(), reason=f"the real traces are not at {EVENTS}")


def by_definition(events: Sequence[Event]) -> list[tuple[str, int, Any]]:
    """(id, block, repaired) in the order of positions."""
    causes = direct_causes(events)
    effects: list[list[int]] = [[] for _ in events]
    for effect, its_causes in enumerate(causes):
        for cause in its_causes:
            effects[cause].append(effect)
    left = [len(its_causes) for its_causes in causes]
    free = [number for number, count in enumerate(left) if not count]
    block, repaired = [0] * len(events), [float("-inf")] * len(events)
    while free:
        number = free.pop()
        event = events[number]
        own: Any = float("-inf") if event.time is None else event.time
        block[number] = 1 + max((block[cause] for cause in causes[number]), default=0)
        repaired[number] = max([own, *(repaired[cause] for cause in causes[number])])
        for effect in effects[number]:
            left[effect] -= 1
            if not left[effect]:
                free.append(effect)
    ranked = sorted(
        range(len(events)), key=lambda n: (repaired[n], block[n], events[n].process, events[n].seq)
    )
    return [(events[n].id, block[n], None if repaired[n] == float("-inf") else repaired[n]) for n in ranked]

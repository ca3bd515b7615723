"""The order of a drawing, and the blocks on its axis, are those of the definition."""

from __future__ import annotations

import pytest

from causet.model import Event
from causet.view.payload import Drawing
from tests.helpers.logs import random_log, shuffled
from tests.helpers.orders import by_definition


def drawn(events: list[Event]) -> list[tuple[str, int]]:
    drawing = Drawing.of("a log", events)
    return [(event.id, block) for event, block in zip(drawing.events, drawing.blocks, strict=True)]


@pytest.mark.parametrize("seed", range(100))
def test_a_drawing_is_in_the_order_of_the_definition(seed: int) -> None:
    events = random_log(seed)
    assert drawn(shuffled(events, seed)) == [(each.id, each.block) for each in by_definition(events)]


def test_equal_times_go_by_the_causes_with_that_time_alone() -> None:
    times = {"a": (1, 1, 5), "b": (5, 5), "c": (5,)}
    events = [Event(p, seq, time=time) for p in times for seq, time in enumerate(times[p], start=1)]
    assert drawn(events) == [("a#1", 1), ("a#2", 2), ("a#3", 3), ("b#1", 1), ("c#1", 1), ("b#2", 2)]

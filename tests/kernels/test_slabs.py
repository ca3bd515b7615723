"""Causal order in slabs against its definition: on random logs, on real ones, and at the borders of windows.

Two things must hold for every plan. What the certificate accepts is the order; and a reach that is as large
as the largest correction is accepted, a smaller one is not.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from causet.formats.trace import read_trace
from causet.model import Event
from causet.slabs.cut import cut
from causet.slabs.plan import even_cuts
from causet.slabs.window import DELIVERY, PARENT
from tests.helpers.orders import EVENTS, real_traces
from tests.helpers.slabs import SHIPPED, Log, Sliced, Steps, as_table, in_slabs, plan_of, random_log, reaches

SLABS = (1, 2, 7, 64)


@pytest.mark.parametrize("seed", range(40))
def test_a_random_log(seed: int) -> None:
    draw = random.Random(seed)
    log = Log(random_log(draw), seed)
    wanted = sorted(reaches(log.largest))
    for slabs in draw.sample(SLABS, 2):
        for reach in draw.sample(wanted, 3):
            log.check(slabs, reach, draw.choice([1, 7, 50, 1_000]))


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(1_000, 1_500))
def test_many_random_logs(seed: int) -> None:
    draw = random.Random(seed)
    log = Log(random_log(draw), seed)
    for slabs in SLABS:
        for reach in reaches(log.largest):
            log.check(slabs, reach, draw.choice([1, 7, 50, 1_000]))


# ---------------------------------------------------------------- real logs


def timed(events: Sequence[Event]) -> list[Event]:
    """Those of the events that have a time; where none has, with clocks that are up to 1,000 events apart."""
    known = [event for event in events if event.time is not None]
    return known or [
        replace(event, time=number + crc32(event.process.encode()) % 1_000)
        for number, event in enumerate(events)
    ]


@real_traces
@pytest.mark.parametrize("path", sorted(EVENTS.glob("*.jsonl.gz")), ids=lambda path: path.name.split(".")[0])
def test_a_real_log(path: Path) -> None:
    log = Log(timed(read_trace(path)))
    assert log.largest is not None
    for slabs in SLABS:
        log.check(slabs, log.largest, 10_000)
    log.check(7, log.largest // 2, 10_000)
    log.check(7, 10 * log.largest + 100, 10_000)


# ---------------------------------------------------------------- borders

CUT, REACH = 1_000, 100


def at(*moments: tuple[str, int, Any]) -> list[Event]:
    """Events of as many processes, each with its time and the process of its cause."""
    return [
        Event(name, 1, time=time, parents=(f"{cause}#1",) if cause else ()) for name, time, cause in moments
    ]


def in_two(
    events: Sequence[Event], reach: int = REACH, own_ids: bool = False, steps: Steps = SHIPPED
) -> Sliced:
    plan = steps.plan.Plan((CUT,), reach, False, own_ids, 1)
    return in_slabs(as_table(events), plan, steps=steps)


def ids(found: Sliced) -> list[str]:
    return [f"{row['process']}{row['repaired']}" for row in found.rows.to_pylist()]


def test_an_event_that_is_moved_into_a_slab_from_its_very_border_is_given_out_there(
    steps: Steps = SHIPPED,
) -> None:
    found = in_two(at(("a", CUT, None), ("b", CUT - REACH, "a"), ("c", CUT - 1, None)), steps=steps)
    assert found.certain and ids(found) == ["c999", "a1000", "b1000"]


def test_a_cause_that_is_two_reaches_ahead_of_its_effect_shows_that_the_reach_is_too_small(
    steps: Steps = SHIPPED,
) -> None:
    """Each step is as large as the reach, both together are not."""
    first = CUT - 1
    chain = at(("a", first + 2 * REACH, None), ("b", first + REACH, "a"), ("c", first, "b"))
    assert in_two(chain, steps=steps).correction == 2 * REACH
    assert not in_two(chain, steps=steps).certain
    assert in_two(chain, 2 * REACH, steps=steps).certain


def test_a_single_cause_far_ahead_shows_that_the_reach_is_too_small(steps: Steps = SHIPPED) -> None:
    """Its effect's window does not have it: the claims of both slabs together tell."""
    found = in_two(at(("a", CUT + 2 * REACH + 1, None), ("b", CUT - 1, "a")), steps=steps)
    assert found.correction == 0 and found.verdict.ahead > REACH and not found.certain


def test_a_process_whose_clock_is_set_back_by_more_than_the_reach_shows_it_too(
    steps: Steps = SHIPPED,
) -> None:
    log = [Event("p", 1, time=CUT + 3 * REACH), Event("p", 2, time=CUT - 1)]
    found = in_two(log, steps=steps)
    assert found.correction == 0 and found.verdict.ahead == 3 * REACH + 1 and not found.certain


def test_a_cause_behind_the_window_changes_nothing(steps: Steps = SHIPPED) -> None:
    found = in_two(at(("a", 0, None), ("b", CUT + 5, "a"), ("c", CUT, None)), steps=steps)
    assert found.certain and ids(found) == ["a0", "c1000", "b1005"]


def test_a_cycle_across_slabs_is_found(steps: Steps = SHIPPED) -> None:
    log = at(("a", CUT - 1, "b"), ("b", CUT + 1, "a"))
    assert in_two(log, steps=steps).stuck and not in_two(log, steps=steps).certain
    assert not in_two(log, 0, steps=steps).certain


def test_a_cycle_that_is_wider_than_its_windows_shows_that_the_reach_is_too_small(
    steps: Steps = SHIPPED,
) -> None:
    log = at(("a", 0, "b"), ("b", 2 * CUT, "a"))
    found = in_two(log, steps=steps)
    assert not found.stuck and found.verdict.ahead and not found.certain
    assert in_two(log, 3 * CUT, steps=steps).stuck


def test_floats_may_be_further_apart_than_any_float_without_a_warning() -> None:
    times = (-1.7e308, 1.7e308, -1.7e308, 1.7e308)
    log = Log([Event("p", seq, time=time) for seq, time in enumerate(times, 1)])
    with np.errstate(over="raise"):
        log.check(3, math.inf, 10)


def test_ties_are_ordered_by_level_process_and_seq(steps: Steps = SHIPPED) -> None:
    """All at one time, and every event is a cause of one of a process with a smaller name."""
    log = at(("d", CUT, None), ("c", CUT, "d"), ("b", CUT, "c"), ("a", CUT, "b"), ("e", CUT, None))
    assert ids(in_two(log, steps=steps)) == ["d1000", "e1000", "c1000", "b1000", "a1000"]


def test_faults_are_named_by_process_and_seq(steps: Steps = SHIPPED) -> None:
    log = [
        Event("p", 2, time=0, parents=("q#1", "x#7")),
        Event("p", 6, time=CUT, parents=("nobody",)),
        Event("q", 1, kind="deliver", message="m", time=CUT + 1),
    ]
    found = in_two(log, steps=steps).verdict
    assert (found.holes, found.first_holes) == (2, [("p", 1, 1), ("p", 3, 5)])
    assert found.first_lost == {PARENT: [("p", 2, 1), ("p", 6, 0)], DELIVERY: [("q", 1, 0)]}


def test_duplicates_are_counted_wherever_they_are(steps: Steps = SHIPPED) -> None:
    twice = [Event("p", 1, time=0), Event("p", 1, time=2 * CUT, id="other")]
    assert in_two(twice, steps=steps).verdict.repeated and not in_two(twice, steps=steps).certain
    same_id = [Event("p", 1, time=0, id="x"), Event("q", 1, time=2 * CUT, id="x")]
    assert in_two(same_id, own_ids=True, steps=steps).verdict.repeated == 1
    sent = [
        Event(name, 1, kind="send", message="m", to=("r",), time=time)
        for name, time in (("p", 0), ("q", 2000))
    ]
    assert in_two(sent, steps=steps).verdict.repeated == 1


def test_an_id_and_a_message_may_be_the_same_text(steps: Steps = SHIPPED) -> None:
    log = [
        Event("p", 1, kind="send", message="x", to=("q",), id="y", time=0),
        Event("q", 1, id="x", time=CUT),
    ]
    found = in_two(log, own_ids=True, steps=steps)
    assert found.certain and not found.verdict.repeated


def test_a_million_processes_with_one_event_each() -> None:
    count = 1_000_000
    numbers = np.arange(count)
    names = pa.array([f"p{number:07}" for number in numbers.tolist()])
    cause = pc.binary_join_element_wise(names.take(pa.array(np.maximum(numbers - 3, 0))), "1", "#")
    has = numbers % 2 == 1
    parents = pa.ListArray.from_arrays(pa.array(np.append(0, np.cumsum(has)), pa.int32()), cause.filter(has))
    time = numbers - 10 * has
    table = pa.table({"process": names, "seq": np.ones(count, np.int64), "parents": parents, "time": time})
    found = in_slabs(table, plan_of(table, 7, 10), batch=300_000)
    assert found.certain
    # An odd event has a time 10 before its number, and a cause, which is even, 3 before it.
    causes = np.where(has, np.maximum(numbers - 3, 0), -1)
    order = np.lexsort((numbers, time < causes, np.maximum(time, causes)))
    assert found.rows.column("process").equals(pa.chunked_array([names.take(pa.array(order))]))


def test_windows_of_more_slabs_share_the_work() -> None:
    """No slab sees much more than its part."""
    times = np.arange(64_000)
    table = pa.table({"process": ["p"] * len(times), "seq": times + 1, "time": times})
    plan = plan_of(table, 64, 100)
    seen: dict[int, int] = {}
    for piece in cut(table, plan):
        rows = (each.num_rows for each in (piece.rows, piece.above) if each is not None)
        seen[piece.slab] = sum(rows)
    assert len(seen) == 64 and max(seen.values()) <= 1.3 * len(times) / 64


def test_cuts_are_few_where_times_are() -> None:
    assert even_cuts(np.full(10, 5), 4) == (5,)
    assert even_cuts(np.arange(8), 4) == (2, 4, 6)
    assert even_cuts(np.empty(0, np.int64), 4) == ()

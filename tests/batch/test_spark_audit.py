"""`audit` and `assert_causally_ordered` on Spark against the slow definition; the names of the package."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import causet.spark
from causet.errors import BadInput
from causet.formats.causality import direct_causes
from causet.formats.trace import read_trace
from causet.model import Event
from causet.spark.batch import links as ends
from causet.spark.batch.assert_order import _place, assert_causally_ordered
from causet.spark.batch.audit import _skew, audit
from causet.spark.batch.audited import Audit, Pair, Tally
from causet.spark.batch.order import causal_order
from tests.helpers.logs import frame, many_logs, shuffled
from tests.helpers.places import TRACES

EVENTS = TRACES / "events"
real_traces = pytest.mark.skipif(not EVENTS.is_dir(), reason=f"the real traces are not at {EVENTS}")
LATE = {
    "db_elle_listappend": 147,
    "git_antidote_authors": 765,
    "irc_ubuntu_train": 0,
    "mpi_epoch8": 3138,
    "vc_chord": 274,
}
"""Parents that stand after their child in the file, as the description of these traces counts them."""


# ---------------------------------------------------------------- the definition


class Link(NamedTuple):
    cause: Event
    effect: Event
    place: int
    cause_place: int


def links_of(events: Sequence[Event]) -> list[Link]:
    """Every effect with each of its direct causes; events stand as they are given."""
    return [
        Link(events[cause], events[effect], effect, cause)
        for effect, causes in enumerate(direct_causes(events))
        for cause in sorted(set(causes))
    ]


def tally(links: list[Link], wrong: list[Link], tied: Sequence[Link] = ()) -> Tally:
    bad = {link.effect.id for link in wrong}
    return Tally(
        effects=len({link.effect.id for link in links}),
        links=len(links),
        wrong_effects=len(bad),
        wrong_links=len(wrong),
        tied_effects=len({link.effect.id for link in tied} - bad),
        tied_links=len(tied),
    )


def in_file(links: list[Link]) -> Tally:
    return tally(links, [link for link in links if link.cause_place > link.place])


def skew_of(link: Link) -> Any:
    """None unless both have a time."""
    if link.cause.time is None or link.effect.time is None:
        return None
    return link.cause.time - link.effect.time


def in_time(links: list[Link]) -> Tally:
    timed = [link for link in links if skew_of(link) is not None]
    tied = [link for link in timed if skew_of(link) == 0 and link.cause.process != link.effect.process]
    return tally(timed, [link for link in timed if skew_of(link) > 0], tied)


def pairs_of(links: list[Link]) -> list[Pair]:
    groups: dict[tuple[str, str], list[Link]] = {}
    for link in links:
        groups.setdefault((link.cause.process, link.effect.process), []).append(link)
    pairs = []
    for (cause, effect), some in groups.items():
        late = [link for link in some if (skew_of(link) or 0) > 0]
        worst = min(late, key=lambda link: (-skew_of(link), link.cause.seq, link.effect.seq), default=None)
        pairs.append(
            Pair(
                cause,
                effect,
                len(some),
                sum(link.cause_place > link.place for link in some),
                len(late),
                skew_of(worst) if worst else None,
                worst.cause.id if worst else None,
                worst.effect.id if worst else None,
            )
        )

    def badness(pair: Pair) -> tuple[Any, ...]:
        return (-pair.wrong_in_time, -(pair.worst_skew or 0), -pair.wrong_in_file, *pair[:2])

    return sorted(pairs, key=badness)


def check_against_definition(found: Audit, events: Sequence[Event]) -> list[Pair]:
    links = links_of(events)
    effects = len({link.effect.id for link in links})
    assert found.events == len(events)
    assert found.processes == len({event.process for event in events})
    assert (found.effects, found.links) == (effects, len(links))
    assert found.untimed == sum(event.time is None for event in events)
    assert found.in_file_order == in_file(links)
    assert found.in_time_order == in_time(links)
    assert found.in_causal_order == tally(links, [])
    pairs = [Pair(*row) for row in found.pairs.collect()]
    assert pairs == pairs_of(links)
    assert found.worst == tuple(pairs[:10])
    assert found.pair_count == len(pairs)
    assert found.wrong_pairs == sum(pair.wrong_in_file + pair.wrong_in_time > 0 for pair in pairs)
    return pairs


# ---------------------------------------------------------------- audit


@pytest.mark.parametrize("faults", [False, True])
def test_random_logs_are_counted_as_defined(
    spark: SparkSession, faults: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over many buckets, in the order of a column; ids are texts where there are faults."""
    monkeypatch.setattr(ends, "BUCKET", 8)
    events = shuffled(many_logs(range(20), faults))
    log = frame(spark, events, floats=not faults)
    rows = log.withColumn("line", F.monotonically_increasing_id()).repartition(3)
    found = audit(rows, file_order="line")
    check_against_definition(found, events)
    assert found.in_file_order.wrong_links > 50 < found.in_time_order.wrong_links
    assert {fault.kind for fault in found.faults} >= ({"gap in seq", "unknown parent"} if faults else set())


def test_an_audit_is_told_to_people_and_machines(spark: SparkSession) -> None:
    events = [
        Event("a", 1, "send", message="m", to=("b",), time=10),
        Event("b", 1, "receive", message="m", parents=("a#1",), time=7),
        Event("b", 2, time=7),
        Event("c", 1, parents=("b#2", "b#2", "gone"), time=7),
        Event("c", 2),
    ]
    found = audit(frame(spark, [events[1], *events[2:], events[0]]))
    assert found.in_time_order == Tally(3, 3, 1, 1, 1, 1)
    assert found.told().splitlines() == [
        "measured: events 5, processes 3, effects 4, links between cause and effect 4.",
        "In file order, 1 of 4 effects (25 %) stand before their cause.",
        "Sorted by time, 1 of 3 effects (33 %) would stand before their cause; 1 more might, as their cause "
        "has the same time.",
        "Events without a time, which take no part in that: 1.",
        "In causal order, 0 of 4 effects stand before their cause.",
        "The worst pairs of processes:",
        "  cause  effect  links  wrong in file  wrong in time  worst skew",
        '  a      b           1              1              1           3  "a#1" → "b#1"',
        "FAULT: unknown parent: 1",
        '  "c#1" names "gone"',
    ]
    value = json.loads(found.to_json())
    assert value["faults"] == [{"kind": "unknown parent", "count": 1, "places": ['"c#1" names "gone"']}]
    assert value["orders"]["time"]["share"] == 1 / 3
    assert [pair["cause_process"] for pair in value["pairs"]] == ["a", "b", "b", "c"]
    assert len(found.summary(most=1)["pairs"]) == 1


def test_the_audit_of_bad_input_says_why(spark: SparkSession) -> None:
    log = frame(spark, [Event("a", 1, parents=("b#1",)), Event("b", 1, parents=("a#1",))])
    with pytest.raises(BadInput, match="cycle"):
        audit(log)
    with pytest.raises(BadInput, match='no column "line"'):
        audit(log, file_order="line")
    with pytest.raises(BadInput, match="type string; it must be of integers"):
        audit(log, file_order="process")
    single = frame(spark, [Event("a", 1)]).withColumn("line", F.lit(None).cast("long"))
    with pytest.raises(BadInput, match='column "line": 1 events have nothing there'):
        audit(single, file_order="line")


def test_no_events_have_no_effects(spark: SparkSession) -> None:
    found = audit(frame(spark, []))
    assert (found.effects, found.links, found.in_time_order.share, found.worst) == (0, 0, 0.0, ())
    assert "0 of 0 effects" in found.told()


def test_skews_beyond_64_bits_are_the_largest() -> None:
    low, high = np.array([-(2**63) + 1, 3]), np.array([2**63 - 1, 5])
    assert _skew(high, low).tolist() == [2**63 - 1, 2]
    assert _skew(np.array([1e308]), np.array([-1e308])).tolist() == [np.finfo(np.float64).max]


def renamed(event: Event, name: str) -> Event:
    return replace(
        event,
        process=f"{name}/{event.process}",
        id=f"{name}/{event.id}",
        parents=tuple(f"{name}/{parent}" for parent in event.parents),
        message=None if event.message is None else f"{name}/{event.message}",
    )


@real_traces
def test_real_traces_are_counted_as_defined(spark: SparkSession) -> None:
    """All in one log, since they have nothing to do with each other."""
    events = [renamed(event, name) for name in LATE for event in read_trace(EVENTS / f"{name}.jsonl.gz")]
    pairs = check_against_definition(audit(frame(spark, events)), events)
    for name, late in LATE.items():
        between = [
            pair
            for pair in pairs
            if pair.cause_process != pair.effect_process and pair.cause_process.startswith(f"{name}/")
        ]
        assert sum(pair.wrong_in_file for pair in between) == late


# ---------------------------------------------------------------- the assertion


def lines_of(error: pytest.ExceptionInfo[AssertionError]) -> list[str]:
    return [line.strip() for line in str(error.value).splitlines()]


def expected_lines(events: Sequence[Event]) -> list[str]:
    wrong: dict[int, Link] = {}
    links = links_of(events)
    for link in links:
        if link.cause_place > max(link.place, wrong[link.place].cause_place if link.place in wrong else -1):
            wrong[link.place] = link
    lines = []
    for place, (cause, effect, _, cause_place) in sorted(wrong.items())[:10]:
        reason = "parent"
        if cause.message is not None and cause.message == effect.message:
            reason = f'message "{cause.message}"'
        before = [e.seq for e in events if e.process == effect.process and e.seq < effect.seq]
        if cause.process == effect.process and cause.seq == max(before):
            reason = f'process order of "{effect.process}"'
        lines.append(
            f'row {place + 1:,}, "{effect.id}", stands before its cause in row {cause_place + 1:,}, '
            f'"{cause.id}" ({reason})'
        )
    effects = len({link.place for link in links})
    head = (
        f"not in causal order as they stand: {len(wrong):,} of {effects:,} effects do not stand behind their "
        "causes"
    )
    return [head, *lines, f"and {len(wrong) - 10:,} more"]


def test_rows_out_of_order_are_told_and_rows_in_order_pass(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ends, "BUCKET", 7)
    events = shuffled(many_logs(range(12)))
    log = frame(spark, events)
    with pytest.raises(AssertionError) as error:
        assert_causally_ordered(log)
    assert lines_of(error) == expected_lines(events)
    ordered = log.transform(causal_order()).persist()
    assert_causally_ordered(ordered)
    assert_causally_ordered(ordered.repartition(3), by="position")
    ordered.unpersist()


def two_rows(spark: SparkSession) -> DataFrame:
    events = [Event("a", 1), Event("b", 1, parents=("a#1", "lost"))]
    return frame(spark, events).withColumn("at", F.when(F.col("process") == "a", 2.5).otherwise(0.5))


def test_any_column_of_numbers_or_times_can_say_the_order(spark: SparkSession) -> None:
    log = two_rows(spark)
    with pytest.raises(AssertionError) as error:
        assert_causally_ordered(log, by="at")
    assert lines_of(error)[1:] == ['row 1, "b#1", stands before its cause in row 2, "a#1" (parent)']
    with pytest.raises(AssertionError, match="level with its cause in row 1, "):
        assert_causally_ordered(log.withColumn("day", F.lit("2020-01-01").cast("date")), by="day")
    moments = log.withColumn("moment", F.timestamp_seconds("at"))
    micros, kind = _place(moments, "moment")
    assert kind is np.int64
    assert [row[0] for row in moments.select(micros).collect()] == [2_500_000, 500_000]


def test_the_assertion_of_bad_input_says_why(spark: SparkSession) -> None:
    log = two_rows(spark)
    with pytest.raises(BadInput, match='no column "place"'):
        assert_causally_ordered(log, by="place")
    with pytest.raises(BadInput, match=r"type array<string>; it must be of numbers or times"):
        assert_causally_ordered(log, by="parents")
    with pytest.raises(BadInput, match='column "time": 2 rows have nothing there'):
        assert_causally_ordered(log, by="time")
    with pytest.raises(BadInput, match="two events have process"):
        assert_causally_ordered(log.union(log))


# ---------------------------------------------------------------- the package


@pytest.mark.parametrize("name", causet.spark.__all__)
def test_names_of_the_package_are_functions_and_no_modules(name: str) -> None:
    """A module of that name would take the function's place when it is imported."""
    assert find_spec(f"causet.spark.{name}") is None
    found = getattr(import_module("causet.spark"), name)
    assert callable(found) and found.__name__ == name
    assert name in dir(causet.spark)


def test_a_session_starts_without_the_kernels() -> None:
    code = (
        "import sys, causet.spark.start.session; "
        "print(*(name for name in ('numba', 'numpy', 'pyarrow') if name in sys.modules))"
    )
    told = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert told.stdout.strip() == ""


def test_other_names_are_not_in_the_package() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = causet.spark.nothing

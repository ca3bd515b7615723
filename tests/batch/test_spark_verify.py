"""`verify` on Spark against the oracle: the same violations, the same chains, the same of everything else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from causet.check.explorer import explore
from causet.check.oracle import judge
from causet.check.scopes import scopes_for
from causet.errors import BadInput
from causet.formats.causality import check_acyclic
from causet.model import Event, System, named_processes
from causet.protocols import make_options, protocol_named
from causet.simulate.network import simulate
from causet.simulate.record import Recorder
from causet.simulate.replay import replay
from causet.simulate.workload import Workload, delay_of
from causet.spark.batch import verify as verification
from causet.spark.batch.verify import Verdict, verify
from causet.spark.skeleton import skeleton
from causet.spark.skeleton.census import take_census
from causet.topology import groups_of
from tests.helpers.logs import frame, many_logs, mutated, random_log, shuffled, together
from tests.helpers.runs import random_execution


def pairs(table: DataFrame) -> list[tuple[str, str]]:
    return [(row.process, row.message) for row in table.collect()]


def violations(verdict: Verdict) -> list[tuple[str, str, str, tuple[str, ...]]]:
    return [(v.process, v.delivered, v.before, tuple(v.because or ())) for v in verdict.violations.collect()]


def check_against_oracle(verdict: Verdict, events: list[Event]) -> None:
    expected = judge(events)
    told = [(v.process, v.delivered, v.before, v.because) for v in expected.violations]
    assert violations(verdict) == told
    known = [pair for pair in expected.duplicates if pair not in expected.unsent]
    assert pairs(verdict.duplicates) == sorted(known)
    assert pairs(verdict.strangers) == sorted(expected.strangers)
    assert pairs(verdict.undelivered) == sorted(expected.undelivered)
    assert verdict.counts["violations"] == len(expected.violations)
    assert verdict.status == expected.status
    assert (verdict.events, verdict.messages, verdict.deliveries) == (
        expected.events,
        expected.messages,
        expected.deliveries,
    )
    faults = {fault.kind: fault.count for fault in verdict.faults}
    assert faults.get("gap in seq", 0) == len(expected.gaps)
    assert faults.get("unknown parent", 0) == len(expected.unknown_parents)


def test_random_logs_are_judged_as_the_oracle_judges_them(spark: SparkSession) -> None:
    events = many_logs(range(120))
    assert len(judge(events).violations) > 100
    verdict = verify(frame(spark, shuffled(events)).repartition(3), chains=10**6)
    check_against_oracle(verdict, events)
    assert verdict.disagreements is None  # not asked for


def test_own_copies_and_one_order_are_judged_as_the_oracle_judges_them(spark: SparkSession) -> None:
    """Many logs as one: those without one order are contradictory each by itself."""
    events = many_logs(range(200, 260))
    own = [e for e in events if e.kind == "deliver" and not e.control]
    senders = {e.message: e.process for e in events if e.kind == "send"}
    assert sum(senders.get(e.message) == e.process for e in own) > 20
    verdict = verify(frame(spark, shuffled(events)).repartition(3), one_order=True)
    expected = judge(events)
    assert verdict.disagreements is not None and len(verdict.disagreements) > 10
    assert len(verdict.disagreements) == len(expected.disagreements)
    orders: dict[str, list[str]] = {}
    for event in sorted(events, key=lambda e: (e.process, e.seq)):
        if event.kind == "deliver":
            orders.setdefault(event.process, []).append(event.message or "")
    for each in verdict.disagreements:
        for process, one, other in zip(
            each.processes, each.cycle, each.cycle[1:] + each.cycle[:1], strict=True
        ):
            assert orders[process].index(one) < orders[process].index(other)
    assert verdict.status == "invalid"


def test_a_run_of_the_merge_has_one_order_and_one_of_vector_has_none(spark: SparkSession) -> None:
    for name, agree in (("merge", True), ("vector", False)):
        kind = protocol_named(name)
        system = System(named_processes(4), groups_of("all", 4, 1))
        options, _ = make_options(kind, system, {})
        events: list[Event] = []
        workload = Workload(system, 60, 1.0, delay_of("exp:1"), 3, own_copies=True)
        simulate(kind, options, workload, observers=[Recorder(system, events.append)])
        verdict = verify(frame(spark, [replace(each, time=None) for each in events]), one_order=True)
        assert (verdict.status, verdict.disagreements == ()) == ("valid" if agree else "invalid", agree)
        assert verdict.deliveries == 60 * 4 and verdict.counts["strangers"] == 0


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.soak), 2])
def test_one_log_is_judged_as_the_oracle_judges_it(spark: SparkSession, seed: int) -> None:
    events = random_log(1000 + seed, faults=seed > 1)
    check_against_oracle(verify(frame(spark, shuffled(events)), chains=10**6), events)


@pytest.mark.parametrize("seeds", [range(40), pytest.param(range(40, 80), marks=pytest.mark.soak)])
def test_many_findings_are_settled_by_the_workers_as_few_are_by_the_driver(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, seeds: range
) -> None:
    monkeypatch.setattr(skeleton, "SMALL", 0)
    monkeypatch.setattr(verification, "FEW", 0)
    events = many_logs(seeds)
    assert judge(events).duplicates and judge(events).strangers and judge(events).undelivered
    check_against_oracle(verify(frame(spark, shuffled(events)).repartition(3), chains=10**6), events)


@pytest.mark.parametrize("small", [0, 1 << 20], ids=["several tasks", "one task"])
def test_the_columns_of_senders_may_be_spread_over_tasks_at_will(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, small: int
) -> None:
    monkeypatch.setattr(skeleton, "SMALL", small)
    monkeypatch.setattr(verification, "MOST_TARGETS", 20)
    events = many_logs(range(12))
    rows = frame(spark, shuffled(events))
    _, census = take_census(rows, targets=True)
    groups = verification.column_groups(census)
    assert len(groups) > 5
    assert sorted(number for group in groups for number in group) == [
        number for number, sends in enumerate(census.sends) if sends
    ]
    check_against_oracle(verify(rows, chains=10**6), events)


PROTOCOLS_WITH_MESSAGES = ("matrix", "histories", "slow", "optimal", "fifo", "none")


@pytest.mark.parametrize("runs_each", [3, pytest.param(6, marks=pytest.mark.soak)])
def test_simulated_and_mutated_executions_are_judged_as_the_oracle_judges_them(
    spark: SparkSession, runs_each: int
) -> None:
    runs = [
        random_execution(name, seed).events
        for name in PROTOCOLS_WITH_MESSAGES
        for seed in range(1000, 1000 + runs_each)
    ]
    # A mutated log may have a cycle, which is bad input and has tests of its own.
    changed = [events for number, run in enumerate(runs) if is_execution(events := mutated(run, number))]
    assert len(changed) > len(runs) / 2
    events = together([*runs, *changed])
    expected = judge(events)
    assert len(expected.violations) > 30 * runs_each and expected.duplicates and expected.strangers
    log = frame(spark, shuffled(events), floats=True).repartition(3)
    check_against_oracle(verify(log, chains=10**6), events)


def is_execution(events: Sequence[Event]) -> bool:
    try:
        check_acyclic(events)
    except BadInput:
        return False
    return True


COUNTER_EXAMPLES: list[tuple[str, str | None, dict[str, Any]]] = [
    ("fifo", None, {}),
    ("none", None, {}),
    ("histories", "H1", {}),
    ("histories", "H3", {}),
    ("relative", "M1", {"groups": "twins"}),
    ("bounded", "S5", {}),
]


def test_the_explorers_counter_examples_are_judged_as_the_oracle_judges_them(spark: SparkSession) -> None:
    executions = []
    for name, row, more in COUNTER_EXAMPLES:
        kind = protocol_named(name)
        for named in scopes_for(kind, 3, 3, as_printed=row, **more):
            report = explore(named.scope)
            if report.finding is not None and report.finding.kind == "unsafe":
                assert report.shortest is not None
                executions.append(replay(report.shortest, named.scope.kind, named.scope.options).events)
                break
    assert len(executions) >= len(COUNTER_EXAMPLES)
    events = together(executions)
    found = verify(frame(spark, shuffled(events), floats=True))
    assert len(violations(found)) >= len(executions)
    check_against_oracle(found, events)

"""`verify` on Spark against the oracle: the same violations, the same chains, the same of everything else."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame, SparkSession

from causet.check.oracle import judge
from causet.model import Event
from causet.spark.verification import Verdict, verify
from logs import frame, many_logs, random_log, shuffled


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


@pytest.mark.parametrize("seed", range(3))
def test_one_log_is_judged_as_the_oracle_judges_it(spark: SparkSession, seed: int) -> None:
    events = random_log(1000 + seed, faults=seed > 1)
    check_against_oracle(verify(frame(spark, shuffled(events)), chains=10**6), events)

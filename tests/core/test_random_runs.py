"""Hundreds of random runs of every protocol, judged by the oracle; many thousands in `make soak`.

Each seed is another system: 2 to 64 processes, another shape of groups, rate and delay, FIFO links or not,
duplicates or not; for histories also graphs with causal separators. The oracle reads the trace; the online
judge must say the same.
"""

from __future__ import annotations

import pytest

from causet.check.judge import Judge
from causet.check.oracle import Verdict, judge
from causet.model import System, named_processes
from causet.protocols import PROTOCOLS, Protocol, make_options
from causet.simulate.network import Tally, simulate
from causet.simulate.workload import Workload, delay_of
from tests.helpers.runs import random_execution

RUNS, CHUNK = 60, 30
SOAK_RUNS = 4000
CORRECT = [name for name, kind in PROTOCOLS.items() if kind.PROMISES.causal]


def random_run(name: str, seed: int) -> tuple[type[Protocol], object, Verdict, Judge, Tally]:
    kind, run = PROTOCOLS[name], random_execution(name, seed)
    verdict = judge(run.events, lost=run.lost, receptions_teach=kind.hears)
    return kind, run.options, verdict, run.judged, run.tally


def check(name: str, seed: int) -> None:
    kind, options, verdict, judged, tally = random_run(name, seed)
    where = f"{name}, seed {seed}"
    promises = kind.promises(options)
    assert verdict.messages == tally.messages, where
    assert verdict.violations == (), where
    if not promises.loss:  # the oracle alone judges runs in which messages are lost
        assert judged.findings.violations == 0, where
    assert verdict.duplicates == () and judged.findings.duplicates == 0, where
    assert verdict.strangers == () and verdict.unsent == (), where
    assert verdict.undelivered == () and tally.outstanding == 0, where
    assert tally.broken is None, where
    if promises.early:
        assert verdict.late == () and judged.findings.most_added == 0, where
    if promises.total:
        assert verdict.disagreements == (), where


@pytest.mark.parametrize(
    "chunk", [0, *(pytest.param(chunk, marks=pytest.mark.soak) for chunk in range(1, RUNS // CHUNK))]
)
@pytest.mark.parametrize("name", CORRECT)
def test_random_runs_are_in_causal_order_and_complete(name: str, chunk: int) -> None:
    for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        check(name, seed)


@pytest.mark.soak
@pytest.mark.parametrize("chunk", range(8))
@pytest.mark.parametrize("name", CORRECT)
def test_thousands_of_random_runs(name: str, chunk: int) -> None:
    for seed in range(10_000 + chunk * SOAK_RUNS // 8, 10_000 + (chunk + 1) * SOAK_RUNS // 8):
        check(name, seed)


@pytest.mark.parametrize("name", ["fifo", "none"])
def test_the_controls_are_caught_and_oracle_and_judge_count_the_same(name: str) -> None:
    caught = 0
    for seed in range(60):
        _, _, verdict, judged, _ = random_run(name, seed)
        assert len(verdict.violations) == judged.findings.violations
        caught += bool(verdict.violations)
    assert caught > 20


def test_a_matrix_that_sends_one_extra_message_at_a_time_breaks_its_bound() -> None:
    """S3: with the printed rule some matrix of 8 processes exceeds k = 9; with ours none does."""
    kind = PROTOCOLS["bounded"]
    system = System(named_processes(8))
    for rows, broken in ((["S3"], True), ([], False)):
        options, _ = make_options(kind, system, {"k": 9}, rows)
        tally, _ = simulate(kind, options, Workload(system, 1000, 1.0, delay_of("exp:1"), 1))
        assert (tally.broken is not None) == broken

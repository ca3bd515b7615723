"""Runs and their judgement: a simulated one as one value with a summary; a replay by the oracle."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from causet.check.agreement import Disagreement
from causet.check.judge import Findings, Judge
from causet.check.oracle import Verdict, judge
from causet.protocols import Options, Process, Protocol
from causet.simulate.network import Network, Tally, simulate
from causet.simulate.record import Observer
from causet.simulate.replay import Replay
from causet.simulate.workload import Workload


@dataclass(frozen=True, slots=True)
class Run:
    kind: type[Protocol]
    workload: Workload
    tally: Tally
    findings: Findings
    processes: tuple[Process, ...]
    disagreements: tuple[Disagreement, ...] | None = None
    """where processes disagree about one order; None if that was not judged"""

    @property
    def bad(self) -> bool:
        """Something that must not be happened."""
        tally, findings = self.tally, self.findings
        wrong = findings.violations or findings.duplicates or self.disagreements
        return bool(wrong or tally.outstanding or tally.broken)

    def why_stuck(self) -> str:
        """What one message that was never delivered waits for."""
        for process in self.processes:
            for line in process.waiting():
                return line
        return "it never arrived"

    def summary(self) -> dict[str, Any]:
        """The summary that `--json` prints."""
        tally, findings = self.tally, self.findings
        messages = max(tally.messages, 1)
        return {
            "protocol": self.kind.name,
            "processes": self.workload.system.size,
            "messages": tally.messages,
            "deliveries": tally.deliveries,
            "control_messages": tally.control,
            "lost": tally.lost,
            "refused": tally.refused,
            "faults": tally.faults,
            "stamp_entries_mean": round(tally.entries / messages, 3),
            "stamp_entries_max": tally.most_entries,
            "stamp_bytes_mean": round(tally.bytes / messages, 3),
            "stamp_bytes_max": tally.most_bytes,
            "added_delay_mean": round(findings.added / max(findings.judged, 1), 6),
            "added_delay_max": round(findings.most_added, 6),
            "violations": findings.violations,
            "first_violations": [violation._asdict() for violation in findings.first[:10]],
            "excused": findings.excused,
            "duplicates": findings.duplicates,
            "disagreements": None
            if self.disagreements is None
            else [each.record() for each in self.disagreements],
            "judged": findings.certain,
            "stuck": tally.outstanding,
            "broken": tally.broken,
            "states": None,
        }


def run(
    kind: type[Protocol],
    options: Options,
    workload: Workload,
    network: Network = Network(),  # noqa: B008 (frozen)
    *,
    one_order: bool = False,
    observers: Sequence[Observer] = (),
    progress: Callable[[int], None] | None = None,
) -> Run:
    """Simulate a workload under a protocol and judge the run; with `one_order` agreement, too."""
    witness = Judge(workload.system, kind.recovery(options), one_order=one_order)
    tally, processes = simulate(kind, options, workload, network, [witness, *observers], progress)
    return Run(kind, workload, tally, witness.findings, tuple(processes), witness.disagreements)


def judged(result: Replay, kind: type[Protocol]) -> Verdict:
    """What the oracle finds in a replay under a protocol."""
    return judge(
        result.events,
        lost=result.lost,
        receptions_teach=kind.hears,
        own=result.own,
        unmerged=result.unmerged,
    )

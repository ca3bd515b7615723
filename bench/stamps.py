"""How large stamps are and what else a protocol costs on the wire, over matrix clocks on the same messages.

Counted, not timed: entries and bytes of a message's stamp (the largest where each target has its own), the
delay that the protocol adds over as early as causality allows (in mean transit times), and control messages
per message. All is counted in the second half of a run, for stamps grow in the first.

A protocol that sends only to groups, or only to everybody, stands where it can run; `direct` has runs of
its own, with everybody as target, beside `matrix`. `bounded` runs with a tight bound and with its usual one,
k = n+1 and k = 4n: there the control messages are its extra messages.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from bench.cases import ALL, RING, UNICAST, able, workload_of
from bench.result import Result, Spoilt
from causet.check.judge import Findings, Judge
from causet.protocols import PROTOCOLS, Protocol, make_options
from causet.simulate.network import simulate
from causet.simulate.record import Observer, Sent
from causet.simulate.workload import Workload

SIZES = (4, 8, 16, 32)
PER_PROCESS, LEAST = 40, 1000
"""Messages per process, and in a run at least."""
REFERENCE = "matrix"


class Counted(NamedTuple):
    """Means over the messages of the second half."""

    entries: float
    bytes: float
    control: float
    added: float


class SecondHalf(Observer):
    """An observer that counts what comes after so many messages. Must be told after the judge."""

    def __init__(self, first: int, findings: Findings) -> None:
        self._first = first
        self._findings = findings
        self.messages = self.entries = self.bytes = self.control = 0
        self._judged, self._added = 0, 0.0

    def sent(self, sent: Sent, time: float) -> None:
        control = sent.packets[0].control
        if self._first:
            self._first -= not control
            self._judged, self._added = self._findings.judged, self._findings.added
        elif control:
            self.control += 1
        else:
            self.messages += 1
            self.entries += sent.entries
            self.bytes += sent.bytes

    def counted(self) -> Counted:
        delivered = self._findings.judged - self._judged
        added = (self._findings.added - self._added) / delivered
        entries, size, control = (x / self.messages for x in (self.entries, self.bytes, self.control))
        return Counted(entries, size, control, added)


def count(kind: type[Protocol], workload: Workload, settings: dict[str, Any]) -> Counted:
    options, _ = make_options(kind, workload.system, settings)
    judge = Judge(workload.system)
    counter = SecondHalf(workload.messages // 2, judge.findings)
    tally, _ = simulate(kind, options, workload, observers=[judge, counter])
    findings = judge.findings
    if kind.PROMISES.causal and (
        findings.violations or findings.duplicates or tally.outstanding or tally.broken
    ):
        raise Spoilt(f"{kind.name} with {workload.system.size} processes broke a promise: {tally} {findings}")
    return counter.counted()


def settings_of(kind: type[Protocol], size: int) -> list[dict[str, Any]]:
    return [{"k": size + 1}, {"k": 4 * size}] if kind.name == "bounded" else [{}]


def compare(size: int, shape: str, messages: int) -> Iterator[Result]:
    """Every protocol that can run this shape, at one size."""
    workload = workload_of(size, shape, messages)
    kinds = [kind for kind in PROTOCOLS.values() if able(kind, workload)]
    if shape == ALL:
        kinds = [kind for kind in kinds if kind.broadcast or kind.name == REFERENCE]
    reference = count(PROTOCOLS[REFERENCE], workload, {})
    for kind in kinds:
        for settings in settings_of(kind, size):
            found = reference if kind.name == REFERENCE else count(kind, workload, settings)
            name = " ".join([kind.name, *(f"{option} = {value}" for option, value in settings.items())])
            yield Result(
                "stamps",
                f"{name}, n = {size}, {shape}",
                found.bytes / reference.bytes,
                f"{found.bytes:,.1f} bytes, {found.entries:,.1f} entries, {found.control:.2f} control "
                f"messages each, {found.added:.2f} delay added",
                {
                    "protocol": kind.name,
                    **settings,
                    "processes": size,
                    "groups": shape,
                    "messages": messages,
                    "stamp_entries_mean": found.entries,
                    "stamp_bytes_mean": found.bytes,
                    "added_delay_mean": found.added,
                    "control_per_message": found.control,
                },
            )


def measure(sizes: tuple[int, ...], per_process: int, least: int) -> Iterator[Result]:
    for size in sizes:
        for shape in (UNICAST, RING, ALL):
            if shape == ALL and size == 4:
                continue  # there the ring is one group of all
            yield from compare(size, shape, max(least, per_process * size))


def results(quick: bool) -> Iterator[Result]:
    return measure(SIZES, 8, 80) if quick else measure(SIZES, PER_PROCESS, LEAST)

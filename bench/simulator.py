"""Events per second of the simulator with a trace, packed or not, or with the judge, over those without.

An event is a sending, a reception or a delivery: a line of the trace. The trace goes to a temporary file.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from bench.cases import RING, UNICAST, workload_of
from bench.result import Result, Spoilt
from bench.timing import best
from causet.check.judge import Judge
from causet.formats.trace import trace_writer
from causet.protocols import Packet, Protocol, make_options, protocol_named
from causet.simulate.network import simulate
from causet.simulate.record import Observer, Recorder, Sent
from causet.simulate.workload import Workload

SIZE = 16
CASES = (("none", UNICAST), ("vector", RING))
"""The least that a simulation can cost, and a protocol with numpy stamps and three copies of a message."""


class Counter(Observer):
    """Counts the events that a trace would have."""

    def __init__(self) -> None:
        self.events = 0

    def sent(self, sent: Sent, time: float) -> None:
        self.events += 1

    def received(self, process: int, packet: Packet, time: float) -> None:
        self.events += 1

    def delivered(self, process: int, packet: Packet, time: float) -> None:
        self.events += 1


def alone(kind: type[Protocol], workload: Workload) -> None:
    options, _ = make_options(kind, workload.system, {})
    simulate(kind, options, workload)


def judged(kind: type[Protocol], workload: Workload) -> None:
    options, _ = make_options(kind, workload.system, {})
    simulate(kind, options, workload, observers=[Judge(workload.system)])


def traced(kind: type[Protocol], workload: Workload, path: Path) -> None:
    options, _ = make_options(kind, workload.system, {})
    with trace_writer(path) as write:
        simulate(kind, options, workload, observers=[Recorder(workload.system, write)])


def count(kind: type[Protocol], workload: Workload) -> int:
    options, _ = make_options(kind, workload.system, {})
    counter = Counter()
    simulate(kind, options, workload, observers=[counter])
    return counter.events


def compare(protocol: str, shape: str, messages: int, repetitions: int) -> Iterator[Result]:
    kind = protocol_named(protocol)
    workload = workload_of(SIZE, shape, messages)
    events = count(kind, workload)
    with tempfile.TemporaryDirectory() as where:
        plain, packed = Path(where, "trace.jsonl"), Path(where, "trace.jsonl.gz")
        works: dict[str, Callable[[], None]] = {
            "alone": partial(alone, kind, workload),
            "trace": partial(traced, kind, workload, plain),
            "packed trace": partial(traced, kind, workload, packed),
            "judge": partial(judged, kind, workload),
        }
        taken = best(works, repetitions)
        lines = plain.read_bytes().count(b"\n")
    if lines != events:
        raise Spoilt(f"the trace of {protocol} has {lines} lines for {events} events")
    rates = {name: events / seconds for name, seconds in taken.items()}
    for name in ("trace", "packed trace", "judge"):
        yield Result(
            "simulator",
            f"{name}, {protocol}, {shape}",
            rates[name] / rates["alone"],
            f"{rates['alone']:,.0f} → {rates[name]:,.0f} events per second",
            {
                "with": name,
                "protocol": protocol,
                "processes": SIZE,
                "groups": shape,
                "messages": messages,
                "events": events,
                "events_per_second": rates[name],
                "events_per_second_alone": rates["alone"],
            },
        )


def results(quick: bool) -> Iterator[Result]:
    for protocol, shape in CASES:
        yield from compare(protocol, shape, 500 if quick else 2000, 3 if quick else 8)

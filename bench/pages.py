"""How large the page of an execution is, against the trace itself as it is written and as gzip makes it.

A simulated execution with receptions and deliveries; the built front end is counted by itself.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from time import perf_counter

from bench.cases import RING, workload_of
from bench.result import Result
from causet.check.runs import run
from causet.formats.trace import to_json
from causet.model import Event
from causet.protocols import PROTOCOLS, make_options
from causet.simulate.record import Recorder
from causet.view.page import page
from causet.view.payload import Drawing


def results(quick: bool) -> Iterator[Result]:
    return measure(1_000 if quick else 10_000)


def measure(messages: int) -> Iterator[Result]:
    workload = workload_of(16, RING, messages)
    kind = PROTOCOLS["relative"]
    options, _ = make_options(kind, workload.system, {})
    events: list[Event] = []
    run(kind, options, workload, observers=[Recorder(workload.system, events.append)])
    raw = "".join(to_json(event) + "\n" for event in events).encode()
    small = len(gzip.compress(raw))
    begin = perf_counter()
    drawing = Drawing.of("bench", events)
    made = len(page("view", "bench", [drawing]).encode())
    seconds = perf_counter() - begin
    empty = len(page("view", "bench", [Drawing.of("bench", events[:1])]).encode())
    each = (made - empty) / len(events)
    yield Result(
        "pages",
        "bytes of a page per event",
        (made - empty) / small,
        f"{len(events):,} events: {each:.1f} bytes each on the page, {small / len(events):.1f} as gzip, "
        f"{len(raw) / len(events):.0f} as JSON; the front end {empty:,} bytes; made in {seconds:.1f} s",
        {"events": len(events), "bytes_per_event": each, "front_end_bytes": empty, "seconds": seconds},
    )

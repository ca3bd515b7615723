"""How large stamps are and what else a protocol costs on the wire, over matrix clocks on the same messages.

Counted, not timed: entries and bytes of a message's stamp (the largest where each target has its own), the
delay that the protocol adds over as early as causality allows (in mean transit times), and control messages
per message. A protocol that needs group or everybody as target stands only where it can run; `direct`
has runs of its own, with everybody as target, beside `matrix`. `bounded` runs with the smallest and the
usual bound, k = n+1 and k = 4n.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bench.cases import ALL, RING, UNICAST, able, workload_of
from bench.result import Result, Spoilt
from causet.check.runs import run
from causet.protocols import PROTOCOLS, Protocol, make_options
from causet.simulate.workload import Workload

SIZES = (4, 8, 16, 32)
PER_PROCESS, LEAST = 60, 1000
"""Messages per process, and in a run at least: after about 20 per process stamps have their lasting size."""
REFERENCE = "matrix"


def settings_of(kind: type[Protocol], size: int) -> list[dict[str, Any]]:
    return [{"k": size + 1}, {"k": 4 * size}] if kind.name == "bounded" else [{}]


def summary_of(kind: type[Protocol], workload: Workload, settings: dict[str, Any]) -> dict[str, Any]:
    options, _ = make_options(kind, workload.system, settings)
    found = run(kind, options, workload)
    if kind.PROMISES.causal and found.bad:
        raise Spoilt(f"{kind.name} broke its promise with {workload.system.size} processes: {found.summary()}")
    return found.summary()


def compare(size: int, shape: str, messages: int) -> Iterator[Result]:
    """Every protocol that can run this shape, at one size."""
    workload = workload_of(size, shape, messages)
    kinds = [kind for kind in PROTOCOLS.values() if able(kind, workload)]
    if shape == ALL:
        kinds = [kind for kind in kinds if kind.broadcast or kind.name == REFERENCE]
    kinds.sort(key=lambda kind: kind.name != REFERENCE)
    reference = 0.0
    for kind in kinds:
        for settings in settings_of(kind, size):
            summary = summary_of(kind, workload, settings)
            size_in_bytes = summary["stamp_bytes_mean"]
            reference = reference or size_in_bytes
            extra = summary["control_messages"] / messages
            name = " ".join([kind.name, *(f"{option} = {value}" for option, value in settings.items())])
            yield Result(
                "stamps",
                f"{name}, n = {size}, {shape}",
                size_in_bytes / reference,
                f"{size_in_bytes:,.1f} bytes, {summary['stamp_entries_mean']:,.1f} entries, "
                f"{extra:.2f} control messages each, {summary['added_delay_mean']:.2f} delay added",
                {
                    "protocol": kind.name,
                    **settings,
                    "processes": size,
                    "groups": shape,
                    "messages": messages,
                    "stamp_entries_mean": summary["stamp_entries_mean"],
                    "stamp_bytes_mean": size_in_bytes,
                    "added_delay_mean": summary["added_delay_mean"],
                    "control_per_message": extra,
                },
            )


def measure(sizes: tuple[int, ...], per_process: int, least: int) -> Iterator[Result]:
    for size in sizes:
        for shape in (UNICAST, RING, ALL):
            if shape == ALL and size == 4:
                continue  # there the ring is one group of all
            yield from compare(size, shape, max(least, per_process * size))


def results(quick: bool) -> Iterator[Result]:
    return measure(SIZES, 10, 100) if quick else measure(SIZES, PER_PROCESS, LEAST)

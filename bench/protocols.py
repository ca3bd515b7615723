"""Messages per second of every protocol, over those of `none`, which delivers on arrival.

Each protocol runs the shape it is made for, and `none` runs the same messages with the same delays. A run is
the whole of the simulator without trace and judge: drawing the workload, sending, measuring each stamp in its
wire form, the network's queue, receiving and delivering. So the ratio says how much slower a simulation is
with the protocol than without one, and null and extra messages count as the protocol's cost.

Stamps grow for a while after the start; with 2,000 messages of 128 processes some protocols have not reached
their largest, and would be slower in a longer run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import NamedTuple

from bench.cases import ALL, RING, UNICAST, at_home, workload_of
from bench.result import Result, Spoilt
from bench.timing import best
from causet.protocols import PROTOCOLS, Protocol, make_options
from causet.simulate.network import Tally, simulate
from causet.simulate.workload import Workload


class Plan(NamedTuple):
    messages: Mapping[tuple[int, str], int]
    """(processes, shape) → messages"""
    repetitions: int
    enough: float
    """seconds of one protocol after which it has been repeated often enough"""


FULL = Plan(
    {
        (8, UNICAST): 1500,
        (8, RING): 1500,
        (8, ALL): 1000,
        (32, UNICAST): 1500,
        (32, RING): 1500,
        (32, ALL): 500,
        (128, UNICAST): 2000,
        (128, RING): 2000,
        (128, ALL): 150,
    },
    repetitions=25,
    enough=0.7,
)
QUICK = Plan(
    {
        (8, UNICAST): 300,
        (8, RING): 300,
        (8, ALL): 150,
        (32, UNICAST): 300,
        (32, RING): 300,
        (32, ALL): 60,
        (128, UNICAST): 500,
        (128, RING): 300,
        (128, ALL): 20,
    },
    repetitions=3,
    enough=0.1,
)

NONE = PROTOCOLS["none"]


def work(kind: type[Protocol], workload: Workload) -> Tally:
    options, _ = make_options(kind, workload.system, {})
    tally, _ = simulate(kind, options, workload)
    if tally.outstanding or tally.broken:
        raise Spoilt(f"{kind.name}: {tally.outstanding} copies were not delivered; broken: {tally.broken}")
    return tally


def compare(size: int, shape: str, plan: Plan) -> Iterator[Result]:
    """The protocols of one shape at one size."""
    messages = plan.messages[size, shape]
    workload = workload_of(size, shape, messages)
    kinds = dict.fromkeys([NONE, *at_home(shape, size)])
    tallies: dict[str, Tally] = {}

    def keep(kind: type[Protocol]) -> None:
        tallies[kind.name] = work(kind, workload)

    works: dict[str, Callable[[], None]] = {kind.name: partial(keep, kind) for kind in kinds}
    taken = best(works, plan.repetitions, enough=plan.enough)
    for name, seconds in taken.items():
        tally = tallies[name]
        rate = messages / seconds
        yield Result(
            "protocols",
            f"{name}, n = {size}, {shape}",
            taken[NONE.name] / seconds,
            f"{rate:,.0f} messages per second, {tally.deliveries / seconds:,.0f} deliveries",
            {
                "protocol": name,
                "processes": size,
                "groups": shape,
                "messages": messages,
                "messages_per_second": rate,
                "deliveries_per_second": tally.deliveries / seconds,
                "control_messages": tally.control,
            },
        )


def measure(plan: Plan) -> Iterator[Result]:
    for size, shape in plan.messages:
        yield from compare(size, shape, plan)


def results(quick: bool) -> Iterator[Result]:
    return measure(QUICK if quick else FULL)

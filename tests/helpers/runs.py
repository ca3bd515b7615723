"""Simulated executions of every protocol, drawn at random: systems, settings, losses."""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from causet.check.judge import Judge
from causet.model import Event, System, named_processes
from causet.protocols import PROTOCOLS, Packet, Protocol, make_options
from causet.simulate.network import Network, Tally, simulate
from causet.simulate.record import Observer, Recorder
from causet.simulate.workload import Workload, delay_of
from causet.topology import groups_of, separators_of


def random_system(kind: type[Protocol], draw: Random) -> System:
    size = draw.choice([2, 3, 4, 5, 8, 13, 21] * 4 + [64])
    if kind.broadcast:
        shape = "all"
    else:
        shapes = ["all", f"ring:{draw.randint(2, min(size, 8))}", "twins"]
        members = draw.randint(2, min(size, 6))
        shapes.append(f"random:{max(2, size // 2)}x{members}" if members < size and size > 4 else "all")
        if size <= 8:
            shapes.append("pairs")
        if not kind.grouped:
            shapes += ["unicast"] * 4
        shape = draw.choice(shapes)
    return System(named_processes(size), groups_of(shape, size, draw.randrange(1000)))


def linked_system(draw: Random) -> System:
    """A random connected graph with every causal separator it has; messages go to neighbours."""
    size = draw.randint(3, 8)
    links = [0] * size
    pairs = [(p, draw.randrange(p)) for p in range(1, size)]
    more = [draw.sample(range(size), 2) for _ in range(draw.randint(0, size // 2))]
    for p, q in [*pairs, *more]:
        links[p] |= 1 << q
        links[q] |= 1 << p
    return System(named_processes(size), (), tuple(links), separators_of(links, size))


def settings_for(kind: type[Protocol], system: System, draw: Random) -> dict[str, object]:
    """Some settings that the protocol must bear."""
    n = system.size
    if kind.name == "bounded":
        k = draw.randint(max(n - 1, 1), max(n - 1, min((n - 1) ** 2, 4 * n)))
        return {"k": k if draw.random() < 0.7 else [draw.randint(max(n - 1, 1), n * n) for _ in range(n)]}
    if kind.name == "histories":
        return {rule: draw.random() < 0.8 for rule in ("r61", "r7", "r8")}
    if kind.name == "fast":
        return {"variant": draw.choice(["groups", "neighbours"])}
    if kind.nulls:
        return {"silence": draw.choice([0.5, 3, 10])}
    if kind.clocked:
        epsilon, delta = draw.randint(0, 4), draw.randint(2, 12)
        # These networks are late at will; a smaller modulus takes what is late for new (G2 is its premise).
        modulus = draw.choice([0, 0, 1000])
        clock = draw.choice(["kn", "kn", "rc"])
        return {"epsilon": epsilon, "delta": delta, "modulus": modulus, "clock": clock}
    return {}


class Losses(Observer):
    """Notes what the network lost, as the oracle wants to know it."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.found: set[tuple[str, str]] = set()

    def lost(self, process: int, packet: Packet, time: float) -> None:
        self.found.add((self.system.name(process), packet.id(self.system)))


class Run(NamedTuple):
    options: object
    events: list[Event]
    lost: set[tuple[str, str]]
    judged: Judge
    tally: Tally


def random_execution(name: str, seed: int) -> Run:
    kind = PROTOCOLS[name]
    draw = Random(f"{name}/{seed}")
    linked = name == "histories" and draw.random() < 0.4  # R9
    system = linked_system(draw) if linked else random_system(kind, draw)
    options, _ = make_options(kind, system, settings_for(kind, system, draw))
    delay = draw.choice(["exp:1", "exp:5", "uniform:0:4", "lognormal:1:1.5", "const:1"])
    loss = draw.choice([0.0, 0.1]) if kind.PROMISES.loss else 0.0
    network = Network(
        fifo=draw.random() < 0.3,
        loss=loss,
        duplication=draw.choice([0.0, 0.0, 0.2]),
    )
    most = 150 if system.size < 20 else 250 if system.size < 64 else 80  # 64 would take as long as all others
    messages = draw.randint(10, most)
    workload = Workload(system, messages, draw.choice([0.2, 1.0, 5.0]), delay_of(delay), seed)
    events: list[Event] = []
    judged, losses = Judge(system), Losses(system)
    tally, _ = simulate(kind, options, workload, network, [judged, Recorder(system, events.append), losses])
    return Run(options, events, losses.found, judged, tally)

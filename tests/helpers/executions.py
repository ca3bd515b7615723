"""Random executions for the tests of stamps and snapshots: small systems, and what happens in them.

An execution is a list of inputs, each to one process. Packets are received in any order, some of them
twice, some never. The same inputs can be given again, to other processes of the same system.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any, NamedTuple

from causet.errors import BadInput
from causet.model import Group, System, mask, members, named_processes, only
from causet.protocols import (
    PROTOCOLS,
    Options,
    Outcome,
    Packet,
    Process,
    Protocol,
    as_printed_rows,
    make_options,
)

SIZES = (2, 3, 9)
GROUPS: dict[int, list[tuple[int, ...]]] = {
    2: [(0, 1)],
    3: [(0, 1), (1, 2), (0, 1, 2)],
    9: [(0, 1, 2, 3), (3, 4, 5), (0, 5, 6, 7, 8), tuple(range(9))],
}


def system_of(size: int) -> System:
    """Processes p1 … and overlapping groups, one of them of everybody."""
    groups = tuple(Group(f"g{x}", mask(who)) for x, who in enumerate(GROUPS[size], start=1))
    return System(named_processes(size), groups)


class Setting(NamedTuple):
    """A protocol with its options in a system."""

    kind: type[Protocol]
    system: System
    options: Options

    def processes(self) -> list[Process]:
        return [Process(self.kind, me, self.system, self.options) for me in range(self.system.size)]


def setting(name: str, size: int, options: dict[str, Any] | None = None, as_printed: bool = False) -> Setting:
    kind, system = PROTOCOLS[name], system_of(size)
    rows = as_printed_rows(kind, "") if as_printed else frozenset()
    return Setting(kind, system, make_options(kind, system, options or {}, rows)[0])


@dataclass(frozen=True, slots=True)
class Input:
    """One input to process `me`; `kind` says which fields count."""

    me: int
    kind: str
    targets: int = 0
    group: int = -1
    packet: Packet | None = None
    now: int = 0

    def feed(self, process: Process) -> Outcome:
        if self.kind == "send":
            return process.send(self.targets, self.group)
        if self.kind == "null":
            return process.null()
        if self.kind == "tick":
            return process.tick(self.now)
        assert self.packet is not None
        return process.receive(self.packet)


class Execution(NamedTuple):
    setting: Setting
    inputs: tuple[Input, ...]
    packets: tuple[Packet, ...]
    """All that were sent, in the order they were sent."""


def execution(setting: Setting, length: int, seed: int = 0) -> Execution:
    random = Random(f"{setting.kind.name} {setting.system.size} {seed}")
    processes = setting.processes()
    under_way: list[tuple[int, Packet]] = []
    inputs: list[Input] = []
    packets: list[Packet] = []
    clock = 0

    def happen(step: Input) -> None:
        try:
            outcome = step.feed(processes[step.me])
        except BadInput:  # more than a tick can bear, say: refused, and nothing has changed
            return
        inputs.append(step)
        for packet in outcome.packets:
            packets.append(packet)
            under_way.extend((target, packet) for target in members(packet.to))

    for _ in range(length):
        chance = random.random()
        if setting.kind.clocked and chance < 0.25:
            clock += random.choice((1, 1, 1, 2, 6))
            for me in range(len(processes)):
                happen(Input(me, "tick", now=clock))
        elif setting.kind.nulls and chance < 0.1:
            happen(Input(random.randrange(len(processes)), "null"))
        elif under_way and chance < 0.7:
            position = random.randrange(len(under_way))
            me, packet = under_way[position]
            if random.random() < 0.85:
                del under_way[position]
            happen(Input(me, "receive", packet=packet))
        else:
            happen(_some_send(setting, random))
    return Execution(setting, tuple(inputs), tuple(packets))


def _some_send(setting: Setting, random: Random) -> Input:
    system = setting.system
    me = random.randrange(system.size)
    if setting.kind.grouped:
        group = random.choice([x for x, group in enumerate(system.groups) if group.members >> me & 1])
        return Input(me, "send", system.groups[group].members & ~only(me), group)
    others = [p for p in range(system.size) if p != me]
    if setting.kind.broadcast:
        return Input(me, "send", mask(others))
    targets = mask(random.sample(others, random.randint(1, len(others))))
    return Input(me, "send", targets | (only(me) if random.random() < 0.2 else 0))

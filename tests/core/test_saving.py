"""A process can be saved at any moment and go on from there, elsewhere and later, as if nothing had been.

Each test runs over random executions (see `executions`): the same inputs are given to the process that ran
through and to one that was saved and restored on the way.
"""

from __future__ import annotations

from ast import literal_eval
from functools import cache
from random import Random
from typing import Any, NamedTuple

import pytest

from causet.holdback import HoldBackFull
from causet.model import Group, System, named_processes
from causet.protocols import PROTOCOLS, Outcome, Packet, Process
from tests.helpers.executions import SIZES, Execution, Input, Setting, execution, setting

VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    **{name: (name, {}) for name in PROTOCOLS},
    "bounded, k = 8": ("bounded", {"k": 8}),
    "fast, neighbours": ("fast", {"variant": "neighbours"}),
    "histories, R6.1 off": ("histories", {"r61": False}),
    "histories, R8 off": ("histories", {"r8": False}),
    "merge, modulo": ("merge", {"modulus": 50}),
    "merge, rc": ("merge", {"clock": "rc"}),
    "merge, K = 2": ("merge", {"events_per_tick": 2}),
}
PRINTED: dict[str, tuple[str, dict[str, Any]]] = {
    **{
        f"{name} as printed": (name, {"k": 10} if name == "bounded" else {})
        for name, kind in PROTOCOLS.items()
        if kind.errata
    },
    "merge, rc as printed": ("merge", {"clock": "rc"}),
}
EVERY_PROCESS = pytest.mark.parametrize(
    ("what", "size"),
    [
        *((what, size) for what, (_, options) in VARIANTS.items() for size in SIZES if "k" not in options),
        *((what, 9) for what in ("bounded, k = 8", *PRINTED)),
    ],
)


@cache
def made(what: str, size: int) -> Setting:
    name, options = {**VARIANTS, **PRINTED}[what]
    return setting(name, size, options, as_printed=what in PRINTED)


def told(process: Process, outcome: Outcome) -> tuple[Any, ...]:
    """All that an outcome says, as a plain value."""

    def saved(packet: Packet) -> tuple[Any, ...]:
        # What came within another message's stamp (piggyback) was delivered without one of its own.
        if packet.stamp is None and process.protocol.name != "none":
            return (packet.sender, packet.number, packet.targets, packet.to, packet.group)
        return process.save_packet(packet)

    return tuple(tuple(map(saved, part)) if isinstance(part, tuple) else part for part in outcome)


class Life(NamedTuple):
    """One process's part of an execution: its snapshot before each input, what the input led to, and how many
    packets were held then."""

    process: Process
    inputs: list[Input]
    snapshots: list[tuple[Any, ...]]
    outcomes: list[tuple[Any, ...]]
    held: list[int]
    end: tuple[Any, ...]


@cache
def ran(what: str, size: int) -> Execution:
    return execution(made(what, size), {2: 80, 3: 100, 9: 160}[size], seed=3)


@cache
def lives(what: str, size: int) -> list[Life]:
    processes = made(what, size).processes()
    found: list[Life] = [Life(process, [], [], [], [], ()) for process in processes]
    for step in ran(what, size).inputs:
        life = found[step.me]
        life.inputs.append(step)
        life.snapshots.append(life.process.snapshot())
        life.outcomes.append(told(life.process, step.feed(life.process)))
        life.held.append(len(life.process))
    return [life._replace(end=life.process.snapshot()) for life in found]


def goes_on(process: Process, life: Life, start: int) -> None:
    """The process does from input `start` on what the one that ran through did."""
    for step, outcome in zip(life.inputs[start:], life.outcomes[start:], strict=True):
        assert told(process, step.feed(process)) == outcome
    assert process.snapshot() == life.end


# ---------------------------------------------------------------- the executions are worth it


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", PROTOCOLS)
def test_the_executions_send_deliver_and_hold_back(name: str, size: int) -> None:
    outcomes = [outcome for life in lives(name, size) for outcome in life.outcomes]
    assert sum(len(packets) for packets, *_ in outcomes) > 15
    assert sum(len(delivered) for _, delivered, *_ in outcomes) > 5
    if size > 2 and name not in ("none", "piggyback"):  # these never hold anything back
        assert any(held for life in lives(name, size) for held in life.held)


# ---------------------------------------------------------------- saved and restored


@EVERY_PROCESS
def test_a_process_restored_at_any_step_sends_and_delivers_the_same_from_there_on(
    what: str, size: int
) -> None:
    fresh = made(what, size).processes()
    for life, newcomer in zip(lives(what, size), fresh, strict=True):
        for start, snapshot in enumerate(life.snapshots):
            restored = newcomer.restored(snapshot)
            assert restored.snapshot() == snapshot
            goes_on(restored, life, start)


@EVERY_PROCESS
def test_a_process_that_has_long_gone_on_can_go_back_to_any_snapshot(what: str, size: int) -> None:
    for life in lives(what, size):
        for start in range(0, len(life.snapshots), 7):
            restored = life.process.restored(life.snapshots[start])
            assert restored.snapshot() == life.snapshots[start]
            goes_on(restored, life, start)


@EVERY_PROCESS
def test_a_process_restored_before_every_step_lives_the_same_life(what: str, size: int) -> None:
    for life, process in zip(lives(what, size), made(what, size).processes(), strict=True):
        for step, snapshot, outcome in zip(life.inputs, life.snapshots, life.outcomes, strict=True):
            process = process.restored(process.snapshot())
            assert process.snapshot() == snapshot
            assert told(process, step.feed(process)) == outcome
        assert process.snapshot() == life.end


@EVERY_PROCESS
def test_the_original_stays_as_it_is_when_another_is_restored_from_it_and_goes_on(
    what: str, size: int
) -> None:
    for life, process in zip(lives(what, size), made(what, size).processes(), strict=True):
        for start, step in enumerate(life.inputs):
            if not start % 5:
                later = process.restored(life.end)
                assert later.snapshot() == life.end
                assert process.snapshot() == life.snapshots[start]
                goes_on(process.restored(life.snapshots[start]), life, start)
                assert process.snapshot() == life.snapshots[start]
            step.feed(process)


@EVERY_PROCESS
def test_the_restored_process_stays_as_it_is_when_the_original_goes_on(what: str, size: int) -> None:
    for life, process in zip(lives(what, size), made(what, size).processes(), strict=True):
        twins = []
        for snapshot, step in zip(life.snapshots, life.inputs, strict=True):
            twins.append(process.restored(snapshot))
            step.feed(process)
        assert [twin.snapshot() for twin in twins] == life.snapshots


@EVERY_PROCESS
def test_a_restored_process_holds_the_same_messages_and_waits_for_the_same(what: str, size: int) -> None:
    for life, process in zip(lives(what, size), made(what, size).processes(), strict=True):
        for step in life.inputs:
            step.feed(process)
            twin = process.restored(process.snapshot())
            assert len(twin) == len(process)
            assert twin.waiting() == process.waiting()
            assert [twin.save_packet(p) for p in twin.held()] == [
                process.save_packet(p) for p in process.held()
            ]
            assert twin.protocol.broken() == process.protocol.broken()


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("what", ["merge", "merge, modulo"])
def test_a_process_whose_memory_was_damaged_is_saved_as_it_is(what: str, seed: int) -> None:
    for life, process in zip(lives(what, 3), made(what, 3).processes(), strict=True):
        for position, step in enumerate(life.inputs):
            if not position % 7:
                process.corrupt(Random(f"{seed} {position}"))
            twin = process.restored(process.snapshot())
            assert twin.snapshot() == process.snapshot()
            assert told(twin, step.feed(twin)) == told(process, step.feed(process))
        assert twin.snapshot() == process.snapshot()


# ---------------------------------------------------------------- snapshots are plain


def strange(value: Any, where: str = "snapshot") -> list[str]:
    """Where a value has something other than ints, strs, bytes, None, bools and tuples; no subclasses."""
    if type(value) is tuple:
        return [line for i, part in enumerate(value) for line in strange(part, f"{where}[{i}]")]
    return [] if type(value) in (int, str, bytes, bool, type(None)) else [f"{where}: {type(value)}"]


@EVERY_PROCESS
def test_a_snapshot_has_nothing_but_numbers_texts_bytes_none_and_tuples(what: str, size: int) -> None:
    for life in lives(what, size):
        for snapshot in (*life.snapshots, life.end):
            assert strange(snapshot) == []


@EVERY_PROCESS
def test_a_process_can_be_restored_from_a_snapshot_that_was_written_down_and_read_again(
    what: str, size: int
) -> None:
    for life, newcomer in zip(lives(what, size), made(what, size).processes(), strict=True):
        start = len(life.inputs) // 2
        read = literal_eval(repr(life.snapshots[start]))
        assert read == life.snapshots[start]
        goes_on(newcomer.restored(read), life, start)


# ---------------------------------------------------------------- equal processes, equal snapshots


@EVERY_PROCESS
def test_packets_that_travelled_as_plain_values_lead_to_the_same_process(what: str, size: int) -> None:
    for life, process in zip(lives(what, size), made(what, size).processes(), strict=True):
        for step, snapshot, outcome in zip(life.inputs, life.snapshots, life.outcomes, strict=True):
            assert process.snapshot() == snapshot
            if step.packet is None:
                assert told(process, step.feed(process)) == outcome
            else:
                packet = process.load_packet(process.save_packet(step.packet))
                assert told(process, process.receive(packet)) == outcome
        assert process.snapshot() == life.end


@EVERY_PROCESS
def test_the_packets_of_a_restored_process_lead_to_the_same_receivers(what: str, size: int) -> None:
    """Whatever a stamp hides that its bytes do not show, it must not matter to who receives it."""
    made_again: dict[tuple[Any, ...], Packet] = {}
    processes = made(what, size).processes()
    for step in ran(what, size).inputs:
        process = processes[step.me] = processes[step.me].restored(processes[step.me].snapshot())
        if step.packet is not None:
            packet = made_again[process.save_packet(step.packet)]
            outcome = process.receive(packet)
        else:
            outcome = step.feed(process)
        made_again.update((process.save_packet(packet), packet) for packet in outcome.packets)
    assert [process.snapshot() for process in processes] == [life.end for life in lives(what, size)]


@pytest.mark.parametrize("name", [name for name, kind in PROTOCOLS.items() if kind.grouped])
@pytest.mark.parametrize("groups", [(), (Group("others", 0b110),)])
def test_a_process_that_is_in_no_group_can_be_saved_too(name: str, groups: tuple[Group, ...]) -> None:
    kind = PROTOCOLS[name]
    process = Process(kind, 0, System(named_processes(3), groups), kind.Options())
    snapshot = process.snapshot()
    assert strange(snapshot) == []
    assert process.restored(snapshot).snapshot() == snapshot


# ---------------------------------------------------------------- a full process


@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_process_that_can_hold_no_more_refuses_a_packet_and_stays_as_it_was(name: str) -> None:
    """HoldBackFull: nothing was taken in or dropped, so the packet can come again."""
    roomy = ran(name, 9)
    tight = Setting(roomy.setting.kind, roomy.setting.system, roomy.setting.kind.Options(capacity=1))
    processes = tight.processes()
    for step in roomy.inputs:
        process = processes[step.me]
        before = process.snapshot()
        try:
            step.feed(process)
        except HoldBackFull:
            assert step.packet is not None or process.protocol.keeps_own  # then a send has no room, too
            assert process.snapshot() == before

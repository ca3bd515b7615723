"""The schedules of `schedules/`, replayed, for the tests of the papers and of their errata."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace as changed
from typing import Any, NamedTuple

import pytest

from causet.check.oracle import causal_pasts, judge
from causet.model import Event
from causet.protocols import PROTOCOLS, make_options
from causet.simulate.replay import Replay, replay
from causet.simulate.schedule import Schedule, Step, read_schedule
from causet.view.text import space_time
from tests.helpers.places import ROOT

ERRATA = ROOT / "schedules" / "errata"
FIGURES = ROOT / "schedules" / "figures"

DRAIN = Step("drain")
CONTROLS = ("fifo", "none")
"""Protocols that do not promise causal order: a figure that they get right shows nothing."""


def figure(name: str) -> Schedule:
    """The schedule of a paper's figure."""
    return read_schedule(FIGURES / f"{name}.yaml")


def run(schedule: Schedule, protocol: str, *as_printed: str) -> Replay:
    kind = PROTOCOLS[protocol]
    options, _ = make_options(kind, schedule.system, schedule.options, as_printed)
    return replay(schedule, kind, options)


def both(row: str, protocol: str) -> tuple[Replay, Replay]:
    """A row's schedule as printed and by default."""
    schedule = read_schedule(ERRATA / f"{row}.yaml")
    return run(schedule, protocol, row), run(schedule, protocol)


def until(schedule: Schedule, kind: str, message: str, process: str) -> Schedule:
    """The schedule up to this step, which is the last one."""
    wanted = (kind, message, schedule.system.index(process))
    steps = schedule.steps
    last = next(i for i, step in enumerate(steps) if (step.kind, step.message, step.process) == wanted)
    return changed(schedule, steps=steps[: last + 1])


def without_drain(schedule: Schedule) -> Schedule:
    return changed(schedule, steps=tuple(step for step in schedule.steps if step != DRAIN))


def delivered(result: Replay, process: str) -> list[str]:
    """What a process delivered, in order."""
    return [e.message or "" for e in result.events if e.kind == "deliver" and e.process == process]


def unmet(result: Replay, process: int) -> dict[tuple[Any, int], tuple[Any, ...]]:
    """For each message that a process holds, by (sender, number), the thresholds that are not met:
    (fact, at least, now)."""
    protocol = result.processes[process].protocol
    facts = protocol.facts
    return {
        packet.key: tuple(
            (fact, least, facts.get(fact, 0))
            for fact, least in protocol.needs(packet)
            if facts.get(fact, 0) < least
        )
        for packet in result.processes[process].held()
    }


def too_early(result: Replay) -> list[tuple[str, str, str]]:
    """(process, delivered, before) of each violation."""
    verdict = judge(result.events, lost=result.lost, unmerged=result.unmerged)
    return [(v.process, v.delivered, v.before) for v in verdict.violations]


def assert_holds(result: Replay) -> None:
    """Everything is delivered, in causal order."""
    verdict = judge(result.events, unmerged=result.unmerged)
    assert verdict.status == "valid"
    assert not verdict.undelivered
    assert not result.held


def stamp_entries(result: Replay, message: str) -> int | None:
    """How much a message carried, in what its protocol counts."""
    return next(e.stamp_entries for e in result.events if e.kind == "send" and e.message == message)


def unheeded(events: Sequence[Event]) -> list[Event]:
    """Deliveries that come before a message that their sender had *heard* of.

    The oracle follows causality through deliveries. The merge promises more: as in Lamport's relation, to
    have received a message is enough.
    """
    heard = [changed(e, kind="deliver") if e.kind == "receive" else e for e in events if e.kind != "deliver"]
    pasts = causal_pasts(heard)
    found = []
    for at, event in enumerate(events):
        if event.kind == "deliver" and event.message is not None:
            later = (e for e in events[at:] if e.process == event.process and e.kind == "deliver")
            if any(e.message in pasts[event.message] for e in later):
                found.append(event)
    return found


# A figure under every protocol: that of its own paper is looked at closely in the paper's tests; every other
# one that can run the schedule must come to the same order of deliveries, and the two controls must not.


class Story(NamedTuple):
    """Which process receives what too early, and in which order it must deliver."""

    figure: str
    process: str
    early: str
    """the message that comes too early"""
    cause: str
    """the process whose message it waits for; some protocols name the message"""
    order: list[str]
    cannot: tuple[str, ...] = ("direct",)
    """protocols that cannot run it: `direct` is for broadcast only"""
    too_slow: tuple[str, ...] = ()
    """protocols that have not yet delivered the cause when the next message is sent: so not a cause"""


def protocols_for(story: Story) -> list[Any]:
    """The protocols that can run a figure, as parameters of a test."""
    able = [protocol for protocol in PROTOCOLS if protocol not in story.cannot]
    return [pytest.param(protocol, id=f"{story.figure}-{protocol}") for protocol in able]


def assert_delivers_as_told(story: Story, protocol: str) -> None:
    result = run(figure(story.figure), protocol)
    verdict = judge(result.events)
    assert not verdict.undelivered
    assert not result.held
    if protocol in CONTROLS:
        assert verdict.violations
        return
    assert verdict.status == "valid"
    if protocol not in story.too_slow:
        assert delivered(result, story.process) == story.order


def assert_holds_what_is_early(story: Story, protocol: str) -> None:
    result = run(until(figure(story.figure), "receive", story.early, story.process), protocol)
    lines = [line for line in result.held if line.startswith(f"{story.process} holds {story.early}: needs ")]
    if protocol in CONTROLS or protocol in story.too_slow:
        return
    if protocol == "piggyback":  # nothing ever waits: the cause has come along, and went first
        assert not lines
        assert delivered(result, story.process)[0] == story.order[0]
        return
    assert len(lines) == 1
    needs = lines[0].partition("needs ")[2]
    if protocol == "merge":  # waits for its time, whatever comes
        assert "the local clock" in needs
    elif protocol == "relative" and story.figure != "macedo-1":  # across groups, by blocks
        assert "all blocks up to 1 of" in needs
    else:
        assert story.cause in needs or story.order[0] in needs


# The drawings of docs/errata.md


def drawing(row: str, protocol: str, as_printed: Sequence[str]) -> str:
    """A row's schedule without its final drain, with a ✗ where the printed rule fails."""
    result = run(without_drain(read_schedule(ERRATA / f"{row}.yaml")), protocol, *as_printed)
    return space_time(result.events, marks=_marks(row, result))


def _marks(row: str, result: Replay) -> dict[str, str]:
    marks = {}
    deliveries = {(e.process, e.message): e.id for e in result.events if e.kind == "deliver"}
    for violation in judge(result.events, unmerged=result.unmerged).violations:
        marks[deliveries[violation.process, violation.delivered]] = f"before {violation.before}"
    for event in result.events:
        if event.kind == "send" and (row, event.message) in {("H4", "d"), ("H5", "b"), ("H6", "c")}:
            marks[event.id] = f"carries {event.stamp_entries} id{'s' * (event.stamp_entries != 1)}"
    if row == "K1":
        marks |= {event.id: "before a, which p2 had heard" for event in unheeded(result.events)}
    if row == "S3":
        last = [e for e in result.events if e.process == "p3"][-1]
        marks[last.id] = f"{result.processes[2].protocol.broken()}"
    return marks

"""The schedules of `schedules/`, replayed, for the tests of the figures and of the errata."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace as changed

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


# The drawings of docs/errata.md


def drawing(row: str, protocol: str, as_printed: Sequence[str]) -> str:
    """A row's schedule without its final drain, with a ✗ where the printed rule fails."""
    result = run(without_drain(read_schedule(ERRATA / f"{row}.yaml")), protocol, *as_printed)
    return space_time(result.events, marks=_marks(row, result))


def _marks(row: str, result: Replay) -> dict[str, str]:
    marks = {}
    deliveries = {(e.process, e.message): e.id for e in result.events if e.kind == "deliver"}
    for violation in judge(result.events).violations:
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

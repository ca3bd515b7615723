"""What each schedule of `schedules/` must lead to, in a text file beside it: X.expected beside X.yaml.

A file begins with comments that say which sentence of a paper or of the errata it shows. Then come its runs,
each under the protocol's name, with `as printed` and a row of the errata where the printed rule is followed:

    relative as printed M3
    ----
    send a from p1       carries 6
    ...

Below the line stand the steps, each with what it led to, and in the end the order of deliveries at every
process, what is still held, and what is wrong. The number after `carries` is the size of the stamp in what
the protocol counts (`causet protocols`).

To add a file, write the comments and the names of the runs; then, and whenever an outcome changes on purpose:

    python -m tests.helpers.expected

It writes everything below the lines again. Read what has changed, and judge it by the paper, not by the
program.
"""

from __future__ import annotations

import re
from dataclasses import replace as changed
from pathlib import Path

from causet.check.oracle import judge
from causet.errors import BadInput
from causet.protocols import PROTOCOLS
from causet.simulate.replay import Replay
from causet.simulate.schedule import Schedule, Step, read_schedule
from tests.helpers.exhibits import ERRATA, FIGURES, delivered, run

RUN = re.compile(r"^([a-z]+)(?: as printed ([A-Z]\d+))?\n----\n", re.MULTILINE)


def schedules() -> list[Path]:
    """All schedules that have, or must have, an expected outcome beside them."""
    return sorted([*FIGURES.glob("*.yaml"), *ERRATA.glob("*.yaml")])


def comments(text: str) -> str:
    """The comments at the head of an expected outcome."""
    return "".join(line for line in text.splitlines(keepends=True) if line.startswith("#"))


def runs(text: str) -> list[tuple[str, str]]:
    """The (protocol, row) of each run in an expected outcome; the row is empty for the corrected rule."""
    return [(match[1], match[2] or "") for match in RUN.finditer(text)]


def written_again(path: Path, text: str) -> str:
    """An expected outcome with the same comments and runs, from replays of its schedule."""
    schedule = read_schedule(path)
    parts = [comments(text)]
    for protocol, row in runs(text):
        title = f"{protocol} as printed {row}" if row else protocol
        parts.append("\n".join([title, "----", *outcome(schedule, protocol, *filter(None, [row]))]) + "\n")
    return "\n".join(parts)


def outcome(schedule: Schedule, protocol: str, *as_printed: str) -> list[str]:
    """A line for each step, and then how it ended."""
    lines: list[str] = []
    before: Replay | None = None
    for number, step in enumerate(schedule.steps, 1):
        so_far = changed(schedule, steps=schedule.steps[:number])
        try:
            after = run(so_far, protocol, *as_printed)
        except BadInput as error:
            return [*lines, f"refused: {error}"]
        notes = _led_to(step, before, after)
        text = _step(step, schedule)
        lines.append(f"{text:<20} {notes[0]}" if notes else text)
        lines += [f"{'':<20} {note}" for note in notes[1:]]
        before = after
    assert before is not None
    return lines + _end(before, protocol)


def _step(step: Step, schedule: Schedule) -> str:
    name = "" if step.process is None else schedule.system.name(step.process)
    if not step.merge:
        return f"{_step(changed(step, merge=True), schedule)} (not merged)"
    match step.kind:
        case "drain":
            return "drain"
        case "send":
            return f"send {step.message} from {name}"
        case "tick":
            return f"tick {step.now}" + (f" at {name}" if name else "")
        case "null":
            where = "" if step.group is None else f" in {schedule.system.groups[step.group].name}"
            return f"null from {name}{where}"
        case _:
            return f"{step.kind} {step.message} at {name}"


def _led_to(step: Step, before: Replay | None, after: Replay) -> list[str]:
    """What is new after a step: a stamp's size, extra messages, deliveries, what is held, what is refused."""
    new = after.events[len(before.events) if before else 0 :]
    sends = [e for e in new if e.kind == "send"]
    notes = [f"carries {e.stamp_entries}" for e in sends if not e.control]
    if step.kind not in ("drain", "null"):
        notes += [f"{e.process} sends {e.message} to {', '.join(e.to or ())}" for e in sends if e.control]
    for process in after.processes[0].system.processes:
        fresh = [
            e.message or "" for e in new if (e.kind, e.process, e.control) == ("deliver", process, False)
        ]
        if fresh:
            notes.append(f"{process} delivers {', '.join(fresh)}")
    held_before = {line.partition(":")[0] for line in before.held} if before else set()
    notes += [line for line in after.held if line.partition(":")[0] not in held_before]
    refused = after.refused[len(before.refused) if before else 0 :]
    return notes + [f"{process} refuses {message}" for process, message in refused]


def _end(result: Replay, protocol: str) -> list[str]:
    system = result.processes[0].system
    orders = [(process, delivered(result, process)) for process in system.processes]
    lines = ["end", *(f"  {process} delivered {', '.join(order) or 'nothing'}" for process, order in orders)]
    lines += [f"  {line}" for line in result.held]
    lines += ["  stuck: everything has arrived"] if result.stuck else []
    lines += [f"  {line}" for line in result.broken]
    lines += [f"  rounds of the drain: {result.rounds}"] if result.rounds else []
    verdict = judge(
        result.events,
        lost=result.lost,
        receptions_teach=PROTOCOLS[protocol].hears,
        unmerged=result.unmerged,
    )
    return lines + [
        f"  wrong: {v.process} delivered {v.delivered} before {v.before}, by {' → '.join(v.because)}"
        for v in verdict.violations
    ]


if __name__ == "__main__":
    for path in schedules():
        beside = path.with_suffix(".expected")
        beside.write_text(written_again(path, beside.read_text(encoding="utf-8")), encoding="utf-8")

"""Random executions, which message precedes which in them, and what messages must say of that."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

from causet.model import Event


def run_of(random: Random, processes: int, steps: int) -> list[Event]:
    """A random execution: sends to anybody, deliveries of what was sent, in any order."""
    names = [f"p{number}" for number in range(processes)]
    seqs = dict.fromkeys(names, 0)
    events: list[Event] = []
    flying: list[tuple[str, str, bool]] = []
    for _ in range(steps):
        if flying and random.random() < 0.6:
            name, message, control = flying.pop(random.randrange(len(flying)))
            kind = random.choice(("deliver", "deliver", "deliver", "receive"))
            to = None
        else:
            name, message, control = random.choice(names), f"m{len(events)}", random.random() < 0.1
            kind = "send"
            targets = [each for each in names if each != name]
            to = tuple(random.sample(targets, k=random.randint(0, len(targets))))
            flying += [(each, message, control) for each in to]
        seqs[name] += 1
        events.append(Event(name, seqs[name], kind, message=message, to=to, control=control))
    return events


def preceding(events: Sequence[Event]) -> dict[str, set[str]]:
    """For each message those that precede it, by the definition: events stand in causal order here."""
    before: dict[str, set[str]] = {}
    known: dict[str, set[str]] = {}
    for each in events:
        mine = known.setdefault(each.process, set())
        message = str(each.message)
        if each.control:
            continue
        if each.kind == "send":
            before[message] = set(mine)
            mine.add(message)
        elif each.kind == "deliver":
            mine |= before[message] | {message}
    return before


Group = dict[tuple[str, int], dict[str, Any]]


def past_of(point: tuple[str, int], group: str, known: Group, past: dict[str, set[str]]) -> set[str]:
    """The messages of a group behind a message, following what the messages there themselves name."""
    name = known[point]["subject"]
    if name not in past:
        causes = list(json.loads(known[point]["causaldeps"]).get(group, {}).items())
        causes += [(point[0], point[1] - 1)] if point[1] > 1 else []
        behind = [past_of(cause, group, known, past) for cause in causes]
        past[name] = {known[cause]["subject"] for cause in causes}.union(*behind)
    return past[name]


def check_messages_of(messages: Any, random: Random, processes: int, steps: int) -> None:
    """What a message names within a group is what precedes it there, and nothing else."""
    events = run_of(random, processes, steps)
    before = preceding(events)
    shuffled = random.sample(events, k=len(events))
    if not any(each.kind == "send" for each in events):
        return
    found = list(messages.messages_of(shuffled))
    assert [each["subject"] for each in found] == [
        each.message for each in shuffled if each.kind == "send" and each.to and not each.control
    ]
    numbers = {each["subject"]: json.loads(each["causalnumbers"]) for each in found}
    for group in {group for each in numbers.values() for group in each}:
        known = {
            (each["source"], numbers[each["subject"]][group]): each
            for each in found
            if group in numbers[each["subject"]]
        }
        for source in {source for source, _ in known}:
            assert sorted(n for s, n in known if s == source) == list(
                range(1, 1 + sum(s == source for s, _ in known))
            )
        past: dict[str, set[str]] = {}
        to_it = {each["subject"] for each in known.values()}
        for point, each in known.items():
            assert past_of(point, group, known, past) == before[each["subject"]] & to_it


def check_read_again(
    messages: Any, cloudevents: Any, folder: Path, random: Random, processes: int, steps: int
) -> None:
    """What was written is read without a fault, in any order: each process has its messages in the order in
    which it sent them."""
    events = run_of(random, processes, steps)
    if not any(each.kind == "send" and each.to and not each.control for each in events):
        return
    file = folder / "m.jsonl"
    written = messages.write_cloudevents(file, events)
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(random.sample(lines, len(lines))))
    execution = cloudevents.read_cloudevents([file])
    assert (len(execution.events), execution.faults) == (written, ())
    wanted: dict[str, list[str]] = {}
    for each in events:
        if each.kind == "send" and each.to and not each.control:
            wanted.setdefault(each.process, []).append(f"{each.process}/{each.message}")
    found = {name: [""] * len(sent) for name, sent in wanted.items()}
    for each in execution.events:
        found[each.process][each.seq - 1] = each.id
    assert found == wanted

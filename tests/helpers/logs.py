"""Random logs for the tests of the pipeline: messages that come late, twice, to strangers or never, events
with parents, clocks that are wrong; and their columns as Spark has them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from random import Random

from pyspark.sql import DataFrame, SparkSession

from causet.model import Event

SCHEMA = (
    "process string, seq long, kind string, id string, message string, to array<string>, "
    "parents array<string>, time {time}, control boolean, text string"
)


def random_log(seed: int, name: str = "", faults: bool = True) -> list[Event]:
    """One execution; names of processes, ids and messages begin with `name`. It has no cycle."""
    draw = Random(seed)
    processes = [f"{name}p{number}" for number in range(draw.randint(2, 5))]
    own_ids = draw.random() < 0.3
    clocks = {process: draw.randint(-20, 20) for process in processes}
    timed = draw.choice(["all", "some", "none"])
    events: list[Event] = []
    flying: list[tuple[str, str]] = []  # (target, message)
    seqs = dict.fromkeys(processes, 0)
    sent: dict[str, bool] = {}  # message: whether it is control

    def add(process: str, **fields: object) -> None:
        seqs[process] += 1
        if draw.random() < 0.02 and faults:
            seqs[process] += 1
        time = None
        if timed == "all" or (timed == "some" and draw.random() < 0.5):
            time = len(events) + clocks[process] + draw.randint(-2, 2)
        id = f"{name}e{len(events)}" if own_ids and draw.random() < 0.7 else ""
        known: dict[str, object] = {"time": time, "id": id, **fields}
        events.append(Event(process, seqs[process], **known))  # type: ignore[arg-type]

    for _ in range(draw.randint(5, 60)):
        process = draw.choice(processes)
        chance = draw.random()
        if chance < 0.35:
            message = f"{name}m{draw.randint(0, 10**6)}"
            if message in sent:
                continue
            everyone = [*processes, f"{name}nobody"] if draw.random() < 0.1 else processes
            to = draw.sample(everyone, draw.randint(0, len(everyone)))
            if draw.random() < 0.9:
                to = [target for target in to if target != process]
            if to and draw.random() < 0.05:
                to.append(to[0])
            sent[message] = draw.random() < 0.1
            # A message is control if any of its events says so; not all of them have to.
            said = sent[message] and len(events) % 2 == 0
            add(process, kind="send", message=message, to=tuple(to), control=said)
            flying += [(target, message) for target in to if target in processes]
            if process not in to and draw.random() < 0.15:  # its own copy, which `to` does not name
                flying.append((process, message))
        elif chance < 0.8 and flying:
            target, message = draw.choice(flying)
            if draw.random() < 0.97 or not faults:
                flying.remove((target, message))
            moved = faults and draw.random() < 0.04
            if moved:
                target = draw.choice(processes)
            if faults and draw.random() < 0.02:
                message = f"{name}unsent{draw.randint(0, 3)}"
            if draw.random() < 0.3:
                add(target, kind="receive", message=message, control=sent.get(message, False))
            for _ in range(2 if moved and len(events) % 2 else 1):
                add(target, kind="deliver", message=message, control=sent.get(message, False))
        else:
            some = draw.sample(events, min(len(events), draw.randint(0, 2)))
            parents = [event.id for event in some]
            if faults and draw.random() < 0.03:
                parents.append(f"{name}lost" if len(events) % 2 else f"{process}#9999")
            add(process, parents=tuple(parents))
    return events


def many_logs(seeds: Iterable[int], faults: bool = True) -> list[Event]:
    """Executions that have nothing to do with each other, in one log."""
    return [event for seed in seeds for event in random_log(seed, f"{seed:03}/", faults)]


def shuffled(events: Sequence[Event], seed: int = 0) -> list[Event]:
    return Random(seed).sample(events, len(events))


def frame(spark: SparkSession, events: Sequence[Event], floats: bool = False) -> DataFrame:
    """The events as rows; the text of each tells who it is."""
    rows = [
        (
            event.process,
            event.seq,
            event.kind,
            None if event.id == f"{event.process}#{event.seq}" else event.id,
            event.message,
            None if event.to is None else list(event.to),
            list(event.parents) if event.parents else None,
            event.time if event.time is None or not floats else float(event.time),
            event.control or None,
            event.id,
        )
        for event in events
    ]
    return spark.createDataFrame(rows, SCHEMA.format(time="double" if floats else "long"))


def together(executions: Iterable[Sequence[Event]]) -> list[Event]:
    """Executions as parts of one log: every name in them begins with the number of its execution."""
    return [
        replace(
            event,
            process=f"{number:03}/{event.process}",
            id=f"{number:03}/{event.id}",
            message=None if event.message is None else f"{number:03}/{event.message}",
            to=None if event.to is None else tuple(f"{number:03}/{target}" for target in event.to),
            parents=tuple(f"{number:03}/{parent}" for parent in event.parents),
        )
        for number, events in enumerate(executions)
        for event in events
    ]


def mutated(events: Sequence[Event], seed: int) -> list[Event]:
    """The execution with a few deliveries exchanged, repeated, moved to others, or lost from the log."""
    draw = Random(seed)
    found = list(events)
    deliveries = [number for number, event in enumerate(found) if event.kind == "deliver"]
    for _ in range(draw.randint(1, 4) if deliveries else 0):
        one, other = draw.choice(deliveries), draw.choice(deliveries)
        first, second = found[one], found[other]
        match draw.choice(["exchange", "repeat", "move", "lose"]):
            case "exchange" if first.process == second.process:
                found[one] = replace(first, message=second.message)
                found[other] = replace(second, message=first.message)
            case "repeat" if first.process == second.process and one < other:
                found[other] = replace(second, message=first.message)
            case "move" if first.process != second.process and one < other:
                found[other] = replace(second, message=first.message)
            case "lose":
                found[one] = replace(first, kind="local", message=None)
    return found


def without_times(events: Sequence[Event]) -> list[Event]:
    return [replace(event, time=None) for event in events]

"""Messages on their way to Spark: from simulated executions, disordered, with losses and copies."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from causet.check.oracle import judge
from causet.errors import BadInput
from causet.formats.messages import messages_of
from causet.model import Event
from causet.spark.streams.file_sink import FileSink
from causet.stamp import canonical, frontier_of
from tests.helpers.runs import random_execution

SHAPES = ("matrix", "histories", "slow", "vector", "fifo")
"""Protocols whose runs have every shape of targets and groups between them, and one that delivers in no
causal order itself."""
SCHEMA = "receiver string, source string, sequence string, causaldeps string, subject string"
Message = dict[str, Any]


def per_receiver(message: Message) -> list[Message]:
    """A message to groups as one message of the older form for each of them: the group is its domain, and the
    only one there is."""
    found = []
    numbers, past = frontier_of(message)
    plain = {name: message[name] for name in message if not name.startswith("causal")}
    for group in json.loads(message["causalgroups"]):
        deps = {name: number for name, number in past.get(group, {}).items() if name != message["source"]}
        more = {"id": f"{message['id']}@{group}", "receiver": group, "sequence": f"{numbers[group]:020}"}
        found.append({**plain, **more, "causaldeps": canonical(deps)})
    return found


class Streams:
    """The messages of several executions, each receiver's a stream of its own, called `run/receiver`."""

    def __init__(self, seed: int, runs: int, most: int = 400) -> None:
        self.runs: dict[str, list[Event]] = {}
        self.messages: list[Message] = []
        draw = random.Random(seed)
        for number in range(runs):
            name = f"{number:02}"
            events = random_execution(SHAPES[number % len(SHAPES)], seed + number).events
            self.runs[name] = events
            for message in (each for one in messages_of(events) for each in per_receiver(one)):
                self.messages.append({**message, "receiver": f"{name}/{message['receiver']}"})
        self.messages = self.messages[:most]
        draw.shuffle(self.messages)

    def damaged(self, seed: int, loss: float) -> list[Message]:
        """Some lost, some twice, in another order."""
        draw = random.Random(seed)
        kept = [message for message in self.messages if draw.random() >= loss]
        kept += [message for message in kept if draw.random() < 0.1]
        draw.shuffle(kept)
        return kept

    def violations(self, delivered: dict[str, list[str]]) -> int:
        """What the oracle finds if somebody who sends nothing delivers these messages, by receiver, in this
        order."""
        found = 0
        for name, events in self.runs.items():
            watched = {
                receiver: each for receiver, each in delivered.items() if receiver.startswith(f"{name}/")
            }
            changed = []
            for event in events:
                if event.kind == "send":
                    watchers = [
                        f"seen {receiver}" for receiver in watched if event.message in watched[receiver]
                    ]
                    event = replace(event, to=(*(event.to or ()), *watchers))
                changed.append(event)
            for receiver, subjects in watched.items():
                changed += [
                    Event(process=f"seen {receiver}", seq=seq, kind="deliver", message=subject)
                    for seq, subject in enumerate(subjects, 1)
                ]
            verdict = judge(changed)
            found += sum(each.process.startswith("seen ") for each in verdict.violations)
            assert not any(process.startswith("seen ") for process, _ in verdict.duplicates)
        return found


def write_files(folder: Path, messages: Sequence[Message], size: int) -> Path:
    """The messages as files of so many lines, which a stream reads one by one."""
    folder.mkdir(parents=True)
    for number, at in enumerate(range(0, len(messages), size)):
        lines = "".join(json.dumps(message) + "\n" for message in messages[at : at + size])
        file = folder / f"{number:05}.jsonl"
        file.write_text(lines)
        os.utime(file, (1_700_000_000 + number,) * 2)  # streams take the oldest file first
    return folder


SENT = pa.schema(
    [
        ("receiver", pa.string()),
        ("source", pa.string()),
        ("sequence", pa.int64()),
        ("causaldeps", pa.string()),
        ("subject", pa.string()),
    ]
)


def write_parquet(folder: Path, messages: Sequence[Message], size: int, schema: pa.Schema = SENT) -> Path:
    """The same as Parquet, with sequences that are numbers; beside what is there already."""
    folder.mkdir(parents=True, exist_ok=True)
    begun = len(list(folder.iterdir()))
    for number, at in enumerate(range(0, len(messages), size), begun):
        rows = [
            {**row, "sequence": None if row.get("sequence") is None else int(row["sequence"])}
            for row in messages[at : at + size]
        ]
        pq.write_table(pa.Table.from_pylist(rows, schema), folder / f"{number:05}.parquet")
    return folder


def dies_after_writing(patch: pytest.MonkeyPatch, which: Callable[[int, Any], bool]) -> None:
    """A batch is in the sink, and Spark does not know it yet: there the run ends, the first time."""
    write = FileSink.write
    left = [True]

    def written(self: FileSink, rows: Any, batch: int) -> None:
        write(self, rows, batch)
        if left[0] and which(batch, self):
            left[0] = False
            raise BadInput("the run ends here")

    patch.setattr(FileSink, "write", written)

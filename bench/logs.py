"""Logs of any size for the benchmarks of the pipeline, written as Parquet in the trace format.

Events happen one after the other at 64 processes whose clocks differ by up to 5,000 events, and stand in the
file up to 50,000 places away from where they happened: neither file order nor time order is causal.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

Array = np.ndarray[Any, Any]

PROCESSES = 64
ROWS = 500_000
"""Rows that are made and written at a time."""
PER_EVENT = 1_000
"""The unit of time, per event."""

SCHEMA = pa.schema(
    [
        ("process", pa.string()),
        ("seq", pa.int64()),
        ("kind", pa.string()),
        ("id", pa.string()),
        ("message", pa.string()),
        ("to", pa.list_(pa.string())),
        ("parents", pa.list_(pa.string())),
        ("time", pa.int64()),
        ("text", pa.string()),
    ]
)


class _Run:
    """Who does what, in the order in which it happens, and where it stands in the file."""

    def __init__(self, process: Array, draw: np.random.Generator) -> None:
        n = len(process)
        self.process = process
        by_process = np.argsort(process, kind="stable")
        first = np.searchsorted(process[by_process], np.arange(PROCESSES + 1))
        self.seq = np.empty(n, np.int64)
        self.seq[by_process] = np.arange(n) - np.repeat(first[:-1], np.diff(first)) + 1
        skew = draw.integers(-5_000 * PER_EVENT, 5_000 * PER_EVENT, PROCESSES)
        jitter = draw.integers(0, 3 * PER_EVENT, n)
        self.time = np.arange(n, dtype=np.int64) * PER_EVENT + skew[process] + jitter
        self.in_file = np.argsort(np.arange(n) + draw.integers(0, 50_000, n), kind="stable")

    def write(self, path: Path, columns: Any) -> None:
        with pq.ParquetWriter(path, SCHEMA) as writer:
            for begin in range(0, len(self.process), ROWS):
                some = self.in_file[begin : begin + ROWS]
                made = {
                    "process": pa.array(NAMES[self.process[some]]),
                    "seq": pa.array(self.seq[some]),
                    "time": pa.array(self.time[some]),
                    "text": pa.array([f"request {x} took {x % 977} ms and went well" for x in some.tolist()]),
                    **columns(some),
                }
                whole = {
                    field.name: made.get(field.name, pa.nulls(len(some), field.type)) for field in SCHEMA
                }
                writer.write_table(pa.table(whole, schema=SCHEMA))


NAMES = np.array([f"service-{number:02}" for number in range(PROCESSES)])


def write_parents(path: Path, events: int, own_ids: bool) -> None:
    """A log in which three events of ten have a cause in another process, named process#seq or by its id."""
    draw = np.random.default_rng(1)
    run = _Run(draw.integers(0, PROCESSES, events).astype(np.int32), draw)
    cause = np.maximum(np.arange(events) - draw.integers(1, 1_000, events), 0)
    has = (draw.random(events) < 0.3) & (run.process[cause] != run.process)

    def ids(numbers: Array) -> list[str]:
        if own_ids:
            return [f"{x * 2654435761 % 2**64:016x}" for x in numbers.tolist()]
        names, seqs = NAMES[run.process[numbers]].tolist(), run.seq[numbers].tolist()
        return [f"{name}#{seq}" for name, seq in zip(names, seqs, strict=True)]

    def columns(some: Array) -> dict[str, Any]:
        offsets = np.concatenate([[0], np.cumsum(has[some])]).astype(np.int32)
        texts = pa.array(ids(cause[some][has[some]]), pa.string())
        made = {"parents": pa.ListArray.from_arrays(pa.array(offsets), texts)}
        return {**made, "id": pa.array(ids(some))} if own_ids else made

    run.write(path, columns)


def write_messages(path: Path, events: int) -> None:
    """A log of sends and deliveries, every message to one process and delivered 5,000 sends later: causal
    order, but for a few that are delivered one place too early."""
    draw = np.random.default_rng(2)
    messages = events // 2
    sender = draw.integers(0, PROCESSES, messages)
    target = (sender + draw.integers(1, PROCESSES, messages)) % PROCESSES
    moment = np.concatenate([np.arange(messages) * 2, (np.arange(messages) + 5_000) * 2 + 1])
    early = messages + np.arange(messages // 10, messages, messages // 10)
    moment[early] -= 9_000
    happens = np.argsort(moment, kind="stable")
    message = np.concatenate([np.arange(messages)] * 2)[happens]
    sends = happens < messages
    run = _Run(np.where(sends, sender[message], target[message]).astype(np.int32), draw)
    number = np.empty(messages, np.int64)
    by_sender = np.argsort(sender, kind="stable")
    first = np.searchsorted(sender[by_sender], np.arange(PROCESSES + 1))
    number[by_sender] = np.arange(messages) - np.repeat(first[:-1], np.diff(first)) + 1

    def columns(some: Array) -> dict[str, Any]:
        which, sent = message[some], sends[some]
        names, numbers = NAMES[sender[which]].tolist(), number[which].tolist()
        offsets = np.concatenate([[0], np.cumsum(sent)]).astype(np.int32)
        targets = pa.array(NAMES[target[which[sent]]])
        return {
            "kind": pa.array(np.where(sent, "send", "deliver")),
            "message": pa.array([f"{name}:{x}" for name, x in zip(names, numbers, strict=True)]),
            "to": pa.ListArray.from_arrays(pa.array(offsets), targets),
        }

    run.write(path, columns)

"""A small execution with one violation, for the tests of pages."""

from __future__ import annotations

from typing import Any

from causet.model import Event


def send(process: str, seq: int, message: str, *to: str, **more: Any) -> Event:
    return Event(process, seq, "send", message=message, to=to, **more)


def receive(process: str, seq: int, message: str, **more: Any) -> Event:
    return Event(process, seq, "receive", message=message, **more)


def deliver(process: str, seq: int, message: str, **more: Any) -> Event:
    return Event(process, seq, "deliver", message=message, **more)


TALK = [
    # p1 ● a ──────────────────────────▶ p3: too late
    # p2 ──▶ a ● b (an answer) ──▶ p3: delivered first
    send("p1", 1, "a", "p2", "p3", time=10, text="question"),
    receive("p2", 1, "a", time=20),
    deliver("p2", 2, "a", time=21),
    send("p2", 3, "b", "p3", time=5, text="answer, retry"),
    receive("p3", 1, "b", time=30),
    deliver("p3", 2, "b", time=31),
    receive("p3", 3, "a", time=40),
    deliver("p3", 4, "a", time=41),
    Event("p1", 2, time=50, text="kill -9"),
    Event("p1", 3, time=60, text="restart"),
    Event("p4", 1, time=15, text="something else"),
]
"""Its only violation: p3 delivers b before a."""

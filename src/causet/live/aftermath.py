"""What became of the messages of a demonstration, and what would have in other orders, by the oracle."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from causet.check.oracle import Violation, judge
from causet.envelope import numbers_of
from causet.model import Event

Envelope = Mapping[str, Any]
Readers = Mapping[str, Sequence[str]]
Orders = Mapping[str, Sequence[str]]
"""For each reader the messages that it gets, in their order."""


@dataclass(frozen=True)
class Outcome:
    """What the readers get, in some order, and how many of these deliveries come before a cause."""

    deliveries: int
    early: tuple[Violation, ...]
    status: str


@dataclass(frozen=True)
class Run:
    """A run of the demonstration, as an observer of everything sees it."""

    readers: Readers
    steps: Sequence[tuple[str, str, Envelope]]
    """what the services did: who, `deliver` or `send`, and the message"""
    arrived: Sequence[tuple[Envelope, int]]
    """in which order the network gave the messages, duplicates too, and when (ms)"""

    @property
    def sent(self) -> dict[str, Envelope]:
        """The messages by their subjects, in the order in which they were sent."""
        return {str(envelope["subject"]): envelope for _, kind, envelope in self.steps if kind == "send"}

    def as_arrived(self) -> Orders:
        return self._orders(envelope for envelope, _ in self.arrived)

    def by_clock(self) -> Orders:
        """Sorted by the time that the messages carry, as people do it."""
        return self._orders(sorted(self.sent.values(), key=lambda envelope: str(envelope["time"])))

    def _orders(self, messages: Iterable[Envelope]) -> Orders:
        found: dict[str, dict[str, None]] = {reader: {} for reader in self.readers}
        for envelope in messages:
            for reader in self._readers_of(envelope):
                found[reader].setdefault(envelope["subject"])
        return {reader: list(names) for reader, names in found.items()}

    def _readers_of(self, envelope: Envelope) -> list[str]:
        groups = numbers_of(envelope).keys()
        return [reader for reader, reads in self.readers.items() if groups & set(reads)]

    def trace(self, delivered: Orders) -> Iterator[Event]:
        """The run as an execution: what the services did, what arrived for the readers, and in which order
        they got it."""
        sent = self.sent
        targets = {name: set(self._readers_of(envelope)) for name, envelope in sent.items()}
        for service, kind, envelope in self.steps:
            if kind == "deliver":
                targets[envelope["subject"]].add(service)
        seqs: dict[str, int] = {}

        def event(process: str, kind: str, envelope: Envelope, now: int | None) -> Event:
            seqs[process] = seqs.get(process, 0) + 1
            name = str(envelope["subject"])
            sends = kind == "send"
            return Event(
                process=process,
                seq=seqs[process],
                kind=kind,
                message=name,
                to=tuple(sorted(targets[name])) if sends else None,
                time=now,
                text=str(envelope["data"]["text"]) if sends else None,
            )

        for service, kind, envelope in self.steps:
            clock = round(datetime.fromisoformat(envelope["time"]).timestamp() * 1000)
            yield event(service, kind, envelope, clock if kind == "send" else None)
        waiting = {reader: list(order) for reader, order in delivered.items()}
        here: set[str] = set()
        for envelope, now in self.arrived:
            name = envelope["subject"]
            if name in here:
                continue
            here.add(name)
            for reader in self._readers_of(envelope):
                yield event(reader, "receive", envelope, now)
            for reader, rest in waiting.items():
                while rest and rest[0] in here:
                    yield event(reader, "deliver", sent[rest.pop(0)], now)

    def outcome(self, delivered: Orders) -> Outcome:
        """What the oracle says of these orders."""
        verdict = judge(list(self.trace(delivered)))
        early = tuple(each for each in verdict.violations if each.process in self.readers)
        return Outcome(sum(map(len, delivered.values())), early, verdict.status)

    def is_through_others(self, violation: Violation) -> bool:
        """Whether the chain behind a violation runs through groups that the reader does not read."""
        sent = self.sent
        return any(violation.process not in self._readers_of(sent[name]) for name in violation.because)

    def in_words(self, violation: Violation) -> str:
        """A violation, in plain words."""
        effect, cause = (self._told(name) for name in (violation.delivered, violation.before))
        return f"{effect} would reach {violation.process} before {cause}"

    def chain_in_words(self, violation: Violation) -> str:
        """How the cause led to the effect."""
        sent = self.sent
        links = []
        for name in violation.because:
            groups = " and ".join(numbers_of(sent[name]))
            links.append(f"“{sent[name]['data']['text']}” ({groups})")
        return " → ".join(links)

    def _told(self, name: str) -> str:
        envelope = self.sent[name]
        clock = f"{datetime.fromisoformat(envelope['time']):%H:%M:%S.%f}"[:-3]
        return f"“{envelope['data']['text']}” ({envelope['source']}, its clock said {clock})"

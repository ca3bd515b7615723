"""A trace as messages: CloudEvents with `sequence` and `causaldeps`, one domain per receiver, renumbered.

Each send becomes one message for each of its targets; the target is the domain and stands in the attribute
`receiver`. Within a domain each source's messages are numbered 1, 2, 3, … in the order in which it sent them.
A message depends on the previous one of its source, and on its `causaldeps`: of all messages to the same
receiver that precede it, those that precede no other of them and do not precede the source's previous one.

Rule: precedence goes through deliveries: m precedes n if n's sender sent or delivered m
before it sent n, transitively, to whichever process m was addressed. Receptions alone and explicit parents
do not count, since the application learns nothing from them, and control messages take no part.

A trace without sends has no messages; its events are taken for messages to all, in the one domain `all`:
`sequence` is the event's seq, and the `causaldeps` are its parents.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from causet.errors import BadInput, quote
from causet.files import new_file
from causet.formats import causality
from causet.formats.shiviz.clocks import MOST_ENTRIES, Point, direct_causes
from causet.model import Event
from causet.stamp import TYPE, canonical

Known = Mapping[str, Mapping[str, int]]
"""For each message, by its id: how many messages of each process its sender knew, itself included."""


def write_cloudevents(path: str | Path, events: Sequence[Event]) -> int:
    """Write the messages as JSON Lines, and return how many there were."""
    count = 0
    with new_file(Path(path)) as stream:
        for message in messages_of(events):
            try:
                line = json.dumps(
                    message, ensure_ascii=False, allow_nan=False, separators=(",", ":")
                ).encode()
            except (TypeError, ValueError, RecursionError) as error:
                raise BadInput(f"message {quote(message['id'])} cannot be written as JSON: {error}") from None
            stream.write(line + b"\n")
            count += 1
    return count


def messages_of(events: Sequence[Event]) -> Iterator[dict[str, Any]]:
    """The messages, in the order of the sends, each send's in the order of its targets."""
    if not any(event.kind == "send" for event in events):
        yield from _events_as_messages(events)
        return
    sends = [event for event in events if event.kind == "send" and not event.control]
    known = _knowledge(events)
    domains: dict[str, _Domain] = {}
    for event in sorted(sends, key=lambda event: event.seq):
        for receiver in _receivers(event):
            domains.setdefault(receiver, _Domain()).add(event, known)
    deps = {receiver: domain.dependencies(known) for receiver, domain in domains.items()}
    taken: set[tuple[str, str]] = set()
    for event in sends:
        for receiver in _receivers(event):
            point = domains[receiver].points[str(event.message)]
            name = f"{event.message}@{receiver}"
            while (event.process, name) in taken:  # ids may hold an @ themselves
                name += "'"
            taken.add((event.process, name))
            yield _cloudevent(event, name, receiver, point[1], deps[receiver][point])


def _receivers(event: Event) -> list[str]:
    return [name for name in dict.fromkeys(event.to or ()) if name != event.process]


def _cloudevent(
    event: Event, name: str, receiver: str, sequence: int, deps: Sequence[Point]
) -> dict[str, Any]:
    data = {"time": event.time, "text": event.text, "group": event.group, **event.extra}
    found = {
        "specversion": "1.0",
        "type": TYPE,
        "source": event.process,
        "id": name,
        "subject": event.message or event.id,
        "sequence": f"{sequence:020}",
        "causaldeps": canonical(dict(deps)),
        "receiver": receiver,
    }
    data = {name: value for name, value in data.items() if value is not None}
    return {**found, "data": data} if data else found


class _Domain:
    """The messages to one receiver, numbered per source. They are added in the order of their sending."""

    def __init__(self) -> None:
        self.points: dict[str, Point] = {}
        self._sends: dict[str, list[int]] = {}  # per source: which of all its sends these are, from 1

    def add(self, event: Event, known: Known) -> None:
        sends = self._sends.setdefault(event.process, [])
        sends.append(known[str(event.message)][event.process])
        self.points[str(event.message)] = event.process, len(sends)

    def dependencies(self, known: Known) -> dict[Point, tuple[Point, ...]]:
        """For each message its direct causes, beside the previous one of its source.

        Counted within the domain, what a message's sender knew is a vector clock, and its direct causes are
        those of the clock.
        """
        clocks: dict[Point, dict[str, int]] = {}
        for message, point in self.points.items():
            clock = {
                source: bisect_right(self._sends[source], count)
                for source, count in known[message].items()
                if source in self._sends
            }
            clocks[point] = {source: count for source, count in clock.items() if count}
        return {point: causes.known for point, causes in direct_causes(clocks).items()}


def _knowledge(events: Sequence[Event]) -> Known:
    """What each message's sender knew when it sent it, the message itself included."""
    sends = {str(event.message): event for event in events if event.kind == "send" and not event.control}
    known: dict[str, dict[str, int]] = {}
    at: dict[str, dict[str, int]] = {}
    entries = 0
    for number in causality.causal_order(causality.direct_causes(events)):
        event = events[number]
        mine = at.setdefault(event.process, {})
        if event.kind == "deliver" and str(event.message) in known:
            for process, count in known[str(event.message)].items():
                mine[process] = max(count, mine.get(process, 0))
        elif event.kind == "send" and str(event.message) in sends:
            mine[event.process] = mine.get(event.process, 0) + 1
            known[str(event.message)] = dict(mine)
            entries += len(mine)
            if entries > MOST_ENTRIES:
                raise BadInput(
                    f"what the senders of these {len(sends):,} messages know has more than {MOST_ENTRIES:,} "
                    "entries; convert a shorter trace"
                )
    return known


def _events_as_messages(events: Sequence[Event]) -> Iterator[dict[str, Any]]:
    by_id = {event.id: event for event in events}
    for event in events:
        deps: dict[str, int] = {}
        for parent in event.parents:
            cause = by_id.get(parent)
            if cause is not None and cause.process != event.process:
                deps[cause.process] = max(cause.seq, deps.get(cause.process, 0))
        yield _cloudevent(event, event.id, "all", event.seq, sorted(deps.items()))

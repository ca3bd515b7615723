"""A trace as messages: CloudEvents with `causalgroups`, `causalnumbers` and `causaldeps`.

Each send becomes one message. Each of its targets is a group of its own, which has the target's name; so a
process reads the one group that has its name, and a message goes to the groups of all its targets. Within a
group each source's messages are numbered 1, 2, 3, … in the order in which it sent them. What a message says
of its past is what a stamper would say (`causet.frontier`).

Rule: precedence goes through deliveries: m precedes n if n's sender sent or delivered m
before it sent n, transitively, to whichever process m was addressed. Receptions alone and explicit parents
do not count, since the application learns nothing from them, and control messages take no part.

A trace without sends has no messages; its events are taken for messages to all, in the one group `all`: the
number is the event's seq, and the frontier is made of its parents.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from causet.envelope import (
    ALL,
    DEPS,
    GROUPS,
    MOST_DEPS,
    NUMBERS,
    TYPE,
    VERSION,
    VERSION_NAME,
    canonical,
)
from causet.errors import BadInput, quote
from causet.files import new_file
from causet.formats import causality
from causet.frontier import PRIORITY_MARK, Frontier, Stamped
from causet.model import Event

MOST_ENTRIES = 50_000_000


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
    """The messages, in the order of the sends. A send without targets is none."""
    if not any(event.kind == "send" for event in events):
        yield from _events_as_messages(events)
        return
    stamped = _stamped(events)
    for event in events:
        if _is_message(event):
            yield _cloudevent(event, _receivers(event), stamped[str(event.message)])


def _is_message(event: Event) -> bool:
    return event.kind == "send" and not event.control and bool(_receivers(event))


def _receivers(event: Event) -> list[str]:
    return [name for name in dict.fromkeys(event.to or ()) if name != event.process]


def _cloudevent(event: Event, groups: Sequence[str], stamped: Stamped) -> dict[str, Any]:
    for group in groups:
        if PRIORITY_MARK in group:
            raise BadInput(f"the name of a group cannot have the character U+001F, as {quote(group)} has")
    data = {"time": event.time, "text": event.text, "group": event.group, **event.extra}
    found = {
        "specversion": "1.0",
        "type": TYPE,
        "source": event.process,
        "id": event.message or event.id,
        "subject": event.message or event.id,
        VERSION_NAME: VERSION,
        GROUPS: canonical(groups),
        NUMBERS: canonical(stamped.numbers),
        DEPS: canonical(stamped.past),
    }
    if len(groups) == 1:
        found["sequence"] = f"{stamped.numbers[groups[0]]:020}"
    data = {name: value for name, value in data.items() if value is not None}
    return {**found, "data": data} if data else found


def _stamped(events: Sequence[Event]) -> dict[str, Stamped]:
    """What each message says, by its id."""
    sends = {str(event.message): event for event in events if _is_message(event)}
    known: dict[str, Frontier[str, str]] = {}
    found: dict[str, Stamped] = {}
    entries = 0
    for number in causality.causal_order(causality.direct_causes(events)):
        event = events[number]
        name = str(event.message)
        mine = known.setdefault(event.process, Frontier(event.process))
        if event.kind == "deliver" and name in found:
            mine.saw(sends[name].process, *found[name])
        elif _is_message(event):
            found[name] = mine.stamp(_receivers(event))
            size = len(found[name].numbers) + sum(map(len, found[name].past.values()))
            entries += size
            if size > MOST_DEPS:
                raise BadInput(
                    f"message {quote(name)} would name {size:,} messages, and {MOST_DEPS:,} is the most"
                )
            if entries > MOST_ENTRIES:
                raise BadInput(
                    f"these {len(sends):,} messages would name more than {MOST_ENTRIES:,} others; convert a "
                    "shorter trace"
                )
    return found


def _events_as_messages(events: Sequence[Event]) -> Iterator[dict[str, Any]]:
    by_id = {event.id: event for event in events}
    for event in events:
        deps: dict[str, int] = {}
        for parent in event.parents:
            cause = by_id.get(parent)
            if cause is not None and cause.process != event.process:
                deps[cause.process] = max(cause.seq, deps.get(cause.process, 0))
        yield _cloudevent(event, [ALL], Stamped({ALL: event.seq}, {ALL: deps} if deps else {}))

"""What became of the messages of a demonstration: who saw an effect before its cause, in which order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from causet.envelope import numbers_of
from causet.model import Event

Envelope = Mapping[str, Any]


@dataclass(frozen=True)
class Reversal:
    """An effect that stands before its cause."""

    effect: Envelope
    cause: Envelope


def reversals(order: Iterable[Envelope], because: Mapping[str, Sequence[str]]) -> list[Reversal]:
    """The messages that stand before one of their causes, each with one such cause; of duplicates, the
    first one counts."""
    place: dict[str, int] = {}
    known: dict[str, Envelope] = {}
    for envelope in order:
        place.setdefault(envelope["subject"], len(place))
        known.setdefault(envelope["subject"], envelope)
    found = []
    for name, causes in because.items():
        late = [cause for cause in causes if name in place and place.get(cause, len(place)) > place[name]]
        if late:
            found.append(Reversal(known[name], known[late[0]]))
    return found


def in_words(reversal: Reversal) -> str:
    """A reversal, in plain words."""
    effect, cause = reversal.effect, reversal.cause
    return (
        f"“{effect['data']['text']}” ({effect['source']}, its clock said {_clock(effect)}) would come before "
        f"“{cause['data']['text']}” ({cause['source']}, {_clock(cause)})"
    )


def _clock(envelope: Envelope) -> str:
    return f"{datetime.fromisoformat(envelope['time']):%H:%M:%S.%f}"[:-3]


def by_clock(sent: Iterable[Envelope]) -> list[Envelope]:
    """Sorted by the time that they carry, as people do it."""
    return sorted(sent, key=lambda envelope: str(envelope["time"]))


def as_trace(
    steps: Sequence[tuple[str, str, Envelope]],
    arrived: Sequence[tuple[Envelope, int]],
    delivered: Mapping[str, Sequence[str]],
) -> Iterator[Event]:
    """The run as an execution: what the services did, what arrived at the readers and when (ms), and in which
    order they got it."""
    named = {str(envelope["subject"]): envelope for _, kind, envelope in steps if kind == "send"}
    targets = {name: {_reader(envelope)} for name, envelope in named.items()}
    for service, kind, envelope in steps:
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

    for service, kind, envelope in steps:
        clock = round(datetime.fromisoformat(envelope["time"]).timestamp() * 1000)
        yield event(service, kind, envelope, clock if kind == "send" else None)
    waiting = {f"reader of {group}": list(order) for group, order in delivered.items()}
    here: set[str] = set()
    for envelope, now in arrived:
        name = envelope["subject"]
        if name in here:
            continue
        here.add(name)
        reader = _reader(envelope)
        yield event(reader, "receive", envelope, now)
        rest = waiting.get(reader, [])
        while rest and rest[0] in here:
            yield event(reader, "deliver", named[rest.pop(0)], now)


def _reader(envelope: Envelope) -> str:
    """Who reads the one group that a message goes to."""
    [group] = numbers_of(envelope)
    return f"reader of {group}"

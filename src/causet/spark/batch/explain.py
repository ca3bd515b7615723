"""`explain()`: what happened before one event, after it, concurrently; or how two events are related.

One task runs the kernels on the skeleton and answers in numbers of events; then the rows of those few events
are fetched, and named by their ids.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from causet.errors import BadInput, listed, quote
from causet.kernels.logs.pages import ABSENT
from causet.spark.batch.explanation import (
    MESSAGE,
    PARENT,
    PROCESS_ORDER,
    Awaited,
    Cone,
    Direct,
    EventExplained,
    Explanation,
    Mention,
    Message,
    Nearby,
    Related,
    Step,
    Wait,
    counted,
)
from causet.spark.batch.reach import EventKernel, RelationKernel, ask
from causet.spark.skeleton.census import RANK, Census, field, own_id, take_census
from causet.spark.skeleton.faults import log_faults

CARRIES = ("send", "receive", "deliver")
"""Kinds of events that have a message."""
NEAREST = 10
_POSITION = re.compile(r"(.*)#([1-9][0-9]{0,17})", re.DOTALL)
_ID = "__id"


# ---------------------------------------------------------------- asking


def explain(events: DataFrame, a: str, b: str | None = None, nearest: int = NEAREST) -> Explanation:
    """Explain one event among all others (`EventExplained`), or how two are related (`Related`).

    `a` and `b` are ids of events (their own, or `process#seq`) or of messages, which stand for their sends.
    `nearest` says how many causes, effects and concurrent events are named. An unknown id, like any bad
    input, raises `causet.errors.BadInput`.
    """
    numbered, census = take_census(events)
    rows = rows_about(numbered, census, [a] if b is None else [a, b])
    first = find_event(numbered, census, rows, a)
    if b is None:
        return _explained(numbered, census, first, rows, max(nearest, 0))
    return _related(numbered, census, first, find_event(numbered, census, rows, b))


def _explained(
    numbered: DataFrame, census: Census, asked: Found, rows: list[dict[str, Any]], nearest: int
) -> EventExplained:
    story = _story_of(numbered, census, asked, rows)
    send, waits = (story.send, story.waits) if story else (ABSENT, ())
    kernel = EventKernel(asked.number, nearest, send, waits)
    found, notes = ask(numbered, census, kernel, deliveries=bool(waits))
    numbers = {asked.number, *found["concurrent"], *chain.from_iterable(waits)} - {ABSENT}
    for side in ("causes", "effects"):
        numbers |= {*found[side]["direct"], *(n for near in found[side]["nearest"] for n in near[1:])}
    for wait in found["waits"]:
        numbers |= {*chain.from_iterable(wait["awaited"]), *wait["missing"]}
    mentions = _mentions(numbered, census, numbers)
    return EventExplained(
        events=census.events,
        faults=log_faults(notes, numbered, census),
        event=mentions[asked.number],
        fields=asked.fields,
        causes=_cone(found["causes"], mentions, asked.number, backwards=True),
        effects=_cone(found["effects"], mentions, asked.number, backwards=False),
        concurrent=census.events - 1 - found["causes"]["count"] - found["effects"]["count"],
        concurrent_with=tuple(mentions[number] for number in found["concurrent"]),
        message=_message(story, found["waits"], mentions) if story else None,
    )


def _related(numbered: DataFrame, census: Census, a: Found, b: Found) -> Related:
    found, notes = ask(numbered, census, RelationKernel(a.number, b.number))
    steps = found["chain"]
    numbers = {a.number, b.number, *(number for step in steps for number in step[:2])}
    mentions = _mentions(numbered, census, numbers)
    return Related(
        events=census.events,
        faults=log_faults(notes, numbered, census),
        a=mentions[a.number],
        b=mentions[b.number],
        relation=found["relation"],
        steps=found["steps"],
        chain=tuple(
            Step(
                mentions[cause],
                mentions[effect],
                PROCESS_ORDER if count > 1 else _how(mentions, cause, effect),
                count,
            )
            for cause, effect, count in steps
        ),
        left_out=found["left_out"],
    )


def _cone(found: dict[str, Any], mentions: dict[int, Mention], event: int, backwards: bool) -> Cone:
    def how(nearer: int, further: int) -> str:
        return _how(mentions, *((further, nearer) if backwards else (nearer, further)))

    return Cone(
        count=found["count"],
        direct_count=found["direct_count"],
        direct=tuple(Direct(mentions[other], how(event, other)) for other in found["direct"]),
        nearest=tuple(
            Nearby(mentions[other], steps, how(via, other), mentions[via].id)
            for steps, other, via in found["nearest"]
        ),
    )


def _how(mentions: dict[int, Mention], cause: int, effect: int) -> str:
    its, other = mentions[effect], mentions[cause]
    if effect == cause + 1 and other.process == its.process:
        return PROCESS_ORDER
    carried = its.kind in ("receive", "deliver") and other.kind == "send"
    return MESSAGE if carried and its.message == other.message else PARENT


# ---------------------------------------------------------------- rows of events


@dataclass(frozen=True)
class Found:
    """The event that an id stands for."""

    asked: str
    number: int
    fields: dict[str, Any]


def rows_about(numbered: DataFrame, census: Census, ids: Sequence[str]) -> list[dict[str, Any]]:
    """Every row that one of these ids may stand for: of an event, or of a message."""
    condition = own_id(numbered).isin(*ids) | field(numbered, "message").isin(*ids)
    for id in ids:
        place = _position(id, census)
        if place is not None:
            condition |= (F.col("process") == place[0]) & (F.col("seq") == place[1])
    return _rows(numbered.where(condition))


def _rows(numbered: DataFrame) -> list[dict[str, Any]]:
    found = numbered.withColumn(_ID, own_id(numbered)).collect()
    return sorted((row.asDict(recursive=True) for row in found), key=lambda row: (row["process"], row["seq"]))


def _position(id: str, census: Census) -> tuple[str, int] | None:
    parts = _POSITION.fullmatch(id)
    return (parts[1], int(parts[2])) if parts and parts[1] in census.processes else None


def find_event(numbered: DataFrame, census: Census, rows: list[dict[str, Any]], id: str) -> Found:
    """The event of this id; or else the send of the message of this id; or else what stands at `process#seq`.
    BadInput if there is none."""
    carrying = [row for row in rows if row.get("message") == id and row.get("kind") in CARRIES]
    place = _position(id, census)
    candidates = [
        *(row for row in rows if row[_ID] == id),
        *(row for row in carrying if row["kind"] == "send"),
        *(row for row in rows if (row["process"], row["seq"]) == place),
    ]
    if candidates:
        row = candidates[0]
        fields = {name: value for name, value in row.items() if value is not None and name not in (RANK, _ID)}
        return Found(id, _number(census, row), fields)
    if carrying:
        events = listed(row[_ID] for row in carrying)
        raise BadInput(f"the message {quote(id)} has no send; name one of its events: {events}")
    sentence = f"there is no event and no message {quote(id)}"
    if place is not None:
        count = census.counts[census.processes.index(place[0])]
        sentence += f"; process {quote(place[0])} has {counted(count, 'event', 'events')}"
    near = _near_ids(numbered, id)
    raise BadInput(f"{sentence}; near it are {listed(near)}" if near else sentence)


def _number(census: Census, row: dict[str, Any]) -> int:
    return int(census.first[census.processes.index(row["process"])]) + int(row[RANK]) - 1


def _near_ids(numbered: DataFrame, id: str) -> list[str]:
    """A few ids of events and messages with a similar spelling."""
    sent = F.when(field(numbered, "kind") == "send", field(numbered, "message"))
    most = max(2, len(id) // 3)
    names = numbered.select(F.explode(F.array(own_id(numbered), sent)).alias("name"))
    spelt = names.withColumn("changes", F.levenshtein("name", F.lit(id), most)).where(F.col("changes") >= 0)
    return [row.name for row in spelt.orderBy("changes", "name").limit(3).collect()]


def _mention(row: Mapping[str, Any]) -> Mention:
    return Mention(
        id=row[_ID],
        process=row["process"],
        seq=int(row["seq"]),
        kind=row.get("kind") or "local",
        message=row.get("message"),
        time=row.get("time"),
    )


def _mentions(numbered: DataFrame, census: Census, numbers: Iterable[int]) -> dict[int, Mention]:
    """The events of these numbers."""
    wanted = [(*census.rank_of(number), number) for number in sorted(set(numbers))]
    table = numbered.sparkSession.createDataFrame(wanted, "__p string, __r long, __number long")
    same = (F.col("process") == F.col("__p")) & (F.col(RANK) == F.col("__r"))
    rows = numbered.join(F.broadcast(table), same).select(
        "__number",
        own_id(numbered).alias(_ID),
        "process",
        "seq",
        *(field(numbered, name).alias(name) for name in ("kind", "message", "time")),
    )
    return {row["__number"]: _mention(row.asDict()) for row in rows.collect()}


# ---------------------------------------------------------------- the story of a message


@dataclass(frozen=True)
class _Story:
    """The events of a message, as rows in the order of (process, seq)."""

    message: str
    rows: list[dict[str, Any]]
    send: int
    waits: tuple[tuple[int, int], ...]
    """(receive, deliver or ABSENT) at each process that received it"""


def _story_of(numbered: DataFrame, census: Census, asked: Found, rows: list[dict[str, Any]]) -> _Story | None:
    message = asked.fields.get("message")
    if message is None or asked.fields.get("kind") not in CARRIES:
        return None
    if message != asked.asked:
        rows = _rows(numbered.where(field(numbered, "message") == message))
    rows = [row for row in rows if row["message"] == message and row["kind"] in CARRIES]
    send = next((_number(census, row) for row in rows if row["kind"] == "send"), ABSENT)
    hidden = any(row.get("control") for row in rows)
    return _Story(message, rows, send, () if hidden or send == ABSENT else tuple(_waits(census, rows)))


def _waits(census: Census, rows: list[dict[str, Any]]) -> Iterator[tuple[int, int]]:
    """At each process its first reception, with the first delivery after it if there is any at all."""
    for process in dict.fromkeys(row["process"] for row in rows):
        here = [row for row in rows if row["process"] == process]
        received = [_number(census, row) for row in here if row["kind"] == "receive"]
        delivered = [_number(census, row) for row in here if row["kind"] == "deliver"]
        if received:
            after = [number for number in delivered if number > received[0]]
            if after or not delivered:
                yield received[0], after[0] if after else ABSENT


def _message(story: _Story, waits: list[dict[str, Any]], mentions: dict[int, Mention]) -> Message:
    by_kind: dict[str, list[Mention]] = {kind: [] for kind in CARRIES}
    for row in story.rows:
        by_kind[row["kind"]].append(_mention(row))
    return Message(
        id=story.message,
        control=any(bool(row.get("control")) for row in story.rows),
        sent=by_kind["send"][0] if by_kind["send"] else None,
        received=tuple(by_kind["receive"]),
        delivered=tuple(by_kind["deliver"]),
        waits=tuple(
            _wait(*ends, wait, mentions)
            for ends, wait in zip(story.waits, waits, strict=True)
            if wait["delivers"]
        ),
    )


def _wait(receive: int, deliver: int, found: dict[str, Any], mentions: dict[int, Mention]) -> Wait:
    received, delivered = mentions[receive], mentions.get(deliver)
    waited = None
    if delivered is not None and delivered.time is not None and received.time is not None:
        waited = delivered.time - received.time
    later = found["events"] > 0 if waited is None else waited > 0
    return Wait(
        process=received.process,
        received=received,
        delivered=delivered,
        waited=waited,
        events=found["events"],
        deliveries=found["deliveries"],
        awaited=tuple(
            Awaited(mentions[send].message or "", mentions[event]) for event, send in found["awaited"]
        ),
        awaited_count=found["awaited_count"],
        missing=tuple(mentions[send].message or "" for send in found["missing"]),
        missing_count=found["missing_count"],
        longer_than_asked=(later or delivered is None)
        and not found["awaited_count"]
        and not found["missing_count"],
    )

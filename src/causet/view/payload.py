"""Executions as the data of a page: columns of numbers and one table of strings, compressed.

    base64( zlib( length of header | header as JSON | column | column | … ) )

Only the page's own script reads it, and checks every length and index again. Whatever the strings are, the
characters of base64 cannot end a script element.
"""

from __future__ import annotations

import base64
import json
import math
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from causet.formats.causality import links_of
from causet.kernels.arrays import Array
from causet.model import Event
from causet.verdict import meaning_of
from causet.view.ordered import in_order, natural

VERSION = 1
KINDS = {"local": 0, "send": 1, "receive": 2, "deliver": 3}
NONE = -1
LONGEST_TEXT = 10_000
"""Characters of a text that go into a page."""
MESSAGE, PARENT = 0, 1
"""Kinds of causes: a message that was sent, or an event that was named."""
_TYPES = {"uint8": "u8", "uint16": "u16", "uint32": "u32", "int32": "i32", "float64": "f64"}


@dataclass(frozen=True)
class Violation:
    """A delivery that came too early, by the numbers of events."""

    delivered: int
    before: int
    """where that was delivered after all, or else sent"""
    sentence: str
    chain: tuple[int, ...] = ()
    """the sends that prove it"""


@dataclass(frozen=True)
class Verdict:
    """One of `causet.verdict.VERDICTS`, with what was found in a sentence."""

    status: str = "unjudged"
    sentence: str = "Not judged."

    def plain(self) -> dict[str, str]:
        """The record in a page: word and colour come from the one list of verdicts."""
        meaning = meaning_of(self.status)
        return {
            "status": self.status,
            "word": meaning.word,
            "tone": meaning.tone,
            "sentence": self.sentence,
        }


@dataclass(frozen=True)
class Drawing:
    """Events in their causal order, some of them shown."""

    name: str
    events: Sequence[Event]
    causes: Sequence[Sequence[int]]
    blocks: Sequence[int]
    positions: Sequence[int]
    """of the shown ones in the whole execution"""
    total: int
    left_out: str | None = None
    violations: Sequence[Violation] = ()
    verdict: Verdict = field(default_factory=Verdict)
    found: int | None = None
    """violations in the whole execution; None where it was not judged"""

    @classmethod
    def of(cls, name: str, events: Sequence[Event]) -> Drawing:
        """All events, in order; BadInput if their causes are a cycle."""
        given = sorted(events, key=lambda event: (event.process, event.seq, event.id))
        links = links_of(given)
        order = in_order(given, links)
        rank = {position: number for number, (position, _) in enumerate(order)}
        return cls(
            name,
            [given[position] for position, _ in order],
            [[rank[cause] for cause in links[position]] for position, _ in order],
            [block for _, block in order],
            range(len(given)),
            len(given),
        )

    def only(self, numbers: Sequence[int], left_out: str) -> Drawing:
        """The drawing of these events alone, given by their numbers in ascending order."""
        rank = {number: at for at, number in enumerate(numbers)}
        return Drawing(
            self.name,
            [self.events[number] for number in numbers],
            [[rank[cause] for cause in self.causes[number] if cause in rank] for number in numbers],
            [self.blocks[number] for number in numbers],
            [self.positions[number] for number in numbers],
            self.total,
            left_out,
            [
                Violation(
                    rank[each.delivered],
                    rank.get(each.before, NONE),
                    each.sentence,
                    tuple(rank[send] for send in each.chain if send in rank),
                )
                for each in self.violations
                if each.delivered in rank
            ],
            self.verdict,
            self.found,
        )


def encode(
    kind: str, title: str, drawings: Iterable[Drawing], report: Mapping[str, Any] | None = None
) -> str:
    """The data of a page, as a string."""
    columns = _Columns()
    executions = [_execution(each, columns) for each in drawings]
    header = {"version": VERSION, "kind": kind, "title": title, "executions": executions, "report": report}
    # Half of a surrogate pair is not text; it is shown escaped.
    head = json.dumps(header, ensure_ascii=False, allow_nan=False).encode("utf-8", "backslashreplace")
    begin = len(head).to_bytes(4, "little") + head
    padding = bytes(-len(begin) % 8)
    return base64.b64encode(zlib.compress(begin + padding + bytes(columns.data), 6)).decode()


class _Columns:
    """Arrays, one after the other."""

    def __init__(self) -> None:
        self.data = bytearray()

    def add(self, values: Array) -> dict[str, Any]:
        found = {"at": len(self.data), "length": len(values), "type": _TYPES[values.dtype.name]}
        self.data += values.tobytes()
        self.data += bytes(-len(self.data) % 8)
        return found


class _Texts:
    """The strings of an execution, each once."""

    def __init__(self) -> None:
        self.texts: dict[str, int] = {}

    def number(self, text: object) -> int:
        if text is None or text == "":
            return NONE
        shown = str(text)
        if len(shown) > LONGEST_TEXT:
            shown = f"{shown[:LONGEST_TEXT]}… ({len(shown):,} letters)"
        return self.texts.setdefault(shown, len(self.texts))


def _execution(drawing: Drawing, columns: _Columns) -> dict[str, Any]:
    events = drawing.events
    names = sorted({event.process for event in events}, key=natural)
    lane = {name: number for number, name in enumerate(names)}
    texts = _Texts()
    begins = np.zeros(len(events) + 1, np.uint32)
    np.cumsum([len(each) for each in drawing.causes], out=begins[1:])
    causes: list[int] = []
    kinds: list[int] = []
    for event, its in zip(events, drawing.causes, strict=True):
        causes += its
        kinds += [
            MESSAGE
            if event.kind in ("receive", "deliver")
            and events[cause].kind == "send"
            and events[cause].message == event.message
            else PARENT
            for cause in its
        ]
    given: dict[str, Array] = {
        "process": np.array([lane[event.process] for event in events], np.uint32),
        "seq": np.array([event.seq for event in events], np.float64),
        "kind": np.array([KINDS[event.kind] for event in events], np.uint8),
        "control": np.array([event.control for event in events], np.uint8),
        "block": np.array(drawing.blocks, np.uint32),
        "time": np.array([math.nan if e.time is None else e.time for e in events], np.float64),
        "position": np.array(drawing.positions, np.float64),
        "message": _numbers(texts, (event.message for event in events)),
        "id": _numbers(texts, (None if e.id == f"{e.process}#{e.seq}" else e.id for e in events)),
        "text": _numbers(texts, (event.text for event in events)),
        "group": _numbers(texts, (event.group for event in events)),
        "fault": _numbers(texts, (fault_of(event) for event in events)),
        "causeBegin": begins,
        "cause": np.array(causes, np.uint32),
        "causeKind": np.array(kinds, np.uint8),
    }
    return {
        "name": drawing.name,
        "processes": names,
        "strings": list(texts.texts),
        "events": len(events),
        "total": drawing.total,
        "leftOut": drawing.left_out,
        "timeUnit": None,
        "columns": {name: columns.add(values) for name, values in given.items()},
        "violations": [
            {
                "delivered": each.delivered,
                "before": each.before,
                "sentence": each.sentence,
                "chain": list(each.chain),
            }
            for each in drawing.violations
        ],
        "found": drawing.found,
        "verdict": drawing.verdict.plain(),
    }


def _numbers(texts: _Texts, values: Iterable[object]) -> Array:
    return np.array([texts.number(value) for value in values], np.int32)


FAULT = re.compile(r"(kill|killed|crash|crashed|restart|restarted)( -\w+)?( by .{1,40})?", re.IGNORECASE)


def fault_of(event: Event) -> str | None:
    """The fault that an event is, if the trace names it: in a field `fault`, or as the text of a local step
    that says nothing else.

    >>> fault_of(Event("p1", 3, text="kill -9 by the test"))
    'kill -9 by the test'
    >>> fault_of(Event("p1", 3, text="Restart the server when the disk is full"))
    """
    named = event.extra.get("fault")
    if isinstance(named, str) and named:
        return named
    if event.kind == "local" and event.text and FAULT.fullmatch(event.text.strip()):
        return event.text
    return None

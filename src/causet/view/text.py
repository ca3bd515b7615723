"""A small execution drawn as text, as Lamport drew them, with time running downwards.

    p1             p2          p3
    ● a → p2 p3    │           │
    ├┄┄┄┄┄┄┄┄┄┄┄┄┄▶○ a         │
    │              ◆ a         │
    │              ● b → p3    │
    │              ├┄┄┄┄┄┄┄┄┄┄▶○ b
    ├┄┄┄┄┄┄┄┄┄┄┄┄┄┄│┄┄┄┄┄┄┄┄┄┄▶○ a [b]
    │              │           ◆ a [b]
    │              │           ◆ b

A lane per process, a row per event. An arrow is drawn where a message arrives and points back to the lane
that sent it. In brackets, beside the lane, stands what the process has received and holds back.

Rows are in the order of `causet order`: by repaired time, then block, process and seq. So a drawing depends
on the events alone, not on the order in which they are given. All text comes from files that anybody may
have written: what could move the cursor, hide or reorder text is shown escaped.
"""

from __future__ import annotations

import re
import textwrap
import unicodedata
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

from causet.model import BadInput, Event

GAP = 3
"""Columns between the text of a lane and the next lane: room for an arrow's head."""
NARROWEST = 11
"""The narrowest lane that still says something."""
NARROWEST_NOTES = 16
WIDEST_LABEL = 30
"""A longer list of targets is cut although there might be room."""
LONGEST_NAME = 20
LONGEST_NOTE = 300
COMBINING = 2
"""Accents on one letter; more are somebody's joke, and escaped."""
HIDDEN = re.compile("[\u034f\u115f\u1160\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]")
"""Letters and marks that show nothing; the other invisible characters are known by their category."""


class Signs(NamedTuple):
    """What a drawing is made of."""

    send: str = "●"
    receive: str = "○"
    deliver: str = "◆"
    local: str = "▪"
    lane: str = "│"
    dash: str = "┄"
    dot: str = "·"
    right: str = "▶"
    left: str = "◀"
    control_right: str = "▷"
    control_left: str = "◁"
    from_left: str = "├"
    from_right: str = "┤"
    wrong: str = "✗"
    more: str = "…"
    to: str = "→"
    source: str = "←"
    space: str = "␣"


UNICODE = Signs()
ASCII = Signs("*", "o", "@", "=", "|", "-", ".", ">", "<", ">", "<", "+", "+", "X", "..", "->", "<-", "_")


def space_time(
    events: Sequence[Event], width: int = 100, marks: Mapping[str, str] | None = None, ascii: bool = False
) -> str:
    """The execution as lines of text, at most `width` columns wide where that is possible.

    `marks` puts a ✗ at events, by id, and a short text beside them. When there are more processes than fit,
    those of marked events and of their causes are drawn first, and a line says who is not drawn.
    """
    signs = ASCII if ascii else UNICODE
    if not events:
        return "no events"
    execution = _Execution.of(events)
    words = _Words.of(execution, signs, ascii)
    notes = {name: words.text(note) for name, note in (marks or {}).items()}
    longest = max((columns(note) for note in notes.values()), default=0)
    lanes, note_columns = _lanes(execution, width, notes, longest)
    drawn = _rows(execution, words, lanes, notes)
    widths = _widths(drawn, lanes, words, max(width - note_columns, NARROWEST))
    lines = [words.left_out(execution, lanes, width)] if len(lanes) < len(execution.processes) else []
    lines += _draw(drawn, lanes, widths, words, note_columns)
    lines += [""]
    lines += _after(execution, words, lanes, notes, drawn, width)
    return "\n".join(line.rstrip() for line in lines)


# The execution: order, arrows, what is held back


@dataclass(frozen=True, slots=True)
class _Execution:
    """The events in a causal order, and who caused what."""

    events: list[Event]
    causes: dict[int, list[Event]]  # of an event, by its identity: direct causes in other processes
    sends: dict[str, Event]
    received: set[tuple[str, str]]
    delivered: set[tuple[str, str]]
    processes: list[str]

    @classmethod
    def of(cls, events: Sequence[Event]) -> _Execution:
        given = sorted(events, key=lambda event: (event.process, event.seq, event.id))
        sends: dict[str, Event] = {}
        ids: dict[str, Event] = {}
        processes: set[str] = set()
        for event in given:
            ids.setdefault(event.id, event)
            processes.update((event.process, *(event.to or ())))
            if event.kind == "send" and event.message is not None:
                sends.setdefault(event.message, event)
        causes = {id(event): _causes(event, sends, ids) for event in given}
        return cls(
            events=_in_order(given, causes),
            causes=causes,
            sends=sends,
            received={(e.process, e.message) for e in given if e.kind == "receive" and e.message is not None},
            delivered={(e.process, e.message) for e in given if e.kind == "deliver" and e.message is not None},
            processes=sorted(processes, key=_natural),
        )

    def arrows(self, event: Event) -> list[Event]:
        """The causes to draw: a delivery's send only where the reception was not recorded."""
        told = event.kind == "deliver" and (event.process, event.message) in self.received
        sent = self.sends.get(event.message) if event.message is not None and told else None
        return [cause for cause in self.causes[id(event)] if cause is not sent and cause.process != event.process]

    def holds(self, event: Event, delivered: set[tuple[str, str]]) -> bool:
        """Whether this reception puts its message into hold-back.

        Control messages are delivered to nobody, and there are logs in which nothing is.
        """
        if event.kind != "receive" or event.message is None or not self.delivered:
            return False
        here = (event.process, event.message)
        return here not in delivered and (not event.control or here in self.delivered)


def _causes(event: Event, sends: Mapping[str, Event], ids: Mapping[str, Event]) -> list[Event]:
    found = []
    if event.kind in ("receive", "deliver") and event.message in sends:
        found.append(sends[event.message])
    found += [ids[parent] for parent in event.parents if parent in ids]
    return found


def _in_order(given: Sequence[Event], causes: Mapping[int, Sequence[Event]]) -> list[Event]:
    """The events by (repaired, block, process, seq); BadInput if they are in a cycle.

    `given` is sorted by process and seq.
    """
    direct = {id(event): list(causes[id(event)]) for event in given}
    for before, event in zip(given, given[1:], strict=False):
        if before.process == event.process:
            direct[id(event)].append(before)
    effects: dict[int, list[Event]] = defaultdict(list)
    for event in given:
        for cause in direct[id(event)]:
            effects[id(cause)].append(event)
    missing = {name: len(found) for name, found in direct.items()}
    rank: dict[int, tuple[int | float, int]] = {}
    free = deque(event for event in given if not missing[id(event)])
    while free:
        event = free.popleft()
        before_it = [rank[id(cause)] for cause in direct[id(event)]]
        own = -inf if event.time is None or event.time != event.time else event.time
        rank[id(event)] = (
            max([own, *(repaired for repaired, _ in before_it)]),
            1 + max((block for _, block in before_it), default=0),
        )
        for effect in effects[id(event)]:
            missing[id(effect)] -= 1
            if not missing[id(effect)]:
                free.append(effect)
    if len(rank) < len(given):
        stuck = min((event for event in given if id(event) not in rank), key=lambda e: (e.process, e.seq))
        raise BadInput(f"event {stuck.id!r} happened before itself: it is in, or after, a cycle of causes")
    return sorted(given, key=lambda event: (*rank[id(event)], event.process, event.seq, event.id))


def _natural(name: str) -> tuple[object, ...]:
    """p2 before p10: digits compare as numbers, however long."""
    parts = re.split("([0-9]+)", name)
    digits = [part.lstrip("0") for part in parts[1::2]]
    return (*(x for text, d in zip(parts, [*digits, ""], strict=False) for x in (text, len(d), d)), name)


# Which processes are drawn


def _lanes(execution: _Execution, width: int, notes: Mapping[str, str], longest: int) -> tuple[list[str], int]:
    """The processes to draw, in the order of their names, and the columns that the notes get."""
    note_columns = min(longest + 4, max(width // 3, NARROWEST_NOTES)) if notes else 0
    if len(execution.processes) * NARROWEST > width - note_columns:
        note_columns = min(note_columns, NARROWEST_NOTES)
    fit = max((width - note_columns) // NARROWEST, 1)
    if len(execution.processes) <= fit:
        return execution.processes, note_columns
    wanted = dict.fromkeys(_involved(execution, notes))
    wanted.update(dict.fromkeys(sorted({event.process for event in execution.events}, key=_natural)))
    wanted.update(dict.fromkeys(execution.processes))
    return sorted(list(wanted)[:fit], key=_natural), note_columns


def _involved(execution: _Execution, notes: Mapping[str, str]) -> Iterable[str]:
    """The processes of marked events, then those of their causes, near ones first."""
    before: dict[int, Event] = {}
    last: dict[str, Event] = {}
    for event in execution.events:
        if event.process in last:
            before[id(event)] = last[event.process]
        last[event.process] = event
    waiting = deque(event for event in execution.events if event.id in notes)
    yield from (event.process for event in waiting)
    seen = {id(event) for event in waiting}
    while waiting:
        event = waiting.popleft()
        yield event.process
        earlier = [before[id(event)]] if id(event) in before else []
        for cause in [*execution.causes[id(event)], *earlier]:
            if id(cause) not in seen:
                seen.add(id(cause))
                waiting.append(cause)


# Words: every text that is shown passes through here


def columns(text: str) -> int:
    """The columns that a terminal gives to this text."""
    return sum(_columns(letter) for letter in text)


def _columns(letter: str) -> int:
    if unicodedata.category(letter) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def plain(text: str, ascii: bool = False) -> str:
    r"""The text with everything escaped that is not simply visible.

    >>> plain("a\x1b[2J\u202eb\n")
    'a\\x1b[2J\\u202eb\\n'
    """
    found = []
    accents = 0
    for letter in unicodedata.normalize("NFC", text):
        kind = unicodedata.category(letter)
        accents = accents + 1 if kind in ("Mn", "Me") else 0
        hidden = kind[0] == "C" or (kind[0] == "Z" and letter != " ") or HIDDEN.match(letter)
        if hidden or accents > COMBINING or (accents and not found) or (ascii and letter > "~"):
            found.append(letter.encode("unicode_escape").decode("ascii"))
        else:
            found.append(letter)
    return "".join(found)


def cut(text: str, most: int, more: str, tail: int = 0) -> str:
    """The text in at most so many columns; `tail` of them, if it must be cut, keep its end."""
    if columns(text) <= most:
        return text
    head = _start(text, most - len(more) - tail)
    end = _start(text[::-1], tail)[::-1] if tail else ""
    return (head + more + end)[: max(most, 0)]


def _start(text: str, most: int) -> str:
    used = 0
    for position, letter in enumerate(text):
        used += _columns(letter)
        if used > most:
            return text[:position]
    return text


@dataclass(frozen=True, slots=True)
class _Words:
    """How names are shown: escaped, cut, and still different from each other."""

    signs: Signs
    ascii: bool
    processes: dict[str, str]
    messages: dict[str, str]

    @classmethod
    def of(cls, execution: _Execution, signs: Signs, ascii: bool) -> _Words:
        messages = dict.fromkeys(e.message for e in execution.events if e.message is not None)
        control = {e.message for e in execution.events if e.control}
        shown = _names(messages, signs, ascii)
        return cls(
            signs=signs,
            ascii=ascii,
            processes=_names(execution.processes, signs, ascii),
            messages={name: f"({short})" if name in control else short for name, short in shown.items()},
        )

    def text(self, text: str) -> str:
        return cut(plain(text[:LONGEST_NOTE], self.ascii), LONGEST_NOTE, self.signs.more)

    def cut(self, text: str, most: int) -> str:
        return cut(text, most, self.signs.more)

    def labels(self, event: Event, everyone: int, unseen: Sequence[str], sent: bool) -> list[str]:
        """What to write beside an event, the best first, the shortest last."""
        if event.message is None:
            return [self.cut(self.text(event.text or ""), WIDEST_LABEL)]
        name = self.messages[event.message]
        if event.kind == "send" and event.to:
            return [f"{name} {self.signs.to} {targets}" for targets in self._targets(event, everyone)] + [name]
        if unseen:
            return [f"{name} {self.signs.source} {' '.join(self.processes[p] for p in unseen)}", name]
        if event.kind in ("receive", "deliver") and not sent:
            return [f"{name} {self.signs.source} ?", name]
        return [name]

    def _targets(self, event: Event, everyone: int) -> Iterable[str]:
        names = [self.processes[p] for p in sorted(set(event.to or ()), key=_natural)]
        whole = " ".join(names)
        if columns(whole) <= WIDEST_LABEL:
            yield whole
        if event.group is not None:
            yield cut(_word(event.group, self.signs, self.ascii), LONGEST_NAME, self.signs.more)
        if len(names) == everyone - 1 and len(names) > 1:
            yield "all"
        for count in range(min(len(names) - 1, WIDEST_LABEL), 0, -1):
            some = " ".join(names[:count])
            if columns(some) <= WIDEST_LABEL:
                yield f"{some} +{len(names) - count}"
        if len(names) > 1:
            yield str(len(names))

    def left_out(self, execution: _Execution, lanes: Sequence[str], width: int) -> str:
        others = [self.processes[p] for p in execution.processes if p not in set(lanes)]
        return self.cut(
            f"{len(lanes)} of {len(execution.processes)} processes fit; not drawn: {' '.join(others)}", width
        )


def _word(name: str, signs: Signs, ascii: bool) -> str:
    """A name as one word, so that a list of names can be read."""
    return plain(name[:LONGEST_NOTE].replace(" ", signs.space), ascii) or "''"


def _names(names: Iterable[str], signs: Signs, ascii: bool) -> dict[str, str]:
    taken: set[str] = set()
    shown = {}
    for name in names:
        first = short = cut(_word(name, signs, ascii), LONGEST_NAME, signs.more, tail=LONGEST_NAME // 3)
        number = 1
        while short in taken:
            number += 1
            short = f"{first}~{number}"
        taken.add(short)
        shown[name] = short
    return shown


# Rows


@dataclass(slots=True)
class _Row:
    """One event: where, what is written there, where arrows come from, and what everyone holds then."""

    event: Event
    lane: int
    labels: list[str]
    sources: list[int]
    held: list[list[str]]
    marked: bool
    note: str = ""
    written: list[str] = field(default_factory=list)


def _rows(
    execution: _Execution, words: _Words, lanes: Sequence[str], notes: Mapping[str, str]
) -> list[_Row]:
    lane_of = {process: lane for lane, process in enumerate(lanes)}
    held: list[dict[str, None]] = [{} for _ in lanes]
    delivered: set[tuple[str, str]] = set()
    rows = []
    for event in execution.events:
        if event.process not in lane_of:
            continue
        lane = lane_of[event.process]
        if event.message is not None:
            if execution.holds(event, delivered):
                held[lane][event.message] = None
            elif event.kind == "deliver":
                held[lane].pop(event.message, None)
                delivered.add((event.process, event.message))
        causes = list(dict.fromkeys(cause.process for cause in execution.arrows(event)))
        unseen = [process for process in causes if process not in lane_of]
        sent = event.message in execution.sends
        beside = [[words.messages[message] for message in box] for box in held]
        if event.kind == "receive" and event.message in held[lane]:
            # Its own label says it already.
            beside[lane].remove(words.messages[event.message])
        rows.append(
            _Row(
                event=event,
                lane=lane,
                labels=words.labels(event, len(execution.processes), unseen, sent),
                sources=sorted(lane_of[process] for process in causes if process in lane_of),
                held=beside,
                marked=event.id in notes,
                note=notes.get(event.id, ""),
            )
        )
    return rows


def _boxes(names: Sequence[str]) -> list[str]:
    """What is held back, in full first, then shorter and shorter."""
    if not names:
        return [""]
    some = [f"[{' '.join(names[:count])} +{len(names) - count}]" for count in range(len(names) - 1, 0, -1)]
    return [f"[{' '.join(names)}]", *some[-8:], f"[+{len(names)}]"]


def _lane_text(row: _Row, lane: int, room: int, words: _Words) -> str:
    """What stands at a lane in this row, the lane's own sign included, in so many columns."""
    signs = words.signs
    boxes = _boxes(row.held[lane])
    if lane != row.lane:
        fitting = [box for box in boxes if columns(box) <= room - 2]
        box = fitting[0] if fitting else words.cut(boxes[-1], room - 2)
        return f"{signs.lane} {box}" if box else signs.lane
    sign = getattr(signs, row.event.kind, signs.local)
    end = f" {signs.wrong}" if row.marked else ""
    for label in row.labels:
        for box in boxes:
            text = " ".join(part for part in (sign, label + end, box) if part)
            if columns(text) <= room:
                return text
    return f"{sign} {words.cut(row.labels[-1], room - 2 - columns(end))}{end}"


def _widths(rows: Sequence[_Row], lanes: Sequence[str], words: _Words, room: int) -> list[int]:
    """The columns of each lane: what its texts want, the widest ones cut first when that is too much."""
    wanted = []
    for lane, process in enumerate(lanes):
        texts = [_lane_text(row, lane, WIDEST_LABEL + 10, words) for row in rows]
        widest = max([columns(words.processes[process]), *map(columns, texts)])
        wanted.append(max(widest + GAP + 1, NARROWEST))
    limit = max(wanted)
    while sum(min(want, limit) for want in wanted) > room and limit > NARROWEST:
        limit -= 1
    return [min(want, limit) for want in wanted]


class _Line:
    """A line of cells; text is put first, arrows then fill what is still free."""

    def __init__(self, length: int) -> None:
        self.cells: list[str | None] = [None] * length

    def put(self, at: int, text: str) -> int:
        for letter in text:
            size = _columns(letter)
            if size == 0:
                self.cells[at - 1] = (self.cells[at - 1] or "") + letter
            else:
                self.cells[at : at + size] = [letter, *[""] * (size - 1)]
                at += size
        return at

    def fill(self, start: int, end: int, sign: str) -> None:
        for at in range(start, end):
            if self.cells[at] is None:
                self.cells[at] = sign

    def __str__(self) -> str:
        return "".join(" " if cell is None else cell for cell in self.cells)


def _draw(
    rows: Sequence[_Row], lanes: Sequence[str], widths: Sequence[int], words: _Words, note_columns: int
) -> list[str]:
    starts = [sum(widths[:lane]) for lane in range(len(lanes))]
    head = _Line(sum(widths))
    for start, width, process in zip(starts, widths, lanes, strict=True):
        head.put(start, words.cut(words.processes[process], width - 1))
    lines = [str(head)]
    for row in rows:
        line = str(_event_line(row, starts, widths, words))
        if not row.marked:
            lines.append(line)
            continue
        wrapped = _wrap(f"{words.signs.wrong} {row.note}", max(note_columns - 2, 8))
        rest = _Line(sum(widths))
        for start in starts:
            rest.put(start, words.signs.lane)
        lines += [f"{start}  {text}" for start, text in zip([line, *[str(rest)] * len(wrapped)], wrapped, strict=False)]
    return lines


def _event_line(row: _Row, starts: Sequence[int], widths: Sequence[int], words: _Words) -> _Line:
    signs = words.signs
    line = _Line(sum(widths))
    ends = []
    for lane, (start, width) in enumerate(zip(starts, widths, strict=True)):
        end = line.put(start, _lane_text(row, lane, width - GAP, words))
        ends.append(line.put(end, " ") if end > start + 1 else end)
    here = starts[row.lane]
    control = row.event.control
    body = signs.dot if control else signs.dash
    for source in row.sources:
        line.put(starts[source], signs.from_left if source < row.lane else signs.from_right)
    if row.sources and row.sources[0] < row.lane:
        line.put(here - 1, signs.control_right if control else signs.right)
        line.fill(starts[row.sources[0]] + 1, here, body)
    if row.sources and row.sources[-1] > row.lane:
        line.put(ends[row.lane], signs.control_left if control else signs.left)
        line.fill(ends[row.lane] + 1, starts[row.sources[-1]], body)
    return line


def _wrap(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, subsequent_indent="  ")


# After the drawing


def _after(
    execution: _Execution,
    words: _Words,
    lanes: Sequence[str],
    notes: Mapping[str, str],
    rows: Sequence[_Row],
    width: int,
) -> list[str]:
    lines = []
    drawn = {row.event.id for row in rows}
    for name, note in notes.items():
        if name not in drawn:
            lines.append(words.cut(f"{words.signs.wrong} {_word(name, words.signs, words.ascii)}, not drawn: {note}", width))
    return lines

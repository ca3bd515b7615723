"""A small execution drawn as text, as Lamport drew them, with time running downwards.

    p1            p2         p3
    ● a → p2 p3   │          │
    ├┄┄┄┄┄┄┄┄┄┄┄┄▶○ a        │
    │             ◆ a        │
    │             ● b → p3   │
    │             ├┄┄┄┄┄┄┄┄┄▶○ b
    ├┄┄┄┄┄┄┄┄┄┄┄┄┄│┄┄┄┄┄┄┄┄┄▶○ a [b]
    │             │          ◆ a [b]
    │             │          ◆ b

A lane per process, a row per event. An arrow is drawn where a message arrives, and comes from the lane that
sent it. In brackets, beside the lane, stands what the process has received and holds back.

Rows are in the order of `causet order`: by repaired time, then block, process and seq. So a drawing depends
on the events alone, not on the order in which they are given. All text comes from files that anybody may
have written: what could move the cursor, hide or reorder text is shown escaped.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from causet.model import Event
from causet.view.letters import columns, cut, plain, width_of, wrapped
from causet.view.ordered import causes_of, in_order, natural, sends_of

GAP = 3
"""Columns between the text of a lane and the next lane: room for an arrow's head."""
NARROWEST = 11
"""The narrowest lane that still says something."""
NARROWEST_NOTES = 18
WIDEST = 30
"""A longer list of targets, or text, is cut although there might be room."""
SHORTER = 8
"""How many messages held back a lane names when it cannot name them all."""
LONGEST_NAME = 20
LONGEST_NOTE = 300


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
    events: Sequence[Event],
    width: int = 100,
    marks: Mapping[str, str] | None = None,
    ascii: bool = False,
    whole: bool = True,
) -> str:
    """The execution as lines of text, at most `width` columns wide where that is possible.

    `marks` puts a ✗ at events, by id, and a short text beside them. When there are more processes than fit,
    those of marked events and of their causes are drawn first, and a line says who is not drawn. Only of a
    `whole` execution is said what never arrived, or is still held back at its end.
    """
    if not events:
        return "no events"
    execution = _Execution.of(events)
    words = _Words.of(execution, ASCII if ascii else UNICODE, ascii)
    notes = {event: words.text(note) for event, note in (marks or {}).items()}
    lanes, note_columns = _lanes(execution, width, notes)
    rows = _rows(execution, words, lanes, notes)
    widths = _widths(rows, lanes, words, width - note_columns)
    lines = [
        *_left_out(execution, words, lanes, width),
        *_draw(rows, lanes, widths, words, width),
        "",
        *_unfinished(execution, words, rows, notes, width, whole),
        *wrapped(_legend(rows, words), width, between="   "),
    ]
    return "\n".join(line.rstrip() for line in lines)


# The execution: order, arrows, what is held back


@dataclass(frozen=True, slots=True)
class _Execution:
    """The events in a causal order; an event is known by its position there."""

    events: list[Event]
    causes: list[list[int]]  # of each event: its send and its parents, not its process's last event
    sends: dict[str, int]
    received: set[tuple[str, str | None]]
    delivered: set[tuple[str, str | None]]
    processes: list[str]

    @classmethod
    def of(cls, events: Sequence[Event]) -> _Execution:
        given = sorted(events, key=lambda event: (event.process, event.seq, event.id))
        sends = sends_of(given)
        causes = causes_of(given, sends)
        order = [position for position, _ in in_order(given, causes)]
        found = [given[position] for position in order]
        new = {position: rank for rank, position in enumerate(order)}
        return cls(
            events=found,
            causes=[[new[cause] for cause in causes[position]] for position in order],
            sends={message: new[position] for message, position in sends.items()},
            received={(event.process, event.message) for event in found if event.kind == "receive"},
            delivered={(event.process, event.message) for event in found if event.kind == "deliver"},
            processes=sorted({name for e in found for name in (e.process, *(e.to or ()))}, key=natural),
        )

    def arrows(self, position: int) -> list[str]:
        """The processes that arrows come from: a delivery has one only if no reception was recorded."""
        event = self.events[position]
        causes = self.causes[position]
        if event.kind == "deliver" and (event.process, event.message) in self.received:
            causes = [cause for cause in causes if cause != self.sends.get(event.message or "")]
        found = dict.fromkeys(self.events[cause].process for cause in causes)
        return [process for process in found if process != event.process]

    def _delivers(self, event: Event) -> bool:
        """Whether a delivery is to be expected here: control messages, and some logs, have none."""
        return bool(self.delivered) and (
            not event.control or (event.process, event.message) in self.delivered
        )

    def held(self) -> Iterator[dict[str, dict[str, None]]]:
        """After each event: what each process holds back, the oldest first."""
        held: dict[str, dict[str, None]] = {process: {} for process in self.processes}
        done: set[tuple[str, str]] = set()
        for event in self.events:
            if event.message is not None:
                here = (event.process, event.message)
                if event.kind == "deliver":
                    held[event.process].pop(event.message, None)
                    done.add(here)
                elif event.kind == "receive" and here not in done and self._delivers(event):
                    held[event.process][event.message] = None
            yield held


# Which processes are drawn


def _lanes(execution: _Execution, width: int, notes: Mapping[str, str]) -> tuple[list[str], int]:
    """The processes to draw, in the order of their names, and the columns that the notes get."""
    longest = max((columns(note) for note in notes.values()), default=0)
    note_columns = min(longest + 2, max(width // 3, NARROWEST_NOTES)) if notes else 0
    if len(execution.processes) * NARROWEST > width - note_columns:
        note_columns = min(note_columns, NARROWEST_NOTES)
    fit = max((width - note_columns) // NARROWEST, 1)
    if len(execution.processes) <= fit:
        return execution.processes, note_columns
    active = sorted({event.process for event in execution.events}, key=natural)
    wanted = dict.fromkeys([*_involved(execution, notes), *active, *execution.processes])
    return sorted(list(wanted)[:fit], key=natural), note_columns


def _involved(execution: _Execution, notes: Mapping[str, str]) -> Iterator[str]:
    """The processes of marked events, then those of their causes, near ones first."""
    last: dict[str, int] = {}
    before: list[list[int]] = []
    for position, event in enumerate(execution.events):
        before.append(
            [*execution.causes[position], *([last[event.process]] if event.process in last else [])]
        )
        last[event.process] = position
    waiting = deque(position for position, event in enumerate(execution.events) if event.id in notes)
    yield from (execution.events[position].process for position in waiting)
    seen = set(waiting)
    while waiting:
        for cause in before[waiting.popleft()]:
            if cause not in seen:
                seen.add(cause)
                waiting.append(cause)
                yield execution.events[cause].process


# Words: every text that is shown passes through here


@dataclass(frozen=True, slots=True)
class _Words:
    """How names are shown: escaped, cut, and still different from each other."""

    signs: Signs
    ascii: bool
    processes: dict[str, str]
    messages: dict[str, str]

    @classmethod
    def of(cls, execution: _Execution, signs: Signs, ascii: bool) -> _Words:
        found = cls(signs, ascii, {}, {})
        found.processes.update(found._different(execution.processes))
        control = {event.message for event in execution.events if event.control}
        names = found._different(dict.fromkeys(e.message for e in execution.events if e.message is not None))
        found.messages.update({name: f"({s})" if name in control else s for name, s in names.items()})
        return found

    def _different(self, names: Iterable[str]) -> dict[str, str]:
        taken: set[str] = set()
        found = {}
        for name in names:
            short = first = self.name(name)
            number = 1
            while short in taken:
                number += 1
                short = f"{first}~{number}"
            taken.add(short)
            found[name] = short
        return found

    def name(self, name: str) -> str:
        """A name as one word, so that a list of names can be read; a long one keeps both ends."""
        ends = name if len(name) <= LONGEST_NOTE else name[:LONGEST_NAME] + name[-LONGEST_NAME:]
        word = plain(ends.replace(" ", self.signs.space), self.ascii)
        return cut(word, LONGEST_NAME, self.signs.more, tail=LONGEST_NAME // 3) or "''"

    def text(self, text: str, most: int = LONGEST_NOTE) -> str:
        return cut(plain(text[: LONGEST_NOTE + 1], self.ascii), most, self.signs.more)

    def cut(self, text: str, most: int, tail: int = 0) -> str:
        return cut(text, most, self.signs.more, tail)

    def labels(self, event: Event, everyone: int, unseen: Sequence[str], sent: bool) -> list[str]:
        """What to write beside an event, the best first, the shortest last."""
        signs = self.signs
        if event.message is None:
            return [self.text(event.text or "", WIDEST)]
        name = self.messages[event.message]
        if event.kind == "send":
            return [f"{name} {signs.to} {targets}" for targets in self._targets(event, everyone)] + [name]
        if unseen:
            return [f"{name} {signs.source} {' '.join(self.processes[p] for p in unseen)}", name]
        if event.kind in ("receive", "deliver") and not sent:
            return [f"{name} {signs.source} ?", name]
        return [name]

    def _targets(self, event: Event, everyone: int) -> Iterator[str]:
        names = [self.processes[p] for p in sorted(set(event.to or ()), key=natural)]
        if names and columns(" ".join(names)) <= WIDEST:
            yield " ".join(names)
        if event.group is not None:
            yield self.name(event.group)
        if len(names) > 1:
            if len(names) == everyone - 1:
                yield "all"
            for count in range(min(len(names), WIDEST) - 1, 0, -1):
                some = f"{' '.join(names[:count])} +{len(names) - count}"
                if columns(some) <= WIDEST:
                    yield some
            yield f"{len(names)} others"


# Rows


@dataclass(frozen=True, slots=True)
class _Row:
    """One event: where, what is written there, where arrows come from, and what everyone then holds."""

    event: Event
    lane: int
    labels: list[str]
    sources: list[int]
    held: list[list[str]]
    note: str | None


def _rows(execution: _Execution, words: _Words, lanes: Sequence[str], notes: Mapping[str, str]) -> list[_Row]:
    lane_of = {process: lane for lane, process in enumerate(lanes)}
    rows = []
    for position, (event, held) in enumerate(zip(execution.events, execution.held(), strict=True)):
        if event.process not in lane_of:
            continue
        sources = execution.arrows(position)
        unseen = [process for process in sources if process not in lane_of]
        rows.append(
            _Row(
                event=event,
                lane=lane_of[event.process],
                labels=words.labels(
                    event, len(execution.processes), unseen, event.message in execution.sends
                ),
                sources=sorted(lane_of[process] for process in sources if process in lane_of),
                held=[[words.messages[message] for message in held[process]] for process in lanes],
                note=notes.get(event.id),
            )
        )
    return rows


def _others(row: _Row, words: _Words) -> list[str]:
    """What the event's process holds back beside the message that it receives: the label names that."""
    received = row.event.message if row.event.kind == "receive" else None
    return [name for name in row.held[row.lane] if received is None or name != words.messages[received]]


def _boxes(names: Sequence[str], words: _Words) -> list[str]:
    """What is held back, in full first, then shorter and shorter."""
    if not names:
        return [""]
    counts = range(min(len(names) - 1, SHORTER), 0, -1)
    some = [f"[{' '.join(names[:count])} +{len(names) - count}]" for count in counts]
    return [f"[{' '.join(names)}]", *some, f"[+{len(names)}]", words.signs.more]


def _lane_text(row: _Row, lane: int, room: int, words: _Words) -> str:
    """What stands at a lane in this row: the event, if it is its lane, and what is held back."""
    if lane != row.lane:
        return _between(row, lane, room, words)
    sign = getattr(words.signs, row.event.kind, words.signs.local)
    wrong = "" if row.note is None else words.signs.wrong
    for label in row.labels:
        for box in _boxes(_others(row, words), words):
            text = " ".join(part for part in (sign, label, wrong, box) if part)
            if columns(text) <= room:
                return text
    rest = room - columns(f"{sign} {wrong}".rstrip()) - 1
    short = words.cut(row.labels[-1], rest, tail=rest // 2)
    return " ".join(part for part in (sign, short, wrong) if part)


def _between(row: _Row, lane: int, room: int, words: _Words) -> str:
    """A lane where nothing happens."""
    boxes = [f"{words.signs.lane} {box}".rstrip() for box in _boxes(row.held[lane], words)]
    return next((text for text in boxes if columns(text) <= room), words.signs.lane)


def _widths(rows: Sequence[_Row], lanes: Sequence[str], words: _Words, room: int) -> list[int]:
    """The columns of each lane: what its texts want; the widest give way when that is too much."""
    wanted = []
    for lane, process in enumerate(lanes):
        texts = [words.processes[process], *(_lane_text(row, lane, WIDEST, words) for row in rows)]
        wanted.append(max(NARROWEST, GAP + max(map(columns, texts))))
    limit = max(wanted)
    while limit > NARROWEST and sum(min(want, limit) for want in wanted) > room:
        limit -= 1
    widths = [min(want, limit) for want in wanted]
    for lane, want in enumerate(wanted):
        if want > limit and sum(widths) < room:
            widths[lane] += 1
    return widths


# Lines


class _Line:
    """A line of cells: text is put first, then arrows fill what is still free."""

    def __init__(self, length: int) -> None:
        self.cells: list[str | None] = [None] * length

    def put(self, at: int, text: str) -> int:
        """Write, and say where the text ends."""
        for letter in text:
            size = width_of(letter)
            if size:
                self.cells[at : at + size] = [letter, *[""] * (size - 1)]
            else:
                self.cells[at - 1] = (self.cells[at - 1] or "") + letter
            at += size
        return at

    def fill(self, start: int, end: int, sign: str) -> None:
        for at in range(start, end):
            if self.cells[at] is None:
                self.cells[at] = sign

    def __str__(self) -> str:
        return "".join(" " if cell is None else cell for cell in self.cells)


def _draw(
    rows: Sequence[_Row], lanes: Sequence[str], widths: Sequence[int], words: _Words, width: int
) -> list[str]:
    starts = [sum(widths[:lane]) for lane in range(len(lanes))]
    names = _Line(sum(widths))
    for start, own, process in zip(starts, widths, lanes, strict=True):
        names.put(start, words.cut(words.processes[process], own - 1, tail=own // 3))
    lines = [str(names)]
    for row in rows:
        line = str(_event_line(row, starts, widths, words))
        if row.note is None:
            lines.append(line)
            continue
        first, *more = wrapped(row.note.split(" "), max(width - sum(widths) - 2, NARROWEST_NOTES - 2))
        lines.append(f"{line}{words.signs.wrong} {first}")
        for text in more:
            below = _Line(sum(widths))
            for lane, (start, own) in enumerate(zip(starts, widths, strict=True)):
                below.put(start, _between(row, lane, own - GAP, words))
            lines.append(f"{below}  {text}")
    return lines


def _event_line(row: _Row, starts: Sequence[int], widths: Sequence[int], words: _Words) -> _Line:
    signs = words.signs
    line = _Line(sum(widths))
    end_of_text = 0
    for lane, (start, width) in enumerate(zip(starts, widths, strict=True)):
        text = _lane_text(row, lane, width - GAP, words)
        end = line.put(start, text if text == signs.lane else text + " ")
        if lane == row.lane:
            end_of_text = end
    here = starts[row.lane]
    control = row.event.control
    body = signs.dot if control else signs.dash
    for source in row.sources:
        line.put(starts[source], signs.from_left if source < row.lane else signs.from_right)
    if row.sources and row.sources[0] < row.lane:
        line.put(here - 1, signs.control_right if control else signs.right)
        line.fill(starts[row.sources[0]] + 1, here, body)
    if row.sources and row.sources[-1] > row.lane:
        line.put(end_of_text, signs.control_left if control else signs.left)
        line.fill(end_of_text, starts[row.sources[-1]], body)
    return line


# Around the drawing


def _left_out(execution: _Execution, words: _Words, lanes: Sequence[str], width: int) -> list[str]:
    drawn = set(lanes)
    others = [words.processes[process] for process in execution.processes if process not in drawn]
    said = f"{len(lanes)} of {len(execution.processes)} processes fit here; not drawn: {' '.join(others)}"
    return [words.cut(said, width)] if others else []


def _unfinished(
    execution: _Execution,
    words: _Words,
    rows: Sequence[_Row],
    notes: Mapping[str, str],
    width: int,
    whole: bool,
) -> list[str]:
    """What did not arrive, what is still held back at the end, and marks whose events are not drawn."""
    here = execution.received | execution.delivered
    lost = []
    for message, position in execution.sends.items():
        sent = execution.events[position]
        missing = [p for p in sorted(set(sent.to or ()), key=natural) if (p, message) not in here]
        if missing:
            lost.append(f"{words.messages[message]} by {' '.join(words.processes[p] for p in missing)}")
    *_, held = execution.held()
    waiting = [
        f"{' '.join(words.messages[message] for message in box)} at {words.processes[process]}"
        for process, box in held.items()
        if box
    ]
    lines = []
    if lost and whole:
        lines.append(f"not received: {', '.join(lost)}")
    if waiting and whole:
        lines.append(f"still held back: {', '.join(waiting)}")
    drawn = {row.event.id for row in rows}
    for event, note in notes.items():
        if event not in drawn:
            lines.append(f"{words.signs.wrong} {words.name(event)} (not drawn) {note}")
    return [words.cut(line, width) for line in lines]


def _legend(rows: Sequence[_Row], words: _Words) -> Iterator[str]:
    kinds = {row.event.kind for row in rows}
    for kind in ("send", "receive", "deliver", "local"):
        if kind in kinds:
            yield f"{getattr(words.signs, kind)} {kind}"
    elsewhere = any(box for row in rows for lane, box in enumerate(row.held) if lane != row.lane)
    if elsewhere or any(_others(row, words) or (row.note and row.held[row.lane]) for row in rows):
        yield "[a] held back"
    if any(row.event.control for row in rows):
        yield "(a) control"

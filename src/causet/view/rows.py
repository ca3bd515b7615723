"""The rows of a drawing as text: one per event, as wide as its lanes allow, with arrows between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from causet.escapes import columns, width_of
from causet.model import Event
from causet.view.fitting import wrapped
from causet.view.timeline import Timeline
from causet.view.words import WIDEST, Words

GAP = 3
"""Columns between the text of a lane and the next lane: room for an arrow's head."""
NARROWEST = 11
"""The narrowest lane that can still be read."""
NARROWEST_NOTES = 18
SHORTER = 8
"""How many messages held back a lane names when it cannot name them all."""


@dataclass(frozen=True, slots=True)
class Row:
    """One event: where, what is written there, where arrows come from, and what everyone then holds."""

    event: Event
    lane: int
    labels: list[str]
    sources: list[int]
    held: list[list[str]]
    note: str | None


def rows_of(timeline: Timeline, words: Words, lanes: Sequence[str], notes: Mapping[str, str]) -> list[Row]:
    lane_of = {process: lane for lane, process in enumerate(lanes)}
    rows = []
    for position, (event, held) in enumerate(zip(timeline.events, timeline.held(), strict=True)):
        if event.process not in lane_of:
            continue
        sources = timeline.arrows(position)
        unseen = [process for process in sources if process not in lane_of]
        rows.append(
            Row(
                event=event,
                lane=lane_of[event.process],
                labels=words.labels(event, len(timeline.processes), unseen, event.message in timeline.sends),
                sources=sorted(lane_of[process] for process in sources if process in lane_of),
                held=[[words.messages[message] for message in held[process]] for process in lanes],
                note=notes.get(event.id),
            )
        )
    return rows


def others_held(row: Row, words: Words) -> list[str]:
    """What the event's process holds back beside the message that it receives: the label names that."""
    received = row.event.message if row.event.kind == "receive" else None
    return [name for name in row.held[row.lane] if received is None or name != words.messages[received]]


def _boxes(names: Sequence[str], words: Words) -> list[str]:
    """What is held back, in full first, then shorter and shorter."""
    if not names:
        return [""]
    counts = range(min(len(names) - 1, SHORTER), 0, -1)
    some = [f"[{' '.join(names[:count])} +{len(names) - count}]" for count in counts]
    return [f"[{' '.join(names)}]", *some, f"[+{len(names)}]", words.signs.more]


def _lane_text(row: Row, lane: int, room: int, words: Words) -> str:
    """What stands at a lane in this row: the event, if it is its lane, and what is held back."""
    if lane != row.lane:
        return _between(row, lane, room, words)
    sign = getattr(words.signs, row.event.kind, words.signs.local)
    wrong = "" if row.note is None else words.signs.wrong
    for label in row.labels:
        for box in _boxes(others_held(row, words), words):
            text = " ".join(part for part in (sign, label, wrong, box) if part)
            if columns(text) <= room:
                return text
    rest = room - columns(f"{sign} {wrong}".rstrip()) - 1
    short = words.cut(row.labels[-1], rest, tail=rest // 2)
    return " ".join(part for part in (sign, short, wrong) if part)


def _between(row: Row, lane: int, room: int, words: Words) -> str:
    """A lane where nothing happens."""
    boxes = [f"{words.signs.lane} {box}".rstrip() for box in _boxes(row.held[lane], words)]
    return next((text for text in boxes if columns(text) <= room), words.signs.lane)


def widths_of(rows: Sequence[Row], lanes: Sequence[str], words: Words, room: int) -> list[int]:
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


class _Line:
    """A line of cells: text is put first, then arrows fill what is still free."""

    def __init__(self, length: int) -> None:
        self.cells: list[str | None] = [None] * length

    def put(self, at: int, text: str) -> int:
        """Write the text, and return where it ends."""
        for character in text:
            size = width_of(character)
            if size:
                self.cells[at : at + size] = [character, *[""] * (size - 1)]
            else:
                self.cells[at - 1] = (self.cells[at - 1] or "") + character
            at += size
        return at

    def fill(self, start: int, end: int, sign: str) -> None:
        for at in range(start, end):
            if self.cells[at] is None:
                self.cells[at] = sign

    def __str__(self) -> str:
        return "".join(" " if cell is None else cell for cell in self.cells)


def draw(
    rows: Sequence[Row], lanes: Sequence[str], widths: Sequence[int], words: Words, width: int
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


def _event_line(row: Row, starts: Sequence[int], widths: Sequence[int], words: Words) -> _Line:
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

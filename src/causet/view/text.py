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

Rows are in the order of `causet order`: by repaired time, then level, process and seq. So a drawing depends
on the events alone, not on the order in which they are given. All text comes from files that anyone may
have written: what could move the cursor, hide or reorder text is shown escaped.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence

from causet.escapes import columns
from causet.formats.causality import with_process_order
from causet.model import Event
from causet.view.fitting import wrapped
from causet.view.ordered import natural
from causet.view.rows import NARROWEST, NARROWEST_NOTES, Row, draw, others_held, rows_of, widths_of
from causet.view.timeline import Timeline
from causet.view.words import ASCII, UNICODE, Words


def space_time(
    events: Sequence[Event],
    width: int = 100,
    marks: Mapping[str, str] | None = None,
    ascii: bool = False,
    whole: bool = True,
) -> str:
    """The execution as lines of text, at most `width` columns wide where that is possible.

    `marks` puts a ✗ at events, by id, and a short text beside them. When there are more processes than fit,
    those of marked events and of their causes are drawn first, and a line names those that are not drawn.
    What never arrived, or is still held back at the end, is listed only for a `whole` execution.
    """
    if not events:
        return "no events"
    timeline = Timeline.of(events)
    words = Words.of(timeline, ASCII if ascii else UNICODE, ascii)
    notes = {event: words.text(note) for event, note in (marks or {}).items()}
    lanes, note_columns = _lanes(timeline, width, notes)
    rows = rows_of(timeline, words, lanes, notes)
    widths = widths_of(rows, lanes, words, width - note_columns)
    lines = [
        *_left_out(timeline, words, lanes, width),
        *draw(rows, lanes, widths, words, width),
        "",
        *_unfinished(timeline, words, rows, notes, width, whole),
        *wrapped(_legend(rows, words), width, between="   "),
    ]
    return "\n".join(line.rstrip() for line in lines)


def _lanes(timeline: Timeline, width: int, notes: Mapping[str, str]) -> tuple[list[str], int]:
    """The processes to draw, in the order of their names, and the columns that the notes get."""
    longest = max((columns(note) for note in notes.values()), default=0)
    note_columns = min(longest + 2, max(width // 3, NARROWEST_NOTES)) if notes else 0
    if len(timeline.processes) * NARROWEST > width - note_columns:
        note_columns = min(note_columns, NARROWEST_NOTES)
    fit = max((width - note_columns) // NARROWEST, 1)
    if len(timeline.processes) <= fit:
        return timeline.processes, note_columns
    active = sorted({event.process for event in timeline.events}, key=natural)
    wanted = dict.fromkeys([*_involved(timeline, notes), *active, *timeline.processes])
    return sorted(list(wanted)[:fit], key=natural), note_columns


def _involved(timeline: Timeline, notes: Mapping[str, str]) -> Iterator[str]:
    """The processes of marked events, then those of their causes, near ones first."""
    before = with_process_order(timeline.events, timeline.causes)
    waiting = deque(position for position, event in enumerate(timeline.events) if event.id in notes)
    yield from (timeline.events[position].process for position in waiting)
    seen = set(waiting)
    while waiting:
        for cause in before[waiting.popleft()]:
            if cause not in seen:
                seen.add(cause)
                waiting.append(cause)
                yield timeline.events[cause].process


def _left_out(timeline: Timeline, words: Words, lanes: Sequence[str], width: int) -> list[str]:
    drawn = set(lanes)
    others = [words.processes[process] for process in timeline.processes if process not in drawn]
    line = f"{len(lanes)} of {len(timeline.processes)} processes fit here; not drawn: {' '.join(others)}"
    return [words.cut(line, width)] if others else []


def _unfinished(
    timeline: Timeline,
    words: Words,
    rows: Sequence[Row],
    notes: Mapping[str, str],
    width: int,
    whole: bool,
) -> list[str]:
    """What did not arrive, what is still held back at the end, and marks whose events are not drawn."""
    here = timeline.received | timeline.delivered
    lost = []
    for message, position in timeline.sends.items():
        sent = timeline.events[position]
        missing = [p for p in sorted(set(sent.to or ()), key=natural) if (p, message) not in here]
        if missing:
            lost.append(f"{words.messages[message]} by {' '.join(words.processes[p] for p in missing)}")
    *_, held = timeline.held()
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


def _legend(rows: Sequence[Row], words: Words) -> Iterator[str]:
    kinds = {row.event.kind for row in rows}
    for kind in ("send", "receive", "deliver", "local"):
        if kind in kinds:
            yield f"{getattr(words.signs, kind)} {kind}"
    elsewhere = any(box for row in rows for lane, box in enumerate(row.held) if lane != row.lane)
    if elsewhere or any(others_held(row, words) or (row.note and row.held[row.lane]) for row in rows):
        yield "[a] held back"
    if any(row.event.control for row in rows):
        yield "(a) control"

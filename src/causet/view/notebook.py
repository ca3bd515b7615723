"""An execution in a notebook: the same page, in a frame that shows itself.

import causet
causet.view("trace.jsonl")          # a file
causet.view(events)                 # a pandas or Spark DataFrame with the columns of a trace
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from causet.errors import BadInput, Problem, printable
from causet.escapes import one_line
from causet.files import Place
from causet.formats.execution import Execution, assemble
from causet.formats.registry import read_executions
from causet.formats.schema import FIELDS
from causet.formats.trace import event_of
from causet.model import Event
from causet.view.narrow import MOST_EVENTS, Selection
from causet.view.page import judged_drawing, page, write_text
from causet.view.payload import Drawing, Verdict

HEIGHT = 640
MOST_ROWS = 100_000
"""Rows of a Spark DataFrame that come to the notebook, at most."""


WHOLE = ("seq", "stamp_entries", "stamp_bytes")


class View:
    """A picture of an execution. In a notebook it shows itself; `save` writes it as a page."""

    def __init__(self, text: str, summary: str, height: int) -> None:
        self.page = text
        self.summary = summary
        """in one line: how many events, the verdict, and what is left out"""
        self.height = height

    def save(self, path: str | Path) -> Path:
        """Write the page, and return its path."""
        return write_text(Path(path), self.page)

    def __repr__(self) -> str:
        return f"<causet view: {self.summary}>"

    def _repr_html_(self) -> str:
        # A frame of its own, without access to the notebook: whatever a trace holds stays in it. The page is
        # an attribute, since addresses may be cut at two million characters.
        return (
            f'<iframe title="causet: {_plain(self.summary)}" '
            'sandbox="allow-scripts allow-downloads allow-modals" '
            f'style="width:100%;height:{self.height}px;border:1px solid #8888" '
            f'srcdoc="{html.escape(self.page, quote=True)}"></iframe>'
        )


def view(
    trace: Any,
    *,
    title: str = "trace",
    most: int = MOST_EVENTS,
    processes: Iterable[str] = (),
    around: str | None = None,
    height: int = HEIGHT,
) -> View:
    """Draw an execution: a file, a list of events or records, a pandas or a Spark DataFrame.

    Of a Spark DataFrame the first 100,000 rows are taken, or `most` if that is fewer, by process and seq; the
    picture says so if there are more, and is not judged. What `causal_order` refuses is BadInput here too;
    what is missing from the log is counted in the verdict.

    >>> view([{"process": "p1", "seq": 1, "kind": "send", "message": "a", "to": ["p2"]}])
    <causet view: 1 event. Nothing is delivered, so there is no order of deliveries to judge.>
    """
    if most < 1:
        raise BadInput(f"most = {most}: at least one event is drawn")
    wanted = (processes,) if isinstance(processes, str) else tuple(processes)
    found, cut = _execution(trace, most)
    if not found.events:
        raise BadInput("there is no event to draw")
    narrowed = Selection(most, wanted, around=around)
    if cut:
        # The rest of the rows may hold what seems to be missing, and the causes of what is here.
        whole = replace(Drawing.of(title, found.events), verdict=Verdict("unjudged", f"Not judged: {cut}"))
        drawing = narrowed.of(whole)
    else:
        drawing = judged_drawing(found.events, title, narrowed, found.faults)
    count = len(drawing.events)
    summary = f"{count:,} event{'' if count == 1 else 's'}. {drawing.verdict.sentence}"
    summary = " ".join(part for part in (summary, drawing.left_out) if part)
    return View(page("view", title, [drawing]), one_line(summary), height)


def _execution(trace: Any, most: int) -> tuple[Execution, str]:
    """The events, checked as those of a file are, and what was cut off."""
    if isinstance(trace, str | Path):
        found = read_executions(trace)
        if len(found) != 1:
            raise BadInput(f"{trace} has {len(found)} executions; `causet view --execution NAME` draws one")
        return found[0], ""
    if hasattr(trace, "sparkSession"):
        limit = min(most, MOST_ROWS)
        rows = trace.orderBy("process", "seq").limit(limit + 1).collect()
        cut = f"only the first {limit:,} rows of the DataFrame are drawn." if len(rows) > limit else ""
        return _checked("the DataFrame", "row", (row.asDict() for row in rows[:limit])), cut
    if hasattr(trace, "to_dict") and hasattr(trace, "columns"):
        return _checked("the DataFrame", "row", trace.to_dict("records")), ""
    if not isinstance(trace, Iterable) or isinstance(trace, Mapping):
        raise BadInput(f"a trace is a file, a list of events or a DataFrame, not {type(trace).__name__}")
    return _checked("the list", "event", trace), ""


def _checked(whole: str, unit: str, records: Iterable[Any]) -> Execution:
    """The execution of these records; else BadInput, in the sentences of `causal_order`."""
    return assemble(
        "", ((Place(whole, number, unit), _event(each)) for number, each in enumerate(records, start=1))
    )


def _event(record: Any) -> Event:
    """A row as an event: what is not there (None, NaN) is left out, arrays are lists."""
    if isinstance(record, Event):
        own = {name: getattr(record, name) for name in FIELDS}
        record = {
            name: list(value) if isinstance(value, tuple) else value for name, value in own.items()
        } | dict(record.extra)
    if not isinstance(record, Mapping):
        raise BadInput(f"an event is a record with the fields of a trace, not {type(record).__name__}")
    given: dict[str, object] = {}
    whose = f"{record.get('process')}, seq {record.get('seq')}"
    for name, value in record.items():
        plain = value.tolist() if hasattr(value, "tolist") else value
        if plain is None or plain != plain:
            continue
        if name in WHOLE and isinstance(plain, float) and plain.is_integer():
            plain = int(plain)  # pandas makes a float of a whole number where others are missing
        given[name] = bool(plain) if name == "control" and plain in (0, 1) else plain
    try:
        return event_of(given)
    except Problem as error:
        raise BadInput(f"the row of {printable(whose)}: {error}") from None


def _plain(text: str) -> str:
    return "".join(letter for letter in text if letter.isalnum() or letter in " ,.:")

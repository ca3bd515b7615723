"""What a report page is made of: a verdict, facts, proofs with small drawings, figures.

Figures are columns of labels and numbers; the page draws them and gives them away as data.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from causet.model import Event
from causet.view.page import page
from causet.view.payload import Drawing, Verdict, Violation

MOST_PROOFS = 20
MOST_BARS = 40
MOST_LANES = 24
"""Rows and columns of a heat map: more cannot be read."""


@dataclass(frozen=True)
class Figure:
    """Bars or steps: `x` against `y`. Or heat: rows against `x`, with values."""

    name: str
    title: str
    x: Sequence[Any]
    y: Sequence[float] = ()
    kind: str = "bars"
    rows: Sequence[str] = ()
    values: Sequence[Sequence[float]] = ()
    x_label: str = ""
    y_label: str = ""
    note: str = ""

    def plain(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "title": self.title,
            "note": self.note,
            "kind": self.kind,
            "x": [_finite(each) for each in self.x],
            "y": [_finite(each) for each in self.y],
            "rows": list(self.rows),
            "values": [[_finite(each) for each in row] for row in self.values],
            "xLabel": self.x_label,
            "yLabel": self.y_label,
        }


@dataclass(frozen=True)
class Proof:
    """A finding in words, with the events that show it."""

    sentence: str
    events: Sequence[Event]
    process: str
    delivered: str
    before: str
    chain: Sequence[str] = ()
    """the messages that prove it, from the one to the other"""

    def drawn(self, number: int) -> Drawing:
        """Its events, with the finding marked."""
        drawing = Drawing.of(f"proof {number}", self.events)
        sends = {event.message: at for at, event in enumerate(drawing.events) if event.kind == "send"}
        found = Violation(
            _delivery(drawing.events, self.process, self.delivered),
            _delivery(drawing.events, self.process, self.before),
            self.sentence,
            tuple(sends[name] for name in self.chain if name in sends),
        )
        return replace(drawing, violations=[found])


@dataclass
class Report:
    """A page about what was found."""

    title: str
    verdict: Verdict
    facts: list[tuple[str, str]] = field(default_factory=list)
    proofs: list[Proof] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)

    def page(self) -> str:
        drawn = [proof.drawn(number) for number, proof in enumerate(self.proofs, 1)]
        proofs = [
            {
                "sentence": drawing.violations[0].sentence,
                "execution": number,
                "delivered": drawing.violations[0].delivered,
                "before": drawing.violations[0].before,
            }
            for number, drawing in enumerate(drawn)
        ]
        report = {
            "verdict": self.verdict.plain(),
            "facts": [list(fact) for fact in self.facts],
            "proofs": proofs,
            "figures": [figure.plain() for figure in self.figures if figure.x],
        }
        return page("report", self.title, drawn, report)


def _finite(value: Any) -> Any:
    """JSON has no infinity."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _delivery(events: Sequence[Event], process: str, message: str) -> int:
    """Where a process delivered a message; or where that was sent; or -1."""
    for kind, who in (("deliver", process), ("send", None)):
        for number, event in enumerate(events):
            if event.kind == kind and event.message == message and who in (None, event.process):
                return number
    return -1


def heat(
    name: str, title: str, pairs: Iterable[tuple[str, str, float]], x_label: str = "", y_label: str = ""
) -> Figure:
    """Numbers by pair, those with the largest sums first; a note says how many are left out."""
    cells: dict[tuple[str, str], float] = {}
    for row, column, value in pairs:
        cells[row, column] = cells.get((row, column), 0) + value
    rows = _largest((row, value) for (row, _), value in cells.items())
    columns = _largest((column, value) for (_, column), value in cells.items())
    shown = rows[:MOST_LANES], columns[:MOST_LANES]
    left = max(len(rows), len(columns)) - MOST_LANES
    values = [[cells.get((row, column), 0) for column in shown[1]] for row in shown[0]]
    return Figure(
        name,
        title,
        shown[1],
        kind="heat",
        rows=shown[0],
        values=values,
        x_label=x_label,
        y_label=y_label,
        note=_left_out(left),
    )


def bars(name: str, title: str, counts: Mapping[str, float], y_label: str = "") -> Figure:
    """Counts by name, the largest first."""
    names = _largest(counts.items())
    shown = names[:MOST_BARS]
    numbers = [counts[each] for each in shown]
    return Figure(name, title, shown, numbers, y_label=y_label, note=_left_out(len(names) - MOST_BARS))


def _left_out(count: int) -> str:
    return f"The {count:,} with the fewest are left out." if count > 0 else ""


def _largest(values: Iterable[tuple[str, float]]) -> list[str]:
    sums: dict[str, float] = {}
    for name, value in values:
        sums[name] = sums.get(name, 0) + value
    return sorted(sums, key=lambda name: (-sums[name], name))

"""A part of an execution: some processes, a range of positions, or what is near an event."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from causet.errors import BadInput, listed
from causet.formats.causality import with_process_order
from causet.view.payload import Drawing

MOST_EVENTS = 200_000
"""Events that a page shows by default."""


@dataclass(frozen=True)
class Selection:
    """The part of an execution that is to be shown."""

    most: int = MOST_EVENTS
    processes: Collection[str] = ()
    begin: int | None = None
    end: int | None = None
    """positions, from and up to, not including"""
    around: str | None = None
    """an event's id: what is nearest to it, along causes and effects"""

    def of(self, drawing: Drawing) -> Drawing:
        """The selected part, with a sentence about what is left out; BadInput if it is empty."""
        numbers: Sequence[int] = range(len(drawing.events))
        if self.processes:
            known = {event.process for event in drawing.events}
            unknown = [name for name in self.processes if name not in known]
            if unknown:
                raise BadInput(f"there is no process {listed(unknown)}; there are {listed(sorted(known))}")
            numbers = [number for number in numbers if drawing.events[number].process in self.processes]
        if self.begin is not None or self.end is not None:
            low, high = self.begin or 0, len(drawing.events) if self.end is None else self.end
            numbers = [number for number in numbers if low <= number < high]
            if not numbers:
                raise BadInput(f"no event that is asked for is at positions {low} to {high}")
        if self.around is not None:
            numbers = _nearest(drawing, self.around, set(numbers), self.most)
            if not numbers:
                raise BadInput(f"nothing that is asked for is connected with {listed([self.around])}")
        chosen = numbers[: self.most]
        if len(chosen) == len(drawing.events):
            return drawing
        return drawing.only(chosen, self._sentence(len(chosen), len(numbers), drawing.total))

    def _sentence(self, shown: int, asked: int, total: int) -> str:
        said = f"{shown:,} of {total:,} events are shown"
        if self.around is not None:
            said += f": those nearest to {listed([self.around])}"
        elif shown < asked:
            said += ", the first ones in causal order"
        if shown < asked or self.around is not None:
            said = (
                f"{said}. To see others: --only-process, --from-position and --to-position, --around; to see "
                "more at once: --most"
            )
        else:
            said = f"{said}: those that were asked for"
        return f"{said}. Causality through events that are left out is not on this page."


def _nearest(drawing: Drawing, wanted: str, among: set[int], most: int) -> list[int]:
    """The events nearest to one of them, in order."""
    found = [number for number, event in enumerate(drawing.events) if event.id == wanted]
    if not found:
        raise BadInput(f"there is no event {listed([wanted])}")
    beside: list[list[int]] = [[] for _ in drawing.events]
    for number, causes in enumerate(with_process_order(drawing.events, drawing.causes)):
        for cause in causes:
            beside[cause].append(number)
            beside[number].append(cause)
    seen, todo = {found[0]}, deque([found[0]])
    kept: list[int] = []
    while todo and len(kept) < most:
        number = todo.popleft()
        if number in among:
            kept.append(number)
        for near in beside[number]:
            if near not in seen:
                seen.add(near)
                todo.append(near)
    return sorted(kept)

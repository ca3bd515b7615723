"""What a drawing as text shows of an execution: the order of its events, their arrows, what is held back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from causet.formats.causality import links_of, sends_of
from causet.model import Event
from causet.view.ordered import in_order, natural


@dataclass(frozen=True, slots=True)
class Timeline:
    """The events in a causal order; an event is known by its position there."""

    events: list[Event]
    causes: list[list[int]]  # of each event: its send and its parents, not its process's last event
    sends: dict[str, int]
    received: set[tuple[str, str | None]]
    delivered: set[tuple[str, str | None]]
    processes: list[str]

    @classmethod
    def of(cls, events: Sequence[Event]) -> Timeline:
        given = sorted(events, key=lambda event: (event.process, event.seq, event.id))
        sends, links = sends_of(given), links_of(given)
        order = [position for position, _ in in_order(given, links)]
        found = [given[position] for position in order]
        new = {position: rank for rank, position in enumerate(order)}
        return cls(
            events=found,
            causes=[[new[cause] for cause in links[position]] for position in order],
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

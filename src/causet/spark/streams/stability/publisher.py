"""Publishes cuts while a query runs: at most one in a second, of what all known readers have delivered."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from causet.cuts import Cuts
from causet.readers import Readers

EVERY = 1.0
"""Seconds between two cuts."""
T = TypeVar("T")


class Publisher:
    """The cuts of a place, as one query makes them; nothing, where it knows no place."""

    def __init__(self, place: str | None, query: str, readers: Readers, sink: str) -> None:
        """The readers of the query are known from now on."""
        self._cuts = None if place is None else Cuts(place)
        self._last = float("-inf")
        if self._cuts is not None:
            self._cuts.register(query, readers, sink=sink)

    def watched(self, show: Callable[[T], None]) -> Callable[[T], None]:
        """What shows the progress of the query, and publishes a cut when it is time."""

        def look(progress: T) -> None:
            show(progress)
            now = time.monotonic()
            if now >= self._last + EVERY:
                self._last = now
                self.publish()

        return look

    def publish(self) -> None:
        """Publish a cut, if there is something new."""
        if self._cuts is not None:
            self._cuts.publish()

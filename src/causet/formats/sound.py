"""Duplicates that make events unusable, in the sentences that every reader uses.

A repeated (process, seq), a repeated id and a message that is sent twice are bad input: such events cannot be
judged, ordered or drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from causet.errors import BadInput, quote
from causet.model import Event

TWO_EVENTS = "two events have process {process} and seq {seq}"
TWO_IDS = "two events have the id {id}"
TWO_SENDS = "the message {message} is sent twice"
Place = TypeVar("Place")


def distinct(placed: Iterable[tuple[Place, Event]]) -> Iterator[tuple[Place, Event]]:
    """The events as they come; BadInput, with both places, at the first duplicate.

    >>> list(distinct([("row 1", Event("p", 1)), ("row 2", Event("p", 1))]))
    Traceback (most recent call last):
    causet.errors.BadInput: row 1 and row 2: two events have process "p" and seq 1
    """
    seen: dict[tuple[object, ...], Place] = {}
    for place, event in placed:
        keys: list[tuple[object, ...]] = [(TWO_EVENTS, event.process, event.seq), (TWO_IDS, event.id)]
        if event.kind == "send":
            keys.append((TWO_SENDS, event.message))
        for key in keys:
            first = seen.setdefault(key, place)
            if first is not place:  # not `!=`: a file that is given twice repeats its places
                names = {name: quote(getattr(event, name)) for name in ("process", "seq", "id", "message")}
                raise BadInput(f"{first} and {place}: {str(key[0]).format(**names)}")
        yield place, event

"""Duplicates that make events unusable, in the sentences that every reader uses.

A repeated (process, seq), a repeated id and a message that is sent twice are bad input: such events cannot be
judged, ordered or drawn. The reader of the events adds their places.
"""

from __future__ import annotations

from collections.abc import Iterable

from causet.errors import BadInput, quote
from causet.model import Event

TWO_EVENTS = "two events have process {process} and seq {seq}"
TWO_IDS = "two events have the id {id}"
TWO_SENDS = "the message {message} is sent twice"


def refuse_repeats(placed: Iterable[tuple[object, Event]]) -> None:
    """BadInput, with both places, for the first duplicate.

    >>> refuse_repeats([("row 1", Event("p", 1)), ("row 2", Event("p", 1))])
    Traceback (most recent call last):
    causet.errors.BadInput: row 1 and row 2: two events have process "p" and seq 1
    """
    seen: dict[tuple[object, ...], object] = {}
    for place, event in placed:
        found: list[tuple[str, tuple[object, ...]]] = [
            (TWO_EVENTS, (event.process, event.seq)),
            (TWO_IDS, (event.id,)),
        ]
        if event.kind == "send":
            found.append((TWO_SENDS, (event.message,)))
        for sentence, key in found:
            first = seen.setdefault((sentence, *key), place)
            if first is not place:
                facts = {"process": quote(event.process), "seq": event.seq, "id": quote(event.id)}
                raise BadInput(
                    f"{first} and {place}: {sentence.format(**facts, message=quote(event.message))}"
                )

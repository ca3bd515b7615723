"""JSON files that are one document, an array of them, or JSON Lines of them.

Rule: if the first line that is not blank is JSON by itself, a file is read line by line, and each line is
bounded; any other file is read as a whole, and its size is bounded. The values were inspected: they are plain
and can be written again.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from causet.errors import BadInput, Problem
from causet.files import LineTooLong, Place, check_twice_readable, read_whole, text_of
from causet.formats.strict import decode, inspect
from causet.formats.trace import filled_lines


def documents(path: Path) -> Iterator[tuple[Place, object]]:
    """Each document with its place; the items of an array are documents of their own."""
    check_twice_readable(path)
    if _in_lines(path):
        for place, line in filled_lines(path):
            for number, value in enumerate(_values(place, line), start=1):
                yield place if number == 1 else Place(str(place), number, "item"), value
        return
    place = Place(str(path), 1)
    text = text_of(path, read_whole(path))
    for number, value in enumerate(_values(place, text), start=1):
        yield Place(str(path), number, "item"), value


def _values(place: Place, text: str | bytes) -> list[object]:
    try:
        found = decode(text)
        inspect("document", found)
    except Problem as error:
        raise BadInput(f"{place}: {error}") from None
    return found if isinstance(found, list) else [found]


def _in_lines(path: Path) -> bool:
    """Whether the first line is a document; BadInput if the file is empty."""
    try:
        for _, line in filled_lines(path):
            decode(line)
            return True
    except Problem:
        return False
    except LineTooLong:
        return False  # it may still be one document
    raise BadInput(f"{path} is empty")

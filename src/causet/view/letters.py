"""Text as a terminal shows it: columns, escapes, cuts. Every text of a drawing passes through here.

All of it comes from files that anybody may have written: what could move the cursor, hide or reorder text is
shown escaped.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

ACCENTS = 2
"""On one letter; more are somebody's joke, and escaped."""
HIDDEN = re.compile("[\u034f\u115f\u1160\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]")
"""Letters and marks that show nothing; the other invisible characters are known by their category."""


def columns(text: str) -> int:
    """The columns that a terminal gives to this text."""
    return len(text) if text.isascii() else sum(map(width_of, text))


@lru_cache(maxsize=4096)
def width_of(letter: str) -> int:
    if unicodedata.category(letter) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def plain(text: str, ascii: bool = False) -> str:
    r"""The text with everything escaped that is not simply visible.

    >>> plain("a\x1b[2J\u202eb\n")
    'a\\x1b[2J\\u202eb\\n'
    """
    found: list[str] = []
    accents = 0
    for letter in unicodedata.normalize("NFC", text):
        kind = unicodedata.category(letter)
        accents = accents + 1 if kind in ("Mn", "Me") else 0
        hidden = kind[0] == "C" or (kind[0] == "Z" and letter != " ") or HIDDEN.match(letter)
        if hidden or accents > ACCENTS or (accents and not found) or (ascii and letter > "~"):
            letter = letter.encode("unicode_escape").decode("ascii")
        found.append(letter)
    return "".join(found)


def cut(text: str, most: int, more: str = "…", tail: int = 0) -> str:
    """The text in at most so many columns; if it must be cut, `tail` of them keep its end.

    >>> cut("a long story", 6), cut("a long story", 6, tail=2)
    ('a lon…', 'a l…ry')
    """
    if columns(text) <= most:
        return text
    head = start_of(text, most - len(more) - tail)
    end = start_of(text[::-1], tail)[::-1] if tail else ""
    return (head + more + end)[: max(most, 0)]


def start_of(text: str, most: int) -> str:
    used = 0
    for position, letter in enumerate(text):
        used += width_of(letter)
        if used > most:
            return text[:position]
    return text


def wrapped(parts: Iterable[str], width: int, between: str = " ") -> list[str]:
    """The parts on lines of this width; a part that is longer than a line is broken."""
    lines: list[str] = []
    for part in parts:
        if lines and columns(lines[-1] + between + part) <= width:
            lines[-1] += between + part
            continue
        while columns(part) > width and (start := start_of(part, width)):
            lines.append(start)
            part = part[len(start) :]
        lines.append(part)
    return lines

"""Text fitted into the columns of a terminal: escaped, cut, wrapped. Every text of a drawing passes here.

It comes from files that anyone may have written: what could move the cursor, hide or reorder text is escaped.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from causet.escapes import columns, escaped, width_of


def plain(text: str, ascii: bool = False) -> str:
    r"""The text with everything escaped that is not simply visible.

    >>> plain("a\x1b[2J\u202eb\n")
    'a\\x1b[2J\\u202eb\\n'
    """
    return escaped(unicodedata.normalize("NFC", text), ascii)


def cut(text: str, most: int, more: str = "…", tail: int = 0) -> str:
    """The text in at most `most` columns; if it must be cut, `tail` of them keep its end.

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
    for position, character in enumerate(text):
        used += width_of(character)
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

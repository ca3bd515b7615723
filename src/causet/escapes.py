"""Text from outside, fit for a terminal: what would move the cursor, hide or reorder text is shown escaped.

Names, ids, texts and values come from files, packets and checkpoints that anyone may have written. What is
printed of them passes through here: names one by one (`causet.errors.printable`), JSON (`in_json`), and whole
lines at the end (`one_line`), which every error message is.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

ACCENTS = 2
"""Accents on one character; further ones are escaped, since stacks of them cover the lines around."""
HIDDEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Characters that show nothing; the other invisible ones are known by their category."""
LONGEST_WORD = 1_000
"""Characters without a space between them; longer ones are shortened, and the words around them stay."""
SHORT_WORD = 80
LONGEST_LINE = 3_000
ENDS = (2_000, 800)
"""Characters that stay of a longer line, at its two ends."""
_WORD = re.compile(rf"\S{{{LONGEST_WORD + 1},}}")


def is_plain(text: str) -> bool:
    """Whether all of it is simply visible, and on one line."""
    return text.isprintable() and (text.isascii() or not _unplain(text))


def _unplain(text: str) -> bool:
    return any(HIDDEN.match(letter) or unicodedata.category(letter) in ("Mn", "Me") for letter in text)


def escaped(text: str, ascii: bool = False) -> str:
    r"""The text with everything escaped that is not simply visible; with `ascii` also what is not ASCII.

    >>> escaped("a\x1b[2J\u202eb\n\x9b")
    'a\\x1b[2J\\u202eb\\n\\x9b'
    """
    return "".join(_pieces(text, ascii)) if ascii or not is_plain(text) else text


def _pieces(text: str, ascii: bool = False) -> list[str]:
    """A piece for each character: itself, or its escape."""
    found: list[str] = []
    accents = 0
    for letter in text:
        accents = accents + 1 if unicodedata.category(letter) in ("Mn", "Me") else 0
        hidden = not letter.isprintable() or HIDDEN.match(letter)
        if hidden or accents > ACCENTS or (accents and not found) or (ascii and letter > "~"):
            letter = letter.encode("unicode_escape").decode("ascii")
        found.append(letter)
    return found


def shortened(text: str, most: int) -> str:
    """The text escaped, in at most `most` characters; no escape is cut in two.

    >>> shortened("p1", 8), shortened("a long story", 8), shortened("\\x1b" * 9, 10)
    ('p1', 'a long …', '\\\\x1b\\\\x1b…')
    """
    if len(text) <= most and is_plain(text):
        return text
    pieces = _pieces(text[: most + 1])
    if len(text) <= most and sum(map(len, pieces)) <= most:
        return "".join(pieces)
    room = most - 1
    kept = ""
    for piece in pieces:
        if len(kept) + len(piece) > room:
            break
        kept += piece
    return f"{kept}…"


def one_line(text: str) -> str:
    r"""A sentence with names in it, as one line of bounded length: whatever is in it, it prints as text.

    >>> one_line("no process p\n1")
    'no process p\\n1'
    >>> len(one_line("unknown process " + "p" * 70_000 + "; name another"))
    109
    """
    line = escaped(text)
    if len(line) > LONGEST_WORD:
        line = _WORD.sub(lambda word: _middle_out(word[0], SHORT_WORD - 20, 19), line)
    return line if len(line) <= LONGEST_LINE else _middle_out(line, *ENDS)


def _middle_out(text: str, head: int, tail: int) -> str:
    return f"{text[:head]}…{text[-tail:]}"


def in_json(text: str) -> str:
    r"""JSON that means the same and is safe to print: what is not simply visible becomes \uXXXX.

    Outside of its strings JSON is ASCII, so an escape can take the place of any other character.

    >>> in_json('"a\x7f\u202e\U000e0001é"')
    '"a\\u007f\\u202e\\udb40\\udc01é"'
    """
    if text.isprintable() and (text.isascii() or not HIDDEN.search(text)):
        return text
    return _BEYOND_ASCII.sub(_as_json, text)


_BEYOND_ASCII = re.compile(r"[^\x20-\x7e\n]")


def _as_json(found: re.Match[str]) -> str:
    letter = found[0]
    if letter.isprintable() and not HIDDEN.match(letter):
        return letter
    code = ord(letter)
    if code <= 0xFFFF:
        return f"\\u{code:04x}"
    high, low = divmod(code - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"


def columns(text: str) -> int:
    """The columns that a terminal gives to this text."""
    return len(text) if text.isascii() else sum(map(width_of, text))


@lru_cache(maxsize=4096)
def width_of(letter: str) -> int:
    if unicodedata.category(letter) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1

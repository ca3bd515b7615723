"""Errors, and the words in them: one way to quote a value, to list names and to give a reason.

Errors are split by who is at fault: the caller or a file of theirs (`BadInput`), or a peer (`BadStamp`).
Each is one sentence that is safe to print, whatever the values in it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import islice

from causet.escapes import in_json, is_plain, one_line, shortened

LONGEST_NAME = 80
LONGEST_QUOTE = 60


class CausetError(Exception):
    """Base of every error this package raises on purpose: a sentence that is safe to print.

    >>> print(CausetError("no process \\x1b[31mp1"))
    no process \\x1b[31mp1
    """

    def __str__(self) -> str:
        return one_line(super().__str__())


class BadInput(CausetError):
    """The caller, or a file the caller gave, asked for something impossible (exit code 2)."""


class BadStamp(CausetError):
    """A peer's stamp or packet is truncated, oversized, of another version, or impossible."""


class Problem(Exception):
    """Why a value is refused; the reader of the file adds the location."""


def quote(value: object) -> str:
    """A value as it would stand in a JSON file, on one line and not too long.

    >>> quote("p9"), quote(["a", None]), quote("p\\n1")
    ('"p9"', '["a", null]', '"p\\\\n1"')
    """
    text = json.dumps(value, ensure_ascii=False, default=lambda odd: f"<{type(odd).__name__.strip('_')}>")
    text = in_json(text)
    return text if len(text) <= LONGEST_QUOTE else text[: LONGEST_QUOTE - 1] + "…"


def listed(names: Iterable[str]) -> str:
    """The first few of these names, for a sentence; odd or long ones are quoted and shortened.

    >>> listed(["p1", "p\\n2"])
    'p1, "p\\\\n2"'
    """
    first = list(islice(names, 9))
    words = [name if len(name) <= 40 and is_plain(name) else quote(name) for name in first[:8]]
    return ", ".join(words) + (", …" if len(first) > 8 else "") or "none"


def printable(name: str, most: int = LONGEST_NAME) -> str:
    """A name from outside, safe for a terminal: control characters escaped, long names shortened.

    >>> printable("p1"), printable("\\x1b[31mp1"), len(printable("p" * 70_000))
    ('p1', '\\\\x1b[31mp1', 80)
    """
    return shortened(name, most)


def reason(error: Exception) -> str:
    """Why the operating system refused, in its own words."""
    return (isinstance(error, OSError) and error.strerror) or str(error)

"""Who numbers messages: the identity of a process, which is a source and one life of it.

A process that was started again and does not know what its predecessor sent would use its predecessor's
numbers again; so it must not have its predecessor's identity. `source~run` is the identity of a run: `source`
is the name for people, and `run` is the moment of the start and 64 random bits, as text that sorts by that
moment. A program that counts its incarnations can name the run itself.

    >>> identity("shop", "7")
    'shop~7'
"""

from __future__ import annotations

import re
import secrets

from causet.errors import BadInput, quote
from causet.rcclock import wall_clock

RUN = re.compile(r"[0-9a-z][0-9a-z-]{0,63}")
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_MOMENT, _RANDOM = 11, 13
"""Digits in base 36 of a moment in µs, for 4,000 years, and of 64 bits."""


def identity(source: str, run: str) -> str:
    """The identity of a run of a source; BadInput if the run has an unsuitable name."""
    if not isinstance(run, str) or not RUN.fullmatch(run):
        raise BadInput(
            f"run = {quote(run)}: the name of a run has 1 to 64 small letters, digits and dashes, and does "
            "not begin with a dash"
        )
    return f"{source}~{run}"


def source_of(process: str) -> str:
    """The source of an identity.

    >>> source_of("shop~7"), source_of("shop")
    ('shop', 'shop')
    """
    source, mark, run = process.rpartition("~")
    return source if mark and source and RUN.fullmatch(run) else process


def new_run() -> str:
    """The name of a run that begins now; no other run has it."""
    return _digits(wall_clock(), _MOMENT) + _digits(secrets.randbits(64), _RANDOM)


def _digits(number: int, width: int) -> str:
    """
    >>> _digits(35, 3), _digits(36, 3)
    ('00z', '010')
    """
    found = ""
    for _ in range(width):
        number, digit = divmod(number, 36)
        found = _DIGITS[digit] + found
    return found

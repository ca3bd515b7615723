"""Durations in milliseconds, from "10 minutes", "50 ms", 2.5 seconds."""

from __future__ import annotations

import math
import re

from causet.errors import BadInput, quote

_UNITS = {
    1: ("ms", "milli", "millis", "millisecond", "milliseconds"),
    1000: ("", "s", "sec", "secs", "second", "seconds"),
    60_000: ("m", "min", "mins", "minute", "minutes"),
    3_600_000: ("h", "hour", "hours"),
    86_400_000: ("d", "day", "days"),
}
_SIZE = {name: size for size, names in _UNITS.items() for name in names}
_FORM = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*")
LONGEST = 100 * 366 * 86_400_000
"""A hundred years."""


def milliseconds(name: str, value: str | int | float) -> int:
    """A duration in ms; a number alone is in seconds. BadInput names what it is for.

    >>> milliseconds("patience", "10 minutes"), milliseconds("epsilon", "50ms"), milliseconds("delta", 2)
    (600000, 50, 2000)
    """
    found = _FORM.fullmatch(str(value).lower())
    if found is None or found[2] not in _SIZE:
        raise BadInput(
            f'{name} = {quote(value)}: write a duration such as "50 ms", "2 s", "10 minutes" or "1 day"'
        )
    size = float(found[1]) * _SIZE[found[2]]
    if not math.isfinite(size) or size > LONGEST:
        raise BadInput(f"{name} = {quote(value)}: that is longer than a hundred years")
    return round(size)

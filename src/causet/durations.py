"""Durations in milliseconds or microseconds, from "10 minutes", "50 ms", 2.5 seconds."""

from __future__ import annotations

import math
import re

from causet.errors import BadInput, quote

_UNITS = {
    0.001: ("us", "µs", "μs", "micro", "micros", "microsecond", "microseconds"),
    1: ("ms", "milli", "millis", "millisecond", "milliseconds"),
    1000: ("", "s", "sec", "secs", "second", "seconds"),
    60_000: ("m", "min", "mins", "minute", "minutes"),
    3_600_000: ("h", "hour", "hours"),
    86_400_000: ("d", "day", "days"),
}
_SIZE = {name: size for size, names in _UNITS.items() for name in names}
_FORM = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-zµμ]*)\s*")
LONGEST = 100 * 366 * 86_400_000
"""A hundred years."""


def milliseconds(name: str, value: str | int | float) -> int:
    """A duration in ms; a number alone is in seconds. BadInput names what it is for.

    >>> milliseconds("patience", "10 minutes"), milliseconds("epsilon", "50ms"), milliseconds("delta", 2)
    (600000, 50, 2000)
    """
    return round(_size(name, value))


def microseconds(name: str, value: str | int | float) -> int:
    """A duration in µs; a number alone is in seconds.

    >>> microseconds("epsilon", "50 ms"), microseconds("delta", "2150.001 ms"), microseconds("delta", "7 us")
    (50000, 2150001, 7)
    """
    return round(1000 * _size(name, value))


def in_ms(microseconds: int) -> str:
    """A duration in µs, for people: in ms, with what is below them where there is something.

    >>> in_ms(50_000), in_ms(2_150_001)
    ('50 ms', '2150.001 ms')
    """
    whole, rest = divmod(microseconds, 1000)
    return f"{whole}{f'.{rest:03}'.rstrip('0') if rest else ''} ms"


def _size(name: str, value: str | int | float) -> float:
    found = _FORM.fullmatch(str(value).lower())
    if found is None or found[2] not in _SIZE:
        raise BadInput(
            f'{name} = {quote(value)}: write a duration such as "50 ms", "2 s", "10 minutes" or "1 day"'
        )
    size = float(found[1]) * _SIZE[found[2]]
    if not math.isfinite(size) or size > LONGEST:
        raise BadInput(f"{name} = {quote(value)}: that is longer than a hundred years")
    return size

"""Times of other formats as the integers of a trace, exactly.

Rule: a time is never rounded; what does not fit 64 bits of nanoseconds is a `Problem`.
"""

from __future__ import annotations

import re
from datetime import date

from causet.errors import Problem, quote
from causet.formats.strict import INT64

NANOS = 10**9
_RFC3339 = re.compile(
    r"(\d{4})-(\d{2})-(\d{2})[Tt ](\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,18}))?(?:[Zz]|([+-])(\d{2}):(\d{2}))",
    re.ASCII,
)
_EPOCH = date(1970, 1, 1).toordinal()


def nanos_of(text: str) -> int:
    """Nanoseconds since 1970 of an RFC 3339 time.

    >>> nanos_of("1970-01-01T01:00:00.000000001+01:00")
    1
    """
    found = _RFC3339.fullmatch(text)
    if found is None:
        raise Problem(f"{quote(text)} is not a time such as 2024-05-01T12:00:00.5Z")
    year, month, day, hour, minute, second = (int(part) for part in found.groups()[:6])
    try:
        days = date(year, month, day).toordinal() - _EPOCH
    except ValueError:
        raise Problem(f"{quote(text)}: there is no such day") from None
    # 60 is a leap second, which 64-bit times count as the second that follows.
    if hour > 23 or minute > 59 or second > 60:
        raise Problem(f"{quote(text)}: there is no such time of day")
    seconds = ((days * 24 + hour) * 60 + minute) * 60 + second
    if found[8]:
        offset = (int(found[9]) * 60 + int(found[10])) * 60
        if int(found[9]) > 23 or int(found[10]) > 59:
            raise Problem(f"{quote(text)}: there is no such offset")
        seconds += offset if found[8] == "-" else -offset
    digits = (found[7] or "").rstrip("0")
    if len(digits) > 9:
        raise Problem(f"{quote(text)} is finer than a nanosecond")
    nanos = seconds * NANOS + int(digits.ljust(9, "0"))
    if nanos not in INT64:
        raise Problem(f"{quote(text)} is too far from 1970 for nanoseconds in 64 bits")
    return nanos

"""Untrusted JSON, decoded strictly.

Rule: what is decoded can be written again as it was: no number beyond 64 bits, no NaN, no duplicate key in an
object, no half of a surrogate pair, no nesting beyond `MAX_DEPTH`. Everything else is a `Problem`, to which
the reader of the file adds the place.
"""

from __future__ import annotations

import json
import math
from itertools import chain
from typing import TypeGuard

from causet.errors import Problem, quote

MAX_DEPTH = 64
"""Lists and objects within each other in one line."""
INT64 = range(-(2**63), 2**63)


class _Unreadable:
    """Stands in a decoded value for one that no trace may hold, until its field is known."""

    def __init__(self, problem: str) -> None:
        self.problem = problem


def _integer(digits: str) -> int | _Unreadable:
    # The length comes first: turning a million digits into a number takes long.
    if len(digits) > 20 or int(digits) not in INT64:
        return _Unreadable(f"the integer {digits[:24]}{'…' if digits[24:] else ''} does not fit 64 bits")
    return int(digits)


def _float(digits: str) -> float | _Unreadable:
    value = float(digits)
    return value if math.isfinite(value) else _Unreadable(f"the number {digits[:24]} does not fit a float64")


def _constant(name: str) -> _Unreadable:
    return _Unreadable(f"{name} is not a JSON number")


def _object(pairs: list[tuple[str, object]]) -> dict[str, object] | _Unreadable:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    names = [name for name, _ in pairs]
    repeated = next(name for name in names if names.count(name) > 1)
    return _Unreadable(f"{quote(repeated)} appears twice in one object")


_DECODER = json.JSONDecoder(
    parse_int=_integer, parse_float=_float, parse_constant=_constant, object_pairs_hook=_object
)
TOO_DEEP = f"lists and objects are nested more than {MAX_DEPTH} deep"


def decode(text: str | bytes) -> object:
    """The value of a JSON string; what is inside an object is still to be inspected (`inspect`)."""
    try:
        found: object = _DECODER.decode(text if isinstance(text, str) else text.rstrip(b"\r\n").decode())
    except UnicodeDecodeError as error:
        raise Problem(f"byte {error.start + 1} of the line is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise Problem(f"this is not JSON: {error.msg.removesuffix(' at')} at column {error.colno}") from None
    except RecursionError:
        raise Problem(TOO_DEEP) from None
    if isinstance(found, _Unreadable):
        raise Problem(found.problem)
    return found


def decode_record(text: str | bytes, what: str = "the line") -> dict[str, object]:
    """The object in a JSON string, its fields not yet inspected."""
    return as_record(decode(text), what)


def as_record(value: object, what: str) -> dict[str, object]:
    if not isinstance(value, dict):
        found = "a list" if isinstance(value, list) else quote(value)
        raise Problem(f"{what} must be an object with the fields of one event, not {found}")
    return value


def inspect(name: str, value: object) -> None:
    """Problem if a field, known or not, holds something invalid, however deep inside."""
    todo: list[tuple[object, int]] = [(name, 2), (value, 2)]  # the event itself is the first level
    while todo:
        item, depth = todo.pop()
        if isinstance(item, str):
            if not item.isascii() and not encodes(item):
                raise Problem(f"field {quote(name)}: half a surrogate pair is not text")
        elif isinstance(item, _Unreadable):
            raise Problem(f"field {quote(name)}: {item.problem}")
        elif isinstance(item, list | dict):
            if depth > MAX_DEPTH:
                raise Problem(f"field {quote(name)}: {TOO_DEEP}")
            inner = chain(item, item.values()) if isinstance(item, dict) else item
            todo.extend((each, depth + 1) for each in inner)


def inspect_all(record: dict[str, object]) -> None:
    for name, value in record.items():
        inspect(name, value)


def encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def is_integer(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)  # to Python, true is also the integer 1


def compact(value: object) -> str:
    """A value as JSON: equal values give equal strings."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), sort_keys=True)

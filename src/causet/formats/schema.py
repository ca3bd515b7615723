"""The fields of the trace format, version 1: the one table from which readers and writers take them.

Names, order and defaults are those of `causet.model.Event`. What a field may hold stands here: as a rule for
one JSON value, and as the type of a column, by Spark's name for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, NamedTuple

from causet.formats.strict import is_integer
from causet.model import KINDS, Event

EXACT = 2**53
"""Integers up to here have an exact float64."""


class Field(NamedTuple):
    type: str
    """of its column; `time` may also be a column of floats"""
    holds: str
    """what such a column holds, in words"""
    expected: str
    """what one value must be, in words"""
    fits: Callable[[Any], bool]
    """whether a JSON value is that; null means that the field is missing"""
    least: int | None = None
    """the smallest integer it may hold"""


def _integer(least: int) -> Field:
    def fits(value: Any) -> bool:
        return is_integer(value) and value >= least

    return Field("bigint", "integers", f"an integer from {least}", fits, least)


def _is_strings(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


_STRING = Field("string", "strings", "a string", lambda value: isinstance(value, str))
_STRINGS = Field("array<string>", "lists of strings", "a list of strings", _is_strings)

SCHEMA: Mapping[str, Field] = {
    "process": _STRING,
    "seq": _integer(1),
    "kind": _STRING._replace(expected=f"one of {', '.join(KINDS)}", fits=lambda value: value in KINDS),
    "id": _STRING._replace(
        expected="a string that is not empty", fits=lambda value: isinstance(value, str) and value != ""
    ),
    "message": _STRING,
    "to": _STRINGS,
    "group": _STRING,
    "parents": _STRINGS,
    "time": Field(
        "bigint",
        "integers or floats",
        "a number",
        lambda value: is_integer(value) or isinstance(value, float),
    ),
    "text": _STRING,
    "control": Field("boolean", "booleans", "true or false", lambda value: isinstance(value, bool)),
    "stamp_entries": _integer(0),
    "stamp_bytes": _integer(0),
}
FIELDS = tuple(SCHEMA)
"""The format's own fields, in the order in which they are written."""
_DEFAULTS = {each.name: each.default for each in fields(Event) if each.name != "extra"}
assert tuple(_DEFAULTS) == FIELDS


def required(kind: str) -> tuple[str, ...]:
    """The fields that every event of this kind must have."""
    match kind:
        case "local":
            return ("process", "seq")
        case "send":
            return ("process", "seq", "message", "to")
    return ("process", "seq", "message")


def stated(event: Event) -> dict[str, Any]:
    """The fields of an event, in their order, without those that a reader would assume anyway."""
    found = {name: value for name, default in _DEFAULTS.items() if (value := getattr(event, name)) != default}
    if event.id == f"{event.process}#{event.seq}":
        del found["id"]
    return found

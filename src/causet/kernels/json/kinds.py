"""What a field holds: kinds of JSON values as they are seen, and the Spark types in which they fit.

Rule: a type takes every value that was seen, exactly; what has no one type is a VARIANT. Integers and floats
in one field are doubles, as long as every integer is a float exactly.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    ByteType,
    DataType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    NullType,
    ShortType,
    StringType,
    StructField,
    StructType,
    VariantType,
)

from causet.formats.trace import FIELDS

EXACT = 2**53
"""Integers up to here are floats exactly."""
MOST_FIELDS = 1_000
"""Names in one object; where there are more, the names are data."""

_TEXT, _TEXTS = StringType(), ArrayType(StringType())
KNOWN: Mapping[str, DataType] = {
    "process": _TEXT,
    "seq": LongType(),
    "kind": _TEXT,
    "id": _TEXT,
    "message": _TEXT,
    "to": _TEXTS,
    "group": _TEXT,
    "parents": _TEXTS,
    "time": LongType(),  # or double
    "text": _TEXT,
    "control": BooleanType(),
    "stamp_entries": LongType(),
    "stamp_bytes": LongType(),
}
"""The types of the format's own fields."""
assert tuple(KNOWN) == FIELDS


# ---------------------------------------------------------------- kinds


@dataclass(slots=True)
class Kinds:
    """What was seen in one place: kinds of plain values, what lists held, which fields objects had.

    An integer that no float can stand for is `big`, any other is `int`; `many` stands for the fields of
    objects that have too many. Null says nothing.
    """

    plain: set[str] = field(default_factory=set)
    items: Kinds | None = None
    fields: dict[str, Kinds] | None = None

    def add(self, value: object) -> None:
        match value:
            case None:
                pass
            case bool():
                self.plain.add("bool")
            case int():
                self.plain.add("int" if abs(value) <= EXACT else "big")
            case float():
                self.plain.add("float")
            case str():
                self.plain.add("text")
            case list():
                self.items = self.items or Kinds()
                for item in value:
                    self.items.add(item)
            case dict():
                for name, inner in value.items():
                    self._field(name).add(inner)
                self._bound()

    def merge(self, other: Kinds) -> None:
        self.plain |= other.plain
        if other.items is not None:
            self.items = self.items or Kinds()
            self.items.merge(other.items)
        if other.fields is not None:
            for name, inner in other.fields.items():
                self._field(name).merge(inner)
            self._bound()

    def _field(self, name: str) -> Kinds:
        self.fields = {} if self.fields is None else self.fields
        return self.fields.setdefault(name, Kinds())

    def _bound(self) -> None:
        self.fields = {} if self.fields is None else self.fields
        if len(self.fields) > MOST_FIELDS or "many" in self.plain:
            self.plain.add("many")
            self.fields = {}

    def to_json(self) -> str:
        return json.dumps(self._as_list(), separators=(",", ":"))

    def _as_list(self) -> list[Any]:
        fields = self.fields
        return [
            sorted(self.plain),
            self.items and self.items._as_list(),
            fields if fields is None else {name: inner._as_list() for name, inner in fields.items()},
        ]

    @staticmethod
    def from_json(text: str) -> Kinds:
        return _from_list(json.loads(text))


def _from_list(found: list[Any]) -> Kinds:
    plain, items, fields = found
    return Kinds(
        set(plain),
        items and _from_list(items),
        fields if fields is None else {name: _from_list(inner) for name, inner in fields.items()},
    )


# ---------------------------------------------------------------- types


def type_of(kinds: Kinds) -> DataType:
    """The Spark type of what was seen; NullType where nothing was."""
    if (bool(kinds.plain) + (kinds.items is not None) + (kinds.fields is not None)) > 1:
        return VariantType()
    if kinds.items is not None:
        item = type_of(kinds.items)
        return item if isinstance(item, VariantType) else ArrayType(item)
    if kinds.fields is not None:
        return _struct(kinds.fields)
    match sorted(kinds.plain):
        case []:
            return NullType()
        case ["text"]:
            return StringType()
        case ["bool"]:
            return BooleanType()
        case ["int"] | ["big"] | ["big", "int"]:
            return LongType()
        case ["float"] | ["float", "int"]:
            return DoubleType()
    return VariantType()


def _struct(fields: Mapping[str, Kinds]) -> DataType:
    """A struct if Spark can have it: no names that differ only in case, and at least one; a VARIANT else."""
    inner = {name: type_of(kinds) for name, kinds in fields.items()}
    if not inner or len({name.lower() for name in inner}) < len(inner):
        return VariantType()
    if any(isinstance(each, VariantType) for each in inner.values()):
        return VariantType()
    return StructType([StructField(name, inner[name]) for name in sorted(inner)])


def filled(found: DataType) -> DataType:
    """The type with texts where nothing was seen: files have no column of nothing."""
    match found:
        case NullType():
            return StringType()
        case ArrayType():
            return ArrayType(filled(found.elementType), found.containsNull)
        case StructType():
            return StructType([StructField(each.name, filled(each.dataType)) for each in found.fields])
    return found


def common_type(one: DataType, other: DataType) -> DataType | None:
    """The type in which the values of both fit; None if there is none."""
    if one == other or isinstance(other, NullType):
        return one
    if isinstance(one, NullType):
        return other
    if isinstance(one, ArrayType) and isinstance(other, ArrayType):
        item = common_type(one.elementType, other.elementType)
        return None if item is None else ArrayType(item)
    if is_integral(one) and is_integral(other):
        return LongType()
    if is_number(one) and is_number(other):
        return DoubleType()
    return None


def is_integral(found: DataType) -> bool:
    return isinstance(found, ByteType | ShortType | IntegerType | LongType)


def is_number(found: DataType) -> bool:
    return is_integral(found) or isinstance(found, FloatType | DoubleType)

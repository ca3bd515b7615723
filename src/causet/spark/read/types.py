"""Spark types of fields: those of the trace format, and those that take the kinds of values that were seen.

Rule: a type takes every value that was seen, exactly; values that have no common type are a VARIANT. Integers
and floats in one field are doubles, as long as every integer has an exact float.
"""

from __future__ import annotations

from collections.abc import Mapping

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

from causet.formats.kinds import Kinds
from causet.formats.schema import SCHEMA

_TYPES: Mapping[str, DataType] = {
    "string": StringType(),
    "bigint": LongType(),
    "array<string>": ArrayType(StringType()),
    "boolean": BooleanType(),
}
KNOWN = {name: _TYPES[field.type] for name, field in SCHEMA.items()}
"""The types of the format's own fields; `time` may also be a double."""


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
    """The type with strings where nothing was seen: files have no columns of type null."""
    match found:
        case NullType():
            return StringType()
        case ArrayType():
            return ArrayType(filled(found.elementType), found.containsNull)
        case StructType():
            return StructType([StructField(each.name, filled(each.dataType)) for each in found.fields])
    return found


def common_type(one: DataType, other: DataType) -> DataType | None:
    """The type in which the values of both fit; None if there is no such type."""
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

"""The columns of messages: which of them say who numbered a message, its number, and its causes."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from causet.envelope import GROUPS, NUMBERS, PROCESS, VERSION_NAME
from causet.errors import BadInput, quote
from causet.spark.columns import quoted
from causet.spark.streams.messages.settings import LATE, MALFORMED
from causet.spark.streams.pack import FAULT, OWN, SIZE


def columns_of(rows: DataFrame) -> T.StructType:
    """The columns of messages, without our own."""
    return T.StructType([field for field in rows.schema.fields if not field.name.startswith(OWN)])


def with_size(rows: DataFrame) -> DataFrame:
    """With the bytes that each row takes as JSON, which is how it goes into a topic."""
    names = [F.col(quoted(name)) for name in rows.columns if not name.startswith(OWN)]
    return rows.withColumn(SIZE, F.octet_length(F.to_json(F.struct(*names))).cast("long"))


def column_of_version(messages: DataFrame) -> str:
    """The column of the envelope's version; BadInput if it has an unsuitable type."""
    _check(messages, VERSION_NAME, (T.StringType, T.IntegralType), "1 or 2")
    return VERSION_NAME


def columns_of_identity(messages: DataFrame) -> tuple[str, ...]:
    """The columns of the identity under which messages are numbered; BadInput if one has an unsuitable type.

    Rows may have the first one although it was not there when the columns were written down.
    """
    _check(messages, PROCESS, (T.StringType,), "a string")
    table = "process" in messages.columns and isinstance(messages.schema["process"].dataType, T.StringType)
    return (PROCESS, "process") if table else (PROCESS,)


def _check(messages: DataFrame, name: str, kinds: tuple[type, ...], words: str) -> None:
    if name in messages.columns and not isinstance(messages.schema[name].dataType, kinds):
        kind = messages.schema[name].dataType.simpleString()
        raise BadInput(f"column {quote(name)} must be {words}, not {kind}")


def columns_of_order(messages: DataFrame, by: str | None, parent: str | None) -> tuple[str, str, str | None]:
    """The columns of source, sequence and causes; BadInput if one is missing, or has an unsuitable type."""
    names = messages.columns
    for name in names:
        if name.startswith(OWN) and name not in (FAULT, SIZE):
            raise BadInput(f"column name {quote(name)} is reserved: causet uses names that begin with {OWN}")

    def need(name: str, kinds: tuple[type, ...], words: str) -> str:
        if name not in names:
            raise BadInput(f"messages need a column {quote(name)}; there are {columns_that_came(messages)}")
        if not isinstance(messages.schema[name].dataType, kinds):
            raise BadInput(
                f"column {quote(name)} must be {words}, not {messages.schema[name].dataType.simpleString()}"
            )
        return name

    if by is not None:
        need(by, (T.StringType, T.IntegralType), "a string")
    if parent is not None:
        need("id", (T.StringType,), "a string")
        need(parent, (T.StringType, T.ArrayType), "a string or a list of strings")
        return "id", "id", parent
    need("source", (T.StringType,), "a string")
    if columns_of_groups(messages)[0] is None or "sequence" in names:
        need("sequence", (T.IntegralType, T.StringType), "a string or a 64-bit integer")
    if "deps" in names:
        return (
            "source",
            "sequence",
            need("deps", (T.BinaryType, T.MapType), "packed bytes or a map"),
        )
    if "causaldeps" in names:
        return "source", "sequence", need("causaldeps", (T.StringType,), "a JSON string")
    columns = f"{quote('deps')} or {quote('causaldeps')}"
    raise BadInput(f"messages need a column {columns}; there are {columns_that_came(messages)}")


def columns_of_groups(messages: DataFrame) -> tuple[str | None, str | None]:
    """The columns of a message's numbers by group, and of its groups, as far as there are any."""
    for numbers, groups, kinds in (
        (NUMBERS, GROUPS, (T.StringType, T.MapType)),
        ("numbers", "groups", (T.MapType,)),
    ):
        if numbers in messages.columns and isinstance(messages.schema[numbers].dataType, kinds):
            there = groups in messages.columns
            fits = there and isinstance(messages.schema[groups].dataType, T.StringType | T.ArrayType)
            return numbers, groups if fits else None
    return None, None


def columns_that_came(messages: DataFrame) -> str:
    """The columns of messages, without those that are read although no message had them."""
    ours = (MALFORMED, *(name for name in messages.columns if is_late(messages, name)))
    return ", ".join(name for name in messages.columns if name not in ours and not name.startswith(OWN))


def is_late(messages: DataFrame, name: str) -> bool:
    """Whether a column was not there when the query began."""
    return bool((messages.schema[name].metadata or {}).get(LATE))

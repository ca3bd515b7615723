"""Records of Kafka as rows: the columns that Spark gets, and why a record is not a message."""

from __future__ import annotations

import json
from operator import methodcaller
from typing import Any

import pyarrow as pa

from causet.errors import printable
from causet.model import is_text
from causet.spark.streams.kafka.client import client
from causet.spark.streams.pack import FAULT, SIZE

SCHEMA = (
    "key binary, value binary, topic string, partition int, offset long, timestamp long, "
    f"headers array<struct<key:string,value:binary>>, {FAULT} string, {SIZE} long"
)
ARROW = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.int64()),
        ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
        (FAULT, pa.string()),
        (SIZE, pa.int64()),
    ]
)
PER_HEADER = 10
"""Bytes for the lengths of a header, at most."""


def batch_of(messages: list[Any]) -> pa.RecordBatch:
    found = [_headers(message) for message in messages]
    rows = {
        "key": [message.key() for message in messages],
        "value": [message.value() for message in messages],
        "topic": [message.topic() for message in messages],
        "partition": [message.partition() for message in messages],
        "offset": [message.offset() for message in messages],
        "timestamp": [_timestamp(message) for message in messages],
        "headers": [[{"key": name, "value": value} for name, value in each or ()] for each in found],
        FAULT: [_fault(message, each) for message, each in zip(messages, found, strict=True)],
        SIZE: [_size(message, each) for message, each in zip(messages, found, strict=True)],
    }
    return pa.RecordBatch.from_pydict(rows, schema=ARROW)


Headers = list[tuple[str, bytes | None]]
_asked_for_headers = methodcaller("headers")
"""If a name is not UTF-8, the client returns a broken list *and* sets an exception. Python checks for that in
calls like this one, but not in calls that it has specialised."""


def _headers(message: Any) -> Headers | None:
    """The headers of a message; None if the client cannot decode their names. (It must not be asked again
    then: it would give a list with holes.)"""
    try:
        return list(_asked_for_headers(message) or ())
    except (SystemError, UnicodeError):
        return None


def _timestamp(message: Any) -> int | None:
    kind, found = message.timestamp()
    return found if kind != client().TIMESTAMP_NOT_AVAILABLE else None


def _size(message: Any, headers: Headers | None) -> int:
    """Bytes of value and headers."""
    named = sum(len(name.encode()) + len(value or b"") + PER_HEADER for name, value in headers or ())
    return len(message.value() or b"") + named


def _fault(message: Any, headers: Headers | None) -> str | None:
    """Why this is not a message, if the attributes of its envelope cannot be text."""
    if headers is None:
        return "the name of a header is not UTF-8"
    binary = False
    for name, value in headers:
        if name.startswith("ce_"):
            binary = True
            if value is not None and not _is_utf8(value):
                return f"header {printable(name)} is not UTF-8"
    value = message.value()
    if binary or value is None:
        return None
    if not _is_utf8(value):
        return "the value is not UTF-8"
    if b"\\ud" in value or b"\\uD" in value:
        return _half_character(value)
    return None


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _half_character(value: bytes) -> str | None:
    """An attribute with half of a surrogate pair, which is not text (Spark makes a question mark of it)."""
    try:
        envelope = json.loads(value)
    except (ValueError, RecursionError):
        return None
    for name, found in envelope.items() if isinstance(envelope, dict) else ():
        if name != "data" and isinstance(found, str) and found and not is_text(found):
            return f"attribute {printable(name)} has half of a surrogate pair, which is not text"
    return None

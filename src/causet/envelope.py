"""The envelope of a message: a CloudEvent with attributes of ours, read and written.

    causalversion   2; without it, the envelope is of version 1
    causalprocess   the identity under which the source numbers its messages; without it, the source itself
    causaldomain    the domain in which numbers count
    sequence        the number: 1, 2, 3, … per process and domain
    causaldeps      the direct causes: process → number
    causaltime      r + c and r of the ⟨r, c⟩ clock, in ticks of 1 µs; in version 1, of 1 ms

What strangers wrote is read strictly: it becomes a value, or BadStamp says in a sentence what is wrong.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from typing import Any

from causet.errors import BadInput, BadStamp, quote
from causet.model import is_text
from causet.rcclock import TICKS_PER_MS, RcTime

TYPE, HEARTBEAT = "causet.message", "causet.heartbeat"
VERSION_NAME, PROCESS, DOMAIN = "causalversion", "causalprocess", "causaldomain"
GROUPS, NUMBERS = "causalgroups", "causalnumbers"
VERSION = 2
"""Of the envelope's extensions."""
MOST_SEQUENCE = 2**53 - 1
"""The largest number of a message: whatever reads JSON reads it exactly, and no source sends that many."""
PACKED_VERSION = 1
MOST_DEPS = 10_000
"""Direct causes of one message, at most."""


# Reading what strangers wrote.


def version_of(envelope: Mapping[str, Any]) -> int:
    """The version of an envelope; BadStamp if it is none that can be read.

    >>> version_of({}), version_of({"causalversion": 2}), version_of({"causalversion": "2"})
    (1, 2, 2)
    """
    found = envelope.get(VERSION_NAME)
    if found is None:
        return 1
    if str(found) in ("1", "2"):
        return int(found)
    raise BadStamp(
        f"causalversion must be 1 or 2, not {quote(found)}: a newer release may be able to read it"
    )


def process_of(envelope: Mapping[str, Any]) -> str:
    """The identity under which a message is numbered, its `causalprocess` or else its `source`; BadStamp if
    it has none.

    >>> process_of({"source": "anna"}), process_of({"source": "anna", "causalprocess": "anna~1"})
    ('anna', 'anna~1')
    """
    source, process = envelope.get("source"), envelope.get(PROCESS)
    if not isinstance(source, str) or not is_text(source):
        raise BadStamp(f"an envelope must have a source that is text, not {quote(source)}")
    if process is None:
        return source
    if not isinstance(process, str) or not is_text(process):
        raise BadStamp(f"causalprocess must be text, not {quote(process)}")
    return process


def sequence_of(envelope: Mapping[str, Any]) -> int:
    """The number of a message; BadStamp if it is invalid."""
    found = envelope.get("sequence")
    if not isinstance(found, str) or not found.isascii() or not found.isdigit() or len(found) > 20:
        raise BadStamp(f"sequence must be a number of up to 20 digits, not {quote(found)}")
    if not 1 <= int(found) <= MOST_SEQUENCE:
        raise BadStamp(f"sequence must be between 1 and {MOST_SEQUENCE}, not {quote(found)}")
    return int(found)


def deps_of(envelope: Mapping[str, Any]) -> dict[str, int]:
    """The direct causes of a message; BadStamp if they cannot be read."""
    text = envelope.get("causaldeps", "{}")
    if not isinstance(text, str):
        raise BadStamp(f"causaldeps must be JSON text, not {quote(text)}")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise BadStamp(f"causaldeps must be JSON text, not {quote(text)}") from None
    if not isinstance(found, dict) or len(found) > MOST_DEPS:
        raise BadStamp(f"causaldeps must be a map of up to {MOST_DEPS:,} processes, not {quote(text)}")
    for process, number in found.items():
        if not is_text(process):
            raise BadStamp(f"causaldeps: {quote(process)} cannot be the name of a process")
        if type(number) is not int or not 1 <= number <= MOST_SEQUENCE:
            raise BadStamp(f"causaldeps: the number of {quote(process)} cannot be {quote(number)}")
    return found


def tick_of(envelope: Mapping[str, Any]) -> int:
    """How many ticks of 1 µs a tick of the clock of a message is."""
    return TICKS_PER_MS if version_of(envelope) == 1 else 1


def time_of(envelope: Mapping[str, Any]) -> RcTime | None:
    """The ⟨r, c⟩ time of a message in ticks of 1 µs, if it has one; BadStamp if it cannot be read.

    >>> time_of({"causaltime": "1021 1001"}), time_of({"causaltime": "1021 1001", "causalversion": 2})
    (RcTime(rc=1021000, r=1001000), RcTime(rc=1021, r=1001))
    """
    found = envelope.get("causaltime")
    return None if found is None else RcTime.parse(found, tick_of(envelope))


# Writing.


def canonical(deps: Mapping[str, int]) -> str:
    """A map process → number as canonical JSON (RFC 8785): keys by their UTF-16 form, no blanks.

    >>> canonical({"p2": 3, "p10": 1})
    '{"p10":1,"p2":3}'
    """
    ordered = sorted(deps, key=lambda name: name.encode("utf-16-be", "surrogatepass"))
    return json.dumps({name: deps[name] for name in ordered}, ensure_ascii=False, separators=(",", ":"))


def pack_deps(deps: Mapping[str, int]) -> bytes:
    """A map process → number as the bytes of the column `deps`: a version, then for each cause its number (8
    bytes), the length of its name (2) and the name in UTF-8, little-endian, by name.

    >>> pack_deps({"p2": 3}).hex(" ")
    '01 03 00 00 00 00 00 00 00 02 00 70 32'
    """
    packed = bytearray([PACKED_VERSION])
    for name in sorted(deps):
        raw = name.encode()
        if len(raw) >= 2**16:
            raise BadInput(f"the name of a process is too long: {quote(name)}")
        packed += deps[name].to_bytes(8, "little") + len(raw).to_bytes(2, "little") + raw
    return bytes(packed)


# The Kafka binding: structured mode is the envelope as JSON.


def to_binary(envelope: Mapping[str, Any]) -> tuple[list[tuple[str, bytes]], bytes | None]:
    """Headers and value of a Kafka message in binary mode; BadInput if an attribute cannot be a header."""
    headers = [
        (f"ce_{name}", _header(name, value))
        for name, value in envelope.items()
        if name not in ("data", "data_base64", "datacontenttype")
    ]
    if "data_base64" in envelope:
        kind, value = envelope.get("datacontenttype"), base64.b64decode(envelope["data_base64"])
    elif "data" in envelope:
        kind = envelope.get("datacontenttype", "application/json")
        value = _json(envelope["data"])
    else:
        return headers, None
    return [*headers, *([("content-type", _header("datacontenttype", kind))] if kind else [])], value


def _header(name: str, value: object) -> bytes:
    try:
        return str(value).encode()
    except UnicodeEncodeError:
        raise BadInput(f"the attribute {name} must be text, not {quote(value)}") from None


def _json(data: object) -> bytes:
    try:
        return json.dumps(data, ensure_ascii=False, allow_nan=False).encode()
    except UnicodeEncodeError:  # JSON of others may have half of a surrogate pair, escaped
        return json.dumps(data, allow_nan=False).encode()


def from_binary(headers: Iterable[tuple[str, bytes]], value: bytes | None) -> dict[str, Any]:
    """The envelope of a Kafka message in binary mode; BadStamp if it is invalid."""
    envelope: dict[str, Any] = {}
    for name, raw in headers:
        if name.startswith("ce_") or name == "content-type":
            try:
                envelope["datacontenttype" if name == "content-type" else name[3:]] = raw.decode()
            except UnicodeDecodeError:
                raise BadStamp(f"header {name} is not UTF-8 text") from None
    if envelope.get(VERSION_NAME) == str(VERSION):  # headers are text, and this one is a number
        envelope[VERSION_NAME] = VERSION
    if not envelope.get("source") or not envelope.get("id"):
        raise BadStamp("a message in binary mode must have the headers ce_source and ce_id")
    if value is not None:
        if envelope.get("datacontenttype", "").split(";")[0].endswith("json"):
            try:
                envelope["data"] = json.loads(value)
            except (ValueError, RecursionError):
                raise BadStamp("the value of a message says that it is JSON, and is not") from None
        else:
            envelope["data_base64"] = base64.b64encode(value).decode()
    return envelope

"""Stamping at the source: the envelope of a message, and who knows what to write on it.

The envelope is a CloudEvent. Within a domain each source numbers its messages 1, 2, 3, … (`sequence`), and
says which messages of others it had seen and not yet answered (`causaldeps`): the direct causes. A message
depends on the previous one of its source and on these; everything else follows.

    >>> anna, ben = Stamper("anna", "chat"), Stamper("ben", "chat")
    >>> question = anna.stamp("Who is there?")
    >>> ben.saw(question)
    >>> answer = ben.stamp("Me.")
    >>> answer["sequence"], answer["causaldeps"]
    ('00000000000000000001', '{"anna":1}')

Standard library only: a producer needs nothing but this package's pure part.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from threading import RLock
from typing import Any

from causet.errors import BadInput, BadStamp, quote
from causet.journal import VERSION, Journal, state_of
from causet.model import is_text
from causet.rcclock import ClockJumped, RcClock, RcTime

__all__ = ["HEARTBEAT", "ClockJumped", "RcClock", "RcTime", "Stamper", "from_binary", "to_binary"]

TYPE, HEARTBEAT = "causet.message", "causet.heartbeat"
DOMAIN = "causaldomain"
MOST_SEQUENCE = 2**53 - 1
"""The largest number of a message: whatever reads JSON reads it exactly, and no source sends that many."""
PACKED_VERSION = 1
MOST_DEPS = 10_000
"""Direct causes of one message, at most."""
JOURNAL_LINES = 10_000
"""So many lines are written to a stamper's file before it is written anew."""

_ATTRIBUTE = re.compile(r"[a-z0-9]{1,40}")
_OURS = ("specversion", "id", "source", "type", "sequence", "causaldeps", "causaltime", DOMAIN, "data")


class Stamper:
    """Writes envelopes for one source in one domain.

    With a `file`, every number and everything seen is written there before it counts: a process that is
    killed and starts again with the same file goes on with the next number, and `unsent` holds the
    envelopes that may not have reached a receiver: publish them again first (a receiver recognises a
    duplicate).
    Written is what the operating system has; with `durable`, what the disk has. The file is locked as long as
    the stamper is open: a second one on the same file, in this process or another, is refused (BadInput), and
    so is a forked process that goes on with its parent's. `close()`, the end of a `with`, and the end of the
    process release it. Windows has no such lock: there, take care that a file has one stamper.

    Threads can share a stamper.

    With a `clock`, messages also carry the ⟨r, c⟩ time of the deterministic merge.
    """

    def __init__(
        self,
        source: str,
        domain: str = "all",
        *,
        clock: RcClock | None = None,
        file: str | Path | None = None,
        durable: bool = False,
    ) -> None:
        for name, value in (("source", source), ("domain", domain)):
            if not is_text(value):
                raise BadInput(
                    f"the {name} of a stamper must be text that is not empty and has no half of a surrogate "
                    f"pair, not {quote(value)}"
                )
        self.source = source
        self.domain = domain
        self.clock = clock
        self.sequence = 0
        """the number of the last message"""
        self._seen: dict[str, int] = {}
        self._direct: dict[str, int] = {}
        self._unsent: dict[int, dict[str, Any]] = {}
        self._lock = RLock()
        self._journal: Journal | None = None
        if file is not None:
            self._journal = Journal(Path(file), durable)
            try:
                for line in self._journal.read():
                    self._replay(line)
                self._journal.begin(self._state(), [{"stamped": each} for each in self._unsent.values()])
            except BaseException:
                self._journal.close()
                raise

    def close(self) -> None:
        """Release the file, so that another stamper can open it; this one stamps no more. Without a file,
        nothing happens."""
        with self._lock:
            if self._journal is not None:
                self._journal.close()

    def __enter__(self) -> Stamper:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def unsent(self) -> list[dict[str, Any]]:
        """Envelopes that `sent` was never called for, in their order; only kept with a file."""
        return list(self._unsent.values())

    def stamp(self, data: Any = None, **attributes: str) -> dict[str, Any]:
        """The envelope of the next message: `data` is anything that JSON can hold, or bytes; `attributes` are
        further attributes of the CloudEvent, such as `type` or `subject`."""
        _check_data(data)
        given = _checked(attributes)
        with self._lock:
            return self._stamped(data, given)

    def _stamped(self, data: Any, attributes: dict[str, str]) -> dict[str, Any]:
        if self.sequence >= MOST_SEQUENCE:
            raise BadInput(
                f"{self.source} has sent {MOST_SEQUENCE} messages, which is the most that can be numbered"
            )
        if self._journal is not None:
            self._journal.check_open()
        number = self.sequence + 1
        envelope: dict[str, Any] = {
            "specversion": "1.0",
            "id": attributes.pop("id", f"{self.domain}:{number}"),
            "source": self.source,
            "type": attributes.pop("type", TYPE),
            **attributes,
            DOMAIN: self.domain,
            "sequence": f"{number:020}",
            "causaldeps": canonical(self._direct),
        }
        if self.clock is not None:
            envelope["causaltime"] = str(self.clock.event())
        if isinstance(data, bytes | bytearray):
            envelope["data_base64"] = base64.b64encode(data).decode()
        elif data is not None:
            envelope["data"] = data
        if self._journal is not None:
            self._write({"stamped": envelope})
            self._unsent[number] = envelope
        self.sequence = number
        self._direct = {}
        self._tidy()
        return envelope

    def sent(self, envelope: Mapping[str, Any]) -> None:
        """The broker has this message: no need to keep it for a restart."""
        number = sequence_of(envelope)
        with self._lock:
            if number in self._unsent:
                self._write({"sent": number})
                del self._unsent[number]
                self._tidy()

    def saw(self, envelope: Mapping[str, Any]) -> None:
        """A message was delivered here: what is stamped from now on comes after it.

        Messages must be delivered in causal order: then the direct causes are exactly the delivered messages
        that no other delivered one depends on. BadStamp if the envelope is damaged or of another domain;
        nothing is changed then.
        """
        source, domain = envelope.get("source"), envelope.get(DOMAIN, self.domain)
        if not isinstance(source, str) or not is_text(source):
            raise BadStamp(f"an envelope must have a source that is text, not {quote(source)}")
        if domain != self.domain:
            raise BadStamp(
                f"a message of domain {quote(domain)} at a stamper of domain {quote(self.domain)}: "
                "dependencies stay inside a domain, so give what belongs together one domain"
            )
        when = time_of(envelope)
        beats = envelope.get("type") == HEARTBEAT
        number, deps = (0, {}) if beats else (sequence_of(envelope), deps_of(envelope))
        if deps.get(source, 0) >= number and not beats:
            raise BadStamp(f"message {number} of {quote(source)} depends on itself or on a later one")
        with self._lock:
            if self._journal is not None:
                self._journal.check_open()
            if self.clock is not None and when is not None:
                self.clock.event(when)
            if beats or source == self.source or number <= self._seen.get(source, 0):
                return
            line: dict[str, Any] = {"saw": [source, number, deps]}
            if self.clock is not None:
                line["rc"] = self.clock.largest
            self._write(line)
            self._learn(source, number, deps)
            self._tidy()

    def _learn(self, source: str, number: int, deps: Mapping[str, int]) -> None:
        for name, least in deps.items():
            if self._direct.get(name, least + 1) <= least:
                del self._direct[name]
        self._seen[source] = self._direct[source] = number

    def heartbeat(self) -> dict[str, Any]:
        """An envelope without a message, which tells mergers how far this source's clock is."""
        if self.clock is None:
            raise BadInput("only a stamper with a clock has a heartbeat")
        with self._lock:
            if self._journal is not None:
                self._journal.check_open()
            when = self.clock.event()
        return {
            "specversion": "1.0",
            "id": f"{self.domain}:beat:{when.rc}",
            "source": self.source,
            "type": HEARTBEAT,
            DOMAIN: self.domain,
            "causaltime": str(when),
        }

    # Saving and restoring.

    def save(self) -> str:
        """The whole state as a string. Without a `file`, save it after each `stamp`, before the message
        leaves, or a number is used twice."""
        with self._lock:
            return json.dumps({**self._state(), "unsent": self.unsent}, ensure_ascii=False)

    @classmethod
    def restore(cls, saved: str, *, clock: RcClock | None = None) -> Stamper:
        """The stamper that was saved."""
        state = state_of(saved, "a saved stamper")
        stamper = cls(state["source"], state["domain"], clock=clock)
        stamper._load(state)
        for envelope in state.get("unsent", ()):
            stamper._unsent[sequence_of(envelope)] = envelope
        return stamper

    def _state(self) -> dict[str, Any]:
        return {
            "version": VERSION,
            "source": self.source,
            "domain": self.domain,
            "sequence": self.sequence,
            "seen": self._seen,
            "direct": self._direct,
            "rc": self.clock.largest if self.clock is not None else None,
        }

    def _load(self, state: Mapping[str, Any]) -> None:
        if (state["source"], state["domain"]) != (self.source, self.domain):
            raise BadInput(
                f"this is the file of {quote(state['source'])} in domain {quote(state['domain'])}, not of "
                f"{quote(self.source)} in {quote(self.domain)}"
            )
        self.sequence = state["sequence"]
        self._seen, self._direct = dict(state["seen"]), dict(state["direct"])
        if self.clock is not None and state.get("rc") is not None:
            self.clock.not_before(state["rc"])

    def _replay(self, line: Mapping[str, Any]) -> None:
        if "version" in line:
            self._load(line)
        elif "stamped" in line:
            envelope = line["stamped"]
            number = sequence_of(envelope)
            self._unsent[number] = envelope
            if number > self.sequence:  # else it stands before, kept because it was not sent
                self.sequence, self._direct = number, {}
                when = time_of(envelope)
                if self.clock is not None and when is not None:
                    self.clock.not_before(when.rc)
        elif "sent" in line:
            self._unsent.pop(line["sent"], None)
        elif "saw" in line:
            self._learn(*line["saw"])
            if self.clock is not None and line.get("rc") is not None:
                self.clock.not_before(line["rc"])

    def _write(self, line: Mapping[str, Any]) -> None:
        if self._journal is not None:
            self._journal.append(line)

    def _tidy(self) -> None:
        """Write the file anew when it is long; only when everything in it is known here."""
        if self._journal is None:
            return
        if self._journal.lines > JOURNAL_LINES + 2 * len(self._unsent):
            self._journal.begin(self._state(), [{"stamped": each} for each in self._unsent.values()])


def _check_data(data: Any) -> None:
    """BadInput if this cannot be written: said here, and not by a sender that has the number already."""
    if data is None or isinstance(data, bytes | bytearray):
        return
    try:
        json.dumps(data, ensure_ascii=False, allow_nan=False).encode()
    except UnicodeEncodeError:
        raise BadInput(
            "the data of a message cannot be written as JSON: half of a surrogate pair is not text"
        ) from None
    except (TypeError, ValueError, RecursionError) as error:
        raise BadInput(f"the data of a message cannot be written as JSON: {error}") from None


def _checked(attributes: Mapping[str, str]) -> dict[str, str]:
    """The attributes that a caller may give; `id` and `type` among them."""
    for name, value in attributes.items():
        if not _ATTRIBUTE.fullmatch(name) or (name in _OURS and name not in ("id", "type")):
            raise BadInput(
                f"{quote(name)} cannot be an attribute: small letters and digits, and not one of ours"
            )
        empty = value == "" and name not in ("id", "type")
        if not empty and not is_text(value):
            raise BadInput(f"the attribute {name} must be text, not {quote(value)}")
    if attributes.get("type") == HEARTBEAT:
        raise BadInput(f"the type {HEARTBEAT} is for heartbeats, which carry no message: use heartbeat()")
    return dict(attributes)


def canonical(deps: Mapping[str, int]) -> str:
    """A map source → sequence as canonical JSON (RFC 8785): keys by their UTF-16 form, no blanks.

    >>> canonical({"p2": 3, "p10": 1})
    '{"p10":1,"p2":3}'
    """
    ordered = sorted(deps, key=lambda name: name.encode("utf-16-be", "surrogatepass"))
    return json.dumps({name: deps[name] for name in ordered}, ensure_ascii=False, separators=(",", ":"))


def pack_deps(deps: Mapping[str, int]) -> bytes:
    """A map source → sequence as the bytes of the column `deps`: a version, then for each cause its number (8
    bytes), the length of its name (2) and the name in UTF-8, little-endian, by name.

    >>> pack_deps({"p2": 3}).hex(" ")
    '01 03 00 00 00 00 00 00 00 02 00 70 32'
    """
    packed = bytearray([PACKED_VERSION])
    for name in sorted(deps):
        raw = name.encode()
        if len(raw) >= 2**16:
            raise BadInput(f"the name of a source is too long: {quote(name)}")
        packed += deps[name].to_bytes(8, "little") + len(raw).to_bytes(2, "little") + raw
    return bytes(packed)


# Reading what strangers wrote.


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
        raise BadStamp(f"causaldeps must be a map of up to {MOST_DEPS:,} sources, not {quote(text)}")
    for source, number in found.items():
        if not is_text(source):
            raise BadStamp(f"causaldeps: {quote(source)} cannot be the name of a source")
        if type(number) is not int or not 1 <= number <= MOST_SEQUENCE:
            raise BadStamp(f"causaldeps: the number of {quote(source)} cannot be {quote(number)}")
    return found


def time_of(envelope: Mapping[str, Any]) -> RcTime | None:
    """The ⟨r, c⟩ time of a message, if it has one; BadStamp if it cannot be read."""
    found = envelope.get("causaltime")
    return None if found is None else RcTime.parse(found)


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

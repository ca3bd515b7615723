"""Stamping at the source: the envelope of a message, and who knows what to write on it.

The envelope is a CloudEvent. Within a domain each process numbers its messages 1, 2, 3, … (`sequence`), and
says which messages of others it had seen and not yet answered (`causaldeps`): the direct causes. A message
depends on the previous one of its process and on these; everything else follows.

    >>> anna, ben = Stamper("anna", "chat", run="1"), Stamper("ben", "chat", run="1")
    >>> question = anna.stamp("Who is there?")
    >>> ben.saw(question)
    >>> answer = ben.stamp("Me.")
    >>> answer["source"], answer["causalprocess"], answer["sequence"], answer["causaldeps"]
    ('ben', 'ben~1', '00000000000000000001', '{"anna~1":1}')

A process that lost its memory is a new process: its numbers begin at 1 again, under an identity of its own.

    >>> Stamper("anna", "chat").process == Stamper("anna", "chat").process
    False

Standard library only: a producer needs nothing but this package's pure part.
"""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from threading import RLock
from typing import Any

from causet.envelope import (
    DOMAIN,
    HEARTBEAT,
    MOST_DEPS,
    MOST_SEQUENCE,
    PACKED_VERSION,
    PROCESS,
    TYPE,
    VERSION_NAME,
    canonical,
    deps_of,
    from_binary,
    pack_deps,
    process_of,
    sequence_of,
    tick_of,
    time_of,
    to_binary,
)
from causet.envelope import VERSION as ENVELOPE_VERSION
from causet.errors import BadInput, BadStamp, quote
from causet.identity import identity, new_run
from causet.journal import VERSION, Journal, state_of
from causet.model import is_text
from causet.rcclock import ClockJumped, RcClock, RcTime

__all__ = [
    "DOMAIN",
    "HEARTBEAT",
    "MOST_DEPS",
    "MOST_SEQUENCE",
    "PACKED_VERSION",
    "TYPE",
    "ClockJumped",
    "RcClock",
    "RcTime",
    "Stamper",
    "canonical",
    "deps_of",
    "from_binary",
    "pack_deps",
    "process_of",
    "sequence_of",
    "time_of",
    "to_binary",
]

JOURNAL_LINES = 10_000
"""So many lines are written to a stamper's file before it is written anew."""

_ATTRIBUTE = re.compile(r"[a-z0-9]{1,40}")
_OURS = (
    *("specversion", "id", "source", "type", "sequence", "data"),
    *(VERSION_NAME, PROCESS, DOMAIN, "causaldeps", "causaltime"),
)


class Stamper:
    """Writes envelopes for one source in one domain.

    The messages are numbered under an identity, `process`: the source, and a run of it that has a name of its
    own (`source~run`). With a `file`, the identity is made when the file is new, and kept in it, and every
    number and everything seen is written there before it counts: a process that is killed and starts again
    with the same file goes on with the next number, and `unsent` holds the envelopes that may not have
    reached a receiver: publish them again first (a receiver recognises a duplicate).
    Without a file, every start is a new process: its numbers begin at 1, and its messages do not follow those
    of its predecessor, unless it `saw` them. No number is used twice, but what the predecessor stamped and
    did not hand over is lost, and so is the order between the two. Use a file where a producer may be started
    again and is to go on.
    Written is what the operating system has; with `durable`, what the disk has. The file is locked as long as
    the stamper is open: a second one on the same file, in this process or another, is refused (BadInput), and
    so is a forked process that goes on with its parent's. `close()`, the end of a `with`, and the end of the
    process release it. Windows has no such lock: there, take care that a file has one stamper.

    Threads can share a stamper.

    With a `clock`, messages also carry the ⟨r, c⟩ time of the deterministic merge.

    `run` names the run, where a program has incarnations of its own: small letters, digits and dashes. Two
    runs that know nothing of each other must never have the same name.
    """

    def __init__(
        self,
        source: str,
        domain: str = "all",
        *,
        clock: RcClock | None = None,
        file: str | Path | None = None,
        durable: bool = False,
        run: str | None = None,
    ) -> None:
        for name, value in (("source", source), ("domain", domain)):
            if not is_text(value):
                raise BadInput(
                    f"the {name} of a stamper must be text that is not empty and has no half of a surrogate "
                    f"pair, not {quote(value)}"
                )
        self.source = source
        self.domain = domain
        self.process = identity(source, new_run() if run is None else run)
        """the identity under which messages are numbered"""
        self.clock = clock
        self.sequence = 0
        """the number of the last message"""
        self._seen: dict[str, int] = {}
        self._direct: dict[str, int] = {}
        self._unsent: dict[int, dict[str, Any]] = {}
        self._rc: int | None = None
        """the largest r + c that the file knows of"""
        self._lock = RLock()
        self._born = os.getpid()
        self._named = run is not None
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
        self._check_open()
        number = self.sequence + 1
        envelope: dict[str, Any] = {
            "specversion": "1.0",
            "id": attributes.pop("id", f"{self.process}:{self.domain}:{number}"),
            "source": self.source,
            "type": attributes.pop("type", TYPE),
            **attributes,
            **self._about(),
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

    def _about(self) -> dict[str, Any]:
        """The attributes that all envelopes of this stamper have."""
        process = {PROCESS: self.process} if self.process != self.source else {}
        return {VERSION_NAME: ENVELOPE_VERSION, **process, DOMAIN: self.domain}

    def _check_open(self) -> None:
        """BadInput if this stamper may not be used here, or not any longer."""
        if self._journal is not None:
            self._journal.check_open()
        elif os.getpid() != self._born:
            raise BadInput(
                f"the stamper of {quote(self.source)} was made before the process forked, and is the "
                "parent's; make another one here"
            )

    def sent(self, envelope: Mapping[str, Any]) -> None:
        """The broker has this message: no need to keep it for a restart."""
        _check_envelope(envelope)
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
        _check_envelope(envelope)
        process, domain = process_of(envelope), envelope.get(DOMAIN, self.domain)
        if domain != self.domain:
            raise BadStamp(
                f"a message of domain {quote(domain)} at a stamper of domain {quote(self.domain)}: "
                "dependencies stay inside a domain, so give what belongs together one domain"
            )
        when, tick = time_of(envelope), tick_of(envelope)
        beats = envelope.get("type") == HEARTBEAT
        number, deps = (0, {}) if beats else (sequence_of(envelope), deps_of(envelope))
        if deps.get(process, 0) >= number and not beats:
            raise BadStamp(f"message {number} of {quote(process)} depends on itself or on a later one")
        with self._lock:
            self._check_open()
            before = self.clock.largest if self.clock is not None else 0
            if self.clock is not None and when is not None:
                self.clock.heard(when, tick=tick, source=process)
            if beats or process == self.process or number <= self._seen.get(process, 0):
                if self.clock is not None and self.clock.largest > before:
                    self._write({"rc": self.clock.largest})
                    self._tidy()
                return
            line: dict[str, Any] = {"saw": [process, number, deps]}
            if self.clock is not None:
                line["rc"] = self.clock.largest
            self._write(line)
            self._learn(process, number, deps)
            self._tidy()

    def _learn(self, process: str, number: int, deps: Mapping[str, int]) -> None:
        for name, least in deps.items():
            if self._direct.get(name, least + 1) <= least:
                del self._direct[name]
        self._seen[process] = self._direct[process] = number

    def heartbeat(self) -> dict[str, Any]:
        """An envelope without a message, which tells mergers how far this source's clock is."""
        if self.clock is None:
            raise BadInput("only a stamper with a clock has a heartbeat")
        with self._lock:
            self._check_open()
            when = self.clock.event()
            self._write({"rc": when.rc})
            self._tidy()
        return {
            "specversion": "1.0",
            "id": f"{self.process}:{self.domain}:beat:{when.rc}",
            "source": self.source,
            "type": HEARTBEAT,
            **self._about(),
            "causaltime": str(when),
        }

    # Saving and restoring.

    def save(self) -> str:
        """The whole state as a string, with the identity. Without a `file`, save it after each `stamp`,
        before the message leaves, or a number is used twice."""
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
            "process": self.process,
            "domain": self.domain,
            "sequence": self.sequence,
            "seen": self._seen,
            "direct": self._direct,
            "rc": self._rc if self.clock is None else self.clock.largest,
        }

    def _load(self, state: Mapping[str, Any]) -> None:
        if (state["source"], state["domain"]) != (self.source, self.domain):
            raise BadInput(
                f"this is the file of {quote(state['source'])} in domain {quote(state['domain'])}, not of "
                f"{quote(self.source)} in {quote(self.domain)}"
            )
        if self._named and state["process"] != self.process:
            raise BadInput(
                f"this is the file of {quote(state['process'])}, not of {quote(self.process)}: give each run "
                "a file of its own, or leave `run` out"
            )
        self.process = state["process"]
        self.sequence = state["sequence"]
        self._seen, self._direct = dict(state["seen"]), dict(state["direct"])
        self._not_before(state)

    def _not_before(self, line: Mapping[str, Any]) -> None:
        """The time that a line of the file knows of."""
        self._known_time(line.get("rc"))

    def _known_time(self, rc: int | None) -> None:
        """Kept even without a clock: a later stamper of this file may have one."""
        if rc is not None:
            self._rc = max(rc, self._rc or 0)
            if self.clock is not None:
                self.clock.not_before(rc)

    def _replay(self, line: Mapping[str, Any]) -> None:
        if "version" in line:
            self._load(line)
            return
        if "stamped" in line:
            envelope = line["stamped"]
            number = sequence_of(envelope)
            self._unsent[number] = envelope
            if number > self.sequence:  # else it stands before, kept because it was not sent
                self.sequence, self._direct = number, {}
                when = time_of(envelope)
                self._known_time(when.rc if when is not None else None)
        elif "sent" in line:
            self._unsent.pop(line["sent"], None)
        elif "saw" in line:
            self._learn(*line["saw"])
        self._not_before(line)

    def _write(self, line: Mapping[str, Any]) -> None:
        if self._journal is not None:
            self._journal.append(line)

    def _tidy(self) -> None:
        """Write the file anew when it is long; only when everything in it is known here."""
        if self._journal is None:
            return
        if self._journal.lines > JOURNAL_LINES + 2 * len(self._unsent):
            self._journal.begin(self._state(), [{"stamped": each} for each in self._unsent.values()])


def _check_envelope(envelope: object) -> None:
    if not isinstance(envelope, Mapping):
        raise BadStamp(f"an envelope must be a map of attributes, not {quote(envelope)}")


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

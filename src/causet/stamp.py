"""Stamping at the source: the envelope of a message, and who knows what to write on it.

The envelope is a CloudEvent. A message goes to one or more groups, and in each of them its process numbers
its messages 1, 2, 3, … (`causalnumbers`). It says what of all groups is in its past (`causaldeps`), as short
as possible: the rule stands in `causet.frontier`. One stamper serves all groups that its process writes to
and reads.

    >>> shop, bank = Stamper("shop", "orders", run="1"), Stamper("bank", "payments", run="1")
    >>> order = shop.stamp("Two cups.")
    >>> bank.saw(order)
    >>> payment = bank.stamp("Paid.", to=["payments", "audit"])
    >>> payment["source"], payment["causalprocess"], payment["causalgroups"]
    ('bank', 'bank~1', '["payments","audit"]')
    >>> payment["causalnumbers"], payment["causaldeps"]
    ('{"audit":1,"payments":1}', '{"orders":{"shop~1":1}}')

A process that lost its memory is a new process: its numbers begin at 1 again, under an identity of its own.

    >>> Stamper("shop").process == Stamper("shop").process
    False

Standard library only: a producer needs nothing but this package's pure part.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Mapping
from pathlib import Path
from threading import RLock
from typing import Any

from causet.envelope import (
    ALL,
    BYPASS,
    CUT,
    DEPS,
    DOMAIN,
    GROUPS,
    HEARTBEAT,
    MOST_DEPS,
    MOST_SEQUENCE,
    NUMBERS,
    PRIORITY,
    PROCESS,
    SCOPE,
    TYPE,
    VERSION_NAME,
    Cut,
    bypasses,
    canonical,
    channels_of,
    cut_of,
    deps_of,
    from_binary,
    frontier_of,
    numbers_of,
    priority_of,
    process_of,
    read_cut,
    scope_of,
    sequence_of,
    tick_of,
    time_of,
    to_binary,
)
from causet.envelope import VERSION as ENVELOPE_VERSION
from causet.errors import BadInput, BadStamp, quote
from causet.frontier import PACKED_FRONTIER, PACKED_VERSION, channel, pack_deps, pack_frontier
from causet.identity import identity, new_run
from causet.model import is_text
from causet.rcclock import ClockJumped, RcClock, RcTime
from causet.stamping.given import Address, Place, check_data, checked_attributes, groups_of, place_of
from causet.stamping.journal import Journal
from causet.stamping.knowledge import Knowledge, Line, key_of, saved_state

__all__ = [
    "BYPASS",
    "DOMAIN",
    "HEARTBEAT",
    "MOST_DEPS",
    "MOST_SEQUENCE",
    "PACKED_FRONTIER",
    "PACKED_VERSION",
    "PRIORITY",
    "SCOPE",
    "TYPE",
    "ClockJumped",
    "RcClock",
    "RcTime",
    "Stamper",
    "bypasses",
    "canonical",
    "channels_of",
    "cut_of",
    "deps_of",
    "from_binary",
    "frontier_of",
    "numbers_of",
    "pack_deps",
    "pack_frontier",
    "priority_of",
    "process_of",
    "scope_of",
    "sequence_of",
    "time_of",
    "to_binary",
]

JOURNAL_LINES = 10_000
"""So many lines are written to a stamper's file before it is written anew."""


class Stamper:
    """Writes envelopes for one process, whatever groups it writes to and reads.

    `to` is where messages go that name no other groups: a group, or a list of groups.

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
        to: Address = ALL,
        *,
        clock: RcClock | None = None,
        file: str | Path | None = None,
        durable: bool = False,
        run: str | None = None,
    ) -> None:
        if not is_text(source):
            raise BadInput(
                "the source of a stamper must be text that is not empty and has no half of a surrogate pair, "
                f"not {quote(source)}"
            )
        groups = groups_of(to)
        process = identity(source, new_run() if run is None else run)
        self.source = source
        if clock is not None and not isinstance(clock, RcClock):
            raise BadInput(f"the clock of a stamper must be an RcClock, not {quote(clock)}: RcClock(50), say")
        self.clock = clock
        self._knowledge = Knowledge(source, process, groups)
        self._lock = RLock()
        self._born = os.getpid()
        self._named = run is not None
        self._journal: Journal | None = None
        if file is not None:
            self._knowledge.keeps = True
            self._journal = Journal(Path(file), durable)
            try:
                self._journal.read(self._knowledge.read)
                self._check_whose(process)
                self._known_time()
                self._journal.begin(self._state(), self._knowledge.kept())
            except BaseException:
                self._journal.close()
                raise

    @property
    def process(self) -> str:
        """the identity under which messages are numbered"""
        return self._knowledge.process

    @property
    def to(self) -> tuple[str, ...]:
        """where messages go that name no other groups"""
        return self._knowledge.to

    @property
    def numbers(self) -> dict[str, int]:
        """group → the number of the last message there, without a scope; or channel, with a priority"""
        return self._knowledge.numbers

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
        return list(self._knowledge.unsent.values())

    def stamp(
        self,
        data: Any = None,
        to: Address | None = None,
        *,
        priority: int = 0,
        scope: str | None = None,
        bypass: bool = False,
        **attributes: str,
    ) -> dict[str, Any]:
        """The envelope of the next message: `data` is anything that JSON can hold, or bytes; `to` is the
        group or the list of groups that it goes to, if not those of the stamper; `attributes` are further
        attributes of the CloudEvent, such as `type` or `subject`. A message waits for what has its own
        `priority` or a higher one and its own `scope`; with `bypass` for nothing, and nothing for it."""
        check_data(data)
        given = checked_attributes(attributes)
        place = place_of(priority, scope, bypass)
        groups = self.to if to is None else groups_of(to)
        with self._lock:
            return self._stamped(data, groups, place, given)

    def _stamped(
        self, data: Any, groups: tuple[str, ...], place: Place, attributes: dict[str, str]
    ) -> dict[str, Any]:
        ordered = {} if place.bypass else self._ordered(groups, place)
        self._check_open()
        envelope: dict[str, Any] = {
            "specversion": "1.0",
            "id": attributes.pop("id", "") or self._id(groups[0], place, ordered),
            "source": self.source,
            "type": attributes.pop("type", TYPE),
            **attributes,
            **self._about(),
            **place.attributes,
            GROUPS: canonical(groups),
            **ordered,
        }
        if self.clock is not None and not place.bypass:
            envelope["causaltime"] = str(self.clock.event())
        if isinstance(data, bytes | bytearray):
            envelope["data_base64"] = base64.b64encode(data).decode()
        elif data is not None:
            envelope["data"] = data
        if self._journal is not None:
            self._journal.append({"stamped": {name: envelope[name] for name in envelope if name != DEPS}})
        self._knowledge.stamped(envelope)
        self._tidy()
        return envelope

    def _ordered(self, groups: tuple[str, ...], place: Place) -> dict[str, Any]:
        """The attributes that give the next message its place in the order."""
        known = self._knowledge.known_in(place.scope)
        numbered, past = known.next(channel(group, place.priority) for group in groups)
        numbers = dict(zip(groups, numbered.values(), strict=True))
        self._check_numbers(numbers, past)
        found: dict[str, Any] = {NUMBERS: canonical(numbers), DEPS: canonical(past)}
        if len(groups) == 1:
            found["sequence"] = f"{numbers[groups[0]]:020}"
        if self._knowledge.cut and place.scope is None:
            found[CUT] = self._knowledge.cut
        return found

    def _id(self, group: str, place: Place, ordered: Mapping[str, Any]) -> str:
        """An id that no other message of this process has."""
        if place.bypass:
            return f"{self.process}:bypass:{new_run()}"
        number = json.loads(ordered[NUMBERS])[group]
        where = json.dumps([place.scope, group, place.priority, number], ensure_ascii=False)
        return f"{self.process}:{f'{group}:{number}' if place == Place() else where}"

    def _check_numbers(self, numbers: Mapping[str, int], past: Mapping[str, Mapping[str, int]]) -> None:
        for group, number in numbers.items():
            if number > MOST_SEQUENCE:
                raise BadInput(
                    f"{self.source} has sent {MOST_SEQUENCE} messages to {quote(group)}, which is the most "
                    "that can be numbered"
                )
        if len(numbers) + sum(map(len, past.values())) > MOST_DEPS:
            raise BadInput(
                f"the next message of {quote(self.source)} would name more than {MOST_DEPS:,} messages, "
                "which is the most: tell its stamper of cuts, so that it can forget what is stable"
            )

    def _about(self) -> dict[str, Any]:
        """The attributes that all envelopes of this stamper have."""
        process = {PROCESS: self.process} if self.process != self.source else {}
        return {VERSION_NAME: ENVELOPE_VERSION, **process}

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
        """The broker has this message, in all of its groups: no need to keep it for a restart."""
        _check_envelope(envelope)
        process, key = process_of(envelope), key_of(envelope)
        if process != self.process:
            raise BadInput(f"a message of {quote(process)} is not one that {quote(self.process)} has sent")
        with self._lock:
            if key in self._knowledge.unsent:
                self._happened({"sent": list(key)})

    def saw(self, envelope: Mapping[str, Any]) -> None:
        """A message was delivered here, of whatever group: what is stamped from now on comes after it.

        Messages must be delivered in causal order: then the frontier of a group has exactly the messages that
        no other delivered one covers. BadStamp if the envelope is damaged; nothing is changed then. Of a
        message of one's own, and of one that bypasses the order, nothing is new.
        """
        _check_envelope(envelope)
        process, when = process_of(envelope), time_of(envelope)
        tick, cut = tick_of(envelope), cut_of(envelope)
        stamped = None if envelope.get("type") == HEARTBEAT else frontier_of(envelope)
        scope = scope_of(envelope)
        if bypasses(envelope):
            return
        with self._lock:
            self._check_open()
            line: dict[str, Any] = {}
            before = self.clock.largest if self.clock is not None else 0
            if self.clock is not None and when is not None:
                self.clock.heard(when, tick=tick, source=process)
            if self.clock is not None and self.clock.largest > before:
                line["rc"] = self.clock.largest
            if stamped is not None and process != self.process:
                news = self._knowledge.known_in(scope).news(process, *stamped)
                if any(news):
                    line["saw"] = [process, *news, *([] if scope is None else [scope])]
                if cut > self._knowledge.cut:
                    line["cut"] = cut
            if line:
                self._happened(line)

    def stable(self, cut: Cut | Mapping[str, Any] | str) -> None:
        """Every known reader has delivered these messages: stamps need not name them any more.

        A cut is that of a place (`causet.Cuts(place).newest()`), or `{"number": 3, "groups": {"orders":
        {"shop~1": 7}}}`, or that as JSON: up to which number of each process, in each group. Each cut
        contains those before it. What is stamped from now on carries its number (`causalcut`), and a reader
        waits for all of that cut in the groups that it reads: one that was not known may not have it yet.
        An older cut changes nothing. BadInput if it is no cut.
        """
        number, groups = read_cut(cut)
        with self._lock:
            self._check_open()
            if number > self._knowledge.used:
                news = self._knowledge.known.news_of(groups)
                self._happened({"stable": {"number": number, "groups": news}})

    def heartbeat(self) -> dict[str, Any]:
        """An envelope without a message, which tells mergers how far this source's clock is."""
        if self.clock is None:
            raise BadInput("only a stamper with a clock has a heartbeat")
        with self._lock:
            self._check_open()
            when = self.clock.event()
            self._happened({"rc": when.rc})
        return {
            "specversion": "1.0",
            "id": f"{self.process}:beat:{when.rc}",
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
            self._check_open()
            return json.dumps({**self._state(), "unsent": self.unsent}, ensure_ascii=False)

    @classmethod
    def restore(cls, saved: str, *, clock: RcClock | None = None) -> Stamper:
        """The stamper that was saved."""
        state = saved_state(saved, "a saved stamper")
        stamper = cls(state["source"], state["to"], clock=clock)
        knowledge = stamper._knowledge
        knowledge.load(state)
        try:
            for envelope in state.get("unsent", ()):
                knowledge.apply({"stamped": envelope})
        except BadStamp as error:
            raise BadInput(f"a saved stamper: {error}") from None
        stamper._known_time()
        return stamper

    def _state(self) -> dict[str, Any]:
        if self.clock is not None:
            self._knowledge.knows_time(self.clock.largest)
        return self._knowledge.state()

    def _known_time(self) -> None:
        if self.clock is not None and self._knowledge.rc is not None:
            self.clock.not_before(self._knowledge.rc)

    def _check_whose(self, process: str) -> None:
        """BadInput if the file is another one's."""
        knowledge = self._knowledge
        if knowledge.source != self.source:
            raise BadInput(f"this is the file of {quote(knowledge.source)}, not of {quote(self.source)}")
        if self._named and knowledge.process != process:
            raise BadInput(
                f"this is the file of {quote(knowledge.process)}, not of {quote(process)}: give each run a "
                "file of its own, or leave `run` out"
            )

    def _happened(self, line: Line) -> None:
        """It is written, so it counts."""
        if self._journal is not None:
            self._journal.append(line)
        self._knowledge.apply(line)
        self._tidy()

    def _tidy(self) -> None:
        """Write the file anew when it is long; only when everything in it is known here."""
        if self._journal is None:
            return
        if self._journal.lines > JOURNAL_LINES + 2 * len(self._knowledge.unsent):
            self._journal.begin(self._state(), self._knowledge.kept())


def _check_envelope(envelope: object) -> None:
    if not isinstance(envelope, Mapping):
        raise BadStamp(f"an envelope must be a map of attributes, not {quote(envelope)}")

"""The oracle: did every process deliver in causal order?

It follows the definition word by word and shares no code with what it checks. It is slow on purpose: a
reader should see that it is right without trusting any cleverness.

    m directly precedes n   when n's sender sent or delivered m before it sent n
    m precedes n            when a chain of direct precedence leads from m to n

"Before" is process order, that is, the order of seq. Receptions teach the application nothing, so they
take no part. Neither do control messages, whatever happens to them.

The sender's own copy is delivered at the send, and no event is expected. Where the sender delivers its own
message by an event, that is when its copy is delivered, and the event is judged like any other. A send whose
`to` names the sender makes it a target like any other: that copy travels, and is expected. Only deliver
events are judged, and only they count for a common order.

Messages are numbered in the order of their ids and sets of messages are integers used as bit masks, so
that the lowest bit of a set is its smallest id: every tie is broken by id without further ado.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from causet.check.agreement import Disagreement, disagreements
from causet.errors import BadInput, quote
from causet.model import Event

Pairs = tuple[tuple[str, str], ...]
"""Pairs of (process, message)."""


@dataclass(frozen=True, slots=True)
class Violation:
    """`delivered` came at `process` although `before`, which precedes it and is addressed to that process,
    came later or never. `because` is a shortest chain of direct precedence, both ends included."""

    process: str
    delivered: str
    before: str
    because: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the oracle found. Every tuple is in an order that depends on the execution alone."""

    events: int
    messages: int
    """Application messages sent."""
    deliveries: int
    """Deliver events of application messages."""
    violations: tuple[Violation, ...]
    """At most one per (process, delivered): by process, then in the order of delivery."""
    duplicates: Pairs
    """Delivered more than once."""
    strangers: Pairs
    """Delivered where not addressed."""
    unsent: Pairs
    """Delivered, but never sent."""
    undelivered: Pairs
    """Addressed, not lost, and never delivered."""
    late: Pairs
    """Delivered later than possible; a fault only of a protocol that promises to be as early as possible."""
    disagreements: tuple[Disagreement, ...]
    """Cycles in the union of all delivery orders, at most 100; a fault only of a protocol that promises one
    order."""
    gaps: tuple[tuple[str, int], ...]
    """(process, first missing seq), one for each hole."""
    unknown_parents: tuple[tuple[str, str], ...]
    """(event, parent that no event of the trace has as its id)."""

    @property
    def ok(self) -> bool:
        """Nothing was found that no protocol may do."""
        return not (self.violations or self.duplicates or self.strangers)

    @property
    def status(self) -> str:
        """`invalid`: something was found. `unknown`: nothing was found, but the log has faults that could
        hide something. `vacuous`: there was no delivery to judge. Otherwise `valid`."""
        if not self.ok:
            return "invalid"
        if self.unsent or self.gaps or self.unknown_parents:
            return "unknown"
        return "valid" if self.deliveries else "vacuous"


def judge(
    events: Sequence[Event],
    *,
    lost: Collection[tuple[str, str]] = frozenset(),
    loss_counts: bool = False,
    receptions_teach: bool = False,
    own: Collection[tuple[str, str]] = frozenset(),
    unmerged: Collection[tuple[str, str]] = frozenset(),
) -> Verdict:
    """Judge an execution; its events may stand in any order.

    `receptions_teach` is for protocols that promise more than causal order of deliveries: then a process
    knows a message from its reception on, and what it sends afterwards comes after it.

    `lost` holds the pairs (process, message) that the network lost on the way to that process. They are
    excused, unless the protocol promises against loss: then `loss_counts`, and `lost` is ignored. A lost
    message that was delivered all the same is judged like any other.

    `own` holds the pairs (process, message) of own copies that their senders have not delivered yet: a trace
    does not show them before they are.

    `unmerged` holds the pairs (process, message) of what a process sent or delivered, and did not merge: what
    it sends afterwards does not come after that.

    >>> sent = Event("p1", 1, "send", message="a", to=("p2",))
    >>> judge([sent, Event("p2", 1, "deliver", message="a")]).status
    'valid'
    """
    run = _Execution(events, receptions_teach, own, unmerged)
    excused = frozenset() if loss_counts else frozenset(lost)
    pasts = run.pasts()
    violations: list[Violation] = []
    undelivered: list[tuple[str, str]] = []
    late: list[tuple[str, str]] = []
    for process in sorted(run.histories.keys() | run.addressed.keys()):
        violations += _violations(run, pasts, process, excused)
        late += _late(run, pasts, process)
        never = run.addressed.get(process, 0) & ~run.delivered(process)
        undelivered += [(process, run.ids[m]) for m in _bits(never) if (process, run.ids[m]) not in excused]
    orders = {process: run.deliveries(process) for process in sorted(run.histories)}
    times = {process: Counter(order) for process, order in orders.items()}
    once = [(process, id) for process in times for id in sorted(times[process])]
    return Verdict(
        events=len(events),
        messages=len(run.ids),
        deliveries=sum(map(len, orders.values())),
        violations=tuple(violations),
        duplicates=tuple((process, id) for process, id in once if times[process][id] > 1),
        strangers=tuple(
            (process, id)
            for process, id in once
            if id in run.index and not run.addressed.get(process, 0) >> run.index[id] & 1
        ),
        unsent=tuple((process, id) for process, id in once if id not in run.index),
        undelivered=tuple(undelivered),
        late=tuple(late),
        disagreements=disagreements(
            {process: [id for id in order if id in run.index] for process, order in orders.items()}
        ),
        gaps=_gaps(run.histories),
        unknown_parents=_unknown_parents(run.histories),
    )


def causal_pasts(events: Sequence[Event]) -> dict[str, frozenset[str]]:
    """For each application message sent, the messages that precede it.

    >>> causal_pasts([
    ...     Event("p1", 1, "send", message="a", to=("p2",)),
    ...     Event("p2", 1, "deliver", message="a"),
    ...     Event("p2", 2, "send", message="b", to=("p3",)),
    ... ])["b"]
    frozenset({'a'})
    """
    run = _Execution(events)
    pasts = run.pasts()
    return {id: frozenset(run.ids[m] for m in _bits(past)) for id, past in zip(run.ids, pasts, strict=True)}


class _Execution:
    """The events as the definition needs them: who did what in which order, and direct precedence."""

    def __init__(
        self,
        events: Sequence[Event],
        receptions_teach: bool = False,
        own: Collection[tuple[str, str]] = frozenset(),
        unmerged: Collection[tuple[str, str]] = frozenset(),
    ) -> None:
        self.unmerged = frozenset(unmerged)
        self.teaching = ("send", "deliver", "receive") if receptions_teach else ("send", "deliver")
        self.histories = _histories(events)
        self.control = {event.message for event in events if event.control and event.message is not None}
        sends = self._sends()
        self.ids = sorted(sends)
        self.index = {id: number for number, id in enumerate(self.ids)}
        self.addressed: dict[str, int] = {}
        """For each process, the messages addressed to it, and its own that it delivers by an event."""
        for id, send in sends.items():
            if send.to is None:
                raise BadInput(f"{_name(send)} sends {quote(id)} without saying to whom; give it `to`")
            for target in send.to:
                self.addressed[target] = self.addressed.get(target, 0) | 1 << self.index[id]
        for process in self.histories:
            for id in self.deliveries(process):
                if id in sends and sends[id].process == process:
                    self.addressed[process] = self.addressed.get(process, 0) | 1 << self.index[id]
        for process, id in own:
            self.addressed[process] = self.addressed.get(process, 0) | self.bit(id)
        self.direct = self._direct()
        """For each message, those that directly precede it."""

    def traffic(self, process: str) -> Iterator[tuple[str, str]]:
        """(kind, message) of each send, receive and deliver of an application message, in process order."""
        for event in self.histories.get(process, ()):
            if event.kind != "local" and event.message not in self.control:
                if event.message is None:
                    raise BadInput(f"{_name(event)} is a {event.kind} without a message; give it `message`")
                yield event.kind, event.message

    def deliveries(self, process: str) -> list[str]:
        """What the process delivered, in order, repetitions and unknown messages included."""
        return [id for kind, id in self.traffic(process) if kind == "deliver"]

    def delivered(self, process: str) -> int:
        """The known messages that the process delivered."""
        found = 0
        for id in self.deliveries(process):
            found |= self.bit(id)
        return found

    def bit(self, id: str) -> int:
        """The set of this one message; the empty set if it was never sent."""
        return 1 << self.index[id] if id in self.index else 0

    def pasts(self) -> list[int]:
        """For each message, all that precede it."""
        return [self._past(message) for message in range(len(self.ids))]

    def _past(self, message: int) -> int:
        found, todo = 0, self.direct[message]
        while todo:
            lowest = todo & -todo
            found |= lowest
            todo = (todo | self.direct[lowest.bit_length() - 1]) & ~found
        # Only a cyclic trace makes a message its own cause, and even then it need not wait for itself.
        return found & ~(1 << message)

    def _sends(self) -> dict[str, Event]:
        sends: dict[str, Event] = {}
        for history in self.histories.values():
            for event in history:
                id = event.message
                if event.kind != "send" or id in self.control:
                    continue
                if id is None:
                    raise BadInput(f"{_name(event)} is a send without a message; give it `message`")
                if id in sends:
                    raise BadInput(
                        f"message {quote(id)} is sent twice, by {_name(sends[id])} and {_name(event)}"
                    )
                sends[id] = event
        return sends

    def _direct(self) -> list[int]:
        direct = [0] * len(self.ids)
        for process in self.histories:
            known = 0
            for kind, id in self.traffic(process):
                if kind == "send":
                    direct[self.index[id]] = known
                if kind in self.teaching and (process, id) not in self.unmerged:
                    known |= self.bit(id)
        return direct


def _violations(
    run: _Execution, pasts: list[int], process: str, excused: frozenset[tuple[str, str]]
) -> Iterator[Violation]:
    never = run.addressed.get(process, 0) & ~run.delivered(process)
    forgiven = 0
    for message in _bits(never):
        if (process, run.ids[message]) in excused:
            forgiven |= 1 << message
    expected = run.addressed.get(process, 0) & ~forgiven
    done = 0
    for id in run.deliveries(process):
        delivered = run.bit(id)
        # A repetition is reported as such; whether a message came too early, its first delivery decides.
        if delivered and not delivered & done:
            missing = pasts[run.index[id]] & expected & ~done
            if missing:
                chain = _shortest_chain(run.direct, missing, run.index[id])
                because = tuple(run.ids[message] for message in chain)
                yield Violation(process, delivered=id, before=because[0], because=because)
        done |= delivered


def _shortest_chain(direct: list[int], sources: int, end: int) -> list[int]:
    """A shortest chain of direct precedence to `end` from any of `sources`, at least one of which precedes
    it. Of several the one whose ids, read from the source on, are the smallest."""
    layers = [1 << end]  # layers[d]: from here it takes d steps to the end, and not fewer
    seen = layers[0]
    while not layers[-1] & sources:
        causes = 0
        for message in _bits(layers[-1]):
            causes |= direct[message]
        layers.append(causes & ~seen)
        seen |= causes
    chain = [next(_bits(layers.pop() & sources))]
    while layers:
        cause = 1 << chain[-1]
        chain.append(next(message for message in _bits(layers.pop()) if direct[message] & cause))
    return chain


def _late(run: _Execution, pasts: list[int], process: str) -> Iterator[tuple[str, str]]:
    """Deliveries that could have come earlier.

    A message is free once it and all that precede it and are addressed here have been received. From then on
    only deliver events may stand before its own, so it is late when it was free already before the last
    event of another kind. Where a reception is not in the log nothing can be said.
    """
    received = 0
    received_before_last_other = 0
    done = 0
    for event in run.histories.get(process, ()):
        if event.kind != "deliver":
            received_before_last_other = received
        id = event.message
        if id is None or id in run.control or id not in run.index:
            continue
        if event.kind in ("send", "receive"):  # what it sends itself, a process has
            received |= run.bit(id)
        elif event.kind == "deliver" and not run.bit(id) & done:
            needed = run.bit(id) | pasts[run.index[id]] & run.addressed.get(process, 0)
            if not needed & ~received_before_last_other:
                yield process, id
            done |= run.bit(id)


def _histories(events: Sequence[Event]) -> dict[str, list[Event]]:
    histories: dict[str, list[Event]] = {}
    for event in events:
        histories.setdefault(event.process, []).append(event)
    for process, history in histories.items():
        history.sort(key=lambda event: event.seq)
        for one, next_one in pairwise(history):
            if one.seq == next_one.seq:
                raise BadInput(f"process {quote(process)} has two events with seq {one.seq}")
    return histories


def _gaps(histories: dict[str, list[Event]]) -> tuple[tuple[str, int], ...]:
    gaps = []
    for process, history in sorted(histories.items()):
        expected = 1
        for event in history:
            if event.seq > expected:
                gaps.append((process, expected))
            expected = event.seq + 1
    return tuple(gaps)


def _unknown_parents(histories: dict[str, list[Event]]) -> tuple[tuple[str, str], ...]:
    known = {event.id for history in histories.values() for event in history}
    return tuple(
        (event.id, parent)
        for _, history in sorted(histories.items())
        for event in history
        for parent in event.parents
        if parent not in known
    )


def _bits(messages: int) -> Iterator[int]:
    """The members of a set, smallest first."""
    while messages:
        lowest = messages & -messages
        yield lowest.bit_length() - 1
        messages ^= lowest


def _name(event: Event) -> str:
    return f"event {quote(event.id)} of process {quote(event.process)}"

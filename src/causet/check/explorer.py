"""The explorer: every interleaving of a small system, judged against the definition of causal order.

What is tried. Any process may send any message it can, up to a number of messages in all; the copies under
way may be received in any order; protocols with null messages may send a bounded number of them at any
time. Clocks tick within ε of each other up to a horizon; a copy that does not arrive within δ of the clocks
is lost. Under a protocol that bears loss every message goes to everybody: a process that is no target looks
like one whose copy was lost.

What is judged, by a record of precedence that the explorer keeps itself and no protocol sees:
  - a delivery before a cause that is addressed to the same process, a delivery twice;
  - for protocols that promise it, a message that is held although its causes are all delivered;
  - what a protocol promises of its own state (`Protocol.broken`);
  - a message that is held for ever: all has arrived, and closing null rounds or ticks did not free it.

The reduction. A process's step depends on what happened at that process alone, and only a step that sends
something (or ticks) is noticed by others. So a reception can be moved later, past steps of other processes,
until just before the next such step of its own process, and nobody sees a difference: same messages, same
stamps, same deliveries in the same order at each process. Every execution equals one in which each process
receives in one go right before it sends, and receives the rest at the end. The explorer tries exactly
those: a state is what the processes have become after their last send, and what is under way. The rest is
received at the end by each process on its own, for then the processes do not influence each other. Whatever
can go wrong in some interleaving goes wrong in one of these, in as many steps. And where receiving something
and then sending gives the same process and the same packets as sending first (nothing was delivered, say),
only the latter is tried: the explorer compares the two.

A tick is such a private step too, unless another clock cannot go on before it, for it would be ahead by
more than ε.

On top of that, processes that have done nothing and were sent nothing are interchangeable, where neither
the protocol nor the topology tells processes apart (`symmetric`).

For protocols that assume FIFO links, the network keeps links in order: the receiver would restore it, and
a packet that waits for its turn on a link changes nothing else.

Processes are kept as snapshots with packets in wire form, and each step starts from a restored process. So
the codecs and the saving of state are exercised by every step too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from heapq import heappop, heappush
from itertools import product
from typing import Any, NamedTuple

from causet.model import Processes, System, members, only
from causet.protocols import Options, Outcome, Process, Protocol
from causet.protocols.bounded import Bounded
from causet.simulate.schedule import Schedule, Step, letters

Local = int
"""A process in some state: an index into the explorer's table of them."""
Copy = int
"""A packet: an index into the explorer's table of them."""
Move = tuple[Any, ...]
"""("receive", copy), ("send", targets, group), ("null",) or ("tick", now, lost messages), at some process."""
Path = tuple[Move, ...]

CLOSING_ROUNDS = 2
"""Null rounds after all has arrived, before a held message counts as stuck."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that must not be: `unsafe`, `twice`, `late`, `broken` or `stuck`."""

    kind: str
    text: str


class _Message(NamedTuple):
    """An application message as the definition sees it."""

    sender: int
    number: int
    targets: Processes
    past: frozenset[int]


class _Packet(NamedTuple):
    saved: tuple[Any, ...]
    message: int
    """-1 for a control message"""
    sent_at: int
    """the sender's clock"""


class _State(NamedTuple):
    """A process as the definition sees it, beside its snapshot."""

    snapshot: tuple[Any, ...]
    known: frozenset[int]
    """messages sent or delivered here"""
    delivered: frozenset[int]
    held: frozenset[int]
    sends: int
    nulls: int
    clock: int
    lost: frozenset[int]
    """messages whose copy was lost here"""


class _Result(NamedTuple):
    local: Local
    emitted: tuple[Copy, ...]
    findings: tuple[Finding, ...]
    """what is wrong, and ends the path"""
    late: Finding | None
    """what could be better, and does not"""


class _Received(NamedTuple):
    """A process after receiving some of what is under way to it, in some order."""

    local: Local
    left: frozenset[Copy]
    path: Path
    emitted: tuple[Copy, ...]
    findings: tuple[Finding, ...]
    late: Finding | None
    lasts: list[tuple[Local, Copy]]
    """which reception may have come last, and the process before it: several orders can lead here"""


class _Global(NamedTuple):
    locals: tuple[Local, ...]
    under_way: tuple[frozenset[Copy], ...]
    """per target"""


@dataclass(frozen=True, slots=True)
class Scope:
    """What to explore."""

    kind: type[Protocol]
    system: System
    options: Options
    messages: int = 4
    nulls: int = 2
    """Null messages at any time (one process, all its groups), for protocols that have them."""
    horizon: int = 2
    """The last clock value before the closing ticks, for protocols that have a clock."""
    own_copies: bool = False
    """Whether a message may name its own sender as a target."""
    most_states: int = 5_000_000
    first_only: bool = False
    """Stop at the first finding, which need not be the shortest then."""
    symmetric: bool | None = None
    """Whether processes are interchangeable; by default where nothing tells them apart."""

    def choices(self, sender: int) -> list[tuple[Processes, int]]:
        """(targets, group) of every message that the sender could send."""
        system, me = self.system, only(sender)
        if self.kind.grouped:
            return [(group.members & ~me, x) for x, group in enumerate(system.groups) if group.members & me]
        if self.kind.broadcast or self.kind.promises(self.options).loss:
            return [(system.everyone & ~me, -1)]
        reach = system.everyone
        if system.links is not None and "H7" not in self.options.as_printed:
            reach = system.links[sender] | me
        if not self.own_copies:
            reach &= ~me
        return [(t, -1) for t in range(1, system.everyone + 1) if not t & ~reach and t != me]

    @property
    def interchangeable(self) -> bool:
        if self.symmetric is not None:
            return self.symmetric
        if self.system.links is not None or self.kind.promises(self.options).total:
            return False  # a graph tells processes apart, and a total order ranks them
        if self.kind is Bounded:
            return False  # of two columns that are equally full it takes the first
        if not self.kind.grouped:
            return True
        sizes = {g.members.bit_count() for g in self.system.groups}
        n, count = self.system.size, len(self.system.groups)
        return sizes == {n} or (sizes == {2} and count == n * (n - 1) // 2)


@dataclass(slots=True)
class Report:
    """What an exploration found."""

    states: int = 0
    steps: int = 0
    complete: bool = True
    findings: dict[str, int] = field(default_factory=dict)
    """How many of each kind."""
    shortest: Schedule | None = None
    finding: Finding | None = None
    """The finding that the shortest counter-example shows."""

    @property
    def violations(self) -> int:
        return sum(self.findings.values())


def explore(scope: Scope, progress: Callable[[int], None] | None = None) -> Report:
    """Try every interleaving within the scope."""
    return _Explorer(scope, progress).run()


class _Explorer:
    def __init__(self, scope: Scope, progress: Callable[[int], None] | None) -> None:
        self.scope = scope
        self.progress = progress
        self.report = Report()
        self.promises = scope.kind.promises(scope.options)
        self.system = scope.system
        self.messages: list[_Message] = []
        self._message_ids: dict[_Message, int] = {}
        self.packets: list[_Packet] = []
        self._packet_ids: dict[_Packet, int] = {}
        self.states: list[tuple[int, _State]] = []
        self._state_ids: dict[tuple[int, _State], int] = {}
        self._moves: dict[tuple[Local, Move], _Result] = {}
        self._receptions: dict[tuple[Local, frozenset[Copy], int], list[_Received]] = {}
        self._closed: dict[tuple[Local, ...], tuple[Finding, tuple[tuple[int, Move], ...]] | None] = {}
        self._came_from: dict[_Global, tuple[_Global, int, Path, Move] | None] = {}
        self._best = 1 << 60
        self._choices = [scope.choices(p) for p in range(self.system.size)]
        self._fresh = [Process(scope.kind, p, scope.system, scope.options) for p in range(scope.system.size)]

    # Tables.

    def _intern(self, table: list[Any], ids: dict[Any, int], value: Any) -> int:
        found = ids.get(value)
        if found is None:
            found = ids[value] = len(table)
            table.append(value)
        return found

    def _local(self, process: int, state: _State) -> Local:
        return self._intern(self.states, self._state_ids, (process, state))

    # One step of one process.

    def _process(self, local: Local) -> tuple[Process, _State]:
        me, state = self.states[local]
        return self._fresh[me].restored(state.snapshot), state

    def step(self, local: Local, move: Move) -> _Result:
        """What a move of a process leads to; each is computed once."""
        result = self._moves.get((local, move))
        if result is None:
            result = self._moves[local, move] = self._step(local, move)
        return result

    def _step(self, local: Local, move: Move) -> _Result:
        process, state = self._process(local)
        known, delivered, held = set(state.known), set(state.delivered), set(state.held)
        sends, nulls, clock, lost = state.sends, state.nulls, state.clock, state.lost
        new_message = -1
        names = {self.messages[m][:2]: m for m in state.held}
        outcome: Outcome
        match move:
            case ("send", targets, group):
                outcome = process.send(targets, group)
                sends += 1
                message = _Message(process.me, process.sent, targets, state.known)
                new_message = self._intern(self.messages, self._message_ids, message)
                known.add(new_message)
                travels = any(p.to >> process.me & 1 for p in outcome.packets if not p.control)
                if not travels:
                    delivered.add(new_message)
            case ("null",):
                outcome = process.null()
                nulls += 1
            case ("tick", now, gone):
                outcome = process.tick(now)
                clock = now
                lost |= gone
            case ("receive", copy):
                packet = self.packets[copy]
                if packet.message >= 0:
                    if packet.message not in state.delivered:
                        held.add(packet.message)
                    for m in (packet.message, *self.messages[packet.message].past):
                        names.setdefault(self.messages[m][:2], m)
                    if self.scope.kind.hears:
                        known |= {packet.message, *self.messages[packet.message].past}
                outcome = process.receive(process.load_packet(packet.saved))
        findings: list[Finding] = []
        for gone in outcome.delivered:
            m = names[gone.sender, gone.number]
            findings += self._judge_delivery(process.me, m, delivered | lost)
            delivered.add(m)
            known.add(m)
            known |= self.messages[m].past
            held.discard(m)
        late = self._judge_held(process.me, held, delivered) if self.promises.early else None
        broken = process.protocol.broken()
        if broken:
            findings.append(Finding("broken", f"{self.system.name(process.me)}: {broken}"))
        emitted = []
        for sent in outcome.packets:
            entry = _Packet(process.save_packet(sent), -1 if sent.control else new_message, clock)
            emitted.append(self._intern(self.packets, self._packet_ids, entry))
        after = _State(
            process.snapshot(),
            frozenset(known),
            frozenset(delivered),
            frozenset(held),
            sends,
            nulls,
            clock,
            lost,
        )
        return _Result(self._local(process.me, after), tuple(emitted), tuple(findings), late)

    def _name(self, message: int) -> str:
        sender, number, _, _ = self.messages[message]
        return f"{self.system.name(sender)}:{number}"

    def _judge_delivery(self, me: int, message: int, over: set[int]) -> Iterator[Finding]:
        name, who = self._name(message), self.system.name(me)
        if message in over:
            yield Finding("twice", f"{who} delivers {name} a second time")
        for cause in sorted(self.messages[message].past):
            if self.messages[cause].targets >> me & 1 and cause not in over:
                before = self._name(cause)
                yield Finding("unsafe", f"{who} delivers {name} before {before}, which precedes it")

    def _judge_held(self, me: int, held: set[int], delivered: set[int]) -> Finding | None:
        for message in sorted(held):
            causes = self.messages[message].past
            if all(c in delivered for c in causes if self.messages[c].targets >> me & 1):
                who, name = self.system.name(me), self._name(message)
                return Finding("late", f"{who} holds {name} although all its causes are delivered")
        return None

    # Receptions of one process in one go.

    def receptions(self, local: Local, under_way: frozenset[Copy], latest: int = 0) -> list[_Received]:
        """Every way to receive some of what is under way, and to tick up to `latest` in between.

        A reception that sends something ends its sequence.
        """
        found = self._receptions.get((local, under_way, latest))
        if found is not None:
            return found
        found = [_Received(local, under_way, (), (), (), None, [])]
        seen = {(local, under_way): found[0]}
        position = 0
        while position < len(found):
            now = found[position]
            position += 1
            if now.emitted or now.findings:
                continue
            for move, left in self._private_moves(now, latest):
                result = self.step(now.local, move)
                self.report.steps += 1
                path = (*now.path, move)
                if result.findings:
                    found.append(_Received(result.local, left, path, (), result.findings, None, []))
                elif result.emitted:
                    if not self._postponed(now, move, result):
                        found.append(_Received(result.local, left, path, result.emitted, (), result.late, []))
                else:
                    after = seen.get((result.local, left))
                    if after is None:
                        after = _Received(result.local, left, path, (), (), result.late, [])
                        seen[result.local, left] = after
                        found.append(after)
                    if move[0] == "receive":
                        after.lasts.append((now.local, move[1]))
        self._receptions[local, under_way, latest] = found
        return found

    def _private_moves(self, now: _Received, latest: int) -> Iterator[tuple[Move, frozenset[Copy]]]:
        """What a process can do without anybody's notice, and what is under way to it then."""
        for copy in self._receivable(now.left):
            yield ("receive", copy), now.left - {copy}
        clock = self.states[now.local][1].clock + 1
        if clock <= latest:
            missed = frozenset(c for c in now.left if self._deadline(c) < clock)
            lost = frozenset(self.packets[c].message for c in missed)
            yield ("tick", clock, lost), now.left - missed

    def _deadline(self, copy: Copy) -> int:
        """The last value of the receiver's clock at which a copy can arrive (G1 and G2)."""
        options: Any = self.scope.options
        return int(self.packets[copy].sent_at + options.delta + options.epsilon)

    def _postponed(self, received: _Received, move: Move, result: _Result) -> bool:
        """Whether some last reception could as well come after this move: that order is tried instead."""
        for before, copy in received.lasts:
            first = self.step(before, move)
            if first.findings or first.emitted != result.emitted:
                continue
            then = self.step(first.local, ("receive", copy))
            if then.local == result.local and not then.emitted and not then.findings:
                return True
        return False

    def _receivable(self, left: frozenset[Copy]) -> Iterator[Copy]:
        if not self.scope.kind.fifo_links:
            yield from sorted(left)
            return
        heads: dict[tuple[int, int], tuple[int, Copy]] = {}
        for copy in left:
            sender, *_, order, stream = self.packets[copy].saved
            head = heads.get((sender, stream))
            if head is None or order < head[0]:
                heads[sender, stream] = (order, copy)
        yield from sorted(copy for _, copy in heads.values())

    # The whole system.

    def run(self) -> Report:
        scope, report = self.scope, self.report
        initial = []
        empty: frozenset[int] = frozenset()
        for p, process in enumerate(self._fresh):
            initial.append(self._local(p, _State(process.snapshot(), empty, empty, empty, 0, 0, 0, empty)))
        start = _Global(tuple(initial), (frozenset(),) * self.system.size)
        self._came_from[start] = None
        queue: list[tuple[int, int, _Global]] = [(0, 0, start)]
        order = 0
        while queue:
            steps, _, state = heappop(queue)
            if report.states >= scope.most_states:
                report.complete = False
                break
            report.states += 1
            if scope.first_only and report.findings:
                break
            if self.progress is not None and report.states % 1000 == 0:
                self.progress(report.states)
            self._judge_end(state, steps)
            for after, length in self._successors(state, steps):
                order += 1
                heappush(queue, (length, order, after))
        return report

    def _successors(self, state: _Global, steps: int) -> Iterator[tuple[_Global, int]]:
        """The states after one more step that others notice."""
        for p, local in enumerate(state.locals):
            latest = self._latest(state, p)
            for received in self.receptions(local, state.under_way[p], latest):
                length = steps + len(received.path)
                if received.findings:
                    self._found(state, p, received.path, None, received.findings[0], length)
                    continue
                if received.late is not None and received.path:
                    self._found(state, p, received.path, None, received.late, length)
                if received.emitted:
                    yield from self._reach(state, p, received, None, received.local, received.emitted, length)
                    continue
                if received.path and received.path[-1][0] == "tick" and self._awaited(state, p):
                    yield from self._reach(state, p, received, None, received.local, (), length)
                for move in self._moves_of(state, p, received):
                    result = self.step(received.local, move)
                    self.report.steps += 1
                    if not result.findings and self._postponed(received, move, result):
                        continue
                    if result.findings:
                        self._found(state, p, received.path, move, result.findings[0], length + 1)
                        continue
                    yield from self._reach(state, p, received, move, result.local, result.emitted, length + 1)

    def _reach(
        self,
        state: _Global,
        p: int,
        received: _Received,
        move: Move | None,
        local: Local,
        emitted: Sequence[Copy],
        length: int,
    ) -> Iterator[tuple[_Global, int]]:
        locals_ = list(state.locals)
        locals_[p] = local
        under_way = list(state.under_way)
        under_way[p] = received.left
        for copy in emitted:
            for target in members(self.packets[copy].saved[3]):
                under_way[target] |= {copy}
        after = _Global(tuple(locals_), tuple(under_way))
        if after not in self._came_from:
            self._came_from[after] = (state, p, received.path, move or ())
            yield after, length

    def _moves_of(self, state: _Global, p: int, received: _Received) -> Iterator[Move]:
        """What process p could do next beside receiving."""
        scope = self.scope
        mine = self.states[received.local][1]
        all_states = [self.states[local][1] for local in state.locals]
        if sum(s.sends for s in all_states) < scope.messages and mine.clock <= scope.horizon:
            untouched = self._untouched(state) if scope.interchangeable else 0
            if not untouched >> p & 1 or not untouched & (only(p) - 1):
                for targets, group in self._choices[p]:
                    if self._canonical(targets, group, untouched & ~only(p), all_states):
                        yield ("send", targets, group)
        if scope.kind.nulls and sum(s.nulls for s in all_states) < scope.nulls:
            yield ("null",)

    def _latest(self, state: _Global, p: int) -> int:
        """How far process p may tick now: within ε of every other clock, and up to the horizon."""
        if not self.scope.kind.clocked:
            return 0
        options: Any = self.scope.options
        others = (self.states[local][1].clock for q, local in enumerate(state.locals) if q != p)
        return int(min(self.scope.horizon, min(others) + options.epsilon))

    def _awaited(self, state: _Global, p: int) -> bool:
        """Whether another clock may want to go where p's must have ticked first."""
        options: Any = self.scope.options
        return bool(self.states[state.locals[p]][1].clock + options.epsilon < self.scope.horizon)

    def _untouched(self, state: _Global) -> Processes:
        """Processes that did nothing and were sent nothing: nobody can tell them apart."""
        fresh = 0
        for p, local in enumerate(state.locals):
            s = self.states[local][1]
            if not (s.sends or s.nulls or s.known or s.held or s.clock or state.under_way[p]):
                fresh |= only(p)
        return fresh

    def _canonical(self, targets: Processes, group: int, fresh: Processes, states: Sequence[_State]) -> bool:
        """Of targets that differ only in untouched processes, the first ones stand for all."""
        taken = targets & fresh
        if taken and fresh & ~taken & ((1 << (taken.bit_length() - 1)) - 1):
            return False
        # Two groups of the same members are interchangeable until one is used.
        if group > 0 and not any(s.sends or s.nulls for s in states):
            first = self.system.groups[0].members
            return self.system.groups[group].members != first
        return True

    # The end.

    def _judge_end(self, state: _Global, steps: int) -> None:
        """Nobody sends any more: each process receives the rest, and then nothing may be held."""
        ends = [
            [r for r in self.receptions(local, state.under_way[p]) if not (r.left or r.emitted or r.findings)]
            for p, local in enumerate(state.locals)
        ]
        if not all(ends) or not self.promises.live:
            return
        if not (self.scope.kind.nulls or self.scope.kind.clocked):
            for p, choices in enumerate(ends):
                for end in choices:
                    held = self.states[end.local][1].held
                    if held:
                        length = steps + len(end.path)
                        self._found(state, p, end.path, None, self._stuck(p, held), length)
            return
        for combination in product(*ends):
            if not any(self.states[end.local][1].held for end in combination):
                continue
            closing = self._close(tuple(end.local for end in combination))
            if closing is not None:
                finding, moves = closing
                paths = [(p, move) for p, end in enumerate(combination) for move in end.path]
                self._note(state, [*paths, *moves], finding, steps + len(paths) + len(moves))

    def _stuck(self, p: int, held: frozenset[int]) -> Finding:
        name = self._name(min(held))
        return Finding("stuck", f"{self.system.name(p)} holds {name} for ever: all has arrived")

    def _close(self, locals_: tuple[Local, ...]) -> tuple[Finding, tuple[tuple[int, Move], ...]] | None:
        """Null rounds, or ticks for all, after everything has arrived; None if all is delivered then."""
        if locals_ in self._closed:
            return self._closed[locals_]
        now = list(locals_)
        moves: list[tuple[int, Move]] = []
        result = self._run_closing(now, moves)
        self._closed[locals_] = None if result is None else (result, tuple(moves))
        return self._closed[locals_]

    def _run_closing(self, now: list[Local], moves: list[tuple[int, Move]]) -> Finding | None:
        kind = self.scope.kind
        rounds = CLOSING_ROUNDS if kind.nulls else self._longest_wait()
        for _ in range(rounds):
            for p in range(len(now)):
                clock = self.states[now[p]][1].clock
                move: Move = ("null",) if kind.nulls else ("tick", clock + 1, frozenset())
                result = self.step(now[p], move)
                now[p] = result.local
                moves.append((p, move))
                if result.findings:
                    return result.findings[0]
                for copy in result.emitted:
                    for target in members(self.packets[copy].saved[3]):
                        arrival = self.step(now[target], ("receive", copy))
                        now[target] = arrival.local
                        moves.append((target, ("receive", copy)))
                        if arrival.findings:
                            return arrival.findings[0]
            if not any(self.states[local][1].held for local in now):
                return None
        for p, local in enumerate(now):
            held = self.states[local][1].held
            if held:
                return self._stuck(p, held)
        return None

    def _longest_wait(self) -> int:
        options: Any = self.scope.options
        return int(options.delta + 4 * options.epsilon + 4)

    # Counter-examples.

    def _found(
        self,
        state: _Global,
        p: int,
        path: Path,
        move: Move | None,
        finding: Finding,
        length: int,
    ) -> None:
        last = () if move is None else (move,)
        self._note(state, [(p, step) for step in (*path, *last)], finding, length)

    def _note(self, state: _Global, moves: Sequence[tuple[int, Move]], finding: Finding, length: int) -> None:
        report = self.report
        report.findings[finding.kind] = report.findings.get(finding.kind, 0) + 1
        if length < self._best:
            self._best = length
            report.finding = finding
            report.shortest = self._schedule([*self._path(state), *moves])
            if finding.kind == "stuck" and not (self.scope.kind.nulls or self.scope.kind.clocked):
                # The process that is stuck has received all; what others have still to receive arrives now.
                whole = (*report.shortest.steps, Step("drain"))
                report.shortest = Schedule(self.system, whole, report.shortest.options)

    def _path(self, state: _Global) -> list[tuple[int, Move]]:
        """How a state was reached, from the start."""
        parts: list[list[tuple[int, Move]]] = []
        at: _Global | None = state
        while at is not None and (origin := self._came_from[at]) is not None:
            before, p, path, move = origin
            parts.append([(p, step) for step in (*path, *([move] if move else []))])
            at = before
        return [entry for part in reversed(parts) for entry in part]

    def _schedule(self, moves: Sequence[tuple[int, Move]]) -> Schedule:
        names: dict[tuple[int, int], str] = {}
        unused = iter(letters(10_000))
        sent = [0] * self.system.size
        steps = []
        for p, move in moves:
            match move:
                case ("send", targets, group):
                    sent[p] += 1
                    name = names[p, sent[p]] = next(unused)
                    steps.append(Step("send", name, p, targets, group if group >= 0 else None))
                case ("receive", copy):
                    sender, number, _, _, _, _, control, *_ = self.packets[copy].saved
                    name = f"{self.system.name(sender)}!{number}" if control else names[sender, number]
                    steps.append(Step("receive", name, p))
                case ("null",):
                    steps.append(Step("null", process=p))
                case ("tick", now, lost):
                    for message in sorted(lost):
                        sender, number, *_ = self.messages[message]
                        steps.append(Step("lose", names[sender, number], p))
                    steps.append(Step("tick", process=p, now=now))
        return Schedule(self.system, tuple(steps), _plain_options(self.scope.options))


def _plain_options(options: Options) -> dict[str, Any]:
    """The protocol's own settings, where they differ from its defaults."""
    return {
        f.name: getattr(options, f.name)
        for f in fields(options)
        if f.name != "as_printed" and getattr(options, f.name) != f.default
    }

"""The explorer: every interleaving of a small system, judged against the definition of causal order.

What is tried. Any process may send any message it can, up to a number of messages in all; the copies under
way may be received in any order; protocols with null messages may send a bounded number of them at any
time. Clocks tick within ε of each other up to a horizon; a copy that does not arrive within δ of the clocks
is lost. Under a protocol that bears loss every message goes to everybody: a process that is not a
target looks like one whose copy was lost.

What is judged, by a record of precedence that the explorer keeps itself and no protocol sees:
  - a delivery before a cause that is addressed to the same process, a delivery twice;
  - for protocols that promise it, a message that is held although its causes are all delivered;
  - what a protocol promises of its own state (`Protocol.broken`);
  - a message that is held for ever: all has arrived, and closing null rounds or ticks did not free it;
  - where one order for all is promised or asked for, processes whose orders of delivery have none in common.
    An order only grows, so it is enough to look at it in the end.

The reduction. A process's step depends on what happened at that process alone, and only a step that sends
something (or ticks) is noticed by others. So a reception can be moved later, past steps of other processes,
until just before the next such step of its own process, and no process sees a difference: same messages, same
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
the saving of state is exercised by every step, and the codecs by every packet, too.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from heapq import heappop, heappush
from itertools import product
from typing import Any, NamedTuple

from causet.check.agreement import disagreements
from causet.check.oracle import Violation
from causet.check.runs import judged
from causet.check.scope import Finding, Report, Scope
from causet.check.steps import Copy, Local, Move, Path, Received, State, Steps
from causet.errors import BadInput
from causet.model import Processes, members, only
from causet.protocols import Options
from causet.simulate.replay import replay
from causet.simulate.schedule import Schedule, Step, letters

CLOSING_ROUNDS = 2
"""Null rounds after all has arrived, before a held message counts as stuck."""


class _Global(NamedTuple):
    locals: tuple[Local, ...]
    under_way: tuple[frozenset[Copy], ...]
    """per target"""


def explore(scope: Scope, progress: Callable[[int], None] | None = None) -> Report:
    """Try every interleaving within the scope."""
    # The tables hold millions of tuples and no cycle; the cyclic collector would walk them again and again.
    collecting = gc.isenabled()
    gc.disable()
    try:
        return _Explorer(scope, progress).run()
    finally:
        if collecting:
            gc.enable()


class _Explorer:
    def __init__(self, scope: Scope, progress: Callable[[int], None] | None) -> None:
        self.scope = scope
        self.progress = progress
        self.report = Report()
        self.steps = Steps(scope)
        self.system = scope.system
        self._closed: dict[tuple[Local, ...], tuple[Finding, tuple[tuple[int, Move], ...]] | None] = {}
        self._came_from: dict[_Global, tuple[_Global, int, Path, Move] | None] = {}
        self._best = 1 << 60
        self._choices = [scope.choices(p) for p in range(self.system.size)]

    def run(self) -> Report:
        scope, report = self.scope, self.report
        start = _Global(self.steps.start(), (frozenset(),) * self.system.size)
        self._came_from[start] = None
        queue: list[tuple[int, int, _Global]] = [(0, 0, start)]
        order = 0
        while queue:
            steps, _, state = heappop(queue)
            report.limited = report.states >= scope.most_states
            # States come in the order of their steps, so from here on nothing shorter can be found.
            settled = not scope.every and steps >= self._best
            if report.limited or settled:
                report.complete = False
                break
            report.states += 1
            if self.progress is not None and report.states % 1000 == 0:
                self.progress(report.states)
            self._judge_end(state, steps)
            for after, length in self._successors(state, steps):
                order += 1
                heappush(queue, (length, order, after))
        report.steps = self.steps.tried
        self.steps.check_packets()
        if report.shortest is not None and report.finding is not None and report.finding.kind == "unsafe":
            report.shortest = self._without_idle_receptions(report.shortest)
        return report

    def _without_idle_receptions(self, schedule: Schedule) -> Schedule:
        """A counter-example that ends with closing rounds has received all: what others need not have may go.

        The process that delivers too early keeps its receptions, for nothing that it waits for may be late.
        """
        [first, *_] = self._violations(schedule)
        where = self.system.index(first.process)
        for step in schedule.steps:
            if step.kind == "receive" and step.process != where:
                fewer = replace(schedule, steps=tuple(s for s in schedule.steps if s is not step))
                if first in self._violations(fewer):
                    schedule = fewer
        return schedule

    def _violations(self, schedule: Schedule) -> Sequence[Violation]:
        try:
            result = replay(schedule, self.scope.kind, self.scope.options)
        except BadInput:  # a message is never sent without the one that was left out
            return ()
        return judged(result, self.scope.kind).violations

    def _successors(self, state: _Global, steps: int) -> Iterator[tuple[_Global, int]]:
        """The states after one more step that others notice."""
        for p, local in enumerate(state.locals):
            latest = self._latest(state, p)
            for received in self.steps.receptions(local, state.under_way[p], latest):
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
                    result = self.steps.step(received.local, move)
                    self.steps.tried += 1
                    if not result.findings and self.steps.postponed(received, move, result):
                        continue
                    if result.findings:
                        self._found(state, p, received.path, move, result.findings[0], length + 1)
                        continue
                    yield from self._reach(state, p, received, move, result.local, result.emitted, length + 1)

    def _reach(
        self,
        state: _Global,
        p: int,
        received: Received,
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
            for target in members(self.steps.packets[copy].saved[3]):
                under_way[target] |= {copy}
        after = _Global(tuple(locals_), tuple(under_way))
        if after not in self._came_from:
            self._came_from[after] = (state, p, received.path, move or ())
            yield after, length

    def _moves_of(self, state: _Global, p: int, received: Received) -> Iterator[Move]:
        """What process p could do next beside receiving."""
        scope = self.scope
        mine = self.steps.state(received.local)
        all_states = [self.steps.state(local) for local in state.locals]
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
        others = (self.steps.state(local).clock for q, local in enumerate(state.locals) if q != p)
        return min(self.scope.horizon, min(others) + self.scope.clocks.epsilon)

    def _awaited(self, state: _Global, p: int) -> bool:
        """Whether another clock may want to go where p's must have ticked first."""
        clock = self.steps.state(state.locals[p]).clock
        return clock + self.scope.clocks.epsilon < self.scope.horizon

    def _untouched(self, state: _Global) -> Processes:
        """Processes that did nothing and were sent nothing: they cannot be told apart."""
        fresh = 0
        for p, local in enumerate(state.locals):
            s = self.steps.state(local)
            if not (s.sends or s.nulls or s.known or s.held or s.clock or state.under_way[p]):
                fresh |= only(p)
        return fresh

    def _canonical(self, targets: Processes, group: int, fresh: Processes, states: Sequence[State]) -> bool:
        """Of targets that differ only in untouched processes, the first ones stand for all."""
        taken = targets & fresh
        if taken and fresh & ~taken & ((1 << (taken.bit_length() - 1)) - 1):
            return False
        # Two groups of the same members are interchangeable until one is used.
        if group > 0 and not any(s.sends or s.nulls for s in states):
            first, other = self.system.groups[0], self.system.groups[group]
            return bool(other.parts) or other.members != first.members
        return True

    # The end.

    def _judge_end(self, state: _Global, steps: int) -> None:
        """Nothing more is sent: each process receives the rest, and then nothing may be held."""
        ends = [
            [
                r
                for r in self.steps.receptions(local, state.under_way[p])
                if not (r.left or r.emitted or r.findings)
            ]
            for p, local in enumerate(state.locals)
        ]
        if not all(ends) or not (self.steps.promises.live or self.scope.one_order):
            return
        if not (self.scope.kind.nulls or self.scope.kind.clocked or self.scope.one_order):
            for p, choices in enumerate(ends):
                for end in choices:
                    held = self.steps.state(end.local).held
                    if held:
                        length = steps + len(end.path)
                        self._found(state, p, end.path, None, self._stuck(p, held), length)
            return
        for combination in product(*ends):
            waits = any(self.steps.state(end.local).unfinished for end in combination)
            if not (waits or self.scope.one_order):
                continue
            closing = self._close(tuple(end.local for end in combination))
            if closing is not None:
                finding, moves = closing
                paths = [(p, move) for p, end in enumerate(combination) for move in end.path]
                self._note(state, [*paths, *moves], finding, steps + len(paths) + len(moves))

    def _stuck(self, p: int, held: frozenset[int]) -> Finding:
        name = self.steps.name_of(min(held))
        return Finding("stuck", f"{self.system.name(p)} holds {name} for ever: all has arrived")

    def _close(self, locals_: tuple[Local, ...]) -> tuple[Finding, tuple[tuple[int, Move], ...]] | None:
        """Null rounds, or ticks for all, after everything has arrived; None if all is delivered then."""
        if locals_ in self._closed:
            return self._closed[locals_]
        now = list(locals_)
        moves: list[tuple[int, Move]] = []
        result = self._run_closing(now, moves)
        if result is None or (result.kind == "stuck" and self.scope.one_order):
            result = self._disagreement(now) or result
        self._closed[locals_] = None if result is None else (result, tuple(moves))
        return self._closed[locals_]

    def _disagreement(self, locals_: Sequence[Local]) -> Finding | None:
        """Where the processes have delivered in orders that have none in common."""
        if not self.scope.one_order:
            return None
        orders = {
            self.system.name(p): [self.steps.name_of(m) for m in self.steps.state(local).order]
            for p, local in enumerate(locals_)
        }
        found = disagreements(orders, most=1)
        return Finding("disagree", f"there is no one order: {found[0]}") if found else None

    def _run_closing(self, now: list[Local], moves: list[tuple[int, Move]]) -> Finding | None:
        kind = self.scope.kind
        if not (kind.nulls or kind.clocked):
            holding = ((p, self.steps.state(local).held) for p, local in enumerate(now))
            first = next((each for each in holding if each[1]), None)
            return self._stuck(*first) if first is not None and self.steps.promises.live else None
        if not any(self.steps.state(local).unfinished for local in now):
            return None
        rounds = CLOSING_ROUNDS if kind.nulls else self.scope.closing_ticks
        for _ in range(rounds):
            # The process that is behind ticks first, so that clocks stay within ε of each other.
            for p in sorted(range(len(now)), key=lambda q: self.steps.state(now[q]).clock):
                clock = self.steps.state(now[p]).clock
                move: Move = ("null",) if kind.nulls else ("tick", clock + 1, frozenset())
                result = self.steps.step(now[p], move)
                now[p] = result.local
                moves.append((p, move))
                if result.findings:
                    return result.findings[0]
                for copy in result.emitted:
                    for target in members(self.steps.packets[copy].saved[3]):
                        arrival = self.steps.step(now[target], ("receive", copy))
                        now[target] = arrival.local
                        moves.append((target, ("receive", copy)))
                        if arrival.findings:
                            return arrival.findings[0]
            if not any(self.steps.state(local).unfinished for local in now):
                return None
        for p, local in enumerate(now):
            held = self.steps.state(local).held
            if held:
                return self._stuck(p, held)
        return None

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
                    sender, number, _, _, _, _, control, *_ = self.steps.packets[copy].saved
                    name = f"{self.system.name(sender)}!{number}" if control else names[sender, number]
                    steps.append(Step("receive", name, p))
                case ("null",):
                    steps.append(Step("null", process=p))
                case ("tick", now, lost):
                    for message in sorted(lost):
                        sender, number, *_ = self.steps.messages[message]
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

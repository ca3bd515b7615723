"""What single processes of an exploration do: each step is computed once, from a snapshot, and judged.

Processes, packets and messages are interned: a number stands for each, so that states are small and equal
ones are found at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

from causet.check.scope import Finding, Scope
from causet.model import Processes
from causet.protocols import Outcome, Packet, Process

Local = int
"""A process in some state: an index into the table of them."""
Copy = int
"""A packet: an index into the table of them."""
Move = tuple[Any, ...]
"""("receive", copy), ("send", targets, group), ("null",) or ("tick", now, lost messages), at some process."""
Path = tuple[Move, ...]


class Message(NamedTuple):
    """An application message as the definition sees it."""

    sender: int
    number: int
    targets: Processes
    past: frozenset[int]


class Sent(NamedTuple):
    saved: tuple[Any, ...]
    message: int
    """-1 for a control message"""
    sent_at: int
    """the sender's clock"""


class State(NamedTuple):
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
    put_off: int = 0
    """sends that wait for a later tick"""
    order: tuple[int, ...] = ()
    """what was delivered here, in order, where one order for all is judged"""

    @property
    def unfinished(self) -> bool:
        """Whether a message is held here, or has still to be sent."""
        return bool(self.held or self.put_off)


class Result(NamedTuple):
    local: Local
    emitted: tuple[Copy, ...]
    findings: tuple[Finding, ...]
    """what is wrong, and ends the path"""
    late: Finding | None
    """what could be better, and does not"""


class Received(NamedTuple):
    """A process after receiving some of what is under way to it, in some order."""

    local: Local
    left: frozenset[Copy]
    path: Path
    emitted: tuple[Copy, ...]
    findings: tuple[Finding, ...]
    late: Finding | None
    lasts: list[tuple[Local, Copy]]
    """which reception may have come last, and the process before it: several orders can lead here"""


class Steps:
    """Every step of every process that the exploration has come across."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.promises = scope.kind.promises(scope.options)
        self.system = scope.system
        self.tried = 0
        self.messages: list[Message] = []
        self._message_ids: dict[Message, int] = {}
        self.packets: list[Sent] = []
        self._packet_ids: dict[Sent, int] = {}
        self.states: list[tuple[int, State]] = []
        self._state_ids: dict[tuple[int, State], int] = {}
        self._moves: dict[tuple[Local, Move], Result] = {}
        self._receptions: dict[tuple[Local, frozenset[Copy], int], list[Received]] = {}
        self._fresh = [Process(scope.kind, p, scope.system, scope.options) for p in range(scope.system.size)]
        self._loaded: list[dict[Any, Packet]] = [{} for _ in self._fresh]
        self._saved: dict[int, tuple[Any, ...]] = {}  # by id(): `_loaded` keeps each packet alive
        self._loaders = [partial(self._load, p) for p in range(scope.system.size)]
        self._savers = [partial(self._save, p) for p in range(scope.system.size)]

    def start(self) -> tuple[Local, ...]:
        """The processes before anything happened."""
        empty: frozenset[int] = frozenset()
        return tuple(
            self._local(p, State(process.snapshot(), empty, empty, empty, 0, 0, 0, empty))
            for p, process in enumerate(self._fresh)
        )

    def state(self, local: Local) -> State:
        return self.states[local][1]

    def _intern(self, table: list[Any], ids: dict[Any, int], value: Any) -> int:
        found = ids.get(value)
        if found is None:
            found = ids[value] = len(table)
            table.append(value)
        return found

    def _local(self, process: int, state: State) -> Local:
        return self._intern(self.states, self._state_ids, (process, state))

    # One step of one process.

    def _process(self, local: Local) -> tuple[Process, State]:
        me, state = self.states[local]
        return self._fresh[me].restored(state.snapshot, self._loaders[me]), state

    def _load(self, me: int, saved: tuple[Any, ...]) -> Packet:
        """A packet from its wire form; each is decoded once per process, for steps share packets."""
        packet = self._loaded[me].get(saved)
        if packet is None:
            packet = self._loaded[me][saved] = self._fresh[me].load_packet(saved)
            self._saved[id(packet)] = saved
        return packet

    def _save(self, me: int, packet: Packet) -> tuple[Any, ...]:
        return self._saved.get(id(packet)) or self._fresh[me].save_packet(packet)

    def check_packets(self) -> None:
        """No step may change a packet that it was given, for other steps were given the same one."""
        for process, loaded in zip(self._fresh, self._loaded, strict=True):
            for saved, packet in loaded.items():
                if process.save_packet(packet) != saved:
                    raise AssertionError(f"{process.protocol.name} changes the stamp of a packet it received")

    def step(self, local: Local, move: Move) -> Result:
        """What a move of a process leads to; each is computed once."""
        result = self._moves.get((local, move))
        if result is None:
            result = self._moves[local, move] = self._step(local, move)
        return result

    def _step(self, local: Local, move: Move) -> Result:
        process, state = self._process(local)
        known, delivered, held = set(state.known), set(state.delivered), set(state.held)
        order = state.order
        sends, nulls, clock, lost = state.sends, state.nulls, state.clock, state.lost
        new: dict[int, int] = {}  # number -> message, of those that leave in this step
        names = {self.messages[m][:2]: m for m in state.held}
        outcome: Outcome

        def leave() -> None:
            """The messages that are sent now, in their order: each precedes the next."""
            for packet in outcome.packets:
                if not packet.control and packet.number not in new:
                    message = Message(process.me, packet.number, packet.targets, frozenset(known))
                    new[packet.number] = number = self._intern(self.messages, self._message_ids, message)
                    known.add(number)
                    names[process.me, packet.number] = number
                    travelling = any(p.to >> process.me & 1 for p in outcome.packets if p.key == packet.key)
                    if travelling:
                        continue
                    if not packet.targets >> process.me & 1:
                        delivered.add(number)
                    elif self.scope.kind.keeps_own:
                        held.add(number)

        match move:
            case ("send", targets, group):
                outcome = process.send(targets, group)
                sends += 1
                leave()
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
                outcome = process.receive(self._load(process.me, packet.saved))
        findings: list[Finding] = []
        for gone in outcome.delivered:
            m = names[gone.sender, gone.number]
            findings += self._judge_delivery(process.me, m, delivered | lost)
            delivered.add(m)
            known.add(m)
            known |= self.messages[m].past
            held.discard(m)
            order += (m,) if self.scope.one_order else ()
        leave()  # what was put off, after what was delivered at this tick
        late = self._judge_held(process.me, held, delivered) if self.promises.early else None
        broken = process.protocol.broken()
        if broken:
            findings.append(Finding("broken", f"{self.system.name(process.me)}: {broken}"))
        emitted = []
        for sent in outcome.packets:
            entry = Sent(process.save_packet(sent), -1 if sent.control else new[sent.number], clock)
            emitted.append(self._intern(self.packets, self._packet_ids, entry))
        after = State(
            process.snapshot(self._savers[process.me]),
            frozenset(known),
            frozenset(delivered),
            frozenset(held),
            sends,
            nulls,
            clock,
            lost,
            process.put_off,
            order,
        )
        return Result(self._local(process.me, after), tuple(emitted), tuple(findings), late)

    def name_of(self, message: int) -> str:
        sender, number, _, _ = self.messages[message]
        return f"{self.system.name(sender)}:{number}"

    def _judge_delivery(self, me: int, message: int, over: set[int]) -> Iterator[Finding]:
        name, who = self.name_of(message), self.system.name(me)
        if message in over:
            yield Finding("twice", f"{who} delivers {name} a second time")
        for cause in sorted(self.messages[message].past):
            if self.messages[cause].targets >> me & 1 and cause not in over:
                before = self.name_of(cause)
                yield Finding("unsafe", f"{who} delivers {name} before {before}, which precedes it")

    def _judge_held(self, me: int, held: set[int], delivered: set[int]) -> Finding | None:
        for message in sorted(held):
            causes = self.messages[message].past
            if all(c in delivered for c in causes if self.messages[c].targets >> me & 1):
                who, name = self.system.name(me), self.name_of(message)
                return Finding("late", f"{who} holds {name} although all its causes are delivered")
        return None

    # Receptions of one process in one go.

    def receptions(self, local: Local, under_way: frozenset[Copy], latest: int = 0) -> list[Received]:
        """Every way to receive some of what is under way, and to tick up to `latest` in between.

        A reception that sends something ends its sequence.
        """
        found = self._receptions.get((local, under_way, latest))
        if found is not None:
            return found
        found = [Received(local, under_way, (), (), (), None, [])]
        seen = {(local, under_way): found[0]}
        position = 0
        while position < len(found):
            now = found[position]
            position += 1
            if now.emitted or now.findings:
                continue
            for move, left in self._private_moves(now, latest):
                result = self.step(now.local, move)
                self.tried += 1
                path = (*now.path, move)
                if result.findings:
                    found.append(Received(result.local, left, path, (), result.findings, None, []))
                elif result.emitted:
                    # After a tick a reception may come too late, so it cannot be put after one.
                    if move[0] == "tick" or not self.postponed(now, move, result):
                        found.append(Received(result.local, left, path, result.emitted, (), result.late, []))
                else:
                    after = seen.get((result.local, left))
                    if after is None:
                        after = Received(result.local, left, path, (), (), result.late, [])
                        seen[result.local, left] = after
                        found.append(after)
                    if move[0] == "receive":
                        after.lasts.append((now.local, move[1]))
        self._receptions[local, under_way, latest] = found
        return found

    def _private_moves(self, now: Received, latest: int) -> Iterator[tuple[Move, frozenset[Copy]]]:
        """What a process can do that no other one notices, and what is under way to it then."""
        for copy in self._receivable(now.left):
            yield ("receive", copy), now.left - {copy}
        clock = self.state(now.local).clock + 1
        if clock <= latest:
            missed = frozenset(c for c in now.left if self._deadline(c) < clock)
            lost = frozenset(self.packets[c].message for c in missed)
            yield ("tick", clock, lost), now.left - missed

    def _deadline(self, copy: Copy) -> int:
        """The last value of the receiver's clock at which a copy can arrive (G1 and G2)."""
        clocks = self.scope.clocks
        return self.packets[copy].sent_at + clocks.delta + clocks.epsilon

    def postponed(self, received: Received, move: Move, result: Result) -> bool:
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

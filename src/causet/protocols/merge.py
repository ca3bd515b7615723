"""The stabilizing causal deterministic merge (Kulkarni & Ravikant, sections 3 and 4): one order for all.

Clocks differ by at most ε (G1), and a message arrives within δ of its receiver's clock or counts as lost
(G2). Every message carries a timestamp (see `merge_clock`); its receiver delivers it when no predecessor can
still come, in the order of `less`, then of processes. So all processes that deliver two messages deliver
them in the same order, that order respects causality, and no message waits longer than δ + 3ε. A sender that
addresses itself holds its own copy like any other, and delivers it at its place in that order.

The paper's events are sends and receptions; the timestamp learns from a message when it is received.

Deviations, each selectable as printed:

    K2  deliver when the clock *exceeds* r + c + δ + ε, for a predecessor may still arrive in that very tick;
        and refuse a stamp whose r is outside the possible window. As printed delivery is at equality, and a
        damaged r is never delivered.
    K1, K3, K5, K7, K8  see `merge_clock`.

At most K events of a process fall into one tick. A reception beyond that is learnt from at the next event,
which receives all that came before it; a send beyond that waits, with all later ones, for the next tick
(`process`). An event that receives and sends counts as one: the proof of theorem 3.6 holds for it, too.

Recovery (section 3.3), with the clock kn: a timestamp that breaks a local invariant is reset, one's own as
well as a message's. The rest of the state may be damaged, too, and is made right at the next tick, from the
physical clock: the engine's copy of the clock, the count of events, receptions that were deferred, what each
held message waits for and its rank (from its stamp; one that would wait longer than any can is released), and
which deliveries are remembered. Messages that are sent 3ε + δ and a tick after the last fault are in order,
and so is all that is delivered after `recovery`, which is as long again for what was sent before. Meanwhile a
message may be lost: one that a damaged memory takes for a duplicate, whose number a damaged counter has used
again while the other one is held or remembered, or whose sender, number or targets were damaged while it was
held (what cannot have come is dropped). The clock rc has no bounds that would show damage to its timestamp,
and does not recover.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from random import Random
from typing import Any

from causet.errors import BadInput, quote
from causet.holdback import Fact, Key, Threshold
from causet.model import Processes, System, only
from causet.protocols import base
from causet.protocols.base import NOTHING, Learned, Packet, Promises, Protocol
from causet.protocols.merge_clock import Clock, KnClock, QuietClock, RcClock, RcClockAsPrinted, Timestamp
from causet.protocols.wire import Reader, Writer

CLOCK = "clock"
NEVER = ("never", 1)
FAR = 2**62
"""Clocks are below this, so that no sum of ours leaves 64 bits."""


@dataclass(frozen=True, slots=True)
class MergeOptions(base.ClockOptions):
    delta_min: int = base.setting(0, "δ_min: the least that a message takes, in ticks")
    events_per_tick: int = base.setting(
        256, "K: the most events of one process in one tick; sends and receptions beyond it wait for the next"
    )
    modulus: int = base.setting(
        0,
        "B: stamps carry r modulo B, 0 for whole numbers; a message later than δ is told from a new one only "
        "as far as B is above 2ε + δ + 1",
    )
    clock: str = base.setting("kn", "kn for ⟨r, c, kn⟩, rc for the repaired ⟨r, c⟩")
    quiet: int = base.setting(
        0,
        "x: with clock = rc, no process has an event while its clock is in [αx, αx + 2ε]; sends and "
        "receptions wait until after, and c is bounded (section 5.2). 0: no quiet windows",
    )
    ties: str = base.setting(
        "process",
        "what decides where `less` does not: process, as all must agree; or arrival, which only promises "
        "causal order, and lets a checker see any order of such messages",
    )

    def check(self, system: System) -> list[str]:
        for name in ("epsilon", "delta", "delta_min", "modulus", "quiet"):
            if getattr(self, name) < 0:
                raise BadInput(f"{name} = {getattr(self, name)}: it cannot be negative")
        if max(self.epsilon, self.delta) > 1_000_000:
            raise BadInput("epsilon and delta are in ticks and at most 1,000,000: use a coarser tick")
        if self.clock == "kn" and self.epsilon > 10_000:
            raise BadInput(
                f"epsilon = {self.epsilon}: a timestamp would have {2 * self.epsilon + 1} counters; "
                "use a coarser tick, or clock = rc"
            )
        if self.events_per_tick < 1:
            raise BadInput(f"events_per_tick = {self.events_per_tick}: at least one event must fit a tick")
        if self.delta_min > self.delta:
            raise BadInput(f"delta_min = {self.delta_min} is more than delta = {self.delta}")
        if self.clock not in ("kn", "rc"):
            raise BadInput(f"clock = {quote(self.clock)}: the clocks of merge are kn and rc")
        if self.ties not in ("process", "arrival"):
            raise BadInput(f"ties = {quote(self.ties)}: merge breaks ties by process or by arrival")
        if self.clock == "rc" and self.ties != "process":
            raise BadInput("the ⟨r, c⟩ clock orders the events of one tick by process and sequence only")
        if self.quiet and (self.clock != "rc" or self.modulus):
            raise BadInput(
                f"quiet = {self.quiet}: quiet windows bound the clock rc, and need whole numbers for clocks; "
                "set clock = rc and modulus = 0"
            )
        if 0 < self.quiet < 2 * self.epsilon + 2:
            raise BadInput(
                f"quiet = {self.quiet}: a window is quiet for 2ε + 1 ticks, so at least 2ε + 2 = "
                f"{2 * self.epsilon + 2} is needed for an event to fit in between"
            )
        least = 2 * self.epsilon + self.delta + 1
        if self.modulus and self.modulus < least:
            raise BadInput(
                f"modulus = {self.modulus} is too small: with ε = {self.epsilon} and δ = {self.delta} a "
                f"receiver cannot tell the clock values apart; at least 2ε + δ + 1 = {least}"
            )
        return []

    @property
    def longest_put_off(self) -> int:
        return max(self.quiet, 1)

    def in_words(self) -> str:
        return f"ε = {self.epsilon}, δ = {self.delta}, ties by {self.ties}"

    def check_delays(self, least: float, most: float) -> list[str]:
        warnings = []
        if self.delta_min > least:
            warnings.append(
                f"delta_min = {self.delta_min}, but messages can take as little as {least:g}: then neither "
                "causal order nor one order for all is promised"
            )
        if self.modulus and most > self.modulus - 2 * self.epsilon - 1:
            warnings.append(
                f"modulus = {self.modulus}, but messages can take as long as {most:g} ticks: one late by a "
                "turn of the clock is taken for new, and may be delivered out of order"
            )
        return warnings


class Merge(Protocol):
    name = "merge"
    title = "stabilizing causal deterministic merge (Kulkarni & Ravikant)"
    PROMISES = Promises(total=True, loss=True, damage=True)
    counts = "numbers: r, c and kn"
    clock_fact = CLOCK
    clocked = True
    hears = True
    keeps_own = True
    in_order = False
    numbers = 2**32
    errata = ("K1", "K2", "K3", "K5", "K7", "K8")
    Options = MergeOptions

    @classmethod
    def promises(cls, options: MergeOptions) -> Promises:
        """The ⟨r, c⟩ clock has no bounds that would show damage."""
        return Promises(total=options.ties == "process", loss=True, damage=options.clock == "kn")

    @classmethod
    def small(cls, size: int, settings: Mapping[str, Any], rows: Set[str]) -> dict[str, Any]:
        ties = {} if settings.get("clock") == "rc" else {"ties": "arrival"}
        few = {"events_per_tick": 2} if "K8" in rows else {}
        return {"epsilon": 1, "delta": 1} | ties | few

    @classmethod
    def agreeing(cls) -> dict[str, Any]:
        return {"ties": "process"}

    @classmethod
    def recovery(cls, options: MergeOptions) -> float:
        """A process is right again at its next tick, and all stamps 3ε + δ later; those given before wait for
        up to as long, and a tick.

        A tick of some clock is up to one more unit of time away.
        """
        return 2 * (3 * options.epsilon + options.delta) + 3

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.clock = self._clock()
        self.rt = 0
        self.stamp = self.clock.first(0)
        self.events = 0  # in this tick
        self.deferred: list[Timestamp] = []  # received beyond K events in a tick, and not learnt from yet
        self.passed: deque[tuple[int, Key]] = deque()  # (tick, key): what was delivered lately

    def _clock(self) -> Clock:
        options = self.options
        if options.clock == "kn":
            turn = options.modulus if self.printed("K3") else 0
            most = options.events_per_tick * self.system.size + (not self.printed("K8"))
            return KnClock(options.epsilon, options.delta_min, most, self.printed("K1"), turn)
        if options.quiet:
            return QuietClock(options.epsilon, options.quiet, self.printed("K7"))
        return RcClockAsPrinted(options.epsilon) if self.printed("K5") else RcClock()

    def tick(self, now: int) -> Learned:
        least = 0 if self.clock.recovers else self.rt  # after a fault, the clock that comes is the right one
        if not least <= now < FAR:
            raise BadInput(f"a clock that shows {self.rt} cannot go to {now}")
        self.events = 0 if now != self.rt else min(max(self.events, 0), self.options.events_per_tick)
        self.rt = now
        if not self.printed("K3"):
            self.stamp = self.clock.age(self.stamp, now)
        if self.deferred and self.clock.recovers:
            self.deferred = [stamp for stamp in self.deferred if self._counts(stamp)]
        return Learned([(CLOCK, now)])

    def _counts(self, stamp: Timestamp) -> bool:
        """Whether a reception that was deferred can still teach something: one that was forgotten by now, or
        that cannot have come, may be the work of a fault, and would break the next event."""
        return bool(stamp.r <= self.rt + self.options.epsilon and self.clock.teaches(stamp, self.rt))

    def full(self) -> bool:
        if isinstance(self.clock, QuietClock) and self.clock.quiet(self.rt):
            return True
        if not 0 <= self.rt < FAR:  # the work of a fault, and right again at the next tick
            return True
        return bool(self.events >= self.options.events_per_tick)

    def _next_event(self, *received: Timestamp) -> Timestamp:
        """An event that receives these messages, and those that came beyond K events in an earlier tick."""
        waiting, self.deferred = self.deferred, []
        self.events += 1
        return self._event(*waiting, *received)

    def _event(self, *received: Timestamp) -> Timestamp:
        """One more event, which may have received messages; its timestamp."""
        self.stamp = self.clock.event(self.stamp, self.rt, received)
        return self.stamp

    def spent(self) -> bool:
        """A clock that recovers resets a timestamp that is out of bounds, and goes on."""
        return not self.clock.recovers and self.stamp.r + self.stamp.c >= FAR

    def send(self, number: int, targets: Processes, group: int) -> Learned:
        stamp = self._next_event()
        if self.options.modulus:
            stamp = stamp._replace(r=stamp.r % self.options.modulus)
        packet = Packet(self.me, number, targets, targets & ~only(self.me), stamp, group)
        return Learned(packets=(packet,))

    def receive(self, packet: Packet) -> Learned | None:
        stamp = self._unwrapped(packet.stamp)
        if not self.printed("K2") and not self._possible(stamp):
            return None
        stamp = self._repaired(stamp)
        if self.full():
            self.deferred.append(stamp)  # nothing can be sent in between, for that would be an event too
        else:
            self._next_event(stamp)
        return NOTHING

    def _possible(self, stamp: Timestamp) -> bool:
        """Whether r is in the window that G1 and G2 leave."""
        options = self.options
        return bool(self.rt - options.delta - options.epsilon <= stamp.r <= self.rt + options.epsilon)

    def _unwrapped(self, stamp: Timestamp) -> Timestamp:
        """With clocks modulo B: the r in [rt - ε - δ, rt + ε] that the stamp means."""
        modulus = self.options.modulus
        if not modulus:
            return stamp
        newest = self.rt + self.options.epsilon
        return stamp._replace(r=newest - (newest - stamp.r) % modulus)

    def _repaired(self, stamp: Timestamp) -> Timestamp:
        """A message's timestamp that breaks an invariant is reset before it is used."""
        if not 0 <= stamp.r < FAR:
            return self.clock.first(min(max(stamp.r, 0), FAR - 1))
        return stamp if self.clock.holds(stamp) else self.clock.first(stamp.r)

    def needs(self, packet: Packet) -> Iterable[Threshold]:
        """Section 4.2, delcond."""
        stamp = self._repaired(self._unwrapped(packet.stamp))
        due = self.clock.known(stamp) + self.options.delta + self.options.epsilon
        if self.printed("K2"):
            return (NEVER,) if due < self.rt else ((CLOCK, due),)
        return ((CLOCK, due + 1),)

    def fits(self, packet: Packet) -> bool:
        """The key has room for 2³² messages of a process."""
        return packet.number < self.numbers

    def load_rank(self, saved: Any) -> Any:
        return self.clock.load_key(saved)

    def rank(self, packet: Packet) -> Any:
        stamp = self._repaired(self._unwrapped(packet.stamp))
        named = self.options.ties == "process"
        process, sequence = (packet.sender, packet.number) if named else (0, 0)
        return self.clock.key(stamp, process, sequence)

    def longest(self) -> int:
        """The longest that a message can wait (lemma 4.2), with the tick that K2 adds."""
        return int(self.options.delta + 3 * self.options.epsilon + 1)

    def mended(
        self, packet: Packet, thresholds: tuple[Threshold, ...], rank: Any
    ) -> tuple[Iterable[Threshold], Any] | None:
        """What waits longer than any message can is released.

        With whole numbers for clocks, a stamp says what its message waits for and where it stands; ranks are
        looked at when they count, as a message leaves.
        """
        if not self.clock.recovers or self.printed("K2"):
            return None
        latest = self.rt + self.longest()
        if self.options.modulus:
            late = any(least > latest for _, least in thresholds)
            return ((), self.rank(packet)) if late else None
        stamp = packet.stamp
        due = stamp.r + stamp.c + self.options.delta + self.options.epsilon + 1
        if self.rt < due <= latest and thresholds == ((CLOCK, due),):
            return None
        (_, due), *_ = needs = tuple(self.needs(packet))
        if due > latest:
            return (), self.rank(packet)
        if needs == thresholds and due > self.rt:
            return None
        right = self.rank(packet)
        return None if needs == thresholds and right == rank else (needs, right)

    def deliver(self, packet: Packet) -> Learned:
        self.passed.append((self.rt, packet.key))
        return NOTHING

    def remembered(self) -> Iterable[Key]:
        """A duplicate that comes later than this is outside the window and refused for that."""
        oldest, now = self.rt - self.longest(), self.rt
        passed = self.passed
        if any(tick > now for tick, _ in passed):  # a fault has touched them
            passed = self.passed = deque(sorted((min(tick, now), key) for tick, key in passed))
        while passed and passed[0][0] < oldest:
            passed.popleft()
        return [key for _, key in passed]

    def entries(self, packet: Packet) -> int:
        return 2 + len(packet.stamp.kn)

    # Faults.

    def corrupt(self, random: Random) -> None:
        self.stamp = self._noise(self.rt, random, "recover from damage to its state")

    def corrupt_stamp(self, stamp: Timestamp, random: Random) -> Timestamp:
        return self._noise(stamp.r, random, "bear damaged messages")

    def _noise(self, near: int, random: Random, claim: str) -> Timestamp:
        """Any timestamp at all, near and far, in the bounds and out of them."""
        clock = self.clock
        if not isinstance(clock, KnClock):
            raise BadInput(f"the ⟨r, c⟩ clock does not claim to {claim}")
        spread = random.choice([1, self.options.epsilon + 1, self.longest(), 10_000])
        most = random.choice([1, self.system.size, clock.most, 2 * clock.most])
        kn = tuple(random.randint(0, most) for _ in range(clock.length))
        r = max(0, near + random.randint(-spread, spread))
        if self.options.modulus:
            r %= self.options.modulus
        c = random.randint(0, 2 * self.options.epsilon + 1)
        return Timestamp(r, c + (random.randint(0, 10_000) if random.random() < 0.25 else 0), kn)

    # Bytes.

    def encode(self, stamp: Timestamp) -> bytes:
        writer = Writer(self.name)
        modulus = self.options.modulus
        writer.number(stamp.r % modulus if modulus else stamp.r)
        writer.number(stamp.c)
        for known in stamp.kn:
            writer.number(known)
        return writer.done()

    def decode(self, data: bytes) -> Timestamp:
        reader = Reader(self.name, data)
        modulus = self.options.modulus
        r = reader.number("r", modulus - 1 if modulus else FAR)
        c = reader.number("c", FAR)
        kn = tuple(reader.number("kn", FAR) for _ in range(self.clock.length))
        reader.done()
        return Timestamp(r, c, kn)

    def state(self) -> Any:
        deferred = tuple(tuple(stamp) for stamp in self.deferred)
        return (self.rt, self.events, tuple(self.stamp), tuple(self.passed), deferred)

    def load(self, state: Any) -> None:
        self.rt, self.events, (r, c, kn), passed, deferred = state
        self.deferred = [Timestamp(*stamp) for stamp in deferred]
        self.stamp = Timestamp(r, c, tuple(kn))
        self.passed = deque((tick, (source, number)) for tick, (source, number) in passed)

    def explain(self, fact: Fact, least: int, now: int) -> str:
        if fact != CLOCK:
            return "a moment that has passed (K2 as printed: it came after its time)"
        return f"the local clock at {least} (now {now}), when no predecessor can still come"

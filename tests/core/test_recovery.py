"""After arbitrary damage to stamps the order of the merge is right again within 3ε + δ.

Sources with `RcClock` hear each other. At a moment T the memory of some clocks, and stamps of messages under
way to sources and to mergers, become noise. Stamps that cannot be are refused, with what is wrong; those that
can be, and are wrong, pass. Whatever is sent after T + 3ε + δ must be released, in causal order, and by all
mergers in the same order, whenever they began and however large their batches are. The unit of time is a tick
of the clocks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from causet.errors import BadStamp
from causet.rcclock import FAR, ClockJumped, RcClock, RcTime
from causet.spark.streams.merge.packers import MergeSettings
from causet.spark.streams.merge.rows import Extra, Times, problem_with, problems
from tests.helpers.stream_faults import MergeInMemory, Message, merge_parts, message
from tests.helpers.stream_faults import beat as heartbeat

BEGIN = 1_000_000
TIMES = Times("rc", "r", "sequence")
WORLDS = 35


@dataclass
class Source:
    """A source whose clock is ahead of real time by its offset, at most ε."""

    name: str
    offset: int
    clock: RcClock
    sent: int = 0
    heard: list[str] = field(default_factory=list)
    """its own last message, and those that it heard since: the direct causes of the next one"""
    inbox: list[tuple[int, str, str]] = field(default_factory=list)
    """when a message arrives, which one, and its stamp"""


class World:
    """Sources that send to each other and to mergers, everything within δ; damaged at the moment `damage`."""

    def __init__(self, seed: int, mergers: int) -> None:
        self.draw = draw = Random(seed)
        self.epsilon, self.delta = draw.choice([5, 50]), draw.choice([10, 100, 400])
        self.least = draw.choice([0, 2])
        self.now = BEGIN
        self.sources = [self._source(f"s{number}") for number in range(draw.randint(2, 5))]
        self.sending: dict[str, int] = {}
        """when a message was sent, really"""
        self.causes: list[tuple[str, str]] = []
        self.arrivals: list[list[tuple[int, Message]]] = [[] for _ in range(mergers)]
        self.refused = self.could_not_send = 0
        length = 3 * self.epsilon + self.delta
        self.damage = BEGIN + 2 * length
        self.recovered = self.damage + length
        self.end = self.recovered + 2 * length
        step = max(1, 6 * length // 120)
        self.noisy, self.ahead = draw.choice([0.3, 0.7, 1.0, 1.0]), draw.random() < 0.4
        while self.now < self.damage:
            self._some(step)
        self._damage()
        while self.now < self.end:
            self._some(step)
        self.now += 2 * length + 1
        for source in self.sources:
            self._hear(source)
            beat = source.clock.event()
            for arrivals in self.arrivals:
                arrivals.append((self.now, heartbeat(source.name, beat.rc, beat.r)))
        for arrivals in self.arrivals:
            arrivals.sort(key=lambda each: each[0])

    def _source(self, name: str) -> Source:
        offset = self.draw.choice([0, self.draw.randint(0, self.epsilon), self.epsilon])
        return Source(name, offset, RcClock(self.epsilon / 1000, partial(self._show, offset), None))

    def _show(self, offset: int) -> int:
        return self.now + offset

    def _some(self, step: int) -> None:
        self.now += self.draw.randint(0, 2 * step)
        source = self.draw.choice(self.sources)
        self._hear(source)
        self._send(source)

    def _hear(self, source: Source) -> None:
        """Messages that have arrived meanwhile, each at its moment."""
        now = self.now
        for entry in sorted(each for each in source.inbox if each[0] <= now):
            source.inbox.remove(entry)
            self.now = entry[0]
            try:
                source.clock.heard(RcTime.parse(entry[2]))
                source.heard.append(entry[1])
            except (BadStamp, ClockJumped):
                self.refused += 1
        self.now = now

    def _send(self, source: Source) -> None:
        try:
            when = source.clock.event()
        except ClockJumped:
            self.could_not_send += 1
            return
        source.sent += 1
        name = f"{source.name}:{source.sent}"
        self.sending[name] = self.now
        self.causes += [(cause, name) for cause in source.heard]
        source.heard = [name]
        for other in self.sources:
            if other is not source and self.draw.random() < 0.5:
                other.inbox.append((self._later(), name, str(when)))
        for arrivals in self.arrivals:
            arrivals.append((self._later(), message(source.name, source.sent, when.rc, when.r, name)))

    def _later(self) -> int:
        return self.now + self.draw.choice(
            [self.least, self.draw.randint(self.least, self.delta), self.delta]
        )

    # Damage.

    def _damage(self) -> None:
        """What a clock knows is damaged to at most what a damaged message could teach it; for more, see
        below."""
        for source in self.sources:
            if self.draw.random() < self.noisy:
                shown = source.clock._now()
                most = 3 * self.epsilon + 2
                source.clock.largest = self.draw.choice(
                    [0, shown + self.draw.randint(0, most), shown + most, self.draw.randint(0, shown)]
                )
            source.inbox = [
                (at, name, str(self._noise(at)) if self.draw.random() < self.noisy else stamp)
                for at, name, stamp in source.inbox
            ]
        for arrivals in self.arrivals:
            for at, row in arrivals:
                if at > self.now and self.draw.random() < self.noisy:
                    row["rc"], row["r"] = self._noise(at)
                    row["damaged"] = True

    def _noise(self, near: int) -> RcTime:
        """Any time at all: near and far, possible and not; or, in some worlds, all of them ahead."""
        e = self.epsilon
        if self.ahead:
            far = self.draw.randint(0, 10_000)
            r = near + self.draw.choice([e, 2 * e, far, far, far])
            return RcTime(r + self.draw.choice([0, 2 * e + 1]), r)
        spread = self.draw.choice([1, e, 2 * e, 3 * e + self.delta, 10_000, FAR])
        r = near + self.draw.choice([e, 2 * e, self.draw.randint(-spread, spread)])
        most = 2 * e + 1
        c = self.draw.choice(
            [0, most, most + 1, self.draw.randint(0, most), self.draw.randint(-spread, spread)]
        )
        return RcTime(r + c, r)


@dataclass
class Merging:
    """A merger: it begins at some moment, and takes a batch every so often; its clock is ahead by an
    offset."""

    world: Any
    arrivals: Sequence[tuple[int, Message]]
    begins: int
    period: int
    offset: int
    batches: list[list[Message]] = field(default_factory=list)

    def __post_init__(self) -> None:
        """What a batch takes is what has come since the last one; a row that is taken has not come later."""
        if self.batches:
            return
        taken: dict[int, list[Message]] = {}
        for at, row in self.arrivals:
            if at >= self.begins:
                taken.setdefault((at - self.begins) // self.period, []).append(row)
        for number in sorted(taken):
            now = self.begins + (number + 1) * self.period + self.offset
            self.batches.append([{**row, "now": now} for row in taken[number]])

    @property
    def rows(self) -> Iterator[Message]:
        for batch in self.batches:
            yield from batch

    def run(self, buckets: int = 2) -> list[Message]:
        """What leaves, in its order."""
        world = self.world
        settings = MergeSettings(
            times=TIMES,
            epsilon=world.epsilon,
            delta=world.delta,
            sources=tuple(source.name for source in world.sources),
            exclude=(),
            horizon=world.delta + 3 * world.epsilon,
            buckets=buckets,
            parts=buckets,
        )
        query = MergeInMemory(merge_parts(), settings)
        return [row for batch in self.batches for row in query.step([batch]).rows]


def judge(spark: SparkSession, mergers: Sequence[Merging]) -> None:
    """Every row gets its `code`, by the rules of the merge, as in a batch at its moment `now`."""
    for epsilon in {each.world.epsilon for each in mergers}:
        rows = [row for each in mergers if each.world.epsilon == epsilon for row in each.rows]
        names = ("rc", "r", "sequence", "now")
        columns = {name: pa.array([row[name] for row in rows], pa.int64()) for name in names}
        for name in ("source", "type"):
            columns[name] = pa.array([row.get(name) for row in rows], pa.string())
        columns["place"] = pa.array(range(len(rows)), pa.int64())
        judged = spark.createDataFrame(pa.table(columns)).withColumn(
            "code", problem_with(TIMES, epsilon, F.col("now"), Extra(beats=True))
        )
        for place, code in zip(*judged.select("place", "code").toArrow().to_pydict().values(), strict=True):
            rows[place]["code"] = code


def wrong_with(row: Message, epsilon: int) -> str | None:
    """Why a stamp cannot be, by its definition."""
    rc, r = row["rc"], row["r"]
    if r < 0 or rc < r or rc >= 2**53:
        return "has an invalid time: it needs 0 ≤ r ≤ r + c < 2^53"
    if rc - r > 2 * epsilon + 1000:
        return f"has a time with c above {1 + 2 * epsilon / 1000:g} ms, which ε does not allow"
    if r > row["now"] + epsilon:
        return "has a time ahead of every clock"
    return None


def check_order(world: World, rows: Sequence[Message], came: set[str]) -> list[str]:
    """What was sent after the recovery is released, sorted, after its causes; says in which order."""
    after = {name for name, at in world.sending.items() if at > world.recovered} & came
    mine = [row for row in rows if row["subject"] in after]
    order = [row["subject"] for row in mine]
    assert {row["status"] for row in mine} <= {"delivered"}
    assert sorted(order) == sorted(after)
    assert mine == sorted(mine, key=lambda row: (row["rc"], row["r"], row["source"], row["sequence"]))
    place = {name: number for number, name in enumerate(order)}
    pairs = [(place[a], place[b]) for a, b in world.causes if a in place and b in place]
    assert all(cause < effect for cause, effect in pairs)
    return order


def live_mergers(world: World) -> list[Merging]:
    """Two that follow what comes: one from the beginning; batches of up to 2ε + δ."""
    draw = world.draw
    longest = 2 * world.epsilon + world.delta
    begins = [BEGIN, draw.randint(BEGIN, world.recovered)]
    return [
        Merging(
            world,
            arrivals,
            begins[number],
            draw.choice([longest // 3, longest, draw.randint(longest // 6, longest)]),
            draw.randint(0, world.epsilon),
        )
        for number, arrivals in enumerate(world.arrivals)
    ]


def check_refused(merger: Merging, rows: Sequence[Message]) -> int:
    """What cannot be is refused and named, and nothing else is; says how many."""
    judged = [(row["subject"], wrong_with(row, merger.world.epsilon)) for row in merger.rows]
    refused = sorted((name, said) for name, said in judged if said is not None)
    assert sorted((row["subject"], row["problem"]) for row in rows if row["status"] == "diverted") == refused
    return len(refused)


def check_world(world: World, mergers: Sequence[Merging], counts: Counter[str]) -> None:
    """Each merger is right after the recovery, and all agree."""
    orders = []
    for merger in mergers:
        rows = merger.run(buckets=world.draw.randint(1, 3))
        orders.append(check_order(world, rows, {row["subject"] for row in merger.rows}))
        refused = check_refused(merger, rows)
        counts["refused"] += refused
        counts["passed"] += sum("damaged" in row for row in merger.rows) - refused
        counts["late"] += sum(row["status"] == "late" for row in rows)
    common = set.intersection(*map(set, orders))
    assert len({tuple(name for name in order if name in common) for order in orders}) == 1
    assert {source.name for source in world.sources} == {name.split(":")[0] for name in common}
    counts["compared"] += len(common)
    counts["causes"] += sum(cause in common and effect in common for cause, effect in world.causes)
    counts["could not send"] += world.could_not_send
    counts["refused by sources"] += world.refused


@pytest.fixture(scope="module")
def judged(spark: SparkSession) -> list[tuple[World, list[Merging]]]:
    """Worlds, each with two mergers whose rows are judged."""
    worlds = [World(seed, mergers=2) for seed in range(WORLDS)]
    mergers = [live_mergers(world) for world in worlds]
    judge(spark, [each for both in mergers for each in both])
    return list(zip(worlds, mergers, strict=True))


def test_order_is_right_again_within_3_epsilon_plus_delta(judged: list[tuple[World, list[Merging]]]) -> None:
    counts: Counter[str] = Counter()
    for world, mergers in judged:
        check_world(world, mergers, counts)
    shown = [counts[name] for name in ("refused", "passed", "late", "could not send", "refused by sources")]
    assert min(shown) > 5, "damage that does not show proves nothing"
    assert counts["compared"] > 20 * WORLDS and counts["causes"] > 10 * WORLDS


def test_without_refusing_what_is_ahead_of_every_clock_damage_stays(
    judged: list[tuple[World, list[Merging]]],
) -> None:
    """Mutant: a stamp from the future is taken as it is, and counts as progress of its source."""
    ahead = problems(0).index("has a time ahead of every clock")
    wrong = 0
    for world, (merger, _) in judged:
        if not world.ahead:
            continue
        batches = [
            [{**row, "code": None if row["code"] == ahead else row["code"]} for row in batch]
            for batch in merger.batches
        ]
        rows = replace(merger, batches=batches).run()
        try:
            check_order(world, rows, {row["subject"] for row in merger.rows})
        except AssertionError:
            wrong += 1
    assert wrong > 2


# ---------------------------------------------------------------- where it does not hold

PAIR: Any = SimpleNamespace(epsilon=5, delta=10, sources=[SimpleNamespace(name=name) for name in "ab"])
"""Two sources whose clocks show real time, ε = 5 and δ = 10; stamps are damaged at 1000, so all that is sent
after 1025 should be in order."""


def at(moment: int, source: str, sequence: int, damaged: int | None = None) -> Message:
    """A message that is sent at a moment, with that time or a damaged one."""
    r = moment if damaged is None else damaged
    return message(source, sequence, r, r, f"{source}{sequence}")


def beats(moment: int) -> list[Message]:
    return [heartbeat(name, moment, moment) for name in "ab"]


def statuses(spark: SparkSession, batches: Sequence[tuple[int, Sequence[Message]]]) -> dict[str, str]:
    """What becomes of messages, in batches at these moments of the merger's clock."""
    judged = [[{**row, "now": now} for row in rows] for now, rows in batches]
    merger = Merging(PAIR, [], 0, 1, 0, judged)
    judge(spark, [merger])
    return {row["subject"]: row["status"] for row in merger.run()}


def test_a_merger_with_a_backlog_believes_damaged_times_and_marks_what_is_late(spark: SparkSession) -> None:
    """Both sources were damaged to 1900. Whoever reads it at once refuses that; whoever reads it later than
    1895 believes both to be at 1900, and takes whatever they sent until 1885 for late."""
    damaged = [at(1000, "a", 1, 1900), at(1000, "b", 1, 1900)]
    later = [at(1200, "a", 2), at(1210, "b", 2), *beats(1300)]
    rest = [at(1400, "a", 3), at(1410, "b", 3), *beats(1500)]
    followed = statuses(spark, [(1012, damaged), (1310, later), (1510, rest)])
    assert [followed[name] for name in ("a1", "b1", "a2", "b2")] == [
        "diverted",
        "diverted",
        "delivered",
        "delivered",
    ]
    caught_up = statuses(spark, [(9000, damaged), (9001, later), (9002, rest)])
    assert {caught_up[name] for name in ("a2", "b2", "a3", "b3")} == {"late"}, "marked, and none is lost"


def test_with_batches_longer_than_2_epsilon_plus_delta_a_message_may_be_late_once(
    spark: SparkSession,
) -> None:
    """A batch ends at 1100, when the merger's clock shows 1105; so damage up to 1110 passes, and everything
    below 1095 is released. What was sent at 1092 may come at 1102."""
    damaged = [at(1000, "a", 1, 1110), at(1000, "b", 1, 1110)]
    found = statuses(spark, [(1105, damaged), (1205, [at(1092, "a", 2), *beats(1200)])])
    assert found["a2"] == "late", "marked, and not lost: the limit of what is promised"


def test_a_clock_whose_memory_is_damaged_far_ahead_says_so_and_stamps_nothing() -> None:
    """The limit of what is promised: it does not forget what it knows, so somebody must set it right."""
    clock = RcClock(0.005, iter(range(1000, 2000, 26)).__next__, None)
    clock.event()
    clock.largest = 2**52
    for _ in range(10):
        with pytest.raises(ClockJumped, match="that was known before"):
            clock.event()


def test_c_stays_large_while_sources_answer_each_other_with_every_tick() -> None:
    """Two clocks that show the same. One is damaged to the largest c that can be; an answer takes a tick, in
    which r + c grows as r does. So c is as large long after, and one answer within a tick is too much."""
    now = 1000
    clocks = [RcClock(0.005, lambda: now, None) for _ in range(2)]
    clocks[0].largest = now + clocks[0].reach - 1
    said = clocks[0].event()
    for number in range(500):
        now += 1
        said = clocks[1 - number % 2].event(said)
    assert said.rc - said.r == clocks[0].reach == 11
    with pytest.raises(ClockJumped):
        clocks[1].event(said)
    now += 12  # a pause of 2ε + 2, and all is well
    assert clocks[1].event(said) == RcTime(now, now)


def test_a_time_of_which_an_impossible_one_would_be_made_is_refused() -> None:
    """r is up to ε ahead and c up to 2ε + 1 above it, but not both: mergers and sources would refuse the next
    time."""
    clock = RcClock(0.005, lambda: 1000, None)
    with pytest.raises(ClockJumped, match=r"0\.016 ms ahead of this one"):
        clock.event(RcTime(1016, 1005))
    assert clock.event() == RcTime(1000, 1000), "nothing was learnt"

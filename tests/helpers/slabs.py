"""A log ordered in slabs, carried from function to function in memory."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from causet.formats.schema import stated
from causet.model import Event
from tests.helpers.orders import by_definition


class Steps:
    """The functions of the shipped modules, or of those of a mutant."""

    def __init__(self, of: Mapping[str, Any] | None = None) -> None:
        def module(name: str) -> Any:
            return of[name] if of and name in of else import_module(f"causet.{name}")

        self.plan: Any = module("slabs.plan")
        self.cut: Any = module("slabs.cut")
        self.window: Any = module("slabs.window")
        self.order: Any = module("slabs.order")
        self.claims: Any = module("slabs.claims")
        self.judge: Any = module("slabs.judge")
        self.certificate: Any = module("slabs.certificate")


SHIPPED = Steps()


class Sliced(NamedTuple):
    rows: pa.Table
    certain: bool
    """whether the certificate says that this is the order"""
    verdict: Any
    stuck: int
    correction: Any


def plan_of(table: pa.Table, slabs: int, reach: Any, steps: Steps = SHIPPED) -> Any:
    floats = pa.types.is_floating(table.schema.field("time").type)
    times = steps.cut.times_of(table.column("time"), floats)
    own_ids = steps.window.has_own_ids(table)
    return steps.plan.Plan(steps.plan.even_cuts(times, slabs), reach, floats, own_ids, 7)


def in_slabs(table: pa.Table, plan: Any, batch: int = 50, buckets: int = 3, steps: Steps = SHIPPED) -> Sliced:
    """As Spark does it: batches are cut, slabs are ordered, claims are judged."""
    pieces: dict[int, list[Any]] = {}
    for begin in range(0, table.num_rows, batch):
        for piece in steps.cut.cut(table.slice(begin, batch), plan):
            pieces.setdefault(piece.slab, []).append(piece)
    found: list[pa.Table] = []
    claims: list[tuple[int, int, pa.Table]] = []
    done: list[Any] = []
    for slab, its in sorted(pieces.items()):
        rows = [piece.rows for piece in its if piece.rows is not None]
        if not rows:
            continue
        above = [piece.above for piece in its if piece.above is not None]
        window = steps.window.window_of(rows, above, sum(piece.below for piece in its), plan)
        order = steps.order.ordered(window, plan, slab)
        found.append(steps.order.rows_of(window, order))
        done.append(steps.certificate.done_by(slab, order, len(window.time)))
        claims.extend(steps.claims.in_buckets(steps.claims.claims_of(window, plan, slab), buckets))
    verdict = steps.judge.Verdict()
    for bucket in range(buckets):
        mine = [(which, rows) for which, number, rows in claims if number == bucket]
        verdict.add(steps.judge.judge(steps.claims.joined(mine, plan), plan))
    certain = (
        steps.certificate.is_sound(done, verdict)
        and steps.certificate.needed_reach(done, verdict) <= plan.reach
        and steps.certificate.is_whole(done, verdict, table.num_rows)
    )
    stuck, correction = sum(each.stuck for each in done), max(each.correction for each in done)
    return Sliced(pa.concat_tables(found), certain, verdict, stuck, correction)


def shuffled(table: pa.Table, seed: int) -> pa.Table:
    return table.take(pa.array(np.random.default_rng(seed).permutation(table.num_rows)))


# ---------------------------------------------------------------- logs

SCHEMA = pa.schema(
    [
        ("process", pa.string()),
        ("seq", pa.int64()),
        ("kind", pa.string()),
        ("id", pa.string()),
        ("message", pa.string()),
        ("to", pa.list_(pa.string())),
        ("parents", pa.list_(pa.string())),
        ("time", pa.int64()),
        ("control", pa.bool_()),
    ]
)


def as_table(events: Sequence[Event]) -> pa.Table:
    """The events as rows of a trace: only ids that say more than process#seq."""
    floats = any(isinstance(event.time, float) for event in events)
    at = SCHEMA.get_field_index("time")
    schema = SCHEMA.set(at, pa.field("time", pa.float64() if floats else pa.int64()))
    rows = [{name: stated(event).get(name) for name in schema.names} for event in events]
    return pa.Table.from_pylist(rows, schema=schema)


def random_log(draw: random.Random) -> list[Event]:
    """Any log: skews from none to more than the whole log, clocks that jump, ties, references over any
    distance, gaps, unknown parents, messages that nobody sent, cycles."""

    def sometimes(chance: float) -> bool:
        return draw.random() < chance

    names = [
        f"p{'é' if sometimes(0.1) else ''}{number}" for number in range(draw.choice([1, 2, 3, 5, 20, 60]))
    ]
    tick = draw.choice([0, 1, 1, 3, 10])
    skew = draw.choice([0, 1, 5, 50, 1_000, 5_000])
    scale = 1 / 3 if sometimes(0.2) else 1
    texts, messages, gaps, lost = sometimes(0.4), sometimes(0.5), sometimes(0.3), sometimes(0.3)
    cycle, jumps = sometimes(0.15), sometimes(0.3)
    clock = {name: draw.randint(-skew, skew) for name in names}
    seq = dict.fromkeys(names, 0)
    events: list[Event] = []
    sent: list[str] = []
    now = 0
    for number in range(draw.choice([5, 20, 60, 200])):
        name = draw.choice(names) if sometimes(0.9) else names[0]
        seq[name] += 2 if gaps and sometimes(0.05) else 1
        now += draw.randint(0, tick)
        if jumps and sometimes(0.02):
            clock[name] += draw.randint(-2 * skew - 1, 2 * skew + 1)
        fields: dict[str, Any] = {}
        if texts and sometimes(0.9):
            fields["id"] = f"i{number}"
        which = draw.random() if messages else 1
        if which < 0.3:
            sent.append(f"m{number}")
            fields |= {"kind": "send", "message": sent[-1], "to": ("x",)}
        elif which < 0.6 and sent:
            among = sent[-5:] if sometimes(0.9) else sent
            fields |= {"kind": draw.choice(["deliver", "receive"]), "message": draw.choice(among)}
        elif which < 0.62:
            fields |= {"kind": "deliver", "message": f"never {number}", "control": sometimes(0.3)}
        parents = [
            draw.choice(events if sometimes(0.15) else events[-6:]).id
            for _ in range(draw.choice([0, 0, 0, 1, 1, 2]) if events else 0)
        ]
        if lost and sometimes(0.03):
            parents.append(draw.choice(["nobody", "p0#99999", "p0#0", "zz#1", "#3", "p0#01"]))
        time = (now + clock[name] + draw.randint(0, 2 * (tick > 0))) * scale
        events.append(Event(name, seq[name], parents=tuple(parents), time=time, **fields))
    if cycle and len(events) > 3:
        early = draw.randrange(len(events) - 1)
        late = draw.choice(events[early + 1 :])
        events[early] = replace(events[early], parents=(*events[early].parents, late.id))
    return events


class Log:
    """A log, and what its order is by definition."""

    def __init__(self, events: Sequence[Event], seed: int = 0) -> None:
        self.events = events
        self.table = shuffled(as_table(events), seed)
        self.buckets = 1 + seed % 3
        self.order = by_definition(events)
        time = {event.id: event.time for event in events}
        self.largest: Any = None
        """the largest correction; None if there is a cycle, whose events are never reached"""
        if all(each.level for each in self.order):
            self.largest = max(each.repaired - time[each.id] for each in self.order)

    def check(self, slabs: int, reach: Any, batch: int = 50, steps: Steps = SHIPPED) -> None:
        """What is accepted is the order, and it is accepted exactly where the reach is large enough."""
        found = in_slabs(self.table, plan_of(self.table, slabs, reach, steps), batch, self.buckets, steps)
        assert found.certain == (self.largest is not None and reach >= self.largest), (slabs, reach)
        if not found.certain:
            return
        rows = found.rows.select(["process", "seq", "id", "repaired", "position"]).to_pylist()
        got = [(row["id"] or f"{row['process']}#{row['seq']}", row["repaired"]) for row in rows]
        assert got == [(each.id, each.repaired) for each in self.order]
        assert [row["position"] for row in rows] == list(range(len(self.events)))
        assert sum(found.verdict.lost.values()) == lost_references(self.events)
        assert found.verdict.processes == len({event.process for event in self.events})


def lost_references(events: Sequence[Event]) -> int:
    """References to nothing; nobody misses the send of a control message."""
    received = [event for event in events if event.kind in ("receive", "deliver")]
    hidden = {event.message for event in received if event.control}
    sent = {event.message for event in events if event.kind == "send"}
    unsent = [event for event in received if event.message not in sent and event.message not in hidden]
    ids = {event.id for event in events}
    return len(unsent) + sum(parent not in ids for event in events for parent in event.parents)


def reaches(largest: Any) -> set[Any]:
    """Guesses far too small, just too small, just large enough, far too large."""
    if largest is None:
        return {0, 100, 10_000}
    half, huge = (largest / 2, 1e18) if isinstance(largest, float) else (largest // 2, 2**62)
    return {0, 1, half, largest, largest + 1, 10 * largest + 100, huge}

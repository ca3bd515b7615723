"""Causes, effects, chains and vectors against a slow definition: sets of events, closed under causes."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import accumulate, pairwise
from random import Random

import numpy as np
import pytest
from pyspark.sql import SparkSession

from causet.check.oracle import causal_pasts
from causet.errors import BadInput
from causet.formats.causality import direct_causes
from causet.formats.shiviz.read import read_shiviz
from causet.kernels.logs import reach, steps, vectors
from causet.kernels.logs.levels import fill_levels
from causet.kernels.logs.pages import ABSENT, DELIVERY, PLAIN, SENT, Pages, Piece
from causet.model import Event
from causet.spark.batch import vectors as columns_of
from causet.spark.batch.explain import explain
from causet.spark.batch.explanation import EventExplained, Related
from causet.spark.batch.happened_before import happened_before
from causet.spark.batch.reach import EventKernel, RelationKernel
from causet.spark.batch.vectors import causal_past, vector_clocks
from causet.spark.skeleton.blobs import pack
from causet.spark.skeleton.targets import Targets
from tests.helpers.logs import frame, many_logs, random_log, shuffled
from tests.helpers.places import TRACES
from tests.helpers.shiviz_logs import GOVECTOR, clocks_of, real


class Slow:
    """The definition. Events are numbered in the order of (process, seq)."""

    def __init__(self, events: Sequence[Event]) -> None:
        self.events = sorted(events, key=lambda event: (event.process, event.seq))
        self.causes = [sorted(set(causes)) for causes in direct_causes(self.events)]
        self.effects: list[list[int]] = [[] for _ in self.events]
        for effect, causes in enumerate(self.causes):
            for cause in causes:
                self.effects[cause].append(effect)
        self.number = {event.id: number for number, event in enumerate(self.events)}

    def __len__(self) -> int:
        return len(self.events)

    @cached_property
    def first(self) -> list[int]:
        counts: dict[str, int] = {}
        for event in self.events:
            counts[event.process] = counts.get(event.process, 0) + 1
        return list(accumulate(counts.values(), initial=0))

    @cached_property
    def pasts(self) -> list[set[int]]:
        return [set(self.steps(number, self.causes)) - {number} for number in range(len(self))]

    @cached_property
    def futures(self) -> list[set[int]]:
        return [set(self.steps(number, self.effects)) - {number} for number in range(len(self))]

    def steps(self, start: int, neighbours: list[list[int]]) -> dict[int, int]:
        """The fewest steps from one event to all that it leads to."""
        found = {start: 0}
        todo = [start]
        for at in todo:
            for other in neighbours[at]:
                if other not in found:
                    found[other] = found[at] + 1
                    todo.append(other)
        return found

    def nearest(self, start: int, neighbours: list[list[int]], count: int) -> list[tuple[int, int]]:
        steps = self.steps(start, neighbours)
        return sorted((steps[other], other) for other in steps if other != start)[:count]

    def chain(self, start: int, end: int) -> list[int]:
        """Of the shortest chains the smallest one."""
        chains = {start: [start]}
        while end not in chains:
            longer: dict[int, list[int]] = {}
            for other, chain in chains.items():
                for effect in self.effects[other]:
                    longer[effect] = min(longer.get(effect, [*chain, effect]), [*chain, effect])
            chains = longer
        return chains[end]

    def vector(self, number: int) -> dict[str, int]:
        found: dict[str, int] = {}
        for other in [number, *self.pasts[number]]:
            found[self.events[other].process] = found.get(self.events[other].process, 0) + 1
        return found

    def relation(self, a: int, b: int) -> str:
        if a == b:
            return "same"
        return "before" if a in self.pasts[b] else "after" if b in self.pasts[a] else "concurrent"

    def links(self) -> Iterator[tuple[int, int, int]]:
        """(effect, cause, kind) as a skeleton has them."""
        hidden = {event.message for event in self.events if event.control}
        sends = {event.message: number for number, event in enumerate(self.events) if event.kind == "send"}
        for effect, event in enumerate(self.events):
            yield from ((effect, self.number[id], PLAIN) for id in event.parents if id in self.number)
            if event.kind in ("receive", "deliver") and event.message in sends:
                delivery = event.kind == "deliver" and event.message not in hidden
                yield effect, sends[event.message], DELIVERY if delivery else PLAIN
            if event.kind == "send" and event.message not in hidden:
                yield effect, 0, SENT

    @contextmanager
    def pages(self, tight: bool = False) -> Iterator[Pages]:
        """The execution laid out, with its levels."""
        links = sorted(self.links())
        first = np.array(self.first, np.int64)
        pages = Pages(first, np.int64, 0 if tight else 1 << 24, shift=2 if tight else None)
        none = np.iinfo(np.int64).min
        times = [event.time if isinstance(event.time, int) else none for event in self.events]
        effects, causes, kinds = zip(*links, strict=True) if links else ((), (), ())
        pages.add(
            Piece(
                np.arange(len(self)),
                np.array(times, np.int64),
                np.array(effects, np.int64),
                np.array(causes, np.int64),
                np.array(kinds, np.int8),
            )
        )
        pages.seal()
        fill_levels(pages)
        try:
            yield pages
        finally:
            pages.close()

    def span(self, numbers: set[int], begins: list[int], ends: list[int]) -> list[int]:
        """For each process the end of those of these that begin it."""
        return [
            begin + len(numbers & set(range(begin, end))) for begin, end in zip(begins, ends, strict=True)
        ]


def a_run(seed: int, tight: bool) -> Slow:
    """A log, or several, so that not all of their pages can stay."""
    return Slow(many_logs(range(seed, seed + 6)) if tight else random_log(seed))


def some(run: Slow, count: int) -> list[int]:
    """A few events of a run, spread over it."""
    return list(range(0, len(run), max(1, len(run) // count)))


@pytest.mark.parametrize("tight", [False, True])
@pytest.mark.parametrize("seed", range(25))
def test_past_and_future_are_what_the_definition_says(seed: int, tight: bool) -> None:
    run = a_run(seed, tight)
    first, last = run.first[:-1], run.first[1:]
    for event in some(run, 6):
        with run.pages(tight) as pages:
            past, future = run.pasts[event] | {event}, run.futures[event] | {event}
            assert reach.past_of(pages, event).tolist() == run.span(past, first, last)
            assert reach.direct_causes(pages, event) == run.causes[event]
            near = reach.nearest_causes(pages, event, 7)
            assert [(each.steps, each.event) for each in near] == run.nearest(event, run.causes, 7)
            steps = run.steps(event, run.causes)
            for each in near:
                via = [e for e in run.effects[each.event] if steps.get(e) == each.steps - 1]
                assert each.via == min(via)
            ahead = reach.future_of(pages, event, nearest=7, direct=3)
            gone = set(range(len(run))) - future
            assert ahead.since.tolist() == run.span(gone, first, last)
            assert [(each.steps, each.event) for each in ahead.nearest] == run.nearest(event, run.effects, 7)
            steps = run.steps(event, run.effects)
            for each in ahead.nearest:
                via = [e for e in run.causes[each.event] if steps.get(e) == each.steps - 1]
                assert each.via == min(via)
            assert ahead.direct == run.effects[event][:3]
            assert ahead.direct_count == len(run.effects[event])


@pytest.mark.parametrize("seed", range(40))
def test_a_chain_is_the_smallest_of_the_shortest(seed: int) -> None:
    run = a_run(seed, tight=seed % 4 == 0)
    for start in some(run, 5):
        for end in sorted(run.futures[start])[:: max(1, len(run.futures[start]) // 4)]:
            with run.pages(tight=seed % 2 == 0) as pages:
                assert steps.shortest_chain(pages, start, end).tolist() == run.chain(start, end)


def test_a_chain_among_too_many_is_still_a_shortest_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "MOST_LINKS", 1024)
    width, length = 6, 60  # every event of a row knows all of the row before: 6^60 chains
    events = [
        Event(f"p{process}", row + 1, parents=tuple(f"p{other}#{row}" for other in range(width) if row))
        for process in range(width)
        for row in range(length)
    ]
    run = Slow(events)
    with run.pages() as pages:
        chain = steps.shortest_chain(pages, 0, len(run) - 1).tolist()
    assert chain[0] == 0 and chain[-1] == len(run) - 1 and len(chain) == length
    assert all(cause in run.causes[effect] for cause, effect in pairwise(chain))


@pytest.mark.parametrize("seed", range(30))
def test_what_precedes_a_message_is_what_the_oracle_says(seed: int) -> None:
    run = Slow(random_log(seed))
    expected = causal_pasts(run.events)
    with run.pages(tight=bool(seed % 2)) as pages:
        for number, event in enumerate(run.events):
            if event.kind == "send" and event.message in expected:
                until = reach.past_of(pages, number, only_deliveries=True)
                found = {
                    other.message
                    for at, other in enumerate(run.events)
                    if at != number and other.message in expected and other.kind == "send"
                    if at < until[pages.process_of(at)]
                }
                assert found == expected[event.message]


@pytest.mark.parametrize("tight", [False, True])
@pytest.mark.parametrize("seed", range(30))
def test_vectors_are_what_the_definition_says(seed: int, tight: bool) -> None:
    run = a_run(seed, tight)
    names = sorted({event.process for event in run.events})
    processes = np.arange(len(names))[seed % 2 :][::-1]
    expected = [[run.vector(number).get(names[p], 0) for p in processes] for number in range(len(run))]
    for sums in (False, True):
        found: dict[int, list[list[int]]] = {}
        with run.pages(tight) as pages:
            for chunks in vectors.vector_chunks(pages, processes, vectors.uses_of(pages), 2, sums):
                width = 1 if sums else len(processes)
                pieces = np.split(chunks.values, chunks.ends[:-1])
                for p, number, values in zip(chunks.process, chunks.number, pieces, strict=True):
                    for row, each in enumerate(values.reshape(-1, width).tolist()):
                        event = run.first[p] + 4 * number + row
                        assert event not in found
                        found[event] = each
        told: object = [[sum(row)] for row in expected] if sums else expected
        assert [found[number] for number in range(len(run))] == told
    asked = [(number, column) for number in some(run, 10) for column in range(len(processes))]
    with run.pages(tight) as pages:
        events, columns = (np.array(column, np.int64) for column in zip(*asked, strict=True))
        answers = vectors.known_counts(pages, processes, vectors.uses_of(pages), events, columns)
    assert answers.tolist() == [expected[number][column] for number, column in asked]


def test_more_events_are_kept_than_there_is_room_at_first() -> None:
    """Everything is sent before anything is received."""
    count = 3_000
    first = np.array([0, count, 2 * count], np.int64)
    pages = Pages(first, np.int64, 1 << 24)
    numbers = np.arange(2 * count)
    pages.add(Piece(numbers, numbers, numbers[count:], numbers[:count], np.full(count, PLAIN, np.int8)))
    pages.seal()
    fill_levels(pages)
    uses = vectors.uses_of(pages)
    assert uses.tolist() == [1] * count + [0] * count
    (chunks,) = vectors.vector_chunks(pages, np.array([0]), uses, 13, sums=False)
    pages.close()
    assert chunks.values.tolist() == [*range(1, count + 1), *range(1, count + 1)]
    assert not uses.any()


def test_links_to_one_event_are_counted_up_to_a_number() -> None:
    uses = vectors.no_uses(2)
    vectors.count_uses(uses, np.zeros(vectors.MANY + 5, np.int64))
    assert uses.tolist() == [vectors.MANY, 0]


# ---------------------------------------------------------------- why messages waited


def log_of_waits(seed: int) -> list[Event]:
    """Messages are received, and delivered later or never, in any order."""
    draw = Random(seed)
    processes = [f"p{number}" for number in range(draw.randint(2, 5))]
    seqs = dict.fromkeys(processes, 1)
    events = [Event(process, 1) for process in processes]
    flying: list[tuple[str, str]] = []
    held: list[tuple[str, str]] = []
    hidden: set[str] = set()

    def add(process: str, kind: str, message: str, **fields: object) -> None:
        seqs[process] += 1
        known: dict[str, object] = {"control": message in hidden, "time": len(events), **fields}
        events.append(Event(process, seqs[process], kind, message=message, **known))  # type: ignore[arg-type]

    for _ in range(draw.randint(10, 80)):
        chance = draw.random()
        if chance < 0.35:
            process, message = draw.choice(processes), f"m{len(events)}"
            to = draw.sample(processes, draw.randint(1, len(processes)))
            hidden |= {message} if draw.random() < 0.1 else set()
            add(process, "send", message, to=tuple(to))
            flying += [(target, message) for target in to]
        elif chance < 0.65 and flying:
            add((some := flying.pop(draw.randrange(len(flying))))[0], "receive", some[1])
            held.append(some)
        elif held:
            add((some := held.pop(draw.randrange(len(held))))[0], "deliver", some[1])
    return events


def targets_of(run: Slow) -> Targets:
    names = sorted({event.process for event in run.events})
    sends = [number for number, event in enumerate(run.events) if event.to]
    to = [[names.index(target) for target in run.events[number].to or ()] for number in sends]
    targets = Targets(len(names))
    ends = np.cumsum([len(each) for each in to])
    flat = np.array([target for each in to for target in each], np.int32)
    targets.add(pack([np.array(sends, np.int64), ends, flat, np.frombuffer(b"[]", np.uint8)]))
    return targets


@pytest.mark.parametrize("seed", range(40))
def test_a_message_waits_for_what_precedes_it(seed: int) -> None:
    run = Slow(log_of_waits(seed))
    hidden = {event.message for event in run.events if event.control}
    pasts = causal_pasts(run.events)
    sends = {event.message: number for number, event in enumerate(run.events) if event.kind == "send"}
    for message, past in pasts.items():
        received = [n for n, e in enumerate(run.events) if e.kind == "receive" and e.message == message]
        delivered = {
            e.process: n for n, e in enumerate(run.events) if e.kind == "deliver" and e.message == message
        }
        waits = tuple((n, delivered.get(run.events[n].process, ABSENT)) for n in received)
        kernel = EventKernel(sends[message], 0, sends[message], waits)
        with run.pages(tight=seed % 2 == 0) as pages, targets_of(run) as targets:
            found = kernel.found(pages, targets)["waits"] if waits else []
        assert len(found) == len(waits)
        for (receive, deliver), wait in zip(waits, found, strict=True):
            here = run.events[receive].process
            asked = {m for m in past if here in (run.events[sends[m]].to or ())}
            history = [e for e in run.events if e.process == here and e.kind == "deliver"]
            if deliver == ABSENT:
                assert wait["delivers"] == any(e.message not in hidden for e in history)
                if wait["delivers"]:
                    never = asked - {e.message for e in history}
                    assert {run.events[n].message for n in wait["missing"]} == never
                continue
            between = run.events[receive + 1 : deliver]
            assert wait["events"] == len(between)
            came = [e for e in between if e.kind == "deliver" and e.message not in hidden]
            assert wait["deliveries"] == len(came)
            told = [(run.events[event].id, run.events[send].message) for event, send in wait["awaited"]]
            assert told == [(e.id, e.message) for e in came if e.message in asked]


def test_steps_in_process_order_are_taken_together_and_a_long_chain_is_cut(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    events = [Event("p", n + 1) for n in range(5)]
    events += [Event("q", n + 1, parents=("p#3",) if n == 2 else ()) for n in range(6)]
    run = Slow(events)
    kernel = RelationKernel(10, 0)
    with run.pages() as pages, Targets(2) as targets:
        found = kernel.found(pages, targets)
    assert found == {
        "relation": "after",
        "steps": 6,
        "chain": [[0, 2, 2], [2, 7, 1], [7, 10, 3]],
        "left_out": 0,
    }
    monkeypatch.setattr(sys.modules[RelationKernel.__module__], "MOST_STEPS", 2)
    with run.pages() as pages, Targets(2) as targets:
        found = kernel.found(pages, targets)
    assert (found["chain"], found["left_out"]) == ([[0, 2, 2], [7, 10, 3]], 1)


# ---------------------------------------------------------------- on Spark

E = Event
STORY = [
    E("p1", 1, "send", message="p1:1", to=("p2", "p3"), time=1),
    E("p2", 1, "receive", message="p1:1", time=2),
    E("p2", 2, "deliver", message="p1:1", time=2),
    E("p2", 3, "send", message="p2:1", to=("p3", "p4"), time=3),
    E("p3", 1, "receive", message="p2:1", time=4),
    E("p3", 2, "receive", message="p1:1", time=9),
    E("p3", 3, "deliver", message="p1:1", time=9),
    E("p3", 4, "deliver", message="p2:1", time=10, id="at last"),
    E("p4", 1, "receive", message="p2:1", time=5),
    E("p4", 2, parents=("at last", "lost"), time=11),
    E("p4", 3, "deliver", message="p2:1", time=12),
    E("p5", 1),
]
"""p2:1 overtakes p1:1 on its way to p3, and waits there; at p4 it waits for nothing."""


def test_a_message_is_explained_with_its_waits(spark: SparkSession) -> None:
    found = explain(frame(spark, shuffled(STORY)), "p2:1", nearest=3)
    assert isinstance(found, EventExplained)
    assert found.fields["to"] == ["p3", "p4"]
    assert (found.causes.count, found.effects.count, found.concurrent) == (3, 7, 1)
    assert [each.id for each in found.concurrent_with] == ["p5#1"]
    assert [(each.event.id, each.how) for each in found.effects.direct] == [
        ("p3#1", "message"),
        ("at last", "message"),
        ("p4#1", "message"),
        ("p4#3", "message"),
    ]
    assert [(near.event.id, near.steps, near.how, near.via) for near in found.causes.nearest] == [
        ("p2#2", 1, "process order", "p2#3"),
        ("p1#1", 2, "message", "p2#2"),
        ("p2#1", 2, "process order", "p2#2"),
    ]
    assert [fault.kind for fault in found.faults] == ["unknown parent"]
    assert json.loads(found.to_json())["message"]["waits"][0]["waited"] == 6
    told = found.told().split("\n")
    assert told[1] == "Of the other 11 events: happened before it 3, after it 7, concurrent with it 1."
    assert told[-4:-2] == [
        "  p3 received p2:1 at 4 and delivered it at 10, after p1:1, which precedes it; in between 2 events, "
        "of which 1 delivery",
        "  p4 received p2:1 at 5 and delivered it at 12, longer than causal order asks: nothing that "
        "precedes it came in between; in between 1 event",
    ]


def test_a_message_that_is_held_for_ever_is_told_with_what_never_came(spark: SparkSession) -> None:
    events = [
        E("p", 1, "send", message="a", to=("q",)),
        E("p", 2, "send", message="b", to=("q",)),
        E("q", 1, "receive", message="b"),
        E("q", 2, "deliver", message="c"),
        E("r", 1, "send", message="c", to=("q",)),
        E("r", 3),
    ]
    found = explain(frame(spark, events), "q#1", nearest=0)
    assert found.told().split("\n")[-3:] == [
        "  q received b by q#1 and never delivered it, nor a, which precedes it",
        "FAULT: gap in seq: 1",
        '  process "r": 2',
    ]


def test_two_events_are_related_by_a_chain(spark: SparkSession) -> None:
    events = frame(spark, STORY)
    found = explain(events, "p4#2", "p1:1")
    assert isinstance(found, Related)
    assert found.told().split("\n")[:4] == [
        "p4#2 (at 11) happened after p1#1 (send p1:1 at 1), by 3 direct steps:",
        "  p1#1 (send p1:1 at 1) → p3#3 (deliver p1:1 at 9): message",
        "  p3#3 (deliver p1:1 at 9) → at last (deliver p2:1 at 10): process order",
        "  at last (deliver p2:1 at 10) → p4#2 (at 11): parent",
    ]
    assert [(step.how, step.steps) for step in found.chain] == [
        ("message", 1),
        ("process order", 1),
        ("parent", 1),
    ]
    concurrent = explain(events, "p5#1", "p3#4")  # the event that has another id
    assert isinstance(concurrent, Related)
    assert (concurrent.relation, concurrent.b.id, concurrent.chain) == ("concurrent", "at last", ())


def test_an_unknown_id_is_refused_with_what_is_near_it(spark: SparkSession) -> None:
    events = frame(spark, [*STORY, E("p6", 1, "deliver", message="never sent")])
    for id, said in (
        (
            "p3#77",
            'there is no event and no message "p3#77"; process "p3" has 4 events; near it are p3#1, p3#2, '
            "p3#3",
        ),
        ("at lost", 'there is no event and no message "at lost"; near it are at last'),
        ("never sent", 'the message "never sent" has no send; name one of its events: p6#1'),
    ):
        with pytest.raises(BadInput) as refused:
            explain(events, id)
        assert str(refused.value) == said


def test_what_is_no_execution_is_refused(spark: SparkSession) -> None:
    events = frame(spark, [E("p", 1, parents=("q#1",)), E("q", 1, parents=("p#1",))])
    with pytest.raises(BadInput, match="the trace has a cycle"):
        explain(events, "p#1")
    with pytest.raises(BadInput, match="the trace has a cycle"):
        events.transform(vector_clocks())
    with pytest.raises(BadInput, match="either pairs of events, or the id of one event"):
        happened_before(events)


@pytest.fixture(scope="module")
def merged() -> Slow:
    return Slow(many_logs(range(20)))


def test_events_of_random_logs_are_explained_as_the_definition_says(
    spark: SparkSession, merged: Slow
) -> None:
    events = frame(spark, shuffled(merged.events)).repartition(3).cache()
    for number in (57, 300):
        found = explain(events, merged.events[number].id, nearest=8)
        assert isinstance(found, EventExplained)
        past, future = merged.pasts[number], merged.futures[number]
        assert (found.causes.count, found.effects.count) == (len(past), len(future))
        assert found.concurrent == len(merged) - 1 - len(past) - len(future)
        beside = {merged.number[each.id] for each in found.concurrent_with}
        assert len(beside) == 8 and not beside & (past | future | {number})
        for cone, neighbours in ((found.causes, merged.causes), (found.effects, merged.effects)):
            assert [merged.number[each.event.id] for each in cone.direct] == neighbours[number]
            near = [(each.steps, merged.number[each.event.id]) for each in cone.nearest]
            assert near == merged.nearest(number, neighbours, 8)
    start = max(range(len(merged)), key=lambda number: len(merged.futures[number]))
    steps = merged.steps(start, merged.effects)
    end = max(steps, key=lambda number: (steps[number], number))
    related = explain(events, merged.events[start].id, merged.events[end].id)
    assert isinstance(related, Related)
    chain = [related.a.id, *(step.effect.id for step in related.chain)]
    expected = [merged.events[number].id for number in merged.chain(start, end)]
    assert related.steps == len(expected) - 1 == sum(step.steps for step in related.chain)
    assert [id for id in expected if id in chain] == chain


def test_vectors_do_not_depend_on_how_columns_are_grouped(spark: SparkSession, merged: Slow) -> None:
    events = frame(spark, shuffled(merged.events)).repartition(3)
    vector = {row.text: row.vector for row in columns_of._with_vectors(events, 17).collect()}
    assert vector == {event.id: merged.vector(number) for number, event in enumerate(merged.events)}
    for found in (events.transform(causal_past()), columns_of._with_past(events, 30)):
        past = {row.text: row.past for row in found.collect()}
        assert past == {event.id: len(merged.pasts[number]) for number, event in enumerate(merged.events)}


def test_pairs_are_related_as_the_definition_says(spark: SparkSession, merged: Slow) -> None:
    draw = Random(1)
    ids = [event.id for event in merged.events]
    pairs: list[tuple[str | None, str | None]] = [("lost", ids[0]), (ids[0], None), (ids[3], ids[3])]
    for _ in range(500):
        a = draw.randrange(len(ids))
        pairs.append((ids[a], ids[min(len(ids) - 1, max(0, a + draw.randint(-40, 40)))]))
    pairs += pairs[:5]
    events = frame(spark, shuffled(merged.events))
    asked = spark.createDataFrame(
        [(a, b, n) for n, (a, b) in enumerate(pairs)], "a string, b string, process long"
    )
    found = happened_before(events, asked).collect()
    assert sorted((row.process, row.a, row.b) for row in found) == [
        (n, a, b) for n, (a, b) in enumerate(pairs)
    ]
    number = merged.number
    for row in found:
        known = row.a in number and row.b in number
        assert row.relation == (merged.relation(number[row.a], number[row.b]) if known else None)
    assert {row.relation for row in found} == {"before", "after", "concurrent", "same", None}


@real
def test_the_vectors_of_a_real_log_are_its_clocks(spark: SparkSession) -> None:
    path = TRACES / "shiviz" / "chord.log"
    (execution,) = read_shiviz(path, parser=GOVECTOR)
    clocks = clocks_of(path.read_text(encoding="utf-8"), GOVECTOR)
    events = frame(spark, execution.events).cache()
    found = {(row.process, row.seq): row.vector for row in events.transform(vector_clocks()).collect()}
    assert found == {
        point: {host: count for host, count in clock.items() if count} for point, clock in clocks.items()
    }
    host, seq = max(clocks)[0], max(clocks)[1] // 2
    one = next(event for event in execution.events if (event.process, event.seq) == (host, seq))
    for row in happened_before(events, of=one.id).collect():
        before = clocks[host, seq].get(row.process, 0) >= row.seq
        after = clocks[row.process, row.seq].get(host, 0) >= seq
        relation = "same" if before and after else "before" if before else "after" if after else "concurrent"
        assert row.relation == relation

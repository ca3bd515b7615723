"""The kernels against definitions: levels, times, positions and blocks of random executions; names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pytest

from causet.holdback import HoldBack
from causet.kernels import names
from causet.kernels.logs import blocks, levels, tables
from causet.kernels.logs.pages import PLAIN, Pages, Piece, Repeated


class Execution(NamedTuple):
    """Events by process; `causes[p, s]` are direct predecessors in other processes, as (process, seq)."""

    counts: list[int]
    causes: dict[tuple[int, int], list[tuple[int, int]]]
    times: dict[tuple[int, int], int]

    def events(self) -> list[tuple[int, int]]:
        return [(p, s) for p, count in enumerate(self.counts) for s in range(count)]


def random_execution(seed: int) -> Execution:
    """Events happen one after the other; each may have causes among what happened in other processes."""
    draw = Random(seed)
    counts = [0] * draw.randint(1, 8)
    causes: dict[tuple[int, int], list[tuple[int, int]]] = {}
    times: dict[tuple[int, int], int] = {}
    happened: list[tuple[int, int]] = []
    for _ in range(draw.randint(0, 120)):
        p = draw.randrange(len(counts))
        others = [event for event in happened[-30:] if event[0] != p]
        event = (p, counts[p])
        causes[event] = [draw.choice(others) for _ in range(draw.choice([0, 0, 1, 2]))] if others else []
        times[event] = draw.randint(0, draw.choice([3, 200]))
        counts[p] += 1
        happened.append(event)
    return Execution(counts, causes, times)


ROOMY, TIGHT = 1 << 26, 0
"""Memory for all pages of these executions; memory for the fewest that can be."""


@contextmanager
def pages_of(run: Execution, kind: type = np.int64, budget: int = ROOMY) -> Iterator[Pages]:
    """The execution laid out by process; it arrives in pieces that are cut anyhow."""
    first = np.concatenate([[0], np.cumsum(run.counts)]).astype(np.int64)
    pages = Pages(first, kind, budget, shift=2 if budget == TIGHT else None)
    draw = Random(len(run.causes))
    events = run.events()
    draw.shuffle(events)
    links = [(effect, cause) for effect in run.causes for cause in run.causes[effect]]
    draw.shuffle(links)

    def number(event: tuple[int, int]) -> int:
        return int(first[event[0]]) + event[1]

    while events or links:
        some = sorted(events[:40], key=number)
        some_links = sorted(links[:25], key=lambda link: number(link[0]))
        events, links = events[40:], links[25:]
        pages.add(
            Piece(
                np.array([number(e) for e in some], np.int64),
                np.array([run.times[e] for e in some], kind),
                np.array([number(effect) for effect, _ in some_links], np.int64),
                np.array([number(cause) for _, cause in some_links], np.int64),
                np.full(len(some_links), PLAIN, np.int8),
            )
        )
    pages.seal()
    try:
        yield pages
    finally:
        pages.close()


def columns(pages: Pages) -> tuple[list[int], list[int], list[int]]:
    """Levels, repaired times and positions of all events."""
    found: tuple[list[int], list[int], list[int]] = ([], [], [])
    for page in range(pages.count):
        for column, values in zip(found, pages.resident(page), strict=True):
            column += values.tolist()
    return found


class Defined(NamedTuple):
    repaired: int
    level: int
    block: int


def by_definition(run: Execution) -> dict[tuple[int, int], Defined]:
    """The three of each event, word by word."""
    found: dict[tuple[int, int], Defined] = {}
    left = set(run.events())
    while left:
        for event in sorted(left):
            p, s = event
            direct = [*run.causes[event], *([(p, s - 1)] if s else [])]
            if all(cause in found for cause in direct):
                before = [found[cause] for cause in direct]
                repaired = max([run.times[event], *(cause.repaired for cause in before)])
                level = 1 + max((cause.level for cause in before if cause.repaired == repaired), default=0)
                found[event] = Defined(repaired, level, 1 + max((cause.block for cause in before), default=0))
                left.remove(event)
                break
    return found


@pytest.mark.parametrize("budget", [ROOMY, TIGHT])
@pytest.mark.parametrize("seed", range(80))
def test_levels_times_positions_and_blocks_are_what_the_definition_says(seed: int, budget: int) -> None:
    run = random_execution(seed)
    expected = by_definition(run)
    with pages_of(run, np.float64 if seed % 2 else np.int64, budget) as pages:
        waiting = levels.fill_levels(pages)
        assert waiting.done.tolist() == run.counts
        block = blocks.blocks_of(pages)
        assert block.nbytes == blocks.BLOCK_BYTES * pages.events
        levels.fill_positions(pages)
        level, repaired, position = columns(pages)
    assert list(zip(repaired, level, block.tolist(), strict=True)) == [expected[e] for e in run.events()]
    ranked = sorted(run.events(), key=lambda e: (expected[e].repaired, expected[e].level, *e))
    assert [run.events()[i] for i in np.argsort(position)] == ranked
    assert sorted(position) == list(range(len(position)))


def test_levels_begin_again_where_the_repaired_time_is_later() -> None:
    """Worked out by hand. Process 0 has the times 1, 1, 5, 2; process 1 has 5, 5 and 3, and its second event
    knows the second of process 0."""
    run = Execution(
        [4, 3],
        {(0, 0): [], (0, 1): [], (0, 2): [], (0, 3): [(1, 1)], (1, 0): [], (1, 1): [(0, 1)], (1, 2): []},
        {(0, 0): 1, (0, 1): 1, (0, 2): 5, (0, 3): 2, (1, 0): 5, (1, 1): 5, (1, 2): 3},
    )
    with pages_of(run) as pages:
        levels.fill_levels(pages)
        assert blocks.blocks_of(pages).tolist() == [1, 2, 3, 4, 1, 3, 4]
        levels.fill_positions(pages)
        level, repaired, position = columns(pages)
    assert repaired == [1, 1, 5, 5, 5, 5, 5]
    assert level == [1, 2, 1, 3, 1, 2, 3]
    assert position == [0, 1, 2, 5, 3, 4, 6], "by blocks, the first of process 1 would come before (0, 2)"


@pytest.mark.parametrize("seed", range(40))
def test_the_kernel_releases_what_the_engine_releases(seed: int) -> None:
    """Events offered to the hold-back engine in any order; causes that never happen hold what needs them."""
    run = random_execution(seed)
    draw = Random(-seed)
    for event in run.causes:
        if draw.random() < 0.02:
            run.causes[event].append(event)  # waits for itself
    offered = run.events()
    draw.shuffle(offered)
    engine: HoldBack[tuple[int, int]] = HoldBack()
    for p, s in offered:
        causes = [(q, k + 1) for q, k in run.causes[p, s]]
        engine.offer((p, s + 1), [(p, s), *causes], (p, s))
    out = []
    while (free := engine.pop()) is not None:
        out.append(free)
        engine.advance(free[0], free[1] + 1)
    with pages_of(run, budget=TIGHT if seed % 2 else ROOMY) as pages:
        done = levels.fill_levels(pages).done
    assert done.tolist() == [sum(event[0] == p for event in out) for p in range(len(run.counts))]


def has_two_processes(seed: int) -> bool:
    return sum(count > 0 for count in random_execution(seed).counts) > 1


@pytest.mark.parametrize("seed", [*filter(has_two_processes, range(60))])
def test_a_circle_is_found_and_shown(seed: int) -> None:
    """Two events of different processes are made causes of each other, directly or through others."""
    run = random_execution(seed)
    draw = Random(seed)
    a, b = draw.sample([e for e in run.events() if e[1] == 0], 2)
    last_a, last_b = (a[0], run.counts[a[0]] - 1), (b[0], run.counts[b[0]] - 1)
    run.causes[a].append(last_b)
    run.causes[b].append(last_a)
    with pages_of(run, budget=TIGHT if seed % 2 else ROOMY) as pages:
        waiting = levels.fill_levels(pages)
        assert waiting.done.sum() < len(run.events())
        circle = [run.events()[i] for i in levels.cycle(pages, waiting)]
    assert len(circle) == len(set(circle)) >= 2
    for before, after in zip(circle, [*circle[1:], circle[0]], strict=True):
        assert before in run.causes[after] or before == (after[0], after[1] - 1)


def test_there_is_no_circle_where_all_was_released() -> None:
    with pages_of(random_execution(3)) as pages:
        assert levels.cycle(pages, levels.fill_levels(pages)) == []


@pytest.mark.parametrize("budget", [ROOMY, TIGHT])
def test_a_long_chain_across_processes_costs_no_stack_and_no_rounds(budget: int) -> None:
    """40,000 levels: two processes that answer each other."""
    n = 20_000
    causes = {(0, s): [(1, s - 1)] if s else [] for s in range(n)} | {(1, s): [(0, s)] for s in range(n)}
    with pages_of(Execution([n, n], causes, dict.fromkeys(causes, 0)), budget=budget) as pages:
        assert levels.fill_levels(pages).done.tolist() == [n, n]
        levels.fill_positions(pages)
        assert max(columns(pages)[0]) == 2 * n
        assert columns(pages)[2] == [*range(0, 2 * n, 2), *range(1, 2 * n, 2)]


@pytest.mark.parametrize("budget", [ROOMY, TIGHT])
def test_an_event_that_stands_twice_is_named(budget: int) -> None:
    first = np.array([0, 9], np.int64)
    pages = Pages(first, np.int64, budget)
    nothing = np.empty(0, np.int64)
    for events in ([1, 2, 3, 8], [0, 4, 5, 6, 6]):  # as many as there should be, and 7 is not among them
        column = np.array(events, np.int64)
        pages.add(Piece(column, column, nothing, nothing, np.empty(0, np.int8)))
    pages.seal()
    with pytest.raises(Repeated) as caught:
        levels.fill_levels(pages)
    pages.close()
    assert caught.value.event == 6


def test_the_table_of_watched_events_finds_what_is_in_it_and_nothing_else() -> None:
    draw = Random(5)
    table, values = np.full(64, -1, np.int64), np.zeros(64, np.int32)
    expected: dict[int, int] = {}
    for _ in range(5_000):
        key = draw.choice([draw.randrange(100), draw.randrange(1 << 40)])
        at = tables.find(table, key)
        assert (table[at] == key) == (key in expected)
        if key in expected:
            assert values[at] == expected.pop(key)
            tables.remove(table, values, at)
        elif len(expected) < 40:
            table[at], values[at] = key, len(expected)
            expected[key] = len(expected)
        assert all(values[tables.find(table, k)] == v for k, v in list(expected.items())[:5])


KEY = 0x5DEECE66D1234567
TEXTS = [
    "",
    "a",
    "b",
    "ab",
    "ba",
    "a" * 8,
    "a" * 9,
    "aaaaaaab",
    "é",
    "p#1",
    "p#12",
    "\x00",
    "\x00\x00",
    "x" * 1000,
]


def hashes(texts: list[str], key: int = KEY) -> list[tuple[int, int]]:
    offsets, data = names.text_buffers(pa.array(texts, pa.string()))
    low, high = np.empty(len(texts), np.uint64), np.empty(len(texts), np.uint64)
    names.hash_texts(offsets, data, key, low, high)
    return list(zip(low.tolist(), high.tolist(), strict=True))


def test_different_texts_have_different_hashes_and_equal_ones_equal_hashes() -> None:
    many = TEXTS + [f"{a}{b}" for a in "xyz" for b in range(20_000)]
    found = hashes(many)
    assert len(set(found)) == len(many)
    assert len({low for low, _ in found}) == len(many)
    assert hashes(many[::-1]) == found[::-1]
    assert not set(found) & set(hashes(many, KEY + 1))


def test_hashes_do_not_depend_on_where_a_text_lies() -> None:
    column = pa.array(["padding", *TEXTS, "more"], pa.string()).slice(1, len(TEXTS))
    offsets, data = names.text_buffers(column)
    low, high = np.empty(len(TEXTS), np.uint64), np.empty(len(TEXTS), np.uint64)
    names.hash_texts(offsets, data, KEY, low, high)
    assert list(zip(low.tolist(), high.tolist(), strict=True)) == hashes(TEXTS)


PROCESSES = ["p1", "p2", "p", "p#1", "é", "", "x" * 50]
REFERENCES = {
    "p1#7": (0, 7),
    "p2#123456789012345678": (1, 123456789012345678),
    "p2#1234567890123456789": None,  # 19 digits are more than a seq has
    "p#1#2": (3, 2),
    "p#1": (2, 1),
    "é#3": (4, 3),
    "#4": (5, 4),
    "x" * 50 + "#1": (6, 1),
    "p1#0": None,
    "p1#01": None,
    "p1#": None,
    "p1": None,
    "": None,
    "#": None,
    "7": None,
    "p9#1": None,
    "p1#-1": None,
    "p1#1 ": None,
    "p1 #1": None,
}


def test_references_are_taken_apart_at_the_last_sign() -> None:
    name_offsets, name_data = names.text_buffers(pa.array(PROCESSES))
    table = names.name_table(name_offsets, name_data, KEY)
    offsets, data = names.text_buffers(pa.array(list(REFERENCES)))
    process, seq = np.empty(len(REFERENCES), np.int32), np.zeros(len(REFERENCES), np.int64)
    names.parse_references(offsets, data, name_offsets, name_data, table, KEY, process, seq)
    pairs = zip(process.tolist(), seq.tolist(), strict=True)
    found = [None if p == names.ABSENT else (p, s) for p, s in pairs]
    assert dict(zip(REFERENCES, found, strict=True)) == REFERENCES


def test_names_have_the_numbers_of_the_table() -> None:
    wanted = [*PROCESSES[::-1], "p3", "P1", *PROCESSES]
    name_offsets, name_data = names.text_buffers(pa.array(PROCESSES))
    table = names.name_table(name_offsets, name_data, KEY)
    offsets, data = names.text_buffers(pa.array(wanted))
    number = np.empty(len(wanted), np.int32)
    names.number_names(offsets, data, name_offsets, name_data, table, KEY, number)
    assert number.tolist() == [PROCESSES.index(n) if n in PROCESSES else names.ABSENT for n in wanted]

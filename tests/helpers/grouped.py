"""Messages to groups that overlap: random executions by the rule of frontiers, and what readers must get.

What must be delivered is found here by happened-before alone: sets of messages, and no numbers.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from causet.delivery import Conflict, Delivered, Delivery
from causet.frontier import Frontier
from causet.kernels.streams import holding
from causet.kernels.streams.keys import key_of
from causet.status import POLICIES, STATUSES
from tests.helpers.held_messages import Grouped, grouped_messages
from tests.helpers.holding import InMemory


class Sent(NamedTuple):
    """A message of an execution."""

    name: str
    stamped: Grouped
    past: frozenset[str]
    """the names of all messages that happened before it"""


def execution(
    rng: random.Random, processes: int = 4, groups: int = 4, messages: int = 20
) -> tuple[list[Sent], list[str]]:
    """An execution of some processes: each reads some groups, in causal order, and writes to one or several,
    which it need not read. And the names of the groups."""
    names = [f"g{number}" for number in range(1, rng.randrange(1, groups + 1) + 1)]
    count = rng.randrange(1, processes + 1)
    reads = [set(rng.sample(names, rng.randrange(0, len(names) + 1))) for _ in range(count)]
    knows: list[Frontier[str, str]] = [Frontier(f"p{number + 1}") for number in range(count)]
    pasts: list[frozenset[str]] = [frozenset()] * count
    made: list[Sent] = []
    for _ in range(rng.randrange(1, messages + 1)):
        at = rng.randrange(count)
        for sent in made:  # in the order of sending, which is causal; what comes before is delivered before
            if sent.name in pasts[at] or not reads[at] & set(sent.stamped[1]) or rng.random() < 0.3:
                continue
            missing = {each.name for each in made if reads[at] & set(each.stamped[1])} & sent.past
            if missing <= pasts[at]:
                knows[at].saw(*sent.stamped[:3])
                pasts[at] |= sent.past | {sent.name}
        to = rng.sample(names, min(len(names), rng.choice([1, 1, 1, 2, 3])))
        numbers, past = knows[at].stamp(to)
        name = f"m{len(made) + 1}"
        made.append(Sent(name, (f"p{at + 1}", numbers, past, 1), pasts[at]))
        pasts[at] |= {name}
    return made, names


def shuffled(rng: random.Random, made: Sequence[Sent]) -> list[list[Sent]]:
    """In another order, some lost, some twice, some with the number of another one; in batches."""
    kept = [each for each in made if rng.random() < 0.9]
    again = [each for each in kept if rng.random() < 0.15]
    kept += [each._replace(stamped=(*each.stamped[:3], rng.choice([1, 1, 2]))) for each in again]
    window = rng.choice([1, 3, 100])
    places = sorted((at + rng.random() * window, at) for at in range(len(kept)))
    ordered = [kept[at] for _, at in places]
    size = rng.choice([1, 2, 5, 100])
    return [ordered[at : at + size] for at in range(0, len(ordered), size)]


def due(made: Sequence[Sent], came: Collection[str], reads: Collection[str]) -> set[str]:
    """What a reader of these groups must have by now: all that came for it and whose past, as far as it is
    for this reader, came too."""
    mine = {each.name for each in made if set(each.stamped[1]) & set(reads)}
    return {each.name for each in made if each.name in mine & set(came) and each.past & mine <= set(came)}


class GroupKernel:
    """The kernel for one reader, asked in the words of the engine."""

    def __init__(self, policy: str, patience: int, reads: Collection[str], module: Any = holding) -> None:
        self.module, self.reads = module, reads
        self.holding = module.Holding.empty()
        self.policy, self.patience = POLICIES.index(policy), patience
        self.places: list[Sent] = []
        self.names: dict[bytes, tuple[str, str]] = {}
        self.store: dict[tuple[int], tuple[bytes]] = {}
        self.duplicates = self.conflicts = 0

    def step(self, batch: Sequence[Sent], now: int, ended: bool = False) -> list[Delivered[str]]:
        self.holding = self.module.Holding.from_bytes(self.holding.to_bytes())
        for process, numbers, past, _ in (each.stamped for each in batch):
            named = [(g, process) for g in numbers] + [(g, p) for g in past for p in past[g]]
            self.names |= {key_of("r", *each): each for each in named}
        taken = grouped_messages([each.stamped for each in batch], self.reads, len(self.places))
        self.places.extend(batch)
        outcome = self.holding.step(
            taken,
            self.module.Marks(InMemory(self.store), self.holding.marks),
            now,
            self.policy,
            now if ended else now - self.patience,
        )
        self.duplicates += outcome.duplicates
        self.conflicts += len(outcome.conflicts)
        assert not len(outcome.selfish) and not len(outcome.forgotten) and not len(outcome.far)
        missing: dict[int, dict[str, dict[str, int]]] = {}
        for turn, stream, number in outcome.missing:
            group, process = self.names[stream]
            mine = missing.setdefault(turn, {}).setdefault(group, {})
            mine[process] = max(number, mine.get(process, 0))
        return [
            Delivered(
                self.places[place].stamped[0],
                0,
                self.places[place].name,
                None if index < 0 else int(index),
                STATUSES[status],
                float(waited),
                missing.get(turn, {}),
            )
            for turn, (place, index, status, waited) in enumerate(
                zip(outcome.place, outcome.index, outcome.status, outcome.waited, strict=True)
            )
        ]


def check_statuses(
    left: Sequence[Delivered[str]], made: Sequence[Sent], reads: Collection[str], policy: str, waiting: int
) -> None:
    """What each status promises, from the stamps alone: what was delivered before, and what was missing."""
    stamps = {each.name: each.stamped for each in made}
    here = {
        (process, group, number): name
        for name, (process, numbers, _, _) in stamps.items()
        for group, number in numbers.items()
    }
    delivered: set[str] = set()
    gone: set[str] = set()
    named: set[str] = set()
    for each in left:
        assert each.payload not in delivered | gone
        process, numbers, past, _ = stamps[each.payload]
        needs = [(process, g, n - 1) for g, n in numbers.items() if g in reads and n > 1]
        needs += [(p, g, n) for g, entries in past.items() if g in reads for p, n in entries.items()]
        unmet: dict[str, dict[str, int]] = {}
        for p, g, n in needs:
            if here[p, g, n] not in delivered:
                mine = unmet.setdefault(g, {})
                mine[p] = max(n, mine.get(p, 0))
        assert each.missing == unmet
        if each.status == "diverted":
            assert each.index is None and unmet
            gone.add(each.payload)
            continue
        assert each.index == len(delivered)
        late = each.payload in named
        assert each.status == ("late" if late else "flagged" if unmet else "delivered")
        named |= {here[need] for need in needs} - delivered
        delivered.add(each.payload)
    if policy == "wait":
        assert not gone and not named
    assert waiting >= 0


def compare_groups(policy: str, seed: int, module: Any = holding) -> set[str]:
    """The kernel against the engine, and both against the definition, for one reader of random groups; the
    statuses that were seen."""
    rng = random.Random(seed)
    made, groups = execution(rng)
    reads = rng.sample(groups, rng.randrange(1, len(groups) + 1))
    patience = rng.choice([1, 3, 10])
    engine: Delivery[str] = Delivery(policy, None if policy == "wait" else patience, reads)
    kernel = GroupKernel(policy, patience, reads, module)
    by_engine: list[Delivered[str]] = []
    by_kernel: list[Delivered[str]] = []
    came: set[str] = set()
    now = again = conflicts = 0
    mine = [each for each in made if set(each.stamped[1]) & set(reads)]
    for some in shuffled(rng, made):
        batch = [each for each in some if set(each.stamped[1]) & set(reads)]
        now += rng.randrange(1, 4)
        for each in sorted(batch, key=lambda each: each.stamped[3]):  # of one number, the smallest counts
            try:
                again += not engine.offer_to(*each.stamped[:3], each.name, now, each.stamped[3])
            except Conflict:
                conflicts += 1
            came.add(each.name)
        left, found = engine.take(now), kernel.step(batch, now)
        assert {(e.payload, e.status, e.waited) for e in left} == {
            (e.payload, e.status, e.waited) for e in found
        }
        by_engine += left
        by_kernel += found
        assert len(engine) == len(kernel.holding)
        if policy == "wait":
            assert {each.payload for each in by_kernel} == due(mine, came, reads), "not early, and not late"
    assert (again, conflicts) == (kernel.duplicates, kernel.conflicts)
    if rng.random() < 0.5:
        now += 1
        by_engine += engine.take(now, ended=True)
        by_kernel += kernel.step([], now, ended=True)
        assert policy == "wait" or len(engine) == 0
    assert len(engine) == len(kernel.holding)
    for found in (by_engine, by_kernel):
        check_statuses(found, made, reads, policy, len(engine))
        assert len(found) + len(engine) == len(came)
    if policy == "wait":
        places = {each.payload: at for at, each in enumerate(by_kernel)}
        pasts = {each.name: each.past for each in made}
        assert all(places[cause] < at for name, at in places.items() for cause in pasts[name] & places.keys())
    return {each.status for each in by_kernel}

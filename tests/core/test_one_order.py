"""One order for all: processes whose delivery orders have none in common, and the merge, which has no such.

Two implementations are held to each other and to the transitive closure of all pairs: the plain one of the
checkers (`check.agreement`) and the kernel of `verify` (`kernels.logs.agreement`).
"""

from __future__ import annotations

from itertools import combinations, product
from random import Random
from typing import Any

import numpy as np
import pytest

from causet.check.agreement import disagreements
from causet.check.explorer import explore
from causet.check.oracle import judge
from causet.check.runs import judged, run
from causet.check.scopes import scopes_for
from causet.errors import BadInput
from causet.holdback import HoldBackFull
from causet.kernels.logs.agreement import cycles_in
from causet.model import Event, System, named_processes, only
from causet.protocols import PROTOCOLS, Packet, Process, Protocol, make_options
from causet.protocols.merge import Merge
from causet.simulate.network import Network
from causet.simulate.record import Recorder
from causet.simulate.replay import replay
from causet.simulate.schedule import parse, write_schedule
from causet.simulate.workload import Workload, delay_of
from causet.topology import groups_of
from tests.helpers.exhibits import delivered
from tests.helpers.exhibits import run as replayed

OWN = """
processes: [p1, p2]
groups: {both: [p1, p2]}
steps:
  - {send: x, from: p2, to: [p1, p2]}
  - {send: y, from: p1, to: [p1, p2]}
  - {receive: y, at: p2}
  - {receive: x, at: p1}
  - drain
"""


def random_orders(draw: Random) -> dict[str, list[str]]:
    """Parts of one order, some with two messages exchanged or one repeated."""
    messages = [f"m{number}" for number in range(draw.randint(2, 9))]
    orders = {}
    for process in range(draw.randint(2, 5)):
        order = sorted(draw.sample(messages, draw.randint(1, len(messages))))
        if draw.random() < 0.4:
            i, j = draw.randrange(len(order)), draw.randrange(len(order))
            order[i], order[j] = order[j], order[i]
        orders[f"p{process}"] = order + order[: draw.random() < 0.2]
    return orders


def has_cycle(orders: dict[str, list[str]]) -> bool:
    """By the definition: the transitive closure of every pair."""
    before = {pair for order in orders.values() for pair in combinations(dict.fromkeys(order), 2)}
    messages = {message for pair in before for message in pair}
    for middle, one, other in product(sorted(messages), repeat=3):
        if (one, middle) in before and (middle, other) in before:
            before.add((one, other))
    return any((message, message) in before for message in messages)


def test_both_implementations_find_a_cycle_exactly_where_there_is_one() -> None:
    cyclic = 0
    for seed in range(600):
        orders = random_orders(Random(seed))
        found = disagreements(orders)
        assert bool(found) == has_cycle(orders), seed
        for each in found:
            after = [*each.cycle[1:], each.cycle[0]]
            for process, one, other in zip(each.processes, each.cycle, after, strict=True):
                assert orders[process].index(one) < orders[process].index(other), seed
        numbers = [(int(p[1:]), int(m[1:])) for p, order in orders.items() for m in order]
        who, what = (np.array(column, np.int64) for column in zip(*numbers, strict=True))
        kernel = cycles_in(who.astype(np.int32), what)
        told = [([f"m{m}" for m in c.sends], [f"p{p}" for p in c.processes]) for c in kernel]
        assert told == [(list(each.cycle), list(each.processes)) for each in found], seed
        cyclic += bool(found)
    assert 100 < cyclic < 500


def test_a_sender_that_addresses_itself_delivers_its_copy_in_the_one_order() -> None:
    result = replayed(parse(OWN), "merge")
    # Both are stamped at clock 0, so the processes decide: p1's message first, at both.
    assert delivered(result, "p1") == delivered(result, "p2") == ["y", "x"]
    sends = [event for event in result.events if event.kind == "send"]
    assert [event.to for event in sends] == [("p1",), ("p2",)]  # without the sender
    verdict = judge(result.events)
    assert (verdict.status, verdict.deliveries, verdict.disagreements) == ("valid", 4, ())


@pytest.mark.parametrize("name", [name for name in PROTOCOLS if name != "merge"])
def test_every_other_protocol_delivers_it_at_the_send_and_is_caught(name: str) -> None:
    result = replayed(parse(OWN), name)
    for process, own in (("p1", "y"), ("p2", "x")):
        mine = [(e.kind, e.message) for e in result.events if e.process == process and not e.control]
        assert mine[mine.index(("send", own)) + 1] == ("deliver", own)
    verdict = judge(result.events)
    assert verdict.status == "valid" and len(verdict.disagreements) == 1


def test_own_copies_are_held_within_the_capacity() -> None:
    system = System(named_processes(2))
    options, _ = make_options(Merge, system, {"capacity": 1})
    process = Process(Merge, 0, system, options)
    assert process.send(0b11).packets
    before = process.snapshot()
    with pytest.raises(HoldBackFull, match="p1 holds 1 messages back and its capacity is 1"):
        process.send(0b11)
    assert process.snapshot() == before
    assert process.send(0b10).packets  # to others only


def one_run(kind: type[Protocol], seed: int, **settings: object) -> tuple[int, int]:
    """(disagreements, violations) of a random run with own copies, by the oracle; the judge says the same."""
    draw = Random(seed)
    size = draw.randint(2, 5)
    system = System(named_processes(size), groups_of(draw.choice(["all", "pairs", "twins"]), size, 1))
    chosen = {"epsilon": draw.randint(0, 3), "delta": draw.randint(2, 6), **settings}
    if kind is Merge or issubclass(kind, Merge):
        chosen = {"events_per_tick": draw.choice([1, 2, 256]), "clock": draw.choice(["kn", "rc"]), **chosen}
    else:
        chosen = {}
    options, _ = make_options(kind, system, chosen)
    loss = draw.choice([0.0, 0.1]) if kind.PROMISES.loss else 0.0
    workload = Workload(system, 40, draw.choice([0.3, 2.0]), delay_of("uniform:0:2"), seed, own_copies=True)
    events: list[Event] = []
    recorder = Recorder(system, events.append)
    result = run(kind, options, workload, Network(loss=loss), one_order=True, observers=[recorder])
    verdict = judge(events)
    assert result.disagreements == verdict.disagreements
    assert result.tally.outstanding == 0 and verdict.strangers == () and verdict.duplicates == ()
    own = sum(e.kind == "deliver" and (e.message or "").startswith(f"{e.process}:") for e in events)
    assert own == verdict.messages == 40
    return len(verdict.disagreements), len(judge(events, receptions_teach=kind.hears).violations) * (not loss)


def test_the_merge_never_disagrees_own_copies_included() -> None:
    assert [one_run(Merge, seed) for seed in range(30)] == [(0, 0)] * 30


@pytest.mark.soak
@pytest.mark.parametrize("chunk", range(4))
def test_the_merge_never_disagrees_in_a_thousand_runs(chunk: int) -> None:
    for seed in range(1000 + chunk * 250, 1000 + (chunk + 1) * 250):
        assert one_run(Merge, seed) == (0, 0), seed


class BreaksTiesByArrival(Merge):
    """Mutant: what `less` does not decide goes by arrival, which differs from process to process."""

    def rank(self, packet: Packet) -> object:
        stamp = self._repaired(self._unwrapped(packet.stamp))
        return self.clock.key(stamp, 0, 0)


class DeliversOwnCopiesAtOnce(Merge):
    """Mutant: a sender's own copy is outside the order."""

    keeps_own = False


@pytest.mark.parametrize("kind", [BreaksTiesByArrival, DeliversOwnCopiesAtOnce])
def test_a_merge_without_one_order_is_caught_by_random_runs_and_by_the_explorer(kind: type[Merge]) -> None:
    assert sum(one_run(kind, seed, clock="kn", events_per_tick=256)[0] > 0 for seed in range(30)) > 5
    scopes = [named.scope for named in scopes_for(kind, 2, 2, every=False) if named.scope.one_order]
    assert scopes and "disagree" in explore(scopes[0]).findings


def test_the_explorer_judges_the_one_order_that_merge_promises_by_default() -> None:
    judged_scopes = [named.scope for named in scopes_for(Merge, 2, 3) if named.scope.one_order]
    assert [(s.messages, s.horizon, s.own_copies) for s in judged_scopes] == [(3, 1, True), (2, 2, True)]
    for scope in judged_scopes:
        report = explore(scope)
        assert report.complete and not report.findings and report.states > 50
    for name in ("fifo", "matrix"):
        assert not any(named.scope.one_order for named in scopes_for(PROTOCOLS[name], 2, 2))


def test_with_one_event_per_tick_no_interleaving_of_three_messages_is_wrong() -> None:
    """Complete for K = 1, three processes and three messages, with copies lost and clocks apart."""
    judged_scopes = scopes_for(Merge, 3, 3, settings={"events_per_tick": 1})
    assert {(each.scope.messages, each.scope.one_order) for each in judged_scopes} >= {(3, False), (3, True)}
    for each in judged_scopes:
        report = explore(each.scope)
        assert report.complete and not report.findings and report.states > 200, each.label


@pytest.mark.parametrize("name", ["fifo", "vector", "matrix", "slow"])
def test_the_explorer_shows_that_the_others_have_no_one_order(name: str) -> None:
    [first, *_] = scopes_for(PROTOCOLS[name], 2, 2, one_order=True, every=False)
    report = explore(first.scope)
    assert "disagree" in report.findings
    assert report.shortest is not None and report.finding is not None
    assert "there is no one order: p1 delivered p1:1 before p2:1" in report.finding.text
    assert judge(replayed(report.shortest, name).events).disagreements
    again = parse(write_schedule(report.shortest))  # what is written down shows the same
    assert judge(replayed(again, name).events).disagreements


def test_a_send_can_name_its_group_and_all_of_its_members() -> None:
    text = "processes: [p1, p2, p3]\ngroups: {{g: [p1, p2]}}\nsteps:\n  - {{send: a, from: p1, {}, group: g}}"
    assert parse(text.format("to: [p1, p2]")).steps[0].targets == 0b011
    assert parse(text.format("to: [p2]")).steps[0].targets == 0b010
    with pytest.raises(BadInput, match="or both, where `to` has all its members"):
        parse(text.format("to: [p2, p3]"))


def test_an_own_copy_that_is_still_held_counts_as_not_delivered() -> None:
    """K1 as printed: p1 delivers b before its own a, and the trace ends before a leaves."""
    reports = [
        (named.scope, report)
        for named in scopes_for(Merge, 2, 2, as_printed="K1")
        if (report := explore(named.scope)).findings
    ]
    assert reports
    for scope, report in reports:
        assert report.finding is not None and report.shortest is not None and report.finding.kind == "unsafe"
        result = replay(report.shortest, scope.kind, scope.options)
        assert [(v.process, v.delivered, v.before) for v in judged(result, Merge).violations] == [
            ("p1", "b", "a")
        ]
        assert result.own == {("p1", "a"), ("p2", "b")}
        assert not judge(result.events, lost=result.lost, receptions_teach=True).violations


@pytest.mark.parametrize(
    ("messages", "settings"),
    [(7, {"events_per_tick": 1}), (2, {"events_per_tick": 1, "clock": "rc", "quiet": 4})],
)
def test_sends_that_were_put_off_are_given_the_time_to_leave(messages: int, settings: Any) -> None:
    for named in scopes_for(Merge, 2, messages, settings=settings):
        report = explore(named.scope)
        assert report.complete and not report.findings, named.label


def test_deliveries_between_faults_are_compared_too() -> None:
    """With ties by arrival there is no one order, and faults in the run do not hide that."""
    system = System(named_processes(4), groups_of("all", 4, 1))
    workload = Workload(system, 1500, 0.5, delay_of("uniform:0:2"), 1, own_copies=True)
    found = {}
    for kind in (Merge, BreaksTiesByArrival):
        options, _ = make_options(kind, system, {"epsilon": 1, "delta": 4})
        result = run(kind, options, workload, Network(state_corruption=0.001), one_order=True)
        assert result.tally.faults > 1
        assert result.tally.deliveries / 2 < result.findings.certain < result.tally.deliveries
        found[kind] = len(result.disagreements or ())
    assert not found[Merge] and found[BreaksTiesByArrival]


def test_a_message_to_its_sender_alone_is_still_refused_by_schedules() -> None:
    with pytest.raises(BadInput, match="to its sender alone"):
        parse("processes: [p1, p2]\nsteps:\n  - {send: a, from: p1, to: [p1]}")
    assert only(0) == 1

"""The simulator: reproducible, fair to all protocols, true to its parameters; and its summary is true.

What the summary says is computed again from the trace, by the oracle and by plain counting.
"""

from __future__ import annotations

import gzip
import hashlib
import math
import os
import re
import statistics
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest

from causet.check.oracle import Verdict, causal_pasts, judge
from causet.check.runs import Run, run
from causet.errors import BadInput
from causet.formats.causality import check_acyclic
from causet.formats.trace import read_trace, trace_writer
from causet.model import Event, Group, System, members, named_processes
from causet.protocols import PROTOCOLS, Packet, make_options
from causet.simulate.network import Network, simulate
from causet.simulate.record import Observer, Recorder, Sent
from causet.simulate.workload import Workload, delay_of
from causet.topology import groups_of
from tests.helpers.places import ROOT

CONTROLS = ("fifo", "none")
PAIRED = [(name, shape) for name in PROTOCOLS for shape in ("unicast", "ring:3", "all")]
"""Protocols with shapes that they run on."""
RUNS = [
    (name, shape)
    for name, shape in PAIRED
    if not (PROTOCOLS[name].grouped and shape == "unicast")
    and not (PROTOCOLS[name].broadcast and shape != "all")
]


class Faults(Observer):
    """An observer that sees what happens to single copies."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.stamps: dict[object, Any] = {}
        self.copies = 0
        self.received_copies = 0
        self.damaged_copies = 0
        self.lost_copies: set[tuple[str, str]] = set()

    def sent(self, sent: Sent, time: float) -> None:
        for packet in sent.packets:
            self.copies += packet.to.bit_count()
            for target in members(packet.to):
                self.stamps[packet.key, target] = packet.stamp

    def received(self, process: int, packet: Packet, time: float) -> None:
        self.received_copies += 1
        self.damaged_copies += packet.stamp is not self.stamps[packet.key, process]

    def lost(self, process: int, packet: Packet, time: float) -> None:
        self.lost_copies.add((self.system.name(process), packet.id(self.system)))


class Seen(NamedTuple):
    """A run with all that there is to know about it."""

    run: Run
    events: list[Event]
    faults: Faults

    @property
    def summary(self) -> dict[str, Any]:
        return self.run.summary()

    @property
    def verdict(self) -> Verdict:
        return judge(self.events, lost=self.faults.lost_copies)


def seen(
    name: str,
    shape: str = "all",
    *,
    size: int = 5,
    messages: int = 60,
    rate: float = 1.0,
    delay: str = "exp:1",
    seed: int = 1,
    network: Network | None = None,
    system: System | None = None,
    **settings: Any,
) -> Seen:
    if system is None:
        system = System(named_processes(size), groups_of(shape, size, seed))
    kind = PROTOCOLS[name]
    options, _ = make_options(kind, system, settings)
    workload = Workload(system, messages, rate, delay_of(delay), seed)
    events: list[Event] = []
    faults = Faults(system)
    recorder = Recorder(system, events.append)
    return Seen(
        run(kind, options, workload, network or Network(), observers=[recorder, faults]), events, faults
    )


def shape_for(name: str) -> str:
    kind = PROTOCOLS[name]
    return "all" if kind.broadcast else "ring:3" if kind.grouped else "unicast"


def written(path: Path, name: str, seed: int) -> bytes:
    system = System(named_processes(5), groups_of(shape_for(name), 5, seed))
    kind = PROTOCOLS[name]
    options, _ = make_options(kind, system, {})
    workload = Workload(system, 60, 1.0, delay_of("exp:1"), seed)
    with trace_writer(path) as write:
        simulate(kind, options, workload, observers=[Recorder(system, write)])
    return path.read_bytes()


def of_kind(events: Sequence[Event], kind: str, *, control: bool = False) -> list[Event]:
    return [event for event in events if event.kind == kind and event.control == control]


# ---------------------------------------------------------------- the same seed, the same bytes


@pytest.mark.parametrize("ending", [".jsonl", ".jsonl.gz"])
@pytest.mark.parametrize("name", PROTOCOLS)
def test_the_same_seed_gives_the_same_bytes_and_another_seed_gives_others(
    tmp_path: Path, name: str, ending: str
) -> None:
    first = written(tmp_path / f"first{ending}", name, 1)
    again = written(tmp_path / f"again{ending}", name, 1)
    other = written(tmp_path / f"other{ending}", name, 2)
    assert first == again
    assert first != other


@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_compressed_trace_is_the_plain_one(tmp_path: Path, name: str) -> None:
    plain = written(tmp_path / "trace.jsonl", name, 1)
    assert gzip.decompress(written(tmp_path / "trace.jsonl.gz", name, 1)) == plain


HASHES = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from hashlib import sha256
from pathlib import Path
from tests.core.test_simulator import PROTOCOLS, written
folder = Path(sys.argv[1])
for name in PROTOCOLS:
    print(name, sha256(written(folder / f"{{name}}.jsonl.gz", name, 1)).hexdigest())
"""


def test_the_bytes_do_not_depend_on_how_python_hashes(tmp_path: Path) -> None:
    here = [
        f"{name} {hashlib.sha256(written(tmp_path / 'here.jsonl.gz', name, 1)).hexdigest()}"
        for name in PROTOCOLS
    ]
    environment = {**os.environ, "PYTHONHASHSEED": "12345", "TZ": "Pacific/Auckland", "LC_ALL": "C"}
    there = subprocess.run(
        [sys.executable, "-c", HASHES, str(tmp_path)],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert there.stdout.splitlines() == here


def test_observers_change_nothing() -> None:
    system = System(named_processes(5), groups_of("ring:3", 5, 1))
    kind = PROTOCOLS["relative"]
    options, _ = make_options(kind, system, {})
    workload = Workload(system, 60, 1.0, delay_of("exp:1"), 1)
    events: list[Event] = []
    alone, _ = simulate(kind, options, workload)
    watched, _ = simulate(
        kind, options, workload, observers=[Faults(system), Recorder(system, events.append)]
    )
    assert alone == watched


# ---------------------------------------------------------------- the same messages for all


def messages_of(events: Sequence[Event]) -> list[tuple[Any, ...]]:
    return [(e.time, e.process, e.message, e.to, e.group) for e in of_kind(events, "send")]


def transits(events: Sequence[Event]) -> dict[tuple[str, str], float]:
    """How long each copy of an application message took: (receiver, message) → time."""
    sent = {e.message: e.time for e in of_kind(events, "send")}
    found: dict[tuple[str, str], float] = {}
    for event in of_kind(events, "receive"):
        begun = sent[event.message]
        assert event.message is not None and event.time is not None and begun is not None
        found.setdefault((event.process, event.message), event.time - begun)
    return found


@pytest.mark.parametrize("shape", ["unicast", "ring:3", "all"])
@pytest.mark.parametrize("fifo", [False, True], ids=["reordering", "fifo"])
def test_all_protocols_see_the_same_messages_with_the_same_delays(shape: str, fifo: bool) -> None:
    network = Network(fifo=fifo)
    names = [name for name, of in RUNS if of == shape]
    assert len(names) >= 8
    runs = {name: seen(name, shape, messages=40, network=network).events for name in names}
    messages, delays = messages_of(runs["none"]), transits(runs["none"])
    assert len(messages) == 40
    for name, events in runs.items():
        assert messages_of(events) == messages, name
        if not fifo:  # on a FIFO link a copy waits for those before it, also for control messages
            assert transits(events) == delays, name


def test_no_copy_arrives_before_it_was_sent() -> None:
    for fifo in (False, True):
        events = seen("none", "all", delay="uniform:0.5:2", network=Network(fifo=fifo)).events
        assert min(transits(events).values()) >= 0.5 - 1e-9


def test_every_message_goes_to_a_group_of_its_sender_and_all_groups_are_used() -> None:
    system = System(named_processes(6), groups_of("random:4x3", 6, 1))
    events = seen("vector", system=system, messages=300).events
    groups = {group.name: set(system.names(group.members)) for group in system.groups}
    for send in of_kind(events, "send"):
        assert send.group is not None and send.to is not None
        assert {send.process, *send.to} == groups[send.group]
        assert send.process not in send.to
    assert {send.group for send in of_kind(events, "send")} == set(groups)


def test_a_process_without_a_group_sends_nothing() -> None:
    system = System(named_processes(4), (Group("g1", 0b0111),))
    senders = Counter(e.process for e in of_kind(seen("fast", system=system, messages=300).events, "send"))
    assert senders.keys() == {"p1", "p2", "p3"}


def test_where_links_are_given_messages_go_to_neighbours_only() -> None:
    system = System(named_processes(4), (), (0b0010, 0b0101, 0b1010, 0b0100))
    for send in of_kind(seen("matrix", system=system, messages=200).events, "send"):
        assert send.to is not None
        (target,) = send.to
        assert abs(int(send.process[1:]) - int(target[1:])) == 1


def test_a_process_that_is_linked_with_nobody_is_bad_input() -> None:
    system = System(named_processes(3), (), (0b010, 0b001, 0))
    with pytest.raises(BadInput, match="p3"):
        seen("matrix", system=system)


# ---------------------------------------------------------------- delays and times


@pytest.mark.parametrize(
    ("text", "mean", "deviation"),
    [
        ("const:2.5", 2.5, 0.0),
        ("const:0", 0.0, 0.0),
        ("exp:1", 1.0, 1.0),
        ("exp:4", 4.0, 4.0),
        ("exp:0", 0.0, 0.0),
        ("uniform:1:3", 2.0, 2 / math.sqrt(12)),
        ("uniform:2:2", 2.0, 0.0),
        ("lognormal:1:0.5", math.exp(0.125), math.exp(0.125) * math.sqrt(math.exp(0.25) - 1)),
        ("lognormal:3:0", 3.0, 0.0),
    ],
)
def test_a_delay_has_the_mean_that_it_claims(text: str, mean: float, deviation: float) -> None:
    draw, delay = Random(text), delay_of(text)
    count = 20_000
    drawn = [delay(draw) for _ in range(count)]
    assert statistics.fmean(drawn) == pytest.approx(mean, abs=5 * deviation / math.sqrt(count) + 1e-9)
    assert statistics.pstdev(drawn) == pytest.approx(deviation, rel=0.1, abs=1e-9)
    assert min(drawn) >= 0


def test_the_median_of_a_lognormal_delay_is_its_first_number() -> None:
    draw, delay = Random(1), delay_of("lognormal:3:1")
    assert statistics.median(delay(draw) for _ in range(20_000)) == pytest.approx(3, rel=0.05)


def test_a_uniform_delay_stays_between_its_bounds() -> None:
    draw, delay = Random(1), delay_of("uniform:1:3")
    drawn = [delay(draw) for _ in range(20_000)]
    assert 1 <= min(drawn) < 1.01
    assert 2.99 < max(drawn) <= 3


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            ":",
            "exp",
            "exp:",
            "exp:x",
            "exp:-1",
            "exp:nan",
            "exp:inf",
            "exp:1e400",
            "exp:1:2",
            "gamma:1:2",
        ),
        *("const", "const:", "const:-1", "const:1:2", "Const:1", "const:1e30", "1", "const:1;", "const:0x10"),
        *("uniform:1", "uniform:2:1", "uniform:-1:1", "uniform:1:2:3", "uniform:a:b", "uniform:0:inf"),
        *("lognormal:1", "lognormal:0:1", "lognormal:-1:1", "lognormal:1:-1", "lognormal:nan:1"),
    ],
)
def test_a_text_that_is_no_delay_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match=re.escape(f'"{text}"')):
        delay_of(text)


@pytest.mark.parametrize("sigma", [100, 700, 1e8])
def test_a_lognormal_delay_never_leaves_the_numbers(sigma: float) -> None:
    draw = Random(1)
    try:
        delay = delay_of(f"lognormal:1:{sigma}")
    except BadInput:
        return
    assert all(math.isfinite(delay(draw)) for _ in range(1000))


@pytest.mark.parametrize(("size", "rate"), [(4, 2.0), (8, 0.5)])
def test_messages_are_sent_at_the_rate_asked_for(size: int, rate: float) -> None:
    system = System(named_processes(size))
    sends = list(Workload(system, 8000, rate, delay_of("const:0"), 1))
    assert sends[-1].time == pytest.approx(8000 / (size * rate), rel=0.05)
    # A Poisson process: gaps with a deviation equal to their mean, and senders at random.
    gaps = [later.time - earlier.time for earlier, later in pairwise(sends)]
    assert statistics.pstdev(gaps) == pytest.approx(statistics.fmean(gaps), rel=0.05)
    by_sender = Counter(send.sender for send in sends)
    assert len(by_sender) == size
    assert max(by_sender.values()) < 1.15 * 8000 / size
    targets = Counter(send.targets for send in sends)
    assert len(targets) == size
    assert max(targets.values()) < 1.15 * 8000 / size


def test_the_rate_is_per_process_that_can_send() -> None:
    system = System(named_processes(4), (Group("g1", 0b0011),))
    *_, last = Workload(system, 4000, 1.0, delay_of("const:0"), 1)
    assert last.time == pytest.approx(4000 / 2, rel=0.1)


@pytest.mark.parametrize("rate", [0.0, -1.0, math.nan, math.inf, 1e30])
def test_a_rate_that_is_none_is_refused(rate: float) -> None:
    with pytest.raises(BadInput, match="rate"):
        Workload(System(named_processes(3)), 10, rate, delay_of("exp:1"), 1)


def test_a_workload_needs_two_processes_and_no_fewer_than_no_messages() -> None:
    with pytest.raises(BadInput, match="at least 2"):
        Workload(System(("p1",)), 10, 1.0, delay_of("exp:1"), 1)
    with pytest.raises(BadInput, match="messages = -1"):
        Workload(System(named_processes(3)), -1, 1.0, delay_of("exp:1"), 1)
    assert list(Workload(System(named_processes(3)), 0, 1.0, delay_of("exp:1"), 1)) == []


# ---------------------------------------------------------------- networks


def overtakings(events: Sequence[Event]) -> int:
    """Copies that arrive before an earlier one of the same link."""
    order = {e.message: number for number, e in enumerate(of_kind(events, "send"))}
    latest: dict[tuple[str, str], int] = {}
    found = 0
    for event in of_kind(events, "receive"):
        sender = (event.message or "").partition(":")[0]
        number = order[event.message]
        found += number < latest.get((sender, event.process), -1)
        latest[sender, event.process] = max(number, latest.get((sender, event.process), -1))
    return found


@pytest.mark.parametrize("delay", ["exp:1", "uniform:0:4", "lognormal:1:1"])
def test_a_fifo_network_keeps_its_links_in_order_and_another_does_not(delay: str) -> None:
    for name in ("none", "matrix", "merge"):
        assert overtakings(seen(name, delay=delay, network=Network(fifo=True)).events) == 0
        assert overtakings(seen(name, delay=delay).events) > 10


def test_fifo_links_stay_in_order_with_duplicates() -> None:
    network = Network(fifo=True, duplication=0.5)
    for event_order in (seen(name, network=network).events for name in ("none", "relative")):
        assert overtakings(event_order) == 0


def test_with_constant_delays_even_no_protocol_at_all_keeps_links_in_order() -> None:
    assert overtakings(seen("none", delay="const:1").events) == 0


@pytest.mark.parametrize("loss", [0.05, 0.3])
def test_copies_are_lost_at_the_rate_asked_for(loss: float) -> None:
    found = seen("merge", messages=1000, network=Network(loss=loss))
    assert found.faults.copies == 4000
    share = found.summary["lost"] / found.faults.copies
    assert share == pytest.approx(loss, abs=5 * math.sqrt(loss / 4000))
    assert found.summary["lost"] == len(found.faults.lost_copies)
    assert found.summary["deliveries"] + found.summary["lost"] == 4000
    assert found.summary["stuck"] == found.summary["violations"] == 0


@pytest.mark.parametrize("duplication", [0.1, 0.5])
@pytest.mark.parametrize("name", ["merge", "matrix", "relative"])
def test_copies_come_twice_at_the_rate_asked_for_and_are_delivered_once(
    name: str, duplication: float
) -> None:
    found = seen(name, messages=500, network=Network(duplication=duplication))
    share = found.faults.received_copies / found.faults.copies - 1
    assert share == pytest.approx(duplication, abs=0.05)
    assert found.summary["deliveries"] == 2000
    assert found.summary["duplicates"] == found.summary["stuck"] == found.summary["violations"] == 0
    assert not found.verdict.duplicates


@pytest.mark.parametrize("corruption", [0.1, 0.4])
def test_stamps_are_damaged_at_the_rate_asked_for(corruption: float) -> None:
    found = seen("merge", messages=500, network=Network(corruption=corruption))
    assert found.faults.damaged_copies / found.faults.received_copies == pytest.approx(corruption, abs=0.05)
    # What cannot be is refused and counts as lost; the rest is delivered in the end.
    assert found.summary["stuck"] == 0
    assert found.summary["deliveries"] + found.summary["lost"] == 2000


def test_without_faults_nothing_is_lost_doubled_or_damaged() -> None:
    for name, shape in RUNS:
        found = seen(name, shape, messages=30)
        assert found.faults.received_copies == found.faults.copies
        assert (found.faults.damaged_copies, found.faults.lost_copies, found.summary["lost"]) == (0, set(), 0)


@pytest.mark.parametrize("value", [-0.1, 1.0, 2.0, math.nan, math.inf])
@pytest.mark.parametrize("fault", ["loss", "duplication", "corruption"])
def test_a_probability_that_is_none_is_refused(fault: str, value: float) -> None:
    faulty: dict[str, Any] = {fault: value}
    with pytest.raises(BadInput, match=f"{fault} = "):
        seen("merge", network=Network(**faulty))


@pytest.mark.parametrize("name", [name for name, kind in PROTOCOLS.items() if not kind.PROMISES.loss])
def test_faults_are_refused_for_protocols_that_do_not_claim_to_bear_them(name: str) -> None:
    for fault, network in (("loss", Network(loss=0.1)), ("corruption", Network(corruption=0.1))):
        with pytest.raises(BadInput, match=f"{name} does not claim to bear {fault}"):
            seen(name, shape_for(name), network=network)
    with pytest.raises(BadInput, match="no clock"):
        seen(name, shape_for(name), network=Network(skew=1))


def test_clocks_differ_by_no_more_than_asked_for() -> None:
    # Within ε, nothing that arrives within δ is refused; beyond it, nothing is promised.
    assert seen("merge", delay="uniform:0:10", messages=300, epsilon=3, delta=10).summary["lost"] == 0
    strict = Network(skew=0)
    assert seen("merge", delay="uniform:0:10", messages=300, epsilon=0, network=strict).summary["lost"] == 0
    with pytest.raises(BadInput, match="more than ε = 0"):
        seen("merge", messages=300, epsilon=0, network=Network(skew=50))


# ---------------------------------------------------------------- the trace


@pytest.mark.parametrize(("name", "shape"), RUNS)
@pytest.mark.parametrize("fifo", [False, True], ids=["reordering", "fifo"])
def test_the_trace_is_valid_and_the_oracle_agrees_with_the_summary(
    tmp_path: Path, name: str, shape: str, fifo: bool
) -> None:
    found = seen(name, shape, network=Network(fifo=fifo, duplication=0.1))
    with trace_writer(tmp_path / "trace.jsonl") as write:
        for event in found.events:
            write(event)
    events = read_trace(tmp_path / "trace.jsonl")
    assert events == found.events
    check_acyclic(events)
    verdict, summary = judge(events), found.summary
    assert verdict.messages == summary["messages"] == 60
    assert verdict.deliveries == summary["deliveries"]
    assert len(verdict.violations) == summary["violations"]
    assert len(verdict.duplicates) == summary["duplicates"] == 0
    assert len(verdict.undelivered) == summary["stuck"] == 0
    assert not (verdict.strangers or verdict.unsent or verdict.gaps or verdict.unknown_parents)
    if PROTOCOLS[name].PROMISES.causal:
        assert verdict.status == "valid"
    if PROTOCOLS[name].PROMISES.total:
        assert not verdict.disagreements
    if PROTOCOLS[name].PROMISES.early:
        assert not verdict.late
        assert summary["added_delay_max"] == 0


@pytest.mark.parametrize("name", CONTROLS)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_controls_are_caught_and_the_first_violations_are_true(name: str, seed: int) -> None:
    found = seen(name, "all", seed=seed)
    true = {(v.process, v.delivered) for v in found.verdict.violations}
    assert found.run.bad
    assert found.summary["violations"] == len(true) > 0
    pasts = causal_pasts(found.events)
    delivered: dict[str, list[str]] = {}
    for event in of_kind(found.events, "deliver"):
        delivered.setdefault(event.process, []).append(event.message or "")
    assert found.summary["first_violations"]
    for told in found.summary["first_violations"]:
        assert (told["process"], told["delivered"]) in true
        assert told["before"] in pasts[told["delivered"]]
        order = delivered[told["process"]]
        assert order.index(told["delivered"]) < order.index(told["before"])


@pytest.mark.parametrize("delay", ["exp:1", "exp:5", "exp:20"])
@pytest.mark.parametrize(
    "network",
    [Network(), Network(loss=0.2), Network(duplication=0.3), Network(corruption=0.2)],
    ids=["sound", "losing", "doubling", "damaging"],
)
def test_what_comes_too_late_counts_as_lost_in_the_summary_as_for_the_oracle(
    network: Network, delay: str
) -> None:
    found = seen("merge", delay=delay, network=network)
    verdict, summary = found.verdict, found.summary
    assert summary["violations"] + summary["excused"] == len(verdict.violations)
    assert summary["duplicates"] == len(verdict.duplicates)
    assert summary["stuck"] == len(verdict.undelivered)
    assert not summary["violations"]
    if not network.corruption:
        assert verdict.ok
        assert not found.run.bad


@pytest.mark.parametrize(
    "network",
    [
        Network(duplication=0.5),
        Network(duplication=0.5, loss=0.2),
        Network(duplication=0.5, corruption=0.3),
    ],
    ids=["doubling", "losing", "damaging"],
)
@pytest.mark.parametrize("delay", ["exp:1", "exp:5"])
def test_where_one_of_two_copies_is_refused_the_other_counts(network: Network, delay: str) -> None:
    found = seen("merge", delay=delay, network=network)
    assert not found.verdict.duplicates
    assert found.summary["duplicates"] == 0
    assert found.summary["stuck"] == 0
    # Each of the copies addressed is delivered, or lost in each of its forms.
    assert found.summary["deliveries"] + found.summary["lost"] >= 4 * found.summary["messages"]


@pytest.mark.parametrize("name", PROTOCOLS)
def test_times_never_go_back_in_a_process_and_numbers_are_contiguous(name: str) -> None:
    last: dict[str, tuple[int, float]] = {}
    for event in seen(name, shape_for(name)).events:
        seq, time = last.get(event.process, (0, 0.0))
        assert event.time is not None
        assert event.seq == seq + 1
        assert event.time >= time
        last[event.process] = (event.seq, event.time)


@pytest.mark.parametrize("name", PROTOCOLS)
def test_messages_are_called_by_sender_and_number(name: str) -> None:
    events = seen(name, shape_for(name)).events
    for control, mark in ((False, ":"), (True, "!")):
        numbers: Counter[str] = Counter()
        for send in of_kind(events, "send", control=control):
            numbers[send.process] += 1
            assert send.message == f"{send.process}{mark}{numbers[send.process]}"


# ---------------------------------------------------------------- the summary


@pytest.mark.parametrize(("name", "shape"), RUNS)
def test_the_summary_can_be_counted_in_the_trace(name: str, shape: str) -> None:
    found = seen(name, shape)
    summary, events = found.summary, found.events
    sends = of_kind(events, "send")
    entries = [send.stamp_entries or 0 for send in sends]
    sizes = [send.stamp_bytes or 0 for send in sends]
    assert summary["protocol"] == name
    assert summary["processes"] == 5
    assert summary["messages"] == len(sends)
    assert summary["deliveries"] == len(of_kind(events, "deliver"))
    assert summary["control_messages"] == len(of_kind(events, "send", control=True))
    assert summary["stamp_entries_mean"] == pytest.approx(statistics.fmean(entries), abs=1e-3)
    assert summary["stamp_entries_max"] == max(entries)
    assert summary["stamp_bytes_mean"] == pytest.approx(statistics.fmean(sizes), abs=1e-3)
    assert summary["stamp_bytes_max"] == max(sizes)
    assert summary["broken"] is None
    assert summary["states"] is None


@pytest.mark.parametrize(("name", "shape"), RUNS)
def test_the_delay_added_is_that_over_as_early_as_possible(name: str, shape: str) -> None:
    """A message could come as soon as it and its causes that are addressed to the process had arrived."""
    found = seen(name, shape)
    pasts = causal_pasts(found.events)
    arrived: dict[tuple[str, str], float] = {}
    for event in of_kind(found.events, "receive"):
        assert event.time is not None
        arrived.setdefault((event.process, event.message or ""), event.time)
    added = []
    for event in of_kind(found.events, "deliver"):
        causes = {event.message or "", *pasts[event.message or ""]}
        needed = [arrived[event.process, m] for m in causes if (event.process, m) in arrived]
        assert event.time is not None
        added.append(max(0.0, event.time - max(needed)))
    if PROTOCOLS[name].PROMISES.causal:
        assert found.summary["added_delay_mean"] == pytest.approx(statistics.fmean(added), abs=1e-5)
    assert found.summary["added_delay_max"] == pytest.approx(max(added), abs=1e-5)


def test_a_run_without_messages_is_summed_up_too() -> None:
    for name in PROTOCOLS:
        summary = seen(name, shape_for(name), messages=0).summary
        assert summary["messages"] == summary["deliveries"] == summary["stuck"] == 0
        assert summary["stamp_bytes_mean"] == summary["added_delay_mean"] == 0


# ---------------------------------------------------------------- nothing is given up too early


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("merge", {"delta": 199}),
        ("merge", {"delta": 300}),
        ("merge", {"epsilon": 150}),
        ("merge", {"delta": 1000, "delay": "uniform:0:1000"}),
        ("slow", {"delay": "const:10000"}),
        ("slow", {"delay": "uniform:0:5000", "silence": 1}),
        ("relative", {"delay": "const:10000", "silence": 0.5}),
        ("relative", {"delay": "exp:10000"}),
    ],
    ids=str,
)
def test_a_run_is_not_given_up_as_stuck_while_something_is_still_to_come(
    name: str, how: dict[str, Any]
) -> None:
    found = seen(name, "ring:3", messages=5, rate=10.0, **how)
    assert not found.verdict.undelivered
    assert found.summary["stuck"] == 0


def test_a_message_that_can_never_be_delivered_is_found_to_be_stuck() -> None:
    system = System(named_processes(4))
    kind = PROTOCOLS["bounded"]
    options, _ = make_options(kind, system, {"k": 5}, ("S1", "S2", "S3", "S4", "S5"))
    found = [
        run(kind, options, Workload(system, 200, 1.0, delay_of("exp:1"), seed)).summary() for seed in range(5)
    ]
    assert any(summary["stuck"] > 0 for summary in found)

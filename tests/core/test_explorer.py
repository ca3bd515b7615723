"""The explorer: protocols are clean in every interleaving of a small system, printed errors are seen."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from causet.check.explorer import explore
from causet.check.oracle import judge
from causet.check.scope import Report, Scope
from causet.check.scopes import scopes_for
from causet.model import System, named_processes
from causet.protocols import PROTOCOLS, Packet, make_options, protocol_named
from causet.protocols.base import Learned
from causet.protocols.bounded import Bounded
from causet.simulate.replay import replay
from causet.simulate.schedule import parse, write_schedule

CORRECT = [name for name, kind in PROTOCOLS.items() if kind.PROMISES.causal]


def all_of(name: str, processes: int = 3, messages: int = 4, **more: object) -> list[tuple[Scope, Report]]:
    scopes = scopes_for(protocol_named(name), processes, messages, **more)  # type: ignore[arg-type]
    return [(named.scope, explore(named.scope)) for named in scopes]


def confirm(scope: Scope, report: Report) -> None:
    """The counter-example, written and read back, fails in the same way under the oracle."""
    assert report.shortest is not None and report.finding is not None
    schedule = parse(write_schedule(report.shortest))
    result = replay(schedule, scope.kind, scope.options)
    verdict = judge(result.events, lost=result.lost, receptions_teach=scope.kind.hears)
    match report.finding.kind:
        case "unsafe":
            assert verdict.violations
        case "stuck":
            assert result.stuck
        case "late":
            assert result.held
        case _:
            pytest.fail(f"unexpected {report.finding}")


def check_clean(name: str, **more: object) -> None:
    for scope, report in all_of(name, **more):  # type: ignore[arg-type]
        assert report.complete
        assert report.findings == {}
        # An exploration that tried nothing proves nothing: the smallest of these has some 200 states.
        assert report.states > 100 and report.steps > report.states, scope


LARGE = ("slow", "relative", "merge", "frontiers")
"""Their 4 messages with null messages or ticks at any time, or to several groups, take minutes: `make soak`
has them whole. (test_frontiers has 4 messages in a chain.)"""


@pytest.mark.parametrize("name", [name for name in CORRECT if name not in LARGE])
def test_is_clean_in_every_interleaving_of_3_processes_and_4_messages(name: str) -> None:
    check_clean(name)


@pytest.mark.parametrize("name", ["slow", "relative"])
def test_block_protocols_are_clean_with_4_messages_and_closing_nulls(name: str) -> None:
    check_clean(name, nulls=0)


@pytest.mark.parametrize("name", ["slow", "relative"])
def test_block_protocols_are_clean_with_a_null_message_at_any_time(name: str) -> None:
    check_clean(name, groups="twins", messages=3)


@pytest.mark.soak
@pytest.mark.parametrize("name", ["slow", "relative"])
def test_block_protocols_are_clean_with_4_messages_in_pairs(name: str) -> None:
    check_clean(name, groups="pairs")


def test_merge_is_clean_with_3_messages_and_ticks_at_any_time() -> None:
    check_clean("merge", messages=3, horizons=((3, 1), (2, 2)))


@pytest.mark.soak
@pytest.mark.parametrize("name", LARGE)
def test_is_clean_in_every_interleaving_of_the_whole_scope(name: str) -> None:
    check_clean(name)


@pytest.mark.soak
def test_slow_is_clean_with_two_null_messages_at_any_time() -> None:
    check_clean("slow", groups="pairs", nulls=2)


GRAPHS = ["path", "star", "cycle", "tail"]


def check_separators(shape: str, messages: int) -> None:
    """R9, with every separator of the graph at once."""
    [(scope, report)] = all_of("histories", 4, messages, links=shape)
    assert scope.system.separators
    assert report.complete and report.findings == {}


@pytest.mark.parametrize("shape", GRAPHS)
def test_separators_lose_nothing_on_small_graphs(shape: str) -> None:
    check_separators(shape, 4 if shape == "path" else 3)


@pytest.mark.soak
@pytest.mark.parametrize("shape", GRAPHS[1:])
def test_separators_lose_nothing_on_small_graphs_with_4_messages(shape: str) -> None:
    check_separators(shape, 4)


@pytest.mark.parametrize(
    "settings", [{"r61": False}, {"r7": False}, {"r8": False}, {"r7": False, "r8": False}]
)
def test_histories_are_clean_with_each_optional_rule_off(settings: dict[str, bool]) -> None:
    [(_, report)] = all_of("histories", 3, 3, settings=settings)
    assert report.complete and report.findings == {}


@pytest.mark.parametrize("shape", ["pairs", "twins"])
def test_the_neighbours_variant_of_fast_is_clean(shape: str) -> None:
    [(_, report)] = all_of("fast", groups=shape, settings={"variant": "neighbours"})
    assert report.complete and report.findings == {}


def test_merge_is_clean_with_clocks_modulo_B_and_with_the_rc_clock() -> None:
    for settings in ({"modulus": 4}, {"clock": "rc"}):
        for _, report in all_of("merge", 3, 2, settings=settings):
            assert report.complete and report.findings == {}


@pytest.mark.parametrize("k", ["2", "3,2,4"])
def test_bounded_is_clean_with_the_smallest_k_and_with_one_per_process(k: str) -> None:
    [(_, report)] = all_of("bounded", 3, 3, settings={"k": k})
    assert report.complete and report.findings == {}


@pytest.mark.parametrize("name", ["fifo", "none"])
def test_the_controls_are_caught_with_three_messages_or_fewer(name: str) -> None:
    [(scope, report)] = all_of(name, 3, 3)
    assert report.findings["unsafe"] > 0
    confirm(scope, report)


def test_the_shortest_counter_example_to_fifo_is_the_triangle() -> None:
    """a to both, an answer b to one of them, which overtakes: 4 steps, and fewer cannot do it."""
    [(_, report)] = all_of("fifo", 3, 3)
    assert report.shortest is not None
    assert [step.kind for step in report.shortest.steps] == ["send", "receive", "send", "receive"]


ERRATA = [
    ("histories", "H1", "unsafe", {}),
    ("histories", "H2", "stuck", {}),
    ("histories", "H3", "unsafe", {}),
    ("histories", "H7", "unsafe", {}),
    ("relative", "M1", "unsafe", {"groups": "twins"}),
    ("fast", "M2", "stuck", {"groups": "pairs"}),
    ("relative", "M3", "unsafe", {"groups": "twins", "messages": 4, "nulls": 0}),
    ("relative", "M4", "stuck", {"groups": "twins", "messages": 4, "nulls": 0}),
    ("slow", "M6", "stuck", {"groups": "pairs", "messages": 4, "nulls": 0}),
    ("bounded", "S1", "stuck", {"messages": 4}),
    ("bounded", "S2", "unsafe", {"messages": 4}),
    ("bounded", "S5", "unsafe", {}),
    ("merge", "K1", "unsafe", {"messages": 2}),
    ("merge", "K2", "unsafe", {"messages": 2}),
    ("merge", "K8", "unsafe", {"messages": 4}),
]


SLOW_ROWS = frozenset({"H7", "S1", "S2", "K8"})
"""Found after half a minute; the schedules that show them are replayed in tests/papers."""


@pytest.mark.parametrize(
    ("name", "row", "kind", "more"),
    [
        pytest.param(*each, id=each[1], marks=(pytest.mark.soak,) if each[1] in SLOW_ROWS else ())
        for each in ERRATA
    ],
)
def test_each_printed_error_is_found(name: str, row: str, kind: str, more: dict[str, object]) -> None:
    """In the first scope that shows it; whole scopes only if the first finding is of another kind."""
    scopes = scopes_for(protocol_named(name), 3, as_printed=row, **{"messages": 3, **more})  # type: ignore[arg-type]
    for every, named in product((False, True), scopes):
        report = explore(replace(named.scope, every=every))
        if report.shortest is not None:
            confirm(named.scope, report)
        if report.findings.get(kind, 0) > 0:
            return
    pytest.fail("not found")


def test_an_exploration_that_stops_at_its_limit_is_not_complete() -> None:
    [named] = scopes_for(protocol_named("matrix"), 3, 4, most_states=50)
    report = explore(named.scope)
    assert not report.complete


def test_the_reductions_hide_nothing_that_plain_search_finds() -> None:
    """Without the symmetry of processes the same kinds of findings come up, and clean stays clean."""
    system = System(named_processes(3))
    for name, expected in (("matrix", False), ("fifo", True), ("histories", False)):
        kind = protocol_named(name)
        options, _ = make_options(kind, system, {})
        plain = explore(Scope(kind, system, options, messages=3, symmetric=False))
        reduced = explore(Scope(kind, system, options, messages=3))
        assert bool(plain.findings) == bool(reduced.findings) == expected
        assert plain.states > reduced.states
        if expected:
            assert plain.shortest is not None and reduced.shortest is not None
            assert len(plain.shortest.steps) == len(reduced.shortest.steps)


@pytest.mark.parametrize(
    ("name", "row"), [("fifo", None), ("none", None), ("histories", "H2"), ("fast", "M2"), ("bounded", "S5")]
)
def test_stopping_at_the_first_finding_finds_one_as_short(name: str, row: str | None) -> None:
    for named in scopes_for(protocol_named(name), 3, 3, as_printed=row):
        whole, ended = explore(named.scope), explore(replace(named.scope, every=False))
        if whole.shortest is None:
            assert ended.complete and ended.shortest is None
            continue
        assert ended.shortest is not None and not ended.limited
        assert len(ended.shortest.steps) == len(whole.shortest.steps)
        assert ended.states < whole.states


def test_a_protocol_that_changes_a_stamp_it_received_is_told() -> None:
    """Steps share packets, so such a protocol would be judged by what another step left behind."""

    class Careless(Bounded):
        def deliver(self, packet: Packet) -> Learned:
            learned = super().deliver(packet)
            packet.stamp.setdefault(self.me, {})[packet.sender] = 9
            return learned

    [named, *_] = scopes_for(Careless, 2, 2)
    with pytest.raises(AssertionError, match="bounded changes the stamp of a packet it received"):
        explore(named.scope)

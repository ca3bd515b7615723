"""The benchmarks run, print what they promise, and fail when a required bound is missed.

What they measure here is too small to mean anything: ratios are looked at, not judged.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pytest

from tests.helpers.places import ROOT

if TYPE_CHECKING:
    from bench.result import Benchmark, Result


@pytest.fixture(autouse=True)
def _found(monkeypatch: pytest.MonkeyPatch) -> None:
    """`bench` stands beside `src` and is not installed."""
    monkeypatch.syspath_prepend(ROOT)


def tiny(name: str) -> Benchmark:
    """A benchmark with work for a fraction of a second or a few."""
    from bench import cases, cuts, holdback, pages, protocols, simulator, stamps

    def holdbacks(quick: bool) -> Iterator[Result]:
        return holdback.measure(holdback.Plan(100, 1_000, repetitions=2, without=2))

    def rates(quick: bool) -> Iterator[Result]:
        sizes = {(8, shape): 40 for shape in (cases.UNICAST, cases.RING, cases.ALL)}
        return protocols.measure(protocols.Plan(sizes, repetitions=2, enough=0.0))

    def sizes(quick: bool) -> Iterator[Result]:
        return stamps.measure((4, 8), per_process=5, least=40)

    def stable(quick: bool) -> Iterator[Result]:
        return cuts.beside(200, seconds=5)

    def forgotten(quick: bool) -> Iterator[Result]:
        return cuts.measure(200, seconds=5)

    def speeds(quick: bool) -> Iterator[Result]:
        return simulator.compare("relative", cases.RING, messages=50, repetitions=2)

    def drawn(quick: bool) -> Iterator[Result]:
        return pages.measure(50)

    tiny = {
        "holdback": holdbacks,
        "protocols": rates,
        "stamps": sizes,
        "cuts": stable,
        "uncut": forgotten,
        "simulator": speeds,
        "pages": drawn,
    }
    return tiny[name]


def parsed(output: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in output.splitlines()]


@pytest.mark.parametrize("name", ["holdback", "protocols", "stamps", "cuts", "uncut", "simulator", "pages"])
def test_every_result_is_a_line_of_json_with_a_ratio_and_a_line_for_people(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from bench.__main__ import main

    code = main([name], {name: tiny(name)})
    output, told = capsys.readouterr()
    lines = parsed(output)
    assert lines
    assert {line["bench"] for line in lines} == {name}
    assert len({line["case"] for line in lines}) == len(lines)
    assert all(math.isfinite(line["ratio"]) and line["ratio"] > 0 for line in lines)
    missed = [line for line in lines if "most" in line and line["ratio"] > line["most"]]
    assert code == (1 if missed else 0)
    assert len(told.splitlines()) == len(lines) + len(missed)


def test_the_command_runs_the_benchmarks_it_is_given() -> None:
    found = subprocess.run(
        [sys.executable, "-m", "bench", "--quick", "simulator"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    lines = parsed(found.stdout)
    assert {line["bench"] for line in lines} == {"simulator"}
    assert len(found.stderr.splitlines()) == len(lines)


def test_an_unknown_benchmark_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    from bench.__main__ import main

    with pytest.raises(SystemExit) as stopped:
        main(["nonsense"])
    assert stopped.value.code == 2
    assert "there is no benchmark 'nonsense'" in capsys.readouterr().err


@pytest.mark.parametrize(("slower", "code"), [(3.5, 1), (2.5, 0)])
def test_a_missed_bound_gives_exit_code_1_and_a_sentence_that_says_which(
    slower: float, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from bench import holdback
    from bench.__main__ import main

    def measured(works: Mapping[int, Callable[[], object]], *args: Any, **kwargs: Any) -> dict[int, float]:
        few, many = works
        return {few: 1.0, many: slower}

    monkeypatch.setattr(holdback, "QUICK", holdback.Plan(100, 1_000, repetitions=2, without=0))
    monkeypatch.setattr(holdback, "best", measured)
    assert main(["--quick", "holdback"]) == code
    output, told = capsys.readouterr()
    assert {line["ratio"] for line in parsed(output)} == {slower}
    complaint = "missed: holdback, chain, 100 → 1,000 waiting: the ratio is 3.500, and at most 3 is required"
    assert (complaint in told.splitlines()) == bool(code)


def test_a_message_that_does_not_wait_spoils_the_measurement(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from bench import holdback
    from bench.__main__ import main

    def free(batch: int, size: int, draw: object) -> holdback.Batch:
        return holdback.Batch([holdback.Offer(("p", batch + 1), (), (), 0)], [])

    monkeypatch.setattr(holdback, "SHAPES", {"free": free})
    assert main(["holdback"], {"holdback": tiny("holdback")}) == 1
    assert "spoilt: holdback: a message did not wait" in capsys.readouterr().err


def test_the_best_repetition_counts_and_all_take_turns() -> None:
    from bench.timing import best

    order: list[Hashable] = []
    found = best({name: lambda name=name: order.append(name) for name in "ab"}, 3)  # type: ignore[misc]
    assert order == ["a", "b", "b", "a", "a", "b"]
    assert found.keys() == {"a", "b"}
    order.clear()
    best({name: lambda name=name: order.append(name) for name in "ab"}, 9, enough=0.0)  # type: ignore[misc]
    assert order == ["a", "b", "b", "a"]

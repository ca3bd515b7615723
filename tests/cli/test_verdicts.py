"""One vocabulary of verdicts: on every report the word, the colour and the exit code agree.

The table below is written from the documents, not from the code: a status, its word, the colour of the page,
the exit code.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from playwright.sync_api import Browser
from pyspark.sql import SparkSession

from causet.cli import cli
from causet.formats.execution import Fault
from causet.formats.trace import write_trace
from causet.model import Event
from causet.spark.report import stream_report
from causet.spark.streams.running import Batch, Progress
from causet.verdict import VERDICTS, exit_code, judged_status, stream_sentence, stream_status
from causet.view.judged import judged
from causet.view.narrow import Selection
from causet.view.page import judged_drawing, page
from causet.view.payload import Drawing
from tests.helpers.browser import opened, running_browser
from tests.helpers.pages import data_of
from tests.helpers.places import ROOT

GREEN, RED, AMBER, GREY = "good", "bad", "open", "plain"
TABLE = {
    "valid": ("Valid", GREEN, 0),
    "invalid": ("Invalid", RED, 1),
    "unknown": ("Unknown", AMBER, 3),
    "vacuous": ("Vacuous", GREY, 0),
    "unjudged": ("Not judged", GREY, 0),
    "measured": ("Measured", GREY, 0),
    "in order": ("In order", GREEN, 0),
    "with gaps": ("With gaps", AMBER, 0),
    "held": ("Held", AMBER, 0),
    "unbalanced": ("Unbalanced", RED, 2),
    "fine": ("Fine", GREEN, 0),
    "wrong": ("Wrong", RED, 1),
}

SEND = Event("p", 1, "send", message="a", to=("q", "r"), time=9)
GOOD = [SEND, Event("q", 1, "deliver", message="a", time=10), Event("r", 1, "deliver", message="a", time=11)]
EXECUTIONS: dict[str, list[Event]] = {
    "valid": GOOD,
    "invalid": [*GOOD, Event("r", 2, "deliver", message="a")],
    "unknown": [*GOOD, Event("r", 4)],
    "vacuous": [Event("p", 1), Event("q", 1)],
}
TOO_EARLY = [
    Event("p", 1, "send", message="a", to=("q",)),
    Event("p", 2, "send", message="b", to=("q",)),
    Event("q", 1, "deliver", message="b"),
    Event("q", 2, "deliver", message="a"),
]


def called(*words: object) -> tuple[int, str]:
    done = CliRunner().invoke(
        cli, [str(word) for word in words], standalone_mode=False, catch_exceptions=False
    )
    return int(done.return_value or 0), done.stdout


def assert_agrees(verdict: dict[str, str], status: str) -> None:
    word, tone, _ = TABLE[status]
    assert (verdict["status"], verdict["word"], verdict["tone"]) == (status, word, tone)


def test_there_are_these_verdicts_and_no_others() -> None:
    assert {s: (m.word, m.tone, m.exit_code) for s, m in VERDICTS.items()} == TABLE


def test_red_is_a_finding_or_an_error_and_green_is_neither() -> None:
    for status, (_, tone, code) in TABLE.items():
        assert (tone == RED) == (code in (1, 2)), status
        assert tone != GREEN or code == 0, status
        assert exit_code(status) == code


def test_the_documents_have_the_table() -> None:
    text = (ROOT / "docs" / "verify.md").read_text(encoding="utf-8")
    colours = {GREEN: "green", RED: "red", AMBER: "amber", GREY: "grey"}
    for status, (word, tone, code) in TABLE.items():
        assert f"| `{status}` | {word} | {colours[tone]} | {code} |" in text


# ---------------------------------------------------------------- verify, audit, view


def test_verify_judges_one_order_where_it_is_asked_for(spark: SparkSession, tmp_path: Path) -> None:
    """Two messages to both, own copies included: each process delivers its own first, or both agree."""
    sends = [Event("p", 1, "send", message="a", to=("q",)), Event("q", 1, "send", message="b", to=("p",))]
    orders = {"own first": {"p": "ab", "q": "ba"}, "agreed": {"p": "ab", "q": "ab"}}
    for name, order in orders.items():
        delivered = [
            Event(process, seq, "deliver", message=message)
            for process, messages in order.items()
            for seq, message in enumerate(messages, 2)
        ]
        trace = tmp_path / f"{name}.jsonl"
        write_trace(trace, [*sends, *delivered])
        assert json.loads(called("verify", trace, "--json")[1])["disagreements"] is None
        code, told = called("verify", trace, "--json", "--one-order")
        found = json.loads(told)
        cycle = [{"cycle": ["a", "b"], "processes": ["p", "q"]}] if name == "own first" else []
        assert (code, found["status"]) == ((1, "invalid") if cycle else (0, "valid"))
        assert found["disagreements"] == cycle
        assert called("verify", trace)[0] == 0


@pytest.mark.parametrize("status", EXECUTIONS)
def test_verify_says_the_same_in_text_json_page_and_exit_code(
    spark: SparkSession, tmp_path: Path, status: str
) -> None:
    trace = tmp_path / "trace.jsonl"
    write_trace(trace, EXECUTIONS[status])
    code, text = called("verify", trace, "--report", tmp_path / "report.html")
    assert code == TABLE[status][2] and text.startswith(f"{status}: ")
    code, told = called("verify", trace, "--json")
    assert code == TABLE[status][2] and json.loads(told)["status"] == status
    verdict = data_of((tmp_path / "report.html").read_text(encoding="utf-8"))["report"]["verdict"]
    assert_agrees(verdict, status)
    assert ("Not judged: gap in seq (1)." in verdict["sentence"]) == (status == "unknown")


@pytest.mark.parametrize("status", EXECUTIONS)
def test_a_view_has_the_verdict_of_verify(tmp_path: Path, status: str) -> None:
    trace = tmp_path / "trace.jsonl"
    write_trace(trace, EXECUTIONS[status])
    code, told = called("view", trace, "-o", tmp_path / "page.html", "--json")
    assert code == 0, "it is drawn; verify judges"
    assert json.loads(told)["status"] == status
    assert_agrees(
        data_of((tmp_path / "page.html").read_text(encoding="utf-8"))["executions"][0]["verdict"], status
    )


def test_an_audit_measures_and_is_not_red(spark: SparkSession, tmp_path: Path) -> None:
    trace = tmp_path / "trace.jsonl"
    write_trace(trace, [Event("q", 1, "deliver", message="a", time=1), SEND])
    code, text = called("audit", trace, "--report", tmp_path / "audit.html")
    assert code == 0 and text.startswith("measured: ")
    assert json.loads(called("audit", trace, "--json")[1])["status"] == "measured"
    report = data_of((tmp_path / "audit.html").read_text(encoding="utf-8"))["report"]
    assert_agrees(report["verdict"], "measured")
    assert report["verdict"]["sentence"].startswith("1 of 1 effects stand before a cause when sorted by time")


def test_an_audit_without_times_does_not_say_zero(spark: SparkSession, tmp_path: Path) -> None:
    trace = tmp_path / "trace.jsonl"
    write_trace(trace, [Event("p", 1, "send", message="a", to=("q",)), Event("q", 1, "deliver", message="a")])
    called("audit", trace, "--report", tmp_path / "audit.html")
    report = data_of((tmp_path / "audit.html").read_text(encoding="utf-8"))["report"]
    assert dict(report["facts"])["wrong in time order"] == "not judged"
    assert report["verdict"]["sentence"].startswith("Time order is not judged")
    orders = json.loads(called("audit", trace, "--json")[1])["orders"]
    assert orders["time"]["share"] is None and orders["file"]["share"] == 0
    write_trace(trace, [Event("p", 1)])
    code, text = called("audit", trace)
    assert code == 0 and text.startswith("vacuous: ")


def test_what_is_not_judged_is_not_zero(tmp_path: Path) -> None:
    events = [Event("p1", seq, "send", message=f"m{seq}", to=("p2",)) for seq in range(1, 7001)]
    events += [Event("p2", seq, "deliver", message=f"m{seq}") for seq in range(1, 7001)]
    drawing = judged_drawing(events, "large")
    execution = data_of(page("view", "large", [drawing]))["executions"][0]
    assert_agrees(execution["verdict"], "unjudged")
    assert execution["found"] is None
    write_trace(tmp_path / "large.jsonl", events)
    _, told = called("view", tmp_path / "large.jsonl", "-o", tmp_path / "page.html", "--json")
    assert (json.loads(told)["status"], json.loads(told)["violations"]) == ("unjudged", None)


def test_a_violation_that_is_left_out_is_still_counted(tmp_path: Path) -> None:
    drawing = judged_drawing(TOO_EARLY, "x", Selection(most=1))
    assert (len(drawing.violations), drawing.found, drawing.verdict.status) == (0, 1, "invalid")


def test_faults_of_the_log_make_the_verdict_unknown() -> None:
    lost = [Fault("line that does not match the parser", 2, ())]
    for events in (GOOD, EXECUTIONS["vacuous"]):
        found = judged(Drawing.of("x", events), lost)
        assert found.verdict.status == "unknown"
        assert "Not judged: line that does not match the parser (2)." in found.verdict.sentence
    found = judged(Drawing.of("x", TOO_EARLY), lost)
    assert found.verdict.status == "invalid" and found.verdict.sentence.startswith("1 delivered too early.")
    assert judged_status(0, (), 1) == "valid"


# ---------------------------------------------------------------- streams


STREAMS: list[tuple[dict[str, int], int, bool, str, str]] = [
    ({"delivered": 9}, 0, True, "in order", "in order"),
    ({"delivered": 9, "duplicates": 3, "heartbeats": 1}, 0, True, "in order", "in order"),
    ({"delivered": 2, "flagged": 1198}, 0, True, "with gaps", "with gaps: 1,198 flagged"),
    (
        {"delivered": 2, "late": 1, "diverted": 4, "refused": 4},
        0,
        True,
        "with gaps",
        "with gaps: 1 late, 4 diverted",
    ),
    ({"delivered": 2, "conflicts": 1}, 3, True, "with gaps", "with gaps: 1 conflicts, 3 still held"),
    ({"delivered": 9, "skipped": 4}, 0, True, "with gaps", "with gaps: 4 skipped"),
    ({"delivered": 2}, 3, True, "held", "held: 3 still held"),
    ({}, 0, True, "vacuous", "vacuous"),
    ({"delivered": 2}, 0, False, "unbalanced", "unbalanced"),
]


@pytest.mark.parametrize(("counts", "held", "balanced", "status", "sentence"), STREAMS)
def test_a_stream_is_green_only_if_all_of_it_is_in_order(
    counts: dict[str, int], held: int, balanced: bool, status: str, sentence: str
) -> None:
    assert stream_status(counts, held, balanced) == status
    assert stream_sentence(counts, held, balanced) == sentence
    progress = Progress(batches=1, taken=9, counts=dict(counts), history=deque([Batch(1.0, 9, 9, held)]))
    report = data_of(stream_report("x", progress, held, None, balanced).page())["report"]
    assert_agrees(report["verdict"], status)
    assert report["verdict"]["sentence"].lower().startswith(f"{sentence}. ")


# ---------------------------------------------------------------- commands about protocols


STUCK = (
    "processes: [p1, p2, p3]\ngroups: {g1: [p1, p2], g2: [p1, p3]}\n"
    "steps:\n  - {send: a, from: p1, group: g1}\n  - {send: b, from: p1, group: g2}\n  - drain\n"
)
OVERTAKEN = (
    "processes: [p1, p2]\nsteps:\n  - {send: a, from: p1, to: [p2]}\n  - {send: b, from: p1, to: [p2]}\n"
    "  - {receive: b, at: p2}\n  - {receive: a, at: p2}\n"
)


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (("simulate", "-p", "vector", "--groups", "all", "-m", "50"), "valid"),
        (("simulate", "-p", "none", "--groups", "all", "-m", "500"), "invalid"),
        (("simulate", "-p", "vector", "--groups", "all", "-m", "0"), "vacuous"),
        (("explore", "-p", "matrix", "-n", "2", "-m", "2"), "valid"),
        (("explore", "-p", "none", "-n", "2", "-m", "2"), "invalid"),
        (("explore", "-p", "matrix", "--most-states", "10"), "unknown"),
        (("replay", "overtaken.yaml", "-p", "matrix"), "valid"),
        (("replay", "overtaken.yaml", "-p", "none"), "invalid"),
        (("replay", "nothing.yaml", "-p", "matrix"), "vacuous"),
    ],
)
def test_runs_and_explorations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], status: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("overtaken.yaml").write_text(OVERTAKEN)
    Path("nothing.yaml").write_text("processes: [p1, p2]\nsteps:\n  - {send: a, from: p1, to: [p2]}\n")
    code, told = called(*words, "--json")
    found = json.loads(told)
    assert found["status"] == status
    assert code == TABLE[found["status"]][2]


def test_a_message_that_is_stuck_is_not_valid(tmp_path: Path) -> None:
    """It was `vacuous`, or `valid` where something else was delivered, with exit code 1."""
    (tmp_path / "stuck.yaml").write_text(STUCK)
    code, told = called("replay", tmp_path / "stuck.yaml", "-p", "fast", "--as-printed", "M2", "--json")
    found = json.loads(told)
    assert found["stuck"] and found["violations"] == []
    assert (code, found["status"]) == (1, "invalid")


@pytest.mark.parametrize(("events", "status"), [(GOOD, "fine"), (EXECUTIONS["unknown"], "unknown")])
def test_convert_order_and_explain(
    spark: SparkSession, tmp_path: Path, events: list[Event], status: str
) -> None:
    trace = tmp_path / "trace.jsonl"
    write_trace(trace, events)
    for words in (
        ("convert", trace, "-o", tmp_path / "out.log"),
        ("order", trace, "-o", tmp_path / "ordered"),
        ("explain", trace, "a"),
    ):
        code, told = called(*words, "--json")
        assert (json.loads(told)["status"], code) == (status, TABLE[status][2])


# ---------------------------------------------------------------- what is seen


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with running_browser() as found:
        yield found


@pytest.mark.parametrize("status", [*EXECUTIONS, "unjudged"])
def test_the_browser_shows_the_word_in_its_colour(browser: Browser, tmp_path: Path, status: str) -> None:
    drawing = Drawing.of("x", TOO_EARLY) if status == "unjudged" else judged_drawing(EXECUTIONS[status], "x")
    path = tmp_path / "page.html"
    path.write_text(page("view", "x", [drawing]), encoding="utf-8")
    word, tone, _ = TABLE[status]
    with opened(browser, path) as shown:
        chip = shown.locator(".verdict-chip")
        assert chip.inner_text().strip() == word
        assert f"tone-{tone}" in (chip.get_attribute("class") or "")
        tab = shown.get_by_role("tab", name="Too early")
        assert tab.inner_text() == ("Too early: not judged" if status == "unjudged" else "Too early 0")


@pytest.mark.parametrize(("counts", "held", "balanced", "status", "sentence"), STREAMS)
def test_a_report_of_a_stream_in_the_browser(
    browser: Browser,
    tmp_path: Path,
    counts: dict[str, int],
    held: int,
    balanced: bool,
    status: str,
    sentence: str,
) -> None:
    progress = Progress(batches=1, taken=9, counts=dict(counts), history=deque([Batch(1.0, 9, 9, held)]))
    path = tmp_path / "report.html"
    path.write_text(stream_report("x", progress, held, None, balanced).page(), encoding="utf-8")
    word, tone, _ = TABLE[status]
    with opened(browser, path) as shown:
        hero = shown.locator(".verdict-hero")
        assert hero.locator(".verdict-word").inner_text() == word
        colour = hero.locator(".verdict-word").evaluate("it => getComputedStyle(it).color")
        red, green, blue = map(int, re.findall(r"\d+", colour)[:3])
        largest = {GREEN: green, RED: red, AMBER: red, GREY: blue}[tone]
        assert largest == max(red, green, blue)
        assert tone != AMBER or green > blue, "amber, not red"
        assert tone != GREY or max(red, green, blue) - min(red, green, blue) < 40

"""`causet view`, `doctor`, `demo` and the report pages, as their users call them."""

from __future__ import annotations

import json
import re
import shlex
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

import causet
from causet import Stamper
from causet.cli import cli
from causet.errors import BadInput, CausetError, printable
from causet.formats.trace import write_trace
from causet.live.aftermath import Run
from causet.model import Event
from causet.view.page import judged_drawing
from causet.view.payload import Drawing, fault_of
from causet.view.report import Figure, Report, bars, heat
from tests.helpers.commands import CAUSET, LOCAL, processes_below
from tests.helpers.commands import causet_alone as run_causet
from tests.helpers.pages import data_of
from tests.helpers.readers import Served
from tests.helpers.sessions import shared_spark
from tests.helpers.talk import TALK


def called(*arguments: object) -> Result:
    return CliRunner().invoke(cli, [str(each) for each in arguments], standalone_mode=False)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    write_trace(tmp_path / "talk.jsonl", TALK)
    return tmp_path / "talk.jsonl"


def test_a_page_is_written_with_the_verdict(trace: Path, tmp_path: Path) -> None:
    done = called("view", trace, "-o", tmp_path / "talk.html", "--json")
    assert done.return_value == 0
    told = json.loads(done.stdout)
    assert (told["events"], told["shown"], told["status"], told["violations"]) == (11, 11, "invalid", 1)
    header = data_of((tmp_path / "talk.html").read_text(encoding="utf-8"))
    (execution,) = header["executions"]
    assert execution["processes"] == ["p1", "p2", "p3", "p4"]
    assert execution["violations"][0]["sentence"] == (
        "p3 delivered b before a. But p2 delivered a before it sent b."
    )


def test_drawn_as_text_with_what_came_too_early(trace: Path) -> None:
    told = called("view", "--text", trace).stdout
    assert "✗" in told and "p3 delivered b before a." in told
    assert "✗" not in called("view", "--text", "--ascii", trace).stdout
    less = called("view", "--text", trace, "--only-process", "p1").stdout
    assert "not received" not in less, "p2 and p3 received it, and are not drawn"
    for options in (["--json"], ["-o", "x.html"], ["--compare", trace]):
        assert isinstance(called("view", "--text", trace, *options).exception, click.UsageError)


@pytest.mark.parametrize(
    ("options", "shown", "said"),
    [
        (["--most", "3"], {"p1#1", "p2#1", "p4#1"}, "3 of 11 events are shown, the first ones"),
        (["--only-process", "p3"], {f"p3#{seq}" for seq in (1, 2, 3, 4)}, "those that were asked for"),
        (["--around", "p2#3", "--most", "3"], {"p2#2", "p2#3", "p3#1"}, "those nearest to p2#3"),
        (["--from-position", "9"], {"p1#2", "p1#3"}, "those that were asked for"),
    ],
    ids=["most", "process", "around", "stretch"],
)
def test_less_of_an_execution_says_what_is_left_out(
    trace: Path, tmp_path: Path, options: list[str], shown: set[str], said: str
) -> None:
    called("view", trace, "-o", tmp_path / "page.html", *options)
    (execution,) = data_of((tmp_path / "page.html").read_text(encoding="utf-8"))["executions"]
    assert execution["events"] == len(shown) and execution["total"] == 11
    assert said in execution["leftOut"]
    wanted = {event.process for event in TALK if event.id in shown}
    assert set(execution["processes"]) == wanted


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "line 2"),
        ('{"process": "p", "seq": 0}', 'field "seq"'),
        ('{"process": "p1", "seq": 1}', "p1"),
        ('{"process": "x", "seq": 1, "parents": ["x#2"]}\n{"process": "x", "seq": 2}', "cycle"),
    ],
)
def test_a_bad_trace_gives_the_sentence_of_the_checks_and_no_page(
    trace: Path, tmp_path: Path, line: str, said: str
) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"process": "p1", "seq": 1}\n' + line + "\n")
    done = called("view", bad, "-o", tmp_path / "page.html")
    assert isinstance(done.exception, CausetError) and said in str(done.exception)
    assert not (tmp_path / "page.html").exists()


def test_a_trace_that_cannot_be_shown_is_one_sentence(trace: Path, tmp_path: Path) -> None:
    for options, said in (
        (["--only-process", "nobody"], "there is no process nobody"),
        (["--around", "nothing"], "there is no event nothing"),
        (["--from-position", "99"], "no event that is asked for is at positions 99 to 11"),
        (["--around", "p4#1", "--only-process", "p1"], "nothing that is asked for is connected with p4#1"),
        (["-o", tmp_path / "no" / "page.html"], "there is no folder"),
        (["-o", trace], "is the input; name another file"),
    ):
        done = called("view", trace, *options)
        assert isinstance(done.exception, BadInput) and said in str(done.exception)
    many = [Event("p", seq) for seq in range(1, 600)]
    write_trace(tmp_path / "many.jsonl", many)
    done = called("view", "--text", tmp_path / "many.jsonl")
    assert "too many to draw as text" in str(done.exception)


def test_a_notebook_shows_a_list_a_file_and_a_data_frame(trace: Path, tmp_path: Path) -> None:
    import pandas as pd  # type: ignore[import-untyped]

    shown = causet.view(TALK)
    assert repr(shown) == "<causet view: 11 events. 1 delivered too early.>"
    assert "sandbox=" in shown._repr_html_() and "<script" not in shown._repr_html_()
    assert repr(causet.view(str(trace))) == repr(shown)
    frame = pd.read_json(trace, lines=True)
    assert repr(causet.view(frame)) == repr(shown)
    assert data_of(shown.save(tmp_path / "saved.html").read_text(encoding="utf-8"))["kind"] == "view"
    with pytest.raises(BadInput, match='the row of p1, seq None: field "seq" is missing'):
        causet.view([{"process": "p1"}])


def test_what_is_no_trace_is_said_in_a_sentence(tmp_path: Path) -> None:
    for wrong, said in ((None, "not NoneType"), ({"a": 1}, "not dict"), (["x"], "not str"), ([], "no event")):
        with pytest.raises(BadInput, match=said):
            causet.view(wrong)
    with pytest.raises(BadInput, match="at least one"):
        causet.view(TALK, most=0)
    assert repr(causet.view(TALK, processes="p1")).startswith("<causet view: 3 events.")


def test_an_output_that_is_no_file_is_written_and_a_link_is_followed(trace: Path, tmp_path: Path) -> None:
    (tmp_path / "real.html").write_text("old")
    (tmp_path / "link.html").symlink_to(tmp_path / "real.html")
    called("view", trace, "-o", tmp_path / "link.html")
    assert (tmp_path / "link.html").is_symlink() and "causet-data" in (tmp_path / "real.html").read_text()
    assert called("view", trace, "-o", "/dev/null").return_value == 0
    assert Path("/dev/null").is_char_device()


def test_a_large_execution_is_drawn_without_a_verdict_and_says_so() -> None:
    events = [Event("p1", seq, "send", message=f"m{seq}", to=("p2",)) for seq in range(1, 7001)]
    events += [Event("p2", seq, "deliver", message=f"m{seq}") for seq in range(1, 7001)]
    assert judged_drawing(events, "large").verdict.status == "unjudged"


def test_faults_are_named_where_the_trace_names_them() -> None:
    assert fault_of(Event("p", 1, text="restarted by systemd")) == "restarted by systemd"
    assert fault_of(Event("p", 1, text="skill issue")) is None
    assert fault_of(Event("p", 1, extra={"fault": "power cut"})) == "power cut"


def test_a_report_leaves_out_what_cannot_be_read_and_says_so() -> None:
    counts = {f"p{number:02}": number for number in range(60)}
    figure = bars("x", "X", counts)
    assert len(figure.x) == 40 and figure.x[0] == "p59" and "20 with the fewest" in figure.note
    warm = heat("h", "H", [("a", "b", 2), ("a", "c", 1), ("d", "b", 5)])
    assert warm.rows == ["d", "a"] and list(warm.x) == ["b", "c"] and warm.values == [[5, 0], [2, 1]]
    drawing = Drawing.of("x", TALK)
    report = Report("r", drawing.verdict, figures=[figure, Figure("empty", "none", [])])
    assert [each["name"] for each in data_of(report.page())["report"]["figures"]] == ["x"]


def test_protocols_for_a_need() -> None:
    done = called("protocols", "--for", "one-order", "--for", "damage", "--json")
    assert [row["protocol"] for row in json.loads(done.stdout)] == ["merge"]
    done = called("protocols", "--for", "one-order", "--for", "no-clocks")
    assert done.return_value == 1 and "There is no protocol" in done.stdout


def test_the_doctor_says_what_works(monkeypatch: pytest.MonkeyPatch) -> None:
    done = called("doctor", "--quick", "--json")
    found = {each["what"]: each for each in json.loads(done.stdout)["findings"]}
    assert done.return_value == 0
    assert found["Python"]["state"] == found["Java"]["state"] == "fine"
    monkeypatch.setenv("PATH", "")
    told = {
        each["what"]: each for each in json.loads(called("doctor", "--quick", "--json").stdout)["findings"]
    }
    assert told["Java"]["state"] == "fine", "a JRE comes with the package"


# ---------------------------------------------------------------- the demonstration


def sent(stamper: Stamper, subject: str, to: str, clock: str) -> dict[str, Any]:
    time = f"2026-01-01T12:00:{clock}+00:00"
    return stamper.stamp({"text": subject}, to=to, subject=subject, time=time)


def a_payment_before_its_order(of_one_domain: bool) -> Run:
    """The shop's order, and the bank's payment and receipt because of it; the order arrives last. Either each
    service has one stamper, or, as before groups, one for each domain, which knows nothing of the other."""
    shop, bank = Stamper("shop"), Stamper("bank")
    order = sent(shop, "order", "orders", "02.000")
    if not of_one_domain:
        bank.saw(order)
    payment = sent(bank, "payment", "payments", "01.000")
    receipt = sent(bank, "receipt", "receipts", "03.000")
    steps = [("shop", "send", order), ("bank", "deliver", order)]
    steps += [("bank", "send", payment), ("bank", "send", receipt)]
    arrived = [(receipt, 5), (payment, 6), (payment, 7), (order, 8)]
    return Run({"accounts": ("orders", "payments"), "desk": ("orders", "receipts")}, steps, arrived)


def delivered_by_the_kernel(run: Run) -> dict[str, list[str]]:
    """What readers get in one batch per message."""
    served = Served(run.readers)
    rows = [{**envelope, "id": envelope["subject"]} for envelope, _ in run.arrived]
    found: dict[str, list[str]] = {reader: [] for reader in run.readers}
    for now, row in enumerate(rows):
        for each in served.step([{name: row.get(name) for name in served.schema.names}], now):
            found[each["receiver"]].append(each["id"])
    return found


def test_the_demonstration_judges_orders_by_happened_before() -> None:
    run = a_payment_before_its_order(of_one_domain=False)
    for orders in (run.as_arrived(), run.by_clock()):
        outcome = run.outcome(orders)
        assert outcome.status == "invalid" and outcome.deliveries == 4
    (first, *_) = run.outcome(run.by_clock()).early
    assert run.in_words(first) == (
        "“payment” (bank, its clock said 12:00:01.000) would reach accounts before "
        "“order” (shop, its clock said 12:00:02.000)"
    )
    through = [each for each in run.outcome(run.as_arrived()).early if each.process == "desk"]
    assert [run.chain_in_words(each) for each in through] == ["“order” (orders) → “receipt” (receipts)"]
    assert not any(map(run.is_through_others, through))


def test_a_story_of_one_stamper_per_service_is_valid_and_of_one_per_domain_is_not() -> None:
    now, before = (a_payment_before_its_order(of_one_domain=each) for each in (False, True))
    assert delivered_by_the_kernel(now) == {"accounts": ["order", "payment"], "desk": ["order", "receipt"]}
    assert now.outcome(delivered_by_the_kernel(now)).status == "valid"
    found = before.outcome(delivered_by_the_kernel(before))
    assert found.status == "invalid"
    assert {(each.process, each.delivered, each.before) for each in found.early} == {
        ("accounts", "payment", "order"),
        ("desk", "receipt", "order"),
    }


def test_the_page_and_the_trace_of_the_demonstration_need_a_file_each(tmp_path: Path) -> None:
    done = called("demo", "-o", tmp_path / "run", "--trace", f"{tmp_path}/../{tmp_path.name}/run")
    assert isinstance(done.exception, BadInput) and "need a file each" in str(done.exception)
    assert not [*tmp_path.iterdir()]


@pytest.mark.jvm
@pytest.mark.soak
def test_the_demonstration_through_kafka(tmp_path: Path) -> None:
    told = json.loads(run_causet("demo", "--kafka", "-o", tmp_path / "demo.html", "--json", *LOCAL))
    assert told["effects_before_causes"]["causet"] == 0 < told["effects_before_causes"]["time"]


@pytest.mark.jvm
@pytest.mark.soak
def test_an_interrupted_demonstration_leaves_nothing_running(tmp_path: Path) -> None:
    before = set(Path("/tmp").glob("causet-demo-*"))
    command = [*CAUSET, "demo", "-o", str(tmp_path / "demo.html"), *map(str, LOCAL)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 120
        below: list[tuple[int, str]] = []
        while time.monotonic() < deadline and not any("causet.live.service" in words for _, words in below):
            time.sleep(0.2)
            below = processes_below(process.pid)
        assert any("causet.live.service" in words for _, words in below)
        time.sleep(2)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130 and "Traceback" not in said
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and any(Path(f"/proc/{pid}").exists() for pid, _ in below):
        time.sleep(0.2)
    assert [words for pid, words in below if Path(f"/proc/{pid}").exists()] == []
    assert set(Path("/tmp").glob("causet-demo-*")) <= before
    assert not (tmp_path / "demo.html").exists()


@pytest.mark.jvm
def test_verify_and_audit_write_reports(tmp_path: Path, trace: Path) -> None:
    shared_spark()
    assert called("verify", trace, "--report", tmp_path / "verdict.html").return_value == 1
    report = data_of((tmp_path / "verdict.html").read_text(encoding="utf-8"))["report"]
    assert report["verdict"]["status"] == "invalid"
    assert report["proofs"][0]["sentence"].startswith("p3 delivered b before a.")
    held = next(figure for figure in report["figures"] if figure["name"] == "held")
    # b comes at 30 and goes at 31, a comes at 20 and 40 and goes at 21 and 41: never more than one is held.
    assert max(held["y"]) == 1 and held["y"][-1] == 0
    assert called("audit", trace, "--report", tmp_path / "audit.html").return_value == 0
    figures = data_of((tmp_path / "audit.html").read_text(encoding="utf-8"))["report"]["figures"]
    assert next(each for each in figures if each["name"] == "orders")["y"][2] == 0


# ---------------------------------------------------------------- one of several executions

PARSER, DELIMITER = r"(?<host>\S*) (?<clock>{.*})\n(?<event>.*)", "^=== (?<trace>.*) ===$"
LONG = "the nightly run of the eleventh on the machine with the broken clock, after the restart"


def runs(path: Path, *names: str) -> tuple[object, ...]:
    """A log of executions with these names; the event of the n-th has the text `event n`."""
    entries = (f'=== {name} ===\na {{"a":1}}\nevent {number}\n' for number, name in enumerate(names, 1))
    path.write_text("".join(entries))
    return "view", "--text", path, "--parser", PARSER, "--delimiter", DELIMITER


def listed(command: tuple[object, ...], *more: object) -> str:
    done = called(*command, *more)
    assert isinstance(done.exception, BadInput)
    return str(done.exception)


def test_every_name_that_is_listed_can_be_given_back(tmp_path: Path) -> None:
    names = [
        "one",
        LONG,
        LONG.replace("after", "before"),
        "x\x1b[31m" + "red" * 40,
        "with 'quotes'",
        "7",
        "one…",
    ]
    command = runs(tmp_path / "runs.log", *names)
    said = listed(command)
    assert said.startswith(f"{tmp_path / 'runs.log'}: there are 7 executions; name one with --execution")
    shown = said.partition("number: ")[2]
    assert said.isprintable()
    for number, part in enumerate(re.split(r", (?=\d: )", shown), 1):
        (name,) = shlex.split(part.removeprefix(f"{number}: "))
        done = called(*command, "--execution", name)
        assert f"event {number}\n" in done.output, name
    for number, name in enumerate(names, 1):
        assert f"event {number}\n" in called(*command, "--execution", name).output, name


@pytest.mark.parametrize("short", ["the nightly…", "the nightly...", "the…restart", "…the restart"])
def test_a_shortened_name_that_fits_one_execution_is_that_one(tmp_path: Path, short: str) -> None:
    command = runs(tmp_path / "runs.log", "one", LONG, "two")
    assert "event 2\n" in called(*command, "--execution", short).output


def test_a_shortened_name_that_fits_several_lists_them_with_numbers(tmp_path: Path) -> None:
    command = runs(tmp_path / "runs.log", "one", LONG + " once", LONG + " twice")
    (prefix,) = {printable(LONG + end) for end in (" once", " twice")}
    assert len(prefix) == 80
    for wanted in (prefix, "the…"):
        said = listed(command, "--execution", wanted)
        assert f"may be any of 2 executions; name one with --execution by its number: 2: '{prefix}'" in said
    assert "event 3\n" in called(*command, "--execution", 3).output


def test_executions_without_names_or_with_the_same_have_numbers(tmp_path: Path) -> None:
    command = runs(tmp_path / "runs.log", "one", "one")
    assert "may be any of 2 executions" in listed(command, "--execution", "one")
    assert "event 2\n" in called(*command, "--execution", "2").output
    unnamed = (*command[:-1], "^===.*$")
    assert listed(unnamed).endswith("number: 1: (no name), 2: (no name)")
    assert "event 1\n" in called(*unnamed, "--execution", "1").output
    for wanted in ("3", "0", "two", "…"):
        assert f"there is no execution {shlex.quote(wanted)}; there are 1: one" in listed(
            command, "--execution", wanted
        )

"""Names that attack the terminal: whatever a file says, every command prints plain text in short lines.

Each command runs on small inputs whose names, ids and texts hold escape sequences, C1 controls, marks that
turn the writing direction, line breaks, markup of rich and of HTML, and 70,000 characters.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql import SparkSession

from causet.cli import main
from causet.errors import BadInput, listed, printable, quote
from causet.escapes import HIDDEN, LONGEST_LINE, escaped, in_json, one_line
from causet.formats.trace import to_json
from causet.model import Event

ESCAPE = "\x1b[31m\x1b]0;title\x07"
EVIL = f"{ESCAPE}[red]ev\u202eil\u2066\x9b2J\u200b\x7f\ncauset: fine\r<script>alert(1)</script>\u2028\ufe0f"
LONG = "n" * 70_000
LONG_TEXT = "word " * 14_000
LONGEST = 4_000


def bad_letters(text: str) -> set[str]:
    """Characters that control a terminal, or that nobody sees; by their categories alone."""
    kinds = {"Cc", "Cf", "Cs", "Zl", "Zp"}
    return {letter for letter in text if unicodedata.category(letter) in kinds and letter != "\n"}


class Done(NamedTuple):
    code: int
    out: str
    err: str


Run = Callable[..., Done]


@pytest.fixture
def causet(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> Iterator[Run]:
    """Runs the command as the shell does, but in this process, and looks at all that it prints."""
    monkeypatch.chdir(tmp_path)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}

    def run(*words: object, data: bool = False) -> Done:
        monkeypatch.setattr(sys, "argv", ["causet", *map(str, words)])
        with monkeypatch.context() as here, pytest.raises(SystemExit) as ended:
            here.setattr(sys, "stdout", sys.stdout)  # main puts its own in place
            main()
        done = Done(int(str(ended.value.code)), *capfd.readouterr())
        assert "Traceback" not in done.err
        for stream in (done.out, done.err):
            assert not bad_letters(stream), (words, sorted(map(ascii, bad_letters(stream))))
            assert not HIDDEN.search(stream)
        lines = done.err.splitlines() if data else [*done.out.splitlines(), *done.err.splitlines()]
        assert max(map(len, lines), default=0) <= LONGEST, words
        assert "causet: fine" not in lines, "a line break in a name makes no line of its own"
        return done

    yield run
    for number, handler in handlers.items():
        signal.signal(number, handler)


def events(name: str, other: str) -> list[Event]:
    """p sends a, q answers with b; at the third, b comes before a. Then a gap and an unknown parent."""
    third = f"3{other}"
    return [
        Event(name, 1, "send", message=f"a{name}", to=(other, third), text=name, group=name, time=3),
        Event(other, 1, "receive", message=f"a{name}", time=1),
        Event(other, 2, "deliver", message=f"a{name}", time=2, id=f"id{name}"),
        Event(
            other, 3, "send", message=f"b{other}", to=(third, name), time=3, extra={f"x{name[:900]}": name}
        ),
        Event(third, 1, "deliver", message=f"b{other}", time=4),
        Event(third, 2, "deliver", message=f"a{name}", time=5),
        Event(third, 3, "deliver", message=f"a{name}", time=5),
        Event(name, 2, "deliver", message=f"a{name}", time=6),
        Event(name, 4, parents=(f"nobody{name}",), time=7, text="kill"),
        Event(third, 9, "deliver", message=f"unsent{name}", time=7),
    ]


NAMES = {"evil": EVIL, "long": LONG, "text": LONG_TEXT}


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    return NAMES[str(request.param)]


FEW = pytest.mark.parametrize(
    "name", [EVIL, LONG, pytest.param(LONG_TEXT, marks=pytest.mark.soak)], ids=NAMES.keys()
)
"""For the tests that start many jobs: long words and long names are shortened by the same function."""


@pytest.fixture
def trace(name: str, tmp_path: Path) -> Path:
    path = tmp_path / "trace.jsonl"
    path.write_text("".join(to_json(event) + "\n" for event in events(name, f"q{name}")), encoding="utf-8")
    return path


# ---------------------------------------------------------------- each command


def test_verify_audit_order_and_explain(causet: Run, spark: SparkSession, tmp_path: Path) -> None:
    """All names in one execution: each command starts several jobs."""
    trace = tmp_path / "trace.jsonl"
    lines = [to_json(event) for name in NAMES.values() for event in events(name, f"q{name}")]
    trace.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    said = causet("verify", trace)
    assert said.code == 1 and "delivered too early: 3" in said.out and "unknown parent: 3" in said.out
    found = json.loads(causet("verify", trace, "--json", data=True).out)
    early = {violation["delivered"] for violation in found["violations"]}
    assert early == {f"bq{name}" for name in NAMES.values()}, "JSON keeps the value"
    assert causet("verify", trace, "--strict").code == 2
    assert causet("audit", trace).code == 0
    pairs = json.loads(causet("audit", trace, "--json", data=True).out)["pairs"]
    assert {pair["cause_process"] for pair in pairs} >= set(NAMES.values())
    assert causet("order", trace, "-o", "ordered").code == 3
    for name in (EVIL, LONG):
        assert causet("explain", trace, f"a{name}").code == 3
        found = json.loads(causet("explain", trace, f"a{name}", "--json", data=True).out)
        assert found["event"]["id"] == f"{name}#1"
    assert causet("explain", trace, f"id{EVIL}", f"3q{EVIL}#2").code == 3
    assert causet("explain", trace, f"{EVIL}x").code == 2


def test_view_as_text_and_as_a_page(causet: Run, trace: Path, name: str, tmp_path: Path) -> None:
    assert causet("view", trace, "--text").code == 0
    assert causet("view", trace, "--text", "--ascii").out.isascii()
    assert causet("view", trace, "-o", "page.html").code == 0
    assert causet("view", trace, "--compare", trace, "-o", "two.html").code == 0
    assert json.loads(causet("view", trace, "-o", "page.html", "--json").out)["status"] == "invalid"
    assert causet("view", trace, "--around", f"nobody{name}"[:2000]).code == 2
    assert causet("view", trace, "--only-process", f"nobody{name}"[:2000]).code == 2
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<script>alert(1)" not in page and "\x1b" not in page


@pytest.mark.parametrize("output", ["out.log", "out.jsonl", "out.parquet", "out-messages.jsonl"])
def test_convert_prints_hostile_names_escaped(causet: Run, trace: Path, output: str) -> None:
    form = ["--to", "cloudevents"] if "messages" in output else []
    assert causet("convert", trace, "-o", output, *form).code in (2, 3)
    assert causet("convert", trace, "-o", f"second-{output}", "--json", *form, data=True).code in (2, 3)
    assert causet("convert", trace, "-o", f"third-{output}", "--strict", *form).code == 2


@FEW
def test_a_shiviz_log_with_hostile_names_is_printed_escaped(
    causet: Run, spark: SparkSession, name: str, tmp_path: Path
) -> None:
    host = "".join(letter for letter in name if not letter.isspace())
    lines = [
        r"(?<host>\S*) (?<clock>{.*}) (?<event>.*)",
        "",
        f"{host} {json.dumps({host: 1})} {escaped(name)}\x1b[2J",
        f"q {json.dumps({host: 1, 'q': 1})} says \u202e\x9b",
        f"q {json.dumps({host: 7, 'q': 3})} clock of the future",
        f"no line of a log {EVIL}",
    ]
    log = tmp_path / "run.log"
    log.write_text("\n".join(lines), encoding="utf-8")
    assert causet("view", log, "--text").code == 0
    assert causet("convert", log, "-o", "out.jsonl").code == 3
    assert causet("verify", log).code in (0, 3)
    assert causet("view", log, "--execution", f"x{name}"[:3000]).code == 2
    log.write_text("\n".join([*lines[:3], lines[2]]), encoding="utf-8")
    assert causet("view", log, "--text").code in (0, 2)


def message(name: str, sequence: object, **more: object) -> str:
    found = {
        "specversion": "1.0",
        "id": f"{name}:{sequence}",
        "source": name,
        "type": name,
        "sequence": sequence,
        "causaldeps": json.dumps({f"q{name}": 1}),
        "causaltime": "5.0",
        **more,
    }
    return json.dumps(found) + "\n"


@FEW
def test_cloudevents_and_tune(causet: Run, spark: SparkSession, name: str, tmp_path: Path) -> None:
    messages = tmp_path / "messages.jsonl"
    messages.write_text(
        message(name, "1".zfill(20)) + message(name, "3".zfill(20), causationid=f"nobody{name}"),
        encoding="utf-8",
    )
    assert causet("view", messages, "--text").code in (0, 2)
    assert causet("convert", messages, "-o", "out.jsonl").code in (2, 3)
    assert causet("verify", messages).code in (0, 2, 3)
    causet("tune", messages)
    causet("tune", messages, "--arrival", f"no{name}"[:3000])
    for wrong, tuned in (
        (message(name, name), True),
        (message(name, "1".zfill(20), causaldeps=name), False),
        (message(name, "1".zfill(20), causaltime=name), True),
        (message(name, "1".zfill(20)) * 2, False),
    ):
        messages.write_text(wrong, encoding="utf-8")
        causet("convert", messages, "-o", "out2.jsonl")
        causet("view", messages, "--text")
        if tuned:  # it looks at numbers and times, one by one
            causet("tune", messages)


def schedule_of(name: str, extra: str = "") -> str:
    p, q, a, b = (json.dumps(f"{each}{name}") for each in "pqab")
    return (
        f"processes: [{p}, {q}, r]\nsteps:\n"
        f"  - {{send: {a}, from: {p}, to: [{q}]}}\n  - {{send: {b}, from: {p}, to: [{q}]}}\n"
        f"  - {{receive: {b}, at: {q}}}\n{extra}"
    )


@pytest.mark.parametrize("protocol", ["none", "vector", "matrix", "histories", "merge"])
def test_a_schedule_with_hostile_names_is_printed_escaped(
    causet: Run, name: str, protocol: str, tmp_path: Path
) -> None:
    schedule = tmp_path / "schedule.yaml"
    q, a = json.dumps(f"q{name}"), json.dumps(f"a{name}")
    for extra in ("", f"  - {{receive: {a}, at: {q}}}\n", f"  - {{lose: {a}, at: {q}}}\n"):
        schedule.write_text(schedule_of(name, extra), encoding="utf-8")
        causet("replay", schedule, "-p", protocol, data=True)
        causet("replay", schedule, "-p", protocol, "-o", "trace.jsonl")
        causet("replay", schedule, "-p", protocol, "--json", data=True)
    for extra in (f"  - {{receive: {json.dumps(name)}, at: {q}}}\n", f"  - {{{json.dumps(name)}: 1}}\n"):
        schedule.write_text(schedule_of(name, extra), encoding="utf-8")
        assert causet("replay", schedule, "-p", protocol).code == 2


@pytest.mark.jvm  # `verify --conf` starts Spark with what a name makes of it
def test_groups_and_options(causet: Run, name: str, tmp_path: Path) -> None:
    groups = tmp_path / "groups.yaml"
    p, q = json.dumps(f"p{name}"), json.dumps(f"q{name}")
    key = json.dumps(name[:900])  # YAML takes no longer ones
    groups.write_text(f"processes: [{p}, {q}]\ngroups: {{{key}: [{p}, {q}]}}\n", encoding="utf-8")
    assert causet("simulate", "-p", "none", "--groups", groups, "-m", 200, "-n", 2).code == 1
    assert (
        causet("simulate", "-p", "none", "--groups", groups, "-m", 200, "-n", 2, "--json", data=True).code
        == 1
    )
    groups.write_text(
        f"processes: [{p}, {q}]\ngroups: {{{key}: [{p}, {json.dumps(name)}]}}\n", encoding="utf-8"
    )
    assert causet("simulate", "-p", "none", "--groups", groups, "-n", 2).code == 2
    short = name[:3000].replace("\0", "")
    for words in (
        ("simulate", "-p", short),
        ("simulate", "-p", "matrix", "--groups", short),
        ("simulate", "-p", "matrix", "--set", short),
        ("simulate", "-p", "matrix", "--delay", short),
        ("explore", "-p", "matrix", "--groups", short),
        ("explore", "-p", "histories", "--links", short),
        ("explore", "-p", "matrix", "--as-printed", short),
        ("protocols", "--for", short),
        ("compare", "--seed", short),
        ("doctor", f"--{short}"),
        (short,),
        ("verify", short),
        ("verify", "--master", "local[1]", "--conf", short, "x"),
        ("view", short, "-o", f"{short}/x.html"),
        ("convert", short, "-o", short),
    ):
        assert causet(*words).code == 2, words[:2]


BROKEN = {
    "twice": lambda name: [Event(name, 1), Event(name, 1)],
    "one id": lambda name: [Event(name, 1, id=name), Event(name, 2, id=name)],
    "sent twice": lambda name: [Event(name, n, "send", message=name, to=()) for n in (1, 2)],
    "cycle": lambda name: [
        Event(name, 1, parents=(f"q{name}#1",)),
        Event(f"q{name}", 1, parents=(f"{name}#1",)),
    ],
    "field": lambda name: [Event(name, 1, extra={"x": name}), Event(name, 0)],
}


@FEW
@pytest.mark.parametrize("fault", BROKEN)
def test_errors_about_a_broken_trace_escape_hostile_names(
    causet: Run, spark: SparkSession, name: str, fault: str, tmp_path: Path
) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_text("".join(to_json(event) + "\n" for event in BROKEN[fault](name)), encoding="utf-8")
    for words in (
        ("verify", path),
        ("order", path, "-o", "ordered"),
        ("view", path, "--text"),
        ("convert", path, "-o", "out.jsonl"),
    ):
        assert causet(*words).code == 2


@FEW
def test_lines_that_are_no_trace(causet: Run, spark: SparkSession, name: str, tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    for line in (
        json.dumps({"process": name, "seq": name}),
        json.dumps({"process": "p", "seq": 1, "kind": name}),
        json.dumps({"process": "p", "seq": 1, name: {name: 1}, "to": [1, name]}),
        '{"process": "\\ud800' + json.dumps(name)[1:] + ', "seq": 1}',
        "{" + f"{json.dumps(name)}: 1, {json.dumps(name)}: 2" + "}",
        name,
    ):
        path.write_text(line + "\n", encoding="utf-8")
        for words in (("verify", path), ("view", path, "--text"), ("convert", path, "-o", "out.jsonl")):
            assert causet(*words).code == 2, (words, line[:40])


def test_a_file_with_a_hostile_name(causet: Run, spark: SparkSession, tmp_path: Path) -> None:
    trace = tmp_path / f"{EVIL.replace('/', '|')}.jsonl"
    trace.write_text("".join(to_json(event) + "\n" for event in events("p", "q")), encoding="utf-8")
    assert causet("view", trace, "--text").code == 0
    assert causet("view", trace, "-o", f"{EVIL.replace('/', '|')}.html").code == 0
    assert causet("convert", trace, "-o", f"{EVIL.replace('/', '|')}-out.jsonl").code == 3
    assert causet("audit", trace, "--report", "audit.html").code in (0, 2)
    trace.write_text("no trace\n", encoding="utf-8")
    assert causet("view", trace, "--text").code == 2
    assert causet("verify", f"{trace}.not-there").code == 2


def test_the_doctor_quotes_what_the_environment_says(causet: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", EVIL)
    monkeypatch.setenv("TMPDIR", os.environ.get("TMPDIR", "/tmp"))
    assert causet("doctor", "--quick").code in (0, 1)


# ---------------------------------------------------------------- one by one


@pytest.mark.parametrize("letter", [*map(chr, range(32)), "\x7f", *map(chr, range(0x80, 0xA0))])
def test_every_control_character_is_escaped(letter: str) -> None:
    for told in (printable(letter), listed([letter]), quote(letter), one_line(letter), escaped(letter)):
        assert told.isprintable() and letter not in told


@pytest.mark.parametrize(
    "letter",
    "\u00ad\u061c\u200b\u200c\u200d\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2060\u2066\u2067\u2068"
    "\u2069\ufeff\ufff9\ud800\udfff\u034f\u115f\u3164\ufe0f\U000e0001\U000e0100",
)
def test_every_invisible_character_is_escaped(letter: str) -> None:
    for told in (
        printable(letter),
        listed([letter]),
        quote(letter),
        one_line(letter),
        in_json(f'"{letter}"'),
    ):
        assert told.isascii() and "\\" in told
    assert json.loads(in_json(json.dumps(letter, ensure_ascii=False))) == letter


@pytest.mark.parametrize("name", ["p1", "Zoë", "東京", "Ωmega", "a b", "[red]", "<b>", "😀"])
def test_what_is_simply_visible_stays_as_it_is(name: str) -> None:
    assert printable(name) == listed([name]) == one_line(name) == escaped(name) == name
    assert quote(name) == f'"{name}"'


def test_names_and_lines_are_shortened() -> None:
    assert printable(LONG) == "n" * 79 + "…"
    assert printable("\x1b" * 100) == "\\x1b" * 19 + "…", "no escape is cut in two"
    assert len(listed([LONG])) <= 80 and len(quote(LONG)) <= 80
    kept = one_line(f"before {LONG} after")
    assert kept.startswith("before nnn") and kept.endswith("nnn after") and len(kept) < 200
    assert len(one_line(LONG_TEXT)) <= LONGEST_LINE
    path = "/tmp/" + "folder/" * 100
    assert one_line(f"{path} cannot be read") == f"{path} cannot be read"


def test_an_error_is_a_line_wherever_it_is_raised() -> None:
    error = BadInput(f"no process {EVIL}; name another")
    assert not bad_letters(str(error)) and "\n" not in str(error) and str(error).endswith("; name another")
    assert str(BadInput(str(error))) == str(error), "a sentence within a sentence is escaped once"


def test_stacked_accents_stay_on_their_line() -> None:
    assert printable("e" + "\u0301" * 3) == "e\u0301\u0301\\u0301"


@pytest.mark.parametrize("value", [EVIL, {EVIL: [LONG, None, 1.5, True]}, "\ud800", "é\\u202e"])
def test_json_means_the_same_after_escaping(value: Any) -> None:
    told = in_json(json.dumps(value, ensure_ascii=False))
    assert json.loads(told) == value and not bad_letters(told)

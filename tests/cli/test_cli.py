"""The commands as a user runs them: what they print, how they end, and what they say to bad input.

Bad input never gives a traceback. It gives exit code 2 and one sentence, and leaves no file behind.

A user's command is a process of its own, and so it is here. Starting Python for each of them would take
minutes, so one process imports the commands and forks for each call, with bounded time and memory.
"""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from causet.check.oracle import judge
from causet.formats.trace import read_trace
from causet.protocols import PROTOCOLS
from tests.helpers.places import ROOT

COMMANDS = ("compare", "simulate", "replay", "explore", "protocols")
REAL = [sys.executable, "-c", "from causet.cli import main; main()"]

FORKS = """
import importlib, json, os, resource, signal, sys, traceback
import causet.cli
for name in (
    *("cli.simulate", "cli.replay", "cli.explore", "cli.compare", "cli.view", "cli.convert", "cli.protocols"),
    *("check.runs", "check.explorer", "check.scopes", "simulate.network", "simulate.replay"),
    *("formats.registry", "view.page", "view.text"),
):
    importlib.import_module(f"causet.{name}")  # once, rather than in every child
for line in sys.stdin:
    job = json.loads(line)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            signal.alarm(600)
            resource.setrlimit(resource.RLIMIT_CPU, (job["seconds"], job["seconds"] + 1))
            resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
            os.chdir(job["folder"])
            for name, values in job["changed"].items():
                vars(importlib.import_module(name)).update(values)
            for number, name in ((1, job["out"]), (2, job["err"])):
                os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
            sys.argv = ["causet", *job["arguments"]]
            causet.cli.main()
        except SystemExit as end:
            code = end.code
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class Done(NamedTuple):
    """A command that has ended; a negative code is the signal that ended it (24: it took too long)."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        assert self.out.count("\n") == 1, "one JSON value stands on one line"
        return json.loads(self.out)


Run = Callable[..., Done]


@pytest.fixture(scope="module")
def forks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    results = tmp_path_factory.mktemp("results")
    environment = {**os.environ, "PYTHONUTF8": "1", "OPENBLAS_NUM_THREADS": "1"}
    with subprocess.Popen(
        [sys.executable, "-c", FORKS],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    ) as server:
        assert server.stdin is not None and server.stdout is not None

        def call(
            *arguments: str,
            folder: Path,
            seconds: int = 20,
            changed: dict[str, dict[str, Any]] | None = None,
        ) -> Done:
            assert server.stdin is not None and server.stdout is not None
            job = {
                "arguments": arguments,
                "folder": str(folder),
                "seconds": seconds,
                "changed": changed or {},
                "out": str(results / "out"),
                "err": str(results / "err"),
            }
            server.stdin.write(json.dumps(job) + "\n")
            server.stdin.flush()
            code = int(server.stdout.readline())
            return Done(code, (results / "out").read_text(), (results / "err").read_text())

        yield call
        server.stdin.close()


@pytest.fixture
def causet(forks: Run, tmp_path: Path) -> Run:
    """Runs a command in an empty folder of its own, which is `tmp_path`."""

    def call(*arguments: str, **how: Any) -> Done:
        return forks(*arguments, **{"folder": tmp_path, **how})

    return call


Refused = Callable[..., str]


@pytest.fixture
def refused(causet: Run, tmp_path: Path) -> Refused:
    """Runs a command that must refuse: exit code 2, one sentence, nothing written. Gives the sentence."""

    def call(*arguments: str, seconds: int = 2) -> str:
        before = {path: path.lstat().st_mtime_ns for path in tmp_path.rglob("*")}
        done = causet(*arguments, seconds=seconds)
        assert "Traceback" not in done.err, done.err[-2000:]
        assert done.code == 2, done
        assert done.out == ""
        assert {path: path.lstat().st_mtime_ns for path in tmp_path.rglob("*")} == before
        return sentence(done.err)

    return call


def sentence(err: str) -> str:
    """The one sentence on stderr; click puts two lines about usage before its own."""
    lines = [line for line in err.splitlines() if line and not line.startswith(("Usage:", "Try '"))]
    assert len(lines) == 1, err[:2000]
    prefix, found, text = lines[0].partition(": ")
    assert found and prefix in ("causet", "Error")
    assert len(text) <= 600, "nobody reads a sentence as long as this"
    assert len(text.split()) >= 3
    return text


def schedule(folder: Path, text: str | bytes, name: str = "schedule.yaml") -> str:
    raw = text if isinstance(text, bytes) else text.encode()
    (folder / name).write_bytes(raw)
    return name


THREE = "processes: [p1, p2, p3]\nsteps:\n"
SENT = THREE + "  - {send: a, from: p1, to: [p2]}\n"
GOOD = SENT + "  - {receive: a, at: p2}\n"
OVERTAKEN = (
    THREE + "  - {send: a, from: p1, to: [p2]}\n  - {send: b, from: p1, to: [p2]}\n"
    "  - {receive: b, at: p2}\n  - {receive: a, at: p2}\n"
)
LOST = (
    THREE + "  - {send: a, from: p1, to: [p2]}\n  - {lose: a, at: p2}\n"
    "  - {send: b, from: p1, to: [p2]}\n  - {receive: b, at: p2}\n"
)
STUCK = (
    "processes: [p1, p2, p3]\ngroups: {g1: [p1, p2], g2: [p1, p3]}\n"
    "steps:\n  - {send: a, from: p1, group: g1}\n  - {send: b, from: p1, group: g2}\n  - drain\n"
)
HELD = (
    THREE + "  - {send: a, from: p1, to: [p2]}\n  - {send: b, from: p1, to: [p2]}\n  - {receive: b, at: p2}\n"
)
LINE = (
    "processes: [p1, p2, p3]\nlinks: [[p1, p2], [p2, p3]]\n"
    "separators: [{members: [p2], forward: [p3], backward: [p1]}]\n"
    "steps:\n  - {send: a, from: p1, to: [p3]}\n  - drain\n"
)

SMALL_COMPARISON = {"causet.cli.compare": {"SIZE": 6, "MESSAGES": 150}}
"""The same comparison with less of everything: the full one takes half a minute."""
SILENT_COMPARISON = {"causet.cli.compare": {"SIZE": 6, "MESSAGES": 1}}


# ---------------------------------------------------------------- help


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_shows_an_example_of_itself(causet: Run, command: str) -> None:
    done = causet(command, "--help")
    assert done.code == 0
    assert done.err == ""
    assert re.search(rf"^ *Examples?:\n +causet {command}\b", done.out, re.MULTILINE)
    assert "--json" in done.out
    assert causet(command, "-h") == done


def test_the_help_names_all_commands_and_exit_codes(causet: Run) -> None:
    done = causet("--help")
    assert done.code == 0
    assert "0 fine, 1 a finding, 2 bad input or usage, 3 unknown" in done.out
    for command in COMMANDS:
        assert re.search(rf"^  {command} ", done.out, re.MULTILINE)


@pytest.mark.soak
@pytest.mark.parametrize("command", COMMANDS)
def test_the_examples_in_the_help_run(causet: Run, tmp_path: Path, command: str) -> None:
    (tmp_path / "schedules").symlink_to(ROOT / "schedules")
    examples = re.findall(r"^ +causet (.+)$", causet(command, "--help").out, re.MULTILINE)
    assert examples
    for example in examples:
        done = causet(*example.split(), seconds=600)
        assert done.code == ("--as-printed" in example), done.err


def test_the_version_is_printed(causet: Run) -> None:
    done = causet("--version")
    assert (done.code, done.err) == (0, "")
    assert re.fullmatch(r"causet, version \d+\.\d+\.\d+\n", done.out)


# ---------------------------------------------------------------- exit codes


@pytest.mark.parametrize(
    ("code", "arguments"),
    [
        (0, "protocols"),
        (2, "protocols everything"),
        (0, "simulate -p matrix -m 50"),
        (0, "simulate -p merge -m 50 --loss 0.2 --duplicate 0.2"),
        (1, "simulate -p none -m 200"),
        (1, "simulate -p fifo -m 500 --groups all"),
        (2, "simulate -p nobody"),
        (0, "explore -p matrix -m 2"),
        (1, "explore -p none -m 2"),
        (1, "explore -p fifo -m 3"),
        (2, "explore -p nobody"),
        (3, "explore -p matrix --most-states 10"),
        (3, "explore -p slow --most-states 10"),
        (1, "explore -p none --most-states 10"),
    ],
)
@pytest.mark.parametrize("as_json", [False, True], ids=["text", "json"])
def test_the_exit_code_tells_the_verdict_as_text_and_as_json(
    causet: Run, code: int, arguments: str, as_json: bool
) -> None:
    done = causet(*arguments.split(), *(["--json"] if as_json else []))
    assert done.code == code
    assert "Traceback" not in done.err
    if code != 2:
        assert done.out
        assert done.err == ""
        if as_json:
            done.json()


@pytest.mark.parametrize(
    ("code", "text", "protocol", "told"),
    [
        (0, GOOD, "matrix", "every process delivered in causal order"),
        (0, SENT, "matrix", "not received: a by p2"),
        (0, OVERTAKEN, "matrix", "every process delivered in causal order"),
        (1, OVERTAKEN, "none", "OUT OF ORDER: p2 delivered b before a; but a → b"),
        (0, LOST, "matrix", "a message was lost; p2 holds b"),
        (1, STUCK, "fast --as-printed M2", "STUCK: everything has arrived, and p3 holds b"),
        (0, LOST, "none", "every process delivered in causal order"),
        (0, HELD, "matrix", "not everything was received; p2 holds b"),
    ],
)
@pytest.mark.parametrize("as_json", [False, True], ids=["text", "json"])
def test_exit_codes_of_replay(
    causet: Run, tmp_path: Path, code: int, text: str, protocol: str, told: str, as_json: bool
) -> None:
    schedule(tmp_path, text)
    done = causet("replay", "schedule.yaml", "-p", *protocol.split(), *(["--json"] if as_json else []))
    assert done.code == code
    if as_json:
        assert done.err == ""
        assert done.json()["stuck"] == ("STUCK" in told)
    else:
        assert told in done.err


@pytest.mark.parametrize("as_json", [False, True], ids=["text", "json"])
def test_exit_codes_of_compare(causet: Run, as_json: bool) -> None:
    options = ["--json"] if as_json else []
    done = causet("compare", *options, changed=SMALL_COMPARISON)
    assert (done.code, done.err) == (0, "")
    # A control that is not caught shows nothing, and a comparison that shows nothing is a finding.
    assert causet("compare", *options, changed=SILENT_COMPARISON).code == 1
    assert causet("compare", "--seed", "one").code == 2


@pytest.mark.soak
def test_the_comparison_of_full_size_catches_the_controls_and_nobody_else(causet: Run) -> None:
    done = causet("compare", "--json", seconds=300)
    assert done.code == 0
    assert {run["protocol"] for run in done.json() if run["violations"]} == {"fifo", "none"}


def test_a_real_process_ends_with_the_same_codes(tmp_path: Path) -> None:
    for code, arguments in ((0, "protocols"), (1, "explore -p none -m 2"), (2, "simulate -p nobody")):
        done = subprocess.run([*REAL, *arguments.split()], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == code
        assert "Traceback" not in done.stderr


# ---------------------------------------------------------------- JSON

SUMMARY = {
    "protocol",
    "processes",
    "messages",
    "deliveries",
    "control_messages",
    "stamp_entries_mean",
    "stamp_entries_max",
    "stamp_bytes_mean",
    "stamp_bytes_max",
    "added_delay_mean",
    "added_delay_max",
    "violations",
    "stuck",
    "states",
}
"""What the design says the summaries of simulate and explore hold."""


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_simulate_sums_up_as_the_design_says(causet: Run, protocol: str) -> None:
    summary = causet("simulate", "-p", protocol, "-m", "30", "-n", "5", "--seed", "7", "--json").json()
    assert summary.keys() >= SUMMARY
    assert (summary["protocol"], summary["processes"], summary["messages"]) == (protocol, 5, 30)
    assert summary["stuck"] == 0
    assert summary["seed"] == 7


def test_explore_sums_up_as_the_design_says(causet: Run) -> None:
    summary = causet("explore", "-p", "matrix", "-m", "2", "--json").json()
    assert (summary["protocol"], summary["processes"], summary["messages"]) == ("matrix", 3, 2)
    assert summary["complete"] is True
    assert summary["counterexample"] is None
    assert summary["violations"] == summary["stuck"] == 0
    assert summary["states"] > 10


def test_explore_has_every_field_of_the_summary(causet: Run) -> None:
    # Null where an exploration has no such number, as simulate has it with `states`.
    assert causet("explore", "-p", "matrix", "-m", "2", "--json").json().keys() >= SUMMARY


def test_an_exploration_that_stops_says_so_and_goes_no_further(causet: Run) -> None:
    summary = causet("explore", "-p", "matrix", "--most-states", "10", "--json").json()
    assert summary["complete"] is False
    assert summary["violations"] == 0
    assert summary["states"] <= 10


def test_the_counterexample_of_explore_replays(causet: Run, tmp_path: Path) -> None:
    found = causet("explore", "-p", "none", "-m", "2", "-o", "found.yaml", "--json")
    assert found.code == 1
    summary = found.json()
    assert summary["violations"] > 0
    assert (tmp_path / "found.yaml").read_text() == summary["counterexample"]
    replayed = causet("replay", "found.yaml", "-p", "none", "--json")
    assert replayed.code == 1
    assert replayed.json()["violations"]


BOTH_TO_ALL = (
    "processes: [p1, p2]\ngroups: {both: [p1, p2]}\nsteps:\n"
    "  - {send: a, from: p1, to: [p1, p2]}\n  - {send: b, from: p2, to: [p1, p2]}\n"
    "  - {receive: a, at: p2}\n  - {receive: b, at: p1}\n  - drain\n"
)
"""Each delivers its own message at the send, and then the other one; or, with merge, both in one order."""


@pytest.mark.parametrize("name", ["fifo", "vector", "merge"])
def test_one_order_is_judged_where_it_is_asked_for(causet: Run, tmp_path: Path, name: str) -> None:
    agree = name == "merge"
    file = schedule(tmp_path, BOTH_TO_ALL)
    how = ("--protocol", name, "--one-order", "--json")
    small = ("--groups", "all") if PROTOCOLS[name].grouped else ()
    for words in (
        ("replay", file, *how),
        ("explore", *how, "-n", "2", "-m", "2", *small),
        ("simulate", *how, "-n", "3", "-m", "60", "--groups", "all", "--own-copies"),
    ):
        done = causet(*words)
        found = done.json()
        assert (done.code, found["status"]) == ((0, "valid") if agree else (1, "invalid")), words
        assert bool(found["disagreements"]) != agree, words
    for words in (("replay", file, *how[:2], "--json"), ("replay", file, *how)):
        done = causet(*words)
        cycle = {"cycle": ["a", "b"], "processes": ["p1", "p2"]}
        asked = "--one-order" in words
        assert done.code == (1 if asked and not agree else 0)
        assert done.json()["disagreements"] == (([] if agree else [cycle]) if asked else None)


def test_replay_gives_status_and_violations_as_verify_does(causet: Run, tmp_path: Path) -> None:
    schedule(tmp_path, OVERTAKEN)
    verdict = causet("replay", "schedule.yaml", "-p", "none", "--json").json()
    assert verdict["status"] == "invalid"
    assert (verdict["events"], verdict["messages"]) == (6, 2)
    assert verdict["violations"] == [
        {"process": "p2", "delivered": "b", "before": "a", "because": ["a", "b"]}
    ]
    assert causet("replay", "schedule.yaml", "-p", "matrix", "--json").json()["status"] == "valid"


def test_protocols_lists_every_protocol_with_what_it_costs_and_promises(causet: Run) -> None:
    rows = causet("protocols", "--json").json()
    assert [row["protocol"] for row in rows] == list(PROTOCOLS)
    for row in rows:
        kind = PROTOCOLS[row["protocol"]]
        assert ("causal order" in row["promises"]) == kind.PROMISES.causal
        assert row["errata"] == list(kind.errata)
        assert row["stamp"] == kind.counts


def test_the_comparison_compares_every_protocol_on_the_same_messages(causet: Run) -> None:
    runs = causet("compare", "--json", changed=SMALL_COMPARISON).json()
    assert {run["protocol"] for run in runs} == set(PROTOCOLS)
    for run in runs:
        assert run.keys() >= SUMMARY
        assert run["messages"] == 150
        assert (run["violations"] > 0) == (not PROTOCOLS[run["protocol"]].PROMISES.causal)
    for groups in ("unicast", "ring:4", "all"):
        assert len({run["deliveries"] for run in runs if run["groups"] == groups}) == 1


# ---------------------------------------------------------------- output


def test_simulate_writes_a_trace_and_prints_a_summary(causet: Run, tmp_path: Path) -> None:
    done = causet("simulate", "-p", "none", "-m", "100", "-o", "trace.jsonl")
    assert done.code == 1
    assert "OUT OF ORDER" in done.out
    assert "trace: trace.jsonl" in done.out
    assert [path.name for path in tmp_path.iterdir()] == ["trace.jsonl"]
    found = judge(read_trace(tmp_path / "trace.jsonl"))
    summary = causet("simulate", "-p", "none", "-m", "100", "--json").json()
    assert len(found.violations) == summary["violations"] > 0


def test_replay_prints_the_trace_with_the_names_of_the_file(causet: Run, tmp_path: Path) -> None:
    schedule(tmp_path, GOOD)
    done = causet("replay", "schedule.yaml", "-p", "matrix")
    assert [json.loads(line)["message"] for line in done.out.splitlines()] == ["a", "a", "a"]
    written = causet("replay", "schedule.yaml", "-p", "matrix", "-o", "trace.jsonl")
    assert (tmp_path / "trace.jsonl").read_text() == done.out
    assert written.out.strip() == done.err.strip()
    assert written.err == ""


def test_warnings_go_to_stderr_and_do_not_disturb_json(causet: Run) -> None:
    done = causet("simulate", "-p", "bounded", "--k", "64", "-m", "20", "--json")
    assert done.code == 0
    assert done.json()["messages"] == 20
    assert sentence(done.err).startswith("warning: k = 64 bounds nothing")


@pytest.mark.parametrize(
    "arguments",
    ["simulate -p matrix -m 3000 -n 3", "explore -p matrix -m 3", "compare"],
    ids=["simulate", "explore", "compare"],
)
def test_no_progress_bar_where_stderr_is_no_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, causet: Run, arguments: str
) -> None:
    assert causet(*arguments.split(), changed=SMALL_COMPARISON).err == ""
    if arguments != "compare":  # rich takes these variables for a terminal
        forced = {**os.environ, "FORCE_COLOR": "1", "TTY_COMPATIBLE": "1", "TERM": "xterm-256color"}
        done = subprocess.run(
            [*REAL, *arguments.split()], cwd=tmp_path, env=forced, capture_output=True, text=True
        )
        assert done.stderr == ""


def test_the_same_arguments_print_the_same_bytes(causet: Run) -> None:
    for arguments in ("simulate -p relative -m 100 --json", "explore -p fast -m 2 --json", "protocols"):
        assert causet(*arguments.split()) == causet(*arguments.split())


# ---------------------------------------------------------------- a reader that leaves


def piped(folder: Path, *arguments: str, lines: int) -> tuple[int, str]:
    """The exit code and stderr of a command whose reader leaves after so many lines."""
    with subprocess.Popen(
        [*REAL, *arguments], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        for _ in range(lines):
            assert process.stdout.readline()
        process.stdout.close()
        err = process.stderr.read().decode()
    return process.returncode, err


@pytest.mark.parametrize("arguments", ["protocols", "simulate -p matrix -m 20 --json", "--help"])
def test_a_reader_that_left_is_no_error_and_no_finding(tmp_path: Path, arguments: str) -> None:
    assert piped(tmp_path, *arguments.split(), lines=0) == (0, "")


@pytest.mark.parametrize(("last", "ends"), [("drain", 0), ("{receive: m599, at: p2}", 1)])
def test_a_reader_that_leaves_after_one_line_hides_no_finding(tmp_path: Path, last: str, ends: int) -> None:
    names = [f"m{number}" for number in range(600)]
    steps = [f"  - {{send: {name}, from: p1, to: [p2]}}\n" for name in names]
    schedule(tmp_path, THREE + "".join(steps) + f"  - {last}\n  - drain\n")
    code, err = piped(tmp_path, "replay", "schedule.yaml", "-p", "none", lines=1)
    assert code == ends
    assert "Traceback" not in err and "Broken pipe" not in err


# ---------------------------------------------------------------- bad usage


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("nothing", "No such command 'nothing'"),
        ("verfy", "Did you mean verify?"),
        ("--nothing", "No such option '--nothing'"),
        *[(f"{command} --nothing", "No such option '--nothing'") for command in COMMANDS],
        ("compare now", "unexpected extra argument"),
        ("simulate now", "Missing option '--protocol'"),
        ("simulate -p matrix now", "unexpected extra argument"),
        ("explore -p matrix now", "unexpected extra argument"),
        ("replay", "Missing argument 'SCHEDULE'"),
        ("replay schedule.yaml", "Missing option '--protocol'"),
        ("simulate", "Missing option '--protocol'"),
        ("explore", "Missing option '--protocol'"),
        ("simulate -p matrix -m", "requires an argument"),
        ("simulate -p nobody", 'unknown protocol "nobody"; the protocols are matrix, bounded'),
        ("explore -p nobody", 'unknown protocol "nobody"; the protocols are matrix, bounded'),
        ("replay schedule.yaml -p nobody", 'unknown protocol "nobody"; the protocols are matrix, bounded'),
        ("simulate -p Matrix", 'unknown protocol "Matrix"'),
        ("simulate -p bounded --as-printed M4", "bounded has no printed variant M4; there are S1, S2"),
        ("explore -p bounded --as-printed S1,H1", "bounded has no printed variant H1; there are S1, S2"),
        (
            "replay schedule.yaml -p matrix --as-printed M4",
            "matrix has no printed variant M4; there are none",
        ),
        ("simulate -p matrix --k 9", 'matrix has no option "k"'),
        ("explore -p matrix --epsilon 1", 'matrix has no option "epsilon"'),
        ("replay schedule.yaml -p matrix --silence 1", 'matrix has no option "silence"'),
        ("simulate -p merge --set epsilon", "write NAME=VALUE"),
        ("simulate -p merge --set =2", "write NAME=VALUE"),
        ("simulate -p merge --set colour=red", 'merge has no option "colour"; its options are'),
        ("simulate -p merge --set as_printed=K1", 'merge has no option "as_printed"'),
        ("simulate -p merge --set clock=vector", "the clocks of merge are kn and rc"),
        ("simulate -p merge --set ties=luck", "merge breaks ties by process or by arrival"),
        ("simulate -p merge --set clock=rc --set ties=arrival", "by process and sequence only"),
        ("simulate -p fast --set variant=odd", "must be groups or neighbours"),
        ("simulate -p histories --set r9=maybe", 'must be on or off, not "maybe"'),
    ],
)
def test_bad_usage_is_one_sentence(refused: Refused, tmp_path: Path, arguments: str, told: str) -> None:
    schedule(tmp_path, GOOD)
    assert told in refused(*arguments.split())


@pytest.mark.parametrize("rows", ["S1,", ",", "S1,,S2"])
def test_an_empty_row_is_named_as_such(refused: Refused, rows: str) -> None:
    told = refused("simulate", "-p", "bounded", "--as-printed", rows)
    assert "no erratum ;" not in told
    assert "its rows are S1, S2" in told


# ---------------------------------------------------------------- numbers

HUGE = "1" + 30 * "0"
ABSURD = ("0", "-1", "1e400", "nan", HUGE)
SIMULATE, EXPLORE, REPLAY = "simulate -m 20", "explore -m 1", "replay schedule.yaml"
MERGE_SETTINGS = (("--epsilon", "0"), ("--delta", "0"), ("--set modulus=", "0"), ("--set delta_min=", "0"))

NUMBERS: list[tuple[str, str, tuple[str, ...]]] = [
    # command, option, which of the absurd numbers it bears
    (f"{SIMULATE} -p matrix", "--processes", ()),
    ("simulate -p matrix", "--messages", ("0",)),
    (f"{SIMULATE} -p matrix", "--rate", ()),
    (f"{SIMULATE} -p matrix", "--seed", ("0", "-1", HUGE)),
    (f"{SIMULATE} -p merge", "--skew", ("0",)),
    (f"{SIMULATE} -p merge", "--loss", ("0",)),
    (f"{SIMULATE} -p merge", "--duplicate", ("0",)),
    (f"{SIMULATE} -p merge", "--corrupt", ("0",)),
    (f"{EXPLORE} -p matrix", "--processes", ()),
    ("explore -p matrix", "--messages", ()),
    (f"{EXPLORE} -p slow -n 2", "--nulls", ("0",)),
    (f"{EXPLORE} -p matrix", "--most-states", (HUGE,)),
    *[
        (f"{command} -p {protocol}", option, ("0",) if (option, "0") in MERGE_SETTINGS else ())
        for command in (SIMULATE, EXPLORE, REPLAY)
        for protocol, option in (
            ("bounded", "--k"),
            ("merge", "--epsilon"),
            ("merge", "--delta"),
            ("merge", "--set modulus="),
            ("merge", "--set delta_min="),
            ("merge", "--set events_per_tick="),
            ("merge", "--set capacity="),
            ("slow", "--silence"),
        )
    ],
]


def with_number(command: str, option: str, number: str) -> list[str]:
    option, separator, name = option.partition(" ")
    return [*command.split(), option, f"{name}{number}" if separator else number]


def named(case: tuple[str, str, tuple[str, ...]]) -> str:
    return f"{case[0].split()[0]}-{case[0].split()[-1]}-{case[1].split()[-1].strip('-=')}"


@pytest.mark.parametrize(
    ("case", "number"),
    [
        pytest.param(case, number, id=f"{named(case)}-{'1e30' if number == HUGE else number}")
        for case in NUMBERS
        for number in ABSURD
        if number not in case[2]
    ],
)
def test_absurd_numbers_are_refused(
    refused: Refused, tmp_path: Path, case: tuple[str, str, tuple[str, ...]], number: str
) -> None:
    schedule(tmp_path, GOOD)
    refused(*with_number(*case[:2], number))


@pytest.mark.parametrize(
    ("case", "number"),
    [
        pytest.param(case, number, id=f"{named(case)}-{'1e30' if number == HUGE else number}")
        for case in NUMBERS
        for number in case[2]
    ],
)
def test_odd_numbers_that_make_sense_are_taken(
    causet: Run, tmp_path: Path, case: tuple[str, str, tuple[str, ...]], number: str
) -> None:
    schedule(tmp_path, GOOD + "  - drain\n")
    done = causet(*with_number(*case[:2], number))
    assert done.code == 0
    assert "Traceback" not in done.err


@pytest.mark.parametrize("seed", ["1e400", "nan", "one"])
def test_the_comparison_wants_a_whole_number_as_its_seed(refused: Refused, seed: str) -> None:
    assert "is not a valid integer" in refused("compare", "--seed", seed)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("simulate -p matrix -n 1", "must be from 2 to"),
        ("simulate -p merge --loss 1", "a probability from 0 to below 1"),
        ("simulate -p merge --duplicate 1.5", "a probability from 0 to below 1"),
        ("simulate -p merge --corrupt -0.1", "a probability from 0 to below 1"),
        ("simulate -p matrix --loss 0.1", "matrix does not claim to bear loss; merge does"),
        ("simulate -p relative --loss 0.1", "relative does not claim to bear loss; merge does"),
        ("simulate -p matrix --corrupt 0.1", "matrix does not claim to bear corruption; merge does"),
        ("simulate -p matrix --skew 1", "matrix has no clock"),
        ("simulate -p bounded --k 6", "k is at least 7"),
        ("simulate -p bounded --k 65", "k = 65 is too large"),
        ("simulate -p bounded --k 9,9", "k has 2 values for 8 processes"),
        ("simulate -p bounded --k 9,x,9,9,9,9,9,9", 'must be a whole number, not "x"'),
        ("simulate -p bounded --k 8 --as-printed S4", "outside the range of the paper"),
        ("explore -p bounded --k 1", "k is at least 2"),
        ("explore -p bounded --k 10", "k = 10 is too large"),
        ("simulate -p merge --epsilon 1.5", "must be a whole number"),
        ("simulate -p merge --epsilon 10001", "use a coarser tick"),
        ("simulate -p merge --delta 1000001", "at most 1,000,000"),
        ("simulate -p merge --set modulus=14", "at least 2ε + δ + 1 = 15"),
        ("simulate -p merge --set delta_min=11", "delta_min = 11 is more than delta = 10"),
        ("simulate -p merge --set events_per_tick=0", "at least one event must fit a tick"),
        ("explore -p matrix -n 7", "an exploration takes from 2 to 6"),
        ("explore -p matrix -m 9", "an exploration takes from 1 to 8"),
    ],
)
def test_numbers_out_of_range(refused: Refused, arguments: str, told: str) -> None:
    assert told in refused(*arguments.split())


@pytest.mark.parametrize(
    "arguments",
    [
        "simulate -p matrix --rate 1e30",
        f"simulate -p bounded --k {HUGE}",
        f"simulate -p merge --delta {HUGE}",
        "simulate -p slow --silence 1e30",
        "simulate -p matrix --delay const:1e30",
    ],
)
def test_what_is_too_large_is_not_said_to_be_too_small_or_no_number(refused: Refused, arguments: str) -> None:
    assert re.search(
        r"too (large|long|many)|at most|below|less than|up to|endless", refused(*arguments.split())
    )


@pytest.mark.parametrize(
    "delay",
    [
        *("", "exp", "exp:", "exp:x", "exp:-1", "exp:nan", "exp:inf", "exp:1e400", "exp:1:2", "gamma:1"),
        *("const:-1", "const", "const:1:2", "uniform:1", "uniform:2:1", "uniform:-1:1", "uniform:1:2:3"),
        *("lognormal:1", "lognormal:0:1", "lognormal:1:-1", "lognormal:1:700", "lognormal:1:1e8", "const: "),
    ],
)
def test_delays_that_are_none(refused: Refused, delay: str) -> None:
    assert "delay" in refused("simulate", "-p", "matrix", "-m", "20", "--delay", delay)


@pytest.mark.parametrize(
    "arguments",
    [
        "simulate -p merge -m 20 --rate 1e-10",
        "simulate -p slow -m 20 --silence 1e-300",
        "explore -p merge -m 1 -n 2 --delta 100000",
    ],
)
def test_what_would_take_for_ever_is_refused(refused: Refused, arguments: str) -> None:
    refused(*arguments.split())


def test_more_than_memory_holds_is_refused_in_a_sentence(refused: Refused) -> None:
    refused("simulate", "-p", "matrix", "-n", "100000", "-m", "20")


def test_times_that_no_number_holds_are_refused_whether_written_or_not(refused: Refused) -> None:
    arguments = ("simulate", "-p", "matrix", "-m", "20", "--rate", "5e-324")
    assert "rate" in refused(*arguments, "-o", "trace.jsonl")
    assert "rate" in refused(*arguments)


def test_a_process_that_holds_too_many_says_so_in_the_words_of_the_trace(refused: Refused) -> None:
    told = refused("simulate", "-p", "merge", "-m", "20", "--set", "capacity=1")
    assert "capacity" in told
    assert re.search(r"\bp\d:\d", told), "messages are called p1:3"


def test_every_row_of_bounded_as_printed_can_be_explored(causet: Run) -> None:
    # S4 is about which k is accepted; nobody gave a k here.
    for rows in ("", "S4"):
        done = causet("explore", "-p", "bounded", "-m", "2", "--as-printed", rows)
        assert (done.code in (0, 1), done.err) == (True, "")


# ---------------------------------------------------------------- groups and links

GARBAGE: dict[str, bytes] = {
    "unclosed.yaml": b"groups: {g1: [p1, p2",
    "binary.yaml": bytes(range(256)),
    "zeros.yaml": bytes(100),
    "empty.yaml": b"",
    "comment.yaml": b"# nothing\n",
    "deep.yaml": b"[" * 100_000,
    "deep.json": b"[" * 100_000,
    "list.yaml": b"- p1\n",
    "word.yaml": b"hello",
    "alias.yaml": b"&a [*a]",
    "tag.yaml": b"groups: !!python/object/apply:os.getcwd []",
    "number.yaml": b"9" * 10_000,
    "other.yaml": b"colour: red",
    "twice.yaml": b"groups: {}\ngroups: {}\n",
}


@pytest.mark.parametrize("name", GARBAGE)
@pytest.mark.parametrize("option", ["--groups", "--links"])
def test_files_of_groups_and_links_that_are_garbage(
    refused: Refused, tmp_path: Path, option: str, name: str
) -> None:
    (tmp_path / name).write_bytes(GARBAGE[name])
    assert refused("simulate", "-p", "vector", "-m", "20", option, name, "-o", "trace.jsonl").startswith(name)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("processes: [p1, p2]\n", "the field `groups` is missing"),
        ("groups: {g1: [p1]}\n", "a group has at least 2 members"),
        ("groups: {g1: [p1, p9]}\n", 'unknown process "p9"'),
        ("groups: {g1: [p1, p1]}\n", '"p1" appears twice'),
        ("groups: {g1: p1}\n", "expected a list of names"),
        ("groups: [g1]\n", "expected names with their members"),
        ("groups: {1: [p1, p2]}\n", "not text"),
        ("processes: [p1, p2]\ngroups: {g1: [p1, p3]}\n", 'unknown process "p3"'),
    ],
)
def test_groups_that_cannot_be_are_named_with_their_file(
    refused: Refused, tmp_path: Path, content: str, told: str
) -> None:
    (tmp_path / "groups.yaml").write_text(content)
    found = refused("simulate", "-p", "vector", "-m", "20", "--groups", "groups.yaml")
    assert told in found
    assert found.startswith("groups.yaml")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("simulate -p vector --groups missing.yaml", 'unknown group shape "missing.yaml"'),
        ("simulate -p vector --groups g1", 'unknown group shape "g1"; the shapes are all, unicast'),
        ("simulate -p vector --groups ring:1", "a group has at least 2 members"),
        ("simulate -p vector --groups ring:9", "asks for groups of 9 among 8 processes"),
        ("simulate -p vector --groups ring:-1", "unknown group shape"),
        ("simulate -p vector --groups ring:x", "unknown group shape"),
        (f"simulate -p vector --groups ring:{HUGE}", "unknown group shape"),
        ("simulate -p vector --groups random:0x2", "makes 0 groups"),
        ("simulate -p vector --groups random:999x3", "processes have only 56"),
        ("simulate -p vector --groups unicast", "vector sends to groups, and unicast has none"),
        ("simulate -p direct --groups ring:4", "direct is for broadcast; use --groups all"),
        ("simulate -p vector --groups folder", "folder: cannot be read: Is a directory"),
        ("simulate -p histories --links missing.yaml", 'unknown link shape "missing.yaml"'),
        ("simulate -p histories --links folder", "folder: cannot be read: Is a directory"),
        ("simulate -p histories --links cycle -n 2", "needs at least 3 processes"),
        ("simulate -p histories --links path --groups ring:4", "is not linked with"),
        ("explore -p fast --groups g1", 'unknown group shape "g1"'),
        ("explore -p fast --groups unicast", "fast sends to groups, and unicast makes none"),
        ("explore -p fast --groups ring:9", "asks for groups of 9 among 3 processes"),
        ("explore -p histories --links web", 'unknown link shape "web"'),
        ("explore -p matrix --groups g1", "group"),
        ("explore -p fast --links web", "link"),
    ],
)
def test_groups_and_links_that_do_not_exist(
    refused: Refused, tmp_path: Path, arguments: str, told: str
) -> None:
    (tmp_path / "folder").mkdir()
    assert told in refused(*arguments.split(), "-m", "3")


@pytest.mark.parametrize("option", ["--groups", "--links"])
def test_no_name_at_all_is_not_taken_for_the_folder(refused: Refused, option: str) -> None:
    assert "directory" not in refused("simulate", "-p", "histories", "-m", "3", option, "")


def test_a_shape_is_a_shape_even_where_a_file_has_its_name(causet: Run, tmp_path: Path) -> None:
    plain = causet("simulate", "-p", "vector", "-m", "20", "--groups", "all", "--json")
    (tmp_path / "all").write_text("a list of everything\n")
    assert causet("simulate", "-p", "vector", "-m", "20", "--groups", "all", "--json") == plain


def test_a_process_that_is_linked_with_nobody_cannot_send(refused: Refused, tmp_path: Path) -> None:
    (tmp_path / "links.yaml").write_text("processes: [p1, p2, p3]\nlinks: [[p1, p2]]\n")
    assert "p3" in refused("simulate", "-p", "histories", "-m", "20", "--links", "links.yaml")


# ---------------------------------------------------------------- where output cannot go

WRITERS = (
    "simulate -p matrix -m 20",
    "replay schedule.yaml -p matrix",
    "replay schedule.yaml -p matrix --json",
    "explore -p none -m 2 --json",
)


@pytest.mark.parametrize("command", WRITERS)
@pytest.mark.parametrize(
    ("output", "told"),
    [
        ("missing/out.jsonl", "there is no folder "),
        ("folder", "irectory"),
        ("schedule.yaml/out.jsonl", "Not a directory"),
        (300 * "x", "File name too long"),
    ],
    ids=["missing", "folder", "file", "long"],
)
def test_output_that_cannot_be_written(
    refused: Refused, tmp_path: Path, command: str, output: str, told: str
) -> None:
    schedule(tmp_path, GOOD)
    (tmp_path / "folder").mkdir()
    found = refused(*command.split(), "-o", output)
    assert told in found
    assert output in found


def test_an_exploration_looks_at_its_output_before_it_starts(refused: Refused) -> None:
    refused("explore", "-p", "matrix", "-m", "2", "-o", "missing/found.yaml")


def test_a_run_that_fails_midway_leaves_the_old_file_alone(refused: Refused, tmp_path: Path) -> None:
    (tmp_path / "trace.jsonl").write_text("what was there before")
    refused("simulate", "-p", "merge", "--set", "capacity=1", "-m", "100", "-o", "trace.jsonl")
    refused("simulate", "-p", "matrix", "--loss", "0.5", "-o", "trace.jsonl")
    assert (tmp_path / "trace.jsonl").read_text() == "what was there before"


@pytest.mark.parametrize("command", WRITERS)
def test_what_is_no_file_is_never_replaced_by_one(causet: Run, tmp_path: Path, command: str) -> None:
    # A named pipe stands for /dev/null and /dev/stdout, which root would lose.
    schedule(tmp_path, GOOD)
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        done = causet(*command.split(), "-o", "pipe")
    finally:
        os.close(reader)
    assert "Traceback" not in done.err
    assert stat.S_ISFIFO((tmp_path / "pipe").lstat().st_mode)


# ---------------------------------------------------------------- bad schedules


@pytest.mark.parametrize("name", GARBAGE)
def test_schedules_that_are_garbage(refused: Refused, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(GARBAGE[name])
    assert refused("replay", name, "-p", "matrix", "-o", "trace.jsonl").startswith(name)


@pytest.mark.parametrize(
    ("steps", "told"),
    [
        ("{receive: a, at: p2}", 'step 1: message "a" was never sent'),
        ("{send: a, from: p1, to: [p2]}; {receive: b, at: p2}", 'step 2: message "b" was never sent'),
        (
            "{send: a, from: p1, to: [p2]}; {receive: a, at: p2}; {receive: a, at: p2}",
            'step 3: no copy of "a"',
        ),
        ("{send: a, from: p1, to: [p2]}; {lose: a, at: p2}; {receive: a, at: p2}", 'step 3: no copy of "a"'),
        ("{send: a, from: p1, to: [p2]}; drain; {receive: a, at: p2}", 'step 3: no copy of "a"'),
        ("{send: a, from: p1, to: [p2]}; {receive: a, at: p3}", 'step 2: message "a" is not addressed to p3'),
        ("{send: a, from: p1, to: [p2]}; {receive: a, at: p1}", 'step 2: message "a" is not addressed to p1'),
        ("{send: a, from: p1, to: [p2]}; {lose: a, at: p3}", 'step 2: message "a" is not addressed to p3'),
        ("{send: a, from: p1, to: [p2]}; {duplicate: a, at: p3}", '"a" is not addressed to p3'),
        ("{send: a, from: p1, to: [p2]}; {send: a, from: p2, to: [p1]}", 'step 2: message "a" is sent twice'),
        ("{send: a, from: p9, to: [p2]}", 'step 1: unknown process "p9"; the processes are p1, p2, p3'),
        ("{send: a, from: p1, to: [p9]}", 'step 1: unknown process "p9"'),
        ("{send: a, from: p1, to: [p2]}; {receive: a, at: p9}", 'step 2: unknown process "p9"'),
        ("{tick: 1, at: p9}", 'step 1: unknown process "p9"'),
        ("{null: p9}", 'step 1: unknown process "p9"'),
        ("{corrupt: p9}", 'step 1: unknown process "p9"'),
        ("{send: a, from: p1, group: g9}", 'step 1: unknown group "g9"; the groups are g1'),
        ("{null: p1, group: g9}", 'step 1: unknown group "g9"'),
        ("{null: p3, group: g1}", "step 1: p3 is not a member of g1"),
        ("{send: a, from: p1}", "either `to` or `group`"),
        ("{send: a, from: p1, to: [p3], group: g1}", "or both, where `to` has all its members"),
        ("{send: a, from: p1, to: []}", "at least one process"),
        ("{send: a, from: p1, to: p2}", "a list with at least one process"),
        ("{send: a, from: p1, to: [p1]}", "its sender alone"),
        ("{send: a, to: [p2]}", "field `from` is missing"),
        ("{send: a, from: p1, to: [p2], at: p3}", 'a send step has no field "at"'),
        ("{send: a!1, from: p1, to: [p2]}", "names with ! are for control messages"),
        ("{send: 1, from: p1, to: [p2]}", "1 is not a message name"),
        ("{send: '', from: p1, to: [p2]}", "is not a message name"),
        ("{receive: a}", "field `at` is missing"),
        ("{receive: p1!1, at: p2}", 'step 1: no copy of "p1!1" is under way to p2'),
        ("{tick: -1}", "the clock must be a whole number"),
        ("{tick: 1.5}", "the clock must be a whole number"),
        ("{tick: .nan}", "the clock must be a whole number"),
        ("{tick: true}", "the clock must be a whole number"),
        (f"{{tick: {HUGE}}}", "the clock"),
        ("{null: p1}", "matrix has no null messages"),
        ("{corrupt: p1}", "matrix does not claim to recover from damage"),
        ("{send: a, from: p1, to: [p2]}; {corrupt: a, at: p2}", "does not claim to bear damaged messages"),
        ("{corrupt: p1, seed: -1}", "the seed must be a whole number"),
        ("{corrupt: p1, seed: x}", "the seed must be a whole number"),
        ("{wait: 1}", "exactly one of send, receive"),
        ("{}", "exactly one of send, receive"),
        ("{send: a, receive: a}", "exactly one of send, receive"),
        ("stop", '"stop" is not a step'),
        ("3", "3 is not a step"),
        ("[drain]", "is not a step"),
        ("null", "is not a step"),
    ],
)
def test_steps_that_cannot_be_are_named_with_file_and_number(
    refused: Refused, tmp_path: Path, steps: str, told: str
) -> None:
    lines = "".join(f"  - {step}\n" for step in steps.split("; "))
    name = schedule(tmp_path, f"processes: [p1, p2, p3]\ngroups: {{g1: [p1, p2]}}\nsteps:\n{lines}")
    found = refused("replay", name, "-p", "matrix", "-o", "trace.jsonl")
    assert told in found
    assert found.startswith("schedule.yaml: step "), "the sentence says where"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("colour: red\n" + GOOD, 'unknown field "colour"'),
        ("steps: [drain]\n", "field `processes`"),
        ("processes: []\nsteps: [drain]\n", "field `processes`"),
        ("processes: p1\nsteps: [drain]\n", "field `processes`"),
        ("processes: [p1, p1]\nsteps: [drain]\n", '"p1" appears twice'),
        ("processes: [p1, 2]\nsteps: [drain]\n", "not text"),
        ("processes: [p1, p2]\n", "field `steps`"),
        ("processes: [p1, p2]\nsteps: []\n", "field `steps`"),
        ("processes: [p1, p2]\nsteps: {drain: 1}\n", "field `steps`"),
        ("processes: [p1, p2]\noptions: [k]\nsteps: [drain]\n", "field `options`"),
        ("processes: [p1, p2]\ngroups: {g1: [p1, p9]}\nsteps: [drain]\n", 'unknown process "p9"'),
        ("processes: [p1, p2]\nlinks: [[p1]]\nsteps: [drain]\n", "a link is a pair"),
        ("processes: [p1, p2]\nlinks: [[p1, p1]]\nsteps: [drain]\n", "linked with itself"),
        ("processes: [p1, p2]\nseparators: [{members: [p1]}]\nsteps: [drain]\n", "is missing"),
        ("processes: [p1, p2]\nsteps: [drain]\nsteps: [drain]\n", "appears twice"),
    ],
)
def test_schedules_that_cannot_be_are_named_with_their_field(
    refused: Refused, tmp_path: Path, text: str, told: str
) -> None:
    found = refused("replay", schedule(tmp_path, text), "-p", "matrix", "-o", "trace.jsonl")
    assert told in found
    assert found.startswith("schedule.yaml")


@pytest.mark.parametrize(
    ("options", "protocol", "told"),
    [
        ("{k: 0}", "bounded", "k = 0 is too small"),
        ("{k: [9]}", "bounded", "k has 1 values for 3 processes"),
        ("{k: {}}", "bounded", "must be a whole number"),
        ("{epsilon: .nan}", "merge", "must be a whole number"),
        ("{epsilon: -1}", "merge", "cannot be negative"),
        ("{delta: two}", "merge", "must be a whole number"),
        ("{silence: 0}", "slow", "must be above 0"),
        ("{capacity: 0}", "matrix", "capacity = 0"),
        ("{r9: perhaps}", "histories", "must be on or off"),
    ],
)
def test_options_of_a_schedule_that_are_wrong_are_named_with_the_file(
    refused: Refused, tmp_path: Path, options: str, protocol: str, told: str
) -> None:
    schedule(tmp_path, f"processes: [p1, p2, p3]\noptions: {options}\nsteps: [drain]\n")
    found = refused("replay", "schedule.yaml", "-p", protocol)
    assert told in found
    assert found.startswith("schedule.yaml")


def test_with_r9_only_neighbours_can_be_addressed(refused: Refused, causet: Run, tmp_path: Path) -> None:
    schedule(tmp_path, LINE)
    assert "p1 is not linked with p3" in refused("replay", "schedule.yaml", "-p", "histories")
    assert causet("replay", "schedule.yaml", "-p", "histories", "--set", "r9=off").code == 0
    assert causet("replay", "schedule.yaml", "-p", "histories", "--as-printed", "H7").code == 0
    assert causet("replay", "schedule.yaml", "-p", "matrix").code == 0


@pytest.mark.parametrize("protocol", [name for name, kind in PROTOCOLS.items() if kind.grouped])
def test_group_protocols_refuse_targets_that_are_no_group(
    refused: Refused, tmp_path: Path, protocol: str
) -> None:
    schedule(tmp_path, GOOD)
    assert "p1, p2 are not a group" in refused("replay", "schedule.yaml", "-p", protocol, "-o", "trace.jsonl")


@pytest.mark.parametrize("protocol", [name for name, kind in PROTOCOLS.items() if kind.broadcast])
def test_broadcast_protocols_refuse_some_targets(refused: Refused, tmp_path: Path, protocol: str) -> None:
    schedule(tmp_path, GOOD)
    assert "to everybody, not to some" in refused("replay", "schedule.yaml", "-p", protocol)


@pytest.mark.parametrize(
    ("name", "told"),
    [("missing.yaml", "No such file"), ("folder", "Is a directory")],
)
def test_a_schedule_that_is_not_there(refused: Refused, tmp_path: Path, name: str, told: str) -> None:
    (tmp_path / "folder").mkdir()
    found = refused("replay", name, "-p", "matrix", "-o", "trace.jsonl")
    assert told in found
    assert found.startswith(name)


@pytest.mark.parametrize(
    "steps",
    [
        [{"send": "x" * 100_000, "from": "p1", "to": ["p2"]}],
        [{"send": "a", "from": "x" * 100_000, "to": ["p2"]}],
        [{"send": "a", "from": "p1", "to": ["p2"], "x" * 100_000: 1}],
        [list(range(10_000))],
        [{"tick": 10**4000}],
    ],
    ids=["message", "process", "field", "step", "clock"],
)
def test_a_sentence_stays_short_whatever_the_file_says(
    refused: Refused, tmp_path: Path, steps: list[Any]
) -> None:
    text = json.dumps({"processes": ["p1", "p2"], "steps": steps})
    refused("replay", schedule(tmp_path, text, "long.json"), "-p", "matrix")


def test_a_name_with_line_breaks_does_not_break_the_sentence(refused: Refused, tmp_path: Path) -> None:
    text = json.dumps({"processes": ["p\n1", "p2"], "steps": [{"send": "a", "from": "q", "to": ["p2"]}]})
    refused("replay", schedule(tmp_path, text, "lines.json"), "-p", "matrix")


@pytest.mark.parametrize("output", [[], ["-o", "trace.jsonl"], ["--json"]], ids=["text", "file", "json"])
@pytest.mark.parametrize("half", ["process", "message"])
def test_half_a_surrogate_pair_is_no_name(causet: Run, tmp_path: Path, half: str, output: list[str]) -> None:
    process, message = ("\ud800", "a") if half == "process" else ("p1", "\ud800")
    steps = [{"send": message, "from": process, "to": ["p2"]}, {"receive": message, "at": "p2"}]
    text = json.dumps({"processes": [process, "p2"], "steps": steps})
    done = causet("replay", schedule(tmp_path, text, "half.json"), "-p", "matrix", *output)
    assert "Traceback" not in done.err
    assert done.code == 2
    assert not (tmp_path / "trace.jsonl").exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_an_output_that_is_full_is_one_sentence() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*REAL, "protocols"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr) == (2, "causet: output: No space left on device\n")

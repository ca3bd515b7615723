"""The commands that run on Spark: what they print, their exit codes, and what they say about bad input."""

from __future__ import annotations

import csv
import datetime
import gzip
import json
import shlex
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from causet.check.oracle import judge
from causet.cli import cli
from causet.errors import BadInput
from causet.formats.trace import read_trace, write_trace
from causet.model import Event
from tests.helpers.logs import random_log, shuffled
from tests.helpers.places import ROOT

A = Event("a", 1, "send", message="m", to=("b",), time=5)
B = Event("b", 1, "deliver", message="m", time=3)
C = Event("b", 2, parents=("a#1",), time=4)


class Ran(NamedTuple):
    code: int
    out: str
    error: str = ""


@pytest.fixture
def run(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs a command in this process, in the session that is there."""

    def ran(*words: object) -> Ran:
        try:
            code = cli.main([str(word) for word in words], standalone_mode=False)
        except BadInput as error:
            return Ran(2, capsys.readouterr().out, str(error))
        return Ran(int(code or 0), capsys.readouterr().out)

    return ran


def written(path: Path, events: Sequence[Event]) -> Path:
    write_trace(path, events)
    return path


def test_verify_prints_what_the_contract_says(run: Any, tmp_path: Path) -> None:
    seed = next(seed for seed in range(100) if len(judge(random_log(seed)).violations) > 2)
    events = random_log(seed)
    expected = judge(events)
    trace = written(tmp_path / "trace.jsonl", shuffled(events))
    ran = run("verify", "--json", trace)
    found = json.loads(ran.out)
    assert ran.code == 1
    assert (found["status"], found["events"], found["messages"]) == (
        "invalid",
        len(events),
        expected.messages,
    )
    assert found["violations"] == [
        {"process": v.process, "delivered": v.delivered, "before": v.before, "because": list(v.because)}
        for v in expected.violations
    ]
    told = run("verify", trace)
    first = expected.violations[0]
    assert told.code == 1
    assert f"{first.process} delivered {first.delivered} before {first.before}. But " in told.out


@pytest.mark.parametrize(
    ("events", "status", "code"),
    [
        ([A, B, C], "valid", 0),
        ([Event("a", 1), Event("b", 1)], "vacuous", 0),
        ([A, B, C, Event("b", 4)], "unknown", 3),
        ([A, B, Event("b", 2, "deliver", message="m")], "invalid", 1),
        ([A, B, Event("b", 2, "deliver", message="x")], "unknown", 3),
    ],
)
def test_every_status_has_its_exit_code(
    run: Any, tmp_path: Path, events: list[Event], status: str, code: int
) -> None:
    trace = written(tmp_path / "trace.jsonl", events)
    ran = run("verify", "--json", trace)
    assert (json.loads(ran.out)["status"], ran.code) == (status, code)
    if code == 3:
        strict = run("verify", "--strict", trace)
        assert strict.code == 2
        assert strict.error.startswith("the log has faults, and --strict refuses them: ")


def test_order_writes_parquet_whose_rows_are_in_order(run: Any, tmp_path: Path) -> None:
    trace = written(tmp_path / "trace.jsonl", [C, B, A])
    ran = run("order", trace, "-o", tmp_path / "out")
    assert (ran.code, ran.out) == (0, f"events 3, processes 2 → {tmp_path}/out\n")
    rows = pq.read_table(tmp_path / "out" / "part-00000.parquet").to_pylist()
    assert [(row["process"], row["seq"], row["repaired"]) for row in rows] == [
        ("a", 1, 5),
        ("b", 1, 5),
        ("b", 2, 5),
    ]
    assert [row["position"] for row in rows] == [0, 1, 2]
    assert all("block" not in row for row in rows)
    again = run("order", trace, "-o", tmp_path / "out")
    assert again.code == 2
    assert str(tmp_path / "out") in again.error


def test_order_adds_blocks_where_they_are_asked_for(run: Any, tmp_path: Path) -> None:
    trace = written(tmp_path / "trace.jsonl", [C, B, A])
    ran = run("order", trace, "-o", tmp_path / "out", "--blocks", "--format", "jsonl")
    assert (ran.code, ran.out) == (0, f"events 3, processes 2, longest chain 3 → {tmp_path}/out\n")
    assert [(row["process"], row["seq"], row["block"]) for row in rows_in(tmp_path / "out")] == [
        ("a", 1, 1),
        ("b", 1, 2),
        ("b", 2, 3),
    ]
    told = json.loads(run("order", trace, "-o", tmp_path / "told", "--blocks", "--json").out)
    assert told["blocks"] == 3
    assert "blocks" not in json.loads(run("order", trace, "-o", tmp_path / "plain", "--json").out)


def test_order_refuses_its_output_before_it_starts_anything(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("causet.cli.order.execution", lambda *_: pytest.fail("it started"))
    there = tmp_path / "there"
    there.mkdir()
    (there / "notes.txt").touch()
    for more in ([], ["--overwrite"]):
        code, _, told = run("order", str(tmp_path / "any.jsonl"), "-o", str(there), *more)
        assert code == 2
        assert str(there) in told and "\n" not in told


def test_names_of_fields_may_differ_in_case_alone_and_ours_are_refused(run: Any, tmp_path: Path) -> None:
    trace = tmp_path / "t.jsonl"
    trace.write_text('{"process": "p", "seq": 1, "Foo": 1, "foo": 2, "Process": 3, "Block": 4}\n')
    asked = ("--blocks", "--format", "jsonl")
    code, _, told = run("order", str(trace), "-o", str(tmp_path / "out"), *asked)
    assert (code, told) == (0, "")
    (row,) = map(json.loads, (tmp_path / "out" / "part-00000.jsonl").read_text().splitlines())
    assert {name: row[name] for name in ("Foo", "foo", "Process", "Block", "block")} == {
        "Foo": 1,
        "foo": 2,
        "Process": 3,
        "Block": 4,
        "block": 1,
    }
    trace.write_text('{"process": "p", "seq": 1, "__causet_rank": 1}\n')
    code, _, told = run("order", str(trace), "-o", str(tmp_path / "again"))
    assert (code, told.count("\n")) == (2, 0)
    assert "__causet_rank" in told


def test_order_reads_a_history_of_git_and_writes_json_lines(run: Any, tmp_path: Path) -> None:
    root = ROOT
    if not (root / ".git").exists():
        pytest.skip("this is no clone of a Git repository")
    ran = run("order", "--from", "git", root, "-o", tmp_path / "out", "--format", "jsonl")
    assert ran.code in (0, 3)  # a clone without its whole history has a fault
    rows = [json.loads(line) for line in (tmp_path / "out" / "part-00000.jsonl").read_text().splitlines()]
    assert [row["position"] for row in rows] == list(range(len(rows)))
    seen: set[str] = set()
    for row in rows:
        assert ran.code == 3 or set(row.get("parents", [])) <= seen
        seen.add(row["id"])


def test_audit_counts_effects_before_causes(run: Any, tmp_path: Path) -> None:
    trace = written(tmp_path / "trace.jsonl", [C, B, A])
    found = json.loads(run("audit", "--json", trace).out)
    assert found["effects"] == 2
    told = run("audit", trace)
    assert told.code == 0
    assert "2" in told.out


def test_explain_tells_how_two_events_are_related(run: Any, tmp_path: Path) -> None:
    trace = written(tmp_path / "trace.jsonl", [C, B, A])
    assert run("explain", trace, "a#1", "b#2").code == 0
    unknown = run("explain", trace, "a#7")
    assert unknown.code == 2
    assert "a#7" in unknown.error


def test_bad_input_is_one_sentence_with_file_and_line(run: Any, tmp_path: Path) -> None:
    def refusal(name: str, text: bytes) -> str:
        path = tmp_path / name
        path.write_bytes(text)
        ran = run("order", path, "-o", tmp_path / "out")
        assert ran.code == 2
        assert not (tmp_path / "out").exists()
        assert "\n" not in ran.error
        return str(ran.error).removeprefix(f"{tmp_path}/")

    one, two = b'{"process":"a","seq":1}\n', b'{"process":"a","seq":2}\n'
    assert refusal("twice.jsonl", one + two + one) == (
        f'twice.jsonl, line 1 and {tmp_path}/twice.jsonl, line 3: two events have process "a" and seq 1'
    )
    circle = b'{"process":"a","seq":1,"parents":["b#1"]}\n{"process":"b","seq":1,"parents":["a#1"]}\n'
    assert refusal("circle.jsonl", circle).endswith(
        "the trace has a cycle, in which an event happened before itself: b#1 → a#1 → b#1"
    )
    assert refusal("mixed.jsonl", one + b'{"process":7,"seq":2}\n') == (
        'mixed.jsonl, line 2: field "process" must be a string, not 7'
    )
    assert refusal("broken.jsonl", one + b'{"process":\n').startswith(
        "broken.jsonl, line 2: this is not JSON"
    )
    assert "no event" in refusal("empty.jsonl", b"")
    packed = gzip.compress(one * 1 + two)
    assert refusal("cut.jsonl.gz", packed[:-9]).startswith("cut.jsonl.gz, line ")
    (tmp_path / "folder").mkdir()
    nothing = run("verify", tmp_path / "folder")
    assert nothing.code == 2
    assert str(tmp_path / "folder") in nothing.error


def test_a_trace_in_two_files_is_one_execution(run: Any, tmp_path: Path) -> None:
    first = written(tmp_path / "a.jsonl", [A])
    second = written(tmp_path / "b.jsonl.gz", [C, B])
    ran = run("verify", "--json", first, second)
    assert (ran.code, json.loads(ran.out)["events"]) == (0, 3)
    assert len(read_trace([first, second])) == 3


# ---------------------------------------------------------------- logs with several executions


@pytest.mark.parametrize(
    "command",
    ["order", "verify", *(pytest.param(name, marks=pytest.mark.soak) for name in ("audit", "explain"))],
)
def test_the_command_that_is_advised_for_several_executions_works(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """Word by word as a shell takes it: parser, delimiter and format are in it."""
    monkeypatch.chdir(tmp_path)
    log = tmp_path / "two runs.txt"
    log.write_text('=== one ===\na {\\"a\\":1}\nx\n=== it\'s two ===\na {"a":1}\ny\nb {"a":1,"b":1}\nz\n')
    parser, delimiter = r"(?<host>\S*) (?<clock>{.*})\n(?<event>.*)", "^=== (?<trace>.*) ===$"
    more = {"order": ["-o", "ordered"], "explain": ["a:1", "b:1"]}.get(command, [])
    asked = ("--from", "shiviz", "--parser", parser, "--delimiter", delimiter)
    refused = run(command, log, *more, *asked)
    assert refused.code == 2 and "there are 2 executions (one, it's two)" in refused.error
    advised = shlex.split(refused.error.partition("`")[2].partition("`")[0])
    assert advised[:2] == ["causet", "convert"] and advised[-2:] == ["-o", "FOLDER"]
    assert run(*advised[1:]).code == 0
    written = sorted((tmp_path / "FOLDER").iterdir())
    assert len(written) == 2
    (second,) = (file for file in written if len(read_trace(file)) == 2)
    ran = run(command, second, *more)
    assert ran.code in (0, 3), ran
    if command == "order":
        ids = [
            id
            for file in sorted(Path("ordered").glob("part-*"))
            for id in pq.read_table(file)["id"].to_pylist()
        ]
        assert ids == ["a:1", "b:1"]


def test_what_is_advised_has_every_option_and_every_input(run: Any, tmp_path: Path) -> None:
    for name in ("a", "b", "-c", "d"):
        (tmp_path / f"{name}.log").write_text('(?<host>\\S*) (?<clock>{.*})\\n(?<event>.*)\n\np {"p":1}\nx\n')
    logs = [tmp_path / f"{name}.log" for name in ("a", "b", "-c", "d")]
    refused = run("verify", *logs)
    advised = shlex.split(refused.error.partition("`")[2].partition("`")[0])
    assert [*map(str, logs)] == advised[2:6]
    assert run(*advised[1:-1], tmp_path / "folder").code == 0
    assert len(list((tmp_path / "folder").iterdir())) == 4


# ---------------------------------------------------------------- tables, and their own columns

TABLE: list[dict[str, Any]] = [
    {
        "order": name, "reply": reply, "who": who, "at": at, "block": f"B{name}", "repaired": 0.5,
        "position": -1, "process": "own", "seq": 9, "id": "same", "parents": "text", "time": "noon",
        "kind": "K", "text": None, "Text": f"T{name}", "input_block": True, "a.b": 1,
    }
    for name, reply, who, at in (("z", "y", "c", 1), ("x", None, "a", 5), ("y", "x", "b", 3))
]  # fmt: skip
NAMED = ("--id", "order", "--parent", "reply", "--process", "who", "--time", "at")


def as_table(path: Path, rows: list[dict[str, Any]], drop: Sequence[str] = ()) -> Path:
    kept = [{name: value for name, value in row.items() if name not in drop} for row in rows]
    if path.suffix == ".csv":
        with path.open("w", newline="") as stream:
            writer = csv.DictWriter(stream, kept[0])
            writer.writeheader()
            writer.writerows(kept)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in kept))
    else:
        pq.write_table(pa.Table.from_pylist(kept), path)
    return path


def rows_in(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for file in sorted(folder.glob("part-*")):
        if file.suffix == ".parquet":
            found += pq.read_table(file).to_pylist()
        else:
            found += map(json.loads, file.read_text().splitlines())
    return found


@pytest.mark.parametrize(
    ("form", "written_as"),
    [
        ("csv", "jsonl"),
        ("jsonl", "parquet"),
        ("parquet", "parquet"),
        *(
            pytest.param(*pair, marks=pytest.mark.soak)
            for pair in (("csv", "parquet"), ("jsonl", "jsonl"), ("parquet", "jsonl"))
        ),
    ],
)
def test_order_keeps_every_column_of_a_table_under_its_name_with_its_value(
    run: Any, tmp_path: Path, form: str, written_as: str
) -> None:
    """A table that has columns of all names that a trace, its reader and `order` use."""
    table = as_table(tmp_path / f"t.{form}", TABLE, drop=["Text"])
    ran = run("order", table, *NAMED, "-o", tmp_path / "out", "--format", written_as, "--blocks", "--json")
    assert ran.code == 0
    told = json.loads(ran.out)
    called = {"block": "input_input_block", "repaired": "input_repaired", "position": "input_position"}
    assert told["renamed"] == called
    found = rows_in(tmp_path / "out")
    by_name = {row["order"]: row for row in TABLE}
    for position, (name, row) in enumerate(zip("xyz", found, strict=True)):
        own = {called.get(key, key): value for key, value in by_name[name].items() if key != "Text"}
        if form == "csv":
            own = {key: value if value is None else str(value) for key, value in own.items()}
        expected = {**own, "block": position + 1, "repaired": 5, "position": position}
        if written_as == "jsonl":
            expected = {key: value for key, value in expected.items() if value is not None}
        assert row == expected
        assert list(row) == list(expected), "in the order of the table"
    if form == "csv":
        ran = run("order", table, *NAMED, "-o", tmp_path / "again")
        assert "the input has a column position: it is kept as input_position" in ran.out


def test_names_of_a_table_that_spark_takes_for_one_are_refused(
    run: Any, spark: SparkSession, tmp_path: Path
) -> None:
    table = as_table(tmp_path / "t.jsonl", TABLE)
    assert run("order", table, *NAMED, "-o", tmp_path / "both", "--format", "jsonl").code == 0
    assert {row["Text"] for row in rows_in(tmp_path / "both")} == {"Tx", "Ty", "Tz"}
    spark.conf.set("spark.sql.caseSensitive", "false")
    try:
        ran = run("order", table, *NAMED, "-o", tmp_path / "out")
    finally:
        spark.conf.set("spark.sql.caseSensitive", "true")
    assert ran.code == 2 and 'to Spark "text" and "Text" are the same name' in ran.error
    assert run("verify", table, *NAMED).code == 0, "which needs none of them"


def test_types_of_parquet_and_values_of_json_come_back_as_they_were(run: Any, tmp_path: Path) -> None:
    noon = datetime.datetime(2024, 1, 1, 12)
    columns = {
        "id": pa.array([7, 8], pa.int16()),
        "causes": pa.array([None, [7]], pa.list_(pa.int64())),
        "at": pa.array([noon, noon], pa.timestamp("ns")),
        "fine": pa.array([1, 2], pa.timestamp("ns")),
        "price": pa.array([Decimal("1.50"), None], pa.decimal128(5, 2)),
        "raw": pa.array([b"\x00", b"\xff"]),
        "deep": pa.array([{"a": [1]}, None]),
        "clock": pa.array([datetime.time(1), None]),
        "nothing": pa.nulls(2),
    }
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    named = ("--id", "id", "--parent", "causes", "--time", "at")
    assert run("order", tmp_path / "t.parquet", *named, "-o", tmp_path / "out").code == 0
    (part,) = (tmp_path / "out").glob("part-*")
    found = pq.read_table(part)
    assert found.column_names == [*columns, "repaired", "position"]
    for name in ("id", "causes", "price", "raw", "deep"):
        assert found[name].to_pylist() == columns[name].to_pylist()
    assert found["id"].type == pa.int16() and found["price"].type == pa.decimal128(5, 2)
    assert found["at"].to_pylist() == [noon, noon]
    assert found["fine"].to_pylist() == [1, 2], "Spark has no nanoseconds: the integers that they are"
    assert found["clock"].to_pylist() == ["01:00:00.000000", None], "nor times of day: the text"
    assert found["repaired"].to_pylist() == [1704110400 * 10**9] * 2
    rows = [{"id": "a", "deep": {"x": [1, "two"]}, "l": ["p"], "mixed": 1}, {"id": "b", "mixed": "one"}]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    ran = run("order", tmp_path / "t.jsonl", "--id", "id", "-o", tmp_path / "j", "--format", "jsonl")
    assert ran.code == 0
    added = ("repaired", "position")
    assert [{k: v for k, v in row.items() if k not in added} for row in rows_in(tmp_path / "j")] == rows


def test_order_keeps_a_traces_own_block_repaired_and_position(run: Any, tmp_path: Path) -> None:
    events = [{"process": "a", "seq": n, "block": "mine", "position": -n, "n": n} for n in (1, 2)]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    asked = ("--blocks", "--format", "jsonl", "--json")
    ran = run("order", tmp_path / "t.jsonl", "-o", tmp_path / "out", *asked)
    assert json.loads(ran.out)["renamed"] == {"block": "input_block", "position": "input_position"}
    assert rows_in(tmp_path / "out") == [
        {
            "process": "a",
            "seq": n,
            "input_block": "mine",
            "input_position": -n,
            "n": n,
            "block": n,
            "position": n - 1,
        }
        for n in (1, 2)
    ]


@pytest.mark.parametrize("command", ["verify", "audit", "explain", "order", "view", "convert"])
def test_a_table_of_parquet_is_read_by_every_command(run: Any, tmp_path: Path, command: str) -> None:
    """And so is a folder of it; what is wrong with a row is told with its number."""
    folder = tmp_path / "tables"
    folder.mkdir()
    table = as_table(folder / "t.parquet", TABLE, drop=["Text"])
    more: dict[str, list[object]] = {
        "explain": ["x", "z"],
        "order": ["-o", tmp_path / "out", "--overwrite"],
        "view": ["--text"],
        "convert": ["-o", tmp_path / "c.jsonl"],
    }
    reads_as_order = command in ("verify", "audit", "explain")
    for path in (table,) if reads_as_order else (table, folder):
        assert run(command, path, *more.get(command, []), *NAMED).code == 0
    as_table(table, [*TABLE, {**TABLE[0], "order": None}], drop=["Text"])
    ran = run(command, table, *more.get(command, []), *NAMED)
    assert ran.code == 2
    assert ran.error == f'{table}, row 4: field "order" must be a string that is not empty, not null'

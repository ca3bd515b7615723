"""`causet convert` and the rooms behind it: any format found out, read, written whole, and told."""

from __future__ import annotations

import csv
import datetime
import errno
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from causet import stamp
from causet.cli import cli
from causet.errors import BadInput
from causet.formats import output
from causet.formats.execution import GAP, NO_SEND, UNKNOWN_PARENT, Execution, extra_name, plain_name
from causet.formats.output import write_executions
from causet.formats.parquet import placed_rows, write_parquet
from causet.formats.registry import FORMS_IN, detect, read_executions
from causet.formats.schema import FIELDS
from causet.formats.table import read_table
from causet.formats.trace import read_trace, write_trace
from causet.model import KINDS, Event
from tests.helpers.places import TRACES

GOVECTOR = r"(?<host>\S*) (?<clock>{.*})\n(?<event>.*)"
LOG = 'a {"a":1}\nfirst\nb {"b":1, "a":1}\nsecond\n'
TWO_LOGS = (
    f'{GOVECTOR}\n^=== (?<trace>.*) ===$\n=== run #1 ===\n{LOG}=== run/2 ===\n{LOG}a {{"a":2}}\nthird\n'
)
SPANS = {
    "resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "t", "spanId": "s", "startTimeUnixNano": 5}]}]}]
}
CLOUD = {"specversion": "1.0", "type": "t", "source": "a", "id": "1"}
EVENTS = [
    Event("p", 1, "send", message="m", to=("q",), time=1, text="x"),
    Event("q", 1, "deliver", message="m", time=3, extra={"n": 1}),
]


def refused(call: Callable[[], object], folder: Path | None = None) -> str:
    with pytest.raises(BadInput) as found:
        call()
    assert "\n" not in str(found.value)
    return str(found.value).replace(f"{folder}{os.sep}", "") if folder else str(found.value)


def run(*arguments: str | Path) -> int:
    """The command, in this process; what it refuses comes as BadInput."""
    code = cli.main(["convert", *map(str, arguments)], standalone_mode=False)
    assert isinstance(code, int)
    return code


# ---------------------------------------------------------------- finding out what a file is


@pytest.mark.parametrize(
    ("name", "text", "form"),
    [
        ("x.jsonl", '{"process":"p","seq":1}\n', "trace"),
        ("x.jsonl", "", "trace"),
        ("x.jsonl", '{"no":1}\n', "trace"),
        ("x.json", '{"seq":1,"process":"p"}', "trace"),
        ("x.parquet", "", "trace"),
        ("x.log", f"{GOVECTOR}\n\n{LOG}", "shiviz"),
        ("x.txt", f"\n{GOVECTOR}\n", "shiviz"),
        ("x.json", json.dumps(SPANS), "otlp"),
        ("x.jsonl", json.dumps(SPANS), "otlp"),
        ("x.json", json.dumps(SPANS, indent=2), "otlp"),
        ("x.json", json.dumps([SPANS]), "otlp"),
        ("x.json", json.dumps(CLOUD), "cloudevents"),
        ("x.jsonl", json.dumps(CLOUD) + "\n" + json.dumps(CLOUD), "cloudevents"),
        ("x.json", json.dumps([CLOUD], indent=2), "cloudevents"),
        ("x.json", json.dumps({**CLOUD, "data": "y" * 100_000}), "cloudevents"),
        ("x.csv", "id,parent\n", "events"),
        ("x.tsv", "id\tparent\n", "events"),
    ],
)
def test_a_file_is_known_by_its_name_or_its_first_lines(
    name: str, text: str, form: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(text)
    assert detect(tmp_path / name) == form
    packed = tmp_path / f"{name}.gz"
    packed.write_bytes(gzip.compress(text.encode()))
    assert detect(packed) == form
    marked = tmp_path / f"marked-{name}"
    marked.write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert detect(marked) == form


def test_what_convert_cannot_know_is_asked_for(tmp_path: Path) -> None:
    for name, text, said in (
        (
            "x.log",
            LOG,
            "x.log: a ShiViz log needs its parser, given or in the first line; for another format, name it",
        ),
        (
            "x.json",
            "{}",
            "the format cannot be detected; name it with --from: trace, shiviz, otlp, cloudevents, "
            "events, git",
        ),
        ("x", "\0\xff", "the format cannot be detected"),
        ("x.json", "[" * 100_000, "the format cannot be detected"),
    ):
        path = tmp_path / name
        path.write_text(text)
        assert said in refused(partial(detect, path), tmp_path)
    assert detect(tmp_path / "x.log", {"parser": GOVECTOR}) == "shiviz"
    assert detect(tmp_path / "x.json", {"id": "k"}) == "events"
    assert "missing cannot be read: No such file" in refused(lambda: detect(tmp_path / "missing"))
    os.mkfifo(tmp_path / "pipe")
    assert "pipe is not a regular file, and has to be read twice" in refused(
        lambda: detect(tmp_path / "pipe")
    )
    assert "pipe is not a regular file" in refused(lambda: read_executions(tmp_path / "pipe", "otlp"))
    assert detect(tmp_path) == "trace"
    (tmp_path / ".git").mkdir()
    assert detect(tmp_path) == "git"


def test_a_folder_of_traces_is_one_execution(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    write_trace(folder / "b.jsonl", EVENTS[1:])
    write_parquet(folder / "a.parquet", EVENTS[:1])
    for name in (".hidden.jsonl", "_started.jsonl", "_SUCCESS", "notes.txt"):
        (folder / name).write_text("no trace")
    (execution,) = read_executions(folder)
    assert list(execution.events) == EVENTS
    (execution,) = read_executions([folder / "a.parquet", folder / "b.jsonl"])
    assert list(execution.events) == EVENTS
    one, two = read_executions([folder / "a.parquet", folder / "b.jsonl"], each=True)
    assert [(each.name, len(each.events)) for each in (one, two)] == [("a", 1), ("b", 1)]
    (tmp_path / "nothing").mkdir()
    assert "nothing: there is no trace in this folder" in refused(
        lambda: read_executions(tmp_path / "nothing")
    )


def test_a_file_without_an_event_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text("\n")
    assert (
        refused(lambda: read_executions(tmp_path / "x.jsonl"), tmp_path) == "x.jsonl: there is no event in it"
    )
    assert "nothing to read" in refused(lambda: read_executions([]))


def test_faults_of_a_trace_are_counted_with_their_lines(tmp_path: Path) -> None:
    events = [
        *(Event("p", seq, parents=("gone",)) for seq in (1, 2, 4, 9)),
        Event("q", 3, "receive", message="never"),
        *(Event("r", seq, parents=("gone",)) for seq in range(1, 5)),
    ]
    write_trace(tmp_path / "x.jsonl", events)
    (execution,) = read_executions(tmp_path / "x.jsonl")
    found = {fault.kind: fault for fault in execution.faults}
    assert {kind: fault.count for kind, fault in found.items()} == {GAP: 3, UNKNOWN_PARENT: 8, NO_SEND: 1}
    assert [place.replace(f"{tmp_path}{os.sep}", "") for place in found[GAP].places] == [
        'x.jsonl, line 3: "p" jumps from 2 to 4',
        'x.jsonl, line 4: "p" jumps from 4 to 9',
        'x.jsonl, line 5: "q" begins at 3',
    ]
    assert len(found[UNKNOWN_PARENT].places) == 5


def test_bad_input_of_a_trace_is_told_as_ever(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text('{"process":"p","seq":1}\n{"process":"p","seq":1}\n')
    assert refused(lambda: read_executions(tmp_path / "x.jsonl"), tmp_path) == (
        'x.jsonl, line 1 and x.jsonl, line 2: two events have process "p" and seq 1'
    )
    (tmp_path / "x.jsonl").write_text('{"process":"p","seq":1,"parents":["p#2"]}\n{"process":"p","seq":2}\n')
    assert refused(lambda: read_executions(tmp_path / "x.jsonl"), tmp_path) == (
        "x.jsonl: the trace has a cycle, in which an event happened before itself: p#1 → p#2 → p#1"
    )


def test_options_belong_to_formats(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(json.dumps(SPANS))
    assert refused(lambda: read_executions(tmp_path / "x.json", "otlp", parser="x")) == (
        "--parser belongs to shiviz, and the input is otlp"
    )
    assert refused(lambda: read_executions(tmp_path / "x.json", colour="red")) == (
        "--colour is unknown, and the input is otlp"
    )
    assert refused(lambda: read_executions(tmp_path / "x.json", "events")) == (
        f"{tmp_path}/x.json: to read a table of events, name the column of their ids (--id), and of their "
        "causes (--parent)"
    )
    assert "unknown format" in refused(lambda: read_executions(tmp_path / "x.json", "xml"))


@pytest.mark.parametrize(
    ("to", "name", "said"),
    [
        ("parquet", "q.jsonl", "--to parquet contradicts the name, which ends in .jsonl; end it in .parquet"),
        ("shiviz", "q.parquet", "--to shiviz contradicts the name, which ends in .parquet; end it in .log"),
        (
            "cloudevents",
            "q.log",
            "--to cloudevents contradicts the name, which ends in .log; end it in .jsonl",
        ),
    ],
)
def test_a_format_that_contradicts_the_name_is_refused(to: str, name: str, said: str, tmp_path: Path) -> None:
    """Or the next command reads Parquet as lines of JSON."""
    write_trace(tmp_path / "t.jsonl", [Event("p", 1)])
    with pytest.raises(BadInput, match=re.escape(said)):
        run(tmp_path / "t.jsonl", "--to", to, "-o", tmp_path / name)
    assert not (tmp_path / name).exists()


def test_the_input_is_not_written_over(tmp_path: Path) -> None:
    write_trace(tmp_path / "t.jsonl", [Event("p", 1, text="kept")])
    before = (tmp_path / "t.jsonl").read_bytes()
    with pytest.raises(BadInput, match="is the input; name another file to write"):
        run(tmp_path / "t.jsonl", "-o", tmp_path / "t.jsonl")
    assert (tmp_path / "t.jsonl").read_bytes() == before


def test_files_of_several_formats_are_several_executions(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(json.dumps(SPANS))
    (tmp_path / "y.json").write_text(json.dumps(CLOUD))
    (tmp_path / "z.log").write_text(TWO_LOGS)
    executions = read_executions([tmp_path / name for name in ("x.json", "y.json", "z.log")], process="span")
    assert [(each.name, len(each.events)) for each in executions] == [
        ("", 1),
        ("", 1),
        ("run #1", 2),
        ("run/2", 3),
    ]


# ---------------------------------------------------------------- tables


def table(folder: Path, text: str, name: str = "t.csv", **columns: Any) -> Execution:
    (folder / name).write_text(text, encoding="utf-8", newline="")
    return read_table([folder / name], **columns)


def test_a_table_needs_no_more_than_ids(tmp_path: Path) -> None:
    execution = table(tmp_path, "key,cause,note\nx,,hi\ny,x,\nz,y,\n", id="key", parent="cause")
    assert list(execution.events) == [
        Event("x", 1, id="x", extra={"note": "hi"}),
        Event("y", 1, id="y", parents=("x",)),
        Event("z", 1, id="z", parents=("y",)),
    ]


def test_a_table_with_processes_stands_by_time_or_as_it_is(tmp_path: Path) -> None:
    rows = "id,who,when,text,kind\n3,a,30,c,K\n1,a,10,d,\n2,b,,e,\n4,b,5,f,\n"
    execution = table(tmp_path, rows, id="id", process="who", time="when")
    assert [(e.process, e.seq, e.id, e.time, e.text) for e in execution.events] == [
        ("a", 2, "3", 30, "c"),
        ("a", 1, "1", 10, "d"),
        ("b", 1, "2", None, "e"),  # not every time of b is known
        ("b", 2, "4", 5, "f"),
    ]
    assert execution.events[0].extra == {"kind_": "K"}
    assert [e.seq for e in table(tmp_path, rows, id="id", process="who").events] == [1, 2, 1, 2]
    numbered = table(tmp_path, "id,who,n\nx,a,2\ny,a,1\nz,a,4\n", id="id", process="who", seq="n")
    assert [e.seq for e in numbered.events] == [2, 1, 4]
    assert [fault.kind for fault in numbered.faults] == [GAP]


def test_rows_may_be_json_with_numbers_lists_and_real_times(tmp_path: Path) -> None:
    rows = [
        {"id": 1, "by": "a", "at": "2024-01-01T00:00:00.000000001Z", "deep": {"x": [1]}},
        {"id": 2, "by": "b", "at": 1.5, "after": [1]},
        {"id": 3, "by": "b", "at": None, "after": 2},
        {"id": 4, "by": "c", "after": '[1, "3"]'},
        {"id": 5, "by": "c", "after": "[odd"},
    ]
    text = "\n".join(map(json.dumps, rows))
    execution = table(tmp_path, text, "t.jsonl", id="id", process="by", time="at", parent="after")
    assert [(e.id, e.parents, e.time) for e in execution.events] == [
        ("1", (), 1704067200000000001),
        ("2", ("1",), 1.5),
        ("3", (), None),
        ("4", ("1", "3"), None),
        ("5", ("[odd",), None),
    ]
    assert execution.events[0].extra == {"deep": {"x": [1]}}
    assert [(fault.kind, fault.count) for fault in execution.faults] == [(UNKNOWN_PARENT, 1)]


def test_cells_may_hold_quotes_and_lines(tmp_path: Path) -> None:
    execution = table(tmp_path, '\ufeffid;x,n\r\n"a\r\n\r\nb","say ""hi"""\r\n\r\nc,d\r\n', id="id;x")
    assert [(e.id, e.extra) for e in execution.events] == [
        ("a\r\n\r\nb", {"n": 'say "hi"'}),
        ("c", {"n": "d"}),
    ]
    tabs = table(tmp_path, "id\tn\na,b\tc\n", "t.tsv", id="id")
    assert [(e.id, e.extra) for e in tabs.events] == [("a,b", {"n": "c"})]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "t.csv is empty"),
        ("id,id\n", "t.csv, line 1: a column appears twice in the header"),
        ("id,x\n1,2,3\n", "t.csv, line 2: the row has 3 cells, and the header only 2"),
        ("id,x\n,2\n", 't.csv, line 2: field "id" must be a string that is not empty, not null'),
        ("key\n1\n", 't.csv: there is no column "id"; there are key'),
        ('id\n"1', "t.csv, line 2: this is not CSV: unexpected end of data"),
        ('id\n"1"x', "t.csv, line 2: this is not CSV: ',' expected after '\"'"),
        ("id\n1\n1\n", 't.csv, line 3: two events have the id "1"'),
        ("id,t\n1,noon\n", 't.csv, line 2: field "t": "noon" is not a time such as'),
        ("id,t\n1,99999999999999999999\n", 't.csv, line 2: field "t" must be a time, not '),
        ("id,t\n1,1e999\n", 't.csv, line 2: field "t" must be a time, not Infinity'),
        ("id,p\n1,2\n2,1\n", "t.csv: the trace has a cycle"),
        ("id\n" + "x" * 200_000 + "\n", "t.csv, line 2: this is not CSV: field larger than field limit"),
    ],
)
def test_what_is_no_table_is_refused_with_its_line(text: str, said: str, tmp_path: Path) -> None:
    header = text.partition("\n")[0].split(",")
    columns = {
        "id": "id",
        **{what: name for what, name in {"time": "t", "parent": "p"}.items() if name in header},
    }
    assert said in refused(lambda: table(tmp_path, text, **columns), tmp_path)


@pytest.mark.parametrize("option", ["parent", "process", "time", "seq"])
def test_a_column_that_nobody_has_is_named(option: str, tmp_path: Path) -> None:
    for name, text in (
        ("t.csv", "order,reply_to\n1,\n2,1\n"),
        ("t.jsonl", '{"order": 1, "reply_to": null}\n'),
    ):
        assert refused(lambda: table(tmp_path, text, name, id="order", **{option: "nix"}), tmp_path) == (  # noqa: B023
            f'{name}: there is no column "nix"; there are order, reply_to'
        )


def test_a_table_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b"id\n\xff\n")
    assert "t.csv, line 2: byte 1 of the line is not UTF-8" in refused(
        lambda: read_table([tmp_path / "t.csv"], id="id")
    )
    for row, said in (
        ("[1]", "each row must be an object"),
        ('{"id":1,"n":0}', "must be an integer from 1, not 0"),
    ):
        assert said in refused(lambda row=row: table(tmp_path, row, "t.jsonl", id="id", seq="n"))  # type: ignore[misc]
    late = "id,who,p\n1,a,2\n2,a,\n"
    assert refused(lambda: table(tmp_path, late, id="id", process="who", parent="p")).endswith(
        "; name the column of the processes' own order, if there is one"
    )


# ---------------------------------------------------------------- tables as Parquet

ROWS: list[dict[str, Any]] = [
    {"key": "x", "after": None, "who": "a", "at": 3, "note": None, "time": "late"},
    {"key": "y", "after": "x", "who": "b", "at": 1, "note": "n", "time": None},
    {"key": "z", "after": '["x","y"]', "who": "b", "at": 2, "note": None, "time": None},
]


def as_table(path: Path, rows: list[dict[str, Any]]) -> Path:
    """The same rows as CSV, JSON Lines or Parquet, by the name of the file."""
    if path.name.endswith(".csv"):
        with path.open("w", newline="") as stream:
            writer = csv.DictWriter(stream, rows[0])
            writer.writeheader()
            writer.writerows(rows)
    elif path.name.endswith(".jsonl"):
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        pq.write_table(pa.Table.from_pylist(rows), path)
    return path


@pytest.mark.parametrize("name", ["t.csv", "t.jsonl", "t.parquet", "T.PARQUET"])
def test_a_table_has_the_same_events_in_every_form(name: str, tmp_path: Path) -> None:
    """By its name, by its options, and in a folder. A column `time` that is not named as one is a column."""
    path = as_table(tmp_path / name, ROWS)
    columns: dict[str, Any] = {"id": "key", "parent": "after", "process": "who", "time": "at"}
    expected = [
        Event("a", 1, id="x", time=3, extra={"time_": "late"}),
        Event("b", 1, id="y", parents=("x",), time=1, extra={"note": "n"}),
        Event("b", 2, id="z", parents=("x",), time=2),
    ]
    cases: list[tuple[Any, str | None]] = [
        (path, None),
        (path, "events"),
        (tmp_path, None),
        ([tmp_path], "events"),
    ]
    for paths, form in cases:
        (execution,) = read_executions(paths, form, **columns)
        assert list(execution.events) == expected, (paths, form)
        assert execution.faults == ()


@pytest.mark.parametrize("name", ["t.csv", "t.jsonl", "t.parquet"])
@pytest.mark.parametrize(
    ("change", "columns", "said"),
    [
        ({"key": None}, {}, 'field "key" must be a string that is not empty, not null'),
        ({"key": "x"}, {}, 'two events have the id "x"'),
        ({"who": None}, {"process": "who"}, 'field "who" must be a string that is not empty, not null'),
        ({"at": "noon"}, {"time": "at"}, 'field "at": "noon" is not a time such as'),
        ({"at": "0"}, {"seq": "at"}, 'field "at" must be an integer from 1, not'),
        ({"after": '["\\ud800"]'}, {"parent": "after"}, 'field "after": half a surrogate pair is not text'),
    ],
)
def test_bad_values_of_a_table_are_told_in_the_same_words_in_every_form(
    name: str, change: dict[str, Any], columns: dict[str, Any], said: str, tmp_path: Path
) -> None:
    texts = [{key: None if value is None else str(value) for key, value in row.items()} for row in ROWS]
    path = as_table(tmp_path / name, [*texts[:2], {**texts[2], **change}])
    place = {"t.csv": "t.csv, line 4", "t.jsonl": "t.jsonl, line 3", "t.parquet": "t.parquet, row 3"}[name]
    found = refused(lambda: read_executions(path, "events", id="key", **columns), tmp_path)
    assert f"{place}: {said}" in found


def test_a_column_of_nulls_is_a_column_and_one_that_is_not_there_is_named(tmp_path: Path) -> None:
    path = as_table(tmp_path / "t.parquet", ROWS[:1])
    (execution,) = read_executions(path, id="key", parent="after")
    assert [event.parents for event in execution.events] == [()]
    assert refused(lambda: read_executions(path, id="key", parent="nix"), tmp_path) == (
        't.parquet: there is no column "nix"; there are after, at, key, note, time, who'
    )


def test_types_of_parquet_in_the_columns_that_are_named(tmp_path: Path) -> None:
    """Ids are numbers or dictionaries, causes are lists, and times are timestamps of any unit."""
    day = datetime.datetime(2024, 1, 2, 3, 4, 5)
    for unit in ("s", "ms", "us", "ns"):
        columns: dict[str, Any] = {
            "id": pa.array([7, 8], pa.int16()),
            "causes": pa.array([None, [7]], pa.list_(pa.int64())),
            "who": pa.array(["p", "q"]).dictionary_encode(),
            "at": pa.array([day, None], pa.timestamp(unit, tz="UTC" if unit == "ms" else None)),
            "nan": [float("nan"), 1.5],
        }
        pq.write_table(pa.table(columns), tmp_path / "t.parquet")
        named: dict[str, Any] = {"id": "id", "parent": "causes", "process": "who", "time": "at"}
        (execution,) = read_executions(tmp_path / "t.parquet", **named)
        assert list(execution.events) == [
            Event("p", 1, id="7", time=1704164645 * 10**9),
            Event("q", 1, id="8", parents=("7",), extra={"nan": 1.5}),
        ]
    pq.write_table(pa.table({"id": [1], "at": pa.array([2**40], pa.timestamp("s"))}), tmp_path / "t.parquet")
    assert refused(lambda: read_executions(tmp_path / "t.parquet", id="id", time="at"), tmp_path) == (
        f't.parquet, row 1: field "at": the integer {2**40 * 10**9} does not fit 64 bits'
    )


def test_a_damaged_table_of_parquet_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.parquet").write_bytes(b"PAR1 and no more")
    assert refused(lambda: read_executions(tmp_path / "t.parquet", id="id"), tmp_path).startswith(
        "t.parquet cannot be read: "
    )
    (tmp_path / "none").mkdir()
    assert "there is no table in this folder" in refused(lambda: read_executions(tmp_path / "none", id="id"))


# ---------------------------------------------------------------- Parquet


def test_parquet_holds_the_columns_of_the_format(tmp_path: Path) -> None:
    assert write_parquet(tmp_path / "x.parquet", EVENTS) == 2
    schema = pq.read_schema(tmp_path / "x.parquet")
    assert tuple(schema.names) == (*FIELDS, "n")
    assert str(schema.field("parents").type) == "list<element: string>"
    assert str(schema.field("time").type) == "int64"
    rows = pq.read_table(tmp_path / "x.parquet").to_pylist()
    assert (rows[0]["id"], rows[0]["to"], rows[0]["kind"], rows[0]["n"]) == ("p#1", ["q"], "send", None)
    assert [event for _, event in placed_rows(tmp_path / "x.parquet")] == EVENTS


def parquet(folder: Path, **columns: Any) -> list[Event]:
    path = folder / "x.parquet"
    pq.write_table(pa.table(columns), path)
    (execution,) = read_executions(path)
    return list(execution.events)


def test_columns_of_others_are_kept_as_plain_values(tmp_path: Path) -> None:
    day = datetime.datetime(2024, 1, 2, 3, 4, 5)
    (event,) = parquet(
        tmp_path,
        process=pa.array(["p"]).dictionary_encode(),
        seq=pa.array([1], pa.int16()),
        time=pa.array([day], pa.timestamp("ns")),
        when=pa.array([day], pa.timestamp("us")),
        day=pa.array([day.date()]),
        price=pa.array([Decimal("1.50")]),
        raw=pa.array([b"\x00\xff"]),
        took=pa.array([5], pa.duration("s")),
        nested=pa.array([{"a": [1, None], "b": b"x", "c": float("nan")}]),
        map=pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())),
        nothing=pa.nulls(1),
        nan=pa.array([float("nan")]),
    )
    assert event == Event(
        "p",
        1,
        time=1704164645000000000,
        extra={
            "when": "2024-01-02 03:04:05.000000",
            "day": "2024-01-02",
            "price": "1.50",
            "raw": "AP8=",
            "took": 5,
            "nested": {"a": [1, None], "b": "eA==", "c": None},
            "map": [["k", 1]],
        },
    )


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"seq": [1]}, 'x.parquet, row 1: field "process" is missing; every local event must have it'),
        (
            {"process": ["p", "p"], "seq": [1, 0]},
            'x.parquet, row 2: field "seq" must be an integer from 1, not 0',
        ),
        (
            {"process": ["p"], "seq": [1.0]},
            'x.parquet, row 1: field "seq" must be an integer from 1, not 1.0',
        ),
        (
            {"process": ["p"], "seq": [1], "parents": ["q"]},
            'row 1: field "parents" must be a list of strings',
        ),
        ({"process": ["p"], "seq": [1], "kind": ["odd"]}, 'row 1: field "kind" must be one of'),
        (
            {"process": ["p"], "seq": [1], "x": [2**63]},
            'row 1: field "x": the integer 9223372036854775808 does not fit',
        ),
        (
            {"process": ["p"], "seq": [1], "x": [float("inf")]},
            'row 1: field "x": the number inf is not a JSON number',
        ),
        (
            {"process": ["p", "p"], "seq": [1, 1]},
            'row 2: two events have process "p" and seq 1',
        ),
    ],
)
def test_parquet_has_the_rules_of_json_lines(columns: dict[str, Any], said: str, tmp_path: Path) -> None:
    if columns.get("x") == [2**63]:
        columns = {**columns, "x": pa.array([2**63], pa.uint64())}
    assert said in refused(lambda: parquet(tmp_path, **columns), tmp_path)


def test_what_is_no_parquet_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    for data in (b"", b"PAR1", b"no parquet" * 10):
        path.write_bytes(data)
        assert "x.parquet cannot be read: " in refused(lambda: read_executions(path))
    assert "cannot be read: No such file" in refused(lambda: read_executions(tmp_path / "missing.parquet"))
    batch = pa.RecordBatch.from_arrays(
        [pa.array(["p"]), pa.array([1]), pa.array([2])], names=["process", "seq", "seq"]
    )
    pq.write_table(pa.Table.from_batches([batch]), path)
    assert 'the column "seq" appears twice' in refused(lambda: read_executions(path))


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (Event("p", 1, extra={"seq": 2}), 'event "p#1" has an extra field "seq"'),
        (Event("p", 1, extra={"x": {1}}), 'event "p#1" cannot be written as JSON'),
        (
            Event("p", 1, extra={"x": float("inf")}),
            'event "p#1": the field "x" is inf, not a JSON number',
        ),
        (Event("p", 1, time=float("nan")), 'event "p#1": the field "time" is nan, not a JSON number'),
        (Event("p", 1, text="\ud800"), 'event "p#1": the field "text" cannot be written to Parquet'),
        (Event("p", 2**63), 'the field "seq" cannot be written to Parquet'),
        (Event("p", 1, time=2**60 + 1), "other times are floats, so the column is of floats"),
    ],
)
def test_what_parquet_cannot_hold_is_named_and_leaves_no_file(
    event: Event, said: str, tmp_path: Path
) -> None:
    good = Event("q", 1, time=0.5)
    assert said in refused(lambda: write_parquet(tmp_path / "x.parquet", [good, event]))
    assert list(tmp_path.iterdir()) == []


BOUNDED = settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
TEXT = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=4)
INT64 = st.integers(-(2**63), 2**63 - 1)
FLOAT = st.floats(allow_nan=False, allow_infinity=False)
ANYTHING = st.recursive(
    st.booleans() | INT64 | FLOAT | TEXT,
    lambda inner: st.lists(inner | st.none(), max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)
EXTRA = st.fixed_dictionaries(
    {}, optional={"n": INT64, "f": FLOAT, "b": st.booleans(), "s": TEXT, "any": ANYTHING}
)
ANY_EVENTS = st.builds(
    Event,
    process=TEXT,
    seq=st.integers(1, 2**63 - 1),
    kind=st.sampled_from(KINDS),
    id=TEXT,
    message=TEXT,
    to=st.lists(TEXT, max_size=3).map(tuple),
    group=st.none() | TEXT,
    parents=st.lists(TEXT, max_size=3).map(tuple),
    time=st.none() | INT64,
    text=st.none() | TEXT,
    control=st.booleans(),
    stamp_entries=st.none() | st.integers(0, 2**63 - 1),
    stamp_bytes=st.none() | st.integers(0, 2**63 - 1),
    extra=EXTRA,
)


@BOUNDED
@given(st.lists(ANY_EVENTS, max_size=5))
def test_any_events_come_back_from_parquet_as_they_went(tmp_path: Path, events: list[Event]) -> None:
    write_parquet(tmp_path / "x.parquet", events)
    again = [event for _, event in placed_rows(tmp_path / "x.parquet")]
    assert again == events
    assert [type(event.extra.get("any")) for event in again] == [
        type(event.extra.get("any")) for event in events
    ]


@BOUNDED
@given(st.data())
def test_parquet_with_bytes_changed_is_read_or_refused(tmp_path: Path, data: st.DataObject) -> None:
    path = tmp_path / "x.parquet"
    write_parquet(path, EVENTS)
    written = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        written[data.draw(st.integers(0, len(written) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(written[: data.draw(st.integers(0, len(written)) | st.just(len(written)))])
    try:
        read_executions(path)
    except BadInput as error:
        assert "\n" not in str(error)


CELLS = (
    st.sampled_from(["", "a", "b", "1", "2.5", '"', "[", '["a"]', "\n", ",", "2024-01-01T00:00:00Z"]) | TEXT
)


@BOUNDED
@given(
    st.lists(st.lists(CELLS, min_size=4, max_size=4).map(",".join), max_size=5),
    st.sampled_from(["csv", "jsonl"]),
)
def test_random_tables_are_read_or_refused(tmp_path: Path, rows: list[str], ending: str) -> None:
    path = tmp_path / f"x.{ending}"
    path.write_text("\n".join(["id,p,t,who", *rows]), encoding="utf-8", newline="")
    try:
        execution = read_table([path], id="id", parent="p", time="t", process="who")
    except BadInput as error:
        assert "\n" not in str(error)
        str(error).encode()
        return
    write_trace(tmp_path / "again.jsonl", execution.events)
    assert read_trace(tmp_path / "again.jsonl") == execution.events


@BOUNDED
@given(
    st.binary(max_size=60),
    st.sampled_from(["x.jsonl", "x.json", "x.log", "x.csv", "x.parquet", "x", "x.jsonl.gz"]),
)
def test_random_bytes_are_found_out_or_refused(tmp_path: Path, data: bytes, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    for form in (None, *FORMS_IN):
        options: dict[str, Any] = {"id": "id"} if form == "events" else {}
        try:
            read_executions(path, form, **options)
        except BadInput as error:
            assert "\n" not in str(error)
            str(error).encode()


# ---------------------------------------------------------------- writing


def test_names_of_fields_never_meet_those_of_the_format() -> None:
    for name in ("x", "x_", *FIELDS, *(f"{field}__" for field in FIELDS)):
        assert extra_name(name) not in FIELDS
        assert plain_name(extra_name(name)) == name
    assert [plain_name(name) for name in FIELDS] == [None] * len(FIELDS)


def executions() -> list[Execution]:
    return [Execution("run #1", EVENTS), Execution("nothing", []), Execution("a/b", EVENTS[:1])]


def written(folder: Path, name: str, form: str | None = None) -> list[str]:
    write_executions(folder / name, executions(), form)
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_one_file_per_execution_in_a_folder_or_by_number(tmp_path: Path) -> None:
    for number, (name, form, expected) in enumerate(
        (
            ("out", None, ["out/1-run-1.jsonl", "out/2-a-b.jsonl"]),
            ("out", "parquet", ["out/1-run-1.parquet", "out/2-a-b.parquet"]),
            ("out", "shiviz", ["out/run-1.log"]),
            ("x.jsonl", None, ["x-1.jsonl", "x-2.jsonl"]),
            ("x.jsonl.gz", None, ["x-1.jsonl.gz", "x-2.jsonl.gz"]),
            ("x.parquet", "trace", ["x-1.parquet", "x-2.parquet"]),
            ("x.log", None, ["x.log"]),
            ("x.txt", "cloudevents", ["x-1.txt", "x-2.txt"]),
        )
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        assert written(folder, name, form) == expected
    assert [path.path for path in write_executions(tmp_path / "y.jsonl", executions()[:2])] == [
        tmp_path / "y.jsonl"
    ]
    (alone,) = write_executions(tmp_path / "alone", [Execution("", EVENTS)])
    assert (alone.path, alone.executions, alone.records) == (tmp_path / "alone" / "execution.jsonl", (0,), 2)


def test_names_of_executions_survive_in_traces(tmp_path: Path) -> None:
    files = [file.path for file in write_executions(tmp_path / "out", executions())]
    assert {event.extra["execution"] for event in read_trace(files[0])} == {"run #1"}
    again = read_executions(files, each=True)
    assert [(each.name, list(each.events)) for each in again] == [("run #1", EVENTS), ("a/b", EVENTS[:1])]


def test_a_name_without_a_format_is_asked_about(tmp_path: Path) -> None:
    assert (
        "end the name in .jsonl, .jsonl.gz, .parquet, .log, .log.gz, or name the format with --to"
        in refused(lambda: write_executions(tmp_path / "x.txt", executions()))
    )
    assert "what can be written is trace, parquet, shiviz, cloudevents" in refused(
        lambda: write_executions(tmp_path / "x.txt", executions(), "otlp")
    )
    assert "no event to write" in refused(lambda: write_executions(tmp_path / "x.jsonl", executions()[1:2]))


def test_several_files_appear_together_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bad = [Execution("1", EVENTS), Execution("2", [Event("p", 1, extra={"x": {1}})])]
    for path in (tmp_path / "out", tmp_path / "x.jsonl"):
        with pytest.raises(BadInput, match="cannot be written as JSON"):
            write_executions(path, bad)
        assert list(tmp_path.iterdir()) == []
    old = tmp_path / "x-1.jsonl"
    old.write_text("old")

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(output, "write_trace", full)
    assert refused(lambda: write_executions(tmp_path / "x.jsonl", executions())) == (
        f"{tmp_path} cannot be written: No space left on device"
    )
    assert (list(tmp_path.iterdir()), old.read_text()) == ([old], "old")


def test_places_that_cannot_be_written_are_named(tmp_path: Path) -> None:
    assert "nowhere cannot be written: No such file" in refused(
        lambda: write_executions(tmp_path / "nowhere" / "x.jsonl", executions())
    )
    assert "cannot be written: there is no folder" in refused(
        lambda: write_executions(tmp_path / "nowhere" / "deeper", executions())
    )
    (tmp_path / "x.jsonl").mkdir()
    (tmp_path / "run.jsonl").mkdir()
    single = [Execution("run", EVENTS)]
    assert "run.jsonl is a directory" in refused(lambda: write_executions(tmp_path, single))
    (tmp_path / "file").write_text("")
    assert "file cannot be written: Not a directory" in refused(
        lambda: write_executions(tmp_path / "file", single)
    )
    assert not (tmp_path / "nowhere").exists()


def test_a_link_is_followed_and_stays(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "x.jsonl").symlink_to(tmp_path / "deep" / "real.jsonl")
    write_executions(tmp_path / "x.jsonl", [Execution("", EVENTS)])
    assert (tmp_path / "x.jsonl").is_symlink()
    assert read_trace(tmp_path / "deep" / "real.jsonl") == EVENTS


# ---------------------------------------------------------------- the command


def test_the_summary_tells_executions_events_processes_edges_and_faults(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x.log").write_text(TWO_LOGS + "no entry\n")
    assert run(tmp_path / "x.log", "-o", tmp_path / "out") == 3
    edges = "processes 2, edges between processes 1, events with such a cause 1"
    assert capsys.readouterr().out.replace(f"{tmp_path}{os.sep}", "").split("\n") == [
        f"run #1: events 2, {edges} → out/1-run-1.jsonl",
        f"run/2: events 3, {edges} → out/2-run-2.jsonl",
        "  FAULT: line that does not match the parser: 1",
        '    x.log, line 15: "no entry"',
        "",
    ]
    assert run(tmp_path / "x.log", "-o", tmp_path / "out.parquet", "--json") == 3
    told = json.loads(capsys.readouterr().out)
    assert told["status"] == "unknown"
    assert told["executions"][1] == {
        "name": "run/2",
        "events": 3,
        "processes": 2,
        "edges": 1,
        "with_cause": 1,
        "faults": [
            {
                "kind": "line that does not match the parser",
                "count": 1,
                "places": [f'{tmp_path / "x.log"}, line 15: "no entry"'],
            }
        ],
        "file": str(tmp_path / "out-2.parquet"),
    }
    assert told["files"] == [
        {"path": str(tmp_path / "out-1.parquet"), "records": 2},
        {"path": str(tmp_path / "out-2.parquet"), "records": 3},
    ]


def test_a_log_to_traces_and_back_is_the_same_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.log").write_text(TWO_LOGS)
    assert run(tmp_path / "x.log", "-o", tmp_path / "one.log") == 0
    assert run(tmp_path / "x.log", "-o", tmp_path / "traces") == 0
    traces = sorted((tmp_path / "traces").iterdir())
    assert run("--each", *traces, "-o", tmp_path / "two.log") == 0
    assert (tmp_path / "one.log").read_bytes() == (tmp_path / "two.log").read_bytes()
    assert run("--each", *traces, "-o", tmp_path / "more", "--to", "parquet") == 0
    assert run("--each", *sorted((tmp_path / "more").iterdir()), "-o", tmp_path / "three.log") == 0
    assert (tmp_path / "one.log").read_bytes() == (tmp_path / "three.log").read_bytes()
    capsys.readouterr()


def test_every_format_goes_through_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.log").write_text(LOG)
    (tmp_path / "spans.json").write_text(json.dumps(SPANS))
    (tmp_path / "cloud.json").write_text(json.dumps([CLOUD, {**CLOUD, "source": "b", "cause": "1"}]))
    (tmp_path / "t.csv").write_text("k,who,cause,at\n1,a,,5\n2,b,1,6\n")
    write_trace(tmp_path / "t.jsonl", EVENTS)
    out = tmp_path / "out.jsonl"
    for arguments, code, events, edges in (
        (["x.log", "--parser", GOVECTOR], 0, 2, 1),
        (["spans.json", "--process", "span"], 3, 1, 0),  # a span without an end
        (["cloud.json", "--from", "cloudevents", "--parent", "cause"], 0, 2, 0),
        (["t.csv", "--id", "k", "--process", "who", "--parent", "cause", "--time", "at"], 0, 2, 1),
        (["t.jsonl"], 0, 2, 1),
    ):
        if arguments[0] == "cloud.json":
            with pytest.raises(BadInput, match='the parent "1" may be "a/1", "b/1"; give it with its source'):
                run(tmp_path / arguments[0], *arguments[1:], "-o", out, "--json")
            (tmp_path / "cloud.json").write_text(json.dumps([CLOUD, {**CLOUD, "id": "2"}]))
        assert run(tmp_path / arguments[0], *arguments[1:], "-o", out, "--json") == code
        (told,) = json.loads(capsys.readouterr().out)["executions"]
        assert (told["events"], told["edges"]) == (events, edges)
    assert run(tmp_path / "t.jsonl", "--to", "cloudevents", "-o", out, "--json") == 0
    assert json.loads(capsys.readouterr().out)["files"] == [{"path": str(out), "records": 1}]
    assert json.loads(out.read_text())["type"] == stamp.TYPE


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_a_repository_goes_through_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    repository = tmp_path / "repository"
    as_somebody = ["-C", str(repository), "-c", "user.name=a", "-c", "user.email=a"]
    for arguments in (
        ["init", "-q", str(repository)],
        *([*as_somebody, "commit", "-q", "--allow-empty", "-m", subject] for subject in "xy"),
    ):
        subprocess.run(["git", *arguments], check=True)
    assert run("--from", "git", repository, "-o", tmp_path / "x.jsonl", "--all-refs") == 0
    assert [(event.process, event.text) for event in read_trace(tmp_path / "x.jsonl")] == [
        ("line-00001", "y"),
        ("line-00001", "x"),
    ]
    assert "events 2, processes 1, " in capsys.readouterr().out


def test_strict_takes_faults_for_bad_input_and_writes_nothing(tmp_path: Path) -> None:
    write_trace(tmp_path / "x.jsonl", [Event("p", 2, parents=("gone",))])
    said = refused(lambda: run(tmp_path / "x.jsonl", "-o", tmp_path / "y.jsonl", "--strict"), tmp_path)
    assert said == (
        "the log has faults, and --strict refuses them: "
        'gap in seq (1), first x.jsonl, line 1: "p" begins at 2; '
        'unknown parent (1), first x.jsonl, line 1: "p#2" names "gone"'
    )
    assert not (tmp_path / "y.jsonl").exists()


def test_what_cannot_be_written_is_said_before_anything_is_read(tmp_path: Path) -> None:
    assert "end the name in" in refused(lambda: run(tmp_path / "missing", "-o", tmp_path / "x.txt"))


def test_exit_codes_and_sentences_as_a_user_sees_them(tmp_path: Path) -> None:
    def causet(*arguments: str | Path) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-c", "from causet.cli import main; main()", "convert", *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return done.returncode, done.stderr

    write_trace(tmp_path / "good.jsonl", EVENTS)
    write_trace(tmp_path / "faulty.jsonl", [Event("p", 2)])
    (tmp_path / "bad.jsonl").write_text("{")
    out = tmp_path / "out.jsonl"
    assert causet(tmp_path / "good.jsonl", "-o", out) == (0, "")
    assert causet(tmp_path / "faulty.jsonl", "-o", out) == (3, "")
    code, said = causet(tmp_path / "bad.jsonl", "-o", out)
    assert (code, said.count("\n")) == (2, 1)
    assert said.startswith(f"causet: {tmp_path / 'bad.jsonl'}, line 1: this is not JSON")
    assert causet(tmp_path / "good.jsonl")[0] == 2
    assert causet("-o", out)[0] == 2


@pytest.mark.skipif(
    not (TRACES / "events").is_dir(), reason=f"no real traces in {TRACES}; set CAUSET_TRACES to their folder"
)
@pytest.mark.parametrize("name", ["db_elle_listappend", "irc_ubuntu_train"])
def test_real_traces_go_through_parquet_unchanged(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = TRACES / "events" / f"{name}.jsonl.gz"
    assert run(path, "-o", tmp_path / "x.parquet") == 0
    assert run(tmp_path / "x.parquet", "-o", tmp_path / "x.jsonl") == 0
    assert read_trace(tmp_path / "x.jsonl") == read_trace(path)
    capsys.readouterr()

"""Both ends of the pipeline: whatever is given is read exactly or refused in one sentence; what is written is
whole or not there."""

from __future__ import annotations

import gzip
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType

from causet.errors import BadInput, Problem
from causet.formats.kinds import Kinds
from causet.formats.lines import Inspection, blocks
from causet.formats.parquet import write_parquet
from causet.formats.schema import FIELDS
from causet.formats.strict import decode_record
from causet.formats.trace import event_of, read_trace, write_trace
from causet.model import Event
from causet.spark.read import json as sources_json
from causet.spark.read.columns import refused
from causet.spark.read.source import open_trace
from causet.spark.skeleton.census import check_columns, take_census
from causet.spark.start import session
from causet.spark.start.errors import sentence_for, translated
from causet.spark.write import folder as sinks
from causet.spark.write.folder import write_rows

GOOD = '{"process":"p","seq":1}\n'


@pytest.fixture
def by_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every file is checked by workers, in pieces of a few lines."""
    monkeypatch.setattr(sources_json, "SMALL", -1)
    monkeypatch.setattr(sources_json, "PIECE", 500)


@pytest.fixture
def in_splits(spark: SparkSession) -> Iterator[None]:
    """Spark reads files in splits of a few lines."""
    for name, value in (("maxPartitionBytes", "300"), ("openCostInBytes", "10")):
        spark.conf.set(f"spark.sql.files.{name}", value)
    yield
    for name in ("maxPartitionBytes", "openCostInBytes"):
        spark.conf.unset(f"spark.sql.files.{name}")


def told(function: Callable[[], object]) -> str:
    """The sentence with which something is refused."""
    with pytest.raises(BadInput) as caught:
        function()
    return str(caught.value)


def refusal(spark: SparkSession, *paths: Path, **options: Any) -> str:
    """The sentence with which these files are refused, at the latest when their values are checked."""

    def read() -> None:
        with open_trace(spark, list(paths), **options) as source:
            source.check()

    return told(read)


def rows_of(frame: DataFrame) -> list[dict[str, Any]]:
    """The rows without their nulls, in the order of process and seq."""
    found = (
        {name: value for name, value in row.asDict(True).items() if value is not None}
        for row in frame.collect()
    )
    return sorted(found, key=lambda row: (row["process"], row["seq"]))


# ---------------------------------------------------------------- lines, without Spark


texts = st.text(max_size=4) | st.sampled_from(
    ["", "p1", "send", 'q"', "\\", "\n", "é", "𝄞", "\x7f", "\u2028"]
)
numbers = st.one_of(
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-3, 3),
    st.sampled_from([2**53, 2**53 + 1, -(2**53), -(2**53) - 1, 10**16, 9 * 10**15, 9 * 10**18, -(2**63)]),
    st.floats(allow_nan=False, allow_infinity=False),
)
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
events = st.fixed_dictionaries(
    {"process": texts, "seq": st.integers(1, 9) | st.integers(1, 10**19) | values},
    optional={
        "kind": st.sampled_from(["send", "receive", "deliver", "local", "odd"]) | values,
        "id": texts,
        "message": texts | st.none(),
        "to": st.lists(texts, max_size=3) | values,
        "time": numbers | st.none(),
        "control": st.booleans() | values,
        "stamp_bytes": st.integers(-1, 5),
        "x": values,
    },
)


@st.composite
def lines(draw: st.DrawFn) -> bytes:
    """A line that is an event, nearly one, or one with a few bytes changed."""
    separators = draw(st.sampled_from([(",", ":"), (", ", ": "), (" ,", " : ")]))
    line = json.dumps(draw(events), ensure_ascii=draw(st.booleans()), separators=separators).encode()
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 2]))):
        at = draw(st.integers(0, len(line)))
        change = draw(st.sampled_from([None, *b'"\\{}[],:01.9eE-+ \tntu\x00\x1f\x80\xff\xe9']))
        line = line[:at] + (b"" if change is None else bytes([change])) + line[at + draw(st.integers(0, 1)) :]
    return line + draw(st.sampled_from([b"", b"", b"\r", b" "]))


@settings(max_examples=200, deadline=None)
@given(st.lists(lines(), min_size=1, max_size=12), st.integers(0, 11))
def test_a_line_is_refused_exactly_if_the_format_refuses_it(given_lines: list[bytes], repeated: int) -> None:
    inspection, kinds = Inspection(few=-1), Kinds()
    for line in [*given_lines, *given_lines[:repeated], *given_lines]:
        try:
            record = decode_record(line)
            event_of(dict(record))
            kinds.add(record)
            good = True
        except Problem:
            good = not line.strip(b" \t\r")
        refused = inspection.first_refused(line + b"\n")
        assert refused == (None if good else (0, len(line))), line
    assert inspection.kinds == kinds


def test_a_line_like_another_needs_no_second_look(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[bytes] = []

    def looks(line: bytes) -> dict[str, object]:
        looked.append(line)
        return decode_record(line)

    monkeypatch.setattr("causet.formats.lines.decode_record", looks)
    block = b"".join(
        b'{"process": "p%d", "seq": %d, "kind": "send", "message": "m\\u00e9%d", "to": [%b], "time": %d.5}\n'
        % (n % 5, n + 1, n, b", ".join([b'"q"'] * (n % 4)), n)
        for n in range(5_000)
    )
    assert Inspection(few=-1).first_refused(block) is None
    assert len(looked) <= 3


def test_the_first_line_that_is_refused_is_the_first() -> None:
    block = b'{"process":"p","seq":1}\n' * 3 + b'{"process":"p","seq":0}\n{"process":"p","seq":1}\n\xff\n'
    found = Inspection(few=-1).first_refused(block)
    assert found is not None
    assert block[slice(*found)] == b'{"process":"p","seq":0}'


def test_pieces_of_a_file_hold_each_line_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("causet.formats.lines.BLOCK", 7)
    path = tmp_path / "t.jsonl"
    content = b"".join(b"%d\n" % 10 ** (n % 9) for n in range(60)) + b"last"
    path.write_bytes(content)
    for size in (1, 2, 3, 10, 50, 1000):
        starts = range(0, len(content), size)
        assert b"".join(block for start in starts for block in blocks(path, start, start + size)) == content
    assert b"".join(blocks(path)) == content


# ---------------------------------------------------------------- what is read


def test_events_have_the_types_of_the_format_and_unknown_fields_their_own(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(
        '{"process":"p","seq":1,"kind":"send","message":"m","to":["q"],"time":5,"x":1,"o":{"b":[1.5],"a":"s"}}\n'
        "  \r\n"
        '{"seq":1,"process":"q","kind":"receive","message":"m","parents":[],"time":null,"x":2.5,"mixed":"5"}\r\n'
        '{"process":"q","seq":2,"group":null,"control":true,"stamp_bytes":3,"mixed":5,"none":null}'
    )
    with open_trace(spark, path) as source:
        assert source.files == [path]
        assert source.faults == []
        assert source.events.schema.simpleString() == (
            "struct<process:string,seq:bigint,kind:string,message:string,to:array<string>,parents:array<string>,"
            "time:bigint,control:boolean,stamp_bytes:bigint,mixed:variant,none:string,"
            "o:struct<a:string,b:array<double>>,x:double>"
        )
        source.check()
        assert rows_of(source.events.withColumn("mixed", F.to_json("mixed"))) == [
            {
                "process": "p",
                "seq": 1,
                "kind": "send",
                "message": "m",
                "to": ["q"],
                "time": 5,
                "x": 1.0,
                "o": {"a": "s", "b": [1.5]},
            },
            {
                "process": "q",
                "seq": 1,
                "kind": "receive",
                "message": "m",
                "parents": [],
                "x": 2.5,
                "mixed": '"5"',
            },
            {"process": "q", "seq": 2, "control": True, "stamp_bytes": 3, "mixed": "5"},
        ]


def test_workers_see_what_the_driver_sees(spark: SparkSession, tmp_path: Path, by_workers: None) -> None:
    path = tmp_path / "t.jsonl"
    write_trace(path, [Event("p", n, time=n, extra={"x": n if n % 7 else None}) for n in range(1, 40)])
    packed = tmp_path / "u.jsonl.gz"
    write_trace(packed, [Event("q", n, time=n + 0.5, extra={"y": [str(n)]}) for n in range(1, 40)])
    with open_trace(spark, [path, packed]) as source:
        assert source.events.schema.simpleString() == (
            "struct<process:string,seq:bigint,time:double,x:bigint,y:array<string>>"
        )
        assert source.events.count() == 78
        assert source.events.agg(F.sum("time")).first() == (sum(range(1, 40)) * 2 + 39 * 0.5,)


def test_times_that_are_integers_stay_exact(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    write_trace(path, [Event("p", 1, time=2**63 - 1), Event("p", 2, time=-(2**63))])
    with open_trace(spark, path) as source:
        assert [row["time"] for row in rows_of(source.events)] == [2**63 - 1, -(2**63)]


EVERY = [
    Event(
        "p", 1, "send", message="m", to=("q",), time=7, text="a", stamp_entries=0, stamp_bytes=9, group="g"
    ),
    Event("q", 1, "receive", message="m", time=8, extra={"n": 1, "deep": {"a": [1]}}),
    Event(
        "q",
        2,
        "deliver",
        id="own",
        message="m",
        control=True,
        parents=("p#1",),
        extra={"n": 2, "deep": {"b": 1}},
    ),
]


def test_json_lines_and_parquet_together_are_one_execution(spark: SparkSession, tmp_path: Path) -> None:
    write_trace(tmp_path / "a.jsonl", EVERY[:1])
    write_parquet(tmp_path / "b.parquet", EVERY[1:2])
    write_trace(tmp_path / "c.jsonl.gz", EVERY[2:])
    with open_trace(spark, [tmp_path / "a.jsonl", tmp_path / "b.parquet", tmp_path / "c.jsonl.gz"]) as source:
        source.check()
        assert {name for name in source.events.columns if name not in FIELDS} == {"n", "deep"}
        found = rows_of(source.events.withColumn("deep", F.to_json("deep")))
        assert [row.get("deep") for row in found] == [None, '{"a":[1]}', '{"b":1}']
        assert [row["n"] for row in found[1:]] == [1, 2]
        order = source.in_file_order().orderBy("file_order").select("process", "seq").collect()
        assert [tuple(row) for row in order] == [("p", 1), ("q", 1), ("q", 2)]


def test_a_folder_that_spark_wrote_is_read(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.range(1, 101, 1, 4).select(F.lit("p").alias("process"), F.col("id").alias("seq"))
    rows.write.parquet(str(tmp_path / "parquet"))
    rows.write.json(str(tmp_path / "json"))
    for folder in ("parquet", "json"):
        with open_trace(spark, tmp_path / folder) as source:
            source.check()
            assert source.events.count() == 100
            assert len(source.files) == 4
            ordered = source.in_file_order().orderBy("file_order").collect()
            assert [row["seq"] for row in ordered] == list(range(1, 101))


def test_a_folder_of_a_stream_is_read_as_far_as_it_was_committed(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    write_trace(tmp_path / "in" / "a.jsonl", [Event("p", n) for n in range(1, 6)])
    stream = spark.readStream.schema("process string, seq long").json(str(tmp_path / "in"))
    query = stream.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "state"))
    query.trigger(availableNow=True).start(str(tmp_path / "out")).awaitTermination()
    written = next((tmp_path / "out").glob("*.parquet"))
    shutil.copy(written, tmp_path / "out" / "part-99999-left-behind.parquet")
    with open_trace(spark, tmp_path / "out") as source:
        assert source.events.count() == 5


ODD_NAMES = ["_hidden.jsonl", ".dot.jsonl", "a b%20[1]{x}*?\\é#+.jsonl", "10:30.jsonl", "x.jsonl.gz"]


def test_names_that_mean_something_to_spark_are_only_names(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temp"))
    (tmp_path / "temp").mkdir()
    folder = tmp_path / "data=1"
    folder.mkdir()
    for number, name in enumerate(ODD_NAMES):
        write_trace(folder / name, [Event(f"p{number}", seq) for seq in (1, 2)])
    with open_trace(spark, [folder / name for name in ODD_NAMES]) as source:
        assert source.events.columns == ["process", "seq"]
        found = [
            tuple(row) for row in source.in_file_order().orderBy("file_order").drop("file_order").collect()
        ]
        assert found == [(f"p{number}", seq) for number in range(len(ODD_NAMES)) for seq in (1, 2)]
    assert list((tmp_path / "temp").iterdir()) == []


def test_fields_of_any_name_come_through(spark: SparkSession, tmp_path: Path) -> None:
    extra = {
        "": 1,
        "a.b": 2,
        "c`d": 3,
        "é x": "y",
        "_corrupt_record": "z",
        "file_order": 4,
        "block": {"a.b": [1]},
    }
    write_trace(tmp_path / "t.jsonl", [Event("p", 1, extra=extra)])
    with open_trace(spark, tmp_path / "t.jsonl") as source:
        assert source.in_file_order().select("file_order").first() == (0,)
        (written,) = write_rows(source.events, tmp_path / "out", "jsonl")
    assert read_trace(written) == read_trace(tmp_path / "t.jsonl")


def test_other_compressions_are_not_unpacked_behind_our_back(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t.bz2"
    path.write_text(GOOD)
    with open_trace(spark, path, "trace") as source:
        assert source.events.count() == 1


def test_logs_of_other_formats_are_read(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temp"))
    (tmp_path / "temp").mkdir()
    path = tmp_path / "t.csv"
    path.write_text("id,cause,who,at,n\na,,p,1,x\nb,a,q,2,y\nc,lost,q,3,z\n")
    with open_trace(spark, path, id="id", parent="cause", process="who", time="at") as source:
        source.check()
        assert source.files == [path]
        assert [(fault.kind, fault.count) for fault in source.faults] == [("unknown parent", 1)]
        assert source.events.columns == ["process", "seq", "id", "parents", "time", "n"]
        assert rows_of(source.events) == [
            {"process": "p", "seq": 1, "id": "a", "parents": [], "time": 1, "n": "x"},
            {"process": "q", "seq": 1, "id": "b", "parents": ["a"], "time": 2, "n": "y"},
            {"process": "q", "seq": 2, "id": "c", "parents": ["lost"], "time": 3, "n": "z"},
        ]
        assert source.place_of("q", 1) == [str(path)]
        assert len(list((tmp_path / "temp").iterdir())) == 1
    assert list((tmp_path / "temp").iterdir()) == []


def test_one_execution_is_read_at_a_time(spark: SparkSession, tmp_path: Path) -> None:
    one, two, trace = (tmp_path / name for name in ("one.log", "two.log", "t.jsonl"))
    for log in (one, two):
        log.write_text('(?<host>\\S*) (?<clock>{.*})\\n(?<event>.*)\n\np {"p":1}\nstart\n')
    assert refusal(spark, one, two) == (
        f"{one}, {two}: there are 2 executions, and one is read at a time; write each to a file with "
        f"`causet convert {one} {two} -o FOLDER`, and give one of those"
    )
    write_trace(trace, EVERY)
    assert refusal(spark, one, trace) == (
        "the inputs are shiviz and trace, which are not one execution; give one format, or convert them to "
        "traces first (causet convert)"
    )
    assert refusal(spark, trace, parser="x", form="trace") == (
        "--parser belongs to shiviz, and the input is trace"
    )


# ---------------------------------------------------------------- JSON Lines that are refused


REFUSED = {
    "not json": b'{"process":"p","seq":2\n',
    "a text for a number": b'{"process":"p","seq":"x"}\n',
    "a number for a text": b'{"process":5,"seq":2}\n',
    "a float": b'{"process":"p","seq":2.0}\n',
    "zero": b'{"process":"p","seq":0}\n',
    "no process": b'{"seq":2}\n',
    "null": b'{"process":null,"seq":2}\n',
    "an unknown kind": b'{"process":"p","seq":2,"kind":"sent"}\n',
    "no message": b'{"process":"p","seq":2,"kind":"receive"}\n',
    "no targets": b'{"process":"p","seq":2,"kind":"send","message":"m"}\n',
    "a text for targets": b'{"process":"p","seq":2,"kind":"send","message":"m","to":"q"}\n',
    "null among targets": b'{"process":"p","seq":2,"kind":"send","message":"m","to":["q",null]}\n',
    "an empty id": b'{"process":"p","seq":2,"id":""}\n',
    "a negative count": b'{"process":"p","seq":2,"stamp_bytes":-1}\n',
    "a number for true": b'{"process":"p","seq":2,"control":1}\n',
    "a text for a time": b'{"process":"p","seq":2,"time":"noon"}\n',
    "a large integer": b'{"process":"p","seq":2,"x":9223372036854775808}\n',
    "a large float": b'{"process":"p","seq":2,"x":[1e999]}\n',
    "not a number": b'{"process":"p","seq":2,"x":NaN}\n',
    "a key twice": b'{"process":"p","seq":2,"seq":2}\n',
    "a key twice inside": b'{"process":"p","seq":2,"x":{"a":1,"a":1}}\n',
    "not UTF-8": b'{"process":"p\xff","seq":2}\n',
    "half a pair": b'{"process":"p\\ud800","seq":2}\n',
    "too deep": b'{"process":"p","seq":2,"x":' + b"[" * 70 + b"]" * 70 + b"}\n",
    "two on a line": b'{"process":"p","seq":2} {"process":"p","seq":3}\n',
    "a list": b'[{"process":"p","seq":2}]\n',
    "null itself": b"null\n",
    "a byte order mark within": b'\xef\xbb\xbf{"process":"p","seq":2}\n',
}


@pytest.mark.parametrize("bad", REFUSED.values(), ids=REFUSED)
def test_a_bad_line_is_told_as_the_format_tells_it(spark: SparkSession, tmp_path: Path, bad: bytes) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(b'{"process":"p","seq":1,"x":null}\n\n' + bad + b'{"process":"p","seq":0}\n')
    sentence = refusal(spark, path)
    assert sentence == told(lambda: read_trace(path))
    assert sentence.startswith(f"{path}, line 3: ")


def test_sentences_name_file_line_and_field(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(GOOD + '{"process":"p","seq":"x"}\n')
    assert refusal(spark, path) == f'{path}, line 2: field "seq" must be an integer from 1, not "x"'
    path.write_text("\ufeff" + GOOD)
    assert (
        refusal(spark, path) == f"{path}, line 1: the file begins with a byte order mark; save it without one"
    )


def test_workers_tell_the_first_bad_line_of_all(
    spark: SparkSession, tmp_path: Path, by_workers: None
) -> None:
    first, second = tmp_path / "b.jsonl", tmp_path / "a.jsonl"
    good = [f'{{"process":"p","seq":{n}}}\n' for n in range(1, 41)]
    first.write_text("".join([*good[:30], '{"process":"p","seq":"31"}\n', *good[31:], "oops\n"]))
    second.write_text("{}\n" + "".join(good))
    assert refusal(spark, first, second) == (
        f'{first}, line 31: field "seq" must be an integer from 1, not "31"'
    )
    for path in (first, second):
        path.write_text(path.read_text().replace("oops\n", "").replace('"31"', "31").replace("{}\n", "\n"))
    with second.open("ab") as stream:
        stream.write(b'{"process":"q\xff","seq":1}')
    assert refusal(spark, first, second) == f"{second}, line 42: byte 14 of the line is not UTF-8"


@pytest.mark.parametrize("small", [True, False])
def test_files_that_cannot_be_read(
    spark: SparkSession, tmp_path: Path, small: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources_json, "SMALL", 2**30 if small else -1)
    cut, no_gzip = tmp_path / "cut.jsonl.gz", tmp_path / "no.jsonl.gz"
    write_trace(cut, [Event(f"p{n * 7919 % 1000}", n) for n in range(1, 2_000)])
    cut.write_bytes(cut.read_bytes()[:-3_000])
    no_gzip.write_text(GOOD)
    for path in (cut, no_gzip):
        assert refusal(spark, path) == told(partial(read_trace, path))
    assert refusal(spark, cut).endswith(": the compressed file is cut off")
    assert refusal(spark, no_gzip) == f"{no_gzip}, line 1: this is not valid gzip"


def test_a_line_that_is_too_long(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("causet.files", "causet.formats.lines"):
        monkeypatch.setattr(f"{module}.MAX_LINE", 100)
    monkeypatch.setattr("causet.formats.lines.BLOCK", 50)
    path = tmp_path / "t.jsonl"
    fits = '{"process":"p","seq":1,"text":"' + "x" * 67 + '"}'
    assert len(fits) == 100
    path.write_text(GOOD + fits + "\r\n")
    with open_trace(spark, path) as source:
        assert source.events.count() == 2
    path.write_text(GOOD + fits.replace("xx", "xxx") + "\n")
    assert refusal(spark, path) == f"{path}, line 2: the line is longer than 0 MiB"


def test_paths_that_hold_nothing(spark: SparkSession, tmp_path: Path) -> None:
    empty, blank, folder = tmp_path / "e.jsonl", tmp_path / "b.jsonl", tmp_path / "folder"
    empty.touch()
    blank.write_text("\n \n")
    folder.mkdir()
    assert refusal(spark, empty, blank) == f"{empty}, {blank}: there is no event in it"
    assert refusal(spark, folder) == (
        f"{folder}: there is no trace in this folder (.jsonl, .jsonl.gz or .parquet)"
    )
    missing = tmp_path / "missing.jsonl"
    assert refusal(spark, missing) == f"{missing} cannot be read: No such file or directory"
    missing = missing.with_suffix(".parquet")
    assert refusal(spark, missing) == f"{missing} cannot be read: No such file or directory"
    good = tmp_path / "t.jsonl"
    good.write_text(GOOD)
    with open_trace(spark, [empty, good, blank]) as source:
        assert source.events.count() == 1
    os.mkfifo(tmp_path / "pipe.jsonl")
    assert refusal(spark, tmp_path / "pipe.jsonl") == (
        f"{tmp_path}/pipe.jsonl is not a regular file, and has to be read twice; write it to a file first"
    )
    assert told(lambda: open_trace(spark, [])) == "nothing to read; name at least one file"


@contextmanager
def with_few_rights() -> Iterator[Path]:
    """A folder that everybody may enter, for somebody who is not root: root may read and write everything."""
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@contextmanager
def as_nobody() -> Iterator[None]:
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


def test_files_that_may_not_be_read(spark: SparkSession) -> None:
    with with_few_rights() as folder:
        for path in (folder / "t.jsonl", folder / "t.parquet"):
            path.touch(mode=0)
            with as_nobody():
                assert refusal(spark, path) == f"{path} cannot be read: Permission denied"


def test_times_of_two_kinds(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(
        '{"process":"p","seq":1,"time":1.5}\n{"process":"p","seq":2,"time":9007199254740992}\n'
        '{"process":"p","seq":3,"time":9007199254740993}\n'
    )
    assert refusal(spark, path) == (
        f'{path}, line 3: field "time": other times are floats, and 9007199254740993 has no exact float; use '
        "one kind of time"
    )
    path.write_text(path.read_text().replace("740993", "740991"))
    with open_trace(spark, path) as source:
        assert [row["time"] for row in rows_of(source.events)] == [1.5, 2.0**53, 2.0**53 - 1]


def test_values_that_have_no_one_type_are_variants(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    extras: list[dict[str, object]] = [
        {"big": 2**60, "list": [1, "a"], "case": {"a": 1, "A": 2}, "empty": {}, "ints": []},
        {"big": 1.5, "list": [], "case": {"a": 1}, "empty": {}, "ints": [1]},
        {"names": {f"k{n}": n for n in range(1_100)}, "list": "x"},
    ]
    write_trace(path, [Event("p", number, extra=extra) for number, extra in enumerate(extras, 1)])
    with open_trace(spark, path) as source:
        types = dict(source.events.dtypes)
        assert types.pop("ints") == "array<bigint>"
        assert {types.pop(name) for name in ("process", "seq")} == {"string", "bigint"}
        assert set(types.values()) == {"variant"}
        written = source.events.select("seq", *(F.to_json(name).alias(name) for name in types)).orderBy("seq")
        for row, extra in zip(written.collect(), extras, strict=True):
            read = {name: json.loads(text) for name, text in row.asDict().items() if name in types and text}
            assert read == {name: value for name, value in extra.items() if name != "ints"}


def test_more_fields_than_columns_can_be_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    write_trace(path, [Event("p", n, extra={f"x{n}": n}) for n in range(1, 1_002)])
    assert refusal(spark, path) == (
        f"{path}: there are more than 1,000 different fields, too many for columns; put them into one field "
        "that holds an object"
    )


@pytest.fixture
def without_case(spark: SparkSession) -> Iterator[None]:
    """As Spark is where nobody sets it up: names that differ only in case are the same."""
    before = spark.conf.get("spark.sql.caseSensitive")
    spark.conf.set("spark.sql.caseSensitive", "false")
    yield
    spark.conf.set("spark.sql.caseSensitive", before or "true")


@pytest.mark.usefixtures("without_case")
def test_names_that_differ_only_in_case(spark: SparkSession, tmp_path: Path) -> None:
    path, rows = tmp_path / "t.jsonl", tmp_path / "t.parquet"
    write_trace(path, [Event("p", 1, extra={"Time": "noon"})])
    pq.write_table(pa.table({"process": ["p"], "seq": [1], "Time": ["noon"]}), rows)
    for given_path in (path, rows):
        assert refusal(spark, given_path) == (
            f'{given_path}: to Spark "time" and "Time" are the same name; rename one, or set '
            "spark.sql.caseSensitive to true"
        )
    spark.conf.set("spark.sql.caseSensitive", "true")
    with open_trace(spark, [path, rows]) as source:
        assert [row["Time"] for row in source.events.collect()] == ["noon"] * 2


# ---------------------------------------------------------------- Parquet


def parquet(path: Path, **columns: Any) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


def test_parquet_columns_become_the_types_of_the_format(spark: SparkSession, tmp_path: Path) -> None:
    path = parquet(
        tmp_path / "t.parquet",
        process=pa.array(["p", "q"]).dictionary_encode(),
        seq=pa.array([1, 1], pa.int16()),
        to=pa.array([["q"], None], pa.large_list(pa.large_string())),
        time=pa.array([1.5, math.nan], pa.float32()),
        stamp_bytes=pa.array([1, None], pa.uint64()),
        group=pa.nulls(2),
        small=pa.array([1, 2], pa.int8()),
        when=pa.array([1, 2], pa.timestamp("ns")),
        void=pa.nulls(2),
        ratio=[0.5, math.nan],
        date=pa.array([1, 2], pa.date32()),
        map=pa.array([[("k", 1)], []], pa.map_(pa.string(), pa.int64())),
    )
    with open_trace(spark, path) as source:
        source.check()
        assert source.events.schema.simpleString() == (
            "struct<process:string,seq:bigint,to:array<string>,time:double,stamp_bytes:bigint,small:tinyint,"
            "when:bigint,void:string,ratio:double,date:date,map:map<string,bigint>>"
        )
        first, second = rows_of(source.events)
        assert (first["time"], first["stamp_bytes"], first["ratio"], first["when"]) == (1.5, 1, 0.5, 1)
        assert second.keys() == {"process", "seq", "small", "when", "date", "map"}


@pytest.mark.parametrize(("unit", "old"), [("ms", False), ("us", False), ("ns", False), ("ns", True)])
def test_timestamps_become_the_integers_that_they_are(
    spark: SparkSession, tmp_path: Path, unit: str, old: bool
) -> None:
    moments = pa.array([1714564800123456000], pa.timestamp("ns")).cast(pa.timestamp(unit), safe=False)
    path = tmp_path / "t.parquet"
    table = pa.table({"process": ["p"], "seq": [1], "time": moments})
    pq.write_table(table, path, use_deprecated_int96_timestamps=old)
    with open_trace(spark, path) as source:
        assert rows_of(source.events)[0]["time"] == moments.cast(pa.int64())[0].as_py()


@pytest.mark.parametrize(
    ("column", "values", "sentence"),
    [
        ("process", pa.array([1, 2]), 'the column "process" must hold strings, not int64'),
        ("seq", pa.array(["1", "2"]), 'the column "seq" must hold integers, not string'),
        ("seq", pa.array([1.0, 2.0]), 'the column "seq" must hold integers, not double'),
        ("to", pa.array([[1], [2]]), 'the column "to" must hold lists of strings, not list<element: int64>'),
        (
            "time",
            pa.array([True, False]),
            'the column "time" must hold integers, floats or timestamps, not bool',
        ),
        ("control", pa.array([0, 1]), 'the column "control" must hold booleans, not int64'),
        (
            "odd",
            pa.array([1, 2], pa.time32("s")),
            'the column "odd" is of type time32[ms], which Spark cannot read; leave it out',
        ),
    ],
)
def test_a_parquet_column_of_a_wrong_type(
    spark: SparkSession, tmp_path: Path, column: str, values: Any, sentence: str
) -> None:
    columns = {"process": ["p", "p"], "seq": [1, 2], column: values}
    path = parquet(tmp_path / "t.parquet", **columns)
    assert refusal(spark, path) == f"{path}: {sentence}"


def test_a_parquet_file_without_a_column_that_every_event_has(spark: SparkSession, tmp_path: Path) -> None:
    path = parquet(tmp_path / "t.parquet", process=["p"], x=[1])
    assert refusal(spark, path) == f'{path}: there is no column "seq"; every event must have it'


PARQUET_ROWS: list[tuple[dict[str, Any], str]] = [
    ({"process": ["p", None, "p"]}, 'field "process" is missing; every local event must have it'),
    ({"seq": [1, 0, 0]}, 'field "seq" must be an integer from 1, not 0'),
    ({"seq": [1, None, 3]}, 'field "seq" is missing; every local event must have it'),
    ({"kind": [None, "sent", None]}, 'field "kind" must be one of send, receive, deliver, local, not "sent"'),
    ({"kind": [None, "deliver", None]}, 'field "message" is missing; every deliver event must have it'),
    (
        {"kind": [None, "send", None], "message": ["m", "m", "m"]},
        'field "to" is missing; every send event must have it',
    ),
    ({"to": [["q"], [None], []]}, 'field "to" must be a list of strings, not [null]'),
    ({"id": ["a", "", "c"]}, 'field "id" must be a string that is not empty, not ""'),
    ({"stamp_entries": [0, -1, 0]}, 'field "stamp_entries" must be an integer from 0, not -1'),
    ({"time": [1.5, math.inf, math.nan]}, 'field "time": the number inf is not a JSON number'),
    (
        {"time": pa.array([1, 2**64 - 1, 3], pa.uint64())},
        'field "time": the integer 18446744073709551615 does not fit 64 bits',
    ),
]


@pytest.mark.parametrize(("columns", "sentence"), PARQUET_ROWS)
def test_a_parquet_row_that_is_no_event(
    spark: SparkSession, tmp_path: Path, columns: dict[str, Any], sentence: str
) -> None:
    path = parquet(tmp_path / "t.parquet", **{"process": ["p"] * 3, "seq": [1, 2, 3], **columns})
    assert refusal(spark, path) == f"{path}, row 2: {sentence}"


def test_the_first_bad_row_is_the_first_of_the_files_as_given(spark: SparkSession, tmp_path: Path) -> None:
    for name, seqs in (("z", [1, 0]), ("a", [0, 0])):
        parquet(tmp_path / f"{name}.parquet", process=["p"] * 2, seq=seqs)
    assert refusal(spark, tmp_path / "z.parquet", tmp_path / "a.parquet").startswith(
        f"{tmp_path}/z.parquet, row 2: "
    )


def test_a_marked_column_whose_text_is_no_json(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    marked = pa.field("x", pa.string(), metadata={b"causet": b"json"})
    schema = pa.schema([("process", pa.string()), ("seq", pa.int64()), marked])
    pq.write_table(pa.table([["p", "p"], [1, 2], ["[1]", "[1"]], schema=schema), path)
    assert refusal(spark, path) == (
        f"{path}, row 2: field \"x\": this is not JSON: Expecting ',' delimiter at column 3"
    )


def test_a_damaged_parquet_file_is_named(spark: SparkSession, tmp_path: Path) -> None:
    no, cut, flipped = (tmp_path / f"{name}.parquet" for name in ("no", "cut", "flipped"))
    no.write_text("hello, this is no Parquet file at all")
    table = pa.table({"process": [f"p{n}" for n in range(1_000)], "seq": list(range(1, 1_001))})
    pq.write_table(table, cut)
    cut.write_bytes(cut.read_bytes()[:-100])
    options: dict[str, Any] = {"write_page_checksum": True, "compression": "none", "use_dictionary": False}
    pq.write_table(table, flipped, **options)
    damaged = bytearray(flipped.read_bytes())
    damaged[1_000] ^= 1
    flipped.write_bytes(damaged)
    for path in (no, cut, flipped):
        assert refusal(spark, path) == told(partial(read_rows, path))
        assert refusal(spark, path).startswith(f"{path} cannot be read: ")
        assert "\n" not in refusal(spark, path)


def read_rows(path: Path) -> None:
    from causet.formats.parquet import placed_rows

    for _ in placed_rows(path):
        pass


def test_files_whose_columns_do_not_fit_together(spark: SparkSession, tmp_path: Path) -> None:
    def pair(one: Any, other: Any) -> list[Path]:
        return [
            parquet(tmp_path / "a.parquet", process=["p"], seq=[1], **one),
            parquet(tmp_path / "b.parquet", process=["p"], seq=[2], **other),
        ]

    a, b = pair({"x": [1]}, {"x": ["s"]})
    assert refusal(spark, a, b) == (
        f'{a} and {b} do not match: field "x" is bigint in one and string in the other'
    )
    lines = tmp_path / "c.jsonl"
    write_trace(lines, [Event("p", 3, extra={"x": [1]})])
    assert refusal(spark, lines, b) == (
        f'{lines} and {b} do not match: field "x" is array<bigint> in one and string in the other'
    )
    micros, nanos = (pa.array([1], pa.timestamp(unit)) for unit in ("us", "ns"))
    assert refusal(spark, *pair({"time": micros}, {"time": nanos})) == (
        f"{b} and {a} do not match: times are in ns in one and in us in the other"
    )
    assert refusal(spark, *pair({"x": [1.5]}, {"x": [2**53 + 1]})) == (
        f'{b}, row 1: field "x": others are floats, and 9007199254740993 has no exact float; use one kind'
    )
    write_trace(lines, [Event("p", 3, extra={"x": 2**53 + 1})])
    assert refusal(spark, a, lines) == (
        f'{lines}, line 1: field "x": others are floats, and 9007199254740993 has no exact float; use one '
        "kind"
    )
    small = pa.array([7], pa.int8())
    with open_trace(spark, pair({"x": small, "y": pa.nulls(1)}, {"x": [2**40], "y": [[1]]})) as source:
        source.check()
        assert source.events.select("x", "y").dtypes == [("x", "bigint"), ("y", "array<bigint>")]
        assert [row["x"] for row in rows_of(source.events)] == [7, 2**40]
    path = tmp_path / "twice.parquet"
    pq.write_table(pa.table([["p"], [1], [1]], names=["process", "seq", "seq"]), path)
    assert refusal(spark, path) == f'{path}: the column "seq" appears twice'


# ---------------------------------------------------------------- DataFrames of the user's own


def test_a_data_frame_of_the_users_own(spark: SparkSession) -> None:
    frame = spark.createDataFrame(
        [("p", 1, 1.5, None), ("p", 2, math.nan, [None])],
        "process string, seq tinyint, time float, to array<void>",
    )
    check_columns(frame.withColumn("id", F.lit(None)))
    _, census = take_census(frame)
    assert (census.processes, census.counts, census.floats) == (("p",), (2,), True)


@pytest.mark.parametrize(
    ("row", "types", "sentence"),
    [
        (("p", "1"), "process string, seq string", 'the column "seq" must hold integers, not string'),
        (("p",), "process string", 'there is no column "seq"; every event must have it'),
        (
            ("p", 1, Decimal(1)),
            "process string, seq long, time decimal(5,2)",
            'the column "time" must hold integers or floats, not decimal(5,2)',
        ),
        (
            ("p", 1, [1]),
            "process string, seq long, parents array<int>",
            'the column "parents" must hold lists of strings, not array<int>',
        ),
    ],
)
def test_a_data_frame_of_wrong_types(spark: SparkSession, row: Any, types: str, sentence: str) -> None:
    frame = spark.createDataFrame([row], types)
    assert told(lambda: take_census(frame)) == sentence


def test_a_data_frame_with_a_row_that_is_not_an_event(spark: SparkSession) -> None:
    frame = spark.createDataFrame([("p", 1, None), ("p", 2, "send")], "process string, seq long, kind string")
    assert told(lambda: take_census(frame)) == 'a send of process "p" has no message'
    assert [row[0] for row in frame.select(refused(*columns_of(frame))).collect()] == [False, True]


def columns_of(frame: DataFrame) -> tuple[dict[str, Column], dict[str, DataType]]:
    types = {field.name: field.dataType for field in frame.schema.fields}
    return {name: F.col(name) for name in types}, types


# ---------------------------------------------------------------- places


def test_file_order_is_the_order_of_the_files_as_given(
    spark: SparkSession, tmp_path: Path, in_splits: None
) -> None:
    names = ["z.jsonl", "m.parquet", "a.jsonl", "b.jsonl.gz", "c.parquet"]
    for number, name in enumerate(names):
        its_events = [Event(f"p{number}", seq, time=seq * 7919 % 100) for seq in range(1, 101)]
        (write_parquet if name.endswith(".parquet") else write_trace)(tmp_path / name, its_events)
    with open_trace(spark, [tmp_path / name for name in names]) as source:
        ordered = source.in_file_order()
        assert ordered.columns == [*source.events.columns, "file_order"]
        assert ordered.rdd.getNumPartitions() > 20
        found = [(row["process"], row["seq"]) for row in ordered.orderBy("file_order").collect()]
        assert found == [(f"p{number}", seq) for number in range(len(names)) for seq in range(1, 101)]


def test_an_event_is_found_by_its_file_and_line(spark: SparkSession, tmp_path: Path) -> None:
    a, b, c = tmp_path / "a.jsonl", tmp_path / "b.jsonl.gz", tmp_path / "c.parquet"
    a.write_text(
        '\n{"process":"p","seq":11,"id":"q#1"}\n'
        '{"process":"pé","seq": 1,"kind":"send","message":"m","to":[]}\n'
        '{"process":"q","seq":1,"kind":"send","message":"m\\u0020é","to":[]}\n{"process":"p","seq":1}\n'
    )
    write_trace(b, [Event("p", 1), Event("p\u00e9", 1), Event("q", 1)])
    b.write_bytes(gzip.compress(gzip.decompress(b.read_bytes()).replace("pé".encode(), b"p\\u00e9")))
    write_parquet(c, [Event("x", 1), Event("p", 1), Event("r", 1, "send", message="m é", to=())])
    with open_trace(spark, [a, b, c]) as source:
        assert source.place_of("p", 1) == [f"{a}, line 5", f"{b}, line 1", f"{c}, row 2"]
        assert source.place_of("pé", 1) == [f"{a}, line 3", f"{b}, line 2"]
        assert source.place_of("nobody", 1) == [str(a), str(b), str(c)]


# ---------------------------------------------------------------- what Spark says


def test_a_file_that_changes_after_it_was_opened(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"

    def collect_after(change: Callable[[], object]) -> str:
        path.write_text(GOOD * 3)

        def collect() -> None:
            with open_trace(spark, path) as source:
                change()
                source.events.collect()

        return told(collect)

    assert collect_after(path.unlink) == f"{path} cannot be read: it was removed meanwhile"
    assert collect_after(lambda: path.write_text(GOOD + '{"process":"p","seq":"x"}')) == (
        f'{path}, line 2: field "seq" must be an integer from 1, not "x"'
    )


def test_a_checksum_that_spark_left_beside_a_file(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.range(1, 3).select(F.lit("p").alias("process"), F.col("id").alias("seq")).coalesce(1)
    frame.write.json(str(tmp_path / "t"))
    (path,) = (tmp_path / "t").glob("part-*.json")
    path.write_text(path.read_text().replace('"p"', '"q"'))

    def read() -> None:
        with open_trace(spark, tmp_path / "t") as source:
            source.events.collect()

    assert told(read) == (
        f"{path} does not agree with its checksum, the file .{path.name}.crc beside it: it is damaged, or "
        "was changed since Spark wrote it; remove the .crc if it is good"
    )


def test_an_exception_about_something_else_is_none_of_the_sources(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(GOOD)
    with open_trace(spark, path) as source:
        assert source.sentence(ValueError("x")) is None
        with pytest.raises(Exception, match="DIVIDE_BY_ZERO") as caught:
            source.events.select(F.col("seq") / 0).collect()
        assert source.sentence(caught.value) is None
        assert sentence_for(caught.value) is None


def test_what_a_worker_refuses_is_passed_on_and_the_rest_is_one_line(spark: SparkSession) -> None:
    def odd(batches: Iterator[Any]) -> Iterator[Any]:
        raise BadInput("p#1 is odd")

    def run(frame: DataFrame) -> str:
        def job() -> None:
            with translated():
                frame.collect()

        return told(job)

    assert run(spark.range(3).mapInArrow(odd, "x long")) == "p#1 is odd"
    sentence = run(spark.range(3).select(1 / (F.col("id") - 1)))
    assert sentence.startswith("Spark gave up: Division by zero. ")
    assert "\n" not in sentence


# ---------------------------------------------------------------- sinks


@pytest.fixture
def rows(spark: SparkSession) -> DataFrame:
    return spark.range(0, 30, 1, 3).select(
        F.lit("p").alias("process"),
        (F.col("id") + 1).alias("seq"),
        F.when(F.col("id") % 2 == 0, F.col("id")).alias("even"),
        F.struct(F.col("id").alias("a"), F.lit(None).cast("long").alias("b")).alias("inner"),
        F.parse_json(F.lit('[1, "x"]')).alias("any"),
        F.lit(math.nan).alias("nan"),
        F.create_map(F.lit("k"), F.col("id")).alias("a `map`"),
    )


def content(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_rows_are_written_as_parts_in_their_order(
    spark: SparkSession, rows: DataFrame, tmp_path: Path
) -> None:
    names = ["_SUCCESS", "part-00000.jsonl", "part-00001.jsonl", "part-00002.jsonl"]
    written = write_rows(rows, tmp_path / "lines", "jsonl")
    assert written == [tmp_path / "lines" / name for name in names[1:]]
    assert sorted(content(tmp_path / "lines")) == names
    lines = "".join(path.read_text() for path in written).splitlines()
    assert lines[1] == '{"process":"p","seq":2,"inner":{"a":1},"any":[1,"x"],"a `map`":{"k":1}}'
    assert [json.loads(line)["seq"] for line in lines] == list(range(1, 31))
    parts = write_rows(rows, str(tmp_path / "rows"), "parquet")
    table = pa.concat_tables([pq.read_table(path) for path in parts])
    assert table["seq"].to_pylist() == list(range(1, 31))
    assert table["any"].to_pylist()[0] == '[1,"x"]'
    assert table["inner"].to_pylist()[0] == {"a": 0, "b": None}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lines", "rows"]


def test_the_same_rows_give_the_same_bytes(rows: DataFrame, tmp_path: Path) -> None:
    for form in sinks.FORMS:
        (tmp_path / form).mkdir()
        for name in ("one", "two"):
            write_rows(rows, tmp_path / form / name, form)
        assert content(tmp_path / form / "one") == content(tmp_path / form / "two")


def test_what_is_there_is_not_overwritten_unless_asked(rows: DataFrame, tmp_path: Path) -> None:
    target = tmp_path / "out"
    target.mkdir()
    write_rows(rows, target, "jsonl")
    before = content(target)
    assert told(lambda: write_rows(rows, target, "jsonl")) == (
        f"{target} exists and is not empty; name another folder, or use --overwrite"
    )
    assert content(target) == before
    write_rows(rows.limit(1).coalesce(1), target, "jsonl", overwrite=True)
    assert sorted(content(target)) == ["_SUCCESS", "part-00000.jsonl"]
    (target / "thesis.txt").touch()
    assert told(lambda: write_rows(rows, target, "jsonl", overwrite=True)) == (
        f'{target} is not overwritten: it holds other things than rows, such as "thesis.txt"'
    )
    assert (target / "thesis.txt").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_targets_that_cannot_be_written(rows: DataFrame, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    assert told(lambda: write_rows(rows, file, "jsonl")) == (
        f"{file} is not a folder; give the name of a folder to write"
    )
    assert told(lambda: write_rows(rows, tmp_path / "no" / "out", "jsonl")) == (
        f"{tmp_path}/no/out cannot be written: there is no folder {tmp_path}/no"
    )
    assert told(lambda: write_rows(rows, tmp_path / "out", "csv")) == (
        'unknown format "csv"; rows are written as parquet or jsonl'
    )
    assert told(lambda: write_rows(rows, "/proc/out", "jsonl")) == (
        "/proc/out cannot be written: No such file or directory"
    )
    for target, sentence in (
        ("hdfs://nobody.invalid:1/x", "there is no host with that name"),
        ("odd://x/y", "Spark does not support this file system"),
    ):
        assert told(partial(write_rows, rows, target, "jsonl")) == (f"{target} cannot be written: {sentence}")


def test_a_folder_in_which_nothing_may_be_written(rows: DataFrame) -> None:
    with with_few_rights() as folder, as_nobody():
        if os.geteuid() != 65534:
            folder.chmod(0o500)
        assert told(lambda: write_rows(rows, folder / "out", "jsonl")) == (
            f"{folder}/out cannot be written: Permission denied"
        )


FULL = (
    "cannot be written: the disk is full; free some space, or use another disk (for Spark's temporary files: "
    "--conf spark.local.dir=FOLDER)"
)


def test_a_full_disk_is_one_sentence(spark: SparkSession, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", str(disk)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("a small file system cannot be mounted here")
    try:
        large = spark.range(0, 20_000, 1, 2).select(F.sha2(F.col("id").cast("string"), 256))
        for form in sinks.FORMS:
            assert told(partial(write_rows, large, disk / "out", form)) == (f"{disk}/out {FULL}")
            assert list(disk.iterdir()) == []
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)  # Spark forgets to close what it opened


def test_a_full_disk_by_what_spark_says_of_it(
    rows: DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyspark.errors import PySparkException

    def full(*_: object) -> None:
        raise PySparkException(
            "Job aborted.\nCaused by: java.io.IOException: No space left on device\n\tat x"
        )

    monkeypatch.setattr(sinks, "write_files", full)
    assert told(lambda: write_rows(rows, tmp_path / "out", "parquet")) == f"{tmp_path}/out {FULL}"
    assert list(tmp_path.iterdir()) == []


def test_a_failure_of_the_rows_themselves_is_passed_on(rows: DataFrame, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        write_rows(rows.select(F.col("seq") / (F.col("seq") - 1)), tmp_path / "out", "parquet")
    assert list(tmp_path.iterdir()) == []


WRITES = """
import sys, time
from causet.spark.start.session import spark_session
from causet.spark.write.folder import write_rows

def slow(batches):
    for batch in batches:
        print("writing", flush=True)
        time.sleep(60)
        yield batch

spark = spark_session("local[2]", brief=True)
try:
    write_rows(spark.range(0, 10, 1, 2).mapInArrow(slow, "id long"), sys.argv[1], "jsonl")
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.jvm
def test_nothing_is_left_after_an_interrupt(tmp_path: Path) -> None:
    running = subprocess.Popen(
        [sys.executable, "-c", WRITES, str(tmp_path / "out")],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    assert running.stdout is not None
    try:
        while not any(path.name.endswith(".part") and any(path.iterdir()) for path in tmp_path.iterdir()):
            time.sleep(0.1)
            assert running.poll() is None
        running.send_signal(signal.SIGINT)
        assert "interrupted" in running.stdout.read()
        running.wait(30)
        assert list(tmp_path.iterdir()) == []
    finally:
        running.kill()
        running.wait()
        running.stdout.close()


MAKES = """
import sys
from pathlib import Path
while True:
    Path(sys.argv[1]).mkdir(exist_ok=True)
"""


def test_what_interrupted_tasks_make_until_their_jvm_ends_is_removed_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / ".out.part"
    with subprocess.Popen([sys.executable, "-c", MAKES, str(folder)]) as jvm:
        monkeypatch.setattr(session, "_OWN", [jvm])
        while not folder.exists():
            time.sleep(0.01)
        session._remove_after_jvm(folder)
        assert jvm.poll() is not None and not folder.exists()


@pytest.mark.soak
def test_a_bad_line_at_the_end_of_five_million_is_found_soon(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    with path.open("w") as stream:
        for number in range(1, 5_000_000):
            stream.write(
                f'{{"process":"p{number % 64}","seq":{number // 64 + 1},"time":{number},"x":"{number}"}}\n'
            )
        stream.write('{"process":"p","seq":1,"time":}\n')
    before = time.monotonic()
    assert refusal(spark, path) == f"{path}, line 5000000: this is not JSON: Expecting value at column 31"
    took = time.monotonic() - before
    assert took < 60, took

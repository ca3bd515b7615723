"""Bad lines and damaged files: each is found, named and left out by itself; all others are read."""

from __future__ import annotations

import errno
import gzip
import json
import os
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from causet.errors import BadInput
from causet.spark.streams.file_source import (
    arriving,
    arriving_files,
    check_messages,
    has_columns_in_names,
    inputs,
    schema_from,
    schema_of,
    schema_text,
    still,
)
from causet.spark.streams.messages.columns import columns_of
from causet.spark.streams.pack import FAULT, from_blob
from causet.spark.streams.parquet import rows_of
from causet.spark.streams.verdicts import examine, unreadable_rows

KINDS: dict[str, T.DataType] = {
    "string": T.StringType(),
    "bigint": T.LongType(),
    "int": T.IntegerType(),
    "double": T.DoubleType(),
    "float": T.FloatType(),
    "timestamp": T.TimestampType(),
    "map<string,bigint>": T.MapType(T.StringType(), T.LongType()),
}


def columns(text: str) -> T.StructType:
    """Columns as SQL names them, without a Spark to ask."""
    pairs = [each.split() for each in text.split(", ")]
    return T.StructType([T.StructField(name, KINDS[kind]) for name, kind in pairs])


COLUMNS = columns("source string, sequence bigint, x double, malformed string")
GOOD = b'{"source":"a","sequence":1,"x":1.5}'


def streamed(frame: DataFrame, checkpoint: Path) -> list[Row]:
    rows: list[Row] = []
    query = (
        frame.writeStream.foreachBatch(lambda batch, _: rows.extend(batch.collect()))
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    try:
        assert query.awaitTermination(120), "the stream did not end"
    finally:
        query.stop()
    return rows


def lines_of(
    spark: SparkSession, folder: Path, schema: T.StructType = COLUMNS, without: Collection[str] = ()
) -> list[Row]:
    return streamed(
        arriving(spark, folder / "in", "jsonl", schema, without=without),
        folder / f"checkpoint{len(list(folder.iterdir()))}",
    )


def write(folder: Path, name: str, content: bytes) -> Path:
    file = folder / "in" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    return file


# ---------------------------------------------------------------- lines

LINES: list[tuple[bytes, str | None]] = [
    (GOOD, None),
    (b"  " + GOOD + b" \r", None),
    (b"{}", None),
    (b'{"source":"a","source":"b"}', None),
    (b'{"Source":"c","source":"a"}', None),
    (b'{"source":"}{"}', None),
    (b'{"source":"} {", "more": [{},{},{"a":{}}]}', None),
    (b"[]", "is a JSON array, not an object"),
    (b'[{"source":"a"},{"source":"b"}]', "is a JSON array, not an object"),
    (b"null", "is a JSON value, not an object"),
    (b"5", "is a JSON value, not an object"),
    (b'"text"', "is a JSON value, not an object"),
    (b"no JSON", "is not JSON"),
    (b"{", "is not JSON"),
    (b'{"source":"a"', "is not JSON"),
    (b'{"source":"a"} and more', "is not JSON"),
    (GOOD + GOOD, "is not JSON"),
    (GOOD + b" " + GOOD, "is not JSON"),
    (GOOD + b"," + GOOD, "has more than one JSON value"),
    (b"\x00" + GOOD, "is not JSON"),
    (b'{"source":"\xff"}', "is not UTF-8"),
    (b"\xff\xfe", "is not UTF-8"),
    (b'{"sequence":1.5}', 'field "sequence": 1.5 does not fit the column\'s type bigint'),
    (b'{"sequence":"seven"}', 'field "sequence": seven does not fit the column\'s type bigint'),
    (b'{"sequence":{"a":[1]}}', 'field "sequence": {"a":[1]} does not fit the column\'s type bigint'),
    (b'{"sequence":1, "x":true}', 'field "x": true does not fit the column\'s type double'),
    (
        b'{"sequence":' + b"9" * 2000 + b"}",
        f'field "sequence": {"9" * 40}… does not fit the column\'s type bigint',
    ),
    (b'{"y":' * 60 + b"1" + b"}" * 60, "is nested deeper than 50 levels"),
    (b'{"y":' * 100_000 + b"1" + b"}" * 100_000, "is nested deeper than 50 levels"),
]


def test_every_line_gives_one_row_and_bad_ones_say_why(spark: SparkSession, tmp_path: Path) -> None:
    blank = b"\n\r\n \t \n"
    file = write(tmp_path, "a b%20+ä.jsonl", b"\xef\xbb\xbf" + blank.join(line for line, _ in LINES))
    rows = lines_of(spark, tmp_path)
    assert len(rows) == len(LINES)
    for row, (line, why) in zip(rows, LINES, strict=True):
        assert row[FAULT] == (None if why is None else f"{why} ({file})")
        assert row.malformed == (None if why is None else line.decode(errors="replace"))
        if why is not None:
            assert (row.source, row.sequence, row.x) == (None, None, None), "all or nothing of a line"
    assert [row.source for row in rows[:7]] == ["a", "a", None, "b", "a", "}{", "} {"]
    assert [row.sequence for row in rows[:3]] == [1, 1, None]


def test_compressed_lines_are_read_the_same(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path, "x.jsonl.gz", gzip.compress(b"\xef\xbb\xbf" + GOOD + b"\n[]\n\n" + GOOD))
    assert [row.malformed for row in lines_of(spark, tmp_path)] == [None, "[]", None]


def test_a_row_of_50_megabytes_is_read(spark: SparkSession, tmp_path: Path) -> None:
    large = {"source": "a", "sequence": 2, "data": "x" * 50_000_000}
    write(tmp_path, "x.jsonl", b"\n".join([GOOD, json.dumps(large).encode(), GOOD]))
    schema = schema_of(spark, tmp_path / "in", "jsonl")
    assert "data" in schema.names
    frame = arriving(spark, tmp_path / "in", "jsonl", schema)
    sizes = frame.mapInArrow(
        lambda batches: (batch.select(["sequence", "data", FAULT]) for batch in batches),
        f"sequence long, data string, {FAULT} string",
    ).select("sequence", F.length("data").alias("size"), FAULT)
    assert [tuple(row) for row in streamed(sizes, tmp_path / "checkpoint")] == [
        (1, None, None),
        (2, 50_000_000, None),
        (1, None, None),
    ]


def test_a_column_called_malformed_is_kept_under_another_name(spark: SparkSession, tmp_path: Path) -> None:
    odd = {"malformed": 7, "source": "a", "__causet_fault": "x", "a.b": 1, "c`d": 2, "input_malformed": 3}
    write(tmp_path, "x.jsonl", json.dumps(odd).encode() + b"\n[]\n")
    schema = schema_of(spark, tmp_path / "in", "jsonl")
    schema = schema_from(schema_text(schema))  # as it is kept in a checkpoint
    frame = arriving(spark, tmp_path / "in", "jsonl", schema)
    assert columns_of(frame).names == schema.names, "the same when the query goes on"
    first, second = streamed(frame, tmp_path / "checkpoint")
    assert first.asDict() == {
        "input_input_malformed": 7,
        "input_malformed": 3,
        "input___causet_fault": "x",
        "source": "a",
        "a.b": 1,
        "c`d": 2,
        "causalversion": None,
        "causalprocess": None,
        "causaldomain": None,
        "causalgroups": None,
        "causalnumbers": None,
        "causalpriority": None,
        "causalscope": None,
        "causalbypass": None,
        "causalcut": None,
        "malformed": None,
        FAULT: None,
    }
    assert second.malformed == "[]"
    assert second.input_input_malformed is None


def test_folders_with_columns_in_their_names(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path, "day=1/x.jsonl", GOOD)
    write(tmp_path, "day=2/x.jsonl", b"[]")
    schema = schema_of(spark, tmp_path / "in", "jsonl")
    rows = lines_of(spark, tmp_path, schema)
    assert sorted((row.day, row.source, row.malformed) for row in rows) == [(1, "a", None), (2, None, "[]")]


def test_lines_are_read_the_same_without_a_stream(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path, "x.jsonl", GOOD + b"\n[]\n" + GOOD)
    rows = still(spark, tmp_path / "in", "jsonl").collect()
    assert [row.malformed for row in rows] == [None, "[]", None]
    assert FAULT not in rows[0]


# ---------------------------------------------------------------- the first start


@pytest.mark.parametrize("bad", ["1.5", "true", '{"a": 1}', "[1]", '"x"', "99999999999999999999"])
def test_one_bad_number_does_not_decide_about_a_column(spark: SparkSession, tmp_path: Path, bad: str) -> None:
    names = ("sequence", "rc", "r")
    lines = [", ".join(f'"{name}": {each}' for name in names) for each in ("7", bad)]
    write(tmp_path, "x.jsonl", "".join(f"{{{line}}}\n" for line in lines).encode())
    check_messages(tmp_path / "in")
    schema = schema_of(spark, tmp_path / "in", "jsonl")
    assert all(isinstance(schema[name].dataType, T.StringType) for name in names)
    numbers = [F.expr(f"try_cast({name} as bigint)").alias(f"number_{name}") for name in names]
    frame = arriving(spark, tmp_path / "in", "jsonl", schema).select(*numbers, FAULT)
    found = [tuple(row) for row in streamed(frame, tmp_path / "checkpoint")]
    assert found == [(7, 7, 7, None), (None, None, None, None)]


def test_texts_are_texts_whatever_stands_there(spark: SparkSession, tmp_path: Path) -> None:
    names = ("source", "causaldeps", "causaltime", "causaldomain", "id", "type")
    write(tmp_path, "x.jsonl", b"\n".join(f'{{"{name}": {{"a": 1}}}}'.encode() for name in names))
    schema = schema_of(spark, tmp_path / "in", "jsonl")
    assert {schema[name].dataType for name in names} == {T.StringType()}


def test_bad_lines_and_damaged_files_are_no_reason_to_refuse_the_others(
    spark: SparkSession, tmp_path: Path
) -> None:
    write(tmp_path, "a.jsonl", b"\n".join(line for line, _ in LINES if line != GOOD))
    write(tmp_path, "b.jsonl.gz", gzip.compress(b'{"early": 1}\n' * 100_000)[:-500])
    write(tmp_path, "c.jsonl.gz", b"not compressed")
    write(tmp_path, "d.jsonl", GOOD)
    check_messages(tmp_path / "in")
    found = schema_of(spark, tmp_path / "in", "jsonl")
    assert {"source", "sequence", "x", "malformed"} <= set(found.names)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("x.jsonl", b"\n\n[]\n{", r"x\.jsonl, line 3 is not one"),
        ("x.jsonl", b"\n", r"x\.jsonl has no line that can be read"),
        ("x.jsonl.gz", b"not compressed", r"x\.jsonl\.gz has no line that can be read"),
        ("x.jsonl.gz", gzip.compress(b"\n5\n", mtime=0), r"x\.jsonl\.gz, line 2 is not one"),
    ],
)
def test_where_nothing_can_be_read_file_and_line_are_named(
    tmp_path: Path, name: str, content: bytes, said: str
) -> None:
    write(tmp_path, name, content)
    with pytest.raises(BadInput, match=f"a message is a line with a JSON object, and .*{said}"):
        check_messages(tmp_path / "in")


# ---------------------------------------------------------------- damaged files

ROWS = 5000
TABLE = pa.table(
    {
        "source": [f"source {number * 7919 % 1000}" for number in range(ROWS)],
        "sequence": pa.array(range(ROWS)),
        "subject": [f"subject {number * 104729 % 99991}" for number in range(ROWS)],
    }
)
PARQUET = columns("source string, sequence bigint, subject string")
NAMES = ["a b%20ä[x].parquet", "good#{1}.parquet"]


def whole(folder: Path, name: str, table: pa.Table = TABLE) -> Path:
    file = folder / "in" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, file, row_group_size=1000)
    return file


def flipped(file: Path) -> None:
    """Other bytes in a data page of the last group of rows; the footer is as it was."""
    at = pq.ParquetFile(file).metadata.row_group(4).column(2).data_page_offset
    content = bytearray(file.read_bytes())
    for place in range(at, at + 60):
        content[place] ^= 0xFF
    file.write_bytes(bytes(content))


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-100])


def emptied(file: Path) -> None:
    file.write_bytes(b"")


def of_text(file: Path) -> None:
    file.write_text("this is text\n" * 10)


def without_footer(file: Path) -> None:
    file.write_bytes(b"PAR1 this is not one PAR1")


def changed(column: pa.Array) -> Any:
    def change(file: Path) -> None:
        pq.write_table(TABLE.set_column(1, "sequence", column), file)

    return change


DAMAGES = {
    "flipped": (flipped, ""),
    "cut": (cut, "Parquet"),
    "empty": (emptied, "Parquet file size is 0 bytes"),
    "text": (of_text, "Parquet magic bytes not found"),
    "without footer": (without_footer, ""),
    "text column": (changed(pa.array(["x"] * ROWS)), 'column "sequence" is string, and was int64 before'),
    "double column": (changed(pa.array([1.5] * ROWS)), 'column "sequence" is double, and was int64 before'),
    "struct column": (changed(pa.array([{"a": 1}] * ROWS)), 'column "sequence" is struct<a: int64>, and was'),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_found_and_left_out_as_a_whole(
    spark: SparkSession, tmp_path: Path, damage: str
) -> None:
    bad, good = (whole(tmp_path, name) for name in NAMES)
    change, why = DAMAGES[damage]
    change(bad)
    found = examine([bad, good, tmp_path / "in/gone.parquet"], "parquet", PARQUET)
    assert list(found) == [str(bad)]
    assert why in found[str(bad)]
    assert "\n" not in found[str(bad)]
    rows = arriving(spark, tmp_path / "in", "parquet", PARQUET, without=found)
    assert sorted(row.sequence for row in streamed(rows, tmp_path / "c1")) == list(range(ROWS))
    if damage not in ("flipped", "text column"):
        return  # from here on only the name of the file counts
    files = arriving_files(spark, tmp_path / "in", PARQUET, without=found).files
    assert files is not None
    assert [row.path for row in streamed(files.select("path"), tmp_path / "c2")] == [f"file:{good}"]
    bad.unlink()
    rows = arriving(spark, tmp_path / "in", "parquet", PARQUET, without=found)
    assert len(streamed(rows, tmp_path / "c3")) == ROWS


def test_a_damaged_file_that_is_taken_away_is_not_demanded_back(spark: SparkSession, tmp_path: Path) -> None:
    """It is in the plan of a batch that is run again."""
    bad, good = (whole(tmp_path, name) for name in NAMES)
    flipped(bad)
    failing = arriving(spark, tmp_path / "in", "parquet", PARQUET)
    with pytest.raises(Exception, match="STREAM_FAILED"):
        streamed(failing, tmp_path / "checkpoint")
    found = examine([bad, good], "parquet", PARQUET)
    bad.unlink()
    rows = arriving(spark, tmp_path / "in", "parquet", PARQUET, without=found)
    assert len(streamed(rows, tmp_path / "checkpoint")) == ROWS
    assert streamed(arriving(spark, tmp_path / "in", "parquet", PARQUET), tmp_path / "checkpoint") == []


def test_every_name_of_a_damaged_file_is_known_again(spark: SparkSession, tmp_path: Path) -> None:
    names = ["a", "a b", "ä", "%20", "a%20b", "[x]", "{a}", "#", "?", "+", "^", "`", "\\", "|", '"', "<>"]
    names += ["😀", "a\u00a0b", "e\u0301", "~!$&'()*,;=@", "a\tb", "\x7f", "\u2028", "deep/er"]
    files = [write(tmp_path, f"{name}.jsonl", GOOD) for name in names]
    for bad in (files[::2], files[1::2]):
        rows = arriving(spark, tmp_path / "in", "jsonl", COLUMNS, without=[str(file) for file in bad])
        checkpoint = tmp_path / f"checkpoint {len(bad)} {bad[0].name}"
        left = streamed(rows.select("sequence"), checkpoint)
        assert len(left) == len(files) - len(bad)
    assert len(lines_of(spark, tmp_path)) == len(files)


def test_a_compressed_file_that_is_cut_gives_none_of_its_lines(spark: SparkSession, tmp_path: Path) -> None:
    lines = b"".join(b'{"sequence":%d,"source":"s%d"}\n' % (number, number * 7919) for number in range(9999))
    bad = write(tmp_path, "cut.jsonl.gz", gzip.compress(lines)[:-2000])
    good = write(tmp_path, "good.jsonl.gz", gzip.compress(GOOD + b"\n") + gzip.compress(GOOD + b"\n"))
    plain = write(tmp_path, "plain.jsonl", b"\x00 no JSON")
    found = examine([bad, good, plain], "jsonl", COLUMNS)
    assert list(found) == [str(bad)]
    assert "the compressed data is damaged" in found[str(bad)]
    assert sorted(map(str, (row.sequence for row in lines_of(spark, tmp_path, without=found)))) == [
        "1",
        "1",
        "None",
    ]


def test_what_cannot_be_opened_is_not_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [whole(tmp_path, "x.parquet"), write(tmp_path, "x.jsonl.gz", b"no")]

    def denied(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(Path, "open", denied)
    monkeypatch.setattr("gzip.open", denied)
    assert examine(files[:1], "parquet", PARQUET) == {}
    assert examine(files[1:], "jsonl", COLUMNS) == {}
    assert examine([tmp_path / "gone.jsonl.gz"], "jsonl", COLUMNS) == {}


def test_texts_that_are_not_utf_8_are_damage(tmp_path: Path) -> None:
    file = whole(tmp_path, "x.parquet", pa.table({"source": pa.array([b"\xff", b"a"]).view(pa.string())}))
    assert "UTF8" in examine([file], "parquet", PARQUET)[str(file)].replace("-", "").upper()


def test_a_file_is_decoded_a_part_at_a_time(tmp_path: Path) -> None:
    texts = pa.table({"source": [str(number) * 500_000 for number in range(10)] * 12})
    file = whole(tmp_path, "x.parquet", texts)
    schema = pa.schema([("source", pa.string())])
    assert max(rows.nbytes for rows in rows_of(file, schema)) < 20 << 20
    assert examine([file], "parquet", PARQUET) == {}


def test_what_only_spark_cannot_read_is_damaged_where_spark_reads(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Spark has no codec for it; workers have."""
    bad, good = tmp_path / "bad.parquet", tmp_path / "good.parquet"
    pq.write_table(TABLE, bad, compression="brotli")
    pq.write_table(TABLE, good)
    assert examine([bad, good], "parquet", PARQUET) == {}
    found = examine([bad, good, tmp_path / "gone.parquet"], "parquet", PARQUET, spark)
    assert list(found) == [str(bad)]


def test_columns_of_other_kinds_are_left_to_spark(spark: SparkSession, tmp_path: Path) -> None:
    made = spark.sql("select 'a' as source, 1L as sequence, interval '1' day as span")
    made.coalesce(1).write.parquet(f"file:{tmp_path}/in")
    (file,) = (tmp_path / "in").glob("*.parquet")
    schema = schema_of(spark, tmp_path / "in", "parquet")
    assert examine([file], "parquet", schema, spark) == {}
    cut(file)
    assert list(examine([file], "parquet", schema, spark)) == [str(file)]


@pytest.mark.parametrize("narrow", [True, False])
def test_a_column_may_get_narrower_and_not_wider(tmp_path: Path, narrow: bool) -> None:
    kinds = [("sequence", pa.int32(), "bigint"), ("sequence", pa.float32(), "double")]
    for name, kind, wider in kinds:
        there, wanted = (kind, wider) if narrow else (pa.int64() if kind == pa.int32() else pa.float64(), "")
        wanted = wanted or ("int" if kind == pa.int32() else "float")
        file = whole(tmp_path, "x.parquet", pa.table({name: pa.array([1, 2], there)}))
        found = examine([file], "parquet", columns(f"{name} {wanted}"))
        assert bool(found) != narrow


def test_rows_about_unreadable_files() -> None:
    out = columns(
        "source string, at timestamp, deps map<string,bigint>, receiver string, index bigint, status string, "
        "waited double, missing map<string,bigint>, problem string"
    )
    found = from_blob(unreadable_rows(out, {"/in/a\x1b.parquet": "it is cut", "/in/b": "no"})).to_pylist()
    assert [row["problem"] for row in found] == [
        "/in/a\\x1b.parquet cannot be read: it is cut",
        "/in/b cannot be read: no",
    ]
    assert {row["status"] for row in found} == {"diverted"}
    assert [(row["waited"], row["missing"]) for row in found] == [(0.0, []), (0.0, [])]
    others = ("source", "at", "deps", "receiver", "index")
    assert all(row[name] is None for row in found for name in others)
    merged = columns("source string, status string, problem string")
    assert from_blob(unreadable_rows(merged, {"/x": "y"})).column_names == merged.names


# ---------------------------------------------------------------- the first start, with Parquet


def test_columns_are_those_of_the_files_that_are_whole(spark: SparkSession, tmp_path: Path) -> None:
    for damage in ("cut", "empty", "text", "without footer", "flipped"):
        DAMAGES[damage][0](whole(tmp_path, f"{damage}.parquet"))
    whole(tmp_path, "good.parquet", TABLE.append_column("more", pa.array([True] * ROWS)))
    check_messages(tmp_path / "in")
    found = schema_of(spark, tmp_path / "in", "parquet")
    assert set(found.names) == {*PARQUET.names, "more"}


@pytest.mark.parametrize("names", [("a", "b"), ("b", "a")])
def test_of_two_types_of_a_known_column_the_one_that_fits_counts(
    spark: SparkSession, tmp_path: Path, names: tuple[str, str]
) -> None:
    whole(tmp_path, f"{names[0]}.parquet")
    changed(pa.array([1.5] * ROWS))(tmp_path / "in" / f"{names[1]}.parquet")
    without_footer(tmp_path / "in/0.parquet")
    found = schema_of(spark, tmp_path / "in", "parquet")
    assert {field.name: field.dataType for field in found.fields} == {
        field.name: field.dataType for field in PARQUET.fields
    }


def test_of_two_types_of_another_column_the_first_counts(spark: SparkSession, tmp_path: Path) -> None:
    for name, column in (("a", ["x"]), ("b", [1])):
        whole(tmp_path, f"day=1/{name}.parquet", pa.table({"source": ["s"], "x": column}))
    found = schema_of(spark, tmp_path / "in", "parquet")
    assert found["x"].dataType == T.StringType()
    assert found.names == ["source", "x", "day"]


@pytest.mark.parametrize("damage", ["cut", "empty", "text", "without footer"])
def test_if_all_files_are_damaged_the_first_is_named(
    spark: SparkSession, tmp_path: Path, damage: str
) -> None:
    for name in ("2.parquet", "1.parquet"):
        DAMAGES[damage][0](whole(tmp_path, name))
    with pytest.raises(BadInput, match=r"in/1\.parquet "):
        check_messages(tmp_path / "in")
        schema_of(spark, tmp_path / "in", "parquet")


# ---------------------------------------------------------------- which files there are


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_hidden_files_and_folders_are_left_out_by_us_and_by_spark(
    spark: SparkSession, tmp_path: Path, form: str
) -> None:
    hidden = ["_checkpoint/x", ".hidden/x", "_x", ".x", "below/_new/x", "below/_new/deep/x"]
    for name in (*hidden, "x", "below/x", "below/deep/x"):
        if form == "jsonl":
            write(tmp_path, f"{name}.jsonl", GOOD)
        else:
            whole(tmp_path, f"{name}.parquet", pa.table({"source": [name]}))
    expected = [tmp_path / f"in/{name}.{form}" for name in ("below/deep/x", "below/x", "x")]
    assert [file for _, file in inputs(tmp_path / "in")] == expected
    rows = arriving(spark, tmp_path / "in", form, COLUMNS if form == "jsonl" else PARQUET)
    assert len(streamed(rows, tmp_path / "checkpoint")) == 3


def test_a_folder_with_a_column_in_its_name_is_not_hidden(spark: SparkSession, tmp_path: Path) -> None:
    whole(tmp_path, "_day=1/x.parquet")
    assert has_columns_in_names(tmp_path / "in")
    schema = schema_of(spark, tmp_path / "in", "parquet")
    rows = streamed(arriving(spark, tmp_path / "in", "parquet", schema), tmp_path / "checkpoint")
    assert {row["_day"] for row in rows} == {1}

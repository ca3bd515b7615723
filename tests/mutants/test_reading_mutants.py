"""Each rule of reading bad lines and damaged files, dropped or weakened: a check that passes without the
change must show it. What is expected is written down here, and was not computed by the code."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from causet.errors import BadInput
from tests.helpers.mutating import Change, modules

NAMES = (
    "streams.parquet",
    "streams.json_lines",
    "streams.file_source",
    "streams.verdicts",
)
Check = Callable[[dict[str, Any], Path, SparkSession | None], None]
COLUMNS = T.StructType([T.StructField("a", T.StringType()), T.StructField("n", T.IntegerType())])
OUT = T.StructType(
    [
        T.StructField("status", T.StringType()),
        T.StructField("waited", T.DoubleType()),
        T.StructField("missing", T.MapType(T.StringType(), T.LongType())),
        T.StructField("problem", T.StringType()),
    ]
)


def refusal(made: dict[str, Any], folder: Path) -> str | None:
    try:
        made["streams.file_source"].check_messages(folder)
    except BadInput as error:
        return str(error).replace(str(folder), "")
    return None


@cache
def many_lines() -> bytes:
    """More than is read of a file at a time, compressed."""
    return gzip.compress(b"".join(b"%d\n" % (number * 7919) for number in range(2_000_000)))


def check_verdicts(made: dict[str, Any], folder: Path, spark: SparkSession | None) -> None:
    home = Path(mkdtemp(dir=folder))
    (home / "cut.gz").write_bytes(many_lines()[:-20])
    (home / "whole.gz").write_bytes(many_lines())
    (home / "text.gz").write_bytes(b"text")
    (home / "bad.jsonl").write_bytes(b"\x00")
    names = ("cut.gz", "whole.gz", "text.gz", "bad.jsonl", "gone.gz")
    examine = made["streams.verdicts"].examine
    found = examine([home / name for name in names], "jsonl", COLUMNS)
    assert list(found) == [str(home / "cut.gz"), str(home / "text.gz")]

    tables = {
        "fine": pa.table({"a": ["x"], "n": pa.array([1], pa.int16()), "more": [1.5]}),
        "wide": pa.table({"a": ["x"], "n": pa.array([1], pa.int64())}),
        "other": pa.table({"a": ["x"], "n": pa.array([True])}),
        "not UTF-8": pa.table({"a": pa.array([b"\xff"]).view(pa.string())}),
        "twice": pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"])], names=["a", "a"]),
    }
    for name, table in tables.items():
        pq.write_table(table, home / name)
    (home / "empty").touch()
    found = examine([home / name for name in (*tables, "empty", "gone")], "parquet", COLUMNS)
    assert list(found) == [str(home / name) for name in ("wide", "other", "not UTF-8", "twice", "empty")]
    assert found[str(home / "wide")] == 'column "n" is int64, and was int32 before'

    blob = made["streams.verdicts"].unreadable_rows(OUT, {"/in/\x1b": "why"})
    (row,) = pa.ipc.open_stream(blob).read_all().to_pylist()
    problem = "/in/\\x1b cannot be read: why"
    assert row == {"status": "diverted", "waited": 0.0, "missing": [], "problem": problem}


def check_files(made: dict[str, Any], folder: Path, spark: SparkSession | None) -> None:
    home = Path(mkdtemp(dir=folder))
    for name in ("_x/a", ".x/a", "_a", ".a", "x/_x/a", "_day=1/a", "x/a", "a"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / f"{name}.jsonl").write_text("{}")
    arrivals = made["streams.file_source"]
    found = [str(file.relative_to(home)) for _, file in arrivals.inputs(home)]
    assert sorted(found) == ["_day=1/a.jsonl", "a.jsonl", "x/a.jsonl"]

    tables = Path(mkdtemp(dir=folder))
    for name in ("b", "a"):
        (tables / f"{name}.parquet").write_bytes(b"PAR1")
    assert refusal(made, tables) == "/a.parquet is not a Parquet file, or only a part of one"
    pq.write_table(pa.table({"a": ["x"]}), tables / "c.parquet")
    assert refusal(made, tables) is None

    lines = Path(mkdtemp(dir=folder))
    (lines / "a.jsonl").write_bytes(b"\xef\xbb\xbf\n[]\n{\n")
    (lines / "b.jsonl.gz").write_bytes(b"no")
    assert (refusal(made, lines) or "").endswith("a line with a JSON object, and /a.jsonl, line 2 is not one")
    with gzip.open(lines / "b.jsonl.gz", "w") as stream:
        stream.write(b"\xef\xbb\xbf{}\n")
    assert refusal(made, lines) is None
    (lines / "b.jsonl.gz").unlink()
    (lines / "a.jsonl").write_text("no\n" * 1000 + "{}\n")
    assert refusal(made, lines) is None

    assert arrivals._encoded("/a b%[x]ä+#\u00a0") == "/a%20b%25%5Bx%5Dä+%23%C2%A0"


WANTED = T.StructType(
    [
        T.StructField("a", T.StringType()),
        T.StructField("n", T.LongType()),
        T.StructField("input_malformed", T.StringType(), metadata={"causet.key": "malformed"}),
        T.StructField("malformed", T.StringType()),
    ]
)
HALF = "has half of a surrogate pair, which is not text"
DEEP = b'{"b":' * 60 + b"1" + b"}" * 60
LINES: list[tuple[bytes, str | None, str | None]] = [
    (b'{"a":"x","n":1}', "x", None),
    (b'{"a":"named","causalprocess":"p"}', "named", None),
    (b'{"a":"}{","malformed":"x"}\r', "}{", None),
    (b"[]", None, "is a JSON array, not an object"),
    (b"7", None, "is a JSON value, not an object"),
    (b'{"a":"x"}{"a":"y"}', None, "is not JSON"),
    (b'{"a":"x"} {"a":"y"}', None, "is not JSON"),
    (b'{"a":"x"},{"a":"y"}', None, "has more than one JSON value"),
    (b'{"a":"x"} more', None, "is not JSON"),
    (b'{"a":"\xff"}', None, "is not UTF-8"),
    (b'{"a":"x","n":"y"}', None, 'field "n": y does not fit the column\'s type bigint'),
    (DEEP, None, "is nested deeper than 50 levels"),
    (rb'{"a":"\ud83d\ude00"}', "\U0001f600", None),
    (rb'{"a":"\ud83d\n\ude00"}', None, HALF),
    (rb'{"a":"\\ud83d\ude00"}', None, HALF),
    (rb'{"a":"\\ud83d"}', r"\ud83d", None),
]


def check_lines(made: dict[str, Any], folder: Path, spark: SparkSession | None) -> None:
    assert spark is not None
    file = Path(mkdtemp(dir=folder)) / "a+b%20.txt"
    file.write_bytes(b"\n \t\r\n".join(line for line, _, _ in LINES))
    text = spark.read.option("lineSep", "\n").text(f"file:{file}").coalesce(1)
    rows = made["streams.json_lines"].parsed(text, WANTED).collect()
    for row, (line, a, why) in zip(rows, LINES, strict=True):
        assert (row.a, row.input_malformed) == (a, "x" if a == "}{" else None)
        assert row["__causet_fault"] == (None if why is None else f"{why} ({file})")
        assert row.malformed == (None if why is None else line.decode(errors="replace"))
        assert row.causalprocess == ("p" if a == "named" else None) and row.causalversion is None
    few = spark.createDataFrame([(line.decode(),) for line in KINDS], "value string")
    found = made["streams.json_lines"].columns_in(few)
    assert {field.name: field.dataType.simpleString() for field in found.fields} == {
        "sequence": "string",
        "source": "string",
        "x": "double",
        "twice": "string",
        "input_malformed": "string",
        "causalversion": "string",
        "causalprocess": "string",
        "causaldomain": "string",
        "causalgroups": "string",
        "causalnumbers": "string",
        "causalcut": "string",
        "causalpriority": "string",
        "causalscope": "string",
        "causalbypass": "string",
        "malformed": "string",
    }


KINDS = [
    b'{"sequence":1,"x":1.5,"source":{"a":1}}',
    b'{"sequence":2.5}',
    b'[{"inside":1}]',
    b'{"twice":1,"twice":"x"}',
    b'{"malformed":"x"}',
]

CHECKS: dict[str, Check] = {"verdicts": check_verdicts, "files": check_files, "lines": check_lines}
MUTANTS = [
    pytest.param(check, Change(f"streams.{module}", line, becomes), id=rule.replace(" ", "-"))
    for check, module, line, becomes, rule in [
        (
            "verdicts",
            "verdicts",
            "why_unreadable(error) if error.errno is None else None",
            "why_unreadable(error)",
            "gone is not bad",
        ),
        ("verdicts", "verdicts", "while stream.read(CHUNK)", "if stream.read(CHUNK)", "read to the end"),
        ("verdicts", "verdicts", "rows.validate(full=True)", "pass", "texts are looked at"),
        ("verdicts", "verdicts", "(pa.ArrowException, KeyError)", "pa.ArrowException", "no column twice"),
        ("verdicts", "verdicts", "(EOFError, zlib.error)", "zlib.error", "a cut file is damaged"),
        ("verdicts", "verdicts", "[[]] *", "[None] *", "missing is an empty map"),
        (
            "verdicts",
            "file_source",
            "printable(part) if not part.isprintable() else part",
            "part",
            "names are fit for a terminal",
        ),
        ("verdicts", "parquet", " or _width(found) > _width(wanted)", "", "no column gets wider"),
        ("verdicts", "parquet", "_kind(found) != _kind(wanted) or ", "", "no column changes its kind"),
        ("files", "file_source", 'name.startswith(".") or ', "", "a dot hides"),
        ("files", "file_source", ' and "=" not in name', "", "a column in a name is not hidden"),
        (
            "files",
            "file_source",
            "folders[:] = [each for each in folders if not _is_hidden(each)]",
            "pass",
            "folders hide",
        ),
        (
            "files",
            "file_source",
            "if tables and len(faults) == len(tables):",
            "if faults:",
            "one damaged table is no refusal",
        ),
        ("files", "file_source", "if seen >= LOOKED_AT:", "if False:", "what was not seen is not refused"),
        (
            "files",
            "file_source",
            "line.removeprefix(MARK).strip()",
            "line.strip()",
            "a byte order mark is no text",
        ),
        (
            "files",
            "file_source",
            "zlib.error, gzip.BadGzipFile",
            "zlib.error",
            "a damaged file is no refusal",
        ),
        (
            "files",
            "file_source",
            "if isinstance(record, dict):",
            "if record is not None:",
            "a message is an object",
        ),
        ("files", "file_source", '("Cc", "Zs", "Zl", "Zp")', '("Cc",)', "blanks are encoded"),
        ("lines", "json_lines", '_without_blanks() != ""', 'F.col(VALUE) != ""', "blank lines are no rows"),
        ("lines", "json_lines", "F.col(_LINE)[_RAW].isNull() & ", "", "all or nothing of a line"),
        (
            "lines",
            "json_lines",
            "    schema = with_identity(schema)  #",
            "    #",
            "identities always count",
        ),
        ("lines", "json_lines", " & F.is_valid_utf8(VALUE) & is_one", " & is_one", "no byte is replaced"),
        ("lines", "json_lines", " & is_one_value(F.col(VALUE))", "", "nothing stands behind an object"),
        (
            "lines",
            "json_lines",
            'flat | F.coalesce(F.size(_values(F.concat(value, F.lit(",0")))) == 2, F.lit(False))',
            "F.lit(True)",
            "one object a line",
        ),
        (
            "lines",
            "json_lines",
            "    fine &= ~_has_half_a_pair(F.col(VALUE))\n",
            "",
            "half of a pair is not text",
        ),
        (
            "lines",
            "json_lines",
            'F.regexp_replace(escapes, pairs, " ")',
            "escapes",
            "a whole pair is text",
        ),
        (
            "lines",
            "json_lines",
            'F.regexp_replace(value, r"\\\\[^u]", " ")',
            "value",
            "an escaped backslash begins no pair",
        ),
        (
            "lines",
            "json_lines",
            "shallow.isNotNull() & any_depth.isNull()",
            "F.lit(False)",
            "depth has its sentence",
        ),
        ("lines", "json_lines", 'F.lit("+"), F.lit("%2B")', 'F.lit("+"), F.lit("+")', "a plus is a plus"),
        (
            "lines",
            "json_lines",
            ".get(KEY, field.name)",
            ".get(None, field.name)",
            "a renamed column has its values",
        ),
        (
            "lines",
            "json_lines",
            "if not same or not fits(field)",
            "if not same",
            "a bad value does not decide",
        ),
        (
            "lines",
            "json_lines",
            "if not same or not fits(field)",
            "if not fits(field)",
            "a key that is there twice",
        ),
        ("lines", "json_lines", '_without_blanks().startswith("{") & ', "", "arrays have no columns"),
    ]
]


def survives(check: str, change: Change | None, folder: Path, spark: SparkSession | None) -> bool:
    with modules(change, NAMES) as made:
        if change is None:
            CHECKS[check](made, folder, spark)
            return True
        try:
            CHECKS[check](made, folder, spark)
        except Exception:
            return False
    return True


@pytest.mark.parametrize("check", list(CHECKS))
def test_unchanged_every_check_passes(check: str, tmp_path: Path, spark: SparkSession) -> None:
    assert survives(check, None, tmp_path, spark)


@pytest.mark.parametrize(("check", "change"), MUTANTS)
def test_a_broken_rule_is_found(check: str, change: Change, tmp_path: Path, spark: SparkSession) -> None:
    assert not survives(check, change, tmp_path, spark), "survived"

"""Parquet files that get columns later: what these say of a message is read or refused, never lost.

Where the sequence is text, or columns stand in the names of folders, Spark itself reads the files; else
workers do.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.helpers.commands import LOCAL, causet, refused, rows_in

pytestmark = pytest.mark.jvm
SMALL = ("--missing", "wait", "--buckets", "2", "--json", *LOCAL)
BY_NUMBER = pa.map_(pa.string(), pa.int64())
GROUPS = {"causalgroups": '["g"]', "causalnumbers": '{"g":2}', "causaldeps": '{"g":{"b":1}}'}
LATE: dict[str, tuple[dict[str, Any], dict[str, pa.DataType]]] = {
    "causalgroups": (GROUPS, {}),
    "numbers": ({"numbers": [("g", 2)]}, {"numbers": BY_NUMBER}),
    "deps": ({"deps": [("b", 1)]}, {"deps": BY_NUMBER}),
    "process": ({"process": "a~1"}, {}),
}
"""For each column with what else it comes, and the types."""
READERS: dict[str, tuple[str, Any]] = {"workers": ("", 2), "text": ("", "2"), "folders": ("day=1/", 2)}
"""Who reads, by the name of the folder and a sequence."""


def write(folder: Path, name: str, row: dict[str, Any], types: dict[str, pa.DataType]) -> Path:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    values = {key: pa.array([value], types.get(key)) for key, value in row.items()}
    pq.write_table(pa.table(values), file)
    return file


@pytest.mark.parametrize("reader", ["workers", "folders", pytest.param("text", marks=pytest.mark.soak)])
def test_a_file_with_columns_that_none_had_is_diverted_by_name(tmp_path: Path, reader: str) -> None:
    """All but the first row and the last file; without --strict the others go on."""
    inside, two = READERS[reader]
    row = {"source": "a", "sequence": type(two)(1), "causaldeps": "{}"}
    write(tmp_path / "in", f"{inside}0.parquet", row, {})
    command = ("deliver", tmp_path / "in", tmp_path / "out", *SMALL)
    assert json.loads(causet(*command))["delivered"] == 1
    files = {
        column: write(tmp_path / "in", f"{inside}{column}.parquet", {**row, "sequence": two, **more}, types)
        for column, (more, types) in LATE.items()
    }
    write(tmp_path / "in", f"{inside}last.parquet", {**row, "sequence": two}, {})
    assert json.loads(causet(*command))["delivered"] == 1
    assert sorted(aside["problem"] for aside in rows_in(tmp_path / "out-diverted")) == sorted(
        f'{file} cannot be read: it has a column "{column}", and the files had none when the query began: '
        "begin with a new checkpoint"
        for column, file in files.items()
    )


def test_with_strict_such_a_file_ends_the_query(tmp_path: Path) -> None:
    row = {"source": "a", "sequence": "1", "causaldeps": "{}"}
    write(tmp_path / "in", "0.parquet", row, {})
    command = ("deliver", tmp_path / "in", tmp_path / "out", *SMALL)
    assert json.loads(causet(*command))["delivered"] == 1
    file = write(tmp_path / "in", "1.parquet", {**row, "sequence": "2", **GROUPS}, {})
    said = refused(*command, "--strict")
    assert f'causet: {file} cannot be read: it has a column "causalgroups", ' in said
    assert len(rows_in(tmp_path / "out")) == 1


@pytest.mark.parametrize("reader", ["workers", "text", pytest.param("folders", marks=pytest.mark.soak)])
def test_columns_that_a_later_file_has_when_the_query_begins_are_read(tmp_path: Path, reader: str) -> None:
    """The second file's message follows one in its group that has not come, and one of its own process."""
    inside, two = READERS[reader]
    row = {"source": "a", "sequence": type(two)(1), "causaldeps": "{}"}
    write(tmp_path / "in", f"{inside}0.parquet", row, {})
    write(tmp_path / "in", f"{inside}1.parquet", {**row, "sequence": two, **GROUPS}, {})
    found = json.loads(causet("deliver", tmp_path / "in", tmp_path / "out", *SMALL))
    assert (found["delivered"], found["held"]) == (1, 1)
    why = json.loads(causet("explain", "--checkpoint", tmp_path / "out/_checkpoint", "--json", *LOCAL))
    [held] = why["messages"]
    assert (held["message"], held["group"]) == ("a:2", "g")
    assert {(each["message"], each["group"]) for each in held["waits_for"]} == {("a:1", "g"), ("b:1", "g")}

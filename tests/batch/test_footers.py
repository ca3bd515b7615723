"""Footers of Parquet files: encodings in one order, and nothing else touched."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from causet.spark.write.footers import ENCODINGS, _Reader, sort_encodings


def footer_of(path: Path) -> tuple[int, bytearray]:
    data = path.read_bytes()
    length = int.from_bytes(data[-8:-4], "little")
    return len(data) - 8 - length, bytearray(data[-8 - length : -8])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "rows.parquet"
    rows = {"text": ["a", "b", "a"], "list": [[1.5], [], None], "flag": [True, None, False], "n": [1, 2, 3]}
    pq.write_table(pa.table(rows), path, row_group_size=2)
    return path


def test_encodings_that_stand_in_any_order_are_sorted_and_the_rows_stay(file: Path) -> None:
    before, metadata = file.read_bytes(), pq.read_metadata(file)
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    listed = [group.column(at).encodings for group in groups for at in range(group.num_columns)]
    begin, footer = footer_of(file)
    spans = list(_Reader(footer).find(ENCODINGS))
    assert [stop - start for start, stop in spans] == [len(each) for each in listed]
    assert max(map(len, listed)) > 1

    answers = set()
    for turned in (False, True):
        for start, stop in spans:
            footer[start:stop] = sorted(footer[start:stop], reverse=turned)
        file.write_bytes(before[:begin] + footer + before[-8:])
        sort_encodings(file)
        answers.add(file.read_bytes())
    assert len(answers) == 1
    assert len(next(iter(answers))) == len(before)
    assert pq.read_table(file).to_pydict()["text"] == ["a", "b", "a"]


@pytest.mark.parametrize(
    "data", [b"", b"PAR1", b"no Parquet at all", b"PAR1" + b"\xff" * 40 + b"\x20\0\0\0PAR1"]
)
def test_a_file_with_another_end_stays_as_it_is(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "other"
    path.write_bytes(data)
    sort_encodings(path)
    assert path.read_bytes() == data

"""Fingerprints of messages: the same for the same values, different for any other value, column or place."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from causet.kernels.streams.fingerprints import fingerprints, payload_columns

ROWS: list[tuple[pa.DataType, list[Any]]] = [
    (pa.string(), ["", "a", "b", "ab", "eight888", "eight8889", "ä" * 50, None]),
    (pa.binary(), [b"", b"\0", b"\0\0", b"\0" * 8, b"\0" * 9, None]),
    (pa.int64(), [0, 1, -1, 2**62, None]),
    (pa.int8(), [0, 1, -1, None]),
    (pa.float64(), [0.0, 1.0, -1.5, 1e300, None]),
    (pa.bool_(), [True, False, None]),
    (pa.timestamp("us", "UTC"), [datetime.fromtimestamp(at, UTC) for at in (0, 1)] + [None]),
    (pa.duration("us"), [timedelta(0), timedelta(1), None]),
    (pa.decimal128(20, 2), [Decimal("1.00"), Decimal("2.00"), None]),
    (pa.list_(pa.int64()), [[], [0], [0, 0], [1, 2], [2, 1], [None], None]),
    (pa.map_(pa.string(), pa.int64()), [[], [("a", 1)], [("a", 2)], [("b", 1)], None]),
    (
        pa.struct([("x", pa.string()), ("y", pa.list_(pa.string()))]),
        [
            {"x": "a", "y": []},
            {"x": "a", "y": ["b"]},
            {"x": "ab", "y": []},
            {"x": None, "y": ["a"]},
            {"x": None, "y": None},
            None,
        ],
    ),
    (pa.dictionary(pa.int8(), pa.string()), ["a", "b", None]),
]


@pytest.mark.parametrize(("kind", "values"), ROWS, ids=[str(kind) for kind, _ in ROWS])
def test_different_values_differ_and_the_same_values_agree_however_they_are_cut(
    kind: pa.DataType, values: list[Any]
) -> None:
    whole = pa.table({"x": pa.array(values, kind)})
    found = fingerprints(whole, ["x"])
    assert len(set(found.tolist())) == len(values)
    twice = pa.concat_tables([whole.slice(2), whole])
    assert fingerprints(twice, ["x"]).tolist() == [*found[2:].tolist(), *found.tolist()]
    assert fingerprints(whole.slice(1, 2), ["x"]).tolist() == found[1:3].tolist()


def test_a_value_counts_for_the_column_it_stands_in() -> None:
    one = pa.table({"id": ["a", "b"], "data": ["b", "a"]})
    assert len(set(fingerprints(one, ["id", "data"]).tolist())) == 2
    joined = pa.table({"id": ["ab", "a"], "data": ["", "b"]})
    assert len(set(fingerprints(joined, ["id", "data"]).tolist())) == 2


def test_a_million_texts_have_a_million_fingerprints() -> None:
    table = pa.table({"x": pa.array(np.arange(1_000_000).astype(str))})
    assert len(np.unique(fingerprints(table, ["x"]))) == 1_000_000


def test_the_width_of_offsets_does_not_matter() -> None:
    texts = ["a", None, "bc"]
    kinds = (pa.string(), pa.large_string(), pa.string_view())
    found = [fingerprints(pa.table({"x": pa.array(texts, kind)}), ["x"]).tolist() for kind in kinds]
    assert found[0] == found[1] == found[2]


def test_what_is_compared_is_the_id_and_the_payload() -> None:
    kafka = [
        "key",
        "value",
        "topic",
        "partition",
        "offset",
        "timestamp",
        "headers",
        "id",
        "source",
        "sequence",
    ]
    assert payload_columns(kafka) == ["value", "id"]
    assert payload_columns(["source", "sequence", "deps", "receiver", "__causet_number"]) == []

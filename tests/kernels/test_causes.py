"""The direct causes of messages out of their columns: packed, as a map, as text, as ids; hostile ones too."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from causet.errors import BadStamp
from causet.kernels.streams.causes import Causes, read_causes, read_parents
from causet.stamp import MOST_SEQUENCE, canonical, deps_of, pack_deps

NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
DEPS = st.dictionaries(NAMES, st.integers(1, MOST_SEQUENCE), max_size=5)


def told(causes: Causes) -> list[dict[str, int] | None]:
    names = causes.name.to_pylist()
    return [
        None
        if causes.bad[row]
        else dict(zip(names[begin:end], causes.number[begin:end].tolist(), strict=True))
        for row, (begin, end) in enumerate(zip(causes.begin[:-1], causes.begin[1:], strict=True))
    ]


@given(st.lists(DEPS, max_size=6))
@settings(deadline=None)
def test_all_forms_of_causes_are_read_the_same(deps: list[dict[str, int]]) -> None:
    packed = pa.array([pack_deps(each) for each in deps], pa.binary())
    maps = pa.array([list(each.items()) for each in deps], pa.map_(pa.string(), pa.int64()))
    texts = pa.array([canonical(each) for each in deps], pa.string())
    loose = pa.array([json.dumps(each, indent=1) for each in deps], pa.string())
    for column in (packed, maps, texts, loose):
        assert told(read_causes(column)) == deps
        assert told(read_causes(column[1:])) == deps[1:]


@given(
    st.lists(
        st.one_of(st.text(), st.sampled_from(['{"a":1}', '{"a":01}', '{"a":1,}', '{"a":1,"b":2}'])),
        max_size=5,
    )
)
@settings(deadline=None)
def test_text_is_read_as_the_envelope_is(texts: list[str]) -> None:
    texts = [text.encode("utf-8", "replace").decode() for text in texts]

    def expected(text: str) -> dict[str, int] | None:
        try:
            return deps_of({"causaldeps": text or "{}"})
        except BadStamp:
            return None

    assert told(read_causes(pa.array(texts, pa.string()))) == [expected(text) for text in texts]


@pytest.mark.parametrize("name", ["", "\\ud800", "a\\udfff", "\\udc00\\ud800"])
def test_a_name_that_is_not_text_is_bad_in_its_own_row_only(name: str) -> None:
    """The JSON text has an escaped half of a surrogate pair, in plain ASCII, or an empty name."""
    odd = f'{{"{name}":1}}'
    with pytest.raises(BadStamp, match="cannot be the name of a process"):
        deps_of({"causaldeps": odd})
    found = told(read_causes(pa.array(['{"a":1}', odd, f'{{"b":2,"{name}":1}}', '{"c":3}'], pa.string())))
    assert found == [{"a": 1}, None, None, {"c": 3}]


def test_an_empty_name_is_bad_in_every_form() -> None:
    """Maps and packed causes have names as texts already, which have no surrogates."""
    packed = pa.array([pack_deps({"a": 1}), pack_deps({"": 1, "b": 1}), pack_deps({"c": 2})], pa.binary())
    maps = pa.array([[("a", 1)], [("", 1), ("b", 1)], [("c", 2)]], pa.map_(pa.string(), pa.int64()))
    for column in (packed, maps):
        assert told(read_causes(column)) == [{"a": 1}, None, {"c": 2}]


@given(st.lists(st.binary(max_size=60), max_size=5))
@settings(deadline=None)
def test_no_bytes_break_the_reader_of_packed_causes(blobs: list[bytes]) -> None:
    fine = pack_deps({"a": 1})
    found = told(read_causes(pa.array([*blobs, fine], pa.binary())))
    assert len(found) == len(blobs) + 1 and found[-1] == {"a": 1}
    for blob, each in zip(blobs, found, strict=False):
        assert each is None or not blob or blob[0] == 1


@pytest.mark.parametrize(
    "blob",
    [
        b"\x02",
        b"\x01\x01",
        b"\x01" + bytes(8) + b"\x01\x00a",
        b"\x01" + (2**60).to_bytes(8, "little") + b"\x01\x00a",
        b"\x01" + (1).to_bytes(8, "little") + b"\xff\xffa",
        b"\x01" + (1).to_bytes(8, "little") + b"\x01\x00\xff",
    ],
    ids=["version", "torn", "zero", "large", "name beyond the end", "no text"],
)
def test_damaged_bytes_are_named(blob: bytes) -> None:
    assert told(read_causes(pa.array([blob, pack_deps({"b": 2})], pa.binary()))) == [None, {"b": 2}]


def test_nothing_is_no_causes_and_parents_are_ids() -> None:
    assert told(read_causes(pa.array([None, "", "{}"], pa.string()))) == [{}, {}, {}]
    assert told(read_parents(pa.array([None, "x", "y"], pa.string()))) == [{}, {"x": 1}, {"y": 1}]
    lists = pa.array([None, [], ["x", "y"], [None]], pa.list_(pa.string()))
    assert told(read_parents(lists)) == [{}, {}, {"x": 1, "y": 1}, None]

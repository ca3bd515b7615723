"""Pasts and numbers of messages, read from columns: against a reader of single rows, on good and bad ones."""

from __future__ import annotations

import json
import struct
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from causet.kernels.streams.frontiers import read_frontiers
from causet.model import is_text
from causet.stamp import MOST_DEPS, MOST_SEQUENCE, pack_deps, pack_frontier

Entries = list[tuple[str, str, int]]
"""(group, process, number)"""
OWN = "own"
TEXT = st.text(min_size=1, max_size=6).filter(is_text)
FLAT = st.dictionaries(TEXT, st.integers(1, MOST_SEQUENCE), max_size=4)
PAST = st.dictionaries(TEXT, FLAT, max_size=4)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2**60) | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
NESTED = pa.map_(pa.string(), pa.map_(pa.string(), pa.int64()))


def entries_of(value: Any) -> Entries | None:
    """The entries of a value: of the own group, if it is flat; None if it is neither flat nor by group."""
    if not isinstance(value, dict):
        return None
    grouped = all(isinstance(each, dict) for each in value.values())
    by_group = value if grouped else {OWN: value}
    found = [(group, name, n) for group, entries in by_group.items() for name, n in entries.items()]
    fine = all(
        is_text(group) and is_text(name) and type(n) is int and 1 <= n <= MOST_SEQUENCE
        for group, name, n in found
    )
    fine = fine and all(map(is_text, by_group)) and (not grouped or all(by_group.values()))
    return found if fine and len(found) <= MOST_DEPS else None


def read(column: pa.Array) -> list[Entries | None]:
    """What the kernel reads, row by row; None for a row that cannot be read."""
    found = read_frontiers(column, pa.array([OWN] * len(column), pa.large_string()))
    rows: list[Entries | None] = []
    for row in range(len(column)):
        span = range(found.begin[row], found.begin[row + 1])
        names = [(found.group, OWN if found.group is None else found.group[at].as_py(), at) for at in span]
        rows.append(
            None
            if found.bad[row]
            else [(group, found.name[at].as_py(), int(found.number[at])) for _, group, at in names]
        )
        assert not (found.bad[row] and len(span)), "what cannot be read has no entries"
    return rows


def alike(mine: Entries | None, theirs: Entries | None) -> bool:
    return mine == theirs or (mine is not None and theirs is not None and sorted(mine) == sorted(theirs))


@given(st.lists(st.one_of(PAST, FLAT, VALUES), min_size=1, max_size=6), st.booleans(), st.booleans())
@settings(deadline=None)
def test_json_in_any_form_is_read_as_python_reads_it(
    values: list[Any], canonical: bool, ascii_only: bool
) -> None:
    apart = (",", ":") if canonical else (", ", ": ")
    texts = [json.dumps(value, separators=apart, ensure_ascii=ascii_only) for value in values]
    column = pa.array(texts, pa.string())
    for mine, value in zip(read(column), values, strict=True):
        assert alike(mine, entries_of(value)), value


@given(st.lists(st.text(alphabet='{}[]":,\\ab01 ', max_size=14), min_size=1, max_size=8))
@settings(deadline=None)
def test_any_text_is_read_as_python_reads_it(texts: list[str]) -> None:
    for mine, text in zip(read(pa.array(texts, pa.string())), texts, strict=True):
        if not text:
            assert mine == []
            continue
        try:
            pairs = json.loads(text, object_pairs_hook=lambda pairs: pairs)
        except ValueError:
            assert mine is None, text
            continue
        value = json.loads(text)
        keys = [key for key, _ in pairs] if isinstance(value, dict) else []
        if len(set(keys)) == len(keys) and isinstance(value, dict):  # a repeated key may count twice
            inner = [[key for key, _ in each] for _, each in pairs if isinstance(each, list)]
            if all(isinstance(each, dict) or not isinstance(each, list) for each in value.values()) and all(
                len(set(map(str, names))) == len(names) for names in inner
            ):
                assert alike(mine, entries_of(value)), text
        elif not isinstance(value, dict):
            assert mine is None, text


@pytest.mark.parametrize(
    "text", ['{"a":{"p":5},"a":{"q":1}}', '{"a":{"p":5,"p":1}}', '{"a":{"p":1,"p":5}}', '{"p":5,"p":1}']
)
def test_of_a_name_that_stands_twice_nothing_is_lost(text: str) -> None:
    """In canonical form all entries count; in any other form the row is refused."""
    [mine] = read(pa.array([text], pa.string()))
    assert mine is not None and len(mine) == 2 and 5 in {number for _, _, number in mine}
    assert read(pa.array([text.replace(":", ": ")], pa.string())) == [None]


@given(st.lists(PAST, min_size=1, max_size=5))
@settings(deadline=None)
def test_packed_entries_and_maps_come_back(pasts: list[dict[str, dict[str, int]]]) -> None:
    wanted = [entries_of({g: each for g, each in past.items() if each}) or [] for past in pasts]
    packed = read(pa.array([pack_frontier(past) for past in pasts], pa.binary()))
    maps = read(pa.array([[(g, list(each.items())) for g, each in past.items()] for past in pasts], NESTED))
    for row, entries in enumerate(wanted):
        assert alike(packed[row], entries) and alike(maps[row], entries)


@given(st.lists(st.one_of(FLAT.map(pack_deps), PAST.map(pack_frontier)), min_size=1, max_size=5))
@settings(deadline=None)
def test_packed_entries_of_both_versions_can_be_mixed(blobs: list[bytes]) -> None:
    for mine, blob in zip(read(pa.array(blobs, pa.binary())), blobs, strict=True):
        assert alike(mine, unpacked(blob))


@given(PAST.filter(bool), st.data())
@settings(deadline=None)
def test_damaged_bytes_are_refused_or_read_as_the_format_says(
    past: dict[str, dict[str, int]], data: st.DataObject
) -> None:
    blob = bytearray(pack_frontier(past))
    at = data.draw(st.integers(0, len(blob) - 1))
    if data.draw(st.booleans()):
        blob[at] ^= data.draw(st.integers(1, 255))
    else:
        del blob[at:]
    [mine] = read(pa.array([bytes(blob)], pa.binary()))
    assert alike(mine, unpacked(bytes(blob)))


BLOBS = st.one_of(
    PAST.map(pack_frontier),
    FLAT.map(pack_deps),
    st.sampled_from(
        [
            b"",
            b"\x03",
            b"\x02\x01\x00a\x00\x00\x00\x00",  # a group without entries
            b"\x02\x01\x00a\x00\x00\x00\x00\x01\x00b\x01\x00\x00\x00" + pack_deps({"p": 1})[1:],
            b"\x02\x01\x00\xff\x01\x00\x00\x00" + pack_deps({"p": 1})[1:],  # names that are no text
            b"\x02\x01\x00a\x01\x00\x00\x00" + pack_deps({"p": 1})[1:-1] + b"\xff",
            b"\x02\x00\x00\x01\x00\x00\x00" + pack_deps({"p": 1})[1:],  # a group without a name
            b"\x02\x01\x00a\x02\x00\x00\x00" + pack_deps({"p": 1})[1:],  # an entry is lacking
            b"\x02\x01\x00a\x01\x00\x00\x00" + pack_deps({"p": 1})[1:] + b"\x01",
        ]
    ),
)


@given(st.lists(BLOBS, min_size=2, max_size=8))
@settings(deadline=None)
def test_rows_that_cannot_be_read_change_nothing_in_the_others(blobs: list[bytes]) -> None:
    for mine, blob in zip(read(pa.array(blobs, pa.binary())), blobs, strict=True):
        assert alike(mine, unpacked(blob)), blob


@given(st.lists(st.one_of(PAST, FLAT, st.just({"a": {}}), st.just({"a": {"p": 0}})), min_size=2, max_size=8))
@settings(deadline=None)
def test_rows_of_json_that_cannot_be_read_change_nothing_in_the_others(pasts: list[Any]) -> None:
    texts = [json.dumps(past, separators=(",", ":"), ensure_ascii=False) for past in pasts]
    for mine, past in zip(read(pa.array(texts, pa.string())), pasts, strict=True):
        assert alike(mine, entries_of(past)), past


def unpacked(blob: bytes) -> Entries | None:
    """Packed entries, read by the words of the format."""
    found: Entries = []
    try:
        if not blob:
            return []
        version, at = blob[0], 1
        if version not in (1, 2):
            return None
        group, left = OWN, -1
        while at < len(blob):
            if version == 2 and left <= 0:
                (length,) = struct.unpack_from("<H", blob, at)
                group = blob[at + 2 : at + 2 + length].decode()
                if len(blob) < at + 2 + length + 4:
                    return None
                (left,) = struct.unpack_from("<I", blob, at + 2 + length)
                at += 2 + length + 4
                if left and not is_text(group):
                    return None
                continue
            number, length = struct.unpack_from("<QH", blob, at)
            name = blob[at + 10 : at + 10 + length]
            if len(name) < length or not name or not 1 <= number <= MOST_SEQUENCE:
                return None
            found.append((group, name.decode(), number))
            at += 10 + length
            left -= 1
    except (struct.error, UnicodeDecodeError):
        return None
    return None if version == 2 and left > 0 else found


def test_empty_rows_and_columns_have_no_entries() -> None:
    for kind in (pa.string(), pa.binary(), NESTED):
        assert read(pa.array([None, None], kind)) == [[], []] and read(pa.array([], kind)) == []


@pytest.mark.parametrize(
    "text", ['{"a":{"p":1},"b":1}', '{"b":1,"a":{"p":1}}', '{"":{"p":1}}', '{"a":{"":1}}']
)
def test_a_past_is_by_group_or_flat_and_has_names(text: str) -> None:
    assert read(pa.array(['{"a":{"p":1}}', text], pa.string())) == [[("a", "p", 1)], None]

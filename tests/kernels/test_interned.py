"""Names as numbers: against a dictionary of Python, on random names and on those that are made to collide."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from causet.kernels.names import hash_texts, text_buffers, word_at
from causet.kernels.streams import interned as module
from causet.kernels.streams.interned import SMALLEST, are_texts, interned, numbered, texts, together

KEY = 0x1234_5678_9ABC_DEF1
WORD = 2**64
FACTOR = 0xD6E8FEB86659FD93
NAMES = st.lists(
    st.one_of(
        st.binary(max_size=20),
        st.sampled_from([b"", b"a", b"\0", b"\0a", b"a\0", b"\0" * 8, b"\0" * 16, b"p-1", b"p-2"]),
        st.text(max_size=12).map(lambda text: text.encode("utf-8", "replace")),
        st.binary(min_size=60, max_size=70).map(lambda tail: b"x" * 200 + tail),
    ),
    max_size=40,
)


def laid_out(names: list[bytes], gap: int = 3) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Names in one array of bytes, with other bytes between them and none behind the last; where they begin,
    and where they end."""
    data = bytearray()
    start, end = [], []
    for name in names:
        data += b"\xff" * gap
        start.append(len(data))
        data += name
        end.append(len(data))
    return np.frombuffer(bytes(data), np.uint8), np.array(start, np.int64), np.array(end, np.int64)


def expected(names: list[bytes]) -> tuple[list[int], list[int]]:
    """Numbers by first occurrence, and where these were."""
    known: dict[bytes, int] = {}
    first = []
    for at, name in enumerate(names):
        if name not in known:
            known[name] = len(known)
            first.append(at)
    return [known[name] for name in names], first


def check(names: list[bytes], key: int = KEY) -> None:
    number, first = numbered(*laid_out(names), key)
    assert (number.tolist(), first.tolist()) == expected(names)


@given(NAMES, st.integers(0, 2**63 - 1))
@settings(deadline=None)
def test_names_are_numbered_by_first_occurrence_whatever_the_key(names: list[bytes], key: int) -> None:
    check(names + names[::-1], key)


def mixed(value: int) -> int:
    """The mixing of hashes, as `names` says it."""
    for _ in range(2):
        value ^= value >> 32
        value = value * FACTOR % WORD
    return value ^ value >> 32


def hash_of(name: bytes, key: int) -> int:
    """The hash of a name: its words from the first to the last, the last one shorter."""
    words = [int.from_bytes(name[at : at + 8], "big") for at in range(0, len(name), 8)] or [0]
    value = mixed(words[0] ^ key) + len(name)
    for word in words[1:]:
        value = mixed(value % WORD ^ word) + key
    return value % WORD


def twin_of(name: bytes, key: int) -> bytes:
    """Another name of 24 bytes with the same hash and the same first word."""
    first, second, third = (int.from_bytes(name[at : at + 8], "big") for at in (0, 8, 16))
    before = (mixed(first ^ key) + len(name)) % WORD
    other = second ^ 0x5A5A
    behind = third ^ (mixed(before ^ second) + key) % WORD ^ (mixed(before ^ other) + key) % WORD
    return b"".join(word.to_bytes(8, "big") for word in (first, other, behind))


def test_names_with_one_hash_are_told_apart_by_their_bytes() -> None:
    names = [bytes(range(at, at + 24)) for at in range(20)]
    twins = [twin_of(name, KEY) for name in names]
    for name, twin in zip(names, twins, strict=True):
        assert name != twin and hash_of(name, KEY) == hash_of(twin, KEY)
    check([*names, *twins, *names, *reversed(twins)])


@pytest.mark.parametrize("place", [0, 2 * SMALLEST - 1])
def test_names_in_one_place_of_the_table_stand_one_behind_the_other(place: int) -> None:
    """Behind the last place comes the first one."""
    alike: list[bytes] = []
    each = 0
    while len(alike) < 12:
        name = b"%d" % each
        if hash_of(name, KEY) % (2 * SMALLEST) == place:
            alike.append(name)
        each += 1
    check([*alike, b"another", *alike[::-1], *alike])


def test_a_table_grows_with_its_names() -> None:
    names = [b"name %d" % (each % 7919) for each in range(5 * SMALLEST)]
    assert len(set(names)) > 3 * SMALLEST
    check(names)
    check([b"%d" % each for each in range(9 * SMALLEST)])


def test_the_name_before_is_only_taken_again_where_it_is_the_same_place() -> None:
    data = np.frombuffer(b"abcabcabd", np.uint8)
    start = np.array([0, 0, 0, 3, 3, 6, 6], np.int64)
    end = np.array([3, 3, 2, 6, 6, 9, 9], np.int64)
    number, first = numbered(data, start, end, KEY)
    assert number.tolist() == [0, 0, 1, 0, 0, 2, 2] and first.tolist() == [0, 2, 5]


def test_the_key_is_a_secret_of_the_run() -> None:
    assert 0 < module.KEY < 2**63


@given(st.lists(st.text(max_size=9).filter(lambda text: text.isprintable()), max_size=20))
@settings(deadline=None)
def test_interned_names_are_the_strings_that_stand_there(names: list[str]) -> None:
    data, start, end = laid_out([name.encode() for name in names])
    found = interned(data, start, end)
    found.validate(full=True)
    assert found.to_pylist() == texts(data, start, end).to_pylist() == names
    assert found.dictionary.to_pylist() == list(dict.fromkeys(names)) and are_texts(found)


@pytest.mark.parametrize("bad", [b"\xff", b"\xc3", b"a\xed\xa0\x80", "größe".encode("latin-1")])
def test_bytes_that_are_no_text_are_seen_among_the_distinct_names(bad: bytes) -> None:
    plain = [b"a", "ä".encode(), b""]
    assert are_texts(interned(*laid_out(plain))) and are_texts(texts(*laid_out(plain)))
    assert not are_texts(interned(*laid_out([*plain, bad]))) and not are_texts(texts(*laid_out([bad])))


def test_names_together_are_distinct_again() -> None:
    one = interned(*laid_out([b"a", b"b", b"a"]))
    other = pa.array(["c", "b"], pa.large_string())
    both = together(one, other, one.filter(pa.array([False, True, False])))
    assert both.to_pylist() == ["a", "b", "a", "c", "b", "b"]
    assert sorted(both.dictionary.to_pylist()) == ["a", "b", "c"]


@given(st.lists(st.binary(max_size=30), max_size=12))
@settings(deadline=None)
def test_words_and_hashes_are_those_of_the_bytes_one_by_one(names: list[bytes]) -> None:
    """Hashes of payloads are kept in checkpoints: they stay as they are."""
    column = pa.array(names, pa.large_binary()).view(pa.large_string())
    offsets, data = text_buffers(column)
    low, high = np.empty(len(names), np.uint64), np.empty(len(names), np.uint64)
    hash_texts(offsets, data, KEY, low, high)
    for at, name in enumerate(names):
        for key, found in ((KEY, low), (~KEY % WORD, high)):
            value = key ^ mixed(len(name))
            for begin in range(0, len(name), 8):
                value = (mixed(value ^ int.from_bytes(name[begin : begin + 8], "big")) + key) % WORD
            assert int(found[at]) == value
    for name in names:
        raw = np.frombuffer(name, np.uint8)
        assert int(word_at(raw, 0, len(name))) == int.from_bytes(name[:8], "big")

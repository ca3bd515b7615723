"""Cuts in files: what was delivered to readers, to begin a new checkpoint there.

    {"version": 1,
     "readers": {"desk": {"groups": {"orders": {"digests": {"9f86d081884c7d659a2feaa0c55ad015": 12}}}}},
     "groups":  {"payments": {"processes": {"till~1": [[1, 4], [6, 6]]}}}}

The state of a query knows names by their digests (blake2b, 128 bits), and nothing that counts needs more; so
a cut that is exported names processes by digests, and groups where no list of readers names them. A cut that
is written by hand can have names. A number stands for all from 1 to it; a list has ranges of numbers. The
other channels of a group, where messages have priorities or scopes, stand in it under "channels", by digests.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from causet.envelope import MOST_SEQUENCE
from causet.errors import BadInput, quote
from causet.files import read_whole, text_of
from causet.kernels.arrays import Array
from causet.kernels.streams.beginning import Counted, union
from causet.kernels.streams.keys import KEY, digests
from causet.readers import Readers

VERSION = 1
DIGEST = re.compile(f"[0-9a-f]{{{2 * KEY}}}")
Groups = dict[bytes, Counted]
"""The key of a group, or of another channel → what counts as delivered there."""


@dataclass
class Cut:
    """What was delivered, by readers and by groups."""

    place: str
    readers: dict[str, Groups] = field(default_factory=dict)
    groups: Groups = field(default_factory=dict)
    group_of: dict[bytes, bytes] = field(default_factory=dict)
    """of channels that are not groups themselves"""

    def of(self, reader: str, group: str) -> Counted:
        """Where a reader begins in a group: where it was; or else where the group is, or some reader of it.
        BadInput if nothing is known of the group."""
        found = self._of(reader, digests([group]).tobytes())
        if found is None:
            raise BadInput(
                f"{self.place} has no cut of the group {quote(group)}, which reader {quote(reader)} reads; "
                f'add it under "groups", as {{}} if it begins with its first messages'
            )
        return found

    def _of(self, reader: str, key: bytes) -> Counted | None:
        if key in self.readers.get(reader, {}):
            return self.readers[reader][key]
        found = [each[key] for each in (self.groups, *self.readers.values()) if key in each]
        if not found:
            return None
        return found[0] if key in self.groups else union(found)

    def beginnings(self, readers: Readers) -> Iterator[tuple[str, bytes, Counted]]:
        """Where each reader begins: reader, key of the channel, and what counts as delivered."""
        for reader, groups in readers.listed:
            for group in groups:
                key = digests([group]).tobytes()
                yield reader, key, self.of(reader, group)
                for channel in (each for each, of in self.group_of.items() if of == key):
                    found = self._of(reader, channel)
                    assert found is not None
                    yield reader, channel, found
        if not readers.listed:
            yield from self._unlisted(readers)

    def _unlisted(self, readers: Readers) -> Iterator[tuple[str, bytes, Counted]]:
        known = {key: name for name in self.readers for key in [digests([name]).tobytes()]}
        for group in {key: None for each in (self.groups, *self.readers.values()) for key in each}:
            [*found] = (each[group] for each in (self.groups, *self.readers.values()) if group in each)
            if not readers.each:
                yield "all", group, union(found)
            elif self.group_of.get(group, group) in known:
                yield known[self.group_of.get(group, group)], group, union(found)
            else:
                raise BadInput(
                    f"{self.place} does not name all groups, as --readers each needs; name readers and groups"
                )


def read_cut(place: str | Path) -> Cut:
    """A cut from a file; BadInput if it is none."""
    path = Path(place)
    try:
        found = json.loads(text_of(path, read_whole(path)))
    except (ValueError, RecursionError):
        raise BadInput(f"{place}: it is not JSON, as `causet explain --cut` writes it") from None
    try:
        if not isinstance(found, dict) or found.get("version") != VERSION:
            raise BadInput(f'it must be a JSON object with "version": {VERSION}')
        _check_names("a cut", found, ("version", "readers", "groups"))
        cut = Cut(str(place))
        cut.groups |= _groups({"groups": found.get("groups", {})}, cut.group_of)
        for reader, about in _map("readers", found.get("readers", {})).items():
            cut.readers[reader] = _groups(_map(f"reader {quote(reader)}", about), cut.group_of)
        return cut
    except BadInput as error:
        raise BadInput(f"{place}: {error}") from None


def _groups(about: Mapping[str, Any], group_of: dict[bytes, bytes]) -> Groups:
    """What was delivered by channels; which group a channel is of, is noted in `group_of`."""
    _check_names("a reader", about, ("groups", "digests"))
    named = _map("groups", about.get("groups", {}))
    keyed = _map("digests", about.get("digests", {}))
    found: Groups = {}
    for key, value in (*_named(named), *_digested(keyed)):
        group = dict(_map("a group", value))
        for channel, each in _digested(_map("channels", group.pop("channels", {}))):
            found[channel] = _counted(_map("a channel", each))
            group_of[channel] = key
        found[key] = _counted(group)
    return found


def _counted(about: Mapping[str, Any]) -> Counted:
    _check_names("a group", about, ("processes", "digests"))
    named = _map("processes", about.get("processes", {}))
    keyed = _map("digests", about.get("digests", {}))
    found = [(key, *each) for key, value in (*_named(named), *_digested(keyed)) for each in _ranges(value)]
    low, high = (np.array([each[at] for each in found], np.int64) for at in (1, 2))
    keys = np.frombuffer(b"".join(key for key, _, _ in found), f"S{KEY}")
    return union([Counted(keys, low, high, np.zeros(len(found), np.int64))])


def _named(found: Mapping[str, Any]) -> Iterator[tuple[bytes, Any]]:
    for name, value in found.items():
        yield digests([name]).tobytes(), value


def _digested(found: Mapping[str, Any]) -> Iterator[tuple[bytes, Any]]:
    for digest, value in found.items():
        if not DIGEST.fullmatch(digest):
            raise BadInput(f"a digest has {2 * KEY} digits from 0 to f, unlike {quote(digest)}")
        yield bytes.fromhex(digest), value


def _ranges(value: Any) -> list[tuple[int, int]]:
    ranges = [[1, value]] if _is_number(value) else value
    if not isinstance(ranges, list):
        ranges = [value]
    for each in ranges:
        fine = isinstance(each, list) and len(each) == 2 and all(_is_number(one) for one in each)
        if not fine or not 1 <= each[0] <= each[1] + (each[0] == 1):
            raise BadInput(
                f"a number, or ranges such as [[1, 4], [6, 6]], must stand in place of {quote(value)}"
            )
    return [(low, high) for low, high in ranges if low <= high]


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_SEQUENCE


def _map(what: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise BadInput(f"{what}: a map is expected, not {quote(value)}")
    return value


def _check_names(what: str, found: Mapping[str, Any], known: Iterable[str]) -> None:
    odd = [name for name in found if name not in (*known,)]
    if odd:
        raise BadInput(f"{what} has {', '.join(map(quote, known))}, and not {quote(odd[0])}")


def as_json(counted: Counted) -> dict[str, Any]:
    """What was delivered in a group."""
    found: dict[str, list[list[int]]] = {}
    for key, low, high in zip(
        hex_of(counted.process), counted.low.tolist(), counted.high.tolist(), strict=True
    ):
        found.setdefault(key, []).append([low, high])
    return {
        "digests": {
            key: each[0][1] if len(each) == 1 and each[0][0] == 1 else each for key, each in found.items()
        }
    }


def hex_of(keys: Array) -> list[str]:
    """Keys as text."""
    whole = keys.tobytes().hex()
    return [whole[at : at + 2 * KEY] for at in range(0, len(whole), 2 * KEY)]

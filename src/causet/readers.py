"""Readers: who reads which groups of messages.

A reader reads one or more groups, and gets each message to any of them once. Groups overlap: one reader may
read many, and one group may have many readers.

    >>> readers = readers_of({"desk": ["orders", "payments"], "audit": ["payments"]})
    >>> readers.of_group("payments")
    ('desk', 'audit')
    >>> readers_of("each").of_group("payments")
    ('payments',)
    >>> readers_of(None).of_group("payments")
    ('all',)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from causet.errors import BadInput, quote
from causet.frontier import PRIORITY_MARK
from causet.model import is_text
from causet.plain import load_plain

ALL = "all"
"""The reader of every group, where no others are named."""
EACH = "each"
"""Every group is a reader of its own."""
MOST_READERS, MOST_READINGS = 10_000, 1_000_000
"""The most readers of a query, and the most groups that they read, counted once per reader."""


@dataclass(frozen=True)
class Readers:
    """Which reader reads which groups: those in the list; or every group its own; or `all` reads all."""

    listed: tuple[tuple[str, tuple[str, ...]], ...] = ()
    each: bool = False

    @property
    def kind(self) -> str:
        """What cannot change between runs of one checkpoint."""
        return "list" if self.listed else EACH if self.each else ALL

    def of_group(self, group: str) -> tuple[str, ...]:
        """The readers of a group, in the order of the list."""
        if self.listed:
            return self._by_group.get(group, ())
        return (group,) if self.each else (ALL,)

    def reads(self, reader: str, group: str) -> bool:
        """Whether a reader reads a group."""
        return reader in self.of_group(group)

    @cached_property
    def _by_group(self) -> dict[str, tuple[str, ...]]:
        found: dict[str, list[str]] = {}
        for reader, groups in self.listed:
            for group in groups:
                found.setdefault(group, []).append(reader)
        return {group: tuple(readers) for group, readers in found.items()}

    def as_json(self) -> dict[str, list[str]] | str | None:
        """What `readers_of` makes the same of."""
        if self.listed:
            return {reader: list(groups) for reader, groups in self.listed}
        return EACH if self.each else None


Given = Mapping[str, Iterable[str]] | Readers | str | None


def readers_of(given: Given) -> Readers:
    """Readers as a program names them; BadInput if they cannot be."""
    if isinstance(given, Readers):
        return given
    if given is None:
        return Readers()
    if given == EACH:
        return Readers(each=True)
    if isinstance(given, str) or not isinstance(given, Mapping):
        raise BadInput(
            f"readers must be {quote(EACH)}, or a map from each reader to its groups, not {quote(given)}"
        )
    return Readers(_checked(given))


def read_readers(place: str | Path) -> Readers:
    """Readers as the command line names them: `each`, or a YAML or JSON file with a map from each reader to
    its groups."""
    if str(place) == EACH:
        return Readers(each=True)
    found = load_plain(place)
    if not isinstance(found, Mapping):
        raise BadInput(f"{place}: a map from each reader to a list of groups is expected, not {quote(found)}")
    try:
        return Readers(_checked(found))
    except BadInput as error:
        raise BadInput(f"{place}: {error}") from None


def _checked(given: Mapping[Any, Any]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    if not given:
        raise BadInput("there must be at least one reader")
    if len(given) > MOST_READERS:
        raise BadInput(f"there are {len(given):,} readers, and at most {MOST_READERS:,} can be served")
    found = []
    for reader, groups in given.items():
        if not isinstance(reader, str) or not is_text(reader):
            raise BadInput(f"a reader must have a name that is text, not {quote(reader)}")
        if isinstance(groups, str) or not isinstance(groups, Iterable):
            raise BadInput(f"reader {quote(reader)} must have a list of groups, not {quote(groups)}")
        found.append((reader, _groups(reader, tuple(groups))))
    if sum(len(groups) for _, groups in found) > MOST_READINGS:
        raise BadInput(f"the readers have more than {MOST_READINGS:,} groups in all")
    return tuple(found)


def _groups(reader: str, groups: tuple[object, ...]) -> tuple[str, ...]:
    if not groups:
        raise BadInput(f"reader {quote(reader)} reads no group")
    known: set[str] = set()
    for group in groups:
        if not isinstance(group, str) or not is_text(group):
            raise BadInput(f"reader {quote(reader)}: the name of a group must be text, not {quote(group)}")
        if PRIORITY_MARK in group:
            raise BadInput(
                f"reader {quote(reader)}: the name of a group cannot have the character U+001F, as "
                f"{quote(group)} has"
            )
        if group in known:
            raise BadInput(f"reader {quote(reader)} has the group {quote(group)} twice")
        known.add(group)
    return tuple(str(group) for group in groups)

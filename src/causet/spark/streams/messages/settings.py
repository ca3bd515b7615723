"""The settings of `deliver` for messages with certain columns, as its workers need them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from causet.envelope import (
    BYPASS,
    CUT,
    DOMAIN,
    GROUPS,
    NUMBERS,
    PRIORITY,
    PROCESS,
    SCOPE,
    VERSION_NAME,
)
from causet.kernels.streams.memory import Lost
from causet.readers import ALL, Readers
from causet.spark.streams.beginnings.kept import Beginning
from causet.spark.streams.pack import OWN

ADDED = ("receiver", "index", "status", "waited", "missing", "problem")
"""The columns that every message gets."""
ALWAYS = (VERSION_NAME, PROCESS, DOMAIN, GROUPS, NUMBERS, CUT, PRIORITY, SCOPE, BYPASS)
"""Attributes that are read, or refused, although no message had them when the query began: without them a
message of another version, of another run of its source, to other groups or of another order would be taken
for something that it is not."""
MALFORMED = "malformed"
"""The column of lines that are not JSON, where messages come from files."""
LATE = "causet.late"
"""In the metadata of a column: that nothing had it when the query began."""
RECEIVER, NUMBER = f"{OWN}receiver", f"{OWN}number"
"""Columns beside those of the user: the receiver as a string; the sequence as a number, if it is
another type."""


@dataclass(frozen=True)
class Settings:
    """The settings of `deliver` for messages with certain columns. Times are in ms."""

    policy: str
    patience: int | None
    horizon: int
    by: str | None
    receiver: str | None
    """the column of the receiver as a string; None where messages are routed to their readers"""
    source: str
    sequence: str
    causes: str | None
    parent: str | None
    buckets: int
    most_held: int
    domain: str | None = None
    """the column of the domain within which a source numbers its messages, if there is one: the one group of
    a message without `numbers`"""
    lost: tuple[Lost, ...] = ()
    """messages that will not come"""
    strict: bool = False
    """a row that is not a message ends the query"""
    most_bytes: int | None = None
    """what the sink takes of one message, if that is limited"""
    process: tuple[str, ...] = ()
    """columns of the identity under which a message is numbered, where rows have them: the first that has a
    value counts, or else the source"""
    version: str | None = None
    """the column of the envelope's version, where rows have it"""
    columns: tuple[str, ...] = ()
    """all columns, in their order: rows that an earlier release read may have fewer"""
    numbers: str | None = None
    """the column of a message's numbers by group, where messages can have several groups"""
    groups: str | None = None
    """the column of a message's groups, if there is one beside that"""
    readers: Readers = field(default_factory=Readers)
    grouped: bool = False
    """whether what is missing is named by group"""
    beginning: Beginning | None = None
    """where readers begin, if that may not count yet"""
    stable: str | None = None
    """the place of cuts, if they are waited for"""
    begins: bool = False
    """whether the query sees to it where new readers begin"""
    query: str = ""
    """the name under which the place knows the readers, if they are known there"""

    @property
    def fixed(self) -> str:
        """What cannot change between runs of the same checkpoint."""
        return json.dumps(
            {
                "by": self.by,
                "buckets": self.buckets,
                "numbers": "parent" if self.parent else "sequence",
                "readers": self.readers.kind,
            }
        )

    @property
    def routed(self) -> bool:
        """Whether messages are routed to readers by their groups."""
        return self.readers.kind != ALL

"""The settings of members, as their workers need them."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from functools import cached_property
from hashlib import sha256

from causet.simulate.systems import Setting, write_setting

VERSION = 1
"""Of the state of members."""
PACKET, SEQ = "packet", "seq"
"""The columns of a packet, and of its position among all that its process received and sent."""


@dataclass(frozen=True)
class Settings:
    """A system, and what is asked of its members."""

    setting: Setting
    by: str
    """the column of the process"""
    buckets: int
    most_held: int
    strict: bool = False
    """a row that is not a packet ends the query"""
    most_bytes: int | None = None
    """what the sink takes of one message, if that is limited"""
    columns: tuple[str, ...] = ()
    """all columns, in their order"""

    @cached_property
    def numbers(self) -> dict[str | None, int]:
        """Which process has a name."""
        return {name: me for me, name in enumerate(self.setting.system.processes)}

    @property
    def fixed(self) -> str:
        """What cannot change between runs of the same checkpoint."""
        about = {"protocol": self.setting.kind.name, "system": mark_of(self.setting)}
        return json.dumps({**about, "by": self.by, "buckets": self.buckets})


def text_of(setting: Setting) -> str:
    """The file of a system, with the options that are not as usual."""
    _, system, options = setting
    given = {each.name: getattr(options, each.name) for each in fields(options)}
    usual = type(options)()
    return write_setting(
        system, {name: value for name, value in given.items() if value != getattr(usual, name)}
    )


def mark_of(setting: Setting) -> str:
    """A mark by which a system is known again, with its options."""
    return sha256(text_of(setting).encode()).hexdigest()[:12]

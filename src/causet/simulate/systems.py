"""A file that says in which system a protocol runs: what a schedule says of it, without the steps.

processes: [p1, p2, p3]                    every process; on the wire it is its position here
groups: {g1: [p1, p2], g2: [p2, p3]}       likewise
at-once: 2                                 to how many groups a message goes at most (protocol frontiers)
links, separators                          as in a schedule
options: {k: 8}                            of one protocol, or of several
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from causet.errors import BadInput, quote
from causet.model import System, with_several
from causet.plain import load_plain
from causet.protocols import Options, Protocol, check_open_groups, make_options
from causet.simulate.schedule import options_in, system_lines
from causet.topology import build_system

AT_ONCE = "at-once"
FIELDS = ("processes", "groups", AT_ONCE, "links", "separators", "options")


class Setting(NamedTuple):
    """A protocol with its options in a system."""

    kind: type[Protocol]
    system: System
    options: Options


def read_setting(path: str | Path, kind: type[Protocol]) -> Setting:
    """The system in a YAML or JSON file, for this protocol; BadInput names what is wrong with it."""
    content = load_plain(path)
    try:
        return setting_of(content, kind)
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from None


def setting_of(data: object, kind: type[Protocol]) -> Setting:
    """The system of a plain value, for this protocol. Options of other protocols are left out."""
    if not isinstance(data, Mapping) or not isinstance(data.get("processes"), list | tuple):
        raise BadInput(f"a system is a mapping with `processes`, and may have {', '.join(FIELDS[1:])}")
    for name in map(str, data):
        if name not in FIELDS:
            raise BadInput(f"unknown field {quote(name)}; the fields are {', '.join(FIELDS)}")
    system = build_system(data["processes"], data.get("groups"), data.get("links"), data.get("separators"))
    if kind.grouped and not system.groups:
        raise BadInput(f"{kind.name} sends to groups, and there are none; give `groups`")
    at_once = data.get(AT_ONCE)
    if at_once is not None:
        if not isinstance(at_once, int) or isinstance(at_once, bool):
            raise BadInput(f"field `{AT_ONCE}` must be a whole number, not {quote(at_once)}")
        check_open_groups(kind, at_once, opens=False)
        system = replace(system, groups=with_several(system.groups, at_once))
    known = kind.Options.__dataclass_fields__
    options = {name: value for name, value in options_in(data).items() if name in known}
    return Setting(kind, system, make_options(kind, system, options)[0])


def write_setting(system: System, options: Mapping[str, Any]) -> str:
    """A system and options as such a file."""
    lines = system_lines(system, options)
    at_once = max((len(group.parts) for group in system.groups), default=0)
    if at_once:
        lines.append(f"{AT_ONCE}: {at_once}")
    return "\n".join(lines) + "\n"

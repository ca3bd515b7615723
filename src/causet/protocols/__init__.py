"""The protocols, by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from causet.errors import BadInput, listed, quote
from causet.model import System
from causet.protocols.base import Options, Packet, Promises, Protocol, stamp_bytes
from causet.protocols.bounded import Bounded
from causet.protocols.controls import Fifo, Unordered
from causet.protocols.direct import Direct
from causet.protocols.fast import Fast
from causet.protocols.frontiers import Frontiers
from causet.protocols.histories import Histories
from causet.protocols.matrix import Matrix
from causet.protocols.merge import Merge
from causet.protocols.optimal import Optimal
from causet.protocols.piggyback import Piggyback
from causet.protocols.process import Outcome, Process
from causet.protocols.relative import Relative
from causet.protocols.slow import Slow
from causet.protocols.vector import Vector

__all__ = [
    "ERRATA",
    "OPTION_NAMES",
    "PROTOCOLS",
    "REMARKS",
    "Options",
    "Outcome",
    "Packet",
    "Process",
    "Promises",
    "Protocol",
    "as_printed_rows",
    "check_open_groups",
    "flags",
    "make_options",
    "protocol_named",
    "stamp_bytes",
]

PROTOCOLS: dict[str, type[Protocol]] = {
    kind.name: kind
    for kind in (
        Matrix,
        Bounded,
        Histories,
        Slow,
        Fast,
        Relative,
        Merge,
        Frontiers,
        Vector,
        Optimal,
        Direct,
        Piggyback,
        Fifo,
        Unordered,
    )
}

ERRATA = tuple(sorted({row for kind in PROTOCOLS.values() for row in kind.errata}))
REMARKS = ("H12", "K4", "K6", "K9")
"""Rows of the errata that no protocol follows as printed: what was not refuted, or is for users to know."""
OPTION_NAMES = tuple(
    dict.fromkeys(
        field.name
        for kind in PROTOCOLS.values()
        for field in fields(kind.Options)
        if field.name != "as_printed"
    )
)
"""Every option of every protocol."""
CONTRADICTED = frozenset({"M1", "H6"})
"""Rows that contradict other printed text: applied only when they are named."""


def protocol_named(name: str) -> type[Protocol]:
    """The protocol of this name; BadInput if there is none."""
    try:
        return PROTOCOLS[name]
    except KeyError:
        raise BadInput(f"unknown protocol {quote(name)}; the protocols are {', '.join(PROTOCOLS)}") from None


def check_open_groups(kind: type[Protocol], at_once: int | None, opens: bool) -> None:
    """BadInput where a protocol cannot have messages to several groups, or from outside of a group."""
    able = ", ".join(name for name, each in PROTOCOLS.items() if each.opens)
    if kind.opens or not kind.grouped:
        return
    if opens:
        raise BadInput(
            f"open: with {kind.name} a sender is a member of the groups that it sends to; try {able}"
        )
    if at_once is not None:
        raise BadInput(f"at-once: with {kind.name} a message goes to one group; try {able}")


def flags() -> dict[str, str]:
    """The settings that commands have as options of their own, with their protocols and defaults."""
    found: dict[str, tuple[str, list[str]]] = {}
    for kind in PROTOCOLS.values():
        for each in fields(kind.Options):
            if each.metadata.get("flag"):
                default = "" if each.default is None else f" [default: {each.default}]"
                found.setdefault(each.name, (each.metadata["text"] + default, []))[1].append(kind.name)
    return {name: f"{', '.join(kinds)}: {text}" for name, (text, kinds) in found.items()}


def as_printed_rows(kind: type[Protocol], named: str | None) -> frozenset[str]:
    """The rows that `--as-printed` means for a protocol.

    None: corrected throughout. Empty: all of its rows but those that contradict other printed text.
    Else the rows named, by commas.
    """
    if named is None:
        return frozenset()
    if not named.strip():
        return frozenset(kind.errata) - CONTRADICTED
    rows = frozenset(row.strip().upper() for row in named.split(","))
    known = ", ".join(kind.errata) or "none"
    if "" in rows:
        raise BadInput(f"as-printed {quote(named)}: a row between the commas is empty; its rows are {known}")
    unknown = sorted(rows - set(kind.errata))
    if unknown:
        raise BadInput(f"{kind.name} has no printed variant {listed(unknown)}; there are {known}")
    return rows


def make_options(
    kind: type[Protocol], system: System, settings: Mapping[str, Any], as_printed: Iterable[str] = ()
) -> tuple[Options, list[str]]:
    """A protocol's options from plain settings, with warnings; BadInput names a setting that is wrong."""
    known = {field.name: field for field in fields(kind.Options) if field.name != "as_printed"}
    values: dict[str, Any] = {}
    for name, value in settings.items():
        if name not in known:
            raise BadInput(f"{kind.name} has no option {quote(name)}; its options are {', '.join(known)}")
        values[name] = _setting(kind, name, str(known[name].type), value)
    if values.get("capacity") is not None and values["capacity"] < 1:
        raise BadInput(f"capacity = {values['capacity']}: a process must be able to hold one message")
    options = kind.Options(as_printed=frozenset(as_printed), **values)
    return options, options.check(system)


def _setting(kind: type[Protocol], name: str, wanted: str, value: Any) -> Any:
    """A setting as its type; numbers and switches may come as text from the command line."""

    def wrong(expected: str) -> BadInput:
        return BadInput(f"option {name} of {kind.name} must be {expected}, not {quote(value)}")

    if wanted.startswith("bool"):
        text = str(value).lower()
        if text in ("true", "on", "yes", "1"):
            return True
        if text in ("false", "off", "no", "0"):
            return False
        raise wrong("on or off")
    if wanted.startswith("str"):
        return str(value)
    if isinstance(value, bool):
        raise wrong("a number")
    many = "tuple" in wanted
    if many and isinstance(value, str) and "," in value:
        value = value.split(",")
    if many and isinstance(value, (list, tuple)):
        return tuple(_setting(kind, name, "int", item) for item in value)
    fractions = wanted.startswith("float")
    try:
        if isinstance(value, float) and not fractions:
            raise ValueError
        number = float(value) if fractions else int(value)
        if number != number:
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        raise wrong("a number" if fractions else "a whole number") from None
    if abs(number) >= 2**62:
        raise BadInput(f"option {name} of {kind.name} is too large: it must be below 2^62")
    return number

"""What a caller gives a stamper, checked before a number is used up: groups, data, attributes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from causet.envelope import (
    BYPASS,
    CUT,
    DEPS,
    DOMAIN,
    GROUPS,
    HEARTBEAT,
    MOST_URGENT,
    NUMBERS,
    PRIORITY,
    PROCESS,
    SCOPE,
    VERSION_NAME,
)
from causet.errors import BadInput, quote
from causet.frontier import PRIORITY_MARK
from causet.model import is_text

_ATTRIBUTE = re.compile(r"[a-z0-9]{1,40}")
_OURS = (
    *("specversion", "id", "source", "type", "sequence", "data"),
    *(VERSION_NAME, PROCESS, DOMAIN, GROUPS, NUMBERS, DEPS, CUT, PRIORITY, SCOPE, BYPASS, "causaltime"),
)
Address = str | Sequence[str]
"""A group, or a list of groups."""


def groups_of(to: object) -> tuple[str, ...]:
    """The groups of an address; BadInput if it is none.

    >>> groups_of("orders"), groups_of(["orders", "audit"])
    (('orders',), ('orders', 'audit'))
    """
    groups = tuple(to) if isinstance(to, list | tuple) else (to,)
    if not groups:
        raise BadInput("a message must have a group that it goes to: the list of groups is empty")
    for at, group in enumerate(groups):
        if not is_text(group):
            raise BadInput(
                "the group of a message must be text that is not empty and has no half of a surrogate pair, "
                f"not {quote(group)}"
            )
        if PRIORITY_MARK in str(group):
            raise BadInput(f"the name of a group cannot have the character U+001F, as {quote(group)} has")
        if group in groups[:at]:
            raise BadInput(f"a message goes to each group once, and {quote(group)} is there twice")
    return groups


class Place(NamedTuple):
    """Where a message stands in the order."""

    priority: int = 0
    scope: str | None = None
    bypass: bool = False

    @property
    def attributes(self) -> dict[str, Any]:
        """What an envelope says of it."""
        said = {PRIORITY: self.priority or None, SCOPE: self.scope, BYPASS: self.bypass or None}
        return {name: value for name, value in said.items() if value is not None}


def place_of(priority: object, scope: object, bypass: object) -> Place:
    """The place that these give a message; BadInput if they cannot.

    >>> place_of(2, "audit", False).attributes
    {'causalpriority': 2, 'causalscope': 'audit'}
    """
    if type(priority) is not int or not -MOST_URGENT - 1 <= priority <= MOST_URGENT:
        raise BadInput(
            f"priority = {quote(priority)}: the priority of a message must be a whole number between "
            f"-{MOST_URGENT + 1} and {MOST_URGENT}; a larger one is more urgent"
        )
    if scope is not None and not is_text(scope):
        raise BadInput(
            f"scope = {quote(scope)}: the scope of a message must be text that is not empty and has no half "
            "of a surrogate pair"
        )
    if type(bypass) is not bool:
        raise BadInput(f"bypass = {quote(bypass)}: a message bypasses the order, or not: True or False")
    if bypass and (priority or scope is not None):
        raise BadInput("a message that bypasses the order has no priority and no scope: it waits for nothing")
    return Place(priority, str(scope) if scope is not None else None, bypass)


def check_data(data: Any) -> None:
    """BadInput if this cannot be written: said here, and not by a sender that has the number already."""
    if data is None or isinstance(data, bytes | bytearray):
        return
    try:
        json.dumps(data, ensure_ascii=False, allow_nan=False).encode()
    except UnicodeEncodeError:
        raise BadInput(
            "the data of a message cannot be written as JSON: half of a surrogate pair is not text"
        ) from None
    except (TypeError, ValueError, RecursionError) as error:
        raise BadInput(f"the data of a message cannot be written as JSON: {error}") from None


def checked_attributes(attributes: Mapping[str, str]) -> dict[str, str]:
    """The attributes that a caller may give; `id` and `type` among them."""
    for name, value in attributes.items():
        if not _ATTRIBUTE.fullmatch(name) or (name in _OURS and name not in ("id", "type")):
            raise BadInput(
                f"{quote(name)} cannot be an attribute: small letters and digits, and not one of ours"
            )
        empty = value == "" and name not in ("id", "type")
        if not empty and not is_text(value):
            raise BadInput(f"the attribute {name} must be text, not {quote(value)}")
    if attributes.get("type") == HEARTBEAT:
        raise BadInput(f"the type {HEARTBEAT} is for heartbeats, which carry no message: use heartbeat()")
    return dict(attributes)

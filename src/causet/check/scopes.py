"""What to explore of a protocol: shapes, bounds and settings that show what it does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from causet.check.explorer import CLOSING_ROUNDS
from causet.check.scope import Scope
from causet.errors import BadInput
from causet.model import System, named_processes, with_several
from causet.protocols import Protocol, as_printed_rows, check_open_groups, make_options
from causet.protocols.base import ClockOptions
from causet.topology import groups_of, links_of, separators_of

NOT_SEEN = {
    "H4": "the size of histories",
    "H5": "the size of stamps",
    "H6": "the size of stamps",
    "H8": "merging by hand, which an exploration does not do",
    "H9": "merging by hand, which an exploration does not do",
    "S3": "matrices of more processes than can be explored",
    "S4": "which k is accepted",
    "M5": "more groups and messages than can be explored",
    "K3": "processes that are idle for longer than can be explored",
    "K7": "the growth of c over many windows",
    "K5": "the ⟨r, c⟩ clock over longer times than can be explored",
}
"""Errata that an exploration of a small system does not show, and what they are about."""


ONE_ORDER = ", own copies, one order for all"
AGREEING = ((3, 1), (2, 2))
"""(messages, last clock value) of the explorations in which one order for all is judged, where promised."""
MOST_TICKS = 8
"""The largest ε and δ that an exploration takes: the closing ticks are as many."""


class Named(NamedTuple):
    """A scope, and in words what it is bounded to."""

    label: str
    scope: Scope


def scopes_for(
    kind: type[Protocol],
    processes: int,
    messages: int,
    *,
    groups: str | None = None,
    links: str | None = None,
    settings: Mapping[str, Any] | None = None,
    as_printed: str | None = None,
    nulls: int = 1,
    at_once: int | None = None,
    opens: bool = False,
    one_order: bool = False,
    horizons: Sequence[tuple[int, int]] | None = None,
    most_states: int = 5_000_000,
    every: bool = True,
) -> list[Named]:
    """The explorations of a protocol, one after the other.

    `horizons` are pairs (messages, last clock value) for protocols with a clock; by default all messages
    with ticks up to 1, and 3 of them with ticks up to 2.

    With `one_order` every message may go to its sender, too, and all processes must deliver in one order. A
    protocol that promises this is judged by it in any case, in explorations of their own.
    """
    if not 2 <= processes <= 6:
        raise BadInput(f"processes = {processes}: an exploration takes from 2 to 6")
    if not 1 <= messages <= 8:
        raise BadInput(f"messages = {messages}: an exploration takes from 1 to 8")
    if not 0 <= nulls <= 8:
        raise BadInput(f"nulls = {nulls}: an exploration takes from 0 to 8")
    if most_states < 1:
        raise BadInput(f"most-states = {most_states}: at least 1 is needed")
    if groups is not None and not kind.grouped:
        raise BadInput(f"groups: {kind.name} does not send to groups, so there are none to choose")
    check_open_groups(kind, at_once, opens)
    if not kind.grouped and (opens or at_once is not None):
        raise BadInput(f"open, at-once: {kind.name} does not send to groups, so there are none to choose")
    if links is not None and (kind.grouped or kind.broadcast or kind.clocked):
        raise BadInput(f"links: {kind.name} does not look at links, so there are none to choose")
    rows = as_printed_rows(kind, as_printed)
    if "H7" in rows and links is None:
        # Targets beyond the neighbours make many more interleavings, and 3 messages show it.
        links, processes, messages = "star", max(processes, 4), min(messages, 3)
    names = named_processes(processes)
    several = (at_once or 2) if kind.opens else 1
    if kind.grouped:
        if groups == "unicast":
            raise BadInput(f"{kind.name} sends to groups, and unicast makes none; try pairs or twins")
        usual = ["pairs", "twins", "chain"] if kind.opens else ["pairs", "twins"]
        systems = [
            (shape, System(names, with_several(groups_of(shape, processes, 1), several)))
            for shape in ([groups] if groups is not None else usual)
        ]
    elif links is not None:
        masks = links_of(links, processes)
        found = separators_of(masks, processes) if masks is not None else ()
        systems = [(links, System(names, (), masks, found))]
    else:
        systems = [("everybody to everybody" if kind.broadcast else "every set of targets", System(names))]
    given = settings or {}
    small = kind.small(processes, given, rows)
    chosen = {**small, **(kind.agreeing() if one_order else {}), **given}
    found_scopes = []
    for shape, system in systems:
        options = make_options(kind, system, chosen, rows)[0]
        if isinstance(options, ClockOptions):
            for name, value in (("epsilon", options.epsilon), ("delta", options.delta)):
                if value > MOST_TICKS:
                    raise BadInput(f"{name} = {value}: an exploration takes at most {MOST_TICKS} ticks")
        # What a sender addresses to itself matters only where the printed rules treat it differently.
        own = one_order or bool(rows & {"H2", "H3"})
        base = Scope(
            kind,
            system,
            options,
            messages,
            nulls,
            own_copies=own,
            opens=opens,
            one_order=one_order,
            most_states=most_states,
            every=every,
        )
        if kind.clocked:
            for count, horizon in horizons or ((messages, 1), (min(messages, 3), 2)):
                found_scopes.append(_clocked(base, count, horizon))
            agreeing = make_options(kind, system, {**small, **kind.agreeing(), **given}, rows)[0]
            if kind.promises(agreeing).total and not one_order:
                one = replace(base, options=agreeing, own_copies=True, one_order=True)
                for count, horizon in AGREEING:
                    found_scopes.append(_clocked(one, min(messages, count), horizon))
        elif kind.nulls:
            label = f"{shape}; {nulls} null message{'s' if nulls != 1 else ''} at any time"
            found_scopes.append(Named(f"{label}, {CLOSING_ROUNDS} null rounds at the end", base))
        else:
            most = min(several, sum(not group.parts for group in system.groups))
            several_at_once = f"messages to up to {most} groups" if kind.opens else ""
            anybody = "from any process" if opens else ""
            label = ", ".join(filter(None, (shape, several_at_once, anybody, options.in_words())))
            found_scopes.append(Named(label, base))
    return [
        Named(f"{named.label}{ONE_ORDER if named.scope.one_order else ''}", named.scope)
        for named in found_scopes
    ]


def _clocked(base: Scope, messages: int, horizon: int) -> Named:
    clocks = f"{base.options.in_words()}, clocks up to {horizon} before the end"
    return Named(f"to everybody, copies lost, {clocks}", replace(base, messages=messages, horizon=horizon))

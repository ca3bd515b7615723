"""`causet protocols`: lists what each protocol costs and promises."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import Field, fields
from typing import Any

import click
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from causet.cli.shared.printing import json_option, print_json, say
from causet.protocols import PROTOCOLS, Protocol, flags

NEEDS: dict[str, Callable[[type[Protocol]], bool]] = {
    "any-targets": lambda kind: not kind.grouped and not kind.broadcast,
    "groups": lambda kind: not kind.broadcast,
    "broadcast": lambda kind: not kind.grouped,
    "one-order": lambda kind: kind.PROMISES.total,
    "loss": lambda kind: kind.PROMISES.loss,
    "damage": lambda kind: kind.PROMISES.damage,
    "as-early-as-possible": lambda kind: kind.PROMISES.early,
    "no-extra-messages": lambda kind: not kind.nulls and not kind.extras,
    "no-clocks": lambda kind: not kind.clocked,
    "many-processes": lambda kind: not kind.sensible,
}
"""What a user may have or want, and which protocols fit."""


@click.command()
@click.option(
    "--for",
    "needs",
    multiple=True,
    type=click.Choice(list(NEEDS)),
    help="Show only the protocols that fit this; can be repeated.  [default: show all]",
)
@json_option
def protocols(needs: tuple[str, ...], as_json: bool) -> int:
    """Describe each protocol: what it is, costs and promises, with its options.

    With --for, list the protocols that keep causal order and fit what you have; the exit code is 1 if there
    is none.

    \b
    Examples:
      causet protocols
      causet protocols --for any-targets --for no-extra-messages
    """
    fitting = [kind for kind in PROTOCOLS.values() if all(NEEDS[need](kind) for need in needs)]
    if needs:
        fitting = [kind for kind in fitting if kind.PROMISES.causal]
    rows = [_row(kind) for kind in fitting]
    if as_json:
        print_json(rows)
        return 0 if rows else 1
    if not rows:
        say(f"There is no protocol for {' and '.join(needs)}.")
        return 1
    console = Console(highlight=False)
    for row in rows:
        _show(console, row)
    console.print(
        f"Options are given with --set NAME=VALUE; {', '.join(flags())} have options of their own. "
        "All have capacity: the maximum number of messages a process may hold back; one more is an error. "
        "Errata are selected with --as-printed."
    )
    return 0


def _show(console: Console, row: dict[str, Any]) -> None:
    console.print(Text.assemble((row["protocol"], "bold"), f"  {row['title']}"))
    limit = f"; sensible up to about {row['sensible_up_to']} processes" if row["sensible_up_to"] else ""
    lines = [
        f"sends to {row['sends_to']}; promises {', '.join(row['promises']) or 'nothing'}",
        f"a stamp counts {row['stamp']}{limit}",
    ]
    if row["needs"]:
        lines.append(f"needs {', '.join(row['needs'])}")
    if row["errata"]:
        lines.append(f"errata {', '.join(row['errata'])}")
    lines += [
        f"{name}={_plain(option['default'])}: {option['text']}"
        for name, option in row["options"].items()
        if name != "capacity"
    ]
    for line in lines:
        console.print(Padding(Text(line), (0, 0, 0, 4)))
    console.print()


def _plain(default: Any) -> str:
    """A default value, as written on the command line."""
    if default is None:
        return "…"
    return ("on" if default else "off") if isinstance(default, bool) else str(default)


def _row(kind: type[Protocol]) -> dict[str, Any]:
    promises = kind.PROMISES
    told = {
        "causal order": promises.causal,
        "as early as possible": promises.early,
        "one order for all": promises.total,
        "bears loss": promises.loss,
        "recovers from damage": promises.damage,
    }
    needs = {
        "null messages": kind.nulls,
        "clocks": kind.clocked,
        "FIFO links (restored)": kind.fifo_links,
        "extra messages": kind.extras,
    }
    return {
        "protocol": kind.name,
        "title": kind.title,
        "sends_to": "groups" if kind.grouped else "everybody" if kind.broadcast else "any targets",
        "promises": [name for name, kept in told.items() if kept],
        "stamp": kind.counts,
        "needs": [name for name, needed in needs.items() if needed],
        "sensible_up_to": kind.sensible,
        "options": {option.name: _option(option) for option in fields(kind.Options) if option.metadata},
        "errata": list(kind.errata),
    }


def _option(option: Field[Any]) -> dict[str, Any]:
    return {"default": option.default, "text": option.metadata["text"]}

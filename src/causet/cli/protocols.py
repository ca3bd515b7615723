"""`causet protocols`: what each costs and promises."""

from __future__ import annotations

from dataclasses import Field, fields
from typing import Any

import click
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from causet.cli.printing import json_option, print_json
from causet.protocols import PROTOCOLS, Protocol


@click.command()
@json_option
def protocols(as_json: bool) -> int:
    """What each protocol is, costs and promises, with its options.

    \b
    Example:
      causet protocols
    """
    rows = [_row(kind) for kind in PROTOCOLS.values()]
    if as_json:
        print_json(rows)
        return 0
    console = Console(highlight=False)
    for row in rows:
        _show(console, row)
    console.print(
        "Options are given with --set NAME=VALUE; k, epsilon, delta and silence have options of their own. "
        "All have capacity: the most messages a process may hold back; one more is an error. Errata are "
        "selected with --as-printed."
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
    """A default as one would give it on the command line."""
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
    needs = {"null messages": kind.nulls, "clocks": kind.clocked, "FIFO links (restored)": kind.fifo_links}
    if kind.name == "bounded":
        needs["extra messages"] = True
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

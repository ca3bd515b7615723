"""`causet protocols`: what each costs and promises."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from causet.cli.common import json_option, print_json
from causet.protocols import PROTOCOLS, Protocol


@click.command()
@json_option
def protocols(as_json: bool) -> None:
    """What each protocol is, costs and promises.

    \b
    Example:
      causet protocols
    """
    rows = [_row(kind) for kind in PROTOCOLS.values()]
    if as_json:
        print_json(rows)
        return
    table = Table(show_edge=False, pad_edge=False)
    for title in ("protocol", "what", "sends to", "promises", "stamp counts", "needs", "options", "errata"):
        table.add_column(title, overflow="fold")
    for row in rows:
        table.add_row(
            row["protocol"],
            row["title"],
            row["sends_to"],
            ", ".join(row["promises"]) or "nothing",
            row["stamp"],
            ", ".join(row["needs"]) or "nothing",
            ", ".join(row["options"]),
            ", ".join(row["errata"]) or "none",
        )
    Console().print(table)


def _row(kind: type[Protocol]) -> dict[str, Any]:
    promises = kind.PROMISES
    told = {
        "causal order": promises.causal,
        "as early as possible": promises.early,
        "one order for all": promises.total,
        "bears loss and damage": promises.loss,
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
        "options": [field.name for field in fields(kind.Options) if field.name != "as_printed"],
        "errata": list(kind.errata),
    }

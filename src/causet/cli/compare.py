"""`causet compare`: every protocol and the controls on the same workloads."""

from __future__ import annotations

import click
from rich.console import Console
from rich.table import Table

from causet.check.runs import Run, run
from causet.cli.shared.printing import json_option, print_json, progress_bar
from causet.model import System, named_processes
from causet.protocols import PROTOCOLS, make_options
from causet.simulate.workload import Workload, delay_of
from causet.topology import groups_of

SIZE = 16
MESSAGES = 2000
WORKLOADS = (
    ("unicast", "one target each"),
    ("ring:4", "overlapping groups of 4"),
    ("all", "everybody to everybody"),
)


@click.command()
@click.option("--seed", default=1, show_default=True, help="Seed of messages and delays.")
@json_option
def compare(seed: int, as_json: bool) -> int:
    """Run every protocol on the same messages with the same delays, beside two controls that break the order.

    The exit code is 1 if a protocol breaks the causal order that it promises, or a control keeps it.

    \b
    Example:
      causet compare
    """
    results = []
    pairs = [
        (shape, kind)
        for shape, _ in WORKLOADS
        for kind in PROTOCOLS.values()
        if not (kind.grouped and shape == "unicast") and not (kind.broadcast and shape != "all")
    ]
    with progress_bar("comparing", len(pairs)) as progress:
        for done, (shape, kind) in enumerate(pairs):
            progress(done)
            system = System(named_processes(SIZE), groups_of(shape, SIZE, seed))
            options, _ = make_options(kind, system, {})
            workload = Workload(system, MESSAGES, 1.0, delay_of("exp:1"), seed)
            results.append((shape, run(kind, options, workload)))
    if as_json:
        print_json([{"groups": shape, **result.summary()} for shape, result in results])
    else:
        _show(results)
    # The controls are there to be caught; only a protocol that breaks its promise is a finding.
    broken = [r for _, r in results if r.kind.PROMISES.causal and r.bad]
    missed = [r for _, r in results if not r.kind.PROMISES.causal and not r.findings.violations]
    return 1 if broken or missed else 0


def _show(results: list[tuple[str, Run]]) -> None:
    console = Console()
    console.print(
        f"{MESSAGES} messages of {SIZE} processes through a network that reorders; per workload the same "
        "messages with the same delays. Delays are in units of the mean transit time.\n"
    )
    for shape, words in WORKLOADS:
        table = Table(title=f"{shape}: {words}", title_justify="left", show_edge=False, pad_edge=False)
        for title in ("protocol", "out of order", "stamp entries", "bytes", "extra messages", "added delay"):
            table.add_column(title, justify="left" if title == "protocol" else "right")
        for found, result in results:
            if found != shape:
                continue
            s = result.summary()
            table.add_row(
                s["protocol"],
                f"[red]{s['violations']}[/red]" if s["violations"] else "0",
                f"{s['stamp_entries_mean']:.1f}",
                f"{s['stamp_bytes_mean']:.1f}",
                f"{s['control_messages'] / MESSAGES:.2f} each" if s["control_messages"] else "0",
                f"{s['added_delay_mean']:.2f}",
            )
        console.print(table)
        console.print()
    console.print(
        "none and fifo are controls: they deliver on arrival, or keep only the order of single links. "
        "All others delivered every message after its causes."
    )

"""A stream one can see: how a query stands, on the terminal, while it runs."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table

    from causet.spark.streams.running import Progress


@contextmanager
def live_display(what: str, quiet: bool = False) -> Iterator[Callable[[Progress], None]]:
    """A display on stderr, where that is a terminal; silent otherwise."""
    if quiet or not sys.stderr.isatty():
        yield lambda progress: None
        return
    from rich.console import Console
    from rich.live import Live

    with Live(console=Console(stderr=True), transient=True, refresh_per_second=4) as live:
        yield lambda progress: live.update(_table(what, progress))


def _table(what: str, progress: Progress) -> Table:
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=f"causet {what}", show_header=False, title_justify="left")
    for name, value in rows_of(progress, time.time()):
        table.add_row(name, escape(value))  # names come from outside
    return table


def rows_of(progress: Progress, now: float) -> Iterator[tuple[str, str]]:
    """The rows of the table: name and value."""
    from causet.spark.streams.running import STAY
    from causet.status import CONFLICTS, DUPLICATES, HEARTBEATS

    left = sum(count for name, count in progress.counts.items() if name not in STAY)
    yield "in", f"{progress.taken:,} messages, {progress.rows_per_second:,.0f} per second"
    yield "out", f"{left:,} messages, {progress.left_per_second:,.0f} per second"
    if progress.held is not None:
        yield "held", f"{progress.held:,}"
    if progress.held and progress.oldest is not None:
        waits = max(now - progress.oldest / progress.per_ms / 1000, 0)
        yield "oldest waits", f"{waits:,.0f} s" + (f" for {progress.blocked}" if progress.blocked else "")
    for name in ("flagged", "late", "diverted", "refused", CONFLICTS, DUPLICATES, HEARTBEATS):
        if progress.counts.get(name):
            yield name, f"{progress.counts[name]:,}"
    if progress.unreadable:
        yield "unreadable files", f"{len(progress.unreadable):,}"
    if progress.lag is not None:
        yield "behind", f"{progress.lag:,} messages"
    if progress.bound is not None:
        yield "released up to", f"{progress.bound} µs"
    yield "batches", f"{progress.batches:,}"

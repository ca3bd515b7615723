"""`causet merge`: the deterministic merge, one order for all subscribers, on Spark."""

from __future__ import annotations

import click

from causet.cli.shared.printing import print_json, say
from causet.cli.shared.streams import (
    Options,
    TicksCheck,
    check_books,
    say_more,
    stream_options,
    streaming,
    summary,
    summary_line,
    write_report,
)
from causet.errors import printable

FINE = 0


@click.command()
@click.option(
    "--epsilon", required=True, metavar="TIME", help="Largest difference between clocks, such as 50ms."
)
@click.option(
    "--delta", required=True, metavar="TIME", help="Longest time that a message is in transit, such as 2s."
)
@click.option(
    "--release",
    type=click.Choice(["sources", "clock"]),
    default="sources",
    show_default=True,
    help="What releases a message: that all sources are past it, or that this machine's clock is, which "
    "waits for no source that is silent.",
)
@click.option(
    "--ticks",
    type=click.Choice(["us", "ms"]),
    default="us",
    show_default=True,
    help="Unit of the columns rc and r: microseconds, or milliseconds in older tables.",
)
@click.option(
    "--expect",
    multiple=True,
    metavar="NAME",
    help="Wait for this source although nothing was heard of it; may be repeated.",
)
@click.option(
    "--exclude",
    multiple=True,
    metavar="NAME",
    help="Do not wait for this source, which has died; may be repeated.",
)
@click.option("--buckets", type=int, default=16, show_default=True, help="Number of buckets of state.")
@stream_options
def merge(
    options: Options,
    epsilon: str,
    delta: str,
    release: str,
    ticks: str,
    expect: tuple[str, ...],
    exclude: tuple[str, ...],
    buckets: int,
) -> int:
    """Merge messages of many sources into one order, the same for every subscriber, causes first.

    SOURCE is a file or folder of JSON Lines or Parquet, with the columns source, sequence, and rc and r, or
    causaltime; or kafka://host:port/topic. The order is that of (r + c, r, process), where the process is
    causalprocess, or the source if there is none.

    With --release sources, a message is released when every source has been heard of at a time later than its
    own by delta and epsilon: the output is the same live and from a backlog. So sources send heartbeats when
    they have nothing to say, and one that died is named and can be excluded. With --release clock, it is also
    released when the clock of this machine is later than its time by as much, and everything that was in
    SOURCE by then has been read: for live streams in which a source may fall silent.

    SINK, a folder or such a topic, gets every input column plus

    \b
      status     delivered, late: it came below what was released, or heartbeat: for the next merger

    and its files, by name, are the order; what is not a message or cannot be read goes to SINK-diverted, with
    the problem. Run again, the command goes on where it ended, however it ended.

    \b
    Examples:
      causet merge inbox merged --epsilon 50ms --delta 2s
      causet merge inbox merged --epsilon 50ms --delta 2s --follow --release clock
      causet merge inbox merged --epsilon 50ms --delta 2s --checkpoint state --follow --exclude sensor7
    """
    from causet.spark.streams.merge.merge import merge as make_transform

    transform = make_transform(  # refuses bad settings before Spark is started
        epsilon=epsilon,
        delta=delta,
        release=release,
        ticks=ticks,
        sources=expect,
        exclude=exclude,
        buckets=buckets,
        strict=options.strict,
    )
    check = TicksCheck(ticks)
    with streaming(options, transform, check.watch) as (result, spark):
        from causet.spark.streams.held import merge_progress

        merged = merge_progress(spark, result.checkpoint.spark)
    held = result.books.held
    check.look(max(merged.sources.values(), default=0))
    live = {name: r for name, r in merged.sources.items() if name not in exclude}
    waits = held and live and not transform.by_clock
    slowest = min(live, key=lambda name: (live[name], name)) if waits else None
    write_report(options, result, slowest)
    if options.as_json:
        found = summary(result, ("delivered", "late", "diverted", "refused", "duplicates"))
        print_json({**found, "released_up_to": merged.bound, "waits_for": slowest})
    else:
        say(summary_line(result, ("late", "diverted", "refused", "conflicts", "duplicates", "heartbeats")))
        if held:
            until = ""
            if slowest:
                until = f", until more is heard of {printable(slowest)}, last at {live[slowest]} µs"
            elif transform.by_clock:
                until = ", until the clock has passed them by delta and epsilon"
            say(f"{held:,} still held{until}")
        say_more(result)
    check_books(result.books)
    return FINE

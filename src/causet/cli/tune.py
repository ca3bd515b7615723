"""`causet tune`: the ε and δ that data would have needed, on Spark."""

from __future__ import annotations

from pathlib import Path

import click

from causet.cli.shared.printing import json_option, print_json, say
from causet.cli.shared.spark import session, spark_options
from causet.cli.shared.streams import TicksCheck
from causet.cli.shared.trace import is_little
from causet.durations import in_ms
from causet.rcclock import TICKS_PER_MS as MS

FINE = 0
WIDTH = 40


@click.command()
@click.argument("source", metavar="SOURCE")
@click.option(
    "--arrival",
    metavar="COLUMN",
    help="Column with the order of arrival.  [default: the order of files and rows]",
)
@click.option(
    "--levels",
    type=click.IntRange(1, 100),
    default=1,
    show_default=True,
    help="Levels of mergers, where each reads the output of those below: epsilon and delta for each.",
)
@click.option(
    "--ticks",
    type=click.Choice(["us", "ms"]),
    default="us",
    show_default=True,
    help="Unit of the columns rc and r: microseconds, or milliseconds in older tables.",
)
@spark_options
@json_option
def tune(
    source: str,
    arrival: str | None,
    levels: int,
    ticks: str,
    as_json: bool,
    master: str | None,
    conf: dict[str, str],
) -> int:
    """Find the smallest ε and δ with which `causet merge` would have lost nothing of this data.

    SOURCE is a file or folder as for `causet merge`, with messages as they came. ε is how far clocks were
    seen apart; δ how long messages were under way, as far as it shows: the smallest that makes nothing late.
    A smaller δ releases earlier, and makes some messages late: how many is drawn. Leave room for days that
    are worse than this one.

    A merger that reads the output of others gets its messages later, by the longest that they wait there: its
    δ is δ + 3ε + 1 µs of the level below, and its ε the same.

    \b
    Examples:
      causet tune inbox
      causet tune inbox --levels 3
    """
    brief = is_little([Path(source), *Path(source).glob("*")])
    with session(master, conf, "tuning", brief) as spark:
        from causet.spark.streams.file_source import await_form, check_messages, in_files, still
        from causet.spark.streams.merge.tune import tune

        form = await_form(Path(source), follow=False)
        check_messages(Path(source))
        found = tune(still(spark, Path(source), form), arrival or in_files(), ticks)
    TicksCheck(ticks).look(found.latest)
    if as_json:
        print_json(
            {
                "messages": found.messages,
                "sources": found.sources,
                "skipped": found.skipped,
                "epsilon": found.epsilon / MS,
                "delta": found.delta / MS,
                "trade": [
                    {"share": share, "delta": delta / MS, "late": late} for share, delta, late in found.trade
                ],
                "levels": [
                    {"level": level, "epsilon": epsilon / MS, "delta": delta / MS}
                    for level, (epsilon, delta) in enumerate(found.levels(levels), 1)
                ],
            }
        )
        return FINE
    say(
        f"messages {found.messages:,}, sources {found.sources:,}: "
        f"--epsilon {_option(found.epsilon)} --delta {_option(found.delta)}"
    )
    for level, (epsilon, delta) in enumerate(found.levels(levels), 1) if levels > 1 else ():
        say(f"  level {level}: --epsilon {_option(epsilon)} --delta {_option(delta)}")
    if found.skipped:
        say(f"{found.skipped:,} rows without a time or a number that can be read are left out")
    say("  δ, and messages that would be late with it")
    trade = {delta: late for _, delta, late in found.trade}
    widest = max(trade.values()) or 1
    for delta, late in trade.items():
        bar = "█" * round(WIDTH * late / widest)
        say(f"  {in_ms(delta):>11} {bar:<{WIDTH}} {late:,}")
    return FINE


def _option(time: int) -> str:
    return in_ms(time).replace(" ", "")

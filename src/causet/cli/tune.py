"""`causet tune`: the ε and δ that data would have needed, on Spark."""

from __future__ import annotations

from pathlib import Path

import click

from causet.cli.shared.printing import json_option, print_json, say
from causet.cli.shared.spark import session, spark_options
from causet.cli.shared.trace import is_little

FINE = 0
WIDTH = 40


@click.command()
@click.argument("source", metavar="SOURCE")
@click.option(
    "--arrival",
    metavar="COLUMN",
    help="Column with the order of arrival.  [default: the order of files and rows]",
)
@spark_options
@json_option
def tune(source: str, arrival: str | None, as_json: bool, master: str | None, conf: dict[str, str]) -> int:
    """Find the smallest ε and δ with which `causet merge` would have lost nothing of this data.

    SOURCE is a file or folder as for `causet merge`, with messages as they came. ε is how far clocks were
    seen apart; δ how long messages were under way, as far as it shows: the smallest that makes nothing late.
    A smaller δ releases earlier, and makes some messages late: how many is drawn. Leave room for days that
    are worse than this one.

    \b
    Example:
      causet tune inbox
    """
    brief = is_little([Path(source), *Path(source).glob("*")])
    with session(master, conf, "tuning", brief) as spark:
        from causet.spark.streams.file_source import await_form, check_messages, in_files, still
        from causet.spark.streams.merge.tune import tune

        form = await_form(Path(source), follow=False)
        check_messages(Path(source))
        found = tune(still(spark, Path(source), form), arrival or in_files())
    if as_json:
        print_json(
            {
                "messages": found.messages,
                "sources": found.sources,
                "skipped": found.skipped,
                "epsilon": found.epsilon,
                "delta": found.delta,
                "trade": [
                    {"share": share, "delta": delta, "late": late} for share, delta, late in found.trade
                ],
            }
        )
        return FINE
    say(
        f"messages {found.messages:,}, sources {found.sources:,}: "
        f"--epsilon {found.epsilon}ms --delta {found.delta}ms"
    )
    if found.skipped:
        say(f"{found.skipped:,} rows without a time or a number that can be read are left out")
    say("  δ, and messages that would be late with it")
    trade = {delta: late for _, delta, late in found.trade}
    widest = max(trade.values()) or 1
    for delta, late in trade.items():
        bar = "█" * round(WIDTH * late / widest)
        say(f"  {delta:>8,} ms {bar:<{WIDTH}} {late:,}")
    return FINE

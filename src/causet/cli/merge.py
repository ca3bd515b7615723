"""`causet merge`: the deterministic merge, one order for all subscribers, on Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from causet.cli.shared.printing import print_json, say
from causet.cli.shared.streams import Options, stream_options, streaming
from causet.errors import printable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from causet.spark.streams.pack import Blobs
    from causet.spark.streams.parquet import ParquetFiles
    from causet.spark.streams.query import Operator, Query

FINE = 0
LEFT = ("delivered", "late", "diverted", "refused", "duplicates")


@click.command()
@click.option("--epsilon", required=True, metavar="TIME", help="How far the clocks are apart at most: 50ms.")
@click.option("--delta", required=True, metavar="TIME", help="How long a message is under way at most: 2s.")
@click.option("--expect", multiple=True, metavar="NAME", help="A source to wait for before it was heard of.")
@click.option("--exclude", multiple=True, metavar="NAME", help="A source that died: do not wait for it.")
@click.option("--buckets", type=int, default=16, show_default=True, help="Number of buckets of state.")
@stream_options
def merge(
    options: Options,
    epsilon: str,
    delta: str,
    expect: tuple[str, ...],
    exclude: tuple[str, ...],
    buckets: int,
) -> int:
    """Merge messages of many sources into one order, the same for every subscriber, causes first.

    SOURCE is a file or folder of JSON Lines or Parquet, with the columns source, sequence, and rc and r, or
    causaltime; or kafka://host:port/topic. The order is that of (r + c, r, source, sequence). A message is
    released when every source has been heard of at a time later than its own by delta and epsilon; so sources
    send heartbeats when they have nothing to say, and one that died is named and can be excluded. SINK, a
    folder or such a topic, gets every input column plus

    \b
      status     delivered, or late: it came below what was released

    and its files, by name, are the order; what is not a message or cannot be read goes to SINK-diverted, with
    the problem. Run again, the command goes on where it ended, however it ended.

    \b
    Examples:
      causet merge inbox merged --epsilon 50ms --delta 2s
      causet merge inbox merged --epsilon 50ms --delta 2s --checkpoint state --follow --exclude sensor7
    """
    from causet.spark.streams.merge import merge as merging

    fixed: dict[str, Any] = {"buckets": buckets}
    settings: dict[str, Any] = {
        "epsilon": epsilon,
        "delta": delta,
        "sources": list(expect),
        "exclude": list(exclude),
    }
    merging(**fixed, **settings)  # refuses bad ones before Spark is started

    def operator(spark: SparkSession, query: Query) -> Operator:
        from causet.spark.streams.held import merge_progress
        from causet.spark.streams.merge_stream import OBSERVED
        from causet.spark.streams.query import MOST_BYTES, STRICT, Operator

        wakes = spark.readStream.schema("ended long").json(f"file:{query.kept.ends.resolve()}")

        def blobs(given: Mapping[str, Any], messages: DataFrame | ParquetFiles) -> Blobs:
            plain = {name: value for name, value in given.items() if name != STRICT}
            transform = merging(**fixed, **plain)
            limit, strict = given.get(MOST_BYTES), bool(given.get(STRICT))
            return replace(transform, most_bytes=limit, strict=strict, wakes=wakes).blobs(messages)

        return Operator(OBSERVED, blobs, lambda spark, state: merge_progress(spark, state)[0])

    wakes = bool(exclude)
    with streaming(options, "merge", fixed, settings, buckets, operator, wakes=wakes) as (ran, spark, state):
        from causet.spark.streams.held import has_state, merge_progress

        _, bound, heard = merge_progress(spark, state) if has_state(spark, state) else (0, None, {})
    held = ran.books.held
    live = {name: r for name, r in heard.items() if name not in exclude}
    slowest = min(live, key=lambda name: (live[name], name)) if held and live else None
    if options.report is not None:
        from causet.spark.report import stream_report
        from causet.view.page import write_text

        title = f"causet merge {options.source}"
        made = stream_report(title, ran.progress, held, slowest, ran.books.balance)
        write_text(options.report, made.page())
    if options.as_json:
        print_json(
            {
                "messages": ran.progress.taken,
                **{name: ran.count(name) for name in LEFT},
                **ran.as_json(),
                "released_up_to": bound,
                "waits_for": slowest,
            }
        )
    else:
        words = {"late": "late", "diverted": "diverted", "refused": "not messages"}
        words |= {"conflicts": "conflicts", "duplicates": "duplicates dropped", "heartbeats": "heartbeats"}
        say(ran.words([f"delivered {ran.count('delivered'):,}"], words))
        if held:
            last = f"{printable(slowest)}, last at {live[slowest]}" if slowest else ""
            wait = f", until more is heard of {last}" if last else ""
            say(f"{held:,} still held{wait}")
        ran.say_more()
    ran.check_books()
    return FINE

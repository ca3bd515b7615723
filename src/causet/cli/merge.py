"""`causet merge`: the deterministic merge, one order for all subscribers, on Spark."""

from __future__ import annotations

from pathlib import Path

import click

from causet.cli.inputs import report_option
from causet.cli.printing import json_option, print_json
from causet.cli.spark import for_streams, session, spark_options
from causet.cli.trace import is_little

FINE = 0


@click.command()
@click.argument("source", metavar="SOURCE")
@click.argument("sink", metavar="SINK")
@click.option("--epsilon", required=True, metavar="TIME", help="How far the clocks are apart at most: 50ms.")
@click.option("--delta", required=True, metavar="TIME", help="How long a message is under way at most: 2s.")
@click.option("--expect", multiple=True, metavar="NAME", help="A source to wait for before it was heard of.")
@click.option("--exclude", multiple=True, metavar="NAME", help="A source that died: do not wait for it.")
@click.option(
    "--checkpoint", metavar="DIR", type=click.Path(path_type=Path), help="Where to go on from later."
)
@click.option("--follow", is_flag=True, help="Go on as more arrives, until interrupted.")
@click.option(
    "--format",
    "written_as",
    type=click.Choice(["parquet", "jsonl"]),
    help="Of the files in SINK  [default: as SOURCE]",
)
@click.option("--buckets", type=int, default=16, show_default=True, help="Time is spread over so many.")
@click.option(
    "--files-per-batch", type=click.IntRange(1), default=1000, show_default=True, help="Of SOURCE, at most."
)
@report_option
@spark_options
@json_option
def merge(
    source: str,
    sink: str,
    epsilon: str,
    delta: str,
    expect: tuple[str, ...],
    exclude: tuple[str, ...],
    checkpoint: Path | None,
    follow: bool,
    written_as: str | None,
    buckets: int,
    files_per_batch: int,
    report: Path | None,
    as_json: bool,
    master: str | None,
    conf: dict[str, str],
) -> int:
    """Merge messages of many sources into one order, the same for every subscriber, causes first.

    SOURCE is a file or folder of JSON Lines or Parquet, with the columns source, sequence, and rc and r, or
    causaltime; or kafka://host:port/topic. The order is that of (r + c, r, source, sequence). A message is
    released when every source has been heard of at a time later than its own by delta and epsilon; so sources
    send heartbeats when they have nothing to say, and one that died is named and can be excluded. SINK, a
    folder or such a topic, gets every input column plus

    \b
      status     delivered, or late: it came below what was released

    and its files, by name, are the order; what is no message goes to SINK-diverted, with the problem. With
    --checkpoint, a later run goes on where this one ended, however it ended.

    \b
    Examples:
      causet merge inbox merged --epsilon 50ms --delta 2s
      causet merge inbox merged --epsilon 50ms --delta 2s --checkpoint state --follow --exclude sensor7
    """
    from causet.cli.live import live_display
    from causet.spark.arrivals import columns_of
    from causet.spark.checkpoints import Checkpoint
    from causet.spark.merging import merge as merging
    from causet.spark.query import Query

    transform = merging(epsilon=epsilon, delta=delta, sources=expect, exclude=exclude, buckets=buckets)
    fixed = {"source": source, "sink": sink, "buckets": buckets}
    with Checkpoint(checkpoint) as kept:
        query = Query.prepared(kept, "merge", fixed, source, sink, written_as, follow)
        brief = not follow and is_little([Path(source), *Path(source).glob("*")])
        with session(
            master, for_streams(master, conf, buckets, None if follow else Path(source)), "merging", brief
        ) as spark:
            from causet.spark.held import has_state, merge_progress
            from causet.spark.merging_streams import OBSERVED
            from causet.spark.running import Progress, run

            with query.withdrawn_if_refused():
                messages = query.messages(spark, files_per_batch)
                blobs = transform.blobs(messages)
            kept.settle("merge", fixed, query.settled(columns_of(messages)))
            progress = Progress()
            with live_display("merge", as_json) as show:
                run(blobs, query.target, kept, follow, OBSERVED, progress, show)
            held, bound, heard = 0, None, dict[str, int]()
            if has_state(spark, kept.spark):
                held, bound, heard = merge_progress(spark, kept.spark)
    live = {name: r for name, r in heard.items() if name not in exclude}
    slowest = min(live, key=lambda name: (live[name], name)) if held and live else None
    if report is not None:
        from causet.spark.reporting import stream_report
        from causet.view.page import write_text

        write_text(report, stream_report(f"causet merge {source}", progress, held, slowest).page())
    names = ("delivered", "late", "refused", "duplicates")
    counts = {name: progress.counts.get(name, 0) for name in names}
    if as_json:
        print_json(
            {
                "messages": progress.taken,
                **counts,
                "held": held,
                "released_up_to": bound,
                "waits_for": slowest,
            }
        )
        return FINE
    words = {"late": "late", "refused": "no messages", "duplicates": "copies dropped"}
    words_told = [f"messages {progress.taken:,}", f"delivered {counts['delivered']:,}"]
    words_told += [f"{word} {counts[name]:,}" for name, word in words.items() if counts[name]]
    click.echo(f"{', '.join(words_told)} → {sink}")
    if held:
        wait = f", until more is heard of {slowest}, last at {live[slowest]}" if slowest else ""
        click.echo(f"{held:,} still held{wait}")
    return FINE

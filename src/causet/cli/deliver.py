"""`causet deliver`: messages in causal order, as early as possible, on Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from causet.cli.inputs import report_option
from causet.cli.printing import json_option, print_json
from causet.cli.spark import for_streams, session, spark_options
from causet.cli.trace import is_little
from causet.delivery import WAIT

FINE = 0


@click.command()
@click.argument("source", metavar="SOURCE")
@click.argument("sink", metavar="SINK")
@click.option(
    "--missing",
    type=click.Choice(["wait", "flag", "divert"]),
    required=True,
    help="What to do about a cause that does not come: wait for it; or, when patience ends, deliver what "
    "needs it all the same, marked; or divert that to SINK-diverted.",
)
@click.option(
    "--patience",
    metavar="TIME",
    help="How long a message waits under flag and divert, such as 10m; the end of the input ends it too, "
    "unless with --follow.",
)
@click.option("--by", metavar="COLUMN", help="The column of the receiver. Without it there is one, `all`.")
@click.option(
    "--parent",
    metavar="COLUMN",
    help="The column with the id of a message's cause, or a list of them, where messages have no sequence; "
    "such as causationid. Messages are known by the column `id` then.",
)
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
@click.option(
    "--horizon",
    metavar="TIME",
    default="1 day",
    show_default=True,
    help="How long is remembered what was given up, and with --parent what was delivered.",
)
@click.option("--buckets", type=int, default=64, show_default=True, help="Receivers are spread over so many.")
@click.option(
    "--files-per-batch", type=click.IntRange(1), default=1000, show_default=True, help="Of SOURCE, at most."
)
@report_option
@spark_options
@json_option
def deliver(
    source: str,
    sink: str,
    missing: str,
    patience: str | None,
    by: str | None,
    parent: str | None,
    checkpoint: Path | None,
    follow: bool,
    written_as: str | None,
    horizon: str,
    buckets: int,
    files_per_batch: int,
    report: Path | None,
    as_json: bool,
    master: str | None,
    conf: dict[str, str],
) -> int:
    """Deliver messages in causal order: each after everything that caused it, and no later than that.

    SOURCE is a file or folder of JSON Lines or Parquet, with the columns source, sequence and causaldeps (or
    deps, packed), or with --parent; or kafka://host:port/topic, with CloudEvents in binary or structured
    mode. SINK is a folder, or such a topic; it gets every input column plus

    \b
      receiver   whose message it is
      index      0, 1, 2, … for each receiver: the order
      status     delivered, flagged (patience ended), late (a missing cause, come after all)
      waited     seconds between arrival and delivery
      missing    for flagged ones, the causes that had not come: source → sequence

    Messages that are diverted, and lines that are no messages, go to SINK-diverted, with the problem. Copies
    are delivered once. With --checkpoint, a later run goes on where this one ended, however it ended.

    \b
    Examples:
      causet deliver messages.jsonl delivered --missing wait --by receiver
      causet deliver inbox delivered --missing flag --patience 10m --by tenant --checkpoint state --follow
      causet deliver events delivered --missing divert --patience 1m --parent causationid
      causet deliver kafka://localhost:9092/orders kafka://localhost:9092/delivered --missing wait --follow
    """
    from causet.cli.live import live_display
    from causet.spark.arrivals import columns_of
    from causet.spark.checkpoints import Checkpoint
    from causet.spark.delivering import OBSERVED
    from causet.spark.delivering import deliver as delivering
    from causet.spark.query import Query

    settings: dict[str, Any] = {
        "missing": missing,
        "patience": patience,
        "by": by,
        "parent": parent,
        "horizon": horizon,
        "buckets": buckets,
    }
    delivering(**settings)  # says what is wrong with them before Spark is started
    # Patience needs a source that tells the time, and the sources of a checkpoint are fixed.
    fixed: dict[str, Any] = {"source": source, "sink": sink, "by": by, "parent": parent, "buckets": buckets}
    fixed |= {"missing": WAIT if missing == WAIT else "flag or divert"}
    with Checkpoint(checkpoint) as kept:
        query = Query.prepared(kept, "deliver", fixed, source, sink, written_as, follow)
        brief = not follow and is_little([Path(source), *Path(source).glob("*")])
        with session(
            master, for_streams(master, conf, buckets, None if follow else Path(source)), "delivering", brief
        ) as spark:
            from causet.spark.held import has_state, how_many_held
            from causet.spark.running import Progress, now_ms, run

            with query.withdrawn_if_refused():
                messages = query.messages(spark, files_per_batch, [by, parent])
                ends = spark.readStream.schema("ended long").json(f"file:{kept.ends.resolve()}")
                blobs = delivering(**settings, ends=ends).blobs(messages)
            columns = columns_of(messages)
            kept.settle("deliver", fixed, query.settled(columns))
            progress = Progress()
            with live_display("deliver", as_json) as show:
                run(blobs, query.target, kept, follow, OBSERVED, progress, show)
                if missing != WAIT and not follow:
                    kept.end(now_ms())
                    run(blobs, query.target, kept, follow, OBSERVED, progress, show)
            held = how_many_held(spark, kept.spark) if has_state(spark, kept.spark) else 0
    if report is not None:
        from causet.spark.reporting import stream_report
        from causet.view.page import write_text

        made = stream_report(f"causet deliver {source}", progress, held, progress.blocked if held else None)
        write_text(report, made.page())
    if parent is not None:
        progress.counts["covered"] = progress.counts.pop("caused", 0)
    _tell(progress.counts, progress.taken, held, progress.blocked if held else None, sink, as_json)
    if progress.counts.get("duplicates") and by is None and "receiver" in columns.names and not as_json:
        click.echo("there is a column receiver: if numbers count for each receiver, use --by receiver")
    return FINE


def _tell(
    counts: dict[str, int], taken: int, held: int, blocked: str | None, sink: str, as_json: bool
) -> None:
    found: dict[str, Any] = {
        "messages": taken,
        **{name: counts.get(name, 0) for name in ("delivered", "flagged", "late", "diverted", "refused")},
        "duplicates": counts.get("duplicates", 0),
        "held": held,
        "blocked": blocked,
    }
    if "covered" in counts:
        found["with_parent"] = counts["covered"] / taken if taken else None
    if as_json:
        print_json(found)
        return
    told = [f"messages {taken:,}", f"delivered {found['delivered']:,}"]
    told += [f"{name} {found[name]:,}" for name in ("flagged", "late", "diverted") if found[name]]
    if found["refused"]:
        told.append(f"no messages {found['refused']:,}")
    if found["duplicates"]:
        told.append(f"copies dropped {found['duplicates']:,}")
    click.echo(f"{', '.join(told)} → {sink}")
    if found.get("with_parent") is not None:
        click.echo(f"{found['with_parent']:.0%} of the messages name a cause; the others wait for nothing")
    if held:
        reason = f", the oldest waits for {blocked}" if blocked else ""
        click.echo(f"{held:,} still held{reason}")

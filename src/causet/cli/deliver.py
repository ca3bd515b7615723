"""`causet deliver`: messages in causal order, as early as possible, on Spark."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from causet.cli.shared.printing import print_json, say
from causet.cli.shared.streams import Options, Ran, stream_options, streaming
from causet.errors import BadInput, printable
from causet.status import WAIT

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from causet.spark.streams.pack import Blobs
    from causet.spark.streams.parquet import ParquetFiles
    from causet.spark.streams.query import Operator, Query

FINE = 0
LEFT = ("delivered", "flagged", "late", "diverted", "refused")


def _lost(_context: object, _option: object, texts: tuple[str, ...]) -> list[tuple[str, int]]:
    """Messages that are given up, each as SOURCE:NUMBER; a source may have colons in its name."""
    found = []
    for text in texts:
        source, _, number = text.rpartition(":")
        if not source or not (number.isascii() and number.isdigit()) or not 0 < int(number) < 1 << 63:
            raise BadInput(f"--lost {printable(text)}: write SOURCE:NUMBER, such as shop:12")
        found.append((source, int(number)))
    return found


@click.command()
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
    "--lost",
    metavar="SOURCE:NUMBER",
    multiple=True,
    callback=_lost,
    help="Give up a message that will never come, such as shop:12; what waits for it is delivered, flagged. "
    "As often as needed.",
)
@click.option(
    "--horizon",
    metavar="TIME",
    default="1 day",
    show_default=True,
    help="How long to remember causes that were given up (with --parent, also delivered ids).",
)
@click.option(
    "--buckets",
    type=int,
    default=64,
    show_default=True,
    help="Number of buckets of state.",
)
@stream_options
def deliver(
    options: Options,
    missing: str,
    patience: str | None,
    by: str | None,
    parent: str | None,
    lost: list[tuple[str, int]],
    horizon: str,
    buckets: int,
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

    Messages that are diverted, and what is not a message or cannot be read, go to SINK-diverted, with the
    problem. Duplicates are delivered once. Run again, the command goes on where it ended, however it ended.

    \b
    Examples:
      causet deliver messages.jsonl delivered --missing wait --by receiver
      causet deliver inbox delivered --missing flag --patience 10m --by tenant --checkpoint state --follow
      causet deliver events delivered --missing divert --patience 1m --parent causationid
      causet deliver kafka://localhost:9092/orders kafka://localhost:9092/delivered --missing wait --follow
    """
    from causet.spark.streams.deliver import deliver as delivering

    fixed: dict[str, Any] = {"by": by, "parent": parent, "buckets": buckets}
    settings: dict[str, Any] = {"missing": missing, "patience": patience, "horizon": horizon, "lost": lost}
    delivering(**_for_operator({**fixed, **settings}))  # refuses bad ones before Spark is started
    # Patience needs a source that tells the time, and the sources of a checkpoint are fixed.
    policy = {"missing": WAIT if missing == WAIT else "flag or divert"}

    def operator(spark: SparkSession, query: Query) -> Operator:
        from causet.spark.streams.deliver import OBSERVED
        from causet.spark.streams.held import how_many_held
        from causet.spark.streams.query import Operator

        ends = spark.readStream.schema("ended long").json(f"file:{query.kept.ends.resolve()}")

        def blobs(given: Mapping[str, Any], messages: DataFrame | ParquetFiles) -> Blobs:
            return delivering(**_for_operator({**fixed, **given}), ends=ends).blobs(messages)

        return Operator(OBSERVED, blobs, how_many_held)

    with streaming(
        options,
        "deliver",
        {**fixed, **policy},
        settings,
        buckets,
        operator,
        [by, parent],
        missing != WAIT,
        bool(lost),
    ) as (ran, spark, state):
        elsewhere = _elsewhere(ran, spark, state) if by is not None else []
    if options.report is not None:
        from causet.spark.report import stream_report
        from causet.view.page import write_text

        title = f"causet deliver {options.source}"
        made = stream_report(title, ran.progress, ran.books.held, _blocked(ran), ran.books.balance)
        write_text(options.report, made.page())
    _tell(ran, parent is not None, elsewhere, options.as_json)
    columns = ran.query.schema.names if ran.query.schema else []
    again = ran.count("duplicates") + ran.count("conflicts")
    if again and by is None and "receiver" in columns and not options.as_json:
        say("there is a column receiver: if numbers count for each receiver, use --by receiver")
    ran.check_books()
    return FINE


def _for_operator(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as `deliver()` takes them, from what JSON made of them."""
    return {**settings, "lost": [(source, number) for source, number in settings["lost"]]}


def _elsewhere(ran: Ran, spark: SparkSession, state: Path) -> list[tuple[str, str, str]]:
    """Of causes that were missed or are waited for, those that came for another receiver: the message, who
    misses it, and for whom it came."""
    from causet.spark.streams.bucket import Wanted
    from causet.spark.streams.held import came_elsewhere, has_state

    texts = [ran.progress.missed, ran.progress.wanted if ran.books.held else None]
    wanted = [Wanted(*json.loads(text)) for text in texts if text is not None]
    found = came_elsewhere(spark, state, wanted) if wanted and has_state(spark, state) else {}
    return [
        (f"{printable(each.source)}:{each.number}", printable(each.receiver), printable(receiver))
        for each, receiver in found.items()
    ]


def _blocked(ran: Ran) -> str | None:
    return ran.progress.blocked if ran.books.held else None


def _tell(ran: Ran, by_parent: bool, elsewhere: list[tuple[str, str, str]], as_json: bool) -> None:
    taken, held, blocked = ran.progress.taken, ran.books.held, _blocked(ran)
    share = ran.count("caused") / taken if by_parent and taken else None
    if as_json:
        found = {
            "messages": taken,
            **{name: ran.count(name) for name in (*LEFT, "duplicates")},
            **ran.as_json(),
            "blocked": blocked,
            "came_elsewhere": [
                dict(zip(("message", "missed_by", "came_for"), each, strict=True)) for each in elsewhere
            ],
        }
        print_json({**found, **({"with_parent": share} if by_parent else {})})
        return
    words = {name: name for name in ("flagged", "late", "diverted")}
    words |= {"refused": "not messages", "conflicts": "conflicts", "duplicates": "duplicates dropped"}
    say(ran.words([f"delivered {ran.count('delivered'):,}"], words))
    if share is not None:
        say(f"{share:.0%} of the messages name a cause; the others wait for nothing")
    if held:
        why = f"; `causet explain --checkpoint {ran.query.kept.folder}` says for what"
        reason = f", the oldest waits for {blocked}" if blocked else why
        say(f"{held:,} still held{reason}")
    for message, _, receiver in elsewhere:
        say(
            f"{message} came, for receiver {receiver}: the numbers seem to run across receivers; leave --by "
            "out, or name the column within which each source numbers its messages"
        )
    ran.say_more()

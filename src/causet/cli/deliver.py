"""`causet deliver`: messages in causal order, as early as possible, on Spark."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from causet.cli.shared.printing import print_json, say
from causet.cli.shared.streams import (
    Options,
    check_books,
    say_more,
    stream_options,
    streaming,
    summary,
    summary_line,
    write_report,
)
from causet.errors import BadInput, printable
from causet.readers import Readers, read_readers
from causet.status import CONTROL, SENT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from causet.spark.streams.query import Result

FINE = 0
_IN_GROUP = re.compile(r"(?P<process>.+?):(?P<number>[0-9]{1,18}) in (?P<group>.+)", re.DOTALL)
_ALONE = re.compile(r"(?P<process>.+):(?P<number>[0-9]{1,18})", re.DOTALL)


Lost = tuple[str, int, str | None]


def _readings(lost: list[Lost], readers: Readers | None) -> Iterator[Lost]:
    """What the names of messages may mean: reports add the priority and the scope of a message, and who waits
    for it. A group may be called so, too."""
    from causet.spark.streams.messages.attributes import channel_called

    listed = {} if readers is None else dict(readers.listed)
    for process, number, group in lost:
        yield process, number, group
        names = [] if group is None else [group]
        for at in re.finditer(" at ", group or ""):
            name, reader = at.string[: at.start()], at.string[at.end() :]
            if readers is not None and (name.startswith(reader) if readers.each else reader in listed):
                names.append(name)
                yield process, number, name
        for channel in filter(None, map(channel_called, names)):
            yield process, number, channel


def _lost(_context: object, _option: object, texts: tuple[str, ...]) -> list[Lost]:
    """Messages that are given up, each as reports name it; processes and groups may have colons in their
    names."""
    found: list[Lost] = []
    for text in texts:
        one = _IN_GROUP.fullmatch(text) or _ALONE.fullmatch(text)
        if one is None or int(one["number"]) == 0:
            raise BadInput(
                f"--lost {printable(text)}: write PROCESS:NUMBER, such as shop:12, or "
                '"PROCESS:NUMBER in GROUP", such as "shop:12 in orders"'
            )
        found.append((one["process"], int(one["number"]), one.groupdict().get("group")))
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
@click.option(
    "--readers",
    metavar="FILE|each",
    help="YAML or JSON file with a map from each reader to the groups that it reads; or `each`, which makes "
    "every group a reader of its own.  [default: one reader, `all`, of every group]",
)
@click.option(
    "--begin",
    metavar="front|now|FILE",
    help="Where readers begin that are new: `now`, after what the other readers of a checkpoint delivered; "
    "or for a new checkpoint `front`, or the FILE of a cut, from `causet explain --cut`.  [default: front "
    "for a new checkpoint; else a new reader, or a group that one adds, is refused]",
)
@click.option(
    "--stable",
    metavar="DIR",
    help="Folder of cuts, for many groups: the readers are made known there, cuts of what all known readers "
    "have delivered are published, and messages that name a cut wait for what is in it.  [default: none; "
    "messages that name a cut are diverted]",
)
@click.option(
    "--by",
    metavar="COLUMN",
    help="Column with the receiver, where messages are numbered per receiver instead of per group.",
)
@click.option(
    "--parent",
    metavar="COLUMN",
    help="Column with the id of a message's cause, or a list of them, where messages have no sequence; "
    "such as causationid. Messages are then identified by the column `id`.",
)
@click.option(
    "--lost",
    metavar="MESSAGE",
    multiple=True,
    callback=_lost,
    help='Give up a message that will never come, named as reports name it: "shop:12 in orders", or shop:12 '
    "for that number in every group. What waits for it is delivered, flagged. May be repeated.",
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
@click.option(
    "--protocol",
    metavar="NAME",
    help="The rows are packets of this protocol (all but merge and piggyback), which decides what is "
    "delivered when; needs --system.",
)
@click.option(
    "--system",
    metavar="FILE",
    help="YAML or JSON file with the `processes` of the protocol, and its groups, at-once, links, separators "
    "and options.",
)
@stream_options
def deliver(
    options: Options,
    missing: str,
    patience: str | None,
    readers: str | None,
    begin: str | None,
    stable: str | None,
    by: str | None,
    parent: str | None,
    lost: list[Lost],
    horizon: str,
    buckets: int,
    protocol: str | None,
    system: str | None,
) -> int:
    """Deliver messages in causal order: each after everything that caused it, and no later than that.

    SOURCE is a file or folder of JSON Lines or Parquet, with the columns of the envelope: source,
    causalprocess, causalnumbers and causaldeps (or process, numbers and deps, packed; or a sequence where all
    are to one group), or with --parent; or kafka://host:port/topic, with CloudEvents in binary or structured
    mode. SINK is a folder, or such a topic; it gets every input column plus

    \b
      receiver   the reader that gets it
      index      0, 1, 2, … for each receiver: the order
      status     delivered, flagged (patience ended), late (a missing cause, come after all)
      waited     seconds between arrival and delivery
      missing    for flagged ones, the causes that had not come: group → process → number

    With --readers, each reader gets every message to its groups once, in causal order across all of them;
    what was sent to several groups is in all of them at once. Messages that no reader reads are counted.
    The list may change from run to run: readers that are new, and groups that are new to a reader, need
    --begin now; what a reader that was removed still holds is counted.
    Messages that are diverted, and what is not a message or cannot be read, go to SINK-diverted, with the
    problem. Duplicates are delivered once. Run again, the command goes on where it ended, however it ended.

    With --protocol, a row is a packet: its bytes, or base64, in the column packet; in receiver (or the column
    of --by) the process that received it, or sent it itself; in seq its position there: 1, 2, 3, … Each
    process delivers by its protocol's own rules. Nothing is sent.

    \b
    Examples:
      causet deliver messages.jsonl delivered --missing wait
      causet deliver messages.jsonl delivered --missing wait --readers readers.yaml
      causet deliver messages.jsonl delivered --missing wait --readers more.yaml --begin now
      causet deliver messages.jsonl delivered --missing wait --readers readers.yaml --stable cuts
      causet deliver inbox delivered --missing flag --patience 10m --by tenant --checkpoint state --follow
      causet deliver events delivered --missing divert --patience 1m --parent causationid
      causet deliver packets.jsonl delivered --missing wait --protocol histories --system system.yaml
      causet deliver kafka://localhost:9092/orders kafka://localhost:9092/delivered --missing wait --follow
    """
    from causet.spark.streams.deliver import deliver as make_transform

    who = None if readers is None else read_readers(readers)
    transform = make_transform(  # refuses bad settings before Spark is started
        missing=missing,
        patience=patience,
        readers=who,
        begin=begin,
        stable=stable,
        by=by,
        parent=parent,
        horizon=horizon,
        buckets=buckets,
        lost=list(_readings(lost, who)),
        strict=options.strict,
        protocol=protocol,
        system=system,
    )
    with streaming(options, transform) as (result, spark):
        elsewhere = _elsewhere(result, spark) if by is not None and protocol is None else []
    blocked = result.progress.blocked if result.books.held else None
    write_report(options, result, blocked)
    taken = result.progress.taken
    share = result.count("caused") / taken if parent is not None and taken else None
    if options.as_json:
        found = {
            **summary(
                result, ("delivered", "flagged", "late", "diverted", "refused", "duplicates", "unread")
            ),
            "blocked": blocked,
            "removed": [{"reader": each, "held": held} for each, held in result.readings.removed.items()],
            "unseen": [{"reader": each, "group": group} for each, group in result.readings.unseen],
            "unread_groups": [{"group": group, "messages": count} for group, count in _unread(result)],
            "came_elsewhere": [
                dict(zip(("message", "missed_by", "came_for"), each, strict=True)) for each in elsewhere
            ],
        }
        packets = {name: result.count(name) for name in (SENT, CONTROL)} if protocol is not None else {}
        print_json({**found, **packets, **({"with_parent": share} if parent is not None else {})})
    else:
        _print(result, share, blocked, elsewhere)
        again = result.count("duplicates") + result.count("conflicts")
        if again and by is None and protocol is None and "receiver" in result.columns:
            say("there is a column receiver: if numbers count for each receiver, use --by receiver")
    check_books(result.books)
    return FINE


MOST_NAMED = 10
"""Groups of which a line is printed."""


def _elsewhere(result: Result, spark: SparkSession) -> list[tuple[str, str, str]]:
    """Of causes that were missed or are waited for, those that came for another receiver: the message, who
    misses it, and for whom it came."""
    from causet.spark.streams.bucket import Wanted
    from causet.spark.streams.held import came_elsewhere

    progress = result.progress
    texts = [progress.missed, progress.wanted if result.books.held else None]
    wanted = [Wanted(*json.loads(text)) for text in texts if text is not None]
    found = came_elsewhere(spark, result.checkpoint.spark, wanted)
    return [
        (f"{printable(each.source)}:{each.number}", printable(each.receiver), printable(receiver))
        for each, receiver in found.items()
    ]


def _print(
    result: Result, share: float | None, blocked: str | None, elsewhere: list[tuple[str, str, str]]
) -> None:
    counts = ("flagged", "late", "diverted", "refused", "conflicts", "duplicates", "unread", SENT, CONTROL)
    say(summary_line(result, counts))
    if share is not None:
        say(f"{share:.0%} of the messages name a cause; the others wait for nothing")
    if result.books.held:
        why = f"; `causet explain --checkpoint {result.checkpoint.folder}` shows for what"
        say(f"{result.books.held:,} still held{f', the oldest waits for {blocked}' if blocked else why}")
    _print_readings(result)
    for message, _, receiver in elsewhere:
        say(
            f"{message} came, for receiver {receiver}: the numbers seem to run across receivers; leave --by "
            "out, or name the column within which each source numbers its messages"
        )
    say_more(result)


def _unread(result: Result) -> list[tuple[str | None, int]]:
    """The groups without a reader, those with most messages first; None for groups that are not named."""
    counts = sorted(result.readings.unread.items(), key=lambda each: (not each[0], -each[1], each[0]))
    return [(group or None, count) for group, count in counts]


def _print_readings(result: Result) -> None:
    """What is odd about the list of readers, which may be a wrong name."""
    for reader, held in result.readings.removed.items():
        say(f"reader {printable(reader)} is not listed any more, and still holds {held:,}")
    unseen = result.readings.unseen
    for reader, group in unseen[:MOST_NAMED]:
        say(f"reader {printable(reader)} reads group {printable(group)}, of which no message was seen")
    if len(unseen) > MOST_NAMED:
        say(f"and of {len(unseen) - MOST_NAMED:,} more groups of readers no message was seen")
    unread = _unread(result)
    for name, count in unread[:MOST_NAMED]:
        which = "further groups have" if name is None else f"group {printable(name)} has"
        say(f"{which} no reader: {count:,} left out")
    if len(unread) > MOST_NAMED:
        say(f"and {len(unread) - MOST_NAMED:,} more groups have no reader")

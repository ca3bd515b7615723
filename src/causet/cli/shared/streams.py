"""What `causet deliver` and `causet merge` share: options, the run of a query, and its summary."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from causet.cli.shared.display import live_display
from causet.cli.shared.inputs import report_option
from causet.cli.shared.printing import json_option, say, warn
from causet.cli.shared.spark import first_signal_noted, for_streams, session, spark_options
from causet.cli.shared.trace import is_little
from causet.errors import BadInput, printable
from causet.verdict import stream_status

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from causet.spark.streams.books import Books
    from causet.spark.streams.query import Result, Transform
    from causet.spark.streams.running import Progress

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Options:
    """The options of every stream."""

    source: str
    sink: str
    checkpoint: Path | None
    follow: bool
    written_as: str | None
    files_per_batch: int
    strict: bool
    gaps: str
    retry: str
    report: Path | None
    as_json: bool
    master: str | None
    conf: Mapping[str, str]


OPTIONS = (
    click.option(
        "--checkpoint",
        metavar="DIR",
        type=click.Path(path_type=Path),
        help="Folder for the state with which a later run continues.  [default: SINK/_checkpoint, or for a "
        "topic a folder in ~/.local/state/causet]",
    ),
    click.option(
        "--follow",
        is_flag=True,
        help="Go on as more arrives, until interrupted: then the batch at hand is finished, and the summary "
        "printed. Interrupt again to stop at once.",
    ),
    click.option(
        "--format",
        "written_as",
        type=click.Choice(["parquet", "jsonl"]),
        help="Format of the files in SINK.  [default: that of SOURCE]",
    ),
    click.option(
        "--strict",
        is_flag=True,
        help="Stop at a message or a file that cannot be read, instead of diverting it.",
    ),
    click.option(
        "--gaps",
        type=click.Choice(["stop", "skip"]),
        default="stop",
        show_default=True,
        help="What to do if a topic has lost messages before they were read: stop, or go on with the first "
        "one that is there.",
    ),
    click.option(
        "--retry",
        metavar="TIME",
        default="5m",
        show_default=True,
        help="How long to retry while a broker does not answer.",
    ),
    click.option(
        "--files-per-batch",
        type=click.IntRange(1),
        default=1000,
        show_default=True,
        help="Maximum number of files of SOURCE per batch.",
    ),
    report_option,
    spark_options,
    json_option,
)


def stream_options(function: F) -> F:
    """The options that streams share, as the argument `options`; before them SOURCE and SINK."""
    names = [each.name for each in fields(Options)]

    @wraps(function)
    def with_options(**given: Any) -> Any:
        options = Options(**{name: given.pop(name) for name in names})
        return function(options=options, **given)

    decorated: Any = with_options
    for option in reversed(OPTIONS):
        decorated = option(decorated)
    decorated = click.argument("sink", metavar="SINK")(decorated)
    return click.argument("source", metavar="SOURCE")(decorated)  # type: ignore[no-any-return]


@contextmanager
def streaming(
    options: Options, transform: Transform, watch: Callable[[Progress], None] = lambda progress: None
) -> Iterator[tuple[Result, SparkSession]]:
    """Run a query, whose progress is watched. The session is there as long as the block."""
    from causet.durations import milliseconds
    from causet.spark.streams.checkpoint import Checkpoint, default_checkpoint
    from causet.spark.streams.query import Asked, Query

    command = transform.command
    source, sink = (_plain(each) for each in (options.source, options.sink))
    asked = Asked(
        source,
        sink,
        transform,
        options.written_as,
        options.follow,
        options.files_per_batch,
        options.gaps,
        milliseconds("retry", options.retry) / 1000,
    )
    folder = options.checkpoint or default_checkpoint(command, source, sink)
    with Checkpoint(folder) as kept:
        query = Query.prepared(kept, asked)
        if query.begun is not None and options.checkpoint is None:
            say(f"going on with the checkpoint {folder}", err=True)
        files = None if options.follow else Path(source)
        brief = files is not None and is_little([files, *files.glob("*")])
        conf = for_streams(options.master, options.conf, transform.buckets, files)
        with session(options.master, conf, f"{command.removesuffix('e')}ing", brief) as spark:
            noted = first_signal_noted() if options.follow else nullcontext(lambda: False)
            with live_display(command, options.as_json) as show, noted as leaves:

                def seen(progress: Progress) -> None:
                    show(progress)
                    watch(progress)

                result = query.run(spark, seen, leaves)
            yield result, spark


def _plain(place: str) -> str:
    """A path in one form, however it is written: `inbox/` is `inbox`."""
    return place if "://" in place or not place else str(Path(place))


def write_report(options: Options, result: Result, blocked: str | None) -> None:
    """Write the page of a run, if it is asked for."""
    if options.report is None:
        return
    from causet.spark.report import stream_report
    from causet.view.page import write_text

    title = f"causet {result.asked.transform.command} {options.source}"
    made = stream_report(title, result.progress, result.books.held, blocked, result.books.balance)
    write_text(options.report, made.page())


def summary(result: Result, counts: Sequence[str]) -> dict[str, Any]:
    """What the summary of every stream has, for machines; with these counts first."""
    books = result.books
    return {
        "messages": result.progress.taken,
        **{name: result.count(name) for name in counts},
        "status": stream_status(result.progress.counts, books.held, books.balance),
        **{name: result.count(name) for name in ("conflicts", "heartbeats")},
        "gaps": result.gaps,
        "unreadable_files": books.unreadable_files,
        "held": books.held,
        "books": books.as_json(),
    }


WORDS = {
    "refused": "not messages",
    "duplicates": "duplicates dropped",
    "unread": "without a reader",
    "sent": "sent by their processes",
    "control": "control packets",
}
"""How counts are called, if not by their names."""


def summary_line(result: Result, names: Sequence[str]) -> str:
    """A line with these counts, but for those that are 0."""
    words = [f"messages {result.progress.taken:,}", f"delivered {result.count('delivered'):,}"]
    words += [f"{WORDS.get(name, name)} {result.count(name):,}" for name in names if result.count(name)]
    if result.books.unreadable_files:
        words.append(f"unreadable files {result.books.unreadable_files:,}")
    return f"{', '.join(words)} → {result.asked.sink}"


def say_more(result: Result) -> None:
    """What a user may want to know besides the counts."""
    for name, new in result.renamed.items():
        say(f"column {printable(name)} of the input is kept as {printable(new)}")
    for gap in result.gaps:
        place = f"topic {printable(gap['topic'])}, partition {gap['partition']}"
        say(f"{place}: offsets {gap['from']} to {gap['to'] - 1} were gone and were skipped")
    for path, why in result.progress.unreadable.items():
        say(f"{printable(path)} cannot be read and was left out: {why}")


class TicksCheck:
    """Warns, once, about times that are in the year 1970 if they are in µs, and of our days if in ms."""

    def __init__(self, ticks: str) -> None:
        self._silent = ticks != "us"

    def look(self, time: int) -> None:
        if not self._silent and 10**11 < time < 10**14:
            self._silent = True
            warn(f"the times look like milliseconds (one is {time}): if they are, use --ticks ms")

    def watch(self, progress: Progress) -> None:
        """Look at what a merge holds or has released while it runs."""
        self.look(max(progress.oldest or 0, int(progress.bound or 0)))


def check_books(books: Books) -> None:
    if not books.balance:
        raise BadInput(
            f"the books do not balance, so messages were lost or duplicated: {books}; keep the checkpoint "
            "and the sink as they are, and report this"
        )

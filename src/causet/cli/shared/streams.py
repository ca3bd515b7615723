"""What `causet deliver` and `causet merge` share: options, a query that is run, and its summary."""

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
from causet.cli.shared.printing import json_option, say
from causet.cli.shared.spark import first_signal_noted, for_streams, session, spark_options
from causet.cli.shared.trace import is_little
from causet.errors import BadInput, printable
from causet.verdict import stream_status

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from causet.spark.streams.books import Books
    from causet.spark.streams.query import Operator, Query
    from causet.spark.streams.running import Progress

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Options:
    """What every stream can be told."""

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
        help="Where the query keeps what it needs to go on later.  [default: SINK/_checkpoint, or for a "
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
        help="How long a broker that does not answer is asked again.",
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


@dataclass
class Ran:
    """A query that ran, and how it ended."""

    query: Query
    progress: Progress
    books: Books

    def count(self, name: str) -> int:
        return self.progress.counts.get(name, 0)

    def as_json(self) -> dict[str, Any]:
        """What the summary of every stream has."""
        return {
            "status": stream_status(self.progress.counts, self.books.held, self.books.balance),
            **{name: self.count(name) for name in ("conflicts", "heartbeats")},
            "gaps": self.query.gaps,
            "unreadable_files": self.books.unreadable_files,
            "held": self.books.held,
            "books": self.books.as_json(),
        }

    def words(self, first: Sequence[str], names: Mapping[str, str]) -> str:
        """A line with these counts, but for those that are 0."""
        told = [f"messages {self.progress.taken:,}", *first]
        told += [f"{word} {self.count(name):,}" for name, word in names.items() if self.count(name)]
        if self.books.unreadable_files:
            told.append(f"unreadable files {self.books.unreadable_files:,}")
        return f"{', '.join(told)} → {self.query.asked.sink}"

    def say_more(self) -> None:
        """What a user may want to know besides the counts."""
        for name, new in self.query.renamed.items():
            say(f"column {printable(name)} of the input is kept as {printable(new)}")
        for gap in self.query.gaps:
            place = f"topic {printable(gap['topic'])}, partition {gap['partition']}"
            say(f"{place}: offsets {gap['from']} to {gap['to'] - 1} were gone and were skipped")
        for path, why in self.progress.unreadable.items():
            say(f"{printable(path)} cannot be read and was left out: {why}")

    def check_books(self) -> None:
        if not self.books.balance:
            raise BadInput(
                f"the books do not balance, so messages were lost or doubled: {self.books}; keep the "
                "checkpoint and the sink as they are, and report this"
            )


def _plain(place: str) -> str:
    """A path in one form, however it is written: `inbox/` is `inbox`."""
    return place if "://" in place or not place else str(Path(place))


@contextmanager
def streaming(
    options: Options,
    command: str,
    fixed: Mapping[str, Any],
    settings: Mapping[str, Any],
    buckets: int,
    operator: Callable[[SparkSession, Query], Operator],
    columns: Sequence[str | None] = (),
    ends: bool = False,
    wakes: bool = False,
) -> Iterator[tuple[Ran, SparkSession, Path]]:
    """Run a query. The session is there as long as the block, which is also given the state."""
    from causet.durations import milliseconds
    from causet.spark.streams.checkpoint import Checkpoint, default_checkpoint
    from causet.spark.streams.query import Asked, Query
    from causet.spark.streams.running import Progress

    source, sink = (_plain(each) for each in (options.source, options.sink))
    asked = Asked(
        command,
        source,
        sink,
        {"source": source, "sink": sink, **fixed},
        {**settings, "strict": options.strict},
        columns,
        options.written_as,
        options.follow,
        options.files_per_batch,
        options.gaps,
        milliseconds("retry", options.retry) / 1000,
        ends,
        wakes,
    )
    folder = options.checkpoint or default_checkpoint(command, source, sink)
    with Checkpoint(folder) as kept:
        query = Query.prepared(kept, asked)
        if query.begun is not None and options.checkpoint is None:
            say(f"going on with the checkpoint {folder}", err=True)
        files = None if options.follow else Path(source)
        brief = files is not None and is_little([files, *files.glob("*")])
        conf = for_streams(options.master, options.conf, buckets, files)
        with session(options.master, conf, f"{command.removesuffix('e')}ing", brief) as spark:
            progress = Progress()
            noted = first_signal_noted() if options.follow else nullcontext(lambda: False)
            with live_display(command, options.as_json) as show, noted as leaves:
                books = query.run(spark, operator(spark, query), progress, show, leaves)
            yield Ran(query, progress, books), spark, kept.spark

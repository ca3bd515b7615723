"""`causet demo`: the whole story on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from causet.cli.shared.printing import json_option, print_json, say
from causet.cli.shared.spark import for_streams, session, spark_options
from causet.errors import BadInput
from causet.files import check_output

if TYPE_CHECKING:
    from causet.check.oracle import Violation
    from causet.live.aftermath import Outcome, Run
    from causet.live.demonstration import Way

ORDERS = 60


@click.command()
@click.option(
    "--kafka", is_flag=True, help="Send the messages through a Kafka broker, which is started for the run."
)
@click.option(
    "--orders",
    metavar="N",
    type=click.IntRange(1, 100_000),
    default=ORDERS,
    show_default=True,
    help="Number of orders.",
)
@click.option("--seed", default=1, show_default=True, help="Seed of the random choices and delays.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("causet-demo.html"),
    show_default=True,
    help="File for the page of the run.",
)
@click.option(
    "--trace",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File for the run as a trace, such as run.jsonl, for `causet verify` and `view`.  [default: none]",
)
@spark_options
@json_option
def demo(
    kafka: bool,
    orders: int,
    seed: int,
    output: Path,
    trace: Path | None,
    as_json: bool,
    master: str | None,
    conf: dict[str, str],
) -> int:
    """Five services with wrong clocks, a network that reorders, and a stream that puts it right.

    A customer orders, the bank is paid, the warehouse sends a parcel, the customer asks where it is and
    is answered. Each service is a process with a clock of its own. Their messages go to groups that readers
    share, and arrive in any order; Spark delivers them to each reader, each after what it answers. Then you
    see what sorting by time would have done, and get a page of the run.

    \b
    Examples:
      causet demo
      causet demo --trace run.jsonl
      causet demo --kafka
    """
    from causet.formats.trace import write_trace
    from causet.live.aftermath import Run
    from causet.live.demonstration import BUCKETS
    from causet.live.shop import READERS
    from causet.view.page import write_page

    check_output(output)
    if trace is not None:
        check_output(trace)
        if trace.resolve() == output.resolve():
            raise BadInput(f"{trace}: the page and the trace need a file each; name another one with --trace")
    if not as_json:
        say("5 services with wrong clocks publish; the network reorders; Spark delivers …")
    with TemporaryDirectory(prefix="causet-demo-") as made, _started(kafka) as servers:
        with session(master, for_streams(master, conf, BUCKETS), "demo") as spark:
            from causet.cli.shared.display import live_display
            from causet.live.demonstration import Demonstration

            played = Demonstration(orders, seed, _way(servers, Path(made)))
            with live_display("demo", as_json) as show:
                played.go(spark, show)
        delivered = played.way.delivered()
    run = Run(READERS, played.shop.story.steps, played.arrived)
    found = {
        "arrival": run.outcome(run.as_arrived()),
        "time": run.outcome(run.by_clock()),
        "causet": run.outcome(delivered),
    }
    events = list(run.trace(delivered))
    if trace is not None:
        write_trace(trace, events)
    page = write_page(output, events, "causet demo")
    early = [each for name in ("time", "arrival") for each in found[name].early]
    through = next((each for each in early if run.is_through_others(each)), None)
    if as_json:
        counts = {name: len(each.early) for name, each in found.items()}
        print_json(
            {
                "messages": len(run.sent),
                "deliveries": found["causet"].deliveries,
                "effects_before_causes": counts,
                "status": found["causet"].status,
                "chain": None if through is None else list(through.because),
                "page": str(page),
            }
        )
    else:
        _print(run, found, through)
        say("", f"The run as a page, to open in a browser: {page}")
    complete = found["causet"].deliveries == found["arrival"].deliveries
    return 0 if found["causet"].status == "valid" and complete else 1


def _print(run: Run, found: dict[str, Outcome], through: Violation | None) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(show_edge=False, pad_edge=False)
    for title in ("order", "delivered before a cause", ""):
        table.add_column(title, justify="right" if title.startswith("delivered") else "left")
    words = {
        "arrival": ("as they arrived", "what a plain consumer sees"),
        "time": ("sorted by time", "what most people do; clocks differ by up to 3 s here"),
        "causet": ("causet", "each after all of its past that the reader gets, and no later"),
    }
    for name, (order, remark) in words.items():
        wrong = len(found[name].early)
        count = f"{wrong:,} of {found[name].deliveries:,}"
        table.add_row(order, f"[{'red' if wrong else 'green'}]{count}[/]", remark)
    console = Console(highlight=False)
    console.print(table)
    if found["time"].early:
        console.print(f"\nFor example, sorted by time, {run.in_words(found['time'].early[0])}.", markup=False)
    if through is not None:
        reads = " and ".join(run.readers[through.process])
        console.print(
            "\nThe past of a message also runs through groups that its reader does not read. "
            f"{through.process} reads {reads}: {run.chain_in_words(through)}.",
            markup=False,
        )


@contextmanager
def _started(kafka: bool) -> Iterator[str | None]:
    if not kafka:
        yield None
        return
    from causet.live.broker import kafka_broker
    from causet.spark.streams.kafka.client import client

    client()  # if it is missing, the error comes before anything is started
    with kafka_broker() as servers:
        yield servers


def _way(servers: str | None, folder: Path) -> Way:
    from causet.live.demonstration import Files, Topics

    return Files(folder) if servers is None else Topics(servers)

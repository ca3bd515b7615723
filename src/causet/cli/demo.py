"""`causet demo`: the whole story on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from causet.cli.shared.printing import json_option, print_json, say
from causet.cli.shared.spark import for_streams, session, spark_options
from causet.files import check_output

if TYPE_CHECKING:
    from causet.live.aftermath import Reversal
    from causet.live.demonstration import Run, Way

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
@spark_options
@json_option
def demo(
    kafka: bool,
    orders: int,
    seed: int,
    output: Path,
    as_json: bool,
    master: str | None,
    conf: dict[str, str],
) -> int:
    """Five services with wrong clocks, a network that reorders, and a stream that puts it right.

    A customer orders, the bank is paid, the warehouse sends a parcel, the customer asks where it is and
    is answered. Each service is a process with a clock of its own. Their messages arrive in any order; Spark
    delivers them, each after what it answers. Then you see what sorting by time would have done, and get a
    page of the run.

    \b
    Examples:
      causet demo
      causet demo --kafka
    """
    from causet.live.aftermath import as_trace, by_clock, in_words, reversals
    from causet.live.demonstration import BUCKETS
    from causet.view.page import write_page

    check_output(output)
    if not as_json:
        say("5 services with wrong clocks publish; the network reorders; Spark delivers …")
    with TemporaryDirectory(prefix="causet-demo-") as made, _started(kafka) as servers:
        with session(master, for_streams(master, conf, BUCKETS), "demo") as spark:
            from causet.cli.shared.display import live_display
            from causet.live.demonstration import Run

            run = Run(orders, seed, _way(servers, Path(made)))
            with live_display("demo", as_json) as show:
                run.go(spark, show)
        delivered = run.way.delivered()
    story = run.shop.story
    named = {envelope["subject"]: envelope for envelope in story.sent}
    orders_seen: dict[str, Any] = {
        "arrival": [envelope for envelope, _ in run.arrived],
        "time": by_clock(story.sent),
        "causet": [named[name] for names in delivered.values() for name in names],
    }
    found = {name: reversals(order, story.because) for name, order in orders_seen.items()}
    lost = len(story.sent) - len(orders_seen["causet"])
    page = write_page(output, list(as_trace(story.steps, run.arrived, delivered)), "causet demo")
    if as_json:
        counts = {name: len(each) for name, each in found.items()}
        print_json({"messages": len(story.sent), "effects_before_causes": counts, "page": str(page)})
    else:
        _print(run, found, in_words(found["time"][0]) if found["time"] else "")
        say("", f"The run as a page, to open in a browser: {page}")
    return 1 if found["causet"] or lost else 0


def _print(run: Run, found: dict[str, list[Reversal]], example: str) -> None:
    from rich.console import Console
    from rich.table import Table

    count = len(run.shop.story.sent)
    table = Table(show_edge=False, pad_edge=False)
    for title in ("order", "messages before their cause", ""):
        table.add_column(title, justify="right" if title.startswith("messages") else "left")
    words = {
        "arrival": ("as they arrived", "what a plain consumer sees"),
        "time": ("sorted by time", "what most people do; clocks differ by up to 3 s here"),
        "causet": ("causet", "each after what it answers, and no later"),
    }
    for name, (order, remark) in words.items():
        wrong = len(found[name])
        table.add_row(order, f"[{'red' if wrong else 'green'}]{wrong:,} of {count:,}[/]", remark)
    console = Console(highlight=False)
    console.print(table)
    if example:
        console.print(f"\nFor example, sorted by time, {example}.")


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

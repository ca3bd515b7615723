"""`causet explain`: causes, effects and concurrency of an event or message, on Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from causet.cli.shared.inputs import fault_lines, fault_records, input_options, refuse_faults, strict_option
from causet.cli.shared.printing import json_option, print_json, say, say_text
from causet.cli.shared.spark import spark_options
from causet.cli.shared.trace import execution
from causet.verdict import exit_code


@click.command()
@click.argument("names", metavar="TRACE ID [ID] | --checkpoint DIR [MESSAGE]", nargs=-1)
@click.option(
    "--checkpoint",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Checkpoint of a deliver or merge query, running or not: explain why messages are held.",
)
@click.option(
    "--cut",
    is_flag=True,
    help="With --checkpoint: write what was delivered to each reader, as JSON, with which another checkpoint "
    "can begin (`causet deliver --begin FILE`).  [default: explain why messages are held]",
)
@click.option(
    "--nearest",
    metavar="N",
    type=click.IntRange(0),
    default=10,
    show_default=True,
    help="Number of causes, effects and concurrent events to name.",
)
@input_options
@strict_option
@spark_options
@json_option
def explain(
    names: tuple[str, ...],
    checkpoint: Path | None,
    cut: bool,
    nearest: int,
    form: str | None,
    strict: bool,
    as_json: bool,
    master: str | None,
    conf: dict[str, str],
    **options: Any,
) -> int:
    """Explain the causes and effects of an event, or how two events are related.

    ID is the id of an event (by default process#seq) or of a message, which stands for its send. For one ID:
    its direct and transitive causes and effects, counted, with the nearest ones named, and what is
    concurrent; for a message also how long it waited and for what. For two IDs: before, after or concurrent,
    with a shortest chain.

    With --checkpoint: the messages that the query holds, the oldest first, and what each waits for; or one
    of them, named process:number or source:number, or by its id where messages have parents. With --cut, how
    far each reader is, for a checkpoint that takes over: processes, and groups that no list of readers names,
    stand there as digests, since the state does not have their names.

    The exit code is 3 if the log has faults: something may be missing then.

    \b
    Examples:
      causet explain trace.jsonl p1:3
      causet explain trace.jsonl p1#4 p3#9
      causet explain --checkpoint state
      causet explain --checkpoint state anna:7
      causet explain --checkpoint state --cut > cut.json
    """
    if cut:
        if checkpoint is None or names:
            raise click.UsageError("--cut goes with --checkpoint DIR, and with nothing else.")
        from causet.cli.shared.cut import write_cut

        return write_cut(checkpoint, master, conf)
    if checkpoint is not None:
        if len(names) > 1:
            raise click.UsageError("With --checkpoint, name at most one message.")
        from causet.cli.shared.held import explain_held

        return explain_held(checkpoint, names[0] if names else None, nearest, as_json, master, conf)
    if not 2 <= len(names) <= 3:
        raise click.UsageError("Name a TRACE and one or two IDs in it.")
    trace, a, b = Path(names[0]), names[1], names[2] if len(names) == 3 else None
    with execution((trace,), form, options, master, conf, "explaining") as source:
        from causet.spark.batch.explain import explain as explained

        found = explained(source.events, a, b, nearest)
        faults = [*source.faults, *found.faults]
        status = "unknown" if faults else "fine"
        refuse_faults(strict, faults)
        if as_json:
            print_json({"status": status, **found.summary(), "faults": fault_records(faults)})
        else:
            say_text(found.told())
            say(*fault_lines(source.faults))
    return exit_code(status)

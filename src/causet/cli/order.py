"""`causet order`: puts an execution into one causal order, on Spark."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from causet.cli.shared.inputs import fault_lines, fault_records, input_options, refuse_faults, strict_option
from causet.cli.shared.printing import json_option, print_json
from causet.cli.shared.spark import spark_options
from causet.cli.shared.trace import execution
from causet.errors import printable
from causet.formats.execution import Fault
from causet.verdict import exit_code


@click.command()
@click.argument("inputs", metavar="TRACE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("-o", "output", required=True, metavar="DIR", help="Folder to write, which must not exist.")
@click.option(
    "--format",
    "written_as",
    type=click.Choice(["parquet", "jsonl"]),
    default="parquet",
    show_default=True,
    help="Format of the files.",
)
@click.option(
    "--blocks",
    is_flag=True,
    help="Add the column block: 1 + the largest block among the direct causes.  [default: left out]",
)
@click.option("--overwrite", is_flag=True, help="Replace DIR if it exists.")
@input_options
@strict_option
@spark_options
@json_option
def order(
    inputs: tuple[Path, ...],
    output: str,
    written_as: str,
    blocks: bool,
    overwrite: bool,
    form: str | None,
    strict: bool,
    as_json: bool,
    master: str | None,
    conf: dict[str, str],
    **options: Any,
) -> int:
    """Put the events of a trace or log into one causal order.

    It is time order, changed only where time order is wrong, and depends on the events alone: not on the
    order of the input, nor on partitions or workers. DIR gets every column of a trace or table under its own
    name and with its own values (for other logs, the fields of the trace that `causet convert` makes), plus

    \b
      repaired   the event's time, or that of a cause if it is later
      position   0, 1, 2, …: the order

    in files part-00000, part-00001, …, whose rows, read one file after the other, are in that order. An input
    column with one of these names is kept as input_NAME. The order is by repaired time, level, process and
    seq; the level is 1 + the largest level among the direct causes with the same repaired time, or 1 if there
    are none. All TRACEs together are one execution. The exit code is 3 if the log has faults (gaps, unknown
    parents, deliveries without a send): it is ordered as far as it is known.

    \b
    Examples:
      causet order trace.jsonl -o ordered
      causet order --from git . -o commits --format jsonl
      causet order spans.json --process service -o spans
    """
    from causet.spark.write.folder import check_target

    check_target(output, overwrite)
    with execution(
        inputs, form, options, master, conf, "ordering", own_columns=True, checked=False
    ) as source:
        from causet.spark.batch.order_files import order_files

        def accept(faults: Sequence[Fault]) -> None:
            refuse_faults(strict, faults)

        ordered = order_files(source, output, written_as, overwrite, blocks, accept)
    status = "unknown" if ordered.faults else "fine"
    if as_json:
        print_json(
            {
                "status": status,
                "events": ordered.events,
                "processes": ordered.processes,
                **({"blocks": ordered.blocks} if blocks else {}),
                "slabs": ordered.slabs,
                "files": [str(file) for file in ordered.files],
                "renamed": ordered.renamed,
                "faults": fault_records(ordered.faults),
            }
        )
    else:
        chain = "" if ordered.blocks is None else f", longest chain {ordered.blocks:,}"
        slabs = f", slabs of time {ordered.slabs:,}" if ordered.slabs else ""
        click.echo(f"events {ordered.events:,}, processes {ordered.processes:,}{chain}{slabs} → {output}")
        for own, new in ordered.renamed.items():
            click.echo(f"  the input has a column {printable(own)}: it is kept as {printable(new)}")
        for line in fault_lines(ordered.faults):
            click.echo(line)
    return exit_code(status)

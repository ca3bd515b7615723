"""`causet convert`: converts logs and traces from one format to another."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from causet.cli.shared.inputs import fault_lines, fault_records, input_options, refuse_faults, strict_option
from causet.cli.shared.printing import json_option, print_json, say
from causet.errors import listed
from causet.files import check_output
from causet.formats.execution import Execution
from causet.formats.output import FORMS_OUT, Written, form_out, write_executions
from causet.formats.registry import read_executions
from causet.verdict import exit_code


@click.command()
@click.argument("inputs", metavar="INPUT...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "-o",
    "output",
    required=True,
    type=click.Path(path_type=Path),
    help="File to write (.jsonl, .jsonl.gz, .parquet, .log), or a folder for one file per execution.",
)
@click.option(
    "--to",
    "to",
    type=click.Choice(list(FORMS_OUT)),
    default=None,
    help="Format to write.  [default: by the name of the output; traces for a folder]",
)
@input_options
@click.option(
    "--each", is_flag=True, help="Treat each INPUT as an execution of its own; otherwise all traces are one."
)
@strict_option
@json_option
def convert(
    inputs: tuple[Path, ...],
    output: Path,
    form: str | None,
    to: str | None,
    each: bool,
    strict: bool,
    as_json: bool,
    **options: Any,
) -> int:
    """Convert logs and traces into a trace, a ShiViz log or CloudEvents.

    INPUT is a trace, a ShiViz log, OpenTelemetry spans, CloudEvents, any table with an id and a parent
    column, or a Git repository.

    Each execution found goes to a file of its own: to OUTPUT if there is one; if there are several, to
    numbered files beside it (trace-1.jsonl, trace-2.jsonl) or, where OUTPUT is a folder or has no ending,
    into that folder. A ShiViz log takes them all.

    The exit code is 3 if a log has faults, which are counted by kind: gaps, unknown parents, lines that do
    not match the parser.

    \b
    Examples:
      causet convert chord.log --parser '(?<host>\\S*) (?<clock>{.*})\\n(?<event>.*)' -o chord.jsonl
      causet convert --from git . -o commits.jsonl
      causet convert spans.json --process service -o spans.parquet
      causet convert orders.csv --id order --parent reply_to --process shop -o orders.jsonl
      causet convert trace.jsonl --to cloudevents -o messages.jsonl
      causet convert trace.jsonl -o trace.log
    """
    form_out(output, to)  # an unknown format is reported before anything is read
    if output.is_file():
        check_output(output, inputs)
    executions = read_executions(inputs, form, each=each, **options)
    refuse_faults(strict, [fault for execution in executions for fault in execution.faults])
    written = write_executions(output, executions, to)
    if as_json:
        print_json(_summary(executions, written))
    else:
        say(*_told(executions, written))
    return exit_code(_status(executions))


def _status(executions: Sequence[Execution]) -> str:
    return "unknown" if any(execution.faults for execution in executions) else "fine"


def _summary(executions: Sequence[Execution], written: Sequence[Written]) -> dict[str, Any]:
    files = {number: str(file.path) for file in written for number in file.executions}
    return {
        "status": _status(executions),
        "executions": [
            {
                "name": execution.name,
                "events": len(execution.events),
                "processes": execution.processes,
                "edges": execution.edges,
                "with_cause": execution.with_cause,
                "faults": fault_records(execution.faults),
                "file": files.get(number),
            }
            for number, execution in enumerate(executions)
        ],
        "files": [{"path": str(file.path), "records": file.records} for file in written],
    }


def _told(executions: Sequence[Execution], written: Sequence[Written]) -> list[str]:
    files = {number: str(file.path) for file in written for number in file.executions}
    lines = []
    for number, execution in enumerate(executions):
        name = f"{listed([execution.name])}: " if execution.name else ""
        lines.append(
            f"{name}events {len(execution.events):,}, processes {execution.processes:,}, edges between "
            f"processes {execution.edges:,}, events with such a cause {execution.with_cause:,}"
            + (f" → {files[number]}" if number in files else "; nothing to write")
        )
        lines += fault_lines(execution.faults)
    return lines

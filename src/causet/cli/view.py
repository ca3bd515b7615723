"""`causet view`: draws an execution."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from causet.cli.shared.inputs import fault_lines, fault_records, input_options
from causet.cli.shared.printing import json_option, print_json, say
from causet.errors import BadInput, printable
from causet.escapes import escaped
from causet.files import check_output

if TYPE_CHECKING:
    from causet.formats.execution import Execution
    from causet.view.payload import Drawing

MOST_ROWS = 500
"""Maximum number of events drawn as text; a page shows more."""


@click.command()
@click.argument("inputs", metavar="TRACE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File for the page.  [default: TRACE.html]",
)
@click.option("--text", "as_text", is_flag=True, help="Draw it here, as text: for small executions.")
@click.option("--ascii", "ascii_only", is_flag=True, help="With --text: use ASCII characters only.")
@click.option(
    "--compare",
    metavar="OTHER",
    type=click.Path(path_type=Path),
    help="Show another execution beside it, with the differences marked.",
)
@click.option(
    "--execution",
    metavar="NAME",
    help="Which execution to draw, if the input has several: its name, or its number from 1.",
)
@click.option("--most", type=click.IntRange(1), help="Most events on the page.  [default: 200,000]")
@click.option(
    "--only-process", metavar="NAME", multiple=True, help="Show only this process; can be repeated."
)
@click.option("--from-position", metavar="N", type=click.IntRange(0), help="Leave out what comes before.")
@click.option("--to-position", metavar="N", type=click.IntRange(0), help="Leave out this position and later.")
@click.option("--around", metavar="ID", help="Show the events nearest to the event with this id.")
@input_options
@json_option
def view(
    inputs: tuple[Path, ...],
    output: Path | None,
    as_text: bool,
    ascii_only: bool,
    compare: Path | None,
    execution: str | None,
    most: int | None,
    only_process: tuple[str, ...],
    from_position: int | None,
    to_position: int | None,
    around: str | None,
    form: str | None,
    as_json: bool,
    **options: Any,
) -> int:
    """Draw an execution: a page to open in a browser, or lines of text.

    The page works offline. It has lanes for processes and arrows for messages; it shows what was held back
    and what it waited for, and what was delivered too early, with the proof. It can be searched, filtered and
    compared. The exit code is 0 when the execution is drawn, whatever it shows; `causet verify` judges.

    \b
    Examples:
      causet view trace.jsonl -o page.html
      causet view --text trace.jsonl
      causet view --from shiviz --parser '(?<host>\\S*) (?<clock>{.*})\\n(?<event>.*)' run.log -o run.html
      causet view before.jsonl --compare after.jsonl -o both.html
      causet view --from git . -o history.html
    """
    from causet.view.narrow import MOST_EVENTS, Selection

    if as_text and (output is not None or compare is not None or as_json):
        raise click.UsageError(
            "--text draws in the terminal: it cannot be used with -o, --compare or --json."
        )
    if ascii_only and not as_text:
        raise click.UsageError("--ascii can only be used with --text.")
    target = output or Path(f"{(inputs[0].resolve().name or 'trace').split('.')[0]}.html")
    if not as_text:
        check_output(target, [*inputs, *([compare] if compare else [])])
    found = _one(inputs, form, execution, options)
    wanted = Selection(most or MOST_EVENTS, only_process, from_position, to_position, around)
    if as_text:
        return _drawn(found, wanted, ascii_only)
    from causet.view.page import judged_drawing, page, write_text

    title = " ".join(path.name or str(path) for path in inputs[:3])
    faults = [*found.faults]
    drawings = [judged_drawing(found.events, found.name or title, wanted, found.faults)]
    if compare is not None:
        other = _one((compare,), form, execution, options)
        faults += other.faults
        drawings.append(judged_drawing(other.events, other.name or compare.name, wanted, other.faults))
        title += f" and {compare.name}"
    write_text(target, page("view" if compare is None else "compare", title, drawings))
    if as_json:
        told = {"page": str(target), "bytes": target.stat().st_size, **_about(drawings[0])}
        if compare is not None:
            told["other"] = _about(drawings[1])
        print_json({**told, "faults": fault_records(faults)})
        return 0
    for each in drawings:
        say(f"{printable(each.name)}: {len(each.events):,} of {each.total:,} events. {each.verdict.sentence}")
    say(*fault_lines(faults))
    say(f"→ {target}")
    return 0


def _about(drawing: Drawing) -> dict[str, Any]:
    return {
        "events": drawing.total,
        "shown": len(drawing.events),
        "status": drawing.verdict.status,
        "violations": drawing.found,
    }


def _one(inputs: tuple[Path, ...], form: str | None, name: str | None, options: dict[str, Any]) -> Execution:
    """The requested execution; BadInput lists them if there are several."""
    from causet.formats.choice import one_execution
    from causet.formats.registry import read_executions

    where = ", ".join(map(str, inputs[:3]))
    found = one_execution(read_executions(inputs, form, **options), name, where)
    if not found.events:
        raise BadInput(f"{where}: it has no events")
    return found


def _drawn(found: Execution, wanted: Any, ascii_only: bool) -> int:
    from causet.view.judged import judged
    from causet.view.payload import Drawing
    from causet.view.text import space_time

    drawing = judged(Drawing.of(found.name, found.events), found.faults)
    shown = wanted.of(drawing)
    if len(shown.events) > MOST_ROWS:
        raise BadInput(
            f"{len(shown.events):,} events are too many to draw as text: at most {MOST_ROWS}. Use --most, "
            "--around, --only-process or --from-position, or make a page with -o"
        )
    marks = {shown.events[each.delivered].id: "too early" for each in shown.violations}
    width = shutil.get_terminal_size().columns
    # Events that are not drawn may have happened nevertheless.
    click.echo(space_time(shown.events, width, marks, ascii_only, whole=shown.left_out is None))
    click.echo()
    sentences = [*(each.sentence for each in shown.violations), shown.verdict.sentence]
    if shown.left_out is not None:
        sentences[-1] += f" {shown.left_out}"
    say(*(escaped(each.replace("…", "..."), ascii=True) if ascii_only else each for each in sentences))
    return 0

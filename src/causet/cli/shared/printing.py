"""Printing for all commands: lines, JSON, warnings, progress. Quick to load.

Everything that a command prints passes through `say` or `json_text`, so that nothing in it can control the
terminal, whatever names a file has; only our own colours are added later.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import click

from causet.escapes import in_json, one_line

F = TypeVar("F", bound=Callable[..., Any])


def json_option(function: F) -> F:
    return click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON value.")(
        function
    )


def json_text(value: Any) -> str:
    """A value as exact JSON, without characters that control a terminal."""
    return in_json(json.dumps(value, ensure_ascii=False, allow_nan=False))


def print_json(value: Any) -> None:
    click.echo(json_text(value))


def say(*lines: str, err: bool = False) -> None:
    """Print lines: each stays one line of bounded length, whatever it contains."""
    for line in lines:
        click.echo(one_line(line), err=err)


def say_text(text: str, err: bool = False) -> None:
    """Print text of several lines; names in it have been made printable, or could add lines of their own."""
    say(*text.split("\n"), err=err)


def warn(*warnings: str) -> None:
    say(*(f"causet: warning: {warning}" for warning in warnings), err=True)


@contextmanager
def progress_bar(title: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """A progress bar on stderr where that is a terminal; silent otherwise."""
    if not sys.stderr.isatty():
        yield lambda done: None
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        SpinnerColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    title = escape(one_line(title))  # rich would take [red] in a name for markup
    columns = (
        (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        if total is not None
        else (SpinnerColumn(), TextColumn("{task.description}"), TextColumn("{task.completed:,} states"))
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(title, total=total)
        yield lambda done: progress.update(task, completed=done)

"""The command line. Each command is thin: it reads, calls a room, prints, and returns an exit code.

0 fine; 1 a finding; 2 bad input or usage; 3 unknown; 130 interrupted.
"""

from __future__ import annotations

import importlib
import io
import os
import signal
import sys
from difflib import get_close_matches
from typing import Any

import click

from causet import __version__
from causet.cli.shared.printing import say, say_text
from causet.errors import CausetError, listed

FINE, BAD, INTERRUPTED, TERMINATED = 0, 2, 130, 143


COMMANDS = (
    "compare",
    "demo",
    "simulate",
    "replay",
    "explore",
    "convert",
    "audit",
    "verify",
    "order",
    "deliver",
    "merge",
    "tune",
    "explain",
    "view",
    "protocols",
    "doctor",
)
"""Each is in the module of its name, which is imported when the command is used: some load slowly."""


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*COMMANDS, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return super().get_command(ctx, cmd_name)
        found: click.Command = getattr(importlib.import_module(f"causet.cli.{cmd_name}"), cmd_name)
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        near = get_close_matches(args[0], COMMANDS, 1) if args[0] not in COMMANDS else []
        if near:
            raise click.UsageError(f"No such command {listed([args[0]])}. Did you mean {near[0]}?", ctx)
        return super().resolve_command(ctx, args)


@click.group(
    cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110}
)
@click.version_option(__version__, prog_name="causet")
def cli() -> None:
    """Put messages and events of many processes into causal order: cause before effect.

    Exit codes: 0 fine, 1 a finding, 2 bad input or usage, 3 unknown.

    \b
    Example:
      causet demo
    """


class _MayClose(io.FileIO):
    """Standard output whose reader may close it, as `head` does: what is written after that is dropped.

    So a command ends with its own exit code in a pipeline too.
    """

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            return memoryview(data).nbytes


def main() -> None:
    """Entry point: every expected error is one sentence on stderr and exit code 2."""
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(_MayClose(1, "w", closefd=False)),
        encoding=sys.stdout.encoding,
        errors="backslashreplace",
        line_buffering=sys.stdout.isatty(),
    )
    for name in ("SIGTERM", "SIGHUP"):  # so that half-written files are removed
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), lambda *_: sys.exit(TERMINATED))
    try:
        code = cli.main(standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.Abort:
        say("causet: interrupted", err=True)
        code = INTERRUPTED
    except click.ClickException as error:
        shown = io.StringIO()
        error.show(shown)
        say_text(shown.getvalue().rstrip("\n"), err=True)
        code = BAD
    except CausetError as error:
        say(f"causet: {error}", err=True)
        code = BAD
    except OSError as error:
        say(f"causet: {error.filename or 'output'}: {error.strerror}", err=True)
        if error.filename is None:
            # Python would try to write the rest again at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        code = BAD
    except MemoryError:
        say("causet: out of memory; use fewer processes or messages", err=True)
        code = BAD
    sys.exit(code if isinstance(code, int) else FINE)

"""The command line. Each command is thin: it reads, calls a room, prints, and returns an exit code.

0 fine; 1 a finding; 2 bad input or usage; 3 unknown.
"""

from __future__ import annotations

import os
import sys

import click

from causet import __version__
from causet.cli.demo import demo
from causet.cli.explore import explore
from causet.cli.protocols import protocols
from causet.cli.replay import replay
from causet.cli.simulate import simulate
from causet.model import CausetError

FINE, BAD = 0, 2


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="causet")
def cli() -> None:
    """Puts messages and events of many processes into causal order: cause before effect.

    Exit codes: 0 fine, 1 a finding, 2 bad input or usage, 3 unknown.

    \b
    Example:
      causet demo
    """


for command in (demo, simulate, replay, explore, protocols):
    cli.add_command(command)


def main() -> None:
    """Entry point: every error on purpose is one sentence on stderr and exit code 2."""
    try:
        code = cli.main(standalone_mode=False)
    except click.exceptions.Abort:
        click.echo("causet: interrupted", err=True)
        code = 130
    except click.ClickException as error:
        error.show()
        code = BAD
    except CausetError as error:
        click.echo(f"causet: {error}", err=True)
        code = BAD
    except BrokenPipeError:
        # The reader of our output left, as `head` does; nothing is wrong.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = FINE
    except OSError as error:
        click.echo(f"causet: {error.filename or 'output'}: {error.strerror}", err=True)
        code = BAD
    sys.exit(code if isinstance(code, int) else FINE)

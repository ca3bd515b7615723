"""Drawings, tables and commands on the pages, made from the code so that they stay up to date.

A page asks for one by a comment on a line of its own:

    <!-- drawing: figures/question.yaml none -->     a schedule under a protocol, as text
    <!-- page: figures/shop.yaml matrix -->          the same as the page of `causet view`, in a frame
    <!-- promises -->                                the table of protocols
    <!-- costs -->                                   what they cost on small workloads, measured now
    <!-- commands -->                                every command with its help
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

import click
from mkdocs.structure.files import File

from causet.check.oracle import judge
from causet.check.runs import run
from causet.cli import cli
from causet.model import Event, System, named_processes
from causet.protocols import PROTOCOLS, make_options, protocol_named
from causet.simulate.replay import replay
from causet.simulate.schedule import read_schedule
from causet.simulate.workload import Workload, delay_of
from causet.topology import groups_of
from causet.view.notebook import view
from causet.view.text import space_time

DOCS = Path(__file__).parent
ASKED = re.compile(r"^<!-- (drawing|page|promises|costs|commands)(?:: (\S+) (\S+))? -->$", re.MULTILINE)
SIZE, MESSAGES, SEED = 8, 300, 1
SHAPES = {
    "unicast": "Each message to one process",
    "ring:4": "Groups of 4 that overlap",
    "all": "Everybody to everybody",
}
WIDTH = 96
"""Columns of a command's help."""


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Replace the comments of a page by what they ask for."""

    def made(match: re.Match[str]) -> str:
        what, file, protocol = match.groups()
        if what == "drawing":
            return f"```text\n{drawing(file, protocol)}\n```"
        if what == "page":
            up = "../" * page.file.src_uri.count("/")
            title = f"{Path(file).stem} under {protocol}"
            return (
                f'<iframe class="execution" title="{title}" src="{up}{page_name(file, protocol)}"></iframe>'
            )
        lines = {"promises": promises, "costs": costs, "commands": commands}[what]()
        return "\n".join(lines)

    return ASKED.sub(made, markdown)


def on_files(files: Any, config: Any) -> Any:
    """Add the pages of executions that are asked for."""
    for markdown in sorted(DOCS.glob("*.md")):
        for what, file, protocol in ASKED.findall(markdown.read_text(encoding="utf-8")):
            name = page_name(file, protocol)
            if what == "page" and files.get_file_from_path(name) is None:
                shown = view(events_of(file, protocol), title=f"{Path(file).stem}, {protocol}").page
                files.append(File.generated(config, name, content=shown))
    return files


# ---------------------------------------------------------------- executions


def page_name(file: str, protocol: str) -> str:
    return f"executions/{Path(file).stem}-{protocol}.html"


@cache
def events_of(file: str, protocol: str) -> tuple[Event, ...]:
    """What happens when a schedule is replayed under a protocol."""
    schedule = read_schedule(DOCS / file)
    kind = protocol_named(protocol)
    known = {each.name for each in fields(kind.Options)}
    given = {name: value for name, value in schedule.options.items() if name in known}
    options, _ = make_options(kind, schedule.system, given)
    return tuple(replay(schedule, kind, options).events)


def drawing(file: str, protocol: str) -> str:
    """The same as text, with a ✗ where something is delivered before its cause."""
    events = events_of(file, protocol)
    deliveries = {(each.process, each.message): each.id for each in events if each.kind == "deliver"}
    marks = {
        deliveries[found.process, found.delivered]: f"before {found.before}"
        for found in judge(events).violations
    }
    return space_time(events, WIDTH, marks)


# ---------------------------------------------------------------- tables


def promises() -> Iterator[str]:
    """What each protocol promises and needs, from the protocols themselves."""
    yield "| protocol | sends to | promises | a stamp counts | needs | sensible up to |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for kind in PROTOCOLS.values():
        to = "groups" if kind.grouped else "everybody" if kind.broadcast else "any processes"
        claims = kind.PROMISES
        kept = {
            "causal order": claims.causal,
            "as early as possible": claims.early,
            "one order for all": claims.total,
            "bears loss": claims.loss,
            "recovers from damage": claims.damage,
        }
        told = ", ".join(name for name, promised in kept.items() if promised) or "nothing: it is a control"
        wanted = {
            "null messages": kind.nulls,
            "clocks": kind.clocked,
            "FIFO links (restored)": kind.fifo_links,
        }
        needs = ", ".join(name for name, wants in wanted.items() if wants)
        most = f"{kind.sensible} processes" if kind.sensible else ""
        yield f"| {' | '.join((f'`{kind.name}`', to, told, kind.counts, needs, most))} |"
    yield ""
    for kind in PROTOCOLS.values():
        yield f"- `{kind.name}`: {kind.title}"


def costs() -> Iterator[str]:
    """The same messages with the same delays under every protocol that can send them."""
    yield f"{MESSAGES} messages of {SIZE} processes each, seed {SEED}, measured when this page was built."
    for shape, words in SHAPES.items():
        yield from ("", f"**{words}** (`{shape}`)", "")
        yield "| protocol | deliveries too early | bytes per stamp | extra per message | added delay |"
        yield "| --- | ---: | ---: | ---: | ---: |"
        for kind in PROTOCOLS.values():
            if (kind.grouped and shape == "unicast") or (kind.broadcast and shape != "all"):
                continue
            system = System(named_processes(SIZE), groups_of(shape, SIZE, SEED))
            options, _ = make_options(kind, system, {})
            told = run(kind, options, Workload(system, MESSAGES, 1.0, delay_of("exp:1"), SEED)).summary()
            extra = told["control_messages"] / MESSAGES
            yield (
                f"| `{kind.name}` | {told['violations']} | {told['stamp_bytes_mean']:.1f} | {extra:.2f} "
                f"| {told['added_delay_mean']:.2f} |"
            )


def commands() -> Iterator[str]:
    """Every command's own help."""
    above = click.Context(cli, info_name="causet")
    for name in cli.list_commands(above):
        command = cli.get_command(above, name)
        assert command is not None
        below = click.Context(command, info_name=name, parent=above, terminal_width=WIDTH)
        yield from (f"## {name}", "", "```text", command.get_help(below), "```", "")

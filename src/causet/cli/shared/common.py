"""What the commands about protocols share: options, and systems made from names and shapes."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from causet.cli.shared.printing import warn
from causet.errors import BadInput, quote
from causet.files import check_output
from causet.model import Separator, System, named_processes
from causet.protocols import PROTOCOLS, Options, Protocol, as_printed_rows, flags, make_options
from causet.topology import (
    GROUP_SHAPES,
    LINK_SHAPES,
    MOST_PROCESSES,
    SEPARABLE,
    build_system,
    groups_of,
    links_of,
    read_topology,
    separators_of,
)

F = TypeVar("F", bound=Callable[..., Any])


def as_printed_option(function: F) -> F:
    """`--as-printed`, alone or with rows of the errata."""
    return click.option(
        "--as-printed",
        is_flag=False,
        flag_value="",
        default=None,
        metavar="[ROW,…]",
        help="Follow the rules as printed in the paper: for the named rows of the errata (M4; H1,H2), or for "
        "all rows of the protocol except M1 and H6, which other printed text contradicts.  [default: none]",
    )(function)


def protocol_option(function: F) -> F:
    return click.option(
        "--protocol",
        "-p",
        "protocol",
        required=True,
        metavar="NAME",
        help=f"One of {', '.join(PROTOCOLS)}.",
    )(function)


def open_groups_options(function: F) -> F:
    """`--at-once` and `--open`: what of the group protocols only those for open groups can do."""
    function = click.option(
        "--open",
        "opens",
        is_flag=True,
        help="Let every process send to every group, a member or not (not vector, fast, slow, relative).  "
        "[default: to its own groups]",
    )(function)
    return click.option(
        "--at-once",
        type=int,
        default=None,
        metavar="N",
        help="Largest number of groups that one message goes to (not vector, fast, slow, relative).  "
        "[default: 1; 2 to explore]",
    )(function)


def settings_option(function: F) -> F:
    """The protocols' own options."""
    for name, text in reversed(flags().items()):
        function = click.option(f"--{name}", default=None, metavar="N", help=text)(function)
    return click.option(
        "--set",
        "extra",
        multiple=True,
        metavar="NAME=VALUE",
        help="Set any option of the protocol, such as r9=off or variant=neighbours; can be repeated. "
        "`causet protocols` lists the options and their defaults.",
    )(function)


def settings_of(named: Mapping[str, Any], extra: tuple[str, ...]) -> dict[str, Any]:
    settings = {name: value for name, value in named.items() if value is not None}
    for text in extra:
        name, separator, value = text.partition("=")
        if not separator or not name:
            raise BadInput(f"option {quote(text)}: write NAME=VALUE")
        settings[name.strip()] = value.strip()
    return settings


def options_of(
    kind: type[Protocol], system: System, settings: Mapping[str, Any], as_printed: str | None
) -> Options:
    """The options of a protocol; warnings are printed to stderr."""
    options, warnings = make_options(kind, system, settings, as_printed_rows(kind, as_printed))
    if as_printed is not None and not kind.errata:
        warnings.append(f"{kind.name} has no errata, so --as-printed changes nothing")
    warn(*warnings)
    return options


def check_trace_output(path: Path | None) -> None:
    """Raise BadInput if a trace cannot be written to this file."""
    if path is None:
        return
    check_output(path)
    if path.suffix.lower() == ".parquet":
        raise BadInput(f"{path}: a trace is JSON Lines; use a name that ends in .jsonl or .jsonl.gz")


def system_of(
    processes: int, groups: str | None, links: str | None, seed: int, *, default: str = "unicast"
) -> System:
    """A system of `processes` processes, with groups and links given by a shape or a file.

    Groups are those of `groups`, else those in the file of the links, else the default.
    """
    if not 2 <= processes <= MOST_PROCESSES:
        raise BadInput(f"processes = {processes}: must be from 2 to {MOST_PROCESSES:,}")
    names: tuple[str, ...] = named_processes(processes)
    system = System(names)
    if links is not None and _is_file(links, LINK_SHAPES):
        topology = read_topology(links)
        system = _in_file(
            links, topology.processes or names, topology.groups, topology.links, topology.separators
        )
    elif links is not None:
        masks = links_of(links, processes)
        found: tuple[Separator, ...] = ()
        if masks is not None and processes <= SEPARABLE:
            found = separators_of(masks, processes)
        elif masks is not None:
            warn(
                f"causal separators are searched for among up to {SEPARABLE} processes, so R9 has none here; "
                "give them in a file"
            )
        system = System(names, (), masks, found)
    if groups is None and system.groups:
        return system
    groups = default if groups is None else groups
    if groups == "unicast":
        return System(system.processes, (), system.links, system.separators)
    if _is_file(groups, GROUP_SHAPES):
        topology = read_topology(groups)
        if topology.groups is None:
            raise BadInput(f"{groups}: the field `groups` is missing")
        named = _in_file(groups, topology.processes or system.processes, topology.groups, topology.links)
        return System(named.processes, named.groups, named.links or system.links, system.separators)
    return System(system.processes, groups_of(groups, system.size, seed), system.links, system.separators)


def _is_file(text: str, shapes: str) -> bool:
    """Whether a value names a file; a shape is a shape even if a file has its name."""
    return text != "" and text not in shapes.split(", ") and os.path.exists(text)  # noqa: PTH110 (odd text)


def _in_file(path: str, *parts: Any) -> System:
    """The system described by a file; BadInput names the file."""
    try:
        return build_system(*parts)
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from None

"""`causet simulate`: runs a protocol on a seeded network; writes the trace and prints a summary."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from causet.check.runs import Run, run
from causet.cli.shared.agreement import disagreement_lines, one_order_option
from causet.cli.shared.common import (
    as_printed_option,
    check_trace_output,
    open_groups_options,
    options_of,
    protocol_option,
    settings_of,
    settings_option,
    system_of,
)
from causet.cli.shared.printing import (
    json_option,
    print_json,
    progress_bar,
    say,
    warn,
)
from causet.errors import BadInput, printable, quote
from causet.formats.trace import trace_writer
from causet.model import System, with_several
from causet.protocols import check_open_groups, protocol_named
from causet.simulate.arrivals import check_packets, packets_in
from causet.simulate.network import Network
from causet.simulate.record import Observer, Recorder
from causet.simulate.systems import Setting
from causet.simulate.workload import DELAYS, Workload, delay_of
from causet.verdict import exit_code, judged_status

FAR_BEYOND = 16
"""Multiple of its sensible size at which a protocol would fill any memory."""


@click.command()
@protocol_option
@click.option("--processes", "-n", default=8, show_default=True, help="Number of processes.")
@click.option(
    "--groups",
    default=None,
    metavar="SHAPE",
    help="Groups: all, unicast, ring:SIZE, random:COUNTxSIZE, pairs, chain, twins, or a YAML file with "
    "`groups`.  [default: unicast; ring:4 for group protocols, all for broadcast]",
)
@open_groups_options
@click.option("--messages", "-m", default=1000, show_default=True, help="Number of messages.")
@click.option("--rate", default=1.0, show_default=True, help="Messages per process and unit of time.")
@click.option("--delay", default="exp:1", show_default=True, metavar="D", help=f"Delay, one of {DELAYS}.")
@click.option("--fifo/--no-fifo", default=False, show_default=True, help="Whether links keep the order.")
@click.option(
    "--links",
    default=None,
    metavar="SHAPE",
    help="Links between processes: full, path, star, cycle, tail (a triangle with a tail), or a YAML file "
    "with `links` and `separators`.  [default: full]",
)
@click.option("--skew", type=float, default=None, help="Largest clock offset in ticks (merge).  [default: ε]")
@click.option(
    "--loss", default=0.0, show_default=True, help="Probability that a copy is lost, below 1 (merge)."
)
@click.option(
    "--duplicate", "duplication", default=0.0, show_default=True, help="Probability of a duplicate, below 1."
)
@click.option(
    "--corrupt",
    "corruption",
    default=0.0,
    show_default=True,
    help="Probability of a damaged stamp, below 1 (merge).",
)
@click.option(
    "--corrupt-state",
    "state_corruption",
    default=0.0,
    show_default=True,
    metavar="RATE",
    help="Probability, per tick and process, that any fields of its state are damaged, below 1 (merge with "
    "clock=kn; the clock rc cannot recover, since its timestamps have no bounds that show damage).",
)
@click.option(
    "--skew-fault",
    default=None,
    metavar="P:T",
    help="Let the clock of process P differ by more than ε for T units of time, once, and then be right "
    "again (merge with clock=kn).  [default: clocks stay within ε]",
)
@click.option(
    "--own-copies",
    is_flag=True,
    help="Address every message to its sender, too: merge delivers that copy at its place in the one order, "
    "the other protocols at the send.  [default: to others only]",
)
@one_order_option()
@settings_option
@as_printed_option
@click.option("--seed", default=1, show_default=True, help="Random seed: the same one gives the same bytes.")
@click.option(
    "-o",
    "output",
    type=click.Path(path_type=Path),
    default=None,
    help="File for the trace, .jsonl or .jsonl.gz.  [default: not written]",
)
@click.option(
    "--packets",
    type=click.Path(path_type=Path),
    default=None,
    metavar="DIR",
    help="New folder for packets.jsonl, with what each process received and sent, and system.yaml: the input "
    "of `causet deliver --protocol`.  [default: not written]",
)
@json_option
def simulate(
    protocol: str,
    processes: int,
    groups: str | None,
    at_once: int | None,
    opens: bool,
    messages: int,
    rate: float,
    delay: str,
    fifo: bool,
    links: str | None,
    skew: float | None,
    loss: float,
    duplication: float,
    corruption: float,
    state_corruption: float,
    skew_fault: str | None,
    own_copies: bool,
    one_order: bool,
    extra: tuple[str, ...],
    as_printed: str | None,
    seed: int,
    output: Path | None,
    packets: Path | None,
    as_json: bool,
    **named: Any,
) -> int:
    """Run a protocol on a simulated network and judge the run.

    It prints a summary, and writes the trace with -o. The exit code is 1 if a message was delivered out of
    causal order or twice, or is stuck; with --one-order also if processes deliver in different orders. What a
    protocol does while it recovers from faults is excused, and counted; the exit code is 3 if that leaves
    nothing to judge.

    \b
    Examples:
      causet simulate --protocol relative --groups ring:4 -n 16 -m 5000 -o trace.jsonl
      causet simulate --protocol merge --groups all --own-copies --one-order
      causet simulate --protocol frontiers --groups random:12x4 --at-once 2 --open
      causet simulate --protocol merge --corrupt-state 0.001 --skew-fault p2:20
    """
    kind = protocol_named(protocol)
    check_trace_output(output)
    default = "all" if kind.broadcast else "ring:4" if kind.grouped else "unicast"
    if default == "ring:4" and processes < 5:
        default = "all"
    system = system_of(processes, groups, links, seed, default=default)
    groups = groups or (links if links is not None and system.groups else default)
    if kind.grouped and not system.groups:
        raise BadInput(f"{kind.name} sends to groups, and {groups} has none; try --groups ring:2")
    if kind.broadcast and [group.members for group in system.groups] != [system.everyone]:
        raise BadInput(f"{kind.name} is for broadcast; use --groups all")
    check_open_groups(kind, at_once, opens)
    if at_once is not None:
        system = replace(system, groups=with_several(system.groups, at_once))
    if kind.sensible is not None and system.size > FAR_BEYOND * kind.sensible:
        raise BadInput(
            f"{kind.name} is sensible up to about {kind.sensible} processes, and {system.size} are far too "
            "many: its state and stamps grow with their square"
        )
    if kind.sensible is not None and system.size > kind.sensible:
        warn(
            f"{kind.name} is sensible up to about {kind.sensible} processes; its state and stamps grow fast, "
            f"and {system.size} may take very long"
        )
    given = settings_of(named, extra)
    options = options_of(kind, system, given, as_printed)
    setting = Setting(kind, system, options)
    if packets is not None:
        check_packets(packets, setting)
    wrong = None if skew_fault is None else _skew_fault(skew_fault, system)
    network = Network(fifo, loss, duplication, corruption, skew, state_corruption, wrong)
    delays = delay_of(delay)
    warn(*options.check_delays(delays.least, delays.most))
    workload = Workload(system, messages, rate, delays, seed, own_copies, opens)
    network.check(kind, options)
    with progress_bar(f"{kind.name}", messages) as progress, ExitStack() as written:
        observers: list[Observer] = []
        if output is not None:
            observers.append(Recorder(system, written.enter_context(trace_writer(output))))
        if packets is not None:
            observers.append(written.enter_context(packets_in(packets, setting, given)))
        result = run(
            kind, options, workload, network, one_order=one_order, observers=observers, progress=progress
        )
    status = judged_status(result.bad, not result.findings.certain, result.tally.deliveries)
    if not result.tally.deliveries and not result.bad:
        status = "vacuous"
    if as_json:
        print_json({"status": status, **result.summary(), "groups": groups, "seed": seed})
    else:
        say(*_told(result, output))
        if packets is not None:
            say(f"  packets: {packets}")
    return exit_code(status)


def _skew_fault(text: str, system: System) -> tuple[int, float]:
    """The process and the time of `--skew-fault`."""
    name, colon, length = text.rpartition(":")
    try:
        if not colon:
            raise ValueError
        return system.index(name), float(length)
    except ValueError:
        raise BadInput(f"skew-fault {quote(text)}: write a process and a time, such as p2:20") from None


def _told(result: Run, output: Path | None) -> list[str]:
    summary = result.summary()
    lines = [
        f"{summary['protocol']}: {summary['messages']:,} messages of {summary['processes']:,} processes, "
        f"{summary['deliveries']:,} deliveries, {summary['control_messages']:,} control messages"
        + _lost(summary),
        f"  stamp entries ({result.kind.counts}): {summary['stamp_entries_mean']:.1f} on average, "
        f"{summary['stamp_entries_max']} at most",
        f"  stamp bytes: {summary['stamp_bytes_mean']:.1f} on average, {summary['stamp_bytes_max']} at most",
        f"  delay added over as early as possible: {summary['added_delay_mean']:.3f} on average, "
        f"{summary['added_delay_max']:.3f} at most",
    ]
    if result.findings.violations:
        first = result.findings.first[0]
        lines.append(
            f"  OUT OF ORDER: {result.findings.violations:,} deliveries; the first: "
            f"{printable(first.process)} delivered {printable(first.delivered)} before "
            f"{printable(first.before)}, which precedes it"
        )
    if summary["faults"]:
        lines.append(
            f"  {_times(summary['faults'])} the state of a process was damaged, or its clock was wrong"
        )
    if summary["excused"]:
        lines.append(
            f"  {summary['excused']:,} deliveries out of order or twice while it recovered from faults, "
            "which it does not promise to prevent"
        )
    if result.findings.duplicates:
        lines.append(f"  TWICE: {result.findings.duplicates:,} deliveries")
    lines += [f"  {line}" for line in disagreement_lines(result.disagreements)]
    if summary["stuck"]:
        lines.append(f"  STUCK: {summary['stuck']:,} copies were never delivered; for one of them:")
        lines.append(f"    {result.why_stuck()}")
    if result.tally.broken:
        lines.append(f"  BROKEN: {result.tally.broken}")
    if not result.bad:
        lines.append(f"  {_clean(result)}")
    if output is not None:
        lines.append(f"  trace: {output}")
    return lines


def _clean(result: Run) -> str:
    """What is known where nothing speaks against it."""
    deliveries, judged = result.tally.deliveries, result.findings.certain
    if not deliveries:
        return "nothing was delivered, so there is nothing to judge"
    if not judged:
        return "nothing is known of the order: all deliveries came while it recovered from faults"
    agreed = ", and all in one order" if result.disagreements is not None else ""
    most = f" ({judged:,} deliveries; the others came while it recovered from faults)"
    return f"every process delivered in causal order{agreed}{most if judged < deliveries else ''}"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"


def _lost(summary: dict[str, Any]) -> str:
    if not summary["lost"]:
        return ""
    refused = (
        f" ({summary['refused']:,} of them refused: later than δ, or damaged)" if summary["refused"] else ""
    )
    return f", {summary['lost']:,} copies lost{refused}"

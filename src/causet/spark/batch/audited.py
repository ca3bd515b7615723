"""The result of `audit()`, as values, as JSON and as text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from pyspark.sql import DataFrame

from causet.errors import listed, quote
from causet.escapes import columns
from causet.formats.execution import Fault
from causet.spark.batch.explanation import fault_lines

TOLD = 10
"""Pairs of processes that the text names."""


@dataclass(frozen=True)
class Tally:
    """What one order makes of effects and causes that have a place in it."""

    effects: int
    links: int
    wrong_effects: int
    """effects that stand before at least one of their causes"""
    wrong_links: int
    tied_effects: int = 0
    """further effects that stand level with a cause in another process: they may come out either way"""
    tied_links: int = 0

    @property
    def share(self) -> float:
        """The wrong ones among the effects."""
        return self.wrong_effects / self.effects if self.effects else 0.0


class Pair(NamedTuple):
    """Links from one process to another; a row of `Audit.pairs`."""

    cause_process: str
    effect_process: str
    links: int
    wrong_in_file: int
    wrong_in_time: int
    worst_skew: int | float | None
    """by how much a cause's time is greater than its effect's, at most; None if it never is"""
    worst_cause: str | None
    worst_effect: str | None
    """the ids of that link"""


@dataclass(frozen=True)
class Audit:
    """How an execution's causes and effects stand. An effect is an event with a direct cause; a link is an
    effect with one of its direct causes, counted once."""

    events: int
    processes: int
    effects: int
    links: int
    untimed: int
    """events without a time, which take no part in time order"""
    in_file_order: Tally
    in_time_order: Tally
    in_causal_order: Tally
    pairs: DataFrame
    """every pair of processes with a link, as `Pair`; the worst in time order first"""
    pair_count: int
    wrong_pairs: int
    """those with a link that is wrong in file order or in time order"""
    worst: tuple[Pair, ...]
    """the first few of `pairs`"""
    faults: tuple[Fault, ...]

    @property
    def status(self) -> str:
        """`measured`, since an audit counts and does not judge; `vacuous` if there is no effect to count."""
        return "measured" if self.effects else "vacuous"

    def summary(self, most: int | None = None) -> dict[str, Any]:
        """All of it as a JSON value, with the first `most` pairs or every one."""
        pairs = self.pairs if most is None else self.pairs.limit(most)
        return {
            "status": self.status,
            "events": self.events,
            "processes": self.processes,
            "effects": self.effects,
            "links": self.links,
            "untimed": self.untimed,
            "orders": {
                name: {**asdict(tally), "share": tally.share if tally.effects else None}
                for name, tally in self._tallies().items()
            },
            "pair_count": self.pair_count,
            "wrong_pairs": self.wrong_pairs,
            "pairs": [row.asDict() for row in pairs.collect()],
            "faults": [asdict(fault) for fault in self.faults],
        }

    def to_json(self, most: int | None = None) -> str:
        return json.dumps(self.summary(most), ensure_ascii=False, allow_nan=False)

    def _tallies(self) -> dict[str, Tally]:
        return {"file": self.in_file_order, "time": self.in_time_order, "causal": self.in_causal_order}

    def told(self) -> str:
        """As text: a few sentences, the worst pairs of processes, the faults of the log."""
        lines = [
            f"{self.status}: events {self.events:,}, processes {self.processes:,}, effects {self.effects:,}, "
            f"links between cause and effect {self.links:,}.",
            f"In file order, {_before(self.in_file_order)} stand before their cause.",
            *self._told_of_time(),
            f"In causal order, {_before(self.in_causal_order)} stand before their cause.",
            *self._told_of_pairs(),
            *fault_lines(self.faults),
        ]
        return "\n".join(lines)

    def _told_of_time(self) -> Iterator[str]:
        tally = self.in_time_order
        if not tally.links:
            if self.links:
                yield "No effect and its cause both have a time to sort by."
            return
        ties = ""
        if tally.tied_effects:
            ties = f"; {tally.tied_effects:,} more might, as their cause has the same time"
        yield f"Sorted by time, {_before(tally)} would stand before their cause{ties}."
        if self.untimed:
            yield f"Events without a time, which take no part in that: {self.untimed:,}."

    def _told_of_pairs(self) -> Iterator[str]:
        wrong = [pair for pair in self.worst if pair.wrong_in_file or pair.wrong_in_time]
        if not wrong:
            return
        yield "The worst pairs of processes:"
        head = ("cause", "effect", "links", "wrong in file", "wrong in time", "worst skew", "")
        table = [head, *map(_cells, wrong)]
        widths = [max(map(columns, column)) for column in zip(*table, strict=True)]
        for row in table:
            names = [
                cell + " " * (width - columns(cell)) for cell, width in zip(row[:2], widths[:2], strict=True)
            ]
            numbers = [f"{cell:>{width}}" for cell, width in zip(row[2:6], widths[2:6], strict=True)]
            yield "  " + "  ".join([*names, *numbers, row[6]]).rstrip()
        if self.wrong_pairs > len(wrong):
            yield f"  and {self.wrong_pairs - len(wrong):,} more pairs"


def _before(tally: Tally) -> str:
    """Such as `5,621 of 46,794 effects (12 %)`."""
    counted = f"{tally.wrong_effects:,} of {tally.effects:,} effects"
    percent = 100 * tally.share
    if not percent:
        return counted
    shown = f"{percent:.0f}" if percent >= 9.95 else f"{percent:.1f}" if percent >= 0.05 else "less than 0.1"
    return f"{counted} ({shown} %)"


def _cells(pair: Pair) -> tuple[str, ...]:
    worst = skew = ""
    if pair.worst_skew is not None:
        skew = f"{pair.worst_skew:,}"
        worst = f"{quote(pair.worst_cause)} → {quote(pair.worst_effect)}"
    return (
        listed([pair.cause_process]),
        listed([pair.effect_process]),
        f"{pair.links:,}",
        f"{pair.wrong_in_file:,}",
        f"{pair.wrong_in_time:,}",
        skew,
        worst,
    )

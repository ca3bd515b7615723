"""`audit()`: how many effects stand before their causes in file order, in time order, in ours.

Tasks compare the links of one bucket of events each (see `ends`), and only sums leave them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql import types as T

from causet.errors import BadInput, listed, quote
from causet.escapes import columns
from causet.formats.execution import Fault
from causet.spark.batch.links import PLACE, Layout, Met, both_ends, lay_out, meet, none_of, values_of
from causet.spark.skeleton.census import RANK, Census, field, take_census
from causet.spark.skeleton.faults import names_of
from causet.spark.skeleton.skeleton import Batches

Array = np.ndarray[Any, Any]

TOLD = 10
"""Pairs of processes that people are told of."""
TALLY_ROWS = (
    "cause_process string, effect_process string, links long, wrong_in_file long, wrong_in_time long, "
    "worst_skew {time}, cause_rank long, effect_rank long, totals string"
)


# ---------------------------------------------------------------- what is found


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
    """by how much a cause's time is greater than its effect's, at the most; None if it never is"""
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
        """For people: a few sentences, the worst pairs of processes, the faults of the log."""
        lines = [
            f"{self.status}: events {self.events:,}, processes {self.processes:,}, effects {self.effects:,}, "
            f"links between cause and effect {self.links:,}.",
            f"In file order, {_before(self.in_file_order)} stand before their cause.",
            *self._told_of_time(),
            f"In causal order, {_before(self.in_causal_order)} stand before their cause.",
            *self._told_of_pairs(),
        ]
        for fault in self.faults:
            lines.append(f"FAULT: {fault.kind}: {fault.count:,}")
            lines += [f"  {place}" for place in fault.places]
            if fault.count > len(fault.places):
                lines.append(f"  and {fault.count - len(fault.places):,} more")
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


# ---------------------------------------------------------------- the audit


def audit(events: DataFrame, file_order: str | None = None) -> Audit:
    """How many effects of an execution stand before a direct cause (the event before in their process, a
    parent, the send of their message), by each of three orders.

    `file_order` names a column of integers that grows as events stand in the file; without it they stand as
    the DataFrame has them. In time order a cause is wrong if its time is greater than the effect's; equal
    times in different processes are counted as ties. Bad input raises `causet.model.BadInput`.
    """
    placed = events.withColumn(PLACE, _in_file(events, file_order))
    numbered, census = take_census(placed)
    layout = lay_out(census, np.int64)
    with both_ends(numbered, census, values_of(numbered, census, layout), layout) as ends:
        task = TallyTask(layout, census.processes)
        time = "double" if census.floats else "long"
        found = ends.rows.mapInArrow(task, TALLY_ROWS.format(time=time)).persist()
        totals: Counter[str] = Counter()
        for row in found.where(F.col("totals").isNotNull()).select("totals").collect():
            totals.update(json.loads(row.totals))
    if totals["unplaced"]:
        found.unpersist()
        raise BadInput(f"column {quote(file_order)}: {totals['unplaced']:,} events have nothing there")
    pairs = _pairs(found.where(F.col("totals").isNull()))
    wrong = (F.col("wrong_in_file") > 0) | (F.col("wrong_in_time") > 0)
    (counts,) = pairs.agg(F.count(F.lit(1)), F.count(F.when(wrong, 1))).collect()
    return Audit(
        events=census.events,
        processes=len(census.processes),
        effects=totals["effects"],
        links=totals["links"],
        untimed=totals["untimed"],
        in_file_order=_tally(totals, "file"),
        in_time_order=_tally(totals, "time", effects="timed effects", links="timed links"),
        in_causal_order=_tally(totals, "causal"),
        pairs=_worst_first(_with_ids(pairs, numbered, census)).select(*Pair._fields),
        pair_count=counts[0],
        wrong_pairs=counts[1],
        worst=_named(_worst_first(pairs).limit(TOLD).collect(), numbered, census),
        faults=ends.faults,
    )


def _tally(totals: Counter[str], order: str, effects: str = "effects", links: str = "links") -> Tally:
    return Tally(
        effects=totals[effects],
        links=totals[links],
        wrong_effects=totals[f"{order} wrong effects"],
        wrong_links=totals[f"{order} wrong links"],
        tied_effects=totals[f"{order} tied effects"],
        tied_links=totals[f"{order} tied links"],
    )


def _in_file(events: DataFrame, file_order: str | None) -> Column:
    if file_order is None:
        return F.monotonically_increasing_id()
    if file_order not in events.columns:
        raise BadInput(f"there is no column {quote(file_order)} to tell the order of the file")
    kind = events.schema[file_order].dataType
    if not isinstance(kind, T.IntegralType):
        raise BadInput(f"column {quote(file_order)} is of type {kind.simpleString()}; it must be of integers")
    return F.col(f"`{file_order}`")


def _pairs(found: DataFrame) -> DataFrame:
    """What the buckets found, by pair of processes; of two links that are equally bad, the first."""
    ranks = [(-F.col(name)).alias(name) for name in ("cause_rank", "effect_rank")]
    worst = F.struct("worst_skew", *ranks)
    summed = [F.sum(name).alias(name) for name in ("links", "wrong_in_file", "wrong_in_time")]
    return (
        found.groupBy("cause_process", "effect_process")
        .agg(*summed, F.max(worst).alias("worst"))
        .select(
            *("cause_process", "effect_process", "links", "wrong_in_file", "wrong_in_time"),
            F.col("worst.worst_skew"),
            (-F.col("worst.cause_rank")).alias("cause_rank"),
            (-F.col("worst.effect_rank")).alias("effect_rank"),
        )
    )


def _worst_first(pairs: DataFrame) -> DataFrame:
    return pairs.orderBy(
        F.desc("wrong_in_time"),
        F.desc_nulls_last("worst_skew"),
        F.desc("wrong_in_file"),
        "cause_process",
        "effect_process",
    )


def _with_ids(pairs: DataFrame, numbered: DataFrame, census: Census) -> DataFrame:
    """Every pair with the ids of its worst link."""
    for end in ("cause", "effect"):
        process, rank, id = F.col(f"{end}_process"), F.col(f"{end}_rank"), f"worst_{end}"
        if not census.own_ids:
            pairs = pairs.withColumn(id, F.concat(process, F.lit("#"), rank))
            continue
        # Few events are worst; they are picked first, so that only they meet the pairs.
        wanted = pairs.select(process.alias("__of"), rank.alias("__at")).distinct()
        default = F.concat(F.col("process"), F.lit("#"), F.col("seq"))
        ids = (
            numbered.select("process", RANK, F.coalesce(field(numbered, "id"), default).alias(id))
            .join(wanted, (F.col("process") == F.col("__of")) & (F.col(RANK) == F.col("__at")))
            .select("__of", "__at", id)
        )
        same = (process == F.col("__of")) & (rank == F.col("__at"))
        pairs = pairs.join(ids, same, "left").drop("__of", "__at")
    return pairs


def _named(rows: list[Row], numbered: DataFrame, census: Census) -> tuple[Pair, ...]:
    """A few pairs with the ids of their worst links: one look at the events, where `_with_ids` joins."""
    sides = [
        ((row.cause_process, row.cause_rank), (row.effect_process, row.effect_rank))
        for row in rows
        if row.worst_skew is not None
    ]
    ids = {(process, rank): f"{process}#{rank}" for side in sides for process, rank in side}
    if census.own_ids:
        begin = dict(zip(census.processes, census.first[:-1].tolist(), strict=True))
        numbers = {end: begin[end[0]] + end[1] - 1 for end in ids}
        events = names_of(numbered, census, numbers.values())
        ids = {end: events[number][0].id for end, number in numbers.items()}
    found = []
    for *counts, cause_rank, effect_rank in rows:
        cause, effect = counts[:2]
        found.append(Pair._make([*counts, ids.get((cause, cause_rank)), ids.get((effect, effect_rank))]))
    return tuple(found)


# ---------------------------------------------------------------- counting


@dataclass(frozen=True)
class TallyTask:
    """Compares the links of one bucket: rows of pairs of processes, and one with the totals."""

    layout: Layout
    processes: tuple[str, ...]

    def __call__(self, batches: Batches) -> Batches:
        met = meet(batches, self.layout)
        if met is None:
            return
        sides = np.searchsorted(self.layout.first, np.stack([met.causes, met.effects]), side="right") - 1
        none = none_of(self.layout.time)
        timed = (met.cause.time != none) & (met.effect.time != none)
        flags = {
            "timed": timed,
            "file wrong": met.cause.place > met.effect.place,
            "time wrong": timed & (met.cause.time > met.effect.time),
            "time tied": timed & (met.cause.time == met.effect.time) & (sides[0] != sides[1]),
            "causal wrong": met.cause.position > met.effect.position,
        }
        yield self._totals(met, flags)
        if len(met.effects):
            yield self._pairs(met, sides, flags)

    def _totals(self, met: Met, flags: dict[str, Array]) -> pa.RecordBatch:
        totals = {
            "untimed": _count(met.events.time == none_of(self.layout.time)),
            "unplaced": _count(met.events.place == none_of(self.layout.place)),
            "effects": _different(met.effects),
            "links": len(met.effects),
        }
        for name, flag in flags.items():
            totals[f"{name} links"] = _count(flag)
            totals[f"{name} effects"] = _different(met.effects[flag])
        certain = np.isin(met.effects, met.effects[flags["time wrong"]])
        totals["time tied effects"] = _different(met.effects[flags["time tied"] & ~certain])
        columns = [pa.nulls(1, kind) for kind in self._types()[:-1]]
        return self._batch([*columns, pa.array([json.dumps(totals)])])

    def _pairs(self, met: Met, sides: Array, flags: dict[str, Array]) -> pa.RecordBatch:
        pairs, of = np.unique(sides[0] * len(self.processes) + sides[1], return_inverse=True)
        cause, effect = np.divmod(pairs, len(self.processes))

        def counted(flag: Array) -> Any:
            return pa.array(np.bincount(of[flag], minlength=len(pairs)))

        late = np.flatnonzero(flags["time wrong"])
        skew = _skew(met.cause.time[late], met.effect.time[late])
        # The largest of each pair; of equal ones the first, for links are in the order of their events.
        order = np.lexsort((met.effects[late], met.causes[late], -skew, of[late]))
        its, at = np.unique(of[late][order], return_index=True)
        worst = order[at]
        columns = [np.zeros(len(pairs), skew.dtype), *np.zeros((2, len(pairs)), np.int64)]
        columns[0][its] = skew[worst]
        columns[1][its] = met.causes[late[worst]] - self.layout.first[cause[its]] + 1
        columns[2][its] = met.effects[late[worst]] - self.layout.first[effect[its]] + 1
        unknown = np.ones(len(pairs), np.bool_)
        unknown[its] = False
        names = pa.array(self.processes, pa.string())
        return self._batch(
            [
                names.take(pa.array(cause)),
                names.take(pa.array(effect)),
                counted(np.ones(len(of), np.bool_)),
                counted(flags["file wrong"]),
                counted(flags["time wrong"]),
                *(pa.array(column, mask=unknown) for column in columns),
                pa.nulls(len(pairs), pa.string()),
            ]
        )

    def _types(self) -> list[Any]:
        time = pa.float64() if self.layout.time is np.float64 else pa.int64()
        numbers = [pa.int64()] * 3
        return [pa.string(), pa.string(), *numbers, time, pa.int64(), pa.int64(), pa.string()]

    def _batch(self, columns: list[Any]) -> pa.RecordBatch:
        names = [part.split()[0] for part in TALLY_ROWS.split(", ")]
        return pa.RecordBatch.from_arrays(columns, names=names)


def _count(flags: Array) -> int:
    return int(np.count_nonzero(flags))


def _different(ascending: Array) -> int:
    return int(np.count_nonzero(np.diff(ascending, prepend=-1)))


def _skew(cause: Array, effect: Array) -> Array:
    """How much greater the causes' times are; they are. What no number of their type holds is the largest."""
    if cause.dtype.kind == "f":
        with np.errstate(over="ignore"):
            least: Array = np.minimum(cause - effect, np.finfo(np.float64).max)
        return least
    found: Array = cause.view(np.uint64) - effect.view(np.uint64)
    return np.minimum(found, np.uint64(np.iinfo(np.int64).max)).astype(np.int64)

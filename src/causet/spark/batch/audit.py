"""`audit()`: how many effects stand before their causes in file order, in time order, in ours.

Tasks compare the links of one bucket of events each (see `links`), and only sums leave them.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql import types as T

from causet.errors import BadInput, quote
from causet.kernels.arrays import Array
from causet.kernels.logs.pages import processes_of
from causet.spark.batch.audited import TOLD, Audit, Pair, Tally
from causet.spark.batch.links import PLACE, Layout, Met, both_ends, layout_of, meet, values_of
from causet.spark.read.arrow import Table
from causet.spark.skeleton.blobs import Batches
from causet.spark.skeleton.census import RANK, Census, none_of, own_id, take_census
from causet.spark.skeleton.faults import names_of

FEW_PAIRS = 20_000
"""Pairs of processes that the driver looks at itself."""
TALLY_ROWS = (
    "cause_process string, effect_process string, links long, wrong_in_file long, wrong_in_time long, "
    "worst_skew {time}, cause_rank long, effect_rank long, totals string"
)


def audit(events: DataFrame, file_order: str | None = None) -> Audit:
    """How many effects of an execution stand before a direct cause (the event before in their process, a
    parent, the send of their message), by each of three orders.

    `file_order` names a column of integers that grows as events stand in the file; without it they stand as
    the DataFrame has them. In time order a cause is wrong if its time is greater than the effect's; equal
    times in different processes are counted as ties. Bad input raises `causet.errors.BadInput`.
    """
    return audit_files(events, None, file_order)


def audit_files(events: DataFrame, table: Table | None, file_order: str | None) -> Audit:
    """The same, where `table` may have the same events, in the order of the file, for workers to read
    themselves."""
    placed = events.withColumn(PLACE, _in_file(events, file_order))
    numbered, census = take_census(placed, table=table)
    layout = layout_of(census, np.int64)
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
    count, wrong, worst = _told(pairs)
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
        pair_count=count,
        wrong_pairs=wrong,
        worst=_named(worst, numbered, census),
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
        raise BadInput(f"there is no column {quote(file_order)} with the order of the file")
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


def _told(pairs: DataFrame) -> tuple[int, int, list[Row]]:
    """How many pairs there are, how many of them wrong, and the worst: from one query, if they are few."""
    few = pairs.limit(FEW_PAIRS + 1).collect()
    if len(few) <= FEW_PAIRS:
        wrong = [row for row in few if row.wrong_in_file or row.wrong_in_time]
        return len(few), len(wrong), sorted(few, key=_badness)[:TOLD]
    is_wrong = (F.col("wrong_in_file") > 0) | (F.col("wrong_in_time") > 0)
    (counts,) = pairs.agg(F.count(F.lit(1)), F.count(F.when(is_wrong, 1))).collect()
    return counts[0], counts[1], _worst_first(pairs).limit(TOLD).collect()


def _badness(row: Row) -> tuple[Any, ...]:
    """As `_worst_first` has it."""
    skew = (1, 0) if row.worst_skew is None else (0, -row.worst_skew)
    return (-row.wrong_in_time, skew, -row.wrong_in_file, row.cause_process, row.effect_process)


def _with_ids(pairs: DataFrame, numbered: DataFrame, census: Census) -> DataFrame:
    """Every pair with the ids of its worst link."""
    for end in ("cause", "effect"):
        process, rank, id = F.col(f"{end}_process"), F.col(f"{end}_rank"), f"worst_{end}"
        if not census.own_ids:
            pairs = pairs.withColumn(id, F.concat(process, F.lit("#"), rank))
            continue
        # Few events are worst; they are picked first, so that only they meet the pairs.
        wanted = pairs.select(process.alias("__of"), rank.alias("__at")).distinct()
        ids = (
            numbered.select("process", RANK, own_id(numbered).alias(id))
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
        sides = processes_of(self.layout.first, np.stack([met.causes, met.effects]))
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
    """By how much the causes' times are greater, cut off at the largest number of their type."""
    if cause.dtype.kind == "f":
        with np.errstate(over="ignore"):
            least: Array = np.minimum(cause - effect, np.finfo(np.float64).max)
        return least
    found: Array = cause.view(np.uint64) - effect.view(np.uint64)
    return np.minimum(found, np.uint64(np.iinfo(np.int64).max)).astype(np.int64)

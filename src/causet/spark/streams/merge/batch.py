"""The merge of a batch: sorted by all workers, each row with its position."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from causet.envelope import ALL, DOMAIN
from causet.spark.columns import quoted
from causet.spark.streams.merge.rows import (
    CODE,
    IS_BEAT,
    POSITION,
    PROBLEM,
    STATUS,
    Extra,
    Times,
    problem_with,
    problems,
)
from causet.spark.streams.messages.columns import columns_of_identity
from causet.spark.streams.pack import FAULT, OWN
from causet.status import BEAT, DELIVERED, DIVERTED

BINS = 4096
"""Number of intervals of time in which messages are counted at once."""
ROWS_PER_PART = 1_000_000
MOST_PARTS = 1000
ROUNDS = 5
"""How often a piece of time that has too many is counted again in finer ones."""
_PART = f"{OWN}part"


def sorted_rows(stamped: DataFrame, times: Times, names: Iterable[str], epsilon: int) -> DataFrame:
    """Sorted by all workers, each row with its position."""
    judged = stamped.withColumn(CODE, problem_with(times, epsilon, extra=Extra.of_rows(stamped)))
    code, rc = F.col(CODE), F.col(times.rc)
    counts = _counts(judged, times.rc)
    edges, sizes = _parts(counts)
    part = F.when(code.isNotNull(), len(sizes)).otherwise(_which(rc, edges, 0, len(edges)))
    offsets = [sum(sizes[:number]) for number in range(len(sizes) + 1)]
    identity = [name for name in (*columns_of_identity(stamped), "source") if name in stamped.columns]
    process = F.coalesce(*(F.col(name).cast("string") for name in identity))
    order = [rc, F.col(times.r), process, F.col(times.sequence)]
    if DOMAIN in stamped.columns:
        order.append(F.coalesce(F.col(DOMAIN).cast("string"), F.lit(ALL)))
    inside = F.monotonically_increasing_id().bitwiseAND(F.lit((1 << 33) - 1))
    position = F.when(code.isNull(), F.element_at(F.array(*map(F.lit, offsets)), F.col(_PART) + 1) + inside)
    status = F.when(code.isNull(), DELIVERED).when(code == IS_BEAT, BEAT).otherwise(DIVERTED)
    words = F.when(code >= 0, F.element_at(F.array(*map(F.lit, problems(epsilon))), code + 1))
    if FAULT in stamped.columns:
        words = F.coalesce(F.col(FAULT), words)
    kept = [quoted(name) for name in names if not name.startswith(OWN)]
    return (
        judged.withColumn(_PART, part)
        .repartitionById(len(sizes) + 1, _PART)
        .sortWithinPartitions(*order)
        .select(*kept, position.cast("long").alias(POSITION), status.alias(STATUS), words.alias(PROBLEM))
    )


Counts = list[tuple[int, int, int]]
"""Pieces of time, each [from, to), and how many messages are in it, in order."""


def _counts(judged: DataFrame, rc: str) -> Counts:
    """How many messages there are in pieces of time that are small enough."""
    fine = judged.where(F.col(CODE).isNull()).select(rc)
    low, high, rows = fine.agg(F.min(rc), F.max(rc), F.count(rc)).collect()[0]
    if not rows:
        return []
    pieces: Counts = [(low, high + 1, rows)]
    most = max(ROWS_PER_PART // 4, rows // (4 * MOST_PARTS))
    for _ in range(ROUNDS):
        heavy = [piece for piece in pieces if piece[2] > most and piece[1] - piece[0] > 1]
        if not heavy:
            break
        finer = _finer(fine, rc, heavy)
        pieces = sorted([*(piece for piece in pieces if piece not in heavy), *finer])
    return pieces


def _finer(fine: DataFrame, rc: str, heavy: Counts) -> Counts:
    """The same messages, counted in finer pieces."""
    found: Counts = []
    for low, high, _ in heavy[:8]:  # pieces that are heavy all over would take a round each
        width = -(-(high - low) // BINS)
        # In whole numbers: as a fraction, a time so far away would fall into the bin beside its own.
        bins = F.expr(f"({quoted(rc)} - {low}) div {width}").alias("bin")
        inside = fine.where((F.col(rc) >= low) & (F.col(rc) < high))
        for row in inside.groupBy(bins).count().collect():
            start = low + row["bin"] * width
            found.append((start, min(start + width, high), row["count"]))
    return [*found, *heavy[8:]]


def _parts(counts: Counts) -> tuple[list[int], list[int]]:
    """Where parts begin, but for the first one, and how many messages each has."""
    rows = sum(count for _, _, count in counts)
    wanted = min(max(1, -(-rows // ROWS_PER_PART)), MOST_PARTS)
    edges: list[int] = []
    sizes = [0]
    done = 0
    for low, _, count in counts:
        if sizes[-1] and done * wanted >= rows * len(sizes):
            edges.append(low)
            sizes.append(0)
        sizes[-1] += count
        done += count
    return edges, sizes


def _which(rc: Column, edges: list[int], begin: int, end: int) -> Column:
    """The number of edges in begin … end that are not above a row's time, with those before: a search by
    halves, as an expression."""
    if begin == end:
        return F.lit(begin)
    middle = (begin + end) // 2
    return F.when(rc < edges[middle], _which(rc, edges, begin, middle)).otherwise(
        _which(rc, edges, middle + 1, end)
    )

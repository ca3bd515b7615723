"""`merge()`: one order for all subscribers, consistent with causality, by the ⟨r, c⟩ time of the messages.

The order is that of (r + c, r, source, sequence). It depends on the messages alone: mergers that see the same
messages agree without talking to each other, and a merger of mergers gives the same order, since stamps pass
as they are.

A batch is a sort, by all workers: a first look counts messages by time, so that every worker knows where its
own begin. A stream is in `merging_streams`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from causet.delivery import DELIVERED, DIVERTED
from causet.model import BadInput
from causet.rcclock import FAR, largest_c
from causet.spark.direct import ParquetFiles
from causet.spark.durations import milliseconds
from causet.spark.packing import Blobs
from causet.spark.sources_values import quoted
from causet.stamp import MOST_SEQUENCE

POSITION, STATUS, PROBLEM = "position", "status", "problem"
BINS = 4096
"""Into so many pieces of time messages are counted at a time."""
ROWS_PER_PART = 1_000_000
MOST_PARTS = 1000
ROUNDS = 5
"""How often a piece of time that has too many is counted again in finer ones."""
_OWN = "__causet_"
_PART = f"{_OWN}part"


def merge(
    *,
    epsilon: str | int | float,
    delta: str | int | float,
    sources: Sequence[str] = (),
    exclude: Sequence[str] = (),
    horizon: str | int | float | None = None,
    buckets: int = 16,
) -> Merge:
    """Merge messages into one order, for `messages.transform(merge(…))`.

    The messages have the columns `source`, `sequence`, `rc` (r + c) and `r`, in ms; or `causaltime` in place
    of the last two, as the envelope has it.

    :param epsilon: how far the clocks of the sources are apart at most: `"50 ms"`, or seconds.
    :param delta: how long a message is under way at most.
    :param sources: for streams, sources that are waited for although they have not been heard of.
    :param exclude: for streams, sources that are not waited for: they died.
    :param horizon: for streams, how long released messages are remembered, so that copies are known for such;
        without it δ + 3ε, the longest that a message waits.
    :param buckets: for streams, over how many the messages are spread; fixed for a checkpoint.

    A batch gets `position` (0, 1, 2, …), a stream the order of its rows. `status` is `delivered`, in a stream
    also `late` (it came below what was released), and `diverted` for what is no message or has an impossible
    stamp, with the `problem`.
    """
    apart, under_way = milliseconds("epsilon", epsilon), milliseconds("delta", delta)
    remembered = under_way + 3 * apart if horizon is None else milliseconds("horizon", horizon)
    return Merge(apart, under_way, tuple(sources), tuple(exclude), remembered, buckets)


@dataclass(frozen=True)
class Merge:
    """What `merge` gives: rows in, rows out. Times are in ms."""

    epsilon: int
    delta: int
    sources: tuple[str, ...]
    exclude: tuple[str, ...]
    horizon: int
    buckets: int

    def __call__(self, messages: DataFrame) -> DataFrame:
        if messages.isStreaming:
            return self.blobs(messages).rows()
        stamped, times = with_times(messages)
        return _sorted(stamped, times, messages.columns, self.epsilon)

    def blobs(self, messages: DataFrame | ParquetFiles) -> Blobs:
        """Of a stream, the rows as blobs, for whoever can write these."""
        from causet.spark.merging_streams import MergeSettings, merge_stream

        rows = messages.rows if isinstance(messages, ParquetFiles) else messages
        stamped, times = with_times(rows)
        tasks = rows.sparkSession.conf.get("spark.sql.shuffle.partitions") or str(self.buckets)
        settings = MergeSettings(
            times,
            self.epsilon,
            self.delta,
            self.sources,
            self.exclude,
            self.horizon,
            self.buckets,
            min(self.buckets, int(tasks)),
        )
        files = messages if isinstance(messages, ParquetFiles) else None
        return merge_stream(stamped, rows.columns, settings, files)


class Times(NamedTuple):
    """The names of the columns with r + c, r and the sequence as numbers, null where they are none."""

    rc: str = f"{_OWN}rc"
    r: str = f"{_OWN}r"
    sequence: str = f"{_OWN}sequence"


FOUND = Times("rc", "r", "sequence")
"""Where all of them are in the messages, as numbers."""


def with_times(messages: DataFrame) -> tuple[DataFrame, Times]:
    """With columns for times and sequence as numbers, where they are not there yet; and how these are called.

    A column more is dear on the way into Python. BadInput if something is not there at all.
    """
    names = messages.columns
    for name in names:
        if name.startswith(_OWN):
            raise BadInput(f"a column cannot be called {name!r}: names that begin so are used within")
    wanted = ["source", "sequence", *(["rc", "r"] if "rc" in names else ["causaltime"])]
    for name in wanted:
        if name not in names:
            raise BadInput(
                f"messages need the columns source, sequence, and rc and r or causaltime; {name!r} is not "
                f"among {', '.join(names)}"
            )

    if "rc" in names:
        wanted_numbers = {name: _number(messages, name) for name in ("rc", "r", "sequence")}
    else:
        if not isinstance(messages.schema["causaltime"].dataType, T.StringType):
            raise BadInput("column 'causaltime' must be text")
        digits = "^([0-9]{1,16})[ ,]([0-9]{1,16})$"
        rc, r = (F.regexp_extract("causaltime", digits, group).try_cast("long") for group in (1, 2))
        wanted_numbers = {"rc": rc, "r": r, "sequence": _number(messages, "sequence")}
    made = {f"{_OWN}{name}": column for name, column in wanted_numbers.items() if column is not None}
    return messages.withColumns(made), Times(
        *(name if column is None else f"{_OWN}{name}" for name, column in wanted_numbers.items())
    )


def _number(messages: DataFrame, name: str) -> Column | None:
    """A column as a number; None if it is one."""
    if isinstance(messages.schema[name].dataType, T.LongType):
        return None
    return F.expr(f"try_cast({quoted(name)} as bigint)")


def problems(epsilon: int) -> list[str]:
    """What can be wrong with a row."""
    return [
        "has no source",
        "has no time",
        "has a time that is none of a clock",
        f"has a time with c above {largest_c(epsilon)}, which ε does not allow",
        "has a sequence that is no number of a message",
        "has a time ahead of every clock",
    ]


def faults(
    nameless: Any, timeless: Any, rc: Any, r: Any, sequence: Any, epsilon: int, now: Any = None
) -> list[Any]:
    """Which rows have which of the `problems`, as columns of Spark's or as arrays; an earlier one wins."""
    found = [
        nameless,
        timeless,
        (r < 0) | (rc >= FAR) | (rc < r),
        rc - r > largest_c(epsilon),
        (sequence < 1) | (sequence > MOST_SEQUENCE),
    ]
    return found if now is None else [*found, r > now + epsilon]


def problem_with(times: Times, epsilon: int, now: Column | None = None) -> Column:
    """Why a row is no message, or has a stamp that cannot be, as a place in `problems`; null if it is fine.

    In a stream there is a time, and a row without sequence is a heartbeat.
    """
    rc, r, sequence = (F.col(quoted(name)) for name in times)
    if now is None:
        sequence = F.coalesce(sequence, F.lit(0))
    found = faults(F.col("source").isNull(), rc.isNull() | r.isNull(), rc, r, sequence, epsilon, now)
    code = F.lit(None).cast("byte")
    for number, fault in reversed(list(enumerate(found))):
        code = F.when(fault, F.lit(number).cast("byte")).otherwise(code)
    return code


# ---------------------------------------------------------------- batch


def _sorted(stamped: DataFrame, times: Times, names: Sequence[str], epsilon: int) -> DataFrame:
    """Sorted by all workers, each row with its position."""
    judged = stamped.withColumn(PROBLEM, problem_with(times, epsilon))
    rc = F.col(times.rc)
    counts = _counts(judged, times.rc)
    edges, sizes = _parts(counts)
    part = F.when(F.col(PROBLEM).isNotNull(), len(sizes)).otherwise(_which(rc, edges, 0, len(edges)))
    offsets = [sum(sizes[:number]) for number in range(len(sizes) + 1)]
    order = [times.rc, times.r, "source", times.sequence]
    inside = F.monotonically_increasing_id().bitwiseAND(F.lit((1 << 33) - 1))
    position = F.when(
        F.col(PROBLEM).isNull(), F.element_at(F.array(*map(F.lit, offsets)), F.col(_PART) + 1) + inside
    )
    status = F.when(F.col(PROBLEM).isNull(), DELIVERED).otherwise(DIVERTED)
    told = F.element_at(F.array(*map(F.lit, problems(epsilon))), F.col(PROBLEM) + 1)
    words = F.when(F.col(PROBLEM).isNotNull(), told).alias(PROBLEM)
    kept = [quoted(name) for name in names if name not in (POSITION, STATUS, PROBLEM)]
    return (
        judged.withColumn(_PART, part)
        .repartitionById(len(sizes) + 1, _PART)
        .sortWithinPartitions(*order)
        .select(*kept, position.cast("long").alias(POSITION), status.alias(STATUS), words)
    )


Counts = list[tuple[int, int, int]]
"""Pieces of time, each [from, to), and how many messages are in it, in order."""


def _counts(judged: DataFrame, rc: str) -> Counts:
    """How many messages there are in pieces of time that are small enough."""
    fine = judged.where(F.col(PROBLEM).isNull()).select(rc)
    low, high, rows = fine.agg(F.min(rc), F.max(rc), F.count(rc)).collect()[0]
    if not rows:
        return []
    pieces: Counts = [(low, high + 1, rows)]
    most = max(ROWS_PER_PART // 4, rows // (4 * MOST_PARTS))
    for _ in range(ROUNDS):
        heavy = [piece for piece in pieces if piece[2] > most and piece[1] - piece[0] > 1]
        if not heavy:
            break
        finer = _finer(fine, F.col(rc), heavy)
        pieces = sorted([*(piece for piece in pieces if piece not in heavy), *finer])
    return pieces


def _finer(fine: DataFrame, rc: Column, heavy: Counts) -> Counts:
    """The same messages, counted in finer pieces."""
    found: Counts = []
    for low, high, _ in heavy[:8]:  # pieces that are heavy all over would take a round each
        width = -(-(high - low) // BINS)
        bins = F.floor((rc - F.lit(low)) / F.lit(width)).alias("bin")
        inside = fine.where((rc >= low) & (rc < high))
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

"""`merge()`: one order for all subscribers, consistent with causality, by the ⟨r, c⟩ time of the messages.

The order is that of (r + c, r, source, sequence, domain). It depends on the messages alone: mergers that see
the same messages agree without talking to each other, and a merger of mergers gives the same order, since
stamps pass as they are.

A batch is a sort, by all workers: a first look counts messages by time, so that every worker knows where its
own begin. A stream is in `merging_streams`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from causet.delivery import DELIVERED, DIVERTED
from causet.model import BadInput
from causet.rcclock import FAR, largest_c
from causet.spark.clashes import without_clashes
from causet.spark.direct import ParquetFiles
from causet.spark.durations import milliseconds
from causet.spark.packing import FAULT, OWN, SIZE, Blobs
from causet.spark.sources_values import quoted
from causet.stamp import HEARTBEAT, MOST_SEQUENCE

POSITION, STATUS, PROBLEM = "position", "status", "problem"
TYPE, DOMAIN = "type", "causaldomain"
ALL = "all"
"""The domain of messages that name none."""
BEAT = "heartbeat"
"""The status of a heartbeat in a batch."""
CODE = f"{OWN}problem"
"""The column of codes: null for a message, IS_BEAT for a heartbeat, or a place in `problems`."""
IS_BEAT = -1
BINS = 4096
"""Into so many pieces of time messages are counted at a time."""
ROWS_PER_PART = 1_000_000
MOST_PARTS = 1000
ROUNDS = 5
"""How often a piece of time that has too many is counted again in finer ones."""
_PART = f"{OWN}part"


def merge(
    *,
    epsilon: str | int | float,
    delta: str | int | float,
    sources: Sequence[str] = (),
    exclude: Sequence[str] = (),
    horizon: str | int | float | None = None,
    buckets: int = 16,
    strict: bool = False,
    most_bytes: int | None = None,
) -> Merge:
    """Merge messages into one order, for `messages.transform(merge(…))`.

    The messages have the columns `source`, `sequence`, `rc` (r + c) and `r`, in ms; or `causaltime` in place
    of the last two, as the envelope has it. A row whose `type` is `causet.heartbeat` only says how far its
    source is. Messages that differ in `causaldomain` are different ones.

    :param epsilon: how far the clocks of the sources are apart at most: `"50 ms"`, or seconds.
    :param delta: how long a message is under way at most.
    :param sources: for streams, sources that are waited for although they have not been heard of.
    :param exclude: for streams, sources that are not waited for: they died.
    :param horizon: for streams, how long released messages are remembered, so that copies are known for such;
        without it δ + 3ε, the longest that a message waits.
    :param buckets: for streams, over how many the messages are spread; fixed for a checkpoint.
    :param strict: for streams, end with an error at a row that would be diverted.
    :param most_bytes: for streams, the largest message that the sink takes; the rows say in `__causet_size`
        how large they are.

    A batch gets `position` (0, 1, 2, …), a stream the order of its rows. `status` is `delivered`, in a stream
    also `late` (it came below what was released), and `diverted` for a row that is not a message or has an
    impossible stamp, with the `problem`. In a batch heartbeats and duplicates stay, and a heartbeat has the
    status `heartbeat` and no position; a stream counts both and drops them, and diverts a message that has
    the numbers of another one but not its id and data. A column of the input that has one of these names is
    kept as `input_status`, and so on.
    """
    apart, under_way = milliseconds("epsilon", epsilon), milliseconds("delta", delta)
    remembered = under_way + 3 * apart if horizon is None else milliseconds("horizon", horizon)
    return Merge(apart, under_way, tuple(sources), tuple(exclude), remembered, buckets, most_bytes, strict)


@dataclass(frozen=True)
class Merge:
    """What `merge` gives: rows in, rows out. Times are in ms."""

    epsilon: int
    delta: int
    sources: tuple[str, ...]
    exclude: tuple[str, ...]
    horizon: int
    buckets: int
    most_bytes: int | None = None
    """the largest message that the sink takes, by the column SIZE; a larger one is diverted"""
    strict: bool = False
    wakes: DataFrame | None = None
    """a stream of which each row lets a batch run in every bucket"""

    def __call__(self, messages: DataFrame) -> DataFrame:
        if messages.isStreaming:
            return self.blobs(messages).rows()
        kept, _ = without_clashes(messages, (POSITION, STATUS, PROBLEM))
        assert isinstance(kept, DataFrame)
        stamped, times = with_times(kept)
        return _sorted(stamped, times, kept.columns, self.epsilon)

    def blobs(self, messages: DataFrame | ParquetFiles) -> Blobs:
        """The rows of a stream as blobs, for a sink that can write these."""
        from causet.spark.merging_streams import MergeSettings, merge_stream

        messages, renamed = without_clashes(messages, (STATUS, PROBLEM))
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
            self.most_bytes,
            self.strict,
        )
        files = messages if isinstance(messages, ParquetFiles) else None
        return replace(merge_stream(stamped, rows.columns, settings, files, self.wakes), renamed=renamed)


# ---------------------------------------------------------------- columns


class Times(NamedTuple):
    """The names of the columns with r + c, r and the sequence as numbers, null where they are not numbers."""

    rc: str = f"{OWN}rc"
    r: str = f"{OWN}r"
    sequence: str = f"{OWN}sequence"


FOUND = Times("rc", "r", "sequence")
"""Where all of them are in the messages, as numbers."""


def with_times(messages: DataFrame) -> tuple[DataFrame, Times]:
    """With columns for times and sequence as numbers, where they are not there yet; and their names.

    One more column costs time on the way into Python. BadInput if a column is missing, or has a type of which
    there is nothing to make.
    """
    names = messages.columns
    for name in names:
        if name.startswith(OWN) and name not in (FAULT, SIZE):
            raise BadInput(f"a column cannot be called {name!r}: names that begin so are used within")
    wanted = ["source", "sequence", *(["rc", "r"] if "rc" in names else ["causaltime"])]
    for name in wanted:
        if name not in names:
            raise BadInput(
                f"messages need the columns source, sequence, and rc and r or causaltime; {name!r} is not "
                f"among {', '.join(names)}"
            )
    for name in (*wanted, *([DOMAIN] if DOMAIN in names else [])):
        kind = messages.schema[name].dataType
        if not isinstance(kind, T.StringType | T.NumericType | T.NullType):
            raise BadInput(f"column {name!r} must be text or a number, not {kind.simpleString()}")

    if "rc" in names:
        wanted_numbers = {name: _number(messages, name) for name in ("rc", "r", "sequence")}
    else:
        if not isinstance(messages.schema["causaltime"].dataType, T.StringType):
            raise BadInput("column 'causaltime' must be text")
        digits = r"^([0-9]{1,16})[ ,]([0-9]{1,16})\z"
        rc, r = (F.regexp_extract("causaltime", digits, group).try_cast("long") for group in (1, 2))
        wanted_numbers = {"rc": rc, "r": r, "sequence": _number(messages, "sequence")}
    made = {f"{OWN}{name}": column for name, column in wanted_numbers.items() if column is not None}
    return messages.withColumns(made), Times(
        *(name if column is None else f"{OWN}{name}" for name, column in wanted_numbers.items())
    )


def _number(messages: DataFrame, name: str) -> Column | None:
    """A column as a whole number, null where it is not one; None if nothing has to be done for that."""
    kind = messages.schema[name].dataType
    if isinstance(kind, T.LongType):
        return None
    whole = F.expr(f"try_cast({quoted(name)} as bigint)")
    if isinstance(kind, T.FractionalType):
        return F.when(F.col(quoted(name)) == whole, whole)
    return whole


# ---------------------------------------------------------------- what can be wrong with a row


class Extra(NamedTuple):
    """What else there is in the messages by which they are judged."""

    beats: bool = False
    """a column of types, so that there can be heartbeats"""
    fault: bool = False
    """a column FAULT"""
    most_bytes: int | None = None
    """the limit of the sink, and a column SIZE"""

    @classmethod
    def of(cls, names: Collection[str], texts: Collection[str], most_bytes: int | None) -> Extra:
        """By the names of all columns, and of those that are text."""
        return cls(TYPE in texts, FAULT in names, most_bytes if SIZE in names else None)

    @classmethod
    def of_rows(cls, messages: DataFrame, most_bytes: int | None = None) -> Extra:
        texts = [each.name for each in messages.schema.fields if isinstance(each.dataType, T.StringType)]
        return cls.of(messages.columns, texts, most_bytes)


FAULTY = "is not a message"
"""In `problems`, for a row of which FAULT says more."""
TOO_LARGE = "is larger than the sink takes"
"""In `problems`, for a message of which SIZE says more."""


def problems(epsilon: int) -> list[str]:
    """What can be wrong with a row."""
    return [
        FAULTY,
        "has no source",
        "has no time",
        "has a time that is none of a clock",
        f"has a time with c above {largest_c(epsilon)}, which ε does not allow",
        "has no sequence that is a number",
        f"has a sequence that is not between 1 and {MOST_SEQUENCE}",
        "has a time ahead of every clock",
        TOO_LARGE,
    ]


class Facts(NamedTuple):
    """What is known of rows, as columns of Spark's or as arrays."""

    faulty: Any
    nameless: Any
    timeless: Any
    unnumbered: Any
    rc: Any
    r: Any
    sequence: Any
    beat: Any
    large: Any


def faults(facts: Facts, epsilon: int, now: Any = None) -> list[Any]:
    """Which rows have which of the `problems`; an earlier one wins. None for a problem that cannot be seen.
    A heartbeat needs neither a sequence nor room in the sink."""
    rc, r, sequence = facts.rc, facts.r, facts.sequence
    return [
        facts.faulty,
        facts.nameless,
        facts.timeless,
        (r < 0) | (rc >= FAR) | (rc < r),
        rc - r > largest_c(epsilon),
        facts.unnumbered & ~facts.beat,
        ((sequence < 1) | (sequence > MOST_SEQUENCE)) & ~facts.beat,
        None if now is None else r > now + epsilon,
        facts.large & ~facts.beat,
    ]


def is_beat(extra: Extra) -> Column:
    """Whether a row is a heartbeat: only its type says so."""
    return F.col(TYPE).eqNullSafe(F.lit(HEARTBEAT)) if extra.beats else F.lit(False)


def problem_with(
    times: Times,
    epsilon: int,
    now: Column | None = None,
    extra: Extra = Extra(),  # noqa: B008
) -> Column:
    """The code of each row: why it is not a message, or has a stamp that cannot be; or that it is a
    heartbeat. In a stream there is a time."""
    rc, r, sequence = (F.col(quoted(name)) for name in times)
    beat = is_beat(extra)
    facts = Facts(
        faulty=F.col(FAULT).isNotNull() if extra.fault else F.lit(False),
        nameless=F.col("source").isNull(),
        timeless=rc.isNull() | r.isNull(),
        unnumbered=sequence.isNull(),
        rc=rc,
        r=r,
        sequence=sequence,
        beat=beat,
        large=F.lit(False) if extra.most_bytes is None else F.col(SIZE) > extra.most_bytes,
    )
    code = F.when(beat, F.lit(IS_BEAT).cast("byte"))
    for number, fault in reversed(list(enumerate(faults(facts, epsilon, now)))):
        if fault is not None:
            code = F.when(fault, F.lit(number).cast("byte")).otherwise(code)
    return code


# ---------------------------------------------------------------- batch


def _sorted(stamped: DataFrame, times: Times, names: Iterable[str], epsilon: int) -> DataFrame:
    """Sorted by all workers, each row with its position."""
    judged = stamped.withColumn(CODE, problem_with(times, epsilon, extra=Extra.of_rows(stamped)))
    code, rc = F.col(CODE), F.col(times.rc)
    counts = _counts(judged, times.rc)
    edges, sizes = _parts(counts)
    part = F.when(code.isNotNull(), len(sizes)).otherwise(_which(rc, edges, 0, len(edges)))
    offsets = [sum(sizes[:number]) for number in range(len(sizes) + 1)]
    order = [rc, F.col(times.r), F.col("source").cast("string"), F.col(times.sequence)]
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

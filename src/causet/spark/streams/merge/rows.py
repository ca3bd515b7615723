"""What a row of a merge is: a message with its times, a heartbeat, or something with a problem."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from causet.durations import in_ms
from causet.envelope import DOMAIN, HEARTBEAT, MOST_SEQUENCE
from causet.errors import BadInput, quote
from causet.rcclock import FAR, largest_c
from causet.rcclock import TICKS_PER_MS as MS
from causet.spark.columns import quoted
from causet.spark.streams.messages.columns import (
    column_of_version,
    columns_of_groups,
    columns_of_identity,
)
from causet.spark.streams.messages.settings import MALFORMED
from causet.spark.streams.pack import FAULT, OWN, SIZE

POSITION, STATUS, PROBLEM = "position", "status", "problem"
TYPE = "type"
CODE = f"{OWN}problem"
"""The column of codes: null for a message, IS_BEAT for a heartbeat, or a place in `problems`."""
IS_BEAT = -1
TICKS = {"us": 1, "ms": MS}
"""The units that the columns rc and r may have, in ticks."""
FARTHEST = FAR * MS
"""No time is as large as this, whatever the ticks of its clock; it fits into 64 bits."""


class Times(NamedTuple):
    """The names of the columns with r + c and r, in ticks, and the sequence; null where these are not
    numbers."""

    rc: str = f"{OWN}rc"
    r: str = f"{OWN}r"
    sequence: str = f"{OWN}sequence"


FOUND = Times("rc", "r", "sequence")
"""Where all of them are in the messages, as numbers."""


def out_of_bounds(rc: Any, r: Any, times: Times) -> Any:
    """Which times cannot be, as columns or arrays. What was made a number of ticks is known to be one."""
    return (r < 0) | (rc < r) | (rc >= (FAR if times.rc == FOUND.rc else FARTHEST))


def with_times(messages: DataFrame, ticks: str = "us") -> tuple[DataFrame, Times]:
    """With columns for times and sequence as numbers, where they are not there yet; and their names.

    One more column costs time on the way into Python. BadInput if a column is missing, or has a type of which
    there is nothing to make.

    :param ticks: the unit of the columns rc and r; a `causaltime` is in that of its version.
    """
    names = messages.columns
    for name in names:
        if name.startswith(OWN) and name not in (FAULT, SIZE):
            raise BadInput(f"column name {quote(name)} is reserved: causet uses names that begin with {OWN}")
    numbers, _ = columns_of_groups(messages)
    sequence = [] if numbers is not None and "sequence" not in names else ["sequence"]
    wanted = ["source", *sequence, *(["rc", "r"] if "rc" in names else ["causaltime"])]
    for name in wanted:
        if name not in names:
            raise BadInput(
                f"messages need the columns source, sequence, and rc and r or causaltime; no {quote(name)}"
                f" in {', '.join(_given(names))}"
            )
    columns_of_identity(messages)
    for name in (*wanted, *([DOMAIN] if DOMAIN in names else [])):
        kind = messages.schema[name].dataType
        if not isinstance(kind, T.StringType | T.NumericType | T.NullType):
            raise BadInput(f"column {quote(name)} must be a string or a number, not {kind.simpleString()}")

    if "rc" in names:
        whole = {name: _number(messages, name) for name in ("rc", "r")}
        if ticks != "us" or any(column is not None for column in whole.values()):
            tick = F.lit(TICKS[ticks])
            whole = {name: _in_ticks(_whole(messages, name), tick) for name in ("rc", "r")}
        wanted_numbers = {**whole, "sequence": _sequence(messages, numbers)}
    else:
        if not isinstance(messages.schema["causaltime"].dataType, T.StringType):
            raise BadInput(f"column {quote('causaltime')} must be a string")
        digits = r"^([0-9]{1,16})[ ,]([0-9]{1,16})\z"
        tick = F.when(_version(messages) == 2, 1).otherwise(MS)
        found = (F.regexp_extract("causaltime", digits, group).try_cast("long") for group in (1, 2))
        rc, r = (_in_ticks(value, tick) for value in found)
        wanted_numbers = {"rc": rc, "r": r, "sequence": _sequence(messages, numbers)}
    made = {f"{OWN}{name}": column for name, column in wanted_numbers.items() if column is not None}
    return messages.withColumns(made), Times(
        *(name if column is None else f"{OWN}{name}" for name, column in wanted_numbers.items())
    )


def _given(names: Sequence[str]) -> list[str]:
    """The columns without those that were added to them on the way."""
    added = MALFORMED if FAULT in names else ""
    return [name for name in names if not name.startswith(OWN) and name != added]


def _sequence(messages: DataFrame, numbers: str | None) -> Column | None:
    """The sequence, as `_number`. A message to several groups has none, and needs none: its process has no
    other with its times."""
    if numbers is None:
        return _number(messages, "sequence")
    here = F.col(quoted(numbers)).isNotNull()
    if "sequence" not in messages.columns:
        return F.when(here, F.lit(1).cast("long"))
    several = F.col("sequence").isNull() & here
    return F.when(several, F.lit(1).cast("long")).otherwise(_whole(messages, "sequence"))


def _number(messages: DataFrame, name: str) -> Column | None:
    """A column as a whole number, null where it is not one; None if nothing has to be done for that."""
    return None if isinstance(messages.schema[name].dataType, T.LongType) else _whole(messages, name)


def _whole(messages: DataFrame, name: str) -> Column:
    """A column as a whole number, null where it is not one."""
    kind = messages.schema[name].dataType
    whole = F.expr(f"try_cast({quoted(name)} as bigint)")
    if isinstance(kind, T.FractionalType):
        return F.when(F.col(quoted(name)) == whole, whole)
    return whole


def _in_ticks(value: Column, tick: Column) -> Column:
    """A time in ticks, FARTHEST if it is out of bounds: its product might not fit into 64 bits."""
    near = F.when((value >= 0) & (value < FAR), value)
    return F.when(value.isNotNull(), F.coalesce(near.cast("long") * tick, F.lit(FARTHEST)))


def _version(messages: DataFrame) -> Column:
    """The version of the envelope of each message: 1 if it does not say, 0 if that is none we know."""
    name = column_of_version(messages)
    if name not in messages.columns:
        return F.lit(1)
    text = F.col(name).cast("string")
    return F.when(text.isNull(), 1).when(text.isin("1", "2"), text.cast("int")).otherwise(0)


# ---------------------------------------------------------------- what can be wrong with a row


class Extra(NamedTuple):
    """What else there is in the messages by which they are judged."""

    beats: bool = False
    """a column of types, so that there can be heartbeats"""
    fault: bool = False
    """a column FAULT"""
    most_bytes: int | None = None
    """the limit of the sink, and a column SIZE"""
    version: Column | None = None
    """that of the envelope, where times depend on it"""
    identity: tuple[str, ...] = ()
    """the columns of the process"""

    @classmethod
    def of(cls, names: Collection[str], texts: Collection[str], most_bytes: int | None) -> Extra:
        """By the names of all columns, and of those that are strings."""
        return cls(TYPE in texts, FAULT in names, most_bytes if SIZE in names else None)

    @classmethod
    def of_rows(cls, messages: DataFrame, most_bytes: int | None = None) -> Extra:
        texts = [each.name for each in messages.schema.fields if isinstance(each.dataType, T.StringType)]
        found = cls.of(messages.columns, texts, most_bytes)
        by_version = column_of_version(messages) in messages.columns and "rc" not in messages.columns
        identity = tuple(name for name in columns_of_identity(messages) if name in texts)
        return found._replace(version=_version(messages) if by_version else None, identity=identity)


FAULTY = "is not a message"
"""In `problems`, for a row whose FAULT has the details."""
TOO_LARGE = "is larger than the sink takes"
"""In `problems`, for a message whose SIZE has the details."""


def next_delta(epsilon: int, delta: int) -> int:
    """The longest that a message waits in a merger (lemma 4.2, and a tick, for the clock must exceed what it
    is compared with): so this is δ for a merger that reads this one's output."""
    return delta + 3 * epsilon + 1


def most_c(epsilon: int) -> int:
    """The largest c that a time can have where clocks are at most ε apart, by a clock of any version: those
    of version 1 had ticks of 1 ms."""
    return largest_c(epsilon, MS)


def problems(epsilon: int) -> list[str]:
    """What can be wrong with a row."""
    return [
        FAULTY,
        "has no source",
        "has a process without a name",
        "has a causalversion that is not 1 or 2",
        "has no time",
        "has an invalid time: it needs 0 ≤ r ≤ r + c < 2^53",
        f"has a time with c above {in_ms(most_c(epsilon))}, which ε does not allow",
        "has no sequence that is a number",
        f"has a sequence that is not between 1 and {MOST_SEQUENCE}",
        "has a time ahead of every clock",
        TOO_LARGE,
    ]


class Facts(NamedTuple):
    """What is known of rows, as columns of Spark's or as arrays."""

    faulty: Any
    nameless: Any
    unnamed: Any
    versionless: Any
    timeless: Any
    unnumbered: Any
    rc: Any
    r: Any
    sequence: Any
    beat: Any
    large: Any


def faults(facts: Facts, times: Times, epsilon: int, now: Any = None) -> list[Any]:
    """Which rows have which of the `problems`; an earlier one wins. None for a problem that cannot be seen.
    A heartbeat needs no sequence."""
    rc, r, sequence = facts.rc, facts.r, facts.sequence
    return [
        facts.faulty,
        facts.nameless,
        facts.unnamed,
        facts.versionless,
        facts.timeless,
        out_of_bounds(rc, r, times),
        rc - r > most_c(epsilon),
        facts.unnumbered & ~facts.beat,
        ((sequence < 1) | (sequence > MOST_SEQUENCE)) & ~facts.beat,
        None if now is None else r > now + epsilon,
        facts.large,
    ]


def _unnamed(identity: Sequence[str]) -> Column:
    """Whether the process of a row is a string without characters."""
    found = F.coalesce(*(F.col(name) for name in identity)) == "" if identity else F.lit(False)
    return F.coalesce(found, F.lit(False))


def is_beat(extra: Extra) -> Column:
    """Whether a row is a heartbeat, which only its type shows."""
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
        nameless=F.col("source").isNull() | (F.col("source") == ""),
        unnamed=_unnamed(extra.identity),
        versionless=F.lit(False) if extra.version is None else extra.version == 0,
        timeless=rc.isNull() | r.isNull(),
        unnumbered=sequence.isNull(),
        rc=rc,
        r=r,
        sequence=sequence,
        beat=beat,
        large=F.lit(False) if extra.most_bytes is None else F.col(SIZE) > extra.most_bytes,
    )
    code = F.when(beat, F.lit(IS_BEAT).cast("byte"))
    for number, fault in reversed(list(enumerate(faults(facts, times, epsilon, now)))):
        if fault is not None:
            code = F.when(fault, F.lit(number).cast("byte")).otherwise(code)
    return code

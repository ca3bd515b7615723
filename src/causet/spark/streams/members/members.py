"""Members: processes of a protocol whose packets are rows, for `deliver(protocol=…, system=…)`.

    rows → cut by bucket → [ for each process its protocol's state, and the rows that are held ] → rows

A process is delivered to by its protocol's own rules, on the engine that a simulation uses; so a member
delivers what a process of a simulation with the same packets does. It is slow beside the kernel of
`deliver`: every batch reads and writes the states of its members, and looks at packets one by one.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from causet.errors import BadInput, quote
from causet.protocols import PROTOCOLS, protocol_named
from causet.simulate.systems import read_setting, setting_of
from causet.spark.columns import quoted
from causet.spark.streams.books import OBSERVED
from causet.spark.streams.members.bucket import COUNTS, Bucket
from causet.spark.streams.members.held import how_many_waiting
from causet.spark.streams.members.settings import PACKET, SEQ, VERSION, Settings, mark_of, text_of
from causet.spark.streams.messages.settings import ADDED
from causet.spark.streams.pack import BUCKET, OWN, PACKED, ROWS, Blobs, Pack, Unpack
from causet.spark.streams.parquet import Messages
from causet.spark.streams.state import Holder, as_blobs, use_rocks
from causet.status import READ, WAIT

OUT = f"{ROWS} binary, held long, oldest long, blocked string, wanted string, missed string, " + ", ".join(
    f"{name} long" for name in COUNTS
)
"""As the operator of `deliver` has it."""
NOW = "now"
REFUSED_PROTOCOLS = {
    "merge": "merge delivers by the clocks of its processes, and rows have none; use causet merge",
    "piggyback": "piggyback delivers messages that came within the stamps of others, where rows have no data",
}
ABLE = tuple(name for name in PROTOCOLS if name not in REFUSED_PROTOCOLS)


def members(
    protocol: str | None,
    system: str | Path | Mapping[str, Any] | None,
    missing: str,
    by: str | None,
    buckets: int,
    most_held: int,
    strict: bool,
    most_bytes: int | None,
    others: Mapping[str, Any],
) -> Members:
    """The members of a system; BadInput, in a sentence, if that cannot be.

    :param others: settings of `deliver` that members do not have, and their values.
    """
    if protocol is None or system is None:
        raise BadInput("a protocol needs its system, and a system its protocol (--protocol with --system)")
    kind = protocol_named(protocol)
    if protocol in REFUSED_PROTOCOLS:
        raise BadInput(f"protocol {REFUSED_PROTOCOLS[protocol]}")
    if missing != WAIT:
        raise BadInput(
            f"missing = {quote(missing)} cannot be used with a protocol (--missing with --protocol): what a "
            "message waits for, the protocol decides; use wait"
        )
    for name in (name for name, value in others.items() if value):
        raise BadInput(f"{name} cannot be used with a protocol (--{name} with --protocol)")
    if by in (PACKET, SEQ):
        raise BadInput(f"by = {quote(by)}: that is not the column of the process")
    if not 1 <= buckets <= 1 << 16:
        raise BadInput(f"buckets = {buckets}: there can be 1 to 65,536")
    read = read_setting(system, kind) if isinstance(system, str | Path) else setting_of(system, kind)
    return Members(Settings(read, by or "receiver", buckets, most_held, strict, most_bytes))


@dataclass(frozen=True)
class Members:
    """The settings of members, and what they make of packets: rows in, rows out."""

    asked: Settings

    command, per_ms = "deliver", 1
    ends_with_input = False
    """No patience ends."""
    wakes = False
    """No setting releases what is held."""

    def __call__(self, packets: DataFrame) -> DataFrame:
        return self.blobs(packets).rows()

    @property
    def buckets(self) -> int:
        return self.asked.buckets

    @property
    def fixed(self) -> dict[str, Any]:
        """The settings that cannot change for a checkpoint."""
        about = {"protocol": self.asked.setting.kind.name, "system": mark_of(self.asked.setting)}
        kinds = {"parent": None, "missing": WAIT, "kind of readers": "processes"}
        return {**about, "by": self.asked.by, "buckets": self.buckets, **kinds}

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that may change from run to run, as JSON has them; and the system, whose mark is
        fixed, for those who ask later what is held."""
        about = {"missing": WAIT, "strict": self.asked.strict, "most_bytes": self.asked.most_bytes}
        return {**about, "system": text_of(self.asked.setting)}

    def changed(self, settings: Mapping[str, Any], ends: DataFrame | None = None) -> Members:
        """The same with other `settings`. What ends patience is nothing to members."""
        new = {name: settings[name] for name in ("strict", "most_bytes") if name in settings}
        return replace(self, asked=replace(self.asked, **new))

    @property
    def columns(self) -> list[str]:
        """The columns that are read besides those of every message."""
        return [self.asked.by, PACKET, SEQ]

    def held(self, spark: SparkSession, state: Path) -> int:
        return how_many_waiting(spark, state, self.asked)

    def blobs(self, packets: DataFrame | Messages) -> Blobs:
        """The rows as blobs, for a sink that can write these."""
        whole, renamed = Messages.of(packets).without_clashes(
            [name for name in ADDED if name != self.asked.by]
        )
        rows, by = whole.rows, self.asked.by
        _check_columns(rows.schema, by)
        settings = replace(self.asked, columns=tuple(rows.columns))
        receiver = F.coalesce(F.col(quoted(by)).cast("string"), F.lit(""))
        bucket = F.pmod(F.xxhash64(receiver), F.lit(settings.buckets)).cast("int")
        cut = rows.select(bucket.alias(f"{OWN}bucket"), "*")
        packed = Messages(cut).packed(Pack(), PACKED, cut, _as_it_is, False)
        found = _operator(packed, settings, rows.isStreaming)
        return Blobs(found.select(ROWS), Unpack(ROWS), _with_added(rows.schema), renamed)


def _check_columns(schema: T.StructType, by: str) -> None:
    for name in (by, PACKET):
        if name not in schema.names:
            raise BadInput(
                f"with a protocol, rows need the columns {quote(by)}, of the process, and {quote(PACKET)}; "
                f"{quote(name)} is missing"
            )
    kind = schema[PACKET].dataType
    if not isinstance(kind, T.BinaryType | T.StringType):
        raise BadInput(
            f"column {quote(PACKET)} is {kind.simpleString()}; packets are binary, or text in base64"
        )


def _as_it_is(rows: Any, now: int) -> Any:
    return rows


def _with_added(schema: T.StructType) -> T.StructType:
    """The columns of packets with those that every row gets."""
    kept = [each for each in schema.fields if each.name not in ADDED and not each.name.startswith(OWN)]
    kinds = (
        T.StringType(),
        T.LongType(),
        T.StringType(),
        T.DoubleType(),
        T.MapType(T.StringType(), T.LongType()),
        T.StringType(),
    )
    added = [T.StructField(name, kind) for name, kind in zip(ADDED, kinds, strict=True)]
    return T.StructType([*kept, *added])


def _operator(packed: DataFrame, settings: Settings, streaming: bool) -> DataFrame:
    """The stateful operator on packed rows."""
    if streaming:
        use_rocks(packed.sparkSession)
    packed = packed.withColumn(NOW, _now(streaming))
    found = packed.groupBy(BUCKET).transformWithState(Operator(settings), OUT, "append", "none")
    if streaming:
        found = found.observe(
            OBSERVED,
            F.sum("held").alias("held"),
            F.min("oldest").alias("oldest"),
            F.min_by("blocked", "oldest").alias("blocked"),
            *(F.sum(name).alias(name) for name in COUNTS),
        )
    return found


def _now(streaming: bool) -> Column:
    """The time of the batch in ms, as `deliver` has it."""
    return F.unix_millis(F.current_timestamp()) if streaming else F.lit(time.time_ns() // 1_000_000)


class Operator(Holder):
    """The members of one bucket."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings.fixed, VERSION)
        self.settings = settings

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        memory, segments = self.load()
        bucket = Bucket(self.settings, memory, segments)
        now = 0
        blobs: list[bytes] = []
        for row in rows:
            now = max(now, row[NOW])
            bucket.was_read(row[READ] or 0)
            if row[ROWS] is not None:
                blobs.append(row[ROWS])
        nothing = dict.fromkeys(("held", "oldest", "blocked", "wanted", "missed", *COUNTS))
        for table in bucket.step(blobs, now):
            yield from as_blobs(table, **nothing)
        yield Row(rows=None, **bucket.report())
        self.save(bucket.to_bytes(), segments)

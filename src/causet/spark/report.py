"""Report pages of `verify`, `audit` and streams: what was found, with proofs and figures, from DataFrames.

Only sums and the events of proofs leave Spark, so a report of any execution stays small.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql import types as T

from causet.errors import printable
from causet.formats.execution import Fault
from causet.model import Event
from causet.spark.batch.audited import Audit, Tally
from causet.spark.batch.verify import Verdict as Verified
from causet.spark.streams.running import STAY, Progress
from causet.verdict import NOT_JUDGED, stream_sentence, stream_status
from causet.view.judged import sentence_of
from causet.view.payload import Verdict
from causet.view.proofs import proof
from causet.view.report import MOST_PROOFS, Figure, Proof, Report, bars, heat

BINS = 30
POINTS = 200
"""Points of a line over time."""
MOST_PAIRS = 2_000


def verify_report(
    title: str, events: DataFrame, verdict: Verified, status: str, faults: Sequence[Fault]
) -> Report:
    """What `verify` found."""
    counts = verdict.counts
    words = {
        "violations": "delivered too early",
        "duplicates": "delivered more than once",
        "strangers": "delivered where not addressed",
    }
    said = sentence_of(status, {what: counts[name] for name, what in words.items()}, faults)
    facts = [
        ("events", f"{verdict.events:,}"),
        ("messages", f"{verdict.messages:,}"),
        ("deliveries", f"{verdict.deliveries:,}"),
        *((what, f"{counts[name]:,}") for name, what in words.items()),
        ("never delivered where addressed", f"{counts['undelivered']:,}"),
        *((fault.kind, f"{fault.count:,}") for fault in faults),
    ]
    rows = verdict.violations.limit(MOST_PROOFS).collect() if counts["violations"] else []
    report = Report(title, Verdict(status, said), facts, _proofs(events, rows, verdict.senders))
    if counts["violations"]:
        by_process = {
            row["process"]: row["count"] for row in verdict.violations.groupBy("process").count().collect()
        }
        report.figures.append(
            bars("too-early", "Deliveries that came too early, by process", by_process, y_label="deliveries")
        )
    report.figures += _of_deliveries(events)
    return report


def audit_report(title: str, found: Audit, faults: Sequence[Fault] = ()) -> Report:
    """What `audit` found; `faults` are those of the reader of the log."""
    orders = (
        ("file order", found.in_file_order),
        ("time order", found.in_time_order),
        ("causal order", found.in_causal_order),
    )
    time = found.in_time_order
    in_file, in_ours = found.in_file_order.wrong_effects, found.in_causal_order.wrong_effects
    sorted_by_time = (
        f"{time.wrong_effects:,} of {time.effects:,} effects stand before a cause when sorted by time"
        if time.effects
        else f"Time order is {NOT_JUDGED}: no effect and its cause both have a time; before a cause stand"
    )
    said = f"{sorted_by_time}, {in_file:,} in file order, {in_ours:,} in ours."
    holes = ", ".join(f"{fault.kind} ({fault.count:,})" for fault in (*faults, *found.faults))
    said += f" Not judged: {holes}." if holes else ""
    pairs = found.pairs.limit(MOST_PAIRS).collect()
    facts = [
        ("events", f"{found.events:,}"),
        ("processes", f"{found.processes:,}"),
        ("effects", f"{found.effects:,}"),
        ("events without a time", f"{found.untimed:,}"),
        *((f"wrong in {name}", _share(tally)) for name, tally in orders),
    ]
    wrong = [(row.cause_process, row.effect_process, row.wrong_in_time) for row in pairs if row.wrong_in_time]
    skews = {
        f"{row.cause_process} → {row.effect_process}": float(row.worst_skew)
        for row in pairs
        if row.worst_skew is not None
    }
    figures = [
        Figure(
            "orders",
            "Effects that stand before a cause",
            [name for name, _ in orders],
            [tally.wrong_effects for _, tally in orders],
            y_label="effects",
        ),
        heat(
            "inversions",
            "Wrong in time order, by pair of processes",
            wrong,
            x_label="process of the effect",
            y_label="process of the cause",
        ),
        bars("skew", "Worst skew between clocks", skews, y_label="units of time"),
    ]
    return Report(title, Verdict(found.status, said), facts, figures=figures)


def stream_report(
    title: str, progress: Progress, held: int, blocked: str | None, balanced: bool = True
) -> Report:
    """What a stream did in this run; `balanced` says whether its books add up."""
    left = sum(count for name, count in progress.counts.items() if name not in STAY)
    waits = f"; the oldest waits for {printable(blocked)}" if blocked else ""
    verdict = stream_sentence(progress.counts, held, balanced)
    said = (
        f"{verdict[:1].upper()}{verdict[1:]}. "
        f"{progress.taken:,} messages came, {left:,} left, {held:,} are held{waits}."
    )
    facts = [
        ("messages", f"{progress.taken:,}"),
        *((name, f"{count:,}") for name, count in progress.counts.items() if name != "caused"),
        ("held", f"{held:,}"),
        ("batches", f"{progress.batches:,}"),
    ]
    batches = list(progress.history)
    first = progress.batches - len(batches) + 1
    numbers = list(range(first, first + len(batches)))
    lines: tuple[tuple[str, str, str, list[float]], ...] = (
        ("held", "Messages held after each batch", "messages", [each.held for each in batches]),
        ("in", "Messages that came with each batch", "messages", [each.taken for each in batches]),
        ("out", "Messages that left with each batch", "messages", [each.left for each in batches]),
        ("seconds", "Time of each batch", "seconds", [round(each.seconds, 3) for each in batches]),
    )
    figures = [
        Figure(name, words, numbers, values, kind="steps", x_label="batch", y_label=unit)
        for name, words, unit, values in lines
    ]
    statuses = {name: float(count) for name, count in progress.counts.items() if count and name != "caused"}
    figures.append(bars("statuses", "What became of them", statuses, y_label="messages"))
    return Report(
        title, Verdict(stream_status(progress.counts, held, balanced), said), facts, figures=figures
    )


def _share(tally: Tally) -> str:
    if not tally.effects:
        return NOT_JUDGED
    return f"{tally.wrong_effects:,} of {tally.effects:,} ({tally.share:.1%})"


# ---------------------------------------------------------------- proofs


def _proofs(events: DataFrame, rows: Sequence[Row], senders: Mapping[str, str]) -> list[Proof]:
    """Each with the events of the messages on its chain."""
    wanted = sorted({name for row in rows for name in (row.delivered, row.before, *(row.because or ()))})
    if not wanted:
        return []
    found = events.where(F.col("message").isin(wanted)).collect()
    made = []
    for row in rows:
        chain = {row.delivered, row.before, *(row.because or ())}
        people = {row.process, *(senders[name] for name in chain if name in senders)}
        mine = [each for each in found if each.message in chain and each.process in people]
        sentence = proof(row.process, row.delivered, row.before, row.because or (), senders)
        because = tuple(row.because or ())
        made.append(Proof(sentence, _events(mine), row.process, row.delivered, row.before, because))
    return made


def _events(rows: Sequence[Row]) -> list[Event]:
    """Without the time: what is drawn is the order."""
    return [
        Event(
            process=row.process,
            seq=row.seq,
            kind=row.kind,
            message=row.message,
            to=tuple(row.to) if row.kind == "send" and row.to is not None else None,
        )
        for row in rows
    ]


# ---------------------------------------------------------------- figures


def _of_deliveries(events: DataFrame) -> list[Figure]:
    """Waiting times, messages held over time, and sizes of stamps, as far as the trace has them."""
    figures = []
    timed = "time" in events.columns and isinstance(events.schema["time"].dataType, T.NumericType)
    if timed:
        came = _at(events, "receive", "came")
        went = _at(events, "deliver", "went")
        both = came.join(went, ["process", "message"]).cache()
        waits = both.select((F.col("went") - F.col("came")).cast("double").alias("value"))
        figures.append(_histogram("waits", "Time between reception and delivery", waits, "units of time"))
        figures.append(_held(both))
        both.unpersist()
    for name, title in (("stamp_bytes", "Sizes of stamps"), ("stamp_entries", "Entries of stamps")):
        if name in events.columns:
            sizes = events.where(F.col("kind") == "send").select(F.col(name).cast("double").alias("value"))
            figures.append(_histogram(name.replace("_", "-"), title, sizes, name.partition("_")[2]))
    return [figure for figure in figures if figure.x]


def _at(events: DataFrame, kind: str, name: str) -> DataFrame:
    mine = events.where((F.col("kind") == kind) & F.col("time").isNotNull() & F.col("message").isNotNull())
    return mine.groupBy("process", "message").agg(F.min("time").alias(name))


def _histogram(name: str, title: str, values: DataFrame, unit: str) -> Figure:
    low, high, count = values.agg(F.min("value"), F.max("value"), F.count("value")).collect()[0]
    if not count or not math.isfinite(high - low):
        return Figure(name, title, [])
    width = (high - low) / BINS or 1.0
    bins = F.least(F.floor((F.col("value") - F.lit(low)) / F.lit(width)), F.lit(BINS - 1)).alias("bin")
    found = {
        row["bin"]: row["count"] for row in values.where("value is not null").groupBy(bins).count().collect()
    }
    filled = range(BINS) if high > low else range(1)
    return Figure(
        name,
        title,
        [_plain(low + number * width) for number in filled],
        [found.get(number, 0) for number in filled],
        x_label=f"{unit}, from",
        y_label="messages",
        note=f"{count:,} message{'' if count == 1 else 's'}, from {_plain(low)} to {_plain(high)}.",
    )


def _held(both: DataFrame) -> Figure:
    """How many messages were received and not delivered yet, over time."""
    title = "Messages held back, over time"
    low, high = both.agg(F.min("came"), F.max("went")).collect()[0]
    if low is None or high <= low or not math.isfinite(float(high) - float(low)):
        return Figure("held", title, [])
    width = (high - low) / POINTS

    def steps(name: str, change: int) -> DataFrame:
        point = F.floor((F.col(name) - F.lit(low)) / F.lit(width)).alias("point")
        return both.select(point, F.lit(change).alias("change"))

    changes = (
        steps("came", 1).unionAll(steps("went", -1)).groupBy("point").agg(F.sum("change").alias("change"))
    )
    found = {row["point"]: row["change"] for row in changes.collect()}
    held, line = 0, []
    for point in range(POINTS + 1):
        held += found.get(point, 0)
        line.append(held)
    times: list[Any] = [_plain(low + point * width) for point in range(POINTS + 1)]
    return Figure("held", title, times, line, kind="steps", x_label="time", y_label="messages")


def _plain(value: float) -> float | int:
    """Short enough for an axis."""
    return int(value) if float(value).is_integer() else float(f"{value:.4g}")

"""What is wrong with a log that was ordered in slabs, in the words of the pass over the whole log."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from operator import or_

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from causet.formats.execution import GAP, MOST_PLACES, Fault
from causet.slabs.judge import Verdict
from causet.slabs.window import DELIVERY, PARENT, RECEPTION
from causet.spark.skeleton.census import field
from causet.spark.skeleton.faults import LOG_FAULTS, Named, hole, place_of
from causet.spark.skeleton.notes import LOST_DELIVERY, LOST_PARENT, LOST_RECEPTION

_KINDS = {PARENT: LOST_PARENT, DELIVERY: LOST_DELIVERY, RECEPTION: LOST_RECEPTION}


def faults_of(verdict: Verdict, events: DataFrame) -> tuple[Fault, ...]:
    """The faults of a verdict; of the events only those are read that are named."""
    found = []
    if verdict.holes:
        places = tuple(hole(*each) for each in verdict.first_holes[:MOST_PLACES])
        found.append(Fault(GAP, verdict.holes, places))
    shown = {what: examples[:MOST_PLACES] for what, examples in verdict.first_lost.items()}
    named = _named(events, {lost[:2] for examples in shown.values() for lost in examples})
    for what, kind in _KINDS.items():
        if what in verdict.lost:
            of = [(named[process, seq], nth) for process, seq, nth in shown[what]]
            places = tuple(place_of(kind, event, _text(event, what, nth)) for event, nth in of)
            found.append(Fault(LOG_FAULTS[kind], verdict.lost[what], places))
    return tuple(found)


def _text(event: Named, what: int, nth: int) -> str | None:
    return event.parents[nth] if what == PARENT else None


def _named(events: DataFrame, wanted: Iterable[tuple[str, int]]) -> dict[tuple[str, int], Named]:
    conditions = [(F.col("process") == process) & (F.col("seq") == seq) for process, seq in wanted]
    if not conditions:
        return {}
    rows = (
        events.where(reduce(or_, conditions))
        .select(
            "process",
            F.col("seq").cast("long"),
            field(events, "id"),
            field(events, "message"),
            field(events, "parents"),
        )
        .collect()
    )
    return {
        (process, seq): Named(id or f"{process}#{seq}", process, seq, message, tuple(parents or ()))
        for process, seq, id, message, parents in rows
    }

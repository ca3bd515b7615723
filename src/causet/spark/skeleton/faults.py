"""What tasks noted about a log, in sentences: bad input, or faults that are counted and named."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.window import Window

from causet.errors import BadInput, printable, quote
from causet.formats.execution import GAP, MOST_PLACES, UNKNOWN_PARENT, Fault
from causet.formats.sound import TWO_EVENTS, TWO_IDS, TWO_SENDS
from causet.spark.skeleton.census import RANK, Census, field
from causet.spark.skeleton.notes import (
    CYCLE,
    LOST_DELIVERY,
    LOST_PARENT,
    LOST_RECEPTION,
    REPEATED_EVENT,
    REPEATED_ID,
    SENT_TWICE,
    Notes,
)

SHOWN = 12
"""Events of a cycle that are shown."""


class Named(NamedTuple):
    """An event by its id, and what else an error can name."""

    id: str
    process: str
    seq: int
    message: str | None
    parents: tuple[str, ...]


class BadEvents(BadInput):
    """Bad input because of certain events; a caller that knows the files can add where they are."""

    def __init__(self, sentence: str, events: Iterable[Named] = ()) -> None:
        super().__init__(sentence)
        self.events = tuple(events)


def names_of(numbered: DataFrame, census: Census, numbers: Iterable[int]) -> dict[int, list[Named]]:
    """The events with these numbers; more than one where a number is repeated."""
    wanted = {census.rank_of(number): number for number in numbers}
    if not wanted:
        return {}
    by_process: dict[str, list[int]] = {}
    for process_name, rank in wanted:
        by_process.setdefault(process_name, []).append(rank)
    condition = F.lit(False)
    for process_name, ranks in by_process.items():
        condition |= (F.col("process") == process_name) & F.col(RANK).isin(ranks)
    rows = (
        numbered.where(condition)
        .select(
            "process",
            F.col("seq").cast("long"),
            RANK,
            field(numbered, "id"),
            field(numbered, "message"),
            field(numbered, "parents"),
        )
        .collect()
    )
    found: dict[int, list[Named]] = {}
    for process_name, seq, rank, id, message, parents in rows:
        named = Named(id or f"{process_name}#{seq}", process_name, seq, message, tuple(parents or ()))
        found.setdefault(wanted[process_name, rank], []).append(named)
    return found


def bad_input(notes: Notes, numbered: DataFrame, census: Census) -> BadEvents | None:
    """The first reason to refuse this input, if there is one."""
    kind = next((each for each in _SENTENCES if each in notes.counts), None)
    if kind is None:
        return None
    numbers = notes.examples[kind][0]
    named = names_of(numbered, census, numbers)
    events = [event for number in numbers for event in named.get(number, [])]
    if kind == CYCLE:
        ids = [printable(named[number][0].id) for number in [*numbers, numbers[0]]]
        if len(ids) > SHOWN:
            ids[6:-5] = [f"… {len(ids) - 11} more …"]
        sentence = _SENTENCES[kind].format(" → ".join(ids))
        return BadEvents(sentence, events)
    event = events[0]
    facts = {
        "process": quote(event.process),
        "seq": event.seq,
        "id": quote(event.id),
        "message": quote(event.message),
    }
    return BadEvents(_SENTENCES[kind].format(**facts), events)


_SENTENCES = {
    REPEATED_EVENT: TWO_EVENTS,
    REPEATED_ID: TWO_IDS,
    SENT_TWICE: TWO_SENDS,
    CYCLE: "the trace has a cycle, in which an event happened before itself: {}",
}
"""What makes a trace bad input; the first of these that applies is reported."""


def log_faults(
    notes: Notes, numbered: DataFrame, census: Census, kinds: Mapping[str, str] | None = None
) -> tuple[Fault, ...]:
    """What is missing from a log, by kind."""
    found = []
    if census.gaps:
        found.append(_gaps(numbered))
    for kind, name in (kinds or LOG_FAULTS).items():
        if kind in notes.counts:
            examples = notes.examples[kind][:MOST_PLACES]
            named = names_of(numbered, census, [number for number, _ in examples])
            places = tuple(place_of(kind, named[number][0], text) for number, text in examples)
            found.append(Fault(name, notes.counts[kind], places))
    return tuple(found)


LOG_FAULTS = {
    LOST_PARENT: UNKNOWN_PARENT,
    LOST_DELIVERY: "delivered without a send",
    LOST_RECEPTION: "received without a send",
}


def place_of(kind: str, event: Named, text: str | None) -> str:
    if kind == LOST_PARENT:
        return f"{quote(event.id)} names {quote(text)}" if text is not None else quote(event.id)
    return f"{quote(event.id)}: message {quote(event.message)}"


def hole(process: str, first: int, last: int) -> str:
    """Where seqs of a process are missing."""
    return f"process {quote(process)}: {first}" + (f" to {last}" if last > first else "")


def _gaps(numbered: DataFrame) -> Fault:
    """Holes in the seqs of processes; between two holes, seq and rank differ by the same number."""
    runs = numbered.groupBy("process", (F.col("seq") - F.col(RANK)).alias("missing")).agg(
        F.min("seq").alias("first"), F.max("seq").alias("last")
    )
    before = F.lag("last", 1, 0).over(Window.partitionBy("process").orderBy("missing"))
    holes = runs.withColumn("hole", before + 1).where(F.col("missing") > 0).orderBy("process", "hole")
    holes = holes.where(F.col("first") > F.col("hole"))
    places = tuple(hole(row.process, row.hole, row.first - 1) for row in holes.limit(MOST_PLACES).collect())
    return Fault(GAP, holes.count(), places)

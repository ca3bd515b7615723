"""The stateful operator of the merge: holds the messages of a bucket, and releases them in their order.

A message is released when the smallest, over live sources, of their largest r exceeds its r + c + δ + ε, or,
if that is asked for, when the clock does: then nothing can come any more that belongs before it. These facts
only grow, and every bucket gets all of them with every batch; so all buckets release up to the same bound
without any exchange. Heartbeats are held and released like messages: the next merger needs them, too.

What a batch releases is a stretch of slices between the last bound and the new one, which is laid out over
the partitions in the order of time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Row

from causet.envelope import ALL, DOMAIN
from causet.errors import BadInput, printable
from causet.kernels.arrays import Array
from causet.kernels.streams.fingerprints import fingerprints, payload_columns
from causet.kernels.streams.sorting import ascending
from causet.spark.columns import INPUT
from causet.spark.streams.merge.memory import (
    KEPT,
    NEVER,
    PRINT,
    VERSION,
    Memory,
    numbers_of,
    ranks,
    same_again,
)
from causet.spark.streams.merge.packers import FINE, SLICE, MergeSettings, as_numpy, codes_of
from causet.spark.streams.merge.rows import (
    FAULTY,
    IS_BEAT,
    POSITION,
    PROBLEM,
    STATUS,
    TOO_LARGE,
    problems,
)
from causet.spark.streams.messages.links import processes_of
from causet.spark.streams.pack import FAULT, OWN, SIZE, from_blob, in_one_piece, stretches, text_column
from causet.spark.streams.state import Holder, Segments, as_blobs, named_row
from causet.status import (
    BEAT,
    CONFLICTS,
    DELIVERED,
    DIVERTED,
    DUPLICATES,
    HEARTBEATS,
    LATE,
    READ,
    REFUSED,
)

COUNTS = (READ, DELIVERED, LATE, DIVERTED, REFUSED, CONFLICTS, DUPLICATES, HEARTBEATS)
"""What is counted; `diverted` are all that leave so but for conflicts, and `refused` those of them that are
not messages."""
OUT = "part int, slice long, rows binary, held long, oldest long, blocked string, bound long, " + ", ".join(
    f"{name} long" for name in COUNTS
)
_NOTHING = dict.fromkeys(("held", "oldest", "blocked", "bound", *COUNTS))


class Merger(Holder):
    """Holds and releases the messages in the slices of one bucket."""

    def __init__(self, settings: MergeSettings) -> None:
        super().__init__(settings.fixed, VERSION)
        self.settings = settings

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        memory, segments = self.load()
        slices = Slices(self.settings, Memory() if memory is None else Memory.from_bytes(memory), segments)
        blobs: list[bytes] = []
        for row in rows:
            if row["progress"] is not None:
                slices.hear(json.loads(row["progress"]), row["lowest"], row["clock"])
                slices.count(read=row[READ])
            if row["rows"] is not None:
                blobs.append(row["rows"])
        for part, time_slice, table in slices.step(blobs):
            yield from as_blobs(table, part=part, slice=time_slice, **_NOTHING)
        yield Row(part=0, slice=None, rows=None, **slices.report())
        self.save(slices.memory.to_bytes(), segments)


class Slices:
    """The messages in the slices of one bucket: rows in, rows out in their order."""

    def __init__(self, settings: MergeSettings, memory: Memory, segments: Segments) -> None:
        self.settings = settings
        self.memory = memory
        self.segments = segments
        self.clock = NEVER
        """what the clock shows, if it is known that all that had come by then is here"""
        self._counts = dict.fromkeys(COUNTS, 0)

    def hear(self, progress: dict[str, int], lowest: int | None, clock: int | None = None) -> None:
        """How far sources are, the smallest time of a batch's messages, and what the clock shows; every
        bucket hears the same."""
        memory = self.memory
        numbers = memory.numbers(list(progress))
        memory.progress[numbers] = np.maximum(memory.progress[numbers], list(progress.values()))
        if lowest is not None and memory.bound == NEVER:
            memory.lowest = lowest if memory.lowest == NEVER else min(memory.lowest, lowest)
        if clock is not None:
            self.clock = max(self.clock, clock)

    def count(self, **counts: int) -> None:
        for name, number in counts.items():
            self._counts[name] += number

    def slowest(self) -> tuple[int, str | None]:
        """The smallest, over live sources, of their largest r; and whose it is."""
        heard = zip(self.memory.names, self.memory.progress.tolist(), strict=True)
        live = {**dict.fromkeys(self.settings.sources, NEVER), **dict(heard)}
        found = [(r, name) for name, r in live.items() if name not in self.settings.exclude]
        return min(found) if found else (NEVER, None)

    def _heard(self) -> int:
        """The time up to which everything is here, but for what is in transit."""
        slowest = self.slowest()[0]
        return max(slowest, self.clock) if self.settings.by_clock else slowest

    def step(self, blobs: list[bytes]) -> Iterator[tuple[int, int, pa.Table]]:
        """Take messages in; what is released leaves as (partition, slice, rows)."""
        memory = self.memory
        before = memory.bound
        after = max(before, self._heard() - self.settings.delta - self.settings.epsilon)
        tables = [from_blob(blob) for blob in blobs]
        table = pa.concat_tables(tables).combine_chunks() if tables else None
        if table is not None:
            codes = codes_of(table)
            refused = (codes != FINE) & (codes != IS_BEAT)
            if refused.any():
                yield self._aside(self._diverted(table.filter(pa.array(refused)), codes[refused]))
                table = table.filter(pa.array(~refused))
        keys, place, order, conflicting = self._with_new(table)
        if conflicting.num_rows:
            yield self._aside(conflicting)
        late, free, beat = keys["rc"] < before, keys["rc"] < after, keys["sequence"] == 0
        for which, status in ((late, LATE), (free & ~late, DELIVERED)):
            rows = order[which[order]]
            if not len(rows):
                continue
            beats = int(beat[rows].sum())
            self.count(**{status: len(rows) - beats, HEARTBEATS: beats})
            leaving = _marked(self.segments.taken(place[rows]), status, beat=beat[rows])
            if status == LATE:
                yield 0, NEVER + 1, leaving
            else:
                first = before if before != NEVER else memory.lowest
                yield from self._in_slices(leaving, keys["rc"][rows], first, after)
        self._remember(keys, free, after)
        held, memory.place = memory.place, place[~free]
        self.segments.keep(held, memory.place)
        memory.bound = after
        memory.forget_names()

    def _aside(self, rows: pa.Table) -> tuple[int, int, pa.Table]:
        """Diverted rows leave before all others; BadInput about the first one if that must not be."""
        if self.settings.strict:
            first = rows.slice(0, 1).to_pylist()[0]
            about = named_row(first, "source", "sequence") or "without source and sequence"
            raise BadInput(f"a row ({about}) {first[PROBLEM]}; without --strict it is diverted")
        return 0, NEVER, rows

    def _diverted(self, table: pa.Table, codes: Array) -> pa.Table:
        """Rows that are not messages, and messages that cannot be written, with what is wrong."""
        words = problems(self.settings.epsilon)
        large = codes == words.index(TOO_LARGE)
        self.count(diverted=len(codes), refused=int((~large).sum()))
        said = [words[code] for code in codes.tolist()]
        if FAULT in table.column_names:
            told = table.column(FAULT).to_pylist()
            said = [told[row] if each == FAULTY else each for row, each in enumerate(said)]
        if large.any():
            sizes = table.column(SIZE).to_pylist()
            most = self.settings.most_bytes
            said = [
                f"{TOO_LARGE}: {sizes[row]} bytes, {most} at most" if large[row] else each
                for row, each in enumerate(said)
            ]
        return _marked(table.drop_columns(_own(table)), DIVERTED, said)

    def _with_new(self, table: pa.Table | None) -> tuple[dict[str, Array], Array, Array, pa.Table]:
        """The messages that are held, with those that came and are new; their places; their order; and rows
        that are not new, but are not duplicates either."""
        memory = self.memory
        if table is None or not table.num_rows:
            self.segments.begin(None)
            return memory.held, memory.place, self._order(memory.held), pa.table({})
        new = self._keys_of(table)
        table = table.drop_columns(_own(table))
        first_place = self.segments.begin(table)
        gone = len(memory.released["rc"])
        known = gone + len(memory.place)
        whole = {key: np.concatenate([memory.released[key], memory.held[key], new[key]]) for key in KEPT}
        order = self._order(whole)
        copies, conflicts = same_again(whole, order, known)
        self.count(duplicates=len(copies), conflicts=len(conflicts))
        here = np.ones(len(order), np.bool_)
        here[:gone] = here[copies] = here[conflicts] = False
        place = np.concatenate([memory.place, first_place + np.arange(table.num_rows)])
        keys = {key: whole[key][here] for key in KEPT}
        in_order = (np.cumsum(here) - 1)[order[here[order]]]
        return keys, place[here[gone:]], in_order, self._conflicting(table, whole, conflicts, known)

    def _keys_of(self, table: pa.Table) -> dict[str, Array]:
        """What the messages that came are known by."""
        memory = self.memory
        rows = table.num_rows
        coded = processes_of(table, self.settings).dictionary_encode()
        processes = numbers_of(memory.processes, coded.dictionary.to_pylist())
        if DOMAIN in table.column_names:
            domain = text_column(table.column(DOMAIN)).fill_null(ALL).dictionary_encode()
        else:
            domain = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int8)), pa.array([ALL]))
        domains = numbers_of(memory.domains, domain.dictionary.to_pylist())
        added = (POSITION, STATUS, PROBLEM)  # by a merger before this one, or by several
        payload = [name for name in table.column_names if _first_name(name) not in added]
        times = {
            key: in_one_piece(table.column(name)).fill_null(0).to_numpy(zero_copy_only=False)
            for key, name in self.settings.times._asdict().items()
        }
        beat = codes_of(table) == IS_BEAT
        return {
            "process": processes[as_numpy(coded.indices)],
            "domain": domains[as_numpy(domain.indices)],
            PRINT: fingerprints(table, payload_columns(payload)).view(np.int64),
            **times,
            "sequence": np.where(beat, 0, times["sequence"]),
        }

    def _conflicting(
        self, table: pa.Table, whole: dict[str, Array], conflicts: Array, known: int
    ) -> pa.Table:
        """Messages that have the number of another one, and heartbeats its time, with what is wrong."""
        names = [printable(self.memory.processes[each]) for each in whole["process"][conflicts].tolist()]
        said = [
            f"has the number of another message: process {name}, sequence {number}, but another id or data"
            if number
            else f"has the time of another heartbeat: process {name}, but another id or data"
            for name, number in zip(names, whole["sequence"][conflicts].tolist(), strict=True)
        ]
        return _marked(table.take(pa.array(conflicts - known)), DIVERTED, said)

    def _order(self, keys: dict[str, Array]) -> Array:
        """By (r + c, r, process, sequence, domain)."""
        process = ranks(self.memory.processes, keys["process"])
        domain = ranks(self.memory.domains, keys["domain"])
        return ascending(keys["rc"], keys["r"], process, keys["sequence"], domain)

    def _remember(self, keys: dict[str, Array], free: Array, after: int) -> None:
        memory = self.memory
        memory.held = {key: keys[key][~free] for key in KEPT}
        lately = {key: np.concatenate([memory.released[key], keys[key][free]]) for key in KEPT}
        keep = lately["rc"] >= after - self.settings.horizon
        memory.released = {key: lately[key][keep] for key in KEPT}

    def _in_slices(
        self, table: pa.Table, rc: Array, first: int, after: int
    ) -> Iterator[tuple[int, int, pa.Table]]:
        """The rows by slices, each with the partition in which that stretch of time stands."""
        slices = rc // SLICE
        low, high = first // SLICE, (after - 1) // SLICE
        for begin, end in stretches(slices):
            at = int(slices[begin])
            part = (max(at, low) - low) * self.settings.parts // (high - low + 1)
            yield part, at, table.slice(begin, end - begin)

    def report(self) -> dict[str, Any]:
        memory = self.memory
        smallest, name = self.slowest()
        held = len(memory.place)
        blocked = None
        if held and name is not None and not self.settings.by_clock:
            last = "no time" if smallest == NEVER else f"{smallest} µs"
            blocked = f"{printable(name)}, heard of last at {last}"
        return {
            "held": held,
            "oldest": int(memory.held["rc"].min()) if held else None,
            "blocked": blocked,
            "bound": None if memory.bound == NEVER else memory.bound,
            **self._counts,
        }


def _first_name(name: str) -> str:
    """The name that a column had before it was renamed because of a column that was added."""
    while name.startswith(INPUT):
        name = name.removeprefix(INPUT)
    return name


def _own(table: pa.Table) -> list[str]:
    return [name for name in table.column_names if name.startswith(OWN)]


def _marked(
    table: pa.Table, status: str, said: list[str] | None = None, beat: Array | None = None
) -> pa.Table:
    """The rows with their status, that of heartbeats apart, and with what is wrong with each, if anything
    is."""
    rows = table.num_rows
    problem = pa.nulls(rows, pa.string()) if said is None else pa.array(said, pa.string())
    which = pa.array(np.zeros(rows, np.int8) if beat is None else beat.astype(np.int8))
    word = pa.DictionaryArray.from_arrays(which, pa.array([status, BEAT]))
    return table.append_column(STATUS, word.cast(pa.string())).append_column(PROBLEM, problem)

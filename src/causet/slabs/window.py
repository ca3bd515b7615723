"""A window: all events that a slab sees, sorted by process, with references resolved as far as it sees."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from causet.kernels.arrays import Array
from causet.kernels.logs.keys import find_keys
from causet.kernels.logs.pages import ABSENT
from causet.kernels.logs.windows import by_process, find_events, hashes_of
from causet.kernels.names import MESSAGES, list_lengths, reference_keys, text_buffers
from causet.slabs.cut import DECIDING, times_of
from causet.slabs.plan import Plan

PARENT, DELIVERY, RECEPTION = 0, 1, 2
"""What a reference is."""


class References(NamedTuple):
    """References of one kind."""

    effect: Array
    """the event that has it, by its number in the window"""
    place: Array
    """which of the parents of its event it is, from 0"""
    low: Array
    high: Array
    number: Array
    """with the key of a process, the seq; 0 where the key stands for an id or a message"""
    what: Array
    cause: Array
    """the event that is meant, or ABSENT if the window does not have it"""


class Definitions(NamedTuple):
    """Keys by which events are referred to."""

    event: Array
    low: Array
    high: Array


class Window(NamedTuple):
    """Events are numbered by (process, seq)."""

    rows: pa.Table
    """those that may be given out"""
    place: Array
    """for each event its row; behind those are events that may be causes only"""
    names: Any
    """of processes, sorted"""
    process: Array
    first: Array
    """where the events of each process begin; one more ends the last"""
    seq: Array
    time: Array
    references: References
    definitions: Definitions
    below: int
    """how many events there are before the window"""


def window_of(rows: Sequence[pa.Table], above: Sequence[pa.Table], below: int, plan: Plan) -> Window:
    """Put the pieces of a slab together. The same window comes of the same events in any order, but for rows
    with the same process and seq."""
    whole = pa.concat_tables(rows).combine_chunks()
    deciding = [name for name in DECIDING if name in whole.column_names]
    events = pa.concat_tables([whole.select(deciding), *above]).combine_chunks()
    named = _chunk(events, "process").dictionary_encode()
    order = pc.sort_indices(named.dictionary).to_numpy()
    code = np.empty(len(order), np.int32)
    code[order] = np.arange(len(order), dtype=np.int32)
    names = named.dictionary.take(pa.array(order))
    process = code[named.indices.to_numpy()]
    seq = np.asarray(events.column("seq").to_numpy(), np.int64)
    place, first = by_process(process, seq, len(names))
    process, seq = process[place], seq[place]
    at = np.empty(len(place), np.int64)
    at[place] = np.arange(len(place))
    found = list(_keyed(events, at, names, first, seq, plan))
    references = [each for each in found if isinstance(each, References)]
    definitions = [each for each in found if isinstance(each, Definitions)]
    return Window(
        rows=whole,
        place=place,
        names=names,
        process=process,
        first=first,
        seq=seq,
        time=times_of(events.column("time"), plan.floats)[place],
        references=References(*map(_joined, zip(*references, strict=True))) if references else _NO_REFERENCES,
        definitions=Definitions(*map(_joined, zip(*definitions, strict=True)))
        if definitions
        else _NO_DEFINITIONS,
        below=below,
    )


def ids_of(events: pa.Table) -> Any:
    """The id of each event: its own, or process#seq."""
    default = pc.binary_join_element_wise(
        _chunk(events, "process").cast(pa.string()),
        pc.cast(_chunk(events, "seq"), pa.string()),
        "#",
    )
    if "id" not in events.column_names:
        return default
    return pc.coalesce(_chunk(events, "id").cast(pa.string()), default)


def has_own_ids(events: pa.Table) -> bool:
    """Whether some event has an id other than process#seq."""
    if "id" not in events.column_names or events.column("id").null_count == events.num_rows:
        return False
    plain = events.select(["process", "seq"]).combine_chunks()
    return not pc.all(pc.equal(ids_of(events.combine_chunks()), ids_of(plain))).as_py()


def _keyed(
    events: pa.Table, at: Array, names: Any, first: Array, seq: Array, plan: Plan
) -> Iterator[References | Definitions]:
    """References and what they refer to; `at` is the number of the event in each row."""
    parents = _chunk(events, "parents") if "parents" in events.column_names else None
    if plan.own_ids:
        ids = Definitions(at, *hashes_of(ids_of(events), plan.key))
        yield ids
    if parents is not None:
        lengths = list_lengths(parents)
        rows = np.repeat(np.arange(len(lengths)), lengths)
        nth = np.arange(len(rows)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        texts = parents.flatten()
        what = np.full(len(rows), PARENT, np.int8)
        if plan.own_ids:
            low, high = hashes_of(texts, plan.key)
            number = np.zeros(len(low), np.int64)
            cause = _among(ids, low, high)
        else:
            low, high, number = reference_keys(*text_buffers(texts), plan.key)
            process, _ = find_keys(*hashes_of(names, plan.key), low, high)
            cause = find_events(first, seq, process, number)
        yield References(at[rows], nth, low, high, number, what, cause)
    if "kind" not in events.column_names or "message" not in events.column_names:
        return
    kind = _chunk(events, "kind").dictionary_encode()
    numbered = {name: number for number, name in enumerate(kind.dictionary.to_pylist())}
    codes = kind.indices.fill_null(-1).to_numpy()
    if not numbered.keys() & {"send", "deliver", "receive"}:
        return
    low, high = np.zeros(len(codes), np.uint64), np.zeros(len(codes), np.uint64)
    carries = np.flatnonzero(np.isin(codes, [n for name, n in numbered.items() if name != "local"]))
    low[carries], high[carries] = hashes_of(
        _chunk(events, "message").take(pa.array(carries)), plan.key ^ MESSAGES
    )
    sends = np.flatnonzero(codes == numbered.get("send", -2))
    sent = Definitions(at[sends], low[sends], high[sends])
    yield sent
    for name, what_is_it in (("deliver", DELIVERY), ("receive", RECEPTION)):
        rows = np.flatnonzero(codes == numbered.get(name, -2))
        if len(rows):
            nothing = np.zeros(len(rows), np.int64)
            cause = _among(sent, low[rows], high[rows])
            what = np.full(len(rows), what_is_it, np.int8)
            yield References(at[rows], nothing, low[rows], high[rows], nothing, what, cause)


def _among(definitions: Definitions, low: Array, high: Array) -> Array:
    """The event that each key stands for."""
    found, _ = find_keys(definitions.low, definitions.high, low, high)
    if not len(definitions.event):
        return found.astype(np.int64)
    return np.where(found == ABSENT, ABSENT, definitions.event[found])


def _chunk(table: pa.Table, name: str) -> Any:
    """A column of a table whose chunks are combined, as one array."""
    column = table.column(name)
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _joined(columns: Sequence[Array]) -> Array:
    return columns[0] if len(columns) == 1 else np.concatenate(columns)


_NOTHING, _NO_KEYS = np.empty(0, np.int64), np.empty(0, np.uint64)
_NO_REFERENCES = References(_NOTHING, _NOTHING, _NO_KEYS, _NO_KEYS, _NOTHING, np.empty(0, np.int8), _NOTHING)
_NO_DEFINITIONS = Definitions(_NOTHING, _NO_KEYS, _NO_KEYS)

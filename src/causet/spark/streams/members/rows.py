"""The columns of members: rows as packets, and packets that leave as rows."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa

from causet.kernels.arrays import Array
from causet.spark.streams.members.member import Came, Delivery
from causet.spark.streams.members.settings import PACKET, SEQ, Settings
from causet.spark.streams.messages.settings import ADDED
from causet.spark.streams.pack import FAULT, OWN, SIZE
from causet.spark.streams.state import Segments
from causet.status import DELIVERED, DIVERTED

MISSING = pa.map_(pa.string(), pa.int64())
DIGITS = re.compile("[0-9]{1,20}")


def came_in(table: pa.Table, settings: Settings, first_place: int) -> list[Came]:
    """The rows of a table, in an order that does not depend on how they came: by process, then in turn, then
    by their bytes."""
    columns = [_values(table, name) for name in (settings.by, SEQ, PACKET, FAULT, SIZE)]
    found = [_came(first_place + at, row, settings) for at, row in enumerate(zip(*columns, strict=True))]
    found.sort(key=_turn)
    return [
        each for _, same in groupby(found, key=_turn) for each in _by_content(list(same), table, first_place)
    ]


def _values(table: pa.Table, name: str) -> list[Any]:
    there = name in table.column_names
    return table.column(name).to_pylist() if there else [None] * table.num_rows


def _came(place: int, row: Sequence[Any], settings: Settings) -> Came:
    receiver, seq, packet, fault, size = row
    receiver = None if receiver is None else str(receiver)
    number = _number(seq)
    problem: str | None = None
    data = b""
    if fault is not None:
        problem = fault
    elif receiver is None:
        problem = f"has no {settings.by}"
    elif receiver not in settings.numbers:
        problem = f"has a {settings.by} that is not a process of the system"
    elif seq is not None and number is None:
        problem = f"has a {SEQ} that is not a number from 1"
    elif packet is None or not len(packet):
        problem = f"has no {PACKET}"
    elif settings.most_bytes is not None and (size or 0) > settings.most_bytes:
        problem = f"is larger than the {settings.most_bytes:,} bytes that the sink takes of a message"
    else:
        try:
            data = packet if isinstance(packet, bytes) else b64decode(packet, validate=True)
        except ValueError:
            problem = f"has a {PACKET} that is not base64"
    return Came(receiver, number, data, place, problem)


def _number(seq: Any) -> int | None:
    """A position from 1, as a number or in digits."""
    text = str(seq)
    return int(text) if DIGITS.fullmatch(text) and text.isascii() and int(text) else None


def _turn(came: Came) -> tuple[Any, ...]:
    return (came.receiver or "", came.seq is None, came.seq or 0, came.data, came.problem or "")


def _by_content(same: list[Came], table: pa.Table, first_place: int) -> Iterator[Came]:
    if len(same) == 1:
        return iter(same)
    rows = table.take(pa.array([each.place - first_place for each in same])).to_pylist()
    order = sorted(range(len(same)), key=lambda at: str(rows[at]))
    return (same[at] for at in order)


def delivered_rows(rows: Segments, deliveries: Sequence[Delivery], settings: Settings) -> pa.Table:
    """The rows that are delivered, in the order of their deliveries."""
    count = len(deliveries)
    return _finished(
        rows.taken(_places(each.place for each in deliveries)),
        settings,
        pa.array([each.receiver for each in deliveries], pa.string()),
        pa.array([each.index for each in deliveries], pa.int64()),
        pa.array([DELIVERED] * count),
        pa.array([each.waited for each in deliveries], pa.float64()),
        pa.nulls(count, pa.string()),
    )


def diverted_rows(rows: Segments, problems: Mapping[int, str], settings: Settings) -> pa.Table:
    """The rows that are diverted, each with its problem."""
    table, count = rows.taken(_places(problems)), len(problems)
    receivers = [None if each is None else str(each) for each in _values(table, settings.by)]
    return _finished(
        table,
        settings,
        pa.array(receivers, pa.string()),
        pa.nulls(count, pa.int64()),
        pa.array([DIVERTED] * count),
        pa.array([0.0] * count),
        pa.array(list(problems.values()), pa.string()),
    )


def _places(places: Iterable[int]) -> Array:
    return np.fromiter(places, np.int64)


def _finished(table: pa.Table, settings: Settings, receiver: pa.Array, *added: pa.Array) -> pa.Table:
    index, status, waited, problem = added
    names = [name for name in settings.columns if not name.startswith(OWN) and name not in ADDED]
    for lacking in (name for name in names if name not in table.column_names):
        table = table.append_column(lacking, pa.nulls(table.num_rows, pa.string()))
    kept = table.select(names)
    missing = pa.array([[]] * table.num_rows, MISSING)
    for name, column in zip(ADDED, (receiver, index, status, waited, missing, problem), strict=True):
        kept = kept.append_column(name, column)
    return kept

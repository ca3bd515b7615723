"""`tune()`: the smallest ε and δ with which a merge of these messages would have lost nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from causet.errors import BadInput, quote
from causet.kernels.streams.needed import needed
from causet.spark.columns import quoted
from causet.spark.streams.merge.rows import Extra, is_beat, next_delta, out_of_bounds, with_times
from causet.spark.streams.messages.columns import columns_that_came
from causet.spark.streams.pack import in_one_piece, text_column
from causet.stamp import MOST_SEQUENCE

SHARES = (0.5, 0.9, 0.99, 0.999, 1.0)
"""Of the messages that are to be in time."""


@dataclass(frozen=True)
class Tuning:
    """What the messages would have needed, in ticks of 1 µs."""

    messages: int
    sources: int
    skipped: int
    """rows without a time or a number that can be read"""
    epsilon: int
    """the largest c: a clock was so far behind another one"""
    delta: int
    trade: tuple[tuple[float, int, int], ...]
    """(share of messages in time, the δ that gives it, messages that are late with it)"""
    latest: int = 0
    """the largest r"""

    def levels(self, number: int) -> Iterator[tuple[int, int]]:
        """(ε, δ) for so many levels of mergers, the lowest first."""
        delta = self.delta
        for _ in range(number):
            yield self.epsilon, delta
            delta = next_delta(self.epsilon, delta)


def tune(messages: DataFrame, arrival: str | Column, ticks: str = "us") -> Tuning:
    """What ε and δ the messages needed. `arrival` is the column by which they came, and `ticks` the unit of
    rc and r."""
    if isinstance(arrival, str) and arrival not in messages.columns:
        raise BadInput(f"there is no column {quote(arrival)}; there are {columns_that_came(messages)}")
    stamped, times = with_times(messages, ticks)
    later, earlier = F.col(times.rc), F.col(times.r)
    beats = is_beat(Extra.of_rows(stamped))
    numbered = F.col(times.sequence).between(1, MOST_SEQUENCE)
    fine = F.col("source").isNotNull() & ~F.coalesce(out_of_bounds(later, earlier, times), F.lit(True))
    wanted = stamped.where(fine & (beats | numbered))
    order = F.col(quoted(arrival)) if isinstance(arrival, str) else arrival
    narrow = wanted.select("source", *times, order.alias("__causet_arrival"), beats.alias("__causet_beat"))
    table = narrow.orderBy("__causet_arrival", times.r, times.sequence).toArrow()
    rows = messages.count()
    messages_only = ~in_one_piece(table.column("__causet_beat")).to_numpy(zero_copy_only=False)
    if not messages_only.any():
        raise BadInput("there is no message with a time; merge needs rc and r, or causaltime")
    coded = text_column(table.column("source")).dictionary_encode()
    rc, r = (in_one_piece(table.column(name)).to_numpy(zero_copy_only=False) for name in (times.rc, times.r))
    source = coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    epsilon = max(int((rc - r).max()), 0)
    needs = np.maximum(needed(source, rc, r, len(coded.dictionary))[messages_only] - epsilon, 0)
    by_size = np.sort(needs)
    trade = []
    for share in SHARES:
        delta = int(by_size[min(int(np.ceil(share * len(by_size))), len(by_size)) - 1])
        trade.append((share, delta, int((needs > delta).sum())))
    return Tuning(
        len(needs),
        len(coded.dictionary),
        rows - table.num_rows,
        epsilon,
        int(by_size[-1]),
        tuple(trade),
        int(r.max()),
    )

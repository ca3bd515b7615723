"""What `deliver` has to give by the engine, and what it gave."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from pyspark.sql import Row
from pyspark.sql.streaming.query import StreamingQuery

from causet.delivery import Delivery
from causet.stamp import deps_of, sequence_of
from tests.helpers.streams import Message


def by_engine(messages: Sequence[Message], policy: str) -> dict[tuple[str, str], tuple[str, dict[str, int]]]:
    """For each receiver and message what the pure engine makes of it when all is there at once."""
    engines: dict[str, Delivery[str]] = {}
    for message in messages:
        engine = engines.setdefault(
            message["receiver"], Delivery(policy, None if policy == "wait" else 10**9)
        )
        engine.offer(message["source"], sequence_of(message), deps_of(message), message["subject"], 0)
    return {
        (receiver, each.payload): (each.status, each.missing)
        for receiver, engine in engines.items()
        for each in engine.take(0, ended=True)
    }


def told(rows: Iterable[Row]) -> dict[tuple[str, str], tuple[str, dict[str, int]]]:
    found: dict[tuple[str, str], tuple[str, dict[str, int]]] = {}
    for row in rows:
        assert (row.receiver, row.subject) not in found, "once"
        found[row.receiver, row.subject] = (row.status, row.missing)
    return found


def in_order(rows: Iterable[Row]) -> dict[str, list[str]]:
    """For each receiver its messages by index, which has no gap."""
    delivered: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for row in rows:
        if row.status == "diverted":
            assert row["index"] is None
        else:
            delivered[row.receiver].append((row["index"], row.subject))
    for each in delivered.values():
        each.sort()
        assert [index for index, _ in each] == list(range(len(each)))
    return {receiver: [subject for _, subject in each] for receiver, each in delivered.items()}


def finish(query: StreamingQuery, seconds: int = 300) -> None:
    try:
        assert query.awaitTermination(seconds), "the stream did not end"
    finally:
        query.stop()

"""What the state of a query says of its readers, as a cut with which another checkpoint can begin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from causet.envelope import ALL as ALL_GROUPS
from causet.kernels.streams.beginning import Counted, counted_by, groups_of
from causet.kernels.streams.channels import channels_of
from causet.kernels.streams.holding import Holding
from causet.kernels.streams.keys import KEY, digests
from causet.readers import ALL, Readers, readers_of
from causet.spark.streams.beginnings.cut import VERSION, as_json
from causet.spark.streams.beginnings.kept import Beginnings
from causet.spark.streams.checkpoint import Checkpoint
from causet.spark.streams.held import heads_of
from causet.spark.streams.parquet import buckets_of


def exported(
    spark: SparkSession, kept: Checkpoint, settings: Mapping[str, Any], buckets: int
) -> tuple[dict[str, Any], int]:
    """The cut of the last batch that is committed, and how many messages are held."""
    heads = heads_of(spark, kept.spark)
    readers = known_to(heads, kept.beginnings, readers_of(settings.get("readers")))
    return cut_of(heads, readers, buckets), sum(map(len, heads.values()))


def known_to(heads: Mapping[int, Holding], kept: Beginnings, readers: Readers) -> Readers:
    """The readers that a state knows: not those of a beginning that does not count yet."""
    last = kept.last()
    if last is None or (heads and all(each.begun.max(initial=0) >= last.number for each in heads.values())):
        return readers
    return last.since if last.before is None else last.before


def cut_of(heads: Mapping[int, Holding], readers: Readers, buckets: int) -> dict[str, Any]:
    """What was delivered to each reader, group by group."""
    found: dict[str, Any] = {}
    for reader, names in _readers(heads, readers):
        bucket = int(buckets_of(pa.array([reader]), buckets)[0])
        memory = heads.get(bucket)
        if memory is None:
            memory = Holding.empty()
        named = {digests([name]).tobytes(): name for name in names}
        known = dict.fromkeys(named)
        if not readers.listed and not readers.each:
            whole = groups_of(memory, reader).tobytes() + memory.channel_group.tobytes()
            known |= {whole[at : at + KEY]: None for at in range(0, len(whole), KEY)}
        mine: dict[str, dict[str, Any]] = {"groups": {}, "digests": {}}
        channels = {channel for key in known for channel in channels_of(memory.channels, key)[1:]}
        for key in (each for each in known if each not in channels):
            counted = _counted(memory, reader, key)
            more = {
                channel.hex(): as_json(_counted(memory, reader, channel))
                for channel in channels_of(memory.channels, key)[1:]
            }
            if not readers.listed and not len(counted.low) and not more:
                continue
            kind, name = ("groups", named[key]) if key in named else ("digests", key.hex())
            mine[kind][name] = as_json(counted) | ({"channels": more} if more else {})
        found[reader] = {kind: groups for kind, groups in mine.items() if groups}
    return {"version": VERSION, "readers": found}


def _counted(memory: Holding, reader: str, key: bytes) -> Counted:
    return counted_by(memory, reader, np.frombuffer(key, f"S{KEY}"))


def _readers(heads: Mapping[int, Holding], readers: Readers) -> list[tuple[str, tuple[str, ...]]]:
    """The readers, and the names that their groups can have."""
    if readers.listed:
        return list(readers.listed)
    if not readers.each:
        return [(ALL, (ALL_GROUPS,))]
    names = {name for memory in heads.values() for name in memory.receiver_name if name}
    return [(name, (name,)) for name in sorted(names)]

"""What members hold, read from the state in a checkpoint: why is this held?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pyspark.sql import SparkSession

from causet.plain import load_yaml
from causet.protocols import protocol_named
from causet.simulate.systems import setting_of
from causet.spark.streams.held import memories
from causet.spark.streams.members.bucket import members_in
from causet.spark.streams.members.settings import VERSION, Settings


class Waiting(NamedTuple):
    """A row that waits."""

    receiver: str
    message: str
    since: int
    """when it came, in ms"""
    needs: str
    """in words"""


def how_many_waiting(spark: SparkSession, state: Path, settings: Settings) -> int:
    """How many rows members hold."""
    return sum(1 for _ in waiting(spark, state, settings))


def waiting(spark: SparkSession, state: Path, settings: Settings) -> Iterator[Waiting]:
    """The rows that members hold."""
    for _, memory in memories(spark, state, VERSION):
        for _, member in sorted(members_in(settings, memory).items()):
            for row, message, needs in member.waiting():
                yield Waiting(member.name, message, row.arrival, needs)


def settings_in(about: Mapping[str, Any]) -> Settings:
    """The settings of the query that a checkpoint is of."""
    fixed = about["fixed"]
    setting = setting_of(load_yaml(about["settings"]["system"]), protocol_named(fixed["protocol"]))
    return Settings(setting, fixed["by"], fixed["buckets"], 0)

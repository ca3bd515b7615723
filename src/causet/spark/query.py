"""A query: what it reads, where its rows go, and what it needs to go on later."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from causet.spark.arrivals import (
    arriving,
    arriving_files,
    await_form,
    check_messages,
    has_columns_in_names,
    schema_from,
    schema_of,
    schema_text,
)
from causet.spark.batches import FileSink
from causet.spark.checkpoints import Checkpoint
from causet.spark.direct import ParquetFiles
from causet.spark.kafka import PER_BATCH as MESSAGES_PER_BATCH
from causet.spark.kafka import Address, KafkaSink, read_kafka


@dataclass(frozen=True)
class Query:
    """What a query reads and where its rows go, found out before Spark is started; once everything else is
    right too, `Checkpoint.settle` writes it down."""

    source: Path | Address
    form: str
    schema: T.StructType | None
    """of the source, where it was settled before"""
    target: FileSink | KafkaSink
    name: str
    """by which the query is known from its first run on"""

    @classmethod
    def prepared(
        cls,
        kept: Checkpoint,
        command: str,
        fixed: Mapping[str, Any],
        source: str,
        sink: str,
        written_as: str | None,
        follow: bool,
    ) -> Query:
        begun = kept.opened(command, fixed)
        address = Address.parse(source)
        if begun is not None:
            form, name = begun["form"], begun["name"]
        else:
            form, name = "kafka" if address else await_form(Path(source), follow), uuid4().hex
        if address is None and begun is None:
            check_messages(Path(source))
        if address is None:
            kept.check_files()
        target = cls._target(sink, begun["written_as"] if begun else written_as, form, name)
        target.prepare(fresh=begun is None)
        target.clean()
        schema = schema_from(begun["schema"]) if begun and address is None else None
        return cls(address or Path(source), form, schema, target, name)

    @staticmethod
    def _target(sink: str, written_as: str | None, form: str, name: str) -> FileSink | KafkaSink:
        address = Address.parse(sink)
        if address is not None:
            return KafkaSink(address, name)
        return FileSink(Path(sink), written_as or ("jsonl" if form == "kafka" else form))

    def messages(
        self, spark: SparkSession, per_batch: int, columns: Sequence[str | None] = ()
    ) -> DataFrame | ParquetFiles:
        """The messages as a stream; of Kafka's, also the attributes that these columns name."""
        if isinstance(self.source, Address):
            named = [column for column in columns if column is not None]
            return read_kafka(spark, self.source, MESSAGES_PER_BATCH, named)
        schema = self.schema or schema_of(spark, self.source, self.form)
        if self.form == "parquet" and not has_columns_in_names(self.source):
            return arriving_files(spark, self.source, schema, per_batch)
        return arriving(spark, self.source, self.form, schema, per_batch)

    @contextmanager
    def withdrawn_if_refused(self) -> Iterator[None]:
        """Whoever is refused leaves no empty folders behind."""
        try:
            yield
        except BaseException:
            if isinstance(self.target, FileSink):
                self.target.withdraw()
            raise

    def settled(self, schema: T.StructType) -> dict[str, Any]:
        """What is to be known the next time."""
        text = schema_text(self.schema or schema)
        return {"form": self.form, "written_as": self.target.form, "schema": text, "name": self.name}

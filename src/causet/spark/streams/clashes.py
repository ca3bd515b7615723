"""Columns of the input that have the name of a column that is added: they are kept, under another name."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from causet.spark.columns import input_names
from causet.spark.streams.parquet import ParquetFiles


def without_clashes(
    messages: DataFrame | ParquetFiles, added: Sequence[str]
) -> tuple[DataFrame | ParquetFiles, dict[str, str]]:
    """The messages, with other names for columns that have the name of one that is added; and these names."""
    rows = messages.rows if isinstance(messages, ParquetFiles) else messages
    case_matters = rows.sparkSession.conf.get("spark.sql.caseSensitive") == "true"
    names = input_names(rows.columns, added, case_matters)
    if not names:
        return messages, {}
    renamed = messages.renamed if isinstance(messages, ParquetFiles) else messages.withColumnsRenamed
    return renamed(names), names

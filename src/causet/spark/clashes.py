"""Columns of the input that have the name of a column that is added: they are kept, under another name."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from causet.spark.direct import ParquetFiles

INPUT = "input_"
"""Before the name of a user's column that has the name of one that is added."""


def input_names(names: Sequence[str], added: Sequence[str], case_matters: bool) -> dict[str, str]:
    """What columns are called whose names are those of columns that are added: own name → new name.

    >>> input_names(["block", "id", "input_block"], ["block"], True)
    {'block': 'input_input_block'}
    """

    def key(name: str) -> str:
        return name if case_matters else name.lower()

    ours = {key(name) for name in added}
    taken = {key(name) for name in (*names, *added)}
    found: dict[str, str] = {}
    for name in names:
        if key(name) in ours:
            new = INPUT + name
            while key(new) in taken:
                new = INPUT + new
            taken.add(key(new))
            found[name] = new
    return found


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

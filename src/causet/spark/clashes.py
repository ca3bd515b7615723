"""Columns of the input that have the name of a column that is added: they are kept, under another name."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from pyspark.sql import DataFrame

from causet.model import BadInput
from causet.spark.direct import ParquetFiles


def renames(names: Sequence[str], added: Collection[str], case_matters: bool = True) -> dict[str, str]:
    """Columns that have the name of one that is added, and the names under which they are kept.

    BadInput if such a name is there too.

    >>> renames(["source", "status"], ["status", "problem"])
    {'status': 'input_status'}
    """

    def same(name: str) -> str:
        return name if case_matters else name.casefold()

    taken = {same(name) for name in names}
    ours = {same(name) for name in added}
    found = {name: f"input_{name}" for name in names if same(name) in ours}
    for old, new in found.items():
        if same(new) in taken:
            raise BadInput(
                f"column {old!r} has the name of a column that is added, and {new!r}, the name that it would "
                "be kept under, is there too: rename one of them"
            )
    return found


def without_clashes(
    messages: DataFrame | ParquetFiles, added: Collection[str]
) -> tuple[DataFrame | ParquetFiles, dict[str, str]]:
    """The messages, with other names for columns that have the name of one that is added; and these names."""
    rows = messages.rows if isinstance(messages, ParquetFiles) else messages
    case_matters = rows.sparkSession.conf.get("spark.sql.caseSensitive") == "true"
    names = renames(rows.columns, added, case_matters)
    if not names:
        return messages, {}
    renamed = messages.renamed if isinstance(messages, ParquetFiles) else messages.withColumnsRenamed
    return renamed(names), names

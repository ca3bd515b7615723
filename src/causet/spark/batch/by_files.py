"""Files that workers read themselves, for questions about a whole log; otherwise Spark reads rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from causet.spark.read.arrow import Table, events_of
from causet.spark.read.source import Source
from causet.spark.skeleton.files import Refused
from causet.spark.skeleton.skeleton import SMALL

Answer = TypeVar("Answer")


def by_files(source: Source, answer: Callable[[Table | None], Answer]) -> Answer:
    """The answer from the files of a source that is not checked yet, or from its rows, which are checked
    then: BadInput names the first that is not an event."""
    table = None if source.imported else events_of(source.files)
    if table is not None and table.rows > SMALL:
        try:
            return answer(table)
        except Refused:
            pass
    source.check()
    return answer(None)

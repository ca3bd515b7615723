"""An execution on Spark while a command runs: session, source, and locations in errors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from causet.cli.shared.spark import session
from causet.errors import BadInput

if TYPE_CHECKING:
    from causet.spark.read.source import Source
    from causet.spark.skeleton.faults import BadEvents

MOST_PLACES = 3
LITTLE = 16 << 20
"""Bytes of input below which optimising costs more than it saves."""


@contextmanager
def execution(
    inputs: tuple[Path, ...],
    form: str | None,
    options: Mapping[str, Any],
    master: str | None,
    conf: Mapping[str, str],
    what: str,
    own_columns: bool = False,
    checked: bool = True,
) -> Iterator[Source]:
    """The inputs as one execution, checked unless the caller does that; with `own_columns`, a table's own
    columns can be given back. Errors about an event name its location."""
    with session(
        master, conf, what, brief=all(path.is_file() for path in inputs) and is_little(inputs)
    ) as spark:
        from causet.spark.read.source import open_trace
        from causet.spark.skeleton.faults import BadEvents

        with open_trace(spark, inputs, form, own_columns=own_columns, **options) as source:
            if checked:
                source.check()
            try:
                yield source
            except BadEvents as error:
                raise BadInput(f"{_places(source, error)}: {error}") from None


def is_little(inputs: Iterable[Path]) -> bool:
    """Whether the files are too small for optimising to pay."""
    try:
        files = [path for path in inputs if path.is_file()]
        sizes = [path.stat().st_size * (10 if path.suffix == ".gz" else 1) for path in files]
    except OSError:
        return False
    return bool(sizes) and sum(sizes) <= LITTLE


def _places(source: Source, error: BadEvents) -> str:
    found: list[str] = []
    for event in error.events:
        found += [place for place in source.place_of(event.process, event.seq) if place not in found]
        if len(found) >= MOST_PLACES:
            break
    return " and ".join(found[:MOST_PLACES]) or ", ".join(map(str, source.files[:MOST_PLACES]))

"""`causet order`: files in causal order, as a folder of files.

In slabs, by workers that read and write the files themselves, where that is possible; otherwise by the pass
over the whole log, with rows of Spark's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from causet.errors import BadInput
from causet.files import hidden_folder
from causet.formats.execution import Fault
from causet.spark.batch.order import added, order_events
from causet.spark.columns import input_names
from causet.spark.read.arrow import table_of
from causet.spark.read.source import Source
from causet.spark.skeleton.census import RESERVED
from causet.spark.skeleton.skeleton import SMALL
from causet.spark.slabs.faults import faults_of
from causet.spark.slabs.order import Unwritable, order_in_slabs
from causet.spark.write.folder import check_target, interrupted, place_parts, write_rows


@dataclass(frozen=True)
class Written:
    """An execution in causal order, in files."""

    files: Sequence[Path]
    events: int
    processes: int
    renamed: Mapping[str, str]
    """columns of the input that had the name of an added one: own name → new name"""
    faults: Sequence[Fault]
    slabs: int
    """how many slabs of time the log was ordered in; 0 if as a whole"""
    blocks: int | None
    """how many events the longest chain has; None where blocks were not asked for"""


def order_files(
    source: Source,
    target: str,
    form: str,
    overwrite: bool,
    blocks: bool,
    accept: Callable[[Sequence[Fault]], None],
) -> Written:
    """Write the events of a source, which is not checked yet, in order. `accept` raises if faults are not
    tolerated, before the target is touched."""
    folder = check_target(target, overwrite)
    if folder is not None and form == "parquet" and not blocks:
        found = _in_slabs(source, folder, accept)
        if found is not None:
            return found
    source.check()
    ordered = order_events(source.events, blocks)
    faults = [*source.faults, *ordered.faults]
    accept(faults)
    rows, renamed = source.given_back(ordered.rows, added(blocks))
    files = write_rows(rows, target, form, overwrite)
    census = ordered.census
    return Written(
        files=files,
        events=census.events,
        processes=len(census.processes),
        renamed={**ordered.renamed, **renamed},
        faults=faults,
        slabs=0,
        blocks=ordered.blocks,
    )


def _in_slabs(source: Source, folder: Path, accept: Callable[[Sequence[Fault]], None]) -> Written | None:
    """None if this source needs the pass over the whole log."""
    if source.imported:
        return None
    names = source.events.columns
    if any(name.startswith(RESERVED) for name in names):
        return None
    renamed = input_names(names, added(False), source.case_matters)
    table = table_of(source.files, renamed)
    if table is None or table.rows <= SMALL or set(table.types) != set(names):
        return None
    spark = source.events.sparkSession
    with hidden_folder(folder.resolve()) as beside, interrupted(spark, beside):
        new = beside / "parts"
        new.mkdir()
        try:
            sliced = order_in_slabs(spark, table, new)
        except Unwritable as reason:
            raise BadInput(f"{folder} cannot be written: {reason}") from None
        if sliced is None:
            return None
        faults = faults_of(sliced.verdict, source.events)
        accept(faults)
        files = place_parts(sliced.parts, folder, "parquet")
    return Written(
        files=files,
        events=sliced.verdict.events,
        processes=sliced.verdict.processes,
        renamed=renamed,
        faults=faults,
        slabs=len(sliced.parts),
        blocks=None,
    )

"""Where an event is in the files, found by reading their bytes: for errors about bad input only.

Rule: the bytes are searched first, and only candidate lines are decoded, so that finding an event at the end
of five million lines takes a second or two.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from causet.errors import BadInput, Problem
from causet.files import Place
from causet.formats.lines import blocks, kinds_of
from causet.formats.schema import EXACT
from causet.formats.strict import decode_record
from causet.formats.trace import event_of
from causet.model import Event

MOST = 10
"""Places that are reported."""
_ESCAPE = re.compile(rb"\\")


def places_of_event(files: Sequence[Path], process: str, seq: int) -> list[str]:
    """The places of events with this process and seq."""
    return _places(
        files,
        [_text(process), _seq(seq)],
        lambda event: (event.process, event.seq) == (process, seq),
        [{"process": process, "seq": seq}],
    )


def place_of_inexact_time(files: Sequence[Path]) -> tuple[Place, Event] | None:
    """The first event in JSON Lines whose time is an integer without an exact float."""
    wanted = (
        (place, event)
        for path in files
        for place, event in _matching(path, [re.compile(rb'"time"\s*:\s*-?[0-9]{16}|\\')])
        if isinstance(event.time, int) and abs(event.time) > EXACT
    )
    return next(wanted, None)


def _text(text: str) -> re.Pattern[bytes]:
    """The string as JSON, in the two ways in which it is usually written."""
    ways = {json.dumps(text, ensure_ascii=ascii).encode("utf-8", "replace") for ascii in (True, False)}
    return re.compile(b"|".join(map(re.escape, sorted(ways))))


def _seq(seq: int) -> re.Pattern[bytes]:
    return re.compile(rb'"seq"\s*:\s*%d(?![0-9])' % seq)


def _places(
    files: Sequence[Path],
    patterns: Sequence[re.Pattern[bytes]],
    wanted: Callable[[Event], bool],
    rows: Sequence[Mapping[str, object]],
) -> list[str]:
    """The first places of wanted events: lines that match all patterns, rows with the values of one of these.

    There are at least two. If only one is found, the other is written in an unusual way, with an escape.
    """
    found = _found(files, patterns, wanted, rows)
    if len(found) < 2:
        found += _found(files, [_ESCAPE], wanted, [])
    return [str(place) for _, place in sorted(set(found))][:MOST]


def _found(
    files: Sequence[Path],
    patterns: Sequence[re.Pattern[bytes]],
    wanted: Callable[[Event], bool],
    rows: Sequence[Mapping[str, object]],
) -> list[tuple[int, Place]]:
    def everywhere() -> Iterator[tuple[int, Place]]:
        for number, path in enumerate(files):
            if _is_parquet(path):
                yield from ((number, place) for each in rows for place in _rows(path, each))
            else:
                yield from ((number, place) for place, event in _matching(path, patterns) if wanted(event))

    return list(islice(everywhere(), MOST))


def _matching(path: Path, patterns: Sequence[re.Pattern[bytes]]) -> Iterator[tuple[Place, Event]]:
    """Events on lines in which all patterns are found."""
    number = 1
    for block in blocks(path):
        counted = position = 0
        while found := patterns[0].search(block, position):
            start = block.rfind(b"\n", 0, found.start()) + 1
            end = block.find(b"\n", found.end())
            end = position = end if end >= 0 else len(block)
            line = block[start:end]
            if all(pattern.search(line) for pattern in patterns[1:]):
                number += block.count(b"\n", counted, start)
                counted = start
                try:
                    yield Place(str(path), number), event_of(decode_record(line))
                except Problem:
                    continue
        number += block.count(b"\n", counted)


def _is_parquet(path: Path) -> bool:
    return path.name.endswith(".parquet")


def _rows(path: Path, wanted: Mapping[str, object]) -> Iterator[Place]:
    """Rows that have these values in these columns; a column that is not there is null."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    with path.open("rb") as stream, pq.ParquetFile(stream) as file:
        names = [name for name in wanted if name in file.schema_arrow.names]
        if any(wanted[name] is not None for name in wanted if name not in names):
            return
        before = 0
        for batch in file.iter_batches(columns=names, batch_size=1 << 16):
            mask: Any = None
            for name in names:
                value, column = wanted[name], batch.column(name)
                if pa.types.is_dictionary(column.type):
                    column = column.dictionary_decode()
                fits = pc.is_null(column) if value is None else pc.equal(column, value)
                mask = fits if mask is None else pc.and_kleene(mask, fits)
            for row in pc.indices_nonzero(mask).to_pylist():
                yield Place(str(path), before + row + 1, "row")
            before += batch.num_rows


def damage(path: Path) -> BadInput | None:
    """The error that reading a file to its end raises; None if it is valid."""
    try:
        if _is_parquet(path):
            _read_rows(path)
        else:
            kinds_of([path])
    except BadInput as error:
        return error
    return None


def _read_rows(path: Path) -> None:
    import pyarrow.parquet as pq

    from causet.formats.parquet import placed_rows

    try:
        with path.open("rb") as stream, pq.ParquetFile(stream, page_checksum_verification=True) as file:
            for _ in file.iter_batches(batch_size=1 << 16):
                pass
    except Exception:
        for _ in placed_rows(path):  # raises the error that names the row
            pass

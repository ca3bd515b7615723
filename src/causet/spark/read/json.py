"""JSON Lines in Spark, read with a schema that is certain before Spark reads a line.

Spark's own reader guesses: the number 5 becomes the string "5" where other lines hold strings, and a line
that it cannot read becomes nulls. So every line is checked first (`formats.lines`), which also finds out what
the fields hold: by the driver if there is little, otherwise by all workers. Then Spark reads with that
schema, and fails if it meets anything else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, NullType, StructField, StructType, VariantType

from causet.errors import BadInput
from causet.files import MARK, Place, compressed, read_start
from causet.formats.kinds import MOST_FIELDS, Kinds
from causet.formats.lines import Inspection, blocks, kinds_of, why_refused
from causet.formats.places import damage, place_of_inexact_time
from causet.spark.columns import quoted
from causet.spark.read.columns import Typed
from causet.spark.read.parts import Part
from causet.spark.read.types import KNOWN, filled, type_of

SMALL = 256 * 2**20
"""Bytes that the driver checks by itself: faster than starting workers."""
PIECE = 64 * 2**20
"""Bytes that a worker checks at a time."""
MOST_TASKS = 10_000
HIDDEN = "Spark's workers cannot see this file; put it where all of them can read it"
_RATIO = 10
"""The assumed ratio of compression."""
_FOUND = "file int, start long, lines long, refused string, damaged boolean, kinds string"
_JSON = {
    "lineSep": "\n",
    "recursiveFileLookup": "true",
    "mode": "FAILFAST",
    "columnNameOfCorruptRecord": "a line that cannot be read",
}


def open_lines(spark: SparkSession, files: Sequence[Path], located: Sequence[str]) -> Part | None:
    """The events of these files, of which Spark knows each by another name; None if there are none.

    BadInput names the file, the line and the field that is wrong.
    """
    for path in files:
        if read_start(path, len(MARK)) == MARK:
            raise BadInput(f"{path}, line 1: the file begins with a byte order mark; save it without one")
    kinds = kinds_of(files) if _size(files) <= SMALL else _kinds_by_workers(spark, files)
    if kinds.fields is None:
        return None
    if "many" in kinds.plain:
        raise BadInput(
            f"{', '.join(map(str, files[:3]))}: there are more than {MOST_FIELDS:,} different fields, too "
            "many for columns; put them into one field that holds an object"
        )
    columns = _columns(files, kinds.fields)

    def read(types: Mapping[str, DataType]) -> DataFrame:
        schema = StructType([StructField(name, filled(found)) for name, found in types.items()])
        return spark.read.schema(schema).options(**_JSON).json(list(located))

    return Part(tuple(files), read({name: found.type for name, found in columns.items()}), columns, read)


def _columns(files: Sequence[Path], fields: Mapping[str, Kinds]) -> dict[str, Typed]:
    """The columns that these fields become: the format's own, if some line has them, then the others."""
    columns: dict[str, Typed] = {}
    for name in [*KNOWN, *sorted(fields.keys() - KNOWN)]:
        found = type_of(fields[name]) if name in fields else NullType()
        if name in KNOWN:
            if isinstance(found, NullType):
                continue
            if name != "time":
                found = KNOWN[name]
            elif isinstance(found, VariantType):
                raise _inexact(files)
        columns[name] = Typed(F.col(quoted(name)), found)
    return columns


def _size(files: Sequence[Path]) -> int:
    return sum(path.stat().st_size * (_RATIO if compressed(path) else 1) for path in files)


def _kinds_by_workers(spark: SparkSession, files: Sequence[Path]) -> Kinds:
    """The same, by all workers, each of which reads pieces of the files."""
    pieces = [
        (number, str(path.parent.resolve() / path.name), start, end)  # compression is known by the name
        for number, path in enumerate(files)
        for start, end in _pieces(path)
    ]
    table = spark.createDataFrame(pieces, "file int, path string, start long, end long")
    found = table.repartition(min(len(pieces), MOST_TASKS)).mapInArrow(_inspect, _FOUND).collect()
    kinds = Kinds()
    lines = dict.fromkeys(range(len(files)), 0)
    for row in sorted(found, key=lambda row: (row["file"], row["start"])):
        path = files[row["file"]]
        if row["damaged"]:
            raise damage(path) or BadInput(f"{path}: {HIDDEN}")
        if row["refused"] is not None:
            raise BadInput(f"{Place(str(path), lines[row['file']] + row['lines'] + 1)}: {row['refused']}")
        lines[row["file"]] += row["lines"]
        kinds.merge(Kinds.from_json(row["kinds"]))
    return kinds


def _pieces(path: Path) -> list[tuple[int, int | None]]:
    if compressed(path):
        return [(0, None)]
    size = path.stat().st_size
    return [(start, min(start + PIECE, size)) for start in range(0, size, PIECE)]


def _inspect(batches: Iterator[Any]) -> Iterator[Any]:
    """What pieces of files hold, or the first line of each that is not an event."""
    import pyarrow as pa

    inspection = Inspection(few=0)
    for batch in batches:
        for piece in batch.to_pylist():
            lines, refused, damaged = 0, None, False
            try:
                for block in blocks(Path(piece["path"]), piece["start"], piece["end"]):
                    found = inspection.first_refused(block)
                    if found is not None:
                        start, end = found
                        lines += block.count(b"\n", 0, start)
                        refused = why_refused(block[start:end])
                        break
                    lines += block.count(b"\n")
            except BadInput:
                damaged = True
            answer = {"file": piece["file"], "start": piece["start"], "lines": lines, "refused": refused}
            answer |= {"damaged": damaged, "kinds": inspection.kinds.to_json()}
            types = [pa.int32(), pa.int64(), pa.int64(), pa.string(), pa.bool_(), pa.string()]
            schema = pa.schema(list(zip(answer, types, strict=True)))
            yield pa.RecordBatch.from_pylist([answer], schema=schema)


def _inexact(files: Sequence[Path]) -> BadInput:
    found = place_of_inexact_time(files)
    where, time = (f"{found[0]}: ", found[1].time) if found else ("", "an integer")
    return BadInput(
        f'{where}field "time": other times are floats, and {time} has no exact float; use one kind of time'
    )

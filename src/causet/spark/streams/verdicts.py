"""Which files of a batch are damaged, and why: asked when a batch has failed, before it is run again.

A damaged file is left out as a whole, and named once in what a query gives. Only content is judged: a file
that is not there or may not be read can be put right, and the error of the run stands.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_schema

from causet.spark.start.errors import from_spark, innermost
from causet.spark.streams.file_source import printable_path
from causet.spark.streams.pack import to_blob
from causet.spark.streams.parquet import is_plain, rows_of, why_unreadable
from causet.status import DIVERTED

CHUNK = 1 << 20
"""Bytes that are decompressed at a time."""
TIME_ZONE = "UTC"


def examine(
    files: Sequence[Path], form: str, schema: T.StructType, spark: SparkSession | None = None
) -> dict[str, str]:
    """Of each file that is damaged, why; by its path.

    :param form: `parquet` or `jsonl`.
    :param schema: the columns of the query.
    :param spark: where Spark itself reads the files: what it cannot read is damaged too.
    """
    found: dict[str, str] = {}
    for file in files:
        fault = _fault(file, form, schema)
        if fault is None and spark is not None and form == "parquet":
            fault = _fault_for_spark(file, schema, spark)
        if fault is not None:
            found[str(file)] = fault
    return found


def _fault(file: Path, form: str, schema: T.StructType) -> str | None:
    try:
        if form == "parquet":
            _decode(file, schema)
        elif file.suffix == ".gz":
            with gzip.open(file) as stream:
                while stream.read(CHUNK):
                    pass
    except OSError as error:
        return why_unreadable(error) if error.errno is None else None
    except (pa.ArrowException, KeyError) as error:
        return why_unreadable(error)
    except (EOFError, zlib.error) as error:
        return f"the compressed data is damaged: {error}"
    return None


def _decode(file: Path, schema: T.StructType) -> None:
    """Read all of a Parquet file, a part at a time. Of a column of another type than workers read, only the
    values are checked."""
    plain = T.StructType([field for field in schema.fields if is_plain(field.dataType)])
    for rows in rows_of(file, to_arrow_schema(plain, timezone=TIME_ZONE)):
        rows.validate(full=True)


def _fault_for_spark(file: Path, schema: T.StructType, spark: SparkSession) -> str | None:
    reader = spark.read.schema(schema).option("__globPaths__", "false")
    try:
        file.open("rb").close()
        reader.parquet(f"file:{file}").write.format("noop").mode("overwrite").save()
    except OSError:
        return None
    except Exception as error:
        if not from_spark(error):
            raise
        return innermost(error)
    return None


def unreadable_rows(schema: T.StructType, verdicts: Mapping[str, str]) -> bytes:
    """A blob with a row for each damaged file, in the columns that a query gives."""
    known: dict[str, list[object]] = {
        "status": [DIVERTED] * len(verdicts),
        "problem": [f"{printable_path(Path(file))} cannot be read: {why}" for file, why in verdicts.items()],
        "waited": [0.0] * len(verdicts),
        "missing": [[]] * len(verdicts),
    }
    arrow = to_arrow_schema(schema, timezone=TIME_ZONE)
    columns = [
        pa.array(known[field.name], field.type)
        if field.name in known
        else pa.nulls(len(verdicts), field.type)
        for field in arrow
    ]
    return to_blob(pa.Table.from_arrays(columns, schema=arrow))

"""Parquet files straight into blobs, and blobs straight into Parquet files.

Spark has rows; Parquet and the operators have columns. Between the two every value is copied by itself, once
on the way in and once on the way out, which takes longer than the operators do. So where messages come from
Parquet files, workers get the names of the files, and read them; and where rows go into such files,
workers write them. Spark still decides which files are new and which batch they belong to.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_schema
from xxhash import xxh64_intdigest

from causet.errors import BadInput, quote, reason
from causet.files import unwritable
from causet.kernels.arrays import Array
from causet.spark.columns import input_names
from causet.spark.streams.messages.settings import ALWAYS
from causet.spark.streams.pack import Batches, in_workers, text_column, together
from causet.status import DIVERTED

ONLY_NAMES = "path string, modificationTime timestamp, length long, content binary"
"""What Spark's reader of whole files gives; it reads only the content that is asked for."""
READ_BYTES, READ_ROWS, PROBED_ROWS = 16 << 20, 1 << 16, 64
"""What is read of a file at a time; and the rows by which their size is estimated."""
ALIKE = (
    (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view),
    (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view, pa.types.is_fixed_size_binary),
    (pa.types.is_integer,),
    (pa.types.is_floating,),
    (pa.types.is_decimal,),
    (pa.types.is_timestamp,),
    (pa.types.is_list, pa.types.is_large_list),
)
"""Types of which one can stand for another."""
SAME_EVERYWHERE = (
    T.StringType,
    T.BinaryType,
    T.BooleanType,
    T.ByteType,
    T.ShortType,
    T.IntegerType,
    T.LongType,
    T.FloatType,
    T.DoubleType,
    T.DecimalType,
    T.DateType,
    T.TimestampType,
)
"""Types that Spark, Arrow and Parquet agree about."""
OF_TABLES: dict[str, Callable[[pa.DataType], bool]] = {
    "process": lambda kind: any(fits(kind) for fits in ALIKE[0]),
    "numbers": pa.types.is_map,
    "deps": lambda kind: pa.types.is_map(kind) or any(fits(kind) for fits in ALIKE[1]),
}
"""What stands in tables for attributes of `ALWAYS`, and for `causaldeps`; and of which type it is then."""
PLACES = KEPT, ASIDE = "kept", "aside"
"""Folders of what goes into a sink, and of what is diverted."""
SEED = 42
"""Of Spark's hash."""


def is_plain(kind: T.DataType) -> bool:
    """Whether a column means the same to Spark, Arrow and Parquet."""
    if isinstance(kind, T.StructType):
        return all(is_plain(field.dataType) for field in kind.fields)
    if isinstance(kind, T.ArrayType):
        return is_plain(kind.elementType)
    if isinstance(kind, T.MapType):
        return is_plain(kind.keyType) and is_plain(kind.valueType)
    return isinstance(kind, SAME_EVERYWHERE)


def arrow_schema(schema: T.StructType, spark: SparkSession) -> pa.Schema:
    """The columns as Spark would hand them to a worker."""
    return to_arrow_schema(schema, timezone=spark.conf.get("spark.sql.session.timeZone"))


# ---------------------------------------------------------------- in


@dataclass(frozen=True)
class Messages:
    """Messages as rows of Spark; and, where they come from Parquet files, the names of these files."""

    rows: DataFrame
    files: DataFrame | None = None
    in_files: Mapping[str, str] = field(default_factory=dict)
    """the columns that have another name in the files, and that name"""

    @classmethod
    def of(cls, messages: DataFrame | Messages) -> Messages:
        return messages if isinstance(messages, Messages) else cls(messages)

    @property
    def _case_matters(self) -> bool:
        return self.rows.sparkSession.conf.get("spark.sql.caseSensitive") == "true"

    def without_clashes(self, added: Sequence[str]) -> tuple[Messages, dict[str, str]]:
        """The same messages, in which columns named like one that is added have other names; and these."""
        names = input_names(self.rows.columns, added, self._case_matters)
        if not names:
            return self, {}
        rows = self.rows.withColumnsRenamed(names)
        return replace(self, rows=rows, in_files={new: old for old, new in names.items()}), names

    def packed(
        self,
        pack: Callable[[Batches], Batches],
        schema: str,
        by_spark: DataFrame,
        by_workers: Callable[[pa.RecordBatch, int], pa.RecordBatch],
        as_they_are: bool,
    ) -> DataFrame:
        """The messages, packed by workers. Here it is decided who reads them: workers read Parquet files if
        they read them as Spark would, and the operator needs no column that only Spark can make.

        :param by_spark: the rows, with the columns that the operator needs beside them.
        :param by_workers: adds these columns to rows of a file, at the time of the batch in ms.
        :param as_they_are: whether `by_workers` is enough.
        """
        if self.files is None or not (as_they_are and self._case_matters and is_plain(self.rows.schema)):
            return in_workers(by_spark, pack, schema)
        wanted = arrow_schema(self.rows.schema, self.rows.sparkSession)
        there = pa.schema([each.with_name(self.in_files.get(each.name, each.name)) for each in wanted])
        now = F.unix_millis(F.current_timestamp())
        read = FromFiles(there, wanted.names, by_workers, pack)
        return self.files.select("path", now.alias("now")).mapInArrow(read, schema)


@dataclass(frozen=True)
class FromFiles:
    """Reads the files that rows name, prepares their rows and packs them."""

    schema: pa.Schema
    """of the files"""
    names: list[str]
    """of the columns from here on"""
    prepared: Callable[[pa.RecordBatch, int], pa.RecordBatch]
    pack: Callable[[Batches], Batches]

    def __call__(self, files: Batches) -> Batches:
        yield from self.pack(
            self.prepared(rows.rename_columns(self.names), now)
            for batch in files
            for path, now in zip(*(column.to_pylist() for column in batch.columns), strict=True)
            for rows in read(Path(path.removeprefix("file:")), self.schema)
        )


def read(path: Path, schema: pa.Schema) -> Batches:
    """The rows of a file, with these columns: what it lacks is null, what else it has is left out."""
    try:
        yield from rows_of(path, schema)
    except (KeyError, pa.ArrowException, OSError) as error:
        raise BadInput(f"{path} cannot be read: {why_unreadable(error)}") from None


def rows_of(path: Path, schema: pa.Schema) -> Batches:
    """As `read`, with the exceptions as they come: of what cannot be opened, one that has an `errno`."""
    path.open("rb").close()  # Python's error is plainer
    with pq.ParquetFile(path, coerce_int96_timestamp_unit="us", page_checksum_verification=True) as file:
        there = file.schema_arrow
        _check_identity(there, schema.names)
        wanted = [field.name for field in schema if field.name in there.names]
        for name in wanted:
            _check_type(there.field(name), schema.field(name).type)
        for batch in file.iter_batches(_rows_at_a_time(file, wanted), columns=wanted):
            columns = [
                batch.column(field.name) if field.name in wanted else pa.nulls(batch.num_rows, field.type)
                for field in schema
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)  # with the types of the schema


def check_columns(path: Path, names: Collection[str]) -> None:
    """ArrowTypeError if a file has a column without which its messages would be taken for others, and which
    the query does not have: Spark would leave it out without a word.

    :param names: the columns of the query.
    """
    with suppress(OSError):  # Spark's own error says why it cannot be read
        try:
            there = pq.read_schema(path)
        except pa.ArrowException:
            return
        _check_identity(there, names)


def _check_identity(there: pa.Schema, names: Collection[str]) -> None:
    """ArrowTypeError if a file has a column without which its messages would be taken for others, and the
    query began without that."""
    late = {name for name in ALWAYS if name in there.names}
    late |= {name for name, fits in OF_TABLES.items() if name in there.names and fits(there.field(name).type)}
    for name in sorted(late.difference(names)):
        raise pa.ArrowTypeError(
            f"it has a column {quote(name)}, and the files had none when the query began: begin with a new "
            "checkpoint"
        )


def why_unreadable(error: Exception) -> str:
    """Why a file could not be read."""
    if isinstance(error, KeyError):
        return "it has two columns of one name"
    if isinstance(error, OSError) and error.errno is not None:
        return reason(error)
    return str(error).partition("\n")[0] or "it is damaged"


def _check_type(field: pa.Field, wanted: pa.DataType) -> None:
    """ArrowTypeError if a column of a file is not what it is in the query. It may be narrower, not wider:
    Spark reads no column that is, and a value might not fit."""
    found = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    if _kind(found) != _kind(wanted) or _width(found) > _width(wanted):
        raise pa.ArrowTypeError(f"column {quote(field.name)} is {found}, and was {wanted} before")


def _kind(found: pa.DataType) -> object:
    for number, alike in enumerate(ALIKE):
        if any(fits(found) for fits in alike):
            return number
    return found.id


def _width(found: pa.DataType) -> int:
    """Bits of a number; 0 of all else. Of numbers without a sign the range is checked as they are read."""
    numbers = pa.types.is_signed_integer(found) or pa.types.is_floating(found)
    return int(found.bit_width) if numbers else 0


def _rows_at_a_time(file: pq.ParquetFile, columns: list[str]) -> int:
    """So many that they fit into memory, by the size of the first ones: packed, a repeated value is small."""
    first = next(file.iter_batches(PROBED_ROWS, columns=columns), None)
    if first is None or not first.num_rows:
        return READ_ROWS
    return int(max(1, min(READ_ROWS, READ_BYTES * first.num_rows // max(first.nbytes, 1))))


def buckets_of(names: pa.Array, buckets: int) -> Array:
    """The bucket of each name: Spark's `pmod(xxhash64(name), buckets)`, with no name as the empty one."""
    coded = text_column(pa.chunked_array([names])).fill_null("").dictionary_encode()
    hashes = [xxh64_intdigest(name.as_buffer(), SEED) for name in coded.dictionary]
    signed = np.array(hashes, np.uint64).view(np.int64)
    found: Array = (signed % buckets).astype(np.int32)[coded.indices.to_numpy(zero_copy_only=False)]
    return found


# ---------------------------------------------------------------- out


@dataclass(frozen=True)
class ToFiles:
    """Writes the rows of a task into a file, or two in two folders if some are diverted; gives their names.

    A task that is run again writes another file. Only those that are named belong to the batch.
    """

    unpack: Callable[[Batches], Batches]
    schema: pa.Schema
    folder: Path
    divides: bool

    def __call__(self, blobs: Batches) -> Batches:
        task = TaskContext.get()
        assert task is not None
        name = f"part-{task.partitionId():05}-{task.taskAttemptId()}.parquet"
        written: dict[str, pq.ParquetWriter] = {}
        try:
            with ExitStack() as open_files:
                for table in self._tables(blobs):
                    for place, rows in self._divided(table):
                        if place not in written:
                            file = self.folder / place / name
                            file.parent.mkdir(parents=True, exist_ok=True)
                            written[place] = open_files.enter_context(pq.ParquetWriter(file, self.schema))
                        written[place].write_table(rows)
        except OSError as error:
            raise unwritable(self.folder.parent, error) from None
        yield pa.RecordBatch.from_arrays([pa.array([f"{place}/{name}" for place in written])], ["file"])

    def _tables(self, blobs: Batches) -> Iterator[pa.Table]:
        """The rows, as many at a time as make a group of rows in a file."""
        for some in together(self.unpack(blobs)):
            yield pa.concat_tables([pa.Table.from_batches([rows]).cast(self.schema) for rows in some])

    def _divided(self, table: pa.Table) -> Iterator[tuple[str, pa.Table]]:
        aside = pc.fill_null(pc.equal(table.column("status"), DIVERTED), False) if self.divides else None
        if aside is None or not pc.any(aside).as_py():
            yield KEPT, table
            return
        for place, which in ((KEPT, pc.invert(aside)), (ASIDE, aside)):
            rows = table.filter(which)
            if rows.num_rows:
                yield place, rows

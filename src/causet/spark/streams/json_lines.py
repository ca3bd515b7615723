"""JSON Lines as rows: every line that is not blank becomes one row, whatever is in it.

A line that is not one JSON object, or does not fit the columns of the query, stays whole in the column
`malformed`; its other columns are null, and the column `FAULT` says why, and in which file. Spark's own
reader of JSON would lose some lines: `[]` gives no row, and of two objects in a line it reads the first.

All of it is done by Spark, without a worker; what is wrong with a line is found out for bad lines only.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from causet.envelope import CUT, DOMAIN, GROUPS, PRIORITY, PROCESS, VERSION_NAME
from causet.envelope import NUMBERS as IN_GROUPS
from causet.errors import quote
from causet.spark.columns import input_names, quoted
from causet.spark.streams.messages.settings import ALWAYS, LATE, MALFORMED
from causet.spark.streams.pack import FAULT, OWN

VALUE = "value"
"""The column of Spark's reader of text."""
MOST_NESTED = 50
"""Levels of objects and lists in a line. Arrow's format takes 64 levels of columns."""
LIMITS = {"maxStringLen": str(2**31 - 1), "maxNumLen": str(2**31 - 1)}
"""Otherwise a string of more than 20 million characters is an error."""
BLANK = " \t\r"
MOST_SHOWN = 40
"""Characters of a value that is shown in a sentence."""
KEY = "causet.key"
"""In the metadata of a column: its name in the lines, where that is another one."""
TEXTS = frozenset({"source", PROCESS, "causaldeps", "causaltime", DOMAIN, GROUPS, IN_GROUPS, "id", "type"})
NUMBERS = frozenset({VERSION_NAME, "sequence", "rc", "r", CUT, PRIORITY})
_LINE, _RAW = f"{OWN}line", f"{OWN}raw"


def columns_in(lines: DataFrame) -> T.StructType:
    """The columns of the JSON objects among the lines, as Spark finds them, with those of
    `ALWAYS`, and `malformed` at the end.

    A known column whose values are not all of a kind that fits is read as strings: then only the row of a
    value that does not fit is refused.
    """
    objects = lines.where(_without_blanks().startswith("{") & F.is_valid_utf8(VALUE)).select(VALUE)
    reader = lines.sparkSession.read.options(**LIMITS, maxNestingDepth=str(MOST_NESTED))
    found = reader.option("columnNameOfCorruptRecord", _RAW).json(objects).schema
    kinds: dict[str, T.DataType] = {}
    for field in found.fields:
        if field.name != _RAW:
            same = kinds.setdefault(field.name, field.dataType) == field.dataType
            if not same or not fits(field):  # an object can have a key twice
                kinds[field.name] = T.StringType()
    reserved = [MALFORMED, *(key for key in kinds if key.startswith(OWN))]
    renamed = input_names(list(kinds), reserved, case_matters=True)
    fields = [
        T.StructField(renamed.get(key, key), kind, metadata={KEY: key} if key in renamed else None)
        for key, kind in kinds.items()
    ]
    return with_identity(T.StructType([*fields, T.StructField(MALFORMED, T.StringType())]))


def with_identity(schema: T.StructType) -> T.StructType:
    """The columns, with those of `ALWAYS` that they lack before `malformed`."""
    late = {LATE: True}
    missing = [
        T.StructField(name, T.StringType(), metadata=late) for name in ALWAYS if name not in schema.names
    ]
    end = schema.names.index(MALFORMED) if MALFORMED in schema.names else len(schema.names)
    return T.StructType([*schema.fields[:end], *missing, *schema.fields[end:]])


def fits(field: T.StructField) -> bool:
    if field.name in TEXTS:
        return isinstance(field.dataType, T.StringType)
    return field.name not in NUMBERS or isinstance(field.dataType, T.StringType | T.IntegralType)


def parsed(lines: DataFrame, schema: T.StructType) -> DataFrame:
    """The lines as rows with the columns of the schema, and `FAULT`. Lines have the column `value`; what else
    they have (columns that come from the names of folders) is kept."""
    beside = [name for name in lines.columns if name != VALUE]
    schema = with_identity(schema)  # a checkpoint of an earlier release may have none
    fields = [
        field
        for field in schema.fields
        if field.name != MALFORMED and not field.name.startswith(OWN) and field.name not in beside
    ]
    wanted = T.StructType([T.StructField(key_of(field), field.dataType) for field in fields])
    read = lines.where(_without_blanks() != "").select("*", _read(F.col(VALUE), wanted).alias(_LINE))
    fine = F.col(_LINE)[_RAW].isNull() & F.is_valid_utf8(VALUE) & is_one_value(F.col(VALUE))
    fine &= ~_has_half_a_pair(F.col(VALUE))
    read = read.select(VALUE, *map(quoted, beside), F.when(fine, F.col(_LINE)).alias(_LINE))
    line = F.col(_LINE)
    text = F.make_valid_utf8(VALUE)
    columns = {
        field.name: line[key_of(field)].alias(field.name, metadata=field.metadata or {}) for field in fields
    }
    columns |= {name: F.col(quoted(name)) for name in beside}
    columns[MALFORMED] = F.when(line.isNull(), text).alias(MALFORMED)
    columns[FAULT] = F.when(line.isNull(), _fault(text, wanted)).alias(FAULT)
    names = [field.name for field in schema.fields if field.name in columns and field.name != FAULT]
    names += [name for name in (*beside, MALFORMED, FAULT) if name not in names]
    return read.select(*(columns[name] for name in names))


def key_of(field: T.StructField) -> str:
    return str((field.metadata or {}).get(KEY, field.name))


def _without_blanks() -> Column:
    return F.ltrim(F.col(VALUE), F.lit(BLANK))


def _read(text: Column, wanted: T.StructType, depth: int = MOST_NESTED) -> Column:
    """A line as a struct; with the line in `_RAW` if it is not an object, or a field does not fit."""
    options = {
        **LIMITS,
        "mode": "PERMISSIVE",
        "columnNameOfCorruptRecord": _RAW,
        "maxNestingDepth": str(depth),
    }
    return F.from_json(text, T.StructType([*wanted.fields, T.StructField(_RAW, T.StringType())]), options)


def is_one_value(value: Column) -> Column:
    """Whether nothing follows the object in a string. It is checked only for strings that begin like one."""
    # If the first closing brace is the last character, nothing can follow the object.
    flat = F.instr(value, "}") == F.length(F.rtrim(value, F.lit(BLANK)))
    # One more value after it is seen only if the line does not end the list itself.
    return flat | F.coalesce(F.size(_values(F.concat(value, F.lit(",0")))) == 2, F.lit(False))


def _has_half_a_pair(value: Column) -> Column:
    """Whether an escape in a line is half of a surrogate pair: Spark would make a question mark of it."""
    half = r"\\u[dD][89a-fA-F]"
    escapes = F.regexp_replace(value, r"\\[^u]", " ")
    pairs = r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    halves = F.regexp_replace(escapes, pairs, " ").rlike(half)
    return F.when(value.rlike(half), halves).otherwise(F.lit(False))


def _values(text: Column) -> Column:
    """Values separated by commas, as strings; null if that is not what it is."""
    many = F.concat(F.lit("["), text, F.lit("]"))
    return F.from_json(many, "array<string>", LIMITS)


def _is_deep(text: Column) -> Column:
    """Whether a line is an object that only has too many levels."""
    shallow, any_depth = (_read(text, T.StructType([]), depth)[_RAW] for depth in (MOST_NESTED, 2**31 - 1))
    return shallow.isNotNull() & any_depth.isNull()


def _fault(text: Column, wanted: T.StructType) -> Column:
    """What is wrong with a line that could not be read, and the file that it is in."""
    begins = F.ltrim(text, F.lit(BLANK))
    values = _values(text)
    fields = F.from_json(text, "map<string,string>", LIMITS)
    why = F.when(~F.is_valid_utf8(VALUE), "is not UTF-8")
    why = why.when(_has_half_a_pair(text), "has half of a surrogate pair, which is not text")
    why = why.when(_is_deep(text), f"is nested deeper than {MOST_NESTED} levels")
    why = why.when(values.isNull(), "is not JSON")
    why = why.when(F.size(values) != 1, "has more than one JSON value")
    why = why.when(begins.startswith("["), "is a JSON array, not an object")
    why = why.when(~begins.startswith("{"), "is a JSON value, not an object")
    for field in wanted.fields:
        misfit = _read(text, T.StructType([field]))[_RAW].isNotNull()
        value = F.element_at(fields, F.lit(field.name))
        shown = F.when(F.length(value) > MOST_SHOWN, F.concat(F.left(value, F.lit(MOST_SHOWN)), F.lit("…")))
        kind = field.dataType.simpleString()
        kind = kind if len(kind) <= MOST_SHOWN else f"{kind[:MOST_SHOWN]}…"
        why = why.when(
            misfit,
            F.concat(
                F.lit(f"field {quote(field.name)}: "),
                F.coalesce(shown, value),
                F.lit(f" does not fit the column's type {kind}"),
            ),
        )
    return F.concat(why.otherwise("cannot be read"), F.lit(" ("), _file(), F.lit(")"))


def _file() -> Column:
    """The file that a row comes from, fit for a terminal."""
    encoded = F.replace(F.input_file_name(), F.lit("+"), F.lit("%2B"))
    path = F.regexp_replace(F.coalesce(F.try_url_decode(encoded), encoded), "^file:/+", "/")
    return F.regexp_replace(path, r"\p{Cntrl}", "?")

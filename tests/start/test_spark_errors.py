"""Exceptions of Spark and Java become sentences; a worker's own sentence is passed on."""

from __future__ import annotations

import traceback

import pytest

from causet.errors import BadInput
from causet.spark.start.errors import LONGEST, innermost, sentence_for, translated

JAVA = (
    "An error occurred while calling o42.load.\n"
    ": org.apache.spark.SparkException: Job aborted.\n"
    "\tat org.apache.spark.Foo.bar(Foo.scala:1)\n"
    "Caused by: java.io.IOException: [SOME.CONDITION] the reason\n  on two lines. SQLSTATE: 42K03\n"
    "\tat java.base/x.Y.z(Y.java:2)\n"
)


def test_what_a_worker_refuses_is_passed_on_in_its_own_words() -> None:
    try:
        raise BadInput('part.parquet, row 7: field "seq" is missing')
    except BadInput as error:
        told = "".join(traceback.format_exception(error))
    told = f"[STREAM_FAILED] terminated with exception:\n{told}SQLSTATE: XXKST"
    assert sentence_for(told) == 'part.parquet, row 7: field "seq" is missing'


def test_the_innermost_reason_of_a_stack_trace_is_one_line() -> None:
    assert innermost(JAVA) == "the reason on two lines"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            'Exception in thread "main" java.lang.IllegalArgumentException: no such thing\n\tat a.b',
            "no such thing",
        ),
        ("one line.\nanother", "one line"),
        ("java.io.IOException: " + "x" * 999, "x" * (LONGEST - 1) + "…"),
    ],
)
def test_other_reasons_are_given_in_their_own_words(text: str, told: str) -> None:
    assert sentence_for(text) is None
    assert innermost(text) == told


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Error: Invalid maximum heap size: -Xmx12x", "the JVM needs at least 450 MB of memory"),
        ("java.net.BindException: Address already in use", "a port that Spark is configured to use is taken"),
        ("java.io.IOException: No space left on device", "the disk is full"),
    ],
)
def test_what_is_known_has_one_sentence_at_the_start_and_in_jobs(text: str, told: str) -> None:
    found = sentence_for(text)
    assert found is not None
    assert found.startswith(told)


def test_only_exceptions_of_spark_are_translated() -> None:
    with pytest.raises(ValueError, match="ours"), translated():
        raise ValueError("ours")

"""Turns exceptions of Spark and Java into one-sentence errors: the only module that does.

An exception is known by its condition, where Spark gives it one, and by its text. Rule: what is recognised
becomes a sentence that says what to do; of anything else, the innermost reason is given in its own words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import PySparkException

from causet.errors import BadInput

LONGEST = 400
"""Characters of a reason in Spark's own words."""

_CAUSE = re.compile(
    r"^(?:Caused by: |: |Exception in thread .*? )?[\w.$]+(?:Exception|Error)\w*: (.*?)"
    r"(?=\n\s+at |\nCaused by|\n\n|\Z)",
    re.MULTILINE | re.DOTALL,
)
"""An exception of a Java stack trace with its message, up to the next line of the trace."""

_IN_PYTHON = re.compile(r"^Traceback \(most recent call last\):\n(?:[ \t].*\n|\n)*(\S.*)$", re.MULTILINE)
"""An exception in a Python worker, at the end of its traceback."""

_REFUSED = re.compile(rf"^{re.escape(BadInput.__module__)}\.BadInput: (.+)$", re.MULTILINE)
"""A `BadInput` that a worker raised."""

_DECORATION = re.compile(r"^\[[A-Z0-9_.]+\] | SQLSTATE: \w+")

DENIED = "permission was denied"
_DENIED = re.compile(r"(/[^\s:'\"()]+)\W{1,20}Permission denied|Permission denied: '?(/[^\s'\"]+)")

SENTENCES: tuple[tuple[str, str], ...] = (
    (
        "Insufficient (?:driver|executor) memory|Invalid (?:maximum|initial) heap size",
        "the JVM needs at least 450 MB of memory; use --conf spark.driver.memory=1g",
    ),
    (
        r"BindException|Address already in use|failed with error\(-98\)",
        "a port that Spark is configured to use is taken; set another one with --conf, or remove the setting",
    ),
    (
        "No space left on device|Disk quota exceeded",
        "the disk is full; free some space, or use another disk (for Spark's temporary files: "
        "--conf spark.local.dir=FOLDER)",
    ),
    ("Permission denied|AccessControlException|AccessDeniedException", DENIED),
    ("Read-only file system", "the file system is read-only"),
    ("Too many open files", "too many files are open; raise the limit (ulimit -n)"),
    (
        "java.lang.OutOfMemoryError|Java heap space|GC overhead limit",
        "Spark ran out of memory; give it more with --conf spark.driver.memory=4g, or "
        "spark.executor.memory on a cluster",
    ),
    (
        "No module named 'causet",
        "the Python of the workers does not have the package causet; install it there, or set PYSPARK_PYTHON "
        "to a Python that has it",
    ),
    ("PATH_ALREADY_EXISTS", "it already exists; use another folder, or --overwrite"),
    ("UnknownHostException", "there is no host with that name"),
    (
        "CANNOT_MERGE_SCHEMAS|Failed to merge incompatible data types",
        "a column has one type in some files and another type in others; write all files with the same types",
    ),
    (
        "Relative path in absolute URI",
        "Spark cannot read a file with a colon in its name; rename the file",
    ),
    (
        "Multiple streaming queries are concurrently using",
        "another run is using this checkpoint; wait until it has ended, or use another checkpoint",
    ),
    ("UnsupportedFileSystemException|No FileSystem for scheme", "Spark does not support this file system"),
    ("PYTHON_VERSION_MISMATCH", "driver and workers have different versions of Python"),
    ("Connection refused|StatusCode.UNAVAILABLE", "the Spark server cannot be reached"),
)
"""A pattern in the text of an exception, and what that means; the first match counts."""


def sentence_for(error: BaseException | str) -> str | None:
    """The meaning of an exception or its text, where it is known; without a full stop.

    A `BadInput` that a worker raised is passed on unchanged.
    """
    text = text_of(error)
    refused = _REFUSED.search(text)
    if refused:
        return refused[1]
    for pattern, sentence in SENTENCES:
        if re.search(pattern, text):
            path = _DENIED.search(text) if sentence == DENIED else None
            return f"{sentence}: {path[1] or path[2]}" if path else sentence
    return None


def text_of(error: BaseException | str) -> str:
    """The condition and the text of an exception, its causes included."""
    return f"[{condition_of(error)}] {error}"


def condition_of(error: BaseException | str) -> str:
    """The name that Spark gives to this kind of error, or an empty string."""
    named = isinstance(error, PySparkException) and error.getCondition()
    if named:
        return str(named)
    found = re.search(r"\[([A-Z][A-Z0-9_]+(?:\.[A-Z0-9_]+)*)\]", str(error))
    return found[1] if found else ""


def innermost(error: BaseException | str) -> str:
    """The message of the innermost cause, or else the first line; on one line."""
    text = str(error)
    in_python = _IN_PYTHON.findall(text)
    if in_python:
        return _shortened(in_python[-1].strip())
    causes = _CAUSE.findall(text)
    message = causes[-1] if causes else text.strip().partition("\n")[0]
    return _shortened(_DECORATION.sub("", " ".join(message.split())).rstrip("."))


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


@contextmanager
def translated() -> Iterator[None]:
    """Raise BadInput for an exception of Spark: its known sentence, or the reason in its own words."""
    try:
        yield
    except Exception as error:
        if not from_spark(error):
            raise
        raise BadInput(sentence_for(error) or f"Spark gave up: {innermost(error)}") from error


def from_spark(error: BaseException) -> bool:
    """Whether an exception comes from Spark: its own, or one of Java that it passes on."""
    return isinstance(error, PySparkException) or type(error).__module__.partition(".")[0] in ("py4j", "grpc")

"""Turns exceptions of Spark and Java into one-sentence errors.

By the public API only: the condition of an exception where it has one, and its text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import PySparkException

from causet.errors import BadInput

_CAUSE = re.compile(r"^(?:Caused by: |: )?([\w.$]+(?:Exception|Error))(?:: (.*))?$", re.MULTILINE)

_IN_PYTHON = re.compile(r"^Traceback \(most recent call last\):\n(?:[ \t].*\n|\n)*(\S.*)$", re.MULTILINE)
"""What an exception in a worker says, at the end of its traceback."""

DENIED = "permission was denied"
_DENIED = re.compile(r"(/[^\s:'\"()]+)\W{1,20}Permission denied|Permission denied: '?(/[^\s'\"]+)")

SENTENCES: tuple[tuple[str, str], ...] = (
    (
        "No space left on device|Disk quota exceeded",
        "the disk is full; make room, or name another one (for what Spark keeps meanwhile: "
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
        "the workers' Python lacks the package causet; install it there, or set PYSPARK_PYTHON to one that "
        "has it",
    ),
    ("PATH_ALREADY_EXISTS", "it is there already; name another folder, or use --overwrite"),
    ("UnknownHostException", "there is no host of that name"),
    (
        "CANNOT_MERGE_SCHEMAS|Failed to merge incompatible data types",
        "a column has one type in some files and another one in others; write them with the same types",
    ),
    ("Relative path in absolute URI", "Spark reads no file with a colon in its name; rename it"),
    (
        "Multiple streaming queries are concurrently using",
        "another run is using this checkpoint; wait until it has ended, or name another one",
    ),
    ("UnsupportedFileSystemException|No FileSystem for scheme", "Spark knows no such file system"),
    ("PYTHON_VERSION_MISMATCH", "driver and workers have different versions of Python"),
    ("Connection refused|StatusCode.UNAVAILABLE", "the Spark server cannot be reached"),
)
"""What the text of an exception says, and what that means."""


def sentence_for(error: BaseException) -> str | None:
    """What an exception of Spark's means, where that is known; without a full stop.

    What a worker of ours refused is passed on as it said it.
    """
    text = text_of(error)
    told = re.search(rf"^{re.escape(BadInput.__module__)}\.BadInput: (.+)$", text, re.MULTILINE)
    if told:
        return told[1]
    for pattern, sentence in SENTENCES:
        if re.search(pattern, text):
            place = _DENIED.search(text) if sentence == DENIED else None
            return f"{sentence}: {place[1] or place[2]}" if place else sentence
    return None


def text_of(error: BaseException) -> str:
    """All that an exception of Spark's says, its causes included."""
    return f"[{condition_of(error)}] {error}"


def condition_of(error: BaseException) -> str:
    """The name that Spark gives to what went wrong, or nothing."""
    named = isinstance(error, PySparkException) and error.getCondition()
    if named:
        return str(named)
    found = re.search(r"\[([A-Z][A-Z0-9_]+(?:\.[A-Z0-9_]+)*)\]", str(error))
    return found[1] if found else ""


def innermost(error: BaseException) -> str:
    """What the last of the causes says, on one line."""
    text = str(error)
    told = _IN_PYTHON.findall(text)
    if told:
        return shortened(told[-1].strip())
    said = [found[2] for found in _CAUSE.finditer(text) if found[2]]
    last = (said[-1] if said else text.strip().split("\n")[0]).strip()
    return shortened(re.sub(r"^\[[A-Z0-9_.]+\] | SQLSTATE: \w+", "", last).rstrip("."))


def shortened(text: str) -> str:
    return text if len(text) <= 300 else text[:299] + "…"


@contextmanager
def translated() -> Iterator[None]:
    """An exception of Spark's becomes BadInput, in the sentence that is known for it or in its own words."""
    try:
        yield
    except Exception as error:
        if not from_spark(error):
            raise
        raise BadInput(sentence_for(error) or f"Spark gave up: {innermost(error)}") from error


def from_spark(error: BaseException) -> bool:
    """Whether an exception came out of Spark: its own, or one of Java's that it passes on."""
    return isinstance(error, PySparkException) or type(error).__module__.partition(".")[0] in ("py4j", "grpc")

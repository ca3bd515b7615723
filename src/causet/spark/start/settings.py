"""The settings of a session: where Spark runs, and what its JVM and workers are started with.

Rule: the user's `--master` and `--conf` count first, then `spark-defaults.conf`, then the defaults of this
module.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pyspark

from causet.spark.start.archive import archive_options, quoted, spark_home
from causet.spark.start.java import Java, writable_cache, write_once

QUIET = """\
status = error
rootLogger.level = off
rootLogger.appenderRef.none.ref = none
appender.none.type = Null
appender.none.name = none
logger.shell.name = org.apache.spark.repl.Main
logger.shell.level = off
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = off
"""
"""Errors reach the user as exceptions; the log of the JVM would only repeat them."""

DEFAULTS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.caseSensitive": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    "spark.sql.execution.arrow.maxBytesPerBatch": "64m",
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
    "spark.sql.maxConcurrentOutputFileWriters": "2",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}

WORKERS = {
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "OPENBLAS_NUM_THREADS": "1",
    "MALLOC_ARENA_MAX": "2",
    "MALLOC_TRIM_THRESHOLD_": str(256 << 20),
    "MALLOC_MMAP_THRESHOLD_": str(128 << 20),
}
"""The environment of Python workers. With the first three, a worker with numpy, pyarrow and numba needs a
third of the address space, which is what `spark.executor.pyspark.memory` limits; a task has one core anyway.
With the others, a worker keeps up to 256 MiB for the next batch: pages that went back to the kernel and came
again, full of zeros, took up to a fifth of its time."""

LATER = (
    "-XX:Tier4InvocationThreshold=50000",
    "-XX:Tier4MinInvocationThreshold=6000",
    "-XX:Tier4CompileThreshold=150000",
)
"""Ten times the JVM's usual thresholds for optimising a method. Start-up code runs only a few times, and
optimising it kept one core busy; the methods of a job reach these thresholds within a second."""
BRIEF = ("-XX:TieredStopAtLevel=1", "-XX:CICompilerCount=1")
LITTLE_WORK = {
    "spark.sql.shuffle.partitions": "2",
    "spark.buffer.pageSize": "1m",
    "spark.python.sql.dataFrameDebugging.enabled": "false",
}
"""For small inputs: no optimising at all, since code for jobs of a few seconds takes longer to compile than
to run; no tasks without work; small pages, since every sort and every broadcast table, however small, fills a
page of its own with zeros: 64 MB, as Spark chooses them; and no line of our code noted in the JVM with every
column, which takes as many calls as making the columns does."""

CHECKPOINTS = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
}
"""Spark's default manager for local checkpoints starts a dozen programs per file, to inspect links and
permissions, which took a third of the time of a small batch. Both managers write aside, then rename."""
FORKING = ("-Djdk.lang.Process.launchMechanism=VFORK",)
"""The programs that remain (Hadoop's `chmod` for every file) start without Java's helper process."""


class Place(NamedTuple):
    """Where Spark runs."""

    url: str
    remote: bool
    """whether it is reached through Spark Connect; `local[2]` can be either"""

    @property
    def elsewhere(self) -> bool:
        """Whether it is an existing Spark Connect server, with a JVM and settings of its own."""
        return self.remote and not self.local

    @property
    def local(self) -> bool:
        return self.url.startswith("local")


def place_for(master: str | None, wanted: dict[str, str], given: Mapping[str, str]) -> Place:
    """Where Spark runs: the settings of this run count before those of the environment and the file."""
    named_master, named_remote = wanted.pop("spark.master", None), wanted.pop("spark.remote", None)
    if master is None and named_master is None:
        remote = named_remote or os.environ.get("SPARK_REMOTE")
        if remote:
            return Place(remote, remote=True)
    url = (
        master
        or named_master
        or given.get("spark.master")
        or os.environ.get("MASTER", "").strip()
        or "local[*]"
    )
    return Place(url, remote=url.startswith("sc://"))


def defaults_file() -> dict[str, str]:
    """The settings in `spark-defaults.conf`, as Spark will read them."""
    folder = Path(os.environ.get("SPARK_CONF_DIR") or spark_home() / "conf")
    try:
        lines = (folder / "spark-defaults.conf").read_text(errors="replace").splitlines()
    except OSError:
        return {}
    pairs = (re.match(r"\s*([^\s#!=:]+)\s*[\s=:]\s*(.*?)\s*$", line) for line in lines)
    return {pair[1]: pair[2] for pair in pairs if pair}


def _without(settings: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in settings.items() if name not in given}


def settings_for(
    place: Place,
    java: Java,
    wanted: Mapping[str, str],
    given: Mapping[str, str],
    brief: bool,
) -> dict[str, str]:
    """The configuration of a session with a JVM of its own."""
    settings = {**DEFAULTS, **(LITTLE_WORK if brief else {}), **_worker_environment(place)}
    options = [*archive_options(java), *(BRIEF if brief else LATER), *FORKING, *_quiet_options()]
    ours = {"spark.driver.defaultJavaOptions": options}
    if place.local:
        settings.update(CHECKPOINTS)
        settings["spark.driver.memory"] = _driver_memory()
        settings["spark.connect.grpc.binding.address"] = "127.0.0.1"
        if spark_home() == Path(pyspark.__file__).parent:
            settings["spark.python.daemon.module"] = "causet.spark.start.daemon"
        ours["spark.executor.defaultJavaOptions"] = options  # they run on this machine, where the files are
    settings = {**_without(settings, given), **wanted}
    for name, words in ours.items():
        settings[name] = " ".join([*words, wanted.get(name, given.get(name, ""))]).strip()
    return settings


def _worker_environment(place: Place) -> dict[str, str]:
    """The environment of workers; a variable that the user has set keeps its value."""
    names = {name: os.environ.get(name, value) for name, value in WORKERS.items()}
    kernels = Path(__file__).parents[2] / "kernels"
    if place.local and not os.access(kernels, os.W_OK):
        # If the home folder is not writable either, numba would refuse to load a kernel.
        names["NUMBA_CACHE_DIR"] = os.environ.get("NUMBA_CACHE_DIR", str(writable_cache() / "numba"))
    return {f"spark.executorEnv.{name}": value for name, value in names.items()}


def _driver_memory() -> str:
    """A quarter of the machine's memory, between 1 and 8 GiB: in local mode the driver does all the work."""
    try:
        pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return "1g"
    return f"{min(max(pages * size // 4 // 2**20, 1024), 8192)}m"


def _quiet_options() -> list[str]:
    file = write_once(writable_cache() / "log4j2.properties", QUIET)
    return [quoted(f"-Dlog4j2.configurationFile=file:{file}"), "-Dlog4j2.StatusLogger.level=OFF"]

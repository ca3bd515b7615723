"""One place that makes a SparkSession: quiet, quick to start, and open to what the user wants.

Whatever the user says with `--master` or `--conf` wins, then `spark-defaults.conf`, then what is set here. A
session that exists already is used as it is, and `SPARK_REMOTE` (or a master `sc://…`) gives a Spark Connect
session: everything in this room keeps to the public API.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp
from threading import Thread
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pyspark
from pyspark import java_gateway
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from causet.errors import BadInput
from causet.spark.start.archive import archive_options, make_archive_later, quoted, spark_home
from causet.spark.start.java import OUTPUT, Java, find_java, home_for_spark, writable_cache, write_once

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
"""What goes wrong reaches the user as an exception; the log of the JVM would only say it again."""

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
}
"""The environment of Python workers. One that has loaded numpy, pyarrow and numba takes a third of the
address space so, which is what `spark.executor.pyspark.memory` limits; a task has one core anyway."""

LATER = (
    "-XX:Tier4InvocationThreshold=50000",
    "-XX:Tier4MinInvocationThreshold=6000",
    "-XX:Tier4CompileThreshold=150000",
)
"""Ten times what a method usually has to run before the JVM optimises it. A start is code that runs a few
times, and optimising it kept one core busy; the methods of a job run so often within a second."""
BRIEF = ("-XX:TieredStopAtLevel=1", "-XX:CICompilerCount=1")
FEW_TASKS = {"spark.sql.shuffle.partitions": "2"}
"""No optimising at all: code for jobs of a few seconds takes longer to compile than to run. And no tasks that
have nothing to do."""

CHECKPOINTS = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
}
"""Spark's other way to write a checkpoint on this machine's disk starts a dozen programs per file, to look at
links and permissions, which was a third of the time of a small batch. Both write aside, then rename."""
FORKING = ("-Djdk.lang.Process.launchMechanism=VFORK",)
"""What is left of those programs (Hadoop's `chmod` for every file) is started without a helper of Java's."""

CONNECT_PORT, SPARK_PORT = 15002, 7077
LOOPBACK = ("localhost", "127.0.0.1", "::1")
PROXIES = ("grpc_proxy", "https_proxy", "http_proxy")
PATIENCE = 5.0
"""Seconds for a server to answer. Spark itself would try for minutes before it says anything."""
LONGEST_REASON = 400


class Place(NamedTuple):
    """Where Spark runs."""

    url: str
    remote: bool
    """whether through Spark Connect; `local[2]` can be either"""

    @property
    def elsewhere(self) -> bool:
        """A Connect server run by others: it has a JVM and settings of its own."""
        return self.remote and not self.local

    @property
    def local(self) -> bool:
        return self.url.startswith("local")


def spark_session(
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    *,
    silent: bool = False,
    brief: bool = False,
) -> SparkSession:
    """The session that is there, or a new one; BadInput says why Spark does not start as it is asked to.

    With `silent`, what the JVM and the workers print goes nowhere: for commands, whose terminal is their own.
    With `brief`, the session is for a little data: it is there sooner, and slow with a lot of it.
    """
    active = active_session()
    if active is not None:
        return active
    wanted = dict(conf or {})
    if "PYSPARK_GATEWAY_PORT" in os.environ:  # under spark-submit, which knows what the user wants
        return _started(SparkSession.builder, {**wanted, **({"spark.master": master} if master else {})})
    given = _defaults_file()
    place = _place(master, wanted, given)
    _check_reachable(place)
    if place.elsewhere:
        sql = {name: value for name, value in DEFAULTS.items() if name.startswith("spark.sql.")}
        return _started(SparkSession.builder.remote(place.url), {**sql, **wanted})
    return _with_own_jvm(place, wanted, given, silent, brief)


def start_workers(spark: SparkSession) -> None:
    """Let the first Python worker start in the background, while the first jobs do without."""

    def start() -> None:
        with suppress(Exception):  # whatever it is, the job that wants a worker meets it as well
            spark.range(1).mapInArrow(iter, "id long").collect()

    if isinstance(spark, SparkSession):  # a server of Spark Connect has its workers
        Thread(target=start, daemon=True).start()


def active_session() -> SparkSession | None:
    """The session of this process, whichever thread made it."""
    _finish_stopping()
    try:
        spark = SparkSession.active()
    except PySparkException:
        return None
    return spark if _is_up(spark) else None


def _is_up(spark: SparkSession) -> bool:
    """Whether the context of a session is there still; that of a server elsewhere is not ours to ask."""
    if isinstance(spark, SparkSession):  # that of Spark Connect is a class of its own
        try:
            _ = spark.sparkContext.version
        except Exception:  # it was stopped, or the JVM is gone
            return False
    return True


def _place(master: str | None, wanted: dict[str, str], given: Mapping[str, str]) -> Place:
    """What is said for this run counts before what is set for all."""
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


def _defaults_file() -> dict[str, str]:
    """`spark-defaults.conf`, as Spark is going to read it."""
    folder = Path(os.environ.get("SPARK_CONF_DIR") or spark_home() / "conf")
    try:
        lines = (folder / "spark-defaults.conf").read_text(errors="replace").splitlines()
    except OSError:
        return {}
    pairs = (re.match(r"\s*([^\s#!=:]+)\s*[\s=:]\s*(.*?)\s*$", line) for line in lines)
    return {pair[1]: pair[2] for pair in pairs if pair}


def _without(settings: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in settings.items() if name not in given}


def _check_reachable(place: Place) -> None:
    """BadInput within seconds if the server does not answer: Spark would try for minutes."""
    scheme, _, rest = place.url.partition("://")
    port = {"sc": CONNECT_PORT, "spark": SPARK_PORT}.get(scheme)
    if port is None:
        return
    addresses = rest.split("/")[0]  # a token may follow, which is secret
    for address in addresses.split(","):
        try:
            parts = urlsplit(f"//{address}")
            if parts.hostname is None:
                raise ValueError
            if scheme == "sc" and parts.hostname not in LOOPBACK and any(map(os.environ.get, PROXIES)):
                return  # gRPC finds its own way
            with socket.create_connection((parts.hostname, parts.port or port), PATIENCE):
                return
        except ValueError:
            raise BadInput(f"master {scheme}://{addresses}: write {scheme}://HOST:PORT") from None
        except OSError as error:
            problem = error.strerror or str(error)
    raise BadInput(f"master {scheme}://{addresses}: no answer ({problem})")


def _with_own_jvm(
    place: Place, wanted: Mapping[str, str], given: Mapping[str, str], silent: bool, brief: bool
) -> SparkSession:
    java = find_java()
    for name in () if place.remote else ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED"):
        os.environ.pop(name, None)  # PySpark would let it count before the master
    # Workers must be the Python that has this package, and servers listen on loopback only, unless the user
    # says otherwise.
    os.environ.setdefault("PYSPARK_PYTHON", wanted.get("spark.pyspark.python", sys.executable))
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    if place.local:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.appName("causet")
    builder = builder.remote(place.url) if place.remote else builder.master(place.url)
    make_archive_later(java)
    output = Path(_passing_folder(), "jvm") if silent else None
    with _environment({"JAVA_HOME": str(home_for_spark(java)), OUTPUT: str(output or "")}):
        try:
            with _taken_along():
                spark = _started(builder, _settings(place, java, wanted, given, brief))
        except BadInput as error:
            said = _said_at_the_end(output) if "JAVA_GATEWAY_EXITED" in str(error.__cause__) else ""
            raise (BadInput(f"Spark does not start: {said}") if said else error) from error.__cause__
    if place.url.startswith("local-cluster"):
        atexit.register(_remove_work, spark_home() / "work" / spark.sparkContext.applicationId)
    return spark


@contextmanager
def _taken_along() -> Iterator[None]:
    """If the start is interrupted, kill the JVM too: it does not notice yet that its parent is gone."""
    processes: list[subprocess.Popen[Any]] = []

    class Noted(subprocess.Popen[Any]):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            processes.append(self)
            super().__init__(*arguments, **options)

    names = vars(java_gateway)
    before = names["Popen"]
    names["Popen"] = Noted
    try:
        yield
    except Exception:  # which the JVM has still to explain
        raise
    except BaseException:
        for process in processes:
            if hasattr(process, "pid"):
                process.kill()
                process.wait()
        raise
    finally:
        names["Popen"] = before


def _remove_work(folder: Path) -> None:
    """The files of executors on this machine, which Spark keeps within its own package."""
    shutil.rmtree(folder, ignore_errors=True)
    with suppress(OSError):
        folder.parent.rmdir()  # if it is empty


def _settings(
    place: Place,
    java: Java,
    wanted: Mapping[str, str],
    given: Mapping[str, str],
    brief: bool,
) -> dict[str, str]:
    settings = {**DEFAULTS, **(FEW_TASKS if brief else {}), **_worker_environment(place)}
    options = [*archive_options(java), *(BRIEF if brief else LATER), *FORKING, *_quiet_options()]
    ours = {"spark.driver.defaultJavaOptions": options}
    if place.local:
        settings.update(CHECKPOINTS)
        settings["spark.driver.memory"] = _driver_memory()
        settings["spark.connect.grpc.binding.address"] = "127.0.0.1"
        if spark_home() == Path(pyspark.__file__).parent:
            settings["spark.python.daemon.module"] = "causet.spark.start.daemon"
        ours["spark.executor.defaultJavaOptions"] = options  # the files are on this machine
    settings = {**_without(settings, given), **wanted}
    for name, words in ours.items():
        settings[name] = " ".join([*words, wanted.get(name, given.get(name, ""))]).strip()
    return settings


def _worker_environment(place: Place) -> dict[str, str]:
    """What the user has set in the environment counts."""
    names = {name: os.environ.get(name, value) for name, value in WORKERS.items()}
    kernels = Path(__file__).parents[2] / "kernels"
    if place.local and not os.access(kernels, os.W_OK):
        # Where the home cannot be written to either, numba would refuse to load a kernel.
        names["NUMBA_CACHE_DIR"] = os.environ.get("NUMBA_CACHE_DIR", str(writable_cache() / "numba"))
    return {f"spark.executorEnv.{name}": value for name, value in names.items()}


def _driver_memory() -> str:
    """A quarter of the machine, between 1 and 8 GiB: in local mode the driver does all the work."""
    try:
        pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return "1g"
    return f"{min(max(pages * size // 4 // 2**20, 1024), 8192)}m"


def _quiet_options() -> list[str]:
    file = write_once(writable_cache() / "log4j2.properties", QUIET)
    return [quoted(f"-Dlog4j2.configurationFile=file:{file}"), "-Dlog4j2.StatusLogger.level=OFF"]


def _passing_folder() -> str:
    """A folder that goes when this process goes."""
    folder = mkdtemp(prefix="causet-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    """For what is started within."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _started(builder: SparkSession.Builder, settings: Mapping[str, str]) -> SparkSession:
    try:
        for name, value in settings.items():
            builder = builder.config(name, value)
        spark = builder.getOrCreate()
    except ImportError as error:
        raise BadInput("Spark Connect needs more packages: pip install 'causet[connect]'") from error
    except Exception as error:  # of PySpark, of py4j, of gRPC
        raise BadInput(f"Spark does not start: {_reason(str(error))}") from error
    try:
        spark.conf.get("spark.sql.session.timeZone")  # the first look at any makes Spark look at all
    except Exception as error:
        stop_session(spark)
        raise BadInput(f"Spark does not start: {_reason(str(error))}") from error
    return spark


_stopping: list[Thread] = []


def stop_session(spark: SparkSession) -> None:
    """Stop a session, and leave behind the second that PySpark sleeps when its JVM has stopped.

    A JVM that does not stop in time does so when it notices that this process has ended.
    """
    thread = Thread(target=_stop, args=(spark,), daemon=True)
    _stopping.append(thread)
    thread.start()
    waited = time.monotonic() + PATIENCE
    while thread.is_alive() and time.monotonic() < waited and _is_up(spark):
        thread.join(0.02)


def _stop(spark: SparkSession) -> None:
    with suppress(Exception):  # a JVM that was killed is stopped already
        spark.stop()


def _finish_stopping() -> None:
    while _stopping:
        _stopping.pop().join()


EMPTY_WORDS = re.compile(
    r"^(Error: Could not create the Java Virtual Machine\.|Error: A fatal exception has occurred.*"
    r"|Error occurred during initialization of VM|WARN.*)\n",
    re.MULTILINE,
)


def _said_at_the_end(output: Path | None) -> str:
    """Why a JVM ended, as far as it was heard."""
    if output is None or not output.exists():
        return ""
    return _reason(EMPTY_WORDS.sub("", output.read_text(errors="replace")))


EXCEPTION = (
    r"^(?:Caused by: |: |Exception in thread .*? )?[\w.$]+(?:Exception|Error)\w*: (.*?)"
    r"(?=\n\s+at |\nCaused by|\n\n|\Z)"
)
"""An exception of a stack trace with its message, up to the next line of the trace."""


REASONS = (
    (
        "Insufficient (?:driver|executor) memory|Invalid (?:maximum|initial) heap size",
        "it needs at least 450 MB of memory; write --conf spark.driver.memory=1g",
    ),
    (
        "BindException|Address already in use|failed with error\\(-98\\)",
        "a port that it was told to use is taken; name another one in --conf, or leave it out",
    ),
)
"""What Spark says at length, and with advice that is not for here."""


def _reason(text: str) -> str:
    """The innermost reason that a stack trace of Java names, or the first line; on one line."""
    named = re.findall(EXCEPTION, text, re.MULTILINE | re.DOTALL)
    told = named[-1] if named else text.strip().partition("\n")[0]
    for pattern, sentence in REASONS:
        if re.search(pattern, text):
            return sentence
    told = re.sub(r"^\[[A-Z_.]+\] | SQLSTATE: \w+", "", " ".join(told.split())).rstrip(".")
    return told if len(told) <= LONGEST_REASON else told[:LONGEST_REASON] + "…"

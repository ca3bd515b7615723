"""Starts and stops the SparkSession: quietly, quickly, and where the user wants it (`settings`).

Rule: a session that exists is used as it is. `SPARK_REMOTE`, or a master `sc://…`, gives a Spark Connect
session. One private name of PySpark is used here, and only while a JVM starts: see `_jvm_killed_with_us`.
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
from typing import Any
from urllib.parse import urlsplit

from pyspark import java_gateway
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from causet.errors import BadInput
from causet.spark.start.archive import make_archive_later, spark_home
from causet.spark.start.errors import innermost, sentence_for
from causet.spark.start.java import OUTPUT, find_java, home_for_spark
from causet.spark.start.python import python_for_spark
from causet.spark.start.settings import DEFAULTS, Place, defaults_file, place_for, settings_for

CONNECT_PORT, SPARK_PORT = 15002, 7077
LOOPBACK = ("localhost", "127.0.0.1", "::1")
PROXIES = ("grpc_proxy", "https_proxy", "http_proxy")
PATIENCE = 5.0
"""Seconds for a server to answer. Spark itself would retry for minutes before it reports anything."""
TO_END = 10.0
"""Seconds for a JVM to end by itself when it is asked to."""
_OWN: list[subprocess.Popen[Any]] = []
"""The JVM that was started here, if one was."""


def spark_session(
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    *,
    silent: bool = False,
    brief: bool = False,
) -> SparkSession:
    """Return the active session, or start a new one; BadInput says why Spark does not start.

    With `silent`, the output of the JVM and the workers is discarded: for commands, which print themselves.
    With `brief`, the session starts sooner but is slow with much data: for small inputs.
    """
    active = active_session()
    if active is not None:
        return active
    wanted = dict(conf or {})
    if "PYSPARK_GATEWAY_PORT" in os.environ:  # under spark-submit, which has the user's settings
        return _started(SparkSession.builder, {**wanted, **({"spark.master": master} if master else {})})
    given = defaults_file()
    place = place_for(master, wanted, given)
    _check_reachable(place)
    if place.elsewhere:
        sql = {name: value for name, value in DEFAULTS.items() if name.startswith("spark.sql.")}
        return _started(SparkSession.builder.remote(place.url), {**sql, **wanted})
    return _with_own_jvm(place, wanted, given, silent, brief)


def start_workers(spark: SparkSession) -> None:
    """Start the first Python worker in the background, while the first jobs do not need one yet."""

    def start() -> None:
        with suppress(Exception):  # the job that needs a worker reports it
            spark.range(1).mapInArrow(iter, "id long").collect()

    if isinstance(spark, SparkSession):  # a Spark Connect server has workers of its own
        Thread(target=start, daemon=True).start()


def active_session() -> SparkSession | None:
    """The session of this process, started by any thread; None if there is none."""
    _finish_stopping()
    try:
        spark = SparkSession.active()
    except PySparkException:
        return None
    return spark if _is_up(spark) else None


def _is_up(spark: SparkSession) -> bool:
    """Whether the context of a session is still running; assumed for Spark Connect, which has none here."""
    if isinstance(spark, SparkSession):  # a Spark Connect session has another class
        try:
            _ = spark.sparkContext.version
        except Exception:  # it was stopped, or the JVM has ended
            return False
    return True


def _check_reachable(place: Place) -> None:
    """Raise BadInput within seconds if the server does not answer: Spark would retry for minutes."""
    scheme, _, rest = place.url.partition("://")
    port = {"sc": CONNECT_PORT, "spark": SPARK_PORT}.get(scheme)
    if port is None:
        return
    addresses = rest.split("/")[0]  # a secret token may follow
    for address in addresses.split(","):
        try:
            parts = urlsplit(f"//{address}")
            if parts.hostname is None:
                raise ValueError
            if scheme == "sc" and parts.hostname not in LOOPBACK and any(map(os.environ.get, PROXIES)):
                return  # gRPC connects through the proxy
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
        os.environ.pop(name, None)  # PySpark would prefer it to the master
    # Unless the user sets otherwise, workers use the Python that has this package, and servers listen on
    # loopback only.
    os.environ.setdefault("PYSPARK_PYTHON", wanted.get("spark.pyspark.python", python_for_spark(place.local)))
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    if place.local:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.appName("causet")
    builder = builder.remote(place.url) if place.remote else builder.master(place.url)
    make_archive_later(java)
    output = Path(_temporary_folder(), "jvm") if silent else None
    with _environment({"JAVA_HOME": str(home_for_spark(java)), OUTPUT: str(output or "")}):
        try:
            with _jvm_killed_with_us():
                spark = _started(builder, settings_for(place, java, wanted, given, brief))
        except BadInput as error:
            why = _last_words(output) if "JAVA_GATEWAY_EXITED" in str(error.__cause__) else ""
            raise (BadInput(f"Spark does not start: {why}") if why else error) from error.__cause__
    if place.url.startswith("local-cluster"):
        atexit.register(_remove_work, spark_home() / "work" / spark.sparkContext.applicationId)
    return spark


@contextmanager
def _jvm_killed_with_us() -> Iterator[None]:
    """If the start is interrupted, kill the JVM too: it does not notice yet that its parent is gone.

    PySpark does not reveal the process that it starts, so its `Popen` is replaced meanwhile.
    """
    processes: list[subprocess.Popen[Any]] = []

    class Recorded(subprocess.Popen[Any]):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            processes.append(self)
            super().__init__(*arguments, **options)

    names = vars(java_gateway)
    before = names["Popen"]
    names["Popen"] = Recorded
    try:
        yield
        _OWN[:] = [process for process in processes if hasattr(process, "pid")]
    except Exception:  # the JVM has yet to print why
        raise
    except BaseException:
        for process in processes:
            if hasattr(process, "pid"):
                process.kill()
                process.wait()
        raise
    finally:
        names["Popen"] = before


def remove_when_ended(folder: Path) -> None:
    """Remove a folder at the end of this program, after its JVM: tasks that were interrupted may run on for a
    while, and make the folder again."""
    atexit.register(_remove_after_jvm, folder)


def _remove_after_jvm(folder: Path) -> None:
    for process in _OWN:
        process.terminate()
        try:
            process.wait(TO_END)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    shutil.rmtree(folder, ignore_errors=True)


def _remove_work(folder: Path) -> None:
    """Remove the files of executors on this machine, which Spark keeps in its own package."""
    shutil.rmtree(folder, ignore_errors=True)
    with suppress(OSError):
        folder.parent.rmdir()  # if it is empty


def _temporary_folder() -> str:
    """A folder that is removed when this process ends."""
    folder = mkdtemp(prefix="causet-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for the processes that are started within the block."""
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
    spark = None
    try:
        for name, value in settings.items():
            builder = builder.config(name, value)
        spark = builder.getOrCreate()
        spark.conf.get("spark.sql.session.timeZone")  # reading one setting makes Spark validate all
    except ImportError as error:
        raise BadInput("Spark Connect needs more packages: pip install 'causet[connect]'") from error
    except Exception as error:  # from PySpark, py4j or gRPC
        if spark is not None:
            stop_session(spark)
        raise BadInput(f"Spark does not start: {_why(error)}") from error
    return spark


_stopping: list[Thread] = []


def stop_session(spark: SparkSession) -> None:
    """Stop a session, without waiting for the second that PySpark sleeps after its JVM has stopped.

    A JVM that does not stop in time stops when it notices that this process has ended.
    """
    thread = Thread(target=_stop, args=(spark,), daemon=True)
    _stopping.append(thread)
    thread.start()
    waited = time.monotonic() + PATIENCE
    while thread.is_alive() and time.monotonic() < waited and _is_up(spark):
        thread.join(0.02)


def _stop(spark: SparkSession) -> None:
    with suppress(Exception):  # a JVM that was killed has stopped already
        spark.stop()


def _finish_stopping() -> None:
    while _stopping:
        _stopping.pop().join()


USELESS = re.compile(
    r"^(Error: Could not create the Java Virtual Machine\.|Error: A fatal exception has occurred.*"
    r"|Error occurred during initialization of VM|WARN.*)\n",
    re.MULTILINE,
)
"""Lines of a JVM that fails to start which do not say why."""


def _last_words(output: Path | None) -> str:
    """Why a JVM ended, according to what it printed; an empty string if it printed nothing."""
    if output is None or not output.exists():
        return ""
    return _why(USELESS.sub("", output.read_text(errors="replace")))


def _why(error: Exception | str) -> str:
    return sentence_for(error) or innermost(error)

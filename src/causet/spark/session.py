"""One place that makes a SparkSession: quiet, quick to start, and open to what the user wants.

Whatever the user says with `--master` or `--conf` wins. A session that exists already is used as it is, and
`SPARK_REMOTE` (or a master `sc://…`) gives a Spark Connect session: everything in this room keeps to the
public API.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from pyspark.sql import SparkSession

from causet.spark.java import find_java, home_for_spark, writable_cache, write_once

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
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
}


def spark_session(master: str | None = None, conf: Mapping[str, str] | None = None) -> SparkSession:
    """The session that is there, or a new one."""
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    wanted = dict(conf or {})
    remote = master if master is not None and master.startswith("sc://") else os.environ.get("SPARK_REMOTE")
    if remote:
        return _with(SparkSession.builder.remote(remote), wanted).getOrCreate()
    os.environ["JAVA_HOME"] = str(home_for_spark(find_java()))
    # Workers must be the Python that has this package, and servers listen on loopback only, unless the user
    # says otherwise.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    where = master or wanted.get("spark.master") or os.environ.get("SPARK_MASTER") or "local[*]"
    local = where.startswith("local")
    if local:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    settings = {**DEFAULTS, **({"spark.driver.memory": _driver_memory()} if local else {}), **wanted}
    options = _quiet_options()
    given = settings.get("spark.driver.extraJavaOptions", "")
    settings["spark.driver.extraJavaOptions"] = " ".join([given, *options]).strip()
    builder = SparkSession.builder.appName("causet").master(where)
    return _with(builder, settings).getOrCreate()


def _with(builder: SparkSession.Builder, settings: Mapping[str, str]) -> SparkSession.Builder:
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder


def _driver_memory() -> str:
    """A quarter of the machine, between 1 and 8 GiB: in local mode the driver does all the work."""
    try:
        pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return "1g"
    return f"{min(max(pages * size // 4 // 2**20, 1024), 8192)}m"


def _quiet_options() -> list[str]:
    file = write_once(writable_cache() / "log4j2.properties", QUIET)
    return [f"-Dlog4j2.configurationFile=file:{file}", "-Dlog4j2.StatusLogger.level=OFF"]

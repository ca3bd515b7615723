"""`causet doctor`: reports what works on this machine, what is missing, and what to do about it."""

from __future__ import annotations

import os
import platform
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

import click

from causet import __version__
from causet.cli.shared.printing import json_option, print_json, say
from causet.errors import CausetError
from causet.escapes import one_line
from causet.verdict import exit_code

GIB = 1 << 30
LITTLE_MEMORY, LITTLE_DISK = 2 * GIB, 2 * GIB
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "firefox")
FINE, MISSING, WRONG = "fine", "missing", "wrong"
"""`missing` affects only some commands; `wrong` keeps those on Spark from working."""


@dataclass(frozen=True)
class Finding:
    what: str
    state: str
    told: str
    remedy: str = ""


@click.command()
@click.option("--quick", is_flag=True, help="Do not start Spark, which takes several seconds.")
@json_option
def doctor(quick: bool, as_json: bool) -> int:
    """Report what works on this machine, what is missing, and what to do about it.

    The exit code is 1 if something is wrong that the commands on Spark need. What only some commands need
    (Kafka, a browser) is reported as missing, and the exit code stays 0.

    \b
    Examples:
      causet doctor
      causet doctor --quick --json
    """
    found = []
    for check in (_python, _java, _memory, _disk, *([] if quick else [_spark]), _kafka, _broker, _browser):
        for finding in check():
            found.append(finding)
            if not as_json:
                _tell(finding)
    wrong = [finding for finding in found if finding.state == WRONG]
    status = WRONG if wrong else FINE
    if as_json:
        print_json({"status": status, "findings": [asdict(finding) for finding in found]})
    elif wrong:
        say("", f"{len(wrong)} to fix: {', '.join(finding.what for finding in wrong)}.")
    else:
        say("", "Everything that is needed works.")
    return exit_code(status)


SIGNS = {FINE: ("✓", "green"), MISSING: ("–", "yellow"), WRONG: ("✗", "red")}


def _tell(finding: Finding) -> None:
    sign, colour = SIGNS[finding.state]
    told = one_line(f"{finding.what}: {finding.told}")
    click.echo(f"{click.style(sign, fg=colour)} {told}")
    if finding.remedy:
        say(f"    {finding.remedy}")


def _python() -> Iterator[Finding]:
    told = f"{platform.python_version()}, causet {__version__}, PySpark {_version('pyspark')}"
    yield Finding("Python", FINE, told)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "is not installed"


def _java() -> Iterator[Finding]:
    from causet.spark.start.java import find_java

    try:
        java = find_java()
    except CausetError as error:
        yield Finding(
            "Java",
            WRONG,
            str(error),
            "If JAVA_HOME is not set, causet finds a Java by itself, or uses the one it was installed with.",
        )
        return
    yield Finding("Java", FINE, f"{java.version}, in {java.home}")


def _memory() -> Iterator[Finding]:
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return
    told = f"{total / GIB:.1f} GiB, {os.cpu_count()} cores"
    if total < LITTLE_MEMORY:
        remedy = "Spark needs about 2 GiB: try --conf spark.driver.memory=512m, and close other programs."
        yield Finding("Memory", WRONG, told, remedy)
    else:
        yield Finding("Memory", FINE, told)


def _disk() -> Iterator[Finding]:
    folder = Path(tempfile.gettempdir())
    try:
        with tempfile.NamedTemporaryFile(dir=folder):
            free = shutil.disk_usage(folder).free
    except OSError as error:
        remedy = "Set TMPDIR to a writable folder."
        yield Finding("Disk", WRONG, f"{folder} cannot be written: {error.strerror}", remedy)
        return
    told = f"{free / GIB:.1f} GiB free in {folder}"
    if free < LITTLE_DISK:
        yield Finding("Disk", MISSING, told, "Large sorts need disk space: set TMPDIR to another folder.")
    else:
        yield Finding("Disk", FINE, told)


def _spark() -> Iterator[Finding]:
    from causet.cli.shared.spark import session

    try:
        with session(None, {}, "starting", brief=True) as spark:
            count = spark.range(1000).selectExpr("sum(id)").collect()[0][0]
            told = f"{spark.version} starts and computes"
    except CausetError as error:
        yield Finding("Spark", WRONG, str(error), "If Java is fine, check memory and JAVA_HOME.")
        return
    yield Finding("Spark", FINE if count == 499500 else WRONG, told)


def _kafka() -> Iterator[Finding]:
    if find_spec("confluent_kafka") is None:
        yield Finding(
            "Kafka", MISSING, "no client", "For kafka:// sources and sinks: pip install causet[kafka]"
        )
    else:
        yield Finding("Kafka", FINE, f"client {_version('confluent-kafka')}")


def _broker() -> Iterator[Finding]:
    from causet.live.broker import VERSION, broker_cached

    what = "Broker for demo --kafka"
    if broker_cached():
        yield Finding(what, FINE, f"Kafka {VERSION} is at hand")
    elif shutil.which("mvn"):
        yield Finding(what, FINE, f"Kafka {VERSION} will be fetched from Maven Central when it is wanted")
    else:
        yield Finding(what, MISSING, "no Maven", "Only `causet demo --kafka` wants it: install Maven.")


def _browser() -> Iterator[Finding]:
    import webbrowser

    name = next((found for found in BROWSERS if shutil.which(found)), None)
    if name is None:
        try:
            name = getattr(webbrowser.get(), "name", "the system's")
        except webbrowser.Error:
            remedy = "Pages are single files: open them in any browser, on any machine."
            yield Finding("Browser", MISSING, "none was found", remedy)
            return
    yield Finding("Browser", FINE, f"{name}, for the pages of view, demo and reports")

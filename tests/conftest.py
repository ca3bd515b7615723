"""One Spark for all tests that want one; a broker; a machine without Java; and which tests start a JVM.

Tests with one of the fixtures in `WITH_JVM` are marked `jvm`; those that start Spark by a command carry the
mark themselves. With `--no-jvm` the others run, with a Java that reports its version and does nothing else: a
test that starts it fails and is told to carry the mark.
"""

from __future__ import annotations

import gc
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from causet.spark.start import archive
from tests.helpers.kafka import broker_or_skip
from tests.helpers.scripts import SERVER, written
from tests.helpers.sessions import shared_spark

WITH_JVM = {"spark", "broker", "connect_server", "bare"}
LONGEST = ("docs", "streams", "start", "batch", "mutants", "cli", "pages", "core")
"""Folders whose files take longest: they come first, so that at the end no worker waits long for another."""
NO_JAVA = """\
#!/bin/sh
if [ "$*" = "-version" ]; then echo 'openjdk version "17.0.0"' >&2; exit; fi
echo "$@" >>"{started}"
exit 1
"""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--no-jvm", action="store_true", help="run only the tests that start no JVM and install nothing"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if WITH_JVM & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.jvm)
    if config.getoption("--no-jvm"):
        left_out = [item for item in items if any(map(item.get_closest_marker, ("jvm", "installs")))]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in set(left_out)]
    items.sort(key=_turn)


def pytest_collection_finish() -> None:
    """Spare the cyclic collector what is loaded by now: it would walk all of numba and PySpark every time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 10, 20)


def _turn(item: pytest.Item) -> int:
    """A test's rank by its folder; within one, tests stay as they stand."""
    room = item.path.parent.name
    return LONGEST.index(room) if room in LONGEST else len(LONGEST)


@pytest.fixture(scope="session")
def java_starts(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path | None]:
    """With `--no-jvm`, a file that notes every start of Java, of which there must be none."""
    if not request.config.getoption("--no-jvm"):
        yield None
        return
    home = tmp_path_factory.mktemp("java")
    started = home / "started"
    (home / "bin").mkdir()
    (home / "bin" / "java").write_text(NO_JAVA.format(started=started))
    (home / "bin" / "java").chmod(0o755)
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("JAVA_HOME", str(home))
        environment.setenv(archive.OFF, "1")
        yield started


@pytest.fixture(autouse=True)
def no_jvm_unless_marked(java_starts: Path | None) -> Iterator[None]:
    yield
    if java_starts is not None and java_starts.exists():
        java_starts.unlink()
        pytest.fail("this test starts a JVM: mark it `jvm`")


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    """The session of this process; it stays for the next module, but what this one made there does not.

    A frame that Python has not collected keeps its plan and its broadcast tables alive in the JVM.
    """
    yield shared_spark()
    gc.collect()


@pytest.fixture(scope="session")
def broker() -> Iterator[str]:
    """The address of a broker of our own, for all tests of this worker: they name their topics apart."""
    with broker_or_skip() as address:
        yield address


@pytest.fixture
def connect_server(tmp_path: Path) -> Iterator[str]:
    """The address of a server of Spark Connect, in a process of its own."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [sys.executable, written(SERVER, tmp_path), str(port)],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    assert server.stdout.readline() == "ready\n"
    yield f"sc://127.0.0.1:{port}"
    server.communicate()


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine without Java: everything else that is on the PATH stays."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for folder in reversed(os.environ["PATH"].split(os.pathsep)):
        for tool in Path(folder).iterdir() if Path(folder).is_dir() else ():
            link = tools / tool.name
            if not tool.name.startswith("java"):
                link.unlink(missing_ok=True)
                link.symlink_to(tool)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tools))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv(archive.OFF, "1")
    return tmp_path

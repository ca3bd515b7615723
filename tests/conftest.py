"""One Spark for all tests that want one; a broker; and a machine without Java."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from causet.errors import BadInput
from causet.live.broker import broker_jars, kafka_broker
from causet.spark.start import archive
from causet.spark.start.session import spark_session
from tests.helpers.scripts import SERVER, written


@pytest.fixture(scope="module")
def spark() -> SparkSession:
    """The session of this process; it stays for the next module."""
    conf = {"spark.sql.shuffle.partitions": "2", "spark.driver.memory": "2g"}
    return spark_session("local[2]", conf, brief=True)


@pytest.fixture(scope="module")
def broker() -> Iterator[str]:
    """The address of a broker of our own; whoever cannot have one is told why."""
    try:
        broker_jars()
    except BadInput as error:
        pytest.skip(str(error))
    with kafka_broker() as address:
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

"""A Kafka broker of one node on this machine, for demonstrations and tests: started, used, and gone.

Its jars come from Maven Central, by the machine's Maven, once, into the cache of this package; it listens on
loopback only and keeps its data in a folder that goes with it.
"""

from __future__ import annotations

import base64
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from causet.errors import BadInput
from causet.spark.start.java import find_java, writable_cache

VERSION = "4.1.1"
PATIENCE = 60
"""Seconds for a broker to start."""
_POM = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>causet</groupId><artifactId>broker</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies><dependency>
    <groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>{version}</version>
  </dependency></dependencies>
</project>
"""
_PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={folder}/data
num.partitions=3
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
group.initial.rebalance.delay.ms=0
"""


def broker_cached() -> bool:
    """Whether the broker's jars are on this machine."""
    return _folder().is_dir()


def _folder() -> Path:
    return writable_cache() / f"kafka-{VERSION}"


def broker_jars() -> Path:
    """The folder of the broker's jars; BadInput if it is not available."""
    folder = _folder()
    if folder.is_dir():
        return folder
    maven = shutil.which("mvn")
    if maven is None:
        raise BadInput("a Kafka broker needs its jars from Maven Central, and there is no mvn on the PATH")
    with tempfile.TemporaryDirectory(dir=writable_cache()) as made:
        (Path(made) / "pom.xml").write_text(_POM.format(version=VERSION))
        command = [maven, "-q", "-B", "-f", f"{made}/pom.xml", "dependency:copy-dependencies"]
        command += ["-DincludeScope=runtime", f"-DoutputDirectory={made}/jars"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode or not any(Path(made, "jars").glob("kafka_*.jar")):
            error = next((line for line in done.stdout.splitlines() if "ERROR" in line), "")
            raise BadInput(
                f"the jars of Kafka {VERSION} cannot be downloaded from Maven Central: {error[:200]}"
            )
        try:
            Path(made, "jars").rename(folder)
        except OSError:  # another process was quicker
            if not folder.is_dir():
                raise
    return folder


_KEEPER = """
import signal, subprocess, sys, threading
signal.signal(signal.SIGINT, signal.SIG_IGN)
broker = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL)
def left_alone():
    sys.stdin.read()
    broker.terminate()
    try:
        broker.wait(20)
    except subprocess.TimeoutExpired:
        broker.kill()
threading.Thread(target=left_alone, daemon=True).start()
sys.exit(broker.wait())
"""
"""Ends the broker when its own input ends: however its owner ends, no broker is left behind."""


class Broker:
    """A broker with its port and its data, which can be stopped and started again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port, controller = _free_ports(2)
        self.address = f"127.0.0.1:{self._port}"
        self._process: subprocess.Popen[bytes] | None = None
        self._properties = folder / "server.properties"
        self._properties.write_text(_PROPERTIES.format(port=self._port, controller=controller, folder=folder))
        java = find_java().home / "bin" / "java"
        self._run = [str(java), "-Xmx512m", "-XX:TieredStopAtLevel=1", "-cp", f"{broker_jars()}/*"]
        cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode()[:22]
        formatted = [*self._run, "kafka.tools.StorageTool", "format", f"--cluster-id={cluster}"]
        formatted += ["-c", str(self._properties)]
        with (folder / "log").open("ab") as log:
            if subprocess.run(formatted, stdout=log, stderr=log, check=False).returncode:
                raise BadInput(f"the Kafka broker cannot be set up: {_last_words(folder)}")

    def start(self) -> None:
        kept = [sys.executable, "-c", _KEEPER, *self._run, "kafka.Kafka", str(self._properties)]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(kept, stdin=subprocess.PIPE, stdout=log, stderr=log)
        _await(self._process, self._port, self._folder)

    def stop(self) -> None:
        if self._process is not None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            self._process.wait()
            self._process = None


@contextmanager
def restartable_broker() -> Iterator[Broker]:
    """A broker for as long as the block lasts."""
    folder = Path(tempfile.mkdtemp(prefix="causet-kafka-"))
    try:
        broker = Broker(folder)
        try:
            broker.start()
            yield broker
        finally:
            broker.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def kafka_broker() -> Iterator[str]:
    """A broker for as long as the block lasts; gives its address, `127.0.0.1:port`."""
    with restartable_broker() as broker:
        yield broker.address


def _await(process: subprocess.Popen[bytes], port: int, folder: Path) -> None:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if process.poll() is not None:
            raise BadInput(f"the Kafka broker has ended: {_last_words(folder)}")
        try:
            with socket.create_connection(("127.0.0.1", port), 1):
                return
        except OSError:
            time.sleep(0.2)
    raise BadInput(f"the Kafka broker does not answer: {_last_words(folder)}")


def _last_words(folder: Path) -> str:
    lines = (folder / "log").read_text(errors="replace").strip().splitlines()
    errors = [line for line in lines if "ERROR" in line or "Exception" in line]
    return (errors or lines or ["it wrote nothing"])[-1][:300]


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()

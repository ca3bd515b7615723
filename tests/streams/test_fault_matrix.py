"""Every fault against every medium, with what must come of it: exact, or refused with a sentence.

Exact means: in the end every message is in the sink once, in causal order by the oracle, the indexes of each
receiver without a gap. The faults are made at the place where they hurt, by a few lines that run in the
command's process before it begins. The table of `docs/operating.md` says the same as `EXPECTED`.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from causet.errors import BadInput
from causet.live.broker import Broker, broker_jars, restartable_broker
from causet.spark.streams.kafka.client import client
from tests.helpers.commands import LOCAL, check_rows, rows_in
from tests.helpers.places import ROOT
from tests.helpers.streams import Message, Streams, write_files, write_parquet

MEDIA = ("files", "Parquet", "Kafka")
EXACT = "exact"
"""In the same run, or in the next one if the fault ended the run."""
EXPECTED: dict[str, dict[str, str]] = {
    "driver killed": dict.fromkeys(MEDIA, EXACT),
    "JVM killed": dict.fromkeys(MEDIA, EXACT),
    "worker killed": dict.fromkeys(MEDIA, EXACT),
    "retried task": dict.fromkeys(MEDIA, EXACT),
    "zombie": dict.fromkeys(MEDIA, EXACT),
    "broker restart": {"files": "-", "Parquet": "-", "Kafka": EXACT},
    "full sink": dict.fromkeys(MEDIA, EXACT),
    "full checkpoint disk": dict.fromkeys(MEDIA, EXACT),
    "clock set back": dict.fromkeys(MEDIA, EXACT),
    "second query": dict.fromkeys(MEDIA, "refused: the sink belongs to another query"),
    "lost checkpoint": dict.fromkeys(MEDIA, "refused: the sink belongs to another query"),
    "retention": {
        "files": "refused: names the file of the unfinished batch",
        "Parquet": "refused: names the file of the unfinished batch",
        "Kafka": "refused: names topic, partition and both offsets",
    },
}
RUN = "\nfrom causet.cli import main\nmain()\n"
SINKS = """
import os, signal, sys
from pathlib import Path
from causet.spark.streams.file_sink import FileSink
from causet.spark.streams.kafka.sink import KafkaSink
FLAG = Path({flag!r})
def first():
    if FLAG.exists():
        return False
    FLAG.touch()
    return True
def around(before=lambda sink, batch: None, after=lambda sink, batch: None):
    for kind in (FileSink, KafkaSink):
        def write(self, rows, batch, write=kind.write):
            before(self, batch)
            write(self, rows, batch)
            after(self, batch)
        kind.write = write
"""
"""What the lines of a fault begin with."""
HALVES = 2


class Medium:
    """An input and a sink, with a checkpoint; messages go in by halves."""

    def __init__(self, kind: str, folder: Path, broker: Broker) -> None:
        self.kind, self.folder, self.broker = kind, folder, broker
        self.streams = Streams(seed=1500, runs=2, most=80)
        self.messages = self.streams.damaged(15, loss=0)
        self.checkpoint = folder / "state"
        self.name = f"m{uuid4().hex[:8]}"
        self.sink = folder / "out"
        self.policy = ["--missing", "wait"]
        if kind == "Kafka":
            topics: Any = import_module("confluent_kafka.admin")
            self.admin = topics.AdminClient({"bootstrap.servers": broker.address, "log_level": 0})
            for made in self.admin.create_topics([topics.NewTopic(self.name, 2)]).values():
                made.result(30)

    def half(self, number: int) -> Sequence[Message]:
        size = -(-len(self.messages) // HALVES)
        return self.messages[number * size : (number + 1) * size]

    def feed(self, number: int) -> None:
        mine = self.half(number)
        if self.kind == "files":
            write_files(self.folder / f"half{number}", mine, 15)
            inbox = self.folder / "in"
            inbox.mkdir(exist_ok=True)
            for file in (self.folder / f"half{number}").iterdir():
                file.rename(inbox / f"{number}-{file.name}")
        elif self.kind == "Parquet":
            write_parquet(self.folder / "in", mine, 15)
        else:
            producer = client().Producer({"bootstrap.servers": self.broker.address, "log_level": 0})
            for each in mine:
                producer.produce(self.name, json.dumps(each).encode(), each["source"].encode())
            assert producer.flush(60) == 0

    @property
    def ends(self) -> tuple[str, str]:
        if self.kind != "Kafka":
            return str(self.folder / "in"), str(self.sink)
        place = f"kafka://{self.broker.address}"
        return f"{place}/{self.name}", f"{place}/{self.name}-out"

    def run(
        self, fault: str = "", *more: str, master: str = "local[2]", checkpoint: Path | None = None
    ) -> Ended:
        command = [sys.executable, "-c", fault + RUN, "deliver", *self.ends, *self.policy, "--by", "receiver"]
        command += ["--buckets", "2", "--checkpoint", str(checkpoint or self.checkpoint), "--json"]
        command += ["--files-per-batch", "2", *LOCAL, "--master", master]
        done = subprocess.run([*command, *more], capture_output=True, text=True, timeout=400, check=False)
        return Ended(done.returncode, done.stdout, done.stderr)

    def hook(self, lines: str) -> str:
        """The lines of a fault, which happens once."""
        return SINKS.format(flag=str(self.folder / "happened")) + lines

    @property
    def happened(self) -> bool:
        return (self.folder / "happened").exists()

    def rows(self) -> list[dict[str, Any]]:
        """What a reader finds in the sink, by receiver and index."""
        if self.kind != "Kafka":
            return rows_in(self.sink)
        found = [_as_row(message) for message in committed(self.broker.address, f"{self.name}-out")]
        return sorted(found, key=lambda row: (row["receiver"], row["index"]))

    def check(self, once_only: bool = False) -> None:
        """Everything that was fed is there once, in causal order."""
        rows = self.rows()
        fed = [each for number in range(HALVES) for each in self.half(number)]
        if once_only:
            names = [(row["receiver"], row["source"], int(row["sequence"])) for row in rows]
            assert sorted(names) == sorted(
                {(each["receiver"], each["source"], int(each["sequence"])) for each in fed}
            )
        else:
            check_rows(rows, fed, self.streams)


class Ended:
    """How a command ended."""

    def __init__(self, code: int, printed: str, said: str) -> None:
        self.code, self.printed, self.said = code, printed, said

    def __repr__(self) -> str:
        return f"exit {self.code}: {self.printed}{self.said}"

    def fine(self) -> dict[str, Any]:
        assert self.code == 0, self
        found: dict[str, Any] = json.loads(self.printed)
        assert found["books"]["balance"], self
        return found

    def refused(self, *words: str) -> None:
        assert self.code == 2, self
        lines = [line for line in self.said.strip().splitlines() if line.startswith("causet: ")]
        assert len(lines) == 1 and "Traceback" not in self.said, self
        assert all(word in lines[0] for word in words), self


def _as_row(message: Any) -> dict[str, Any]:
    headers = {name: value.decode() for name, value in message.headers()}
    envelope = json.loads(message.value())
    about = {name: envelope[name] for name in ("source", "sequence", "subject")}
    return {**about, "receiver": headers["causet_receiver"], "index": int(headers["causet_index"])}


def committed(address: str, topic: str) -> Iterator[Any]:
    """The messages of a topic that a reader of what is committed sees."""
    kafka = client()
    reader = kafka.Consumer(
        {
            "bootstrap.servers": address,
            "group.id": f"reader {uuid4().hex}",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    parts = reader.list_topics(topic, 30).topics[topic].partitions
    reader.assign([kafka.TopicPartition(topic, number, 0) for number in parts])
    ended = 0
    while ended < len(parts):
        message = reader.poll(30)
        assert message is not None
        if message.error() is None:
            yield message
        else:
            assert message.error().code() == kafka.KafkaError._PARTITION_EOF
            ended += 1
    reader.close()


# ---------------------------------------------------------------- processes


def driver_killed(medium: Medium) -> str:
    """Between the sink's commit and Spark's."""
    medium.feed(0)
    medium.feed(1)
    kill = "around(after=lambda *_: first() and os.kill(os.getpid(), signal.SIGKILL))"
    assert medium.run(medium.hook(kill)).code == -9
    medium.run().fine()
    medium.check()
    return EXACT


def jvm_killed(medium: Medium) -> str:
    """While a batch is being run."""
    medium.feed(0)
    medium.feed(1)
    lines = """
def kill(sink, batch):
    if first():
        for folder in Path("/proc").glob("[0-9]*"):
            about = (folder / "stat").read_text().rpartition(")")[2].split() if folder.exists() else [0, 0]
            if int(about[1]) == os.getpid() and b"java" in (folder / "cmdline").read_bytes():
                os.kill(int(folder.name), signal.SIGKILL)
around(before=kill)
"""
    medium.run(medium.hook(lines)).refused("JVM")
    medium.run().fine()
    medium.check()
    return EXACT


def worker_killed(medium: Medium) -> str:
    """In the midst of the rows that it writes; Spark runs the task again."""
    medium.feed(0)
    medium.feed(1)
    lines = """
from causet.spark.streams import deliver as delivering
class Dying(delivering.Unpack):
    def __call__(self, batches):
        for rows in super().__call__(batches):
            if first():
                os.kill(os.getpid(), signal.SIGKILL)
            yield rows
delivering.Unpack = Dying
"""
    ended = medium.run(medium.hook(lines), master="local[2,4]")
    assert medium.happened
    if ended.code:
        medium.run().fine()
    else:
        ended.fine()
    medium.check()
    return EXACT


def retried_task(medium: Medium) -> str:
    """The task has written all its rows, and is run again."""
    medium.feed(0)
    medium.feed(1)
    place = {
        "files": "delivering.Unpack",
        "Parquet": "batches.ToFiles",
        "Kafka": "kafka_sink.Transaction",
    }[medium.kind]
    lines = f"""
from causet.spark.streams import file_sink as batches
from causet.spark.streams import deliver as delivering
from causet.spark.streams.kafka import sink as kafka_sink
class Twice({place}):
    def __call__(self, rows):
        yield from super().__call__(rows)
        if first():
            raise RuntimeError("this task is run again")
{place} = Twice
"""
    medium.run(medium.hook(lines), master="local[2,4]").fine()
    assert medium.happened
    medium.check()
    return EXACT


def zombie(medium: Medium) -> str:
    """An earlier attempt at the same batch comes back when it is over."""
    medium.feed(0)
    medium.feed(1)
    if medium.kind == "Kafka":
        lines = """
from causet.spark.streams.kafka.client import client, connected
kept = []
def begin(sink, batch):
    if first():
        zombie = client().Producer({**connected(sink.servers), "transactional.id": f"causet-{sink.query}"})
        zombie.init_transactions(30)
        zombie.begin_transaction()
        zombie.produce(sink.topic, b"zombie")
        zombie.flush(30)
        kept.append(zombie)
def come_back(sink, batch):
    while kept:
        try:
            kept.pop().commit_transaction(30)
        except client().KafkaException as error:
            Path(FLAG.with_name("fenced")).write_text(error.args[0].name())
around(begin, come_back)
"""
    else:
        lines = """
def come_back(sink, batch):
    if first():
        late = sink.folder.resolve() / f".batch-{batch:010}.part" / "kept"
        late.mkdir(parents=True)
        (late / "part-00000-999.parquet").write_bytes(b"PAR1")
around(after=come_back)
"""
    medium.run(medium.hook(lines)).fine()
    assert medium.happened
    if medium.kind == "Kafka":
        assert "FENCED" in (medium.folder / "fenced").read_text().upper()
    medium.run().fine()
    medium.check()
    return EXACT


def broker_restart(medium: Medium) -> str:
    """The broker goes while a batch is being written, and comes back."""
    if medium.kind != "Kafka":
        return "-"
    medium.feed(0)
    medium.feed(1)

    def restart() -> None:
        while not medium.happened:
            time.sleep(0.05)
        medium.broker.stop()
        time.sleep(3)
        medium.broker.start()

    thread = threading.Thread(target=restart)
    thread.start()
    lines = "import time\naround(before=lambda *_: first() and time.sleep(2))"
    ended = medium.run(medium.hook(lines))
    thread.join()
    ended.fine()
    medium.check()
    return EXACT


# ---------------------------------------------------------------- disks and clocks


@contextmanager
def small_disk(place: Path, size: str) -> Iterator[Callable[[str], None]]:
    """A disk of this size at a folder, which can be made larger."""
    place.mkdir(parents=True)
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(place)], capture_output=True, check=False
    )
    if made.returncode:
        pytest.skip("a small disk needs the right to mount one")
    try:
        yield lambda larger: _remount(place, larger)
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def _remount(place: Path, size: str) -> None:
    subprocess.run(["mount", "-o", f"remount,size={size}", str(place)], check=True)


def full_sink(medium: Medium) -> str:
    medium.feed(0)
    medium.run().fine()
    medium.feed(1)
    if medium.kind == "Kafka":
        lines = """
from causet.spark.streams.kafka import sink as kafka_sink
from causet.spark.streams.kafka.client import client
class Full(kafka_sink.Transaction):
    def _send(self, producer, row):
        if first():
            code = client().KafkaError.KAFKA_STORAGE_ERROR
            raise client().KafkaException(client().KafkaError(code, "the disk of the broker is full"))
        super()._send(producer, row)
kafka_sink.Transaction = Full
"""
        medium.run(medium.hook(lines)).refused("Kafka", "the disk of the broker is full")
    else:
        lines = """
import errno
from causet.spark.streams import file_sink as batches
replace = Path.replace
def full(self, target):
    if "batch-" in Path(target).name and not FLAG.exists():
        FLAG.touch()
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(target))
    return replace(self, target)
Path.replace = full
"""
        medium.run(medium.hook(lines)).refused("No space left on device")
    medium.run().fine()
    medium.check()
    return EXACT


def full_checkpoint_disk(medium: Medium) -> str:
    medium.feed(0)
    medium.feed(1)
    with small_disk(medium.folder / "disk", "60k") as enlarge:
        medium.checkpoint = medium.folder / "disk" / "state"
        medium.run().refused("disk is full")
        enlarge("200m")
        medium.run().fine()
        medium.check()
    return EXACT


def clock_set_back(medium: Medium) -> str:
    """By an hour, between two runs, under a policy that lives by the clock."""
    medium.policy = ["--missing", "flag", "--patience", "5m"]
    medium.feed(0)
    medium.run().fine()
    medium.feed(1)
    lines = """
from causet.spark.streams import deliver as delivering
now = delivering._now
delivering._now = lambda streaming: now(streaming) - 3_600_000
"""
    told = medium.run(lines).fine()
    assert told["held"] == 0, "the end of the input ends all patience"
    medium.check(once_only=True)
    return EXACT


# ---------------------------------------------------------------- owners and sources


def second_query(medium: Medium) -> str:
    medium.feed(0)
    medium.run().fine()
    before = medium.rows()
    medium.feed(1)
    other = medium.run(checkpoint=medium.folder / "other")
    other.refused("another query")
    assert not (medium.folder / "other").exists()
    assert medium.rows() == before
    medium.run().fine()
    medium.check()
    return "refused: the sink belongs to another query"


def lost_checkpoint(medium: Medium) -> str:
    medium.feed(0)
    medium.run().fine()
    before = medium.rows()
    shutil.move(medium.checkpoint, medium.folder / "kept")
    medium.feed(1)
    medium.run().refused("another query")
    assert medium.rows() == before
    shutil.rmtree(medium.checkpoint, ignore_errors=True)
    shutil.move(medium.folder / "kept", medium.checkpoint)
    medium.run().fine()
    medium.check()
    return "refused: the sink belongs to another query"


def retention(medium: Medium) -> str:
    """What was not read yet is taken away."""
    if medium.kind == "Kafka":
        medium.feed(0)
        medium.run().fine()
        ends = _ends(medium)
        medium.feed(1)
        kafka = client()
        gone = [kafka.TopicPartition(medium.name, number, end + 2) for number, end in ends.items()]
        for done in medium.admin.delete_records(gone).values():
            done.result(30)
        medium.run().refused(medium.name, "partition 0", f"is {ends[0]},", f"is {ends[0] + 2}:")
        told = medium.run("", "--gaps", "skip").fine()
        assert {(gap["from"], gap["to"]) for gap in told["gaps"]} == {(end, end + 2) for end in ends.values()}
        return "refused: names topic, partition and both offsets"
    medium.feed(0)
    medium.feed(1)
    kill = "around(before=lambda *_: first() and os.kill(os.getpid(), signal.SIGKILL))"
    assert medium.run(medium.hook(kill)).code == -9
    source = medium.folder / "in"
    file = min(source.iterdir(), key=lambda each: (each.stat().st_mtime_ns, each.name))
    file.rename(medium.folder / "aside")
    medium.run().refused(file.name)
    (medium.folder / "aside").rename(file)
    medium.run().fine()
    medium.check()
    return "refused: names the file of the unfinished batch"


def _ends(medium: Medium) -> dict[int, int]:
    reader = client().Consumer({"bootstrap.servers": medium.broker.address, "group.id": "ends"})
    places = [client().TopicPartition(medium.name, number) for number in range(2)]
    found = {place.partition: reader.get_watermark_offsets(place, 30)[1] for place in places}
    reader.close()
    return found


# ---------------------------------------------------------------- the matrix

FAULTS: dict[str, Callable[[Medium], str]] = {
    "driver killed": driver_killed,
    "JVM killed": jvm_killed,
    "worker killed": worker_killed,
    "retried task": retried_task,
    "zombie": zombie,
    "broker restart": broker_restart,
    "full sink": full_sink,
    "full checkpoint disk": full_checkpoint_disk,
    "clock set back": clock_set_back,
    "second query": second_query,
    "lost checkpoint": lost_checkpoint,
    "retention": retention,
}


@pytest.fixture(scope="module")
def own_broker() -> Iterator[Broker]:
    try:
        broker_jars()
    except BadInput as error:
        pytest.skip(str(error))
    with restartable_broker() as broker:
        yield broker


@pytest.mark.soak
@pytest.mark.parametrize("kind", MEDIA)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_and_what_comes_of_it(fault: str, kind: str, tmp_path: Path, own_broker: Broker) -> None:
    assert FAULTS[fault](Medium(kind, tmp_path, own_broker)) == EXPECTED[fault][kind]


def table() -> list[str]:
    """The expectations as the documents have them."""
    rows = [f"| {fault} | " + " | ".join(of[kind] for kind in MEDIA) + " |" for fault, of in EXPECTED.items()]
    return ["| fault | " + " | ".join(MEDIA) + " |", "| --- " * (1 + len(MEDIA)) + "|", *rows]


def test_the_documents_have_the_same_table() -> None:
    text = (ROOT / "docs/operating.md").read_text()
    assert "\n".join(table()) in text

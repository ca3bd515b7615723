"""Kafka for real: a broker, producers that are processes of their own, and readers who see only what is
committed."""

from __future__ import annotations

import json
import random
import signal
import socket
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession

from causet import RcClock, Stamper
from causet.errors import BadInput
from causet.spark.streams.kafka.client import Address, client
from causet.spark.streams.kafka.gaps import read_gaps
from causet.spark.streams.kafka.sink import KafkaSink
from causet.spark.streams.kafka.source import KafkaReader, read_kafka
from causet.spark.streams.pack import FAULT, SIZE
from tests.helpers.commands import LOCAL, causet
from tests.helpers.grouped import Sent
from tests.helpers.kafka import create, publish, read
from tests.helpers.readers import Executions, row_of


def chat(seed: int, count: int, now: list[int]) -> tuple[list[dict[str, Any]], list[tuple[str, str]]]:
    """Messages of four people who answer each other, and which came because of which."""
    draw = random.Random(seed)

    def clock() -> RcClock:
        return RcClock(50, lambda: 1000 * now[0], None)

    people = {name: Stamper(name, "chat", clock=clock()) for name in ("anna", "ben", "carl", "dora")}
    made: list[dict[str, Any]] = []
    causes: list[tuple[str, str]] = []
    for number in range(count):
        now[0] += draw.randrange(1, 20)
        name = draw.choice(list(people))
        if made and draw.random() < 0.8:
            heard = made[-1]
            if heard["source"] != name:
                people[name].saw(heard)
                causes.append((heard["subject"], f"m{number}"))
        made.append(people[name].stamp({"text": f"{number} ü"}, subject=f"m{number}"))
    return made, causes


def check(
    found: list[dict[str, str]], envelopes: list[dict[str, Any]], causes: list[tuple[str, str]]
) -> None:
    assert [int(each["causet_index"]) for each in found] == list(range(len(envelopes)))
    order = [each["ce_subject"] for each in found]
    assert sorted(order) == sorted(each["subject"] for each in envelopes)
    assert causes and all(order.index(cause) < order.index(effect) for cause, effect in causes)


def test_from_topic_to_topic_once_and_in_order(broker: str, tmp_path: Path) -> None:
    envelopes, causes = chat(1, 200, [1_700_000_000_000])
    create(broker, "chat")
    publish(broker, "chat", envelopes, tmp_path)
    command = ["deliver", f"kafka://{broker}/chat", f"kafka://{broker}/delivered", "--missing", "wait"]
    command += ["--readers", "each", "--checkpoint", str(tmp_path / "state"), "--buckets", "2"]
    command += [*LOCAL, "--json"]
    told = json.loads(causet(*command))
    assert (told["messages"], told["delivered"], told["held"]) == (200, 200, 0)
    check(read(broker, "delivered"), envelopes, causes)


def test_runs_of_a_source_are_processes_of_their_own_in_both_modes(broker: str, tmp_path: Path) -> None:
    """anna's messages are in structured mode, ben's in binary mode; both began again, without files."""
    envelopes: list[dict[str, Any]] = []
    for name in ("anna", "ben"):
        for run in range(2):
            stamper = Stamper(name, "chat")
            if run:
                stamper.saw(envelopes[-1])
            envelopes += [stamper.stamp(run, subject=f"{name} {run} {number}") for number in range(3)]
        old = {
            "specversion": "1.0",
            "source": name,
            "id": "1",
            "type": "t",
            "sequence": "1",
            "causaldomain": "chat",
        }
        envelopes.append({**old, "subject": f"{name} old"})
        envelopes.append({**old, "source": name, "causalversion": 3, "subject": f"{name} odd"})
    create(broker, "runs")
    publish(broker, "runs", envelopes[::-1], tmp_path)
    command = ["deliver", f"kafka://{broker}/runs", f"kafka://{broker}/runs-out", "--missing", "wait"]
    command += ["--checkpoint", str(tmp_path / "state"), "--buckets", "2", *LOCAL, "--json"]
    told = json.loads(causet(*command))
    assert (told["delivered"], told["duplicates"], told["diverted"], told["held"]) == (14, 0, 2, 0)
    order = [
        each["ce_subject"]
        for each in sorted(read(broker, "runs-out"), key=lambda each: int(each["causet_index"]))
    ]
    for name in ("anna", "ben"):
        mine = [subject for subject in order if subject.startswith(name) and "old" not in subject]
        assert mine == [f"{name} {run} {number}" for run in range(2) for number in range(3)]
    aside = read(broker, "runs-out-diverted")
    assert {each["causet_problem"] for each in aside} == {"has a causalversion that is not 1 or 2"}


JOB = """
import os, signal, sys
from importlib import import_module
from pathlib import Path
from causet.spark.streams.kafka.sink import KafkaSink
from causet.cli import main
flag = Path(sys.argv.pop(1))
write = KafkaSink.write
def dies(self, rows, batch):
    write(self, rows, batch)
    if not flag.exists():
        flag.touch()
        os.kill(os.getpid(), signal.SIGKILL)
KafkaSink.write = dies
main()
"""


@pytest.mark.soak
def test_killed_between_transaction_and_commit_every_message_is_there_once(
    broker: str, tmp_path: Path
) -> None:
    envelopes, causes = chat(2, 120, [1_700_000_000_000])
    create(broker, "killed")
    publish(broker, "killed", envelopes, tmp_path)
    command = ["deliver", f"kafka://{broker}/killed", f"kafka://{broker}/survived", "--missing", "wait"]
    command += ["--checkpoint", str(tmp_path / "state"), "--buckets", "2", *LOCAL]
    job = [sys.executable, "-c", JOB, str(tmp_path / "died"), *command]
    assert subprocess.run(job, capture_output=True, timeout=200, check=False).returncode == -signal.SIGKILL
    causet(*command)
    check(read(broker, "survived"), envelopes, causes)


def envelope_of(sent: Sent) -> dict[str, Any]:
    """A message, of one source with many processes: it is the same in all topics."""
    return {**row_of(sent), "subject": sent.name, "source": "s", "causalprocess": sent.stamped[0]}


@pytest.mark.parametrize("kills", [1, pytest.param(8, marks=pytest.mark.soak)])
def test_readers_of_three_topics_that_overlap_lose_and_double_nothing_when_killed(
    broker: str, tmp_path: Path, kills: int
) -> None:
    """Each group is in one of three topics; a message to groups of several topics is published to all."""
    made = Executions(7, 30)
    draw = random.Random(kills)
    topics = [f"overlap-{kills}-{number}" for number in range(3)]
    for topic in topics:
        create(broker, topic)
    (tmp_path / "readers.json").write_text(json.dumps(made.readers))
    command = ["deliver", f"kafka://{broker}/{','.join(topics)}", f"kafka://{broker}/overlapped-{kills}"]
    command += ["--missing", "wait", "--readers", str(tmp_path / "readers.json"), "--buckets", "3"]
    command += ["--checkpoint", str(tmp_path / "state"), *LOCAL, "--json"]
    portion = -(-len(made.messages) // (kills + 1))
    for kill in range(kills + 1):
        some = made.messages[kill * portion : (kill + 1) * portion]
        for number, topic in enumerate(topics):
            mine = [each for each in some if number in {int(group[-1]) % 3 for group in each.stamped[1]}]
            publish(broker, topic, list(map(envelope_of, mine)), tmp_path)
        if kill < kills:
            kind = [sys.executable, "-c", JOB, str(tmp_path / f"died-{kill}")]
            if kill:  # the first dies between the commits of Kafka and Spark, the others at any time
                kind = [sys.executable, "-c", "from causet.cli import main; main()"]
            with subprocess.Popen([*kind, *command, *(["--follow"] if kill else [])]) as process:
                if kill:
                    time.sleep(draw.uniform(3, 15))
                    process.kill()
                assert process.wait(200) == -signal.SIGKILL
    told = json.loads(causet(*command))
    assert told["books"]["balance"] and not told["conflicts"] and not told["diverted"]
    left = [
        {
            "receiver": each["causet_receiver"],
            "index": int(each["causet_index"]),
            "status": each["causet_status"],
            "id": each["ce_subject"],
        }
        for each in read(broker, f"overlapped-{kills}")
    ]
    assert made.check(left, made.messages) == len(left) > 500


@pytest.mark.soak
def test_merge_from_a_topic(broker: str, tmp_path: Path) -> None:
    now = [1_700_000_000_000]
    envelopes, causes = chat(3, 100, now)
    beat = {"specversion": "1.0", "type": "causet.heartbeat", "id": "beat", "causalversion": 2}
    at = " ".join(2 * [str(1000 * (now[0] + 9000))])
    last = [{**beat, "source": name, "causaltime": at} for name in ("anna", "ben", "carl", "dora")]
    create(broker, "merge")
    publish(broker, "merge", [*envelopes, *last], tmp_path)
    settings = ["--epsilon", "50ms", "--delta", "1s", "--buckets", 2, *LOCAL, "--json"]
    told = json.loads(causet("merge", f"kafka://{broker}/merge", tmp_path / "merged", *settings))
    assert (told["delivered"], told["late"], told["held"]) == (100, 0, len(last))
    rows = [
        json.loads(line)
        for file in sorted((tmp_path / "merged").glob("*.jsonl"))
        for line in file.read_text().splitlines()
    ]
    times = [tuple(map(int, row["causaltime"].split())) for row in rows]
    assert len(rows) == 100 and times == sorted(times)
    by_id = {(each["source"], each["sequence"]): each["subject"] for each in envelopes}
    order = [by_id[row["source"], row["sequence"]] for row in rows]
    assert all(order.index(cause) < order.index(effect) for cause, effect in causes)


@pytest.mark.parametrize(
    "text", ["kafka://", "kafka://host/topic", "kafka://host:x/topic", "kafka://host:1/"]
)
def test_an_address_of_a_topic_is_complete_or_refused(text: str) -> None:
    with pytest.raises(BadInput, match="write kafka://host:port/topic"):
        Address.parse(text)
    assert Address.parse("folder") is None
    assert Address.parse("kafka://h:1/a,b") == Address("h:1", ("a", "b"))


def test_a_broker_that_does_not_answer_is_said_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from causet.spark.streams.kafka import client as kafka_client

    monkeypatch.setattr(kafka_client, "PATIENCE", 1.0)
    with pytest.raises(BadInput, match=r"Kafka at 127\.0\.0\.1:1 does not answer"):
        KafkaReader({"servers": "127.0.0.1:1", "topics": "x"}).initialOffset()


ABANDONS = """
import time
from causet.live.broker import kafka_broker
with kafka_broker() as address:
    print(address, flush=True)
    time.sleep(600)
"""


def test_a_broker_ends_with_whoever_wanted_it(broker: str) -> None:
    """Killed, it cannot clean up. (The other broker is there to say whether there can be one.)"""
    command = [sys.executable, "-c", ABANDONS]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        host, port = owner.stdout.readline().strip().split(":")
        owner.kill()
    end = time.monotonic() + 60
    while time.monotonic() < end:
        with socket.socket() as asked:
            if asked.connect_ex((host, int(port))):
                return
        time.sleep(0.2)
    pytest.fail("it is still there")


def test_a_second_query_and_a_lost_checkpoint_are_refused(broker: str, tmp_path: Path) -> None:
    """The command, twice with one checkpoint, and then without it: nothing is written again."""
    envelopes, causes = chat(4, 30, [1_700_000_000_000])
    create(broker, "owned-in")
    publish(broker, "owned-in", envelopes, tmp_path)
    command = ["deliver", f"kafka://{broker}/owned-in", f"kafka://{broker}/owned", "--missing", "wait"]
    command += ["--readers", "each", "--buckets", "2", *LOCAL, "--json"]
    for count in (30, 0):
        told = json.loads(causet(*command, "--checkpoint", str(tmp_path / "state")))
        assert (told["messages"], told["delivered"]) == (count, count)
    with pytest.raises(BadInput, match='topic "owned" belongs to another query'):
        causet(*command, "--checkpoint", str(tmp_path / "new"))
    check(read(broker, "owned"), envelopes, causes)


def test_a_gap_in_the_source_ends_the_command_with_a_sentence(broker: str, tmp_path: Path) -> None:
    envelopes, _ = chat(5, 20, [1_700_000_000_000])
    create(broker, "gap")
    publish(broker, "gap", envelopes[:10], tmp_path)
    command = ["deliver", f"kafka://{broker}/gap", str(tmp_path / "out"), "--missing", "wait", "--json"]
    command += ["--buckets", "2", *LOCAL, "--checkpoint", str(tmp_path / "state")]
    assert json.loads(causet(*command))["messages"] == 10
    publish(broker, "gap", envelopes[10:], tmp_path)
    topics: Any = import_module("confluent_kafka.admin")
    admin = topics.AdminClient({"bootstrap.servers": broker})
    places = [client().TopicPartition("gap", number, client().OFFSET_END) for number in range(3)]
    for future in admin.delete_records(places).values():
        future.result(20)
    with pytest.raises(BadInput, match="retention removed messages before they were read; --gaps skip"):
        causet(*command)
    told = json.loads(causet(*command, "--gaps", "skip"))
    assert sum(gap["to"] - gap["from"] for gap in told["gaps"]) == 10 and told["books"]["balance"]
    assert told["status"] == "with gaps"


def test_poisoned_messages_go_through_spark_and_into_a_topic(
    broker: str, spark: SparkSession, tmp_path: Path
) -> None:
    """With a gap before them, which is skipped and noted; and each batch is written once."""
    create(broker, "poisoned")
    producer = client().Producer({"bootstrap.servers": broker})

    def send(value: bytes | None, *headers: tuple[str, bytes | None]) -> None:
        producer.produce("poisoned", value, headers=list(headers), partition=0)
        assert producer.flush(20) == 0

    found: list[Row] = []

    def kept(rows: DataFrame, batch: int) -> None:
        found.extend(rows.collect())

    def run() -> None:
        topic, noted = Address(broker, ("poisoned",)), tmp_path / "gaps"
        rows = read_kafka(spark, topic, 1000, ["tenant"], gaps="skip", gap_folder=noted, size=True)
        query = rows.writeStream.foreachBatch(kept).trigger(availableNow=True)
        query.option("checkpointLocation", f"file:{tmp_path / 'state'}").start().awaitTermination()

    send(b"0", ("ce_source", b"a"), ("ce_id", b"0"))
    run()
    send(b"lost")
    admin: Any = import_module("confluent_kafka.admin")
    deleting = admin.AdminClient({"bootstrap.servers": broker})
    for future in deleting.delete_records([client().TopicPartition("poisoned", 0, 2)]).values():
        future.result(20)
    send(b"\xff", ("ce_source", b"a"), ("ce_id", b"1"), ("ce_tenant", b"t"), ("x", b"\xff"))
    send(b"2", ("ce_source", b"a\xff"), ("ce_id", b"2"))
    send(b'{"source": "caf\xe9", "id": "3"}')
    send(None, ("ce_source", b"a"), ("ce_id", None))
    send(b'{"source": "\xc3\xa9", "id": "5", "tenant": "u"}')
    send(b'{"source": "a", "id": "6"} {"source": "a", "id": "7"}')
    send(b'{"source": "a"} {"source": "b"}', ("ce_source", b"c"), ("ce_id", b"8"))
    run()
    told = [(row["source"], row["id"], row["tenant"], row[FAULT]) for row in found]
    assert told == [
        ("a", "0", None, None),
        ("a", "1", "t", None),
        (None, "2", None, "header ce_source is not UTF-8"),
        (None, None, None, "the value is not UTF-8"),
        ("a", None, None, None),
        ("é", "5", "u", None),
        (None, None, None, "the value has more than one JSON value"),
        ("c", "8", None, None),
    ]
    assert all(row[SIZE] >= len(row["value"] or b"") for row in found)
    gap = {"topic": "poisoned", "partition": 0, "from": 1, "to": 2, "anew": False}
    assert read_gaps(tmp_path / "gaps") == [gap]

    target = KafkaSink(Address(broker, ("cured",)))
    target.check("q", fresh=True)
    target.claim("q", {})
    schema = (
        "key binary, value binary, headers array<struct<key:string,value:binary>>, source string, id string"
    )
    rows = spark.createDataFrame(
        [
            (None, value, [Row(key="ce_subject", value=b"s")], "a", "1", "a", 0, status, None)
            for value, status in ((b"\xff", "delivered"), (bytes(2_000_000), "diverted"), (None, "delivered"))
        ],
        f"{schema}, receiver string, index long, status string, problem string",
    )
    for batch in (0, 0, 1, 0):
        target.write(rows, batch)
    assert [each["ce_subject"] for each in read(broker, "cured")] == ["s"] * 4
    aside = read(broker, "cured-diverted")
    assert [(each["ce_source"], each["ce_id"]) for each in aside] == [("a", "1")] * 2
    assert all("the value of 2000000 bytes is left out" in each["causet_problem"] for each in aside)

"""What the Kafka source and sink share: addresses, the client, retries, and questions to a broker.

Rule: no call fails because a broker is away for a while. Each is repeated, with growing pauses, for as long
as its `Retry` allows; then the error states for how long. The first contact of a command is given less
time, since a mistyped port should not take minutes.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeVar
from urllib.parse import urlsplit

from causet.errors import BadInput, printable, quote

T = TypeVar("T")

PATIENCE = 30.0
"""Seconds for a broker to answer at the start of a command."""
RETRY = 300.0
"""Seconds for which calls are repeated later on."""
PER_CALL = 10.0
"""Seconds for one call, before it is repeated."""
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0
"""Seconds between two calls: each pause is about twice the one before."""
AT_A_TIME = 10_000
"""Messages that are read together, at most."""
LARGEST = 1_000_000_000
"""Bytes that librdkafka sends or receives at a time, at most."""
_PASSING = frozenset(
    {
        "_TRANSPORT",
        "_TIMED_OUT",
        "_TIMED_OUT_QUEUE",
        "_ALL_BROKERS_DOWN",
        "_RESOLVE",
        "_WAIT_COORD",
        "_WAIT_CACHE",
        "_DESTROY_BROKER",
        "REQUEST_TIMED_OUT",
        "NETWORK_EXCEPTION",
        "BROKER_NOT_AVAILABLE",
        "LEADER_NOT_AVAILABLE",
        "NOT_LEADER_FOR_PARTITION",
        "REPLICA_NOT_AVAILABLE",
        "NOT_ENOUGH_REPLICAS",
        "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
        "NOT_CONTROLLER",
        "COORDINATOR_LOAD_IN_PROGRESS",
        "COORDINATOR_NOT_AVAILABLE",
        "NOT_COORDINATOR",
        "CONCURRENT_TRANSACTIONS",
        "UNSTABLE_OFFSET_COMMIT",
        "OFFSET_NOT_AVAILABLE",
        "KAFKA_STORAGE_ERROR",
        "FENCED_LEADER_EPOCH",
        "UNKNOWN_LEADER_EPOCH",
    }
)
"""Transient errors, beside those that the client calls retriable."""


@dataclass(frozen=True)
class Address:
    """`kafka://host:port/topic`, or several topics with commas."""

    servers: str
    topics: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> Address | None:
        """None if it is not such an address; BadInput if it is a malformed one."""
        if not text.startswith("kafka://"):
            return None
        parts = urlsplit(text)
        topics = tuple(each for each in parts.path.lstrip("/").split(",") if each)
        try:
            fine = parts.hostname and parts.port and topics
        except ValueError:
            fine = None
        if not fine or "/" in "".join(topics):
            raise BadInput(f"{text}: write kafka://host:port/topic")
        return cls(parts.netloc, topics)


def client() -> Any:
    """librdkafka's Python client; BadInput, with how to install it, if it is missing."""
    try:
        import confluent_kafka
    except ImportError:
        raise BadInput("Kafka needs a client: pip install 'causet[kafka]'") from None
    return confluent_kafka


def admin() -> Any:
    """The part of the client that asks about topics."""
    client()
    return import_module("confluent_kafka.admin")


def connected(servers: str) -> dict[str, Any]:
    """The settings of every client: silent, and quick to come back to a broker that was restarted."""
    return {
        "bootstrap.servers": servers,
        "log_level": 0,
        "reconnect.backoff.ms": 100,
        "reconnect.backoff.max.ms": 2000,
    }


# ---------------------------------------------------------------- patience


class Fenced(BadInput):
    """A newer producer with the same transactional id has begun."""


class Passing(Exception):
    """An answer that may be different the next time."""


@dataclass(frozen=True)
class Retry:
    """Repeats calls to a broker that is away, up to a number of seconds."""

    servers: str
    seconds: float = RETRY

    def __call__(self, call: Callable[[float], T]) -> T:
        """The result of the call, which is given its timeout in seconds. BadInput when time is up, or at once
        for an error that does not pass."""
        begun, pause = time.monotonic(), FIRST_PAUSE
        while True:
            left = begun + self.seconds - time.monotonic()
            try:
                return call(max(min(left, PER_CALL), 0.5))
            except (client().KafkaException, FutureTimeout, Passing) as error:
                if not passes(error):
                    kind = Fenced if is_fenced(error) else BadInput
                    raise kind(f"Kafka at {self.servers}: {text_of(error)}") from None
                if time.monotonic() + pause >= begun + self.seconds:
                    raise BadInput(no_answer(self.servers, error, self.seconds)) from None
            time.sleep(pause * random.uniform(0.5, 1))
            pause = min(2 * pause, LONGEST_PAUSE)


def passes(error: BaseException) -> bool:
    """Whether it may help to try again."""
    if not isinstance(error, client().KafkaException):
        return isinstance(error, FutureTimeout | Passing)
    found = error.args[0]
    if found.fatal() or found.txn_requires_abort():
        return False
    return bool(found.retriable()) or found.name() in _PASSING


def text_of(error: BaseException) -> str:
    found = error.args[0] if error.args else "timeout"
    if isinstance(found, str):
        return found
    return f"{found.str()}{': another run has taken over' if is_fenced(error) else ''}"


def is_fenced(error: BaseException) -> bool:
    """Whether a newer producer with the same transactional id has begun."""
    if not isinstance(error, client().KafkaException):
        return False
    return error.args[0].name() in ("_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH")


def no_answer(servers: str, error: BaseException, seconds: float) -> str:
    return (
        f"Kafka at {servers} does not answer ({text_of(error)}), tried for {seconds:g} s: check that a "
        "broker runs there and that name and port are right"
    )


# ---------------------------------------------------------------- topics


@dataclass(frozen=True)
class Topic:
    """A topic that is there. Its id changes when it is deleted and recreated."""

    id: str | None
    partitions: int


class Cluster:
    """What a broker is asked besides messages."""

    def __init__(self, retry: Retry) -> None:
        self.retry = retry
        self._admin = admin().AdminClient(connected(retry.servers))

    def topics(self, names: Iterable[str]) -> dict[str, Topic]:
        """Those of the topics that are there."""
        wanted = list(dict.fromkeys(names))

        def ask(seconds: float) -> dict[str, Topic]:
            asked = self._admin.describe_topics(client().TopicCollection(wanted), request_timeout=seconds)
            found = {}
            for name, future in asked.items():
                try:
                    about = future.result(2 * seconds)
                except client().KafkaException as error:
                    if error.args[0].code() != client().KafkaError.UNKNOWN_TOPIC_OR_PART:
                        raise
                else:
                    found[name] = Topic(_id(about), len(about.partitions))
            return found

        return self.retry(ask)

    def bounds(self, places: Iterable[tuple[str, int]], committed: bool = True) -> dict[Any, tuple[int, int]]:
        """For each topic and partition, the first offset that is there and the one after the last; only up to
        the first transaction that is open, unless it is `committed=False`."""
        levels = client().IsolationLevel
        level = levels.READ_COMMITTED if committed else levels.READ_UNCOMMITTED
        wanted = list(places)
        if not wanted:
            return {}

        def ask(seconds: float) -> dict[Any, tuple[int, int]]:
            # Both questions at once: for each, the client looks for the leader of every partition first.
            asked = [
                self._admin.list_offsets(
                    {client().TopicPartition(*place): spec for place in wanted},
                    isolation_level=level,
                    request_timeout=seconds,
                )
                for spec in (admin().OffsetSpec.earliest(), admin().OffsetSpec.latest())
            ]
            first, last = (
                {(at.topic, at.partition): each.result(2 * seconds).offset for at, each in answers.items()}
                for answers in asked
            )
            # The answers may be of different moments, and retention go past the end of the earlier one.
            return {place: (first[place], max(first[place], last[place])) for place in wanted}

        return self.retry(ask)

    def largest_messages(self, names: Iterable[str]) -> int:
        """The bytes that a message may have in each of these topics; without any, in those that are made."""
        kinds = admin().ConfigResource
        wanted = [kinds(kinds.Type.TOPIC, name) for name in names]

        def ask(seconds: float) -> int:
            brokers = [str(each) for each in self._admin.list_topics(timeout=seconds).brokers]
            there = wanted or [kinds(kinds.Type.BROKER, each) for each in brokers]
            name = "max.message.bytes" if wanted else "message.max.bytes"
            asked = self._admin.describe_configs(there, request_timeout=seconds).values()
            return min(int(each.result(2 * seconds)[name].value) for each in asked)

        return self.retry(ask)

    def make(self, name: str, partitions: int = -1, config: Mapping[str, str] | None = None) -> None:
        """Make a topic, if it is not there; by default with the broker's default number of partitions."""
        exists = client().KafkaError.TOPIC_ALREADY_EXISTS

        def ask(seconds: float) -> None:
            new = admin().NewTopic(name, partitions, config=dict(config or {}))
            (future,) = self._admin.create_topics([new], request_timeout=seconds).values()
            try:
                future.result(2 * seconds)
            except client().KafkaException as error:
                if error.args[0].code() != exists:
                    raise

        if name not in self.topics([name]):
            self.retry(ask)
            self.retry(lambda _: self._visible(name))

    def _visible(self, name: str) -> None:
        """A topic that was just made is not known everywhere at once."""
        found = self.topics([name]).get(name)
        if found is None:
            raise Passing(f"topic {quote(name)} is not there yet")
        self.bounds([(name, number) for number in range(found.partitions)])


def _id(about: Any) -> str | None:
    """The id of a topic, where broker and client know of such."""
    found = getattr(about, "topic_id", None)
    if found is None or not (found.get_most_significant_bits() or found.get_least_significant_bits()):
        return None
    return str(found)


# ---------------------------------------------------------------- messages


class OutOfRange(Exception):
    """The offset that is wanted is not there (any more)."""

    def __init__(self, offset: int) -> None:
        super().__init__(offset)
        self.offset = offset


def committed_reader(servers: str, group: str = "causet") -> Any:
    """A consumer that sees only what is committed, learns where a partition ends, and never continues at
    an offset that it was not given."""
    return client().Consumer(
        {
            **connected(servers),
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "receive.message.max.bytes": LARGEST,
        }
    )


def consumed(consumer: Any, place: Any, end: int, seconds: float | None = None) -> Iterator[list[Any]]:
    """The messages of a partition from a place to an offset, some at a time. The last offsets may be those of
    transaction markers, which are not messages. OutOfRange if an offset is gone; BadInput if nothing came
    for that many seconds, as when the broker is away or a transaction stays open."""
    kafka = client()
    seconds = PATIENCE if seconds is None else seconds
    consumer.assign([place])
    at, heard = place.offset, time.monotonic()
    while at < end:
        # It waits until it has the number that is asked for: so only briefly.
        found = []
        for message in consumer.consume(AT_A_TIME, 0.1):
            heard = time.monotonic()
            error = message.error()
            if error is None and message.offset() < end:
                found.append(message)
                at = message.offset() + 1
            elif error is None:
                at = end
            elif error.code() == kafka.KafkaError._PARTITION_EOF:
                at = max(at, message.offset())
            elif error.code() in (kafka.KafkaError._AUTO_OFFSET_RESET, kafka.KafkaError.OFFSET_OUT_OF_RANGE):
                if found:
                    yield found
                raise OutOfRange(at)
            elif not passes(kafka.KafkaException(error)):
                raise BadInput(
                    f"Kafka: topic {quote(place.topic)}, partition {place.partition}: {error.str()}"
                )
        if found:
            yield found
            heard = time.monotonic()
        elif time.monotonic() - heard > seconds:
            raise BadInput(
                f"Kafka gave nothing more of topic {quote(place.topic)}, partition {place.partition}, after "
                f"offset {at} for {seconds:g} s: check that the broker runs, and that no producer keeps a "
                "transaction open there"
            )


def as_text(about: Mapping[str, Any], *names: str) -> str:
    """Some of the values that a record from outside has, fit for a sentence."""
    return ", ".join(f"{name} {printable(str(about[name]))}" for name in names if about.get(name))

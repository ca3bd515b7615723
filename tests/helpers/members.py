"""Members of simulated systems: the packets of a run, and a bucket that is served as Spark serves it."""

from __future__ import annotations

import random
from base64 import b64decode
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import pairwise
from typing import Any

import pyarrow as pa

from causet.errors import BadInput
from causet.model import Processes, System, named_processes, with_several
from causet.protocols import PROTOCOLS, Packet, Process, make_options
from causet.protocols.base import Protocol
from causet.simulate.arrivals import Packets
from causet.simulate.network import Network, simulate
from causet.simulate.packets import fields_of
from causet.simulate.record import Observer, Sent
from causet.simulate.systems import Setting
from causet.simulate.workload import Workload, delay_of
from causet.spark.streams.books import Books
from causet.spark.streams.members import bucket
from causet.spark.streams.members.members import ABLE
from causet.spark.streams.members.saved import from_bytes, to_bytes
from causet.spark.streams.members.settings import Settings
from causet.spark.streams.pack import to_blob
from causet.spark.streams.state import Segments
from causet.topology import groups_of
from tests.helpers.holding import InMemory
from tests.helpers.runs import linked_system, settings_for

Row = dict[str, Any]
NAMES = sorted(ABLE)
SCHEMA = pa.schema(
    [("receiver", pa.string()), ("seq", pa.int64()), ("message", pa.string()), ("packet", pa.binary())]
)


class Watched(Observer):
    """What each process delivers; and what every message follows, as its sender knew."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.lists: dict[str, list[str]] = {name: [] for name in system.processes}
        self.past: dict[str, set[str]] = {}
        self._known: list[set[str]] = [set() for _ in system.processes]

    def sent(self, sent: Sent, time: float) -> None:
        first = sent.packets[0]
        if not first.control:
            mine = self._known[first.sender]
            self.past[first.id(self.system)] = set(mine)
            mine.add(first.id(self.system))

    def delivered(self, process: int, packet: Packet, time: float) -> None:
        name = packet.id(self.system)
        self.lists[self.system.name(process)].append(name)
        self._known[process] |= self.past[name] | {name}


@dataclass(frozen=True)
class Run:
    """A run of the simulator."""

    setting: Setting
    rows: list[Row]
    """all packets at all processes, those of a process in their order"""
    delivered: dict[str, list[str]]
    """by process"""
    past: dict[str, set[str]]

    def of(self, process: str) -> list[Row]:
        return [row for row in self.rows if row["receiver"] == process]

    def is_own(self, row: Row) -> bool:
        return bool(row["message"].replace("!", ":").rpartition(":")[0] == row["receiver"])


@cache
def ran(name: str, seed: int, messages: int = 60, size: int | None = None, duplication: float = 0.1) -> Run:
    """A run of a protocol over a network that changes the order; in groups that overlap, if it has them."""
    kind = PROTOCOLS[name]
    draw = random.Random(f"members {name} {seed}")
    if name == "histories" and draw.random() < 0.4:
        system = linked_system(draw)
    else:
        count = size or draw.choice([2, 3, 4, 5, 7])
        shapes = [
            "all",
            "ring:2",
            f"ring:{min(count, 3)}",
            *(["twins", "chain"] if not kind.broadcast else []),
        ]
        shape = "all" if kind.broadcast else draw.choice(shapes + ["unicast"] * (not kind.grouped) * 3)
        system = System(named_processes(count), groups_of(shape, count, seed))
        if kind.opens and draw.random() < 0.7:
            system = replace(system, groups=with_several(system.groups, 2))
    options, _ = make_options(kind, system, settings_for(kind, system, draw))
    setting = Setting(kind, system, options)
    workload = Workload(
        system,
        messages,
        draw.choice([0.5, 2.0, 6.0]),
        delay_of(draw.choice(["exp:2", "uniform:0:6", "lognormal:1:1.5"])),
        seed,
        own_copies=draw.random() < 0.3,
        opens=kind.opens and draw.random() < 0.5,
    )
    rows: list[Row] = []
    watched = Watched(system)
    observers = [Packets(setting, rows.append), watched]
    simulate(kind, options, workload, Network(duplication=duplication), observers)
    found = [{**row, "packet": b64decode(row["packet"])} for row in rows]
    return Run(setting, found, watched.lists, watched.past)


@dataclass
class Served:
    """The members of a bucket; every batch finds only what the last one saved."""

    setting: Setting
    strict: bool = False
    most_held: int = 10**6
    made: Any = bucket
    """the module of the bucket"""
    memory: bytes | None = None
    segments: Segments = field(default_factory=lambda: Segments(InMemory(), 0))
    counts: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    held: int = 0
    report: dict[str, Any] = field(default_factory=dict)

    @property
    def settings(self) -> Settings:
        names = tuple(SCHEMA.names)
        return Settings(self.setting, "receiver", 1, self.most_held, self.strict, columns=names)

    def step(self, rows: Sequence[Row], now: int = 0) -> list[Row]:
        """What leaves with a batch."""
        serving = self.made.Bucket(self.settings, self.memory, self.segments)
        serving.was_read(len(rows))
        half = len(rows) // 2
        parts = [part for part in (rows[:half], rows[half:]) if part]
        blobs = [to_blob(pa.Table.from_pylist(list(part), SCHEMA)) for part in parts]
        left = [each for table in serving.step(blobs, now) for each in table.to_pylist()]
        self.memory, self.report = serving.to_bytes(), serving.report()
        counts = {name: self.report[name] for name in self.made.COUNTS}
        books = Books(self.held, counts, self.report["held"])
        assert books.balance, str(books)
        self.held = self.report["held"]
        for name, count in counts.items():
            self.counts[name] += count
        return left


def in_batches(rng: random.Random, rows: Sequence[Row], window: int = 12) -> list[list[Row]]:
    """Rows in batches of random sizes, out of order by a few places."""
    keyed = sorted((at + rng.random() * window, at) for at in range(len(rows)))
    waiting = [rows[at] for _, at in keyed]
    batches: list[list[Row]] = []
    while waiting:
        size = rng.choice([1, 1, 2, 3, 8, 30])
        batches.append(waiting[:size])
        waiting = waiting[size:]
    return batches


def by_receiver(left: Sequence[Row]) -> dict[str, list[str]]:
    """The messages that are delivered, by process; each with the number of its turn."""
    found: dict[str, list[str]] = defaultdict(list)
    for row in left:
        if row["status"] == "delivered":
            assert row["index"] == len(found[row["receiver"]])
            assert row["problem"] is None and row["missing"] == []
            found[row["receiver"]].append(row["message"])
    return dict(found)


def check_same(run: Run, rng: random.Random, made: Any = bucket) -> Served:
    """Members deliver what the processes delivered, however their rows come."""
    served = Served(run.setting, made=made)
    left = [each for rows in in_batches(rng, run.rows) for each in served.step(rows)]
    assert by_receiver(left) == {name: ids for name, ids in run.delivered.items() if ids}
    assert served.held == 0 and served.counts["diverted"] == 0
    assert served.counts["sent"] + served.counts["delivered"] >= len(run.past)
    return served


def _with_stamp_of(packet: bytes, other: bytes, setting: Setting) -> bytes:
    """The packet with the stamp of another one of its process."""
    mine, its = (fields_of(each, _protocol(setting))[4] for each in (packet, other))
    assert packet.endswith(mine)
    return packet[: len(packet) - len(mine)] + bytes(its)


def _protocol(setting: Setting) -> Protocol:
    return Process(setting.kind, 0, setting.system, setting.options).protocol


def targets_of(packet: bytes, setting: Setting) -> Processes:
    """To whom a packet is addressed."""
    return int(fields_of(packet, _protocol(setting))[2])


def listening(run: Run) -> list[str]:
    """The processes that send no message."""
    senders = {message.rpartition(":")[0] for message in run.past}
    return [name for name in run.setting.system.processes if name not in senders]


def without_turns(run: Run, process: str) -> list[Row]:
    """What a process receives, as one that only listens would give it."""
    return [{**row, "seq": None} for row in run.of(process) if not run.is_own(row)]


def check_order(run: Run, delivered: Sequence[str]) -> None:
    """None comes before one that it follows."""
    places = {message: at for at, message in enumerate(delivered)}
    assert len(places) == len(delivered)
    assert all(places[before] < at for m, at in places.items() for before in run.past[m] & places.keys()), (
        delivered
    )


def check_listener(run: Run, rng: random.Random, process: str, made: Any = bucket) -> int:
    """Without turns and in any order, a process that only listens delivers the same messages, in order."""
    served = Served(run.setting, made=made)
    rows = without_turns(run, process)
    rng.shuffle(rows)
    left = [each for some in in_batches(rng, rows) for each in served.step(some)]
    delivered = by_receiver(left).get(process, [])
    assert sorted(delivered) == sorted(run.delivered[process]) and served.held == 0
    if run.setting.kind.PROMISES.causal:
        check_order(run, delivered)
    return len(delivered)


def check_twice(run: Run, made: Any = bucket) -> None:
    """A row that comes again is a duplicate, in its batch and later; and so is its packet, received again."""
    served = Served(run.setting, made=made)
    left = [each for row in run.rows for each in served.step([row, row])]
    assert by_receiver(left) == {name: ids for name, ids in run.delivered.items() if ids}
    again = served.step(run.rows)
    assert again == [] and served.counts["duplicates"] >= 2 * len(run.rows)
    received = [{**row, "seq": None} for row in run.rows if not run.is_own(row)]
    memory = served.memory
    assert served.step(received) == [] and served.memory == memory


def check_turns(run: Run, made: Any = bucket) -> None:
    """Rows wait for the one before them; and what is early is held, and says for what."""
    served = Served(run.setting, made=made)
    process = max(run.delivered, key=lambda name: len(run.delivered[name]))
    first, *rest = run.of(process)
    assert served.step(rest, now=5) == [] and served.held == len(rest)
    assert served.report["blocked"] == f"seq 1 of {process}" and served.report["oldest"] == 5
    assert served.step(rest[:2], now=6) == [] and served.counts["duplicates"] == len(rest[:2])
    left = served.step([first], now=2005)
    assert by_receiver(left)[process] == run.delivered[process]
    assert {row["waited"] for row in left if row["message"] != first["message"]} == {2.0}
    assert served.held == 0


def check_bad_beside(run: Run, rng: random.Random, made: Any = bucket) -> None:
    """Beside each row stand others with its `seq` that are no packets. In whatever order they come in a
    batch, these are diverted, each, and the members deliver what the processes delivered."""
    served = Served(run.setting, made=made)
    left = []
    count = 0
    for rows in in_batches(rng, run.rows):
        both = list(rows)
        for row in rows:
            packet = row["packet"]
            kinds = (None, b"", b"\x00", b"\xff", packet[:1], packet + b"\x00")
            odd = rng.sample(kinds, rng.choice([1, 2, 3]))
            name = f"bad {row['receiver']} {row['seq']}"
            both += [{**row, "message": f"{name} {at}", "packet": p} for at, p in enumerate(odd)]
            count += len(odd)
        rng.shuffle(both)
        left += served.step(both)
    assert by_receiver(left) == {name: ids for name, ids in run.delivered.items() if ids}
    diverted = [row["message"] for row in left if row["status"] == "diverted"]
    assert len(set(diverted)) == len(diverted) == count and all(each.startswith("bad") for each in diverted)
    assert served.held == 0


def check_bad_before(run: Run, made: Any = bucket) -> None:
    """One that is no packet comes alone, and what has its `seq` in a later batch: if its turn is still to
    come then, or the process only listens, nothing is lost."""
    for process in run.setting.system.processes:
        rows = run.of(process)
        listens = not any(map(run.is_own, rows))
        for at in range(0 if listens else 1, len(rows)):
            for packet in (None, b"\x00"):
                served = Served(run.setting, made=made)
                odd = {**rows[at], "message": "bad", "packet": packet}
                before = rows[:at] if listens else rows[: at - 1]
                left = [*served.step(before), *served.step([odd]), *served.step(rows[len(before) + 1 :])]
                left += served.step(rows[len(before) : len(before) + 1])
                assert sorted(by_receiver(left).get(process, [])) == sorted(run.delivered[process])
                assert [row["message"] for row in left if row["status"] == "diverted"] == ["bad"]


def check_other_beside(run: Run, made: Any = bucket) -> None:
    """Beside a row of what a process sent stands another packet of the process, which it did not send here:
    that one is diverted, the process goes on."""
    process = next(name for name in run.setting.system.processes if name not in listening(run))
    rows = run.of(process)
    own = [row for row in rows if run.is_own(row) and ":" in row["message"]]
    tried = 0
    for first, later in pairwise(own):
        for packet in (later["packet"], _with_stamp_of(first["packet"], later["packet"], run.setting)):
            if packet == first["packet"]:
                continue
            served = Served(run.setting, made=made)
            odd = {**first, "message": "odd", "packet": packet}
            at = rows.index(first)
            left = served.step(rows[:at])
            left += served.step([odd, first])
            left += served.step(rows[at + 1 :])
            assert by_receiver(left).get(process, []) == run.delivered[process]
            assert [row["message"] for row in left if row["status"] == "diverted"] == ["odd"]
            tried += 1
    assert tried > 2


def check_own(run: Run, made: Any = bucket) -> None:
    """A packet that a process did not send like this is diverted, and teaches nothing; nor do those after."""
    process = next(name for name in run.setting.system.processes if name not in listening(run))
    rows = run.of(process)
    first = next(at for at, row in enumerate(rows) if run.is_own(row) and ":" in row["message"])
    later = next(row for row in rows[first + 1 :] if run.is_own(row) and ":" in row["message"])
    served = Served(run.setting, made=made)
    served.step(rows[:first])
    before = served.made.members_in(served.settings, served.memory)
    (problem,) = served.step([{**later, "seq": rows[first]["seq"]}])
    assert (problem["status"], problem["index"]) == ("diverted", None)
    assert problem["problem"].startswith("is not what its process sends here: "), problem
    after = served.made.members_in(served.settings, served.memory)
    snapshots = [{me: each.process.snapshot() for me, each in some.items()} for some in (before, after)]
    assert snapshots[0] == snapshots[1] or first == 0
    (turnless,) = served.step([{**rows[first], "seq": None}])
    assert turnless["problem"].startswith("is a packet of its own process, and has no seq")


def check_damaged(run: Run, made: Any = bucket) -> None:
    """A state in which a row was forgotten, or one stands that nobody holds, is refused."""
    served = Served(run.setting, made=made)
    process = run.rows[0]["receiver"]
    served.step([row for row in run.of(process) if row["seq"] > 1])
    served.step([{**row, "seq": None} for row in run.of(process) if not run.is_own(row)])
    assert served.memory is not None
    ((me, (snapshot, index, turn, rows, early)),) = from_bytes(served.memory)
    assert rows and early
    odd = (run.setting.system.size, *rows[0][1:])
    for changed in (
        (snapshot, index, turn, rows[1:], early),
        (snapshot, index, turn, (*rows, odd), early),
        (snapshot, index, turn, rows, (*early, early[0])),
        (snapshot[:-1], index, turn, rows, early),
        (snapshot, index, turn, rows),
    ):
        assert _is_refused(served, (me, changed)), changed
    assert _is_refused(served, (99, (snapshot, index, turn, rows, early)))


def _is_refused(served: Served, member: tuple[Any, ...]) -> bool:
    try:
        served.made.members_in(served.settings, to_bytes((member,)))
    except BadInput as error:
        return str(error).startswith("the state of a member is damaged; ")
    return False


def check_canonical(run: Run, rng: random.Random, made: Any = bucket) -> None:
    """The rows of a batch give the same, in whatever order they stand."""
    rows = [{**row, "seq": None} if not run.is_own(row) and rng.random() < 0.5 else row for row in run.rows]
    rows += [{**row, "message": f"again {row['message']}"} for row in rows if rng.random() < 0.2]
    found = []
    for _ in range(3):
        served = Served(run.setting, made=made)
        found.append((served.step(rows), served.counts, served.held))
        rng.shuffle(rows)
    assert found[0] == found[1] == found[2]

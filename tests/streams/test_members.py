"""Any protocol's packets on Spark: each member delivers what the process of a simulation delivered.

Most tests serve a bucket in plain Python, with its state going through bytes between any two batches.
"""

from __future__ import annotations

import json
import random
import re
from base64 import b64encode
from contextlib import suppress
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from causet.cli import cli
from causet.errors import BadInput, BadStamp
from causet.model import System, named_processes
from causet.plain import load_yaml
from causet.protocols import PROTOCOLS, Packet, Process
from causet.simulate.packets import fields_of, to_bytes
from causet.simulate.systems import read_setting, setting_of, write_setting
from causet.spark import deliver
from causet.spark.streams.members.member import FAR
from causet.spark.streams.members.members import ABLE
from causet.spark.streams.members.saved import from_bytes
from causet.spark.streams.members.saved import to_bytes as saved
from causet.spark.streams.members.settings import mark_of
from tests.helpers.commands import LOCAL, causet, refused, rows_in
from tests.helpers.kafka import create, publish, read
from tests.helpers.members import (
    NAMES,
    SCHEMA,
    Row,
    Run,
    Served,
    by_receiver,
    check_bad_before,
    check_bad_beside,
    check_canonical,
    check_damaged,
    check_listener,
    check_other_beside,
    check_own,
    check_same,
    check_turns,
    check_twice,
    in_batches,
    listening,
    ran,
    without_turns,
)

LISTENED = ("histories", "vector")
"""Of the others, those who only listen are tried for longer."""
EVERY = pytest.mark.parametrize("name", NAMES)
FUZZ = settings(max_examples=25, deadline=None)
MORE = settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))


def test_every_protocol_can_have_members_but_those_that_are_refused_in_words() -> None:
    assert set(PROTOCOLS) - set(ABLE) == {"merge", "piggyback"}


# ---------------------------------------------------------------- the same deliveries


@EVERY
def test_members_deliver_what_the_processes_of_a_simulation_deliver(name: str) -> None:
    runs = [ran(name, seed) for seed in range(6)]
    counts = [check_same(run, random.Random(seed)).counts for seed, run in enumerate(runs)]
    assert sum(each["delivered"] for each in counts) > 200
    assert sum(each["duplicates"] for each in counts) > 15
    if PROTOCOLS[name].nulls or PROTOCOLS[name].extras:
        assert sum(each["control"] for each in counts) > 25


@pytest.mark.soak
@EVERY
def test_members_deliver_the_same_in_hundreds_of_runs(name: str) -> None:
    for seed in range(100, 300):
        run = ran.__wrapped__(name, seed, 100)
        check_same(run, random.Random(seed))


@EVERY
def test_a_process_that_only_listens_needs_no_turns(name: str) -> None:
    delivered = 0
    for seed in range(12):
        run = ran(name, seed, 14, 7)
        for process in listening(run):
            delivered += check_listener(run, random.Random(seed), process)
    assert delivered > 20


@EVERY
def test_what_comes_again_is_a_duplicate(name: str) -> None:
    check_twice(ran(name, 1, 30))


@EVERY
def test_rows_wait_for_their_turn(name: str) -> None:
    check_turns(ran(name, 2, 30))


@EVERY
def test_a_packet_that_its_process_did_not_send_here_is_diverted(name: str) -> None:
    check_own(ran(name, 3, 60, 4))


@EVERY
def test_the_rows_of_a_batch_give_the_same_in_any_order(name: str) -> None:
    check_canonical(ran(name, 4, 40), random.Random(4))


@EVERY
def test_what_is_no_packet_takes_no_turn_from_a_packet(name: str) -> None:
    check_bad_beside(ran(name, 4, 40), random.Random(name))
    check_bad_before(ran(name, 6, 12, 3))
    check_other_beside(ran(name, 3, 60, 4))


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in LISTENED else pytest.mark.soak) for name in NAMES]
)
def test_what_is_no_packet_takes_no_turn_where_processes_only_listen(name: str) -> None:
    check_bad_before(ran(name, 1, 14, 7))


def test_what_a_protocol_sends_by_itself_need_not_come() -> None:
    """Extra messages follow from the rest: without their rows a member goes on as its process did."""
    run = ran("bounded", 1, 60, 5)
    served = Served(run.setting)
    kept = [row for row in run.rows if not (run.is_own(row) and "!" in row["message"])]
    assert len(kept) < len(run.rows) - 5
    turns: dict[str, int] = {}
    for row in kept:
        turns[row["receiver"]] = turns.get(row["receiver"], 0) + 1
        row = {**row, "seq": turns[row["receiver"]]}
        for each in served.step([row]):
            assert each["status"] == "delivered"
    assert served.counts["delivered"] == sum(map(len, run.delivered.values()))


def test_a_member_that_lacks_what_its_process_sent_waits_and_says_so() -> None:
    run = ran("vector", 5, 60, 4)
    served = Served(run.setting)
    served.step(without_turns(run, "p1"), now=7)
    assert served.held > 0 and served.report["oldest"] == 7
    assert re.fullmatch(r"message \d+ of p\d in g\d, \d+ delivered so far", served.report["blocked"])
    assert served.made.members_in(served.settings, served.memory)[0].process.sent == 0


# ---------------------------------------------------------------- rows that are no packets


def odd(run: Run, change: Row) -> Row:
    """The first row of a process, changed."""
    return {**run.rows[0], "seq": None, **change}


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"receiver": None}, "has no receiver"),
        ({"receiver": "p99"}, "has a receiver that is not a process of the system"),
        ({"seq": 0}, "has a seq that is not a number from 1"),
        ({"seq": -1}, "has a seq that is not a number from 1"),
        ({"seq": 2 * 10**9}, FAR),
        ({"packet": None}, "has no packet"),
        ({"packet": b""}, "has no packet"),
        (
            {"packet": b"\x02"},
            "has no packet for {p}: not a packet: it begins with 2, and this release reads",
        ),
        ({"packet": b"\x01"}, "has no packet for {p}: not a packet: it ends inside the sender"),
        ({"packet": b"\x01\x63"}, "has no packet for {p}: not a packet: the sender is 99, more than 3"),
    ],
)
def test_a_row_that_is_no_packet_is_diverted_with_the_reason(change: Row, problem: str) -> None:
    run = ran("matrix", 1, 30, 4)
    served = Served(run.setting)
    row = odd(run, change)
    (left,) = served.step([row])
    assert left["problem"].startswith(problem.format(p=row["receiver"])), left["problem"]
    assert (left["status"], left["index"], left["receiver"]) == ("diverted", None, row["receiver"])
    strict = Served(run.setting, strict=True)
    with pytest.raises(BadInput, match=r"^a row \(.*\) has .*; without --strict it is diverted$"):
        strict.step([row])


def test_a_row_that_is_diverted_has_had_its_turn() -> None:
    run = ran("matrix", 1, 30, 4)
    process = run.rows[0]["receiver"]
    served = Served(run.setting)
    bad = {"receiver": process, "seq": 1, "message": "bad", "packet": b"?"}
    rest = [{**row, "seq": row["seq"] + 1} for row in run.of(process)]
    left = [*served.step([{**bad, "seq": 1}]), *served.step(rest)]
    assert left[0]["status"] == "diverted"
    assert by_receiver(left)[process] == run.delivered[process]
    early = Served(run.setting)
    assert early.step([{**bad, "seq": 2, "packet": None}])[0]["problem"] == "has no packet"
    assert early.held == 0 and early.step([{**bad, "seq": 2, "packet": None}])[0]["status"] == "diverted"


def test_more_held_rows_than_allowed_end_the_query_in_a_sentence() -> None:
    run = ran("matrix", 1, 30, 4)
    served = Served(run.setting, most_held=2)
    rows = [row for row in run.of(run.rows[0]["receiver"]) if row["seq"] > 1]
    with pytest.raises(
        BadInput, match=r"messages are held, and most_held = 2; the oldest waits for seq 1 of p"
    ):
        served.step(rows)


def hostile(run: Run, packets: list[bytes], at: int) -> None:
    """Whatever comes as a packet, a member diverts it and stays as it is, or takes it for a packet; and it
    goes on from its state, which is sound."""
    served = Served(run.setting)
    for row in run.rows[:at]:
        served.step([row])
    for number, packet in enumerate(packets):
        for receiver in run.setting.system.processes[:3]:
            for own in (False, True):
                held = served.made.members_in(served.settings, served.memory)
                me = run.setting.system.index(receiver)
                turn = held[me].turn if me in held else 1
                before = {p: each.process.snapshot() for p, each in held.items()}
                row = {"receiver": receiver, "seq": turn if own else None, "message": f"{number}"}
                left = served.step([{**row, "packet": packet}])
                if any(each["status"] == "diverted" for each in left):
                    after = served.made.members_in(served.settings, served.memory)
                    assert {p: after[p].process.snapshot() for p in before} == before


@EVERY
@FUZZ
@given(data=st.data())
def test_hostile_packets_are_diverted_and_change_nothing(name: str, data: st.DataObject) -> None:
    run = ran(name, 6, 12, 3)
    real = [row["packet"] for row in run.rows]
    other = [row["packet"] for row in ran(data.draw(st.sampled_from(NAMES)), 6, 12, 3).rows]
    packets = []
    for _ in range(2):
        packet = data.draw(st.sampled_from(real))
        match data.draw(st.sampled_from(["bytes", "flip", "cut", "longer", "other", "tail"])):
            case "bytes":
                packet = data.draw(st.binary(max_size=40))
            case "flip":
                bit = data.draw(st.integers(0, 8 * len(packet) - 1))
                changed = bytearray(packet)
                changed[bit // 8] ^= 1 << bit % 8
                packet = bytes(changed)
            case "cut":
                packet = packet[: data.draw(st.integers(0, len(packet) - 1))]
            case "longer":
                packet += data.draw(st.binary(min_size=1, max_size=4))
            case "other":
                packet = data.draw(st.sampled_from(other))
            case "tail":
                packet = packet[: data.draw(st.integers(0, len(packet)))] + data.draw(st.binary(max_size=12))
        packets.append(packet)
    hostile(run, packets, data.draw(st.integers(0, len(run.rows) - 1)))


# ---------------------------------------------------------------- bytes


@EVERY
@FUZZ
@given(data=st.data())
def test_a_packet_has_one_form(name: str, data: st.DataObject) -> None:
    run = ran(name, 6, 12, 3)
    protocol = Process(run.setting.kind, 0, run.setting.system, run.setting.options).protocol
    packet = bytearray(data.draw(st.sampled_from([row["packet"] for row in run.rows])))
    for _ in range(data.draw(st.integers(0, 2))):
        packet[data.draw(st.integers(0, len(packet) - 1))] = data.draw(st.integers(0, 255))
    with suppress(BadStamp):
        sender, number, targets, to, stamp, group, control, order, stream = fields_of(bytes(packet), protocol)
        read = (sender, number, targets, to, protocol.decode(stamp), group, control, order, stream)
        assert to_bytes(Packet(*read), protocol) == bytes(packet)


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.binary() | st.integers(2**200, 2**300),
    lambda inner: st.lists(inner).map(tuple),
)


@FUZZ
@given(PLAIN)
def test_a_plain_value_comes_back_from_its_bytes(value: Any) -> None:
    again = from_bytes(saved(value))
    assert again == value and repr(again) == repr(value)


@FUZZ
@given(st.binary(max_size=60) | st.binary(max_size=60).map(lambda rest: b"\x01" + rest))
def test_other_bytes_are_no_plain_value(data: bytes) -> None:
    with suppress(BadInput):
        assert saved(from_bytes(data)) == data


def test_deep_and_odd_values_are_refused() -> None:
    with pytest.raises(BadInput, match="nested too deeply"):
        from_bytes(b"\x01" + b"\x07\x01" * 10_000)
    with pytest.raises(TypeError, match="a list in a snapshot"):
        saved(([],))


@EVERY
@FUZZ
@given(data=st.data())
def test_a_damaged_state_is_refused_or_sound(name: str, data: st.DataObject) -> None:
    run = ran(name, 6, 12, 3)
    served = Served(run.setting)
    served.step(run.rows[: len(run.rows) // 2])
    assert served.memory is not None
    damaged = bytearray(served.memory)
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    with suppress(BadInput):
        members = served.made.members_in(served.settings, bytes(damaged))
        assert {me: each.saved() for me, each in members.items()} == dict(from_bytes(bytes(damaged)))


@pytest.mark.soak
@EVERY
@pytest.mark.parametrize(
    "fuzzed",
    [
        test_hostile_packets_are_diverted_and_change_nothing,
        test_a_packet_has_one_form,
        test_a_damaged_state_is_refused_or_sound,
    ],
)
def test_bytes_of_others_are_tried_for_longer(name: str, fuzzed: Any) -> None:
    @MORE
    @given(data=st.data())
    def more(data: st.DataObject) -> None:
        fuzzed.hypothesis.inner_test(name=name, data=data)

    more()


def test_a_state_that_no_member_gives_is_refused() -> None:
    check_damaged(ran("vector", 3, 60, 4))


# ---------------------------------------------------------------- what can be asked


def asked(**changes: Any) -> Any:
    system = {"processes": ["p1", "p2"], "groups": {"g": ["p1", "p2"]}}
    return deliver(**{"missing": "wait", "protocol": "matrix", "system": system, **changes})


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"protocol": "paxos"}, 'unknown protocol "paxos"; the protocols are matrix, .*'),
        ({"protocol": "merge"}, "protocol merge delivers by the clocks .*; use causet merge"),
        ({"protocol": "piggyback"}, "protocol piggyback delivers messages that came within .* have no data"),
        ({"protocol": None}, r"a protocol needs its system, .* \(--protocol with --system\)"),
        ({"system": None}, r"a protocol needs its system, .* \(--protocol with --system\)"),
        ({"missing": "flag"}, 'missing = "flag" cannot be used with a protocol .*; use wait'),
        ({"patience": "10m"}, "patience cannot be used with a protocol .*"),
        ({"parent": "causationid"}, "parent cannot be used with a protocol .*"),
        ({"readers": "each"}, "readers cannot be used with a protocol .*"),
        ({"lost": [("p1", 3)]}, "lost cannot be used with a protocol .*"),
        ({"by": "packet"}, 'by = "packet": that is not the column of the process'),
        ({"buckets": 0}, "buckets = 0: there can be 1 to 65,536"),
        ({"system": []}, "a system is a mapping with `processes`, and may have groups, at-once, .*"),
        (
            {"system": {"processes": ["p1"], "steps": []}},
            'unknown field "steps"; the fields are processes, .*',
        ),
        ({"system": {"processes": []}}, "processes: there are none"),
        (
            {"system": {"processes": ["p1", "p2"]}, "protocol": "vector"},
            "vector sends to groups, .* none; .*",
        ),
        (
            {"system": {"processes": ["p1", "p2"], "groups": {"g": ["p1", "p2"]}, "at-once": "2"}},
            'field `at-once` must be a whole number, not "2"',
        ),
        (
            {"system": {"processes": ["p1", "p2"], "options": {"k": 0}}, "protocol": "bounded"},
            "k = 0 is too small: .*",
        ),
        (
            {"system": {"processes": ["p1", "p2"], "options": {"speed": 0}}},
            'field `options`: no protocol has an option "speed"; .*',
        ),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(changes: Row, problem: str) -> None:
    with pytest.raises(BadInput, match=f"^{problem}$"):
        asked(**changes)


def test_the_settings_of_members_are_those_of_their_checkpoint() -> None:
    members = asked()
    other = asked(system={"processes": ["p1", "p2", "p3"]})
    assert members.fixed["protocol"] == "matrix" and members.fixed["system"] != other.fixed["system"]
    strict = members.changed({"strict": True, "most_bytes": 7, "system": "?"})
    assert strict.asked.strict and strict.asked.most_bytes == 7 and strict.fixed == members.fixed
    assert (members.columns, members.command, members.wakes) == (
        ["receiver", "packet", "seq"],
        "deliver",
        False,
    )


@EVERY
def test_the_file_of_a_system_gives_the_same_system(name: str, tmp_path: Path) -> None:
    for seed in range(8):
        setting = ran(name, seed).setting
        file = tmp_path / f"{seed}.yaml"
        given = {name: getattr(setting.options, name) for name in setting.options.__dataclass_fields__}
        del given["as_printed"]
        file.write_text(write_setting(setting.system, {k: v for k, v in given.items() if v is not None}))
        read = read_setting(file, setting.kind)
        assert read.system == setting.system and read.options == setting.options
        assert mark_of(read) == mark_of(setting)


def test_a_bad_file_of_a_system_is_named(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("processes: 3")
    with pytest.raises(BadInput, match=r"^/.*s\.yaml: a system is a mapping with `processes`, "):
        read_setting(tmp_path / "s.yaml", PROTOCOLS["matrix"])
    system = System(named_processes(2))
    assert setting_of({"processes": ["p1", "p2"]}, PROTOCOLS["matrix"]).system == system


# ---------------------------------------------------------------- the simulator's packets, by command


def test_simulate_writes_packets_and_the_system(tmp_path: Path) -> None:
    folder = tmp_path / "packets"
    assert simulated("--protocol", "bounded", "-n", "4", "--k", "5", "-m", "20", folder=folder) is None
    rows = [json.loads(line) for line in (folder / "packets.jsonl").read_text().splitlines()]
    assert sum(row["message"] == "p1:1" for row in rows) == 2 and {len(row) for row in rows} == {4}
    setting = read_setting(folder / "system.yaml", PROTOCOLS["bounded"])
    assert setting.options.k == 5 and setting.system.size == 4  # type: ignore[attr-defined]
    assert "is there already; name a new folder" in str(simulated("-p", "bounded", folder=folder))
    new = tmp_path / "new"
    assert "packets: merge delivers by the clocks" in str(simulated("-p", "merge", folder=new))
    assert "as printed" in str(simulated("-p", "histories", "--as-printed", "H1", folder=new))
    assert not new.exists()


def simulated(*arguments: str, folder: Path) -> BaseException | None:
    words = ["simulate", *arguments, "--packets", str(folder)]
    return CliRunner().invoke(cli, words, standalone_mode=False).exception


# ---------------------------------------------------------------- on Spark


def write_lines(folder: Path, rows: list[Row], first: int) -> None:
    folder.mkdir(exist_ok=True)
    for number in range(3):
        some = rows[number::3]
        lines = [json.dumps({**row, "packet": b64encode(row["packet"]).decode()}) + "\n" for row in some]
        (folder / f"{first + number:03}.jsonl").write_text("".join(lines))


@pytest.mark.parametrize("name", ["relative"])
def test_a_query_goes_on_where_it_ended_and_delivers_the_same(
    name: str, tmp_path: Path, spark: SparkSession
) -> None:
    run = ran(name, 13, 60, 4)
    system = tmp_path / "system.yaml"
    given = {"silence": run.setting.options.silence}  # type: ignore[attr-defined]
    system.write_text(write_setting(run.setting.system, given))
    rows = [row for some in in_batches(random.Random(9), run.rows, 40) for row in some]
    rows.append({"receiver": "p1", "seq": None, "message": "bad", "packet": b"?"})
    half = len(rows) * 2 // 3
    to = ("deliver", tmp_path / "in", tmp_path / "out", "--missing", "wait", "--protocol", name, "--system")
    asked = (*to, system, "--json", *LOCAL)
    write_lines(tmp_path / "in", rows[:half], 0)
    first = json.loads(causet(*asked))
    assert first["books"]["balance"] and first["held"] > 0 < first["delivered"] and first["blocked"]
    checkpoint = tmp_path / "out" / "_checkpoint"
    why = causet("explain", "--checkpoint", checkpoint, "--nearest", 2, *LOCAL)
    assert f"{first['held']} held" in why and ": needs " in why
    about = json.loads(causet("explain", "--checkpoint", checkpoint, "--json", *LOCAL))
    assert about["held"] == first["held"] and about["messages"][0]["receiver"].startswith("p")
    write_lines(tmp_path / "in", rows[half:], 3)
    second = json.loads(causet(*asked))
    assert second["books"]["balance"] and second["held"] == 0
    left = sorted(rows_in(tmp_path / "out"), key=lambda row: row["index"])
    got: dict[str, list[str]] = {}
    for row in left:
        got.setdefault(row["receiver"], []).append(row["message"])
    assert got == {name: ids for name, ids in run.delivered.items() if ids}
    assert [row["message"] for row in rows_in(tmp_path / "out-diverted")] == ["bad"]
    assert first["control"] + second["control"] > 0 and first["sent"] + second["sent"] > 0
    assert "was made with system" in refused(*to, _other(tmp_path), *LOCAL)


def _other(folder: Path) -> Path:
    (folder / "other.yaml").write_text("processes: [p1, p2]\ngroups: {g: [p1, p2]}\n")
    return folder / "other.yaml"


def test_dataframes_of_every_protocol_are_delivered(spark: SparkSession) -> None:
    """All of them in one job."""
    runs = {name: ran(name, 10, 30, 4) for name in NAMES}
    frames = []
    for name, run in runs.items():
        options = {
            each: value
            for each in run.setting.options.__dataclass_fields__
            if each != "as_printed" and (value := getattr(run.setting.options, each)) is not None
        }
        system = load_yaml(write_setting(run.setting.system, options))
        assert isinstance(system, dict)
        members = deliver(missing="wait", protocol=name, system=system, buckets=2)
        rows = spark.createDataFrame(pa.Table.from_pylist(run.rows, SCHEMA)).coalesce(1)
        frames.append(rows.transform(members).withColumn("protocol", F.lit(name)))
    left = reduce(DataFrame.unionAll, frames).collect()
    for name, run in runs.items():
        got: dict[str, list[str]] = {}
        for row in sorted((row for row in left if row["protocol"] == name), key=lambda row: row["index"]):
            assert row["status"] == "delivered" and row["missing"] == {}
            got.setdefault(row["receiver"], []).append(row["message"])
        assert got == {process: ids for process, ids in run.delivered.items() if ids}, name


def test_rows_without_the_columns_of_packets_are_refused(spark: SparkSession) -> None:
    with pytest.raises(BadInput, match=r'rows need the columns "receiver", .*"packet" is missing'):
        spark.range(1).selectExpr("'p1' as receiver").transform(asked())
    with pytest.raises(BadInput, match=r'column "packet" is bigint; packets are binary, or text in base64'):
        spark.range(1).selectExpr("'p1' as receiver", "id as packet").transform(asked())


def test_packets_pass_from_topic_to_topic(broker: str, tmp_path: Path, spark: SparkSession) -> None:
    """In structured and in binary mode, over several partitions."""
    run = ran("matrix", 12, 40, 4)
    system = tmp_path / "system.json"
    system.write_text(json.dumps(load_yaml(write_setting(run.setting.system, {}))))
    about = {"specversion": "1.0", "type": "packet"}
    envelopes = [
        {
            **about,
            "id": f"{row['receiver']}-{row['seq']}",
            "source": row["receiver"],
            "subject": row["message"],
            "receiver": row["receiver"],
            "seq": str(row["seq"]),
            "packet": b64encode(row["packet"]).decode(),
        }
        for row in run.rows
    ]
    envelopes.append({**envelopes[0], "id": "bad", "seq": "first", "subject": "bad"})
    create(broker, "packets")
    publish(broker, "packets", envelopes, tmp_path)
    command = ["deliver", f"kafka://{broker}/packets", f"kafka://{broker}/members", "--missing", "wait"]
    command += ["--checkpoint", str(tmp_path / "state"), "--buckets", "2", *LOCAL, "--json"]
    told = json.loads(causet(*command, "--protocol", "matrix", "--system", system))
    assert (told["held"], told["diverted"]) == (0, 1) and told["books"]["balance"]
    got: dict[str, list[str]] = {}
    for each in sorted(read(broker, "members"), key=lambda each: int(each["causet_index"])):
        got.setdefault(each["causet_receiver"], []).append(each["ce_subject"])
    assert got == {name: ids for name, ids in run.delivered.items() if ids}
    (bad,) = read(broker, "members-diverted")
    assert bad["causet_problem"] == "has a seq that is not a number from 1"

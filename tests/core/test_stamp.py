"""Stamping at the source: numbers, direct causes, restarts, the ⟨r, c⟩ clock."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import random
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from causet import ClockJumped, RcClock, Stamper, stamp
from causet.errors import BadInput, BadStamp
from causet.rcclock import RcTime
from causet.stamp import HEARTBEAT, deps_of, from_binary, sequence_of, to_binary


def test_an_envelope_is_a_cloudevent_with_its_direct_causes() -> None:
    anna, ben, carl = (Stamper(name, "chat") for name in ("anna", "ben", "carl"))
    question = anna.stamp({"text": "Who?"}, type="chat.question", subject="room 1")
    assert question == {
        "specversion": "1.0",
        "id": "chat:1",
        "source": "anna",
        "type": "chat.question",
        "subject": "room 1",
        "causaldomain": "chat",
        "sequence": "00000000000000000001",
        "causaldeps": "{}",
        "data": {"text": "Who?"},
    }
    ben.saw(question)
    answer = ben.stamp("me")
    carl.saw(question)
    carl.saw(answer)
    assert deps_of(carl.stamp("good")) == {"ben": 1}, "the question is a cause of the answer, so not direct"
    assert deps_of(carl.stamp("really")) == {}, "the previous message of the source says it all"


def test_direct_causes_are_those_of_the_definition() -> None:
    """Random runs: all causes are known here, so the direct ones can be told by comparing every pair."""
    for seed in range(50):
        rng = random.Random(seed)
        names = ["p1", "p2", "p3", "p4"]
        stampers = {name: Stamper(name) for name in names}
        past: dict[tuple[str, int], set[tuple[str, int]]] = {}
        known: dict[str, set[tuple[str, int]]] = {name: set() for name in names}
        envelopes: list[dict[str, Any]] = []
        todo: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
        for _ in range(60):
            name = rng.choice(names)
            if todo[name] and rng.random() < 0.7:
                envelope = todo[name].pop(rng.randrange(len(todo[name])))
                key = envelope["source"], sequence_of(envelope)
                if past[key] - known[name] - {key}:
                    todo[name].append(envelope)  # not yet in causal order
                    continue
                stampers[name].saw(envelope)
                known[name] |= past[key]
                continue
            envelope = stampers[name].stamp()
            key = name, sequence_of(envelope)
            before = set(known[name])
            covered = set().union(*(past[other] - {other} for other in before)) if before else set()
            direct = {other for other in before - covered if other[0] != name}
            assert set(deps_of(envelope).items()) == direct
            known[name].add(key)
            past[key] = before | {key}
            envelopes.append(envelope)
            for other in names:
                if other != name:
                    todo[other].append(envelope)


def test_a_second_copy_and_ones_own_message_teach_nothing() -> None:
    anna, ben = Stamper("anna"), Stamper("ben")
    first = anna.stamp()
    ben.saw(first)
    ben.stamp()
    ben.saw(first)
    ben.saw(ben.stamp())
    assert deps_of(ben.stamp()) == {}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"sequence": "0"}, "between 1 and"),
        ({"sequence": str(2**60)}, "between 1 and"),
        ({"sequence": "9" * 30}, "up to 20 digits"),
        ({"sequence": 5}, "up to 20 digits"),
        ({"sequence": "٣"}, "up to 20 digits"),
        ({"causaldeps": "no"}, "must be JSON text"),
        ({"causaldeps": "[" * 100_000}, "must be JSON text"),
        ({"causaldeps": "[1]"}, "must be a map"),
        ({"causaldeps": '{"b":true}'}, "cannot be true"),
        ({"causaldeps": '{"b":-1}'}, "cannot be -1"),
        ({"causaldeps": '{"anna":1}'}, "depends on itself"),
        ({"causaldeps": '{"anna":7}'}, "depends on itself or on a later one"),
        ({"source": ""}, "must have a source"),
        ({"causaldomain": "other"}, "dependencies stay inside a domain"),
        ({"causaltime": "12"}, "r \\+ c and r"),
        ({"causaltime": "12 13"}, "not a time of a clock"),
    ],
)
def test_a_damaged_envelope_is_refused_and_changes_nothing(change: dict[str, Any], said: str) -> None:
    envelope = {**Stamper("anna").stamp(), **change}
    ben = Stamper("ben")
    before = ben.save()
    with pytest.raises(BadStamp, match=said):
        ben.saw(envelope)
    assert ben.save() == before


@given(st.dictionaries(st.sampled_from(["source", "sequence", "causaldeps", "causaltime"]), st.text()))
def test_no_text_at_all_breaks_the_reader(attributes: dict[str, str]) -> None:
    stamper = Stamper("ben", clock=RcClock(50))
    try:
        stamper.saw(attributes)
    except (BadStamp, ClockJumped):
        assert stamper.sequence == 0


@pytest.mark.parametrize("name", ["Big", "has_underscore", "sequence", "causaldomain", "x" * 41])
def test_attributes_keep_to_the_rules_of_cloudevents(name: str) -> None:
    with pytest.raises(BadInput, match="cannot be an attribute"):
        Stamper("anna").stamp(None, **{name: "x"})


# ---------------------------------------------------------------- restarts


def test_saved_and_restored() -> None:
    anna, ben = Stamper("anna", "d"), Stamper("ben", "d")
    ben.saw(anna.stamp())
    ben.saw(anna.stamp())
    again = Stamper.restore(ben.save())
    envelope = again.stamp()
    assert (sequence_of(envelope), deps_of(envelope)) == (1, {"anna": 2})
    with pytest.raises(BadInput, match="version 7, and this is version 1"):
        Stamper.restore(json.dumps({**json.loads(ben.save()), "version": 7}))


def test_a_file_keeps_numbers_causes_and_what_was_not_sent(tmp_path: Path) -> None:
    file = tmp_path / "ben"
    anna, ben = Stamper("anna"), Stamper("ben", file=file)
    ben.saw(anna.stamp())
    first, second = ben.stamp("1"), ben.stamp("2")
    ben.sent(first)
    ben.saw(anna.stamp())
    ben.close()
    with Stamper("ben", file=file) as again:
        assert again.unsent == [second]
        third = again.stamp("3")
    assert (sequence_of(third), deps_of(third)) == (3, {"anna": 2})
    with pytest.raises(BadInput, match='this is the file of "ben"'):
        Stamper("carl", file=file)


def test_the_file_does_not_grow_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stamp, "JOURNAL_LINES", 50)
    ben = Stamper("ben", file=tmp_path / "ben")
    for _ in range(1000):
        ben.sent(ben.stamp("x" * 100))
    kept = ben.stamp("kept")
    for _ in range(100):
        ben.sent(ben.stamp())
    assert (tmp_path / "ben").stat().st_size < 30_000
    ben.close()
    again = Stamper("ben", file=tmp_path / "ben")
    assert again.unsent == [kept] and again.sequence == 1101


def test_a_torn_last_line_never_counted(tmp_path: Path) -> None:
    file = tmp_path / "ben"
    ben = Stamper("ben", file=file)
    ben.stamp("1")
    whole = file.read_bytes()
    ben.stamp("2")
    for cut in range(len(whole), file.stat().st_size):
        torn = tmp_path / "torn"
        torn.write_bytes(file.read_bytes()[:cut])
        with Stamper("ben", file=torn) as again:
            assert sequence_of(again.stamp()) == 2
    ben.close()
    file.write_bytes(b"something else\n")
    with pytest.raises(BadInput, match="line 1: not written by a stamper"):
        Stamper("ben", file=file)


def test_a_killed_process_never_uses_a_number_twice(tmp_path: Path) -> None:
    """A process stamps and prints until it is killed, again and again: every number once, none left out."""
    program = textwrap.dedent(
        """
        import json, sys
        from causet import Stamper
        stamper = Stamper("p", file=sys.argv[1])
        for envelope in stamper.unsent:
            print(json.dumps(envelope), flush=True)
            stamper.sent(envelope)
        while True:
            envelope = stamper.stamp({"at": stamper.sequence})
            print(json.dumps(envelope), flush=True)
            stamper.sent(envelope)
        """
    )
    seen: dict[int, dict[str, Any]] = {}
    rng = random.Random(4)
    for _ in range(5):
        with subprocess.Popen(
            [sys.executable, "-c", program, str(tmp_path / "p")], stdout=subprocess.PIPE
        ) as process:
            assert process.stdout is not None
            lines = [process.stdout.readline() for _ in range(rng.randrange(50, 500))]
            os.kill(process.pid, signal.SIGKILL)
            lines += process.stdout.readlines()
        for line in lines:
            if line.endswith(b"\n"):
                envelope = json.loads(line)
                assert seen.setdefault(sequence_of(envelope), envelope) == envelope
    assert sorted(seen) == list(range(1, len(seen) + 1))


# ---------------------------------------------------------------- one stamper per file

HOLDER = """
import sys
from causet import Stamper
stamper = Stamper("p", file=sys.argv[1])
print(stamper.stamp()["sequence"], flush=True)
sys.stdin.read()
"""


def test_a_second_stamper_on_a_file_is_refused_in_this_process(tmp_path: Path) -> None:
    file, link = tmp_path / "p", tmp_path / "link"
    link.symlink_to(file)
    first = Stamper("p", file=file)
    first.stamp()
    for name in (file, link, tmp_path / "." / "p"):
        with pytest.raises(BadInput, match=r"another stamper has this file open.*close\(\) the other"):
            Stamper("p", file=name)
    assert sequence_of(first.stamp()) == 2, "and the first one goes on"
    first.close()
    with Stamper("p", file=link) as second:
        assert sequence_of(second.stamp()) == 3
        assert link.is_symlink(), "the file that the link points to is the one that is replaced"
        with pytest.raises(BadInput, match="another stamper"):
            Stamper("p", file=file)


def test_a_second_stamper_is_refused_though_the_file_was_written_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is replaced all the time; the new one is as locked as the old one."""
    monkeypatch.setattr(stamp, "JOURNAL_LINES", 2)
    first = Stamper("p", file=tmp_path / "p")
    inodes = set()
    for number in range(1, 20):
        inodes.add((tmp_path / "p").stat().st_ino)
        envelope = first.stamp()
        first.sent(envelope)
        assert sequence_of(envelope) == number
        with pytest.raises(BadInput, match="another stamper"):
            Stamper("p", file=tmp_path / "p")
    assert len(inodes) > 1, "it was replaced"


@pytest.mark.parametrize("moment", ["locked", "renamed"])
def test_no_moment_of_writing_a_file_anew_lets_a_second_one_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """A second stamper opens the file just before, and locks it just after it was replaced; or opens the new
    one right after the rename."""
    first = Stamper("p", file=tmp_path / "p")
    refused: list[str] = []

    def second() -> None:
        try:
            Stamper("p", file=tmp_path / "p")
        except BadInput as error:
            refused.append(str(error))

    if moment == "renamed":
        replace = os.replace

        def replaced(*paths: Any) -> None:
            replace(*paths)
            with monkeypatch.context() as patch:
                patch.setattr(os, "replace", replace)
                second()

        monkeypatch.setattr(os, "replace", replaced)
        first._journal.begin(first._state(), [])  # type: ignore[union-attr]
    else:
        flock, calls = fcntl.flock, []

        def locked(file: int, how: int) -> None:
            calls.append(file)
            if len(calls) == 1:  # the second stamper's, on the old file: now the first one replaces it
                first._journal.begin(first._state(), [])  # type: ignore[union-attr]
            flock(file, how)

        monkeypatch.setattr(fcntl, "flock", locked)
        second()
        assert len(calls) == 3, "the old file, the new one by its owner, the new one by the second stamper"
    assert len(refused) == 1 and "another stamper" in refused[0]
    assert sequence_of(first.stamp()) == 1


def test_another_process_is_refused_until_the_first_is_killed(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path / "p")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert int(process.stdout.readline()) == 1
        with pytest.raises(BadInput, match="another stamper has this file open, in this process or another"):
            Stamper("p", file=tmp_path / "p")
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        with Stamper("p", file=tmp_path / "p") as again:
            assert sequence_of(again.stamp()) == 2


FORKING = """
import os, sys
from causet import Stamper
from causet.errors import BadInput
first = Stamper("p", file=sys.argv[1])
waits, goes = os.pipe()
said, says = os.pipe()
if os.fork() == 0:
    try:
        first.stamp()
    except BadInput as error:
        os.write(says, str(error).encode())
    os.close(goes)
    os.read(waits, 1)
    os._exit(0)
print(os.read(said, 1000).decode())
print(first.stamp()["sequence"])
first.close()
print(Stamper("p", file=sys.argv[1]).stamp()["sequence"])  # while the child is alive
os.close(goes)
os.wait()
"""


def test_a_forked_process_does_not_use_its_parents_numbers_nor_keep_its_lock(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORKING, str(tmp_path / "p")], capture_output=True, text=True, timeout=60
    )
    said, first, second = done.stdout.splitlines()
    assert "before the process forked" in said and (int(first), int(second)) == (1, 2), done.stderr


def test_a_stamper_that_is_dropped_or_refused_releases_its_file(tmp_path: Path) -> None:
    Stamper("p", file=tmp_path / "p").stamp()
    with pytest.raises(BadInput, match='this is the file of "p"') as caught:
        Stamper("q", file=tmp_path / "p")
    with Stamper("p", file=tmp_path / "p") as again:
        assert sequence_of(again.stamp()) == 2
    assert caught.value is not None  # its traceback still has the one that was refused


def test_a_closed_stamper_writes_nothing_and_ticks_no_clock(tmp_path: Path) -> None:
    wall = Wall()
    ben = Stamper("ben", clock=wall.clock(), file=tmp_path / "ben")
    first = ben.stamp("1")
    ben.close()
    ben.close()
    whole = (tmp_path / "ben").read_bytes()
    wall.pass_by(10)
    heard = {"source": "anna", "sequence": "1", "causaltime": "1000040 1000040"}
    for act in (ben.stamp, ben.heartbeat, lambda: ben.saw(heard), lambda: ben.sent(first)):
        with pytest.raises(BadInput, match="this stamper was closed"):
            act()
    assert ben.unsent == [first] and ben.sequence == 1
    assert ben.clock is not None and ben.clock.largest == 1_000_000
    assert (tmp_path / "ben").read_bytes() == whole


def test_threads_share_a_stamper(tmp_path: Path) -> None:
    ben = Stamper("ben", file=tmp_path / "ben")
    found: list[int] = []

    def stamps() -> None:
        for _ in range(200):
            found.append(sequence_of(ben.stamp()))

    threads = [Thread(target=stamps) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == list(range(1, 801))


def test_a_disk_that_cannot_lock_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    with monkeypatch.context() as patch:
        patch.setattr(fcntl, "flock", none)
        with pytest.raises(BadInput, match="cannot be locked: No locks available; put the file on"):
            Stamper("p", file=tmp_path / "p")
    monkeypatch.setattr("causet.journal.fcntl", None)  # as on Windows: a limit that is documented
    first, second = Stamper("p", file=tmp_path / "p"), Stamper("p", file=tmp_path / "p")
    assert sequence_of(first.stamp()) == sequence_of(second.stamp()) == 1
    assert "Windows has no such lock" in str(Stamper.__doc__)


# ---------------------------------------------------------------- what can be stamped

LOOP: list[Any] = []
LOOP.append(LOOP)


@pytest.mark.parametrize("with_file", [False, True])
@pytest.mark.parametrize(
    "data",
    [object(), {"a": {1, 2}}, float("nan"), [float("inf")], {"a": b""}, "\ud800", {"\udfff": 1}, LOOP],
)
def test_data_that_cannot_be_written_uses_up_no_number_and_no_tick(
    tmp_path: Path, data: Any, with_file: bool
) -> None:
    wall = Wall()
    ben = Stamper("ben", clock=wall.clock(), file=tmp_path / "ben" if with_file else None)
    ben.saw(Stamper("anna").stamp())
    wall.pass_by(5)
    with pytest.raises(BadInput, match="the data of a message cannot be written as JSON"):
        ben.stamp(data)
    assert ben.sequence == 0 and ben.clock is not None and ben.clock.largest == 0
    envelope = ben.stamp("fine")
    assert (sequence_of(envelope), deps_of(envelope)) == (1, {"anna": 1})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("subject", 5),
        ("subject", None),
        ("subject", "\ud800"),
        ("id", ""),
        ("id", 7),
        ("type", ""),
        ("type", 1),
    ],
)
def test_attributes_are_text(name: str, value: Any) -> None:
    ben = Stamper("ben", clock=RcClock(50))
    with pytest.raises(BadInput, match=f"the attribute {name} must be text"):
        ben.stamp(None, **{name: value})
    assert ben.sequence == 0 and ben.clock is not None and ben.clock.largest == 0


def test_a_message_is_not_called_a_heartbeat() -> None:
    with pytest.raises(BadInput, match="is for heartbeats"):
        Stamper("ben").stamp("lost at the merge", type=HEARTBEAT)


@pytest.mark.parametrize("name", ["", "a\ud800", "\udfff", 5])
def test_names_of_sources_and_domains_are_text(name: Any) -> None:
    for arguments in ((name,), ("ben", name)):
        with pytest.raises(BadInput, match="of a stamper must be text"):
            Stamper(*arguments)
    ben = Stamper("ben")
    for envelope in (
        {"source": name, "sequence": "1"},
        {"source": "anna", "sequence": "1", "causaldeps": json.dumps({name: 1}) if name != 5 else "5"},
    ):
        with pytest.raises(BadStamp):
            ben.saw(envelope)
    assert deps_of(ben.stamp()) == {}


def test_what_was_seen_but_not_written_is_not_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ben, question = Stamper("ben", file=tmp_path / "ben"), Stamper("anna").stamp()
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda *_: 0)
        with pytest.raises(BadInput, match="the disk is full"):
            ben.saw(question)
    ben.saw(question)
    ben.close()
    with Stamper("ben", file=tmp_path / "ben") as again:
        assert deps_of(again.stamp()) == {"anna": 1}


# ---------------------------------------------------------------- the clock of the merge


class Wall:
    """A wall clock and a steady one, both in our hands."""

    def __init__(self, now: int = 1_000_000) -> None:
        self.wall = self.steady = now

    def pass_by(self, ticks: int) -> None:
        self.wall += ticks
        self.steady += ticks

    def clock(self, epsilon: int = 50) -> RcClock:
        return RcClock(epsilon, lambda: self.wall, lambda: self.steady)


def test_effects_have_later_times_than_their_causes_whatever_the_clocks_show() -> None:
    rng = random.Random(1)
    for _ in range(100):
        walls = [Wall(1_000_000 + rng.randrange(50)) for _ in range(4)]
        clocks = [wall.clock() for wall in walls]
        last = [RcTime(0, 0)] * 4
        times: list[RcTime] = []
        for _ in range(100):
            me = rng.randrange(4)
            if rng.random() < 0.5:
                for wall in walls:
                    wall.pass_by(rng.randrange(3))
            received = [rng.choice(times)] if times and rng.random() < 0.7 else []
            when = clocks[me].event(*received)
            assert all(cause < when for cause in received)
            assert last[me] <= when
            last[me] = when
            times.append(when)


def test_the_bound_on_skew_is_checked() -> None:
    wall = Wall()
    clock = wall.clock(epsilon=50)
    assert clock.event(RcTime(1_000_050, 1_000_050)).rc == 1_000_051
    with pytest.raises(ClockJumped, match="51 ms ahead of this clock, and ε is 50 ms"):
        clock.event(RcTime(1_000_051, 1_000_051))
    with pytest.raises(BadStamp, match="c = 102 exceeds 101"):
        clock.event(RcTime(1_000_102, 1_000_000))


def test_a_clock_that_jumps_is_an_error_once() -> None:
    wall = Wall()
    clock = wall.clock(epsilon=50)
    clock.event()
    wall.pass_by(10_000)
    clock.event()
    wall.wall += 51
    with pytest.raises(ClockJumped, match="jumped by 51 ms"):
        clock.event()
    clock.event()
    wall.wall -= 500
    with pytest.raises(ClockJumped, match="set back"):
        clock.event()
    wall.pass_by(400)
    with pytest.raises(ClockJumped, match="jumped by -500 ms"):
        clock.event()
    assert clock.event().rc == 1_010_051, "time stands still until the clock has caught up"


def test_after_a_restart_time_does_not_go_back(tmp_path: Path) -> None:
    wall = Wall()
    ben = Stamper("ben", clock=wall.clock(), file=tmp_path / "ben")
    ben.saw({"source": "anna", "sequence": "1", "causaltime": "1000040 1000040"})
    assert ben.stamp()["causaltime"] == "1000041 1000000"
    ben.close()
    again = Stamper("ben", clock=wall.clock(), file=tmp_path / "ben")
    assert again.stamp()["causaltime"] == "1000041 1000000"
    assert again.heartbeat()["type"] == HEARTBEAT
    again.close()
    wall.wall -= 500
    with pytest.raises(ClockJumped, match="set back"):
        Stamper("ben", clock=wall.clock(), file=tmp_path / "ben").stamp()


# ---------------------------------------------------------------- Kafka


@pytest.mark.parametrize("data", [None, {"a": ["ä", 1.5, None]}, "text", b"\x00\xff", 0])
def test_binary_mode_and_back(data: Any) -> None:
    envelope = Stamper("anna", clock=RcClock(50)).stamp(data, subject="ü")
    headers, value = to_binary(envelope)
    back = from_binary(headers, value)
    if "data" in envelope:
        assert back.pop("datacontenttype") == "application/json"
    assert back == envelope


@pytest.mark.parametrize(
    ("headers", "value", "said"),
    [
        ([("ce_source", b"a")], b"", "ce_source and ce_id"),
        ([("ce_source", b""), ("ce_id", b"1")], b"", "ce_source and ce_id"),
        ([("ce_source", b"\xed\xa0\x80"), ("ce_id", b"1")], b"", "ce_source is not UTF-8"),
        ([("ce_source", b"\xff"), ("ce_id", b"1")], b"", "ce_source is not UTF-8"),
        ([("ce_source", b"a"), ("ce_id", b"1"), ("content-type", b"application/json")], b"{", "is not"),
    ],
)
def test_what_is_no_binary_message_is_refused(
    headers: list[tuple[str, bytes]], value: bytes, said: str
) -> None:
    with pytest.raises(BadStamp, match=said):
        from_binary(headers, value)


def test_half_of_a_surrogate_pair_in_the_data_of_others_goes_on_as_it_came() -> None:
    headers = [("ce_source", b"a"), ("ce_id", b"1"), ("content-type", b"application/json")]
    envelope = from_binary(headers, b'{"text":"\\ud800"}')
    assert to_binary(envelope)[1] == b'{"text": "\\ud800"}'
    with pytest.raises(BadInput, match="the attribute subject must be text"):
        to_binary({**envelope, "subject": "\ud800"})


def test_a_producer_needs_the_standard_library_only() -> None:
    program = (
        "import sys; from causet import Stamper; Stamper('a').stamp(1); "
        "sys.exit(any(name.split('.')[0] in ('numpy', 'pyarrow', 'pyspark', 'numba', 'click') "
        "for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0

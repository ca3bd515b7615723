"""Stamping at the source: numbers, restarts, the ⟨r, c⟩ clock. Messages to several groups, and what is in the
past of a message, have a file of their own (`test_addresses.py`)."""

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
import time
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from causet import ClockJumped, RcClock, Stamper, stamp
from causet.errors import BadInput, BadStamp
from causet.rcclock import RcTime
from causet.stamp import HEARTBEAT, from_binary, frontier_of, process_of, sequence_of, time_of, to_binary
from tests.helpers.damaged import DAMAGED, check_damaged


def past(envelope: dict[str, Any]) -> dict[str, dict[str, int]]:
    return frontier_of(envelope).past


def test_an_envelope_is_a_cloudevent_with_its_past() -> None:
    anna, ben, carl = (Stamper(name, "chat", run="7") for name in ("anna", "ben", "carl"))
    question = anna.stamp({"text": "Who?"}, type="chat.question", subject="room 1")
    assert question == {
        "specversion": "1.0",
        "id": "anna~7:chat:1",
        "source": "anna",
        "type": "chat.question",
        "subject": "room 1",
        "causalversion": 2,
        "causalprocess": "anna~7",
        "causalgroups": '["chat"]',
        "causalnumbers": '{"chat":1}',
        "sequence": "00000000000000000001",
        "causaldeps": "{}",
        "data": {"text": "Who?"},
    }
    ben.saw(question)
    answer = ben.stamp("me")
    carl.saw(question)
    carl.saw(answer)
    assert past(carl.stamp("good")) == {"chat": {"ben~7": 1}}, "the answer covers the question"
    assert past(carl.stamp("really")) == {"chat": {"carl~7": 1}}, "the previous message covers all"


def test_a_second_copy_and_ones_own_message_teach_nothing() -> None:
    anna, ben = Stamper("anna"), Stamper("ben")
    first = anna.stamp()
    ben.saw(first)
    ben.stamp()
    ben.saw(first)
    ben.saw(ben.stamp())
    assert past(ben.stamp()) == {"all": {ben.process: 2}}


@pytest.mark.parametrize(("change", "said"), DAMAGED)
def test_a_damaged_envelope_is_refused_and_changes_nothing(change: dict[str, Any], said: str) -> None:
    check_damaged(stamp, change, said)


@given(
    st.dictionaries(
        st.sampled_from(["source", "sequence", "causaldeps", "causaltime", "causalversion", "causalprocess"]),
        st.text(),
    )
)
def test_no_text_at_all_breaks_the_reader(attributes: dict[str, str]) -> None:
    stamper = Stamper("ben", clock=RcClock(50))
    before = stamper.save()
    try:
        stamper.saw(attributes)
    except (BadStamp, ClockJumped):
        assert stamper.save() == before


@pytest.mark.parametrize(
    "name",
    [
        "Big",
        "has_underscore",
        "sequence",
        "causaldomain",
        "causalversion",
        "causalprocess",
        "causalgroups",
        "causalnumbers",
        "causaldeps",
        "causalcut",
        "x" * 41,
    ],
)
def test_attributes_keep_to_the_rules_of_cloudevents(name: str) -> None:
    with pytest.raises(BadInput, match="cannot be an attribute"):
        Stamper("anna").stamp(None, **dict[str, Any]({name: "x"}))


# ---------------------------------------------------------------- restarts


def test_saved_and_restored() -> None:
    anna, ben = Stamper("anna", "d"), Stamper("ben", "d")
    ben.saw(anna.stamp())
    ben.saw(anna.stamp())
    again = Stamper.restore(ben.save())
    envelope = again.stamp()
    assert (sequence_of(envelope), past(envelope)) == (1, {"d": {anna.process: 2}})
    assert process_of(envelope) == ben.process == again.process and again.to == ("d",)
    with pytest.raises(BadInput, match="version 7, and this release reads up to 3; use the one that wrote"):
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
    assert (sequence_of(third), past(third)) == (3, {"all": {anna.process: 2, ben.process: 2}})
    assert process_of(first) == process_of(third) == again.process
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
    assert again.unsent == [kept] and again.numbers == {"all": 1101}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"saw": [1]}', '"saw" cannot be'),
        ('{"saw": ["a", true, {}]}', '"saw" cannot be'),
        ('{"saw": ["a", 1, {}]}', '"saw" cannot be'),
        ('{"saw": ["a", {"g": 1}, {"b": 1}]}', '"saw" cannot be'),
        ('{"saw": ["a", {"g": 1}, {"b": {"c": "d"}}]}', '"saw" cannot be'),
        ('{"saw": ["a", {"g": -1}, {}]}', '"saw" cannot be'),
        ('{"saw": [5, {"g": 1}, {}]}', '"saw" cannot be'),
        ('{"stable": {"number": 0, "groups": {}}}', '"stable" cannot be'),
        ('{"stable": {"number": 1, "groups": {"g": {"a": 0}}}}', '"stable" cannot be'),
        ('{"stable": "{}"}', '"stable" cannot be'),
        ('{"cut": -1}', '"cut" cannot be -1'),
        ('{"sent": ["all", 0]}', '"sent" cannot be'),
        ('{"rc": true}', '"rc" cannot be true'),
        ('{"rc": 9007199254740992000}', '"rc" cannot be'),
        ('{"stamped": {}}', "must have a source"),
        ('{"stamped": {"source": "anna", "causalprocess": "anna~1"}}', "sequence must be a number"),
        ('{"stamped": {"source": "anna", "sequence": "1"}}', 'a message of "anna", not of "anna~'),
        ('{"stamped": {"source": "anna", "sequence": "1", "causaltime": "x"}}', "causaltime must be"),
        (
            '{"stamped": {"source": "anna", "causalprocess": "anna~1", "causalnumbers": "{\\"all\\":2}"}}',
            "does not follow those before it",
        ),
        ('{"version": 3}', "the state of a stamper can stand in the first line only"),
        ('{"sent": "1"}', '"sent" cannot be "1"'),
        ("[]", "an object is expected"),
    ],
)
def test_a_line_that_no_stamper_writes_is_refused(line: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "anna"
    Stamper("anna", file=file, run="1").close()
    file.write_text(file.read_text() + line + "\n")
    with pytest.raises(BadInput, match=f"{file}, line 2: not a line of a stamper's file: .*{said}"):
        Stamper("anna", file=file)


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
    with pytest.raises(BadInput, match="line 1: not a line of a stamper"):
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
            envelope = stamper.stamp({"at": stamper.numbers.get("all", 0)})
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


# ---------------------------------------------------------------- who numbers messages


def test_a_process_that_lost_its_memory_is_a_new_process() -> None:
    """H12: it numbers from 1, under an identity of its own, and follows only what it saw."""
    first = Stamper("anna", "chat")
    said = [first.stamp("one"), first.stamp("two")]
    second = Stamper("anna", "chat")
    envelope = second.stamp("three")
    assert envelope["source"] == said[0]["source"] == "anna"
    assert process_of(envelope) == second.process != first.process
    assert (sequence_of(envelope), past(envelope)) == (1, {})
    assert len({each["id"] for each in (*said, envelope)}) == 3
    assert first.process in said[0]["id"] and second.process in envelope["id"]
    for each in said:
        second.saw(each)
    found = past(second.stamp("four"))
    assert found == {"chat": {first.process: 2, second.process: 1}}, "another process of the same name"


def test_a_journal_that_was_deleted_takes_its_identity_along(tmp_path: Path) -> None:
    with Stamper("anna", file=tmp_path / "anna") as first:
        first.stamp("one")
    (tmp_path / "anna").unlink()
    with Stamper("anna", file=tmp_path / "anna") as second:
        assert second.process != first.process and sequence_of(second.stamp("two")) == 1


def test_identities_are_the_source_the_moment_and_64_random_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Independently of the code: 11 digits in base 36 of µs since 1970, then 13 of a number below 2**64."""
    before = time.time_ns() // 1000
    runs = [Stamper("a/b c").process.removeprefix("a/b c~") for _ in range(200)]
    after = time.time_ns() // 1000
    assert all(before <= int(run[:11], 36) <= after and int(run[11:], 36) < 2**64 for run in runs)
    assert {len(run) for run in runs} == {24} and len({run[11:] for run in runs}) == 200
    moments = [run[:11] for run in runs]
    assert moments == sorted(moments)
    monkeypatch.setattr("causet.identity.wall_clock", lambda: 1_000_000)
    same = {Stamper("a").process for _ in range(100)}
    assert len(same) == 100 and {each[:13] for each in same} == {"a~0000000lfls"}


@pytest.mark.parametrize("run", ["", "-a", "a~b", "A", "a b", "x" * 65, 5, "ä"])
def test_the_name_of_a_run_is_plain(run: Any) -> None:
    with pytest.raises(BadInput, match="the name of a run has 1 to 64 small letters, digits and dashes"):
        Stamper("anna", run=run)


def test_the_file_of_another_run_is_refused(tmp_path: Path) -> None:
    with Stamper("anna", file=tmp_path / "a", run="2024-1") as anna:
        assert anna.process == "anna~2024-1"
    with (
        Stamper("anna", file=tmp_path / "a", run="2024-1"),
        pytest.raises(BadInput, match="has this file open"),
    ):
        Stamper("anna", file=tmp_path / "a")
    with Stamper("anna", file=tmp_path / "a") as anna:
        assert anna.process == "anna~2024-1"
    with pytest.raises(BadInput, match='file of "anna~2024-1", not of "anna~2024-2"'):
        Stamper("anna", file=tmp_path / "a", run="2024-2")


VERSION_1 = """\
{"version": 1, "source": "ben", "domain": "chat", "sequence": 4, "seen": {"anna": 2}, "direct": {}, \
"rc": 1000}
{"saw": ["anna", 3, {}], "rc": 1021}
{"stamped": {"specversion": "1.0", "id": "chat:5", "source": "ben", "type": "causet.message", \
"causaldomain": "chat", "sequence": "00000000000000000005", "causaldeps": "{\\"anna\\":3}", \
"causaltime": "1022 1001", "data": "five"}}
{"saw": ["carl", 1, {}], "rc": 1040}
"""
"""The file of a stamper of version 1: it sent 5 messages, the last of which may not have arrived."""


def test_a_journal_of_version_1_is_taken_over(tmp_path: Path) -> None:
    """It goes on under its plain source, with the next number; its times count ms."""
    file = tmp_path / "ben"
    file.write_text(VERSION_1)
    wall = Wall(1_001_000)
    for number in (6, 7):
        with Stamper("ben", "chat", clock=wall.clock(), file=file) as ben:
            assert ben.process == "ben" and ben.unsent[0]["data"] == "five"
            envelope = ben.stamp()
            assert "causalprocess" not in envelope and process_of(envelope) == "ben"
            assert envelope["causalversion"] == 2
            assert sequence_of(envelope) == number
            assert past(envelope) == {"chat": {"ben": 5, "carl": 1} if number == 6 else {"ben": 6}}
            assert ben.unsent[0]["causaldeps"] == '{"anna":3}', "what was not sent goes as it is"
            assert time_of(envelope) == (1_040_000 + number - 5, 1_001_000)
    assert json.loads(file.read_text().splitlines()[0])["version"] == 3
    with pytest.raises(BadInput, match='file of "ben", not of "ben~1"'):
        Stamper("ben", "chat", file=file, run="1")


def test_times_of_version_1_may_be_as_far_ahead_as_they_were(tmp_path: Path) -> None:
    """Below 2^53, in ms; a clock of one's own can have shown that."""
    far = 2**53 - 1
    assert RcTime.parse(f"{far} {far}", 1000) == (1000 * far, 1000 * far)
    for text, tick in ((f"{far + 1} 1", 1000), (f"{far + 1} 1", 1)):
        with pytest.raises(BadStamp, match="is not a time of a clock"):
            RcTime.parse(text, tick)
    file = tmp_path / "ben"
    file.write_text(VERSION_1.splitlines()[0].replace('"rc": 1000', f'"rc": {far}') + "\n")
    for _ in range(2):  # the file is written anew, with µs
        with Stamper("ben", "chat", clock=Wall(1000 * far).clock(), file=file) as ben:
            assert ben.clock is not None and ben.clock.largest == 1000 * far
    assert f'"rc": {1000 * far}' in file.read_text().splitlines()[0]


def test_a_saved_state_of_version_1_is_taken_over() -> None:
    saved = VERSION_1.splitlines()[0]
    clock = Wall(1_000_000).clock()
    ben = Stamper.restore(saved, clock=clock)
    assert (ben.process, ben.numbers, clock.largest) == ("ben", {"chat": 4}, 1_000_000)
    again = Stamper.restore(ben.save())
    envelope = again.stamp()
    assert (process_of(envelope), sequence_of(envelope)) == ("ben", 5)


@pytest.mark.parametrize(
    "saved",
    [
        *("no", "[]", "{}", '{"version": 3}', '{"version": 2}', '{"version": 1, "source": 5}', "[" * 100_000),
        '{"version": 1, "source": [], "domain": "d", "sequence": 1, "seen": {}, "direct": {}}',
        '{"version": 2, "source": "a", "domain": "d", "sequence": 1, "seen": {}, "direct": {"b": 1}}',
    ],
)
def test_a_state_that_is_none_is_refused_in_a_sentence(saved: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput):
        Stamper.restore(saved)
    (tmp_path / "f").write_text(saved + "\n")
    with pytest.raises(BadInput, match="line 1: not a line of a stamper"):
        Stamper("a", file=tmp_path / "f")


def test_messages_of_a_predecessor_without_an_identity_are_those_of_another_process() -> None:
    ben = Stamper("ben")
    ben.saw({"source": "ben", "sequence": "3"})
    assert past(ben.stamp()) == {"all": {"ben": 3}}


def test_a_forked_process_without_a_file_does_not_use_its_parents_identity() -> None:
    program = textwrap.dedent(
        """
        import os, sys
        from causet import Stamper
        from causet.errors import BadInput
        first = Stamper("p")
        first.stamp()
        if os.fork() == 0:
            try:
                first.stamp()
            except BadInput as error:
                print(error, flush=True)
            os._exit(0)
        os.wait()
        print(first.stamp()["sequence"])
        """
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    said, number = done.stdout.splitlines()
    assert "made before the process forked" in said and int(number) == 2, done.stderr


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
    heard = {"source": "anna", "sequence": "1", "causaltime": "1000040 1000040", "causalversion": 2}
    for act in (ben.stamp, ben.heartbeat, lambda: ben.saw(heard), lambda: ben.sent(first), ben.save):
        with pytest.raises(BadInput, match="this stamper was closed"):
            act()
    assert ben.unsent == [first] and ben.numbers == {"all": 1}
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
    monkeypatch.setattr("causet.stamping.journal.fcntl", None)  # as on Windows: a limit that is documented
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
    ben.saw(Stamper("anna", run="1").stamp())
    wall.pass_by(5)
    with pytest.raises(BadInput, match="the data of a message cannot be written as JSON"):
        ben.stamp(data)
    assert ben.numbers == {} and ben.clock is not None and ben.clock.largest == 0
    envelope = ben.stamp("fine")
    assert (sequence_of(envelope), past(envelope)) == (1, {"all": {"anna~1": 1}})


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
    assert ben.numbers == {} and ben.clock is not None and ben.clock.largest == 0


def test_a_message_is_not_called_a_heartbeat() -> None:
    with pytest.raises(BadInput, match="is for heartbeats"):
        Stamper("ben").stamp("lost at the merge", type=HEARTBEAT)


@pytest.mark.parametrize("name", ["", "a\ud800", "\udfff", 5])
def test_names_of_sources_and_groups_are_text(name: Any) -> None:
    for arguments in ((name,), ("ben", name), ("ben", ["a", name])):
        with pytest.raises(BadInput, match=r"of a (stamper|message) must be text"):
            Stamper(*arguments)
    ben = Stamper("ben")
    for envelope in (
        {"source": name, "sequence": "1"},
        {"source": "anna", "sequence": "1", "causaldeps": json.dumps({name: 1}) if name != 5 else "5"},
    ):
        with pytest.raises(BadStamp):
            ben.saw(envelope)
    assert past(ben.stamp()) == {}


def test_what_was_seen_but_not_written_is_not_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ben, question = Stamper("ben", file=tmp_path / "ben"), Stamper("anna", run="1").stamp()
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda *_: 0)
        with pytest.raises(BadInput, match="the disk is full"):
            ben.saw(question)
    ben.saw(question)
    ben.close()
    with Stamper("ben", file=tmp_path / "ben") as again:
        assert past(again.stamp()) == {"all": {"anna~1": 1}}


# ---------------------------------------------------------------- the clock of the merge


class Wall:
    """A wall clock and a steady one, both in our hands, in ticks of 1 µs."""

    def __init__(self, now: int = 1_000_000) -> None:
        self.wall = self.steady = now

    def pass_by(self, ticks: int) -> None:
        self.wall += ticks
        self.steady += ticks

    def clock(self, epsilon: float = 50) -> RcClock:
        """ε in ms."""
        return RcClock(epsilon, lambda: self.wall, lambda: self.steady)


def test_effects_have_later_times_than_their_causes_whatever_the_clocks_show() -> None:
    rng = random.Random(1)
    for _ in range(100):
        walls = [Wall(1_000_000 + rng.randrange(50)) for _ in range(4)]
        clocks = [wall.clock(epsilon=0.5) for wall in walls]
        last = [RcTime(0, 0)] * 4
        times: list[RcTime] = []
        for _ in range(100):
            me = rng.randrange(4)
            if rng.random() < 0.5:
                for wall in walls:
                    wall.pass_by(rng.randrange(3))
            received = [rng.choice(times)] if times and rng.random() < 0.7 else []
            when = clocks[me].event(*received)
            assert all(cause.rc < when.rc for cause in received)
            assert last[me].rc < when.rc, "no two events of a clock have the same r + c"
            last[me] = when
            times.append(when)


def test_the_bound_on_skew_is_checked() -> None:
    wall = Wall()
    clock = wall.clock(epsilon=50)
    assert clock.event(RcTime(1_050_000, 1_050_000)).rc == 1_050_001
    with pytest.raises(ClockJumped, match=r"a clock that is 50\.001 ms ahead of this one, and ε is 50 ms"):
        clock.event(RcTime(1_050_001, 1_050_001))
    with pytest.raises(BadStamp, match=r"c is 100\.002 ms, and 100\.001 ms is the most that it can be"):
        clock.event(RcTime(1_100_002, 1_000_000))
    for epsilon in (-1, float("nan"), float("inf")):
        with pytest.raises(BadInput, match="it must be a number of ms from 0 to 9,007,199,254,740"):
            RcClock(epsilon)
    with pytest.raises(BadInput, match='epsilon = "50": it must be a number of ms'):
        RcClock("50")  # type: ignore[arg-type]


def test_a_clock_that_jumps_is_an_error_once() -> None:
    wall = Wall()
    clock = wall.clock(epsilon=50)
    clock.event()
    wall.pass_by(10_000_000)
    clock.event()
    wall.wall += 51_000
    with pytest.raises(ClockJumped, match="jumped ahead by 51 ms, more than ε = 50 ms"):
        clock.event()
    assert clock.event().rc == 11_051_000
    wall.wall -= 500_000
    with pytest.raises(ClockJumped, match=r"500 ms behind a time that was known before.* set back"):
        clock.event()
    wall.pass_by(400_000)
    with pytest.raises(ClockJumped, match="jumped back by 500 ms"):
        clock.event()
    assert clock.event() == (11_051_001, 10_951_000), "time goes on by ticks until the clock has caught up"


@pytest.mark.parametrize("wrong", [100_000, -100_000])
def test_a_clock_that_is_wrong_by_2_epsilon_is_found_and_named(wrong: int) -> None:
    """ε is 50 ms. A source that is ahead is refused by those that hear it; one that is behind refuses the
    others."""
    wall, odd = Wall(), Wall(1_000_000 + wrong)
    right, set_wrong = (Stamper(name, clock=each.clock()) for name, each in (("a", wall), ("b", odd)))
    sender, receiver = (set_wrong, right) if wrong > 0 else (right, set_wrong)
    before = receiver.save()
    said = (
        f'a message of "{sender.process}" was stamped by a clock that is 100 ms ahead of this one, and ε is'
    )
    with pytest.raises(ClockJumped, match=f"{said} 50 ms"):
        receiver.saw(sender.stamp())
    assert receiver.save() == before


def test_clocks_that_are_more_than_epsilon_apart_are_found_by_what_passes_between_them() -> None:
    """ε is 50 ms. The first and the third are 99.8 ms apart, and each is within ε of the second."""
    first, second, third = (
        Stamper(name, clock=Wall(1_000_000 + offset).clock())
        for name, offset in (("a", 49_900), ("b", 0), ("c", -49_900))
    )
    second.saw(first.stamp())
    third.saw(Stamper("d", clock=Wall(1_000_000).clock()).stamp())
    before = third.save()
    with pytest.raises(ClockJumped, match=r'"b~.*" knows of a clock that is 99\.801 ms ahead of this one'):
        third.saw(second.stamp())
    assert third.save() == before


def test_clocks_of_one_machine_never_jump_however_small_epsilon_is() -> None:
    for epsilon in (0, 0.0005, 0.001):
        clock = RcClock(epsilon)
        for _ in range(5_000):
            clock.event()


@pytest.mark.parametrize(("wrong", "said"), [(100_000, "ahead by 100 ms"), (-100_000, "back by 100 ms")])
def test_a_clock_that_is_set_while_it_runs_is_found_by_the_steady_one(wrong: int, said: str) -> None:
    wall = Wall()
    ben = Stamper("ben", clock=wall.clock())
    ben.stamp()
    wall.pass_by(70_000)
    wall.wall += wrong
    with pytest.raises(ClockJumped, match=f"jumped {said}"):
        ben.stamp()
    assert ben.numbers == {"all": 1}


def test_a_process_that_had_to_wait_while_it_looked_at_the_clock_saw_no_jump() -> None:
    """80 ms pass between the looks at two clocks, the first time or a later one; a jump is found still."""
    for slow in (0, 3):
        wall, looks = Wall(), iter(range(100))

        def steady(wall: Wall = wall, looks: Any = looks, slow: int = slow) -> int:
            if next(looks) == 2 * slow + 1:
                wall.pass_by(80_000)
            return wall.steady

        clock = RcClock(50, lambda wall=wall: wall.wall, steady)  # type: ignore[misc]
        for _ in range(5):
            clock.event()
        wall.wall += 51_000
        with pytest.raises(ClockJumped, match="jumped ahead by 51 ms"):
            clock.event()


def test_times_of_version_1_count_milliseconds() -> None:
    """c of a clock with ticks of 1 ms is at most 2ε + 1 ms. (What is ahead of this clock by more than 2ε is
    refused for that.)"""
    old = {"source": "anna", "sequence": "1", "causaltime": "1101 1000"}
    wall = Wall(1_001_000)
    ben = Stamper("ben", clock=wall.clock())
    ben.saw(old)
    assert ben.stamp()["causaltime"] == "1101001 1001000"
    carl = Stamper("carl", clock=Wall(1_002_000).clock())
    with pytest.raises(BadStamp, match="c is 102 ms, and 101 ms is the most"):
        carl.saw({**old, "causaltime": "1102 1000"})
    with pytest.raises(BadStamp, match=r"c is 101 ms, and 100\.001 ms is the most"):
        carl.saw({**old, "causaltime": "1101000 1000000", "causalversion": 2})
    assert time_of(old) == time_of({**old, "causalversion": "1"}) == (1_101_000, 1_000_000)
    assert time_of({**old, "causalversion": "2"}) == (1101, 1000)


def answering(first: Stamper, second: Stamper, seconds: float, epsilon: float) -> int:
    """Two stampers answer each other without a pause; says how often. Every effect sorts after its cause, and
    no time is ahead of the clock on the wall by more than ε."""
    said, end, hops = first.stamp(), time.monotonic() + seconds, 0
    while time.monotonic() < end:
        for me in (second, first):
            me.saw(said)
            answer = me.stamp()
            cause, effect = time_of(said), time_of(answer)
            assert cause is not None and effect is not None
            assert (cause.rc, cause.r, process_of(said)) < (effect.rc, effect.r, process_of(answer))
            assert cause.rc < effect.rc
            assert effect.rc - time.time_ns() // 1000 <= epsilon * 1000
            said = answer
            hops += 1
    return hops


def test_two_who_answer_each_other_at_once_do_not_run_ahead_of_the_clock() -> None:
    for epsilon in (1, 50):
        anna, ben = (Stamper(name, clock=RcClock(epsilon)) for name in ("anna", "ben"))
        assert answering(anna, ben, 1, epsilon) > 100


@pytest.mark.soak
def test_two_who_answer_each_other_for_ten_seconds() -> None:
    anna, ben = (Stamper(name, clock=RcClock(50)) for name in ("anna", "ben"))
    assert answering(anna, ben, 10, 50) > 1000


def test_threads_that_share_a_stamper_never_get_the_same_time() -> None:
    anna, ben = (Stamper(name, clock=RcClock(50)) for name in ("anna", "ben"))
    failed: list[BaseException] = []
    times: list[RcTime | None] = []

    def beats() -> None:
        try:
            for _ in range(300):
                times.append(time_of(anna.heartbeat()))
                times.append(time_of(anna.stamp()))
        except BaseException as error:
            failed.append(error)

    threads = [Thread(target=beats) for _ in range(8)]
    for thread in threads:
        thread.start()
    answering(anna, ben, 0.5, 50)
    for thread in threads:
        thread.join()
    assert not failed and len(times) == len({each.rc for each in times if each is not None}) == 4800


def test_after_a_restart_time_does_not_go_back(tmp_path: Path) -> None:
    wall = Wall()
    ben = Stamper("ben", clock=wall.clock(), file=tmp_path / "ben")
    heard = {"source": "anna", "sequence": "1", "causaltime": "1040000 1040000", "causalversion": 2}
    ben.saw(heard)
    assert ben.stamp()["causaltime"] == "1040001 1000000"
    ben.close()
    again = Stamper("ben", clock=wall.clock(), file=tmp_path / "ben")
    assert again.stamp()["causaltime"] == "1040002 1000000"
    beat = again.heartbeat()
    assert (beat["type"], beat["causaltime"]) == (HEARTBEAT, "1040003 1000000")
    again.close()
    with Stamper("ben", clock=wall.clock(), file=tmp_path / "ben") as third:
        assert third.heartbeat()["causaltime"] == "1040004 1000000", "of heartbeats, too, each has its own"
        third.saw({**heard, "type": HEARTBEAT, "causaltime": "1045000 1045000"})
    with Stamper("ben", clock=wall.clock(), file=tmp_path / "ben") as fourth:
        assert fourth.stamp()["causaltime"] == "1045001 1000000", "it is not before a heartbeat that it heard"
    wall.wall -= 500_000
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


def test_a_file_remembers_the_time_through_a_life_without_a_clock(tmp_path: Path) -> None:
    wall = Wall()
    with Stamper("anna", file=tmp_path / "f", clock=wall.clock()) as anna:
        first = time_of(anna.stamp())
    with Stamper("anna", file=tmp_path / "f") as anna:
        anna.stamp()
        saved = anna.save()
    wall.wall -= 10_000
    with Stamper("anna", file=tmp_path / "f", clock=wall.clock()) as anna:
        later = time_of(anna.stamp())
    restored = time_of(Stamper.restore(saved, clock=wall.clock()).stamp())
    assert first is not None and later is not None and restored is not None
    assert later.rc > first.rc and restored.rc > first.rc


@pytest.mark.parametrize("odd", [None, 5, "x", []])
def test_what_is_no_envelope_is_refused_in_a_sentence(odd: Any) -> None:
    anna = Stamper("anna")
    with pytest.raises(BadStamp, match="an envelope must be a map of attributes"):
        anna.saw(odd)
    with pytest.raises(BadStamp, match="an envelope must be a map of attributes"):
        anna.sent(odd)

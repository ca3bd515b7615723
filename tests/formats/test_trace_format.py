"""The trace format, version 1: what is written, what is read, and what is refused in which words."""

from __future__ import annotations

import dataclasses
import gzip
import itertools
import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from causet.errors import BadInput
from causet.formats.causality import check_acyclic
from causet.formats.schema import FIELDS
from causet.formats.trace import MAX_LINE, read_trace, to_json, write_trace
from causet.model import KINDS, Event
from tests.helpers.places import TRACES

REAL = sorted((TRACES / "events").glob("*.jsonl.gz"))


def read_text(folder: Path, text: str) -> list[Event]:
    path = folder / "t.jsonl"
    path.write_text(text, encoding="utf-8")
    return read_trace(path)


def refusal(folder: Path, data: str | bytes, name: str = "t.jsonl") -> str:
    """The one sentence with which this file is refused, its folder taken off."""
    path = folder / name
    path.write_bytes(data.encode("utf-8") if isinstance(data, str) else data)
    with pytest.raises(BadInput) as refused:
        read_trace(path)
    sentence = str(refused.value)
    assert "\n" not in sentence
    assert sentence.startswith(str(path))
    return sentence.removeprefix(f"{folder}{os.sep}")


# ---------------------------------------------------------------- writing


def test_fields_stand_in_the_order_of_the_format_and_extra_fields_follow() -> None:
    event = Event(
        "p1",
        3,
        "send",
        id="e",
        message="m",
        to=("p2",),
        group="g",
        parents=("x", "y"),
        time=-5,
        text="grüß ∀",
        control=True,
        stamp_entries=0,
        stamp_bytes=7,
        extra={"zone": {"b": [1, None]}, "a": None},
    )
    assert to_json(event) == (
        '{"process":"p1","seq":3,"kind":"send","id":"e","message":"m","to":["p2"],"group":"g",'
        '"parents":["x","y"],"time":-5,"text":"grüß ∀","control":true,"stamp_entries":0,"stamp_bytes":7,'
        '"zone":{"b":[1,null]},"a":null}'
    )
    assert tuple(json.loads(to_json(event)))[: len(FIELDS)] == FIELDS


def test_what_a_reader_would_assume_is_left_out() -> None:
    assert to_json(Event("p1", 1)) == '{"process":"p1","seq":1}'
    assert (
        to_json(Event("p1", 1, "local", id="p1#1", parents=(), control=False)) == '{"process":"p1","seq":1}'
    )
    # An empty list of targets is no default: it says that nobody is addressed. Nor are zero and "".
    assert to_json(Event("p", 1, "send", message="", to=(), time=0, text="")) == (
        '{"process":"p","seq":1,"kind":"send","message":"","to":[],"time":0,"text":""}'
    )


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (Event("p", 1, time=float("nan")), 'event "p#1" cannot be written as JSON'),
        (Event("p", 1, extra={"x": {1, 2}}), 'event "p#1" cannot be written as JSON'),
        (Event("p", 1, extra={"seq": 2}), 'event "p#1" has an extra field "seq"'),
        (Event("p", 1, text="\ud800"), 'event "p#1" contains half a surrogate pair'),
    ],
)
def test_what_cannot_be_written_is_named_and_leaves_no_file(event: Event, said: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=said):
        write_trace(tmp_path / "t.jsonl", [event])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["t.jsonl", "t.jsonl.gz"])
def test_the_same_events_give_the_same_bytes(name: str, tmp_path: Path) -> None:
    events = [Event("p1", seq, text=f"step {seq}") for seq in range(1, 200)]
    written = []
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        assert write_trace(tmp_path / folder / name, iter(events)) == 199
        written.append((tmp_path / folder / name).read_bytes())
    assert written[0] == written[1]
    if name.endswith(".gz"):
        assert written[0][3:8] == bytes(5)  # no file name, time 0
        assert len(written[0]) < 2000


def test_a_file_is_complete_or_not_there(tmp_path: Path) -> None:
    def breaks() -> Iterator[Event]:
        yield Event("p1", 1)
        raise RuntimeError("the simulation broke")

    path = tmp_path / "t.jsonl"
    with pytest.raises(RuntimeError):
        write_trace(path, breaks())
    assert list(tmp_path.iterdir()) == []
    write_trace(path, [Event("old", 1)])
    with pytest.raises(RuntimeError):
        write_trace(path, breaks())
    assert [event.process for event in read_trace(path)] == ["old"]
    write_trace(path, [Event("new", 1)])
    assert [event.process for event in read_trace(path)] == ["new"]
    assert list(tmp_path.iterdir()) == [path]


def test_places_that_cannot_be_written_are_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="is a directory"):
        write_trace(tmp_path, [])
    with pytest.raises(BadInput, match="cannot be written: there is no folder "):
        write_trace(tmp_path / "nowhere" / "t.jsonl", [])


# ---------------------------------------------------------------- reading


@pytest.mark.parametrize("name", ["t.jsonl", "t.jsonl.gz"])
def test_what_is_written_is_read_back(name: str, tmp_path: Path) -> None:
    events = [
        Event("p1", 1, "send", message="p1:1", to=("p2", "p3"), group="g", time=2**63 - 1, stamp_entries=4),
        Event("p2", 1, "receive", message="p1:1", time=-(2**63)),
        Event("p2", 2, "deliver", message="p1:1", time=0.1),
        Event(
            "p3", 1, id="ünique", parents=("p1#1",), text='a "quoted"\nline', extra={"deps": {"p": [1, None]}}
        ),
        Event("p1", 2, "send", message="p1!1", to=(), control=True, stamp_bytes=9),
    ]
    write_trace(tmp_path / name, events)
    assert read_trace(tmp_path / name) == events
    assert read_trace([str(tmp_path / name)]) == events


def test_several_files_are_one_execution_in_the_order_given(tmp_path: Path) -> None:
    write_trace(tmp_path / "a.jsonl", [Event("p1", 2)])
    write_trace(tmp_path / "b.jsonl.gz", [Event("p1", 1), Event("p2", 1)])
    events = read_trace([tmp_path / "b.jsonl.gz", tmp_path / "a.jsonl"])
    assert [event.id for event in events] == ["p1#1", "p2#1", "p1#2"]


def test_null_means_left_out(tmp_path: Path) -> None:
    nothing = {name: None for name in FIELDS if name not in ("process", "seq")}
    line = json.dumps({"process": "p1", "seq": 1, **nothing, "unknown": None})
    assert read_text(tmp_path, line) == [Event("p1", 1, extra={"unknown": None})]


@pytest.mark.parametrize("text", ["", "\n", "\r\n \n\t\n"])
def test_a_file_without_events_gives_none(text: str, tmp_path: Path) -> None:
    assert read_text(tmp_path, text) == []
    (tmp_path / "t.jsonl.gz").write_bytes(gzip.compress(text.encode()))
    assert read_trace(tmp_path / "t.jsonl.gz") == []
    assert read_trace([]) == []


def test_line_ends_of_other_systems_and_a_missing_last_one_do_no_harm(tmp_path: Path) -> None:
    text = '{"process":"p","seq":1}\r\n\r\n{"process":"p","seq":2}'
    assert [event.seq for event in read_text(tmp_path, text)] == [1, 2]


def test_faults_of_the_log_are_left_to_the_checkers(tmp_path: Path) -> None:
    text = """
        {"process":"p","seq":7,"parents":["nobody"]}
        {"process":"p","seq":9,"kind":"deliver","message":"never sent"}
        {"process":"p","seq":10,"kind":"receive","message":"never sent"}
    """
    assert [event.seq for event in read_text(tmp_path, text)] == [7, 9, 10]


ONE = '"process":"p","seq":1'
KIND = 'field "kind" must be one of send, receive, deliver, local,'
DEEP = "lists and objects are nested more than 64 deep"
HUGE = ("9223372036854775808", "-9223372036854775809")

REFUSED = [
    # cannot be read
    ("{", "this is not JSON: Expecting property name enclosed in double quotes at column 2"),
    ("{" + ONE + "} {}", "this is not JSON: Extra data at column 25"),
    ("[1]", "the line must be an object with the fields of one event, not a list"),
    ('"p"', 'the line must be an object with the fields of one event, not "p"'),
    ("null", "the line must be an object with the fields of one event, not null"),
    # missing
    ("{}", 'field "process" is missing; every local event must have it'),
    ('{"seq":1}', 'field "process" is missing; every local event must have it'),
    ('{"process":"p"}', 'field "seq" is missing; every local event must have it'),
    ('{"process":"p","seq":null}', 'field "seq" is missing; every local event must have it'),
    ("{" + ONE + ',"kind":"send","to":["q"]}', 'field "message" is missing; every send event must have it'),
    ("{" + ONE + ',"kind":"receive"}', 'field "message" is missing; every receive event must have it'),
    ("{" + ONE + ',"kind":"deliver"}', 'field "message" is missing; every deliver event must have it'),
    ("{" + ONE + ',"kind":"send","message":"m"}', 'field "to" is missing; every send event must have it'),
    # wrong type or value
    ('{"process":1,"seq":1}', 'field "process" must be a string, not 1'),
    ('{"process":"p","seq":0}', 'field "seq" must be an integer from 1, not 0'),
    ('{"process":"p","seq":1.0}', 'field "seq" must be an integer from 1, not 1.0'),
    ('{"process":"p","seq":"1"}', 'field "seq" must be an integer from 1, not "1"'),
    ('{"process":"p","seq":true}', 'field "seq" must be an integer from 1, not true'),
    ("{" + ONE + ',"kind":"sent"}', KIND + ' not "sent"'),
    ("{" + ONE + ',"kind":["send"]}', KIND + ' not ["send"]'),
    ("{" + ONE + ',"id":7}', 'field "id" must be a string that is not empty, not 7'),
    ("{" + ONE + ',"id":""}', 'field "id" must be a string that is not empty, not ""'),
    ("{" + ONE + ',"message":7}', 'field "message" must be a string, not 7'),
    ("{" + ONE + ',"to":"q"}', 'field "to" must be a list of strings, not "q"'),
    ("{" + ONE + ',"to":["q",2]}', 'field "to" must be a list of strings, not ["q", 2]'),
    ("{" + ONE + ',"group":[]}', 'field "group" must be a string, not []'),
    ("{" + ONE + ',"parents":{"a":1}}', 'field "parents" must be a list of strings, not {"a": 1}'),
    ("{" + ONE + ',"time":"noon"}', 'field "time" must be a number, not "noon"'),
    ("{" + ONE + ',"time":false}', 'field "time" must be a number, not false'),
    ("{" + ONE + ',"text":["é"]}', 'field "text" must be a string, not ["é"]'),
    ("{" + ONE + ',"control":1}', 'field "control" must be true or false, not 1'),
    ("{" + ONE + ',"stamp_entries":-1}', 'field "stamp_entries" must be an integer from 0, not -1'),
    ("{" + ONE + ',"stamp_bytes":true}', 'field "stamp_bytes" must be an integer from 0, not true'),
    # out of bounds, in known and unknown fields
    ("{" + ONE + ',"time":9223372036854775808}', f'field "time": the integer {HUGE[0]} does not fit 64 bits'),
    ("{" + ONE + ',"x":[-9223372036854775809]}', f'field "x": the integer {HUGE[1]} does not fit 64 bits'),
    ("{" + ONE + ',"x":' + "9" * 9999 + "}", f'field "x": the integer {"9" * 24}… does not fit 64 bits'),
    ("{" + ONE + ',"time":1e999}', 'field "time": the number 1e999 does not fit a float64'),
    ("{" + ONE + ',"time":NaN}', 'field "time": NaN is not a JSON number'),
    ("{" + ONE + ',"x":{"y":-Infinity}}', 'field "x": -Infinity is not a JSON number'),
    ("{" + ONE + ',"text":"\\ud800"}', 'field "text": half a surrogate pair is not text'),
    ("{" + ONE + ',"x":{"\\udfff":1}}', 'field "x": half a surrogate pair is not text'),
    ("{" + ONE + ',"x\\ud800":1}', 'field "x\\ud800": half a surrogate pair is not text'),
    ("{" + ONE + ',"seq":2}', '"seq" appears twice in one object'),
    ("{" + ONE + ',"x":{"a":1,"a":2}}', 'field "x": "a" appears twice in one object'),
    ("{" + ONE + ',"x":' + "[" * 64 + "]" * 64 + "}", 'field "x": ' + DEEP),
    ("{" + ONE + ',"x":' + "[" * 99999 + "]" * 99999 + "}", DEEP),
    ('{"x":' * 99999, DEEP),
]


@pytest.mark.parametrize(("line", "said"), REFUSED, ids=[line[:50] for line, _ in REFUSED])
def test_a_bad_line_is_refused_with_file_line_and_field(line: str, said: str, tmp_path: Path) -> None:
    good = '{"process":"other","seq":1}\n\n'
    assert refusal(tmp_path, f"{good}{line}\n") == f"t.jsonl, line 3: {said}"


def test_sixty_four_levels_are_still_read(tmp_path: Path) -> None:
    (event,) = read_text(tmp_path, "{" + ONE + ',"x":' + "[" * 63 + "]" * 63 + "}")
    assert read_text(tmp_path, to_json(event)) == [event]


def test_a_long_value_is_cut_in_the_sentence(tmp_path: Path) -> None:
    said = refusal(tmp_path, '{"process":["' + "x" * 100000 + '"],"seq":1}')
    assert said == f't.jsonl, line 1: field "process" must be a string, not ["{"x" * 57}…'


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (
            ['{"process":"p","seq":1}', '{"process":"p","seq":1,"id":"other"}'],
            'two events have process "p" and seq 1',
        ),
        (
            ['{"process":"p","seq":1,"id":"x"}', '{"process":"q","seq":1,"id":"x"}'],
            'two events have the id "x"',
        ),
        (
            [
                '{"process":"p","seq":1,"kind":"send","message":"m","to":["q"]}',
                '{"process":"q","seq":1,"kind":"send","message":"m","to":["p"]}',
            ],
            'the message "m" is sent twice',
        ),
    ],
)
def test_what_must_be_unique_is_unique_over_all_files(lines: list[str], said: str, tmp_path: Path) -> None:
    assert (
        refusal(tmp_path, "\n".join(lines)) == f"t.jsonl, line 1 and {tmp_path / 't.jsonl'}, line 2: {said}"
    )
    first, second = tmp_path / "1.jsonl", tmp_path / "2.jsonl"
    first.write_text(lines[0])
    second.write_text(lines[1])
    with pytest.raises(BadInput) as refused:
        read_trace([first, second])
    assert str(refused.value) == f"{first}, line 1 and {second}, line 1: {said}"


def test_a_file_given_twice_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    write_trace(path, [Event("p", 1)])
    with pytest.raises(BadInput, match='two events have process "p" and seq 1'):
        read_trace([path, path])


def test_a_line_longer_than_16_mib_is_refused_and_one_of_16_mib_is_read(tmp_path: Path) -> None:
    start, end = "{" + ONE + ',"text":"', '"}'
    longest = start + "x" * (MAX_LINE - len(start) - len(end)) + end
    path = tmp_path / "t.jsonl.gz"
    path.write_bytes(gzip.compress(longest.encode() + b"\r\n", compresslevel=1))
    assert len(read_trace(path)) == 1
    too_long = gzip.compress(b"\n" + longest.encode() + b" \n", compresslevel=1)
    assert refusal(tmp_path, too_long, path.name) == "t.jsonl.gz, line 2: the line is longer than 16 MiB"


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    latin = '{"process":"p","seq":1,"text":"é"}'.encode("latin-1")
    assert refusal(tmp_path, b"\n" + latin) == "t.jsonl, line 2: byte 32 of the line is not UTF-8"
    assert refusal(tmp_path, "{}".encode("utf-16")) == "t.jsonl, line 1: byte 1 of the line is not UTF-8"
    compressed = gzip.compress(b"{}")
    assert refusal(tmp_path, compressed) == "t.jsonl, line 1: byte 2 of the line is not UTF-8"


def test_a_byte_order_mark_is_refused(tmp_path: Path) -> None:
    said = "t.jsonl, line 1: the file begins with a byte order mark; save it without one"
    assert refusal(tmp_path, "\ufeff{" + ONE + "}") == said


def test_a_damaged_gzip_is_refused(tmp_path: Path) -> None:
    whole = gzip.compress(b'{"process":"p","seq":1}\n' * 3)
    cut = "t.jsonl.gz, line 1: the compressed file is cut off"
    assert refusal(tmp_path, whole[:5], "t.jsonl.gz") == cut
    assert refusal(tmp_path, whole[:20], "t.jsonl.gz") == cut
    bad = "t.jsonl.gz, line 1: this is not valid gzip"
    assert refusal(tmp_path, b"{" + ONE.encode() + b"}\n", "t.jsonl.gz") == bad
    assert refusal(tmp_path, whole[:10] + b"\xff" * 20, "t.jsonl.gz") == bad


def test_a_gzip_cut_off_after_good_lines_names_where_it_breaks(tmp_path: Path) -> None:
    # Incompressible lines, so that the cut falls far behind the first of them.
    lines = [json.dumps({"process": "p", "seq": seq, "text": os.urandom(600).hex()}) for seq in range(1, 401)]
    whole = gzip.compress("\n".join(lines).encode())
    said = refusal(tmp_path, whole[: len(whole) // 2], "t.jsonl.gz")
    assert said.endswith(": the compressed file is cut off")
    assert 100 < int(said.split("line ")[1].split(":")[0]) < 210


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    for name in ("folder", "folder.jsonl.gz"):
        (tmp_path / name).mkdir()
        with pytest.raises(BadInput, match=f"{name} cannot be read: Is a directory$"):
            read_trace(tmp_path / name)
    for name in ("missing.jsonl", "missing.jsonl.gz"):
        with pytest.raises(BadInput, match=f"{name} cannot be read: No such file or directory$"):
            read_trace(tmp_path / name)
    with pytest.raises(BadInput, match="cannot be read: embedded null byte"):
        read_trace("a\0b")


# ---------------------------------------------------------------- cycles


def test_an_execution_without_a_cycle_passes() -> None:
    check_acyclic([])
    check_acyclic(
        [
            Event("p2", 2, "deliver", message="a"),
            Event("p2", 1, "receive", message="a"),
            Event("p1", 1, "send", message="a", to=("p2",)),
            Event("p1", 2, parents=("p2#2", "nobody")),
            Event("p3", 5, "deliver", message="never sent"),
        ]
    )


@pytest.mark.parametrize(
    ("events", "cycle"),
    [
        # An event that names itself.
        ([Event("p", 1, id="e", parents=("e",))], "e → e"),
        # Two that name each other.
        ([Event("p", 1, parents=("q#1",)), Event("q", 1, parents=("p#1",))], "p#1 → q#1 → p#1"),
        # A delivery that stands before its own send.
        (
            [Event("p", 2, "send", message="a", to=("p",)), Event("p", 1, "deliver", message="a")],
            "p#1 → p#2 → p#1",
        ),
        # p receives b, then sends a; q receives a, then sends b. What comes before and after is not shown.
        (
            [
                Event("p", 1),
                Event("p", 2, "receive", message="b"),
                Event("p", 3, "send", message="a", to=("q",)),
                Event("p", 4),
                Event("q", 1, "receive", message="a"),
                Event("q", 2, "send", message="b", to=("p",)),
                Event("r", 1, "receive", message="b"),
            ],
            "p#2 → p#3 → q#1 → q#2 → p#2",
        ),
    ],
)
def test_a_cycle_is_shown(events: list[Event], cycle: str) -> None:
    for order in (events, events[::-1]):
        with pytest.raises(BadInput) as refused:
            check_acyclic(order)
        shown = str(refused.value).removeprefix(
            "the trace has a cycle, in which an event happened before itself: "
        )
        # A cycle has no beginning: compare it as the set of its steps.
        steps = [step.strip() for step in shown.split("→")]
        expected = [step.strip() for step in cycle.split("→")]
        assert steps[0] == steps[-1]
        assert set(itertools.pairwise(steps)) == set(itertools.pairwise(expected))


def test_a_long_cycle_is_found_without_recursion_and_shown_in_part() -> None:
    events = [Event("p", 1, parents=("p#50000",)), *(Event("p", seq) for seq in range(2, 50001))]
    with pytest.raises(BadInput) as refused:
        check_acyclic(events)
    shown = str(refused.value)
    assert "… 49990 more …" in shown
    assert len(shown) < 250


# ---------------------------------------------------------------- fuzz

TEXT = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=6)
INT64 = st.integers(-(2**63), 2**63 - 1)
ANYTHING = st.recursive(
    st.none() | st.booleans() | INT64 | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
EVENTS = st.builds(
    Event,
    process=TEXT,
    seq=st.integers(1, 2**63 - 1),
    kind=st.sampled_from(KINDS),
    id=TEXT,
    message=TEXT,
    to=st.lists(TEXT, max_size=3).map(tuple),
    group=st.none() | TEXT,
    parents=st.lists(TEXT, max_size=3).map(tuple),
    time=st.none() | INT64 | st.floats(allow_nan=False, allow_infinity=False),
    text=st.none() | TEXT,
    control=st.booleans(),
    stamp_entries=st.none() | st.integers(0, 2**63 - 1),
    stamp_bytes=st.none() | st.integers(0, 2**63 - 1),
    extra=st.dictionaries(TEXT.filter(lambda name: name not in FIELDS), ANYTHING, max_size=3),
)
BOUNDED = settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@BOUNDED
@given(st.lists(EVENTS, max_size=5), st.sampled_from(["t.jsonl", "t.jsonl.gz"]))
def test_any_events_come_back_as_they_went(tmp_path: Path, events: list[Event], name: str) -> None:
    different = []
    seen: set[object] = set()
    for event in events:
        keys = {("id", event.id), ("seq", event.process, event.seq), ("message", event.message)}
        if not keys & seen:
            different.append(event)
            seen |= keys
    write_trace(tmp_path / name, different)
    again = read_trace(tmp_path / name)
    assert again == different
    assert [type(event.time) for event in again] == [type(event.time) for event in different]


def read_or_refuse(path: Path, data: bytes) -> None:
    """Anything but events or BadInput fails the test; so does an event that cannot be written again."""
    path.write_bytes(data)
    try:
        events = read_trace(path)
    except BadInput as refused:
        assert str(refused).startswith(str(path))
        assert "\n" not in str(refused)
        str(refused).encode()
        return
    write_trace(path, events)
    assert read_trace(path) == events


@BOUNDED
@given(st.binary(max_size=200), st.sampled_from(["t.jsonl", "t.jsonl.gz"]), st.booleans())
def test_random_bytes_are_read_or_refused(tmp_path: Path, data: bytes, name: str, packed: bool) -> None:
    read_or_refuse(tmp_path / name, gzip.compress(data) if packed else data)


NEARLY = st.fixed_dictionaries(
    {"process": TEXT | ANYTHING, "seq": st.integers(1, 3) | ANYTHING},
    optional={name: ANYTHING | st.sampled_from(KINDS) for name in FIELDS[2:]} | {"x": ANYTHING},
)


@BOUNDED
@given(st.lists(NEARLY | ANYTHING, max_size=4), st.booleans())
def test_random_json_is_read_or_refused(tmp_path: Path, values: list[object], ascii_only: bool) -> None:
    lines = "\n".join(json.dumps(value, ensure_ascii=ascii_only) for value in values)
    read_or_refuse(tmp_path / "t.jsonl", lines.encode())


@BOUNDED
@given(EVENTS, st.data())
def test_a_good_line_with_one_byte_changed_is_read_or_refused(
    tmp_path: Path, event: Event, data: st.DataObject
) -> None:
    line = bytearray(to_json(event).encode())
    line[data.draw(st.integers(0, len(line) - 1))] = data.draw(st.integers(0, 255))
    read_or_refuse(tmp_path / "t.jsonl", bytes(line))


# ---------------------------------------------------------------- real traces

COUNTS = {
    "vc_chord": (1235, 8),
    "mpi_epoch8": (29952, 8),
    "git_antidote_lines": (2260, 112),
}


@pytest.mark.skipif(
    not REAL, reason=f"no real traces in {TRACES / 'events'}; set CAUSET_TRACES to their folder"
)
def test_every_real_trace_is_read_and_has_no_cycle() -> None:
    counted = {}
    for path in REAL:
        events = read_trace(path)
        check_acyclic(events)
        assert all(event.kind == "local" for event in events)
        per_process = Counter(event.process for event in events)
        assert all(event.seq <= per_process[event.process] for event in events), f"{path} has a gap"
        counted[path.name.removesuffix(".jsonl.gz")] = (len(events), len(per_process))
    assert {name: counts for name, counts in counted.items() if name in COUNTS} == {
        name: counts for name, counts in COUNTS.items() if name in counted
    }


@pytest.mark.skipif(
    not REAL, reason=f"no real traces in {TRACES / 'events'}; set CAUSET_TRACES to their folder"
)
def test_a_real_trace_written_again_is_the_same_trace(tmp_path: Path) -> None:
    events = read_trace(REAL[-1])
    write_trace(tmp_path / "again.jsonl.gz", events)
    assert read_trace(tmp_path / "again.jsonl.gz") == events
    renamed = [dataclasses.replace(event, extra={"seen": True}) for event in events]
    write_trace(tmp_path / "more.jsonl", renamed)
    assert read_trace(tmp_path / "more.jsonl") == renamed

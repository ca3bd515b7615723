"""ShiViz logs in and out: happened-before is the order of the clocks, damage is named, nothing is lost."""

from __future__ import annotations

import dataclasses
import gzip
import json
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from causet.errors import BadInput
from causet.formats.execution import BACKWARDS, FORGETS, GAP, UNKNOWN_PARENT, UNMATCHED, Execution
from causet.formats.schema import FIELDS
from causet.formats.shiviz import jsregex
from causet.formats.shiviz.clocks import direct_causes, vector_clocks
from causet.formats.shiviz.jsregex import expression_of, find_all
from causet.formats.shiviz.read import read_shiviz
from causet.formats.shiviz.write import write_shiviz
from causet.formats.trace import read_trace, write_trace
from causet.model import Event
from tests.helpers.places import TRACES
from tests.helpers.shiviz_logs import GOVECTOR, Clocks, clocks_of, real

VOLDEMORT = (
    r"\[(?<date>\d{4}-\d{2}-\d{2} (\d{2}:){2}\d{2},\d{3}) (?<path>\S*)\] (?<priority>(INFO|WARN)) "
    r"(?<event>.*)\n(?<host>\S*) (?<clock>{.*})"
)
SITES = (
    r"(?<ip>(\d{1,3}\.){3}\d{1,3}) (?<date>(\d{1,2}/){2}\d{4} (\d{2}:){2}\d{2} (AM|PM)) "
    r"(?<action>(INFO|GET|POST)) (?<event>.*)\n(?<host>\w*) (?<clock>.*)"
)
AKKA = r"\[\w+\] \[(?<date>([^ ]+ [^ ]+))\] [^ ]+ \[akka://Broadcast/user/(?<host>\w+)\]" + (
    r" (?<clock>.*\}) (?<event>.*)"
)
SECTIONS = r"^=== (?<trace>.*) ===$"

LOGS = {
    "chord.log": (GOVECTOR, None, "1235/8/541"),
    "simpledb.log": (r"(?<event>.*)\n(?<host>\S*) (?<clock>{.*})", None, "509/5/95"),
    "voldemort-simple-threadnames.log": (VOLDEMORT, None, "863/19/34"),
    "voldemort.log": (VOLDEMORT, None, "864/20/34"),
    "simple-reliable-broadcast.log": (AKKA, None, "39/3/16"),
    "tsviz_fslock_24t_4sp.log": (
        r"(?<timestamp>(\d*)) (?<event>.*)\n(?<host>\w*) (?<clock>.*)",
        None,
        "2001/30/98",
    ),
    "facebook-multiple.log": (SITES, SECTIONS, "47/4/23; 41/4/20"),
    "multiple-comparison.log": (SITES, SECTIONS, "8/2/4; 8/2/4; 8/2/4; 8/2/4; 8/2/4"),
    "tracechecker-echo.log": (GOVECTOR, None, "169/3/40"),
    "blueprint-leaf.log": (GOVECTOR, None, "107/2/30"),
}
"""Parser, delimiter, and events/hosts/cross edges of each execution."""


def read(
    folder: Path, text: str, parser: str | None = GOVECTOR, delimiter: str | None = None
) -> list[Execution]:
    path = folder / "x.log"
    path.write_text(text, encoding="utf-8", newline="")
    return read_shiviz(path, parser=parser, delimiter=delimiter)


def refusal(folder: Path, text: str, parser: str | None = GOVECTOR, delimiter: str | None = None) -> str:
    """The one sentence with which this log is refused, its folder taken off."""
    with pytest.raises(BadInput) as refused:
        read(folder, text, parser, delimiter)
    assert "\n" not in str(refused.value)
    return str(refused.value).replace(f"{folder}{os.sep}", "")


def log(*entries: str) -> str:
    """A log for GOVECTOR from entries such as `a {"a":1} text`."""
    return "".join(
        f"{host} {clock}}}\n{text.strip() or 'x'}\n"
        for host, _, rest in (entry.partition(" ") for entry in entries)
        for clock, _, text in [rest.partition("}")]
    )


def pasts(events: Sequence[Event]) -> dict[str, int]:
    """For each event the set, as bits, of the events that happened before it or are it: brute force."""
    bit = {event.id: 1 << number for number, event in enumerate(events)}
    sends = {event.message: event.id for event in events if event.kind == "send"}
    causes: dict[str, list[str]] = {}
    by_process: dict[str, list[Event]] = {}
    for event in sorted(events, key=lambda event: event.seq):
        earlier = by_process.setdefault(event.process, [])
        causes[event.id] = [parent for parent in event.parents if parent in bit]
        if event.kind in ("receive", "deliver") and event.message in sends:
            causes[event.id].append(sends[event.message])
        if earlier:
            causes[event.id].append(earlier[-1].id)
        earlier.append(event)
    found: dict[str, int] = {}
    todo = list(causes)
    while todo:
        name = todo[-1]
        missing = [cause for cause in causes[name] if cause not in found]
        if missing:
            todo += missing
            continue
        todo.pop()
        past = bit[name]
        for cause in causes[name]:
            past |= found[cause]
        found[name] = past
    return found


def check_order(events: Sequence[Event], clocks: Clocks) -> None:
    """On every pair: one happened before the other exactly if the other's clock knows it."""
    found = pasts(events)
    point = [(event.process, event.seq) for event in events]
    assert sorted(point) == sorted(clocks)
    for event in events:
        clock = clocks[event.process, event.seq]
        expected = sum(
            1 << number for number, (host, value) in enumerate(point) if clock.get(host, 0) >= value
        )
        assert found[event.id] == expected, event


# ---------------------------------------------------------------- real logs


@real
@pytest.mark.parametrize("name", LOGS)
def test_a_real_log_has_the_known_numbers_and_the_order_of_its_clocks(name: str) -> None:
    parser, delimiter, numbers = LOGS[name]
    path = TRACES / "shiviz" / name
    executions = read_shiviz(path, parser=parser, delimiter=delimiter)
    assert numbers == "; ".join(f"{len(each.events)}/{each.processes}/{each.edges}" for each in executions)
    text = path.read_text(encoding="utf-8")
    parts = re.split(r"(?m)^=== .* ===$", text)[1:] if delimiter else [text]
    for execution, part in zip(executions, parts, strict=True):
        check_order(execution.events, clocks_of(part, parser))


@real
def test_real_faults_are_counted_and_real_names_are_found() -> None:
    faults = {}
    names = {}
    for name, (parser, delimiter, _) in LOGS.items():
        executions = read_shiviz(TRACES / "shiviz" / name, parser=parser, delimiter=delimiter)
        faults[name] = [(fault.kind, fault.count) for each in executions for fault in each.faults]
        names[name] = [each.name for each in executions]
    # In one line an entry and its clock are glued together: the only one of a host, lost to every reader.
    assert {name: found for name, found in faults.items() if found} == {
        "voldemort-simple-threadnames.log": [(UNMATCHED, 1)]
    }
    assert names["facebook-multiple.log"] == ["Execution #1", "Execution #2"]
    assert names["multiple-comparison.log"][0] == "Base execution"
    assert names["chord.log"] == [""]


@real
@pytest.mark.parametrize("name", ["tracechecker-echo.log", "blueprint-leaf.log"])
def test_a_log_that_begins_with_its_parser_needs_no_other(name: str) -> None:
    path = TRACES / "shiviz" / name
    assert read_shiviz(path) == read_shiviz(path, parser=GOVECTOR)


@real
@pytest.mark.parametrize(
    ("name", "events"),
    [
        ("chord.log", "vc_chord"),
        ("simpledb.log", "vc_simpledb"),
        ("voldemort-simple-threadnames.log", "vc_voldemort"),
    ],
)
def test_a_real_log_is_the_same_trace_that_others_made_of_it(name: str, events: str) -> None:
    (execution,) = read_shiviz(TRACES / "shiviz" / name, parser=LOGS[name][0])
    expected = read_trace(TRACES / "events" / f"{events}.jsonl.gz")
    assert [(e.id, e.process, e.seq, set(e.parents)) for e in execution.events] == [
        (e.id, e.process, e.seq, set(e.parents)) for e in expected
    ]


@real
@pytest.mark.parametrize("name", LOGS)
def test_a_real_log_to_traces_and_back_to_a_log_and_traces_loses_nothing(name: str, tmp_path: Path) -> None:
    parser, delimiter, _ = LOGS[name]
    first = read_shiviz(TRACES / "shiviz" / name, parser=parser, delimiter=delimiter)
    traces = []
    for number, execution in enumerate(first):
        write_trace(tmp_path / f"{number}.jsonl", execution.events)
        traces.append(Execution(execution.name, read_trace(tmp_path / f"{number}.jsonl")))
    write_shiviz(tmp_path / "again.log", traces)
    second = read_shiviz(tmp_path / "again.log")
    assert [(each.name, list(each.events)) for each in second] == [
        (each.name, list(each.events)) for each in first
    ]
    for one, two in zip(first, second, strict=True):
        assert vector_clocks(one.events) == vector_clocks(two.events)


# ---------------------------------------------------------------- a small log


SMALL = log(
    'a {"a":1} sends',
    'b {"b":1, "a":1} hears a',
    'b {"b":2, "a":1} sends',
    'c {"c":1, "b":2, "a":1} hears b',
    'a {"a":2} alone',
    'c {"c":2, "a":2, "b":2} hears a',
)


def test_parents_are_the_direct_causes_and_no_others(tmp_path: Path) -> None:
    (execution,) = read(tmp_path, SMALL)
    assert list(execution.events) == [
        Event("a", 1, id="a:1", text="sends"),
        Event("b", 1, id="b:1", parents=("a:1",), text="hears a"),
        Event("b", 2, id="b:2", text="sends"),
        Event("c", 1, id="c:1", parents=("b:2",), text="hears b"),  # and so a:1, which is not named
        Event("a", 2, id="a:2", text="alone"),
        Event("c", 2, id="c:2", parents=("a:2",), text="hears a"),
    ]
    assert (execution.name, execution.faults) == ("", ())
    assert (execution.processes, execution.edges, execution.with_cause) == (3, 3, 3)


def test_an_absent_entry_is_a_zero_and_a_whole_float_is_a_count(tmp_path: Path) -> None:
    (with_zeros,) = read(tmp_path, 'a {"a":1, "b":0}\nx\nb {"a":0.0, "b":1.0}\ny\n')
    (without,) = read(tmp_path, 'a {"a":1}\nx\nb {"b":1}\ny\n')
    assert with_zeros == without


@pytest.mark.parametrize(
    "parser", [r"(?<host>\S*) (?<clock>{.*})\n(?<event>.*)", r'(?<host>\S*) "(?<clock>.*)"\n(?<event>.*)']
)
def test_a_clock_may_stand_in_a_string_with_its_quotes_escaped(parser: str, tmp_path: Path) -> None:
    """As TLA+ prints a record in a string, with or without the outer quotes."""
    quote = '"' if '"' in parser else ""
    entries = [
        ("a", r"{\"a\":1}", "sends"),
        ("b", r"{\"b\":1, \"a\":1, \"q\\\"\\\\q\":3}", "hears a"),
        ("ü", r"{\"\u00fc\":1, \"b\":1}", "hears b"),
    ]
    lines = "".join(f"{host} {quote}{clock}{quote}\n{text}\n" for host, clock, text in entries)
    (execution,) = read(tmp_path, lines, parser)
    assert list(execution.events) == [
        Event("a", 1, id="a:1", text="sends"),
        Event("b", 1, id="b:1", parents=("a:1", 'q"\\q:3'), text="hears a"),
        Event("ü", 1, id="ü:1", parents=("b:1",), text="hears b"),
    ]


@pytest.mark.parametrize(
    ("clock", "said"),
    [
        (r"{\"a\":1", "this is not JSON"),
        (r"{\"a\":1,}", "this is not JSON"),
        (r"{\"a\":1}\x", "this is not JSON: Expecting property name"),
        (r"{\"a\":-1}", 'the entry of "a" must be a count, not -1'),
        (r"{\"b\":1}", 'no entry for its own host "a"'),
        (r"{\"a\":1,\"\\ud800\":1}", "half a surrogate pair"),
        (r"{\"a\":1,\"\ud800\":1}", "half a surrogate pair"),
        (r'"\"{}\""', "a clock must be an object"),
    ],
)
def test_an_escaped_clock_that_is_none_is_refused_as_another_is(
    clock: str, said: str, tmp_path: Path
) -> None:
    refused = refusal(tmp_path, f"a {clock}\nx\n", r"(?<host>\w+) (?<clock>.*)\n(?<event>.*)")
    assert refused.startswith('x.log, line 1: field "clock"') and said in refused


def test_order_in_the_file_does_not_matter(tmp_path: Path) -> None:
    entries = SMALL.splitlines()
    pairs = list(zip(entries[::2], entries[1::2], strict=True))
    (forward,) = read(tmp_path, SMALL)
    (backward,) = read(tmp_path, "".join(f"{one}\n{two}\n" for one, two in reversed(pairs)))
    assert list(backward.events) == list(forward.events)[::-1]


def test_a_file_may_begin_with_parser_and_delimiter(tmp_path: Path) -> None:
    text = f"{GOVECTOR}\n{SECTIONS}\n=== one ===\n{SMALL}=== two ===\n\n{SMALL}"
    one, two = read(tmp_path, text, None)
    assert (one.name, two.name) == ("one", "two")
    assert one.events == two.events
    assert len(one.events) == 6
    # Whoever gives a parser is heard, and the file's own two lines are still none of the log.
    again = read(tmp_path, text, r"(?<host>\w+) (?<clock>.*)\n(?<event>.*)", r"^=== (?<trace>\w)\w+ ===$")
    assert [(each.name, len(each.events), each.faults) for each in again] == [("o", 6, ()), ("t", 6, ())]
    # Whoever gives only a parser means the file's own delimiter, unless they say that there is none.
    assert [each.name for each in read(tmp_path, text)] == ["one", "two"]
    assert "seems to have restarted" in refusal(tmp_path, text, GOVECTOR, "")
    # A blank second line is no delimiter.
    (alone,) = read(tmp_path, f"{GOVECTOR}\n \n{SMALL}", None)
    assert alone.events == one.events


def test_a_delimiter_without_a_name_and_text_before_the_first(tmp_path: Path) -> None:
    executions = read(tmp_path, f"made on Monday\n----\n{SMALL}----\n\n----\n{SMALL}", delimiter="^-+$")
    assert [(each.name, len(each.events)) for each in executions] == [("", 0), ("", 6), ("", 6)]
    (fault,) = executions[0].faults
    assert (fault.kind, fault.count) == (UNMATCHED, 1)
    assert fault.places[0].endswith('x.log, line 1: "made on Monday"')


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends_are_those_of_a_text_area(end: str, tmp_path: Path) -> None:
    (execution,) = read(tmp_path, SMALL.replace("\n", end))
    assert execution == read(tmp_path, SMALL)[0]
    path = tmp_path / "x.log.gz"
    path.write_bytes(gzip.compress(b"\xef\xbb\xbf" + SMALL.encode()))
    assert read_shiviz(path, parser=GOVECTOR)[0] == execution


def test_other_groups_are_kept_and_never_break_the_trace(tmp_path: Path) -> None:
    fields = " ".join(rf"(?<{name}>\S*)" for name in ("time", "id", "text_", "date", "timestamp"))
    parser = rf"(?<host>\w+) (?<clock>{{.*}}) {fields} (?<event>.*)"
    (execution,) = read(tmp_path, 'a {"a":1} 12:30 7 t - 99 said\na {"a":2}     0123 more\n', parser)
    first, second = execution.events
    assert first.extra == {"time_": "12:30", "id_": "7", "text__": "t", "date": "-"}
    assert (first.time, first.text, first.id) == (99, "said", "a:1")
    # What is empty is not there; 0123 is no integer that could be written again.
    assert (second.extra, second.time) == ({"timestamp": "0123"}, None)
    write_shiviz(tmp_path / "y.log", [execution])
    assert read_shiviz(tmp_path / "y.log") == [execution]


# ---------------------------------------------------------------- damage


def test_lines_that_do_not_match_are_counted_with_their_places(tmp_path: Path) -> None:
    text = "# header\n" + SMALL.replace("c {", "oops\n\n  \nc {", 1) + "the end"
    (execution,) = read(tmp_path, text)
    (fault,) = execution.faults
    assert (fault.kind, fault.count) == (UNMATCHED, 3)
    assert [place.rpartition(os.sep)[2] for place in fault.places] == [
        'x.log, line 1: "# header"',
        'x.log, line 8: "oops"',
        'x.log, line 17: "the end"',
    ]
    assert execution.events == read(tmp_path, SMALL)[0].events


def test_a_lost_entry_is_a_gap_and_an_unknown_parent_and_hides_nothing_else(tmp_path: Path) -> None:
    text = log(
        'a {"a":1} first',
        'a {"a":3} third',  # the second was lost
        'b {"b":1,"a":2} hears the second',
        'c {"c":2,"d":7} c:1 and all of d were lost',
    )
    (execution,) = read(tmp_path, text)
    # a:1 happened before b:1 all the same.
    assert [event.parents for event in execution.events] == [(), (), ("a:1", "a:2"), ("d:7",)]
    found = {fault.kind: fault for fault in execution.faults}
    assert {kind: fault.count for kind, fault in found.items()} == {GAP: 2, UNKNOWN_PARENT: 2}
    assert [place.partition(": ")[2] for place in found[GAP].places] == [
        '"a" jumps from 1 to 3',
        '"c" begins at 2',
    ]
    assert found[UNKNOWN_PARENT].places[0].endswith('x.log, line 5: "b:1" names "a:2"')


def test_a_host_that_restarted_is_told_as_that(tmp_path: Path) -> None:
    text = log('a {"a":1}', 'a {"a":2}', 'b {"b":1,"a":2}', 'a {"a":1}', 'a {"a":2}')
    assert refusal(tmp_path, text) == (
        'x.log, line 7: field "clock": host "a" uses its clock value 1 again, already used in x.log, line 1; '
        "the host seems to have restarted; put a delimiter between its runs, or give the host of each run a "
        "name of its own"
    )


def test_clocks_that_contradict_each_other_are_log_faults(tmp_path: Path) -> None:
    (execution,) = read(
        tmp_path,
        log('a {"a":1}', 'b {"b":1,"a":1}', 'b {"b":2}', 'c {"c":1,"b":1}'),
    )
    found = {fault.kind: fault.places[0].partition(": ")[2] for fault in execution.faults}
    assert found == {
        BACKWARDS: "b:2 comes after b:1, but does not know a:1 as that does",
        FORGETS: "c:1 comes after b:1, but does not know a:1 as that does",
    }


def test_clocks_that_know_each_other_are_a_cycle_and_it_is_shown(tmp_path: Path) -> None:
    two = log('a {"a":1,"b":1}', 'b {"b":1,"a":1}')
    assert refusal(tmp_path, two) == (
        "x.log: the trace has a cycle, in which an event happened before itself: a:1 → b:1 → a:1"
    )
    # Three that all know each other must not excuse one another.
    three = log(*(f'{host} {{"a":1,"b":1,"c":1}}' for host in "abc"))
    assert "has a cycle" in refusal(tmp_path, three)


@pytest.mark.parametrize(
    ("clock", "said"),
    [
        ("{}", 'field "clock" has no entry for its own host "a"'),
        ('{"b":1}', 'field "clock" has no entry for its own host "a"'),
        ('{"a":0}', 'field "clock" has no entry for its own host "a"'),
        ('{"a":-1}', 'field "clock": the entry of "a" must be a count, not -1'),
        ('{"a":1.5}', 'field "clock": the entry of "a" must be a count, not 1.5'),
        ('{"a":true}', 'field "clock": the entry of "a" must be a count, not true'),
        ('{"a":1,"b":"2"}', 'field "clock": the entry of "b" must be a count, not "2"'),
        ('{"a":1,"b":{}}', 'field "clock": the entry of "b" must be a count, not {}'),
        ('{"a":1,"a":2}', 'field "clock" "{\\"a\\":1,\\"a\\":2}": "a" appears twice in one object'),
        ("{a:1}", 'field "clock" "{a:1}": this is not JSON: Expecting property name enclosed in double '
         "quotes at column 2"),
        ('{"a":9223372036854775808}', 'field "clock" "{\\"a\\":9223372036854775808}": field "a": the '
         "integer 9223372036854775808 does not fit 64 bits"),
        ('{"a":1,"\\ud800":1}', 'field "clock" "{\\"a\\":1,\\"\\\\ud800\\":1}": field "\\ud800": half a '
         "surrogate pair is not text"),
    ],
)  # fmt: skip
def test_a_clock_that_is_none_is_refused_with_its_line(clock: str, said: str, tmp_path: Path) -> None:
    assert refusal(tmp_path, f"{SMALL}\na {clock}\nx\n") == f"x.log, line 14: {said}"


def test_a_list_is_no_clock(tmp_path: Path) -> None:
    said = refusal(tmp_path, "a [1]\nx\n", r"(?<host>\w+) (?<clock>.*)\n(?<event>.*)")
    assert said == 'x.log, line 1: field "clock" "[1]": a clock must be an object of host and count'


@pytest.mark.parametrize(
    ("parser", "said"),
    [
        (None, "x.log: a ShiViz log needs its parser: give one"),
        ("(?<host>a)(?<clock>)", 'the parser "(?<host>a)(?<clock>)" has no group event: write (?<event>…)'),
        ("(?<host>a", 'the parser "(?<host>a": Unbalanced parenthesis'),
        ("(?<host>[a)", 'the parser "(?<host>[a)": Unbalanced bracket'),
        ("(?<host>a))", 'the parser "(?<host>a))": Unbalanced parenthesis'),
        ("(?<x>a)(?<x>b)", 'the parser "(?<x>a)(?<x>b)": Duplicate capture group name'),
        ("(?<1>a)", 'the parser "(?<1>a)": Invalid token at named capture group identifier'),
        ("(?P<x>a)", 'the parser "(?P<x>a)": Invalid group modifier'),
        ("*", 'the parser "*": Invalid atom character'),
        ("a++", 'the parser "a++": Invalid atom character'),
        ("(?<host>a{99999})", "has no group clock"),
        ("[b-a]", 'the parser "[b-a]": Range values reversed'),
        ("a\\", 'the parser "a\\\\": Incomplete escape'),
        (r"(?<x>a)\k<y>", "Backreference to invalid named capture group: y"),
        ("()" * 65, "it has more than 64 groups"),
        ("a" * 4001, "the parser is longer than 4,000 characters"),
        ("(?:" * 1300, "too deeply nested"),
        ("(?:" * 1300 + ")" * 100, "too deeply nested"),
        (r"(?<host>zzz)(?<clock>zzz)(?<event>zzz)", "x.log: the parser"),
    ],
)  # fmt: skip
def test_an_expression_that_will_not_do_is_refused(parser: str | None, said: str, tmp_path: Path) -> None:
    assert said in refusal(tmp_path, SMALL, parser)


def test_groups_that_stand_too_deep_are_refused() -> None:
    with pytest.raises(BadInput, match="too deeply nested"):
        expression_of("(?:" * 990 + "a" + ")" * 990)


@pytest.mark.parametrize("data", ["", "\n \n", f"{GOVECTOR}\n\n"])
def test_a_file_without_a_log_is_refused(data: str, tmp_path: Path) -> None:
    assert refusal(tmp_path, data) == "x.log: there is no log in this file"


def test_bytes_that_are_no_text_are_refused_with_their_line(tmp_path: Path) -> None:
    (tmp_path / "x.log").write_bytes(SMALL.encode() + b"\xff")
    with pytest.raises(BadInput, match="line 13: not UTF-8 text"):
        read_shiviz(tmp_path / "x.log", parser=GOVECTOR)


def test_what_a_stranger_could_make_endless_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jsregex, "SECONDS", 0.5)
    endless = r"(?<host>(a+)+)b(?<clock>{.*})(?<event>.*)"
    said = refusal(tmp_path, f"{endless}\n\n{'a' * 60}\n", None)
    assert "did not end within 1 s; it probably repeats repetitions" in said
    assert "the delimiter" in refusal(tmp_path, SMALL + "a" * 60, GOVECTOR, "^(a+)+$b")
    assert "line 13: the line is longer than 1,048,576 characters" in refusal(
        tmp_path, SMALL + "a" * 2**20 + "b"
    )
    monkeypatch.setattr(jsregex, "MAX_MATCHES", 5)
    assert "matches more than 5 times" in refusal(tmp_path, SMALL)


def test_an_expression_that_matches_nothing_everywhere_ends(tmp_path: Path) -> None:
    assert "matches nothing" in refusal(tmp_path, SMALL, "(?<host>)(?<clock>)(?<event>)")
    (execution,) = read(tmp_path, SMALL, GOVECTOR, "z*")
    assert len(execution.events) == 6


# ---------------------------------------------------------------- JavaScript's expressions

PINNED = [
    # What node 20 finds with the flags gm (the last one counts as two there): matches that are not empty.
    (r"\d+", "1٣2", [(0, 1), (2, 3)]),
    (r"\w+", "aéb_1", [(0, 1), (2, 5)]),
    (r"\s+", "a\xa0\ufeff\u2028b\x1cc\x85d", [(1, 4)]),
    (r"\S+", "a\xa0b\x1cc", [(0, 1), (2, 5)]),
    (r".+", "a\u2028b\nc\x85d", [(0, 1), (2, 3), (4, 7)]),
    (r"^.", "ab\ncd\u2029ef", [(0, 1), (3, 4), (6, 7)]),
    (r".$", "ab\ncd\u2029ef\n", [(1, 2), (4, 5), (7, 8)]),
    (r"\bé?b\b", "éb b", [(1, 2), (3, 4)]),
    (r"{.*}", '{"a":1}', [(0, 7)]),
    (r"a{,2}", "aa{,2}", [(1, 6)]),
    (r"a{2}", "aaa", [(0, 2)]),
    (r"x{a}", "x{a}", [(0, 4)]),
    (r"[]a|b", "ab", [(1, 2)]),
    (r"[^]", "\n", [(0, 1)]),
    (r"[\w-.]+", "a-.~b", [(0, 3), (4, 5)]),
    (r"[[&&a]+", "[&a]", [(0, 3)]),
    (r"[\]\-\\]+", "]-\\a", [(0, 3)]),
    (r"[\b]", "\x08b", [(0, 1)]),
    (r"[^\S\n]+", "a \t\n b", [(1, 3), (4, 5)]),
    (r"\A\Z\z\e\p{L}", "AZzep{L}", [(0, 8)]),
    (r"\x41\u0042\cJ\0\/", "AB\n\0/", [(0, 5)]),
    (r"\x4\u4", "x4u4", [(0, 4)]),
    (r"(a)|b\1c", "bc", [(0, 2)]),
    (r"\1(a)", "a", [(0, 1)]),
    (r"(?<q>['\"]).*?\k<q>", '\'a"b\' "c"', [(0, 5), (6, 9)]),
    (r"\2\7", "\x02\x07", [(0, 2)]),
    (r"(?<=a)b|(?<!a)c", "ab ac c", [(1, 2), (6, 7)]),
    (r"(?<=a+)b", "aab b", [(2, 3)]),
    (r"|a", "aa", []),
    (r"\ud83d\ude00", "😀", [(0, 1)]),
]


def spans(expression: str, text: str) -> list[tuple[int, int]]:
    (found,) = find_all(expression_of(expression), text, [(0, len(text))])
    return [(match.start, match.end) for match in found]


@pytest.mark.parametrize(("expression", "text", "expected"), PINNED, ids=[case[0] for case in PINNED])
def test_an_expression_means_what_it_means_in_javascript(
    expression: str, text: str, expected: list[tuple[int, int]]
) -> None:
    assert spans(expression, text) == expected


def test_pieces_are_matched_as_if_they_were_alone() -> None:
    first, second = find_all(expression_of("(?<x>^b$)|(?<y>a)"), "abba", [(0, 2), (2, 3)])
    assert [(match.start, match.end, match.groups) for match in first] == [(0, 1, {"y": (0, 1)})]
    assert [(match.start, match.end, match.groups) for match in second] == [(2, 3, {"x": (2, 3)})]


ATOMS = (
    *("a", "b", "1", " ", "{", "}", "]", "-", ".", "^", "$", "é", "/", "(", ")", "(?:", "(?=", "(?!", "|"),
    *(r"\d", r"\D", r"\w", r"\W", r"\s", r"\S", r"\b", r"\B", r"\n", r"\x41", r"\x4", r"\u0061", r"\0"),
    *(r"\1", r"\8", r"\cJ", r"\c", r"\A", r"\z", r"\e", r"\p{L}", r"\{", r"\k<x>", "[ab]", "[^ab]", "[]"),
    *("[^]", r"[\w-.]", "[a-]", r"[\d\s]", r"[^\S]", r"[\b]", "[[]", "[&&a]", "[--/]", r"[\]]", "{2}"),
    *("(?<x>", "{1,2}", "{,2}"),
)  # fmt: skip
TEXTS = (
    "ab1 {b}\na-1\n\nab",
    "a\u2028b\xa0c\n é1]",
    "\x0b\x1c\x85 \ufeff_",
    "{a} {,2} k p{L} Aze",
    " \\cJ\n8\x08",
)
NODE = """
const found = JSON.parse(require("fs").readFileSync(0)).map(([source, text]) => {
  try {
    return [...text.matchAll(new RegExp(source, "gm"))]
      .filter((match) => match[0]).map((match) => [match.index, match.index + match[0].length]);
  } catch (error) { return null; }
});
console.log(JSON.stringify(found));
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed, so there is nobody to ask")
def test_random_expressions_find_what_node_finds() -> None:
    random = Random(5)
    pieces = []
    asked: list[tuple[str, str]] = []
    while len(asked) < 150:
        source = "".join(random.choices(ATOMS, k=random.randint(1, 6)))
        try:
            expression = expression_of(source)
        except BadInput:
            continue  # JavaScript refuses it too
        text = random.choice(TEXTS)
        pieces.append((expression, text))
        asked.append((source, text))
    told = subprocess.run(
        ["node", "-e", NODE], input=json.dumps(asked).encode(), capture_output=True, check=True
    )
    compared = 0
    for (expression, text), expected in zip(pieces, json.loads(told.stdout), strict=True):
        if expected is None:
            continue  # a few that node refuses
        (found,) = find_all(expression, text, [(0, len(text))])
        assert [[match.start, match.end] for match in found] == expected, expression
        compared += 1
    assert compared > 100


# ---------------------------------------------------------------- writing


def test_what_is_written_begins_with_its_expressions(tmp_path: Path) -> None:
    (execution,) = read(tmp_path, SMALL)
    assert write_shiviz(tmp_path / "y.log", [execution]) == 6
    assert (tmp_path / "y.log").read_text().split("\n")[:5] == [
        r"^(?<host>[^\t\n]*)\t(?<event>[^\t\n]*)\t(?<clock>\{.*\})$",
        "",
        'a\tsends\t{"a":1}',
        'b\thears a\t{"a":1,"b":1}',
        'b\tsends\t{"a":1,"b":2}',
    ]
    named = dataclasses.replace(execution, name="run 1")
    write_shiviz(tmp_path / "y.log", [named, named])
    assert (tmp_path / "y.log").read_text().split("\n")[1:4:2] == [SECTIONS, 'a\tsends\t{"a":1}']
    assert [each.name for each in read_shiviz(tmp_path / "y.log")] == ["run 1", "run 1 (2)"]


def test_a_trace_of_messages_comes_back_as_it_went(tmp_path: Path) -> None:
    events = [
        Event(
            "p", 1, "send", message="m", to=("q", "r"), time=1.5, group="g", stamp_entries=2, stamp_bytes=0
        ),
        Event("q", 1, "receive", message="m", time=7),
        Event("q", 2, "deliver", message="m", time=8, extra={"n": 1, "list": [None, {"a": 1}]}),
        Event("q", 3, id="own id", parents=("elsewhere",), control=True, text=""),
        Event("r", 1, "deliver", message="m", parents=("own id",)),
        Event("r", 2, "receive", message="never sent", text="two\nlines\tand a tab"),
    ]
    write_shiviz(tmp_path / "y.log", [Execution("", events)])
    (execution,) = read_shiviz(tmp_path / "y.log")
    assert list(execution.events) == events
    assert {fault.kind for fault in execution.faults} == {
        UNKNOWN_PARENT,
        "received or delivered without a send",
    }


def test_lost_entries_are_still_in_the_clocks_when_they_come_back(tmp_path: Path) -> None:
    text = log(
        'a {"a":1}',
        'a {"a":4}',
        'b {"b":1,"a":3,"d":7}',
        'b {"b":2,"a":3,"d":7}',
        'c {"c":1,"b":2,"a":3,"d":7}',
    )
    first = read(tmp_path, text)
    write_shiviz(tmp_path / "y.log", first)
    assert '{"a":3,"b":2,"c":1,"d":7}' in (tmp_path / "y.log").read_text()
    second = read_shiviz(tmp_path / "y.log")
    assert [list(each.events) for each in second] == [list(each.events) for each in first]


ODD = [
    "",
    " ",
    "a b",
    "\t",
    "x\ny",
    'q"q',
    "{",
    "} {",
    "ü",
    "\u2028",
    "=== a ===",
    "a\\b",
    '"a b"',
    "a:1",
    "\\t",
    "😀",
]


def test_hosts_texts_and_fields_with_odd_characters_survive(tmp_path: Path) -> None:
    events = []
    for number, name in enumerate(ODD):
        parents = (f"{ODD[number - 1]}:1",) if number else ()
        extra = {
            "plain": name,
            "time_": name,
            "host": name,
            "odd name": name,
            "timestamp": name,
            "causet": "x",
        }
        events.append(Event(name, 1, id=f"{name}:1", parents=parents, text=name, extra=extra))
        events.append(Event(name, 2, id=f"{name}:2", time=number if number % 2 else None))
    execution = Execution("what\n a name", events)
    write_shiviz(tmp_path / "y.log", [execution, Execution("", events)])
    again = read_shiviz(tmp_path / "y.log")
    assert [each.name for each in again] == ["what  a name", ""]
    assert [list(each.events) for each in again] == [events, events]
    assert not any(each.faults for each in again)


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (Event("p", 1, extra={"x": {1, 2}}), 'event "p#1" cannot be written as JSON'),
        (Event("p", 1, time=float("nan")), 'event "p#1" cannot be written as JSON'),
        (Event("p", 1, extra={"seq": 2}), 'event "p#1" has an extra field "seq"'),
        (Event("p", 1, text="\ud800"), 'event "p#1" contains half a surrogate pair'),
        (Event("\ud800", 1), "contains half a surrogate pair"),
        (Event("p", 1, text="x" * 2**20), 'an event of "p" takes more than 1,048,576 characters'),
    ],
)
def test_what_cannot_be_written_is_named_and_leaves_no_file(event: Event, said: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=said):
        write_shiviz(tmp_path / "y.log", [Execution("", [event])])
    assert list(tmp_path.iterdir()) == []


def test_a_field_of_ours_that_was_changed_by_hand_is_checked(tmp_path: Path) -> None:
    parser = r"^(?<host>.*)\t(?<causet>.*)\t(?<clock>.*)(?<event>)$"
    for rest, said in (
        ("[]", 'field "causet" must be an object'),
        ('{"no":1}', 'field "causet": this is not what causet writes there'),
        ('{"extra":{"seq":1}}', 'field "causet": this is not what causet writes there'),
        ('{"process":1}', 'field "process" must be a string, not 1'),
        ('{"kind":"send"}', 'field "message" is missing; every send event must have it'),
        ("{", "this is not JSON"),
    ):
        assert said in refusal(tmp_path, f'a\t{rest}\t{{"a":1}}\n', parser)


# ---------------------------------------------------------------- properties


def execution_of(random: Random, hosts: Sequence[str], steps: int) -> tuple[list[Event], Clocks]:
    """A random execution with its true vector clocks: each step a host may hear of earlier events."""
    known: dict[str, dict[str, int]] = {host: {} for host in hosts}
    clocks: dict[tuple[str, int], dict[str, int]] = {}
    order: list[tuple[str, int]] = []
    for _ in range(steps):
        host = random.choice(hosts)
        clock = dict(known[host])
        for point in random.sample(order, k=min(len(order), random.choice((0, 0, 1, 1, 2, 3)))):
            for other, value in clocks[point].items():
                clock[other] = max(value, clock.get(other, 0))
        clock[host] = known[host].get(host, 0) + 1
        known[host] = clock
        clocks[host, clock[host]] = clock
        order.append((host, clock[host]))
    causes = direct_causes(clocks)
    random.shuffle(order)
    events = [
        Event(host, seq, id=f"{host}:{seq}", parents=tuple(f"{h}:{v}" for h, v in causes[host, seq].known))
        for host, seq in order
    ]
    return events, clocks


BOUNDED = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
PLAIN = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=5)


@settings(BOUNDED, max_examples=150)
@given(st.integers(0, 2**32), st.integers(1, 6), st.integers(1, 40))
def test_direct_causes_make_exactly_the_order_of_the_clocks(seed: int, hosts: int, steps: int) -> None:
    events, clocks = execution_of(Random(seed), [f"h{number}" for number in range(hosts)], steps)
    check_order(events, clocks)
    by_id = {event.id: event for event in events}
    found = pasts(events)
    position = {event.id: number for number, event in enumerate(events)}
    for event in events:
        for parent in event.parents:  # none follows from another, nor from the host's own past
            others = [other for other in event.parents if other != parent]
            own = [e.id for e in events if e.process == event.process and e.seq < event.seq]
            assert not any(found[other] >> position[parent] & 1 for other in (*others, *own))
            assert by_id[parent].process != event.process
    assert vector_clocks(events) == [clocks[event.process, event.seq] for event in events]


@settings(BOUNDED, max_examples=150)
@given(st.integers(0, 2**32), st.integers(1, 5), st.integers(2, 30), st.integers(1, 10))
def test_what_is_left_of_a_damaged_log_is_still_in_the_order_of_its_clocks(
    seed: int, hosts: int, steps: int, lost: int
) -> None:
    random = Random(seed)
    events, clocks = execution_of(random, [f"h{number}" for number in range(hosts)], steps)
    kept = random.sample(events, k=max(1, len(events) - lost))
    left = {(event.process, event.seq): clocks[event.process, event.seq] for event in kept}
    causes = direct_causes(left)
    damaged = [
        dataclasses.replace(event, parents=tuple(f"{h}:{v}" for h, v in (*found.known, *found.lost)))
        for event in kept
        for found in [causes[event.process, event.seq]]
    ]
    check_order(damaged, left)
    assert not any(found.forgets for found in causes.values())
    for found in causes.values():
        assert all(point in left for point in found.known)
        assert not any(point in left for point in found.lost)


@BOUNDED
@given(st.integers(0, 2**32), st.lists(PLAIN, min_size=1, max_size=4, unique=True), st.data())
def test_any_execution_comes_back_from_a_log_as_it_went(
    tmp_path: Path, seed: int, hosts: list[str], data: st.DataObject
) -> None:
    plain, _ = execution_of(Random(seed), hosts, 12)
    values = PLAIN | st.integers(-5, 5) | st.lists(PLAIN, max_size=2)
    names = PLAIN.filter(lambda name: name not in FIELDS) | st.sampled_from(["x", "time_", "event"])
    events = [
        dataclasses.replace(
            event,
            text=data.draw(st.none() | PLAIN),
            time=data.draw(st.none() | st.integers(-(2**63), 2**63 - 1) | st.floats(-9, 9)),
            extra=data.draw(st.dictionaries(names, values, max_size=3)),
        )
        for event in plain
    ]
    write_shiviz(tmp_path / "y.log", [Execution("one", events), Execution("two", plain)])
    one, two = read_shiviz(tmp_path / "y.log")
    assert list(one.events) == events
    assert list(two.events) == plain
    assert not one.faults


def read_or_refuse(path: Path, parser: str | None, delimiter: str | None) -> None:
    """Anything but executions or BadInput fails the test; so do executions that cannot be written again."""
    try:
        executions = read_shiviz(path, parser=parser, delimiter=delimiter)
    except BadInput as refused:
        assert "\n" not in str(refused)
        str(refused).encode()
        return
    again = path.with_name("again.log")
    write_shiviz(again, [execution for execution in executions if execution.events])
    second = read_shiviz(again)
    # Clocks that contradict each other become clocks that do not; the causes they name stay the same.
    if not any(fault.kind in (BACKWARDS, FORGETS) for each in executions for fault in each.faults):
        assert [list(each.events) for each in second] == [list(e.events) for e in executions if e.events]


HOSTS = st.sampled_from(["a", "b", "c", "a:1"])
COUNTS = st.integers(0, 3) | st.sampled_from([-1, 1.5, True, None, "1", 2**70])
NEARLY = st.lists(
    st.tuples(HOSTS, st.dictionaries(HOSTS, st.integers(0, 3) | COUNTS, min_size=1, max_size=3)), max_size=5
)


@BOUNDED
@given(NEARLY, st.sampled_from(["\n", "\nnoise\n", "\n=== x ===\n"]))
def test_random_clocks_are_read_or_refused(
    tmp_path: Path, entries: list[tuple[str, dict[str, object]]], between: str
) -> None:
    text = "".join(f"{host} {json.dumps(clock)}\ntext{between}" for host, clock in entries)
    (tmp_path / "x.log").write_text(text)
    read_or_refuse(tmp_path / "x.log", GOVECTOR, SECTIONS)


@BOUNDED
@given(st.binary(max_size=80), st.booleans(), st.booleans())
def test_random_bytes_are_read_or_refused(tmp_path: Path, data: bytes, head: bool, packed: bool) -> None:
    data = f"{GOVECTOR}\n\n".encode() + data if head else data
    path = tmp_path / ("x.log.gz" if packed else "x.log")
    path.write_bytes(gzip.compress(data) if packed and head else data)
    read_or_refuse(path, None if head else r"(?<host>.)(?<clock>.*)(?<event>)", None)


@BOUNDED
@given(
    st.lists(st.sampled_from((*ATOMS, "(?<", ">", "[", "\\", "*", "+", "?")) | PLAIN, max_size=10).map(
        "".join
    )
)
def test_random_expressions_are_matched_or_refused(source: str) -> None:
    try:
        find_all(expression_of(source), TEXTS[0], [(0, len(TEXTS[0]))])
    except BadInput as refused:
        assert "\n" not in str(refused)

"""OpenTelemetry spans as a trace: two events per span, parents and links as causes, damage named."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from causet.errors import BadInput
from causet.formats.execution import ENDS_FIRST, NO_END, TWICE, UNKNOWN_PARENT, Execution
from causet.formats.otlp import read_otlp
from causet.formats.trace import read_trace, write_trace
from causet.model import Event

T = "0af7651916cd43dd8448eb211c80319c"


def span(own: str, start: int, end: int, parent: str = "", trace: str = T, **more: Any) -> dict[str, Any]:
    found = {
        "traceId": trace,
        "spanId": own,
        "name": own,
        "startTimeUnixNano": str(start),
        "endTimeUnixNano": end,
    }
    return {**found, **({"parentSpanId": parent} if parent else {}), **more}


def document(**services: list[dict[str, Any]]) -> dict[str, Any]:
    """A document with these services' spans."""
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": name}}]},
                "scopeSpans": [{"scope": {"name": "lib"}, "spans": spans}],
            }
            for name, spans in services.items()
        ]
    }


def read(folder: Path, *documents: object, process: str = "request") -> Execution:
    path = folder / "spans.json"
    path.write_text("\n".join(json.dumps(each) for each in documents), encoding="utf-8")
    return read_otlp([path], process=process)


def refusal(folder: Path, *documents: object, process: str = "request") -> str:
    with pytest.raises(BadInput) as refused:
        read(folder, *documents, process=process)
    assert "\n" not in str(refused.value)
    return str(refused.value).replace(f"{folder}{os.sep}", "")


def by_process(execution: Execution) -> dict[str, list[str]]:
    found: dict[str, list[Event]] = {}
    for event in execution.events:
        found.setdefault(event.process, []).append(event)
    return {
        process: [event.id.removeprefix(f"{T}.") for event in sorted(events, key=lambda event: event.seq)]
        for process, events in found.items()
    }


SHOP = document(
    web=[span("a1", 100, 900), span("a2", 200, 400, "a1"), span("a3", 300, 500, "a1")],
    db=[span("b1", 1000, 1100, "a2")],  # its clock is ahead
)


def test_a_span_is_two_events_and_starts_after_its_parent(tmp_path: Path) -> None:
    execution = read(tmp_path, SHOP)
    assert by_process(execution) == {
        f"{T}@web": ["a1:s", "a2:s", "a3:s", "a2:e", "a3:e", "a1:e"],
        f"{T}@db": ["b1:s", "b1:e"],
    }
    assert {event.id: event.parents for event in execution.events if event.parents} == {
        f"{T}.b1:s": (f"{T}.a2:s",)
    }
    start, end = execution.events[:2]
    assert start == Event(
        f"{T}@web",
        1,
        id=f"{T}.a1:s",
        time=100,
        text="start a1",
        extra={"name": "a1", "service": "web"},
    )
    assert end == Event(f"{T}@web", 6, id=f"{T}.a1:e", time=900, text="end a1", extra={"name": "a1"})
    assert execution.faults == ()


def test_what_a_process_is_can_be_chosen(tmp_path: Path) -> None:
    two = document(web=[span("a1", 100, 900), span("c1", 150, 160, trace="ff")])
    assert list(by_process(read(tmp_path, two))) == [f"{T}@web", "ff@web"]
    assert by_process(read(tmp_path, two, process="service")) == {
        "web": ["a1:s", "ff.c1:s", "ff.c1:e", "a1:e"]
    }
    assert by_process(read(tmp_path, SHOP, process="span"))[f"{T}.a2"] == ["a2:s", "a2:e"]
    edges = {
        event.id: event.parents for event in read(tmp_path, SHOP, process="span").events if event.parents
    }
    assert edges == {f"{T}.a2:s": (f"{T}.a1:s",), f"{T}.a3:s": (f"{T}.a1:s",), f"{T}.b1:s": (f"{T}.a2:s",)}
    assert refusal(tmp_path, SHOP, process="pod") == (
        'process "pod": for spans it is one of request, service, span'
    )


def test_instances_of_a_service_are_told_apart(tmp_path: Path) -> None:
    attributes = [
        {"key": f"service.{key}", "value": {"stringValue": value}}
        for key, value in (("name", "web"), ("instance.id", "pod-1"), ("namespace", "shop"))
    ]
    one = {
        "resourceSpans": [
            {"resource": {"attributes": attributes}, "scopeSpans": [{"spans": [span("a", 1, 2)]}]}
        ]
    }
    assert list(by_process(read(tmp_path, one, process="service"))) == ["shop/web/pod-1"]
    nameless = {"resourceSpans": [{"scopeSpans": [{"spans": [span("a", 1, 2)]}]}]}
    assert list(by_process(read(tmp_path, nameless, process="service"))) == ["unknown"]


def test_equal_times_nest(tmp_path: Path) -> None:
    spans = [span("d", 5, 5, "c"), span("c", 5, 9, "b"), span("b", 5, 9)]
    assert by_process(read(tmp_path, document(web=spans))) == {
        f"{T}@web": ["b:s", "c:s", "d:s", "d:e", "c:e", "b:e"]
    }


def test_a_clock_that_contradicts_the_nesting_is_not_believed(tmp_path: Path) -> None:
    # b begins "before" its parent a, and so does d, whose grandparent a is in the same process.
    spans = document(
        web=[span("a", 100, 200), span("b", 90, 95, "a"), span("d", 80, 300, "c")],
        db=[span("c", 1000, 1001, "a")],
    )
    execution = read(tmp_path, spans)
    assert by_process(execution)[f"{T}@web"] == ["a:s", "b:s", "d:s", "b:e", "a:e", "d:e"]
    assert next(event.time for event in execution.events if event.id == f"{T}.b:s") == 90


def test_links_are_causes_too(tmp_path: Path) -> None:
    links = [
        {"traceId": "ff", "spanId": "9"},
        {"traceId": "ff", "spanId": "9"},
        {"traceId": T, "spanId": "a"},
    ]
    spans = document(web=[span("a", 1, 2), span("b", 3, 4, links=links), span("9", 1, 5, trace="ff")])
    execution = read(tmp_path, spans)
    # The one in the same process stands before it anyway.
    assert [event.parents for event in execution.events if event.parents] == [("ff.9:s",)]
    later = document(web=[span("a", 1, 2, links=[{"traceId": T, "spanId": "b"}]), span("b", 3, 4)])
    said = refusal(tmp_path, later)
    assert said.startswith("spans.json: the trace has a cycle, in which an event happened before itself: ")
    assert said.endswith("; try --process request or --process span, which assume less")


def test_what_a_span_says_is_kept_compactly(tmp_path: Path) -> None:
    values: dict[str, dict[str, Any]] = {
        "text": {"stringValue": "x"},
        "int": {"intValue": "9007199254740993"},
        "double": {"doubleValue": 1.5},
        "list": {"arrayValue": {"values": [{"boolValue": True}, {"intValue": 2}]}},
        "map": {"kvlistValue": {"values": [{"key": "k", "value": {"stringValue": "v"}}]}},
        "bytes": {"bytesValue": "AAE="},
        "nothing": {},
    }
    one = span(
        *("a", 1, 2),
        kind=2,
        status={"code": 2, "message": "went wrong"},
        attributes=[{"key": key, "value": value} for key, value in values.items()],
        events=[{"timeUnixNano": "1", "name": "retry", "attributes": []}],
    )
    start, end = read(tmp_path, document(web=[one])).events
    assert start.extra == {
        "name": "a",
        "span_kind": "server",
        "service": "web",
        "attributes": {
            "text": "x",
            "int": 9007199254740993,
            "double": 1.5,
            "list": [True, 2],
            "map": {"k": "v"},
            "bytes": "AAE=",
            "nothing": None,
        },
    }
    assert end.extra == {"name": "a", "status": "error: went wrong", "span_events": [[1, "retry"]]}
    named = span("a", 1, 2, kind="SPAN_KIND_CLIENT", status={"code": "STATUS_CODE_OK"})
    start, end = read(tmp_path, document(web=[named])).events
    assert (start.extra["span_kind"], end.extra["status"]) == ("client", "ok")


def test_one_document_lines_of_them_and_several_files_are_one_execution(tmp_path: Path) -> None:
    whole = read(tmp_path, SHOP)
    (tmp_path / "pretty.json").write_text(json.dumps(SHOP, indent=2))
    (tmp_path / "array.json").write_text(json.dumps([SHOP], indent=1))
    assert read_otlp([tmp_path / "pretty.json"]).events == whole.events
    assert read_otlp([tmp_path / "array.json"]).events == whole.events
    parts = [{"resourceSpans": [each]} for each in SHOP["resourceSpans"]]
    assert read(tmp_path, *parts, {"resourceSpans": []}).events == whole.events
    for number, part in enumerate(parts):
        (tmp_path / f"{number}.json").write_text(json.dumps(part))
    assert read_otlp([tmp_path / "0.json", tmp_path / "1.json"]).events == whole.events
    older = json.loads(json.dumps(SHOP).replace("scopeSpans", "instrumentationLibrarySpans"))
    assert read(tmp_path, older).events == whole.events


def test_faults_of_the_log_are_counted(tmp_path: Path) -> None:
    spans = document(
        web=[
            span("a", 10, 20, "lost", links=[{"spanId": "gone"}]),
            span("b", 10, 0),
            span("c", 10, 5),
            span("c", 10, 5),
        ]
    )
    execution = read(tmp_path, {"resourceSpans": []}, spans)
    found = {
        fault.kind: (fault.count, fault.places[0].replace(f"{tmp_path}{os.sep}", ""))
        for fault in execution.faults
    }
    assert found == {
        UNKNOWN_PARENT: (2, f'spans.json, line 2: "{T}.a:s" names "{T}.lost:s"'),
        NO_END: (1, f'spans.json, line 2: "{T}.b"'),
        ENDS_FIRST: (1, f'spans.json, line 2: "{T}.c"'),
        TWICE: (1, f'spans.json, line 2: the span "{T}.c", already in spans.json, line 2'),
    }
    assert by_process(execution)[f"{T}@web"] == ["a:s", "b:s", "c:s", "c:e", "a:e"]


@pytest.mark.parametrize(
    ("spans", "said"),
    [
        ({"spanId": "a"}, 'field "traceId" of a span is missing or zero'),
        ({"traceId": T, "spanId": "0000"}, 'field "spanId" of a span is missing or zero'),
        ({"traceId": 5}, 'field "traceId" must be a string, not 5'),
        (span("a", 0, 1), 'field "startTimeUnixNano" of span "a" is missing or zero'),
        (span("a", -5, 1), 'field "startTimeUnixNano" must be a time since 1970, not "-5"'),
        (span("a", 1, 2) | {"endTimeUnixNano": "9" * 20}, 'field "endTimeUnixNano" must be a 64-bit integer'),
        (
            span("a", 1, 2) | {"endTimeUnixNano": 1.5},
            'field "endTimeUnixNano" must be a 64-bit integer, not 1.5',
        ),
        (span("a", 1, 2, links={}), 'field "links" must be a list of objects'),
        (span("a", 1, 2, links=[1]), 'field "links" must be a list of objects'),
        (span("a", 1, 2, status=1), 'field "status" must be an object, not 1'),
        (span("a", 1, 2, kind=[]), 'field "kind" must be a number, not []'),
        (span("a", 1, 2) | {"name": 1}, 'field "name" must be a string, not 1'),
    ],
)
def test_what_is_no_span_is_refused_with_its_line(spans: dict[str, Any], said: str, tmp_path: Path) -> None:
    refused = refusal(tmp_path, {"resourceSpans": []}, document(web=[spans]))
    assert refused.startswith("spans.json, line 2: ")
    assert said in refused


def test_what_is_no_document_is_refused(tmp_path: Path) -> None:
    expected = 'spans.json, line 1: this is not an OTLP document, an object with the field "resourceSpans"'
    assert refusal(tmp_path, {}) == expected
    assert refusal(tmp_path, 7) == expected
    path = tmp_path / "spans.json"
    for data, said in (
        ("", "is empty"),
        ("{", "this is not JSON"),
        ("\n\n", "is empty"),
        ('"\\ud800"', "surrogate"),
    ):
        path.write_text(data)
        with pytest.raises(BadInput, match=said):
            read_otlp([path])
    different = document(web=[span("a", 1, 2), span("a", 1, 3)])
    assert f'another span with the ids "{T}.a" is in' in refusal(tmp_path, different)


def test_spans_that_are_each_others_parents_are_a_cycle(tmp_path: Path) -> None:
    circle = document(web=[span("r", 1, 2), span("a", 1, 2, "c"), span("b", 1, 2, "a"), span("c", 1, 2, "b")])
    assert refusal(tmp_path, circle) == (
        "spans.json, line 1: the spans are each other's parents, which is a cycle: "
        f"{T}.a → {T}.b → {T}.c → {T}.a"
    )
    assert refusal(tmp_path, document(web=[span("a", 1, 2, "a")])).endswith(f"a cycle: {T}.a → {T}.a")


def test_a_long_chain_of_calls_needs_no_recursion(tmp_path: Path) -> None:
    spans = [span(f"s{n}", 10 + n, 90000 - n, f"s{n - 1}" if n else "") for n in range(5000)]
    execution = read(tmp_path, document(web=spans))
    assert len(execution.events) == 10000
    assert execution.faults == ()
    lost = read(tmp_path, document(web=spans[::-1]))
    assert sorted(lost.events, key=lambda e: e.id) == sorted(execution.events, key=lambda e: e.id)


# ---------------------------------------------------------------- fuzz

BOUNDED = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
IDS = st.sampled_from(["", "0", "a", "b", "c", "d"])
ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)
SPANS = st.fixed_dictionaries(
    {"traceId": st.just("t") | IDS, "spanId": IDS, "startTimeUnixNano": st.integers(1, 9)},
    optional={
        "parentSpanId": IDS,
        "endTimeUnixNano": st.integers(0, 9).map(str) | ANY,
        "links": st.lists(st.fixed_dictionaries({"spanId": IDS}), max_size=2) | ANY,
        "attributes": ANY,
        "status": ANY,
        "name": st.text(max_size=3),
        "kind": st.integers(0, 9) | ANY,
    },
)


def read_or_refuse(path: Path, process: str) -> None:
    try:
        execution = read_otlp([path], process=process)
    except BadInput as refused:
        assert "\n" not in str(refused)
        str(refused).encode()
        return
    write_trace(path.with_name("again.jsonl"), execution.events)
    assert read_trace(path.with_name("again.jsonl")) == execution.events


@BOUNDED
@given(
    st.lists(SPANS, max_size=5), st.lists(SPANS, max_size=3), st.sampled_from(["request", "service", "span"])
)
def test_random_spans_are_read_or_refused(
    tmp_path: Path, web: list[dict[str, Any]], db: list[dict[str, Any]], process: str
) -> None:
    (tmp_path / "x.json").write_text(json.dumps(document(web=web, db=db)))
    read_or_refuse(tmp_path / "x.json", process)


@BOUNDED
@given(st.data())
def test_a_good_document_with_one_value_changed_is_read_or_refused(
    tmp_path: Path, data: st.DataObject
) -> None:
    text = json.dumps(SHOP)
    at = data.draw(st.integers(0, len(text) - 1))
    (tmp_path / "x.json").write_text(
        text[:at] + data.draw(st.text(max_size=2).filter(_is_text)) + text[at + 1 :]
    )
    read_or_refuse(tmp_path / "x.json", "request")


def _is_text(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


@BOUNDED
@given(st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30)), min_size=1, max_size=8), st.integers(0, 9))
def test_any_times_of_one_process_give_an_order_that_keeps_the_nesting(
    tmp_path: Path, times: list[tuple[int, int]], seed: int
) -> None:
    parents = {f"s{n}": f"s{(n * 7 + seed) % n}" if n else "" for n in range(len(times))}
    spans = [span(f"s{n}", start, end, parents[f"s{n}"]) for n, (start, end) in enumerate(times)]
    ((_, order),) = by_process(read(tmp_path, document(web=spans))).items()
    for own, parent in parents.items():
        assert order.index(f"{own}:s") < order.index(f"{own}:e")
        assert not parent or order.index(f"{parent}:s") < order.index(f"{own}:s")

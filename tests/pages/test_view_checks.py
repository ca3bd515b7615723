"""`causet.view` in Python takes what `causal_order` takes, and refuses the rest in the same sentences."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd  # type: ignore[import-untyped]
import pytest
from pyspark.sql import SparkSession

import causet
from causet.errors import BadInput
from causet.formats.trace import to_json
from causet.model import Event
from causet.spark import causal_order
from tests.helpers.pages import data_of

SEND = Event("p", 1, "send", message="a", to=("q",))
DELIVER = Event("q", 1, "deliver", message="a")
REFUSED = {
    'two events have process "p" and seq 1': [Event("p", 1, id="x"), Event("p", 1, id="y")],
    'two events have the id "x"': [Event("p", 1, id="x"), Event("q", 1, id="x")],
    'the message "a" is sent twice': [SEND, Event("q", 1, "send", message="a", to=("p",))],
    "the trace has a cycle, in which an event happened before itself: ": [
        Event("p", 1, parents=("q#1",)),
        Event("q", 1, parents=("p#1",)),
    ],
}
FAULTS = {
    "gap in seq (1)": [SEND, DELIVER, Event("q", 3)],
    "unknown parent (1)": [SEND, DELIVER, Event("q", 2, parents=("nobody#1",))],
    "received or delivered without a send (1)": [SEND, DELIVER, Event("q", 2, "deliver", message="z")],
}


def records(events: list[Event]) -> list[dict[str, Any]]:
    found = [json.loads(to_json(event)) for event in events]
    return [{**record, "id": event.id} for record, event in zip(found, events, strict=True)]


def as_list(events: list[Event], _folder: Path) -> Any:
    return events


def as_records(events: list[Event], _folder: Path) -> Any:
    return records(events)


def as_pandas(events: list[Event], _folder: Path) -> Any:
    return pd.DataFrame(records(events))


def as_file(events: list[Event], folder: Path) -> Any:
    path = folder / "trace.jsonl"
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records(events)), encoding="utf-8")
    return path


FORMS = [as_list, as_records, as_pandas, as_file]
SCHEMA = (
    "process string, seq long, kind string, id string, message string, to array<string>, "
    "parents array<string>"
)


def as_spark(spark: SparkSession, events: list[Event]) -> Any:
    names = [part.split()[0] for part in SCHEMA.split(", ")]
    rows = [asdict(event) for event in events]
    lists = ("to", "parents")
    return spark.createDataFrame(
        [[list(row[n]) if n in lists and row[n] is not None else row[n] for n in names] for row in rows],
        SCHEMA,
    )


@pytest.mark.parametrize("sentence", REFUSED)
def test_causal_order_refuses_this_with_this_sentence(spark: SparkSession, sentence: str) -> None:
    with pytest.raises(BadInput) as refused:
        as_spark(spark, REFUSED[sentence]).transform(causal_order()).collect()
    assert sentence in str(refused.value)
    with pytest.raises(BadInput) as refused:
        causet.view(as_spark(spark, REFUSED[sentence]))
    assert sentence in str(refused.value)


@pytest.mark.parametrize("form", FORMS[:3])
@pytest.mark.parametrize("sentence", REFUSED)
def test_view_refuses_it_with_the_same_sentence(sentence: str, form: Any, tmp_path: Path) -> None:
    with pytest.raises(BadInput) as refused:
        causet.view(form(REFUSED[sentence], tmp_path))
    assert sentence in str(refused.value)
    if "cycle" not in sentence:
        places = ("row 1", "row 2") if form is as_pandas else ("event 1", "event 2")
        assert all(place in str(refused.value) for place in places)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("fault", FAULTS)
def test_faults_of_the_log_are_counted_and_shown(fault: str, form: Any, tmp_path: Path) -> None:
    shown = causet.view(form(FAULTS[fault], tmp_path))
    verdict = data_of(shown.page)["executions"][0]["verdict"]
    assert verdict["status"] == "unknown"
    assert f"Not judged: {fault}." in verdict["sentence"]
    assert f"Not judged: {fault}." in repr(shown)
    assert "Not judged: " in shown._repr_html_()


@pytest.mark.parametrize("form", FORMS)
def test_a_sound_execution_is_drawn_and_judged(form: Any, tmp_path: Path) -> None:
    shown = causet.view(form([SEND, DELIVER], tmp_path))
    assert repr(shown) == "<causet view: 2 events. Every process delivered in causal order.>"


@pytest.mark.parametrize(
    ("event", "told"),
    [
        (Event("p", 0), '"seq" must be an integer from 1'),
        (Event("p", 1, "jump"), '"kind" must be one of'),
        (Event("p", 1, "send", message="a"), '"to" is missing'),
        (Event(7, 1), '"process" must be a string'),  # type: ignore[arg-type]
    ],
)
def test_an_event_that_cannot_be_is_refused_as_in_a_file(event: Event, told: str) -> None:
    with pytest.raises(BadInput) as refused:
        causet.view([SEND, event])
    assert told in str(refused.value)


def test_part_of_a_data_frame_is_not_judged(spark: SparkSession) -> None:
    """The rest may hold the send that seems to be missing."""
    frame = as_spark(
        spark, [Event("a", 1, "deliver", message="m"), Event("b", 1, "send", message="m", to=("a",))]
    )
    shown = causet.view(frame, most=1)
    execution = data_of(shown.page)["executions"][0]
    assert (execution["verdict"]["status"], execution["found"]) == ("unjudged", None)
    assert execution["verdict"]["sentence"] == "Not judged: only the first 1 rows of the DataFrame are drawn."
    assert causet.view(frame).summary.endswith("Every process delivered in causal order.")


def test_a_hostile_name_stays_text_in_a_notebook() -> None:
    evil = '\x1b[31m"><script>alert(1)</script>\u202e'
    shown = causet.view([Event(evil, 1, text=evil)], title=evil, around=f"{evil}#1")
    for text in (repr(shown), shown._repr_html_()):
        assert "\x1b" not in text and "\u202e" not in text
    assert "<script>alert" not in shown._repr_html_()

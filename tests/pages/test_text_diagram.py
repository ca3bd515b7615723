"""Executions drawn as text: each drawing here was drawn by hand first."""

from __future__ import annotations

import random
from textwrap import dedent
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from causet.errors import BadInput
from causet.escapes import columns
from causet.model import KINDS, Event
from causet.view.fitting import cut, plain
from causet.view.text import space_time


class Execution:
    """Events in the order in which they are written down; seq counts by itself."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.count: dict[str, int] = {}

    def _add(self, process: str, kind: str, message: str | None, **more: Any) -> Execution:
        self.count[process] = self.count.get(process, 0) + 1
        self.events.append(Event(process, self.count[process], kind, message=message, **more))
        return self

    def send(self, process: str, message: str, to: str, **more: Any) -> Execution:
        return self._add(process, "send", message, to=tuple(to.split()), **more)

    def receive(self, process: str, message: str, **more: Any) -> Execution:
        return self._add(process, "receive", message, **more)

    def deliver(self, process: str, message: str, **more: Any) -> Execution:
        return self._add(process, "deliver", message, **more)

    def local(self, process: str, text: str | None = None, **more: Any) -> Execution:
        return self._add(process, "local", None, text=text, **more)


def drawn(text: str) -> str:
    return dedent(text).strip("\n")


def widest(drawing: str) -> int:
    return max(columns(line) for line in drawing.split("\n"))


def overtaken() -> Execution:
    """b, sent because of a, comes to p3 before a."""
    run = Execution().send("p1", "a", "p2 p3")
    run.receive("p2", "a").deliver("p2", "a").send("p2", "b", "p3")
    return run.receive("p3", "b")


VIOLATION = overtaken().deliver("p3", "b").receive("p3", "a").deliver("p3", "a").events
HELD = overtaken().receive("p3", "a").deliver("p3", "a").deliver("p3", "b").events


def test_a_violation_is_marked_where_it_happens() -> None:
    assert space_time(VIOLATION, marks={"p3#2": "before a, its cause"}) == drawn(
        """
        p1            p2         p3
        ● a → p2 p3   │          │
        ├┄┄┄┄┄┄┄┄┄┄┄┄▶○ a        │
        │             ◆ a        │
        │             ● b → p3   │
        │             ├┄┄┄┄┄┄┄┄┄▶○ b
        │             │          ◆ b ✗      ✗ before a, its cause
        ├┄┄┄┄┄┄┄┄┄┄┄┄┄│┄┄┄┄┄┄┄┄┄▶○ a
        │             │          ◆ a

        ● send   ○ receive   ◆ deliver
        """
    )


def test_what_is_held_back_stands_in_brackets_until_it_is_delivered() -> None:
    assert space_time(HELD) == drawn(
        """
        p1            p2         p3
        ● a → p2 p3   │          │
        ├┄┄┄┄┄┄┄┄┄┄┄┄▶○ a        │
        │             ◆ a        │
        │             ● b → p3   │
        │             ├┄┄┄┄┄┄┄┄┄▶○ b
        ├┄┄┄┄┄┄┄┄┄┄┄┄┄│┄┄┄┄┄┄┄┄┄▶○ a [b]
        │             │          ◆ a [b]
        │             │          ◆ b

        ● send   ○ receive   ◆ deliver   [a] held back
        """
    )


def test_the_same_drawing_in_ascii() -> None:
    drawing = space_time(HELD, ascii=True, marks={"p3#3": "late"})
    assert drawing == drawn(
        """
        p1             p2          p3
        * a -> p2 p3   |           |
        +------------->o a         |
        |              @ a         |
        |              * b -> p3   |
        |              +---------->o b
        +--------------|---------->o a [b]
        |              |           @ a X [b]   X late
        |              |           @ b

        * send   o receive   @ deliver   [a] held back
        """
    )
    assert drawing.isascii()


def test_an_arrow_passes_behind_what_another_process_holds_back() -> None:
    run = Execution().send("p1", "a", "p2 p3").receive("p2", "a").receive("p3", "a").deliver("p2", "a")
    assert space_time(run.deliver("p3", "a").events) == drawn(
        """
        p1            p2         p3
        ● a → p2 p3   │          │
        ├┄┄┄┄┄┄┄┄┄┄┄┄▶○ a        │
        ├┄┄┄┄┄┄┄┄┄┄┄┄┄│ [a] ┄┄┄┄▶○ a
        │             ◆ a        │ [a]
        │             │          ◆ a

        ● send   ○ receive   ◆ deliver   [a] held back
        """
    )


def test_arrows_also_run_to_the_left() -> None:
    run = Execution().send("p3", "a", "p1").receive("p1", "a").deliver("p1", "a").local("p2", "idle", time=1)
    assert space_time(run.events) == drawn(
        """
        p1         p2         p3
        │          │          ● a → p1
        ○ a ◀┄┄┄┄┄┄│┄┄┄┄┄┄┄┄┄┄┤
        ◆ a        │          │
        │          ▪ idle     │

        ● send   ○ receive   ◆ deliver   ▪ local
        """
    )


def test_control_messages_have_dotted_arrows_and_are_not_held_back() -> None:
    run = Execution().send("p1", "a", "p2").send("p1", "p1!1", "p2", control=True)
    run.receive("p2", "p1!1", control=True).receive("p2", "a").deliver("p2", "a")
    assert space_time(run.events) == drawn(
        """
        p1              p2
        ● a → p2        │
        ● (p1!1) → p2   │
        ├··············▷○ (p1!1)
        ├┄┄┄┄┄┄┄┄┄┄┄┄┄┄▶○ a
        │               ◆ a

        ● send   ○ receive   ◆ deliver   (a) control
        """
    )


def test_a_delivery_without_a_recorded_reception_gets_the_arrow() -> None:
    assert space_time(Execution().send("p1", "a", "p2").deliver("p2", "a").events) == drawn(
        """
        p1         p2
        ● a → p2   │
        ├┄┄┄┄┄┄┄┄┄▶◆ a

        ● send   ◆ deliver
        """
    )


def test_in_a_log_without_deliveries_nothing_is_held_back() -> None:
    run = Execution().send("p1", "a", "p2").receive("p2", "a").local("p2")
    assert space_time(run.events) == drawn(
        """
        p1         p2
        ● a → p2   │
        ├┄┄┄┄┄┄┄┄┄▶○ a
        │          ▪

        ● send   ○ receive   ▪ local
        """
    )


def test_parents_in_other_processes_are_arrows_too() -> None:
    run = Execution().local("p1", "x = 1").local("p3", "y = 2").local("p2", parents=("p1#1", "p3#1", "gone"))
    assert space_time(run.events) == drawn(
        """
        p1         p2         p3
        ▪ x = 1    │          │
        │          │          ▪ y = 2
        ├┄┄┄┄┄┄┄┄┄▶▪ ◀┄┄┄┄┄┄┄┄┤

        ▪ local
        """
    )


def test_what_never_arrived_and_what_is_still_held_back_is_said_below() -> None:
    run = overtaken().receive("p1", "lost from the log").send("p1", "c", "p2 p3")
    assert space_time(run.events) == drawn(
        """
        p1                        p2         p3
        ● a → p2 p3               │          │
        ○ lost␣from␣the␣log ← ?   │          │
        ├ [lost␣from␣the␣log] ┄┄┄▶○ a        │
        ● c → p2 p3 [+1]          │ [a]      │
        │ [lost␣from␣the␣log]     ◆ a        │
        │ [lost␣from␣the␣log]     ● b → p3   │
        │ [lost␣from␣the␣log]     ├┄┄┄┄┄┄┄┄┄▶○ b

        not received: a by p3, c by p2 p3
        still held back: lost␣from␣the␣log at p1, b at p3
        ● send   ○ receive   ◆ deliver   [a] held back
        """
    )


def test_a_process_that_only_is_addressed_has_a_lane() -> None:
    assert space_time(Execution().send("p1", "a", "p2").events) == drawn(
        """
        p1         p2
        ● a → p2   │

        not received: a by p2
        ● send
        """
    )


def test_a_long_note_is_wrapped_beside_the_lanes() -> None:
    run = Execution().send("p1", "a", "p2").receive("p2", "a").deliver("p2", "a")
    assert space_time(run.events, width=40, marks={"p2#1": "came although nobody wanted it"}) == drawn(
        """
        p1         p2
        ● a → p2   │
        ├┄┄┄┄┄┄┄┄┄▶○ a ✗      ✗ came although
        │          │ [a]        nobody wanted it
        │          ◆ a

        ● send   ○ receive   ◆ deliver
        [a] held back
        """
    )


def test_without_events_there_is_nothing_to_draw() -> None:
    assert space_time([]) == "no events"


# Order


def test_a_drawing_does_not_depend_on_the_order_of_the_events() -> None:
    expected = space_time(HELD)
    for seed in range(20):
        shuffled = random.Random(seed).sample(HELD, len(HELD))
        assert space_time(shuffled) == expected


def test_times_order_what_causes_leave_open() -> None:
    run = (
        Execution().local("p1", "third", time=3).local("p2", "first", time=1).local("p2", "second", time=2.5)
    )
    rows = space_time(run.events).split("\n")
    assert [row.strip("│ ▪") for row in rows[1:4]] == ["first", "second", "third"]


def test_a_clock_that_lags_does_not_put_an_effect_before_its_cause() -> None:
    run = Execution().send("p1", "a", "p2", time=9).receive("p2", "a", time=2)
    rows = space_time(run.events).split("\n")
    assert rows[1].startswith("●")
    assert "○ a" in rows[2]


def test_ten_comes_after_two() -> None:
    run = Execution().local("p10").local("p2").local("p1")
    assert space_time(run.events).split("\n")[0].split() == ["p1", "p2", "p10"]


def test_a_cycle_cannot_be_drawn() -> None:
    events = [Event("p1", 1, parents=("p2#1",)), Event("p2", 1, parents=("p1#1",))]
    with pytest.raises(BadInput) as caught:
        space_time(events)
    assert str(caught.value) == 'event "p1#1" is in a cycle of causes, or comes after one'


# Width


def broadcast(processes: int) -> Execution:
    """p1 tells everyone; everyone delivers."""
    names = [f"p{number}" for number in range(1, processes + 1)]
    run = Execution().send("p1", "a", " ".join(names[1:]))
    for name in names[1:]:
        run.receive(name, "a").deliver(name, "a")
    return run


def test_targets_that_do_not_fit_are_all_or_counted() -> None:
    assert "● a → p2 p3 p4 p5 " in space_time(broadcast(5).events)
    assert "● a → all " in space_time(broadcast(12).events, width=140)
    some = Execution().send("p1", "a", " ".join(f"long-name-{n}" for n in range(5))).local("p2")
    assert "● a → long-name-0 +4 " in space_time(some.events, width=140)
    named = Execution().send("p1", "a", " ".join(f"long-name-{n}" for n in range(5)), group="g1")
    assert "● a → g1\n" in space_time(named.events, width=140)


def test_when_not_everyone_fits_a_line_says_who_is_not_drawn() -> None:
    lines = space_time(broadcast(5).events, width=38).split("\n")
    assert lines[0] == "3 of 5 processes fit here; not drawn:…"
    assert lines[1].split() == ["p1", "p2", "p3"]
    lines = space_time(broadcast(12).events, width=100).split("\n")
    assert lines[0] == "9 of 12 processes fit here; not drawn: p10 p11 p12"


def test_marked_processes_and_their_causes_are_drawn_first() -> None:
    run = broadcast(30)
    run.send("p20", "b", "p25").receive("p25", "b").deliver("p25", "b")
    lines = space_time(run.events, width=52, marks={"p25#4": "wrong"}).split("\n")
    assert lines[1].split() == ["p1", "p2", "p20", "p25"]
    assert any("◆ b ✗" in line and line.endswith("✗ wrong") for line in lines)


def test_an_arrow_from_a_process_that_is_not_drawn_names_it() -> None:
    run = Execution().send("p9", "a", "p1").receive("p1", "a").local("p2")
    assert space_time(run.events, width=15) == drawn(
        """
        1 of 3 process…
        p1
        ○ a ← p9

        ○ receive
        """
    )


def test_a_mark_whose_event_is_not_drawn_is_told_below() -> None:
    lines = space_time(VIOLATION, marks={"p7#1": "nobody knows"}).split("\n")
    assert "✗ p7#1 (not drawn) nobody knows" in lines


def test_long_names_keep_both_ends() -> None:
    run = Execution().send("a-very-long-server-name-1", "m", "a-very-long-server-name-2")
    assert space_time(run.events).split("\n")[0].split() == ["a-very-long-s…name-1", "a-very-long-s…name-2"]
    assert cut("abcdefgh", 5, tail=2) == "ab…gh"


def test_names_that_look_the_same_when_cut_are_told_apart() -> None:
    run = Execution().local("x" * 400).local("x" * 500)
    first, second = space_time(run.events).split("\n")[0].split()
    assert second == f"{first}~2"


@pytest.mark.parametrize("width", [12, 20, 40, 60, 80, 100, 200])
@pytest.mark.parametrize("processes", [2, 5, 9, 40])
def test_no_line_is_wider_than_asked(width: int, processes: int) -> None:
    assert widest(space_time(broadcast(processes).events, width=width)) <= width
    if width >= 40:
        marks = {"p2#1": "a note that is quite a bit longer than the space that is left for it" * 3}
        assert widest(space_time(broadcast(processes).events, width=width, marks=marks)) <= width


# Hostile text


def test_text_that_could_move_the_cursor_or_reorder_the_line_is_escaped() -> None:
    run = (
        Execution().send("p\x1b[31m", "a\u202eb\n", "p2").receive("p2", "a\u202eb\n").local("p2", "\ttab\x00")
    )
    drawing = space_time(run.events, marks={"p2#2": "\x07bell \u2066x"})
    assert drawing == drawn(
        r"""
        p2              p\x1b[31m
        │               ● a\u202eb\n → p2
        ○ a\u202eb\n ◀┄┄┤
        ▪ \ttab\x00 ✗   │                   ✗ \x07bell \u2066x

        ● send   ○ receive   ▪ local
        """
    )


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text", "plain text"),
        ("é ü 日本 ∀", "é ü 日本 ∀"),
        ("e\u0301", "é"),
        ("\u0301x", r"\u0301x"),
        ("x\u0323\u0328\u0323\u0323", "x\u0328\u0323\\u0323\\u0323"),
        ("\ud800", r"\ud800"),
        ("a\u00a0b\u3000c\u2028", r"a\xa0b\u3000c\u2028"),
        ("\u200b\u200e\ufeff\u3164\ufe0f", r"\u200b\u200e\ufeff\u3164\ufe0f"),
        ("\U000e0041", r"\U000e0041"),
    ],
)
def test_only_what_is_simply_visible_is_shown_as_it_is(text: str, shown: str) -> None:
    assert plain(text) == shown


def test_in_ascii_every_other_letter_is_escaped() -> None:
    assert plain("é日", ascii=True) == r"\xe9\u65e5"


def test_wide_letters_take_two_columns() -> None:
    assert space_time(Execution().send("日本", "語", "p2").receive("p2", "語").events) == drawn(
        """
        p2         日本
        │          ● 語 → p2
        ○ 語 ◀┄┄┄┄┄┤

        ● send   ○ receive
        """
    )


TEXT = st.text(max_size=30) | st.sampled_from(["p1", "p2", "a", "b", "\x1b[2J", "\u202e", "日本" * 20])
EVENTS = st.lists(
    st.builds(
        Event,
        process=TEXT,
        seq=st.integers(1, 9),
        kind=st.sampled_from(KINDS),
        id=TEXT,
        message=st.none() | TEXT,
        to=st.none() | st.lists(TEXT, max_size=3).map(tuple),
        parents=st.lists(TEXT, max_size=2).map(tuple),
        time=st.none() | st.floats() | st.integers(),
        text=st.none() | TEXT,
        control=st.booleans(),
    ),
    max_size=8,
)


@settings(deadline=None, max_examples=100)
@given(events=EVENTS, marks=st.dictionaries(TEXT, TEXT, max_size=3), ascii=st.booleans())
def test_whatever_the_events_say_the_drawing_is_printable_and_narrow(
    events: list[Event], marks: dict[str, str], ascii: bool
) -> None:
    try:
        drawing = space_time(events, width=60, marks=marks, ascii=ascii)
    except BadInput:
        return
    assert all(line.isprintable() for line in drawing.split("\n"))
    assert widest(drawing) <= 60
    assert drawing.isascii() or not ascii

"""The page in a real browser: what is drawn is right, and what people do with it works."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import monotonic

import pytest
from playwright.sync_api import Browser, Page

from causet.formats.trace import read_trace
from causet.model import Event
from causet.view.narrow import Selection
from causet.view.page import judged_drawing, write_page
from causet.view.page import page as page_of
from causet.view.payload import Drawing
from tests.helpers.browser import opened, running_browser, until
from tests.helpers.places import TRACES
from tests.helpers.talk import TALK, deliver, receive, send

EVENTS = TRACES / "events"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with running_browser() as found:
        yield found


@pytest.fixture(scope="module")
def talk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_page(tmp_path_factory.mktemp("page") / "talk.html", TALK, "a talk")


def pasts_of(events: Sequence[Event]) -> dict[str, set[str]]:
    """Happened-before by its definition: for each event the ids of all before it."""
    sends = {event.message: event for event in events if event.kind == "send"}
    known = {event.id: event for event in events}
    previous: dict[str, Event] = {}
    last: dict[str, Event] = {}
    for event in sorted(events, key=lambda event: (event.process, event.seq)):
        if event.process in last:
            previous[event.id] = last[event.process]
        last[event.process] = event
    found: dict[str, set[str]] = {}
    todo = list(events)
    while todo:
        event = todo[-1]
        causes = [known[parent] for parent in event.parents if parent in known]
        if event.kind in ("receive", "deliver") and event.message in sends:
            causes.append(sends[event.message])
        if event.id in previous:
            causes.append(previous[event.id])
        missing = [cause for cause in causes if cause.id not in found]
        if missing:
            todo += missing
            continue
        found[event.id] = set().union(*({cause.id} | found[cause.id] for cause in causes))
        todo.pop()
    return found


def numbers(page: Page) -> dict[str, int]:
    """Events by their ids, as the page numbers them."""
    return {each["id"]: each["index"] for each in page.evaluate("window.causet.geometry().events")}


# ---------------------------------------------------------------- what is drawn


def test_lanes_events_arrows_and_the_violation_of_a_small_execution(browser: Browser, talk: Path) -> None:
    with opened(browser, talk) as page:
        found = page.evaluate("window.causet.geometry()")
        name = {each["index"]: each["id"] for each in found["events"]}
        assert set(name.values()) == {event.id for event in TALK}
        lanes = {(each["process"], each["y"]) for each in found["events"]}
        assert len(lanes) == len({y for _, y in lanes}) == 4
        arrows = {(name[each["from"]], name[each["to"]]) for each in found["arrows"]}
        assert arrows == {("p1#1", "p2#1"), ("p2#3", "p3#1"), ("p1#1", "p3#3")}
        assert page.get_by_text("1 delivered too early").first.is_visible()
        page.get_by_role("tab", name="Too early").click()
        proof = "p3 delivered b before a. But p2 delivered a before it sent b."
        assert page.get_by_text(proof).first.is_visible()
        assert "kill -9" in page.evaluate("window.causet.svg()")


@pytest.mark.parametrize(
    "name",
    [
        "vc_chord",
        "git_antidote_authors",
        "spans_onlineboutique_requests",
        *(pytest.param(name, marks=pytest.mark.soak) for name in ("vc_voldemort", "mpi_epoch8")),
    ],
)
def test_what_is_drawn_is_happened_before_of_real_traces(browser: Browser, tmp_path: Path, name: str) -> None:
    if not EVENTS.is_dir():
        pytest.skip(f"no real traces at {EVENTS}")
    events = read_trace(EVENTS / f"{name}.jsonl.gz")[:1500]
    file = write_page(tmp_path / "page.html", events, name)
    with opened(browser, file) as page:
        found = page.evaluate("window.causet.geometry()")
        of = {each["id"]: each for each in found["events"]}
        assert len(of) == len(events)
        by_index = {each["index"]: each["id"] for each in found["events"]}
        pasts = pasts_of(events)
        place = {event.id: of[event.id]["x"] for event in events}
        assert all(place[cause] < place[effect] for effect, causes in pasts.items() for cause in causes)
        arrows = {(by_index[each["from"]], by_index[each["to"]]) for each in found["arrows"]}
        assert arrows == expected_arrows(events)
        for event in events[:: max(len(events) // 15, 1)]:
            index = of[event.id]["index"]
            future = {effect for effect, causes in pasts.items() if event.id in causes}
            rest = set(place) - pasts[event.id] - future - {event.id}
            for asked, expected in (("past", pasts[event.id]), ("future", future), ("concurrent", rest)):
                answer = page.evaluate(f"window.causet.{asked}({index})")
                assert {by_index[each] for each in answer} == expected


def expected_arrows(events: Sequence[Event]) -> set[tuple[str, str]]:
    """From other processes: parents; and a send to its reception, or to the delivery where there is none."""
    sends = {event.message: event for event in events if event.kind == "send"}
    process = {event.id: event.process for event in events}
    received = {(event.process, event.message) for event in events if event.kind == "receive"}
    found = set()
    for event in events:
        others = [cause for cause in event.parents if process.get(cause, event.process) != event.process]
        found |= {(cause, event.id) for cause in others}
        sent = sends.get(event.message) if event.kind in ("receive", "deliver") else None
        if sent is None or sent.process == event.process:
            continue
        if event.kind == "receive" or (event.process, event.message) not in received:
            found.add((sent.id, event.id))
    return found


# ---------------------------------------------------------------- what people do


def test_search_by_field_and_a_wrong_query_is_told(browser: Browser, talk: Path) -> None:
    with opened(browser, talk) as page:
        index = numbers(page)
        box = page.get_by_role("searchbox").or_(page.get_by_placeholder("Find")).first
        box.fill("process=p2 kind=send text~/RETRY/i")
        box.press("Enter")
        until(page, f"window.causet.state().selected === {index['p2#3']}")
        box.fill("colour=red")
        page.get_by_text("colour").first.wait_for()
        box.fill("text~/(/")
        page.wait_for_timeout(300)
        assert page.get_by_text("regular expression").or_(page.get_by_text("regex")).first.is_visible()


def test_cones_concurrency_and_everything_again_by_keys(browser: Browser, talk: Path) -> None:
    with opened(browser, talk) as page:
        index = numbers(page)
        page.evaluate(f"window.causet.select({index['p2#3']})")
        page.locator("canvas").first.focus()

        def shown_after(key: str) -> set[int]:
            page.keyboard.press(key)
            page.wait_for_timeout(150)
            return set(page.evaluate("window.causet.shown()"))

        past = {index[each] for each in ("p1#1", "p2#1", "p2#2", "p2#3")}
        assert shown_after("c") == past
        page.keyboard.press("c")
        assert shown_after("f") == {index[each] for each in ("p2#3", "p3#1", "p3#2", "p3#3", "p3#4")}
        page.keyboard.press("f")
        assert shown_after("x") == {index[each] for each in ("p1#2", "p1#3", "p4#1", "p2#3")}
        page.get_by_role("button", name="Show everything").click()
        assert len(page.evaluate("window.causet.shown()")) == len(TALK)


def test_a_hidden_process_leaves_its_causality_dashed(browser: Browser, talk: Path) -> None:
    with opened(browser, talk) as page:
        index = numbers(page)
        page.get_by_role("tab", name="Processes").click()
        page.get_by_role("checkbox", name="p2").uncheck()
        page.wait_for_timeout(150)
        found = page.evaluate("window.causet.geometry()")
        assert {each["process"] for each in found["events"]} == {"p1", "p3", "p4"}
        dashed = {(each["from"], each["to"]) for each in found["dashed"]}
        assert dashed == {(index["p1#1"], index["p3#1"])}


def test_time_order_marks_what_stands_before_its_cause(browser: Browser, talk: Path) -> None:
    with opened(browser, talk) as page:
        index = numbers(page)
        page.get_by_role("radio", name="time").or_(page.get_by_role("button", name="time")).last.click()
        page.wait_for_timeout(200)
        arrows = page.evaluate("window.causet.geometry().arrows")
        backwards = {(each["from"], each["to"]) for each in arrows if each["backwards"]}
        assert backwards == set(), "b is sent at 5 and arrives at 30; a is sent at 10: no arrow goes back"
        place = {each["id"]: each["x"] for each in page.evaluate("window.causet.geometry().events")}
        assert place["p2#3"] < place["p1#1"], "the answer stands before its question"
        assert index


def test_the_view_is_in_the_address_and_comes_back(browser: Browser, talk: Path) -> None:
    with opened(browser, talk) as page:
        index = numbers(page)
        page.evaluate(f"window.causet.select({index['p2#3']})")
        page.locator("canvas").first.focus()
        page.keyboard.press("c")
        page.get_by_role("button", name="level").or_(page.get_by_role("radio", name="level")).first.click()
        page.wait_for_timeout(500)
        address = "#" + page.evaluate("location.hash.slice(1)")
        state, shown = page.evaluate("window.causet.state()"), page.evaluate("window.causet.shown()")
        assert len(address) > 1
    with opened(browser, talk, address) as page:
        page.wait_for_timeout(200)
        assert page.evaluate("window.causet.shown()") == shown
        assert page.evaluate("window.causet.state()") == state


def test_a_moment_is_scrubbed_to_with_messages_in_flight_and_held(browser: Browser, talk: Path) -> None:
    with opened(browser, talk) as page:
        slider = page.get_by_role("slider").first
        slider.focus()
        page.keyboard.press("Home")
        page.wait_for_timeout(150)
        assert page.get_by_text("in flight").first.is_visible()
        before = page.evaluate("window.causet.state()")
        page.keyboard.press("ArrowRight")
        page.wait_for_timeout(150)
        assert page.evaluate("window.causet.state()") != before


def test_svg_and_png_can_be_saved(browser: Browser, talk: Path, tmp_path: Path) -> None:
    with opened(browser, talk) as page:
        for name, begins in (("SVG", b"<"), ("PNG", b"\x89PNG")):
            with page.expect_download() as waiting:
                page.get_by_role("button", name=name).first.click()
            target = tmp_path / name
            waiting.value.save_as(target)
            data = target.read_bytes()
            assert data.startswith(begins) and len(data) > 1000


def test_every_control_can_be_reached_by_keyboard_and_has_a_name(browser: Browser, talk: Path) -> None:
    with opened(browser, talk) as page:
        unnamed = page.evaluate(
            """() => [...document.querySelectorAll('button, input, select, canvas, [role=tab]')]
            .filter(each => each.offsetParent !== null && !each.ariaHidden)
            .filter(each => !(each.textContent.trim() || each.getAttribute('aria-label')
              || each.getAttribute('aria-labelledby') || each.getAttribute('title') || each.labels?.length))
            .map(each => each.outerHTML)"""
        )
        assert unnamed == []
        reached = set()
        for _ in range(60):
            page.keyboard.press("Tab")
            reached.add(page.evaluate("document.activeElement?.tagName"))
        assert {"BUTTON", "INPUT", "CANVAS"} <= reached


# ---------------------------------------------------------------- two executions


def test_two_executions_side_by_side_with_what_differs(browser: Browser, tmp_path: Path) -> None:
    other = [event for event in TALK if event.process != "p4"]
    other = [event for event in other if event.process != "p3"] + [
        receive("p3", 1, "a"),
        deliver("p3", 2, "a"),
        receive("p3", 3, "b"),
        deliver("p3", 4, "b"),
    ]
    file = tmp_path / "both.html"
    drawings = [judged_drawing(TALK, "one"), judged_drawing(other, "two")]
    file.write_text(page_of("compare", "both", drawings), encoding="utf-8")
    with opened(browser, file) as page:
        differences = page.evaluate("window.causet.differences()")
        assert differences, "p4 is only in one; p3 got a and b in another order"
        told = json.dumps(differences)
        assert "p4" in told or any("only" in json.dumps(each) for each in differences)


# ---------------------------------------------------------------- hostile input


HOSTILE = [
    "</script><script>window.hacked = 1</script>",
    "<img src=x onerror='window.hacked = 1'>",
    "\u202eesrever\u202c",
    "nul\x00 bell\x07 escape\x1b[2J",
    "@@CAUSET-DATA@@",
    "&lt;b&gt; \"quotes\" 'more' ${window.hacked = 1} `x`",
    "x" * 1_000_000,
    "\ud800 half a pair",
]


def test_hostile_text_is_shown_as_text_and_runs_nothing(browser: Browser, tmp_path: Path) -> None:
    events = [
        Event(text[:100], 1, id=text[:200] + str(number), text=text) for number, text in enumerate(HOSTILE)
    ]
    file = write_page(tmp_path / "page.html", events, HOSTILE[0])
    with opened(browser, file) as page:
        assert page.evaluate("window.hacked") is None
        assert page.title() == HOSTILE[0]
        assert len(page.evaluate("window.causet.geometry().events")) == len(HOSTILE)
        for number in range(len(HOSTILE)):
            page.evaluate(f"window.causet.select({number})")
            page.wait_for_timeout(50)
        assert page.evaluate("window.hacked") is None
        shown = page.evaluate("document.body.innerText")
        assert "\u202e" not in shown and "\x1b" not in shown
        assert len(shown) < 200_000
        svg = page.evaluate("window.causet.svg()")
        assert "<script" not in svg and "<img" not in svg


# ---------------------------------------------------------------- many events


def crowd(count: int, processes: int = 20) -> list[Event]:
    """Everybody in turn: a send to the next one, and what came from the one before."""
    seqs: dict[str, int] = defaultdict(int)
    events: list[Event] = []
    for number in range(count):
        process = f"p{number % processes}"
        seqs[process] += 1
        if number % 2 == 0 or number < processes:
            to = f"p{(number * 7 + 3) % processes}"
            events.append(send(process, seqs[process], f"m{number}", to, time=number))
        else:
            message = f"m{number - processes - 1}" if number > 2 * processes else f"m{0}"
            events.append(receive(process, seqs[process], message, time=number))
    return events


def drawing(events: Sequence[Event], wanted: Selection | None = None) -> Drawing:
    return (wanted or Selection()).of(Drawing.of("crowd", events))


def test_a_hundred_thousand_events_open_quickly_and_pan_smoothly(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text(page_of("view", "crowd", [drawing(crowd(100_000))]), encoding="utf-8")
    begin = monotonic()
    with opened(browser, file) as page:
        page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        assert monotonic() - begin < 3 * slowness()
        box = page.locator("canvas").first.bounding_box()
        assert box is not None
        middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        page.mouse.move(*middle)
        for _ in range(12):
            page.mouse.wheel(0, -300)
        page.wait_for_timeout(300)
        page.evaluate("window.causet.resetFrames()")
        page.mouse.down()
        for step in range(60):
            page.mouse.move(middle[0] - step * 6, middle[1])
        page.mouse.up()
        page.wait_for_timeout(200)
        drawn = sorted(page.evaluate("window.causet.frames()"))
        assert len(drawn) >= 20, "it was panned"
        assert drawn[int(len(drawn) * 0.95)] <= 33 * slowness(), drawn[-5:]


def slowness() -> float:
    """How much slower this machine is now than when it is quiet: other tests may run beside this one."""
    begin = monotonic()
    sum(number * number for number in range(2_000_000))
    return max(1.0, (monotonic() - begin) / 0.2)


@pytest.mark.parametrize("count", [220_000, pytest.param(1_000_000, marks=pytest.mark.soak)])
def test_many_events_open_with_a_banner_about_the_rest(browser: Browser, tmp_path: Path, count: int) -> None:
    events = [Event(f"p{number % 10}", number // 10 + 1, time=number) for number in range(count)]
    file = tmp_path / "page.html"
    file.write_text(page_of("view", "many", [drawing(events)]), encoding="utf-8")
    with opened(browser, file) as page:
        assert page.get_by_text(f"200,000 of {count:,} events are shown").first.is_visible()
        assert len(page.evaluate("window.causet.shown()")) <= 200_000

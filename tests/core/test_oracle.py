"""The oracle against executions that are drawn and worked out by hand.

Executions are written one process per line, its events from left to right:

    a>p2,p3   sends a to p2 and p3        n>p2*    sends the control message n to p2
    a?        receives a                  a!       delivers a
    .         a local step
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from causet.check.agreement import Disagreement
from causet.check.oracle import Verdict, Violation, causal_pasts, judge
from causet.errors import BadInput
from causet.model import Event


def execution(text: str) -> list[Event]:
    events = []
    for line in text.strip().splitlines():
        process, _, steps = line.strip().partition(":")
        for seq, step in enumerate(steps.split(), start=1):
            control = step.endswith("*")
            step = step.removesuffix("*")
            if step == ".":
                events.append(Event(process, seq))
            elif step.endswith("?"):
                events.append(Event(process, seq, "receive", message=step[:-1], control=control))
            elif step.endswith("!"):
                events.append(Event(process, seq, "deliver", message=step[:-1], control=control))
            else:
                message, _, targets = step.partition(">")
                to = tuple(filter(None, targets.split(",")))
                events.append(Event(process, seq, "send", message=message, to=to, control=control))
    return events


def judged(text: str) -> Verdict:
    return judge(execution(text))


# ---------------------------------------------------------------- precedence


def test_what_the_sender_sent_or_delivered_before_precedes_transitively() -> None:
    #  p1  a──┐        d          a is known to b's sender by delivery,
    #  p2     └!  b──┐            b to c's sender by delivery,
    #  p3            └!  c        a to d's sender because it sent a; c and d are concurrent.
    pasts = causal_pasts(
        execution("""
            p1: a>p2 d>p2
            p2: a? a! b>p3
            p3: b? b! c>p1
        """)
    )
    assert pasts == {
        "a": frozenset(),
        "b": frozenset({"a"}),
        "c": frozenset({"a", "b"}),
        "d": frozenset({"a"}),
    }


def test_receptions_alone_teach_nothing() -> None:
    #  p1  a────────┬──────────┐
    #  p2           ?  b──┐  ! │     p2 has received a, but not delivered it, when it sends b:
    #  p3                 └!   └!    a and b are concurrent and p3 may deliver b first.
    text = """
        p1: a>p2,p3
        p2: a? b>p3 a!
        p3: b? b! a? a!
    """
    assert causal_pasts(execution(text))["b"] == frozenset()
    assert judged(text).status == "valid"


def test_process_order_is_the_order_of_seq_whatever_the_order_of_the_lines() -> None:
    events = execution("""
        p1: a>p2,p3
        p2: a? a! b>p3
        p3: b? b! a? a!
    """)
    verdict = judge(events)
    assert verdict.violations
    for order in itertools.islice(itertools.permutations(events), 0, 5000, 100):
        assert judge(order) == verdict


# ---------------------------------------------------------------- violations


def test_an_answer_before_its_question_is_a_violation() -> None:
    #  p1  a──┬───────────────┐
    #  p2     └!  b──┐        │
    #  p3            └!       └!     b overtakes a at p3
    verdict = judged("""
        p1: a>p2,p3
        p2: a? a! b>p3
        p3: b? b! a? a!
    """)
    assert verdict.violations == (Violation("p3", delivered="b", before="a", because=("a", "b")),)
    assert not verdict.ok
    assert verdict.status == "invalid"
    assert (verdict.events, verdict.messages, verdict.deliveries) == (8, 2, 3)


def test_two_messages_of_one_sender_out_of_order_are_a_violation() -> None:
    #  p1  a──────┐  b──┐
    #  p2         │     └!
    #             └────────!
    verdict = judged("""
        p1: a>p2 b>p2
        p2: b? b! a? a!
    """)
    assert verdict.violations == (Violation("p2", "b", "a", ("a", "b")),)


def test_a_violation_is_found_through_a_chain_of_three() -> None:
    #  p1  a─┬────────────────────────┐
    #  p2    └! b─┐                   │      p4 gets c, whose sender p3 knows b and nothing of a;
    #  p3         └! c─┐              │      b's sender p2 knows a. b is not addressed to p4.
    #  p4              └!             └!
    verdict = judged("""
        p1: a>p2,p4
        p2: a? a! b>p3
        p3: b? b! c>p4
        p4: c? c! a? a!
    """)
    assert verdict.violations == (Violation("p4", "c", "a", ("a", "b", "c")),)


def test_the_chain_is_a_shortest_one_and_ties_go_to_the_smaller_id() -> None:
    #  p1  a to p2, p3, p4, p5
    #  p2  delivers a, sends x to p4          p3  delivers a, sends w to p4
    #  p4  delivers x and w (never a before), sends z to p5
    #  p5  delivers z before a. From a to z: a x z and a w z are equally long, w is smaller.
    # At p4 itself w and x come before a as well: both are violations with a chain of two.
    verdict = judged("""
        p1: a>p2,p3,p4,p5
        p2: a! x>p4
        p3: a! w>p4
        p4: x! w! z>p5 a!
        p5: z! a!
    """)
    assert verdict.violations == (
        Violation("p4", "x", "a", ("a", "x")),
        Violation("p4", "w", "a", ("a", "w")),
        Violation("p5", "z", "a", ("a", "w", "z")),
    )


def test_of_several_missing_messages_the_one_with_the_shortest_chain_is_named() -> None:
    #  p1  a to p2, p4        p2  delivers a, sends b to p3        p3  delivers b, sends m to p4, then n to p4
    #  p4  delivers n before a and m. From a it is a b n, from m it is m n: m is named, although a < m.
    verdict = judged("""
        p1: a>p2,p4
        p2: a! b>p3
        p3: b! m>p4 n>p4
        p4: n! a! m!
    """)
    assert verdict.violations == (Violation("p4", "n", "m", ("m", "n")),)


def test_of_missing_messages_equally_near_the_smaller_id_is_named() -> None:
    #  p1  b, then a, then c, all to p2, which delivers only c in time: both b and a precede it directly.
    verdict = judged("""
        p1: b>p2 a>p2 c>p2
        p2: c! b! a!
    """)
    assert verdict.violations == (Violation("p2", "c", "a", ("a", "c")),)


def test_a_cause_that_is_addressed_elsewhere_need_not_be_delivered_here() -> None:
    verdict = judged("""
        p1: a>p2
        p2: a? a! b>p3
        p3: b? b!
    """)
    assert verdict.status == "valid"


def test_a_cause_that_never_comes_is_a_violation_and_undelivered() -> None:
    #  p1  a──┬─── …never
    #  p2     └!  b──┐
    #  p3            └!
    verdict = judged("""
        p1: a>p2,p3
        p2: a? a! b>p3
        p3: b? b!
    """)
    assert verdict.violations == (Violation("p3", "b", "a", ("a", "b")),)
    assert verdict.undelivered == (("p3", "a"),)


def test_a_lost_cause_is_excused_unless_the_protocol_promises_against_loss() -> None:
    events = execution("""
        p1: a>p2,p3
        p2: a? a! b>p3
        p3: b? b!
    """)
    excused = judge(events, lost={("p3", "a")})
    assert excused.violations == ()
    assert excused.undelivered == ()
    assert excused.status == "valid"
    promised = judge(events, lost={("p3", "a")}, loss_counts=True)
    assert promised.violations == (Violation("p3", "b", "a", ("a", "b")),)
    assert promised.undelivered == (("p3", "a"),)
    # Lost elsewhere is no excuse here.
    assert judge(events, lost={("p2", "a")}).violations == promised.violations


def test_a_lost_cause_that_comes_after_all_must_still_come_in_order() -> None:
    events = execution("""
        p1: a>p2 b>p2
        p2: b! a!
    """)
    assert judge(events, lost={("p2", "a")}).violations == (Violation("p2", "b", "a", ("a", "b")),)


def test_a_message_to_a_process_without_any_event_is_undelivered() -> None:
    verdict = judged("p1: a>p2")
    assert verdict.undelivered == (("p2", "a"),)
    assert verdict.violations == ()


# ---------------------------------------------------------------- control messages, own copies


@pytest.mark.parametrize("marks", [("*", "", ""), ("", "*", ""), ("", "", "*")])
def test_control_messages_take_no_part_in_precedence_and_need_no_delivery(
    marks: tuple[str, str, str],
) -> None:
    #  p1  a──┐  n──┐           Only n, a null message, tells p3 anything of a, and n does not count:
    #  p2     ?     └!  b──┐    a and b are concurrent. One mark on any of n's events makes it control.
    #  p3                  └!  a!
    send, receive, deliver = marks
    verdict = judged(f"""
        p1: a>p3 n>p2,p3{send}
        p2: n?{receive} n!{deliver} b>p3
        p3: b! a!
    """)
    assert verdict.status == "valid"
    assert verdict.undelivered == ()
    assert (verdict.messages, verdict.deliveries) == (2, 2)


def test_nobody_expects_the_sender_to_deliver_its_own_message() -> None:
    # p1's own copy of a is delivered at the send, so b, which follows a, finds nothing missing at p1.
    verdict = judged("""
        p1: a>p2 b!
        p2: a! b>p1
    """)
    assert verdict.status == "valid"
    assert verdict.undelivered == ()


def test_a_sender_that_names_itself_is_a_target_like_any_other() -> None:
    # The copies of a and b travel back to p1: b overtakes a there.
    overtaken = judged("p1: a>p1 b>p1 b? b! a? a!")
    assert overtaken.violations == (Violation("p1", "b", "a", ("a", "b")),)
    assert overtaken.strangers == ()
    # Sending a does not count as its delivery: the answer b may not come at p1 before the copy of a.
    answered = judged("""
        p1: a>p1,p2 b!
        p2: a! b>p1
    """)
    assert answered.violations == (Violation("p1", "b", "a", ("a", "b")),)
    assert answered.undelivered == (("p1", "a"),)


# ---------------------------------------------------------------- other findings and faults


def test_a_second_delivery_is_a_duplicate_and_no_violation() -> None:
    # The first delivery of a is in order; that a comes again after b changes nothing about b.
    verdict = judged("""
        p1: a>p2 b>p2
        p2: a! b! a! a!
    """)
    assert verdict.duplicates == (("p2", "a"),)
    assert verdict.violations == ()
    assert verdict.status == "invalid"


def test_a_delivery_where_the_message_is_not_addressed_is_a_stranger() -> None:
    verdict = judged("""
        p1: a>p2
        p2: a!
        p3: a!
    """)
    assert verdict.strangers == (("p3", "a"),)
    assert not verdict.ok
    assert verdict.status == "invalid"


def test_a_deliver_event_for_the_own_copy_is_judged_and_counted_like_any_other() -> None:
    verdict = judged("p1: a>p2 a!\n p2: a!")
    assert (verdict.strangers, verdict.deliveries, verdict.status) == ((), 2, "valid")
    # b answers a, and p1 delivers it before its own copy of a.
    verdict = judged("""
        p1: a>p2 b! a!
        p2: a! b>p1
    """)
    assert verdict.violations == (Violation("p1", "b", "a", ("a", "b")),)
    assert judged("p1: a>p2 a! a!").duplicates == (("p1", "a"),)


def test_a_delivery_without_a_send_leaves_the_answer_unknown() -> None:
    verdict = judged("p1: a!")
    assert verdict.unsent == (("p1", "a"),)
    assert verdict.strangers == ()
    assert verdict.ok
    assert verdict.status == "unknown"


def test_gaps_and_unknown_parents_leave_the_answer_unknown() -> None:
    sent = Event("p1", 1, "send", message="a", to=("p2",))
    # p2's events have the numbers 3, 4 and 7: missing from 1 and from 5.
    delivered = [Event("p2", 3, "deliver", message="a"), Event("p2", 4), Event("p2", 7)]
    verdict = judge([sent, *delivered])
    assert verdict.gaps == (("p2", 1), ("p2", 5))
    assert verdict.status == "unknown"
    child = Event("p2", 2, parents=("p1#1", "nobody"))
    verdict = judge([sent, Event("p2", 1, "deliver", message="a"), child])
    assert verdict.unknown_parents == (("p2#2", "nobody"),)
    assert verdict.status == "unknown"


def test_a_finding_outweighs_a_faulty_log() -> None:
    verdict = judged("""
        p1: a>p2 b>p2
        p2: x! b! a!
    """)
    assert verdict.unsent == (("p2", "x"),)
    assert verdict.status == "invalid"


@pytest.mark.parametrize("text", ["", "p1: . .", "p1: a>p2\n p2: a?", "p1: n>p2*\n p2: n?* n!*"])
def test_without_a_delivery_the_answer_is_vacuous(text: str) -> None:
    assert judged(text).status == "vacuous"
    assert judged(text).ok


@pytest.mark.parametrize(
    ("events", "said"),
    [
        ([Event("p1", 1), Event("p1", 1)], '"p1" has two events with seq 1'),
        (execution("p1: a>p2\n p2: a>p1"), '"a" is sent twice'),
        ([Event("p1", 1, "send", message="a")], "without saying to whom"),
        ([Event("p1", 1, "send", to=())], "a send without a message"),
        ([Event("p1", 1, "deliver")], "a deliver without a message"),
    ],
)
def test_what_cannot_be_judged_is_bad_input(events: Sequence[Event], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        judge(events)


def test_a_cyclic_trace_does_not_stop_the_oracle() -> None:
    # p1 delivers b before it sends a, p2 delivers a before it sends b: impossible, but it must end.
    text = """
        p1: b! a>p2
        p2: a! b>p1
    """
    assert causal_pasts(execution(text)) == {"a": frozenset({"b"}), "b": frozenset({"a"})}
    assert judged(text).violations == ()


# ---------------------------------------------------------------- as early as possible


def test_a_delivery_right_after_the_last_missing_reception_is_not_late() -> None:
    # b waits at p3 for a. a's reception frees a and b, and only deliveries follow it.
    verdict = judged("""
        p1: a>p2,p3
        p2: a? a! b>p3
        p3: b? . a? a! b!
    """)
    assert verdict.late == ()


@pytest.mark.parametrize("between", [".", "c?", "n?*", "d>p1"])
def test_a_delivery_that_lets_another_event_go_first_is_late(between: str) -> None:
    # At p3 a and b are free from a's reception on; something stands between a's delivery and b's.
    verdict = judged(f"""
        p1: a>p2,p3 c>p3
        p2: a? a! b>p3
        p3: b? a? a! {between} b!
    """)
    assert verdict.late == (("p3", "b"),)
    assert verdict.violations == ()


def test_waiting_for_more_than_the_causes_is_late() -> None:
    # a and b are concurrent; p3 holds a, which was free at once, until b has come.
    verdict = judged("""
        p1: a>p3
        p2: b>p3
        p3: a? b? a! b!
    """)
    assert verdict.late == (("p3", "a"),)


def test_what_was_delivered_without_a_reception_in_the_log_is_not_judged_late() -> None:
    # Neither a (no reception) nor b (its cause has none) can be called late.
    verdict = judged("""
        p1: a>p2 b>p2
        p2: . a! b? . b!
    """)
    assert verdict.late == ()


# ---------------------------------------------------------------- total order


def test_two_processes_that_deliver_in_different_orders_disagree() -> None:
    # p3 and p4 agree on a before c, and differ on a, b and on b, c.
    verdict = judged("""
        p1: a>p3,p4 c>p3,p4
        p2: b>p3,p4
        p3: a! c! b!
        p4: b! a! c!
    """)
    # All three are contradictory together; the shortest cycle through a is that of a and b.
    assert verdict.disagreements == (Disagreement(("a", "b"), ("p3", "p4")),)
    assert verdict.status == "valid"  # causal order allows it


def test_processes_that_deliver_in_one_order_agree_whatever_each_of_them_misses() -> None:
    verdict = judged("""
        p1: a>p3,p4,p5 c>p3,p5
        p2: b>p4,p5
        p3: a! c!
        p4: b! a!
        p5: b! a! c!
    """)
    assert verdict.disagreements == ()


def test_own_copies_count_for_a_common_order_where_they_are_deliver_events() -> None:
    # Each has its own message before the other's; without events of its own a sender says nothing.
    verdict = judged("""
        p1: a>p2 b!
        p2: b>p1 a!
    """)
    assert verdict.disagreements == ()
    verdict = judged("""
        p1: a>p2 a! b!
        p2: b>p1 b! a!
    """)
    assert verdict.disagreements == (Disagreement(("a", "b"), ("p1", "p2")),)


def test_three_processes_may_agree_on_every_pair_and_have_no_common_order() -> None:
    verdict = judged("""
        s1: a>p1,p3
        s2: b>p1,p2
        s3: c>p2,p3
        p1: a! b!
        p2: b! c!
        p3: c! a!
    """)
    assert verdict.disagreements == (Disagreement(("a", "b", "c"), ("p1", "p2", "p3")),)
    assert verdict.status == "valid"


def test_contradictory_messages_are_reported_together_and_at_most_a_hundred_groups_are() -> None:
    messages = [f"m{number:03}" for number in range(240)]
    sends = "\n".join(f"s{m}: {m}>p1,p2" for m in messages)
    forth = " ".join(f"{m}!" for m in messages)
    swapped = [m for one, other in zip(messages[::2], messages[1::2], strict=True) for m in (other, one)]
    verdict = judged(f"{sends}\n p1: {forth}\n p2: {' '.join(f'{m}!' for m in swapped)}")
    assert len(verdict.disagreements) == 100  # of 120
    assert verdict.disagreements[1] == Disagreement(("m002", "m003"), ("p1", "p2"))
    back = " ".join(f"{m}!" for m in reversed(messages))
    assert len(judged(f"{sends}\n p1: {forth}\n p2: {back}").disagreements) == 1


# ---------------------------------------------------------------- against an even simpler reading


@st.composite
def executions(draw: st.DrawFn) -> list[Event]:
    """A possible execution: messages are delivered after they are sent, otherwise in any order."""
    processes = ["p1", "p2", "p3", "p4"][: draw(st.integers(2, 4))]
    histories: dict[str, list[Event]] = {process: [] for process in processes}
    travelling: list[tuple[str, str]] = []

    def happens(process: str, kind: str, message: str, to: tuple[str, ...] | None = None) -> None:
        seq = len(histories[process]) + 1
        histories[process].append(Event(process, seq, kind, message=message, to=to))

    for number in range(draw(st.integers(0, 14))):
        arrives = draw(st.booleans())
        if arrives and travelling:
            process, message = travelling.pop(draw(st.integers(0, len(travelling) - 1)))
            happens(process, "deliver", message)
        else:
            process = draw(st.sampled_from(processes))
            targets = draw(st.lists(st.sampled_from(processes), unique=True))
            happens(process, "send", f"m{number:02}", tuple(targets))
            travelling += [(target, f"m{number:02}") for target in targets]
    return [event for history in histories.values() for event in history]


@settings(max_examples=200, deadline=None)
@given(executions())
def test_it_agrees_with_the_definition_written_down_pair_by_pair(events: list[Event]) -> None:
    sends = {e.message: e for e in events if e.kind == "send" and e.message}
    deliveries = {(e.process, e.message): e.seq for e in events if e.kind == "deliver" and e.message}
    step = {
        (m, n)
        for m, n in itertools.permutations(sends, 2)
        if (sends[m].process == sends[n].process and sends[m].seq < sends[n].seq)
        or deliveries.get((sends[n].process, m), 1000) < sends[n].seq
    }
    # length[m, n]: messages on a shortest chain from m to n, by Floyd and Warshall.
    length = dict.fromkeys(step, 2)
    for via, m, n in itertools.product(sends, repeat=3):
        if (m, via) in length and (via, n) in length:
            length[m, n] = min(length.get((m, n), 1000), length[m, via] + length[via, n] - 1)
    assert causal_pasts(events) == {n: frozenset(m for m in sends if (m, n) in length) for n in sends}
    expected = {}
    for (process, n), at in deliveries.items():
        missing = [
            (length[m, n], m)
            for m in sends
            if (m, n) in length and process in (sends[m].to or ()) and deliveries.get((process, m), 1000) > at
        ]
        if missing:
            expected[process, n] = min(missing)
    verdict = judge(events)
    assert {(v.process, v.delivered): (len(v.because), v.before) for v in verdict.violations} == expected
    for violation in verdict.violations:
        assert (violation.because[0], violation.because[-1]) == (violation.before, violation.delivered)
        assert all(pair in step for pair in itertools.pairwise(violation.because))


def test_two_thousand_messages_to_eight_processes_take_seconds() -> None:
    # Nine processes take turns to send to all others, who deliver at once: everything precedes what follows.
    processes = [f"p{number}" for number in range(9)]
    steps: dict[str, list[str]] = {process: [] for process in processes}
    for number in range(2000):
        sender = processes[number % 9]
        others = [process for process in processes if process != sender]
        steps[sender].append(f"m{number:04}>{','.join(others)}")
        for other in others:
            steps[other] += [f"m{number:04}?", f"m{number:04}!"]
    events = execution("\n".join(f"{process}: {' '.join(line)}" for process, line in steps.items()))
    started = time.process_time()
    verdict = judge(events)
    assert time.process_time() - started < 20  # 1 s on an ordinary machine
    assert verdict.status == "valid"
    assert verdict.messages == 2000
    assert verdict.deliveries == 16000
    assert (verdict.late, verdict.disagreements, verdict.undelivered) == ((), (), ())

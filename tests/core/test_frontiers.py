"""Frontiers per group: a reader waits for exactly what is in the past of a message and addressed to it.

The expected answers come from the definition (`tests/helpers/frontiers`), from every interleaving of small
systems, and from the oracle.
"""

from __future__ import annotations

import pytest

from causet import frontier
from causet.check.scopes import scopes_for
from causet.errors import BadInput, BadStamp
from causet.frontier import Frontier
from causet.model import System, named_processes, with_several
from causet.protocols import Process, make_options, protocol_named
from causet.protocols.frontiers import Frontiers
from causet.simulate.replay import replay
from causet.simulate.schedule import parse, write_schedule
from causet.topology import groups_of
from tests.helpers.frontiers import (
    GROUPS,
    check_against_the_definition,
    check_cuts,
    check_every_interleaving,
    check_random_runs,
    check_the_news_of_a_message,
    check_the_parts_of_a_message,
    check_what_is_known_adds_nothing,
    check_what_others_say_of_a_process,
)


def test_a_reader_waits_for_exactly_the_past_that_is_addressed_to_it() -> None:
    check_against_the_definition(frontier, range(150))


@pytest.mark.soak
@pytest.mark.parametrize("chunk", range(4))
def test_the_same_in_thousands_of_runs(chunk: int) -> None:
    check_against_the_definition(frontier, range(1000 + 5000 * chunk, 1000 + 5000 * (chunk + 1)))


def test_what_is_known_adds_nothing() -> None:
    check_what_is_known_adds_nothing(frontier)


def test_the_parts_of_a_message() -> None:
    check_the_parts_of_a_message(frontier)


def test_what_others_say_of_a_process_changes_none_of_its_numbers() -> None:
    check_what_others_say_of_a_process(frontier)


def test_the_news_of_a_message_are_all_that_counts() -> None:
    check_the_news_of_a_message(frontier, range(100))


def test_what_a_cut_has_is_forgotten() -> None:
    check_cuts(frontier)


def test_a_restarted_producer_does_not_make_stamps_grow() -> None:
    """1,000 runs of one producer, each answered in the group: what is answered is covered."""
    desk, reader = Frontier[str, str]("desk"), Frontier[str, str]("reader")
    largest = 0
    for run in range(1000):
        shop = Frontier[str, str](f"shop~{run}")
        order = shop.stamp(["orders"])
        desk.saw(shop.process, *order)
        reader.saw(shop.process, *order)
        answer = desk.stamp(["orders"])
        reader.saw("desk", *answer)
        late = Frontier[str, str]("late")  # knows of the order, and not of the answer
        late.saw(shop.process, *order)
        reader.saw("late", *late.stamp([f"of {run % 2}"]))
        largest = max(largest, len(reader.frontier["orders"]))
    assert largest == 1


# ---------------------------------------------------------------- as a protocol


@pytest.mark.parametrize("opens", [False, True])
@pytest.mark.parametrize("groups", GROUPS)
def test_every_interleaving_of_three_messages(groups: str, opens: bool) -> None:
    check_every_interleaving(Frontiers, groups, opens)


@pytest.mark.parametrize("opens", [False, True])
@pytest.mark.parametrize("groups", [pytest.param(each, marks=pytest.mark.soak) for each in GROUPS])
def test_every_interleaving_of_four_messages(groups: str, opens: bool) -> None:
    check_every_interleaving(Frontiers, groups, opens, messages=4)


def test_every_interleaving_of_four_messages_of_members_of_a_chain() -> None:
    check_every_interleaving(Frontiers, "chain", opens=False, messages=4)


def test_random_runs_with_open_groups_and_messages_to_several() -> None:
    check_random_runs(Frontiers, range(60))


STORY = """
processes: [shop, bank, orders, payments, both]
groups: {orders: [orders, both], payments: [payments, both], bank: [bank, both]}
steps:
  - {send: order, from: shop, group: [orders, bank]}
  - {receive: order, at: bank}
  - {send: payment, from: bank, group: payments}
  - {receive: payment, at: payments}
  - {receive: payment, at: both}
  - {receive: order, at: both}
  - {receive: order, at: orders}
"""


def test_an_order_and_its_payment_in_two_topics() -> None:
    """Neither the shop nor the bank reads where it writes; the reader of both groups waits, and no other."""
    schedule = parse(STORY)
    assert schedule.system.groups[3].parts == (0, 2)
    options, _ = make_options(Frontiers, schedule.system, {})
    result = replay(schedule, Frontiers, options)
    told = [(e.process, e.message) for e in result.events if e.kind == "deliver"]
    assert told == [
        ("bank", "order"),
        ("payments", "payment"),
        ("both", "order"),
        ("both", "payment"),
        ("orders", "order"),
    ]
    sent = next(e for e in result.events if e.kind == "send")
    assert sent.to == ("bank", "orders", "both") and sent.group == "orders+bank"
    assert write_schedule(parse(write_schedule(schedule))) == write_schedule(schedule)


def test_what_waits_is_said_in_words() -> None:
    schedule = parse(STORY.partition("  - {receive: order, at: both}")[0])
    options, _ = make_options(Frontiers, schedule.system, {})
    [line] = replay(schedule, Frontiers, options).held
    assert line == "both holds payment: needs message 1 of shop in orders, 0 delivered so far; " + (
        "message 1 of shop in bank, 0 delivered so far"
    )


@pytest.mark.parametrize(
    ("groups", "said"),
    [
        ("[orders, orders]", "a group is there twice"),
        ("[]", "a list with at least one group is needed"),
        ("[orders, cars]", 'unknown group "cars"'),
        ("[orders, 1]", "1 is not a group name"),
    ],
)
def test_a_list_of_groups_that_cannot_be_is_refused(groups: str, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        parse(STORY.replace("[orders, bank]}\n  - {receive", f"{groups}}}\n  - {{receive", 1))


def test_protocols_for_any_targets_need_no_groups_and_deliver_in_the_same_order() -> None:
    schedule = parse(STORY)
    for name in ("matrix", "histories", "optimal"):
        kind = protocol_named(name)
        options, _ = make_options(kind, schedule.system, {})
        found = [
            (e.process, e.message) for e in replay(schedule, kind, options).events if e.kind == "deliver"
        ]
        assert found.index(("both", "order")) < found.index(("both", "payment")), name
        with pytest.raises(BadInput, match=f"open, at-once: {name} does not send to groups"):
            scopes_for(kind, 3, 3, opens=True)


@pytest.mark.parametrize("protocol", ["vector", "fast", "relative"])
def test_other_protocols_need_senders_that_are_members(protocol: str) -> None:
    schedule = parse(STORY)
    kind = protocol_named(protocol)
    options, _ = make_options(kind, schedule.system, {})
    with pytest.raises(
        BadInput, match=f"shop is not a member of orders\\+bank, as a sender must be with {protocol}"
    ):
        replay(schedule, kind, options)
    with pytest.raises(BadInput, match=f"open: with {protocol} a sender is a member"):
        scopes_for(kind, 3, 3, opens=True)
    with pytest.raises(BadInput, match=f"at-once: with {protocol} a message goes to one group"):
        scopes_for(kind, 3, 3, at_once=2)


def test_hostile_stamps_are_refused() -> None:
    system = System(named_processes(3), with_several(groups_of("chain", 3, 1), 2))
    options, _ = make_options(Frontiers, system, {})
    p1, p2 = Process(Frontiers, 0, system, options), Process(Frontiers, 1, system, options)
    [packet] = p1.send(0b010, 0).packets
    sender, number, targets, to, stamp, *rest = p1.save_packet(packet)
    assert p2.load_packet((sender, number, targets, to, stamp, *rest)) == packet
    wrong = {
        b"\x1d\x00\x00": "it has no group",
        b"\x1d\x01\x00\x00\x00": "a message has the number 0",
        b"\x1d\x01\x07\x01\x00": "a group is 7, more than 2",
        b"\x1d\x02\x01\x01\x00\x01\x00": "a group appears twice or out of order",
        b"\x1d\x01\x00\x01\x01\x02\x01\x00\x01": "or is a name for several",
        b"\x1d\x01\x00\x01\x01\x00\x00": "a group has no entry",
        b"\x1d\x01\x01\x01\x00": "was made for another packet",
        b"\x1d\x01\x00\x01\x01\x00\x01\x00\x01": "was made for another packet",  # its own cause
        stamp + b"\x00": "1 bytes follow its end",
    }
    for data, said in wrong.items():
        with pytest.raises(BadStamp, match=said):
            p2.load_packet((sender, number, targets, to, data, *rest))

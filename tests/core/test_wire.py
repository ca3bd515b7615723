"""Stamps and packets as bytes: what goes in comes out, and nothing else comes in.

Bytes come from outside. Whatever they are, they are either the one and only form of a stamp or refused with
BadStamp; and whatever a packet says, the process that takes it stays whole.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from causet.errors import BadInput, BadStamp, CausetError
from causet.frontier import Stamped
from causet.model import mask, only
from causet.protocols import PROTOCOLS, Outcome, Packet, Process, Protocol
from causet.protocols.merge_clock import Timestamp
from causet.protocols.wire import LARGEST, TAGS, VERSION, Reader, Writer
from tests.helpers.executions import SIZES, Setting, execution, setting

OPTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    **{name: (name, {}) for name in PROTOCOLS},
    "fast, neighbours": ("fast", {"variant": "neighbours"}),
    "histories, R6.1 off": ("histories", {"r61": False}),
    "merge, modulo": ("merge", {"modulus": 100}),
    "merge, rc": ("merge", {"clock": "rc"}),
}
"""Every protocol, and those of its options that change its stamps."""

EVERY_PROTOCOL = pytest.mark.parametrize("what", OPTIONS)
EVERY_SYSTEM = pytest.mark.parametrize("size", SIZES)
SYSTEMS = st.sampled_from(SIZES)
FUZZ = settings(max_examples=30, deadline=None)
HUGE = b"\xff" * 8 + b"\x7f"
"""The varint of 2^63 - 1."""


@cache
def made(what: str, size: int) -> Setting:
    name, options = OPTIONS[what]
    return setting(name, size, options)


@cache
def some_process(what: str, size: int) -> Process:
    """A process that nothing has happened to, to read and write with."""
    return made(what, size).processes()[0]


@cache
def stamps(what: str, size: int) -> dict[bytes, Any]:
    """Real stamps by their bytes, at most 20 of them, spread over an execution."""
    protocol = some_process(what, size).protocol
    found = {
        protocol.encode(packet.stamp): packet.stamp for packet in execution(made(what, size), 120).packets
    }
    every = list(found.items())
    return dict(every[:: len(every) // 20 + 1])


def same(a: Any, b: Any) -> bool:
    """Equal values of the same types, arrays included."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b)


def refused(protocol: Protocol, data: bytes) -> bool:
    try:
        protocol.decode(data)
    except BadStamp:
        return True
    return False


def assert_canonical_or_refused(process: Process, data: bytes) -> None:
    protocol = process.protocol
    try:
        stamp = protocol.decode(data)
    except BadStamp:
        return
    assert protocol.encode(stamp) == data


# ---------------------------------------------------------------- numbers, worked out by hand


@pytest.mark.parametrize(
    ("value", "data"),
    [
        (0, "00"),
        (1, "01"),
        (127, "7f"),
        (128, "8001"),
        (300, "ac02"),
        (16_383, "ff7f"),
        (16_384, "808001"),
        (2**63 - 1, "ffffffffffffffff7f"),
    ],
)
def test_a_number_is_a_little_endian_varint_of_seven_bits_a_byte(value: int, data: str) -> None:
    writer = Writer("none")
    writer.number(value)
    assert writer.done() == bytes.fromhex("10" + data)
    reader = Reader("none", bytes.fromhex("10" + data))
    assert reader.number("it") == value
    reader.done()


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ("", "it ends inside it"),
        ("80", "it ends inside it"),
        ("8000", "longer than it needs"),
        ("ff8000", "longer than it needs"),
        ("80808080808080808001", "more than"),
        ("ffffffffffffffffff01", "more than"),
        ("ffffffffffffffffffff01", "longer than 64 bits"),
        ("80" * 1000, "longer than 64 bits"),
    ],
)
def test_a_number_that_is_cut_or_too_long_or_too_large_is_refused(data: str, why: str) -> None:
    with pytest.raises(BadStamp, match=why):
        Reader("none", bytes.fromhex("10" + data)).number("it")


@pytest.mark.parametrize(
    ("values", "data"),
    [
        ([], "01"),
        ([0, 255], "0100ff"),
        ([1, 256], "0201000001"),
        ([65_535], "02ffff"),
        ([65_536], "0400000100"),
        ([2**32 - 1], "04ffffffff"),
        ([2**32], "080000000001000000"),
        ([2**63 - 1], "08ffffffffffffff7f"),
    ],
)
def test_counters_take_as_many_bytes_each_as_the_largest_needs(values: list[int], data: str) -> None:
    writer = Writer("none")
    writer.counters(np.array(values, dtype=np.int64))
    assert writer.done() == bytes.fromhex("10" + data)
    reader = Reader("none", writer.done())
    assert reader.counters(len(values), "them").tolist() == values
    reader.done()


@pytest.mark.parametrize(
    "data", ["020700", "0407000000", "080700000000000000", "08ffffffff00000000", "01", "0300"]
)
def test_counters_in_a_wider_form_than_they_need_are_refused(data: str) -> None:
    with pytest.raises(BadStamp):
        Reader("none", bytes.fromhex("10" + data)).counters(1, "it")


def test_counters_of_more_than_63_bits_are_refused() -> None:
    with pytest.raises(BadStamp, match="more than"):
        Reader("none", b"\x10\x08" + b"\xff" * 8).counters(1, "it")


@pytest.mark.parametrize(
    ("members", "size", "data"),
    [
        # One byte of mask: only the empty list is shorter.
        ([], 3, "01"),
        ([0], 3, "0001"),
        ([0, 2], 3, "0005"),
        # Two bytes of mask: a list of one is shorter, of two not.
        ([], 9, "01"),
        ([8], 9, "0208"),
        ([0, 8], 9, "000101"),
        # Four bytes of mask: a list of three is shorter, of four not.
        ([0, 5, 31], 32, "0400051f"),
        ([0, 1, 2, 3], 32, "000f000000"),
    ],
)
def test_a_set_of_processes_is_a_list_or_a_mask_whichever_is_shorter(
    members: list[int], size: int, data: str
) -> None:
    writer = Writer("none")
    writer.processes(mask(members), size)
    assert writer.done() == bytes.fromhex("10" + data)
    reader = Reader("none", writer.done())
    assert reader.processes(size, "it") == mask(members)
    reader.done()


def test_a_list_whose_members_need_two_bytes_each_gives_way_to_the_mask() -> None:
    # 124 members from 128 on: 1 + 2·124 bytes as a list, 1 + 125 as a mask.
    writer = Writer("none")
    writer.processes(mask(range(128, 252)), 1000)
    assert len(writer.done()) == 1 + 1 + 125


@pytest.mark.parametrize(
    ("data", "size"),
    [
        ("0000", 3),  # the empty set as a mask
        ("0200", 3),  # {0} as a list
        ("000001", 9),  # {8} as a mask
        ("03000a", 9),  # a member that does not exist, in a list
        ("0008", 3),  # … in a mask
        ("030100", 32),  # out of order
        ("030101", 32),  # twice
        ("05", 3),  # longer than there are processes
    ],
)
def test_a_set_of_processes_in_any_other_form_is_refused(data: str, size: int) -> None:
    with pytest.raises(BadStamp):
        Reader("none", bytes.fromhex("10" + data)).processes(size, "it")


# ---------------------------------------------------------------- stamps, worked out by hand


def two_answers(name: str) -> tuple[bytes, bytes]:
    """The stamps, in a system of three, of a first message from p1 to all and of p2's answer to all."""
    first, second, _ = setting(name, 3).processes()
    question = first.send(0b110, 2 if first.protocol.grouped else -1).packets[0]
    second.receive(question)
    if first.protocol.clocked:
        second.tick(100)
    answer = second.send(0b101, 2 if first.protocol.grouped else -1).packets[0]
    return first.protocol.encode(question.stamp), second.protocol.encode(answer.stamp)


@pytest.mark.parametrize(
    ("name", "question", "answer"),
    [
        ("none", "10", "10"),
        # The number on the link.
        ("fifo", "11 01", "11 01"),
        # SENT[0, 1] = SENT[0, 2] = 1; then SENT[1, 0] = SENT[1, 2] = 1 too.
        ("matrix", "12 01 000101 000000 000000", "12 01 000101 010001 000000"),
        # Nothing sent before; then "p3 must have 1 from p1": one column, 2, of one row, 0.
        ("bounded", "13 00", "13 01 02 01 00 01"),
        # H is empty; then (p1, 1), to {p2, p3}, reported to {p1, p2}.
        ("histories", "14 00", "14 01 00 01 0006 0003"),
        # The block.
        ("slow", "15 01", "15 02"),
        # The block, and GLDV: groups {p1 p2}, {p2 p3}, {p1 p2 p3}.
        ("fast", "16 01 01 0000 0000 000000", "16 02 01 0000 0000 010000"),
        # Group 2 (plus one), block, LDV of the group, GBN.
        ("relative", "17 03 01 01 000000 01 000000", "17 03 02 01 010000 01 000001"),
        # VT, its own message counted.
        ("vector", "19 01 0000 0000 010000", "19 01 0000 0000 010100"),
        # LOG is empty; then, in the stamp for p1, one sender, 0, of one message, 1, that matters nowhere: the
        # answer itself takes care of p3. It is named because it is p1's latest.
        ("optimal", "1a 00", "1a 01 00 01 01 01"),
        # Nothing delivered; then p1's 1.
        ("direct", "1b 00", "1b 01 00 01"),
        # Nothing carried; then (p1, 1), to {p2, p3}, at p2 already, in no group. Nothing is over.
        ("piggyback", "1c 00 00", "1c 01 00 01 0006 0002 00 00"),
        # ⟨0, 0, kn⟩: the event that there is at first and the send, at t = 0. Then ⟨100, 0, kn⟩ with the send
        # alone, for everything before is too old to be known.
        ("merge", "18 00 00 0000020000", "18 64 00 0000010000"),
    ],
)
def test_a_question_and_its_answer_have_the_stamps_worked_out_by_hand(
    name: str, question: str, answer: str
) -> None:
    assert two_answers(name) == (bytes.fromhex(question), bytes.fromhex(answer))


def test_what_is_over_is_a_number_and_the_gaps_after_it() -> None:
    first, second, _ = setting("piggyback", 3).processes()
    packets = [first.send(targets).packets[0] for targets in (0b010, 0b010, 0b100, 0b010)]
    for packet in packets:
        if packet.to == 0b010:
            second.receive(packet)
    answer = second.send(0b001).packets[0]
    # Carried: p1's 3, to {p3}, nowhere yet, in no group. Over: of one sender, p1, all up to 2, and one more,
    # 2 + 2.
    assert second.protocol.encode(answer.stamp) == bytes.fromhex("1c 01 00 03 0004 01 00 01 00 02 01 02")


def test_every_protocol_has_a_tag_of_its_own() -> None:
    assert set(TAGS) == set(PROTOCOLS)
    assert len(TAGS) == len(set(TAGS))


MANY_TAGS = (*TAGS, *(f"p{number}" for number in range(len(TAGS), 300)))


@pytest.mark.parametrize(
    ("tag", "head"), [(0, "10"), (12, "1c"), (14, "1e"), (15, "1f0f"), (127, "1f7f"), (128, "1f8001")]
)
def test_a_tag_from_15_on_follows_the_first_byte(
    monkeypatch: pytest.MonkeyPatch, tag: int, head: str
) -> None:
    monkeypatch.setattr("causet.protocols.wire.TAGS", MANY_TAGS)
    writer = Writer(MANY_TAGS[tag])
    writer.number(300)
    data = bytes.fromhex(head + "ac02")
    assert writer.done() == data
    reader = Reader(MANY_TAGS[tag], data)
    assert reader.number("it") == 300
    reader.done()
    with pytest.raises(BadStamp, match=f"a stamp of {MANY_TAGS[tag]}$"):
        Reader("p200", data)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ("1f", "ends inside its tag"),
        ("1f80", "ends inside its tag"),
        ("1f05", "its tag 5 is written longer than it needs to be"),
        ("1f0e", "its tag 14 is written longer than it needs to be"),
        ("1f8f00", "its tag is written longer than it needs to be"),
        ("1f" + "ff" * 9 + "01", "its tag is"),
        ("2f0f", "its version is 2"),
    ],
)
def test_a_tag_in_any_other_form_is_refused(monkeypatch: pytest.MonkeyPatch, data: str, why: str) -> None:
    monkeypatch.setattr("causet.protocols.wire.TAGS", MANY_TAGS)
    for protocol in (MANY_TAGS[5], MANY_TAGS[14], MANY_TAGS[15]):
        with pytest.raises(BadStamp, match=why):
            Reader(protocol, bytes.fromhex(data))


# ---------------------------------------------------------------- real stamps


@EVERY_SYSTEM
@EVERY_PROTOCOL
def test_a_stamp_is_the_same_after_its_journey_as_bytes(what: str, size: int) -> None:
    for process in made(what, size).processes():
        for data, stamp in stamps(what, size).items():
            again = process.protocol.decode(data)
            assert same(again, stamp)
            assert process.protocol.encode(again) == data


@EVERY_SYSTEM
@EVERY_PROTOCOL
def test_a_stamp_that_is_cut_anywhere_is_refused(what: str, size: int) -> None:
    protocol = some_process(what, size).protocol
    for data in stamps(what, size):
        for length in range(len(data)):
            assert refused(protocol, data[:length])


@EVERY_SYSTEM
@EVERY_PROTOCOL
def test_a_stamp_with_any_byte_after_its_end_is_refused(what: str, size: int) -> None:
    protocol = some_process(what, size).protocol
    for data in list(stamps(what, size))[::3]:
        for byte in range(256):
            assert refused(protocol, data + bytes((byte,)))


@EVERY_SYSTEM
@EVERY_PROTOCOL
def test_a_stamp_of_another_version_or_protocol_is_refused(what: str, size: int) -> None:
    protocol = some_process(what, size).protocol
    right = VERSION << 4 | TAGS.index(protocol.name)
    for data in stamps(what, size):
        assert data[0] == right
        for first in set(range(256)) - {right}:
            assert refused(protocol, bytes((first,)) + data[1:])


def test_a_refusal_says_which_version_or_protocol_the_stamp_is_of() -> None:
    protocol = setting("slow", 2).processes()[0].protocol
    with pytest.raises(BadStamp, match="its version is 2; this release reads version 1"):
        protocol.decode(b"\x25\x01")
    with pytest.raises(BadStamp, match="a stamp of matrix"):
        protocol.decode(b"\x12\x01")
    with pytest.raises(BadStamp, match="protocol number 15"):
        protocol.decode(b"\x1f\x0f\x01")
    with pytest.raises(BadStamp, match="protocol number 200"):
        protocol.decode(b"\x1f\xc8\x01\x01")
    with pytest.raises(BadStamp, match="it is empty"):
        protocol.decode(b"")


@pytest.mark.parametrize(
    ("what", "data", "why"),
    [
        ("fifo", "11 00", "the number 0"),
        ("bounded", "13 04", "four columns of three"),
        ("bounded", "13 01 03 01 00 01", "column 3 of three"),
        ("bounded", "13 01 02 01 03 01", "row 3 of three"),
        ("bounded", "13 01 02 01 00 00", "an entry of 0"),
        ("bounded", "13 01 02 02 01 01 00 01", "rows out of order"),
        ("bounded", "13 01 02 02 00 01 00 01", "a row twice"),
        ("bounded", "13 02 02 01 00 01 01 01 00 01", "columns out of order"),
        ("bounded", "13 02 01 01 00 01 01 01 00 01", "a column twice"),
        ("histories", "14 01 03 01 0006 0003", "sender 3 of three"),
        ("histories", "14 01 00 00 0006 0003", "the number 0"),
        ("histories", "14 01 00 01 01 0003", "no address"),
        ("histories", "14 02 00 02 0006 0003 00 01 0006 0003", "numbers out of order"),
        ("histories", "14 02 01 01 0006 0003 00 01 0006 0003", "senders out of order"),
        ("histories", "14 02 00 01 0006 0003 00 01 0006 0003", "a message twice"),
        ("slow", "15 00", "block 0"),
        ("fast", "16 00 01 0000 0000 000000", "block 0"),
        ("relative", "17 00 00", "block 0 of a null message"),
        ("relative", "17 03 00 01 000000 01 000000", "block 0"),
        ("relative", "17 04 01 01 000000 01 000000", "group 3 of three"),
        ("merge, modulo", "18 64 00 0000010000", "100 modulo 100"),
        ("optimal", "1a 01 03 01 01 01", "sender 3 of three"),
        ("optimal", "1a 01 00 00", "a sender of no message"),
        ("optimal", "1a 01 00 01 00 01", "the number 0"),
        ("optimal", "1a 01 00 02 02 01 01 01", "numbers out of order"),
        ("optimal", "1a 01 00 02 01 01 01 01", "a message twice"),
        ("optimal", "1a 02 01 01 01 01 00 01 01 01", "senders out of order"),
        ("optimal", "1a 02 00 01 01 01 00 01 02 01", "a sender twice"),
        ("direct", "1b 01 03 01", "sender 3 of three"),
        ("direct", "1b 01 00 00", "the number 0"),
        ("direct", "1b 02 01 01 00 01", "senders out of order"),
        ("direct", "1b 02 00 01 00 02", "a sender twice"),
        ("piggyback", "1c 01 03 01 0006 01 00 00", "sender 3 of three"),
        ("piggyback", "1c 01 00 00 0006 01 00 00", "the number 0"),
        ("piggyback", "1c 01 00 01 0006 0006 00 00", "carried, but over"),
        ("piggyback", "1c 01 00 01 0006 0003 00 00", "delivered where it was not sent"),
        ("piggyback", "1c 01 00 01 0006 01 04 00", "group 3 of three"),
        ("piggyback", "1c 02 00 01 0006 01 00 00 01 0006 01 00 00", "a message twice"),
        ("piggyback", "1c 00 01 03 01 00", "of sender 3 of three"),
        ("piggyback", "1c 00 01 00 00 00", "nothing is over"),
        ("piggyback", "1c 00 01 00 02 01 00", "2 and after it 2 again"),
        ("piggyback", "1c 00 01 00 02 01 01", "2 and after it 3, which is 3"),
        ("piggyback", "1c 00 01 00 02 02 03 02", "gaps out of order"),
        ("piggyback", "1c 00 02 01 01 00 00 01 00", "senders out of order"),
        ("piggyback", "1c 00 02 00 01 00 00 02 00", "a sender twice"),
    ],
)
def test_a_stamp_that_no_process_would_write_is_refused(what: str, data: str, why: str) -> None:
    assert refused(some_process(what, 3).protocol, bytes.fromhex(data)), why


# ---------------------------------------------------------------- other bytes


@EVERY_SYSTEM
@EVERY_PROTOCOL
def test_a_stamp_with_any_bit_flipped_is_another_stamp_or_refused(what: str, size: int) -> None:
    process = some_process(what, size)
    for data in list(stamps(what, size))[::2]:
        for bit in range(8 * len(data)):
            flipped = bytearray(data)
            flipped[bit // 8] ^= 1 << bit % 8
            assert_canonical_or_refused(process, bytes(flipped))


@EVERY_PROTOCOL
def test_random_bytes_are_the_form_of_a_stamp_or_refused(what: str) -> None:
    head = bytes((VERSION << 4 | TAGS.index(OPTIONS[what][0]),))
    small = st.lists(st.sampled_from([0, 0, 1, 1, 2, 3, 8, 0x7F, 0x80]), max_size=30).map(bytes)
    long = st.integers(0, 120).flatmap(lambda length: st.binary(min_size=length, max_size=length))

    @FUZZ
    @given(SYSTEMS, st.binary(max_size=40) | st.builds(head.__add__, small | long))
    def fuzz(size: int, data: bytes) -> None:
        assert_canonical_or_refused(some_process(what, size), data)

    fuzz()


@EVERY_PROTOCOL
def test_real_stamps_that_are_cut_up_and_damaged_are_other_stamps_or_refused(what: str) -> None:
    @FUZZ
    @given(SYSTEMS, st.data())
    def fuzz(size: int, data: st.DataObject) -> None:
        real = st.sampled_from(sorted(stamps(what, size)))
        head, tail = data.draw(real), data.draw(real)
        cut, again = data.draw(st.integers(1, len(head))), data.draw(st.integers(0, len(tail)))
        mixed = bytearray(head[:cut] + tail[again:])
        for position, byte in data.draw(
            st.lists(st.tuples(st.integers(0, len(mixed) - 1), st.integers(0, 255)), max_size=3)
        ):
            mixed[position] = byte
        assert_canonical_or_refused(some_process(what, size), bytes(mixed))

    fuzz()


@EVERY_SYSTEM
@EVERY_PROTOCOL
def test_a_stamp_that_claims_to_be_huge_costs_no_memory(what: str, size: int) -> None:
    process = some_process(what, size)
    claims = [
        data[:position] + claim + data[position + 1 :] * keep
        for data in list(stamps(what, size))[-1:]
        for position in range(1, min(len(data) + 1, 60))
        for claim in (HUGE, b"\xff\xff\xff\xff\x0f", b"\xff\xff\x03", b"\x08", b"\x7f")
        for keep in (0, 1)
    ]
    refused(process.protocol, claims[0])  # whatever is made once is made now
    tracemalloc.start()
    try:
        for data in claims:
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            refused(process.protocol, data)
            assert tracemalloc.get_traced_memory()[1] - before < 100_000
    finally:
        tracemalloc.stop()


# ---------------------------------------------------------------- packets


class Arrival(NamedTuple):
    """A real packet that comes to a process in a state that it really had."""

    process: Process
    snapshot: tuple[Any, ...]
    saved: tuple[Any, ...]


@cache
def arrivals(what: str, size: int) -> list[Arrival]:
    """At most 30 arrivals, spread over an execution."""
    processes = made(what, size).processes()
    found = []
    for step in execution(made(what, size), 150, seed=1).inputs:
        process = processes[step.me]
        if step.packet is not None:
            found.append(Arrival(process, process.snapshot(), process.save_packet(step.packet)))
        step.feed(process)
    return found[:: len(found) // 30 + 1]


def some_arrival(what: str) -> st.SearchStrategy[Arrival]:
    return SYSTEMS.flatmap(lambda size: st.sampled_from(arrivals(what, size)))


def assert_saved_well(packet: tuple[Any, ...]) -> None:
    *numbers, stamp, control = (*packet[:4], *packet[5:6], *packet[7:], packet[4], packet[6])
    assert all(isinstance(number, int) for number in numbers)
    assert isinstance(stamp, bytes)
    assert isinstance(control, bool)


@EVERY_SYSTEM
@EVERY_PROTOCOL
def test_a_packet_is_the_same_after_its_journey_as_a_plain_value(what: str, size: int) -> None:
    for process, _, saved in arrivals(what, size):
        packet = process.load_packet(saved)
        assert process.save_packet(packet) == saved
        assert_saved_well(saved)


@pytest.mark.parametrize(
    ("change", "value"),
    [
        ("sender", -1),
        ("sender", 3),
        ("number", 0),
        ("number", -1),
        ("number", LARGEST + 1),
        ("targets", -1),
        ("targets", 0b1100),
        ("targets", 0b100),  # `to` is not among them
        ("to", -1),
        ("to", 0b1010),
        ("to", 0b100),  # not here
        ("to", 0),
        ("stamp", b""),
        ("stamp", b"\x11\x01"),
        ("group", -2),
        ("group", 3),
        ("order", -1),
        ("order", LARGEST + 1),
    ],
)
def test_a_packet_with_a_field_that_cannot_be_is_refused(change: str, value: Any) -> None:
    first, second, _ = setting("matrix", 3).processes()
    fields = ("sender", "number", "targets", "to", "stamp", "group", "control", "order", "stream")
    real = dict(zip(fields, first.save_packet(first.send(0b110).packets[0]), strict=True))
    assert second.load_packet(tuple(real.values())).sender == 0
    with pytest.raises(BadStamp):
        second.load_packet(tuple({**real, change: value}.values()))


@pytest.mark.parametrize("name", ["vector", "fast", "slow", "relative"])
def test_a_packet_of_a_group_that_its_sender_or_receiver_is_not_in_is_refused(name: str) -> None:
    first, second, third = setting(name, 3).processes()
    sender, number, _, _, stamp, _, control, order, _ = first.save_packet(first.send(0b010, 0).packets[0])
    assert second.load_packet((sender, number, 0b010, 0b010, stamp, 0, control, order, 0)).group == 0
    with pytest.raises(BadStamp, match="sender is not in"):  # group 1 is {p2, p3}
        second.load_packet((sender, number, 0b010, 0b010, stamp, 1, control, order, 1))
    with pytest.raises(BadStamp, match="receiver is not in"):  # group 0 is {p1, p2}
        third.load_packet((sender, number, 0b100, 0b100, stamp, 0, control, order, 0))


@pytest.mark.parametrize("name", ["slow", "relative"])
def test_a_null_message_of_a_group_that_its_receiver_is_not_in_is_refused(name: str) -> None:
    first, _, third = setting(name, 3).processes()
    packet = first.null(0).packets[0]  # group 0 is {p1, p2}
    sender, number, _, _, stamp, group, control, order, stream = first.save_packet(packet)
    with pytest.raises(BadStamp):
        third.load_packet((sender, number, 0b100, 0b100, stamp, group, control, order, stream))


def plain(*more: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """What a careless or hostile peer may put where a number should be."""
    return st.one_of(
        st.integers(-2, 12),
        st.sampled_from([2**31, 2**32, 2**62, LARGEST - 1, LARGEST, LARGEST + 1, 2**64, -(2**63), 2**200]),
        *more,
    )


ANYTHING = plain(
    st.booleans(),
    st.none(),
    st.text(max_size=3),
    st.binary(max_size=6),
    st.floats(),
    st.lists(st.integers(0, 3), max_size=2),
    st.tuples(st.integers(0, 3)),
)


def changed(real: tuple[Any, ...], changes: dict[int, Any]) -> tuple[Any, ...]:
    return tuple(changes.get(position, value) for position, value in enumerate(real))


def assert_loads_as_it_is_or_is_refused(process: Process, saved: Any) -> None:
    try:
        packet = process.load_packet(saved)
    except BadStamp:
        return
    again = process.save_packet(packet)
    assert again == tuple(saved)
    assert_saved_well(again)


@EVERY_PROTOCOL
def test_a_packet_with_fields_of_any_type_loads_as_it_is_or_is_refused(what: str) -> None:
    @FUZZ
    @given(some_arrival(what), st.dictionaries(st.integers(0, 8), ANYTHING, max_size=2))
    def fuzz(arrival: Arrival, changes: dict[int, Any]) -> None:
        assert_loads_as_it_is_or_is_refused(arrival.process, changed(arrival.saved, changes))

    fuzz()


@given(st.sampled_from(sorted(PROTOCOLS)), st.lists(ANYTHING, max_size=12) | ANYTHING)
@settings(max_examples=200, deadline=None)
def test_a_random_value_is_no_packet(name: str, value: Any) -> None:
    assert_loads_as_it_is_or_is_refused(some_process(name, 3), value)


# ---------------------------------------------------------------- hostile packets


LIMITS = (0, 1, 2, 2**32 - 1, 2**32, 2**62 - 1, 2**62, LARGEST - 1, LARGEST)


def leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where in a stamp there are numbers."""
    if isinstance(value, int):
        return [path]
    if isinstance(value, np.ndarray):
        return [(*path, tuple(index)) for index in np.argwhere(np.ones(value.shape)).tolist()]
    parts = value.items() if isinstance(value, dict) else enumerate(value or ())
    return [leaf for key, part in parts for leaf in leaves(part, (*path, key))]


def put(value: Any, path: tuple[Any, ...], number: int) -> Any:
    """The stamp with another number there."""
    if not path:
        return number
    if isinstance(value, np.ndarray):
        value = value.copy()
        value[path[0]] = number
        return value
    if isinstance(value, dict):
        return {**value, path[0]: put(value[path[0]], path[1:], number)}
    parts = [put(part, path[1:], number) if i == path[0] else part for i, part in enumerate(value)]
    return type(value)(*parts) if isinstance(value, Timestamp | Stamped) else tuple(parts)


@st.composite
def forged(draw: st.DrawFn, process: Process, data: bytes) -> bytes:
    """A stamp with other numbers in it, or other bytes."""
    protocol = process.protocol
    if draw(st.booleans()):
        stamp = protocol.decode(data)
        if found := leaves(stamp):
            for path in draw(st.lists(st.sampled_from(found), max_size=3)):
                stamp = put(stamp, path, draw(st.sampled_from(LIMITS)))
        try:
            return protocol.encode(stamp)
        except (OverflowError, ValueError):  # a set with processes that do not exist, a gap of less than 0
            return data
    mixed = bytearray(data)
    for _ in range(draw(st.integers(0, 3))):
        position = draw(st.integers(1, len(mixed)))
        if draw(st.booleans()):
            mixed[position : position + 1] = HUGE
        elif position < len(mixed):
            mixed[position] ^= draw(st.sampled_from([1, 2, 4, 8, 16, 32, 64, 128, 255]))
    return bytes(mixed)


@st.composite
def hostile(draw: st.DrawFn, process: Process, real: tuple[Any, ...]) -> tuple[Any, ...]:
    """A real packet of which a few fields have changed, within what their types allow."""
    size, groups = process.system.size, len(process.system.groups)
    fields: dict[int, st.SearchStrategy[Any]] = {
        0: st.integers(0, size - 1),
        1: plain(),
        2: st.integers(0, (1 << size) - 1).map(lambda targets: targets | real[3]),
        5: st.integers(-1, groups),
        6: st.booleans(),
        7: plain(),
    }
    names = draw(st.sets(st.sampled_from(sorted(fields)), max_size=3))
    changes = {position: draw(fields[position]) for position in sorted(names)}
    if 5 in changes:  # the forger knows what a link's number must be like
        changes[8] = changes[5] if real[7] else real[8]
    return changed(real, {4: draw(forged(process, real[4])), **changes})


@st.composite
def attacks(draw: st.DrawFn, what: str) -> tuple[Arrival, list[tuple[Any, ...]]]:
    arrival = draw(some_arrival(what))
    return arrival, draw(st.lists(hostile(arrival.process, arrival.saved), min_size=1, max_size=3))


def attacked(arrival: Arrival, packets: list[tuple[Any, ...]]) -> Process:
    """The process after it was given these packets; BadStamp and BadInput are what it may say."""
    process = arrival.process.restored(arrival.snapshot)
    for saved in packets:
        try:
            process.receive(process.load_packet(saved))
        except (BadStamp, BadInput):
            continue
    return process


@EVERY_PROTOCOL
def test_a_process_survives_hostile_packets_and_can_be_saved_and_restored(what: str) -> None:
    @FUZZ
    @given(attacks(what))
    def fuzz(attack: tuple[Arrival, list[tuple[Any, ...]]]) -> None:
        process = attacked(*attack)
        assert len(process.waiting()) == len(process) >= len(process.held())
        snapshot = process.snapshot()
        assert process.restored(snapshot).snapshot() == snapshot

    fuzz()


def everything_it_can_still_do(process: Process) -> list[Packet]:
    """Its packets: a message wherever it may send one, null messages and a tick. An error on purpose is no
    silence: whoever has come to the end of its numbers may say so."""
    kind, system, me = type(process.protocol), process.system, only(process.me)
    actions: list[Callable[[], Outcome]] = []
    if kind.grouped:
        for x, group in enumerate(system.groups):
            if group.members & me:
                actions.append(partial(process.send, group.members & ~me, x))
    else:
        actions.append(partial(process.send, system.everyone & ~me))
    if kind.nulls:
        actions.append(process.null)
    if kind.clocked:
        actions.append(partial(process.tick, process.protocol.facts.get("clock", 0) + 40))
    packets: list[Packet] = []
    for action in actions * 2:
        with suppress(CausetError):
            packets += action().packets
    return packets


def assert_sound(process: Process) -> None:
    """What it sends others can read, and it can be saved and restored."""
    for packet in everything_it_can_still_do(process):
        data = process.protocol.encode(packet.stamp)
        assert same(process.protocol.decode(data), packet.stamp)
    snapshot = process.snapshot()
    assert process.restored(snapshot).snapshot() == snapshot


@EVERY_PROTOCOL
def test_after_hostile_packets_a_process_sends_what_others_can_read_or_says_that_it_cannot(what: str) -> None:
    @FUZZ
    @given(attacks(what))
    def fuzz(attack: tuple[Arrival, list[tuple[Any, ...]]]) -> None:
        assert_sound(attacked(*attack))

    fuzz()


# ---------------------------------------------------------------- hostile packets, made by hand


def forgery(what: str, stamp: Any, number: int = 1, **fields: Any) -> tuple[Process, tuple[Any, ...]]:
    """p2 of a system of two, and p1's first packet to it with another stamp."""
    first, second = made(what, 2).processes()
    group = 0 if first.protocol.grouped else -1
    real = first.send(0b10, group).packets[0]
    return second, first.save_packet(replace(real, stamp=stamp, number=number, **fields))


@pytest.mark.parametrize(
    ("what", "stamp"),
    [
        # Each can be delivered at once, and p2 counts on from what it learns.
        ("matrix", np.array([[0, 1], [LARGEST, 0]])),
        ("bounded", {0: {1: LARGEST}}),
        ("slow", LARGEST),
        ("fast", (LARGEST, np.zeros(2, dtype=np.int64))),
        ("fast", (1, np.array([0, LARGEST]))),
        ("relative", (0, LARGEST, (0, 0), np.zeros(1, dtype=np.int64))),
        ("relative", (0, 1, (0, 0), np.array([LARGEST]))),
        ("vector", np.array([1, LARGEST])),
        ("fifo", LARGEST),
        ("direct", ((0, LARGEST), (1, LARGEST))),
        ("histories", ((1, LARGEST, 0b01, 0),)),
        ("optimal", {1: {LARGEST: 0b01}}),
        ("piggyback", (((0, LARGEST, 0b11, 0, -1), (1, LARGEST, 0b11, 0, -1)), ())),
        ("piggyback", ((), ((0, 0, (LARGEST,)), (1, 1, (LARGEST,))))),
        ("merge", Timestamp(0, 0, (LARGEST // 2,) * 5)),
        ("merge, rc", Timestamp(0, 2**62, ())),
        ("merge, rc", Timestamp(2, 2**62, ())),
    ],
)
def test_the_largest_number_there_can_be_leaves_a_receiver_sound(what: str, stamp: Any) -> None:
    process, saved = forgery(what, stamp)
    with suppress(BadStamp):
        process.receive(process.load_packet(saved))
    assert_sound(process)


@pytest.mark.parametrize("number", LIMITS[2:])
@pytest.mark.parametrize("what", OPTIONS)
def test_a_packet_of_any_number_is_taken_or_refused(what: str, number: int) -> None:
    first, _ = made(what, 2).processes()
    stamp = first.send(0b10, 0 if first.protocol.grouped else -1).packets[0].stamp
    process, saved = forgery(what, stamp, number)
    with suppress(BadStamp):
        process.receive(process.load_packet(saved))
    assert_sound(process)


@pytest.mark.parametrize("control", [False, True])
@EVERY_PROTOCOL
def test_a_message_that_claims_to_come_from_its_receiver_is_taken_or_refused(
    what: str, control: bool
) -> None:
    first, _ = made(what, 2).processes()
    stamp = first.send(0b10, 0 if first.protocol.grouped else -1).packets[0].stamp
    process, saved = forgery(what, stamp, sender=1, control=control)
    with suppress(BadStamp):
        process.receive(process.load_packet(saved))
    assert_sound(process)


def test_a_stamp_that_says_that_millions_of_messages_are_over_costs_no_memory() -> None:
    process, saved = forgery("piggyback", ((), ((0, 1_000_000, ()), (1, 1_000_000, ()))))
    tracemalloc.start()
    try:
        with suppress(BadStamp):
            process.receive(process.load_packet(saved))
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()

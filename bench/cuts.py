"""How large a stamp is where there are many groups: with cuts, over where there are only as many groups as
are active at a time; and over without cuts, which takes long and runs only if it is named (`uncut`).

Counted, not timed, on the same messages. Of all groups 100 are active at a time; every second, some of them
fall silent for ever and others begin. 20 processes write 100 messages a second, and each message is seen by
two others. A cut comes every second and has what was written before that second. Counted is the second half
of a run, for without cuts stamps grow with every group that ever was.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from random import Random
from typing import NamedTuple

from bench.cases import SEED
from bench.result import Result
from causet.envelope import canonical
from causet.frontier import Frontier

ACTIVE, PROCESSES, PER_SECOND, SEEN_BY = 100, 20, 100, 2
SECONDS = 200
"""In which all groups have been active."""
SAMPLE = 50
"""Without cuts, one message in so many is written out, for its bytes."""


class Counted(NamedTuple):
    """Of the messages of the second half."""

    messages: int
    mean: float
    largest: int
    bytes: float
    largest_bytes: int


def count(groups: int, seconds: int, cuts: bool) -> Counted:
    draw = Random(SEED)
    processes = [Frontier[str, str](f"service-{i}~0hoaj5yf4m82y3r6yvrldw3a") for i in range(PROCESSES)]
    active = deque(f"group-{i}" for i in range(ACTIVE))
    begun, fresh = ACTIVE, (groups - ACTIVE) / seconds
    news: dict[str, dict[str, int]] = {}
    sizes: list[int] = []
    written: list[int] = []
    for second in range(seconds):
        while begun < ACTIVE + fresh * (second + 1):
            active.popleft()
            active.append(f"group-{begun}")
            begun += 1
        if cuts:  # what is new in this second's cut: the others have been told before
            for each in processes:
                each.stable(news)
            news = {}
        for number in range(PER_SECOND):
            sender = draw.choice(processes)
            group = draw.choice(active)
            stamped = sender.stamp([group])
            for each in draw.sample(processes, SEEN_BY):
                each.saw(sender.process, *stamped)
            news.setdefault(group, {})[sender.process] = stamped.numbers[group]
            if second >= seconds // 2:
                sizes.append(sum(map(len, stamped.past.values())))
                if cuts or number % SAMPLE == 0:
                    written.append(len(canonical(stamped.past)))
    return Counted(len(sizes), sum(sizes) / len(sizes), max(sizes), sum(written) / len(written), max(written))


def beside(groups: int, seconds: int) -> Iterator[Result]:
    few, many = count(ACTIVE, seconds, cuts=True), count(groups, seconds, cuts=True)
    yield Result(
        "cuts",
        f"bytes of a stamp, {groups:,} groups with {ACTIVE} active over {ACTIVE}",
        many.bytes / few.bytes,
        f"with a cut every second {many.bytes:,.0f} bytes, {many.largest_bytes:,} at most, "
        f"{many.mean:,.1f} entries; of {ACTIVE} groups {few.bytes:,.0f} bytes, {few.largest_bytes:,} at "
        f"most, {few.mean:,.1f} entries",
        {
            "groups": groups,
            "active": ACTIVE,
            "messages": many.messages,
            "bytes_mean": many.bytes,
            "bytes_most": many.largest_bytes,
            "entries_mean": many.mean,
            "entries_most": many.largest,
            "bytes_mean_of_few": few.bytes,
            "bytes_most_of_few": few.largest_bytes,
            "entries_mean_of_few": few.mean,
            "entries_most_of_few": few.largest,
        },
    )


def measure(groups: int, seconds: int) -> Iterator[Result]:
    without, told = count(groups, seconds, cuts=False), count(groups, seconds, cuts=True)
    yield Result(
        "uncut",
        f"entries of a stamp, {groups:,} groups",
        told.mean / without.mean,
        f"with a cut every second {told.mean:,.1f} entries, {told.largest:,} at most, {told.bytes:,.0f} "
        f"bytes; without {without.mean:,.1f}, {without.largest:,} at most, {without.bytes:,.0f} bytes",
        {
            "groups": groups,
            "active": ACTIVE,
            "messages": told.messages,
            "entries_mean": told.mean,
            "entries_most": told.largest,
            "bytes_mean": told.bytes,
            "entries_mean_without": without.mean,
            "entries_most_without": without.largest,
            "bytes_mean_without": without.bytes,
        },
    )


def results(quick: bool) -> Iterator[Result]:
    return beside(10_000, 40 if quick else SECONDS)


def uncut(quick: bool) -> Iterator[Result]:
    return measure(1_000, 20) if quick else measure(10_000, SECONDS)

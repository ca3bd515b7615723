"""How many entries a stamp has where there are many groups: with cuts, over without them.

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
"""One message in so many is written out, for its bytes."""


class Counted(NamedTuple):
    """Of the messages of the second half."""

    messages: int
    mean: float
    largest: int
    bytes: float


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
                if number % SAMPLE == 0:
                    written.append(len(canonical(stamped.past)))
    return Counted(len(sizes), sum(sizes) / len(sizes), max(sizes), sum(written) / len(written))


def measure(groups: int, seconds: int) -> Iterator[Result]:
    without, told = count(groups, seconds, cuts=False), count(groups, seconds, cuts=True)
    yield Result(
        "cuts",
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
    return measure(1_000, 20) if quick else measure(10_000, SECONDS)

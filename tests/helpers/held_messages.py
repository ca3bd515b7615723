"""Messages for the stream kernels, from plain values."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

import numpy as np
import pyarrow as pa

from causet.kernels.streams.block import Messages, begins


def messages(
    rows: Iterable[tuple[str, str, int, dict[str, int]]], first_place: int = 0, marks: Sequence[int] = ()
) -> Messages:
    """Messages from (receiver, source, number, causes), and their fingerprints."""
    table = list(rows)
    causes = [list(each[3].items()) for each in table]
    return Messages(
        pa.array([each[0] for each in table], pa.string()),
        pa.array([each[1] for each in table], pa.string()),
        np.array([each[2] for each in table], np.int64),
        begins(np.array([len(each) for each in causes], np.int64)),
        pa.array([name for each in causes for name, _ in each], pa.string()),
        np.array([number for each in causes for _, number in each], np.int64),
        np.arange(first_place, first_place + len(table)),
        np.array(marks or [0] * len(table), np.uint64),
    )


Grouped = tuple[str, dict[str, int], dict[str, dict[str, int]], int]
"""A message to groups: its process, its numbers and its past by group, and a fingerprint."""


def grouped_messages(rows: Sequence[Grouped], reads: Container[str], first_place: int = 0) -> Messages:
    """Messages of one receiver, r, that reads these groups, as the kernel takes them."""
    name, group, number, place, mark, part, sizes = [], [], [], [], [], [], []
    causes: list[tuple[str, str, int]] = []
    for at, (process, numbers, past, fingerprint) in enumerate(rows):
        mine = [(g, n) for g, n in numbers.items() if g in reads]
        before = [(g, p, n) for g, entries in past.items() if g in reads for p, n in entries.items()]
        for turn, (g, n) in enumerate(mine):
            name.append(process)
            group.append(g)
            number.append(n)
            place.append(first_place + at)
            mark.append(fingerprint)
            part.append(turn > 0)
            sizes.append(0 if turn else len(before))
        causes += before if mine else []
    return Messages(
        pa.array(["r"] * len(name), pa.string()),
        pa.array(name, pa.string()),
        np.array(number, np.int64),
        begins(np.array(sizes, np.int64)),
        pa.array([p for _, p, _ in causes], pa.string()),
        np.array([n for _, _, n in causes], np.int64),
        np.array(place, np.int64),
        np.array(mark, np.uint64),
        pa.array(group, pa.string()),
        pa.array([g for g, _, _ in causes], pa.string()),
        np.array(part, np.bool_),
    )

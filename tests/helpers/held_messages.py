"""Messages for the stream kernels, from plain values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

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

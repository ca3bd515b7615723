"""Names of channels: that of a group, and after marks a priority and a scope.

A memory knows names by their keys alone; so that it can tell which channels a group has, it keeps for each
channel, other than the group itself, the key of its group.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from causet.frontier import PRIORITY_MARK as MARK
from causet.kernels.arrays import Array
from causet.kernels.streams.block import Messages
from causet.kernels.streams.keys import KEY, digests


def is_marked(names: pa.Array) -> bool:
    """Whether one of these names may have the mark."""
    data = (names.dictionary if pa.types.is_dictionary(names.type) else names).buffers()[2]
    return data is not None and bool((np.frombuffer(data, np.uint8) == ord(MARK)).any())


def plain(channel: str) -> str:
    """The group of a channel within a scope.

    >>> plain("orders"), plain("orders\\x1f2"), plain("orders\\x1f0\\x1faudit")
    ('orders', 'orders', 'orders')
    """
    return channel.partition(MARK)[0]


def channels_in(messages: Messages) -> tuple[Array, Array]:
    """The keys of the channels that messages name, and of their groups; without the groups themselves."""
    names: dict[str, None] = {}
    for each in (messages.group, messages.cause_group):
        if each is not None and is_marked(each):
            names |= dict.fromkeys(name for name in each.unique().to_pylist() if name.find(MARK) > 0)
    return digests([*names]), digests([plain(name) for name in names])


def with_channels(known: tuple[Array, Array], more: tuple[Array, Array]) -> tuple[Array, Array]:
    """Channels and their groups, sorted, each once."""
    if not len(more[0]):
        return known
    keys, first = np.unique(np.concatenate([known[0], more[0]]), return_index=True)
    return keys, np.concatenate([known[1], more[1]])[first]


def channels_of(known: tuple[Array, Array], group: bytes) -> list[bytes]:
    """The keys of the channels of a group, the group itself first."""
    mine = known[0][known[1] == np.frombuffer(group, f"S{KEY}")[0]].tobytes()
    return [group, *(mine[at : at + KEY] for at in range(0, len(mine), KEY))]

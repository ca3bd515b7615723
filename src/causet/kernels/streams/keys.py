"""Streams and receivers are known by 128 bits of their names (blake2b), in the order of which they stand.

So what is remembered depends on the messages alone, not on the order in which a batch came together.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np
import pyarrow as pa

from causet.envelope import ALL
from causet.kernels.arrays import Array
from causet.kernels.names import combined
from causet.kernels.streams.block import Messages
from causet.kernels.streams.interned import together

KEY = 16
"""Bytes by which a name is known."""


def digests(names: Sequence[str]) -> Array:
    """The keys of names."""
    raw = (blake2b(name.encode("utf-8", "surrogatepass"), digest_size=KEY).digest() for name in names)
    return np.frombuffer(b"".join(raw), f"S{KEY}")


def encoded(strings: pa.Array) -> tuple[Array, list[str]]:
    """For each string which of the distinct ones it is; and these. (Some may be those of no string.)"""
    coded = strings.dictionary_encode()
    return coded.indices.to_numpy(zero_copy_only=False).astype(np.int64), coded.dictionary.to_pylist()


def key_of(receiver: str, group: str, name: str) -> bytes:
    """The key of the stream of a process, for a receiver and within a group."""
    found: bytes = combined(combined(digests([receiver]), digests([group])), digests([name])).tobytes()
    return found


def stream_keys(
    messages: Messages, receivers: Array, receiver_names: list[str]
) -> tuple[Array, Array, Array]:
    """Streams of messages and of their causes: the keys of the distinct ones, the keys of their names alone,
    and for each message and then for each cause which of these it is."""
    sizes = np.diff(messages.cause_begin)
    groups, group_names = _groups(messages, sizes)
    receivers = np.concatenate([receivers, np.repeat(receivers, sizes)])
    owners, owner = distinct_pairs(receivers, groups, len(receiver_names), len(group_names))
    owner_keys = combined(digests(receiver_names)[owners[0]], digests(group_names)[owners[1]])
    names, distinct = encoded(together(messages.name, messages.cause_name))
    pairs, which = distinct_pairs(owner, names, len(owner_keys), len(distinct))
    name_keys = digests(distinct)[pairs[1]]
    return combined(owner_keys[pairs[0]], name_keys), name_keys, which


def _groups(messages: Messages, sizes: Array) -> tuple[Array, list[str]]:
    """The groups of messages and then of their causes, as numbers of names; and these."""
    if messages.group is None:
        return np.zeros(len(messages.number) + len(messages.cause_number), np.int64), [ALL]
    if messages.cause_group is None:
        groups, names = encoded(messages.group)
        return np.concatenate([groups, np.repeat(groups, sizes)]), names
    return encoded(together(messages.group, messages.cause_group))


def distinct_pairs(
    first: Array, second: Array, firsts: int, seconds: int
) -> tuple[tuple[Array, Array], Array]:
    """The distinct pairs of numbers below `firsts` and `seconds`, in order; and for each pair which it is."""
    seconds = max(seconds, 1)
    pairs = first.astype(np.int64, copy=False) * seconds + second
    if firsts * seconds <= 4 * len(pairs) + 1024:  # a table is cheaper than a sort
        there = np.zeros(firsts * seconds, np.bool_)
        there[pairs] = True
        distinct, which = np.flatnonzero(there), (np.cumsum(there) - 1)[pairs]
    else:
        distinct, which = np.unique(pairs, return_inverse=True)
    return np.divmod(distinct, seconds), which

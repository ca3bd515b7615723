"""Streams and receivers are known by 128 bits of their names (blake2b), in the order of which they stand.

So what is remembered depends on the messages alone, not on the order in which a batch came together.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np
import pyarrow as pa

from causet.kernels.arrays import Array
from causet.kernels.names import combined
from causet.kernels.streams.block import Messages

KEY = 16
"""Bytes by which a name is known."""


def digests(names: Sequence[str]) -> Array:
    """The keys of names."""
    raw = (blake2b(name.encode("utf-8", "surrogatepass"), digest_size=KEY).digest() for name in names)
    return np.frombuffer(b"".join(raw), f"S{KEY}")


def encoded(strings: pa.Array) -> tuple[Array, list[str]]:
    """For each string which of the distinct ones it is; and these."""
    coded = strings.dictionary_encode()
    return coded.indices.to_numpy(zero_copy_only=False).astype(np.int64), coded.dictionary.to_pylist()


def key_of(receiver: str, domain: str | None, name: str) -> bytes:
    """The key of the stream of a source, for a receiver and within a domain."""
    owner = digests([receiver])
    if domain is not None:
        owner = combined(owner, digests([domain]))
    found: bytes = combined(owner, digests([name])).tobytes()
    return found


def stream_keys(
    messages: Messages, receivers: Array, receiver_names: list[str]
) -> tuple[Array, Array, Array]:
    """Streams of messages and of their causes: the keys of the distinct ones, the keys of their names alone,
    and for each message and then for each cause which of these it is."""
    owner, owner_keys = receivers, digests(receiver_names)
    if messages.domain is not None:
        domains, domain_names = encoded(messages.domain)
        owners, owner = _distinct_pairs(receivers, domains, len(receiver_names), len(domain_names))
        owner_keys = combined(owner_keys[owners[0]], digests(domain_names)[owners[1]])
    owner = np.concatenate([owner, np.repeat(owner, np.diff(messages.cause_begin))])
    names, distinct = encoded(pa.concat_arrays([messages.name, messages.cause_name]))
    pairs, which = _distinct_pairs(owner, names, len(owner_keys), len(distinct))
    name_keys = digests(distinct)[pairs[1]]
    return combined(owner_keys[pairs[0]], name_keys), name_keys, which


def _distinct_pairs(
    first: Array, second: Array, firsts: int, seconds: int
) -> tuple[tuple[Array, Array], Array]:
    """The distinct pairs of numbers below `firsts` and `seconds`, in order; and for each pair which it is."""
    seconds = max(seconds, 1)
    pairs = first * seconds + second
    if firsts * seconds <= 4 * len(pairs) + 1024:  # a table is cheaper than a sort
        there = np.zeros(firsts * seconds, np.bool_)
        there[pairs] = True
        distinct, which = np.flatnonzero(there), (np.cumsum(there) - 1)[pairs]
    else:
        distinct, which = np.unique(pairs, return_inverse=True)
    return np.divmod(distinct, seconds), which

"""Fingerprints of messages: 64 bits of each one's id and payload, without Python objects.

A number that is used again is a duplicate if the id and the payload are the same, and a conflict if they are
not. Of messages that have left only the fingerprints are kept, which tell the two apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np
import pyarrow as pa
from numba import njit, uint64

from causet.kernels.arrays import Array
from causet.kernels.names import hashed, mixed, text_buffers

DATA = ("data", "data_base64", "value")
"""Columns that hold the payload of a message."""
ORDER = (
    *("source", "causalprocess", "process", "causalversion", "causaldomain"),
    *("sequence", "causaldeps", "deps", "causaltime", "rc", "r"),
)
ORIGIN = ("receiver", "malformed", "key", "topic", "partition", "offset", "timestamp", "headers")
"""Columns about the order of a message and where it came from: they are not its payload."""
BYTES = (
    *(pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view),
    *(pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary),
)
"""Types whose values are hashed byte by byte."""
OWN = "__causet_"
SEED = np.uint64(0x9E3779B97F4A7C15)
NULL = np.uint64(0xD6E8FEB86659FD93)


def payload_columns(names: Sequence[str]) -> list[str]:
    """The columns by which two messages of the same number are compared: the id, and the payload. Without a
    column of data, every column that is not part of the envelope is the payload.

    >>> payload_columns(["id", "source", "sequence", "data", "offset"])
    ['id', 'data']
    >>> payload_columns(["source", "sequence", "deps", "text", "offset"])
    ['text']
    """
    data = [name for name in names if name in DATA]
    rest = [name for name in names if name not in ORDER + ORIGIN and not name.startswith(OWN)]
    return [name for name in names if name == "id" or name in data] if data else rest


def fingerprints(table: pa.Table, columns: Sequence[str]) -> Array:
    """A fingerprint per row, as uint64; the same for the same values, however they are chunked."""
    found = np.full(table.num_rows, SEED)
    for name in columns:
        column = table.column(name)
        if column.num_chunks == 1:
            hashes = _hashes(column.chunk(0))
        else:
            hashes = np.concatenate([_nothing(), *(_hashes(chunk) for chunk in column.chunks)])
        _mix_into(found, hashes)
    return found


def _nothing() -> Array:
    return np.empty(0, np.uint64)


def _hashes(array: pa.Array) -> Array:
    """A hash per value of a column of any type."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        array = array.cast(kind.value_type)
        kind = array.type
    if pa.types.is_null(kind):
        return np.full(len(array), NULL)
    if pa.types.is_struct(kind):
        found = np.full(len(array), SEED)
        for child in array.flatten():
            _mix_into(found, _hashes(child))
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_map(kind):
        found = _of_lists(array)
    elif any(fits(kind) for fits in BYTES):
        if pa.types.is_string_view(kind):
            strings = array.cast(pa.large_string()).fill_null("")
        else:
            strings = array.cast(pa.large_binary()).fill_null(b"").view(pa.large_string())
        found = _of_bytes(*text_buffers(strings))
    elif pa.types.is_primitive(kind):
        found = _of_numbers(_as_integers(array))
    else:
        texts = [repr(value).encode("utf-8", "surrogatepass") for value in array.to_pylist()]
        digests = b"".join(blake2b(text, digest_size=8).digest() for text in texts)
        found = np.frombuffer(digests, np.uint64).copy()
    if array.null_count:
        found[array.is_null().to_numpy(zero_copy_only=False)] = NULL
    return found


def _as_integers(array: pa.Array) -> Array:
    """Numbers, booleans and times as 64 bits each."""
    kind = array.type
    if pa.types.is_boolean(kind):
        array = array.cast(pa.uint8())
    elif pa.types.is_floating(kind):
        array = array.cast(pa.float64())
    elif pa.types.is_temporal(kind):
        array = array.view(pa.int64() if kind.bit_width == 64 else pa.int32())
    values = array.fill_null(0).to_numpy(zero_copy_only=False)
    found: Array = (
        values.view(np.uint64) if values.dtype == np.float64 else values.astype(np.int64).view(np.uint64)
    )
    return found


def _of_lists(array: pa.Array) -> Array:
    sizes = np.diff(array.offsets.to_numpy()).astype(np.int64)
    sizes[array.is_null().to_numpy(zero_copy_only=False)] = 0
    if pa.types.is_map(array.type):
        first, last = array.offsets[0].as_py(), array.offsets[len(array)].as_py()
        inner = np.full(last - first, SEED)
        for child in (array.keys[first:last], array.items[first:last]):
            _mix_into(inner, _hashes(child))
    else:
        inner = _hashes(array.flatten())
    return _of_runs(sizes, inner)


@njit(cache=True)
def _mix_into(found: Array, hashes: Array) -> None:
    for i in range(len(found)):
        found[i] = mixed(found[i] + uint64(SEED)) ^ hashes[i]


@njit(cache=True)
def _of_numbers(values: Array) -> Array:
    found = np.empty(len(values), np.uint64)
    for i in range(len(values)):
        found[i] = mixed(values[i])
    return found


@njit(cache=True)
def _of_runs(sizes: Array, inner: Array) -> Array:
    found = np.empty(len(sizes), np.uint64)
    at = 0
    for i in range(len(sizes)):
        found[i] = mixed(uint64(sizes[i]))
        for _ in range(sizes[i]):
            found[i] = mixed(found[i] + uint64(SEED)) ^ inner[at]
            at += 1
    return found


@njit(cache=True)
def _of_bytes(offsets: Array, data: Array) -> Array:
    found = np.empty(len(offsets) - 1, np.uint64)
    for i in range(len(found)):
        found[i] = hashed(data, offsets[i], offsets[i + 1], SEED)
    return found

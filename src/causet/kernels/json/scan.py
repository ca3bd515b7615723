"""A kernel that vouches for lines of a trace, at one or two hundred megabytes per second.

It goes through the bytes of each line once and vouches for the line if it is JSON of the plain kind, if the
format's own fields are as they must be, and if every field, however deep inside, holds what it held in a line
that was learned before. For any other line, good or bad, it stops, and `event_of` decides.

Rule: it never vouches for what `event_of` refuses, or for a kind of value that was not learned in that place.
When in doubt it stops: at escapes in keys, at great depth, and at what `tokens` finds odd.

A place and the kind of value in it are one 64-bit hash, keyed by a secret of the run, in a table.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from typing import Any

import numpy as np
from numba import njit, uint64

from causet.formats.schema import SCHEMA
from causet.kernels.json.tokens import (
    BIG,
    BOOL,
    FLOAT,
    INT,
    LIST,
    MINUS,
    NEWLINE,
    NULL,
    OBJECT,
    QUOTE,
    TEXT,
    blank,
    is_digit,
    number,
    text,
    word,
)
from causet.model import KINDS

Array = np.ndarray[Any, Any]
Word = Any
"""64 bits without a sign, as numba has them."""

MOST_KEYS = 512
"""Keys of one line, and what is learned from it."""
DEEPEST = 32
MOST_PLACES = 1 << 20
"""Where there are more, names are data, and nothing more is learned."""

_COMMA, _COLON, _OPEN, _CLOSE, _BEGIN, _END = 44, 58, 91, 93, 123, 125

# The kernel has these numbers in it, and is compiled again only if this file changes: so they stand here.
_NUMBERED = ("process", "seq", "kind", "id", "message", "to", "stamp_entries", "stamp_bytes")
PROCESS, SEQ, KIND, ID, MESSAGE, TO, ENTRIES, BYTES = range(8)
_NUMBER = INT | BIG
_TOKENS = {"string": TEXT, "bigint": _NUMBER, "array<string>": LIST, "boolean": BOOL}
_ALLOWED = {name: _TOKENS[SCHEMA[name].type] for name in dict.fromkeys((*_NUMBERED, *SCHEMA))}
_ALLOWED["time"] |= FLOAT
"""What may stand in the format's own fields. Null may stand in all: it means that the field is missing."""
_KINDS = ("send", "local", "receive", "deliver")
assert set(_KINDS) == set(KINDS)
SEND, LOCAL = 0, 1
UNKNOWN = -1
"""A field that does not belong to the format."""


class Scanner:
    """Places and kinds that were learned, and the kernel that looks them up."""

    def __init__(self) -> None:
        self._key = secrets.randbits(63) | 1
        self._table = np.zeros(1 << 12, np.uint64)
        self._places = np.zeros(1, np.int64)
        self._fields = _hashes(_ALLOWED, self._key)
        self._allowed = np.array(list(_ALLOWED.values()), np.int64)
        self._kinds = _hashes(_KINDS, self._key)

    def skip(self, block: bytes, position: int) -> int:
        """The start of the first line from here on that nothing vouches for."""
        return int(self._scan(block, position, len(block), False))

    def learn(self, line: bytes) -> None:
        """Learn what this line holds, which `event_of` accepted."""
        if self._places[0] + MOST_KEYS > len(self._table) // 2:
            if len(self._table) >= 2 * MOST_PLACES:
                return
            grown = np.zeros(2 * len(self._table), np.uint64)
            for place in self._table[self._table != 0]:
                _note(grown, place)
            self._table = grown
        self._scan(line, 0, len(line), True)

    def _scan(self, block: bytes, position: int, end: int, learns: bool) -> Any:
        data = np.frombuffer(block, np.uint8)
        names = self._fields, self._allowed, self._kinds
        return _scan(data, position, end, learns, self._key, self._table, self._places, names)


def _hashes(names: Iterable[str], key: int) -> Array:
    return np.array(
        [_hashed(np.frombuffer(name.encode(), np.uint8), 0, len(name), uint64(key)) for name in names],
        np.uint64,
    )


# ---------------------------------------------------------------- hashes


@njit(cache=True, inline="always")
def _mixed(one: Word, other: Word) -> Word:
    value: Word = uint64(one)
    value = value * uint64(0xD6E8FEB86659FD93) + uint64(other)
    value ^= value >> uint64(32)
    value *= uint64(0xD6E8FEB86659FD93)
    value ^= value >> uint64(29)
    return value


@njit(cache=True)
def _hashed(data: Array, begin: int, end: int, key: Word) -> Word:
    value = uint64(key)
    for at in range(begin, end):
        value = (value ^ uint64(data[at])) * uint64(0x100000001B3)
        value ^= value >> uint64(29)
    return _mixed(value, uint64(key))


@njit(cache=True)
def _is_noted(table: Array, place: Word) -> bool:
    mask = uint64(len(table) - 1)
    at = place & mask
    while table[at] != 0:
        if table[at] == place:
            return True
        at = (at + uint64(1)) & mask
    return False


@njit(cache=True)
def _note(table: Array, place: Word) -> bool:
    """Whether the place was new."""
    mask = uint64(len(table) - 1)
    at = place & mask
    while table[at] != 0:
        if table[at] == place:
            return False
        at = (at + uint64(1)) & mask
    table[at] = place
    return True


# ---------------------------------------------------------------- lines


@njit(cache=True)
def _scan(
    data: Array,
    at: int,
    end: int,
    learns: bool,
    key: int,
    table: Array,
    places: Array,
    names: tuple[Array, Array, Array],
) -> int:
    """The start of the first line that nothing vouches for, or the end.

    `names` has the hashes of the format's fields, what each may hold, and the hashes of the kinds of events.
    """
    stack = (
        np.empty(DEEPEST + 1, np.uint64),
        np.empty(DEEPEST + 1, np.bool_),
        np.empty(DEEPEST + 1, np.int64),
        np.empty(MOST_KEYS, np.uint64),
    )
    while at < end:
        start = at
        at = blank(data, at, end)
        if at < end and data[at] != NEWLINE:
            at = _event(data, at, end, learns, uint64(key), table, places, names, stack)
            if at == 0:
                return start
            at = blank(data, at, end)
            if at < end and data[at] != NEWLINE:
                return start
        at += 1
    return end


@njit(cache=True)
def _event(
    data: Array,
    at: int,
    end: int,
    learns: bool,
    key: Word,
    table: Array,
    places: Array,
    names: tuple[Array, Array, Array],
    stack: tuple[Array, Array, Array, Array],
) -> int:
    """The end of the event that begins here; 0 if nothing vouches for it."""
    fields, allowed, kinds = names
    path, is_object, first_key, keys = stack  # of the objects and lists that are open; keys of all of them
    if data[at] != _BEGIN:
        return 0
    at += 1
    depth, known_keys, left = 1, 0, MOST_KEYS
    path[1], is_object[1], first_key[1] = key, True, 0
    own, top, its_kind, has = UNKNOWN, UNKNOWN, LOCAL, 0
    may_close = True  # behind an opening bracket
    while True:
        at = blank(data, at, end)
        if at >= end:
            return 0
        if may_close and data[at] == (_END if is_object[depth] else _CLOSE):
            depth -= 1
            at += 1
        else:
            place = _mixed(path[depth], uint64(1))
            own = UNKNOWN
            if is_object[depth]:
                behind, plain = text(data, at, end) if data[at] == QUOTE else (0, False)
                if behind == 0 or not plain or known_keys == MOST_KEYS:
                    return 0
                name = _hashed(data, at + 1, behind - 1, key)
                for i in range(first_key[depth], known_keys):
                    if keys[i] == name:
                        return 0
                keys[known_keys] = name
                known_keys += 1
                place = _mixed(path[depth], name)
                if depth == 1:
                    for i in range(len(fields)):
                        if fields[i] == name:
                            own = i
                    top = own
                at = blank(data, behind, end)
                if at >= end or data[at] != _COLON:
                    return 0
                at = blank(data, at + 1, end)
                if at >= end:
                    return 0
            begin, above, opens = at, False, False
            byte = data[at]
            if byte == QUOTE:
                at, plain = text(data, at, end)
                kind = TEXT
            elif byte in (_OPEN, _BEGIN):
                kind = LIST if byte == _OPEN else OBJECT
                at = at + 1 if depth < DEEPEST else 0
                opens = True
            elif byte == MINUS or is_digit(byte):
                at, kind, above = number(data, at, end)
            else:
                at, kind = word(data, at, end)
            if at == 0:
                return 0
            if own != UNKNOWN and kind != NULL:
                if not kind & allowed[own] or (own == SEQ and not above) or (own == ID and at - begin == 2):
                    return 0
                if own in (ENTRIES, BYTES) and data[begin] == MINUS:
                    return 0
                if own == KIND:
                    its_kind = UNKNOWN
                    said = _hashed(data, begin + 1, at - 1, key)
                    for i in range(len(kinds)):
                        if kinds[i] == said:
                            its_kind = i
                    if its_kind == UNKNOWN:
                        return 0
                has |= 1 << own
            if depth == 2 and top != UNKNOWN and allowed[top] == LIST and kind != TEXT:
                return 0
            noted = _mixed(place, uint64(kind)) | uint64(1)
            if not _is_noted(table, noted):
                if not learns or left == 0:
                    return 0
                _note(table, noted)
                places[0] += 1
                left -= 1
            if opens:
                depth += 1
                path[depth], is_object[depth], first_key[depth] = place, kind == OBJECT, known_keys
                may_close = True
                continue
        # Behind a value: what is open goes on, or ends here.
        while depth:
            at = blank(data, at, end)
            if at >= end:
                return 0
            if data[at] == _COMMA:
                at += 1
                break
            if data[at] != (_END if is_object[depth] else _CLOSE):
                return 0
            at += 1
            known_keys = first_key[depth]
            depth -= 1
        may_close = False
        if depth == 0:
            break
    needed = 1 << PROCESS | 1 << SEQ
    if its_kind != LOCAL:
        needed |= 1 << MESSAGE
    if its_kind == SEND:
        needed |= 1 << TO
    return at if has & needed == needed else 0

"""The tokens of JSON, for kernels: where each ends, and of what kind it is.

Rule: what is unusual is not vouched for, and its end is 0: control characters, halves of surrogate
pairs, numbers near the limits of 64 bits. Bytes are known to be UTF-8.

A kernel that uses these is compiled again only if its own file changes: touch `scan.py` after a change.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, uint64

Array = np.ndarray[Any, Any]

TEXT, INT, BIG, FLOAT, BOOL, LIST, OBJECT, NULL = 1, 2, 4, 8, 16, 32, 64, 128
"""Kinds of values. BIG is an integer that no float stands for."""
QUOTE, MINUS, NEWLINE = 34, 45, 10
_SPACE, _TAB, _RETURN, _BACKSLASH = 32, 9, 13, 92
_ZERO, _NINE, _PLUS, _POINT = 48, 57, 43, 46
_MARKS = np.array([byte < 32 or byte in (QUOTE, _BACKSLASH) for byte in range(256)])
"""Bytes that may end a string, or mean something in it."""
_EXACT = 2**53


@njit(cache=True, inline="always")
def blank(data: Array, at: int, end: int) -> int:
    """The end of the space that begins here."""
    while at < end and (data[at] == _SPACE or data[at] == _TAB or data[at] == _RETURN):
        at += 1
    return at


@njit(cache=True, inline="always")
def is_digit(byte: int) -> bool:
    return _ZERO <= byte <= _NINE


@njit(cache=True)
def text(data: Array, at: int, end: int) -> tuple[int, bool]:
    """The end of a string, behind its quote, and whether it has no escape; 0 if nothing vouches for it."""
    plain = True
    at += 1
    while True:
        while at < end and not _MARKS[data[at]]:
            at += 1
        if at >= end or data[at] < 32:
            return 0, plain
        if data[at] == QUOTE:
            return at + 1, plain
        plain = False
        if at + 1 >= end:
            return 0, plain
        escaped = data[at + 1]
        at += 2
        if escaped == 117:  # u, and four digits, of which the first two show half of a pair
            if at + 4 > end or ((data[at] | 32) == 100 and data[at + 1] > 55):
                return 0, plain
            for digit in data[at : at + 4]:
                if not (is_digit(digit) or 97 <= (digit | 32) <= 102):
                    return 0, plain
            at += 4
        elif escaped not in (QUOTE, _BACKSLASH, 47, 98, 102, 110, 114, 116):
            return 0, plain


@njit(cache=True)
def number(data: Array, at: int, end: int) -> Any:
    """The end of a number, its kind, and whether it is above zero; 0 if nothing vouches for it."""
    negative = data[at] == MINUS
    if negative:
        at += 1
    begin = at
    value = uint64(0)
    while at < end and is_digit(data[at]) and at - begin < 19:
        value = value * uint64(10) + uint64(data[at] - _ZERO)
        at += 1
    digits = at - begin
    if digits == 0 or (digits > 1 and data[begin] == _ZERO) or (at < end and is_digit(data[at])):
        return 0, 0, False
    if at >= end or not (data[at] == _POINT or (data[at] | 32) == 101):
        if digits == 19 and data[begin] == _NINE:  # near the limit of 64 bits, or beyond
            return 0, 0, False
        return at, INT if value <= uint64(_EXACT) else BIG, not negative and value > uint64(0)
    if data[at] == _POINT:
        begin = at + 1
        at = begin
        while at < end and is_digit(data[at]):
            at += 1
        if at == begin:
            return 0, 0, False
    if at < end and (data[at] | 32) == 101:
        at += 1
        if at < end and (data[at] == _PLUS or data[at] == MINUS):
            at += 1
        begin = at
        while at < end and is_digit(data[at]):
            at += 1
        if not 1 <= at - begin <= 2:
            return 0, 0, False
    return at, FLOAT, not negative


@njit(cache=True)
def word(data: Array, at: int, end: int) -> tuple[int, int]:
    """The end and the kind of true, false or null; 0 for anything else."""
    if at + 4 <= end and data[at + 1] == 114 and data[at + 2] == 117 and data[at + 3] == 101:
        return (at + 4 if data[at] == 116 else 0), BOOL
    if at + 4 <= end and data[at + 1] == 117 and data[at + 2] == 108 and data[at + 3] == 108:
        return (at + 4 if data[at] == 110 else 0), NULL
    if at + 5 <= end and data[at] == 102 and data[at + 1] == 97 and data[at + 2] == 108:
        return (at + 5 if data[at + 3] == 115 and data[at + 4] == 101 else 0), BOOL
    return 0, NULL

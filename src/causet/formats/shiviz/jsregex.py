r"""Regular expressions in JavaScript's syntax, run by Python within bounds.

ShiViz applies its expressions with the flags `gm` to the text of an execution. What differs between the two
languages and can be written in Python is translated: named groups, `\d \w \b` that know ASCII only and
JavaScript's own `\s`; `.`, `^` and `$` at JavaScript's four line ends; `{` that is not a repetition; `[]` and
`[^]`; escapes of letters without a meaning; references to groups that took no part. What remains: a
character beyond U+FFFF counts as one, not as two; a group inside a repetition keeps what it matched last,
also where its last turn did not match it; a repetition of what can match nothing may end at another turn; a
look-behind must have a fixed width.

Rule: an expression may come from an untrusted file, and some run for ever on a short line. So matching
happens in a process of its own, with a limit on its time and memory, on lines that are not too long; when a
limit is reached, that is `BadInput`.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from causet.errors import BadInput, quote

MAX_EXPRESSION = 4_000
MAX_GROUPS = 64
MAX_REPEAT = 65_535
MAX_MATCHES = 1_000_000
SECONDS, SECONDS_PER_MIB = 20.0, 10.0
"""The time limit of matching, and what is added to it for each million characters."""
MEMORY = 4 * 2**30

Ranges = list[tuple[int, int]]
_LINE_ENDS = r"\n\r\u2028\u2029"
_DIGIT: Ranges = [(48, 57)]
_WORD: Ranges = [(48, 57), (65, 90), (95, 95), (97, 122)]
_SPACE: Ranges = [
    *((9, 13), (0x20, 0x20), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A), (0x2028, 0x2029)),
    *((0x202F, 0x202F), (0x205F, 0x205F), (0x3000, 0x3000), (0xFEFF, 0xFEFF)),
]


def _others(ranges: Ranges) -> Ranges:
    starts = [0, *(high + 1 for _, high in ranges)]
    ends = [*(low - 1 for low, _ in ranges), 0x10FFFF]
    return list(zip(starts, ends, strict=True))


_SETS: dict[str, Ranges] = {
    "d": _DIGIT,
    "D": _others(_DIGIT),
    "w": _WORD,
    "W": _others(_WORD),
    "s": _SPACE,
    "S": _others(_SPACE),
}
_CONTROLS = {"t": 9, "n": 10, "v": 11, "f": 12, "r": 13}
_NAME = re.compile(r"[A-Za-z_$][\w$]*", re.ASCII)
_REPEAT = re.compile(r"\{(\d+)(?:,(\d*))?\}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression as it was given, and as Python takes it; `numbers` are those of the named groups."""

    source: str
    pattern: str
    names: tuple[str, ...]
    numbers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Match:
    """Where an expression matched, and for each named group that took part where that did."""

    start: int
    end: int
    groups: dict[str, tuple[int, int]]


def translate(source: str, what: str = "the parser") -> Expression:
    """A JavaScript expression for Python; BadInput says what is wrong with it."""
    if len(source) > MAX_EXPRESSION:
        raise BadInput(f"{what} is longer than {MAX_EXPRESSION:,} characters")
    try:
        translator = _Translator(source)
        pattern = translator.translated()
        re.compile(pattern, re.ASCII)
    except _Wrong as error:
        raise BadInput(f"{what} {quote(source)}: {error}") from None
    except (re.error, OverflowError) as error:
        message = error.msg if isinstance(error, re.error) else str(error)
        raise BadInput(f"{what} {quote(source)}: {message}") from None
    except RecursionError:
        raise BadInput(f"{what} {quote(source)}: groups are nested too deep") from None
    return Expression(source, pattern, tuple(translator.names), tuple(translator.names.values()))


class _Wrong(Exception):
    """What is wrong with an expression."""


class _Translator:
    """One pass over the expression; `at` is the next character."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.at = 0
        self.names: dict[str, int] = {}
        self.groups = 0
        self._find_groups()
        self._opened = 0
        self._open: list[int] = []  # the numbers of the open groups; 0 for those that do not capture
        self._closed: set[int] = set()

    def _find_groups(self) -> None:
        """Numbers and names of the groups: a reference may come before its group."""
        for found in re.finditer(
            r"\\.|\[(?:[^\]\\]|\\.)*\]?|\((?!\?)|\(\?<(?![=!])([^>]*)(>?)", self.source, re.DOTALL
        ):
            if found[0].startswith(("\\", "[")):
                continue
            self.groups += 1
            if found[0] == "(":
                continue
            if not found[2] or not _NAME.fullmatch(found[1]):
                raise _Wrong(f"{quote(found[1])} is not a name for a group")
            if found[1] in self.names:
                raise _Wrong(f"two groups are called {quote(found[1])}")
            self.names[found[1]] = self.groups
        if self.groups > MAX_GROUPS:
            raise _Wrong(f"it has more than {MAX_GROUPS} groups")

    def translated(self) -> str:
        return "".join(self._pieces())

    def _pieces(self) -> Iterator[str]:
        while self.at < len(self.source):
            character = self.source[self.at]
            self.at += 1
            match character:
                case "\\":
                    yield self._escape()
                case "[":
                    yield self._class()
                case "(":
                    yield self._group()
                case ")":
                    if not self._open:
                        raise _Wrong(f"the ) at character {self.at} closes nothing")
                    self._closed.add(self._open.pop())
                    yield ")"
                case ".":
                    yield f"[^{_LINE_ENDS}]"
                case "^":
                    yield f"(?<![^{_LINE_ENDS}])"
                case "$":
                    yield f"(?![^{_LINE_ENDS}])"
                case "*" | "+" | "?":
                    yield self._lazy(character)
                case "{":
                    repeat = _REPEAT.match(self.source, self.at - 1)
                    if repeat is None:
                        yield r"\{"
                        continue
                    if any(len(count) > 5 or int(count) > MAX_REPEAT for count in repeat.groups() if count):
                        raise _Wrong(f"it repeats something more than {MAX_REPEAT:,} times")
                    self.at = repeat.end()
                    yield self._lazy(repeat[0])
                case "|":
                    yield "|"
                case _:
                    yield _literal(ord(character))
        if self._open:
            raise _Wrong("a group is not closed")

    def _take(self, text: str) -> bool:
        if self.source.startswith(text, self.at):
            self.at += len(text)
            return True
        return False

    def _lazy(self, quantifier: str) -> str:
        if self._take("?"):
            return f"{quantifier}?"
        if self.source.startswith("+", self.at):  # Python would take it for a possessive one
            raise _Wrong(f"nothing to repeat at character {self.at + 1}")
        return quantifier

    def _group(self) -> str:
        for start in ("?:", "?=", "?!", "?<=", "?<!"):
            if self._take(start):
                self._open.append(0)
                return f"({start}"
        if self._take("?<"):
            self.at = self.source.index(">", self.at) + 1
        elif self._take("?"):
            raise _Wrong(f"(?{self.source[self.at : self.at + 1]} is not JavaScript")
        self._opened += 1
        self._open.append(self._opened)
        return "("

    def _escape(self) -> str:
        if self.at == len(self.source):
            raise _Wrong("it ends in a backslash")
        character = self.source[self.at]
        if character in "bB":
            self.at += 1
            return f"\\{character}"
        if character in _SETS:
            self.at += 1
            return f"[{_ranges(_SETS[character])}]"
        if character == "k":
            self.at += 1
            if not self.names:
                return "k"
            found = re.compile("<([^>]*)>").match(self.source, self.at)
            if found is None or found[1] not in self.names:
                raise _Wrong("a \\k must name one of its groups")
            self.at = found.end()
            return self._reference(self.names[found[1]])
        number = re.compile(r"[1-9][0-9]*", re.ASCII).match(self.source, self.at)
        if number and len(number[0]) <= 3 and int(number[0]) <= self.groups:
            self.at = number.end()
            return self._reference(int(number[0]))
        code = self._character()
        if 0xD800 <= code < 0xDC00 and (
            low := re.compile(r"\\u([dD][c-fC-F][0-9a-fA-F]{2})").match(self.source, self.at)
        ):
            self.at = low.end()
            code = 0x10000 + ((code - 0xD800) << 10) + (int(low[1], 16) - 0xDC00)
        return _literal(code)

    def _reference(self, number: int) -> str:
        """In JavaScript a group that took no part matches nothing, and so does one that is not yet closed."""
        return f"(?({number})\\{number}|)" if number in self._closed else "(?:)"

    def _character(self) -> int:
        """The character that an escape stands for; `at` is behind the backslash."""
        character = self.source[self.at]
        self.at += 1
        if character in _CONTROLS:
            return _CONTROLS[character]
        for letter, digits in (("x", 2), ("u", 4)):
            if character == letter:
                code = self.source[self.at : self.at + digits]
                if re.fullmatch(rf"[0-9a-fA-F]{{{digits}}}", code):
                    self.at += digits
                    return int(code, 16)
        if character == "c":
            letter = self.source[self.at : self.at + 1]
            if letter.isascii() and letter.isalpha():
                self.at += 1
                return ord(letter) & 31
            self.at -= 1
            return ord("\\")
        if character in "01234567":
            octal = re.compile(r"[0-3][0-7]{0,2}|[4-7][0-7]?").match(self.source, self.at - 1)
            assert octal is not None
            self.at = octal.end()
            return int(octal[0], 8)
        return ord(character)

    def _class(self) -> str:
        negated = self._take("^")
        ranges: Ranges = []
        while not self._take("]"):
            first = self._class_atom()
            if self.source.startswith("-", self.at) and not self.source.startswith("-]", self.at):
                self.at += 1
                last = self._class_atom()
                if len(first) == len(last) == 1 and first[0][0] == first[0][1] and last[0][0] == last[0][1]:
                    if first[0][0] > last[0][0]:
                        raise _Wrong("a range of characters is out of order")
                    ranges.append((first[0][0], last[0][0]))
                else:  # a set has no ends, so the dash is a dash
                    ranges += [*first, (45, 45), *last]
            else:
                ranges += first
        if not ranges:
            return "(?s:.)" if negated else "(?!)"
        return f"[{'^' if negated else ''}{_ranges(ranges)}]"

    def _class_atom(self) -> Ranges:
        if self.at >= len(self.source):
            raise _Wrong("a [ is not closed")
        character = self.source[self.at]
        self.at += 1
        code = ord(character)
        if character == "\\":
            if self.at == len(self.source):
                raise _Wrong("it ends in a backslash")
            escaped = self.source[self.at]
            if escaped in _SETS:
                self.at += 1
                return _SETS[escaped]
            if escaped == "b":
                self.at += 1
                return [(8, 8)]
            code = self._character()
        return [(code, code)]


def _literal(code: int) -> str:
    character = chr(code)
    if character.isascii() and (character.isalnum() or character == "_"):
        return character
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 65536 else f"\\U{code:08x}"


def _ranges(ranges: Ranges) -> str:
    return "".join(
        _literal(low) if low == high else f"{_literal(low)}-{_literal(high)}" for low, high in ranges
    )


# ---------------------------------------------------------------- matching

_CHILD = """
import json, re, sys
from array import array
try:
    import resource
    resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]), -1))
except (ImportError, ValueError, OSError):
    pass
head = json.loads(sys.stdin.buffer.readline())
text = sys.stdin.buffer.read().decode()
expression, left = re.compile(head["pattern"], re.ASCII), head["most"]
found = array("q")
for piece, (start, end) in enumerate(head["pieces"]):
    part, at = text[start:end], 0
    while at <= len(part) and (match := expression.search(part, at)):
        at = match.end()
        if at == match.start():
            at += 1  # as in JavaScript; finditer would look for a longer match here
            continue
        if not left:
            sys.exit(4)
        left -= 1
        found.append(piece)
        for number in head["numbers"]:
            first, last = match.span(number)
            found.extend((first + start, last + start) if first >= 0 else (-1, -1))
sys.stdout.buffer.write(found.tobytes())
"""


def find_all(
    expression: Expression, text: str, pieces: Sequence[tuple[int, int]], what: str = "the parser"
) -> list[list[Match]]:
    """All matches of an expression in each piece of a text, one after the other; empty ones are left out.

    A piece is matched as if it were all there is: nothing reaches beyond its ends.
    """
    numbers = (0, *expression.numbers)
    head = {"pattern": expression.pattern, "pieces": pieces, "numbers": numbers, "most": MAX_MATCHES}
    seconds = SECONDS + SECONDS_PER_MIB * len(text) / 2**20
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _CHILD, str(MEMORY)],
            input=json.dumps(head).encode() + b"\n" + text.encode(),
            capture_output=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise BadInput(
            f"{what} {quote(expression.source)} did not end within {seconds:.0f} s; it probably repeats "
            "repetitions and tries all ways to do so; write it with fewer of them"
        ) from None
    except OSError as error:
        raise BadInput(f"{what} cannot be run: {error.strerror}") from None
    if done.returncode == 4:
        raise BadInput(f"{what} {quote(expression.source)} matches more than {MAX_MATCHES:,} times")
    if done.returncode:
        raise BadInput(f"{what} {quote(expression.source)} needs more than {MEMORY / 2**30:.0f} GiB")
    found = array("q")
    found.frombytes(done.stdout)
    matches: list[list[Match]] = [[] for _ in pieces]
    width = 1 + 2 * len(numbers)
    for at in range(0, len(found), width):
        spans = [(found[x], found[x + 1]) for x in range(at + 1, at + width, 2)]
        groups = {name: span for name, span in zip(expression.names, spans[1:], strict=True) if span[0] >= 0}
        matches[found[at]].append(Match(*spans[0], groups))
    return matches

r"""Regular expressions in JavaScript's syntax, run within bounds.

ShiViz applies its expressions with the flags `gm` to the text of an execution. `regress` is an engine for
them. A character beyond U+FFFF counts as one here, and as two in JavaScript.

Rule: an expression may come from an untrusted file, and some run for ever on a short line. So matching
happens in a process of its own, with limits on time, memory and matches; reaching one is `BadInput`.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from array import array
from collections.abc import Sequence
from dataclasses import dataclass

from regress import Regex, RegressError

from causet.errors import BadInput, quote

MAX_EXPRESSION = 4_000
MAX_GROUPS = 64
MAX_MATCHES = 1_000_000
SECONDS, SECONDS_PER_MIB = 20.0, 10.0
"""The time limit of matching, and what is added to it for each million characters."""
MEMORY = 4 * 2**30
_GROUP = re.compile(r"\\.|\[(?:[^\]\\]|\\.)*\]|\((?!\?)|\(\?<(?![=!])([^>]*)>", re.DOTALL)
"""A group that captures, its name if it has one; escapes and classes are skipped."""


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression, and the names of its groups."""

    source: str
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Match:
    """Where an expression matched, and for each named group that took part where that did."""

    start: int
    end: int
    groups: dict[str, tuple[int, int]]


def expression_of(source: str, what: str = "the parser") -> Expression:
    """A JavaScript expression, checked; BadInput says what is wrong with it."""
    if len(source) > MAX_EXPRESSION:
        raise BadInput(f"{what} is longer than {MAX_EXPRESSION:,} characters")
    try:
        Regex(source, "m")
    except (RegressError, UnicodeEncodeError) as error:
        problem = str(error) if isinstance(error, RegressError) else "half a surrogate pair is not text"
        raise BadInput(f"{what} {quote(source)}: {problem.rstrip('.')}") from None
    groups = [found for found in _GROUP.finditer(source) if found[0].startswith("(")]
    if len(groups) > MAX_GROUPS:
        raise BadInput(f"{what} {quote(source)}: it has more than {MAX_GROUPS} groups")
    return Expression(source, tuple(found[1] for found in groups if found[1]))


_CHILD = """
import json, sys
from array import array
from regress import Regex
try:
    import resource
    resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]), -1))
except (ImportError, ValueError, OSError):
    pass
head = json.loads(sys.stdin.buffer.readline())
text = sys.stdin.buffer.read().decode()
expression, left = Regex(head["source"], "m"), head["most"]
found = array("q")
for piece, (start, end) in enumerate(head["pieces"]):
    part = text[start:end]
    data = b"" if part.isascii() else part.encode()
    byte, at = 0, start
    def position(offset):  # of a character, from that of a byte
        if not data:
            return start + offset
        if offset < byte:
            return at - len(data[offset:byte].decode())
        return at + len(data[byte:offset].decode())
    for match in expression.find_iter(part):
        whole = match.range()
        at, byte = position(whole.start), whole.start
        if whole.start == whole.stop:
            continue
        if not left:
            sys.exit(4)
        left -= 1
        found.append(piece)
        for span in (whole, *map(match.named_group, head["names"])):
            found.extend((-1, -1) if span is None else (position(span.start), position(span.stop)))
sys.stdout.buffer.write(found.tobytes())
"""


def find_all(
    expression: Expression, text: str, pieces: Sequence[tuple[int, int]], what: str = "the parser"
) -> list[list[Match]]:
    """All matches of an expression in each piece of a text, one after the other; empty ones are left out.

    A piece is matched as if it were all there is: nothing reaches beyond its ends.
    """
    head = {"source": expression.source, "pieces": pieces, "names": expression.names, "most": MAX_MATCHES}
    seconds = SECONDS + SECONDS_PER_MIB * len(text) / 2**20
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-c", _CHILD, str(MEMORY)],
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
    width = 3 + 2 * len(expression.names)
    for at in range(0, len(found), width):
        spans = [(found[x], found[x + 1]) for x in range(at + 1, at + width, 2)]
        groups = {name: span for name, span in zip(expression.names, spans[1:], strict=True) if span[0] >= 0}
        matches[found[at]].append(Match(*spans[0], groups))
    return matches

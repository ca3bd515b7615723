"""Each rule of what is printed and of the verdicts, broken on purpose: the check of the rule must fail."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest


class Mutant(NamedTuple):
    rule: str
    module: str
    old: str
    new: str
    holds: Callable[[Any], bool]


MUTANTS = [
    Mutant(
        "characters of no visible form are escaped",
        "causet.escapes",
        "hidden = not letter.isprintable() or HIDDEN.match(letter)",
        "hidden = letter < ' '",
        lambda it: it.escaped("\x9b\u202e") == "\\x9b\\u202e",
    ),
    Mutant(
        "fillers and variation selectors are hidden too",
        "causet.escapes",
        "hidden = not letter.isprintable() or HIDDEN.match(letter)",
        "hidden = not letter.isprintable()",
        lambda it: it.escaped("\u3164") == "\\u3164",
    ),
    Mutant(
        "accents do not pile up",
        "causet.escapes",
        "or accents > ACCENTS",
        "",
        lambda it: it.escaped("e" + "\u0301" * 3).endswith("\\u0301"),
    ),
    Mutant(
        "JSON escapes what json.dumps leaves",
        "causet.escapes",
        "if letter.isprintable() and not HIDDEN.match(letter):",
        "if letter > '\\x7f':",
        lambda it: it.in_json('"\x9b"') == '"\\u009b"',
    ),
    Mutant(
        "JSON has pairs of surrogates",
        "causet.escapes",
        "if code <= 0xFFFF:",
        "if True:",
        lambda it: it.in_json('"\U000e0001"') == '"\\udb40\\udc01"',
    ),
    Mutant(
        "a long word is shortened, and the sentence stays",
        "causet.escapes",
        "if len(line) > LONGEST_WORD:",
        "if False:",
        lambda it: len(it.one_line(f"{'n' * 70_000} is unknown")) < 200,
    ),
    Mutant(
        "a long line is cut",
        "causet.escapes",
        "return line if len(line) <= LONGEST_LINE else _middle_out(line, *ENDS)",
        "return line",
        lambda it: len(it.one_line("word " * 9_000)) <= 3_000,
    ),
    Mutant(
        "no escape is cut in two",
        "causet.escapes",
        "        kept += piece\n",
        "        kept += piece\n    kept = ''.join(pieces)[:room]\n",
        lambda it: it.shortened("\x1b" * 9, 10) == "\\x1b\\x1b…",
    ),
    Mutant(
        "an error is a line",
        "causet.errors",
        "return one_line(super().__str__())",
        "return super().__str__()",
        lambda it: str(it.BadInput("a\nb\x1b")) == "a\\nb\\x1b",
    ),
    Mutant(
        "flagged messages are not green",
        "causet.verdict",
        "GAPS = (FLAGGED, ",
        "GAPS = (",
        lambda it: it.stream_status({"delivered": 2, "flagged": 1198}, 0) == "with gaps",
    ),
    Mutant(
        "books that do not balance come first",
        "causet.verdict",
        "if not balanced:",
        "if False:",
        lambda it: it.stream_status({"delivered": 2, "late": 1}, 0, balanced=False) == "unbalanced",
    ),
    Mutant(
        "a finding outweighs a fault of the log",
        "causet.verdict",
        'return "invalid" if bad else "unknown" if faults else',
        'return "unknown" if faults else "invalid" if bad else',
        lambda it: it.judged_status(1, 1, 1) == "invalid",
    ),
    Mutant(
        "a fault outweighs that there is nothing to judge",
        "causet.verdict",
        '"unknown" if faults else "valid" if judged else "vacuous"',
        '"vacuous" if not judged else "unknown" if faults else "valid"',
        lambda it: it.judged_status(0, 1, 0) == "unknown",
    ),
    Mutant(
        "a message is sent once",
        "causet.formats.sound",
        'if event.kind == "send":',
        "if False:",
        lambda it: _refuses(it, [("p", 1, "send", "x"), ("q", 1, "send", "y")]),
    ),
    Mutant(
        "a (process, seq) stands once",
        "causet.formats.sound",
        "(TWO_EVENTS, event.process, event.seq)",
        "(TWO_EVENTS, event.process, event.seq, event.id)",
        lambda it: _refuses(it, [("p", 1, "local", "x"), ("p", 1, "local", "y")]),
    ),
    Mutant(
        "an id stands once",
        "causet.formats.sound",
        ", (TWO_IDS, event.id)",
        "",
        lambda it: _refuses(it, [("p", 1, "local", "x"), ("q", 1, "local", "x")]),
    ),
]


def _refuses(it: Any, events: list[tuple[str, int, str, str]]) -> bool:
    from causet.errors import BadInput
    from causet.model import Event

    message = {"send": "m"}
    placed = [
        (f"row {n}", Event(process, seq, kind, id, message.get(kind)))
        for n, (process, seq, kind, id) in enumerate(events)
    ]
    try:
        list(it.distinct(placed))
    except BadInput:
        return True
    return False


def mutated(mutant: Mutant) -> ModuleType:
    """The module with that line changed, beside the one that everybody has."""
    own = importlib.import_module(mutant.module)
    assert own.__file__ is not None
    text = Path(own.__file__).read_text(encoding="utf-8")
    assert text.count(mutant.old) == 1, "the rule stands in the source as the mutant knows it"
    name = f"mutant_of_{mutant.module.replace('.', '_')}"
    made = ModuleType(name)
    sys.modules[name] = made  # dataclasses look there
    try:
        exec(compile(text.replace(mutant.old, mutant.new), own.__file__, "exec"), made.__dict__)
    finally:
        del sys.modules[name]
    return made


@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.rule for mutant in MUTANTS])
def test_a_broken_rule_is_seen(mutant: Mutant) -> None:
    assert mutant.holds(importlib.import_module(mutant.module))
    assert not mutant.holds(mutated(mutant))

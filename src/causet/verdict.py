"""The verdicts: one word, one meaning, one colour and one exit code each, for all reports.

Commands, `--json`, pages and documents take them from here. A colour is never the only sign: the word says
the same. A figure that was not judged is `NOT_JUDGED`, never 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from causet.status import CONFLICTS, DIVERTED, FLAGGED, LATE, SKIPPED

GOOD, BAD, OPEN, PLAIN = "good", "bad", "open", "plain"
"""Colours: green, red, amber, grey."""
NOT_JUDGED = "not judged"


@dataclass(frozen=True, slots=True)
class Meaning:
    """A verdict: its word, its colour, the exit code that goes with it, and its meaning."""

    word: str
    tone: str
    exit_code: int
    meaning: str


VERDICTS: Mapping[str, Meaning] = {
    "valid": Meaning("Valid", GOOD, 0, "everything was judged, and every process delivered in causal order"),
    "invalid": Meaning(
        "Invalid", BAD, 1, "something came too early, twice or where it is not addressed, or is stuck"
    ),
    "unknown": Meaning(
        "Unknown", OPEN, 3, "nothing was found, but the log is incomplete, or a search stopped at its limit"
    ),
    "vacuous": Meaning("Vacuous", PLAIN, 0, "nothing is delivered, so there is nothing to judge"),
    "unjudged": Meaning("Not judged", PLAIN, 0, "it is drawn without being judged, since it is too large"),
    "measured": Meaning(
        "Measured", PLAIN, 0, "effects before their causes are counted; a count is not a finding"
    ),
    "in order": Meaning("In order", GOOD, 0, "every message of the stream left after all its causes"),
    "with gaps": Meaning(
        "With gaps", OPEN, 0, "some messages left flagged or late, or were diverted: they are counted"
    ),
    "held": Meaning("Held", OPEN, 0, "what left is in order, and some messages still wait"),
    "unbalanced": Meaning("Unbalanced", BAD, 2, "the books do not add up: something was lost or doubled"),
    "fine": Meaning("Fine", GOOD, 0, "it is done, and the log is complete"),
    "wrong": Meaning("Wrong", BAD, 1, "something that the commands need does not work"),
}
"""By status, as `--json` has it."""
GAPS = (FLAGGED, LATE, DIVERTED, CONFLICTS, SKIPPED)
"""What a stream counts that is not in order."""


def meaning_of(status: str) -> Meaning:
    return VERDICTS[status]


def exit_code(status: str) -> int:
    """The exit code of a command that judges; `view` draws, and its code is 0."""
    return VERDICTS[status].exit_code


def judged_status(bad: object, faults: object, judged: object) -> str:
    """Of an execution: whether something was found, something is missing, and there was something to judge.

    >>> judged_status(0, 0, 5), judged_status(0, 2, 5), judged_status(1, 2, 5), judged_status(0, 0, 0)
    ('valid', 'unknown', 'invalid', 'vacuous')
    """
    return "invalid" if bad else "unknown" if faults else "valid" if judged else "vacuous"


def stream_status(counts: Mapping[str, int], held: int, balanced: bool = True) -> str:
    """Of a run of `deliver` or `merge`.

    >>> stream_status({"delivered": 5}, 0), stream_status({"delivered": 5, "late": 1}, 2)
    ('in order', 'with gaps')
    """
    if not balanced:
        return "unbalanced"
    if any(counts.get(name) for name in GAPS):
        return "with gaps"
    if held:
        return "held"
    return "in order" if counts.get("delivered") else "vacuous"


def stream_sentence(counts: Mapping[str, int], held: int, balanced: bool = True) -> str:
    """The same for people, without a full stop.

    >>> stream_sentence({"delivered": 5, "flagged": 1198, "late": 2}, 0)
    'with gaps: 1,198 flagged, 2 late'
    """
    status = stream_status(counts, held, balanced)
    gaps = [f"{counts[name]:,} {name}" for name in GAPS if counts.get(name)]
    if held:
        gaps.append(f"{held:,} still held")
    return f"{status}: {', '.join(gaps)}" if gaps else status

"""The verdict on an execution that is going to be drawn: what came too early, with its proof.

Small executions are judged by the oracle, which needs nothing but Python. `causet verify` judges large ones,
on Spark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from causet.check.oracle import Verdict as Judgement
from causet.check.oracle import judge
from causet.formats.execution import GAP, UNKNOWN_PARENT, Fault
from causet.verdict import judged_status
from causet.view.payload import NONE, Drawing, Verdict, Violation
from causet.view.proofs import proof

MOST_EVENTS, MOST_TARGETS = 12_000, 20_000
"""For the oracle, whose time grows with the square of messages and of targets: about a second."""
SENTENCES = {
    "valid": "Every process delivered in causal order.",
    "vacuous": "Nothing is delivered, so there is no order of deliveries to judge.",
    "unknown": "Nothing was found, but the log is incomplete, which could hide something.",
}
UNSENT = "delivered without a send"


def sentence_of(status: str, wrong: Mapping[str, int], faults: Sequence[Fault] = ()) -> str:
    """What was found, by kind, and what could not be judged since the log is incomplete.

    >>> sentence_of("invalid", {"delivered too early": 2, "delivered more than once": 0})
    '2 delivered too early.'
    """
    found = ", ".join(f"{count:,} {what}" for what, count in wrong.items() if count)
    said = f"{found}." if found else SENTENCES[status]
    holes = ", ".join(f"{fault.kind} ({fault.count:,})" for fault in faults)
    return f"{said} Not judged: {holes}." if holes else said


def judged(drawing: Drawing, faults: Sequence[Fault] = ()) -> Drawing:
    """With the verdict, if it is small enough for the oracle. `faults` are those of the log it comes from."""
    targets = sum(len(event.to or ()) for event in drawing.events)
    if len(drawing.events) > MOST_EVENTS or targets > MOST_TARGETS:
        if not any(event.kind == "deliver" for event in drawing.events):
            status = judged_status(0, faults, 0)
            return replace(drawing, verdict=Verdict(status, sentence_of(status, {}, faults)), found=0)
        sentence = (
            f"Not judged here, with more than {MOST_EVENTS:,} events; `causet verify` judges any number."
        )
        holes = ", ".join(f"{fault.kind} ({fault.count:,})" for fault in faults)
        sentence += f" The log is incomplete: {holes}." if holes else ""
        return replace(drawing, verdict=Verdict("unjudged", sentence))
    found = judge(drawing.events)
    faults = faults or _faults_of(found)
    sends = {event.message: number for number, event in enumerate(drawing.events) if event.kind == "send"}
    delivered: dict[tuple[str, str | None], int] = {}
    for number, event in enumerate(drawing.events):
        if event.kind == "deliver":
            delivered.setdefault((event.process, event.message), number)
    senders = {message: drawing.events[number].process for message, number in sends.items() if message}
    violations = [
        Violation(
            delivered[each.process, each.delivered],
            delivered.get((each.process, each.before), sends.get(each.before, NONE)),
            proof(each.process, each.delivered, each.before, each.because, senders),
            tuple(sends[message] for message in each.because),
        )
        for each in found.violations
    ]
    counts = {
        "delivered too early": len(violations),
        "delivered more than once": len(found.duplicates),
        "delivered where not addressed": len(found.strangers),
    }
    status = judged_status(not found.ok, faults, found.deliveries)
    verdict = Verdict(status, sentence_of(status, counts, faults))
    return replace(drawing, violations=violations, verdict=verdict, found=len(violations))


def _faults_of(found: Judgement) -> list[Fault]:
    """What the oracle saw missing, where the reader of a log has not said it."""
    kinds = {GAP: found.gaps, UNKNOWN_PARENT: found.unknown_parents, UNSENT: found.unsent}
    return [Fault(kind, len(each), ()) for kind, each in kinds.items() if each]

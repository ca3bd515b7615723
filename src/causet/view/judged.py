"""The verdict on an execution that is going to be drawn: what came too early, with its proof.

Small executions are judged by the oracle, which needs nothing but Python. Whoever has a larger one judged it
with `causet verify`, on Spark.
"""

from __future__ import annotations

from dataclasses import replace

from causet.check.oracle import judge
from causet.view.payload import NONE, Laid, Verdict, Violation
from causet.view.proofs import proof

MOST_EVENTS, MOST_TARGETS = 12_000, 20_000
"""For the oracle, whose time grows with the square of messages and of targets: about a second."""
SENTENCES = {
    "valid": "Every process delivered in causal order.",
    "vacuous": "Nothing is delivered, so there is no order of deliveries to judge.",
    "unknown": "Nothing was found, but the log has faults that could hide something.",
}


def judged(laid: Laid) -> Laid:
    """With the verdict, if it is small enough for the oracle."""
    sends = {event.message: number for number, event in enumerate(laid.events) if event.kind == "send"}
    if not any(event.kind == "deliver" for event in laid.events):
        return replace(laid, verdict=Verdict("vacuous", SENTENCES["vacuous"]))
    targets = sum(len(event.to or ()) for event in laid.events)
    if len(laid.events) > MOST_EVENTS or targets > MOST_TARGETS:
        told = f"Not judged here, with more than {MOST_EVENTS:,} events; `causet verify` judges any number."
        return replace(laid, verdict=Verdict("unjudged", told))
    found = judge(laid.events)
    delivered: dict[tuple[str, str | None], int] = {}
    for number, event in enumerate(laid.events):
        if event.kind == "deliver":
            delivered.setdefault((event.process, event.message), number)
    senders = {message: laid.events[number].process for message, number in sends.items() if message}
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
    wrong = ", ".join(f"{count:,} {what}" for what, count in counts.items() if count)
    sentence = f"{wrong[:1].upper()}{wrong[1:]}." if wrong else SENTENCES[found.status]
    return replace(laid, violations=violations, verdict=Verdict(found.status, sentence))

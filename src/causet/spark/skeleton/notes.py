"""Notes: what tasks report about a log in addition to their rows. Faults are counted, the first few named."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

EXAMPLES = 10
"""Faults of each kind that are named by every task; the others are counted."""

LOST_PARENT, LOST_DELIVERY, LOST_RECEPTION = "unknown parent", "unsent delivery", "unsent reception"
REPEATED_EVENT, REPEATED_ID, SENT_TWICE, CYCLE = "repeated event", "repeated id", "sent twice", "cycle"
"""Faults."""
BLOCKS = "blocks"
"""The largest block."""
MESSAGES, DELIVERIES, UNSENT_AGAIN = "messages", "deliveries", "unsent delivered again"
"""Counts of a skeleton with deliveries: application messages sent; their deliveries, those without a send
included; events that deliver a message again for which there is no send."""
FINDINGS = "findings"
"""What `verify` found, before duplicates are removed."""


@dataclass
class Notes:
    """Counts by kind, and the first examples of each kind."""

    counts: dict[str, int] = field(default_factory=dict)
    examples: dict[str, list[list[Any]]] = field(default_factory=dict)

    def add(self, kind: str, count: int, examples: Iterable[list[Any]] = ()) -> None:
        if count:
            self.counts[kind] = self.counts.get(kind, 0) + count
            merged = sorted([*self.examples.get(kind, []), *examples])
            self.examples[kind] = merged[:EXAMPLES]

    def merge(self, text: str | bytes) -> None:
        """Add the notes of another task, as `to_json` writes them."""
        other = json.loads(text)
        for kind, count in other["counts"].items():
            self.add(kind, count, other["examples"].get(kind, []))

    def to_json(self) -> str:
        return json.dumps({"counts": self.counts, "examples": self.examples})

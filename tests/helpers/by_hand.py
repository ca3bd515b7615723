"""Causal histories where the application merges (Rodrigues & Verissimo, chapter 6): what must be true.

The oracle is told what was not merged. So it knows what precedes what by the definition: a message precedes
another if the sender of the second had merged the first, its own ones included.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from causet.check.oracle import judge
from causet.model import System, mask, members, only
from tests.helpers.traffic import Traffic


def check_merges_by_hand(
    kind: Any, system: System, seeds: Iterable[int], settings: Mapping[str, Any] | None = None
) -> None:
    """Random runs, in which many messages are not merged, or few: safe, live, never later than necessary."""
    for seed in seeds:
        traffic = Traffic(kind, system, seed, {"by_hand": True, **(settings or {})})
        draw = traffic.random
        merged = draw.choice([0.5, 0.9])
        for _ in range(80):
            if traffic.under_way and draw.random() < 0.6:
                traffic.receive(merge=draw.random() < merged)
            else:
                p = draw.randrange(system.size)
                near = system.everyone if system.links is None else system.links[p]
                others = list(members(near & ~only(p)))
                targets = mask(draw.sample(others, draw.randint(1, len(others))))
                traffic.send(p, targets, merge=draw.random() < merged)
        traffic.finish()
        verdict = judge(traffic.events, unmerged=traffic.unmerged)
        assert verdict.status == "valid", (seed, verdict.violations)
        assert not verdict.undelivered, seed
        assert not verdict.late, seed

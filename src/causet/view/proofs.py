"""Proofs in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from causet.errors import listed


def proof(
    process: str, delivered: str, before: str, because: Sequence[str], senders: Mapping[str, str]
) -> str:
    """A violation in plain words.

    >>> proof("n7", "n5:13", "n5:12", ("n5:12", "n5:13"), {"n5:12": "n5", "n5:13": "n5"})
    'n7 delivered n5:13 before n5:12. But n5 sent n5:12 before it sent n5:13.'
    """
    claim = f"{_shown(process)} delivered {_shown(delivered)} before {_shown(before)}."
    steps = []
    for cause, effect in pairwise(because):
        sender = senders[effect]
        did = "sent" if senders[cause] == sender else "delivered"
        steps.append(f"{_shown(sender)} {did} {_shown(cause)} before it sent {_shown(effect)}")
    return f"{claim} But {', and '.join(steps)}." if steps else claim


def _shown(name: str) -> str:
    return listed([name])

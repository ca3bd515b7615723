"""The files that examples in the documents begin with."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path
from typing import Any

from causet import RcClock, Stamper


def shop(count: int) -> list[dict[str, Any]]:
    """Envelopes of three sources that answer each other, for one tenant, in the order in which they came."""
    now = [1_767_000_000_000]
    clocks = {name: RcClock(50, lambda: 1000 * now[0], steady=None) for name in ("orders", "bank", "post")}
    sources = {name: Stamper(name, "shop", clock=clock) for name, clock in clocks.items()}
    draw = random.Random(1)
    made: list[dict[str, Any]] = []
    for _ in range(count):
        now[0] += 10
        name = draw.choice(sorted(sources))
        if made and made[-1]["source"] != name:
            sources[name].saw(made[-1])
        made.append({**sources[name].stamp({"amount": 5}), "tenant": "t1"})
    now[0] += 10_000
    draw.shuffle(made)
    return [*made, *(stamper.heartbeat() for stamper in sources.values())]


def repository(folder: Path) -> None:
    """Of two commits."""
    who = ("-c", "user.name=Anna", "-c", "user.email=anna@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", "init", "--quiet"], check=True, cwd=folder)
    for text in ("A first version", "It says hello"):
        command = ["git", *who, "commit", "--quiet", "--allow-empty", "-m", text]
        subprocess.run(command, check=True, cwd=folder)

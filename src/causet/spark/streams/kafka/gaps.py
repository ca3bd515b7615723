"""Gaps: offsets of a topic that a query has yet to read and that are gone.

Rule: no message is skipped in silence. A gap is an error that names topic, partition and both offsets; or,
with `gaps=skip`, a line in a file of gaps.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from causet.errors import BadInput, quote, reason

STOP, SKIP = GAPS = ("stop", "skip")
GAP_FILE = "gaps.jsonl"


@dataclass(frozen=True)
class Gap:
    """Offsets that were to be read and are gone: reading goes on at `first`."""

    topic: str
    partition: int
    wanted: int
    first: int
    anew: bool
    """the topic was deleted and recreated"""

    def __str__(self) -> str:
        place = f"topic {quote(self.topic)}, partition {self.partition}"
        if self.anew:
            what = (
                f"the next offset to read is {self.wanted}, but the topic was deleted and recreated, and "
                f"begins at offset {self.first} now: what was not read of the old one is lost"
            )
        else:
            what = (
                f"the next offset to read is {self.wanted}, but the first that is there is {self.first}: "
                "retention removed messages before they were read"
            )
        return (
            f"{place}: {what}; --gaps skip goes on at the first offset that is there and reports the gap, "
            "or begin with a new checkpoint and a new sink"
        )

    def as_json(self) -> dict[str, Any]:
        return {
            "topic": self.topic,
            "partition": self.partition,
            "from": self.wanted,
            "to": self.first,
            "anew": self.anew,
        }


def note_gap(folder: Path, gap: Gap) -> None:
    """Write a gap down, once. BadInput if that cannot be: nothing is skipped in silence."""
    line = json.dumps(gap.as_json())
    file = folder / GAP_FILE
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if file.exists() and line in file.read_text(encoding="utf-8").splitlines():
            return
        with file.open("a", encoding="utf-8") as stream:
            stream.write(line + "\n")
            stream.flush()
            os.fsync(stream.fileno())
    except OSError as error:
        raise BadInput(f"{gap}; and it cannot be noted in {file}: {reason(error)}") from None


def read_gaps(folder: Path) -> list[dict[str, Any]]:
    """The gaps that were noted there: topic, partition, from, to, and whether the topic was recreated. A
    gap that had grown when its batch was run again is there once."""
    try:
        lines = (folder / GAP_FILE).read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []
    found: dict[Any, dict[str, Any]] = {}
    for line in lines:
        try:
            gap = json.loads(line)
        except ValueError:  # cut off when a run was killed; the next run noted it again
            continue
        key = (gap["topic"], gap["partition"], gap["from"], gap["anew"])
        if key not in found or found[key]["to"] < gap["to"]:
            found[key] = gap
    return list(found.values())

"""A service of the demonstration: a process that stamps what it sends, and whose clock is wrong.

It is started once, so its stamper needs no file.

It reads what it sees and what it is to do, a JSON object per line, and writes the envelopes that it sends. It
uses nothing but the standard library and the stamper, as any producer can.
"""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime, timedelta

from causet import Stamper


def serve(name: str, skew: int) -> None:
    """Act until the last request."""
    stamper = Stamper(name)
    for line in sys.stdin:
        asked = json.loads(line)
        if "seen" in asked:
            stamper.saw(asked["seen"])
            continue
        clock = datetime.now(UTC) + timedelta(milliseconds=skew)
        envelope = stamper.stamp(
            {"text": asked["text"]},
            to=asked["to"],
            type=asked["type"],
            subject=asked["subject"],
            time=clock.isoformat(timespec="milliseconds"),
        )
        sys.stdout.write(json.dumps(envelope) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]))

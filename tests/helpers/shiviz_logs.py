"""Real logs of ShiViz, and the clocks that they record."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

import pytest

from tests.helpers.places import TRACES

real = pytest.mark.skipif(
    not (TRACES / "shiviz").is_dir(),
    reason=f"no real logs in {TRACES / 'shiviz'}; set CAUSET_TRACES to the folder that has them",
)

GOVECTOR = r"(?<host>\S*) (?<clock>{.*})\n(?<event>.*)"

Clocks = Mapping[tuple[str, int], Mapping[str, int]]


def clocks_of(text: str, parser: str) -> Clocks:
    """The clocks of a log, found by Python's own expressions: these few are the same in both languages."""
    expression = re.compile(parser.replace("(?<", "(?P<"), re.MULTILINE | re.ASCII)
    return {
        (match["host"], clock[match["host"]]): clock
        for match in expression.finditer(text)
        for clock in [json.loads(match["clock"])]
    }

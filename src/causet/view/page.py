"""Executions as one page that needs no network: the built front end, with the data put into it.

The front end is in `web/`; what is built of it is `page.html` beside this file.
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from causet.errors import printable
from causet.files import replacing, unwritable
from causet.formats.execution import Fault
from causet.model import Event
from causet.view.judged import judged
from causet.view.narrow import Selection
from causet.view.payload import Drawing, encode

LONGEST_TITLE = 200
_DATA, _TITLE = "@@CAUSET-DATA@@", "@@CAUSET-TITLE@@"


def page(kind: str, title: str, drawings: Sequence[Drawing], report: Mapping[str, Any] | None = None) -> str:
    """The page as text: `view`, `compare` or `report`."""
    data = encode(kind, title, drawings, report)
    # The title first: whatever it says, it cannot take the place of the data.
    before, _, after = _built().partition(_DATA)
    return f"{before.replace(_TITLE, html.escape(printable(title, LONGEST_TITLE)), 1)}{data}{after}"


@cache
def _built() -> str:
    return (Path(__file__).parent / "page.html").read_text(encoding="utf-8")


def judged_drawing(
    events: Sequence[Event], name: str, selection: Selection | None = None, faults: Sequence[Fault] = ()
) -> Drawing:
    """The drawing of an execution: judged, and as much of it as is selected."""
    return (selection or Selection()).of(judged(Drawing.of(name, events), faults))


def write_page(path: Path, events: Sequence[Event], title: str) -> Path:
    """Write the page of an execution, and return its path."""
    return write_text(path, page("view", title, [judged_drawing(events, title)]))


def write_text(path: Path, text: str) -> Path:
    """Write a page, complete or not at all, and return its path."""
    data = text.encode("utf-8", "backslashreplace")
    target = path.resolve() if path.is_symlink() else path
    try:
        if target.exists() and not target.is_file():  # a pipe or a device: there is nothing to replace
            target.write_bytes(data)
        else:
            with replacing(target) as beside:
                beside.write_bytes(data)
    except OSError as error:
        raise unwritable(path, error) from None
    return path

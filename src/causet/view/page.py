"""Executions as one page that needs no network: the built front end, with the data put into it.

The front end is in `web/`; what is built of it is `page.html` beside this file.
"""

from __future__ import annotations

import html
import os
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from causet.errors import BadInput, printable
from causet.files import unwritable
from causet.formats.execution import Fault
from causet.model import Event
from causet.view.judged import judged
from causet.view.narrow import Wanted
from causet.view.payload import Laid, encode

LONGEST_TITLE = 200
_DATA, _TITLE = "@@CAUSET-DATA@@", "@@CAUSET-TITLE@@"


def page(kind: str, title: str, laid: Sequence[Laid], report: Mapping[str, Any] | None = None) -> str:
    """The page as text: `view`, `compare` or `report`."""
    data = encode(kind, title, laid, report)
    # The title first: whatever it says, it cannot take the place of the data.
    before, _, after = _built().partition(_DATA)
    return f"{before.replace(_TITLE, html.escape(printable(title, LONGEST_TITLE)), 1)}{data}{after}"


@cache
def _built() -> str:
    return (Path(__file__).parent / "page.html").read_text(encoding="utf-8")


def view_of(
    events: Sequence[Event], name: str, wanted: Wanted | None = None, faults: Sequence[Fault] = ()
) -> Laid:
    """An execution as a page shows it: judged, and as much of it as is wanted."""
    return (wanted or Wanted()).of(judged(Laid.of(name, events), faults))


def write_page(path: Path, events: Sequence[Event], title: str) -> Path:
    """Write the page of an execution; where it is."""
    return write_text(path, page("view", title, [view_of(events, title)]))


def write_text(path: Path, text: str) -> Path:
    """Write a page whole, or not at all."""
    data = text.encode("utf-8", "backslashreplace")
    target = path.resolve() if path.is_symlink() else path
    half = target.with_name(f".{target.name}.part")
    try:
        if target.exists() and not target.is_file():  # a pipe or a device: there is nothing to replace
            target.write_bytes(data)
            return path
        half.write_bytes(data)
        half.replace(target)
    except OSError as error:
        half.unlink(missing_ok=True)
        raise unwritable(path, error) from None
    return path


def check_output(path: Path, inputs: Sequence[Path] = ()) -> None:
    """BadInput, before any work, if a page cannot be written there or would take the place of an input."""
    if any(path.exists() and given.exists() and path.samefile(given) for given in inputs):
        raise BadInput(f"{path} is the input; name another file for the page")
    folder = path.resolve().parent
    if not folder.is_dir():
        raise BadInput(f"{path} cannot be written: there is no folder {folder}")
    if not os.access(folder, os.W_OK) and not path.exists():
        raise BadInput(f"{path} cannot be written: permission denied")

r"""Writing ShiViz logs: a file that begins with its own parser and delimiter, and that `read_shiviz` reads
back without loss.

One line is one event, its cells separated by tabs, the clock last: every line is an entry, whatever its texts
hold, no expression has to search, and no blank is lost at the ends of the file, which ShiViz trims. Fields
that are plain text have cells of their own, which ShiViz shows. What has none (a text of several lines, the
kind and message of a send, numbers, ids that are not `host:value`) stands as JSON in the cell `causet`.

Rule: clocks are computed from happened-before: process order over seq, parents, and sends. A parent that is
not in the trace and is called `host:value`, as `read_shiviz` calls an entry that was lost, is an entry of the
clock again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from causet.errors import BadInput, quote
from causet.files import new_file
from causet.formats.execution import Execution, plain_name
from causet.formats.schema import FIELDS
from causet.formats.shiviz.clocks import Point, vector_clocks
from causet.formats.shiviz.read import GROUPS, MAX_BYTES, MAX_LINE, REST
from causet.formats.strict import encodes
from causet.model import Event

DELIMITER = r"^=== (?<trace>.*) ===$"
MOST_FIELDS = 20
"""Fields that have cells of their own; the others are in the rest."""

_CELL = r"[^\t\n]*"
_BREAKS = re.compile(r"[\t\n\r\u2028\u2029]")
_GROUP_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_WHOLE = re.compile(r"0|-?[1-9][0-9]*", re.ASCII)
_LOST = re.compile(r"(.*):([1-9][0-9]{0,17})", re.DOTALL)


def write_shiviz(path: str | Path, executions: Sequence[Execution]) -> int:
    """Write all executions to one log, and return the number of events."""
    with new_file(Path(path)) as stream:
        return _write(stream, executions)


def _write(stream: Any, executions: Sequence[Execution]) -> int:
    fields = _fields(executions)
    rows = [_rows(execution.events, fields) for execution in executions]
    groups = ["host", "event", *fields, REST]
    if not any(row[-2] for found in rows for row in found):  # nothing is left for the rest
        groups.pop()
        rows = [[(*row[:-2], row[-1]) for row in found] for found in rows]
    parser = "^" + "".join(rf"(?<{name}>{_CELL})\t" for name in groups) + r"(?<clock>\{.*\})$"
    alone = len(executions) == 1 and not executions[0].name
    written = _put(stream, parser, "" if alone else DELIMITER)
    for found, name in zip(rows, _names(executions), strict=True):
        written += 0 if alone else _put(stream, f"=== {name} ===")
        for row in found:
            line = "\t".join(row)
            if len(line) > MAX_LINE:
                raise BadInput(
                    f"an event of {quote(row[0])} takes more than {MAX_LINE:,} characters, too long a line"
                )
            written += _put(stream, line)
        if written > MAX_BYTES:
            raise BadInput(
                f"the log is larger than {MAX_BYTES // 2**20} MiB with its clocks; ShiViz is for logs that "
                "fit a screen"
            )
    return sum(map(len, rows))


def _put(stream: IO[bytes], *lines: str) -> int:
    return stream.write("".join(f"{line}\n" for line in lines).encode())


def _names(executions: Sequence[Execution]) -> list[str]:
    """A unique name for each execution: ShiViz would show one of two equal ones twice."""
    names: list[str] = []
    for execution in executions:
        name = wanted = _BREAKS.sub(" ", execution.name).encode(errors="replace").decode()
        number = 2
        while name in names:
            name = f"{wanted} ({number})"
            number += 1
        names.append(name)
    return names


def _fields(executions: Sequence[Execution]) -> list[str]:
    """The groups for what is plain text somewhere, in the order in which it appears; the time is one."""
    found: dict[str, None] = {}
    for execution in executions:
        for event in execution.events:
            if _is_whole(event.time):
                found["timestamp"] = None
            for name, value in event.extra.items():
                group = _group(name)
                if group is not None and _is_plain(value) and len(found) < MOST_FIELDS:
                    found[group] = None
    return list(found)


def _group(name: str) -> str | None:
    """The group from which the field of this name is read back; None if there cannot be one."""
    group = plain_name(name)
    if group is None or not _GROUP_NAME.fullmatch(group) or group in (*GROUPS, REST):
        return None
    return group


def _rows(events: Sequence[Event], fields: Sequence[str]) -> list[tuple[str, ...]]:
    """The cells of each event: host, text, fields, rest, clock."""
    beyond, unknown = _beyond(events)
    clocks = vector_clocks(events, beyond)
    hosts = _hosts({host for clock in clocks for host in clock})
    rows = []
    for event, clock, others in zip(events, clocks, unknown, strict=True):
        rest = _rest(event)
        if hosts[event.process] != event.process:
            rest["process"] = event.process
        if others:
            rest["parents"] = others
        cells, extra = _split(event, fields)
        if extra:
            rest["extra"] = extra
        text = event.text or ""
        rows.append(
            (
                hosts[event.process],
                text if _is_plain(text) else " ".join(text.encode(errors="replace").decode().split()),
                *cells,
                _json(event, rest) if rest else "",
                _json(event, {hosts[host]: clock[host] for host in sorted(clock)}),
            )
        )
    return rows


def _rest(event: Event) -> dict[str, Any]:
    """The fields of the trace format for which a ShiViz log has no place."""
    rest: dict[str, Any] = {}
    if event.id != f"{event.process}:{event.seq}":
        rest["id"] = event.id
    if event.kind != "local":
        rest["kind"] = event.kind
    for name in ("message", "to", "group", "stamp_entries", "stamp_bytes"):
        if (value := getattr(event, name)) is not None:
            rest[name] = value
    if event.control:
        rest["control"] = True
    if event.time is not None and not _is_whole(event.time):
        rest["time"] = event.time
    if event.text is not None and not _is_plain(event.text):
        rest["text"] = event.text
    return rest


def _split(event: Event, fields: Sequence[str]) -> tuple[list[str], dict[str, object]]:
    """The event's fields: those that have cells, and the others."""
    cells = dict.fromkeys(fields, "")
    if _is_whole(event.time):
        cells["timestamp"] = str(event.time)
    others: dict[str, object] = {}
    for name, value in event.extra.items():
        if name in FIELDS:
            raise BadInput(f"event {quote(event.id)} has an extra field {quote(name)}: that name is reserved")
        group = _group(name)
        fits = group in cells and _is_plain(value)
        if group == "timestamp" and (cells.get(group) or _WHOLE.fullmatch(str(value))):
            fits = False  # the cell is taken, or would be read as the time
        if fits and group is not None:
            cells[group] = str(value)
        else:
            others[name] = value
    return list(cells.values()), others


def _json(event: Event, value: dict[str, Any]) -> str:
    # In ASCII, so that whatever a name or a text holds, there is no line end in it.
    try:
        text = json.dumps(value, allow_nan=False, separators=(",", ":"))
        if r"\ud" in text and not encodes(json.dumps(value, ensure_ascii=False)):
            raise BadInput(f"event {quote(event.id)} contains half a surrogate pair")
        return text
    except (TypeError, ValueError, RecursionError) as error:
        raise BadInput(f"event {quote(event.id)} cannot be written as JSON: {error}") from None


def _is_plain(value: object) -> bool:
    """Whether a cell can hold this: text that is not empty and has neither tab nor line end."""
    return isinstance(value, str) and value != "" and not _BREAKS.search(value) and encodes(value)


def _is_whole(value: object) -> bool:
    return isinstance(value, int)


def _beyond(events: Sequence[Event]) -> tuple[dict[int, list[Point]], list[list[str]]]:
    """Parents that are not in the trace: those that are clock entries, and for each event the others."""
    known = {event.id for event in events}
    logged = {(event.process, event.seq) for event in events}
    entries: dict[int, list[Point]] = {}
    others: list[list[str]] = [[] for _ in events]
    for number, event in enumerate(events):
        for parent in event.parents:
            if parent in known:
                continue
            lost = _LOST.fullmatch(parent)
            plain = lost and lost[1] != event.process and _is_plain(lost[1]) and lost[1] == lost[1].strip()
            if lost and plain and (lost[1], int(lost[2])) not in logged:
                entries.setdefault(number, []).append((lost[1], int(lost[2])))
            else:
                others[number].append(parent)
    return entries, others


def _hosts(processes: set[str]) -> dict[str, str]:
    """The host of each process: its name, quoted where a cell cannot hold that."""
    shown: dict[str, str] = {}
    taken = {name for name in processes if _is_plain(name) and name == name.strip()}
    for process in sorted(processes):
        name = process
        if process not in taken:
            name = json.dumps(process)
            while name in taken:
                name += "'"
            taken.add(name)
        shown[process] = name
    return shown
